"""`dynident gravity`, `friction` and `oscillate`: their options, and what each adds to an experiment."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, warn
from dynident.cli.experiment import (
    SIMULATED,
    ExperimentArguments,
    bench,
    machine,
    parse_levels,
    parse_pose,
    perform,
    read_logs,
    refuse_given,
    show_answer,
    show_result,
    split_names,
    true_values,
)
from dynident.errors import InputError
from dynident.experiments.options import FrictionOptions, GravityOptions, OscillationOptions
from dynident.options import LogReading, given_options, option, plain_options

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit
    from dynident.experiments.gravity.procedure import GravityExperiment
    from dynident.experiments.options import Order
    from dynident.papers.jamisola.tables import PaperTable
    from dynident.robot import Robot

_RATE = 250.0  # [Hz] of commands and readings
_ENCODER = 2.0**17  # counts per turn


@dataclass(frozen=True, kw_only=True)
class GravityArguments(GravityOptions, ExperimentArguments, LogReading):
    """`dynident gravity` on the command line."""

    logs: tuple[str, ...] = option(
        (),
        "logs of slow runs of one joint at a time, instead of a machine",
        flags=("--from",),
        many=True,
        metavar="LOG",
    )
    span_degrees: float | None = option(
        None,
        "half the range of a joint that turns; joints that slide go 0.2 m",
        unit="degrees",
        minimum=0.0,
        flags=("--span",),
        metavar="DEGREES",
        shown="60",
    )
    fit: str | None = option(
        None, "folder that identify wrote, whose mass moments are put beside (Table 5 of the paper)", metavar="FIT"
    )
    plan: bool = option(False, "print what would be swept and move nothing")


_SWEEPS = ("plant", "poses", "least_poses", "span_degrees", "sweep_velocity", "plan")


def run_gravity(options: GravityArguments) -> int:
    """`dynident gravity`."""
    from dynident.cli.inputs import parse_positions, robot_of
    from dynident.experiments.gravity.procedure import GravityExperiment

    fit = _fit(options.fit)  # a bad one is refused before anything moves
    robot, how = robot_of(options), plain_options(options, GravityOptions)
    how |= {"joints": split_names(options.joints), "order": _order(options), "span": _radians(options.span_degrees)}
    if options.logs and options.plan:
        raise InputError("--plan is about sweeps of a machine; leave it out with --from")
    if options.logs:
        refuse_given(options, (*SIMULATED, *_SWEEPS), "shapes a machine or its sweeps; leave it out with --from")
    elif not options.plan:
        refuse_given(options, ("columns", "topic", "window"), "belongs to logs: give them with --from LOG..")
    how["poses"] = [parse_positions(text, "--pose") for text in how["poses"]]
    experiment = GravityExperiment(robot, GravityOptions(**how))
    if options.plan:
        return _show_plan(options, experiment)
    if options.logs:
        found = experiment.analyze(experiment.read(read_logs(options, robot)))
    else:
        found = perform(options, experiment, machine(options, robot, rate=_RATE, encoder=_ENCODER))
        if options.plant is None and options.payload is None:
            found = found.beside(true_values(options, robot) or robot.default_values)
    return show_result("gravity", options, found if fit is None else found.compared_to(fit))


def _show_plan(options: GravityArguments, experiment: GravityExperiment) -> int:
    from dynident.experiments.bench import Bounds
    from dynident.experiments.gravity.plan import describe

    lines = [describe(experiment.robot, sweep) for sweep in experiment.plan(Bounds.of(experiment.robot))]
    if options.json:
        print(json.dumps({"sweeps": lines, "notes": experiment.notes, "warnings": []}))
    else:
        print("\n".join([f"{len(lines)} sweeps, from the tip inwards:", *lines, *experiment.notes]))
    return 0


def _order(options: GravityArguments) -> Order:
    given = str(options.order)
    if given != "auto" and not given.isdecimal():
        raise InputError(f"--order {given}: expected auto or 1 to 3")
    return "auto" if given == "auto" else int(given)


# ----------------------------------------------------------------------------------------------------------------------
# `dynident friction`: friction at constant velocities, on a machine or from logs.

_VELOCITY_RATE = 500.0  # [Hz] of the simulated machine


@dataclass(frozen=True, kw_only=True)
class FrictionArguments(FrictionOptions, ExperimentArguments, LogReading):
    """`dynident friction` on the command line."""

    logs: tuple[str, ...] = option(
        (), "logs in which joints move alone, instead of runs on a machine", flags=("--from",), many=True, metavar="LOG"
    )


_OF_LOGS = ("joints", "gravity", "fit", "friction")


def run_friction(options: FrictionArguments) -> int:
    """`dynident friction`."""
    from dynident.cli.inputs import logs_of, parse_positions, robot_of
    from dynident.experiments.friction.procedure import FrictionExperiment

    robot, how = robot_of(options), plain_options(options, FrictionOptions)
    how |= {"fit": _fit(options.fit), "joints": split_names(options.joints)}
    if options.fit is not None and options.gravity != "cancel":
        raise InputError("--fit gives gravity; leave --gravity out")
    if options.logs:
        names = [name for name in (*how, "plant", *SIMULATED) if name not in _OF_LOGS]
        refuse_given(options, names, "is for runs on a machine; leave it out with --from")
        logs = logs_of(options.logs, robot, options, "validation")
        experiment = FrictionExperiment(robot, FrictionOptions(**{name: how[name] for name in _OF_LOGS}))
        return show_result("friction", options, experiment.analyze(experiment.read(logs)))
    refuse_given(options, ("columns", "topic", "window"), "is for logs; give some with --from")
    how["at"] = parse_positions(how["at"] or "", "--at")
    if options.plant is not None:
        _check_pose(robot, how["joints"], how["at"])
    example = "numbers such as 0.1,0.5,1, or by joint q5=1:2:3,q6=0.8:2.4"
    how |= {"velocities": parse_levels(how["velocities"], "--velocities", example), "ranges": _ranges(how["ranges"])}
    plant = machine(options, robot, rate=_VELOCITY_RATE, encoder=_ENCODER)
    found = perform(options, FrictionExperiment(robot, FrictionOptions(**how)), plant)
    return show_result("friction", options, found if options.plant else found.beside(_truth(options, robot)))


def _fit(path: Any) -> Fit | None:
    from dynident.estimate.storage import load_fit

    return None if path is None else load_fit(path)


def _check_pose(robot: Robot, joints: list[str] | None, at: Mapping[str, float]) -> None:
    """On a machine of the user's own every joint that is held must be given where: nobody else knows what is around."""
    from dynident.experiments.friction.groups import joint_groups

    groups = joint_groups(robot, joints)
    alone = set(groups[0].places) if len(groups) == 1 else set()
    named = list(zip(robot.position_names, robot.joint_names, strict=True))
    missing = [v for i, (v, j) in enumerate(named) if i not in alone and v not in at and j not in at]
    if missing:
        raise InputError(
            f"--plant: say where {', '.join(missing)} are held with --at; poses for simulated machines know nothing of "
            "what stands around yours"
        )


def _truth(options: FrictionArguments, robot: Robot) -> Mapping[str, float]:
    """What the simulated machine has: at constant velocity friction that winds up counts as Coulomb's."""
    from dynident.cli.inputs import parse_effects
    from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
    from dynident.plant.effects import read_effects

    found = {**dict.fromkeys(robot.parameter_names, 0.0), **robot.value_set(true_values(options, robot))}
    dry = {element.label: element.names["Fc"] for element in robot.elements if "Fc" in element.names}
    for effect in read_effects(robot, parse_effects(options.effects)):
        winds_up = effect.law in FRICTION_LAWS and FRICTION_LAWS[effect.law].remembers
        name = dry.get(effect.label, effect.name) if winds_up else effect.name
        found[name] = found.get(name, 0.0) + effect.value
    return found


def _ranges(text: str | None) -> dict[str, tuple[float, float]] | None:
    """Ranges from ``q5=-1:1,q6=0:2``."""
    if text is None:
        return None
    found = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, ends = part.partition("=")
        try:
            low, high = (float(one) for one in ends.split(":"))
        except ValueError:
            raise InputError(f"--range {part}: expected joint=lower:upper, such as q5=-1:1") from None
        found[name.strip()] = (low, high)
    return found


# ----------------------------------------------------------------------------------------------------------------------
# `dynident oscillate`: natural oscillations of a machine, as the paper did them and better.

_STEP = 2e-3  # [s] of the physics: swings are slow, and what the step does to them acts as friction, which cancels


@dataclass(frozen=True, kw_only=True)
class OscillateArguments(OscillationOptions, ExperimentArguments):
    """`dynident oscillate` on the command line."""

    amplitude_degrees: float | None = option(
        None,
        "of the starts",
        unit="degrees",
        flags=("--amplitude",),
        metavar="DEG",
        shown="small, but many steps of the encoder",
    )
    reach_degrees: float | None = option(
        None, "beyond which it falls", unit="degrees", flags=("--reach",), metavar="DEG", shown="12"
    )
    paper: bool = option(
        False,
        "deprecated, see dynident papers jamisola: alternating starts of 15 deg, periods counted; gone in 0.6",
    )
    updates: int | None = option(
        None, "with --paper: update cycles of a run", metavar="N", shown="5000 for gravity, 20000 for inertia"
    )
    factors: str | None = option(None, "with --paper: factors of the rows", metavar="F,F..", shown="the paper's")
    combinations: str | None = option(
        None, "with --paper: factors that every parameter takes, in all combinations", metavar="F,F.."
    )
    resolution: float | None = option(None, "with --paper: periods that counting can resolve", metavar="N", shown="0.5")
    sensitivity: bool = option(
        False, "torque errors from errors of weight and inertia instead, eq. (28) and (30); nothing moves"
    )
    error: float | None = option(None, "with --sensitivity: position error", unit="degrees", metavar="DEG", shown="1")


_OF_PAPER = ("updates", "factors", "combinations", "resolution")
_OF_SEARCH = ("search", "factor", "amplitude_degrees", "reach_degrees", "periods", "rounds")


def run_oscillate(options: OscillateArguments) -> int:
    """One of three: the sensitivity, the paper's tables, or the identification."""
    from dynident.cli.inputs import robot_of

    robot = robot_of(options)
    if options.sensitivity and options.paper:
        raise InputError("--sensitivity moves nothing and --paper counts periods; leave one of them out")
    if not options.paper:
        refuse_given(options, _OF_PAPER, "belongs to --paper; leave it out")
    if not options.sensitivity:
        refuse_given(options, ("error",), "belongs to --sensitivity; leave it out")
    if options.sensitivity:
        return _sensitivity(options, robot)
    return _paper(options, robot) if options.paper else _identify(options, robot)


def _identify(options: OscillateArguments, robot: Robot) -> int:
    from dynident.experiments.oscillation.procedure import OscillationExperiment

    if options.stage == "inertia":
        refuse_given(options, ("search", "pose"), "belongs to the gravity stage; leave it out")
    if options.stage == "gravity":
        refuse_given(options, ("kp", "set_points"), "belongs to the inertia stage; leave it out")
    plant = machine(options, robot, rate=_RATE, step=_STEP)
    how = plain_options(options, OscillationOptions) | {"amplitude": _radians(options.amplitude_degrees)}
    if options.reach_degrees is not None:
        how["reach"] = math.radians(options.reach_degrees)
    if options.pose is not None:
        how["pose"] = parse_pose(how["pose"], robot)
    if options.set_points is not None:
        how["set_points"] = [parse_pose(text, robot, "--set-point") for text in how["set_points"]]
    found = perform(options, OscillationExperiment(robot, OscillationOptions(**how)), plant)
    return show_result("oscillate", options, found if options.plant else found.beside(true_values(options, robot)))


def _radians(degrees: float | None) -> float | None:
    return None if degrees is None else math.radians(degrees)


def _sensitivity(options: OscillateArguments, robot: Robot) -> int:
    import numpy as np

    from dynident.experiments.oscillation.torque_sensitivity import sensitivity

    names = (*_OF_SEARCH, "set_points", "plant", *SIMULATED)
    refuse_given(options, names, "has no meaning with --sensitivity; leave it out")
    how: dict[str, Any] = {"kp": options.kp}
    if options.error is not None:
        how["error"] = math.radians(options.error)
    if options.pose is not None:
        how["pose"] = np.array(parse_pose(str(options.pose), robot))
    found = sensitivity(robot, options.nominal, **how)
    head = f"{robot.name}: torque error over torque for an error of {100 * found.change:g} % of one parameter"
    more = f"kp = {found.kp:g} 1/s², position error e [rad or m] of every joint"
    text = f"{head}\n{more}\n\n{found.table()}\n"
    note = "\nAn error of the inertia vanishes with e (eq. 30), one of the weight does not (eq. 28)."
    return show_answer(options, {"estimates": [], "warnings": [], **found.as_dict()}, lambda: text + note)


def _paper(options: OscillateArguments, robot: Robot) -> int:
    from dynident.papers.jamisola import printed
    from dynident.papers.jamisola.model import paper_model
    from dynident.papers.jamisola.tables import paper_table

    names = ("search", "factor", "reach_degrees", "periods", "rounds", "set_points", "pose")
    refuse_given(options, names, "has no meaning with --paper; leave it out")
    warn("oscillate --paper will be gone in 0.6; dynident papers jamisola makes all tables of the paper")
    rate = 1.0 / printed.SAMPLE_TIME
    plant = machine(
        options, robot, rate=rate, step=printed.SAMPLE_TIME / printed.PHYSICS_STEPS if options.rate is None else None
    )
    how: dict[str, Any] = {"updates": options.updates, "factors": _numbers(options.factors, "--factors")}
    how["combinations"] = _numbers(options.combinations, "--combinations") or ()
    given = given_options(options)  # the paper has a gain of its own
    how |= {name: given[name] for name in ("kp", "resolution") if name in given}
    if options.amplitude_degrees is not None:
        how["start"] = math.radians(options.amplitude_degrees)
    model = paper_model(robot, options.nominal)
    stages = ("gravity", "inertia") if options.stage == "both" else (options.stage,)
    with bench(options, plant) as made:
        tables = [paper_table(made, model, stage, **how) for stage in stages]
    warnings = [warning for table in tables for warning in table.warnings]
    found = {"estimates": [], "warnings": warnings, "robot": robot.name, "tables": [one.as_dict() for one in tables]}
    return show_answer(
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
        lines += ["", "All combinations; a tracking error where counting cannot distinguish them from the aim:"]
        lines += [table.candidate_table(), "", *table.candidate_facts]
    if table.discrimination:
        lines += ["How well the check shows each parameter, and last the combination that it shows least:"]
        lines += [table.discrimination_table()]
    return "\n".join(lines)


def _paper_page(options: OscillateArguments, robot: Robot, tables: list[PaperTable]) -> str:
    from dynident.papers.jamisola.page import paper_html

    return paper_html(robot.name, tables, command=command("oscillate", options))
