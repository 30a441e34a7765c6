"""`survey_log`: one pass over a log as it came, which refuses nothing.

Rows as they came give the statistics that diagnostics use: stamps, channels, joints. The same rows without repeats,
as positions of the robot's joints, give what filters need: uniform time, gaps, range and spectrum of the motion. What
makes a log unusable ends the second part only, and is raised by `Survey.require_usable`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array, Mask, record
from dynident.errors import DynidentError, InputError
from dynident.identifiability.excitation_quality import REST_VELOCITY
from dynident.logs.columns import kind_of, number_of
from dynident.logs.file import LogFile
from dynident.logs.log import Log, LogError, LogSource, check_locked, joint_positions
from dynident.logs.raw_log import RawLog, rows_in_window
from dynident.robot.model import Robot
from dynident.signals.bandwidth import BandEvidence, band_evidence
from dynident.signals.channel_statistics import (
    ChannelAccumulator,
    ChannelStatistics,
    JointAccumulator,
    JointStatistics,
    RepeatStatistics,
)
from dynident.signals.clock import ClockAccumulator, ClockStatistics, typical_step
from dynident.signals.grid import Grid, fresh_blocks
from dynident.signals.spectrum import MotionSpectrum, Spectrum, pool_spectra
from dynident.signals.thresholds import THRESHOLDS
from dynident.signals.wraps import Unwrapper, wrapping_rows

_FIRST_STEPS = 16384  # whose median is the typical step
_CLOCK_CHECKS = 256  # samples between looks at the clock
_NAMED_GAPS = 100  # whose times are remembered


@record
class Survey:
    """What one pass over a log brought to light.

    `raw`, `clock`, `channels`, `repeats` and `joints` are about all rows as they came. The rest is about the samples
    without repeats, and complete only of a usable log (`require_usable`).

    Attributes:
        raw: The log, its channels and the columns they were read from.
        clock: Its stamps.
        channels: Its channels by name, "t" first; empty if they were not asked for.
        repeats: Rows that repeat the values of the one before; none if channels were not asked for.
        joints: How its joints move; none if channels were not asked for.
        n_samples: Rows of the log.
        n_repeated: Rows dropped because they repeat the one before.
        wraps: Jumps of positions by whole turns that were taken back, by channel.
        stalled: Readings of positions that repeated while the joint moved on, by channel; lines replace them.
        grid: Uniform time for its signals.
        gaps: Times at which a gap begins [s]; at most the first hundred.
        n_gaps: How many there are.
        stretches: Samples of each stretch between gaps.
        start: Time of the first sample [s].
        stop: Time of the last sample [s].
        spectrum: Of velocity and acceleration; None of a log that is not usable.
        evidence: What it says about the bandwidth.
        lowest: (n_joints,) smallest position of each joint [rad or m].
        highest: (n_joints,) largest position.
        unreadable: Why the rows could not be read to the end; None if they could.
        refusal: What makes the log unusable; None if it is usable.
    """

    raw: RawLog
    clock: ClockStatistics
    channels: Mapping[str, ChannelStatistics]
    repeats: RepeatStatistics
    joints: JointStatistics
    n_samples: int
    n_repeated: int
    wraps: Mapping[str, int]
    stalled: Mapping[str, int]
    grid: Grid
    gaps: tuple[float, ...]
    n_gaps: int
    stretches: tuple[int, ...]
    start: float
    stop: float
    spectrum: Spectrum | None
    evidence: BandEvidence
    lowest: Array
    highest: Array
    unreadable: DynidentError | None
    refusal: DynidentError | None

    def left_out_ends(self, channel: str) -> tuple[float, ...]:
        """Ends of a torque's range at which its samples are left out; none where too few would remain."""
        values = self.channels.get(channel)
        if values is None or values.saturated_share > THRESHOLDS.max_saturated_share:
            return ()
        return values.ends

    @property
    def duration(self) -> float:
        """From first to last sample [s]."""
        return self.stop - self.start

    @property
    def lengths(self) -> tuple[float, ...]:
        """Of the stretches between gaps [s]."""
        return tuple(n / self.grid.rate for n in self.stretches)

    @property
    def typical(self) -> float:
        """Frequency below which 90 % of the fastest joint's kinetic energy lies [Hz]."""
        return self.evidence.typical

    def require_readable(self) -> None:
        """Refuse a log whose rows could not all be read as numbers.

        Raises:
            LogError: Naming the row.
            InputError: If the window of the log has no sample.
        """
        if self.unreadable is not None:
            raise self.unreadable

    def require_usable(self) -> None:
        """Refuse a log that cannot be filtered.

        Raises:
            LogError: Naming what is wrong: numbers that are not finite, time that runs backwards, columns that are
                missing, too few samples for any filter, a locked joint that is not where it should be.
            InputError: If the window of the log has no sample, or the log was surveyed without a robot.
        """
        if self.refusal is not None:
            raise self.refusal


def survey_log(
    log: LogSource, robot: Robot | None = None, *, rest_velocity: float = REST_VELOCITY, channels: bool = True
) -> Survey:
    """Go through a log once, in memory that does not grow with it.

    Args:
        log: The log; of a streamed one (`stream_log`) also rows that `read_log` refuses are surveyed.
        robot: The robot; None surveys the rows as they came and nothing else.
        rest_velocity: A slower joint is at rest, and has no vote about the bandwidth [rad/s or m/s].
        channels: Whether diagnostics of the channels will follow. Without them the pass ends where a log proves to be
            unusable, and with its window.
    """
    rows = _RowStatistics(log, robot, channels, rest_velocity)
    samples = _SampleStatistics(robot, log.source)
    refusal: DynidentError | None = InputError(f"{log.source}: was surveyed without a robot, so its joints are unknown")
    with np.errstate(invalid="ignore"):  # numbers that are not finite are counted
        if robot is not None:
            try:
                samples.add(rows.blocks, robot)
                refusal = None
            except DynidentError as error:
                refusal = error
        if channels or robot is None:
            rows.add_remaining()
    grid, spectrum, evidence = Grid(1.0 / samples.step, samples.irregular), None, _NO_EVIDENCE
    if refusal is None and robot is not None:
        spectrum = samples.spectrum()
        lengths = [n / grid.rate for n in samples.stretches]
        evidence = band_evidence(spectrum, samples.highest - samples.lowest, robot.radians, lengths, rest_velocity)
    return Survey(
        raw=rows.raw,
        clock=rows.clock.statistics(),
        channels=rows.channels.statistics() if channels else {},
        repeats=rows.channels.repeats(),
        joints=rows.joints.statistics(),
        n_samples=rows.clock.n_samples if robot is None else samples.n_samples,
        n_repeated=0 if robot is None else samples.n_samples - samples.n_fresh,
        wraps=dict(sorted(samples.wraps.items())),
        stalled=dict(sorted(samples.stalled.items())),
        grid=grid,
        gaps=tuple(samples.gaps),
        n_gaps=samples.n_gaps,
        stretches=tuple(samples.stretches),
        start=samples.start,
        stop=samples.stop,
        spectrum=spectrum,
        evidence=evidence,
        lowest=samples.lowest,
        highest=samples.highest,
        unreadable=rows.unreadable,
        refusal=refusal,
    )


def shared_evidence(
    surveys: Sequence[Survey], radians: Array, rest_velocity: float = REST_VELOCITY
) -> list[BandEvidence]:
    """What the positions of several logs of one robot say about the band of each.

    Their equations count together, and logs of about the same rate share their noise: a short log alone sees neither
    the valley between motion and noise nor enough equations.

    Args:
        surveys: Of logs that are usable.
        radians: (n_joints,) what counts as a radian of each joint [rad or m].
        rest_velocity: A slower joint is at rest, and has no vote [rad/s, or a tenth in m/s].
    """
    stretches = [length for one in surveys for length in one.lengths]
    found = []
    for survey in surveys:
        alike = [one for one in surveys if abs(math.log(one.grid.rate / survey.grid.rate)) < THRESHOLDS.same_rate]
        spectrum = pool_spectra([one.spectrum for one in alike if one.spectrum is not None])
        ranges = np.max([one.highest - one.lowest for one in alike], axis=0)
        pool = band_evidence(spectrum, ranges, radians, stretches, rest_velocity)
        assert survey.spectrum is not None
        ranges = survey.highest - survey.lowest
        power = np.max([one.spectrum.below(one.spectrum.velocity, np.inf) for one in alike if one.spectrum], axis=0)
        own = band_evidence(survey.spectrum, ranges, radians, stretches, rest_velocity, pool, power)
        # However short, a log gives rows for half of its longest stretch.
        least = 2.0 * THRESHOLDS.filter_end_periods / max(survey.lengths)
        found.append(replace(own, floor=max(own.floor, least)))
    return found


_NO_EVIDENCE = BandEvidence(0.0, math.inf, math.inf, math.inf, 0.0)


class _RowStatistics:
    """Statistics of rows as they came, gathered while `blocks` are read.

    Args:
        log: The log.
        robot: For the gear ratios, where the log has positions of motor shafts only.
        with_channels: Whether channels and joints are wanted besides the stamps.
        rest_velocity: A slower joint is at rest [rad/s or m/s].

    Attributes:
        blocks: The log as its own method of that name gives it: unusable rows of a file are refused.
        unreadable: Why the rows could not be read to the end, so far.
    """

    def __init__(self, log: LogSource, robot: Robot | None, with_channels: bool, rest_velocity: float) -> None:
        self._log, self._robot, self._with_channels, self._rest_velocity = log, robot, with_channels, rest_velocity
        self.unreadable: DynidentError | None = None
        self._begin(None, math.nan)
        self.blocks: Iterator[Log]
        self._rows: Iterator[object]
        if isinstance(log, LogFile) and with_channels:
            rows = self._rows_of_file(log)
            self.blocks, self._rows = log.check_rows(rows), rows
        else:
            self.blocks = self._rows = self._blocks_of_log()

    def _begin(self, first: Log | None, step: float) -> None:
        """Start, with the first block of a log that is no file and the typical step of its stamps."""
        self.raw = RawLog.of(self._log, first)
        names = self.raw.names if self._with_channels else ("t",)
        self.clock = ClockAccumulator(step)
        clock, gears = self.clock, _gears(self._robot)
        self.joints = JointAccumulator(names, clock.step, clock.gap, gears, self._rest_velocity)
        self.channels = ChannelAccumulator(names, self.joints.positions)
        self._wrapping = wrapping_rows(names)
        self._unwrapper = Unwrapper(len(self._wrapping))
        joints = self.joints.numbers
        numbers = [0 if kind_of(name) == "t" else number_of(name) for name in names]
        self._joint_of_row = [joints.index(number) if number in joints else len(joints) for number in numbers]

    def add_remaining(self) -> None:
        """Add the rows that nobody has read yet, also those after one that was refused or after the window."""
        with contextlib.suppress(DynidentError):  # it is remembered
            for _ in self._rows:
                pass
        if self.unreadable is None and not self.clock.n_samples:
            self.unreadable = InputError(f"{self._log.source}: has no sample in the window; widen it")

    def _rows_of_file(self, file: LogFile) -> Iterator[Array]:
        """The rows as they are in a file; those in its window are added."""
        with self._remembering():
            for rows in file.rows():
                inside = rows_in_window(file, rows)
                if not self.clock.n_samples:
                    self._begin(None, typical_step(inside[0]))
                self._add(inside)
                yield rows

    def _blocks_of_log(self) -> Iterator[Log]:
        """The blocks of a log; their rows are added."""
        with self._remembering():
            for block in self._log.blocks():
                if not self.clock.n_samples:
                    self._begin(block, typical_step(block.time))
                self._add(self.raw.rows(block) if self._with_channels else block.time[None])
                yield block

    @contextlib.contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except DynidentError as error:
            self.unreadable = error
            raise

    def _add(self, rows: Array) -> None:
        """The next rows, (n_names, n)."""
        if not rows.shape[1]:
            return
        time, steps = self.clock.add(rows[0])
        if self._with_channels:
            own = rows[self._wrapping]
            if (flat := self._unwrapper.add(own)) is not own:
                rows = rows.copy()
                rows[self._wrapping] = flat
            moving = self.joints.add(time, steps, rows)
            # What belongs to no joint, or to one without a position, is looked at throughout.
            everywhere: Mask = np.ones((1, rows.shape[1]), dtype=bool)
            self.channels.add(rows, np.vstack([moving, everywhere])[self._joint_of_row])


def _gears(robot: Robot | None) -> dict[int, float]:
    if robot is None:
        return {}
    return {robot.joints[j].number: float(robot.drive.gear_ratios[i]) for i, j in enumerate(robot.active)}


class _SampleStatistics:
    """Statistics of the samples without repeats, as far as they are usable.

    Args:
        robot: The robot; None where there will be no samples.
        source: File, for messages.
    """

    def __init__(self, robot: Robot | None, source: str) -> None:
        n_joints = 0 if robot is None else len(robot.joint_names)
        self._source = source
        self._step = math.nan  # typical, of the first samples [s]
        self._spectrum = MotionSpectrum(n_joints, 1.0)
        self.n_samples, self.n_fresh = 0, 0
        self.stalled: dict[str, int] = {}
        self.wraps: dict[str, int] = {}
        self.gaps: list[float] = []
        self.n_gaps = 0
        self.stretches = [0]
        self.start, self.stop = math.nan, math.nan
        self._usual_time, self._n_usual, self._deviation = 0.0, 0, 0.0  # of steps that are no gaps
        self._clock: list[tuple[Array, Array]] = []  # usual steps made and the time they took, now and then
        self.lowest, self.highest = np.full(n_joints, math.inf), np.full(n_joints, -math.inf)

    def add(self, blocks: Iterable[Log], robot: Robot) -> None:
        """All blocks of a log.

        Raises:
            LogError: At the first thing that makes it unusable.
        """
        fresh = fresh_blocks(self._count_samples(blocks), self.stalled, self.wraps)
        first = self._begin(fresh, len(robot.joint_names))
        # The first blocks are let go one by one, as memory must not grow with them.
        for block in itertools.chain((first.popleft() for _ in range(len(first))), fresh):
            check_locked(block, robot)
            self._add(block.time, joint_positions(block, robot).T)

    def _count_samples(self, blocks: Iterable[Log]) -> Iterator[Log]:
        for block in blocks:
            self.n_samples += len(block)
            yield block

    def _begin(self, fresh: Iterator[Log], n_joints: int) -> deque[Log]:
        """Read the first blocks, from which the typical step is known; returns them."""
        first: deque[Log] = deque()
        steps = before = np.zeros(0)
        for block in fresh:
            first.append(block)
            steps = np.concatenate([steps, np.diff(np.concatenate([before, block.time]))])
            before = block.time[-1:]
            if len(steps) >= _FIRST_STEPS:
                break
        if len(steps) < THRESHOLDS.min_stretch_samples:
            least = THRESHOLDS.min_stretch_samples + 1
            raise LogError(self._source, f"has {len(steps) + 1} different samples; at least {least} are needed")
        step = float(np.median(steps[:_FIRST_STEPS]))
        # Stamps that are no numbers or run backwards have no typical step; they are refused as they are added.
        self._step = step if 0.0 < step < math.inf else 1.0
        self._spectrum = MotionSpectrum(n_joints, 1.0 / self._step)
        return first

    def _add(self, time: Array, q: Array) -> None:
        """More samples: stamps (n,) and positions (n_joints, n)."""
        if not (np.isfinite(time).all() and np.isfinite(q).all()):
            raise LogError(self._source, "has a time or position that is not finite; repair the log")
        begin = not self.n_fresh
        if begin:
            self.start = self.stop = float(time[0])
        steps = np.diff(time, prepend=self.stop)
        if (steps < 0.0).any():
            raise LogError(
                self._source, f"time runs backwards to {time[np.argmax(steps < 0.0)]:g} s; sort or split the log"
            )
        is_gap = steps > Grid(1.0 / self._step, irregular=False).gap
        self._add_usual(steps[~is_gap][1 if begin else 0 :])
        cuts = np.flatnonzero(is_gap)
        self.gaps.extend(float(x) for x in (time - steps)[cuts][: _NAMED_GAPS - len(self.gaps)])
        self.n_gaps += len(cuts)
        edges = [0, *(int(cut) for cut in cuts), len(time)]
        for number, (first, end) in enumerate(itertools.pairwise(edges)):
            if number:
                self._spectrum.cut()
                self.stretches.append(0)
            self.stretches[-1] += end - first
            self._spectrum.push(time[first:end], q[:, first:end])
        self.lowest, self.highest = np.minimum(self.lowest, q.min(1)), np.maximum(self.highest, q.max(1))
        self.n_fresh, self.stop = self.n_fresh + len(time), float(time[-1])

    def _add_usual(self, steps: Array) -> None:
        """More steps that are no gaps [s]."""
        self._deviation = max(self._deviation, float(np.abs(steps - self._step).max(initial=0.0)))
        places = np.arange(-self._n_usual % _CLOCK_CHECKS, len(steps), _CLOCK_CHECKS)
        made = np.asarray(self._n_usual + places + 1, dtype=np.float64)
        self._clock.append((made, self._usual_time + np.cumsum(steps)[places]))
        self._usual_time, self._n_usual = self._usual_time + float(steps.sum()), self._n_usual + len(steps)

    @property
    def irregular(self) -> bool:
        """Whether stamps differ from a uniform grid."""
        return (
            self._deviation > THRESHOLDS.uniform_step_share * self._step
            or self._drift() > THRESHOLDS.max_drift_steps * self._step
        )

    @property
    def step(self) -> float:
        """Of the uniform grid [s]; NaN without samples.

        A long regular log must not drift from its stamps, so its step is the mean; an irregular one keeps the usual.
        """
        if not self._n_usual:
            return math.nan
        return self._step if self.irregular else self._usual_time / self._n_usual

    def _drift(self) -> float:
        """How far the stamps stray from a uniform grid with the mean step [s]."""
        if not self._n_usual:
            return 0.0
        made, took = (np.concatenate(parts) for parts in zip(*self._clock, strict=True))
        return float(np.abs(took - made * (self._usual_time / self._n_usual)).max(initial=0.0))

    def spectrum(self) -> Spectrum:
        """Of the motion; ends the last stretch."""
        return self._spectrum.spectrum()
