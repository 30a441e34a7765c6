"""Abhishek et al., section 2.4: mass moments by Fourier fits of slow single-joint motion.

What is achievable: exact without noise, within 0.1 kg·m with friction and 1 N·m of noise at 12 ms, from sweeps of +-60
degrees. Then the same on arms that no paper used for it.
"""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench
from dynident.plant import Sensors
from tests.experiments.slow_logs import there_and_back
from tests.recovery.kr5 import STEP, machine_torque

TABLE4 = [38.3942, 0.0064, 10.6798, 7.2487, 1.1736, -0.4988]
COUNT = 2.0 * np.pi / 2**17  # of the encoders [rad]


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("kr5-planar")


def machine(robot, values, *, noise=0.0, step=2e-3, sample_time=STEP, seed=0, resolution=0.0):
    sensors = Sensors(torque_noise=noise, resolution=resolution)
    return di.MujocoPlant(robot, values, sample_time=sample_time, step=step, sensors=sensors, seed=seed)


def frictionless(robot):
    return {name: value for name, value in robot.value_set("plant").items() if name[0] != "F"}


def stranger(robot, share=0.7):
    """The robot as a controller knows it that does not know its weight well, nor its friction."""
    return robot.with_values("guess", {name: share * value for name, value in frictionless(robot).items()})


def pinocchio_logs(robot, velocity=0.25):
    """Sweeps of +-60 degrees whose torque Pinocchio made, with Coulomb and viscous friction."""
    logs = []
    for j in range(3):
        own = there_and_back(-np.pi / 3 - 0.2, np.pi / 3 + 0.2, velocity, STEP)
        q = np.tile([0.8, -0.5, 0.1], (len(own), 1))
        q[:, j] = own
        dq = np.zeros_like(q)
        dq[:, j] = velocity * np.sign(np.gradient(own))
        tau = machine_torque(robot, (q, dq, np.zeros_like(q)))
        channels = {f"{kind}{i + 1}": x[:, i] for kind, x in (("q", q), ("tau", tau)) for i in range(3)}
        logs.append(di.Log(f"sweep {j}", f"{j}", STEP * np.arange(len(q)), channels))
    return logs


def test_exact_without_noise(robot):
    found = di.experiments.gravity_from_logs(robot, pinocchio_logs(robot))
    np.testing.assert_allclose(found.values, found.base.values(), atol=1e-9)
    np.testing.assert_allclose(found.values, TABLE4, atol=1e-9)
    levels = [40.0 + 60.0 * 0.25, 25.0 + 40.0 * 0.25, 8.0 + 10.0 * 0.25]
    assert [one.friction.level for one in found.runs] == pytest.approx(levels[::-1], abs=1e-9)


def test_on_mujoco_without_noise_and_friction(robot):
    """By a controller that is wrong about the weight by 30 %."""
    found = di.experiments.gravity_moments(machine(stranger(robot), frictionless(robot)), sweep_velocity=0.3)
    np.testing.assert_allclose(found.values, TABLE4, atol=1e-3)


def test_with_friction_and_noise(robot):
    found = di.experiments.gravity_moments(machine(robot, "plant", noise=1.0, resolution=COUNT), sweep_velocity=0.3)
    assert np.abs(found.values - TABLE4).max() < 0.1
    assert found.std.max() < 0.06
    assert all(np.degrees(np.ptp(one.run.angle)) > 115.0 for one in found.runs)


@pytest.mark.full
def test_with_friction_and_noise_time_and_again(robot):
    """Ten seeds at the velocity that is the default; half of them with a controller that knows neither."""
    off = []
    for seed in range(10):
        known = robot if seed % 2 else stranger(robot)
        plant = machine(known, "plant", noise=1.0, resolution=COUNT, seed=seed, step=5e-4)
        found = di.experiments.gravity_moments(plant)
        assert np.abs(found.values - TABLE4).max() < 0.1
        off.append((found.values - TABLE4) / found.std)
    assert np.mean(np.abs(off) < 2.0) > 0.8
    assert np.abs(off).max() < 5.0


def test_least_squares_beside_it_agrees(robot):
    """Table 5 as it would be on one machine: the two methods differ by their standard deviations, not by a fifth."""
    from tests.recovery.kr5 import fourier

    t = np.arange(0.0, 10.0, STEP)
    motion = fourier(robot, t, 3)
    tau = machine_torque(robot, motion) + np.random.default_rng(0).normal(size=motion[0].shape)
    channels = {f"{k}{j + 1}": x[:, j] for k, x in (("q", motion[0]), ("tau", tau)) for j in range(3)}
    fit = di.identify(robot, di.Log("fast", "fast", t, channels), terms="rigid,Fv,Fc")
    noise = np.random.default_rng(1)
    logs = [
        di.Log(log.label, log.digest, log.time, {k: x + (k[0] == "t") * noise.normal(size=len(x)) for k, x in own})
        for log, own in ((log, log.channels.items()) for log in pinocchio_logs(robot))
    ]
    found = di.experiments.gravity_from_logs(robot, logs).compared_to(fit)
    assert found.comparison.agrees
    assert max(abs(own - other) for _, own, _, other, _ in found.comparison.rows()) < 0.1
    assert all(abs(np.degrees(link.angle)) < 3.0 for link in found.comparison.links)


def test_a_loop_and_a_coupled_drive():
    """SR400: joint 7 carries the forearm through a parallelogram, motor 6 turns with joints 5 and 6."""
    robot = di.load_robot("sr400")
    plant = machine(robot, "plant", noise=0.5, sample_time=4e-3, resolution=COUNT)
    bench = Bench(plant)
    found = di.experiments.gravity_moments(
        bench, joints=["joint6", "joint5", "joint2"], sweep_velocity=0.5, true="plant"
    )
    tested = {one.name: one for one in found.estimates}
    assert set(tested) == {"MXR2", "MYR2", "MX5", "MYR5", "MX6", "MY6"}
    for one in tested.values():
        assert abs(one.value - one.true) < 4.0 * one.std
    assert tested["MXR2"].value == pytest.approx(54.085, abs=0.05)
    assert tested["MYR5"].value == pytest.approx(0.16, abs=0.05)


@pytest.mark.full
@pytest.mark.parametrize("name", ["sr400", "puma560", "ur10e"])
def test_six_joints_with_friction_and_noise(name):
    robot = di.load_robot(name)
    found = di.experiments.gravity_moments(
        machine(robot, "plant", noise=0.5, sample_time=4e-3, resolution=COUNT), true="plant"
    )
    assert len(found.estimates) == 10
    off = np.array([(one.value - one.true) / one.std for one in found.estimates])
    assert np.abs(off).max() < 4.5
    assert max(abs(one.value - one.true) for one in found.estimates) < 0.05
