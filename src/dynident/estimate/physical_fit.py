"""From base parameters to bodies: the physical parameters nearest to a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import InputError
from dynident.estimate.physical_bounds import Bound
from dynident.estimate.physical_evidence import Evidence, rows_of
from dynident.estimate.physical_lean import PriorLike, lean_towards
from dynident.estimate.physical_problem import FLOOR, Nearest, PhysicalProblem, link_columns
from dynident.estimate.physical_result import Contradiction, LinkBody, PhysicalParameters, link_body
from dynident.identifiability.base import BaseParameters
from dynident.robot.physicality import link_label, pseudo_inertia

GIVE = 1.0  # standard deviations of all together that the prior may move; noise moves a fit by the root of its rank
RARE = 1e-3  # share of fits in which noise alone is farther from physical
_TOLD = 3  # contradictions that are worked out
_MATTERS = 0.05  # share of the squared distance below which a condition is not named


@on_one_thread
def physical_fit(
    fit: Evidence,
    base: BaseParameters | None = None,
    *,
    prior: PriorLike = None,
    bounds: Sequence[Bound] = (),
    inflation: Array | None = None,
    reference: Array | None = None,
    floor: float = FLOOR,
) -> PhysicalParameters:
    """The physical parameters nearest to a fit.

    Minimises the weighted residual over standard parameters such that every link is a body (pseudo-inertia positive
    definite), rotor inertias are not negative and friction takes energy as a whole. See `physical_problem`.

    Args:
        fit: An estimate, a fitted estimator, or data, which is then fitted by weighted least squares. Only the latter
            two know the error of each joint.
        base: The base parameters with their robot; needed only where the data has lost them (a file of factors).
        prior: What settles directions that the data leaves open: None for the robot's own values, the name of one of
            its value sets, a mapping by parameter name, or "plausible" for bodies from geometry alone.
        bounds: Bounds on masses and centres of mass.
        inflation: (n_channels,) rows that weigh as much as one independent row, for a fitted estimator.
        reference: (10 n_links,) what load-dependent terms of a fitted estimator are linear around; for predictions.
        floor: Share of the body it leans towards that each link keeps.

    Raises:
        ConflictError: When bounds contradict physics or each other, naming them.
    """
    if not 0.0 < floor < 0.1:
        raise InputError(f"floor is {floor}; expected a small positive share, such as {FLOOR:g}")
    if isinstance(bounds, Bound) or not all(isinstance(one, Bound) for one in bounds):
        raise InputError("bounds must be a sequence of MassBound, TotalMassBound, CenterBox or CenterEllipsoid")
    rows = rows_of(fit, base, inflation, reference)
    base, A, y = rows.base, rows.R @ rows.base.K, rows.R @ rows.beta
    link_columns(base.robot, base.columns)
    lean = lean_towards(base.robot, base.columns, A, y, prior)
    problem = PhysicalProblem(base.robot, base.columns, base.terms, A, y, lean, tuple(bounds), GIVE, floor)
    found = problem.solve()
    beta = base.K @ found.chi
    distance = float(np.linalg.norm(A @ found.chi - y))
    usual = usual_distance(rows.rank)
    return PhysicalParameters(
        base=base,
        chi=found.chi,
        unconstrained=rows.beta,
        covariance=rows.covariance,
        chi_std=standard_deviations(A, found.chi),
        distance=distance,
        usual=usual,
        strains=found.strains,
        contradictions=_contradictions(problem, found) if found.least > usual else (),
        prior=lean.words,
        give=found.give,
        links=bodies_of(problem, found),
        channels=rows.channels,
        errors=rows.relative_errors(beta) if rows.channels else np.zeros(0),
        errors_unconstrained=rows.relative_errors(rows.beta) if rows.channels else np.zeros(0),
        seconds=found.seconds,
        reference=rows.reference,
        notes=rows.notes,
    )


def usual_distance(rank: int) -> float:
    """Distance that noise alone exceeds once in a thousand fits, if the deviations are right and the truth physical.

    The truth is physical, so the nearest physical parameters are no farther than it; and its square is distributed as
    chi-square with as many degrees of freedom as the data determines directions.
    """
    from scipy.special import chdtri  # takes a while to load

    return float(np.sqrt(chdtri(rank, RARE)))


def bodies_of(problem: PhysicalProblem, found: Nearest) -> tuple[LinkBody, ...]:
    """The bodies of a solution."""
    places = link_columns(problem.robot, problem.columns)
    result = []
    for joint, place, body in zip(problem.robot.joints, places, problem.lean.bodies, strict=True):
        margin = smallest_share(found.chi[place], body)
        result.append(link_body(link_label(joint), found.chi[place], margin, problem.floor))
    return tuple(result)


def smallest_share(chi: Array, body: Array) -> float:
    """Smallest eigenvalue of a link's pseudo-inertia in axes where that of a body is one."""
    inverse = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(body)))
    return float(np.linalg.eigvalsh(inverse @ pseudo_inertia(chi) @ inverse.T)[0])


def standard_deviations(A: Array, chi: Array) -> Array:
    """Deviations of standard parameters from rows of unit deviation, (n_columns,); infinite where rows leave them open.

    Args:
        A: (m, n_columns) of full row rank.
        chi: (n_columns,), only its length counts.
    """
    size = np.linalg.norm(A, axis=0)
    scale = np.where(size > 0.0, size, 1.0)
    _, singular, vt = np.linalg.svd(A / scale, full_matrices=False)
    kept = singular > 1e-12 * singular[0]
    half = vt[kept].T / singular[kept]
    seen = np.sum(vt[kept] ** 2, axis=0) > 1.0 - 1e-9  # the unit vector of the parameter lies in what rows can see
    return np.where(seen, np.linalg.norm(half, axis=1) / scale, np.inf)


def _contradictions(problem: PhysicalProblem, found: Nearest) -> tuple[Contradiction, ...]:
    """The conditions that cause most of the distance, and what it would be without each."""
    total = max(sum(max(strain, 0.0) for strain in found.strains.values()), 1e-300)
    worst = sorted(found.strains, key=lambda name: -found.strains[name])[:_TOLD]
    return tuple(
        Contradiction(name, found.strains[name] / total, found.least, problem.distance_without(name))
        for name in worst
        if found.strains[name] > _MATTERS * total
    )
