"""Points of friction from logs, where joints hold their velocities or sweep through them slowly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.estimate.fit import Fit
from dynident.experiments.bench import Samples, unbroken_stretches
from dynident.experiments.friction.groups import JointGroup
from dynident.experiments.friction.links import acceleration_columns
from dynident.experiments.friction.points import (
    BLOCKS,
    Known,
    Point,
    Stretch,
    both_ways,
    one_way,
)
from dynident.experiments.thresholds import FRICTION
from dynident.logs.log import LogSource
from dynident.robot.model import Robot
from dynident.signals.observations import observe

_AVERAGE = 0.2  # [s] over which the change of velocity is looked at
_TRIM = 0.1  # [s] left out at either end of a stretch
_BINS = 8  # of velocity, in each direction, for logs that sweep
_FEWEST = 3  # samples of a bin in a pass, and passes of a bin


class LogStretch(NamedTuple):
    """A stretch of a log without gaps, (m, n_moving) each but `time` (m,); `rest` is torque without what is known."""

    log: str
    time: Array
    q: Array
    dq: Array
    ddq: Array
    rest: Array


def log_stretches(log: LogSource, robot: Robot, fit: Fit | None, known: Known | None) -> list[LogStretch]:
    """The log filtered, stretch without gaps by stretch, with the torque that is not known."""
    observed = observe(log, robot) if fit is None else fit.observe(log)
    found, parts = [], []
    for motion in observed.motion():
        parts.append([motion.time, motion.q, motion.dq, motion.ddq, motion.tau[0], motion.inner])
        if motion.last:
            time, q, dq, ddq, tau, inner = (np.concatenate(own) for own in zip(*parts, strict=True))
            rest = tau if known is None else tau - known(q, dq, ddq)
            inside = np.asarray(inner, dtype=bool)
            found.append(LogStretch(Path(log.label).name, *(x[inside] for x in (time, q, dq, ddq, rest))))
            parts = []
    return [one for one in found if len(one.time) > BLOCKS]


def points_of_log(group: JointGroup, track: LogStretch, known: bool) -> tuple[list[Point], str]:
    """What a stretch of a log tells of a group, and a word on how or why not."""
    passes = _passes(group, track)
    if not passes:
        return [], ""
    held = [one for own in passes for one in _held_parts(group, track, own)]
    moving = sum(len(own) for own in passes)
    name = " and ".join(group.joints)
    if sum(len(one) for one in held) >= FRICTION.held_time_share * moving:
        stretches = [_group_stretch(group, track, one, known=known) for one in held]
        points = [one_way(one) for one in stretches] if known else _pair_directions(stretches)
        alone = (
            f"{track.log}: {name} holds no velocity in both directions, so gravity must be known: give a fit (--fit)"
        )
        return points, "" if points else alone
    if len(group.places) > 1:
        return [], f"{track.log}: {name} do not hold their velocities; two coupled joints must"
    if not known:
        return [], f"{track.log}: {name} does not hold its velocities, so inertia must be known: give a fit (--fit)"
    points = _swept(group, track, passes)
    note = f"{track.log}: {name} sweeps through its velocities; torque without links and rotor is averaged in bins"
    return points, note if points else f"{track.log}: {name} makes too few passes at each velocity"


def _passes(group: JointGroup, track: LogStretch) -> list[Samples]:
    """Sample numbers of stretches in which the group moves alone, every element in one direction."""
    units = group.radians
    own = track.dq[:, list(group.places)]
    others = np.delete(track.dq, list(group.places), axis=1)
    elements = own @ group.directions.T
    alone = np.all(np.abs(others) < FRICTION.rest_velocity, axis=1) & np.all(
        np.abs(elements) > FRICTION.rest_velocity * units.min(), axis=1
    )
    kind = np.where(alone, 1 + ((elements > 0) @ (2 ** np.arange(elements.shape[1]))), 0)
    return [run for run in unbroken_stretches(kind) if len(run) > BLOCKS]


def _held_parts(group: JointGroup, track: LogStretch, samples: Samples) -> list[Samples]:
    """Parts of a pass in which the velocity is held, without their ends."""
    step = float(np.median(np.diff(track.time)))
    width = max(1, round(_AVERAGE / step))
    velocity, change = (x[samples][:, list(group.places)] for x in (track.dq, track.ddq))
    if len(samples) < 2 * width:
        return []
    smooth = np.stack([np.convolve(x, np.full(width, 1.0 / width), mode="same") for x in change.T], axis=1)
    steady = np.all(np.abs(smooth) < FRICTION.held_change_per_s * np.abs(velocity) + 1e-12, axis=1)
    trim = round(_TRIM / step)
    parts = [part[trim : len(part) - trim] for part in unbroken_stretches(steady)]
    least = max(BLOCKS * 2, round(FRICTION.shortest_stretch_s / step))
    return [samples[part] for part in parts if len(part) >= least]


def _group_stretch(group: JointGroup, track: LogStretch, samples: Samples, *, known: bool) -> Stretch:
    """Samples of a group; what is known of the torque holds that of inertia already."""
    q, rest, ddq = (x[samples][:, list(group.places)] for x in (track.q, track.rest, track.ddq))
    inertia = None if known else np.stack([acceleration_columns(ddq)] * 2)
    return Stretch(track.log, track.time[samples], q, rest, inertia)


def _pair_directions(stretches: Sequence[Stretch]) -> list[Point]:
    """Each stretch with the next one in the opposite direction over the same positions."""
    left, points = list(stretches), []
    while left:
        one = left.pop(0)
        for other in left:
            apart = np.linalg.norm(one.velocity + other.velocity)
            if apart > FRICTION.opposite_share * np.linalg.norm(one.velocity):
                continue
            point = both_ways(one, other, fewest=2)
            if point is not None:
                points.append(point)
                left.remove(other)
                break
    return points


def _swept(group: JointGroup, track: LogStretch, passes: Sequence[Samples]) -> list[Point]:
    """Friction in bins of velocity, each direction by itself, one number per pass."""
    (place,) = group.places
    top = max(float(np.abs(track.dq[own, place]).max()) for own in passes)
    edges = top * (np.arange(_BINS + 1) / _BINS) ** 1.5  # finer where friction bends
    edges[0] = FRICTION.rest_velocity
    step = float(np.median(np.diff(track.time)))
    found: dict[tuple[float, int], list[tuple[float, float, int]]] = {}
    for whole in passes:
        own = _slipping(
            track.q[:, place],
            whole,
            FRICTION.winding_distance * group.radians[0],
        )
        velocity = track.dq[own, place]
        bins = np.searchsorted(edges, np.abs(velocity), side="right") - 1
        for k in range(_BINS):
            inside = own[bins == k]
            if len(inside) >= _FEWEST:
                means = (float(track.dq[inside, place].mean()), float(track.rest[inside, place].mean()), len(inside))
                found.setdefault((float(np.sign(means[0])), k), []).append(means)
    points = []
    for key in sorted(found):
        rows = np.array(found[key])
        if len(rows) >= _FEWEST:
            mean = np.average(rows[:, 0], weights=rows[:, 2])
            points.append(Point(track.log, np.array([mean]), rows[:, 1:2], False, float(rows[:, 2].sum() * step)))
    return points


def _slipping(q: Array, samples: Samples, far: float) -> Samples:
    """The samples of a pass that are this far from either end of it."""
    own = q[samples]
    return np.asarray(samples[(np.abs(own - own[0]) > far) & (np.abs(own - own[-1]) > far)])
