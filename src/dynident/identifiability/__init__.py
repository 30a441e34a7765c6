"""What can be identified: base parameters from the structure, excitation from a motion."""

from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import BaseRegressor, RegressorBlock, RowSource
from dynident.identifiability.consistency import base_violations
from dynident.identifiability.excitation import Excitation, WeakDirection, excitation
from dynident.identifiability.regrouping import Regrouping
from dynident.identifiability.symbolic_base import SymbolicBase, symbolic_base
from dynident.robot.physicality import physical_violations

__all__ = [
    "BaseParameters",
    "BaseRegressor",
    "Excitation",
    "RegressorBlock",
    "Regrouping",
    "RowSource",
    "SymbolicBase",
    "WeakDirection",
    "base_parameters",
    "base_violations",
    "excitation",
    "physical_violations",
    "symbolic_base",
]
