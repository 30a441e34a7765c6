"""The main job on logs of real robots, defaults only; skipped where the data is absent.

Errors are evaluated on motion that was not used. The bounds are a little above what was measured; they are there to
catch a change for the worse.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dynident as di

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
UR10E = ("exc_30s_12h", "exc_40s_12h", "exc_20s_unloaded_0131", "exc_50s_14h_unloaded")


def overlay(tmp_path: Path, folder: str, text: str) -> di.Robot:
    path = tmp_path / f"{folder}.yaml"
    path.write_text(f"base: {DATA / folder / 'robot.urdf'}\n{text}")
    return di.load_robot(path)


def held_out(robot, train, test, band: float) -> float:
    """Relative error of a fit on a log it has not seen, in a fixed band."""
    found = di.validate(di.identify(robot, train), test, band=band)
    assert found.seen == ()
    return found.relative_error


@pytest.mark.parametrize("left_out", UR10E)
def test_ur10e_leave_one_log_out(tmp_path, left_out):
    robot = overlay(tmp_path, "ur10e", "drive_gains: [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]\n")
    logs = {name: di.read_log(DATA / "ur10e" / f"{name}.csv.gz", robot) for name in UR10E}
    train = [log for name, log in logs.items() if name != left_out]
    assert held_out(robot, train, logs[left_out], 5.0) < 0.045


def test_panda_repeats_itself():
    robot = di.load_robot(DATA / "franka_panda" / "robot.urdf")
    a, b = (di.read_log(DATA / "franka_panda" / f"log_{x}.csv.gz", robot) for x in "ab")
    assert held_out(robot, a, b, 5.0) < 0.012
    assert held_out(robot, b, a, 5.0) < 0.02


def test_lwr4_part_of_a_motion_left_out():
    robot = di.load_robot(DATA / "kuka_lwr4" / "robot.urdf")
    log2 = di.read_log(DATA / "kuka_lwr4" / "log2.csv.gz", robot)
    first, last = (
        di.read_log(DATA / "kuka_lwr4" / "log3_part_a.csv.gz", robot, **window)
        for window in ({"stop": 9.0}, {"start": 9.0})
    )
    assert held_out(robot, [log2, first], last, 6.0) < 0.025


@pytest.mark.parametrize(("friction", "tolerance"), [("basic", 1e-6), ("auto", 1e-3)])
def test_tx40_motor_and_joint_side_give_the_same_parameters(friction, tolerance):
    """The joint file has fewer digits; friction terms that overlap make more of the difference than others."""
    robot = di.load_robot("tx40")
    fits = [
        di.identify(robot, di.read_log(DATA / "staubli_tx40" / f"log_{side}_a.csv.gz", robot), friction=friction)
        for side in ("motor", "joint")
    ]
    scale = np.abs(fits[0].beta).max()
    np.testing.assert_allclose(fits[0].beta, fits[1].beta, rtol=tolerance, atol=min(tolerance, 3e-5) * scale)
    assert fits[0].rank == fits[0].base.n
    assert fits[0].train.relative < 0.08


def test_tx40_end_of_the_log_left_out():
    robot = di.load_robot("tx40")
    path = DATA / "staubli_tx40" / "log_motor_a.csv.gz"
    first, last = (di.read_log(path, robot, **window) for window in ({"stop": 3.4}, {"start": 3.4}))
    assert held_out(robot, first, last, 50.0) < 0.085


def test_tiago_is_weak_data_and_is_called_so(tmp_path):
    gains = "drive_gains: [1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]\n"
    robot = overlay(tmp_path, "tiago_arm", gains)
    log = di.read_log(DATA / "tiago_arm" / "log_a.csv.gz", robot)
    fit = di.identify(robot, log)
    assert np.isfinite(fit.beta).all()
    assert np.isfinite(fit.predict(log)).all()
    weak = np.sum(fit.relative_std > 0.5)
    assert weak > 0.3 * fit.base.n
    assert fit.warnings
