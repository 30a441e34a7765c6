"""`BaseValues`: base parameters with values and deviations, whatever procedure found them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, frozen, frozen_mask, place_of
from dynident.errors import InputError
from dynident.estimate.estimate import Estimate
from dynident.estimate.estimator import Estimator
from dynident.estimate.prediction import TorqueModel
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.regrouping import Regrouping


@dataclass(frozen=True, eq=False)
class BaseValues:
    """Values of base parameters and how far they may be off.

    Attributes:
        coordinates: What the parameters are.
        values: (n,).
        covariance: (n, n).
        determined: (n,) whether the data determines each.
    """

    coordinates: Regrouping
    values: Array
    covariance: Array
    determined: Mask

    def __post_init__(self) -> None:
        for name in ("values", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        object.__setattr__(self, "determined", frozen_mask(np.asarray(self.determined, dtype=bool)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.coordinates.names

    @property
    def units(self) -> tuple[str, ...]:
        """Their units."""
        return self.coordinates.units

    @property
    def std(self) -> Array:
        """(n,) standard deviations; infinite where the data says nothing."""
        return np.where(self.determined, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters the data cannot determine."""
        return tuple(name for name, known in zip(self.names, self.determined, strict=True) if not known)

    def __getitem__(self, name: str) -> float:
        """Value of a base parameter by name."""
        return float(self.values[place_of(name, self.names, "base parameter")])

    def model(self, base: BaseParameters | None = None) -> TorqueModel:
        """What predicts torque with these values; parameters of `base` that are not among them are zero.

        Args:
            base: The base parameters with their robot; needed only where the data has lost them (a file of factors).
        """
        owner = self.coordinates if base is None else base
        if not isinstance(owner, BaseParameters):
            raise InputError(
                "the data does not know its robot; give the base parameters: model(base_parameters(robot))"
            )
        found = dict(zip(self.names, self.values.tolist(), strict=True))
        return TorqueModel(owner.robot, owner.terms, frozen(owner.standard_values(found, "regrouped zero")))


def base_values(fit: Estimate | Estimator | BaseValues) -> BaseValues:
    """The values of a fit, whichever kind it is."""
    if isinstance(fit, BaseValues):
        return fit
    if isinstance(fit, Estimate):
        return BaseValues(fit.base, fit.beta, fit.covariance, fit.determined)
    if isinstance(fit, Estimator):
        return BaseValues(fit.information_.coordinates, fit.values_, fit.covariance_, np.isfinite(fit.std_))
    raise InputError(f"a {type(fit).__name__} has no base parameters; expected an Estimate or a fitted estimator")
