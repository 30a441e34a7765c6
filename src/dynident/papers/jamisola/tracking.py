"""How well a candidate controls the machine: the check that the paper leaves to the robot's response."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import regressor
from dynident.dynamics.kernels import torque_law
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.oscillation.modal_equations import information_of
from dynident.experiments.oscillation.model import ParameterGroup, SwingModel, equations_about
from dynident.experiments.oscillation.swings import AHEAD
from dynident.motion.simple import Sinusoid
from dynident.plant.controllers import Quantity
from dynident.plant.protocol import Reading

REACH = np.radians(30.0)  # [rad or m] of the motion of each joint, there and back
PERIOD = 2.0  # [s]
BANDWIDTH = 5.0  # [rad/s] of the feedback: soft, so that errors of the model show
CHANGE = 0.1  # relative error of a parameter by which motions and candidates are compared
_PATTERNS = 64  # at most so many motions are compared
_FEW = 5  # joints of which every pattern of signs is compared
_SHARE = 0.7  # of the torque limits that the model may need: candidates that are wrong need more
_TIMES = np.linspace(0.0, PERIOD, 100)  # [s] at which a motion is looked at in the model


def check_motion(start: Array, way: Array, turns: Array) -> Sinusoid:
    """Every joint there and back along a cosine: half of its way with its sign, as often in a period as it turns."""
    return Sinusoid(start=start, amplitude=2.0 * way, frequency=turns / PERIOD, length=2.0 * PERIOD)


def motion_text(motion: Sinusoid) -> str:
    """What the joints do, in words."""
    pairs = zip(motion.amplitude, motion.frequency, strict=True)
    each = [f"{np.degrees(far):+.0f} x{PERIOD * frequency:.0f}" for far, frequency in pairs]
    return f"{', '.join(each)} deg in {PERIOD:g} s"


class ComputedTorqueSwing:
    """Computed torque, eq. (9) and (10), along a motion.

    Args:
        model: The model's equations.
        weight: (n_columns,) parameters of its gravity.
        motion: (n_columns,) parameters of its inertia.
        wanted: The motion.
    """

    quantity: Quantity = "torque"

    def __init__(self, model: SwingModel, weight: Array, motion: Array, wanted: Sinusoid) -> None:
        self._law = torque_law(model.robot, model.terms, weight, motion)
        self._wanted, self._step = wanted, 0.0

    def start(self, sample_time: float) -> None:
        """Know how far ahead the torque is reached."""
        self._step = sample_time

    def command(self, time: float, reading: Reading) -> Array:
        """Torque for the state at the next sample."""
        h = self._step
        target, velocity, push = (x[0] for x in self._wanted.sample(time + h))
        later, fast = reading.q + h * reading.dq + AHEAD * h * h * push, reading.dq + h * push
        u = push + 2.0 * BANDWIDTH * (velocity - fast) + BANDWIDTH**2 * (target - later)
        return np.array(self._law(*later.tolist(), *fast.tolist(), *u.tolist()))


def tracking_errors(
    bench: Bench, model: SwingModel, weight: Array, motion: Array, wanted: Sinusoid, label: str
) -> Array | None:
    """Position errors of the motion, (n_samples, n_moving) [rad or m]; None when it does not get to its end."""
    run = bench.run(ComputedTorqueSwing(model, weight, motion, wanted), PERIOD, wanted.start, label=label)
    if not run.whole:
        return None
    return np.asarray(run.q - wanted.sample(run.time)[0])


def choose_motion(model: SwingModel, groups: Sequence[ParameterGroup], start: Array, bounds: Bounds) -> Sinusoid:
    """The motion whose error shows an error of every group, and of every combination of them, most.

    A motion that keeps a link upright shows nothing of its weight, however wrong it is. So signs and numbers of turns
    of the joints are compared by the response of the model's tracking error to an error of each group; motions that
    leave the limits of position, velocity or torque do not count, and all are made smaller until one is left.
    """
    for share in (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1):
        motions = [one for one in _motions(start, share * REACH) if _fits(model, one, bounds)]
        if motions:
            break
    return max(
        motions or _motions(start, 0.1 * REACH)[:1], key=lambda one: information_of(_responses(model, groups, one))
    )


def _motions(start: Array, reach: float) -> list[Sinusoid]:
    """Signs and turns of the joints, the plainest first and the others in no order."""
    n = len(start)
    signs = list(itertools.product((1.0, -1.0), repeat=n - 1))
    turns = list(itertools.product((1.0, 2.0), repeat=n))
    pairs = list(itertools.product(signs, turns))
    order = np.random.default_rng(0).permutation(len(pairs) - 1) + 1
    chosen = [pairs[0], *(pairs[k] for k in order)][:_PATTERNS]
    return [check_motion(start, 0.5 * reach * np.array((1.0, *sign)), np.array(turn)) for sign, turn in chosen]


def _fits(model: SwingModel, motion: Sinusoid, bounds: Bounds) -> bool:
    """Whether a motion stays within the limits of position and velocity, and its torque within a part of the limits."""
    q, dq, ddq = motion.sample(_TIMES)
    if not np.all((q > bounds.lower) & (q < bounds.upper) & (np.abs(dq) < bounds.velocity)):
        return False
    robot = model.robot
    torque = regressor(robot, q, dq, ddq, model.terms) @ model.chi
    return bool(np.all(np.abs(torque) < _SHARE * robot.effort_limits))


def _responses(model: SwingModel, groups: Sequence[ParameterGroup], motion: Sinusoid) -> Array:
    """Tracking errors to a relative error of each group, (n_samples n, n_groups), over the reach of the motion.

    Critically damped feedback under a torque error obeys ``x'' + 2 b x' + b² x = M^-1 torque``.
    """
    q, dq, ddq = motion.sample(_TIMES)
    rest, n = np.zeros_like(q), q.shape[1]

    def rows(dq: Array, ddq: Array) -> Array:
        return np.asarray(regressor(model.robot, q, dq, ddq, model.terms))

    heavy = rows(rest, rest)
    moving = rows(dq, ddq) - heavy
    mass = np.stack([(rows(rest, rest + unit) - heavy) @ model.chi for unit in np.eye(n)], axis=2)
    torque = [
        (heavy if any(group is one for one in model.gravity) else moving) @ (CHANGE * group.nominal * group.direction)
        for group in groups
    ]
    pushes = np.linalg.solve(mass, np.stack(torque, axis=2))  # (n_samples, n, n_groups)
    x, v, found = np.zeros(pushes.shape[1:]), np.zeros(pushes.shape[1:]), []
    for push in pushes:
        v = v + _TIMES[1] * (push - 2.0 * BANDWIDTH * v - BANDWIDTH**2 * x)
        x = x + _TIMES[1] * v
        found.append(x)
    return np.asarray(np.concatenate(found) / REACH)


def choose_start(model: SwingModel, groups: Sequence[ParameterGroup], pose: Array, size: float) -> Array:
    """Displacement of up to `size` in every joint, (n,), in which an error of every group shows in the swing."""
    about, n = equations_about(model, pose), len(pose)
    mass = about.mass @ model.chi
    if n <= _FEW:
        patterns = np.array([x for x in itertools.product((1.0, 0.0, -1.0), repeat=n) if any(x)])
    else:
        patterns = np.random.default_rng(0).integers(-1, 2, (3**_FEW, n)).astype(float)

    def score(x: Array) -> float:
        parts = [about.stiffness if any(one is g for g in model.gravity) else about.mass for one in groups]
        pushes = [(part @ (one.nominal * one.direction)) @ x for part, one in zip(parts, groups, strict=True)]
        return information_of(np.asarray(np.linalg.solve(mass, np.stack(pushes, axis=1)), dtype=np.float64))

    return np.asarray(size * max(patterns, key=score))
