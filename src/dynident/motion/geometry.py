"""Where the links are, on batches of poses: frames, distances and their derivatives with respect to the joints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.checks import Array
from dynident.dynamics.equations import Actuation
from dynident.robot.model import BASE, Robot


@dataclass(frozen=True)
class Pose:
    """All links in a batch of poses, in the base frame.

    Attributes:
        rotation: (n_links, n_samples, 3, 3) axes of the link frames.
        origin: (n_links, n_samples, 3) their origins [m].
        axis: (n_links, n_samples, 3) joint axes.
        moment: (n_links, n_samples, 3) axis x a point on it; zero for a prismatic joint.
    """

    rotation: Array
    origin: Array
    axis: Array
    moment: Array


class Kinematics:
    """Forward kinematics of a robot's tree."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._last: tuple[Array, Pose] | None = None
        actuation = Actuation(robot)
        self.follow, self.rest = actuation.follow, actuation.rest
        n = len(robot.joints)
        self.slides = np.array([joint.kind == "prismatic" for joint in robot.joints])
        self.carried = np.zeros((n + 1, n), dtype=bool)  # which joints carry a link; the last row is the base
        for i, joint in enumerate(robot.joints):
            if joint.parent != BASE:
                self.carried[i] = self.carried[joint.parent]
            self.carried[i, i] = True

    def pose(self, q: Array) -> Pose:
        """All links at positions q, (n_samples, n_joints); asked twice for the same positions, it answers once."""
        if self._last is not None and np.array_equal(self._last[0], q):
            return self._last[1]
        tree = q @ self.follow.T + self.rest
        n, n_samples = len(self.robot.joints), len(q)
        rotation, origin = np.empty((n, n_samples, 3, 3)), np.empty((n, n_samples, 3))
        axis, moment = np.empty((n, n_samples, 3)), np.zeros((n, n_samples, 3))
        for i, joint in enumerate(self.robot.joints):
            R, p = joint.before.rotation[None], joint.before.translation[None]
            if joint.parent != BASE:
                R = _times(rotation[joint.parent], R[0])
                p = _times(rotation[joint.parent], p[0]) + origin[joint.parent]
            R, p = np.broadcast_to(R, (n_samples, 3, 3)), np.broadcast_to(p, (n_samples, 3))
            axis[i] = R[..., 2]
            if self.slides[i]:
                p = p + axis[i] * tree[:, i, None]
            else:
                moment[i] = _cross(axis[i], p)
                R = _turned(R, tree[:, i])
            origin[i] = _times(R, joint.after.translation) + p
            rotation[i] = _times(R, joint.after.rotation)
        self._last = (q.copy(), Pose(rotation, origin, axis, moment))
        return self._last[1]

    def points(self, pose: Pose, links: Array, places: Array) -> Array:
        """Points fixed in links, (n_points, n_samples, 3); link -1 is the base."""
        result = np.empty((len(links), pose.origin.shape[1], 3))
        for i, (link, place) in enumerate(zip(links, places, strict=True)):
            result[i] = place if link == BASE else _times(pose.rotation[link], place) + pose.origin[link]
        return result

    def along(self, pose: Pose, links: Array, points: Array, directions: Array) -> Array:
        """Derivative of each point's way along its direction, (n_points, n_samples, n_joints)."""
        turned = _cross(points, directions)
        slopes = np.einsum("mtc,jtc->mtj", directions, np.where(self.slides[:, None, None], pose.axis, -pose.moment))
        slopes += np.einsum("mtc,jtc->mtj", turned, np.where(self.slides[:, None, None], 0.0, pose.axis))
        slopes *= self.carried[links][:, None, :]
        return np.asarray(slopes @ self.follow)


def _times(R: Array, constant: Array) -> Array:
    """R (n_samples, 3, 3) times a constant matrix (3, 3) or vector (3,), as one product."""
    return np.asarray(R.reshape(-1, 3) @ constant).reshape(len(R), *constant.shape)


def _turned(R: Array, angle: Array) -> Array:
    """R turned about its own z."""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return np.stack([R[..., 0] * c + R[..., 1] * s, R[..., 1] * c - R[..., 0] * s, R[..., 2]], -1)


def _cross(a: Array, b: Array) -> Array:
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


@dataclass(frozen=True)
class Capsule:
    """A segment fixed in a link, with a radius [m].

    Attributes:
        link: Index of the link; -1 for the base.
        first, second: (3,) its ends in the link frame [m].
        radius: [m].
        name: The link's name.
    """

    link: int
    first: Array
    second: Array
    radius: float
    name: str


def link_capsules(robot: Robot, radius: float | dict[str, float]) -> list[Capsule]:
    """Capsules from each joint's origin to the joints that the link carries, and to the tool at the end.

    Args:
        robot: The robot.
        radius: Of all capsules, or by link name with the key "default" for the others [m].
    """

    def size(name: str) -> float:
        return radius.get(name, radius.get("default", 0.0)) if isinstance(radius, dict) else radius

    result = []
    for i in range(BASE, len(robot.joints)):
        name = "base" if i == BASE else robot.joints[i].link
        after = None if i == BASE else robot.joints[i].after.inverse()
        own = np.zeros(3) if after is None else after.translation
        ends = [joint.before.translation for joint in robot.joints if joint.parent == i]
        if robot.tool is not None and robot.tool[0] == i:
            ends.append(robot.tool[1].translation)
        if not ends and i != BASE:
            ends.append(np.zeros(3))
        result += [Capsule(i, own, end, size(name), name) for end in ends]
    return result


class Distances(ABC):
    """Distances beyond what is demanded, along a motion."""

    labels: list[str]

    @abstractmethod
    def measure(self, q: Array) -> Array:
        """Distances (n_distances, n_samples) [m]."""

    @abstractmethod
    def slopes(self) -> Array:
        """Derivatives where `measure` was last called, (n_distances, n_samples, n_joints)."""


class PointDistances(Distances):
    """Points along the capsules against the floor and boxes that must be kept out of.

    Args:
        kinematics: Of the robot.
        capsules: The links.
        floor: Height above which all points stay [m], or None.
        boxes: (n_boxes, 2, 3) lower and upper corners in the base frame [m].
        spacing: Greatest distance between points along a capsule [m].
        moving: Poses (n_poses, n_joints) by which it is seen which points move at all; the others are left out.
    """

    def __init__(
        self,
        kinematics: Kinematics,
        capsules: Sequence[Capsule],
        moving: Array,
        *,
        floor: float | None = None,
        boxes: Array | None = None,
        spacing: float = 0.15,
    ) -> None:
        self.kinematics, self.floor = kinematics, floor
        self.boxes = np.zeros((0, 2, 3)) if boxes is None else boxes
        found: list[tuple[int, Array, float, str]] = []
        for capsule in capsules:
            count = 1 + int(np.ceil(np.linalg.norm(capsule.second - capsule.first) / spacing))
            for share in np.linspace(0.0, 1.0, count):
                place = (1.0 - share) * capsule.first + share * capsule.second
                if capsule.link != BASE and not any(
                    capsule.link == link and np.allclose(place, other) for link, other, _, _ in found
                ):
                    found.append((capsule.link, place, capsule.radius, capsule.name))
        links, places = np.array([f[0] for f in found]), np.array([f[1] for f in found])
        spread = np.ptp(kinematics.points(kinematics.pose(moving), links, places), axis=1).max(1)
        kept = np.flatnonzero(spread > 1e-6)
        self.links, self.places = links[kept], places[kept]
        self.radius = np.array([found[i][2] for i in kept])
        names = [found[i][3] for i in kept]
        self.labels = [f"link {name} above the floor" for name in names] if floor is not None else []
        self.labels += [f"link {name} outside box {b + 1}" for b in range(len(self.boxes)) for name in names]

    def measure(self, q: Array) -> Array:
        """Heights, then distances to each box."""
        self._pose = self.kinematics.pose(q)
        self._points = self.kinematics.points(self._pose, self.links, self.places)
        values: list[Array] = []
        self._directions: list[Array] = []
        if self.floor is not None:
            values.append(self._points[..., 2] - self.floor)
            self._directions.append(np.broadcast_to(np.array([0.0, 0.0, 1.0]), self._points.shape))
        for lower, upper in self.boxes:
            distance, direction = _to_box(self._points, lower, upper)
            values.append(distance)
            self._directions.append(direction)
        return np.concatenate([value - self.radius[:, None] for value in values])

    def slopes(self) -> Array:
        """Way of each point along the direction in which its distance grows."""
        parts = [self.kinematics.along(self._pose, self.links, self._points, d) for d in self._directions]
        return np.concatenate(parts)


def _to_box(p: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Signed distance of points to a box, and the direction in which it grows."""
    beyond = np.maximum(lower - p, p - upper)
    side = np.where(p - upper > lower - p, 1.0, -1.0)
    out = np.maximum(beyond, 0.0)
    distance = np.sqrt(np.sum(out**2, -1))
    outside = distance > 0.0
    deepest = np.argmax(beyond, axis=-1)[..., None] == np.arange(3)
    direction = np.where(outside[..., None], out / np.where(outside, distance, 1.0)[..., None], deepest) * side
    return np.where(outside, distance, beyond.max(-1)), direction


class CapsuleDistances(Distances):
    """Distances between capsules of links that are not neighbours.

    Pairs that touch in nearly every pose (the links of a wrist) say nothing about a motion and are left out.

    Args:
        kinematics: Of the robot.
        capsules: The links.
        clearance: Least distance between the surfaces [m].
        poses: (n_poses, n_joints) by which such pairs are found.
    """

    _ALWAYS = 0.8  # share of poses in which a pair that counts as always touching does

    def __init__(self, kinematics: Kinematics, capsules: Sequence[Capsule], clearance: float, poses: Array) -> None:
        self.kinematics = kinematics
        parents = [joint.parent for joint in kinematics.robot.joints]

        def neighbours(a: int, b: int) -> bool:
            return a == b or (a != BASE and parents[a] == b) or (b != BASE and parents[b] == a)

        pairs = [
            (i, j)
            for i, a in enumerate(capsules)
            for j, b in enumerate(capsules)
            if i < j and not neighbours(a.link, b.link)
        ]
        self._take(capsules, pairs, clearance)
        if pairs:
            touching = np.mean(self.measure(poses) < 0.0, axis=1)
            self._take(
                capsules, [pair for pair, share in zip(pairs, touching, strict=True) if share < self._ALWAYS], clearance
            )

    def _take(self, capsules: Sequence[Capsule], pairs: list[tuple[int, int]], clearance: float) -> None:
        first, second = [capsules[i] for i, _ in pairs], [capsules[j] for _, j in pairs]
        self.labels = [f"link {a.name} clear of {b.name}" for a, b in zip(first, second, strict=True)]
        self.links = [np.array([c.link for c in side], dtype=int) for side in (first, second)]
        self.ends = [
            [np.array([getattr(c, end) for c in side]) for end in ("first", "second")] for side in (first, second)
        ]
        self.demanded = np.array([a.radius + b.radius + clearance for a, b in zip(first, second, strict=True)])

    def measure(self, q: Array) -> Array:
        """Distance of the surfaces beyond the clearance."""
        self._pose = pose = self.kinematics.pose(q)
        (a0, a1), (b0, b1) = (
            [self.kinematics.points(pose, links, ends) for ends in both]
            for links, both in zip(self.links, self.ends, strict=True)
        )
        s, t = closest(a0, a1, b0, b1)
        self._near = a0 + s[..., None] * (a1 - a0), b0 + t[..., None] * (b1 - b0)
        gap = self._near[0] - self._near[1]
        distance = np.sqrt(np.sum(gap**2, -1))
        self._direction = gap / np.maximum(distance, 1e-9)[..., None]
        return np.asarray(distance - self.demanded[:, None])

    def slopes(self) -> Array:
        """How the closest points part."""
        first, second = (
            self.kinematics.along(self._pose, links, near, self._direction)
            for links, near in zip(self.links, self._near, strict=True)
        )
        return first - second


def closest(a0: Array, a1: Array, b0: Array, b1: Array) -> tuple[Array, Array]:
    """Shares s, t at which the segments a0-a1 and b0-b1 (..., 3) come closest."""
    u, v, w = a1 - a0, b1 - b0, a0 - b0
    uu, vv, uv = (np.sum(x * y, -1) for x, y in ((u, u), (v, v), (u, v)))
    uw, vw = np.sum(u * w, -1), np.sum(v * w, -1)
    lone_a, lone_b = uu < 1e-12, vv < 1e-12  # a segment that is a point
    safe_u, safe_v = np.where(lone_a, 1.0, uu), np.where(lone_b, 1.0, vv)
    spread = uu * vv - uv**2
    skew = spread > 1e-12 * safe_u * safe_v
    s = np.where(skew, np.clip((uv * vw - vv * uw) / np.where(skew, spread, 1.0), 0.0, 1.0), 0.0)
    s = np.where(lone_a, 0.0, np.where(lone_b, np.clip(-uw / safe_u, 0.0, 1.0), s))
    t = np.where(lone_b, 0.0, (uv * s + vw) / safe_v)
    clipped = np.clip(t, 0.0, 1.0)
    s = np.where((t != clipped) & ~lone_a, np.clip((uv * clipped - uw) / safe_u, 0.0, 1.0), s)
    return s, clipped
