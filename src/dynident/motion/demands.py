"""Everything a motion must respect, as one vector of slacks: on the raster of the search, at poses, at a fine rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.state import Actuation
from dynident.dynamics.terms import Term
from dynident.motion.constraints import DistanceLimit, FollowerLimit, JointLimit, Limit, Linear, TorqueLimit
from dynident.motion.geometry import CapsuleDistances, Distances, ObstacleDistances, link_capsules
from dynident.motion.limits import JointLimits
from dynident.motion.space import Raster, Space
from dynident.motion.trajectory import State
from dynident.robot.model import Robot

_BLOCK = 1000  # samples of a fine check at a time
_UNITS = {  # of joints that turn and of joints that slide
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "acceleration": ("rad/s²", "m/s²"),
    "torque": ("N·m", "N"),
}


@dataclass(frozen=True)
class Workspace:
    """What the links must keep away from.

    Attributes:
        floor: Height above which every moving part stays [m], or None.
        boxes: (n_boxes, 2, 3) lower and upper corners of boxes to stay out of, in the base frame [m].
        clearance: Least distance between links that are not neighbours [m], or None.
        radius: Radius of the links, or by link name with "default" for the others [m].
    """

    floor: float | None = None
    boxes: Array | None = None
    clearance: float | None = None
    radius: float | Mapping[str, float] = 0.05


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


class Stacked:
    """Derivative of all limits together."""

    def __init__(self, parts: Sequence[Linear], sizes: Sequence[int]) -> None:
        self.parts, self._cuts = parts, np.cumsum(sizes)[:-1]

    def times(self, dx: Array) -> Array:
        """J dx."""
        return np.concatenate([part.times(dx) for part in self.parts])

    def pull(self, v: Array) -> Array:
        """J' v."""
        return np.asarray(sum(part.pull(own) for part, own in zip(self.parts, np.split(v, self._cuts), strict=True)))

    def gram(self, d: Array) -> Array:
        """J' diag(d) J."""
        return np.asarray(sum(part.gram(own) for part, own in zip(self.parts, np.split(d, self._cuts), strict=True)))


class Demands:
    """All limits of a search.

    Args:
        robot: The robot.
        limits: Of the joints.
        workspace: Of the links.
        torque: Terms (smooth, exact) and values of the torque that is limited, or None.
        space: Where motions live.
        seed: Of the poses by which the geometry is explored.
    """

    def __init__(
        self,
        robot: Robot,
        limits: JointLimits,
        workspace: Workspace,
        torque: tuple[Sequence[Term], Sequence[Term], Array] | None,
        space: Space,
        seed: int = 0,
    ) -> None:
        self.robot, self.limits, self.space, self._torque = robot, limits, space, torque
        poses = limits.lower + (limits.upper - limits.lower) * np.random.default_rng(seed).random(
            (300, len(limits.lower))
        )
        self.distances = dict(_distances(robot, workspace, poses))

    def on(self, raster: Raster) -> list[Limit]:
        """The limits on a raster."""
        found = self._joints(raster)
        if self._torque is not None and np.isfinite(self.limits.effort).any():
            smooth, _, chi = self._torque
            found.append(TorqueLimit(self.robot, smooth, chi, self.limits.effort, self.space, raster))
        return found + [DistanceLimit(kind, what, raster) for kind, what in self.distances.items()]

    def _joints(self, raster: Raster) -> list[Limit]:
        names, limits = self.robot.joint_names, self.limits
        found: list[Limit] = [JointLimit("position", raster, np.array([limits.lower, limits.upper]), names)]
        for kind in ("velocity", "acceleration"):
            bound = getattr(limits, kind)
            if np.isfinite(bound).any():
                found.append(JointLimit(kind, raster, np.array([-bound, bound]), names))
        return [*found, *_followers(self.robot, raster)]

    def at(self, states: State) -> list[Shortfall]:
        """The least slack of every kind of limit over states, in the order of `on`, with friction's exact sign."""
        measures: list[tuple[str, Callable[[State], Array], list[str], Array]] = [
            (limit.kind, limit.evaluate, limit.labels(), limit.sizes())
            for limit in self._joints(_no_raster(self.space))
        ]
        if self._torque is not None and np.isfinite(self.limits.effort).any():
            kept = np.flatnonzero(np.isfinite(self.limits.effort))
            labels = [f"{side} torque of {self.robot.joint_names[j]}" for side in ("upper", "lower") for j in kept]
            measures.append(("torque", self._torque_slack, labels, np.tile(self.limits.effort[kept], 2)))
        for kind, what in self.distances.items():
            near = DistanceLimit(kind, what, _no_raster(self.space))
            measures.append((kind, near.evaluate, near.labels(), near.sizes()))
        slides = {joint.name for joint in self.robot.joints if joint.kind == "prismatic"}
        return [_worst(*measure, states, slides) for measure in measures if measure[2]]

    def slack_at(self, poses: Array) -> Array:
        """The least slack of all limits at each pose at rest, (n_poses,)."""
        still = np.zeros_like(poses)
        states = (poses, still, still)
        low, high = self.limits.lower, self.limits.upper
        found = [np.minimum(poses - low, high - poses).T / (high - low)[:, None]]
        found += [limit.evaluate(states) for limit in _followers(self.robot, _no_raster(self.space))]
        if self._torque is not None and np.isfinite(self.limits.effort).any():
            found.append(self._torque_slack(states))
        found += [what.measure(poses) / 0.1 for what in self.distances.values()]
        return np.asarray(np.concatenate(found).min(0))

    def _torque_slack(self, states: State) -> Array:
        assert self._torque is not None
        _, exact, chi = self._torque
        kept = np.flatnonzero(np.isfinite(self.limits.effort))
        share = inverse_dynamics(self.robot, *states, exact, chi).T[kept] / self.limits.effort[kept][:, None]
        return np.concatenate([1.0 - share, 1.0 + share])


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


def _no_raster(space: Space) -> Raster:
    return space.raster(np.zeros(1))


def _followers(robot: Robot, raster: Raster) -> Iterator[Limit]:
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
            yield FollowerLimit(kind, raster, bounds, actuation.follow[places], actuation.rest[places], names)


def _distances(robot: Robot, workspace: Workspace, poses: Array) -> Iterator[tuple[str, Distances]]:
    radius = workspace.radius if isinstance(workspace.radius, int | float) else dict(workspace.radius)
    capsules = link_capsules(robot, radius)
    if workspace.floor is not None or (workspace.boxes is not None and len(workspace.boxes)):
        around = ObstacleDistances(robot, capsules, poses, floor=workspace.floor, boxes=workspace.boxes)
        if around.labels:
            yield "keep-out", around
    if workspace.clearance is not None:
        pairs = CapsuleDistances(robot, capsules, workspace.clearance, poses)
        if pairs.labels:
            yield "clearance", pairs
