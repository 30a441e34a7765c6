"""What a tool carries: recovered with honest standard deviations, alone and beside the robot, or refused."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import dynident as di
from dynident.payload.identification import identify_payload
from dynident.payload.problem import PayloadProblem, payload_matrix
from tests.payload.payloads import BASIC, BODY, TRUTH, arm, made_log, off
from tests.signals.made import make_log, stamps


@pytest.fixture(scope="module")
def robot():
    return arm()


@pytest.fixture(scope="module")
def fit(robot):
    """From a log that is long beside the loaded ones, which would else tell friction better than it."""
    return di.identify(robot, made_log(robot, 1, seconds=48.0), friction="basic")


@pytest.fixture(scope="module")
def loaded(robot):
    return made_log(robot, 2, load=BODY, motion=2)


class TestRecovery:
    @pytest.mark.parametrize("joint", [False, True], ids=["robot as identified", "robot estimated along"])
    def test_all_ten_come_back(self, robot, fit, loaded, joint):
        found = identify_payload(fit, loaded, unloaded=[made_log(robot, 3, motion=2)] if joint else ())
        assert found.withheld == ()
        assert np.abs(off(found)).max() < 3.5
        assert found["mass"].value == pytest.approx(BODY.mass, rel=0.01)
        assert found.method == ("joint" if joint else "loaded")
        assert (found.robot_std > 0.0).all() == (not joint)
        assert found.session == "none"

    def test_deviations_are_right_over_seeds(self, robot):
        """With a robot that was learnt from noisy data too: without its share they would promise too much."""
        ratios, alone = [], []
        for seed in range(6):
            fit = di.identify(robot, made_log(robot, 10 + seed, noise=0.02), friction="basic", delay=0.0)
            found = identify_payload(fit, made_log(robot, 20 + seed, load=BODY, motion=2, noise=0.005), session="none")
            ratios.append(off(found))
            part = np.sqrt(np.diag(found.covariance) - found.robot_std**2)
            alone.append((found.standard - BODY.standard) / part)
        assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 1.4
        assert np.sqrt(np.mean(np.square(alone))) > 1.6

    def test_a_turned_and_shifted_tool_frame(self, robot, fit, loaded):
        """The same body in another tool frame has another center, and the same mass and principal inertias."""
        turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        frame = dataclasses.replace(robot.tool[1], rotation=turned, translation=np.array([0.1, 0.0, 0.05]))
        other = dataclasses.replace(robot, tool=(robot.tool[0], frame))
        moved = dataclasses.replace(fit, base=dataclasses.replace(fit.base, robot=other))
        before, after = (identify_payload(one, loaded, session="none") for one in (fit, moved))
        assert after["mass"].value == pytest.approx(before["mass"].value, rel=1e-6)
        center = [np.array([one[name].value for name in ("cx", "cy", "cz")]) for one in (before, after)]
        np.testing.assert_allclose(turned @ center[1] + frame.translation, center[0], atol=1e-7)
        assert after["Ixx"].value == pytest.approx(before["Iyy"].value, rel=1e-4)
        assert after["Ixx"].std == pytest.approx(before["Iyy"].std, rel=1e-3)

    def test_several_loaded_logs_average_the_noise_but_not_the_robot(self, robot, fit, loaded):
        both = identify_payload(fit, [loaded, made_log(robot, 4, load=BODY, motion=2)], session="none")
        one = identify_payload(fit, loaded, session="none")
        noise = [np.sqrt(np.diag(found.covariance) - found.robot_std**2) for found in (one, both)]
        assert np.median(noise[1] / noise[0]) < 0.9
        np.testing.assert_allclose(both.robot_std / one.robot_std, 1.0, rtol=0.05)
        assert np.abs(off(both)).max() < 3.5


@pytest.mark.parametrize("joint", [False, True], ids=["loaded", "joint"])
def test_gains_that_are_off_are_covered_by_their_tolerance(robot, joint):
    """Every drive gives two percent more torque than its gain says, so the body seems lighter by that."""

    def measured(log):
        currents = {name.replace("tau", "i"): x / 1.02 for name, x in log.channels.items() if name.startswith("tau")}
        return dataclasses.replace(log, channels={**{n: log.channels[n] for n in robot.position_names}, **currents})

    found = {}
    for tolerance in (0.0, 0.02):
        gains = {"gains": np.ones(6), "gain_tolerances": np.full(6, tolerance)}
        own = dataclasses.replace(robot, drive=dataclasses.replace(robot.drive, **gains))
        fit = di.identify(own, measured(made_log(robot, 1)), friction="basic")
        bare = [measured(made_log(robot, 3, motion=2))] if joint else []
        loaded = measured(made_log(robot, 2, load=BODY, motion=2))
        found[tolerance] = identify_payload(fit, loaded, unloaded=bare, session="none")
    assert found[0.02]["mass"].value == pytest.approx(BODY.mass / 1.02, rel=2e-3)
    assert abs(off(found[0.0])[0]) > 6.0
    assert abs(off(found[0.02])[0]) < 3.0
    assert bool([note for note in found[0.02].notes if "too cautious" in note]) == (not joint)


def test_columns_are_the_change_that_a_known_load_makes(fit):
    np.testing.assert_allclose(
        payload_matrix(fit.base) @ BODY.standard, di.payload.payload_change(fit.base, BODY), atol=1e-10
    )


class TestFriction:
    def test_that_depends_on_the_load_is_evaluated_with_it(self, robot):
        real = {"terms": f"{BASIC},load", "more": {"load_2": 0.15, "load_3": 0.1, "load_5": 0.1}, "noise": 0.002}
        fit = di.identify(robot, made_log(robot, 1, seconds=20.0, **real), friction="load")
        log = made_log(robot, 2, load=BODY, motion=2, **real)
        found = identify_payload(fit, log, session="none")
        first = PayloadProblem.of(fit, (fit.observe(log),)).solve().values_[9]
        assert found.passes >= 2
        assert found["mass"].value == pytest.approx(BODY.mass, rel=0.01)
        assert abs(first - BODY.mass) > 3.0 * abs(found["mass"].value - BODY.mass)

    @pytest.mark.parametrize("drift", [1.0, 1.5])
    def test_that_drifted_is_freed_where_the_data_asks_for_it(self, robot, fit, drift):
        own = {name: drift * x for name, x in robot.value_set().items() if name.startswith(("Fc", "Fv"))}
        log = made_log(robot, 2, load=BODY, motion=2, more=own)
        found = identify_payload(fit, log)
        assert found.session == ("none" if drift == 1.0 else "friction")
        assert np.abs(off(found)).max() < 3.5
        if drift != 1.0:
            blind = identify_payload(fit, log, session="none")
            assert blind["mass"].std is None or blind["mass"].std > 2.0 * found["mass"].std


class TestWithheld:
    def test_what_the_structure_never_shows(self):
        """A pendulum feels first moments and one inertia; its mass alone has no effect."""
        robot = arm("pendulum-1")
        fit = di.identify(robot, made_log(robot, 1), friction="basic")
        found = identify_payload(fit, made_log(robot, 2, load=BODY, motion=2))
        assert len(found.withheld) == 10
        assert all(one["value"] is None and one["std"] is None for one in found.as_dict()["estimates"])
        assert "no motion of this robot determines it" in found.warnings[-1]

    def test_what_a_planar_arm_never_turns_about(self):
        robot = arm("pendulum-3")
        body = di.payload.Payload(0.3, (0.2, 0.05, 0.0), (1e-3, 0.0, 0.0, 2e-3, 0.0, 2.5e-3))
        fit = di.identify(robot, made_log(robot, 1), friction="basic")
        found = identify_payload(fit, made_log(robot, 2, load=body, motion=2), session="none")
        assert found.withheld == ("cz", "Ixx", "Iyy", "Ixy", "Ixz", "Iyz")
        for name, true in (("mass", 0.3), ("cx", 0.2), ("cy", 0.05), ("Izz", 2.5e-3)):
            assert found[name].value == pytest.approx(true, abs=4.0 * found[name].std), name

    def test_inertia_where_the_motion_is_slow(self, robot, fit):
        log = made_log(robot, 2, load=BODY, motion=2, velocity=0.1, seconds=40.0, noise=0.3)
        found = identify_payload(fit, log, session="none")
        assert found["mass"].value == pytest.approx(BODY.mass, rel=0.05)
        assert {"Ixx", "Iyy"} <= set(found.withheld)
        (advice,) = (text for text in found.warnings if text.startswith("Ixx (std"))
        assert re.search(r"best shown by \w+ accelerated.*; do more of it, or record longer", advice)
        assert np.isfinite(found.covariance).all()

    def test_everything_when_there_is_no_payload(self, robot, fit):
        found = identify_payload(fit, made_log(robot, 2, motion=2))
        assert len(found.withheld) == 10
        assert "are these logs of the loaded robot?" in found.warnings[-1]

    def test_what_the_fit_left_open_is_estimated_along(self, robot):
        """The robot was identified with a wrist that stood still; its own wrist then looks like payload."""
        t = stamps(12.0, 200.0)
        q = np.zeros((len(t), 6))
        held = made_log(robot.lock(q4=0, q5=0, q6=0), 1)
        q[:, :3] = np.column_stack([held.channels[name] for name in ("q1", "q2", "q3")])
        dq = np.gradient(q, t, axis=0)
        tau = di.inverse_dynamics(robot, q, dq, np.gradient(dq, t, axis=0), BASIC)
        tau += 0.01 * tau.std(0) * np.random.default_rng(0).normal(size=tau.shape)
        fit = di.identify(robot, make_log(robot, t, q, tau, source="held wrist"), friction="basic")
        assert fit.undetermined
        found = identify_payload(fit, made_log(robot, 2, load=BODY, motion=2), session="none")
        assert any("parameters of the robot open" in text for text in found.warnings)
        for one, x in zip(found.numbers, TRUTH, strict=True):
            assert one.value is None or abs(one.value - x) < 4.0 * one.std, one


class TestRefused:
    def test_a_robot_without_a_tool(self, fit, loaded):
        bare = dataclasses.replace(fit.base, robot=dataclasses.replace(fit.robot, tool=None))
        with pytest.raises(di.InputError, match=r"has no tool.*say in its file which link carries"):
            identify_payload(dataclasses.replace(fit, base=bare), loaded)

    def test_a_link_whose_parameters_are_fixed(self, fit, loaded):
        columns = [dataclasses.replace(c, fixed=0.0) if c.name == "XY6" else c for c in fit.base.columns]
        bare = dataclasses.replace(fit.base, columns=tuple(columns))
        with pytest.raises(di.InputError, match=r"fixes XY6 of the link.*identify with these free"):
            identify_payload(dataclasses.replace(fit, base=bare), loaded)

    def test_a_training_log(self, robot, fit):
        with pytest.raises(di.InputError, match=r"identified from this log.*unloaded logs alone"):
            identify_payload(fit, made_log(robot, 1))

    def test_one_log_as_loaded_and_unloaded(self, fit, loaded):
        with pytest.raises(di.InputError, match="given as loaded and as unloaded"):
            identify_payload(fit, loaded, unloaded=loaded)

    def test_a_log_given_twice(self, fit, loaded):
        with pytest.raises(di.InputError, match="given twice"):
            identify_payload(fit, [loaded, loaded])

    def test_no_log(self, fit):
        with pytest.raises(di.InputError, match="no loaded log"):
            identify_payload(fit, [])

    def test_a_log_without_torque(self, robot, fit, loaded):
        q = np.column_stack([loaded.channels[name] for name in robot.position_names])
        with pytest.raises(di.LogError, match="tau1"):
            identify_payload(fit, make_log(robot, loaded.time, q))

    def test_a_robot_that_stands_still(self, robot, fit):
        t = stamps(12.0, 200.0)
        q = np.tile([0.1, -0.5, 0.3, 0.2, 0.4, 0.1], (len(t), 1))
        tau = np.random.default_rng(0).normal(size=q.shape)
        with pytest.raises(di.InputError, match=r"still: too little motion.*record all joints in motion"):
            identify_payload(fit, make_log(robot, t, q, tau, source="still"))

    def test_an_unknown_session(self, fit, loaded):
        with pytest.raises(di.InputError, match=r"session: unknown choice 'fricton'.*friction"):
            identify_payload(fit, loaded, session="fricton")


def test_training_logs_may_serve_as_unloaded(robot, fit, loaded):
    found = identify_payload(fit, loaded, unloaded=made_log(robot, 1), session="none")
    assert found["mass"].value == pytest.approx(BODY.mass, rel=0.01)


def test_it_explains_what_a_second_identification_finds(robot, fit, loaded):
    """The known-load experiment the other way round: the body that was found must be what changed the robot."""
    body = identify_payload(fit, loaded, session="none").payload
    np.testing.assert_allclose(body.standard, BODY.standard, atol=0.01)
    again = di.identify(robot, loaded, friction="basic")
    assert di.payload.compare_payload(fit, again, body).agreeing > 0.9
    heavier = di.payload.Payload(1.05 * body.mass, body.com, body.inertia, strict=False)
    assert (
        di.payload.compare_payload(fit, again, heavier).agreeing < di.payload.compare_payload(fit, again, body).agreeing
    )


def test_a_body_with_withheld_numbers_is_no_load(robot, fit):
    with pytest.raises(di.InputError, match="mass, cx"):
        _ = identify_payload(fit, made_log(robot, 2, motion=2)).payload


def test_names_and_table(fit, loaded):
    found = identify_payload(fit, loaded, session="none")
    assert [one["name"] for one in found.as_dict()["estimates"]][:5] == ["mass", "cx", "cy", "cz", "Ixx"]
    assert found.table().splitlines()[1].split()[0] == "mass"
    with pytest.raises(di.UnknownNameError, match="number of a payload 'weight'"):
        found["weight"]
