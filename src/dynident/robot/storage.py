"""Numerically closed loops within the record of a robot (see `storage`).

Links and joints go by their numbers, 0 is the base. What is as usual is left out: a revolute cut joint, frames that
change nothing, solved joints that no other follows, elements that solved joints do not rub.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from dynident.arrays import Array
from dynident.robot.dh import CONVENTIONS, FIXED, PRISMATIC, REVOLUTE, DhRow, DhTable
from dynident.robot.draft import check_joint_count
from dynident.robot.expressions import evaluate
from dynident.robot.loops import CUT_JOINTS
from dynident.robot.model import BASE, Closure, Drive, Element, Geometry, Joint, Limits, Loop, Robot, Transform
from dynident.robot.overlay import column_rules_of
from dynident.robot.parameters import ELEMENT_SYMBOLS
from dynident.schema import LocatedReader, quoted

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


# ----------------------------------------------------------------------------------------------------------------------
# A robot as plain data, so that a result file can carry the robot it belongs to.
#
# The record is made of mappings, lists, texts and numbers only, and every number comes back bit for bit from YAML and
# JSON. Links and joints go by their numbers, as in parameter names: joint 3 is q3, its motor m3, and 0 is the base.
# Frames are three rows of [axes | origin], 3 x 4. What is as usual is left out:
#
# - of a joint: kind revolute, the joint before it as parent, its number as link, an `after` that changes nothing,
# limits;
# - of the robot: every joint active, motors that turn their own joints without gears, offsets or gains, empty mappings;
# - of an element: a torque along its velocity, and what it carries where the parameter names begin with it.
#
# A checksum of the rebuilt robot tells a record that was changed or has lost a line from an intact one.

FORMAT = "dynident robot 1"
_STORAGE_REQUIRED = (
    "format",
    "name",
    "source",
    "gravity",
    "joints",
    "elements",
    "values",
    "default_values",
    "checksum",
)
_ACTUATION = ("active", "follow", "follow_offset", "coupling", "zero", "drive", "closure")
_STORAGE_OPTIONAL = (
    *_ACTUATION,
    "base_values",
    "fixed",
    "locked",
    "lengths",
    "geometry",
    "tool",
    "closes",
    "warnings",
    "columns",
)
_JOINT_OPTIONAL = ("kind", "parent", "link", "before", "after", "limits")
_LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
_IN_RECORD = "the record is damaged or foreign: take an intact copy, or store the robot again"
_IN_ROBOT = "repair the robot before it is stored"


def robot_to_data(robot: Robot) -> dict[str, Any]:
    """The robot as a record of plain JSON and YAML types, from which `robot_from_data` rebuilds it.

    A geometry over named lengths is kept when it is a table, as every geometry that is read from a file; one of
    another class is left out, and with it only the printing of coefficients over named lengths.

    Raises:
        RobotFileError: When a robot made by hand could not be read back, such as one with a NaN.
    """
    content = _content(robot)
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
    if data["checksum"] != _checksum(_content(robot)):
        raise reader.error("checksum", "does not fit; a key was changed or removed after the robot was stored")
    return robot


class _PlainDumper(yaml.SafeDumper):
    """Writes every value out: the readers of robot files refuse aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(data: Mapping[str, Any]) -> str:
    """A record as compact YAML, keys in their order; numbers and texts are read back exactly, 1e-05 included."""
    return str(yaml.dump(dict(data), Dumper=_PlainDumper, default_flow_style=None, sort_keys=False, width=120))


def _content(robot: Robot) -> dict[str, Any]:
    """Everything but format and checksum, with what is as usual left out."""
    joints = robot.joints
    motors = [f"m{joints[j].number}" for j in robot.active]
    actuation = _usual_actuation(robot.active, len(joints))
    tool = robot.tool and _given({"link": joints[robot.tool[0]].number, "frame": _frame_data(robot.tool[1])})
    content = {
        "name": robot.name,
        "source": robot.source,
        "gravity": robot.gravity.tolist(),
        "joints": [_joint_data(joints, place) for place in range(len(joints))],
        "active": None if robot.active == tuple(range(len(joints))) else [joints[j].number for j in robot.active],
        **{key: _unusual(getattr(robot, key), usual) for key, usual in actuation.items()},
        "drive": _drive_data(robot.drive) or None,
        "elements": [_element_data(element, motors) for element in robot.elements],
        "values": _plain(robot.values),
        "default_values": robot.default_values,
        "base_values": _plain(robot.base_values) or None,
        "fixed": _plain(robot.fixed) or None,
        "locked": {joints[robot.active[i]].variable: _plain(q) for i, q in sorted(robot.locked.items())} or None,
        "lengths": _plain(robot.lengths) or None,
        "geometry": _geometry_data(robot.geometry),
        "tool": tool,
        "closes": list(robot.closes) or None,
        "warnings": list(robot.warnings) or None,
        "closure": closure_data(robot),
        "columns": {name: dict(rule) for name, rule in robot.columns.items()} or None,
    }
    return _given(content)


def _checksum(content: Mapping[str, Any]) -> str:
    """Hash of a record's content, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _given(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}


def _plain(value: Any) -> Any:
    """Numbers of any type as Python floats, also within mappings; anything else stays, for the check to name it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else value


def _unusual(array: Array, usual: Array) -> list[Any] | None:
    """The array as nested lists, None when it is `usual` to the last bit; 0.0 and -0.0 differ."""
    same = array.shape == usual.shape and array.tobytes() == usual.tobytes()
    return None if same else list(array.tolist())


def _usual_actuation(active: Sequence[int], n_joints: int) -> dict[str, Array]:
    """The arrays of a robot whose motors turn their own joints."""
    n = len(active)
    follow = np.ascontiguousarray(np.eye(n_joints)[:, list(active)])
    return {"follow": follow, "follow_offset": np.zeros(n_joints), "coupling": np.eye(n), "zero": np.zeros(n)}


def _frame_data(frame: Transform) -> list[list[float]] | None:
    """Rows of [axes | origin], None for the identity."""
    return _unusual(np.column_stack([frame.rotation, frame.translation]), np.eye(3, 4))


def _joint_data(joints: Sequence[Joint], place: int) -> dict[str, Any]:
    joint = joints[place]
    parent = 0 if joint.parent == BASE else joints[joint.parent].number
    usual_parent = joints[place - 1].number if place else 0
    record = {
        "name": joint.name,
        "number": int(joint.number),
        "kind": None if joint.kind == "revolute" else joint.kind,
        "parent": None if parent == usual_parent else int(parent),
        "link": None if joint.link == str(joint.number) else joint.link,
        "before": _frame_data(joint.before),
        "after": _frame_data(joint.after),
        "limits": _given(_plain(dataclasses.asdict(joint.limits))) or None,
    }
    return _given(record)


def _drive_data(drive: Drive) -> dict[str, Any]:
    ratios = _unusual(drive.gear_ratios, np.ones_like(drive.gear_ratios))
    gains = {key: getattr(drive, key) for key in ("gains", "gain_tolerances")}
    lists = {key: array.tolist() for key, array in _given(gains).items()}
    return _given({"gear_ratios": ratios, **lists, "source": drive.source})


def _element_data(element: Element, motors: Sequence[str]) -> dict[str, Any]:
    """Parameter names and what they stand for as lists: their order is that of the columns."""
    names, symbols = list(element.names.values()), list(element.names)
    same = element.torque.tobytes() == element.velocity.tobytes()
    record = {
        "label": element.label,
        "velocity": _direction_data(element.velocity, motors),
        "torque": None if same else _direction_data(element.torque, motors),
        "names": names,
        "carries": None if symbols == [name[:2] for name in names] else symbols,
        "prismatic": True if element.prismatic else None,
    }
    return _given(record)


def _direction_data(direction: Array, motors: Sequence[str]) -> dict[str, float]:
    """The entries of a direction that are not a plain zero, by motor."""
    return {motor: x for motor, x in zip(motors, direction.tolist(), strict=True) if repr(x) != "0.0"}


def _geometry_data(geometry: Geometry | None) -> dict[str, Any] | None:
    if not isinstance(geometry, DhTable):
        return None
    rows = []
    for place, row in enumerate(geometry.rows):
        record = {
            "name": row.name,
            "antecedent": None if row.antecedent == place else row.antecedent,
            "sigma": None if row.sigma == REVOLUTE else row.sigma,
            "mu": row.mu,
            "cut": True if row.cut else None,
        }
        cells = {key: cell for key, cell in _plain(row.cells).items() if repr(cell) != "0.0"}
        rows.append({**_given(record), **cells})
    return {"convention": geometry.convention, "rows": rows}


def _robot(reader: LocatedReader, data: object) -> Robot:
    """The robot of a record, its checksum left aside."""
    if isinstance(data, Mapping):  # the format first: in a foreign record it explains all the other differences
        reader.choice(data.get("format"), "format", (FORMAT,))
    record = reader.record(data, "", _STORAGE_REQUIRED, _STORAGE_OPTIONAL)
    joints = _joints(reader, record["joints"])
    places = {joint.number: place for place, joint in enumerate(joints)}
    active = _active(reader, record, places)
    arrays: dict[str, Any] = {**_usual_actuation(active, len(joints))}
    for key, usual in arrays.items():
        if key in record:
            arrays[key] = reader.array(record[key], key, *usual.shape)
    robot = Robot(
        name=reader.text(record["name"], "name"),
        source=reader.words(record["source"], "source"),
        joints=joints,
        gravity=reader.array(record["gravity"], "gravity", 3),
        active=active,
        **arrays,
        drive=_drive(reader, record.get("drive", {}), len(active)),
        elements=_elements(reader, record["elements"], [f"m{joints[j].number}" for j in active]),
        values={},
        default_values=reader.text(record["default_values"], "default_values"),
        locked=_locked(reader, record.get("locked", {}), [joints[j].variable for j in active]),
        tool=_tool(reader, record["tool"], places) if "tool" in record else None,
        closes=reader.sentences(record.get("closes", []), "closes"),
        warnings=reader.sentences(record.get("warnings", []), "warnings"),
        columns=column_rules_of(reader, record.get("columns", {})),
    )
    return with_closure(reader, dataclasses.replace(robot, **_values(reader, record, robot)), record)


def _values(reader: LocatedReader, record: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """The fields that hold values by name; parameter names must be the robot's."""
    known = robot.parameter_names
    values = reader.named_sets(record["values"], "values", known)
    reader.choice(robot.default_values, "default_values", list(values))
    lengths = reader.named_numbers(record.get("lengths", {}), "lengths")
    return {
        "values": values,
        "base_values": reader.named_sets(record.get("base_values", {}), "base_values"),
        "fixed": reader.named_numbers(record.get("fixed", {}), "fixed", known),
        "lengths": lengths,
        "geometry": _geometry(reader, record["geometry"], lengths, robot) if "geometry" in record else None,
    }


def _joints(reader: LocatedReader, value: object) -> tuple[Joint, ...]:
    items = reader.items(value, "joints")
    check_joint_count(reader, len(items))
    joints: list[Joint] = []
    for i, item in enumerate(items):
        where = f"joints[{i + 1}]"
        record = reader.record(item, where, ("name", "number"), _JOINT_OPTIONAL)
        name = reader.text(record["name"], f"{where} name")
        number = reader.integer(record["number"], f"{where} number")
        if number < 1 or any(number == other.number or name == other.name for other in joints):
            raise reader.error(where, f"is '{name}', number {number}; expected a name and number of its own, from 1")
        places = {0: BASE, **{other.number: place for place, other in enumerate(joints)}}
        parent = reader.choice(record.get("parent", list(places)[-1]), f"{where} parent", list(places))
        kind = reader.choice(record.get("kind", "revolute"), f"{where} kind", ("revolute", "prismatic"))
        before, after = (_frame(reader, record, key, where) for key in ("before", "after"))
        link = reader.words(record.get("link", str(number)), f"{where} link")
        limits = reader.named_numbers(record.get("limits", {}), f"{where} limits", _LIMITS)
        joints.append(Joint(name, number, kind, places[parent], before, after, link, Limits(**limits)))
    return tuple(joints)


def _active(reader: LocatedReader, record: Mapping[str, Any], places: Mapping[int, int]) -> tuple[int, ...]:
    """Places of the joints with a motor, from their numbers."""
    given = reader.items(record.get("active", list(places)), "active")
    active = tuple(places[reader.choice(number, "active", list(places))] for number in given)
    if not active or len(set(active)) < len(active):
        raise reader.error("active", f"is {quoted(given)}; expected at least one joint, and each once")
    return active


def _drive(reader: LocatedReader, value: object, n: int) -> Drive:
    record = reader.record(value, "drive", (), ("gear_ratios", "gains", "gain_tolerances", "source"))
    arrays = {key: reader.array(record[key], f"drive {key}", n) for key in record if key != "source"}
    source = reader.choice(record["source"], "drive source", ("motor", "sensor")) if "source" in record else None
    return Drive(**{"gear_ratios": np.ones(n), **arrays}, source=source)


def _elements(reader: LocatedReader, value: object, motors: Sequence[str]) -> tuple[Element, ...]:
    result = []
    for i, item in enumerate(reader.items(value, "elements")):
        where = f"elements[{i + 1}]"
        record = reader.record(item, where, ("label", "velocity", "names"), ("torque", "carries", "prismatic"))
        velocity = _direction(reader, record["velocity"], f"{where} velocity", motors)
        torque = _direction(reader, record.get("torque", record["velocity"]), f"{where} torque", motors)
        names = [reader.text(name, f"{where} names") for name in reader.items(record["names"], f"{where} names")]
        usual = [name[:2] for name in names]  # every symbol has two letters: Fv3 is an Fv
        carries = reader.items(record.get("carries", usual), f"{where} carries", len(names))
        symbols = [reader.choice(symbol, f"{where} carries", ELEMENT_SYMBOLS) for symbol in carries]
        if len(set(symbols)) < len(symbols):
            raise reader.error(where, f"carries {', '.join(symbols)}; expected each symbol once")
        prismatic = reader.choice(record.get("prismatic", False), f"{where} prismatic", (False, True))
        label = reader.text(record["label"], f"{where} label")
        result.append(Element(label, velocity, torque, dict(zip(symbols, names, strict=True)), prismatic))
    return tuple(result)


def _locked(reader: LocatedReader, value: object, variables: Sequence[str]) -> dict[int, float]:
    given = reader.named_numbers(value, "locked", variables)
    if len(given) == len(variables):
        raise reader.error("locked", "names every joint; expected at least one that moves")
    return {variables.index(variable): position for variable, position in given.items()}


def _tool(reader: LocatedReader, value: object, places: Mapping[int, int]) -> tuple[int, Transform]:
    record = reader.record(value, "tool", ("link",), ("frame",))
    return places[reader.choice(record["link"], "tool link", list(places))], _frame(reader, record, "frame", "tool")


def _geometry(reader: LocatedReader, value: object, lengths: Mapping[str, float], robot: Robot) -> DhTable:
    """The table over named lengths, which must give a frame for every joint."""
    record = reader.record(value, "geometry", ("convention", "rows"), ())
    convention = reader.choice(record["convention"], "geometry convention", tuple(CONVENTIONS))
    items = reader.items(record["rows"], "geometry rows")
    reader.names = dict(lengths)
    rows = [_row(reader, item, i, len(items), CONVENTIONS[convention]) for i, item in enumerate(items)]
    table = DhTable(convention, tuple(rows))
    if len(table.order) != len(rows) or len(table.moving) != len(robot.joints):
        raise reader.error("geometry rows", f"give {len(table.moving)} joints; expected {len(robot.joints)}")
    try:
        with np.errstate(all="ignore"):
            table.frames({name: np.array([length, length]) for name, length in lengths.items()})
    except (ArithmeticError, TypeError, ValueError) as error:  # an ExpressionError is a ValueError
        raise reader.error("geometry rows", f"cannot be worked out ({error}); expected lengths in distances") from None
    return table


def _row(reader: LocatedReader, value: object, place: int, n_rows: int, columns: Sequence[str]) -> DhRow:
    where = f"geometry rows[{place + 1}]"
    record = reader.record(value, where, ("name",), ("antecedent", "sigma", "mu", "cut", *columns))
    cells = {key: record.get(key, 0.0) for key in columns}
    for key, cell in cells.items():
        reader.number(cell, f"{where} {key}", evaluate=evaluate)  # expressions over lengths are welcome
    antecedents = [i for i in range(n_rows + 1) if i != place + 1]
    return DhRow(
        name=reader.text(record["name"], f"{where} name"),
        antecedent=reader.choice(record.get("antecedent", place), f"{where} antecedent", antecedents),
        sigma=reader.choice(record.get("sigma", REVOLUTE), f"{where} sigma", (REVOLUTE, PRISMATIC, FIXED)),
        mu=reader.choice(record["mu"], f"{where} mu", (0, 1)) if "mu" in record else None,
        cells=cells,
        cut=reader.choice(record.get("cut", False), f"{where} cut", (False, True)),
    )


def _direction(reader: LocatedReader, value: object, where: str, motors: Sequence[str]) -> Array:
    """{motor: number} as an array over all motors, (n_active,)."""
    given = reader.named_numbers(value, where, motors)
    return np.array([given.get(motor, 0.0) for motor in motors])


def _frame(reader: LocatedReader, record: Mapping[str, Any], key: str, where: str) -> Transform:
    """Rows of [axes | origin]; the identity when the key is absent."""
    if key not in record:
        return Transform.identity()
    matrix = reader.array(record[key], f"{where} {key}", 3, 4)
    return Transform(matrix[:, :3], matrix[:, 3])
