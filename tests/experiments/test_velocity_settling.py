"""Constant velocity: joints that overshoot are waited for, and what their velocity still changes counts as inertia."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.friction.fitting import fit_friction
from dynident.experiments.friction.groups import joint_groups
from dynident.experiments.friction.links import acceleration_columns
from dynident.experiments.friction.plan import joint_range, plan_levels, prolong_level
from dynident.experiments.friction.points import Point, Stretch, both_ways, derivatives, settling
from dynident.experiments.options import FrictionOptions
from dynident.plant import MujocoPlant, Sensors
from tests import strangers
from tests.strangers import STRANGERS, calibration

COUNT = 2.0 * np.pi / 2**17  # [rad]


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-1")


def bare_arm():
    """The skewed arm of its URDF file alone, without rotors: axes that push each other hard. Masses are off by 20 %."""
    stranger = STRANGERS["skewed_arm"]()
    robot = stranger.described
    bare = {name: 0.0 if name.startswith("Ia") else x for name, x in robot.value_set().items()}
    truth = {name: 0.0 if name.startswith("Ia") else x for name, x in stranger.truth.items()}
    truth |= {name: 0.3 * x for name, x in truth.items() if name.startswith(("Fv", "Fc"))}
    return robot.with_values("bare", bare), truth, Sensors(resolution=COUNT, torque_noise=stranger.torque_noise)


def friction_of(robot, truth, sensors, joints, seed=0):
    plant = MujocoPlant(robot, truth, sample_time=2e-3, sensors=sensors, seed=1000 * seed)
    found = di.experiments.velocity_friction(plant, joints)
    each = found.estimates
    names = [one.name for one in each]
    return found, calibration(
        names, [one.value for one in each], [one.std for one in each], [truth[name] for name in names]
    )


def test_an_arm_whose_axes_push_each_other():
    found, off = friction_of(*bare_arm(), ["a4"])
    assert abs(off.worst[1]) < 3.5, str(off)
    assert found["Fv4"].value == pytest.approx(0.3 * 2.76, rel=0.05)
    assert found.shapes == (None,)


@pytest.mark.full
def test_all_joints_of_that_arm_and_of_a_scara_over_seeds():
    scara = STRANGERS["scara"]()
    machines = {
        "arm": (*bare_arm(), ["a1", "a2", "a4", "a6"]),
        "scara": (
            scara.described,
            scara.truth,
            Sensors(resolution=scara.resolution, torque_noise=scara.torque_noise),
            None,
        ),
    }
    for machine in machines.values():
        total = None
        for seed in range(3):
            found, off = friction_of(*machine, seed=seed)
            assert not any(found.shapes)
            total = off if total is None else total + off
        assert total.rms < 1.3, str(total)
        assert abs(total.worst[1]) < 6.0


# --- settling ---------------------------------------------------------------------------------------------------------


def step_answer(t, w, damping, velocity=1.0):
    """Velocity of a second-order system after a step of its set point."""
    fast = w * np.sqrt(1.0 - damping**2)
    return velocity * (1.0 - np.exp(-damping * w * t) * (np.cos(fast * t) + damping * w / fast * np.sin(fast * t)))


def test_settling_is_seen_in_the_velocity():
    t = np.linspace(0.0, 3.0, 1501)
    velocity = step_answer(t, 12.0, 0.4)
    seconds, settled = settling(t, velocity[:, None])
    assert settled
    assert np.abs(velocity[t > seconds] - 1.0).max() < 0.021
    assert np.exp(-0.4 * 12.0 * seconds) > 0.01
    assert settling(t, np.full((len(t), 1), -0.3)) == (0.0, True)
    assert not settling(t, step_answer(t, 5.0, 0.05)[:, None])[1]
    ripple = 1.0 + 0.2 * np.sin(40.0 * t)  # of gears: it does not die away, so there is nothing to wait for
    assert settling(t, ripple[:, None]) == (0.0, True)


def test_derivatives_of_positions():
    t = np.linspace(0.0, 2.0, 1001)
    q = np.stack([0.3 * np.sin(4.0 * t), 0.5 * t**2], axis=1)
    dq, ddq = derivatives(t, q)
    inside = slice(60, -60)
    np.testing.assert_allclose(dq[inside, 0], 1.2 * np.cos(4.0 * t[inside]), rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(ddq[inside, 0], -4.8 * np.sin(4.0 * t[inside]), rtol=0.01, atol=0.01)
    np.testing.assert_allclose(dq[inside, 1], t[inside], atol=1e-3)
    np.testing.assert_allclose(ddq[inside, 1], 1.0, atol=1e-6)


def test_torque_of_inertia_is_taken_off(pendulum):
    """Joints that still swing, there and back: what inertia does to the means is found from their parts."""
    (group,) = joint_groups(pendulum)
    rng, points = np.random.default_rng(0), []
    t = np.linspace(0.0, 0.6, 301)
    for k, v in enumerate((0.2, 0.5, 1.0, 1.5)):
        ways = []
        for sense in (1.0, -1.0):
            swing = 0.1 * v * np.exp(-2.0 * t)
            phase = 9.0 * t + 0.5 * k + sense
            q = sense * (v * (t - 0.3) + swing * np.sin(phase) / 9.0)
            dq, ddq = np.gradient(q, t), np.gradient(np.gradient(q, t), t)
            tau = 3.0 * ddq + 0.5 * dq + 1.0 * sense + 0.01 * rng.normal(size=len(t))
            inside = slice(3, -3)
            columns = np.stack([acceleration_columns(ddq[inside, None])] * 2)
            ways.append(Stretch("run", t[inside], q[inside, None], tau[inside, None], columns, dq[inside, None]))
        points.append(both_ways(*ways))
    fit = fit_friction(group, points)
    inertia, std = (float(x[0, 0]) for x in fit.inertia)
    assert inertia == pytest.approx(3.0, abs=max(0.15, 4.0 * std))
    assert not fit.misfit.matters
    for name, true in (("Fv1", 0.5), ("Fc1", 1.0)):
        assert abs(fit[name] - true) < 4.0 * fit.std[fit.names.index(name)], name
        assert fit[name] == pytest.approx(true, rel=0.02)
    again = fit_friction(group, fit.points)  # what is taken off stays off
    np.testing.assert_allclose(again.values, fit.values, rtol=1e-9)
    np.testing.assert_allclose(again.std, fit.std, rtol=1e-6)
    ignored = [Point(one.run, one.velocity, one.blocks, True, one.seconds) for one in points]
    assert abs(fit_friction(group, ignored)["Fv1"] - 0.5) > 3.0 * abs(fit["Fv1"] - 0.5)


@pytest.mark.full
@pytest.mark.parametrize("joints", [("a1",), ("a6", "a7")])
def test_joints_that_are_held_give_way(joints):
    """The feedback that overcomes friction pushes the other joints too, one way there and the other way back.

    Their weight does not cancel then. Without noise, so that the standard deviations are small; the robot file itself,
    which has no rotors.
    """
    robot = di.load_robot(Path(strangers.__file__).parent / "skewed.urdf")
    found = di.experiments.velocity_friction(MujocoPlant(robot, sample_time=2e-3), joints)
    truth = robot.value_set()
    for one in found.estimates:
        assert abs(one.value - truth[one.name]) < 4.0 * one.std, one
        assert one.value == pytest.approx(truth[one.name], rel=2e-3), one


@pytest.mark.full
def test_links_that_are_described_wrong():
    """What the description gets wrong of them is found from how torque changes within the runs, or in the doubt."""
    robot, truth, _ = bare_arm()
    found = di.experiments.velocity_friction(MujocoPlant(robot, truth, sample_time=2e-3), ("a1", "a3"))
    for one in found.estimates:
        assert abs(one.value - truth[one.name]) < 4.0 * one.std, one
        assert one.value == pytest.approx(truth[one.name], rel=2e-2), one
    for fit in found.fits:
        assert fit.inertia[0][0, 0] > -2.0 * fit.inertia[1][0, 0]


# --- longer runs ------------------------------------------------------------------------------------------------------


def test_a_run_is_prolonged_and_slowed_where_the_range_ends(pendulum):
    (group,) = joint_groups(pendulum)
    bounds, timing, ranges = Bounds.of(pendulum), FrictionOptions(), {"q1": (-1.0, 1.0)}
    span = joint_range(group, bounds, ranges)
    slow, fast = plan_levels(group, bounds, np.zeros(1), velocities=[[0.3, 2.0]], ranges=ranges, timing=timing)[0]
    again, word = prolong_level(group, slow, span, timing, 0.5, slower=True)
    assert word == ""
    assert again.settle == pytest.approx(0.5)
    assert again.cruise == pytest.approx(1.0 + 2.0 * (0.5 - 0.2))
    again, word = prolong_level(group, fast, span, timing, 0.5, slower=True)
    assert again.velocity == pytest.approx(2.0 / (0.3 + 2.0 * 0.5 + 0.2))
    assert "times its velocity, for the range is too short" in word
    q, _, _ = again.sample(np.linspace(0.0, again.duration, 300))
    assert q.min() > -1.0 - 1e-9
    assert q.max() < 1.0 + 1e-9
    again, word = prolong_level(group, fast, span, timing, 0.5, slower=False)
    assert again is None
    assert "widen the range (--range)" in word


def test_runs_go_on_until_the_joint_has_settled(pendulum):
    """A feedback for a quarter of the inertia: the joint overshoots, and 0.2 s are too short to settle."""
    values = pendulum.value_set()
    light = pendulum.with_values("light", {k: 0.12 * x for k, x in values.items()})
    truth = {**values, "Fv1": 0.5, "Fc1": 1.0}
    sensors = Sensors(torque_noise=0.02, resolution=COUNT)
    bench = Bench(MujocoPlant(light, truth, sample_time=2e-3, sensors=sensors))
    found = di.experiments.velocity_friction(bench, velocities=[0.3, 1.0], ranges={"q1": (-2.5, 2.5)})
    assert len(bench.runs) > 2
    for name in ("Fv1", "Fc1"):
        assert abs(found[name].value - truth[name]) < 4.0 * found[name].std
        assert found[name].value == pytest.approx(truth[name], rel=0.03)
    assert found.warnings == ()


def test_a_joint_that_never_settles_is_reported_with_what_to_change(pendulum):
    """A feedback for a hundredth of the inertia swings on and on."""
    values = pendulum.value_set()
    light = pendulum.with_values("light", {k: 0.004 * x for k, x in values.items()})
    plant = MujocoPlant(light, {**values, "Fv1": 0.0, "Fc1": 0.0}, sample_time=2e-3, sensors=Sensors())
    with pytest.raises(di.DynidentError, match=r"joint1 .*(has not settled after .* \(--cruise\)|left its bounds)"):
        di.experiments.velocity_friction(plant, velocities=[0.5], ranges={"q1": (-1.5, 1.5)}, gravity="none")
