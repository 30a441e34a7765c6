"""Joints 2, 3 and 5 of a KUKA KR5 as a planar arm (Abhishek et al.): from a poor motion to parameters to trust.

    python examples/kr5_planar.py

Prints what the paper's trajectory (12) can tell and what it cannot, a better motion, the parameters identified with
friction and noise from logged positions and torques, and why the values in the paper cannot be right.

To adapt it, put your robot file for "kr5-planar" and your log, `di.read_log("run.csv", robot)`, for `recorded`.
"""

from __future__ import annotations

import numpy as np

import dynident as di

STEP, NOISE = 0.012, 1.0  # [s] between samples of the paper's controller, [N·m]
TERMS = "rigid,Fv,Fc"


def cycloid(n_joints: int, t: np.ndarray, angle: float = np.pi / 3) -> tuple[np.ndarray, ...]:
    """Trajectory (12): all joints go the same way to the same `angle` [rad] until the last of `t`. q, dq, ddq."""
    w = 2.0 * np.pi / t[-1]
    q, dq, ddq = t - np.sin(w * t) / w, 1.0 - np.cos(w * t), w * np.sin(w * t)
    return tuple(np.tile((angle / t[-1] * x)[:, None], n_joints) for x in (q, dq, ddq))


def fourier(robot: di.Robot, t: np.ndarray, seed: int, base: float = 0.1) -> tuple[np.ndarray, ...]:
    """Random motion of five harmonics of `base` [Hz] within the joints' limits. q, dq, ddq, (n_samples, n_joints)."""
    limits = [joint.limits for joint in robot.joints]
    low, high, fastest = np.array([(one.lower, one.upper, one.velocity) for one in limits], dtype=float).T
    w = 2.0 * np.pi * base * np.arange(1, 6)
    a, b = np.random.default_rng(seed).normal(size=(2, 5, len(low))) / w[:, None]
    sin, cos = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, dq, ddq = sin @ a + cos @ b, (cos * w) @ a - (sin * w) @ b, -(sin * w**2) @ a - (cos * w**2) @ b
    size = np.minimum(0.9 * (high - low) / np.ptp(q, axis=0), 0.6 * fastest / np.abs(dq).max(0))
    return (low + high) / 2 + (q - (q.max(0) + q.min(0)) / 2) * size, dq * size, ddq * size


def recorded(robot: di.Robot, t: np.ndarray, motion: tuple[np.ndarray, ...]) -> di.Log:
    """Stands in for your machine: positions, and noisy torque with friction."""
    noise = NOISE * np.random.default_rng(0).normal(size=motion[0].shape)
    tau = di.inverse_dynamics(robot, *motion, TERMS) + noise
    channels = {f"{kind}{j + 1}": x[:, j] for kind, x in (("q", motion[0]), ("tau", tau)) for j in range(3)}
    return di.Log("made", "made", t, channels)


def main() -> None:
    """The four steps."""
    robot = di.load_robot("kr5-planar")
    base = di.base_parameters(robot, "rigid")
    poor = cycloid(3, np.linspace(0.0, 5.0, 500))
    print(
        f"Trajectory (12): raw condition {di.excitation(base, *poor).raw_condition:.1f} for {base.n} link parameters."
    )
    moving = [x[1:-1] for x in poor]  # at both ends the arm rests, and friction is whatever holds it
    friction = di.base_parameters(robot, f"{TERMS},Fo")
    quality = di.excitation(friction, *poor)
    said = di.accumulate(robot, *moving, di.inverse_dynamics(robot, *moving, friction.terms), friction.terms).solve()
    print(f"With friction it tells {quality.rank} of {friction.n}; undetermined: {', '.join(said.undetermined)}.")
    print(f"Such as {quality.weak[0]}: moving one way, dry friction looks like an offset.\n")

    t = np.arange(0.0, 20.0, STEP)
    best = min(range(20), key=lambda seed: di.excitation(base, *fourier(robot, t, seed)).raw_condition)
    motion = fourier(robot, t, best)
    print(f"Best of 20 Fourier motions: raw condition {di.excitation(base, *motion).raw_condition:.1f}.")
    exact = di.accumulate(robot, *motion, di.inverse_dynamics(robot, *motion, "rigid"), "rigid").solve()
    print(f"Without noise least squares is off by {np.abs(exact.values - base.base_values()).max():.0e}.")
    fit = di.identify(robot, recorded(robot, t, motion), terms=TERMS)
    print(f"With friction, {NOISE} N·m of noise and positions differentiated:\n{fit.table()}")
    print(f"Worst error of a link's parameter: {np.abs(fit.beta - fit.base.base_values())[: base.n].max():.3f}.\n")

    print("Table 4 of the paper cannot belong to a real arm:")
    for violation in di.identifiability.base_violations(base, robot.base_values["table4"]):
        print(f"  {violation}")


if __name__ == "__main__":
    main()
