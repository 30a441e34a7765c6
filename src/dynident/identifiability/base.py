"""Structural base parameters: what the joint torques of a robot can ever tell about its standard parameters.

The columns of the regressor are looked at from left to right, links from the base outwards and Khalil's order within a
link. A column that depends on those before it is regrouped on them, which is what Khalil's rules do: YY goes to XX and
towards the base, MZ and M go towards the base, rotor inertia goes to ZZ.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.blas import on_one_thread
from dynident.checks import Array, frozen
from dynident.dynamics.evaluate import parameters, regressor
from dynident.dynamics.terms import Column, Term, TermsLike, all_columns, resolve_terms
from dynident.identifiability.lengths import recognise
from dynident.identifiability.regrouping import Regrouping, cleaned, select_columns
from dynident.identifiability.states import ACCELERATION, random_states, reach
from dynident.robot.model import Robot

TOLERANCE = 1e-8  # share of a column that must be new for the column to count as independent
_FAINT = 3e-5  # an effect this small beside what its kind of parameter usually has deserves a word


@dataclass(frozen=True)
class BaseParameters(Regrouping):
    """The base parameters of a robot for a set of terms (see `Regrouping` for names, relations and categories).

    Attributes:
        robot: The robot.
        terms: The terms.
        weakest: Share of the least independent column that no earlier column explains.
        strongest: The same for the dependent column that came nearest to being independent; 0 without one.
        warnings: What a reader should know.
    """

    robot: Robot
    terms: tuple[Term, ...]
    weakest: float
    strongest: float
    warnings: tuple[str, ...] = ()

    @functools.cached_property
    def texts(self) -> Mapping[tuple[int, int], str]:
        """Coefficients recognised over the robot's named lengths; worked out when somebody wants to read them."""
        return recognise(self.robot, self.terms, self.independent, self.K)

    def base_values(self, values: str | Mapping[str, float] | ArrayLike | None = None) -> Array:
        """beta = K chi of a value set, (n,). Fixed parameters are no part of it."""
        return np.asarray(self.K @ parameters(self.robot, self.terms, values))

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """The base columns of the regressor, (n_samples, n_joints, n)."""
        return regressor(self.robot, q, dq, ddq, self.terms)[:, :, list(self.independent)]

    def _prior(self, prior: str | Mapping[str, float] | ArrayLike) -> Array:
        return parameters(self.robot, self.terms, prior)


@on_one_thread
def base_parameters(robot: Robot, terms: TermsLike = None, *, tolerance: float = TOLERANCE) -> BaseParameters:
    """The structural base parameters of a robot.

    Args:
        robot: The robot; locked joints reduce what can be identified.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        tolerance: Share of a column that must be new for the column to count as independent.
    """
    resolved = resolve_terms(terms)
    described = all_columns(robot, resolved)
    free = [j for j, column in enumerate(described) if column.fixed is None]
    W, sizes = scaled_observation(robot, resolved, described)
    effect = [j for j in free if sizes[j] > tolerance]
    independent, weakest, strongest = select_columns(W, effect, tolerance)
    faintest = min((sizes[j] for j in independent), default=1.0)
    dependent = [j for j in effect if j not in set(independent)]
    K = np.zeros((len(independent), len(described)))
    K[np.arange(len(independent)), independent] = 1.0
    if dependent:
        scales = column_scales(robot, described)
        solution = np.linalg.lstsq(W[:, independent], W[:, dependent], rcond=None)[0]
        K[:, dependent] = solution * scales[independent][:, None] ** -1 * scales[dependent]
    return BaseParameters(
        robot=robot,
        terms=resolved,
        columns=described,
        independent=tuple(independent),
        K=frozen(cleaned(K)),
        weakest=weakest,
        strongest=strongest,
        warnings=_warnings(weakest, strongest, min(faintest, weakest)),
    )


def column_scales(robot: Robot, described: Sequence[Column]) -> Array:
    """Typical size of each column, (n_columns,), from the kind of its parameter: W / scales is well scaled."""
    length = reach(robot)
    weight = max(ACCELERATION * length, float(np.linalg.norm(robot.gravity)))
    kinds = {"M": weight * length, "MX": weight, "MY": weight, "MZ": weight, "Fv": 3.0, "Fc": 1.0, "Fo": 1.0}
    return np.array([kinds.get(column.symbol, ACCELERATION) for column in described])


def scaled_observation(robot: Robot, terms: Sequence[Term], described: Sequence[Column]) -> tuple[Array, Array]:
    """The regressor on random states with scaled columns, (n_rows, n_columns), and the size of each column."""
    n_samples = max(30, int(np.ceil(3.0 * len(described) / len(robot.moving))))
    W = regressor(robot, *random_states(robot, n_samples), terms)
    stacked = np.ascontiguousarray(W).reshape(-1, len(described)) / column_scales(robot, described)
    stacked = stacked / np.sqrt(len(stacked))
    return stacked, np.linalg.norm(stacked, axis=0)


def _warnings(weakest: float, strongest: float, faintest: float) -> tuple[str, ...]:
    found = []
    if faintest < _FAINT:
        found.append(
            f"a base parameter is felt only through an effect of relative size {faintest:.0e}: are angles rounded in "
            f"the robot file (1.5708 for pi/2)? A tolerance of {10 * faintest:.0e} counts it as not identifiable"
        )
    if strongest > 0.0 and weakest / max(strongest, 1e-16) < 1e3:
        found.append(
            f"the rank is not clear-cut: independent columns from {weakest:.1e}, dependent ones up to {strongest:.1e}"
        )
    return tuple(found)
