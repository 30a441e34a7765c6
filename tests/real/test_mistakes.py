"""Mistakes made on purpose in logs of real robots, each kind once; skipped where the data is absent."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from benchmarks.mistake_data import DATA, REAL, dataset
from benchmarks.mistake_kinds import cases
from benchmarks.mistakes import checked, diagnose, written

import dynident as di

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
TX40 = {
    "all positions in degrees": "",
    "one position in degrees": "joint 2",
    "positions swapped": "joints 3 and 4",
    "torques swapped": "joints 1 and 2",
    "joints swapped": "joints 2 and 3",
    "order reversed": "",
    "torque flipped": "joint 5",
    "all torques flipped": "",
    "position flipped": "joint 3",
    "axis flipped": "joint 2",
    "torque in N·mm, current in mA": "",
    "motor torque for joint torque": "",
    "gravity upside down": "",
    "gravity sideways": "",
    "all torque 50 ms late": "",
    "one torque 40 ms late": "joint 4",
    "time in ms": "",
    "numbers missing": "",
    "rows out of order": "",
    "a second missing": "",
    "every fourth row repeated": "",
    "torque channel dead": "joint 1",
    "position stuck": "joint 6",
    "torque clipped": "joint 4",
    "torque in coarse steps": "joint 1",
    "position in coarse steps": "joint 6",
}
UR10E = {
    "gear ratio 1.5 times": "joint 2",
    "one torque doubled": "joint 3",
    "torque columns hold currents": "",
    "clock off by 2": "",
    "velocities in deg/s": "",
    "one log with a load": "",
    "torque flipped in one log": "joint 4",
}
EACH = [("tx40-motor", *one) for one in TX40.items()] + [("ur10e", *one) for one in UR10E.items()]
QUICK = [
    ("tx40-motor", "one position in degrees", "joint 2"),
    ("tx40-motor", "torque flipped", "joint 5"),
    ("tx40-motor", "gravity sideways", ""),
    ("tx40-motor", "one torque 40 ms late", "joint 4"),
    ("ur10e", "clock off by 2", ""),
    ("ur10e", "one log with a load", ""),
]


@cache
def known(name):
    """A dataset; of several logs the last two, which is quicker."""
    found = dataset(name)
    return None if found is None else replace(found, logs=found.logs[-2:])


@cache
def sound(name, folder):
    """The mistakes of a dataset by kind and place, and the diagnosis of its sound logs."""
    data = known(name)
    robot = data.robot(folder)
    made = {(case.kind, case.where): case for case in cases(data, robot)}
    return made, checked(robot, written(data.logs, folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sound")


def evaluated(name, kind, where, folder):
    """What becomes of a mistake."""
    made, clean = sound(name, folder)
    return diagnose(known(name), made[kind, where], clean)


@pytest.mark.parametrize("name", REAL)
def test_sound_logs_stop_nowhere(name, tmp_path):
    data = dataset(name)
    found = checked(data.robot(tmp_path), written(data.logs, tmp_path))
    assert found.of("stop") == ()
    assert not found.fix


@pytest.mark.parametrize(("name", "kind", "where"), QUICK, ids=[" ".join(one).strip() for one in QUICK])
def test_a_few_mistakes(name, kind, where, folder):
    one = evaluated(name, kind, where, folder)
    assert one.right, one.said


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind", "where"), EACH, ids=[" ".join(one).strip() for one in EACH])
def test_each_mistake(name, kind, where, folder):
    one = evaluated(name, kind, where, folder)
    assert one.right, one.said


def test_a_mistake_that_no_data_can_tell(folder):
    """An upright first joint has a mirror image."""
    one = evaluated("tx40-motor", "axis flipped", "joint 1", folder)
    assert (one.found, one.determinable) == (False, False)


@pytest.mark.full
def test_noise_that_the_bandwidth_keeps_out_needs_no_word(folder):
    """Positions with noise of 2 % of their range: the band is chosen below it, so that it biases nothing."""
    one = evaluated("tx40-motor", "noisy positions", "", folder)
    assert one.said == "nothing"
    data = known("tx40-motor")
    robot = data.robot(folder)
    made, _ = sound("tx40-motor", folder)
    noisy = made["noisy positions", ""].logs
    bands = [[di.observe(log, robot).band for log in logs] for logs in (noisy, data.logs)]
    assert max(bands[0]) < 0.5 * min(bands[1])
