r"""Changes of the payload: the rows of the last two seconds against all rows before.

If both speak of the same body, one set of values explains them together as well as two sets explain them apart. With
:math:`\rho^2` the squared residual that stands in the last corner of a factor,

.. math:: F = \frac{\rho^2(\text{old} \cup \text{new}) - \rho^2(\text{old}) - \rho^2(\text{new})}{k\, f\, s^2}

is near one (Chow 1960), where k counts the unknowns, s^2 is the variance of a row and n rows weigh as n / f independent
ones. A payload that is picked or released makes it grow by orders of magnitude. Where the change took place is the cut
that leaves the least residual on both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.information.factor import absorb
from dynident.online.history import StretchRows, merge_stretches
from dynident.online.thresholds import THRESHOLDS

KINDS = ("pick", "release", "change")


@dataclass(frozen=True)
class Change:
    """A payload that was picked, released or exchanged.

    Attributes:
        time: Latest time at which it can have happened [s].
        before: Earliest [s]. The two are far apart where the robot rested, or moved in a way that does not show it.
        found: When this was noticed [s].
        mass_before: [kg].
        mass_after: [kg]; while provisional, as it is known so far.
        kind: "pick", "release" or "change".
        evidence: F of the test.
        instant: Most likely time [s].
        mass_before_std: Standard deviation [kg]; infinite where the motion does not determine it.
        mass_after_std: The same of the mass after.
        provisional: Whether times and mass are those when it was noticed; they are refined when a window of motion
            has followed, and once more when another change is noticed.
    """

    time: float
    before: float
    found: float
    mass_before: float
    mass_after: float
    kind: str
    evidence: float
    instant: float = math.nan
    mass_before_std: float = math.inf
    mass_after_std: float = math.inf
    provisional: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is not known is None."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in given.items()}


def detect_change(
    old: StretchRows, ring: list[StretchRows], window: int, n_tested: int
) -> tuple[float, int, int] | None:
    """Whether the last stretches contradict all that came before; None when they do not, or are too few.

    Args:
        old: All rows before the last ones.
        ring: Stretches of the last rows, oldest first; the change is looked for among all of them.
        window: Instants at the end of the ring that are compared with all before.
        n_tested: The first so many unknowns may have changed; friction of the session, the others, has not.

    Returns:
        F, the stretches of the ring that surely belong to the old payload, and those that may: the ones after them
        surely show the new one.
    """
    k, first, held = len(old.R) - 1, len(ring), 0
    while first > 0 and held < window:
        first -= 1
        held += ring[first].instants
    before, new = merge_stretches([old, *ring[:first]], k), merge_stretches(ring[first:], k)
    if min(before.rows, new.rows) < THRESHOLDS.change_rows_per_unknown * n_tested:
        return None
    before.alike = alike_before(old, ring)
    statistic = test(before, new, n_tested)
    if statistic < THRESHOLDS.change_statistic:
        return None
    return (statistic, *_cuts(old, ring, n_tested))


def alike_before(old: StretchRows, ring: list[StretchRows]) -> float:
    """Rows that weigh as much as one independent row, by the oldest rows that tell.

    Errors after a change are all alike, and would excuse it.
    """
    if old.instants:
        return old.alike
    return next((part.alike for part in ring if part.alike < THRESHOLDS.most_inflation), THRESHOLDS.most_inflation)


def test(old: StretchRows, new: StretchRows, n_tested: int) -> float:
    """F of two stretches: how much worse one set of values explains both than two sets."""
    k = len(old.R) - 1
    both = merge_stretches([old, new], k)
    apart = residual_apart(old, new, n_tested)
    variance = max(apart / max(old.rows + new.rows - k - n_tested, 1.0), 1e-300)
    return float((both.residual_square - apart) / (n_tested * old.alike * variance))


def residual_apart(old: StretchRows, new: StretchRows, n_tested: int) -> float:
    """Squared residual when the first unknowns may differ between two stretches and the others not."""
    k = len(old.R) - 1
    rows = np.zeros((2 * (k + 1), k + n_tested + 1))
    rows[: k + 1, :k], rows[: k + 1, -1] = old.R[:, :k], old.R[:, k]
    rows[k + 1 :, :k], rows[k + 1 :, -1] = new.R[:, :k], new.R[:, k]
    rows[k + 1 :, k:-1] = new.R[:, :n_tested]
    R = np.zeros((rows.shape[1], rows.shape[1]))
    absorb(R, np.array(rows.T, order="C"))
    return float(R[-1, -1] ** 2)


def _cuts(old: StretchRows, ring: list[StretchRows], n_tested: int) -> tuple[int, int]:
    """First and last place to cut the ring such that both sides are explained as well as anywhere, each by its own."""
    k = len(old.R) - 1
    costs, rows = [], old.rows
    for cut in range(len(ring)):
        before, after = merge_stretches([old, *ring[:cut]], k), merge_stretches(ring[cut:], k)
        costs.append(residual_apart(before, after, n_tested))
        rows += ring[cut].rows
    noise = old.alike * min(costs) / max(rows - k - n_tested, 1.0)
    likely = np.flatnonzero(np.array(costs) <= min(costs) + THRESHOLDS.likely_cut_variances * noise)
    return int(likely[0]), int(likely[-1])


def kind_of(before: tuple[float, float], after: tuple[float, float], least: float) -> str:
    """What happened, in a word, from masses with their standard deviations; below `least` or three of those is none."""
    had, has = (mass >= max(least, 3.0 * doubt) for mass, doubt in (before, after))
    if had == has:
        return "change"
    return "pick" if has else "release"
