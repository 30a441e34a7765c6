"""The two-step identification of Gautier, Khalil, Restrepo 1995: wrist first, then the arm with the wrist locked.

Replace `record` with logs of your own robot (`di.read_log`), and the names of joints with yours.
Run: python examples/sr400_two_step.py
"""

import numpy as np

import dynident as di

TERMS = "rigid,Ia,Fv,Fc"
WRIST, ARM = ("joint4", "joint5", "joint6"), ("joint1", "joint2", "joint7")
LOW = np.array([-2.5, -2.3, -2.5, -1.7, -3.0, -0.9])  # [rad] joints 1, 2, 4, 5, 6, 7
HIGH = np.array([2.5, -0.8, 2.5, 1.7, 3.0, 0.9])
NOISE = {"joint1": 20.0, "joint2": 20.0, "joint4": 0.6, "joint5": 0.6, "joint6": 0.6, "joint7": 20.0}  # [N·m]
RATE, SECONDS, QUANTUM = 1000, 1.2, 2.0 * np.pi / 2**16
# Positions pass a low-pass at 80 Hz (1 kHz over five) and central differences, rows one at 40 Hz.
SIGNALS = di.SignalOptions(band=40.0, differentiator="central", rest_speed=0.0)


def quintic(seed: int, segments: int) -> tuple[np.ndarray, ...]:
    """Positions, speeds and accelerations of point-to-point motion through random points."""
    points = np.random.default_rng(seed).uniform(LOW, HIGH, (segments + 1, 6))
    count = round(SECONDS * RATE)
    s = (np.arange(count) / count)[:, None]
    curves = (10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 - 60 * s**3 + 30 * s**4, 60 * s - 180 * s**2 + 120 * s**3)
    steps, start = np.diff(points, axis=0)[:, None], points[:-1, None]
    parts = (steps * curve / SECONDS**order for order, curve in enumerate(curves))
    q, dq, ddq = (part.reshape(-1, 6) for part in parts)
    return q + np.repeat(start, count, axis=1).reshape(-1, 6), dq, ddq


def true_values(robot: di.Robot) -> dict[str, float]:
    """Table 4 of the paper, and for motor 7 the friction of motor 2, which it resembles."""
    return {**robot.base_values["table4"], "Fv7": 55.0, "Fc7": 38.0}


def record(robot: di.Robot, beta: dict[str, float], seed: int, segments: int = 60, noise: bool = True) -> di.Log:
    """A simulated log of the robot, with 16-bit positions and noisy torque."""
    moving = list(robot.moving)
    q, dq, ddq = (x[:, moving] for x in quintic(seed, segments))
    whole = di.base_parameters(di.load_robot("sr400"), TERMS)
    tau = di.inverse_dynamics(robot, q, dq, ddq, TERMS, whole.standard_values(beta, "regrouped zero"))
    if noise:
        deviations = [NOISE[name] for name in robot.joint_names]
        tau = tau + np.random.default_rng(1000 + seed).normal(size=tau.shape) * deviations
        q = QUANTUM * np.round(q / QUANTUM)
    numbers = [name.removeprefix("q") for name in robot.position_names]
    channels = {f"q{n}": x for n, x in zip(numbers, q.T, strict=True)}
    channels |= {f"tau{n}": x for n, x in zip(numbers, di.joint_torque(robot, tau).T, strict=True)}
    return di.Log(f"run {seed}", f"run {seed}", np.arange(len(q)) / RATE, channels)


def two_steps(beta: dict[str, float], seed: int = 0, **options) -> di.estimate.StagedEstimate:
    """Step 1: rows of motors 4, 5, 6 with all joints moving. Step 2: joints 4, 5, 6 locked, rows of motors 1, 2, 7."""
    robot = di.load_robot("sr400")
    arm = robot.lock(q4=0.0, q5=0.0, q6=0.0)
    runs = record(robot, beta, 2 * seed, **options), record(arm, beta, 2 * seed + 1, **options)
    wrist_first = di.estimate.experiment("wrist", robot, runs[0], TERMS, outputs=WRIST, signals=SIGNALS)
    arm_then = di.estimate.experiment("arm", arm, runs[1], TERMS, outputs=ARM, signals=SIGNALS)
    return di.estimate.solve_in_steps([wrist_first, arm_then], essential=0.15)


if __name__ == "__main__":
    truth = true_values(di.load_robot("sr400"))
    found = two_steps(truth)
    print(found.stage_table(), "\n")
    for name in found.essential:
        std = found.std[found.names.index(name)]
        print(f"{name:6} {found[name]:9.4f} +- {2 * std:.4f}   true {truth.get(name, 0.0):g}")
