"""Motions with exact derivatives, and logs made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import dynident as di
from dynident.robot.model import Robot
from tests.robots import tree_model

TERMS = "rigid,Ia,Fv,Fc(0.02),Fo"


@dataclass(frozen=True)
class Fourier:
    """q = offset + sum of sines, with its exact derivatives.

    Attributes:
        base: Lowest frequency [Hz].
        amplitude: (n_harmonics, n_joints) [rad].
        phase: (n_harmonics, n_joints) [rad].
        offset: (n_joints,) [rad].
    """

    base: float
    amplitude: np.ndarray
    phase: np.ndarray
    offset: np.ndarray

    @staticmethod
    def random(n: int, seed: int = 0, *, base: float = 0.1, harmonics: int = 5, velocity: float = 1.2) -> Fourier:
        """Random amplitudes and phases; the root mean square of each joint's velocity is `velocity`."""
        rng = np.random.default_rng(seed)
        amplitude, phase = rng.normal(size=(harmonics, n)), rng.uniform(0.0, 2.0 * np.pi, (harmonics, n))
        w = 2.0 * np.pi * base * np.arange(1, harmonics + 1)[:, None]
        amplitude = amplitude / w * (velocity * np.sqrt(2.0) / np.linalg.norm(amplitude, axis=0))
        return Fourier(base, amplitude, phase, rng.uniform(-0.5, 0.5, n))

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, dq, ddq, (n_samples, n_joints) each."""
        w = 2.0 * np.pi * self.base * np.arange(1, len(self.amplitude) + 1)
        angle = w[:, None] * t[:, None, None] + self.phase  # (n_samples, n_harmonics, n_joints)
        own = w[:, None] * self.amplitude
        q = self.offset + (self.amplitude * np.sin(angle)).sum(1)
        return q, (own * np.cos(angle)).sum(1), -(w[:, None] * own * np.sin(angle)).sum(1)


@dataclass(frozen=True)
class Pieces:
    """A log that hands out its samples in blocks of chosen sizes, again and again.

    Attributes:
        log: The log.
        sizes: Sizes of the blocks, repeated until the log ends.
    """

    log: di.Log
    sizes: Sequence[int]

    @property
    def source(self) -> str:
        return self.log.source

    @property
    def digest(self) -> str:
        return self.log.digest

    @property
    def role(self) -> str:
        return self.log.role

    @property
    def label(self) -> str:
        return self.log.label

    def blocks(self) -> Iterator[di.Log]:
        first, number = 0, 0
        while first < len(self.log):
            size = self.sizes[number % len(self.sizes)]
            yield self.log.samples(slice(first, first + size))
            first, number = first + size, number + 1


def stamps(seconds: float, rate: float) -> np.ndarray:
    """Regular stamps from zero [s]."""
    return np.arange(round(seconds * rate)) / rate


def columns(robot: Robot, kind: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """(n_samples, n_joints) as named channels."""
    names = [kind + name.removeprefix("q") for name in robot.position_names]
    return dict(zip(names, values.T, strict=True))


def make_log(robot: Robot, t, q, tau=None, *, dq=None, source: str = "made", **more) -> di.Log:
    """A joint-side log; `tau` is torque at the joints."""
    channels = columns(robot, "q", q)
    for kind, values in (("dq", dq), ("tau", tau)):
        if values is not None:
            channels |= columns(robot, kind, values)
    return di.Log(source, more.pop("digest", source), t, channels, **more)


def exact_torque(robot: Robot, motion, t: np.ndarray, terms: str = TERMS, values=None) -> np.ndarray:
    """Torque at the joints by dynident's own equations on the exact motion."""
    return di.joint_torque(robot, di.inverse_dynamics(robot, *motion(t), terms, values))


def exact_log(robot: Robot, motion, t: np.ndarray, *, terms: str = TERMS, delay: float = 0.0, **more) -> di.Log:
    """A log without noise; its torque is stamped late by `delay` [s]."""
    q, dq, _ = motion(t)
    if more.pop("velocities", False):
        more["dq"] = dq
    return make_log(robot, t, q, exact_torque(robot, motion, t - delay, terms), **more)


def pinocchio_torque(robot: Robot, q, dq, ddq, smoothing: float = 0.02) -> np.ndarray:
    """Torque at the actuated coordinates of a serial robot: links by Pinocchio, drives and friction by hand."""
    model = tree_model(robot)
    data = model.createData()
    links = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    value = robot.value_set()
    Ia, Fv, Fc, Fo = (
        np.array([value[f"{symbol}{i + 1}"] for i in range(q.shape[1])]) for symbol in ("Ia", "Fv", "Fc", "Fo")
    )
    return links + Ia * ddq + Fv * dq + Fc * np.tanh(dq / smoothing) + Fo


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """||ours - theirs|| / ||theirs||."""
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))
