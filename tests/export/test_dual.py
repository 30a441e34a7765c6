"""Dual numbers against difference quotients, on the recursion itself."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics import equations as eq
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.state import make_state
from dynident.dynamics.terms import resolve_terms
from dynident.export.c_terms import Dual, DualFunctions, slope_of


@pytest.mark.parametrize("name", ["puma560", "sr400", "cylindrical"])
def test_slope_of_inverse_dynamics(name):
    robot, terms = di.load_robot(name), resolve_terms("rigid,Ia,Fv,Fc(0.1)")
    chi = di.parameters(robot, terms)
    q, dq, ddq, along = np.random.default_rng(0).normal(size=(4, len(robot.joint_names)))
    functions = DualFunctions(NUMPY_FUNCTIONS)
    state = make_state(robot, functions, *([Dual(x, s) for x, s in zip(y, along, strict=True)] for y in (q, dq, ddq)))
    found = eq.inverse_dynamics(state, terms, [Dual(x) for x in chi])
    step = 1e-6
    ahead, behind = (
        di.inverse_dynamics(robot, q + h * along, dq + h * along, ddq + h * along, terms, chi)[0] for h in (step, -step)
    )
    expected = (ahead - behind) / (2.0 * step)
    np.testing.assert_allclose([slope_of(x) for x in found], expected, atol=1e-7 * np.abs(expected).max())


def test_plain_numbers_have_no_slope():
    x = Dual(3.0, 1.0)
    assert slope_of(2.0) == 0.0
    assert [slope_of(y) for y in (2.0 - x, x * x, -x)] == [-1.0, 6.0, -1.0]
    assert slope_of(DualFunctions(NUMPY_FUNCTIONS).sign(x)) == 0.0
