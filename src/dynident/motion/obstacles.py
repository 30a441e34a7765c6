"""Links against the floor and boxes that they must keep out of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array, Mask
from dynident.motion.geometry import Capsule, Distances, Indices, LinkPoints
from dynident.robot.model import BASE, Robot

_STILL = 1e-6  # [m] a point that moves less stands still
_TOUCH = 1e-9  # [m] from a box at which a link counts as inside
_THIRDS = 50  # by which the deepest point inside a box is found
_ASIDE = 1e-6  # share of a segment from a point at which its two sides are looked at
_UP = np.array([0.0, 0.0, 1.0])


class ObstacleDistances(Distances):
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
        """Heights of the ends, then distances to each box."""
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
        """How the closest points move away; that they wander along their links does not count."""
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
