"""The load of the UR10e development logs, 2.805 kg; skipped where the data is absent."""

from __future__ import annotations

import pytest

import dynident as di
from tests.real.test_main_job import DATA, overlay

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
MASS = 2.805  # [kg], as stated by those who made the logs


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    robot = overlay(
        tmp_path_factory.mktemp("ur10e"), "ur10e", "drive_gains: [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]\n"
    )
    names = ("exc_50s_14h_unloaded", "exc_50s_14h_loaded", "exc_20s_unloaded_0131", "exc_20s_loaded_0131")
    return {name: di.read_log(DATA / "ur10e" / f"{name}.csv.gz", robot) for name in names}, robot


@pytest.fixture(scope="module")
def fit(logs):
    return di.identify(logs[1], logs[0]["exc_50s_14h_unloaded"])


@pytest.mark.parametrize("pair", ["exc_50s_14h_{}", "exc_20s_{}_0131"])
@pytest.mark.parametrize("joint", [False, True], ids=["loaded", "joint"])
def test_the_mass_within_two_percent(logs, fit, pair, joint):
    unloaded = [logs[0][pair.format("unloaded")]] if joint else []
    found = di.identify_payload(fit, logs[0][pair.format("loaded")], unloaded=unloaded)
    assert found["mass"].value == pytest.approx(MASS, rel=0.02)
    assert 0.005 < found["mass"].std < 0.03
    # A body a quarter of a meter from the wrist, whose own inertia drowns in what its mass does there.
    assert found.withheld == ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
    assert found["cy"].value == pytest.approx(0.172, abs=0.005)  # in tool0, 0.116 m before the frame of link 6
    assert found["cz"].value == pytest.approx(0.051, abs=0.005)
