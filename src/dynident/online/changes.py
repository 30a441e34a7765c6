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
from dynident.online.history import Stretch, together

LIMIT = 15.0  # of F: friction that is not modelled brings it to 12 in UR10e logs, a payload beyond 250 in ten seconds
LEAST_ROWS = 5.0  # rows per unknown on each side
LIKELY = 36.0  # variances of the noise: cuts that are worse by less may be the right one
KINDS = ("pick", "release", "change")
MASS_SIGNIFICANT = 4.0  # deviations of the difference of the masses before and after


@dataclass(frozen=True)
class Change:
    """A payload that was picked, released or exchanged.

    Attributes:
        time: Latest time at which it can have happened [s].
        before: Earliest [s]. The two are far apart where the robot rested, or moved in a way that does not tell.
        found: When this was noticed [s].
        mass_before: [kg].
        mass_after: [kg]; while provisional, as it is known so far.
        kind: "pick", "release" or "change".
        evidence: F of the test.
        instant: Most likely time [s].
        mass_before_std: Standard deviation [kg]; infinite where the motion did not tell.
        mass_after_std: The same of the mass after.
        provisional: Whether times and mass are those at the moment of notice; they are refined when a window of motion
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


@dataclass(frozen=True)
class Suspicion:
    """What the test says.

    Attributes:
        statistic: F.
        first: Stretches of the ring that surely belong to the old payload.
        last: Stretches that may; those after it surely show the new one.
    """

    statistic: float
    first: int
    last: int


def suspicion(old: Stretch, ring: list[Stretch], window: int, n_tested: int) -> Suspicion | None:
    """Whether the last stretches contradict all that came before; None when they do not, or cannot tell.

    Args:
        old: All rows before the last ones. How much rows are alike is taken from its end: errors after a change are all
            alike, and would excuse it.
        ring: Stretches of the last rows, oldest first; the change is looked for among all of them.
        window: Instants at the end of the ring that are compared with all before.
        n_tested: The first so many unknowns may have changed; friction of the session, the others, has not.
    """
    k, first, held = len(old.R) - 1, len(ring), 0
    while first > 0 and held < window:
        first -= 1
        held += ring[first].instants
    before, new = together([old, *ring[:first]], k), together(ring[first:], k)
    if min(before.rows, new.rows) < LEAST_ROWS * n_tested:
        return None
    before.alike = old.alike if old.instants else ring[0].alike
    statistic = test(before, new, n_tested)
    if statistic < LIMIT:
        return None
    return Suspicion(statistic, *_cuts(old, ring, n_tested))


def test(old: Stretch, new: Stretch, n_tested: int) -> float:
    """F of two stretches: how much worse one set of values explains both than two sets."""
    k = len(old.R) - 1
    both = together([old, new], k)
    apart = residual_apart(old, new, n_tested)
    variance = max(apart / max(old.rows + new.rows - k - n_tested, 1.0), 1e-300)
    return float((both.residual_square - apart) / (n_tested * old.alike * variance))


def residual_apart(old: Stretch, new: Stretch, n_tested: int) -> float:
    """Squared residual when the first unknowns may differ between two stretches and the others not."""
    k = len(old.R) - 1
    rows = np.zeros((2 * (k + 1), k + n_tested + 1))
    rows[: k + 1, :k], rows[: k + 1, -1] = old.R[:, :k], old.R[:, k]
    rows[k + 1 :, :k], rows[k + 1 :, -1] = new.R[:, :k], new.R[:, k]
    rows[k + 1 :, k:-1] = new.R[:, :n_tested]
    R = np.zeros((rows.shape[1], rows.shape[1]))
    absorb(R, np.array(rows.T, order="C"))
    return float(R[-1, -1] ** 2)


def _cuts(old: Stretch, ring: list[Stretch], n_tested: int) -> tuple[int, int]:
    """First and last place to cut the ring such that both sides are explained as well as anywhere, each by its own."""
    k = len(old.R) - 1
    costs, rows = [], old.rows
    for cut in range(len(ring)):
        before, after = together([old, *ring[:cut]], k), together(ring[cut:], k)
        costs.append(residual_apart(before, after, n_tested))
        rows += ring[cut].rows
    noise = old.alike * min(costs) / max(rows - k - n_tested, 1.0)
    likely = np.flatnonzero(np.array(costs) <= min(costs) + LIKELY * noise)
    return int(likely[0]), int(likely[-1])


def kind_of(before: tuple[float, float], after: tuple[float, float], least: float) -> str:
    """What happened, in a word, from masses with their deviations; below `least` or three deviations there is none."""
    had, has = (mass >= max(least, 3.0 * doubt) for mass, doubt in (before, after))
    if had == has:
        return "change"
    return "pick" if has else "release"
