"""Samples of posteriors: their distribution, their consistency, and whether their band holds reality."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

import dynident as di
from dynident.drives import consistent_samples
from dynident.drives.consistent_samples import Conditions, draw_consistent
from dynident.drives.coverage import coverage_of_replays, coverage_of_torque
from dynident.drives.identification import identify_drives, values_of
from dynident.drives.linear import with_gains
from dynident.drives.replay import ClosedLoopReplay, commands_of
from dynident.drives.sampling import sample_models
from dynident.errors import InputError, UnknownNameError
from dynident.physical import physical_fit
from dynident.robot.parameters import LINK_SYMBOLS, from_classical
from dynident.robot.physicality import pseudo_inertia, violations
from tests.drives.made import Truth, logged
from tests.signals.made import Fourier, make_log, stamps

NONE = np.zeros((0, 10), dtype=int)
LEG = Path(__file__).parents[2] / "examples" / "drives"


def chains_alone(monkeypatch):
    monkeypatch.setattr(
        consistent_samples, "THRESHOLDS", dataclasses.replace(consistent_samples.THRESHOLDS, most_tries=0)
    )


class TestDistribution:
    @pytest.mark.parametrize("chains", [False, True])
    def test_a_half_normal_is_neither_clipped_nor_shifted(self, chains, monkeypatch):
        if chains:
            chains_alone(monkeypatch)
        conditions = Conditions(np.array([0]), NONE)
        drawn = draw_consistent(
            np.array([0.5]), np.array([[2.0]]), np.array([-0.25]), conditions, 2000, np.random.default_rng(3)
        )
        assert drawn.chained == (2000 if chains else 0)
        # theta = 0.5 + 2 z, z ~ N(-0.25, 1): N(0, 4) above zero
        assert kstest(drawn.theta[:, 0], truncnorm(0.0, np.inf, scale=2.0).cdf).pvalue > 1e-3

    def test_far_in_a_tail(self, monkeypatch):
        conditions = Conditions(np.array([0]), NONE)
        drawn = draw_consistent(
            np.array([0.01]), np.array([[1.0]]), np.array([-12.01]), conditions, 2000, np.random.default_rng(3)
        )
        assert (drawn.accepted, drawn.chained) == (0.0, 2000)
        assert kstest(drawn.theta[:, 0], truncnorm(12.0, np.inf, loc=-12.0).cdf).pvalue > 1e-3

    def test_chains_and_rejection_agree_on_a_body(self, monkeypatch):
        """A link near the boundary of the consistent set, all ten numbers uncertain and correlated."""
        body = from_classical(2.0, [0.05, 0.0, 0.1], np.diag([0.02, 0.021, 0.0035]))
        rng = np.random.default_rng(0)
        root = np.abs(body)[:, None] * 0.04 * rng.normal(size=(10, 10)) + 1e-4 * rng.normal(size=(10, 10))
        conditions = Conditions(np.zeros(0, dtype=int), np.arange(10)[None])
        arguments = body, root, 0.3 * rng.normal(size=10), conditions, 3000
        by_rejection = draw_consistent(*arguments, np.random.default_rng(1))
        assert by_rejection.chained == 0
        assert 0.05 < by_rejection.accepted < 0.7  # the boundary matters
        chains_alone(monkeypatch)
        by_chains = draw_consistent(*arguments, np.random.default_rng(2))
        std = by_rejection.theta.std(axis=0)
        assert np.abs(by_chains.theta.mean(0) - by_rejection.theta.mean(0)).max() < 0.12 * std.max() + 1e-9
        apart = (by_chains.theta.mean(0) - by_rejection.theta.mean(0)) / std
        assert np.abs(apart).max() < 5.0 * np.sqrt(2.0 / 3000)
        assert by_chains.theta.std(axis=0) == pytest.approx(std, rel=0.1)
        for theta in (by_rejection.theta, by_chains.theta):
            assert np.linalg.eigvalsh(pseudo_inertia(theta)).min() > 0.0

    def test_a_start_outside_is_refused(self):
        with pytest.raises(InputError, match="not physically consistent themselves"):
            draw_consistent(
                np.array([-1.0]), np.eye(1), np.zeros(1), Conditions(np.array([0]), NONE), 3, np.random.default_rng(0)
            )


@pytest.fixture(scope="module")
def robot():
    return with_gains(di.load_robot("pendulum-2"), np.full(2, 200.0), np.full(2, 30.0))


@pytest.fixture(scope="module")
def truth():
    return Truth.drawn(2, seed=1, size=5.0)


@pytest.fixture(scope="module")
def drives(robot, truth):
    return identify_drives(robot, [logged(robot, truth, 200.0, 30.0, seconds=6.0)])


class TestDrives:
    def test_mean_and_covariance_are_those_of_the_estimate(self, drives):
        models = sample_models(drives, 4000, seed=5)
        known = drives.determined & (drives.std > 0.0)
        far = drives.values[known] > 4.0 * drives.std[known]  # where zero does not matter
        off = (models.values.mean(axis=0) - drives.values)[known][far] / drives.std[known][far]
        assert np.abs(off).max() < 5.0 / np.sqrt(4000)
        own = np.flatnonzero(known)[far]
        expected = drives.covariance[np.ix_(own, own)] / np.outer(drives.std[own], drives.std[own])
        found = np.corrcoef(models.values[:, own].T)
        assert np.abs(found - expected).max() < 0.08
        assert np.abs(expected - np.eye(len(own))).max() > 0.2  # joint, not independent

    def test_the_seed_decides(self, drives):
        assert np.array_equal(sample_models(drives, 5, seed=1).values, sample_models(drives, 5, seed=1).values)
        assert not np.array_equal(sample_models(drives, 5, seed=1).values, sample_models(drives, 5, seed=2).values)

    def test_nothing_is_negative_and_nothing_is_clipped(self, drives):
        small = drives.names.index("Fc1")
        values = drives.values.copy()
        values[small] = 0.3 * drives.std[small]
        models = sample_models(dataclasses.replace(drives, values=values), 1000)
        assert models["Fc1"].min() > 0.0
        assert (models["Fc1"] == 0.0).sum() == 0
        assert any("rejected" in words for words in models.notes)

    def test_what_is_at_its_bound_is_held_and_named(self, drives):
        at, covariance = drives.names.index("Fv1"), drives.covariance.copy()
        covariance[at], covariance[:, at] = 0.0, 0.0
        values, determined = drives.values.copy(), drives.determined.copy()
        values[at], determined[at] = 0.0, False
        bound = dataclasses.replace(drives, values=values, covariance=covariance, determined=determined)
        models = sample_models(bound, 20)
        assert not models["Fv1"].any()
        assert "Fv1" in models.notes[-1]

    def test_the_band_holds_reality_at_the_stated_rate(self, drives, robot, truth):
        commands = commands_of(logged(robot, truth, 200.0, 30.0, seed=9, seconds=3.0, noise=0.0), robot)
        found = coverage_of_replays(sample_models(drives, 40, seed=2), commands, 0.9)
        assert found.n_models == 40
        assert 0.6 < found.inside <= 1.0
        assert found.widening < 3.0
        assert found.center < 1e-3
        assert np.median(found.samples) < 3.0 * found.center + 1e-3
        narrow = coverage_of_replays(sample_models(drives, 40, seed=2, widen=0.05), commands, 0.9)
        assert narrow.inside < 0.5 * found.inside
        assert narrow.widening > 8.0 * found.widening  # twenty, but for samples that bounds cut

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n": 0}, "n is 0; expected at least one"),
            ({"widen": 0.0}, "widen is 0; expected a positive factor"),
            ({"widen": float("nan")}, "widen is nan"),
            ({"unidentified": -0.1}, "unidentified is -0.1"),
        ],
    )
    def test_bad_input(self, options, message, drives):
        with pytest.raises(InputError, match=message):
            sample_models(drives, **options)
        with pytest.raises(InputError, match=r"level is 1\.5"):
            sample_models(drives, 3).ranges(1.5)
        with pytest.raises(UnknownNameError, match=r"unknown parameter 'Fv9'"):
            sample_models(drives, 3)["Fv9"]


@pytest.fixture(scope="module")
def fit():
    return di.identify(_robot(), _torque_log(_robot()), friction="basic", check="off")


class TestFit:
    def test_bodies_are_consistent_and_base_parameters_vary_as_stated(self, fit):
        bodies = physical_fit(fit)
        models = sample_models(fit, 400, bodies=bodies, seed=1)
        for place, joint in enumerate(fit.robot.joints):
            chi = np.array([models[f"{symbol}{joint.number}"] for symbol in LINK_SYMBOLS]).T
            assert not any(violations(own, f"link {place}") for own in chi)
        assert models["Fv1"].min() > 0.0
        beta = models.values @ fit.base.K.T
        assert (beta.std(axis=0) / fit.std).max() < 1.15
        if "rejected" in models.notes[0]:  # consistency hardly matters: the Gaussian itself
            assert np.abs((beta.mean(axis=0) - fit.beta) / fit.std).max() < 0.3
            assert (beta.std(axis=0) / fit.std).min() > 0.85

    def test_measured_torque_lies_within_the_band_at_the_stated_rate(self, fit):
        models = sample_models(fit, 40)
        log = dataclasses.replace(_torque_log(_robot(), seed=3), label="other")
        found = coverage_of_torque(models, fit, [log], 0.9)
        assert found.inside == pytest.approx(0.9, abs=0.07)
        assert found.center == pytest.approx(np.median(found.samples), rel=0.2)
        assert "of measured torque in other lies within the band of 90 %" in str(found)

    def test_what_torque_leaves_open_varies_as_asked(self, fit):
        bodies = physical_fit(fit)
        still = sample_models(fit, 100, bodies=bodies, unidentified=0.0)
        varied = sample_models(fit, 400, bodies=bodies, unidentified=0.05)
        # The first link's mass is in no base parameter: only the body nearest to each inertia moves it, a little.
        assert np.ptp(still["M1"]) < 1e-3 * still["M1"].mean()
        assert varied["M1"].std() / varied["M1"].mean() == pytest.approx(0.05, rel=0.2)

    def test_terms_that_simulators_lack_are_refused(self):
        robot = _robot()
        fit = di.identify(robot, _torque_log(robot), terms="rigid,Ia,Fv,Fc,Fo,stribeck(0.2,0.5)", check="off")
        with pytest.raises(InputError, match=r"the fit has the terms .*stribeck.*--friction basic"):
            sample_models(fit)


def _robot():
    return di.load_robot("panda")


def _torque_log(robot, seconds=6.0, seed=1):
    t = stamps(seconds, 200.0)
    q, dq, ddq = Fourier.random(len(robot.joint_names), seed, velocity=1.5)(t)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    return make_log(robot, t, q, tau + 0.01 * tau.std(0) * np.random.default_rng(seed - 1).normal(size=tau.shape))


def test_the_shipped_leg_replays_no_nearer_with_its_true_values():
    """What its band cannot hold is the replay's own, not the parameters'."""
    spec = importlib.util.spec_from_file_location("record", LEG / "record.py")
    record = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(record)
    robot = with_gains(di.load_robot(LEG / "leg.xml"), np.full(3, record.KP), np.full(3, record.KD))
    truth = Truth(record.ARMATURE, record.DAMPING, record.FRICTIONLOSS, record.BIAS, record.DELAY)
    replay = ClosedLoopReplay(robot, commands_of(di.read_log(LEG / "validation.csv.gz", robot), robot))
    (errors,) = replay.errors([values_of(robot, truth.by_name(robot), truth.delay)])
    assert errors.total == pytest.approx(2e-4, rel=0.1)
