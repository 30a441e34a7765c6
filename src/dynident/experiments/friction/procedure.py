"""`velocity_friction`: run a plant at stepped constant velocities and fit its friction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import regressor
from dynident.estimate.fit import Fit
from dynident.experiments.bench import Bench, Bounds, Run
from dynident.experiments.friction.fitting import fit_friction, shapes
from dynident.experiments.friction.from_logs import log_stretches, points_of_log
from dynident.experiments.friction.groups import JointGroup, check_held, check_tested, joint_groups, quiet_pose
from dynident.experiments.friction.links import TERMS, Links, acceleration_columns
from dynident.experiments.friction.plan import ThereAndBack, joint_range, plan_levels, prolong_level
from dynident.experiments.friction.points import (
    Known,
    Point,
    Stretch,
    both_ways,
    derivatives,
    known_torque,
    motion_between,
    one_way,
    settling,
    smooth,
    unsteady,
    words,
)
from dynident.experiments.friction.result import VelocityFriction
from dynident.experiments.options import FrictionOptions, Gravity
from dynident.experiments.protocol import Experiment, ExperimentError
from dynident.experiments.thresholds import FRICTION
from dynident.logs.log import LogSource
from dynident.options import keywords
from dynident.plant.controllers import ComputedTorque
from dynident.plant.protocol import Plant
from dynident.robot.model import Robot

_TRIES = 3  # runs at a velocity, each longer than the one before, until joints settle
_NEVER = (
    "{} has not settled after {:.2g} s at this velocity; hold the velocity longer (--cruise), or give the feedback "
    "another --bandwidth"
)
Velocities = Sequence[float] | Mapping[str, Sequence[float]]
GroupPoints = tuple[JointGroup, Array | None, list[Point]]  # joints, where the others were held, what was measured


@keywords(FrictionOptions, "joints")
def velocity_friction(plant: Plant | Bench, options: FrictionOptions) -> VelocityFriction:
    """Friction of joints from runs at constant velocities (Gautier, Khalil, Restrepo 1995, section 3).

    Each joint, or two coupled ones together, goes there and back at each velocity while the others are held; runs are
    prolonged until it has settled. Half the difference of torque there and back, position by position, is friction:
    gravity cancels. What does not, since held joints give way and velocities still change, is taken off by the links'
    parameters, which are estimated along around the robot's description.

    Args:
        plant: The machine, or a bench with its bounds and folder.
        options: See `FrictionOptions`; the joints may be given by place.

    Raises:
        InputError: For joints, velocities and ranges that cannot be.
        ExperimentError: When no run could be used, with the reasons.
    """
    return FrictionExperiment(plant.robot, options).perform(plant)


def velocity_friction_from_logs(
    robot: Robot,
    logs: Sequence[LogSource],
    joints: Sequence[str] | None = None,
    *,
    fit: Fit | None = None,
    gravity: Gravity = "cancel",
    friction: str | Sequence[str] | None = None,
) -> VelocityFriction:
    """Friction of joints from logs in which they move alone.

    A joint counts while all others rest. Where it holds its velocity, stretches are used as in `velocity_friction`;
    where it sweeps slowly through its velocities, torque is averaged over bins of velocity, pass by pass, which needs
    to know gravity and inertia (from `fit`, or gravity="model").

    Args:
        robot: The robot.
        logs: Logs with position and torque.
        joints: Joints by name or variable; None for all that move alone somewhere.
        fit: An estimate of the robot, which then tells gravity and inertia.
        gravity: Without a fit: "cancel", "model" or "none".
        friction: Laws beside viscous and Coulomb friction.

    Raises:
        ExperimentError: When no log shows a joint moving alone in a way that can be used.
    """
    options = FrictionOptions(joints=joints, fit=fit, gravity=gravity, friction=friction)
    experiment = FrictionExperiment(robot, options)
    return experiment.analyze(experiment.read(logs))


def _velocities(group: JointGroup, given: Velocities | None) -> list[Sequence[float]] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return [given] * len(group.places)
    found = [given.get(v, given.get(j, ())) for v, j in zip(group.variables, group.joints, strict=True)]
    if not any(found):
        return None
    for own, name in zip(found, group.variables, strict=True):
        if not own:
            raise ExperimentError(
                f"{name} is coupled with {', '.join(group.variables)} and has no velocities; give them too"
            )
    return found


def _follow(robot: Robot, motion: ThereAndBack, bandwidth: float) -> ComputedTorque:
    """Inverse dynamics of the links, so that every joint settles alike; friction is what the test is to find."""
    links = {name: x for name, x in robot.value_set().items() if not name.startswith(("Fv", "Fc", "Fo"))}
    return ComputedTorque(robot, motion, bandwidth=bandwidth, values=links)


@dataclasses.dataclass(frozen=True)
class GroupPlan:
    """The runs of one group: where the others are held, the range, and whether velocities may be lowered."""

    group: JointGroup
    pose: Array
    span: Array
    levels: list[ThereAndBack]
    slower: bool


class FrictionExperiment(Experiment[list[GroupPlan], list[GroupPoints], VelocityFriction]):
    """The constant-velocity friction test: joints one after the other, coupled ones together.

    Args:
        robot: The robot.
        options: How.

    Attributes:
        left_out: Runs that are not used, with the reason.
    """

    def __init__(self, robot: Robot, options: FrictionOptions) -> None:
        super().__init__(robot)
        self.options = options
        self._laws, self._known = shapes(options.friction), known_torque(robot, options.gravity, options.fit)
        self.left_out: list[str] = []
        self._total = self._done = 0

    def plan(self, bounds: Bounds) -> list[GroupPlan]:
        """The runs of every group, before anything moves."""
        how, groups = self.options, joint_groups(self.robot, self.options.joints)
        check_tested(groups, how.ranges or (), "a range")
        check_tested(groups, how.velocities if isinstance(how.velocities, Mapping) else (), "velocities")
        check_held(groups, how.at or ())
        found = []
        for group in groups:
            span = joint_range(group, bounds, how.ranges)
            pose = quiet_pose(group, bounds, span, how.at)
            wanted = _velocities(group, how.velocities)
            levels, skipped = plan_levels(group, bounds, pose, velocities=wanted, ranges=how.ranges, timing=how)
            found.append(GroupPlan(group, pose, span, levels, wanted is None))
            self.notes += skipped
        return found

    def run(self, bench: Bench, plan: list[GroupPlan]) -> list[GroupPoints]:
        """Friction at every velocity of every group."""
        self._total = sum(len(task.levels) for task in plan)
        found: list[GroupPoints] = [(task.group, task.pose, self._measure(bench, task)) for task in plan]
        if not any(points for _, _, points in found):
            raise ExperimentError(f"no run could be used; {'; '.join(self.left_out[:3])}")
        return found

    def read(self, logs: Sequence[LogSource]) -> list[GroupPoints]:
        """Friction at the velocities that logs show of every group."""
        known, fit, joints = self._known, self.options.fit, self.options.joints
        tracks = [track for log in logs for track in log_stretches(log, self.robot, fit, known)]
        read: list[GroupPoints] = []
        for group in joint_groups(self.robot, joints):
            found = [points_of_log(group, one, known is not None) for one in tracks]
            points = [point for own, _ in found for point in own]
            self.notes += [note for own, note in found if note and own]
            self.left_out += [note for _, note in found if note and not points]
            if not points and joints is not None:
                name = " and ".join(group.joints)
                self.left_out.append(f"{name}: no log shows it moving alone at velocities that can be used")
            read.append((group, None, points))
        self.notes, self.left_out = (list(dict.fromkeys(one)) for one in (self.notes, self.left_out))
        if not any(points for _, _, points in read):
            reasons = "; ".join(self.left_out[:2]) or "no joint moves alone in them"
            raise ExperimentError(f"the logs show no friction at constant velocity: {reasons}")
        return read

    def analyze(self, data: list[GroupPoints]) -> VelocityFriction:
        """A fit for every group with points."""
        fits, poses = [], []
        for group, pose, points in data:
            if points:
                links = None if self._known is not None or pose is None else Links.of(group, pose)
                fits.append(fit_friction(group, points, self._laws, links))
                poses += [] if pose is None else [pose]
        gravity = words(self.options.gravity, self.options.fit)
        return VelocityFriction.of(gravity, fits, poses, self.left_out, self.notes)

    def _measure(self, bench: Bench, task: GroupPlan) -> list[Point]:
        """Run all levels of a group; those that are faster than one that ended early are not tried."""
        points: list[Point] = []
        failed: list[ThereAndBack] = []
        for level in task.levels:
            self._done += 1
            bench.progress("velocity steps", self._done, self._total)
            slower = next((one for one in failed if _faster(level, one)), None)
            if slower is not None:
                self.left_out.append(f"{level.label}: not run, for {slower.label} ended early and is slower")
                continue
            found, problem, whole = self._level(bench, task, level)
            points += found
            if not whole:
                failed.append(level)
            if problem:
                self.left_out.append(f"{level.label}: {problem}")
        return points

    def _level(self, bench: Bench, task: GroupPlan, level: ThereAndBack) -> tuple[list[Point], str, bool]:
        """Points of a run that is prolonged until its joints settle, why there are none, and if it went to its end."""
        bounds, wanted, note = _watch(bench.bounds, task.group, task.pose), level, ""
        for tries in range(_TRIES):
            controller = _follow(self.robot, level, self.options.bandwidth)
            run = bench.run(controller, level.duration, level.start, label=level.label, bounds=bounds)
            if not run.whole:
                return [], run.why, False
            settle, swings = _settling(task.group, level, run)
            left = level.cruise - sum(settle)
            enough = max(self.options.least, FRICTION.measured_share * (level.cruise - 2.0 * level.settle))
            if not swings and left > enough - 1e-9:
                break
            if tries == _TRIES - 1 and swings:
                return [], _NEVER.format(" and ".join(task.group.joints), level.cruise), True
            if tries == _TRIES - 1:
                # A velocity that changes with the position, which no time settles.
                settle = settle if left > self.options.least else (level.settle, level.settle)
                break
            longer = level.cruise if swings else 1.1 * max(settle)
            again, note = prolong_level(task.group, wanted, task.span, self.options, longer, slower=task.slower)
            if again is None:
                return [], note, True
            level = again
        if note:
            self.notes.append(f"{wanted.label}: {note}")
        ways = [(stop - level.cruise + x, stop) for x, (_, stop) in zip(settle, level.windows, strict=True)]
        return *self._points(task.group, level, run, ways), True

    def _points(
        self, group: JointGroup, level: ThereAndBack, run: Run, ways: Sequence[tuple[float, float]]
    ) -> tuple[list[Point], str]:
        stretches = []
        for window, sense in zip(ways, (1.0, -1.0), strict=True):
            stretch = _stretch(group, run, window, self._known)
            problem = unsteady(stretch, sense * level.velocity[list(group.places)], group.joints)
            if problem:
                return [], problem
            stretches.append(stretch)
        if self._known is not None:
            return [one_way(one) for one in stretches], ""
        point = both_ways(stretches[0], stretches[1])
        return ([], "the ways there and back share no positions") if point is None else ([point], "")


def _settling(group: JointGroup, motion: ThereAndBack, run: Run) -> tuple[tuple[float, float], bool]:
    """Time to settle there and back [s], not less than planned; and whether the velocity still dies away on both ways.

    What goes with the position and not with time is met in reverse on the way back, and dies away on one way at most.
    """
    dq, _ = derivatives(run.time, run.q[:, list(group.places)])
    found = []
    for _, stop in motion.windows:
        inside = (run.time >= stop - motion.cruise - 1e-9) & (run.time <= stop + 1e-9)
        found.append(settling(run.time[inside], dq[inside]))
    (there, calm), (back, calm_back) = found
    return (max(there, motion.settle), max(back, motion.settle)), not (calm or calm_back)


def _stretch(group: JointGroup, run: Run, window: tuple[float, float], known: Known | None) -> Stretch:
    inside = (run.time >= window[0] - 1e-9) & (run.time <= window[1] + 1e-9)
    time, places = run.time[inside], list(group.places)
    q, tau = (smooth(run.time, x)[inside] for x in (run.q, run.tau))
    dq = derivatives(run.time, run.q)[0][inside]
    motions = [motion_between(run.time, run.q, inside, first) for first in (0, 1)]
    if known is None:
        rigid = np.stack([regressor(group.robot, *motion, TERMS)[:, places] for motion in motions])
        return Stretch(run.label, time, q[:, places], tau[:, places], rigid, dq[:, places])
    inertia = np.stack([acceleration_columns(ddq[:, places]) for _, _, ddq in motions])
    found = Stretch(run.label, time, q[:, places], tau[:, places], inertia, dq[:, places])
    if len(time) < 2:
        return found
    dq = np.zeros_like(q)
    dq[:, places] = found.velocity
    return dataclasses.replace(found, tau=found.tau - known(q, dq, np.zeros_like(q))[:, places])


def _watch(bounds: Bounds, group: JointGroup, pose: Array) -> Bounds:
    """Bounds of the bench for the joints under test; the others must stay where they are held."""
    reach = np.full(len(pose), FRICTION.held_distance)
    reach[list(group.places)] = np.inf
    return bounds.within(pose, reach)


def _faster(level: ThereAndBack, other: ThereAndBack) -> bool:
    return bool(np.all(np.abs(level.velocity) >= np.abs(other.velocity) * (1.0 - 1e-9)))
