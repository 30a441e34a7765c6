"""`Observations`: a log that can be gone through as filtered motion and torque, in bounded memory, again and again.

Positions are low-passed and differentiated at twice the band by kernels that share one response, torque is low-passed
with the same kernel, and both are brought to a lower rate. `rows.py` makes equations of them.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar, get_args

import numpy as np

from dynident.arrays import Array, Mask
from dynident.display import brief
from dynident.dynamics.terms.term import AlongTerm, MotionSamples
from dynident.errors import InputError, UnknownNameError
from dynident.identifiability.excitation_quality import REST_VELOCITY
from dynident.logs.columns import kind_of
from dynident.logs.log import (
    Log,
    LogError,
    LogSource,
    TorqueKind,
    actuated_torque,
    channel_names,
    command_parts,
    joint_positions,
    joint_velocities,
    position_gains,
    row_torques,
    torque_kind,
)
from dynident.robot.model import Robot
from dynident.signals.bandwidth import BandChoice, BandEvidence, choose_by_noise
from dynident.signals.columns import COLUMN_SAMPLES, KINEMATIC_FACTOR, column_bandwidth, turning_band
from dynident.signals.fir import FilterStream
from dynident.signals.grid import Chunk, fresh_blocks, uniform_chunks
from dynident.signals.kernels import (
    CENTRAL,
    FIVE_POINT,
    FIVE_POINT_CAUSAL,
    NINE_POINT,
    FirKernel,
    Shape,
    held_low_pass_kernel,
    low_pass_kernel,
)
from dynident.signals.log_survey import Survey, survey_log
from dynident.signals.thresholds import THRESHOLDS

WIDEST_SHARE = 0.9 / (2.0 * KINEMATIC_FACTOR)  # of the rate: the widest band, as positions are derived at twice it
_LOOKED_THROUGH = 16  # times what is looked at, in search of the fastest part of a motion
_LARGEST_DELAY = 0.5  # [s] that anybody can mean
KEPT_BYTES = 48e6  # of filtered motion kept for the next time, over all logs; more is made again
_SHORT_BYTES = KEPT_BYTES / 8  # of a log's signals at uniform times: such a log leaves room for its motion
_PER_BAND = 16.0  # samples per second kept of the motion, in units of the band
Block = TypeVar("Block")
VelocitySource = Literal["position", "measured"]
Differentiator = Literal["low-pass", "five-point", "five-point causal", "central", "savitzky-golay"]
_DIFFERENTIATORS = {
    "five-point": FIVE_POINT,
    "five-point causal": FIVE_POINT_CAUSAL,
    "central": CENTRAL,
    "savitzky-golay": NINE_POINT,
}


@brief
@dataclass(frozen=True)
class SignalOptions:
    """How logs become observations.

    Attributes:
        band: Frequency up to which motion and torque are compared [Hz]; None chooses it from motion and noise.
        delay: Time by which torque is stamped late against position [s].
        rest_velocity: A joint slower than this is at rest, and its torque (held by friction) is not used [rad/s or
            m/s].
        velocity_source: Velocities by differentiating positions, or as the log has them.
        differentiator: What differentiates the low-passed signals; "low-pass" differentiates the kernel itself.
        filter: Low-pass of positions and torque: "smooth", or "butterworth" of second order forwards and backwards.
        decimation: Samples of the log for each row; None takes four rows in a period of the band.
        jerk: Whether some term looks at the third derivative of position.
    """

    band: float | None = None
    delay: float = 0.0
    rest_velocity: float = REST_VELOCITY
    velocity_source: VelocitySource = "position"
    differentiator: Differentiator = "low-pass"
    jerk: bool = False
    filter: Shape = "smooth"
    decimation: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("band", self.band), ("rest_velocity", self.rest_velocity), ("delay", self.delay)):
            if value is not None and (isinstance(value, str) or not np.isfinite(value)):
                raise InputError(f"{name} is {value!r}; expected a finite number")
        if self.band is not None and self.band <= 0.0:
            raise InputError(f"band is {self.band:g} Hz; expected a positive frequency")
        if abs(self.delay) > _LARGEST_DELAY:
            raise InputError(f"delay is {self.delay:g} s; expected at most {_LARGEST_DELAY:g} s (it is in seconds)")
        if self.rest_velocity < 0.0:
            raise InputError(f"rest_velocity is {self.rest_velocity:g}; expected zero or a positive velocity")
        if self.decimation is not None and (isinstance(self.decimation, bool) or not self.decimation >= 1):
            raise InputError(f"decimation is {self.decimation!r}; expected a whole number of samples, at least 1")
        for what, choice, valid in (
            ("velocity source", self.velocity_source, get_args(VelocitySource)),
            ("differentiator", self.differentiator, get_args(Differentiator)),
            ("filter", self.filter, get_args(Shape)),
        ):
            if choice not in valid:
                raise UnknownNameError(what, choice, valid)


@brief
@dataclass(frozen=True, eq=False)
class MotionBlock(MotionSamples):
    """A block of filtered motion; blocks of one stretch follow each other without a gap.

    Arrays are what the filters give, seen samples first: in Fortran order, the samples of a joint contiguous. The
    motion restarts where a stretch begins, at its sample number 0.

    Attributes:
        tau: (n_delays, n_samples, n_joints) torque at the actuated coordinates for each delay asked for [N·m or N].
        inner: (n_samples,), whether the filters saw measured samples alone; near the ends of a stretch they did not.
        last: Whether the stretch ends with this block.
        start: Time of the stretch's first sample [s].
        first: Number of the block's first sample within the stretch.
        rate: Samples per second.
        saturated: (n_samples, n_joints) share of samples at the ends of its range in each torque; None where no torque
            is there.
        feedback: (n_samples, n_joints) what of the torque has no delay, as a controller gives it of the motion that it
            measures itself; None where all of it has.
    """

    tau: Array
    inner: Mask
    last: bool
    start: float
    first: int
    rate: float
    saturated: Array | None = None
    feedback: Array | None = None

    @property
    def time(self) -> Array:
        """(n_samples,) stamps of the samples [s]."""
        return self.start + (self.first + np.arange(len(self))) / self.rate

    def part(self, first: int, end: int) -> MotionBlock:
        """Samples from one of the block's to before another one."""
        own, n = slice(first, min(end, len(self))), len(self)
        return MotionBlock(
            self.q[own],
            self.dq[own],
            self.ddq[own],
            self.dddq[own],
            restart=self.restart and first == 0,
            tau=self.tau[:, own],
            inner=self.inner[own],
            last=self.last and own.stop == n,
            start=self.start,
            first=self.first + first,
            rate=self.rate,
            saturated=None if self.saturated is None else self.saturated[own],
            feedback=None if self.feedback is None else self.feedback[own],
            temperature=None if self.temperature is None else self.temperature[own],
        )


class _Kept(Generic[Block]):
    """Parts of a log as it was filtered, made once while there is room over all logs, and gone through again."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[list[Block], Iterator[Block]]] = {}

    def blocks(self, key: tuple[object, ...], size: float, make: Callable[[], Iterator[Block]]) -> Iterator[Block]:
        """The blocks of a key; whoever comes later goes on where the others stopped.

        Args:
            key: All that shapes it.
            size: Bytes that it takes.
            make: Makes it.
        """
        if key not in self._made:
            if size > _Room.left:
                yield from make()
                return
            _Room.left -= size
            weakref.finalize(self, _give_back, size)
            self._made[key] = [], make()
        made, source = self._made[key]
        for place in itertools.count():
            if place == len(made):
                block = next(source, None)
                if block is None:
                    return
                made.append(block)
            yield made[place]


class _Room:
    """What is left over all logs for what is kept."""

    left = KEPT_BYTES


def _give_back(size: float) -> None:
    _Room.left += size


@brief
@dataclass(frozen=True, eq=False)
class Observations:
    """A log after its survey, ready to be filtered; `observe` makes it, and every other filtering comes from that one.

    Attributes:
        log: The log.
        robot: The robot.
        options: What shapes the filtering.
        survey: Of the log.
        band: Band in use [Hz].
        choice: The band that motion and noise ask for, whatever is in use, and why.
    """

    log: LogSource
    robot: Robot
    options: SignalOptions
    survey: Survey
    band: float
    choice: BandChoice
    _kept: _Kept[MotionBlock] = field(default_factory=_Kept, repr=False)
    _uniform: _Kept[Chunk] = field(default_factory=_Kept, repr=False)

    @property
    def step(self) -> int:
        """Samples of the log for each sample of the motion."""
        step = max(1, int(self.survey.grid.rate / (_PER_BAND * self.band) + 1e-9))
        wanted = self.options.decimation
        if wanted is None:
            return step
        return max(part for part in range(1, min(step, wanted) + 1) if wanted % part == 0)

    @property
    def reach(self) -> float:
        """Time from the ends of a stretch in which the filters lack measured samples [s]."""
        kernels = [k for _, own in self._groups((self.options.delay,), False, 1) for k in own]
        return max(max(k.center, len(k.taps) - 1 - k.center) for k in kernels) / self.survey.grid.rate

    def with_options(self, **changes: object) -> Observations:
        """The same log, filtered otherwise; a band is at most what the rate allows."""
        options = replace(self.options, **changes)  # type: ignore[arg-type]
        band = (
            self.choice.band
            if options.band is None
            else min(options.band, widest_band(self.survey, options.decimation))
        )
        return Observations(self.log, self.robot, options, self.survey, band, self.choice, *self._made)

    def decided(self, choice: BandChoice) -> Observations:
        """The same log in a band that its torque has decided on."""
        return Observations(self.log, self.robot, self.options, self.survey, choice.band, choice, *self._made)

    @property
    def _made(self) -> tuple[_Kept[MotionBlock], _Kept[Chunk]]:
        return self._kept, self._uniform

    def for_terms(self, along: Sequence[AlongTerm]) -> Observations:
        """The same log with all that terms which follow a motion look at."""
        if self.options.jerk or not any(term.needs_jerk for term in along):
            return self
        return self.with_options(jerk=True)

    def motion(self, delays: Sequence[float] | None = None) -> Iterator[MotionBlock]:
        """The log as filtered motion. Filtered motion of moderate size is kept, and not made again.

        Args:
            delays: Delays of the torque to undo [s]; default that of the options. An empty one leaves torque alone:
                prediction uses position and time only.
        """
        wanted = (self.options.delay,) if delays is None else tuple(delays)
        options = self.options
        n_signals = 3 + options.jerk + len(wanted) + self.has_temperatures
        size = 8.0 * sum(self.survey.stretches) / self.step * len(self.robot.joint_names) * n_signals
        how = (options.velocity_source, options.differentiator, options.filter, options.decimation, options.jerk)
        key = (self.band, how, wanted)
        yield from self._kept.blocks(key, size, lambda: self._filter(wanted))

    def _filter(self, wanted: tuple[float, ...]) -> Iterator[MotionBlock]:
        """Filter the log."""
        measured = self.options.velocity_source == "measured"
        grid, n = self.survey.grid, len(self.robot.joint_names)
        still = self.survey.highest - self.survey.lowest <= THRESHOLDS.standstill_rad * self.robot.radians
        middle = 0.5 * (self.survey.highest + self.survey.lowest)
        stream: FilterStream | None = None
        saturates = bool(wanted) and self.marks_saturation
        for start, values, last in self._chunks(measured, bool(wanted)):
            stream = stream or FilterStream(self._groups(wanted, measured, n), grid.rate, self.step, "polynomial")
            results, inner, first = stream.push(values, last)
            warm = results[-1][0].T if self.has_temperatures else None
            results = results[: len(results) - self.has_temperatures]
            if len(inner):
                q, dq, ddq, *jerk = (*results[0], *results[1]) if measured else results[0]
                # What a joint at a standstill shows is noise and rounding.
                q[still] = middle[still, None]
                for rate_of_change in (dq, ddq, *jerk):
                    rate_of_change[still] = 0.0
                dddq = jerk[0] if jerk else np.zeros((0, len(inner)))
                tau = results[-1 - saturates] if wanted else np.zeros((0, n, len(inner)))
                feedback = None
                if wanted and self.by_commands:
                    feedback = results[-2 - saturates][0] - self._damped(dq)
                    tau = tau + feedback
                yield MotionBlock(
                    *(q.T, dq.T, ddq.T, dddq.T, first == 0),
                    tau=tau.transpose(0, 2, 1),
                    inner=inner,
                    last=last,
                    start=start,
                    first=first,
                    rate=grid.rate / self.step,
                    saturated=np.abs(results[-1][0]).T if saturates else None,
                    feedback=None if feedback is None else feedback.T,
                    temperature=warm,
                )
            if last:
                stream = None

    def _chunks(self, measured: bool, torque: bool) -> Iterator[Chunk]:
        """The signals to filter at uniform times. Those of a short log are kept: other bands and delays ask again."""

        def make() -> Iterator[Chunk]:
            signals = (self._signals(block, measured, torque) for block in fresh_blocks(self.log.blocks()))
            return uniform_chunks(signals, self.survey.grid)

        n_signals = (1 + measured + torque * (1 + self.by_commands + self.marks_saturation)) * len(
            self.robot.joint_names
        )
        size = 8.0 * sum(self.survey.stretches) * n_signals
        return self._uniform.blocks((measured, torque), size, make) if size <= _SHORT_BYTES else make()

    def _signals(self, block: Log, measured: bool, torque: bool) -> tuple[Array, Array]:
        """Stamps, and the signals to filter one above the other."""
        parts = [joint_positions(block, self.robot)]
        if measured:
            velocities = joint_velocities(block, self.robot)
            parts.append(block.array("dq", self.robot) if velocities is None else velocities)
        if torque:
            # Commands reach the joint late, what the controller measures does not.
            parts += (
                reversed(command_parts(block, self.robot)) if self.by_commands else [row_torques(block, self.robot)]
            )
            if self.marks_saturation:
                parts.append(self._at_ends(block))
        if self.has_temperatures:
            parts.append(block.array("temp", self.robot))
        values = np.hstack(parts)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(1)))
            raise LogError(self.log.source, f"has a number that is not finite at {block.time[row]:g} s; repair the log")
        return block.time, np.ascontiguousarray(values.T)

    @functools.cached_property
    def has_temperatures(self) -> bool:
        """Whether the log has the temperature of every moving joint."""
        return next(iter(self.log.blocks())).has("temp", self.robot)

    @functools.cached_property
    def by_commands(self) -> bool:
        """Whether torque is that of position commands; not in a log whose torque is not looked at."""
        first = next(iter(self.log.blocks()))
        kinds = (kind for kind in get_args(TorqueKind) if first.has(kind, self.robot))
        return next(kinds, None) == "target"

    @functools.cached_property
    def _kd(self) -> Array:
        """(n_joints,) velocity gains of the controller that commands went to."""
        return position_gains(next(iter(self.log.blocks())), self.robot)[1]

    def _damped(self, dq: Array) -> Array:
        """What the controller takes from the torque at a velocity, (n_joints, n_samples) each."""
        return actuated_torque((self._kd[:, None] * dq).T, self.robot).T

    @functools.cached_property
    def saturating(self) -> Mapping[str, tuple[float, ...]]:
        """Measured torque channels that stay at the ends of their range for a while, and these ends."""
        if not self.survey.channels or self.by_commands:
            return {}
        kinds = {kind_of(name) for name in self.survey.channels} & set(get_args(TorqueKind))
        kind = next((kind for kind in get_args(TorqueKind) if kind in kinds), "")
        ends = {name: self.survey.left_out_ends(name) for name in channel_names(kind, self.robot)} if kind else {}
        return {name: own for name, own in ends.items() if own}

    @property
    def marks_saturation(self) -> bool:
        """Whether samples may have a torque that the drive did not give."""
        return bool(self.saturating) or (self.by_commands and bool(np.isfinite(self.robot.effort_limits).any()))

    def _at_ends(self, block: Log) -> Array:
        """(n_samples, n_joints), 1 where a torque of the row is at the end of its range, else 0."""
        if self.by_commands:
            return np.asarray(np.abs(row_torques(block, self.robot)) >= self.robot.effort_limits, dtype=np.float64)
        kind = torque_kind(block, self.robot)
        names = channel_names(kind, self.robot)
        none = np.zeros(len(block), dtype=bool)
        own = [np.isin(block.channels[x], self.saturating[x]) if x in self.saturating else none for x in names]
        marks = np.stack(own, axis=1)
        if kind == "tau":  # of a coupled wrist, rows have the torques of several joints
            mixed = np.abs(np.linalg.inv(self.robot.moving_coupling)) > 1e-9
            marks = marks.astype(np.float64) @ mixed > 0.0
        return marks.astype(np.float64)

    def _groups(self, delays: Sequence[float], measured: bool, n: int) -> list[tuple[int, Sequence[FirKernel]]]:
        """Which kernels the signals pass."""
        smooth, *derivatives = self._position_kernels()
        groups: list[tuple[int, Sequence[FirKernel]]] = [(n, [smooth, *derivatives])]
        if measured:
            groups = [(n, [smooth]), (n, [smooth, *derivatives[:-1]])]
        if delays:
            cutoff, rate = KINEMATIC_FACTOR * self.band, self.survey.grid.rate
            shape = self.options.filter
            low_pass = low_pass_kernel
            if self.by_commands:
                groups.append((n, [low_pass_kernel(cutoff, rate, shape=shape)]))
                low_pass = held_low_pass_kernel
            groups.append((n, [low_pass(cutoff, rate, shift=delay, shape=shape) for delay in delays]))
            if self.marks_saturation:
                groups.append((n, [low_pass_kernel(cutoff, rate, shift=delays[0], shape=shape)]))
        if self.has_temperatures:  # slow, so that it goes the way of positions
            groups.append((n, [smooth]))
        return groups

    def _position_kernels(self) -> list[FirKernel]:
        """Low-pass, and the derivatives of what it lets through: first, second and perhaps third."""
        cutoff, rate, orders = KINEMATIC_FACTOR * self.band, self.survey.grid.rate, range(3 + self.options.jerk)
        if self.options.differentiator == "low-pass":
            return [low_pass_kernel(cutoff, rate, order, shape=self.options.filter) for order in orders]
        kernels = [low_pass_kernel(cutoff, rate, shape=self.options.filter)]
        for _ in orders[1:]:
            kernels.append(kernels[-1].then(_DIFFERENTIATORS[self.options.differentiator]))
        return kernels


def observe(
    log: LogSource, robot: Robot, options: SignalOptions | None = None, *, survey: Survey | None = None
) -> Observations:
    """Survey a log and choose its band.

    Args:
        log: The log, in memory or streamed.
        robot: The robot.
        options: Band, delay, rest velocity, velocity source.
        survey: Of this log, robot and rest velocity, where there is one already; else the log is surveyed.

    Raises:
        LogError: Naming the file and what is wrong with it.
    """
    options = options or SignalOptions()
    found = survey or survey_log(log, robot, rest_velocity=options.rest_velocity, channels=False)
    found.require_usable()
    widest = widest_band(found, options.decimation)
    if options.decimation is None:
        if widest < found.evidence.median:  # the fastest joint of a short log may be one that only trembles
            raise LogError(
                log.source,
                f"its rate of {found.grid.rate:.4g} Hz does not show its motion at {found.evidence.median:.3g} Hz; "
                "record it faster",
            )
    elif widest < found.typical:
        raise LogError(
            log.source,
            f"a decimation of {options.decimation} leaves {2.0 * widest:.4g} rows per second, which do not show its "
            f"motion at {found.typical:.3g} Hz; use a smaller one",
        )
    if options.band is not None and options.band > widest:
        raise LogError(
            log.source,
            f"a band of {options.band:g} Hz is too wide for its rate of {found.grid.rate:.4g} Hz"
            + ("" if options.decimation is None else f" and a decimation of {options.decimation}")
            + f"; at most {widest:.4g} Hz can be used",
        )
    if options.band is not None:
        asked = BandChoice(options.band, "as asked for")
        return Observations(log, robot, options, found, options.band, asked)
    undecided = BandChoice(widest, "all that the rate allows")
    return choose_band(Observations(log, robot, options, found, widest, undecided), found.evidence)


def choose_band(one: Observations, evidence: BandEvidence) -> Observations:
    """The log in the band that motion, noise, equations and columns ask for.

    Args:
        one: The log.
        evidence: What its positions say about its band, or those of several logs.
    """
    widest = widest_band(one.survey, one.options.decimation)
    one = one.decided(choose_by_noise(evidence, widest))
    room = choose_by_noise(evidence, widest, np.inf).band
    if room <= one.band or turning_band(THRESHOLDS.peak_velocity_factor * evidence.turning) <= one.band:
        return one  # noise or rate leave no room for what columns need, or joints turn too slowly for them to need it
    columns = _columns_need(one)
    return one if columns <= one.band else one.decided(choose_by_noise(evidence, widest, columns))


def widest_band(found: Survey, decimation: int | None = None) -> float:
    """The widest band that a log's rate allows: positions are derived at twice the band, rows show all of it [Hz]."""
    widest = WIDEST_SHARE * found.grid.rate
    return widest if decimation is None else min(widest, 0.5 * found.grid.rate / decimation)


def _columns_need(one: Observations) -> float:
    """The band that columns of the regressor need in the fastest part of the first minutes of a log [Hz]."""
    blocks: list[MotionBlock] = []
    for block in one.motion(()):
        blocks.append(block)
        if block.last or sum(len(other) for other in blocks) > 2 * _LOOKED_THROUGH * COLUMN_SAMPLES:
            break
    if not blocks:
        return 0.0
    # Every second sample: four times the band is fast enough for what a regressor makes of a motion within it.
    q, dq = (np.concatenate([getattr(block, name) for block in blocks])[::2] for name in ("q", "dq"))
    energy = np.concatenate([[0.0], np.cumsum((dq**2).sum(1))])
    length = min(COLUMN_SAMPLES, len(dq))
    first = int(np.argmax(energy[length:] - energy[:-length]))
    own = slice(first, first + length)
    # Noise of the acceleration would pass for fast columns; without acceleration they turn as fast.
    return column_bandwidth(one.robot, q[own], dq[own], np.zeros_like(q[own]), 0.5 * blocks[0].rate)
