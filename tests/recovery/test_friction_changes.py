"""Friction that differs between logs, or with temperature, is found within its stated std, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.estimate.leveled_data import LeveledRows
from dynident.information.row_source import accumulate_source
from dynident.report.fit import report_html
from tests.signals.made import Fourier, make_log, pinocchio_torque, stamps

NOISE = np.array([1.0, 2.0, 1.0, 0.2, 0.2, 0.1])  # [N·m]
TIME = stamps(12.0, 200.0)
LOSS = 0.02  # of viscous friction [1/K]


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("puma560")


@pytest.fixture(scope="module")
def viscous(robot):
    return np.array([robot.value_set()[f"Fv{j}"] for j in range(1, 7)])


def logs_of(robot, viscous, factors, seed=0):
    """A log for each row of factors on viscous friction, (n_logs, n_joints)."""
    rng, logs = np.random.default_rng(seed), []
    for number, factor in enumerate(factors):
        q, dq, ddq = Fourier.random(6, 10 * seed + number)(TIME)
        tau = pinocchio_torque(robot, q, dq, ddq) + (factor - 1.0) * viscous * dq
        logs.append(make_log(robot, TIME, q, tau + NOISE * rng.normal(size=tau.shape), source=f"log {number}"))
    return logs


def warm_log(robot, viscous, seed, loss, time):
    """A log whose joints warm up by 5 to 15 K, each in its own time."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = Fourier.random(6, seed)(time)
    rise, pace, start = rng.uniform(5.0, 15.0, 6), rng.uniform(0.3, 1.0, 6), rng.uniform(20.0, 30.0, 6)
    warm = start + rise * (1.0 - np.exp(-time[:, None] / (pace * time[-1])))
    factor = np.exp(-loss * (warm - np.round(warm.mean(0), 1)))
    tau = pinocchio_torque(robot, q, dq, ddq) + (factor - 1.0) * viscous * dq
    log = make_log(robot, time, q, tau + NOISE * rng.normal(size=tau.shape), source=f"seed {seed}")
    shown = np.round(warm + 0.05 * rng.normal(size=warm.shape), 1)
    return replace(log, channels={**log.channels, **{f"temp{j + 1}": shown[:, j] for j in range(6)}})


def off_by(fit, **more):
    """Errors of all parameters over their standard deviations, by name."""
    values = {**fit.robot.value_set(), **more}
    truth = dict(zip(fit.names, fit.base.base_values({n: x for n, x in values.items() if "T_" not in n}), strict=True))
    truth |= {name: x for name, x in more.items() if name in truth}
    return {name: (x - truth[name]) / s for name, x, s in zip(fit.names, fit.beta, fit.std, strict=True)}


FACTORS = np.array([[1.15, 1.1, 1.12, 1.15, 1.1, 1.15], [0.9, 0.92, 0.88, 0.9, 0.9, 0.93]])


@pytest.fixture(scope="module")
def levels_fit(robot, viscous):
    return di.identify(robot, logs_of(robot, viscous, FACTORS), check="off")


def test_levels_of_two_logs_are_found_and_links_come_from_both(levels_fit, viscous):
    fit, found = levels_fit, levels_fit.friction_levels
    assert found.logs == ("log 0", "log 1")
    truth = (FACTORS - FACTORS.mean(0)) * viscous
    assert (np.abs(found.values - truth) < 3.0 * found.std).all()
    assert (found.std < 0.05 * viscous).all()
    means = {f"Fv{j + 1}": x for j, x in enumerate(FACTORS.mean(0) * viscous)}
    off = np.array(list(off_by(fit, **means).values()))
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.3
    assert np.abs(off).max() < 4.0
    assert any("viscous friction differs between the training logs" in note for note in fit.notes)


def test_another_log_has_a_wider_band_by_the_spread_of_levels(levels_fit, robot, viscous):
    """What a log of yet another friction shows lies in the band that allows for it."""
    found, names = levels_fit.friction_levels, levels_fit.predictive_base.names
    spread = found.of_new_log(names)
    shared, own = found.spread**2
    place = names.index("Fv2")
    assert spread[place, place] == pytest.approx(1.5 * (shared + own) * found.means[1] ** 2)  # of two logs
    assert spread[place, names.index("Fv3")] == pytest.approx(1.5 * shared * found.means[1] * found.means[2])
    other = logs_of(robot, viscous, np.full((1, 6), 1.2), seed=7)[0]
    without = di.identify(robot, logs_of(robot, viscous, FACTORS), check="off", friction_levels="off")
    widths = [np.mean(np.subtract(*fit.torque_band(other)[::-1])) for fit in (levels_fit, without)]
    assert without.friction_levels is None
    assert widths[0] > 1.1 * widths[1]
    assert di.validate(levels_fit, other).coverage.min() > 0.9


def test_levels_are_kept_with_the_fit_and_shown(levels_fit, tmp_path):
    levels_fit.save(tmp_path)
    again = di.load_fit(tmp_path).friction_levels
    np.testing.assert_array_equal(again.values, levels_fit.friction_levels.values)
    assert again.as_dict() == levels_fit.friction_levels.as_dict()
    assert "Viscous friction of each log over its mean" in report_html(levels_fit)


def test_equations_and_factors_without_levels_are_the_same(levels_fit, robot, viscous):
    from dynident.estimate.leveled_data import FoundLevels
    from dynident.signals.observations import SignalOptions, observe
    from dynident.signals.rows import ObservedRows

    logs = logs_of(robot, viscous, FACTORS)
    rows = ObservedRows(tuple(observe(log, robot, SignalOptions(band=5.0)) for log in logs), levels_fit.base)
    levels = levels_fit.friction_levels
    n = levels.values.size
    plain = FoundLevels(levels, np.zeros((n, n))).taken_out(accumulate_source(rows))
    moved = accumulate_source(LeveledRows(rows, levels))
    for one, other in zip(plain.channel_factors(), moved.channel_factors(), strict=True):
        np.testing.assert_allclose(one.R.T @ one.R, other.R.T @ other.R, rtol=1e-8, atol=1e-8)


def test_logs_of_one_friction_have_no_levels(robot, viscous):
    assert di.identify(robot, logs_of(robot, viscous, np.ones((2, 6))), check="off").friction_levels is None


def test_friction_that_thins_with_temperature_is_found(robot, viscous):
    log = warm_log(robot, viscous, 0, LOSS, stamps(30.0, 200.0))
    fit = di.identify(robot, log, friction="basic", check="off")
    found = [name for name in fit.names if name.startswith("FvT_")]
    assert len(found) >= 4
    truth = {f"FvT_{j + 1}": -LOSS * x for j, x in enumerate(viscous)} | {f"FcT_{j}": 0.0 for j in range(1, 7)}
    off = np.array(list(off_by(fit, **truth).values()))
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.3
    assert np.abs(off).max() < 4.0
    assert any("viscous friction changes with the temperature of the joints" in note for note in fit.notes)
    # Prediction takes the temperatures of a log, and says where there are none.
    same = replace(log, digest="other", label="other", source="other")
    bare = replace(same, channels={name: x for name, x in log.channels.items() if not name.startswith("temp")})
    warm, cold = (di.validate(fit, one) for one in (same, bare))
    assert not any("temperatures" in words for words in warm.warnings)
    assert any("other: has no temperatures (temp1, ..) of all joints" in words for words in cold.warnings)
    assert warm.relative_error < cold.relative_error


def test_temperature_that_does_nothing_is_no_parameter(robot, viscous):
    fit = di.identify(robot, warm_log(robot, viscous, 1, 0.0, stamps(20.0, 200.0)), friction="basic", check="off")
    assert not any(name.startswith(("FvT", "FcT")) for name in fit.names)
    assert not any("temperature" in note for note in fit.notes)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_found_where_friction_does_not_change(robot, viscous, seed):
    time = stamps(20.0, 200.0)
    logs = [
        replace(warm_log(robot, viscous, 100 + 2 * seed + number, 0.0, time), label=f"log {number}")
        for number in range(2)
    ]
    fit = di.identify(robot, logs, check="off")
    assert fit.friction_levels is None
    assert not any(name.startswith(("FvT", "FcT")) for name in fit.names)
