"""Programs as C: literals to the last bit, brackets where C would read something else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynident.dynamics.jit.numpy_kernel import NumpyKernel
from dynident.dynamics.jit.program import Recorder
from dynident.export.c_files import _plain
from dynident.export.c_functions import Counts, literal, statements

NAMES = {"fabs": abs, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "exp": math.exp}


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 0.1, 1e-7, 3.3e20, 1e16, math.pi])
def test_literals_come_back(value):
    assert float(literal(value, "double")) == value
    single = literal(value, "float")
    assert single.endswith("f")
    assert "." in single or "e" in single
    assert np.float32(single[:-1]) == np.float32(value)


def made(recorder):
    a, b, c = (recorder.input(name) for name in ("a[0]", "b[0]", "c[0]"))
    waves = recorder.sin(a) * recorder.exp(-(b * b)) + abs(c - a) * recorder.tanh(c)
    return [a - (b - c), a - (b + c), -(a * b) - c, a / (b * c), (a / b) * c, -(a - b) * -2.5, waves, a, 3.0 - a]


def test_the_text_means_what_the_program_means():
    recorder = Recorder(["a[0]", "b[0]", "c[0]"])
    program = recorder.finish(made(recorder))
    lines, outputs = statements(program, "double")
    names = {**NAMES, "a": [0.7], "b": [-1.3], "c": [2.1]}
    for line in lines:  # such C is Python, too
        exec(line.removeprefix("const double ").removesuffix(";"), names)
    out = np.zeros((len(outputs), 1))
    NumpyKernel(program)([np.array([x]) for x in (0.7, -1.3, 2.1)], out)
    np.testing.assert_allclose([eval(text, names) for text in outputs], out[:, 0], rtol=1e-15)


def test_counts():
    recorder = Recorder(["a", "b"])
    a, b = recorder.input("a"), recorder.input("b")
    program = recorder.finish([a * b + a, a - b, recorder.sin(a) / b, -recorder.exp(b), recorder.sign(a)])
    assert Counts.of(program) == Counts(additions=2, multiplications=1, divisions=1, functions=2, signs=2)


def test_names_cannot_break_comments():
    assert _plain("a */ b /* \\ ??/ N·m·s²") == "a _/ b /_ _ __/ N m s^2"
