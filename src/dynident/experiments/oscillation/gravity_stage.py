r"""The gravity stage by extrapolation: swings with over-estimates tell where the swing would vanish.

About a pose the machine obeys ``M x'' + (K - K~) x = 0``, with K the slope of its weight and K~ that of the model. The
product of the squared frequencies is det(K - K~) / det M. It is linear in each weight of an upright chain, whatever the
inertia, and zero where that weight is right: so a few swings with different weights are extrapolated to zero, and
nothing has to creep towards the fall. For other robots the same determinant is fitted, and the position that the arm
swings about adds ``g(q) = g~(q)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.experiments.bench import Bench
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.model import (
    PoseEquations,
    SwingModel,
    equations_about,
    gauss_newton,
    nominals,
)
from dynident.experiments.oscillation.swings import (
    AHEAD,
    NaturalControl,
    StageResult,
    Swing,
    amplitude_for,
    duration_for,
    estimate_groups,
    mixed_start,
    natural_modes,
    quantum_of,
    refuse,
    swing as run_swing,
    upright_pose,
)
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.thresholds import OSCILLATION
from dynident.information.parameter_estimate import ParameterEstimate

_TRIES = 5  # times the over-estimate is raised before it is called a fall
_LOWERED = (0.5, 0.8)  # share of the over-estimate that a single weight keeps in its own run
_NEARER = 1.3  # over-estimate of later rounds

_ALSO = "; --stage inertia finds weights as well"
ADVICE = {
    "held": "natural oscillation needs friction far below the error of the weight; use dynident gravity instead",
    "saturated": "lower --factor, or lock joints",
    "limit": f"swing about another pose (--pose), or lock that joint{_ALSO}",
    "falls": f"under-estimates fall: raise --factor, or check the masses and joint zeros of the description{_ALSO}",
    "unclear": f"try a larger --amplitude, a higher --rate, or lock joints that hardly carry weight{_ALSO}",
}


def run_gravity_stage(
    bench: Bench, model: SwingModel, options: OscillationOptions | None = None, *, pose: Array | None = None
) -> StageResult:
    """Find the weights of a machine from its swings.

    Args:
        bench: The machine.
        model: The model, with the gravity groups to find.
        options: How.
        pose: (n_moving,) where to look for the upright pose; default everywhere.

    Raises:
        ExperimentError: When it falls at once, does not swing, has no upright pose or needs too much torque.
    """
    how = options or OscillationOptions()
    search = GravitySearch(bench, model, how, upright_pose(model, bench.bounds, pose))
    found, values = None, search.begin()
    for number in range(how.rounds):
        before = values
        wanted = (how.factor, how.factor**2) if number == 0 else (_NEARER, how.factor)
        if not any(search.round(values, factor, number) for factor in wanted):
            search.warnings.append(f"gravity stage: round {number + 1} gave no swing; the rounds before had to do")
            break
        found = search.solve(values)
        values, known = found[0].values, found[0].determined
        search.offset = np.zeros(len(search.pose))
        scale = np.abs(values[known]).max(initial=1e-12)
        if number and np.abs(values - before)[known].max(initial=0.0) < how.tolerance * scale:
            break
    if found is None:
        assert search.last is not None
        raise refuse("gravity", search.last, ADVICE[search.last.state])
    return search.result(*found)


class GravitySearch:
    """The runs of a gravity stage and what they have determined so far."""

    def __init__(self, bench: Bench, model: SwingModel, how: OscillationOptions, pose: Array) -> None:
        self.bench, self.model, self.how, self.pose = bench, model, how, pose
        self.nominal = nominals(model.gravity)
        self.offset = np.zeros(len(pose))  # of where it swings from where the values say
        self.amplitude = amplitude_for(0.0, how.amplitude)
        self.seen: list[Swing] = []  # those of the fit
        self.steps: list[Swing] = []
        self.warnings: list[str] = []
        self.last: Swing | None = None

    def begin(self) -> Array:
        """Values to begin with: the description's, raised until the machine swings."""
        values = self.nominal
        for attempt in range(_TRIES):
            one = self.swing(values * self.how.factor, values, f"gravity-begin-{attempt + 1}")
            if one.state in ("held", "saturated", "limit"):
                break
            if one.state != "falls":
                if one.modes is not None:
                    self._recenter(one)
                return values
            values = values * self.how.factor
        raise refuse("gravity", one, ADVICE[one.state])

    def round(self, values: Array, factor: float, number: int) -> bool:
        """One swing with every weight raised, and one for each weight raised less; False if the first one falls."""
        about = equations_about(self.model, self.pose)
        swinging = [k for k in range(len(values)) if values[k] and self.has_effect(about, k)]
        label = f"gravity-{number + 1}"
        if not self._measure(factor * values, values, f"{label}-1"):
            return False
        for place, k in enumerate(swinging):
            self.bench.progress("gravity stage", number * len(swinging) + place, self.how.rounds * len(swinging))
            for share in _LOWERED:  # less, where that weight alone brings it down
                less = factor * values
                less[k] = (1.0 + share * (factor - 1.0)) * values[k]
                if self._measure(less, values, f"{label}-{self.model.gravity[k].name}-{share:g}", lowered=True):
                    break
        return True

    def has_effect(self, about: PoseEquations, k: int) -> bool:
        """Whether a weight changes the swing about a pose."""
        slope = about.stiffness @ self.model.gravity[k].direction
        return bool(np.abs(slope).max() * abs(self.nominal[k]) > 1e-6 * np.abs(about.stiffness @ self.model.chi).max())

    def _measure(self, sent: Array, values: Array, label: str, *, lowered: bool = False) -> bool:
        """A swing for the fit; False when it falls, or tells nothing.

        One with a weight lowered that does not move is nearly balanced, as the swing before it shows that nothing holds
        it; where it would balance beyond a limit, it has to be lowered less.
        """
        one = self.swing(sent, values, label)
        if one.state == "unclear":  # a longer look distinguishes close modes
            one = self.swing(sent, values, f"{label}-longer", 2.5)
        self.last = one
        if one.state in ("falls", "unclear") or (lowered and one.state in ("held", "limit")):
            return False
        if one.modes is None:
            raise refuse("gravity", one, ADVICE[one.state])
        self.seen.append(one)
        self._recenter(one)
        return True

    def _recenter(self, one: Swing) -> None:
        """Swing about where the machine really does, and by as much as its encoders need."""
        miss = one.fitted.mean - one.control.target
        if np.abs(miss).max() < 0.5 * self.how.reach:
            self.offset = self.offset + miss
        self.amplitude = amplitude_for(quantum_of(one.run.q), self.how.amplitude)

    def balance(self, sent: Array, values: Array) -> Array:
        """The pose at which the weight that is sent equals that of `values`, (n_moving,), by Newton's method."""
        error = self.model.weight(values) - self.model.weight(sent)
        pose = self.pose
        for _ in range(4):
            about = equations_about(self.model, pose)
            step = np.linalg.lstsq(about.stiffness @ error, about.weight @ error, rcond=1e-9)[0]
            pose = pose - np.clip(step, -0.2, 0.2)
        return np.asarray(pose) if np.abs(pose - self.pose).max() < OSCILLATION.far_distance else self.pose

    def swing(self, sent: Array, values: Array, label: str, longer: float = 1.0) -> Swing:
        """A swing with every mode in it, long enough for the slowest one if `values` are about right."""
        target = self.balance(sent, values) + self.offset
        about = equations_about(self.model, target)
        mass = about.mass @ self.model.chi
        stiffness = about.stiffness @ (self.model.weight(values) - self.model.weight(sent))
        squares = natural_modes(mass, stiffness)[0]
        slowest = float(squares[squares > 0.0].min(initial=np.inf))
        square = slowest if np.isfinite(slowest) else 1.0
        length = longer * duration_for(square, self.how.periods, self.bench.plant.sample_time)
        control = NaturalControl(self.model, self.model.weight(sent), self.model.chi, 0.0, target)
        start = mixed_start(mass, stiffness, self.amplitude)
        fastest = 3.0 * float(np.sqrt(np.abs(squares).max()))
        return self.run(control, start, length, label=label, sent=sent, fastest=fastest, reach=self.how.reach)

    def run(self, control: NaturalControl, start: Array, length: float, **how: Any) -> Swing:
        """A swing, noted for the report."""
        self.steps.append(run_swing(self.bench, control, start, length, amplitude=self.amplitude, **how))
        return self.steps[-1]

    def solve(self, start: Array) -> tuple[ParameterEstimate, float]:
        """Weights that, with one number for the inertia, fit every product and every mean position; and the misfit."""
        sizes = np.abs(self.nominal)
        scale = np.append(np.where(sizes > 0.0, sizes, sizes.max() * 0.1), 1.0)
        lowest = np.min([one.sent / np.where(start == 0.0, 1.0, start) for one in self.seen], axis=0)
        for share in (0.9, 0.7, 0.5, 0.3):  # of the lowest weights that swung, until all swings are possible
            begin = np.where(start == 0.0, 0.0, start * np.minimum(1.0, share * lowest))
            guess = self.seen[0].fitted.log_product - self._expected(begin, self.seen[0])
            if np.isfinite(self._residual(np.append(begin, guess))).all():
                values, covariance, known, misfit = gauss_newton(self._residual, np.append(begin, guess), scale)
                return estimate_groups(self.model.gravity, values[:-1], covariance[:-1, :-1], known[:-1]), misfit
        raise ExperimentError(
            f"gravity stage: no weights explain its {len(self.seen)} swings together; friction or too large a swing "
            "spoils them: lower --amplitude, or use dynident gravity instead"
        )

    def _expected(self, values: Array, one: Swing) -> float:
        """Logarithm of det(K - K~) over the model's det M; not a number where it would fall."""
        slope = one.about.stiffness @ (self.model.weight(values) - self.model.weight(one.sent))
        if np.linalg.eigvalsh(0.5 * (slope + slope.T)).min() <= 0.0:
            return float("nan")
        # The law sees the position at the next sample without the acceleration until then, which acts as inertia.
        late = AHEAD * self.bench.plant.sample_time**2 * (one.about.stiffness @ self.model.weight(one.sent))
        mass = one.about.mass @ self.model.chi + late
        return float(np.linalg.slogdet(slope)[1] - np.linalg.slogdet(mass)[1])

    def _residual(self, unknown: Array) -> Array:
        values, shift = unknown[:-1], unknown[-1]
        rest = []
        for one in self.seen:
            rest.append([(one.fitted.log_product - self._expected(values, one) - shift) / one.log_std])
            error = self.model.weight(values) - self.model.weight(one.sent)
            slope = np.abs(one.about.stiffness @ error).max(axis=1)
            rest.append((one.about.weight @ error) / (slope * one.mean_std.max() + 1e-12))
        return np.concatenate(rest)

    def result(self, estimate: ParameterEstimate, misfit: float) -> StageResult:
        """The weights as a result."""
        names, warnings = estimate.undetermined, list(self.warnings)
        if names:
            warnings.append(
                f"gravity stage: swings about this pose do not determine {', '.join(names)}; they keep what the "
                "description has"
            )
        notes = (f"{len(self.seen)} swings fitted, misfit {misfit:.2g} of their standard deviations",)
        return StageResult(
            *("gravity", "extrapolate", self.model.gravity, estimate, tuple(self.steps)),
            notes=notes,
            warnings=tuple(warnings),
            poses=self.pose[None],
        )
