"""`Sweep`: one joint goes slowly there and back while the others are held."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, on_one_thread, record
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.loop_assembly import all_active, assembly
from dynident.errors import InputError
from dynident.experiments.bench import Bounds, home_pose, joint_place
from dynident.experiments.gravity.structure import GravityBase, SweepStage, gravity_columns, stages
from dynident.experiments.options import MOST_SWEEP_POSES, GravityOptions
from dynident.experiments.thresholds import GRAVITY
from dynident.plant.controllers import ComputedTorque
from dynident.plant.protocol import Reading
from dynident.robot.model import Robot

RAMP = 1.0  # [s] in which the velocity is reached
REST = 0.5  # [s] at rest before, at the turn and after, in which the arm calms down


@record
class Sweep:
    """A slow motion of one joint, as a `Motion` that a controller can follow.

    Attributes:
        joint: Place in the robot's moving joints.
        pose: (n_moving,) where the joints are held [rad or m]; the swept joint's own entry is the middle of its range.
        lower: Where it starts [rad or m].
        upper: Where it turns.
        velocity: In between [rad/s or m/s].
    """

    joint: int
    pose: Array
    lower: float
    upper: float
    velocity: float

    def __post_init__(self) -> None:
        if not (self.upper > self.lower and math.isfinite(self.upper - self.lower)):
            raise InputError(f"a sweep goes from {self.lower:g} to {self.upper:g}; expected a range")
        if not (self.velocity > 0.0 and math.isfinite(self.velocity)):
            raise InputError(f"the velocity of a sweep is {self.velocity:g}; expected a positive number [rad/s or m/s]")

    @property
    def cruise(self) -> float:
        """Time at full velocity, one way [s]."""
        return max((self.upper - self.lower) / self.velocity - RAMP, 0.0)

    @property
    def duration(self) -> float:
        """There and back [s]."""
        return 2.0 * self._one_way + 3.0 * REST

    @property
    def _one_way(self) -> float:
        return self.cruise + 2.0 * RAMP

    def sample(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at times (n,), (n, n_moving) each."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        back = REST + self._one_way + REST
        there = self._leg(times - REST)
        again = self._leg(times - back)
        motion = [np.tile(self.pose, (len(times), 1)), *np.zeros((2, len(times), len(self.pose)))]
        for kind, (ahead, home) in enumerate(zip(there, again, strict=True)):
            motion[kind][:, self.joint] = ahead - home + (self.lower if kind == 0 else 0.0)
        return motion[0], motion[1], motion[2]

    def _leg(self, t: Array) -> tuple[Array, Array, Array]:
        """Way, velocity and acceleration of going the range once, from time 0; velocity rises as half a cosine."""
        # A range that is too short for full velocity is gone at a lower one, in two ramps.
        velocity = min(self.velocity, (self.upper - self.lower) / RAMP)
        up, down = np.clip(t, 0.0, RAMP), np.clip(t - RAMP - self.cruise, 0.0, RAMP)
        even, w = np.clip(t - RAMP, 0.0, self.cruise), math.pi / RAMP
        way = 0.5 * (up - np.sin(w * up) / w) + even + 0.5 * (down + np.sin(w * down) / w)
        moving = (t > 0.0) & (t < self._one_way)
        rate = 0.5 * (1.0 - np.cos(w * up)) - 0.5 * (1.0 - np.cos(w * down))
        bend = 0.5 * w * (np.sin(w * up) - np.sin(w * down))
        return velocity * way, np.where(moving, velocity * rate, 0.0), np.where(moving, velocity * bend, 0.0)


# ----------------------------------------------------------------------------------------------------------------------
# Which joint to sweep, over which angles, and where to hold the others.

SPAN, SLIDE = math.pi / 3.0, 0.2  # [rad], [m] to either side, unless given
VELOCITY, SLIDE_VELOCITY = 0.2, 0.25  # [rad/s], and what of it joints that slide have [m/s]
_MARGIN = 0.05  # [rad or m] kept from a limit
_SHARE = 0.2  # of a joint's fastest velocity, beyond which a sweep is not slow
RUN_IN = 0.5 * RAMP + GRAVITY.settling_s + 0.2  # [s] at the sweep's velocity, by which each end is further
_CHANGES = (math.pi / 4, -math.pi / 4, math.pi / 2, -math.pi / 2)  # of held joints, to make weight show
_ANGLES = 9  # at which a sweep is evaluated before it is made
_ENOUGH = 0.05  # of gravity: how clearly the least clear moment must show
_NEAR = 0.8  # share of the best, from which on a pose nearer to the home pose is preferred
_CLEAR = 0.05  # pivot of loops at a pose


def describe(robot: Robot, sweep: Sweep) -> str:
    """A sweep in words."""
    held = [f"{name}={x:.4g}" for i, (name, x) in enumerate(zip(robot.position_names, sweep.pose, strict=True))]
    others = ", ".join(text for i, text in enumerate(held) if i != sweep.joint)
    name = robot.joint_names[sweep.joint]
    way = f"{name} from {sweep.lower:.3f} to {sweep.upper:.3f} and back at {sweep.velocity:.3g} a second"
    return f"{way}, {sweep.duration:.0f} s" + (f", with {others}" if others else "")


@on_one_thread
def plan_sweeps(base: GravityBase, options: GravityOptions) -> tuple[list[Sweep], list[str]]:
    """The sweeps of a robot, from the tip inwards, and notes on what was decided on the way.

    Joints are held in the middle of their ranges where a pose does not say otherwise; a swept joint's own entry is the
    middle of its sweep. A sweep goes a little further than its span, to come to its velocity and to rest, and by
    default no faster than a fifth of the joint's fastest.

    Args:
        base: What gravity shows of the robot.
        options: Joints, poses, span and velocity.
    """
    robot = base.robot
    wanted = None
    if options.joints is not None:
        wanted = tuple(joint_place(robot, name, "joint to sweep") for name in options.joints)
    given = [_given_pose(robot, one) for one in options.poses]
    notes: list[str] = []
    sweeps: list[Sweep] = []
    for stage in stages(base, wanted):
        choices = {j: _sweeps(robot, j, given or _poses(robot, j), options) for j in stage.joints}
        for own in choices.values():
            notes += _note_short_range(robot, own[0], options)
        every = [one for own in choices.values() for one in own]
        sweeps += every if given else _choose_sweeps(base, stage, choices, options.least_poses)
    return sweeps, notes


def _given_pose(robot: Robot, pose: Mapping[str, float]) -> Array:
    held, bounds = home_pose(robot), Bounds.of(robot)
    for name, value in pose.items():
        if not math.isfinite(value):
            raise InputError(f"pose: {name} is {value}; expected a finite number")
        i = joint_place(robot, name, "joint of a pose")
        low, high = bounds.lower[i], bounds.upper[i]
        if not low <= value <= high:
            raise InputError(f"pose: {name} is {value:g}, beyond its limits {low:g} to {high:g}")
        held[i] = value
    return held


def _slides(robot: Robot, i: int) -> bool:
    return robot.moving_joints[i].kind == "prismatic"


def _poses(robot: Robot, joint: int) -> list[Array]:
    """The home pose, and those with one or two of the held joints elsewhere; few changes first."""
    middle, bounds = home_pose(robot), Bounds.of(robot)
    changes: list[list[tuple[int, float]]] = [[]]
    held = [i for i in range(len(middle)) if i != joint and not _slides(robot, i)]
    for count in (1, 2):
        for some in itertools.combinations(held, count):
            changes += [list(zip(some, by, strict=True)) for by in itertools.product(_CHANGES, repeat=count)]
    poses = np.tile(middle, (len(changes), 1))
    fine = np.ones(len(changes), dtype=bool)
    for pose, change, row in zip(poses, changes, range(len(changes)), strict=True):
        for i, by in change:
            pose[i] += by
            fine[row] &= bounds.lower[i] + _MARGIN <= pose[i] <= bounds.upper[i] - _MARGIN
    if robot.closure is not None:
        fine &= assembly(robot).pivots(all_active(robot, poses)) > _CLEAR
    fine[0] = True
    return list(poses[fine])


def _sweeps(robot: Robot, joint: int, poses: Sequence[Array], options: GravityOptions) -> list[Sweep]:
    bounds = Bounds.of(robot)
    slow = (options.sweep_velocity or VELOCITY) * (SLIDE_VELOCITY if _slides(robot, joint) else 1.0)
    if options.sweep_velocity is None:
        slow = min(slow, _SHARE * float(bounds.velocity[joint]))
    half = _half(robot, joint, options) + slow * RUN_IN
    low, high = float(bounds.lower[joint]), float(bounds.upper[joint])
    found = []
    for pose in poses:
        lower, upper = max(low + _MARGIN, pose[joint] - half), min(high - _MARGIN, pose[joint] + half)
        if upper <= lower:
            raise InputError(f"joint {robot.joint_names[joint]} has no room between its limits {low:g} and {high:g}")
        middle = pose.copy()
        middle[joint] = 0.5 * (lower + upper)
        found.append(Sweep(joint, middle, lower, upper, slow))
    return found


def _note_short_range(robot: Robot, sweep: Sweep, options: GravityOptions) -> list[str]:
    wanted = 2.0 * _half(robot, sweep.joint, options)
    reached = sweep.upper - sweep.lower - 2.0 * sweep.velocity * RUN_IN
    if reached > wanted - 1e-9:
        return []
    ends = f"{wanted:.3g} m to {reached:.3g} m"
    if not _slides(robot, sweep.joint):
        ends = f"{math.degrees(wanted):.0f} to {math.degrees(reached):.0f} degrees"
    return [f"joint {robot.joint_names[sweep.joint]}: its limits shorten the range from {ends}"]


def _half(robot: Robot, joint: int, options: GravityOptions) -> float:
    """Half the range that is wanted of a joint [rad or m]."""
    return SLIDE if _slides(robot, joint) else options.span or SPAN


def _choose_sweeps(base: GravityBase, stage: SweepStage, choices: Mapping[int, list[Sweep]], least: int) -> list[Sweep]:
    """For each joint the pose that shows most of what the stage adds, and further ones where one is not enough."""
    rows = {j: _rows(base, stage, own) for j, own in choices.items()}
    taken: list[tuple[int, int]] = []
    enough = _ENOUGH * float(np.linalg.norm(base.robot.gravity))

    def clear(more: list[tuple[int, int]]) -> float:
        every = np.concatenate([rows[j][k] / math.sqrt(_ANGLES) for j, k in more])
        if every.shape[1] == 0 or len(every) < every.shape[1]:
            return 0.0
        return float(np.linalg.svd(every, compute_uv=False)[-1])

    def best(j: int) -> tuple[int, int]:
        scores = [clear([*taken, (j, k)]) for k in range(len(rows[j]))]
        return j, next(k for k, score in enumerate(scores) if score >= _NEAR * max(scores))

    for count in range(MOST_SWEEP_POSES):
        if count >= least and taken and clear(taken) >= enough:
            break
        before = clear(taken) if taken else 0.0
        fresh = [best(j) for j in stage.joints]
        if count >= least and clear([*taken, *fresh]) < 1.2 * before:
            break
        taken += [one for one in fresh if one not in taken]
    return [choices[j][k] for j, k in sorted(taken, key=lambda one: stage.joints.index(one[0]))]


def _rows(base: GravityBase, stage: SweepStage, sweeps: Sequence[Sweep]) -> Array:
    """Torque over sweeps of one joint per parameter that the stage adds, (n_sweeps, n_angles, n_fresh).

    Without its mean over a sweep, which an offset would hide.
    """
    joint = sweeps[0].joint
    q = np.repeat(np.array([sweep.pose for sweep in sweeps])[:, None], _ANGLES, axis=1)
    # Ends are for coming to velocity and to rest; a sweep that is little more than ends still has a middle.
    ends = [min(sweep.velocity * RUN_IN, 0.4 * (sweep.upper - sweep.lower)) for sweep in sweeps]
    pairs = zip(sweeps, ends, strict=True)
    q[:, :, joint] = [np.linspace(sweep.lower + end, sweep.upper - end, _ANGLES) for sweep, end in pairs]
    fresh = [base.independent[i] for i in stage.fresh]
    torque = gravity_columns(base.robot, q.reshape(-1, q.shape[2]))[:, joint, fresh]
    rows = torque.reshape(len(sweeps), _ANGLES, len(fresh))
    return rows if _slides(base.robot, joint) else rows - rows.mean(axis=1, keepdims=True)


# ----------------------------------------------------------------------------------------------------------------------
# `Steady`: a controller for slow sweeps, with integral action that compensates unknown gravity torque.

_INTEGRAL = 0.25  # of the bandwidth: how fast it takes over what springs would have to hold


class Steady(ComputedTorque):
    """Inverse dynamics with the robot's own values, and an integral that takes over what they get wrong.

    Without the integral a weight that is not known would bend the springs, and the arm would not be where it should;
    with springs alone, joint by joint, the arm would swing for seconds after each change of velocity.
    """

    def _prepare(self, q: Array, dq: Array, ddq: Array) -> None:
        # Viscous friction of the wanted velocity: that of the measured one drives a joint that has less of it.
        values = self.values if isinstance(self.values, Mapping) else self.robot.value_set(self.values)
        self.values = {name: x for name, x in values.items() if not name.startswith("Fv")}
        super()._prepare(q, dq, ddq)
        self._friction = self._friction + inverse_dynamics(self.robot, q, dq, ddq, "Fv", values)
        self._sum = np.zeros(q.shape[1])

    def _torque(self, k: int, reading: Reading, error: Array, velocity_error: Array) -> Array:
        self._sum += error * self._sample_time
        more = _INTEGRAL * self.bandwidth * self._sum
        return super()._torque(k, reading, error + more, velocity_error)
