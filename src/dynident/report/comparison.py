"""`comparison_html`: runs side by side as one HTML file: verdict, errors, parameters, options, data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident._version import __version__
from dynident.estimate.torque_errors import together
from dynident.logs.read import short_names
from dynident.report.charts import comparison_plot
from dynident.report.fit.summary import warnings_section
from dynident.report.fit.trust import trust_counts
from dynident.report.html import (
    Cell,
    Head,
    Html,
    Part,
    Section,
    Table,
    Text,
    breakable,
    concatenate,
    definitions,
    element,
    figure,
    mark,
    page,
)
from dynident.report.text import (
    UNKNOWN,
    mean_fold_errors,
    number,
    option,
    per_joint,
    percent,
    plural,
    relative,
    sentence,
    whole,
)
from dynident.report.thresholds import THRESHOLDS
from dynident.validation.comparison import FitComparison, ParameterChange

NOTHING = "–"  # a run that does not have what a row is about
_MARKS = {
    "changed": mark("changed", "weak", dots="●●●", style="magenta"),
    "perhaps": mark("perhaps", "fair", dots="●●○", style="yellow"),
    "agrees": mark("agrees", "good", dots="●○○", style="green"),
}


def comparison_html(found: FitComparison, command: str = "") -> str:
    """The page of a comparison.

    Args:
        found: What to show; every number of the page comes from it.
        command: The command that makes the page again; left out when empty.

    Returns:
        The page, to be written as UTF-8.
    """
    robots = ", ".join(dict.fromkeys(fit.robot.name for fit in found.fits))
    again = Section("again", "Command", [element("code", command, class_="command")]) if command else None
    made_by = [
        element("code", fit.command) if fit.command else f"{fit.robot.name}, dynident {fit.version}"
        for fit in found.fits
    ]
    sections = [verdict_section(found), warnings_section(found.remarks, "Remarks"), errors_section(found)]
    sections += [_parameters_section(found), runs_section(found), options_section(found), data_section(found), again]
    legend = definitions((element("b", name), what) for name, what in zip(found.names, made_by, strict=True))
    title = f"{robots}: {plural(len(found.fits), 'run')} side by side"
    return page(title, sections, version=__version__, facts=legend)


def verdict_section(found: FitComparison) -> Section:
    """The answer, at the top."""
    return Section("verdict", headline(found), [Text(words) for words in sentences(found)])


def errors_section(found: FitComparison) -> Section:
    """Errors joint by joint, as bars and as numbers."""
    evaluated = run_errors(found)
    heads = _run_heads(found, numeric=True)
    shares = [[own.get(joint) for own in evaluated.joints] for joint in found.joints]
    rows = [[joint, *_cells(own)] for joint, own in zip(found.joints, shares, strict=True)]
    caption, parts = f"Relative torque error on {evaluated.basis}", []
    known = [[math.nan if x is None else x for x in own] for own in shares]
    if np.nanmax(known, initial=0.0) > 0.0:
        drawn = comparison_plot(caption, found.joints, found.names, known, "bars")
        parts.append(Html(figure(caption, drawn, class_="bars")))
    title = f"Torque error on {evaluated.basis}"
    last = ["All joints", *map(percent, evaluated.totals)]
    tables = [Table(caption, [Head("Joint"), *heads], rows, last, title)]
    if len(found.evaluated) > 1:
        names = log_names(found)
        logs = [[names[log.label], *(percent(one.relative) for one in log.errors)] for log in found.evaluated]
        tables.append(Table("All joints, log by log", [Head("Log"), *heads], logs, on="page"))
    return Section("errors", "Errors per joint", [*parts, *tables], "Errors")


def _parameters_section(found: FitComparison) -> Section:
    """Every parameter in every run; those that changed first."""
    text = (
        f"Differences are from {found.names[0]}, or the first run that has the parameter, in standard deviations of "
        "the difference: the root of the sum of both variances."
    )
    meanings = {
        "changed": f"beyond {number(found.threshold, 3)} standard deviations of the difference",
        "perhaps": "beyond 2, which chance alone explains for one parameter in 20",
        "agrees": "within 2",
    }
    key = [element("li", _MARKS[word], f": {meaning}") for word, meaning in meanings.items()]
    ordered = sorted(found.parameters, key=lambda one: (not one.shared, not one.alike, -one.largest))
    parts: list[Part] = [Text(text), element("ul", *key, class_="key"), parameter_table(found, ordered)]
    return Section("parameters", "Parameters", parts, "Parameters")


def parameter_table(found: FitComparison, shown: Sequence[ParameterChange]) -> Table:
    """The first run, and beside it each other one with its difference; a terminal has room for the unit with two."""
    first, *others = found.names
    heads = [Head("Parameter"), Head("Verdict"), Head(first, True, short=first)]
    for run, name in enumerate(others, 1):
        heads.append(Head(name, True, short=name, group=run))
        heads.append(Head(f"{name} − {first}, in std", True, short="in std", group=run))
    heads.append(Head("Unit", short="unit" if len(others) == 1 else ""))
    rows: list[list[object]] = []
    for one in shown:
        word = change_words(found, one)
        row: list[object] = [one.name, _MARKS.get(word) or mark(word, "none", style=""), _value(one, 0)]
        for run in range(1, len(found.names)):
            z = one.deviations[run]
            apart = "" if one.values[run] is None or run == one.reference else UNKNOWN if z is None else f"{z:+.1f}"
            row += [_value(one, run), apart]
        rows.append([*row, one.unit])
    caption = f"{plural(len(rows), 'parameter')}, the largest differences first"
    title = f"Parameters, and their difference from {first} in standard deviations"
    return Table(caption, heads, rows, title=title, layout="tight", abreast=3)


def _value(one: ParameterChange, run: int) -> Cell:
    """A value, on the page with its standard deviation below it."""
    value, std = one.values[run], one.stds[run]
    if value is None:
        return Cell(NOTHING, NOTHING)
    spread = "not determined" if std is None else f"± {number(std, 2, zeros=True)}"
    shown = concatenate([number(value, zeros=True), " ", element("span", spread, class_="soft")])
    return Cell(shown, number(value, 4, zeros=True))


def runs_section(found: FitComparison) -> Section:
    """The runs at a glance."""
    rows = [[sentence(name).rstrip("."), *values] for name, values in facts(found)]
    table = Table("The runs at a glance", [Head("Run"), *_run_heads(found, numeric=True)], rows, title="Runs")
    return Section("runs", "Runs", [table], "Runs")


def options_section(found: FitComparison) -> Section:
    """Options that are not the same in all runs."""
    rows = [
        [
            sentence(name.replace("_", " ")).rstrip("."),
            *(option(value) if value not in (None, {}, []) else "none" for value in values),
        ]
        for name, values in found.differing.items()
    ]
    if not rows:
        return Section("options", "Options", [Text("All options are the same.", on="page")], "Options")
    heads = [Head("Option"), *_run_heads(found, class_="text")]
    table = Table("Options that differ; all others are the same", heads, rows, title="Options that differ")
    return Section("options", "Options", [table], "Options")


def data_section(found: FitComparison) -> Section:
    """What each run did with each log."""
    names = log_names(found)
    heads = [Head("Log"), Head("Samples", True, short=""), *_run_heads(found)]
    rows = []
    for log in found.logs:
        name = Cell(element("span", breakable(names[log.label]), title=log.source or None), names[log.label])
        rows.append([name, whole(log.samples), *(role or NOTHING for role in log.roles)])
    return Section("data", "Data", [Table("What each run did with each log", heads, rows, title="Data")], "Data")


def _run_heads(found: FitComparison, *, numeric: bool = False, class_: str = "") -> list[Head]:
    return [Head(name, numeric, class_, short=name, group=run) for run, name in enumerate(found.names)]


def _cells(shares: Sequence[float | None]) -> list[str]:
    return [NOTHING if share is None else percent(share) for share in shares]


# ----------------------------------------------------------------------------------------------------------------------
# What a comparison says, in words.


@dataclass(frozen=True)
class RunErrors:
    """Errors of the runs on the best basis that all of them have.

    Attributes:
        basis: What the errors are on, in words.
        held_out: Whether no run was trained on that data.
        joints: {joint: share} of each run.
        totals: Over all joints, of each run; NaN where not known.
    """

    basis: str
    held_out: bool
    joints: tuple[Mapping[str, float], ...]
    totals: tuple[float, ...]


def run_errors(found: FitComparison) -> RunErrors:
    """Errors on common validation logs; without any, in cross-validation; without that, on training data."""
    names = [fit.robot.joint_names for fit in found.fits]
    if found.evaluated:
        shares = [per_joint(errors) for errors in found.errors]
        totals = [relative(errors) for errors in found.errors]
        basis, held_out = plural(len(found.evaluated), "common log"), not any(log.seen for log in found.evaluated)
    elif len(crossed := [fit.cross_validation for fit in found.fits if fit.cross_validation]) == len(found.fits):
        shares = [mean_fold_errors(one) for one in crossed]
        totals = [one.mean for one in crossed]
        basis, held_out = "the held-out folds of each run", False
    else:
        shares = [per_joint(fit.train) for fit in found.fits]
        totals = [relative(fit.train) for fit in found.fits]
        basis, held_out = "the training data of each run", False
    joints = tuple(dict(zip(own, map(float, share), strict=True)) for own, share in zip(names, shares, strict=True))
    return RunErrors(basis, held_out, joints, tuple(totals))


def headline(found: FitComparison) -> str:
    """The one line to remember."""
    evaluated = run_errors(found)
    if not found.evaluated:
        return _parameter_words(found)
    if not found.one_band:
        bands = [f" up to {number(errors.band, 3)} Hz" for errors in found.errors]
        parts = zip(found.names, evaluated.totals, bands, strict=True)
        return f"Torque error in different bands: {', '.join(f'{name} {percent(x)}{b}' for name, x, b in parts)}"
    listed = ", ".join(f"{name} {percent(x)}" for name, x in zip(found.names, evaluated.totals, strict=True))
    known = [(x, name) for x, name in zip(evaluated.totals, found.names, strict=True) if np.isfinite(x)]
    if len(known) < len(found.names):
        return f"Torque error: {listed}"
    best, worst = min(known), max(known)
    if worst[0] <= THRESHOLDS.equal_error_ratio * best[0]:
        return f"All predict the torque about equally well: {listed}"
    return f"{best[1]} predicts the torque best: {listed}"


def sentences(found: FitComparison) -> list[str]:
    """What was found, below the headline."""
    evaluated = run_errors(found)
    held_out = " held out by all runs" if evaluated.held_out else ""
    if found.evaluated:
        logs = ", ".join(log_names(found)[log.label] for log in found.evaluated)
        words = [f"Relative torque error on {evaluated.basis}{held_out} ({logs}), each joint while it moves."]
        words.append(sentence(_parameter_words(found)))
    else:
        text = f"No log was held out by all runs, so errors are on {evaluated.basis} and are not strictly comparable; "
        words = [f"{text}give validation logs for all of them: --validation LOG.."]
    words.append(_chance_words(found))
    only = [
        f"{plural(n, 'parameter')} only {name} has"
        for place, name in enumerate(found.names)
        if (n := sum(one.values[place] is not None and not one.shared for one in found.parameters))
    ]
    return [*words, *([sentence("; ".join(only))] if only else [])]


def _parameter_words(found: FitComparison) -> str:
    common, changed = len(found.common), len(found.changed)
    if not common:
        return "The runs have no parameter in common"
    if all(x in (None, 0.0) for one in found.common for x in one.differences):
        return f"All {common} common parameters are equal"
    if len({fit.robot.name for fit in found.fits}) > 1:
        return f"Different robots: {changed} of {plural(common, 'parameter')} with the same name differ"
    if not changed:
        return f"None of {plural(common, 'common parameter')} changed by more than chance explains"
    return f"{changed} of {plural(common, 'common parameter')} changed by more than chance explains"


def _chance_words(found: FitComparison) -> str:
    return (
        f"Changed means more than {number(found.threshold, 3)} standard deviations of the difference, which chance "
        f"alone explains for any of the parameters once in 20 comparisons; {found.names[0]} is what the others are "
        "compared with."
    )


def change_words(found: FitComparison, one: ParameterChange) -> str:
    """Verdict on a parameter."""
    if not one.shared:
        return f"only {found.names[one.reference]}"
    if not one.alike:
        return "another combination"
    if one.compared == 0:
        return "not determined"
    if one.largest > found.threshold:
        return "changed"
    return "perhaps" if one.largest > THRESHOLDS.doubtful_difference else "agrees"


def facts(found: FitComparison) -> list[tuple[str, list[str]]]:
    """Runs at a glance: what, and its value in each run."""
    counts = [trust_counts(fit) for fit in found.fits]
    crossed = [fit.cross_validation for fit in found.fits]
    held_out = [relative(together(fit.validation.values())) if fit.validation else None for fit in found.fits]
    return [
        ("robot", [fit.robot.name for fit in found.fits]),
        ("parameters", [str(len(fit.names)) for fit in found.fits]),
        ("std below 15 %", [str(own["good"] + own["fair"]) for own in counts]),
        ("not determined", [str(len(fit.undetermined)) for fit in found.fits]),
        ("condition", [number(fit.condition, 3) for fit in found.fits]),
        ("training error", [percent(relative(fit.train)) for fit in found.fits]),
        ("cross-validation", _cells([None if one is None else one.mean for one in crossed])),
        ("held out", _cells(held_out)),
        ("training logs", [str(len(fit.data)) for fit in found.fits]),
        ("training samples", [whole(sum(record.n_samples for record in fit.data)) for fit in found.fits]),
        ("band", [f"{number(fit.band, 3)} Hz" for fit in found.fits]),
    ]


def log_names(found: FitComparison) -> dict[str, str]:
    """Short names of all logs, by label."""
    return short_names([*found.logs, *found.evaluated])
