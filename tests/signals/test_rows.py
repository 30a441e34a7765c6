from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError
from dynident.information.row_source import accumulate_source
from dynident.signals import ObservedRows, SignalOptions, observe, row_blocks
from dynident.signals.rows import LEAST_SEGMENTS, MOST_SEGMENTS
from tests.signals.made import TERMS, Fourier, Pieces, columns, exact_log, exact_torque, make_log, stamps

RATE = 200.0
ROBOTS = ["pendulum-2", "puma560", "sr400", "tx40"]  # serial, serial, closed loop and coupling, coupling


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    return di.load_robot(request.param)


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-2").with_values(
        "mine",
        {"ZZ1": 1.3, "MX1": 1.5, "ZZ2": 0.33, "MX2": 0.5, "MY2": 0.1, "Fv1": 0.4, "Fv2": 0.2, "Fc1": 0.5, "Fc2": 0.3},
    )


def motion_of(robot, seed=1):
    return Fourier.random(len(robot.joint_names), seed)


def residuals(log, robot, terms=TERMS, **options):
    """Relative residual of the rows with the true values, for each channel."""
    base = di.base_parameters(robot, terms)
    rows = ObservedRows((observe(log, robot, SignalOptions(**options)),), base)
    error, size = np.zeros((2, len(robot.joint_names)))
    for block in rows.blocks():
        for output in range(len(robot.joint_names)):
            error[output] += np.sum(block.residual(output, base.base_values()) ** 2)
            size[output] += np.sum(block.usable_columns_first(output)[-1] ** 2)
    return np.sqrt(error / size)


def held(stutter):
    """For each row the row whose values it shows, where some rows repeat the one before."""
    return np.maximum.accumulate(np.where(stutter, 0, np.arange(len(stutter))))


def solution(logs, robot, terms=TERMS, **options):
    base = di.base_parameters(robot, terms)
    observations = tuple(observe(log, robot, SignalOptions(**options)) for log in logs)
    return accumulate_source(ObservedRows(observations, base))


class TestTruth:
    def test_rows_obey_the_model(self, robot):
        log = exact_log(robot, motion_of(robot), stamps(20.0, RATE))
        assert residuals(log, robot).max() < 1e-3

    def test_smooth_torque_is_met_closer(self, robot):
        log = exact_log(robot, motion_of(robot), stamps(20.0, RATE), terms="rigid,Ia,Fv,Fo")
        assert residuals(log, robot, "rigid,Ia,Fv,Fo").max() < 1.5e-4

    @pytest.mark.parametrize("name", ["five-point", "central", "savitzky-golay"])
    def test_each_differentiator_works(self, pendulum, name):
        log = exact_log(pendulum, motion_of(pendulum), stamps(20.0, RATE))
        assert residuals(log, pendulum, differentiator=name).max() < 2e-3

    def test_the_causal_differentiator_costs_accuracy(self, pendulum):
        log = exact_log(pendulum, motion_of(pendulum), stamps(20.0, RATE))
        assert 5e-3 < residuals(log, pendulum, differentiator="five-point causal").max() < 0.1

    def test_measured_velocity(self, pendulum):
        log = exact_log(pendulum, motion_of(pendulum), stamps(20.0, RATE), velocities=True)
        assert residuals(log, pendulum, velocity_source="measured").max() < 1e-3

    @pytest.mark.parametrize("delay", [0.004, -0.0117])
    def test_delay_is_undone(self, pendulum, delay):
        log = exact_log(pendulum, motion_of(pendulum), stamps(20.0, RATE), delay=delay)
        assert residuals(log, pendulum, delay=delay).max() < 1.5e-3
        assert residuals(log, pendulum).max() > 5e-3

    def test_irregular_stamps_with_a_gap(self, pendulum):
        rng = np.random.default_rng(0)
        t = stamps(24.0, RATE) + rng.uniform(-0.3, 0.3, 4800) / RATE
        t = t[(t < 9.0) | (t > 11.0)]
        log = exact_log(pendulum, motion_of(pendulum), t)
        assert observe(log, pendulum).survey.grid.irregular
        assert residuals(log, pendulum).max() < 2e-3

    def test_stuttering_rows(self, pendulum):
        t = stamps(20.0, RATE)
        log = exact_log(pendulum, motion_of(pendulum), t)
        old = held(np.random.default_rng(0).random(len(t)) < 0.1)
        stuttering = di.Log("stutter", "0", t, {name: values[old] for name, values in log.channels.items()})
        assert observe(stuttering, pendulum).survey.n_repeated > 300
        assert residuals(stuttering, pendulum).max() < 2e-3

    def test_fixed_parameters_are_taken_out_of_the_torque(self, pendulum):
        robot = dataclasses.replace(pendulum, fixed={"Fv1": 0.4, "MX2": 0.5})
        log = exact_log(pendulum, motion_of(pendulum), stamps(20.0, RATE))
        assert {"Fv1", "MX2"}.isdisjoint(di.base_parameters(robot, TERMS).names)
        assert residuals(log, robot).max() < 1e-3
        found = solution([log], robot).solve()
        truth = di.base_parameters(robot, TERMS).base_values()
        np.testing.assert_allclose(found.values, truth, atol=2e-3)
        wrong = dataclasses.replace(pendulum, fixed={"Fv1": 0.9, "MX2": 0.5})
        assert abs(solution([log], wrong).solve().values - truth).max() > 0.05


class TestSides:
    """Logs of the joint side, of the motor side and of currents tell the same."""

    @pytest.mark.parametrize("name", ["tx40", "sr400"])
    def test_motor_side(self, name):
        coupled = di.load_robot(name)
        t = stamps(12.0, RATE)
        q, dq, _ = motion_of(coupled)(t)
        tau = exact_torque(coupled, motion_of(coupled), t)
        joint = make_log(coupled, t, q, tau, dq=dq)
        ratios, rows = coupled.drive.gear_ratios, di.dynamics.actuated_torque(coupled, tau)
        channels = columns(coupled, "qm", (q - coupled.zero) @ coupled.coupling.T * ratios)
        channels |= columns(coupled, "dqm", dq @ coupled.coupling.T * ratios)
        channels |= columns(coupled, "taum", rows / ratios)
        motor = di.Log("motor", "0", t, channels)
        for source in ("position", "measured"):
            ours, theirs = (solution([log], coupled, velocity_source=source).solve().values for log in (joint, motor))
            np.testing.assert_allclose(ours, theirs, atol=1e-7 * np.abs(ours).max())

    def test_currents(self):
        robot, t = di.load_robot("sr400"), stamps(12.0, RATE)
        q, _, _ = motion_of(robot)(t)
        tau = exact_torque(robot, motion_of(robot), t)
        currents = di.dynamics.actuated_torque(robot, tau) / robot.drive.gains
        log = di.Log("current", "0", t, columns(robot, "q", q) | columns(robot, "i", currents))
        ours, theirs = (solution([x], robot).solve().values for x in (log, make_log(robot, t, q, tau)))
        np.testing.assert_allclose(ours, theirs, atol=1e-7 * np.abs(ours).max())


class TestWhatIsLeftOut:
    def test_ends_of_stretches(self, pendulum):
        t = stamps(20.0, RATE)
        keep = (t < 8.0) | (t >= 9.0)
        log = exact_log(pendulum, motion_of(pendulum), t[keep])
        one = observe(log, pendulum, SignalOptions(band=4.0, rest_velocity=0.0))
        base = di.base_parameters(pendulum, TERMS)
        blocks = list(row_blocks(one, ObservedRows((one,), base).regressor))
        time, usable = np.concatenate([b.time for b in blocks]), np.concatenate([b.usable for b in blocks])
        used = time[usable.all(1)]
        reach = one.reach + 1.8 / 4.0
        for first, last in ((0.0, 8.0), (9.0, 20.0)):
            own = used[(used >= first) & (used < last)]
            assert reach - 0.02 < own[0] - first < reach + 0.15
            assert reach - 0.02 < last - own[-1] < reach + 0.15
        assert np.diff(time).max() < 1.2
        assert (np.diff(time) > 0.0).all()

    def test_joints_at_rest(self, pendulum):
        t = stamps(20.0, RATE)
        q, _, _ = motion_of(pendulum)(t)
        q[:, 1] = np.where(t < 10.0, q[:, 1], q[t.searchsorted(10.0), 1])
        log = make_log(pendulum, t, q, np.ones_like(q))
        one = observe(log, pendulum, SignalOptions(band=4.0))
        base = di.base_parameters(pendulum, TERMS)
        blocks = list(row_blocks(one, ObservedRows((one,), base).regressor))
        time, usable = np.concatenate([b.time for b in blocks]), np.concatenate([b.usable for b in blocks])
        assert not usable[time > 10.5, 1].any()
        assert usable[(time > 1.5) & (time < 9.5), 1].mean() > 0.9
        assert usable[(time > 1.5) & (time < 18.5), 0].mean() > 0.9

    def test_rest_velocity_decides(self, pendulum):
        log = exact_log(pendulum, motion_of(pendulum), stamps(20.0, RATE))
        counts = [solution([log], pendulum, rest_velocity=velocity).n_rows for velocity in (0.0, 0.01, 0.5, 1.0)]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] < 0.7 * counts[0]

    def test_rest_alone_gives_no_row(self, pendulum):
        t = stamps(10.0, RATE)
        still = make_log(pendulum, t, np.full((len(t), 2), 0.3), np.ones((len(t), 2)))
        with pytest.raises(InputError, match="there is no row for training"):
            solution([still], pendulum)

    def test_too_short_a_log_is_named(self, pendulum):
        log = exact_log(pendulum, motion_of(pendulum), stamps(2.0, RATE), source="short.csv")
        with pytest.raises(InputError, match=r"short\.csv: no stretch is long enough for a band of 1 Hz.* 5\.\d+ s"):
            solution([log], pendulum, band=1.0)
        assert solution([log], pendulum, band=5.0).n_rows > 0

    def test_the_length_that_the_message_asks_for_is_enough(self, pendulum):
        short = exact_log(pendulum, motion_of(pendulum), stamps(2.0, RATE))
        for delay, differentiator in ((0.0, "low-pass"), (0.015, "low-pass"), (0.0, "savitzky-golay")):
            options = {"band": 1.0, "delay": delay, "differentiator": differentiator}
            with pytest.raises(InputError) as error:
                solution([short], pendulum, **options)
            seconds = float(str(error.value).split("whose filters take ")[1].split(" s ")[0])
            enough = exact_log(pendulum, motion_of(pendulum), stamps(seconds + 0.3, RATE))
            assert solution([enough], pendulum, **options).n_rows > 0


class TestBlocks:
    def logs(self, robot):
        """Regular with a gap at a block border; irregular with a gap and stutters."""
        t = stamps(14.0, RATE)
        regular = exact_log(robot, motion_of(robot), t[(t < 5.0) | (t >= 5.5)])
        rng = np.random.default_rng(3)
        jittered = t + rng.uniform(-0.3, 0.3, len(t)) / RATE
        irregular = exact_log(robot, motion_of(robot, 2), jittered[(t < 5.0) | (t >= 5.5)], source="irregular")
        old = held(rng.random(len(irregular)) < 0.05)
        channels = {name: values[old] for name, values in irregular.channels.items()}
        return regular, di.Log("irregular", "0", irregular.time, channels)

    @pytest.mark.parametrize("sizes", [(1000,), (31,), (1, 2, 300)])
    def test_information_does_not_depend_on_them(self, pendulum, sizes):
        whole = solution(self.logs(pendulum), pendulum)
        pieces = solution([Pieces(log, sizes) for log in self.logs(pendulum)], pendulum)
        assert [s.label for s in whole.segments] == [s.label for s in pieces.segments]
        for a, b in zip(whole.segments, pieces.segments, strict=True):
            for one, other in zip(a.factors, b.factors, strict=True):
                assert (one.columns, one.n_rows) == (other.columns, other.n_rows)
                np.testing.assert_allclose(one.R.T @ one.R, other.R.T @ other.R, atol=1e-10 * np.abs(one.R).max() ** 2)
        np.testing.assert_allclose(whole.solve().values, pieces.solve().values, rtol=1e-10, atol=1e-10)

    def test_coupled_robot(self):
        robot = di.load_robot("tx40")
        log = exact_log(robot, motion_of(robot), stamps(10.0, RATE))
        whole, pieces = solution([log], robot).solve(), solution([Pieces(log, (13, 400))], robot).solve()
        np.testing.assert_allclose(whole.values, pieces.values, atol=1e-10 * np.abs(whole.values).max())

    def test_segments_are_pieces_of_time(self, pendulum):
        """Four seconds each, but a short log has some and a long one not too many."""
        for seconds, count in ((80.0, 20), (20.0, LEAST_SEGMENTS), (400.0, MOST_SEGMENTS)):
            log = exact_log(pendulum, motion_of(pendulum), stamps(seconds, 50.0))
            found = solution([log], pendulum, band=4.0).segments
            assert len(found) <= count
            assert len(found) >= count - 2  # the first and the last may lie within reach of the ends
