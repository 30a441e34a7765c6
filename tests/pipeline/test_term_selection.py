"""Friction chosen by leaving data out: what is there is found, what is not is not, what cannot be told is not asked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import along_terms, resolve_terms
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.estimate.candidates import GROUPS, CandidateGroup
from dynident.identifiability.base import base_parameters
from dynident.information.row_source import accumulate_source
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.term_selection import Selection
from dynident.pipeline.thresholds import THRESHOLDS as PIPELINE
from dynident.pipeline.training_rows import TrainingRows
from dynident.signals import ObservedRows, SignalOptions, observe
from dynident.validation.cross_validation import selection_folds
from dynident.validation.thresholds import THRESHOLDS
from tests.signals.made import Fourier, exact_torque, make_log, stamps

BASIC = "rigid,Ia,Fv,Fc(0.02),Fo"
FEW = (
    CandidateGroup("stop", (0.003,), ("motor", "sensor")),
    CandidateGroup("stribeck", (0.2,), ("motor",)),
    CandidateGroup("load", (), ("motor",)),
    CandidateGroup("quadratic", ()),
    CandidateGroup("harmonics", (1.0,)),
    CandidateGroup("zero", ()),
)


@pytest.fixture(scope="module")
def robot():
    """Three joints: upright, and two that carry weight."""
    whole = di.load_robot("puma560").lock(q4=0, q5=0, q6=0)
    return dataclasses.replace(whole, drive=dataclasses.replace(whole.drive, source="motor"))


def made(robot, effects, seed=1, seconds=40.0, noise=0.01, rate=100.0):
    """A log with the basic model and some effects, by parameter name."""
    t = stamps(seconds, rate)
    motion = Fourier.random(len(robot.joint_names), 1, base=0.031, harmonics=12)
    q, dq, ddq = motion(t)
    tau = exact_torque(robot, motion, t, BASIC)
    terms = along_terms(resolve_terms("stop(0.003),stribeck(0.2),load,quadratic,harmonics(1)"))
    reference = LinearizationPoint(robot, di.parameters(robot, "rigid"))
    lines = TermCourse(robot, terms, reference).columns_first(MotionSamples.of_stretch(q, dq, ddq))
    names = [column.name for term in terms for column in term.columns(robot)]
    for line, (row, column) in zip(lines, all_places(robot, terms), strict=True):
        tau[:, row] += effects.get(names[column], 0.0) * line
    tau += noise * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, q, tau, source=f"log {seed}")


def selection(robot, *logs, candidates=FEW):
    observed = tuple(observe(log, robot, SignalOptions(band=5.0)) for log in logs)

    data = TrainingRows(observed, FactorCache(None), lambda *done: None)
    return Selection(base_parameters(robot, BASIC), data, {log.label: log.label for log in logs}, candidates)


class TestWhatIsThere:
    @pytest.mark.parametrize(
        ("effects", "key"),
        [
            ({"stop3_1": 2.0, "stop3_2": 2.0}, "stop(0.003)"),
            ({"stribeck0.2_2": 3.0, "stribeck0.2_3": 2.0}, "stribeck(0.2)"),
            ({"load_2": 0.1, "load_3": 0.1}, "load"),
            ({"quadratic_1": 2.0, "quadratic_3": 2.0}, "quadratic"),
            ({"harmonics1c_1": 1.0, "harmonics1s_1": 1.0}, "harmonics(1)"),
        ],
    )
    def test_is_found(self, robot, effects, key):
        found = selection(robot, made(robot, effects))
        groups, verdicts = found.choose([group for group in found.able if "motor" in group.sides])
        assert [group.key for group in groups] == [key]
        own = next(v for v in verdicts if v.group == key)
        assert own.verdict == ("kept" if "motor" in next(g for g in FEW if g.key == key).sides else "added")
        assert own.gain > max(own.deviation, 0.02)

    @pytest.mark.parametrize("seed", range(5))
    def test_nothing_where_nothing_is(self, robot, seed):
        found = selection(robot, made(robot, {}, seed))
        groups, verdicts = found.choose([group for group in found.able if "motor" in group.sides])
        assert groups == []
        assert {v.verdict for v in verdicts} == {"dropped", "not added"}


class TestWhatCannotBeTold:
    def test_elements_that_cannot_are_left_out(self, robot):
        """Joint 2 carries weight, which is a wave of its own angle; the zero of the last joint is in its link."""
        found = selection(robot, made(robot, {}))
        assert found.told["harmonics"] == ("1", "3")
        assert "stop" not in found.told
        assert [t.key for t in found.terms_of([FEW[0], FEW[4]])] == ["stop(0.003)", "harmonics(1)@1|3"]
        assert FEW[4] in found.able

        assert found.told["zero"] == ("2",)

    def test_a_planar_arm_cannot_tell_a_tilt(self):
        """Its first moments say the same."""
        pendulum = di.load_robot("pendulum-2").with_values("mine", {"ZZ1": 1.3, "MX1": 1.5, "ZZ2": 0.33, "MX2": 0.5})
        t = stamps(40.0, 100.0)
        motion = Fourier.random(2, 1, base=0.031, harmonics=12)
        log = make_log(pendulum, t, motion(t)[0], exact_torque(pendulum, motion, t, BASIC, "mine"))
        found = selection(pendulum, log, candidates=(CandidateGroup("tilt", ()), CandidateGroup("quadratic", ())))
        assert [group.key for group in found.able] == ["quadratic"]


class TestFolds:
    def information(self, robot, *logs):
        observed = tuple(observe(log, robot, SignalOptions(band=5.0)) for log in logs)
        return accumulate_source(ObservedRows(observed, base_parameters(robot, BASIC)))

    def test_whole_logs_where_there_are_three(self, robot):
        logs = [made(robot, {}, seed, 10.0) for seed in (1, 2, 3)]
        folds = selection_folds(self.information(robot, *logs), {log.label: log.label for log in logs})
        assert [fold.label for fold in folds] == ["log 1", "log 2", "log 3"]
        assert not any(fold.unused for fold in folds)

    def test_blocks_with_gaps_of_one_log(self, robot):
        log = made(robot, {}, 1, 40.0)
        data = self.information(robot, log)
        folds = selection_folds(data, {log.label: log.label})
        assert len(folds) == THRESHOLDS.selection_blocks
        assert sorted(i for fold in folds for i in fold.left_out) == list(range(len(data.segments)))
        for fold in folds:
            for i in fold.unused:
                assert i + 1 in fold.left_out or i - 1 in fold.left_out

    def test_two_views_of_one_experiment_are_left_out_together(self, robot):
        logs = [made(robot, {}, seed, 10.0) for seed in (1, 2, 3, 4)]
        views = {log.label: log.label for log in logs} | {"log 2": "log 1"}
        folds = selection_folds(self.information(robot, *logs), views)
        assert [fold.label for fold in folds] == ["log 1", "log 3", "log 4"]


class TestThroughIdentify:
    def test_short_logs_are_not_searched(self, robot):
        short = made(robot, {"stop3_1": 2.0, "stop3_2": 2.0}, 1, 20.0)
        fit = di.identify(robot, short)
        assert "20 s of data are too little to choose friction term by term" in fit.selection.reason
        assert fit.selection.verdicts == ()

    def test_validation_logs_change_nothing(self, robot):
        train = made(robot, {"stop3_1": 2.0, "stop3_2": 2.0}, 1, 1.2 * PIPELINE.min_selection_s)
        other = dataclasses.replace(made(robot, {"quadratic_1": 9.0}, 2, 20.0), role="validation")
        alone, judged = di.identify(robot, train), di.identify(robot, [train, other])
        assert alone.selection.terms == judged.selection.terms
        assert [one.gain for one in alone.selection.verdicts] == pytest.approx(
            [one.gain for one in judged.selection.verdicts], abs=1e-9
        )
        np.testing.assert_allclose(alone.beta, judged.beta, rtol=1e-9)
        assert len(alone.selection.verdicts) >= len(GROUPS) - 3
