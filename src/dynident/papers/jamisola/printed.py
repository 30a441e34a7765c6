"""What the paper prints: Tables I to VI, and the constants that fit them."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLE_TIME = 0.01733  # [s] of an update; with KP below, N = 35.50 at the right inertia
KP = 0.41415  # [1/s²]
START = 15.0  # [deg], alternating
GRAVITY_UPDATES, INERTIA_UPDATES = 5000, 20000

_FINE = (1.005, 1.004, 1.003, 1.002, 1.001, 1.000)
_COARSE = (1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09, 1.10)


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper.

    Attributes:
        number: Roman.
        links: Number of links.
        stage: "gravity" or "inertia".
        factors: The factor of each row, the same for all parameters.
        periods: Number of periods; None where the arm falls.
    """

    number: str
    links: int
    stage: str
    factors: tuple[float, ...]
    periods: tuple[float | None, ...]

    @property
    def updates(self) -> int:
        """Number of updates in a run."""
        return GRAVITY_UPDATES if self.stage == "gravity" else INERTIA_UPDATES

    @property
    def texts(self) -> tuple[str, ...]:
        """What it says in each row."""
        return tuple("falls" if number is None else f"{number:g}" for number in self.periods)


TABLES = (
    PrintedTable(
        *("I", 1, "gravity", (1.020, 1.010, *_FINE, 0.999)),
        (8.7, 6.9, 5.8, 5.5, 5.1, 4.8, 4.2, 4.1, None),
    ),
    PrintedTable(
        *("II", 1, "inertia", _COARSE),
        (35.50, 35.57, 36.00, 36.00, 36.10, 36.50, 36.62, 36.60, 37.00, 37.00, 37.13),
    ),
    PrintedTable(
        *("III", 2, "gravity", (1.010, *_FINE, 0.999, 0.998)),
        (5.4, 4.7, 4.5, 4.5, 4.4, 4.2, 4.0, 3.6, None),
    ),
    PrintedTable(
        *("IV", 2, "inertia", _COARSE),
        (35.50, 35.61, 36.00, 36.00, 36.14, 36.50, 36.50, 36.66, 37.00, 37.00, 37.17),
    ),
    PrintedTable(
        *("V", 3, "gravity", (1.010, *_FINE, 0.999, 0.998)),
        (4.5, 4.0, 3.9, 3.9, 3.7, 3.2, 3.1, 3.0, None),
    ),
    PrintedTable(
        *("VI", 3, "inertia", _COARSE),
        (35.50, 35.62, 36.00, 36.00, 36.14, 36.50, 36.50, 36.66, 37.00, 37.00, 37.18),
    ),
)


def printed_table(links: int, stage: str) -> PrintedTable | None:
    """The paper's table for so many links, or None."""
    return next((table for table in TABLES if (table.links, table.stage) == (links, stage)), None)
