"""The space of motions that is searched: Fourier series at rest at both ends, linear in their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.jit.numpy_kernel import NumpyKernel, chosen_backend
from dynident.dynamics.jit.program import Program
from dynident.dynamics.jit.reverse_pass import adjoint
from dynident.identifiability.excitation_quality import fourier_basis
from dynident.motion.fourier import Fourier, rest_basis
from dynident.motion.trajectory import State

# Position, velocity and acceleration per coordinate at given times, (n_samples, n_per_joint) each: q = start + waves x.
Waves = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Space:
    """Coordinates x, (n_joints, n_per_joint) laid out joint by joint, of motions at rest at both ends.

    Attributes:
        joints: Names of the joints.
        duration: Length of the motion [s].
        frequency: Base frequency [Hz].
        harmonics: Number of harmonics.
        start: (n_joints,) where the motion starts [rad or m]; None leaves it free, one more coordinate per joint.
    """

    joints: tuple[str, ...]
    duration: float
    frequency: float
    harmonics: int
    start: Array | None = None

    def __post_init__(self) -> None:
        rest_basis(self.harmonics, self.frequency, self.duration)  # refuses a series that cannot be at rest

    @property
    def span(self) -> float:
        """Time after which a motion repeats itself, its duration where it does not [s]."""
        periods = self.duration * self.frequency
        return 1.0 / self.frequency if round(periods) > 1 and abs(periods - round(periods)) < 1e-9 else self.duration

    @property
    def basis(self) -> Array:
        """(2 H, k) coefficients at rest."""
        return rest_basis(self.harmonics, self.frequency, self.duration)

    @property
    def per_joint(self) -> int:
        """Coordinates of each joint; where the start is free, the last one is the position about which it moves."""
        return int(self.basis.shape[1]) + (self.start is None)

    @property
    def size(self) -> int:
        """Coordinates in all."""
        return self.per_joint * len(self.joints)

    def waves(self, times: Array) -> Waves:
        """The waves at given times."""
        basis = self.basis
        q, dq, ddq = (part @ basis for part in fourier_basis(times, self.harmonics, self.frequency))
        if self.start is not None:
            return q - fourier_basis(np.zeros(1), self.harmonics, self.frequency)[0] @ basis, dq, ddq
        still = np.zeros((len(times), 1))
        return np.hstack([q, still + 1.0]), np.hstack([dq, still]), np.hstack([ddq, still])

    def states(self, x: Array, waves: Waves) -> State:
        """Positions, velocities and accelerations, (n_samples, n_joints) each."""
        X = x.reshape(len(self.joints), -1).T
        q, dq, ddq = (part @ X for part in waves)
        return (q if self.start is None else q + self.start), dq, ddq

    def pull(self, slopes: Array, waves: Waves) -> Array:
        """Derivative with respect to x from derivatives with respect to q, dq, ddq, (3 n_joints, n_samples)."""
        n = len(self.joints)
        by_joint = slopes[:n] @ waves[0] + slopes[n : 2 * n] @ waves[1] + slopes[2 * n :] @ waves[2]
        return np.asarray(by_joint.ravel())

    def resting(self, pose: Array) -> Array:
        """The coordinates of standing still at a pose."""
        X = np.zeros((len(self.joints), self.per_joint))
        if self.start is None:
            X[:, -1] = pose
        return X.ravel()

    def center(self, x: Array) -> Array:
        """The coordinates of standing still where a motion has its center (at the start, where that is fixed)."""
        return self.resting(x.reshape(len(self.joints), -1)[:, -1])

    def trajectory(self, x: Array) -> Fourier:
        """The motion of coordinates x."""
        X = x.reshape(len(self.joints), -1)
        if self.start is None:
            waves_of, offset = X[:, :-1], X[:, -1]
        else:
            at_start = fourier_basis(np.zeros(1), self.harmonics, self.frequency)[0][0] @ self.basis
            waves_of, offset = X, self.start - X @ at_start
        coefficients = self.basis @ waves_of.T
        H = self.harmonics
        return Fourier(
            frequency=self.frequency,
            length=self.duration,
            offset=offset,
            sine=coefficients[:H],
            cosine=coefficients[H:],
            joints=self.joints,
        )


# ----------------------------------------------------------------------------------------------------------------------
# A recorded program and its reverse pass, tied to fixed arrays: thousands of calls cost only the arithmetic.


class Tape:
    """Values of a program on a batch, and derivatives of weighted sums of them.

    Args:
        program: The program; its inputs are rows of arrays (n_inputs, n_samples).
        n_samples: Samples in a batch.
    """

    def __init__(self, program: Program, n_samples: int) -> None:
        n_inputs, n_outputs = len(program.inputs), len(program.outputs)
        self._n = n_inputs
        self._given = np.zeros((n_inputs + n_outputs, n_samples))
        self.values = np.zeros((n_outputs, n_samples))
        self.slopes = np.zeros((n_inputs, n_samples))
        self._forward = _bound(program, self._given[:n_inputs], self.values)
        self._program = program
        self._backward: Callable[[], None] | None = None

    def evaluate(self, *inputs: Array) -> Array:
        """Outputs, (n_outputs, n_samples), valid until the next call; inputs are (n_samples, n) each."""
        first = 0
        for block in inputs:
            self._given[first : first + block.shape[1]] = block.T
            first += block.shape[1]
        self._forward()
        return self.values

    @property
    def weights(self) -> Array:
        """(n_outputs, n_samples): write the weights of the outputs here before `pull`."""
        return self._given[self._n :]

    def pull(self) -> Array:
        """Derivatives of the weighted sum of the outputs with respect to each input, (n_inputs, n_samples)."""
        if self._backward is None:  # made when somebody first wants it
            self._backward = _bound(adjoint(self._program), self._given, self.slopes)
        self._backward()
        return self.slopes


def _bound(program: Program, inputs: Array, out: Array) -> Callable[[], None]:
    if chosen_backend() == "numpy":
        kernel = NumpyKernel(program)
        return lambda: kernel(list(inputs), out)
    from dynident.dynamics.jit.llvm_kernel import LlvmKernel  # LLVM is loaded only when something is compiled

    return LlvmKernel(program).bound(inputs, out)
