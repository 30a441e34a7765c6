"""The page of a step voltage test: measured and computed answers, configurations, payload, feedforward check."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.experiments.step.response import displacement
from dynident.experiments.step.result import Configuration, FeedforwardRun, StepResult
from dynident.information.parameter_estimate import text_table
from dynident.report.charts import Curve, Look, chart
from dynident.report.experiments import Page, linked_section, verdict_section
from dynident.report.html import Head, Part, Table, Text
from dynident.report.text import number, percent, plural, sentence
from dynident.robot.model import Robot

_LOOKS: dict[str, Look] = {"computed": "measured", "identified": "predicted"}


def page(result: StepResult) -> Page:
    """Measured and computed answers, configurations, payload, feedforward check."""
    facts = [sentence(note) for note in (*_facts(result), *result.notes)]
    sections = [
        verdict_section(_verdict(result), facts),
        linked_section("Responses", _answers(result)),
        linked_section("Configurations", [_configurations(result)]),
    ]
    if result.combinations is not None:
        sections.append(linked_section("Combinations", [_combinations(result)]))
    if result.payload:
        sections.append(linked_section("Payload", [_payload(result)]))
    if result.tracks:
        sections.append(linked_section("Feedforward check", _tracking(result.robot, result.tracks)))
    return f"{result.robot.name}: step voltage", sections


def text(result: StepResult) -> str:
    """The page for a terminal."""
    lines = [f"Step voltage test of {result.robot.name}: {len(result.configurations)} configurations\n"]
    lines += [result.table(), "", _inertia_text(result)]
    if result.combinations is not None:
        base = result.base
        lines.append("\nCombinations:")
        lines += [f"  {name} = {words}" for name, words in zip(base.names, base.expressions, strict=True)]
    if result.payload:
        lines += ["", _payload_text(result)]
    if result.tracks:
        head = ("feedforward check", "parameters", "largest error")
        lines += ["", text_table(head, _tracking_rows(result.robot, result.tracks), ())]
    lines += ["", *(f"Note: {note}." for note in result.notes)]
    return "\n".join(lines).rstrip()


def _verdict(result: StepResult) -> str:
    joints = len({one.motor for one in result.configurations})
    if result.payload:
        mass = result.payload[0]
        shown = "a mass that is withheld" if mass.value is None else f"{number(mass.value, 4)} kg"
        return f"The tool carries {shown}, from steps with and without it."
    if result.combinations is None:
        return f"A and U of {plural(joints, 'joint')} from one voltage; inertia and friction need a second."
    own = result.combinations
    # One that is zero within its standard deviation has no share of itself that would say anything.
    known = own.restrict([name for name in own.names if name not in own.undetermined])
    shares = known.relative_std[np.abs(known.values) > 2.0 * known.std]
    zero = len(known.names) - len(shares)
    worst = f", the least certain to {percent(float(shares.max()))}" if len(shares) else ""
    worst += f", {zero} of them zero within two standard deviations" if zero else ""
    return (
        f"Friction of {plural(joints, 'joint')} and {len(known.names)} of {len(own.names)} combinations of inertial "
        f"parameters that steps can determine{worst}."
    )


def _facts(result: StepResult) -> list[str]:
    steps = sum(len(one.records) for one in result.configurations)
    how = "the exact solution" if result.terms is None else f"Taylor's series with {result.terms} terms"
    facts = [f"{plural(steps, 'step')} in {plural(len(result.configurations), 'configuration')}, fitted by {how}"]
    lags = [(one.lag, one.lag / one.record) for one in result.friction if one.lag > 0.0]
    if lags:
        slow, share = max(lags)
        facts.append(f"the current follows within L/R = {number(1e3 * slow, 3)} ms, {percent(share)} of the record")
    return facts


def _answers(result: StepResult) -> list[Part]:
    """Fig. 4 of the paper: position against time for each joint, at the first pose in which it was tested."""
    own = result.motors.for_joints(result.robot.joint_names)
    charts: list[Part] = []
    for motor in sorted({one.motor for one in result.configurations}):
        config = next(one for one in result.configurations if one.motor == motor)
        unit, scale = _unit(result.robot, motor)
        curves = []
        for k, (record, fit) in enumerate(zip(config.records, config.responses, strict=True)):
            t = record.time - record.step
            curves.append(Curve("measured", t, scale * (record.position - fit.start), "measured"))
            computed = (
                config.curves[k] - fit.start
                if config.curves
                else _computed_motion(
                    config, float(own.gain[motor]) * record.voltage, record.time - fit.onset, fit.A, fit.U
                )
            )
            curves.append(Curve("computed from the identified numbers", t, scale * computed, "predicted"))
        curves.sort(key=lambda one: one.look)
        volts = " and ".join(dict.fromkeys(f"{record.voltage:.3g} V" for record in config.records))
        title = f"{result.robot.joint_names[motor]}, {volts}"
        charts.append(chart(title, curves, x_unit="s", y_unit=unit, key=f"step{motor}"))
    text = "Position after the step of voltage. The wide line is what the encoder said, the thin one what inertia, "
    text += "damping and Coulomb friction give."
    return [Text(text), *charts]


def _computed_motion(config: Configuration, torque: float, s: Array, A: float, U: float) -> Array:
    if config.numbers is not None:
        numbers = config.numbers
        A = numbers["damping"] / config.inertia
        U = (torque - numbers["coulomb"] * math.copysign(1.0, U) - numbers["offset"]) / config.inertia
    return displacement(np.maximum(s, 0.0), A, U)


def _configurations(result: StepResult) -> Table:
    robot = result.robot
    heads = [Head("Joint"), *(Head(f"{name}", True) for name in robot.position_names)]
    heads += [Head("Steps [V]"), Head("Inertia", True), Head("Std", True), Head("Record [s]", True)]
    heads.append(Head("Residual over noise", True))
    rows = []
    for one in result.configurations:
        places = ["driven" if j == one.motor else number(float(x), 3) for j, x in enumerate(one.pose)]
        left = max(fit.rms / max(fit.noise, 1e-15) for fit in one.responses)
        rows.append(
            [
                robot.joint_names[one.motor],
                *places,
                ", ".join(dict.fromkeys(f"{record.voltage:.3g}" for record in one.records)),
                "" if one.numbers is None else number(one.inertia, 5),
                "" if one.numbers is None else number(one.inertia_std, 2),
                number(min(fit.duration for fit in one.responses), 3),
                number(left, 2),
            ]
        )
    return Table("Where the others were locked, and the inertia that acted on the driven motor", heads, rows)


def _inertia_text(result: StepResult) -> str:
    """The configurations as text."""
    robot = result.robot
    rows = []
    for k, one in enumerate(result.configurations, start=1):
        places = ["driven" if j == one.motor else f"{x:.3g}" for j, x in enumerate(one.pose)]
        numbers = ("", "") if one.numbers is None else (f"{one.inertia:.5g}", f"{one.inertia_std:.2g}")
        rows.append((str(k), robot.joint_names[one.motor], *places, *numbers))
    head = ("", "joint", *robot.position_names, "inertia", "std")
    return text_table(head, rows, (*robot.position_names, "inertia", "std"))


def _combinations(result: StepResult) -> Table:
    base, unknown = result.base, () if result.combinations is None else result.combinations.undetermined
    rows = [
        [name, expression, "no" if name in unknown else "yes"]
        for name, expression in zip(base.names, base.expressions, strict=True)
    ]
    return Table(
        "What the combinations are", [Head("Name"), Head("Over standard parameters"), Head("Determined")], rows
    )


def _payload(result: StepResult) -> Table:
    rows = [
        [one.name, "withheld" if one.value is None else number(one.value, 4), number(one.std, 2), one.unit]
        for one in result.payload
    ]
    heads = [Head("Number"), Head("Value", True), Head("Std", True), Head("Unit")]
    return Table(f"What the tool carries, from {plural(result.payload_pairs, 'pair')} of inertias", heads, rows)


def _payload_text(result: StepResult) -> str:
    """The payload as text."""
    rows = []
    for one in result.payload:
        value = "withheld" if one.value is None else f"{one.value:.4g}"
        rows.append((one.name, value, "" if one.std is None else f"{one.std:.2g}", one.unit))
    return text_table(("payload", "value", "std", "unit"), rows, ("value", "std"))


def _unit(robot: Robot, motor: int) -> tuple[str, float]:
    slides = robot.moving_joints[motor].kind == "prismatic"
    return ("mm", 1e3) if slides else ("deg", math.degrees(1.0))


def _motion_name(robot: Robot, one: FeedforwardRun) -> str:
    alone = robot.joint_names[one.joints[0]]
    return f"{alone} alone" if len(one.joints) == 1 else "together"


def _tracking_rows(robot: Robot, tracks: Sequence[FeedforwardRun]) -> list[tuple[str, ...]]:
    """Model, motion, and the largest error of each joint that moved."""
    rows: list[tuple[str, ...]] = []
    for one in tracks:
        worst = [
            f"{_unit(robot, j)[1] * x:.3g} {_unit(robot, j)[0]}" for j, x in zip(one.joints, one.worst, strict=True)
        ]
        rows.append((_motion_name(robot, one), one.model, ", ".join(worst)))
    return rows


def _tracking(robot: Robot, tracks: Sequence[FeedforwardRun]) -> list[Part]:
    """Figures 5 and 6 of the paper: errors of position and velocity, each joint alone and all together."""
    text = "A cubic motion of 30 degrees in 0.3 s without any feedback: what is left is what the parameters got wrong."
    heads = [Head("Motion"), Head("Parameters"), Head("Largest position error")]
    parts: list[Part] = [Text(text), Table("Feedforward alone", heads, _tracking_rows(robot, tracks))]
    motions = list(dict.fromkeys(one.joints for one in tracks))
    for joints in motions:
        own = [one for one in tracks if one.joints == joints]
        own.sort(key=lambda one: one.model != "computed")  # the wide line below
        for j in joints:
            unit, scale = _unit(robot, j)
            for what, name in (("error", "position error"), ("velocity_error", "velocity error")):
                curves = [
                    Curve(one.model, one.time, scale * getattr(one, what)[:, j], _LOOKS.get(one.model, "residual"))
                    for one in own
                ]
                title = f"{robot.joint_names[j]}{' alone' if len(joints) == 1 else ', all together'}: {name}"
                key = f"track{'-'.join(map(str, joints))}-{j}-{what}"
                y_unit = unit if what == "error" else f"{unit}/s"
                parts.append(chart(title, curves, x_unit="s", y_unit=y_unit, key=key))
    return parts
