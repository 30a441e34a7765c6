"""`export_urdf`: identified values as a URDF, the user's own kept where there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dynident._version import __version__
from dynident.dynamics.terms import TermsLike
from dynident.export.exported import Agreement, Exported, ExportError
from dynident.export.holding import beside_the_tree, link_rows, on_joints, standard_values, unlocked
from dynident.export.origin import check_export_target, edited_file, origin_files
from dynident.export.proof import agreement, states_within_limits, write_proved
from dynident.export.reload_check import own_torque
from dynident.export.same_tree import check_same_tree
from dynident.export.urdf_new import new_urdf, what_urdf_cannot_move
from dynident.export.urdf_text import edited_urdf, read_urdf_file
from dynident.export.xml_edit import comment
from dynident.robot.model import Robot
from dynident.robot.physicality import link_label, sentences, violations


def export_urdf(
    robot: Robot,
    values: Mapping[str, float],
    path: str | Path,
    *,
    source: str | Path | None = None,
    fresh: bool = False,
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
        source: The URDF to keep, where the robot does not tell.
        fresh: Make a new file even where there is one to keep.
        limits: Write the robot's limits as well, such as those of an overlay.
        terms: Terms of the fit, where it has more than rigid, Ia, Fv, Fc, Fo.
        note: For the top of the file, such as the prior that settled what the data does not determine.

    Raises:
        ExportError: When no URDF can give the robot's torque, or this one does not; nothing is written then.
        InputError: When the target cannot be written, or is a file the robot came from.
    """
    kept = edited_file(robot, "robot", source, fresh)
    target = check_export_target(path, (".urdf", ".xml"), (*origin_files(robot), *([kept] if kept else [])))
    locked, robot = robot.locked, unlocked(robot)
    reasons = what_urdf_cannot_move(robot)
    if reasons:
        raise ExportError(f"robot {robot.name} cannot be a URDF: {'; '.join(reasons)}. Export MJCF, YAML or C instead")
    standard, beyond = standard_values(robot, values, terms)
    holding, chi = on_joints(robot, standard, "URDF", rotors=False), link_rows(robot, standard)
    file = None if kept is None else read_urdf_file(kept.read_bytes(), str(kept))
    tree = beside_the_tree(robot, "URDF", None if file is None else file.robot, locked)
    lost = (*holding.lost, *beyond, *tree)
    head = head_comment(robot, lost, note)
    warnings = sentences(
        v for joint, own in zip(robot.joints, chi, strict=True) for v in violations(own, link_label(joint))
    )
    if file is None:
        content = new_urdf(robot, chi, holding, head).encode()
    else:
        check_same_tree(file.robot, robot, str(kept))
        content, more = edited_urdf(file, robot, chi, holding, limits=limits, head=head)
        warnings += [*more, *moved_files(file.content, kept, target)]
    states = states_within_limits(robot)

    def prove(trial: Path) -> Agreement:
        return agreement(robot, holding.values, standard, own_torque(trial, robot, states), states, "dynident")

    return Exported(target, "URDF", write_proved(target, content, prove), lost, tuple(warnings))


def head_comment(robot: Robot, lost: tuple[str, ...], note: str) -> str:
    """The comment on top of a file: where its numbers come from and what it does not hold."""
    lines = [f"dynident: {__version__}, identified values of {robot.name}, SI units."]
    lines += [" ".join(note.split())] if note.strip() else []
    lines += [f"Not in this file: {words}." for words in lost]
    return comment(lines)


def moved_files(content: bytes, source: Path | None, target: Path) -> list[str]:
    """A warning for meshes named relative to a folder that the new file is not in."""
    if source is None or source.resolve().parent == target.resolve().parent:
        return []
    names = re.findall(rb"""(?:filename|file)\s*=\s*["'](?![a-z]+:|/)([^"']+)["']""", content)
    return (
        [f"meshes such as {names[0].decode(errors='replace')} are named relative to {source.parent}"] if names else []
    )
