"""What is exported to C: a robot with values, in base and in standard parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.terms import Term, along_terms, resolve_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.prediction import TorqueModel
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.robot.model import Robot

Variant = Literal["base", "standard"]
VARIANTS: tuple[Variant, Variant] = ("base", "standard")
Exportable = Fit | TorqueModel | Robot


# A stop operator: how far its element moves with each joint, (n_joints,), and the radius at which it slips, in the unit
# of the element's position.
Spring = tuple[tuple[float, ...], float]


@dataclass(frozen=True, eq=False)
class CModel:
    """A robot, its terms and their values.

    Attributes:
        base: What the base parameters are.
        beta: (n,) their values.
        chi: (n_columns,) values of the standard parameters.
        reference: (10 n_links,) what some terms are linear around; None where no term needs one.
        remarks: What a reader of the code should know, in words.
    """

    base: BaseParameters
    beta: Array
    chi: Array
    reference: Array | None
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("beta", "chi"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms, in the order of the columns."""
        return self.base.terms

    @property
    def needs_jerk(self) -> bool:
        """Whether a term looks at the third derivative of position."""
        return any(term.needs_jerk for term in along_terms(self.terms))

    @property
    def springs(self) -> tuple[Spring, ...]:
        """The stop operators, in the order of their columns; none without friction that has a memory."""
        found = []
        for term in self.terms:
            if isinstance(term, FrictionTerm) and term.law.remembers:
                for unit, direction in zip(term.units(self.robot), term.directions(self.robot), strict=True):
                    found += [(tuple(map(float, direction)), unit * radius) for radius in term.scales]
        return tuple(found)

    def values(self, variant: Variant) -> Array:
        """Values of the parameters, and behind them those of the reference's links that are not zero."""
        own = self.beta if variant == "base" else self.chi
        return np.concatenate([own, self.reference[self.reference != 0.0]]) if self.reference is not None else own

    def torque_model(self, variant: Variant) -> TorqueModel:
        """What the library makes of the values."""
        chi = self.chi if variant == "standard" else self.base.standard_values(self.beta, "regrouped zero")
        return TorqueModel(self.robot, self.terms, frozen(chi), self.reference)


def model_to_export(given: Exportable) -> CModel:
    """The values of an estimate, of a torque model, or a robot's own.

    Raises:
        InputError: For what C code cannot express, or is no model.
    """
    if isinstance(given, Robot):
        given = TorqueModel(given, resolve_terms(None, given), parameters(given))
    if not isinstance(given, Fit | TorqueModel):
        raise InputError(f"{type(given).__name__} cannot be exported; expected a Fit, a TorqueModel or a Robot")
    _check_expressible(given.robot, given.base.terms if isinstance(given, Fit) else given.terms)
    model = _of_estimate(given) if isinstance(given, Fit) else _of_torque_model(given)
    if not (np.isfinite(model.beta).all() and np.isfinite(model.chi).all()):
        raise InputError(f"a parameter of {model.robot.name} is not a finite number; export what has values")
    return model


def _of_estimate(fit: Fit) -> CModel:
    remarks: tuple[str, ...] = ()
    if fit.undetermined:
        names = ", ".join(fit.undetermined)
        remarks = (f"not determined by the data, left as estimator {fit.estimator.name} had them: {names}",)
    if any(isinstance(term, TemperatureFriction) for term in fit.base.terms):
        remarks = (*remarks, "the code has no temperatures: friction is that at the reference temperatures of the fit")
    reference = _reference(fit.base.terms, fit.reference, fit.robot)
    return CModel(fit.base, fit.beta, fit.parameter_model.chi, reference, remarks)


def _of_torque_model(given: TorqueModel) -> CModel:
    base = base_parameters(given.robot, given.terms)
    values = iter(given.chi)
    by_term = {term.key: [next(values) for _ in term.columns(given.robot)] for term in given.terms}
    chi = np.array([x for term in base.terms for x in by_term[term.key]])  # base puts the terms of the state first
    return CModel(base, base.K @ chi, chi, _reference(base.terms, given.reference, given.robot))


def _reference(terms: tuple[Term, ...], reference: Array | None, robot: Robot) -> Array | None:
    needing = [term.key for term in along_terms(terms) if term.needs_linearization_point]
    if not needing:
        return None
    if reference is None or reference.shape != (10 * robot.n_links,):
        raise InputError(
            f"term {needing[0]} is linear around a reference; give the {10 * robot.n_links} parameters of its links"
        )
    return reference


def _check_expressible(robot: Robot, terms: tuple[Term, ...]) -> None:
    if robot.closure is not None:
        loops = ", ".join(loop.name for loop in robot.closure.loops)
        raise InputError(
            f"robot {robot.name}: loop {loops} is closed numerically, on the branch that a search over poses finds, "
            "and straight-line code cannot search; C needs loops that close by relations between joints (follow)"
        )
