"""How well predicted torque matches measured torque, joint by joint: errors, and traces to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, record


@record
class TorqueErrors:
    """Sums over samples from which every figure follows, so that logs can be put together.

    Attributes:
        joints: Names of the joints.
        band: Band in which torque was compared [Hz].
        count: (n_joints,) samples.
        error_square: (n_joints,) sum of squared errors.
        torque: (n_joints,) sum of measured torque.
        torque_square: (n_joints,) sum of its squares.
    """

    joints: tuple[str, ...]
    band: float
    count: Array
    error_square: Array
    torque: Array
    torque_square: Array

    @property
    def relative(self) -> float:
        """||tau - tau_hat|| / ||tau|| over all joints."""
        return float(np.sqrt(self.error_square.sum() / max(float(self.torque_square.sum()), 1e-300)))

    @property
    def constant(self) -> float:
        """What the best constant of each joint leaves, ||tau - mean|| / ||tau|| over all joints."""
        variation = self.torque_square - self.torque**2 / np.maximum(self.count, 1.0)
        return float(np.sqrt(max(float(variation.sum()), 0.0) / max(float(self.torque_square.sum()), 1e-300)))

    @property
    def per_joint(self) -> Array:
        """The same for each joint, (n_joints,); zero where there is neither torque nor error."""
        return np.sqrt(self.error_square / np.maximum(self.torque_square, 1e-300))

    @property
    def rmse(self) -> Array:
        """Root mean square error of each joint [N·m or N]."""
        return np.sqrt(self.error_square / np.maximum(self.count, 1.0))

    @property
    def fit(self) -> Array:
        """Share of each joint's torque variation that is explained: 1 - ||tau - tau_hat|| / ||tau - mean||."""
        variation = self.torque_square - self.torque**2 / np.maximum(self.count, 1.0)
        return 1.0 - np.sqrt(self.error_square / np.maximum(variation, 1e-300))

    def __add__(self, other: TorqueErrors) -> TorqueErrors:
        """Both sets of samples together; the wider band is named."""
        sums = (getattr(self, name) + getattr(other, name) for name in _SUMS)
        return TorqueErrors(self.joints, max(self.band, other.band), *sums)

    @staticmethod
    def of(joints: tuple[str, ...], band: float) -> TorqueErrors:
        """No samples yet."""
        return TorqueErrors(joints, band, *(np.zeros(len(joints)) for _ in _SUMS))

    def including(self, measured: Array, predicted: Array, counts: Mask | None = None) -> TorqueErrors:
        """With more samples, (n_samples, n_joints) each, of which those count that `counts` says."""
        used = np.ones_like(measured) if counts is None else counts.astype(np.float64)
        return TorqueErrors(
            self.joints,
            self.band,
            self.count + used.sum(0),
            self.error_square + (used * (measured - predicted) ** 2).sum(0),
            self.torque + (used * measured).sum(0),
            self.torque_square + (used * measured**2).sum(0),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data: relative errors are fractions, None for a joint without samples or torque."""
        return {
            "relative_error": self.relative,
            "per_joint": _where_known(self.per_joint, self.torque_square > 0.0),
            "fit": _where_known(self.fit, self.torque_square > 0.0),
            "rmse": _where_known(self.rmse, self.count > 0.0),
            "band": self.band,
            "samples": int(self.count.max(initial=0.0)),
        }

    def stored(self) -> dict[str, Any]:
        """Plain data from which `from_stored` makes the record again."""
        return {"band": self.band, **{name: [float(x) for x in getattr(self, name)] for name in _SUMS}}

    @staticmethod
    def from_stored(joints: tuple[str, ...], data: Mapping[str, Any]) -> TorqueErrors:
        """The record of `stored`."""
        return TorqueErrors(joints, float(data["band"]), *(np.array(data[name], dtype=float) for name in _SUMS))


@record
class Trace:
    """Torque over time, thinned for plotting.

    Attributes:
        time: (n,) [s].
        measured: (n, n_joints) [N·m or N].
        predicted: (n, n_joints).
    """

    time: Array
    measured: Array
    predicted: Array


def _where_known(values: Array, determined: Mask) -> list[float | None]:
    return [float(value) if known else None for value, known in zip(values, determined, strict=True)]


_SUMS = tuple(field.name for field in fields(TorqueErrors))[2:]


def together(errors: Iterable[TorqueErrors]) -> TorqueErrors:
    """Several sets of samples as one."""
    first, *others = errors
    for other in others:
        first = first + other
    return first
