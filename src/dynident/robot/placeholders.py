"""Limits and bodies that a robot file states without meaning them: zeros, ±10 rad, 1000 N·m, unit inertias.

Formats that demand a limit (URDF) and exporters that know none leave a number in its place. Such a number is recognized
by what no machine does, not by a list of numbers seen; `placeholder_limits` says which ones and why.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.robot.model import Joint, JointKind, Limits, Robot
from dynident.robot.notices import list_names
from dynident.robot.parameters import to_classical

FASTEST: dict[JointKind, float] = {  # [rad/s, m/s] that no joint with a link on it reaches
    "revolute": 100.0,  # 16 turns a second: the fastest geared legs and hands do 40 to 80 rad/s
    "prismatic": 10.0,  # linear motors end at 5 to 8 m/s
}
FARTHEST = 100.0  # [rad or m] 16 turns, or a hall
MANY_TURNS = 10.0  # [rad] from here on a stop stands at a fraction of a turn (±720 deg), not at a whole number of rad
STRONGEST = 1000.0  # [N·m or N] below which an effort is believed whatever the robot weighs
MOST_WEIGHTS = 100.0  # times what holds the outstretched robot; real drives have one to ten times of it
STANDARD_GRAVITY = 9.81  # [m/s²], also for robots described without gravity


@dataclass(frozen=True)
class PlaceholderLimit:
    """A limit that some joints state and that is not believed.

    Attributes:
        kind: "position", "velocity" or "effort".
        value: The limit as stated; of positions, lower and upper.
        joints: Names of the moving joints that state it.
        unit: Unit of the value.
        why: What shows that nobody meant it.
    """

    kind: str
    value: tuple[float, ...]
    joints: tuple[str, ...]
    unit: str
    why: str

    def __str__(self) -> str:
        """Such as `the velocity limit 1000 rad/s of a, b is a placeholder and not used (faster than any joint)`."""
        shown = " to ".join(f"{x:g}" for x in self.value)
        limit = "limits" if len(self.value) > 1 else "limit"
        verb = "are placeholders" if len(self.value) > 1 else "is a placeholder"
        joints = list_names(self.joints, 4, "joints")
        return f"the {self.kind} {limit} {shown} {self.unit} of {joints} {verb} and not used ({self.why})"


def placeholder_limits(robot: Robot) -> tuple[PlaceholderLimit, ...]:
    """Limits of the moving joints that no machine has.

    Zero and an effort that the joint's own dry friction takes (the joint could not move), and what lies beyond every
    joint of its kind: `FASTEST`, `FARTHEST`, a whole number of radians beyond `MANY_TURNS`, an effort beyond
    `STRONGEST` and beyond `MOST_WEIGHTS` times what holds the robot outstretched, or one that repeats the number of a
    velocity that is a placeholder. What is a placeholder at one joint is one at every joint that states the same,
    whatever its kind.
    """
    joints = robot.moving_joints
    found: list[PlaceholderLimit] = []
    for kind in ("position", "velocity", "effort"):
        reasons: dict[tuple[float, ...], str] = {}
        for joint in joints:
            value, why = _stated_limits(joint, kind), _doubt(robot, joint, kind)
            if value is not None and why:
                reasons.setdefault(value, why)
        for value, why in reasons.items():
            for slides in (False, True):
                own = [j.name for j in joints if _stated_limits(j, kind) == value and (j.kind == "prismatic") == slides]
                if own:
                    found.append(PlaceholderLimit(kind, value, tuple(own), _UNITS[kind][slides], why))
    return tuple(found)


def believed_limits(robot: Robot) -> list[Limits]:
    """Limits of the moving joints in the order of q, with None where a placeholder stands."""
    found = [joint.limits for joint in robot.moving_joints]
    for item in placeholder_limits(robot):
        gone = dict.fromkeys(("lower", "upper") if item.kind == "position" else (item.kind,))
        for name in item.joints:
            place = robot.joint_names.index(name)
            found[place] = dataclasses.replace(found[place], **gone)
    return found


def believed_efforts(robot: Robot) -> Array:
    """Largest torque of each moving joint, (n_joints,) [N·m or N]; infinite where there is none that is believed."""
    return np.array([np.inf if one.effort is None else one.effort for one in believed_limits(robot)])


# ----------------------------------------------------------------------------------------------------------------------
# Bodies.

_FAR = 2.0  # lengths of the stretched robot that a radius of gyration may have: links have rotors and counterweights
_ROUNDING = 1e-6  # share of a number within which it is the same


def placeholder_bodies(chi: Array, reach: float) -> dict[int, str]:
    """Links whose ten numbers nobody measured or drew, and why.

    No numbers at all; a ball at the origin of the link frame that another link repeats; or a body that would reach
    beyond the whole robot (1 kg with 1 kg·m² is a ring of one meter).

    Args:
        chi: (n_links, 10) standard parameters.
        reach: Length of the stretched robot [m].
    """
    found: dict[int, str] = {}
    balls: dict[tuple[float, ...], list[int]] = {}
    for i, own in enumerate(chi):
        mass = float(own[9])
        if not np.any(own):
            found[i] = "no inertial"
        elif mass > 0.0:
            inertia = to_classical(own)[2]
            size = float(np.abs(inertia).max())
            if np.trace(inertia) > 2.0 * mass * (_FAR * reach) ** 2:  # twice the second moment of mass about its center
                found[i] = "its inertia is that of a body larger than the robot"
            elif np.abs(inertia - inertia[0, 0] * np.eye(3)).max() <= _ROUNDING * size and not np.any(own[6:9]):
                balls.setdefault((mass, float(inertia[0, 0])), []).append(i)
    for same in balls.values():
        if len(same) > 1:
            found |= dict.fromkeys(same, "the same ball at the origin of several link frames")
    return dict(sorted(found.items()))


_UNITS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N·m", "N")}


def _stated_limits(joint: Joint, kind: str) -> tuple[float, ...] | None:
    limits = joint.limits
    keys = {"position": (limits.lower, limits.upper), "velocity": (limits.velocity,), "effort": (limits.effort,)}[kind]
    known = tuple(x for x in keys if x is not None)
    return known if len(known) == len(keys) else None


def _doubt(robot: Robot, joint: Joint, kind: str) -> str:
    """Why a limit cannot be meant; empty if it can, or is not stated."""
    value = _stated_limits(joint, kind)
    if value is None:
        return ""
    if kind == "position":
        return _position_doubt(joint, *value)
    if value[0] == 0.0:
        return "the joint could not move"
    if kind == "velocity":
        fast = FASTEST[joint.kind]
        return f"no joint of this kind reaches {fast:g} {_UNITS[kind][joint.kind == 'prismatic']}" * (value[0] >= fast)
    if _doubt(robot, joint, "velocity") and value == _stated_limits(joint, "velocity"):
        return "the same number as the velocity limit, which is one"
    dry = robot.value_set().get(f"Fc{joint.number}", 0.0)
    if value[0] <= dry:
        unit = _UNITS[kind][joint.kind == "prismatic"]
        return f"its own dry friction of {dry:g} {unit} takes all of it: the joint could not move"
    weight = _holding_effort(robot, joint)
    if weight > 0.0 and value[0] >= max(STRONGEST, MOST_WEIGHTS * weight):
        return f"{value[0] / weight:.0f} times what holds the outstretched robot"
    return ""


def _position_doubt(joint: Joint, lower: float, upper: float) -> str:
    if lower == upper:
        return "the joint could not move"
    far = max(abs(lower), abs(upper))
    if far >= FARTHEST:
        return "no joint goes that far"
    if joint.kind == "revolute" and far >= MANY_TURNS and lower == round(lower) and upper == round(upper):
        return "no stop stands at a whole number of radians after more than a turn"
    return ""


def _holding_effort(robot: Robot, joint: Joint) -> float:
    """More than what holds any joint against the whole robot's weight [N·m or N]; zero where masses are unknown."""
    moments, mass = robot.link_parameters()[:, 6:9], robot.link_parameters()[:, 9]
    if joint.kind == "prismatic":
        return float(STANDARD_GRAVITY * mass.sum())
    far = np.zeros(len(robot.joints) + 1)  # from the base along each chain to a joint [m]; the last is the base's own
    for i, one in enumerate(robot.joints):
        far[i] = far[one.parent] + sum(float(np.linalg.norm(part.translation)) for part in (one.before, one.after))
    return float(STANDARD_GRAVITY * (far.max() * mass.sum() + np.linalg.norm(moments, axis=1).sum()))
