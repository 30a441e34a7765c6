"""Equations (2) to (30) as printed and corrected: pendulums, chains of rods, sensitivity of the torque."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import coriolis_torque, gravity_torque, mass_matrix
from dynident.robot import load_robot

GRAVITY = 9.81  # [m/s²]
_STATES = 200
Difference = tuple[float, float]  # largest, of the equation corrected and as printed


def rod_values(masses: Array) -> dict[str, float]:
    """Standard parameters of slender rods of one meter."""
    values: dict[str, float] = {}
    for i, m in enumerate(masses.tolist(), 1):
        values |= {f"M{i}": m, f"MX{i}": 0.5 * m, f"ZZ{i}": m / 3.0}
    return values


def chain_differences(links: int) -> dict[str, Difference]:
    """(23), (24) or (25): largest difference of A, c and g from the recursion, corrected and as printed.

    Args:
        links: Of the chain, 1 to 3.
    """
    rng = np.random.default_rng(links)
    robot, masses = load_robot(f"pendulum-{links}"), rng.uniform(0.5, 2.0, links)
    q, dq = rng.uniform(-np.pi, np.pi, (_STATES, links)), rng.normal(size=(_STATES, links))
    values = rod_values(masses)
    M, c, g = mass_matrix(robot, q, values), coriolis_torque(robot, q, dq, values), gravity_torque(robot, q, values)
    found = {"A": _pair(_mass(masses, q), _mass(masses, q, as_printed=True), M)}
    if links > 1:
        velocity = _velocity_torque(masses, q, dq)
        found["c"] = _pair(velocity, velocity, c)
    weight = _weight(masses, q)
    return {**found, "g": _pair(-weight, weight, g)}


def _pair(right: Array, printed: Array, here: Array) -> Difference:
    return float(np.abs(right - here).max()), float(np.abs(printed - here).max())


def _pad_to_three(masses: Array, *rows: Array) -> tuple[Array, list[Array]]:
    """Three links, of which further ones have no mass, and angles and velocities to go with them."""
    more = 3 - len(masses)
    return np.pad(masses, (0, more)), [np.pad(x, ((0, 0), (0, more))) for x in rows]


def _mass(masses: Array, q: Array, *, as_printed: bool = False) -> Array:
    """A of (25), of which (24) and (23) are the cases without mass of link 3, and of links 2 and 3."""
    (m1, m2, m3), (angles,) = _pad_to_three(masses, q)
    C2, C3, C23 = np.cos(angles[:, 1]), np.cos(angles[:, 2]), np.cos(angles[:, 1] + angles[:, 2])
    near = (m2 + 2.0 * m3) * C2
    A = np.zeros((len(q), 3, 3))
    A[:, 0, 0] = (m1 + 4.0 * m2 + 7.0 * m3) / 3.0 + near + m3 * (C3 + C23)
    A[:, 0, 1] = A[:, 1, 0] = (m2 + 4.0 * m3) / 3.0 + 0.5 * near + 0.5 * m3 * (2.0 * C3 + C23)
    A[:, 0, 2] = A[:, 2, 0] = m3 * (2.0 + 3.0 * C3 + 3.0 * C23) / 6.0
    A[:, 1, 2] = A[:, 2, 1] = m3 * (2.0 + 3.0 * C3) / 6.0
    A[:, 1, 1] = (m2 + 4.0 * m3) / 3.0 + (3.0 if as_printed else 1.0) * m3 * C3
    A[:, 2, 2] = m3 / 3.0
    n = len(masses)
    return A[:, :n, :n]


def _velocity_torque(masses: Array, q: Array, dq: Array) -> Array:
    """c of (25)."""
    (_, m2, m3), (angles, velocities) = _pad_to_three(masses, q, dq)
    S2, S3, S23 = np.sin(angles[:, 1]), np.sin(angles[:, 2]), np.sin(angles[:, 1] + angles[:, 2])
    v1, v2, v3 = velocities.T
    w = v1 + v2
    near = 0.5 * (m2 + 2.0 * m3)
    wave = v3 * (2.0 * w + v3) * S3
    c1 = -near * v2 * (2.0 * v1 + v2) * S2 - 0.5 * m3 * (wave + (v2 + v3) * (2.0 * v1 + v2 + v3) * S23)
    c2 = near * v1**2 * S2 + 0.5 * m3 * (-wave + v1**2 * S23)
    c3 = 0.5 * m3 * (w**2 * S3 + v1**2 * S23)
    return np.column_stack([c1, c2, c3])[:, : len(masses)]


def _weight(masses: Array, q: Array) -> Array:
    """g of (25) as printed."""
    (m1, m2, m3), (angles,) = _pad_to_three(masses, q)
    tip = 0.5 * m3 * GRAVITY * np.sin(angles.sum(1))
    middle = 0.5 * (m2 + 2.0 * m3) * GRAVITY * np.sin(angles[:, 0] + angles[:, 1])
    root = 0.5 * (m1 + 2.0 * (m2 + m3)) * GRAVITY * np.sin(angles[:, 0])
    return np.column_stack([root + middle + tip, middle + tip, tip])[:, : len(masses)]
