from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import Coulomb, resolve_terms
from dynident.information.row_source import accumulate_source
from dynident.signals import SignalOptions, observe
from dynident.signals.columns import KINEMATIC_FACTOR
from dynident.signals.dry_friction import CoulombColumn, DryFriction, Reversals, cell_mean
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.rows import DELAY, PARAMETERS, PREDICTION, ObservedRows, RowRule, row_blocks
from dynident.signals.thresholds import THRESHOLDS
from tests.signals.made import Fourier, Pieces, exact_log, stamps

TERMS = "rigid,Ia,Fv,Fc,Fo"


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-2").with_values(
        "mine",
        {"ZZ1": 1.3, "MX1": 1.5, "ZZ2": 0.33, "MX2": 0.5, "MY2": 0.1, "Fv1": 0.4, "Fv2": 0.2, "Fc1": 0.5, "Fc2": 0.3},
    )


@pytest.fixture(scope="module")
def observed(pendulum):
    log = exact_log(pendulum, Fourier.random(2, 1), stamps(20.0, 200.0), terms=TERMS)
    return observe(log, pendulum, SignalOptions(band=4.0))


class TestCellMean:
    @pytest.mark.parametrize("width", [0.0, 0.01, 0.1, 1.0])
    def test_is_the_mean_over_the_cell(self, width):
        v, a, cell = np.array([[-0.03, 0.001, 0.0, 0.02, 0.5]]), np.array([[4.0, -6.0, 2.0, 1e-9, 3.0]]), 0.01
        fine = np.linspace(-0.5, 0.5, 20001) * cell
        line = v[..., None] + a[..., None] * fine
        wanted = (np.sign(line) if width == 0.0 else np.tanh(line / width)).mean(-1)
        assert np.abs(cell_mean(v, a, cell, np.array([width])) - wanted).max() < 1e-4

    def test_far_from_reversals_it_is_the_sign(self):
        v = np.array([[-800.0, 900.0]])
        assert (cell_mean(v, v, 0.01, np.array([1e-3])) == np.sign(v)).all()


class TestReversals:
    def test_marks_do_not_depend_on_where_blocks_end(self):
        v = np.sin(np.linspace(0.3, 20.0, 500))[None] * np.array([[1.0], [-2.0]])
        whole = Reversals(np.array([0.01, 0.0])).push(v)
        marks = Reversals(np.array([0.01, 0.0]))
        parts = [marks.push(v[:, a:b]) for a, b in [(0, 1), (1, 160), (160, 161), (161, 500)]]
        assert (np.concatenate(parts, axis=1) == whole).all()

    def test_a_joint_that_rests_is_marked_all_the_time(self):
        assert Reversals(np.array([0.0])).push(np.zeros((1, 7))).all()


def test_reach_is_that_of_the_filters():
    rate, band = 640.0, 10.0
    taps = np.convolve(low_pass_kernel(band, rate).taps, low_pass_kernel(KINEMATIC_FACTOR * band, rate).taps)
    step = np.cumsum(taps)[len(taps) // 2 :]
    settled = (np.flatnonzero(np.abs(1.0 - step) > 1e-3)[-1] + 1) / rate * band
    assert THRESHOLDS.reversal_periods == pytest.approx(settled, abs=0.03)


class TestRows:
    def test_rows_near_a_reversal_are_left_out_and_the_rest_obeys_the_model(self, observed, pendulum):
        base = di.base_parameters(pendulum, TERMS)
        rows = ObservedRows((observed,), base, rule=PARAMETERS)
        blocks = list(rows.blocks())
        worst = max(
            np.abs(block.residual(j, base.base_values())).max(initial=0.0) for block in blocks for j in range(2)
        )
        moving = [
            np.abs(block.residual(j, base.base_values())).max(initial=0.0)
            for block in ObservedRows((observed,), base).blocks()
            for j in range(2)
        ]
        assert worst < 2e-3 < 0.02 < max(moving)
        motion = next(iter(observed.motion()))
        crossings = [motion.time[np.flatnonzero(np.diff(np.sign(motion.dq[:, j])))] for j in range(2)]
        for block in blocks:
            for j in range(2):
                own = block.time[block.usable[:, j]]
                apart = np.abs(own[:, None] - crossings[j]).min(1, initial=np.inf)
                assert (apart > (THRESHOLDS.reversal_periods - 0.2) / observed.band).all()

    def test_rows_do_not_depend_on_where_blocks_end(self, pendulum):
        log = exact_log(pendulum, Fourier.random(2, 1), stamps(12.0, 200.0), terms=TERMS)
        base = di.base_parameters(pendulum, TERMS)
        rule = RowRule("parameters", coulomb=(CoulombColumn("1", 0.1, slope=True),), delay=True)
        found = [
            accumulate_source(ObservedRows((observe(one, pendulum, SignalOptions(band=4.0)),), base, rule=rule))
            for one in (log, Pieces(log, (77, 300)))
        ]
        assert found[0].n_rows == found[1].n_rows
        values = [one.solve().values for one in found]
        assert np.allclose(*values, rtol=1e-6, atol=1e-9)

    def test_classes_of_distance_partition_the_rows(self, observed, pendulum):
        base = di.base_parameters(pendulum, TERMS)
        rules = [RowRule("parameters", 1.32), RowRule("parameters", 0.5, 1.32), RowRule("parameters", 0.0, 0.5)]
        counts = [accumulate_source(ObservedRows((observed,), base, rule=rule)).n_rows for rule in rules]
        every = accumulate_source(ObservedRows((observed,), base, rule=RowRule("parameters", 0.0))).n_rows
        assert sum(counts) == every
        assert min(counts) > 0

    def test_the_slope_of_the_torque_finds_a_delay(self, pendulum):
        log = exact_log(pendulum, Fourier.random(2, 1), stamps(20.0, 200.0), terms=TERMS)
        late = {
            name: np.interp(log.time - 0.002, log.time, x) if name.startswith("tau") else x
            for name, x in log.channels.items()
        }
        log = di.Log("late", "late", log.time, late)
        base = di.base_parameters(pendulum, TERMS)
        rows = ObservedRows(
            (observe(log, pendulum, SignalOptions(band=4.0)),), base, rule=RowRule("parameters", delay=True)
        )
        found = accumulate_source(rows).solve()
        assert found[DELAY] == pytest.approx(0.002, rel=0.03)

    def test_predictions_use_rest_and_most_of_the_ends(self, observed, pendulum):
        base = di.base_parameters(pendulum, TERMS)
        blocks = list(ObservedRows((observed,), base, rule=PREDICTION).blocks())
        time = np.concatenate([block.time[block.usable.all(1)] for block in blocks])
        left_out = THRESHOLDS.prediction_end_periods / observed.band
        assert time[0] - observed.survey.start < left_out + 0.1
        assert observed.survey.stop - time[-1] < left_out + 0.1
        every = np.concatenate([block.usable for block in blocks])
        assert (every.all(1) == every.any(1)).all()

    def test_elements_in_loops_reverse_where_their_column_does(self):
        robot = di.load_robot("sr400")
        base = di.base_parameters(robot, TERMS)
        rows = ObservedRows((), base, rule=PARAMETERS)
        friction = DryFriction(rows.regressor, base.terms)
        assert friction.acts.any(1).all()
        log = exact_log(robot, Fourier.random(len(robot.joint_names), 3), stamps(12.0, 200.0), terms=TERMS)
        one = observe(log, robot, SignalOptions(band=4.0))
        usable = np.concatenate([b.usable for b in row_blocks(one, rows.regressor, rule=PARAMETERS, friction=friction)])
        assert 0.1 < usable.mean() < 0.9


class TestWidths:
    def test_a_width_per_element_is_read_and_written(self):
        term = Coulomb(widths={"1": 0.003, "m6": 0.02})
        assert resolve_terms(term.key)[0].key == term.key == "Fc(1=0.003,m6=0.02)"

    @pytest.mark.parametrize("text", ["Fc(1=a)", "Fc(1=-1)", "Fc(1=0.1=2)", "Fc(1=0.1,2)"])
    def test_widths_that_make_no_sense_are_refused(self, text):
        with pytest.raises(di.DynidentError, match="Fc"):
            resolve_terms(text)

    def test_prediction_follows_the_width(self, pendulum):
        dq = np.array([[0.05, -0.02]])
        tau = di.inverse_dynamics(
            pendulum,
            np.zeros((1, 2)),
            dq,
            np.zeros((1, 2)),
            [Coulomb(widths={"1": 0.1, "2": 0.04})],
            {"Fc1": 2.0, "Fc2": 1.0},
        )
        assert tau[0] == pytest.approx([2.0 * np.tanh(0.5), -np.tanh(0.5)])
