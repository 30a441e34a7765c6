"""`motion_html`: an excitation trajectory as one HTML file: limits, joints over time, harmonics, space, uncertainty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident._version import __version__
from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.motion.excitation import ExcitingMotion
from dynident.report.charts import Curve, harmonics_plot, joint_plot, std_plot
from dynident.report.excitation_forecast import assumption_sentences, forecast_sentence, widest_first
from dynident.report.html import Head, Html, Part, Section, Table, Text, definitions, element, figure, legend, page
from dynident.report.space_view import VIEWS, scene, view
from dynident.report.text import number, option, percent, plural, position_units, sentence, torque_units
from dynident.robot.model import Robot

_RATE_HZ = 1000.0  # at which limits are evaluated
_States = tuple[Array, Array, Array, Array | None]  # position, velocity, acceleration, torque where it is known


def motion_html(motion: ExcitingMotion, robot: Robot, command: str = "") -> str:
    """The page of an excitation trajectory.

    Args:
        motion: The motion; every number of the page comes from it.
        robot: Its robot.
        command: The command that makes it again; left out when empty.

    Returns:
        The page, to be written as UTF-8.
    """
    time = np.linspace(0.0, motion.duration, round(_RATE_HZ * motion.duration) + 1)
    q, dq, ddq = motion.trajectory.sample(time)
    states = (q, dq, ddq, _torque(motion, robot, (q, dq, ddq)))
    series = motion.trajectory
    joints, harmonics = plural(series.n_joints, "joint"), plural(series.harmonics, "harmonic")
    facts = f"{joints}, {motion.duration:g} s, {harmonics} of {number(series.frequency, 4)} Hz, at rest at both ends"
    sections = [
        _verdict_section(motion),
        Section("limits", "Limits", _limits(motion, robot, states), "Limits"),
        Section("joints", "Joints over time", _joints(motion, robot, time, states), "Joints"),
        Section("harmonics", "Harmonics", _harmonics(motion, robot), "Harmonics"),
        Section("space", "In space", _space(motion, robot), "Space"),
        Section("deviations", "Predicted uncertainties", _uncertainties(motion), "Uncertainties"),
        Section("options", "Options", _options(motion, command), "Options"),
    ]
    return page(f"{robot.name}: excitation trajectory", sections, version=__version__, facts=facts)


def _torque(motion: ExcitingMotion, robot: Robot, states: tuple[Array, Array, Array]) -> Array | None:
    """(n_samples, n_joints) of the robot's own values; None where it has none."""
    values = motion.asked.values
    if values is None and not any(robot.value_set().values()):
        return None
    return inverse_dynamics(robot, *states, values=values)


def _verdict_section(motion: ExcitingMotion) -> Section:
    worst = f"Largest relative standard deviation: {_worst(motion, motion.std)}"
    if motion.before is not None:
        worst += f"; before, {_worst(motion, motion.before)}"
    texts = [
        f"{_criterion(motion)}log det of the information {number(motion.log_determinant, 5)}, condition number of the "
        f"weighted rows {number(motion.condition, 3)} ({motion.evaluations} evaluations, {motion.seconds:.1f} s).",
        f"{worst}.",
        *assumption_sentences(motion),
    ]
    caveats = [sentence(words) for words in motion.warnings]
    if motion.interrupted:
        caveats.append("The search was interrupted; this is the best motion until then.")
    return Section(
        "verdict", forecast_sentence(motion), [*map(Text, texts), *(Text(words, "caveat") for words in caveats)]
    )


def _criterion(motion: ExcitingMotion) -> str:
    """What was optimized; the determinant and the condition are shown anyway."""
    names = {
        "smallest": f"smallest singular value, now {number(motion.value, 4)}",
        "interval": f"largest relative standard deviation, now {percent(motion.value)}",
    }
    return f"Optimized for the {names.get(motion.criterion, motion.criterion)}; "


def _worst(motion: ExcitingMotion, std: Array) -> str:
    shares = std / np.abs(motion.values)
    if np.isnan(shares).all():
        return "not known, as no value is"
    worst = int(np.nanargmax(shares))
    known = percent(float(shares[worst])) if np.isfinite(shares[worst]) else "not determined"
    return f"{motion.names[worst]}, {known}"


def _limits(motion: ExcitingMotion, robot: Robot, states: _States) -> list[Part]:
    """How much of each limit every joint uses, and the margin of the others."""
    q, dq, ddq, torque = states
    limits = motion.limits
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    used = {"position": np.abs(q - middle).max(0) / half, "velocity": np.abs(dq).max(0) / limits.velocity}
    if np.isfinite(limits.acceleration).any():
        used["acceleration"] = np.abs(ddq).max(0) / limits.acceleration
    if torque is not None and np.isfinite(limits.effort).any():
        used["torque"] = np.abs(torque).max(0) / limits.effort
    heads = [Head("Joint"), *(Head(text.capitalize(), True) for text in (*used, "torque noise assumed"))]
    units = torque_units(robot)
    noise = motion.noise if len(motion.noise) == len(units) else np.full(len(units), np.nan)
    assumed = [f"{number(x, 3)} {unit}" if np.isfinite(x) else "" for x, unit in zip(noise, units, strict=True)]
    rows = [
        [name, *(percent(float(own[i])) if own[i] > 0.0 else "no limit" for own in used.values()), assumed[i]]
        for i, name in enumerate(robot.joint_names)
    ]
    caption = (
        f"Share used at 1 kHz, of limits that are {number(100.0 * motion.asked.safety, 3)} % of the robot's limits"
    )
    closest = f"Closest to the limits at 1 kHz: {'; '.join(motion.closest.values())}."
    return [Table(caption, heads, rows), Text(closest, "soft")]


def _joints(motion: ExcitingMotion, robot: Robot, time: Array, states: _States) -> list[Html]:
    q, dq, ddq, torque = states
    limits, parts = motion.limits, [legend(("predicted", "motion"), ("limit", "limit that it keeps"))]
    units = zip(robot.joint_names, position_units(robot), torque_units(robot), strict=True)
    for i, (name, unit, torque_unit) in enumerate(units):
        shown = [
            (f"position [{unit}]", q, (limits.lower[i], limits.upper[i])),
            (f"velocity [{unit}/s]", dq, (-limits.velocity[i], limits.velocity[i])),
            (f"acceleration [{unit}/s²]", ddq, (-limits.acceleration[i], limits.acceleration[i])),
        ]
        if torque is not None:
            effort = limits.effort[i] if motion.asked.torque else np.inf
            what = "force" if torque_unit == "N" else "torque"
            shown.append((f"{what} [{torque_unit}]", torque, (-effort, effort)))
        curves = [Curve(words, time, values[:, i], "predicted", ends) for words, values, ends in shown]
        parts.append(figure(name, joint_plot(name, curves, f"j{i}")))
    return parts


def _harmonics(motion: ExcitingMotion, robot: Robot) -> list[Html]:
    series, units = motion.trajectory, position_units(robot)
    sizes = np.hypot(series.sine, series.cosine)  # (n_harmonics, n_joints)
    figures: list[Html] = []
    for i, (name, unit) in enumerate(zip(robot.joint_names, units, strict=True)):
        most = float(sizes[:, [other == unit for other in units]].max())
        figures.append(figure(name, harmonics_plot(name, sizes[:, i], series.frequency, most, unit, f"h{i}")))
    return figures


def _space(motion: ExcitingMotion, robot: Robot) -> list[Html]:
    asked = motion.asked
    boxes = np.array(asked.boxes, dtype=float).reshape(-1, 2, 3)
    shown = scene(robot, motion.trajectory, asked.floor, boxes)
    words = "path of the tool" if robot.tool is not None else "path of the last joint"
    marks = [("predicted", words), ("link", "links at the start, fainter on the way")]
    if asked.floor is not None or len(boxes):
        marks.append(("limit", "floor and boxes to keep away from"))
    return [legend(*marks), *(figure(name.capitalize(), view(shown, name, f"v{i}")) for i, name in enumerate(VIEWS))]


def _uncertainties(motion: ExcitingMotion) -> list[Part]:
    shares, order = motion.relative_std, widest_first(motion)
    order = order[~np.isnan(shares[order])]
    before = None if motion.before is None else motion.before / np.abs(motion.values)
    every = np.concatenate([shares, [] if before is None else before])
    known = every[np.isfinite(every) & (every > 0.0)]
    low, high = (10.0 ** np.floor(np.log10(known.min())), known.max()) if len(known) else (0.01, 1.0)
    ends = float(low), float(max(10.0 ** np.ceil(np.log10(high)), 10.0 * low))
    text = (
        "Standard deviations that identify will state for a log of this motion, as shares of the parameters' values. "
        "They hold for white torque noise as assumed above; on a real robot, friction that the model does not have "
        "makes them larger, which the residuals of a fit show (--noise FIT)."
    )
    marks = [("predicted", "predicted standard deviation")]
    marks += [] if before is None else [("ring", "before this motion")]
    parts: list[Part] = [Text(text), legend(*marks)]
    half = -(-len(order) // 2)
    for i, (own, words) in enumerate(((order[:half], "Largest"), (order[half:], "Smallest"))):
        if len(own):
            rings = None if before is None else before[own]
            parts.append(figure(words, std_plot([motion.names[k] for k in own], shares[own], ends, f"d{i}", rings)))
    return [*parts, Section("", "All numbers", [_std_table(motion, widest_first(motion))])]


def _std_table(motion: ExcitingMotion, order: NDArray[np.intp]) -> Table:
    def shown(value: float) -> str:
        return number(value, 3, zeros=True) if np.isfinite(value) else "not determined"

    columns = {
        "value": ["no value" if np.isnan(x) else number(x, 3) for x in motion.values],
        "std": [shown(x) for x in motion.std],
        "unit": list(motion.units),
        "relative": ["" if np.isnan(x) else percent(float(x)) for x in motion.relative_std],
    }
    if motion.before is not None:
        columns["before"] = [shown(x) for x in motion.before]
    heads = [Head("Parameter"), *(Head(text.capitalize(), True) for text in columns)]
    rows = [[motion.names[i], *(cells[i] for cells in columns.values())] for i in order]
    return Table("Predicted standard deviations of the base parameters, in their units", heads, rows)


def _options(motion: ExcitingMotion, command: str) -> list[Html]:
    names = ("criterion", "model", "terms", "rate", "safety", "floor", "clearance", "radius", "starts", "kicks", "seed")
    values = {name: getattr(motion.asked, name) for name in names} | {"criterion": motion.criterion}
    listed = definitions((name, option(value)) for name, value in values.items() if value is not None)
    return [element("code", command, class_="command"), listed] if command else [listed]
