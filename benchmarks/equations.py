"""Batch equations against a Pinocchio loop, per sample."""

from __future__ import annotations

import os

import numpy as np
import pinocchio as pin
from tests.robots import tree_model

import dynident as di
from harness import Row, interleaved, table

SAMPLES = 10_000


def rows(name: str) -> list[Row]:
    robot = di.load_robot(name)
    model = tree_model(robot)
    data = model.createData()
    n = len(robot.joint_names)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, SAMPLES, n))
    chi = di.parameters(robot, "rigid")

    def loop(function, shape):
        out = np.empty((SAMPLES, *shape))

        def job():
            for k in range(SAMPLES):
                out[k] = function(k)

        return job

    jobs = [
        (
            "regressor",
            lambda: di.regressor(robot, q, dq, ddq, "rigid"),
            loop(lambda k: pin.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k]), (n, 10 * n)),
        ),
        (
            "inverse dynamics",
            lambda: di.inverse_dynamics(robot, q, dq, ddq, "rigid", chi),
            loop(lambda k: pin.rnea(model, data, q[k], dq[k], ddq[k]), (n,)),
        ),
        (
            "mass matrix",
            lambda: di.mass_matrix(robot, q),
            loop(lambda k: pin.crba(model, data, q[k]), (n, n)),
        ),
        (
            "forward dynamics",
            lambda: di.forward_dynamics(robot, q, dq, ddq, "rigid", chi),
            loop(lambda k: pin.aba(model, data, q[k], dq[k], ddq[k]), (n,)),
        ),
    ]
    return [interleaved(f"{name}, {what}", ours, theirs, "Pinocchio loop") for what, ours, theirs in jobs]


def main() -> None:
    for back_end in ("numpy", "llvm"):
        os.environ["DYNIDENT_BACKEND"] = back_end
        print(f"Equations, {back_end} back end, {SAMPLES} samples, per sample")
        table([row for name in ("ur10e", "panda") for row in rows(name)], SAMPLES)
    del os.environ["DYNIDENT_BACKEND"]


if __name__ == "__main__":
    main()
