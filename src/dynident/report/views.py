"""Views of a motion in space: the way of the tool, the links at some moments, floor and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.motion.geometry import LinkPoints, link_capsules
from dynident.motion.trajectory import Trajectory
from dynident.report.markup import Html, element
from dynident.report.motion_plots import picture
from dynident.report.plots import WIDTH
from dynident.robot.model import Robot

_HEIGHT = 760
_EDGE = 50
_ROOM = 0.3  # beside the largest extent, within which boxes are drawn
_SHADOWS = 7  # moments at which the links are drawn faintly
_PATH_POINTS = 400
_TURN, _TILT = np.radians(-55.0), np.radians(24.0)  # of the oblique view
VIEWS: dict[str, Array] = {  # (2, 3): right and up of the picture in the base frame
    "from an angle": np.array(
        [
            [np.cos(_TURN + np.pi / 2), np.sin(_TURN + np.pi / 2), 0.0],
            [-np.sin(_TILT) * np.cos(_TURN), -np.sin(_TILT) * np.sin(_TURN), np.cos(_TILT)],
        ]
    ),
    "from the front": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "from the side": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    "from above": np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]),
}


@dataclass(frozen=True)
class Scene:
    """What the views show, all in the base frame [m].

    Attributes:
        paths: (n_paths, n_points, 3) ways of the tool, or of the last links where there is none.
        links: (n_moments, n_segments, 2, 3) links as segments; the first moment is the start.
        floor: Height, or None.
        boxes: (n_boxes, 2, 3).
    """

    paths: Array
    links: Array
    floor: float | None
    boxes: Array

    @property
    def extent(self) -> Array:
        """(2, 3) lower and upper corner of everything that moves."""
        points = self.moving
        return np.array([points.min(0), points.max(0)])

    @property
    def moving(self) -> Array:
        """(n_points, 3) of the tool and the links."""
        return np.concatenate([self.paths.reshape(-1, 3), self.links.reshape(-1, 3)])

    @property
    def near_boxes(self) -> Array:
        """The boxes, cut where they are far from everything that moves: a wall would make the robot tiny."""
        low, high = self.extent
        room = _ROOM * float((high - low).max())
        return np.clip(self.boxes, low - room, high + room)

    @property
    def ground(self) -> list[Array]:
        """The floor below everything that moves, as a rectangle with two lines through its middle."""
        if self.floor is None:
            return []
        (x0, y0, _), (x1, y1, _) = self.extent
        z, lines = self.floor, []
        for share in (0.0, 0.5, 1.0):
            x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
            lines += [np.array([[x, y0, z], [x, y1, z]]), np.array([[x0, y, z], [x1, y, z]])]
        return lines


def scene(robot: Robot, motion: Trajectory, floor: float | None, boxes: Array) -> Scene:
    """The links and the tool of a robot along a motion."""
    capsules = link_capsules(robot, 0.0)
    segments = [(one.link, end) for one in capsules for end in (one.first, one.second)]
    parents = {joint.parent for joint in robot.joints}
    tips = [(i, np.zeros(3)) for i in range(len(robot.joints)) if i not in parents]
    if robot.tool is not None:
        tips = [(robot.tool[0], robot.tool[1].translation)]
    along = motion.sample(np.linspace(0.0, motion.duration, _PATH_POINTS))[0]
    moments = motion.sample(np.linspace(0.0, motion.duration, _SHADOWS + 2)[:-1])[0]
    ends = _points(robot, segments, moments)  # (2 n_segments, n_moments, 3)
    links = np.moveaxis(ends, 1, 0).reshape(len(moments), len(capsules), 2, 3)
    return Scene(_points(robot, tips, along), links, floor, boxes)


def _points(robot: Robot, places: Sequence[tuple[int, Array]], q: Array) -> Array:
    return LinkPoints(robot, [link for link, _ in places], np.array([place for _, place in places])).at(q)


def view(seen: Scene, name: str, key: str) -> Html:
    """One of `VIEWS`, on a scale that fits everything that moves."""
    onto = VIEWS[name]
    edges = [edge for box in seen.near_boxes for edge in _edges(box)]
    flat = np.concatenate([seen.moving, *seen.ground, *edges]) @ onto.T
    middle, size = 0.5 * (flat.min(0) + flat.max(0)), np.ptp(flat, axis=0)
    scale = min((WIDTH - 2 * _EDGE) / max(size[0], 1e-6), (_HEIGHT - 2 * _EDGE) / max(size[1], 1e-6))

    def place(points: Array) -> Array:
        """Whole places in the view box, (..., 2)."""
        away = (points @ onto.T - middle) * scale
        return np.asarray(np.rint(np.array([WIDTH / 2, _HEIGHT / 2]) + away * np.array([1.0, -1.0]))).astype(int)

    parts = [_line(place(edge), "ground") for edge in seen.ground]
    parts += [_line(place(edge), "box") for edge in edges]
    for moment in seen.links[1:]:
        parts += [_line(place(segment), "shadow") for segment in moment]
    parts += [_line(place(way), "predicted") for way in seen.paths]
    parts += [_line(place(segment), "link") for segment in seen.links[0]]
    for x, y in place(seen.paths[:, 0]):
        parts.append(element("circle", cx=x, cy=y, r=9, class_="dot"))
    parts += _ruler(scale)
    low, high = seen.extent
    told = ", ".join(f"{axis} {a:.2f} to {b:.2f} m" for axis, a, b in zip("xyz", low, high, strict=True))
    return picture(f"The motion {name}", f"Everything that moves lies in {told}.", parts, _HEIGHT, key)


def _line(places: Array, kind: str) -> Html:
    moved = places[np.concatenate([[True], np.diff(places, axis=0).any(1)])]
    if len(moved) == 1:
        moved = np.repeat(moved, 2, axis=0)
    return element("path", d="M" + "L".join(f"{x} {y}" for x, y in moved), class_=kind)


def _edges(box: Array) -> list[Array]:
    corners = np.array([[box[i, 0], box[j, 1], box[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    pairs = [(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1]
    return [corners[[a, b]] for a, b in pairs]


def _ruler(scale: float) -> list[Html]:
    """A length to compare with: the largest of 1, 2, 5 times a power of ten that is short enough."""
    longest = 0.3 * WIDTH / scale
    power = 10.0 ** np.floor(np.log10(longest))
    length = power * max(factor for factor in (1, 2, 5) if factor * power <= longest)
    wide, y = round(length * scale), _HEIGHT - 16
    bar = element("path", d=f"M20 {y - 8}v8h{wide}v-8", class_="zero")
    return [bar, element("text", f"{length:g} m", x=20 + wide + 12, y=y + 2)]
