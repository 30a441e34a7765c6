"""An MJCF reader for dynamics: MuJoCo itself reads the file, so includes, defaults and angles mean what it means.

Meshes need only be there where MuJoCo weighs them: in moving bodies without an `<inertial>`, and in every body where
the file sets a total mass. What a `Robot` cannot hold (free and ball joints, springs that yield, fluids, general
equalities and tendons) is refused by name.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np
from defusedxml import DefusedXmlException, ElementTree as SafeTree

from dynident.arrays import Array
from dynident.errors import RobotFileError
from dynident.robot.draft import BASE, Draft, ElementSpec, check_joint_count
from dynident.robot.expressions import robot_file_reader
from dynident.robot.model import Joint, Limits, Transform
from dynident.robot.overlay import check_limits
from dynident.robot.parameters import ELEMENT_SYMBOLS, LINK_SYMBOLS, from_urdf, in_frame, link_values
from dynident.robot.physicality import sentences, violations
from dynident.robot.rotations import quaternion_matrix, z_to
from dynident.robot.springs import STIFFNESS, Spring
from dynident.schema import is_name

_TINY = 1e-14  # share of a link's own size that is left of a zero when MuJoCo has turned its inertia
_IGNORED = ("sensors", "keys", "pairs", "excludes", "skins", "cameras", "lights", "texts", "tuples", "numerics")


def is_mjcf(text: str) -> bool:
    """Whether a text is XML whose root element is that of an MJCF file."""
    try:
        return str(SafeTree.fromstring(text.encode(), forbid_dtd=True).tag) == "mujoco"
    except (DefusedXmlException, ParseError, ValueError, LookupError, RecursionError):
        return False  # the URDF reader says what is wrong


def read_mjcf(path: str | Path) -> Draft:
    """A draft from an MJCF file.

    Raises:
        RobotFileError: With the element that cannot be read or held, and what to do.
    """
    return _MjcfReader(str(path)).draft()


def compiled_mjcf(path: str | Path) -> Any:
    """MuJoCo's own model of an MJCF file, without what has no weight: its meshes need not be there."""
    return _MjcfReader(str(path)).model


class _MjcfReader:
    """Reads one MJCF file into a draft."""

    def __init__(self, source: str) -> None:
        self.reader = robot_file_reader(source)
        self.warnings: list[str] = []
        try:
            import mujoco
        except ImportError:
            raise self.reader.error("", "reading MJCF needs MuJoCo: pip install 'dynident[mujoco]'") from None
        self.mujoco = mujoco
        with self._heard():
            try:
                self.spec = mujoco.MjSpec.from_file(source)
            except ValueError as error:
                raise self.reader.error("", f"MuJoCo cannot read it: {_line(error)}") from None
        self.actuators = [
            (a.name, a.trntype, a.target, float(a.gear[0]), np.array(a.forcerange)) for a in self.spec.actuators
        ]
        with self._heard():
            self.model = self._compiled()

    def draft(self) -> Draft:
        """The robot with bodies without joints merged into those that carry them."""
        self._refuse()
        joints, chi = self._tree()
        check_joint_count(self.reader, len(joints))
        name = self.spec.modelname if is_name(self.spec.modelname) else Path(self.reader.source).stem
        gravity_off = self.model.opt.disableflags & int(self.mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        gravity = (0.0, 0.0, 0.0) if gravity_off else tuple(float(x) for x in self.model.opt.gravity)
        draft = Draft(self.reader, name, joints, gravity=gravity, warnings=self.warnings)
        self._followers(draft)
        values: dict[str, float] = {}
        for joint, own in zip(joints, chi, strict=True):
            values |= link_values(joint.number, own)
        draft.values["file"] = {**values, **self._element_values(draft)}
        draft.fixed = {f"{symbol}{joints[j].number}": 0.0 for j in self._between() for symbol in LINK_SYMBOLS}
        self._springs(draft)
        self._drives(draft)
        return draft

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Take over what MuJoCo warns of."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield
        self.warnings.extend(f"MuJoCo: {_line(one.message)}" for one in heard)

    # --- what the file says -----------------------------------------------------------------------------------------

    def _compiled(self) -> Any:
        """MuJoCo's model without what has no weight."""
        spec, mujoco = self.spec, self.mujoco
        if len(spec.flexes):
            raise self.reader.error("<flex>", "soft bodies have no place in a robot of rigid links; remove them")
        kinds = mujoco.mjtJoint
        for joint in spec.joints:
            if joint.type not in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE):
                word = "free" if joint.type == kinds.mjJNT_FREE else "ball"
                remedy = "fix the base" if word == "free" else "describe it by three hinges"
                problem = f"is a {word} joint; dynident knows hinge and slide joints, {remedy}"
                where = f"joint '{joint.name}'" if joint.name else f"joint of body '{joint.parent.name}'"
                raise self.reader.error(where, problem)
        for names in _IGNORED:
            for item in list(getattr(spec, names)):
                self._delete(item)
        total = float(spec.compiler.settotalmass) > 0.0
        self._drop_meshes(spec.worldbody, True, total)
        self._drop_actuators()
        used = {geom.meshname for geom in spec.geoms}
        for geom in spec.geoms:
            geom.material = ""
        meshes = [mesh for mesh in spec.meshes if mesh.name not in used]
        for item in [*spec.materials, *spec.textures, *spec.hfields, *meshes]:
            self._delete(item)
        if not total:  # for which bodies that are fused with the world do not count
            spec.compiler.fusestatic = False
        try:
            return spec.compile()
        except ValueError as error:
            hint = self._mesh_hint(total) if "file" in str(error).lower() else ""
            raise self.reader.error("", f"MuJoCo cannot compile it: {_line(error)}{hint}") from None

    def _drop_meshes(self, body: Any, still: bool, total: bool) -> None:
        """Meshes and height fields that add nothing to a mass that matters; other shapes need no file.

        Args:
            body: The body, with all it carries.
            still: Whether what carries it stands still.
            total: Whether the mass of every body matters, because the file sets their sum.
        """
        still = still and not len(body.joints)
        compiler = getattr(body, "compiler", self.spec.compiler)  # that of an attached file is its own
        kind, kinds = int(compiler.inertiafromgeom), self.mujoco.mjtInertiaFromGeom
        auto = kind == int(kinds.mjINERTIAFROMGEOM_AUTO) and not body.explicitinertial
        matters = (auto or kind == int(kinds.mjINERTIAFROMGEOM_TRUE)) and (total or not still)
        for geom in list(body.geoms):
            if geom.hfieldname or (geom.meshname and not (matters and _has_weight(geom, compiler))):
                self._delete(geom)
        for child in body.bodies:
            self._drop_meshes(child, still, total)

    def _mesh_hint(self, total: bool) -> str:
        """What to do where a mesh is missing that has weight."""
        if total:
            return "; settotalmass weighs the shapes of every body: remove it, or give the files"
        if int(self.spec.compiler.inertiafromgeom) == int(self.mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE):
            return '; inertiafromgeom="true" weighs shapes even beside an <inertial>: set it to "auto"'
        return "; bodies with an <inertial> need no mesh"

    def _drop_actuators(self) -> None:
        """Forces of actuators are commands, no part of a robot; what else they do is refused."""
        for actuator in list(self.spec.actuators):
            if any(np.any(getattr(actuator, name, 0.0)) for name in ("armature", "damping")):
                raise self.reader.error(
                    f"actuator '{actuator.name}'",
                    "has armature or damping of its own; give its joint or tendon those of the actuator times the "
                    "square of its gear instead",
                )
            self._delete(actuator)

    def _delete(self, item: Any) -> None:
        if hasattr(self.spec, "delete"):
            self.spec.delete(item)
        else:
            item.delete()

    def _refuse(self) -> None:
        """What acts on the motion and has no place in a `Robot`."""
        model = self.model
        self._switched_off()
        for j in range(model.njnt):
            where = f"joint '{self._joint_name(j)}'"
            for name in ("stiffnesspoly", "dampingpoly", "springyield"):
                numbers = getattr(model, f"{'dof' if name.startswith('damp') else 'jnt'}_{name}", None)
                if numbers is not None and np.any(np.asarray(numbers)[j]):
                    raise self._cannot(where, f"'{name}'")
        for b in range(1, model.nbody):
            if model.body_gravcomp[b]:
                raise self._cannot(f"body '{self._body_name(b)}'", "gravity compensation (gravcomp)")
        if model.opt.density or model.opt.viscosity:
            raise self._cannot("<option>", "a fluid (density, viscosity)")
        if model.nplugin:
            raise self._cannot("<plugin>", "a plugin")

    def _switched_off(self) -> None:
        """Forget springs, damping and dry friction that the file's own flags leave without effect."""
        model, bits = self.model, self.mujoco.mjtDisableBit
        for word, kind, flags in (
            ("stiffness", "jnt", ("SPRING", "PASSIVE")),
            ("damping", "dof", ("DAMPER", "PASSIVE")),
            ("frictionloss", "dof", ("FRICTIONLOSS", "CONSTRAINT")),
        ):
            off = sum(int(getattr(bits, f"mjDSBL_{flag}", 0)) for flag in flags)  # names differ between versions
            numbers = (getattr(model, f"{kind}_{word}"), getattr(model, f"tendon_{word}"))
            if model.opt.disableflags & off and any(x.any() for x in numbers):
                self.warnings.append(f"<flag>: {word} is disabled in the file and was not used")
                for x in numbers:
                    x[:] = 0.0

    def _cannot(self, where: str, what: str) -> RobotFileError:
        return self.reader.error(where, f"has {what}, for which a robot's equations have no term; remove it")

    # --- the tree ---------------------------------------------------------------------------------------------------

    def _tree(self) -> tuple[list[Joint], list[Array]]:
        """Joints in MuJoCo's order and the standard parameters (10,) of the links they carry."""
        model = self.model
        joints: list[Joint] = []
        chi: list[Array] = []
        carrier: list[tuple[int, Transform]] = [(BASE, Transform.identity())]
        for b in range(1, model.nbody):
            on, frame = carrier[int(model.body_parentid[b])]
            place = frame @ Transform(_clean(quaternion_matrix(model.body_quat[b])), model.body_pos[b])
            for j in range(int(model.body_jntadr[b]), int(model.body_jntadr[b]) + int(model.body_jntnum[b])):
                joints.append(self._joint(j, b, on, place))
                chi.append(np.zeros(10))  # that of a link between two joints of one body
                on, place = len(joints) - 1, Transform.identity()
            carrier.append((on, place))
            own = self._parameters(b)
            if on != BASE:
                chi[on] = chi[on] + in_frame(own, place.rotation, place.translation)
            if on == BASE or not model.body_jntnum[b]:  # merged, so not checked on its own later
                self.warnings.extend(sentences(violations(own, f"body {self._body_name(b)}")))
        return joints, chi

    def _between(self) -> list[int]:
        """Joints that carry no body: all but the last of those on one body."""
        bodies = self.model.jnt_bodyid
        return [j for j in range(self.model.njnt - 1) if bodies[j] == bodies[j + 1]]

    def _joint(self, j: int, b: int, parent: int, place: Transform) -> Joint:
        """Joint j on a body whose frame, at the joint's reference, is at `place` in the parent link."""
        model = self.model
        slides = int(model.jnt_type[j]) == int(self.mujoco.mjtJoint.mjJNT_SLIDE)
        own = Transform(z_to(model.jnt_axis[j]), model.jnt_pos[j])  # the joint frame in the body
        reference = float(model.qpos0[model.jnt_qposadr[j]])
        return Joint(
            name=self._joint_name(j),
            number=j + 1,
            kind="prismatic" if slides else "revolute",
            parent=parent,
            before=place @ own @ _back(reference, slides),
            after=own.inverse(),
            link=self._body_name(b)
            if j not in self._between()
            else f"{self._body_name(b)} after {self._joint_name(j)}",
            limits=self._limits(j),
        )

    def _limits(self, j: int) -> Limits:
        model = self.model
        lower = upper = effort = None
        if model.jnt_limited[j]:
            lower, upper = (float(x) for x in model.jnt_range[j])
        if model.jnt_actfrclimited[j]:
            effort = float(np.abs(model.jnt_actfrcrange[j]).min())
        limits = Limits(lower, upper, None, effort)
        check_limits(self.reader, limits, f"joint '{self._joint_name(j)}'")
        return limits

    def _parameters(self, b: int) -> Array:
        model = self.model
        rotation = quaternion_matrix(model.body_iquat[b])
        chi = from_urdf(model.body_mass[b], model.body_ipos[b], rotation, np.diag(model.body_inertia[b]))
        chi[:6][np.abs(chi[:6]) < _TINY * np.abs(chi[:6]).max()] = 0.0
        return chi

    def _joint_name(self, j: int) -> str:
        name = self.model.joint(j).name
        return name if is_name(name) else f"joint{j + 1}"

    def _body_name(self, b: int) -> str:
        name = self.model.body(b).name
        return name if is_name(name) else f"body{b}"

    # --- followers, elements, drives --------------------------------------------------------------------------------

    def _followers(self, draft: Draft) -> None:
        """Joints that equality constraints make follow others; their friction and inertia become elements."""
        model, kinds = self.model, self.mujoco.mjtEq
        for e in range(model.neq):
            where = f"equality '{model.equality(e).name or e + 1}'"
            kind, coefficients = int(model.eq_type[e]), np.array(model.eq_data[e][:5])
            if not model.eq_active0[e]:
                self.warnings.append(f"{where}: is not active and was not used")
                continue
            alone = int(model.eq_obj2id[e]) < 0
            if kind == int(kinds.mjEQ_JOINT) and not coefficients[2:].any():
                first, terms, constant = self._joint_relation(e, coefficients)
            elif kind == int(kinds.mjEQ_TENDON) and alone and self._is_fixed(int(model.eq_obj1id[e])):
                first, terms, constant = self._tendon_relation(int(model.eq_obj1id[e]), coefficients[0])
            else:
                raise self.reader.error(
                    where,
                    "only joints that follow others linearly can be read (a joint equality with polycoef 'a b 0 0 0', "
                    "or one fixed tendon held at its length); describe other loops in a modified-DH YAML",
                )
            if first in draft.passive:
                raise self.reader.error(where, f"joint '{self._joint_name(first)}' follows twice; remove one")
            draft.passive[first] = (terms, constant)

    def _joint_relation(self, e: int, coefficients: Array) -> tuple[int, dict[int, float], float]:
        model = self.model
        first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        start = float(model.qpos0[first] + coefficients[0])
        if second < 0:
            return first, {}, start
        ratio = float(coefficients[1])
        return first, {second: ratio}, start - ratio * float(model.qpos0[second])

    def _tendon_relation(self, tendon: int, longer: float) -> tuple[int, dict[int, float], float]:
        terms = self._tendon_terms(tendon)
        first = next(iter(terms))
        own = terms.pop(first)
        length = float(self.model.tendon_length0[tendon]) + longer
        return first, {j: -c / own for j, c in terms.items()}, length / own

    def _is_fixed(self, tendon: int) -> bool:
        first = int(self.model.tendon_adr[tendon])
        return int(self.model.wrap_type[first]) == int(self.mujoco.mjtWrap.mjWRAP_JOINT)

    def _tendon_terms(self, tendon: int) -> dict[int, float]:
        """Joint -> coefficient of a fixed tendon."""
        first, count = int(self.model.tendon_adr[tendon]), int(self.model.tendon_num[tendon])
        terms: dict[int, float] = {}
        for k in range(first, first + count):
            joint = int(self.model.wrap_objid[k])
            terms[joint] = terms.get(joint, 0.0) + float(self.model.wrap_prm[k])
        return {joint: number for joint, number in terms.items() if number}

    def _element_values(self, draft: Draft) -> dict[str, float]:
        """Armature, damping and dry friction of joints, of those that follow, and of fixed tendons."""
        model = self.model
        values: dict[str, float] = {}
        for j, joint in enumerate(draft.joints):
            numbers = (model.dof_armature[j], model.dof_damping[j], model.dof_frictionloss[j])
            if j not in draft.passive:
                values.update({f"{s}{joint.number}": float(x) for s, x in zip(ELEMENT_SYMBOLS, numbers, strict=False)})
            elif any(numbers):
                terms: Any = draft.passive[j][0]  # type: ignore[index]
                values.update(self._element(draft, f"p{joint.number}", terms, numbers, f"joint '{joint.name}'"))
        for t in range(model.ntendon):
            where = f"tendon '{model.tendon(t).name or t + 1}'"
            numbers = (model.tendon_armature[t], model.tendon_damping[t], model.tendon_frictionloss[t])
            polynomials = [getattr(model, f"tendon_{name}", None) for name in ("stiffnesspoly", "dampingpoly")]
            if any(p is not None and np.any(p[t]) for p in polynomials):
                raise self._cannot(where, "a non-linear spring or damping")
            if model.tendon_limited[t]:
                self.warnings.append(f"{where}: its length limits are not used")
            if any(numbers):
                if not self._is_fixed(t):
                    raise self._cannot(where, "inertia or friction along a path in space")
                values.update(self._element(draft, self._tendon_label(t), self._tendon_terms(t), numbers, where))
        return values

    def _tendon_label(self, tendon: int) -> str:
        return re.sub(r"\W+", "_", self.model.tendon(tendon).name) or f"t{tendon + 1}"

    def _springs(self, draft: Draft) -> None:
        """Springs of joints and of fixed tendons; their stiffness is known unless an overlay leaves it open."""
        model = self.model
        found: list[tuple[str, dict[int, float], float, float]] = []
        for j in np.flatnonzero(model.jnt_stiffness):
            rest = float(model.qpos_spring[model.jnt_qposadr[j]])
            found.append((str(draft.joints[j].number), {int(j): 1.0}, rest, float(model.jnt_stiffness[j])))
        for t in np.flatnonzero(model.tendon_stiffness):
            where = f"tendon '{model.tendon(t).name or t + 1}'"
            if not self._is_fixed(int(t)):
                raise self._cannot(where, "a spring along a path in space")
            low, high = (float(x) for x in np.ravel(model.tendon_lengthspring[t]))
            if low != high:
                raise self._cannot(where, f"a spring that is slack between {low:g} and {high:g} (springlength)")
            terms = self._tendon_terms(int(t))
            found.append((self._tendon_label(int(t)), terms, low, float(model.tendon_stiffness[t])))
        for label, terms, rest, stiffness in found:
            joints = np.zeros(len(draft.joints))
            joints[list(terms)] = list(terms.values())
            slides = all(draft.joints[j].kind == "prismatic" for j in terms)
            spring = Spring(label, joints, slides, rest=rest)
            draft.values["file"][STIFFNESS + label] = stiffness
            draft.add_spring(spring, {STIFFNESS + label: stiffness})

    def _element(
        self, draft: Draft, label: str, terms: dict[int, float], numbers: tuple[float, ...], where: str
    ) -> dict[str, float]:
        """An element that moves with a sum of joints, and its values."""
        if any(j in draft.passive for j in terms):
            problem = "has inertia or friction along joints that themselves follow others; remove it"
            raise self.reader.error(where, problem)
        if not terms:
            return {}  # held still
        form = " + ".join(f"({number!r}) * {draft.joints[j].variable}" for j, number in terms.items())
        carried = {symbol: float(x) for symbol, x in zip(ELEMENT_SYMBOLS, numbers, strict=False) if x}
        draft.elements.append(ElementSpec(label, form, carries=tuple(carried)))
        return {s + (label.removeprefix("m") if s == "Ia" else label): x for s, x in carried.items()}

    def _drives(self, draft: Draft) -> None:
        """Gear ratios and force limits of the actuators on joints."""
        kinds = self.mujoco.mjtTrn
        by_joint: dict[int, list[tuple[float, Array]]] = {}
        names = [joint.name for joint in draft.joints]
        for name, kind, target, gear, force in self.actuators:
            on_joint = int(kind) in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)) and target in names
            if on_joint and names.index(target) not in draft.passive:
                by_joint.setdefault(names.index(target), []).append((gear, force))
            else:
                self.warnings.append(f"actuator '{name}': does not drive one joint with a motor of its own; not used")
        for j, drives in by_joint.items():
            if len(drives) > 1:
                self.warnings.append(f"joint '{names[j]}': has {len(drives)} actuators; their gears are not used")
                continue
            ((gear, force),) = drives
            if gear:
                draft.gear_ratios[j] = gear
            old = draft.joints[j]
            if old.limits.effort is None and force.any() and gear:
                effort = float(np.abs(gear * force).min())
                limits = dataclasses.replace(old.limits, effort=effort)
                draft.joints[j] = dataclasses.replace(old, limits=limits)


def _back(reference: float, slides: bool) -> Transform:
    """The joint frame at position zero, seen from that at the reference position."""
    if slides:
        return Transform(np.eye(3), np.array([0.0, 0.0, -reference]))
    c, s = float(np.cos(reference)), float(np.sin(reference))
    return Transform(np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))


def _clean(rotation: Array) -> Array:
    """Zeros and ones that a quaternion leaves with an error in the last digit."""
    near = np.round(rotation)
    return np.where(np.abs(rotation - near) < 1e-15, near, rotation)


def _has_weight(geom: Any, compiler: Any) -> bool:
    """Whether MuJoCo weighs a shape of a body whose inertia it takes from shapes."""
    first, last = compiler.inertiagrouprange
    heavy = geom.density if np.isnan(geom.mass) else geom.mass
    return bool(first <= geom.group <= last and heavy)


def _line(error: Exception | str) -> str:
    return " ".join(str(error).split())
