"""Where the links are along a motion: points, distances and their derivatives with respect to the joints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.dynamics.kernels import Recording
from dynident.dynamics.program import Program
from dynident.dynamics.recursion import joint_frame
from dynident.errors import InputError
from dynident.motion.tape import Tape
from dynident.robot.algebra import IDENTITY, Frame, Number, compose, rotate, vadd
from dynident.robot.model import BASE, Robot

Indices = NDArray[np.int64]


class LinkPoints:
    """Points fixed in links, as a recorded program.

    Args:
        robot: The robot.
        links: Index of each point's link; -1 is the base.
        places: (n_points, 3) in the link frames [m].
    """

    def __init__(self, robot: Robot, links: Sequence[int], places: Array) -> None:
        self.robot, self.n_points = robot, len(links)
        self._program = _points_program(robot, links, places)
        self._tapes: dict[int, Tape] = {}

    def _tape(self, n_samples: int) -> Tape:
        if n_samples not in self._tapes:
            self._tapes[n_samples] = Tape(self._program, n_samples)
        return self._tapes[n_samples]

    def at(self, q: Array) -> Array:
        """(n_points, n_samples, 3) in the base frame [m], for positions q (n_samples, n_joints)."""
        values = self._tape(len(q)).evaluate(q)
        return np.moveaxis(values.reshape(self.n_points, 3, len(q)), 1, 2).copy()

    def pull(self, q: Array, touched: Sequence[tuple[Indices, Array]], n_distances: int) -> Array:
        """Derivatives of distances that depend on some of the points, (n_distances, n_samples, n_joints).

        Args:
            q: Positions, (n_samples, n_joints).
            touched: For each role that a point can have in a distance (an end of a segment): which point it is,
                (n_distances,), and the distance's derivative with respect to it, (n_distances, n_samples, 3).
            n_distances: Number of distances.
        """
        n_samples = len(q)
        tape = self._tape(n_distances * n_samples)
        tape.evaluate(np.tile(q, (n_distances, 1)))
        tape.weights[:] = 0.0
        weights = tape.weights.reshape(self.n_points, 3, n_distances, n_samples)
        each = np.arange(n_distances)
        for points, slope in touched:
            weights[points, :, each, :] += np.moveaxis(slope, 1, 2)
        return np.moveaxis(tape.pull().reshape(-1, n_distances, n_samples), 0, 2).copy()


def _points_program(robot: Robot, links: Sequence[int], places: Array) -> Program:
    recording = Recording(robot, (), ("q",))
    state = recording.state()
    frames: list[Frame] = []
    for link, joint in zip(state.tree, state.joints, strict=True):
        frame = IDENTITY if link.parent < 0 else frames[link.parent]
        for part in (link.before, joint_frame(link, joint), link.after):
            frame = compose(frame, part)
        frames.append(frame)
    outputs: list[Number] = []
    for index, place in zip(links, places, strict=True):
        R, p = IDENTITY if index == BASE else frames[index]
        x, y, z = (float(value) for value in place)
        outputs += vadd(rotate(R, (x, y, z)), p)
    return recording.recorder.finish(outputs)


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


class CapsuleDistances(Distances):
    """Distances between capsules of links that are not neighbours.

    Pairs that touch in nearly every pose (the links of a wrist) say nothing about a motion and are left out; so are
    pairs that are in no pose as far apart as is wanted, unless that is all of them.

    Args:
        robot: The robot.
        capsules: The links.
        clearance: Least distance between the surfaces [m].
        poses: (n_poses, n_joints) by which such pairs are found.
    """

    _ALWAYS = 0.8  # share of poses in which a pair that counts as always touching does

    def __init__(self, robot: Robot, capsules: Sequence[Capsule], clearance: float, poses: Array) -> None:
        self._robot = robot
        parents = [joint.parent for joint in robot.joints]

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
            gaps = self.measure(poses)
            touching, never = np.mean(gaps + clearance < 0.0, axis=1), gaps.max(1) < 0.0
            if never.all() and not (touching >= self._ALWAYS).all():
                most = float(gaps.max()) + clearance
                raise InputError(f"clearance is {clearance:g} m; no two links are ever farther apart than {most:.3g} m")
            kept = np.flatnonzero((touching < self._ALWAYS) & ~never)
            self._take(capsules, [pairs[i] for i in kept], clearance)

    def _take(self, capsules: Sequence[Capsule], pairs: list[tuple[int, int]], clearance: float) -> None:
        first, second = [capsules[i] for i, _ in pairs], [capsules[j] for _, j in pairs]
        self.labels = [f"link {a.name} clear of {b.name}" for a, b in zip(first, second, strict=True)]
        self.demanded = np.array([a.radius + b.radius + clearance for a, b in zip(first, second, strict=True)])
        used = sorted({i for pair in pairs for i in pair})
        ends = [end for i in used for end in (capsules[i].first, capsules[i].second)]
        self._points = LinkPoints(self._robot, [capsules[i].link for i in used for _ in range(2)], np.array(ends))
        # Points 2 k and 2 k + 1 are the ends of the k-th capsule that is in use.
        self._ends = [np.array([2 * used.index(pair[side]) for pair in pairs], dtype=int) for side in (0, 1)]

    def measure(self, q: Array) -> Array:
        """Distance of the surfaces beyond the clearance."""
        self._q, p = q, self._points.at(q)
        (a0, a1), (b0, b1) = ((p[first], p[first + 1]) for first in self._ends)
        s, t = closest(a0, a1, b0, b1)
        gap = a0 + s[..., None] * (a1 - a0) - b0 - t[..., None] * (b1 - b0)
        distance = np.sqrt(np.sum(gap**2, -1))
        self._direction = gap / np.maximum(distance, 1e-9)[..., None]
        self._shares = s[..., None], t[..., None]
        return np.asarray(distance - self.demanded[:, None])

    def slopes(self) -> Array:
        """How the closest points part; that they wander along their segments does not count."""
        (s, t), away = self._shares, self._direction
        touched = [
            (self._ends[0], (1.0 - s) * away),
            (self._ends[0] + 1, s * away),
            (self._ends[1], (t - 1.0) * away),
            (self._ends[1] + 1, -t * away),
        ]
        return self._points.pull(self._q, touched, len(self.labels))


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
