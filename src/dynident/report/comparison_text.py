"""What a comparison of runs says, in plain words; the page and the terminal say the same sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import together
from dynident.logs.read import short_names
from dynident.report.fit.trust import trust_counts
from dynident.report.text import (
    UNKNOWN,
    counted,
    left_out_per_joint,
    number,
    option,
    per_joint,
    percent,
    printable,
    relative,
    sentence,
    whole,
)
from dynident.validation.comparison import FitComparison, ParameterChange

NOTHING = "–"  # a run that does not have what a row is about
_ALIKE = 1.05  # ratio of errors below which neither run is called better
_DOUBT = 2.0  # deviations from which a difference deserves a look, though chance may explain it


@dataclass(frozen=True)
class Judgement:
    """Errors of the runs on the best basis that all of them have.

    Attributes:
        basis: What the errors are on, in words.
        unseen: Whether no run has seen that data.
        joints: {joint: share} of each run.
        totals: Over all joints, of each run; NaN where not known.
    """

    basis: str
    unseen: bool
    joints: tuple[Mapping[str, float], ...]
    totals: tuple[float, ...]


def judgement(found: FitComparison) -> Judgement:
    """Logs that judge all runs; without any, data that each left out in turn; without that, its training data."""
    names = [fit.robot.joint_names for fit in found.fits]
    if found.judged:
        shares = [per_joint(errors) for errors in found.errors]
        totals = [relative(errors) for errors in found.errors]
        basis, unseen = counted(len(found.judged), "common log"), not any(log.seen for log in found.judged)
    elif len(crossed := [fit.cross_validation for fit in found.fits if fit.cross_validation]) == len(found.fits):
        shares = [left_out_per_joint(one) for one in crossed]
        totals = [one.mean for one in crossed]
        basis, unseen = "data that each run left out in turn", False
    else:
        shares = [per_joint(fit.train) for fit in found.fits]
        totals = [relative(fit.train) for fit in found.fits]
        basis, unseen = "the training data of each run", False
    joints = tuple(dict(zip(own, map(float, share), strict=True)) for own, share in zip(names, shares, strict=True))
    return Judgement(basis, unseen, joints, tuple(totals))


def headline(found: FitComparison) -> str:
    """The one line to remember."""
    judged = judgement(found)
    if not found.judged:
        return _parameter_words(found)
    if not found.one_band:
        bands = [f" up to {number(errors.band, 3)} Hz" for errors in found.errors]
        parts = zip(found.names, judged.totals, bands, strict=True)
        return f"Torque error in different bands: {', '.join(f'{name} {percent(x)}{b}' for name, x, b in parts)}"
    listed = ", ".join(f"{name} {percent(x)}" for name, x in zip(found.names, judged.totals, strict=True))
    known = [(x, name) for x, name in zip(judged.totals, found.names, strict=True) if np.isfinite(x)]
    if len(known) < len(found.names):
        return f"Torque error: {listed}"
    best, worst = min(known), max(known)
    if worst[0] <= _ALIKE * best[0]:
        return f"All predict the torque about equally well: {listed}"
    return f"{best[1]} predicts the torque best: {listed}"


def sentences(found: FitComparison) -> list[str]:
    """What was found, below the headline."""
    judged = judgement(found)
    seen = " that no run has seen" if judged.unseen else ""
    if found.judged:
        logs = ", ".join(log_names(found)[log.label] for log in found.judged)
        told = [f"Relative torque error on {judged.basis}{seen} ({logs}), each joint while it moves."]
        told.append(sentence(_parameter_words(found)))
    else:
        text = f"No log was held out by all runs, so errors are on {judged.basis} and are not strictly comparable; "
        told = [f"{text}give logs to judge all of them with: --validation LOG.."]
    told.append(_chance_words(found))
    only = [
        f"{counted(n, 'parameter')} only {name} has"
        for place, name in enumerate(found.names)
        if (n := sum(one.values[place] is not None and not one.shared for one in found.parameters))
    ]
    return [*told, *([sentence("; ".join(only))] if only else [])]


def _parameter_words(found: FitComparison) -> str:
    common, changed = len(found.common), len(found.changed)
    if not common:
        return "The runs have no parameter in common"
    if all(x in (None, 0.0) for one in found.common for x in one.differences):
        return f"All {common} common parameters are equal"
    if len({fit.robot.name for fit in found.fits}) > 1:
        return f"Different robots: {changed} of {counted(common, 'parameter')} with the same name differ"
    if not changed:
        return f"None of {counted(common, 'common parameter')} changed by more than chance explains"
    return f"{changed} of {counted(common, 'common parameter')} changed by more than chance explains"


def _chance_words(found: FitComparison) -> str:
    return (
        f"Changed means more than {number(found.threshold, 3)} standard deviations of the difference, which chance "
        f"alone brings about for any of the parameters once in 20 comparisons; {found.names[0]} is what the others "
        "are compared with."
    )


def change_words(found: FitComparison, one: ParameterChange) -> str:
    """Verdict on a parameter."""
    if not one.shared:
        return f"only {found.names[one.reference]}"
    if not one.alike:
        return "another sum"
    if one.compared == 0:
        return "not determined"
    if one.largest > found.threshold:
        return "changed"
    return "perhaps" if one.largest > _DOUBT else "agrees"


def facts(found: FitComparison) -> list[tuple[str, list[str]]]:
    """Runs at a glance: what, and its value in each run."""
    return [
        ("robot", [fit.robot.name for fit in found.fits]),
        ("parameters", [str(len(fit.names)) for fit in found.fits]),
        ("known to 15 %", [str(_known(fit)) for fit in found.fits]),
        ("not determined", [str(len(fit.undetermined)) for fit in found.fits]),
        ("condition", [number(fit.condition, 3) for fit in found.fits]),
        ("training error", [percent(relative(fit.train)) for fit in found.fits]),
        ("left out in turn", [_left_out(fit) for fit in found.fits]),
        ("held out", [_held_out(fit) for fit in found.fits]),
        ("training logs", [str(len(fit.data)) for fit in found.fits]),
        ("training samples", [whole(sum(record.n_samples for record in fit.data)) for fit in found.fits]),
        ("band", [f"{number(fit.band, 3)} Hz" for fit in found.fits]),
    ]


def _known(fit: Fit) -> int:
    counts = trust_counts(fit)
    return counts["good"] + counts["fair"]


def _left_out(fit: Fit) -> str:
    return NOTHING if fit.cross_validation is None else percent(fit.cross_validation.mean)


def _held_out(fit: Fit) -> str:
    return percent(relative(together(fit.validation.values()))) if fit.validation else NOTHING


def differing_options(found: FitComparison) -> list[tuple[str, list[str]]]:
    """Options that are not the same in all runs."""
    return [
        (name.replace("_", " "), [option(value) if value not in (None, {}, []) else "none" for value in values])
        for name, values in found.differing.items()
    ]


def log_names(found: FitComparison) -> dict[str, str]:
    """Short names of all logs, by label."""
    return short_names([*found.logs, *found.judged])


def z_words(value: float | None) -> str:
    """A distance in deviations, with its sign."""
    return UNKNOWN if value is None else f"{value:+.1f}"


def cells(values: Sequence[Any], shown: Any) -> list[str]:
    """Values of the runs; a dash where a run has none."""
    return [NOTHING if value is None else shown(value) for value in values]


# ----------------------------------------------------------------------------------------------------------------------
# The answer of `dynident compare` as a terminal page.

_ABREAST = 4  # runs that stand beside each other within 80 columns
_STYLES = {"changed": "magenta", "perhaps": "yellow", "agrees": "green"}


def print_comparison(found: FitComparison, console: Console, sources: Sequence[str], *, every: bool = False) -> None:
    """The page an engineer reads after a comparison.

    Args:
        found: The comparison.
        console: Where to print.
        sources: Where each run came from.
        every: Whether to show parameters that agree as well.
    """
    console.print(Text(printable(headline(found)), style="bold"))
    for name, source in zip(found.names, sources, strict=True):
        console.print(Text(printable(f"  {name}  {source}")), soft_wrap=True)
    for text in sentences(found):
        console.print(Text(printable(text)))
    for text in found.remarks:
        console.print(Text(printable(sentence(text)), style="yellow"))
    judged = judgement(found)
    rows = [
        (joint, [NOTHING if own.get(joint) is None else percent(own[joint]) for own in judged.joints])
        for joint in found.joints
    ]
    _print(
        console, found, f"Torque error on {judged.basis}", "joint", [*rows, ("all", list(map(percent, judged.totals)))]
    )
    _print(console, found, "Runs", "", facts(found))
    _print_parameters(found, console, every=every)
    _print(console, found, "Options that differ", "option", differing_options(found), right=False)
    names = log_names(found)
    used = [(names[log.label], cells([role or None for role in log.roles], str)) for log in found.logs]
    _print(console, found, "Data", "log", used, right=False)


def _print(
    console: Console,
    found: FitComparison,
    title: str,
    head: str,
    rows: Iterable[tuple[str, Sequence[str]]],
    *,
    right: bool = True,
) -> None:
    """A table with a column for each run; many runs in several tables."""
    listed = list(rows)
    if not listed:
        return
    for first in range(0, len(found.names), _ABREAST):
        own = slice(first, first + _ABREAST)
        table = Table(box=SIMPLE_HEAD, title=title, title_style="bold", title_justify="left")
        table.add_column(head, overflow="fold")
        for name in found.names[own]:
            table.add_column(name, justify="right" if right else "left", overflow="fold")
        for name, values in listed:
            table.add_row(*(Text(printable(cell)) for cell in (name, *values[own])))
        console.print(table)


def _print_parameters(found: FitComparison, console: Console, *, every: bool) -> None:
    """Parameters that changed, the most certain first; or all of them."""
    words = {one.name: change_words(found, one) for one in found.parameters}
    if every:
        shown = list(found.parameters)
    else:
        kept = [one for one in found.parameters if words[one.name] in ("changed", "perhaps")]
        shown = sorted(kept, key=lambda one: -one.largest)
    for first in range(1, len(found.names), _ABREAST - 1) if shown else ():
        console.print(_parameter_table(found, shown, words, range(first, min(first + _ABREAST - 1, len(found.names)))))
    hidden = len(found.parameters) - len(shown)
    if hidden:
        console.print(Text(f"{hidden} of {len(found.parameters)} parameters not shown; --all shows them.", style="dim"))


def _parameter_table(
    found: FitComparison, shown: Sequence[ParameterChange], words: dict[str, str], runs: range
) -> Table:
    """The first run, and beside it each other one with its distance; wide names of a unit are left to the page."""
    title = f"Parameters, and their distance from {found.names[0]} in deviations"
    table = Table(box=SIMPLE_HEAD, title=title, title_style="bold", title_justify="left", padding=(0, 1, 0, 0))
    table.add_column("parameter", overflow="fold")
    table.add_column(found.names[0], justify="right", no_wrap=True)
    for run in runs:
        table.add_column(found.names[run], justify="right", no_wrap=True)
        table.add_column("dev.", justify="right", no_wrap=True)
    if len(found.names) == 2:
        table.add_column("unit", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in shown:
        row = [one.name, _value(one, 0)]
        for run in runs:
            apart = one.values[run] is None or run == one.reference
            row += [_value(one, run), "" if apart else z_words(one.deviations[run])]
        unit = [one.unit] if len(found.names) == 2 else []
        word = words[one.name]
        table.add_row(*map(Text, [*row, *unit]), Text(word, style=_STYLES.get(word, "")))
    return table


def _value(one: ParameterChange, run: int) -> str:
    value = one.values[run]
    return NOTHING if value is None else number(value, 4, zeros=True)
