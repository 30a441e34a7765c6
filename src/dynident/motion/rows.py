"""Rows of the identification problem along a motion, and derivatives of functions of their information matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.dynamics import equations as eq
from dynident.dynamics.jit.program import Program
from dynident.dynamics.kernels import Recording, record
from dynident.dynamics.state import State as RobotState
from dynident.identifiability.base import BaseParameters
from dynident.motion.closing import make_tape
from dynident.motion.thresholds import THRESHOLDS
from dynident.motion.trajectory import State
from dynident.robot.algebra import Number, add, mul, total


class ModelRows(ABC):
    """Rows W of the model along a motion, weighted by the standard deviation of each channel and with scaled columns.

    Args:
        base: Base parameters, in whose columns the rows are written.
        scale: (n,) sizes by which the columns are divided.
        times: (n_samples,) stamps [s].
    """

    # Of each output channel: the base columns that it depends on, and where they stand among the tape's outputs.
    parts: list[tuple[NDArray[np.int64], slice]]

    def __init__(self, base: BaseParameters, scale: Array, times: Array) -> None:
        self.base, self.scale, self.times = base, scale, times
        self.n_samples = len(times)

    @abstractmethod
    def _program(self) -> tuple[Program, list[tuple[int, int]]]:
        """The program, and the (channel, base column) of each output, sorted by channel."""

    def _set_up(self, noise: Array) -> None:
        program, places = self._program()
        self.tape = make_tape(program, self.n_samples, self.base.robot)
        channels, columns = (np.array(part, dtype=int) for part in zip(*places, strict=True))
        cuts = np.searchsorted(channels, np.arange(len(noise) + 1))
        self.parts = [(columns[a:b], slice(a, b)) for a, b in pairwise(cuts.tolist())]
        self._factor = 1.0 / (self.scale[columns] * noise[channels])[:, None]

    def _before(self, values: Array) -> Array:
        """Rows from the program's outputs, (n_outputs, n_samples)."""
        return values

    def _back(self, weights: Array) -> Array:
        """The transpose of `_before`."""
        return weights

    def matrices(self, states: State) -> list[tuple[NDArray[np.int64], Array]]:
        """For each channel, its base columns and its rows transposed, (n_columns, n_samples)."""
        self._rows = self._before(self.tape.evaluate(*self._inputs(states))) * self._factor
        return [(columns, self._rows[outputs]) for columns, outputs in self.parts]

    def _inputs(self, states: State) -> State | tuple[Array, Array]:
        return states

    def information(self, states: State) -> Array:
        """W' W, (n, n)."""
        A = np.zeros((self.base.n, self.base.n))
        for columns, rows in self.matrices(states):
            A[np.ix_(columns, columns)] += rows @ rows.T
        return A

    def factor(self, states: State) -> Array:
        """Upper triangular R with R' R = W' W, without forming W' W."""
        R = np.zeros((0, self.base.n))
        for columns, rows in self.matrices(states):
            dense = np.zeros((rows.shape[1], self.base.n))
            dense[:, columns] = rows.T
            R = np.asarray(np.linalg.qr(np.vstack([R, dense]), mode="r"))
        return R

    def pull(self, slope: Array) -> Array:
        """Derivatives with respect to q, dq, ddq, (3 n_joints, n_samples), of a function of the last information.

        Args:
            slope: (n, n) symmetric derivative of the function with respect to the information matrix.
        """
        weights = np.empty_like(self._rows)
        for columns, outputs in self.parts:
            weights[outputs] = 2.0 * slope[np.ix_(columns, columns)] @ self._rows[outputs]
        self.tape.weights[:] = self._back(weights * self._factor)
        return self.tape.pull()


class TorqueRows(ModelRows):
    r"""Rows of the dynamic model: the torque of every joint at every sample.

    Friction of a joint that hardly moves is anything up to breakaway: no model knows it, and an identification leaves
    such rows out. A row counts

    .. math:: w_j = \dot q_j^2 / (\dot q_j^2 + \dot q_{0j}^2).

    Args:
        base, scale, times: See `ModelRows`.
        noise: (n_joints,) standard deviation of the torque [N·m or N].
        rest_velocity: (n_joints,) velocities at which a row counts half [rad/s or m/s]; 0 counts all rows fully.
    """

    def __init__(
        self, base: BaseParameters, scale: Array, times: Array, noise: Array, rest_velocity: Array | None = None
    ) -> None:
        super().__init__(base, scale, times)
        self._set_up(noise)
        self._rest = np.zeros(len(noise)) if rest_velocity is None else np.asarray(rest_velocity)

    def matrices(self, states: State) -> list[tuple[NDArray[np.int64], Array]]:
        """As `ModelRows.matrices`, each row by the root of what it counts."""
        self._whole = super().matrices(states)
        square, rest = states[1].T ** 2, self._rest[:, None] ** 2
        moving = rest > 0.0
        self._counts = np.where(moving, square / np.where(moving, square + rest, 1.0), 1.0)  # (n_joints, n_samples)
        self._grows = np.where(moving, 2.0 * states[1].T * rest / np.where(moving, square + rest, 1.0) ** 2, 0.0)
        roots = np.sqrt(self._counts)
        return [(columns, rows * roots[j]) for j, (columns, rows) in enumerate(self._whole)]

    def pull(self, slope: Array) -> Array:
        """As `ModelRows.pull`; a joint that moves faster also makes its rows count more."""
        weights, n = np.empty_like(self._rows), len(self.parts)
        gain = np.empty_like(self._counts)
        for j, ((columns, outputs), (_, rows)) in enumerate(zip(self.parts, self._whole, strict=True)):
            pulled = slope[np.ix_(columns, columns)] @ rows
            weights[outputs] = 2.0 * self._counts[j] * pulled
            gain[j] = np.sum(pulled * rows, axis=0) * self._grows[j]
        self.tape.weights[:] = weights * self._factor
        slopes = self.tape.pull()
        slopes[n : 2 * n] += gain
        return slopes

    def _program(self) -> tuple[Program, list[tuple[int, int]]]:
        place = {column: k for k, column in enumerate(self.base.independent)}
        n = len(self.base.robot.moving)
        wanted = {(joint, column) for joint in range(n) for column in place}
        program, places = record(self.base.robot, "regressor", self.base.terms, wanted)
        order = sorted(range(len(places)), key=lambda k: places[k])
        ordered = Program(
            program.inputs, program.constants, program.instructions, tuple(program.outputs[k] for k in order)
        )
        return ordered, [(places[k][0], place[places[k][1]]) for k in order]


class EnergyModelRows(ModelRows):
    """Rows of the energy model: the energy put in from each sample to the next (Gautier et al. 1995, 4.1).

    Links and rotors store energy; what friction and offsets take is integrated along the motion.

    Args:
        base, scale, times: See `ModelRows`.
        noise: Standard deviation of the energy of one row [J].
    """

    def __init__(self, base: BaseParameters, scale: Array, times: Array, noise: float) -> None:
        super().__init__(base, scale, times)
        self._half = 0.5 * np.diff(times)
        self._set_up(np.array([noise]))

    def _inputs(self, states: State) -> tuple[Array, Array]:
        return states[0], states[1]

    def _program(self) -> tuple[Program, list[tuple[int, int]]]:
        base = self.base
        recording = Recording(base.robot, base.terms, ("q", "dq"))
        state = recording.state()
        stored: dict[int, Number] = {}
        for kind in ("kinetic", "potential"):
            for column, number in eq.energy_entries(state, base.terms, kind).items():
                stored[column] = add(stored.get(column, 0.0), number)
        taken = _powers(state, base)
        place = {column: k for k, column in enumerate(base.independent)}
        kept = [column for column in sorted({**stored, **taken}) if column in place]
        self._stores = np.array([column in stored for column in kept], dtype=bool)
        outputs = [stored[column] if column in stored else taken[column] for column in kept]
        return recording.recorder.finish(outputs), [(0, place[column]) for column in kept]

    def _before(self, values: Array) -> Array:
        result = np.diff(values, axis=1)
        lost = values[~self._stores]
        result[~self._stores] = (lost[:, 1:] + lost[:, :-1]) * self._half  # trapezoidal rule
        return result

    def _back(self, weights: Array) -> Array:
        result = np.zeros((len(weights), self.n_samples))
        result[:, 1:] += weights
        result[:, :-1] -= weights
        lost = weights[~self._stores] * self._half
        result[~self._stores, 1:] = lost
        result[~self._stores, 0] = 0.0
        result[~self._stores, :-1] += lost
        return result

    def pull(self, slope: Array) -> Array:
        """As `ModelRows.pull`; acceleration plays no part."""
        slopes = super().pull(slope)
        return np.vstack([slopes, np.zeros((len(slopes) // 2, self.n_samples))])


def _powers(state: RobotState, base: BaseParameters) -> dict[int, Number]:
    """Power that each column of friction and offset takes, torque direction times velocity."""
    entries: dict[int, list[Number]] = {}
    first = 0
    for term in base.terms:
        if term.name not in ("rigid", "Ia"):
            for row, column, number in term.torque(state):
                entries.setdefault(first + column, []).append(mul(number, state.velocity[state.rows[row]]))
        first += len(term.columns(state.robot))
    return {column: total(*parts) for column, parts in entries.items()}


# ----------------------------------------------------------------------------------------------------------------------
# Criteria of an experiment: smooth functions of the information matrix A, to be minimized, with their derivatives.
#
# ====================  ==============================================================================================
# determinant           -log det A: the volume of the confidence ellipsoid (D-optimal)
# condition             log of the condition number of W with columns of unit norm
# smallest              -log of the smallest singular value of W with scaled columns (E-optimal)
# interval              log of the largest standard deviation of a parameter beside its size
# ====================  ==============================================================================================
#
# Largest and smallest are taken softly, as the mean of order 16 of all of them, so that the derivative exists where two
# change places.

Criterion = Callable[[Array, Array], tuple[float, Array]]
_ORDER = 16.0
_FLOOR = 1e-14  # eigenvalues below this share of the largest count as this share
_NOTHING = 1e-100  # information of a motion that stands still; its inverse is still a number


def determinant(A: Array, sizes: Array) -> tuple[float, Array]:
    """-log det A."""
    try:
        if A.max() < _NOTHING:  # of a motion that stands still
            raise np.linalg.LinAlgError
        lower = np.linalg.cholesky(A)
        inverse = np.linalg.inv(lower)
        return -2.0 * float(np.sum(np.log(np.diag(lower)))), -(inverse.T @ inverse)
    except np.linalg.LinAlgError:
        values, vectors = _spectrum(A)
        return -float(np.sum(np.log(values))), -(vectors / values) @ vectors.T


def condition(A: Array, sizes: Array) -> tuple[float, Array]:
    """Log of the condition number with unit columns."""
    norms = np.sqrt(np.maximum(np.diag(A), _NOTHING))
    scaled = A / norms / norms[:, None]
    values, vectors = _spectrum(scaled)
    high, high_slope = _soft_largest(np.log(values))
    low, low_slope = _soft_largest(-np.log(values))
    slope = (vectors * ((high_slope - low_slope) / values)) @ vectors.T
    # The columns' norms depend on A as well: scaled = D A D with D = diag(A)^-1/2.
    own = np.sum(slope * scaled, axis=1) / norms**2
    return 0.5 * (high + low), 0.5 * (slope / norms / norms[:, None] - np.diag(own))


def smallest(A: Array, sizes: Array) -> tuple[float, Array]:
    """-log of the smallest singular value."""
    values, vectors = _spectrum(A)
    low, slope = _soft_largest(-np.log(values))
    return 0.5 * low, (vectors * (-0.5 * slope / values)) @ vectors.T


def interval(A: Array, sizes: Array) -> tuple[float, Array]:
    """Log of the largest standard deviation, each divided by its parameter's size."""
    values, vectors = _spectrum(A)
    C = (vectors / values) @ vectors.T
    worst, share = _soft_largest(np.log(np.diag(C) / sizes**2))
    weights = share / np.diag(C)
    return 0.5 * worst, -0.5 * (C * weights) @ C


def _spectrum(A: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(A)
    return np.maximum(values, _FLOOR * max(float(values[-1]), _NOTHING)), vectors


def _soft_largest(logs: Array) -> tuple[float, Array]:
    """Log of the mean of order 16 of numbers given by their logs, and its derivative with respect to the logs."""
    top = float(logs.max())
    powers = np.exp(_ORDER * (logs - top))
    return top + float(np.log(powers.sum())) / _ORDER, powers / powers.sum()


def with_tie_break(criterion: Criterion) -> Criterion:
    """A criterion with a small share of the determinant's.

    The other criteria look at the worst direction only: what does not concern it, such as a wrist that is known well,
    might as well stand still. Among motions that are equally good there, the one with more information is wanted.
    """
    if criterion is determinant:
        return criterion

    def both(A: Array, sizes: Array) -> tuple[float, Array]:
        (value, slope), (volume, more) = criterion(A, sizes), determinant(A, sizes)
        share = THRESHOLDS.tie_break / len(A)
        return value + share * volume, slope + share * more

    return both


CRITERIA: dict[str, Criterion] = {
    "determinant": determinant,
    "condition": condition,
    "smallest": smallest,
    "interval": interval,
}
