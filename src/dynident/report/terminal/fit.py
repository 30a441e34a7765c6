"""The answers of `dynident identify` and `dynident validate` as terminal pages."""

from __future__ import annotations

from rich.console import Console

from dynident.estimate.fit import Fit
from dynident.logs.read import short_names
from dynident.report.fit.friction import selection_parts
from dynident.report.fit.parameters import parameters_section
from dynident.report.fit.summary import errors_section, verdict_section
from dynident.report.html import Head, Part, Section, Table, Text
from dynident.report.terminal import print_parts
from dynident.report.text import (
    explained_variation,
    number,
    per_joint,
    percent,
    plural,
    relative,
    rmse,
    sentence,
    whole,
)
from dynident.validation.held_out import Validation


def print_estimate(estimate: Fit, console: Console) -> None:
    """The page an engineer reads after an identification: sections of the report, in short."""
    verdict = verdict_section(estimate)
    print_parts([Text(f"{estimate.robot.name}  {verdict.title}", "heading"), *verdict.parts], console)
    print_parts([part for part in errors_section(estimate).parts if not isinstance(part, Section)], console)
    console.print()
    if estimate.selection is not None:
        print_parts([Section("friction", "Friction", list(selection_parts(estimate)))], console)
        console.print()
    print_parts(parameters_section(estimate).parts, console)
    reason = None if estimate.selection is None else estimate.selection.reason  # which stands with the friction
    print_parts([Text(sentence(note), "soft") for note in estimate.notes if note != reason], console)
    print_parts([Text(words, "warning") for words in estimate.warnings], console)


def print_validation(validation: Validation, console: Console) -> None:
    """The page an engineer reads after a validation."""
    errors, logs = validation.errors, validation.comparisons
    headline = f"{percent(relative(errors))} torque error on {plural(len(logs), 'log')}"
    if not validation.usefulness.useful:
        headline = f"useless model: {headline} ({validation.usefulness.reason})"
    text = (
        f"Norm of the residual over norm of the torque, each joint while it moves, up to {number(errors.band, 3)} Hz; "
        f"{percent(relative(validation.whole))} with rest included."
    )
    parts: list[Part] = [Text(headline, "heading"), Text(text)]
    if validation.seen:
        names = short_names(logs)
        training = ", ".join(names[label] for label in validation.seen)
        parts.append(Text(f"{training} also served for training; errors there prove nothing.", "warning"))
    legend = (
        "Fit: share of the torque's variation that is explained. RMS error in N·m, of sliding joints in N. Within: "
        "residuals within two stated standard deviations of the prediction; 95 % if they are calibrated."
    )
    parts += [_joint_table(validation), Text(legend, "soft")]
    if len(logs) > 1:
        parts.append(_log_table(validation))
    print_parts([*parts, *(Text(words, "warning") for words in validation.warnings)], console)


def _joint_table(validation: Validation) -> Table:
    errors = validation.errors
    columns = [
        [percent(share) for share in per_joint(errors)],
        [percent(share) for share in explained_variation(errors)],
        [number(x, 3, zeros=True) for x in rmse(errors)],
        [percent(float(share)) for share in validation.coverage],
    ]
    heads = [Head("joint"), *(Head(text, True) for text in ("error", "fit", "RMS error", "within"))]
    last = ("all joints", percent(relative(errors)), "", "", "")
    return Table("", heads, list(zip(validation.joints, *columns, strict=True)), last)


def _log_table(validation: Validation) -> Table:
    """One row per log; of its joints the worst is named."""
    rows = []
    names = short_names(validation.comparisons)
    for one in validation.comparisons:
        errors = one.errors[0]
        shares = [(share, name) for share, name in zip(per_joint(errors), errors.joints, strict=True) if share == share]
        worst = "" if not shares else f"{percent(max(shares)[0])} {max(shares)[1]}"
        training = " (training)" if one.label in validation.seen else ""
        samples = whole(errors.count.max(initial=0.0))
        rows.append([f"{names[one.label]}{training}", percent(relative(errors)), worst, samples])
    heads = [Head("log"), Head("error", True), Head("worst joint", True), Head("samples", True)]
    return Table("", heads, rows, title="Log by log")
