"""Equations (18) to (26) as printed and corrected: what each parameter adds to the torque, along any motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import columns, regressor
from dynident.robot import Robot

GRAVITY = 9.81  # [m/s²]
_SAMPLES = 200  # random states in which an equation is compared


class Claim(NamedTuple):
    """What an equation says of a parameter.

    Attributes:
        equation: Its number.
        joint: Index of the joint.
        parameter: Name of the standard parameter.
        right: (n_samples,) its coefficient, corrected.
        printed: (n_samples,) the same as printed; None where that is right.
    """

    equation: str
    joint: int
    parameter: str
    right: Array
    printed: Array | None = None


def random_states(robot: Robot) -> tuple[Array, Array, Array]:
    """States in which a wrong coefficient cannot hide: q, dq, ddq, (n_samples, n_joints) each."""
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, _SAMPLES, len(robot.moving)))
    return q, dq, ddq


def differences(robot: Robot, claims: Mapping[str, Claim]) -> dict[str, tuple[float, float | None]]:
    """Largest difference of each corrected and printed coefficient from the regressor, by name of the claim."""
    W = regressor(robot, *random_states(robot), "rigid")
    names = [column.name for column in columns(robot, "rigid")]
    found = {}
    for name, claim in claims.items():
        own = W[:, claim.joint, names.index(claim.parameter)]
        printed = None if claim.printed is None else float(np.abs(claim.printed - own).max())
        found[name] = float(np.abs(claim.right - own).max()), printed
    return found


def _by_name(*claims: Claim) -> dict[str, Claim]:
    return {f"({one.equation}) {one.parameter}": one for one in claims}


def cylindrical_claims(robot: Robot) -> dict[str, Claim]:
    """Coefficients (21) to (23), which those of (18) to (20) are too; q2 and q3 are the displacements."""
    q, dq, ddq = (x.T for x in random_states(robot))
    d3, w, dw = q[2], dq[0], ddq[0]
    lift, turn = ddq[1] + GRAVITY, 2.0 * dq[2] * w
    return _by_name(
        Claim("21", 2, "MZ3", -(w**2), -2.0 * w**2),
        Claim("21", 2, "M3", ddq[2] - d3 * w**2),
        Claim("22", 1, "M2", lift),
        Claim("22", 1, "M3", lift),
        Claim("23", 0, "ZZ1", dw),
        Claim("23", 0, "MZ3", 2.0 * d3 * dw + turn, 2.0 * dw + turn),
        Claim("23", 0, "M3", d3**2 * dw + d3 * turn),
    )


def arm_claims(robot: Robot) -> dict[str, Claim]:
    """Coefficients (24) to (26) of the arm's first three joints."""
    a1, a2, d3 = (robot.lengths[name] for name in ("a1", "a2", "d3"))
    (_, q2, q3), (v1, v2, v3), (e1, e2, e3) = (x.T for x in random_states(robot))
    C2, S2, C3, S3 = np.cos(q2), np.sin(q2), np.cos(q3), np.sin(q3)
    w, e = v1 + v2, e1 + e2
    pull = a1 * C2 * v1**2 - a1 * S2 * e1 + a2 * w**2 - d3 * e
    twist = 2.0 * S3 * C3 * v3 * w
    lever = a1 * a2 * C2 + a2**2
    far = (a1 * d3 * S2 + d3**2 + lever) * e1 + (d3**2 + a2**2) * e2
    swing = a1 * a2 * S2 * v1**2
    printed_24 = (1.0 - 2.0 * C3) * v1**2 + (2.0 - 4.0 * C3**2) * v1 * v2 + (1.0 - 2.0 * C3**2) * v2**2
    return _by_name(
        Claim("24", 2, "XZ3", (1.0 - 2.0 * C3**2) * w**2, printed_24),
        Claim("24", 2, "YZ3", -C3 * e),
        Claim("24", 2, "YY3", e3),
        Claim("24", 2, "ZZ3", C3 * S3 * w**2),
        Claim("24", 2, "XX3", -C3 * S3 * w**2),
        Claim("24", 2, "XY3", -S3 * e),
        Claim("24", 2, "MZ3", C3 * pull - GRAVITY * S3),
        Claim("24", 2, "MX3", S3 * pull + GRAVITY * C3),
        Claim("25", 1, "YY2", e),
        Claim("25", 1, "ZZ3", C3**2 * e - twist, C3**2 * e),
        Claim("25", 1, "XX3", S3**2 * e + twist, S3**2 * e),
        Claim("25", 1, "MX2", 2.0 * a2 * e + a1 * C2 * e1 + a1 * S2 * v1**2),
        Claim("25", 1, "MZ2", -a1 * C2 * v1**2 + a1 * S2 * e1),
        Claim("25", 1, "MY3", a1 * C2 * v1**2 - a1 * S2 * e1 - 2.0 * d3 * e),
        Claim("25", 1, "M2", lever * e1 + a2**2 * e2 + swing, lever * e1 + a2**2 * e2),
        Claim("25", 1, "M3", far + swing - a1 * d3 * C2 * v1**2, far),
        Claim("26", 0, "ZZ1", e1),
        Claim("26", 0, "MX1", 2.0 * a1 * e1),
        Claim("26", 0, "M1", a1**2 * e1, a2**2 * e1),
    )
