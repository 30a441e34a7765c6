"""Rows of the linear model from observations, by parallel filtering (Gautier et al. 1995, section 4.3).

Every column of the regressor and the torque pass one more low-pass at the band and are decimated. Joints at rest, held
by friction that no column describes, and the ends of stretches, where filters continue signals by guess, give no rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms.term import AlongTerm
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor, RegressorBlock
from dynident.identifiability.regrouping import Regrouping
from dynident.signals.fir import FilterStream
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observations import MotionBlock, Observations

ROWS_PER_BAND = 4.0  # rows per second, in units of the band
SEGMENT_SECONDS = 4.0  # residuals of filtered data are correlated; over this time hardly
LEAST_SEGMENTS = 8  # of a log: a short one can still leave a part of itself out
MOST_SEGMENTS = 32  # of a log: what is kept of a long log stays small
_FAINT = 1e-6  # share of what a column usually has
_BLOCK = 2048  # samples of motion made into columns at a time


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """The rows of several observations, which can be gone through again.

    Attributes:
        observations: The logs.
        base: Base parameters whose columns are wanted.
        reference: (10 n_links,) standard parameters of the links that some terms are linear around; None without such.
        seconds: Length of the part of each log that is used [s].
        bands: Band of the rows of each log by its label [Hz]; None for that of its motion.
    """

    observations: tuple[Observations, ...]
    base: BaseParameters
    reference: Array | None = None
    seconds: float = math.inf
    bands: Mapping[str, float] | None = None

    @functools.cached_property
    def regressor(self) -> BaseRegressor:
        """What makes the columns."""
        return BaseRegressor.of(self.base.robot, self.base.terms)

    @property
    def coordinates(self) -> Regrouping:
        """The base parameters."""
        return self.regressor.coordinates

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means; columns around different linearization points do not mix."""
        if self.reference is None:
            return self.regressor.definitions
        own, lines = LinearizationPoint(self.base.robot, self.reference).fingerprint, iter(self.regressor.definitions)
        return tuple(
            f"{next(lines)}, around {own}"
            if isinstance(term, AlongTerm) and term.needs_linearization_point
            else next(lines)
            for term in self.base.terms
            for _ in term.columns(self.base.robot)
        )

    @property
    def channels(self) -> tuple[str, ...]:
        """The joints."""
        return self.base.robot.joint_names

    def of_logs(self, labels: Container[str]) -> ObservedRows:
        """The rows of some logs alone."""
        return replace(self, observations=tuple(one for one in self.observations if one.log.label in labels))

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, cut at the borders of segments."""
        for one in self.observations:
            band = None if self.bands is None else self.bands[one.log.label]
            count = int(np.clip(round(one.survey.duration / SEGMENT_SECONDS), LEAST_SEGMENTS, MOST_SEGMENTS))
            for block in row_blocks(one, self.regressor, reference=self.reference, band=band):
                if block.time[0] > one.survey.start + self.seconds:
                    break
                share = (block.time - one.survey.start) / max(one.survey.duration, 1e-12)
                yield from block.segments(np.clip((share * count).astype(int), 0, count - 1))


def row_blocks(
    one: Observations,
    regressor: BaseRegressor,
    delays: Sequence[float] | None = None,
    reference: Array | None = None,
    band: float | None = None,
) -> Iterator[RegressorBlock]:
    """All rows of a log in order, in bounded memory; the torque of each delay is a right-hand side.

    Args:
        one: The log.
        regressor: The robot's columns.
        delays: Delays of the torque to undo [s]; default that of the options.
        reference: (10 n_links,) standard parameters of the links that some terms are linear around.
        band: Band of the rows, at most that of the log's motion [Hz]; default that.

    Raises:
        InputError: When no stretch of the log is long enough for its filters.
    """
    slowest = np.full((1, len(regressor.robot.joint_names)), one.options.rest_speed)
    for block, _ in row_blocks_above(one, regressor, slowest, delays, reference, band):
        yield block


def row_blocks_above(
    one: Observations,
    regressor: BaseRegressor,
    slowest: Array,
    delays: Sequence[float] | None = None,
    reference: Array | None = None,
    band: float | None = None,
) -> Iterator[tuple[RegressorBlock, Mask]]:
    """The same with several velocities below which joints count as at rest, (m, n_joints).

    Returns:
        Blocks that are usable above the first of them, and for each of them which rows are, (m, n_rows, n_joints).
    """
    stream: FilterStream | None = None
    one = one.for_terms(regressor.along)
    n = slowest.size
    course = regressor.course(reference)
    any_inner = False
    band = one.band if band is None else min(band, one.band)
    for motion in one.motion(delays):
        step, n_right = row_step(one, band), len(motion.tau)
        lines = regressor.lines(n_right)
        for part in _parts(motion):
            if stream is None:
                kernel = low_pass_kernel(band, motion.rate)
                stream = FilterStream([(lines[-1].stop + n, [kernel])], motion.rate, step)
            stacked = _stack_signals(part, regressor, course, slowest)
            (results,), inner, first = stream.push(stacked, part.last, part.inner)
            if part.last:
                stream = None
            if len(inner):
                any_inner = any_inner or bool(inner.any())
                time = part.start + (first + np.arange(len(inner))) * step / motion.rate
                columns_first = tuple(results[0][own] for own in lines)
                moving = (results[0][lines[-1].stop :] > 0.5).reshape(*slowest.shape, -1).transpose(0, 2, 1)
                usable = moving & inner[:, None]
                yield RegressorBlock(one.log.label, 0, time, regressor.columns, columns_first, usable[0]), usable
    if not any_inner:
        raise too_short(one)


def row_step(one: Observations, band: float | None = None) -> int:
    """Samples of the motion for each row; `band` [Hz] is that of the rows, default that of the motion."""
    return max(1, int(one.survey.grid.rate / one.step / (ROWS_PER_BAND * (band or one.band)) + 1e-9))


def filter_time(one: Observations) -> float:
    """Time without a gap that the filters of a row take [s]."""
    return 2.0 * (one.reach + low_pass_kernel(one.band, one.survey.grid.rate).center / one.survey.grid.rate)


def too_short(one: Observations) -> InputError:
    """The error for a log without a stretch that is long enough."""
    return InputError(
        f"{one.log.label}: no stretch is long enough for a band of {one.band:.3g} Hz, whose filters take "
        f"{filter_time(one):.3g} s without a gap; use a longer log or a higher band"
    )


def _parts(motion: MotionBlock) -> Iterator[MotionBlock]:
    """A block of motion in smaller ones: regressor columns take far more memory than the motion."""
    for first in range(0, len(motion), _BLOCK):
        yield motion.part(first, first + _BLOCK)


def _stack_signals(motion: MotionBlock, regressor: BaseRegressor, course: TermCourse, slowest: Array) -> Array:
    """What passes the parallel filter: columns and torques of each output, then whether each joint moves."""
    tau, n_right = motion.tau, len(motion.tau)
    if regressor.fixed_values:
        state = motion.q, motion.dq, motion.ddq
        tau = tau - inverse_dynamics(regressor.robot, *state, regressor.of_state, regressor.fixed_values)
    moving = np.hstack([np.abs(motion.dq) > own for own in slowest])
    columns = regressor.columns_first_along(
        motion,
        course,
        lambda i: f"t = {motion.start + (motion.first + i) / motion.rate:.6g} s",
        n_right,
    )
    # Where joints stand still, a millionth of a column's usual size would be all there is of it, and pass for data.
    columns[np.abs(columns) < _FAINT * regressor.line_scales(n_right)[:, None]] = 0.0
    for output, own in enumerate(regressor.lines(n_right)):
        columns[own.stop - n_right : own.stop] = tau[:, :, output]
    return np.concatenate([columns, moving.T.astype(np.float64)])
