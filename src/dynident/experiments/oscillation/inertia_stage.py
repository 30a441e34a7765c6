r"""The inertia stage: under proportional control every squared frequency equals kp once the inertia is right.

With the weight compensated the machine obeys ``M x'' + kp M~ x = 0`` about a set-point, so the squared frequencies are
kp times the eigenvalues of M^-1 M~ (eq. 22). A weight that is not right adds its slope, and shifts the position that
the arm swings about. Frequencies, mode shapes and that position are measured at several set-points, with gains that
keep the modes apart; the weights and inertias that explain all of them are found by linear least squares. A last swing
with these inertias proves them, for then the modes merge at kp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.experiments.bench import Bench
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.modal_equations import (
    HOLD_STD,
    SMALLER,
    Evidence,
    choose_set_points,
    evidence_of,
    gains,
    group_equations,
    sizes_of,
    slopes_of,
)
from dynident.experiments.oscillation.model import SwingModel, linear_least_squares, nominals
from dynident.experiments.oscillation.swings import (
    NaturalControl,
    StageResult,
    Swing,
    amplitude_for,
    duration_for,
    estimate_groups,
    mixed_start,
    quantum_of,
    refuse,
    swing,
)
from dynident.experiments.thresholds import OSCILLATION
from dynident.information.parameter_estimate import ParameterEstimate

_WEIGHINGS = 6  # passes over the set-points that correct the weights before inertias are looked for
_PERIODS = 8.0  # of a weighing: the window that averages over it needs four
_STIFFER = 4.0  # times the gain, of a weighing whose weight is so wrong that the arm falls
_FASTEST = 0.2  # [rad] that a weighing may turn in its phase from sample to sample
_RANGE = 3.0  # times the frequencies that the model says, within which the machine's are
_PASSES = 4  # of the fit, each with the covariance of the pass before


def run_inertia_stage(
    bench: Bench,
    model: SwingModel,
    options: OscillationOptions | None = None,
    *,
    weights: StageResult | None = None,
    kp: float = 100.0,
    set_points: Sequence[Array] | None = None,
) -> StageResult:
    """Find the inertias of a machine from its swings under proportional control, and weights that are not known.

    Args:
        bench: The machine.
        model: The model, with the groups to find.
        options: How.
        weights: What the gravity stage found, with its covariance; without it the weights are estimated along, and the
            description's are only where to begin.
        kp: Proportional gain [1/s²].
        set_points: Where to swing, (n_moving,) each [rad or m]; default poses that tell the parameters best.

    Raises:
        ExperimentError: When it does not swing.
    """
    if not (np.isfinite(kp) and kp > 0.0):
        raise InputError(f"kp is {kp}; expected a positive gain [1/s²]")
    how = options or OscillationOptions()
    values = nominals((*model.gravity, *model.inertia))
    if weights is not None:
        values[: len(model.gravity)] = weights.values
    weighed = not model.gravity or (weights is not None and bool(np.isfinite(weights.std).all()))
    if set_points is None:
        set_points = choose_set_points(model, bench.bounds, values, kp=kp, weighed=weighed)
    search = InertiaSearch(bench, model, how, kp, [np.asarray(pose, dtype=float) for pose in set_points], weights)
    if not weighed:
        values = search.weigh(values)
    gap, found = np.inf, None
    for number in range(how.rounds):
        search.round(values, number)
        found = search.solve(values)
        values = found[0].values
        gap = search.prove(values, number)
        if (
            gap < OSCILLATION.merged_share
            and max(one.wrong(values) for one in search.evidence) < OSCILLATION.straight_share
        ):
            break
    assert found is not None
    return search.result(*found, gap)


class InertiaSearch:
    """The runs of an inertia stage and what they have shown so far."""

    def __init__(
        self,
        bench: Bench,
        model: SwingModel,
        how: OscillationOptions,
        kp: float,
        poses: list[Array],
        weights: StageResult | None,
    ) -> None:
        self.bench, self.model, self.how, self.kp, self.poses, self.weights = bench, model, how, kp, poses, weights
        self.parts = [group_equations(model, pose) for pose in poses]
        self.amplitude = amplitude_for(0.0, SMALLER if how.amplitude is None else how.amplitude)
        self.evidence: list[Evidence] = []
        self.steps: list[Swing] = []

    # --- weights ----------------------------------------------------------------------------------------------------

    def weigh(self, values: Array) -> Array:
        """Values whose weights are near enough for small swings: from where the arm swings about, pass by pass."""
        first, kp = len(self.model.gravity), self.kp
        for number in range(_WEIGHINGS):
            columns, right, farthest = [], [], 0.0
            for place, pose in enumerate(self.poses):
                self.bench.progress("weights", number * len(self.poses) + place, _WEIGHINGS * len(self.poses))
                one, kp = self._weighing(pose, values, kp, f"weigh-{number + 1}-{place + 1}")
                mean = _windowed_mean(one.run.q)
                torque = slopes_of(one.control, mean, self.bench.plant.sample_time)[0]
                about = group_equations(self.model, mean)
                spring = kp * about.mass_of(np.append(1.0, values))
                columns.append(np.linalg.solve(spring, about.weight[:, 1 : 1 + first]))
                right.append(np.linalg.solve(spring, torque - about.weight[:, 0]))
                farthest = max(farthest, float(np.abs(mean - pose).max()))
            weights = values[:first]
            weights = linear_least_squares(np.concatenate(columns), np.concatenate(right), weights, sizes_of(weights))[
                0
            ]
            values = np.concatenate([weights, values[first:]])
            if farthest < 0.5 * self.amplitude:
                break
        return values

    def _weighing(self, pose: Array, values: Array, kp: float, label: str) -> tuple[Swing, float]:
        """A swing from rest at a set-point, and its gain: stiffer where the arm would fall."""
        while True:
            length = duration_for(kp, _PERIODS, self.bench.plant.sample_time)
            fastest = _RANGE * float(np.sqrt(kp))
            one = self._run(pose, values, kp, np.zeros(len(pose)), length, label=label, fastest=fastest, count=1)
            stiffer = _STIFFER * kp
            if one.state != "falls" or np.sqrt(stiffer) * self.bench.plant.sample_time > _FASTEST:
                break
            kp = stiffer
        if not one.run.whole:
            raise refuse("inertia", one, _ADVICE[one.state])
        return one, kp

    # --- swings -----------------------------------------------------------------------------------------------------

    def _run(self, pose: Array, values: Array, kp: float | Array, start: Array, length: float, **how: Any) -> Swing:
        """A swing about a pose, noted for the report; from now on swings are as large as its encoders need."""
        first = len(self.model.gravity)
        weight = self.model.weight(values[:first])
        control = NaturalControl(self.model, weight, self.model.motion(values[first:], weight), kp, pose)
        how |= {"sent": np.asarray(values[self._asked]), "amplitude": self.amplitude, "reach": self.how.reach}
        one = swing(self.bench, control, start, length, **how)
        self.steps.append(one)
        quantum = quantum_of(one.run.q) if len(one.run.time) > 1 else 0.0
        if self.how.amplitude is None and quantum:
            self.amplitude = max(self.amplitude, amplitude_for(quantum))
        return one

    def round(self, values: Array, number: int) -> None:
        """A swing at every set-point, with gains that keep the modes apart, in place of those of the round before.

        In a round before the last, whose inertias may be so wrong that modes meet, a swing that is not clear is left
        out unless none is.
        """
        self.evidence = []
        for place in range(len(self.poses)):
            self.bench.progress("inertia stage", number * len(self.poses) + place, self.how.rounds * len(self.poses))
            label = f"inertia-{number + 1}-{place + 1}"
            one = self._swing(place, values, label)
            if one.state == "unclear" and not _usable(one):
                one = self._swing(place, values, f"{label}-longer", longer=4.0)
            if _usable(one):
                self.evidence.append(evidence_of(one, self.bench.plant.sample_time))
            elif one.state != "unclear" or number + 1 == self.how.rounds:
                raise refuse("inertia", one, _ADVICE[one.state])
        if not self.evidence:
            raise refuse("inertia", one, _ADVICE[one.state])

    def _swing(self, place: int, values: Array, label: str, *, longer: float = 1.0, merged: bool = False) -> Swing:
        """A swing at a set-point: in as many modes as joints, or with one gain for all, which merges them."""
        mass = self.parts[place].mass_of(np.append(1.0, values))
        squares, gain = gains(self.kp, mass)
        apart = len(squares) > 1 and not merged
        if apart:
            start = mixed_start(mass, mass @ gain, self.amplitude)
        else:  # any displacement is a mode
            squares, gain = np.full(1, self.kp), np.asarray(self.kp)
            start = np.asarray(self.amplitude * (-1.0) ** np.arange(len(mass)), dtype=np.float64)
        periods = self.how.periods * (2.0 if apart else 1.0)
        length = duration_for(float(squares.min()), periods, self.bench.plant.sample_time)
        if apart:  # two modes part by a turn in this time
            length = max(length, 2.0 * np.pi / float(np.diff(np.sqrt(squares)).min()))
        return self._run(
            *(self.poses[place], values, gain, start, longer * length),
            label=label,
            fastest=_RANGE * float(np.sqrt(squares.max())),
            slowest=float(np.sqrt(squares.min())) / _RANGE if apart else 0.0,
            count=None if apart else 1,
        )

    def prove(self, values: Array, number: int) -> float:
        """How far the one frequency is from kp when the estimates are sent: |w²/kp - 1|."""
        one = self._swing(0, values, f"inertia-{number + 1}-proof", longer=1.5, merged=True)
        if one.modes is None:
            raise refuse("inertia", one, _ADVICE[one.state])
        return abs(float(one.modes.square[0]) / self.kp - 1.0)

    # --- fit --------------------------------------------------------------------------------------------------------

    def solve(self, start: Array) -> tuple[ParameterEstimate, float]:
        """Weights and inertias that, with viscous friction and the hold, fit every mode and every mean; the misfit."""
        n = len(self.poses[0])
        unknown = np.concatenate([start, np.zeros(n + len(HOLD_STD))])
        scale = np.concatenate([sizes_of(start), np.full(n, sizes_of(start).max()), HOLD_STD])
        known, wanted = self._prior(len(unknown))
        for _ in range(_PASSES):
            rows, right = [known], [wanted]
            for one in self.evidence:
                whiten = np.linalg.inv(np.linalg.cholesky(one.spread(unknown)))
                rows.append(whiten @ one.columns)
                right.append(whiten @ one.right)
            unknown, covariance, determined, misfit = linear_least_squares(
                np.concatenate(rows), np.concatenate(right), unknown, scale
            )
        own = slice(len(start))
        both = (*self.model.gravity, *self.model.inertia)
        return estimate_groups(both, unknown[own], covariance[own, own], determined[own]), misfit

    def _prior(self, count: int) -> tuple[Array, Array]:
        """Rows for what is known before: the weights of the gravity stage, and how drives hold their torque."""
        rows = np.zeros((len(HOLD_STD), count))
        rows[:, -len(HOLD_STD) :] = np.diag(1.0 / np.array(HOLD_STD))
        right = np.zeros(len(HOLD_STD))
        if self.weights is None:
            return rows, right
        found = np.flatnonzero(np.isfinite(self.weights.std))
        square, turned = np.linalg.eigh(self.weights.estimate.covariance[np.ix_(found, found)])
        seen = square > 1e-14 * max(float(square.max(initial=0.0)), 1e-300)
        known = np.zeros((int(seen.sum()), count))
        known[:, found] = turned[:, seen].T / np.sqrt(square[seen])[:, None]
        return np.concatenate([rows, known]), np.concatenate([right, known[:, found] @ self.weights.values[found]])

    # --- result -----------------------------------------------------------------------------------------------------

    @property
    def _asked(self) -> list[int]:
        """Places of the groups that this stage answers for: inertias, and weights that no stage before has found."""
        first = len(self.model.gravity)
        new = [k for k in range(first) if self.weights is None or not np.isfinite(self.weights.std[k])]
        return [*range(first, first + len(self.model.inertia)), *new]

    def result(self, estimate: ParameterEstimate, misfit: float, gap: float) -> StageResult:
        """Weights and inertias as a result."""
        both = (*self.model.gravity, *self.model.inertia)
        groups = tuple(both[k] for k in self._asked)
        estimate, warnings = estimate.restrict([one.name for one in groups]), []
        if estimate.undetermined:
            warnings.append(
                f"inertia stage: these set-points do not determine {', '.join(estimate.undetermined)}; they keep the "
                "description's values"
            )
        if not gap < OSCILLATION.merged_share:
            warnings.append(
                f"inertia stage: with the estimates w²/kp is off by {gap:.2g} (expected below "
                f"{OSCILLATION.merged_share:g}); allow more --rounds, or look for friction and flexible joints"
            )
        notes = (
            f"{len(self.evidence)} swings at {len(self.poses)} set-points fitted, misfit {misfit:.2g} of their "
            "standard deviations",
            f"with the estimates |w²/kp - 1| is {gap:.1e}",
        )
        return StageResult(
            *("inertia", "extrapolate", groups, estimate, tuple(self.steps)),
            notes=notes,
            warnings=tuple(warnings),
            poses=np.array(self.poses),
        )


def _usable(one: Swing) -> bool:
    """Whether a swing has all modes; a weak one is as good, for its uncertainty goes into the fit."""
    return one.modes is not None and one.modes.known


def _windowed_mean(x: Array) -> Array:
    """Mean of a record (n_samples, n) in which swings of four periods and more cancel: the Blackman-Harris window."""
    turn = 2.0 * np.pi * np.arange(len(x)) / (len(x) - 1)
    window = 0.35875 - 0.48829 * np.cos(turn) + 0.14128 * np.cos(2.0 * turn) - 0.01168 * np.cos(3.0 * turn)
    return np.asarray(window @ x / window.sum())


_ADVICE = {
    "held": "raise --kp or --amplitude",
    "falls": "raise --kp or --rate, or run the gravity stage first",
    "saturated": "lower --kp or --amplitude",
    "limit": "give other set-points (--set-point), or lower --amplitude",
    "unclear": "raise --rate or --amplitude, or give other set-points (--set-point)",
}
