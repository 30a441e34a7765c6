"""What is known of base parameters while experiments come in: some combinations, their values and covariance.

The combinations are the rows of G in G beta = c, the identity on their pivot columns. New data is first freed of what
is known; what remains is felt by other columns alone, and adds rows to G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, frozen, on_one_thread
from dynident.identifiability.base import readable_base
from dynident.identifiability.regrouping import cleaned

TOLERANCE = 1e-9  # relations between experiments are known to about 1e-11; what is smaller than this is rounding


@dataclass(frozen=True)
class Fresh:
    """What data adds to what is known.

    Attributes:
        pivots: Column of beta on which each new combination stands.
        rows: (m, n) the new combinations over beta; the identity on `pivots`, zero on what was known before.
        condition: Condition number of the new part of the data, with scaled columns; 1 when there is none.
        felt: Columns of beta with an effect that is not known yet.
    """

    pivots: tuple[int, ...]
    rows: Array
    condition: float
    felt: tuple[int, ...]


@dataclass(frozen=True)
class Knowledge:
    """Known combinations of base parameters.

    Attributes:
        pivots: Column of beta on which each combination stands.
        G: (r, n), the identity on `pivots`.
        values: (r,) c in G beta = c.
        covariance: (r, r) of the values.
    """

    pivots: tuple[int, ...]
    G: Array
    values: Array
    covariance: Array

    def __post_init__(self) -> None:
        for name in ("G", "values", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def nothing(n: int) -> Knowledge:
        """Of n base parameters nothing is known."""
        return Knowledge((), np.zeros((0, n)), np.zeros(0), np.zeros((0, 0)))

    @property
    def determined(self) -> Mask:
        """(n,) whether each base parameter is known by itself."""
        result = np.zeros(self.G.shape[1], dtype=bool)
        result[[p for p, row in zip(self.pivots, self.G, strict=True) if np.count_nonzero(row) == 1]] = True
        return result

    def base_values(self) -> tuple[Array, Array]:
        """Values (n,) and covariance (n, n) of all base parameters: a combination stands on its pivot, others are 0."""
        n, own = self.G.shape[1], list(self.pivots)
        beta, covariance = np.zeros(n), np.zeros((n, n))
        beta[own] = self.values
        covariance[np.ix_(own, own)] = self.covariance
        return beta, covariance

    @on_one_thread
    def fresh(self, W: Array, tolerance: float = TOLERANCE) -> Fresh:
        """What rows over beta, (m, n), add.

        Args:
            W: The rows.
            tolerance: Share of the largest singular value below which a direction counts as not seen.
        """
        known = W[:, list(self.pivots)]
        left = W - known @ self.G
        # A column that vanishes once the known part is taken out leaves rounding of the size of what was taken out.
        gross = np.linalg.norm(W, axis=0) + np.linalg.norm(np.abs(known) @ np.abs(self.G), axis=0)
        size = np.linalg.norm(left, axis=0)
        size[list(self.pivots)] = 0.0
        felt = [int(j) for j in np.flatnonzero(size > TOLERANCE * np.maximum(gross, 1e-300))]
        rows = np.zeros((0, W.shape[1]))
        if not felt:
            return Fresh((), rows, 1.0, ())
        _, singular, vt = np.linalg.svd(left[:, felt] / size[felt], full_matrices=False)
        rank = int(np.sum(singular > tolerance * singular[0]))
        independent, K = readable_base(vt[:rank], size[felt])
        rows = np.zeros((rank, W.shape[1]))
        rows[:, felt] = K
        return Fresh(tuple(felt[i] for i in independent), rows, float(singular[0] / singular[rank - 1]), tuple(felt))

    def chart(self, fresh: Fresh) -> Array:
        """M with beta = M (c, theta) a representative of known and new values, (n, r + m)."""
        n, r, m = self.G.shape[1], len(self.pivots), len(fresh.pivots)
        M = np.zeros((n, r + m))
        M[list(self.pivots), range(r)] = 1.0
        M[list(fresh.pivots), range(r, r + m)] = 1.0
        M[np.ix_(list(self.pivots), range(r, r + m))] = -self.G[:, list(fresh.pivots)]
        return M

    def joined(self, fresh: Fresh, values: Array, own: Array, sensitivity: Array) -> Knowledge:
        """With new combinations, whose estimates depend on the known values.

        Args:
            fresh: The new combinations.
            values: (m,) theta, their values.
            own: (m, m) covariance of theta if what was known were exact.
            sensitivity: (m, r) J, how theta moves with the known values.
        """
        crossed = sensitivity @ self.covariance
        both = np.block([[self.covariance, crossed.T], [crossed, own + crossed @ sensitivity.T]])
        B = self.G[:, list(fresh.pivots)]  # part that known combinations have in the new ones: taken out
        r, m = B.shape
        L = np.block([[np.eye(r), -B], [np.zeros((m, r)), np.eye(m)]])
        return Knowledge(
            pivots=(*self.pivots, *fresh.pivots),
            G=np.vstack([cleaned(self.G - B @ fresh.rows), fresh.rows]),
            values=L @ np.concatenate([self.values, values]),
            covariance=L @ both @ L.T,
        )


def combination_texts(rows: Array, pivots: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """Combinations (m, n) of named parameters in words, such as `YYR2 + 0.8 MXR2`, the pivot of each first."""
    result = []
    for row, pivot in zip(rows, pivots, strict=True):
        others = (int(j) for j in np.flatnonzero(row) if j != pivot)
        parts = (f" {'-' if row[j] < 0 else '+'} {_coefficient(abs(row[j]))}{names[j]}" for j in others)
        result.append(names[pivot] + "".join(parts))
    return tuple(result)


def _coefficient(size: float) -> str:
    return "" if size == 1.0 else f"{size:.6g} "
