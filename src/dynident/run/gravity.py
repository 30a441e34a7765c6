"""`dynident gravity`: mass moments from slow motion of one joint at a time."""

from __future__ import annotations

import json
import math
import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from dynident.errors import InputError
from dynident.run.experiment import SIMULATED, bench, machine, tell, true_values

if TYPE_CHECKING:
    from dynident.experiments.gravity.procedure import Order
    from dynident.experiments.gravity.result import GravityMoments
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
    from dynident.report.gravity import gravity_html

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
    from dynident.experiments.gravity import gravity_from_logs
    from dynident.logs import read_log
    from dynident.run.shared import parse_window

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
    from dynident.run.shared import check_positive, parse_positions

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
