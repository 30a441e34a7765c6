"""The equations of a robot on batches of samples.

Every function takes joint-side positions, velocities and accelerations of the moving joints, (n_samples, n_joints) in
the order of `robot.joint_names`. Torques are at the rows of the model: the actuated coordinates, which for a robot
without couplings are the joints. `joint_torque` and `actuated_torque` convert between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, frozen
from dynident.display import brief
from dynident.dynamics.kernels import inputs_of, kernel
from dynident.dynamics.loop_assembly import assembly, solved_positions
from dynident.dynamics.terms import Column, Term, TermsLike, all_columns, resolve_terms
from dynident.errors import InputError, SingularError, UnknownNameError
from dynident.robot.model import Robot

Values = str | Mapping[str, float] | ArrayLike | None


def columns(robot: Robot, terms: TermsLike = None) -> tuple[Column, ...]:
    """Name, unit and meaning of every column of the regressor, in order."""
    return all_columns(robot, resolve_terms(terms, robot))


def parameters(robot: Robot, terms: TermsLike = None, values: Values = None) -> Array:
    """Parameter values in column order: `regressor(...) @ parameters(...)` is the inverse dynamics.

    Args:
        robot: The robot.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        values: Name of one of the robot's value sets (default: its own), a mapping by parameter name (absent ones have
            their fixed value or are zero), or the vector itself.

    Returns:
        (n_columns,).
    """
    return _chi(robot, all_columns(robot, resolve_terms(terms, robot)), values)


def _chi(robot: Robot, described: Sequence[Column], values: Values) -> Array:
    if values is None or isinstance(values, str):
        values = robot.value_set(values)
    if isinstance(values, Mapping):
        known = dict.fromkeys((*robot.parameter_names, *(column.name for column in described)))
        for name in values:
            if name not in known:
                raise UnknownNameError("parameter", str(name), known)
        values = [values.get(column.name, column.fixed or 0.0) for column in described]
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("parameter values must be numbers") from None
    if vector.shape != (len(described),):
        raise InputError(f"values must have shape ({len(described)},), one per column; got {vector.shape}")
    for column, value in zip(described, vector, strict=True):
        if not np.isfinite(value):
            raise InputError(f"parameter {column.name} is {value}; expected a finite number")
    return vector


def _run(
    robot: Robot,
    kind: str,
    terms: Sequence[Term],
    shape: tuple[int, ...],
    given: Mapping[str, ArrayLike],
    chi: Array | None = None,
) -> Array:
    """Evaluate one kind of program; the result has `shape` first and samples last."""
    names = {"force": ("fx", "fy", "fz"), "moment": ("nx", "ny", "nz")}
    inputs: list[Array] = []
    n_samples: int | None = None
    for name in inputs_of(kind):
        if name == "chi":
            continue
        array = as_samples(given[name], name, names.get(name, robot.joint_names), n_samples)
        n_samples = len(array)
        inputs.extend(array.T)
    assert n_samples is not None
    if robot.closure is not None:
        inputs.extend(solved_positions(robot, np.stack(inputs[: len(robot.moving)], axis=1)))
    if chi is not None:  # scalars come last
        inputs.extend(np.asarray(value) for value in chi)
    run, places = kernel(robot, kind, terms, n_samples)
    out = np.zeros((int(np.prod(shape)), n_samples))
    run(inputs, out, [int(np.ravel_multi_index(place, shape)) for place in places])
    return out.reshape(*shape, n_samples)


def regressor(robot: Robot, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, terms: TermsLike = None) -> Array:
    """The matrix W of tau = W chi.

    Returns:
        (n_samples, n_joints, n_columns). Samples are contiguous in memory (the array is a view with the samples' axis
        first), which is what makes filling and solving fast; use `np.ascontiguousarray` if rows must be.
    """
    resolved = resolve_terms(terms, robot)
    shape = (len(robot.moving), len(all_columns(robot, resolved)))
    return np.moveaxis(_run(robot, "regressor", resolved, shape, {"q": q, "dq": dq, "ddq": ddq}), -1, 0)


def energy_regressor(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    terms: TermsLike = None,
    kind: Literal["total", "kinetic", "potential"] = "total",
) -> Array:
    """The row h of H = h chi, the energy as a linear function of the parameters (Gautier et al. 1995, eq. 10).

    Potential energy is zero where a mass is at the base origin. Friction and offsets store no energy.

    Returns:
        (n_samples, n_columns).
    """
    resolved = resolve_terms(terms, robot)
    shape = (len(all_columns(robot, resolved)),)
    if kind not in ("total", "kinetic", "potential"):
        raise UnknownNameError("kind of energy", kind, ("total", "kinetic", "potential"))
    h = np.zeros(1)
    if kind != "potential":
        h = h + _run(robot, "kinetic", resolved, shape, {"q": q, "dq": dq}).T
    if kind != "kinetic":
        h = h + _run(robot, "potential", resolved, shape, {"q": q}).T
    return h


def energy(robot: Robot, q: ArrayLike, dq: ArrayLike, terms: TermsLike = None, values: Values = None) -> Array:
    """Kinetic plus potential energy, (n_samples,) [J]."""
    return np.asarray(energy_regressor(robot, q, dq, terms) @ parameters(robot, terms, values))


def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    terms: TermsLike = None,
    values: Values = None,
    *,
    tool_force: ArrayLike | None = None,
    tool_moment: ArrayLike | None = None,
) -> Array:
    """Torque that gives the motion, at the actuated coordinates.

    Args:
        robot: The robot.
        q: Joint positions, (n_samples, n_joints) [rad or m].
        dq: Joint velocities.
        ddq: Joint accelerations.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        values: Parameter values; see `parameters`.
        tool_force: (n_samples, 3) force the tool exerts on its surroundings, in the tool frame [N].
        tool_moment: (n_samples, 3) moment the tool exerts on its surroundings, about the tool origin [N·m].

    Returns:
        (n_samples, n_joints) [N·m or N].
    """
    resolved = resolve_terms(terms, robot)
    chi = _chi(robot, all_columns(robot, resolved), values)
    given: dict[str, ArrayLike] = {"q": q, "dq": dq, "ddq": ddq}
    shape = (len(robot.moving),)
    if tool_force is None and tool_moment is None:
        return _run(robot, "inverse dynamics", resolved, shape, given, chi).T
    if robot.tool is None:
        raise InputError(
            f"robot {robot.name} has several branches; say in its file which link carries the tool (tool:)"
        )
    silent = np.zeros((len(as_samples(q, "q", robot.joint_names)), 3))
    given["force"] = silent if tool_force is None else tool_force
    given["moment"] = silent if tool_moment is None else tool_moment
    return _run(robot, "inverse dynamics with tool", resolved, shape, given, chi).T


_INERTIAL = ("rigid", "Ia")


def gravity_torque(robot: Robot, q: ArrayLike, values: Values = None) -> Array:
    """Torque that holds the links' weight, without springs, friction and offset, (n_samples, n_joints)."""
    terms = resolve_terms(_INERTIAL)
    chi = _chi(robot, all_columns(robot, terms), values)
    return _run(robot, "gravity", terms, (len(robot.moving),), {"q": q}, chi).T


def coriolis_torque(robot: Robot, q: ArrayLike, dq: ArrayLike, values: Values = None) -> Array:
    """Centrifugal and Coriolis torque, (n_samples, n_joints)."""
    terms = resolve_terms(_INERTIAL)
    chi = _chi(robot, all_columns(robot, terms), values)
    return _run(robot, "coriolis", terms, (len(robot.moving),), {"q": q, "dq": dq}, chi).T


def mass_matrix(robot: Robot, q: ArrayLike, values: Values = None) -> Array:
    """Mass matrix over the joints, rotor inertias included, (n_samples, n_joints, n_joints).

    Kinetic energy is dq' M dq / 2. For coupled robots ``joint_torque(robot, tau) = M ddq + ...``.
    """
    check_held_motors(robot)
    terms = resolve_terms(_INERTIAL)
    chi = _chi(robot, all_columns(robot, terms), values)
    n = len(robot.moving)
    return np.ascontiguousarray(np.moveaxis(_run(robot, "mass matrix", terms, (n, n), {"q": q}, chi), -1, 0))


def forward_dynamics(
    robot: Robot, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, terms: TermsLike = None, values: Values = None
) -> Array:
    """Joint accelerations that a torque at the actuated coordinates causes, (n_samples, n_joints).

    Raises:
        SingularError: When a mass matrix cannot be inverted, naming the sample.
    """
    resolved = resolve_terms(terms, robot)
    check_held_motors(robot)
    chi = _chi(robot, all_columns(robot, resolved), values)
    given = {"q": q, "dq": dq, "tau": tau}
    ddq = _run(robot, "forward dynamics", resolved, (len(robot.moving),), given, chi).T
    bad = ~np.isfinite(ddq)
    if bad.any():
        sample = int(np.argwhere(bad)[0, 0])
        raise SingularError(
            f"the mass matrix has no inverse at sample {sample}; give every moving link its inertia (robot "
            f"{robot.name}, values {values if isinstance(values, str) else robot.default_values})"
        )
    return ddq


def joint_torque(robot: Robot, tau: ArrayLike) -> Array:
    """Torque at the joints from torque at the actuated coordinates, T' tau, (n_samples, n_joints)."""
    check_held_motors(robot)
    return as_samples(tau, "tau", robot.joint_names) @ robot.moving_coupling


def actuated_torque(robot: Robot, tau: ArrayLike) -> Array:
    """Torque at the actuated coordinates from torque at the joints, T^-T tau, (n_samples, n_joints)."""
    check_held_motors(robot)
    return np.asarray(
        np.linalg.solve(robot.moving_coupling.T, as_samples(tau, "tau", robot.joint_names).T).T, np.float64
    )


def check_held_motors(robot: Robot) -> None:
    """A locked joint's motor that also turns with a moving joint has a torque that is in no row."""
    if robot.locked_motors_move:
        names = ", ".join(robot.joints[robot.active[i]].name for i in robot.locked)
        raise InputError(f"locked {names}: the motor also drives a moving joint, so torque at the joints is not known")


# ----------------------------------------------------------------------------------------------------------------------
# Where every joint of the tree is: passive joints from active ones, whether they follow affinely or close a loop.


@brief
@dataclass(frozen=True)
class TreeMotion:
    """Motion of all tree joints, in the order of `robot.joints`.

    Attributes:
        q, dq, ddq: Positions, velocities, accelerations, (n_samples, n_tree). Where a loop turns a passive joint round
            and round, its position goes on from sample to sample.
        G: (n_samples, n_tree, n_joints), dq = G dq_moving.
        drift: (n_samples, n_tree), dG/dt dq_moving: what is left of ddq without acceleration of the moving joints.
    """

    q: Array
    dq: Array
    ddq: Array
    G: Array
    drift: Array

    def __post_init__(self) -> None:
        for name in ("q", "dq", "ddq", "G", "drift"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


def tree_motion(robot: Robot, q: ArrayLike, dq: ArrayLike | None = None, ddq: ArrayLike | None = None) -> TreeMotion:
    """The motion of every joint of the tree from that of the moving ones.

    Args:
        robot: The robot.
        q: Positions of the moving joints, (n_samples, n_joints) [rad or m].
        dq: Their velocities; zero when not given.
        ddq: Their accelerations; zero when not given.

    Raises:
        InputError: Naming the sample at which a loop cannot be closed.
        SingularError: Naming the sample at which a loop does not determine its passive joints.
    """
    names = robot.joint_names
    positions = as_samples(q, "q", names)
    n, still = len(positions), np.zeros_like(positions)
    velocities = still if dq is None else as_samples(dq, "dq", names, n)
    accelerations = still if ddq is None else as_samples(ddq, "ddq", names, n)
    solved = solved_positions(robot, positions)
    if robot.closure is not None:
        solved = [np.unwrap(s) if on else s for s, on in zip(solved, assembly(robot).solved_turns, strict=True)]
    shape = (len(robot.joints), 4 + len(names))
    out = np.zeros((shape[0] * shape[1], n))
    run, places = kernel(robot, "tree motion", (), n)
    inputs = [*positions.T, *velocities.T, *accelerations.T, *solved]
    run(inputs, out, [int(np.ravel_multi_index(place, shape)) for place in places])
    parts = np.moveaxis(out.reshape(*shape, n), -1, 0)
    return TreeMotion(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], parts[:, :, 4:], parts[:, :, 3])
