from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import dynident as di
from tests.symbolic.symbolic_zero import assert_equal

QUICK = [(name, "rigid") for name in ("cmu-dd-arm-3", "kr5-planar", "minnesota", "pendulum-3", "puma560", "sr400")]
QUICK += [("cylindrical", None), ("cmu-dd-arm-3", None), ("pendulum-1", None)]
ALL = [(name, terms) for name in di.bundled_names() for terms in ("rigid", None)]
SLOW = [pytest.param(*case, marks=pytest.mark.full) for case in ALL if case not in QUICK]


@pytest.mark.parametrize(("name", "terms"), [*QUICK, *SLOW])
def test_equals_the_numeric_base_parameters(name, terms):
    robot = di.load_robot(name)
    exact, numeric = di.symbolic.symbolic_base(robot, terms), di.base_parameters(robot, terms)
    assert exact.names == numeric.names
    assert exact.independent == numeric.independent
    assert exact.warnings == ()
    K = np.array(exact.K.subs({sp.Symbol(name): value for name, value in exact.constants.items()}), float)
    np.testing.assert_allclose(K, numeric.K, atol=1e-11)
    values = exact.base_values()
    np.testing.assert_allclose([values[name] for name in numeric.names], numeric.base_values(), atol=1e-9)


def test_combinations_of_the_cmu_arm():
    """Khosla & Kanade 1987, section 4.2, with the count corrected."""
    base = di.symbolic.symbolic_base(di.load_robot("cmu-dd-arm-3"), "rigid")
    found = dict(zip(base.names, base.expressions, strict=True))
    S = sp.Symbol
    a1, a2, d3, M1, M2, M3 = sp.symbols("a1 a2 d3 M1 M2 M3")
    expected = {
        "ZZR1": S("ZZ1") + 2 * a1 * S("MX1") + a1**2 * (M1 + M2 + M3),
        "YYR2": S("YY2") + S("ZZ3") - 2 * d3 * S("MY3") - a2**2 * M2 + (d3**2 - a2**2) * M3,
        "MXR2": S("MX2") + a2 * (M2 + M3),
        "MZR2": S("MZ2") - S("MY3") + d3 * M3,
        "XXR3": S("XX3") - S("ZZ3"),
    }
    assert len(found) == 11
    for name, relation in expected.items():
        assert sp.expand(found[name] - relation) == 0, name


def test_regroupings_of_the_sr400_have_fractions_of_lengths():
    base = di.symbolic.symbolic_base(di.load_robot("sr400"), "rigid,Ia")
    found = dict(zip(base.names, base.expressions, strict=True))
    d2, d3, d4, d8, RL4 = sp.symbols("d2 d3 d4 d8 RL4")
    assert base.n == 42
    assert sp.simplify(sp.expand(found["MYR3"]).coeff(sp.Symbol("MX8")) + d8 / d3) == 0
    assert sp.expand(found["ZZR3"]).coeff(sp.Symbol("M5")).equals(d4**2 + RL4**2)
    assert sp.expand(found["ZZR1"]).coeff(sp.Symbol("M8")) == d2**2


@pytest.mark.parametrize("name", ["cmu-dd-arm-3", "cylindrical", "minnesota"])
def test_the_base_columns_make_the_whole_regressor(name):
    """W = W_base K as functions of the state, to zero by SymPy, and the model in base parameters has W_base."""
    robot = di.load_robot(name)
    base = di.symbolic.symbolic_base(robot, "rigid,Ia")
    W = di.symbolic.symbolic_model(robot, "rigid,Ia").W
    free = [j for j, column in enumerate(base.columns) if column.fixed is None]
    assert_equal(W[:, list(base.independent)] * base.K[:, free], W[:, free])
    small = base.model()
    assert tuple(column.name for column in small.columns) == base.names
    assert_equal(small.W, W[:, list(base.independent)])
    assert [str(x) for x in small.chi] == list(base.names)


def test_a_mass_on_a_vertical_slide_and_an_offset_depend_through_gravity():
    base = di.symbolic.symbolic_base(di.load_robot("cylindrical"))
    assert sp.Symbol("g") in base.K.free_symbols


def test_equal_lengths_that_hide_something_are_reported(tmp_path):
    """A turned axis whose offset the file's numbers make zero by chance: in general there is one more parameter."""
    text = (
        "name: hidden\nconvention: modified-dh\nlengths: {a: 0.3, b: 0.3}\ngravity: [0, 0, 0]\njoints:\n"
        "  - {name: one}\n  - {name: two, d: a - b}\n"
    )
    (tmp_path / "hidden.yaml").write_text(text)
    base = di.symbolic.symbolic_base(di.load_robot(tmp_path / "hidden.yaml"), "rigid")
    numeric = di.base_parameters(base.robot, "rigid")
    assert base.n > numeric.n
    assert f"has {base.n} base parameters, with its own values {numeric.n}" in base.warnings[0]


def test_odd_angles_fall_back_to_numbers_and_say_so():
    robot = di.load_robot("kr5").lock(q1=0, q4=0.5, q6=0)
    base, numeric = di.symbolic.symbolic_base(robot, "rigid"), di.base_parameters(robot, "rigid")
    assert "rounded numbers" in base.warnings[0]
    np.testing.assert_array_equal(np.array(base.K, float), numeric.K)
    assert base.names == numeric.names


def test_printed_forms():
    base = di.symbolic.symbolic_base(di.load_robot("kr5-planar"), "rigid")
    assert "MXR2 = MX2 + a2*(M2 + M3)" in base.text()
    assert "Identified as they are: MY1, MY2, ZZ3, MX3, MY3" in base.text()
    assert r"\mathit{MX}_{R2} &= \mathit{MX}_{2} + a_{2}" in base.latex()


def test_printed_python_of_the_base_model():
    robot = di.load_robot("kr5-planar")
    base = di.symbolic.symbolic_base(robot, "rigid")
    names: dict = {}
    exec(base.print_as("python"), names)
    assert names["COLUMNS"] == list(base.names)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 3))
    tau = [names["inverse_dynamics"](*x) for x in zip(q, dq, ddq, strict=True)]
    np.testing.assert_allclose(tau, di.inverse_dynamics(robot, q, dq, ddq, "rigid"), atol=1e-11)
    W = [names["regressor"](*x) for x in zip(q, dq, ddq, strict=True)]
    np.testing.assert_allclose(W, di.base_parameters(robot, "rigid").regressor(q, dq, ddq), atol=1e-12)
