"""The ten numbers: derivatives, support, and bodies that cannot exist."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.payload import quantities as module
from dynident.payload.quantities import classical_jacobian, classical_numbers
from tests.payload.payloads import BODY, TRUTH

NOTHING_OPEN = np.zeros((10, 0))


def payload_numbers(chi, covariance, directions, units=1.0):
    return module.payload_numbers(chi, covariance, directions, np.full(10, units))


def certain(relative: float = 1e-3) -> np.ndarray:
    """A covariance in which every standard parameter is known alike."""
    return np.diag(np.full(10, relative**2) * 1e-2)


def test_numbers_of_a_known_body():
    expected = [2.5, 0.03, -0.02, 0.08, 0.02, 0.025, 0.015, 0.002, -0.003, 0.001]
    np.testing.assert_allclose(TRUTH, expected, atol=1e-14)


def test_the_jacobian_is_that_of_differences():
    chi, step = np.array(BODY.standard), 1e-6
    J = np.column_stack(
        [(classical_numbers(chi + d) - classical_numbers(chi - d)) / (2.0 * step) for d in step * np.eye(10)]
    )
    np.testing.assert_allclose(classical_jacobian(chi), J, atol=1e-8)


def test_deviations_by_sampling():
    rng = np.random.default_rng(0)
    root = 1e-3 * rng.normal(size=(10, 10)) * 0.1
    numbers, _ = payload_numbers(BODY.standard, root @ root.T, NOTHING_OPEN)
    drawn = np.array([classical_numbers(BODY.standard + root @ rng.normal(size=10)) for _ in range(4000)])
    stated = np.array([one.std for one in numbers])
    np.testing.assert_allclose(stated, drawn.std(0), rtol=0.06)


def test_a_number_with_too_large_a_deviation_is_withheld_and_the_others_stay():
    covariance = certain()
    covariance[5, 5] = 1.0  # ZZ
    numbers, warnings = payload_numbers(BODY.standard, covariance, NOTHING_OPEN)
    assert [one.name for one in numbers if one.value is None] == ["Izz"]
    assert warnings == (
        "Izz (std 1) withheld: standard deviations above 30 % of the largest moment of inertia that is known (0.025 "
        "kg·m²); move the payload faster and through more poses, or record longer",
    )


def test_a_moment_that_is_noise_is_no_scale_for_the_others():
    chi = np.array(BODY.standard)
    chi[0] += 0.2  # XX, with a standard deviation of 0.15
    numbers, warnings = payload_numbers(chi, np.diag([0.15**2, *(0.02**2,) * 5, *(1e-4**2,) * 4]), NOTHING_OPEN)
    assert [one.value is None for one in numbers] == [False] * 4 + [True] * 6
    assert "above 30 % of every moment of inertia" in warnings[0]


def test_a_direction_that_is_open_takes_only_what_it_moves():
    direction = np.zeros((10, 1))
    direction[[0, 3], 0] = 1.0, -1.0  # XX against YY
    numbers, _ = payload_numbers(BODY.standard, certain(), direction)
    assert [one.name for one in numbers if one.value is None] == ["Ixx", "Iyy"]


def test_rounding_in_a_direction_opens_nothing():
    """Columns without effect are not determined; what singular vectors have of the others there is rounding."""
    directions = np.eye(10)[:, [2, 4]] + 1e-12
    for units in (1.0, 1e4):
        numbers, _ = payload_numbers(BODY.standard, certain(), directions, units)
        assert [one.name for one in numbers if one.value is None] == ["Ixz", "Iyz"]


def test_an_open_mass_takes_all():
    numbers, warnings = payload_numbers(BODY.standard, certain(), np.eye(10)[:, 9:])
    assert all(one.value is None for one in numbers)
    assert len(warnings) == 1


@pytest.mark.parametrize("mass", [-0.5, 0.0, 1e-4])
def test_no_mass_no_numbers(mass):
    chi = np.array(BODY.standard)
    chi[9] = mass
    numbers, warnings = payload_numbers(chi, certain(), NOTHING_OPEN)
    assert all(one.value is None for one in numbers)
    assert "cannot be distinguished from no payload" in warnings[0]


class TestPhysics:
    # Three moments of which the largest is beyond the sum of the others by 0.01.
    BODY = di.payload.Payload.from_standard({"XX": 0.05, "YY": 0.02, "ZZ": 0.02, "M": 2.0})

    def test_a_body_that_deviations_allow_is_kept_with_a_warning(self):
        numbers, warnings = payload_numbers(self.BODY.standard, np.diag(np.full(10, 4e-3**2)), NOTHING_OPEN)
        assert numbers[4].value == pytest.approx(0.05)
        (warning,) = warnings
        assert "fall short of the largest by 0.01 kg·m², which its standard deviations allow" in warning

    def test_a_body_far_from_physics_is_withheld(self):
        numbers, warnings = payload_numbers(self.BODY.standard, np.diag(np.full(10, 1e-3**2)), NOTHING_OPEN)
        assert [one.value is None for one in numbers] == [False] * 4 + [True] * 6
        assert "no body has such inertia" in warnings[0]
        assert "deviations; the model misses something" in warnings[0]

    @pytest.mark.parametrize(("std", "kept"), [(8e-3, True), (2e-3, False)])
    def test_a_negative_moment_beside_one_that_is_not_known(self, std, kept):
        body = di.payload.Payload.from_standard({"XX": 0.05, "YY": 0.05, "ZZ": -0.01, "M": 2.0})
        covariance = np.diag([std**2] * 10)
        covariance[0, 0] = 1.0
        numbers, warnings = payload_numbers(body.standard, covariance, NOTHING_OPEN)
        assert numbers[4].value is None
        assert (numbers[6].value is not None) == kept
        assert "Izz is negative, -0.01 kg·m²" in warnings[-1]

    def test_exact_numbers_without_noise(self):
        flat = di.payload.Payload(
            1.0, (0.0, 0.0, 0.1), (0.02, 0.0, 0.0, 0.02, 0.0, 0.04)
        )  # a plate: on the edge of physics
        numbers, warnings = payload_numbers(flat.standard, np.zeros((10, 10)), NOTHING_OPEN)
        assert warnings == ()
        assert numbers[6].value == pytest.approx(0.04)
        _, warnings = payload_numbers(self.BODY.standard, np.zeros((10, 10)), NOTHING_OPEN)
        assert "no body has such inertia" in warnings[0]

    def test_a_rod_is_physical(self):
        rod = di.payload.Payload(1.0, (0.0, 0.0, 0.1), (0.02, 0.0, 0.0, 0.02, 0.0, 1e-5))
        numbers, warnings = payload_numbers(rod.standard, certain(), NOTHING_OPEN)
        assert warnings == ()
        assert numbers[6].value == pytest.approx(1e-5)
