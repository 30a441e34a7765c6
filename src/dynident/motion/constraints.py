"""Limits along a motion as numbers that must stay positive, with their derivatives.

Every limit is divided by its own size, so a slack of 0.01 is one hundredth of what is allowed: of a joint's range, of
its greatest speed, of a length for distances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import equations as eq
from dynident.dynamics.jit.program import Program
from dynident.dynamics.kernels import Recording
from dynident.dynamics.terms import Term
from dynident.motion.geometry import Distances
from dynident.motion.space import Raster, Space, Tape
from dynident.motion.trajectory import State
from dynident.robot.model import Robot


class Limit(ABC):
    """Limits of one kind at every sample.

    Attributes:
        kind: In words, for messages.
    """

    kind: str

    @abstractmethod
    def evaluate(self, states: State) -> Array:
        """Slacks, (n_limits, n_samples)."""

    @abstractmethod
    def labels(self) -> list[str]:
        """What each row of the slacks is about, for messages."""

    @abstractmethod
    def sizes(self) -> Array:
        """(n_limits,) by which each was divided, in its own unit."""

    @abstractmethod
    def linearise(self) -> Linear:
        """The derivative where `evaluate` was last called."""


class Linear(ABC):
    """Derivative of one kind of limit with respect to x; slacks are flattened row by row."""

    @abstractmethod
    def times(self, dx: Array) -> Array:
        """J dx, (n_limits * n_samples,)."""

    @abstractmethod
    def pull(self, v: Array) -> Array:
        """J' v."""

    @abstractmethod
    def gram(self, d: Array) -> Array:
        """J' diag(d) J."""


class JointLinear(Linear):
    """Two-sided limits of single joints, waves (n_samples, k) times the joint's own coordinates."""

    def __init__(self, waves: Array, joints: list[int], n_joints: int, size: Array) -> None:
        self.waves, self.joints, self.n_joints, self.size = waves, joints, n_joints, size

    def times(self, dx: Array) -> Array:
        """Toward the upper limit the slack falls, away from the lower one it grows."""
        X = dx.reshape(self.n_joints, -1)[self.joints]
        y = (X @ self.waves.T) / self.size[:, None]
        return np.concatenate([-y, y]).ravel()

    def _split(self, v: Array) -> tuple[Array, Array]:
        upper, lower = v.reshape(2, len(self.joints), -1)
        return upper, lower

    def pull(self, v: Array) -> Array:
        """J' v."""
        upper, lower = self._split(v)
        result = np.zeros((self.n_joints, self.waves.shape[1]))
        result[self.joints] = ((lower - upper) / self.size[:, None]) @ self.waves
        return result.ravel()

    def gram(self, d: Array) -> Array:
        """Block diagonal: each joint has its own coordinates."""
        upper, lower = self._split(d)
        k = self.waves.shape[1]
        weights = (upper + lower) / self.size[:, None] ** 2
        blocks = (self.waves.T[None] * weights[:, None, :]) @ self.waves
        result = np.zeros((self.n_joints, k, self.n_joints, k))
        for joint, block in zip(self.joints, blocks, strict=True):
            result[joint, :, joint, :] = block
        return result.reshape(self.n_joints * k, -1)


class Products:
    """Products of every two of the waves at each sample, which second derivatives need; made once for a raster."""

    def __init__(self, waves: Sequence[Array]) -> None:
        self.waves = list(waves)
        self.pairs = {
            (a, b): (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
            for a, first in enumerate(self.waves)
            for b, second in enumerate(self.waves)
            if a <= b
        }


class ProductLinear(Linear):
    """Limits that depend on all joints: derivatives with respect to q (dq, ddq) times the waves.

    J itself would be large and is never formed: at each sample it is the product of a small matrix over the joints and
    the values of the waves.

    Args:
        slopes: (n_limits, n_samples, n_joints) with respect to q, and as many for dq and ddq as there are waves.
        products: The waves.
        two_sided: Whether each is a limit from above and from below.
    """

    def __init__(self, slopes: Sequence[Array], products: Products, two_sided: bool) -> None:
        self.slopes, self.products, self.two_sided = list(slopes), products, two_sided

    def times(self, dx: Array) -> Array:
        """J dx."""
        X = dx.reshape(self.slopes[0].shape[2], -1).T
        pairs = zip(self.slopes, self.products.waves, strict=True)
        y = np.asarray(sum(np.sum(slope * (waves @ X), axis=2) for slope, waves in pairs)).ravel()
        return np.concatenate([-y, y]) if self.two_sided else y

    def pull(self, v: Array) -> Array:
        """J' v."""
        if self.two_sided:
            upper, lower = v.reshape(2, -1)
            v = lower - upper
        weights = v.reshape(self.slopes[0].shape[:2])[..., None]
        pairs = zip(self.slopes, self.products.waves, strict=True)
        return np.asarray(sum(np.sum(slope * weights, axis=0).T @ waves for slope, waves in pairs)).ravel()

    def gram(self, d: Array) -> Array:
        """J' diag(d) J: at each sample a matrix over the joints times the products of the waves."""
        if self.two_sided:
            d = d.reshape(2, -1).sum(0)
        n, k = self.slopes[0].shape[2], self.products.waves[0].shape[1]
        by_sample = [np.swapaxes(slope, 0, 1) for slope in self.slopes]  # (n_samples, n_limits, n_joints)
        weighted = [part * d.reshape(self.slopes[0].shape[:2]).T[..., None] for part in by_sample]
        result = np.zeros((n, k, n, k))
        for (a, b), products in self.products.pairs.items():
            joints = np.swapaxes(weighted[a], 1, 2) @ by_sample[b]  # (n_samples, n_joints, n_joints)
            block = (joints.reshape(len(joints), -1).T @ products).reshape(n, n, k, k).transpose(0, 2, 1, 3)
            result += block if a == b else block + block.transpose(2, 3, 0, 1)
        return result.reshape(n * k, n * k)


class JointLimit(Limit):
    """Position, speed or acceleration of the joints between two bounds.

    Args:
        kind: "position", "velocity" or "acceleration".
        raster: The waves.
        bounds: (2, n_joints) lower and upper; infinite ones are no limits.
        names: Joint names.
    """

    def __init__(self, kind: str, raster: Raster, bounds: Array, names: Sequence[str]) -> None:
        self.kind, self.names = kind, list(names)
        self.order = {"position": 0, "velocity": 1, "acceleration": 2}[kind]
        waves = (raster.position, raster.speed, raster.acceleration)[self.order]
        self.joints = [j for j in range(len(names)) if np.isfinite(bounds[:, j]).all()]
        self.lower, self.upper = bounds[:, self.joints]
        self.size = self.upper - self.lower if kind == "position" else self.upper
        self._linear = JointLinear(waves, self.joints, len(names), self.size)

    def evaluate(self, states: State) -> Array:
        """Distance to the upper bounds, then to the lower ones, as shares."""
        y = states[self.order][:, self.joints].T
        size = self.size[:, None]
        return np.concatenate([(self.upper[:, None] - y) / size, (y - self.lower[:, None]) / size])

    def labels(self) -> list[str]:
        """Upper ones first."""
        return [f"{side} {self.kind} of {self.names[j]}" for side in ("upper", "lower") for j in self.joints]

    def sizes(self) -> Array:
        """Ranges or greatest values."""
        return np.concatenate([self.size, self.size])

    def linearise(self) -> Linear:
        """Always the same."""
        return self._linear


class FollowerLimit(Limit):
    """Position or speed of joints that follow the moving ones, such as the passive joints of a loop.

    Args:
        kind: "position" or "velocity".
        raster: The waves.
        bounds: (2, n_followers) lower and upper.
        follow: (n_followers, n_joints) speeds of the followers from those of the moving joints.
        rest: (n_followers,) their positions where the moving joints are at zero.
        names: Their names.
    """

    def __init__(
        self, kind: str, raster: Raster, bounds: Array, follow: Array, rest: Array, names: Sequence[str]
    ) -> None:
        self.kind, self.names, self.follow = kind, list(names), follow
        self.order = {"position": 0, "velocity": 1}[kind]
        self.rest = rest if kind == "position" else np.zeros_like(rest)
        self.lower, self.upper = bounds
        self.size = self.upper - self.lower if kind == "position" else self.upper
        waves = (raster.position, raster.speed)[self.order]
        slopes = np.repeat((follow / self.size[:, None])[:, None, :], len(waves), axis=1)
        self._linear = ProductLinear([slopes], Products([waves]), two_sided=True)

    def evaluate(self, states: State) -> Array:
        """Distance to the upper bounds, then to the lower ones, as shares."""
        y = self.follow @ states[self.order].T + self.rest[:, None]
        size = self.size[:, None]
        return np.concatenate([(self.upper[:, None] - y) / size, (y - self.lower[:, None]) / size])

    def labels(self) -> list[str]:
        """Upper ones first."""
        return [f"{side} {self.kind} of {name}" for side in ("upper", "lower") for name in self.names]

    def sizes(self) -> Array:
        """Ranges or greatest values."""
        return np.concatenate([self.size, self.size])

    def linearise(self) -> Linear:
        """Always the same."""
        return self._linear


class TorqueLimit(Limit):
    """Torque of the robot's own values within the effort limits.

    Args:
        robot: The robot.
        terms: Terms of the torque: rigid links, rotors, friction, offsets.
        chi: (n_columns,) values of their parameters.
        effort: (n_joints,) limits [N·m or N]; infinite ones are no limits.
        space, raster: Where the motion lives.
    """

    kind = "torque"

    def __init__(
        self, robot: Robot, terms: Sequence[Term], chi: Array, effort: Array, space: Space, raster: Raster
    ) -> None:
        self.joints = [j for j in range(len(effort)) if np.isfinite(effort[j])]
        self.names, self.effort = robot.joint_names, effort[self.joints]
        self.n = len(effort)
        self._products = Products((raster.position, raster.speed, raster.acceleration))
        program = torque_program(robot, terms, chi, self.joints)
        self.n_samples = len(raster.times)
        # One batch for the values; one of all joints one after the other for the derivatives.
        self._tape = Tape(program, self.n_samples * len(self.joints))
        which = np.repeat(np.arange(len(self.joints)), self.n_samples)
        self._tape.weights[:] = which[None, :] == np.arange(len(self.joints))[:, None]

    def evaluate(self, states: State) -> Array:
        """Shares of the effort that are left, upper side first."""
        tiled = tuple(np.tile(x, (len(self.joints), 1)) for x in states)
        values = self._tape.evaluate(*tiled)[:, : self.n_samples] / self.effort[:, None]
        return np.concatenate([1.0 - values, 1.0 + values])

    def labels(self) -> list[str]:
        """Upper ones first."""
        return [f"{side} torque of {self.names[j]}" for side in ("upper", "lower") for j in self.joints]

    def sizes(self) -> Array:
        """Efforts."""
        return np.concatenate([self.effort, self.effort])

    def linearise(self) -> Linear:
        """Derivatives of each torque with respect to q, dq, ddq, times the waves."""
        slopes = self._tape.pull().reshape(3, self.n, len(self.joints), self.n_samples) / self.effort[:, None]
        return ProductLinear([np.moveaxis(part, 0, 2) for part in slopes], self._products, two_sided=True)


def torque_program(robot: Robot, terms: Sequence[Term], chi: Array, joints: Sequence[int]) -> Program:
    """The program of the torque of some joints, with the parameters' values folded in."""
    recording = Recording(robot, terms, ("q", "dq", "ddq"))
    torques = eq.inverse_dynamics(recording.state(), terms, [float(x) for x in chi])
    return recording.recorder.finish([torques[j] for j in joints])


class DistanceLimit(Limit):
    """Distances (to a table, to boxes, between links) above what is demanded.

    Args:
        kind: In words.
        distances: What is measured.
        raster: The waves.
    """

    _UNIT = 0.1  # [m] a slack of 1

    def __init__(self, kind: str, distances: Distances, raster: Raster) -> None:
        self.kind, self.distances, self._products = kind, distances, Products([raster.position])

    def evaluate(self, states: State) -> Array:
        """Distance beyond what is demanded, in tenths of a metre."""
        return self.distances.measure(states[0]) / self._UNIT

    def labels(self) -> list[str]:
        """What is near what."""
        return self.distances.labels

    def sizes(self) -> Array:
        """Tenths of a metre."""
        return np.full(len(self.distances.labels), self._UNIT)

    def linearise(self) -> Linear:
        """Derivative with respect to q times the waves."""
        return ProductLinear([self.distances.slopes() / self._UNIT], self._products, two_sided=False)
