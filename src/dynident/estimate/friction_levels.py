r"""Viscous friction log by log: another month, another temperature, a warm-up.

Links and rotors are the same in every log, viscous friction is not: lubricants lose two to four per cent of their
viscosity per kelvin. So the coefficient of element j in log l is a random effect,

.. math:: F_{v,lj} = F_{v,j} (1 + a_l + b_{lj}), \quad a_l \sim N(0, s_1^2),\; b_{lj} \sim N(0, s_2^2)

a change that all joints share and one of each. Both variances have a prior of what lubricants do (half normal) and are
integrated over by marginal likelihood; what is stated is relative to the mean over the logs, which is `Fv`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, on_one_thread, record
from dynident.estimate.thresholds import THRESHOLDS

_SPREADS = np.append(0.0, np.geomspace(2e-3, 1.0, 20))  # relative spreads that are integrated over


@record
class FrictionLevels:
    """Viscous friction of the training logs beside its mean over them.

    Attributes:
        logs: Labels of the logs.
        names: Coefficients of viscous friction.
        means: (n,) their means over the logs, as the friction of the basic model has them.
        values: (n_logs, n) what the coefficient of each log exceeds the mean by, in the unit of the coefficient.
        std: (n_logs, n) standard deviations of that.
        spread: (2,) relative standard deviation of a log's friction: shared by all joints, and of each joint alone.
        log_odds: Logarithm of the evidence for levels over that for none.
    """

    logs: tuple[str, ...]
    names: tuple[str, ...]
    means: Array
    values: Array
    std: Array
    spread: Array
    log_odds: float

    def of_log(self, label: str, names: Sequence[str]) -> Array:
        """What a log's coefficients exceed the mean by, among other parameters, (len(names),)."""
        found = np.zeros(len(names))
        own = self.values[self.logs.index(label)]
        for i, name in enumerate(names):
            if name in self.names:
                found[i] = own[self.names.index(name)]
        return found

    def of_new_log(self, names: Sequence[str]) -> Array:
        """Covariance of what a log that was not trained on has beside the mean, (len(names), len(names)).

        The mean over n logs is itself off by the n-th part of the variance.
        """
        places = [names.index(name) for name in self.names]
        more = 1.0 + 1.0 / len(self.logs)
        shared, own = self.spread**2
        found = np.zeros((len(names), len(names)))
        relative = shared + own * np.eye(len(places))
        found[np.ix_(places, places)] = more * relative * np.outer(self.means, self.means)
        return found

    @property
    def sentence(self) -> str:
        """What differs, in words."""
        factors = 1.0 + self.values.sum(1) / self.means.sum()
        shown = ", ".join(f"{label} {100.0 * (x - 1.0):+.1f} %" for label, x in zip(self.logs, factors, strict=True))
        spread = 100.0 * float(np.sqrt((self.spread**2).sum()))
        return (
            f"viscous friction differs between the training logs ({shown} of the mean, all joints together); links and "
            f"rotors are shared, Fv is the mean over the logs, and the torque bands of another log allow for a spread "
            f"of {spread:.2g} %"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "logs": list(self.logs),
            "names": list(self.names),
            **{key: getattr(self, key).tolist() for key in ("means", "values", "std", "spread")},
            "log_odds": self.log_odds,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> FrictionLevels:
        """What `as_dict` gave."""
        arrays = {key: np.array(data[key], dtype=np.float64) for key in ("means", "values", "std", "spread")}
        return FrictionLevels(tuple(data["logs"]), tuple(data["names"]), **arrays, log_odds=float(data["log_odds"]))


@dataclass(frozen=True, eq=False)
class LevelPosterior:
    """Relative levels that data and prior determine together.

    Attributes:
        values: (n_logs * n,) levels, log after log.
        covariance: Of them.
        spread: (2,) root mean squares of the shared and of the own spread.
        log_odds: Logarithm of the evidence for levels over that for none.
    """

    values: Array
    covariance: Array
    spread: Array
    log_odds: float


@on_one_thread
def level_posterior(rows: Array, n_logs: int) -> LevelPosterior:
    """Integrate over both spreads.

    Args:
        rows: (k, n_logs * n + 1) rows [G | z] of unit variance that all else was eliminated from, log after log.
        n_logs: Number of logs.
    """
    G, z = rows[:, :-1], rows[:, -1]
    n = G.shape[1] // n_logs
    shared, own = np.kron(np.eye(n_logs), np.ones((n, n))), np.eye(G.shape[1])
    # Half normal prior of each spread, as the mass about each point of the grid.
    mass = np.exp(-0.5 * (_SPREADS / THRESHOLDS.lubricant_spread) ** 2) * np.gradient(_SPREADS)
    mass /= mass.sum()
    evidence, means, covariances, spreads = [], [], [], []
    for i, s1 in enumerate(_SPREADS):
        for j, s2 in enumerate(_SPREADS):
            prior = s1**2 * shared + s2**2 * own
            crossed = prior @ G.T
            half = np.linalg.cholesky(np.eye(len(G)) + G @ crossed)
            white, to_levels = np.linalg.solve(half, z), np.linalg.solve(half, crossed.T)
            evidence.append(-np.log(np.diag(half)).sum() - 0.5 * white @ white + np.log(mass[i] * mass[j]))
            means.append(to_levels.T @ white)
            covariances.append(prior - to_levels.T @ to_levels)
            spreads.append((s1**2, s2**2))
    none = -0.5 * z @ z
    top = max(evidence)
    weights = np.exp(np.array(evidence) - top)
    odds = top + np.log(weights.sum()) - none
    weights /= weights.sum()
    mean = weights @ np.array(means)
    apart = np.array(means) - mean
    covariance = np.einsum("w,wij->ij", weights, np.array(covariances)) + (apart.T * weights) @ apart
    return LevelPosterior(mean, covariance, np.sqrt(weights @ np.array(spreads)), float(odds))
