"""Where a robot's elements act in a simulated model: along one joint, along a sum of joints, or as an outside force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import Robot

_PARALLEL = 1e-12  # relative size of what is left of a direction along another


@dataclass(frozen=True)
class Place:
    """One element in joint coordinates: the moving joints, then those that loops determine.

    Its speed is ``direction · dq``, and the torque it takes from the joints is ``push * phi(speed)``.

    Attributes:
        label: The element's label; motors that only carry back-EMF are called "u3".
        direction: (n_moving + n_solved,) speed from joint speeds.
        push: (n_moving + n_solved,) torque at the joints per unit of its own.
        share: `push` as a multiple of `direction`, or None where it is none: such an element is no tendon.
        inertia: Rotor inertia [kg·m² or kg].
        viscous: Viscous friction.
        coulomb: Coulomb friction.
        offset: Constant torque.
    """

    label: str
    direction: Array
    push: Array
    share: float | None
    inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", frozen(self.direction))
        object.__setattr__(self, "push", frozen(self.push))

    @property
    def joint(self) -> int | None:
        """The joint along which it acts alone, counted as in `direction`, or None."""
        (along,) = np.nonzero(self.direction)
        return int(along[0]) if len(along) == 1 else None

    @property
    def tendon(self) -> str:
        """Name of its tendon in a MuJoCo model, for a place along several joints."""
        return f"element {self.label}"

    @property
    def is_inside(self) -> bool:
        """Whether the model itself can carry its friction: it brakes where it moves."""
        return self.share is not None and self.share * self.coulomb >= 0.0


def element_places(robot: Robot, values: Mapping[str, float]) -> tuple[Place, ...]:
    """The elements that move, with their values."""
    speeds = robot.coupling[:, list(robot.moving)]  # actuated speeds from those of the moving joints
    places = []
    for element in robot.elements:
        direction, push = (np.append(e @ speeds, element.solved) for e in (element.velocity, element.torque))
        numbers = [values.get(element.names.get(symbol, ""), 0.0) for symbol in ("Ia", "Fv", "Fc", "Fo")]
        if np.any(direction) or (np.any(push) and numbers[3]):
            places.append(Place(element.label, direction, push, _share(push, direction), *numbers))
    return tuple(places)


def motor_places(robot: Robot) -> tuple[Place, ...]:
    """The motors' own directions, without values: where back-EMF brakes."""
    speeds = robot.coupling[:, list(robot.moving)]
    if robot.closure is not None:
        speeds = np.pad(speeds, ((0, 0), (0, len(robot.closure.solved))))
    names = robot.motor_names
    return tuple(
        Place(f"u{name.removeprefix('m')}", speeds[i], speeds[i], 1.0)
        for name, i in zip(names, robot.moving, strict=True)
    )


def chosen_values(robot: Robot, values: str | Mapping[str, float] | None) -> dict[str, float]:
    """Standard parameters by name, from a set of the robot (None: its own) or given ones; known values included."""
    if values is None or isinstance(values, str):
        return dict(robot.value_set(values))
    known = set(robot.parameter_names)
    for name, value in values.items():
        if name not in known:
            raise UnknownNameError("parameter", name, robot.parameter_names)
        if not np.isfinite(value):
            raise InputError(f"parameter {name} is {value}; expected a finite number")
    return {**values, **robot.fixed}


def check_motors(robot: Robot) -> None:
    """A locked joint whose motor also turns a moving one holds with a torque that nothing tells."""
    held = list(robot.locked)
    if held and np.any(robot.coupling[np.ix_(held, list(robot.moving))]):
        names = ", ".join(robot.joints[robot.active[i]].name for i in held)
        raise InputError(f"locked {names}: the motor also drives a moving joint; simulate the robot unlocked")


def _share(push: Array, direction: Array) -> float | None:
    size = float(direction @ direction)
    if not size:
        return None
    share = float(push @ direction) / size
    rest = push - share * direction
    return share if np.abs(rest).max() <= _PARALLEL * np.abs(push).max() else None
