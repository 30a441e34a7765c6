"""What the verbs of the command line do; heavy imports wait until a verb needs them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import IO, Any

from dynident.cli.fits import run_compare as run_compare, run_report as run_report
from dynident.cli.init import run_init as run_init
from dynident.cli.inputs import check_positive, logs_of, parse_window, progress_bar, robot_of
from dynident.cli.old_arguments import (
    check_arguments as check_arguments,
    compare_arguments as compare_arguments,
    demo_arguments as demo_arguments,
    excite_arguments as excite_arguments,
    export_arguments as export_arguments,
    friction_arguments as friction_arguments,
    gravity_arguments as gravity_arguments,
    init_arguments as init_arguments,
    inspect_arguments as inspect_arguments,
    live_arguments as live_arguments,
    oscillate_arguments as oscillate_arguments,
    payload_arguments as payload_arguments,
    predict_arguments as predict_arguments,
    report_arguments as report_arguments,
    run_arguments as run_arguments,
    simulate_arguments as simulate_arguments,
    step_arguments as step_arguments,
    validate_arguments as validate_arguments,
)
from dynident.cli.run import run_demo as run_demo, run_run as run_run
from dynident.errors import InputError


def run_inspect(options: Namespace) -> int:
    """`dynident inspect`."""
    from dynident.identifiability.base import TOLERANCE, base_parameters
    from dynident.report.terminal import page_console
    from dynident.report.terminal.inspection import bundled_table, inspect_base
    from dynident.robot import bundled_names, load_robot

    console = page_console()
    if options.list:
        if options.json:
            print(json.dumps({"robots": list(bundled_names())}))
        else:
            console.print(bundled_table(load_robot(name) for name in bundled_names()))
        return 0
    if options.robot is None:
        raise InputError("inspect needs a ROBOT: a file or a bundled name (dynident inspect --list)")
    tolerance = TOLERANCE if options.tolerance is None else options.tolerance
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"--tolerance is {tolerance}; expected a share between 0 and 1")
    if options.nearest:
        for name in ("symbolic", "tolerance"):
            if getattr(options, name) is not None:
                raise InputError(f"--nearest has no meaning with --{name}; leave one of them out")
        from dynident.cli.inspect import run_nearest

        return run_nearest(options, robot_of(options))
    if options.symbolic is not None:
        return _symbolic(options)
    found = inspect_base(base_parameters(robot_of(options), options.terms, tolerance=tolerance), options.values)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        found.print(console)
    return 0


def _symbolic(options: Namespace) -> int:
    """The closed-form equations of a robot, in base parameters."""
    from dynident.symbolic import symbolic_base

    if options.tolerance is not None:
        raise InputError("--tolerance has no meaning with --symbolic, which is exact; leave one of them out")
    base = symbolic_base(robot_of(options), options.terms)
    source = base.print_as(options.symbolic, options.values)
    for warning in base.warnings:
        print(f"dynident: {warning}", file=sys.stderr)
    if options.json:
        found = {"robot": base.robot.name, "form": options.symbolic, "base": list(base.names), "source": source}
        print(json.dumps(found))
    else:
        print(source, end="")
    return 0


def run_validate(options: Namespace) -> int:
    """`dynident validate`."""
    from dynident.estimate.storage import load_fit
    from dynident.report.terminal import page_console
    from dynident.report.terminal.fit import print_validation
    from dynident.validation import validate

    fit = load_fit(options.fit)
    logs = logs_of(options.logs, fit.robot, options, "validation")
    check_positive(options.band, "--band")
    with progress_bar(options.json) as progress:
        found = validate(fit, logs, band=options.band, progress=progress)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        print_validation(found, page_console())
    return 0


def run_predict(options: Namespace) -> int:
    """`dynident predict`."""
    from dynident.estimate.prediction import predicted_blocks
    from dynident.estimate.storage import load_fit
    from dynident.files import write_whole

    fit = load_fit(options.fit)
    (log,) = logs_of([options.log], fit.robot, options, "validation", positions_only=True)
    observed = fit.observe(log, torque=False)
    head = ["t", *(f"tau{name.removeprefix('q')}" for name in fit.robot.position_names)]

    count = 0

    def write(file: IO[bytes]) -> None:
        nonlocal count
        file.write((",".join(head) + "\n").encode())
        for stamps, torque in predicted_blocks(fit.model, observed):
            pattern = ",%.9g" * torque.shape[1] + "\n"
            rows = zip(stamps.tolist(), torque.tolist(), strict=True)
            file.write("".join(repr(t) + pattern % tuple(tau) for t, tau in rows).encode())
            count += len(stamps)

    write_whole(options.output, write)
    doubts = list(log.warnings)
    if fit.undetermined:
        doubts.append(
            f"the training data left {len(fit.undetermined)} parameters undetermined; motion unlike it is not "
            "predicted reliably"
        )
    if options.json:
        print(json.dumps({"file": options.output, "samples": count, "warnings": doubts}))
    elif not options.quiet:
        print("\n".join([f"{options.output}: torque at {count} stamps", *(f"Warning: {doubt}" for doubt in doubts)]))
    return 0


def run_simulate(options: Namespace) -> int:
    """`dynident simulate`."""
    from dynident.files import check_target
    from dynident.logs.write import log_ending, write_log
    from dynident.plant.simulation import joint_unit, options_of, read_motion, simulate

    log_ending(options.output)  # not only when the run is over
    check_target(options.output)
    robot = robot_of(options)
    given = options_of(options)
    run = simulate(robot, read_motion(options.motion, robot), **given)
    write_log(run.log, options.output)
    if options.json:
        print(json.dumps({"robot": robot.name, "log": str(options.output), **run.as_dict()}, allow_nan=False))
        return 0
    if options.quiet:
        return 0
    worst, place = max((far, place) for place, far in enumerate(run.tracking.tolist()))
    print(f"{options.output}: {len(run.log)} samples at {run.log.rate:.6g} Hz, {run.log.duration:.6g} s")
    where = f"{worst:.3g} {joint_unit(robot, place)} (joint {robot.joint_names[place]})"
    print(f"largest distance from the motion: {where}")
    if len(robot.joints) > len(robot.active):
        print(f"largest gap of the loops: {run.loop_gap:.3g} rad or m")
    for warning in run.warnings:
        print(f"dynident: {warning}", file=sys.stderr)
    return 0


def run_check(options: Namespace) -> int:
    """`dynident check`."""
    from dynident.cli.check import is_robot, run_check, run_preview

    start, stop = parse_window(options.window)
    how: dict[str, Any] = {"columns": options.columns, "start": start, "stop": stop}
    first, *others = options.words
    if not is_robot(first, others):
        for option in ("output", "band", "delay", "rest_speed", "locked"):
            if getattr(options, option):
                raise InputError(f"--{option.replace('_', '-')} needs a robot: dynident check ROBOT LOG..")
        return run_preview(options.words, how, as_json=options.json)
    if not others:
        raise InputError(f"{first}: check needs a LOG behind the robot")
    check_positive(options.band, "--band")
    options.robot = first
    return run_check(robot_of(options), first, options, how, progress_bar)


def run_payload(options: Namespace) -> int:
    """`dynident payload`."""
    from dynident.cli.fits import run_payload

    return run_payload(options)


def run_export(options: Namespace) -> int:
    """`dynident export`."""
    from dynident.cli.export import run_export

    return run_export(options)


def run_excite(options: Namespace) -> int:
    """`dynident excite`."""
    from dynident.cli.excite import run

    return run(options, robot_of(options))


def run_step(options: Namespace) -> int:
    """`dynident step`."""
    from dynident.cli.step import run

    return run(options, robot_of(options))


def run_gravity(options: Namespace) -> int:
    """`dynident gravity`."""
    from dynident.cli.experiment_verbs import run_gravity

    return run_gravity(options, robot_of(options))


def run_live(options: Namespace) -> int:
    """`dynident live`."""
    from dynident.cli.live import run_live

    return run_live(options)


def run_friction(options: Namespace) -> int:
    """`dynident friction`."""
    from dynident.cli.experiment_verbs import run_velocity

    return run_velocity(options)


def run_oscillate(options: Namespace) -> int:
    """`dynident oscillate`."""
    from dynident.cli.experiment_verbs import run_oscillate

    return run_oscillate(options, robot_of(options))
