"""Energy and power models: exact on exact data, the same from arrays and from logs, clear when refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError
from dynident.estimate import EnergyBalance
from tests.signals.made import Fourier, Pieces, exact_log, stamps

TERMS = "rigid,Ia,Fv,Fc,Fo"
T = stamps(30.0, 500.0)


@pytest.fixture(scope="module")
def robot():
    plain = di.load_robot("pendulum-2")
    friction = {"Fv1": 0.5, "Fv2": 0.3, "Fc1": 0.8, "Fc2": 0.4, "Fo1": 0.2, "Fo2": -0.1, "Ia1": 0.3, "Ia2": 0.2}
    return plain.with_values("rough", {**plain.value_set(), **friction})


@pytest.fixture(scope="module")
def run(robot):
    q, dq, ddq = Fourier.random(2, 1)(T)
    return q, dq, di.inverse_dynamics(robot, q, dq, ddq, TERMS)


@pytest.fixture(scope="module")
def truth(robot):
    return di.base_parameters(robot, TERMS).base_values()


def test_exact_data_give_exact_values_without_accelerations(robot, run, truth):
    found = di.estimate.energy_rows(robot, T, *run, TERMS, length=0.3)
    assert found.information.channels == ("energy",)
    assert len(found.intervals) == 99
    assert found.rank == len(truth)
    np.testing.assert_allclose(found.information.solve().values, truth, atol=2e-4)
    power = di.estimate.power_rows(robot, T, *run, TERMS, band=10.0)
    assert power.information.channels == ("power",)
    np.testing.assert_allclose(power.information.solve().values, truth, atol=2e-4)


def test_a_row_is_work_against_energy_and_losses(robot, run):
    q, dq, tau = run
    found = di.estimate.energy_rows(robot, T, *run, TERMS, length=0.3)
    start, stop = found.intervals[40]
    own = slice(round(start * 500), round(stop * 500) + 1)
    work = np.trapezoid(np.sum(tau[own] * dq[own], axis=1), dx=1 / 500)
    stored = np.diff(di.dynamics.energy(robot, q[own][[0, -1]], dq[own][[0, -1]], TERMS))[0]
    value = robot.value_set()
    lost = sum(
        value[f"Fv{j + 1}"] * np.trapezoid(dq[own, j] ** 2, dx=1 / 500)
        + value[f"Fc{j + 1}"] * np.trapezoid(np.abs(dq[own, j]), dx=1 / 500)
        + value[f"Fo{j + 1}"] * np.trapezoid(dq[own, j], dx=1 / 500)
        for j in range(2)
    )
    assert work == pytest.approx(stored + lost, rel=1e-3)


def test_intervals_given_or_chosen(robot, run):
    chosen = di.estimate.energy_rows(robot, T, *run, TERMS, length=0.3, overlap=0.5)
    assert len(chosen.intervals) == 198
    assert chosen.inflation >= 0.98 * 2.0
    np.testing.assert_allclose(np.diff(chosen.intervals, axis=1), 0.3)
    given = di.estimate.energy_rows(robot, T, *run, TERMS, intervals=chosen.intervals)
    np.testing.assert_array_equal(given.intervals, chosen.intervals)
    np.testing.assert_allclose(given.information.solve().values, chosen.information.solve().values, rtol=1e-9)
    default = di.estimate.energy_rows(robot, T, *run, TERMS)
    n = default.information.coordinates.n
    assert 9 * n <= len(default.intervals) <= 11 * n
    assert "condition" in repr(default)


def test_energy_and_torque_rows_can_be_put_together(robot, run, truth):
    q, dq, tau = run
    energy = di.estimate.energy_rows(robot, T, q, dq, tau, TERMS, length=0.3).information
    ddq = Fourier.random(2, 1)(T)[2]
    both = energy + di.accumulate(robot, q, dq, ddq, tau, TERMS)
    assert both.channels == ("energy", *robot.joint_names)
    np.testing.assert_allclose(both.solve().values, truth, atol=2e-4)


class TestLogs:
    @pytest.fixture
    def log(self, robot):
        return exact_log(robot, Fourier.random(2, 1), T, terms=TERMS)

    def test_from_a_log(self, robot, log, truth):
        observed = di.observe(log, robot, di.SignalOptions(band=10.0))
        energy = di.estimate.observed_energy(observed, TERMS, length=0.3)
        assert energy.intervals.min() >= observed.reach - 1e-9
        assert energy.intervals.max() <= T[-1] - observed.reach + 1e-9
        np.testing.assert_allclose(energy.information.solve().values, truth, rtol=0.02, atol=0.01)
        power = di.estimate.observed_power(observed, TERMS)
        np.testing.assert_allclose(power.information.solve().values, truth, rtol=0.02, atol=0.01)

    def test_blocks_do_not_matter(self, robot, log):
        whole = di.observe(log, robot, di.SignalOptions(band=10.0))
        pieces = di.observe(Pieces(log, [1000, 37, 4099]), robot, di.SignalOptions(band=10.0))
        for rows in (
            lambda one: di.estimate.observed_energy(one, TERMS, length=0.3),
            lambda one: di.estimate.observed_power(one, TERMS),
        ):
            a, b = rows(whole), rows(pieces)
            np.testing.assert_allclose(a.intervals, b.intervals)
            np.testing.assert_allclose(a.information.solve().values, b.information.solve().values, atol=1e-8)

    def test_no_interval_spans_a_gap(self, robot, log):
        keep = (T < 12.0) | (T > 14.0)
        observed = di.observe(log.samples(keep), robot, di.SignalOptions(band=10.0))
        spans = di.estimate.observed_energy(observed, TERMS, length=0.3).intervals
        assert not np.any((spans[:, 0] < 12.0) & (spans[:, 1] > 14.0))
        assert (spans[:, 0] > 14.0).any()
        given = di.estimate.observed_energy(observed, TERMS, intervals=[*spans, (11.5, 14.5)])
        assert len(given.intervals) == len(spans)


def test_long_arrays_are_gone_through_in_parts(robot):
    t = stamps(20.0, 1000.0)  # several parts
    q, dq, ddq = Fourier.random(2, 3)(t)
    tau = di.inverse_dynamics(robot, q, dq, ddq, TERMS)
    lengthy = di.estimate.energy_rows(
        robot, t, q, dq, tau, TERMS, intervals=[(0.1 * i, 19.9 - 0.1 * i) for i in range(20)]
    )
    assert lengthy.information.n_rows == 20
    stored, lost = EnergyBalance(robot, TERMS).signals(q, dq, tau)
    row = stored[19900] - stored[100] + np.trapezoid(lost[100:19901], dx=1e-3, axis=0)
    again = di.estimate.energy_rows(
        robot, t, q, dq, tau, TERMS, intervals=[(0.1, 19.9), *[(0.1 * i, 19.9 - 0.1 * i) for i in range(2, 20)]]
    )
    R = again.information.channel_factors()[0].dense(len(row) - 1)
    # The first row lies in the row space of the factor with just these coefficients.
    x = np.linalg.lstsq(R.T, row, rcond=None)[0]
    np.testing.assert_allclose(R.T @ x, row, rtol=1e-9, atol=1e-9)


def test_fixed_parameters_are_taken_out(robot, run):
    name = "MX2"
    held = dataclasses.replace(robot, fixed={name: robot.value_set()[name]})
    found = di.estimate.energy_rows(held, T, *run, TERMS, length=0.3)
    base = di.base_parameters(held, TERMS)
    assert name not in base.names
    np.testing.assert_allclose(found.information.solve().values, base.base_values(), atol=2e-4)


def test_what_cannot_be_done_is_refused(robot, run):
    def rows(**options):
        return di.estimate.energy_rows(robot, T, *run, TERMS, **options)

    with pytest.raises(InputError, match=r"gives \d energy rows for \d+ parameters; use shorter intervals"):
        rows(length=6.0)
    with pytest.raises(InputError, match="not both"):
        rows(length=1.0, intervals=[(0.0, 1.0)])
    with pytest.raises(InputError, match=r"overlap is 1\.0"):
        rows(overlap=1.0)
    with pytest.raises(InputError, match="end after it begins"):
        rows(intervals=[(1.0, 0.5)])
    with pytest.raises(InputError, match=r"shape \(n_rows, 2\)"):
        rows(intervals=[1.0, 2.0])
    with pytest.raises(InputError, match="length is -1"):
        rows(length=-1.0)
    with pytest.raises(InputError, match="no interval lies within"):
        rows(intervals=[(40.0, 41.0)])
    with pytest.raises(InputError, match="regular steps"):
        di.estimate.energy_rows(robot, np.r_[T[:-1], T[-1] + 1.0], *run, TERMS)
    with pytest.raises(InputError, match="at least two"):
        di.estimate.energy_rows(robot, T[:1], *(x[:1] for x in run), TERMS)


def test_a_held_motor_that_turns_with_a_moving_joint_leaves_work_unknown():
    robot = di.load_robot("sr400").lock(q1=0, q2=-1.5, q4=0, q7=0, q6=0.0)
    x = np.zeros((100, 1))
    with pytest.raises(InputError, match=r"locked .* joint6: the motor also drives"):
        di.estimate.energy_rows(robot, np.arange(100) / 100, x, x, x, TERMS)
