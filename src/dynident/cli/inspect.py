"""`dynident inspect`: what a robot is and which of its parameters can be identified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import print_answer, robot_argument, warn
from dynident.errors import InputError
from dynident.options import TERMS_HELP, Answer, LockedJoints, option

if TYPE_CHECKING:
    from dynident.physical.distance import NearestPhysical
    from dynident.robot import Robot

_LINKS = "rigid"
_SHOWN_VALUES = 8  # values that moved most
_LEAST_SHARE = 0.01  # of the squared distance below which a condition is not named


@dataclass(frozen=True, kw_only=True)
class InspectArguments(LockedJoints, Answer):
    """`dynident inspect` on the command line."""

    robot: str | None = robot_argument(None)
    list: bool = option(False, "show the bundled robots")
    terms: str = option(_LINKS, TERMS_HELP, shown="rigid, and spring where the robot has some")
    values: str | None = option(None, "value set to show and check", metavar="SET", shown="the robot's own")
    nearest_physical: bool = option(
        False, "print the physically consistent robot nearest to the values instead, and its distance"
    )
    symbolic: str | None = option(
        None,
        "print the closed-form equations in base parameters instead: text, latex or python",
        choices=("text", "latex", "python"),
        const="text",
        metavar="FORM",
    )
    pose: str | None = option(
        None,
        "print where the tool is at this pose instead, other joints at zero",
        unit="rad or m",
        metavar="q1=0.5,..",
    )
    tool: str | None = option(
        None,
        "with --pose: tool frame, a frame of the robot's file or a place in the frame of the last link",
        metavar="FRAME|X,Y,Z[,R,P,Y]",
        shown="that of the robot",
    )
    tolerance: float | None = option(
        None,
        "share of a column that must be new to count",
        minimum=0.0,
        below=1.0,
        expected="a share between 0 and 1",
        shown="1e-8",
    )


def run_inspect(options: InspectArguments) -> int:
    """`dynident inspect`."""
    from dynident.cli.experiment import refuse_given
    from dynident.cli.inputs import robot_of
    from dynident.dynamics.terms import split_terms, with_springs
    from dynident.identifiability.base import TOLERANCE, base_parameters
    from dynident.report.terminal import page_console
    from dynident.report.terminal.inspection import bundled_table, inspect_base
    from dynident.robot import bundled_names, load_robot
    from dynident.robot.load import BUNDLED

    console = page_console()
    if options.list:
        names = bundled_names()
        about = {name: dict(zip(("maker", "source"), BUNDLED[name], strict=True)) for name in names}
        return print_answer(
            options,
            lambda: {"robots": list(names), "about": about},
            lambda: console.print(bundled_table(load_robot(name) for name in names)),
        )
    if options.robot is None:
        raise InputError("inspect needs a ROBOT: a file or a bundled name (dynident inspect --list)")
    if options.tool is not None and options.pose is None:
        raise InputError("--tool belongs to --pose q1=0.5,..; no parameter of the robot depends on it")
    if options.pose is not None:
        refuse_given(
            options, ("symbolic", "nearest_physical", "values", "terms", "tolerance"), "has no meaning with --pose"
        )
        return _run_pose(options, robot_of(options), options.pose)
    if options.nearest_physical:
        for name in ("symbolic", "tolerance"):
            if getattr(options, name) is not None:
                raise InputError(f"--nearest-physical has no meaning with --{name}; leave one of them out")
        return _run_nearest(options, robot_of(options))
    if options.symbolic is not None:
        return _run_symbolic(options, robot_of(options), options.symbolic)
    tolerance = TOLERANCE if options.tolerance is None else options.tolerance
    robot, terms = robot_of(options), split_terms(options.terms)
    if terms == [_LINKS]:
        terms = list(with_springs(terms, robot))
    found = inspect_base(base_parameters(robot, terms, tolerance=tolerance), options.values)
    return print_answer(options, found.as_dict, lambda: found.print(console))


def _run_symbolic(options: InspectArguments, robot: Robot, form: str) -> int:
    """The closed-form equations of a robot, in base parameters."""
    from dynident.symbolic import symbolic_base

    if options.tolerance is not None:
        raise InputError("--tolerance has no meaning with --symbolic, which is exact; leave one of them out")
    base = symbolic_base(robot, options.terms)
    source = base.print_as(form, options.values)  # type: ignore[arg-type]
    for warning in base.warnings:
        warn(warning)
    answer = {"robot": base.robot.name, "form": form, "base": list(base.names), "source": source}
    return print_answer(options, lambda: answer, lambda: print(source, end=""))


def _run_pose(options: InspectArguments, robot: Robot, pose: str) -> int:
    """Where the tool of a robot is at a pose, and how it moves there."""
    from dynident.cli.experiment import parse_pose
    from dynident.dynamics.kinematics import forward_kinematics
    from dynident.report.terminal import page_console
    from dynident.report.terminal.pose import pose_answer, print_pose

    found = forward_kinematics(robot, [parse_pose(pose, robot)], tool=options.tool)
    answer = pose_answer(found)
    status = print_answer(options, lambda: answer, lambda: print_pose(found, page_console()))
    for joint, position in zip(robot.moving_joints, found.q[0], strict=True):
        low, high = joint.limits.span
        if not low <= position <= high:
            where = f"at {position:.4g} {joint.unit}, limits {low:.4g} to {high:.4g}"
            warn(f"joint {joint.name} is outside its limits: {where}")
    return status


def _run_nearest(options: InspectArguments, robot: Robot) -> int:
    """The physically consistent robot nearest to a set of values, and its distance."""
    from dynident.physical.distance import nearest_physical

    near = nearest_physical(robot, options.values)
    name = robot.default_values if options.values is None else options.values
    return print_answer(
        options,
        lambda: {"robot": robot.name, "values": name, **_nearest_answer(near)},
        lambda: _print_nearest(near, robot.name, name),
    )


def _nearest_answer(near: NearestPhysical) -> dict[str, Any]:
    return {
        "feasible": near.feasible,
        "distance": near.distance,
        "metric": near.metric,
        "distances": dict(near.distances),
        "nearest": dict(near.values),
        "moved": dict(near.moved),
        "links": [vars(one) for one in near.links],
        "strains": dict(near.strains),
        "prior": near.prior,
    }


def _print_nearest(near: NearestPhysical, robot: str, name: str) -> None:
    from dynident.physical.result import link_table
    from dynident.report.text import print_prose

    if near.feasible:
        print_prose(
            f"Values '{name}' of {robot} are physically consistent; the nearest consistent values are the same.\n"
        )
    else:
        away = f"The nearest physically consistent values are {near.distance:.3g} away ({near.metric})."
        print_prose(f"Values '{name}' of {robot} belong to no robot. {away}\n")
        total = max(sum(max(strain, 0.0) for strain in near.strains.values()), 1e-300)
        causes = [(strain / total, place) for place, strain in near.strains.items() if strain > _LEAST_SHARE * total]
        print_prose("Caused by " + ", ".join(f"{place} {100.0 * share:.0f} %" for share, place in sorted(causes)[::-1]))
        moved = sorted(near.moved.items(), key=lambda pair: -abs(pair[1]))[:_SHOWN_VALUES]
        print_prose("Moved most: " + ", ".join(f"{key} {value:+.4g}" for key, value in moved) + "\n")
    print(link_table(near.links))
    print_prose(f"\nWhat the values leave open is settled by the {near.prior}.")
