"""An MJCF reader for dynamics: MuJoCo itself reads the file, so includes, defaults and angles mean what it means.

Meshes need only be there where MuJoCo weighs them: in moving bodies without an `<inertial>`, and in every body where
the file sets a total mass. A free base is held. What a `Robot` cannot hold (ball joints, springs that yield, fluids,
curved equalities, tendons along paths in space) is refused by name, before anything is compiled where that can be.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np
from defusedxml import DefusedXmlException

from dynident.arrays import Array
from dynident.errors import RobotFileError
from dynident.limits import RefusedError
from dynident.markup import parse_xml
from dynident.robot.draft import BASE, Draft, ElementSpec, check_joint_count
from dynident.robot.expressions import robot_file_reader
from dynident.robot.mjcf_loops import EqualityReader, Place, fixed_tendon_terms, resolved_terms
from dynident.robot.mjcf_scan import scan_mjcf
from dynident.robot.mjcf_spec import SpecPreparation
from dynident.robot.model import Joint, Limits, Transform
from dynident.robot.notices import Notices
from dynident.robot.overlay import check_limits
from dynident.robot.parameters import ELEMENT_SYMBOLS, LINK_SYMBOLS, from_urdf, in_frame, link_values
from dynident.robot.physicality import violations
from dynident.robot.rotations import quaternion_matrix, z_to
from dynident.robot.springs import STIFFNESS, Spring
from dynident.schema import LARGEST_NUMBER, is_name

_LOGGER = logging.getLogger("dynident")  # prints warnings to stderr where nobody set it up
_TINY = 1e-14  # share of a link's own size that is left of a zero when MuJoCo has turned its inertia


def is_mjcf(text: str) -> bool:
    """Whether a text is XML whose root element is that of an MJCF file."""
    try:
        return parse_xml(text.encode()).tag == "mujoco"
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


def load_mujoco() -> Any:
    """The `mujoco` package, whose warnings go to the logger `dynident`.

    MuJoCo itself would append them to MUJOCO_LOG.TXT in the current folder. A handler that somebody set stays.

    Raises:
        ImportError: Where it is not installed.
    """
    import mujoco

    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_LOGGER.warning)
    return mujoco


class _MjcfReader:
    """Reads one MJCF file into a draft."""

    def __init__(self, source: str) -> None:
        self.reader = robot_file_reader(source)
        self.notices = Notices()
        try:
            mujoco = load_mujoco()
        except ImportError:
            raise self.reader.error("", "reading MJCF needs MuJoCo: pip install mujoco") from None
        self.mujoco = mujoco
        with self._heard():
            try:
                scan_mjcf(source)
            except RefusedError as error:
                raise self.reader.error("", str(error)) from None
            except (DefusedXmlException, ParseError, OSError, LookupError) as error:
                raise self.reader.error("", f"MuJoCo cannot read it: {_line(error)}") from None
            try:
                self.spec = mujoco.MjSpec.from_file(source)
            except ValueError as error:
                raise self.reader.error("", f"MuJoCo cannot read it: {_line(error)}") from None
        with self._heard():
            self.model = self._compiled()

    def draft(self) -> Draft:
        """The robot with bodies without joints merged into those that carry them."""
        self._refuse()
        joints, chi, bodies = self._tree()
        check_joint_count(self.reader, len(joints), self.prepared.free_bases)
        name = self.spec.modelname if is_name(self.spec.modelname) else Path(self.reader.source).stem
        gravity_off = self.model.opt.disableflags & int(self.mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        gravity = (0.0, 0.0, 0.0) if gravity_off else tuple(float(x) for x in self.model.opt.gravity)
        draft = Draft(self.reader, name, joints, gravity=gravity, free_bases=self.prepared.free_bases)
        self._equalities(draft, bodies)
        values: dict[str, float] = {}
        for joint, own in zip(joints, chi, strict=True):
            values |= link_values(joint.number, own)
        draft.values["file"] = {**values, **self._element_values(draft)}
        draft.fixed = {f"{symbol}{joints[j].number}": 0.0 for j in self._between() for symbol in LINK_SYMBOLS}
        self._springs(draft)
        self._drives(draft)
        draft.warnings = self.notices.lines()
        return draft

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Take over what MuJoCo warns of."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield
        for one in heard:
            self.notices.add("MuJoCo", _line(one.message))

    # --- what the file says -----------------------------------------------------------------------------------------

    def _compiled(self) -> Any:
        """MuJoCo's model without what has no weight, and without a free base."""
        self.prepared = SpecPreparation(self.mujoco, self.spec, self.reader, self.notices)
        self.prepared.prepare()
        for body in self.spec.bodies:
            if body.explicitinertial and not np.isfinite(body.ipos).all():  # NaN is how MuJoCo says "none given"
                raise self.reader.error(f"body '{body.name}'", "its <inertial> has a pos that is no number; correct it")
        try:
            model = self.spec.compile()
        except ValueError as error:
            hint = self.prepared.mesh_hint(str(error)) if "file" in str(error).lower() else ""
            raise self.reader.error("", f"MuJoCo cannot compile it: {_line(error)}{hint}") from None
        for i in range(model.nbody):
            own = [model.body_mass[i], *model.body_ipos[i], *model.body_inertia[i], *model.body_pos[i]]
            if not np.abs(own).max() <= LARGEST_NUMBER:
                problem = (
                    f"mass, inertia or position is not finite, or beyond {LARGEST_NUMBER:g} in SI units; correct it"
                )
                raise self.reader.error(f"body '{model.body(i).name}'", problem)
        for (kind, name), (armature, damping) in self.prepared.rotors.items():
            i = getattr(model, kind)(name).id
            prefix, place = ("dof", int(model.jnt_dofadr[i])) if kind == "joint" else ("tendon", i)
            getattr(model, f"{prefix}_armature")[place] += armature
            getattr(model, f"{prefix}_damping")[place] += damping
        return model

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
                self.notices.add("<flag>", f"{word} is disabled in the file and was not used")
                for x in numbers:
                    x[:] = 0.0

    def _cannot(self, where: str, what: str) -> RobotFileError:
        return self.reader.error(where, f"has {what}, for which a robot's equations have no term; remove it")

    # --- the tree ---------------------------------------------------------------------------------------------------

    def _tree(self) -> tuple[list[Joint], list[Array], list[Place]]:
        """Joints in MuJoCo's order, the standard parameters (10,) of the links they carry, and where each body is."""
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
                self.notices.violations.extend(violations(own, f"body {self._body_name(b)}"))
        return joints, chi, carrier

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

    def _equalities(self, draft: Draft, bodies: list[Place]) -> None:
        """Joints that follow others, and loops."""
        prepared = self.prepared
        args = (self.mujoco, self.model, draft, bodies, self.notices, prepared.driven, prepared.mocap)
        EqualityReader(*args).read()

    def _element_values(self, draft: Draft) -> dict[str, float]:
        """Armature, damping and dry friction of joints, of those that follow, and of fixed tendons."""
        model = self.model
        values: dict[str, float] = {}
        for j, joint in enumerate(draft.joints):
            numbers = (model.dof_armature[j], model.dof_damping[j], model.dof_frictionloss[j])
            if j not in draft.passive and j not in draft.solved:
                values.update({f"{s}{joint.number}": float(x) for s, x in zip(ELEMENT_SYMBOLS, numbers, strict=False)})
            elif any(numbers):
                label = f"p{joint.number}" if j in draft.passive else str(joint.number)
                values.update(self._element(draft, label, {j: 1.0}, numbers))
        for t in range(model.ntendon):
            where = f"tendon '{model.tendon(t).name or t + 1}'"
            numbers = (model.tendon_armature[t], model.tendon_damping[t], model.tendon_frictionloss[t])
            polynomials = [getattr(model, f"tendon_{name}", None) for name in ("stiffnesspoly", "dampingpoly")]
            if any(p is not None and np.any(p[t]) for p in polynomials):
                raise self._cannot(where, "a non-linear spring or damping")
            if model.tendon_limited[t]:
                self.notices.add(where, "has length limits, which were not used")
            if any(numbers):
                terms = fixed_tendon_terms(model, t)
                values.update(self._element(draft, self._tendon_label(t), terms, numbers))
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
            low, high = (float(x) for x in np.ravel(model.tendon_lengthspring[t]))
            if low != high:
                raise self._cannot(where, f"a spring that is slack between {low:g} and {high:g} (springlength)")
            terms = fixed_tendon_terms(model, int(t))
            found.append((self._tendon_label(int(t)), terms, low, float(model.tendon_stiffness[t])))
        for label, terms, rest, stiffness in found:
            joints = np.zeros(len(draft.joints))
            joints[list(terms)] = list(terms.values())
            slides = all(draft.joints[j].kind == "prismatic" for j in terms)
            spring = Spring(label, joints, slides, rest=rest)
            draft.values["file"][STIFFNESS + label] = stiffness
            draft.add_spring(spring, {STIFFNESS + label: stiffness})

    def _element(
        self, draft: Draft, label: str, along: dict[int, float], numbers: tuple[float, ...]
    ) -> dict[str, float]:
        """An element that moves with a sum of joints, and its values."""
        terms, _ = resolved_terms(draft.passive, along)
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
        for a, (name, kind, target, gear, force) in enumerate(self.prepared.motors):
            on_joint = int(kind) in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)) and target in names
            if on_joint and names.index(target) not in draft.passive and names.index(target) not in draft.solved:
                by_joint.setdefault(names.index(target), []).append((gear, force))
            else:
                problem = "does not turn one joint with a motor of its own; not used"
                self.notices.add(f"actuator '{name or a + 1}'", problem)
        for j, drives in by_joint.items():
            if len(drives) > 1:
                if len({gear for gear, _ in drives}) > 1:
                    self.notices.add(f"joint '{names[j]}'", "has several actuators, whose gears were not used")
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


def _line(error: Exception | str) -> str:
    return " ".join(str(error).split())
