"""Any parameters against physics: the papers' tables, and the nearest physically consistent robot."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, UnknownNameError
from dynident.robot.physicality import violations


def test_bundled_machines_are_physical():
    for name in ("ur10e", "tx40", "sr400", "puma560"):
        check = di.physical.distance_to_physical(di.load_robot(name))
        assert check.physical, check.sentences()
        assert min(check.margins.values()) > 0.0
        assert not check.unknown


def test_table_3_of_khosla_and_kanade():
    robot = di.load_robot("cmu-dd-arm-3")
    check = di.physical.distance_to_physical(robot, "table3")
    assert not check.physical
    assert check.margins["link 3"] < 0.0
    assert check.unknown == ("link 1", "link 2")
    assert any("-0.4113" in line for line in check.sentences())
    near = di.physical.nearest_physical(robot, "table3")
    assert not near.feasible
    assert near.distance == pytest.approx(0.377, abs=0.005)
    assert near.distances["link 3"] == pytest.approx(near.distance, rel=1e-3)
    assert di.physical.distance_to_physical(robot, near.values).physical
    assert near.moved["M1"] == pytest.approx(0.0, abs=0.01)  # links that were given in part are left alone


def test_table_4_of_the_kr5_paper():
    robot = di.load_robot("kr5-planar")
    near = di.physical.nearest_physical(robot, "table4")
    assert not near.feasible
    assert near.metric == "share of the torque of random motion"
    assert near.distance > 0.5
    assert near.moved["ZZR1"] > 100.0
    base = di.base_parameters(robot, "rigid")
    beta = base.base_values(near.values)
    assert beta[0] + 2 * 0.6 * beta[1] > 0.0  # inertia about joint 1, which the table has at -132
    found = {**dict.fromkeys(base.names, 0.0), **robot.base_values["table4"]}
    assert beta == pytest.approx(np.array(list(found.values())) + np.array(list(near.moved.values())))


def test_base_values_of_a_real_robot_are_feasible_and_stay():
    robot = di.load_robot("kr5-planar")
    base = di.base_parameters(robot, "rigid")
    values = dict(zip(base.names, base.base_values("plant").tolist(), strict=True))
    near = di.physical.nearest_physical(robot, values)
    assert near.feasible
    assert near.distance < 2e-3


def test_a_covariance_decides_which_base_values_move():
    robot = di.load_robot("pendulum-2")
    base = di.base_parameters(robot, "rigid")
    beta = base.base_values()
    beta[0] = -0.5  # inertia about the first axis
    values = dict(zip(base.names, beta.tolist(), strict=True))
    tight, loose = np.full(base.n, 1e-3), np.full(base.n, 1e-3)
    loose[0] = 10.0
    near = di.physical.nearest_physical(robot, values, covariance=np.diag(loose**2))
    assert near.metric == "standard deviations"
    assert near.distance < 1.0
    far = di.physical.nearest_physical(robot, values, covariance=np.diag(tight**2))
    assert far.distance > 100.0
    others = [abs(x) for name, x in near.moved.items() if name != base.names[0]]
    assert max(others) < 1e-3


def test_nearest_of_one_body_is_the_projection():
    """A cube with one negative direction: nothing but that direction changes."""
    robot = di.load_robot("pendulum-1")
    size = robot.link_parameters()[0]
    values = {**robot.value_set()}
    values["XX1"], values["YY1"], values["ZZ1"] = size[5], size[5], 3.0 * size[5]
    check = di.physical.distance_to_physical(robot, values)
    assert any("triangle" in line for line in check.sentences())
    near = di.physical.nearest_physical(robot, values)
    assert 0.0 < near.distance < 1.0
    chi = np.array([near.values[f"{s}1"] for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")])
    assert not violations(chi, "link")


def test_friction_and_rotors_are_checked_as_a_whole():
    robot = di.load_robot("sr400")
    good = {**robot.value_set(), "Fv5": 0.2, "Fv6": 0.034, "Fvm6": 0.15}
    assert di.physical.distance_to_physical(robot, good).physical
    bad = di.physical.distance_to_physical(robot, {**good, "Fv5": 0.01, "Ia1": -0.1})
    text = " ".join(bad.sentences())
    assert "viscous friction of 5, 6, m6: friction must take energy" in text
    assert "Ia1: rotor inertia must not be negative" in text


def test_names_and_values_that_are_wrong():
    robot = di.load_robot("kr5-planar")
    with pytest.raises(UnknownNameError, match=r"parameter set 'table9'.*table4"):
        di.physical.nearest_physical(robot, "table9")
    with pytest.raises(UnknownNameError, match="base parameter 'ZZR9'"):
        di.physical.nearest_physical(robot, {"ZZR9": 1.0})
    with pytest.raises(UnknownNameError, match="standard parameter 'Q1'"):
        di.physical.distance_to_physical(robot, {"Q1": 1.0})
    with pytest.raises(InputError, match="M1 is nan"):
        di.physical.distance_to_physical(robot, {"M1": float("nan")})
    with pytest.raises(InputError, match="covariance must be positive definite"):
        di.physical.nearest_physical(robot, "table4", covariance=np.zeros((9, 9)))
    with pytest.raises(InputError, match="covariance goes with base values"):
        di.physical.nearest_physical(robot, "plant", covariance=np.eye(9))
