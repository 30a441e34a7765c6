"""The answer of `dynident inspect`: gathered once, shown as a terminal page or as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dynident.errors import InputError, UnknownNameError
from dynident.identifiability import BaseParameters, base_parameters, base_violations
from dynident.robot.loops import loop_paths
from dynident.robot.model import BASE, Joint, Robot
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.robot.physicality import complete_links, physical_violations, sentences


class _PageConsole(Console):
    """A console that leaves a closed pipe to its caller."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def page_console() -> Console:
    """The console of the command line; names of a file are shown as they are."""
    return _PageConsole(highlight=False, markup=False, emoji=False)


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found out about a robot.

    Attributes:
        base: Its base parameters.
        values: Name of the value set that was checked and is shown.
        numbers: Base values of that set, in base order.
        violations: Conditions those values break, in words.
        verdict: What can be said about them.
    """

    base: BaseParameters
    values: str
    numbers: tuple[float, ...]
    violations: tuple[str, ...]
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        base, robot = self.base, self.base.robot
        categories = base.categories
        return {
            "robot": robot.name,
            "source": robot.source,
            "terms": [term.name for term in base.terms],
            "joints": list(robot.joint_names),
            "motors": list(robot.motor_names),
            "links": [joint.link for joint in robot.joints],
            "gravity": [float(x) for x in robot.gravity],
            "loops": list(robot.closes),
            "locked": {robot.joints[robot.active[i]].variable: x for i, x in robot.locked.items()},
            "counts": {
                "standard": sum(category != "fixed" for category in categories.values()),
                "no_effect": len(base.of_category("no effect")),
                "unique": len(base.of_category("unique")),
                "combination": len(base.of_category("combination")),
                "fixed": len(base.of_category("fixed")),
                "base": base.n,
            },
            "no_effect": list(base.of_category("no effect")),
            "unique": list(base.of_category("unique")),
            "combination": list(base.of_category("combination")),
            "fixed": {column.name: column.fixed for column in base.columns if column.fixed is not None},
            "base": [
                {
                    "name": name,
                    "terms": relation,
                    "expression": expression,
                    "unit": base.columns[index].unit,
                    "value": value,
                }
                for name, relation, expression, index, value in zip(
                    base.names, base.relations, base.expressions, base.independent, self.numbers, strict=True
                )
            ],
            "rank_gap": {"independent": base.weakest, "dependent": base.strongest},
            "values": self.values,
            "verdict": self.verdict,
            "violations": list(self.violations),
            "warnings": [*robot.warnings, *base.warnings],
        }

    def print(self, console: Console) -> None:
        """The page an engineer reads."""
        for part in (
            _heading(self.base),
            _joint_table(self.base.robot),
            _counts(self.base),
            *_lists(self.base),
            *_relations(self),
            *_verdict(self),
        ):
            console.print(part)


def inspection(base: BaseParameters, values: str | None = None) -> Inspection:
    """Gather the answer for one of the robot's value sets (default: its own)."""
    robot = base.robot
    name = robot.default_values if values is None else values
    if name in robot.values:
        numbers = tuple(float(x) for x in base.base_values(name))
        found = physical_violations(robot, name)
        verdict = _standard_verdict(robot, name)
    elif name in robot.base_values:
        if robot.locked:
            raise InputError(f"the base values '{name}' belong to the robot without locked joints")
        whole = base_parameters(robot)  # inertia is judged with all that carries it, whatever terms are shown
        given = robot.base_values[name]
        numbers = tuple(given.get(key, 0.0) for key in base.names)
        found = base_violations(whole, given)
        verdict = f"Values '{name}' do not contradict physics in the poses tried."
    else:
        raise UnknownNameError("parameter set", name, [*robot.values, *robot.base_values])
    if found:
        verdict = f"Values '{name}' are not physical:"
    return Inspection(base, name, numbers, tuple(sentences(found)), verdict)


def _standard_verdict(robot: Robot, name: str) -> str:
    """What can be said about a value set that breaks no condition."""
    given = robot.value_set(name)
    complete = complete_links(robot, name)
    partial = [
        str(joint.number)
        for i, joint in enumerate(robot.joints)
        if i not in complete and any(f"{symbol}{joint.number}" in given for symbol in LINK_SYMBOLS)
    ]
    if not robot.link_parameters(name).any():
        return f"Values '{name}' give no link parameters."
    if partial:
        return f"Values '{name}' give links {', '.join(partial)} only in part; those were not judged."
    return f"Values '{name}' are physical."


def bundled_table(robots: Iterable[Robot]) -> Table:
    """The robots that come with dynident."""
    table = Table(box=SIMPLE_HEAD, title_justify="left")
    for heading in ("name", "joints", "links", "what it is"):
        table.add_column(heading, justify="right" if heading in ("joints", "links") else "left")
    for robot in robots:
        table.add_row(robot.name, str(len(robot.joint_names)), str(robot.n_links), _shape(robot))
    return table


def _shape(robot: Robot) -> str:
    kinds = "".join("P" if robot.joints[i].kind == "prismatic" else "R" for i in robot.active)
    extras = []
    if robot.closes:
        extras.append("closed loop")
    elif len(robot.active) < len(robot.joints):
        extras.append("passive joints")
    elif not robot.is_serial:
        extras.append("tree")
    if any(element.label.startswith("m") for element in robot.elements):
        extras.append("coupled motors")
    return ", ".join([kinds, *extras])


def _plural(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


def _heading(base: BaseParameters) -> Text:
    robot = base.robot
    text = Text(robot.name, style="bold")
    facts = [_plural(len(robot.joint_names), "moving joint"), _plural(robot.n_links, "link"), _shape(robot)]
    text.append(f"  {', '.join(facts)}\n", style="default not bold")
    terms = ", ".join(term.name for term in base.terms)
    g = " ".join(f"{x:g}" for x in robot.gravity)
    return text.append(f"terms {terms}; gravity [{g}] m/s²; from {robot.source}", style="dim not bold")


def _joint_table(robot: Robot) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for heading in ("q", "joint", "kind", "on", "link", "driven by", "range"):
        table.add_column(heading, overflow="fold")
    for i, joint in enumerate(robot.joints):
        parent = "base" if joint.parent == BASE else robot.joints[joint.parent].variable
        table.add_row(joint.variable, joint.name, joint.kind, parent, joint.link, _drive(robot, i), _range(joint))
    return table


def _drive(robot: Robot, index: int) -> str:
    closure = robot.closure
    if closure is not None and index in closure.solved:
        own = [loop.name for loop in closure.loops if index in np.concatenate(loop_paths(loop, robot.joints))]
        return f"solved from loop {', '.join(own)}"
    if index not in robot.active:
        leaders, factors = [*robot.active], [*robot.follow[index]]
        if closure is not None:
            leaders, factors = [*leaders, *closure.solved], [*factors, *closure.follow[index]]
        parts = [(robot.joints[j].variable, c) for j, c in zip(leaders, factors, strict=True) if c]
        return "= " + _affine(parts, float(robot.follow_offset[index]))
    position = robot.active.index(index)
    if position in robot.locked:
        return f"locked at {robot.locked[position]:.4g}"
    row = robot.coupling[position]
    if np.count_nonzero(row) > 1 or row[position] != 1.0:
        parts = [(robot.joints[j].variable, c) for j, c in zip(robot.active, row, strict=True) if c]
        return f"motor at {_affine(parts, 0.0)}"
    return "motor"


def _affine(parts: list[tuple[str, float]], constant: float) -> str:
    text = ""
    for name, factor in parts:
        size = "" if abs(factor) == 1.0 else f"{abs(factor):.4g} "
        text += f" {'-' if factor < 0 else '+'} {size}{name}"
    if constant:
        turns = constant / math.pi
        shown = f"{abs(turns):g}π" if abs(4 * turns - round(4 * turns)) < 1e-12 else f"{abs(constant):.4g}"
        text += f" {'-' if constant < 0 else '+'} {shown}"
    return text.removeprefix(" + ").strip() or "0"


def _range(joint: Joint) -> str:
    low, high = joint.limits.lower, joint.limits.upper
    if low is None or high is None:
        return "not given"
    return f"{low:.4g} .. {high:.4g} {'m' if joint.kind == 'prismatic' else 'rad'}"


def _counts(base: BaseParameters) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="bold")
    table.add_column()
    fixed = len(base.of_category("fixed"))
    known = f" ({fixed} more have known values)" if fixed else ""
    table.add_row(str(len(base.columns) - fixed), f"standard parameters{known}, of which")
    table.add_row(str(len(base.of_category("no effect"))), "have no effect on any torque")
    table.add_row(str(len(base.of_category("unique"))), "can be identified one by one")
    table.add_row(str(len(base.of_category("combination"))), "can be identified only in combination; together")
    gap = f"rank gap {base.weakest:.0e} to {base.strongest:.0e}"
    table.add_row(str(base.n), Text.assemble(("base parameters", "bold"), f" ({gap})"))
    return table


def _lists(base: BaseParameters) -> list[Padding]:
    result = []
    for title, names in (
        ("No effect", base.of_category("no effect")),
        ("One by one", base.of_category("unique")),
    ):
        if names:
            text = Text.assemble((f"{title}: ", "bold"), "  ".join(names))
            result.append(Padding(text, (1, 0, 0, 0)))
    return result


def _relations(inspection: Inspection) -> list[Table]:
    base = inspection.base
    table = Table(box=SIMPLE_HEAD, title="\nCombinations", title_style="bold", title_justify="left")
    table.add_column("base parameter", no_wrap=True)
    table.add_column("stands for")
    known = any(inspection.numbers)
    if known:
        table.add_column("value", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for row, (name, index) in enumerate(zip(base.names, base.independent, strict=True)):
        if name != base.columns[index].name:
            value = [f"{inspection.numbers[row]:.4g}"] if known else []
            table.add_row(name, _sum(base, row), *value, base.columns[index].unit)
    return [table] if table.row_count else []


class _Sum:
    """A sum that a narrow column breaks only before a sign."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widest = max(len(part) for part in self.parts)
        return Measurement(min(widest, options.max_width), min(len(" ".join(self.parts)), options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [self.parts[0]]
        for part in self.parts[1:]:
            if len(lines[-1]) + 1 + len(part) <= options.max_width:
                lines[-1] += " " + part
            else:
                lines.append(part)
        yield Text("\n".join(lines))


def _sum(base: BaseParameters, row: int) -> _Sum:
    """The relation of a base parameter, with parameters of equal coefficient gathered: d3^2 (M3 + M4)."""
    groups: dict[str, list[str]] = {}
    for j, coefficient in base.terms_of(row):
        groups.setdefault(coefficient, []).append(base.columns[j].name)
    parts: list[str] = []
    for coefficient, names in groups.items():
        sign, size = ("-", coefficient[1:]) if coefficient.startswith("-") else ("+", coefficient)
        if size == "1":
            parts.extend(f"{sign} {name}" for name in names)
        else:
            inside = names[0] if len(names) == 1 else f"({' + '.join(names)})"
            parts.append(f"{sign} {size} {inside}")
    parts[0] = parts[0].removeprefix("+ ")
    return _Sum(parts)


def _verdict(inspection: Inspection) -> list[Text]:
    style = "bold red" if inspection.violations else "green" if inspection.verdict.endswith("physical.") else ""
    lines = [Text(inspection.verdict, style=style)]
    lines.extend(Text(f"  {violation}", style="red") for violation in inspection.violations)
    robot = inspection.base.robot
    ours = {str(violation) for violation in inspection.violations}
    for warning in (*robot.warnings, *inspection.base.warnings):
        if warning not in ours:
            lines.append(Text(f"Warning: {warning}", style="yellow"))
    return lines
