"""A run ends safely whatever happens on it, and what it recorded is there."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench, Bounds
from dynident.plant import Motors, MujocoPlant, OpenLoop, Sensors


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-1")


def push(torque):
    return OpenLoop(lambda time: [torque])


def test_a_run_to_its_end_is_a_log_that_reads_back(robot, tmp_path):
    bench = Bench(MujocoPlant(robot, "plant"), folder=tmp_path / "runs")
    run = bench.run(push(0.0), 0.2, [0.1], label="fall")
    assert run.end == "done"
    assert run.whole
    assert len(run.time) == 201
    log = di.read_log(tmp_path / "runs" / "001-fall.csv", robot)
    np.testing.assert_allclose(log.array("q", robot), run.q, atol=1e-8)
    np.testing.assert_allclose(log.time, run.time, atol=1e-9)


def test_it_stops_at_a_bound_and_says_which_joint(robot):
    bench = Bench(MujocoPlant(robot, "plant"))
    run = bench.run(push(0.0), 5.0, [0.1], bounds=bench.bounds.within([0.1], 0.5))
    assert run.end == "bound"
    assert run.joint == robot.joint_names[0]
    assert not run.whole
    assert abs(run.q[-1, 0] - 0.1) > 0.5 > abs(run.q[-2, 0] - 0.1)
    assert "left its bounds at t =" in run.why
    with pytest.raises(di.InputError, match="stopped; reset"):
        bench.plant.step()


def test_it_stops_when_it_becomes_too_fast_or_runs_away(robot):
    bench = Bench(MujocoPlant(robot, "plant"))
    slow = Bounds(np.array([-9.0]), np.array([9.0]), np.array([0.7]))
    assert bench.run(push(0.0), 5.0, [0.1], bounds=slow).end == "velocity"
    strong = Bench(MujocoPlant(robot, "plant", torque_limits=[1e10]))
    run = strong.run(push(1e9), 5.0, [0.1])
    assert (run.end, run.joint) == ("unstable", robot.joint_names[0])


def test_it_stops_at_a_torque_or_voltage_limit_unless_set_otherwise(robot):
    bench = Bench(MujocoPlant(robot, "plant", torque_limits=[1.0]))
    assert bench.run(push(2.0), 0.1, [0.0]).end == "saturated"
    assert bench.run(push(2.0), 0.1, [0.0], saturation=False).end == "done"
    volts = Bench(MujocoPlant(robot, "plant", motors=Motors(1.0, 1.0, voltage_limit=5.0)))
    assert volts.run(OpenLoop(lambda time: [6.0], "voltage"), 0.1, [0.0]).end == "saturated"
    run = volts.run(OpenLoop(lambda time: [4.0], "voltage"), 0.1, [0.0])
    assert run.end == "done"
    assert run.voltage is not None
    assert run.voltage[-1, 0] == 4.0


def test_it_stops_when_enough_was_seen(robot):
    bench = Bench(MujocoPlant(robot, "plant"))
    run = bench.run(push(0.0), 5.0, [0.1], until=lambda reading: reading.time >= 0.05)
    assert run.end == "stopped"
    assert run.whole
    assert run.time[-1] == pytest.approx(0.05)


def test_a_run_that_an_error_breaks_is_kept(robot, tmp_path):
    def broken(time):
        if time > 0.1:
            raise KeyboardInterrupt
        return [0.0]

    bench = Bench(MujocoPlant(robot, "plant"), folder=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(OpenLoop(broken), 1.0, [0.1], label="cut")
    assert bench.runs[0].end == "interrupted"
    assert len(di.read_log(tmp_path / "001-cut.csv", robot)) > 90


def test_a_folder_with_runs_is_not_mixed_with_new_ones(robot, tmp_path):
    (tmp_path / "001-old.csv").write_text("t,q1\n")
    with pytest.raises(di.InputError, match="earlier experiment"):
        Bench(MujocoPlant(robot, "plant"), folder=tmp_path)


def test_runs_do_not_share_their_noise(robot):
    bench = Bench(MujocoPlant(robot, "plant", sensors=Sensors(position_noise=1e-3), seed=4))
    one, other = (bench.run(push(0.0), 0.1, [0.1]) for _ in range(2))
    assert np.abs(one.q - other.q).max() > 1e-4
    again = Bench(MujocoPlant(robot, "plant", sensors=Sensors(position_noise=1e-3), seed=4)).run(push(0.0), 0.1, [0.1])
    np.testing.assert_array_equal(one.q, again.q)
