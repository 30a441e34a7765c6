"""Motion into rows: the stacked rows of all joints at one instant, weighted once and for all, over the unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.backend import chosen_backend
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.online.causal import Filtered
from dynident.online.followed import FollowedColumns
from dynident.online.known import Known
from dynident.online.structures import SeriesStructure, Structure

# Dry friction holds a joint at rest with any torque below its own; without it a joint at rest tells the truth.
DRY = ("Fc", "stop", "sign", "stribeck", "load", "asymmetric")


class RowMaker:
    """Makes rows over base parameters, or over fewer unknowns around known values.

    Columns and torque are averaged over the instants of a box, which is the parallel filtering of Gautier et al. 1995
    with the simplest of filters: both sides of the equations pass it, columns that jump with the sign of a speed too.

    Args:
        known: The model, and the weight of each joint.
        chart: (n, k) from the unknowns to base parameters, which are then looked for around the known values; None for
            the base parameters themselves.
        rest_speed: A joint slower than this is at rest [rad/s or m/s].
        structure: Where the torque comes from.
        box: Instants that make one row of each joint.
        followed: The columns of terms that follow the motion; None where the model has none.
    """

    def __init__(
        self,
        known: Known,
        chart: Array | None,
        rest_speed: float,
        structure: Structure,
        box: int,
        followed: FollowedColumns | None = None,
    ) -> None:
        base = known.base
        self.rest_speed, self.structure, self.box, self.followed = rest_speed, structure, box, followed
        self.regressor = BaseRegressor.of(base.robot, base.terms)
        self.n, self.n_joints = base.n, len(base.robot.joint_names)
        self.k = self.n if chart is None else chart.shape[1]
        self.dry = any(term.name in DRY for term in base.terms)
        self._roots = 1.0 / known.sigma
        self._turn: Array | None = None
        if chart is not None:  # [W | tau] becomes [W chart | tau - W beta]
            self._turn = np.zeros((self.k + 1, self.n + 1))
            self._turn[:-1, :-1], self._turn[-1, :-1], self._turn[-1, -1] = chart.T, -known.beta, 1.0
        self._plain = isinstance(structure, SeriesStructure) and not self.regressor.fixed_values
        padded = _padded(self.n_joints)
        self._rest = np.zeros(self.n_joints)  # the load of joints at rest: nothing slides
        self._inputs, self._weights = np.zeros(3 * self.n_joints), np.zeros(padded)
        self._raw, self._sum, self._slab = (_aligned(self.n + 1, padded) for _ in range(3))
        self._short = _aligned(self.k + 1, padded)
        self._fill = self.regressor.bound(self._inputs, self._raw)
        self.slab = self._slab if chart is None else self._short  # where `rows` puts them
        self.count = 0  # instants in the box so far
        self.moving = np.ones(self.n_joints, dtype=bool)  # which joints moved at all of them

    def add(self, time: float, q: Array, dq: Array, ddq: Array, tau: Array) -> bool:
        """One more instant, (n_joints,) each; True when the box is full: `rows` is then to be called."""
        n, inputs = self.n_joints, self._inputs
        self.moving &= np.abs(dq) > self.rest_speed
        self.count += 1
        if self.moving.any():
            inputs[:n], inputs[n : 2 * n], inputs[2 * n :] = q, dq, ddq
            self._fill()
            self._raw[-1, :n] = tau if self._plain else self._torque(q[None], dq[None], ddq[None], tau[None])[0]
            if self.box > 1:
                self._sum += self._raw
        if self.followed is not None:  # at rest as well: springs stay wound up
            links = self.followed.links if self.moving.any() else None
            self.followed.add(time, q, dq, ddq, self._rest if links is None else links @ self._raw[:-1, :n])
        return self.count >= self.box

    def rows(self) -> tuple[Array, Array, int] | None:
        """Rows of a full box over the unknowns and over base parameters, (.., padded n_joints), and how many they are.

        None when no joint moved throughout. The arrays are written over by the next call.
        """
        moving, self.count = self.moving, 0
        total = self._sum if self.box > 1 else self._raw
        if self.followed is not None:
            total[self.followed.columns, self.followed.channels] = self.followed.box_sum()
        if not moving.any():
            self._sum[:] = 0.0
            self.moving = np.ones(self.n_joints, dtype=bool)
            return None
        roots = self._roots / self.box
        self._weights[: self.n_joints] = roots * moving if self.dry else roots
        np.multiply(total, self._weights, out=self._slab)
        count = int(np.count_nonzero(moving)) if self.dry else self.n_joints
        self._sum[:] = 0.0
        self.moving = np.ones(self.n_joints, dtype=bool)
        if self._turn is None:
            return self._slab, self._slab, count
        np.matmul(self._turn, self._slab, out=self._short)
        return self._short, self._slab, count

    def many(self, motion: Filtered) -> tuple[Mask, Array, Array, Array]:
        """Rows of whole boxes, (n_boxes * box, n_joints) of motion.

        Returns:
            (n_boxes, n_joints) joints that moved throughout, rows over the unknowns and over base parameters,
            (.., n_kept, n_joints) for boxes with any, and (n_kept,) how many rows each has.
        """
        moving: Mask = np.all((np.abs(motion.dq) > self.rest_speed).reshape(-1, self.box, self.n_joints), axis=1)
        kept = moving.any(1)
        chosen = np.repeat(kept, self.box)
        q, dq, ddq = (x[chosen] for x in (motion.q, motion.dq, motion.ddq))
        rows = np.zeros((self.n + 1, len(q), self.n_joints))
        if len(q):
            columns_first = self.regressor.columns_first([*q.T, *dq.T, *ddq.T])
            for channel, lines in enumerate(self.regressor.lines()):
                rows[list(self.regressor.columns[channel]), :, channel] = columns_first[lines]
            rows[-1] = self._torque(q, dq, ddq, motion.tau[chosen])
        if self.followed is not None:
            load = np.zeros_like(motion.q)
            if self.followed.links is not None:
                load[chosen] = np.tensordot(self.followed.links, rows[:-1], 1)
            beside = self.followed.columns_first(motion.time, motion.q, motion.dq, motion.ddq, load)
            rows[self.followed.columns, :, self.followed.channels] = beside[:, chosen]
        rows = rows.reshape(self.n + 1, -1, self.box, self.n_joints).mean(2)
        rows *= self._roots * moving[kept] if self.dry else self._roots
        counts = moving[kept].sum(1) if self.dry else np.full(rows.shape[1], self.n_joints)
        return moving, rows if self._turn is None else np.tensordot(self._turn, rows, 1), rows, counts

    def as_arrays(self) -> dict[str, Any]:
        """The box in the making, for checkpoints."""
        own = {"sum": self._sum.copy(), "moving": self.moving.copy(), "count": np.array(self.count)}
        beside = {} if self.followed is None else self.followed.as_arrays()
        return own | {f"followed.{name}": x for name, x in beside.items()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self._sum[:] = arrays["sum"]
        self.moving, self.count = np.array(arrays["moving"], dtype=bool), int(arrays["count"])
        if self.followed is not None:
            prefix = "followed."
            kept = {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}
            self.followed.restore(kept)

    def _torque(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Torque for the right-hand side, without what parameters of fixed value make."""
        torque, regressor = self.structure.torque(q, dq, ddq, tau), self.regressor
        if not regressor.fixed_values:
            return torque
        own = regressor.of_state, regressor.fixed_values
        return np.asarray(torque - inverse_dynamics(regressor.robot, q, dq, ddq, *own))


def _padded(n: int) -> int:
    """Rows filled up to whole vectors of the processor."""
    if chosen_backend() == "numpy":
        return n
    from dynident.dynamics.vector_ir import lanes

    return -(-n // lanes()) * lanes()


def _aligned(rows: int, columns: int) -> Array:
    """Zeros that begin on a cache line."""
    if chosen_backend() == "numpy":
        return np.zeros((rows, columns))
    from dynident.dynamics.llvm_backend import aligned

    return aligned(rows * columns).reshape(rows, columns)


def absorber(R: Array, slab: Array) -> Callable[[], None]:
    """A function that absorbs what a slab (p, padded n_rows) holds by then into R; the slab is destroyed."""
    if chosen_backend() == "numpy":
        from dynident.information.absorb import absorb

        return lambda: absorb(R, slab)
    from dynident.information.householder import absorb_function

    run, p, rows = absorb_function(), len(R), slab.shape[1]
    target, source = R.ctypes.data, slab.ctypes.data

    def absorbed() -> None:
        run(target, p, source, rows, rows, p)

    return absorbed
