"""From stamps as they came to uniform stretches: repeats dropped, stalls repaired, gaps cut, time resampled.

All of it works along a stream of blocks, and the result does not depend on where the blocks end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask
from dynident.logs.columns import kind_of
from dynident.logs.log import Log
from dynident.signals.thresholds import THRESHOLDS
from dynident.signals.wraps import unwrap_blocks

_REACH = 256  # rows before and behind a reading that tell whether it has stalled
_SPLINE_HALO = 40  # samples: the influence of a spline's end falls by 3.7 per sample


@dataclass(frozen=True)
class Grid:
    """The uniform time of a log.

    Attributes:
        rate: Samples per second.
        irregular: Whether stamps differ from a uniform grid, so that signals are resampled.
    """

    rate: float
    irregular: bool

    @property
    def gap(self) -> float:
        """A step longer than this begins a new stretch [s]."""
        return max(THRESHOLDS.gap_steps / self.rate, THRESHOLDS.gap_s)


Chunk = tuple[float, Array, bool]  # samples of a stretch: its start [s], (n_signals, n_samples), whether it ends here


def fresh_blocks(
    blocks: Iterable[Log], stalled: dict[str, int] | None = None, wraps: dict[str, int] | None = None
) -> Iterator[Log]:
    """The blocks without rows that repeat the one before, jumps by turns, or positions that stalled: lines are there.

    Args:
        blocks: A log.
        stalled: To count the readings replaced, by channel.
        wraps: To count the jumps taken back, by channel.
    """
    unwrapped = unwrap_blocks(blocks, {} if wraps is None else wraps)
    return repair_stalls(_without_repeats(unwrapped), {} if stalled is None else stalled)


def _without_repeats(blocks: Iterable[Log]) -> Iterator[Log]:
    """The blocks without rows that repeat the one before, by stamp or (in short runs) by value."""
    held: Log | None = None  # rows whose fate the next block decides
    standing = spare = False  # whether they stand still for long already; whether the first of them is dropped
    for block in blocks:
        log = block if held is None else _join_blocks(held, block)
        still, same = _repeats(log)
        runs = _runs(same)
        if runs and standing and runs[0][0] == 0:
            runs[0] = (-THRESHOLDS.max_stutter_rows - 1, runs[0][1])
        drop = still.copy()
        for first, last in runs:
            if last - first <= THRESHOLDS.max_stutter_rows:
                drop[max(first, 0) : last] = True
        # A run that reaches the end of the block goes on, perhaps: the row before it and the run are held back.
        open_run = runs[-1] if runs and runs[-1][1] == len(same) else (len(same), len(same))
        standing = open_run[1] - open_run[0] > THRESHOLDS.max_stutter_rows
        border = len(log) - 1 if standing else max(open_run[0], 0)
        keep = np.concatenate([[not spare], ~drop])
        spare = not keep[border]
        if border:
            given = log.samples(np.flatnonzero(keep[:border]))
            if len(given):
                yield given
        held = log.samples(slice(border, None))
    if held is not None:
        still, same = _repeats(held)
        short = len(same) <= THRESHOLDS.max_stutter_rows and not standing
        rest = held.samples(np.flatnonzero(np.concatenate([[not spare], ~(still | (same & short))])))
        if len(rest):
            yield rest


def _join_blocks(first: Log, second: Log) -> Log:
    channels = {name: np.concatenate([first.channels[name], values]) for name, values in second.channels.items()}
    return replace(second, time=np.concatenate([first.time, second.time]), channels=channels)


def _repeats(log: Log) -> tuple[Mask, Mask]:
    """For each row but the first: whether its stamp does not advance, whether all its values equal the row before."""
    same = np.full(len(log) - 1, bool(log.channels))
    for values in log.channels.values():
        same &= values[1:] == values[:-1]
    return np.diff(log.time) == 0.0, same


def _runs(flags: Mask) -> list[tuple[int, int]]:
    """(first, end) of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def repair_stalls(blocks: Iterable[Log], stalled: dict[str, int]) -> Iterator[Log]:
    """The blocks with straight lines in place of positions that stalled (`find_stalls`).

    Whether a reading stalled depends on `_REACH` rows before and behind it, so that many are held back.

    Args:
        blocks: A log, without repeated rows.
        stalled: Counts the readings replaced, by channel.
    """
    held: Log | None = None
    done = 0  # rows held that have been given already
    for block in itertools.chain(blocks, [None]):
        if block is None and held is None:
            return
        log = held if block is None else block if held is None else _join_blocks(held, block)
        assert log is not None
        ready = len(log) if block is None else max(len(log) - _REACH, done)
        if ready > done:
            yield _repair_rows(log, done, ready, stalled)
        keep = max(ready - _REACH - 1, 0)
        held, done = log.samples(slice(keep, None)), ready - keep


def _repair_rows(log: Log, first: int, end: int, stalled: dict[str, int]) -> Log:
    """Some rows of a log, stalls among them repaired and counted."""
    own = log.samples(slice(first, end))
    changed = {}
    for name, values in log.channels.items():
        if kind_of(name) not in ("q", "qm"):
            continue
        line, where = find_stalls(log.time, values)
        where = where[first:end]
        if where.any():
            changed[name] = np.where(where, line[first:end], values[first:end])
            stalled[name] = stalled.get(name, 0) + int(np.count_nonzero(where))
    return replace(own, channels={**own.channels, **changed}) if changed else own


def find_stalls(time: Array, x: Array) -> tuple[Array, Mask]:
    """Readings of a position that are not fresh: they repeat while the joint moves on, then jump.

    An encoder of limited resolution repeats as well, when the joint moves by less than a step of it per sample. It then
    jumps by one step like everywhere around. So a run of repeats is a stall only where the jump behind it is longer
    than the steps around it, and where the line from the last fresh reading to the next misses the repeats by several
    times both the resolution there and the scatter of the fresh readings around a parabola: that is, where the joint
    moved before and behind with the velocity of the line.

    Args:
        time: (n,) stamps [s].
        x: (n,) readings.

    Returns:
        The readings on straight lines between fresh ones, and which of them have stalled, both (n,).
    """
    fresh = np.flatnonzero(x[1:] != x[:-1]) + 1  # what came before the first reading is not known
    where: Mask = np.zeros(len(x), dtype=bool)
    side = THRESHOLDS.stall_neighbors
    steps, repeats = np.diff(x[fresh]), np.diff(fresh) - 1
    # Runs between fresh readings i and i + 1 with enough neighbors near enough to be looked at.
    i = np.flatnonzero(repeats > 0)
    i = i[(i >= side) & (i + 1 + side < len(fresh))]
    i = i[fresh[i + 1 + side] - fresh[i - side] <= _REACH]
    around = i[:, None] + np.concatenate([np.arange(-side, 0), np.arange(1, side + 1)])
    near, jump = steps[around], steps[i]
    longer = np.abs(jump) > THRESHOLDS.stall_jump * np.median(np.abs(near), axis=1)
    onward = longer & (near * jump[:, None] > 0.0).all(1)
    i, near, jump = i[onward], near[onward], jump[onward]
    if not len(i):
        return x, where
    places = i[:, None] + np.arange(-side, side + 2)
    span = time[fresh[i + 1]] - time[fresh[i]]
    missed = np.abs(jump) * (time[fresh[i + 1] - 1] - time[fresh[i]]) / span  # by the line, at the last repeat
    t = (time[fresh[places]] - time[fresh[i]][:, None]) / span[:, None]
    Q = np.linalg.qr(t[:, :, None] ** np.arange(3))[0]
    off = x[fresh[places]] - x[fresh[i]][:, None]
    off = off - np.einsum("nij,nj->ni", Q, np.einsum("nij,ni->nj", Q, off))
    scatter = np.sqrt((off**2).sum(1) / (2 * side - 1))
    stands_out = missed > THRESHOLDS.stall_ratio * np.maximum(scatter, _resolution(near))
    for k in i[stands_out]:
        steps_of_time = np.diff(time[fresh[k - side] : fresh[k + 1 + side] + 1])
        if steps_of_time.max() <= Grid(1.0 / float(steps_of_time.mean()), irregular=False).gap:
            where[fresh[k] + 1 : fresh[k + 1]] = True
    return np.interp(time, time[~where], x[~where]), where


def _resolution(steps: Array) -> Array:
    """The step of an encoder that some steps of its readings tell, (n,) from (n, n_steps).

    Steps are multiples of it, so the smallest difference between them is. What is less than a hundredth of a step is
    rounding of the numbers; where nothing is left, the steps themselves may be single ones of the encoder.
    """
    largest = np.abs(steps).max(1)
    differences = np.abs(np.diff(steps, axis=1))
    differences[differences <= 0.01 * largest[:, None]] = np.inf
    return np.asarray(np.minimum(differences.min(1), largest))


def uniform_chunks(blocks: Iterable[tuple[Array, Array]], grid: Grid) -> Iterator[Chunk]:
    """Stretches of uniformly sampled signals.

    Args:
        blocks: Stamps (n,) and signals (n_signals, n), in order, without repeated rows.
        grid: Rate and regularity.

    Yields:
        Start of the stretch [s]; its next samples, (n_signals, n_samples); whether it ends with them.
    """
    builder: _Stretch | None = None
    for time, values in blocks:
        edges = [0, *(int(cut) + 1 for cut in np.flatnonzero(np.diff(time) > grid.gap)), len(time)]
        for number, (first, end) in enumerate(itertools.pairwise(edges)):
            new = number > 0 or builder is None or time[0] - builder.until > grid.gap
            if new:
                if builder is not None:
                    yield builder.finish()
                builder = _Stretch(float(time[first]), grid)
            assert builder is not None
            yield from builder.push(time[first:end], values[:, first:end])
    if builder is not None:
        yield builder.finish()


class _Stretch:
    """A stretch without gaps while its samples come in."""

    def __init__(self, start: float, grid: Grid) -> None:
        self.start, self.grid, self.until = start, grid, start
        self._time = np.zeros(0)
        self._values: Array | None = None
        self._done = 0  # grid points given so far

    def push(self, time: Array, values: Array) -> Iterator[Chunk]:
        """More samples; gives what can be determined already."""
        self.until = float(time[-1])
        self._values = values if self._values is None else np.concatenate([self._values, values], axis=1)
        self._time = np.concatenate([self._time, time])
        if not self.grid.irregular:
            # One sample is held back, so that the stretch always has something to end with.
            ready, self._values, self._time = self._values[:, :-1], self._values[:, -1:], self._time[-1:]
            if ready.shape[1]:
                yield self.start, ready, False
        elif len(self._time) > 4 * _SPLINE_HALO:
            border = self._time[-_SPLINE_HALO - 1]
            yield self.start, self._resample(float(border), inclusive=False), False
            keep = max(0, int(np.searchsorted(self._time, border)) - _SPLINE_HALO)
            self._time, self._values = self._time[keep:], self._values[:, keep:]

    def finish(self) -> Chunk:
        """The end of the stretch."""
        assert self._values is not None
        if self.grid.irregular:
            return self.start, self._resample(self.until, inclusive=True), True
        return self.start, self._values, True

    def _resample(self, border: float, inclusive: bool) -> Array:
        """The signals at the grid points not given yet, up to the border."""
        assert self._values is not None
        places = (border - self.start) * self.grid.rate
        count = int(np.floor(places + 1e-9)) + 1 if inclusive else int(np.ceil(places - 1e-9))
        wanted = self.start + np.arange(self._done, max(count, self._done)) / self.grid.rate
        self._done = max(count, self._done)
        if not len(wanted):
            return self._values[:, :0]
        if len(self._time) < 4:
            return np.array([np.interp(wanted, self._time, row) for row in self._values])
        from scipy.interpolate import CubicSpline  # takes a third of a second to import, and most logs are regular

        return np.asarray(CubicSpline(self._time, self._values, axis=1)(wanted))
