"""A first look at a log: its rate, its repeats and gaps, and how fast the robot moves in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.identifiability.excitation import REST_SPEED
from dynident.logs.log import Log, LogError, check_locked, joint_positions
from dynident.logs.source import LogSource
from dynident.robot.model import Robot
from dynident.signals.band import BandEvidence, band_evidence
from dynident.signals.grid import UNIFORM, Grid, fresh_blocks
from dynident.signals.spectrum import SHORTEST, MotionSpectrum

_STEPS_LOOKED_AT = 16384  # for the typical step
_CLOCK_CHECKS = 256  # samples between looks at the clock
_DRIFT = 0.25  # steps by which stamps may drift from a uniform grid
_GAPS_NAMED = 100  # gaps whose times are kept


@dataclass(frozen=True)
class Survey:
    """What was found in a log.

    Attributes:
        n_samples: Rows of the log.
        repeated: Rows dropped because they repeat the one before.
        grid: Uniform time for its signals.
        gaps: Times at which a gap begins [s]; at most the first hundred.
        n_gaps: How many there are.
        stretches: Samples of each stretch between gaps.
        start: Time of the first sample [s].
        stop: Time of the last sample [s].
        evidence: What the acceleration spectrum says about the band.
        lowest: (n_joints,) smallest position of each joint [rad or m].
        highest: (n_joints,) largest position.
    """

    n_samples: int
    repeated: int
    grid: Grid
    gaps: tuple[float, ...]
    n_gaps: int
    stretches: tuple[int, ...]
    start: float
    stop: float
    evidence: BandEvidence
    lowest: Array
    highest: Array

    @property
    def duration(self) -> float:
        """From first to last sample [s]."""
        return self.stop - self.start

    @property
    def typical(self) -> float:
        """Frequency below which 90 % of the fastest joint's kinetic energy lies [Hz]."""
        return self.evidence.typical


def survey(log: LogSource, robot: Robot, rest_speed: float = REST_SPEED) -> Survey:
    """Go through a log once.

    Args:
        log: The log, in memory or streamed.
        robot: The robot.
        rest_speed: A slower joint is at rest and has no vote about the band [rad/s or m/s].

    Raises:
        LogError: When it has too few samples for any filter, or a locked joint is not where it should be.
    """
    look = _Look(_typical_step(log), len(robot.joint_names), log.source)
    for block in fresh_blocks(look.counting(log)):
        check_locked(block, robot)
        look.add(block.time, joint_positions(block, robot).T)
    return look.survey(robot.radians, rest_speed)


def _typical_step(log: LogSource) -> float:
    """The median step of the first samples [s]."""
    steps = np.zeros(0)
    before = np.zeros(0)
    for block in fresh_blocks(log.blocks()):
        steps = np.concatenate([steps, np.diff(np.concatenate([before, block.time]))])
        before = block.time[-1:]
        if len(steps) >= _STEPS_LOOKED_AT:
            break
    if len(steps) < SHORTEST:
        raise LogError(log.source, f"has {len(steps) + 1} different samples; at least {SHORTEST + 1} are needed")
    return float(np.median(steps[:_STEPS_LOOKED_AT]))


class _Look:
    """What is known about a log so far."""

    def __init__(self, step: float, n_joints: int, source: str) -> None:
        self.step, self.source = step, source
        self.spectrum = MotionSpectrum(n_joints, 1.0 / step)
        self.n_samples, self.kept = 0, 0
        self.gaps: list[float] = []
        self.n_gaps = 0
        self.stretches = [0]
        self.start, self.stop = np.nan, np.nan
        self.usual_time, self.usual_steps, self.deviation = 0.0, 0, 0.0
        self.clock: list[tuple[Array, Array]] = []  # usual steps made and the time they took, now and then
        self.lowest, self.highest = np.full(n_joints, np.inf), np.full(n_joints, -np.inf)

    def counting(self, log: LogSource) -> Iterator[Log]:
        """The log's blocks, counted."""
        for block in log.blocks():
            self.n_samples += len(block)
            yield block

    def add(self, time: Array, q: Array) -> None:
        """More samples: stamps (n,) and positions (n_joints, n)."""
        if not (np.isfinite(time).all() and np.isfinite(q).all()):
            raise LogError(self.source, "has a time or position that is not finite; repair the log")
        begin = not self.kept
        if begin:
            self.start = self.stop = float(time[0])
        steps = np.diff(time, prepend=self.stop)
        if (steps < 0.0).any():
            raise LogError(
                self.source, f"time runs backwards to {time[np.argmax(steps < 0.0)]:g} s; sort or split the log"
            )
        is_gap = steps > Grid(1.0 / self.step, irregular=False).gap
        usual = steps[~is_gap][1 if begin else 0 :]
        self.deviation = max(self.deviation, float(np.abs(usual - self.step).max(initial=0.0)))
        looks = np.arange(-self.usual_steps % _CLOCK_CHECKS, len(usual), _CLOCK_CHECKS)
        made = np.asarray(self.usual_steps + looks + 1, dtype=np.float64)
        self.clock.append((made, self.usual_time + np.cumsum(usual)[looks]))
        self.usual_time, self.usual_steps = self.usual_time + float(usual.sum()), self.usual_steps + len(usual)
        cuts = np.flatnonzero(is_gap)
        self.gaps.extend(float(x) for x in (time - steps)[cuts][: _GAPS_NAMED - len(self.gaps)])
        self.n_gaps += len(cuts)
        edges = [0, *(int(cut) for cut in cuts), len(time)]
        for number, (first, end) in enumerate(itertools.pairwise(edges)):
            if number:
                self.spectrum.cut()
                self.stretches.append(0)
            self.stretches[-1] += end - first
            self.spectrum.push(time[first:end], q[:, first:end])
        self.lowest, self.highest = np.minimum(self.lowest, q.min(1)), np.maximum(self.highest, q.max(1))
        self.kept, self.stop = self.kept + len(time), float(time[-1])

    def _drift(self) -> float:
        """How far the stamps stray from a uniform grid with the mean step [s]."""
        made, took = (np.concatenate(parts) for parts in zip(*self.clock, strict=True))
        return float(np.abs(took - made * (self.usual_time / self.usual_steps)).max(initial=0.0))

    def survey(self, radians: Array, rest_speed: float) -> Survey:
        """The record; `radians` (n_joints,) is what counts as a radian of each joint [rad or m]."""
        irregular = self.deviation > UNIFORM * self.step or self._drift() > _DRIFT * self.step
        # A long regular log must not drift from its stamps, so its step is the mean; an irregular one keeps the usual.
        step = self.step if irregular else self.usual_time / self.usual_steps
        return Survey(
            n_samples=self.n_samples,
            repeated=self.n_samples - self.kept,
            grid=Grid(1.0 / step, irregular),
            gaps=tuple(self.gaps),
            n_gaps=self.n_gaps,
            stretches=tuple(self.stretches),
            start=self.start,
            stop=self.stop,
            evidence=band_evidence(
                *self.spectrum.densities(),
                self.spectrum.resolution,
                self.highest - self.lowest,
                radians,
                [samples * step for samples in self.stretches],
                rest_speed,
            ),
            lowest=frozen(self.lowest),
            highest=frozen(self.highest),
        )
