"""The answers of `dynident identify` and `dynident validate` as terminal pages."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text as RichText

from dynident.estimate.equivalent_friction import FrictionSummary, friction_summary
from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import together
from dynident.logs.read import short_names
from dynident.report.fit.friction import selection_parts
from dynident.report.fit.parameters import parameters_section
from dynident.report.fit.summary import answers_text, errors_section
from dynident.report.fit.trust import GRADE_STYLES, assess_fit
from dynident.report.html import Head, Part, Section, Table, Text
from dynident.report.terminal import print_parts
from dynident.report.text import (
    explained_variation,
    mean_fold_errors,
    number,
    per_joint,
    percent,
    plural,
    printable,
    relative,
    rmse,
    sentence,
    torque_units,
    whole,
)
from dynident.validation.held_out import Validation
from dynident.validation.verdict import Grade, Verdict


def print_estimate(estimate: Fit, console: Console, *, table: bool = True, folder: str = "FIT") -> None:
    """What an engineer reads after an identification, the summary last.

    Args:
        estimate: The fit.
        console: Where to.
        table: Whether all tables come before it, or the summary alone.
        folder: Where the fit was written, for the commands.
    """
    if table:
        _print_details(estimate, console)
    _print_summary(estimate, console, folder)


def _print_details(estimate: Fit, console: Console) -> None:
    """All that was found: errors, friction, parameters, notes."""
    sentences = [*assess_fit(estimate).sentences[:-1], answers_text(estimate)]
    print_parts([Text(words) for words in sentences if words], console)
    print_parts([part for part in errors_section(estimate).parts if not isinstance(part, Section)], console)
    console.print()
    if estimate.selection is not None:
        print_parts([Section("friction", "Friction", list(selection_parts(estimate)))], console)
        console.print()
    print_parts(parameters_section(estimate).parts, console)
    reason = None if estimate.selection is None else estimate.selection.reason  # which stands with the friction
    print_parts([Text(sentence(note), "soft") for note in estimate.notes if note != reason], console)
    console.print()


def _print_summary(estimate: Fit, console: Console, folder: str) -> None:
    """Verdict, errors and friction by joint, warnings, what is next."""
    found = assess_fit(estimate)
    verdict = found.verdict
    console.print(headline_text(estimate.robot.name, found.headline, verdict.grade), soft_wrap=True)
    print_parts([Text(sentence(reason), "caveat") for reason in verdict.reasons], console)
    friction = None if estimate.friction_view is None else friction_summary(estimate)
    print_parts([_summary_table(estimate, friction), Text(_symbols(estimate, friction), "soft"), Text("")], console)
    print_parts([Text(found.sentences[-1])], console)
    print_parts([Text(sentence(words), "caveat") for words in (() if friction is None else friction.drift)], console)
    print_parts([Text(words, "warning") for words in estimate.warnings], console)
    print_steps(verdict, console, folder)


def headline_text(name: str, headline: str, grade: Grade) -> RichText:
    """Robot and verdict on a line, the grade in its color."""
    lead = RichText(f"{printable(name)}  " if name else "", style="bold")
    word, _, rest = headline.partition(":")
    return lead.append(word, style=GRADE_STYLES[grade]).append(f":{printable(rest)}", style="bold")


def print_steps(verdict: Verdict, console: Console, folder: str = "FIT") -> None:
    """Print what to do next."""
    lead = "Next: "
    for step in verdict.next_steps:
        print_parts([Text(f"{lead}{sentence(step.replace('FIT', folder))}")], console)
        lead = "      "


def _summary_table(estimate: Fit, friction: FrictionSummary | None) -> Table:
    """One row per joint: errors before and after, and friction in three numbers."""
    heads, columns, totals = [Head("Joint")], [list(estimate.robot.joint_names)], ["all joints"]

    def add(head: str, cells: Sequence[str], total: str = "") -> None:
        heads.append(Head(head, numeric=True, short=head))
        columns.append(list(cells))
        totals.append(total)

    if estimate.nominal is not None:
        add("before", [percent(share) for share in per_joint(estimate.nominal)], percent(relative(estimate.nominal)))
    crossed, errors = estimate.cross_validation, estimate.train
    if estimate.validation:
        errors = together(estimate.validation.values())
        add("held out", [percent(share) for share in per_joint(errors)], percent(relative(errors)))
    elif crossed is not None:
        add("cross-val.", [percent(share) for share in mean_fold_errors(crossed)], percent(crossed.mean))
    else:
        add("training", [percent(share) for share in per_joint(errors)], percent(relative(errors)))
    add("RMS error", [number(x, 3, zeros=True) for x in rmse(errors)])
    if friction is not None:
        for head, key in (("viscous", "viscous"), ("Coulomb", "coulomb"), ("hysteresis", "hysteresis")):
            add(head, [number(getattr(one, key), 3, zeros=True) for one in friction.joints])
    return Table("", heads, list(zip(*columns, strict=True)), totals, layout="tight")


def _symbols(estimate: Fit, friction: FrictionSummary | None) -> str:
    """One line that explains the columns of the summary."""
    slides = "N" in torque_units(estimate.robot)
    parts = ["before: values of the robot file"] if estimate.nominal is not None else []
    if not estimate.validation and estimate.cross_validation is not None:
        parts.append(f"cross-val.: held-out {estimate.cross_validation.over} in turn")
    parts.append(f"RMS error [N·m{', N' if slides else ''}]{'' if estimate.validation else ' on the training data'}")
    if friction is not None:
        parts.append(
            f"friction: viscous [N·m·s/rad{', N·s/m' if slides else ''}], Coulomb [N·m{', N' if slides else ''}]"
        )
        parts.append("hysteresis: the part of Coulomb friction that builds up at reversals")
    return sentence("; ".join(parts))


def print_validation(validation: Validation, console: Console) -> None:
    """The page an engineer reads after a validation."""
    errors, logs, verdict = validation.errors, validation.comparisons, validation.verdict
    headline = f"{verdict.grade}: {percent(verdict.error)} torque error on {plural(len(logs), 'log')}"
    text = (
        f"Norm of the residual over norm of the torque, each joint while it moves, up to {number(errors.band, 3)} Hz; "
        f"{percent(relative(validation.whole))} with rest included."
    )
    console.print(headline_text("", headline, verdict.grade), soft_wrap=True)
    parts: list[Part] = [*(Text(sentence(reason), "caveat") for reason in verdict.reasons), Text(text)]
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
    if verdict.grade != "good":
        print_steps(verdict, console)


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
