"""Plots of a motion as inline SVG: joints over time with their limits, harmonics, predicted deviations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.report.markup import Html, element
from dynident.report.plots import LEFT, RIGHT, WIDTH, Frame, axes, path, span, ticks
from dynident.report.words import number, percent

_FIRST, _HEIGHT, _APART = 44, 180, 230  # top of the first frame, height of each, from one to the next
_COLUMNS = 300  # in which a line has two points
_ROW = 34  # height of a row of the deviations
_NAME, _LETTER = 150, 17  # least width of its name, and of a letter at the size of narrow screens


@dataclass(frozen=True)
class Curve:
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


def joint_plot(name: str, time: Array, curves: Sequence[Curve], key: str) -> Html:
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
    told = "; ".join(f"{curve.name} from {_ends(curve.values)}" for curve in curves)
    height = _FIRST + (len(curves) - 1) * _APART + _HEIGHT + 50
    return picture(f"Motion of {name}", f"{told}.", parts, height, key)


def _ends(values: Array) -> str:
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
