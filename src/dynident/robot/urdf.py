"""A strict URDF reader for dynamics: needs no meshes, repairs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element as Node, ParseError

import numpy as np
from defusedxml import DefusedXmlException

from dynident.arrays import Array
from dynident.errors import RobotFileError, suggestion
from dynident.limits import LimitError
from dynident.markup import parse_xml
from dynident.robot.draft import BASE, Draft, check_joint_count
from dynident.robot.expressions import robot_file_reader
from dynident.robot.model import Joint, JointKind, Limits, Transform
from dynident.robot.notices import Notices
from dynident.robot.overlay import check_limits
from dynident.robot.parameters import from_urdf, in_frame, link_values
from dynident.robot.physicality import violations
from dynident.robot.rotations import rpy_matrix, z_to
from dynident.schema import LARGEST_NUMBER, plain_number, quote

_KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}
_BASES = {"floating": "base", "planar": "base"}  # of a base that is held; elsewhere they are refused
_STILL = ("fixed", "base")
# What the format knows, whether or not it matters for dynamics; anything else is reported, it may be a typing error.
_CHILDREN = {
    "robot": ["link", "joint", "material", "transmission", "gazebo", "sensor", "ros2_control", "mujoco"],
    "link": ["inertial", "visual", "collision", "contact"],
    "inertial": ["origin", "mass", "inertia"],
    "joint": ["origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic", "safety_controller"],
}
_ATTRIBUTES = {
    "inertial": [],
    "origin": ["xyz", "rpy"],
    "mass": ["value"],
    "inertia": ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"],
    "parent": ["link"],
    "child": ["link"],
    "axis": ["xyz"],
    "dynamics": ["damping", "friction"],
    "limit": ["lower", "upper", "velocity", "effort"],
    "mimic": ["joint", "multiplier", "offset"],
}
_DIFFERENTIAL = (
    "is turned by several motors together (a differential, say), whose reductions were not used; describe them by "
    "'coupling' in an overlay YAML"
)
_NO_ROOT = "is not a URDF: the root element must be <robot>"
_ROOTS = {  # root elements of files that are mistaken for one
    "sdf": "is SDF (Gazebo); give the URDF or xacro that it was made from, or convert it to URDF",
    "mujocoinclude": "is a part that MJCF files include; give the file that includes it, with root element <mujoco>",
}
_MOST_PARTS = 10000  # links or joints, fixed ones included


TOOL_FRAMES = ("tool0", "flange", "tcp", "ee_link")  # names of tool frames, in the order in which one is taken


def named_tool(frames: Iterable[str]) -> str:
    """The frame that is a tool by its name, alone or behind a prefix and `_`; empty where none is, or several are."""
    names = list(frames)
    for tool in TOOL_FRAMES:
        found = [name for name in names if name == tool] or [name for name in names if name.endswith(f"_{tool}")]
        if len(found) == 1:
            return found[0]
        if found:
            return ""  # a robot with several hands must say which
    return ""


@dataclass
class _UrdfJoint:
    """A joint element, read but not yet placed in the tree."""

    name: str
    kind: str
    continuous: bool
    parent: str
    child: str
    origin: Transform
    axis: Array
    limits: Limits
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None


class UrdfReader:
    """Reads one URDF text into a draft."""

    def __init__(self, text: str, source: str) -> None:
        self.reader = robot_file_reader(source)
        self.notices = Notices()
        try:
            self.root = parse_xml(text.encode())
        except DefusedXmlException:
            raise self.reader.error("", "declares a DTD or entities, which a URDF never needs; remove them") from None
        except LimitError as error:
            raise self.reader.error("", str(error)) from None
        except (ParseError, ValueError, LookupError) as error:  # a LookupError for an unknown encoding
            raise self.reader.error("", f"is not well-formed XML: {error}") from None
        except RecursionError:
            raise self.reader.error("", "is nested too deeply") from None
        if self.root.tag == "mujoco":
            raise self.reader.error("", "is MJCF; name the file .xml to have it read as that, or give a URDF")
        if self.root.tag != "robot":
            raise self.reader.error(f"<{self.root.tag[:40]}>", _ROOTS.get(self.root.tag, _NO_ROOT))
        if any("xacro" in str(node.tag) for node in self.root.iter()):
            problem = "contains xacro macros; give the file itself, or expand them with the xacro tool first"
            raise self.reader.error("", problem)

    def draft(self) -> Draft:
        """The robot with fixed joints merged into the links that carry them."""
        self._unknown_children(self.root, "robot")
        inertials = self._links()
        joints = self._joints(inertials)
        order, carrier = self._tree(list(inertials), joints)
        moving = [joint for joint in order if joint.kind not in _STILL]
        bases = [joint.child for joint in order if joint.kind == "base"]
        check_joint_count(self.reader, len(moving), bases)
        draft = Draft(
            self.reader,
            self._named(self.root, "robot"),
            [self._joint(number, joint, moving, carrier) for number, joint in enumerate(moving, 1)],
            free_bases=bases,
        )
        draft.values["file"] = self._values(moving, inertials, carrier)
        index = {joint.name: i for i, joint in enumerate(moving)}
        leads = {joint.child for joint in moving}
        draft.frames = {
            name: (index[on], frame) for name, (on, frame) in carrier.items() if on is not None and name not in leads
        }
        draft.tool_name = named_tool(draft.frames)
        draft.tool = draft.frames.get(draft.tool_name)
        for joint in moving:
            if joint.mimic is not None:
                target, multiplier, offset = joint.mimic
                if target not in index:
                    problem = f"mimics {quote(target)}, which is not a moving joint{suggestion(target, index)}"
                    raise self.reader.error(f"joint '{joint.name}'", problem)
                draft.passive[index[joint.name]] = ({index[target]: multiplier}, offset)
        for name, ratio in self._transmissions(joints).items():
            if name in index and index[name] not in draft.passive:
                draft.gear_ratios[index[name]] = ratio
            else:
                self.notices.add(f"joint '{name}'", "has a reduction but no motor of its own (not used)")
        draft.warnings = self.notices.lines()
        return draft

    def parts(self) -> tuple[dict[str, Array], dict[str, tuple[str | None, Transform]]]:
        """Each link's own parameters (10,), and the moving joint that carries it with its frame in that link."""
        inertials = self._links()
        return inertials, self._tree(list(inertials), self._joints(inertials))[1]

    # --- elements -------------------------------------------------------------------------------------------------

    def _only(self, node: Node, tag: str, where: str) -> Node | None:
        """The child element `tag`; more than one is reported, and the first used as every URDF parser does."""
        found = node.findall(tag)
        if len(found) > 1:
            self.notices.add(where, f"has {len(found)} <{tag}> elements; the first is used")
        unknown = [key for key in (found[0].attrib if found else {}) if key not in _ATTRIBUTES[tag]]
        if unknown and tag == "origin":  # a pose that is half understood would be wrong
            raise self.reader.error(where, f"<origin> has {quote(unknown[0])}; expected xyz and rpy only")
        if unknown:
            self.notices.add(where, f"<{tag}> has {', '.join(map(quote, unknown))}, which no robot's equations use")
        return found[0] if found else None

    def _unknown_children(self, node: Node, where: str) -> None:
        for tag in dict.fromkeys(str(child.tag) for child in node):
            if tag not in _CHILDREN[node.tag]:
                self.notices.add(where, f"has {quote(tag)}, which is not part of a URDF <{node.tag}> (not used)")

    def _number(self, node: Node, attribute: str, where: str, default: float | None = None) -> float:
        text = node.get(attribute)
        if text is None:
            if default is None:
                raise self.reader.error(where, f"<{node.tag}> has no attribute '{attribute}'")
            return default
        value = plain_number(text)
        if value is None:
            raise self.reader.error(where, f"<{node.tag} {attribute}={quote(text)}>: expected a finite number")
        return self.reader.number(value, f"{where}: <{node.tag}> {attribute}")

    def _vector(self, node: Node, attribute: str, where: str, default: str | None = None) -> list[float]:
        text = node.get(attribute, default)
        if text is None:
            raise self.reader.error(where, f"<{node.tag}> has no attribute '{attribute}'")
        values = [plain_number(part) for part in text.split()]
        if len(values) != 3 or None in values:
            raise self.reader.error(where, f"<{node.tag} {attribute}={quote(text)}>: expected three finite numbers")
        return self.reader.numbers(values, f"{where}: <{node.tag}> {attribute}", 3)

    def _origin(self, node: Node, where: str) -> Transform:
        origin = self._only(node, "origin", where)
        if origin is None:
            return Transform.identity()
        roll, pitch, yaw = self._vector(origin, "rpy", where, "0 0 0")
        if max(abs(roll), abs(pitch), abs(yaw)) > 2.0 * math.pi + 1e-3:
            self.notices.add(where, "<origin> rpy has more than a turn; it is in radians, not degrees")
        return Transform(rpy_matrix(roll, pitch, yaw), np.array(self._vector(origin, "xyz", where, "0 0 0")))

    def _named(self, node: Node, kind: str) -> str:
        if not node.get("name"):
            raise self.reader.error(f"<{kind}>", f"has no name; every <{kind}> needs name='...'")
        return self.reader.text(node.get("name"), f"<{kind}> name")

    def _all(self, tag: str) -> list[Node]:
        found = self.root.findall(tag)
        if len(found) > _MOST_PARTS:
            raise self.reader.error(f"<{tag}>", f"there are {len(found)}, more than the {_MOST_PARTS} a robot may have")
        return found

    def _links(self) -> dict[str, Array]:
        """Standard parameters (10,) of each link in its own frame; zeros where it has no inertial."""
        links: dict[str, Array] = {}
        for node in self._all("link"):
            name = self._named(node, "link")
            if name in links:
                raise self.reader.error(f"link '{name}'", "is defined twice; rename or remove one")
            self._unknown_children(node, f"link '{name}'")
            links[name] = self._inertial(node, f"link '{name}'")
        if not links:
            raise self.reader.error("<robot>", "has no <link>; a robot needs links and joints")
        return links

    def _inertial(self, node: Node, where: str) -> Array:
        inertial = self._only(node, "inertial", where)
        if inertial is None:
            return np.zeros(10)
        self._unknown_children(inertial, where)
        mass_node = self._only(inertial, "mass", where)
        inertia_node = self._only(inertial, "inertia", where)
        if mass_node is None or inertia_node is None:
            raise self.reader.error(where, "<inertial> needs both <mass> and <inertia>")
        mass = self._number(mass_node, "value", where)
        if mass < 0.0:
            raise self.reader.error(where, f"mass is {mass:g}; expected zero or more")
        entries = [self._number(inertia_node, key, where) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        xx, xy, xz, yy, yz, zz = entries
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        origin = self._origin(inertial, where)
        return from_urdf(mass, origin.translation, origin.rotation, matrix)

    def _joints(self, links: dict[str, Array]) -> dict[str, _UrdfJoint]:
        joints: dict[str, _UrdfJoint] = {}
        for node in self._all("joint"):
            joint = self._read_joint(node)
            where = f"joint '{joint.name}'"
            if joint.name in joints:
                raise self.reader.error(where, "is defined twice; rename or remove one")
            for role, link in (("parent", joint.parent), ("child", joint.child)):
                if link not in links:
                    problem = f"{role} link {quote(link)} does not exist{suggestion(link, links)}"
                    raise self.reader.error(where, problem)
            joints[joint.name] = joint
        return joints

    def _read_joint(self, node: Node) -> _UrdfJoint:
        name = self._named(node, "joint")
        where = f"joint '{name}'"
        kind = node.get("type")
        kinds = {**_KINDS, **_BASES}
        if kind not in kinds:
            raise self.reader.error(
                where,
                f"type is {quote(kind)}; dynident knows {', '.join(_KINDS)} (describe others by such joints)",
            )
        self._unknown_children(node, where)
        ends = {}
        for role in ("parent", "child"):
            end = self._only(node, role, where)
            if end is None or not end.get("link"):
                raise self.reader.error(where, f"needs <{role} link='...'/>")
            ends[role] = end.get("link") or ""
        dynamics = self._only(node, "dynamics", where)
        damping = friction = 0.0
        if dynamics is not None:
            damping = self._number(dynamics, "damping", where, 0.0)
            friction = self._number(dynamics, "friction", where, 0.0)
            if damping < 0.0 or friction < 0.0:
                raise self.reader.error(where, f"damping is {damping:g}, friction {friction:g}; expected zero or more")
        return _UrdfJoint(
            name=name,
            kind=kinds[kind],
            continuous=kind == "continuous",
            parent=ends["parent"],
            child=ends["child"],
            origin=self._origin(node, where),
            axis=self._axis(node, where) if kinds[kind] not in _STILL else np.array([0.0, 0.0, 1.0]),
            limits=self._limits(node, kind, where),
            damping=damping,
            friction=friction,
            mimic=self._mimic(node, where),
        )

    def _axis(self, node: Node, where: str) -> Array:
        axis = self._only(node, "axis", where)
        vector = np.array(self._vector(axis, "xyz", where) if axis is not None else [1.0, 0.0, 0.0])
        length = float(np.linalg.norm(vector))
        if length < 1e-9:
            raise self.reader.error(where, "axis is zero; give a direction such as '0 0 1'")
        if abs(length - 1.0) > 1e-3:
            self.notices.add(where, f"axis has length {length:.4g}; its direction is used")
        return np.asarray(vector / length)

    def _limits(self, node: Node, kind: str, where: str) -> Limits:
        limit = self._only(node, "limit", where)
        if limit is None:
            return Limits()
        values: dict[str, float | None] = {}
        for name in ("lower", "upper", "velocity", "effort"):
            values[name] = self._limit(limit, name, where)
        if kind == "continuous":
            if values["lower"] is not None or values["upper"] is not None:
                self.notices.add(where, "a continuous joint has no position limits; they are not used")
            values["lower"] = values["upper"] = None
        elif limit.get("lower") is None and limit.get("upper") is not None:
            values["lower"] = 0.0  # the format's own default
        elif limit.get("upper") is None and limit.get("lower") is not None:
            values["upper"] = 0.0
        limits = Limits(**values)
        check_limits(self.reader, limits, where)
        return limits

    def _limit(self, limit: Node, name: str, where: str) -> float | None:
        """One limit; a number such as 1e16, which many exporters write for "none", is none."""
        text = limit.get(name)
        if text is None:
            return None
        try:
            if LARGEST_NUMBER < abs(float(text)) < math.inf:
                self.notices.add(where, f"{name} limit {text} is no limit; it is not used")
                return None
        except ValueError:
            pass  # reported by the line below
        return self._number(limit, name, where)

    def _mimic(self, node: Node, where: str) -> tuple[str, float, float] | None:
        mimic = self._only(node, "mimic", where)
        if mimic is None:
            return None
        target = mimic.get("joint")
        if not target:
            raise self.reader.error(where, "<mimic> needs the attribute 'joint'")
        return (
            target,
            self._number(mimic, "multiplier", where, 1.0),
            self._number(mimic, "offset", where, 0.0),
        )

    def _transmissions(self, joints: dict[str, _UrdfJoint]) -> dict[str, float]:
        """Mechanical reduction by joint, of joints that turn with one motor."""
        ratios: dict[str, set[float]] = {}
        for node in self.root.findall("transmission"):
            where = f"transmission {quote(node.get('name', '?'))}"
            named = [child.get("name", "") for child in node.findall("joint")]
            texts = [child.text or "" for child in node.iter("mechanicalReduction")]
            if not texts or not named:
                lack = "<joint name='..'>" if texts else "<mechanicalReduction>"
                self.notices.add(where, f"has no {lack} (not used)")
                continue
            reductions = {self._reduction(text, where) for text in texts}
            for name in named:
                if name not in joints:
                    self.notices.add(f"joint '{name}'", "does not exist, but has a transmission (not used)")
                elif len(named) > 1:
                    self.notices.add(f"joint '{name}'", _DIFFERENTIAL)
                else:
                    ratios.setdefault(name, set()).update(reductions)
        for name in [name for name, several in ratios.items() if len(several) > 1]:
            problem = "has several reductions, none of which is used; give 'gear_ratios' in an overlay YAML"
            self.notices.add(f"joint '{name}'", problem)
            del ratios[name]
        if any("mechanical_reduction" in str(node.tag) for node in self.root.iter()):
            self.notices.add("<ros2_control>", "reductions are not read; give 'gear_ratios' in an overlay YAML")
        return {name: ratio for name, (ratio,) in ratios.items()}

    def _reduction(self, text: str, where: str) -> float:
        ratio = plain_number(text)
        if not ratio:
            problem = f"mechanicalReduction is {quote(text)}; expected a finite number other than 0"
            raise self.reader.error(where, problem)
        return self.reader.number(ratio, f"{where}: mechanicalReduction")

    # --- tree -----------------------------------------------------------------------------------------------------

    def _tree(
        self, links: list[str], joints: dict[str, _UrdfJoint]
    ) -> tuple[list[_UrdfJoint], dict[str, tuple[str | None, Transform]]]:
        """Joints, parents first, and for each link the moving joint that carries it with its frame in that link."""
        parent_of: dict[str, str] = {}
        for joint in joints.values():
            if joint.child in parent_of:
                raise self.reader.error(
                    f"link '{joint.child}'",
                    f"is the child of two joints ('{parent_of[joint.child]}' and '{joint.name}'); "
                    "a URDF is a tree, closed loops belong in a modified-DH YAML",
                )
            parent_of[joint.child] = joint.name
        roots = [link for link in links if link not in parent_of]
        if not roots:
            raise self._cycle(joints, parent_of, links[0])
        if len(roots) > 1:
            raise self.reader.error(
                "<robot>",
                f"has {len(roots)} root links ({', '.join(roots[:5])}); connect them with joints to one base",
            )
        below: dict[str, list[_UrdfJoint]] = {}
        for joint in joints.values():
            below.setdefault(joint.parent, []).append(joint)
        carrier: dict[str, tuple[str | None, Transform]] = {roots[0]: (None, Transform.identity())}
        order: list[_UrdfJoint] = []
        stack = list(reversed(below.get(roots[0], [])))
        while stack:
            joint = stack.pop()
            order.append(joint)
            if joint.kind in _STILL:
                on, frame = carrier[joint.parent]
                if joint.kind == "base" and on is not None:
                    problem = (
                        "is a floating or planar joint beyond the base; describe it by revolute and prismatic ones"
                    )
                    raise self.reader.error(f"joint '{joint.name}'", problem)
                carrier[joint.child] = (on, frame @ joint.origin)
            else:
                carrier[joint.child] = (joint.name, Transform.identity())
            stack.extend(reversed(below.get(joint.child, [])))
        if len(order) < len(joints):
            raise self._cycle(joints, parent_of, next(link for link in links if link not in carrier))
        return order, carrier

    def _cycle(self, joints: dict[str, _UrdfJoint], parent_of: dict[str, str], link: str) -> RobotFileError:
        """The error for the cycle of joints that is met on the way up from a link."""
        met: list[str] = []
        while parent_of[link] not in met:
            met.append(parent_of[link])
            link = joints[met[-1]].parent
        names = ", ".join(f"'{name}'" for name in met[met.index(parent_of[link]) :][:5])
        return self.reader.error(
            f"joint {names}", "closes a cycle of links; a URDF is a tree that starts at one base link"
        )

    def _joint(
        self,
        number: int,
        joint: _UrdfJoint,
        moving: list[_UrdfJoint],
        carrier: dict[str, tuple[str | None, Transform]],
    ) -> Joint:
        on, frame = carrier[joint.parent]
        names = [other.name for other in moving]
        align = Transform(z_to(joint.axis), np.zeros(3))
        kind: JointKind = "revolute" if joint.kind == "revolute" else "prismatic"
        return Joint(
            name=joint.name,
            number=number,
            kind=kind,
            parent=BASE if on is None else names.index(on),
            before=frame @ joint.origin @ align,
            after=align.inverse(),
            link=joint.child,
            limits=joint.limits,
        )

    def _values(
        self,
        moving: list[_UrdfJoint],
        inertials: dict[str, Array],
        carrier: dict[str, tuple[str | None, Transform]],
    ) -> dict[str, float]:
        """Link parameters with fixed children merged in, and the joints' damping and friction."""
        chi = {joint.name: np.zeros(10) for joint in moving}
        carried = {joint.child for joint in moving}
        for link, own in inertials.items():
            on, frame = carrier[link]
            if link not in carried:  # merged into another or part of the base, so not checked on its own later
                self.notices.violations.extend(violations(own, f"link {link}"))
            if on is not None:
                chi[on] = chi[on] + in_frame(own, frame.rotation, frame.translation)
        values: dict[str, float] = {}
        for number, joint in enumerate(moving, 1):
            values |= link_values(number, chi[joint.name])
            if joint.mimic is None:
                values[f"Fv{number}"], values[f"Fc{number}"] = joint.damping, joint.friction
            elif joint.damping or joint.friction:
                self.notices.add(f"joint '{joint.name}'", "has friction, but follows another (mimic); not used")
        return values


def read_urdf(text: str, source: str) -> Draft:
    """A draft from URDF text."""
    return UrdfReader(text, source).draft()
