"""The reduce: factors of a robot's logs to its parameters, with what held-out logs say of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.estimate.covariance import ResidualCorrelation, common_inflation, correlated_covariance
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.fleet.store import FleetStore, Row
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.information.solution import dense_channels, residual_square
from dynident.information.storage import load_information
from dynident.pipeline.fitting import estimator_of
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.parameters import nuisance_covariance, settle_nuisance

_FAN_IN = 32  # factors merged at a time
_CLUSTERS = 4  # logs, fewer of which say nothing of how much logs differ


@dataclass(frozen=True, eq=False)
class RobotSolution:
    """The parameters of a robot in a period.

    Attributes:
        estimate: Parameters with a covariance that allows for what correlates within logs and differs between them.
        information: Factors of all its training logs over the base parameters, as one segment.
        inflation: (n_channels,) rows that weigh as much as one independent row.
        nuisance: Values of the parameters beside the base parameters, such as what the delay lacks.
        errors: Relative torque error of each log by its key, held-out ones too.
        training: Keys of the logs that the parameters come from.
        held_out: Keys of the validation logs.
    """

    estimate: ParameterEstimate
    information: Information
    inflation: Array
    nuisance: Mapping[str, float]
    errors: Mapping[str, float]
    training: tuple[str, ...]
    held_out: tuple[str, ...]

    def held_out_error(self) -> float | None:
        """Root of the mean squared relative error of the validation logs; None without any."""
        own = [self.errors[key] for key in self.held_out]
        return float(np.sqrt(np.mean(np.square(own)))) if own else None


def merge_tree(parts: Iterable[Information]) -> Information:
    """All factors together as one segment; the same to the last bit for the same order, whoever made them."""
    level = list(parts)
    while len(level) > 1 or len(level[0].segments) > 1:
        level = [_together(level[first : first + _FAN_IN]) for first in range(0, len(level), _FAN_IN)]
    return level[0]


def _together(parts: Sequence[Information]) -> Information:
    """Factors over the same columns as one segment."""
    first = parts[0]
    merged = first
    for other in parts[1:]:
        if other.definitions != first.definitions or other.channels != first.channels:
            return sum(parts[1:], start=first).joined()  # refused where columns mean different things
        merged = replace(merged, segments=(*merged.segments, *other.segments))
    joined = merged.joined()
    return replace(joined, segments=tuple(replace(own, label="") for own in joined.segments))


def choose_training(rows: Sequence[Row], pilot: Iterable[str], share: float) -> tuple[list[Row], list[Row]]:
    """Training and validation logs; those with a payload are neither.

    Which logs are held out follows from their content, so that it does not depend on their number or order.

    Args:
        rows: Of finished logs of a period.
        pilot: Where the logs of the pilot lie, which are training logs in any case.
        share: To be held out.
    """
    fixed = set(pilot)
    bare = [row for row in rows if not row["payload"]]
    held = [row for row in bare if row["uri"] not in fixed and _draw(row["digest"]) < share]
    chosen = {row["key"] for row in held}
    return [row for row in bare if row["key"] not in chosen], held


def _draw(digest: str) -> float:
    """A number in [0, 1) that a content has."""
    return int(hashlib.sha256(f"validation {digest}".encode()).hexdigest()[:8], 16) / 2**32


def load_factors(store: FleetStore, rows: Iterable[Row]) -> Iterator[Information]:
    """Factors of finished logs, one after the other."""
    return (load_information(store.folder / row["factor"]) for row in rows)


@on_one_thread
def solve_robot(
    store: FleetStore, fit: Fit, training: Sequence[Row], held_out: Sequence[Row], options: IdentifyOptions
) -> RobotSolution:
    """The parameters of a robot from the factors of its logs.

    Args:
        store: Where these are.
        fit: Of the pilot.
        training: Rows of the training logs, sorted by date.
        held_out: Rows of the validation logs.
        options: Of the identification, for its estimator.
    """
    extended = merge_tree(load_factors(store, training))
    plain, nuisance = settle_nuisance(extended, fit.base)
    fitted = estimator_of(options.estimator).fit(plain)
    inflation = np.maximum(_within_logs(plain.channels, training), _between_logs(store, training, fitted, nuisance))
    covariance = correlated_covariance(fitted, inflation) + nuisance_covariance(extended, fit.base.n, fitted, inflation)
    solved = fitted.estimate_.solve
    assert solved is not None
    estimate = ParameterEstimate.of(
        fit.base,
        fitted.values_,
        covariance,
        fitted.determined_,
        linearization=fit.reference,
        solve=solved.replace(
            covariance_kind="allow for correlation within logs and for what differs between them",
            variance_inflation=inflation,
            std_white_noise=fitted.std_,
        ),
    )
    every = [*training, *held_out]
    errors = {
        row["key"]: _relative_error(own.settled(nuisance), fitted.values_)
        for row, own in zip(every, load_factors(store, every), strict=True)
    }
    return RobotSolution(
        estimate,
        plain,
        inflation,
        nuisance,
        errors,
        tuple(row["key"] for row in training),
        tuple(row["key"] for row in held_out),
    )


def _within_logs(channels: tuple[str, ...], rows: Sequence[Row]) -> Array:
    """(n_channels,) how much neighboring residuals within logs are alike."""
    parts = [
        ResidualCorrelation(channels, np.zeros((0, 0)), np.array(row["inflation"]), np.array(row["rows"]))
        for row in rows
    ]
    return common_inflation(parts)


def _between_logs(store: FleetStore, rows: Sequence[Row], fitted: Estimator, nuisance: Mapping[str, float]) -> Array:
    r"""(n_channels,) by how much the scores of logs vary more than white residuals would make them.

    With the score of a log, s_l = W_l' r_l, and the information I = sum_l W_l' W_l of a channel,

    .. math:: f = \frac{G}{G - 1} \frac{\operatorname{tr}(I^{+} \sum_l s_l s_l')}{\sigma^2 \operatorname{rank} I}

    is one for white residuals. What differs between logs (temperature, wear, a log that is stamped late) adds up within
    each of them and makes it larger: the covariance of Liang & Zeger 1986 as one number for each channel.
    """
    n_channels = len(fitted.channels_)
    if len(rows) < _CLUSTERS:
        return np.ones(n_channels)
    inverses, ranks = [], []
    for factor in fitted.information_.channel_factors():
        W = factor.R[:, :-1]
        size = np.linalg.norm(W, axis=0)
        scale = np.where(size > 0.0, size, 1.0)
        u, singular, _ = np.linalg.svd((W / scale).T @ (W / scale))
        kept = singular > 1e-10 * max(float(singular.max(initial=0.0)), 1e-300)
        inverses.append((u[:, kept] / np.sqrt(singular[kept])).T / scale)
        ranks.append(int(kept.sum()))
    totals = np.zeros(n_channels)
    values = dict(zip(fitted.names_, fitted.values_.tolist(), strict=True))
    for own in load_factors(store, rows):
        settled = own.settled(nuisance)
        beta = np.array([values[name] for name in settled.names])
        for channel, (factor, whole) in enumerate(
            zip(settled.channel_factors(), fitted.information_.channel_factors(), strict=True)
        ):
            if not factor.n_rows:
                continue
            W, y = factor.R[:, :-1], factor.R[:, -1]
            score = np.zeros(len(whole.columns))
            places = {column: place for place, column in enumerate(whole.columns)}
            score[[places[column] for column in factor.columns]] = W.T @ (y - W @ beta[list(factor.columns)])
            totals[channel] += float(np.sum((inverses[channel] @ score) ** 2))
    spread = totals / (np.maximum(fitted.sigma_, 1e-300) ** 2 * np.maximum(ranks, 1))
    return np.asarray(np.maximum(spread * len(rows) / (len(rows) - 1), 1.0))


def _relative_error(information: Information, values: Array) -> float:
    """Root of the squared residual over that of the torque, each channel by its own rows, over all channels."""
    channels, _ = dense_channels(information)
    squares = sum(residual_square(rows, values) for rows in channels)
    torque = sum(float(np.sum(rows[:, -1] ** 2)) for rows in channels)
    return float(np.sqrt(squares / torque)) if torque > 0.0 else float("nan")


def information_matrix(information: Information, sigma: Array, inflation: Array) -> Array:
    """J = sum_j W_j' W_j / (sigma_j^2 f_j), (n, n): what data says, zero along what it says nothing about."""
    channels, _ = dense_channels(information)
    J = np.zeros((information.coordinates.n,) * 2)
    for rows, s, f in zip(channels, sigma, inflation, strict=True):
        J += rows[:, :-1].T @ rows[:, :-1] / (s**2 * f)
    return J
