"""Laws of motion from 0 to 1 in unit time, with their first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynident.arrays import Array

Law = Callable[[Array, float], tuple[Array, Array, Array]]
TWO_PI = 2.0 * np.pi


def cubic(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """3 s² - 2 s³: rest at both ends, acceleration jumps there."""
    return s * s * (3.0 - 2.0 * s), 6.0 * s * (1.0 - s), 6.0 - 12.0 * s


def quintic(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """10 s³ - 15 s⁴ + 6 s⁵: speed and acceleration are zero at both ends."""
    rest = 1.0 - s
    return s**3 * (10.0 + s * (6.0 * s - 15.0)), 30.0 * (s * rest) ** 2, 60.0 * s * rest * (1.0 - 2.0 * s)


def cycloid(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """s - sin(2 pi s) / 2 pi (Abhishek et al., eq. 12): speed and acceleration are zero at both ends."""
    turn = TWO_PI * s
    return s - np.sin(turn) / TWO_PI, 1.0 - np.cos(turn), TWO_PI * np.sin(turn)


def trapezoid(s: Array, ramp: float) -> tuple[Array, Array, Array]:
    """Constant acceleration for a share `ramp` of the time, constant speed, constant deceleration."""
    speed = 1.0 / (1.0 - ramp)
    faster = speed / ramp
    begin, end = s < ramp, s > 1.0 - ramp
    rest = 1.0 - s
    f = np.where(begin, 0.5 * faster * s * s, np.where(end, 1.0 - 0.5 * faster * rest * rest, speed * (s - ramp / 2)))
    df = np.where(begin, faster * s, np.where(end, faster * rest, speed))
    return f, df, np.where(begin, faster, np.where(end, -faster, 0.0))


LAWS: dict[str, Law] = {"quintic": quintic, "cubic": cubic, "cycloid": cycloid, "trapezoid": trapezoid}


def peaks(law: str, ramp: float) -> tuple[float, float]:
    """Largest speed and acceleration of a law in unit time."""
    return {
        "quintic": (1.875, 10.0 / np.sqrt(3.0)),
        "cubic": (1.5, 6.0),
        "cycloid": (2.0, TWO_PI),
        "trapezoid": (1.0 / (1.0 - ramp), 1.0 / (ramp * (1.0 - ramp))),
    }[law]
