"""Inertia of a link about its center of mass beside that of a body, and as a linear matrix inequality."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.physical.cones import triangle
from dynident.robot.parameters import in_frame, inertia_matrix, to_classical


def inertia_share(chi: Array, body: Array) -> float:
    """Smallest share of a described inertia about the center of mass that a link has about its own, in any direction.

    Args:
        chi: (10,) standard parameters of the link.
        body: (10,) those that describe it.
    """
    inverse = np.linalg.inv(np.linalg.cholesky(to_classical(body)[2]))
    return float(np.linalg.eigvalsh(inverse @ to_classical(chi)[2] @ inverse.T)[0])


def spatial_inertia(body: Array) -> Array:
    """(21, 10) triangle of a link's spatial inertia about a body's center, in axes where that of the body is one."""
    mass, center, inertia = to_classical(body)
    inverse = np.linalg.inv(np.linalg.cholesky(inertia))
    moved = in_frame(np.eye(10), np.eye(3), -center)
    x, y, z = moved[:, 6:9].T
    none = np.zeros(10)
    cross = np.array([[none, -z, y], [z, none, -x], [-y, x, none]]).transpose(2, 0, 1)
    spatial = np.zeros((10, 6, 6))
    spatial[:, :3, :3] = inverse @ inertia_matrix(moved) @ inverse.T
    spatial[:, :3, 3:] = inverse @ cross / np.sqrt(mass)
    spatial[:, 3:, :3] = spatial[:, :3, 3:].swapaxes(1, 2)
    spatial[:, 3:, 3:] = moved[:, 9, None, None] / mass * np.eye(3)
    return np.asarray(triangle(spatial).T)
