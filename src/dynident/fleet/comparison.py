r"""Arms of a type side by side: what they share, what one of them lacks, and which differ from the rest.

The parameters of arm i are its own, around those of its type,

.. math:: \beta_i \sim N(\mu, \Lambda), \quad \hat\beta_i \mid \beta_i \sim N(\beta_i, J_i^{-1})

with the information J_i of its data, which is zero along what that says nothing about, and Lambda diagonal. mu and
Lambda come from all arms (empirical Bayes, by expectation maximization of the restricted likelihood). The estimate of
an arm given its type, P_i (J_i beta_i + Lambda^{-1} mu) with P_i = (J_i + Lambda^{-1})^{-1}, is its own where its data
determines it, and its type's where not.

An arm is compared with the others: mu and Lambda without it, by one step of deletion. Its squared Mahalanobis distance
is taken for each group of parameters, rigid body and friction of each element. Few arms make Lambda uncertain, so the
distribution of the distances is simulated from the model, its estimation included, and the share of false discoveries
among the arms that are named is held by the procedure of Benjamini & Hochberg 1995.

References:
    Efron & Morris 1975, on empirical Bayes; Gelman et al., Bayesian Data Analysis, chapter 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.display import brief
from dynident.fleet.changes import tail_chance
from dynident.fleet.thresholds import THRESHOLDS

_ROUNDS = 200  # of expectation maximization
_SETTLED = 1e-4  # relative change of every spread that does not count
_SHORT = 30  # rounds for simulated fleets, which start at the spread they were made with
_LEAST_SPREAD = 1e-6  # of a spread, of the median std of its parameter: keeps the inverse finite
RIGID = "rigid body"


@brief
@dataclass(frozen=True, eq=False)
class ArmData:
    """What the data of an arm says of the parameters that all arms of its type share.

    Attributes:
        robot: Serial number.
        values: (n,) estimate.
        information: (n, n) J.
    """

    robot: str
    values: Array
    information: Array


@dataclass(frozen=True, eq=False)
class Outlier:
    """The distance of an arm from the others of its type in a group of parameters.

    Attributes:
        robot: Serial number.
        group: rigid body, or friction of an element.
        distance: Mahalanobis distance.
        chance: Share of arms of the type that are as far from the others.
        named: Whether it counts as an outlier at the share of false discoveries asked for.
        parameter: The parameter that differs most, in standard deviations of what arms differ by.
    """

    robot: str
    group: str
    distance: float
    chance: float
    named: bool
    parameter: str


@brief
@dataclass(frozen=True, eq=False)
class TypeModel:
    """What the arms of a type share.

    Attributes:
        names: Of the parameters.
        mean: (n,) of the type.
        mean_std: (n,) standard deviation of it.
        spread: (n,) standard deviation between arms.
        robots: Serial numbers.
        values: (n_arms, n) estimates of the arms given their type.
        std: (n_arms, n) their standard deviations.
        own_share: (n_arms, n) how much of each is the arm's own: 1 - P_ii / Lambda_ii.
    """

    names: tuple[str, ...]
    mean: Array
    mean_std: Array
    spread: Array
    robots: tuple[str, ...]
    values: Array
    std: Array
    own_share: Array


@dataclass(frozen=True, eq=False)
class _Fitted:
    """mu, Lambda and what follows for each arm."""

    mean: Array  # (n,)
    mean_covariance: Array  # (n, n)
    variance: Array  # (n,) diagonal of Lambda
    posterior: Array  # (n_arms, n)
    covariance: Array  # (n_arms, n, n), that of the mean included
    weight: Array  # (n_arms, n, n) (J^-1 + Lambda)^-1, zero along what is not determined


@on_one_thread
def compare_arms(
    arms: Sequence[ArmData], names: Sequence[str], groups: Mapping[str, Sequence[str]], share: float
) -> tuple[TypeModel, list[Outlier]]:
    """The model of a type, and the distance of each of its arms from the others.

    Args:
        arms: At least `THRESHOLDS.min_arms`.
        names: Of the parameters.
        groups: Names of the parameters of each group.
        share: Of false discoveries.
    """
    values = np.array([arm.values for arm in arms])
    J = np.array([arm.information for arm in arms])
    scale = _scale(values, J)
    # In units of what arms differ by or are uncertain of, so that all parameters weigh alike.
    values, J = values / scale, J * np.outer(scale, scale)
    fitted = _fit(values, J, np.ones(values.shape[1]), _ROUNDS)
    spread = np.sqrt(fitted.variance)
    diagonal = np.einsum("ijj->ij", fitted.covariance)
    model = TypeModel(
        names=tuple(names),
        mean=fitted.mean * scale,
        mean_std=np.sqrt(np.diag(fitted.mean_covariance)) * scale,
        spread=spread * scale,
        robots=tuple(arm.robot for arm in arms),
        values=fitted.posterior * scale,
        std=np.sqrt(diagonal) * scale,
        own_share=np.clip(1.0 - diagonal / fitted.variance, 0.0, 1.0),
    )
    places = {group: [list(names).index(name) for name in own if name in names] for group, own in groups.items()}
    places = {group: own for group, own in places.items() if own}
    outliers = _outliers(arms, values, J, fitted, places, names)
    return model, _name_outliers(outliers, share)


def _scale(values: Array, J: Array) -> Array:
    """(n,) a size of each parameter: the median std of the arms that determine it, or what arms differ by."""
    diagonal = np.einsum("ijj->ij", J)
    known = diagonal > 0.0
    conditional = np.where(known, 1.0 / np.sqrt(np.where(known, diagonal, 1.0)), np.nan)
    with np.errstate(all="ignore"):
        typical = np.array(
            [np.nanmedian(column) if known[:, k].any() else 1.0 for k, column in enumerate(conditional.T)]
        )
    return np.asarray(np.maximum(typical, 1e-300), dtype=np.float64)


def _fit(values: Array, J: Array, variance: Array, rounds: int) -> _Fitted:
    """Expectation maximization of the restricted likelihood, from a first guess of the spread (n,)."""
    for _ in range(rounds):
        fitted = _expect(values, J, variance)
        deviation = fitted.posterior - fitted.mean
        # cov(beta_i - mu): that of beta_i alone and what the two share through mu.
        moments = deviation**2 + np.einsum("ijj->ij", _deviation_covariance(J, variance, fitted.mean_covariance))
        new = np.maximum(moments.mean(0), _LEAST_SPREAD**2)
        settled = np.max(np.abs(np.sqrt(new / variance) - 1.0)) < _SETTLED
        variance = new
        if settled:
            break
    return _expect(values, J, variance)


def _expect(values: Array, J: Array, variance: Array) -> _Fitted:
    """Everything that follows from the spread."""
    inverse = np.diag(1.0 / variance)
    P = np.linalg.inv(J + inverse)
    weight = J - J @ P @ J
    total = weight.sum(0)
    # A parameter that no arm determines has no mean; the ridge keeps it at zero with a large variance.
    mean_covariance = np.linalg.pinv(total, rcond=1e-13, hermitian=True)
    data = np.einsum("ijk,ik->ij", J, values)
    mean = mean_covariance @ (data - np.einsum("ijk,ikl,il->ij", J, P, data)).sum(0)
    posterior = np.einsum("ijk,ik->ij", P, data + mean / variance)
    pull = P / variance  # d posterior / d mean, P Lambda^-1
    covariance = P + pull @ mean_covariance @ pull.transpose(0, 2, 1)
    return _Fitted(mean, mean_covariance, variance, posterior, covariance, weight)


def _deviation_covariance(J: Array, variance: Array, mean_covariance: Array) -> Array:
    """(n_arms, n, n) covariance of beta_i - mu given the data."""
    P = np.linalg.inv(J + np.diag(1.0 / variance))
    away = np.eye(len(variance)) - P / variance  # d (mu - posterior) / d mu
    return np.asarray(P + away @ mean_covariance @ away.transpose(0, 2, 1))


def _distances(values: Array, J: Array, fitted: _Fitted, places: Mapping[str, Sequence[int]]) -> tuple[Array, Array]:
    """(n_arms, n_groups) squared distances from the others, each as a deviate of an exponential; and (n_arms, n) z.

    mu and Lambda without an arm: its share in both is taken away, Lambda being a mean over arms.
    """
    from scipy.stats import chi2

    n_arms, n = values.shape
    moments = (fitted.posterior - fitted.mean) ** 2
    moments += np.einsum("ijj->ij", _deviation_covariance(J, fitted.variance, fitted.mean_covariance))
    found, z = np.zeros((n_arms, len(places))), np.zeros((n_arms, n))
    weight, data = fitted.weight.sum(0), np.einsum("jkl,jl->jk", fitted.weight, values)
    for i in range(n_arms):
        variance = np.maximum((n_arms * fitted.variance - moments[i]) / (n_arms - 1), _LEAST_SPREAD**2)
        others = np.linalg.pinv(weight - fitted.weight[i], rcond=1e-13, hermitian=True)
        delta = values[i] - others @ (data.sum(0) - data[i])
        u, size, _ = np.linalg.svd(J[i], hermitian=True)
        kept = size > 1e-12 * max(float(size[0]), 1e-300)
        own = (u[:, kept] / size[kept]) @ u[:, kept].T  # covariance along what the arm determines
        open_part = np.sqrt((u[:, ~kept] ** 2).sum(1)) if (~kept).any() else np.zeros(n)
        total = own + np.diag(variance) + others
        known = open_part < 1e-6
        z[i] = np.where(known, delta / np.sqrt(np.diag(total)), 0.0)
        for k, group in enumerate(places.values()):
            inside = [place for place in group if known[place]]
            if not inside:
                continue
            square = delta[inside] @ np.linalg.solve(total[np.ix_(inside, inside)], delta[inside])
            found[i, k] = -2.0 * chi2.logsf(square, len(inside))
    return found, z


def _outliers(
    arms: Sequence[ArmData],
    values: Array,
    J: Array,
    fitted: _Fitted,
    places: Mapping[str, Sequence[int]],
    names: Sequence[str],
) -> list[Outlier]:
    found, z = _distances(values, J, fitted, places)
    rng = np.random.default_rng(0)
    n_arms, n = values.shape
    roots = []
    for own in J:
        u, size, _ = np.linalg.svd(own, hermitian=True)
        roots.append(np.where(size > 1e-12 * max(float(size[0]), 1e-300), size, np.inf) ** -0.5 * u)
    null = []
    for _ in range(-(-THRESHOLDS.n_simulations // n_arms)):
        own = fitted.mean + np.sqrt(fitted.variance) * rng.standard_normal((n_arms, n))
        noise = np.array([root @ rng.standard_normal(n) for root in roots])
        made = own + noise
        null.append(_distances(made, J, _fit(made, J, fitted.variance, _SHORT), places)[0])
    simulated = np.concatenate(null)
    result = []
    for i, arm in enumerate(arms):
        for k, (group, own) in enumerate(places.items()):
            most = max(own, key=lambda place: abs(z[i, place]))
            chance = tail_chance(float(found[i, k]), simulated[:, k])
            result.append(Outlier(arm.robot, group, float(np.sqrt(found[i, k])), chance, False, names[most]))
    return result


def _name_outliers(outliers: Sequence[Outlier], share: float) -> list[Outlier]:
    """Those that count, by the procedure of Benjamini & Hochberg."""
    chances = np.sort([one.chance for one in outliers])
    below = np.flatnonzero(chances <= share * np.arange(1, len(chances) + 1) / max(len(chances), 1))
    border = chances[below[-1]] if len(below) else -1.0
    return [
        Outlier(one.robot, one.group, one.distance, one.chance, bool(one.chance <= border), one.parameter)
        for one in outliers
    ]
