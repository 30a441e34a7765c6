r"""How errors of weight and of inertia show in the torque of a position controller, eq. (26) to (30) for any robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array, record
from dynident.errors import InputError
from dynident.experiments.bench import Bounds
from dynident.experiments.oscillation.model import SwingModel, equations_about, swing_model
from dynident.information.parameter_estimate import text_table
from dynident.robot.model import Robot

_POSES = 200
SHRINK = (1.0, 0.1, 0.01)  # times the position error: the controller gets it smaller and smaller


@record
class Sensitivity:
    """Relative torque errors that a relative error of one parameter causes.

    Attributes:
        robot: Name of the robot.
        names: The parameters.
        kinds: "weight" or "inertia", for each.
        change: Relative error of a parameter.
        errors: (n_errors,) position errors [rad or m].
        shares: (n_parameters, n_errors) norm of the torque error over that of the torque, eq. (28) or (30).
        kp: Proportional gain [1/s²].
        pose: (n_moving,) where [rad or m].
    """

    robot: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    change: float
    errors: Array
    shares: Array
    kp: float
    pose: Array

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        rows = zip(self.names, self.kinds, self.shares.tolist(), strict=True)
        return {
            "robot": self.robot,
            "kp": self.kp,
            "pose": self.pose.tolist(),
            "change": self.change,
            "position_errors": self.errors.tolist(),
            "parameters": [{"name": name, "kind": kind, "torque_error": row} for name, kind, row in rows],
        }

    def table(self) -> str:
        """As text."""
        heads = [f"e = {error:.3g}" for error in self.errors]
        rows = zip(self.names, self.kinds, self.shares, strict=True)
        lines = [(name, kind, *(f"{100.0 * x:.3g} %" for x in row)) for name, kind, row in rows]
        return text_table(("parameter", "kind", *heads), lines, heads)


def sensitivity(
    robot: Robot,
    values: str | Mapping[str, float] | None = None,
    *,
    kp: float = 100.0,
    error: float = np.radians(1.0),
    change: float = 0.01,
    pose: Array | None = None,
) -> Sensitivity:
    r"""Torque errors of a proportional controller whose model is a little wrong.

    .. math:: \tau = -\tilde A k_p e + \tilde g, \quad
        \frac{\delta\tau_g}{\tau} = \frac{\delta\tilde g}{\tau}, \quad
        \frac{\delta\tau_I}{\tau} = \frac{-\delta\tilde A\,k_p e}{\tau}, \quad e = q - q_d

    An error of the inertia vanishes with e, one of the weight does not.

    Args:
        robot: The robot.
        values: Its parameters; default its own.
        kp: Proportional gain [1/s²].
        error: Position error of every joint [rad or m]; a tenth and a hundredth of it are looked at as well.
        change: Relative error of each parameter.
        pose: (n_moving,) where; default the pose, of many, at which the weight has most effect.
    """
    for name, number in (("kp", kp), ("error", error), ("change", change)):
        if not (np.isfinite(number) and number > 0.0):
            raise InputError(f"{name} is {number}; expected a positive number")
    model = swing_model(robot, values)
    about = equations_about(model, _heaviest(model) if pose is None else pose)
    errors = error * np.array(SHRINK)
    held, pushed = about.weight @ model.chi, kp * (about.mass @ model.chi).sum(axis=1)
    torque = [float(np.linalg.norm(held - e * pushed)) for e in errors]
    names, kinds, shares = [], [], []
    for kind, groups in (("weight", model.gravity), ("inertia", model.inertia)):
        for group in groups:
            if not group.nominal:
                continue
            moved = change * group.nominal * group.direction
            wrong = [
                about.weight @ moved if kind == "weight" else -e * kp * (about.mass @ moved).sum(axis=1) for e in errors
            ]
            names.append(group.name)
            kinds.append(kind)
            shares.append([float(np.linalg.norm(w)) / max(t, 1e-300) for w, t in zip(wrong, torque, strict=True)])
    found = (tuple(names), tuple(kinds), change, errors, np.array(shares), kp, about.pose)
    return Sensitivity(robot.name, *found)


def _heaviest(model: SwingModel) -> Array:
    bounds = Bounds.of(model.robot)
    lower, upper = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    poses = np.random.default_rng(0).uniform(lower, upper, (_POSES, len(lower)))
    from dynident.dynamics.evaluate import regressor

    rest = np.zeros_like(poses)
    weight = regressor(model.robot, poses, rest, rest, model.terms) @ model.chi
    return np.asarray(poses[int(np.argmax(np.linalg.norm(weight, axis=1)))])
