"""Commands and positions of a leg, simulated by plain steps of MuJoCo, and its drives from them.

    python examples/drives/record.py [FOLDER]    # writes train.csv.gz and validation.csv.gz there

The leg's drives differ from what its file says; `dynident drives` gets the file and the logs alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np

KP, KD = 20.0, 1.0  # [N·m/rad], [N·m·s/rad] of the position controllers
ARMATURE = np.array([0.016, 0.021, 0.034])  # [kg·m²]
DAMPING = np.array([0.21, 0.34, 0.27])  # [N·m·s/rad]
FRICTIONLOSS = np.array([0.27, 0.16, 0.55])  # [N·m]
BIAS = np.array([0.008, -0.004, 0.006])  # [rad] true less measured position
DELAY = 0.004  # [s] of the commands
REST = np.array([0.0, 0.8, -1.7])  # [rad]
RATE, STEP = 200.0, 2e-4  # samples per second, step of the simulation [s]


def commands(seconds: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stamps, and targets that swing about the rest pose, faster towards the end, (n_samples, 3)."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / RATE)[:, None]
    swing = sum(
        rng.uniform(0.08, 0.16, 3) * np.sin(2.0 * np.pi * k * rng.uniform(0.3, 0.5, 3) * t * (1.0 + 0.06 * t) + phase)
        for k, phase in ((1, rng.uniform(0, 6, 3)), (2, rng.uniform(0, 6, 3)), (4, rng.uniform(0, 6, 3)))
    )
    return t[:, 0], REST + swing * np.minimum(t, 1.0)


def record(model: mujoco.MjModel, seconds: float, seed: int) -> np.ndarray:
    """A log: t, q1..q3, target1..target3."""
    data = mujoco.MjData(model)
    t, targets = commands(seconds, seed)
    data.qpos[:] = REST
    every, measured = round(1.0 / RATE / STEP), np.zeros_like(targets)
    for step in range(len(t) * every):
        if step % every == 0:
            measured[step // every] = data.qpos
        held = targets[max(0, int((step * STEP - DELAY) * RATE + 1e-9))]
        data.qfrc_applied[:] = KP * (held - data.qpos) - KD * data.qvel
        mujoco.mj_step(model, data)
    measured += 5e-5 * np.random.default_rng(seed).normal(size=measured.shape) - BIAS
    return np.column_stack([t, measured, targets])


def main() -> None:
    """Write both logs."""
    here = Path(__file__).parent
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    model = mujoco.MjModel.from_xml_path(str(here / "leg.xml"))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.dof_armature[:], model.dof_damping[:], model.dof_frictionloss[:] = ARMATURE, DAMPING, FRICTIONLOSS
    model.dof_solref[:] = 2.0 * STEP, 1.0  # dry friction as hard as the step allows
    head = ",".join(["t", *(f"{name}{j}" for name in ("q", "target") for j in (1, 2, 3))])
    for name, seconds, seed in (("train", 10.0, 1), ("validation", 6.0, 2)):
        np.savetxt(out / f"{name}.csv.gz", record(model, seconds, seed), "%.7g", ",", header=head, comments="")
        print(out / f"{name}.csv.gz")


if __name__ == "__main__":
    main()
