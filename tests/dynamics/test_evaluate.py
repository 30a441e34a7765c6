from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynident as di
from dynident.dynamics.equations import inverse_dynamics
from dynident.dynamics.jit.numpy_kernel import BLOCK
from dynident.dynamics.kernels import kernel, record
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.state import make_state
from dynident.dynamics.terms import resolve_terms
from tests.robots import random_urdf


def motion(robot, n, seed=0):
    return np.random.default_rng(seed).normal(size=(3, n, len(robot.joint_names)))


@given(st.integers(0, 5000), st.sampled_from(["rigid", "rigid,Ia", "Ia,Fv,Fo", None]))
@settings(max_examples=25, deadline=None)
def test_regressor_times_parameters_is_inverse_dynamics(seed, terms):
    robot = di.robot.robot_from_urdf(random_urdf(seed))
    values = np.random.default_rng(seed).normal(size=len(di.columns(robot, terms)))
    state = motion(robot, 3, seed)
    W = di.regressor(robot, *state, terms)
    tau = di.inverse_dynamics(robot, *state, terms, values)
    np.testing.assert_allclose(W @ values, tau, atol=1e-10 * max(1.0, np.abs(tau).max()))


@pytest.mark.parametrize("name", ["puma560", "sr400", "tx40", "cylindrical"])
def test_recorded_program_equals_the_recursion_on_floats(name):
    robot = di.load_robot(name)
    terms = resolve_terms(None)
    chi = di.parameters(robot)
    q, dq, ddq = motion(robot, 4)
    batch = di.inverse_dynamics(robot, q, dq, ddq)
    for k in range(4):
        state = make_state(robot, NUMPY_FUNCTIONS, q[k].tolist(), dq[k].tolist(), ddq[k].tolist())
        np.testing.assert_allclose(
            batch[k], np.array(inverse_dynamics(state, terms, chi.tolist()), dtype=float), atol=1e-11
        )


@pytest.mark.parametrize("n", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_every_batch_length_gives_the_same_rows(n):
    robot = di.load_robot("cmu-dd-arm-3")
    state = motion(robot, 3 * BLOCK)
    whole = di.regressor(robot, *state)
    np.testing.assert_array_equal(di.regressor(robot, *(x[:n] for x in state)), whole[:n])


def test_non_contiguous_input_is_as_good():
    robot = di.load_robot("cmu-dd-arm-3")
    q, dq, ddq = motion(robot, 50)
    wide = np.asfortranarray(np.repeat(q, 2, axis=0))
    np.testing.assert_array_equal(di.regressor(robot, wide[::2], dq, ddq), di.regressor(robot, q, dq, ddq))


def test_one_sample_needs_no_sample_axis():
    robot = di.load_robot("puma560")
    q, dq, ddq = motion(robot, 1)
    np.testing.assert_array_equal(
        di.inverse_dynamics(robot, q[0], dq[0], ddq[0]), di.inverse_dynamics(robot, q, dq, ddq)
    )


def test_coulomb_sign_exact_and_smoothed():
    robot = di.load_robot("pendulum-1")
    dq = np.array([[-2.0], [0.0], [0.01], [3.0]])
    exact = di.regressor(robot, 0 * dq, dq, 0 * dq, "Fc")[:, 0, 0]
    np.testing.assert_array_equal(exact, [-1, 0, 1, 1])
    smooth = di.regressor(robot, 0 * dq, dq, 0 * dq, [di.dynamics.Coulomb(0.05)])[:, 0, 0]
    np.testing.assert_allclose(smooth, np.tanh(dq[:, 0] / 0.05))
    with pytest.raises(di.InputError, match="smoothing"):
        di.dynamics.Coulomb(-1.0)


def test_programs_fold_what_the_geometry_makes_zero():
    """A planar arm costs far less than a spatial one, and gravity alone costs less than the whole."""
    planar, _ = record(di.load_robot("pendulum-3"), "regressor", resolve_terms("rigid"))
    spatial, _ = record(di.robot.robot_from_urdf(random_urdf(12, tree=False)), "regressor", resolve_terms("rigid"))
    assert planar.n_operations < 150 < spatial.n_operations
    assert planar.fingerprint == record(di.load_robot("pendulum-3"), "regressor", resolve_terms("rigid"))[0].fingerprint


def test_kernels_are_kept_per_robot_and_terms():
    robot = di.load_robot("puma560")
    first, _ = kernel(robot, "regressor", resolve_terms("rigid"))
    assert kernel(robot, "regressor", resolve_terms("rigid"))[0] is first
    assert kernel(robot.lock(q3=0.1), "regressor", resolve_terms("rigid"))[0] is not first


def test_columns_say_what_they_are():
    robot = di.load_robot("sr400")
    columns = {column.name: column for column in di.columns(robot)}
    assert columns["ZZ3"].unit == "kg·m²"
    assert columns["Fvm6"].meaning == "viscous friction of motor of joint6"
    assert columns["Ia6"].meaning == "rotor inertia, joint side of motor of joint6"
    cylinder = {column.name: column for column in di.columns(di.load_robot("cylindrical"))}
    assert (cylinder["Fv2"].unit, cylinder["Fv1"].unit) == ("N·s/m", "N·m·s/rad")
    assert len(di.parameters(robot)) == len(columns) == 106


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(q=np.zeros((3, 5))), r"q must have shape \(n_samples, 6\), columns joint1, joint2"),
        (dict(dq=np.zeros((4, 6))), "dq must have 3 samples as q has; got 4"),
        (dict(ddq=np.full((3, 6), np.nan)), "ddq is nan at sample 0, column joint1"),
        (dict(q="text"), "q must be an array of numbers"),
        (dict(terms="rigid,Fx"), "unknown term 'Fx'"),
        (dict(terms=""), "unknown term ''"),
        (dict(terms="rigid,rigid"), "given twice"),
    ],
)
def test_wrong_arguments_are_named(change, words):
    zero = np.zeros((3, 6))
    given_arguments = {"q": zero, "dq": zero, "ddq": zero, "terms": None} | change
    with pytest.raises(di.DynidentError, match=words):
        di.regressor(di.load_robot("puma560"), **given_arguments)


def test_wrong_values_are_named():
    robot = di.load_robot("puma560")
    with pytest.raises(di.UnknownNameError, match="unknown parameter set 'cad'"):
        di.parameters(robot, values="cad")
    with pytest.raises(di.UnknownNameError, match="unknown parameter 'ZZ9'"):
        di.parameters(robot, values={"ZZ9": 1.0})
    with pytest.raises(di.InputError, match=r"shape \(84,\)"):
        di.parameters(robot, values=[1.0])
    with pytest.raises(di.InputError, match="parameter ZZ3 is nan"):
        di.parameters(robot, values={"ZZ3": float("nan")})


def test_a_singular_mass_matrix_is_reported():
    robot = di.load_robot("pendulum-2").with_values("empty", {"M1": 1.0})
    with pytest.raises(di.SingularError, match="no inverse at sample 0"):
        di.forward_dynamics(robot, [0.0, 0.0], [0.0, 0.0], [1.0, 1.0])


def test_locked_coupled_joint_refuses_forward_dynamics():
    robot = di.load_robot("tx40").lock(q6=0.0)
    with pytest.raises(di.InputError, match="locked joint6: the motor also drives"):
        di.forward_dynamics(robot, *np.zeros((3, 1, 5)))
