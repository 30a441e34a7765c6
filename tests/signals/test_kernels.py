from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import signal
from scipy.signal import savgol_coeffs

from dynident.errors import InputError
from dynident.signals import (
    CENTRAL,
    FIVE_POINT,
    FIVE_POINT_CAUSAL,
    NINE_POINT,
    FirKernel,
    differentiator_table,
    filter_signals,
    low_pass_kernel,
    polynomial_kernel,
)

RATE = 500.0
T = np.arange(2000) / RATE


def apply(kernel: FirKernel, x: np.ndarray, rate: float = RATE) -> np.ndarray:
    """The definition, sample by sample: y_k = sum_j taps_j x_{k + j - center}; NaN where samples are missing."""
    y = np.full(len(x), np.nan)
    behind = len(kernel.taps) - 1 - kernel.center
    valid = np.correlate(x, kernel.taps, "valid") * rate**kernel.order
    y[kernel.center : len(x) - behind] = valid
    return y


def moments(kernel: FirKernel, shift: float = 0.0) -> list[float]:
    places = np.arange(len(kernel.taps)) - kernel.center - shift
    return [float(kernel.taps @ places**k) for k in range(3)]


class TestLowPass:
    @given(
        cutoff=st.floats(0.004, 0.49),
        order=st.integers(0, 2),
        shift=st.floats(-12.0, 12.0),
    )
    @settings(max_examples=60, deadline=None)
    def test_moments_are_exact(self, cutoff, order, shift):
        """In samples: constants, ramps and, for the second derivative, parabolas, also between samples."""
        kernel = low_pass_kernel(cutoff, 1.0, order, shift=shift)
        size = float(len(kernel.taps))
        found = moments(kernel, shift)
        wanted = ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0, 2.0])[order]
        for k, value in enumerate(wanted):
            assert found[k] == pytest.approx(value, abs=1e-12 * size**k * np.abs(kernel.taps).sum())

    @pytest.mark.parametrize("cutoff", [0.5, 1.0, 7.0, 60.0, 240.0])
    @pytest.mark.parametrize("shift", [0.0, 0.0034])
    def test_dc_gain_is_one(self, cutoff, shift):
        assert low_pass_kernel(cutoff, RATE, shift=shift).taps.sum() == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize("cutoff", [2.0, 20.0, 100.0])
    def test_flat_below_half_the_cutoff_half_at_it_none_at_twice(self, order, cutoff):
        kernel = low_pass_kernel(cutoff, RATE, order)
        flat = kernel.response(np.linspace(0.02, 0.5, 40) * cutoff, RATE)
        np.testing.assert_allclose(flat, 1.0, atol=0.03)
        # A sine of a filtered position is no filtered sine: what is not flat here is wrong in the parameters.
        np.testing.assert_allclose(flat[:19], 1.0, atol=5e-4)
        at = kernel.response(np.array([0.25, 1.0, 2.0]) * cutoff, RATE)
        np.testing.assert_allclose(np.abs(at), [1.0, 0.5, 0.0], atol=0.01)

    @pytest.mark.parametrize("cutoff", [5.0, 20.0, 100.0])
    def test_derivatives_share_one_response(self, cutoff):
        """The derivative of the filtered signal, not another filter: columns and torque are filtered alike."""
        frequency = np.linspace(0.05, 2.5, 30) * cutoff
        frequency = frequency[frequency < 0.45 * RATE]
        reference = low_pass_kernel(cutoff, RATE).response(frequency, RATE)
        for order in (1, 2):
            response = low_pass_kernel(cutoff, RATE, order).response(frequency, RATE)
            np.testing.assert_allclose(response, reference, atol=2e-3)
            assert np.abs(np.angle(response[np.abs(response) > 0.1])).max() < 1e-9  # zero phase

    @pytest.mark.parametrize(("frequency", "tolerance"), [(0.3, 1e-4), (1.0, 1e-3), (2.5, 4e-3)])
    def test_derivatives_of_a_sinusoid(self, frequency, tolerance):
        w = 2.0 * np.pi * frequency
        exact = np.sin(w * T), w * np.cos(w * T), -(w**2) * np.sin(w * T)
        for order, wanted in enumerate(exact):
            given = apply(low_pass_kernel(10.0, RATE, order), exact[0])
            inner = np.isfinite(given)
            assert inner.mean() > 0.9
            assert np.abs(given - wanted)[inner].max() < tolerance * w**order

    def test_derivatives_of_a_parabola(self):
        parabola = 3.0 - 2.0 * T + 5.0 * T**2
        for order, wanted in ((1, -2.0 + 10.0 * T), (2, np.full_like(T, 10.0))):
            given = apply(low_pass_kernel(8.0, RATE, order), parabola)
            inner = np.isfinite(given)
            np.testing.assert_allclose(given[inner], wanted[inner], atol=1e-7)

    @pytest.mark.parametrize("delay", [0.0004, -0.0013, 0.0071, -0.02])
    def test_shift_moves_a_signal_by_fractions_of_a_sample(self, delay):
        """Torque stamped late by a delay: the shift gives what it was without the delay."""
        late = np.sin(2.0 * np.pi * 1.5 * (T - delay))
        given = apply(low_pass_kernel(15.0, RATE, shift=delay), late)
        inner = np.isfinite(given)
        assert np.abs(given - np.sin(2.0 * np.pi * 1.5 * T))[inner].max() < 1e-3
        assert np.abs(late - np.sin(2.0 * np.pi * 1.5 * T)).max() > abs(delay) * 8.0

    def test_noise_gain_is_what_white_noise_gets(self):
        noise = np.random.default_rng(1).normal(size=100_000)
        for kernel in (FIVE_POINT, low_pass_kernel(20.0, RATE, 2)):
            result = apply(kernel, noise)
            assert np.nanstd(result) == pytest.approx(kernel.noise_gain * RATE**kernel.order, rel=0.05)

    def test_the_shortest_kernel_works(self):
        kernel = low_pass_kernel(0.4999 * RATE, RATE)
        assert len(kernel.taps) >= 5
        assert np.isfinite(kernel.taps).all()


class TestClassical:
    def test_five_points_are_khosla_and_kanades(self):
        np.testing.assert_allclose(FIVE_POINT.taps, np.array([-2, -1, 0, 1, 2]) / 10, atol=1e-15)
        np.testing.assert_allclose(CENTRAL.taps, [-0.5, 0.0, 0.5], atol=1e-15)
        parabola = 3.0 - 2.0 * T + 5.0 * T**2
        np.testing.assert_allclose(apply(FIVE_POINT, parabola)[2:-2], (-2.0 + 10.0 * T)[2:-2], atol=1e-9)

    def test_causal_form_is_the_same_two_samples_late(self):
        x = np.sin(3.0 * T)
        np.testing.assert_array_equal(apply(FIVE_POINT_CAUSAL, x)[4:], apply(FIVE_POINT, x)[2:-2])
        np.testing.assert_array_equal(FIVE_POINT_CAUSAL.taps, FIVE_POINT.taps)

    def test_nine_points_have_known_coefficients(self):
        """Savitzky & Golay 1964, table of first derivatives, quartic, nine points."""
        known = np.array([86, -142, -193, -126, 0, 126, 193, 142, -86]) / 1188
        np.testing.assert_allclose(NINE_POINT.taps, known, atol=1e-14)

    @pytest.mark.parametrize(("half", "degree", "order"), [(2, 2, 1), (4, 4, 1), (5, 3, 2), (3, 2, 0)])
    def test_polynomial_kernels_agree_with_scipy(self, half, degree, order):
        expected = savgol_coeffs(2 * half + 1, degree, deriv=order, use="dot")
        np.testing.assert_allclose(polynomial_kernel(half, degree, order).taps, expected, atol=1e-12)

    def test_table_tells_the_differentiators_apart(self):
        rows = {row["name"]: row for row in differentiator_table(100.0, 5.0)}
        assert len(rows) == 5
        assert rows["five-point least squares, causal"]["phase"] == pytest.approx(-36.0)
        assert rows["five-point least squares"]["phase"] == pytest.approx(0.0, abs=1e-9)
        assert rows["central difference"]["amplitude"] == pytest.approx(np.sin(0.1 * np.pi) / (0.1 * np.pi))
        assert rows["central difference"]["noise"] == pytest.approx(100.0 * np.sqrt(0.5))
        assert rows["five-point least squares"]["noise"] == pytest.approx(100.0 * np.sqrt(0.1))
        assert min(rows.values(), key=lambda row: row["noise"])["name"].startswith("low-pass")

    def test_table_at_a_low_rate(self):
        rows = differentiator_table(10.0, 4.9)
        assert np.isfinite([row["amplitude"] for row in rows]).all()


class TestComposition:
    @given(seed=st.integers(0, 1000), sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)))
    @settings(max_examples=30, deadline=None)
    def test_then_is_one_after_the_other(self, seed, sizes):
        rng = np.random.default_rng(seed)
        first, second = (FirKernel("k", rng.normal(size=n), int(rng.integers(2)), int(rng.integers(n))) for n in sizes)
        x = rng.normal(size=60)
        both, twice = apply(first.then(second), x), apply(second, apply(first, x))
        inner = np.isfinite(twice)
        assert inner.any()
        np.testing.assert_array_equal(inner, np.isfinite(both))
        np.testing.assert_allclose(both[inner], twice[inner], rtol=1e-9, atol=1e-9 * RATE**2)

    def test_orders_add_up(self):
        kernel = low_pass_kernel(20.0, RATE).then(FIVE_POINT).then(FIVE_POINT)
        assert kernel.order == 2
        given = apply(kernel, T**2)
        np.testing.assert_allclose(given[np.isfinite(given)], 2.0, atol=1e-7)

    def test_filtered_is_the_definition(self):
        x = np.random.default_rng(0).normal(size=(300, 2))
        kernels = [low_pass_kernel(40.0, RATE), FIVE_POINT_CAUSAL]
        for kernel, found in zip(kernels, filter_signals(x, kernels, RATE), strict=True):
            wanted = np.column_stack([apply(kernel, column) for column in x.T])
            inner = np.isfinite(wanted)
            np.testing.assert_allclose(found[inner], wanted[inner], atol=1e-12 * RATE)

    def test_taps_are_a_read_only_copy(self):
        taps = np.array([0.25, 0.5, 0.25])
        kernel = FirKernel("k", taps, 0, 1)
        taps[0] = 9.0
        assert kernel.taps[0] == 0.25
        with pytest.raises(ValueError, match="read-only"):
            kernel.taps[0] = 1.0


@pytest.mark.parametrize("order", [0, 1, 2])
def test_response_at_zero_frequency_is_perfect(order):
    """The limit: moments are exact."""
    assert low_pass_kernel(10.0, RATE, order).response(np.array([0.0]), RATE)[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: low_pass_kernel(300.0, RATE), "must lie between 0 and half the rate, 250 Hz"),
        (lambda: low_pass_kernel(250.0, RATE), "must lie between 0 and half the rate"),
        (lambda: low_pass_kernel(0.0, RATE), "must lie between"),
        (lambda: low_pass_kernel(float("nan"), RATE), "must lie between"),
        (lambda: polynomial_kernel(1, 3, 1), "does not fit 3 samples"),
        (lambda: polynomial_kernel(3, 1, 2), "degree 1 does not fit 7 samples and order 2"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_rounding_of_the_rate_makes_no_tap():
    """Blocks of a log add up their steps otherwise than the whole; both must be filtered alike."""
    for order in range(3):
        kernels = [low_pass_kernel(10.0, rate, order, shift=0.005) for rate in (200.0, 200.00000000000003)]
        assert len(kernels[0].taps) == len(kernels[1].taps)
        np.testing.assert_allclose(kernels[0].taps, kernels[1].taps, atol=1e-12 * np.abs(kernels[0].taps).max())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_butterworth_is_that_of_scipy_run_both_ways(order):
    """The filter of MATLAB's filtfilt, and the exact derivatives of what passes it."""
    rate, cutoff = 250.0, 12.0
    kernel = low_pass_kernel(cutoff, rate, order, shape="butterworth")
    frequency = np.array([0.0, 0.5, 3.0, 6.0, 12.0, 25.0])
    own = signal.freqz(*signal.butter(2, cutoff / (0.5 * rate)), worN=2.0 * np.pi * frequency / rate)[1]
    assert np.allclose(kernel.response(frequency, rate), np.abs(own) ** 2, atol=2e-3)
    places = (np.arange(len(kernel.taps)) - kernel.center).astype(float)
    assert kernel.taps @ places**order == pytest.approx(math.factorial(order), rel=1e-9)


def test_butterworth_undoes_a_delay():
    rate, delay = 250.0, 0.0071
    plain = low_pass_kernel(12.0, rate, shape="butterworth")
    late = low_pass_kernel(12.0, rate, shift=delay, shape="butterworth")
    frequency = np.array([0.5, 3.0, 6.0])
    turned = late.response(frequency, rate) / plain.response(frequency, rate)
    assert np.allclose(turned, np.exp(2j * np.pi * frequency * delay), atol=1e-3)
