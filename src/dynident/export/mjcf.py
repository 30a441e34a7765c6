"""Identified values in the user's own MJCF: inertials, armature, damping and dry friction; nothing else changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import TermsLike
from dynident.export.source_files import check_export_target, check_same_tree, edited_file, origin_files
from dynident.export.urdf import head_comment, moved_files
from dynident.export.values import (
    Holding,
    beside_the_tree,
    classical,
    link_rows,
    merged_words,
    named_parts,
    on_joints,
    same,
    split_link,
    standard_values,
    text,
    with_all_joints_free,
)
from dynident.export.verification import (
    Agreement,
    Exported,
    ExportError,
    agreement,
    mujoco_torque,
    states_within_limits,
    write_proved,
)
from dynident.export.xml_edit import Edits, Span, parse_spans
from dynident.plant.compiled_model import import_mujoco
from dynident.plant.mjcf_writer import ModelOptions, element_places, inertial_attributes, mujoco_xml
from dynident.robot.algebra import quaternion_matrix
from dynident.robot.load import load_robot
from dynident.robot.mjcf import compiled_mjcf
from dynident.robot.model import BASE, Robot, Transform
from dynident.robot.parameters import from_urdf, in_frame
from dynident.robot.physicality import link_label, violations

_TURNED = ("quat", "axisangle", "xyaxes", "zaxis", "euler", "diaginertia")  # of an inertial frame of its own
_MAKERS = ("include", "replicate", "attach", "composite", "flexcomp")  # of bodies that do not stand in the text
_EMPTY = {"mass": "0", "pos": "0 0 0", "diaginertia": "0 0 0"}
_ATTRIBUTES = ("armature", "damping", "frictionloss")


@dataclass
class _MjcfBody:
    """A body of the text: its element, its joints', and what MuJoCo makes of it."""

    span: Span
    joints: list[Span] = field(default_factory=list)
    on: int = BASE  # the robot's link it is part of
    chi: Array = field(default_factory=lambda: np.zeros(10))  # its own parameters in that link's frame


@dataclass(frozen=True)
class MjcfFile:
    """An MJCF file that is to be kept.

    Attributes:
        content: Its bytes.
        robot: The robot in it.
        root: Its root element.
        bodies: Its bodies, in MuJoCo's order.
        model: MuJoCo's model.
    """

    content: bytes
    robot: Robot
    root: Span
    bodies: tuple[_MjcfBody, ...]
    model: Any

    @property
    def joints(self) -> list[Span]:
        """The joints' elements, in MuJoCo's order."""
        return [joint for body in self.bodies for joint in body.joints]

    def own_places(self) -> dict[str, tuple[Span, tuple[float, ...]]]:
        """Elements and numbers of passive joints and tendons, by the labels that the reader gives them."""
        model, places = self.model, {}
        for j, span in enumerate(self.joints):
            if j not in self.robot.active:
                places[f"p{j + 1}"] = span, self.numbers(j)
        tendons = [span for part in self.root.all("tendon") for span in part.children]
        for t, span in enumerate(tendons):
            label = re.sub(r"\W+", "_", span.attributes.get("name", "")) or f"t{t + 1}"
            places[label] = span, (model.tendon_armature[t], model.tendon_damping[t], model.tendon_frictionloss[t])
        return places

    def numbers(self, j: int) -> tuple[float, ...]:
        """Armature, damping and dry friction of joint j."""
        return self.model.dof_armature[j], self.model.dof_damping[j], self.model.dof_frictionloss[j]


def read_mjcf_file(path: Path) -> MjcfFile:
    """An MJCF file's bytes with what MuJoCo and dynident read in them.

    Raises:
        ExportError: When its bodies do not all stand in its own text.
    """
    robot, content, model = load_robot(path), path.read_bytes(), compiled_mjcf(path)
    root = parse_spans(content)
    made = [span.tag for span in root.walk() if span.tag in _MAKERS]
    bodies: list[_MjcfBody] = []
    for world in root.all("worldbody"):
        _collect(world, None, bodies)
    names = [body.span.attributes.get("name", "") for body in bodies]
    theirs = [model.body(b).name for b in range(1, model.nbody)]
    if made or names != theirs:
        words = f"<{made[0]}>" if made else "bodies in another order than MuJoCo's"
        raise ExportError(
            f"{path}: has {words}, so that its bodies cannot be found in its text; save it as one plain file first, "
            "or have a new one made (fresh)"
        )
    for compiler in root.all("compiler"):
        _check_compiler(compiler, path)
    _place(bodies, model)
    return MjcfFile(content, robot, root, tuple(bodies), model)


def _check_compiler(compiler: Span, path: Path) -> None:
    """Refuse settings that let MuJoCo change the numbers of an `<inertial>`."""
    given = compiler.attributes
    if given.get("inertiafromgeom") == "true":
        raise ExportError(f'{path}: inertiafromgeom="true" puts shapes before every <inertial>; set it to "auto" first')
    if float(given.get("settotalmass", "-1")) > 0.0:
        raise ExportError(f"{path}: settotalmass scales every mass; remove it from <compiler> first")


def _collect(span: Span, body: _MjcfBody | None, found: list[_MjcfBody]) -> None:
    """Bodies in the order of the text, parents first; a `<frame>` belongs to the body around it."""
    for child in span.children:
        if child.tag == "body":
            own = _MjcfBody(child)
            found.append(own)
            _collect(child, own, found)
        elif child.tag == "frame":
            _collect(child, body, found)
        elif child.tag == "joint" and body is not None:
            body.joints.append(child)


def _place(bodies: list[_MjcfBody], model: Any) -> None:
    """Which link each body is part of, and its parameters there."""
    frames = [(BASE, Transform.identity())]
    for b, body in enumerate(bodies, 1):
        on, frame = frames[int(model.body_parentid[b])]
        place = frame @ Transform(quaternion_matrix(model.body_quat[b]), model.body_pos[b])
        if model.body_jntnum[b]:
            on, place = int(model.body_jntadr[b]) + int(model.body_jntnum[b]) - 1, Transform.identity()
        frames.append((on, place))
        turned = quaternion_matrix(model.body_iquat[b])
        own = from_urdf(model.body_mass[b], model.body_ipos[b], turned, np.diag(model.body_inertia[b]))
        body.on, body.chi = on, in_frame(own, place.rotation, place.translation)


def held_in(file: MjcfFile, robot: Robot, values: Mapping[str, float]) -> tuple[Holding, dict[str, tuple[float, ...]]]:
    """Values as attributes of the file's joints, and those of passive joints and tendons by label."""
    places = file.own_places()
    beside: dict[str, tuple[float, ...]] = {}
    own: dict[str, float] = {}
    for element in robot.elements:
        names = [element.names.get(symbol, "") for symbol in ("Ia", "Fv", "Fc")]
        numbers = tuple(values.get(name, 0.0) for name in names)
        if element.label in places and min(numbers) >= 0.0:
            beside[element.label] = numbers
            own.update({name: values[name] for name in names if name in values})
    rest = {name: value for name, value in values.items() if name not in own}
    held = on_joints(robot, rest, "the kept MJCF", rotors=True)
    return Holding({**held.values, **own}, held.inertia, held.viscous, held.coulomb, held.lost), beside


def edited_mjcf(
    file: MjcfFile, robot: Robot, chi: Array, holding: Holding, beside: Mapping[str, tuple[float, ...]], head: str
) -> tuple[bytes, list[str]]:
    """The user's MJCF with identified values.

    Args:
        file: The file.
        robot: The robot.
        chi: (n_links, 10) standard parameters of its links.
        holding: Rotor inertia and friction of its joints.
        beside: Those of passive joints and tendons, by label.
        head: Comment for the top.

    Returns:
        The bytes, and warnings.
    """
    edits = Edits(file.content)
    edits.head(file.root, head)
    warnings = _write_links(edits, file, robot, chi)
    for i, j in enumerate(robot.active):
        new = (holding.inertia[i], holding.viscous[i], holding.coulomb[i])
        _write_numbers(edits, file.joints[j], new, file.numbers(j))
    places = file.own_places()
    for label, numbers in beside.items():
        _write_numbers(edits, places[label][0], numbers, places[label][1])
    return edits.result(), warnings


def _write_numbers(edits: Edits, span: Span, new: tuple[float, ...], old: tuple[float, ...]) -> None:
    """Armature, damping and dry friction of a joint or tendon, those that changed."""
    changed = {name: text(a) for name, a, b in zip(_ATTRIBUTES, new, old, strict=True) if a != b}
    if changed:
        edits.set(span, **changed)


def _write_links(edits: Edits, file: MjcfFile, robot: Robot, chi: Array) -> list[str]:
    """New inertials of the links that changed; returns warnings."""
    warnings, old = [], file.robot.link_parameters()
    last = {body.on: body for body in file.bodies if body.joints}
    for place, joint in enumerate(robot.joints):
        if same(chi[place], old[place]):
            continue
        label = link_label(joint)
        if place not in last:
            raise ExportError(
                f"{label}: is only a joint in the file, which has several on one body, and cannot hold a mass; have a "
                "new file made (fresh)"
            )
        parts = {_name(b): b for b in file.bodies if b.on == place and b is not last[place]}
        own, emptied = split_link(chi[place], {name: body.chi for name, body in parts.items()}, label)
        classical(own, label, "MJCF")
        _write_body(edits, last[place], inertial_attributes(own))
        for name in emptied:
            _write_body(edits, parts[name], _EMPTY)
        warnings += [merged_words(label, emptied)] if emptied else []
    return warnings


def _write_body(edits: Edits, body: _MjcfBody, attributes: dict[str, str]) -> None:
    inertial = body.span.first("inertial")
    if inertial is None:
        words = " ".join(f'{name}="{value}"' for name, value in attributes.items())
        edits.insert(body.span, f"<inertial {words}/>")
        return
    other = "fullinertia" if "diaginertia" in attributes else "diaginertia"
    edits.unset(inertial, *(name for name in (*_TURNED, other) if name not in attributes))
    edits.set(inertial, **attributes)


def _name(body: _MjcfBody) -> str:
    return body.span.attributes.get("name") or f"the body at byte {body.span.start}"


# ----------------------------------------------------------------------------------------------------------------------
# `export_mjcf`: identified values as an MJCF file, the user's own kept where there is one.


def export_mjcf(
    robot: Robot,
    values: Mapping[str, float],
    path: str | Path,
    *,
    source: str | Path | None = None,
    fresh: bool = False,
    terms: TermsLike = None,
    note: str = "",
) -> Exported:
    """Write an MJCF file with identified values and prove it in MuJoCo.

    A robot that was read from MJCF keeps that file byte for byte but for `<inertial>`, armature, damping, frictionloss
    and a comment on top; for others a file is made from the tree, as for the MuJoCo plant: elements that move with
    several joints are fixed tendons, loops are closed by equality constraints.

    Args:
        robot: The robot.
        values: Values by parameter name: standard ones, and those of `terms`. Absent ones are zero.
        path: Where to, ending in .xml.
        source: The MJCF file to keep, where the robot does not tell.
        fresh: Make a new file even where there is one to keep.
        terms: Terms of the fit, where it has more than rigid, Ia, Fv, Fc, Fo.
        note: For the top of the file, such as the prior that settled what the data does not determine.

    Raises:
        ExportError: When the file does not give the robot's torque, or a link is no body; nothing is written then.
        InputError: When the target cannot be written, or is a file the robot came from.
    """
    import_mujoco()  # without it nothing can be proved
    kept = edited_file(robot, "mujoco", source, fresh)
    target = check_export_target(path, (".xml",), (*origin_files(robot), *([kept] if kept else [])))
    locked, robot = robot.locked, with_all_joints_free(robot)
    standard, beyond = standard_values(robot, values, terms)
    _check_bodies(robot, standard)
    held: Mapping[str, float]
    warnings: list[str] = []
    if kept is None:
        held, words = held_in_new(robot, standard)
        lost = (*words, *beyond, *beside_the_tree(robot, "MJCF", None, locked))
        body = mujoco_xml(robot, held, ModelOptions(stops=True))
        content = f"{head_comment(robot, lost, note)}\n{body}\n".encode()
    else:
        content, held, lost, warnings = _edit_kept_file(kept, robot, standard, beyond, locked, note)
        warnings += moved_files(content, kept, target)
    states = states_within_limits(robot)

    def prove(trial: Path) -> Agreement:
        return agreement(robot, held, standard, mujoco_torque(trial, robot, states), states, "MuJoCo")

    return Exported(target, "MJCF", write_proved(target, content, prove), lost, tuple(warnings))


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
    gone = {name for names in reasons.values() for name in names}
    words = [reason.format(", ".join(names)) for reason, names in reasons.items()]
    return {name: value for name, value in values.items() if name not in gone}, words


def _edit_kept_file(
    file: Path, robot: Robot, values: Mapping[str, float], beyond: list[str], locked: Mapping[int, float], note: str
) -> tuple[bytes, Mapping[str, float], tuple[str, ...], list[str]]:
    """The user's file with new numbers, the values it holds, what it does not, and warnings."""

    found = read_mjcf_file(file)
    check_same_tree(found.robot, robot, str(file))
    holding, beside = held_in(found, robot, values)
    lost = (*holding.lost, *beyond, *beside_the_tree(robot, "MJCF", found.robot, locked))
    content, warnings = edited_mjcf(
        found, robot, link_rows(robot, values), holding, beside, head_comment(robot, lost, note)
    )
    return content, holding.values, lost, warnings


def _check_bodies(robot: Robot, values: Mapping[str, float]) -> None:
    """MuJoCo refuses bodies that cannot exist; say which, before it does."""
    for joint, own in zip(robot.joints, link_rows(robot, values), strict=True):
        broken = violations(own, link_label(joint))
        if broken:
            raise ExportError(
                f"{broken[0]}; MuJoCo takes only bodies that can exist, export values of a physically consistent fit"
            )
