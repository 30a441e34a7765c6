"""`export_mjcf`: identified values as an MJCF file, the user's own kept where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dynident.dynamics.terms import TermsLike
from dynident.export.exported import Agreement, Exported, ExportError
from dynident.export.holding import beside_the_tree, link_rows, named_parts, standard_values, unlocked
from dynident.export.origin import check_export_target, edited_file, origin_files
from dynident.export.proof import agreement, states_within_limits, write_proved
from dynident.export.reload_check import mujoco_torque
from dynident.export.same_tree import check_same_tree
from dynident.export.urdf_file import head_comment, moved_files
from dynident.plant.mujoco_model import import_mujoco
from dynident.plant.mujoco_xml import ModelOptions, mujoco_xml
from dynident.plant.places import element_places
from dynident.robot.model import Robot
from dynident.robot.physicality import link_label, violations


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
    locked, robot = robot.locked, unlocked(robot)
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
        content, held, lost, warnings = _kept(kept, robot, standard, beyond, locked, note)
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


def _kept(
    file: Path, robot: Robot, values: Mapping[str, float], beyond: list[str], locked: Mapping[int, float], note: str
) -> tuple[bytes, Mapping[str, float], tuple[str, ...], list[str]]:
    """The user's file with new numbers, the values it holds, what it does not, and warnings."""
    from dynident.export.mjcf_text import edited_mjcf, held_in, read_mjcf_file

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
