"""A machine whose own code fails: reported as such, stopped, and what it recorded is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench
from dynident.experiments.protocol import ExperimentError
from dynident.plant import MujocoPlant, OpenLoop

LATE = 0.05  # [s] when it fails
RESTING = OpenLoop(lambda time: [0.0])


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-1")


class Failing(MujocoPlant):
    """A machine that fails in the calls that are named."""

    fails: frozenset[str] = frozenset()
    stops = 0

    def fail(self, name):
        if name in self.fails:
            raise ConnectionError("the bus\nis silent")

    def reset(self, q, dq=None):
        self.fail("reset")
        super().reset(q, dq)

    def step(self):
        if self.time > LATE:
            self.fail("step")
        super().step()

    def stop(self):
        self.stops += 1
        self.fail("stop")
        super().stop()


def failing(robot, *calls):
    plant = Failing(robot, "plant")
    plant.fails = frozenset(calls)
    return plant


@pytest.mark.parametrize("call", ["step", "stop"])
def test_a_run_that_the_machine_breaks_is_kept_and_reported(robot, tmp_path, call):
    plant = failing(robot, call)
    bench = Bench(plant, folder=tmp_path)
    with pytest.raises(ExperimentError, match=f"cut: the machine failed in {call}: ConnectionError: the bus is silent"):
        bench.run(RESTING, 0.1, [0.1], label="cut")
    assert plant.stops == 1
    assert len(di.read_log(tmp_path / "001-cut.csv", robot)) > LATE / plant.sample_time


def test_the_line_that_failed_is_named(robot):
    with pytest.raises(ExperimentError, match=r"\(test_machine.py, line \d+\)"):
        Bench(failing(robot, "step")).run(RESTING, 0.1, [0.1])


def test_a_start_that_is_not_reached_stops_the_machine(robot):
    plant = failing(robot, "reset")
    with pytest.raises(ExperimentError, match="the machine failed in reset"):
        Bench(plant).run(RESTING, 0.1, [0.1])
    assert plant.stops == 1


def test_one_that_does_not_stop_does_not_hide_why_it_had_to(robot):
    with pytest.raises(ExperimentError, match=r"failed in step: .*; the machine failed in stop: "):
        Bench(failing(robot, "step", "stop")).run(RESTING, 0.1, [0.1])


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("q", [np.nan], "reads q of joint joint1 as nan at t = 0.05"),
        ("tau", [np.inf], "reads tau of joint joint1 as inf"),
        ("dq", 0.0, r"reads dq of shape \(\); expected \(1,\)"),
    ],
)
def test_a_reading_that_is_no_state_ends_the_run(robot, monkeypatch, kind, value, message):
    plant = MujocoPlant(robot, "plant")
    read = plant.read
    bad = {kind: np.array(value)}
    monkeypatch.setattr(plant, "read", lambda: replace(read(), **bad) if plant.time > LATE - 1e-9 else read())
    bench = Bench(plant)
    with pytest.raises(ExperimentError, match=message):
        bench.run(RESTING, 0.1, [0.1])
    assert bench.runs[0].end == "interrupted"
    assert np.isfinite(bench.runs[0].q).all()


class Seventh(MujocoPlant):
    """A machine that names its axes in its own way."""

    def read(self):
        self.saturated = frozenset({"axis 7"})
        return super().read()


def test_a_limited_joint_that_the_robot_has_not_is_named_as_it_is(robot):
    run = Bench(Seventh(robot, "plant")).run(RESTING, 0.1, [0.1])
    assert (run.end, run.joint) == ("saturated", "axis 7")
