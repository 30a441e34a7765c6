"""Drives as a page and as text: numbers for simulators, and replays beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.drives.identification import ESTIMATED_LINKS, DriveEstimate
from dynident.drives.linear import NONNEGATIVE, drive_elements
from dynident.drives.replay import Commands, ReplayErrors
from dynident.information.parameter_estimate import text_table
from dynident.report.charts import Curve, chart
from dynident.report.experiments import linked_section, page_html, verdict_section
from dynident.report.html import Head, Part, Section, Table, Text, bullets
from dynident.report.text import number, sentence
from dynident.robot.model import Robot


def drives_text(found: DriveEstimate) -> str:
    """The page an engineer reads on a terminal."""
    lines = [
        f"Drives of {found.robot.name}, links {_links(found.robot)}",
        "",
        found.table(),
        "",
        f"Delay of commands: {1e3 * found.delay:.3g} ms ± {1e3 * found.std[-1]:.2g} ms",
        error_sentence(found),
    ]
    return "\n".join([*lines, *(f"Note: {sentence(note)}" for note in found.notes)])


def error_sentence(found: DriveEstimate) -> str:
    """Replay errors before and after."""
    which = "held-out logs" if found.held_out else "training logs (give --validation LOG for logs that shape nothing)"
    return (
        f"Replay error on {which}: {1e3 * found.after.total:.3g} mrad or mm rms, "
        f"{1e3 * found.before.total:.3g} with the values of the robot file."
    )


def drives_html(found: DriveEstimate, commands: Sequence[Commands], courses: Sequence[Array], command: str = "") -> str:
    """The HTML page, to be written as UTF-8.

    Args:
        found: The drives.
        commands: Stretches that were replayed.
        courses: Their replays, (2, n_samples, n_joints) each: with the values of the robot file, and with those found.
        command: The command that does it again; left out when empty.
    """
    better = f"The replay misses measured positions by {1e3 * found.after.total:.3g} mrad rms"
    verdict = f"{better}, {1e3 * found.before.total:.3g} with the values of the robot file"
    sections = [
        verdict_section(verdict, [error_sentence(found)]),
        linked_section("Replay", _curves(found.robot, commands, courses)),
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


def _curves(robot: Robot, commands: Sequence[Commands], courses: Sequence[Array]) -> list[Part]:
    """A chart for each joint: measured, with the file's values, with those found."""
    parts: list[Part] = [Text("From the first sample on, nothing ties the simulated robot to the measured one.")]
    for j, joint in enumerate(robot.moving_joints):
        curves: list[Curve] = []
        for one, course in zip(commands, courses, strict=True):
            start = curves[-1].x[-1] + 1.0 if curves else 0.0
            time = start + one.time
            curves += [
                Curve("measured", time, one.positions[:, j], "measured"),
                Curve("robot file", time, course[0, :, j], "residual"),
                Curve("identified", time, course[1, :, j], "predicted"),
            ]
        parts.append(chart(joint.name, curves, x_unit="s", y_unit=joint.unit, key=f"replay{j}"))
    return parts


def replay_text(robot: Robot, errors: ReplayErrors, labels: Sequence[str]) -> str:
    """Replay errors by joint."""
    rows = [
        (joint.name, f"{1e3 * float(rms):.3g}", f"{1e3 * float(mad):.3g}")
        for joint, rms, mad in zip(robot.moving_joints, errors.rms, errors.mad, strict=True)
    ]
    head = f"Replay of {', '.join(labels)}: {1e3 * errors.total:.4g} mrad or mm rms over all joints"
    return "\n".join([head, "", text_table(("joint", "rms", "mad"), rows, ("rms", "mad")), "", "in mrad or mm"])


def replay_sections(robot: Robot, commands: Sequence[Commands], courses: Sequence[Array]) -> list[Section]:
    """The curves of a replay."""
    return [linked_section("Replay", _curves(robot, commands, courses))]


def _links(robot: Robot) -> str:
    return "estimated" if robot.default_values == ESTIMATED_LINKS else "as in its file"
