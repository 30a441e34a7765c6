"""`gravity_moments` on a machine, `gravity_from_logs` on recordings of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynident.dynamics.evaluate import joint_torque, mass_matrix
from dynident.errors import InputError
from dynident.experiments.bench import Bench, Bounds, Run, home_pose
from dynident.experiments.gravity.fourier import (
    HIGHEST,
    FourierFit,
    best,
    fits,
    fourier_fit,
    solve_moments,
)
from dynident.experiments.gravity.plan import RUN_IN, Steady, Sweep, describe, plan_sweeps
from dynident.experiments.gravity.result import GravityMoments, refuse_narrow, remarks
from dynident.experiments.gravity.slow_runs import SlowRun, moves, slow_run, swept_alone, velocities
from dynident.experiments.gravity.structure import (
    GravityBase,
    gravity_base,
    gravity_columns,
    inertial_columns,
    joints_without_weight,
    stages,
)
from dynident.experiments.options import GravityOptions, Order
from dynident.experiments.protocol import Experiment, ExperimentError
from dynident.experiments.thresholds import GRAVITY
from dynident.logs.log import Log, joint_positions, row_torques
from dynident.options import keywords
from dynident.plant.controllers import Controller
from dynident.plant.protocol import Plant
from dynident.robot.model import Robot

Control = Callable[[Robot, Sweep], Controller]
_BANDWIDTH, _PER_SAMPLE = 30.0, 0.25  # [rad/s] of the feedback; and what a sample of it may turn, at most
_ROOM = 0.4  # [rad or m] that joints may be off the motion before a run is ended
_LEAST = 0.35  # [rad or m] of a range that is shortened on the way
_SHORTER = 0.05  # [rad or m] taken off where a run came to its end


@keywords(GravityOptions)
def gravity_moments(bench: Bench | Plant, options: GravityOptions) -> GravityMoments:
    """Gravity moments of a machine from slow sweeps of one joint at a time, from the tip inwards.

    Args:
        bench: The machine.
        options: See `GravityOptions`.

    Raises:
        ExperimentError: When a sweep cannot be made or does not determine what it should.
    """
    found = GravityExperiment(bench.robot, options).perform(bench)
    return found if options.true is None else found.beside(options.true)


def gravity_from_logs(
    robot: Robot, logs: Sequence[Log], *, order: Order = 1, joints: Sequence[str] | None = None
) -> GravityMoments:
    """Gravity moments from logs in which one joint at a time moves slowly, there and back.

    Args:
        robot: The robot.
        logs: The recordings; one may hold sweeps of several joints, one after the other.
        order: Of the Fourier series; see `GravityOptions`.
        joints: Only these.

    Raises:
        ExperimentError: When no log has such a run, with the reasons.
    """
    experiment = GravityExperiment(robot, GravityOptions(order=order, joints=joints))
    return experiment.analyze(experiment.read(logs))


class GravityExperiment(Experiment[list[Sweep], Sequence[SlowRun], GravityMoments]):
    """The quasi-static gravity test: joints are swept one at a time, from the tip inwards.

    Args:
        robot: The robot.
        options: How.
    """

    def __init__(self, robot: Robot, options: GravityOptions) -> None:
        super().__init__(robot)
        self.options, self.base = options, gravity_base(robot)
        if options.order != "auto" and options.order not in range(1, HIGHEST + 1):
            raise InputError(f"order is {options.order!r}; expected auto or 1 to {HIGHEST}")
        reasons, wanted = joints_without_weight(self.base), set(options.joints or ())
        for j, name in enumerate(robot.joint_names):
            if name in reasons and _names_of(robot, j) & wanted:
                raise ExperimentError(f"joint {name} {reasons[name]}; leave it out")

    def plan(self, bounds: Bounds) -> list[Sweep]:
        """Which joint to sweep over which angles, and where to hold the others."""
        sweeps, notes = plan_sweeps(self.base, self.options)
        self.notes += notes
        return sweeps

    def run(self, bench: Bench, plan: list[Sweep]) -> list[SlowRun]:
        """Every sweep, averaged over both directions."""
        control, found = self.options.control or _spring(bench), []
        for sweep in plan:
            bench.progress("sweeps", len(bench.runs), len(plan))
            found.append(_run_sweep(bench, sweep, control, self.notes))
        bench.progress("sweeps", len(plan), len(plan))
        return found

    def read(self, logs: Sequence[Log]) -> list[SlowRun]:
        """The slow runs in logs."""
        joints, robot = self.options.joints, self.robot
        wanted = [j for j in range(len(robot.moving)) if joints is None or _names_of(robot, j) & set(joints)]
        runs = [run for log in logs for run in _runs_of(log, self.base, wanted, self.notes)]
        if not runs:
            reasons = "; ".join(self.notes) or "no joint that carries weight moves by itself"
            raise ExperimentError(f"no log holds a slow run of one joint: {reasons}")
        return runs

    def analyze(self, data: Sequence[SlowRun]) -> GravityMoments:
        """A Fourier series of every run, and the recursion over them."""
        base = self.base
        parts = stages(base, tuple(sorted({run.joint for run in data})))
        fits = []
        for stage in parts:
            own = [_fit_run(base, run, self.options.order) for run in data if run.joint in stage.joints]
            refuse_narrow(base, own)
            fits.append(own)
        moments = solve_moments(base, parts, fits)
        runs = tuple(one for own in fits for one in own)
        notes, warnings = remarks(base, parts, runs, moments)
        return GravityMoments(
            robot=self.robot,
            estimate=moments,
            true={},
            notes=(*self.notes, *notes),
            warnings=tuple(warnings),
            base=base,
            runs=runs,
            skipped=joints_without_weight(base),
        )


def _names_of(robot: Robot, j: int) -> set[str]:
    return {robot.joint_names[j], robot.position_names[j]}


def _spring(bench: Bench) -> Control:
    """The default controller; slower where samples are far apart."""
    robot = bench.robot
    own = np.diagonal(mass_matrix(robot, home_pose(robot)[None])[0])
    if not (own > 0.0).all():
        raise InputError(
            f"robot {robot.name}: joint {robot.joint_names[int(np.argmin(own))]} moves no inertia, and no controller "
            "can be made; give the links masses, however rough, or a controller of your own (control=)"
        )
    bandwidth = min(_BANDWIDTH, _PER_SAMPLE / bench.plant.sample_time)
    return lambda robot, sweep: Steady(robot, sweep, bandwidth=bandwidth)


def _run_sweep(bench: Bench, sweep: Sweep, control: Control, notes: list[str]) -> SlowRun:
    """Make a sweep; one that comes to a limit is made again over the range it reached."""
    robot = bench.robot
    name = robot.joint_names[sweep.joint]
    label = f"sweep-{robot.position_names[sweep.joint]}"
    for _ in range(2):
        run = _run(bench, sweep, control, label)
        if run.whole:
            return _slow(robot, run, sweep)
        shorter = _shorter(run, sweep, name)
        if shorter is None:
            break
        notes.append(
            f"joint {name}: {run.why}; its range was shortened from {sweep.lower:.3f} .. {sweep.upper:.3f} to "
            f"{shorter.lower:.3f} .. {shorter.upper:.3f}"
        )
        sweep = shorter
    remedy = "what is left of its range is too short; choose another pose, range or velocity"
    if run.joint not in ("", name):
        remedy = f"{run.joint} should have been held; choose a pose that loads it less, or another velocity"
    raise ExperimentError(f"sweep of joint {name}: {run.why}, and {remedy} (planned: {describe(robot, sweep)})")


def _run(bench: Bench, sweep: Sweep, control: Control, label: str) -> Run:
    limits, reach = bench.bounds, np.full(len(sweep.pose), _ROOM)
    reach[sweep.joint] = 0.5 * (sweep.upper - sweep.lower) + _ROOM
    bounds = limits.within(sweep.pose, reach)
    start, _, _ = sweep.sample(np.zeros(1))
    return bench.run(control(bench.robot, sweep), sweep.duration, start[0], label=label, bounds=bounds)


def _shorter(run: Run, sweep: Sweep, name: str) -> Sweep | None:
    """The part of a sweep that the run has gone; None if another joint ended it or the part is too short."""
    if run.joint != name or run.end not in ("bound", "saturated") or not len(run.time):
        return None
    reached = float(run.q[:, sweep.joint].max())
    if run.q[-1, sweep.joint] < sweep.pose[sweep.joint] and reached > sweep.pose[sweep.joint]:
        return None  # it came to an end on the way back, where it had been before
    upper = min(reached, sweep.upper) - _SHORTER
    if upper - sweep.lower < max(_LEAST, 3.0 * RUN_IN * sweep.velocity):
        return None
    pose = sweep.pose.copy()
    pose[sweep.joint] = 0.5 * (sweep.lower + upper)
    return replace(sweep, pose=pose, upper=upper)


def _slow(robot: Robot, run: Run, sweep: Sweep) -> SlowRun:
    moved = float(np.ptp(run.q[:, sweep.joint]))
    if moved < 0.5 * (sweep.upper - sweep.lower):
        raise ExperimentError(
            f"sweep of joint {robot.joint_names[sweep.joint]}: it moved by {moved:.3g} where "
            f"{sweep.upper - sweep.lower:.3g} was wanted; friction or a brake holds it: sweep faster "
            "(--sweep-velocity), or with a stiffer controller"
        )
    tau = joint_torque(robot, run.tau)
    return slow_run(run.label, robot.joint_names, sweep.joint, run.time, run.q, tau, robot.radians)


def _runs_of(log: Log, base: GravityBase, wanted: Sequence[int], notes: list[str]) -> list[SlowRun]:
    """Every slow run of one joint in a log; what cannot be used is noted."""
    robot, label = base.robot, log.label
    q, tau = joint_positions(log, robot), joint_torque(robot, row_torques(log, robot))
    dq, radian = velocities(log.time, q)[0], robot.radians
    found = []
    for j in range(len(robot.moving)):
        alone = swept_alone(q / radian, dq / radian, j) & moves(dq[:, j] / radian[j])
        enough = np.count_nonzero(alone) * float(np.median(np.diff(log.time))) > GRAVITY.moved_seconds
        if j not in wanted or not enough or np.ptp(q[alone, j]) < GRAVITY.moved_distance * radian[j]:
            continue
        name = robot.joint_names[j]
        if not base.depends[j].any():
            notes.append(f"{label}: joint {name} {joints_without_weight(base)[name]}")
            continue
        try:
            found.append(slow_run(label, robot.joint_names, j, log.time, q, tau, radian))
        except ExperimentError as error:
            notes.append(str(error))
    return found


def _fit_run(base: GravityBase, run: SlowRun, order: Order) -> FourierFit:
    """The fit of a run whose coefficients count, with those of every order that was tried."""
    robot = base.robot
    inertial = inertial_columns(robot, run)
    if robot.moving_joints[run.joint].kind == "prismatic":
        columns = run.half_sum(gravity_columns(robot, run.q)[:, run.joint])
        if np.ptp(columns, axis=0).max() > 1e-3 * np.abs(columns).max():
            raise ExperimentError(
                f"joint {robot.joint_names[run.joint]} slides while links turn with it; a Fourier series over its "
                "position does not describe their weight, use `identify` instead"
            )
        only = fourier_fit(run, 0, inertial)
        return replace(only, orders=(only,))
    every = fits(run, inertial=inertial)
    if order != "auto" and order > len(every):
        raise ExperimentError(
            f"{run.label}: over {np.degrees(np.ptp(run.angle)):.0f} degrees a series of order {order} cannot be "
            f"determined from one of order {len(every)}; sweep a wider range or take a lower order"
        )
    return replace(best(every) if order == "auto" else every[order - 1], orders=every)
