"""A robot's equations: one linear model with named columns, evaluated on batches."""

from dynident.dynamics.evaluate import (
    TreeMotion,
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
    tree_motion,
)
from dynident.dynamics.terms import Column, Coulomb, Offset, Rigid, RotorInertia, Term, Viscous

__all__ = [
    "Column",
    "Coulomb",
    "Offset",
    "Rigid",
    "RotorInertia",
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
    "mass_matrix",
    "parameters",
    "regressor",
    "tree_motion",
]
