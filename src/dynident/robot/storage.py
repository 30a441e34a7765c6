"""A robot as plain data, so that a result file can carry the robot it belongs to.

Every key of the record is declared once, in a table that says how it is written and how it is read back. The record is
made of mappings, lists, texts and numbers only, and every number comes back bit for bit from YAML and JSON. Links and
joints go by their numbers, as in parameter names: joint 3 is q3, its motor m3, and 0 is the base. Frames are three rows
of [axes | origin], 3 x 4. What is as usual is left out:

- of a joint: kind revolute, the joint before it as parent, its number as link, an `after` that changes nothing, limits;
- of the robot: every joint active, motors that turn their own joints without gears, offsets or gains, empty mappings;
- of an element: a torque along its velocity, and what it carries where the parameter names begin with it;
- of a loop that is closed numerically: a revolute cut joint; and solved joints that no other follows.

A checksum of the rebuilt robot tells a record that was changed or has lost a line from an intact one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from dynident.arrays import Array
from dynident.robot.dh import CONVENTIONS, FIXED, PRISMATIC, REVOLUTE, DhRow, DhTable
from dynident.robot.draft import check_joint_count
from dynident.robot.expressions import evaluate
from dynident.robot.loops import CUT_JOINTS
from dynident.robot.model import BASE, Closure, Drive, Element, Joint, Limits, Loop, Robot, Transform
from dynident.robot.overlay import column_rules_of
from dynident.robot.parameters import ELEMENT_SYMBOLS, LINK_SYMBOLS
from dynident.robot.spring_files import SPRING_KEYS, read_stored_springs
from dynident.robot.stored_keys import (
    Around,
    Keys,
    Read,
    StoredKey,
    choice_key,
    frame_data,
    frame_key,
    link_number,
    plain,
    read_by,
    read_frame,
    read_record,
    text_key,
    unusual,
    without_none,
    write_own,
    write_record,
)
from dynident.schema import LocatedReader, quote

FORMAT = "dynident robot 1"
_LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
_IN_RECORD = "the record is damaged or foreign: take an intact copy, or store the robot again"
_IN_ROBOT = "repair the robot before it is stored"


# ----------------------------------------------------------------------------------------------------------------------
# Joints, drives, elements, tables of lengths, tools.


def _parent_data(joint: Joint, robot: Robot) -> int | None:
    place = next(i for i, other in enumerate(robot.joints) if other is joint)
    parent = link_number(robot, joint.parent)
    return None if parent == (link_number(robot, place - 1) if place else 0) else parent


_JOINT: Keys = {
    "name": text_key("name"),
    "number": StoredKey(lambda joint, _: int(joint.number), read_by(LocatedReader.integer)),
    "kind": choice_key("kind", ("revolute", "prismatic"), "revolute"),
    "parent": StoredKey(
        _parent_data,
        lambda reader, value, where, around: around["places"][reader.choice(value, where, list(around["places"]))],
        lambda around: list(around["places"].values())[-1],
    ),
    "link": StoredKey(
        lambda joint, _: None if joint.link == str(joint.number) else joint.link,
        read_by(LocatedReader.words),
        lambda around: str(around["number"]),
    ),
    "before": frame_key("before"),
    "after": frame_key("after"),
    "limits": StoredKey(
        lambda joint, _: without_none(plain(dataclasses.asdict(joint.limits))) or None,
        lambda reader, value, where, _: Limits(**reader.named_numbers(value, where, _LIMITS)),
        lambda _: Limits(),
    ),
}


def _read_joints(reader: LocatedReader, value: object, where: str, _: Around) -> tuple[Joint, ...]:
    items = reader.items(value, where)
    check_joint_count(reader, len(items))
    joints: list[Joint] = []
    for i, item in enumerate(items):
        places = {0: BASE, **{other.number: place for place, other in enumerate(joints)}}
        joint = Joint(**read_record(reader, _JOINT, item, f"joints[{i + 1}]", {"places": places}))
        if joint.number < 1 or any(joint.number == other.number or joint.name == other.name for other in joints):
            problem = f"is '{joint.name}', number {joint.number}; expected a name and number of its own, from 1"
            raise reader.error(f"joints[{i + 1}]", problem)
        joints.append(joint)
    return tuple(joints)


def _per_motor(reader: LocatedReader, value: object, where: str, around: Around) -> Array:
    return reader.array(value, where, len(around["active"]))


def _gains_key(name: str) -> StoredKey:
    return StoredKey(
        lambda drive, _: None if getattr(drive, name) is None else getattr(drive, name).tolist(),
        _per_motor,
        lambda _: None,
    )


_DRIVE: Keys = {
    "gear_ratios": StoredKey(
        lambda drive, _: unusual(drive.gear_ratios, np.ones_like(drive.gear_ratios)),
        _per_motor,
        lambda around: np.ones(len(around["active"])),
    ),
    "gains": _gains_key("gains"),
    "gain_tolerances": _gains_key("gain_tolerances"),
    "source": choice_key("source", ("motor", "sensor"), None),
    "kp": _gains_key("kp"),
    "kd": _gains_key("kd"),
}


def _motors(joints: Sequence[Joint], active: Sequence[int]) -> list[str]:
    return [f"m{joints[j].number}" for j in active]


def _direction_data(direction: Array, robot: Robot) -> dict[str, float]:
    """The entries of a direction that are not a plain zero, by motor."""
    motors = _motors(robot.joints, robot.active)
    return {motor: x for motor, x in zip(motors, direction.tolist(), strict=True) if repr(x) != "0.0"}


def _read_direction(reader: LocatedReader, value: object, where: str, around: Around) -> Array:
    """{motor: number} as an array over all motors, (n_active,)."""
    motors = _motors(around["joints"], around["active"])
    given = reader.named_numbers(value, where, motors)
    return np.array([given.get(motor, 0.0) for motor in motors])


_ELEMENT: Keys = {  # names and what they stand for are lists: their order is that of the columns
    "label": text_key("label"),
    "velocity": StoredKey(lambda element, robot: _direction_data(element.velocity, robot), _read_direction),
    "torque": StoredKey(
        lambda element, robot: (
            None if element.torque.tobytes() == element.velocity.tobytes() else _direction_data(element.torque, robot)
        ),
        _read_direction,
        lambda around: around["velocity"],
    ),
    "names": StoredKey(
        lambda element, _: list(element.names.values()),
        lambda reader, value, where, _: [reader.text(name, where) for name in reader.items(value, where)],
    ),
    "carries": StoredKey(
        lambda element, _: (
            None if list(element.names) == [name[:2] for name in element.names.values()] else list(element.names)
        ),
        lambda reader, value, where, around: reader.items(value, where, len(around["names"])),
        lambda around: [name[:2] for name in around["names"]],  # every symbol has two letters: Fv3 is an Fv
    ),
    "prismatic": choice_key("prismatic", (False, True), False),
}


def _read_elements(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[Element, ...]:
    result = []
    for i, item in enumerate(reader.items(value, where)):
        place = f"{where}[{i + 1}]"
        found = read_record(reader, _ELEMENT, item, place, around)
        symbols = [reader.choice(symbol, f"{place} carries", ELEMENT_SYMBOLS) for symbol in found.pop("carries")]
        if len(set(symbols)) < len(symbols):
            raise reader.error(place, f"carries {', '.join(symbols)}; expected each symbol once")
        result.append(Element(**{**found, "names": dict(zip(symbols, found["names"], strict=True))}))
    return tuple(result)


def _cell_key(column: str) -> StoredKey:
    def data(row: DhRow, _: Robot) -> Any:
        cell = plain(row.cells.get(column, 0.0))
        return None if repr(cell) == "0.0" else cell

    def read(reader: LocatedReader, value: object, where: str, _: Around) -> object:
        reader.number(value, where, evaluate=evaluate)  # expressions over lengths are welcome
        return value

    return StoredKey(data, read, lambda _: 0.0)


def _antecedent_data(row: DhRow, robot: Robot) -> int | None:
    """None where it is the frame before."""
    assert isinstance(robot.geometry, DhTable)
    place = next(i for i, other in enumerate(robot.geometry.rows) if other is row)
    return None if row.antecedent == place else row.antecedent


_ROW: Keys = {
    "name": text_key("name"),
    "antecedent": StoredKey(
        _antecedent_data,
        lambda reader, value, where, around: reader.choice(
            value, where, [i for i in range(around["n_rows"] + 1) if i != around["place"] + 1]
        ),
        lambda around: around["place"],
    ),
    "sigma": choice_key("sigma", (REVOLUTE, PRISMATIC, FIXED), REVOLUTE),
    "mu": choice_key("mu", (0, 1), None),
    "cut": choice_key("cut", (False, True), False),
}


def _row_keys(convention: str) -> Keys:
    return {**_ROW, **{column: _cell_key(column) for column in CONVENTIONS[convention]}}


_GEOMETRY: Keys = {
    "convention": StoredKey(
        write_own("convention"), lambda reader, value, where, _: reader.choice(value, where, tuple(CONVENTIONS))
    ),
    "rows": StoredKey(
        lambda table, robot: [write_record(_row_keys(table.convention), row, robot) for row in table.rows],
        read_by(LocatedReader.items),
    ),
}


def _read_geometry(reader: LocatedReader, value: object, where: str, around: Around) -> DhTable:
    """The table over named lengths, which must give a frame for every joint."""
    found, lengths = read_record(reader, _GEOMETRY, value, where, around), around["lengths"]
    columns, items, rows = CONVENTIONS[found["convention"]], found["rows"], []
    reader.names = dict(lengths)
    for i, item in enumerate(items):
        keys = _row_keys(found["convention"])
        row = read_record(reader, keys, item, f"{where} rows[{i + 1}]", {"place": i, "n_rows": len(items)})
        cells = {column: row.pop(column) for column in columns}
        rows.append(DhRow(**row, cells=cells))
    table, n_joints = DhTable(found["convention"], tuple(rows)), len(around["joints"])
    if len(table.order) != len(rows) or len(table.moving) != n_joints:
        raise reader.error(f"{where} rows", f"give {len(table.moving)} joints; expected {n_joints}")
    try:
        with np.errstate(all="ignore"):
            table.frames({name: np.array([length, length]) for name, length in lengths.items()})
    except (ArithmeticError, TypeError, ValueError) as error:  # an ExpressionError is a ValueError
        problem = f"cannot be worked out ({error}); expected lengths in distances"
        raise reader.error(f"{where} rows", problem) from None
    return table


def _places(around: Around) -> dict[int, int]:
    """Places of the links by their numbers."""
    return {joint.number: place for place, joint in enumerate(around["joints"])}


_TOOL: Keys = {
    "link": StoredKey(
        lambda tool, robot: link_number(robot, tool[0]),
        lambda reader, value, where, around: _places(around)[reader.choice(value, where, list(_places(around)))],
    ),
    "frame": StoredKey(lambda tool, _: frame_data(tool[1]), read_frame, lambda _: Transform.identity()),
}


def _read_tool(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[int, Transform]:
    found = read_record(reader, _TOOL, value, where, around)
    return found["link"], found["frame"]


def _read_frames(reader: LocatedReader, value: object, where: str, around: Around) -> dict[str, tuple[int, Transform]]:
    given = reader.mapping(value, where)
    return {str(name): _read_tool(reader, frame, f"{where} '{name}'", around) for name, frame in given.items()}


# ----------------------------------------------------------------------------------------------------------------------
# Loops that are closed numerically.


def _read_links(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[int, ...]:
    places = {0: BASE, **_places(around)}
    return tuple(places[reader.choice(x, where, list(places))] for x in reader.items(value, where, 2))


_LOOP: Keys = {
    "name": text_key("name"),
    "links": StoredKey(lambda loop, robot: [link_number(robot, link) for link in loop.links], _read_links),
    "frames": StoredKey(
        lambda loop, _: [np.column_stack([frame.rotation, frame.translation]).tolist() for frame in loop.frames],
        lambda reader, value, where, around: tuple(
            read_frame(reader, item, where, around) for item in reader.items(value, where, 2)
        ),
    ),
    "joint": choice_key("joint", CUT_JOINTS, "revolute"),
}


def _usual_follow(joints: Sequence[Joint], solved: tuple[int, ...]) -> Array:
    """(n_joints, n_solved) when no other joint follows the solved ones."""
    return np.ascontiguousarray(np.eye(len(joints))[:, list(solved)])


def _read_loops(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[Loop, ...]:
    items = reader.items(value, where)
    if not items:
        raise reader.error(where, "is empty; expected at least one loop")
    return tuple(Loop(**read_record(reader, _LOOP, item, f"{where}[{i + 1}]", around)) for i, item in enumerate(items))


def _read_solved(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[int, ...]:
    passive = [number for number, place in _places(around).items() if place not in around["active"]]
    chosen = [reader.choice(x, where, passive) for x in reader.items(value, where)]
    if not chosen or len(set(chosen)) < len(chosen):
        raise reader.error(where, f"is {chosen}; expected at least one passive joint, and each once")
    return tuple(_places(around)[number] for number in chosen)


def _read_rubbed(reader: LocatedReader, value: object, where: str, around: Around) -> dict[str, Array]:
    given = reader.mapping(value, where, [element.label for element in around["elements"]])
    return {label: reader.array(item, f"{where} {label}", len(around["solved"])) for label, item in given.items()}


_CLOSURE: Keys = {  # part: the closure
    "loops": StoredKey(
        lambda closure, robot: [write_record(_LOOP, loop, robot) for loop in closure.loops], _read_loops
    ),
    "solved": StoredKey(lambda closure, robot: [link_number(robot, j) for j in closure.solved], _read_solved),
    "reference": StoredKey(lambda closure, _: closure.reference.tolist(), _per_motor),
    "branch": StoredKey(
        lambda closure, _: closure.branch.tolist(),
        lambda reader, value, where, around: reader.array(value, where, len(around["solved"])),
    ),
    "follow": StoredKey(
        lambda closure, robot: unusual(closure.follow, _usual_follow(robot.joints, closure.solved)),
        lambda reader, value, where, around: reader.array(value, where, len(around["joints"]), len(around["solved"])),
        lambda around: _usual_follow(around["joints"], around["solved"]),
    ),
    "elements": StoredKey(
        lambda _, robot: {x.label: x.solved.tolist() for x in robot.elements if x.solved.any()} or None,
        _read_rubbed,
        lambda _: {},
    ),
}


# ----------------------------------------------------------------------------------------------------------------------
# The robot.


def _read_active(reader: LocatedReader, value: object, where: str, around: Around) -> tuple[int, ...]:
    """Places of the joints with a motor, from their numbers."""
    places, given = _places(around), reader.items(value, where)
    active = tuple(places[reader.choice(number, where, list(places))] for number in given)
    if not active or len(set(active)) < len(active):
        raise reader.error(where, f"is {quote(given)}; expected at least one joint, and each once")
    return active


def _usual_actuation(name: str, n_joints: int, active: Sequence[int]) -> Array:
    """An array of a robot whose motors turn their own joints."""
    n = len(active)
    if name == "follow":
        return np.ascontiguousarray(np.eye(n_joints)[:, list(active)])
    return np.eye(n) if name == "coupling" else np.zeros(n_joints if name == "follow_offset" else n)


def _actuation_key(name: str) -> StoredKey:
    def usual(around: Around) -> Array:
        return _usual_actuation(name, len(around["joints"]), around["active"])

    return StoredKey(
        lambda robot, _: unusual(getattr(robot, name), _usual_actuation(name, len(robot.joints), robot.active)),
        lambda reader, value, where, around: reader.array(value, where, *usual(around).shape),
        usual,
    )


def _parameter_names(around: Around) -> list[str]:
    links = [f"{symbol}{joint.number}" for joint in around["joints"] for symbol in LINK_SYMBOLS]
    elements = [name for element in around["elements"] for name in element.names.values()]
    return [*links, *elements, *(name for spring in around["springs"] for name in spring.names)]


def _read_locked(reader: LocatedReader, value: object, where: str, around: Around) -> dict[int, float]:
    variables = [around["joints"][j].variable for j in around["active"]]
    given = reader.named_numbers(value, where, variables)
    if len(given) == len(variables):
        raise reader.error(where, "names every joint; expected at least one that moves")
    return {variables.index(variable): position for variable, position in given.items()}


def _named_key(name: str, read: Read) -> StoredKey:
    """Numbers by name; an empty mapping is left out."""
    return StoredKey(lambda robot, _: plain(getattr(robot, name)) or None, read, lambda _: {})


def _sentences_key(name: str) -> StoredKey:
    return StoredKey(
        lambda robot, _: list(getattr(robot, name)) or None,
        read_by(LocatedReader.sentences),
        lambda _: (),
    )


_ROBOT: Keys = {
    "name": text_key("name"),
    "source": StoredKey(write_own("source"), read_by(LocatedReader.words)),
    "gravity": StoredKey(
        lambda robot, _: robot.gravity.tolist(), lambda reader, value, where, _: reader.array(value, where, 3)
    ),
    "joints": StoredKey(lambda robot, _: [write_record(_JOINT, joint, robot) for joint in robot.joints], _read_joints),
    "active": StoredKey(
        lambda robot, _: (
            None if robot.active == tuple(range(len(robot.joints))) else [robot.joints[j].number for j in robot.active]
        ),
        _read_active,
        lambda around: tuple(range(len(around["joints"]))),
    ),
    **{name: _actuation_key(name) for name in ("follow", "follow_offset", "coupling", "zero")},
    "drive": StoredKey(
        lambda robot, _: write_record(_DRIVE, robot.drive, robot) or None,
        lambda reader, value, where, around: Drive(**read_record(reader, _DRIVE, value, where, around)),
        lambda around: Drive(np.ones(len(around["active"]))),
    ),
    "elements": StoredKey(lambda robot, _: [write_record(_ELEMENT, x, robot) for x in robot.elements], _read_elements),
    "springs": StoredKey(
        lambda robot, _: [write_record(SPRING_KEYS, x, robot) for x in robot.springs] or None,
        read_stored_springs,
        lambda _: (),
    ),
    "values": StoredKey(
        lambda robot, _: plain(robot.values),
        lambda reader, value, where, around: reader.named_sets(value, where, _parameter_names(around)),
    ),
    "default_values": StoredKey(
        write_own("default_values"),
        lambda reader, value, where, around: reader.choice(reader.text(value, where), where, list(around["values"])),
    ),
    "base_values": _named_key("base_values", read_by(LocatedReader.named_sets)),
    "fixed": _named_key(
        "fixed",
        lambda reader, value, where, around: reader.named_numbers(value, where, _parameter_names(around)),
    ),
    "locked": StoredKey(
        lambda robot, _: (
            {robot.joints[robot.active[i]].variable: plain(q) for i, q in sorted(robot.locked.items())} or None
        ),
        _read_locked,
        lambda _: {},
    ),
    "lengths": _named_key("lengths", read_by(LocatedReader.named_numbers)),
    "geometry": StoredKey(
        lambda robot, _: (
            write_record(_GEOMETRY, robot.geometry, robot) if isinstance(robot.geometry, DhTable) else None
        ),
        _read_geometry,
        lambda _: None,
    ),
    "tool": StoredKey(
        lambda robot, _: robot.tool and write_record(_TOOL, robot.tool, robot), _read_tool, lambda _: None
    ),
    "tool_name": StoredKey(lambda robot, _: robot.tool_name or None, read_by(LocatedReader.words), lambda _: ""),
    "frames": StoredKey(
        lambda robot, _: {name: write_record(_TOOL, x, robot) for name, x in robot.frames.items()} or None,
        _read_frames,
        lambda _: {},
    ),
    "closes": _sentences_key("closes"),
    "warnings": _sentences_key("warnings"),
    "closure": StoredKey(
        lambda robot, _: robot.closure and write_record(_CLOSURE, robot.closure, robot),
        lambda reader, value, where, around: read_record(reader, _CLOSURE, value, where, around),
        lambda _: None,
    ),
    "columns": StoredKey(
        lambda robot, _: {name: dict(rule) for name, rule in robot.columns.items()} or None,
        lambda reader, value, _, __: column_rules_of(reader, value),
        lambda _: {},
    ),
}


def robot_to_data(robot: Robot) -> dict[str, Any]:
    """The robot as a record of plain JSON and YAML types, from which `robot_from_data` rebuilds it.

    A geometry over named lengths is kept when it is a table, as every geometry that is read from a file; one of
    another class is left out, and with it only the printing of coefficients over named lengths.

    Raises:
        RobotFileError: When a robot made by hand could not be read back, such as one with a NaN.
    """
    content = write_record(_ROBOT, robot, robot)
    reader = LocatedReader(robot.source, remedy=_IN_ROBOT)
    if _robot(reader, {"format": FORMAT, **content, "checksum": ""}).fingerprint != robot.fingerprint:
        raise reader.error("", "its fingerprint would change; expected plain Python floats and texts in its mappings")
    return {"format": FORMAT, **content, "checksum": _checksum(content)}


def robot_from_data(data: Mapping[str, Any], source: str) -> Robot:
    """The robot of a record that `robot_to_data` made.

    Args:
        data: The record, as YAML or JSON returns it.
        source: Where the record stands, for messages; the robot keeps the source it was first read from.

    Raises:
        RobotFileError: For a damaged or foreign record, with source, key, what was expected and what to do.
    """
    reader = LocatedReader(source, remedy=_IN_RECORD)
    robot = _robot(reader, data)
    if data["checksum"] != _checksum(write_record(_ROBOT, robot, robot)):
        raise reader.error("checksum", "does not fit; a key was changed or removed after the robot was stored")
    return robot


def _robot(reader: LocatedReader, data: object) -> Robot:
    """The robot of a record, its checksum left aside."""
    if isinstance(data, Mapping):  # the format first: in a foreign record it explains all the other differences
        reader.choice(data.get("format"), "format", (FORMAT,))
    found = read_record(reader, _ROBOT, data, "", {}, "format", "checksum")
    if (loops := found["closure"]) is not None:
        rubbed, still = loops.pop("elements"), np.zeros(len(loops["solved"]))
        found["closure"] = Closure(**loops)
        found["elements"] = tuple(
            dataclasses.replace(element, solved=rubbed.get(element.label, still)) for element in found["elements"]
        )
    return Robot(**found)


def _checksum(content: Mapping[str, Any]) -> str:
    """Hash of a record's content, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


class _PlainDumper(yaml.CSafeDumper):
    """Writes every value out: the readers of robot files refuse aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(data: Mapping[str, Any]) -> str:
    """A record as compact YAML, keys in their order; numbers and texts are read back exactly, 1e-05 included."""
    return str(yaml.dump(dict(data), Dumper=_PlainDumper, default_flow_style=None, sort_keys=False, width=120))
