"""The keys that a robot YAML and an overlay on a URDF have in common."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dynident.errors import suggestion
from dynident.robot.draft import Draft, ElementSpec
from dynident.robot.loops import CUT_JOINTS, loop_paths
from dynident.robot.model import BASE, Limits, Loop, Transform
from dynident.robot.parameters import ELEMENT_SYMBOLS, from_classical, link_values
from dynident.robot.rotations import rpy_matrix
from dynident.robot.spring_files import read_spring
from dynident.schema import LocatedReader, quote

_MOST_ELEMENTS = 300


def apply_passive(draft: Draft, given: dict[str, Any]) -> None:
    """Put the passive joints of a file into the draft; the other keys need to know which joints have motors."""
    if "passive" in given:
        _APPLY["passive"](draft, given["passive"])


def apply_options(draft: Draft, given: dict[str, Any]) -> None:
    """Put the other common keys of a file into the draft."""
    for key, apply in _APPLY.items():
        if key in given and key != "passive":
            apply(draft, given[key])


def _passive(draft: Draft, value: object) -> None:
    draft.passive.update(draft.by_joint(draft.reader.mapping(value, "passive"), "passive"))


def _gravity(draft: Draft, value: object) -> None:
    draft.gravity = tuple(draft.reader.numbers(value, "gravity", 3))


def _coupling(draft: Draft, value: object) -> None:
    if not isinstance(value, list | dict):
        problem = f"is {quote(value)}; expected a matrix, or sums such as qm6: q5 + q6"
        raise draft.reader.error("coupling", problem)
    draft.coupling = value


def _torque_source(draft: Draft, value: object) -> None:
    if value != "motor" and value != "sensor":
        raise draft.reader.error("torque_source", f"is {quote(value)}; expected motor or sensor")
    draft.torque_source = "motor" if value == "motor" else "sensor"


def _fixed_values(draft: Draft, value: object) -> None:
    for name, item in draft.reader.mapping(value, "fixed").items():
        draft.fixed[name] = _parameter(draft.reader, name, item, "fixed")


def _parameters(draft: Draft, value: object) -> None:
    for name, values in draft.reader.mapping(value, "parameters").items():
        draft.values[name] = _value_set(draft, values, f"parameters '{name}'")


def _base_parameters(draft: Draft, value: object) -> None:
    reader = draft.reader
    for name, values in reader.mapping(value, "base_parameters").items():
        where = f"base_parameters '{name}'"
        items = reader.mapping(values, where).items()
        draft.base_values[name] = {key: reader.number(item, f"{where} {key}") for key, item in items}


def _default_parameters(draft: Draft, value: object) -> None:
    default = draft.reader.text(value, "default_parameters")
    if default not in draft.values:
        problem = f"'{default}' is not among 'parameters'{suggestion(default, draft.values)}"
        raise draft.reader.error("default_parameters", problem)
    draft.default_values = default


def _locked_positions(draft: Draft, value: object) -> None:
    held = draft.reader.mapping(value, "locked")
    for index, position in draft.by_joint(held, "locked", motor=True).items():
        joint = draft.joints[index]
        draft.locked[joint.variable] = draft.reader.number(position, f"locked {joint.name}")


def _columns(draft: Draft, value: object) -> None:
    draft.columns.update(column_rules_of(draft.reader, value))


def _tool(draft: Draft, value: object) -> None:
    reader = draft.reader
    if isinstance(value, str):
        links = {joint.link: (i, Transform.identity()) for i, joint in enumerate(draft.joints)}
        if value not in draft.frames and value not in links:
            problem = f"{quote(value)} is no frame or link of the robot{suggestion(value, [*draft.frames, *links])}"
            raise reader.error("tool", problem)
        draft.tool = draft.frames.get(value) or links[value]
        draft.tool_name = value if value in draft.frames else ""
        return
    tool = reader.mapping(value, "tool", ("joint", *_FRAME))
    _check_keys(reader, tool, "tool", "joint", hint=": the joint whose link carries the tool")
    index = draft.joint_index(reader.text(tool["joint"], "tool joint"), "tool")
    draft.tool, draft.tool_name = (index, _frame(reader, tool, "tool")), "the tool of the robot file"


_FRAME = ("position", "rpy")  # keys of a frame


def _frame(reader: LocatedReader, given: dict[str, Any], where: str) -> Transform:
    """The frame under the keys `position` [m] and `rpy` [rad] of a mapping."""
    position = reader.numbers(given.get("position", [0, 0, 0]), f"{where} position", 3)
    turned = rpy_matrix(*reader.numbers(given.get("rpy", [0, 0, 0]), f"{where} rpy", 3))
    return Transform(turned, np.array(position))


def column_rules_of(reader: LocatedReader, given: object) -> dict[str, dict[str, str | float]]:
    """What columns of the robot's logs stand for, by their names."""
    rules = reader.mapping(given, "columns")
    return {str(name): _column_rule(reader, rule, f"columns '{name}'") for name, rule in rules.items()}


def _column_rule(reader: LocatedReader, rule: object, where: str) -> dict[str, str | float]:
    """What a column of a log stands for: a channel such as q1, or {column, unit, scale}."""
    if isinstance(rule, str):
        return {"column": rule}
    given = reader.mapping(rule, where, ("column", "unit", "scale"))
    _check_keys(reader, given, where, "column", hint=": a channel such as q1")
    meant: dict[str, str | float] = {"column": reader.text(given["column"], f"{where} column")}
    if "unit" in given:
        meant["unit"] = reader.text(given["unit"], f"{where} unit")
    if "scale" in given:
        meant["scale"] = _nonzero(reader, given["scale"], f"{where} scale")
    return meant


def _check_keys(reader: LocatedReader, record: dict[str, Any], where: str, *keys: str, hint: str = "") -> None:
    """Refuse a mapping without a key that it needs."""
    for key in keys:
        if key not in record:
            raise reader.error(where, f"needs the key '{key}'{hint}")


def _nonzero(reader: LocatedReader, value: object, where: str) -> float:
    """A number other than 0."""
    number = reader.number(value, where)
    if number == 0.0:
        raise reader.error(where, "is 0; expected another number")
    return number


def _per_joint(draft: Draft, value: object, key: str, into: dict[int, float]) -> None:
    """A number per active joint: a list in their order, or a mapping by joint."""
    reader = draft.reader
    if isinstance(value, list):
        active = draft.active()
        into.update(zip(active, reader.numbers(value, key, len(active)), strict=True))
        return
    for joint, item in draft.by_joint(reader.mapping(value, key), key, motor=True).items():
        into[joint] = reader.number(item, f"{key} {draft.joints[joint].name}")


def _joint_offsets(draft: Draft, value: object) -> None:
    _per_joint(draft, value, "joint_offsets", draft.zero)


def _gear_ratios(draft: Draft, value: object) -> None:
    _per_joint(draft, value, "gear_ratios", draft.gear_ratios)
    for joint, ratio in draft.gear_ratios.items():
        if ratio == 0.0:
            raise draft.reader.error(f"gear ratio of '{draft.joints[joint].name}'", "is 0; expected another number")


def _drive_gains(draft: Draft, value: object) -> None:
    """Gains as numbers or {value, tolerance}, in a list over the motors or a mapping by joint."""
    reader, active = draft.reader, draft.active()
    if isinstance(value, list):
        if len(value) != len(active):
            raise reader.error("drive_gains", f"must have {len(active)} entries, one per motor; it has {len(value)}")
        entries = dict(zip(active, value, strict=True))
    else:
        entries = draft.by_joint(reader.mapping(value, "drive_gains"), "drive_gains", motor=True)
    for joint, entry in entries.items():
        where = f"drive gain of '{draft.joints[joint].name}'"
        if isinstance(entry, dict):
            record = reader.mapping(entry, where, ("value", "tolerance"))
            _check_keys(reader, record, where, "value")
            draft.gain_tolerances[joint] = reader.number(record.get("tolerance", 0.0), where, low=0.0)
            entry = record["value"]
        draft.gains[joint] = _nonzero(reader, entry, where)


def _pd_gains(draft: Draft, value: object) -> None:
    """Gains of the position controller: kp and kd as numbers or lists over the motors, or by joint."""
    reader, active = draft.reader, draft.active()
    given = reader.mapping(value, "pd_gains")
    if set(given) & {"kp", "kd"}:
        record = reader.mapping(value, "pd_gains", ("kp", "kd"))
        _check_keys(reader, record, "pd_gains", "kp", "kd")
        for place, joint in enumerate(active):
            kp, kd = (
                reader.number(
                    reader.items(record[key], f"pd_gains {key}", len(active))[place]
                    if isinstance(record[key], list)
                    else record[key],
                    f"pd_gains {key} of '{draft.joints[joint].name}'",
                    low=0.0,
                )
                for key in ("kp", "kd")
            )
            draft.pd_gains[joint] = kp, kd
        return
    for joint, entry in draft.by_joint(given, "pd_gains", motor=True).items():
        where = f"pd_gains of '{draft.joints[joint].name}'"
        record = reader.mapping(entry, where, ("kp", "kd"))
        _check_keys(reader, record, where, "kp", "kd")
        kp, kd = (reader.number(record[key], f"{where} {key}", low=0.0) for key in ("kp", "kd"))
        draft.pd_gains[joint] = kp, kd


def _elements(draft: Draft, value: object) -> None:
    reader, labels = draft.reader, set()
    given = reader.items(value, "elements")
    if len(given) > _MOST_ELEMENTS:
        raise reader.error("elements", f"has {len(given)} entries, more than {_MOST_ELEMENTS}")
    for i, item in enumerate(given):
        element = _element(reader, item, f"elements[{i + 1}]")
        if element.label in labels:
            raise reader.error(f"elements[{i + 1}]", f"the label '{element.label}' is used twice; change one")
        labels.add(element.label)
        draft.elements.append(element)


def _element(reader: LocatedReader, value: object, where: str) -> ElementSpec:
    record = reader.mapping(value, where, ("label", "velocity", "torque", "carries"))
    _check_keys(reader, record, where, "label", "velocity")
    carries = record.get("carries", ["Fv", "Fc"])
    for symbol in reader.items(carries, f"{where} carries"):
        if symbol not in ELEMENT_SYMBOLS:
            raise reader.error(where, f"cannot carry {quote(symbol)} (valid: {', '.join(ELEMENT_SYMBOLS)})")
        if carries.count(symbol) > 1:
            raise reader.error(where, f"carries '{symbol}' twice; name it once")
    label = reader.text(record["label"], f"{where} label")
    if not re.fullmatch(r"\w+", label):
        raise reader.error(where, f"the label '{label}' ends parameter names; expected letters and digits such as m6")
    if "torque" in record and record["torque"] is None:
        raise reader.error(where, "torque is empty; remove the key or give a sum of joints or motors")
    return ElementSpec(label, record["velocity"], record.get("torque"), tuple(carries))


def _springs(draft: Draft, value: object) -> None:
    given = draft.reader.items(value, "springs")
    if len(given) > _MOST_ELEMENTS:
        raise draft.reader.error("springs", f"has {len(given)} entries, more than {_MOST_ELEMENTS}")
    labels: set[str] = set()
    for i, item in enumerate(given):
        spring, known = read_spring(draft, item, f"springs[{i + 1}]")
        if spring.label in labels:
            raise draft.reader.error(f"springs[{i + 1}]", f"the label '{spring.label}' is used twice; give another one")
        labels.add(spring.label)
        draft.add_spring(spring, known)


def _limits(draft: Draft, value: object) -> None:
    reader, names = draft.reader, [f.name for f in dataclasses.fields(Limits)]
    for index, item in draft.by_joint(reader.mapping(value, "limits"), "limits").items():
        joint = draft.joints[index]
        where = f"limits of '{joint.name}'"
        record = reader.mapping(item, where, names)
        numbers = {key: reader.number(number, f"{where} {key}") for key, number in record.items()}
        limits = dataclasses.replace(joint.limits, **numbers)
        check_limits(reader, limits, where)
        draft.joints[index] = dataclasses.replace(joint, limits=limits)


def check_limits(reader: LocatedReader, limits: Limits, where: str) -> None:
    """Refuse limits that no motion can respect."""
    if limits.lower is not None and limits.upper is not None and limits.lower > limits.upper:
        raise reader.error(where, f"lower {limits.lower:g} is above upper {limits.upper:g}; swap them")
    for name in ("velocity", "effort"):
        number = getattr(limits, name)
        if number is not None and number < 0.0:
            raise reader.error(where, f"{name} is {number:g}; expected zero or more")


def _value_set(draft: Draft, value: object, where: str) -> dict[str, float]:
    """Standard parameter values: `links` by center of mass, lists per element symbol, or single names."""
    reader = draft.reader
    result: dict[str, float] = {}
    given = reader.mapping(value, where)
    links = reader.mapping(given.pop("links", {}), f"{where} links")
    for joint, link in draft.by_joint(links, f"{where} links").items():
        number = draft.joints[joint].number
        result.update(_link_values(reader, link, number, f"{where} link {number}"))
    for symbol in ELEMENT_SYMBOLS:
        if symbol in given:
            numbers = reader.mapping(given.pop(symbol), f"{where} {symbol}")
            for label, item in numbers.items():
                result[f"{symbol}{label}"] = reader.number(item, f"{where} {symbol}{label}")
    for name, item in given.items():
        if name in result:
            raise reader.error(where, f"{name} is given twice, on its own and in a list; remove one")
        result[name] = _parameter(reader, name, item, where)
    return result


def _parameter(reader: LocatedReader, name: str, value: object, where: str) -> float:
    """The value of a standard parameter; a mass is not negative."""
    low = 0.0 if re.fullmatch(r"M\d+", name) else -math.inf
    return reader.number(value, f"{where} {name}", low=low)


def _link_values(reader: LocatedReader, value: object, number: int, where: str) -> dict[str, float]:
    record = reader.mapping(value, where, ("mass", "com", "inertia"))
    _check_keys(reader, record, where, "mass")
    mass = reader.number(record["mass"], f"{where} mass", low=0.0)
    com = reader.numbers(record.get("com", [0, 0, 0]), f"{where} com", 3)
    about_com = reader.numbers(record.get("inertia", [0] * 6), f"{where} inertia", 6)
    xx, xy, xz, yy, yz, zz = about_com
    chi = from_classical(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return link_values(number, chi)


_APPLY: dict[str, Callable[[Draft, object], None]] = {  # every key, and what puts it into a draft
    "gravity": _gravity,
    "passive": _passive,
    "coupling": _coupling,
    "gear_ratios": _gear_ratios,
    "joint_offsets": _joint_offsets,
    "drive_gains": _drive_gains,
    "pd_gains": _pd_gains,
    "torque_source": _torque_source,
    "elements": _elements,
    "limits": _limits,
    "springs": _springs,
    "fixed": _fixed_values,
    "parameters": _parameters,
    "base_parameters": _base_parameters,
    "default_parameters": _default_parameters,
    "tool": _tool,
    "columns": _columns,
    "locked": _locked_positions,
}
KEYS = tuple(_APPLY)


# ----------------------------------------------------------------------------------------------------------------------
# Loops that are closed numerically, from the `loops` of a robot table or an overlay.

_KEYS = ("first", "second", "joint", "solve", "branch")
_MOST_LOOPS = 50
CutLoop = Callable[[int, int], Loop]


def apply_loops(draft: Draft, value: object, cut_loop: CutLoop | None = None) -> None:
    """Put the loops that have a key `solve` into the draft; loops without one are affine and only checked.

    Args:
        draft: The robot so far, with its affine passive joints.
        value: The list under `loops`.
        cut_loop: The loop between two frames of a table, None where there is no table.
    """
    reader = draft.reader
    if not isinstance(value, list):
        raise reader.error("loops", f"is {quote(value)}; expected a list of loops")
    if len(value) > _MOST_LOOPS:
        raise reader.error("loops", f"has {len(value)} entries, more than {_MOST_LOOPS}")
    given = []
    for i, item in enumerate(value):
        where = f"loops[{i + 1}]"
        record = reader.mapping(item, where)
        if "cut" in record or "closes_on" in record:
            if cut_loop is None:
                problem = "'cut' and 'closes_on' are frames of a table; name two links here, under 'first' and 'second'"
                raise reader.error(where, problem)
            if "solve" not in record:
                if "branch" in record:
                    raise reader.error(where, "has a branch, but no joints to solve for; add the key 'solve'")
                continue
            loop = cut_loop(record["cut"], record["closes_on"])
        else:
            loop = _between_links(draft, record, where)
        if not any(loop_paths(loop, draft.joints)):
            raise reader.error(where, "both its frames are on one link; a loop runs over two branches")
        draft.closing.append(loop)
        _solve(draft, record, where)
        given.append((where, record))
    for where, record in given:  # all loops first: a joint that one is solved for has no motor in another
        _branch(draft, record, where)


def _between_links(draft: Draft, record: dict[str, Any], where: str) -> Loop:
    """A loop between frames on two links."""
    reader = draft.reader
    reader.known_keys(record, where, _KEYS)
    _check_keys(reader, record, where, "first", "second", "solve", hint=f" (keys: {', '.join(_KEYS)})")
    joint = record.get("joint", "revolute")
    if joint not in CUT_JOINTS:
        raise reader.error(f"{where} joint", f"is {quote(joint)}; expected {', '.join(CUT_JOINTS)}")
    links, frames = [], []
    for key in ("first", "second"):
        place = f"{where} {key}"
        side = reader.mapping(record[key], place, ("link", *_FRAME))
        _check_keys(reader, side, place, "link")
        links.append(_link(draft, reader.text(side["link"], f"{place} link"), place))
        frames.append(_frame(reader, side, place))
    name = "-".join("base" if link == BASE else draft.joints[link].link for link in links)
    return Loop(name, (links[0], links[1]), (frames[0], frames[1]), joint)


def _link(draft: Draft, name: str, where: str) -> int:
    """Index of the link with this name, or BASE."""
    if name == "base":
        return BASE
    links = [joint.link for joint in draft.joints]
    if name not in links:
        hint = f"{suggestion(name, ['base', *links])}; a link on a fixed joint belongs to the one that carries it"
        raise draft.reader.error(where, f"there is no moving link '{name}'{hint}")
    return links.index(name)


def _solve(draft: Draft, record: dict[str, Any], where: str) -> None:
    """The joints a loop is solved for."""
    reader, names = draft.reader, record["solve"]
    if not isinstance(names, list) or not names:
        raise reader.error(f"{where} solve", f"is {quote(names)}; expected a list of passive joints such as [q2, q3]")
    for item in names:
        index = draft.joint_index(reader.text(item, f"{where} solve"), f"{where} solve")
        if index in draft.passive:
            raise reader.error(f"{where} solve", f"'{item}' already follows other joints under 'passive'; remove one")
        if index in draft.solved:
            raise reader.error(f"{where} solve", f"'{item}' is already solved for; name it in one loop, once")
        draft.solved[index] = 0.0
        _keep_friction(draft, index)


def _keep_friction(draft: Draft, index: int) -> None:
    """Friction that a URDF gives to the joint goes on to an element of its own; zeros are left out."""
    number, carried = draft.joints[index].number, []
    for symbol in ELEMENT_SYMBOLS:
        name = f"{symbol}{number}"
        if any(values.get(name) for values in draft.values.values()):
            carried.append(symbol)
        else:
            for values in draft.values.values():
                values.pop(name, None)
    if carried:
        draft.elements.append(ElementSpec(str(number), f"q{number}", carries=tuple(carried)))


def _branch(draft: Draft, record: dict[str, Any], where: str) -> None:
    """A pose at which the loop is assembled: all joints it is solved for, and active ones that are not at zero."""
    reader, place = draft.reader, f"{where} branch"
    own = [draft.joint_index(str(item), place) for item in record["solve"]]
    given = draft.by_joint(reader.mapping(record.get("branch", {}), place), place)
    missing = [draft.joints[j].variable for j in own if j not in given]
    if missing:
        words = f"no position for {', '.join(missing)}; give about where they are when the active joints are at zero"
        raise reader.error(place, f"{words}, or at positions given beside them: {{q1: 0.5, {missing[0]}: 1.2}}")
    for joint, item in given.items():
        name = draft.joints[joint].name
        number = reader.number(item, f"{place} {name}")
        if joint in own:
            draft.solved[joint] = number
        elif joint in draft.passive or joint in draft.solved:
            raise reader.error(place, f"'{name}' is neither active nor solved for in this loop; remove it")
        elif draft.reference.setdefault(joint, number) != number:
            raise reader.error(place, f"'{name}' is at {draft.reference[joint]:g} in another loop; expected one pose")
