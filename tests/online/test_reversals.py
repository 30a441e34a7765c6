"""Rows near reversals of dry friction have no part on-line: foretold by each box, on both sides, whatever the path."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.online import CausalFilter
from dynident.online.filters import FilteredMotion
from dynident.online.prior import known_robot
from dynident.online.rows import RowMaker, SeriesStructure
from tests.online.made import TERMS, arm, feed

RATE, BOX, REACH = 500.0, 5, 0.05
N = 6


@pytest.fixture(scope="module")
def motion() -> tuple[FilteredMotion, np.ndarray]:
    """Joints that reverse at known instants, and these, by joint."""
    t = np.arange(0.0, 4.0, 1.0 / RATE)[: 400 * BOX]
    w, phase = 2.0 * np.pi * np.linspace(0.4, 0.9, N), np.linspace(0.1, 2.0, N)
    angle = t[:, None] * w + phase
    q, dq, ddq = np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)
    half = np.pi * np.arange(-1, 12)[:, None] + 0.5 * np.pi
    return FilteredMotion(t, q, dq, ddq, np.ones_like(q)), (half - phase) / w


def maker(terms: str = TERMS, reach: float = REACH) -> RowMaker:
    known = known_robot(arm(), terms, None, np.ones(N))
    return RowMaker(known, None, 1e-9, SeriesStructure(), BOX, reach)


def part(motion: FilteredMotion, own: slice) -> FilteredMotion:
    return FilteredMotion(*(x[own] for x in (motion.time, motion.q, motion.dq, motion.ddq, motion.tau)))


def test_boxes_within_the_reach_of_a_reversal_on_either_side_have_no_row(motion):
    samples, reversals = motion
    used = maker().many(samples)[0]
    middle = samples.time.reshape(-1, BOX).mean(1)
    away = np.abs(middle[:, None, None] - reversals).min(1)
    assert used[away > 1.1 * REACH].all()
    assert not used[away < 0.9 * REACH].any()


def test_a_model_without_dry_friction_keeps_all(motion):
    assert maker("rigid,Ia,Fv,Fo").many(motion[0])[3].sum() == motion[0].dq.size / BOX


def test_instants_one_by_one_and_a_restart_in_the_middle_of_a_box_give_the_same(motion):
    samples, _ = motion
    every, one = maker().many(samples), maker()
    place, seen = 0, []
    for k in range(len(samples.time)):
        if k % 7 == 3:  # BOX is no multiple of it
            after = maker()
            after.restore(one.as_arrays())
            one = after
        if one.add(float(samples.time[k]), *(x[k] for x in (samples.q, samples.dq, samples.ddq, samples.tau))):
            seen.append(one.moving.copy())
            made = one.rows()
            if made is not None:
                np.testing.assert_allclose(made[0][:, :N], every[1][:, place], rtol=1e-9, atol=1e-12)
                assert made[2] == every[3][place]
                place += 1
    np.testing.assert_array_equal(seen, every[0])
    assert place == every[1].shape[1]


@pytest.mark.parametrize(("sample_time", "cutoff"), [(1e-3, 40.0), (4e-3, 20.0), (1e-2, 12.0)])
def test_the_reach_is_where_the_step_response_has_settled(sample_time, cutoff):
    filters = CausalFilter(1, sample_time, cutoff)
    after = filters.reach + sample_time * np.arange(1, 100)
    assert np.abs(1.0 - filters.step_response(after)).max() < 1e-3
    assert np.abs(filters.step_response(-after)).max() < 1e-3
    assert 1.0 - filters.step_response(np.array([filters.reach - sample_time]))[0] > 1e-3
    assert filters.reach * cutoff == pytest.approx(1.32, rel=0.05)  # as off-line, of the cutoff


def test_friction_that_sticks_about_reversals_does_not_draw_values_aside(motion):
    """Torque that passes the filters beside a sign that does not: with all rows Fc is off by many std."""
    samples, _ = motion
    tau = di.inverse_dynamics(arm(), samples.q, samples.dq, samples.ddq, TERMS)
    errors = {}
    truth = di.base_parameters(arm(), TERMS).base_values(None)
    for rest_velocity in (0.0, 1e-9):  # all rows; those away from reversals
        found = di.OnlineIdentifier(
            arm(),
            terms=TERMS,
            sigma=np.ones(N),
            band=8.0,
            rest_velocity=rest_velocity,
            forgetting="none",
            sample_time=1 / RATE,
        )
        feed(found, samples.time, samples.q, tau)
        state = found.state()
        dry = [i for i, name in enumerate(state.names) if name.startswith("Fc")]
        errors[rest_velocity] = np.abs(state.values - truth)[dry].max() / np.abs(truth[dry]).max()
    assert errors[1e-9] < 0.1 * errors[0.0]
