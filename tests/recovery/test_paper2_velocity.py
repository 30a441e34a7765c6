"""Paper 2, section 3: the SR400's coupled friction from velocity steps on MuJoCo, and a further robot.

16-bit positions, 1 kHz, torque noise of 0.6 N·m on motors 5 and 6, as for the paper's other experiments.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dynident as di
from dynident.experiments.friction.fitting import fit_friction, shapes
from dynident.plant import MujocoPlant, Sensors
from dynident.report.experiments.friction import section

NAMES = ("Fv5", "Fc5", "Fv6", "Fc6", "Fvm6", "Fcm6")
QUANTUM = 2.0 * np.pi / 2**16  # [rad]
LOCKED = {"q1": 0.0, "q2": -1.57, "q3": 0.0, "q4": 0.0, "q6": 0.0}  # [rad]
NOISE = np.array([20.0, 20.0, 0.6, 0.6, 0.6, 20.0])  # [N·m]


@functools.cache
def sr400(velocities5, velocities6, *, seed=0, cruise=1.0):
    robot = di.load_robot("sr400")
    plant = MujocoPlant(robot, "plant", sensors=Sensors(resolution=QUANTUM, torque_noise=NOISE), seed=1000 * seed)
    found = di.experiments.velocity_friction(
        plant, ["q5", "q6"], velocities={"q5": velocities5, "q6": velocities6}, cruise=cruise
    )
    return found, robot.value_set("plant")


def short():
    """Eight runs: q5' = 1, 3 and qm6' = 0.8, 2.4 rad/s, in every sense."""
    return sr400((1.0, 3.0), (0.8, 2.4), cruise=0.7)


def test_six_parameters_of_equation_8():
    found, true = short()
    assert len(found.fits[0].points) == 8
    assert found.fits[0].rank == 6
    for name in NAMES:
        one = found[name]
        assert abs(one.value - true[name]) < 3.5 * one.std, name
        assert one.std < (0.03 if name.startswith("Fv") else 0.04), name
    assert not found.fits[0].misfit.matters


def test_figure_2_jumps_by_twice_fs6_where_joint_6_stands():
    found, true = short()
    fit = found.fits[0]
    one = section(fit, 0, 2.4)  # friction 5 against q5' at qm6' = 2.4
    heights = {round(at, 3): height for at, height in one.jumps}
    assert heights[2.4] == pytest.approx(-2.0 * true["Fc6"], abs=0.06)
    at = dict(zip(np.round(one.velocity).tolist(), one.torque.tolist(), strict=True))
    # What is measured on both sides of the jump, without what the viscous lines say.
    slope = true["Fv5"] - true["Fv6"]
    assert at[3.0] - at[1.0] - 2.0 * slope == pytest.approx(-2.0 * true["Fc6"], abs=0.12)


def test_one_sign_of_the_product_leaves_coulomb_friction_open():
    """That it is rank 4 on the line of Fig. 2 is in the long suite, and with made points beside the sources."""
    found, _ = short()
    fit = found.fits[0]
    same = [one for one in fit.points if one.velocity[0] * one.velocity[1] > 0.0]
    alone = fit_friction(fit.group, same)
    assert alone.rank <= 4
    assert {"Fc5", "Fc6", "Fcm6"} <= set(alone.undetermined)


def test_total_friction_dissipates_though_one_part_would_feed():
    found, _ = short()
    viscous = np.array([[found["Fv5"].value - found["Fv6"].value, found["Fv6"].value], [0.0, 0.0]])
    viscous[1] = found["Fv6"].value, found["Fvm6"].value - found["Fv6"].value
    np.testing.assert_allclose(np.linalg.eigvalsh(viscous), [0.054, 0.128], atol=0.03)
    assert not any("would drive" in warning for warning in found.warnings)


@pytest.mark.full
def test_six_parameters_over_seeds():
    """Twenty-odd runs for each of four seeds: within the standard deviations that are reported, and those are small."""
    apart = []
    for seed in range(4):
        found, true = sr400((1.0, 2.0, 3.0), (0.8, 1.6, 2.4, 3.6), seed=seed)
        for name in NAMES:
            assert found[name].std < (0.012 if name.startswith("Fv") else 0.02), name
            apart.append((found[name].value - true[name]) / found[name].std)
        fit = found.fits[0]
        for row, level in ((0, 2.4), (1, -3.0)):
            height = {round(at, 3): height for at, height in section(fit, row, level).jumps}[level]
            assert abs(height) == pytest.approx(0.8, abs=0.03)
        line = [one for one in fit.points if abs(abs((fit.group.coupling @ one.velocity)[1]) - 2.4) < 0.05]
        same = fit_friction(fit.group, [one for one in line if one.velocity[0] * one.velocity[1] > 0.0])
        assert same.rank == 4
        assert set(same.undetermined) == {"Fc5", "Fc6", "Fvm6", "Fcm6"}
    assert 0.3 < np.sqrt(np.mean(np.square(apart))) < 1.6


def ur10e(effects, joint, velocities, locked=None, **how):
    robot = di.load_robot("ur10e").lock(**(locked or {}))
    sensors = Sensors(resolution=2.0 * np.pi / 2**17, torque_noise=0.5)
    plant = MujocoPlant(robot, "plant", sample_time=2e-3, sensors=sensors, effects=effects)
    found = di.experiments.velocity_friction(plant, [joint], velocities=velocities, cruise=0.8, **how)
    return found, robot.value_set("plant")


def test_further_robot_viscous_and_coulomb_friction_against_gravity():
    found, true = ur10e(None, "q2", [0.2, 0.6, 1.6])
    assert found["Fv2"].value == pytest.approx(true["Fv2"], rel=0.01)
    assert found["Fc2"].value == pytest.approx(true["Fc2"], rel=0.01)
    assert not found.fits[0].misfit.matters


def test_further_robot_stribeck_friction_is_seen_and_named():
    found, true = ur10e({"stribeck0.2_5": 1.5}, "q5", [0.1, 0.25, 1.0, 2.5], LOCKED)
    assert found.fits[0].misfit.matters
    (shape,) = found.shapes
    assert shape.law == "stribeck(0.2)"
    assert shape.low > 0.1
    better = fit_friction(found.fits[0].group, found.fits[0].points, shapes("stribeck(0.2)"))
    assert better["stribeck0.2_5"] == pytest.approx(1.5, rel=0.1)
    assert better["Fc5"] == pytest.approx(true["Fc5"], rel=0.05)
    assert not better.misfit.matters


@pytest.mark.full
def test_further_robot_what_winds_up_counts_as_coulomb_friction():
    found, true = ur10e({"stop0.3_5": 1.0}, "q5", [0.1, 0.4, 1.0, 2.0], LOCKED)
    assert found["Fc5"].value == pytest.approx(true["Fc5"] + 1.0, rel=0.02)
    assert not found.fits[0].misfit.matters
