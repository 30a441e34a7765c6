"""Compress once: passes over the rows are counted, and a wide pass answers what a narrow one would have said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.estimate.estimators import ESTIMATORS
from dynident.identifiability.base import base_parameters
from dynident.information.row_source import accumulate_source
from dynident.pipeline import preprocessing, training_rows
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.training_rows import TrainingRows, _n_shown
from dynident.signals import ObservedRows, SignalOptions, observe

DEMO = Path(__file__).parents[2] / "examples" / "demo"
BASIC = "rigid,Ia,Fv,Fc(0.02),Fo"


@pytest.fixture(scope="module")
def robot():
    return di.load_robot(DEMO / "arm.yaml")


@pytest.fixture(scope="module")
def logs(robot):
    return [di.read_log(DEMO / f"fourier_{k}.csv.gz", robot) for k in (1, 2)]


@pytest.fixture(scope="module")
def observed(robot, logs):
    return tuple(observe(log, robot, SignalOptions(band=6.0, delay=0.004)) for log in logs)


def quiet(*done):
    """No progress is shown."""


@pytest.fixture
def counted(monkeypatch):
    """The training rows of every identification that a test makes."""
    made: list[TrainingRows] = []

    class Counted(TrainingRows):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(preprocessing, "TrainingRows", Counted)
    return made


class TestPasses:
    """The survey and the preview for the delay come on top: one pass, and the first rows of each log.

    Parameters: one pass in search of the widths of dry friction (first minutes), one to three at these widths; where
    they predict too, one over rows in motion that evaluates them. Predictions: one over basic columns, one over all.
    """

    @pytest.mark.parametrize(
        ("options", "most"),
        [
            ({"terms": BASIC}, 2),
            ({"friction": "basic"}, 5),
            ({"friction": "basic", "estimator": "ordinary", "essential": 0.3}, 5),
            ({"friction": "generic"}, 3),
            ({}, 6),
        ],
    )
    def test_of_an_identification(self, robot, logs, counted, options, most):
        di.identify(robot, logs, check="off", **options)
        assert sum(rows.n_passes for rows in counted) <= most

    def test_long_logs_select_on_their_first_part(self, robot, logs, counted, monkeypatch):
        monkeypatch.setattr(training_rows, "THRESHOLDS", replace(training_rows.THRESHOLDS, selection_s=6.0))
        di.identify(robot, logs, check="off", friction="generic")
        (rows,) = [one for one in counted if one.n_passes]
        assert rows.n_passes <= 4
        assert not np.isinf(rows._length(6.0))


class TestRestriction:
    def test_factors_of_a_wide_pass_answer_for_fewer_terms(self, robot, observed):
        wide = base_parameters(robot, f"{BASIC},stop(0.003),quadratic,cubic")
        rows = TrainingRows(observed, FactorCache(None), quiet)
        rows.information(wide)
        for terms in (BASIC, f"{BASIC},cubic", f"{BASIC},quadratic,stop(0.003)"):
            base = base_parameters(robot, terms)
            found, direct = rows.information(base), accumulate_source(ObservedRows(observed, base))
            assert found.names == base.names
            ours, theirs = (ESTIMATORS["weighted"]().fit(data) for data in (found, direct))
            np.testing.assert_allclose(ours.values_, theirs.values_, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(ours.std_, theirs.std_, rtol=1e-8)
        assert rows.n_passes == 1

    def test_terms_that_were_not_there_need_another_pass(self, robot, observed):
        rows = TrainingRows(observed, FactorCache(None), quiet)
        rows.information(base_parameters(robot, BASIC))
        rows.information(base_parameters(robot, f"{BASIC},cubic"))
        assert rows.n_passes == 2

    def test_another_point_needs_another_pass(self, robot, observed):
        rows, base = TrainingRows(observed, FactorCache(None), quiet), base_parameters(robot, f"{BASIC},load")
        point = di.parameters(robot, "rigid")
        rows.information(base, point)
        rows.information(base, 1.1 * point)
        rows.information(base, point)
        rows.information(base_parameters(robot, BASIC))  # these columns are the same around any point
        assert rows.n_passes == 2


class TestKeptRows:
    def test_are_those_of_a_filter_pass(self, robot, observed):
        rows = TrainingRows(observed, FactorCache(None), quiet)
        rows.information(base_parameters(robot, f"{BASIC},cubic,quadratic"))
        base = base_parameters(robot, f"{BASIC},quadratic")
        kept, direct = (accumulate_source(x) for x in (rows.rows(base), ObservedRows(observed, base)))
        for ours, theirs in zip(kept.channel_factors(), direct.channel_factors(), strict=True):
            assert ours.columns == theirs.columns
            np.testing.assert_allclose(np.abs(ours.R), np.abs(theirs.R), rtol=1e-7, atol=1e-9)
        label = observed[0].log.label
        assert {block.log for block in rows.rows(base).of_logs({label}).blocks()} == {label}

    def test_too_many_are_filtered_again(self, robot, observed, monkeypatch):
        monkeypatch.setattr(training_rows, "KEPT_BYTES", 1e3)
        rows, base = TrainingRows(observed, FactorCache(None), quiet), base_parameters(robot, BASIC)
        rows.information(base)
        assert isinstance(rows.rows(base), ObservedRows)


def test_stale_factors_are_removed(robot, logs, tmp_path):
    options = {"friction": "basic", "check": "off", "delay": 0.004, "velocity_source": "position"}
    log = logs[0].samples(slice(800))
    di.identify(robot, log, store=tmp_path, band=6.0, **options)
    first = set(tmp_path.glob("*.npz"))
    cache = FactorCache(tmp_path)
    di.identify(robot, log, store=cache, band=5.0, **options)
    assert first < set(tmp_path.glob("*.npz"))  # of a folder that may serve several fits nothing goes
    cache.remove_stale()
    second = set(tmp_path.glob("*.npz"))
    assert second
    assert first.isdisjoint(second)


def test_the_folder_of_a_fit_has_its_own_factors_alone(tmp_path):
    words = [
        "identify",
        str(DEMO / "arm.yaml"),
        str(DEMO / "fourier_1.csv.gz"),
        "--friction",
        "basic",
        "--check",
        "off",
        "--window",
        "0:8",
    ]
    made = []
    for band in ("6", "5"):
        assert main([*words, "--band", band, "--quiet", "-o", str(tmp_path)]) == 0
        made.append(set((tmp_path / "factors").glob("*.npz")))
    assert all(made)
    assert made[0].isdisjoint(made[1])


def test_equations_are_counted_for_what_the_motion_shows(robot, logs):
    """Of joints that stand still nothing is to be learned, so that nothing is asked for them."""
    last = robot.position_names[-1]
    still = {name: np.full_like(x, x[0]) if name.startswith("q") and name != last else x for name, x in
             logs[0].channels.items()}  # fmt: skip
    base = base_parameters(robot, BASIC)
    held, moved = (
        _n_shown(accumulate_source(ObservedRows((observe(log, robot, SignalOptions(band=6.0)),), base)))
        for log in (replace(logs[0], channels=still, digest="held"), logs[0])
    )
    assert moved == base.n
    assert 3 <= held <= base.n // 2
