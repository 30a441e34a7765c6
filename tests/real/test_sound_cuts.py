"""Short runs of real arms are sound: nothing is proposed, and only too little motion refuses them."""

from __future__ import annotations

import pytest
from benchmarks.mistake_data import DATA, REAL, dataset
from benchmarks.mistake_doubts import wrong_claims

import dynident as di
from dynident.diagnostics import check_logs

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
MASSLESS = {"mtm": "dvrk_mtm", "schunk": "schunk_lwa3"}
CUTS = [
    ("panda", 1, 0.0, 4.0),  # looked like a torque of another scale
    ("lwr4", 0, 4.0, 4.0),  # the same
    ("lwr4", 0, 0.0, 8.0),  # looked like degrees
    ("lwr4", 0, 3.0, 16.0),  # looked like swapped torques
    ("lwr4", 1, 5.0, 8.0),  # looked like swapped joints
    ("schunk", 0, 40.0, 4.0),  # the same
    ("mtm", 0, 4.0, 4.0),  # one joint hardly follows
]


def sound(name):
    """Robot and logs of a dataset."""
    if name in REAL:
        data = dataset(name)
        return di.load_robot(data.base), data.logs
    folder = DATA / MASSLESS[name]
    return di.load_robot(folder / "robot.yaml"), [di.read_log(next(folder.glob("log*.csv.gz")))]


@pytest.mark.parametrize(("name", "number", "start", "seconds"), CUTS)
def test_a_short_run(name, number, start, seconds):
    robot, logs = sound(name)
    first = logs[number].time[0] + start
    found = check_logs(robot, logs[number].window(first, first + seconds))
    assert wrong_claims(found) == []
    assert {one.name for one in found.of("stop")} <= {"equations", "rest"}
