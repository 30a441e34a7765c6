"""The limits a motion must respect, gathered from the robot and from what the user adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import InputError, UnknownNameError
from dynident.motion.thresholds import THRESHOLDS
from dynident.robot.model import Robot
from dynident.robot.placeholders import PlaceholderLimit, believed_limits, placeholder_limits

_KEYS = ("lower", "upper", "velocity", "acceleration", "effort")
_NEEDED = {"position": ("lower", "upper"), "velocity": ("velocity",)}
PerJoint = float | Mapping[str, float] | ArrayLike
Range = float | Sequence[float]  # half the width of a range about zero, or its lower and upper end [rad or m]
_Found = dict[str, list[float | None]]  # by key, one for each moving joint


@dataclass(frozen=True)
class JointLimits:
    """Limits of the moving joints, (n_joints,) each; infinite where there is none. [rad or m, s, N·m or N]."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array

    def shrunk(self, share: float) -> JointLimits:
        """This share of every limit; of the positions, about the middle of the range."""
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * share * (self.upper - self.lower)
        rest = (share * x for x in (self.velocity, self.acceleration, self.effort))
        return JointLimits(middle - half, middle + half, *rest)


def gather_limits(
    robot: Robot,
    given: Mapping[str, Mapping[str, float]] | None = None,
    acceleration: PerJoint | None = None,
    *,
    position_range: Range | Mapping[str, Range] | None = None,
    max_velocity: PerJoint | None = None,
    max_effort: PerJoint | None = None,
) -> JointLimits:
    """The robot's limits, without its placeholders, replaced and narrowed by those given.

    What is given by joint replaces the robot's own limit. One number or range for all joints supplies what is missing,
    and where the robot states a narrower one, that stays.

    Args:
        robot: The robot.
        given: By joint name or variable (q3): lower, upper, velocity, acceleration, effort.
        acceleration: Limit for all joints, or by joint.
        position_range: Range of positions for all joints, or by joint: (lower, upper), or a number for both sides of
            zero [rad or m].
        max_velocity: Greatest velocity of all joints, by joint or as a list [rad/s or m/s].
        max_effort: Greatest torque or force of all joints, by joint or as a list [N·m or N].

    Raises:
        InputError: Naming the joints whose position or velocity limits are missing, and the options that give them.
    """
    names, doubtful = robot.joint_names, placeholder_limits(robot)
    own = believed_limits(robot)
    found: _Found = {key: [getattr(limits, key, None) for limits in own] for key in _KEYS}
    if acceleration is not None:
        found["acceleration"] = list(per_joint(acceleration, robot, "acceleration"))
    for name, record in (given or {}).items():
        place = joint_place(robot, name)
        if not isinstance(record, Mapping):
            raise InputError(f"the limits of {name} must be a mapping such as {{'lower': -1, 'upper': 1}}")
        for key, value in record.items():
            if key not in _KEYS:
                raise UnknownNameError(f"limit of {name}", str(key), _KEYS)
            found[key][place] = _number(value, f"{key} limit of {name}")
    _narrow_positions(found, robot, position_range)
    _narrow(found["velocity"], robot, max_velocity, "max_velocity")
    _narrow(found["effort"], robot, max_effort, "max_effort")
    _ask_for_missing(names, found, doubtful)
    limits = JointLimits(*(np.array([np.inf if x is None else float(x) for x in found[key]]) for key in _KEYS))
    for name, low, high in zip(names, limits.lower, limits.upper, strict=True):
        if low >= high:
            raise InputError(f"joint {name} cannot move: its lower limit {low:g} is not below its upper one {high:g}")
    for key in ("velocity", "acceleration", "effort"):
        for name, value in zip(names, getattr(limits, key), strict=True):
            if value <= 0.0:
                raise InputError(f"the {key} limit of {name} is {value:g}; expected a positive number")
    return limits


def _narrow_positions(found: _Found, robot: Robot, given: Range | Mapping[str, Range] | None) -> None:
    """Ranges by joint in place of what was found, or one that narrows all."""
    if isinstance(given, Mapping):
        for name, ends in given.items():
            place = joint_place(robot, name)
            found["lower"][place], found["upper"][place] = _range(ends, f"position_range of {name}")
    elif given is not None:
        lower, upper = _range(given, "position_range")
        found["lower"] = [lower if x is None else max(x, lower) for x in found["lower"]]
        found["upper"] = [upper if x is None else min(x, upper) for x in found["upper"]]


def _range(ends: object, name: str) -> tuple[float, float]:
    pair = (-ends, ends) if isinstance(ends, int | float) else ends
    try:
        lower, upper = (_number(end, name) for end in pair)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InputError(f"{name} is {ends!r}; expected a lower and an upper end, or one number for both") from None
    if lower >= upper:
        raise InputError(f"{name} is {lower:g} to {upper:g}; expected the lower end first")
    return lower, upper


def _narrow(found: list[float | None], robot: Robot, given: PerJoint | None, name: str) -> None:
    """Numbers by joint or as a list in place of what was found, or one that no joint exceeds."""
    if isinstance(given, Mapping):
        for joint, number in given.items():
            found[joint_place(robot, joint)] = _number(number, f"{name} of {joint}")
    elif given is not None:
        numbers = per_joint(given, robot, name)
        if np.ndim(given) == 0:
            numbers = np.minimum(numbers, [np.inf if x is None else x for x in found])
        found[:] = list(numbers)


def _ask_for_missing(names: tuple[str, ...], found: _Found, doubtful: Sequence[PlaceholderLimit]) -> None:
    """Refuse to guess.

    Raises:
        InputError: Naming the joints without a position or velocity limit, and the option for each.
    """
    options = {"position": ("--position-range {}=-1.5:1.5", "1.5"), "velocity": ("--max-velocity {}=2", "2")}
    asked: list[str] = []
    for kind, (option, for_all) in options.items():
        missing = [name for i, name in enumerate(names) if any(found[key][i] is None for key in _NEEDED[kind])]
        if missing:
            why = [str(item) for item in doubtful if item.kind == kind and set(item.joints) & set(missing)]
            given = f"{option.format(missing[0])}, or {for_all} for all joints"
            asked.append(f"{'; '.join([*why, ''])}no {kind} limits are known for {', '.join(missing)}: give {given}")
    if asked:
        raise InputError(
            f"{'; '.join(asked)} (in Python position_range, max_velocity), or limits in the robot file or an overlay; "
            "they are not guessed"
        )


def joint_place(robot: Robot, name: str) -> int:
    """Column of a joint given by name or variable."""
    for names in (robot.joint_names, robot.position_names):
        if name in names:
            return names.index(name)
    raise UnknownNameError("joint", str(name), robot.joint_names)


def per_joint(value: PerJoint, robot: Robot, name: str) -> Array:
    """(n_joints,) from one number, a mapping by joint (all of them) or a list."""
    n = len(robot.moving)
    try:
        array = by_joint(value, robot, name) if isinstance(value, Mapping) else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.shape not in ((), (n,)):
        raise InputError(f"{name} must be one number or one for each of {', '.join(robot.joint_names)}")
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise InputError(f"{name} must be positive and finite; got {value!s}")
    return np.broadcast_to(array, (n,)).copy()


def by_joint(given: Mapping[str, float], robot: Robot, name: str) -> Array:
    """(n_joints,) from a mapping by joint name or variable, which must have them all."""
    result = np.full(len(robot.moving), np.nan)
    for joint, number in given.items():
        result[joint_place(robot, joint)] = _number(number, f"{name} of {joint}")
    missing = [joint for joint, number in zip(robot.joint_names, result, strict=True) if np.isnan(number)]
    if missing:
        raise InputError(f"{name} is not given for {', '.join(missing)}; give it for every joint")
    return result


def check_locked(robot: Robot) -> None:
    """Refuse joints that are held where they cannot be."""
    for place, position in robot.locked.items():
        joint = robot.joints[robot.active[place]]
        low, high = joint.limits.span
        beyond = max(low - position, position - high)
        if beyond > THRESHOLDS.pose_tolerance:
            raise InputError(
                f"joint {joint.name} is locked outside its limits: at {position:.4g} {joint.unit}, {beyond:.3g} beyond "
                f"{low:.4g} to {high:.4g}"
            )


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"the {name} is {value!r}; expected a finite number")
    return float(value)
