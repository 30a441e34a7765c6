"""Natural oscillations as one HTML file."""

from __future__ import annotations

import math

import numpy as np

from dynident.arrays import Array
from dynident.experiments.oscillation.procedure import Oscillation
from dynident.experiments.oscillation.swings import StageResult, Swing
from dynident.report.charts import Curve, Look, chart
from dynident.report.experiments import Page, linked_section, verdict_section
from dynident.report.html import Head, Html, Table, Text
from dynident.report.text import number, position_units
from dynident.robot.model import Robot

_SHOWN = 4  # swings that are drawn
_LOOKS: tuple[Look, ...] = ("measured", "predicted", "residual")
_METHOD = (
    "Gravity stage: only the model's weight, Coriolis and centrifugal torque are sent. The product of the squared "
    "frequencies is det(K - K~) / det M; it vanishes where the weight is right.",
    "Inertia stage: proportional control; the squared frequencies are kp times the eigenvalues of M^-1 M~, all of them "
    "kp where weight and inertia are right. Frequencies, mode shapes and mean positions of all swings are linear in "
    "weights and inertias, which are found together.",
)


def page(found: Oscillation) -> Page:
    """Swings of each stage, and the method."""
    robot = found.robot
    known = [one for one in found.estimates if np.isfinite(one.std)]
    count = sum(len(stage.steps) for stage in found.stages)
    verdict = f"{len(known)} of {len(found.estimates)} parameters found from {count} swings"
    facts = [f"{stage.name.capitalize()} stage: {'; '.join(stage.notes)}." for stage in found.stages]
    sections = [verdict_section(verdict, facts)]
    for stage in found.stages:
        sections.append(linked_section(f"{stage.name.capitalize()} stage", [*_pictures(stage, robot), _steps(stage)]))
    sections.append(linked_section("Method", [Text(words) for words in _METHOD]))
    return f"{robot.name}: natural oscillations", sections


def text(found: Oscillation) -> str:
    """The page for a terminal."""
    lines = [f"{found.robot.name}: natural oscillations\n", found.table(), ""]
    lines += [f"{stage.name} stage ({stage.search}): {'; '.join(stage.notes)}" for stage in found.stages]
    return "\n".join(lines)


def _pictures(stage: StageResult, robot: Robot) -> list[Html]:
    """The first and the last swings: every joint about its mean, in degrees where none slides."""
    drawn = [step for step in stage.steps if len(step.run.time) > 1]
    chosen = drawn if len(drawn) <= _SHOWN else [*drawn[: _SHOWN // 2], *drawn[-_SHOWN // 2 :]]
    return [_picture(stage, step, robot, place) for place, step in enumerate(chosen)]


def _picture(stage: StageResult, step: Swing, robot: Robot, place: int) -> Html:
    joints = robot.joint_names
    turns = "m" not in position_units(robot)
    scale, unit = (math.degrees(1.0), "deg") if turns else (1.0, "rad or m")
    thinned = slice(None, None, max(1, len(step.run.time) // 600))
    time = step.run.time[thinned]
    curves = [
        Curve(name, time, np.asarray(scale * (x - x.mean()), dtype=np.float64), look)
        for name, x, look in zip(joints, step.run.q[thinned].T, _LOOKS, strict=False)
    ]
    which = "" if len(joints) <= len(_LOOKS) else f", first {len(_LOOKS)} joints"
    key = f"{stage.name}-{place}"
    return chart(f"{step.run.label}: {step.state}{which}", curves, x_unit="s", y_unit=f"{unit} about the mean", key=key)


def _steps(stage: StageResult) -> Table:
    heads = [
        Head("Run"),
        *(Head(group.name, True) for group in stage.groups),
        Head("Squared frequencies [1/s²]"),
        Head("State"),
    ]
    rows = [
        [step.run.label, *(number(float(x), 5) for x in step.sent), _list(step.squares), step.state]
        for step in stage.steps
    ]
    return Table("Every swing: what was sent, and how it answered", heads, rows)


def _list(values: Array) -> str:
    return ", ".join(number(float(x), 5) for x in values)
