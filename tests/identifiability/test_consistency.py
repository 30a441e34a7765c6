from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.robot.physicality import pseudo_inertia, violations


def test_table_3_of_khosla_is_not_physical():
    robot = di.load_robot("cmu-dd-arm-3")
    found = di.robot.physical_violations(robot, "table3")
    assert {violation.place for violation in found} == {"link 3"}
    eigenvalue = next(violation for violation in found if "pseudo-inertia" in violation.condition)
    assert eigenvalue.value == pytest.approx(-0.411, abs=1e-3)


def test_table_4_of_abhishek_is_not_physical():
    robot = di.load_robot("kr5-planar")
    base = di.base_parameters(robot, "rigid")
    found = di.identifiability.base_violations(base, robot.base_values["table4"])
    assert found[0].place == "joint joint2"
    assert found[0].value < -100
    # Link 1 about its own joint, whatever the masses are: ZZR1 + 2 a1 MXR1.
    assert robot.base_values["table4"]["ZZR1"] + 1.2 * robot.base_values["table4"]["MXR1"] == pytest.approx(
        -132.2, abs=0.1
    )
    assert di.identifiability.base_violations(base, base.base_values()) == []


@pytest.mark.parametrize("name", di.bundled_names())
def test_every_plant_is_physical(name):
    robot = di.load_robot(name)
    assert "plant" in robot.values
    assert robot.default_values == "plant"
    assert robot.warnings == ()
    assert di.robot.physical_violations(robot) == []
    for chi in robot.link_parameters():
        assert np.linalg.eigvalsh(pseudo_inertia(chi))[0] > 0.0
    friction = [e.names[s] for e in robot.elements for s in ("Ia", "Fv", "Fc") if s in e.names]
    signed = {"Fv6", "Fc6"} if name == "sr400" else set()  # eq. (8): only the whole dissipates
    assert all(robot.value_set().get(p, 0.0) >= 0.0 for p in friction if p not in signed)


def test_sr400_friction_dissipates_as_a_whole():
    robot = di.load_robot("sr400")
    rng = np.random.default_rng(0)
    q, dq = rng.normal(size=(2, 500, 6)) * 3
    torque = di.inverse_dynamics(robot, q, dq, 0 * q, "Fv,Fc")
    velocities = dq @ robot.coupling.T
    assert np.sum(torque * velocities, axis=1).min() > 0.0
    v = robot.value_set()
    matrix = [[v["Fv5"] - v["Fv6"], v["Fv6"]], [v["Fv6"], v["Fvm6"] - v["Fv6"]]]
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), [0.054, 0.128], atol=5e-4)


@pytest.mark.parametrize(
    ("chi", "words"),
    [
        ([1, 0, 0, 1, 0, 1, 0, 0, 0, -1], "mass must be positive"),
        ([1, 0, 0, 1, 0, -0.1, 0, 0, 0, 1], "must not be negative"),
        ([1, 0, 0, 1, 0, 2.5, 0, 0, 0, 1], "triangle inequality"),
        ([0.1, 0, 0, 0.1, 0, 0.1, 2, 0, 0, 1], "must not be negative"),
    ],
)
def test_violations_name_link_and_condition(chi, words):
    found = violations(chi, "link elbow")
    assert any(words in str(v) and "link elbow" in str(v) for v in found)


def test_a_physical_body_and_a_massless_link_pass():
    assert violations([1, 0, 0, 1, 0, 1.5, 0.1, 0, 0, 2], "a") == []
    assert violations(np.zeros(10), "frame") == []
