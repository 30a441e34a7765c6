from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import savgol_coeffs

from dynident.errors import InputError
from dynident.signals import (
    CENTRAL,
    FIVE_POINT,
    FIVE_POINT_CAUSAL,
    differentiator_table,
    low_pass_kernel,
    polynomial_kernel,
)

RATE = 500.0
T = np.arange(2000) / RATE


def test_five_point_differentiator_is_khosla_and_kanades():
    np.testing.assert_allclose(FIVE_POINT.taps, np.array([-2, -1, 0, 1, 2]) / 10, atol=1e-15)
    np.testing.assert_allclose(CENTRAL.taps, [-0.5, 0, 0.5], atol=1e-15)
    parabola = 3.0 - 2.0 * T + 5.0 * T**2
    np.testing.assert_allclose(FIVE_POINT.apply(parabola, RATE)[5:-5], (-2 + 10 * T)[5:-5], atol=1e-10)
    # The causal form is the same, two samples late.
    np.testing.assert_allclose(FIVE_POINT_CAUSAL.apply(parabola, RATE)[10:], (-2 + 10 * T)[8:-2], atol=1e-10)


@pytest.mark.parametrize(("half", "degree", "order"), [(2, 2, 1), (4, 4, 1), (5, 3, 2), (3, 2, 0)])
def test_polynomial_kernels_agree_with_scipy(half, degree, order):
    expected = savgol_coeffs(2 * half + 1, degree, deriv=order, use="dot")
    np.testing.assert_allclose(polynomial_kernel(half, degree, order).taps, expected, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("cutoff", [5.0, 20.0, 100.0])
def test_low_pass_derivatives_share_one_response(order, cutoff):
    """The derivative of the filtered signal, not another filter: the same response for every order."""
    frequency = np.linspace(0.05, 2.5, 30) * cutoff
    frequency = frequency[frequency < RATE / 2]
    reference = low_pass_kernel(cutoff, RATE).response(frequency, RATE)
    response = low_pass_kernel(cutoff, RATE, order).response(frequency, RATE)
    np.testing.assert_allclose(response, reference, atol=2e-3)
    assert np.abs(np.angle(response[np.abs(response) > 0.1])).max() < 1e-9  # zero phase
    at = low_pass_kernel(cutoff, RATE, order).response(np.array([cutoff / 4, cutoff, 2 * cutoff]), RATE)
    np.testing.assert_allclose(np.abs(at), [1.0, 0.5, 0.0], atol=0.01)


def test_dc_gain_is_one():
    for cutoff in (1.0, 7.0, 60.0):
        assert low_pass_kernel(cutoff, RATE).taps.sum() == pytest.approx(1.0, abs=1e-14)
    ramp = 2.0 + 3.0 * T
    np.testing.assert_allclose(low_pass_kernel(10, RATE).apply(ramp, RATE), ramp, atol=1e-10)
    np.testing.assert_allclose(low_pass_kernel(10, RATE, 1).apply(ramp, RATE), 3.0, atol=1e-9)


@pytest.mark.parametrize(("step", "first"), [(2, 0), (3, 1), (7, 2), (10, 5), (64, 63), (500, 0)])
def test_decimated_results_are_those_of_the_full_rate(step, first):
    x = np.random.default_rng(0).normal(size=(2000, 3))
    for order in range(3):
        kernel = low_pass_kernel(12, RATE, order)
        full = kernel.apply(x, RATE)
        np.testing.assert_allclose(kernel.apply(x, RATE, step, first), full[first::step], rtol=1e-9, atol=1e-9)


def test_ends_follow_a_smooth_motion():
    """Point reflection: within 0.2 s of the ends a 1 Hz motion keeps its speed to a few percent."""
    x = np.sin(2 * np.pi * T)
    speed = low_pass_kernel(20, RATE, 1).apply(x, RATE)
    error = np.abs(speed - 2 * np.pi * np.cos(2 * np.pi * T)) / (2 * np.pi)
    assert error[100:-100].max() < 2e-3
    assert error.max() < 0.05


def test_noise_gain_is_what_white_noise_gets():
    noise = np.random.default_rng(1).normal(size=200_000)
    for kernel in (FIVE_POINT, low_pass_kernel(20, RATE, 2)):
        result = kernel.apply(noise, RATE)[200:-200]
        assert np.std(result) == pytest.approx(kernel.noise_gain * RATE**kernel.order, rel=0.05)


def test_table_tells_the_differentiators_apart():
    rows = {row["name"]: row for row in differentiator_table(100.0, 5.0)}
    assert rows["five-point least squares, causal"]["phase"] == pytest.approx(-36.0)
    assert rows["central difference"]["noise"] > 2 * rows["five-point least squares"]["noise"]
    assert rows["central difference"]["amplitude"] == pytest.approx(np.sin(0.1 * np.pi) / (0.1 * np.pi))
    quietest = min(rows.values(), key=lambda row: row["noise"])
    assert quietest["name"].startswith("low-pass")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: low_pass_kernel(300, RATE), "must lie between 0 and half the rate"),
        (lambda: low_pass_kernel(float("nan"), RATE), "must lie between"),
        (lambda: polynomial_kernel(1, 3, 1), "does not fit 3 samples"),
        (lambda: low_pass_kernel(1, RATE).apply(np.zeros(100), RATE), "100 samples are too few for low-pass at 1 Hz"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
