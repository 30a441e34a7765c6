"""The feedforward check of Kim 1990, section 6: a fast motion without any feedback shows how good parameters are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, record
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.errors import InputError, UnknownNameError
from dynident.experiments.bench import Bench
from dynident.experiments.step.controller import StepController
from dynident.experiments.step.poses import InertiaBase, ranges
from dynident.experiments.step.records import driven_positions
from dynident.experiments.step.result import FeedforwardRun, StepResult
from dynident.motion.point_to_point import PointToPoint
from dynident.plant.drives import Motors
from dynident.robot.model import Robot

FAR = math.radians(30.0)  # [rad or m]
TIME = 0.3  # [s]


@record
class ForwardModel:
    """What a feedforward is made of.

    Attributes:
        name: For tables and legends.
        values: Standard inertial parameters by name.
        damping: (n_moving,) at the motors, back-EMF included.
        coulomb: (n_moving,) at the motors.
    """

    name: str
    values: Mapping[str, float]
    damping: Array
    coulomb: Array


def forward_models(result: StepResult, computed: str | None = None) -> list[ForwardModel]:
    """The identified model, the same without friction, and what was computed before.

    Args:
        result: What the step test found; damping includes back-EMF.
        computed: Value set of the robot, or set of its base parameters, that was computed from drawings; None for none.

    Raises:
        InputError: When the test did not determine the inertias.
    """
    if result.combinations is None or not result.friction:
        raise InputError("the feedforward check needs inertias: test with two voltages")
    robot, base, estimate = result.robot, result.base, result.combinations
    n = len(robot.moving)
    damping, coulomb = np.zeros(n), np.zeros(n)
    for one in result.friction:
        damping[one.motor], coulomb[one.motor] = one.damping[0], one.coulomb[0]
    combinations = np.where(estimate.determined, estimate.values, base.values())
    values = _standard(base, combinations)
    models = [
        ForwardModel("identified", values, damping, coulomb),
        ForwardModel("identified, without friction", values, np.zeros(n), np.zeros(n)),
    ]
    if computed is not None:
        models.append(ForwardModel("computed", _computed_values(robot, base, computed), damping, coulomb))
    return models


def _standard(base: InertiaBase, beta: ArrayLike | Mapping[str, float]) -> dict[str, float]:
    """Standard parameters with these combinations, as near as can be to the robot's own."""
    own = base.robot.value_set()
    prior = None if not any(own.values()) else np.array([own.get(column.name, 0.0) for column in base.columns])
    chi = base.standard_values(beta, prior=prior)
    return {column.name: float(x) for column, x in zip(base.columns, chi, strict=True)}


def check_computed(robot: Robot, name: str) -> None:
    """Refuse a name that is neither a value set of the robot nor a set of its base parameters."""
    if name not in robot.values and name not in robot.base_values:
        raise UnknownNameError("parameter set", name, [*robot.values, *robot.base_values])


def _computed_values(robot: Robot, base: InertiaBase, name: str) -> dict[str, float]:
    check_computed(robot, name)
    if name in robot.base_values:
        given = robot.base_values[name]
        missing = [one for one in base.names if one not in given]
        if missing:
            raise InputError(f"{robot.name}: set {name} has no {', '.join(missing)}; expected {', '.join(base.names)}")
        return _standard(base, np.array([given[one] for one in base.names]))
    own = robot.value_set(name)
    return {column.name: float(own.get(column.name, 0.0)) for column in base.columns}


def track(
    bench: Bench,
    motors: Motors,
    model: ForwardModel,
    base: InertiaBase,
    joints: Sequence[int],
    *,
    start: ArrayLike | None = None,
    far: float = FAR,
    time: float = TIME,
) -> FeedforwardRun:
    """A cubic motion of some joints from rest to rest under feedforward voltage alone.

    Args:
        bench: The machine.
        motors: Its motors.
        model: What the voltage is made of.
        base: Tells the terms of the inertia.
        joints: Places of the joints to move; the others are held.
        start: (n_moving,) where it begins; default zero, or as near to it as the limits allow.
        far: How far each goes [rad or m].
        time: In what time [s].
    """
    robot = bench.robot
    n = len(robot.moving)
    lower, upper = ranges(robot)
    begin = np.clip(np.zeros(n), lower, upper - far) if start is None else np.asarray(start, dtype=np.float64)
    end = begin.copy()
    end[list(joints)] += far
    motion = PointToPoint(points=np.stack([begin, end]), durations=np.array([time]), law="cubic")
    own = motors.for_joints(robot.joint_names)
    tick = bench.plant.sample_time
    # A voltage is held for a sample: it should be that of the sample's middle.
    middle = np.minimum(tick * (np.arange(round(time / tick) + 2) + 0.5), time)
    q, dq, ddq = motion.sample(middle)
    torque = inverse_dynamics(robot, q, dq, ddq, base.terms, dict(model.values))
    velocity = driven_positions(robot, dq) - driven_positions(robot, np.zeros_like(dq))
    voltage = (torque + model.damping * velocity + model.coulomb * np.sign(velocity)) / own.gain
    controller = StepController(robot, motors, joints[0], begin, 0.0, feedforward=(joints, voltage))
    names = "all" if len(joints) == n else "-".join(robot.joint_names[j] for j in joints)
    label = f"track-{names}-{model.name.replace(', ', '-').replace(' ', '-')}"
    run = bench.run(controller, time, begin, label=label)
    wanted, wanted_velocity, _ = motion.sample(np.minimum(run.time, time))
    return FeedforwardRun(model.name, tuple(joints), run.time, run.q - wanted, run.dq - wanted_velocity, run.why)


def tracking_check(
    bench: Bench, motors: Motors, result: StepResult, computed: str | None = None, start: ArrayLike | None = None
) -> list[FeedforwardRun]:
    """Each tested joint alone, then all of them, under every model of `forward_models`."""
    models = forward_models(result, computed)
    tested = sorted(one.motor for one in result.friction)
    moves = [(joint,) for joint in tested] + ([tuple(tested)] if len(tested) > 1 else [])
    return [track(bench, motors, model, result.base, joints, start=start) for joints in moves for model in models]
