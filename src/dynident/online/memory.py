r"""Square-root information with a memory: stretches of rows, forgetting, and a floor under the deviations.

A stretch holds the triangular factor [R | z] of its rows. Old information Y = R'R and that of a new stretch C are
compared in the coordinates in which Y is the identity, :math:`R^{-T} C R^{-1} = V \operatorname{diag}(c) V'`:

.. math:: R \leftarrow \operatorname{diag}(\sqrt{\lambda_i})\, V' R, \qquad
          1 - \lambda_i = \min(1 - \lambda,\; c_i)

In a direction that the new rows say nothing about, c_i = 0 and nothing is forgotten; no direction ever loses more than
it gains, so information cannot wind down; and where motion is rich the rule is exponential forgetting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import InputError, UnknownNameError
from dynident.information.absorb import absorb

Kind = Literal["none", "exponential", "directional"]
_FAINT = 1e-12  # share of the largest entry below which a diagonal entry of a factor is no information


@dataclass(frozen=True)
class Forgetting:
    """How old information makes room for new.

    Attributes:
        kind: "none", "exponential" or "directional".
        memory: Time of motion after which old rows count 1/e [s].
    """

    kind: Kind = "directional"
    memory: float = 60.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UnknownNameError("kind of forgetting", self.kind, get_args(Kind))
        if not 0.0 < self.memory < np.inf:
            raise InputError(f"memory is {self.memory} s; expected a positive time, or forgetting='none'")


class Stretch:
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

    def add(self, other: Stretch) -> None:
        """The rows of another stretch as well."""
        absorb(self.R, np.array(other.R.T, order="C"))
        self.rows += other.rows
        self.cross += other.cross
        self.instants += other.instants
        self.start, self.stop = min(self.start, other.start), max(self.stop, other.stop)
        self.alike = other.alike

    def copy(self) -> Stretch:
        """An independent copy."""
        twin = Stretch(len(self.R) - 1, self.cross.shape[1])
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


def together(parts: list[Stretch], k: int, n_cross: int = 0) -> Stretch:
    """All rows of some stretches; without `n_cross` their cross products are left out, which is faster."""
    filled = [part for part in parts if part.instants]
    whole = Stretch(k, n_cross)
    if not filled:
        return whole
    # At once: a call costs more than rows do.
    absorb(whole.R, np.concatenate([part.R.T for part in filled], axis=1))
    if n_cross:
        whole.cross += np.sum([part.cross for part in filled], axis=0)
    whole.rows = sum(part.rows for part in filled)
    whole.instants = sum(part.instants for part in filled)
    whole.start, whole.stop = min(part.start for part in filled), max(part.stop for part in filled)
    whole.alike = filled[-1].alike
    return whole


@on_one_thread
def make_room(old: Stretch, new: Stretch, forgetting: Forgetting, seconds: float) -> None:
    """Let old information go before new comes; `seconds` is the time of motion that the new stretch took."""
    share = float(np.exp(-seconds / forgetting.memory))
    if forgetting.kind == "none" or not old.instants:
        return
    if forgetting.kind == "exponential":
        old.R *= np.sqrt(share)
    else:
        _directional(old, new, share)
    old.rows *= share
    old.cross *= share


def _directional(old: Stretch, new: Stretch, share: float) -> None:
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
def raise_deviations(part: Stretch, floor: Array, variance: float) -> int:
    """Let deviations grow to a floor, as if the parameters had moved at random since; how many were below it.

    With x' = x + w and w of variance Q in the parameters concerned, P' = P + Q; on factors, w is eliminated from the
    rows [Q^-1/2 w = 0; R (x' - w) = z].

    Args:
        part: Changed.
        floor: (k,) smallest deviations, zero for none.
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
