"""One swing: a run under the natural control, and what its modes are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.experiments.bench import Bench, Run
from dynident.experiments.oscillation.groups import SwingModel
from dynident.experiments.oscillation.modes import Modes, fit_modes
from dynident.experiments.oscillation.natural import NaturalControl
from dynident.experiments.oscillation.starts import quantum_of

REACH = np.radians(12.0)  # [rad or m] a swing that goes this far from where it should is a fall
_BAND = 0.03  # share of the start: what moves less about its end is at rest
_TURNS = 3  # changes of side that make a swing
_ROUNDED = 0.1  # of a rounding step over the amplitude: what rounded positions do to a logarithm, by trial
_SAMPLED = 0.2  # of the squared sample time in radians of the fastest mode, by trial
_LEAST = 4e-5  # deviation of a logarithm that no swing betters


@dataclass(frozen=True)
class Law:
    """What is sent to the machine.

    Attributes:
        model: The model.
        weight: (n_columns,) parameters of its gravity.
        motion: (n_columns,) parameters of its inertia.
        kp: Proportional gain [1/s²], a number or a matrix (n_moving, n_moving); 0 for the open loop.
        target: (n_moving,) set-point [rad or m].
    """

    model: SwingModel
    weight: Array
    motion: Array
    kp: float | Array
    target: Array

    def __post_init__(self) -> None:
        for name in ("weight", "motion", "target"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def control(self) -> NaturalControl:
        """The controller."""
        return NaturalControl(self.model.robot, self.model.terms, self.weight, self.motion, self.kp, self.target)


@dataclass(frozen=True)
class Swing:
    """A run and its modes.

    Attributes:
        law: What was sent.
        run: What came back.
        start: (n_moving,) displacement from the target at the start.
        modes: Its natural modes; None of a swing that fell, was held, or is not clear.
        state: "swings", "falls", "limit" where it meets one of the machine, "held" by friction, "saturated", "unclear".
    """

    law: Law
    run: Run
    start: Array
    modes: Modes | None
    state: str

    @property
    def tilt(self) -> float:
        """Largest angle by which the last link may tilt [rad]: that of all joints and all modes together."""
        assert self.modes is not None
        return float(self.modes.size.sum())

    @property
    def why(self) -> str:
        """What became of it, in words."""
        return {
            "swings": "swings",
            "falls": f"falls: {self.run.why}",
            "limit": f"meets a limit of its own: {self.run.why}",
            "held": "comes to rest without swinging: friction or a brake holds it",
            "saturated": f"needs more torque than there is: {self.run.why}",
            "unclear": "swings, but not in as many clear modes as there are joints",
        }[self.state]


def swing(
    bench: Bench,
    law: Law,
    start: Array,
    duration: float,
    *,
    label: str,
    fastest: float,
    slowest: float = 0.0,
    reach: float = REACH,
    count: int | None = None,
) -> Swing:
    """Let the machine swing and look at its modes.

    Args:
        bench: The machine.
        law: What to send.
        start: (n_moving,) displacement from the law's target [rad or m].
        duration: Length of the run [s].
        label: Name of the run.
        fastest: A frequency that no mode exceeds [rad/s].
        slowest: A frequency that every mode exceeds [rad/s].
        reach: Distance from the target at which the run is stopped [rad or m].
        count: Number of modes; default one per joint.
    """
    bounds = bench.bounds.within(law.target, reach)
    run = bench.run(law.control(), duration, law.target + start, label=label, bounds=bounds)
    if run.end == "saturated":
        return Swing(law, run, start, None, "saturated")
    if not run.whole:
        # One that becomes too fast falls: a swing within its reach is slow.
        own = run.end == "bound" and bench.bounds.broken(run.q[-1], run.dq[-1]) is not None
        return Swing(law, run, start, None, "limit" if own else "falls")
    if _held(run, start):
        return Swing(law, run, start, None, "held")
    modes = fit_modes(run.time, run.q, len(start) if count is None else count, fastest, slowest)
    clear = modes is not None and modes.clear
    return Swing(law, run, start, modes, "swings" if clear else "unclear")


def _held(run: Run, start: Array) -> bool:
    """Whether no joint goes to and fro about where it ends up, by more than a small part of its start."""
    last = run.q[3 * len(run.q) // 4 :]
    middle = 0.5 * (last.max(axis=0) + last.min(axis=0))
    return max(turns(run.q[:, j] - middle[j], _BAND * float(np.abs(start).max())) for j in range(len(start))) < _TURNS


def turns(x: Array, band: float) -> int:
    """How often a signal changes sides, counted only beyond a band about zero."""
    sides = np.sign(x[np.abs(x) > band])
    return int(np.count_nonzero(np.diff(sides)))


def systematic(one: Swing, amplitude: float) -> float:
    """What may be wrong with the logarithm of a squared frequency, or of their product, beyond noise.

    A swing of finite size is slower than a small one by its square over 16, each mode by the size of all of them;
    rounded positions come back as torque, and what sampling does is corrected up to a small part.
    """
    assert one.modes is not None
    bend = len(one.modes.poles) * one.tilt**2 / 8.0
    rounded = _ROUNDED * quantum_of(one.run.q) / amplitude
    step = float(one.run.time[1] - one.run.time[0])
    sampled = _SAMPLED * float(one.modes.square.max()) * step**2
    return float(np.linalg.norm([bend, rounded, sampled, _LEAST]))


def mean_spread(one: Swing, amplitude: float) -> Array:
    """(n,) what may be wrong with the mean positions [rad or m].

    Besides noise, a spring that is not straight shifts the mean by the square of the swing, and rounding to steps d of
    a sinusoid of amplitude A by up to d / (2 pi) * sqrt(d / (pi² A)), the mean of the saw tooth that rounding is.
    """
    assert one.modes is not None
    bend = 0.5 * one.tilt**2 * amplitude
    step = quantum_of(one.run.q)
    rounded = step / (2.0 * np.pi) * np.sqrt(step / (np.pi**2 * np.maximum(one.modes.size.max(axis=0), step)))
    return np.asarray(one.modes.mean_std + bend + rounded + 1e-9)
