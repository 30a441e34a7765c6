"""Everything a motion must respect, as one vector of slacks: on the raster of the search, at poses, at a fine rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.state import Actuation
from dynident.dynamics.terms import Term
from dynident.motion.closing import loop_solver
from dynident.motion.constraints import (
    DistanceLimit,
    FollowerLimit,
    JointLimit,
    Limit,
    LoopLimit,
    SolvedLimit,
    TorqueLimit,
    limited_places,
)
from dynident.motion.geometry import CapsuleDistances, Distances, ObstacleDistances, link_capsules
from dynident.motion.limits import JointLimits
from dynident.motion.options import ExcitationOptions
from dynident.motion.space import Space, Waves
from dynident.motion.trajectory import State
from dynident.robot.model import Robot

_BLOCK = 1000  # samples of a fine check at a time
_UNITS = {  # of joints that turn and of joints that slide
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "acceleration": ("rad/s²", "m/s²"),
    "torque": ("N·m", "N"),
    "loops": ("of 1 (0 is singular)",) * 2,
}


@dataclass(frozen=True)
class Shortfall:
    """The worst slack of a kind of limit: how much of it is left (negative: by how much it is broken).

    Attributes:
        kind: Kind of limit.
        label: Which one.
        share: Slack as a share of the limit.
        amount: The same in the limit's own unit.
        unit: That unit.
        shares: (n_limits,) of all limits of the kind.
    """

    kind: str
    label: str
    share: float
    amount: float
    unit: str
    shares: Array

    def __str__(self) -> str:
        """Such as `upper torque of elbow broken by 12.3 N·m`."""
        word = "broken by" if self.amount < 0.0 else "within"
        return f"{self.label} {word} {abs(self.amount):.3g} {self.unit}"


class Demands:
    """All limits of a search.

    Args:
        robot: The robot.
        limits: Of the joints.
        torque: Terms (smooth, exact) and values of the torque that is limited, or None.
        space: Where motions live.
        options: What the links keep away from (`floor`, `boxes`, `clearance`, `radius`), and the `seed` of the poses by
            which the geometry is explored.
    """

    def __init__(
        self,
        robot: Robot,
        limits: JointLimits,
        torque: tuple[Sequence[Term], Sequence[Term], Array] | None,
        space: Space,
        options: ExcitationOptions,
    ) -> None:
        self.robot, self.limits, self.space = robot, limits, space
        self._effort = np.flatnonzero(np.isfinite(limits.effort))  # joints whose torque is limited
        self._torque = torque if len(self._effort) else None
        n_poses = 300
        shares = np.random.default_rng(options.seed).random((n_poses, len(limits.lower)))
        self.distances = dict(_distances(robot, options, limits.lower + (limits.upper - limits.lower) * shares))
        self._still = space.waves(np.zeros(1))  # for limits that are only evaluated

    def on(self, waves: Waves) -> list[Limit]:
        """The limits at the samples of waves."""
        found = self._joints(waves)
        if self._torque is not None:
            smooth, _, chi = self._torque
            found.append(TorqueLimit(self.robot, smooth, chi, self.limits.effort, waves))
        return found + [DistanceLimit(kind, what, waves) for kind, what in self.distances.items()]

    def _joints(self, waves: Waves) -> list[Limit]:
        names, limits = self.robot.joint_names, self.limits
        found: list[Limit] = [JointLimit("position", waves, np.array([limits.lower, limits.upper]), names)]
        for kind in ("velocity", "acceleration"):
            bound = getattr(limits, kind)
            if np.isfinite(bound).any():
                found.append(JointLimit(kind, waves, np.array([-bound, bound]), names))
        return [*found, *_followers(self.robot, waves), *_loops(self.robot, waves)]

    def at(self, states: State) -> list[Shortfall]:
        """The least slack of every kind of limit over states, in the order of `on`, with friction's exact sign."""
        slides = {joint.name for joint in self.robot.joints if joint.kind == "prismatic"}
        found = [
            _worst(limit.kind, limit.evaluate, limit.labels, limit.sizes, states, slides)
            for limit in self._joints(self._still)
        ]
        if self._torque is not None:
            labels = [
                f"{side} torque of {self.robot.joint_names[j]}" for side in ("upper", "lower") for j in self._effort
            ]
            sizes = np.tile(self.limits.effort[self._effort], 2)
            found.append(_worst("torque", self._torque_slack, labels, sizes, states, slides))
        for kind, what in self.distances.items():
            near = DistanceLimit(kind, what, self._still)
            found.append(_worst(kind, near.evaluate, near.labels, near.sizes, states, slides))
        return found

    def slack_at(self, poses: Array) -> Array:
        """The least slack of all limits at each pose at rest, (n_poses,)."""
        still = np.zeros_like(poses)
        states = (poses, still, still)
        low, high = self.limits.lower, self.limits.upper
        found = [np.minimum(poses - low, high - poses).T / (high - low)[:, None]]
        found += [limit.evaluate(states) for limit in _followers(self.robot, self._still)]
        found += [limit.evaluate(states) for limit in _loops(self.robot, self._still)]
        if self._torque is not None:
            found.append(self._torque_slack(states))
        found += [DistanceLimit(kind, what, self._still).evaluate(states) for kind, what in self.distances.items()]
        return np.asarray(np.concatenate(found).min(0))

    def _torque_slack(self, states: State) -> Array:
        assert self._torque is not None
        _, exact, chi = self._torque
        q, dq, ddq = states
        n = len(q)
        closed = np.ones(n, dtype=bool) if self.robot.closure is None else loop_solver(self.robot).closable(q)
        share = np.zeros((len(self._effort), n))
        torque = inverse_dynamics(self.robot, q[closed], dq[closed], ddq[closed], exact, chi)
        share[:, closed] = torque.T[self._effort] / self.limits.effort[self._effort][:, None]
        slack = np.concatenate([1.0 - share, 1.0 + share])
        slack[:, ~closed] = -1.0  # no torque closes loops that cannot be closed
        return slack


def _worst(
    kind: str, evaluate: Callable[[State], Array], labels: list[str], sizes: Array, states: State, slides: set[str]
) -> Shortfall:
    least = np.full(len(labels), np.inf)
    for first in range(0, len(states[0]), _BLOCK):
        q, dq, ddq = (x[first : first + _BLOCK] for x in states)
        least = np.minimum(least, evaluate((q, dq, ddq)).min(1))
    worst = int(np.argmin(least))
    label, share = labels[worst], float(least[worst])
    unit = _UNITS.get(kind, ("m", "m"))[label.rpartition(" of ")[2] in slides]
    return Shortfall(kind, label, share, share * float(sizes[worst]), unit, least)


def _followers(robot: Robot, waves: Waves) -> Iterator[Limit]:
    """Limits of joints without a motor, where the description gives some."""
    actuation = Actuation(robot)
    passive = [i for i in range(len(robot.joints)) if i not in robot.active and actuation.follow[i].any()]
    for kind in ("position", "velocity"):
        own: list[tuple[int, float, float]] = []
        for i in passive:
            found = robot.joints[i].limits
            low, high = (found.lower, found.upper)
            if kind == "velocity":
                low, high = (None, None) if found.velocity is None else (-found.velocity, found.velocity)
            if low is not None and high is not None and low < high:
                own.append((i, low, high))
        if own:
            places = [i for i, _, _ in own]
            names = [robot.joints[i].name for i in places]
            bounds = np.array([[low for _, low, _ in own], [high for _, _, high in own]])
            yield FollowerLimit(kind, waves, bounds, names, actuation.follow[places], actuation.rest[places])


def _loops(robot: Robot, waves: Waves) -> Iterator[Limit]:
    """Loops that are closed numerically, and the limits of the joints that they are solved for."""
    if robot.closure is not None:
        yield LoopLimit(robot, waves)
        if places := limited_places(robot):
            yield SolvedLimit(robot, places, waves)


def _distances(robot: Robot, options: ExcitationOptions, poses: Array) -> Iterator[tuple[str, Distances]]:
    radius = options.radius if isinstance(options.radius, int | float) else dict(options.radius)
    capsules, boxes = link_capsules(robot, radius), np.array(options.boxes, dtype=np.float64).reshape(-1, 2, 3)
    if options.floor is not None or len(boxes):
        around = ObstacleDistances(robot, capsules, poses, floor=options.floor, boxes=boxes)
        if around.labels:
            yield "keep-out", around
    if options.clearance is not None:
        pairs = CapsuleDistances(robot, capsules, options.clearance, poses)
        if pairs.labels:
            yield "clearance", pairs
