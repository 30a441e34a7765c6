"""Closed forms for reading: plain text and LaTeX, entry by entry."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynident.display import brief
from dynident.dynamics.terms import Column, Term, TermsLike, resolve_terms
from dynident.errors import UnknownNameError
from dynident.robot.model import Robot
from dynident.symbolic.closed_form import ClosedForm, require_closed_form
from dynident.symbolic.sympy_forms import Converter, load_sympy

_TITLES = {
    "M": "Mass matrix M, symmetric",
    "B": "Coriolis matrix B, factors of the products of two velocities",
    "C": "Centrifugal matrix C, factors of the squared velocities",
    "g": "Gravity torque g",
    "tau": "Torque tau at the actuated coordinates",
    "W": "Regressor W, tau = W chi",
    "christoffel": "Matrix C(q, dq) of Christoffel symbols",
}
_GREEK = {"tau": r"\tau", "christoffel": "C"}


def entries(form: ClosedForm, part: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Labels and number of every entry of a part that is not zero; of M the upper half."""
    numbers = [name.removeprefix("q") for name in form.robot.position_names]
    pairs = ["".join(f"dq{numbers[i]} " for i in pair).strip() for pair in form.velocity_pairs]
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


# ----------------------------------------------------------------------------------------------------------------------
# Closed-form models of robots, by the same recursion that computes their numbers.
#
# .. math:: M(q)\,\ddot q + B(q)\,[\dot q\dot q] + C(q)\,[\dot q^2] + g(q) = \Gamma, \qquad \tau = W \chi

PARTS = ("M", "C", "B", "g", "tau", "W", "christoffel")


@brief
@dataclass(frozen=True, eq=False)
class SymbolicModel:
    """The closed-form equations of a robot as SymPy matrices; each is made when it is first asked for.

    The symbols are positions, velocities and accelerations of the moving joints (q1, dq1, ddq1), the robot's named
    lengths, gravity (g along an axis, else gx, gy, gz) and the standard parameters (XX1, .. Ia1, ..). M, C, B, g and
    `christoffel` are at the joints and have what stores energy, rigid links and rotors. `tau` and `W` have all terms
    and are at the actuated coordinates, which without couplings are the joints.

    Attributes:
        robot: The robot.
        terms: Terms of the model.
        form: The same equations as polynomials.
    """

    robot: Robot
    terms: tuple[Term, ...]
    form: ClosedForm

    @functools.cached_property
    def _convert(self) -> Converter:
        return Converter(self.form)

    @functools.cached_property
    def M(self) -> Any:
        """Mass matrix, (n, n)."""
        return self._convert.matrix(self.form.mass)

    @functools.cached_property
    def C(self) -> Any:
        """Centrifugal matrix, (n, n), which multiplies the squared velocities (Kim 1990, eq. 20)."""
        return self._convert.matrix(self.form.centrifugal)

    @functools.cached_property
    def B(self) -> Any:
        """Coriolis matrix, (n, n (n-1)/2), which multiplies dq1 dq2, dq1 dq3, .. dq2 dq3, .. (Kim 1990, eq. 20)."""
        return self._convert.matrix(self.form.coriolis)

    @functools.cached_property
    def christoffel(self) -> Any:
        """C(q, dq), (n, n), of Christoffel symbols: times dq it is the torque of both, and dM/dt - 2 C is skew."""
        return self._convert.matrix(self.form.christoffel)

    @functools.cached_property
    def g(self) -> Any:
        """Gravity torque, (n, 1)."""
        return self._convert.matrix([[x] for x in self.form.gravity])

    @functools.cached_property
    def tau(self) -> Any:
        """Torque at the actuated coordinates, (n, 1)."""
        return self._convert.matrix([[x] for x in self.form.torque])

    @functools.cached_property
    def W(self) -> Any:
        """Regressor, (n, n_columns), with tau = W chi."""
        entries = self.form.regressor
        rows = [[entries.get((i, j), 0.0) for j in self.form.shown] for i in range(self.form.n)]
        return self._convert.matrix(rows)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of W."""
        return self.form.shown_columns

    @functools.cached_property
    def chi(self) -> Any:
        """The parameters as symbols (or their fixed values), (n_columns, 1)."""
        return self._convert.matrix([[self.form.chi[j]] for j in self.form.shown])

    def _state(self, prefix: str) -> tuple[Any, ...]:
        return tuple(self._convert.symbol(prefix + name) for name in self.robot.position_names)

    @property
    def q(self) -> tuple[Any, ...]:
        """Symbols of the positions."""
        return self._state("")

    @property
    def dq(self) -> tuple[Any, ...]:
        """Symbols of the velocities."""
        return self._state("d")

    @property
    def ddq(self) -> tuple[Any, ...]:
        """Symbols of the accelerations."""
        return self._state("dd")

    @property
    def constants(self) -> dict[Any, float]:
        """Value of each length and gravity symbol, ready for `subs`."""
        return {self._convert.symbol(name): value for name, value in self.form.quantities.constants.items()}

    def text(self, parts: str | Sequence[str] = ("M", "B", "C", "g")) -> str:
        """The matrices entry by entry, with C23 for cos(q2 + q3).

        Args:
            parts: Which of M, C, B, g, tau, W, christoffel.
        """

        return as_text(self.form, chosen(parts))

    def latex(self, parts: str | Sequence[str] = ("M", "B", "C", "g")) -> str:
        """The same as equations in LaTeX."""

        return as_latex(self.form, chosen(parts))

    def python(
        self,
        parts: str | Sequence[str] = ("tau", "M", "g", "W"),
        values: Mapping[str, float] | None = None,
    ) -> str:
        """A Python module with one function per part, common sub-expressions computed once.

        Args:
            parts: Which of M, C, B, g, tau, W, christoffel.
            values: Parameter values that the functions use when none are given; default the robot's own.
        """
        from dynident.symbolic.python_code import as_python

        return as_python(self.form, chosen(parts), values)


def chosen(parts: str | Sequence[str]) -> tuple[str, ...]:
    """Parts from `"M,g"` or a sequence, checked."""
    names = tuple(part.strip() for part in parts.split(",")) if isinstance(parts, str) else tuple(parts)
    for name in names:
        if name not in PARTS:
            raise UnknownNameError("part of a symbolic model", name, PARTS)
    return names


def symbolic_model(
    robot: Robot, terms: TermsLike = None, *, parameters: Mapping[str, str] | None = None
) -> SymbolicModel:
    """The closed-form equations of a robot.

    Args:
        robot: The robot: serial, tree or with passive joints that follow others; locked joints are constants.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        parameters: Standard parameters to keep and the name to show for each; others are zero. Default: all. With the
            own columns of the base parameters this is the model in base parameters (see `symbolic_base`).
    """
    require_closed_form(robot)
    resolved = resolve_terms(terms, robot)
    if parameters is not None:
        for name in parameters:
            if name not in robot.parameter_names:
                raise UnknownNameError("parameter", name, robot.parameter_names)
    return SymbolicModel(robot, resolved, ClosedForm(robot, resolved, parameters))
