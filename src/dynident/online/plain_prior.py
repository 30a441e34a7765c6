"""A fit whose friction has a memory, as a prior of plain parameters: its links, and plain friction nearest to it."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array, Mask
from dynident.dynamics.terms import along_terms, resolve_terms, state_terms
from dynident.estimate.fit import Fit
from dynident.estimate.plain_friction import plain_elements
from dynident.identifiability.base import BaseParameters, base_parameters

PLAIN = ("Fv", "Fc")


def plain_part(fit: Fit) -> tuple[BaseParameters, Array, Array, Mask, str]:
    """What a fit says about a model that is a function of the state alone.

    Links, rotors and offsets keep their values and deviations. Viscous and Coulomb friction share the friction with
    what has a memory or follows the load, so their values in the fit mean nothing alone: those nearest to all of it in
    steady motion stand in, without deviations of their own.

    Args:
        fit: The estimate, with terms that follow the motion along time.

    Returns:
        The base parameters, (n,) values, (n, n) covariance, zero for what has no deviation, (n,) which are known, and
        a note for the reader.
    """
    of_state = state_terms(fit.base.terms)
    lacking = [name for name in PLAIN if name not in [term.name for term in of_state]]
    base = base_parameters(fit.robot, (*of_state, *resolve_terms(lacking)) if lacking else of_state)
    nearest, left = ({}, 0.0) if fit.friction_view is None else plain_elements(fit)
    places = [fit.names.index(name) if name in fit.names else -1 for name in base.names]
    beta, determined = np.zeros(base.n), np.zeros(base.n, dtype=bool)
    own = np.zeros(base.n, dtype=bool)  # with the deviations of the fit
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
