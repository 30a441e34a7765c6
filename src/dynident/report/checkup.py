"""The section of a report that says what the check of the training logs found."""

from __future__ import annotations

from collections.abc import Mapping

from dynident.estimate.diagnosis import Finding
from dynident.estimate.fit import Fit
from dynident.logs.labels import short_names
from dynident.report.markup import Head, Html, breakable, element, paragraphs, section, table

_MARKS = {"ok": ("○", "good"), "warn": ("◐", "fair"), "stop": ("●", "weak")}
_ORDER = ("stop", "warn", "ok")
_TITLES = {
    "ok": "The logs were found sound before anything was solved.",
    "warn": "The logs were found usable before anything was solved; this is worth knowing.",
    "stop": "The check of the logs said stop, and was told to go on. The result is probably wrong.",
}


def check_section(estimate: Fit) -> Html:
    """What was found in the training logs before anything was solved; nothing where that was left out."""
    if estimate.diagnosis is None:
        return Html("")
    items = sorted(estimate.diagnosis.findings, key=lambda one: _ORDER.index(one.verdict))
    names = short_names([*estimate.data, *estimate.held_out])
    bad = [one for one in items if one.verdict != "ok"]
    fine = [name for name in dict.fromkeys(one.name for one in items) if name not in {one.name for one in bad}]
    parts: list[object] = [paragraphs(_TITLES[estimate.diagnosis.verdict])]
    if bad:
        heads = [Head("Item"), Head("Verdict"), Head("Log"), Head("What was seen", class_="text")]
        parts.append(table("Findings of the check", heads, [_cells(one, names) for one in bad]))
    if fine:
        parts.append(paragraphs(f"Looked at and found in order: {', '.join(fine)}."))
    return section("check", "Check of the logs", *parts)


def _cells(one: Finding, names: Mapping[str, str]) -> list[object]:
    mark, style = _MARKS[one.verdict]
    shown = element("span", element("b", mark, aria_hidden="true"), one.verdict, class_=f"mark {style}")
    log, message = one.log, one.message
    for label, short in names.items():
        message = message.replace(label, short)
    return [
        one.name,
        shown,
        breakable(names.get(log, log) or "all"),
        f"{message}.",
    ]
