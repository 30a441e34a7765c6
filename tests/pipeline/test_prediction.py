"""The predictive model: all friction under priors, averaged with basic friction, evaluated on what was held out."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.estimate.friction_parts import friction_curve
from dynident.pipeline.friction import predictive_groups
from dynident.pipeline.prediction import averaging_weight, fit_predictive, nearest_feasible
from dynident.pipeline.superset import LeftOutErrors, prediction_folds
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.repeats import motion_states
from dynident.validation.cross_validation import Fold, rest_of
from dynident.validation.residuals import compare
from tests.pipeline.made import BASIC, STOP, made, training
from tests.signals.made import Fourier, exact_torque, make_log, stamps


def fitted(robot, *logs, **options):
    data = training(robot, *logs, **options)
    return fit_predictive(data, data.basic)


def held_out_error(robot, found, log, band=5.0):
    (one,) = training(robot, log, band=band).train
    return compare([found.model], one).errors[0].relative


class TestEvidence:
    def test_what_is_there_has_a_scale_and_what_is_not_is_gone(self, robot):
        found = fitted(robot, made(robot, STOP))
        determined = {one.group: one.determined / one.n_columns for one in found.selection.groups}
        assert determined["stop(0.003)"] > 0.7
        for group in ("cubic", "quadratic", "loadv", "harmonics(1,2)"):
            assert determined.get(group, 0.0) < 0.35
        assert "jerk" not in determined
        assert found.weight > 0.6
        assert len(found.base.names) == found.base.n == len(found.estimate.values)
        assert set(found.selection.terms) == {term.key for term in found.base.terms if term.name not in BASIC}

    def test_nothing_in_it_grows_faster_than_the_velocity(self, robot):
        """A curve over the velocity bends half way to the largest one, and goes on as a line."""
        log = made(robot, STOP)
        groups = {group.key for group in predictive_groups(training(robot, log).basic, np.array([1.0, 3.0, 2.0]))}
        assert groups.isdisjoint({"quadratic", "cubic", "loadv", "jerk"})
        assert {"sign(0.2)", "sign(0.005)", "sign(1.5)"} <= groups
        bent = training(robot, made(robot, {"quadratic_2": 3.0}))
        found = fit_predictive(bent, bent.basic, resolve_terms("quadratic"))
        assert "quadratic" in {one.group for one in found.selection.groups}

    def test_a_curve_holds_in_faster_motion(self, robot):
        """Friction that bends, predicted at twice the trained velocities."""
        curve = {f"quadratic_{j}": 3.0 for j in (1, 2, 3)}
        log, faster = made(robot, curve), made(robot, curve, 2, pace=2.0)
        basic = di.identify(robot, log, friction="basic", band=5.0, check="off", delay=0.0, velocity_source="position")
        assert held_out_error(robot, fitted(robot, log), faster) < 1.1 * held_out_error(robot, basic, faster)

    def test_predictions_of_another_motion_are_better_than_basic_ones(self, robot):
        log, other = made(robot, STOP), made(robot, STOP, 2)
        found = fitted(robot, log)
        basic = di.identify(robot, log, friction="basic", band=5.0, check="off", delay=0.0, velocity_source="position")
        assert held_out_error(robot, found, other) < 0.6 * held_out_error(robot, basic, other)

    def test_where_friction_is_basic_nothing_is_lost(self, robot):
        log, other = made(robot, {}), made(robot, {}, 2)
        found = fitted(robot, log)
        basic = di.identify(robot, log, friction="basic", band=5.0, check="off", delay=0.0, velocity_source="position")
        assert held_out_error(robot, found, other) < 1.1 * held_out_error(robot, basic, other)

    def test_seconds_of_data_go_further(self, robot):
        """Of six seconds, free parameters follow the noise."""
        ratios = []
        for seed in (1, 2, 3, 4):
            log, other = made(robot, {}, seed, 6.0, noise=0.1), made(robot, {}, seed + 10)
            free = di.identify(
                robot, log, friction="basic", band=5.0, check="off", delay=0.0, velocity_source="position"
            )
            found = fitted(robot, log)
            ratios.append(held_out_error(robot, found, other) / held_out_error(robot, free, other))
        assert np.exp(np.mean(np.log(ratios))) < 0.8

    def test_the_covariance_is_that_of_what_was_found(self, robot):
        found = fitted(robot, made(robot, STOP))
        assert found.estimate.covariance.shape == (found.base.n, found.base.n)
        assert (np.linalg.eigvalsh(found.estimate.covariance) > -1e-12).all()
        inflation = found.estimate.solve.variance_inflation
        assert (inflation >= 1.0).all()
        truth = dict(zip(robot_names(robot), robot_values(robot), strict=True))
        links = [name for name in found.base.names if name.startswith("MX")]
        for name in links:
            place = found.base.names.index(name)
            assert abs(found.estimate.values[place] - truth[name]) < 5.0 * found.estimate.std[place] + 0.02


def robot_names(robot):
    return di.base_parameters(robot, BASIC).names


def robot_values(robot):
    return di.base_parameters(robot, BASIC).base_values()


class TestFolds:
    def folds(self, robot, *logs):
        data = training(robot, *logs)
        information = data.rows.information(data.basic)
        labels = [one.log.label for one in data.train]
        return information, prediction_folds(information, motion_states(data.train), labels, 0.3)

    def test_blocks_of_one_log_with_gaps(self, robot):
        information, folds = self.folds(robot, made(robot, {}, seconds=15.0))
        assert 3 <= len(folds) <= THRESHOLDS.max_folds
        left_out = [i for fold in folds for i in fold.left_out]
        assert sorted(left_out) == list(range(len(information.segments)))
        for fold in folds:
            beside = {fold.left_out[0] - 1, fold.left_out[-1] + 1} & set(range(len(information.segments)))
            assert beside <= set(fold.unused)

    def test_every_log_keeps_a_part_of_itself(self, robot):
        logs = [made(robot, {}, seed, 6.0) for seed in range(1, 7)]
        information, folds = self.folds(robot, *logs)
        assert len(folds) == THRESHOLDS.max_folds
        for fold in folds:
            rest = {information.segments[i].label for i in rest_of(information, fold)}
            assert rest == {log.label for log in logs}

    def test_a_motion_that_was_recorded_twice_is_left_out_twice(self, robot):
        one, other = made(robot, {}, 1, 8.0), made(robot, {}, 2, 8.0)
        again = dataclasses.replace(one, label="again", digest="again")
        information, folds = self.folds(robot, one, other, again)
        for fold in folds:
            own, gone = ({information.segments[i].label for i in part} for part in (fold.left_out, fold.unused))
            twins = {one.label: again.label, again.label: one.label}
            assert gone - own == {twins[label] for label in own if label in twins} - own

    def test_a_motion_that_goes_on_and_on_still_has_folds(self, robot):
        """Ten periods: an eighth of the log is more than a period, all of which is there again."""
        t = stamps(100.0, 50.0)
        motion = Fourier.random(3, 1, base=0.1, harmonics=5)
        log = make_log(robot, t, motion(t)[0], exact_torque(robot, motion, t, BASIC))
        information, folds = self.folds(robot, log)
        assert len(folds) >= 3
        for fold in folds:
            assert len(rest_of(information, fold)) >= 0.25 * len(information.segments)
            assert len(fold.unused) > 2


class TestWeight:
    def errors(self, *products):
        products = np.array(products, dtype=float)[:, None]
        folds = tuple(Fold(str(i), (i,)) for i in range(len(products)))
        return LeftOutErrors(folds, products, np.ones((len(products), 1)), np.zeros((2, len(products), 1)))

    def test_the_better_model_has_more(self):
        better, worse = [[1.0, 1.0], [1.0, 4.0]], [[4.0, 1.0], [1.0, 1.0]]
        rich, basic = (averaging_weight(self.errors(*[own] * 8)) for own in (better, worse))
        assert rich > 0.9
        assert basic == pytest.approx(1.0 - rich)

    def test_errors_that_differ_cancel(self):
        opposite = [[1.0, -0.5], [-0.5, 1.0]]
        assert averaging_weight(self.errors(*[opposite] * 8)) == pytest.approx(0.5)

    def test_the_jackknife_gives_the_deviation_of_a_mean(self):
        x = np.random.default_rng(0).normal(size=12)
        without = (x.sum() - x) / 11.0
        folds = tuple(Fold(str(i), (i,)) for i in range(12))
        found = LeftOutErrors(folds, np.ones((12, 1, 1, 1)), np.ones((12, 1)), without[None, :, None])
        assert found.deviations(0)[0] == pytest.approx(x.std(ddof=1) / np.sqrt(12.0))

    def test_a_single_fold_says_little(self):
        better = [[1.0, 1.0], [1.0, 4.0]]
        assert 0.5 < averaging_weight(self.errors(better)) < averaging_weight(self.errors(*[better] * 8))

    def test_one_fold_that_explodes_does_not_decide(self):
        better, wild = [[1.0, 1.0], [1.0, 2.0]], [[200.0, 1.0], [1.0, 100.0]]
        assert averaging_weight(self.errors(*[better] * 7, wild)) > 0.5


class TestDissipation:
    def test_the_nearest_point_is_found(self):
        """As SciPy's nonnegative least squares has it, for conditions of which many are nearly the same."""
        rng = np.random.default_rng(0)
        for _ in range(20):
            half, values = rng.normal(size=(8, 8)), rng.normal(size=8)
            G = np.repeat(rng.normal(size=(6, 8)), 10, axis=0) + 1e-3 * rng.normal(size=(60, 8))
            level = np.repeat(rng.uniform(0.0, 1.0, 6), 10)
            found = nearest_feasible(values, half, G, level)
            assert (G @ found + level > -1e-6).all()
            E = np.vstack([(G @ half).T, -(G @ values + level)])
            multipliers, _ = nnls(E, np.append(np.zeros(8), 1.0))
            rest = E @ multipliers - np.append(np.zeros(8), 1.0)
            np.testing.assert_allclose(found, values - half @ rest[:-1] / rest[-1], atol=1e-5)

    def test_a_model_that_fulfils_them_is_left_alone(self):
        values = np.array([1.0, 2.0])
        assert nearest_feasible(values, np.eye(2), np.eye(2), np.zeros(2)) is values

    def lowest(self, robot, found, fastest):
        """Smallest power over the joints, in steady motion up to twice their velocities, with and without load."""
        n = len(robot.joint_names)
        lowest = []
        for joint, load in itertools.product(range(n), (np.zeros(n), np.full(n, 50.0))):
            velocities = np.geomspace(0.01, 2.0 * fastest[joint], 60)
            velocities = np.concatenate([-velocities, velocities])
            lowest.append((friction_curve(found.model, joint, velocities, np.zeros(n), load) * velocities).min())
        return min(lowest)

    def test_friction_that_would_feed_energy_is_brought_to_take_it(self, robot):
        """Friction that bends down within the velocities of a log would be negative at twice those."""
        log = made(robot, {"quadratic_1": -1.6})
        fastest = motion_states(training(robot, log).train).fastest
        found = fitted(robot, log)
        assert "takes energy" in found.notes[-1]
        assert self.lowest(robot, found, fastest) > -1e-3
        assert held_out_error(robot, found, log) < 0.02

    def test_springs_of_friction_give_back_no_more_than_they_took(self, robot):
        """Two that wind up with opposite signs cancel in steady motion, where nothing else bounds them."""
        found = fitted(robot, made(robot, {"stop3_1": -3.0, "stop3_2": -3.0}))
        springs = [i for i, name in enumerate(found.base.names) if name.startswith("stop")]
        assert springs
        assert found.estimate.values[springs].min() > -1e-9
        assert "in every cycle" in found.notes[-1]

    def test_friction_that_takes_energy_is_left_alone(self, robot):
        log = made(robot, {})
        found = fitted(robot, log)
        assert "takes energy" not in found.notes[-1]
        assert self.lowest(robot, found, motion_states(training(robot, log).train).fastest) > -1e-6

    def test_a_drive_that_compensates_friction_may_feed_energy(self, robot):
        """Its viscous friction is negative beyond doubt."""
        log = made(robot, {})
        tau = {name: x.copy() for name, x in log.channels.items()}
        t = log.time
        velocity = np.gradient(log.channels[robot.position_names[1]], t)
        names = [name for name in tau if name.startswith("tau")]
        tau[names[1]] -= 30.0 * velocity
        found = fitted(robot, dataclasses.replace(log, channels=tau, digest="fed"))
        assert any(warning.startswith("element 2:") for warning in found.warnings)
        assert found.estimate["Fv2"] < 0.0


class TestForecast:
    def test_left_out_errors_foretell_those_on_another_motion(self, robot):
        found = fitted(robot, made(robot, STOP, 1, 15.0, noise=0.05), made(robot, STOP, 2, 15.0, noise=0.05))
        truth = held_out_error(robot, found, made(robot, STOP, 3, 15.0, noise=0.05))
        assert 0.7 < found.cross_validation.mean / truth < 1.5
        assert found.cross_validation.mean == pytest.approx(found.selection.errors["averaged"])
        crossed = found.cross_validation
        assert crossed.errors.shape == (len(crossed.labels), 3)
        assert np.nanmedian(crossed.band_coverage) == pytest.approx(0.9, abs=0.05)

    def test_a_log_that_hardly_moves_a_joint_does_not_spoil_the_headline(self, robot):
        """Whole held-out logs would validate joints that the rest of the data has hardly moved."""
        logs = made(robot, {}, 1, 15.0), made(robot, {}, 2, 15.0, held=(0,))
        found = fitted(robot, *logs)
        truth = held_out_error(robot, found, made(robot, {}, 3, 15.0))
        assert 0.5 * truth < found.cross_validation.mean < 2.0 * truth
        assert np.nanmax(found.cross_validation.totals) < 4.0 * truth


def test_long_logs_choose_scales_on_their_first_minutes_and_values_on_all_rows(robot, monkeypatch):
    log = made(robot, STOP, 1, 30.0)
    short = dataclasses.replace(THRESHOLDS, selection_s=12.0)
    for module in ("superset", "prediction", "training_rows"):
        monkeypatch.setattr(f"dynident.pipeline.{module}.THRESHOLDS", short)
    data = training(robot, log)
    found = fit_predictive(data, data.basic)
    assert data.rows.n_passes == 3
    assert found.estimate.n_rows > 2.0 * 12.0 * 20.0 * 3
    assert held_out_error(robot, found, made(robot, STOP, 2)) < 0.05


def test_given_terms_are_in_it_once(robot):
    data = training(robot, made(robot, STOP))
    found = fit_predictive(data, data.basic, resolve_terms("stop(0.003,0.01),cubic"))
    names = [name for name in found.base.names if name.startswith("stop")]
    assert len(names) == len(set(names))
    assert {"stop3_1", "stop10_1"} <= set(names)


def test_validation_logs_change_nothing(robot):
    train, other = made(robot, STOP), dataclasses.replace(made(robot, {"quadratic_1": 9.0}, 2), role="validation")
    alone, evaluated = fitted(robot, train), fitted(robot, train, other)
    np.testing.assert_allclose(alone.estimate.values, evaluated.estimate.values, rtol=1e-9)
