"""Robots under position commands, simulated by plain steps of MuJoCo with a controller of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

import dynident as di
from dynident.drives.linear import drive_elements, with_gains
from dynident.logs.log import Log
from dynident.plant.mjcf_writer import ModelOptions, mujoco_xml
from dynident.robot.model import Robot

STEP = 2e-4  # [s]; a controller that acts once a step is late by half of it


@dataclass(frozen=True)
class Truth:
    """What the simulated drives have, (n_joints,) each, and delays of commands and within the controller's loop [s]."""

    armature: np.ndarray
    damping: np.ndarray
    frictionloss: np.ndarray
    bias: np.ndarray
    delay: float
    loop_delay: float = 0.0

    @staticmethod
    def drawn(n, seed, size=1.0, loop_delay=0.0):
        """Drives of a small leg times a size, which is one number or one for each joint and quantity, (3, n_joints).

        The delay within the loop is of the size of `loop_delay` [s].
        """
        rng = np.random.default_rng(seed)
        ranges = ((0.01, 0.03), (0.2, 0.6), (0.1, 0.4))
        sizes = np.broadcast_to(size, (3, n))
        found = [own * rng.uniform(*ends, n) for own, ends in zip(sizes, ranges, strict=True)]
        late = float(rng.uniform(0.0, 0.01))
        return Truth(*found, 0.01 * rng.normal(size=n), late, loop_delay * abs(float(rng.normal())))

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


@dataclass(frozen=True)
class Machine:
    """A robot with the gains of its controllers, and how large its drives are beside those of a small leg."""

    robot: Robot
    kp: np.ndarray
    kd: np.ndarray
    size: np.ndarray


def quadruped_xml():
    """A trunk that is held with four legs of three joints, twelve joints."""
    legs = []
    for name, x, y in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1)):
        legs.append(f"""
          <body name="{name}_hip" pos="{0.19 * x} {0.05 * y} 0">
            <joint name="{name}_hip" axis="1 0 0" range="-1 1"/>
            <inertial pos="{-0.005 * x} {0.002 * y} 0" mass="0.7" diaginertia="0.0009 0.0006 0.0005"/>
            <body name="{name}_thigh" pos="0 {0.1 * y} 0">
              <joint name="{name}_thigh" axis="0 1 0" range="-1.5 3.5"/>
              <inertial pos="-0.004 {-0.02 * y} -0.03" mass="1.1" diaginertia="0.006 0.006 0.0009"/>
              <body name="{name}_calf" pos="0 0 -0.21">
                <joint name="{name}_calf" axis="0 1 0" range="-2.7 2.7"/>
                <inertial pos="0.006 0 -0.14" mass="0.25" diaginertia="0.0015 0.0015 0.00006"/>
              </body>
            </body>
          </body>""")
    return f"""<mujoco model="quadruped">
      <compiler angle="radian" autolimits="true"/>
      <default><joint armature="0.01" damping="0.5" frictionloss="0.1" actuatorfrcrange="-30 30"/></default>
      <worldbody><body name="trunk" pos="0 0 0.6">
        <inertial pos="0 0 0" mass="7" diaginertia="0.1 0.1 0.03"/>{"".join(legs)}
      </body></worldbody>
    </mujoco>"""


def quadruped(folder):
    """Twelve joints, soft controllers."""
    path = folder / "quadruped.xml"
    path.write_text(quadruped_xml())
    kp, kd = np.full(12, 20.0), np.full(12, 1.0)
    return Machine(with_gains(di.load_robot(path), kp, kd), kp, kd, np.ones((3, 12)))


def arm():
    """Seven joints with skewed axes, gears and stiff controllers."""
    kp = np.array([400.0, 400.0, 300.0, 300.0, 100.0, 60.0, 30.0])
    kd = np.array([30.0, 30.0, 20.0, 20.0, 5.0, 3.0, 1.0])
    size = np.array([[25, 25, 20, 15, 8, 5, 2], [8, 8, 5, 5, 2, 1, 0.5], [20, 20, 12, 12, 5, 3, 1]], dtype=float)
    plain = di.load_robot(Path(__file__).parents[1] / "strangers" / "skewed.urdf")
    return Machine(with_gains(plain, kp, kd), kp, kd, size)


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


def logged(robot, truth, kp, kd, *, seconds=8.0, rate=200.0, seed=0, noise=5e-5, trunk=0.0):
    """A log of commands and positions of a robot under tau = kp (target - q) - kd dq.

    The trunk swings with an acceleration of this size [m/s²].
    """
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
    # A force that acts in a step belongs to the half steps about its beginning: commands are means over that time.
    # Velocities of the simulator belong to the middle of the step before, those of a controller to now.
    before = data.qvel[dofs].copy()
    past = [(data.qpos[places].copy(), before)]
    behind, share = divmod(truth.loop_delay / STEP, 1.0)
    for step in range(len(t) * every):
        if step % every == 0:
            q[step // every] = data.qpos[places]
        now = data.qvel[dofs].copy()
        past = [*past[-int(behind) - 2 :], (data.qpos[places].copy(), 1.5 * now - 0.5 * before)]
        before = now
        late = (
            truth.delay + truth.loop_delay
        )  # what the controller computes late, it computes from late commands as well
        ahead = ((step + 0.5) * STEP - late) * rate  # samples, at the end of the time that the force belongs to
        latest, fresh = max(0, int(np.floor(ahead))), min(1.0, (ahead % 1.0) * every)
        held = fresh * targets[latest] + (1.0 - fresh) * targets[max(0, latest - 1)]
        newer, older = past[max(-1 - int(behind), -len(past))], past[max(-2 - int(behind), -len(past))]
        seen, quick = ((1.0 - share) * x + share * y for x, y in zip(newer, older, strict=True))
        tau = kp * (held - seen) - kd * quick
        data.qfrc_applied[dofs] = np.clip(tau, -robot.effort_limits, robot.effort_limits)
        if trunk:
            angle = 2.0 * np.pi * 0.7 * step * STEP
            model.opt.gravity[:] = robot.gravity + trunk * np.array([np.sin(angle), np.cos(1.3 * angle), 0.0])
        mujoco.mj_step(model, data)
    q += noise * np.random.default_rng(seed).normal(size=q.shape) - truth.bias
    channels = {f"q{j + 1}": q[:, j] for j in range(n)} | {f"target{j + 1}": targets[:, j] for j in range(n)}
    return Log("simulated", f"{seed} over {seconds} s", t, channels)  # digests tell logs apart
