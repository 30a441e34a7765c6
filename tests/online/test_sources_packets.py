"""Packets: three forms, the same sample; whatever else comes is counted and changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.logs.log import Log, joint_positions, row_torques
from dynident.online.sources.packets import LONGEST, PacketError, PacketReader
from dynident.online.state import Counters

ROBOT = di.load_robot("pendulum-2")
NAMES = ROBOT.joint_names


def reader(robot=ROBOT, columns=None) -> PacketReader:
    return PacketReader(robot, columns, "sender", Counters())


def sample(message: object, robot=ROBOT, columns=None):
    return reader(robot, columns).sample(message if isinstance(message, bytes) else json.dumps(message).encode())


def test_the_three_forms_say_the_same():
    arrays = {"t": 1.5, "q": [0.1, 0.2], "tau": [3.0, 4.0], "dq": [5.0, 6.0]}
    keyed = {"t": 1.5, "joints": {NAMES[k]: {"tau": 3.0 + k, "q": (k + 1) / 10, "dq": 5.0 + k} for k in (1, 0)}}
    words = {
        "t": 1.5,
        "joints": {NAMES[k]: {"position": (k + 1) / 10, "velocity": 5.0 + k, "effort": 3.0 + k} for k in (0, 1)},
    }
    state = {
        "header": {"stamp": {"sec": 1, "nanosec": 500_000_000}, "frame_id": ""},
        "name": ["gripper", NAMES[1], NAMES[0]],
        "position": [9.0, 0.2, 0.1],
        "velocity": [9.0, 6.0, 5.0],
        "effort": [9.0, 4.0, 3.0],
    }
    for message in (arrays, keyed, words, state):
        time, number, row = sample(message)
        assert time == 1.5
        assert number == -1
        np.testing.assert_array_equal(row, [0.1, 0.2, 3.0, 4.0, 5.0, 6.0])


def test_motor_side_packets_are_what_a_log_makes_of_them():
    robot = di.load_robot("tx40")
    rng = np.random.default_rng(1)
    n = len(robot.joint_names)
    qm, taum = rng.standard_normal((2, n))
    channels = {f"qm{k + 1}": qm[k : k + 1] for k in range(n)} | {f"taum{k + 1}": taum[k : k + 1] for k in range(n)}
    log = Log("log", "", np.zeros(1), channels)
    _, _, row = sample({"t": 0, "qm": qm.tolist(), "taum": taum.tolist()}, robot)
    np.testing.assert_allclose(row[:n], joint_positions(log, robot)[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(row[n:], row_torques(log, robot)[0], rtol=1e-13)


def test_units_and_gains_of_the_robots_own_file_count():
    robot = replace(
        ROBOT, columns={"q1": {"column": "q1", "unit": "deg"}}, drive=replace(ROBOT.drive, gains=np.array([2.0, 3.0]))
    )
    _, _, row = sample({"t": 0, "q": [180.0, 1.0], "i": [1.0, 1.0]}, robot)
    np.testing.assert_allclose(row, [np.pi, 1.0, 2.0, 3.0])


def test_a_column_file_gives_foreign_names_a_meaning():
    columns = {"a.angle": {"column": "q1", "unit": "deg"}, "b.angle": "q2", "a.torque": "tau1", "b.torque": "tau2"}
    joints = {"a": {"angle": 90.0, "torque": 1.0}, "b": {"angle": 0.5, "torque": 2.0}}
    _, _, row = sample({"t": 0, "joints": joints}, columns=columns)
    np.testing.assert_allclose(row, [np.pi / 2, 0.5, 1.0, 2.0])


def test_locked_joints_may_be_given_or_left_out():
    robot = ROBOT.lock(**{ROBOT.position_names[0]: 0.3})
    for q, tau in (([0.3, 0.2], [3.0, 4.0]), ([0.2], [4.0])):
        np.testing.assert_array_equal(sample({"t": 0, "q": q, "tau": tau}, robot)[2], [0.2, 4.0])


GOOD = {"t": 1.0, "q": [0.1, 0.2], "tau": [3.0, 4.0]}
BAD = {
    "not JSON": (b"\x00\xff", "is not JSON"),
    "half of it": (json.dumps(GOOD).encode()[:-5], "is not JSON"),
    "a list": (b"[1, 2]", "is not a JSON object"),
    "nested": (b'{"t":' + b"[" * 10_000, "nested beyond reason"),
    "long": (b'{"t": 1, "x": "' + b"a" * LONGEST + b'"}', "longer than"),
    "no time": (GOOD | {"t": None}, "t is not a number"),
    "time missing": ({"q": [0.1, 0.2], "tau": [3.0, 4.0]}, "has no time"),
    "nan": (b'{"t": 1.0, "q": [NaN, 0.2], "tau": [3.0, 4.0]}', "NaN is not a number"),
    "infinity": (b'{"t": 1.0, "q": [1e999, 0.2], "tau": [3.0, 4.0]}', "not finite"),
    "infinite time": (b'{"t": 1e999, "q": [0.1, 0.2], "tau": [3.0, 4.0]}', "t is not a number"),
    "huge": (GOOD | {"q": [1e300, 0.2]}, "beyond reason"),
    "huge integer": (GOOD | {"tau": [10**400, 0.2]}, "beyond reason"),
    "huge integer as time": (GOOD | {"t": 10**400}, "t is not a number"),
    "nanoseconds": (GOOD | {"t": 1_700_000_000_000_000_000}, "t is in seconds"),
    "short": (GOOD | {"q": [0.1]}, "has 1 values of q"),
    "long list": (GOOD | {"tau": [1.0] * 3}, "has 3 values of tau"),
    "words": (GOOD | {"q": ["a", 0.2]}, "has str where a number belongs"),
    "truth": (GOOD | {"q": [True, 0.2]}, "has bool"),
    "nulls": (GOOD | {"q": [None, 0.2]}, "has NoneType"),
    "objects": (GOOD | {"q": [{}, 0.2]}, "has dict"),
    "no list": (GOOD | {"q": 0.1}, "q is not a list"),
    "no torque": ({"t": 1.0, "q": [0.1, 0.2]}, "has no column tau1, tau2"),
    "no names": ({"t": 1.0, "name": [1, 2], "position": [0.1, 0.2]}, "list of words"),
    "name twice": ({"t": 1.0, "name": [NAMES[0]] * 2, "position": [0.1, 0.2], "effort": [1.0, 2.0]}, "appears twice"),
    "lengths": ({"t": 1.0, "name": list(NAMES), "position": [0.1]}, "2 names but 1 values"),
    "joint missing": ({"t": 1.0, "joints": {NAMES[0]: {"q": 0.1, "tau": 1.0}}}, "has no column q2"),
    "joints no object": ({"t": 1.0, "joints": [1.0]}, "joints is not an object"),
    "header no object": ({"header": 1.0, "q": [0.1, 0.2]}, "header is not an object"),
    "seq": (GOOD | {"seq": "1"}, "seq is not a whole number"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_sample_is_reported_with_its_reason(name):
    message, words = BAD[name]
    with pytest.raises(PacketError, match=words):
        sample(message)


def test_malformed_ones_are_counted_and_the_others_kept():
    own = reader()
    bad = [message if isinstance(message, bytes) else json.dumps(message).encode() for message, _ in BAD.values()]
    good = [json.dumps(GOOD | {"t": float(k), "seq": k}).encode() for k in range(len(bad))]
    mixed = [(0.0, data) for pair in zip(bad, good, strict=True) for data in pair]
    block = own.block(mixed)
    np.testing.assert_array_equal(block.time, np.arange(len(good)))
    np.testing.assert_array_equal(block.sequence, np.arange(len(good)))
    counters = own._tally
    assert (counters.received, counters.malformed) == (len(mixed), len(bad))
    assert counters.problem
    assert own.block([(0.0, bad[0])]) is None


def test_ever_new_layouts_do_not_fill_the_memory():
    own = reader()
    for k in range(100):
        own.sample(
            json.dumps({**GOOD, "joints": {**{n: {"q": 0.1, "tau": 1.0} for n in NAMES}, f"x{k}": {"q": 1}}}).encode()
        )
    assert len(own._layouts) <= 16
