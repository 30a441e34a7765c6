"""The answer of `dynident inspect`: gathered once, shown as a terminal page or as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text as RichText

from dynident.errors import InputError, UnknownNameError
from dynident.identifiability import BaseParameters, base_parameters, base_violations
from dynident.report.html import Cell, Head, Table, Text, TextLook
from dynident.report.terminal import print_parts, rich_table
from dynident.report.text import plural
from dynident.robot.load import BUNDLED
from dynident.robot.loops import loop_paths
from dynident.robot.model import BASE, Joint, Robot
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.robot.physicality import complete_links, physical_violations, sentences


@dataclass(frozen=True)
class Inspection:
    """What `inspect` reports about a robot.

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
        console.print(_heading(self.base))
        print_parts([_joint_table(self.base.robot), _counts(self.base)], console)
        base = self.base
        for title, names in (("No effect", base.of_category("no effect")), ("One by one", base.of_category("unique"))):
            if names:
                console.print(RichText.assemble((f"\n{title}: ", "bold"), "  ".join(names)))
        print_parts([*_relations(self), *_verdict(self)], console)


def inspect_base(base: BaseParameters, values: str | None = None) -> Inspection:
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
        whole = base_parameters(robot)  # inertia is evaluated with all that carries it, whatever terms are shown
        given = robot.base_values[name]
        numbers = tuple(given.get(key, 0.0) for key in base.names)
        found = base_violations(whole, given)
        verdict = f"Values '{name}' do not contradict physical consistency in the poses tried."
    else:
        raise UnknownNameError("parameter set", name, [*robot.values, *robot.base_values])
    if found:
        verdict = f"Values '{name}' are not physically consistent:"
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
        return f"Values '{name}' give links {', '.join(partial)} only in part; those were not assessed."
    return f"Values '{name}' are physically consistent."


def bundled_table(robots: Iterable[Robot]) -> RichTable:
    """The robots that come with dynident."""
    heads = [Head("name"), Head("joints"), Head("maker"), Head("source")]
    rows = [[robot.name, _shape(robot), *BUNDLED[robot.source]] for robot in robots]
    return rich_table(Table("", heads, rows, layout="tight"))


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


def _heading(base: BaseParameters) -> RichText:
    robot = base.robot
    text = RichText(robot.name, style="bold")
    facts = [plural(len(robot.joint_names), "moving joint"), plural(robot.n_links, "link"), _shape(robot)]
    text.append(f"  {', '.join(facts)}\n", style="default not bold")
    terms = ", ".join(term.name for term in base.terms)
    g = " ".join(f"{x:g}" for x in robot.gravity)
    return text.append(f"terms {terms}; gravity [{g}] m/s²; from {robot.source}", style="dim not bold")


def _joint_table(robot: Robot) -> Table:
    rows = []
    for i, joint in enumerate(robot.joints):
        parent = "base" if joint.parent == BASE else robot.joints[joint.parent].variable
        rows.append([joint.variable, joint.name, joint.kind, parent, joint.link, _drive(robot, i), _range(joint)])
    return Table("", [Head(text) for text in ("q", "joint", "kind", "on", "link", "driven by", "range")], rows)


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
    fixed = len(base.of_category("fixed"))
    known = f" ({fixed} more have known values)" if fixed else ""
    gap = f"rank gap {base.weakest:.0e} to {base.strongest:.0e}"
    counts = {
        f"standard parameters{known}, of which": len(base.columns) - fixed,
        "have no effect on any torque": len(base.of_category("no effect")),
        "are identifiable one by one": len(base.of_category("unique")),
        "are identifiable only in linear combination; together": len(base.of_category("combination")),
        f"base parameters ({gap})": base.n,
    }
    rows = [[Cell("", str(count), "bold"), words] for words, count in counts.items()]
    return Table("", [Head("count", True), Head("parameters")], rows, layout="bare")


def _relations(inspection: Inspection) -> list[Table]:
    base = inspection.base
    known = any(inspection.numbers)
    heads = [Head("base parameter"), Head("stands for"), Head("value", True, short=None if known else ""), Head("unit")]
    rows = [
        [name, _sum(base, row), f"{inspection.numbers[row]:.4g}", base.columns[index].unit]
        for row, (name, index) in enumerate(zip(base.names, base.independent, strict=True))
        if name != base.columns[index].name
    ]
    return [Table("", heads, rows, title="\nCombinations")] if rows else []


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
        yield RichText("\n".join(lines))


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
    violated = inspection.violations
    look: TextLook = "stop" if violated else "good" if inspection.verdict.endswith("physically consistent.") else ""
    lines = [Text(inspection.verdict, look), *(Text(f"  {violation}", "stop") for violation in violated)]
    warnings = (*inspection.base.robot.warnings, *inspection.base.warnings)
    return [*lines, *(Text(warning, "warning") for warning in warnings if warning not in violated)]
