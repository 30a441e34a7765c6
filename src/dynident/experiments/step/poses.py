"""Which joints can be tested, what their inertia tells of the robot's parameters, and where to lock the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.dynamics.evaluate import energy_regressor, mass_matrix, parameters, regressor
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.errors import InputError
from dynident.experiments.protocol import Values
from dynident.identifiability.base import column_scales, readable_base
from dynident.identifiability.regrouping import Regrouping
from dynident.robot.model import Robot

RANK_SHARE = 1e-8  # of the largest singular value of scaled rows: a direction that counts
_CONSTANT = 1e-9  # share by which the inertia of a joint may change along its own motion
_INSIDE = 0.9  # share of a joint's range in which it is locked
_TURN = np.pi / 2  # [rad or m] range to either side of a joint without limits
_CANDIDATES = 120  # poses per joint among which the best are chosen
_LONGEST = 2.0  # [rad or m] from the middle of its range that a test starts, at most


def directions(robot: Robot) -> Array:
    """Joint velocities when one motor turns at unit velocity and the others stand, (n_motors, n_moving)."""
    return np.asarray(np.linalg.inv(robot.moving_coupling).T, dtype=np.float64)


def inertial_terms(robot: Robot, values: Values = None) -> tuple[str, ...]:
    """Terms of the inertia: links, and rotors where the robot's values have some; others count with their links."""
    known = values if isinstance(values, Mapping) else robot.value_set(values)
    rotors = [name for element in robot.elements for symbol, name in element.names.items() if symbol == "Ia"]
    return ("rigid", "Ia") if any(known.get(name, 0.0) for name in rotors) else ("rigid",)


def inertia_rows(robot: Robot, q: ArrayLike, motor: int, terms: Sequence[str] = ("rigid", "Ia")) -> Array:
    """Rows h of Me = h chi, the inertia that a motor feels with the others locked, (n_samples, n_columns).

    It is twice the kinetic energy at unit velocity: for a robot without couplings, the diagonal of the mass matrix.
    """
    poses = np.atleast_2d(np.asarray(q, dtype=np.float64))
    velocity = np.broadcast_to(directions(robot)[motor], poses.shape)
    return 2.0 * energy_regressor(robot, poses, velocity, terms, "kinetic")


def motor_inertia(robot: Robot, q: ArrayLike, motor: int, values: Values = None) -> Array:
    """The same with values, (n_samples,)."""
    along = directions(robot)[motor]
    return np.asarray(np.einsum("kij,i,j->k", mass_matrix(robot, np.atleast_2d(q), values), along, along))


def motor_friction(robot: Robot, motor: int, values: Values, direction: float = 0.0) -> tuple[float, float]:
    """Viscous and Coulomb friction that a motor feels when it turns alone.

    Args:
        robot: The robot.
        motor: The motor.
        values: A value set.
        direction: Sign of its velocity, for a Coulomb friction that includes the offset; 0 without.
    """
    velocity = directions(robot)[motor][None]
    still = np.zeros_like(velocity)
    both = []
    for terms in ("Fv", "Fc"):
        row = regressor(robot, still, velocity, still, terms)[0, motor]
        both.append(float(row @ parameters(robot, terms, values)))
    if direction:
        row = regressor(robot, still, velocity, still, "Fo")[0, motor]
        both[1] += direction * float(row @ parameters(robot, "Fo", values))
    return both[0], both[1]


@dataclass(frozen=True)
class InertiaBase(Regrouping):
    """The combinations of inertial parameters that step tests can determine.

    Attributes:
        robot: The robot.
        motors: Tested motors, as places in `robot.joint_names`.
        terms: "rigid", and "Ia" where rotors count apart.
    """

    robot: Robot
    motors: tuple[int, ...]
    terms: tuple[str, ...]

    def rows(self, q: ArrayLike, motor: int) -> Array:
        """Rows over the base parameters, (n_samples, n)."""
        return inertia_rows(self.robot, q, motor, self.terms)[:, list(self.independent)]

    def known(self, q: ArrayLike, motor: int) -> Array:
        """What parameters with a fixed value add, (n_samples,)."""
        fixed = np.array([0.0 if column.fixed is None else column.fixed for column in self.columns])
        return np.asarray(inertia_rows(self.robot, q, motor, self.terms) @ fixed)

    def values(self, values: Values = None) -> Array:
        """beta = K chi of a value set, (n,)."""
        return np.asarray(self.K @ parameters(self.robot, self.terms, values))

    def _prior(self, prior: str | Mapping[str, float] | ArrayLike) -> Array:
        return parameters(self.robot, self.terms, prior)


def inertia_base(robot: Robot, motors: Sequence[int], terms: Sequence[str] = ("rigid", "Ia")) -> InertiaBase:
    """What the effective inertias of some motors tell, over all poses of the others."""
    described = all_columns(robot, resolve_terms(terms))
    q = random_poses(robot, max(40, 3 * len(described) // max(len(motors), 1)), 7)
    W = np.vstack([inertia_rows(robot, q, motor, terms) for motor in motors])
    scales = column_scales(robot, described)
    W = W / scales
    W[:, [column.fixed is not None for column in described]] = 0.0
    _, sizes, right = np.linalg.svd(W, full_matrices=False)
    seen = right[sizes > RANK_SHARE * sizes[0]] if sizes[0] > 0.0 else right[:0]
    independent, K = readable_base(seen, scales)
    return InertiaBase(described, tuple(independent), frozen(K), robot, tuple(motors), tuple(terms))


def ranges(robot: Robot) -> tuple[Array, Array]:
    """Where joints may be locked: the inner part of their limits, (n_moving,) each."""
    limits = [joint.limits for joint in robot.moving_joints]
    lower = np.array([-_TURN if one.lower is None else one.lower for one in limits])
    upper = np.array([_TURN if one.upper is None else one.upper for one in limits])
    middle, half = 0.5 * (lower + upper), 0.5 * _INSIDE * (upper - lower)
    return middle - half, middle + half


def random_poses(robot: Robot, count: int, seed: int) -> Array:
    """Poses within the limits, evenly spread, (count, n_moving)."""
    lower, upper = ranges(robot)
    # More than half a turn shows nothing new, and a hand that was never there should not be sent far.
    middle, half = 0.5 * (lower + upper), np.minimum(0.5 * (upper - lower), np.pi)
    return np.asarray(middle + half * np.random.default_rng(seed).uniform(-1.0, 1.0, (count, len(lower))))


def start_place(robot: Robot, motor: int, forward: bool) -> float:
    """Where a tested joint starts: away from the middle of its range, so that it has room."""
    lower, upper = ranges(robot)
    middle, half = 0.5 * (lower[motor] + upper[motor]), 0.5 * (upper[motor] - lower[motor])
    return float(middle + (-1.0 if forward else 1.0) * min(half, _LONGEST))


def obstacle(robot: Robot, motor: int) -> str:
    """Why the inertia that a motor feels is not constant along its own motion; empty when it is."""
    q = random_poses(robot, 12, 3)
    along = directions(robot)[motor]
    here, there = inertia_rows(robot, q, motor), inertia_rows(robot, q + 0.3 * along, motor)
    free = [column.fixed is None for column in all_columns(robot, resolve_terms(("rigid", "Ia")))]
    change = np.abs(there - here)[:, free].max(initial=0.0)
    name = robot.joint_names[motor]
    if not np.abs(here[:, free]).max(initial=0.0) > 0.0:
        return f"motor of {name} moves nothing"
    if change > _CONSTANT * np.abs(here[:, free]).max():
        return (
            f"the inertia at the motor of {name} changes along its own motion, so that no step has constant A "
            "and U; use an exciting motion (dynident excite) for it"
        )
    return ""


def feels_gravity(robot: Robot, motor: int) -> bool:
    """Whether gravity can act on a motor, whatever the masses."""
    q = random_poses(robot, 20, 5)
    still = np.zeros_like(q)
    W = regressor(robot, q, still, still, "rigid")[:, motor]
    free = [column.fixed is None for column in all_columns(robot, resolve_terms("rigid"))]
    return bool(np.abs(W[:, free]).max(initial=0.0) > 1e-9)


def choose_poses(base: InertiaBase, count: int, seed: int = 0) -> tuple[tuple[tuple[int, Array], ...], float]:
    """Locked configurations that tell the base parameters best, tip first.

    Among random poses, rows are exchanged as long as the determinant of the information grows; every motor keeps at
    least one.

    Args:
        base: What is to be determined.
        count: Number of (motor, pose).
        seed: Of the candidates.

    Returns:
        (motor, pose (n_moving,)) in the order of the tests, and the condition number of their scaled rows.
    """
    if count < max(base.n, len(base.motors)):
        raise InputError(
            f"{count} configurations: {base.n} combinations and {len(base.motors)} joints need at least "
            f"{max(base.n, len(base.motors))}"
        )
    candidates = {motor: candidate_poses(base.robot, motor, seed) for motor in base.motors}
    return best_rows({motor: base.rows(q, motor) for motor, q in candidates.items()}, candidates, count)


def best_rows(
    rows_of: Mapping[int, Array], candidates: Mapping[int, Array], count: int
) -> tuple[tuple[tuple[int, Array], ...], float]:
    """So many of the candidates (n_poses, n_moving) of each motor, whose rows (n_poses, n) tell most together."""
    places = [(motor, q) for motor, poses in candidates.items() for q in poses]
    rows = np.vstack(list(rows_of.values()))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)  # inertias are known to the same share of themselves
    rows = rows / np.linalg.norm(rows, axis=0)
    owner = np.array([motor for motor, _ in places])
    chosen = _exchange_rows(rows, owner, _greedy(rows, owner, list(candidates), count))
    chosen.sort(key=lambda k: (-owner[k], k))
    return tuple((int(owner[k]), places[k][1]) for k in chosen), float(np.linalg.cond(rows[chosen]))


def candidate_poses(robot: Robot, motor: int, seed: int) -> Array:
    """Poses among which to choose those of a motor, (n_poses, n_moving)."""
    q = random_poses(robot, _CANDIDATES, seed)
    q[0] = 0.5 * np.sum(ranges(robot), axis=0)
    q[:, motor] = start_place(robot, motor, True)
    return q


def _greedy(rows: Array, owner: Array, motors: Sequence[int], count: int) -> list[int]:
    """One row of each motor, then the rows that tell most of what is still open."""
    information = 1e-6 * np.eye(rows.shape[1])
    chosen: list[int] = []
    for turn in range(count):
        allowed = owner == motors[turn] if turn < len(motors) else np.ones(len(rows), dtype=bool)
        gain = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
        gain[chosen] = -1.0
        best = int(np.argmax(np.where(allowed, gain, -1.0)))
        chosen.append(best)
        information += np.outer(rows[best], rows[best])
    return chosen


def _exchange_rows(rows: Array, owner: Array, chosen: list[int]) -> list[int]:
    """Exchange one row at a time while the determinant grows by a thousandth."""
    tiny = 1e-12 * np.eye(rows.shape[1])
    for _ in range(40):
        better = False
        for place in range(len(chosen)):
            rest = chosen[:place] + chosen[place + 1 :]
            if not (owner[rest] == owner[chosen[place]]).any():
                allowed = owner == owner[chosen[place]]
            else:
                allowed = np.ones(len(rows), dtype=bool)
            inverse = np.linalg.inv(rows[rest].T @ rows[rest] + tiny)
            gain = np.where(allowed, 1.0 + np.einsum("ij,jk,ik->i", rows, inverse, rows), 0.0)
            gain[rest] = 0.0
            best = int(np.argmax(gain))
            if gain[best] > 1.001 * gain[chosen[place]]:
                chosen[place], better = best, True
        if not better:
            break
    return chosen
