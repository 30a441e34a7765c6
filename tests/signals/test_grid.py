from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

import dynident as di
from dynident.signals import Grid, fresh_blocks, survey_log, uniform_chunks
from tests.signals.made import Pieces, make_log

STEP = 0.01
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]  # the examples are small as they come


def log_of(t, values) -> di.Log:
    return di.Log("made", "0", np.asarray(t, dtype=float), {"q1": values, "tau1": np.zeros(len(t))})


def kept(log, sizes=(10**6,)) -> np.ndarray:
    """Stamps and values of the rows that are not repeats, (n, 2)."""
    blocks = list(fresh_blocks(Pieces(log, sizes).blocks()))
    return np.vstack([np.column_stack([block.time, block.channels["q1"]]) for block in blocks])


def reference(t, values, longest=3) -> np.ndarray:
    """The rule, row by row: no stamp twice; a value repeated at most `longest` times is a stutter, more is rest."""
    rows = []
    start = 0
    for value, run in itertools.groupby(values):
        count = len(list(run))
        for i in range(start, start + count):
            again = i > 0 and t[i] <= t[i - 1]
            stutter = i > start and count - 1 <= longest
            if not (again or stutter):
                rows.append((t[i], value))
        start += count
    return np.array(rows)


def chunks(t, x, grid, edges=()) -> list:
    """Stretches as (start, values), put together from chunks."""
    blocks = [(t[a:b], x[:, a:b]) for a, b in itertools.pairwise([0, *edges, len(t)])]
    stretches, open_one = [], None
    for start, values, last in uniform_chunks(blocks, grid):
        open_one = [start, []] if open_one is None else open_one
        assert start == open_one[0]
        open_one[1].append(values)
        if last:
            assert values.shape[1] > 0 or grid.irregular
            stretches.append((open_one[0], np.concatenate(open_one[1], axis=1)))
            open_one = None
    assert open_one is None
    return stretches


def curve(t) -> np.ndarray:
    return np.array([np.sin(2.0 * t), np.cos(3.0 * t) + 0.3 * t])


run_lengths = st.lists(st.integers(1, 7), min_size=1, max_size=25)
block_sizes = st.lists(st.integers(1, 9), min_size=1, max_size=12)


class TestRepeats:
    @pytest.mark.parametrize("repeats", [1, 2, 3])
    def test_short_runs_of_equal_rows_are_dropped(self, repeats):
        x = np.concatenate([[0.0, 1.0], np.full(repeats, 1.0), [2.0, 3.0]])
        rows = kept(log_of(STEP * np.arange(len(x)), x))
        np.testing.assert_array_equal(rows[:, 1], [0, 1, 2, 3])
        np.testing.assert_allclose(rows[:, 0], STEP * np.array([0, 1, 2 + repeats, 3 + repeats]))

    @pytest.mark.parametrize("repeats", [4, 5, 50])
    def test_longer_runs_are_standstill_and_stay(self, repeats):
        x = np.concatenate([[0.0, 1.0], np.full(repeats, 1.0), [2.0, 3.0]])
        log = log_of(STEP * np.arange(len(x)), x)
        for sizes in [(10**6,), (1,), (3,), (2, 5)]:
            np.testing.assert_array_equal(kept(log, sizes)[:, 1], x)

    @pytest.mark.parametrize("sizes", [(10**6,), (1,), (4,), (4, 7)])
    def test_repeated_stamps_are_dropped_whatever_their_values(self, sizes):
        t = np.append(np.repeat(STEP * np.arange(50), 2), 50.0 * STEP)
        rows = kept(log_of(t, np.arange(101.0)), sizes)
        np.testing.assert_array_equal(rows[:, 1], np.arange(0.0, 101.0, 2.0))

    def test_repeated_stamp_at_the_very_end(self):
        t = STEP * np.array([0, 1, 2, 2])
        np.testing.assert_array_equal(kept(log_of(t, np.arange(4.0)))[:, 1], [0, 1, 2])

    def test_rows_that_differ_in_one_channel_are_no_repeats(self):
        t, x = STEP * np.arange(20), np.zeros(20)
        log = di.Log("made", "0", t, {"q1": x, "tau1": np.arange(20.0)})
        assert sum(len(block) for block in fresh_blocks(log.blocks())) == 20

    @given(lengths=run_lengths, sizes=block_sizes)
    @settings(max_examples=100, deadline=None)
    def test_repeated_values_whatever_the_blocks(self, lengths, sizes):
        x = np.repeat(np.arange(float(len(lengths))), lengths)
        t = STEP * np.arange(len(x))
        rows = kept(log_of(t, x), sizes)
        np.testing.assert_array_equal(rows, reference(t, x))
        np.testing.assert_array_equal(kept(log_of(t, x)), rows)

    @given(seed=st.integers(0, 10**6), sizes=block_sizes)
    @settings(max_examples=100, deadline=None, phases=UNSHRUNK)
    def test_repeated_stamps_whatever_the_blocks(self, seed, sizes):
        t = STEP * np.cumsum(np.random.default_rng(seed).integers(2, size=40))
        x = np.arange(40.0)
        np.testing.assert_array_equal(kept(log_of(t, x), sizes), reference(t, x))

    @given(lengths=run_lengths, seed=st.integers(0, 10**6), sizes=block_sizes)
    @settings(max_examples=100, deadline=None, phases=UNSHRUNK)
    def test_both_kinds_whatever_the_blocks(self, lengths, seed, sizes):
        x = np.repeat(np.arange(float(len(lengths))), lengths)
        t = STEP * np.cumsum(np.random.default_rng(seed).random(len(x)) > 0.2)
        rows = kept(log_of(t, x), sizes)
        np.testing.assert_array_equal(rows, kept(log_of(t, x)))
        assert (np.diff(rows[:, 0]) > 0.0).all()

    def test_log_without_channels(self):
        log = di.Log("made", "0", STEP * np.arange(10), {})
        assert sum(len(block) for block in fresh_blocks(Pieces(log, (3,)).blocks())) == 10


class TestRegular:
    grid = Grid(1.0 / STEP, irregular=False)

    def test_samples_pass_untouched(self):
        t = STEP * np.arange(300)
        x = curve(t)
        for edges in [(), (1,), (100, 200), range(1, 300)]:
            ((start, values),) = chunks(t, x, self.grid, edges)
            assert start == 0.0
            np.testing.assert_array_equal(values, x)

    def test_a_gap_begins_a_new_stretch(self):
        t = np.concatenate([STEP * np.arange(200), 5.0 + STEP * np.arange(100), 9.0 + STEP * np.arange(1)])
        for edges in [(), (200,), (300,), (199, 201), (50, 200, 250, 300)]:
            found = chunks(t, curve(t), self.grid, edges)
            assert [values.shape[1] for _, values in found] == [200, 100, 1]
            assert [start for start, _ in found] == [0.0, 5.0, 9.0]
            np.testing.assert_array_equal(np.concatenate([values for _, values in found], axis=1), curve(t))

    def test_gap_is_five_steps_or_fifty_milliseconds(self):
        assert Grid(100.0, irregular=False).gap == pytest.approx(0.05)
        assert Grid(1000.0, irregular=False).gap == pytest.approx(0.05)
        assert Grid(20.0, irregular=False).gap == pytest.approx(0.25)

    @given(data=st.data())
    @settings(max_examples=60, deadline=None)
    def test_gaps_whatever_the_blocks(self, data):
        steps = data.draw(st.lists(st.sampled_from([1, 1, 1, 1, 7]), min_size=1, max_size=40))
        t = STEP * np.cumsum(steps)
        edges = sorted(data.draw(st.sets(st.integers(1, max(1, len(t) - 1)), max_size=20)) - {len(t)})
        whole, pieces = chunks(t, curve(t), self.grid), chunks(t, curve(t), self.grid, edges)
        assert [start for start, _ in whole] == [start for start, _ in pieces]
        assert len(whole) == 1 + steps[1:].count(7)
        for (_, a), (_, b) in zip(whole, pieces, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_nothing_gives_nothing(self):
        assert list(uniform_chunks([], self.grid)) == []


class TestIrregular:
    grid = Grid(1.0 / STEP, irregular=True)

    def jittered(self, n=2000, seed=0, share=0.3):
        rng = np.random.default_rng(seed)
        return STEP * (np.arange(n) + rng.uniform(-share, share, n))

    def test_signals_are_resampled(self):
        t = self.jittered()
        ((start, values),) = chunks(t, curve(t), self.grid)
        at = start + STEP * np.arange(values.shape[1])
        assert at[-1] <= t[-1] < at[-1] + 1.01 * STEP
        np.testing.assert_allclose(values, curve(at), atol=1e-5)

    @given(edges=st.sets(st.integers(1, 1999), max_size=40), seed=st.integers(0, 5))
    @settings(max_examples=40, deadline=None)
    def test_result_does_not_depend_on_the_blocks(self, edges, seed):
        t = self.jittered(seed=seed)
        x = np.vstack([curve(t), np.random.default_rng(seed).normal(size=len(t))])
        ((start, whole),), ((same, pieces),) = chunks(t, x, self.grid), chunks(t, x, self.grid, sorted(edges))
        assert start == same
        assert whole.shape == pieces.shape
        np.testing.assert_allclose(whole, pieces, atol=1e-10)

    def test_one_sample_at_a_time(self):
        t = self.jittered(700)
        ((_, whole),) = chunks(t, curve(t), self.grid)
        ((_, pieces),) = chunks(t, curve(t), self.grid, range(1, 700))
        np.testing.assert_allclose(whole, pieces, atol=1e-10)

    def test_memory_stays_small(self):
        t = self.jittered(20_000)
        blocks = [(t[i : i + 100], curve(t[i : i + 100])) for i in range(0, 20_000, 100)]
        assert max(values.shape[1] for _, values, _ in uniform_chunks(blocks, self.grid)) <= 300

    def test_gaps_with_jitter_begin_again(self):
        t = self.jittered(900)
        t = t + np.repeat([0.0, 1.0, 4.0], 300)
        for edges in [(), (300,), (600,), (299, 301), (300, 600)]:
            found = chunks(t, curve(t), self.grid, edges)
            assert [start for start, _ in found] == [t[0], t[300], t[600]]
            for start, values in found:
                at = start + STEP * np.arange(values.shape[1])
                np.testing.assert_allclose(values, curve(at), atol=2e-5)

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
    def test_few_samples_are_joined_by_lines(self, n):
        t = self.jittered(n)
        ((start, values),) = chunks(t, np.array([2.0 + 3.0 * t]), self.grid)
        at = start + STEP * np.arange(values.shape[1])
        assert values.shape[1] >= 1
        np.testing.assert_allclose(values[0], 2.0 + 3.0 * at, atol=1e-12)

    def test_missing_rows_are_filled_in(self):
        t = np.delete(STEP * np.arange(600), [50, 51, 200, 311])
        ((_, values),) = chunks(t, curve(t), self.grid)
        np.testing.assert_allclose(values, curve(STEP * np.arange(600)), atol=1e-5)


def stalling(x: np.ndarray, runs: list[tuple[int, int]]) -> np.ndarray:
    """Readings of which those from `first` on, `count` of them, repeat the one before."""
    x = x.copy()
    for first, count in runs:
        x[first : first + count] = x[first - 1]
    return x


RUNS = [(60, 1), (100, 3), (103 + 12, 1), (160, 11), (300, 2), (431, 1), (700, 5)]


class TestStalls:
    """Positions that repeat while the joint moves, then jump."""

    def repaired(self, t: np.ndarray, x: np.ndarray, sizes: tuple[int, ...] = (10_000,)) -> tuple[np.ndarray, dict]:
        log = di.Log("made", "made", t, {"q1": x, "tau1": np.arange(len(t), dtype=float)})
        counts: dict[str, int] = {}
        blocks = list(fresh_blocks(Pieces(log, sizes).blocks(), counts))
        assert np.array_equal(np.concatenate([block.time for block in blocks]), t)
        assert np.array_equal(np.concatenate([block.channels["tau1"] for block in blocks]), log.channels["tau1"])
        return np.concatenate([block.channels["q1"] for block in blocks]), counts

    @pytest.fixture(scope="class")
    @staticmethod
    def motion():
        """Never slower than 0.3 rad/s, at 100 Hz."""
        t = np.arange(1000) / 100.0
        return t, 0.5 * t + 0.1 * np.sin(2.0 * np.pi * 0.3 * t)

    @pytest.mark.parametrize("resolution", [1e-6, 2.0 * np.pi / 8192])
    def test_lines_are_where_the_joint_was(self, motion, resolution):
        t, x = motion
        x = resolution * np.round(x / resolution)
        found, counts = self.repaired(t, stalling(x, RUNS))
        wrong = np.abs(stalling(x, RUNS) - x)
        assert wrong.max() > 0.03
        # The line misses the motion by its acceleration, 0.36 rad/s², over an eighth of the run's time squared.
        assert np.abs(found - x).max() < 0.36 * 0.12**2 / 8.0 + 2.0 * resolution
        assert counts == {"q1": sum(count for _, count in RUNS)}

    @pytest.mark.parametrize("sizes", [(1,), (7, 300), (161,), (64,)])
    def test_blocks_do_not_show(self, motion, sizes):
        t, x = motion
        stalled = stalling(1e-5 * np.round(x / 1e-5), RUNS)
        whole, parts = self.repaired(t, stalled), self.repaired(t, stalled, sizes)
        assert np.array_equal(parts[0], whole[0])
        assert parts[1] == whole[1]

    @pytest.mark.parametrize("velocity", [0.03, 0.2, 0.6, 0.95, 1.05, 1.7, 3.1])  # steps of the encoder per sample
    @pytest.mark.parametrize("rounding", [0.0, 1e-8])
    def test_an_encoder_repeats_by_itself(self, velocity, rounding):
        """Slow motion in a coarse encoder, through rest and back, with jitter of a tenth of a step."""
        step, rng, t = 2.0 * np.pi / 4096, np.random.default_rng(0), np.arange(4000) / 1000.0
        way = velocity * step * 200.0 * np.sin(np.arange(4000) / 200.0) + 0.1 * step * rng.normal(size=4000)
        x = step * np.round(way / step)
        x = rounding * np.round(x / rounding) if rounding else x
        found, counts = self.repaired(t, x)
        assert not counts
        assert np.array_equal(found, x)

    def test_digits_that_are_lost_at_ten(self):
        """Five significant digits: the resolution changes with the value."""
        t = np.arange(3000) / 1000.0
        x = np.array([float(f"{value:.5g}") for value in 9.9 + 0.15 * np.sin(2.0 * np.pi * 0.5 * t)])
        assert np.mean(np.diff(x) == 0.0) > 0.1
        assert not self.repaired(t, x)[1]

    def test_rest_between_motions(self):
        """A joint that stops, waits and goes on, and one that is thrown from side to side."""
        t = np.arange(2000) / 500.0
        stops = np.maximum(np.sin(2.0 * np.pi * 0.5 * t), 0.0) ** 2
        assert not self.repaired(t, np.cumsum(stops) / 500.0)[1]
        thrown = np.abs((t % 0.5) - 0.25)
        thrown = np.minimum(thrown, 0.2)  # against a stop at full velocity
        assert not self.repaired(t, 1e-6 * np.round(thrown / 1e-6))[1]

    def test_a_clock_that_ran_on(self, motion):
        """Readings that stop for a while and go on where they were are no line: the joint did not move."""
        t, x = motion
        paused = np.concatenate([x[:500], np.full(10, x[499]), x[500:-10]])
        assert not self.repaired(t, paused)[1]

    def test_across_a_gap(self, motion):
        t, x = motion
        t = np.concatenate([t[:500], t[500:] + 3.0])
        x = x + np.where(np.arange(len(x)) < 500, 0.0, 1.5)
        assert not self.repaired(t, stalling(x, [(500, 1)]))[1]

    def test_numbers_that_are_missing(self, motion):
        t, x = motion
        x = stalling(x, RUNS)
        x[105] = np.nan
        found, _ = self.repaired(t, x)
        assert np.isnan(found[105])
        assert np.isfinite(np.delete(found, 105)).all()

    def test_the_survey_counts_them(self, motion):
        t, x = motion
        robot = di.load_robot("pendulum-2")
        log = make_log(robot, t, np.column_stack([stalling(x, RUNS), x]), np.column_stack([t, t]))
        assert survey_log(log, robot).stalled == {"q1": sum(count for _, count in RUNS)}
        assert survey_log(Pieces(log, (37,)), robot).stalled == {"q1": sum(count for _, count in RUNS)}
