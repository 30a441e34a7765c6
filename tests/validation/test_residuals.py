from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.errors import InputError
from dynident.estimate import TorqueErrors, TorqueModel
from dynident.estimate.torque_errors import together
from dynident.signals import SignalOptions, observe
from dynident.validation import compare
from dynident.validation.residuals import MAX_TRACE_POINTS, row_rate
from dynident.validation.thresholds import THRESHOLDS
from tests.signals.made import TERMS, Fourier, Pieces, exact_log, exact_torque, make_log, stamps

RATE = 200.0
T = stamps(20.0, RATE)


@pytest.fixture(scope="module", params=["pendulum-2", "puma560", "sr400", "tx40"])
def robot(request):
    return di.load_robot(request.param)


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-2")


def motion_of(robot, seed=1):
    return Fourier.random(len(robot.joint_names), seed)


def model_of(robot, **changes):
    chi = di.parameters(robot, TERMS, {**robot.value_set(), **changes})
    return TorqueModel(robot, resolve_terms(TERMS), chi)


class TestErrors:
    def test_exact_data_leave_next_to_nothing(self, robot):
        found = compare([model_of(robot)], observe(exact_log(robot, motion_of(robot), T), robot))
        assert found.errors[0].relative < 7e-4
        assert found.errors[0].per_joint.max() < 1e-3
        assert found.errors[0].fit.min() > 0.999
        assert found.whole[0].relative < 7e-4

    def test_one_wrong_parameter_gives_the_error_it_makes(self, robot):
        """The torque that the wrong part makes on the exact motion, at the joints, as a share of the whole."""
        wrong = model_of(robot, MX2=robot.value_set()["MX2"] + (0.2 if robot.name == "pendulum-2" else 2.0))
        found = compare([wrong], observe(exact_log(robot, motion_of(robot), T), robot)).errors[0]
        exact = exact_torque(robot, motion_of(robot), T)
        off = di.joint_torque(robot, wrong.torque(*motion_of(robot)(T))) - exact
        inner = (T > 0.3) & (T < 19.7)
        expected = np.sqrt(np.sum(off[inner] ** 2, axis=0) / np.sum(exact[inner] ** 2, axis=0))
        assert expected.max() > 0.01
        np.testing.assert_allclose(found.per_joint, expected, rtol=0.03, atol=1e-3)
        np.testing.assert_allclose(found.rmse, np.sqrt(np.mean(off[inner] ** 2, axis=0)), rtol=0.03, atol=5e-2)

    def test_several_models_at_once(self, pendulum):
        one = observe(exact_log(pendulum, motion_of(pendulum), T), pendulum)
        models = [model_of(pendulum), model_of(pendulum, MX2=0.9)]
        found = compare(models, one)
        assert len(found.errors) == len(found.whole) == 2
        for i, model in enumerate(models):
            alone = compare([model], one)
            np.testing.assert_allclose(found.errors[i].error_square, alone.errors[0].error_square, rtol=1e-9)
        assert found.errors[1].relative > 50 * found.errors[0].relative

    def test_the_delay_is_taken_out(self, pendulum):
        log = exact_log(pendulum, motion_of(pendulum), T, delay=0.01)
        errors = [
            compare([model_of(pendulum)], observe(log, pendulum, SignalOptions(delay=delay))).errors[0].relative
            for delay in (0.0, 0.01)
        ]
        assert errors[1] < 0.05 * errors[0]

    def test_torque_is_compared_in_the_band(self, pendulum):
        """Noise above the band does not count, and its share below does."""
        tau = exact_torque(pendulum, motion_of(pendulum), T)
        noise = np.random.default_rng(0).normal(size=tau.shape)
        log = make_log(pendulum, T, motion_of(pendulum)(T)[0], tau + noise)
        for band in (2.0, 8.0):
            found = compare([model_of(pendulum)], observe(log, pendulum, SignalOptions(band=band))).errors[0]
            assert found.band == band
            np.testing.assert_allclose(found.rmse, np.sqrt(band / (RATE / 2)), rtol=0.25)


class TestRest:
    def log(self, robot):
        """Moves for ten seconds, stands for ten; at rest the torque is anything that friction holds."""
        q = motion_of(robot)(T)[0]
        hold = T >= 10.0
        q[hold] = q[np.argmax(hold)]
        tau = exact_torque(robot, motion_of(robot), T)
        tau[hold] = tau[np.argmax(hold)] + 20.0
        return make_log(robot, T, q, tau)

    def test_rest_is_left_out_of_the_errors(self, pendulum):
        found = compare([model_of(pendulum)], observe(self.log(pendulum), pendulum, SignalOptions(band=5.0)))
        assert found.whole[0].count[0] > 1.7 * found.errors[0].count[0]
        assert found.errors[0].relative < 0.2  # the moment of stopping remains
        assert found.whole[0].relative > 3 * found.errors[0].relative

    def test_a_joint_counts_while_it_moves_itself(self, pendulum):
        q = motion_of(pendulum)(T)[0] * [1.0, 0.0]
        log = make_log(pendulum, T, q, np.ones_like(q))
        found = compare([model_of(pendulum)], observe(log, pendulum))
        assert found.errors[0].count[0] > 0.8 * found.whole[0].count[0]
        assert found.errors[0].count[1] == 0.0
        assert found.correlation.n_rows[1] == 0.0  # its residual at rest shows nothing about noise
        assert found.correlation.n_rows[0] > 0.8 * found.whole[0].count[0]

    def test_rest_alone(self, pendulum):
        still = make_log(pendulum, T, np.full((len(T), 2), 0.4), np.ones((len(T), 2)))
        found = compare([model_of(pendulum)], observe(still, pendulum))
        assert found.errors[0].count.tolist() == [0.0, 0.0]
        assert np.isfinite(found.errors[0].relative)
        assert found.whole[0].count[0] > 0


class TestRows:
    def test_ends_are_left_out(self, pendulum):
        t = T[(T < 8.0) | (T >= 9.0)]
        log = exact_log(pendulum, motion_of(pendulum), t)
        found = compare([model_of(pendulum)], observe(log, pendulum, SignalOptions(band=5.0)))
        times = found.trace.time
        assert times[0] >= THRESHOLDS.stretch_end_s - 1e-9
        assert times[-1] <= T[-1] - THRESHOLDS.stretch_end_s + 1e-9
        assert not ((times > 8.0 - THRESHOLDS.stretch_end_s) & (times < 9.0 + THRESHOLDS.stretch_end_s - 1e-9)).any()
        assert (np.diff(times) > 0).all()

    def test_trace_shows_measured_and_predicted(self, robot):
        found = compare([model_of(robot)], observe(exact_log(robot, motion_of(robot), T), robot))
        trace = found.trace
        exact = exact_torque(robot, motion_of(robot), trace.time, "rigid,Ia,Fv,Fo")
        assert trace.measured.shape == trace.predicted.shape == (len(trace.time), len(robot.joint_names))
        size = np.abs(exact).max()
        assert np.abs(trace.measured - trace.predicted).max() < 0.01 * size
        friction = np.abs(exact_torque(robot, motion_of(robot), trace.time) - exact).max()
        assert np.abs(trace.measured - exact).max() < 0.01 * size + 1.1 * friction

    def test_long_logs_are_thinned(self, pendulum):
        t = stamps(400.0, 50.0)
        found = compare([model_of(pendulum)], observe(exact_log(pendulum, motion_of(pendulum), t), pendulum))
        assert 0.4 * MAX_TRACE_POINTS < len(found.trace.time) <= MAX_TRACE_POINTS
        assert np.ptp(np.diff(found.trace.time)) < 1e-6
        assert found.whole[0].count[0] > 2 * MAX_TRACE_POINTS

    @pytest.mark.parametrize("sizes", [(61,), (1000,), (333, 1)])
    @pytest.mark.parametrize("name", ["pendulum-2", "tx40"])
    def test_blocks_do_not_show(self, name, sizes):
        robot = di.load_robot(name)
        t = T[(T < 8.0) | (T >= 9.0)]
        log = exact_log(robot, motion_of(robot), t)
        log = di.Log("made", "0", t, {**log.channels, "tau1": log.channels["tau1"] + np.sin(37.0 * t)})
        options = SignalOptions(band=7.0)
        whole, pieces = (compare([model_of(robot)], observe(x, robot, options)) for x in (log, Pieces(log, sizes)))
        for a, b in ((whole.errors[0], pieces.errors[0]), (whole.whole[0], pieces.whole[0])):
            np.testing.assert_array_equal(a.count, b.count)
            np.testing.assert_allclose(a.error_square, b.error_square, rtol=1e-6, atol=1e-12 * a.torque_square.max())
        np.testing.assert_allclose(whole.trace.time, pieces.trace.time)
        np.testing.assert_allclose(whole.trace.measured, pieces.trace.measured, atol=1e-9)
        np.testing.assert_allclose(
            whole.correlation.autocorrelation[0], pieces.correlation.autocorrelation[0], atol=1e-6
        )

    def test_rounding_of_the_rate_does_not_show(self, pendulum):
        """The mean step of a log depends in its last digit on where blocks end: 25.000000000000004 rows a second."""
        t = T[(T < 8.0) | (T >= 9.0)]
        log = exact_log(pendulum, motion_of(pendulum), t)
        counts = set()
        for size in (10**6, 61, 333):
            one = observe(Pieces(log, (size,)), pendulum, SignalOptions(band=6.0))
            assert row_rate(one) == pytest.approx(25.0, rel=1e-12)
            counts.add(float(compare([model_of(pendulum)], one).whole[0].count[0]))
        assert len(counts) == 1

    def test_stretches_are_not_joined_by_their_residuals(self, pendulum):
        """As many products of lag k as rows have a row k before them in the same stretch."""
        t = T[(T < 8.0) | (T >= 9.0)]
        log = exact_log(pendulum, motion_of(pendulum), t)
        one = observe(log, pendulum, SignalOptions(band=5.0, rest_velocity=0.0))
        found = compare([model_of(pendulum)], one)
        assert found.lag == pytest.approx(1.0 / row_rate(one))
        assert found.correlation.n_rows[0] == found.whole[0].count[0]

    def test_too_short_is_named(self, pendulum):
        t = stamps(0.3, RATE)
        log = exact_log(pendulum, motion_of(pendulum), t, source="short.csv")
        with pytest.raises(InputError, match=r"short\.csv: is too short to compare torque in a band of 5 Hz"):
            compare([model_of(pendulum)], observe(log, pendulum, SignalOptions(band=5.0)))


class TestTorqueErrors:
    def make(self, seed=0, n=50):
        rng = np.random.default_rng(seed)
        measured = rng.normal(size=(n, 2)) + [3.0, 0.0]
        return measured, measured + 0.1 * rng.normal(size=(n, 2))

    def test_figures_are_their_definitions(self):
        measured, predicted = self.make()
        found = TorqueErrors.of(("a", "b"), 5.0).including(measured, predicted)
        off = measured - predicted
        assert found.relative == pytest.approx(np.linalg.norm(off) / np.linalg.norm(measured))
        np.testing.assert_allclose(found.per_joint, np.linalg.norm(off, axis=0) / np.linalg.norm(measured, axis=0))
        np.testing.assert_allclose(found.rmse, np.sqrt(np.mean(off**2, axis=0)))
        spread = np.linalg.norm(measured - measured.mean(0), axis=0)
        np.testing.assert_allclose(found.fit, 1.0 - np.linalg.norm(off, axis=0) / spread)
        assert found.as_dict()["samples"] == 50

    def test_sets_add_up(self):
        parts = [TorqueErrors.of(("a", "b"), band).including(*self.make(i)) for i, band in enumerate((5.0, 3.0))]
        joined = [np.concatenate(arrays) for arrays in zip(self.make(0), self.make(1), strict=True)]
        both = TorqueErrors.of(("a", "b"), 5.0).including(*joined)
        added = together(parts)
        assert added.relative == pytest.approx(both.relative)
        assert added.band == 5.0
        np.testing.assert_allclose(added.fit, both.fit)

    def test_stored_comes_back(self):
        made = TorqueErrors.of(("a", "b"), 5.0).including(*self.make())
        back = TorqueErrors.from_stored(("a", "b"), made.stored())
        np.testing.assert_array_equal(back.fit, made.fit)
        assert back.band == 5.0

    def test_nothing_is_no_error(self):
        nothing = TorqueErrors.of(("a",), 5.0)
        assert nothing.relative == 0.0
        assert nothing.per_joint.tolist() == [0.0]
        assert np.isfinite(nothing.rmse).all()
