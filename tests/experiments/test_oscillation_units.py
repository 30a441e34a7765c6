"""The parts of natural oscillation: torque of one state, modes from positions, groups, starts, the solver."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.kernels import torque_law
from dynident.experiments.bench import Bounds
from dynident.experiments.oscillation.modal_equations import (
    choose_set_points,
    design,
    gains,
    group_equations,
    sampling_gain,
)
from dynident.experiments.oscillation.model import equations_about, gauss_newton, nominals, swing_model
from dynident.experiments.oscillation.modes import counted_periods, fit_modes
from dynident.experiments.oscillation.swings import (
    amplitude_for,
    mixed_start,
    natural_modes,
    quantum_of,
    slow_start,
    turns,
    upright_pose,
)
from dynident.experiments.protocol import ExperimentError
from dynident.papers.jamisola.model import is_paper_chain, paper_model


@pytest.mark.parametrize("name", ["pendulum-3", "ur10e", "sr400"])
def test_the_torque_of_one_state_is_that_of_the_batch(name):
    robot = di.load_robot(name)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, len(robot.moving)))
    chi = di.parameters(robot, "rigid,Ia", "plant" if "plant" in robot.values else None)
    law = torque_law(robot, "rigid,Ia", 1.3 * chi, chi)
    values = dict(zip([column.name for column in di.columns(robot, "rigid,Ia")], chi.tolist(), strict=True))
    whole = di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia", values)[0]
    expected = whole + 0.3 * di.gravity_torque(robot, q, values)[0]
    np.testing.assert_allclose(law(*q.tolist(), *dq.tolist(), *ddq.tolist()), expected, rtol=1e-9, atol=1e-9)


def test_modes_of_a_made_signal_with_noise_and_rounding():
    rng = np.random.default_rng(1)
    t = 0.004 * np.arange(4000)
    shapes = np.array([[1.0, 0.6], [-0.4, 0.8]])
    squares = np.array([2.4, 14.7])
    swings = [0.01 * np.exp(-0.02 * t) * np.cos(np.sqrt(w - 0.02**2) * t) for w in squares]
    q = sum(np.outer(swing, shape) for swing, shape in zip(swings, shapes, strict=True)) + [0.3, -0.1]
    q = np.round((q + 1e-5 * rng.standard_normal(q.shape)) / 1e-4) * 1e-4
    modes = fit_modes(t, q, 2, 12.0)
    np.testing.assert_allclose(modes.square, squares, rtol=2e-4)
    assert np.all(np.abs(modes.square - squares) < 5.0 * modes.square_std)
    assert modes.log_product == pytest.approx(np.log(squares).sum(), abs=5.0 * modes.log_product_std)
    np.testing.assert_allclose(modes.decay, -0.02, atol=2e-3)
    np.testing.assert_allclose(modes.mean, [0.3, -0.1], atol=1e-5)
    assert modes.clear
    assert quantum_of(q) == pytest.approx(1e-4)
    assert quantum_of(np.cumsum(rng.standard_normal((100, 2)), axis=0)) == 0.0


def test_no_modes_where_nothing_swings():
    t = 0.01 * np.arange(500)
    assert fit_modes(t, np.zeros((500, 1)), 1, 10.0) is None
    assert fit_modes(t, np.exp(-t)[:, None], 1, 10.0) is None


def test_counted_periods():
    t = 0.01 * np.arange(1001)
    assert counted_periods(t, np.cos(2.0 * np.pi * 0.73 * t)) == pytest.approx(7.3, abs=1e-3)
    assert counted_periods(t, np.ones_like(t)) == 0.0
    assert turns(np.cos(2.0 * np.pi * 0.73 * t), 0.1) == 15
    assert turns(0.01 * np.cos(50.0 * t), 0.1) == 0


def test_groups_are_the_base_parameters_split_by_gravity():
    model = swing_model(di.load_robot("pendulum-3"))
    assert [one.name for one in model.gravity] == ["MXR1", "MY1", "MXR2", "MY2", "MX3", "MY3"]
    assert [one.name for one in model.inertia] == ["ZZR1", "ZZR2", "ZZ3"]
    np.testing.assert_allclose(nominals(model.gravity), [2.5, 0, 1.5, 0, 0.5, 0], atol=1e-12)
    assert model.true_values(model.inertia, "plant") == pytest.approx([7 / 3, 4 / 3, 1 / 3])


@pytest.mark.parametrize("name", ["pendulum-2", "ur10e"])
def test_values_of_groups_change_weight_and_mass_as_they_say(name):
    robot = di.load_robot(name)
    model = swing_model(robot)
    pose = np.linspace(0.2, 0.9, len(robot.moving))
    about = equations_about(model, pose)
    np.testing.assert_allclose(about.mass @ model.chi, di.mass_matrix(robot, pose)[0], atol=1e-9)
    np.testing.assert_allclose(about.weight @ model.chi, di.gravity_torque(robot, pose)[0], atol=1e-9)
    step = 1e-5 * np.eye(len(pose))
    slopes = (di.gravity_torque(robot, pose + step) - di.gravity_torque(robot, pose - step)) / 2e-5
    np.testing.assert_allclose(about.stiffness @ model.chi, slopes.T, atol=1e-5)
    heavier = model.weight(1.2 * nominals(model.gravity))
    np.testing.assert_allclose(about.weight @ heavier, 1.2 * about.weight @ model.chi, atol=1e-9)


@pytest.mark.parametrize("links", [1, 2, 3])
def test_the_papers_factors_scale_the_papers_matrices(links):
    robot = di.load_robot(f"pendulum-{links}")
    model = paper_model(robot)
    pose = np.linspace(0.3, 1.0, links)
    about = equations_about(model, pose)
    np.testing.assert_allclose(about.mass @ model.chi, di.mass_matrix(robot, pose)[0], atol=1e-12)
    assert [one.name for one in model.inertia] == [["fm2"], ["fm3", "fm4"], ["fm4", "fm5", "fm6", "fm7"]][links - 1]
    doubled = about.mass @ model.motion(np.full(len(model.inertia), 2.0))
    np.testing.assert_allclose(doubled, 2.0 * (about.mass @ model.chi), atol=1e-12)
    if links == 3:  # A22 of eq. (25), corrected: fm6 (m2 + 4 m3)/3 + fm4 m3 C3
        one = about.mass @ model.motion(np.array([1.3, 1.0, 1.1, 1.0]))
        assert one[1, 1] == pytest.approx(1.1 * 5 / 3 + 1.3 * np.cos(pose[2]))


def test_other_robots_have_a_factor_for_each_base_parameter():
    assert not is_paper_chain(di.load_robot("kr5-planar").lock(q2=0.1))
    model = paper_model(di.load_robot("ur10e"))
    assert model.gravity[0].name == "f_MXR2"
    assert all(one.nominal == 1.0 for one in (*model.gravity, *model.inertia))


def test_the_top_of_an_arm_and_starts_there():
    robot = di.load_robot("ur10e").lock(q1=0, q6=0)
    model = swing_model(robot)
    pose = upright_pose(model, Bounds.of(robot))
    about = equations_about(model, pose)
    K, M = about.stiffness @ model.chi, about.mass @ model.chi
    np.testing.assert_allclose(about.weight @ model.chi, 0.0, atol=1e-8)
    assert np.linalg.eigvalsh(K).max() < 0.0
    squares, shapes = natural_modes(M, -0.5 * K)
    slow = slow_start(M, -0.5 * K, 0.01)
    np.testing.assert_allclose(np.linalg.solve(M, -0.5 * K) @ slow, squares[0] * slow, atol=1e-9)
    mixed = np.linalg.solve(shapes, mixed_start(M, -0.5 * K, 0.01))
    assert np.abs(mixed).min() > 0.3 * np.abs(mixed).max()
    assert amplitude_for(1e-4) == pytest.approx(0.01)
    assert amplitude_for(0.0) == pytest.approx(np.radians(0.3))


def test_a_joint_without_gravity_is_named_with_the_remedy():
    robot = di.load_robot("ur10e")
    with pytest.raises(ExperimentError, match=r"no effect on shoulder_pan.*--locked q1=0"):
        upright_pose(swing_model(robot), Bounds.of(robot))


def test_set_points_keep_away_from_limits():
    """The second joint of this robot cannot be at zero."""
    robot = di.load_robot("sr400")
    bounds = Bounds.of(robot)
    for pose in choose_set_points(swing_model(robot, "plant"), bounds):
        assert np.all(np.minimum(pose - bounds.lower, bounds.upper - pose) > 0.09 * (bounds.upper - bounds.lower))


def test_gains_keep_the_modes_apart_and_set_points_tell_all_parameters():
    robot = di.load_robot("ur10e")
    model = swing_model(robot)
    values = nominals((*model.gravity, *model.inertia))
    poses = choose_set_points(model, Bounds.of(robot))
    mass = di.mass_matrix(robot, poses[1])[0]
    squares, gain = gains(100.0, mass)
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(gain).real), squares, rtol=1e-9)
    assert np.diff(np.log(squares)).min() == pytest.approx(np.log(3.0) / 5)
    np.testing.assert_allclose(mass @ gain, (mass @ gain).T, atol=1e-9)  # symmetric: no error of it can flutter
    J = np.concatenate([design(group_equations(model, pose), values, 100.0) for pose in poses])
    assert np.linalg.matrix_rank(J, tol=1e-10 * np.linalg.norm(J)) == len(values)


def test_the_law_in_straight_lines_is_what_sampling_makes_of_it():
    """Against a sum over the samples of a torque that is worked out at one and reached at the next."""
    s, h = -0.3 + 14.0j, 0.004
    t = np.linspace(0.0, 40.0, 400001)
    torque = np.interp(t, h * np.arange(1, 10002), np.exp(s.imag * 1j * h * np.arange(10001)))
    window = np.hanning(len(t))
    seen = (window * torque * np.exp(-1j * s.imag * t)).sum() / window.sum()
    assert seen == pytest.approx(sampling_gain(1j * s.imag * h), rel=2e-5)


def test_the_covariance_of_modes_is_their_scatter():
    rng, t = np.random.default_rng(3), 0.004 * np.arange(1500)
    shapes, squares = np.array([[1.0, 0.6], [-0.4, 0.8]]), np.array([40.0, 90.0])
    clean = sum(0.01 * np.outer(np.cos(np.sqrt(w) * t), shape) for w, shape in zip(squares, shapes, strict=True))
    numbers, variances = [], []
    for _ in range(40):
        modes = fit_modes(t, clean + rng.normal(size=clean.shape) * [1e-5, 4e-5], 2, 30.0)
        pairs = np.stack([modes.shape.real, -modes.shape.imag], axis=1)  # (n_modes, 2, n_joints)
        own = [[modes.mean[j], *pairs[:, :, j].ravel()] for j in (0, 1)]
        numbers.append(np.concatenate([np.stack([modes.decay, modes.poles.imag], axis=1).ravel(), *own]))
        variances.append(np.diag(modes.covariance))
    ratios = np.std(numbers, axis=0, ddof=1) / np.sqrt(np.mean(variances, axis=0))
    assert np.all((ratios > 0.65) & (ratios < 1.4))  # a scatter of 40 is known to 11 %


def test_the_solver_leaves_open_what_the_data_does():
    t = np.linspace(0.0, 1.0, 20)

    def residual(x):
        return (x[0] * np.exp(-x[1] * t) - 2.0 * np.exp(-3.0 * t)) / 0.01 + 0.0 * x[2]

    values, covariance, determined, _ = gauss_newton(residual, np.array([1.0, 1.0, 7.0]), np.ones(3))
    np.testing.assert_allclose(values, [2.0, 3.0, 7.0], atol=1e-6)
    assert determined.tolist() == [True, True, False]
    assert 0.0 < np.sqrt(covariance[0, 0]) < 0.02


def test_the_solver_refuses_an_impossible_start():
    with pytest.raises(di.SingularError, match="impossible"):
        gauss_newton(lambda x: np.log(np.where(x > 0.0, x, np.nan)), np.array([-1.0]), np.ones(1))
