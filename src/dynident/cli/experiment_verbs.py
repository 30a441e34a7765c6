"""`dynident gravity`: mass moments from slow motion of one joint at a time."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.cli.experiment import SIMULATED, bench, machine, tell, true_values
from dynident.cli.inputs import check_positive, logs_of, parse_positions, robot_of
from dynident.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.estimate.fit import Fit
    from dynident.experiments.friction import VelocityFriction
    from dynident.experiments.gravity.procedure import Order
    from dynident.experiments.gravity.result import GravityMoments
    from dynident.experiments.oscillation.procedure import Oscillation
    from dynident.experiments.oscillation.stage import StageOptions
    from dynident.papers.jamisola.tables import PaperTable
    from dynident.robot import Robot

_RATE = 250.0  # [Hz] of commands and readings
_ENCODER = 2.0**17  # counts per turn
_SWEEPS = ("plant", "pose", "poses", "span", "speed", "plan")


def run_gravity(options: Namespace, robot: Robot) -> int:
    """`dynident gravity`.

    Args:
        options: See `gravity_arguments`.
        robot: The robot.
    """
    from dynident.estimate.storage import load_fit

    fit = None if options.fit is None else load_fit(options.fit)  # a bad one is refused before anything moves
    if options.plan:
        return _plan(options, robot)
    found = _from_logs(options, robot) if options.logs else _from_machine(options, robot)
    if fit is not None:
        found = found.compared_to(fit)
    from dynident.report.experiments.gravity import gravity_html

    return tell(options, found.as_dict(), lambda: _text(found), lambda: gravity_html(found, _command(options)))


def _from_machine(options: Namespace, robot: Robot) -> GravityMoments:
    from dynident.experiments.gravity import gravity_moments

    for name in ("columns", "window"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} belongs to logs: give them with --from LOG..")
    how, order = _sweeps(options), _order(options)
    plant = machine(options, robot, rate=_RATE, encoder=_ENCODER)
    simulated = options.plant is None and options.payload is None
    true = (true_values(options, robot) or robot.default_values) if simulated else None
    with bench(options, plant) as made:
        return gravity_moments(made, order=order, true=true, **how)


def _from_logs(options: Namespace, robot: Robot) -> GravityMoments:
    from dynident.cli.inputs import parse_window
    from dynident.experiments.gravity import gravity_from_logs
    from dynident.logs import read_log

    for name in (*SIMULATED, *_SWEEPS):
        if getattr(options, name):
            raise InputError(f"--{name} shapes a machine or its sweeps; leave it out with --from")
    start, stop = parse_window(options.window)
    logs = [read_log(path, robot, columns=options.columns, start=start, stop=stop) for path in options.logs]
    return gravity_from_logs(robot, logs, order=_order(options), joints=_joints(options))


def _plan(options: Namespace, robot: Robot) -> int:
    from dynident.experiments.gravity.procedure import planned

    if options.logs:
        raise InputError("--plan is about sweeps of a machine; leave it out with --from")
    plan = planned(robot, **_sweeps(options))
    lines = plan.lines(robot)
    if options.json:
        print(json.dumps({"sweeps": lines, "notes": list(plan.notes), "warnings": []}))
    else:
        print("\n".join([f"{len(lines)} sweeps, from the tip inwards:", *lines, *plan.notes]))
    return 0


def _sweeps(options: Namespace) -> dict[str, Any]:
    """What shapes the sweeps."""
    from dynident.cli.inputs import check_positive, parse_positions

    check_positive(options.span, "--span")
    check_positive(options.speed, "--speed")
    return {
        "joints": _joints(options),
        "poses": [parse_positions(text, "--pose") for text in options.pose],
        "least_poses": 1 if options.poses is None else options.poses,
        "span": None if options.span is None else math.radians(options.span),
        "speed": options.speed,
    }


def _joints(options: Namespace) -> list[str] | None:
    return None if options.joints is None else [part.strip() for part in options.joints.split(",") if part.strip()]


def _order(options: Namespace) -> Order:
    if options.order != "auto" and not options.order.isdecimal():
        raise InputError(f"--order {options.order}: expected auto or 1 to 3")
    return "auto" if options.order == "auto" else int(options.order)


def _text(found: GravityMoments) -> str:
    """The page for people."""
    parts = [
        f"Gravity moments of {found.robot.name} from {len(found.runs)} slow runs, tip to base",
        "Torque = a0 + a1 sin q + b1 cos q [N·m], averaged over both ways:\n" + found.joint_table(),
        "Moments:\n" + found.table(),
    ]
    expressions = dict(zip(found.names, found.base.expressions, strict=True))
    told = [f"{one.name} = {expressions[one.name]}" for one in found.estimates if one.name != expressions[one.name]]
    if told:
        parts.append("\n".join(told))
    if found.comparison is not None:
        lines = ["Beside the fit (Table 5):", found.comparison.table()]
        lines += [one.reason for one in found.comparison.links if one.reason]
        lines += found.comparison.notes
        parts.append("\n".join(lines))
    notes = [*found.notes, *(f"left out: joint {name} {why}" for name, why in found.skipped.items())]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def _command(options: Namespace) -> str:
    """The command that does it again."""
    words = ["dynident", "gravity", options.robot]
    for name in (*SIMULATED, "plant", "output", "columns", "window", "joints", "poses", "span", "speed", "fit"):
        if getattr(options, name) is not None:
            words += [f"--{name}", f"{getattr(options, name)}"]
    words += [word for pose in options.pose for word in ("--pose", pose)]
    words += ["--locked", options.locked] if options.locked else []
    words += ["--order", options.order] if options.order != "1" else []
    return shlex.join([*words, *(["--from", *options.logs] if options.logs else [])])


# ----------------------------------------------------------------------------------------------------------------------
# `dynident friction`: friction at constant velocities, on a machine or from logs.

_VELOCITY_RATE = 500.0  # [Hz] of the simulated machine
_COUNTS = 131072.0  # per turn of its encoders
_TIMES = ("cruise", "ramp", "settle")
_ON_A_MACHINE = (
    *("speeds", "range", "at", "bandwidth", "plant", "values", "rate", "noise", "encoder", "breakaway", "effects"),
    *("payload", "seed", *_TIMES),
)


def run_velocity(options: Namespace) -> int:
    """`dynident friction`.

    Args:
        options: See `friction_arguments`.
    """
    robot, fit = robot_of(options), _fit(options)
    joints = None if options.joints is None else [name.strip() for name in options.joints.split(",") if name.strip()]
    how: dict[str, Any] = {"gravity": options.gravity, "fit": fit, "friction": options.friction}
    if fit is not None and options.gravity != "cancel":
        raise InputError("--fit tells gravity; leave --gravity out")
    found = (
        _velocity_from_logs(options, robot, joints, how) if options.logs else _on_machine(options, robot, joints, how)
    )
    return tell(options, found.as_dict(), lambda: _velocity_text(found), lambda: _page(found, options))


def _fit(options: Namespace) -> Fit | None:
    from dynident.estimate.storage import load_fit

    return None if options.fit is None else load_fit(options.fit)


def _velocity_from_logs(
    options: Namespace, robot: Robot, joints: list[str] | None, how: dict[str, Any]
) -> VelocityFriction:
    from dynident.experiments.friction import velocity_friction_from_logs

    for name in _ON_A_MACHINE:
        if getattr(options, name) not in (None, ""):
            raise InputError(f"--{name} is for runs on a machine; leave it out with --from")
    logs = logs_of(options.logs, robot, options, "validation")
    return velocity_friction_from_logs(robot, logs, joints, **how)


def _on_machine(options: Namespace, robot: Robot, joints: list[str] | None, how: dict[str, Any]) -> VelocityFriction:
    from dynident.experiments.friction import velocity_friction
    from dynident.experiments.friction.plan import Timing

    for name in ("columns", "window"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is for logs; give some with --from")
    at = parse_positions(options.at, "--at")
    if options.plant is not None:
        _check_pose(robot, joints, at)
    check_positive(options.bandwidth, "--bandwidth")
    times = {name: getattr(options, name) for name in _TIMES if getattr(options, name) is not None}
    how |= {"speeds": parse_speeds(options.speeds), "ranges": parse_ranges(options.range)}
    how |= {"at": at, "timing": Timing(**times)}
    how |= {} if options.bandwidth is None else {"bandwidth": options.bandwidth}
    with bench(options, machine(options, robot, rate=_VELOCITY_RATE, encoder=_COUNTS)) as made:
        found = velocity_friction(made, joints, **how)
    return dataclasses.replace(found, true=_truth(options, robot) if options.plant is None else {})


def _check_pose(robot: Robot, joints: list[str] | None, at: Mapping[str, float]) -> None:
    """On a machine of the user's own every joint that is held must be told where: nobody else knows what is around."""
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


def _truth(options: Namespace, robot: Robot) -> Mapping[str, float]:
    """What the simulated machine has: at constant velocity friction that winds up counts as Coulomb's."""
    from dynident.plant.effects import read_effects
    from dynident.plant.simulation import parse_effects

    found = {**dict.fromkeys(robot.parameter_names, 0.0), **robot.value_set(true_values(options, robot))}
    dry = {element.label: element.names["Fc"] for element in robot.elements if "Fc" in element.names}
    for effect in read_effects(robot, None if options.effects is None else parse_effects(options.effects)):
        name = dry.get(effect.label, effect.name) if effect.law == "stop" else effect.name
        found[name] = found.get(name, 0.0) + effect.value
    return found


def parse_speeds(text: str | None) -> list[float] | dict[str, list[float]] | None:
    """Speeds from ``0.1,0.5,1`` for every joint, or ``q5=1:2:3,q6=0.8:2.4``."""
    if text is None:
        return None
    example = "expected numbers such as 0.1,0.5,1, or by joint q5=1:2:3,q6=0.8:2.4"
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if parts and not any("=" in part for part in parts):
            return [float(part) for part in parts]
        found: dict[str, list[float]] = {}
        for part in parts:
            name, _, numbers = part.partition("=")
            found[name.strip()] = [float(one) for one in numbers.split(":")]
    except ValueError:
        raise InputError(f"--speeds {text}: {example}") from None
    if not found:
        raise InputError(f"--speeds {text}: {example}")
    return found


def parse_ranges(text: str | None) -> dict[str, tuple[float, float]] | None:
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


def _velocity_text(found: VelocityFriction) -> str:
    points = sum(len(fit.points) for fit in found.fits)
    lines = [f"Friction of {found.robot} from {points} points at constant velocity, gravity {found.gravity}", ""]
    lines += [found.table(), ""]
    for fit in found.fits:
        for k, name in enumerate(fit.group.outputs):
            chance = "" if fit.misfit.chance is None else f", chance of that {fit.misfit.chance:.2g}"
            lines.append(
                f"{name}: residual {fit.misfit.rms[k]:.3g}, scatter of a point {fit.misfit.scatter[k]:.3g}, friction "
                f"{fit.misfit.friction[k]:.3g} (RMS){chance}"
            )
    lines += [f"Note: {note}" for note in found.notes]
    return "\n".join(lines)


def _page(found: VelocityFriction, options: Namespace) -> str:
    from dynident.report.experiments.friction import velocity_html

    return velocity_html(found, command=_velocity_command(options))


def _velocity_command(options: Namespace) -> str:
    """The command that does it again."""
    words = ["dynident", "friction", options.robot]
    words += ["--from", *options.logs] if options.logs else []
    names = ("joints", "range", "fit", "friction", "columns", "window", "locked", *_ON_A_MACHINE)
    for name in dict.fromkeys(names):
        value = getattr(options, name)
        if value not in (None, ""):
            words.append(f"--{name}={value}")
    if options.gravity != "cancel":
        words.append(f"--gravity={options.gravity}")
    return shlex.join([*words, "-o", str(Path(options.output or "OUT"))])


# ----------------------------------------------------------------------------------------------------------------------
# `dynident oscillate`: natural oscillations of a machine, as the paper did them and better.

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
    from dynident.experiments.oscillation.procedure import oscillate

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
    return tell(options, found.as_dict(), lambda: _oscillate_text(found), lambda: _oscillate_page(options, found))


def _stage_options(options: Namespace) -> StageOptions:
    from dynident.experiments.oscillation.stage import StageOptions

    given = {name: getattr(options, name) for name in ("factor", "periods", "rounds")}
    given |= {name: _radians(getattr(options, name)) for name in ("amplitude", "reach")}
    return StageOptions(**{name: value for name, value in given.items() if value is not None})


def _radians(degrees: float | None) -> float | None:
    return None if degrees is None else math.radians(degrees)


def _pose(text: str, robot: Robot, option: str) -> Array:
    """A pose from `q2=1.2`, other joints at zero."""
    from dynident.cli.inputs import parse_positions

    given = parse_positions(text, option)
    for name in given:
        if name not in robot.position_names and name not in robot.joint_names:
            raise UnknownNameError(f"joint in {option}", name, (*robot.position_names, *robot.joint_names))
    pairs = zip(robot.position_names, robot.joint_names, strict=True)
    return np.array([given.get(variable, given.get(name, 0.0)) for variable, name in pairs])


def _oscillate_text(found: Oscillation) -> str:
    lines = [f"{found.model.robot.name}: natural oscillations\n", found.table(), ""]
    for stage in found.stages:
        lines.append(f"{stage.name} stage ({stage.search}): {'; '.join(stage.notes)}")
    return "\n".join(lines)


def _oscillate_page(options: Namespace, found: Oscillation) -> str:
    from dynident.report.experiments.oscillation import oscillation_html

    return oscillation_html(found, command=_oscillate_command(options))


def _sensitivity(options: Namespace, robot: Robot) -> int:
    from dynident.experiments.oscillation.torque_sensitivity import sensitivity

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
    from dynident.papers.jamisola import printed
    from dynident.papers.jamisola.model import paper_model
    from dynident.papers.jamisola.tables import paper_table

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
    from dynident.papers.jamisola.page import paper_html

    return paper_html(robot.name, tables, command=_oscillate_command(options))


def _oscillate_command(options: Namespace) -> str:
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
