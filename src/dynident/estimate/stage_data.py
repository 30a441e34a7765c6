"""The data of a stage: an experiment's logs as information, in rows away from reversals of dry friction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array, record
from dynident.dynamics.terms import Coulomb, TermsLike, state_terms
from dynident.errors import InputError
from dynident.estimate.covariance import residual_correlation
from dynident.estimate.delay import choose_delay
from dynident.estimate.friction_width import make_estimator, search_widths, settle_widths
from dynident.estimate.parameter_rows import choose_rows
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.logs.log import Log, LogSource
from dynident.robot.model import Robot
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observations import Observations, SignalOptions, observe
from dynident.signals.rows import DELAY, ObservedRows, RowRule, row_step


@record
class StageData:
    """The data of one stage: runs of one kind.

    Attributes:
        name: Name in reports.
        information: Their data; `Information.outputs` picks rows.
        inflation: (n_channels,) rows that weigh as much as one independent row; None for white noise.
        rows: The rows of the logs it was made of; None where it was made of information alone.
    """

    name: str
    information: Information
    inflation: Array | None = None
    rows: ObservedRows | None = None

    def __post_init__(self) -> None:
        n = len(self.information.channels)
        if self.inflation is not None and (
            self.inflation.shape != (n,) or not (np.isfinite(self.inflation) & (self.inflation >= 1.0)).all()
        ):
            raise InputError(f"experiment {self.name}: inflation must be {n} numbers of at least one, one per output")

    @property
    def white_inflation(self) -> Array:
        """(n_channels,) the inflation, one where residuals are taken as white."""
        return np.ones(len(self.information.channels)) if self.inflation is None else self.inflation


def experiment(
    name: str,
    robot: Robot,
    logs: LogSource | Sequence[LogSource],
    terms: TermsLike = None,
    *,
    outputs: Iterable[str] | None = None,
    signals: SignalOptions | None = None,
) -> StageData:
    """The data of an experiment from logs; its standard deviations allow for autocorrelated residuals.

    Rows near reversals of dry friction are left out. Where its term names no width, as `Fc(0.02)` does, the width is
    found by the data; the delay is corrected along where it is chosen from the data.

    Args:
        name: Name in reports.
        robot: The robot, with the joints locked that stood still.
        logs: Its logs.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        outputs: Joints whose rows are used; default all that move.
        signals: Band, delay, rest velocity, differentiator; None chooses band and delay from the data, as `identify`
            does.
    """
    given = [logs] if isinstance(logs, Log) or not isinstance(logs, Iterable) else list(logs)
    if not given:
        raise InputError(f"experiment {name} has no log")
    observed, base = [observe(log, robot, signals) for log in given], base_parameters(robot, terms)
    if signals is None:
        plain = base_parameters(robot, state_terms(base.terms))
        delay = choose_delay(observed, plain).delay
        observed = [one.with_options(delay=delay) for one in observed]
    return observed_experiment(name, observed, base, outputs=outputs, correct_delay=signals is None)


def observed_experiment(
    name: str,
    observed: Sequence[Observations],
    base: BaseParameters,
    *,
    outputs: Iterable[str] | None = None,
    correct_delay: bool = False,
) -> StageData:
    """The data of an experiment from logs that have been surveyed and given a band and a delay; see `experiment`.

    Args:
        name: Name in reports.
        observed: Its logs.
        base: Base parameters of the robot, with the joints locked that stood still.
        outputs: Joints whose rows are used; default all that move.
        correct_delay: Whether the logs are filtered again with what the delay lacks.
    """
    own, late = _settle_friction(observed, base)
    if correct_delay:
        observed = [one.with_options(delay=one.options.delay + late) for one in observed]
    rows, information = choose_rows(ObservedRows(tuple(observed), own), base.n)
    # Experiments may differ in their widths, yet mean the same parameters.
    meaning = BaseRegressor.of(base.robot, base.terms).definitions
    information = replace(information, coordinates=base, definitions=meaning)
    if outputs is not None:
        information = information.outputs(outputs)
    return StageData(name, information, _residual_inflation(rows, information), rows)


def _settle_friction(observed: Sequence[Observations], base: BaseParameters) -> tuple[BaseParameters, float]:
    """Base parameters with widths of dry friction found by the data, and what the delay lacks [s]."""
    passes: list[Information] = []

    def gather(own: BaseParameters, rule: RowRule) -> Information:
        passes.append(accumulate_source(ObservedRows(tuple(observed), own, rule=rule)))
        return _apart(passes[-1])[0]

    open_width = any(isinstance(term, Coulomb) and not (term.smoothing or term.widths) for term in base.terms)
    try:
        settled = settle_widths(base, search_widths(observed, base, gather) if open_width else {}, gather)
    except InputError:  # every row lies near a reversal, where neither can be determined
        return base, 0.0
    found = make_estimator().fit(passes[-1])  # the delay is estimated from all channels together
    return settled.base, float(found.values_[found.names_.index(DELAY)])


def _apart(information: Information) -> tuple[Information, Array]:
    """The same data with links of its own for each channel, and charts from these unknowns, (n_channels, n, n_new).

    Drive gains that are off, which experiments may be made to find, scale the torque of channels apart. Links that all
    channels share would leave residuals then, and widths or a delay would pass for explaining them.
    """
    coordinates, m = information.coordinates, len(information.channels)
    rigid = np.array([coordinates.columns[j].term == "rigid" for j in coordinates.independent])
    n, k = coordinates.n, int(rigid.sum())
    charts = np.zeros((m, n, n - k + m * k))
    charts[:, ~rigid, : n - k] = np.eye(n - k)
    for channel, chart in enumerate(charts):
        chart[rigid, n - k + channel * k : n - k + (channel + 1) * k] = np.eye(k)
    names = [name for name, own in zip(information.names, rigid, strict=True) if not own]
    names += [
        f"{name} at {c}"
        for c in information.channels
        for name, own in zip(information.names, rigid, strict=True)
        if own
    ]
    parts = [
        information.outputs(c).transformed(chart, names) for c, chart in zip(information.channels, charts, strict=True)
    ]
    return sum(parts[1:], start=parts[0]), charts


def _residual_inflation(rows: ObservedRows, information: Information) -> Array:
    """(n_channels,) rows that weigh as much as one independent row.

    White noise after the low-pass of the rows is the least there is; residuals of the model, of friction at reversals
    above all, are correlated for longer.
    """
    least = max(_filter_inflation(one) for one in rows.observations)
    apart, charts = _apart(information)
    values = np.zeros((len(rows.channels), information.coordinates.n))
    own = [rows.channels.index(name) for name in information.channels]
    values[own] = charts @ make_estimator().fit(apart).values_
    return np.maximum(least, residual_correlation(rows, values).inflation[own])


def _filter_inflation(one: Observations) -> float:
    """Rows that weigh as much as one independent row after white noise has passed the low-pass of the rows."""
    rate = one.survey.grid.rate / one.step
    return max(1.0, 1.0 / (row_step(one) * low_pass_kernel(one.band, rate).noise_gain ** 2))


def shared_inflation(stages: Sequence[StageData], channels: Sequence[str]) -> Array | None:
    """(n_channels,) the inflation of each channel over all data, weighted by rows; None where none is known."""
    if all(one.inflation is None for one in stages):
        return None
    weighted, rows = np.zeros(len(channels)), np.zeros(len(channels))
    for one in stages:
        own = one.information
        for name, factor, inflation in zip(own.channels, own.channel_factors(), one.white_inflation, strict=True):
            place = channels.index(name)
            weighted[place] += factor.n_rows * inflation
            rows[place] += factor.n_rows
    return np.where(rows > 0.0, weighted / np.maximum(rows, 1.0), 1.0)
