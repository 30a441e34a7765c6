"""Inertia, damping and Coulomb friction of a joint from its answers to several voltages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import InputError
from dynident.experiments.step.response import StepResponse

_SAME = 1e-3  # share by which two voltages must differ


@dataclass(frozen=True)
class JointNumbers:
    """What steps of one joint tell, the others locked.

    Attributes:
        inertia: Me, felt by the driven coordinate [kg·m² or kg].
        damping: B = Me A, viscous friction and back-EMF together [N·m·s/rad or N·s/m].
        coulomb: Tc [N·m or N].
        offset: Constant torque of one sign, told by steps in both directions; 0 with one direction.
        covariance: (4, 4) of these four.
        misfit: By how many deviations the answers differ from one inertia, damping and friction; 0 when nothing is left
            to compare.
        described: (4,) part of the standard deviations that comes from the described weight, the same at every pose.
    """

    inertia: float
    damping: float
    coulomb: float
    offset: float
    covariance: Array
    misfit: float
    described: Array = field(default_factory=lambda: np.zeros(4))

    def __post_init__(self) -> None:
        for name in ("covariance", "described"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def std(self) -> Array:
        """Deviations of inertia, damping, Coulomb friction and offset, (4,)."""
        return np.sqrt(np.diagonal(self.covariance))


def differing(voltages: Sequence[float]) -> bool:
    """Whether voltages differ enough in size to tell inertia from friction."""
    sizes = np.abs(voltages)
    return bool(np.ptp(sizes) > _SAME * np.max(sizes))


def joint_numbers(gain: float, voltages: Sequence[float], responses: Sequence[StepResponse]) -> JointNumbers:
    r"""Combine the answers to two voltages or more (Kim 1990, eq. 15 and 16).

    .. math:: U_k = (K V_k - T_c\,\operatorname{sign}\dot\theta_k - T_0) / M_e, \quad A_k = B / M_e

    With two voltages Me = K (V1 - V2)/(U1 - U2) and Tc = K V1 - Me U1; with all A and U and their covariances it is the
    generalised least-squares solution, which knows that A is the same for all.

    Args:
        gain: K = Kt/Ra, torque per voltage [N·m/V].
        voltages: Of each answer [V].
        responses: The answers.
    """
    if len(voltages) != len(responses) or len(voltages) < 2 or not differing(voltages):
        raise InputError("inertia, damping and friction are three unknowns: they need steps of two different voltages")
    drive = gain * np.asarray(voltages, dtype=np.float64)
    U, A = (np.array([getattr(one, name) for one in responses]) for name in ("U", "A"))
    sign = np.sign(U)
    both = bool((sign > 0.0).any() and (sign < 0.0).any() and len(drive) > 2)
    columns = np.stack([U, sign, *((np.ones(len(U)),) if both else ())], axis=1)
    linear = np.linalg.lstsq(columns, drive, rcond=None)[0]
    Me, Tc = float(linear[0]), float(linear[1])
    p = np.array([Me, Me * float(np.mean(A)), Tc, *((float(linear[2]),) if both else ())])
    whiten = [np.linalg.inv(np.linalg.cholesky(_regular(one.covariance))) for one in responses]

    def left_and_slope(p: Array) -> tuple[Array, Array]:
        level = p[3] if both else 0.0
        left, slopes = [], []
        for k, white in enumerate(whiten):
            model = np.array([p[1] / p[0], (drive[k] - p[2] * sign[k] - level) / p[0]])
            slope = np.zeros((2, len(p)))
            slope[:, 0] = -model / p[0]
            slope[0, 1], slope[1, 2] = 1.0 / p[0], -sign[k] / p[0]
            if both:
                slope[1, 3] = -1.0 / p[0]
            left.append(white @ (np.array([A[k], U[k]]) - model))
            slopes.append(white @ slope)
        return np.concatenate(left), np.vstack(slopes)

    for _ in range(20):
        left, slope = left_and_slope(p)
        scale = np.maximum(np.linalg.norm(slope, axis=0), 1e-300)
        change = np.linalg.lstsq(slope / scale, left, rcond=None)[0] / scale
        p = p + change
        if np.all(np.abs(change) <= 1e-12 * np.maximum(np.abs(p), 1e-12)):
            break
    left, slope = left_and_slope(p)
    spare = len(left) - len(p)
    misfit = float(np.sqrt(left @ left / spare)) if spare else 0.0
    scale = np.maximum(np.linalg.norm(slope, axis=0), 1e-300)
    own = np.linalg.pinv((slope / scale).T @ (slope / scale)) / np.outer(scale, scale) * max(1.0, misfit) ** 2
    covariance = np.zeros((4, 4))
    covariance[: len(p), : len(p)] = own
    return JointNumbers(float(p[0]), float(p[1]), float(p[2]), float(p[3]) if both else 0.0, covariance, misfit)


def _regular(covariance: Array) -> Array:
    """A covariance whose inverse exists: data without any noise has none otherwise."""
    size = np.sqrt(np.maximum(np.diagonal(covariance), 1e-30))
    unit = covariance / np.outer(size, size)
    return np.asarray((unit + 1e-12 * np.eye(len(unit))) * np.outer(size, size))
