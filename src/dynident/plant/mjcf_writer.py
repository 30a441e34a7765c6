"""What holds a robot's loops together in MJCF: equality constraints on joints, on sums of joints, and at points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element as Node, SubElement, indent, tostring

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError, UnknownNameError
from dynident.payload.body import Payload
from dynident.plant.springs import own_springs, write_springs
from dynident.robot.loops import loop_size
from dynident.robot.model import BASE, Joint, Loop, Robot, Transform
from dynident.robot.parameters import inertia_matrix, to_classical, to_mujoco
from dynident.robot.physicality import link_label, violations

Numbers = Callable[[Array | Sequence[float]], str]


def carriers(robot: Robot) -> list[int]:
    """Indices into `robot.joints` of those that stand for themselves: the moving ones, then those loops determine."""
    solved = () if robot.closure is None else robot.closure.solved
    return [*(robot.active[i] for i in robot.moving), *solved]


def carrier_matrix(robot: Robot) -> Array:
    """(n_joints, n_carriers), how tree joints follow the carriers."""
    own = robot.follow[:, list(robot.moving)]
    return own if robot.closure is None else np.column_stack([own, robot.closure.follow])


def add_loops(
    root: Node, robot: Robot, passive: Sequence[int], rest: Array, hard: dict[str, str], text: Numbers
) -> None:
    """Constraints that close every loop.

    A passive joint follows one other by a joint constraint, several by the length of a fixed tendon. Loops that are
    closed numerically are held at their cut: one point for a ball joint, two on its axis for a revolute one, position
    and orientation for a fixed one.

    Args:
        root: The model so far.
        robot: The robot.
        passive: Joints that follow the carriers, indices into `robot.joints`.
        rest: Tree positions where the carriers are at zero, (n_joints,).
        hard: Attributes that say how hard constraints are.
        text: Numbers as text.
    """
    if not passive and robot.closure is None:
        return
    equality = SubElement(root, "equality")
    names = [robot.joints[j].name for j in carriers(robot)]
    follow = carrier_matrix(robot)
    for j in passive:
        name, row = robot.joints[j].name, follow[j]
        along = np.flatnonzero(row)
        if len(along) == 1:
            polynomial = text([rest[j], row[along[0]], 0.0, 0.0, 0.0])
            other = names[along[0]]
            SubElement(equality, "joint", {**hard, "joint1": name, "joint2": other, "polycoef": polynomial})
            continue
        tendons = root.find("tendon")
        fixed = SubElement(SubElement(root, "tendon") if tendons is None else tendons, "fixed", name=f"loop {name}")
        SubElement(fixed, "joint", joint=name, coef="1")
        for k in along:
            SubElement(fixed, "joint", joint=names[k], coef=repr(-float(row[k])))
        polynomial = text([rest[j], 0.0, 0.0, 0.0, 0.0])
        SubElement(equality, "tendon", {**hard, "tendon1": f"loop {name}", "polycoef": polynomial})
    for loop in () if robot.closure is None else robot.closure.loops:
        _hold(root, equality, robot, loop, hard, text)


def _hold(root: Node, equality: Node, robot: Robot, loop: Loop, hard: dict[str, str], text: Numbers) -> None:
    """Hold the two frames of a loop together at sites of their links."""
    if loop.joint in ("prismatic", "cylindrical"):
        raise InputError(
            f"robot {robot.name}, loop {loop.name}: MuJoCo cannot hold a loop that is cut at a {loop.joint} joint; cut "
            "it at a revolute, ball or fixed joint instead to simulate it"
        )
    kind = "weld" if loop.joint == "fixed" else "connect"
    apart = 0.5 * loop_size(loop, robot.joints) if loop.joint == "revolute" else 0.0
    for number, along in enumerate([apart, -apart] if apart else [0.0], 1):
        sites = {}
        for side, link, frame in zip((1, 2), loop.links, loop.frames, strict=True):
            body = _body(root, None if link == BASE else robot.joints[link].link)
            name = f"loop {loop.name} {number} {side}"
            place = frame.translation + along * frame.rotation[:, 2]
            SubElement(body, "site", name=name, pos=text(place), xyaxes=text(frame.rotation[:, :2].T))
            sites[f"site{side}"] = name
        SubElement(equality, kind, {**hard, **sites})


def _body(root: Node, name: str | None) -> Node:
    """The node of a body, or of the world."""
    for node in root.iter("worldbody" if name is None else "body"):
        if name is None or node.get("name") == name:
            return node
    raise AssertionError(f"body {name} was not written")  # every link has been


# ----------------------------------------------------------------------------------------------------------------------
# Where a robot's elements act in a simulated model: along one joint, along a sum of joints, or as an outside force.

_PARALLEL = 1e-12  # relative size of what is left of a direction along another


@dataclass(frozen=True)
class Place:
    """One element in joint coordinates: the moving joints, then those that loops determine.

    Its velocity is ``direction · dq``, and the torque it takes from the joints is ``push * phi(velocity)``.

    Attributes:
        label: The element's label; motors that only carry back-EMF are called "u3".
        direction: (n_moving + n_solved,) velocity from joint velocities.
        push: (n_moving + n_solved,) torque at the joints per unit of its own.
        share: `push` as a multiple of `direction`, or None where it is none: such an element is no tendon.
        inertia: Rotor inertia [kg·m² or kg].
        viscous: Viscous friction.
        coulomb: Coulomb friction.
        offset: Constant torque.
    """

    label: str
    direction: Array
    push: Array
    share: float | None
    inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", frozen(self.direction))
        object.__setattr__(self, "push", frozen(self.push))

    @property
    def joint(self) -> int | None:
        """The joint along which it acts alone, counted as in `direction`, or None."""
        (along,) = np.nonzero(self.direction)
        return int(along[0]) if len(along) == 1 else None

    @property
    def tendon(self) -> str:
        """Name of its tendon in a MuJoCo model, for a place along several joints."""
        return f"element {self.label}"

    @property
    def is_inside(self) -> bool:
        """Whether the model itself can carry its friction: it brakes where it moves."""
        return self.share is not None and self.share * self.coulomb >= 0.0


def element_places(robot: Robot, values: Mapping[str, float]) -> tuple[Place, ...]:
    """The elements that move, with their values."""
    velocities = robot.coupling[:, list(robot.moving)]  # actuated velocities from those of the moving joints
    places = []
    for element in robot.elements:
        direction, push = (np.append(e @ velocities, element.solved) for e in (element.velocity, element.torque))
        numbers = [values.get(element.names.get(symbol, ""), 0.0) for symbol in ("Ia", "Fv", "Fc", "Fo")]
        if np.any(direction) or (np.any(push) and numbers[3]):
            places.append(Place(element.label, direction, push, _share(push, direction), *numbers))
    return tuple(places)


def motor_places(robot: Robot) -> tuple[Place, ...]:
    """The motors' own directions, without values: where back-EMF brakes."""
    velocities = robot.coupling[:, list(robot.moving)]
    if robot.closure is not None:
        velocities = np.pad(velocities, ((0, 0), (0, len(robot.closure.solved))))
    names = robot.motor_names
    return tuple(
        Place(f"u{name.removeprefix('m')}", velocities[i], velocities[i], 1.0)
        for name, i in zip(names, robot.moving, strict=True)
    )


def chosen_values(robot: Robot, values: str | Mapping[str, float] | None) -> dict[str, float]:
    """Standard parameters by name, from a set of the robot (None: its own) or given ones; known values included."""
    if values is None or isinstance(values, str):
        return dict(robot.value_set(values))
    known = set(robot.parameter_names)
    for name, value in values.items():
        if name not in known:
            raise UnknownNameError("parameter", name, robot.parameter_names)
        if not np.isfinite(value):
            raise InputError(f"parameter {name} is {value}; expected a finite number")
    return {**values, **robot.fixed}


def check_motors(robot: Robot) -> None:
    """A locked joint whose motor also turns a moving one holds with a torque that is in no row."""
    if robot.locked_motors_move:
        names = ", ".join(robot.joints[robot.active[i]].name for i in robot.locked)
        raise InputError(f"locked {names}: the motor also drives a moving joint; simulate the robot unlocked")


def _share(push: Array, direction: Array) -> float | None:
    size = float(direction @ direction)
    if not size:
        return None
    share = float(push @ direction) / size
    rest = push - share * direction
    return share if np.abs(rest).max() <= _PARALLEL * np.abs(push).max() else None


# ----------------------------------------------------------------------------------------------------------------------
# A robot as MJCF text; bodies are at the link frames, so that parameters mean the same on both sides.

LEAST_MASS, LEAST_INERTIA = 1e-9, 1e-12  # [kg, kg·m²] MuJoCo wants some of each in every moving body
_HARD = "0.9999 0.9999 0.001 0.5 2"  # solimp: constraints give way by a ten-thousandth, the least that MuJoCo allows


@dataclass(frozen=True)
class ModelOptions:
    """How a robot becomes a MuJoCo model.

    Attributes:
        step: Time step [s]. Constraints are as hard as it allows (`solref` of two steps): with MuJoCo's usual softness
            dry friction changes sign ten milliseconds early.
        integrator: MuJoCo's name of the integrator.
        loops: Close loops (and couple mimic joints) by equality constraints; without, the model is the open tree.
        friction: Include dry friction.
        stops: Let position limits act as end stops.
    """

    step: float = 5e-4
    integrator: str = "RK4"
    loops: bool = True
    friction: bool = True
    stops: bool = False


def mujoco_xml(
    robot: Robot,
    values: str | Mapping[str, float] | None = None,
    options: ModelOptions | None = None,
    *,
    payload: Payload | None = None,
    more_places: Iterable[Place] = (),
) -> str:
    """MJCF text of a robot.

    Locked joints are part of their links' placement. Rotor inertia and friction are joint attributes, or those of a
    fixed tendon where an element moves with several joints. Passive joints follow by equality constraints; loops that
    no affine relation closes are held at their cut. Torque offsets, elements that push in another direction than they
    move, and springs along lines between two points have no place in MJCF.

    Args:
        robot: The robot.
        values: Standard parameters: a set of the robot, given values, or None for its own.
        options: How the model is made.
        payload: Body on the tool.
        more_places: Places besides those of the robot's elements, such as motors with back-EMF.

    Raises:
        InputError: When a link is not physically consistent, naming it.
    """
    root = mujoco_tree(robot, values, options, payload=payload, more_places=more_places)
    indent(root)
    return tostring(root, encoding="unicode")


def mujoco_tree(
    robot: Robot,
    values: str | Mapping[str, float] | None = None,
    options: ModelOptions | None = None,
    *,
    payload: Payload | None = None,
    more_places: Iterable[Place] = (),
) -> Node:
    """The model of `mujoco_xml` as a tree, to be added to."""
    chosen = options or ModelOptions()
    found = chosen_values(robot, values)
    root = Node("mujoco", model=robot.name)
    # Inertias are the robot's own, to the last digit: nothing is bounded, balanced or taken from shapes.
    SubElement(root, "compiler", angle="radian", inertiafromgeom="false", balanceinertia="false")
    option = SubElement(root, "option", timestep=repr(chosen.step), integrator=chosen.integrator)
    option.attrib.update(gravity=_text(robot.gravity), solver="Newton", tolerance="1e-10", iterations="50")
    SubElement(option, "flag", contact="disable")
    places = (*element_places(robot, found), *more_places)
    _bodies(SubElement(root, "worldbody"), robot, link_bodies(robot, found, payload), places, chosen)
    _tendons(root, robot, places, chosen)
    write_springs(root, robot, own_springs(robot, found, free_joints(robot))[0])
    if chosen.loops:
        _loops(root, robot, chosen)
    return root


def free_joints(robot: Robot) -> list[int]:
    """Indices into `robot.joints` of those that a model can move: the rest hang on locked joints only."""
    moves = np.abs(carrier_matrix(robot)).sum(axis=1) > 0.0
    return [int(j) for j in np.flatnonzero(moves)]


def link_bodies(robot: Robot, values: Mapping[str, float], payload: Payload | None = None) -> Array:
    """Standard parameters of every link, (n_links, 10), payload included; checked."""
    chi = robot.link_parameters(values)
    for joint, own in zip(robot.joints, chi, strict=True):
        broken = violations(own, link_label(joint))
        if broken:
            raise InputError(f"{broken[0]}; only physically consistent links can be simulated, choose other values")
    if payload is not None:
        link, added = payload.on(robot)
        chi[link] += added
    return chi


def _bodies(world: Node, robot: Robot, chi: Array, places: Sequence[Place], options: ModelOptions) -> None:
    nodes: dict[int, Node] = {BASE: world}
    free, rest = set(free_joints(robot)), robot.rest_positions
    places_of = {j: k for k, j in enumerate(carriers(robot))}
    for j, joint in enumerate(robot.joints):
        pose = joint.before @ joint.after if j in free else joint.before @ _motion(joint, rest[j]) @ joint.after
        body = SubElement(nodes[joint.parent], "body", name=joint.link, pos=_text(pose.translation))
        body.set("quat", _text(quaternion(pose.rotation)))
        _inertial(body, chi[j])
        if j in free:
            _joint(body, joint, [p for p in places if p.joint is not None and p.joint == places_of.get(j)], options)
        nodes[j] = body


def _inertial(body: Node, chi: Array) -> None:
    SubElement(body, "inertial", inertial_attributes(chi))


def inertial_attributes(chi: Array) -> dict[str, str]:
    """The attributes of an `<inertial>` from standard parameters (10,), with the least that MuJoCo wants."""
    own_mass, center, full = to_mujoco(chi)
    about = to_classical(chi)[2] if chi.any() else inertia_matrix(np.zeros(10))
    lack = LEAST_INERTIA - float(np.linalg.eigvalsh(about)[0])
    if lack > 0.0:  # a point or a thin rod
        full = full + np.array([lack, lack, lack, 0.0, 0.0, 0.0])
    mass = max(float(own_mass), LEAST_MASS)
    return {"mass": repr(mass), "pos": _text(center), "fullinertia": _text(full)}


def _joint(body: Node, joint: Joint, places: Sequence[Place], options: ModelOptions) -> None:
    own = joint.after.inverse()  # the joint frame in the link frame
    kind = "hinge" if joint.kind == "revolute" else "slide"
    node = SubElement(body, "joint", name=joint.name, type=kind, axis=_text(own.rotation[:, 2]))
    node.set("pos", _text(own.translation))
    limits = joint.limits
    if limits.lower is not None and limits.upper is not None and limits.lower < limits.upper:
        node.set("range", _text([limits.lower, limits.upper]))
        node.set("limited", "true" if options.stops else "false")
    if limits.effort:
        node.set("actuatorfrcrange", _text([-limits.effort, limits.effort]))
    scales = [float(place.direction[np.flatnonzero(place.direction)[0]]) for place in places]
    _friction(node, list(zip(places, scales, strict=True)), options)


def _tendons(root: Node, robot: Robot, places: Sequence[Place], options: ModelOptions) -> None:
    several = [place for place in places if place.joint is None and np.any(place.direction)]
    names = [robot.joints[j].name for j in carriers(robot)]
    if not several:
        return
    tendons = SubElement(root, "tendon")
    for place in several:
        fixed = SubElement(tendons, "fixed", name=place.tendon)
        for k in np.flatnonzero(place.direction):
            SubElement(fixed, "joint", joint=names[k], coef=repr(float(place.direction[k])))
        _friction(fixed, [(place, 1.0)], options)


def _friction(node: Node, places: Sequence[tuple[Place, float]], options: ModelOptions) -> None:
    """Inertia and friction of the places on one joint or tendon, which move `scale` times as fast as it."""
    numbers = {"armature": 0.0, "damping": 0.0, "frictionloss": 0.0}
    for place, scale in places:
        if place.share is None:
            continue
        numbers["armature"] += scale * scale * place.share * place.inertia
        numbers["damping"] += scale * scale * place.share * place.viscous
        if options.friction and place.is_inside:
            numbers["frictionloss"] += abs(scale) * place.share * place.coulomb
    for name, number in numbers.items():
        if number:
            node.set(name, repr(float(number)))
    if options.friction:
        node.set("solreffriction", f"{2.0 * options.step!r} 1")
        node.set("solimpfriction", _HARD)


def _loops(root: Node, robot: Robot, options: ModelOptions) -> None:
    """Passive joints follow those that stand for themselves, and frames at cut joints stay together."""
    own = set(carriers(robot))
    passive = [j for j in free_joints(robot) if j not in own]
    hard = {"solref": f"{2.0 * options.step!r} 1", "solimp": _HARD}
    add_loops(root, robot, passive, robot.rest_positions, hard, _text)


def _motion(joint: Joint, position: float) -> Transform:
    if joint.kind == "prismatic":
        return Transform(np.eye(3), np.array([0.0, 0.0, position]))
    c, s = math.cos(position), math.sin(position)
    return Transform(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))


def quaternion(rotation: Array) -> Array:
    """Unit quaternion (w, x, y, z) of a rotation matrix (3, 3)."""
    r = np.asarray(rotation)
    # Four times the outer product of the quaternion with itself; its longest column loses no digits.
    product = np.array(
        [
            [1 + r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], 1 - r[0, 0] + r[1, 1] - r[2, 2], r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], 1 - r[0, 0] - r[1, 1] + r[2, 2]],
        ]
    )
    column = product[:, int(np.argmax(np.diag(product)))]
    return np.asarray(column / np.linalg.norm(column))


def _text(numbers: Array | Sequence[float]) -> str:
    return " ".join(repr(float(x)) for x in np.asarray(numbers).ravel())
