"""Springs in MuJoCo models: linear ones are MuJoCo's own, those along lines between two points it cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element as Node, SubElement

import numpy as np

from dynident.robot.model import Robot
from dynident.robot.springs import PRELOAD, STIFFNESS, Spring


@dataclass(frozen=True)
class OwnSpring:
    """A spring as MuJoCo has it.

    Attributes:
        label: Its label.
        joints: {joint: coefficient}, indices into `Robot.joints` of the joints that the model has.
        stiffness: Not negative.
        rest: Sum of positions at which it is relaxed.
    """

    label: str
    joints: Mapping[int, float]
    stiffness: float
    rest: float


def own_springs(robot: Robot, values: Mapping[str, float], free: list[int]) -> tuple[list[OwnSpring], list[Spring]]:
    """The springs that MuJoCo carries, and those with values that it cannot.

    Args:
        robot: The robot.
        values: Standard values.
        free: Joints that the model has; the others stand still.
    """
    inside, outside = [], []
    for spring in robot.springs:
        numbers = {symbol: values.get(symbol + spring.label, 0.0) for symbol in spring.symbols}
        if not any(numbers.values()):
            continue
        stiffness, preload = numbers.get(STIFFNESS, 0.0), numbers.get(PRELOAD, 0.0)
        if spring.line is not None or not stiffness > 0.0:
            outside.append(spring)
            continue
        rest = spring.rest if spring.rest is not None else -preload / stiffness
        moving = {int(j): float(spring.joints[j]) for j in np.flatnonzero(spring.joints)}
        rest -= sum(c * float(robot.rest_positions[j]) for j, c in moving.items() if j not in free)
        joints = {j: c for j, c in moving.items() if j in free}
        if joints:
            inside.append(OwnSpring(spring.label, joints, stiffness, rest))
    return inside, outside


def write_springs(root: Node, robot: Robot, springs: list[OwnSpring]) -> None:
    """Stiffness of joints, and of fixed tendons where a spring acts along several."""
    alone: dict[int, list[OwnSpring]] = {}
    for spring in springs:
        if len(spring.joints) == 1:
            alone.setdefault(next(iter(spring.joints)), []).append(spring)
            continue
        tendons = root.find("tendon")
        name = f"spring {spring.label}"
        fixed = SubElement(SubElement(root, "tendon") if tendons is None else tendons, "fixed", name=name)
        fixed.set("stiffness", repr(spring.stiffness))
        fixed.set("springlength", repr(spring.rest))
        for j, c in spring.joints.items():
            SubElement(fixed, "joint", joint=robot.joints[j].name, coef=repr(c))
    nodes = {node.get("name"): node for node in root.iter("joint") if node.get("name") is not None}
    for j, own in alone.items():
        stiffness, rest = on_joint(own)
        nodes[robot.joints[j].name].set("stiffness", repr(stiffness))
        nodes[robot.joints[j].name].set("springref", repr(rest))


def on_joint(springs: list[OwnSpring]) -> tuple[float, float]:
    """Stiffness and rest position of springs on one joint together."""
    parts = [(spring.stiffness, spring.rest, next(iter(spring.joints.values()))) for spring in springs]
    stiffness = sum(k * c * c for k, _, c in parts)
    return stiffness, sum(k * c * rest for k, rest, c in parts) / (stiffness or 1.0)
