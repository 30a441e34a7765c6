"""`step_test`: drive one motor after the other by steps of voltage, the others held, and say what that tells."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask
from dynident.errors import InputError
from dynident.experiments.bench import Bench, Bounds, Run
from dynident.experiments.options import StepOptions
from dynident.experiments.protocol import Experiment, ExperimentError
from dynident.experiments.step.analysis import analyze_steps, carries_no_weight, no_constants, payload_poses
from dynident.experiments.step.controller import StepController, suggest_voltages
from dynident.experiments.step.poses import (
    choose_poses,
    directions,
    feels_gravity,
    inertia_base,
    inertial_terms,
    obstacle,
    start_place,
)
from dynident.experiments.step.records import StepRecord, driven_positions, record_from_log
from dynident.experiments.step.response import first_moving
from dynident.experiments.step.result import StepResult
from dynident.experiments.thresholds import STEP
from dynident.logs.log import Log
from dynident.motion.limits import joint_place
from dynident.options import keywords
from dynident.plant.drives import Motors
from dynident.plant.protocol import Reading
from dynident.robot.model import Robot

PAYLOAD_POSES = 12  # for the ten numbers of a payload
SPARE = 2  # configurations beyond the number of combinations
_MARGIN = 0.02  # share of a joint's range, and of its velocity limit, that is kept free
_SETTLE, _SETTLE_LOADED = 0.02, 0.3  # [s] before a step: at rest by itself, and with weight to carry
_RAISED, _TRIES = 1.6, 6  # by which a suggested voltage that moves nothing is raised, and how often


@dataclass
class StepPlan:
    """What will be done.

    Attributes:
        voltages: Of each tested motor [V].
        poses: (motor, pose) in the order of the tests: where the others are locked.
        balance: Whether each tested motor carries weight.
        suggested: Motors whose voltages nobody chose.
    """

    voltages: dict[int, tuple[float, ...]]
    poses: tuple[tuple[int, Array], ...]
    balance: dict[int, bool]
    suggested: set[int]


@keywords(StepOptions)
def step_test(bench: Bench, motors: Motors, options: StepOptions) -> StepResult:
    """Identify inertia and friction from steps of voltage (Kim 1990).

    Args:
        bench: The machine; every run is recorded there.
        motors: Torque constant and resistance at the joint side (`Motors.at_shaft` for numbers of a data sheet).
        options: See `StepOptions`.

    Returns:
        Effective inertia, damping and Coulomb friction of each joint, and base combinations of inertial parameters.

    Raises:
        ExperimentError: When a joint does not move, hits a limit at once, another one moves, a voltage is limited, or
            gravity cannot be carried. What was recorded so far is with the bench.
    """
    return StepExperiment(bench.robot, motors, options).perform(bench)


class StepExperiment(Experiment[StepPlan, list[StepRecord], StepResult]):
    """The voltage-step test: one motor after the other, the others held.

    Args:
        robot: The robot.
        motors: Its motors.
        options: How.
    """

    def __init__(self, robot: Robot, motors: Motors, options: StepOptions) -> None:
        super().__init__(robot)
        self.motors, self.options = motors, options

    def plan(self, bounds: Bounds) -> StepPlan:
        """Tested motors, their voltages, and where the others are locked."""
        robot, how = self.robot, self.options
        tested = self._tested_motors()
        for motor in tested:
            if reason := no_constants(robot, motor, how.terms):
                raise ExperimentError(reason)
        balance = {motor: not carries_no_weight(robot, motor, how.values) for motor in tested}
        plan = StepPlan({}, (), balance, set())
        for motor in tested:
            given: tuple[float, ...] | None = _given_voltages(robot, how.voltages, motor)
            if given is None:
                given = suggest_voltages(robot, self.motors, motor, how.duration, how.values)
                if balance[motor]:
                    given = (*given, -given[0])  # weight that is not as described pulls one way, friction either way
                plan.suggested.add(motor)
            plan.voltages[motor] = given
        carried = [robot.joint_names[motor] for motor in tested if balance[motor]]
        if carried:
            self.notes.append(
                f"joint {', '.join(carried)}: its weight was carried as the robot's own masses say, and corrected by "
                "what the steps show"
            )
        plan.poses = self._poses(tested)
        return plan

    def _poses(self, tested: tuple[int, ...]) -> tuple[tuple[int, Array], ...]:
        """(motor, pose) to test: those of an earlier test, those given, or those that tell most."""
        robot, how = self.robot, self.options
        if how.repeat is not None:
            _refuse_weight(robot, how.repeat)
            return tuple(how.repeat)
        if how.poses is not None:
            poses = np.atleast_2d(np.array(how.poses, dtype=np.float64))
            if poses.shape[1] != len(robot.moving):
                raise InputError(f"poses must have one column per joint ({', '.join(robot.joint_names)})")
            pairs = [(motor, pose.copy()) for motor in reversed(tested) for pose in poses]
            for motor, pose in pairs:
                pose[motor] = start_place(robot, motor, True)
            return tuple(pairs)
        base = inertia_base(robot, tested, inertial_terms(robot, how.values))
        count = base.n + SPARE if how.configurations is None else how.configurations
        chosen, condition = choose_poses(base, count, how.seed)
        self.notes.append(
            f"{len(chosen)} locked configurations for {base.n} combinations, with a condition number of {condition:.1f}"
        )
        if how.for_payload:
            chosen += payload_poses(robot, tested, PAYLOAD_POSES, how.seed)
            chosen = tuple(sorted(chosen, key=lambda one: -one[0]))
            self.notes.append(f"{PAYLOAD_POSES} more for a payload")
        return chosen

    def _tested_motors(self) -> tuple[int, ...]:
        """Places of the joints to test; those that cannot be are noted."""
        robot, joints = self.robot, self.options.joints
        wanted = range(len(robot.moving)) if joints is None else [joint_place(robot, name) for name in joints]
        obstacles = {motor: obstacle(robot, motor) for motor in wanted}
        tested = tuple(sorted(motor for motor, reason in obstacles.items() if not reason))
        reasons = [reason for reason in obstacles.values() if reason]
        if reasons and (joints is not None or not tested):
            raise ExperimentError(reasons[0])
        self.notes += reasons
        return tested

    def run(self, bench: Bench, plan: StepPlan) -> list[StepRecord]:
        """All steps."""
        records: list[StepRecord] = []
        for k, (motor, pose) in enumerate(plan.poses):
            bench.progress("steps", k, len(plan.poses))
            records += self._one_configuration(bench, plan, motor, pose, k)
        bench.progress("steps", len(plan.poses), len(plan.poses))
        return records

    def _one_configuration(self, bench: Bench, plan: StepPlan, motor: int, pose: Array, k: int) -> list[StepRecord]:
        """All voltages of one motor at one pose; suggested ones are raised until each moves the motor its own way."""
        fault = ""
        for _ in range(_TRIES):
            records = []
            for voltage in plan.voltages[motor]:
                label = f"{bench.robot.joint_names[motor]}-pose{k + 1}-{voltage:.4g}V"
                record = self._one_step(bench, motor, pose, voltage, label, balance=plan.balance[motor])
                fault = self._fault(record, weight=plan.balance[motor])
                if fault and motor in plan.suggested:
                    break  # friction or weight are more than the robot's values say
                if fault:
                    raise ExperimentError(fault)
                records.append(record)
            else:
                return records
            plan.voltages[motor] = tuple(_RAISED * x for x in plan.voltages[motor])
        raise ExperimentError(fault)

    def _fault(self, record: StepRecord, *, weight: bool) -> str:
        """Why a step tells nothing, with what to do about it; empty when it tells something."""
        robot, name = self.robot, self.robot.joint_names[record.motor]
        torque = record.voltage * float(self.motors.for_joints(robot.joint_names).gain[record.motor])
        begin = f"joint {name} ({record.label}): {record.voltage:.4g} V, a torque of {torque:.3g}, "
        try:
            first = first_moving(record.position, record.time, record.step, record.label)
        except ExperimentError:
            return (
                f"{begin}did not move it in {self.options.duration:g} s; static friction holds it: apply more voltage "
                "(--volts)"
            )
        moved = record.position[-1] - record.position[max(first - 1, 0)]
        if weight and moved * torque < 0.0:
            pose = ", ".join(f"{name}={x:.3g}" for name, x in zip(robot.position_names, record.pose, strict=True))
            return (
                f"{begin}did not move it its own way from {pose}: its weight is further from the described one than "
                "that; apply more voltage (--volts), lock the others elsewhere (--pose), or correct the masses"
            )
        return ""

    def _one_step(
        self, bench: Bench, motor: int, pose: Array, voltage: float, label: str, *, balance: bool
    ) -> StepRecord:
        """One run, ended before the tested joint reaches its limits."""
        robot, how, tick = self.robot, self.options, bench.plant.sample_time
        gain = float(np.sign(self.motors.for_joints(robot.joint_names).gain[motor]))
        start = np.array(pose)
        start[motor] = start_place(robot, motor, gain * voltage > 0.0)
        wait = (_SETTLE_LOADED if balance else _SETTLE) if how.settle is None else how.settle
        settle = tick * round(wait / tick)
        controller = StepController(
            *(robot, self.motors, motor, start, voltage),
            settle=settle,
            balance=balance,
            bandwidth=how.bandwidth,
            values=how.values,
        )
        along = np.abs(directions(robot)[motor]) > 0.0
        bounds = bench.bounds.within(start, np.where(along, np.inf, how.still))
        until = _near_limits(bench.bounds, along, settle)
        run = bench.run(controller, settle + how.duration, start, label=label, bounds=bounds, until=until)
        _check_run(robot, run, motor, voltage, settle, how)
        position = driven_positions(robot, run.q)[:, motor]
        applied = np.append(controller.applied, controller.applied[-1:])[: len(run.time)]  # the last reading had none
        return StepRecord(label, motor, start, voltage, settle, run.time, position, run.why, run.q, applied, run.dq)

    def read(self, logs: Sequence[Log]) -> list[StepRecord]:
        """The steps in logs, one each."""
        return [record_from_log(log, self.robot, self.motors, self.options.values) for log in logs]

    def analyze(self, data: Sequence[StepRecord]) -> StepResult:
        """Inertia, friction and combinations."""
        found = analyze_steps(self.robot, self.motors, data, self.options)
        return dataclasses.replace(found, notes=(*self.notes, *found.notes))


def _refuse_weight(robot: Robot, poses: Sequence[tuple[int, Array]]) -> None:
    """A payload whose weight nobody knows cannot be carried, so that no step has constant A and U."""
    for motor in sorted({motor for motor, _ in poses}):
        if feels_gravity(robot, motor):
            raise ExperimentError(
                f"gravity acts on joint {robot.joint_names[motor]}, and the weight of an unknown payload cannot be "
                "carried; test joints with an upright axis only (--joints), or use `dynident payload`"
            )


def _given_voltages(
    robot: Robot, voltages: Sequence[float] | Mapping[str, Sequence[float]] | None, motor: int
) -> tuple[float, ...] | None:
    """Voltages of a motor, or None to suggest some."""
    if isinstance(voltages, Mapping):
        voltages = {joint_place(robot, name): own for name, own in voltages.items()}.get(motor)
    if voltages is None:
        return None
    steps = tuple(float(x) for x in voltages)
    if not steps or not all(math.isfinite(x) and x != 0.0 for x in steps):
        raise InputError(f"joint {robot.joint_names[motor]}: voltages {steps}; expected numbers other than zero")
    return steps


def _near_limits(bounds: Bounds, along: Mask, settle: float) -> Callable[[Reading], bool]:
    """Whether a joint that the test moves is about to leave its limits: the record ends there, and is complete."""
    room = np.where(np.isfinite(bounds.upper - bounds.lower), bounds.upper - bounds.lower, 0.0)
    lower, upper = bounds.lower + _MARGIN * room, bounds.upper - _MARGIN * room
    fastest = (1.0 - _MARGIN) * bounds.velocity

    def near(reading: Reading) -> bool:
        out = (reading.q < lower) | (reading.q > upper) | (np.abs(reading.dq) > fastest)
        return bool(reading.time > settle and (out & along).any())

    return near


def _check_run(robot: Robot, run: Run, motor: int, voltage: float, settle: float, how: StepOptions) -> None:
    """Refuse a run that tells nothing, with what to do about it."""
    name = robot.joint_names[motor]
    begin = f"joint {name}, step of {voltage:.4g} V ({run.label})"
    if run.end == "bound" and run.joint != name:
        raise ExperimentError(
            f"{begin}: joint {run.joint}, which should be locked, moved by more than {how.still:g} rad or m at t = "
            f"{run.time[-1]:.3g} s; lock it (brake), hold it harder (--hold), or apply less voltage"
        )
    if run.end == "saturated":
        raise ExperimentError(
            f"{begin}: {run.why}; the torque is not known beyond: apply less voltage, or choose other poses"
        )
    if run.end == "stopped" and run.time[-1] - settle < STEP.shortest_share * how.duration:
        raise ExperimentError(
            f"{begin}: reached a limit of the robot {run.time[-1] - settle:.3g} s after the step, too soon to "
            "determine anything; apply less voltage (--volts), or lock the others elsewhere (--pose)"
        )
    if not run.whole:
        raise ExperimentError(f"{begin}: {run.why}; apply less voltage, or check the machine")
