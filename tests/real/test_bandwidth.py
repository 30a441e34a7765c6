"""The band of real logs that were polled: halves of one log, each evaluated by the other; skipped without the data."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.signals import observe, survey_log
from tests.real.test_main_job import DATA

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
# Robot and log, band that the motion allows [Hz], band in which errors are evaluated [Hz], error of each half.
POLLED = {
    "dvrk_mtm": ("robot.yaml", "log_one", (2.5, 3.6), 3.6, (0.092, 0.092)),
    "schunk_lwa3": ("robot.yaml", "log_train", (1.4, 3.2), 3.0, (0.116, 0.111)),
}


@pytest.mark.parametrize("name", POLLED)
def test_polled_rows_do_not_pass_for_motion(name):
    """Before, 45 Hz and errors of 84 and 46 %; 22.5 Hz and 20 and 17 %."""
    file, log, bands, common, bounds = POLLED[name]
    if not (DATA / name).exists():
        pytest.skip(f"no data at {DATA / name}")
    robot = di.load_robot(DATA / name / file)
    whole = di.read_log(DATA / name / f"{log}.csv.gz", robot)
    middle = 0.5 * (whole.time[0] + whole.time[-1])
    halves = []
    for i, own in enumerate((whole.time < middle, whole.time >= middle)):
        part = whole.samples(np.flatnonzero(own))
        halves.append(di.Log(f"half {i}", str(i), part.time, part.channels))
    for first, second, bound in ((0, 1, bounds[0]), (1, 0, bounds[1])):
        fit = di.identify(robot, halves[first], friction="basic", check="off")
        assert bands[0] < fit.band < bands[1]
        assert fit.usefulness.useful
        assert di.validate(fit, halves[second], band=common).relative_error < bound


def test_stalls_of_the_polled_arm_are_found_and_those_of_encoders_left_alone():
    """Positions of the LWA3 stall for up to 0.11 s; the TX40 repeats readings at 5 kHz because it moves slowly."""
    stalled = {}
    for name, robot, log in (("schunk_lwa3", "robot.yaml", "log_train"), ("staubli_tx40", "robot.urdf", "log_joint_a")):
        if not (DATA / name).exists():
            pytest.skip(f"no data at {DATA / name}")
        arm = di.load_robot(DATA / name / robot)
        stalled[name] = survey_log(di.read_log(DATA / name / f"{log}.csv.gz", arm), arm, channels=False).stalled
    assert sum(stalled["schunk_lwa3"].values()) > 200
    assert not stalled["staubli_tx40"]


def test_too_much_band_is_called_useless():
    if not (DATA / "dvrk_mtm").exists():
        pytest.skip(f"no data at {DATA / 'dvrk_mtm'}")
    robot = di.load_robot(DATA / "dvrk_mtm" / "robot.yaml")
    log = di.read_log(DATA / "dvrk_mtm" / "log_one.csv.gz", robot)
    fit = di.identify(robot, log, friction="basic", check="off", band=45.0, velocity_source="position")
    assert not fit.usefulness.useful
    assert "band 45 Hz (as asked for)" in fit.usefulness.reason


@pytest.mark.parametrize("log", [f"single_joint_{i}" for i in (1, 4)])
def test_joints_that_are_held_do_not_vote(log):
    """One joint of the UR10e moves at constant velocities; five are held."""
    robot = di.load_robot(DATA / "ur10e" / "robot.urdf")
    found = observe(di.read_log(DATA / "ur10e" / f"{log}.csv.gz", robot), robot)
    assert found.band < 10.0
