"""Which joints must be tested together: those that share an element of friction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.friction_terms import elements_with_friction, motion_of
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import Element, Robot

MOST_JOINTS = 2  # that are tested together


@dataclass(frozen=True, eq=False)
class Group:
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
        """(n, n) speeds of the actuated coordinates from those of the joints."""
        active = [self.robot.moving[i] for i in self.places]
        return np.asarray(self.robot.coupling[np.ix_(active, active)])

    @property
    def directions(self) -> Array:
        """(n_elements, n) speed of each element from those of the joints."""
        return np.array([motion_of(self.robot, one)[list(self.places)] for one in self.elements])

    @property
    def pushes(self) -> Array:
        """(n_elements, n) torque at the actuated coordinates per friction of each element."""
        rows = [self.robot.moving[i] for i in self.places]
        return np.array([one.torque[rows] for one in self.elements])

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of speed of each joint."""
        joints = [self.robot.joints[self.robot.active[self.robot.moving[i]]] for i in self.places]
        return tuple("m/s" if joint.kind == "prismatic" else "rad/s" for joint in joints)


def joint_groups(robot: Robot, wanted: Sequence[str] | None = None) -> tuple[Group, ...]:
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
                f"element {element.label} is on a joint that a loop moves: its speed is not constant when those of the "
                "motors are; identify its friction from an exciting motion (dynident identify)"
            )
    elements = elements_with_friction(robot)
    found = _connected(robot, elements)
    if wanted is None:
        chosen = found
    else:
        places = _places(robot, wanted)
        for place in places:
            if not any(place in own for own in found):
                raise InputError(f"joint {robot.joint_names[place]} has no friction element (elements: in its file)")
        chosen = [own for own in found if own & places]
        for own in chosen:
            _check_whole(robot, own, places)
    if not chosen:
        raise InputError(f"robot {robot.name} has no friction elements (elements: in its file)")
    return tuple(_group(robot, own, elements) for own in chosen)


def _group(robot: Robot, own: set[int], elements: list[Element]) -> Group:
    if len(own) > MOST_JOINTS:
        names = ", ".join(robot.joint_names[i] for i in sorted(own))
        raise InputError(
            f"{names} share friction; velocity steps are for one joint or two, lock one of them (--locked)"
        )
    mine = [one for one in elements if set(np.flatnonzero(motion_of(robot, one)).tolist()) & own]
    return Group(robot, tuple(sorted(own)), tuple(mine))


def check_tested(groups: Sequence[Group], given: Iterable[str], what: str) -> None:
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
        (place,) = _places(robot, [name])
        if place not in tested:
            under = ", ".join(robot.position_names[i] for i in sorted(tested))
            raise InputError(f"{name} has {what}, but is held; under test are {under}")


def check_held(groups: Sequence[Group], given: Iterable[str]) -> None:
    """Refuse a place for a joint that is never held.

    Raises:
        UnknownNameError: For a name that is none.
        InputError: For the joint or joints under test, where there are no others.
    """
    for name in given:
        (place,) = _places(groups[0].robot, [name])
        if all(place in group.places for group in groups):
            raise InputError(f"{name} is under test and not held; bound it by a range (--range {name}=-1:1)")


def _places(robot: Robot, wanted: Sequence[str]) -> set[int]:
    by_name = {name: i for i, name in enumerate(robot.joint_names)}
    by_name |= {name: i for i, name in enumerate(robot.position_names) if name not in by_name}
    for name in wanted:
        if name not in by_name:
            raise UnknownNameError("joint", name, by_name)
    if not wanted:
        raise InputError(f"no joint given; choose among {', '.join(robot.position_names)}")
    return {by_name[name] for name in wanted}


def _connected(robot: Robot, elements: list[Element]) -> list[set[int]]:
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
