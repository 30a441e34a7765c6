"""Sums over rows from which follow what each group of friction is worth, and how much friction a log shows."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array, Mask

_TOLERANCE = 1e-10  # share of the largest eigenvalue of products


class Shares:
    """Torque and residual of each joint, and what the groups have to do with them."""

    def __init__(self, n_groups: int, n_joints: int) -> None:
        self.products = np.zeros((n_joints, n_groups + 1, n_groups + 1))  # of the groups' torques and the residual
        self.torque, self.count = np.zeros(n_joints), np.zeros(n_joints)

    def add(self, groups: Array, residual: Array, measured: Array, usable: Mask) -> None:
        """More rows: (n_groups, n, n_joints), and (n, n_joints) of the others."""
        for joint, used in enumerate(usable.T):
            columns = np.concatenate([groups[:, used, joint], residual[None, used, joint]])
            self.products[joint] += columns @ columns.T
            self.torque[joint] += measured[used, joint] @ measured[used, joint]
            self.count[joint] += np.count_nonzero(used)

    def solved(self) -> tuple[Array, Array, Array, Array]:
        """RMS torque and residual (n_joints,), RMS torque of each group and residual without it (n_groups, n_joints).

        Where a group is left out, the others of the joint are scaled anew: columns that overlap stand in for it.
        """
        n_joints, size = self.products.shape[:2]
        count = np.where(self.count > 0.0, self.count, np.nan)
        share = np.sqrt(np.diagonal(self.products, axis1=1, axis2=2)[:, :-1].T / count)
        without = np.zeros((size - 1, n_joints))
        for joint, own in enumerate(self.products):
            for group in range(size - 1):
                without[group, joint] = max(_left(own, group), own[-1, -1])
        return np.sqrt(self.torque / count), np.sqrt(self.products[:, -1, -1] / count), share, np.sqrt(without / count)


def _left(products: Array, group: int) -> float:
    """Square of what is left of the residual and all groups' torque when one group may not explain it."""
    whole = np.ones(len(products))
    others = [i for i in range(len(products) - 1) if i != group]
    size = np.sqrt(np.maximum(np.diag(products)[others], 1e-300))
    A, b = products[np.ix_(others, others)] / np.outer(size, size), products[others] @ whole / size
    scaled = np.linalg.pinv(A, rcond=_TOLERANCE, hermitian=True) @ b
    return max(float(whole @ products @ whole - b @ scaled), 0.0)


class Levels:
    """Factor and constant that suit the friction of one log best: measured = level * model + shift.

    Args:
        n_segments: Parts of the log; how they differ tells what the result is worth.
        n_joints: Joints.
    """

    def __init__(self, n_segments: int, n_joints: int) -> None:
        self.A, self.b = np.zeros((n_segments, n_joints, 2, 2)), np.zeros((n_segments, n_joints, 2))

    def add(self, segment: Array, model: Array, measured: Array, usable: Mask) -> None:
        """More rows: their segments (n,), friction of the model and of the data (n, n_joints)."""
        for number in np.unique(segment):
            for joint, moves in enumerate(usable.T):
                used = moves & (segment == number)
                columns = np.stack([model[used, joint], np.ones(np.count_nonzero(used))])
                self.A[number, joint] += columns @ columns.T
                self.b[number, joint] += columns @ measured[used, joint]

    def solved(self) -> tuple[Array, Array, Array, Array]:
        """Level, its standard error, shift, its standard error; (n_joints,) each, NaN where nothing moves.

        Errors are those of clusters (Liang & Zeger 1986): rows of one segment may depend on each other as they like.
        """
        result = np.full((4, self.A.shape[1]), np.nan)
        for joint in range(self.A.shape[1]):
            A, b = self.A[:, joint], self.b[:, joint]
            told = A[:, 1, 1] > 0.0
            whole = A.sum(0)
            if np.count_nonzero(told) < 3 or np.linalg.cond(whole) > 1e10:
                continue
            found = np.linalg.solve(whole, b.sum(0))
            scores = (b - A @ found)[told]
            n = len(scores)
            bread = np.linalg.inv(whole)
            covariance = bread @ (scores.T @ scores) @ bread * n / (n - 2)
            std = np.sqrt(np.diag(covariance))
            result[:, joint] = found[0], std[0], found[1], std[1]
        level, level_std, shift, shift_std = result
        return level, level_std, shift, shift_std
