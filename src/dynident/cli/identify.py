"""`dynident identify`: from options to fit and report."""

from __future__ import annotations

import json
import math
import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.errors import DynidentError, InputError

if TYPE_CHECKING:
    from dynident.estimate.estimator import Estimator
    from dynident.estimate.fit import Fit
    from dynident.robot import Robot

_FACTORS = "factors"  # folder beside fit.yaml that keeps what finished logs said


def run_identify(options: Namespace) -> int:
    """`dynident identify`."""
    files = [("robot", options.robot), *([("columns", options.columns)] if options.columns else [])]
    estimate = identified(options, _command(options), files)
    if options.json:
        print(json.dumps(identify_answer(estimate, Path(options.output)), allow_nan=False))
    elif not options.quiet:
        print_identified(estimate, Path(options.output))
    return 0


def identified(options: Namespace, command: str, files: Sequence[tuple[str, str]], told: Sequence[str] = ()) -> Fit:
    """Identify, and write fit and report.

    Args:
        options: Of `dynident identify`.
        command: The command that makes the same result again.
        files: What each file besides the logs is, and its path.
        told: Warnings that the result is to carry.
    """
    from dynident.cli.inputs import logs_of, progress_bar, robot_of
    from dynident.estimate.candidates import parse_friction
    from dynident.files import write_text
    from dynident.pipeline.factor_cache import FactorCache
    from dynident.pipeline.identification import identify_with_plots
    from dynident.pipeline.provenance import made_by
    from dynident.report.fit import report_html

    out = Path(options.output)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; -o needs a folder for fit.yaml and report.html")
    if options.friction is not None:
        parse_friction(options.friction)  # a name that is not known is refused before any log is looked at
    robot = robot_of(options)
    roles = [(options.logs, "train"), (options.validation, "validation")]
    logs = [log for paths, role in roles for log in logs_of(paths, robot, options, role)]
    store = out / _FACTORS
    if options.fresh and store.is_dir():
        for file in store.glob("*.npz"):
            file.unlink()
    before, cache = set(store.glob("*.npz")), FactorCache(store)
    try:
        with progress_bar(options.quiet or options.json) as progress:
            how = _identify_options(options, robot)
            estimate, plots = identify_with_plots(robot, logs, store=cache, progress=progress, **how)
    except KeyboardInterrupt:
        kept = len(set(store.glob("*.npz")))
        raise KeyboardInterrupt(f"factors of finished logs kept in {store}: {kept}; the same command goes on") from None
    except DynidentError:
        _undo(store, before)
        raise
    cache.remove_stale()
    estimate = made_by(estimate, command, files, told)
    estimate.save(out)
    plots.save(out)
    write_text(out / "report.html", report_html(estimate, plots))
    return estimate


def print_identified(estimate: Fit, out: Path) -> None:
    """The page of an identification, and where its files are."""
    from dynident.report.terminal.fit import print_estimate
    from dynident.report.terminal.inspection import page_console

    console = page_console()
    print_estimate(estimate, console)
    console.print(f"Model:  {out / 'fit.yaml'}\nReport: {out / 'report.html'}", soft_wrap=True)


def _undo(store: Path, before: set[Path]) -> None:
    """Bad input leaves nothing behind: factors that this run has written, and folders that it has made."""
    for file in set(store.glob("*.npz")) - before:
        file.unlink()
    for folder in (store, store.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _identify_options(options: Namespace, robot: Robot) -> dict[str, Any]:
    """The options that were given; defaults stay where they are defined."""
    from dynident.cli.inputs import check_positive

    check_positive(options.band, "--band")
    check_positive(options.essential, "--essential")
    names = ("terms", "friction", "essential", "band", "delay", "speed", "rest_speed", "differentiator", "check")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.estimator != "prior" and options.prior_std is not None:
        raise InputError("--prior-std belongs to --estimator prior")
    given["estimator"] = _prior(robot, options.prior_std) if options.estimator == "prior" else options.estimator
    return given


def _prior(robot: Robot, share: float | None) -> Estimator:
    from dynident.cli.inputs import check_positive
    from dynident.estimate.estimators import PriorLeastSquares

    check_positive(share, "--prior-std")
    values = robot.value_set()
    if not any(values.values()):
        raise InputError(f"--estimator prior: robot {robot.name} has no values of its own to start from")
    return PriorLeastSquares(values=values, std=0.5 if share is None else share)


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
            option = f"--{name.replace('_', '-')}"
            # A window may begin with a minus, which must not stand alone.
            words += [f"{option}={value}"] if str(value).startswith("-") else [option, str(value)]
    for name in ("differentiator", "locked"):
        if getattr(options, name):
            words += [f"--{name}", getattr(options, name)]
    return shlex.join(words)


def identify_answer(estimate: Fit, out: Path) -> dict[str, Any]:
    """The answer of `identify --json`."""
    from dynident.estimate.equivalent_friction import drift_notes, friction_summary

    return {
        "robot": estimate.robot.name,
        "useful": estimate.usefulness.useful,
        "useless_because": estimate.usefulness.reason or None,
        "rank": estimate.rank,
        "condition": estimate.condition if math.isfinite(estimate.condition) else None,
        "parameters": estimate.rows(),
        "undetermined": list(estimate.undetermined),
        "eliminated": [one.as_dict() for one in estimate.eliminated],
        "deviations": estimate.covariance_kind,
        "train": estimate.train.as_dict(),
        "nominal": None if estimate.nominal is None else estimate.nominal.as_dict(),
        "validation": {label: errors.as_dict() for label, errors in estimate.validation.items()},
        "cross_validation": None if estimate.cross_validation is None else estimate.cross_validation.as_dict(),
        "friction": None if estimate.selection is None else estimate.selection.as_dict(),
        "friction_drift": list(drift_notes(estimate)),
        "equivalent_friction": None if estimate.friction_view is None else friction_summary(estimate).rows(),
        "signals": {"band": estimate.band, "delay": estimate.signals.delay, "speed": estimate.signals.speed},
        "bands": [{"log": record.label, **record.as_dict()["band_choice"]} for record in estimate.data],
        "notes": list(estimate.notes),
        "warnings": list(estimate.warnings),
        "files": {"fit": str(out / "fit.yaml"), "report": str(out / "report.html")},
    }
