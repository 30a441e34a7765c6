from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dynident.signals import FIVE_POINT_CAUSAL, FilterStream, filter_signals, low_pass_kernel
from tests.signals.made import Fourier, stamps
from tests.signals.test_kernels import apply

RATE = 100.0
SMOOTH = low_pass_kernel(12.0, RATE)
KERNELS = [low_pass_kernel(12.0, RATE, order) for order in range(3)]
HALF = SMOOTH.center


def run(stream: FilterStream, x: np.ndarray, sizes, inner=None):
    """All results of a stretch (n_signals, n_samples) given in blocks of the sizes, the last one the rest."""
    edges = np.clip(np.cumsum([0, *sizes]), 0, x.shape[1])
    parts, flags, firsts = [], [], []
    for first, end in zip(edges, [*edges[1:], x.shape[1]], strict=True):
        last = end == x.shape[1]
        results, clean, number = stream.push(x[:, first:end], bool(last), None if inner is None else inner[first:end])
        assert number == sum(len(f) for f in flags)
        parts.append(results)
        flags.append(clean)
        firsts.append(number)
        if last:
            break
    return [np.concatenate(group, axis=2) for group in zip(*parts, strict=True)], np.concatenate(flags)


def signals(n: int, seed: int = 0, count: int = 3) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).normal(size=(count, n)), axis=1)


def splits(n: int):
    return st.lists(st.one_of(st.just(1), st.integers(1, 40), st.integers(1, n)), max_size=60)


class TestBlocks:
    @given(
        n=st.integers(1, 220),
        step=st.integers(1, 2 * HALF),
        ends=st.sampled_from(["polynomial", "reflection"]),
        data=st.data(),
    )
    @settings(max_examples=80, deadline=None)
    def test_results_do_not_depend_on_the_blocks(self, n, step, ends, data):
        groups = [(1, [SMOOTH]), (2, KERNELS)]
        x = signals(n, seed=n)
        sizes = data.draw(splits(n))
        inner = np.random.default_rng(n).random(n) > 0.02
        whole, clean = run(FilterStream(groups, RATE, step, ends), x, [], inner)
        pieces, also = run(FilterStream(groups, RATE, step, ends), x, sizes, inner)
        np.testing.assert_array_equal(clean, also)
        for a, b in zip(whole, pieces, strict=True):
            assert a.shape == b.shape
            for one, other in zip(a, b, strict=True):  # each kernel has its own unit
                np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12 * max(np.abs(one).max(), 1e-3) * n)

    def test_one_sample_at_a_time(self):
        x = signals(150)
        whole, clean = run(FilterStream([(3, KERNELS)], RATE, 3, "polynomial"), x, [])
        pieces, also = run(FilterStream([(3, KERNELS)], RATE, 3, "polynomial"), x, [1] * 150)
        np.testing.assert_array_equal(clean, also)
        for one, other in zip(whole[0], pieces[0], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(one).max())

    @pytest.mark.parametrize("ends", ["polynomial", "reflection"])
    def test_steps_longer_than_the_kernel(self, ends):
        short = low_pass_kernel(45.0, RATE)
        step = 3 * short.center
        for n in range(4 * step, 5 * step + 1):
            x = signals(n)
            whole, _ = run(FilterStream([(3, [short])], RATE, step, ends), x, [])
            assert whole[0].shape[2] == -(-n // step)
            for size in (1, 2, 5, 7, step, step + 1):
                pieces, _ = run(FilterStream([(3, [short])], RATE, step, ends), x, [size] * n)
                np.testing.assert_allclose(whole[0], pieces[0], atol=1e-10)

    def test_what_needs_samples_to_come_waits_for_them(self):
        stream = FilterStream([(1, [SMOOTH])], RATE)
        (early,), flags, first = stream.push(signals(HALF, count=1), False)
        assert (early.shape, len(flags), first) == ((1, 1, 0), 0, 0)
        (more,), flags, first = stream.push(signals(1, count=1), False)
        assert (more.shape[2], len(flags), first) == (1, 1, 0)
        (end,), flags, first = stream.push(signals(4, count=1), True)
        assert (end.shape[2], len(flags), first) == (HALF + 4, HALF + 4, 1)

    @pytest.mark.parametrize("n", [7, 150, 151, 400])
    @pytest.mark.parametrize("step", [1, 3])
    def test_results_are_contiguous_along_time(self, n, step):
        """Whatever part of the last multiplication is needed: their transpose is in Fortran order without a copy."""
        stream = FilterStream([(3, KERNELS), (2, [SMOOTH])], RATE, step)
        results, inner, _ = stream.push(signals(n, count=5), last=True)
        assert [group.shape for group in results] == [(3, 3, len(inner)), (1, 2, len(inner))]
        assert all(group.flags.c_contiguous for group in results)

    def test_memory_stays_small(self):
        stream = FilterStream([(1, [SMOOTH])], RATE, 4)
        for _ in range(50):
            stream.push(np.zeros((1, 100)), False)
        assert stream._held.shape[1] <= 2 * HALF + 104


class TestValues:
    @pytest.mark.parametrize("step", [1, 2, 3, 7, 10, 64])
    def test_the_inner_part_is_plain_convolution(self, step):
        x = signals(400)
        (given,), inner = run(FilterStream([(3, [*KERNELS, FIVE_POINT_CAUSAL])], RATE, step), x, [150, 31])
        for kernel, results in zip([*KERNELS, FIVE_POINT_CAUSAL], given, strict=True):
            wanted = np.array([apply(kernel, row, RATE)[::step] for row in x])
            assert results.shape == wanted.shape
            assert inner.any()
            size = np.abs(x).max() * np.abs(kernel.taps).sum() * RATE**kernel.order
            np.testing.assert_allclose(results[:, inner], wanted[:, inner], atol=1e-13 * size)

    @pytest.mark.parametrize("step", [1, 3])
    @pytest.mark.parametrize("length", [2 * HALF, 2 * HALF + 1, 200])
    def test_inner_means_measured_samples_alone(self, step, length):
        inner = run(FilterStream([(3, KERNELS)], RATE, step), signals(length), [20])[1]
        places = np.arange(0, length, step)
        np.testing.assert_array_equal(inner, (places >= HALF) & (places + HALF < length))

    def test_inner_passes_on_what_was_not_measured(self):
        given = np.ones(300, dtype=bool)
        given[150] = False
        for step, sizes in ((1, [151]), (4, [10] * 30)):
            inner = run(FilterStream([(3, KERNELS)], RATE, step), signals(300), sizes, given)[1]
            places = np.arange(0, 300, step)
            wanted = (places >= HALF) & (places + HALF < 300) & (np.abs(places - 150) > HALF)
            np.testing.assert_array_equal(inner, wanted)

    def test_inner_follows_the_longest_kernel_of_all_groups(self):
        shifted = low_pass_kernel(12.0, RATE, shift=0.05)
        assert shifted.center == HALF + 5
        inner = run(FilterStream([(1, [SMOOTH]), (2, [shifted])], RATE), signals(200), [])[1]
        np.testing.assert_array_equal(np.flatnonzero(inner)[[0, -1]], [HALF + 5, 199 - HALF - 5])

    def test_groups_are_filtered_each_by_its_own_kernels(self):
        x = signals(200)
        together, _ = run(FilterStream([(1, KERNELS[:1]), (2, KERNELS[1:])], RATE, 2, "polynomial"), x, [77])
        assert [part.shape for part in together] == [(1, 1, 100), (2, 2, 100)]
        alone, _ = run(FilterStream([(1, KERNELS[:1])], RATE, 2, "polynomial"), x[:1], [])
        np.testing.assert_allclose(together[0], alone[0], atol=1e-11)
        both, _ = run(FilterStream([(2, KERNELS[1:])], RATE, 2, "polynomial"), x[1:], [])
        for one, other in zip(together[1], both[0], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(one).max())

    @pytest.mark.parametrize("ends", ["polynomial", "reflection"])
    def test_lines_are_kept_to_the_very_ends(self, ends):
        line = np.array([2.0 - 3.0 * np.arange(150) / RATE])
        (given,), _ = run(FilterStream([(1, KERNELS)], RATE, 1, ends), line, [])
        np.testing.assert_allclose(given[0], line, atol=1e-11)
        np.testing.assert_allclose(given[1], -3.0, atol=1e-9)
        np.testing.assert_allclose(given[2], 0.0, atol=1e-7)

    def test_cubics_are_kept_by_polynomial_ends(self):
        t = np.arange(150) / RATE
        cubic = np.array([1.0 + t - 2.0 * t**2 + t**3])
        (given,), inner = run(FilterStream([(1, KERNELS)], RATE, 1, "polynomial"), cubic, [])
        wanted = cubic[0], 1.0 - 4.0 * t + 3.0 * t**2, -4.0 + 6.0 * t
        for results, exact in zip(given, wanted, strict=True):
            inside = np.abs(results[0] - exact)[inner].max()  # what the kernel itself does to a cubic
            np.testing.assert_allclose(results[0], exact, atol=1.5 * inside + 1e-9)


class TestShort:
    @pytest.mark.parametrize("ends", ["polynomial", "reflection"])
    @pytest.mark.parametrize("step", [1, 3, 50])
    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, HALF - 1, HALF, HALF + 1, 2 * HALF])
    def test_short_stretches_give_finite_results(self, n, step, ends):
        t = np.arange(n) / RATE
        x = np.array([np.full(n, 0.7), 0.7 + 2.0 * t])
        (given,), inner = run(FilterStream([(2, KERNELS)], RATE, step, ends), x, [])
        assert given.shape == (3, 2, -(-n // step))
        assert np.isfinite(given).all()
        assert not inner.any()
        np.testing.assert_allclose(given[0, 0], 0.7, atol=1e-11)
        np.testing.assert_allclose(given[1:, 0], 0.0, atol=1e-7)
        if n > 2:
            np.testing.assert_allclose(given[1, 1], 2.0, atol=1e-7)

    def test_noise_on_a_short_stretch_does_not_explode(self):
        rng = np.random.default_rng(0)
        for n in range(1, 2 * HALF):
            (given,), _ = run(FilterStream([(1, [SMOOTH])], RATE, 1, "polynomial"), rng.normal(size=(1, n)), [])
            assert np.abs(given).max() < 10.0

    def test_an_empty_stretch(self):
        (given,), inner = run(FilterStream([(2, KERNELS)], RATE), np.zeros((2, 0)), [])
        assert given.shape == (3, 2, 0)
        assert inner.shape == (0,)


class TestEnds:
    def test_polynomial_ends_keep_acceleration(self):
        """Over many motions, error of the acceleration at the very ends: a few percent, by reflection all of it."""
        t = stamps(6.0, RATE)
        q, _, ddq = Fourier.random(40, 3, base=0.15)(t)
        size = np.sqrt(np.mean(ddq**2, axis=0))
        kernel = low_pass_kernel(12.0, RATE, 2)
        error = {
            ends: np.abs(filter_signals(q, [kernel], RATE, ends=ends)[0] - ddq) / size
            for ends in ("polynomial", "reflection")
        }
        ends = [0, -1]
        assert np.median(error["reflection"][ends]) > 0.3
        assert np.median(error["polynomial"][ends]) < 0.05
        assert error["polynomial"][ends].max() < 0.3
        assert error["polynomial"][10:-10].max() < 0.1
        assert error["polynomial"][HALF:-HALF].max() < 0.01

    def test_velocity_at_the_ends(self):
        t = stamps(6.0, RATE)
        q, dq, _ = Fourier.random(40, 3, base=0.15)(t)
        velocity = filter_signals(q, [low_pass_kernel(12.0, RATE, 1)], RATE, ends="polynomial")[0]
        assert (np.abs(velocity - dq) / np.sqrt(np.mean(dq**2, axis=0))).max() < 0.02
