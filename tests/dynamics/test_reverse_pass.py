"""The reverse pass knows the derivative of every operation, or says that it does not."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.dynamics.jit import reverse_pass
from dynident.dynamics.jit.numpy_kernel import NumpyKernel
from dynident.dynamics.jit.program import LEAVES, UNARY, Op, Recorder
from dynident.dynamics.jit.reverse_pass import adjoint

STEP = 1e-6


def run(program, *inputs):
    out = np.zeros((len(program.outputs), len(inputs[0])))
    NumpyKernel(program)(list(inputs), out)
    return out


def one_operation(op):
    """A program of x and y that an operation is part of, with more around it."""
    recorder = Recorder(["x", "y"])
    x, y = recorder.input("x"), recorder.input("y")
    if op == Op.NEG:
        found = -x
    elif op in UNARY:
        found = getattr(recorder, op.name.lower())(x)
    else:
        found = {Op.ADD: x + y, Op.SUB: x - y, Op.MUL: x * y, Op.DIV: x / y}[op]
    return recorder.finish([found * y + x])


@pytest.mark.parametrize("op", [op for op in Op if op not in LEAVES], ids=lambda op: op.name)
def test_the_derivative_is_that_of_finite_differences(op):
    program, rng = one_operation(op), np.random.default_rng(0)
    x, y, bar = rng.uniform(0.3, 2.0, (3, 50))
    if op != Op.LOG:
        x *= np.sign(rng.normal(size=50))
    slopes = run(adjoint(program), x, y, bar)
    by_x = (run(program, x + STEP, y) - run(program, x - STEP, y))[0] / (2.0 * STEP)
    by_y = (run(program, x, y + STEP) - run(program, x, y - STEP))[0] / (2.0 * STEP)
    np.testing.assert_allclose(slopes, bar * np.array([by_x, by_y]), rtol=1e-7, atol=1e-8)


def test_a_chain_of_the_functions_that_laws_use():
    recorder = Recorder(["v"])
    v = recorder.input("v")
    share = abs(v) / 0.3
    law = recorder.sign(v) * recorder.log(1.0 + share) + recorder.tanh(v) * recorder.exp(-(share * share))
    program, v = recorder.finish([law]), np.linspace(-2.0, 2.0, 40)
    difference = (run(program, v + STEP) - run(program, v - STEP))[0] / (2.0 * STEP)
    np.testing.assert_allclose(run(adjoint(program), v, np.ones(40))[0], difference, rtol=1e-6, atol=1e-8)


def test_an_operation_without_a_derivative_is_refused():
    with pytest.raises(NotImplementedError, match="derivative of INPUT"):
        reverse_pass._shares(Op.INPUT, [], 0, 0, 0, 1.0, Recorder([]))
