"""The answers of `dynident identify` and `dynident validate` as terminal pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dynident.estimate.equivalent_friction import drift_notes
from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import TorqueErrors, together
from dynident.logs.read import short_names
from dynident.report.fit.friction import gain_words, group_words
from dynident.report.fit.trust import Trust, trust_of, verdict
from dynident.report.text import (
    counted,
    fit,
    left_out_per_joint,
    number,
    per_joint,
    percent,
    printable,
    quantity,
    relative,
    rmse,
    sentence,
    torque_units,
    whole,
)
from dynident.validation.held_out import Validation

_WIDE = 110  # columns from which there is room for what parameters stand for
_STYLES: dict[Trust, str] = {"good": "green", "fair": "cyan", "weak": "yellow", "not determined": "magenta"}


def print_estimate(estimate: Fit, console: Console) -> None:
    """The page an engineer reads after an identification."""
    found = verdict(estimate)
    title = Text(printable(estimate.robot.name), style="bold")
    title.append(f"  {found.headline}", style="bold")
    console.print(title)
    for text in found.sentences:
        console.print(Text(printable(text)))
    _remarks(console, found.caveats, "yellow")
    console.print(_joint_table(estimate))
    console.print(Text(_columns_explained(estimate), style="dim"), end="\n\n")
    _print_friction(estimate, console)
    console.print(_parameter_table(estimate, wide=console.width >= _WIDE))
    console.print(Text(f"Deviations {estimate.covariance_kind}.", style="dim"))
    reason = None if estimate.selection is None else estimate.selection.reason
    for note in estimate.notes:
        if note != reason:  # which stands with the friction
            console.print(Text(printable(sentence(note)), style="dim"))
    _remarks(console, [f"Warning: {warning}" for warning in estimate.warnings], "yellow")


def _remarks(console: Console, texts: Iterable[str], style: str) -> None:
    for text in texts:
        console.print(Text(printable(text), style=style))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str | Text]], *, words: int = 1, title: str = "") -> Table:
    """A table whose first columns are words and whose others are numbers."""
    table = Table(box=SIMPLE_HEAD, title=title or None, title_style="bold", title_justify="left")
    for place, head in enumerate(heads):
        if place < words:
            table.add_column(head, overflow="fold")
        else:
            table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    return table


def _joint_table(estimate: Fit) -> Table:
    """Errors joint by joint, before and after."""
    heads, columns, totals = ["joint"], [list(estimate.robot.joint_names)], ["all joints"]

    def add(head: str, cells: list[str], total: str) -> None:
        heads.append(head)
        columns.append(cells)
        totals.append(total)

    def add_errors(head: str, errors: TorqueErrors) -> None:
        add(head, list(map(percent, per_joint(errors))), percent(relative(errors)))

    if estimate.nominal is not None:
        add_errors("before", estimate.nominal)
    add_errors("training", estimate.train)
    crossed = estimate.cross_validation
    if crossed is not None:
        add("left out", list(map(percent, left_out_per_joint(crossed))), percent(crossed.mean))
    judged = estimate.train
    if estimate.validation:
        judged = together(estimate.validation.values())
        add_errors("held out", judged)
    units = torque_units(estimate.robot)
    add("RMS error", list(map(quantity, rmse(judged), units)), "")
    rows = [*zip(*columns, strict=True), totals]
    return _table(heads, rows, title="\nTorque error")


def _columns_explained(estimate: Fit) -> str:
    parts = ["before: values of the robot's description"] if estimate.nominal is not None else []
    if estimate.cross_validation is not None:
        parts.append(f"left out: {estimate.cross_validation.over} left out in turn")
    parts.append(f"RMS error: {'held out' if estimate.validation else 'training'}")
    return sentence("; ".join(parts))


def _print_friction(estimate: Fit, console: Console) -> None:
    """Why this friction, group by group where the data chose; and joints whose friction drifts."""
    chosen = estimate.selection
    if chosen is None:
        return
    console.print(Text("Friction", style="bold"))
    console.print(Text(printable(sentence(chosen.reason))))
    if chosen.verdicts:
        table = Table(box=SIMPLE_HEAD)
        for head, flush in (("group", "left"), ("gain", "right"), ("verdict", "left"), ("what it is", "left")):
            table.add_column(head, justify=flush, overflow="fold")  # type: ignore[arg-type]
        for one in chosen.verdicts:
            style = "" if one.is_in else "dim"
            cells = (one.group, gain_words(one), one.verdict, group_words(one.group))
            table.add_row(*(Text(cell, style=style) for cell in cells))
        console.print(table)
        text = "Gain: share of the error on parts left out that a group takes away, or would, and its standard error."
        console.print(Text(text, style="dim"))
    else:
        console.print(Text(f"Terms: {', '.join(chosen.terms) or 'none beside the basic ones'}."))
    _remarks(console, map(sentence, drift_notes(estimate)), "yellow")
    console.print()


def _parameter_table(estimate: Fit, *, wide: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Parameters", title_style="bold", title_justify="left")
    table.add_column("parameter", no_wrap=True)
    for head in ("value", "deviation", "relative"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("trust", no_wrap=True)
    if wide:
        table.add_column("stands for")
    for row in estimate.rows():
        trust = trust_of(row)
        cells = [
            *(row["name"], number(row["value"], zeros=True), number(row["std"], 2, zeros=True)),
            *(percent(row["relative_std"]), row["unit"]),
        ]
        table.add_row(
            *(Text(cell) for cell in cells),
            Text(trust, style=_STYLES[trust]),
            *([Text(row["expression"])] if wide else []),
        )
    return table


def print_validation(validation: Validation, console: Console) -> None:
    """The page an engineer reads after a validation."""
    errors, logs = validation.errors, validation.comparisons
    headline = f"{percent(relative(errors))} torque error on {counted(len(logs), 'log')}"
    if not validation.usefulness.useful:
        headline = f"useless model: {headline} ({validation.usefulness.reason})"
    console.print(Text(headline, style="bold"))
    text = (
        f"Norm of the error over norm of the torque, each joint while it moves, up to {number(errors.band, 3)} Hz; "
        f"{percent(relative(validation.whole))} with rest included."
    )
    console.print(Text(text))
    if validation.seen:
        names = short_names(logs)
        seen = ", ".join(names[label] for label in validation.seen)
        warning = f"Warning: {seen} also served for training; errors there prove nothing."
        console.print(Text(printable(warning), style="yellow"))
    console.print(_validation_table(validation))
    console.print(
        Text(
            "Fit: share of the torque's variation that is explained. RMS error in N·m, of sliding joints in N. Within: "
            "residuals within two stated deviations of the prediction; 95 % if the deviations are right.",
            style="dim",
        )
    )
    if len(logs) > 1:
        console.print(_log_table(validation))
    _remarks(console, [f"Warning: {warning}" for warning in validation.warnings], "yellow")


def _validation_table(validation: Validation) -> Table:
    errors = validation.errors
    heads = ["joint", "error", "fit", "RMS error", "within"]
    columns = [
        list(map(percent, per_joint(errors))),
        list(map(percent, fit(errors))),
        [number(x, 3, zeros=True) for x in rmse(errors)],
        [percent(float(share)) for share in validation.coverage],
    ]
    return _table(
        heads, [*zip(validation.joints, *columns, strict=True), ("all joints", percent(relative(errors)), "", "", "")]
    )


def _log_table(validation: Validation) -> Table:
    """One row per log; of its joints the worst is named."""
    rows = []
    names = short_names(validation.comparisons)
    for one in validation.comparisons:
        errors = one.errors[0]
        shares = [(share, name) for share, name in zip(per_joint(errors), errors.joints, strict=True) if share == share]
        worst = "" if not shares else f"{percent(max(shares)[0])} {max(shares)[1]}"
        seen = " (training)" if one.label in validation.seen else ""
        samples = whole(errors.count.max(initial=0.0))
        rows.append([f"{names[one.label]}{seen}", percent(relative(errors)), worst, samples])
    return _table(["log", "error", "worst joint", "samples"], rows, title="Log by log")
