"""`Counters`: what became of everything that a stream has received."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True)
class Counters:
    """Packets or rows of a stream, by what became of them.

    Attributes:
        received: All that came.
        used: Samples that reached the estimator.
        malformed: Not JSON, wrong lengths, numbers that are not finite or beyond reason.
        late: Older than a sample that came before, or with a stamp that is far off.
        repeated: With the stamp of a sample that came before.
        dropped: Never came, as gaps in the sequence numbers or in the stamps tell.
        overrun: Came, but had to give way to newer ones because the estimator could not keep up.
        restarts: Times the sender's clock started anew.
        problem: What was wrong with the last malformed one; empty without any.
    """

    received: int = 0
    used: int = 0
    malformed: int = 0
    late: int = 0
    repeated: int = 0
    dropped: int = 0
    overrun: int = 0
    restarts: int = 0
    problem: str = ""

    @property
    def lost(self) -> int:
        """Samples that were sent and did not reach the estimator in time: dropped on the way or overrun here."""
        return self.dropped + self.overrun

    def as_dict(self) -> dict[str, int | str]:
        """For JSON."""
        return asdict(self)


class Tally:
    """Counters that are being counted; a source and the stream that reads it share one."""

    def __init__(self) -> None:
        self.received = self.used = self.malformed = self.late = self.repeated = 0
        self.dropped = self.overrun = self.restarts = 0
        self.problem = ""

    def refuse(self, problem: object, count: int = 1) -> None:
        """Count malformed ones."""
        self.malformed += count
        self.problem = str(problem)[:200]  # a packet may have put anything into it

    def counters(self) -> Counters:
        """The numbers now."""
        return replace(Counters(), **vars(self))
