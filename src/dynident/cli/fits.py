"""Verbs that read a stored fit: validate, predict, payload, report, compare."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dynident.cli.arguments import command, fit_argument, output_argument, print_answer
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, LogReading, Quiet, option, plain_options
from dynident.payload.options import PayloadOptions
from dynident.validation.options import ValidateOptions

if TYPE_CHECKING:
    from dynident.estimate.fit import Fit


@dataclass(frozen=True, kw_only=True)
class ValidateArguments(ValidateOptions, LogReading, Answer):
    """`dynident validate` on the command line."""

    fit: str = fit_argument()
    logs: tuple[str, ...] = option(
        REQUIRED, "logs that were not used for the fit", positional=True, many=True, metavar="LOG"
    )


def run_validate(options: ValidateArguments) -> int:
    """`dynident validate`."""
    from dynident.cli.inputs import logs_of, progress_bar, with_topics_of
    from dynident.estimate.storage import load_fit
    from dynident.report.terminal import page_console
    from dynident.report.terminal.fit import print_validation
    from dynident.validation import validate

    fit = load_fit(options.fit)
    options = with_topics_of(options, fit)
    logs = logs_of(options.logs, fit.robot, options, "validation")
    with progress_bar(options.json) as progress:
        found = validate(fit, logs, band=options.band, progress=progress)
    return print_answer(options, found.as_dict, lambda: print_validation(found, page_console()))


@dataclass(frozen=True, kw_only=True)
class PredictArguments(LogReading, Quiet, Answer):
    """`dynident predict` on the command line."""

    fit: str = fit_argument()
    log: str = option(REQUIRED, "log with time and position; torque is not looked at", positional=True, metavar="LOG")
    output: str = output_argument(
        REQUIRED, "file for t,tau1.. at the log's own stamps; packed where it ends in .gz", "F.csv"
    )


def run_predict(options: PredictArguments) -> int:
    """`dynident predict`."""
    from dynident.cli.inputs import logs_of, with_topics_of
    from dynident.estimate.prediction import predicted_blocks
    from dynident.estimate.storage import load_fit
    from dynident.files import write_whole

    fit = load_fit(options.fit)
    options = with_topics_of(options, fit)
    (log,) = logs_of([options.log], fit.robot, options, "validation", positions_only=True)
    observed = fit.observe(log, torque=False)
    head = ["t", *(f"tau{name.removeprefix('q')}" for name in fit.robot.position_names)]

    count = 0

    def write(whole: IO[bytes]) -> None:
        if options.output.lower().endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=whole, mode="wb", mtime=0) as packed:
                write_rows(packed)
        else:
            write_rows(whole)

    def write_rows(file: IO[bytes] | gzip.GzipFile) -> None:
        nonlocal count
        file.write((",".join(head) + "\n").encode())
        for stamps, torque in predicted_blocks(fit.model, observed):
            pattern = ",%.9g" * torque.shape[1] + "\n"
            rows = zip(stamps.tolist(), torque.tolist(), strict=True)
            file.write("".join(repr(t) + pattern % tuple(tau) for t, tau in rows).encode())
            count += len(stamps)

    write_whole(options.output, write)
    doubts = [*log.warnings, *fit.missing_temperatures(observed)]
    lost = fit.predictive.undetermined
    if lost:
        doubts.append(
            f"the training data left {len(lost)} parameters undetermined; motion unlike it is not predicted reliably"
        )
    lines = [f"{options.output}: torque at {count} samples", *(f"Warning: {doubt}" for doubt in doubts)]
    found = {"file": options.output, "samples": count, "warnings": doubts}
    return print_answer(options, lambda: found, lambda: print("\n".join(lines)))


@dataclass(frozen=True, kw_only=True)
class PayloadArguments(PayloadOptions, LogReading, Quiet, Answer):
    """`dynident payload` on the command line."""

    fit: str = fit_argument()
    logs: tuple[str, ...] = option(REQUIRED, "logs with the payload", positional=True, many=True, metavar="LOG")
    known: str | None = option(
        None,
        "compare with a known payload, in the tool frame; of all ten numbers also what they must change in the base "
        "parameters (a fit with the payload may stand in place of LOG)",
        unit="kg, m, kg·m²",
        metavar="MASS[,CX,CY,CZ[,..]]",
    )
    output: str | None = output_argument(None, "folder for result.json and report.html", "OUT")


def run_payload(options: PayloadArguments) -> int:
    """`dynident payload`; columns and window hold for all logs."""
    from dynident.cli.experiment import show_answer
    from dynident.cli.inputs import logs_of, with_topics_of
    from dynident.estimate.storage import load_fit
    from dynident.payload.body import known_numbers
    from dynident.payload.identification import identify_payload
    from dynident.pipeline.known_payload import check_known_payload
    from dynident.report.payload import known_html, known_text, payload_html, payload_text

    again = command("payload", options)
    fit = load_fit(options.fit)
    if options.known is not None:
        known_numbers(options.known)
    other = _loaded_fit(options)
    if other is not None:
        own = fit if options.tool is None else fit.with_tool(options.tool)
        check = check_known_payload(own, other, options.known or "")
        answer = {"frame": own.robot.tool_words, "estimates": [], "known": check.as_dict(), "warnings": []}
        return show_answer(options, answer, lambda: known_text(check), lambda: known_html(check, own, again))
    options = with_topics_of(options, fit)
    loaded = logs_of(options.logs, fit.robot, options, "validation")
    unloaded = logs_of(options.unloaded, fit.robot, options, "validation")  # type: ignore[arg-type]  # paths of logs
    found = identify_payload(fit, loaded, **plain_options(options, PayloadOptions) | {"unloaded": unloaded})
    if options.known is None:
        return show_answer(
            options,
            found.as_dict(),
            lambda: payload_text(found, fit.robot.name),
            lambda: payload_html(found, fit, again),
        )
    own = fit if options.tool is None else fit.with_tool(options.tool)
    loaded = logs_of(options.logs, fit.robot, options, "train")
    check = check_known_payload(own, loaded, options.known, found)
    return show_answer(
        options,
        {**found.as_dict(), "known": check.as_dict()},
        lambda: f"{payload_text(found, fit.robot.name)}\n\n{known_text(check)}",
        lambda: payload_html(found, fit, again, check),
    )


def _loaded_fit(options: PayloadArguments) -> Fit | None:
    """The fit with the payload that stands in place of its logs."""
    from dynident.cli.experiment import refuse_given
    from dynident.estimate.storage import load_fit

    (first, *others), kind = options.logs, ".yaml"
    if not (Path(first).suffix == kind or (Path(first) / "fit.yaml").is_file()):
        return None
    if others or options.known is None:
        need = "one fit alone" if others else "--known, all ten numbers of the payload"
        raise InputError(f"{first}: a fit in place of LOG needs {need}")
    refuse_given(
        options, ("unloaded", "session", "band", "columns", "topic", "window"), "belongs to logs; a fit has its own"
    )
    return load_fit(first)


@dataclass(frozen=True, kw_only=True)
class ReportArguments(Quiet, Answer):
    """`dynident report` on the command line."""

    fit: str = fit_argument()
    output: str | None = output_argument(None, "page to write", "F.html", shown="report.html beside the fit")


def run_report(options: ReportArguments) -> int:
    """`dynident report`."""
    from dynident.estimate.storage import fit_path, load_fit
    from dynident.files import check_target, write_text
    from dynident.report.fit import report_html
    from dynident.report.fit.trust import assess_fit
    from dynident.report.plot_data import load_report_data

    target = _page(options.output) if options.output else fit_path(options.fit).parent / "report.html"
    fit = load_fit(options.fit)
    check_target(target)
    data = load_report_data(options.fit)
    page, found = report_html(fit, data), assess_fit(fit)
    write_text(target, page)
    answer = {
        "fit": str(fit_path(options.fit)),
        "robot": fit.robot.name,
        "report": str(target),
        "verdict": found.headline,
        **found.verdict.as_dict(),
        "command": fit.command,
        "bytes": len(page.encode()),
    }
    lines = [f"{fit.robot.name}: {answer['verdict']}", f"Report: {target}"]
    if data is None:
        lines.append("No report.npz of this fit is beside it: the report shows no torque over time.")
    if not fit.command:
        lines.append("The fit does not say which command made it, so the report does not either.")
    return print_answer(options, lambda: answer, lambda: print("\n".join(lines)))


@dataclass(frozen=True, kw_only=True)
class CompareArguments(LogReading, Quiet, Answer):
    """`dynident compare` on the command line."""

    fits: tuple[str, ...] = option(
        REQUIRED,
        "two or more: fit.yaml, or the folder that identify wrote; the others are compared with the first",
        positional=True,
        many=True,
        metavar="FIT",
    )
    output: str | None = output_argument(None, "page to write beside the tables", "F.html")
    validation: tuple[str, ...] = option(
        (), "validation logs for all runs", many=True, metavar="LOG", shown="those that every run held out"
    )
    all: bool = option(False, "show parameters that agree as well", recorded=False)


def run_compare(options: CompareArguments) -> int:
    """`dynident compare`."""
    from dynident.cli.inputs import logs_of, with_topics_of
    from dynident.estimate.storage import load_fit
    from dynident.files import check_target, write_text
    from dynident.report.comparison import comparison_html
    from dynident.report.terminal import page_console
    from dynident.report.terminal.comparison import print_comparison
    from dynident.validation.comparison import compare_fits

    if len(options.fits) < 2:
        raise InputError(f"{options.fits[0]}: compare needs another FIT beside it")
    if options.quiet and options.output is None and not options.json:
        raise InputError("--quiet leaves nothing to do; add -o F.html or --json, or leave it out")
    if options.output is not None:
        check_target(_page(options.output))
    if not options.validation and (options.columns or options.topic or options.window):
        raise InputError("--columns, --topic and --window belong to --validation LOG..")
    fits = [load_fit(path) for path in options.fits]
    logs = logs_of(options.validation, fits[0].robot, with_topics_of(options, fits[0]), "validation")
    found = compare_fits(fits, logs=logs)
    if options.output is not None:
        write_text(options.output, comparison_html(found, command("compare", options)))
    sources = {"sources": list(options.fits), "page": options.output}

    def show() -> None:
        console = page_console()
        print_comparison(found, console, options.fits, every=options.all)
        if options.output is not None:
            console.print(f"Page: {options.output}", soft_wrap=True)

    return print_answer(options, lambda: {**sources, **found.as_dict()}, show)


def _page(path: str) -> Path:
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: -o writes a page; give it a name that ends in .html")
    return Path(path)
