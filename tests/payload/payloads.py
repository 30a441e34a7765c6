"""Logs of arms that carry a known body."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.estimate.prediction import TorqueModel
from dynident.payload.quantities import classical_numbers
from dynident.robot.model import Robot
from tests.signals.made import Fourier, make_log, stamps

BASIC = "rigid,Ia,Fv,Fc(0.02),Fo"
RATE = 200.0
BODY = di.payload.Payload(2.5, (0.03, -0.02, 0.08), (0.02, 0.002, -0.003, 0.025, 0.001, 0.015))
TRUTH = classical_numbers(BODY.standard)


def arm(name: str = "puma560") -> Robot:
    """A bundled arm, its tool at the frame of the last link."""
    return di.load_robot(name)


def made_log(
    robot: Robot,
    seed: int,
    *,
    load: di.payload.Payload | None = None,
    motion: int = 1,
    seconds: float = 12.0,
    noise: float = 0.01,
    terms: str = BASIC,
    more: dict[str, float] | None = None,
    velocity: float = 1.2,
) -> di.Log:
    """A log on an exact motion, its torque by the robot's own values, the body's and `more`, with white noise."""
    t = stamps(seconds, RATE)
    values = {name: float(x) for name, x in robot.value_set().items()}
    for name, x in ({} if load is None else load.at(robot)).items():
        values[name] = values.get(name, 0.0) + x
    values |= more or {}
    q, dq, ddq = Fourier.random(len(robot.joint_names), motion, velocity=velocity)(t)
    chosen = resolve_terms(terms)
    chi = np.array([values.get(column.name, 0.0) for term in chosen for column in term.columns(robot)])
    links = np.array([values.get(column.name, 0.0) for column in chosen[0].columns(robot)])
    torque = TorqueModel(robot, chosen, chi, links).torque(q, dq, ddq)
    tau = di.joint_torque(robot, torque)
    tau = tau + noise * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, q, tau, source=f"{'loaded' if load else 'unloaded'} {seed}")


def off(found: di.payload.PayloadEstimate) -> np.ndarray:
    """Errors of the numbers that are given, in stated standard deviations."""
    return np.array(
        [(one.value - x) / one.std for one, x in zip(found.numbers, TRUTH, strict=True) if one.value is not None]
    )
