"""A known load: what it changes, and what two fits say about it."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import Transform
from dynident.robot.parameters import LINK_SYMBOLS

TERMS = "rigid,Fv"
LOAD = di.payload.Payload(2.0, (0.05, -0.02, 0.1), (0.02, 0.001, 0.0, 0.03, 0.002, 0.012))


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("puma560")


@pytest.fixture(scope="module")
def base(robot):
    return di.base_parameters(robot, TERMS)


def turned(robot):
    import dataclasses

    c, s = np.cos(0.4), np.sin(0.4)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return dataclasses.replace(robot, tool=(5, Transform(rotation, np.array([0.1, 0.0, 0.2])))), rotation


def test_standard_parameters_and_back():
    again = di.payload.Payload.from_standard(dict(zip(LINK_SYMBOLS, LOAD.standard, strict=True)))
    assert again.mass == LOAD.mass
    np.testing.assert_allclose(again.com, LOAD.com)
    np.testing.assert_allclose(again.inertia, LOAD.inertia, atol=1e-15)


def test_the_change_is_that_of_a_heavier_link(robot, base):
    """The tool is off the link's frame and turned: a robot with the load in its last link has these base values."""
    tooled, rotation = turned(robot)
    at = LOAD.at(tooled)
    assert at["M6"] == 2.0
    np.testing.assert_allclose([at["MX6"], at["MY6"], at["MZ6"]], 2.0 * (rotation @ LOAD.com + [0.1, 0.0, 0.2]))
    value = dict(robot.value_set())
    heavier = {**value, **{name: value.get(name, 0.0) + x for name, x in at.items()}}
    change = di.payload.payload_change(di.base_parameters(tooled, TERMS), LOAD)
    np.testing.assert_allclose(change, base.base_values(heavier) - base.base_values(), atol=1e-12)


def test_the_change_is_a_wrench_at_the_tool(robot, base):
    """At rest a load pulls at the tool with its weight."""
    tooled, _ = turned(robot)
    own = di.base_parameters(tooled, TERMS)
    chi = own.standard_values(di.payload.payload_change(own, di.payload.Payload(2.0)), "regrouped zero")
    q = np.random.default_rng(0).normal(size=(5, 6))
    extra = di.inverse_dynamics(tooled, q, 0 * q, 0 * q, TERMS, chi)
    forces = []
    for x in q:
        R = np.eye(3)
        for joint, angle in zip(robot.joints, x, strict=True):
            c, s = np.cos(angle), np.sin(angle)
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            R = R @ joint.before.rotation @ turn @ joint.after.rotation
        tool = R @ tooled.tool[1].rotation
        forces.append(tool.T @ (2.0 * robot.gravity))  # the tool pulls its surroundings the other way round
    still = dict.fromkeys(robot.parameter_names, 0.0)
    wrench = di.inverse_dynamics(tooled, q, 0 * q, 0 * q, TERMS, still, tool_force=-np.array(forces))
    np.testing.assert_allclose(extra, wrench, atol=1e-9)


def fits(robot, base, load, seed=0, noise=0.05):
    found = []
    for number, change in enumerate((0.0, di.payload.payload_change(base, load))):
        rng = np.random.default_rng(seed + number)
        q, dq, ddq = rng.normal(size=(3, 600, 6))
        chi = base.standard_values(base.base_values() + change, "regrouped zero")
        tau = di.inverse_dynamics(robot, q, dq, ddq, TERMS, chi) + noise * rng.normal(size=q.shape)
        found.append(di.estimators.WeightedLeastSquares().fit(di.accumulate(robot, q, dq, ddq, tau, TERMS)))
    return found


def test_side_by_side(robot, base):
    unloaded, loaded = fits(robot, base, LOAD)
    compared = di.payload.compare_payload(unloaded, loaded, LOAD)
    assert [row.name for row in compared.rows] == list(base.names)
    assert compared.agreeing > 0.9
    row = compared["MXR2"]
    assert row.change == pytest.approx(di.payload.payload_change(base, LOAD)[base.names.index("MXR2")])
    assert row.predicted == pytest.approx(row.unloaded + row.change)
    assert row.deviations == pytest.approx(abs(row.loaded - row.predicted) / np.hypot(row.unloaded_std, row.loaded_std))
    assert "MXR2" in {one.name for one in compared.changed}
    assert "Fv1" not in {one.name for one in compared.changed}
    with pytest.raises(UnknownNameError, match="base parameter"):
        _ = compared["MX99"]


def test_a_wrong_load_is_noticed(robot, base):
    compared = di.payload.compare_payload(*fits(robot, base, LOAD), di.payload.Payload(2.2, LOAD.com, LOAD.inertia))
    assert compared["MXR2"].agreement == "differs"
    assert compared.agreeing < 0.95
    assert "differs" in compared.table()


def test_what_was_eliminated_is_zero_give_or_take(robot, base):
    unloaded, loaded = (di.estimate.essential_parameters(one) for one in fits(robot, base, LOAD))
    compared = di.payload.compare_payload(unloaded, loaded, LOAD)
    left = {one.name: one.std for one in unloaded.eliminated}
    assert left
    for name, std in left.items():
        assert (compared[name].unloaded, compared[name].unloaded_std) == (0.0, pytest.approx(std))
    assert compared.agreeing > 0.9


def test_verdicts():
    from dynident.payload import PayloadRow

    def verdict(gap, std=1.0):
        return PayloadRow("x", "kg", 1.0, std, 2.0, 3.0 + gap, 0.0).agreement

    assert [verdict(x) for x in (0.0, -1.9, 2.5, -3.5)] == ["agrees", "agrees", "doubtful", "differs"]
    assert verdict(0.0, np.inf) == "not determined"
    assert (verdict(0.0, 0.0), verdict(1e-6, 0.0)) == ("agrees", "differs")


def test_a_load_that_is_no_body_is_refused():
    with pytest.raises(InputError, match="triangle inequality"):
        di.payload.Payload(1.0, (0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.3))
    with pytest.raises(InputError, match="must not be negative"):
        di.payload.Payload(1.0, (0, 0, 0), (-0.1, 0, 0, 0.1, 0, 0.1))
    assert di.payload.Payload(1.0, (3.0, 0, 0), (0.1, 0, 0, 0.1, 0, 0.2)).mass == 1.0  # a flat body, far from the tool
    printed = {"XX": 0.454, "XY": -0.02, "XZ": -0.09, "YY": 0.445, "YZ": -0.115, "ZZ": 0.065}  # Gautier et al. 1995
    rounded = di.payload.Payload.from_standard(printed | {"MX": 0.48, "MY": 0.6, "MZ": 2.0, "M": 10.9})
    assert rounded.standard[9] == 10.9


def test_fits_of_different_robots_are_refused(robot, base):
    unloaded, loaded = fits(robot, base, LOAD)
    other = di.load_robot("sr400")
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 300, 6))
    theirs = di.accumulate(other, q, dq, ddq, di.inverse_dynamics(other, q, dq, ddq, TERMS), TERMS)
    with pytest.raises(InputError, match="different robots, puma560 and sr400"):
        di.payload.compare_payload(unloaded, di.estimators.WeightedLeastSquares().fit(theirs), LOAD)
    with pytest.raises(InputError, match="different robots"):
        di.payload.compare_payload(unloaded, loaded, LOAD, base=di.base_parameters(other, TERMS))
    part = di.base_parameters(robot.lock(q6=0.0), TERMS)  # locked joints do not make another robot
    assert di.payload.compare_payload(unloaded, loaded, LOAD, base=part).rows


def test_a_robot_is_no_set_of_base_parameters(robot):
    with pytest.raises(InputError, match=r"a Robot is no set .* pass base_parameters\(robot\)"):
        di.payload.payload_change(robot, LOAD)


def test_what_cannot_be_compared(robot, base):
    for wrong in ((-1.0,), (float("nan"),), (1.0, (0.0, 0.0)), (1.0, (0, 0, 0), (1, 2, 3))):
        with pytest.raises(InputError, match="of the payload"):
            di.payload.Payload(*wrong)
    with pytest.raises(UnknownNameError, match="parameter of a payload"):
        di.payload.Payload.from_standard({"mass": 1.0})
    plain = di.estimators.WeightedLeastSquares().fit(
        di.information.accumulate_rows(np.ones((3, 1, 1)), np.ones((3, 1)), ["x"])
    )
    with pytest.raises(InputError, match="neither fit knows its robot"):
        di.payload.compare_payload(plain, plain, LOAD)
    with pytest.raises(InputError, match="no base parameter in common"):
        di.payload.compare_payload(plain, plain, LOAD, base=base)
    with pytest.raises(InputError, match="has no base parameters"):
        di.payload.compare_payload(object(), plain, LOAD, base=base)
