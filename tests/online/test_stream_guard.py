"""Order, repetition and gaps."""

from __future__ import annotations

import numpy as np

from dynident.online.guard import Guard
from dynident.online.sources.source import Samples
from dynident.online.state import Counters
from dynident.online.thresholds import THRESHOLDS


def block(time, numbers=None) -> Samples:
    time = np.asarray(time, dtype=float)
    zero = np.zeros((len(time), 1))
    return Samples(time, zero, zero, None, None if numbers is None else np.asarray(numbers))


def admitted(guard: Guard, time, numbers=None) -> list[float]:
    found = guard.admit(block(time, numbers))
    return [] if found is None else found.time.tolist()


def test_late_and_repeated_ones_stay_out():
    tally = Counters()
    guard = Guard(tally)
    assert admitted(guard, [0.0, 0.1, 0.1, 0.05, 0.2, 0.2]) == [0.0, 0.1, 0.2]
    assert (tally.late, tally.repeated, tally.dropped) == (1, 2, 0)


def test_sequence_numbers_tell_what_was_lost_even_when_stamps_jitter():
    tally = Counters()
    guard = Guard(tally)
    admitted(guard, [0.0, 0.13, 0.2, 0.51, 0.6], [5, 6, 7, 10, 11])
    assert tally.dropped == 2


def test_stamps_tell_it_without_numbers():
    tally = Counters()
    guard = Guard(tally)
    time = np.arange(300) / 100.0
    kept = np.ones(300, dtype=bool)
    kept[[100, 101, 102, 250]] = False
    for part in np.array_split(time[kept], 7):
        admitted(guard, part)
    assert tally.dropped == 4
    admitted(guard, [4.5, 4.51])  # a sender that paused has lost nothing
    assert tally.dropped == 4


def test_a_short_first_step_does_not_make_the_others_look_long():
    tally = Counters()
    admitted(Guard(tally), [0.0, *(0.001 + np.arange(200) / 100.0)])
    assert tally.dropped == 0


def test_the_quick_way_counts_as_the_slow_one():
    rng = np.random.default_rng(0)
    time = np.cumsum(0.01 + 0.001 * rng.standard_normal(2000))
    slow, quick = Counters(), Counters()
    one, other = Guard(slow), Guard(quick)
    for k in range(2000):
        admitted(one, time[k : k + 1])
    passed = sum(len(admitted(other, part)) for part in np.array_split(time, 10))
    assert passed == 2000
    assert slow == quick == Counters()


def test_one_wild_stamp_does_not_make_the_rest_late():
    for wild in (1e6, -1e6):
        tally = Counters()
        guard = Guard(tally)
        assert admitted(guard, [0.0, 0.1, wild, 0.2, 0.3]) == [0.0, 0.1, 0.2, 0.3]
        assert (tally.late, tally.restarts) == (1, 0)


def test_a_clock_that_starts_again_is_believed_after_a_while_and_stamps_go_on_rising():
    tally = Counters()
    guard = Guard(tally)
    first = admitted(guard, 100.0 + np.arange(50) / 10)
    again = admitted(guard, np.arange(200) / 10)
    assert tally.restarts == 1
    assert tally.late == THRESHOLDS.confirming_samples - 1
    assert again[0] == first[-1] + THRESHOLDS.pause_s
    assert len(again) == 200 - tally.late
    np.testing.assert_allclose(np.diff(again), 0.1)


def test_it_goes_on_behind_what_has_been_used():
    guard = Guard(Counters(), last=5.0)
    assert admitted(guard, [4.9, 5.0, 5.1]) == [5.1]
