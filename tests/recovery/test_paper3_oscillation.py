"""Jamisola, Dadios, Ang: what natural oscillations can achieve on MuJoCo, and what the paper claims beyond it."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.gravity_stage import run_gravity_stage
from dynident.experiments.oscillation.inertia_stage import run_inertia_stage
from dynident.experiments.oscillation.model import swing_model
from dynident.experiments.oscillation.modes import fit_modes
from dynident.experiments.oscillation.procedure import creep, random_walk
from dynident.experiments.oscillation.swings import NaturalControl
from dynident.papers.jamisola.model import paper_model
from dynident.papers.jamisola.printed import KP, SAMPLE_TIME
from dynident.papers.jamisola.tables import paper_table
from dynident.plant import MujocoPlant, Sensors

BITS_16 = 2.0 * np.pi / 2**16  # [rad]


def paper_bench(links, parts=2):
    robot = di.load_robot(f"pendulum-{links}")
    return Bench(MujocoPlant(robot, "plant", sample_time=SAMPLE_TIME, step=SAMPLE_TIME / parts)), paper_model(robot)


def bench(links, resolution=0.0, sample_time=0.005, step=0.005):
    robot = di.load_robot(f"pendulum-{links}")
    sensors = Sensors(resolution=resolution)
    return Bench(MujocoPlant(robot, "plant", sample_time=sample_time, step=step, sensors=sensors)), robot


def doubtful(robot, seed):
    """What a description might say: each parameter off by a fifth either way."""
    rng = np.random.default_rng(seed)
    return {name: value * rng.uniform(0.8, 1.2) for name, value in robot.value_set("plant").items()}


def relative_errors(found, model):
    true = np.array(model.true_values(found.groups, "plant"))
    return np.abs(found.values - true)[true != 0.0] / np.abs(true[true != 0.0])


# --- counted periods ----------------------------------------------------------------------------------------------


def test_periods_of_the_gravity_test():
    table = paper_table(*paper_bench(1), "gravity", factors=(1.02, 1.01, 1.005, 1.001, 0.999))
    counted = [row.periods[0] for row in table.rows if not row.falls]
    assert counted == pytest.approx([7.45, 5.27, 3.72, 1.67], rel=5e-3)
    slower = 1.0 - np.radians(15.0) ** 2 / 16.0  # than a small swing
    for factor, periods in zip((1.02, 1.01, 1.005, 1.001), counted, strict=True):
        theory = np.sqrt((factor - 1.0) * 14.715) * slower * 5000 * SAMPLE_TIME / (2.0 * np.pi)
        assert periods == pytest.approx(theory, rel=0.01)
    assert table.rows[-1].falls
    assert table.rows[-1].printed == "falls"
    assert table.band == pytest.approx(0.5**2 / (7.45**2 / 0.02), rel=0.02)


def test_at_the_true_weight_nothing_swings():
    """The paper prints 4.1 periods there, against its own equation (13)."""
    table = paper_table(*paper_bench(1, 1), "gravity", factors=(1.0,), updates=5000)
    assert table.rows[0].printed == "4.1"
    assert table.rows[0].periods == (0.0,)
    assert "not reproducible" in table.warnings[0]


@pytest.mark.parametrize("links", [1, 2])
def test_periods_of_the_inertia_test_shortened(links):
    """A tenth of the paper's updates, and so of its periods: 35.50 sqrt(f) for one link."""
    table = paper_table(*paper_bench(links, 4), "inertia", updates=2000, factors=(1.0, 1.1))
    assert table.rows[0].periods == pytest.approx([3.55] * links, rel=1e-3)
    if links == 1:
        assert table.rows[1].periods[0] == pytest.approx(3.55 * np.sqrt(1.1), rel=1e-3)


def test_the_square_of_the_frequency_is_the_gain():
    made, model = paper_bench(3, 8)
    control = NaturalControl(model, model.chi, model.chi, KP)
    run = made.run(control, 2000 * SAMPLE_TIME, np.radians([1.0, -1.0, 1.0]))
    assert fit_modes(run.time, run.q, 1, 3.0).square[0] == pytest.approx(KP, rel=1e-4)


@pytest.mark.full
@pytest.mark.parametrize(("links", "expected"), [(1, [37.23]), (2, [37.20, 37.03]), (3, [37.25, 36.70, 36.68])])
def test_periods_of_the_inertia_test(links, expected):
    table = paper_table(*paper_bench(links, 8), "inertia", factors=(1.0, 1.1))
    assert table.rows[0].periods == pytest.approx([35.5] * links, abs=0.01)
    assert table.rows[1].periods == pytest.approx(expected, abs=0.03)


# --- the automated search -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "achievable"),
    [(1, 2e-5), (2, 8e-5), pytest.param(3, 3.1e-4, marks=pytest.mark.full)],
)
@pytest.mark.full
def test_extrapolation_from_half_as_much_again(links, achievable):
    made, robot = bench(links)
    heavy = {name: 1.25 * value for name, value in robot.value_set("plant").items()}  # the fit must not start right
    model = swing_model(robot, heavy)
    found = run_gravity_stage(made, model, OscillationOptions(factor=1.2, amplitude=np.radians(0.3), rounds=2))
    assert relative_errors(found, model).max() < achievable
    assert all(step.state == "swings" for step in found.steps)


def test_from_a_doubtful_description_with_an_encoder_of_16_bits():
    made, robot = bench(2, BITS_16)
    found = di.experiments.oscillate(made, nominal=doubtful(robot, 1), options=OscillationOptions(rounds=2))
    for one, true in zip(
        found.estimates, found.model.true_values([g for s in found.stages for g in s.groups], "plant"), strict=True
    ):
        assert abs(one.value - true) < max(4.0 * one.std, 2e-3 * abs(true)), one
        assert one.std < 0.01 * max(abs(true), 0.1)
    assert found.warnings == ()


@pytest.mark.full
def test_inertia_of_three_links_from_three_set_points():
    """Four lumped inertias of the paper; with one set-point alone they are not all determined."""
    made, robot = bench(3, sample_time=1e-3, step=1e-3)
    model = paper_model(robot)
    points = [np.zeros(3), np.array([0.0, 1.2, 0.0]), np.array([0.0, 0.0, 1.2])]
    how = OscillationOptions(amplitude=np.radians(0.1))
    found = run_inertia_stage(made, model, how, kp=100.0, set_points=points)
    np.testing.assert_allclose(found.values, 1.0, atol=1.7e-4)
    assert np.all(np.isfinite(found.std))
    one = run_inertia_stage(
        made, model, OscillationOptions(amplitude=np.radians(0.1), rounds=1), kp=100.0, set_points=points[:1]
    )
    assert one.std.max() > 30.0 * found.std.max()


def test_large_starts_ruin_the_estimate_of_two_links():
    made, robot = bench(2)
    model = swing_model(robot)
    loose = OscillationOptions(factor=1.5, amplitude=np.radians(15.0), reach=np.radians(80.0), rounds=1)
    small = OscillationOptions(factor=1.5, amplitude=np.radians(0.3), rounds=1)
    wrong = relative_errors(run_gravity_stage(made, model, loose), model).max()
    right = relative_errors(run_gravity_stage(made, model, small), model).max()
    assert wrong > 100.0 * right
    assert wrong > 2e-3


@pytest.mark.full
@pytest.mark.parametrize("links", [1, 2])
def test_the_papers_searches(links):
    made, robot = bench(links)
    model = swing_model(robot, doubtful(robot, 2))
    crept = creep(made, model)
    assert relative_errors(crept, model).max() < 1e-3
    walked = random_walk(made, model)
    assert 0.0 < relative_errors(walked, model).max() < 0.03


@pytest.mark.full
def test_three_links_both_stages_from_a_doubtful_description_with_16_bits():
    made, robot = bench(3, BITS_16, 0.004, 0.002)
    found = di.experiments.oscillate(made, nominal=doubtful(robot, 3))
    true = found.model.true_values([group for stage in found.stages for group in stage.groups], "plant")
    for one, value in zip(found.estimates, true, strict=True):
        assert abs(one.value - value) < max(4.0 * one.std, 2e-3 * abs(value)), one


# --- a robot of no paper ------------------------------------------------------------------------------------------


@pytest.mark.full
def test_ur10e_without_dry_friction_and_where_it_fails():
    robot = di.load_robot("ur10e").lock(q1=0, q6=0)
    plant = robot.value_set("plant")
    loose = {name: (0.02 if name.startswith("Fv") else 1.0) * value for name, value in plant.items()}
    loose = {name: value for name, value in loose.items() if not name.startswith(("Fc", "Fo"))}
    rng = np.random.default_rng(0)
    nominal = {name: value * rng.uniform(0.9, 1.2) for name, value in loose.items() if not name.startswith("F")}
    made = Bench(MujocoPlant(robot, loose, sample_time=0.004, step=0.002))
    found = di.experiments.oscillate(made, nominal=nominal)
    true = found.model.true_values([group for stage in found.stages for group in stage.groups], "plant")
    errors = {
        one.name: abs(one.value - value) / abs(value) for one, value in zip(found.estimates, true, strict=True) if value
    }
    assert max(errors[name] for name in ("MXR2", "MXR3", "MYR4", "MYR5")) < 1e-3
    assert max(errors[name] for name in ("ZZR2", "ZZR3", "ZZR5", "Ia3", "Ia4")) < 5e-3
    with pytest.raises(di.DynidentError, match="friction or a brake holds it"):
        di.experiments.oscillate(MujocoPlant(robot, "plant", sample_time=0.004, step=0.002), nominal=nominal)
