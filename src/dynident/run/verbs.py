"""What the verbs of the command line do; heavy imports wait until a verb needs them."""

from __future__ import annotations

import json
import math
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from dynident.errors import InputError
from dynident.run.demo import run_demo as run_demo
from dynident.run.identify_verb import run_identify as run_identify
from dynident.run.init import run_init as run_init
from dynident.run.run import run_run as run_run
from dynident.run.stored import run_compare as run_compare, run_report as run_report

if TYPE_CHECKING:
    from dynident.logs import LogSource
    from dynident.robot import Robot
    from dynident.run.identify import Progress


def run_inspect(options: Namespace) -> int:
    """`dynident inspect`."""
    from dynident.identifiability.base import TOLERANCE, base_parameters
    from dynident.report.inspection import bundled_table, inspection, page_console
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
        from dynident.run.nearest import run_nearest

        return run_nearest(options, _robot(options))
    if options.symbolic is not None:
        return _symbolic(options)
    found = inspection(base_parameters(_robot(options), options.terms, tolerance=tolerance), options.values)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        found.print(console)
    return 0


def _symbolic(options: Namespace) -> int:
    """The closed-form equations of a robot, in base parameters."""
    from dynident.identifiability import symbolic_base

    if options.tolerance is not None:
        raise InputError("--tolerance has no meaning with --symbolic, which is exact; leave one of them out")
    base = symbolic_base(_robot(options), options.terms)
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
    from dynident.estimate.storage import load_estimate
    from dynident.report.identification import print_validation
    from dynident.report.inspection import page_console
    from dynident.validation import validate

    fit = load_estimate(options.fit)
    logs = _logs(options.logs, fit.robot, options, "validation")
    _positive(options.band, "--band")
    with _progress(options.json) as progress:
        found = validate(fit, logs, band=options.band, progress=progress)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        print_validation(found, page_console())
    return 0


def run_predict(options: Namespace) -> int:
    """`dynident predict`."""
    from dynident.estimate.prediction import predicted_blocks
    from dynident.estimate.storage import load_estimate
    from dynident.files import write_whole

    fit = load_estimate(options.fit)
    (log,) = _logs([options.log], fit.robot, options, "validation", positions_only=True)
    observed = fit.observe(log, torque=False)
    head = ["t", *(f"tau{name.removeprefix('q')}" for name in fit.robot.position_names)]

    count = 0

    def write(file: IO[bytes]) -> None:
        nonlocal count
        file.write((",".join(head) + "\n").encode())
        for stamps, torque in predicted_blocks(fit.model, observed):
            pattern = ",%.9g" * len(torque) + "\n"
            rows = zip(stamps.tolist(), torque.T.tolist(), strict=True)
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
    from dynident.run.simulate import joint_unit, options_of, read_motion, simulate

    log_ending(options.output)  # not only when the run is over
    check_target(options.output)
    robot = _robot(options)
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
    from dynident.run.check import is_robot, run_check, run_preview

    start, stop = _window(options.window)
    how: dict[str, Any] = {"columns": options.columns, "start": start, "stop": stop}
    first, *others = options.words
    if not is_robot(first, others):
        for option in ("output", "band", "delay", "rest_speed", "locked"):
            if getattr(options, option):
                raise InputError(f"--{option.replace('_', '-')} needs a robot: dynident check ROBOT LOG..")
        return run_preview(options.words, how, as_json=options.json)
    if not others:
        raise InputError(f"{first}: check needs a LOG behind the robot")
    _positive(options.band, "--band")
    options.robot = first
    return run_check(_robot(options), first, options, how, _progress)


def run_payload(options: Namespace) -> int:
    """`dynident payload`."""
    from dynident.run.payload import run_payload

    return run_payload(options)


def run_export(options: Namespace) -> int:
    """`dynident export`."""
    from dynident.run.export import run_export

    return run_export(options)


def run_excite(options: Namespace) -> int:
    """`dynident excite`."""
    from dynident.run.excite import run

    return run(options, _robot(options))


def run_step(options: Namespace) -> int:
    """`dynident step`."""
    from dynident.run.step import run

    return run(options, _robot(options))


def run_gravity(options: Namespace) -> int:
    """`dynident gravity`."""
    from dynident.run.gravity import run_gravity

    return run_gravity(options, _robot(options))


def run_live(options: Namespace) -> int:
    """`dynident live`."""
    from dynident.run.live import run_live

    return run_live(options)


def run_friction(options: Namespace) -> int:
    """`dynident friction`."""
    from dynident.run.velocity import run_velocity

    return run_velocity(options)


def _robot(options: Namespace) -> Robot:
    from dynident.robot import load_robot

    robot = load_robot(options.robot)
    locked = _positions(options.locked)
    return robot.lock(**locked) if locked else robot


def _positions(text: str, option: str = "--locked") -> dict[str, float]:
    """Joint positions from `q4=0.5,q1=pi/2`."""
    from dynident.robot.expressions import ExpressionError, evaluate

    positions: dict[str, float] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{option} {part}: expected joint=position, such as q4=0.5")
        if name.strip() in positions:
            word = "locked" if option == "--locked" else "given"
            raise InputError(f"{option} {part}: {name.strip()} is {word} twice")
        try:
            positions[name.strip()] = evaluate(value.strip(), {})
        except ExpressionError as error:
            raise InputError(f"{option} {part}: {error}") from None
    return positions


def _logs(
    paths: Sequence[str], robot: Robot, options: Namespace, role: Any, *, positions_only: bool = False
) -> list[LogSource]:
    from dynident.logs import LogWarning, open_log

    start, stop = _window(options.window)
    how: dict[str, Any] = {"columns": options.columns, "start": start, "stop": stop, "role": role}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # every answer carries what the logs have to say
        return [open_log(path, robot, **how, positions_only=positions_only) for path in paths]


def _window(text: str | None) -> tuple[float | None, float | None]:
    """Start and stop from `2:8.5`, either of which may be left out."""
    if text is None:
        return None, None
    first, colon, last = text.partition(":")
    try:
        start, stop = (float(part) if part.strip() else None for part in (first, last))
    except ValueError:
        colon = ""
    if not colon or not all(x is None or math.isfinite(x) for x in (start, stop)):
        raise InputError(f"--window {text}: expected START:STOP in seconds, such as 2:8.5 or 2:")
    if start is not None and stop is not None and start >= stop:
        raise InputError(f"--window {text}: starts at {start:g} s and stops at {stop:g} s; expected START before STOP")
    return start, stop


def _positive(value: float | None, name: str) -> None:
    if value is not None and not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value}; expected a positive number")


@contextmanager
def _progress(silent: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr, on a terminal only."""
    if silent or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield show
