"""Friction of the UR10e's joints from logs in which each moves alone; skipped where the data is absent.

The joints sweep: about 0.1 Hz, so that every velocity up to the largest is passed again and again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dynident as di
from dynident.experiments.protocol import ExperimentError

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    path = tmp_path_factory.mktemp("ur10e") / "ur10e.yaml"
    gains = "drive_gains: [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]"
    path.write_text(f"base: {DATA / 'ur10e' / 'robot.urdf'}\n{gains}\n")
    robot = di.load_robot(path)
    return di.identify(robot, di.read_log(DATA / "ur10e" / "exc_30s_12h.csv.gz", robot), friction="basic")


def logs(fit, *numbers):
    return [di.read_log(DATA / "ur10e" / f"single_joint_{n}.csv.gz", fit.robot) for n in numbers]


def test_friction_of_single_joints_is_near_that_of_the_fit(fit):
    found = di.experiments.velocity_friction_from_logs(fit.robot, logs(fit, 1, 2, 3, 4, 5, 6), fit=fit)
    assert len(found.fits) == 6
    for joint in range(1, 7):
        # Other sessions: friction of a cold and a warm gear differs by as much.
        assert found[f"Fc{joint}"].value == pytest.approx(fit[f"Fc{joint}"], rel=0.15)
        assert found[f"Fv{joint}"].value == pytest.approx(fit[f"Fv{joint}"], rel=0.3)
        assert found[f"Fc{joint}"].std < 0.05 * found[f"Fc{joint}"].value
    assert any("shoulder_pan_joint: the model misses" in one for one in found.warnings)


def test_without_a_fit_sweeps_are_refused(fit):
    with pytest.raises(ExperimentError, match=r"does not hold its velocities.*--fit"):
        di.experiments.velocity_friction_from_logs(fit.robot, logs(fit, 4))
