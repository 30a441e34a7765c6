"""Which joints must be tested together: those that share an element of friction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import gravity_torque
from dynident.dynamics.terms.friction import elements_with_friction, motion_of
from dynident.errors import InputError, UnknownNameError
from dynident.experiments.bench import Bounds, joint_place
from dynident.robot.model import Element, Robot

MOST_JOINTS = 2  # that are tested together


@dataclass(frozen=True, eq=False)
class JointGroup:
    """One joint, or two that share friction.

    Attributes:
        robot: The robot.
        places: Places of the joints among the moving ones.
        elements: Elements of friction that move with them.
    """

    robot: Robot
    places: tuple[int, ...]
    elements: tuple[Element, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(self.robot.joint_names[i] for i in self.places)

    @property
    def variables(self) -> tuple[str, ...]:
        """Their variables, such as q5."""
        return tuple(self.robot.position_names[i] for i in self.places)

    @property
    def outputs(self) -> tuple[str, ...]:
        """What torque is measured of: the joint, or the motor where it turns with other joints too."""
        coupling, names = self.coupling, self.robot.motor_names
        own = [np.count_nonzero(row) == 1 for row in coupling]
        return tuple(self.robot.joint_names[i] if own[k] else names[i] for k, i in enumerate(self.places))

    @property
    def coupling(self) -> Array:
        """(n, n) velocities of the actuated coordinates from those of the joints."""
        active = [self.robot.moving[i] for i in self.places]
        return np.asarray(self.robot.coupling[np.ix_(active, active)])

    @property
    def directions(self) -> Array:
        """(n_elements, n) velocity of each element from those of the joints."""
        return np.array([motion_of(self.robot, one)[list(self.places)] for one in self.elements])

    @property
    def pushes(self) -> Array:
        """(n_elements, n) torque at the actuated coordinates per friction of each element."""
        rows = [self.robot.moving[i] for i in self.places]
        return np.array([one.torque[rows] for one in self.elements])

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of velocity of each joint."""
        joints = [self.robot.moving_joints[i] for i in self.places]
        return tuple(f"{joint.unit}/s" for joint in joints)

    @property
    def radians(self) -> Array:
        """What counts as a radian of each joint, (n_joints,) [rad or m]."""
        return self.robot.radians[list(self.places)]


def joint_groups(robot: Robot, wanted: Sequence[str] | None = None) -> tuple[JointGroup, ...]:
    """The joints to test, those that share friction together.

    Args:
        robot: The robot.
        wanted: Joints by name or variable (q5); None for all that have friction.

    Raises:
        UnknownNameError: For a name that is none.
        InputError: For a joint without friction, for one of two coupled joints, and for more than two that are coupled.
    """
    for element in robot.elements:
        if element.solved.any() and ("Fc" in element.names or "Fv" in element.names):
            raise InputError(
                f"element {element.label} is on a joint that a loop moves: its velocity is not constant when those of "
                "the motors are; identify its friction from an exciting motion (dynident identify)"
            )
    elements = elements_with_friction(robot)
    found = _joints_by_element(robot, elements)
    if wanted is None:
        chosen = found
    else:
        if not wanted:
            raise InputError(f"no joint given; choose among {', '.join(robot.position_names)}")
        places = {joint_place(robot, name) for name in wanted}
        for place in places:
            if not any(place in own for own in found):
                raise InputError(f"joint {robot.joint_names[place]} has no friction element (elements: in its file)")
        chosen = [own for own in found if own & places]
        for own in chosen:
            _check_whole(robot, own, places)
    if not chosen:
        raise InputError(f"robot {robot.name} has no friction elements (elements: in its file)")
    return tuple(_group(robot, own, elements) for own in chosen)


def _group(robot: Robot, own: set[int], elements: Sequence[Element]) -> JointGroup:
    if len(own) > MOST_JOINTS:
        names = ", ".join(robot.joint_names[i] for i in sorted(own))
        raise InputError(
            f"{names} share friction; velocity steps are for one joint or two, lock one of them (--locked)"
        )
    mine = [one for one in elements if set(np.flatnonzero(motion_of(robot, one)).tolist()) & own]
    return JointGroup(robot, tuple(sorted(own)), tuple(mine))


def check_tested(groups: Sequence[JointGroup], given: Iterable[str], what: str) -> None:
    """Refuse what is given for a joint that is not under test: a misspelt range would not bound anything.

    Args:
        groups: The joints under test.
        given: Joints by name or variable.
        what: What is given for them, such as "a range".

    Raises:
        UnknownNameError: For a name that is none.
        InputError: For a joint that is held.
    """
    robot, tested = groups[0].robot, {place for group in groups for place in group.places}
    for name in given:
        place = joint_place(robot, name)
        if place not in tested:
            under = ", ".join(robot.position_names[i] for i in sorted(tested))
            raise InputError(f"{name} has {what}, but is held; under test are {under}")


def check_held(groups: Sequence[JointGroup], given: Iterable[str]) -> None:
    """Refuse a place for a joint that is never held.

    Raises:
        UnknownNameError: For a name that is none.
        InputError: For the joint or joints under test, where there are no others.
    """
    for name in given:
        place = joint_place(groups[0].robot, name)
        if all(place in group.places for group in groups):
            raise InputError(f"{name} is under test and not held; bound it by a range (--range {name}=-1:1)")


def _joints_by_element(robot: Robot, elements: Sequence[Element]) -> list[set[int]]:
    """Sets of joints that elements of friction tie together, in the order of the joints."""
    found: list[set[int]] = []
    for element in elements:
        tied = set(np.flatnonzero(motion_of(robot, element)).tolist())
        for other in [own for own in found if own & tied]:
            tied |= other
            found.remove(other)
        found.append(tied)
    return sorted(found, key=min)


def _check_whole(robot: Robot, own: set[int], places: set[int]) -> None:
    if own <= places or len(own) > MOST_JOINTS:
        return
    names = robot.position_names
    together = ",".join(names[i] for i in sorted(own))
    one, other = (", ".join(names[i] for i in sorted(part)) for part in (own & places, own - places))
    raise InputError(
        f"{one} shares friction with {other}, which would rest and hold with a friction that nobody knows; test them "
        f"together: --joints {together}"
    )


# ----------------------------------------------------------------------------------------------------------------------
# Where the other joints are held: where gravity does least on the joints under test.

_TRIES = 200  # poses that are compared
_PLACES = 7  # along the range of each joint under test
_FREE = 1.5  # [rad or m] to either side of zero of a joint without limits


def quiet_pose(group: JointGroup, bounds: Bounds, span: Array, given: Mapping[str, float] | None = None) -> Array:
    """(n_moving,) a pose within the limits at which gravity, by the robot's own values, does least on some joints.

    Nobody looks for collisions.

    Args:
        group: The joints under test; they stand in the middle of their range.
        bounds: Limits of the moving joints.
        span: (n, 2) range of the joints under test.
        given: Positions of other joints by name or variable, which are kept.
    """
    robot = group.robot
    lower = np.where(np.isinf(bounds.lower), np.minimum(-_FREE, bounds.upper - 2 * _FREE), bounds.lower)
    upper = np.where(np.isinf(bounds.upper), np.maximum(_FREE, lower + 2 * _FREE), bounds.upper)
    # The middle half: far from the ends, where cables pull and nobody expects a joint.
    drawn = np.random.default_rng(0).uniform(0.25, 0.75, (_TRIES, len(lower)))
    poses = lower + np.vstack([np.full(len(lower), 0.5), drawn]) * (upper - lower)
    for place, position in _held_positions(group, given, bounds).items():
        poses[:, place] = position
    poses[:, list(group.places)] = span.mean(axis=1)
    grids = np.meshgrid(*[np.linspace(low, high, _PLACES) for low, high in span.tolist()])
    points = np.stack([grid.ravel() for grid in grids], axis=1)
    every = np.repeat(poses, len(points), axis=0)
    every[:, list(group.places)] = np.tile(points, (len(poses), 1))
    load = gravity_torque(robot, every)[:, list(group.places)].reshape(len(poses), len(points), -1)
    size = np.sqrt(np.mean(load**2, axis=(1, 2)))
    # Rounded, so that where gravity does nothing anywhere the middle of the limits is taken.
    best = int(np.argmin(np.round(size / max(float(size.max()), 1e-12), 3)))
    return np.asarray(poses[best])


def _held_positions(group: JointGroup, given: Mapping[str, float] | None, bounds: Bounds) -> dict[int, float]:
    robot, found = group.robot, {}
    for name, position in (given or {}).items():
        names = robot.position_names if name in robot.position_names else robot.joint_names
        if name not in names:
            raise UnknownNameError("joint", name, robot.position_names)
        place = names.index(name)
        if place in group.places:
            continue
        if not bounds.lower[place] <= position <= bounds.upper[place]:
            raise InputError(
                f"{name} is to be held at {position:g}; its limits are {bounds.lower[place]:g} to "
                f"{bounds.upper[place]:g}"
            )
        found[place] = float(position)
    return found
