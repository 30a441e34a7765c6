"""`gravity_moments` on a machine, `gravity_from_logs` on recordings of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import joint_torque, mass_matrix
from dynident.errors import InputError
from dynident.experiments.bench import Bench, Bounds, Run
from dynident.experiments.gravity.fourier import HIGHEST, FourierFit, best, fits, fourier_fit, slow_friction, solve
from dynident.experiments.gravity.plan import RUN_IN, Plan, Steady, Sweep, describe, home, plan_sweeps
from dynident.experiments.gravity.result import GravityMoments, JointRun, remarks, too_narrow
from dynident.experiments.gravity.slow_runs import SlowRun, moves, slow_run, speeds, swept_alone
from dynident.experiments.gravity.structure import (
    GravityBase,
    Stage,
    gravity_base,
    gravity_columns,
    inertial_columns,
    stages,
    unweighed,
)
from dynident.experiments.options import GravityOptions, Order
from dynident.experiments.protocol import ExperimentError
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
_PASSES, _LASTS = 0.1, 2.0  # [rad; a tenth in m], [s] that a joint moves by itself in a log to be looked at


@keywords(GravityOptions)
def gravity_moments(bench: Bench | Plant, options: GravityOptions) -> GravityMoments:
    """Gravity moments of a machine from slow sweeps of one joint at a time, from the tip inwards.

    Args:
        bench: The machine.
        options: See `GravityOptions`.

    Raises:
        ExperimentError: When a sweep cannot be made or does not tell what it should.
    """
    bench = bench if isinstance(bench, Bench) else Bench(bench)
    base = gravity_base(bench.robot)
    _check_order(options.order)
    plan = _plan(base, options)
    notes = list(plan.notes)
    total, found = sum(len(own) for own in plan.sweeps), []
    for own in plan.sweeps:
        runs = []
        for sweep in own:
            bench.progress("sweeps", len(bench.runs), total)
            runs.append(_swept(bench, sweep, options.control or _spring(bench), notes))
        found.append(runs)
    bench.progress("sweeps", total, total)
    true = None if options.true is None else base.values(options.true)
    return _moments(base, plan.stages, found, options.order, notes, true)


@keywords(GravityOptions)
def plan_gravity_sweeps(robot: Robot, options: GravityOptions) -> Plan:
    """What `gravity_moments` would do, without moving anything; options as there."""
    return _plan(gravity_base(robot), options)


def _plan(base: GravityBase, options: GravityOptions) -> Plan:
    _refuse_asked(base, options.joints)
    return plan_sweeps(
        base,
        joints=options.joints,
        poses=options.poses,
        least_poses=options.least_poses,
        span=options.span,
        speed=options.speed,
    )


def gravity_from_logs(
    robot: Robot, logs: Sequence[Log], *, order: Order = 1, joints: Sequence[str] | None = None
) -> GravityMoments:
    """Gravity moments from logs in which one joint at a time moves slowly, there and back.

    Args:
        robot: The robot.
        logs: The recordings; one may hold sweeps of several joints, one after the other.
        order: Of the Fourier series; see `gravity_moments`.
        joints: Only these.

    Raises:
        ExperimentError: When no log has such a run, with the reasons.
    """
    _check_order(order)
    base = gravity_base(robot)
    _refuse_asked(base, joints)
    wanted = [j for j in range(len(robot.moving)) if joints is None or _named(robot, j) & set(joints)]
    runs: list[SlowRun] = []
    notes: list[str] = []
    for log in logs:
        runs += _runs_of(log, base, wanted, notes)
    if not runs:
        told = "; ".join(notes) or "no joint that feels weight moves by itself"
        raise ExperimentError(f"no log holds a slow run of one joint: {told}")
    parts = stages(base, tuple(sorted({run.joint for run in runs})))
    grouped = [[run for run in runs if run.joint in stage.joints] for stage in parts]
    return _moments(base, parts, grouped, order, notes, None)


def _check_order(order: Order) -> None:
    if order != "auto" and order not in range(1, HIGHEST + 1):
        raise InputError(f"order is {order!r}; expected auto or 1 to {HIGHEST}")


def _named(robot: Robot, j: int) -> set[str]:
    return {robot.joint_names[j], robot.position_names[j]}


def _refuse_asked(base: GravityBase, joints: Sequence[str] | None) -> None:
    """A joint that somebody asks for and that no weight reaches."""
    reasons = unweighed(base)
    for j, name in enumerate(base.robot.joint_names):
        if name in reasons and joints is not None and _named(base.robot, j) & set(joints):
            raise ExperimentError(f"joint {name} {reasons[name]}; leave it out")


def _spring(bench: Bench) -> Control:
    """The default controller; slower where samples are far apart."""
    robot = bench.robot
    own = np.diagonal(mass_matrix(robot, home(robot)[None])[0])
    if not (own > 0.0).all():
        raise InputError(
            f"robot {robot.name}: joint {robot.joint_names[int(np.argmin(own))]} moves no inertia, and no controller "
            "can be made; give the links masses, however rough, or a controller of your own (control=)"
        )
    bandwidth = min(_BANDWIDTH, _PER_SAMPLE / bench.plant.sample_time)
    return lambda robot, sweep: Steady(robot, sweep, bandwidth=bandwidth)


def _swept(bench: Bench, sweep: Sweep, control: Control, notes: list[str]) -> SlowRun:
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
    remedy = "what is left of its range is too short; choose another pose, range or speed"
    if run.joint not in ("", name):
        remedy = f"{run.joint} should have been held; choose a pose that loads it less, or another speed"
    raise ExperimentError(f"sweep of joint {name}: {run.why}, and {remedy} (planned: {describe(robot, sweep)})")


def _run(bench: Bench, sweep: Sweep, control: Control, label: str) -> Run:
    limits, reach = bench.bounds, np.full(len(sweep.pose), _ROOM)
    reach[sweep.joint] = 0.5 * (sweep.upper - sweep.lower) + _ROOM
    bounds: Bounds = limits.within(sweep.pose, reach)
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
    if upper - sweep.lower < max(_LEAST, 3.0 * RUN_IN * sweep.speed):
        return None
    pose = sweep.pose.copy()
    pose[sweep.joint] = 0.5 * (sweep.lower + upper)
    return replace(sweep, pose=pose, upper=upper)


def _slow(robot: Robot, run: Run, sweep: Sweep) -> SlowRun:
    moved = float(np.ptp(run.q[:, sweep.joint]))
    if moved < 0.5 * (sweep.upper - sweep.lower):
        raise ExperimentError(
            f"sweep of joint {robot.joint_names[sweep.joint]}: it moved by {moved:.3g} where "
            f"{sweep.upper - sweep.lower:.3g} was wanted; friction or a brake holds it: sweep faster (--speed), or "
            "with a stiffer controller"
        )
    tau = joint_torque(robot, run.tau)
    return slow_run(run.label, robot.joint_names, sweep.joint, run.time, run.q, tau, robot.radians)


def _runs_of(log: Log, base: GravityBase, wanted: Sequence[int], notes: list[str]) -> list[SlowRun]:
    """Every slow run of one joint in a log; what cannot be used is noted."""
    robot, label = base.robot, log.label
    q, tau = joint_positions(log, robot), joint_torque(robot, row_torques(log, robot))
    dq, radian = speeds(log.time, q)[0], robot.radians
    found = []
    for j in range(len(robot.moving)):
        alone = swept_alone(q / radian, dq / radian, j) & moves(dq[:, j] / radian[j])
        enough = np.count_nonzero(alone) * float(np.median(np.diff(log.time))) > _LASTS
        if j not in wanted or not enough or np.ptp(q[alone, j]) < _PASSES * radian[j]:
            continue
        name = robot.joint_names[j]
        if not base.felt[j].any():
            notes.append(f"{label}: joint {name} {unweighed(base)[name]}")
            continue
        try:
            found.append(slow_run(label, robot.joint_names, j, log.time, q, tau, radian))
        except ExperimentError as error:
            notes.append(str(error))
    return found


def _moments(
    base: GravityBase,
    parts: Sequence[Stage],
    found: Sequence[Sequence[SlowRun]],
    order: Order,
    notes: Sequence[str],
    true: Array | None,
) -> GravityMoments:
    """Fits of every run, and the recursion over them."""
    runs = [[_joint_run(base, run, order) for run in own] for own in found]
    for own in runs:
        too_narrow(base, own)
    moments = solve(base, parts, [[one.fit for one in own] for own in runs])
    flat = tuple(one for own in runs for one in own)
    told, warnings = remarks(base, parts, flat, moments)
    return GravityMoments(
        base=base,
        moments=moments,
        runs=flat,
        skipped=unweighed(base),
        notes=(*notes, *told),
        warnings=tuple(warnings),
        true=true,
    )


def _joint_run(base: GravityBase, run: SlowRun, order: Order) -> JointRun:
    robot = base.robot
    inertial = inertial_columns(robot, run)
    if robot.joints[robot.active[robot.moving[run.joint]]].kind == "prismatic":
        columns = run.half_sum(gravity_columns(robot, run.q)[:, run.joint])
        if np.ptp(columns, axis=0).max() > 1e-3 * np.abs(columns).max():
            raise ExperimentError(
                f"joint {robot.joint_names[run.joint]} slides while links turn with it; a Fourier series over its "
                "position does not describe their weight, use `identify` instead"
            )
        fit = fourier_fit(run, 0, inertial)
        return JointRun(fit, (fit,), slow_friction(fit))
    every = fits(run, inertial=inertial)
    chosen: FourierFit
    if order == "auto":
        chosen = best(every)
    elif order > len(every):
        raise ExperimentError(
            f"{run.label}: over {np.degrees(np.ptp(run.angle)):.0f} degrees a series of order {order} cannot be told "
            f"from one of order {len(every)}; sweep a wider range or take a lower order"
        )
    else:
        chosen = every[order - 1]
    return JointRun(chosen, every, slow_friction(chosen))
