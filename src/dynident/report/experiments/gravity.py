"""Gravity moments: torque against angle with the fit as in the paper, friction, comparison with a fit."""

from __future__ import annotations

import math

import numpy as np

from dynident.experiments.gravity.comparison import MomentComparison
from dynident.experiments.gravity.fourier import FourierFit, frictions
from dynident.experiments.gravity.result import GravityMoments
from dynident.report.charts import Curve, chart
from dynident.report.experiments import Page, linked_section, verdict_section
from dynident.report.html import Head, Html, Part, Table, Text, bullets, element
from dynident.report.text import number
from dynident.robot.model import Robot

_POINTS = 200


def page(found: GravityMoments) -> Page:
    """The page: moments, torque against angle, friction, coefficients, and the comparison with a fit."""
    robot = found.robot
    torque: list[Part] = [
        Text(
            "Torque of each joint while it sweeps slowly there and back, the others held. Half the sum of both ways "
            "holds the weight; the line is its Fourier series."
        ),
        *(_torque_chart(robot, one, k) for k, one in enumerate(found.runs)),
        _coefficients(found),
    ]
    friction: list[Part] = [
        Text("Half the difference of both ways: what the averages took away."),
        *(_friction_chart(robot, one, k) for k, one in enumerate(found.runs)),
        _friction(found),
    ]
    sections = [
        verdict_section(_verdict(found), _facts(found)),
        linked_section("Torque against angle", torque),
        linked_section("Friction", friction),
    ]
    if found.comparison is not None:
        sections.append(linked_section("Beside the fit", _comparison(found.comparison)))
    rows = [[name, element("code", text)] for name, text in zip(found.names, found.base.expressions, strict=True)]
    expressions = Table("Over the standard parameters of the links", [Head("Moment"), Head("Stands for")], rows)
    sections.append(linked_section("What the moments stand for", [expressions]))
    remarks = [*found.notes, *(f"Left out: joint {name} {why}." for name, why in found.skipped.items())]
    if remarks:
        sections.append(linked_section("Notes", [bullets(remarks)]))
    return f"{robot.name}: gravity moments", sections


def text(found: GravityMoments) -> str:
    """The page for a terminal."""
    parts = [
        f"Gravity moments of {found.robot.name} from {len(found.runs)} slow runs, tip to base",
        "Torque = a0 + a1 sin q + b1 cos q [N·m], averaged over both ways:\n" + found.joint_table(),
        "Moments:\n" + found.table(),
    ]
    expressions = dict(zip(found.names, found.base.expressions, strict=True))
    lines = [f"{one.name} = {expressions[one.name]}" for one in found.estimates if one.name != expressions[one.name]]
    if lines:
        parts.append("\n".join(lines))
    if found.comparison is not None:
        lines = ["Beside the fit (Table 5):", found.comparison.table()]
        lines += [one.reason for one in found.comparison.links if one.reason]
        parts.append("\n".join([*lines, *found.comparison.notes]))
    notes = [*found.notes, *(f"left out: joint {name} {why}" for name, why in found.skipped.items())]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def _verdict(found: GravityMoments) -> str:
    shown = f"{len(found.estimates)} mass moments from {len(found.runs)} slow runs"
    if found.comparison is None:
        return f"{shown}."
    if found.comparison.agrees:
        return f"{shown}; they agree with the fit."
    count = sum(not one.agrees for one in found.comparison.links)
    return f"{shown}; {count} of {len(found.comparison.links)} links disagree with the fit."


def _facts(found: GravityMoments) -> list[str]:
    facts = [
        "From the tip inwards: when a joint is swept, the moments of the links beyond it are known already and only "
        "those of its own link are new."
    ]
    if found.true and len(found.estimates):
        off = max(abs(one.value - (one.true or 0.0)) for one in found.estimates)
        facts.append(
            f"The simulated machine's own values are shown beside; the largest difference is {number(off, 2)}."
        )
    return facts


def _degrees(robot: Robot, one: FourierFit, values: np.ndarray) -> tuple[np.ndarray, str]:
    """Positions of the swept joint as they are drawn, and their unit."""
    return (np.degrees(values), "degrees") if one.order else (values, "m")


def _title(robot: Robot, one: FourierFit) -> str:
    run = one.run
    others = zip(robot.position_names, run.pose, strict=True)
    held = ", ".join(f"{name} {number(float(x), 3)}" for i, (name, x) in enumerate(others) if i != run.joint)
    return f"{robot.joint_names[run.joint]}" + (f" with {held}" if held else "")


def _unit(one: FourierFit) -> str:
    return "N·m" if one.order else "N"


def _torque_chart(robot: Robot, one: FourierFit, k: int) -> Html:
    run = one.run
    places, unit = _degrees(robot, one, run.angles)
    line = np.linspace(*run.range, _POINTS)
    curves = [
        Curve("each way", places, run.mean(run.tau, ahead=True), "measured"),
        Curve("each way", places, run.mean(run.tau, ahead=False), "measured"),
        Curve("mean of both ways", places, run.half_sum(run.tau), "dots"),
        Curve(f"Fourier series of order {one.order}", _degrees(robot, one, line)[0], one.torque(line), "predicted"),
    ]
    return chart(_title(robot, one), curves, x_unit=unit, y_unit=_unit(one), key=f"torque{k}")


def _friction_chart(robot: Robot, one: FourierFit, k: int) -> Html:
    run = one.run
    friction = frictions(one)
    places, unit = _degrees(robot, one, run.angles)
    flat = np.full(2, one.friction.level)
    curves = [
        Curve("half the difference of both ways", places, friction, "dots"),
        Curve("its mean", places[[0, -1]], flat, "residual"),
    ]
    return chart(f"Friction of {_title(robot, one)}", curves, x_unit=unit, y_unit=_unit(one), key=f"friction{k}")


def _coefficients(found: GravityMoments) -> Table:
    heads = [
        Head("Joint"),
        Head("Range"),
        *(Head(name, True) for name in ("a0", "a1", "b1", "Std", "Largest at")),
    ]
    heads += [Head("Residual", True), Head("Condition", True), Head("Harmonics 2, 3")]
    rows = []
    for fit in found.runs:
        ends, unit = _degrees(found.robot, fit, np.array(fit.run.range))
        cells: list[object] = [
            found.robot.joint_names[fit.run.joint],
            f"{ends[0]:.0f} to {ends[1]:.0f} {unit}" if fit.order else f"{ends[0]:.3g} to {ends[1]:.3g} {unit}",
        ]
        if fit.order:
            cells += [number(float(x), 4) for x in fit.coefficients[:3]]
            cells += [number(float(max(fit.std[1:3])), 2), f"{math.degrees(fit.harmonic(1)[2]):.1f}°"]
        else:
            cells += [number(float(fit.coefficients[0]), 4), "", "", number(float(fit.std[0]), 2), ""]
        sizes = [
            f"{number(one.harmonic(one.order)[0], 2)} ± {number(one.harmonic(one.order)[1], 2)}"
            for one in fit.orders[1:]
        ]
        rows.append([*cells, number(fit.rms, 2), number(fit.condition, 3), "; ".join(sizes)])
    caption = "Coefficients of torque = a0 + a1 sin q + b1 cos q [N·m]; a0 is an offset, no weight"
    return Table(caption, heads, rows)


def _friction(found: GravityMoments) -> Table:
    heads = [
        Head("Joint"),
        Head("Friction", True),
        Head("Per load", True),
        Head("Depends on the load"),
        Head("Stood still", True),
    ]
    rows = []
    for one in found.runs:
        mine = one.friction
        slope = f"{number(mine.slope, 2)} ± {number(mine.slope_std, 2)}" if math.isfinite(mine.slope_std) else ""
        stuck = f"{100.0 * one.run.sticking:.1f} %"
        name = found.robot.joint_names[one.run.joint]
        rows.append([name, f"{number(mine.level, 4)} {_unit(one)}", slope, "yes" if mine.loaded else "no", stuck])
    return Table("Friction at the velocity of the sweeps", heads, rows)


def _comparison(compared: MomentComparison) -> list[Part]:
    heads = [
        Head("Parameter"),
        *(Head(x, True) for x in ("Gravity", "Std", "Fit", "Fit's std", "Difference")),
    ]
    rows = [
        [name, number(own, 5), number(std, 2), number(other, 5), number(more, 2), number(own - other, 2)]
        for name, own, std, other, more in compared.rows()
    ]
    parts: list[Part] = [Table("Mass moments of both methods, as Table 5 of the paper", heads, rows)]
    turns = []
    for one in compared.links:
        angle = "" if one.angle is None else f"{math.degrees(one.angle):.2f}°"
        ratio = "" if one.ratio is None else f"{one.ratio:.4f}"
        turns.append([", ".join(one.names), angle, ratio, "yes" if one.agrees else "no"])
    heads = [Head("Link's moments"), Head("Angle between", True), Head("Ratio of lengths", True), Head("Agree")]
    parts.append(Table("The two moment vectors of each link", heads, turns))
    remarks = [*(one.reason for one in compared.links if one.reason), *compared.notes]
    return [*parts, *([bullets(remarks)] if remarks else [])]
