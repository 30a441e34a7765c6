"""What is shown of friction: parts that add up, curves by hand, levels and shares of made data, drift between logs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.dynamics.terms.term import MotionSamples
from dynident.estimate.equivalent_friction import disagree, friction_summary
from dynident.estimate.friction_parts import TorqueParts, friction_curve, group_keys
from dynident.estimate.friction_view import LOOP_REACH_RAD, MAX_SCATTER_POINTS, Levels, Loops, Shares
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.storage import load_fit
from tests.signals.made import Fourier, make_log, stamps

TERMS = "rigid,Ia,Fv,Fc(0.02),Fo,stop(0.0003,0.003),stribeck(0.2),load,harmonics(1,2),tilt"


def random_model(name: str, terms: str = TERMS) -> TorqueModel:
    robot, rng = di.load_robot(name), np.random.default_rng(3)
    own = resolve_terms(terms)
    chi = rng.normal(size=len(all_columns(robot, own)))
    return TorqueModel(robot, own, chi, rng.normal(size=10 * len(robot.joints)))


def some_motion(robot: di.Robot, n: int = 60) -> MotionSamples:
    return MotionSamples.of_stretch(*Fourier.random(len(robot.joint_names), 1)(np.arange(n) * 0.02))


@pytest.mark.parametrize("name", ["pendulum-2", "tx40", "cylindrical", "sr400"])
def test_parts_add_up_to_the_torque_of_the_model(name):
    model = random_model(name)
    samples, parts = some_motion(model.robot), TorqueParts(model)
    groups = parts.of_groups(samples)
    whole = groups.sum(0) + parts.of_links(samples, groups)
    expected = di.joint_torque(model.robot, model.start().torque(samples))
    np.testing.assert_allclose(whole, expected, atol=1e-9 * np.abs(expected).max())
    keys = ("Fv", "Fc", "Fo", "stop(0.0003)", "stop(0.003)", "stribeck(0.2)", "load", "harmonics(1,2)", "tilt")
    assert parts.groups == keys


def test_a_group_is_what_its_columns_alone_give():
    model = random_model("pendulum-2")
    samples = some_motion(model.robot)
    groups = TorqueParts(model).of_groups(samples)
    names = [column.name for column in all_columns(model.robot, model.terms)]
    for key, start in (("stop(0.003)", "stop3_"), ("load", "load_"), ("Fc", "Fc")):
        chi = np.where([name.startswith(start) for name in names], model.chi, 0.0)
        alone = TorqueModel(model.robot, model.terms, chi, model.reference).start().torque(samples)
        np.testing.assert_allclose(groups[TorqueParts(model).groups.index(key)], alone, atol=1e-12)


def test_groups_are_named_as_in_a_selection():
    robot = di.load_robot("pendulum-1")
    named = {key: group_keys(robot, *resolve_terms(key)) for key in ("stop(0.0003,0.003)", "harmonics(1,2)@1", "load")}
    assert named["stop(0.0003,0.003)"] == ["stop(0.0003)", "stop(0.003)"]
    assert named["harmonics(1,2)@1"] == ["harmonics(1,2)"] * 4
    assert named["load"] == ["load"]


def test_the_curve_by_hand():
    """Steady motion: all springs slip, the load is as given, offsets and links do not count."""
    robot = di.load_robot("pendulum-2")
    terms = resolve_terms("rigid,Fv,Fc(0.02),Fo,stop(0.001,0.01),load")
    values = {"Fv1": 2.0, "Fc1": 3.0, "Fo1": 50.0, "stop1_1": 0.5, "stop10_1": 0.25, "load_1": 0.1, "M1": 40.0}
    chi = np.array([values.get(column.name, 0.0) for column in all_columns(robot, terms)])
    model = TorqueModel(robot, terms, chi, np.ones(20))
    v = np.array([-2.0, -0.5, 0.3, 1.0])
    found = friction_curve(model, 0, v, np.array([0.2, 0.1]), np.array([-7.0, 1.0]))
    np.testing.assert_allclose(found, 2.0 * v + (3.0 + 0.75 + 0.7) * np.sign(v), atol=1e-9)
    assert not friction_curve(model, 1, v, np.zeros(2), np.ones(2)).any()


class TestShares:
    rng = np.random.default_rng(0)
    a, b, noise = rng.normal(size=(3, 2000, 1))

    def solved(self, *groups):
        shares = Shares(len(groups), 1)
        tau = sum(groups) + 0.1 * self.noise
        for half in (slice(0, 800), slice(800, None)):
            own = np.stack(groups)[:, half]
            usable = np.ones(own.shape[1:], dtype=bool)
            shares.add(own, tau[half] - own.sum(0), tau[half], usable)
        return shares.solve()

    def test_what_nothing_else_can_say_is_missed(self):
        torque, error, share, without = self.solved(self.a, 2.0 * self.b)
        assert torque[0] == pytest.approx(np.sqrt(5.0), rel=0.05)
        assert error[0] == pytest.approx(0.1, rel=0.05)
        np.testing.assert_allclose(share[:, 0], [1.0, 2.0], rtol=0.05)
        np.testing.assert_allclose(without[:, 0], [1.0, 2.0], rtol=0.05)

    def test_groups_that_say_the_same_stand_in_for_each_other(self):
        _, error, share, without = self.solved(self.a, -0.5 * self.a, self.b)
        np.testing.assert_allclose(share[:, 0], [1.0, 0.5, 1.0], rtol=0.05)
        np.testing.assert_allclose(without[:2, 0], error[0], rtol=0.01)
        assert without[2, 0] > 5.0 * error[0]

    def test_a_joint_that_never_moves(self):
        shares = Shares(1, 1)
        shares.add(np.ones((1, 5, 1)), np.ones((5, 1)), np.ones((5, 1)), np.zeros((5, 1), dtype=bool))
        assert all(np.isnan(own).all() for own in shares.solve())


class TestLevels:
    def solved(self, level, shift, seed, n=1600, segments=16):
        rng = np.random.default_rng(seed)
        model = np.sign(np.sin(np.arange(n) * 0.05))[:, None]
        # Noise that resembles itself over many rows, as residuals do.
        noise = np.convolve(rng.normal(size=n + 19), np.ones(20) / np.sqrt(20.0), "valid")
        levels, measured = Levels(segments, 1), level * model + shift + 0.1 * noise[:, None]
        levels.add(np.arange(n) * segments // n, model, measured, np.ones((n, 1), dtype=bool))
        return [float(x[0]) for x in levels.solve()]

    def test_level_and_shift_come_back_with_honest_errors(self):
        found = np.array([self.solved(1.1, -0.3, seed) for seed in range(60)])
        off = (found[:, [0, 2]] - [1.1, -0.3]) / found[:, [1, 3]]
        assert np.all(np.abs(off.mean(0)) < 0.5)
        assert np.all((off.std(0) > 0.7) & (off.std(0) < 1.5))

    def test_too_little_says_nothing(self):
        assert np.isnan(self.solved(1.0, 0.0, 0, segments=2)).all()

    def test_disagreement(self):
        std = np.full(4, 0.01)
        assert disagree(np.array([0.9, 1.0, 1.1, np.nan]), std)
        assert not disagree(np.array([1.0, 1.01, 0.99, 1.0]), std)  # noise
        assert not disagree(np.array([1.0, 1.01, 0.99, 1.0]), 0.01 * std)  # sure, but no matter
        assert not disagree(np.array([0.9, np.nan, np.nan, np.nan]), std)


def test_loops_are_found_on_both_sides():
    t = np.arange(4000) * 0.005
    q = np.stack([np.sin(t), np.zeros_like(t)], axis=1)
    friction = np.tanh(np.gradient(q, t, axis=0) / 0.01)
    loops = Loops(np.ones(2), np.array([2.0, 0.0]))
    loops.look(q, 2.0 * friction, friction, np.ones(len(t), dtype=bool))
    found, joints = loops.select()
    assert joints.tolist() == [0.0] * 4
    ways = found[:, 0]
    assert np.abs(ways).max() == pytest.approx(LOOP_REACH_RAD, rel=0.1)
    assert sorted(np.sign(ways[:, 0])) == [-1.0, -1.0, 1.0, 1.0]  # from below and from above
    for way, measured, model in found:
        assert measured[0] == pytest.approx(-2.0 * np.sign(way[0]), rel=0.01)  # towards the reversal
        assert measured[-1] == pytest.approx(2.0 * np.sign(way[-1]), rel=0.01)  # and away
        np.testing.assert_allclose(measured, 2.0 * model)


def test_no_loop_where_the_joint_turns_again_soon():
    t = np.arange(4000) * 0.005
    q = (0.6 * LOOP_REACH_RAD * np.sin(3.0 * t))[:, None]
    loops = Loops(np.ones(1), np.array([2.0]))
    loops.look(q, q, q, np.ones(len(t), dtype=bool))
    assert loops.select()[0].shape[0] == 0


def friction_log(robot, seed, factor=1.0, seconds=24.0):
    """A log of the robot's own links with Fv 1.5 and Fc 0.8 times a factor, and a little noise."""
    t = stamps(seconds, 200.0)
    q, dq, ddq = Fourier.random(len(robot.joint_names), seed)(t)
    tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid") + factor * (1.5 * dq + 0.8 * np.tanh(dq / 0.02)) + 0.1
    tau += 0.01 * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, q, tau, source=f"log{seed}")


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


@pytest.fixture(scope="module")
def fit(robot):
    return di.identify(robot, [friction_log(robot, seed) for seed in (1, 2)], friction="stop(0.001)", delay=0.0)


class TestView:
    def test_it_is_small(self, fit):
        view = fit.friction_view
        assert view.points.shape[:2] == (5, 2)
        assert 100 < view.points.shape[2] <= MAX_SCATTER_POINTS
        assert len(view.loops) <= 8
        assert view.logs == ("log1", "log2")

    def test_the_data_lies_on_the_curve(self, fit):
        view = fit.friction_view
        for joint in range(2):
            velocity, measured, *_ = view.points[:, joint]
            known = np.isfinite(velocity) & (np.abs(velocity) > 0.3)
            off = measured[known] - np.interp(velocity[known], view.velocity[joint], view.curve[joint])
            assert np.sqrt(np.mean(off**2)) < 0.05

    def test_errors_are_those_of_the_fit(self, fit):
        np.testing.assert_allclose(fit.friction_view.error, fit.train.rmse, rtol=0.15)

    def test_equivalents_are_what_was_put_in(self, fit):
        found = friction_summary(fit)
        for one in found.joints:
            assert one.viscous == pytest.approx(1.5, rel=0.02)
            assert one.coulomb == pytest.approx(0.8, rel=0.04)  # seen through the band, 7.4 Hz for both logs
            assert one.offset == pytest.approx(0.1, abs=0.01)
            assert one.lost < 0.05
        assert found.rows()[0]["joint"] == fit.robot.joint_names[0]
        assert len(found.table().splitlines()) == 3
        assert found.drift == ()

    def test_drift_is_noticed(self, robot):
        logs = [friction_log(robot, 1), friction_log(robot, 2), friction_log(robot, 3, factor=1.25)]
        drifting = di.identify(robot, logs, friction="basic", delay=0.0)
        level = drifting.friction_view.level
        assert np.all(level[2] / level[0] > 1.15)
        notes = friction_summary(drifting).drift
        assert len(notes) == 2
        assert "log3" in notes[0]

    def test_stored_and_read(self, fit, tmp_path):
        fit.save(tmp_path)
        view, back = fit.friction_view, load_fit(tmp_path).friction_view
        for field in dataclasses.fields(view):
            np.testing.assert_array_equal(getattr(view, field.name), getattr(back, field.name))

    def test_a_fit_that_was_stored_without(self, fit, tmp_path):
        dataclasses.replace(fit, friction_view=None).save(tmp_path)
        old = load_fit(tmp_path)
        assert old.friction_view is None
        with pytest.raises(di.InputError, match="keeps no view of its friction; identify again"):
            di.estimate.friction_summary(old)

    def test_damage_is_refused(self, fit, tmp_path):
        fit.save(tmp_path)
        with np.load(tmp_path / "fit.npz") as stored:
            arrays = {name: stored[name] for name in stored.files if name != "dynident"}
        arrays["friction_share"] = arrays["friction_share"][:1]
        np.savez(tmp_path / "fit.npz", **arrays)
        with pytest.raises(di.FitFileError, match="share of the friction view has shape"):
            load_fit(tmp_path)

    def test_no_friction_no_view(self, robot):
        t = stamps(12.0, 200.0)
        q, dq, ddq = Fourier.random(2, 1)(t)
        made = make_log(robot, t, q, di.inverse_dynamics(robot, q, dq, ddq, "rigid"))
        assert di.identify(robot, made, terms="rigid", delay=0.0).friction_view is None

    def test_basic_friction_is_its_own_equivalent(self, robot):
        t = stamps(15.0, 200.0)
        q, dq, ddq = Fourier.random(2, 1)(t)
        tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid") + 1.5 * dq + 0.8 * np.tanh(dq / 0.02)
        fit = di.identify(robot, make_log(robot, t, q, tau), friction="basic", delay=0.0)
        for one, number in zip(friction_summary(fit).joints, (1, 2), strict=True):
            expected = tuple(fit[f"{symbol}{number}"] for symbol in ("Fv", "Fc", "Fo"))
            assert (one.viscous, one.coulomb, one.offset) == expected
            assert (one.hysteresis, one.lost) == (0.0, 0.0)

    def test_hysteresis_is_the_torque_of_slipping_springs(self, robot):
        t = stamps(15.0, 200.0)
        log = make_log(robot, t, Fourier.random(2, 1)(t)[0], np.zeros((len(t), 2)))
        fit = di.identify(robot, log, friction="stop(0.001,0.01)", delay=0.0)
        names = fit.predictive_base.names
        values = {"Fc1": 0.5, "stop1_1": 0.3, "stop10_1": 0.2, "stop1_2": 0.1}
        made = fit.replace(
            predictive=fit.predictive.replace(values=np.array([values.get(name, 0.0) for name in names]))
        )
        first, second = friction_summary(made).joints
        assert first.hysteresis == pytest.approx(0.5)
        assert second.hysteresis == pytest.approx(0.1)

    def test_a_joint_that_stands_still(self, robot):
        t = stamps(15.0, 200.0)
        q, dq, ddq = (x * [1.0, 0.0] for x in Fourier.random(2, 1)(t))
        tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid") + 1.5 * dq + 0.8 * np.tanh(dq / 0.02)
        still = di.identify(robot, make_log(robot, t, q, tau), friction="basic", delay=0.0)
        first, second = friction_summary(still).joints
        assert first.viscous == pytest.approx(1.5, rel=0.02)
        assert (second.viscous, second.coulomb, second.fastest) == (None, None, 0.0)
