"""Parameters and prediction of a fit: which question each part of it answers, and how both are kept."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import stored_terms
from dynident.estimate.equivalent_friction import friction_torques, steady_friction
from dynident.estimate.friction_parts import friction_curve
from dynident.estimate.friction_width import with_widths
from dynident.estimate.records import TermSelection
from dynident.estimate.storage import FitFileError, load_fit
from dynident.export.overlay import export_yaml
from dynident.payload.identification import identify_payload
from dynident.validation import validate
from dynident.validation.comparison import answer_differences, difference_note
from dynident.validation.held_out import coverage
from tests.estimate.test_friction_view import friction_log
from tests.estimate.test_storage import same
from tests.payload.payloads import BODY, arm, made_log

PRIORS = TermSelection(("stop(0.001)", "load"), "motor", "friction under empirical priors", weight=0.7)


def two_answers(robot, logs, friction="stop(0.001),load", **options):
    """A fit whose parameters have basic friction and whose prediction has more; and these two fits by themselves."""
    basic = di.identify(robot, logs, friction="basic", delay=0.0, **options)
    rich = di.identify(robot, logs, friction=friction, delay=0.0, **options)
    both = basic.replace(
        predictive=rich.estimate, errors=rich.errors, friction_view=rich.friction_view, selection=PRIORS
    )
    return both, basic, rich


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


@pytest.fixture(scope="module")
def fits(robot):
    return two_answers(robot, [friction_log(robot, seed) for seed in (1, 2)])


@pytest.fixture(scope="module")
def log(robot):
    return friction_log(robot, 7, seconds=8.0)


class TestWhichIsWhich:
    def test_with_basic_friction_they_are_one(self, fits, tmp_path):
        _, basic, _ = fits
        assert basic.predictive is basic.estimate
        assert basic.one_answer
        changed = basic.replace(beta=2.0 * basic.beta)
        assert changed.predictive is changed.estimate
        basic.save(tmp_path)
        again = load_fit(tmp_path)
        assert again.predictive is again.estimate
        assert "prediction" not in (tmp_path / "fit.yaml").read_text().split()

    def test_parameters_are_those_of_the_estimate(self, fits):
        both, basic, _ = fits
        assert both.names == basic.names
        assert both.table() == basic.table()
        assert both.rank == basic.rank
        np.testing.assert_array_equal(both.parameter_model.chi, basic.model.chi)

    def test_torque_is_that_of_the_prediction(self, fits, log):
        both, basic, rich = fits
        np.testing.assert_array_equal(both.predict(log), rich.predict(log))
        assert np.abs(both.predict(log) - basic.predict(log)).max() > 1e-4
        for ours, theirs in zip(both.torque_band(log), rich.torque_band(log), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert validate(both, log).relative_error == validate(rich, log).relative_error
        observed = [both.observe(log, both.band)]
        np.testing.assert_array_equal(coverage(both, observed), coverage(rich, observed))

    def test_changed_parameters_leave_the_prediction_alone(self, fits, log):
        both, _, _ = fits
        changed = both.replace(beta=2.0 * both.beta)
        assert changed.predictive is both.predictive
        np.testing.assert_array_equal(changed.predict(log), both.predict(log))
        np.testing.assert_array_equal(changed.levels, both.levels)

    def test_c_code_and_robot_files_have_the_parameters(self, fits, tmp_path):
        both, basic, _ = fits
        texts = []
        for name, fit in (("both", both), ("basic", basic)):
            di.export_c(fit, tmp_path / name, name="arm")
            export_yaml(fit.robot, None, tmp_path / f"{name}.yaml", estimate=fit, base="pendulum-2")
            c = sorted(file for file in (tmp_path / name).iterdir() if file.suffix in (".c", ".h"))
            texts.append([file.read_text() for file in (*c, tmp_path / f"{name}.yaml")])
        *ours, file = texts[0]
        assert ours == texts[1][:-1]
        head = "# Torque error on it of the predictive model, which is not in this file: "
        assert head in file
        assert [line for line in file.splitlines() if line[0] != "#"] == [
            line for line in texts[1][-1].splitlines() if line[0] != "#"
        ]

    @pytest.mark.parametrize("refuted", [False, True])
    def test_payloads_start_from_the_parameters_unless_basic_friction_is_refuted(self, refuted):
        robot = arm()
        logs = [made_log(robot, 1, terms="rigid,Ia,Fv,Fc(0.02),Fo,stop(0.003)", more={"stop3_2": 1.5})]
        both, basic, rich = two_answers(robot, logs, "stop(0.003)")
        both = both.replace(inflation=np.full_like(both.inflation, 12.0 if refuted else 2.5))
        loaded = made_log(robot, 2, load=BODY, motion=2)
        ours, theirs = identify_payload(both, loaded), identify_payload(rich if refuted else basic, loaded)
        np.testing.assert_array_equal(ours.standard, theirs.standard)
        np.testing.assert_array_equal(ours.covariance, theirs.covariance)


class TestStorage:
    def test_both_come_back_bit_by_bit(self, fits, log, tmp_path):
        both, _, _ = fits
        both.save(tmp_path / "a.yaml")
        again = load_fit(tmp_path / "a.yaml")
        for field in dataclasses.fields(di.Fit):
            assert same(getattr(both, field.name), getattr(again, field.name)), field.name
        assert again.predictive.linearization is not None
        assert again.predictive.coordinates.terms != again.base.terms
        np.testing.assert_array_equal(again.predict(log), both.predict(log))
        again.save(tmp_path / "b.yaml")
        assert (tmp_path / "a.yaml").read_bytes() == (tmp_path / "b.yaml").read_bytes()

    @pytest.mark.parametrize(
        ("name", "change", "words"),
        [
            ("predictive_beta", None, "has no 'predictive_beta'"),
            ("predictive_covariance", lambda x: x[1:], "predictive_covariance has shape"),
            ("predictive_beta", lambda x: 2.0 * x, "the parameters of the two files differ"),
            ("predictive_solve_numbers", None, "has no 'predictive_solve_numbers'"),
        ],
    )
    def test_damage_is_named(self, fits, tmp_path, name, change, words):
        fits[0].save(tmp_path)
        stored = dict(np.load(tmp_path / "fit.npz"))
        del stored["dynident"]  # as in files of versions without a seal
        found = stored.pop(name)
        np.savez(tmp_path / "fit.npz", **(stored | ({} if change is None else {name: change(found)})))
        with pytest.raises(FitFileError, match=re.escape(words)):
            load_fit(tmp_path)

    def test_the_prediction_cannot_be_taken_out_of_the_text(self, fits, tmp_path):
        fits[0].save(tmp_path)
        text = (tmp_path / "fit.yaml").read_text()
        (tmp_path / "fit.yaml").write_text(re.sub(r"\nprediction:.*?\nfriction:", "\nfriction:", text, flags=re.S))
        with pytest.raises(FitFileError, match="the text was edited"):
            load_fit(tmp_path)


class TestFrictionTorque:
    def test_it_is_that_of_the_curve(self, fits):
        _, _, rich = fits
        for joint in range(2):
            v, load = np.array([0.3, 1.0]), np.array([2.0, 0.5])
            curve = friction_curve(rich.model, joint, np.concatenate([-v, v]), np.zeros(2), load)
            torque, std = steady_friction(rich.estimate, rich.base, joint, v, load)
            np.testing.assert_allclose(torque, 0.5 * (curve[2:] - curve[:2]), rtol=1e-9)
            assert (std > 0.0).all()

    def test_columns_trade_against_each_other_but_their_sum_is_known(self, fits):
        """Coulomb friction and springs that slip after a mrad say nearly the same."""
        both, _, rich = fits
        for one in friction_torques(both):
            truth = 1.5 * one.velocity + 0.8
            assert one.predictive == pytest.approx(truth, rel=0.02)
            assert one.parameters == pytest.approx(truth, rel=0.02)
            assert 0.0 < one.predictive_std < 0.01 * truth
        assert rich.std[rich.names.index("Fc1")] > 5.0 * friction_torques(both)[0].predictive_std

    def test_what_the_data_does_not_determine_has_no_standard_deviation(self, fits):
        _, basic, _ = fits
        lost = basic.replace(determined=[name != "Fv1" for name in basic.names])
        assert friction_torques(lost)[0].parameters_std == np.inf
        assert friction_torques(lost)[0].as_dict()["parameters_std"] is None


class TestDifferences:
    def test_there_are_none_where_both_are_right(self, fits):
        both, basic, _ = fits
        assert answer_differences(basic) == ()
        assert difference_note(basic) == ""
        assert not [one.name for one in answer_differences(both) if not one.name.startswith("friction")]

    def test_they_are_named(self, fits):
        both, _, rich = fits
        place = rich.names.index("ZZR1")
        values = np.array(rich.beta)
        values[place] += 20.0 * np.hypot(rich.std[place], both.std[both.names.index("ZZR1")])
        moved = both.replace(predictive=rich.estimate.replace(values=values))
        first, *_ = answer_differences(moved)
        assert first.name == "ZZR1"
        assert first.largest == pytest.approx(20.0, abs=5.0)
        assert f"ZZR1 ({both['ZZR1']:.3g} against" in difference_note(moved)

    def test_friction_is_compared_as_torque(self, fits):
        both, _, rich = fits
        values = np.array(rich.beta)
        values[rich.names.index("Fc2")] += 0.5
        found = answer_differences(both.replace(predictive=rich.estimate.replace(values=values)))
        assert found[0].name.startswith("friction of joint2 at ")
        assert found[0].unit == "N·m"
        assert not any(one.name.startswith(("Fc", "Fv", "stop")) for one in found)


def test_widths_of_some_elements_are_stored_with_those_of_the_others(robot):
    """A key that named the elements of known width alone gave the others the exact sign when a fit was read again."""
    base = di.base_parameters(robot, "rigid,Fv,Fc(0.02)")
    (term,) = [term for term in with_widths(base, {"1": 0.1}).terms if term.name == "Fc"]
    (again,) = [one for one in stored_terms(robot, [term.key_on(robot)]) if one.name == "Fc"]
    elements = again.elements(robot)
    assert [again.width(one) for one in elements] == [term.width(one) for one in elements] == [0.1, 0.02]
