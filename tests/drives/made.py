"""Robots under position commands, simulated by plain steps of MuJoCo with a controller of their own."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from dynident.drives.linear import drive_elements
from dynident.logs.log import Log
from dynident.plant.mjcf_writer import ModelOptions, mujoco_xml

STEP = 2e-4  # [s]; a controller that acts once a step is late by half of it


@dataclass(frozen=True)
class Truth:
    """What the simulated drives have, (n_joints,) each, and the delay of commands [s]."""

    armature: np.ndarray
    damping: np.ndarray
    frictionloss: np.ndarray
    bias: np.ndarray
    delay: float

    @staticmethod
    def drawn(n, seed, size=1.0):
        rng = np.random.default_rng(seed)
        ranges = ((0.01, 0.03), (0.2, 0.6), (0.1, 0.4))
        found = [size * rng.uniform(*own, n) for own in ranges]
        return Truth(*found, 0.01 * rng.normal(size=n), float(rng.uniform(0.0, 0.01)))

    def parameters(self, robot):
        """By name."""
        found = {}
        for j, drive in enumerate(drive_elements(robot)):
            own = {"Ia": self.armature[j], "Fv": self.damping[j], "Fc": self.frictionloss[j]}
            found |= {drive.name(symbol): float(value) for symbol, value in own.items()}
        return found

    def by_name(self, robot):
        """All that `identify_drives` estimates."""
        biases = {f"bias{drive.number}": float(b) for drive, b in zip(drive_elements(robot), self.bias, strict=True)}
        return self.parameters(robot) | biases | {"delay": self.delay}


def commands(n, seconds, rate, seed):
    """(n_samples, n) sums of sines that begin at zero and grow faster, with their stamps."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / rate)
    found = np.zeros((len(t), n))
    for k in range(3):
        frequency, phase, size = rng.uniform(0.3, 0.6, n) * (1 + k), rng.uniform(0, 6, n), rng.uniform(0.1, 0.3, n)
        angle = 2 * np.pi * frequency * t[:, None] * (1.0 + 0.1 * t[:, None] * (k == 2)) + phase
        found += size * (np.sin(angle) - np.sin(phase))
    return t, found * np.minimum(t, 1.0)[:, None]


def logged(robot, truth, kp, kd, *, seconds=8.0, rate=200.0, seed=0, noise=5e-5):
    """A log of commands and positions of a robot under tau = kp (target - q) - kd dq."""
    n = len(robot.joint_names)
    values = dict(robot.value_set()) | truth.parameters(robot)
    model = mujoco.MjModel.from_xml_string(
        mujoco_xml(robot, values, ModelOptions(step=STEP, integrator="implicitfast"))
    )
    data = mujoco.MjData(model)
    places = [int(model.joint(name).qposadr[0]) for name in robot.joint_names]
    dofs = [int(model.joint(name).dofadr[0]) for name in robot.joint_names]
    t, targets = commands(n, seconds, rate, seed)
    every = round(1.0 / rate / STEP)
    q = np.zeros_like(targets)
    for step in range(len(t) * every):
        if step % every == 0:
            q[step // every] = data.qpos[places]
        held = targets[max(0, int(np.floor((step * STEP - truth.delay) * rate + 1e-9)))]
        tau = kp * (held - data.qpos[places]) - kd * data.qvel[dofs]
        data.qfrc_applied[dofs] = np.clip(tau, -robot.effort_limits, robot.effort_limits)
        mujoco.mj_step(model, data)
    q += noise * np.random.default_rng(seed).normal(size=q.shape) - truth.bias
    channels = {f"q{j + 1}": q[:, j] for j in range(n)} | {f"target{j + 1}": targets[:, j] for j in range(n)}
    return Log("simulated", "none", t, channels)
