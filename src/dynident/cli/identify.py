"""`dynident identify`: from options to fit and report."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import command, output_argument, print_answer, robot_argument
from dynident.errors import DynidentError, InputError
from dynident.options import REQUIRED, Answer, LockedJoints, LogReading, Quiet, option, plain_options
from dynident.pipeline.options import IdentifyOptions

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit
    from dynident.robot import Robot

_FILES = ("fit.yaml", "fit.npz", "report.npz", "report.html")
_FACTORS = "factors"  # folder beside fit.yaml that keeps what finished logs said


@dataclass(frozen=True, kw_only=True)
class IdentifyArguments(IdentifyOptions, LogReading, LockedJoints, Quiet, Answer):
    """`dynident identify` on the command line."""

    robot: str = robot_argument()
    logs: tuple[str, ...] = option(
        REQUIRED, "training logs: CSV, Parquet, npz, .mat, bags, ..", positional=True, many=True, metavar="LOG"
    )
    output: str = output_argument(REQUIRED, "folder for fit.yaml and report.html", "OUT")
    validation: tuple[str, ...] = option((), "validation logs; not used for fitting", many=True, metavar="LOG")
    prior_std: float | None = option(
        None,
        "with --estimator prior: relative standard deviation of the robot's own values",
        minimum=0.0,
        metavar="SHARE",
        shown="0.5",
    )
    fresh: bool = option(False, "start fresh: do not continue the earlier run in OUT", recorded=False)
    table: bool = option(False, "print all parameters, friction terms and notes as well", recorded=False)


def run_identify(options: IdentifyArguments) -> int:
    """`dynident identify`."""
    files = [("robot", options.robot), *([("columns", options.columns)] if options.columns else [])]
    estimate = identify_into_folder(options, command("identify", options), files)
    out = Path(options.output)
    return print_answer(
        options, lambda: identify_answer(estimate, out), lambda: print_identification(estimate, out, options.table)
    )


def identify_into_folder(
    options: IdentifyArguments, made_with: str, files: Sequence[tuple[str, str]], warnings: Sequence[str] = ()
) -> Fit:
    """Identify, and write fit and report.

    Args:
        options: Of `dynident identify`.
        made_with: The command that makes the same result again.
        files: What each file besides the logs is, and its path.
        warnings: Those that the result is to carry.
    """
    from dynident.cli.inputs import logs_of, print_columns, progress_bar, robot_of
    from dynident.estimate.candidates import parse_friction
    from dynident.estimate.storage import fit_files
    from dynident.files import check_results, write_together
    from dynident.logs.columns import remember_columns
    from dynident.pipeline.factor_cache import FactorCache, written_factors
    from dynident.pipeline.provenance import made_by
    from dynident.report.fit import report_html
    from dynident.report.plot_data import identify_with_plots

    out = Path(options.output)
    check_results(out, _FILES)
    if options.friction is not None:
        parse_friction(options.friction)  # a name that is not known is refused before any log is looked at
    robot = remember_columns(robot_of(options), options.columns)
    roles = [(options.logs, "train"), (options.validation, "validation")]
    logs = [log for paths, role in roles for log in logs_of(paths, robot, options, role)]
    if not (options.quiet or options.json):
        print_columns(logs, robot)
    store = out / _FACTORS
    if options.fresh and store.is_dir():
        for file in written_factors(store):
            file.unlink()
    before, cache = set(store.glob("*.npz")), FactorCache(store)
    try:
        with progress_bar(options.quiet or options.json) as progress:
            how = plain_options(options, IdentifyOptions) | {"store": cache, "progress": progress}
            estimate, plots = identify_with_plots(robot, logs, **how | _prior(robot, options))
    except KeyboardInterrupt:
        kept = len(written_factors(store))
        raise KeyboardInterrupt(f"factors of finished logs kept in {store}: {kept}; the same command goes on") from None
    except DynidentError:
        _undo(store, before)
        raise
    cache.remove_stale()
    stages = [("stages", str(options.stages))] if options.stages else []
    reading = {"topic": list(options.topic)} if options.topic else {}
    estimate = made_by(estimate, made_with, [*files, *stages], warnings, reading)
    contents = fit_files(estimate, out)
    contents["report.npz"] = plots.packed(contents["fit.yaml"])
    contents["report.html"] = report_html(estimate, plots).encode()
    write_together(out, contents)
    return estimate


def print_identification(estimate: Fit, out: Path, table: bool = False) -> None:
    """The summary of an identification, all its tables before it where they are wanted, and where its files are."""
    from dynident.report.terminal import page_console
    from dynident.report.terminal.fit import print_estimate

    console = page_console()
    print_estimate(estimate, console, table=table, folder=shlex.quote(str(out)))
    more = "" if table else " (all parameters: there, or with --table)"
    console.print(f"Model:  {out / 'fit.yaml'}\nReport: {out / 'report.html'}{more}", soft_wrap=True)


def _undo(store: Path, before: set[Path]) -> None:
    """Bad input leaves nothing behind: factors that this run has written, and folders that it has made."""
    for file in set(store.glob("*.npz")) - before:
        file.unlink()
    for folder in (store, store.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _prior(robot: Robot, options: IdentifyArguments) -> dict[str, Any]:
    """The estimator that starts from the robot's own values, where it is asked for."""
    from dynident.estimate.estimators import PriorLeastSquares

    if options.estimator != "prior":
        if options.prior_std is not None:
            raise InputError("--prior-std belongs to --estimator prior")
        return {}
    values = robot.value_set()
    if not any(values.values()):
        raise InputError(f"--estimator prior: robot {robot.name} has no values of its own to start from")
    return {"estimator": PriorLeastSquares(values=values, std=0.5 if options.prior_std is None else options.prior_std)}


def _prediction(estimate: Fit) -> dict[str, Any]:
    """The model that predicts, whose torque errors stand under train, validation and cross_validation as well."""
    from dynident.estimate.equivalent_friction import friction_torques
    from dynident.validation.comparison import answer_differences

    chosen, unseen, crossed = estimate.selection, estimate.errors.unseen, estimate.cross_validation
    return {
        "same_as_parameters": estimate.one_answer,
        "terms": [term.key_on(estimate.robot) for term in estimate.predictive_base.terms],
        "weight": None if chosen is None else chosen.weight,
        "errors": {
            "train": estimate.train.relative,
            "cross_validation": None if crossed is None else crossed.mean,
            "validation": None if unseen is None else unseen.relative,
        },
        "friction_torque": [one.as_dict() for one in (friction_torques(estimate) if estimate.friction_view else ())],
        "differs_from_parameters": [one.as_dict() for one in answer_differences(estimate)],
    }


def identify_answer(estimate: Fit, out: Path) -> dict[str, Any]:
    """The answer of `identify --json`."""
    from dynident.estimate.equivalent_friction import drift_notes, friction_summary
    from dynident.report.fit.trust import assess_fit

    found = assess_fit(estimate)
    return {
        "robot": estimate.robot.name,
        "verdict": found.headline,
        **found.verdict.as_dict(),
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
        "prediction": _prediction(estimate),
        "friction": None if estimate.selection is None else estimate.selection.as_dict(),
        "friction_levels": None if estimate.friction_levels is None else estimate.friction_levels.as_dict(),
        "friction_drift": list(drift_notes(estimate)),
        "equivalent_friction": None if estimate.friction_view is None else friction_summary(estimate).rows(),
        "signals": {
            "band": estimate.band,
            "delay": estimate.signals.delay,
            "velocity_source": estimate.signals.velocity_source,
        },
        "bands": [{"log": record.label, **record.as_dict()["band_choice"]} for record in estimate.data],
        "notes": list(estimate.notes),
        "warnings": list(estimate.warnings),
        "files": {"fit": str(out / "fit.yaml"), "report": str(out / "report.html")},
    }
