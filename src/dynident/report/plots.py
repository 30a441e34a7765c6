"""Torque over time as inline SVG, written by hand: measured and predicted above, their difference below.

Lengths are in units of the view box, about half a pixel on a screen, so that whole numbers are fine enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.estimate.accuracy import Trace
from dynident.report.markup import Html, element
from dynident.report.words import number

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
