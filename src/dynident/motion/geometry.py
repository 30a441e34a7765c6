"""Where the links are along a motion: points, distances and their derivatives with respect to the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.dynamics.jit.program import Program
from dynident.dynamics.kernels import Recording
from dynident.dynamics.recursion import joint_frame
from dynident.errors import InputError
from dynident.motion.closing import make_tape
from dynident.motion.space import Tape
from dynident.motion.thresholds import THRESHOLDS
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
        self._tapes: dict[tuple[int, int], Tape] = {}

    def _tape(self, n_samples: int, repeats: int = 1) -> Tape:
        if (n_samples, repeats) not in self._tapes:
            self._tapes[n_samples, repeats] = make_tape(self._program, n_samples, self.robot, repeats)
        return self._tapes[n_samples, repeats]

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
        tape = self._tape(n_distances * n_samples, n_distances)
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


class CapsuleDistances:
    """Distances between capsules of links that are not neighbors.

    Pairs that touch in nearly every pose (the links of a wrist) say nothing about a motion and are left out; so are
    pairs that are in no pose as far apart as is wanted, unless that is all of them.

    Args:
        robot: The robot.
        capsules: The links.
        clearance: Least distance between the surfaces [m].
        poses: (n_poses, n_joints) by which such pairs are found.
    """

    def __init__(self, robot: Robot, capsules: Sequence[Capsule], clearance: float, poses: Array) -> None:
        self._robot = robot
        parents = [joint.parent for joint in robot.joints]

        def neighbors(a: int, b: int) -> bool:
            return a == b or (a != BASE and parents[a] == b) or (b != BASE and parents[b] == a)

        pairs = [
            (i, j)
            for i, a in enumerate(capsules)
            for j, b in enumerate(capsules)
            if i < j and not neighbors(a.link, b.link)
        ]
        self._take(capsules, pairs, clearance)
        if pairs:
            gaps = self.measure(poses)
            touching, never = np.mean(gaps + clearance < 0.0, axis=1), gaps.max(1) < 0.0
            if never.all() and not (touching >= THRESHOLDS.always_touching_share).all():
                most = float(gaps.max()) + clearance
                raise InputError(f"clearance is {clearance:g} m; no two links are ever farther apart than {most:.3g} m")
            kept = np.flatnonzero((touching < THRESHOLDS.always_touching_share) & ~never)
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
        """Distances of the surfaces beyond the clearance, (n_distances, n_samples) [m]."""
        self._q, p = q, self._points.at(q)
        (a0, a1), (b0, b1) = ((p[first], p[first + 1]) for first in self._ends)
        s, t = closest(a0, a1, b0, b1)
        gap = a0 + s[..., None] * (a1 - a0) - b0 - t[..., None] * (b1 - b0)
        distance = np.sqrt(np.sum(gap**2, -1))
        self._direction = gap / np.maximum(distance, 1e-9)[..., None]
        self._shares = s[..., None], t[..., None]
        return np.asarray(distance - self.demanded[:, None])

    def slopes(self) -> Array:
        """Derivatives where `measure` was last called, (n_distances, n_samples, n_joints): how the closest points part.

        That they wander along their segments does not count.
        """
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


# ----------------------------------------------------------------------------------------------------------------------
# Links against the floor and boxes that they must keep out of.

_STILL = 1e-6  # [m] a point that moves less stands still
_TOUCH = 1e-9  # [m] from a box at which a link counts as inside
_THIRDS = 50  # by which the deepest point inside a box is found
_ASIDE = 1e-6  # share of a segment from a point at which its two sides are looked at
_UP = np.array([0.0, 0.0, 1.0])


class ObstacleDistances:
    """Distances of the links' surfaces to the floor and to boxes; exact, wherever along a link they are least.

    Links that stand still in all given poses are left out.

    Args:
        robot: The robot.
        capsules: The links.
        poses: (n_poses, n_joints) by which it is seen what moves.
        floor: Height above which all links stay [m], or None.
        boxes: (n_boxes, 2, 3) lower and upper corners in the base frame [m].
    """

    def __init__(
        self,
        robot: Robot,
        capsules: Sequence[Capsule],
        poses: Array,
        *,
        floor: float | None = None,
        boxes: Array | None = None,
    ) -> None:
        self.floor = floor
        self.boxes = np.zeros((0, 2, 3)) if boxes is None else boxes
        own = [one for one in capsules if one.link != BASE]
        moves = np.ptp(_ends(robot, own).at(poses), axis=1).max(1).reshape(-1, 2) > _STILL  # (n_capsules, 2)
        own = [one for one, ends in zip(own, moves, strict=True) if ends.any()]
        self._points = _ends(robot, own)
        self._n = len(own)
        self._radius = np.array([one.radius for one in own])
        # A link is above the floor when its ends are; of ends at one place, and of those at rest, none is needed twice.
        self._heights = _apart(own, moves[moves.any(1)])
        names = [one.name for one in own]
        self.labels = [f"link {names[i // 2]} above the floor" for i in self._heights] if floor is not None else []
        self.labels += [f"link {name} outside box {b + 1}" for b in range(len(self.boxes)) for name in names]

    def measure(self, q: Array) -> Array:
        """Heights of the ends, then distances to each box, (n_distances, n_samples) [m]."""
        self._q, p = q, self._points.at(q)
        first, second = p[0::2], p[1::2]
        values: list[Array] = []
        # Shares of a distance's direction that go to its link's first and second end.
        self._slopes: list[tuple[Array, Array]] = []
        if self.floor is not None:
            values.append(p[self._heights, :, 2] - self.floor - self._radius[self._heights // 2][:, None])
            at_end = (self._heights % 2)[:, None, None] * np.ones((1, len(q), 1))
            self._slopes.append(((1.0 - at_end) * _UP, at_end * _UP))
        for lower, upper in self.boxes:
            share, distance, away = segment_to_box(first, second, lower, upper)
            values.append(distance - self._radius[:, None])
            self._slopes.append(((1.0 - share)[..., None] * away, share[..., None] * away))
        return np.concatenate(values)

    def slopes(self) -> Array:
        """Derivatives where `measure` was last called, (n_distances, n_samples, n_joints): how the closest points part.

        That they wander along their links does not count.
        """
        ends = self._heights if self.floor is not None else self._heights[:0]
        link = np.concatenate([ends // 2, np.tile(np.arange(self._n), len(self.boxes))])
        first, second = (np.concatenate([pair[end] for pair in self._slopes]) for end in (0, 1))
        return self._points.pull(self._q, [(2 * link, first), (2 * link + 1, second)], len(link))


def _ends(robot: Robot, capsules: Sequence[Capsule]) -> LinkPoints:
    """The first and second end of each capsule, one after the other."""
    places = np.array([end for one in capsules for end in (one.first, one.second)]).reshape(-1, 3)
    return LinkPoints(robot, [one.link for one in capsules for _ in range(2)], places)


def _apart(capsules: Sequence[Capsule], moves: Mask) -> Indices:
    """Indices of ends that move, each place of a link once."""
    kept: list[int] = []
    seen: list[tuple[int, Array]] = []
    for i, one in enumerate(capsules):
        for side, end in enumerate((one.first, one.second)):
            known = any(one.link == link and np.allclose(end, place) for link, place in seen)
            if moves[i, side] and not known:
                seen.append((one.link, end))
                kept.append(2 * i + side)
    return np.array(kept, dtype=np.int64)


def segment_to_box(a: Array, b: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """Where the segments a-b come closest to a box.

    The squared distance is convex along a segment, and its derivative is linear between the places where the segment
    crosses the planes of the box: it is zero in the piece where it changes its sign.

    Args:
        a: First ends, (..., 3).
        b: Second ends, (..., 3).
        lower: (3,) corner of the box.
        upper: (3,) the opposite corner.

    Returns:
        Share of the way from a to b, (...), the distance there, negative inside, (...), and the direction in which it
        grows, (..., 3).
    """
    u = b - a
    flat = np.abs(u) < 1e-12
    along = np.where(flat, 1.0, u)
    crossings = [np.where(flat, 0.0, (plane - a) / along) for plane in (lower, upper)]
    ends = np.broadcast_to(np.array([0.0, 1.0]), (*a.shape[:-1], 2))
    s = np.sort(np.clip(np.concatenate([*crossings, ends], axis=-1), 0.0, 1.0), axis=-1)  # (..., 8)
    p = a[..., None, :] + s[..., None] * u[..., None, :]
    out = np.maximum(p - upper, 0.0) - np.maximum(lower - p, 0.0)
    slope = np.sum(out * u[..., None, :], -1)  # (..., 8), half the derivative, never falling
    before = np.clip(np.sum(slope < 0.0, -1) - 1, 0, 6)[..., None]
    s0, s1 = (np.take_along_axis(s, before + i, -1)[..., 0] for i in (0, 1))
    g0, g1 = (np.take_along_axis(slope, before + i, -1)[..., 0] for i in (0, 1))
    rising = g1 > g0
    share = np.clip(s0 - g0 * (s1 - s0) / np.where(rising, g1 - g0, 1.0), s0, s1)
    share = np.where(rising, share, np.where(g0 < 0.0, s1, s0))
    distance, away = to_box(a + share[..., None] * u, lower, upper)
    inside = distance < _TOUCH
    if inside.any():
        share[inside], distance[inside], away[inside] = _deepest(a[inside], u[inside], lower, upper)
    return share, distance, away


def _deepest(a: Array, u: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """The same for segments a, a + u that pass through a box, where they are deepest; depth is concave along them."""
    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(_THIRDS):
        third = (high - low) / 3.0
        left, right = low + third, high - third
        beyond = [to_box(a + share[:, None] * u, lower, upper)[0] for share in (left, right)]
        lesser = beyond[0] < beyond[1]
        low, high = np.where(lesser, low, left), np.where(lesser, right, high)
    share = 0.5 * (low + high)
    share = np.where(share < _ASIDE, 0.0, np.where(share > 1.0 - _ASIDE, 1.0, share))
    # Between two sides of the box, both count, so that the deepest point has no reason to move along the segment.
    (left, one), (right, other) = (to_box(a + (share + step)[:, None] * u, lower, upper) for step in (-_ASIDE, _ASIDE))
    falls, grows = np.sum(one * u, -1), np.sum(other * u, -1)
    between = (share > 0.0) & (share < 1.0) & (grows > falls)
    steeper = np.where(between, grows - falls, 1.0)
    share = share + np.where(between, (left - right + _ASIDE * (grows + falls)) / steeper, 0.0)
    distance, away = to_box(a + share[:, None] * u, lower, upper)
    weight = np.where(between, grows / steeper, 1.0)[:, None]
    return share, distance, np.where(between[:, None], weight * one + (1.0 - weight) * other, away)


def to_box(p: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Signed distance of points (..., 3) to a box, and the direction in which it grows."""
    beyond = np.maximum(lower - p, p - upper)
    side = np.where(p - upper > lower - p, 1.0, -1.0)
    out = np.maximum(beyond, 0.0)
    distance = np.sqrt(np.sum(out**2, -1))
    outside = distance > 0.0
    deepest = np.argmax(beyond, axis=-1)[..., None] == np.arange(3)
    direction = np.where(outside[..., None], out / np.where(outside, distance, 1.0)[..., None], deepest) * side
    return np.where(outside, distance, beyond.max(-1)), direction


Distances = CapsuleDistances | ObstacleDistances
