"""A known payload as a test of an identification: what it must change, against what a second identification finds.

Base parameters are linear in standard ones, so a payload at the tool changes them by K times its own standard
parameters (Gautier, Khalil, Restrepo 1995, section 4.4). Unloaded values plus that change must be the loaded values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynident.arrays import Array, finite_or_none
from dynident.display import brief
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.regrouping import Regrouping
from dynident.information.parameter_estimate import ParameterEstimate, text_table
from dynident.payload.body import Payload
from dynident.payload.identification import PayloadEstimate
from dynident.payload.thresholds import THRESHOLDS
from dynident.robot.model import Robot

Agreement = Literal["agrees", "doubtful", "differs", "not determined"]


def payload_change(base: BaseParameters, payload: Payload) -> Array:
    """How a payload changes the base parameters, K times its standard parameters, (n,)."""
    if not isinstance(base, BaseParameters):
        hint = "pass base_parameters(robot)" if isinstance(base, Robot) else "expected those of base_parameters(robot)"
        raise InputError(f"a {type(base).__name__} is no set of base parameters; {hint}")
    added = payload.at(base.robot)
    return np.asarray(base.K @ [added.get(column.name, 0.0) for column in base.columns])


@dataclass(frozen=True)
class PayloadRow:
    """One base parameter without and with the payload.

    Attributes:
        name: Base parameter.
        unit: Its unit.
        unloaded: Identified without the payload.
        unloaded_std: Its standard deviation.
        change: What the payload adds.
        loaded: Identified with the payload.
        loaded_std: Its standard deviation.
    """

    name: str
    unit: str
    unloaded: float
    unloaded_std: float
    change: float
    loaded: float
    loaded_std: float

    @property
    def predicted(self) -> float:
        """What must be found with the payload; as uncertain as the value without."""
        return self.unloaded + self.change

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is not determined is None."""
        numbers = ("unloaded", "unloaded_std", "change", "predicted", "loaded", "loaded_std", "deviations")
        known = {name: finite_or_none(getattr(self, name)) for name in numbers}
        return {"name": self.name, "unit": self.unit, **known, "agreement": self.agreement}

    @property
    def deviations(self) -> float:
        """Difference between found and predicted, in its standard deviations; NaN where one is not determined."""
        spread = float(np.hypot(self.unloaded_std, self.loaded_std))
        if not np.isfinite(spread):
            return float("nan")
        gap = abs(self.loaded - self.predicted)
        return gap / spread if spread > 0.0 else (0.0 if gap == 0.0 else float("inf"))

    @property
    def agreement(self) -> Agreement:
        """What the difference means: agrees up to two standard deviations, differs above three."""
        size = self.deviations
        if np.isnan(size):
            return "not determined"
        if size <= THRESHOLDS.agrees_std:
            return "agrees"
        return "doubtful" if size <= THRESHOLDS.differs_std else "differs"


@brief
@dataclass(frozen=True)
class PayloadComparison:
    """Unloaded and loaded identifications side by side.

    Attributes:
        rows: One per base parameter.
    """

    rows: tuple[PayloadRow, ...]

    def __getitem__(self, name: str) -> PayloadRow:
        """The row of a base parameter."""
        for row in self.rows:
            if row.name == name:
                return row
        raise UnknownNameError("base parameter", name, [row.name for row in self.rows])

    @property
    def changed(self) -> tuple[PayloadRow, ...]:
        """The parameters that the payload changes."""
        return tuple(row for row in self.rows if row.change != 0.0)

    @property
    def agreeing(self) -> float:
        """Share of the parameters within two standard deviations; NaN without any that is determined.

        It is 95 % if the payload is what it is said to be and standard deviations are right.
        """
        sizes = np.array([row.deviations for row in self.rows])
        sizes = sizes[np.isfinite(sizes)]
        return float(np.mean(sizes <= THRESHOLDS.agrees_std)) if len(sizes) else float("nan")

    def table(self, *, every: bool = False) -> str:
        """The comparison as text.

        Args:
            every: Also parameters that are zero without and with the payload.
        """
        head = ("parameter", "unloaded", "std", "predicted", "loaded", "std", "diff/std", "")
        shown = [row for row in self.rows if every or row.change or row.unloaded or row.loaded]
        return text_table(head, [_cells(row) for row in shown], ())


def compare_numbers(found: PayloadEstimate, known: Sequence[float]) -> tuple[PayloadRow, ...]:
    """The identified numbers of a payload against known ones, row by row; withheld numbers are left out.

    Args:
        found: The payload, as identified.
        known: Mass, perhaps the center, perhaps XX XY XZ YY YZ ZZ about it, in the same tool frame.
    """
    order = ("mass", "cx", "cy", "cz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    rows = []
    for name, value in zip(order, known, strict=False):
        own = found[name]
        if own.value is not None and own.std is not None:
            rows.append(PayloadRow(name, own.unit, 0.0, 0.0, float(value), own.value, own.std))
    return tuple(rows)


def _cells(row: PayloadRow) -> tuple[str, ...]:
    values = (row.unloaded, row.unloaded_std, row.predicted, row.loaded, row.loaded_std, row.deviations)
    styles = (".4g", ".2g", ".4g", ".4g", ".2g", ".2g")
    return (row.name, *(f"{x:{style}}" for x, style in zip(values, styles, strict=True)), row.agreement)


def compare_payload(
    unloaded: Fit | Estimator | ParameterEstimate,
    loaded: Fit | Estimator | ParameterEstimate,
    payload: Payload,
    *,
    base: BaseParameters | None = None,
) -> PayloadComparison:
    """An identification without and one with a known payload, parameter by parameter.

    A parameter that was eliminated as not essential is zero with the standard deviation it had when it left.

    Args:
        unloaded: Fit without the payload.
        loaded: Fit with it.
        payload: The payload.
        base: The base parameters with their robot; needed only where neither fit knows its robot.
    """
    first, second = _parameters(unloaded), _parameters(loaded)
    _check_same_robot(base, first.coordinates, second.coordinates)
    owner = _owner(base, first.coordinates, second.coordinates)
    change = dict(zip(owner.names, payload_change(owner, payload), strict=True))
    units = dict(zip(owner.names, owner.units, strict=True))
    found = [
        dict(zip(one.names, zip(one.values.tolist(), one.std.tolist(), strict=True), strict=True))
        for one in (first, second)
    ]
    shared = [name for name in owner.names if name in found[0] and name in found[1]]
    if not shared:
        raise InputError("the two fits have no base parameter in common; identify both with the same robot and terms")
    return PayloadComparison(
        tuple(
            PayloadRow(name, units[name], *found[0][name], 0.0 + float(change[name]), *found[1][name])
            for name in shared
        )
    )


def _parameters(fit: Fit | Estimator | ParameterEstimate) -> ParameterEstimate:
    """The estimate in a fit, whichever kind it is."""
    if isinstance(fit, ParameterEstimate):
        return fit
    if isinstance(fit, Fit):
        return fit.estimate
    if isinstance(fit, Estimator):
        return fit.estimate_
    raise InputError(f"a {type(fit).__name__} has no base parameters; expected a Fit or a fitted estimator")


def _check_same_robot(*candidates: BaseParameters | Regrouping | None) -> None:
    """Refuse fits of robots that differ in more than locked joints."""
    robots = [one.robot for one in candidates if isinstance(one, BaseParameters)]
    prints = [replace(robot, locked={}).fingerprint for robot in robots]
    for robot, own in zip(robots, prints, strict=True):
        if own != prints[0]:
            raise InputError(
                f"the fits are of different robots, {robots[0].name} and {robot.name}; their geometry, gravity or "
                "elements differ: identify both with the same robot"
            )


def _owner(*candidates: BaseParameters | Regrouping | None) -> BaseParameters:
    for one in candidates:
        if isinstance(one, BaseParameters):
            return one
    raise InputError("neither fit knows its robot; give base=base_parameters(robot, terms)")
