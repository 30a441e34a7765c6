from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import InputError
from dynident.logs.message_types import Topic, decoder_of
from dynident.logs.publishers import QUANTITIES, MessageSorter, concatenate_states
from tests.logs.test_bag import START, cdr

layout_of = decoder_of(Topic("/s", "sensor_msgs/msg/JointState", "cdr"), chosen=False, command=False)


def stacked(messages):
    """Messages below each other, filled up to the longest."""
    given = list(messages)
    longest = max(map(len, given))
    return np.array([list(data.ljust(longest, b"\0")) for data in given], dtype=np.uint8)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("names", [("a",), ("shoulder", "elbow", "wrist_3"), ("é", "bb", "ccc", "dddd")])
@pytest.mark.parametrize("absent", [(), (1,), (0, 2)])
def test_many_messages_are_decoded_as_each_was_written(order, names, absent):
    rng = np.random.default_rng(3)
    printed = [rng.normal(size=(9, 0 if i in absent else len(names))) for i in range(3)]
    stamps = [START + 999_999_999 + 7 * k for k in range(9)]
    rows = stacked(cdr(s, names, *(own[k] for own in printed), order=order) for k, s in enumerate(stamps))
    layout = layout_of(rows[0].tobytes())
    assert layout.names == names
    assert layout.alike(rows).all()
    np.testing.assert_array_equal(layout.stamps(rows), stamps)
    for i, (own, expected) in enumerate(zip(layout.columns(rows)[:3], printed, strict=True)):
        assert own is None if i in absent else np.array_equal(own, expected)


def test_what_makes_a_layout_another():
    rows = stacked(
        [
            cdr(START, ["aa", "bb"], [1, 2], [], [3, 4]),
            cdr(START + 5, ["aa", "bb"], [5, 6], [], [7, 8]),
            cdr(START, ["bb", "aa"], [1, 2], [], [3, 4]),
            cdr(START, ["aa", "bb"], [1, 2], [3, 4], []),
            cdr(START, ["aa", "bb"], [1, 2], [], [3, 4], order=">"),
        ]
    )
    assert layout_of(rows[0].tobytes()).alike(rows).tolist() == [True, True, False, False, False]


def test_publishers_keep_the_order_of_messages_whatever_their_layouts():
    rng = np.random.default_rng(1)
    names = ["a", "bb", "ccc"]
    q = rng.normal(size=(60, 3))
    messages = []
    for k in range(60):  # more layouts than are remembered: orders of joints, and lengths of the arrays
        turn = rng.permutation(3)
        extra = [q[k, turn]] if k % 3 else [[]]
        data = cdr(START + k, [names[i] for i in turn], q[k, turn], *extra, [], order="<>"[k % 2])
        messages.append((f"/{k % 2}", START + k, data))
    sorter = MessageSorter(lambda topic: layout_of)
    fed = [sorter.feed(messages[:7]), sorter.feed(messages[7:])]
    assert [one.topic for one in sorter.found.values()] == ["/0", "/1"]
    for which, (key, publisher) in enumerate(sorter.found.items()):
        block = concatenate_states([part[key] for part in fed])
        order = [names.index(name) for name in publisher.names]
        np.testing.assert_array_equal(block.stamps[0], START + np.arange(which, 60, 2))
        np.testing.assert_array_equal(block.values[0], q[which::2, order])
        velocity = q[which::2, order].copy()
        velocity[np.arange(which, 60, 2) % 3 == 0] = np.nan
        np.testing.assert_array_equal(block.values[1], velocity)
        assert publisher.count == 30
        assert publisher.has_any.all(axis=1).tolist() == [True, True, *[False] * (len(QUANTITIES) - 2)]
        assert not publisher.has_any[2:].any()


def test_the_first_fault_is_reported_and_the_topic_given_up():
    good = cdr(START, ["a"], [1.0], [], [])
    twice, short = cdr(START, ["a", "a"], [1, 2], [], []), cdr(START, ["a", "b"], [1.0], [], [])
    for messages, words in (
        ((good, short, twice, short), "message 5 of topic /s has 2 names but 1 values of position"),
        ((good, twice, short), "message 5 of topic /s names a joint twice: a, a"),
    ):
        sorter = MessageSorter(lambda topic: layout_of)
        sorter.feed([("/s", 1, good)] * 3)
        fed = sorter.feed([(topic, 1, data) for data in messages for topic in ("/s", "/other")])
        assert sorter.faults["/s"] == words
        assert {topic for topic, _ in fed} == set()  # both topics have the fault
        assert not sorter.feed([("/s", 1, good)])
    with pytest.raises(InputError, match="is not plain CDR"):
        layout_of(b"\x00\x07" + good[2:])
    for length in range(4, len(good)):
        with pytest.raises(InputError, match="is cut off or not of its type"):
            layout_of(good[:length])
