"""Friction of predictions from real logs takes energy, up to twice the velocities of the training."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.estimate.friction_parts import friction_curve
from dynident.signals.repeats import motion_states

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
LOGS = {"schunk_lwa3": ("robot.yaml", "log_train.csv.gz"), "kuka_lwr4": ("robot.urdf", "log3_part_a.csv.gz")}


@pytest.fixture(scope="module", params=LOGS)
def fit(request):
    """Of the first ten seconds: the least that friction is determined by."""
    folder, (robot_file, log_file) = DATA / request.param, LOGS[request.param]
    if not folder.exists():
        pytest.skip(f"real data not found at {DATA}; set DYNIDENT_DATA")
    robot = di.load_robot(folder / robot_file)
    log = di.read_log(folder / log_file, robot)
    short = log.samples(np.flatnonzero(log.time - log.time[0] < 10.0))
    short = di.Log("short", "short", short.time, short.channels)
    return di.identify(robot, short, check="off"), motion_states([di.observe(short, robot)]).fastest


def test_at_every_velocity_up_to_twice_the_trained_ones(fit):
    found, fastest = fit
    n = len(found.robot.joint_names)
    for joint in range(n):
        velocities = np.geomspace(0.01, 1.0, 60) * 2.0 * fastest[joint]
        velocities = np.concatenate([-velocities, velocities])
        for load in (np.zeros(n), np.full(n, 50.0)):
            torque = friction_curve(found.model, joint, velocities, np.zeros(n), load)
            assert np.ptp(torque) > 0.0
            assert (torque * np.sign(velocities)).min() > -1e-3 * np.abs(torque).max()


@pytest.mark.full
def test_springs_of_friction_give_back_no_more_than_they_took(fit):
    found, _ = fit
    springs = [i for i, name in enumerate(found.predictive.names) if name.startswith("stop")]
    assert springs
    assert found.predictive.values[springs].min() > -1e-9
