"""What a fit knows about standard parameters, as rows: ||A chi - y|| is the distance to it in standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.estimate.least_squares import WeightedLeastSquares
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.information.solution import RANK_SHARE
from dynident.physical.bounds import Bound
from dynident.physical.prior import PriorLike, physical_prior
from dynident.physical.problem import (
    PhysicalProblem,
    PhysicalSolution,
    link_columns,
    smallest_share,
    standard_deviations,
    usual_distance,
)
from dynident.physical.result import Contradiction, LinkBody, PhysicalParameters, link_body
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.physicality import link_label

_MIN_EIGENVALUE_SHARE = 1e-11  # eigenvalue of a correlation, as a share of the largest, that rounding makes of zero
_ROUNDING = 1e-10
Evidence = Fit | Estimator | Information


@dataclass(frozen=True, eq=False)
class FitRows:
    """Rows of a fit.

    Attributes:
        base: What the base parameters are, over which terms of which robot.
        estimate: Their values and covariance without constraints; what load-dependent terms are linear around.
        R: (m, n): ||R (beta' - beta)|| is how far beta' is from the fit, in standard deviations.
        rank: Directions that the data determines.
        channels: Names of the output channels; empty where nothing is known about them.
        factors: Dense rows of each channel over base parameters and torque, (k + 1, n + 1) each.
        notes: What a reader should know.
    """

    base: BaseParameters
    estimate: ParameterEstimate
    R: Array
    rank: int
    channels: tuple[str, ...] = ()
    factors: tuple[Array, ...] = ()
    notes: tuple[str, ...] = ()

    def relative_errors(self, beta: Array) -> Array:
        """||tau - W beta|| / ||tau|| of each channel, (n_channels,)."""
        errors = np.array([np.linalg.norm(rows[:, -1] - rows[:, :-1] @ beta) for rows in self.factors])
        sizes = np.array([np.linalg.norm(rows[:, -1]) for rows in self.factors])
        return np.asarray(errors / np.maximum(sizes, 1e-300))


def rows_of(
    fit: Evidence,
    base: BaseParameters | None = None,
    inflation: Array | None = None,
    reference: Array | None = None,
) -> FitRows:
    """The rows of a fit.

    Args:
        fit: An estimate, a fitted estimator, or data, which is then fitted by weighted least squares.
        base: The base parameters with their robot; needed only where the data has lost them (a file of factors).
        inflation: (n_channels,) rows that weigh as much as one independent row, for a fitted estimator; an estimate
            knows its own.
        reference: (10 n_links,) what load-dependent terms of a fitted estimator are linear around.
    """
    if isinstance(fit, Fit):
        if base is not None or inflation is not None or reference is not None:
            raise InputError("base, inflation and reference go with a fitted estimator; an estimate has its own")
        return _of_estimate(fit)
    if isinstance(fit, Information):
        fit = WeightedLeastSquares().fit(fit)
    if not isinstance(fit, Estimator):
        raise InputError(f"a {type(fit).__name__} is no fit; expected a Fit, a fitted estimator or an Information")
    return _of_estimator(fit, base, inflation, reference)


def _of_estimator(
    fit: Estimator, base: BaseParameters | None, inflation: Array | None, reference: Array | None
) -> FitRows:
    information = fit.information_
    owner = information.coordinates if base is None else base
    if not isinstance(owner, BaseParameters):
        raise InputError("the data does not know its robot; give base=base_parameters(robot, terms)")
    if owner.names != information.names or not np.allclose(owner.K, information.coordinates.K):
        raise InputError("the base parameters given are not those of the data; use the terms of the fit")
    n = owner.n
    more = np.ones(len(fit.channels_)) if inflation is None else np.maximum(np.asarray(inflation, dtype=float), 1.0)
    if more.shape != (len(fit.channels_),):
        raise InputError(f"inflation must be {len(fit.channels_)} numbers, one per channel; got shape {more.shape}")
    factors = tuple(factor.dense(n) for factor in information.channel_factors())
    weights = np.sqrt(fit.channel_weights_ / more)
    # Ordinary least squares weighs all channels by one; its standard deviations are those of the residuals.
    if np.ptp(fit.channel_weights_) == 0.0:
        weights = 1.0 / (np.maximum(fit.sigma_, 1e-150) * np.sqrt(more))
    stacked = np.vstack([rows[:, :n] * weight for rows, weight in zip(factors, weights, strict=True)])
    R, rank = _triangular(stacked)
    covariance = fit.covariance_ if inflation is None else _inverse(R)
    estimate = fit.estimate_.replace(covariance=covariance, linearization=reference)
    return FitRows(owner, estimate, R, rank, fit.channels_, factors)


def _triangular(stacked: Array) -> tuple[Array, int]:
    """Square-root information of determined directions, (rank, n), columns scaled while that is decided."""
    n = stacked.shape[1]
    size = np.linalg.norm(stacked, axis=0)
    scale = np.where(size > 0.0, size, 1.0)
    _, singular, vt = np.linalg.svd(np.linalg.qr(stacked / scale)[1])
    rank = int(np.sum(singular > max(RANK_SHARE * n, 1e-10) * singular[0]))
    return np.asarray(singular[:rank, None] * vt[:rank] * scale), rank


def _inverse(R: Array) -> Array:
    half = np.linalg.pinv(R)
    return np.asarray(half @ half.T)


def _of_estimate(fit: Fit) -> FitRows:
    """From values and covariance.

    Parameters without a standard deviation (eliminated, or zero by declaration) tell nothing. Of those that are not
    determined an estimate of old files knows values and standard deviations within what the data sees, but not along
    which directions it sees nothing; so they stay within these, lest the torque changes.
    """
    if fit.null_space is not None:
        R = _beside(fit.null_space, fit.covariance)
        settled = f"the data leaves open {', '.join(fit.undetermined)}; where it does, the prior settled them"
        return FitRows(fit.base, fit.estimate, R, len(R), notes=(settled,))
    std = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    own = np.flatnonzero(std > 0.0)
    if not len(own):
        raise InputError("the estimate determines no parameter; there is nothing to make physical")
    scale = std[own]
    values, vectors = np.linalg.eigh(fit.covariance[np.ix_(own, own)] / np.outer(scale, scale))
    values = np.where(values < _MIN_EIGENVALUE_SHARE * values[-1], 1.0, values)
    R = np.zeros((len(own), fit.base.n))
    R[:, own] = (vectors / np.sqrt(values)).T / scale
    notes: tuple[str, ...] = ()
    if fit.undetermined:
        notes = (
            f"the data leaves open {', '.join(fit.undetermined)}; they were kept near the values of the fit, for its "
            "file does not say along which combinations they are free: identify again to let them go",
        )
    return FitRows(fit.base, fit.estimate, R, min(fit.rank, len(own)), notes=notes)


def _beside(directions: Array, covariance: Array) -> Array:
    """Square-root information of what lies beside null-space directions, (n - k, n), from a covariance (n, n)."""
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(std > 0.0, std, 1.0)
    n, k = directions.shape
    # In units of standard deviations; what is orthogonal to the null-space directions there is what rows can be made
    # of.
    seen = np.linalg.qr(directions / scale[:, None], mode="complete")[0][:, k:]
    seen[np.linalg.norm(seen, axis=1) < _ROUNDING] = 0.0  # a parameter that is open by itself, not almost so
    values, vectors = np.linalg.eigh(seen.T @ (covariance / np.outer(scale, scale)) @ seen)
    values = np.maximum(values, _MIN_EIGENVALUE_SHARE * values[-1]) if n > k else values
    return np.asarray((seen @ vectors / np.sqrt(values)).T / scale)


# ----------------------------------------------------------------------------------------------------------------------
# From base parameters to bodies: the physical parameters nearest to a fit.

_MAX_CONTRADICTIONS = 3  # contradictions that are worked out


@on_one_thread
def physical_fit(
    fit: Evidence,
    base: BaseParameters | None = None,
    *,
    prior: PriorLike = None,
    bounds: Sequence[Bound] = (),
    inflation: Array | None = None,
    reference: Array | None = None,
    floor: float = THRESHOLDS.floor,
) -> PhysicalParameters:
    """The physical parameters nearest to a fit.

    Minimizes the weighted residual over standard parameters such that every link is a body (pseudo-inertia positive
    definite), rotor inertias are not negative and friction takes energy as a whole. See `physical_problem`.

    Args:
        fit: An estimate, a fitted estimator, or data, which is then fitted by weighted least squares. Only the latter
            two know the error of each joint.
        base: The base parameters with their robot; needed only where the data has lost them (a file of factors).
        prior: What settles directions that the data leaves open: None for the robot's own values, the name of one of
            its value sets, a mapping by parameter name, or "plausible" for bodies from geometry alone.
        bounds: Bounds on masses and centers of mass.
        inflation: (n_channels,) rows that weigh as much as one independent row, for a fitted estimator.
        reference: (10 n_links,) what load-dependent terms of a fitted estimator are linear around; for predictions.
        floor: Share of its prior body that each link keeps.

    Raises:
        ConflictError: When bounds contradict physics or each other, naming them.
    """
    if not 0.0 < floor < 0.1:
        raise InputError(f"floor is {floor}; expected a small positive share, such as {THRESHOLDS.floor:g}")
    if isinstance(bounds, Bound) or not all(isinstance(one, Bound) for one in bounds):
        raise InputError("bounds must be a sequence of MassBound, TotalMassBound, CenterBox or CenterEllipsoid")
    rows = rows_of(fit, base, inflation, reference)
    base, A, y = rows.base, rows.R @ rows.base.K, rows.R @ rows.estimate.values
    link_columns(base.robot, base.columns)
    towards = physical_prior(base.robot, base.columns, A, y, prior)
    model = base.robot, base.columns, base.terms
    problem = PhysicalProblem(*model, A, y, towards, tuple(bounds), THRESHOLDS.prior_shift_std, floor, True)
    found = problem.solve()
    beta = base.K @ found.chi
    usual = usual_distance(rows.rank)
    return PhysicalParameters(
        base=base,
        estimate=rows.estimate,
        chi=found.chi,
        chi_std=standard_deviations(A),
        distance=float(np.linalg.norm(A @ found.chi - y)),
        usual=usual,
        strains=found.strains,
        contradictions=_contradictions(problem, found) if found.least > usual else (),
        prior=towards.words,
        give=found.moved,
        links=_with_sources(problem, found, bodies_of(problem, found)),
        channels=rows.channels,
        errors=rows.relative_errors(beta) if rows.channels else np.zeros(0),
        errors_unconstrained=rows.relative_errors(rows.estimate.values) if rows.channels else np.zeros(0),
        seconds=found.seconds,
        notes=rows.notes,
    )


def bodies_of(problem: PhysicalProblem, found: PhysicalSolution) -> tuple[LinkBody, ...]:
    """The bodies of a solution."""
    places = link_columns(problem.robot, problem.columns)
    result = []
    for joint, place, body in zip(problem.robot.joints, places, problem.prior.bodies, strict=True):
        margin = smallest_share(found.chi[place], body)
        result.append(link_body(link_label(joint), found.chi[place], margin, problem.floor))
    return tuple(result)


def _with_sources(problem: PhysicalProblem, found: PhysicalSolution, links: Sequence[LinkBody]) -> tuple[LinkBody, ...]:
    """Each link beside what the prior describes, and what settled its mass, center and inertia."""
    determined, moved = np.isfinite(standard_deviations(problem.rows)), problem.moved_masses(found.chi)
    parts = zip(links, link_columns(problem.robot, problem.columns), problem.prior.bodies, strict=True)
    result = []
    for (link, place, prior), described in zip(parts, problem.prior.described, strict=True):
        if not found.chi[place].any():
            result.append(link)
            continue
        mass = place[9]
        if problem.columns[mass].fixed is not None:
            source = "the robot file"
        elif mass not in problem.kept_masses:
            source = "data" if determined[mass] else "a plausible body"
        else:
            forced = "physical consistency and bounds" if problem.bounds else "physical consistency"
            source = forced if mass in moved else "CAD"
        names = tuple(problem.columns[i].name for i in place if determined[i])
        own = link_body(link.label, prior, 1.0, 0.0) if described else None
        result.append(replace(link, described=own, mass_from=source, determined=names))
    return tuple(result)


def _contradictions(problem: PhysicalProblem, found: PhysicalSolution) -> tuple[Contradiction, ...]:
    """The conditions that cause most of the distance, and what it would be without each."""
    total = max(sum(max(strain, 0.0) for strain in found.strains.values()), 1e-300)
    worst = sorted(found.strains, key=lambda name: -found.strains[name])[:_MAX_CONTRADICTIONS]
    return tuple(
        Contradiction(name, found.strains[name] / total, found.least, problem.distance_without(name))
        for name in worst
        if found.strains[name] > THRESHOLDS.min_contradiction_share * total
    )
