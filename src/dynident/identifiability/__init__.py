"""What can be identified: base parameters from the structure, excitation from a motion."""

from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import BaseRegressor, RegressorBlock, RowSource
from dynident.identifiability.excitation_quality import Excitation, WeakDirection, excitation
from dynident.identifiability.inspection import base_violations
from dynident.identifiability.regrouping import Regrouping

__all__ = [
    "BaseParameters",
    "BaseRegressor",
    "Excitation",
    "RegressorBlock",
    "Regrouping",
    "RowSource",
    "WeakDirection",
    "base_parameters",
    "base_violations",
    "excitation",
]
