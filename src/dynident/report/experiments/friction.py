"""Friction against velocity as curves: of one joint, and sections through that of two coupled ones (Fig. 2)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.experiments.friction.fitting import VelocityFit
from dynident.experiments.friction.result import VelocityFriction
from dynident.report.charts import Curve, chart
from dynident.report.experiments import Page, linked_section, verdict_section
from dynident.report.html import Head, Html, Part, Table, Text, bullets
from dynident.report.text import number

_POINTS = 200  # of a model's line between two jumps
_SAME = 0.02  # share of the largest velocity within which points belong to one section


@dataclass(frozen=True, eq=False)
class FrictionSection:
    """Friction of one output against the velocity of its own actuated coordinate, the other one constant.

    Attributes:
        output: What torque is of.
        other: The other actuated coordinate; empty for one joint.
        level: Its velocity.
        velocity: (m,) of the points.
        torque: (m,) mean friction of the points [N·m or N].
        parts: (k, 2) velocity and friction of every part of them: the scatter.
        line_velocity: (l,) of the model.
        line: (l,) friction of the model, not a number where it jumps.
        jumps: Velocities at which the model jumps, with the height of each.
    """

    output: str
    other: str
    level: float
    velocity: Array
    torque: Array
    parts: Array
    line_velocity: Array
    line: Array
    jumps: tuple[tuple[float, float], ...]


def sections(fit: VelocityFit) -> tuple[FrictionSection, ...]:
    """One section for one joint; for two, one of each output at the velocity of the other that has most points."""
    if len(fit.group.places) == 1:
        return (section(fit, 0),)
    velocity = _actuated_points(fit)[0]
    return tuple(section(fit, row, _fullest(velocity[:, 1 - row])) for row in (0, 1))


def section(fit: VelocityFit, row: int, level: float = 0.0) -> FrictionSection:
    """Friction of an output against its own velocity.

    Args:
        fit: The fit.
        row: Which output of the group.
        level: Velocity of the other actuated coordinate, where there is one [rad/s or m/s].
    """
    velocity, blocks = _actuated_points(fit)
    chosen = list(range(len(velocity)))
    other = ""
    if velocity.shape[1] > 1:
        across = velocity[:, 1 - row]
        chosen = np.flatnonzero(np.abs(across - level) < _SAME * np.abs(across).max()).tolist()
        other = fit.group.outputs[1 - row]
    own = velocity[chosen, row]
    parts = [np.stack([np.full(len(blocks[k]), velocity[k, row]), blocks[k][:, row]], axis=1) for k in chosen]
    mean = np.array([blocks[k][:, row].mean() for k in chosen])
    drawn = _line(fit, row, level, 1.05 * float(np.abs(velocity[:, row]).max()))
    return FrictionSection(
        fit.group.outputs[row], other, level, own, mean, np.concatenate([np.zeros((0, 2)), *parts]), *drawn
    )


def _actuated_points(fit: VelocityFit) -> tuple[Array, list[Array]]:
    """Actuated velocities (m, n) and parts of friction of all points, those of both directions once for each."""
    velocity, blocks = [], []
    for point in fit.points:
        for sign in (1.0, -1.0) if point.odd else (1.0,):
            velocity.append(sign * (fit.group.coupling @ point.velocity))
            blocks.append(sign * point.blocks)
    return np.array(velocity), blocks


def _fullest(velocities: Array) -> float:
    """The velocity that most points share, the fastest of those."""
    top = float(np.abs(velocities).max())
    near = np.abs(velocities[:, None] - velocities[None]) < _SAME * top
    counts = near.sum(axis=1)
    best = max(range(len(velocities)), key=lambda k: (counts[k], velocities[k]))
    return float(velocities[near[best]].mean())


def _line(fit: VelocityFit, row: int, level: float, top: float) -> tuple[Array, Array, tuple[tuple[float, float], ...]]:
    """The model along a section, broken where an element changes its direction."""
    n = len(fit.group.places)
    inverse = np.linalg.inv(fit.group.coupling)

    def friction(velocities: Array) -> Array:
        actuated = np.full((len(velocities), n), level)
        actuated[:, row] = velocities
        return fit.friction(actuated @ inverse.T, offset=not all(point.odd for point in fit.points))[:, row]

    # An element's velocity along the section is a straight line in that of the output.
    base, slope = np.full(n, level), np.zeros(n)
    base[row], slope[row] = 0.0, 1.0
    at, rise = (fit.group.directions @ inverse @ x for x in (base, slope))
    turns = sorted({float(-a / b) + 0.0 for a, b in zip(at, rise, strict=True) if b and abs(a / b) < top})
    edges, tiny = [-top, *turns, top], 1e-6 * top
    velocities: list[Array] = []
    line: list[Array] = []
    for low, high in itertools.pairwise(edges):
        own = np.linspace(low + tiny, high - tiny, _POINTS)
        velocities += [own, np.array([high])]
        line += [friction(own), np.array([np.nan])]
    heights = [float(np.diff(friction(np.array([x - tiny, x + tiny])))[0]) for x in turns]
    found = tuple((x, h) for x, h in zip(turns, heights, strict=True))
    return np.concatenate(velocities), np.concatenate(line), found


# ----------------------------------------------------------------------------------------------------------------------
# Friction at constant velocities as a page: curves with scatter, what the model misses, points.


def page(found: VelocityFriction) -> Page:
    """Curves with scatter, what the model misses, points."""
    curves: list[Part] = []
    residuals: list[Part] = []
    points: list[Part] = []
    for k, fit in enumerate(found.fits):
        curves += [_curve(fit, one, f"f{k}{row}") for row, one in enumerate(sections(fit))]
        residuals += [_residual(fit, row, f"r{k}{row}") for row in range(len(fit.group.places))]
        points += _points(fit)
    parts = {"Friction against velocity": curves, "What the model misses": residuals, "Points": points}
    if found.notes:
        parts["Notes"] = [bullets(found.notes)]
    shown = [linked_section(title, own) for title, own in parts.items()]
    title = f"{found.robot.name}: friction at constant velocity"
    return title, [verdict_section(_verdict(found), _facts(found)), *shown]


def text(found: VelocityFriction) -> str:
    """The page for a terminal."""
    points = sum(len(fit.points) for fit in found.fits)
    lines = [f"Friction of {found.robot.name} from {points} points at constant velocity, gravity {found.gravity}", ""]
    lines += [found.table(), ""]
    for fit in found.fits:
        misfit = fit.misfit
        for k, name in enumerate(fit.group.outputs):
            chance = "" if misfit.chance is None else f", chance of that {misfit.chance:.2g}"
            lines.append(
                f"{name}: residual {misfit.rms[k]:.3g}, scatter of a point {misfit.scatter[k]:.3g}, friction "
                f"{misfit.friction[k]:.3g} (RMS){chance}"
            )
    return "\n".join([*lines, *(f"Note: {note}" for note in found.notes)])


def _verdict(found: VelocityFriction) -> str:
    joints = [name for fit in found.fits for name in fit.group.joints]
    missed = [name for fit in found.fits if fit.misfit.matters for name in fit.group.joints]
    open_ = [name for fit in found.fits for name in fit.undetermined]
    text = f"Friction of {_joined_names(joints)}"
    if open_:
        return f"{text}: {len(open_)} parameters are not determined."
    if not missed:
        return f"{text}: the model fits within the scatter."
    if len(missed) == len(joints):
        return f"{text}: viscous and Coulomb friction are not all there is."
    return f"{text}: viscous and Coulomb friction are all there is, except on {_joined_names(missed)}."


def _facts(found: VelocityFriction) -> list[str]:
    points = sum(len(fit.points) for fit in found.fits)
    facts = [f"{points} points at constant velocity; gravity {found.gravity}."]
    for fit in found.fits:
        rms = " and ".join(f"{number(x, 2)}" for x in fit.misfit.rms)
        scatter = " and ".join(f"{number(x, 2)}" for x in fit.misfit.scatter)
        facts.append(
            f"{_joined_names(fit.group.joints)}: residual {rms} {_torque_unit(fit)}, scatter of a point {scatter}."
        )
    return facts


def _joined_names(names: list[str] | tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _torque_unit(fit: VelocityFit) -> str:
    return "N" if fit.group.units[0] == "m/s" else "N·m"


def _curve(fit: VelocityFit, one: FrictionSection, key: str) -> Html:
    unit = fit.group.units[0]
    title = f"Friction of {one.output} against its velocity"
    if one.other:
        title += f", {one.other} at {number(one.level, 3)} {unit}"
    curves = [
        Curve("parts of each run", one.parts[:, 0], one.parts[:, 1], "dots"),
        Curve("model", one.line_velocity, one.line, "predicted"),
    ]
    return chart(title, curves, x_unit=unit, y_unit=_torque_unit(fit), key=key)


def _residual(fit: VelocityFit, row: int, key: str) -> Html:
    """Measured minus model at every point, with the scatter of its parts."""
    unit = fit.group.units[0]
    velocity = np.array([(fit.group.coupling @ point.velocity)[row] for point in fit.points])
    parts = [point.blocks[:, row] - point.torque[row] + fit.residual[k, row] for k, point in enumerate(fit.points)]
    spread = np.concatenate([np.full(len(own), v) for v, own in zip(velocity, parts, strict=True)])
    order = np.argsort(velocity, kind="stable")
    zero = np.array([min(velocity.min(), 0.0), max(velocity.max(), 0.0)])
    curves = [
        Curve("parts of each run", spread, np.concatenate(parts), "dots"),
        Curve("model", zero, np.zeros(2), "predicted"),
    ]
    if len(fit.group.places) == 1:  # two joints pass each velocity several times, and a line would go up and down there
        curves.append(Curve("mean of each run", velocity[order], fit.residual[order, row], "residual"))
    title = f"Measured minus model, {fit.group.outputs[row]}"
    return chart(title, curves, x_unit=unit, y_unit=_torque_unit(fit), key=key)


def _points(fit: VelocityFit) -> list[Part]:
    joints, outputs, unit = fit.group.variables, fit.group.outputs, _torque_unit(fit)
    heads = [Head("Run"), *(Head(f"Velocity {name}", True) for name in joints)]
    for name in outputs:
        heads += [Head(f"Friction {name} [{unit}]", True), Head("Scatter", True), Head("Residual", True)]
    rows = []
    for k, point in enumerate(fit.points):
        cells = [point.run, *(number(x, 3) for x in point.velocity)]
        for row in range(len(outputs)):
            cells += [number(x, 3) for x in (point.torque[row], point.scatter[row], fit.residual[k, row])]
        rows.append(cells)
    shown: list[Part] = [Table(f"Points of {_joined_names(fit.group.joints)}", heads, rows)]
    if all(point.odd for point in fit.points):
        shown.append(Text("Each is half the difference of torque there and back over the same positions."))
    return shown
