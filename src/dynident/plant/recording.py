"""Run a plant and keep what its controller would have logged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.dynamics.evaluate import joint_torque
from dynident.errors import InputError, UnknownNameError
from dynident.logs.log import Log, Role, channel_names
from dynident.plant.controllers import Controller, TrackingController
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.protocol import Plant, Reading
from dynident.plant.sensors import Sensors, draw_noise, noise_generators
from dynident.robot.model import Robot

KINDS = ("q", "dq", "tau", "qm", "dqm", "taum", "i", "u", "temp")


def record(
    plant: Plant,
    controller: Controller,
    duration: float | None = None,
    *,
    start: tuple[ArrayLike, ArrayLike | None] | None = None,
    every: int = 1,
    kinds: Sequence[str] | None = None,
    label: str = "",
    role: Role = "train",
) -> Log:
    """Run a plant under a controller and log its readings.

    Args:
        plant: The machine.
        controller: What commands it.
        duration: Length of the run [s]; default that of the controller's motion.
        start: Position and velocity (None: at rest) to start from; default the start of the controller's motion.
        every: Log every so many samples.
        kinds: Channels, among q, dq, tau (joint side), qm, dqm, taum (motor side), i, u, temp. Default q, i where the
            plant has currents, else tau, and temp where it warms up.
        label: Name of the log.
        role: What it is for.

    Raises:
        UnstableError: When the plant runs away.
    """
    length = _duration(controller, duration)
    if start is None:
        if not isinstance(controller, TrackingController):
            raise InputError("record: this controller follows no motion; say where to start (start=(q, dq))")
        start = controller.start_state()
    n = round(length / plant.sample_time)
    if not n >= every >= 1:
        raise InputError(f"record: {length} s at {plant.sample_time} s per sample gives no sample for every={every}")
    plant.reset(*start)
    controller.start(plant.sample_time)
    apply = plant.apply_voltage if controller.quantity == "voltage" else plant.apply_torque
    kept: list[Reading] = []
    try:
        for k in range(n + 1):
            reading = plant.read()
            if k and k % every == 0:
                kept.append(reading)
            if k < n:
                apply(controller.command(plant.time, reading))
                plant.step()
    finally:
        plant.stop()
    signals = {name: np.array([getattr(r, name) for r in kept]) for name in ("time", "q", "dq", "tau")}
    for name in ("current", "voltage"):
        if getattr(kept[0], name) is not None:
            signals[name] = np.array([getattr(r, name) for r in kept])
    if isinstance(plant, MujocoPlant) and plant.warming is not None:
        signals["temp"] = plant.warming.temperature(signals["time"], len(plant.robot.moving))
    return _log(plant.robot, signals, kinds, label, role)


def measure(
    plant: MujocoPlant,
    sensors: Sensors | None = None,
    *,
    seed: int | None = None,
    every: int = 1,
    kinds: Sequence[str] | None = None,
    label: str = "",
    role: Role = "train",
) -> Log:
    """Log a run that a simulated plant has made once more, with other sensors or another seed.

    With the plant's own sensors and seed it is the log that `record` gave. The motion stays: noise that the controller
    saw is in it already. Voltages are not known any more.

    Args:
        plant: A plant that has run.
        sensors: Sensors; default the plant's own.
        seed: Of the noise; default the plant's own.
        every: Log every so many samples.
        kinds: As in `record`.
        label: Name of the log.
        role: What it is for.
    """
    faults = plant.sensors if sensors is None else sensors
    truth = plant.truth()
    n = len(truth.time)
    if not n > every >= 1:
        raise InputError(f"measure: the plant has made {n - 1} samples; run it first, with every={every} or more")
    rows = np.arange(every, n, every)
    generators = noise_generators(plant.seed if seed is None else seed)
    normal, uniform = (drawn[rows] for drawn in draw_noise(generators, n, truth.q.shape[1]))
    stamps = np.maximum(0.0, truth.time[rows] - faults.jitter * uniform)
    q, dq = truth.motion_at(stamps)
    tau = truth.torque_at(stamps - faults.delay)
    q, dq, tau = faults.measured(plant.robot, q - plant.position_offset, dq, tau, normal)
    signals = {"time": stamps, "q": q, "dq": dq, "tau": tau}
    if plant.current_gains is not None:
        signals["current"] = tau / plant.current_gains
    if plant.warming is not None:
        signals["temp"] = plant.warming.temperature(stamps, len(plant.robot.moving))
    return _log(plant.robot, signals, kinds, label, role)


def _duration(controller: Controller, given: float | None) -> float:
    if given is None:
        if not isinstance(controller, TrackingController):
            raise InputError("record: this controller follows no motion; say how long to run (duration)")
        return controller.motion.duration
    if not (given > 0.0 and np.isfinite(given)):
        raise InputError(f"record: duration is {given} s; expected a positive time")
    return given


def _log(robot: Robot, signals: Mapping[str, Array], kinds: Sequence[str] | None, label: str, role: Role) -> Log:
    usual = ("q", "i" if "current" in signals else "tau", *(["temp"] if "temp" in signals else []))
    chosen = tuple(kinds or usual)
    channels: dict[str, Array] = {}
    for kind in chosen:
        channels.update(zip(channel_names(kind, robot), _signal(robot, signals, kind).T, strict=True))
    digest = hashlib.sha256()
    for values in (signals["time"], *channels.values()):
        digest.update(np.ascontiguousarray(values).tobytes())
    return Log("simulation", digest.hexdigest(), signals["time"], channels, label=label, role=role)


def _signal(robot: Robot, signals: Mapping[str, Array], kind: str) -> Array:
    """One kind of channel, (n_samples, n_moving)."""
    if kind not in KINDS:
        raise UnknownNameError("kind of channel", kind, KINDS)
    if kind == "temp" and kind not in signals:
        raise InputError("the plant knows no temperature; let it warm up, or log other channels")
    if kind in ("q", "dq", "temp"):
        return signals[kind]
    if kind == "tau":
        return joint_torque(robot, signals["tau"])
    if kind in ("i", "u"):
        name = {"i": "current", "u": "voltage"}[kind]
        if name not in signals:
            remedy = {"i": "give the robot drive_gains or the plant motors", "u": "command voltages"}[kind]
            raise InputError(f"the plant has no {name}; {remedy}, or log other channels")
        return signals[name]
    moving = list(robot.moving)
    ratios = robot.drive.gear_ratios[moving]
    if kind == "taum":
        return np.asarray(signals["tau"] / ratios)
    if robot.locked:
        raise InputError("motor positions need a robot without locked joints; log the joint side")
    joint = signals["q"] - robot.zero[moving] if kind == "qm" else signals["dq"]
    return np.asarray(joint @ robot.coupling.T * ratios)
