"""Friction on the page: selected terms and why, curves, hysteresis, load, worth of each group, drift between logs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.estimate.equivalent_friction import disagree, drift_notes, friction_summary, friction_torques
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION, LOAD, term_name
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.records import GroupEvidence
from dynident.report.charts import Curve, curves_svg
from dynident.report.fit.summary import log_names
from dynident.report.html import (
    Cell,
    Figure,
    Head,
    Part,
    Section,
    Table,
    Text,
    concatenate,
    element,
    figure,
    legend,
)
from dynident.report.text import number, percent, sentence, torque_units
from dynident.report.thresholds import THRESHOLDS

_BASIC = ("Fv", "Fc", "Fo")
_HARDLY = 0.1  # coefficients of a group that the data determines, below which it might as well not be there
_WORDS = {
    "Fv": "viscous",
    "Fc": "Coulomb",
    "Fo": "constant offset",
    **{law.name: law.words for law in FRICTION_LAWS.values()},
    "Ia": "rotor inertia",
    "moments": "masses and first moments",
    "inertias": "other inertia of the links",
    "tilt": "base not upright",
    "zero": "joint positions off by a constant",
    TemperatureFriction.name: "viscous and Coulomb friction that change with the temperature of the joint",
}


def group_words(group: str) -> str:
    """What a group of columns is, in words."""
    name, _, scales = group.partition("@")[0].partition("(")
    scales = "" if name == TemperatureFriction.name else scales
    per_scale = FRICTION_LAWS[name].named_per_scale if name in FRICTION_LAWS else 1.0
    numbers = [float(x) * per_scale for x in scales.rstrip(")").split(",") if x]
    return _WORDS.get(name, name).format(" and ".join(number(x, 3) for x in numbers))


def determined_words(found: GroupEvidence) -> str:
    """How many coefficients of a group the data determines."""
    return f"{found.determined:.1f} of {found.n_columns}"


def friction_section(estimate: Fit) -> Section | None:
    """Everything about friction; nothing for a model without."""
    view = estimate.friction_view
    if estimate.selection is None and view is None:
        return None
    parts = list(selection_parts(estimate))
    if view is None:
        parts.append(Text("This fit holds no friction data to show.", "soft"))
    else:
        parts += [*_shares_by_joint(estimate, view), *_equivalents(estimate)]
        parts += [*_plots(estimate, view), *_drift(estimate, view)]
    return Section("friction", "Friction", parts, "Friction")


_Parts = Iterator[Part]


def selection_parts(estimate: Fit) -> _Parts:
    """Why this friction, and one row for each group of columns: what it is, and what the data says of it."""
    chosen, view = estimate.selection, estimate.friction_view
    evidence = {} if chosen is None else {one.group: one for one in chosen.groups}
    own = () if view is None else view.groups
    if chosen is not None:
        yield Text(sentence(chosen.reason))
    heads = [Head("Group"), *([Head("Scale", True), Head("Determined", True)] if evidence else [])]
    heads += [Head("Share of the torque", True, short=""), Head("Error without it", True, short="")]
    heads.append(Head("What it is", class_="text"))
    rows: list[list[object]] = []
    for group in dict.fromkeys((*own, *evidence)):
        found = evidence.get(group)
        known = ("", "") if found is None else (percent(found.scale), determined_words(found))
        share, without = ("", "") if view is None or group not in own else _overall(view, own.index(group))
        style = "dim" if found is not None and found.determined < _HARDLY else ""
        shown = TemperatureFriction.name if term_name(group) == TemperatureFriction.name else group
        cells = [Cell(text, text, style) for text in (shown, *(known if evidence else ()))]
        rows.append([*cells, share, without, Cell(group_words(group), group_words(group), style)])
    if rows:
        yield Table("Groups of friction columns", heads, rows, on="page")
    if chosen is not None and evidence:
        ours = [row for row in rows if isinstance(row[0], Cell) and row[0].text in evidence]
        yield Table("", heads, ours, on="terminal")
        text = (
            "Scale: share of a joint's torque that a coefficient typically makes; determined: how many the data "
            "determines."
        )
        yield Text(text, "soft", on="terminal")
    elif chosen is not None:
        yield Text(f"Terms: {', '.join(chosen.terms) or 'none beside the basic ones'}.", on="terminal")
    text = ""
    if view is not None:
        error = percent(float(np.sqrt(np.nansum(view.error**2) / np.nansum(view.torque**2))))
        text = (
            "Share: RMS torque of a group over RMS torque, all joints; groups that overlap may work against each "
            "other, and then their shares are large and mean little. Error without it: training error when a group is "
            f"left out and the other friction of the joint is scaled again; with all groups it is {error}."
        )
    if evidence:
        text += (
            " Scale: share of its joint's torque that a coefficient of the group typically makes, as the marginal "
            "likelihood has it; coefficients are shrunk accordingly. Determined: how many of them the data determines."
        )
    if text:
        yield Text(text, "soft", on="page")
    yield from _torques(estimate)
    yield from _levels(estimate)
    if chosen is not None:
        yield from (Text(sentence(note), "caveat", on="terminal") for note in drift_notes(estimate))


def _levels(estimate: Fit) -> _Parts:
    """Viscous friction of each log, where logs differ."""
    levels = estimate.friction_levels
    if levels is None:
        return
    names = log_names(estimate)
    heads = [Head("Parameter"), *(Head(names.get(label, label), True) for label in levels.logs)]
    relative, std = (levels.values / levels.means).T, (levels.std / levels.means).T
    rows = [
        [name, *(_level(1.0 + x, s) for x, s in zip(own, doubt, strict=True))]
        for name, own, doubt in zip(levels.names, relative, std, strict=True)
    ]
    yield Table("Viscous friction of each log over its mean", heads, rows, title="Levels of friction")
    yield Text(sentence(levels.sentence), "soft", on="page")


def _torques(estimate: Fit) -> _Parts:
    """Friction as torque at velocities, where terms overlap or there are two answers."""
    further = [term for term in estimate.predictive_base.terms if term.name in FRICTION and term.name not in _BASIC]
    if estimate.friction_view is None or (estimate.one_answer and not further):
        return
    heads = [Head("Joint"), Head("Velocity", True), Head("Friction torque", True)]
    heads += [] if estimate.one_answer else [Head("By the parameters", True)]
    rows = []
    for one in friction_torques(estimate):
        pairs = [(one.predictive, one.predictive_std), (one.parameters, one.parameters_std)]
        shown = [f"{number(x, 3, zeros=True)} ± {number(std, 2)} {one.unit}" for x, std in pairs[: len(heads) - 2]]
        rows.append([one.joint, f"{number(one.velocity, 2)} {'m' if one.unit == 'N' else 'rad'}/s", *shown])
    yield Table("Friction torque at the median and the highest velocity", heads, rows, title="Friction torque")
    text = (
        "Friction in steady motion at the median load, half the difference between both directions, with its standard "
        "deviation. Coefficients of terms that overlap trade against each other; this is what they have in common."
    )
    yield Text(text, "soft")


def _overall(view: FrictionView, group: int) -> tuple[str, str]:
    """Share and error without a group, over all joints."""
    torque = np.nansum(view.torque**2)
    return (
        percent(float(np.sqrt(np.nansum(view.share[group] ** 2) / torque))),
        percent(float(np.sqrt(np.nansum(view.without[group] ** 2) / torque))) if _left_out(view.groups[group]) else "",
    )


def _left_out(group: str) -> bool:
    """Whether the error without a group says something: what is no friction trades against the links, which stay."""
    return term_name(group) in (*FRICTION, *_BASIC)


def _shares_by_joint(estimate: Fit, view: FrictionView) -> _Parts:
    """The same joint by joint, folded."""
    heads = [Head("Group"), *(Head(name, True) for name in estimate.robot.joint_names)]
    torque = np.where(view.torque > 0.0, view.torque, np.nan)
    share = [[group, *map(percent, own / torque)] for group, own in zip(view.groups, view.share, strict=True)]
    without = [
        [group, *map(percent, own / torque)]
        for group, own in zip(view.groups, view.without, strict=True)
        if _left_out(group)
    ]
    last = ["All groups", *map(percent, view.error / torque)]
    tables = [
        Table("RMS torque of each group over RMS torque of the joint", heads, share),
        Table("Training error without each group, the other friction scaled again", heads, without, last),
    ]
    yield Section("", "Share and error of each group, joint by joint", tables)


def _equivalents(estimate: Fit) -> _Parts:
    """Equivalent viscous and Coulomb coefficients."""
    found = friction_summary(estimate)
    heads = [
        *(Head("Joint"), Head("Viscous", True), Head("Coulomb", True), Head("Of it hysteresis", True)),
        *(Head("Offset", True), Head("Not described", True), Head("Velocities up to", True), Head("Units")),
    ]
    rows = []
    for one in found.joints:
        velocity = "m/s" if one.unit == "N" else "rad/s"
        units = element("span", "N·s/m, N" if one.unit == "N" else "N·m·s/rad, N·m", class_="mark")
        shown = (one.viscous, 4), (one.coulomb, 4), (one.hysteresis, 3), (one.offset, 2)
        values = [number(x, digits, zeros=True) for x, digits in shown]
        rows.append([one.joint, *values, percent(one.lost), f"{one.fastest:.3g} {velocity}", units])
    yield Text("Equivalent viscous and Coulomb friction", "heading")
    if all(one.lost == 0.0 for one in found.joints):
        yield Text("The friction of the model is viscous and Coulomb alone, so these are its parameters.")
    else:
        yield Text(
            f"{sentence(found.remark)} They are a least-squares fit to the friction curves below, over the velocities "
            "of the training data at their median load; what they do not describe is given as a share of the friction."
        )
    yield Table("Viscous and Coulomb coefficients that come closest to the identified friction", heads, rows)


def _plots(estimate: Fit, view: FrictionView) -> _Parts:
    dots = legend(("dots", "measured"), ("predicted", "model"))
    yield Text("Friction against velocity", "heading")
    yield Text(
        "Measured torque minus what the model does not attribute to friction (links, rotors, offsets), in motion; the "
        "line is the model in steady motion at the median load. Dots lie beside it where the load is another, where a "
        "gear still winds up, and where the model is wrong."
    )
    own = estimate.robot.moving_coupling
    if not np.array_equal(own, np.eye(len(own))):
        yield Text(
            "The motors of this robot are coupled, so the friction of a joint depends on the velocities of others too; "
            "the line is for a joint that moves alone.",
            "soft",
        )
    yield dots
    yield from _curves(estimate, view)
    loops = list(_loops(estimate, view))
    if loops:
        yield Text("Friction at reversals", "heading")
        yield Text(
            "Friction torque against the displacement since a joint reversed: to the left of zero the joint came from "
            "below and goes back down, to the right the other way round. Friction without hysteresis would jump at "
            "zero; filters round it off, in model and data alike."
        )
        yield legend(("measured", "measured (wide line)"), ("predicted", "model (thin line)"))
        yield from loops
    loads = list(_loads(estimate, view))
    if loads:
        yield Text("Friction against load", "heading")
        yield Text(
            "Level of friction against the torque of the links that a joint carries, without the part that depends on "
            "velocity alone. Joints whose load-dependent friction is too small to see are not shown."
        )
        yield dots
        yield from loads


def _joints(estimate: Fit) -> Iterator[tuple[int, str, str]]:
    for joint, (name, unit) in enumerate(zip(estimate.robot.joint_names, torque_units(estimate.robot), strict=True)):
        yield joint, name, unit


def _figure(title: str, joint: str, over: tuple[str, str], unit: str, curves: list[Curve], key: str) -> Figure:
    """Curves over a quantity, given by name and unit."""
    loops = all(curve.look != "dots" for curve in curves)
    drawn = curves_svg(title, curves, x_unit=over[1], y_unit=unit, key=key, gaps=False, trimmed=not loops)
    return figure(concatenate([joint, " ", element("span", f"[{unit}] over {over[0]} [{over[1]}]")]), drawn)


def _finite_points(points: Array) -> Array:
    return np.asarray(points[:, np.isfinite(points[0])])


def _curves(estimate: Fit, view: FrictionView) -> Iterator[Figure]:
    for joint, name, unit in _joints(estimate):
        velocity, measured, *_ = _finite_points(view.points[:, joint])
        if len(velocity):
            over = "velocity", "m/s" if unit == "N" else "rad/s"
            curves = [
                Curve("measured", velocity, measured, "dots"),
                Curve("model", view.velocity[joint], view.curve[joint], "predicted model"),
            ]
            yield _figure(f"Friction of {name} against velocity", name, over, unit, curves, f"fvelocity{joint}")


def _loops(estimate: Fit, view: FrictionView) -> Iterator[Figure]:
    for joint, name, unit in _joints(estimate):
        own = [one * np.array([[1e3], [1.0], [1.0]]) for one in view.loops[view.loop_joints == joint]]
        if own:
            over = "displacement since the reversal", "mm" if unit == "N" else "mrad"
            curves = [Curve("measured", one[0], one[1]) for one in own]
            curves += [Curve("model", one[0], one[2], "predicted") for one in own]
            yield _figure(f"Friction of {name} at reversals", name, over, unit, curves, f"floop{joint}")


def _loads(estimate: Fit, view: FrictionView) -> Iterator[Figure]:
    loaded = [i for i, group in enumerate(view.groups) if term_name(group) in LOAD]
    for joint, name, unit in _joints(estimate):
        least = THRESHOLDS.visible_friction_share * view.torque[joint]
        if not loaded or not np.linalg.norm(view.share[loaded, joint]) > least:
            continue
        velocity, measured, model, part, load = _finite_points(view.points[:, joint])
        steady = np.abs(velocity) > THRESHOLDS.steady_velocity_share * np.abs(velocity).max()
        sign, load = np.sign(velocity[steady]), np.abs(load[steady])
        level, measured, part = (x[steady] * sign for x in (model - part, measured - model + part, part))
        middle = float(np.median(level))
        slope = float(load @ part / max(float(load @ load), 1e-300))
        ends = np.array([0.0, load.max()])
        curves = [
            Curve("measured", load, middle + measured, "dots"),
            Curve("model", ends, middle + slope * ends, "predicted model"),
        ]
        yield _figure(f"Friction of {name} against load", name, ("load", unit), unit, curves, f"fload{joint}")


def _drift(estimate: Fit, view: FrictionView) -> _Parts:
    """Level of friction log by log."""
    if len(view.logs) < 2:
        return
    yield Text("Drift between logs", "heading")
    notes = friction_summary(estimate).drift
    if notes:
        yield Text("Logs disagree; temperature, wear and time since the last motion are usual causes:")
        yield from (Text(note, "warning") for note in notes)
    else:
        yield Text("The friction of the logs agrees within noise.")
    scale = np.where(view.torque > 0.0, view.torque, np.nan)
    shift, std = view.shift / scale, view.shift_std / scale
    shifted = [name for joint, name, _ in _joints(estimate) if disagree(shift[:, joint], std[:, joint])]
    text = "Factor on the model's friction that fits each log best, with its standard error from parts of the log."
    yield Text(text + (f" Constant torque differs too, at {', '.join(shifted)}." if shifted else ""), "soft")
    heads = [Head("Log"), *(Head(name, True) for name in estimate.robot.joint_names)]
    names = log_names(estimate)
    rows = [
        [names.get(label, label), *(_level(x, s) for x, s in zip(level, std, strict=True))]
        for label, level, std in zip(view.logs, view.level, view.level_std, strict=True)
    ]
    yield Table("Level of friction, log by log", heads, rows)


def _level(value: float, std: float) -> str:
    return f"{100.0 * value:.1f} ± {100.0 * std:.1f} %" if np.isfinite(value) else ""
