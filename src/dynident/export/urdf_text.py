"""Identified values in the user's own URDF: inertials, joint friction and, if wanted, limits; nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.export.bodies import Share, classical, merged_words, same, shared, text
from dynident.export.exported import ExportError
from dynident.export.holding import Holding
from dynident.export.xml_edit import Edits, Span, parse_spans
from dynident.robot.load import robot_from_urdf
from dynident.robot.model import Limits, Robot, Transform
from dynident.robot.parameters import in_frame
from dynident.robot.physicality import link_label
from dynident.robot.rotations import rpy_matrix
from dynident.robot.urdf import UrdfReader

_INERTIA = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


@dataclass(frozen=True)
class UrdfFile:
    """A URDF that is to be kept.

    Attributes:
        content: Its bytes.
        robot: The robot in it.
        links: (10,) own parameters of every link, in its own frame.
        carrier: The moving joint that carries each link (None for the base), and its frame in that joint's link.
    """

    content: bytes
    robot: Robot
    links: Mapping[str, Array]
    carrier: Mapping[str, tuple[str | None, Transform]]


def read_urdf_file(content: bytes, source: str) -> UrdfFile:
    """A URDF's bytes with what dynident reads in them."""
    try:
        words = content.decode()
    except UnicodeDecodeError:
        raise ExportError(f"{source}: is not UTF-8 text; convert it first") from None
    robot = robot_from_urdf(words, source)
    return UrdfFile(content, robot, *UrdfReader(words, source).parts())


def edited_urdf(
    file: UrdfFile, robot: Robot, chi: Array, holding: Holding, *, limits: bool, head: str
) -> tuple[bytes, list[str]]:
    """The user's URDF with identified values.

    Args:
        file: The file.
        robot: The robot.
        chi: (n_links, 10) standard parameters of its links.
        holding: Friction of its joints.
        limits: Whether to write its limits as well.
        head: Comment for the top.

    Returns:
        The bytes, and warnings.
    """
    root, edits, warnings = parse_spans(file.content), Edits(file.content), []
    edits.head(root, head)
    links = {span.attributes.get("name", ""): span for span in root.all("link")}
    joints = {span.attributes.get("name", ""): span for span in root.all("joint")}
    old = file.robot.link_parameters()
    for place, joint in enumerate(robot.joints):
        if same(chi[place], old[place]):
            continue
        label = link_label(joint)
        share = shared(chi[place], _fixed_to(file, joint.name, joint.link), label)
        _write_body(edits, links[joint.link], share, label)
        for name in share.emptied:
            for inertial in links[name].all("inertial"):  # a second one would take the place of the first
                edits.remove(inertial)
        warnings += [merged_words(label, share.emptied)] if share.emptied else []
    known = file.robot.value_set()
    for i, j in enumerate(robot.active):
        joint = robot.joints[j]
        before = (known.get(f"Fv{joint.number}", 0.0), known.get(f"Fc{joint.number}", 0.0))
        _write_friction(edits, joints[joint.name], (holding.viscous[i], holding.coulomb[i]), before)
    if limits:
        for there, here in zip(file.robot.joints, robot.joints, strict=True):
            _write_limits(edits, joints[here.name], here.limits, there.limits)
    return edits.result(), warnings


def _fixed_to(file: UrdfFile, joint: str, link: str) -> dict[str, Array]:
    """Parameters of the links fixed to that of a moving joint, in its frame."""
    return {
        name: in_frame(file.links[name], frame.rotation, frame.translation)
        for name, (on, frame) in file.carrier.items()
        if on == joint and name != link
    }


def _write_body(edits: Edits, link: Span, share: Share, label: str) -> None:
    """New numbers in an `<inertial>`, whose frame keeps its orientation; or a new one."""
    mass, centre, inertia = classical(share.own, label, "URDF")
    inertial = link.first("inertial")
    if inertial is None:
        if mass:
            edits.insert(link, inertial_xml(mass, centre, inertia))
        return
    origin = inertial.first("origin")
    rpy = [float(x) for x in (origin.attributes.get("rpy", "0 0 0") if origin else "0 0 0").split()]
    rotation = rpy_matrix(*rpy)
    turned = rotation.T @ inertia @ rotation
    if origin is not None:
        edits.set(origin, xyz=text(*centre))
    elif np.any(centre):
        edits.insert(inertial, f'<origin xyz="{text(*centre)}" rpy="0 0 0"/>')
    mass_node, inertia_node = inertial.first("mass"), inertial.first("inertia")
    assert mass_node is not None
    assert inertia_node is not None
    edits.set(mass_node, value=text(mass))
    edits.set(inertia_node, **{key: text(turned[place]) for key, place in _INERTIA.items()})


def inertial_xml(mass: float, centre: Array, inertia: Array) -> str:
    """An `<inertial>` whose frame is parallel to the link's."""
    entries = " ".join(f'{key}="{text(inertia[place])}"' for key, place in _INERTIA.items())
    return (
        f'<inertial><origin xyz="{text(*centre)}" rpy="0 0 0"/><mass value="{text(mass)}"/>'
        f"<inertia {entries}/></inertial>"
    )


def _write_friction(edits: Edits, joint: Span, new: tuple[float, float], old: tuple[float, float]) -> None:
    """Damping [N·m·s/rad or N·s/m] and dry friction [N·m or N] of a joint."""
    keys = ("damping", "friction")
    changed = {key: text(a) for key, a, b in zip(keys, new, old, strict=True) if a != b}
    dynamics = joint.first("dynamics")
    if not changed:
        return
    if dynamics is not None:
        edits.set(dynamics, **changed)
    else:
        edits.insert(joint, f'<dynamics damping="{text(new[0])}" friction="{text(new[1])}"/>', last=True)


def _write_limits(edits: Edits, joint: Span, new: Limits, old: Limits) -> None:
    keys = ("velocity", "effort") if joint.attributes.get("type") == "continuous" else _LIMITS
    changed = {key: text(getattr(new, key)) for key in keys if getattr(new, key) not in (None, getattr(old, key))}
    limit = joint.first("limit")
    if not changed:
        return
    if limit is not None:
        edits.set(limit, **changed)
    else:
        words = " ".join(f'{key}="{value}"' for key, value in changed.items())
        edits.insert(joint, f"<limit {words}/>", last=True)


_LIMITS = ("lower", "upper", "velocity", "effort")
