"""Friction against speed as curves: of one joint, and sections through that of two coupled ones (Fig. 2)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.experiments.velocity.fit import VelocityFit

_POINTS = 200  # of a model's line between two jumps
_SAME = 0.02  # share of the largest speed within which points belong to one section


@dataclass(frozen=True, eq=False)
class Section:
    """Friction of one output against the speed of its own actuated coordinate, the other one constant.

    Attributes:
        output: What torque is of.
        other: The other actuated coordinate; empty for one joint.
        level: Its speed.
        speed: (m,) of the points.
        torque: (m,) mean friction of the points [N·m or N].
        parts: (k, 2) speed and friction of every part of them: the scatter.
        line_speed: (l,) of the model.
        line: (l,) friction of the model, not a number where it jumps.
        jumps: Speeds at which the model jumps, with the height of each.
    """

    output: str
    other: str
    level: float
    speed: Array
    torque: Array
    parts: Array
    line_speed: Array
    line: Array
    jumps: tuple[tuple[float, float], ...]


def sections(fit: VelocityFit) -> tuple[Section, ...]:
    """One section for one joint; for two, one of each output at the speed of the other that has most points."""
    if len(fit.group.places) == 1:
        return (section(fit, 0),)
    speed = _measured(fit)[0]
    return tuple(section(fit, row, _fullest(speed[:, 1 - row])) for row in (0, 1))


def section(fit: VelocityFit, row: int, level: float = 0.0) -> Section:
    """Friction of an output against its own speed.

    Args:
        fit: The fit.
        row: Which output of the group.
        level: Speed of the other actuated coordinate, where there is one [rad/s or m/s].
    """
    speed, blocks = _measured(fit)
    chosen = list(range(len(speed)))
    other = ""
    if speed.shape[1] > 1:
        across = speed[:, 1 - row]
        chosen = np.flatnonzero(np.abs(across - level) < _SAME * np.abs(across).max()).tolist()
        other = fit.group.outputs[1 - row]
    own = speed[chosen, row]
    parts = [np.stack([np.full(len(blocks[k]), speed[k, row]), blocks[k][:, row]], axis=1) for k in chosen]
    mean = np.array([blocks[k][:, row].mean() for k in chosen])
    drawn = _line(fit, row, level, 1.05 * float(np.abs(speed[:, row]).max()))
    return Section(fit.group.outputs[row], other, level, own, mean, np.concatenate([np.zeros((0, 2)), *parts]), *drawn)


def _measured(fit: VelocityFit) -> tuple[Array, list[Array]]:
    """Actuated speeds (m, n) and parts of friction of all points, those of both directions once for each."""
    speed, blocks = [], []
    for point in fit.points:
        for sign in (1.0, -1.0) if point.odd else (1.0,):
            speed.append(sign * (fit.group.coupling @ point.speed))
            blocks.append(sign * point.blocks)
    return np.array(speed), blocks


def _fullest(speeds: Array) -> float:
    """The speed that most points share, the fastest of those."""
    top = float(np.abs(speeds).max())
    near = np.abs(speeds[:, None] - speeds[None]) < _SAME * top
    counts = near.sum(axis=1)
    best = max(range(len(speeds)), key=lambda k: (counts[k], speeds[k]))
    return float(speeds[near[best]].mean())


def _line(fit: VelocityFit, row: int, level: float, top: float) -> tuple[Array, Array, tuple[tuple[float, float], ...]]:
    """The model along a section, broken where an element changes its direction."""
    n = len(fit.group.places)
    inverse = np.linalg.inv(fit.group.coupling)

    def friction(speeds: Array) -> Array:
        actuated = np.full((len(speeds), n), level)
        actuated[:, row] = speeds
        return fit.friction(actuated @ inverse.T, offset=not all(point.odd for point in fit.points))[:, row]

    # An element's speed along the section is a straight line in that of the output.
    base, slope = np.full(n, level), np.zeros(n)
    base[row], slope[row] = 0.0, 1.0
    at, rise = (fit.group.directions @ inverse @ x for x in (base, slope))
    turns = sorted({float(-a / b) + 0.0 for a, b in zip(at, rise, strict=True) if b and abs(a / b) < top})
    edges, tiny = [-top, *turns, top], 1e-6 * top
    speeds: list[Array] = []
    line: list[Array] = []
    for low, high in itertools.pairwise(edges):
        own = np.linspace(low + tiny, high - tiny, _POINTS)
        speeds += [own, np.array([high])]
        line += [friction(own), np.array([np.nan])]
    heights = [float(np.diff(friction(np.array([x - tiny, x + tiny])))[0]) for x in turns]
    found = tuple((x, h) for x, h in zip(turns, heights, strict=True))
    return np.concatenate(speeds), np.concatenate(line), found
