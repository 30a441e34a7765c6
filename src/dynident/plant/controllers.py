"""Simple controllers: what makes a plant follow a motion, or takes it through a test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_samples, frozen
from dynident.dynamics.evaluate import actuated_torque, gravity_torque, inverse_dynamics, joint_torque, mass_matrix
from dynident.dynamics.terms import with_springs
from dynident.errors import InputError
from dynident.plant.compiled_model import MujocoModel, import_mujoco, mujoco_model
from dynident.plant.mjcf_writer import ModelOptions
from dynident.plant.options import BANDWIDTH as BANDWIDTH
from dynident.plant.protocol import Reading
from dynident.robot.model import Robot

Quantity = Literal["torque", "voltage"]
_SMOOTH = ("rigid", "Ia", "Fv", "Fc(0.05)", "Fo")  # a feedforward whose friction does not jump about standstill


class Motion(Protocol):
    """A motion to follow: any object with a duration and exact derivatives."""

    @property
    def duration(self) -> float:
        """From start to end [s]."""
        ...

    def sample(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at times (n,), (n, n_moving) each."""
        ...


class Controller(Protocol):
    """A command for every sample."""

    quantity: Quantity

    def start(self, sample_time: float) -> None:
        """Get ready for a run with this time between samples [s]."""
        ...

    def command(self, time: float, reading: Reading) -> Array:
        """Torque at the actuated coordinates [N·m or N], or motor voltages [V], (n_moving,)."""
        ...


class OpenLoop:
    """A given signal, whatever the plant does.

    Args:
        signal: Command (n_moving,) at a time [s]. A torque is reached when the next command comes; see `TorqueDrive`.
        quantity: What it is, "torque" or "voltage".
    """

    def __init__(self, signal: Callable[[float], ArrayLike], quantity: Quantity = "torque") -> None:
        self.signal, self.quantity = signal, quantity
        self._ahead = 0.0

    def start(self, sample_time: float) -> None:
        """Torque is commanded a sample ahead, when it will have been reached."""
        self._ahead = sample_time if self.quantity == "torque" else 0.0

    def command(self, time: float, reading: Reading) -> Array:
        """The signal."""
        return np.atleast_1d(np.asarray(self.signal(time + self._ahead), dtype=np.float64))


class VoltageSteps:
    """Voltages that jump at given times and are held between.

    Args:
        times: (n_steps,) rising [s]; before the first the voltage is zero.
        voltages: (n_steps, n_moving) [V].
    """

    quantity: Quantity = "voltage"

    def __init__(self, times: ArrayLike, voltages: ArrayLike) -> None:
        self.times, self.voltages = frozen(np.atleast_1d(times)), frozen(np.atleast_2d(voltages))
        if len(self.times) != len(self.voltages) or np.any(np.diff(self.times) <= 0.0):
            raise InputError("voltage steps: times must rise, one for each row of voltages")

    def start(self, sample_time: float) -> None:
        """Nothing to prepare."""

    def command(self, time: float, reading: Reading) -> Array:
        """The voltage of the last step."""
        step = int(np.searchsorted(self.times, time + 1e-9, side="right")) - 1
        return np.zeros(self.voltages.shape[1]) if step < 0 else self.voltages[step]


class TrackingController(ABC):
    """Follow a motion, sample by sample.

    Args:
        robot: The robot as the controller knows it.
        motion: What to follow.
        kp: Stiffness at the joints, one number or (n_moving,); see the subclass. None for `bandwidth`.
        kd: Damping at the joints; None for critical damping.
        bandwidth: Natural frequency of the feedback [rad/s]; of a joint that its own friction overdamps, the rate at
            which it comes back.
        values: Parameters the controller knows; None for the robot's own.
        tuned_to: Parameters whose inertia turns `bandwidth` into stiffness and damping, as when gains were tuned on the
            machine itself; None for `values`.
    """

    quantity: Quantity = "torque"

    def __init__(
        self,
        robot: Robot,
        motion: Motion,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        *,
        bandwidth: float = BANDWIDTH,
        values: str | Mapping[str, float] | None = None,
        tuned_to: str | Mapping[str, float] | None = None,
    ) -> None:
        if not (bandwidth > 0.0 and np.isfinite(bandwidth)):
            raise InputError(f"bandwidth is {bandwidth}; expected a positive number [rad/s]")
        self.robot, self.motion, self.values = robot, motion, values
        self._kp, self._kd, self.bandwidth = kp, kd, bandwidth
        self._tuned_to = values if tuned_to is None else tuned_to

    def start(self, sample_time: float) -> None:
        """Work out the motion at every sample, and what does not depend on readings."""
        count = round(self.motion.duration / sample_time) + 2
        times = np.minimum(sample_time * np.arange(count), self.motion.duration)
        names = self.robot.joint_names
        q, dq, ddq = (as_samples(x, "motion", names, count) for x in self.motion.sample(times))
        self._sample_time, self._wanted = sample_time, (q, dq, ddq)
        scale, drag = self._scale(q[:: max(1, count // 50)])
        critical = scale * self.bandwidth**2 if self._kp is None else np.asarray(self._kp, dtype=np.float64)
        # Where a joint's own friction overdamps it, the slower of its two modes has the bandwidth.
        stiff = np.maximum(critical, self.bandwidth * (drag - scale * self.bandwidth)) if self._kp is None else critical
        damp = 2.0 * np.sqrt(scale * critical) if self._kd is None else np.asarray(self._kd, dtype=np.float64)
        self.kp, self.kd = np.broadcast_to(stiff, len(names)), np.broadcast_to(damp, len(names))
        self._to_actuated = actuated_torque(self.robot, np.eye(len(names)))
        self._prepare(q, dq, ddq)

    def start_state(self) -> tuple[Array, Array]:
        """Position and velocity with which the motion begins."""
        q, dq, _ = self.motion.sample(np.zeros(1))
        return np.asarray(q)[0], np.asarray(dq)[0]

    def command(self, time: float, reading: Reading) -> Array:
        """Torque to be reached at the next sample."""
        q, dq, ddq = self._wanted
        k = min(round(time / self._sample_time), len(q) - 2)
        late = time - reading.time  # of a reading that was not taken on time
        error = q[k] - late * dq[k] - reading.q
        return self._torque(k, reading, error, dq[k] - late * ddq[k] - reading.dq)

    def _scale(self, q: Array) -> tuple[Array, Array]:
        """Inertia and viscous friction by which bandwidth becomes stiffness, (n_moving,) each.

        The inertia is the least that a joint feels with the others free: with stiffness w²/(M^-1)_jj the eigenvalues
        of M^-1 K add up to n w², so that none is far beyond the bandwidth; with the diagonal of M itself the light
        modes of a long arm would be.
        """
        mass = mass_matrix(self.robot, q, self._tuned_to)
        own = np.diagonal(mass, axis1=1, axis2=2).min(axis=0)
        if not (own > 0.0).all():
            raise InputError(
                f"robot {self.robot.name}: joint {self.robot.joint_names[int(np.argmin(own))]} moves no inertia; give "
                "the links masses (URDF <inertial>, or parameters: in the robot file)"
            )
        free = np.diagonal(np.linalg.inv(mass), axis1=1, axis2=2)
        n = q.shape[1]
        viscous = inverse_dynamics(self.robot, np.tile(q[0], (n, 1)), np.eye(n), np.zeros((n, n)), "Fv", self._tuned_to)
        return np.asarray(1.0 / free.max(axis=0)), np.diag(joint_torque(self.robot, viscous))

    def _feedback(self, error: Array, velocity_error: Array) -> Array:
        """Torque at the actuated coordinates of a spring and a damper at each joint."""
        return np.asarray((self.kp * error + self.kd * velocity_error) @ self._to_actuated)

    @abstractmethod
    def _prepare(self, q: Array, dq: Array, ddq: Array) -> None:
        """Work out what does not depend on readings."""

    @abstractmethod
    def _torque(self, k: int, reading: Reading, error: Array, velocity_error: Array) -> Array:
        """Torque at the actuated coordinates for sample k."""


class PD(TrackingController):
    """A spring `kp` [N·m/rad] and a damper `kd` at each joint, on top of the weight and springs of the robot."""

    def _prepare(self, q: Array, dq: Array, ddq: Array) -> None:
        self._given = gravity_torque(self.robot, q, self.values)
        if self.robot.springs:
            self._given = self._given + inverse_dynamics(self.robot, q, dq, ddq, "spring", self.values)

    def _torque(self, k: int, reading: Reading, error: Array, velocity_error: Array) -> Array:
        return np.asarray(self._given[k + 1] + self._feedback(error, velocity_error))


class Feedforward(PD):
    """Inverse dynamics of the motion itself, and a spring and a damper for the rest; zero gains leave it open loop."""

    def _prepare(self, q: Array, dq: Array, ddq: Array) -> None:
        self._given = inverse_dynamics(self.robot, q, dq, ddq, with_springs(_SMOOTH, self.robot), self.values)


class ComputedTorque(TrackingController):
    """Inverse dynamics at the measured state, so that every joint answers alike; `kp` in 1/s², `kd` in 1/s."""

    def _scale(self, q: Array) -> tuple[Array, Array]:
        inertia, viscous = super()._scale(q)
        # A joint that its own friction stops within a sample has another velocity by the time that the torque is there.
        self._quick = bool((viscous * self._sample_time > inertia).any())
        return np.ones(q.shape[1]), viscous / inertia if self._quick else np.zeros(q.shape[1])

    def _prepare(self, q: Array, dq: Array, ddq: Array) -> None:
        # Dry friction of the wanted velocity: that of a noisy reading would jump about standstill.
        terms = "Fv,Fc(0.05),Fo" if self._quick else "Fc(0.05),Fo"
        self._friction = inverse_dynamics(self.robot, q, dq, ddq, terms, self.values)
        self._model = self._fast_model()

    def _fast_model(self) -> MujocoModel | None:
        """MuJoCo's inverse dynamics are ours to the last digits, and a hundred times faster for a single state.

        None for loops, whose G changes with the pose, for springs, and for physically inconsistent links: values may be
        those of base parameters, of which torque is the same, and MuJoCo takes none of them.
        """
        if self.robot.closure is not None or self.robot.springs:
            return None
        try:
            model = mujoco_model(self.robot, self.values, ModelOptions(loops=False, friction=False))
        except InputError:
            return None
        if self._quick:
            model.set_damping(np.zeros(len(model.places)))
        self._data, self._inverse = model.new_data(), import_mujoco().mj_inverse
        return model

    def _torque(self, k: int, reading: Reading, error: Array, velocity_error: Array) -> Array:
        acceleration = self._wanted[2][k + 1] + self.kp * error + self.kd * velocity_error
        if self._model is None:
            state = (reading.q[None], reading.dq[None], acceleration[None])
            terms = with_springs(("rigid", "Ia") if self._quick else ("rigid", "Ia", "Fv"), self.robot)
            return np.asarray(inverse_dynamics(self.robot, *state, terms, self.values)[0] + self._friction[k + 1])
        self._model.set_state(self._data, reading.q, reading.dq)
        self._data.qacc[self._model.dofs] = self._model.follow @ acceleration
        self._inverse(self._model.model, self._data)
        return np.asarray(self._model.to_joints(self._data.qfrc_inverse) @ self._to_actuated + self._friction[k + 1])


TRACKING: dict[str, type[TrackingController]] = {
    "feedforward": Feedforward,
    "computed-torque": ComputedTorque,
    "pd": PD,
}
