"""Torque over time as inline SVG, written by hand: measured and predicted above, their difference below.

Lengths are in units of the view box, about half a pixel on a screen, so that whole numbers are fine enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.estimate.torque_errors import Trace
from dynident.report.html import Html, element
from dynident.report.text import number, percent

WIDTH, HEIGHT = 960, 500  # of the view box
LEFT, RIGHT = 104, 12  # margins
_TORQUE, _RESIDUAL = (14, 280), (318, 130)  # top and height of the two frames
_CLOCK = 1e5  # stamps from here on are a clock's; the plot counts from the first [s]
_GAP = 3.0  # times the usual step from which a line is broken
_POINT_BYTES = 5.5  # of a path, for noise
MOST_BYTES = 500_000  # for the lines of all plots of a page
FEWEST_COLUMNS, MOST_COLUMNS = 30, 380  # a line has two points in each column


def columns_for(n_lines: int) -> int:
    """Columns for each of so many lines, so that they fit a page together."""
    return int(np.clip(MOST_BYTES / (2.0 * _POINT_BYTES * max(n_lines, 1)), FEWEST_COLUMNS, MOST_COLUMNS))


@dataclass(frozen=True)
class Frame:
    """Where numbers lie in the view box.

    Attributes:
        top: Of the frame.
        height: Of the frame.
        x: Times at its left and right edge [s].
        y: Torques at its lower and upper edge.
    """

    top: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: Array | float) -> Array:
        """Whole places from the left."""
        share = (np.asarray(value) - self.x[0]) / (self.x[1] - self.x[0])
        return np.asarray(np.rint(LEFT + share * (WIDTH - LEFT - RIGHT)))

    def down(self, value: Array | float) -> Array:
        """Whole places from the top."""
        return np.asarray(np.rint(self.top + (self.y[1] - np.asarray(value)) / (self.y[1] - self.y[0]) * self.height))


def shown_time(time: Array) -> Array:
    """Stamps as plots have them: those of a clock count from the first."""
    return time - time[0] if len(time) and abs(time[0]) > _CLOCK else time


def torque_plot(trace: Trace, joint: int, *, half: float, name: str, unit: str, key: str, columns: int) -> Html:
    """The plot of one joint.

    Args:
        trace: Torque of a log.
        joint: Index of the joint.
        half: Half width of the band around the prediction; 0 for none.
        name: Of joint and log, for those who cannot see the plot.
        unit: Of the torque.
        key: Start of ids that are unique on the page.
        columns: Points of a line are thinned to two per column, its lowest and highest.
    """
    time, measured, predicted = shown_time(trace.time), trace.measured[:, joint], trace.predicted[:, joint]
    residual = measured - predicted
    x = span(time, 0.0)
    upper = Frame(*_TORQUE, x, span(np.concatenate([measured, predicted - half, predicted + half])))
    most = max(abs(end) for end in span(residual))
    lower = Frame(*_RESIDUAL, x, (-most, most))
    described = (
        f"Measured torque between {_ends(measured)} {unit}, predicted between {_ends(predicted)} {unit}, residual "
        f"between {_ends(residual)} {unit}."
    )
    return element(
        "svg",
        element("title", f"Torque of {name}", id=f"{key}t"),
        element("desc", described, id=f"{key}d"),
        axes(upper, ticks(*upper.y, 5)),
        axes(lower, [-_round(most), 0.0, _round(most)], seconds=True),
        element("path", d=_band(upper, time, predicted, half, columns), class_="band") if half > 0.0 else "",
        *(
            element("path", d=path(frame, time, values, columns), class_=kind)
            for frame, values, kind in (
                (upper, measured, "measured"),
                (upper, predicted, "predicted"),
                (lower, residual, "residual"),
            )
        ),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{key}t {key}d",
        data_frame=" ".join(map(str, (WIDTH, LEFT, RIGHT, *_TORQUE, *_RESIDUAL))),
    )


def _band(frame: Frame, time: Array, predicted: Array, half: float, columns: int) -> str:
    """The band around a prediction: there along its upper edge, back along the lower one, stretch by stretch."""
    drawn = []
    for own in _pieces(time, predicted, columns):
        x = np.concatenate([time[own], time[own][::-1]])
        y = np.concatenate([predicted[own] + half, predicted[own][::-1] - half])
        drawn.append(_steps(frame.across(x), frame.down(y)) + "z")
    return "".join(drawn)


def _ends(values: Array) -> str:
    known = values[np.isfinite(values)]
    return f"{number(known.min(), 3)} and {number(known.max(), 3)}" if len(known) else "no known values"


def span(values: Array, margin: float = 0.06) -> tuple[float, float]:
    """The range of some values with a margin; never empty."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = max(abs(low), 1e-9)
        low, high = low - room, high + room
    return low - margin * (high - low), high + margin * (high - low)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two others, at most so many: steps of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** np.floor(np.log10((high - low) / most))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * step) <= most)
    return [float(i * step) for i in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _round(most: float) -> float:
    """The largest round number that lies clearly below another."""
    power = 10.0 ** np.floor(np.log10(0.9 * most))
    return float(power * max(factor for factor in (1, 2, 3, 4, 5, 6, 8) if factor * power <= 0.9 * most))


def axes(frame: Frame, rows: list[float], *, seconds: bool = False, across: str = "") -> Html:
    """Grid and tick labels of a frame; `across` is the unit of what goes from left to right, where that is no time."""
    parts, right, places = [], WIDTH - RIGHT, ticks(*frame.x, 6)
    for value in rows:
        y = int(frame.down(value))
        parts.append(element("path", d=f"M{LEFT} {y}H{right}", class_="zero" if value == 0.0 else "grid"))
        parts.append(element("text", _label(value, rows), x=LEFT - 10, y=y + 8, class_="end"))
    for value in places:
        x = int(frame.across(value))
        parts.append(element("path", d=f"M{x} {frame.top}v{frame.height}", class_="grid"))
        if seconds or across:
            text = _label(value, places) + (f" {across or 's'}" if value == places[-1] else "")
            wide = 24 if seconds else 9 * len(across) + 20
            parts.append(element("text", text, x=min(x, right - wide), y=frame.top + frame.height + 32, class_="mid"))
    return element("g", *parts)


def _label(value: float, beside: list[float]) -> str:
    """A tick with the decimals that its neighbours need."""
    step = abs(beside[1] - beside[0]) if len(beside) > 1 else abs(value)
    return (
        f"{value:.4g}"
        if step == 0.0 or not 1e-3 <= step < 1e5
        else f"{value:.{max(0, -int(np.floor(np.log10(step))))}f}"
    )


def path(frame: Frame, time: Array, values: Array, columns: int) -> str:
    """A line as a path of whole, relative steps; broken at gaps and where nothing is known."""
    return "".join(_steps(frame.across(time[own]), frame.down(values[own])) for own in _pieces(time, values, columns))


def _pieces(time: Array, values: Array, columns: int) -> Iterator[NDArray[np.intp]]:
    """Indices of the points to draw, stretch by stretch."""
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(time))
    if len(known) == 0:
        return
    usual = float(np.median(np.diff(time[known]))) if len(known) > 1 else 0.0
    breaks = (np.diff(time[known]) > _GAP * usual) | (np.diff(known) > 1)
    per_column = max(1, -(-len(known) // columns))
    for stretch in np.split(known, np.flatnonzero(breaks) + 1):
        yield stretch[_extremes(values[stretch], per_column)] if per_column > 2 else stretch


def _extremes(values: Array, size: int) -> NDArray[np.intp]:
    """Places of the lowest and highest of every `size` neighbours, and of the ends."""
    n = len(values)
    filled = np.concatenate([values, np.full(-n % size, values[-1])]).reshape(-1, size)
    first = np.arange(len(filled)) * size
    found = np.concatenate([[0], first + filled.argmin(1), first + filled.argmax(1), [n - 1]])
    return np.unique(np.minimum(found, n - 1))


def _steps(x: Array, y: Array) -> str:
    places = np.column_stack([x, y]).astype(int)
    moves = np.diff(places, axis=0)
    moves = moves[moves.any(1)]
    text = "".join(f"{' ' if i else ''}{dx}{'' if dy < 0 else ' '}{dy}" for i, (dx, dy) in enumerate(moves.tolist()))
    return f"M{places[0, 0]} {places[0, 1]}l{text or '0 0'}"


# ----------------------------------------------------------------------------------------------------------------------
# Plots of a motion as inline SVG: joints over time with their limits, harmonics, predicted deviations.

_FIRST, _HEIGHT, _APART = 44, 180, 230  # top of the first frame, height of each, from one to the next
_COLUMNS = 300  # in which a line has two points
_ROW = 34  # height of a row of the deviations
_NAME, _LETTER = 150, 17  # least width of its name, and of a letter at the size of narrow screens


@dataclass(frozen=True)
class JointCurve:
    """One quantity of a joint over time.

    Attributes:
        name: What it is, with its unit.
        values: (n_samples,).
        low, high: Its limits; infinite where there is none.
    """

    name: str
    values: Array
    low: float
    high: float


def joint_plot(name: str, time: Array, curves: Sequence[JointCurve], key: str) -> Html:
    """Quantities of one joint, one below the other, with their limits dashed."""
    parts: list[Html] = []
    for place, curve in enumerate(curves):
        top = _FIRST + place * _APART
        known = np.concatenate([curve.values, [x for x in (curve.low, curve.high) if np.isfinite(x)]])
        frame = Frame(top, _HEIGHT, (float(time[0]), float(time[-1])), span(known))
        parts.append(element("text", curve.name, x=LEFT, y=top - 12))
        parts.append(axes(frame, ticks(*frame.y, 4), seconds=place == len(curves) - 1))
        parts += [
            element("path", d=f"M{LEFT} {int(frame.down(limit))}H{WIDTH - RIGHT}", class_="limit")
            for limit in (curve.low, curve.high)
            if np.isfinite(limit)
        ]
        parts.append(element("path", d=path(frame, time, curve.values, _COLUMNS), class_="predicted"))
    told = "; ".join(f"{curve.name} from {_motion_plots_ends(curve.values)}" for curve in curves)
    height = _FIRST + (len(curves) - 1) * _APART + _HEIGHT + 50
    return picture(f"Motion of {name}", f"{told}.", parts, height, key)


def _motion_plots_ends(values: Array) -> str:
    return f"{number(float(values.min()), 3)} to {number(float(values.max()), 3)}"


def harmonics_plot(name: str, sizes: Array, frequency: float, most: float, unit: str, key: str) -> Html:
    """Amplitude of each harmonic of a joint, (n_harmonics,), on a scale that reaches `most` for all joints."""
    top, height = 44, 190
    frame = Frame(top, height, (0.0, 1.0), (0.0, 1.08 * most))
    parts = [element("text", f"amplitude [{unit}]", x=LEFT, y=top - 12)]
    for value in ticks(0.0, 1.08 * most, 4):
        y = int(frame.down(value))
        parts.append(element("path", d=f"M{LEFT} {y}H{WIDTH - RIGHT}", class_="zero" if value == 0.0 else "grid"))
        parts.append(element("text", number(value, 3), x=LEFT - 10, y=y + 8, class_="end"))
    step = (WIDTH - LEFT - RIGHT) / len(sizes)
    every = -(-len(sizes) // 10)  # labels that would run into each other are left out
    for i, size in enumerate(sizes):
        middle, y = round(LEFT + (i + 0.5) * step), int(frame.down(float(size)))
        wide = max(4, round(0.5 * step))
        parts.append(element("rect", x=middle - wide // 2, y=y, width=wide, height=top + height - y, class_="bar"))
        if i % every == 0:
            unit_text = " Hz" if i + every >= len(sizes) else ""
            text = f"{number((i + 1) * frequency, 3)}{unit_text}"
            parts.append(element("text", text, x=middle, y=top + height + 32, class_="mid"))
    told = ", ".join(f"{number((i + 1) * frequency, 3)} Hz {number(float(x), 3)}" for i, x in enumerate(sizes))
    return picture(f"Harmonics of {name}", f"Amplitude in {unit}: {told}.", parts, top + height + 50, key)


@dataclass(frozen=True)
class Deviation:
    """Predicted deviation of a parameter beside its size, and what it was before; infinite if not determined."""

    name: str
    share: float
    before: float | None


def deviations_plot(rows: Sequence[Deviation], ends: tuple[float, float], key: str) -> Html:
    """Bars on a logarithmic scale, a ring where the deviation was before."""
    low, high = np.log10(ends[0]), np.log10(ends[1])
    left = max([_NAME, *(20 + _LETTER * len(row.name) for row in rows)])
    right, top = WIDTH - 60, 46  # half of the last number stands beside the scale
    bottom = top + _ROW * len(rows)

    def across(share: float) -> int:
        place = (np.log10(min(max(share, 1e-300), 1e300)) - low) / (high - low)
        return round(left + float(np.clip(place, 0.0, 1.0)) * (right - left))

    parts: list[Html] = []
    for power in range(round(low), round(high) + 1):
        x, text = across(10.0**power), f"{number(100.0 * 10.0**power, 3)} %"
        parts.append(element("path", d=f"M{x} {top}V{bottom}", class_="grid"))
        parts.append(element("text", text, x=x, y=top - 14, class_="mid"))
    for i, row in enumerate(rows):
        y = top + _ROW * i
        parts.append(element("text", row.name, x=left - 10, y=y + 25, class_="end name"))
        length = max(across(row.share) - left, 2)
        known = np.isfinite(row.share)
        parts.append(
            element("rect", x=left, y=y + 7, width=length, height=_ROW - 14, class_="bar" if known else "bar open")
        )
        if row.before is not None:
            parts.append(element("circle", cx=across(row.before), cy=y + _ROW // 2, r=8, class_="before"))
    told = ", ".join(f"{row.name} {percent(row.share)}" for row in rows)
    return picture("Predicted deviations beside the parameters' sizes", f"{told}.", parts, bottom + 10, key)


def picture(title: str, told: str, parts: Sequence[Html], height: int, key: str) -> Html:
    """An SVG with words for those who cannot see it; `key` starts ids that are unique on the page."""
    return element(
        "svg",
        element("title", title, id=f"{key}t"),
        element("desc", told, id=f"{key}d"),
        *parts,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_labelledby=f"{key}t {key}d",
    )


# ----------------------------------------------------------------------------------------------------------------------
# Curves against anything as inline SVG: wide lines and dots are data, thin lines are models.
#
# Lengths are in units of the view box, as in `plots`.

Look = Literal["measured", "predicted", "residual", "dots"]
_TOP, _CHARTS_HEIGHT = 14, 380
_CHARTS_COLUMNS = 300  # a line has two points in each


@dataclass(frozen=True)
class Curve:
    """One line or cloud of dots.

    Attributes:
        name: What it is, for the legend.
        x: (n,) places from left to right.
        y: (n,) values; a gap where one is not finite.
        look: How it is drawn; "measured" is wide and grey, "predicted" and "residual" are thin.
    """

    name: str
    x: Array
    y: Array
    look: Look = "measured"


def chart(title: str, curves: Sequence[Curve], *, x_unit: str, y_unit: str, key: str) -> Html:
    """Curves in one frame.

    Args:
        title: What it shows, above the frame.
        curves: What to draw, the first ones below.
        x_unit: Unit from left to right.
        y_unit: Unit from bottom to top.
        key: Start of ids that are unique on the page.
    """
    every_x = np.concatenate([np.asarray(one.x, dtype=np.float64) for one in curves])
    every_y = np.concatenate([np.asarray(one.y, dtype=np.float64) for one in curves])
    frame = Frame(_TOP, _CHARTS_HEIGHT, span(every_x, 0.02), span(every_y))
    parts = [axes(frame, ticks(*frame.y, 5), across=x_unit)]
    parts += [element("path", d=_drawn(frame, one), class_=one.look) for one in curves]
    told = "; ".join(f"{one.name} between {_charts_ends(np.asarray(one.y))} {y_unit}" for one in curves)
    drawn = picture(title, f"{told}.", parts, _TOP + _CHARTS_HEIGHT + 50, key)
    caption = element("figcaption", title, " ", element("span", f"[{y_unit}]"))
    return element("figure", caption, drawn, legend(curves))


def legend(curves: Sequence[Curve]) -> Html:
    """Names beside samples of the lines; nothing for a single one."""
    if len(curves) < 2:
        return Html("")
    names = {(one.look, one.name): None for one in curves}
    return element(
        "ul",
        *(element("li", element("i", class_=look), name) for look, name in names),
        class_="legend",
    )


def _drawn(frame: Frame, curve: Curve) -> str:
    x, y = np.asarray(curve.x, dtype=np.float64), np.asarray(curve.y, dtype=np.float64)
    if curve.look != "dots":
        return path(frame, x, y, _CHARTS_COLUMNS) or "M0 0"
    known = np.isfinite(x) & np.isfinite(y)
    places = np.unique(np.stack([frame.across(x[known]), frame.down(y[known])], axis=1).astype(int), axis=0)
    return "".join(f"M{a} {b}h0" for a, b in places.tolist()) or "M0 0"


def _charts_ends(values: Array) -> str:
    known = values[np.isfinite(values)]
    return f"{number(float(known.min()), 3)} and {number(float(known.max()), 3)}" if len(known) else "no values"


# ----------------------------------------------------------------------------------------------------------------------
# Friction as inline SVG: against speed, around reversals, against load; dots and wide lines are data, thin ones model.
#
# Lengths are in units of the view box, as in `plots`.

_FRICTION_PLOTS_TOP, _FRICTION_PLOTS_HEIGHT = 14, 380
_WITHIN = 0.995  # share of the data that the frame holds; single stray points would flatten the rest


@dataclass(frozen=True)
class Axis:
    """What a plot is over.

    Attributes:
        name: In words.
        unit: Unit of its ticks.
    """

    name: str
    unit: str


def scatter_plot(
    title: str, over: Axis, unit: str, dots: tuple[Array, Array], line: tuple[Array, Array], key: str
) -> Html:
    """Dots of the data with the model's line through them.

    Args:
        title: For those who cannot see it.
        over: The axis from left to right.
        unit: Of torque.
        dots: Places from left to right and torques, (p,) each.
        line: The same for the model, (m,) each.
        key: Start of ids that are unique on the page.
    """
    held = np.quantile(dots[1], [1.0 - _WITHIN, _WITHIN]) if len(dots[1]) else np.zeros(0)
    frame = Frame(
        _FRICTION_PLOTS_TOP,
        _FRICTION_PLOTS_HEIGHT,
        span(np.concatenate([dots[0], line[0]]), 0.02),
        span(np.concatenate([held, line[1]])),
    )
    inside = (dots[1] >= frame.y[0]) & (dots[1] <= frame.y[1])
    told = f"The model's friction lies between {_extent(line[1])} {unit}, the data's between {_extent(dots[1])} {unit}"
    parts = [
        axes(frame, ticks(*frame.y, 5), across=over.unit),
        element("path", d=_dots(frame, dots[0][inside], dots[1][inside]), class_="dots"),
        element("path", d=_line(frame, *line), class_="predicted model"),
    ]
    return picture(
        title, f"{told}, over {over.name} [{over.unit}].", parts, _FRICTION_PLOTS_TOP + _FRICTION_PLOTS_HEIGHT + 50, key
    )


def loop_plot(title: str, over: Axis, unit: str, loops: Sequence[Array], key: str) -> Html:
    """Friction around reversals.

    Args:
        title: For those who cannot see it.
        over: The axis from left to right.
        unit: Of torque.
        loops: (3, k) each: displacement, measured friction, friction of the model.
        key: Start of ids that are unique on the page.
    """
    every = np.concatenate(list(loops), axis=1)
    frame = Frame(_FRICTION_PLOTS_TOP, _FRICTION_PLOTS_HEIGHT, span(every[0], 0.02), span(every[1:]))
    parts = [axes(frame, ticks(*frame.y, 5), across=over.unit)]
    parts += [element("path", d=_line(frame, one[0], one[1]), class_="measured") for one in loops]
    parts += [element("path", d=_line(frame, one[0], one[2]), class_="predicted") for one in loops]
    told = f"Friction around {len(loops)} reversals, measured between {_extent(every[1])} {unit}, of the model between "
    return picture(
        title,
        f"{told}{_extent(every[2])} {unit}.",
        parts,
        _FRICTION_PLOTS_TOP + _FRICTION_PLOTS_HEIGHT + 50,
        key,
    )


def _extent(values: Array) -> str:
    return f"{number(float(values.min()), 3)} and {number(float(values.max()), 3)}" if len(values) else "no values"


def _dots(frame: Frame, x: Array, y: Array) -> str:
    """A dot each: strokes of no length, with round ends."""
    places = np.unique(np.stack([frame.across(x), frame.down(y)], axis=1).astype(int), axis=0)
    return "".join(f"M{a} {b}h0" for a, b in places.tolist()) or "M0 0"


def _line(frame: Frame, x: Array, y: Array) -> str:
    places = np.stack([frame.across(x), frame.down(y)], axis=1).astype(int)
    kept = places[np.concatenate([[True], np.diff(places, axis=0).any(1)])]
    return "M" + "L".join(f"{a} {b}" for a, b in kept.tolist())
