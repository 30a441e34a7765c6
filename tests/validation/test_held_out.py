from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError
from dynident.pipeline.identification import identify
from dynident.validation import validate
from dynident.validation.held_out import coverage
from tests.signals.made import TERMS, Fourier, Pieces, exact_torque, make_log, stamps

RATE = 200.0
T = stamps(20.0, RATE)
NOISE = 0.05  # of the torque


def noisy_log(robot, seed, source, t=T, noise=NOISE, **more):
    motion = Fourier.random(len(robot.joint_names), seed)
    tau = exact_torque(robot, motion, t)
    tau = tau + noise * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, motion(t)[0], tau, source=source, **more)


@pytest.fixture(scope="module")
def puma():
    return di.load_robot("puma560")


@pytest.fixture(scope="module")
def trained(puma):
    return [noisy_log(puma, seed, f"train{seed}.csv") for seed in (1, 2)]


@pytest.fixture(scope="module")
def fit(puma, trained):
    return identify(puma, trained, friction="basic", delay=0.0)


@pytest.fixture(scope="module")
def unseen(puma):
    return [noisy_log(puma, seed, f"unseen{seed}.csv") for seed in (3, 4)]


@pytest.fixture(scope="module")
def evaluated(fit, unseen):
    return validate(fit, unseen)


class TestErrors:
    def test_unseen_logs_are_predicted_as_well_as_noise_allows(self, fit, evaluated):
        found = evaluated
        assert found.joints == fit.robot.joint_names
        assert found.relative_error == pytest.approx(fit.train.relative, rel=0.35)
        assert len(found.comparisons) == 2
        assert found.errors.count[0] == sum(one.errors[0].count[0] for one in found.comparisons)
        assert found.errors.band == fit.band
        assert (found.fit > 0.9).all()

    def test_one_log_alone_and_streamed(self, fit, unseen, evaluated):
        alone = validate(fit, unseen[0])
        assert alone.relative_error == evaluated.comparisons[0].errors[0].relative
        streamed = validate(fit, Pieces(unseen[0], (777,)))
        assert streamed.relative_error == pytest.approx(alone.relative_error, rel=1e-6)
        np.testing.assert_array_equal(streamed.coverage, alone.coverage)

    def test_the_band_can_be_chosen(self, fit, unseen):
        low, high = validate(fit, unseen[0], band=2.0), validate(fit, unseen[0], band=20.0)
        assert (low.errors.band, high.errors.band) == (2.0, 20.0)
        assert high.relative_error > 1.5 * low.relative_error  # more noise gets through

    def test_a_wrong_estimate_is_found_out(self, fit, unseen, evaluated):
        names = list(fit.names)
        beta = np.array(fit.beta)
        beta[names.index("MXR2")] *= 1.2
        wrong = validate(fit.replace(beta=beta), unseen)
        assert wrong.relative_error > 5 * evaluated.relative_error
        assert wrong.coverage[1] < 0.5
        assert evaluated.coverage[1] > 0.85

    def test_measured_velocities_are_not_used(self, fit, unseen, evaluated):
        """Prediction has position and time only."""
        measured = fit.replace(signals=dataclasses.replace(fit.signals, velocity_source="measured"))
        assert validate(measured, unseen).relative_error == evaluated.relative_error

    def test_as_dict_is_plain(self, evaluated):
        plain = evaluated.as_dict()
        assert json.loads(json.dumps(plain)) == plain
        assert plain["relative_error"] == evaluated.relative_error
        assert [one["label"] for one in plain["logs"]] == ["unseen3.csv", "unseen4.csv"]
        assert plain["rest_included"]["samples"] >= plain["samples"]


class TestSeen:
    def test_logs_of_the_training_are_flagged(self, fit, trained, unseen, evaluated):
        assert validate(fit, [unseen[0], trained[1]]).seen == ("train2.csv",)
        assert evaluated.seen == ()

    def test_by_content_not_by_name(self, fit, trained):
        renamed = dataclasses.replace(trained[0], source="other.csv", label="other")
        assert validate(fit, renamed).seen == ("other",)


class TestHonesty:
    def test_coverage_is_near_95_percent(self, evaluated):
        """White noise: two stated standard deviations hold 95 % of the residuals."""
        assert evaluated.coverage.mean() == pytest.approx(0.954, abs=0.025)
        assert ((evaluated.coverage > 0.88) & (evaluated.coverage < 0.995)).all()

    def test_parameter_deviations_count(self, fit, unseen):
        """Without them, or without noise, less would be inside."""
        observed = [fit.observe(unseen[0], fit.band)]
        full = coverage(fit, observed)
        quiet = coverage(fit.replace(sigma=0.0 * fit.sigma, cross_validation=None), observed)
        assert (quiet < 0.7).all()
        sure = coverage(fit.replace(covariance=0.0 * fit.covariance), observed)
        assert (sure <= full).all()
        assert sure.sum() < full.sum()

    def test_white_noise_looks_white(self, evaluated):
        assert sum(evaluated.white) >= 4

    def test_friction_that_is_not_modelled_does_not_look_white(self, puma):
        plain = identify(puma, noisy_log(puma, 1, "a.csv", noise=0.002), terms="rigid,Ia,Fv", delay=0.0)
        assert not any(validate(plain, noisy_log(puma, 3, "b.csv", noise=0.002)).white)


class TestRefused:
    def test_no_log(self, fit):
        with pytest.raises(InputError, match="there is no log to validate with"):
            validate(fit, [])

    def test_a_log_without_torque(self, fit, puma):
        bare = make_log(puma, T, Fourier.random(6, 3)(T)[0], source="bare.csv")
        with pytest.raises(di.LogError, match=r"bare\.csv: has no column tau1"):
            validate(fit, bare)

    def test_a_log_of_another_robot(self, fit):
        pendulum = di.load_robot("pendulum-2")
        with pytest.raises(di.LogError, match=r"two\.csv: has no column q3"):
            validate(fit, noisy_log(pendulum, 1, "two.csv"))

    def test_too_short_a_log(self, fit, puma):
        with pytest.raises(InputError, match=r"short\.csv"):
            validate(fit, noisy_log(puma, 3, "short.csv", stamps(0.3, RATE)))


class TestCoupled:
    @pytest.mark.parametrize("name", ["tx40", "sr400"])
    def test_errors_are_those_of_the_joints(self, name):
        robot = di.load_robot(name)
        fit = identify(robot, noisy_log(robot, 1, "a.csv", noise=1e-3), terms=TERMS, delay=0.0)
        found = validate(fit, noisy_log(robot, 2, "b.csv", noise=1e-3))
        assert found.relative_error < 3e-3
        exact = exact_torque(robot, Fourier.random(6, 2), found.comparisons[0].trace.time)
        measured = found.comparisons[0].trace.measured
        smooth = np.abs(exact - measured) / np.abs(exact).max(0)
        assert np.median(smooth) < 0.02
