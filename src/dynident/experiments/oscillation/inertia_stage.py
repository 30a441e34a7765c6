r"""The inertia stage: under proportional control every squared frequency equals kp once the inertia is right.

With the weight compensated the machine obeys ``M x'' + kp M~ x = 0`` about a set-point, so the squared frequencies are
kp times the eigenvalues of M^-1 M~ (eq. 22). They are measured with estimates that keep the modes apart, at set-points
that tell all parameters, and the inertia that explains all of them is found by least squares; a last swing with that
inertia proves it, for then the modes merge at kp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.checks import Array
from dynident.errors import InputError
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.oscillation.groups import Local, SwingModel, local, nominals
from dynident.experiments.oscillation.natural import AHEAD
from dynident.experiments.oscillation.solver import Solved, gauss_newton
from dynident.experiments.oscillation.stage import StageOptions, StageResult, Step, duration_for, refuse, step_of
from dynident.experiments.oscillation.starts import amplitude_for, mixed_start, natural_modes, quantum_of
from dynident.experiments.oscillation.swing import Law, Swing, swing, systematic

MERGED = 1e-3  # |w²/kp - 1| at which the modes count as one
SMALLER = np.radians(0.1)  # [rad or m] amplitude unless the encoders need more
_APART = 0.03  # gap of neighbouring modes, in the logarithm of their squares, that a short run tells apart
_CANDIDATES = 40
_TRIALS = 40
_STARTS, _HOLLOWS = 6, 0.3  # further starts of the fit, and how far they are
_WIDE = 1.2  # [rad or m] set-points lie within this of the middle
_NARROW = 0.15  # spread of the estimates that later rounds send


@dataclass(frozen=True)
class Seen:
    """A swing as the fit uses it: its equations, the inertia sent, the logarithms of its squared frequencies."""

    about: Local
    sent: Array
    logs: Array
    std: Array


def inertia_stage(
    bench: Bench,
    model: SwingModel,
    options: StageOptions | None = None,
    *,
    weight: Array | None = None,
    kp: float = 100.0,
    set_points: Sequence[Array] | None = None,
) -> StageResult:
    """Find the inertias of a machine from its swings under proportional control.

    Args:
        bench: The machine.
        model: The model, with the inertia groups to find.
        options: How.
        weight: (n_columns,) parameters of the weight, from the gravity stage; default the description's.
        kp: Proportional gain [1/s²].
        set_points: Where to swing, (n_moving,) each [rad or m]; default poses that tell the parameters best.

    Raises:
        ExperimentError: When it does not swing.
    """
    if not (np.isfinite(kp) and kp > 0.0):
        raise InputError(f"kp is {kp}; expected a positive gain [1/s²]")
    how = options or StageOptions()
    known = model.chi if weight is None else weight
    poses = choose_set_points(model, bench.bounds, known) if set_points is None else list(set_points)
    search = _Search(bench, model, how, known, kp, [local(model, np.asarray(pose, dtype=float)) for pose in poses])
    values, gap, solved = nominals(model.inertia), np.inf, None
    for number in range(how.rounds):
        search.round(values, number)
        solved = search.solve(values)
        values = solved.values
        gap = search.prove(values, number)
        if gap < MERGED:
            break
    assert solved is not None
    return search.result(solved, gap)


def choose_set_points(model: SwingModel, bounds: Bounds, weight: Array, count: int | None = None) -> list[Array]:
    """Set-points at which the squared frequencies tell the inertias best, the middle of the range first."""
    n, p = len(model.robot.moving), len(model.inertia)
    lower, upper = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    middle = np.clip(np.zeros(n), lower, upper)
    rng = np.random.default_rng(1)
    margin = 0.1 * (upper - lower)
    near, far = np.maximum(lower + margin, middle - _WIDE), np.minimum(upper - margin, middle + _WIDE)
    others = rng.uniform(near, far, (_CANDIDATES, n))
    poses = [middle, *others]
    values = nominals(model.inertia)
    sent = spread(model, weight, [local(model, middle)], values, 0.4)
    slopes = [_slopes(model, weight, local(model, pose), sent, values) for pose in poses]
    wanted = (max(2, -(-p // n) + 1) if n > 1 else 1) if count is None else count
    chosen = [0]
    while len(chosen) < wanted:
        scores = []
        for j in range(len(poses)):
            J = np.concatenate([slopes[i] for i in (*chosen, j)])
            scores.append(-np.inf if j in chosen else _told(J))
        chosen.append(int(np.argmax(scores)))
    return [np.asarray(poses[j]) for j in chosen]


def _slopes(model: SwingModel, weight: Array, about: Local, sent: Array, values: Array) -> Array:
    """(n, n_groups) how the logarithms of the squares change with relative changes of the machine's inertias."""
    sizes = np.where(np.abs(values) > 0.0, np.abs(values), np.abs(values).max() * 0.1)
    columns = []
    for k in range(len(values)):
        step = np.zeros(len(values))
        step[k] = 1e-4 * sizes[k]
        up, down = (_logs(model, weight, about, values + sign * step, sent, 1.0) for sign in (1.0, -1.0))
        columns.append((up - down) / 2e-4)
    return np.nan_to_num(np.stack(columns, axis=1))


def _logs(
    model: SwingModel, weight: Array, about: Local, values: Array, sent: Array, kp: float, sample_time: float = 0.0
) -> Array:
    """Logarithms of the squared frequencies, rising; not numbers where the inertia is impossible.

    The law predicts the state at the next sample with the acceleration u; where the machine's differs, what is missing
    acts as a little inertia and stiffness, in proportion to the squared sample time.
    """
    mass, other = about.mass @ model.motion(values, weight), about.mass @ model.motion(sent, weight)
    if np.linalg.eigvalsh(mass).min() <= 0.0 or np.linalg.eigvalsh(other).min() <= 0.0:
        return np.full(len(mass), np.nan)
    late = AHEAD * sample_time**2 * (kp * other - about.stiffness @ weight)
    return np.log(np.abs(natural_modes(mass - late, kp * (other - late))[0]))


def spread(model: SwingModel, weight: Array, about: Sequence[Local], values: Array, width: float) -> Array:
    """Over-estimates of inertias, each at most `width` more, that keep modes apart and tell the parameters best.

    The same factor for all would do neither: at the right proportions every mode has the same frequency.
    """
    rng = np.random.default_rng(2)
    best, highest = (1.0 + width) * values, -np.inf
    for _ in range(_TRIALS):
        sent = values * (1.0 + width * rng.uniform(0.05, 1.0, len(values)))
        logs = [_logs(model, weight, one, values, sent, 1.0) for one in about]
        if not all(np.isfinite(one).all() for one in logs):
            continue
        J = np.concatenate([_slopes(model, weight, one, sent, values) for one in about])
        gap = min(float(np.diff(one).min(initial=_APART)) for one in logs)
        score = _told(J) + 4.0 * np.log(min(gap, _APART) + 1e-9)
        if score > highest:
            best, highest = sent, score
    return np.asarray(best)


def _told(J: Array) -> float:
    """How much slopes tell about all parameters together."""
    return float(np.log(np.linalg.svd(J, compute_uv=False) ** 2 + 1e-9).sum())


class _Search:
    def __init__(
        self, bench: Bench, model: SwingModel, how: StageOptions, weight: Array, kp: float, about: list[Local]
    ) -> None:
        self.bench, self.model, self.how, self.weight, self.kp, self.about = bench, model, how, weight, kp, about
        self.amplitude = amplitude_for(0.0, SMALLER if how.amplitude is None else how.amplitude)
        self.seen: list[Seen] = []
        self.steps: list[Step] = []
        self.nearest = np.inf

    def round(self, values: Array, number: int) -> None:
        """A swing at every set-point, with inertias that keep the modes apart."""
        width = self.how.factor - 1.0 if number == 0 else _NARROW
        sent = spread(self.model, self.weight, self.about, values, width)
        for place, about in enumerate(self.about):
            self.bench.progress("inertia stage", number * len(self.about) + place, self.how.rounds * len(self.about))
            label = f"inertia-{number + 1}-{place + 1}"
            one = self._swing(about, sent, values, label)
            if one.state == "unclear":
                one = self._swing(about, sent, values, f"{label}-longer", longer=4.0)
            if one.modes is None or one.state != "swings":
                raise refuse("inertia", one, _ADVICE[one.state])
            std = np.hypot(one.modes.square_std / one.modes.square, systematic(one, self.amplitude))
            self.seen.append(Seen(about, sent, np.log(one.modes.square), std))
            quantum = quantum_of(one.run.q)
            if self.how.amplitude is None and quantum:
                self.amplitude = max(self.amplitude, amplitude_for(quantum))

    def _swing(
        self, about: Local, sent: Array, values: Array, label: str, *, longer: float = 1.0, count: int | None = None
    ) -> Swing:
        mass = about.mass @ self.model.motion(values, self.weight)
        motion = self.model.motion(sent, self.weight)
        stiffness = self.kp * (about.mass @ motion)
        squares = natural_modes(mass, stiffness)[0]
        start = mixed_start(mass, stiffness, self.amplitude)
        gap = float(np.diff(np.sqrt(np.abs(squares))).min(initial=np.inf))
        periods = self.how.periods * (2.0 if count is None and gap < np.inf else 1.0)
        length = duration_for(float(squares.min()), periods, self.bench.plant.sample_time)
        if count is None and gap < np.inf:  # two modes part by a turn in this time
            length = max(length, min(20.0, 2.0 * np.pi / max(gap, 1e-6)))
        law = Law(self.model, self.weight, motion, self.kp, about.pose)
        fastest = 3.0 * float(np.sqrt(np.abs(squares).max()))
        one = swing(
            *(self.bench, law, start, longer * length),
            label=label,
            fastest=fastest,
            reach=self.how.reach,
            count=count,
        )
        self.steps.append(step_of(one, sent))
        return one

    def solve(self, start: Array) -> Solved:
        """The inertias that fit every squared frequency."""
        sizes = np.abs(nominals(self.model.inertia))
        scale = np.where(sizes > 0.0, sizes, sizes.max() * 0.1)

        h = self.bench.plant.sample_time

        def residual(values: Array) -> Array:
            rows = [
                (one.logs - _logs(self.model, self.weight, one.about, values, one.sent, self.kp, h)) / one.std
                for one in self.seen
            ]
            return np.concatenate(rows)

        # Squares hardly feel the sign of small products of inertia: from one start alone the fit may end in a hollow.
        rng = np.random.default_rng(3)
        starts = [start, *(start + _HOLLOWS * scale * rng.uniform(-1.0, 1.0, (_STARTS, len(start))))]
        found = [gauss_newton(residual, one, scale) for one in starts if np.isfinite(residual(one)).all()]
        told = len(self.seen) * len(self.about[0].pose) > len(start)
        best = min(found, key=lambda one: one.misfit) if told else found[0]
        if np.isfinite(best.std).all():
            return best
        return gauss_newton(residual, np.where(np.isfinite(best.std), best.values, start), scale)

    def prove(self, values: Array, number: int) -> float:
        """How far the one frequency is from kp when the estimates are sent: |w²/kp - 1|."""
        one = self._swing(self.about[0], values, values, f"inertia-{number + 1}-proof", longer=1.5, count=1)
        if one.modes is None:
            raise refuse("inertia", one, _ADVICE[one.state])
        return abs(float(one.modes.square[0]) / self.kp - 1.0)

    def result(self, solved: Solved, gap: float) -> StageResult:
        warnings = []
        names = [one.name for one, s in zip(self.model.inertia, solved.std, strict=True) if not np.isfinite(s)]
        if names:
            warnings.append(
                f"inertia stage: these set-points do not tell {', '.join(names)}; they keep the description's values"
            )
        if not gap < MERGED:
            warnings.append(
                f"inertia stage: with the estimates w²/kp is off by {gap:.2g} (expected below {MERGED:g}); allow more "
                "--rounds, or look for friction and flexible joints"
            )
        notes = (
            f"{len(self.seen)} swings at {len(self.about)} set-points fitted, misfit {solved.misfit:.2g} of their "
            "deviations",
            f"with the estimates |w²/kp - 1| is {gap:.1e}",
        )
        poses = np.array([one.pose for one in self.about])
        return StageResult(
            *("inertia", "extrapolate", self.model.inertia, solved.values, solved.std, tuple(self.steps)),
            notes=notes,
            warnings=tuple(warnings),
            poses=poses,
        )


_ADVICE = {
    "held": "friction holds it; raise --kp or --amplitude",
    "falls": "lower --kp, raise --rate, or run the gravity stage first",
    "saturated": "lower --kp or --amplitude",
    "limit": "give other set-points (--set-point), or lower --amplitude",
    "unclear": "raise --rate or --amplitude, or give other set-points (--set-point)",
}
