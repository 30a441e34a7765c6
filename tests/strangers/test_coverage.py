"""Stated standard deviations hold over friction, rates, repeats and delays: `benchmarks/coverage.py`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from tests.strangers.coverage import DESIGN, LEAST, LEVELS, OTHER_FRICTION, SEEDS, Combination, parameters

LEAST_RMS, MOST_RMS = 0.85, 1.2  # of errors in standard deviations, pooled over seeds
QUICK = (3, 10)  # combinations that take a second
QUICK_OTHER = (1, 2, 6)  # of other friction: load (scara), both (slides), falling (slides)
INDEPENDENT = 0.3  # of the errors of a fit: those of its parameters are correlated


def test_every_two_levels_of_any_two_factors_are_paired():
    rows = [[getattr(one, field) for field in list(Combination.__dataclass_fields__)[: len(LEVELS)]] for one in DESIGN]
    assert len(rows) >= LEAST
    for i, j in itertools.combinations(range(len(LEVELS)), 2):
        assert {(row[i], row[j]) for row in rows} == set(itertools.product(LEVELS[i], LEVELS[j]))


@pytest.mark.parametrize("friction", [None, "basic"])
@pytest.mark.parametrize("number", QUICK)
def test_errors_of_one_seed_are_of_the_size_that_is_stated(number, friction):
    found = parameters(DESIGN[number], 0, friction)
    n = INDEPENDENT * len(found.off)
    least, most = np.sqrt(chi2.ppf([0.001, 0.999], n) / n)  # what chance leaves
    assert LEAST_RMS * least < found.rms < MOST_RMS * most, str(found)


@pytest.mark.parametrize("number", QUICK_OTHER)
def test_friction_that_no_parameter_holds_makes_them_uncertain(number):
    """Errors of Fc were up to 160 standard deviations, and the rms 2 to 35."""
    found = parameters(OTHER_FRICTION[number], 0, "basic")
    n = INDEPENDENT * len(found.off)
    least, most = np.sqrt(chi2.ppf([0.001, 0.999], n) / n)
    assert LEAST_RMS * least < found.rms < MOST_RMS * most, str(found)
    assert np.abs(found.off).max() < 4.0, str(found)


@pytest.mark.full
@pytest.mark.parametrize("friction", [None, "basic"])
def test_errors_over_seeds_are_of_the_size_that_is_stated(friction):
    """Each combination but for what chance leaves of three seeds, and all together."""
    every = []
    for one in DESIGN:
        first, *others = (parameters(one, seed, friction) for seed in SEEDS)
        found = sum(others, first)
        n = INDEPENDENT * len(found.off)
        least, most = np.sqrt(chi2.ppf([0.001, 0.999], n) / n)
        assert LEAST_RMS * least < found.rms < MOST_RMS * most, f"{one}: {found}"
        every.append(found.off)
    assert 0.9 < np.sqrt(np.mean(np.concatenate(every) ** 2)) < 1.1
