"""A fit whose friction has a memory, as a prior of plain parameters: its links, and plain friction nearest to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Mask, frozen
from dynident.dynamics.terms import TermsLike, along_terms, resolve_terms, state_terms
from dynident.errors import InputError
from dynident.estimate.equivalent_friction import plain_elements
from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.states import random_states
from dynident.online.thresholds import THRESHOLDS
from dynident.robot.model import Robot

PLAIN = ("Fv", "Fc")


def plain_part(fit: Fit) -> tuple[BaseParameters, Array, Array, Mask, str]:
    """What a fit says about a model that is a function of the state alone.

    Links, rotors and offsets keep their values and standard deviations. Viscous and Coulomb friction share the friction
    with what has a memory or follows the load, so their values in the fit mean nothing alone: those nearest to all of
    it in steady motion stand in, without standard deviations of their own.

    Args:
        fit: The estimate, with terms that follow the motion along time.

    Returns:
        The base parameters, (n,) values, (n, n) covariance, zero where there is no standard deviation, (n,) which are
        known, and a note for the reader.
    """
    of_state = state_terms(fit.base.terms)
    lacking = [name for name in PLAIN if name not in [term.name for term in of_state]]
    base = base_parameters(fit.robot, (*of_state, *resolve_terms(lacking)) if lacking else of_state)
    nearest, left = ({}, 0.0) if fit.friction_view is None else plain_elements(fit)
    places = [fit.names.index(name) if name in fit.names else -1 for name in base.names]
    beta, determined = np.zeros(base.n), np.zeros(base.n, dtype=bool)
    own = np.zeros(base.n, dtype=bool)  # with the standard deviations of the fit
    for i, (name, place) in enumerate(zip(base.names, places, strict=True)):
        if name in nearest:
            beta[i], determined[i] = nearest[name], True
        elif place >= 0 and fit.determined[place]:
            beta[i], determined[i], own[i] = fit.beta[place], True, True
    covariance = np.where(np.outer(own, own), fit.covariance[np.ix_(places, places)], 0.0)
    return base, beta, covariance, determined, _note(fit, left)


def _note(fit: Fit, left: float) -> str:
    keys = ", ".join(term.key for term in along_terms(fit.base.terms))
    share = f", which leaves {100.0 * left:.2g} % of it" if left else ""
    return f"{keys} of the fit are not estimated on-line; the plain friction nearest to all of its own stands in{share}"


# ----------------------------------------------------------------------------------------------------------------------
# What is known before the first sample: an identified robot, a set of values, or nothing.

PriorLike = Fit | str | Mapping[str, float] | None


@dataclass(frozen=True, eq=False)
class Prior:
    """The robot as it is known beforehand.

    Attributes:
        base: The base parameters of the model.
        beta: (n,) values; zero where nothing is known.
        covariance: (n, n) of them; zero for values that are taken as exact.
        determined: (n,) which of them are known.
        sigma: (n_joints,) standard deviation of each joint's torque, the fixed weight of its rows [N·m or N].
        words: Where this comes from.
        reference: (10 n_links,) links that terms which depend on the load are linear around; None without such terms.
        notes: What a reader should know about it.
        inflation: Rows that weighed as much as one independent row where it was identified, all joints together.
        weights_given: Whether `sigma` was given and stays; else it is where weights of a payload's rows begin.
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    determined: Mask
    sigma: Array
    words: str
    reference: Array | None = None
    notes: tuple[str, ...] = ()
    inflation: float = 1.0
    weights_given: bool = False

    @property
    def anything(self) -> bool:
        """Whether anything is known."""
        return bool(self.determined.any())

    @property
    def long_range(self) -> float:
        """By how much more errors were alike over whole logs than the filters alone make them."""
        return max(1.0, self.inflation / THRESHOLDS.filtered_inflation)

    def regularization(self) -> Array:
        """Rows that hold the values within their standard deviations, (n_determined, n + 1); see the option `lean`."""
        places = np.flatnonzero(self.determined)
        if not len(places):
            return np.zeros((0, self.base.n + 1))
        covariance = self.covariance[np.ix_(places, places)].copy()
        typical = np.median(np.abs(self.beta[places])) or 1.0
        exact = np.diag(covariance) <= 0.0
        covariance[exact, exact] = (THRESHOLDS.value_share * np.maximum(np.abs(self.beta[places][exact]), typical)) ** 2
        # Scaled to a correlation first: parameters differ by orders of magnitude.
        std = np.sqrt(np.diag(covariance))
        values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
        kept = values > 1e-12 * values[-1]
        half = (vectors[:, kept] / np.sqrt(values[kept])).T / std
        rows = np.zeros((len(half), self.base.n + 1))
        rows[:, places] = half
        rows[:, -1] = half @ self.beta[places]
        return rows


def same_known(one: Prior | None, other: Prior | None) -> bool:
    """Whether two estimations stand on the same values, standard deviations and weights."""
    if one is None or other is None:
        return one is other
    pairs = ((one.beta, other.beta), (one.covariance, other.covariance), (one.sigma, other.sigma))
    # A fit is read from text, and weights are computed again; both are the same but for rounding.
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12 * np.abs(a).max()) for a, b in pairs)


def known_robot(
    robot: Robot, terms: TermsLike, prior: PriorLike, sigma: ArrayLike | None, payload: bool = False
) -> Prior:
    """What an estimate, a set of values or nothing says.

    Args:
        robot: The robot.
        terms: Terms of the model, or None for those of the prior.
        prior: The estimate, the values, or None.
        sigma: (n_joints,) standard deviation of each joint's torque, or None.
        payload: Whether a payload is looked for: the robot may then have friction with a memory, which is subtracted.

    Raises:
        InputError: When terms follow the motion along time and are to be estimated, or the prior belongs to another
            robot.
    """
    if isinstance(prior, Fit):
        return _from_estimate(robot, terms, prior, sigma, payload)
    base = base_parameters(robot, terms)
    _check_terms(base)
    n = base.n
    beta, determined, words = np.zeros(n), np.zeros(n, dtype=bool), "nothing is known beforehand"
    if prior is not None:
        beta, determined = base.base_values(prior), np.ones(n, dtype=bool)
        words = f"values '{prior}' of the robot" if isinstance(prior, str) else "given values"
    chosen = typical_noise(base, beta if prior is not None else None) if sigma is None else _deviations(robot, sigma)
    given = sigma is not None
    return Prior(base, frozen(beta), frozen(np.zeros((n, n))), determined, frozen(chosen), words, weights_given=given)


def _from_estimate(robot: Robot, terms: TermsLike, fit: Fit, sigma: ArrayLike | None, payload: bool) -> Prior:
    fit = fit.for_payload() if payload else fit
    if fit.robot.fingerprint != robot.fingerprint:
        raise InputError(f"the prior was identified for another robot than {robot.name}; give the robot of the fit")
    if terms is not None and [term.key for term in resolve_terms(terms)] != [term.key for term in fit.base.terms]:
        raise InputError("the terms differ from those of the prior; leave terms away to use the prior's")
    chosen = np.maximum(fit.sigma, 1e-12) if sigma is None else _deviations(robot, sigma)
    if along_terms(fit.base.terms) and not payload:
        return _plain(fit, chosen)
    covariance = np.where(np.outer(fit.determined, fit.determined), fit.covariance, 0.0)
    beta = np.where(fit.determined, fit.beta, 0.0)
    return Prior(
        fit.base,
        frozen(beta),
        frozen(covariance),
        fit.determined,
        frozen(chosen),
        f"{fit!r}",
        fit.reference,
        inflation=float(np.mean(fit.inflation)),
        weights_given=sigma is not None,
    )


def _plain(fit: Fit, sigma: Array) -> Prior:
    """The links and the plain friction of a fit whose friction follows the motion along time."""
    base, beta, covariance, determined, note = plain_part(fit)
    return Prior(base, frozen(beta), frozen(covariance), determined, frozen(sigma), f"{fit!r}", notes=(note,))


def _check_terms(base: BaseParameters) -> None:
    along = along_terms(base.terms)
    if along:
        raise InputError(
            f"term {along[0].key} follows the motion along time and cannot be estimated on-line; name terms among "
            "rigid, Ia, Fv, Fc, Fo, or give a fit that has it as the prior"
        )


def _deviations(robot: Robot, sigma: ArrayLike) -> Array:
    values = np.asarray(sigma, dtype=np.float64)
    if values.shape != (len(robot.joint_names),) or not (np.isfinite(values) & (values > 0.0)).all():
        raise InputError(f"sigma must be one positive standard deviation for each of {', '.join(robot.joint_names)}")
    return values


def typical_noise(base: BaseParameters, beta: Array | None) -> Array:
    """(n_joints,) a small share of each joint's typical torque by the values at hand; one where there are none."""
    if beta is None:
        if base.robot.default_values not in base.robot.values:
            return np.ones(len(base.robot.joint_names))
        beta = base.base_values(None)
    torque = base.regressor(*random_states(base.robot, 50)) @ beta
    size = np.sqrt(np.mean(torque**2, axis=0))
    return np.where(
        size > 0.0, THRESHOLDS.noise_share * size, THRESHOLDS.noise_share * (size.max() or 1.0 / THRESHOLDS.noise_share)
    )
