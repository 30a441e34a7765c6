"""Plots as inline SVG, written by hand: wide lines and dots are data, thin lines are models.

Lengths are in units of the view box, about half a pixel on a screen, so that whole numbers are fine enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.estimate.torque_errors import Trace
from dynident.report.html import Figure, Html, concatenate, element, figure, legend
from dynident.report.text import number, percent

WIDTH = 960  # of the view box
LEFT, RIGHT = 104, 12  # margins of a chart
_TORQUE, _RESIDUAL = (14, 280), (318, 130)  # top and height of the two charts of a torque plot
_GAP_STEPS = 3.0  # times the usual step from which a line is broken
_POINT_BYTES = 5.5  # of a path, for noise
_MAX_BYTES = 500_000  # for the lines of all plots of a page
_BINS = 300  # of a line that shares its page with few others; it has two points in each
_NAME_WIDTH, _LETTER_WIDTH = 150, 17  # least width of a parameter's name; of a letter at the size of narrow screens
_RUN_COLORS = 6  # of bars, in the style sheet
_INSIDE = 0.995  # share of the dots that a frame holds; single stray points would flatten the rest


def bins_for(n_lines: int) -> int:
    """Bins for each of so many lines, so that they fit a page together; a line has two points in each."""
    return int(np.clip(_MAX_BYTES / (2.0 * _POINT_BYTES * max(n_lines, 1)), 30, 380))


@dataclass(frozen=True)
class Chart:
    """A frame in a picture with axes, and what is drawn in it.

    Attributes:
        top: Of the frame.
        height: Of the frame.
        x: Values at its left and right edge.
        y: Values at its lower and upper edge.
        left: Place of its left edge.
        right: Place of its right edge.
        log: Whether values from left to right are on a logarithmic scale.
        parts: What is drawn, the first parts below.
    """

    top: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)
    left: int = LEFT
    right: int = WIDTH - RIGHT
    log: bool = False
    parts: list[Html] = field(default_factory=list)

    @property
    def bottom(self) -> int:
        """Place of the lower edge."""
        return self.top + self.height

    def across(self, value: Array | float) -> Array:
        """Whole places from the left."""
        x, low, high = np.asarray(value), *self.x
        if self.log:
            x, low, high = np.log10(np.clip(x, low, high)), np.log10(low), np.log10(high)
        return np.asarray(np.rint(self.left + (x - low) / (high - low) * (self.right - self.left)))

    def down(self, value: Array | float) -> Array:
        """Whole places from the top."""
        return np.asarray(np.rint(self.top + (self.y[1] - np.asarray(value)) / (self.y[1] - self.y[0]) * self.height))

    def text(self, words: str, x: float, y: float, class_: str | None = None) -> None:
        """Words at a place."""
        self.parts.append(element("text", words, x=int(x), y=int(y), class_=class_))

    def grid_rows(self, values: Sequence[float]) -> None:
        """Lines from left to right, their values beside them."""
        for value in values:
            self.level(value, "zero" if value == 0.0 else "grid")
            self.text(_label(value, values), self.left - 10, float(self.down(value)) + 8, "end")

    def grid_columns(self, unit: str = "") -> None:
        """Lines from top to bottom; with a unit, their values below them."""
        values = ticks(*self.x, 6)
        half = 9 * len(unit) + 20  # of the width of the last label, which has the unit
        final = min(int(self.across(values[-1])), self.right - half) if values else 0
        for value in values:
            x = int(self.across(value))
            self.parts.append(element("path", d=f"M{x} {self.top}v{self.height}", class_="grid"))
            if unit and value == values[-1]:
                self.text(f"{_label(value, values)} {unit}", final, self.bottom + 32, "mid")
            elif unit and x < final - half:
                self.text(_label(value, values), x, self.bottom + 32, "mid")

    def scale_above(self, values: Sequence[float]) -> None:
        """Lines from top to bottom at shares, in percent above them."""
        for value in values:
            x = int(self.across(value))
            self.parts.append(element("path", d=f"M{x} {self.top}V{self.bottom}", class_="grid"))
            self.text(f"{number(100.0 * value, 3)} %", x, self.top - 14, "mid")

    def level(self, value: float, class_: str) -> None:
        """A line from left to right."""
        self.parts.append(element("path", d=f"M{self.left} {int(self.down(value))}H{self.right}", class_=class_))

    def line(self, x: Array, y: Array, class_: str, *, bins: int = _BINS, gaps: bool = True) -> None:
        """A line as a path of whole, relative steps; broken where nothing is known, and at gaps in x if asked."""
        d = "".join(_steps(self.across(x[own]), self.down(y[own])) for own in _stretches(x, y, bins, gaps=gaps))
        self.parts.append(element("path", d=d or "M0 0", class_=class_))

    def band(self, x: Array, y: Array, half: float, *, bins: int) -> None:
        """A band around a line: there along its upper edge, back along the lower one, stretch by stretch."""
        d = ""
        for own in _stretches(x, y, bins):
            edge = np.concatenate([y[own] + half, y[own][::-1] - half])
            d += _steps(self.across(np.concatenate([x[own], x[own][::-1]])), self.down(edge)) + "z"
        self.parts.append(element("path", d=d, class_="band"))

    def dots(self, x: Array, y: Array) -> None:
        """A dot each: strokes of no length, with round ends."""
        known = np.isfinite(x) & np.isfinite(y) & (y >= self.y[0]) & (y <= self.y[1])
        places = np.unique(np.stack([self.across(x[known]), self.down(y[known])], axis=1).astype(int), axis=0)
        self.parts.append(
            element("path", d="".join(f"M{a} {b}h0" for a, b in places.tolist()) or "M0 0", class_="dots")
        )

    def bar(self, x: int, y: int, width: int, height: int, class_: str = "bar") -> None:
        """A bar at a place."""
        self.parts.append(element("rect", x=x, y=y, width=width, height=height, class_=class_))


def picture(title: str, described: str, parts: Sequence[Html], height: int, key: str, **attributes: object) -> Html:
    """An SVG with words for those who cannot see it; `key` starts ids that are unique on the page."""
    return element(
        "svg",
        element("title", title, id=f"{key}t"),
        element("desc", described, id=f"{key}d"),
        *parts,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_labelledby=f"{key}t {key}d",
        **attributes,
    )


def extent(values: Array) -> str:
    """Lowest and highest value in words."""
    known = np.asarray(values)[np.isfinite(values)]
    return f"{number(float(known.min()), 3)} and {number(float(known.max()), 3)}" if len(known) else "no known values"


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


def round_below(most: float, factors: Sequence[int] = (1, 2, 3, 4, 5, 6, 8)) -> float:
    """The largest round number up to another."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(power * max(factor for factor in factors if factor * power <= most))


def _label(value: float, beside: Sequence[float]) -> str:
    """A tick with the decimals that its neighbors need."""
    step = abs(beside[1] - beside[0]) if len(beside) > 1 else abs(value)
    if step == 0.0 or not 1e-3 <= step < 1e5:
        largest = max(abs(one) for one in beside)
        digits = 4 if step == 0.0 else max(4, int(np.floor(np.log10(largest)) - np.floor(np.log10(step))) + 1)
        return f"{value:.{digits}g}"
    return f"{value:.{max(0, -int(np.floor(np.log10(step))))}f}"


def _stretches(x: Array, y: Array, bins: int, *, gaps: bool = True) -> Iterator[NDArray[np.intp]]:
    """Indices of the points to draw, stretch by stretch."""
    known = np.flatnonzero(np.isfinite(y) & np.isfinite(x))
    if len(known) == 0:
        return
    breaks = np.diff(known) > 1
    if gaps and len(known) > 1:
        steps = np.diff(x[known])
        breaks |= steps > _GAP_STEPS * float(np.median(steps))
    size = max(1, -(-len(known) // bins))
    for stretch in np.split(known, np.flatnonzero(breaks) + 1):
        yield stretch[_extremes(y[stretch], size)] if size > 2 else stretch


def _extremes(values: Array, size: int) -> NDArray[np.intp]:
    """Places of the lowest and highest of every `size` neighbors, and of the ends."""
    n = len(values)
    filled = np.concatenate([values, np.full(-n % size, values[-1])]).reshape(-1, size)
    first = np.arange(len(filled)) * size
    found = np.concatenate([[0], first + filled.argmin(1), first + filled.argmax(1), [n - 1]])
    return np.unique(np.minimum(found, n - 1))


def _steps(x: Array, y: Array) -> str:
    places = np.column_stack([x, y]).astype(int)
    moves = np.diff(places, axis=0)
    moves = moves[moves.any(1)]
    text = (" %d,%d" * len(moves) % tuple(moves.ravel().tolist())).replace(",-", "-").replace(",", " ")
    return f"M{places[0, 0]} {places[0, 1]}l{text[1:] or '0 0'}"


# ----------------------------------------------------------------------------------------------------------------------
# Curves against anything.

Look = Literal["measured", "predicted", "predicted model", "residual", "dots"]


@dataclass(frozen=True)
class Curve:
    """One line or cloud of dots.

    Attributes:
        name: What it is, for the legend.
        x: (n,) places from left to right.
        y: (n,) values; a gap where one is not finite.
        look: How it is drawn; "measured" is wide and gray, "predicted" and "residual" are thin.
        limits: Values that it must keep; infinite where there is none.
    """

    name: str
    x: Array
    y: Array
    look: Look = "measured"
    limits: tuple[float, ...] = ()


def chart(title: str, curves: Sequence[Curve], *, x_unit: str, y_unit: str, key: str) -> Figure:
    """Curves in one frame, with a caption and a legend.

    Args:
        title: What it shows, above the frame.
        curves: What to draw, the first ones below.
        x_unit: Unit from left to right.
        y_unit: Unit from bottom to top.
        key: Start of ids that are unique on the page.
    """
    marks = dict.fromkeys((one.look, one.name) for one in curves)
    drawn = curves_svg(title, curves, x_unit=x_unit, y_unit=y_unit, key=key)
    caption = concatenate([title, " ", element("span", f"[{y_unit}]")])
    return figure(caption, drawn, legend(*marks) if len(curves) > 1 else "")


def curves_svg(
    title: str, curves: Sequence[Curve], *, x_unit: str, y_unit: str, key: str, gaps: bool = True, trimmed: bool = False
) -> Html:
    """Curves in one frame.

    Args:
        title: What it shows, for those who cannot see it.
        curves: What to draw, the first ones below.
        x_unit: Unit from left to right.
        y_unit: Unit from bottom to top.
        key: Start of ids that are unique on the page.
        gaps: Whether lines are broken where x jumps.
        trimmed: Whether single stray dots may lie outside the frame.
    """
    held = [np.asarray(one.y, dtype=np.float64) for one in curves]
    if trimmed:
        ends = [1.0 - _INSIDE, _INSIDE]
        held = [
            np.quantile(y, ends) if one.look == "dots" and len(y) else y for one, y in zip(curves, held, strict=True)
        ]
    every_x = np.concatenate([np.asarray(one.x, dtype=np.float64) for one in curves])
    frame = Chart(14, 380, span(every_x, 0.02), span(np.concatenate(held)))
    frame.grid_rows(ticks(*frame.y, 5))
    frame.grid_columns(x_unit)
    for one in curves:
        if one.look == "dots":
            frame.dots(np.asarray(one.x), np.asarray(one.y))
        else:
            frame.line(np.asarray(one.x), np.asarray(one.y), one.look, gaps=gaps)
    extents: dict[str, list[Array]] = {}
    for one in curves:
        extents.setdefault(one.name, []).append(np.ravel(one.y))
    described = "; ".join(f"{name} between {extent(np.concatenate(y))} {y_unit}" for name, y in extents.items())
    return picture(title, f"{described}.", frame.parts, frame.bottom + 50, key)


# ----------------------------------------------------------------------------------------------------------------------
# Torque over time: measured and predicted above, their difference below.


def shown_time(time: Array) -> Array:
    """Stamps as plots have them: seconds from the first."""
    return time - time[0] if len(time) else time


def torque_plot(trace: Trace, joint: int, *, half: float, name: str, unit: str, key: str, bins: int) -> Html:
    """The plot of one joint.

    Args:
        trace: Torque of a log.
        joint: Index of the joint.
        half: Half width of the band around the prediction; 0 for none.
        name: Of joint and log, for those who cannot see the plot.
        unit: Of the torque.
        key: Start of ids that are unique on the page.
        bins: Points of a line are thinned to two per bin, its lowest and highest.
    """
    time, measured, predicted = shown_time(trace.time), trace.measured[:, joint], trace.predicted[:, joint]
    residual = measured - predicted
    most = max(abs(end) for end in span(residual))
    upper = Chart(*_TORQUE, span(time, 0.0), span(np.concatenate([measured, predicted - half, predicted + half])))
    lower = Chart(*_RESIDUAL, upper.x, (-most, most))
    upper.grid_rows(ticks(*upper.y, 5))
    upper.grid_columns()
    lower.grid_rows([-round_below(0.9 * most), 0.0, round_below(0.9 * most)])
    lower.grid_columns("s")
    if half > 0.0:
        upper.band(time, predicted, half, bins=bins)
    upper.line(time, measured, "measured", bins=bins)
    upper.line(time, predicted, "predicted", bins=bins)
    lower.line(time, residual, "residual", bins=bins)
    described = (
        f"Measured torque between {extent(measured)} {unit}, predicted between {extent(predicted)} {unit}, residual "
        f"between {extent(residual)} {unit}."
    )
    frames = " ".join(map(str, (WIDTH, LEFT, RIGHT, *_TORQUE, *_RESIDUAL)))
    parts = [*upper.parts, *lower.parts]
    return picture(f"Torque of {name}", described, parts, 500, key, data_frame=frames)


# ----------------------------------------------------------------------------------------------------------------------
# A motion: joints over time with their limits, harmonics; standard deviations as bars.


def joint_plot(name: str, curves: Sequence[Curve], key: str) -> Html:
    """Quantities of one joint over time, one below the other, with their limits dashed."""
    charts = []
    for place, curve in enumerate(curves):
        limits = [limit for limit in curve.limits if np.isfinite(limit)]
        time = float(curve.x[0]), float(curve.x[-1])
        frame = Chart(44 + 230 * place, 180, time, span(np.concatenate([curve.y, limits])))
        frame.text(curve.name, LEFT, frame.top - 12)
        frame.grid_rows(ticks(*frame.y, 4))
        frame.grid_columns("s" if place == len(curves) - 1 else "")
        for limit in limits:
            frame.level(limit, "limit")
        frame.line(curve.x, curve.y, curve.look)
        charts.append(frame)
    described = "; ".join(f"{curve.name} between {extent(curve.y)}" for curve in curves)
    parts = [part for frame in charts for part in frame.parts]
    return picture(f"Motion of {name}", f"{described}.", parts, charts[-1].bottom + 50, key)


def harmonics_plot(name: str, sizes: Array, frequency: float, most: float, unit: str, key: str) -> Html:
    """Amplitude of each harmonic of a joint, (n_harmonics,), on a scale that reaches `most` for all joints."""
    frame = Chart(44, 190, (0.0, float(len(sizes))), (0.0, 1.08 * most))
    frame.text(f"amplitude [{unit}]", LEFT, frame.top - 12)
    frame.grid_rows(ticks(*frame.y, 4))
    wide = max(4, round(0.5 * (frame.right - frame.left) / len(sizes)))
    every = -(-len(sizes) // 10)  # labels that would run into each other are left out
    frequencies = [number((i + 1) * frequency, 3) for i in range(len(sizes))]
    for i, size in enumerate(sizes):
        middle, y = int(frame.across(i + 0.5)), int(frame.down(float(size)))
        frame.bar(middle - wide // 2, y, wide, frame.bottom - y)
        if i % every == 0:
            frame.text(frequencies[i] + (" Hz" if i + every >= len(sizes) else ""), middle, frame.bottom + 32, "mid")
    described = ", ".join(f"{f} Hz {number(float(x), 3)}" for f, x in zip(frequencies, sizes, strict=True))
    return picture(f"Harmonics of {name}", f"Amplitude in {unit}: {described}.", frame.parts, frame.bottom + 50, key)


def std_plot(
    names: Sequence[str], relative_std: Array, ends: tuple[float, float], key: str, before: Array | None = None
) -> Html:
    """Relative standard deviations as bars on a logarithmic scale.

    Args:
        names: Of the parameters.
        relative_std: (n,) beside the parameters' sizes; infinite if not determined.
        ends: Of the scale, powers of ten.
        key: Start of ids that are unique on the page.
        before: (n,) what they were before, shown as rings.
    """
    row = 34  # height
    left = max([_NAME_WIDTH, *(20 + _LETTER_WIDTH * len(name) for name in names)])
    frame = Chart(46, row * len(names), ends, left=left, right=WIDTH - 60, log=True)  # the last number needs room
    frame.scale_above([10.0**power for power in range(round(np.log10(ends[0])), round(np.log10(ends[1])) + 1)])
    for i, (name, share) in enumerate(zip(names, relative_std, strict=True)):
        y = frame.top + row * i
        frame.text(name, left - 10, y + 25, "end name")
        look = "bar" if np.isfinite(share) else "bar open"
        frame.bar(left, y + 7, max(int(frame.across(share)) - left, 2), row - 14, look)
        if before is not None:
            frame.parts.append(
                element("circle", cx=int(frame.across(before[i])), cy=y + row // 2, r=8, class_="before")
            )
    described = ", ".join(f"{name} {percent(float(share))}" for name, share in zip(names, relative_std, strict=True))
    title = "Relative standard deviations of the parameters"
    return picture(title, f"{described}.", frame.parts, frame.bottom + 10, key)


def comparison_plot(
    title: str, joints: Sequence[str], runs: Sequence[str], shares: Sequence[Sequence[float]], key: str
) -> Html:
    """A bar for each run below the name of each joint; letters and colors tell the runs apart.

    Args:
        title: What it shows.
        joints: Names of the rows.
        runs: Names of the bars of a row.
        shares: Of each joint and run; not a number where there is none.
        key: Start of ids that are unique on the page.
    """
    left, thick, named, apart = 60, 32, 36, 20  # room for letters; of a bar; of a joint's name; between joints
    step = named + thick * len(runs) + apart
    longest = 1.02 * float(np.nanmax(shares))
    frame = Chart(46, step * len(joints), (0.0, longest), left=left, right=WIDTH - 130)
    frame.scale_above(ticks(0.0, longest, 5))
    for i, (joint, own) in enumerate(zip(joints, shares, strict=True)):
        y = frame.top + step * i + apart // 2
        frame.text(joint, left, y + named - 10, "name")
        y += named
        for k, (run, share) in enumerate(zip(runs, own, strict=True)):
            base = y + thick * (k + 1) - 5
            frame.text(run, left - 12, base, "end")
            if np.isfinite(share):
                long = max(int(frame.across(share)) - left, 2)
                frame.bar(left, y + thick * k + 2, long, thick - 5, f"bar run{k % _RUN_COLORS}")
                frame.text(percent(share), left + long + 8, base)
    described = "; ".join(
        f"{joint}: " + ", ".join(f"{run} {percent(share)}" for run, share in zip(runs, own, strict=True))
        for joint, own in zip(joints, shares, strict=True)
    )
    return picture(title, f"{described}.", frame.parts, frame.bottom + 10, key)
