"""The robot in space as an SVG that can be turned: links as lines, bodies as the ellipsoids that move like them.

Every part carries its place in the base frame (`data-p`, and `data-a` for the axes of an ellipsoid), so that a script
can draw it from another side; without one the picture stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynident.arrays import Array
from dynident.motion.geometry import LinkPoints, link_capsules
from dynident.motion.trajectory import Trajectory
from dynident.report.charts import WIDTH, picture, round_below
from dynident.report.html import Html, element
from dynident.robot.model import BASE, Robot
from dynident.robot.parameters import to_classical

HEIGHT = 640
YAW, PITCH = -55.0, 22.0  # [deg] from where the picture is seen first
_EDGE = 24
_WIDEST = 4.0  # times the robot's size that bodies may make the picture; a body beyond that is hardly known
_NEAR = 0.04  # beside the robot's size, below which numbers would run into each other
_LINES = 6  # of the ground, each way
_BENT = (0.4, -0.9, 1.1, -0.6, 0.7, 0.3)  # [rad] a pose in which no link hides another
_AXIS = 0.16  # length of the base frame's axes beside the robot's size


@dataclass(frozen=True)
class Body:
    """An ellipsoid of even density with the mass and inertia of a link.

    Attributes:
        link: Index of the link.
        label: Of the link.
        center: (3,) in the base frame [m].
        axes: (3, 3) half axes as columns, in the base frame [m].
        mass: [kg].
        settled: Whether the data, rather than physics or a prior, settles it.
    """

    link: int
    label: str
    center: Array
    axes: Array
    mass: float
    settled: bool


def pose(robot: Robot) -> Array:
    """A bent pose within the limits, (n_moving,)."""
    q = []
    for k, joint in enumerate(robot.moving_joints):
        low, high = joint.limits.span
        wanted = _BENT[k % len(_BENT)] if joint.kind != "prismatic" else 0.3
        if not low <= wanted <= high and np.isfinite([low, high]).all():
            wanted = low + (0.6 if k % 2 else 0.4) * (high - low)
        q.append(float(np.clip(wanted, low, high)))
    return np.array(q)


def half_axes(chi: Array) -> tuple[Array, Array] | None:
    """Center (3,) and half axes (3, 3) of the ellipsoid of a link, in its frame; None where there is no body.

    A solid ellipsoid of mass m with half axes a, b, c has I_x = m (b² + c²) / 5.
    """
    mass, center, inertia = to_classical(chi)
    if not mass > 0.0:
        return None
    moments, turned = np.linalg.eigh(inertia)
    squares = 2.5 * (moments.sum() - 2.0 * moments) / mass
    if squares.min() <= 0.0:
        return None
    return center, turned * np.sqrt(squares)


def bodies(robot: Robot, links: Array, settled: Sequence[bool], q: Array) -> list[Body]:
    """The ellipsoids of all links that are bodies.

    Args:
        robot: The robot.
        links: (n_links, 10) standard parameters.
        settled: Whether the data settles each link's body.
        q: (n_moving,) pose.
    """
    found = [(i, ellipsoid) for i, chi in enumerate(links) if (ellipsoid := half_axes(chi)) is not None]
    if not found:
        return []
    indices = [i for i, _ in found for _ in range(4)]
    places = np.concatenate([[center, *(center + axes.T)] for _, (center, axes) in found])
    points = _points(robot, list(zip(indices, places, strict=True)), q).reshape(-1, 4, 3)
    result = []
    for (i, _), (center, *ends) in zip(found, points, strict=True):
        joint = robot.joints[i]
        axes = (np.array(ends) - center).T
        result.append(Body(i, f"link {joint.number} ({joint.link})", center, axes, float(links[i, 9]), settled[i]))
    return result


def robot_view(robot: Robot, shown: Sequence[Body], key: str) -> Html:
    """The robot in a bent pose."""
    q = pose(robot)
    # A link's frame is at its joint only where the convention puts it there; of standard DH it is at the far end.
    joints = _points(robot, [(i, joint.after.inverse().translation) for i, joint in enumerate(robot.joints)], q)
    ends = np.concatenate([_segments(robot, q), _last_segments(robot, shown, joints)])
    every = np.concatenate([ends.reshape(-1, 3), joints, np.zeros((1, 3)), *(body.center[None] for body in shown)])
    middle = 0.5 * (every.min(0) + every.max(0))
    size = max(float(np.linalg.norm(every - middle, axis=1).max()), 1e-3)
    reach = [np.linalg.norm(body.center - middle) + np.linalg.norm(body.axes, axis=0).max() for body in shown]
    size = min(max([size, *reach]), _WIDEST * size)
    scale = (HEIGHT / 2 - _EDGE) / size
    view = View(middle, scale)
    arrows = _AXIS * size * np.eye(3)
    parts = [_path(view, line, "grid") for line in _ground(every)]
    parts += [
        _path(view, np.array([np.zeros(3), arrow]), f"axis {name}") for name, arrow in zip("xyz", arrows, strict=True)
    ]
    parts += [_text(view, 1.25 * arrow, name) for name, arrow in zip("xy", arrows[:2], strict=True)]
    parts.append(_text(view, arrows[2], "z", (-30, 8)))  # on the left: numbers of joints stand on the right
    parts += [_ellipse(view, body) for body in shown]
    parts += [_path(view, segment, "link") for segment in ends]
    parts += [_dot(view, place) for place in joints]
    parts += [_text(view, place, text) for place, text in _labels(robot, joints, size)]
    described = f"{robot.name} with {len(robot.joints)} joints; " + "; ".join(
        f"{body.label} {body.mass:.3g} kg at {', '.join(f'{x:.2f}' for x in body.center)} m" for body in shown
    )
    drawn = picture(f"{robot.name} in space", f"{described}.", parts, HEIGHT, key)
    about = f"{middle[0]:.4f},{middle[1]:.4f},{middle[2]:.4f},{scale:.3f},{YAW},{PITCH}"
    names = ", ".join(f"{joint.number} {joint.name}" for joint in robot.joints)
    return element("figure", drawn, element("figcaption", f"Joints: {names}."), class_="robot", data_view=about)


def projection(yaw: float, pitch: float) -> Array:
    """(2, 3) right and up of a picture in the base frame, seen from two angles [deg]."""
    yaw, pitch = np.radians(yaw), np.radians(pitch)
    up = [-np.sin(pitch) * np.cos(yaw), -np.sin(pitch) * np.sin(yaw), np.cos(pitch)]
    return np.array([[-np.sin(yaw), np.cos(yaw), 0.0], up])


@dataclass(frozen=True)
class View:
    """Where places of the base frame lie in the picture.

    Attributes:
        middle: (3,) what lies in the middle [m].
        scale: Units of the view box per meter.
        onto: (2, 3) right and up of the picture.
        height: Of the picture.
    """

    middle: Array
    scale: float
    onto: Array = field(default_factory=lambda: projection(YAW, PITCH))
    height: int = HEIGHT

    def place(self, points: Array) -> Array:
        """(..., 2) in the view box."""
        away = (points - self.middle) @ self.onto.T * self.scale
        return np.asarray(np.array([WIDTH / 2, self.height / 2]) + away * np.array([1.0, -1.0]))

    def outline(self, axes: Array) -> tuple[float, float, float]:
        """Half axes [view box] and turn [deg] of the ellipse that an ellipsoid's outline is: that of (P A)(P A)'."""
        flat = self.scale * np.diag([1.0, -1.0]) @ self.onto @ axes
        squares, turned = np.linalg.eigh(flat @ flat.T)
        small, large = np.sqrt(np.maximum(squares, 0.0))
        return float(large), float(small), float(np.degrees(np.arctan2(turned[1, 1], turned[0, 1])))


def _points(robot: Robot, places: Sequence[tuple[int, Array]], q: Array) -> Array:
    """(n_points, 3) in the base frame, of places on links; (n_points, n_samples, 3) for several poses."""
    points = LinkPoints(robot, [link for link, _ in places], np.array([place for _, place in places]))
    return np.asarray(points.at(q) if q.ndim > 1 else points.at(q[None])[:, 0])


def _segments(robot: Robot, q: Array) -> Array:
    """(n_segments, 2, 3) from each joint to the joints that its link carries, to the tool, along slides, to cuts."""
    ends = [(one.link, end) for one in link_capsules(robot, 0.0) for end in (one.first, one.second)]
    for i, joint in enumerate(robot.joints):
        if joint.kind == "prismatic":
            ends += [(joint.parent, joint.before.translation), (i, joint.after.inverse().translation)]
    for loop in () if robot.closure is None else robot.closure.loops:
        for link, frame in zip(loop.links, loop.frames, strict=True):
            own = np.zeros(3) if link == BASE else robot.joints[link].after.inverse().translation
            ends += [(link, own), (link, frame.translation)]
    return _points(robot, ends, q).reshape(-1, 2, 3)


def _last_segments(robot: Robot, shown: Sequence[Body], joints: Array) -> Array:
    """(n, 2, 3) from the last joints to the center of what they carry, where no tool lies beyond."""
    carrying = {joint.parent for joint in robot.joints}
    if robot.tool is not None and np.any(robot.tool[1].translation):
        carrying.add(robot.tool[0])
    lines = [[joints[body.link], body.center] for body in shown if body.link not in carrying]
    return np.array(lines, dtype=np.float64).reshape(-1, 2, 3)


def _labels(robot: Robot, places: Array, size: float) -> list[tuple[Array, str]]:
    """Numbers of joints at their places; those that coincide share a line."""
    found: list[tuple[Array, list[str]]] = []
    for place, joint in zip(places, robot.joints, strict=True):
        near = [numbers for other, numbers in found if np.linalg.norm(other - place) < _NEAR * size]
        if near:
            near[0].append(str(joint.number))
        else:
            found.append((place, [str(joint.number)]))
    return [(place, ", ".join(numbers)) for place, numbers in found]


def _ground(points: Array) -> list[Array]:
    """A grid below everything, as lines (2, 3)."""
    low, high = points.min(0), points.max(0)
    middle, half = 0.5 * (low + high), 0.6 * max(float((high - low)[:2].max()), 1e-3)
    along = np.linspace(-half, half, _LINES)
    x, y, z = middle[0], middle[1], low[2]
    lines = [np.array([[x + a, y - half, z], [x + a, y + half, z]]) for a in along]
    return lines + [np.array([[x - half, y + a, z], [x + half, y + a, z]]) for a in along]


def _data(points: Array) -> str:
    return " ".join(f"{x:.4f}" for x in np.ravel(points))


def _path(view: View, points: Array, kind: str) -> Html:
    (x0, y0), (x1, y1) = np.rint(view.place(points)).astype(int)
    return element("path", d=f"M{x0} {y0}L{x1} {y1}", class_=kind, data_p=_data(points))


def _dot(view: View, point: Array) -> Html:
    x, y = np.rint(view.place(point)).astype(int)
    return element("circle", cx=x, cy=y, r=9, class_="dot", data_p=_data(point))


def _text(view: View, point: Array, text: str, beside: tuple[int, int] = (14, -10)) -> Html:
    x, y = np.rint(view.place(point)).astype(int) + beside
    return element("text", text, x=x, y=y, data_p=_data(point), data_beside=f"{beside[0]} {beside[1]}")


def _ellipse(view: View, body: Body) -> Html:
    x, y = view.place(body.center)
    large, small, turn = view.outline(body.axes)
    return element(
        "ellipse",
        element("title", f"{body.label}: {body.mass:.3g} kg"),
        rx=f"{large:.1f}",
        ry=f"{max(small, 1.0):.1f}",
        transform=f"translate({x:.1f} {y:.1f}) rotate({turn:.1f})",
        class_="body" if body.settled else "body open",
        data_p=_data(body.center),
        data_a=_data(body.axes),
    )


# ----------------------------------------------------------------------------------------------------------------------
# Views of a motion in space: the way of the tool, the links at some moments, floor and boxes.

_HEIGHT = 760
_VIEWS_EDGE = 50
_ROOM = 0.3  # beside the largest extent, within which boxes are drawn
_SHADOWS = 7  # moments at which the links are drawn faintly
_PATH_POINTS = 400
VIEWS: dict[str, Array] = {  # (2, 3): right and up of the picture in the base frame
    "from an angle": projection(-55.0, 24.0),
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


def view(seen: Scene, name: str, key: str) -> Html:
    """One of `VIEWS`, on a scale that fits everything that moves."""
    onto = VIEWS[name]
    edges = [edge for box in seen.near_boxes for edge in _edges(box)]
    flat = np.concatenate([seen.moving, *seen.ground, *edges]) @ onto.T
    middle, size = 0.5 * (flat.min(0) + flat.max(0)), np.ptp(flat, axis=0)
    scale = min((WIDTH - 2 * _VIEWS_EDGE) / max(size[0], 1e-6), (_HEIGHT - 2 * _VIEWS_EDGE) / max(size[1], 1e-6))

    own = View(onto.T @ middle, scale, onto, _HEIGHT)

    def place(points: Array) -> Array:
        """Whole places in the view box, (..., 2)."""
        return np.rint(own.place(points)).astype(int)

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
    described = ", ".join(f"{axis} {a:.2f} to {b:.2f} m" for axis, a, b in zip("xyz", low, high, strict=True))
    return picture(f"The motion {name}", f"Everything that moves lies in {described}.", parts, _HEIGHT, key)


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
    length = round_below(0.3 * WIDTH / scale, (1, 2, 5))
    wide, y = round(length * scale), _HEIGHT - 16
    bar = element("path", d=f"M20 {y - 8}v8h{wide}v-8", class_="zero")
    return [bar, element("text", f"{length:g} m", x=20 + wide + 12, y=y + 2)]
