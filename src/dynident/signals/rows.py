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
from dynident.dynamics.along import AlongTerm, Course, Reference
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.regrouping import Regrouping
from dynident.information.observation_model import ObservationModel, observation_model
from dynident.information.slabs import Slab, SlabBlock
from dynident.signals.fir import FilterStream
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observe import Motion, Observations

ROWS_PER_BAND = 4.0  # rows per second, in units of the band
SEGMENT_SECONDS = 4.0  # residuals of filtered data are correlated; over this time hardly
LEAST_SEGMENTS = 8  # of a log: a short one can still leave a part of itself out
MOST_SEGMENTS = 32  # of a log: what is kept of a long log stays small
_FAINT = 1e-6  # share of what a column usually has
_BLOCK = 2048  # samples of motion made into columns at a time


@dataclass(frozen=True)
class RowBlock:
    """Filtered rows.

    Attributes:
        time: (n_rows,) [s].
        columns: For each channel, (k, n_rows) over the columns that it feels.
        tau: (n_delays, n_channels, n_rows).
        usable: (n_channels, n_rows), the rows that estimation uses: joints in motion, away from the ends.
    """

    time: Array
    columns: tuple[Array, ...]
    tau: Array
    usable: Mask


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
    def model(self) -> ObservationModel:
        """What makes the columns."""
        return observation_model(self.base.robot, self.base.terms, "base")

    @property
    def coordinates(self) -> Regrouping:
        """The base parameters."""
        return self.model.coordinates

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means; columns around different references do not mix."""
        if self.reference is None:
            return self.model.definitions
        own, lines = Reference(self.base.robot, self.reference).fingerprint, iter(self.model.definitions)
        return tuple(
            f"{next(lines)}, around {own}" if isinstance(term, AlongTerm) and term.needs_reference else next(lines)
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

    def blocks(self) -> Iterator[SlabBlock]:
        """Usable rows in slabs, cut at the borders of segments."""
        for one in self.observations:
            band = None if self.bands is None else self.bands[one.log.label]
            count = int(np.clip(round(one.survey.duration / SEGMENT_SECONDS), LEAST_SEGMENTS, MOST_SEGMENTS))
            for block in row_blocks(one, self.model, reference=self.reference, band=band):
                if block.time[0] > one.survey.start + self.seconds:
                    break
                share = (block.time - one.survey.start) / max(one.survey.duration, 1e-12)
                number = np.clip((share * count).astype(int), 0, count - 1)
                for segment in np.unique(number):
                    yield self._slabs(one, block, int(segment), number == segment)

    def _slabs(self, one: Observations, block: RowBlock, segment: int, own: Mask) -> SlabBlock:
        slabs = []
        for channel, columns in enumerate(block.columns):
            used = own & block.usable[channel]
            rows = np.concatenate([columns[:, used], block.tau[:1, channel, used]])
            slabs.append(Slab(self.model.layout.columns[channel], rows))
        return SlabBlock(one.log.label, segment, tuple(slabs))


def row_blocks(
    one: Observations,
    model: ObservationModel,
    delays: Sequence[float] | None = None,
    reference: Array | None = None,
    rest_speed: Array | None = None,
    band: float | None = None,
) -> Iterator[RowBlock]:
    """All rows of a log in order, in bounded memory.

    Args:
        one: The log.
        model: The robot's columns.
        delays: Delays of the torque to undo [s]; default that of the options.
        reference: (10 n_links,) standard parameters of the links that some terms are linear around.
        rest_speed: (n_joints,) speeds below which joints are at rest; default that of the options.
        band: Band of the rows, at most that of the log's motion [Hz]; default that.

    Raises:
        InputError: When no stretch of the log is long enough for its filters.
    """
    stream: FilterStream | None = None
    one = one.for_terms(model.along)
    n, widths = len(model.robot.joint_names), [len(own) for own in model.layout.columns]
    slowest = np.full(n, one.options.rest_speed) if rest_speed is None else rest_speed
    course = model.course(reference)
    any_inner = False
    band = one.band if band is None else min(band, one.band)
    for motion in one.motion(delays):
        step = row_step(one, band)
        for part in _parts(motion):
            if stream is None:
                total = sum(widths) + n * (len(motion.tau) + 1)
                stream = FilterStream([(total, [low_pass_kernel(band, motion.rate)])], motion.rate, step)
            stacked = _stacked(part, model, course, slowest)
            (results,), inner, first = stream.push(stacked, part.last, part.inner)
            if part.last:
                stream = None
            if len(inner):
                any_inner = any_inner or bool(inner.any())
                split = np.cumsum([*widths, n * len(motion.tau)])
                *columns, tau, moving = np.split(results[0], split)
                time = part.start + (first + np.arange(len(inner))) * step / motion.rate
                yield RowBlock(time, tuple(columns), tau.reshape(-1, n, len(inner)), (moving > 0.5) & inner)
    if not any_inner:
        raise too_short(one)


def row_step(one: Observations, band: float | None = None) -> int:
    """Samples of the motion for each row; `band` [Hz] is that of the rows, default that of the motion."""
    return max(1, int(one.survey.grid.rate / one.step / (ROWS_PER_BAND * (band or one.band)) + 1e-9))


def filter_time(one: Observations) -> float:
    """Time without a gap that the filters of a row take [s]."""
    return 2.0 * (one.reach + low_pass_kernel(one.band, one.survey.grid.rate).centre / one.survey.grid.rate)


def too_short(one: Observations) -> InputError:
    """The error for a log without a stretch that is long enough."""
    return InputError(
        f"{one.log.label}: no stretch is long enough for a band of {one.band:.3g} Hz, whose filters take "
        f"{filter_time(one):.3g} s without a gap; use a longer log or a higher band"
    )


def _parts(motion: Motion) -> Iterator[Motion]:
    """A block of motion in smaller ones: regressor columns take far more memory than the motion."""
    n = motion.q.shape[1]
    for first in range(0, n, _BLOCK):
        own = slice(first, min(first + _BLOCK, n))
        yield Motion(
            motion.start,
            motion.first + first,
            motion.rate,
            motion.q[:, own],
            motion.dq[:, own],
            motion.ddq[:, own],
            motion.dddq[:, own],
            motion.tau[:, :, own],
            motion.inner[own],
            motion.last and own.stop == n,
        )


def _stacked(motion: Motion, model: ObservationModel, course: Course, rest_speed: Array) -> Array:
    """What passes the parallel filter: felt columns, torques, and whether each joint moves, one above the other."""
    tau = motion.tau
    if model.known:
        known = inverse_dynamics(model.robot, motion.q.T, motion.dq.T, motion.ddq.T, model.of_state, model.known)
        tau = tau - known.T
    moving = np.abs(motion.dq) > rest_speed[:, None]
    columns = model.columns_along(
        motion.samples, course, lambda i: f"t = {motion.start + (motion.first + i) / motion.rate:.6g} s"
    )
    # Where joints stand still, a millionth of a column's usual size would be all there is of it, and pass for data.
    columns[np.abs(columns) < _FAINT * model.felt_scales[:, None]] = 0.0
    return np.concatenate([columns, tau.reshape(-1, motion.q.shape[1]), moving.astype(np.float64)])
