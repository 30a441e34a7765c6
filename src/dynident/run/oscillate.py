"""`dynident oscillate`: natural oscillations of a machine, as the paper did them and better."""

from __future__ import annotations

import math
import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.errors import InputError, UnknownNameError
from dynident.run.experiment import bench, machine, tell, true_values

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.experiments.oscillation.oscillate import Oscillation
    from dynident.experiments.oscillation.paper import PaperTable
    from dynident.experiments.oscillation.stage import StageOptions
    from dynident.robot import Robot

RATE = 250.0  # [Hz] unless given
_STEP = 2e-3  # [s] of the physics: swings are slow, and what the step does to them acts as friction, which cancels
_OF_PAPER = ("updates", "factors", "combinations", "resolution")
_OF_SEARCH = ("search", "factor", "amplitude", "reach", "periods", "rounds")
_SIMULATED = ("plant", "values", "rate", "noise", "encoder", "breakaway", "effects", "payload", "seed")


def run_oscillate(options: Namespace, robot: Robot) -> int:
    """One of three: the sensitivity, the paper's tables, or the identification."""
    if options.sensitivity and options.paper:
        raise InputError("--sensitivity moves nothing and --paper counts periods; leave one of them out")
    if not options.paper:
        _refuse(options, _OF_PAPER, "belongs to --paper")
    if not options.sensitivity:
        _refuse(options, ("error",), "belongs to --sensitivity")
    if options.sensitivity:
        return _sensitivity(options, robot)
    return _paper(options, robot) if options.paper else _identify(options, robot)


def _refuse(options: Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(options, name) not in (None, "", []):
            raise InputError(f"--{name.replace('_', '-')} {why}; leave it out")


def _identify(options: Namespace, robot: Robot) -> int:
    from dynident.experiments.oscillation.oscillate import oscillate

    if options.stage == "inertia":
        _refuse(options, ("search", "pose"), "belongs to the gravity stage")
    if options.stage == "gravity":
        _refuse(options, ("kp", "set_point"), "belongs to the inertia stage")
    plant = machine(options, robot, rate=RATE, step=_STEP)
    how: dict[str, Any] = {"stage": options.stage, "nominal": options.nominal, "options": _stage_options(options)}
    if options.search is not None:
        how["search"] = options.search
    if options.kp is not None:
        how["kp"] = options.kp
    if options.pose:
        how["pose"] = _pose(options.pose, robot, "--pose")
    if options.set_point:
        how["set_points"] = [_pose(text, robot, "--set-point") for text in options.set_point]
    with bench(options, plant) as made:
        found = oscillate(made, **how)
    if options.plant is None:
        found = type(found)(found.model, found.stages, true_values(options, robot), True)
    return tell(options, found.as_dict(), lambda: _text(found), lambda: _page(options, found))


def _stage_options(options: Namespace) -> StageOptions:
    from dynident.experiments.oscillation.stage import StageOptions

    given = {name: getattr(options, name) for name in ("factor", "periods", "rounds")}
    given |= {name: _radians(getattr(options, name)) for name in ("amplitude", "reach")}
    return StageOptions(**{name: value for name, value in given.items() if value is not None})


def _radians(degrees: float | None) -> float | None:
    return None if degrees is None else math.radians(degrees)


def _pose(text: str, robot: Robot, option: str) -> Array:
    """A pose from `q2=1.2`, other joints at zero."""
    from dynident.run.shared import parse_positions

    given = parse_positions(text, option)
    for name in given:
        if name not in robot.position_names and name not in robot.joint_names:
            raise UnknownNameError(f"joint in {option}", name, (*robot.position_names, *robot.joint_names))
    pairs = zip(robot.position_names, robot.joint_names, strict=True)
    return np.array([given.get(variable, given.get(name, 0.0)) for variable, name in pairs])


def _text(found: Oscillation) -> str:
    lines = [f"{found.model.robot.name}: natural oscillations\n", found.table(), ""]
    for stage in found.stages:
        lines.append(f"{stage.name} stage ({stage.search}): {'; '.join(stage.notes)}")
    return "\n".join(lines)


def _page(options: Namespace, found: Oscillation) -> str:
    from dynident.report.oscillation import oscillation_html

    return oscillation_html(found, command=_command(options))


def _sensitivity(options: Namespace, robot: Robot) -> int:
    from dynident.experiments.oscillation.sensitivity import sensitivity

    _refuse(options, (*_OF_SEARCH, "set_point", *_SIMULATED), "has no meaning with --sensitivity")
    how: dict[str, Any] = {} if options.kp is None else {"kp": options.kp}
    if options.error is not None:
        how["error"] = math.radians(options.error)
    if options.pose:
        how["pose"] = _pose(options.pose, robot, "--pose")
    found = sensitivity(robot, options.nominal, **how)
    head = f"{robot.name}: torque error over torque for an error of {100 * found.change:g} % of one parameter"
    more = f"kp = {found.kp:g} 1/s², position error e [rad or m] of every joint"
    text = f"{head}\n{more}\n\n{found.table()}\n"
    told = "\nAn error of the inertia vanishes with e (eq. 30), one of the weight does not (eq. 28)."
    return tell(options, {"estimates": [], "warnings": [], **found.as_dict()}, lambda: text + told)


def _paper(options: Namespace, robot: Robot) -> int:
    from dynident.experiments.oscillation import printed
    from dynident.experiments.oscillation.paper import paper_table
    from dynident.experiments.oscillation.paper_model import paper_model

    _refuse(
        options, ("search", "factor", "reach", "periods", "rounds", "set_point", "pose"), "has no meaning with --paper"
    )
    rate = 1.0 / printed.SAMPLE_TIME
    plant = machine(options, robot, rate=rate, step=printed.SAMPLE_TIME / 8 if options.rate is None else None)
    how: dict[str, Any] = {"updates": options.updates, "factors": _numbers(options.factors, "--factors")}
    how["combinations"] = _numbers(options.combinations, "--combinations") or ()
    how |= {name: getattr(options, name) for name in ("kp", "resolution") if getattr(options, name) is not None}
    if options.amplitude is not None:
        how["start"] = math.radians(options.amplitude)
    model = paper_model(robot, options.nominal)
    stages = ("gravity", "inertia") if options.stage == "both" else (options.stage,)
    with bench(options, plant) as made:
        tables = [paper_table(made, model, stage, **how) for stage in stages]
    warnings = [warning for table in tables for warning in table.warnings]
    found = {"estimates": [], "warnings": warnings, "robot": robot.name, "tables": [one.as_dict() for one in tables]}
    return tell(
        options, found, lambda: "\n\n".join(map(_paper_text, tables)), lambda: _paper_page(options, robot, tables)
    )


def _numbers(text: str | None, option: str) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} {text}: expected numbers such as 1.02,1.01") from None


def _paper_text(table: PaperTable) -> str:
    lines = [table.title, "", table.table(), "", *table.facts]
    if table.candidates:
        lines += ["", "All combinations; a tracking error where counting cannot tell them from the aim:"]
        lines += [table.candidate_table(), "", *table.candidate_facts]
    if table.discrimination:
        lines += ["How well the check tells each parameter, and last the combination that it tells least:"]
        lines += [table.discrimination_table()]
    return "\n".join(lines)


def _paper_page(options: Namespace, robot: Robot, tables: list[PaperTable]) -> str:
    from dynident.report.oscillation import paper_html

    return paper_html(robot.name, tables, command=_command(options))


def _command(options: Namespace) -> str:
    """The command that does it again."""
    words = ["dynident", "oscillate", options.robot]
    for name, value in sorted(vars(options).items()):
        if name in ("robot", "verb", "json", "quiet", "fresh") or value in (None, "", False, []):
            continue
        if (name, value) == ("stage", "both"):
            continue
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            words += [option] if one is True else [option, str(one)]
    return shlex.join(words)
