"""Curves against anything as inline SVG: wide lines and dots are data, thin lines are models.

Lengths are in units of the view box, as in `plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.arrays import Array
from dynident.report.markup import Html, element
from dynident.report.motion_plots import picture
from dynident.report.plots import Frame, axes, path, span, ticks
from dynident.report.words import number

Look = Literal["measured", "predicted", "residual", "dots"]
_TOP, _HEIGHT = 14, 380
_COLUMNS = 300  # a line has two points in each


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
    frame = Frame(_TOP, _HEIGHT, span(every_x, 0.02), span(every_y))
    parts = [axes(frame, ticks(*frame.y, 5), across=x_unit)]
    parts += [element("path", d=_drawn(frame, one), class_=one.look) for one in curves]
    told = "; ".join(f"{one.name} between {_ends(np.asarray(one.y))} {y_unit}" for one in curves)
    drawn = picture(title, f"{told}.", parts, _TOP + _HEIGHT + 50, key)
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
        return path(frame, x, y, _COLUMNS) or "M0 0"
    known = np.isfinite(x) & np.isfinite(y)
    places = np.unique(np.stack([frame.across(x[known]), frame.down(y[known])], axis=1).astype(int), axis=0)
    return "".join(f"M{a} {b}h0" for a, b in places.tolist()) or "M0 0"


def _ends(values: Array) -> str:
    known = values[np.isfinite(values)]
    return f"{number(float(known.min()), 3)} and {number(float(known.max()), 3)}" if len(known) else "no values"
