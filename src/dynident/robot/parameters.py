r"""Standard parameters of a link: names, order, units and conversions.

The ten numbers of link j in Khalil's order, about the origin of the link frame::

    XX XY XZ YY YZ ZZ   inertia matrix entries with their sign   [kg·m²]
    MX MY MZ            first moments, mass times center of mass [kg·m]
    M                   mass                                     [kg]

All arrays here have the ten numbers on their last axis, so one link (10,) and a robot (n_links, 10) both work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array

LINK_SYMBOLS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
ELEMENT_SYMBOLS = ("Ia", "Fv", "Fc", "Fo")
LINK_UNITS = ("kg·m²",) * 6 + ("kg·m",) * 3 + ("kg",)
MEANINGS = {
    "XX": "moment of inertia about x",
    "XY": "product of inertia xy",
    "XZ": "product of inertia xz",
    "YY": "moment of inertia about y",
    "YZ": "product of inertia yz",
    "ZZ": "moment of inertia about z",
    "MX": "first moment along x",
    "MY": "first moment along y",
    "MZ": "first moment along z",
    "M": "mass",
    "Ia": "rotor inertia, joint side",
    "Fv": "viscous friction",
    "Fc": "Coulomb friction",
    "Fo": "torque offset",
}

# Pinocchio: [m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz], inertia about the joint-frame origin.
_FROM_PINOCCHIO = (4, 5, 7, 6, 8, 9, 1, 2, 3, 0)
_TO_PINOCCHIO = tuple(int(i) for i in np.argsort(_FROM_PINOCCHIO))


def link_values(number: int, chi: Array) -> dict[str, float]:
    """The ten numbers (10,) of a link by parameter name."""
    return {f"{symbol}{number}": float(x) for symbol, x in zip(LINK_SYMBOLS, chi, strict=True)}


def element_unit(symbol: str, prismatic: bool) -> str:
    """Unit of an element's parameter (rotor inertia, viscous, Coulomb, offset)."""
    if prismatic:
        return {"Ia": "kg", "Fv": "N·s/m", "Fc": "N", "Fo": "N"}[symbol]
    return {"Ia": "kg·m²", "Fv": "N·m·s/rad", "Fc": "N·m", "Fo": "N·m"}[symbol]


def inertia_matrix(chi: ArrayLike) -> Array:
    """Inertia about the link-frame origin, (..., 3, 3), from standard parameters (..., 10)."""
    chi = np.asarray(chi, dtype=np.float64)
    xx, xy, xz, yy, yz, zz = (chi[..., i] for i in range(6))
    return np.stack([np.stack([xx, xy, xz], -1), np.stack([xy, yy, yz], -1), np.stack([xz, yz, zz], -1)], -2)


def from_matrix(inertia: ArrayLike, first_moment: ArrayLike, mass: ArrayLike) -> Array:
    """Standard parameters (..., 10) from inertia about the origin (..., 3, 3), first moment (..., 3), mass (...)."""
    inertia = np.asarray(inertia, dtype=np.float64)
    rows, columns = (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)
    mass = np.asarray(mass, dtype=np.float64)[..., None]
    return np.concatenate([inertia[..., rows, columns], np.asarray(first_moment, dtype=np.float64), mass], -1)


def _steiner(first_moment: Array, mass: Array) -> Array:
    """What moving the reference from the center of mass to the origin adds: m (c·c E - c c'), (..., 3, 3)."""
    safe = np.where(mass == 0.0, 1.0, mass)[..., None, None]
    square = np.sum(first_moment**2, -1)[..., None, None] * np.eye(3)
    return np.asarray((square - first_moment[..., :, None] * first_moment[..., None, :]) / safe)


def from_classical(mass: ArrayLike, center: ArrayLike, inertia: ArrayLike) -> Array:
    """Standard parameters from mass, center of mass and inertia about the center of mass.

    Khosla & Kanade 1987, eq. (10).

    Args:
        mass: (...) [kg].
        center: (..., 3), in the link frame [m].
        inertia: (..., 3, 3), about the center of mass, axes parallel to the link frame [kg·m²].
    """
    mass = np.asarray(mass, dtype=np.float64)
    first = mass[..., None] * np.asarray(center, dtype=np.float64)
    return from_matrix(np.asarray(inertia) + _steiner(first, mass), first, mass)


def to_classical(chi: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass (...), center of mass (..., 3) and inertia about it (..., 3, 3); a massless link has center zero."""
    chi = np.asarray(chi, dtype=np.float64)
    mass, first = chi[..., 9], chi[..., 6:9]
    center = first / np.where(mass == 0.0, np.inf, mass)[..., None]
    steiner = np.where((mass == 0.0)[..., None, None], 0.0, _steiner(first, mass))
    return mass, center, inertia_matrix(chi) - steiner


def from_pinocchio(vector: ArrayLike) -> Array:
    """Standard parameters from Pinocchio's `toDynamicParameters` order, (..., 10)."""
    return np.asarray(vector, dtype=np.float64)[..., _FROM_PINOCCHIO]


def to_pinocchio(chi: ArrayLike) -> Array:
    """Pinocchio's order from standard parameters, (..., 10)."""
    return np.asarray(chi, dtype=np.float64)[..., _TO_PINOCCHIO]


def to_mujoco(chi: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass, `pos` and `fullinertia` (Ixx Iyy Izz Ixy Ixz Iyz about the center of mass) of a MuJoCo body."""
    mass, center, inertia = to_classical(chi)
    return mass, center, inertia[..., (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


def from_mujoco(mass: ArrayLike, pos: ArrayLike, fullinertia: ArrayLike) -> Array:
    """Standard parameters from a MuJoCo body's mass, `pos` and `fullinertia`."""
    full = np.asarray(fullinertia, dtype=np.float64)
    matrix = full[..., [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
    return from_classical(mass, pos, matrix)


def from_urdf(mass: ArrayLike, xyz: ArrayLike, rotation: ArrayLike, inertia: ArrayLike) -> Array:
    """Standard parameters from a URDF `<inertial>`.

    Args:
        mass: [kg].
        xyz: (3,) center of mass in the link frame [m].
        rotation: (3, 3) orientation of the inertial frame in the link frame.
        inertia: (3, 3) about the center of mass, in the inertial frame [kg·m²].
    """
    rotation = np.asarray(rotation, dtype=np.float64)
    return from_classical(mass, xyz, rotation @ np.asarray(inertia, dtype=np.float64) @ rotation.T)


def to_urdf(chi: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass, center of mass and inertia (3, 3) of a URDF `<inertial>` whose frame is parallel to the link's."""
    return to_classical(chi)


def in_frame(chi: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """The same body's parameters in another frame.

    Args:
        chi: (..., 10) in frame B.
        rotation: (3, 3), axes of B in A.
        translation: (3,), origin of B in A [m].

    Returns:
        (..., 10) in frame A: the mass is kept, the first moment and the inertia follow.
    """
    chi = np.asarray(chi, dtype=np.float64)
    R, p = np.asarray(rotation, dtype=np.float64), np.asarray(translation, dtype=np.float64)
    mass = chi[..., 9]
    turned = chi[..., 6:9] @ R.T
    cross = p * turned  # p·(R s) entrywise, and its outer products below: linear also for massless bodies
    outer = p[:, None] * turned[..., None, :]
    point = np.dot(p, p) * np.eye(3) - np.outer(p, p)
    inertia = (
        R @ inertia_matrix(chi) @ R.T
        + 2.0 * np.sum(cross, -1)[..., None, None] * np.eye(3)
        - outer
        - np.swapaxes(outer, -1, -2)
        + mass[..., None, None] * point
    )
    return from_matrix(inertia, turned + mass[..., None] * p, mass)
