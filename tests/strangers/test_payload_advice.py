"""What is said about a payload that a robot cannot show: its own joints, and no axes that it lacks."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.payload.problem import tool_matrix
from dynident.payload.quantities import payload_advice
from tests.strangers import pinocchio_arm, scara
from tests.strangers.stranger import HERE

TERMS = "rigid,Ia,Fv,Fc(0.02),Fo"
HIDDEN = ("cz", "Ixx", "Iyy", "Ixy", "Ixz", "Iyz")  # all axes of a SCARA are vertical


@pytest.fixture(scope="module")
def found():
    """The arm as its owner describes it, and a body on its tool."""
    robot, body = scara().described, di.payload.Payload(1.4, (0.02, -0.01, 0.05), (6e-3, 0, 0, 5e-3, 0, 4e-3))
    fit = di.identify(robot, _log(robot, 1), friction="basic", delay=0.0)
    return fit, di.identify_payload(fit, _log(robot, 2, body), session="none")


def _log(robot, seed, load=None):
    motion = scara().motion(seed, 6.0)
    t = motion.times(200.0)
    q, dq, ddq = motion.sample(t)
    values = dict(robot.value_set())
    if load is not None:
        base = di.base_parameters(robot, "rigid")
        names = [column.name for column in base.columns]
        for name, more in zip(names, tool_matrix(base) @ load.standard, strict=True):
            values[name] = values.get(name, 0.0) + more
    tau = inverse_dynamics(robot, q, dq, ddq, TERMS, values)
    tau += np.random.default_rng(seed).normal(size=tau.shape) * 0.01 * tau.std(0)
    channels = {f"{kind}{k + 1}": x[:, k] for kind, x in (("q", q), ("tau", tau)) for k in range(4)}
    return di.Log(f"log {seed}", f"log {seed}", t, channels)


def test_a_scara_is_not_asked_for_axes_that_it_lacks(found):
    _, payload = found
    assert payload.withheld == HIDDEN
    (said,) = payload.warnings
    assert said == f"{', '.join(HIDDEN)} withheld: no motion of this robot shows it; take it from a drawing"
    assert payload["mass"].value == pytest.approx(1.4, abs=4.0 * payload["mass"].std)


def test_its_own_joints_are_named_for_the_rest(found):
    fit, _ = found
    remedies = dict(zip(di.robot.parameters.LINK_SYMBOLS, payload_advice(fit.base).remedies, strict=True))
    assert "turn accelerated" in remedies["ZZ"]
    assert "lift" in remedies["M"] or "all joints held" in remedies["M"]
    assert remedies["XX"] == "record longer"  # nothing shows it


def test_a_six_axis_arm_can_show_all_ten():
    """By Pinocchio: the tool's link of an arm with crossing axes changes torque in ten independent ways."""
    advice = payload_advice(di.base_parameters(pinocchio_arm().described, TERMS))
    assert advice.hidden.shape == (10, 0)
    model = pin.buildModelFromUrdf(str(HERE / "six.urdf"))
    rng, data = np.random.default_rng(0), model.createData()
    states = rng.normal(size=(20, 3, model.nv))
    rows = [pin.computeJointTorqueRegressor(model, data, *state)[:, -10:].copy() for state in states]
    assert np.linalg.matrix_rank(np.vstack(rows)) == 10
