"""Closed forms for reading: plain text and LaTeX, entry by entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dynident.dynamics.closed_form import ClosedForm
from dynident.dynamics.symbolic_convert import Converter, load_sympy

_TITLES = {
    "M": "Mass matrix M, symmetric",
    "B": "Coriolis matrix B, factors of the products of two speeds",
    "C": "Centrifugal matrix C, factors of the squared speeds",
    "g": "Gravity torque g",
    "tau": "Torque tau at the actuated coordinates",
    "W": "Regressor W, tau = W chi",
    "christoffel": "Matrix C(q, dq) of Christoffel symbols",
}
_GREEK = {"tau": r"\tau", "christoffel": "C"}


def entries(form: ClosedForm, part: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Labels and number of every entry of a part that is not zero; of M the upper half."""
    numbers = [name.removeprefix("q") for name in form.robot.position_names]
    pairs = ["".join(f"dq{numbers[i]} " for i in pair).strip() for pair in form.speed_pairs]
    rows: list[list[Any]]
    match part:
        case "M":
            labels = numbers
            rows = [[x if j >= i else 0.0 for j, x in enumerate(row)] for i, row in enumerate(form.mass)]
        case "C":
            labels, rows = numbers, form.centrifugal
        case "christoffel":
            labels, rows = numbers, form.christoffel
        case "B":
            labels, rows = pairs, form.coriolis
        case "W":
            labels = [column.name for column in form.shown_columns]
            rows = [[form.regressor.get((i, j), 0.0) for j in form.shown] for i in range(form.n)]
        case _:
            labels, rows = [], [[x] for x in (form.gravity if part == "g" else form.torque)]
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            if not isinstance(x, float) or x:
                yield (numbers[i], labels[j]) if labels else (numbers[i],), x


def as_text(form: ClosedForm, parts: Sequence[str]) -> str:
    """The parts as text; a legend says what C23 means and which value each length has."""
    sp = load_sympy()
    convert = Converter(form, short=True)
    blocks = []
    for part in parts:
        lines = [
            f"{part}[{', '.join(labels)}] = {sp.sstr(convert.expression(x), full_prec=False, order='none')}"
            for labels, x in entries(form, part)
        ]
        blocks.append("\n".join([f"{_TITLES[part]}:", *(lines or ["all zero"])]))
    sums = {short: _sum(form, direction) for short, direction in convert.angles.items()}
    legend = [f"C{short} = cos({angle}), S{short} = sin({angle})" for short, angle in sums.items()]
    values = [f"{name} = {value:g}" for name, value in form.quantities.constants.items()]
    if legend:
        blocks.append("\n".join(["Angles:", *sorted(legend, key=lambda line: (len(line), line))]))
    if values:
        blocks.append("Constants: " + ", ".join(values))
    return "\n\n".join(blocks) + "\n"


def _sum(form: ClosedForm, direction: Sequence[Any]) -> str:
    return " + ".join(name for name, x in zip(form.robot.position_names, direction, strict=True) if x)


def as_latex(form: ClosedForm, parts: Sequence[str]) -> str:
    """The parts as LaTeX equations, one `align*` block each."""
    sp = load_sympy()
    convert = Converter(form, short=True)
    blocks = []
    for part in parts:
        lines = []
        for labels, x in entries(form, part):
            expression = convert.expression(x)
            names = {symbol: latex_name(symbol.name) for symbol in expression.free_symbols}
            place = ",".join(re.sub(r"dq(\w+)", r"\\dot q_{\1}", label) for label in labels)
            left = f"{_GREEK.get(part, part)}_{{{place}}}"
            lines.append(f"{left} &= {sp.latex(expression, symbol_names=names, order='none')}")
        body = " \\\\\n".join(lines or [f"{_GREEK.get(part, part)} &= 0"])
        blocks.append(f"% {_TITLES[part]}\n\\begin{{align*}}\n{body}\n\\end{{align*}}")
    return "\n\n".join(blocks) + "\n"


def latex_name(name: str) -> str:
    r"""A symbol as it is written: \dot q_{1}, C_{23}, \mathit{XX}_{1}, a_{2}; C2_ with a prime, C_{2}'."""
    if plain := name.rstrip("_"):
        primes = "'" * (len(name) - len(plain))
        if primes:
            return latex_name(plain) + primes
    if found := re.fullmatch(r"(d{0,2})q(\w+)", name):
        return {"": "q", "d": r"\dot q", "dd": r"\ddot q"}[found[1]] + f"_{{{found[2]}}}"
    found = re.fullmatch(r"([A-Za-z]+?)(R?)(m?\d[\d_]*)", name)
    if found is None:
        return name if len(name) == 1 else rf"\mathit{{{name.replace('_', chr(92) + '_')}}}"
    letters = found[1] if len(found[1]) == 1 else rf"\mathit{{{found[1]}}}"
    place = found[3].replace("_", ",")
    return f"{letters}_{{{found[2]}{place}}}" if found[2] else f"{letters}_{{{place}}}"
