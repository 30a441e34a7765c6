from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from tests.signals.made import Fourier, exact_torque, make_log, stamps

WORDS = "residuals come back with the motion"


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-2").with_values(
        "mine",
        {"ZZ1": 1.3, "MX1": 1.5, "ZZ2": 0.33, "MX2": 0.5, "MY2": 0.1, "Fv1": 0.4, "Fv2": 0.2, "Fc1": 0.5, "Fc2": 0.3},
    )


def runs(robot, unmodeled):
    """Three runs of a motion, with noise of their own and torque that no column explains."""
    t, logs = stamps(20.0, 200.0), []
    for number in range(3):
        motion, rng = Fourier.random(2, 1), np.random.default_rng(number)
        q = motion(t)[0]
        tau = exact_torque(robot, motion, t) + 0.02 * rng.normal(size=q.shape)
        tau[:, 0] += unmodeled * np.sin(5.0 * q[:, 0])
        logs.append(make_log(robot, t, q, tau, source=f"run {number}"))
    return logs


def fitted(robot, logs):
    return di.identify(robot, logs, friction="basic", check="off", delay=0.0)


def test_what_runs_have_in_common_is_added_and_reported(pendulum):
    fit = fitted(pendulum, runs(pendulum, 0.05))
    (found,) = [one for one in fit.warnings if WORDS in one]
    assert pendulum.joint_names[0] in found
    assert pendulum.joint_names[1] not in found
    assert fit.inflation[0] > 2.0 * fitted(pendulum, runs(pendulum, 0.05)[:1]).inflation[0]


def test_noise_has_nothing_in_common(pendulum):
    fit = fitted(pendulum, runs(pendulum, 0.0))
    assert not [one for one in fit.warnings if WORDS in one]
    assert fit.inflation.max() < 4.0
