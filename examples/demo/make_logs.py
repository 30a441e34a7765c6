"""Makes the logs of the demo: a 6-joint arm in MuJoCo, whose physics dynident did not write.

    .venv/bin/python examples/demo/make_logs.py

The arm is not the one that its description promises: masses, inertias and friction differ from the bundled values by
up to a third. It follows Fourier motions (to learn from) and another kind of motion (to judge with).
The log has what a controller gives: irregular stamps, quantised positions, noisy currents that arrive late.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import mujoco
import numpy as np

import dynident as di
from dynident.robot.parameters import in_frame, to_mujoco

HERE = Path(__file__).parent
STEP = 5e-4  # [s] of the simulation
RATE = 125.0  # [Hz] of the log
LATE = 0.004  # [s] by which currents are stamped late
ENCODER = 2.0 * np.pi / 2**17  # [rad]
NOISE = np.array([0.06, 0.06, 0.05, 0.03, 0.03, 0.03])  # [A]


def true_values(robot: di.Robot, seed: int) -> dict[str, float]:
    """The machine as it really is: every link heavier or lighter as a whole, all friction different."""
    rng = np.random.default_rng(seed)
    values = dict(robot.value_set("plant"))
    for joint in robot.joints:
        share = 1.0 + rng.uniform(-0.25, 0.25)
        for name in values:
            if name.lstrip("XYZM") == str(joint.number):
                values[name] *= share
    return {k: v * (1.0 + rng.uniform(-0.33, 0.33)) if k[0] in "FI" else v for k, v in values.items()}


def mujoco_model(robot: di.Robot, values: dict[str, float]) -> mujoco.MjModel:
    """A serial robot as a MuJoCo model; bodies are placed at the joints.

    Dry friction is as hard as the time step allows: MuJoCo's usual softness lets it change sign ten milliseconds early.
    """
    chi = robot.with_values("true", values).link_parameters("true")
    text, closing = "", ""
    frame = np.eye(3), np.zeros(3)  # from the link frame that carries the joint to the body that MuJoCo has there
    for joint, own in zip(robot.joints, chi, strict=True):
        R, p = frame
        rotation, position = R @ joint.before.rotation, R @ joint.before.translation + p
        mass, centre, inertia = to_mujoco(in_frame(own, joint.after.rotation, joint.after.translation))
        n = joint.number
        text += (
            f'<body pos="{_text(position)}" xyaxes="{_text([*rotation[:, 0], *rotation[:, 1]])}">'
            f'<inertial mass="{mass:.17g}" pos="{_text(centre)}" fullinertia="{_text(inertia)}"/>'
            f'<joint name="q{n}" axis="0 0 1" armature="{values[f"Ia{n}"]:.17g}" damping="{values[f"Fv{n}"]:.17g}" '
            f'frictionloss="{values[f"Fc{n}"]:.17g}" solreffriction="{2 * STEP} 1"/>'
        )
        closing += "</body>"
        frame = joint.after.rotation, joint.after.translation
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian" boundmass="0" balanceinertia="false"/>'
        f'<option timestep="{STEP}" integrator="implicitfast" gravity="{_text(robot.gravity)}"/>'
        f"<worldbody>{text}{closing}</worldbody></mujoco>"
    )


def _text(values: object) -> str:
    return " ".join(f"{x:.17g}" for x in np.asarray(values, dtype=float).ravel())


def fourier(t: np.ndarray, seed: int, duration: float) -> np.ndarray:
    """A smooth motion that begins and ends at rest."""
    rng = np.random.default_rng(seed)
    q = np.array([0.0, -1.4, 1.0, -0.6, 0.8, 0.0]) * np.ones((len(t), 6))
    size = np.array([0.9, 0.55, 0.7, 0.9, 1.0, 1.2])
    for k in range(1, 6):
        a, b = rng.normal(size=(2, 6)) * size / k
        q += np.outer(np.sin(2 * np.pi * 0.1 * k * t), a) + np.outer(np.cos(2 * np.pi * 0.1 * k * t), b)
    ramp = np.clip(np.minimum(t, duration - t) / 2.0, 0.0, 1.0)
    smooth = ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp**2)
    return q * smooth[:, None]


def wandering(t: np.ndarray, seed: int, duration: float) -> np.ndarray:
    """Another kind of motion: two tones for each joint that never meet again, about another pose."""
    rng = np.random.default_rng(seed)
    q = np.array([0.4, -1.1, 1.3, -0.2, -0.6, 0.5]) * np.ones((len(t), 6))
    size = np.array([0.7, 0.4, 0.5, 0.7, 0.8, 0.9])
    for _ in range(2):
        frequency, phase = rng.uniform(0.12, 0.45, 6), rng.uniform(0.0, 2.0 * np.pi, 6)
        q += size * np.sin(2.0 * np.pi * np.outer(t, frequency) + phase)
    return q


def record(robot: di.Robot, values: dict[str, float], motion: object, seed: int, duration: float) -> np.ndarray:
    """Run the arm along a motion; rows of t, q1.., i1.. as a controller would log them."""
    model = mujoco_model(robot, values)
    data = mujoco.MjData(model)
    t = np.arange(0.0, duration, STEP)
    wanted = motion(t, seed, duration)  # type: ignore[operator]
    speed = np.gradient(wanted, STEP, axis=0)
    forward = di.inverse_dynamics(robot, wanted, speed, np.gradient(speed, STEP, axis=0))
    stiff, damp = np.array([4e4, 4e4, 2e4, 4e3, 4e3, 4e3]), np.array([800.0, 800.0, 400.0, 60.0, 60.0, 60.0])
    offset = np.array([values[f"Fo{n}"] for n in range(1, 7)])
    data.qpos[:] = wanted[0]
    q, tau = np.zeros_like(wanted), np.zeros_like(wanted)
    for k in range(len(t)):
        torque = forward[k] + stiff * (wanted[k] - data.qpos) + damp * (speed[k] - data.qvel)
        q[k], tau[k] = data.qpos, torque + offset
        data.qfrc_applied[:] = torque
        mujoco.mj_step(model, data)
    rng = np.random.default_rng(seed + 1000)
    stamps = np.arange(0.1, duration - 0.1, 1.0 / RATE)
    stamps = np.round((stamps + rng.uniform(-1e-3, 1e-3, len(stamps))), 6)
    at = lambda values, when: np.column_stack([np.interp(when, t, own) for own in values.T])  # noqa: E731
    positions = np.round(at(q, stamps) / ENCODER) * ENCODER
    currents = at(tau, stamps - LATE) / robot.drive.gains + NOISE * rng.normal(size=(len(stamps), 6))
    return np.column_stack([stamps, positions, currents])


def main() -> None:
    """Write the logs."""
    robot = di.load_robot(HERE / "arm.yaml")
    values = true_values(robot, seed=1)
    header = "t [s]," + ",".join(f"q{n} [rad]" for n in range(1, 7)) + "," + ",".join(f"i{n} [A]" for n in range(1, 7))
    for name, motion, seed, duration in (
        ("fourier_1", fourier, 1, 24.0),
        ("fourier_2", fourier, 2, 24.0),
        ("wandering", wandering, 3, 16.0),
    ):
        rows = record(robot, values, motion, seed, duration)
        lines = [header, *(f"{r[0]:.6f}," + ",".join(f"{x:.6g}" for x in r[1:]) for r in rows)]
        with gzip.GzipFile(HERE / f"{name}.csv.gz", "wb", mtime=0) as file:
            file.write(("\n".join(lines) + "\n").encode())
        print(f"{name}.csv.gz: {len(rows)} samples")


if __name__ == "__main__":
    main()
