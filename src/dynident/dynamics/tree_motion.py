"""Where every joint of the tree is: passive joints from active ones, whether they follow affinely or close a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, frozen
from dynident.dynamics.assembly import assembly, solved_positions
from dynident.dynamics.kernels import kernel
from dynident.robot.model import Robot


@dataclass(frozen=True)
class TreeMotion:
    """Motion of all tree joints, in the order of `robot.joints`.

    Attributes:
        q, dq, ddq: Positions, speeds, accelerations, (n_samples, n_tree). Where a loop turns a passive joint round and
            round, its position goes on from sample to sample.
        G: (n_samples, n_tree, n_joints), dq = G dq_moving.
        drift: (n_samples, n_tree), dG/dt dq_moving: what is left of ddq without acceleration of the moving joints.
    """

    q: Array
    dq: Array
    ddq: Array
    G: Array
    drift: Array

    def __post_init__(self) -> None:
        for name in ("q", "dq", "ddq", "G", "drift"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


def tree_motion(robot: Robot, q: ArrayLike, dq: ArrayLike | None = None, ddq: ArrayLike | None = None) -> TreeMotion:
    """The motion of every joint of the tree from that of the moving ones.

    Args:
        robot: The robot.
        q: Positions of the moving joints, (n_samples, n_joints) [rad or m].
        dq: Their speeds; zero when not given.
        ddq: Their accelerations; zero when not given.

    Raises:
        InputError: Naming the sample at which a loop cannot be closed.
        SingularError: Naming the sample at which a loop does not determine its passive joints.
    """
    names = robot.joint_names
    positions = as_samples(q, "q", names)
    n, still = len(positions), np.zeros_like(positions)
    speeds = still if dq is None else as_samples(dq, "dq", names, n)
    accelerations = still if ddq is None else as_samples(ddq, "ddq", names, n)
    solved = solved_positions(robot, positions)
    if robot.closure is not None:
        solved = [np.unwrap(s) if on else s for s, on in zip(solved, assembly(robot).solved_turns, strict=True)]
    shape = (len(robot.joints), 4 + len(names))
    out = np.zeros((shape[0] * shape[1], n))
    run, places = kernel(robot, "tree motion", (), n)
    inputs = [*positions.T, *speeds.T, *accelerations.T, *solved]
    run(inputs, out, [int(np.ravel_multi_index(place, shape)) for place in places])
    parts = np.moveaxis(out.reshape(*shape, n), -1, 0)
    return TreeMotion(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], parts[:, :, 4:], parts[:, :, 3])
