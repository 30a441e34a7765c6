r"""Closed-form models of robots, by the same recursion that computes their numbers.

.. math:: M(q)\,\ddot q + B(q)\,[\dot q\dot q] + C(q)\,[\dot q^2] + g(q) = \Gamma, \qquad \tau = W \chi
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynident.dynamics.closed_form import ClosedForm, require_closed_form
from dynident.dynamics.symbolic_convert import Converter
from dynident.dynamics.terms import Column, Term, TermsLike, resolve_terms
from dynident.errors import UnknownNameError
from dynident.robot.model import Robot

PARTS = ("M", "C", "B", "g", "tau", "W", "christoffel")


@dataclass(frozen=True, eq=False)
class SymbolicModel:
    """The closed-form equations of a robot as SymPy matrices; each is made when it is first asked for.

    The symbols are positions, speeds and accelerations of the moving joints (q1, dq1, ddq1), the robot's named
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
        """Centrifugal matrix, (n, n), which multiplies the squared speeds (Kim 1990, eq. 20)."""
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
        """Symbols of the speeds."""
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
        from dynident.dynamics.symbolic_print import as_text

        return as_text(self.form, chosen(parts))

    def latex(self, parts: str | Sequence[str] = ("M", "B", "C", "g")) -> str:
        """The same as equations in LaTeX."""
        from dynident.dynamics.symbolic_print import as_latex

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
        from dynident.dynamics.symbolic_python import as_python

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
    resolved = resolve_terms(terms)
    if parameters is not None:
        for name in parameters:
            if name not in robot.parameter_names:
                raise UnknownNameError("parameter", name, robot.parameter_names)
    return SymbolicModel(robot, resolved, ClosedForm(robot, resolved, parameters))
