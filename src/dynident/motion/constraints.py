"""Limits along a motion as numbers that must stay positive, with their derivatives.

Every limit is divided by its own size, so a slack of 0.01 is one hundredth of what is allowed: of a joint's range, of
its greatest velocity, of a length for distances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import equations as eq
from dynident.dynamics.jit.program import Program
from dynident.dynamics.kernels import Recording
from dynident.dynamics.terms import Term
from dynident.motion.closing import loop_solver, make_tape
from dynident.motion.geometry import Distances
from dynident.motion.space import Waves
from dynident.motion.thresholds import THRESHOLDS
from dynident.motion.trajectory import State
from dynident.robot.model import Robot

ORDERS = ("position", "velocity", "acceleration")
_UNIT_SLACK_M = 0.1  # a slack of 1
_STEP = 1e-4  # [rad or m] over which the derivative of a pivot is taken


class Limit(ABC):
    """Limits of one kind at every sample, and their derivative J with respect to x.

    Slacks are flattened row by row. J would be large and is never formed: at each sample it is the product of a small
    matrix over the joints, the derivatives with respect to q (dq, ddq), and the values of the waves.

    Args:
        kind: In words, for messages.
        labels: What each row of the slacks is about, for messages; of limits from above and from below, the upper ones.
        sizes: (n_limits,) by which each was divided, in its own unit.
        waves: (n_samples, n_per_joint) of q, and of dq and ddq where the limit depends on them.
        two_sided: Whether each is a limit from above and from below.
    """

    _slopes: list[Array]  # (n_limits, n_samples, n_joints) with respect to q, and as many as there are waves

    def __init__(self, kind: str, labels: list[str], sizes: Array, waves: Sequence[Array], two_sided: bool) -> None:
        self.kind, self._waves, self._two_sided = kind, list(waves), two_sided
        sides = [f"{side} {label}" for side in ("upper", "lower") for label in labels]
        self.labels = sides if two_sided else labels
        self.sizes = np.concatenate([sizes, sizes]) if two_sided else sizes

    @abstractmethod
    def evaluate(self, states: State) -> Array:
        """Slacks, (n_limits, n_samples)."""

    @abstractmethod
    def linearize(self) -> None:
        """Take the derivative where `evaluate` was last called; `times`, `pull` and `gram` hold until the next call."""

    @cached_property
    def _products(self) -> dict[tuple[int, int], Array]:
        """Products of every two of the waves at each sample, which second derivatives need."""
        return {
            (a, b): (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
            for a, first in enumerate(self._waves)
            for b, second in enumerate(self._waves)
            if a <= b
        }

    def times(self, dx: Array) -> Array:
        """J dx, (n_limits * n_samples,)."""
        X = dx.reshape(self._slopes[0].shape[2], -1).T
        pairs = zip(self._slopes, self._waves, strict=True)
        y = np.asarray(sum(np.sum(slope * (waves @ X), axis=2) for slope, waves in pairs)).ravel()
        return np.concatenate([-y, y]) if self._two_sided else y

    def pull(self, v: Array) -> Array:
        """J' v."""
        if self._two_sided:
            upper, lower = v.reshape(2, -1)
            v = lower - upper
        weights = v.reshape(self._slopes[0].shape[:2])[..., None]
        pairs = zip(self._slopes, self._waves, strict=True)
        return np.asarray(sum(np.sum(slope * weights, axis=0).T @ waves for slope, waves in pairs)).ravel()

    def gram(self, d: Array) -> Array:
        """J' diag(d) J: at each sample a matrix over the joints times the products of the waves."""
        if self._two_sided:
            d = d.reshape(2, -1).sum(0)
        n, k = self._slopes[0].shape[2], self._waves[0].shape[1]
        by_sample = [np.swapaxes(slope, 0, 1) for slope in self._slopes]  # (n_samples, n_limits, n_joints)
        weighted = [part * d.reshape(self._slopes[0].shape[:2]).T[..., None] for part in by_sample]
        result = np.zeros((n, k, n, k))
        for (a, b), products in self._products.items():
            joints = np.swapaxes(weighted[a], 1, 2) @ by_sample[b]  # (n_samples, n_joints, n_joints)
            block = (joints.reshape(len(joints), -1).T @ products).reshape(n, n, k, k).transpose(0, 2, 1, 3)
            result += block if a == b else block + block.transpose(2, 3, 0, 1)
        return result.reshape(n * k, n * k)


class FollowerLimit(Limit):
    """Position, velocity or acceleration, between two bounds, of joints that follow the moving ones as in a loop.

    Args:
        kind: "position", "velocity" or "acceleration".
        waves: Those of the space.
        bounds: (2, n_followers) lower and upper.
        names: Their names.
        follow: (n_followers, n_joints) velocities of the followers from those of the moving joints.
        rest: (n_followers,) their positions where the moving joints are at zero.
    """

    def __init__(
        self, kind: str, waves: Waves, bounds: Array, names: Sequence[str], follow: Array, rest: Array
    ) -> None:
        self.order = ORDERS.index(kind)
        self.lower, self.upper = bounds
        self._size = self.upper - self.lower if kind == "position" else self.upper
        super().__init__(kind, [f"{kind} of {name}" for name in names], self._size, [waves[self.order]], True)
        self._follow, self._rest = follow, rest if kind == "position" else np.zeros_like(rest)

    def _measure(self, states: State) -> Array:
        """(n_followers, n_samples) what is between the bounds."""
        return np.asarray(self._follow @ states[self.order].T + self._rest[:, None])

    def evaluate(self, states: State) -> Array:
        """Distance to the upper bounds, then to the lower ones, as shares."""
        y, size = self._measure(states), self._size[:, None]
        return np.concatenate([(self.upper[:, None] - y) / size, (y - self.lower[:, None]) / size])

    def linearize(self) -> None:
        """Always the same."""
        n_samples = len(self._waves[0])
        self._slopes = [np.repeat((self._follow / self._size[:, None])[:, None, :], n_samples, axis=1)]


class JointLimit(FollowerLimit):
    """The same of the moving joints: each depends on its own coordinates alone, so that J is block diagonal.

    Args:
        kind, waves: See `FollowerLimit`.
        bounds: (2, n_joints) lower and upper; infinite ones are no limits.
        names: Joint names.
    """

    def __init__(self, kind: str, waves: Waves, bounds: Array, names: Sequence[str]) -> None:
        self.joints, self._n = [j for j in range(len(names)) if np.isfinite(bounds[:, j]).all()], len(names)
        own = [names[j] for j in self.joints]
        super().__init__(kind, waves, bounds[:, self.joints], own, np.eye(len(names))[self.joints], np.zeros(len(own)))

    def _measure(self, states: State) -> Array:
        return states[self.order][:, self.joints].T

    def linearize(self) -> None:
        """Always the same."""

    def times(self, dx: Array) -> Array:
        """Toward the upper limit the slack falls, away from the lower one it grows."""
        X = dx.reshape(self._n, -1)[self.joints]
        y = (X @ self._waves[0].T) / self._size[:, None]
        return np.concatenate([-y, y]).ravel()

    def pull(self, v: Array) -> Array:
        """J' v."""
        upper, lower = v.reshape(2, len(self.joints), -1)
        result = np.zeros((self._n, self._waves[0].shape[1]))
        result[self.joints] = ((lower - upper) / self._size[:, None]) @ self._waves[0]
        return result.ravel()

    def gram(self, d: Array) -> Array:
        """Block diagonal: each joint has its own coordinates."""
        upper, lower = d.reshape(2, len(self.joints), -1)
        waves = self._waves[0]
        k = waves.shape[1]
        weights = (upper + lower) / self._size[:, None] ** 2
        blocks = (waves.T[None] * weights[:, None, :]) @ waves
        result = np.zeros((self._n, k, self._n, k))
        for joint, block in zip(self.joints, blocks, strict=True):
            result[joint, :, joint, :] = block
        return result.reshape(self._n * k, -1)


class TorqueLimit(Limit):
    """Torque of the robot's own values within the effort limits.

    Args:
        robot: The robot.
        terms: Terms of the torque: rigid links, rotors, friction, offsets.
        chi: (n_columns,) values of their parameters.
        effort: (n_joints,) limits [N·m or N]; infinite ones are no limits.
        waves: Those of the space.
    """

    def __init__(self, robot: Robot, terms: Sequence[Term], chi: Array, effort: Array, waves: Waves) -> None:
        self.joints = [j for j in range(len(effort)) if np.isfinite(effort[j])]
        self.n, self.n_samples, self._size = len(effort), len(waves[0]), effort[self.joints]
        labels = [f"torque of {robot.joint_names[j]}" for j in self.joints]
        super().__init__("torque", labels, self._size, waves, two_sided=True)
        program = torque_program(robot, terms, chi, self.joints)
        # One batch for the values; one of all joints one after the other for the derivatives.
        self._tape = make_tape(program, self.n_samples * len(self.joints), robot, len(self.joints))
        which = np.repeat(np.arange(len(self.joints)), self.n_samples)
        self._tape.weights[:] = which[None, :] == np.arange(len(self.joints))[:, None]

    def evaluate(self, states: State) -> Array:
        """Shares of the effort that are left, upper side first."""
        tiled = tuple(np.tile(x, (len(self.joints), 1)) for x in states)
        values = self._tape.evaluate(*tiled)[:, : self.n_samples] / self._size[:, None]
        return np.concatenate([1.0 - values, 1.0 + values])

    def linearize(self) -> None:
        """Derivatives of each torque with respect to q, dq, ddq."""
        slopes = self._tape.pull().reshape(3, self.n, len(self.joints), self.n_samples) / self._size[:, None]
        self._slopes = [np.moveaxis(part, 0, 2) for part in slopes]


def torque_program(robot: Robot, terms: Sequence[Term], chi: Array, joints: Sequence[int]) -> Program:
    """The program of the torque of some joints, with the parameters' values folded in."""
    recording = Recording(robot, terms, ("q", "dq", "ddq"))
    torques = eq.inverse_dynamics(recording.state(), terms, [float(x) for x in chi])
    return recording.recorder.finish([torques[j] for j in joints])


class LoopLimit(Limit):
    """Loops closed, away from poses where they do not determine the passive joints.

    Args:
        robot: The robot.
        waves: Those of the space.
    """

    def __init__(self, robot: Robot, waves: Waves) -> None:
        assert robot.closure is not None
        names = ", ".join(loop.name for loop in robot.closure.loops)
        super().__init__("loops", [f"closing of the loops {names}"], np.ones(1), waves[:1], two_sided=False)
        self._solver = loop_solver(robot)

    def evaluate(self, states: State) -> Array:
        """Pivot of the loops beyond what it is to be, (1, n_samples)."""
        self._q = states[0]
        return self._slack(self._q)

    def _slack(self, q: Array) -> Array:
        found = self._solver.at(q)
        return np.where(found.fine, found.pivot, 0.0)[None] - THRESHOLDS.least_pivot

    def linearize(self) -> None:
        """Derivative by differences: pivots are no outputs of a program."""
        steps = _STEP * np.eye(self._q.shape[1])
        slopes = [0.5 / _STEP * (self._slack(self._q + step) - self._slack(self._q - step))[0] for step in steps]
        self._slopes = [np.stack(slopes, axis=1)[None]]


class SolvedLimit(Limit):
    """Positions of the solved joints between their limits.

    Args:
        robot: The robot.
        places: Which of the solved joints have limits.
        waves: Those of the space.
    """

    def __init__(self, robot: Robot, places: list[int], waves: Waves) -> None:
        assert robot.closure is not None
        joints = [robot.joints[robot.closure.solved[place]] for place in places]
        self._lower, self._upper = np.array([(joint.limits.lower, joint.limits.upper) for joint in joints]).T
        self._places, self._solver, self._size = places, loop_solver(robot), self._upper - self._lower
        self._turns = np.array([joint.kind == "revolute" for joint in joints])
        super().__init__("position", [f"position of {joint.name}" for joint in joints], self._size, waves[:1], True)

    def evaluate(self, states: State) -> Array:
        """Distance to the upper limits, then to the lower ones, as shares."""
        self._q = states[0]
        s, size = self._solver.at(self._q).s[self._places], self._size[:, None]
        middle = 0.5 * (self._lower + self._upper)[:, None]
        turns = np.round((s - middle) / (2.0 * np.pi)) * self._turns[:, None]  # solutions may be whole turns away
        s = s - 2.0 * np.pi * turns
        return np.concatenate([(self._upper[:, None] - s) / size, (s - self._lower[:, None]) / size])

    def linearize(self) -> None:
        """Rows of G."""
        G = self._solver.jacobian(self._q)[self._places]
        self._slopes = [np.moveaxis(G, 1, 2) / self._size[:, None, None]]


class DistanceLimit(Limit):
    """Distances (to a table, to boxes, between links) above what is demanded.

    Args:
        kind: In words.
        distances: What is measured.
        waves: Those of the space.
    """

    def __init__(self, kind: str, distances: Distances, waves: Waves) -> None:
        unit = np.full(len(distances.labels), _UNIT_SLACK_M)
        super().__init__(kind, distances.labels, unit, waves[:1], two_sided=False)
        self.distances = distances

    def evaluate(self, states: State) -> Array:
        """Distance beyond what is demanded, in tenths of a meter."""
        return self.distances.measure(states[0]) / _UNIT_SLACK_M

    def linearize(self) -> None:
        """Derivative with respect to q."""
        self._slopes = [self.distances.slopes() / _UNIT_SLACK_M]


def limited_places(robot: Robot) -> list[int]:
    """Which of the solved joints have position limits."""
    if robot.closure is None:
        return []
    limits = [robot.joints[joint].limits for joint in robot.closure.solved]
    return [
        place
        for place, one in enumerate(limits)
        if one.lower is not None and one.upper is not None and one.lower < one.upper
    ]
