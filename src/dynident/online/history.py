r"""Square-root information with a memory: stretches of rows, forgetting, and a floor under the standard deviations.

A stretch holds the triangular factor [R | z] of its rows. Old information Y = R'R and that of a new stretch C are
compared in the coordinates in which Y is the identity, :math:`R^{-T} C R^{-1} = V \operatorname{diag}(c) V'`:

.. math:: R \leftarrow \operatorname{diag}(\sqrt{\lambda_i})\, V' R, \qquad
          1 - \lambda_i = \min(1 - \lambda,\; c_i)

In a direction that the new rows say nothing about, c_i = 0 and nothing is forgotten; no direction ever loses more than
it gains, so information cannot wind down; and where motion is rich the rule is exponential forgetting.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, gather_arrays, on_one_thread, restore_parts
from dynident.information.factor import absorb
from dynident.information.solution import RANK_SHARE, solve_weighted
from dynident.online.rows import absorber
from dynident.online.thresholds import THRESHOLDS

_FAINT = 1e-12  # share of the largest entry below which a diagonal entry of a factor is no information


class StretchRows:
    """Rows of a stretch of motion, compressed.

    Attributes:
        R: (k + 1, k + 1) factor of the rows, the torque last; its last entry is the norm of what no values explain.
        rows: Rows behind it; not whole after forgetting.
        cross: (k, n) sum of rows over unknowns times rows over base parameters, or (0, 0) where the two are the same.
        instants: Instants of motion in it.
        start: Time of the first [s].
        stop: Time of the last [s].
        alike: Rows that weighed as much as one independent row by its end; a change makes errors alike later on.
    """

    def __init__(self, k: int, n_cross: int = 0) -> None:
        self.R = np.zeros((k + 1, k + 1))
        self.cross = np.zeros((k, n_cross)) if n_cross else np.zeros((0, 0))
        self.rows, self.instants = 0.0, 0
        self.start, self.stop, self.alike = np.inf, -np.inf, 1.0

    def add(self, *others: StretchRows) -> None:
        """The rows of other stretches as well; cross products only where it has some, which is slower."""
        filled = [part for part in others if part.instants]
        if not filled:
            return
        # At once: a call costs more than rows do.
        absorb(self.R, np.concatenate([part.R.T for part in filled], axis=1))
        if self.cross.size:
            self.cross += np.sum([part.cross for part in filled], axis=0)
        self.rows += sum(part.rows for part in filled)
        self.instants += sum(part.instants for part in filled)
        self.start = min(self.start, *(part.start for part in filled))
        self.stop = max(self.stop, *(part.stop for part in filled))
        self.alike = filled[-1].alike

    def copy(self) -> StretchRows:
        """An independent copy."""
        twin = StretchRows(len(self.R) - 1, self.cross.shape[1])
        twin.restore(self.as_arrays())
        return twin

    @property
    def residual_square(self) -> float:
        """Squared norm of what no values explain, in squared weights."""
        return float(self.R[-1, -1] ** 2)

    def clear(self) -> None:
        """Forget everything, keeping the arrays in place."""
        self.R[:], self.cross[:] = 0.0, 0.0
        self.rows, self.instants, self.start, self.stop, self.alike = 0.0, 0, np.inf, -np.inf, 1.0

    def as_arrays(self) -> dict[str, Array]:
        """Plain arrays, for checkpoints."""
        counts = np.array([self.rows, self.instants, self.start, self.stop, self.alike], dtype=np.float64)
        return {"R": self.R.copy(), "cross": self.cross.copy(), "counts": counts}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from what `as_arrays` gave."""
        self.R[:], self.cross[:] = arrays["R"], arrays["cross"]
        rows, instants, self.start, self.stop, self.alike = (float(x) for x in arrays["counts"])
        self.rows, self.instants = rows, int(instants)


class StretchOfRows:
    """Rows of a stretch one by one, as long as their weights are not known.

    Args:
        *parts: Rows over the unknowns (k + 1, n, n_joints), and the same over base parameters.
    """

    def __init__(self, *parts: tuple[Array, Array]) -> None:
        self._parts = list(parts)

    def add(self, slab: Array, beside: Array) -> None:
        """More rows; the arrays may be written over afterwards."""
        self._parts.append((np.array(slab), np.array(beside)))

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not self._parts

    def all(self) -> tuple[Array, Array]:
        """All of them, (.., n, n_joints) each; none where there are none."""
        if not self._parts:
            return np.zeros((1, 0, 0)), np.zeros((1, 0, 0))
        slab, beside = zip(*self._parts, strict=True)
        return np.concatenate(slab, axis=1), np.concatenate(beside, axis=1)


def merge_stretches(parts: list[StretchRows], k: int, n_cross: int = 0) -> StretchRows:
    """All rows of some stretches; without `n_cross` their cross products are left out, which is faster."""
    whole = StretchRows(k, n_cross)
    whole.add(*parts)
    return whole


@on_one_thread
def make_room(old: StretchRows, new: StretchRows, forgetting: str, share: float) -> None:
    """Let old information go before new comes; it keeps a share of its weight (where new rows replace it)."""
    if forgetting == "none" or not old.instants:
        return
    if forgetting == "exponential":
        old.R *= np.sqrt(share)
    else:
        _directional(old, new, share)
    old.rows *= share
    old.cross *= share


def _directional(old: StretchRows, new: StretchRows, share: float) -> None:
    upper = old.R[:-1, :-1]
    size = np.abs(np.diag(upper))
    if not (size > _FAINT * max(size.max(initial=0.0), 1e-300)).all():
        return  # some direction is not known at all yet: there is nothing to spare
    relative = np.linalg.solve(upper.T, new.R[:-1, :-1].T)  # (C's factor R^-1)'
    gain, V = np.linalg.eigh(relative @ relative.T)
    keep = np.sqrt(1.0 - np.minimum(1.0 - share, np.maximum(gain, 0.0)))
    left = np.sqrt(share) * old.R[-1, -1]
    turned = keep[:, None] * (V.T @ old.R[:-1])
    old.R[:] = 0.0
    absorb(old.R, np.array(turned.T, order="C"))
    last = np.zeros((len(old.R), 1))
    last[-1, 0] = left
    absorb(old.R, last)


@on_one_thread
def raise_to_floor(part: StretchRows, floor: Array, variance: float) -> int:
    """Let standard deviations grow to a floor, as if the parameters had moved at random since; how many were below it.

    With x' = x + w and w of variance Q in the parameters concerned, P' = P + Q; on factors, w is eliminated from the
    rows [Q^-1/2 w = 0; R (x' - w) = z].

    Args:
        part: Changed.
        floor: (k,) smallest standard deviations, zero for none.
        variance: Of a row of weight one.
    """
    k = len(part.R) - 1
    size = np.abs(np.diag(part.R)[:k])
    if not (floor > 0.0).any() or not (size > _FAINT * max(size.max(initial=0.0), 1e-300)).all():
        return 0
    own = np.sum(np.linalg.inv(part.R[:k, :k]) ** 2, axis=1)
    missing = floor**2 / max(variance, 1e-300) - own
    low = np.flatnonzero((floor > 0.0) & (missing > 1e-9 * own))
    if not len(low):
        return 0
    m = len(low)
    rows = np.zeros((m + k + 1, m + k + 1))
    rows[range(m), range(m)] = 1.0 / np.sqrt(missing[low])
    rows[m : m + k, :m], rows[m:, m:] = -part.R[:k, low], part.R
    turned = np.zeros_like(rows)
    absorb(turned, np.array(rows.T, order="C"))
    part.R[:] = np.triu(turned[m:, m:])
    return m


# ----------------------------------------------------------------------------------------------------------------------
# The rows so far, from old to new: a part that forgets, a recent part, stretches, and the stretch in the making.


class RowHistory:
    """Everything the rows say about the unknowns.

    Args:
        k: Unknowns.
        n_cross: Base parameters beside them, 0 where they are the unknowns.
        slab: (k + 1, padded n_joints) that single instants come in.
        forgetting: How the old part forgets: "none", "exponential" or "directional".
        memory: Time of motion after which old rows count 1/e [s].
        per_stretch: Instants of motion in a stretch.
        in_ring: Instants that are kept in stretches of their own, for the detection of changes.
        seconds: Time of motion that an instant stands for [s].

    Attributes:
        old: What forgets.
        recent: What comes next. It makes room for itself when it is a good part of the memory long: a second of motion
            shows but a few directions, and what one stretch does not show is not forgotten for it.
        ring: The last stretches, oldest first.
        now: The stretch in the making.
    """

    def __init__(
        self,
        k: int,
        n_cross: int,
        slab: Array,
        forgetting: str,
        memory: float,
        per_stretch: int,
        in_ring: int,
        seconds: float,
    ) -> None:
        self.k, self.n_cross = k, n_cross
        self.forgetting, self.memory = forgetting, memory
        self.per_stretch, self.in_ring, self.seconds = per_stretch, in_ring, seconds
        self.old, self.recent, self.now = (StretchRows(k, n_cross) for _ in range(3))
        self.ring: deque[StretchRows] = deque()
        self._absorb = absorber(self.now.R, slab)

    def take(self, time: float, beside: Array | None, slab: Array, n_rows: int) -> bool:
        """The instant in the slab; True when that completes a stretch.

        Args:
            time: Its time [s].
            beside: (n_base + 1, padded n_joints) the same rows over base parameters, or None.
            slab: The rows over the unknowns; destroyed.
            n_rows: Rows in it.
        """
        now = self.now
        if beside is not None:
            now.cross += slab[:-1] @ beside[:-1].T
        self._absorb()
        now.rows += n_rows
        now.instants += 1
        now.start, now.stop = min(now.start, time), time
        return now.instants >= self.per_stretch

    def take_many(self, time: Array, beside: Array | None, slab: Array, n_rows: Array) -> None:
        """Instants of one stretch at once: slab (k + 1, n, n_joints); they must fit the stretch in the making."""
        now = self.now
        flat = slab.reshape(len(slab), -1)
        if beside is not None:
            now.cross += flat[:-1] @ beside.reshape(len(beside), -1)[:-1].T
        absorb(now.R, np.array(flat, order="C"))
        now.rows += float(n_rows.sum())
        now.instants += len(time)
        now.start, now.stop = min(now.start, float(time[0])), float(time[-1])

    @property
    def room(self) -> int:
        """Instants that the stretch in the making still takes."""
        return self.per_stretch - self.now.instants

    def close(self, alike: float = 1.0) -> None:
        """The stretch in the making is complete: into the ring, and what is old enough into the old part.

        Args:
            alike: Rows that weigh as much as one independent row, as it is known now.
        """
        if not self.now.instants:
            return
        self.now.alike = alike
        self.ring.append(self.now.copy())
        self.now.clear()
        held = sum(part.instants for part in self.ring)
        while self.ring and held - self.ring[0].instants >= self.in_ring:
            part = self.ring.popleft()
            held -= part.instants
            self.recent.add(part)
        lasted = self.recent.instants * self.seconds
        if lasted >= self.memory * THRESHOLDS.recent_share:
            make_room(self.old, self.recent, self.forgetting, float(np.exp(-lasted / self.memory)))
            self.old.add(self.recent)
            self.recent.clear()

    def weigh_ring(self, rows: list[tuple[Array, Array]], weights: Array) -> None:
        """Weigh the rows of the ring again.

        Args:
            rows: Of each stretch, over the unknowns (k + 1, n, n_joints) and over base parameters.
            weights: (n_joints,) factors.
        """
        for part, (slab, beside) in zip(self.ring, rows, strict=False):
            flat, other = ((x * weights).reshape(len(x), -1) for x in (slab, beside))
            part.R[:], part.cross[:] = 0.0, flat[:-1] @ other[:-1].T
            absorb(part.R, np.array(flat, order="C"))

    @property
    def instants(self) -> int:
        """Instants of all rows."""
        return sum(part.instants for part in (self.old, self.recent, *self.ring, self.now))

    def cut(self, place: int) -> None:
        """Drop all but the ring, and of the ring the first stretches."""
        self.old.clear()
        self.recent.clear()
        for _ in range(place):
            self.ring.popleft()

    def drop(self, time: float) -> int:
        """Drop the stretches that begin before some time, where nothing older is kept; how many [s]."""
        place = 0 if self.old.instants or self.recent.instants else sum(part.start < time for part in self.ring)
        for _ in range(place):
            self.ring.popleft()
        return place

    def before_ring(self) -> StretchRows:
        """All rows that are older than the ring, without cross products."""
        return merge_stretches([self.old, self.recent], self.k)

    def whole(self, cross: bool = True) -> StretchRows:
        """All rows, with their cross products if these are wanted."""
        parts = [self.old, self.recent, *self.ring, self.now]
        return merge_stretches(parts, self.k, self.n_cross if cross else 0)

    @property
    def _parts(self) -> dict[str, StretchRows]:
        own = {"old": self.old, "recent": self.recent, "now": self.now}
        return own | {f"ring{i}": part for i, part in enumerate(self.ring)}

    def as_arrays(self) -> dict[str, Any]:
        """Plain arrays, for checkpoints."""
        return gather_arrays(self._parts)

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        count = sum(name.startswith("ring") and name.endswith(".R") for name in arrays)
        self.ring = deque(StretchRows(self.k, self.n_cross) for _ in range(count))
        restore_parts(self._parts, arrays)


# ----------------------------------------------------------------------------------------------------------------------
# Values and standard deviations from a stretch of rows, with or without rows that hold them near known values.


@dataclass(frozen=True, eq=False)
class OnlineSolution:
    """A solution.

    Attributes:
        values: (k,) of the unknowns.
        inverse: (k, k) inverse of the information, regularization included, for rows of variance one.
        covariance: (k, k) of the values.
        data_covariance: (k, k) by the data alone, over the directions it determines.
        determined: (k,) whether the data alone determines each unknown.
        rank: Directions that the data determines.
        variance: Of a row of weight one.
        null_space: (k, k - rank) null space of the data, as unit vectors in units of `sizes`.
        sizes: (k,) norms of the data's columns.
    """

    values: Array
    inverse: Array
    covariance: Array
    data_covariance: Array
    determined: Mask
    rank: int
    variance: float
    null_space: Array
    sizes: Array

    @property
    def std(self) -> Array:
        """(k,) standard deviations; infinite where neither data nor anything else says anything."""
        std = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(std > 0.0, std, np.inf)


def row_variance(part: StretchRows, rank: int) -> float:
    """Variance of a row of weight one: by the residual, or one while there are hardly more rows than unknowns."""
    freedom = part.rows - rank
    if freedom < rank:
        return 1.0
    return max(part.residual_square / freedom, 1e-24)


@on_one_thread
def solve_stretch(
    part: StretchRows, lean: Array, inflation: float = 1.0, tolerance: float | None = None
) -> OnlineSolution:
    """The least-squares solution.

    Args:
        part: The rows.
        lean: (m, k + 1) rows of unit standard deviation that hold values near known ones; none for least squares alone.
        inflation: Rows that weigh as much as one independent row.
        tolerance: Share of the largest singular value below which one counts as zero.
    """
    k = len(part.R) - 1
    tolerance = RANK_SHARE * k if tolerance is None else tolerance
    data = solve_weighted([part.R], np.ones(1), tolerance)
    variance = row_variance(part, data.rank)
    found = data
    if len(lean):
        rows = np.vstack([part.R, lean * np.sqrt(variance * inflation)])
        found = solve_weighted([rows], np.ones(1), RANK_SHARE * k)
    sizes = np.linalg.norm(part.R[:, :k], axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    opened = np.linalg.svd(part.R[:k, :k] / sizes)[2][data.rank :].T if data.rank < k else np.zeros((k, 0))
    scale = variance * inflation
    return OnlineSolution(
        values=found.x,
        inverse=found.inverse,
        covariance=found.inverse * scale,
        data_covariance=data.inverse * scale,
        determined=data.determined,
        rank=data.rank,
        variance=variance,
        null_space=np.asarray(opened),
        sizes=sizes,
    )


def quick_values(part: StretchRows, lean: Array, inflation: float) -> Array | None:
    """(k,) the values alone, or None while they are not determined; a fraction of the work of `solve_stretch`."""
    from scipy.linalg import solve_triangular  # takes a while to load

    k = len(part.R) - 1
    if not part.instants:
        return None
    rows = part.R
    if len(lean):
        rows = rows.copy()
        absorb(rows, np.array((lean * np.sqrt(row_variance(part, k) * inflation)).T, order="C"))
    size = np.linalg.norm(rows[:, :k], axis=0)
    if not (size > 0.0).all() or not (np.abs(np.diag(rows)[:k]) > 1e-9 * size).all():
        return None
    return np.asarray(solve_triangular(rows[:k, :k], rows[:k, k], check_finite=False))
