from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident import limits
from dynident.logs import bag
from tests.logs.test_bag import START, cdr, write_mcap

STEP = 10_000_000  # [ns]
N = 300


def signal(stamps, joint):
    """Position of a joint, smooth enough to be interpolated to 1e-3."""
    return np.sin(2 * np.pi * 0.5 * (np.asarray(stamps) - START) / 1e9 + joint)


def messages_of(topic, stamps, joints, header=True):
    """Messages about joints (numbers) at some stamps."""
    for stamp in stamps:
        q = [signal(stamp, joint) for joint in joints]
        names = [f"joint{joint}" for joint in joints]
        yield topic, int(stamp), cdr(int(stamp) if header else 0, names, q, [], 2.0 * np.array(q))


def read(path, messages, **options):
    """The log of messages in the order of their stamps, and what was said about it."""
    write_mcap(path, sorted(messages, key=lambda message: message[1]))
    with pytest.warns(di.logs.LogWarning) as said:
        log = di.read_log(path, di.load_robot("pendulum-3"), **options)  # joints 1 to 3
    assert log.warnings == tuple(str(one.message) for one in said)
    return log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.mcap"


REGULAR = START + STEP * np.arange(N)


@pytest.mark.parametrize("topics", [("/left", "/right"), ("/joint_states", "/joint_states")])
def test_joints_of_several_topics_or_messages_are_merged_by_name(path, topics):
    log = read(
        path,
        [
            *messages_of(topics[0], REGULAR, (2, 1)),
            *messages_of(topics[1], REGULAR, (3,)),
            *messages_of("/x", REGULAR, (9,)),
        ],
    )
    q = log.array("q", di.load_robot("pendulum-3"))
    # Stamps that agree are not interpolated.
    np.testing.assert_array_equal(q, signal(REGULAR[:, None], np.array([1, 2, 3])))
    np.testing.assert_array_equal(log.channels["tau3"], 2.0 * q[:, 2])
    np.testing.assert_array_equal(log.time, np.arange(N) * STEP / 1e9)
    merged = (
        f"merged joint2, joint1 (topic {topics[0]}) with joint3 (topic {topics[1]}) at the stamps of joint2 (100 Hz)"
    )
    assert log.warnings == (f"{path}: {merged}",)
    assert log.unused == ("joint9 (topic /x)",)


@pytest.mark.parametrize("header", [True, False])
def test_stamps_between_messages_are_interpolated(path, header):
    rng = np.random.default_rng(0)
    other = REGULAR + rng.integers(-STEP // 3, STEP // 3, N)
    log = read(path, [*messages_of("/left", REGULAR, (1, 2)), *messages_of("/right", other, (3,), header=header)])
    stamps = REGULAR[(other[0] <= REGULAR) & (other[-1] >= REGULAR)]
    assert 0 < N - len(stamps) <= 2  # at the ends
    np.testing.assert_array_equal(log.channels["q1"], signal(stamps, 1))
    np.testing.assert_allclose(log.channels["q3"], signal(stamps, 3), atol=2e-3)
    nearest = np.abs(other[:, None] - stamps).argmin(0)
    held = signal(other[nearest], 3)  # what interpolation must beat
    off = np.sqrt(np.mean((log.channels["q3"] - signal(stamps, 3)) ** 2))
    assert off < 0.1 * np.sqrt(np.mean((held - signal(stamps, 3)) ** 2))


def test_the_slower_publisher_gives_the_stamps(path):
    slow = REGULAR[3::7] + STEP // 4
    log = read(path, [*messages_of("/arm", REGULAR, (1, 2)), *messages_of("/wrist", slow, (3,))])
    assert "at the stamps of joint3 (14.29 Hz)" in log.warnings[0]
    np.testing.assert_array_equal(log.channels["q3"], signal(slow, 3)[: len(log)])
    np.testing.assert_allclose(log.channels["q1"], signal(slow, 1)[: len(log)], atol=2e-3)
    assert len(slow) - len(log) <= 1


def test_stamps_without_a_message_of_the_others_are_left_out(path):
    gap = np.r_[REGULAR[:100], REGULAR[101:150], REGULAR[200:]]  # one message lost, then fifty
    log = read(path, [*messages_of("/left", REGULAR, (1, 2)), *messages_of("/right", gap, (3,))])
    assert "; 50 of its 300 stamps, without a message of the others, are left out" in log.warnings[0]
    assert len(log) == 250
    assert np.isclose(np.diff(log.time).max(), 0.51)
    np.testing.assert_allclose(log.channels["q3"][100], signal(REGULAR[100], 3), atol=1e-3)


def test_names_of_a_column_file_are_merged_too(path):
    messages = [
        *messages_of("/left", REGULAR, (1, 2)),
        *messages_of("/right", REGULAR, (7,)),
        *messages_of("/busy", REGULAR[::3], (8,)),
    ]
    log = read(path, messages, columns={"joint7.position": "q3", "joint7.effort": "tau3"})
    np.testing.assert_array_equal(log.channels["q3"], signal(REGULAR, 7))


def test_joints_that_cannot_be_merged(path):
    robot = di.load_robot("pendulum-3")
    write_mcap(path, [*messages_of("/left", REGULAR, (1, 2)), *messages_of("/right", REGULAR + N * STEP, (3,))])
    words = r"joint1, joint2 \(topic /left\) and joint3 \(topic /right\) were not recorded at the same time"
    with pytest.raises(di.LogError, match=words):
        di.read_log(path, robot)
    write_mcap(path, [*messages_of("/left", REGULAR, (1, 2)), *messages_of("/right", REGULAR[::-1], (3,))])
    with pytest.raises(di.LogError, match=r"joint3 \(topic /right\) runs backwards at its message 2"):
        di.read_log(path, robot)


def test_a_large_bag_is_merged_from_the_file(path, monkeypatch):
    monkeypatch.setattr(bag, "KEPT_BAG", 1000)
    log = read(path, [*messages_of("/left", REGULAR, (1, 2)), *messages_of("/right", REGULAR, (3,))])
    np.testing.assert_array_equal(log.channels["q3"], signal(REGULAR, 3))
    monkeypatch.setattr(limits, "LIMITS", replace(limits.LIMITS, memory_bytes=5000))
    with pytest.raises(di.LogError, match=r"unpacks to .* kB or more"):
        di.read_log(path, di.load_robot("pendulum-3"))
