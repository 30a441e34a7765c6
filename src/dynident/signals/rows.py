"""Rows of the linear model from observations, by parallel filtering (Gautier et al. 1995, section 4.3).

Every column of the regressor and the torque pass one more low-pass at the band and are decimated. Which rows are used
depends on what they are for. Parameters: rows that filters made from measured samples alone and that no reversal of dry
friction reaches, with Coulomb columns as means over the cells of samples (`dry_friction`). Predictions: all rows,
joints at rest and most of the ends of a log included. Rows of joints above the rest velocity are what trials look at.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dynident.arrays import Array, Mask, frozen
from dynident.display import brief
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import Column, Coulomb
from dynident.dynamics.terms.term import AlongTerm
from dynident.errors import InputError
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor, RegressorBlock
from dynident.identifiability.regrouping import Regrouping
from dynident.signals.dry_friction import CoulombColumn, DryFriction, Reversals
from dynident.signals.fir import FilterStream
from dynident.signals.kernels import FirKernel, low_pass_kernel
from dynident.signals.observations import MotionBlock, Observations
from dynident.signals.thresholds import THRESHOLDS

ROWS_PER_BAND = 4.0  # rows per second, in units of the band
SEGMENT_SECONDS = 4.0  # residuals of filtered data are correlated; over this time hardly
LEAST_SEGMENTS = 16  # of a log: a short one can still leave a part of itself out, with a gap that is no large part
MOST_SEGMENTS = 32  # of a log: what is kept of a long log stays small
_FAINT = 1e-6  # share of what a column usually has
_BLOCK = 2048  # samples of motion made into columns at a time
MOST_VELOCITIES = 12000  # samples of the motion for an effective velocity
PROGRAM_SMOOTHING = 0.02  # [rad/s] of the Coulomb column that is compiled; rows for parameters replace it
DELAY = "delay"  # name of the coefficient of the torque's derivative
Purpose = Literal["moving", "parameters", "prediction"]


@dataclass(frozen=True)
class RowRule:
    """Which rows of a log are used, and what stands beside their columns.

    Attributes:
        purpose: What they are for, see the module.
        nearest, farthest: Of rows for parameters, the distance from the next reversal [periods of the band].
        coulomb: More Coulomb columns, for the search of widths.
        delay: Whether the derivative of the torque is a column, whose coefficient is what the delay lacks [s].
    """

    purpose: Purpose = "moving"
    nearest: float = THRESHOLDS.reversal_periods
    farthest: float = math.inf
    coulomb: tuple[CoulombColumn, ...] = ()
    delay: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns beside those of the model."""
        found = [
            Column(one.name, "", "Fc", one.element, "nuisance", "Coulomb column of another width")
            for one in self.coulomb
        ]
        delay = Column(DELAY, "s", DELAY, "", "nuisance", "delay of the torque beyond that of the filters")
        return (*found, *([delay] if self.delay else []))


MOVING, PARAMETERS, PREDICTION = RowRule(), RowRule("parameters"), RowRule("prediction")


@brief
@dataclass(frozen=True, eq=False)
class ObservedRows:
    """The rows of several observations, which can be gone through again.

    Attributes:
        observations: The logs.
        base: Base parameters whose columns are wanted.
        reference: (10 n_links,) standard parameters of the links that some terms are linear around; None without such.
        seconds: Length of the part of each log that is used [s].
        bands: Band of the rows of each log by its label [Hz]; None for that of its motion.
        rule: Which rows.
    """

    observations: tuple[Observations, ...]
    base: BaseParameters
    reference: Array | None = None
    seconds: float = math.inf
    bands: Mapping[str, float] | None = None
    rule: RowRule = MOVING

    @functools.cached_property
    def regressor(self) -> BaseRegressor:
        """What makes the columns."""
        terms = self.base.terms
        if self.rule.purpose == "parameters":  # Coulomb columns are put in their place: one program serves all widths
            terms = tuple(Coulomb(PROGRAM_SMOOTHING) if isinstance(term, Coulomb) else term for term in terms)
        return BaseRegressor.of(self.base.robot, terms)

    @functools.cached_property
    def coordinates(self) -> Regrouping:
        """The base parameters, and what stands beside them."""
        own, more = self.regressor.coordinates, self.rule.columns
        if not more:
            return own
        n, n_columns = own.K.shape
        K = np.zeros((n + len(more), n_columns + len(more)))
        K[:n, :n_columns], K[n:, n_columns:] = own.K, np.eye(len(more))
        places = range(n_columns, n_columns + len(more))
        return Regrouping((*own.columns, *more), (*own.independent, *places), frozen(K))

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means; columns around different linearization points do not mix."""
        own = None if self.reference is None else LinearizationPoint(self.base.robot, self.reference).fingerprint
        lines, parameters = iter(self.regressor.definitions), self.rule.purpose == "parameters"
        found = []
        for term in self.base.terms:
            around = own is not None and isinstance(term, AlongTerm) and term.needs_linearization_point
            more = f", around {own}" if around else ""
            more = f", mean of {term.key} over cells" if parameters and isinstance(term, Coulomb) else more
            found += [f"{next(lines)}{more}" for _ in term.columns(self.base.robot)]
        return (*found, *(f"beside the model, {column.name}" for column in self.rule.columns))

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
            length = min(one.survey.duration, self.seconds)
            count = int(np.clip(round(length / SEGMENT_SECONDS), LEAST_SEGMENTS, MOST_SEGMENTS))
            friction = DryFriction(self.regressor, self.base.terms)
            made = row_blocks(one, self.regressor, self.reference, band=band, rule=self.rule, friction=friction)
            for block in made:
                if block.time[0] > one.survey.start + self.seconds:
                    break
                share = (block.time - one.survey.start) / max(length, 1e-12)
                yield from block.segments(np.clip((share * count).astype(int), 0, count - 1))


def row_blocks(
    one: Observations,
    regressor: BaseRegressor,
    reference: Array | None = None,
    *,
    band: float | None = None,
    rule: RowRule = MOVING,
    friction: DryFriction | None = None,
) -> Iterator[RegressorBlock]:
    """All rows of a log in order, in bounded memory.

    Args:
        one: The log.
        regressor: The robot's columns.
        reference: (10 n_links,) standard parameters of the links that some terms are linear around.
        band: Band of the rows, at most that of the log's motion [Hz]; default that.
        rule: Which rows.
        friction: Elements with dry friction and their widths; default those of the regressor's own terms.

    Raises:
        InputError: When no stretch of the log is long enough for its filters.
    """
    band = one.band if band is None else min(band, one.band)
    if rule.purpose == "parameters":
        yield from _parameter_rows(one, regressor, reference, band, rule, friction)
        return
    if rule.purpose == "moving":
        slowest = np.full((1, len(regressor.robot.joint_names)), one.options.rest_velocity)
        yield from (block for block, _ in row_blocks_above(one, regressor, slowest, reference=reference, band=band))
        return
    for time, columns_first, _, inner, free in _filter_rows(one, regressor, reference, band, None, _Beside()):
        usable = inner | _near_the_ends(one, band, time)
        yield RegressorBlock(one.log.label, 0, time, regressor.columns, columns_first, usable[:, None] & free)


def row_blocks_above(
    one: Observations,
    regressor: BaseRegressor,
    slowest: Array,
    delays: Sequence[float] | None = None,
    reference: Array | None = None,
    band: float | None = None,
) -> Iterator[tuple[RegressorBlock, Mask]]:
    """The rows of joints in motion, for several velocities below which joints count as at rest, (m, n_joints).

    Args:
        one: The log.
        regressor: The robot's columns.
        slowest: (m, n_joints) velocities [rad/s or m/s].
        delays: Delays of the torque to undo, each a right-hand side [s]; default that of the options.
        reference: (10 n_links,) standard parameters of the links that some terms are linear around.
        band: Band of the rows, at most that of the log's motion [Hz]; default that.

    Returns:
        Blocks that are usable above the first of them, and for each of them which rows are, (m, n_rows, n_joints).
    """
    band = one.band if band is None else min(band, one.band)
    marks = _InMotion(slowest)
    for time, columns_first, (moving,), inner, free in _filter_rows(one, regressor, reference, band, delays, marks):
        usable = (moving > 0.5).reshape(*slowest.shape, -1).transpose(0, 2, 1) & inner[:, None] & free
        yield RegressorBlock(one.log.label, 0, time, regressor.columns, columns_first, usable[0]), usable


def _parameter_rows(
    one: Observations,
    regressor: BaseRegressor,
    reference: Array | None,
    band: float,
    rule: RowRule,
    friction: DryFriction | None,
) -> Iterator[RegressorBlock]:
    """Rows that no reversal reaches, with the columns that a rule wants beside those of the model."""
    own = friction or DryFriction(regressor, regressor.terms)
    rest = THRESHOLDS.rest_share * effective_velocity(one, own.directions)
    marks = _NearReversal(own, rule, rest, band)
    places, n = own.extra_places(rule.coulomb), regressor.coordinates.n
    beside = [[line for line, (_, output, _) in enumerate(places) if output == o] for o in range(len(own.acts.T))]
    columns = tuple(
        (*owned, *(n + places[line][0] for line in lines), *([n + len(rule.coulomb)] if rule.delay else []))
        for owned, lines in zip(regressor.columns, beside, strict=True)
    )
    acts = own.acts.astype(np.float64)
    for time, lines_of, filtered, inner, free in _filter_rows(one, regressor, reference, band, None, marks):
        extra, slopes, near, far = *filtered[:3], filtered[-1]
        parts = []
        for output, lines in enumerate(lines_of):
            # Torque that is late by x more than was undone is what it should be, less x times its slope.
            slope = [-slopes[output]] if rule.delay else []
            parts.append(np.vstack([lines[:-1], extra[beside[output]], *slope, lines[-1]]))
        # Sums over a window: one mark in it is enough.
        usable = (
            ((near > 0.5).T @ acts < 0.5) & inner[:, None]
            if rule.nearest
            else np.repeat(inner[:, None], len(acts.T), 1)
        )
        usable &= free
        if math.isfinite(rule.farthest):
            usable &= (far > 0.5).T @ acts > 0.5
        yield RegressorBlock(one.log.label, 0, time, columns, tuple(parts), usable)


def effective_velocity(one: Observations, directions: Array, delays: Sequence[float] | None = None) -> Array:
    """Root of the mean squared velocity of elements in the first minutes of a log, (n_elements,) [rad/s or m/s].

    Args:
        one: The log.
        directions: (n_elements, n_joints) motion of the elements with the joints.
        delays: Of the motion that is looked at, which is then there for what follows.
    """
    squares, count = np.zeros(len(directions)), 0
    for block in one.motion(delays):
        velocities = block.dq[: MOST_VELOCITIES - count] @ directions.T
        squares, count = squares + (velocities**2).sum(0), count + len(velocities)
        if count >= MOST_VELOCITIES:
            break
    return np.asarray(np.sqrt(squares / max(count, 1)))


class _Beside:
    """Signals that pass filters beside the columns of the rows; here none."""

    def groups(self, kernel: FirKernel, rate: float) -> list[tuple[int, list[FirKernel]]]:
        """How many signals pass which kernel, given that of the rows and the rate of the motion."""
        return []

    def signals(self, motion: MotionBlock, columns: Array, starts: list[int]) -> list[Array]:
        """The signals of the next samples, (n_signals, n_samples) each; may change the columns before they pass."""
        return []


class _InMotion(_Beside):
    """Whether joints are faster than some velocities, (m, n_joints)."""

    def __init__(self, slowest: Array) -> None:
        self._slowest = slowest

    def groups(self, kernel: FirKernel, rate: float) -> list[tuple[int, list[FirKernel]]]:
        return [(self._slowest.size, [kernel])]

    def signals(self, motion: MotionBlock, columns: Array, starts: list[int]) -> list[Array]:
        moving = np.hstack([np.abs(motion.dq) > own for own in self._slowest])
        return [moving.T.astype(np.float64)]


class _NearReversal(_Beside):
    """Coulomb columns as means over cells, those that are wanted beside them, and windows about reversals."""

    def __init__(self, friction: DryFriction, rule: RowRule, rest: Array, band: float) -> None:
        self._friction, self._rule, self._rest, self._band = friction, rule, rest, band
        self._marks = Reversals(rest)

    def groups(self, kernel: FirKernel, rate: float) -> list[tuple[int, list[FirKernel]]]:
        n = len(self._friction.elements)
        reaches = [self._rule.nearest, *([self._rule.farthest] if math.isfinite(self._rule.farthest) else [])]
        windows = [(n, [_window(reach / self._band, rate)]) for reach in reaches]
        n_outputs = len(self._friction.acts.T) if self._rule.delay else 0
        slope = low_pass_kernel(self._band, rate, 1)
        return [(len(self._friction.extra_places(self._rule.coulomb)), [kernel]), (n_outputs, [slope]), *windows]

    def signals(self, motion: MotionBlock, columns: Array, starts: list[int]) -> list[Array]:
        cell, ends = 1.0 / motion.rate, [*(start - 1 for start in starts[1:]), len(columns) - 1]
        if motion.restart:
            self._marks = Reversals(self._rest)
        v, a = self._friction.velocities(motion, columns, starts)
        self._friction.set_columns(v, a, cell, columns, starts)
        marks = self._marks.push(v)
        extra = self._friction.extra_columns(v, a, cell, self._rule.coulomb)
        torque = columns[ends] if self._rule.delay else columns[:0]
        if self._rule.delay and motion.feedback is not None:
            torque = torque - motion.feedback.T
        return [extra, torque, marks, *([marks] if math.isfinite(self._rule.farthest) else [])]


def _window(reach: float, rate: float) -> FirKernel:
    """The sum of all samples within a time on both sides [s]."""
    half = int(np.ceil(reach * rate - 1e-9))
    return FirKernel("window", np.ones(2 * half + 1), 0, half)


def _near_the_ends(one: Observations, band: float, time: Array) -> Mask:
    """Rows near the ends of a log for which the filters' continuation of it is good enough for predictions, (n,)."""
    reach = 0.5 * filter_time(one)
    start, stop, left_out = one.survey.start, one.survey.stop, THRESHOLDS.prediction_end_periods / band
    inside = (time >= start + left_out) & (time <= stop - left_out)
    return np.asarray(inside & ((time < start + reach) | (time > stop - reach)))


_FilteredRows = tuple[Array, tuple[Array, ...], list[Array], Mask, Mask]


def _filter_rows(
    one: Observations,
    regressor: BaseRegressor,
    reference: Array | None,
    band: float,
    delays: Sequence[float] | None,
    beside: _Beside,
) -> Iterator[_FilteredRows]:
    """All rows of a log.

    Yields:
        Time (n_rows,) [s]; of each output its columns and right-hand sides, (k + n_right, n_rows); the filtered signals
        beside them, (n_signals, n_rows) each; whether measured samples alone made each row, (n_rows,), and whether none
        of its torque was at the end of its range, (n_rows, n_joints).
    """
    stream: FilterStream | None = None
    one = one.for_terms(regressor.along)
    course = regressor.course(reference)
    any_inner = False
    for motion in one.motion(delays):
        step, lines = row_step(one, band), regressor.lines(len(motion.tau))
        for part in _parts(motion):
            if stream is None:
                kernel = low_pass_kernel(band, motion.rate)
                groups = [(lines[-1].stop, [kernel]), *beside.groups(kernel, motion.rate)]
                if motion.saturated is not None:
                    groups.append((len(lines), [kernel]))
                stream = FilterStream(groups, motion.rate, step)
            columns = _stack_signals(part, regressor, course)
            signals = beside.signals(part, columns, [own.start for own in lines])
            marks = [] if part.saturated is None else [part.saturated.T]
            (results, *others), inner, first = stream.push(
                np.concatenate([columns, *signals, *marks]), part.last, part.inner
            )
            free: Mask = np.ones((len(inner), len(lines)), dtype=bool)
            if marks:
                free = THRESHOLDS.saturated_row_share > np.abs(others.pop()[0]).T
            if part.last:
                stream = None
            if len(inner):
                any_inner = any_inner or bool(inner.any())
                time = part.start + (first + np.arange(len(inner))) * step / motion.rate
                yield time, tuple(results[0][own] for own in lines), [own[0] for own in others], inner, free
    if not any_inner:
        raise too_short(one)


def row_step(one: Observations, band: float | None = None) -> int:
    """Samples of the motion for each row; `band` [Hz] is that of the rows, default that of the motion."""
    if one.options.decimation is not None:
        return one.options.decimation // one.step
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


def _stack_signals(motion: MotionBlock, regressor: BaseRegressor, course: TermCourse) -> Array:
    """What passes the parallel filter: columns and torques of each output."""
    tau, n_right = motion.tau, len(motion.tau)
    if regressor.fixed_values:
        state = motion.q, motion.dq, motion.ddq
        tau = tau - inverse_dynamics(regressor.robot, *state, regressor.of_state, regressor.fixed_values)
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
    return columns
