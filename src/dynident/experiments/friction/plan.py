"""Runs there and back at constant velocity, within the joint limits."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.errors import InputError
from dynident.experiments.bench import Bounds
from dynident.experiments.friction.groups import JointGroup
from dynident.experiments.options import FrictionOptions
from dynident.experiments.thresholds import FRICTION

SHARES = (0.03, 0.08, 0.2, 0.4, 0.65, 0.9)  # of the fastest velocity, for one joint
COUPLED_SHARES = ((0.25, 0.55, 0.9), (0.15, 0.4, 0.75))  # of the slower one's, for two: every pair, and none alike
USED_VELOCITY = 0.95  # share of a velocity limit that a run may ask for
_MARGIN = 0.02  # share of a joint's range that is kept free at either end
_FREE_RANGE = 3.0  # [rad or m] of a joint without limits, about zero


class ThereAndBack:
    """A straight line in joint space, there and back at one velocity, with smooth ramps; a `Motion`.

    Args:
        start: (n_moving,) position [rad or m].
        velocity: (n_moving,) on the way there; zero for joints that are held [rad/s or m/s].
        cruise: Time at that velocity [s].
        ramp: From rest to the velocity [s].
        rest: Before each way, and at the end [s].
        settle: Time at that velocity before it is measured [s].
        label: Name of the run.
    """

    def __init__(
        self,
        start: ArrayLike,
        velocity: ArrayLike,
        cruise: float,
        *,
        ramp: float,
        rest: float,
        settle: float = 0.0,
        label: str = "",
    ) -> None:
        self.start, self.velocity = frozen(start), frozen(velocity)
        self.cruise, self.ramp, self.rest, self.settle, self.label = cruise, ramp, rest, settle, label
        self._way = 2.0 * ramp + cruise
        self.duration = 3.0 * rest + 2.0 * self._way

    @property
    def windows(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """When the velocity is constant and should have settled, there and back [s]; both share most positions."""
        first = self.rest + self.ramp
        back = first + self._way + self.rest
        # To the very end: a joint that lags behind passes the positions of the other way later than wanted.
        return (first + self.settle, first + self.cruise), (back + self.settle, back + self.cruise)

    def sample(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at times (m,), (m, n_moving) each."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        there = self._progress(times - self.rest)
        back = self._progress(times - 2.0 * self.rest - self._way)
        along, rate, change = (np.outer(a - b, self.velocity) for a, b in zip(there, back, strict=True))
        return self.start + along, rate, change

    def _progress(self, t: Array) -> tuple[Array, Array, Array]:
        """Way in units of the velocity, and its derivatives, from rest at 0 to rest at the end of the way."""
        ramp, t = self.ramp, np.clip(t, 0.0, self._way)
        late = t > 0.5 * self._way
        s = np.where(late, self._way - t, t)  # the second half mirrors the first
        phase = np.pi * np.minimum(s, ramp) / ramp
        way = 0.5 * np.minimum(s, ramp) - ramp / (2.0 * np.pi) * np.sin(phase) + np.maximum(s - ramp, 0.0)
        rate, change = 0.5 * (1.0 - np.cos(phase)), np.pi / (2.0 * ramp) * np.sin(phase)
        return np.where(late, ramp + self.cruise - way, way), rate, np.where(late, -change, change)


def joint_range(group: JointGroup, bounds: Bounds, given: Mapping[str, tuple[float, float]] | None = None) -> Array:
    """(n, 2) positions between which each joint may be, a little within its limits or as given."""
    found = []
    for variable, name, place in zip(group.variables, group.joints, group.places, strict=True):
        low, high = float(bounds.lower[place]), float(bounds.upper[place])
        chosen = (given or {}).get(variable) or (given or {}).get(name)
        if chosen is not None:
            if not low <= chosen[0] < chosen[1] <= high:
                raise InputError(
                    f"range of {variable} is {chosen[0]:g} to {chosen[1]:g}; expected a lower and an upper position "
                    f"within {low:g} to {high:g}"
                )
            found.append(chosen)
            continue
        if np.isinf(low) and np.isinf(high):
            low, high = -0.5 * _FREE_RANGE, 0.5 * _FREE_RANGE
        low = high - _FREE_RANGE if np.isinf(low) else low
        high = low + _FREE_RANGE if np.isinf(high) else high
        free = _MARGIN * (high - low)
        found.append((low + free, high - free))
    return np.array(found)


def fastest(group: JointGroup, bounds: Bounds, span: Array, timing: FrictionOptions) -> Array:
    """(n,) fastest velocity of each joint that its limit and its range allow."""
    limits = USED_VELOCITY * np.asarray(bounds.velocity)[list(group.places)]
    return np.asarray(np.minimum(limits, (span[:, 1] - span[:, 0]) / (timing.ramp + timing.shortest_cruise)))


def plan_levels(
    group: JointGroup,
    bounds: Bounds,
    pose: Array,
    *,
    velocities: Sequence[Sequence[float]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    timing: FrictionOptions,
) -> tuple[list[ThereAndBack], list[str]]:
    """The runs of a group, slow ones first, and what was left out.

    Args:
        group: The joints.
        bounds: Limits of the moving joints.
        pose: (n_moving,) where the other joints are held.
        velocities: For each joint its velocities, of the motor on the joint side where two are coupled; None for shares
            of the fastest. Two coupled joints get every pair, in either sense.
        ranges: Positions between which joints may move, by variable; default their limits.
        timing: Times of the runs.

    Raises:
        InputError: For a velocity beyond the limit, or one that the range is too short for.
    """
    span = joint_range(group, bounds, ranges)
    most = fastest(group, bounds, span, timing)
    limits = USED_VELOCITY * np.asarray(bounds.velocity)[list(group.places)]
    if not np.isfinite(most).all():
        raise InputError(f"{group.joints[int(np.argmax(most))]} has no velocity limit and no range; give one of them")
    wanted = _levels_wanted(group, most, velocities)
    levels, left_out = [], []
    for velocity in wanted:
        problem = _problem(group, velocity, limits, most, span, timing)
        if problem and velocities is not None and len(group.places) == 1:
            raise InputError(problem)
        if problem:
            left_out.append(problem)
            continue
        levels.append(_level(group, velocity, span, pose, timing))
    if not levels:
        raise InputError(f"no velocity can be run: {left_out[0] if left_out else 'none was given'}")
    return levels, left_out


def _levels_wanted(group: JointGroup, most: Array, velocities: Sequence[Sequence[float]] | None) -> list[Array]:
    """Joint velocities on the way there, slow ones first."""
    n = len(group.places)
    if velocities is None:
        shares = (SHARES,) if n == 1 else COUPLED_SHARES
        given: list[list[float]] = [[share * float(most.min()) for share in own] for own in shares]
    else:
        given = [sorted({float(one) for one in own}) for own in velocities]
    for own, name in zip(given, group.joints, strict=True):
        for one in own:
            if not (np.isfinite(one) and one > 0.0):
                raise InputError(
                    f"velocity {one:g} of {name}; expected positive numbers, each is run in both directions"
                )
    if n == 1:
        return [np.array([one]) for one in given[0]]
    inverse = np.linalg.inv(group.coupling)
    pairs = [np.array([a, sign * b]) for a, b in itertools.product(*given) for sign in (1.0, -1.0)]
    return sorted((inverse @ pair for pair in pairs), key=lambda velocity: float(np.abs(velocity).max()))


def _problem(
    group: JointGroup, velocity: Array, limits: Array, most: Array, span: Array, timing: FrictionOptions
) -> str:
    """Why a set of velocities cannot be run; empty if it can."""
    at = ", ".join(f"{name} {one:.3g}" for name, one in zip(group.variables, velocity, strict=True))
    elements = np.abs(group.directions @ velocity)
    still = elements < FRICTION.resting_share * np.abs(velocity).max()
    if still.any():
        return f"{at}: element {group.elements[int(np.argmax(still))].label} would rest, and its friction have no sign"
    for k, name in enumerate(group.joints):
        if abs(velocity[k]) > limits[k] * (1.0 + 1e-9):
            return (
                f"{at}: {name} would be faster than {USED_VELOCITY:.0%} of its limit, {limits[k]:.4g} {group.units[k]}"
            )
        if abs(velocity[k]) > most[k] * (1.0 + 1e-9):
            return (
                f"{at}: the range of {name} is too short to reach this velocity and hold it for "
                f"{timing.shortest_cruise:g} s; at most {most[k]:.4g} {group.units[k]}, or widen "
                "the range, or shorten ramp and settle"
            )
    settle = _settle(group, velocity, timing)
    if _longest(velocity, span, timing) < 2.0 * settle + timing.least:
        return f"{at}: the range is too short to settle, which takes {settle:.3g} s so slowly; widen the range"
    return ""


def _settle(group: JointGroup, velocity: Array, timing: FrictionOptions) -> float:
    """Time to settle at a velocity [s]."""
    return max(timing.settle, timing.wind * float(np.max(group.radians / np.abs(velocity))))


def _longest(velocity: Array, span: Array, timing: FrictionOptions) -> float:
    """Time at a velocity that the range allows [s]."""
    return float(np.min((span[:, 1] - span[:, 0]) / np.abs(velocity))) - timing.ramp


def _level(group: JointGroup, velocity: Array, span: Array, pose: Array, timing: FrictionOptions) -> ThereAndBack:
    settle = _settle(group, velocity, timing)
    cruise = min(timing.cruise + 2.0 * (settle - timing.settle), _longest(velocity, span, timing))
    start, whole = np.array(pose), np.zeros(len(pose))
    whole[list(group.places)] = velocity
    start[list(group.places)] = span.mean(axis=1) - 0.5 * velocity * (cruise + timing.ramp)
    label = "-".join(f"{name}_{one:+.3g}" for name, one in zip(group.variables, velocity, strict=True))
    return ThereAndBack(start, whole, cruise, ramp=timing.ramp, rest=timing.rest, settle=settle, label=label)


def prolong_level(
    group: JointGroup, level: ThereAndBack, span: Array, timing: FrictionOptions, settle: float, *, slower: bool
) -> tuple[ThereAndBack | None, str]:
    """A run again, with more time to settle.

    Args:
        group: The joints.
        level: The run that was too short.
        span: (n, 2) positions between which each joint may be.
        timing: As planned.
        settle: Time to settle [s].
        slower: Whether the velocity may be less, where the range is too short for it.

    Returns:
        The run, None where there is no room for it; and the lower velocity or the lack of room in words.
    """
    more = replace(timing, settle=settle, cruise=timing.cruise + 2.0 * max(settle - timing.settle, 0.0))
    velocity = level.velocity[list(group.places)]
    room = _longest(velocity, span, more) + more.ramp
    share = min(room / (more.ramp + more.shortest_cruise), 1.0)
    if share < 1.0 and not slower:
        return None, (
            f"it takes {settle:.2g} s to settle, for which the range is too short; widen the range (--range), take a "
            f"lower velocity (--velocities, at most {share:.2g} times this one) or a stiffer feedback (--bandwidth)"
        )
    note = f"run at {share:.2g} times its velocity, for the range is too short to settle in {settle:.2g} s"
    again = _level(group, share * velocity, span, level.start, more)
    return again, "" if share == 1.0 else note
