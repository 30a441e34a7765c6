"""Gear ripple: waves per turn of a joint in the torque that a model leaves unexplained.

A gear repeats with its position and not with time. So the residual is transformed over position: a wave of f per radian
adds up in sum r exp(-i f q), whatever the speed. It is believed where it stands far out of its neighbourhood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.friction_terms import METRES_PER_RADIAN, Ripple
from dynident.dynamics.terms import along_terms
from dynident.estimate.prediction import TorqueModel
from dynident.signals.observe import Observations

SLOWEST, FASTEST = 5.0, 200.0  # waves per turn that are looked for; slower ones are harmonics of the joint itself
STANDS_OUT = 20.0  # times the median power of its neighbourhood
LEAST_SHARE = 0.1  # of the residual, in amplitude over effective value
_SEEN = 0.3  # share of the samples in motion at which a wave must pass slowly enough to be seen
_NEIGHBOURS = 40  # frequencies on each side
_PER_RESOLUTION = 3.0  # frequencies tried for each that the range of motion can tell apart
_MOST_SAMPLES = 8_000  # of each log: minutes tell what hours would
_BLOCK = 256  # samples at a time: tables of waves times samples stay in the cache


@dataclass(frozen=True)
class RippleFound:
    """A wave in the residual of an element.

    Attributes:
        label: The element.
        waves: Per turn, as `ripple(..)` takes them.
        amplitude: [N·m or N].
        ratio: Power over the median of its neighbourhood.
    """

    label: str
    waves: float
    amplitude: float
    ratio: float


@on_one_thread
def find_ripple(model: TorqueModel, observations: Sequence[Observations]) -> tuple[RippleFound, ...]:
    """The clearest wave of each element, where one stands out.

    Args:
        model: The robot with values, such as those of a fit.
        observations: Logs with torque.
    """
    law, robot = Ripple(SLOWEST), model.robot
    elements, directions = law.elements(robot), law.directions(robot)
    units = np.array([METRES_PER_RADIAN if element.prismatic else 1.0 for element in elements])
    tables = [_Table.of(observations, direction / unit) for direction, unit in zip(directions, units, strict=True)]
    rows = [int(np.argmax(np.abs(element.torque[list(robot.moving)]))) for element in elements]
    for one in observations:
        course, seen = model.start(), 0
        for motion in one.for_terms(along_terms(model.terms)).motion():
            residual = motion.tau[0] - course.torque(motion)
            for table, row, direction, unit in zip(tables, rows, directions, units, strict=True):
                speed = np.abs(motion.dq @ direction)
                used = (speed > one.options.rest_speed) & motion.inner
                table.add(motion.q[used] @ direction / unit, speed[used] / unit, residual[used, row], one.band)
            seen += len(motion)
            if seen > _MOST_SAMPLES:
                break
    found = [table.clearest(element.label) for table, element in zip(tables, elements, strict=True)]
    return tuple(one for one in found if one is not None)


class _Table:
    """Sums over the samples for one element, at all frequencies."""

    def __init__(self, waves: Array) -> None:
        self.waves = waves
        self.sums = np.zeros(len(waves), dtype=complex)
        self.counts, self.squares = np.zeros(len(waves)), np.zeros(len(waves))
        self.n = 0

    @staticmethod
    def of(observations: Sequence[Observations], direction: Array) -> _Table:
        """Frequencies as close as the widest motion can tell them apart."""
        widest = max(float(np.abs(direction) @ (one.survey.highest - one.survey.lowest)) for one in observations)
        if widest < 2.0 * np.pi / SLOWEST:
            return _Table(np.zeros(0))
        return _Table(np.arange(SLOWEST, FASTEST, 2.0 * np.pi / widest / _PER_RESOLUTION))

    def add(self, position: Array, speed: Array, residual: Array, band: float) -> None:
        """More samples; a wave counts where it passes slowly enough for the filters."""
        self.n += len(position)
        for first in range(0, len(position), _BLOCK):
            own = slice(first, first + _BLOCK)
            seen = np.outer(self.waves, speed[own]) < 2.0 * np.pi * band
            turned = np.exp(-1j * np.outer(self.waves, position[own]))
            turned *= seen
            self.sums += turned @ residual[own]
            self.counts += seen.sum(1)
            self.squares += seen @ residual[own] ** 2

    def clearest(self, label: str) -> RippleFound | None:
        """The wave that stands out most, or None."""
        known = self.counts > max(_SEEN * self.n, 10.0 * _NEIGHBOURS)
        if np.count_nonzero(known) < 2 * _NEIGHBOURS:
            return None
        waves, counts, squares = self.waves[known], self.counts[known], self.squares[known]
        sums = np.abs(self.sums[known])
        power = sums**2 / np.maximum(squares, 1e-300)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(power, _NEIGHBOURS, "reflect"), 2 * _NEIGHBOURS + 1)
        ratio = power / np.maximum(np.median(windows, axis=1), 1e-300)
        best = int(np.argmax(ratio))
        amplitude = 2.0 * float(sums[best] / counts[best])
        effective = float(np.sqrt(squares[best] / counts[best]))
        if best in (0, len(waves) - 1) or ratio[best] < STANDS_OUT or amplitude < LEAST_SHARE * effective:
            return None
        return RippleFound(label, float(waves[best]), amplitude, float(ratio[best]))
