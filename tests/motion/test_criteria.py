"""Derivatives of criteria, rows and programs against differences."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.jit.numpy_kernel import NumpyKernel
from dynident.dynamics.jit.reverse_pass import adjoint
from dynident.dynamics.kernels import record
from dynident.dynamics.terms import resolve_terms
from dynident.motion.rows import CRITERIA, EnergyModelRows, TorqueRows
from dynident.motion.space import Space

pytestmark = pytest.mark.usefixtures("without_compiling")
TERMS = "rigid,Ia,Fv,Fc(0.3),Fo"


def run(program, inputs):
    out = np.zeros((len(program.outputs), inputs.shape[1]))
    NumpyKernel(program)(list(inputs), out)
    return out


@pytest.mark.parametrize("kind", ["regressor", "kinetic", "potential", "forward dynamics"])
def test_the_reverse_pass_is_the_derivative(kind):
    program, _ = record(di.load_robot("cmu-dd-arm-3"), kind, resolve_terms("rigid,Ia,Fv,Fc(0.3)"))
    rng = np.random.default_rng(0)
    x, bars = rng.uniform(0.5, 1.5, (len(program.inputs), 4)), rng.normal(size=(len(program.outputs), 4))
    slopes = run(adjoint(program), np.vstack([x, bars]))
    way, h = rng.normal(size=x.shape), 1e-6
    difference = (bars * (run(program, x + h * way) - run(program, x - h * way))).sum(0) / (2 * h)
    np.testing.assert_allclose((slopes * way).sum(0), difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_have_their_derivatives(name):
    rng = np.random.default_rng(1)
    root, way = rng.normal(size=(40, 7)) * np.logspace(0, 1.5, 7), rng.normal(size=(7, 7))
    A, way, sizes, h = root.T @ root, way + way.T, rng.uniform(0.5, 2.0, 7), 1e-5
    criterion = CRITERIA[name]
    _, slope = criterion(A, sizes)
    difference = (criterion(A + h * way, sizes)[0] - criterion(A - h * way, sizes)[0]) / (2 * h)
    assert np.sum(slope * way) == pytest.approx(difference, rel=1e-6)
    np.testing.assert_allclose(slope, slope.T, atol=1e-12)


def test_criteria_are_what_they_are_called():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(40, 5)) * [1.0, 3.0, 10.0, 0.2, 1.0]
    A, ones = W.T @ W, np.ones(5)
    assert CRITERIA["determinant"](A, ones)[0] == pytest.approx(-np.linalg.slogdet(A)[1])
    unit = np.linalg.cond(W / np.linalg.norm(W, axis=0))
    assert np.exp(CRITERIA["condition"](A, ones)[0]) == pytest.approx(unit, rel=0.12)
    assert np.exp(-CRITERIA["smallest"](A, ones)[0]) == pytest.approx(np.linalg.svd(W)[1][-1], rel=0.06)
    worst = np.sqrt(np.diag(np.linalg.inv(A))).max()
    assert np.exp(CRITERIA["interval"](A, ones)[0]) == pytest.approx(worst, rel=0.06)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("diagonal", [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1e-310, 1e-310, 1e-310]])
@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_stands_a_motion_that_determines_nothing(name, diagonal):
    value, slope = CRITERIA[name](np.diag(diagonal), np.ones(3))
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


def rows_of(model, name, n_samples=60):
    robot = di.load_robot(name)
    base = di.base_parameters(robot, TERMS)
    space = Space(robot.joint_names, 4.0, 0.25, 4)
    times = np.linspace(0.0, 4.0, n_samples)
    scale = np.random.default_rng(0).uniform(0.5, 2.0, base.n)
    if model == "energy":
        return EnergyModelRows(base, scale, times, 0.5), space, scale
    noise = np.linspace(0.5, 2.0, len(robot.moving))
    rest = np.linspace(0.1, 0.5, len(robot.moving)) if model == "dynamic" else None
    return TorqueRows(base, scale, times, noise, rest), space, scale


@pytest.mark.parametrize("model", ["dynamic", "dynamic, all rows alike", "energy"])
@pytest.mark.parametrize("name", ["cylindrical", "sr400", "tx40"])
def test_rows_have_the_derivative_of_the_whole_chain(model, name):
    rows, space, _ = rows_of(model, name)
    waves = space.waves(rows.times)
    rng = np.random.default_rng(3)
    x, way, h = rng.normal(size=space.size) * 0.3, rng.normal(size=space.size), 1e-6
    slope = rng.normal(size=(rows.base.n, rows.base.n))
    slope = slope + slope.T

    def value(x):
        return np.sum(slope * rows.information(space.states(x, waves)))

    value(x)
    gradient = space.pull(rows.pull(slope), waves)
    difference = (value(x + h * way) - value(x - h * way)) / (2 * h)
    assert gradient @ way == pytest.approx(difference, rel=2e-5)


def test_torque_rows_are_the_weighted_base_regressor():
    rows, space, scale = rows_of("dynamic, all rows alike", "tx40")
    states = space.states(np.random.default_rng(4).normal(size=space.size) * 0.3, space.waves(rows.times))
    W = rows.base.regressor(*states) / scale / np.linspace(0.5, 2.0, 6)[None, :, None]
    W = np.ascontiguousarray(W).reshape(-1, rows.base.n)
    np.testing.assert_allclose(rows.information(states), W.T @ W, rtol=1e-9, atol=1e-9)
    R = rows.factor(states)
    np.testing.assert_allclose(R.T @ R, W.T @ W, rtol=1e-9, atol=1e-9)


def test_a_joint_at_rest_tells_nothing():
    rows, space, _ = rows_of("dynamic", "cylindrical")
    everything, _, _ = rows_of("dynamic, all rows alike", "cylindrical")
    q, dq, ddq = space.states(np.random.default_rng(4).normal(size=space.size), space.waves(rows.times))
    dq[:, 1], dq[:, 2] = 0.0, 0.5  # of the third joint, the velocity at which its rows count half
    weighted, alike = rows.matrices((q, dq, ddq)), everything.matrices((q, dq, ddq))
    assert not weighted[1][1].any()
    np.testing.assert_allclose(weighted[2][1], np.sqrt(0.5) * alike[2][1])


def test_energy_rows_are_the_work_done():
    rows, space, scale = rows_of("energy", "sr400", n_samples=4001)
    robot, base = rows.base.robot, rows.base
    x = np.random.default_rng(5).normal(size=space.size) * 0.3
    q, dq, ddq = states = space.states(x, space.waves(rows.times))
    dense = np.zeros((len(q) - 1, base.n))
    for columns, part in rows.matrices(states):
        dense[:, columns] = part.T
    energy = dense * scale * 0.5 @ base.base_values()
    tau = di.inverse_dynamics(robot, q, dq, ddq, TERMS)
    power = np.sum(di.joint_torque(robot, tau) * dq, axis=1)
    work = 0.5 * (power[1:] + power[:-1]) * np.diff(rows.times)
    np.testing.assert_allclose(energy, work, atol=2e-5 * np.abs(work).max())
