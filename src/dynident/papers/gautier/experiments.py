"""The paper's experiments on a simulated SR400: point-to-point motion, two steps, load, energy, stepped velocities."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import inverse_dynamics, joint_torque
from dynident.estimate import (
    EnergyRows,
    Estimator,
    StageData,
    StagedEstimate,
    WeightedLeastSquares,
    experiment,
    observed_energy,
    observed_power,
    solve_in_steps,
)
from dynident.experiments import VelocityFriction, velocity_friction
from dynident.identifiability import BaseParameters, base_parameters
from dynident.information import accumulate
from dynident.logs import Log
from dynident.papers.gautier import printed
from dynident.payload import DriveGains, Payload, identify_drive_gains, payload_change
from dynident.plant import MujocoPlant, Sensors
from dynident.robot import Robot, load_robot
from dynident.signals import SignalOptions, observe

TERMS = "rigid,Ia,Fv,Fc"
WRIST, ARM = ("joint4", "joint5", "joint6"), ("joint1", "joint2", "joint7")
LOW = np.array([-2.5, -2.3, -2.5, -1.7, -3.0, -0.9])  # [rad] joints 1, 2, 4, 5, 6, 7
HIGH = np.array([2.5, -0.8, 2.5, 1.7, 3.0, 0.9])
NOISE = {"joint1": 20.0, "joint2": 20.0, "joint4": 0.6, "joint5": 0.6, "joint6": 0.6, "joint7": 20.0}  # [N·m]
RATE, SECONDS, SEGMENTS = 1000, 1.2, 60  # [Hz], [s] of a segment
QUANTUM = 2.0 * np.pi / 2**16  # [rad] of the resolvers
# Positions pass a low-pass at 80 Hz (1 kHz over five) and central differences, rows one at 40 Hz.
SIGNALS = SignalOptions(band=40.0, differentiator="central", rest_velocity=0.0)
ENERGY_SIGNALS = SignalOptions(band=20.0, differentiator="central", rest_velocity=0.0)
WRIST_LOCKED = {"q4": 0.0, "q5": 0.0, "q6": 0.0}  # [rad] in the second experiment
HELD = {"q1": 0.0, "q2": -1.57, "q4": 0.0, "q7": 0.0}  # [rad] while links 5 and 6 are looked at
# About the origin of frame 6, as Table 3; Payload(mass, com, inertia) is about the center of mass.
LOAD = Payload.from_standard(printed.TABLE_3)
VELOCITIES = {"q5": [1.0, 3.0], "q6": [0.8, 2.4]}  # [rad/s] of motors 5 and 6, on the joint side


@functools.cache
def sr400() -> tuple[Robot, BaseParameters]:
    """The robot and its base parameters."""
    robot = load_robot("sr400")
    return robot, base_parameters(robot, TERMS)


def quintic(seed: int, segments: int = SEGMENTS) -> tuple[Array, Array, Array]:
    """Point-to-point motion of fifth order through random points: q, dq, ddq, (n_samples, 6) each."""
    points = np.random.default_rng(seed).uniform(LOW, HIGH, (segments + 1, 6))
    count = round(SECONDS * RATE)
    s = (np.arange(count) / count)[:, None]
    curves = (10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 - 60 * s**3 + 30 * s**4, 60 * s - 180 * s**2 + 120 * s**3)
    steps, start = np.diff(points, axis=0)[:, None], points[:-1, None]
    parts = (steps * curve / SECONDS**order for order, curve in enumerate(curves))
    q, dq, ddq = (part.reshape(-1, 6) for part in parts)
    return q + np.repeat(start, count, axis=1).reshape(-1, 6), dq, ddq


def true_values(*, loaded: bool = False) -> dict[str, float]:
    """Base parameters of the simulated robot that are not zero: Table 4, friction of motor 7, and the load."""
    robot, base = sr400()
    values = {**robot.base_values["table4"], **printed.MOTOR_7}
    if not loaded:
        return values
    change = zip(base.names, payload_change(base, LOAD), strict=True)
    whole = {name: values.get(name, 0.0) + float(x) for name, x in change}
    return {name: value for name, value in whole.items() if abs(value) > 1e-12}


def record_run(
    robot: Robot, beta: Mapping[str, float], seed: int, *, segments: int = SEGMENTS, noise: bool = True
) -> Log:
    """A simulated log, with 16-bit positions and noisy torque.

    Args:
        robot: The SR400, perhaps with joints locked.
        beta: Its base parameters.
        seed: Of the motion and the noise.
        segments: Of the motion.
        noise: Whether torque is noisy and positions are rounded.
    """
    moving = list(robot.moving)
    q, dq, ddq = (x[:, moving] for x in quintic(seed, segments))
    tau = inverse_dynamics(robot, q, dq, ddq, TERMS, sr400()[1].standard_values(beta, "regrouped zero"))
    if noise:
        std = [NOISE[name] for name in robot.joint_names]
        tau = tau + np.random.default_rng(1000 + seed).normal(size=tau.shape) * std
        q = QUANTUM * np.round(q / QUANTUM)
    numbers = [name.removeprefix("q") for name in robot.position_names]
    channels = {f"q{n}": x for n, x in zip(numbers, q.T, strict=True)}
    channels |= {f"tau{n}": x for n, x in zip(numbers, joint_torque(robot, tau).T, strict=True)}
    return Log(f"run {seed}", f"run {seed}", np.arange(len(q)) / RATE, channels)


def record_runs(beta: Mapping[str, float], seed: int = 0, **how: bool | int) -> tuple[Log, Log]:
    """Logs of the two experiments: all joints moving, then joints 4, 5, 6 locked.

    Args:
        beta: Base parameters of the simulated robot.
        seed: Of the motions.
        **how: `segments` and `noise` of `record_run`.
    """
    robot = load_robot("sr400")
    first = record_run(robot, beta, 2 * seed, **how)  # type: ignore[arg-type]
    return first, record_run(robot.lock(**WRIST_LOCKED), beta, 2 * seed + 1, **how)  # type: ignore[arg-type]


def two_experiments(runs: tuple[Log, Log]) -> list[StageData]:
    """Rows of motors 4, 5, 6 with all joints moving; then of motors 1, 2, 7 with joints 4, 5, 6 locked."""
    robot = load_robot("sr400")
    first = experiment("wrist", robot, runs[0], TERMS, outputs=WRIST, signals=SIGNALS)
    return [first, experiment("arm", robot.lock(**WRIST_LOCKED), runs[1], TERMS, outputs=ARM, signals=SIGNALS)]


def two_steps(beta: Mapping[str, float], seed: int = 0, **how: bool | int) -> StagedEstimate:
    """Section 4.3: the wrist first, then the arm; parameters that are not significant are left out."""
    return solve_in_steps(two_experiments(record_runs(beta, seed, **how)), essential=printed.NOT_SIGNIFICANT)


def find_gains(segments: int = SEGMENTS) -> DriveGains:
    """Drive gains from signals of the drives without and with the load, of which only the mass is known."""
    robot, base = sr400()
    gains, runs = np.array([printed.TABLE_2[name][0] for name in robot.joint_names]), []
    for seed, loaded in enumerate((False, True)):
        q, dq, ddq = quintic(seed, segments)
        chi = base.standard_values(true_values(loaded=loaded), "regrouped zero")
        tau = inverse_dynamics(robot, q, dq, ddq, TERMS, chi)
        noise = np.random.default_rng(seed).normal(size=tau.shape) * list(NOISE.values())
        runs.append(accumulate(robot, q, dq, ddq, (tau + noise) / gains, TERMS))
    return identify_drive_gains(robot, runs[0], runs[1], {"M": printed.TABLE_3["M"]})


def three_models(seed: int = 3, **how: bool | int) -> tuple[BaseParameters, EnergyRows, dict[str, Estimator]]:
    """Links 5 and 6 by the energy, the power and the dynamic model, from one log with the load.

    Returns:
        Base parameters of the robot with the other joints locked, the energy rows, and the fit of each model.
    """
    wrist = load_robot("sr400").lock(**HELD)
    log = record_run(wrist, true_values(loaded=True), seed, **how)  # type: ignore[arg-type]
    observations = observe(log, wrist, ENERGY_SIGNALS)
    energy = observed_energy(observations, TERMS, length=0.4, overlap=0.5)
    power = observed_power(observations, TERMS)
    dynamic = experiment("dynamic", wrist, log, TERMS, signals=ENERGY_SIGNALS)
    data = {"energy": energy.information, "power": power.information, "dynamic": dynamic.information}
    fits: dict[str, Estimator] = {name: WeightedLeastSquares().fit(own) for name, own in data.items()}
    return base_parameters(wrist, TERMS), energy, fits


def true_base(base: BaseParameters) -> Array:
    """(n,) true base parameters, with the load, of the robot with joints locked."""
    chi = sr400()[1].standard_values(true_values(loaded=True), "regrouped zero")
    return np.asarray(base.K @ chi)


@functools.cache
def stepped_velocities() -> VelocityFriction:
    """Section 3, Figure 2: eight runs at constant velocity on the MuJoCo plant, with noise and 16-bit positions."""
    sensors = Sensors(resolution=QUANTUM, torque_noise=np.array(list(NOISE.values())))
    plant = MujocoPlant(load_robot("sr400"), "plant", sample_time=2e-3, sensors=sensors)
    return velocity_friction(plant, ["q5", "q6"], velocities=VELOCITIES)
