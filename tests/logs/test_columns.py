"""What an overlay says of the columns of its robot's logs."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.robot.storage import robot_from_data, robot_to_data

HEADER = "stamp [ms],a,b,tau1,tau2\n"
ROWS = "".join(f"{10 * i},{i},{-i},{2 * i},{3 * i}\n" for i in range(5))


def robot(tmp_path, text: str) -> di.Robot:
    path = tmp_path / "overlay.yaml"
    path.write_text(f"base: pendulum-2\n{text}")
    return di.load_robot(path)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEADER + ROWS)
    return path


COLUMNS = {"stamp": "t", "a": "q1", "b": "q2"}


def test_a_channel_by_its_name(tmp_path, log):
    own = robot(tmp_path, "columns: {tau1: {column: tau1, scale: -1}, q1: {column: q1, unit: deg}}\n")
    read = di.read_log(log, own, columns=COLUMNS)
    np.testing.assert_array_equal(read.channels["tau1"], -2.0 * np.arange(5))
    np.testing.assert_allclose(read.channels["q1"], np.radians(np.arange(5)))
    np.testing.assert_allclose(read.time, 0.01 * np.arange(5))


def test_channels_change_places(tmp_path, log):
    own = robot(tmp_path, "columns: {q1: q2, q2: q1, tau1: tau2, tau2: tau1}\n")
    read = di.read_log(log, own, columns=COLUMNS)
    np.testing.assert_array_equal(read.channels["q2"], np.arange(5))
    np.testing.assert_array_equal(read.channels["tau2"], 2.0 * np.arange(5))


def test_a_header_stands_before_the_column_file(tmp_path, log):
    own = robot(tmp_path, "columns: {a: {column: q2, scale: 3}, b: q1, stamp: t}\n")
    read = di.read_log(log, own, columns=COLUMNS)
    np.testing.assert_array_equal(read.channels["q2"], 3.0 * np.arange(5))


def test_they_travel_with_the_robot(tmp_path):
    own = robot(tmp_path, "columns: {q1: q2, q2: {column: q1, unit: deg, scale: 2}}\n")
    back = robot_from_data(robot_to_data(own), "record")
    assert {name: dict(rule) for name, rule in back.columns.items()} == {
        "q1": {"column": "q2"},
        "q2": {"column": "q1", "unit": "deg", "scale": 2.0},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("columns: {q1: {unit: deg}}", "needs the key 'column'"),
        ("columns: {q1: {column: q1, scale: 0}}", "is 0"),
        ("columns: {q1: {column: q1, size: 2}}", "size"),
        ("columns: [q1]", "columns"),
        ("locked: {q9: 0.1}", "no joint 'q9'"),
        ("locked: {q1: fast}", "locked"),
    ],
)
def test_what_cannot_be_meant(tmp_path, text, words):
    with pytest.raises(di.RobotFileError, match=words):
        robot(tmp_path, text + "\n")


def test_no_such_channel(tmp_path, log):
    own = robot(tmp_path, "columns: {q1: velocity1}\n")
    with pytest.raises(di.LogError, match="'velocity1' is not a channel"):
        di.read_log(log, own, columns=COLUMNS)


def test_locked_in_the_overlay(tmp_path):
    assert len(robot(tmp_path, "locked: {q2: 0.3}\n").joint_names) == 1
