"""`simulate`: a motion on the MuJoCo plant, as a log that a real controller could have written."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import InputError, UnknownNameError
from dynident.logs.log import Log
from dynident.logs.read import read_log
from dynident.motion.limits import check_locked
from dynident.motion.thresholds import THRESHOLDS as MOTION_THRESHOLDS
from dynident.motion.trajectory import SampledMotion
from dynident.options import keywords
from dynident.plant.controllers import TRACKING, Motion
from dynident.plant.effects import Breakaway
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.options import SimulateOptions
from dynident.plant.protocol import UnstableError
from dynident.plant.recording import KINDS, measure, record
from dynident.plant.sensors import Sensors, Truth
from dynident.plant.warming import Warming
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_efforts, believed_limits

CONTROL_RATE = 1000.0  # [Hz] at least, of the controller
FAR, FARTHEST = 0.1, 0.2  # [rad or m] from the motion; beyond, and without the torque, the robot has lost it
RUNAWAY = 5.0  # times the fastest velocity that was asked for, off which a joint has left its motion
LEAST_FAST = 1.0  # [rad/s] the same, where hardly any velocity was asked for; a slide's radian is METERS_PER_RADIAN
FLIPS = 10  # jumps of a torque from one effort limit to the other between two samples that no motion asks for
MOST_SAMPLES = 1e7  # steps of the controller: hours of motion
TURN = 2.0 * math.pi


@dataclass(frozen=True)
class Simulation:
    """A simulated run.

    Attributes:
        log: What the controller logged.
        truth: The true signals at the controller's samples.
        tracking: (n_moving,) largest distance from the motion [rad or m].
        loop_gap: Largest gap of a loop [rad or m].
        warnings: What a user should know.
    """

    log: Log
    truth: Truth
    tracking: Array
    loop_gap: float
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Numbers about the run."""
        return {
            "samples": len(self.log),
            "duration": self.log.duration,
            "rate": self.log.rate,
            "tracking": self.tracking.tolist(),
            "loop_gap": self.loop_gap,
            "peak_torque": np.abs(self.truth.tau).max(axis=0).tolist(),
            "warnings": list(self.warnings),
        }


WARM_UPS = 3.0  # time constants of the warm-up that a motion lasts


@keywords(SimulateOptions)
def simulate(robot: Robot, motion: Motion, options: SimulateOptions) -> Simulation:
    """Let a robot follow a motion on the MuJoCo plant.

    Args:
        robot: The robot; its controller knows its own values, the machine has `values`.
        motion: Any object with `duration` and `sample(t) -> (q, dq, ddq)`.
        options: What shapes the log.

    Raises:
        UnstableError: With time and joint, when the simulation runs away or the robot leaves its motion.
    """
    for kind in options.kinds or ():
        if kind not in KINDS:
            raise UnknownNameError("kind of channel", kind, KINDS)
    _check_motion(robot, motion, options)
    every = max(1, math.ceil(CONTROL_RATE / options.rate - 1e-9))
    if options.jitter >= 1.0 / options.rate:
        raise InputError(f"jitter is {options.jitter:g} s; expected less than the time between samples")
    prismatic = np.array([joint.kind == "prismatic" for joint in robot.moving_joints])
    counts = np.where(prismatic, 1.0, TURN) / options.encoder if options.encoder else np.zeros(len(prismatic))
    plant = MujocoPlant(
        robot,
        options.values,
        sample_time=1.0 / (every * options.rate),
        breakaway=None if options.breakaway == 1.0 else Breakaway(options.breakaway),
        effects=options.effects,
        sensors=Sensors(resolution=counts, delay=options.delay, jitter=options.jitter),
        warming=Warming(options.warm_up, motion.duration / WARM_UPS) if options.warm_up else None,
        payload=options.payload,
        payload_at=options.payload_at,
        seed=options.seed,
    )
    # Gains are tuned on the machine; a description without rotors would leave the feedback far too soft.
    make = TRACKING[options.controller]
    controller = make(robot, motion, bandwidth=options.bandwidth, tuned_to=options.values)
    record(plant, controller, every=every)
    truth = plant.truth()
    # Torque noise is known once the torque is; the controller does not look at it.
    effective = np.sqrt(np.mean(truth.tau**2, axis=0))
    sensors = replace(
        plant.sensors, torque_noise=options.relative_noise * effective, torque_bias=options.bias * effective
    )
    log = measure(plant, sensors, every=every, kinds=options.kinds)
    wanted, velocity, _ = (np.asarray(x) for x in motion.sample(np.minimum(truth.time, motion.duration)))
    seen = replace(truth, q=truth.q - plant.position_offset)  # as encoders read it
    _check_tracking(robot, seen, wanted, velocity, plant.saturated)
    _check_torque(robot, truth, options.bandwidth)
    warnings = _warnings(robot, wanted, seen, plant.saturated)
    return Simulation(log, truth, np.abs(seen.q - wanted).max(axis=0), plant.loop_gap, warnings)


def _check_motion(robot: Robot, motion: Motion, options: SimulateOptions) -> None:
    """Refuse a motion of other joints, one that starts where the robot cannot be, and times that it does not have."""
    check_locked(robot)
    names = tuple(getattr(motion, "joints", ())) or robot.joint_names
    start = np.asarray(motion.sample(np.zeros(1))[0])[0]
    if names != robot.joint_names or len(start) != len(names):
        whose = f"joints {', '.join(names)}" if len(start) == len(names) else f"{len(start)} joints"
        raise InputError(
            f"the motion is for {whose}; robot {robot.name} moves {', '.join(robot.joint_names)}: give a motion that "
            "was made for it, with the same joints locked"
        )
    length = motion.duration
    samples = length * max(options.rate, CONTROL_RATE)
    if length * options.rate < 1.0:
        raise InputError(f"rate is {options.rate:g} Hz, which gives no sample in the {length:g} s of the motion")
    if samples > MOST_SAMPLES:
        raise InputError(
            f"{length:g} s at {max(options.rate, CONTROL_RATE):g} Hz are {samples:.2g} steps of the controller, more "
            f"than {MOST_SAMPLES:.0e}; lower the rate or shorten the motion"
        )
    for name in ("delay", "payload_at"):
        if getattr(options, name) >= length:
            raise InputError(f"{name} is {getattr(options, name):g} s, but the motion lasts only {length:g} s")
    for k, (joint, limits) in enumerate(zip(robot.moving_joints, believed_limits(robot), strict=True)):
        low, high = limits.span
        beyond = max(low - start[k], start[k] - high)
        if beyond > MOTION_THRESHOLDS.pose_tolerance:
            raise InputError(
                f"the motion starts outside the limits: joint {joint.name} at {start[k]:.4g} {joint.unit}, "
                f"{beyond:.3g} beyond {low:.4g} to {high:.4g}; shift the motion or correct the limits"
            )


def _check_tracking(robot: Robot, seen: Truth, q: Array, dq: Array, saturated: frozenset[str]) -> None:
    """A run that leaves its motion logs something else than was asked for.

    A joint has left it when it moves several times as fast as any joint was asked to, or is farther from its place than
    if it had stood in the middle of its way all the time; with an effort limit reached, when it is `FARTHEST` away.

    Args:
        robot: The robot.
        seen: The run, (n_samples, n_moving).
        q: Positions that were asked for, (n_samples, n_moving).
        dq: Velocities that were asked for.
        saturated: Joints that reached their effort limit.
    """
    apart, faster = np.abs(seen.q - q), np.abs(seen.dq - dq)
    units = robot.radians
    far = np.maximum(FARTHEST, 0.0 if saturated else 0.5 * np.ptp(q, axis=0))
    fast = units * max(LEAST_FAST, RUNAWAY * float((np.abs(dq) / units).max()))
    lost = (apart > far) | (faster > fast)
    if not lost.any():
        return
    first = int(np.argmax(lost.any(axis=1)))
    joint = int(np.argmax(np.maximum(apart[first] / far, faster[first] / fast)))
    name, unit = robot.joint_names[joint], robot.moving_joints[joint].unit
    if faster[first, joint] > fast[joint]:
        what = f"joint {name} moves at {seen.dq[first, joint]:.3g} {unit}/s where {dq[first, joint]:.2g} was asked for"
    else:
        what = f"joint {name} is {apart[first, joint]:.2g} {unit} away"
    if saturated:
        what += f", and {', '.join(sorted(saturated))} reached the effort limit"
        remedy = "slow the motion down or lower the bandwidth"
    elif faster[first, joint] > fast[joint]:
        remedy = "lower the bandwidth, or choose another controller"
    else:
        remedy = "raise the bandwidth, choose another controller, or give the controller values nearer to the machine's"
    time = float(seen.time[first])
    raise UnstableError(time, name, f"the robot lost its motion at t = {time:.4g} s: {what}; {remedy}")


def _check_torque(robot: Robot, truth: Truth, bandwidth: float) -> None:
    """A loop that is too fast for its samples does not run away where effort is limited: it jumps between limits."""
    side = np.where(np.abs(truth.tau) >= (1.0 - 1e-6) * believed_efforts(robot), np.sign(truth.tau), 0.0)
    flips = side[1:] * side[:-1] < 0.0
    if flips.sum(axis=0).max(initial=0) < FLIPS:
        return
    unstable = np.flatnonzero(flips.sum(axis=0) >= FLIPS)
    firsts = np.argmax(flips[:, unstable], axis=0)
    joint, first = int(unstable[np.argmin(firsts)]), int(firsts.min())
    name, time = robot.joint_names[joint], float(truth.time[first + 1])
    raise UnstableError(
        time,
        name,
        f"the simulation became unstable at t = {time:.4g} s: joint {name} jumps between its effort limits from sample "
        f"to sample; lower the bandwidth, {bandwidth:g} rad/s",
    )


def _warnings(robot: Robot, wanted: Array, truth: Truth, saturated: frozenset[str]) -> tuple[str, ...]:
    found = []
    for k, (joint, limits) in enumerate(zip(robot.moving_joints, believed_limits(robot), strict=True)):
        unit = joint.unit
        low, high = limits.lower, limits.upper
        beyond = [] if low is None else [low - float(wanted[:, k].min())]
        beyond += [] if high is None else [float(wanted[:, k].max()) - high]
        if max(beyond, default=0.0) > 1e-9:
            found.append(f"joint {joint.name}: the motion leaves its position limits by {max(beyond):.3g} {unit}")
        velocity, limit = float(np.abs(truth.dq[:, k]).max()), limits.velocity
        if limit is not None and velocity > limit * (1.0 + 1e-6):
            found.append(f"joint {joint.name}: reaches {velocity:.3g}, above its velocity limit {limit:.3g} {unit}/s")
        away = float(np.abs(truth.q[:, k] - wanted[:, k]).max())
        if away > FAR:
            found.append(f"joint {joint.name}: is up to {away:.2g} {unit} away from its motion; raise the bandwidth")
        if joint.name in saturated:
            found.append(f"joint {joint.name}: its torque reached the effort limit {joint.limits.effort:.4g}")
    return tuple(found)


def read_motion(path: str | PathLike[str], robot: Robot) -> Motion:
    """A motion from a file: a trajectory (.yaml), or a table with t, q1.. and perhaps dq1.., ddq1.. (.csv, ..)."""
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        try:
            load = import_module("dynident.motion").load_trajectory
        except (ImportError, AttributeError):
            raise InputError(f"{path}: trajectories in YAML are not known; give a table with t, q1, ..") from None
        trajectory: Motion = load(path)
        return trajectory
    return SampledMotion.from_log(read_log(path, robot), robot)
