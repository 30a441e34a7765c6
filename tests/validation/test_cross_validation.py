from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate.estimators import OrdinaryLeastSquares, WeightedLeastSquares
from dynident.estimate.records import CrossValidation
from dynident.information.row_source import GivenRows, accumulate_source
from dynident.validation import cross_validate
from dynident.validation.cross_validation import folds_of, selection_folds
from dynident.validation.thresholds import THRESHOLDS
from tests.estimate.test_estimators import SIGMA, TRUTH, arrays, coordinates
from tests.estimate.test_friction_view import friction_log

ONE = np.ones(3)


def info(seed=0, n=300, label="log", segment=None, **options):
    return accumulate_source(GivenRows(*arrays(seed, n, **options), coordinates(), label=label, segment=segment))


class TestFolds:
    def test_each_log_is_left_out_once(self):
        joint = info(0, label="a", segment=100) + info(1, label="b") + info(2, label="c", segment=150)
        folds = folds_of(joint)
        assert [fold.label for fold in folds] == ["a", "b", "c"]
        assert [len(fold.left_out) for fold in folds] == [3, 1, 2]
        assert sorted(i for fold in folds for i in fold.left_out) == list(range(6))
        assert not any(fold.unused for fold in folds)

    @pytest.mark.parametrize("segments", [4, 5, 9, 10, 32])
    def test_blocks_of_one_log_with_gaps_beside_them(self, segments):
        folds = folds_of(info(n=20 * segments, segment=20))
        assert len(folds) == min(THRESHOLDS.max_blocks, segments // 2)
        assert [i for fold in folds for i in fold.left_out] == list(range(segments))
        for fold in folds:
            own = (fold.left_out[0] - 1, fold.left_out[-1] + 1)
            assert fold.unused == tuple(i for i in own if 0 <= i < segments)
            assert len(fold.left_out) + len(fold.unused) < segments

    @pytest.mark.parametrize("segments", [1, 2, 3])
    def test_one_short_log_has_none(self, segments):
        assert folds_of(info(n=20 * segments, segment=20)) == []
        assert cross_validate(info(n=20 * segments, segment=20), WeightedLeastSquares(), ONE) is None


class TestSelectionFolds:
    def test_whole_logs_where_there_are_three(self):
        data = info(0, label="a", segment=100) + info(1, label="b") + info(2, label="c", segment=150)
        folds = selection_folds(data, {label: label for label in "abc"})
        assert [fold.label for fold in folds] == ["a", "b", "c"]
        assert not any(fold.unused for fold in folds)

    def test_blocks_with_gaps_of_one_log(self):
        data = info(n=320, segment=20)
        folds = selection_folds(data, {"log": "log"})
        assert len(folds) == THRESHOLDS.selection_blocks
        assert sorted(i for fold in folds for i in fold.left_out) == list(range(len(data.segments)))
        for fold in folds:
            for i in fold.unused:
                assert i + 1 in fold.left_out or i - 1 in fold.left_out

    def test_two_views_of_one_experiment_are_left_out_together(self):
        data = info(0, label="a") + info(1, label="b") + info(2, label="c") + info(3, label="d")
        folds = selection_folds(data, {"a": "a", "b": "a", "c": "c", "d": "d"})
        assert [fold.label for fold in folds] == ["a", "c", "d"]


class TestErrors:
    def test_logs(self):
        parts = [info(seed, label=f"log{seed}") for seed in range(3)]
        found = cross_validate(sum(parts[1:], start=parts[0]), WeightedLeastSquares(), ONE)
        assert (found.over, found.labels) == ("logs", ("log0", "log1", "log2"))
        assert found.errors.shape == (3, 3)
        W, tau = arrays(1)
        rest = WeightedLeastSquares().fit(parts[0] + parts[2]).values_
        off = tau - W @ rest
        typical = np.sqrt(np.mean([(arrays(seed)[1] ** 2).mean(0) for seed in range(3)], axis=0))  # over all logs
        rms = np.sqrt((off**2).mean(0))
        np.testing.assert_allclose(found.errors[1], rms / typical)
        assert found.totals[1] == pytest.approx(np.linalg.norm(rms) / np.linalg.norm(typical))
        plain = found.as_dict()
        assert plain["mean"] == pytest.approx(found.totals.mean())
        assert [fold["left_out"] for fold in plain["folds"]] == ["log0", "log1", "log2"]

    def test_blocks(self):
        whole = info(n=400, segment=40)
        found = cross_validate(whole, OrdinaryLeastSquares(), ONE)
        assert (found.over, len(found.labels)) == ("blocks", 5)
        W, tau = arrays(0, 400)
        keep = np.ones(400, dtype=bool)
        keep[:120] = False  # the first block and the segment beside it
        rest = OrdinaryLeastSquares().fit(GivenRows(W[keep], tau[keep], coordinates())).values_
        off = tau[:80] - W[:80] @ rest
        typical = np.sqrt((tau**2).mean(0))  # a block may have next to no torque
        np.testing.assert_allclose(found.errors[0], np.sqrt((off**2).mean(0)) / typical)

    def test_a_block_without_torque_is_over_that_of_the_others(self):
        W, tau = arrays(0, 400)
        W[:80], tau[:80] = 0.1 * W[:80], 0.0
        found = cross_validate(
            accumulate_source(GivenRows(W, tau, coordinates(), segment=40)), OrdinaryLeastSquares(), ONE
        )
        assert found.totals[0] < 1.0
        assert np.isfinite(found.errors).all()

    def test_a_log_that_is_different_stands_out(self):
        parts = [info(seed, label=f"log{seed}", noise=0.01 * SIGMA) for seed in range(3)]
        odd = info(3, label="odd", noise=0.01 * SIGMA, truth=TRUTH + [0.0, 0.2, 0.0, 0.0])
        found = cross_validate(sum(parts, start=odd), WeightedLeastSquares(), ONE)
        assert found.labels[0] == "odd"
        assert found.totals[0] > 1.5 * found.totals[1:].max()

    def test_estimator_given_stays_as_it_was(self):
        estimator = WeightedLeastSquares()
        cross_validate(info(n=400, segment=40), estimator, ONE)
        assert not hasattr(estimator, "values_")

    def test_logs_called_block(self):
        found = cross_validate(info(0, label="block 1") + info(1, label="block 2"), WeightedLeastSquares(), ONE)
        assert found.over == "logs"


class TestCoverage:
    def test_near_95_percent_for_white_noise(self):
        data = (info(seed, n=500, segment=50) for seed in range(16))
        shares = [cross_validate(one, WeightedLeastSquares(), ONE).coverage for one in data]
        assert np.mean(shares) == pytest.approx(0.954, abs=0.04)

    def test_deviations_that_are_too_small_show(self):
        """Noise that repeats itself nine times: stated standard deviations are three times too small."""
        shares, allowed = [], []
        for seed in range(8):
            W, _ = arrays(seed, 540)
            noise = np.repeat(np.random.default_rng(seed).normal(size=(60, 3)), 9, axis=0) * SIGMA
            W = np.repeat(W[:60], 9, axis=0)
            data = accumulate_source(GivenRows(W, W @ TRUTH + noise, coordinates(), segment=54))
            shares.append(cross_validate(data, WeightedLeastSquares(), ONE).coverage)
            allowed.append(cross_validate(data, WeightedLeastSquares(), 9.0 * ONE).coverage)
        assert np.mean(shares) < 0.65
        assert np.mean(allowed) > 0.85  # few rows: the standard deviation itself is not well known

    def test_a_fold_that_determines_nothing_alone(self):
        """Too few rows in one log for its own estimate: errors are there, the coverage does without it."""
        long, tiny = info(0, label="long", n=300, segment=100), info(1, label="tiny", n=1)
        found = cross_validate(long + tiny + info(2, label="more"), WeightedLeastSquares(), ONE)
        assert found.errors.shape == (3, 3)
        assert np.isfinite(found.totals).all()
        assert found.coverage is not None


def test_the_rest_must_be_solvable():
    """Two logs of which one knows too little: leaving out the other is an honest failure or an honest error."""
    tiny = info(1, label="tiny", n=1)
    try:
        found = cross_validate(info(0, label="long") + tiny, WeightedLeastSquares(), ONE)
    except di.DynidentError as error:
        pytest.fail(f"cross-validation must not stop an identification: {error}")
    assert found is not None


@pytest.fixture(scope="module")
def fit():
    robot = di.load_robot("pendulum-2")
    return di.identify(robot, [friction_log(robot, seed, seconds=12.0) for seed in range(3)], friction="basic", delay=0)


class TestIntervals:
    def test_they_hold_where_the_model_is_right(self, fit):
        crossed = fit.cross_validation
        assert ((crossed.interval_coverage > 0.9) & (crossed.interval_coverage < 0.99)).all()
        assert not any("intervals of torque" in note for note in fit.notes)

    def test_levels_need_no_rows(self):
        """Without rows, the level is the RMS of what was held out: that of noise, where noise is all there is."""
        parts = [info(seed, label=f"log{seed}") for seed in range(3)]
        found = cross_validate(sum(parts[1:], start=parts[0]), WeightedLeastSquares(), ONE)
        np.testing.assert_allclose(found.levels, SIGMA, rtol=0.15)
        assert found.interval_coverage is None

    def test_narrow_ones_are_named_and_widened(self, fit):
        """Friction that differs from log to log: each alone is fitted well, and says nothing of the next."""
        robot = fit.robot
        logs = [friction_log(robot, seed, factor=factor) for seed, factor in ((1, 1.0), (2, 1.0), (3, 1.6))]
        drifting = di.identify(robot, logs, friction="basic", delay=0.0, check="off")
        crossed = drifting.cross_validation
        assert (crossed.interval_coverage < THRESHOLDS.min_interval_coverage).any()
        (note,) = [
            note for note in drifting.notes if "intervals of torque are as wide as cross-validation asks" in note
        ]
        narrow = [
            name
            for name, share in zip(robot.joint_names, crossed.interval_coverage, strict=True)
            if share < THRESHOLDS.min_interval_coverage
        ]
        assert all(f"{name} " in note for name in narrow)
        assert (drifting.levels > 1.2 * drifting.sigma).any()

    def test_they_come_back_from_plain_data(self, fit):
        crossed = fit.cross_validation
        again = CrossValidation.from_dict(crossed.as_dict())
        np.testing.assert_array_equal(again.interval_coverage, crossed.interval_coverage)
