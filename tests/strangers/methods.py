"""Every method on any stranger: what it found against the truth, in stated standard deviations.

A method returns a `Calibration` or raises the `DynidentError` in which it refuses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

import dynident as di
from dynident.experiments.bench import Bench
from dynident.experiments.step.controller import default_motors
from dynident.logs.log import joint_positions, row_torques
from dynident.pipeline.known_payload import check_known_payload
from dynident.pipeline.stage_file import StageRule
from dynident.plant import Feedforward, Payload
from dynident.plant.recording import record
from tests.strangers.stranger import Calibration, Stranger, calibration, robot_limits

BODY = Payload(1.4, (0.02, -0.01, 0.05), (0.006, 0.0005, -0.0003, 0.005, 0.0004, 0.004))
CLASSICAL = (BODY.mass, *BODY.com, *(BODY.inertia[k] for k in (0, 3, 5, 1, 2, 4)))
HEAVY = Payload(3.0, (0.03, -0.02, 0.08), (0.012, 0.0005, -0.0003, 0.011, 0.0004, 0.006))
PICKED = 4.0  # [s]
SLOW = {"sample_time": 4e-3, "step": 2e-3}  # [s] of plants that move slowly


def identify(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters from one log."""
    fit = di.identify(stranger.described, stranger.log(seed), friction="basic")
    return _determined(fit.names, fit.beta, fit.std, stranger.base_truth(fit.base))


def sequential(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters, one torque after the other (Khosla & Kanade 1987)."""
    return _fitted(stranger, stranger.log(seed), sequential="online")


def offline(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters from logs in which the joints below are locked, the tip's first (Khosla & Kanade 1987)."""
    n = len(stranger.described.joint_names)
    logs = [stranger.held_log(100 * seed + k, range(k)) for k in range(n)]
    return _fitted(stranger, logs, sequential="offline")


def stages(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters of the wrist with all joints moving, then those of the arm with the wrist locked (paper 2)."""
    names = stranger.described.joint_names
    wrist = range(len(names) // 2, len(names))
    whole, arm = stranger.log(seed), stranger.held_log(seed + 100, wrist)
    rules = (
        StageRule("wrist", (whole.label,), outputs=[names[j] for j in wrist]),
        StageRule("arm", (arm.label,), locked=[names[j] for j in wrist]),
    )
    return _fitted(stranger, [whole, arm], stages=rules)


def energy(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters from the energy model (Gautier et al. 1995)."""
    return _fitted(stranger, [stranger.log(seed + 100 * k) for k in range(3)], model="energy")


def power(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters from the power model (Gautier et al. 1995)."""
    return _fitted(stranger, [stranger.log(seed + 100 * k) for k in range(3)], model="power")


def _fitted(stranger: Stranger, logs, **options) -> Calibration:
    fit = di.identify(stranger.described, logs, check="off", **options)
    return _determined(fit.names, fit.beta, fit.std, stranger.base_truth(fit.base))


def gravity_sweeps(stranger: Stranger, seed: int, joints: Sequence[str] | None = None) -> Calibration:
    """Gravity moments from slow sweeps of the machine."""
    found = di.experiments.gravity_moments(stranger.plant(seed, **SLOW), joints=joints, true=stranger.truth)
    return _quantities(found.estimates)


def gravity_sinusoids(stranger: Stranger, seed: int, joints: Sequence[str] | None = None) -> Calibration:
    """Gravity moments from logs in which one joint at a time follows a sinusoid (Abhishek et al.)."""
    logs = sinusoids(stranger, seed, joints or stranger.described.joint_names, period=20.0)
    found = di.experiments.gravity_from_logs(stranger.described, logs, joints=joints)
    truth = found.base.values(stranger.truth)
    return _determined(found.names, found.values, found.std, truth)


def constant_velocity(stranger: Stranger, seed: int, joints: Sequence[str] | None = None) -> Calibration:
    """Friction from runs at constant velocities."""
    found = di.experiments.velocity_friction(stranger.plant(seed, **SLOW), joints)
    names = [one.name for one in found.estimates]
    truth = [stranger.truth.get(name, 0.0) for name in names]
    return _determined(names, [one.value for one in found.estimates], [one.std for one in found.estimates], truth)


def step(stranger: Stranger, seed: int, joints: Sequence[str] | None = None) -> Calibration:
    """Inertia combinations, damping and Coulomb friction from steps of voltage (Kim 1990)."""
    motors = default_motors(stranger.described)
    found = di.experiments.step_test(
        Bench(stranger.plant(seed, motors=motors)), motors, di.experiments.StepOptions(joints=joints, seed=seed)
    )
    robot = found.robot.with_values("truth", stranger.truth)
    combinations = found.combinations
    if combinations is not None:
        combinations = combinations.replace(coordinates=dataclasses.replace(found.base, robot=robot))
    found = dataclasses.replace(found, robot=robot, combinations=combinations).beside("truth")
    return _quantities([one for one in found.estimates if one.true is not None])


def oscillation(stranger: Stranger, seed: int) -> Calibration:
    """Weights and inertias from free oscillations of the machine without friction (Jamisola et al.)."""
    found = di.experiments.oscillate(stranger.plant(seed, friction=False, **SLOW))
    return _quantities(found.beside(stranger.values(friction=False)).estimates)


def payload(stranger: Stranger, seed: int) -> Calibration:
    """The body on the tool, off-line, beside a fit without it."""
    fit = di.identify(stranger.described, [stranger.log(seed), stranger.log(seed + 100)], friction="basic")
    found = di.identify_payload(fit, stranger.log(seed + 200, payload=BODY))
    return _body(found.numbers)


def known_payload(stranger: Stranger, seed: int) -> Calibration:
    """What a known body changes in the base parameters, against what a second identification finds (paper 2)."""
    fit = di.identify(stranger.described, [stranger.log(seed), stranger.log(seed + 100)], friction="basic")
    loaded = [stranger.log(seed + 200, payload=BODY), stranger.log(seed + 300, payload=BODY)]
    found = check_known_payload(fit, loaded, [BODY.mass, *BODY.com, *BODY.inertia])
    rows = [row for row in found.parameters.rows if np.isfinite(row.deviations)]
    spread = [np.hypot(row.unloaded_std, row.loaded_std) for row in rows]
    return calibration(
        [row.name for row in rows], [row.loaded for row in rows], spread, [row.predicted for row in rows]
    )


def drive_gains(stranger: Stranger, seed: int) -> Calibration:
    """Drive gains of logs with currents, without and with a body of known mass; the robot's file knows none."""
    n = len(stranger.described.joint_names)
    rng = np.random.default_rng([seed, 77])
    gains = rng.choice([-1.0, 1.0], n) * rng.uniform(0.3, 20.0, n)
    bare = [_currents(stranger, stranger.log(seed + 100 * k), gains) for k in range(2)]
    loaded = [_currents(stranger, stranger.log(seed + 200 + 100 * k, payload=HEAVY), gains) for k in range(2)]
    found = di.payload.drive_gains_from_logs(stranger.described, loaded, unloaded=bare, known=HEAVY.mass)
    return calibration(found.found.joints, found.found.gains, found.std, gains)


def _currents(stranger: Stranger, log: di.Log, gains: np.ndarray) -> di.Log:
    """The log with motor currents in place of torque."""
    robot = stranger.described
    torque = row_torques(log, robot) / gains
    channels = {name: x for name, x in log.channels.items() if not name.startswith("tau")}
    for j, name in enumerate(robot.position_names):
        channels[f"i{name.removeprefix('q')}"] = torque[:, j]
    return dataclasses.replace(log, channels=channels)


def payload_online(stranger: Stranger, seed: int) -> Calibration:
    """The body on the tool, on-line, picked at an instant; its mass in the change record and the instant too."""
    fit = di.identify(stranger.described, [stranger.log(seed), stranger.log(seed + 100)], friction="basic")
    log = stranger.log(seed + 200, payload=BODY, payload_at=PICKED)
    live = di.OnlineIdentifier(stranger.described, prior=fit, payload=True)
    live.update_many(log.time, joint_positions(log, stranger.described), row_torques(log, stranger.described))
    state = live.state()
    return _body(state.payload.numbers)


def link_by_link(stranger: Stranger, seed: int) -> Calibration:
    """Base parameters on-line, each joint with the links beyond as known (Khosla & Kanade 1987)."""
    robot, log = stranger.described, stranger.log(seed)
    live = di.OnlineIdentifier(robot, estimator="link-by-link", terms="rigid,Ia,Fv,Fc,Fo")
    live.update_many(log.time, joint_positions(log, robot), row_torques(log, robot))
    state = live.state()
    return _determined(state.names, state.values, state.std, stranger.base_truth(live.known.base))


METHODS: dict[str, Callable[[Stranger, int], Calibration]] = {
    "identify": identify,
    "sequential": sequential,
    "sequential, off-line": offline,
    "stages": stages,
    "energy": energy,
    "power": power,
    "gravity, sweeps": gravity_sweeps,
    "gravity, sinusoids": gravity_sinusoids,
    "constant velocity": constant_velocity,
    "step": step,
    "oscillation": oscillation,
    "payload": payload,
    "payload, known": known_payload,
    "drive gains": drive_gains,
    "payload on-line": payload_online,
    "link by link": link_by_link,
}


def sinusoids(stranger: Stranger, seed: int, joints: Sequence[str], period: float) -> list[di.Log]:
    """Logs of joints that move alone along a sinusoid about the middle of their range."""
    robot = stranger.described
    lower, upper = (robot_limits(robot, key) for key in ("lower", "upper"))
    start = 0.3 * upper + 0.7 * lower
    logs = []
    for j in map(robot.joint_names.index, joints):
        amplitude = np.zeros(len(lower))
        amplitude[j] = min(0.6 * (upper - lower)[j], 2.0 * np.pi / 3.0)
        frequency = np.full(len(lower), 1.0 / period)
        motion = di.trajectories.Sinusoid(start=start, amplitude=amplitude, frequency=frequency, length=2.0 * period)
        plant = stranger.plant(1000 * seed + j, **SLOW)
        logs.append(record(plant, Feedforward(robot, motion), every=3, kinds=("q", "tau"), label=f"joint {j + 1}"))
    return logs


def _determined(names, values, std, truth) -> Calibration:
    known = np.isfinite(np.asarray(std, float))
    assert known.any()
    return calibration(
        [name for name, own in zip(names, known, strict=True) if own],
        *(np.asarray(x, float)[known] for x in (values, std, truth)),
    )


def _quantities(found) -> Calibration:
    return _determined(
        [one.name for one in found],
        [one.value for one in found],
        [one.std for one in found],
        [one.true for one in found],
    )


def _body(numbers) -> Calibration:
    known = [(one, true) for one, true in zip(numbers, CLASSICAL, strict=True) if one.value is not None]
    return calibration(
        [one.name for one, _ in known],
        [one.value for one, _ in known],
        [one.std for one, _ in known],
        [x for _, x in known],
    )
