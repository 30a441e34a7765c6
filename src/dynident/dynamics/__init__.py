"""A robot's equations: one linear model with named columns, evaluated on batches."""

from dynident.dynamics.evaluate import (
    actuated_torque,
    columns,
    coriolis_torque,
    energy,
    energy_regressor,
    forward_dynamics,
    gravity_torque,
    inverse_dynamics,
    joint_torque,
    mass_matrix,
    parameters,
    regressor,
)
from dynident.dynamics.symbolic import SymbolicModel, symbolic_model
from dynident.dynamics.symbolic_lagrange import LagrangeModel, lagrange_model
from dynident.dynamics.terms import Column, Coulomb, Offset, Rigid, RotorInertia, Term, Viscous
from dynident.dynamics.tree_motion import TreeMotion, tree_motion

__all__ = [
    "Column",
    "Coulomb",
    "LagrangeModel",
    "Offset",
    "Rigid",
    "RotorInertia",
    "SymbolicModel",
    "Term",
    "TreeMotion",
    "Viscous",
    "actuated_torque",
    "columns",
    "coriolis_torque",
    "energy",
    "energy_regressor",
    "forward_dynamics",
    "gravity_torque",
    "inverse_dynamics",
    "joint_torque",
    "lagrange_model",
    "mass_matrix",
    "parameters",
    "regressor",
    "symbolic_model",
    "tree_motion",
]
