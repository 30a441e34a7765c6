"""A robot's equations: one linear model with named columns, evaluated on batches."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.dynamics.evaluate import (
        TreeMotion as TreeMotion,
        actuated_torque as actuated_torque,
        columns as columns,
        coriolis_torque as coriolis_torque,
        energy as energy,
        energy_regressor as energy_regressor,
        forward_dynamics as forward_dynamics,
        gravity_torque as gravity_torque,
        inverse_dynamics as inverse_dynamics,
        joint_torque as joint_torque,
        mass_matrix as mass_matrix,
        parameters as parameters,
        regressor as regressor,
        tree_motion as tree_motion,
    )
    from dynident.dynamics.kinematics import Kinematics as Kinematics, forward_kinematics as forward_kinematics
    from dynident.dynamics.terms import (
        Column as Column,
        Coulomb as Coulomb,
        Offset as Offset,
        Rigid as Rigid,
        RotorInertia as RotorInertia,
        Term as Term,
        Viscous as Viscous,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
