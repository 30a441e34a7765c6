"""Arms in motion, as samples."""

from __future__ import annotations

import functools

import numpy as np

import dynident as di
from tests.signals.made import Fourier

TERMS = "rigid,Ia,Fv,Fc,Fo"
BODY = di.payload.Payload(2.5, (0.03, -0.02, 0.08), (0.02, 0.002, -0.003, 0.025, 0.001, 0.015))


@functools.cache
def arm(name: str = "puma560") -> di.Robot:
    return di.load_robot(name)


def motion(seconds: float, rate: float, *, seed: int = 1, n: int = 6, velocity: float = 1.2, start: float = 0.0):
    """Stamps, q, dq, ddq of an exact motion."""
    t = start + np.arange(round(seconds * rate)) / rate
    return (t, *Fourier.random(n, seed, velocity=velocity)(t))


def torque(
    robot,
    q,
    dq,
    ddq,
    *,
    load: di.payload.Payload | None = None,
    noise: float = 0.0,
    seed: int = 0,
    terms: str = TERMS,
    **more,
):
    """Torque of the robot's own values, perhaps with a body, other values and noise (a share of its std)."""
    values = {name: float(x) for name, x in robot.value_set().items()}
    for name, x in ({} if load is None else load.at(robot)).items():
        values[name] = values.get(name, 0.0) + x
    columns = [column.name for column in di.columns(robot, terms)]
    chi = {name: x for name, x in (values | more).items() if name in columns}
    tau = di.inverse_dynamics(robot, q, dq, ddq, terms, chi)
    return tau + noise * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)


def truth(robot, terms: str = TERMS):
    base = di.base_parameters(robot, terms=terms)
    return base.base_values(None)


def feed(identifier, t, q, tau) -> None:
    """Sample by sample."""
    for i in range(len(t)):
        identifier.update(di.online.Sample(float(t[i]), q[i], tau[i]))
