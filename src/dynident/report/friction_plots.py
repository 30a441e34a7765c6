"""Friction as inline SVG: against speed, around reversals, against load; dots and wide lines are data, thin ones model.

Lengths are in units of the view box, as in `plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.report.markup import Html, element
from dynident.report.motion_plots import picture
from dynident.report.plots import Frame, axes, span, ticks
from dynident.report.words import number

_TOP, _HEIGHT = 14, 380
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
    frame = Frame(_TOP, _HEIGHT, span(np.concatenate([dots[0], line[0]]), 0.02), span(np.concatenate([held, line[1]])))
    inside = (dots[1] >= frame.y[0]) & (dots[1] <= frame.y[1])
    told = f"The model's friction lies between {_ends(line[1])} {unit}, the data's between {_ends(dots[1])} {unit}"
    parts = [
        axes(frame, ticks(*frame.y, 5), across=over.unit),
        element("path", d=_dots(frame, dots[0][inside], dots[1][inside]), class_="dots"),
        element("path", d=_line(frame, *line), class_="predicted model"),
    ]
    return picture(title, f"{told}, over {over.name} [{over.unit}].", parts, _TOP + _HEIGHT + 50, key)


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
    frame = Frame(_TOP, _HEIGHT, span(every[0], 0.02), span(every[1:]))
    parts = [axes(frame, ticks(*frame.y, 5), across=over.unit)]
    parts += [element("path", d=_line(frame, one[0], one[1]), class_="measured") for one in loops]
    parts += [element("path", d=_line(frame, one[0], one[2]), class_="predicted") for one in loops]
    told = f"Friction around {len(loops)} reversals, measured between {_ends(every[1])} {unit}, of the model between "
    return picture(title, f"{told}{_ends(every[2])} {unit}.", parts, _TOP + _HEIGHT + 50, key)


def _ends(values: Array) -> str:
    return f"{number(float(values.min()), 3)} and {number(float(values.max()), 3)}" if len(values) else "no values"


def _dots(frame: Frame, x: Array, y: Array) -> str:
    """A dot each: strokes of no length, with round ends."""
    places = np.unique(np.stack([frame.across(x), frame.down(y)], axis=1).astype(int), axis=0)
    return "".join(f"M{a} {b}h0" for a, b in places.tolist()) or "M0 0"


def _line(frame: Frame, x: Array, y: Array) -> str:
    places = np.stack([frame.across(x), frame.down(y)], axis=1).astype(int)
    kept = places[np.concatenate([[True], np.diff(places, axis=0).any(1)])]
    return "M" + "L".join(f"{a} {b}" for a, b in kept.tolist())
