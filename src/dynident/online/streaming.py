"""`LatencyRecord`: how long samples took from their arrival to the updated estimate, in constant memory."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.online.checkpoint import Checkpoints
from dynident.online.guard import Guard
from dynident.online.identifier import OnlineIdentifier
from dynident.online.options import LiveOptions, OnlineOptions
from dynident.online.prior import same_known
from dynident.online.sources import open_source
from dynident.online.sources.replay import AnyLog
from dynident.online.sources.source import Samples, Source, SourceError
from dynident.online.state import Sample, StreamState
from dynident.options import keywords, option_fields, plain_options
from dynident.robot.model import Robot

_LEAST = 1e-6  # [s] lower edge of the first bin
_BINS_PER_DECADE = 50  # a bin is 4.7 % wide
_DECADES = 8  # up to 100 s


class LatencyRecord:
    """Counts of times in bins of equal ratio.

    Attributes:
        count: Times so far.
        longest: The longest of them [s].
    """

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._bins = [0] * (_BINS_PER_DECADE * _DECADES + 1)

    def add(self, seconds: float) -> None:
        """One more time [s]."""
        place = 0 if seconds <= _LEAST else math.ceil(_BINS_PER_DECADE * math.log10(seconds / _LEAST))
        self._bins[min(place, len(self._bins) - 1)] += 1
        self.count += 1
        self.longest = max(self.longest, seconds)

    def quantile(self, share: float) -> float:
        """Time that a share of all did not exceed [s]: the upper edge of its bin, at most 4.7 % too long."""
        wanted, below = share * self.count, 0
        for place, count in enumerate(self._bins):
            below += count
            if below >= wanted and below:
                return min(_LEAST * math.pow(10.0, place / _BINS_PER_DECADE), self.longest)
        return math.nan

    def as_dict(self) -> dict[str, float] | None:
        """Median, 99.9 % and longest [s]; None without any."""
        if not self.count:
            return None
        return {"median": self.quantile(0.5), "most": self.quantile(0.999), "longest": self.longest}


# ----------------------------------------------------------------------------------------------------------------------
# `stream`: samples in, states out, for as long as there are samples.


@keywords(LiveOptions)
def stream(
    robot: Robot | Fit, source: Source | AnyLog | Sequence[AnyLog], options: LiveOptions
) -> Iterator[StreamState]:
    """Identify while samples come; each state is the estimate by then, and the last one that of the whole stream.

    Args:
        robot: The robot; or an earlier identification of it, whose links are then known: what is found is the payload.
        source: Where samples come from: `udp://127.0.0.1:9870`, `tcp://..`, `-` for standard input, a log or several,
            or a source.
        options: By name, see `LiveOptions`; those of `OnlineOptions` are for the estimator.

    Raises:
        SourceError: If the source cannot be used, or gives no sample.
    """
    model = robot.robot if isinstance(robot, Fit) else robot
    used = _identifier(robot, options)
    opened = open_source(source, model, pace=options.pace, columns=options.columns, listen_all=options.listen_all)
    return _Run(opened, used, options).states()


def _identifier(robot: Robot | Fit, options: LiveOptions) -> OnlineIdentifier:
    """The estimator: from the checkpoint if there is one, else as given, else a new one."""
    given, checkpoint = options.identifier, options.checkpoint
    own = plain_options(options, OnlineOptions)
    wanted = [name for name, field in option_fields(OnlineOptions).items() if own[name] is not field.default]
    if given is not None and wanted:
        raise InputError(f"{', '.join(wanted)}: belong to the identifier that is given; make it with them")
    new = given if given is not None else _new_identifier(robot, own)
    if checkpoint is None or not Path(checkpoint).is_file():
        return new
    model = robot.robot if isinstance(robot, Fit) else robot
    structure = getattr(new, "structure", None)  # it is code, which a file of numbers does not hold
    kept = type(new).load(Path(checkpoint), model, *(() if structure is None else (structure,)))
    _check_same(new, kept, str(checkpoint))
    return kept


def _new_identifier(robot: Robot | Fit, options: dict[str, Any]) -> OnlineIdentifier:
    """An estimator of a robot's parameters, or of the payload of one that has been identified."""
    if not isinstance(robot, Fit):
        return OnlineIdentifier(robot, **options)
    beside: dict[str, Any] = {"prior": robot, "payload": True}
    return OnlineIdentifier(robot.robot, **options | {name: x for name, x in beside.items() if options[name] is None})


def _check_same(new: OnlineIdentifier, kept: OnlineIdentifier, path: str) -> None:
    """Refuse a checkpoint of another estimation, rather than quietly go on with that one's options."""
    for what, one, other in (
        ("options", _recorded_options(new), _recorded_options(kept)),
        ("parameters", new.state().names, kept.state().names),
    ):
        if one != other:
            raise InputError(f"{path}: is a checkpoint with other {what}; give the same ones, or another file")
    if not same_known(getattr(new, "known", None), getattr(kept, "known", None)):
        raise InputError(f"{path}: is a checkpoint beside another fit; give the same one, or another file")


def _recorded_options(identifier: OnlineIdentifier) -> dict[str, Any] | None:
    options: OnlineOptions | None = getattr(identifier, "options", None)
    return None if options is None else options.as_dict()


def _last_time(identifier: OnlineIdentifier) -> float | None:
    """Stamp of the last sample that an estimator has seen [s]; None for a new one."""
    last: float | None = identifier.state().time
    return last if last is not None and math.isfinite(last) else None


class _Run:
    """One pass through a source."""

    def __init__(self, source: Source, identifier: OnlineIdentifier, options: LiveOptions) -> None:
        self._source, self._identifier, self._options = source, identifier, options
        self._stop = options.stop or threading.Event()
        self._latency = LatencyRecord()
        self._last = _last_time(identifier)
        self._guard = Guard(source.tally, self._last)
        self._began = self._heard = time.monotonic()
        self._first: float | None = None  # stamp of this run's first sample
        self._complete = False  # all that was asked for has come
        self._due = math.inf if options.clock == "stream" else self._began + options.interval
        if self._last is not None:
            source.skip(self._last)

    def states(self) -> Iterator[StreamState]:
        """States while samples come, and the last one."""
        source, keep = self._source, None
        with closing(source):
            try:
                keep = self._checkpoints()
                for block in source.blocks():
                    fresh = None if block is None or not len(block) else self._guard.admit(block)
                    for piece, ends in self._pieces(fresh):
                        self._feed(piece)
                        if ends:
                            yield self._state()
                    if keep is not None:
                        keep.when_due()
                    if self._real_time_due():
                        yield self._state()
                    if self._over(fresh is not None):
                        break
                if self._first is None and self._last is None and not self._stop.is_set():
                    raise SourceError(source.label, f"gave no sample{self._why()}")
            finally:
                if keep is not None and self._first is not None:
                    keep.finish()
        yield self._state(final=True)

    def _checkpoints(self) -> Checkpoints | None:
        options = self._options
        if options.checkpoint is None:
            return None
        return Checkpoints(self._identifier, options.checkpoint, options.checkpoint_every)

    def _feed(self, block: Samples) -> None:
        """Samples to the estimator, as many at once as it may take."""
        for first in range(0, len(block), self._options.together):
            self._feed_at_once(block.chosen(slice(first, first + self._options.together)))

    def _feed_at_once(self, block: Samples) -> None:
        if len(block) == 1:
            dq = None if block.dq is None else block.dq[0]
            self._identifier.update(Sample(float(block.time[0]), block.q[0], block.tau[0], dq))
        else:
            self._identifier.update_many(block.time, block.q, block.tau, block.dq)
        if block.arrived is not None:
            now = time.perf_counter()
            for arrived in block.arrived.tolist():
                self._latency.add(now - arrived)
        self._source.tally.used += len(block)
        self._last = float(block.time[-1])

    def _pieces(self, block: Samples | None) -> Iterator[tuple[Samples, bool]]:
        """A block cut where a state is due by the stamps, and where the stream is to end."""
        if block is None:
            return
        options, interval = self._options, self._options.interval
        if self._first is None:
            self._first = float(block.time[0])
            if options.clock == "stream":
                self._due = self._first + interval
        block = self._wanted(block, self._first)
        while options.clock == "stream" and len(block):
            before = int(np.searchsorted(block.time, self._due))
            if before == len(block):
                break
            cut = before + 1  # the sample at or behind the time that is due belongs to its state
            piece, block = block.chosen(slice(0, cut)), block.chosen(slice(cut, None))
            while self._due <= piece.time[-1]:
                self._due += interval
            yield piece, True
        if len(block):
            yield block, False

    def _wanted(self, block: Samples, first: float) -> Samples:
        """As much of a block as belongs to the count and the duration that were asked for."""
        options, most = self._options, len(block)
        if options.count is not None:
            most = min(most, options.count - self._source.tally.used)
            self._complete = self._source.tally.used + most >= options.count
        if options.duration is not None:
            end = first + options.duration
            within = int(np.searchsorted(block.time, end, side="right"))
            self._complete = self._complete or within < len(block) or bool(block.time[-1] >= end)
            most = min(most, within)
        self._source.tally.received -= len(block) - most  # what comes behind the end was not asked for
        return block.chosen(slice(0, most))

    def _real_time_due(self) -> bool:
        if self._options.clock != "real" or time.monotonic() < self._due:
            return False
        while self._due <= time.monotonic():
            self._due += self._options.interval
        return True

    def _over(self, fresh: bool) -> bool:
        """Whether to end here.

        Raises:
            SourceError: If there has been no sample, and there is no more time to wait for one.
        """
        options, now = self._options, time.monotonic()
        self._heard = now if fresh else self._heard
        if self._stop.is_set() or self._complete:
            return True
        if options.timeout is not None and now - self._heard > options.timeout:
            if self._first is None:
                raise SourceError(self._source.label, f"no sample within {options.timeout:g} s{self._why()}")
            return True
        return False

    def _why(self) -> str:
        """Why packets that came gave no sample."""
        counters = self._source.tally
        if not counters.received and not hasattr(self._source, "host"):  # it listens to nobody
            return "; it is empty, or nothing of it lies in the time that was asked for"
        if not counters.received:
            return "; nothing came at all: check that the sender is running and its address"
        shown = f": the last one {counters.problem}" if counters.problem else ""
        return f"; {counters.received} came, {counters.malformed} malformed and {counters.late} late{shown}"

    def _state(self, *, final: bool = False) -> StreamState:
        elapsed = time.monotonic() - self._began
        estimate, counters = self._identifier.state(), replace(self._source.tally)
        return StreamState(estimate, counters, self._source.label, self._last, elapsed, self._latency.as_dict(), final)
