"""What the verbs of the command line do; heavy imports wait until a verb needs them."""

from __future__ import annotations

import json
import math
import shlex
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dynident.errors import DynidentError, InputError

if TYPE_CHECKING:
    from dynident.estimate.estimate import Estimate
    from dynident.estimate.estimator import Estimator
    from dynident.logs import LogSource
    from dynident.robot import Robot
    from dynident.run.identify import Progress

_FACTORS = "factors"  # folder beside fit.yaml that keeps what finished logs said


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


def run_identify(options: Namespace) -> int:
    """`dynident identify`."""
    from dynident.estimate.recipes import parse_friction
    from dynident.files import write_text
    from dynident.report.identification import print_estimate
    from dynident.report.inspection import page_console
    from dynident.report.page import report_html
    from dynident.run.identify import identify

    out = Path(options.output)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; -o needs a folder for fit.yaml and report.html")
    if options.friction is not None:
        parse_friction(options.friction)  # a name that is not known is refused before any log is looked at
    robot = _robot(options)
    roles = [(options.logs, "train"), (options.validation, "validation")]
    logs = [log for paths, role in roles for log in _logs(paths, robot, options, role)]
    store = out / _FACTORS
    if options.fresh and store.is_dir():
        for file in store.glob("*.npz"):
            file.unlink()
    before = set(store.glob("*.npz"))
    try:
        with _progress(options.quiet or options.json) as progress:
            estimate = identify(robot, logs, store=store, progress=progress, **_identify_options(options, robot))
    except KeyboardInterrupt:
        kept = len(set(store.glob("*.npz")))
        raise KeyboardInterrupt(f"factors of finished logs kept in {store}: {kept}; the same command goes on") from None
    except DynidentError:
        _undo(store, before)
        raise
    estimate.save(out)
    write_text(out / "report.html", report_html(estimate, command=_command(options)))
    if options.json:
        print(json.dumps(_answer(estimate, out), allow_nan=False))
    elif not options.quiet:
        console = page_console()
        print_estimate(estimate, console)
        console.print(f"Model:  {out / 'fit.yaml'}\nReport: {out / 'report.html'}", soft_wrap=True)
    return 0


def _undo(store: Path, before: set[Path]) -> None:
    """Bad input leaves nothing behind: factors that this run has written, and folders that it has made."""
    for file in set(store.glob("*.npz")) - before:
        file.unlink()
    for folder in (store, store.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def run_validate(options: Namespace) -> int:
    """`dynident validate`."""
    from dynident.estimate.storage import load_estimate
    from dynident.report.identification import print_validation
    from dynident.report.inspection import page_console
    from dynident.validation import validate

    fit = load_estimate(options.fit)
    logs = _logs(options.logs, fit.robot, options, "validation")
    _positive(options.band, "--band")
    found = validate(fit, logs, band=options.band)
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
    else:
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


def run_oscillate(options: Namespace) -> int:
    """`dynident oscillate`."""
    from dynident.run.oscillate import run_oscillate

    return run_oscillate(options, _robot(options))


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


def _identify_options(options: Namespace, robot: Robot) -> dict[str, Any]:
    """The options that were given; defaults stay where they are defined."""
    _positive(options.band, "--band")
    _positive(options.essential, "--essential")
    names = ("terms", "friction", "essential", "band", "delay", "speed", "rest_speed", "differentiator", "check")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.estimator != "prior" and options.prior_std is not None:
        raise InputError("--prior-std belongs to --estimator prior")
    given["estimator"] = _prior(robot, options.prior_std) if options.estimator == "prior" else options.estimator
    return given


def _prior(robot: Robot, share: float | None) -> Estimator:
    from dynident.estimate.estimators import PriorLeastSquares

    _positive(share, "--prior-std")
    values = robot.value_set()
    if not any(values.values()):
        raise InputError(f"--estimator prior: robot {robot.name} has no values of its own to start from")
    return PriorLeastSquares(values=values, std=0.5 if share is None else share)


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


def _command(options: Namespace) -> str:
    """The command that makes the same result again."""
    words = ["dynident", "identify", options.robot, *options.logs, "-o", options.output]
    if options.validation:
        words += ["--validation", *options.validation]
    for name in (
        "columns",
        "window",
        "terms",
        "friction",
        "estimator",
        "prior_std",
        "essential",
        "band",
        "delay",
        "speed",
        "rest_speed",
        "check",
    ):
        value = getattr(options, name)
        if value is not None and (name, value) not in (("estimator", "weighted"), ("check", "stop")):
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("differentiator", "locked"):
        if getattr(options, name):
            words += [f"--{name}", getattr(options, name)]
    return shlex.join(words)


def _answer(estimate: Estimate, out: Path) -> dict[str, Any]:
    """The answer of `identify --json`."""
    from dynident.estimate.friction_summary import drift_notes, friction_summary

    return {
        "robot": estimate.robot.name,
        "rank": estimate.rank,
        "condition": estimate.condition if math.isfinite(estimate.condition) else None,
        "parameters": estimate.rows(),
        "undetermined": list(estimate.undetermined),
        "eliminated": [dict(one) for one in estimate.eliminated],
        "deviations": estimate.covariance_kind,
        "train": estimate.train.as_dict(),
        "nominal": None if estimate.nominal is None else estimate.nominal.as_dict(),
        "validation": {label: errors.as_dict() for label, errors in estimate.validation.items()},
        "cross_validation": estimate.cross_validation,
        "friction": None if estimate.friction is None else dict(estimate.friction),
        "friction_drift": list(drift_notes(estimate)),
        "equivalent_friction": None if estimate.friction_view is None else friction_summary(estimate).rows(),
        "signals": {"band": estimate.band, "delay": estimate.signals.delay, "speed": estimate.signals.speed},
        "notes": list(estimate.notes),
        "warnings": list(estimate.warnings),
        "files": {"fit": str(out / "fit.yaml"), "report": str(out / "report.html")},
    }
