"""A strict URDF reader for dynamics: needs no meshes, repairs nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.etree.ElementTree import Element as Node, ParseError

import numpy as np
from defusedxml import DefusedXmlException, ElementTree as SafeTree

from dynident.checks import Array
from dynident.errors import suggestion
from dynident.robot.draft import BASE, Draft
from dynident.robot.model import Joint, JointKind, Limits, Transform
from dynident.robot.options import check_limits
from dynident.robot.parameters import LINK_SYMBOLS, from_urdf, in_frame
from dynident.robot.reading import Reader

_KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}
_JOINT_PARTS = (
    "origin",
    "parent",
    "child",
    "axis",
    "calibration",
    "dynamics",
    "limit",
    "mimic",
    "safety_controller",
)


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
        self.reader = Reader(source)
        self.warnings: list[str] = []
        try:
            self.root = SafeTree.fromstring(text.encode(), forbid_dtd=True)
        except DefusedXmlException:
            raise self.reader.error("", "declares a DTD or entities, which a URDF never needs; remove them") from None
        except (ParseError, ValueError) as error:
            raise self.reader.error("", f"is not well-formed XML: {error}") from None
        except RecursionError:
            raise self.reader.error("", "is nested too deeply") from None
        if self.root.tag != "robot":
            raise self.reader.error(f"<{self.root.tag}>", "is not a URDF: the root element must be <robot>")
        if any("xacro" in str(node.tag) for node in self.root):
            raise self.reader.error("", "contains xacro macros; expand them with the xacro tool first")

    def draft(self) -> Draft:
        """The robot with fixed joints merged into the links that carry them."""
        inertials = self._links()
        joints = self._joints(inertials)
        order, carrier = self._tree(list(inertials), joints)
        moving = [joint for joint in order if joint.kind != "fixed"]
        draft = Draft(
            self.reader,
            self.root.get("name") or "robot",
            [self._joint(number, joint, moving, carrier) for number, joint in enumerate(moving, 1)],
            warnings=self.warnings,
        )
        draft.values["file"] = self._values(moving, inertials, carrier)
        index = {joint.name: i for i, joint in enumerate(moving)}
        for joint in moving:
            if joint.mimic is not None:
                target, multiplier, offset = joint.mimic
                if target not in index:
                    raise self.reader.error(f"joint '{joint.name}'", f"mimics '{target}', which is not a moving joint")
                draft.passive[index[joint.name]] = ({index[target]: multiplier}, offset)
        for name, ratio in self._transmissions(joints).items():
            if name in index:
                draft.gear_ratios[index[name]] = ratio
        return draft

    # --- elements -------------------------------------------------------------------------------------------------

    def _only(self, node: Node, tag: str, where: str) -> Node | None:
        """The child element `tag`; more than one is reported, and the first used as every URDF parser does."""
        found = node.findall(tag)
        if len(found) > 1:
            self.warnings.append(f"{where}: has {len(found)} <{tag}> elements; the first is used")
        return found[0] if found else None

    def _number(self, node: Node, attribute: str, where: str, default: float | None = None) -> float:
        text = node.get(attribute)
        if text is None:
            if default is None:
                raise self.reader.error(where, f"<{node.tag}> has no attribute '{attribute}'")
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.reader.error(where, f"<{node.tag} {attribute}='{text}'>: expected a number") from None
        return self.reader.number(value, f"{where}: <{node.tag}> {attribute}")

    def _vector(self, node: Node, attribute: str, where: str, default: str | None = None) -> list[float]:
        text = node.get(attribute, default)
        if text is None:
            raise self.reader.error(where, f"<{node.tag}> has no attribute '{attribute}'")
        parts = text.split()
        try:
            values = [float(part) for part in parts]
        except ValueError:
            values = []
        if len(parts) != 3 or len(values) != 3:
            raise self.reader.error(where, f"<{node.tag} {attribute}='{text}'>: expected three numbers")
        return self.reader.numbers(values, f"{where}: <{node.tag}> {attribute}", 3)

    def _origin(self, node: Node, where: str) -> Transform:
        origin = self._only(node, "origin", where)
        if origin is None:
            return Transform.identity()
        roll, pitch, yaw = self._vector(origin, "rpy", where, "0 0 0")
        return Transform(rpy_matrix(roll, pitch, yaw), np.array(self._vector(origin, "xyz", where, "0 0 0")))

    def _named(self, node: Node, kind: str) -> str:
        name = node.get("name")
        if not name:
            raise self.reader.error(f"<{kind}>", "has no name")
        return name

    def _links(self) -> dict[str, Array]:
        """Standard parameters (10,) of each link in its own frame; zeros where it has no inertial."""
        links: dict[str, Array] = {}
        for node in self.root.findall("link"):
            name = self._named(node, "link")
            if name in links:
                raise self.reader.error(f"link '{name}'", "is defined twice")
            links[name] = self._inertial(node, f"link '{name}'")
        if not links:
            raise self.reader.error("", "has no <link>")
        return links

    def _inertial(self, node: Node, where: str) -> Array:
        inertial = self._only(node, "inertial", where)
        if inertial is None:
            return np.zeros(10)
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
        for node in self.root.findall("joint"):
            joint = self._read_joint(node)
            where = f"joint '{joint.name}'"
            if joint.name in joints:
                raise self.reader.error(where, "is defined twice")
            for role, link in (("parent", joint.parent), ("child", joint.child)):
                if link not in links:
                    raise self.reader.error(where, f"{role} link '{link}' does not exist{suggestion(link, links)}")
            joints[joint.name] = joint
        return joints

    def _read_joint(self, node: Node) -> _UrdfJoint:
        name = self._named(node, "joint")
        where = f"joint '{name}'"
        kind = node.get("type")
        if kind not in _KINDS:
            raise self.reader.error(
                where,
                f"type is {kind!r}; dynident knows {', '.join(_KINDS)} (describe others by such joints)",
            )
        for child in node:
            if child.tag not in _JOINT_PARTS and isinstance(child.tag, str):
                self.warnings.append(f"{where}: <{child.tag}> is not part of a URDF joint and was not used")
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
                raise self.reader.error(where, "damping and friction must be zero or more")
        return _UrdfJoint(
            name=name,
            kind=_KINDS[kind],
            continuous=kind == "continuous",
            parent=ends["parent"],
            child=ends["child"],
            origin=self._origin(node, where),
            axis=self._axis(node, where) if kind != "fixed" else np.array([0.0, 0.0, 1.0]),
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
            self.warnings.append(f"{where}: axis has length {length:.4g}; its direction is used")
        return np.asarray(vector / length)

    def _limits(self, node: Node, kind: str, where: str) -> Limits:
        limit = self._only(node, "limit", where)
        if limit is None:
            return Limits()
        values: dict[str, float | None] = {}
        for name in ("lower", "upper", "velocity", "effort"):
            values[name] = self._number(limit, name, where) if limit.get(name) is not None else None
        if kind == "continuous":
            values["lower"] = values["upper"] = None
        elif limit.get("lower") is None and limit.get("upper") is not None:
            values["lower"] = 0.0  # the format's own default
        elif limit.get("upper") is None and limit.get("lower") is not None:
            values["upper"] = 0.0
        limits = Limits(**values)
        check_limits(self.reader, limits, where)
        return limits

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
        """Mechanical reduction by joint."""
        ratios: dict[str, float] = {}
        for node in self.root.findall("transmission"):
            where = f"transmission '{node.get('name', '?')}'"
            named = [child.get("name", "") for child in node.findall("joint")]
            for name in named:
                if name not in joints:
                    raise self.reader.error(where, f"joint '{name}' does not exist{suggestion(name, joints)}")
            texts = [child.text or "" for child in node.iter("mechanicalReduction")]
            if not texts or not named:
                continue
            if len(named) > 1:
                self.warnings.append(f"{where}: couples several joints; give it as 'coupling' in an overlay YAML")
                continue
            try:
                ratio = float(texts[0])
            except ValueError:
                raise self.reader.error(where, f"mechanicalReduction '{texts[0]}' is not a number") from None
            if not math.isfinite(ratio) or ratio == 0.0:
                raise self.reader.error(where, f"mechanicalReduction is {texts[0]}; expected a non-zero number")
            ratios[named[0]] = ratio
        return ratios

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
            raise self.reader.error("", "its joints form a cycle: every link is the child of another")
        if len(roots) > 1:
            raise self.reader.error(
                "",
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
            if joint.kind == "fixed":
                on, frame = carrier[joint.parent]
                carrier[joint.child] = (on, frame @ joint.origin)
            else:
                carrier[joint.child] = (joint.name, Transform.identity())
            stack.extend(reversed(below.get(joint.child, [])))
        if len(order) < len(joints):
            lost = ", ".join(sorted(set(joints) - {joint.name for joint in order})[:5])
            raise self.reader.error("", f"joints {lost} form a cycle that is not connected to the base")
        return order, carrier

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
        for link, own in inertials.items():
            on, frame = carrier[link]
            if on is not None:
                chi[on] = chi[on] + in_frame(own, frame.rotation, frame.translation)
        values: dict[str, float] = {}
        for number, joint in enumerate(moving, 1):
            for symbol, value in zip(LINK_SYMBOLS, chi[joint.name], strict=True):
                values[f"{symbol}{number}"] = float(value)
            if joint.mimic is None:
                values[f"Fv{number}"], values[f"Fc{number}"] = joint.damping, joint.friction
            elif joint.damping or joint.friction:
                self.warnings.append(f"joint '{joint.name}': friction of a mimic joint is not used")
        return values


def rpy_matrix(roll: float, pitch: float, yaw: float) -> Array:
    """Rotation matrix of fixed-axis roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    matrix = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    matrix[np.abs(matrix) < 1e-15] = 0.0
    return matrix


def z_to(axis: Array) -> Array:
    """A rotation whose z column is `axis`; a signed permutation for axes along x, y or z, so that zeros stay zeros."""
    for i in range(3):
        if abs(abs(axis[i]) - 1.0) < 1e-12:
            matrix = np.zeros((3, 3))
            sign = math.copysign(1.0, axis[i])
            # Cyclic order keeps the determinant at one; the sign goes to z and to one more axis.
            matrix[(i + 1) % 3, 0] = 1.0
            matrix[(i + 2) % 3, 1] = sign
            matrix[i, 2] = sign
            return matrix
    x, y, z = (float(v) for v in axis)
    if z > -0.5:  # the smallest rotation that takes z to the axis
        k = 1.0 / (1.0 + z)
        return np.array([[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]])
    k = 1.0 / (1.0 - z)
    return np.array([[1 - k * x * x, k * x * y, x], [-k * x * y, -1 + k * y * y, y], [x, -y, z]])


def read_urdf(text: str, source: str) -> Draft:
    """A draft from URDF text."""
    return UrdfReader(text, source).draft()
