"""Identified values in the user's own MJCF: inertials, armature, damping and dry friction; nothing else changes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement, indent, tostring

import numpy as np

from dynident.arrays import Array
from dynident.drives.identification import DriveEstimate
from dynident.drives.replay import STEP, replay_xml
from dynident.dynamics.terms import TermsLike
from dynident.dynamics.terms.term import MotionSamples
from dynident.export.identified import PositionControl, model_of_drives, true_gains
from dynident.export.motion_check import MotionAgreement, can_replay, check_motion
from dynident.export.shapes import Shapes, add_motors, add_shapes, add_tool, motor_attributes, urdf_shapes
from dynident.export.source_files import (
    KeptBody,
    KeptFile,
    check_export_target,
    check_same_tree,
    edited_file,
    head_comment,
    moved_files,
    urdf_of,
)
from dynident.export.values import (
    Holding,
    beside_the_tree,
    classical,
    named_parts,
    on_joints,
    standard_values,
    text,
    with_all_joints_free,
)
from dynident.export.verification import (
    Exported,
    ExportError,
    mujoco_torque,
    write_proved,
)
from dynident.export.xml_edit import Edits, Span, parse_spans, quoteattr
from dynident.plant.compiled_model import import_mujoco
from dynident.plant.mjcf_writer import ModelOptions, element_places, inertial_attributes, mujoco_tree, quaternion
from dynident.plant.springs import on_joint, own_springs
from dynident.robot.load import load_robot
from dynident.robot.mjcf import compiled_mjcf
from dynident.robot.model import BASE, Robot, Transform
from dynident.robot.parameters import from_urdf, in_frame
from dynident.robot.physicality import link_label, violations
from dynident.robot.placeholders import believed_limits
from dynident.robot.rotations import quaternion_matrix
from dynident.robot.springs import Spring

_TURNED = ("quat", "axisangle", "xyaxes", "zaxis", "euler", "diaginertia")  # of an inertial frame of its own
_MAKERS = ("replicate", "attach", "composite", "flexcomp")  # of bodies that do not stand in the text
_EMPTY = {"mass": "0", "pos": "0 0 0", "diaginertia": "0 0 0"}
_ATTRIBUTES = ("armature", "damping", "frictionloss")


def read_mjcf_file(path: Path) -> KeptFile:
    """An MJCF file's bytes with what MuJoCo and dynident read in them.

    Raises:
        ExportError: When its bodies do not all stand in its own text.
    """
    robot, model = load_robot(path), compiled_mjcf(path)
    content = with_includes(path.read_bytes(), (path.parent,))
    root = parse_spans(content)
    made = [span.tag for span in root.walk() if span.tag in _MAKERS]
    found: list[tuple[Span, list[Span]]] = []
    for world in root.all("worldbody"):
        _collect(world, None, found)
    names = [span.attributes.get("name", "") for span, _ in found]
    theirs = [model.body(b).name for b in range(1, model.nbody)]
    if made or names != theirs:
        words = f"<{made[0]}>" if made else "bodies in another order than MuJoCo's"
        raise ExportError(
            f"{path}: has {words}, so that its bodies cannot be found in its text; save it as one plain file first, "
            "or have a new one made (from_scratch)"
        )
    for compiler in root.all("compiler"):
        _check_compiler(compiler, path)
    parts = zip(model.dof_armature, model.dof_damping, model.dof_frictionloss, strict=True)
    joints = tuple(zip((joint for _, joints in found for joint in joints), parts, strict=True))
    solved = () if robot.closure is None else robot.closure.solved  # these are elements of their own
    beside = {
        f"{robot.joints[j].number}" if j in solved else f"p{j + 1}": joint
        for j, joint in enumerate(joints)
        if j not in robot.active
    }
    tendons = [span for part in root.all("tendon") for span in part.children]
    for t, span in enumerate(tendons):
        label = re.sub(r"\W+", "_", span.attributes.get("name", "")) or f"t{t + 1}"
        beside[label] = span, (model.tendon_armature[t], model.tendon_damping[t], model.tendon_frictionloss[t])
    return KeptFile(content, robot, root, _bodies(found, model), joints, beside)


def with_includes(content: bytes, folders: tuple[Path, ...]) -> bytes:
    """The text of a file with those that it includes in the places where it does, byte for byte.

    Args:
        content: The file.
        folders: That of the main file, and those of the files on the way to this one: where names are looked for.
    """
    edits = Edits(content)
    for span in parse_spans(content).walk():
        if span.tag == "include":
            name = span.attributes.get("file", "")
            path = next((folder / name for folder in folders if (folder / name).is_file()), folders[0] / name)
            part = with_includes(path.read_bytes(), (*folders, path.parent))
            root = parse_spans(part)
            edits.replace(span, part[root.inner : root.close].strip())
    return edits.result()


def _check_compiler(compiler: Span, path: Path) -> None:
    """Refuse settings that let MuJoCo change the numbers of an `<inertial>`."""
    given = compiler.attributes
    if given.get("inertiafromgeom") == "true":
        raise ExportError(f'{path}: inertiafromgeom="true" puts shapes before every <inertial>; set it to "auto" first')
    if float(given.get("settotalmass", "-1")) > 0.0:
        raise ExportError(f"{path}: settotalmass scales every mass; remove it from <compiler> first")


def _collect(span: Span, joints: list[Span] | None, found: list[tuple[Span, list[Span]]]) -> None:
    """Bodies and their joints in the order of the text, parents first; a `<frame>` belongs to the body around it."""
    for child in span.children:
        if child.tag == "body":
            found.append((child, []))
            _collect(child, found[-1][1], found)
        elif child.tag == "frame":
            _collect(child, joints, found)
        elif child.tag == "joint" and joints is not None:
            joints.append(child)


def _bodies(found: list[tuple[Span, list[Span]]], model: Any) -> tuple[KeptBody, ...]:
    """Which link each body is part of, and its parameters there."""
    frames, bodies = [(BASE, Transform.identity())], []
    for b, (span, joints) in enumerate(found, 1):
        on, frame = frames[int(model.body_parentid[b])]
        place = frame @ Transform(quaternion_matrix(model.body_quat[b]), model.body_pos[b])
        if model.body_jntnum[b]:
            on, place = int(model.body_jntadr[b]) + int(model.body_jntnum[b]) - 1, Transform.identity()
        frames.append((on, place))
        turned = quaternion_matrix(model.body_iquat[b])
        own = from_urdf(model.body_mass[b], model.body_ipos[b], turned, np.diag(model.body_inertia[b]))
        name = span.attributes.get("name") or f"the body at byte {span.start}"
        bodies.append(KeptBody(name, span, on, in_frame(own, place.rotation, place.translation), bool(joints)))
    return tuple(bodies)


def held_in(file: KeptFile, robot: Robot, values: Mapping[str, float]) -> tuple[Holding, dict[str, tuple[float, ...]]]:
    """Values as attributes of the file's joints, and those of passive joints and tendons by label."""
    beside: dict[str, tuple[float, ...]] = {}
    own: dict[str, float] = {}
    for element in robot.elements:
        names = [element.names.get(symbol, "") for symbol in ("Ia", "Fv", "Fc")]
        if element.label in file.beside:
            beside[element.label] = tuple(max(values.get(name, 0.0), 0.0) for name in names)
            own.update({name: values[name] for name in names if values.get(name, -1.0) >= 0.0})
    rest = {name: value for name, value in values.items() if name not in own}
    there = {spring.label for spring in file.robot.springs}
    inside = {spring.label for spring in own_springs(robot, values, list(range(len(robot.joints))))[0]}

    def holds(spring: Spring) -> bool:
        return spring.label in inside and (np.count_nonzero(spring.joints) == 1 or spring.label in there)

    held = on_joints(robot, rest, "the kept MJCF", rotors=True, spring_holder=holds)
    return Holding({**held.values, **own}, held.inertia, held.viscous, held.coulomb, held.lost), beside


def edited_mjcf(
    file: KeptFile,
    places: tuple[Path, Path],
    given: Robot,
    values: Mapping[str, float],
    beyond: list[str],
    note: str,
    control: PositionControl | None = None,
) -> tuple[bytes, Mapping[str, float], tuple[str, ...], list[str]]:
    """The user's MJCF with identified values.

    Args:
        file: The file.
        places: Where it is, and where the new one will be.
        given: The robot; joints of it that are locked are free in the file.
        values: Standard values.
        beyond: What stands beside them and the file cannot hold, in words.
        note: For the top of the file.
        control: Position controllers to put in; without, a file that has no actuators gets torque motors.

    Returns:
        The bytes, the values they hold, what they do not, and warnings.
    """
    robot = with_all_joints_free(given)
    holding, beside = held_in(file, robot, values)
    lost = (*holding.lost, *beyond, *beside_the_tree(robot, "MJCF", file.robot, given.locked))
    edits = Edits(file.content)
    edits.head(file.root, head_comment(robot, lost, note))

    def put(body: KeptBody, own: Array, label: str) -> None:
        classical(own, label, "MJCF")
        _write_body(edits, body, inertial_attributes(own))

    warnings = file.write_links(
        robot, robot.link_parameters(values), put, lambda body: _write_body(edits, body, _EMPTY)
    )
    for i, j in enumerate(robot.active):
        _write_numbers(edits, file.joints[j], (holding.inertia[i], holding.viscous[i], holding.coulomb[i]))
    for label, numbers in beside.items():
        _write_numbers(edits, file.beside[label], numbers)
    _write_springs(edits, file, robot, holding.values)
    if control is None:
        _add_motors(edits, file, robot)
    else:
        warnings += _put_controllers(edits, file, given, control)
    _add_tool(edits, file, robot)
    warnings += moved_files(edits, file.root, *places)
    return edits.result(), holding.values, lost, warnings


def _add_motors(edits: Edits, file: KeptFile, robot: Robot) -> None:
    """Torque motors where a file has no actuators at all."""
    if any(part.children for part in file.root.all("actuator")):
        return
    limits = believed_limits(robot)
    lines = []
    for j, limit in zip(robot.active, limits, strict=True):
        name = file.joints[j][0].attributes.get("name")
        if name is not None:  # a joint without a name cannot be referred to
            words = " ".join(f"{key}={quoteattr(x)}" for key, x in motor_attributes(name, limit.effort).items())
            lines.append(f"<motor {words}/>")
    if lines:
        edits.insert(file.root, f"<actuator>{''.join(lines)}</actuator>", last=True)


def _put_controllers(edits: Edits, file: KeptFile, robot: Robot, control: PositionControl) -> list[str]:
    """A position actuator for every moving joint, in the place of what drives it in the file; warnings."""
    driven: dict[str, list[Span]] = {}
    for span in (one for part in file.root.all("actuator") for one in part.children):
        driven.setdefault(span.attributes.get("joint", span.attributes.get("jointinparent", "")), []).append(span)
    warnings, fresh = [], []
    for joint, element in controllers(robot, control).items():
        others = driven.get(joint, [])
        if not others:
            fresh.append(_xml("position", element))
            continue
        first, *rest = others
        edits.replace(first, _xml("position", element | {"name": first.attributes.get("name", joint)}))
        for span in rest:
            edits.remove(span)
        kinds = " and ".join(dict.fromkeys(f"<{span.tag}>" for span in others))
        warnings.append(f"joint {joint}: its {kinds} became a position actuator with the gains of the logs")
    part = file.root.first("actuator")
    if fresh and part is not None:
        for line in fresh:
            edits.insert(part, line, last=True)
    elif fresh:
        edits.insert(file.root, f"<actuator>{''.join(fresh)}</actuator>", last=True)
    return warnings


def _xml(tag: str, attributes: Mapping[str, str]) -> str:
    return f"<{tag} {' '.join(f'{key}={quoteattr(x)}' for key, x in attributes.items())}/>"


def controllers(robot: Robot, control: PositionControl) -> dict[str, dict[str, str]]:
    """Attributes of the position actuator of each moving joint, by its name."""
    found = {}
    for k, (joint, limit) in enumerate(zip(robot.moving_joints, believed_limits(robot), strict=True)):
        found[joint.name] = {
            "name": joint.name,
            "joint": joint.name,
            "kp": text(control.kp[k]),
            "kv": text(control.kd[k]),
            "ctrllimited": "false",
            "forcelimited": "true" if limit.effort else "false",
        }
        if limit.effort:
            found[joint.name]["forcerange"] = text(-limit.effort, limit.effort)
    return found


def control_words(robot: Robot, control: PositionControl) -> str:
    """What a position actuator of MuJoCo does not hold: the delay of commands and the bias of logged positions."""
    words = f"delay of commands {control.delay:.6g} s"
    if np.any(control.bias):
        biases = zip(robot.joint_names, control.bias.tolist(), strict=True)
        listed = ", ".join(f"{name} {x:.6g}" for name, x in biases)
        words += f"; bias of logged positions, to be subtracted from simulated ones [rad or m]: {listed}"
    return words


def _add_tool(edits: Edits, file: KeptFile, robot: Robot) -> None:
    """A site at the tool frame, where the robot has one that the file does not know."""
    sites = {span.attributes.get("name") for span in file.root.walk() if span.tag == "site"}
    if robot.tool is None or "tool" in sites:
        return
    link, frame = robot.tool
    if np.array_equal(frame.rotation, np.eye(3)) and not frame.translation.any():
        return
    body = next((one for one in file.bodies if one.on == link and one.leads), None)
    if body is not None:
        place = f'pos="{text(*frame.translation)}" quat="{text(*quaternion(frame.rotation))}"'
        edits.insert(body.span, f'<site name="tool" {place}/>')


def _write_numbers(edits: Edits, place: tuple[Span, tuple[float, ...]], new: tuple[float, ...]) -> None:
    """Armature, damping and dry friction of a joint or tendon, those that changed."""
    changed = {name: text(a) for name, a, b in zip(_ATTRIBUTES, new, place[1], strict=True) if a != b}
    if changed:
        edits.set(place[0], **changed)


def _write_springs(edits: Edits, file: KeptFile, robot: Robot, values: Mapping[str, float]) -> None:
    """Stiffness of joints and tendons where it changed, and where springs are relaxed."""
    every = list(range(len(robot.joints)))
    old, new = (own_springs(one, own, every)[0] for one, own in ((file.robot, file.robot.value_set()), (robot, values)))
    degrees = not any(span.attributes.get("angle") == "radian" for span in file.root.all("compiler"))
    for j, joint in enumerate(robot.joints):
        before, after = (
            on_joint([spring for spring in springs if list(spring.joints) == [j]]) for springs in (old, new)
        )
        if after[0] != before[0]:
            edits.set(file.joints[j][0], stiffness=text(after[0]))
        if after[0] and after[1] != before[1]:
            turned = degrees and joint.kind == "revolute"
            edits.set(file.joints[j][0], springref=text(math.degrees(after[1]) if turned else after[1]))
    stiffness = {spring.label: spring for spring in old if len(spring.joints) > 1}
    for spring in new:
        if spring.label in stiffness and spring.label in file.beside:
            if spring.stiffness != stiffness[spring.label].stiffness:
                edits.set(file.beside[spring.label][0], stiffness=text(spring.stiffness))
            if spring.rest != stiffness[spring.label].rest:
                edits.set(file.beside[spring.label][0], springlength=text(spring.rest))


def _write_body(edits: Edits, body: KeptBody, attributes: dict[str, str]) -> None:
    inertial = body.span.first("inertial")
    if inertial is None:
        words = " ".join(f'{name}="{value}"' for name, value in attributes.items())
        edits.insert(body.span, f"<inertial {words}/>")
        return
    other = "fullinertia" if "diaginertia" in attributes else "diaginertia"
    edits.unset(inertial, *(name for name in (*_TURNED, other) if name not in attributes))
    edits.set(inertial, **attributes)


# ----------------------------------------------------------------------------------------------------------------------
# `export_mjcf`: identified values as an MJCF file, the user's own kept where there is one.


def export_mjcf(
    robot: Robot,
    values: Mapping[str, float],
    path: str | Path,
    *,
    source: str | Path | None = None,
    from_scratch: bool = False,
    terms: TermsLike = None,
    note: str = "",
    control: PositionControl | None = None,
) -> Exported:
    """Write an MJCF file with identified values and prove it in MuJoCo.

    A robot that was read from MJCF keeps that file byte for byte but for `<inertial>`, armature, damping, frictionloss,
    stiffness with springref, and a comment on top; for others a file is made from the tree, as for the MuJoCo plant:
    elements that move with several joints are fixed tendons, loops are closed by equality constraints.

    Args:
        robot: The robot.
        values: Values by parameter name: standard ones, and those of `terms`. Absent ones are zero.
        path: Where to, ending in .xml.
        source: The MJCF file to keep, where the robot does not name it.
        from_scratch: Write a new file, even where the file of the robot could be kept.
        terms: Terms of the fit, where it has more than rigid, Ia, Fv, Fc, Fo.
        note: For the top of the file, such as the prior that settled what the data does not determine.
        control: Position controllers: every moving joint gets a position actuator with these gains, and the motion of
            the file must be that of the replay under the same commands.

    Raises:
        ExportError: When the file does not give the robot's torque or the replay's motion, or a link is no body;
            nothing is written then.
        InputError: When the target cannot be written, or is a file the robot came from.
    """
    import_mujoco()  # without it nothing can be proved
    kept = edited_file(robot, "mujoco", source, from_scratch)
    target = check_export_target(path, (".xml",), robot, kept)
    text = MjcfWriter(robot, target, kept).text(values, terms, note, control)
    motion: list[MotionAgreement | str] = []

    def torque(trial: Path, free: Robot, states: MotionSamples) -> Array:
        if control is not None and can_replay(robot):
            motion.append(check_motion(trial, robot, text.held, control))
        return mujoco_torque(trial, free, states)

    values_of_file = text.held, text.standard
    proved = write_proved(target, text.content, with_all_joints_free(robot), values_of_file, torque, "MuJoCo")
    usage = tuple(str(one) for one in motion)
    if control is not None:
        usage = (*usage, control_words(robot, control))
    return Exported(target, "MJCF", proved, text.lost, text.warnings, text.held, usage)


@dataclass(frozen=True, eq=False)
class MjcfText:
    """An MJCF file that is not written yet.

    Attributes:
        content: The bytes.
        standard: All standard values.
        held: Those that the file holds.
        lost: What it does not hold, in words.
        warnings: What a reader should know.
    """

    content: bytes
    standard: Mapping[str, float]
    held: Mapping[str, float]
    lost: tuple[str, ...]
    warnings: tuple[str, ...]


class MjcfWriter:
    """Makes MJCF files of a robot with different values; the user's file, or shapes, are read once.

    Args:
        robot: The robot; joints of it that are locked are free in the file.
        target: Where files are going to be; others beside it do as well.
        kept: The user's file to keep; None for new ones.
    """

    def __init__(self, robot: Robot, target: Path, kept: Path | None) -> None:
        self.given, self.robot, self.target, self.kept = robot, with_all_joints_free(robot), target, kept
        self._file = None if kept is None else read_mjcf_file(kept)
        self._shapes = Shapes()
        source = urdf_of(self.robot)
        if self._file is not None:
            check_same_tree(self._file.robot, self.robot, str(kept))
        elif source is not None:
            self._shapes = urdf_shapes(self.robot, source, target)

    def text(
        self,
        values: Mapping[str, float],
        terms: TermsLike = None,
        note: str = "",
        control: PositionControl | None = None,
    ) -> MjcfText:
        """The file with these values; see `export_mjcf`."""
        standard, beyond = standard_values(self.robot, values, terms)
        _check_bodies(self.robot, standard)
        if control is not None:
            note = f"{note}\n{control_words(self.given, control)}"
        if self._file is not None and self.kept is not None:
            places = self.kept, self.target
            content, held, lost, warnings = edited_mjcf(self._file, places, self.given, standard, beyond, note, control)
            return MjcfText(content, standard, held, lost, tuple(warnings))
        own, words = held_in_new(self.robot, standard)
        beside = beside_the_tree(self.robot, "MJCF", None, self.given.locked)
        lost = (*words, *beyond, *beside, *self._shapes.lost)
        body = _new_file(self.given, self.robot, own, self._shapes, control)
        head = head_comment(self.robot, lost, note)
        return MjcfText(f"{head}\n{body}\n".encode(), standard, own, lost, ())


def _new_file(
    given: Robot, robot: Robot, held: Mapping[str, float], shapes: Shapes, control: PositionControl | None
) -> str:
    """A model with shapes, a site at the tool, and motors, or position actuators on the joints that moved."""
    options = ModelOptions(stops=True) if control is None else ModelOptions(STEP, "implicitfast", stops=True)
    root = mujoco_tree(robot, held, options)
    add_shapes(root, robot, shapes)
    add_tool(root, robot)
    if control is None:
        add_motors(root, robot)
    else:
        actuator = SubElement(root, "actuator")
        for attributes in controllers(given, control).values():
            SubElement(actuator, "position", attributes)
    indent(root)
    return tostring(root, encoding="unicode")


def drives_mjcf(found: DriveEstimate) -> str:
    """The model that `replay` simulates, with the delay and the bias, which it does not hold, on top."""
    model = model_of_drives(found)
    words = "" if model.control is None else f"\n{control_words(found.robot, model.control)}"
    head = head_comment(found.robot, (), f"{model.note}{words}")
    gains = true_gains(found.kp, found.kd, found.drives)
    return f"{head}\n{replay_xml(found.robot, model.values, *gains)}\n"


def held_in_new(robot: Robot, values: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Standard values that a new MJCF file holds, and in words what it does not."""
    places = {place.label: place for place in element_places(robot, values)}
    reasons: dict[str, list[str]] = {}
    for element, symbol, name in named_parts(robot, values):
        place = places.get(element.label)
        if symbol == "Fo":
            reasons.setdefault("torque offset {}: MJCF has no place for it", []).append(name)
        elif place is None or place.share is None:
            reason = "friction {}: it pushes in another direction than it moves, for which MJCF has no place"
            reasons.setdefault(reason, []).append(name)
        elif place.share * values[name] < 0.0:
            reasons.setdefault("{}: drives the motion instead of braking it, which MJCF does not allow", []).append(
                name
            )
    for spring in own_springs(robot, values, list(range(len(robot.joints))))[1]:
        reasons.setdefault("spring {}: MJCF has linear springs that push back, along joints", []).extend(spring.names)
    gone = {name for names in reasons.values() for name in names}
    words = [reason.format(", ".join(names)) for reason, names in reasons.items()]
    return {name: 0.0 if name in gone else value for name, value in values.items()}, words


def _check_bodies(robot: Robot, values: Mapping[str, float]) -> None:
    """MuJoCo refuses inertias that are not physically consistent; name the body before it does."""
    for joint, own in zip(robot.joints, robot.link_parameters(values), strict=True):
        broken = violations(own, link_label(joint))
        if broken:
            raise ExportError(
                f"{broken[0]}; MuJoCo takes only physically consistent inertias, export values of a physically "
                "consistent fit"
            )
