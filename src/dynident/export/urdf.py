"""Identified values in the user's own URDF: inertials, joint friction and, if wanted, limits; nothing else changes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import TermsLike
from dynident.export.source_files import (
    KeptBody,
    KeptFile,
    check_export_target,
    check_same_tree,
    edited_file,
    head_comment,
    moved_files,
)
from dynident.export.values import (
    Holding,
    beside_the_tree,
    classical,
    on_joints,
    standard_values,
    text,
    with_all_joints_free,
)
from dynident.export.verification import (
    Exported,
    ExportError,
    own_torque,
    write_proved,
)
from dynident.export.xml_edit import Edits, Span, parse_spans, quoteattr
from dynident.robot.load import robot_from_urdf
from dynident.robot.model import BASE, Joint, Robot, Transform
from dynident.robot.parameters import in_frame
from dynident.robot.physicality import link_label, sentences, violations
from dynident.robot.rotations import rpy_matrix
from dynident.robot.urdf import UrdfReader

_INERTIA = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


def read_urdf_file(path: Path) -> KeptFile:
    """A URDF's bytes with what dynident reads in them.

    Raises:
        ExportError: When it is not UTF-8.
    """
    content = path.read_bytes()
    try:
        words = content.decode()
    except UnicodeDecodeError:
        raise ExportError(f"{path}: is not UTF-8 text; convert it first") from None
    robot, root = robot_from_urdf(words, str(path)), parse_spans(content)
    own, carrier = UrdfReader(words, str(path)).parts()
    links, joints = ({span.attributes.get("name", ""): span for span in root.all(tag)} for tag in ("link", "joint"))
    place = {joint.name: j for j, joint in enumerate(robot.joints)}
    bodies = []
    for name, (on, frame) in carrier.items():
        chi = in_frame(own[name], frame.rotation, frame.translation)
        leads = on is not None and robot.joints[place[on]].link == name
        bodies.append(KeptBody(name, links[name], BASE if on is None else place[on], chi, leads))
    known = robot.value_set()
    numbers = [tuple(known.get(f"{symbol}{joint.number}", 0.0) for symbol in ("Fv", "Fc")) for joint in robot.joints]
    elements = [joints[joint.name] for joint in robot.joints]
    return KeptFile(content, robot, root, tuple(bodies), tuple(zip(elements, numbers, strict=True)))


def edited_urdf(
    file: KeptFile, robot: Robot, chi: Array, holding: Holding, *, limits: bool, head: str, places: tuple[Path, Path]
) -> tuple[bytes, list[str]]:
    """The user's URDF with identified values.

    Args:
        file: The file.
        robot: The robot.
        chi: (n_links, 10) standard parameters of its links.
        holding: Friction of its joints.
        limits: Whether to write its limits as well.
        head: Comment for the top.
        places: Where the file is, and where the new one will be.

    Returns:
        The bytes, and warnings.
    """
    edits = Edits(file.content)
    edits.head(file.root, head)

    def clear(body: KeptBody) -> None:
        for inertial in body.span.all("inertial"):  # a second one would take the place of the first
            edits.remove(inertial)

    warnings = file.write_links(robot, chi, lambda body, own, label: _write_body(edits, body.span, own, label), clear)
    for i, j in enumerate(robot.active):
        span, old = file.joints[j]
        new = {"damping": holding.viscous[i], "friction": holding.coulomb[i]}
        changed = {key: text(a) for (key, a), b in zip(new.items(), old, strict=True) if a != b}
        _write_child(edits, span, "dynamics", changed, {key: text(a) for key, a in new.items()})
    if limits:
        for there, here, (span, _) in zip(file.robot.joints, robot.joints, file.joints, strict=True):
            keys = ("velocity", "effort") if span.attributes.get("type") == "continuous" else _LIMITS
            news = {key: getattr(here.limits, key) for key in keys}
            changed = {key: text(x) for key, x in news.items() if x not in (None, getattr(there.limits, key))}
            _write_child(edits, span, "limit", changed, changed)
    warnings += moved_files(edits, file.root, *places)
    return edits.result(), warnings


def _write_child(edits: Edits, joint: Span, tag: str, changed: dict[str, str], whole: dict[str, str]) -> None:
    """New attributes of a joint's element, those that changed; or a new element with the whole of them."""
    child = joint.first(tag)
    if child is not None and changed:
        edits.set(child, **changed)
    elif changed:
        words = " ".join(f'{key}="{value}"' for key, value in whole.items())
        edits.insert(joint, f"<{tag} {words}/>", last=True)


def _write_body(edits: Edits, link: Span, chi: Array, label: str) -> None:
    """New numbers in an `<inertial>`, whose frame keeps its orientation; or a new one."""
    mass, center, inertia = classical(chi, label, "URDF")
    inertial = link.first("inertial")
    if inertial is None:
        if mass:
            edits.insert(link, inertial_xml(mass, center, inertia))
        return
    origin = inertial.first("origin")
    rpy = [float(x) for x in (origin.attributes.get("rpy", "0 0 0") if origin else "0 0 0").split()]
    rotation = rpy_matrix(*rpy)
    turned = rotation.T @ inertia @ rotation
    if origin is not None:
        edits.set(origin, xyz=text(*center))
    elif np.any(center):
        edits.insert(inertial, f'<origin xyz="{text(*center)}" rpy="0 0 0"/>')
    mass_node, inertia_node = inertial.first("mass"), inertial.first("inertia")
    assert mass_node is not None
    assert inertia_node is not None
    edits.set(mass_node, value=text(mass))
    edits.set(inertia_node, **{key: text(turned[place]) for key, place in _INERTIA.items()})


def inertial_xml(mass: float, center: Array, inertia: Array) -> str:
    """An `<inertial>` whose frame is parallel to the link's."""
    entries = " ".join(f'{key}="{text(inertia[place])}"' for key, place in _INERTIA.items())
    return (
        f'<inertial><origin xyz="{text(*center)}" rpy="0 0 0"/><mass value="{text(mass)}"/>'
        f"<inertia {entries}/></inertial>"
    )


_LIMITS = ("lower", "upper", "velocity", "effort")


# ----------------------------------------------------------------------------------------------------------------------
# A URDF made from a robot's tree, for robots that did not come from one.

_NO_LIMIT = 1e16  # what exporters write where a URDF must have a number and the joint has no limit
_ON_AXIS = 1e-12  # [m]


def what_urdf_cannot_move(robot: Robot) -> list[str]:
    """Why no URDF could give the robot's torque; empty where one can."""
    reasons = []
    if robot.closure is not None:
        names = ", ".join(loop.name for loop in robot.closure.loops)
        reasons.append(f"its loops ({names}) are closed, and a URDF is a tree")
        return reasons
    for j, joint in enumerate(robot.joints):
        along = [robot.joints[robot.active[i]].variable for i in np.flatnonzero(robot.follow[j])]
        if j not in robot.active and len(along) != 1:
            moves = f"follows {' and '.join(along)} together" if along else "is held at a position"
            reasons.append(f"joint {joint.name} {moves}, and <mimic> follows one joint")
    if reasons and robot.closes:
        reasons.append(f"the loop {', '.join(robot.closes)} is closed by it, and a URDF is a tree")
    return reasons


def new_urdf(robot: Robot, chi: Array, holding: Holding, head: str) -> str:
    """A robot as URDF text; links keep their frames where the joint's axis passes through them.

    Args:
        robot: The robot, a tree whose passive joints follow one other each.
        chi: (n_links, 10) standard parameters.
        holding: Friction of the joints.
        head: Comment for the top.
    """
    links = _link_names(robot)
    frames = [_own_frame(joint) for joint in robot.joints]
    lines = ['<?xml version="1.0"?>', head, f"<robot name={quoteattr(robot.name)}>", f"  <link name={links[-1]}/>"]
    for j, joint in enumerate(robot.joints):
        back = frames[j].inverse()
        own = in_frame(chi[j], back.rotation, back.translation)
        mass, center, inertia = classical(own, link_label(joint), "URDF")
        body = f"    {inertial_xml(mass, center, inertia)}" if mass else ""
        lines += [f"  <link name={links[j]}>", body, "  </link>"] if body else [f"  <link name={links[j]}/>"]
        lines += _joint_lines(robot, j, frames, links, holding)
    return "\n".join([*lines, "</robot>", ""])


def _own_frame(joint: Joint) -> Transform:
    """The URDF link frame in the robot's: the same if the axis of a turning joint passes through its origin."""
    off = joint.after.inverse().translation  # a point on the axis, in the link frame
    axis = joint.after.rotation[2]
    aside = float(np.linalg.norm(np.cross(axis, off)))
    return Transform.identity() if joint.kind == "prismatic" or aside < _ON_AXIS else joint.after.inverse()


def _joint_lines(
    robot: Robot, j: int, frames: Sequence[Transform], links: Sequence[str], holding: Holding
) -> list[str]:
    joint = robot.joints[j]
    to_parent = Transform.identity() if joint.parent == BASE else frames[joint.parent].inverse()
    moved = joint.after @ frames[j]  # the URDF link frame in the joint frame
    origin = to_parent @ joint.before @ moved
    kind, limit = _kind_and_limit(joint)
    return [
        f"  <joint name={quoteattr(joint.name)} type={quoteattr(kind)}>",
        f"    <parent link={links[joint.parent]}/>",
        f"    <child link={links[j]}/>",
        f'    <origin xyz="{text(*origin.translation)}" rpy="{text(*roll_pitch_yaw(origin.rotation))}"/>',
        f'    <axis xyz="{text(*moved.rotation[2])}"/>',
        *([f"    {limit}"] if limit else []),
        *_motion_lines(robot, j, holding),
        "  </joint>",
    ]


def _kind_and_limit(joint: Joint) -> tuple[str, str]:
    """The joint's type, and its limits as other readers want them: all four numbers, or a continuous joint."""
    limits = joint.limits
    endless = joint.kind == "revolute" and limits.lower is None and limits.upper is None
    numbers = {
        "lower": -_NO_LIMIT if limits.lower is None else limits.lower,
        "upper": _NO_LIMIT if limits.upper is None else limits.upper,
        "velocity": _NO_LIMIT if limits.velocity is None else limits.velocity,
        "effort": _NO_LIMIT if limits.effort is None else limits.effort,
    }
    if endless and limits.velocity is None and limits.effort is None:
        return "continuous", ""
    keys = ("velocity", "effort") if endless else tuple(numbers)
    words = " ".join(f'{key}="{text(numbers[key])}"' for key in keys)
    return "continuous" if endless else joint.kind, f"<limit {words}/>"


def _motion_lines(robot: Robot, j: int, holding: Holding) -> list[str]:
    """Friction of a joint with a motor, the relation of one that follows."""
    if j in robot.active:
        i = robot.active.index(j)
        return [f'    <dynamics damping="{text(holding.viscous[i])}" friction="{text(holding.coulomb[i])}"/>']
    i = int(np.flatnonzero(robot.follow[j])[0])
    other = quoteattr(robot.joints[robot.active[i]].name)
    numbers = f'multiplier="{text(robot.follow[j, i])}" offset="{text(robot.follow_offset[j])}"'
    return [f"    <mimic joint={other} {numbers}/>"]


def _link_names(robot: Robot) -> list[str]:
    """Quoted names of the links, and that of the base last, where index -1 finds it."""
    names = [f"link{joint.link}" if joint.link.isdigit() else joint.link for joint in robot.joints]
    if len(set(names)) < len(names):
        names = [f"link{joint.number}" for joint in robot.joints]
    base = "base"
    while base in names:
        base += "_link"
    return [quoteattr(name) for name in (*names, base)]


def roll_pitch_yaw(rotation: Array) -> tuple[float, float, float]:
    """Angles of fixed axes whose matrix Rz(yaw) Ry(pitch) Rx(roll) is `rotation`, exact also where they are not unique.

    Yaw is taken first and turned back, so that what is left of it near a pitch of a quarter turn goes to roll.
    """
    r = np.asarray(rotation)
    yaw = math.atan2(r[1, 0], r[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    rest = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ r
    return math.atan2(-rest[1, 2], rest[1, 1]), math.atan2(-rest[2, 0], rest[0, 0]), yaw


# ----------------------------------------------------------------------------------------------------------------------
# `export_urdf`: identified values as a URDF, the user's own kept where there is one.


def export_urdf(
    robot: Robot,
    values: Mapping[str, float],
    path: str | Path,
    *,
    source: str | Path | None = None,
    from_scratch: bool = False,
    limits: bool = False,
    terms: TermsLike = None,
    note: str = "",
) -> Exported:
    """Write a URDF with identified values and prove it by reading it back.

    A robot that was read from a URDF keeps that file byte for byte but for `<inertial>`, `<dynamics>` and a comment on
    top; for others a URDF is made from the tree. Links fixed to another keep their inertials, and the link that carries
    them gets the rest; where that would be no body, it gets all.

    Args:
        robot: The robot.
        values: Values by parameter name: standard ones, and those of `terms`. Absent ones are zero.
        path: Where to, ending in .urdf.
        source: The URDF to keep, where the robot does not name it.
        from_scratch: Write a new file, even where the file of the robot could be kept.
        limits: Write the robot's limits as well, such as those of an overlay.
        terms: Terms of the fit, where it has more than rigid, Ia, Fv, Fc, Fo.
        note: For the top of the file, such as the prior that settled what the data does not determine.

    Raises:
        ExportError: When no URDF can give the robot's torque, or this one does not; nothing is written then.
        InputError: When the target cannot be written, or is a file the robot came from.
    """
    kept = edited_file(robot, "robot", source, from_scratch)
    target = check_export_target(path, (".urdf", ".xml"), robot, kept)
    made = urdf_text(robot, values, target, kept, limits=limits, terms=terms, note=note)
    held = made.holding.values
    proved = write_proved(target, made.content, made.robot, (held, made.standard), own_torque)
    return Exported(target, "URDF", proved, made.lost, made.warnings, held, made.usage)


@dataclass(frozen=True, eq=False)
class UrdfText:
    """A URDF that is not written yet.

    Attributes:
        robot: The robot with every joint free.
        content: The bytes.
        standard: All standard values.
        holding: Those that the file holds, and its joints' numbers.
        lost: What it does not hold, in words.
        warnings: What a reader should know.
        usage: What to do where the file is used.
    """

    robot: Robot
    content: bytes
    standard: Mapping[str, float]
    holding: Holding
    lost: tuple[str, ...]
    warnings: tuple[str, ...]
    usage: tuple[str, ...]


def urdf_text(
    robot: Robot,
    values: Mapping[str, float],
    target: Path,
    kept: Path | None,
    *,
    limits: bool = False,
    terms: TermsLike = None,
    note: str = "",
    form: str = "URDF",
    drives: bool = False,
) -> UrdfText:
    """The text of `export_urdf`.

    Args:
        robot, values, limits, terms, note: As of `export_urdf`.
        target: Where it is going to be.
        kept: The user's file to keep; None for a new one.
        form: What it is called.
        drives: Whether rotors, gear ratios and no dry friction are held, as in Drake's URDF.
    """
    locked, robot = robot.locked, with_all_joints_free(robot)
    reasons = what_urdf_cannot_move(robot)
    if reasons:
        raise ExportError(f"robot {robot.name} cannot be a URDF: {'; '.join(reasons)}. Export MJCF, YAML or C instead")
    standard, beyond = standard_values(robot, values, terms)
    holding, chi = on_joints(robot, standard, form, rotors=drives), robot.link_parameters(standard)
    file = None if kept is None else read_urdf_file(kept)
    tree = beside_the_tree(robot, "URDF", None if file is None else file.robot, locked)
    lost, usage = (*holding.lost, *beyond, *tree), () if drives else armature_lines(robot, standard)
    if drives:
        lost = (*(words for words in lost if words != "gear ratios"), *_dry_friction(holding))
    head = head_comment(robot, lost, "\n".join([note, *usage]))
    warnings = sentences(
        v for joint, own in zip(robot.joints, chi, strict=True) for v in violations(own, link_label(joint))
    )
    if file is None:
        content = new_urdf(robot, chi, holding, head).encode()
    else:
        check_same_tree(file.robot, robot, str(kept))
        assert kept is not None
        content, more = edited_urdf(file, robot, chi, holding, limits=limits, head=head, places=(kept, target))
        warnings += more
    return UrdfText(robot, content, standard, holding, lost, tuple(warnings), usage)


def _dry_friction(holding: Holding) -> tuple[str, ...]:
    """In words, the dry friction that stands in a URDF and that Drake ignores."""
    dry = [name for name, value in holding.values.items() if value and name.startswith("Fc")]
    words = f"Coulomb friction {', '.join(dry)}: Drake reads damping of joints and ignores their friction"
    return (words,) if dry else ()


def armature_lines(robot: Robot, values: Mapping[str, float]) -> tuple[str, ...]:
    """What gives Pinocchio the rotors, for which a URDF has no place; empty without rotors of single joints.

    `Ia` is at the joint: the rotor's own inertia times the gear ratio squared.
    """
    held = on_joints(robot, values, "Pinocchio", rotors=True)
    inertia = held.inertia
    rotors = {robot.joints[j].name: float(x) for j, x in zip(robot.active, inertia, strict=True) if x}
    if not rotors:
        return ()
    names, numbers = json.dumps(list(rotors)), ", ".join(repr(x) for x in rotors.values())
    places = f"[model.joints[model.getJointId(name)].idx_v for name in {names}]"
    beyond = [name for name in values if name.startswith("Ia") and values[name] and name not in held.values]
    words = f" ({', '.join(beyond)} of several joints left out)" if beyond else ""
    return (
        f"rotors at the joints, times gear ratio squared{words}, in Pinocchio: model.armature[{places}] = [{numbers}]",
    )
