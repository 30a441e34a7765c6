"""`di.report`: the HTML report of a fit, written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.storage import load_fit
from dynident.files import check_target, write_text
from dynident.logs.log import LogSource, as_logs
from dynident.report.fit import report_html
from dynident.report.plot_data import ReportData, load_report_data, motion_view
from dynident.validation.residuals import compare


def report(
    fit: Fit | str | Path, path: str | Path = "report.html", *, logs: LogSource | Sequence[LogSource] = ()
) -> Path:
    """Write the HTML report of a fit: one file that needs no network.

    >>> di.report(fit, "report.html", logs=[log, other])

    Args:
        fit: The fit, or the folder or fit.yaml where one was saved.
        path: The page, `*.html`.
        logs: Logs whose torque is shown over time, training or validation. Without them, and for a fit in memory, the
            page has no torque over time; a stored fit has the plots that `identify` kept beside it.

    Returns:
        The path.

    Raises:
        InputError: Where the page cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: a report is a page; give it a name that ends in .html")
    check_target(target)
    stored = None if isinstance(fit, Fit) else load_report_data(fit)
    found = fit if isinstance(fit, Fit) else load_fit(fit)
    given = as_logs(logs)
    write_text(target, report_html(found, report_data(found, given) if given else stored))
    return target


def report_data(fit: Fit, logs: LogSource | Sequence[LogSource]) -> ReportData:
    """What the plots of a report show of some logs: measured and predicted torque, and derivatives of the first."""
    observed = [fit.observe(log) for log in as_logs(logs)]
    traces = {one.log.label: compare([fit.model], one).trace for one in observed}
    return ReportData(traces, motion_view(observed[0]) if observed else None)
