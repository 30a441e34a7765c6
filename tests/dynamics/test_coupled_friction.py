"""Friction terms on elements that move with several joints: motor 6 of the TX40 turns with joints 5 and 6."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.term import MotionSamples


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("tx40")


@pytest.fixture(scope="module")
def samples():
    return MotionSamples.of_stretch(*np.random.default_rng(3).normal(size=(3, 6, 40)).transpose(0, 2, 1))


def columns(robot, samples, key, reference=None):
    """Each column's torque at the motors, (6, n_samples) by name."""
    (term,) = resolve_terms(key)
    values = TermCourse(robot, [term], reference).columns_first(samples)
    found = {column.name: np.zeros((6, values.shape[1])) for column in term.columns(robot)}
    names = list(found)
    for (row, column), line in zip(term.places(robot), values, strict=True):
        found[names[column]][row] += line
    return found


def test_velocity_is_that_of_the_element(robot, samples):
    found = columns(robot, samples, "sign(0.2)")
    motor, joint = (np.tanh(velocity / 0.2) for velocity in (samples.dq[:, 4] + samples.dq[:, 5], samples.dq[:, 5]))
    assert found["sign0.2_m6"][5] == pytest.approx(motor)
    assert not found["sign0.2_m6"][:5].any()
    assert found["sign0.2_6"][4] == pytest.approx(-joint)  # of joint 6, held by motors 5 and 6 against each other
    assert found["sign0.2_6"][5] == pytest.approx(joint)


def test_smoothed_sign_is_coulomb_friction(robot, samples):
    """The same law as a term of the state, which is derived otherwise."""
    found = columns(robot, samples, "sign(0.2)")
    for label in ("1", "5", "6", "m6"):
        expected = inverse_dynamics(robot, samples.q, samples.dq, samples.ddq, "Fc(0.2)", {f"Fc{label}": 1.0})
        torque = found[f"sign0.2_{label}"].T
        assert torque == pytest.approx(expected)


def test_load_is_that_of_the_motor_or_of_the_joint(robot, samples):
    chi = np.array([robot.value_set().get(c.name, 0.0) for c in resolve_terms("rigid")[0].columns(robot)])
    found = columns(robot, samples, "loadv", LinearizationPoint(robot, chi))
    motors = inverse_dynamics(robot, samples.q, samples.dq, samples.ddq, "rigid").T
    joints = di.joint_torque(robot, motors.T).T
    dq = samples.dq.T
    assert found["loadv_5"][4] == pytest.approx(np.abs(motors[4]) * dq[4])
    assert found["loadv_m6"][5] == pytest.approx(np.abs(motors[5]) * (dq[4] + dq[5]))
    assert found["loadv_6"][5] == pytest.approx(np.abs(joints[5]) * dq[5])
