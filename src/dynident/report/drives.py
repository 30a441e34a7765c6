"""Drives as a page and as text: numbers for simulators, and replays beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from dynident.arrays import Array
from dynident.drives.equivalent import IDENTIFIED
from dynident.drives.identification import ESTIMATED_LINKS, DriveEstimate
from dynident.drives.linear import NONNEGATIVE, drive_elements
from dynident.drives.replay import Commands, ReplayErrors
from dynident.information.parameter_estimate import text_table
from dynident.report.charts import Curve, chart
from dynident.report.experiments import linked_section, page_html, verdict_section
from dynident.report.html import Head, Part, Table, Text, bullets
from dynident.report.text import number, sentence
from dynident.robot.model import Robot


def drives_text(found: DriveEstimate) -> str:
    """The page an engineer reads on a terminal."""
    lines = [
        f"Drives of {found.robot.name}, links {_links(found.robot)}",
        "",
        found.table(),
        "",
        delay_sentence(found),
        error_sentence(found),
    ]
    return "\n".join([*lines, *(f"Note: {sentence(note)}" for note in found.notes)])


def delay_sentence(found: DriveEstimate) -> str:
    """By how much commands are late."""
    return f"Delay of commands: {1e3 * found.delay:.3g} ms ± {1e3 * found.std[-1]:.2g} ms"


def error_sentence(found: DriveEstimate) -> str:
    """Replay errors before and after."""
    which = "held-out logs" if found.held_out else "training logs (give --validation LOG for logs that shape nothing)"
    return (
        f"Replay error on {which}: {1e3 * found.after.total:.3g} mrad or mm rms, "
        f"{1e3 * found.before.total:.3g} with {_before(found.robot)}."
    )


def drives_html(found: DriveEstimate, commands: Sequence[Commands], courses: Sequence[Array], command: str = "") -> str:
    """The HTML page, to be written as UTF-8.

    Args:
        found: The drives.
        commands: Stretches that were replayed.
        courses: Their replays, (2, n_samples, n_joints) each: with the values of the robot file, and with those found.
        command: The command that does it again; left out when empty.
    """
    better = f"The replay misses measured positions by {1e3 * found.after.total:.3g} mrad or mm rms"
    verdict = f"{better}, {1e3 * found.before.total:.3g} with {_before(found.robot)}"
    replays = {
        "robot file" if found.robot.default_values != IDENTIFIED else "nearest by torque": [x[0] for x in courses],
        "identified": [x[1] for x in courses],
    }
    sections = [
        verdict_section(verdict, [f"On {'held-out' if found.held_out else 'training'} logs. {delay_sentence(found)}"]),
        linked_section("Replay", _curves(found.robot, commands, replays)),
        linked_section("Drives", [_numbers(found)]),
    ]
    if found.notes:
        sections.append(linked_section("Notes", [bullets([sentence(note) for note in found.notes])]))
    return page_html(f"{found.robot.name}: drives", sections, (), found.warnings, command)


def _numbers(found: DriveEstimate) -> Table:
    std = dict(zip(found.names, found.std.tolist(), strict=True))
    rows = []
    for place, drive in enumerate(drive_elements(found.robot)):
        names = [*(drive.name(symbol) for symbol in NONNEGATIVE), f"bias{drive.number}"]
        cells = [f"{number(found[name], 4)} ± {number(std[name], 2)}" if std[name] < np.inf else "0" for name in names]
        errors = [number(1e3 * float(own.rms[place]), 3) for own in (found.before, found.after)]
        rows.append([drive.joint, *cells, *errors])
    heads = [Head("Joint"), *(Head(word, True) for word in ("Armature", "Damping", "Frictionloss", "Bias"))]
    heads += [Head("Replay before [mrad]", True), Head("after", True)]
    return Table("Per joint, in SI units, with standard deviations", heads, rows)


def _curves(robot: Robot, commands: Sequence[Commands], courses: Mapping[str, Sequence[Array]]) -> list[Part]:
    """A chart for each joint: measured, and each of the replays, (n_samples, n_joints) for each stretch."""
    torque_driven = not any(one.kp.any() for one in commands)
    words = (
        "Driven by the measured torque, the simulated robot begins again at the measured motion after every horizon."
        if torque_driven
        else "From the first sample on, nothing ties the simulated robot to the measured one."
    )
    parts: list[Part] = [Text(words)]
    both: tuple[Literal["residual", "predicted"], ...] = ("residual", "predicted")
    styles = both[2 - len(courses) :]
    # Pieces of a torque-driven replay are one curve; stretches of commands are drawn one behind the other.
    for j, joint in enumerate(robot.moving_joints):
        curves: list[Curve] = []
        times, start = [], 0.0
        for k, one in enumerate(commands):
            times.append(start + one.time)
            start = float(times[-1][-1]) + (0.0 if torque_driven else 1.0)
            if torque_driven and k + 1 < len(commands):
                continue
            if torque_driven:
                time = np.concatenate(times)
                measured = np.concatenate([own.positions[:, j] for own in commands])
                simulated = [np.concatenate([x[:, j] for x in own]) for own in courses.values()]
            else:
                time, measured = times[-1], one.positions[:, j]
                simulated = [own[k][:, j] for own in courses.values()]
            curves.append(Curve("measured", time, measured, "measured"))
            curves += [
                Curve(label, time, own, style) for label, own, style in zip(courses, simulated, styles, strict=True)
            ]
        parts.append(chart(joint.name, curves, x_unit="s", y_unit=joint.unit, key=f"replay{j}"))
    return parts


def replay_text(robot: Robot, errors: Mapping[str, ReplayErrors], labels: Sequence[str]) -> str:
    """Replay errors by joint, of one model or two."""
    rows = [
        (joint.name, *(f"{1e3 * float(x[k]):.3g}" for one in errors.values() for x in (one.rms, one.mad)))
        for k, joint in enumerate(robot.moving_joints)
    ]
    words = ["rms", "mad"] if len(errors) == 1 else ["rms", "mad", "rms against", "mad against"]
    totals = "; ".join(f"{label}: {1e3 * one.total:.4g} mrad or mm rms" for label, one in errors.items())
    head = f"Replay of {', '.join(labels)} over all joints, {totals}"
    return "\n".join([head, "", text_table(("joint", *words), rows, words), "", "in mrad or mm"])


def replay_html(
    robot: Robot,
    commands: Sequence[Commands],
    courses: Mapping[str, Sequence[Array]],
    errors: Mapping[str, ReplayErrors],
    command: str = "",
) -> str:
    """The page of a replay, to be written as UTF-8.

    Args:
        robot: The robot.
        commands: Stretches that were replayed.
        courses: Their replays by model, (1, n_samples, n_joints) each.
        errors: By model.
        command: The command that does it again.
    """
    totals = [f"{label}: {1e3 * one.total:.3g} mrad or mm rms" for label, one in errors.items()]
    rows = [
        [joint.name, *(number(1e3 * float(x[k]), 3) for one in errors.values() for x in (one.rms, one.mad))]
        for k, joint in enumerate(robot.moving_joints)
    ]
    heads = [Head("Joint"), *(Head(f"{word}, {label}", True) for label in errors for word in ("rms", "mad"))]
    sections = [
        verdict_section(totals[0], totals[1:]),
        linked_section(
            "Replay", _curves(robot, commands, {label: [x[0] for x in own] for label, own in courses.items()})
        ),
        linked_section("Errors", [Table("Position errors per joint [mrad or mm]", heads, rows)]),
    ]
    return page_html(f"{robot.name}: replay", sections, (), (), command)


def _before(robot: Robot) -> str:
    """What the values are that a replay begins with."""
    nearest = "the viscous and Coulomb friction nearest to the fit by torque"
    return nearest if robot.default_values == IDENTIFIED else "the values of the robot file"


def _links(robot: Robot) -> str:
    return {ESTIMATED_LINKS: "estimated", IDENTIFIED: "of the fit"}.get(robot.default_values, "as in its file")
