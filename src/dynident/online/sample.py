"""`Sample`: what a robot reports at one instant."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.arrays import Array


@dataclass(frozen=True, eq=False)
class Sample:
    """One reading of a robot's joints.

    Attributes:
        time: Stamp [s].
        q: (n_joints,) positions of the moving joints [rad or m].
        tau: (n_joints,) torque at the actuated coordinates, referred to the joint side [N·m or N].
        dq: (n_joints,) measured speeds [rad/s or m/s], or None: they are then derived from the positions.
    """

    time: float
    q: Array
    tau: Array
    dq: Array | None = None
