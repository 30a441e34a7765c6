from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.logs.log import joint_positions, row_torques
from dynident.plant import Feedforward, MujocoPlant, SampledMotion, Sensors, measure, record

TIME = np.linspace(0.0, 0.6, 61)


def ran(sensors, name="tx40", seed=3, **options):
    """A short run of a robot with coupled motors, and its log."""
    robot = di.load_robot(name)
    n = len(robot.joint_names)
    motion = SampledMotion(TIME, 0.3 * np.sin(np.outer(TIME, 4.0 + np.arange(n))))
    plant = MujocoPlant(robot, sensors=sensors, seed=seed)
    return plant, record(plant, Feedforward(robot, motion), **options)


@pytest.fixture(scope="module")
def plain():
    return ran(Sensors())


def test_perfect_sensors_tell_the_truth(plain):
    plant, log = plain
    truth, robot = plant.truth(), plant.robot
    assert np.array_equal(log.time, truth.time[1:])
    assert np.array_equal(log.array("q", robot), truth.q[1:])
    assert row_torques(log, robot) == pytest.approx(truth.tau[1:], rel=1e-12, abs=1e-12)


def test_encoder_steps(plain):
    plant, _ = plain
    robot, truth = plant.robot, plant.truth()
    q = measure(plant, Sensors(resolution=1e-3)).array("q", robot)
    assert np.allclose(q / 1e-3, np.round(q / 1e-3), atol=1e-9)
    assert np.abs(q - truth.q[1:]).max() == pytest.approx(5e-4, rel=0.05)
    # One joint with a coarse encoder, the others exact.
    coarse = measure(plant, Sensors(resolution=np.array([0.01, 0, 0, 0, 0, 0]))).array("q", robot)
    assert np.array_equal(coarse[:, 1:], truth.q[1:, 1:])
    assert len(np.unique(coarse[:, 0])) < 100


def test_encoders_at_the_motors(plain):
    plant, _ = plain
    step = 2.0 * np.pi / 512
    log = measure(plant, Sensors(resolution=step, encoder="motor"), kinds=("qm", "tau"))
    counts = log.array("qm", plant.robot) / step
    assert np.allclose(counts, np.round(counts), atol=1e-6)
    error = np.abs(joint_positions(log, plant.robot) - plant.truth().q[1:]).max(axis=0)
    assert error[0] == pytest.approx(0.5 * step / 32, rel=0.05)
    assert error[5] > error[4]  # motor 6 turns with joint 5


def test_noise_and_bias(plain):
    plant, _ = plain
    truth = plant.truth()
    sensors = Sensors(torque_noise=np.arange(6) * 0.1, torque_bias=0.5, position_noise=1e-4, velocity_noise=0.02)
    log = measure(plant, sensors, kinds=("q", "dq", "tau"))
    error = row_torques(log, plant.robot) - truth.tau[1:]
    assert error.mean(axis=0) == pytest.approx(0.5, abs=0.08)
    assert error.std(axis=0) == pytest.approx(np.arange(6) * 0.1, rel=0.15)
    assert (log.array("q", plant.robot) - truth.q[1:]).std() == pytest.approx(1e-4, rel=0.05)
    assert (log.array("dq", plant.robot) - truth.dq[1:]).std() == pytest.approx(0.02, rel=0.05)


def test_delay_is_that_of_torque_against_position(plain):
    plant, _ = plain
    truth = plant.truth()
    log = measure(plant, Sensors(delay=0.0045))
    assert np.array_equal(log.array("q", plant.robot), truth.q[1:])
    tau = row_torques(log, plant.robot)
    assert tau[99] == pytest.approx(0.5 * (truth.tau[95] + truth.tau[96]), rel=1e-9)
    assert tau[2] == pytest.approx(truth.tau[0], rel=1e-9)  # nothing is known from before the start


def test_jitter_moves_readings_and_stamps_together(plain):
    plant, _ = plain
    truth = plant.truth()
    log = measure(plant, Sensors(jitter=8e-4))
    late = truth.time[1:] - log.time
    assert 0.0 <= late.min() < 5e-5
    assert 7.5e-4 < late.max() <= 8e-4
    q = log.array("q", plant.robot)
    straight = truth.q[1:] - late[:, None] * truth.dq[1:]
    assert np.abs(q - straight).max() < 2e-5
    assert np.abs(q - truth.q[1:]).max() > 2e-4


@pytest.mark.parametrize("every", [1, 4])
def test_measuring_again_gives_the_readings(every):
    faults = Sensors(1e-4, "joint", 1e-5, 0.01, 0.3, 0.1, delay=0.0032, jitter=7e-4)
    plant, log = ran(faults, every=every)
    again = measure(plant, every=every)
    assert again.time == pytest.approx(log.time, abs=1e-15)
    for name, values in log.channels.items():
        assert again.channels[name] == pytest.approx(values, abs=1e-12), name


def test_seeds_repeat():
    faults = Sensors(1e-4, torque_noise=0.3, position_noise=1e-4, jitter=5e-4)
    (plant, one), (_, same), (_, other) = (ran(faults, seed=seed, duration=0.1) for seed in (1, 1, 2))
    assert one.digest == same.digest != other.digest
    first = measure(plant, seed=7)
    assert first.digest == measure(plant, seed=7).digest != measure(plant, seed=8).digest


def test_channels(plain):
    plant, _ = plain
    robot = plant.robot
    log = measure(plant, kinds=("q", "dq", "tau", "qm", "dqm", "taum"), every=5)
    assert len(log) == len(plant.truth().time) // 5
    ratios = robot.drive.gear_ratios
    assert log.array("qm", robot)[:, 5] / ratios[5] == pytest.approx(
        (log.channels["q5"] - robot.zero[4]) + (log.channels["q6"] - robot.zero[5])
    )
    assert log.array("taum", robot) * ratios == pytest.approx(row_torques(log, robot))
    with pytest.raises(di.InputError, match="has no current; give the robot drive_gains"):
        measure(plant, kinds=("q", "i"))
    with pytest.raises(di.InputError, match="has no voltage"):
        measure(plant, kinds=("u",))
    with pytest.raises(di.UnknownNameError, match="unknown kind of channel 'torque'"):
        measure(plant, kinds=("torque",))
    with pytest.raises(di.InputError, match="run it first"):
        measure(MujocoPlant(robot))


def test_bad_sensors():
    for arguments, message in (
        ({"resolution": -1.0}, "resolution is -1.0"),
        ({"torque_noise": np.nan}, "torque_noise is nan"),
        ({"delay": -1.0}, "delay is -1.0 s"),
        ({"jitter": np.inf}, "jitter is inf"),
        ({"encoder": "gear"}, "encoder is 'gear'; expected joint or motor"),
    ):
        with pytest.raises(di.InputError, match=message):
            Sensors(**arguments)
