"""Temperature of the joints as a covariate of friction: which joints it may act on, and where the data shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.friction import elements_with_friction
from dynident.dynamics.terms.temperature import TemperatureFriction, joint_of
from dynident.identifiability.base import base_parameters
from dynident.pipeline.fitting import FittedModel, fit_model
from dynident.pipeline.model_selection import ModelSelection
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.preprocessing import TrainingData
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.observations import Observations


def temperature_term(data: TrainingData) -> TemperatureFriction | None:
    """The term of all elements whose temperature varies enough, around its mean; None where none does."""
    known = [one for one in data.train if one.has_temperatures]
    if not known:
        return None
    ranges, means = _ranges_and_means(known)
    own = {
        element.label: (float(round(means[joint], 1)), 0.0)
        for element in elements_with_friction(data.robot)
        if ranges[joint := joint_of(data.robot, element)] >= THRESHOLDS.min_temperature_range
    }
    return TemperatureFriction.about(own) if own else None


def with_temperature(
    selection: ModelSelection, options: IdentifyOptions, term: TemperatureFriction
) -> tuple[TemperatureFriction, ModelSelection, FittedModel] | None:
    """The model with temperature on the elements where it shows beyond chance; None where it shows on none.

    A test of Wald of both coefficients of each element, with the covariance that allows for correlated residuals. The
    model that is linear in temperature gives the thinning of the one that is exponential.

    Returns:
        The term of all elements with the thinning found, the selection, and the model.
    """
    linear = fit_model(_with_term(selection, term), options)
    shown = [label for label in term.laws if _shows(linear, term.restricted_to([label]), len(term.laws))]
    if not shown:
        return None
    thinnings = {label: _thinning(linear, label) if label in shown else 0.0 for label in term.laws}
    bent = TemperatureFriction.about({label: (law[0], thinnings[label]) for label, law in term.laws.items()})
    chosen = _with_term(selection, bent.restricted_to(shown))
    return bent, chosen, fit_model(chosen, options)


def temperature_notes(model: FittedModel, train: Sequence[Observations]) -> list[str]:
    """What temperature does, in words, and which logs lack it."""
    term = next((own for own in model.base.terms if isinstance(own, TemperatureFriction)), None)
    if term is None:
        return []
    values = dict(zip(model.base.names, model.estimate.values.tolist(), strict=True))
    shown = []
    for element, reference, _ in term.elements(model.base.robot):
        viscous, change = values.get(element.names.get("Fv", ""), 0.0), values[f"FvT_{element.label}"]
        if viscous > 0.0:
            shown.append(f"{element.label} {100.0 * change / viscous:+.2g} %/K about {reference:.3g} °C")
    notes = (
        [f"viscous friction changes with the temperature of the joints: element {', '.join(shown)}"] if shown else []
    )
    lacking = [one.log.label for one in train if not one.has_temperatures]
    if lacking:
        notes.append(
            f"{', '.join(lacking)}: no temperatures (temp1, ..); friction is taken at the reference temperature"
        )
    return notes


def _with_term(selection: ModelSelection, term: TemperatureFriction) -> ModelSelection:
    return replace(selection, base=base_parameters(selection.data.robot, (*selection.base.terms, term)))


def _thinning(model: FittedModel, label: str) -> float:
    """What viscous friction of an element loses per kelvin at its reference, as a share of it [1/K]."""
    values = dict(zip(model.base.names, model.estimate.values.tolist(), strict=True))
    element = next(own for own in elements_with_friction(model.base.robot) if own.label == label)
    viscous = values.get(element.names.get("Fv", ""), 0.0)
    lost = -values[f"FvT_{label}"] / viscous if viscous > 0.0 else 0.0
    return float(np.clip(round(lost, 4), 0.0, THRESHOLDS.max_thinning))


def _shows(model: FittedModel, term: TemperatureFriction, n_tests: int) -> bool:
    """Whether both coefficients of an element together are zero by a chance that is too small."""
    places = [model.base.names.index(column.name) for column in term.columns(model.base.robot)]
    if not model.estimate.determined[places].all():
        return False
    values, covariance = model.estimate.values[places], model.estimate.covariance[np.ix_(places, places)]
    square = float(values @ np.linalg.solve(covariance, values))
    least = -2.0 * np.log(THRESHOLDS.false_change_chance / n_tests)  # chi-square of two degrees of freedom
    return bool(square > least)


def _ranges_and_means(observations: Sequence[Observations]) -> tuple[Array, Array]:
    """Of the temperature of each moving joint over logs, (n_joints,) each [K, °C]."""
    lowest, highest, total, count = np.inf, -np.inf, 0.0, 0
    for one in observations:
        for block in one.log.blocks():
            values = block.array("temp", one.robot)
            lowest, highest = np.minimum(lowest, values.min(0)), np.maximum(highest, values.max(0))
            total, count = total + values.sum(0), count + len(values)
    return np.asarray(highest - lowest), np.asarray(total / count)
