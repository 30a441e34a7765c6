"""`motion_html`: an exciting motion as one HTML file: limits, joints over time, harmonics, space, deviations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident._version import __version__
from dynident.arrays import Array
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.motion.excitation import ExcitingMotion
from dynident.report.charts import Deviation, JointCurve, deviations_plot, harmonics_plot, joint_plot
from dynident.report.fit import document
from dynident.report.html import Head, Html, element, joined, paragraphs, section, table
from dynident.report.space_view import VIEWS, scene, view
from dynident.report.text import counted, number, option, percent, torque_units
from dynident.robot.model import Robot

_RATE = 1000.0  # [Hz] at which limits are looked at
_WELL = 0.15  # relative deviation up to which a parameter counts as known
_CSS = """
svg .limit { stroke: var(--residual); stroke-width: 2.5; stroke-dasharray: 12 9; }
svg .bar { fill: var(--predicted); } svg .bar.open { fill: none; stroke: var(--none); stroke-width: 2; }
svg .before { fill: none; stroke: var(--residual); stroke-width: 3; }
svg .name { fill: var(--text); }
svg .ground { stroke: var(--residual); stroke-width: 2; stroke-dasharray: 12 9; }
svg .box { stroke: var(--residual); stroke-width: 2.5; }
svg .shadow { stroke: var(--measured); stroke-width: 7; opacity: 0.4; }
svg .link { stroke: var(--text); stroke-width: 9; }
svg .dot { fill: var(--predicted); stroke: var(--paper); stroke-width: 2; }
.legend .limit { border-top: 2px dashed var(--residual); }
.legend .link { border-top: 5px solid var(--text); }
.legend .ring { width: 12px; height: 12px; border: 2px solid var(--residual); border-radius: 50%; }
"""


def motion_html(motion: ExcitingMotion, robot: Robot, command: str = "") -> str:
    """The page of an exciting motion.

    Args:
        motion: The motion; every number of the page comes from it.
        robot: Its robot.
        command: The command that makes it again; left out when empty.

    Returns:
        The page, to be written as UTF-8.
    """
    time = np.linspace(0.0, motion.duration, round(_RATE * motion.duration) + 1)
    q, dq, ddq = motion.trajectory.sample(time)
    torque = _torque(motion, robot, (q, dq, ddq))
    title = f"{robot.name}: exciting motion"
    main = [
        _verdict(motion),
        section("limits", "Limits", *_limits(motion, robot, (q, dq, ddq, torque))),
        section("joints", "Joints over time", *_joints(motion, robot, time, (q, dq, ddq, torque))),
        section("harmonics", "Harmonics", *_harmonics(motion, robot)),
        section("space", "In space", *_space(motion, robot)),
        section("deviations", "Predicted deviations", *_deviations(motion)),
        section("options", "Options", _options(motion, command)),
    ]
    links = [element("a", words, href=f"#{name}") for name, words in _LINKS.items()]
    header = element(
        "header",
        element("h1", title),
        element("p", _facts(motion), class_="soft"),
        element("nav", *links, aria_label="Sections"),
    )
    return document(title, header, element("main", *main), element("footer", f"dynident {__version__}"), css=_CSS)


_LINKS = {
    "limits": "Limits",
    "joints": "Joints",
    "harmonics": "Harmonics",
    "space": "Space",
    "deviations": "Deviations",
    "options": "Options",
}


def _torque(motion: ExcitingMotion, robot: Robot, states: tuple[Array, Array, Array]) -> Array | None:
    """(n_samples, n_joints) of the robot's own values; None where it has none."""
    values = motion.asked.values
    if values is None and not any(robot.value_set().values()):
        return None
    return inverse_dynamics(robot, *states, "rigid,Ia,Fv,Fc,Fo", values)


def _facts(motion: ExcitingMotion) -> str:
    series = motion.trajectory
    joints, harmonics = counted(series.n_joints, "joint"), counted(series.harmonics, "harmonic")
    return f"{joints}, {motion.duration:g} s, {harmonics} of {number(series.frequency, 4)} Hz, at rest at both ends"


def _verdict(motion: ExcitingMotion) -> Html:
    shares = motion.relative_std
    n, well = len(shares), int(np.sum(shares < _WELL))
    texts = [
        f"{_value(motion)}log det of the information {number(motion.log_determinant, 5)}, condition number of the "
        f"weighted rows {number(motion.condition, 3)} ({motion.evaluations} evaluations, {motion.seconds:.1f} s).",
        f"Widest deviation beside its parameter's size: {motion.names[int(np.argmax(shares))]}, "
        + (percent(float(shares.max())) if np.isfinite(shares.max()) else "not determined")
        + ("." if motion.before is None else f"; before, {_worst_before(motion)}."),
    ]
    head = f"{well} of {n} parameters can be expected to better than {100.0 * _WELL:.0f} %"
    caveat = [f"{words[0].upper()}{words[1:]}." for words in motion.warnings]
    caveat += ["The search was interrupted; this is the best motion until then."] if motion.interrupted else []
    return element(
        "section",
        element("h2", head),
        paragraphs(*texts),
        paragraphs(*caveat, class_="caveat"),
        class_="verdict",
        id="verdict",
    )


def _value(motion: ExcitingMotion) -> str:
    """What was optimised; the determinant and the condition are told anyway."""
    words = {"smallest": f", now {number(motion.value, 4)}", "interval": f", now {percent(motion.value)}"}
    names = {"smallest": "smallest singular value", "interval": "widest relative deviation"}
    name = names.get(motion.criterion, motion.criterion)
    return f"Optimised for the {name}{words.get(motion.criterion, '')}; "


def _worst_before(motion: ExcitingMotion) -> str:
    assert motion.before is not None
    shares = motion.before / motion.sizes
    worst = int(np.argmax(shares))
    known = percent(float(shares[worst])) if np.isfinite(shares[worst]) else "not determined"
    return f"{motion.names[worst]}, {known}"


def _limits(motion: ExcitingMotion, robot: Robot, states: tuple[Array, Array, Array, Array | None]) -> list[Html]:
    """How much of each limit every joint uses, and what is left of the others."""
    q, dq, ddq, torque = states
    limits = motion.limits
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    used = [np.abs(q - middle).max(0) / half, np.abs(dq).max(0) / limits.velocity]
    heads = [Head("joint"), Head("position", numeric=True), Head("velocity", numeric=True)]
    if np.isfinite(limits.acceleration).any():
        used.append(np.abs(ddq).max(0) / limits.acceleration)
        heads.append(Head("acceleration", numeric=True))
    if torque is not None and np.isfinite(limits.effort).any():
        used.append(np.abs(torque).max(0) / limits.effort)
        heads.append(Head("torque", numeric=True))
    heads.append(Head("torque noise assumed", numeric=True))
    units = torque_units(robot)
    told = motion.noise if len(motion.noise) == len(units) else np.full(len(units), np.nan)
    noise = [f"{number(x, 3)} {unit}" if np.isfinite(x) else "" for x, unit in zip(told, units, strict=True)]
    rows = [
        [name, *(percent(float(share[i])) if share[i] > 0.0 else "no limit" for share in used), noise[i]]
        for i, name in enumerate(robot.joint_names)
    ]
    whole = f"{number(100.0 * motion.asked.safety, 3)} % of the robot's limits"
    return [
        table(f"Share used at 1 kHz, of limits that are {whole}", heads, rows),
        paragraphs(f"Closest to the limits at 1 kHz: {'; '.join(motion.closest.values())}.", class_="soft"),
    ]


def _joints(
    motion: ExcitingMotion, robot: Robot, time: Array, states: tuple[Array, Array, Array, Array | None]
) -> list[Html]:
    q, dq, ddq, torque = states
    limits, figures = motion.limits, []
    for i, (name, unit) in enumerate(zip(robot.joint_names, torque_units(robot), strict=True)):
        place = "m" if unit == "N" else "rad"
        speed, acceleration, effort = limits.velocity[i], limits.acceleration[i], limits.effort[i]
        curves = [
            JointCurve(f"position [{place}]", q[:, i], limits.lower[i], limits.upper[i]),
            JointCurve(f"velocity [{place}/s]", dq[:, i], -speed, speed),
            JointCurve(f"acceleration [{place}/s²]", ddq[:, i], -acceleration, acceleration),
        ]
        if torque is not None:
            own = effort if motion.asked.torque else np.inf
            curves.append(
                JointCurve(f"torque [{unit}]" if unit == "N·m" else f"force [{unit}]", torque[:, i], -own, own)
            )
        figures.append(_figure(joint_plot(name, time, curves, f"j{i}"), name))
    legend = _legend(("predicted", "motion"), ("limit", "limit that it keeps"))
    return [legend, element("div", *figures, class_="panels")]


def _harmonics(motion: ExcitingMotion, robot: Robot) -> list[Html]:
    series = motion.trajectory
    sizes = np.hypot(series.sine, series.cosine)  # (n_harmonics, n_joints)
    slides = np.array([unit == "N" for unit in torque_units(robot)])
    figures = []
    for i, name in enumerate(robot.joint_names):
        alike = float(sizes[:, slides == slides[i]].max())
        unit = "m" if slides[i] else "rad"
        plot = harmonics_plot(name, sizes[:, i], series.frequency, alike, unit, f"h{i}")
        figures.append(_figure(plot, name))
    return [element("div", *figures, class_="panels")]


def _space(motion: ExcitingMotion, robot: Robot) -> list[Html]:
    asked = motion.asked
    boxes = np.array(asked.boxes, dtype=float).reshape(-1, 2, 3)
    seen = scene(robot, motion.trajectory, asked.floor, boxes)
    figures = [_figure(view(seen, name, f"v{i}"), name.capitalize()) for i, name in enumerate(VIEWS)]
    words = "way of the tool" if robot.tool is not None else "way of the last joint"
    marks = [("predicted", words), ("link", "links at the start, fainter on the way")]
    if asked.floor is not None or len(boxes):
        marks.append(("limit", "floor and boxes to keep away from"))
    return [_legend(*marks), element("div", *figures, class_="panels")]


def _deviations(motion: ExcitingMotion) -> list[Html]:
    shares = motion.relative_std
    order = np.argsort(-shares, kind="stable")
    before = None if motion.before is None else motion.before / motion.sizes
    rows = [Deviation(motion.names[i], float(shares[i]), None if before is None else float(before[i])) for i in order]
    known = [x for row in rows for x in (row.share, row.before) if x is not None and np.isfinite(x) and x > 0.0]
    ends = (10.0 ** np.floor(np.log10(min(known))), 10.0 ** np.ceil(np.log10(max(known)))) if known else (0.01, 1.0)
    ends = (ends[0], max(ends[1], 10.0 * ends[0]))
    half = -(-len(rows) // 2)
    figures = [
        _figure(deviations_plot(part, ends, f"d{i}"), words)
        for i, (part, words) in enumerate(((rows[:half], "Widest"), (rows[half:], "Narrowest")))
        if part
    ]
    marks = [("predicted", "deviation to expect")] + ([] if before is None else [("ring", "before this motion")])
    text = (
        "Each deviation stands beside its parameter's size: its value, or a tenth of what is typical where that is "
        "larger. They hold for white torque noise as assumed above; on a real robot, friction that the model does "
        "not know makes them larger."
    )
    return [
        paragraphs(text),
        _legend(*marks),
        element("div", *figures, class_="panels"),
        element("details", element("summary", "All numbers"), _deviation_table(motion, order)),
    ]


def _deviation_table(motion: ExcitingMotion, order: NDArray[np.intp]) -> Html:
    heads = [Head("parameter"), *(Head(text, numeric=True) for text in ("size", "deviation", "relative"))]
    if motion.before is not None:
        heads += [Head("before", numeric=True)]

    def told(value: float) -> str:
        return number(value, 3, zeros=True) if np.isfinite(value) else "not determined"

    rows = []
    for i in order:
        share = float(motion.relative_std[i])
        row = [motion.names[i], told(motion.sizes[i]), told(motion.std[i]), percent(share)]
        rows.append(row if motion.before is None else [*row, told(motion.before[i])])
    return table("Predicted deviations of the base parameters, in their units", heads, rows)


def _options(motion: ExcitingMotion, command: str) -> Html:
    names = ("criterion", "model", "terms", "rate", "safety", "floor", "clearance", "radius", "starts", "kicks", "seed")
    values = {name: getattr(motion.asked, name) for name in names} | {"criterion": motion.criterion}
    items = [
        part
        for name, value in values.items()
        if value is not None
        for part in (element("dt", name), element("dd", option(value)))
    ]
    shown = element("dl", *items)
    return shown if not command else joined([element("code", command, class_="command"), shown])


def _figure(plot: Html, caption: str) -> Html:
    return element("figure", element("figcaption", caption), plot)


def _legend(*marks: tuple[str, str]) -> Html:
    return element("ul", *(element("li", element("i", class_=kind), words) for kind, words in marks), class_="legend")
