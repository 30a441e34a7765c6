from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.estimate import TorqueModel, predicted_blocks
from dynident.pipeline.identification import identify
from dynident.signals import SignalOptions, observe
from tests.signals.made import TERMS, Fourier, Pieces, exact_log, exact_torque, make_log, relative, stamps

RATE = 500.0
SMOOTH = "rigid,Ia,Fv,Fo"
ROBOTS = ["pendulum-2", "puma560", "sr400", "tx40"]
T = stamps(10.0, RATE)


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    return di.load_robot(request.param)


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-2")


def motion_of(robot):
    return Fourier.random(len(robot.joint_names), 1)


def predict(robot, log, terms=SMOOTH, **options):
    model = TorqueModel(robot, resolve_terms(terms), di.parameters(robot, terms))
    blocks = list(predicted_blocks(model, observe(log, robot, SignalOptions(**options))))
    np.testing.assert_array_equal(
        np.concatenate([time for time, _ in blocks]), np.concatenate([b.time for b in log.blocks()])
    )
    return np.concatenate([tau for _, tau in blocks])


def log_at(robot, t):
    return make_log(robot, t, motion_of(robot)(t)[0])


def error(robot, t, predicted, delay=0.0, terms=SMOOTH):
    """Error at each sample as a share of the root mean square torque, (n_samples,)."""
    exact = exact_torque(robot, motion_of(robot), t - delay, terms)
    return np.linalg.norm(predicted - exact, axis=1) / np.sqrt(np.mean(np.sum(exact**2, axis=1)))


def away(t, seconds=0.2):
    """Samples at least this far from the ends."""
    return (t > t[0] + seconds) & (t < t[-1] - seconds)


class TestAccuracy:
    def test_smooth_torque(self, robot):
        found = error(robot, T, predict(robot, log_at(robot, T)))
        assert found[away(T)].max() < 5e-4
        assert found.max() < 0.03  # at the very ends

    def test_with_friction(self, robot):
        """A per cent in all; at reversals, where Coulomb friction jumps between two samples of the motion, more."""
        found = error(robot, T, predict(robot, log_at(robot, T), TERMS), terms=TERMS)
        assert np.sqrt(np.mean(found[away(T)] ** 2)) < 0.01
        assert found[away(T)].max() < 0.12

    @pytest.mark.parametrize("delay", [0.004, -0.0133])
    def test_delayed_torque_is_predicted_with_its_delay(self, robot, delay):
        found = error(robot, T, predict(robot, log_at(robot, T), delay=delay), delay)
        assert found[away(T)].max() < 5e-4
        assert found.max() < 0.1

    def test_irregular_stamps(self, robot):
        t = T + np.random.default_rng(0).uniform(-0.3, 0.3, len(T)) / RATE
        found = error(robot, t, predict(robot, log_at(robot, t)))
        assert found[away(t)].max() < 5e-4
        assert found.max() < 0.04

    def test_repeated_stamps(self, robot):
        t = np.sort(np.concatenate([T, T[1000:1500:7], T[1000:1500:14]]))
        found = error(robot, t, predict(robot, log_at(robot, t)))
        assert found[away(t)].max() < 5e-4

    def test_gaps(self, robot):
        """Each stretch has its own ends."""
        t = T[(T < 3.0) | ((T > 3.5) & (T < 6.0)) | (T > 7.0)]
        found = error(robot, t, predict(robot, log_at(robot, t)))
        near = np.abs(t[:, None] - [3.0, 3.5, 6.0, 7.0]).min(1) < 0.2
        assert found[away(t) & ~near].max() < 5e-4
        assert found.max() < 0.05

    def test_a_gap_with_a_delay(self, pendulum):
        t = T[(T < 5.0) | (T > 5.2)]
        for delay in (0.02, -0.02):
            found = error(pendulum, t, predict(pendulum, log_at(pendulum, t), delay=delay), delay)
            near = np.abs(t - 5.1) < 0.3
            assert found[away(t) & ~near].max() < 5e-4
            assert found.max() < 0.15

    def test_stamps_since_1970(self, pendulum):
        log = di.Log("made", "0", 1.7e9 + T, log_at(pendulum, T).channels)
        assert (
            relative(predict(pendulum, log)[away(T)], exact_torque(pendulum, motion_of(pendulum), T, SMOOTH)[away(T)])
            < 1e-3
        )

    def test_standstill(self, pendulum):
        """At rest the torque is that of gravity."""
        q = np.tile([0.3, -0.2], (len(T), 1))
        log = make_log(pendulum, T, q)
        np.testing.assert_allclose(predict(pendulum, log, "rigid"), di.gravity_torque(pendulum, q), atol=1e-7)


class TestShort:
    @pytest.mark.parametrize("n", [17, 18, 25, 60])
    def test_short_logs(self, pendulum, n):
        t = T[:n]
        predicted = predict(pendulum, log_at(pendulum, t))
        assert predicted.shape == (n, 2)
        assert error(pendulum, t, predicted).max() < 0.6

    @pytest.mark.parametrize("n", [1, 2, 3, 7])
    def test_short_stretches(self, pendulum, n):
        """A few samples between gaps are predicted as well."""
        t = np.concatenate([T[:1000], 4.0 + np.arange(n) / RATE, 6.0 + T[:1000]])
        predicted = predict(pendulum, log_at(pendulum, t))
        assert np.isfinite(predicted).all()
        static = di.gravity_torque(pendulum, motion_of(pendulum)(t)[0])
        assert np.abs(predicted - static)[1000 : 1000 + n].max() < 60.0


class TestBlocks:
    @pytest.mark.parametrize("name", ["pendulum-2", "tx40"])
    def test_blocks_do_not_show(self, name):
        robot = di.load_robot(name)
        rng = np.random.default_rng(1)
        t = np.delete(T, slice(2000, 2200))
        jittered = np.sort(t + rng.uniform(-0.3, 0.3, len(t)) / RATE)
        repeated = np.sort(np.concatenate([t, t[300:400]]))
        for stamps_of in (t, jittered, repeated):
            log = log_at(robot, stamps_of)
            whole = predict(robot, log, delay=0.003)
            for sizes in [(2000,), (57,), (2001, 1, 3)]:
                pieces = predict(robot, Pieces(log, sizes), delay=0.003)
                np.testing.assert_allclose(pieces, whole, atol=1e-9 * np.abs(whole).max())

    def test_repeated_stamps_at_the_end_of_a_block(self, pendulum):
        t = np.sort(np.concatenate([T, T[300:400]]))
        q = motion_of(pendulum)(t)[0] + 1e-5 * np.random.default_rng(0).normal(size=(len(t), 2))
        log = make_log(pendulum, t, q)
        whole = predict(pendulum, log)
        np.testing.assert_allclose(predict(pendulum, Pieces(log, (57,))), whole, atol=1e-9 * np.abs(whole).max())

    def test_one_sample_at_a_time(self, pendulum):
        log = log_at(pendulum, T[:600])
        whole = predict(pendulum, log)
        np.testing.assert_allclose(predict(pendulum, Pieces(log, (1,))), whole, atol=1e-9 * np.abs(whole).max())


class TestTorqueIsNotLookedAt:
    def logs(self, robot, quantum=None):
        q = motion_of(robot)(T)[0]
        q = q if quantum is None else quantum * np.round(q / quantum)
        rng = np.random.default_rng(0)
        return [
            make_log(robot, T, q),
            make_log(robot, T, q, np.zeros_like(q)),
            make_log(robot, T, q, 1e3 * rng.normal(size=q.shape)),
        ]

    def test_predictions_are_the_same_with_any_torque(self, robot):
        bare, zero, wild = (predict(robot, log, delay=0.002) for log in self.logs(robot))
        np.testing.assert_array_equal(bare, zero)
        np.testing.assert_array_equal(bare, wild)

    def test_with_a_coarse_encoder(self, pendulum):
        """Rows with equal positions are repeats, whatever their torque."""
        estimate = identify(pendulum, exact_log(pendulum, motion_of(pendulum), T), terms=SMOOTH, delay=0.0)
        logs = self.logs(pendulum, 1e-3)
        bare, zero, wild = (estimate.predict(log) for log in logs)
        np.testing.assert_array_equal(bare, zero)
        np.testing.assert_array_equal(bare, wild)
        assert estimate.observe(logs[2], torque=False).survey.n_repeated > 0
        assert estimate.observe(logs[2]).survey.n_repeated == 0


def test_torque_is_that_of_the_joints():
    """Coupled joints: at the joints, not at the motors."""
    robot = di.load_robot("tx40")
    predicted = predict(robot, log_at(robot, T))
    rows = di.inverse_dynamics(robot, *motion_of(robot)(T), SMOOTH)
    assert relative(predicted[away(T)], di.joint_torque(robot, rows)[away(T)]) < 1e-3
    assert relative(predicted[away(T)], rows[away(T)]) > 0.01
