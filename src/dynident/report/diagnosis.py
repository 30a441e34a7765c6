"""Log diagnostics: the section that `dynident check` prints and the report of a fit shows."""

from __future__ import annotations

from collections.abc import Mapping

from dynident.estimate.records import Diagnosis, Diagnostic, Severity
from dynident.report.html import Cell, Head, Part, Section, Table, Text, TextLook, breakable, mark

_ORDER: tuple[Severity, ...] = ("stop", "warn", "ok")
_MARKS = {
    "ok": mark("ok", "good", dots="○", style="green"),
    "warn": mark("warn", "fair", dots="◐", style="yellow"),
    "stop": mark("stop", "weak", dots="●", style="bold red"),
}
_LOOKS: dict[Severity, TextLook] = {"ok": "good", "warn": "caveat", "stop": "stop"}
_SUMMARIES = {
    "ok": "nothing stands in the way",
    "warn": "usable, with care",
    "stop": "fix this first: identify refuses it",
}
_PAGE_SUMMARIES = {
    "ok": "The log diagnostics found no problem before the fit.",
    "warn": "The log diagnostics found the logs usable before the fit, with warnings.",
    "stop": "The log diagnostics found a reason to stop, which was overridden. The result is probably wrong.",
}


def diagnosis_section(diagnosis: Diagnosis, names: Mapping[str, str] | None = None, *, every: bool = False) -> Section:
    """Problems in logs and suggested fixes, the worst first; passed diagnostics in one line, or with `every` in full.

    Args:
        diagnosis: The items.
        names: Short names of the logs by label.
        every: Whether to show passed diagnostics as rows as well.
    """
    names = names or {}
    items = sorted(diagnosis.diagnostics, key=lambda one: _ORDER.index(one.severity))
    bad = {one.name for one in items if one.severity != "ok"}
    passed = [name for name in dict.fromkeys(one.name for one in diagnosis.diagnostics) if name not in bad]
    shown = [one for one in items if every or one.severity != "ok"]
    severity = diagnosis.severity
    parts: list[Part] = [
        Text(_PAGE_SUMMARIES[severity], on="page"),
        Text(f"{severity}: {_SUMMARIES[severity]}", _LOOKS[severity], on="terminal"),
    ]
    if shown:
        heads = [Head("Severity"), Head("Diagnostic"), Head("Log", short=""), Head("Message", class_="text")]
        rows = [_cells(one, names, named=len(diagnosis.logs) > 1) for one in shown]
        parts.append(Table("Results of the log diagnostics", heads, rows, layout="bare"))
    if passed and not every:
        parts.append(Text(f"Passed: {', '.join(passed)}.", on="page"))
        parts.append(Text(f"fine: {', '.join(passed)}", "good", on="terminal"))
    return Section("check", "Log diagnostics", parts, "Diagnostics")


def _cells(one: Diagnostic, names: Mapping[str, str], *, named: bool) -> list[object]:
    log, message = names.get(one.log, one.log), one.message
    for label, short in names.items():
        message = message.replace(label, short)
    where = f"{log}: " if log and named else ""
    return [_MARKS[one.severity], one.name, breakable(log or "all"), Cell(f"{message}.", where + message)]
