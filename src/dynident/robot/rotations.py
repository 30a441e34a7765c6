"""Rotation matrices from angles, axes and quaternions, as URDF and MJCF write them."""

from __future__ import annotations

import math

import numpy as np

from dynident.arrays import Array


def rpy_matrix(roll: float, pitch: float, yaw: float) -> Array:
    """Rotation matrix of fixed-axis roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    matrix = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    matrix[np.abs(matrix) < 1e-15] = 0.0
    return matrix


def z_to(axis: Array) -> Array:
    """A rotation whose z column is `axis`; a signed permutation for axes along x, y or z, so that zeros stay zeros."""
    for i in range(3):
        if float(np.abs(axis).sum()) - abs(axis[i]) < 1e-12:  # the other two, not 1 - |axis[i]|, which hides 1e-9
            matrix = np.zeros((3, 3))
            sign = math.copysign(1.0, axis[i])
            # Cyclic order keeps the determinant at one; the sign goes to z and to one more axis.
            matrix[(i + 1) % 3, 0] = 1.0
            matrix[(i + 2) % 3, 1] = sign
            matrix[i, 2] = sign
            return matrix
    x, y, z = (float(v) for v in axis)
    if z > -0.5:  # the smallest rotation that takes z to the axis
        k = 1.0 / (1.0 + z)
        return np.array([[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]])
    k = 1.0 / (1.0 - z)
    return np.array([[1 - k * x * x, k * x * y, x], [-k * x * y, -1 + k * y * y, y], [x, -y, z]])


def quaternion_matrix(quaternion: Array) -> Array:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (float(v) for v in quaternion)
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )
