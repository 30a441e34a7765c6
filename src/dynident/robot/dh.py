"""Robots as tables: standard Denavit-Hartenberg and Khalil's modified notation, serial, tree and closed-loop."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.checks import Array
from dynident.robot.algebra import IDENTITY, Frame, Number, compose, shift, turn_x, turn_z
from dynident.robot.draft import BASE, Draft, LoopCheck
from dynident.robot.expressions import ExpressionError, evaluate
from dynident.robot.model import Joint, JointKind, Transform
from dynident.robot.options import KEYS, apply_options
from dynident.robot.reading import Reader

CONVENTIONS = {
    "dh": ("alpha", "a", "theta", "d"),
    "modified-dh": ("gamma", "b", "alpha", "d", "theta", "r"),
}
_ANGLES = ("alpha", "theta", "gamma")
_TABLE_KEYS = ("name", "convention", "lengths", "joints", "loops", *KEYS)
REVOLUTE, PRISMATIC, FIXED = 0, 1, 2  # sigma


@dataclass(frozen=True)
class Row:
    """One frame of the table.

    Attributes:
        name: Joint name.
        antecedent: Number of the frame it is described in, 0 for the base.
        sigma: 0 revolute, 1 prismatic, 2 fixed.
        mu: 1 when it has a motor.
        cells: Table entries as written, numbers or expressions.
        cut: Whether it is the frame of a cut loop joint, which carries no link.
    """

    name: str
    antecedent: int
    sigma: int
    mu: int
    cells: Mapping[str, object]
    cut: bool = False


@dataclass(frozen=True)
class Table:
    """A geometry over named lengths: the rows of a DH or modified-DH table (see `Geometry`)."""

    convention: str
    rows: tuple[Row, ...]

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

    def anchor(self, row: int, lengths: Mapping[str, Number]) -> tuple[int, Frame]:
        """The moving row (or BASE) that carries a row's antecedent, and the antecedent frame in it."""
        frame = IDENTITY
        index = self.rows[row].antecedent - 1
        while index != BASE and self.rows[index].sigma == FIXED:
            before, after = self.parts(index, lengths)
            frame = compose(compose(before, after), frame)
            index = self.rows[index].antecedent - 1
        return index, frame

    def frames(self, lengths: Mapping[str, Number]) -> list[tuple[Frame, Frame]]:
        """(before, after) of every moving joint, fixed frames folded in."""
        result = []
        for row in self.moving:
            before, after = self.parts(row, lengths)
            result.append((compose(self.anchor(row, lengths)[1], before), after))
        return result


def read_table(given: dict[str, Any], source: str) -> Draft:
    """A draft from the mapping of a robot YAML with a `joints` table."""
    reader = Reader(source)
    reader.known_keys(given, "", _TABLE_KEYS)
    lengths: dict[str, float] = {}
    for name, value in reader.mapping(given.get("lengths", {}), "lengths").items():
        if not name.isidentifier() or name == "pi":
            raise reader.error("lengths", f"'{name}' is not a usable name")
        lengths[name] = reader.number(value, f"length {name}")
        reader.names[name] = lengths[name]
    convention = given.get("convention")
    if convention not in CONVENTIONS:
        raise reader.error("convention", f"is {convention!r}; expected {' or '.join(CONVENTIONS)}")
    loops = _loops(reader, given.get("loops", []))
    table = _table(reader, convention, given.get("joints"), {frame for loop in loops for frame in loop})
    joints = _joints(reader, table, lengths)
    name = reader.text(given.get("name", "robot"), "name")
    draft = Draft(reader, name, joints, lengths=lengths, geometry=table if lengths else None)
    _parametric_or_not(draft)
    apply_options(draft, given)
    _mark_passive(draft, table)
    draft.loops = [_loop_check(reader, table, lengths, *loop) for loop in loops]
    return draft


def _loops(reader: Reader, value: object) -> list[tuple[int, int]]:
    if not isinstance(value, list):
        raise reader.error("loops", "must be a list of {cut: frame, closes_on: frame}")
    result = []
    for i, item in enumerate(value):
        where = f"loops[{i + 1}]"
        record = reader.mapping(item, where, ("cut", "closes_on"))
        if set(record) != {"cut", "closes_on"}:
            raise reader.error(where, "needs the keys 'cut' and 'closes_on', two frame numbers")
        result.append((reader.integer(record["cut"], where), reader.integer(record["closes_on"], where)))
    return result


def _table(reader: Reader, convention: str, value: object, loop_frames: set[int]) -> Table:
    if not isinstance(value, list) or not value:
        raise reader.error("joints", "must be a list with one row per joint")
    if len(value) > 500:
        raise reader.error("joints", f"has {len(value)} rows, more than 500")
    for frame in loop_frames:
        if not 1 <= frame <= len(value):
            raise reader.error("loops", f"frame {frame} is not in the table (frames 1 to {len(value)})")
    columns = CONVENTIONS[convention]
    rows: list[Row] = []
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
        mu = reader.integer(record.get("mu", 0 if sigma == FIXED or i + 1 in loop_frames else 1), f"{where} mu")
        if mu not in (0, 1):
            raise reader.error(f"{where} mu", f"is {mu}; expected 1 (motor) or 0 (passive)")
        if any(row.name == name for row in rows):
            raise reader.error(where, f"the name '{name}' is used twice")
        cells = {key: record.get(key, 0.0) for key in columns}
        variable = {"dh": ("theta", "d"), "modified-dh": ("theta", "r")}[convention]
        if sigma != FIXED:
            key = variable[sigma]
            cells[key] = _offset(reader, cells[key], i + 1, f"{where} {key}")
        for key, cell in cells.items():
            reader.number(cell, f"{where} {key}")
        rows.append(Row(name, antecedent, sigma, mu, cells, cut=i + 1 in loop_frames and sigma != FIXED))
    for i, row in enumerate(rows):
        if row.antecedent and rows[row.antecedent - 1].cut:
            raise reader.error(f"joint {i + 1}", f"frame {row.antecedent} closes a loop and carries nothing")
    table = Table(convention, tuple(rows))
    lost = [str(i + 1) for i in range(len(rows)) if i not in table.order]
    if lost:
        raise reader.error("joints", f"frames {', '.join(lost)} are each other's antecedents in a cycle")
    return table


def _offset(reader: Reader, cell: object, number: int, where: str) -> object:
    """The constant part of a variable cell: `q6 + pi` and `pi` both mean an offset of pi."""
    if not isinstance(cell, str):
        return cell
    variables = (f"q{number}", f"theta{number}", "q")
    try:
        at_zero = evaluate(cell, {**reader.names, **dict.fromkeys(variables, 0.0)})
        at_one = evaluate(cell, {**reader.names, **dict.fromkeys(variables, 1.0)})
    except ExpressionError as error:
        raise reader.error(where, f"{error}; expected a number, or {variables[0]} plus a number") from None
    slope = at_one - at_zero
    if slope == 0.0:
        return cell
    if abs(slope - 1.0) > 1e-12:
        raise reader.error(where, f"'{cell}' must contain {variables[0]} with factor 1")
    return at_zero


def _joints(reader: Reader, table: Table, lengths: Mapping[str, float]) -> list[Joint]:
    joints: list[Joint] = []
    position = {row: i for i, row in enumerate(table.moving)}
    for (before, after), row in zip(table.frames(lengths), table.moving, strict=True):
        carrier = table.anchor(row, lengths)[0]
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
        draft.geometry.frames({name: np.array([value]) for name, value in draft.lengths.items()})
    except (ExpressionError, TypeError):
        draft.geometry = None  # a length inside an angle: coefficients are then shown as numbers


def _mark_passive(draft: Draft, table: Table) -> None:
    """Joints with mu = 0 need a relation, joints with a relation are passive."""
    for index, row in enumerate(table.moving):
        if table.rows[row].mu == 0 and index not in draft.passive:
            name = draft.joints[index].name
            raise draft.reader.error(
                f"joint {row + 1}",
                f"'{name}' is passive (mu = 0); give its position under 'passive', such as q{row + 1}: pi/2 - q2",
            )


def _loop_check(reader: Reader, table: Table, lengths: Mapping[str, float], cut: int, closes_on: int) -> LoopCheck:
    """Gap of a loop: the two frames must share their origin and, turned about z if revolute, their z axis."""

    def pose(frame: int, tree: Array) -> tuple[Array, Array]:
        chain: list[int] = []
        index = frame - 1
        while index != BASE:
            chain.append(index)
            index = table.rows[index].antecedent - 1
        rotation, origin = np.broadcast_to(np.eye(3), (len(tree), 3, 3)), np.zeros((len(tree), 3))
        for row in reversed(chain):
            before, after = (Transform(np.array(f[0]), np.array(f[1])) for f in table.parts(row, lengths))
            q = tree[:, table.moving.index(row)] if row in table.moving else np.zeros(len(tree))
            sigma = table.rows[row].sigma
            turn, slide = _motion(q if sigma == REVOLUTE else 0 * q, q if sigma == PRISMATIC else 0 * q)
            origin = origin + rotation @ before.translation
            rotation = rotation @ before.rotation
            origin = origin + np.einsum("nij,nj->ni", rotation, slide)
            rotation = rotation @ turn
            origin = origin + rotation @ after.translation
            rotation = rotation @ after.rotation
        return rotation, origin

    sigma = table.rows[cut - 1].sigma
    if sigma == FIXED:
        raise reader.error(f"loop {cut}-{closes_on}", f"frame {cut} must be the frame of the cut joint, not fixed")

    def gap(tree: Array) -> Array:
        (r1, p1), (r2, p2) = pose(cut, tree), pose(closes_on, tree)
        apart = p2 - p1
        if sigma == PRISMATIC:  # free along z, not about it
            apart = apart - np.sum(apart * r1[:, :, 2], -1, keepdims=True) * r1[:, :, 2]
            turned = np.linalg.norm(r1 - r2, axis=(1, 2))
        else:
            turned = np.linalg.norm(r1[:, :, 2] - r2[:, :, 2], axis=1)
        return np.asarray(np.maximum(np.linalg.norm(apart, axis=1), turned), np.float64)

    return LoopCheck(f"{cut}-{closes_on}", gap)


def _motion(angle: Array, distance: Array) -> tuple[Array, Array]:
    """Rotation (n, 3, 3) about and translation (n, 3) along z."""
    c, s = np.cos(angle), np.sin(angle)
    zero, one = np.zeros_like(c), np.ones_like(c)
    turn = np.stack([np.stack([c, -s, zero], -1), np.stack([s, c, zero], -1), np.stack([zero, zero, one], -1)], -2)
    return turn, np.stack([zero, zero, distance], -1)
