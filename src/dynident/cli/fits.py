"""`dynident payload`: what the tool carries, from loaded runs of an identified robot."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from dynident.errors import InputError

if TYPE_CHECKING:
    from dynident.payload.identification import PayloadEstimate


def run_payload(options: Namespace) -> int:
    """`dynident payload`.

    Args:
        options: fit; logs (loaded); unloaded (a list, may be empty); session; band; columns and window, which hold for
            all logs; json.
    """
    from dynident.cli.inputs import check_positive, logs_of
    from dynident.estimate.storage import load_fit
    from dynident.payload.identification import identify_payload

    check_positive(options.band, "--band")
    fit = load_fit(options.fit)
    loaded = logs_of(options.logs, fit.robot, options, "validation")
    unloaded = logs_of(options.unloaded, fit.robot, options, "validation")
    found = identify_payload(fit, loaded, unloaded=unloaded, session=options.session, band=options.band)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        _print(found, fit.robot.name)
    return 0


def _print(found: PayloadEstimate, robot: str) -> None:
    """The page an engineer reads."""
    from dynident.report.text import print_prose

    how = {
        "loaded": f"from loaded runs of {robot} as identified",
        "joint": f"from loaded and unloaded runs of {robot} together",
    }
    print(f"Payload {how[found.method]}\n")
    print(found.table())
    print_prose("\nIn the tool frame; inertia about the centre of mass, entries of the matrix with their sign.")
    for note in found.notes:
        print_prose(f"Note: {note}")
    for warning in found.warnings:
        print(f"dynident: {warning}", file=sys.stderr)


# ----------------------------------------------------------------------------------------------------------------------
# `dynident report` and `dynident compare`: pages from stored fits.


def run_report(options: Namespace) -> int:
    """`dynident report`."""
    from dynident.estimate.report_data import load_report_data
    from dynident.estimate.storage import fit_path, load_fit
    from dynident.files import check_target, write_text
    from dynident.report.fit import report_html
    from dynident.report.fit.trust import assess_fit

    target = _page(options.output) if options.output else fit_path(options.fit).parent / "report.html"
    fit = load_fit(options.fit)
    check_target(target)
    data = load_report_data(options.fit)
    page = report_html(fit, data)
    write_text(target, page)
    command = fit.command
    if options.json:
        answer = {"fit": str(fit_path(options.fit)), "robot": fit.robot.name, "report": str(target)}
        found = {"verdict": assess_fit(fit).headline, "command": command, "bytes": len(page.encode())}
        print(json.dumps({**answer, **found}))
    elif not options.quiet:
        print(f"{fit.robot.name}: {assess_fit(fit).headline}")
        print(f"Report: {target}")
        if data is None:
            print("No report.npz of this fit is beside it: the report shows no torque over time.")
        if not command:
            print("The fit does not say which command made it, so the report does not either.")
    return 0


def run_compare(options: Namespace) -> int:
    """`dynident compare`."""
    from dynident.cli.inputs import logs_of
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
    if not options.validation and (options.columns or options.window):
        raise InputError("--columns and --window belong to --validation LOG..")
    fits = [load_fit(path) for path in options.fits]
    logs = logs_of(options.validation, fits[0].robot, options, "validation")
    found = compare_fits(fits, logs=logs)
    if options.output is not None:
        write_text(options.output, comparison_html(found, _command(options)))
    if options.json:
        sources = {"sources": list(options.fits), "page": options.output}
        print(json.dumps({**sources, **found.as_dict()}, allow_nan=False))
    elif not options.quiet:
        console = page_console()
        print_comparison(found, console, options.fits, every=options.all)
        if options.output is not None:
            console.print(f"Page: {options.output}", soft_wrap=True)
    return 0


def _page(path: str) -> Path:
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: -o writes a page; give it a name that ends in .html")
    return Path(path)


def _command(options: Namespace) -> str:
    """The command that makes the page again."""
    words = ["dynident", "compare", *options.fits]
    words += ["--validation", *options.validation] if options.validation else []
    words += ["--columns", options.columns] if options.columns else []
    words += [f"--window={options.window}"] if options.window else []
    return shlex.join([*words, "-o", options.output])
