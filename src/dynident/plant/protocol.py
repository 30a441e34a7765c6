"""`Plant`: what an experiment needs of a machine, simulated or real."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.display import brief
from dynident.errors import DynidentError
from dynident.robot.model import Robot


@brief
@dataclass(frozen=True)
class Reading:
    """What the sensors say at one time; arrays have one number per moving joint.

    Attributes:
        time: Stamp [s].
        q: Joint positions [rad or m].
        dq: Joint velocities.
        tau: Torque at the actuated coordinates, referred to the joint side [N·m or N].
        current: Motor currents [A], None where the drive's gains are not known.
        voltage: Motor voltages [V], None of a drive that takes torque.
    """

    time: float
    q: Array
    dq: Array
    tau: Array
    current: Array | None = None
    voltage: Array | None = None


class Plant(Protocol):
    """A machine that takes a command per sample and answers with a reading.

    The order of a run is `reset`, then for each sample: `read`, `apply_torque` or `apply_voltage`, `step`; at its end,
    however it ends, `stop`.
    """

    @property
    def robot(self) -> Robot:
        """The robot as described; the machine may differ from it."""
        ...

    @property
    def sample_time(self) -> float:
        """Time between samples [s]."""
        ...

    @property
    def time(self) -> float:
        """Time since the reset [s]."""
        ...

    @property
    def saturated(self) -> frozenset[str]:
        """Joints whose command was limited since the reset."""
        ...

    def reset(self, q: ArrayLike, dq: ArrayLike | None = None) -> None:
        """Start again at a position (n_moving,) [rad or m] and velocity (default: at rest).

        A real machine goes there by its own controller, and comes back when that is done.
        """
        ...

    def apply_torque(self, tau: ArrayLike) -> None:
        """Torque to be reached until the next sample, (n_moving,) at the actuated coordinates [N·m or N]."""
        ...

    def apply_voltage(self, voltage: ArrayLike) -> None:
        """Motor voltages to be held until the next sample, (n_moving,) [V]."""
        ...

    def step(self) -> None:
        """Go on by one sample time."""
        ...

    def read(self) -> Reading:
        """What the sensors say now."""
        ...

    def stop(self) -> None:
        """Come to rest safely, by brakes or the machine's own controller, and stay there until the next reset."""
        ...


class UnstableError(DynidentError):
    """A simulation that ran away, or whose robot lost its motion.

    Attributes:
        time: When [s].
        joint: The joint that is worst.
    """

    def __init__(self, time: float, joint: str, message: str) -> None:
        self.time, self.joint = time, joint
        super().__init__(message)
