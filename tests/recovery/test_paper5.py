"""Abhishek et al.: the planar arm of joints 2, 3 and 5, with the numbers of the paper and those it leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, filtfilt

import dynident as di
from dynident.papers.abhishek.printed import SIMULATED
from tests.recovery.kr5 import STEP, cycloid, fourier, machine_torque
from tests.signals.made import make_log

TERMS = "rigid,Fv,Fc"
T = np.arange(0.0, 20.0, STEP)
PRINTED = list(SIMULATED.values())
INERTIAS, MOMENTS = ("ZZR1", "ZZR2", "ZZ3"), ("MXR1", "MY1", "MXR2", "MY2", "MX3", "MY3")
SEEDS = range(5)


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("kr5-planar")


@pytest.fixture(scope="module")
def base(robot):
    return di.base_parameters(robot, "rigid")


@pytest.fixture(scope="module")
def run(robot):
    """A Fourier motion and its torque with friction, without noise."""
    motion = fourier(robot, T, 1)
    return motion, machine_torque(robot, motion)


def noisy(tau, seed):
    return tau + np.random.default_rng(seed).normal(size=tau.shape)  # 1 N·m


@pytest.fixture(scope="module")
def motion():
    """Trajectory (12) as the paper samples it."""
    return cycloid(np.linspace(0.0, 5.0, 500))


class TestTrajectory12:
    def test_condition_310(self, base, motion):
        quality = di.excitation(base, *motion)
        assert quality.raw_condition == pytest.approx(310.0, abs=2.0)
        assert (quality.rank, quality.n_rows) == (9, 1500)

    def test_least_squares_without_noise(self, robot, base, motion):
        found = di.accumulate(robot, *motion, machine_torque(robot, motion, friction=False), "rigid").solve()
        np.testing.assert_allclose(found.values, base.base_values(), atol=1e-9)

    def test_dry_friction_looks_like_an_offset(self, robot, motion):
        """In motion all samples have one sign; at rest friction is whatever holds the arm."""
        moving, terms = [x[1:-1] for x in motion], "rigid,Fv,Fc,Fo"
        friction = {"Fc1", "Fc2", "Fc3", "Fo1", "Fo2", "Fo3"}
        quality = di.excitation(di.base_parameters(robot, terms), *moving)
        assert (quality.rank, len(quality.names), quality.raw_condition) == (15, 18, np.inf)
        dead = [one for one in quality.weak if one.strength < 1e-12]
        assert len(dead) == 3
        assert {name for one in dead for name, share in one.parts if abs(share) > 0.1} == friction
        found = di.accumulate(robot, *moving, machine_torque(robot, moving), terms).solve()
        assert set(found.undetermined) == friction
        # What it does say is that the two together are the machine's friction.
        for joint, value in zip("123", (40.0, 25.0, 8.0), strict=True):
            assert found[f"Fc{joint}"] + found[f"Fo{joint}"] == pytest.approx(value, abs=1e-6)

    def test_joints_that_move_alike_hide_rotors(self, robot, motion):
        """The same acceleration everywhere: a rotor's inertia cannot be distinguished from a link's."""
        found = di.accumulate(robot, *motion, machine_torque(robot, motion), "rigid,Ia,Fv,Fc").solve()
        assert set(found.undetermined) == {"ZZR1", "ZZR2", "ZZ3", "Ia2", "Ia3"}

    def test_identify_says_so_in_words(self, robot):
        t = STEP * np.arange(500)
        motion = cycloid(t)
        log = make_log(robot, t, motion[0], noisy(machine_torque(robot, motion), 0))
        found = di.identify(robot, log, terms="rigid,Fv,Fc,Fo")
        assert set(found.undetermined) == {"Fc1", "Fc2", "Fc3", "Fo1", "Fo2", "Fo3"}
        assert any("of 18 parameters and leaves open Fc1, Fc2, Fc3, Fo1" in text for text in found.warnings)
        assert any("add motion that excites them" in text for text in found.warnings)


class TestFourier:
    def test_condition_about_25(self, robot, base):
        t = np.arange(0.0, 10.0, STEP)
        conditions = [di.excitation(base, *fourier(robot, t, seed)).raw_condition for seed in range(30)]
        assert 18.0 < np.median(conditions) < 32.0
        assert max(conditions) < 60.0

    def test_it_keeps_to_the_limits(self, robot, run):
        q, dq, ddq = run[0]
        for j, joint in enumerate(robot.joints):
            assert joint.limits.lower < q[:, j].min() < q[:, j].max() < joint.limits.upper
            assert np.abs(dq[:, j]).max() < joint.limits.velocity
        np.testing.assert_allclose(np.gradient(q, STEP, axis=0)[5:-5], dq[5:-5], atol=0.02)
        np.testing.assert_allclose(np.gradient(dq, STEP, axis=0)[5:-5], ddq[5:-5], atol=0.1)

    def test_least_squares_without_noise(self, robot, base, run):
        motion = run[0]
        found = di.accumulate(robot, *motion, machine_torque(robot, motion, friction=False), "rigid").solve()
        np.testing.assert_allclose(found.values, base.base_values(), atol=1e-9)
        np.testing.assert_allclose(found.values, PRINTED, atol=5e-5)

    def test_least_squares_without_noise_and_with_friction(self, robot, run):
        motion, tau = run
        found = di.accumulate(robot, *motion, tau, TERMS).solve()
        np.testing.assert_allclose(found.values, di.base_parameters(robot, TERMS).base_values(), atol=1e-9)

    @pytest.mark.parametrize("way", ["filters of dynident", "filters of the paper"])
    def test_friction_and_noise(self, robot, run, way):
        (q, _, _), tau = run
        solve = _by_identify if way == "filters of dynident" else _by_paper
        truth = di.base_parameters(robot, TERMS)
        known = dict(zip(truth.names, truth.base_values(), strict=True))
        for seed in SEEDS:
            found = solve(robot, q, noisy(tau, seed))
            assert set(found) == set(known)
            assert max(abs(found[name] - known[name]) for name in INERTIAS) < 0.2
            assert max(abs(found[name] - known[name]) for name in MOMENTS) < 0.05
            assert max(abs(found[name] - known[name]) for name in known if name[0] == "F") < 0.5

    def test_stated_deviations_hold(self, robot, run):
        (q, _, _), tau = run
        found = [di.identify(robot, make_log(robot, T, q, noisy(tau, seed)), terms=TERMS) for seed in SEEDS]
        off = np.array([(one.beta - one.base.base_values()) / one.std for one in found])
        assert np.mean(np.abs(off) < 2.0) > 0.85
        assert np.abs(off).max() < 4.5

    def test_trajectory_12_is_far_worse_with_the_same_noise(self, robot, run):
        """What the choice of motion is worth, sample for sample."""
        poor = cycloid(np.linspace(0.0, 5.0, len(T)))
        deviations = [
            di.accumulate(robot, *motion, noisy(machine_torque(robot, motion), 0), TERMS).solve().std
            for motion in (poor, run[0])
        ]
        assert np.median(deviations[0] / deviations[1]) > 5.0


def _by_identify(robot, q, tau):
    """Positions and torque as a log; dynident differentiates and filters."""
    found = di.identify(robot, make_log(robot, T, q, tau), terms=TERMS)
    return dict(zip(found.names, found.beta, strict=True))


def _by_paper(robot, q, tau):
    """Section 3.1: second-order Butterworth at 5 Hz on velocities and accelerations, zero-phase; torque as it is."""
    b, a = butter(2, 5.0, fs=1.0 / STEP)
    dq = filtfilt(b, a, np.gradient(q, STEP, axis=0), axis=0)
    ddq = filtfilt(b, a, np.gradient(dq, STEP, axis=0), axis=0)
    inner = slice(40, -40)  # the filters' ends
    found = di.accumulate(robot, q[inner], dq[inner], ddq[inner], tau[inner], TERMS).solve()
    return dict(zip(found.names, found.values, strict=True))


class TestTable4:
    def test_it_cannot_belong_to_a_machine(self, robot, base):
        table = robot.base_values["table4"]
        assert table["ZZR1"] + 1.2 * table["MXR1"] == pytest.approx(-132.2, abs=0.1)  # link 1 about its own joint
        found = di.identifiability.base_violations(base, table)
        assert [violation.place for violation in found] == ["joint joint2"]
        assert "must be positive" in str(found[0])
        page = " ".join((Path(__file__).parents[2] / "docs" / "papers" / "abhishek-kr5.md").read_text().split())
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (4000, 3))
        turning, still = np.tile([1.0, 0.0, 0.0], (4000, 1)), np.zeros((4000, 3))
        beta = np.array([table[name] for name in base.names])
        inertia_range = ((base.regressor(q, still, turning) - base.regressor(q, still, still)) @ beta)[:, 0]
        # The page tells the inertia of link 1 alone from that of the arm, which the command prints.
        assert f"{found[0].value:.1f}" == f"{inertia_range.min():.1f}" == "-116.3"
        assert f"between {inertia_range.min():.1f} and {inertia_range.max():.1f} kg·m² about that joint" in page
        assert "-132.2 kg·m² about its own joint" in page
        assert found[0].value < -100.0

    def test_an_identified_arm_can(self, robot, base, run):
        (q, _, _), tau = run
        found = _by_identify(robot, q, noisy(tau, 0))
        assert di.identifiability.base_violations(base, {name: found[name] for name in base.names}) == []
