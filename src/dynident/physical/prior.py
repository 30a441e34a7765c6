"""A plausible body for each link, from geometry alone: what to think of a link before any data.

A cylinder of the density of a geared arm (castings, motors and air) from the link's joint to the next one, as thick as
arms of that reach are. It gives every link a size, which scales what is compared, and a prior body where
neither data nor nominal values say anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import Column
from dynident.errors import InputError, UnknownNameError
from dynident.physical.problem import PhysicalPrior, smallest_share
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.model import Robot, Transform
from dynident.robot.parameters import LINK_SYMBOLS, from_classical, in_frame
from dynident.robot.physicality import link_label, without_body
from dynident.robot.placeholders import placeholder_bodies


def stretched_length(robot: Robot) -> float:
    """Length of the longest chain of joint offsets [m]; one meter where all are zero."""
    along = np.zeros(robot.n_links)
    for i, joint in enumerate(robot.joints):
        before = 0.0 if joint.parent < 0 else along[joint.parent]
        along[i] = before + sum(float(np.linalg.norm(part.translation)) for part in (joint.before, joint.after))
    longest = float(along.max())
    if robot.tool is not None:
        longest = max(longest, float(along[robot.tool[0]] + np.linalg.norm(robot.tool[1].translation)))
    return longest if longest > 0.0 else 1.0


def link_ends(robot: Robot) -> Array:
    """(n_links, 2, 3) where a link begins and where it carries on, in its own frame [m].

    It begins at its own joint and carries on at the farthest joint (or tool) that it carries.
    """
    ends = np.zeros((robot.n_links, 2, 3))
    for i, joint in enumerate(robot.joints):
        begin = -joint.after.rotation.T @ joint.after.translation
        carried = [other.before.translation for other in robot.joints if other.parent == i]
        if robot.tool is not None and robot.tool[0] == i:
            carried.append(robot.tool[1].translation)
        far = max(carried, key=lambda point: float(np.linalg.norm(point - begin)), default=np.zeros(3))
        ends[i] = begin, far
    return ends


def plausible_bodies(robot: Robot) -> Array:
    """Standard parameters of a plausible body for each link, (n_links, 10)."""
    radius = THRESHOLDS.link_slenderness * stretched_length(robot)
    bodies = []
    for begin, end in link_ends(robot):
        span = float(np.linalg.norm(end - begin))
        axis = (end - begin) / span if span > 1e-9 else np.array([0.0, 0.0, 1.0])
        length = span + 2.0 * radius  # housings reach beyond the axes they hold
        mass = THRESHOLDS.link_density * np.pi * radius**2 * length
        across = np.eye(3) - np.outer(axis, axis)
        inertia = mass * (0.5 * radius**2 * np.outer(axis, axis) + (radius**2 / 4.0 + length**2 / 12.0) * across)
        bodies.append(from_classical(mass, 0.5 * (begin + end), inertia))
    return np.array(bodies)


# ----------------------------------------------------------------------------------------------------------------------
# The prior of physical parameters where data determines nothing: nominal values, or a plausible body.

PLAUSIBLE = "plausible"
PriorLike = str | Mapping[str, float] | None


def physical_prior(
    robot: Robot, columns: Sequence[Column], rows: Array, target: Array, prior: PriorLike
) -> PhysicalPrior:
    """The prior of a robot.

    Args:
        robot: The robot.
        columns: Standard parameters.
        rows: (m, n_columns) of the data, for the size of friction coefficients.
        target: (m,) of the data.
        prior: None for the robot's own values, the name of one of its value sets, a mapping by parameter name, or
            "plausible" for bodies from geometry alone. A link of which it does not give all ten numbers, or whose
            numbers are not physically consistent, has its plausible body as prior.
    """
    given = _values(robot, prior)
    bodies = plausible_bodies(robot)
    empty = without_body(robot)
    nominal, rejected, described = [], [], np.zeros(robot.n_links, dtype=bool)
    placeholders = (
        {} if prior == PLAUSIBLE else placeholder_bodies(robot.link_parameters(given), stretched_length(robot))
    )
    for i, joint in enumerate(robot.joints):
        names = [f"{symbol}{joint.number}" for symbol in LINK_SYMBOLS]
        if i in empty or i in placeholders or not all(name in given for name in names):
            continue
        own = np.array([given[name] for name in names])
        if smallest_share(own, bodies[i]) > THRESHOLDS.min_body_share:  # clearly a body, beside a plausible one
            bodies[i] = own
            nominal.append(joint.number)
            described[i] = True
        else:
            rejected.append(link_label(joint))
    rotors = np.array([column.term == "Ia" for column in columns])
    known = np.array([given.get(column.name, 0.0) for column in columns])
    guess = np.where(known > 0.0, known, _rotor_inertias(robot, columns, bodies))
    # The size of a coefficient that alone would explain all torque: friction is a good part of it.
    norms = np.linalg.norm(rows, axis=0)
    largest = float(np.linalg.norm(target)) / np.where(norms > 0.0, norms, np.inf)
    sizes = np.where(known != 0.0, np.abs(known), np.where(largest > 0.0, largest, 1.0))
    others, scales = np.where(rotors, guess, known), np.where(rotors, guess, sizes)
    return PhysicalPrior(
        bodies, others, scales, _words(robot, prior, nominal, rejected, _without(robot, placeholders, empty)), described
    )


def _values(robot: Robot, prior: PriorLike) -> Mapping[str, float]:
    if isinstance(prior, Mapping):
        for name, value in prior.items():
            if name not in robot.parameter_names:
                raise UnknownNameError("parameter of the prior", str(name), robot.parameter_names)
            if isinstance(value, str) or not np.isfinite(value):
                raise InputError(f"the prior of {name} is {value!r}; expected a finite number")
        return prior
    if prior == PLAUSIBLE:
        return {}
    if prior is not None and prior not in robot.values:
        raise UnknownNameError("prior", str(prior), [PLAUSIBLE, *robot.values])
    return robot.value_set(prior) if robot.values else {}


def _rotor_inertias(robot: Robot, columns: Sequence[Column], bodies: Array) -> Array:
    """A share of what each motor has to turn with the arm at zero, (n_columns,); one for what is no rotor."""
    numbers = [joint.number for joint in robot.joints]
    frames: list[Transform] = []
    for joint in robot.joints:
        before = joint.before if joint.parent < 0 else frames[joint.parent] @ joint.before
        frames.append(before @ joint.after)
    result = np.ones(len(columns))
    for j, column in enumerate(columns):
        number = column.place.removeprefix("m")
        if column.term == "Ia" and number.isdigit() and int(number) in numbers:
            result[j] = THRESHOLDS.rotor_share * _driven_inertia(robot, numbers.index(int(number)), frames, bodies)
    return result


def _driven_inertia(robot: Robot, i: int, frames: Sequence[Transform], bodies: Array) -> float:
    """Inertia about a joint's axis of its link and all beyond [kg·m²], or their mass [kg] on one that slides."""
    joint, total = robot.joints[i], 0.0
    to_joint = joint.after @ frames[i].inverse()
    beyond = {i}
    for k, other in enumerate(robot.joints):
        if k == i or other.parent in beyond:
            beyond.add(k)
        if k in beyond and k not in without_body(robot):
            place = to_joint @ frames[k]
            chi = in_frame(bodies[k], place.rotation, place.translation)
            total += float(chi[9] if joint.kind == "prismatic" else chi[5])
    return total


def _without(robot: Robot, placeholders: Mapping[int, str], empty: Iterable[int]) -> list[str]:
    """Links that the values describe with no inertial or a placeholder, in words by reason."""
    by_reason: dict[str, list[str]] = {}
    for i, why in placeholders.items():
        if i not in empty:
            by_reason.setdefault(why, []).append(link_label(robot.joints[i]))
    return [f"{', '.join(labels)} ({why})" for why, labels in by_reason.items()]


def _words(robot: Robot, prior: PriorLike, nominal: list[int], rejected: list[str], placeholders: Sequence[str]) -> str:
    name = "given values" if isinstance(prior, Mapping) else f"values '{prior or robot.default_values}' of {robot.name}"
    plausible = "a plausible body (a cylinder between its joints)"
    if not nominal:
        text = f"log-det distance of each link to {plausible}"
    elif len(nominal) == robot.n_links - len(without_body(robot)):
        text = f"log-det distance of each link to the {name}"
    else:
        shown = ", ".join(str(number) for number in nominal)
        text = f"log-det distance to the {name} for links {shown}, to {plausible} for the others"
    if rejected:
        text += f"; the numbers given for {', '.join(rejected)} are not physically consistent"
    if placeholders and not isinstance(prior, Mapping):
        text += f"; the robot file has no masses, or placeholders, for {'; '.join(placeholders)}"
    return text
