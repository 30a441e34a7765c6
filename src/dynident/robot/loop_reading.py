"""Loops that are closed numerically, from the `loops` of a robot table or an overlay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynident.errors import suggestion
from dynident.robot.draft import Draft, ElementSpec
from dynident.robot.loops import CUT_JOINTS, loop_paths
from dynident.robot.model import BASE, Loop, Transform
from dynident.robot.parameters import ELEMENT_SYMBOLS
from dynident.robot.rotations import rpy_matrix
from dynident.schema import quoted

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
        raise reader.error("loops", f"is {quoted(value)}; expected a list of loops")
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
    for key in ("first", "second", "solve"):
        if key not in record:
            raise reader.error(where, f"needs the key '{key}' (keys: {', '.join(_KEYS)})")
    joint = record.get("joint", "revolute")
    if joint not in CUT_JOINTS:
        raise reader.error(f"{where} joint", f"is {quoted(joint)}; expected {', '.join(CUT_JOINTS)}")
    links, frames = [], []
    for key in ("first", "second"):
        place = f"{where} {key}"
        side = reader.mapping(record[key], place, ("link", "position", "rpy"))
        if "link" not in side:
            raise reader.error(place, "needs the key 'link'")
        links.append(_link(draft, reader.text(side["link"], f"{place} link"), place))
        position = reader.numbers(side.get("position", [0, 0, 0]), f"{place} position", 3)
        turned = rpy_matrix(*reader.numbers(side.get("rpy", [0, 0, 0]), f"{place} rpy", 3))
        frames.append(Transform(turned, np.array(position)))
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
        raise reader.error(f"{where} solve", f"is {quoted(names)}; expected a list of passive joints such as [q2, q3]")
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
