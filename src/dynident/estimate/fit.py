"""`Fit`: parameters as evidence, with standard deviations, their data and every option that shaped them.

Logs answer two questions. *What are the parameters?* `Fit.estimate`: unbiased values with true standard deviations.
*Which torque does another motion need?* `Fit.predictive`: the model that predicts best, whose coefficients, shrunk and
averaged, mean nothing one by one. Parameters (`beta`, `std`, `table`) are those of the first, torque (`predict`,
`torque_band`, `train`, `validation`) is that of the second. With basic friction they are one and the same estimate.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import warnings
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread, record
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.errors import UnknownNameError
from dynident.estimate.covariance import TORQUE_BAND_LEVEL, banded_blocks, covariance_root, half_width
from dynident.estimate.friction_levels import FrictionLevels
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.prediction import TorqueModel, predicted_blocks
from dynident.estimate.records import (
    CrossValidation,
    Diagnosis,
    Elimination,
    EstimatorRecord,
    FitErrors,
    LogRecord,
    Provenance,
    TermSelection,
    Usefulness,
    usefulness,
)
from dynident.estimate.thresholds import THRESHOLDS
from dynident.estimate.torque_errors import TorqueErrors
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import Parameter, ParameterEstimate, SolveRecord
from dynident.logs.log import LogSource, PositionsOnly, as_logs
from dynident.robot.model import Robot
from dynident.signals.bandwidth import prediction_band
from dynident.signals.observations import Observations, SignalOptions, observe

# What a fit forwards, and the fields of its records behind it.
_OF_ESTIMATE = {"beta": "values", "covariance": "covariance", "determined": "determined", "reference": "linearization"}
_OF_SOLVE = {
    "covariance_kind": "covariance_kind",
    "white_std": "std_white_noise",
    "rank": "rank",
    "condition": "condition",
    "sigma": "residual_std",
    "inflation": "variance_inflation",
    "null_space": "null_space",
}
_OF_ERRORS = {
    "train": "train",
    "nominal": "nominal",
    "validation": "held_out",
    "cross_validation": "cross_validation",
}


@record
class Fit:
    """Identified base parameters of a robot, and the model that predicts its torque.

    Attributes:
        base: What the parameters are; names, expressions and the robot.
        estimate: Their values, covariance and how they were solved for: the answer for parameters.
        estimator: The method.
        signals: How logs were filtered; its band is None when chosen from each log.
        data: Training logs.
        held_out: Validation logs; not used for fitting.
        errors: Torque errors of the prediction, on training and validation logs, and of cross-validation.
        diagnosis: What the check of the training logs found; None where it was left out.
        selection: Which friction the prediction has and on what evidence; None where the user gave the terms.
        friction_view: Friction of the prediction and in the training data, thinned for plots; None without friction.
        eliminated: Parameters that were taken as zero because they are not essential, in the order in which they left;
            their standard deviation is the one they had then.
        provenance: Command, files, options as given and versions; None where nothing was recorded.
        notes: What was decided on the way, in words.
        warnings: What a reader should know.
        version: Version of dynident.
        predictive: The answer for torque: an estimate over base parameters of its own, often with more friction, around
            a linearization point of its own. `estimate` itself unless given.
        friction_levels: What viscous friction differs by between the training logs; None where nothing
            shows that it does.
    """

    base: BaseParameters
    estimate: ParameterEstimate
    estimator: EstimatorRecord
    signals: SignalOptions
    data: tuple[LogRecord, ...]
    held_out: tuple[LogRecord, ...]
    errors: FitErrors
    diagnosis: Diagnosis | None = None
    selection: TermSelection | None = None
    friction_view: FrictionView | None = None
    eliminated: tuple[Elimination, ...] = ()
    provenance: Provenance | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    version: str = ""
    predictive: ParameterEstimate = field(default=None)  # type: ignore[assignment]  # __post_init__ fills it in
    friction_levels: FrictionLevels | None = None

    def __post_init__(self) -> None:
        if self.predictive is None:
            object.__setattr__(self, "predictive", self.estimate)

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        """Their units."""
        return self.base.units

    @property
    def beta(self) -> Array:
        """(n,) values."""
        return self.estimate.values

    @property
    def covariance(self) -> Array:
        """(n, n), with all that is known to make estimates uncertain."""
        return self.estimate.covariance

    @property
    def std(self) -> Array:
        """(n,) standard deviations; infinite where the data says nothing."""
        return self.estimate.std

    @property
    def relative_std(self) -> Array:
        """(n,) standard deviations as a share of the values; infinite at zero."""
        return self.estimate.relative_std

    @property
    def determined(self) -> Mask:
        """(n,) whether the data determines each parameter."""
        return self.estimate.determined

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters the data cannot determine."""
        return self.estimate.undetermined

    @property
    def reference(self) -> Array | None:
        """(10 n_links,) standard parameters of the links that load-dependent terms are linear around, or None."""
        return self.estimate.linearization

    @property
    def solve(self) -> SolveRecord:
        """How the least-squares problem was solved."""
        assert self.estimate.solve is not None
        return self.estimate.solve

    @property
    def rank(self) -> int:
        """Directions the data determines."""
        return self.solve.rank

    @property
    def condition(self) -> float:
        """Condition number of the weighted data with scaled columns."""
        return self.solve.condition

    @property
    def sigma(self) -> Array:
        """(n_joints,) standard deviation of the residual of each output channel [N·m or N]."""
        return self.solve.residual_std

    @property
    def inflation(self) -> Array:
        """(n_joints,) rows that weigh as much as one independent row."""
        own = self.solve.variance_inflation
        return np.ones_like(self.sigma) if own is None else own

    @property
    def white_std(self) -> Array:
        """(n,) standard deviations by the textbook formula for white noise."""
        own = self.solve.std_white_noise
        return self.std if own is None else own

    @property
    def covariance_kind(self) -> str:
        """What the covariance allows for, in words."""
        return self.solve.covariance_kind

    @property
    def null_space(self) -> Array | None:
        """(n, k) combinations of parameters along which the data says nothing; None if there are none."""
        return self.solve.null_space

    @property
    def open_directions(self) -> Array | None:
        """The null space, by its name of before."""
        warnings.warn("Fit.open_directions is now null_space and will be gone in 0.6", DeprecationWarning, stacklevel=2)
        return self.null_space

    @property
    def band(self) -> float:
        """Widest band of the training logs [Hz]."""
        return max(one.band for one in self.data)

    @property
    def train(self) -> TorqueErrors:
        """Errors on the training logs."""
        return self.errors.train

    @property
    def nominal(self) -> TorqueErrors | None:
        """Errors of the robot's own values on them, None when it has none."""
        return self.errors.nominal

    @property
    def validation(self) -> Mapping[str, TorqueErrors]:
        """Errors on logs that were not used, by label."""
        return self.errors.held_out

    @property
    def cross_validation(self) -> CrossValidation | None:
        """Errors on parts of the training data held out in turn; None when there was too little."""
        return self.errors.cross_validation

    @property
    def command(self) -> str:
        """The command that made the fit; empty where that was not recorded."""
        return "" if self.provenance is None else self.provenance.command

    def __getitem__(self, name: str) -> float:
        """Value of a base parameter by name."""
        return self.estimate[name]

    def __repr__(self) -> str:
        """A line, not the numbers."""
        error = f"{100.0 * self.train.relative:.2f} % training error"
        return f"Fit({self.robot.name}: {len(self.names)} base parameters, rank {self.rank}, {error})"

    def replace(self, **changes: Any) -> Fit:
        """The same with other fields, or other values of what is forwarded: beta, covariance, sigma, train, ..

        Where the estimate predicts too, the new one does.
        """
        own = {name: value for name, value in changes.items() if name in Fit.__dataclass_fields__}
        forwarded = _OF_ESTIMATE | _OF_SOLVE | _OF_ERRORS
        for name in changes:
            if name not in own and name not in forwarded:
                raise UnknownNameError("field", name, (*Fit.__dataclass_fields__, *forwarded))

        def given(names: Mapping[str, str]) -> dict[str, Any]:
            return {field: changes[name] for name, field in names.items() if name in changes}

        estimate = own.pop("estimate", self.estimate).replace(**given(_OF_ESTIMATE))
        estimate = estimate.replace(solve=estimate.solve.replace(**given(_OF_SOLVE)))
        errors = dataclasses.replace(own.pop("errors", self.errors), **given(_OF_ERRORS))
        predictive = own.pop("predictive", estimate if self.one_answer else self.predictive)
        return dataclasses.replace(self, estimate=estimate, errors=errors, predictive=predictive, **own)

    def for_payload(self) -> Fit:
        """The fit with the answer for parameters that torque with a payload is to be compared with.

        That is the parameters, which are unbiased, unless their residuals refute basic friction: away from reversals
        they follow each other for longer than filters explain. What basic friction lacks would then pass for mass.
        """
        if self.one_answer or float(np.median(self.inflation)) < THRESHOLDS.refuted_inflation:
            return self
        return dataclasses.replace(self, base=self.predictive_base, estimate=self.predictive)

    def with_tool(self, tool: str) -> Fit:
        """The fit of the same robot with another tool frame (`Robot.with_tool`), which no parameter depends on."""
        robot = self.robot.with_tool(tool)
        base = dataclasses.replace(self.base, robot=robot)
        own = self.predictive.coordinates
        if self.one_answer or not isinstance(own, BaseParameters):
            return dataclasses.replace(self, base=base)
        predictive = self.predictive.replace(coordinates=dataclasses.replace(own, robot=robot))
        return dataclasses.replace(self, base=base, predictive=predictive)

    @property
    def one_answer(self) -> bool:
        """Whether parameters and prediction are the same estimate, as with basic friction."""
        return self.predictive is self.estimate

    @property
    def predictive_base(self) -> BaseParameters:
        """Base parameters of the predictive estimate."""
        own = self.base if self.one_answer else self.predictive.coordinates
        assert isinstance(own, BaseParameters)
        return own

    @functools.cached_property
    def model(self) -> TorqueModel:
        """Standard parameters that predict torque, of the predictive estimate; the dependent ones are zero in it."""
        return TorqueModel.of(self.predictive, self.predictive_base)

    @functools.cached_property
    def parameter_model(self) -> TorqueModel:
        """The same of the parameters in `estimate`; what is exported, and what links and rotors are believed from."""
        return TorqueModel.of(self.estimate, self.base)

    @functools.cached_property
    def usefulness(self) -> Usefulness:
        """Whether the model predicts most of the held-out torque, and what was tried if it does not."""
        return usefulness(self.errors, [(one.band, one.band_reason) for one in self.data])

    def rows(self) -> list[dict[str, Any]]:
        """The parameters as plain data, one mapping each; what is not known is None."""
        return self.estimate.rows()

    def table(self) -> str:
        """The parameters as text: name, value, standard deviation, relative one, unit, category, expression."""
        return self.estimate.table()

    def to_frame(self, library: str | None = None) -> Any:
        """The parameters as a data frame of pandas or polars, whichever is installed."""
        return self.estimate.to_frame(library)

    def parameter(self, name: str) -> Parameter:
        """All that is known of a base parameter: value, standard deviation, unit, expression, meaning.

        >>> print(fit.parameter("MXR2"))
        MXR2 = -8.723 ± 0.01 kg·m: first moment of link 2 along x = MX2 - a2 M3 - a2 M4 - a2 M5 - a2 M6
        """
        return self.estimate.parameter(name)

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(repr(self))}</b></p>{self.estimate._repr_html_()}"

    def observe(self, log: LogSource, band: float | None = None, *, torque: bool = True) -> Observations:
        """A log filtered as for this fit.

        Args:
            log: The log.
            band: Band [Hz]; default that of the training, or what faster motion needs. Whatever the noise of the log
                is like: the model knows nothing beyond the band of its training.
            torque: Whether torque is wanted; without it, nothing but time and positions is looked at.
        """
        (log,) = as_logs(log)
        log = log if torque else PositionsOnly(log)
        found = observe(log, self.robot, dataclasses.replace(self.signals, band=band, velocity_source="position"))
        return found.with_options(band=prediction_band(found.survey.evidence, self.band) if band is None else band)

    def missing_temperatures(self, observed: Observations) -> tuple[str, ...]:
        """A warning for a log without the temperatures that the friction of the prediction depends on."""
        term = next((own for own in self.predictive_base.terms if isinstance(own, TemperatureFriction)), None)
        if term is None or observed.has_temperatures:
            return ()
        shown = ", ".join(f"{label} {reference:.3g} °C" for label, (reference, _) in term.laws.items())
        return (
            f"{observed.log.label}: has no temperatures (temp1, ..) of all joints; friction is predicted at the mean "
            f"of the training (element {shown})",
        )

    def predict(self, log: LogSource) -> Array:
        """Joint torque at the log's own stamps, from position and time only, (n_samples, n_joints)."""
        blocks = [tau for _, tau in predicted_blocks(self.model, self.observe(log, torque=False))]
        return np.ascontiguousarray(np.concatenate(blocks))

    @property
    def levels(self) -> Array:
        """(n_joints,) what predictions of each output deviate beyond their parameters' uncertainty [N·m or N].

        From cross-validation; where nothing could be left out, the residual of the training.
        """
        crossed, sigma = None if self.cross_validation is None else self.cross_validation.levels, self.predictive.sigma
        return sigma if crossed is None else np.maximum(sigma, crossed)

    @on_one_thread
    def torque_band(self, log: LogSource, level: float = TORQUE_BAND_LEVEL) -> tuple[Array, Array]:
        """Lower and upper joint torque at the log's own stamps, (n_samples, n_joints) each, from position and time.

        Measured torque, low-passed at the band of the fit, lies between them for about this share of the time;
        `cross_validation.band_coverage` says what share it was on held-out data.
        """
        width, observations = half_width(level), self.observe(log, torque=False)
        root = covariance_root(self.predictive.covariance)
        given = banded_blocks(self.model, self.predictive_base, root, self.levels, observations)
        blocks = [(tau - width * spread, tau + width * spread) for _, tau, spread in given]
        low, high = (np.ascontiguousarray(np.concatenate(parts)) for parts in zip(*blocks, strict=True))
        return low, high

    def save(self, path: str | Path) -> None:
        """Write `fit.yaml` and `fit.npz` into a folder, or to the path of a .yaml file; see `load_fit`."""
        from dynident.estimate.storage import save

        save(self, path)


Estimate = Fit  # its name until 0.6
