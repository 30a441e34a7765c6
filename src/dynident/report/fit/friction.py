"""Friction on the page: which terms and why, curves, loops, load, what each group is worth, drift between logs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynident.arrays import Array
from dynident.estimate.equivalent_friction import disagree, friction_summary
from dynident.estimate.fit import Fit
from dynident.estimate.friction_parts import FRICTION, term_name
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.records import TermVerdict
from dynident.logs.read import short_names
from dynident.report.charts import Axis, loop_plot, scatter_plot
from dynident.report.html import Head, Html, breakable, bullets, element, joined, paragraphs, section, table
from dynident.report.text import number, percent, sentence, torque_units

_BASIC = ("Fv", "Fc", "Fo")
_WORDS = {
    "Fv": "viscous",
    "Fc": "Coulomb",
    "Fo": "constant offset",
    "stop": "winds up over {} mrad",
    "stribeck": "falls with speed, to {} rad/s",
    "sign": "comes up slowly, to {} rad/s",
    "load": "Coulomb, grows with the load",
    "loadv": "viscous, grows with the load",
    "asymmetric": "differs between directions",
    "quadratic": "square of the speed",
    "cubic": "cube of the speed",
    "harmonics": "{} waves per turn of the joint",
    "ripple": "gear ripple, {} waves per turn",
    "jerk": "springy drive",
    "tilt": "base not upright",
    "zero": "joint positions off by a constant",
}
_SEEN = 0.005  # share of a joint's torque from which friction with the load can be seen in a plot
_STEADY = 0.1  # share of a joint's highest speed beyond which friction no longer changes its sign


def group_words(group: str) -> str:
    """What a group of columns is, in words."""
    name, _, scales = group.partition("(")
    numbers = [float(x) * (1e3 if name == "stop" else 1.0) for x in scales.rstrip(")").split(",") if x]
    return _WORDS.get(name, name).format(" and ".join(number(x, 3) for x in numbers))


def gain_words(verdict: TermVerdict) -> str:
    """What a group takes off the error on parts left out, with its standard error."""
    gain = round(100.0 * verdict.gain, 1) + 0.0  # no minus before nothing
    return f"{gain:.1f} ± {100.0 * verdict.deviation:.1f} %"


def friction_section(estimate: Fit) -> Html:
    """Everything about friction; nothing for a model without."""
    chosen, view = estimate.selection, estimate.friction_view
    if chosen is None and view is None:
        return Html("")
    parts: list[Html] = []
    if chosen is not None:
        parts.append(paragraphs(sentence(chosen.reason)))
    parts.append(_groups(estimate))
    if view is None:
        parts.append(paragraphs("This estimate keeps no friction to show.", class_="soft"))
    else:
        parts += [_per_joint(estimate, view), _equivalents(estimate), _plots(estimate, view), _drift(estimate, view)]
    return section("friction", "Friction", *parts)


def _groups(estimate: Fit) -> Html:
    """One row for each group of columns: what it is, what it is worth, what was decided."""
    chosen, view = estimate.selection, estimate.friction_view
    verdicts = {} if chosen is None else {one.group: one for one in chosen.verdicts}
    own = () if view is None else view.groups
    rows = []
    for group in dict.fromkeys((*own, *verdicts)):
        found = verdicts.get(group)
        gain = "" if found is None else gain_words(found)
        verdict = found.verdict if found else "basic" if term_name(group) in _BASIC else "in the model"
        share, without = ("", "") if view is None or group not in own else _overall(view, own.index(group))
        rows.append([group, verdict, gain, share, without, group_words(group)])
    if not rows:
        return Html("")
    rows = [[*row[:1], element("span", row[1], class_="mark"), *row[2:]] for row in rows]
    heads = [
        *(Head("Group"), Head("Verdict"), Head("Gain", True), Head("Share of the torque", True)),
        *(Head("Error without it", True), Head("What it is", class_="text")),
    ]
    if not verdicts:
        heads, rows = [head for head in heads if head.text != "Gain"], [[*row[:2], *row[3:]] for row in rows]
    text = ""
    if view is not None:
        whole = percent(float(np.sqrt(np.nansum(view.error**2) / np.nansum(view.torque**2))))
        text = (
            "Share: RMS torque of a group over RMS torque, all joints; groups that overlap may work against each "
            "other, and then their shares are large and mean little. Error without it: training error when a group is "
            f"left out and the other friction of the joint is scaled anew; with all groups it is {whole}."
        )
    if chosen is not None and verdicts:
        text += (
            f" Gain: share of the error on {len(chosen.folds)} parts left out in turn that a group takes away from "
            "the chosen model, or would, with its standard error; everything is fitted anew."
        )
    return joined([table("Groups of friction columns", heads, rows), paragraphs(text, class_="soft")])


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


def _per_joint(estimate: Fit, view: FrictionView) -> Html:
    """The same joint by joint, folded."""
    heads = [Head("Group"), *(Head(name, True) for name in estimate.robot.joint_names)]
    torque = np.where(view.torque > 0.0, view.torque, np.nan)
    share = [[group, *map(percent, own / torque)] for group, own in zip(view.groups, view.share, strict=True)]
    told = [(group, own) for group, own in zip(view.groups, view.without, strict=True) if _left_out(group)]
    without = [[group, *map(percent, own / torque)] for group, own in told]
    last = ["All groups", *map(percent, view.error / torque)]
    return element(
        "details",
        element("summary", "Share and error of each group, joint by joint"),
        table("RMS torque of each group over RMS torque of the joint", heads, share),
        table("Training error without each group, the other friction scaled anew", heads, without, last=last),
    )


def _equivalents(estimate: Fit) -> Html:
    """Plain coefficients."""
    found = friction_summary(estimate)
    heads = [
        *(Head("Joint"), Head("Viscous", True), Head("Coulomb", True), Head("Offset", True)),
        *(Head("Not described", True), Head("Speeds up to", True), Head("Units")),
    ]
    rows = []
    for one in found.joints:
        speed = "m/s" if one.unit == "N" else "rad/s"
        unit = element("span", "N·s/m, N" if one.unit == "N" else "N·m·s/rad, N·m", class_="mark")
        shown = [number(x, 4, zeros=True) for x in (one.viscous, one.coulomb)]
        rows.append(
            [
                one.joint,
                *shown,
                number(one.offset, 2, zeros=True),
                percent(one.lost),
                f"{one.fastest:.3g} {speed}",
                unit,
            ]
        )
    text = (
        f"{sentence(found.remark)} They are a least-squares fit to the friction curves below, over the speeds of the "
        "training data at their median load; what they do not describe is given as a share of the friction."
    )
    return joined(
        [
            element("h3", "Equivalent plain friction"),
            paragraphs(text),
            table("Viscous and Coulomb coefficients that come closest to the identified friction", heads, rows),
        ]
    )


def _plots(estimate: Fit, view: FrictionView) -> Html:
    parts = [
        element("h3", "Friction against speed"),
        paragraphs(
            "Measured torque without what the model says is no friction (links, rotors, offsets), in motion; the line "
            "is the model in steady motion at the median load. Dots lie beside it where the load is another, where a "
            "gear still winds up, and where the model is wrong."
        ),
        _coupled(estimate),
        _legend(("dots", "measured"), ("predicted", "model")),
        element("div", *_curves(estimate, view), class_="panels"),
    ]
    loops = list(_loops(estimate, view))
    if loops:
        text = (
            "Friction torque against the way since a joint turned back: to the left of zero the joint came from below "
            "and goes back down, to the right the other way round. Friction without memory would jump at zero; filters "
            "round it off, in model and data alike."
        )
        parts += [element("h3", "Friction at reversals"), paragraphs(text)]
        legend = _legend(("measured", "measured (wide line)"), ("predicted", "model (thin line)"))
        parts += [legend, element("div", *loops, class_="panels")]
    loads = list(_loads(estimate, view))
    if loads:
        text = (
            "Level of friction against the torque of the links that a joint carries; what changes with speed alone is "
            "taken out. Joints whose load is too small to tell are not shown."
        )
        parts += [element("h3", "Friction against load"), paragraphs(text)]
        parts += [_legend(("dots", "measured"), ("predicted", "model")), element("div", *loads, class_="panels")]
    return joined(parts)


def _coupled(estimate: Fit) -> Html:
    """A word on joints that share motors."""
    moving = estimate.robot.moving
    own = estimate.robot.coupling[np.ix_(moving, moving)]
    if np.array_equal(own, np.eye(len(own))):
        return Html("")
    text = (
        "The motors of this robot are coupled, so the friction of a joint depends on the speeds of others too; the "
        "line is for a joint that moves alone."
    )
    return paragraphs(text, class_="soft")


def _legend(*entries: tuple[str, str]) -> Html:
    items = (element("li", element("i", class_=kind, aria_hidden="true"), words) for kind, words in entries)
    return element("ul", *items, class_="legend")


def _figure(joint: str, unit: str, over: Axis, plot: Html) -> Html:
    caption = element("span", f"[{unit}] over {over.name} [{over.unit}]")
    return element("figure", element("figcaption", joint, " ", caption), plot)


def _joints(estimate: Fit) -> Iterator[tuple[int, str, str]]:
    for joint, (name, unit) in enumerate(zip(estimate.robot.joint_names, torque_units(estimate.robot), strict=True)):
        yield joint, name, unit


def _known(points: Array) -> Array:
    return np.asarray(points[:, np.isfinite(points[0])])


def _curves(estimate: Fit, view: FrictionView) -> Iterator[Html]:
    for joint, name, unit in _joints(estimate):
        speed, measured, *_ = _known(view.points[:, joint])
        if not len(speed):
            continue
        over = Axis("speed", "m/s" if unit == "N" else "rad/s")
        line = view.speed[joint], view.curve[joint]
        title = f"Friction of {name} against speed"
        plot = scatter_plot(title, over, unit, (speed, measured), line, f"fspeed{joint}")
        yield _figure(name, unit, over, plot)


def _loops(estimate: Fit, view: FrictionView) -> Iterator[Html]:
    for joint, name, unit in _joints(estimate):
        own = [one * np.array([[1e3], [1.0], [1.0]]) for one in view.loops[view.loop_joints == joint]]
        if own:
            over = Axis("way since the reversal", "mm" if unit == "N" else "mrad")
            plot = loop_plot(f"Friction of {name} at reversals", over, unit, own, f"floop{joint}")
            yield _figure(name, unit, over, plot)


def _loads(estimate: Fit, view: FrictionView) -> Iterator[Html]:
    loaded = [i for i, group in enumerate(view.groups) if term_name(group) in ("load", "loadv")]
    for joint, name, unit in _joints(estimate):
        if not loaded or not np.linalg.norm(view.share[loaded, joint]) > _SEEN * view.torque[joint]:
            continue
        speed, measured, model, part, load = _known(view.points[:, joint])
        steady = np.abs(speed) > _STEADY * np.abs(speed).max()
        sign, load = np.sign(speed[steady]), np.abs(load[steady])
        level, measured, part = (x[steady] * sign for x in (model - part, measured - model + part, part))
        middle = float(np.median(level))
        slope = float(load @ part / max(float(load @ load), 1e-300))
        ends = np.array([0.0, load.max()])
        over = Axis("load", unit)
        title = f"Friction of {name} against load"
        plot = scatter_plot(
            title, over, unit, (load, middle + measured), (ends, middle + slope * ends), f"fload{joint}"
        )
        yield _figure(name, unit, over, plot)


def _drift(estimate: Fit, view: FrictionView) -> Html:
    """Level of friction log by log."""
    if len(view.logs) < 2:
        return Html("")
    heads = [Head("Log"), *(Head(name, True) for name in estimate.robot.joint_names)]
    names = short_names([*estimate.data, *estimate.held_out])
    rows = [
        [names.get(label, label), *(_level(x, s) for x, s in zip(level, std, strict=True))]
        for label, level, std in zip(view.logs, view.level, view.level_std, strict=True)
    ]
    notes = friction_summary(estimate).drift
    said = (
        joined([paragraphs("Logs disagree; temperature, wear and time since the last motion are usual causes:"),
                element("div", bullets(map(sentence, notes)), class_="warnings")])
        if notes
        else paragraphs("The logs agree about friction, as far as their noise can tell.")
    )  # fmt: skip
    text = "Factor on the model's friction that suits each log best, with its standard error from parts of the log."
    scale = np.where(view.torque > 0.0, view.torque, np.nan)
    shift, std = view.shift / scale, view.shift_std / scale
    shifted = [name for joint, name, _ in _joints(estimate) if disagree(shift[:, joint], std[:, joint])]
    also = f" Constant torque differs too, at {', '.join(shifted)}." if shifted else ""
    return joined(
        [
            element("h3", "Drift between logs"),
            said,
            paragraphs(text + also, class_="soft"),
            table("Level of friction, log by log", heads, [[breakable(row[0]), *row[1:]] for row in rows]),
        ]
    )


def _level(value: float, std: float) -> str:
    if not np.isfinite(value):
        return ""
    return f"{100.0 * value:.1f} ± {100.0 * std:.1f} %"
