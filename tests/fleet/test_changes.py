"""Change points: rates of false alarms of days that follow each other, drift that is found, and tails of chance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.stats import chi2

from dynident.fleet.changes import _ChangeScan, daily_series, find_change, tail_chance

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
N_DAYS = 50


def history(seed, *, drift=0.0, memory=0.0, thinning=0.02, known=True):
    """Friction of some days: temperature cycles, noise that lasts, perhaps a drift from day 20 on, over 25 days."""
    rng = np.random.default_rng(seed)
    days = np.arange(N_DAYS)
    temperature = 30.0 + 8.0 * np.sin(2.0 * np.pi * days / 30.0) + rng.normal(0.0, 2.0, N_DAYS)
    noise = rng.normal(0.0, 1.0, N_DAYS)
    for k in range(1, N_DAYS):
        noise[k] = memory * noise[k - 1] + np.sqrt(1.0 - memory**2) * noise[k]
    values = 10.0 * np.exp(-thinning * (temperature - 30.0)) + 0.15 * noise
    values += drift * np.clip((days - 20.0) / 25.0, 0.0, 1.0)
    dates = [(START + timedelta(days=int(day))).isoformat() for day in days]
    above = temperature - 30.0
    covariates = np.column_stack([above, above**2]) if known else np.zeros((N_DAYS, 0))
    return daily_series(dates, values, np.full(N_DAYS, 0.05), covariates, ("T", "T^2")[: covariates.shape[1]])


def test_drift_is_found_with_its_date_and_size():
    found = find_change(history(3, drift=2.0))
    assert found.shape == "ramp"
    assert found.chance < 1e-6
    assert abs((datetime.fromisoformat(found.date).date() - START.date()).days - 20) <= 4
    assert abs(found.size - 2.0) < 4.0 * found.std + 0.1
    assert found.level == pytest.approx(10.0, rel=0.05)


def test_a_step_is_found():
    series = history(5)
    values = series.values + 1.0 * (series.days >= 30.0)
    found = find_change(type(series)(series.days, values, series.covariates, series.names, series.start))
    assert found.shape == "step"
    assert (datetime.fromisoformat(found.date).date() - START.date()).days == pytest.approx(30, abs=1)
    assert found.size == pytest.approx(1.0, abs=0.2)
    assert found.chance < 1e-5


def test_temperature_that_is_not_known_hides_a_drift():
    warm = [find_change(history(seed, drift=1.0)).chance for seed in range(4)]
    blind = [find_change(history(seed, drift=1.0, known=False)).chance for seed in range(4)]
    assert np.median(warm) < 1e-6
    assert min(blind) > 1e-3


@pytest.mark.full
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_false_alarms_come_at_the_rate_that_is_stated(memory):
    """At a level of 5 %, of 200 histories 10 are expected; 22 or more have a chance of 1e-3 at twice that rate."""
    chances = np.array([find_change(history(seed, memory=memory)).chance for seed in range(200)])
    assert np.sum(chances < 0.05) <= 22
    assert np.sum(chances < 0.005) <= 6


def test_the_tail_of_chance_goes_on_beyond_the_simulations():
    null = chi2(1).rvs(1000, random_state=np.random.default_rng(1))
    for statistic in (1.0, 2.0, 4.0):
        assert tail_chance(statistic, null) == pytest.approx(chi2(1).sf(statistic), rel=0.25)
    # An exponential bounds the tail of chi-square, which falls faster at first: never too small a chance.
    for statistic in (9.0, 15.0, 20.0):
        assert 0.7 < tail_chance(statistic, null) / chi2(1).sf(statistic) < 30.0
    assert tail_chance(-1.0, null) == 1.0


def test_the_statistic_is_the_likelihood_ratio():
    """By hand, for independent days: n log of the ratio of the residual squares."""
    series = history(11, drift=1.0)
    found = find_change(series)
    n = len(series.days)
    constant = np.column_stack([np.ones(n), series.covariates])

    def square(design):
        x = np.linalg.lstsq(design, series.values, rcond=None)[0]
        return float(np.sum((series.values - design @ x) ** 2))

    whole = square(constant)
    best = max(
        n * np.log(whole / square(np.column_stack([constant, own]))) for _, _, own in _ChangeScan.of(series).shapes
    )
    if found.time_constant == 0.0:
        assert found.statistic == pytest.approx(best, rel=1e-9)
    free = _ChangeScan.of(series).statistics(series.values[:, None])
    assert free.statistic[0] == pytest.approx(found.statistic)


def test_logs_of_a_day_are_one_value_and_few_days_none():
    dates = [(START + timedelta(hours=6 * k)).isoformat() for k in range(60)]
    values = np.arange(60.0)
    series = daily_series(dates, values, np.ones(60), np.zeros((60, 1)), ("constant",))
    assert len(series.days) == 16
    assert series.names == ()  # what does not vary explains nothing
    assert series.values[1] == pytest.approx(np.mean(values[2:6]))
    assert daily_series(dates[:8], values[:8], np.ones(8), np.zeros((8, 0)), ()) is None
