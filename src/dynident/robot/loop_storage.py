"""Numerically closed loops within the record of a robot (see `storage`).

Links and joints go by their numbers, 0 is the base. What is as usual is left out: a revolute cut joint, frames that
change nothing, solved joints that no other follows, elements that solved joints do not rub.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.robot.loops import CUT_JOINTS
from dynident.robot.model import BASE, Closure, Loop, Robot, Transform
from dynident.schema import LocatedReader

_REQUIRED = ("loops", "solved", "reference", "branch")
_OPTIONAL = ("follow", "elements")


def closure_data(robot: Robot) -> dict[str, Any] | None:
    """The loops as plain data, None without any."""
    closure, joints = robot.closure, robot.joints
    if closure is None:
        return None
    loops = []
    for loop in closure.loops:
        links = [0 if link == BASE else int(joints[link].number) for link in loop.links]
        frames = [np.column_stack([frame.rotation, frame.translation]) for frame in loop.frames]
        record = {"name": loop.name, "links": links, "frames": [frame.tolist() for frame in frames]}
        loops.append(record if loop.joint == "revolute" else {**record, "joint": loop.joint})
    data: dict[str, Any] = {
        "loops": loops,
        "solved": [int(joints[j].number) for j in closure.solved],
        "reference": closure.reference.tolist(),
        "branch": closure.branch.tolist(),
    }
    if closure.follow.tobytes() != _usual_follow(robot, closure.solved).tobytes():
        data["follow"] = closure.follow.tolist()
    rubbed = {element.label: element.solved.tolist() for element in robot.elements if element.solved.any()}
    return {**data, "elements": rubbed} if rubbed else data


def with_closure(reader: LocatedReader, robot: Robot, record: Mapping[str, Any]) -> Robot:
    """The robot of a record, with the loops of the record."""
    if "closure" not in record:
        return robot
    data = reader.record(record["closure"], "closure", _REQUIRED, _OPTIONAL)
    places = {0: BASE, **{joint.number: place for place, joint in enumerate(robot.joints)}}
    passive = [joint.number for place, joint in enumerate(robot.joints) if place not in robot.active]
    numbers = [reader.choice(x, "closure solved", passive) for x in reader.items(data["solved"], "closure solved")]
    if not numbers or len(set(numbers)) < len(numbers):
        raise reader.error("closure solved", f"is {numbers}; expected at least one passive joint, and each once")
    solved = tuple(places[number] for number in numbers)
    usual = _usual_follow(robot, solved)
    follow = reader.array(data["follow"], "closure follow", *usual.shape) if "follow" in data else usual
    loops = [
        _loop(reader, item, f"closure loops[{i + 1}]", places)
        for i, item in enumerate(reader.items(data["loops"], "closure loops"))
    ]
    if not loops:
        raise reader.error("closure loops", "is empty; expected at least one loop")
    reference = reader.array(data["reference"], "closure reference", len(robot.active))
    branch = reader.array(data["branch"], "closure branch", len(solved))
    labels = [element.label for element in robot.elements]
    rubbed = reader.mapping(data.get("elements", {}), "closure elements", labels)
    directions = {key: reader.array(item, f"closure elements {key}", len(solved)) for key, item in rubbed.items()}
    elements = tuple(
        dataclasses.replace(element, solved=directions.get(element.label, np.zeros(len(solved))))
        for element in robot.elements
    )
    closure = Closure(tuple(loops), solved, follow, reference, branch)
    return dataclasses.replace(robot, elements=elements, closure=closure)


def _usual_follow(robot: Robot, solved: tuple[int, ...]) -> Array:
    """(n_joints, n_solved) when no other joint follows the solved ones."""
    return np.ascontiguousarray(np.eye(len(robot.joints))[:, list(solved)])


def _loop(reader: LocatedReader, value: object, where: str, places: Mapping[int, int]) -> Loop:
    record = reader.record(value, where, ("name", "links", "frames"), ("joint",))
    links = [
        reader.choice(x, f"{where} links", list(places)) for x in reader.items(record["links"], f"{where} links", 2)
    ]
    frames = []
    for item in reader.items(record["frames"], f"{where} frames", 2):
        matrix = reader.array(item, f"{where} frames", 3, 4)
        frames.append(Transform(matrix[:, :3], matrix[:, 3]))
    joint = reader.choice(record.get("joint", "revolute"), f"{where} joint", CUT_JOINTS)
    name = reader.text(record["name"], f"{where} name")
    return Loop(name, (places[links[0]], places[links[1]]), (frames[0], frames[1]), joint)
