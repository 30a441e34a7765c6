"""Closed-form models and base parameters with exact coefficients (SymPy)."""

from dynident.symbolic.base import SymbolicBase, symbolic_base
from dynident.symbolic.lagrange import LagrangeModel, lagrange_model
from dynident.symbolic.model import SymbolicModel, symbolic_model

__all__ = [
    "LagrangeModel",
    "SymbolicBase",
    "SymbolicModel",
    "lagrange_model",
    "symbolic_base",
    "symbolic_model",
]
