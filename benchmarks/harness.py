"""Time two ways of doing one job in turn, so that both see the same machine, and print the ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Job = Callable[[], object]
PAUSE = 0.2  # [s] before each run: threads of the last one may still be spinning


@dataclass(frozen=True)
class Row:
    what: str
    ours: float  # [s]
    theirs: float  # [s]
    peer: str

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def interleaved(what: str, ours: Job, theirs: Job, peer: str, repeats: int = 7) -> Row:
    """Median times of both jobs, run alternately after one warm-up each."""
    ours(), theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for job, into in zip((ours, theirs), times, strict=True):
            time.sleep(PAUSE)
            start = time.perf_counter()
            job()
            into.append(time.perf_counter() - start)
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), peer)


def once(job: Job, repeats: int = 5) -> float:
    """Median time of a job [s]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(rows: list[Row], samples: int) -> None:
    print(f"{'':44}{'dynident':>11}{'peer':>11}{'ratio':>8}  peer")
    for row in rows:
        ours, theirs = (seconds(x / samples) for x in (row.ours, row.theirs))
        print(f"{row.what:44}{ours:>11}{theirs:>11}{row.ratio:>7.1f}x  {row.peer}")
