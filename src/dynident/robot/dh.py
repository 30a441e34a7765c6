"""Robots as tables: standard Denavit-Hartenberg and Khalil's modified notation, serial, tree and closed-loop."""

from __future__ import annotations

import functools
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.robot.algebra import IDENTITY, Frame, Number, compose, shift, turn_x, turn_z
from dynident.robot.draft import BASE, Draft, check_joint_count
from dynident.robot.expressions import RESERVED, ExpressionError, evaluate, robot_file_reader
from dynident.robot.model import Joint, JointKind, Loop, Transform
from dynident.robot.overlay import KEYS, apply_loops, apply_options, apply_passive
from dynident.schema import LocatedReader, quote

CONVENTIONS = {
    "dh": ("alpha", "a", "theta", "d"),
    "modified-dh": ("gamma", "b", "alpha", "d", "theta", "r"),
}
_ANGLES = ("alpha", "theta", "gamma")
_TABLE_KEYS = ("name", "convention", "lengths", "joints", "loops", *KEYS)
REVOLUTE, PRISMATIC, FIXED = 0, 1, 2  # sigma
_MOST_ROWS = 500
_MOST_LENGTHS = 100


@dataclass(frozen=True)
class DhRow:
    """One frame of the table.

    Attributes:
        name: Joint name.
        antecedent: Number of the frame it is described in, 0 for the base.
        sigma: 0 revolute, 1 prismatic, 2 fixed.
        mu: 1 when it has a motor, 0 when not, None when the table does not say.
        cells: Table entries as written, numbers or expressions.
        cut: Whether it is the frame of a cut loop joint, which carries no link.
    """

    name: str
    antecedent: int
    sigma: int
    mu: int | None
    cells: Mapping[str, object]
    cut: bool = False


@dataclass(frozen=True)
class DhTable:
    """A geometry over named lengths: the rows of a DH or modified-DH table (see `Geometry`)."""

    convention: str
    rows: tuple[DhRow, ...]

    @property
    def moving(self) -> tuple[int, ...]:
        """Indices of the rows that are joints with a link, parents first."""
        return tuple(i for i in self.order if self.rows[i].sigma != FIXED and not self.rows[i].cut)

    @functools.cached_property
    def order(self) -> tuple[int, ...]:
        """Indices of the rows, every antecedent before the frames it carries; rows of a cycle are left out."""
        placed: dict[int, None] = {}
        waiting = list(range(len(self.rows)))
        while True:
            ready = [i for i in waiting if self.rows[i].antecedent - 1 in placed or self.rows[i].antecedent == 0]
            if not ready:
                return tuple(placed)
            placed[ready[0]] = None  # one at a time, so that the table's own order is kept where it can be
            waiting.remove(ready[0])

    def parts(self, row: int, lengths: Mapping[str, Number]) -> tuple[Frame, Frame]:
        """What comes before and after the motion of one row, whatever the lengths are made of.

        Modified DH (Khalil & Kleinfinger 1986): Rz(gamma) Tz(b) Rx(alpha) Tx(d) | Rz(theta) Tz(r).
        Standard DH: Rz(theta) Tz(d) | Tx(a) Rx(alpha), the link frame at the far end of the link.
        """
        cell = {key: evaluate(value, lengths) for key, value in self.rows[row].cells.items()}
        if self.convention == "dh":
            before = compose(turn_z(cell["theta"]), shift(z=cell["d"]))
            return before, compose(shift(x=cell["a"]), turn_x(cell["alpha"]))
        before = IDENTITY
        for step in (
            turn_z(cell["gamma"]),
            shift(z=cell["b"]),
            turn_x(cell["alpha"]),
            shift(x=cell["d"]),
            turn_z(cell["theta"]),
            shift(z=cell["r"]),
        ):
            before = compose(before, step)
        return before, IDENTITY

    def anchors(self, lengths: Mapping[str, Number]) -> dict[int, tuple[int, Frame]]:
        """For each row the moving row (or BASE) that carries its antecedent, and the antecedent frame in it."""
        result: dict[int, tuple[int, Frame]] = {}
        for row in self.order:
            index = self.rows[row].antecedent - 1
            if index == BASE or self.rows[index].sigma != FIXED:
                result[row] = index, IDENTITY
            else:
                carrier, frame = result[index]
                result[row] = carrier, compose(frame, compose(*self.parts(index, lengths)))
        return result

    def frames(self, lengths: Mapping[str, Number]) -> list[tuple[Frame, Frame]]:
        """(before, after) of every moving joint, fixed frames folded in."""
        result = []
        anchors = self.anchors(lengths)
        for row in self.moving:
            before, after = self.parts(row, lengths)
            result.append((compose(anchors[row][1], before), after))
        return result


def read_table(given: dict[str, Any], source: str) -> Draft:
    """A draft from the mapping of a robot YAML with a `joints` table."""
    reader = robot_file_reader(source)
    reader.known_keys(given, "", _TABLE_KEYS)
    lengths = _lengths(reader, given.get("lengths", {}))
    convention = given.get("convention")
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise reader.error("convention", f"is {quote(convention)}; expected {' or '.join(CONVENTIONS)}")
    loops = _loops(reader, given.get("loops", []))
    table = _table(reader, convention, given.get("joints"), loops)
    check_joint_count(reader, len(table.moving))
    joints = _joints(reader, table, lengths)
    name = reader.text(given.get("name", "robot"), "name")
    warnings = _suspicious_angles(table, lengths)
    draft = Draft(reader, name, joints, lengths=lengths, geometry=table if lengths else None, warnings=warnings)
    _parametric_or_not(draft)
    apply_passive(draft, given)
    described = given.get("loops", [])
    apply_loops(draft, described, lambda cut, closes_on: _cut_loop(table, lengths, cut, closes_on))
    _mark_passive(draft, table)
    apply_options(draft, given)
    affine = [(item["cut"], item["closes_on"]) for item in described if "cut" in item and "solve" not in item]
    draft.loops = [_cut_loop(table, lengths, *loop) for loop in affine]
    return draft


def _lengths(reader: LocatedReader, value: object) -> dict[str, float]:
    """Named lengths, each of which may use those before it; the reader knows them from here on."""
    given = reader.mapping(value, "lengths")
    if len(given) > _MOST_LENGTHS:
        raise reader.error("lengths", f"has {len(given)} entries, more than {_MOST_LENGTHS}")
    for name, item in given.items():
        taken = name in RESERVED or keyword.iskeyword(name) or re.fullmatch(r"(q|qm|theta)\d*", name)
        if taken or not name.isidentifier():
            raise reader.error(
                "lengths", f"'{name}' is not a usable name; take a word such as d3 that means nothing else"
            )
        reader.names[name] = reader.number(item, f"length {name}")
    return dict(reader.names)


def _loops(reader: LocatedReader, value: object) -> list[tuple[int, int]]:
    """The cut frame of each loop and the frame that it meets."""
    if not isinstance(value, list):
        raise reader.error("loops", f"is {quote(value)}; expected a list of {{cut: frame, closes_on: frame}}")
    result: list[tuple[int, int]] = []
    used: set[int] = set()
    for i, item in enumerate(value):
        where = f"loops[{i + 1}]"
        record = reader.mapping(item, where)
        if "first" in record or "second" in record:
            continue  # between two links, not two frames of the table
        reader.known_keys(record, where, ("cut", "closes_on", "solve", "branch"))
        if not {"cut", "closes_on"} <= set(record):
            raise reader.error(where, "needs the keys 'cut' and 'closes_on', two frame numbers")
        loop = (reader.integer(record["cut"], where), reader.integer(record["closes_on"], where))
        if loop[0] == loop[1] or not used.isdisjoint(loop):
            raise reader.error(where, f"cut {loop[0]}, closes_on {loop[1]}: each loop needs two frames of its own")
        used.update(loop)
        result.append(loop)
    return result


def _table(reader: LocatedReader, convention: str, value: object, loops: list[tuple[int, int]]) -> DhTable:
    if not isinstance(value, list) or not value:
        raise reader.error("joints", f"is {quote(value)}; expected a list with one row per joint")
    if len(value) > _MOST_ROWS:
        raise reader.error("joints", f"has {len(value)} rows, more than {_MOST_ROWS}")
    for frame in (frame for loop in loops for frame in loop):
        if not 1 <= frame <= len(value):
            raise reader.error("loops", f"frame {frame} is not in the table (frames 1 to {len(value)})")
    cuts = {cut for cut, _ in loops}
    columns = CONVENTIONS[convention]
    rows: list[DhRow] = []
    for i, item in enumerate(value):
        where = f"joint {i + 1}"
        record = reader.mapping(item, where, ("name", "antecedent", "sigma", "mu", *columns))
        name = reader.text(record.get("name", f"joint{i + 1}"), f"{where} name")
        antecedent = reader.integer(record.get("antecedent", i), f"{where} antecedent")
        if not 0 <= antecedent <= len(value) or antecedent == i + 1:
            raise reader.error(
                where,
                f"antecedent {antecedent} does not exist; expected another frame, 0 (base) to {len(value)}",
            )
        sigma = reader.integer(record.get("sigma", REVOLUTE), f"{where} sigma")
        if sigma not in (REVOLUTE, PRISMATIC, FIXED):
            raise reader.error(f"{where} sigma", f"is {sigma}; expected 0 revolute, 1 prismatic or 2 fixed")
        mu = reader.integer(record["mu"], f"{where} mu") if "mu" in record else None
        if mu not in (None, 0, 1):
            raise reader.error(f"{where} mu", f"is {mu}; expected 1 (motor) or 0 (passive)")
        if mu == 1 and (sigma == FIXED or i + 1 in cuts):
            raise reader.error(f"{where} mu", "is 1, but a fixed or cut frame has no motor; remove it")
        if any(row.name == name for row in rows):
            raise reader.error(where, f"the name '{name}' is used twice; change one")
        cells = {key: record.get(key, 0.0) for key in columns}
        variable = {"dh": ("theta", "d"), "modified-dh": ("theta", "r")}[convention]
        if sigma != FIXED:
            key = variable[sigma]
            cells[key] = _offset(reader, cells[key], i + 1, f"{where} {key}")
        for key, cell in cells.items():
            reader.number(cell, f"{where} {key}")
        rows.append(DhRow(name, antecedent, sigma, mu, cells, cut=i + 1 in cuts))
    for cut, closes_on in loops:
        if rows[cut - 1].sigma == FIXED or rows[closes_on - 1].sigma != FIXED:
            problem = f"frame {cut} must be the cut joint's, and frame {closes_on} fixed (sigma: 2) on the other branch"
            raise reader.error(f"loop {cut}-{closes_on}", problem)
    for i, row in enumerate(rows):
        if row.antecedent and rows[row.antecedent - 1].cut:
            raise reader.error(
                f"joint {i + 1}", f"frame {row.antecedent} is cut and carries nothing; change its antecedent"
            )
    table = DhTable(convention, tuple(rows))
    lost = [str(i + 1) for i in range(len(rows)) if i not in table.order]
    if lost:
        raise reader.error(
            "joints", f"frames {', '.join(lost)} are each other's antecedents in a cycle; start from 0, the base"
        )
    return table


def _offset(reader: LocatedReader, cell: object, number: int, where: str) -> object:
    """The constant part of a variable cell: `q6 + pi` and `pi` both mean an offset of pi."""
    if not isinstance(cell, str):
        return cell
    variables = (f"q{number}", f"theta{number}", "q")
    try:
        at_zero = evaluate(cell, {**reader.names, **dict.fromkeys(variables, 0.0)})
        at_one = evaluate(cell, {**reader.names, **dict.fromkeys(variables, 1.0)})
        between = evaluate(cell, {**reader.names, **dict.fromkeys(variables, 0.37)})
    except ExpressionError as error:
        raise reader.error(where, f"{error}; expected a number, or {variables[0]} plus a number") from None
    slope = at_one - at_zero
    if slope == between - at_zero == 0.0:
        return cell
    if not max(abs(slope - 1.0), abs(between - at_zero - 0.37)) <= 1e-12 * max(1.0, abs(at_zero)):
        raise reader.error(where, f"{quote(cell)} must contain {variables[0]} with factor 1")
    return at_zero


def _joints(reader: LocatedReader, table: DhTable, lengths: Mapping[str, float]) -> list[Joint]:
    joints: list[Joint] = []
    position = {row: i for i, row in enumerate(table.moving)}
    anchors = table.anchors(lengths)
    for (before, after), row in zip(table.frames(lengths), table.moving, strict=True):
        carrier = anchors[row][0]
        kind: JointKind = "revolute" if table.rows[row].sigma == REVOLUTE else "prismatic"
        joints.append(
            Joint(
                name=table.rows[row].name,
                number=row + 1,
                kind=kind,
                parent=BASE if carrier == BASE else position[carrier],
                before=Transform(np.array(before[0]), np.array(before[1])),
                after=Transform(np.array(after[0]), np.array(after[1])),
                link=str(row + 1),
            )
        )
    return joints


def _parametric_or_not(draft: Draft) -> None:
    """Keep the geometry over lengths only if it can be worked out for other number types than float."""
    if draft.geometry is None:
        return
    try:
        draft.geometry.frames({name: np.array([value, value]) for name, value in draft.lengths.items()})
    except (ExpressionError, TypeError):
        draft.geometry = None  # a length inside an angle: coefficients are then shown as numbers


def _suspicious_angles(table: DhTable, lengths: Mapping[str, float]) -> list[str]:
    """Warnings for constant angles of more than a turn, which are likely meant in degrees."""
    return [
        f"joint {i + 1}: {key} is {angle:g} rad, more than a turn; degrees are written deg({angle:g})"
        for i, row in enumerate(table.rows)
        for key in _ANGLES
        if key in row.cells and abs(angle := evaluate(row.cells[key], lengths)) > 2.0 * math.pi + 1e-9
    ]


def _mark_passive(draft: Draft, table: DhTable) -> None:
    """Joints with mu = 0 need a relation, joints with a relation are passive."""
    for index, row in enumerate(table.moving):
        name = draft.joints[index].name
        if table.rows[row].mu == 1 and index in draft.passive:
            raise draft.reader.error(
                f"joint {row + 1}", f"'{name}' has mu = 1 and a relation under 'passive'; remove one"
            )
        if table.rows[row].mu == 1 and index in draft.solved:
            raise draft.reader.error(f"joint {row + 1}", f"'{name}' has mu = 1 and a loop is solved for it; remove one")
        if table.rows[row].mu == 0 and index not in draft.passive and index not in draft.solved:
            raise draft.reader.error(
                f"joint {row + 1}",
                f"'{name}' is passive (mu = 0); give its position under 'passive', such as q{row + 1}: pi/2 - q2, or "
                "name it under 'solve' of a loop",
            )


def _cut_loop(table: DhTable, lengths: Mapping[str, float], cut: int, closes_on: int) -> Loop:
    """A loop between two frames of the table."""
    anchors, moving = table.anchors(lengths), table.moving
    links, frames = [], []
    for row in (cut - 1, closes_on - 1):
        carrier, anchor = anchors[row]
        axes, origin = compose(anchor, compose(*table.parts(row, lengths)))
        links.append(BASE if carrier == BASE else moving.index(carrier))
        frames.append(Transform(np.array(axes), np.array(origin)))
    kind: JointKind = "prismatic" if table.rows[cut - 1].sigma == PRISMATIC else "revolute"
    return Loop(f"{cut}-{closes_on}", (links[0], links[1]), (frames[0], frames[1]), kind)
