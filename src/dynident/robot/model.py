"""The machine as immutable records: joints, elements, actuation data and the robot that holds them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from dynident.arrays import Array, ReadOnlyDict, frozen
from dynident.display import brief, brief_value, html_table
from dynident.errors import InputError, UnknownNameError
from dynident.robot.algebra import Frame, Number
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.robot.rotations import rpy_matrix
from dynident.robot.springs import Spring
from dynident.schema import plain_number

JointKind = Literal["revolute", "prismatic"]
TorqueSource = Literal["motor", "sensor"]
CutJoint = Literal["revolute", "prismatic", "cylindrical", "ball", "fixed"]
METERS_PER_RADIAN = 0.1  # [m/rad] a slide moves where a joint turns: about what a pinion or a drum does
BASE = -1  # parent index of the joints on the fixed base


@brief
@dataclass(frozen=True)
class Transform:
    """A frame seen from another: `rotation` (3, 3) holds its axes, `translation` (3,) its origin [m]."""

    rotation: Array
    translation: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "rotation", frozen(self.rotation))
        object.__setattr__(self, "translation", frozen(self.translation))

    def __matmul__(self, other: Transform) -> Transform:
        """Frame `other`, given in this frame, seen from where this frame is seen."""
        return Transform(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def inverse(self) -> Transform:
        """The other frame seen from this one."""
        return Transform(self.rotation.T, -self.rotation.T @ self.translation)

    def frame(self) -> Frame:
        """The same as nested tuples of floats, for the generic recursion."""
        r, p = self.rotation.tolist(), self.translation.tolist()
        return (tuple(r[0]), tuple(r[1]), tuple(r[2])), tuple(p)

    @staticmethod
    def identity() -> Transform:
        """The frame itself."""
        return Transform(np.eye(3), np.zeros(3))


@dataclass(frozen=True)
class Limits:
    """Limits of a joint; None where the description gives none. [rad, rad/s, N·m] or [m, m/s, N]."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None

    @property
    def span(self) -> tuple[float, float]:
        """Lower and upper position limit, infinite where there is none."""
        return -math.inf if self.lower is None else self.lower, math.inf if self.upper is None else self.upper


@brief
@dataclass(frozen=True)
class Joint:
    """A moving joint of the tree and the link it carries.

    The link frame in its parent link's frame is ``before · motion(q) · after``, where the motion turns about, or
    slides along, the z axis of the joint frame.

    Attributes:
        name: As in the description.
        number: The number in parameter names: link 3 has ZZ3, joint 3 has q3.
        kind: "revolute" or "prismatic".
        parent: Index of the parent in `Robot.joints`, `BASE` for the fixed base. Always smaller than its own.
        before: Joint frame at q = 0 in the parent link's frame.
        after: Link frame in the joint frame.
        link: Label of the link, as in the description.
        limits: Position, velocity and effort limits.
    """

    name: str
    number: int
    kind: JointKind
    parent: int
    before: Transform
    after: Transform
    link: str
    limits: Limits = field(default_factory=Limits)

    @property
    def variable(self) -> str:
        """Name of the joint's position, such as q3."""
        return f"q{self.number}"

    @property
    def unit(self) -> str:
        """Unit of the joint's position."""
        return "m" if self.kind == "prismatic" else "rad"

    @property
    def torque_unit(self) -> str:
        """Unit of the joint's torque or force."""
        return "N" if self.kind == "prismatic" else "N·m"

    @property
    def radian(self) -> float:
        """What counts as a radian of its motion: 1 rad, or `METERS_PER_RADIAN` on a slide [m]."""
        return METERS_PER_RADIAN if self.kind == "prismatic" else 1.0


@brief
@dataclass(frozen=True)
class Element:
    """Where rotor inertia and friction live: a joint, a motor or a coupling between them.

    An element's column is ``torque * phi(velocity · da)`` over the actuated coordinates a.

    Attributes:
        label: "3" for joint 3, "m6" for motor 6.
        velocity: (n_active,) direction e that gives the element's velocity.
        torque: (n_active,) direction s along which its torque acts; usually equal to e.
        names: Parameter name of each symbol (Ia, Fv, Fc, Fo) this element carries.
        prismatic: Whether its velocity is in m/s.
        solved: (n_solved,) what the joints that loops are solved for add to both directions; empty without any.
    """

    label: str
    velocity: Array
    torque: Array
    names: Mapping[str, str]
    prismatic: bool = False
    solved: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("velocity", "torque", "solved"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        object.__setattr__(self, "names", ReadOnlyDict(self.names))

    @property
    def radian(self) -> float:
        """What counts as a radian of its motion: 1 rad, or `METERS_PER_RADIAN` on a slide [m]."""
        return METERS_PER_RADIAN if self.prismatic else 1.0


@dataclass(frozen=True)
class Loop:
    """Two frames on two branches of the tree, held together by the joint at which the loop was cut.

    Attributes:
        name: For messages.
        links: Indices of the two links in `Robot.joints`, `BASE` for the fixed base.
        frames: The frame in each of them; the cut joint turns about, or slides along, its z axis.
        joint: What the cut joint lets move.
    """

    name: str
    links: tuple[int, int]
    frames: tuple[Transform, Transform]
    joint: CutJoint = "revolute"


@dataclass(frozen=True)
class Closure:
    """Loops that are closed numerically: passive joints found from the active ones (see `dynamics.assembly`).

    Attributes:
        loops: The loops.
        solved: Indices into `Robot.joints` of the joints they are solved for.
        follow: (n_joints, n_solved), how tree joints follow those; added to what follows the active ones.
        reference: (n_active,) a pose of the active joints [rad or m].
        branch: (n_solved,) positions of the solved joints there, which tell one way of assembly from another.
    """

    loops: tuple[Loop, ...]
    solved: tuple[int, ...]
    follow: Array
    reference: Array
    branch: Array

    def __post_init__(self) -> None:
        for name in ("follow", "reference", "branch"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


class Geometry(Protocol):
    """A geometry written over named lengths, which can be worked out for other values or number types."""

    def frames(self, lengths: Mapping[str, Number]) -> list[tuple[Frame, Frame]]:
        """(before, after) of every moving joint for the given lengths."""
        ...


@dataclass(frozen=True)
class Drive:
    """What turns a logged signal into a torque at the actuated coordinates.

    Attributes:
        gear_ratios: (n_motors,) motor turns per joint turn, with sign.
        gains: (n_motors,) torque at the joint side per unit of the logged signal, or None.
        gain_tolerances: (n_motors,) half-width of each gain's interval, or None.
        source: Where torque was measured, None when the description does not say.
        kp: (n_motors,) position gains of the controller that turns position commands into torque,
            tau = kp (target - q) - kd dq [N·m/rad or N/m], or None.
        kd: (n_motors,) its velocity gains [N·m·s/rad or N·s/m], or None.
    """

    gear_ratios: Array
    gains: Array | None = None
    gain_tolerances: Array | None = None
    source: TorqueSource | None = None
    kp: Array | None = None
    kd: Array | None = None

    def __post_init__(self) -> None:
        for name in ("gear_ratios", "gains", "gain_tolerances", "kp", "kd"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A robot: a tree of joints and the map from its motors to that tree.

    Tree joints follow the active joints affinely, ``q_tree = follow @ q + follow_offset`` (parallelograms, mimic
    joints), and the actuated coordinates are ``a = coupling @ (q - zero)``: motor positions referred to the joint
    side, so that a robot without couplings has a = q - zero. Motor shafts are at ``qm = gear ratio * a``.
    Where loops are not affine, ``closure.follow @ s`` adds to the tree joints, with s solved from the loops for each q.

    Attributes:
        name: Name of the robot.
        source: File or bundled name it was read from.
        joints: Moving joints, parents before children; joint i carries link i.
        gravity: (3,) in the base frame [m/s²].
        active: Indices into `joints` of the joints with a motor, in the order of q.
        follow: (n_joints, n_active).
        follow_offset: (n_joints,) [rad or m].
        coupling: (n_active, n_active).
        zero: (n_active,) joint positions at which the motors read zero [rad or m].
        drive: Gear ratios, drive gains, torque source.
        elements: Places of rotor inertia and friction.
        values: Named sets of standard parameter values; absent names are zero.
        default_values: The set that `parameters` returns unless specified otherwise.
        base_values: Named sets of values for base parameters, as papers print them.
        fixed: Known values: neither estimated nor counted.
        locked: Active joint index -> the position it is held at.
        lengths: Named lengths of the geometry [m].
        geometry: The geometry over those lengths, None when it has no named lengths.
        tool: Index of the link that carries the tool, and the tool frame in it; None where the description must say.
        tool_name: Name of the tool frame in the file; empty where the tool is the last link itself.
        frames: Frames that the file fixes to links, by name: index of the link, and the frame in it.
        closes: The loops that were checked, in words.
        warnings: What the reader noticed and did not repair.
        closure: Loops that are closed numerically, None without any.
        columns: What columns of its logs stand for where their names do not say: {name: {column, unit, scale}}.
        springs: Springs and counterbalances.
    """

    name: str
    source: str
    joints: tuple[Joint, ...]
    gravity: Array
    active: tuple[int, ...]
    follow: Array
    follow_offset: Array
    coupling: Array
    zero: Array
    drive: Drive
    elements: tuple[Element, ...]
    values: Mapping[str, Mapping[str, float]]
    default_values: str
    base_values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    locked: Mapping[int, float] = field(default_factory=dict)
    lengths: Mapping[str, float] = field(default_factory=dict)
    geometry: Geometry | None = None
    tool: tuple[int, Transform] | None = None
    tool_name: str = ""
    frames: Mapping[str, tuple[int, Transform]] = field(default_factory=dict)
    closes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    closure: Closure | None = None
    columns: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    springs: tuple[Spring, ...] = ()

    def __post_init__(self) -> None:
        for name in ("gravity", "follow", "follow_offset", "coupling", "zero"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        for name in ("values", "base_values", "columns"):
            sets = {key: ReadOnlyDict(value) for key, value in getattr(self, name).items()}
            object.__setattr__(self, name, ReadOnlyDict(sets))
        for name in ("fixed", "locked", "lengths", "frames"):
            object.__setattr__(self, name, ReadOnlyDict(getattr(self, name)))

    def __repr__(self) -> str:
        """A line, not the description."""
        kinds = "".join("P" if self.joints[i].kind == "prismatic" else "R" for i in self.active)
        return (
            f"Robot({brief_value(self.name)}: {len(self.joint_names)} moving joints of {kinds}, {self.n_links} links)"
        )

    def _repr_html_(self) -> str:
        head = ("joint", "kind", "lower", "upper", "velocity", "effort", "units")
        rows = []
        for joint in self.moving_joints:
            limits = (brief_value(getattr(joint.limits, name)) for name in ("lower", "upper", "velocity", "effort"))
            rows.append((joint.name, joint.kind, *limits, f"{joint.unit}, {joint.unit}/s, {joint.torque_unit}"))
        return html_table(head, rows, repr(self))

    @functools.cached_property
    def moving(self) -> tuple[int, ...]:
        """Positions within `active` of the joints that are not locked: the columns of q and the rows of W."""
        return tuple(i for i in range(len(self.active)) if i not in self.locked)

    @functools.cached_property
    def moving_joints(self) -> tuple[Joint, ...]:
        """The joints that are not locked, in the order of q."""
        return tuple(self.joints[self.active[i]] for i in self.moving)

    @property
    def effort_limits(self) -> Array:
        """Largest torque of each moving joint, (n_joints,) [N·m or N]; infinite where there is none."""
        efforts = [joint.limits.effort for joint in self.moving_joints]
        return np.array([math.inf if effort is None else effort for effort in efforts])

    @functools.cached_property
    def moving_coupling(self) -> Array:
        """(n_joints, n_joints), positions of the moving joints' own motors from those of the joints, a = T q."""
        return frozen(self.coupling[np.ix_(list(self.moving), list(self.moving))])

    @property
    def locked_motors_move(self) -> bool:
        """Whether the motor of a locked joint also turns with a moving one: its torque is in no row."""
        return bool(np.any(self.coupling[np.ix_(list(self.locked), list(self.moving))]))

    @property
    def rest_positions(self) -> Array:
        """Tree positions where the moving joints, and those that loops determine, are at zero, (n_tree,) [rad or m]."""
        held = np.zeros(len(self.active))
        for index, position in self.locked.items():
            held[index] = position
        return np.asarray(self.follow @ held + self.follow_offset)

    @functools.cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""
        return tuple(joint.name for joint in self.moving_joints)

    @property
    def radians(self) -> Array:
        """What counts as a radian of each moving joint, (n_joints,); 1 rad, or `METERS_PER_RADIAN` on a slide [m]."""
        return np.array([joint.radian for joint in self.moving_joints])

    @property
    def position_names(self) -> tuple[str, ...]:
        """Variables of the moving joints (q1, q2, ...), in the order of q."""
        return tuple(joint.variable for joint in self.moving_joints)

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the motors, in the order of motor quantities."""
        return tuple(f"m{joint.number}" for joint in self.moving_joints)

    @property
    def tool_words(self) -> str:
        """The tool frame in words, such as `tool0, fixed to link 6 (wrist_3)`."""
        if self.tool is None:
            return "no tool frame"
        joint = self.joints[self.tool[0]]
        link = f"link {joint.number}" + ("" if joint.link == str(joint.number) else f" ({joint.link})")
        return f"{self.tool_name}, fixed to {link}" if self.tool_name else f"the frame of {link}"

    def with_tool(self, tool: str) -> Robot:
        """The robot with another tool frame.

        Args:
            tool: Name of a frame or link of the robot's file, or X,Y,Z[,ROLL,PITCH,YAW] [m, rad] in the frame of the
                link that carries the tool.
        """
        parts = tool.split(",")
        if len(parts) == 1:
            name = tool.strip()
            links = {joint.link: (i, Transform.identity()) for i, joint in enumerate(self.joints)}
            if name not in self.frames and name not in links:
                raise UnknownNameError("tool frame", name, [*self.frames, *links])
            place = self.frames.get(name) or links[name]
            return dataclasses.replace(self, tool=place, tool_name=name if name in self.frames else "")
        numbers = [plain_number(part) for part in parts]
        if None in numbers or len(numbers) not in (3, 6):
            raise InputError(f"tool is '{tool}'; expected the name of a frame, or X,Y,Z[,ROLL,PITCH,YAW] in m and rad")
        if self.tool is None:
            raise InputError(f"robot {self.name} has several branches; give the name of a frame as its tool")
        x, y, z, *rpy = (float(number) for number in numbers if number is not None)
        frame = Transform(rpy_matrix(*(rpy or (0.0, 0.0, 0.0))), np.array([x, y, z]))
        return dataclasses.replace(self, tool=(self.tool[0], frame), tool_name=f"the tool at {tool.strip()}")

    @property
    def n_links(self) -> int:
        """Number of moving links."""
        return len(self.joints)

    @property
    def is_serial(self) -> bool:
        """Whether each link carries at most one other and every joint has its own motor."""
        parents = [joint.parent for joint in self.joints]
        return parents == list(range(-1, len(parents) - 1)) and len(self.active) == len(self.joints)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Every standard parameter of the robot: links first, then elements and springs."""
        links = [f"{symbol}{joint.number}" for joint in self.joints for symbol in LINK_SYMBOLS]
        elements = [name for element in self.elements for name in element.names.values()]
        return (*links, *elements, *(name for spring in self.springs for name in spring.names))

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of everything that shapes the equations: tree, actuation, gravity, elements, springs, locked joints."""
        digest = hashlib.sha256()
        for joint in self.joints:
            digest.update(f"{joint.number} {joint.kind} {joint.parent};".encode())
            for part in (joint.before, joint.after):
                digest.update(part.rotation.tobytes() + part.translation.tobytes())
        for array in (self.gravity, self.follow, self.follow_offset, self.coupling, self.zero):
            digest.update(array.tobytes())
        for element in self.elements:
            digest.update(f"{element.label} {dict(element.names)}".encode())
            digest.update(element.velocity.tobytes() + element.torque.tobytes() + element.solved.tobytes())
        digest.update(f"{self.active} {sorted(self.locked.items())}".encode())
        if self.closure is not None:
            digest.update(str([(loop.links, loop.joint) for loop in self.closure.loops]).encode())
            frames = [frame for loop in self.closure.loops for frame in loop.frames]
            parts = [part for frame in frames for part in (frame.rotation, frame.translation)]
            for array in (*parts, self.closure.follow, self.closure.reference, self.closure.branch):
                digest.update(array.tobytes())
        for spring in self.springs:
            digest.update(repr(spring.data()).encode())
        return digest.hexdigest()[:16]

    def value_set(self, name: str | None = None) -> Mapping[str, float]:
        """Standard parameter values of the set `name` (default: the robot's own), fixed values included."""
        name = self.default_values if name is None else name
        if name not in self.values:
            raise UnknownNameError("parameter set", name, self.values)
        return {**self.values[name], **self.fixed}

    def link_parameters(self, values: str | Mapping[str, float] | None = None) -> Array:
        """Standard link parameters of a value set, or of given values, (n_links, 10); absent ones are zero."""
        found = values if isinstance(values, Mapping) else self.value_set(values)
        rows = [[found.get(f"{symbol}{joint.number}", 0.0) for symbol in LINK_SYMBOLS] for joint in self.joints]
        return np.array(rows)

    def lock(self, /, **positions: float) -> Robot:
        """The robot with joints held at given positions: `robot.lock(q4=0.5)`.

        Its q has no column and its equations no row for a locked joint; every parameter keeps its name.

        Args:
            **positions: Position [rad or m] by variable (`q4`) or joint name.
        """
        by_name = {self.joints[j].name: i for i, j in enumerate(self.active)}
        for i, j in enumerate(self.active):
            variable = self.joints[j].variable
            if by_name.get(variable, i) != i and variable in positions:
                raise InputError(f"'{variable}' is joint {self.joints[j].name}'s variable and another joint's name")
            by_name[variable] = i
        locked = dict(self.locked)
        for name, position in positions.items():
            if name not in by_name:
                raise UnknownNameError("joint to lock", name, self.position_names)
            if isinstance(position, str) or not np.isfinite(position):
                raise InputError(f"the position of locked joint {name} must be a finite number, got {position!r}")
            if any(by_name.get(other) == by_name[name] for other in positions if other != name):
                raise InputError(f"joint {name} is locked twice, under two names; name it once")
            locked[by_name[name]] = float(position)
        if len(locked) == len(self.active):
            raise InputError(f"locking {', '.join(positions)} leaves {self.name} without a moving joint")
        return dataclasses.replace(self, locked=locked)

    def with_values(self, name: str, values: Mapping[str, float]) -> Robot:
        """The robot with one more (or a replaced) set of parameter values, which becomes its own."""
        known = set(self.parameter_names)
        for parameter in values:
            if parameter not in known:
                raise UnknownNameError("parameter", parameter, self.parameter_names)
        return dataclasses.replace(self, values={**self.values, name: values}, default_values=name)
