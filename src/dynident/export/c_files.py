"""The header and the source file of exported C code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident._version import __version__
from dynident.dynamics.jit.program import Op
from dynident.export.c_functions import CFunction, CNumber, Counts, literal, statements
from dynident.export.c_model import CModel, Variant
from dynident.robot.parameters import LINK_SYMBOLS

MARK = "Written by dynident"  # how a file that may be replaced begins
_WIDTH = 100


@dataclass(frozen=True, eq=False)
class CCode:
    """A model as C code.

    Attributes:
        name: Prefix of all names in C, and of the files.
        number: "double" or "float".
        model: What is exported.
        functions: Its functions.
    """

    name: str
    number: CNumber
    model: CModel
    functions: tuple[CFunction, ...]

    @property
    def counts(self) -> Mapping[str, Counts]:
        """Operations of each function."""
        return {function.name: Counts.of(function.program) for function in self.functions}

    @property
    def is_coupled(self) -> bool:
        """Whether torque at the joints differs from torque at the motors, and is known."""
        robot = self.model.robot
        return not robot.locked_motors_move and not np.array_equal(robot.moving_coupling, np.eye(len(robot.moving)))

    def macro(self, word: str) -> str:
        """Name of a constant."""
        return f"{self.name.upper()}_{word}"

    def header(self, verdict: str) -> str:
        """Text of the .h file; `verdict` says how the code was checked."""
        guard = self.macro("H")
        lines = [*self._introduction(verdict), f"#ifndef {guard}", f"#define {guard}", ""]
        lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", "", *self._sizes(), ""]
        lines += _comment("Values as exported; any other array of the same length may be passed as p.")
        for variant in ("base", "standard"):
            lines.append(f"extern const {self.number} {self.name}_{variant}[{self.macro(f'N_{variant.upper()}')}];")
        lines.append("")
        if self.model.springs:
            lines += [*self._memory(), ""]
        for function in self.functions:
            lines += [
                *_comment(f"{_capital(function.purpose)}{_of(function.variant)}."),
                f"{self.prototype(function)};",
            ]
            lines.append("")
        if self.is_coupled:
            lines += [
                *_comment("Torque at the joints, T' tau, from torque at the motors."),
                f"{self._to_joints()};",
                "",
            ]
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])

    def source(self) -> str:
        """Text of the .c file."""
        lines = [
            f"/* {MARK} {__version__}; see {self.name}.h. */",
            "",
            f'#include "{self.name}.h"',
            "",
            "#include <math.h>",
        ]
        lines.append("")
        if any(op == Op.SIGN for function in self.functions for op, _, _ in function.program.instructions):
            zero = literal(0.0, self.number)
            lines += [f"static {self.number} sign_of({self.number} x)", "{"]
            lines += [f"    return ({self.number})((x > {zero}) - (x < {zero}));", "}", ""]
        lines += [*self._values("base"), "", *self._values("standard"), ""]
        if self.model.springs:
            lines += [*self._init(), "", *self._update(), ""]
        for function in self.functions:
            lines += [*self._definition(function), ""]
        if self.is_coupled:
            lines += [*self._joint_torque(), ""]
        return "\n".join(lines)

    def prototype(self, function: CFunction) -> str:
        """A function's declaration, without the semicolon."""
        texts = [self._argument(name, function.variant) for name in function.arguments]
        texts.append(f"{self.number} {function.output}[{self._size(function)}]")
        return _wrap_lines(f"void {self.name}_{function.name}(", texts)

    def _argument(self, name: str, variant: Variant) -> str:
        if name == "memory":
            return f"const {self.name}_memory *memory"
        size = f"N_{variant.upper()}" if name == "p" else "N_JOINTS"
        return f"const {self.number} {name}[{self.macro(size)}]"

    def _size(self, function: CFunction) -> str:
        n = self.macro("N_JOINTS")
        columns = self.macro(f"N_{function.variant.upper()}_COLUMNS")
        return {"tau": n, "M": f"{n} * {n}", "W": f"{n} * {columns}"}[function.output]

    def _introduction(self, verdict: str) -> list[str]:
        robot, model = self.model.robot, self.model
        text = [f"{MARK} {__version__}: dynamics of robot {robot.name} in C99, {self.number} precision.", verdict, ""]
        text.append(f"Joints, in the order of q: {', '.join(robot.joint_names)}. Units: rad, m, s, N m, N, kg.")
        text.append(f"Terms: {', '.join(term.key for term in model.terms)}.")
        coupled = (
            "the motors' coordinates, referred to the joint side (couplings!)" if self.is_coupled else "the joints"
        )
        text.append(f"Torque tau is at {coupled}. Outputs must not overlap inputs. Link with -lm.")
        text.append("Functions take base parameters; those that end in _standard take standard parameters.")
        text += [_capital(remark) + "." for remark in model.remarks]
        text += ["", "Usage:", *self._usage(), "", "Operations:", *counts_table(self.counts)]
        return _comment(*text)

    def _usage(self) -> list[str]:
        name, n = self.name, self.macro("N_JOINTS")
        function = self.functions[0]
        given = ["&memory" if x == "memory" else f"{name}_base" if x == "p" else x for x in function.arguments]
        states = ", ".join(f"{x}[{n}]" for x in (*(a for a in function.arguments if a not in ("memory", "p")), "tau"))
        lines = [f"    {self.number} {states};"]
        if self.model.springs:
            lines += [f"    {name}_memory memory;", f"    {name}_init(&memory);", "    for each sample, in time:"]
            lines.append(f"        {name}_update(&memory, q);")
        indent = "        " if self.model.springs else "    "
        return [*lines, f"{indent}{name}_{function.name}({', '.join([*given, 'tau'])});"]

    def _sizes(self) -> list[str]:
        model = self.model
        sizes = {
            "N_JOINTS": len(model.robot.moving),
            "N_BASE_COLUMNS": len(model.beta),
            "N_STANDARD_COLUMNS": len(model.chi),
            "N_BASE": len(model.values("base")),
            "N_STANDARD": len(model.values("standard")),
        }
        if model.springs:
            sizes["N_SPRINGS"] = len(model.springs)
        lines = [f"#define {self.macro(key)} {size}" for key, size in sizes.items()]
        if model.reference is not None:
            about = "Behind the parameters, p holds the links that load, tilt and zero terms are linear around."
            lines = [*_comment(about), *lines]
        return lines

    def _values(self, variant: Variant) -> list[str]:
        base, model = self.model.base, self.model
        if variant == "base":
            labels = [f"{name} [{unit}]" for name, unit in zip(base.names, base.units, strict=True)]
        else:
            labels = [f"{column.name} [{column.unit}]" for column in base.columns]
        if model.reference is not None:
            links = [f"{symbol}{joint.number}" for joint in model.robot.joints for symbol in LINK_SYMBOLS]
            labels += [f"reference {links[i]}" for i in np.flatnonzero(model.reference)]
        size = self.macro(f"N_{variant.upper()}")
        lines = [f"const {self.number} {self.name}_{variant}[{size}] = {{"]
        for i, (value, label) in enumerate(zip(model.values(variant), labels, strict=True)):
            lines.append(f"    {literal(value, self.number)}, /* {i}: {_plain(label)} */")
        return [*lines, "};"]

    def _definition(self, function: CFunction) -> list[str]:
        lines = [self.prototype(function), "{"]
        body, outputs = statements(function.program, self.number)
        text = "\n".join([*body, *outputs])
        for name in function.arguments:
            if not re.search(rf"\b{name}(\[|->)", text):
                lines.append(f"    (void){name};")
        lines += [f"    {line}" for line in body]
        output = function.output
        if len(function.places) < function.size:
            zero = literal(0.0, self.number)
            lines.append(f"    for (int i = 0; i < {self._size(function)}; i++) {output}[i] = {zero};")
        lines += [f"    {output}[{place}] = {x};" for place, x in zip(function.places, outputs, strict=True)]
        return [*lines, "}"]

    def _memory(self) -> list[str]:
        name, number = self.name, self.number
        about = "What friction remembers: how far each spring is wound up, and where the joints were."
        return [
            *_comment(about),
            "typedef struct {",
            "    int started;",
            f"    {number} q[{self.macro('N_JOINTS')}];",
            f"    {number} spring[{self.macro('N_SPRINGS')}];",
            f"}} {name}_memory;",
            "",
            *_comment("Forget everything: at the start, and behind every gap in time."),
            f"{self._init()[0]};",
            "",
            *_comment("Go on to the next position, before the functions that take the memory."),
            f"{self._update()[0]};",
        ]

    def _init(self) -> list[str]:
        zero = literal(0.0, self.number)
        return [
            f"void {self.name}_init({self.name}_memory *memory)",
            "{",
            "    memory->started = 0;",
            f"    for (int i = 0; i < {self.macro('N_JOINTS')}; i++) memory->q[i] = {zero};",
            f"    for (int i = 0; i < {self.macro('N_SPRINGS')}; i++) memory->spring[i] = {zero};",
            "}",
        ]

    def _update(self) -> list[str]:
        number, n = self.number, self.macro("N_JOINTS")
        moved = f"    {number} moved[{n}];"
        lines = [
            _wrap_lines(f"void {self.name}_update(", [f"{self.name}_memory *memory", f"const {number} q[{n}]"]),
            "{",
        ]
        # Differences of positions are exact where positions themselves are not: small springs need every digit.
        zero = literal(0.0, number)
        difference = f"memory->started ? q[i] - memory->q[i] : {zero}"
        lines += [moved, f"    {number} x;", f"    for (int i = 0; i < {n}; i++) moved[i] = {difference};"]
        for i, spring in enumerate(self.model.springs):
            lines += [f"    {line}" for line in self._push(i, *spring)]
        lines.append(f"    for (int i = 0; i < {n}; i++) memory->q[i] = q[i];")
        return [*lines, "    memory->started = 1;", "}"]

    def _push(self, i: int, direction: tuple[float, ...], slip: float) -> list[str]:
        parts = [
            f"moved[{j}]" if share == 1.0 else f"({literal(share, self.number)}) * moved[{j}]"
            for j, share in enumerate(direction)
            if share
        ]
        radius = literal(slip, self.number)
        return [
            f"x = memory->spring[{i}] + {' + '.join(parts)};",
            f"memory->spring[{i}] = x > {radius} ? {radius} : x < -{radius} ? -{radius} : x;",
        ]

    def _to_joints(self) -> str:
        n = self.macro("N_JOINTS")
        return _wrap_lines(
            f"void {self.name}_joint_torque(", [f"const {self.number} tau[{n}]", f"{self.number} joint[{n}]"]
        )

    def _joint_torque(self) -> list[str]:
        lines = [self._to_joints(), "{"]
        for j, column in enumerate(self.model.robot.moving_coupling.T):
            parts = [f"({literal(x, self.number)}) * tau[{i}]" for i, x in enumerate(column) if x]
            lines.append(f"    joint[{j}] = {' + '.join(parts)};")
        return [*lines, "}"]


def counts_table(counts: Mapping[str, Counts]) -> list[str]:
    """Operations of all functions as lines of text."""
    width = max(map(len, counts))
    lines = [f"{'':{width}}     add     mul     div     sin, cos, ..     sign"]
    for name, own in counts.items():
        cells = f"{own.additions:8}{own.multiplications:8}{own.divisions:8}{own.functions:17}{own.signs:9}"
        lines.append(f"{name:{width}}{cells}")
    return lines


def _of(variant: Variant) -> str:
    return "" if variant == "base" else ", from standard parameters"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    """Text for a comment: ASCII, and nothing that ends or nests one."""
    for fancy, plain in (("·", " "), ("²", "^2"), ("³", "^3")):
        text = text.replace(fancy, plain)
    return re.sub(r"[^ -~]|[*\\?]", "_", text)


def _comment(*text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in map(_plain, text):
        whole = [paragraph] if paragraph.startswith(" ") or not paragraph else textwrap.wrap(paragraph, _WIDTH)
        lines += whole
    if len(lines) == 1:
        return [f"/* {lines[0]} */"]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def _wrap_lines(left: str, items: Sequence[str]) -> str:
    """Arguments on one line, or one beside the other below each other."""
    if len(line := f"{left}{', '.join(items)})") <= _WIDTH:
        return line
    indent = " " * len(left)
    return f"{left}" + f",\n{indent}".join(items) + ")"
