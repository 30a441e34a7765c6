"""`velocity_html`: friction at constant velocities as a page: curves with scatter, what the model misses, points."""

from __future__ import annotations

import numpy as np

from dynident.experiments.velocity.figure import Section, sections
from dynident.experiments.velocity.fit import VelocityFit
from dynident.experiments.velocity.result import VelocityFriction
from dynident.report.charts import Curve, chart
from dynident.report.experiment import experiment_html
from dynident.report.markup import Head, Html, bullets, element, paragraphs, table
from dynident.report.words import number


def velocity_html(found: VelocityFriction, *, command: str = "") -> str:
    """The page of a velocity test.

    Args:
        found: What it found.
        command: The command that does it again.
    """
    parts: dict[str, list[Html]] = {"Friction against speed": [], "What the model misses": [], "Points": []}
    for k, fit in enumerate(found.fits):
        parts["Friction against speed"] += [_curve(fit, one, f"f{k}{row}") for row, one in enumerate(sections(fit))]
        parts["What the model misses"] += [_residual(fit, row, f"r{k}{row}") for row in range(len(fit.group.places))]
        parts["Points"].append(_points(fit))
    if found.notes:
        parts["Notes"] = [element("div", bullets(found.notes))]
    return experiment_html(
        f"{found.robot}: friction at constant velocity",
        _verdict(found),
        _facts(found),
        parts,
        estimates=found.estimates,
        warnings=found.warnings,
        command=command,
    )


def _verdict(found: VelocityFriction) -> str:
    joints = [name for fit in found.fits for name in fit.group.joints]
    missed = [name for fit in found.fits if fit.misfit.matters for name in fit.group.joints]
    open_ = [name for fit in found.fits for name in fit.undetermined]
    text = f"Friction of {_listed(joints)}"
    if open_:
        return f"{text}: {len(open_)} parameters are not determined."
    if not missed:
        return f"{text}: the model fits within the scatter."
    if len(missed) == len(joints):
        return f"{text}: viscous and Coulomb friction are not all there is."
    return f"{text}: viscous and Coulomb friction are all there is, except on {_listed(missed)}."


def _facts(found: VelocityFriction) -> list[str]:
    points = sum(len(fit.points) for fit in found.fits)
    facts = [f"{points} points at constant velocity; gravity {found.gravity}."]
    for fit in found.fits:
        rms = " and ".join(f"{number(x, 2)}" for x in fit.misfit.rms)
        scatter = " and ".join(f"{number(x, 2)}" for x in fit.misfit.scatter)
        facts.append(f"{_listed(fit.group.joints)}: residual {rms} {_torque_unit(fit)}, scatter of a point {scatter}.")
    return facts


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _torque_unit(fit: VelocityFit) -> str:
    return "N" if fit.group.units[0] == "m/s" else "N·m"


def _curve(fit: VelocityFit, one: Section, key: str) -> Html:
    unit = fit.group.units[0]
    title = f"Friction of {one.output} against its speed"
    if one.other:
        title += f", {one.other} at {number(one.level, 3)} {unit}"
    curves = [
        Curve("parts of each run", one.parts[:, 0], one.parts[:, 1], "dots"),
        Curve("model", one.line_speed, one.line, "predicted"),
    ]
    return chart(title, curves, x_unit=unit, y_unit=_torque_unit(fit), key=key)


def _residual(fit: VelocityFit, row: int, key: str) -> Html:
    """Measured minus model at every point, with the scatter of its parts."""
    unit = fit.group.units[0]
    speed = np.array([(fit.group.coupling @ point.speed)[row] for point in fit.points])
    parts = [point.blocks[:, row] - point.torque[row] + fit.residual[k, row] for k, point in enumerate(fit.points)]
    spread = np.concatenate([np.full(len(own), v) for v, own in zip(speed, parts, strict=True)])
    order = np.argsort(speed, kind="stable")
    zero = np.array([min(speed.min(), 0.0), max(speed.max(), 0.0)])
    curves = [
        Curve("parts of each run", spread, np.concatenate(parts), "dots"),
        Curve("model", zero, np.zeros(2), "predicted"),
    ]
    if len(fit.group.places) == 1:  # two joints pass each speed several times, and a line would go up and down there
        curves.append(Curve("mean of each run", speed[order], fit.residual[order, row], "residual"))
    title = f"Measured minus model, {fit.group.outputs[row]}"
    return chart(title, curves, x_unit=unit, y_unit=_torque_unit(fit), key=key)


def _points(fit: VelocityFit) -> Html:
    joints, outputs, unit = fit.group.variables, fit.group.outputs, _torque_unit(fit)
    heads = [Head("Run"), *(Head(f"Speed {name}", True) for name in joints)]
    for name in outputs:
        heads += [Head(f"Friction {name} [{unit}]", True), Head("Scatter", True), Head("Residual", True)]
    rows = []
    for k, point in enumerate(fit.points):
        cells = [point.run, *(number(x, 3) for x in point.speed)]
        for row in range(len(outputs)):
            cells += [number(x, 3) for x in (point.torque[row], point.scatter[row], fit.residual[k, row])]
        rows.append(cells)
    both = all(point.odd for point in fit.points)
    caption = f"Points of {_listed(fit.group.joints)}"
    told = (
        paragraphs("Each is half the difference of torque there and back over the same positions.")
        if both
        else Html("")
    )
    return element("div", table(caption, heads, rows), told)
