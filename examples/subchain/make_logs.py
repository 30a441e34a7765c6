"""Makes the logs of the sub-chain example: a KUKA KR5 whose links Pinocchio moves, with friction added by hand.

    .venv/bin/python examples/subchain/make_logs.py

The arm is not the one that its description promises: masses and friction differ by up to a quarter. One log has joints
2, 3 and 5 in motion and the others braked at zero; in the other log all six move. Both are as the controller of
Abhishek et al. gives them: degrees and N·m every 12 ms.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pinocchio as pin

import dynident as di
from dynident.robot.parameters import to_classical

HERE = Path(__file__).parent
STEP = 0.012  # [s]
DURATION = 20.0  # [s], two periods
NOISE = np.array([1.0, 1.0, 1.0, 0.3, 0.3, 0.3])  # [N·m]
HARMONICS = np.arange(1, 6)


def true_values(robot: di.Robot, seed: int = 5) -> dict[str, float]:
    """The machine as it really is: every link heavier or lighter as a whole, all friction different."""
    rng = np.random.default_rng(seed)
    link = {str(joint.number): rng.uniform(0.75, 1.25) for joint in robot.joints}
    values = robot.value_set("plant")
    return {k: v * (rng.uniform(0.75, 1.25) if k[0] in "FI" else link[k.lstrip("XYZM")]) for k, v in values.items()}


def fourier(robot: di.Robot, t: np.ndarray, seed: int, base: float = 0.1) -> tuple[np.ndarray, ...]:
    """Random motion of five harmonics within the moving joints' limits: q, dq, ddq, (n_samples, n_joints) each."""
    limits = [robot.joints[robot.active[i]].limits for i in robot.moving]
    low, high, fastest = np.array([(one.lower, one.upper, one.velocity) for one in limits], dtype=float).T
    a, b = np.random.default_rng(seed).normal(size=(2, 5, len(low))) / HARMONICS[:, None]
    w = 2.0 * np.pi * base * HARMONICS
    sin, cos = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, dq, ddq = sin @ a + cos @ b, (cos * w) @ a - (sin * w) @ b, -(sin * w**2) @ a - (cos * w**2) @ b
    size = np.minimum(0.9 * (high - low) / np.ptp(q, axis=0), 0.6 * fastest / np.abs(dq).max(0))
    return (low + high) / 2 + (q - (q.max(0) + q.min(0)) / 2) * size, dq * size, ddq * size


def torque(robot: di.Robot, values: dict[str, float], motion: tuple[np.ndarray, ...]) -> np.ndarray:
    """Torque at the moving joints of a serial robot: links by Pinocchio, drives and friction by hand."""
    model, last = pin.Model(), pin.SE3.Identity()
    for i, (joint, chi) in enumerate(
        zip(robot.joints, robot.with_values("x", values).link_parameters("x"), strict=True)
    ):
        place = last * pin.SE3(joint.before.rotation, joint.before.translation)
        model.addJoint(i, pin.JointModelRZ(), place, joint.name)
        last = pin.SE3(joint.after.rotation, joint.after.translation)
        mass, center, inertia = to_classical(chi)
        model.appendBodyToJoint(i + 1, pin.Inertia(float(mass), center, inertia), last)
    model.gravity.linear = np.array(robot.gravity)
    moving, data = list(robot.moving), model.createData()
    q, dq, ddq = (np.zeros((len(own), model.nv)) for own in motion)
    for whole, own in zip((q, dq, ddq), motion, strict=True):
        whole[:, moving] = own
    q[:, list(robot.locked)] = list(robot.locked.values())
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    Ia, Fv, Fc = (np.array([values.get(f"{s}{j.number}", 0.0) for j in robot.joints]) for s in ("Ia", "Fv", "Fc"))
    return (tau + Ia * ddq + Fv * dq + Fc * np.sign(dq))[:, moving]


def main() -> None:
    """Write the logs."""
    arm = di.load_robot("kr5")
    t = np.arange(0.0, DURATION, STEP)
    for name, robot, seed in (("joints_2_3_5", arm.lock(q1=0, q4=0, q6=0), 1), ("all_joints", arm, 2)):
        motion = fourier(robot, t, seed)
        noise = NOISE[list(robot.moving)] * np.random.default_rng(seed).normal(size=motion[0].shape)
        rows = np.column_stack([np.degrees(motion[0]), torque(robot, true_values(arm), motion) + noise])
        numbers = [one.removeprefix("q") for one in robot.position_names]
        lines = [",".join(["t [s]", *(f"q{n} [deg]" for n in numbers), *(f"tau{n} [Nm]" for n in numbers)])]
        pattern = ",".join(["%.3f", *["%.4f"] * len(numbers), *["%.2f"] * len(numbers)])
        lines += [pattern % tuple(row) for row in np.column_stack([t, rows])]
        with gzip.GzipFile(HERE / f"{name}.csv.gz", "wb", mtime=0) as file:
            file.write(("\n".join(lines) + "\n").encode())
        print(f"{name}.csv.gz: {len(t)} samples")


if __name__ == "__main__":
    main()
