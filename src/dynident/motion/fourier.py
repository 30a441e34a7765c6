r"""Finite Fourier series, and those among them that begin and end at rest.

.. math:: q_j(t) = c_j + \sum_{h=1}^{H} a_{hj} \sin(2\pi h f t) + b_{hj} \cos(2\pi h f t)

Rest at both ends (velocity and acceleration zero) is two linear conditions on the coefficients of each joint when the
duration is a whole number of periods, four otherwise. `rest_basis` has the coefficients that meet them, so a motion
at rest stays a plain series: smooth inside, nothing beyond its highest harmonic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.display import brief
from dynident.errors import InputError
from dynident.identifiability.excitation_quality import fourier_basis
from dynident.motion.trajectory import State, Trajectory, positive, row, table


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Fourier(Trajectory):
    """A finite Fourier series for each joint.

    Attributes:
        frequency: Base frequency f [Hz].
        length: Duration [s].
        offset: (n_joints,) c [rad or m].
        sine: (n_harmonics, n_joints) a.
        cosine: (n_harmonics, n_joints) b.
    """

    kind: ClassVar[str] = "fourier"
    frequency: float
    length: float
    offset: Array
    sine: Array
    cosine: Array

    def __post_init__(self) -> None:
        self._assign(frequency=positive(self.frequency, "frequency", "Hz"), length=positive(self.length, "length"))
        offset = row(self.offset, "offset")
        sine = table(self.sine, "sine", f"(n_harmonics, {len(offset)})", len(offset))
        cosine = table(self.cosine, "cosine", f"(n_harmonics, {len(offset)})", len(offset))
        if sine.shape != cosine.shape:
            raise InputError(f"sine has {len(sine)} harmonics and cosine {len(cosine)}; expected as many")
        self._assign(offset=offset, sine=sine, cosine=cosine)
        super().__post_init__()

    @staticmethod
    def at_rest(
        offset: ArrayLike,
        sine: ArrayLike,
        cosine: ArrayLike,
        *,
        frequency: float,
        length: float,
        joints: tuple[str, ...] = (),
    ) -> Fourier:
        """The series nearest to the given coefficients that begins and ends at rest."""
        given = Fourier(
            frequency=frequency,
            length=length,
            offset=np.asarray(offset),
            sine=np.asarray(sine),
            cosine=np.asarray(cosine),
            joints=joints,
        )
        H = len(given.sine)
        basis = rest_basis(H, given.frequency, given.length)
        nearest = basis @ (basis.T @ np.vstack([given.sine, given.cosine]))
        return replace(given, sine=nearest[:H], cosine=nearest[H:])

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.length

    @property
    def n_joints(self) -> int:
        """One per offset."""
        return len(self.offset)

    @property
    def harmonics(self) -> int:
        """Number of harmonics, H."""
        return len(self.sine)

    def _inside(self, t: Array) -> State:
        coefficients = np.vstack([self.sine, self.cosine])
        q, dq, ddq = (part @ coefficients for part in fourier_basis(t, self.harmonics, self.frequency))
        return self.offset + q, dq, ddq


def rest_basis(harmonics: int, frequency: float, length: float) -> Array:
    """Orthonormal coefficients (2 H, k) of the series whose velocity and acceleration are zero at 0 and at `length`.

    Raises:
        InputError: When the series is too short to be at rest and move at all.
    """
    _, velocity, acceleration = fourier_basis(np.array([0.0, length]), harmonics, frequency)
    w = 2.0 * np.pi * frequency
    conditions = np.vstack([velocity / w, acceleration / w**2])
    _, singular, directions = np.linalg.svd(conditions)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    basis = np.asarray(directions[rank:].T)
    if basis.shape[1] == 0:
        need = rank // 2 + 1
        raise InputError(
            f"a series of {harmonics} harmonics cannot move and be at rest at both ends; give at least {need} harmonics"
            + ("" if rank <= 2 else ", or a duration of whole periods")
        )
    return basis
