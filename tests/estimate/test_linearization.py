"""Fits with terms that follow a motion: every estimator, stored and loaded, and around references that do not mix."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import along_terms, resolve_terms
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.linearization import fit_linearized
from dynident.information.information import MergeError
from dynident.information.row_source import accumulate_source
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.training_rows import TrainingRows
from dynident.signals import ObservedRows, SignalOptions, observe
from tests.signals.made import Fourier, Pieces, exact_torque, make_log, stamps

BASIC = "rigid,Ia,Fv,Fc(0.02),Fo"
TERMS = "stop(0.0003,0.003)@1|2,stribeck(0.2)@3,load@2|3,quadratic"
# The rotor of joint 2 cannot be distinguished from the links, nor what it adds to the load: this arm has none there.
VALUES = {"stop0.3_1": 2.0, "stop3_1": 4.0, "stop3_2": 6.0, "stribeck0.2_3": 3.0, "load_3": 0.1, "quadratic_1": 3.0}
RATE = 200.0


@pytest.fixture(scope="module")
def robot():
    whole = di.load_robot("puma560").lock(q4=0, q5=0, q6=0)
    return whole.with_values("mine", {k: x for k, x in whole.value_set().items() if k != "Ia2"})


def made(robot, seed=1, seconds=14.0, noise=0.01):
    """A log with the basic model and the terms, on an exact motion."""
    t = stamps(seconds, RATE)
    motion = Fourier.random(3, seed)
    q, dq, ddq = motion(t)
    terms, chi = along_terms(resolve_terms(TERMS)), di.parameters(robot, "rigid", "mine")
    columns = TermCourse(robot, terms, LinearizationPoint(robot, chi)).columns_first(
        MotionSamples.of_stretch(q, dq, ddq)
    )
    names = [column.name for term in terms for column in term.columns(robot)]
    tau = exact_torque(robot, motion, t, BASIC, "mine")
    for line, (row, column) in zip(columns, all_places(robot, terms), strict=True):
        tau[:, row] += VALUES.get(names[column], 0.0) * line
    tau += noise * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, q, tau, source=f"seed {seed}")


@pytest.fixture(scope="module")
def log(robot):
    return made(robot)


@pytest.fixture(scope="module")
def fit(robot, log):
    return di.identify(robot, log, friction=TERMS)


def test_values_come_back(fit):
    for name in (c.name for t in resolve_terms(TERMS) for c in t.columns(fit.base.robot)):
        found, std = (x[fit.base.names.index(name)] for x in (fit.beta, fit.std))
        assert found == pytest.approx(VALUES.get(name, 0.0), abs=max(4.0 * std, 0.02 * abs(found))), name
        assert std < 1.0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_fits_them(robot, log, name):
    links = {k: x for k, x in robot.value_set("mine").items() if x}
    estimator = ESTIMATORS[name](links, 0.5) if name == "prior" else name
    found = di.identify(robot, log, friction=TERMS, estimator=estimator)
    assert found.train.relative < 0.02
    assert found.beta[found.base.names.index("stop3_1")] == pytest.approx(4.0, rel=0.1)
    assert found.beta[found.base.names.index("load_3")] == pytest.approx(0.1, rel=0.2)


def test_saved_and_loaded_it_predicts_the_same(fit, robot, tmp_path):
    fit.save(tmp_path)
    again = di.load_fit(tmp_path)
    assert [term.key for term in again.base.terms] == [term.key for term in fit.base.terms]
    assert (tmp_path / "fit.yaml").read_text().count("stop(0.0003,0.003)@1|2") >= 1
    np.testing.assert_array_equal(again.reference, fit.reference)
    unseen = made(robot, seed=5, seconds=6.0)
    np.testing.assert_array_equal(again.predict(unseen), fit.predict(unseen))


def test_prediction_of_a_streamed_log(fit, robot):
    unseen = made(robot, seed=5, seconds=6.0)
    whole = fit.predict(unseen)
    for sizes in ((100,), (1, 37, 500)):
        np.testing.assert_allclose(fit.predict(Pieces(unseen, sizes)), whole, atol=1e-9 * np.abs(whole).max())


def test_prediction_needs_no_torque(fit, robot):
    unseen = made(robot, seed=5, seconds=6.0)
    hidden = di.Log("hidden", "0", unseen.time, {n: x for n, x in unseen.channels.items() if n.startswith("q")})
    np.testing.assert_array_equal(fit.predict(hidden), fit.predict(unseen))


class TestReferences:
    def rows(self, robot, log, terms, reference):
        one = observe(log, robot, SignalOptions(band=5.0))
        return accumulate_source(ObservedRows((one,), di.base_parameters(robot, terms), reference))

    def test_factors_around_different_references_do_not_merge(self, robot, log):
        chi = di.parameters(robot, "rigid", "mine")
        one, same, other = (self.rows(robot, log, f"{BASIC},load", x) for x in (chi, chi.copy(), 1.01 * chi))
        assert (one + same).n_rows == 2 * one.n_rows
        with pytest.raises(MergeError):
            one + other

    def test_terms_without_a_reference_merge_in_any_case(self, robot, log):
        one = self.rows(robot, log, f"{BASIC},stop(0.001)", None)
        assert (one + one).n_rows == 2 * one.n_rows

    def test_other_numbers_do_not_merge(self, robot, log):
        """Radii are in the names too; smoothing velocities of Coulomb friction are not, but are in the definition."""
        one, other = (self.rows(robot, log, f"rigid,Ia,Fv,Fc({v}),Fo", None) for v in ("0.02", "0.01"))
        with pytest.raises(MergeError):
            one + other

    def test_stored_factors_are_reported_apart(self, robot, log, tmp_path):
        """Each pass has a factor of its own; a second run takes them all from the store."""
        first = di.identify(robot, log, friction="load", store=tmp_path)
        count = len(list(tmp_path.glob("*.npz")))
        assert count >= 3
        again = di.identify(robot, log, friction="load", store=tmp_path)
        assert len(list(tmp_path.glob("*.npz"))) == count
        np.testing.assert_array_equal(first.beta, again.beta)

    def test_more_passes_change_little(self, robot, log):
        one = observe(log, robot, SignalOptions(band=5.0))
        base = di.base_parameters(robot, f"{BASIC},load")

        data = TrainingRows((one,), FactorCache(None), lambda *done: None)
        found = [fit_linearized(data, base, ESTIMATORS["weighted"](), passes)[0] for passes in (1, 2, 5)]
        first, second, last = (f.values_[base.names.index("load_3")] for f in found)
        assert abs(second - last) < 0.5 * found[-1].std_[base.names.index("load_3")]
        assert abs(second - last) < abs(first - last)

    def test_load_without_links(self, robot, log):
        with pytest.raises(di.errors.InputError, match="term load needs the torque of the links; add the term rigid"):
            di.identify(robot, log, terms="Fv,Fc(0.02)", friction="load")
