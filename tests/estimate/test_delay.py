from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.estimate import choose_delay, choose_velocity_source
from dynident.estimate.delay import _lowest, residual_torque
from dynident.plant import SampledMotion
from dynident.signals import ObservedRows, SignalOptions, observe
from tests.signals.made import TERMS, Fourier, Pieces, make_log, pinocchio_torque, stamps

RATE = 400.0
T = stamps(20.0, RATE)


@pytest.fixture(scope="module")
def puma():
    return di.load_robot("puma560")


@pytest.fixture(scope="module")
def base(puma):
    return di.base_parameters(puma, TERMS)


@pytest.fixture(scope="module")
def exact(puma):
    """Torque by delay: links by Pinocchio, friction with the exact sign by hand."""
    motion = Fourier.random(6, 1)
    made = {}

    def torque(delay: float) -> np.ndarray:
        if delay not in made:
            made[delay] = pinocchio_torque(puma, *motion(T - delay), smoothing=1e-6)
        return made[delay]

    return motion(T), torque


@pytest.fixture(scope="module")
def make(puma, exact):
    (q, dq, _), torque = exact

    def log(delay=0.0, noise=0.02, seed=0, quantum=1e-5, velocity_noise=None, **more):
        rng = np.random.default_rng(seed)
        tau = torque(delay)
        tau = tau + noise * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
        velocities = None if velocity_noise is None else dq + velocity_noise * rng.normal(size=dq.shape)
        return make_log(puma, T, quantum * np.round(q / quantum), tau, dq=velocities, **more)

    return log


class TestDelay:
    @pytest.mark.parametrize("delay", [0.004, -0.003, 0.0123])
    @pytest.mark.parametrize("noise", [0.005, 0.05])
    def test_a_delay_is_found(self, puma, base, make, delay, noise):
        found = choose_delay([observe(make(delay, noise), puma)], base)
        assert found.delay == pytest.approx(delay, abs=5e-4 if noise < 0.05 else 1e-3)
        assert found.gain > 0.005
        side = "after" if delay > 0 else "before"
        assert f"torque is stamped {1e3 * abs(found.delay):.1f} ms {side} its motion" in found.reason

    @pytest.mark.parametrize("delay", [-0.05, 0.03])
    def test_slow_buses_and_filtered_currents_are_reached(self, puma, base, make, delay):
        """Two searches on: first to 20 ms, then further on the side where the residual still falls."""
        assert choose_delay([observe(make(delay), puma)], base).delay == pytest.approx(delay, abs=1e-3)

    @pytest.mark.parametrize("delay", [0.0, 0.003])
    def test_torque_that_turns_before_dry_friction_lets_go_is_no_delay(self, puma, base, delay):
        """A real controller smooths its friction, the joint sticks meanwhile: that alone looked like 3 ms."""
        t = np.linspace(0.0, 8.0, 400)
        wave = np.sin(np.outer(t, 0.7 * np.arange(1, 7))) + 0.5 * np.sin(np.outer(t, 2.9 - 0.3 * np.arange(6)) + 1.0)
        run = di.simulate(puma, SampledMotion(t, 0.7 * np.sin(np.pi * t[:, None] / 8.0) ** 2 * wave), delay=delay)
        found = choose_delay([observe(run.log, puma)], base)
        assert found.delay == pytest.approx(delay, abs=1e-3)

    def test_undoing_it_lowers_the_residual(self, puma, base, make):
        log = make(0.006, 0.01)
        found = choose_delay([observe(log, puma)], base)
        (before, after), _ = residual_torque([observe(log, puma)], base, [0.0, found.delay])
        assert after < 0.5 * before

    def test_it_is_about_the_log_whatever_the_options_say(self, puma, base, make):
        plain, known = (observe(make(0.006, 0.01), puma, SignalOptions(delay=delay)) for delay in (0.0, 0.006))
        assert choose_delay([plain], base).delay == choose_delay([known], base).delay

    @pytest.mark.parametrize("noise", [0.002, 0.05])
    def test_no_delay_is_next_to_none(self, puma, base, make, noise):
        """What is claimed without a delay stays below half a millisecond."""
        for seed in range(2):
            assert abs(choose_delay([observe(make(0.0, noise, seed), puma)], base).delay) < 5e-4

    def test_noise_alone_brings_no_delay(self, puma, base, make):
        """Torque noise of a fifth of the torque: milliseconds cannot be determined, and none are claimed."""
        found = [choose_delay([observe(make(0.0, 0.2, seed), puma)], base) for seed in range(8)]
        assert all("none is used" in one.reason for one in found)
        assert max(abs(one.delay) for one in found) == 0.0

    def test_a_delay_out_of_reach_is_not_guessed(self, puma, base, make):
        found = choose_delay([observe(make(0.09), puma)], base)
        assert (found.delay, found.gain) == (0.0, 0.0)
        assert "beyond 60 ms; check the stamps" in found.reason

    def test_a_delay_that_stands_for_inertia_is_none(self):
        """Where viscous friction carries the torque, Fv dq + M ddq is nearly Fv dq(t + M / Fv)."""
        robot = di.load_robot("cylindrical").lock(**dict.fromkeys(di.load_robot("cylindrical").joint_names[:2], 0.0))
        motion = Fourier.random(1, 3, base=0.2, harmonics=8)
        (q, _, ddq), early = motion(T), motion(T + 0.015)[1]
        tau = 10.0 * early - 1e-3 * ddq
        found = choose_delay([observe(make_log(robot, T, q, tau), robot)], di.base_parameters(robot, TERMS))
        assert found.delay == 0.0
        assert "stand for the inertia of joint" in found.reason

    def test_what_was_tried_is_reported(self, puma, base, make):
        found = choose_delay([observe(make(0.004), puma)], base)
        assert found.tried[[0, -1]].tolist() == pytest.approx([-0.02, 0.02])
        assert found.residual[len(found.tried) // 2] == pytest.approx(1.0)
        assert abs(found.tried[np.argmin(found.residual)] - 0.004) < 0.0025
        assert not found.residual.flags.writeable

    def test_several_logs_are_used_together(self, puma, base, make):
        logs = [make(0.004, 0.05, seed) for seed in range(3)]
        assert choose_delay([observe(log, puma) for log in logs], base).delay == pytest.approx(0.004, abs=3e-4)

    def test_blocks_do_not_show(self, puma, base, make):
        log = make(0.004)
        whole, pieces = (choose_delay([observe(x, puma)], base) for x in (log, Pieces(log, (1234, 5))))
        assert pieces.delay == pytest.approx(whole.delay, abs=1e-9)

    def test_coupled_robot(self):
        robot, motion = di.load_robot("tx40"), Fourier.random(6, 2)
        tau = di.joint_torque(robot, di.inverse_dynamics(robot, *motion(T - 0.005), "rigid,Ia,Fv,Fc,Fo"))
        tau = tau + 0.02 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(0).normal(size=tau.shape)
        log = make_log(robot, T, motion(T)[0], tau)
        assert choose_delay([observe(log, robot)], di.base_parameters(robot, TERMS)).delay == pytest.approx(
            0.005, abs=5e-4
        )


class TestVelocity:
    def test_noisy_velocities_are_rejected(self, puma, base, make):
        found = choose_velocity_source([observe(make(velocity_noise=0.3), puma)], base, 0.0)
        assert found.velocity_source == "position"
        assert found.ratio > 1.0
        assert "positions are differentiated" in found.reason
        assert "more residual" in found.reason

    def test_clean_velocities_beat_coarse_positions(self, puma, base, make):
        log = make(quantum=5e-3, velocity_noise=1e-4, noise=0.005)
        found = choose_velocity_source([observe(log, puma, SignalOptions(band=6.0))], base, 0.0)
        assert found.velocity_source == "measured"
        assert found.ratio < 0.95
        assert "measured velocities leave" in found.reason

    def test_velocities_that_are_no_better_are_not_used(self, puma, base, make):
        """Both are exact: predictions have to do without measured velocities, so positions are preferred."""
        found = choose_velocity_source([observe(make(velocity_noise=1e-6), puma)], base, 0.0)
        assert found.velocity_source == "position"
        assert found.ratio == pytest.approx(1.0, abs=0.02)

    def test_the_delay_counts(self, puma, base, make):
        log = make(0.008, noise=0.002, quantum=5e-3, velocity_noise=1e-4)
        one = observe(log, puma, SignalOptions(band=6.0))
        assert choose_velocity_source([one], base, 0.008).ratio < choose_velocity_source([one], base, 0.0).ratio

    def test_without_velocities_there_is_no_choice(self, puma, base, make):
        logs = [make(velocity_noise=1e-6), make()]
        found = choose_velocity_source([observe(log, puma) for log in logs], base, 0.0)
        assert (found.velocity_source, found.ratio) == ("position", None)
        assert "not every log has measured velocities" in found.reason


def test_residual_torque_is_that_of_a_fit(puma, base, make):
    """Against plain least squares on the stacked rows."""
    one = observe(make(0.003), puma, SignalOptions(delay=0.003))
    W, y = [], []
    for block in ObservedRows((one,), base).blocks():
        for output, columns in enumerate(block.columns):
            rows = block.usable_columns_first(output)
            wide = np.zeros((rows.shape[1], base.n))
            wide[:, list(columns)] = rows[:-1].T
            W.append(wide)
            y.append(rows[-1])
    W, y = np.vstack(W), np.concatenate(y)
    rest = y - W @ np.linalg.lstsq(W, y, rcond=None)[0]
    both, rows = residual_torque([one], base, [0.003, 0.0])
    assert rows == len(y)
    assert both[0] == pytest.approx(np.linalg.norm(rest), rel=1e-6)
    assert both[1] > both[0]


@pytest.mark.parametrize(("at", "bend"), [(0.0, 1.0), (0.3, 1.0), (-0.4, 3.0)])
def test_the_lowest_point_of_a_parabola(at, bend):
    """The squares are a parabola about 2 + `at` steps, 0.6 deep where it is lowest."""
    delays = 0.001 * np.arange(5)
    square = 0.4 + bend * (np.arange(5) - 2.0 - at) ** 2
    found, gain = _lowest(delays, np.sqrt(square))
    assert found == pytest.approx(0.001 * (2.0 + at), abs=1e-12)
    assert gain == pytest.approx(1.0 - np.sqrt(0.4), abs=1e-12)
