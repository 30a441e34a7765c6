"""`comparison_html`: runs side by side as one HTML file: verdict, errors, parameters, options, data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dynident._version import __version__
from dynident.report.charts import WIDTH, picture, ticks
from dynident.report.comparison_text import (
    NOTHING,
    cells,
    change_words,
    differing_options,
    facts,
    headline,
    judgement,
    log_names,
    sentences,
    z_words,
)
from dynident.report.fit import document
from dynident.report.html import Head, Html, breakable, bullets, element, joined, paragraphs, section, table
from dynident.report.text import counted, number, percent, sentence, whole
from dynident.validation.comparison import FitComparison

_LINKS = {"errors": "Errors", "parameters": "Parameters", "runs": "Runs", "options": "Options", "data": "Data"}
_MARKS = {"changed": ("●●●", "weak"), "perhaps": ("●●○", "fair"), "agrees": ("●○○", "good")}
_NAME, _BAR, _GAP, _RIGHT = 250, 32, 20, 130  # of the bars: room for names, thickness, between joints, for numbers
_CSS = "svg .bar.other { fill: var(--residual); }"  # all but the first run; letters tell them apart, too
_OVER = 1.02  # of the longest bar, to the end of the scale


def comparison_html(found: FitComparison, command: str = "") -> str:
    """The page of a comparison.

    Args:
        found: What to show; every number of the page comes from it.
        command: The command that makes the page again; left out when empty.

    Returns:
        The page, to be written as UTF-8.
    """
    main = [
        _verdict(found),
        _warnings(found),
        _errors(found),
        _parameters(found),
        _runs(found),
        _options(found),
        _data(found),
        *([section("again", "Again", element("code", command, class_="command"))] if command else []),
    ]
    robots = ", ".join(dict.fromkeys(fit.robot.name for fit in found.fits))
    title = f"{robots}: {counted(len(found.fits), 'run')} side by side"
    links = [element("a", words, href=f"#{key}") for key, words in _LINKS.items()]
    header = element("header", element("h1", title), _legend(found), element("nav", *links, aria_label="Sections"))
    return document(title, header, element("main", *main), element("footer", f"dynident {__version__}"), css=_CSS)


def _legend(found: FitComparison) -> Html:
    """What the letters of the runs stand for: the robot file, and the command that made the run."""
    rows = []
    for name, fit in zip(found.names, found.fits, strict=True):
        what = element("code", fit.command) if fit.command else f"{fit.robot.name}, dynident {fit.version}"
        rows.append((element("dt", element("b", name)), element("dd", what)))
    return element("dl", *itertools.chain.from_iterable(rows))


def _verdict(found: FitComparison) -> Html:
    return element(
        "section", element("h2", headline(found)), paragraphs(*sentences(found)), id="verdict", class_="verdict"
    )


def _warnings(found: FitComparison) -> Html:
    if not found.remarks:
        return Html("")
    return section("warnings", "Remarks", element("div", bullets(map(sentence, found.remarks)), class_="warnings"))


def _errors(found: FitComparison) -> Html:
    """Errors joint by joint, as bars and as numbers."""
    judged = judgement(found)
    heads = [Head("Joint"), *(Head(name, True) for name in found.names)]
    rows = [[joint, *_shares([own.get(joint) for own in judged.joints])] for joint in found.joints]
    caption = f"Relative torque error on {judged.basis}"
    parts = [
        _bars(found, caption),
        table(caption, heads, rows, last=["All joints", *map(percent, judged.totals)]),
    ]
    if len(found.judged) > 1:
        names = log_names(found)
        logs = [[names[log.label], *(percent(one.relative) for one in log.errors)] for log in found.judged]
        parts.append(table("All joints, log by log", [Head("Log"), *heads[1:]], logs))
    return section("errors", "Errors per joint", *parts)


def _shares(values: Sequence[float | None]) -> list[str]:
    return [NOTHING if value is None else percent(value) for value in values]


def _bars(found: FitComparison, caption: str) -> Html:
    """A bar for each run, joint by joint; letters tell the runs apart, not colours."""
    judged = judgement(found)
    known = [x for own in judged.joints for x in own.values() if math.isfinite(x)]
    if not known or max(known) <= 0.0:
        return Html("")
    most, top, parts = _OVER * max(known), 46, []
    step = _BAR * len(found.names) + _GAP
    bottom, right = top + step * len(found.joints), WIDTH - _RIGHT

    def across(share: float) -> int:
        return round(_NAME + share / most * (right - _NAME))

    for value in ticks(0.0, most, 5):
        parts.append(element("path", d=f"M{across(value)} {top}V{bottom}", class_="grid"))
        parts.append(element("text", f"{number(100.0 * value, 3)} %", x=across(value), y=top - 14, class_="mid"))
    for i, joint in enumerate(found.joints):
        y = top + step * i + _GAP // 2
        middle = y + _BAR * len(found.names) // 2 + 8
        parts.append(element("text", _short(joint), x=_NAME - 50, y=middle, class_="end name"))
        for k, (name, own) in enumerate(zip(found.names, judged.joints, strict=True)):
            share, down = own.get(joint, math.nan), y + _BAR * k
            parts.append(element("text", name, x=_NAME - 12, y=down + _BAR - 5, class_="end"))
            if math.isfinite(share):
                long = max(across(share) - _NAME, 2)
                looks = "bar" if k == 0 else "bar other"
                parts.append(element("rect", x=_NAME, y=down + 2, width=long, height=_BAR - 5, class_=looks))
                parts.append(element("text", percent(share), x=_NAME + long + 8, y=down + _BAR - 5))
    told = "; ".join(
        f"{joint}: " + ", ".join(f"{n} {x}" for n, x in zip(found.names, _cells_of(found, joint), strict=True))
        for joint in found.joints
    )
    drawn = picture(caption, f"{told}.", parts, bottom + 10, "bars")
    return element("figure", element("figcaption", caption), drawn, class_="bars")


def _cells_of(found: FitComparison, joint: str) -> list[str]:
    return _shares([own.get(joint) for own in judgement(found).joints])


def _short(name: str) -> str:
    """A name that fits beside the bars."""
    return name if len(name) <= 16 else f"{name[:7]}…{name[-8:]}"


def _parameters(found: FitComparison) -> Html:
    """Every parameter in every run; those that changed first."""
    text = (
        f"Differences are from {found.names[0]}, or the first run that has the parameter, in standard deviations of "
        "the difference: the root of both squared deviations together."
    )
    meanings = {
        "changed": f"beyond {number(found.threshold, 3)} deviations of the difference",
        "perhaps": "beyond 2, which chance brings about for one parameter in 20",
        "agrees": "within 2",
    }
    key = [element("li", _mark(word), f": {meaning}") for word, meaning in meanings.items()]
    heads = [Head("Parameter"), Head("Verdict"), *(Head(name, True) for name in found.names)]
    heads += [Head(f"{name} − {found.names[0]}, in deviations", True) for name in found.names[1:]]
    ordered = sorted(found.parameters, key=lambda one: (not one.shared, not one.alike, -one.largest))
    rows = []
    for one in ordered:
        values = [_value(value, std) for value, std in zip(one.values, one.stds, strict=True)]
        apart = [
            "" if one.values[k] is None or k == one.reference else z for k, z in enumerate(map(z_words, one.deviations))
        ]
        rows.append([one.name, _mark(change_words(found, one)), *values, *apart[1:], one.unit])
    caption = f"{counted(len(rows), 'parameter')}, the largest differences first"
    return section(
        "parameters",
        "Parameters",
        paragraphs(text),
        element("ul", *key, class_="key"),
        table(caption, [*heads, Head("Unit")], rows),
    )


def _value(value: float | None, std: float | None) -> Html:
    """A value with its deviation below it."""
    if value is None:
        return joined([NOTHING])
    spread = "not determined" if std is None else f"± {number(std, 2, zeros=True)}"
    return joined([number(value, zeros=True), " ", element("span", spread, class_="soft")])


def _mark(word: str) -> Html:
    dots, kind = _MARKS.get(word, ("○○○", "none"))
    return element("span", element("b", dots, aria_hidden="true"), word, class_=f"mark {kind}")


def _runs(found: FitComparison) -> Html:
    heads = [Head("Run"), *(Head(name, True) for name in found.names)]
    rows = [[sentence(name).rstrip("."), *values] for name, values in facts(found)]
    return section("runs", "Runs", table("The runs at a glance", heads, rows))


def _options(found: FitComparison) -> Html:
    rows = [[sentence(name).rstrip("."), *values] for name, values in differing_options(found)]
    if not rows:
        return section("options", "Options", paragraphs("All options are the same."))
    heads = [Head("Option"), *(Head(name, class_="text") for name in found.names)]
    return section("options", "Options", table("Options that differ; all others are the same", heads, rows))


def _data(found: FitComparison) -> Html:
    names = log_names(found)
    heads = [Head("Log"), Head("Samples", True), *(Head(name) for name in found.names)]
    rows = [
        [
            element("span", breakable(names[log.label]), title=log.source or None),
            whole(log.samples),
            *cells([role or None for role in log.roles], str),
        ]
        for log in found.logs
    ]
    return section("data", "Data", table("What each run did with each log", heads, rows))
