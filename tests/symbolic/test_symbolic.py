from __future__ import annotations

import dataclasses
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import dynident as di
from dynident.dynamics import equations as eq
from dynident.dynamics.state import make_state
from dynident.dynamics.terms import resolve_terms
from tests.loops import FOUR_BAR, load
from tests.robots import random_urdf
from tests.symbolic.symbolic_zero import assert_equal

SMALL = ["cylindrical", "cmu-dd-arm-3", "minnesota", "pendulum-1", "pendulum-2"]
LARGE = [name for name in di.bundled_names() if name not in SMALL]
full = pytest.mark.full


def states(n: int, count: int = 4) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(3, count, n))


def evaluated(model: di.symbolic.SymbolicModel, matrix, values: np.ndarray, *state: np.ndarray) -> np.ndarray:
    """A matrix of the model at states and parameter values, by lambdify."""
    symbols = [s for group, _ in zip((model.q, model.dq, model.ddq), state, strict=False) for s in group]
    chi = list(model.chi)
    function = sp.lambdify([symbols, chi, list(model.constants)], matrix)
    constants = list(model.constants.values())
    return np.array([function(np.concatenate(rows), values, constants) for rows in zip(*state, strict=True)], float)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(n, marks=full) for n in LARGE)])
def test_lambdified_matrices_are_the_numbers(name):
    robot = di.load_robot(name)
    robot = dataclasses.replace(robot, fixed={})
    model = di.symbolic.symbolic_model(robot)
    chi = np.random.default_rng(0).normal(size=len(model.columns))
    q, dq, ddq = states(len(model.q))
    close(evaluated(model, model.M, chi, q), di.mass_matrix(robot, q, dict(zip(map(str, model.chi), chi, strict=True))))
    values = dict(zip(map(str, model.chi), chi, strict=True))
    gravity = di.joint_torque(robot, di.gravity_torque(robot, q, values))
    close(evaluated(model, model.g, chi, q)[:, :, 0], gravity)
    turning = di.joint_torque(robot, di.coriolis_torque(robot, q, dq, values))
    pairs = [(i, j) for i in range(len(model.q)) for j in range(i + 1, len(model.q))]
    products = np.array([dq[:, i] * dq[:, j] for i, j in pairs]).reshape(len(pairs), len(q)).T
    C, B = evaluated(model, model.C, chi, q), evaluated(model, model.B, chi, q).reshape(len(q), len(model.q), -1)
    close(np.einsum("sij,sj->si", C, dq**2) + np.einsum("sij,sj->si", B, products), turning)
    if len(model.q) < 7:  # seven joints written out take lambdify half a minute
        close(evaluated(model, model.tau, chi, q, dq, ddq)[:, :, 0], di.inverse_dynamics(robot, q, dq, ddq, values=chi))
        close(evaluated(model, model.W, chi, q, dq, ddq), di.regressor(robot, q, dq, ddq))


@pytest.mark.parametrize("name", ["pendulum-2", "cylindrical", "cmu-dd-arm-3"])
def test_the_same_recursion_on_sympys_own_symbols(name):
    """The number type is a matter of speed: SymPy expressions through the recursion give the same functions."""
    robot = di.load_robot(name)
    model = di.symbolic.symbolic_model(robot, "rigid,Ia,Fv")
    lengths = {length: sp.Symbol(length) for length in robot.lengths}
    state = make_state(robot, sp, model.q, model.dq, model.ddq, lengths=lengths)
    g = sp.Symbol("g")
    state = dataclasses.replace(state, gravity=tuple(float(np.sign(x)) * g if x else 0.0 for x in robot.gravity))
    entries = eq.regressor_entries(state, resolve_terms("rigid,Ia,Fv"))
    direct = sp.zeros(*model.W.shape)
    for place, number in entries.items():
        direct[place] = sp.nsimplify(number)
    assert_equal(model.W, direct)


@pytest.mark.parametrize(
    "name", ["pendulum-2", "cylindrical", "cmu-dd-arm-3", "kr5-planar", pytest.param("minnesota", marks=full)]
)
def test_lagrange_equals_newton_and_euler(name):
    robot = dataclasses.replace(di.load_robot(name), fixed={})
    model = di.symbolic.symbolic_model(robot, "rigid")
    assert_equal(di.symbolic.lagrange_model(robot).W, model.W)


def test_lagrange_in_classical_parameters():
    """tau over mass, center and inertia about it is W chi with chi as eq. (2) of Abhishek et al. has it."""
    robot = di.load_robot("cmu-dd-arm-3")
    lagrange = di.symbolic.lagrange_model(robot)
    chi = []
    for i in (1, 2, 3):
        m, *r = sp.symbols(f"m{i} rx{i} ry{i} rz{i}")
        xx, xy, xz, yy, yz, zz = sp.symbols(f"Ixx{i} Ixy{i} Ixz{i} Iyy{i} Iyz{i} Izz{i}")
        tilde = sp.Matrix([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        about = sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * tilde * tilde
        chi += [about[0, 0], about[0, 1], about[0, 2], about[1, 1], about[1, 2], about[2, 2], *(m * x for x in r), m]
    assert_equal(lagrange.W * sp.Matrix(chi), lagrange.tau)


@pytest.mark.full
@pytest.mark.parametrize("name", ["puma560", "sr400"])
def test_lagrange_of_six_joints_at_random_states(name):
    robot = di.load_robot(name)
    lagrange = di.symbolic.lagrange_model(robot)
    model = di.symbolic.symbolic_model(robot, "rigid")
    q, dq, ddq = states(6)
    function = sp.lambdify([[*model.q, *model.dq, *model.ddq], list(model.constants)], lagrange.W, cse=True)
    W = np.array(
        [function(np.concatenate(rows), list(model.constants.values())) for rows in zip(q, dq, ddq, strict=True)], float
    )
    at_joints = np.stack(
        [di.joint_torque(robot, column) for column in np.moveaxis(di.regressor(robot, q, dq, ddq, "rigid"), 2, 0)], 2
    )
    close(W, at_joints)


def test_mass_matrix_rate_minus_twice_christoffel_is_skew():
    model = di.symbolic.symbolic_model(di.load_robot("cmu-dd-arm-3"), "rigid")
    rate = sum((model.M.diff(q) * dq for q, dq in zip(model.q, model.dq, strict=True)), sp.zeros(3, 3))
    N = rate - 2 * model.christoffel
    assert_equal(N + N.T, sp.zeros(3, 3))
    assert_equal(model.W * model.chi, model.tau)


def test_angle_sums_and_squares_are_found():
    model = di.symbolic.symbolic_model(di.load_robot("pendulum-3"), "rigid")
    q1, q2, q3 = model.q
    assert model.g[2].atoms(sp.sin) == {sp.sin(q1 + q2 + q3)}
    assert model.M[0, 2].atoms(sp.cos) == {sp.cos(q3), sp.cos(q2 + q3)}
    arm = di.symbolic.symbolic_model(di.load_robot("cmu-dd-arm-3"), "rigid")
    assert arm.M[1, 1].coeff(sp.Symbol("XX3")) == sp.sin(sp.Symbol("q3")) ** 2


def test_sr400s_passive_joints_are_written_in_the_active_ones():
    model = di.symbolic.symbolic_model(di.load_robot("sr400"), "rigid,Ia")
    names = {symbol.name for symbol in model.g.free_symbols}
    assert {"q2", "q7", "d3", "g"} <= names
    assert not {"q3", "q8"} & names
    assert {str(angle) for angle in model.g.atoms(sp.sin, sp.cos)} >= {"cos(q2)", "sin(q7)"}


def test_trees_and_skew_axes_of_urdf_robots():
    for seed in (2, 6):
        robot = di.robot.robot_from_urdf(random_urdf(seed))
        model = di.symbolic.symbolic_model(robot, "rigid")
        chi = di.parameters(robot, "rigid")
        q, dq, ddq = states(len(model.q))
        close(evaluated(model, model.M, chi, q), di.mass_matrix(robot, q))
        close(evaluated(model, model.tau, chi, q, dq, ddq)[:, :, 0], di.inverse_dynamics(robot, q, dq, ddq, "rigid"))


def test_locked_joints_and_geared_followers():
    robot = di.load_robot("kr5-planar").lock(q2=0.5)
    model = di.symbolic.symbolic_model(robot, "rigid")
    q, dq, ddq = states(2)
    close(evaluated(model, model.M, di.parameters(robot, "rigid"), q), di.mass_matrix(robot, q))
    half = dataclasses.replace(
        di.load_robot("pendulum-3"),
        active=(0, 1),
        follow=np.array([[1.0, 0], [0, 1], [-0.5, 2]]),
        follow_offset=np.array([0.0, 0, 0.3]),
        coupling=np.eye(2),
        zero=np.zeros(2),
        elements=(),
    )
    model = di.symbolic.symbolic_model(half, "rigid")
    chi = di.parameters(half, "rigid")
    close(evaluated(model, model.M, chi, q), di.mass_matrix(half, q))
    close(evaluated(model, model.tau, chi, q, dq, ddq)[:, :, 0], di.inverse_dynamics(half, q, dq, ddq, "rigid"))
    odd = dataclasses.replace(half, follow=np.array([[1.0, 0], [0, 1], [np.sqrt(2), 0]]))
    with pytest.raises(di.DynidentError, match=r"follows by 1\.41421, which is no simple ratio"):
        di.symbolic.symbolic_model(odd, "rigid")


def test_friction_laws_of_one_direction_are_one_quantity():
    form = di.symbolic.symbolic_model(di.load_robot("pendulum-2"), "rigid").form.quantities
    speed = form.dq[0] - 2 * form.dq[1]
    assert form.sign(speed) == -form.sign(-speed) == form.sign(3 * speed)
    assert form.tanh(speed) == -form.tanh(-speed) != form.tanh(3 * speed)
    robot = di.load_robot("sr400")
    model = di.symbolic.symbolic_model(robot, ["Fv", di.dynamics.Coulomb(0.02)])
    q, dq, ddq = states(6)
    close(
        evaluated(model, model.W, np.zeros(len(model.columns)), q, dq, ddq),
        di.regressor(robot, q, dq, ddq, model.terms),
    )


def test_gravity_in_any_direction(tmp_path):
    (tmp_path / "tilted.yaml").write_text("base: pendulum-2\ngravity: [3, -4, 0.5]\n")
    robot = di.load_robot(tmp_path / "tilted.yaml")
    model = di.symbolic.symbolic_model(robot, "rigid")
    assert {str(s) for s in model.constants} == {"L", "gx", "gy", "gz"}
    q, _, _ = states(2)
    close(evaluated(model, model.g, di.parameters(robot, "rigid"), q)[:, :, 0], di.gravity_torque(robot, q))


def test_geometry_that_divides_by_a_length_keeps_its_numbers(tmp_path):
    text = "name: odd\nconvention: dh\nlengths: {a: 0.5, b: 0.4}\njoints:\n  - {a: a/b}\n  - {a: a^2 + b}\n"
    (tmp_path / "odd.yaml").write_text(text)
    (tmp_path / "even.yaml").write_text(text.replace("a/b", "a + 2*b"))
    for name, symbols in (("odd", set()), ("even", {"a", "b"})):
        robot = di.load_robot(tmp_path / f"{name}.yaml")
        model = di.symbolic.symbolic_model(robot, "rigid")
        assert {str(s) for s in model.constants} - {"g"} == symbols
        q, dq, ddq = states(2)
        chi = np.random.default_rng(0).normal(size=20)
        expected = di.inverse_dynamics(robot, q, dq, ddq, "rigid", chi)
        close(evaluated(model, model.tau, chi, q, dq, ddq)[:, :, 0], expected)
        assert_python(model, robot, chi)


def assert_python(model: di.symbolic.SymbolicModel, robot: di.Robot, chi: np.ndarray) -> None:
    """The printed module computes what the library does."""
    names: dict = {}
    exec(model.python(("tau", "M", "g", "W", "C", "B", "christoffel")), names)
    terms = model.terms
    q, dq, ddq = states(len(model.q))
    values = dict(zip(map(str, model.chi), chi, strict=True))
    n = len(model.q)
    M = np.array([names["mass_matrix"](x, values) for x in q])
    tau = np.array([names["inverse_dynamics"](*x, values) for x in zip(q, dq, ddq, strict=True)])
    W = np.array([names["regressor"](*x) for x in zip(q, dq, ddq, strict=True)])
    close(M, di.mass_matrix(robot, q, values))
    close(tau, di.inverse_dynamics(robot, q, dq, ddq, terms, chi))
    close(W, di.regressor(robot, q, dq, ddq, terms))
    close([names["gravity"](x, values) for x in q], di.joint_torque(robot, di.gravity_torque(robot, q, values)))
    turning = di.joint_torque(robot, di.coriolis_torque(robot, q, dq, values))
    christoffel = np.array([names["christoffel_matrix"](a, b, values) for a, b in zip(q, dq, strict=True)])
    close(np.einsum("sij,sj->si", christoffel, dq), turning)
    pairs = [dq[:, i] * dq[:, j] for i in range(n) for j in range(i + 1, n)]
    C = np.array([names["centrifugal_matrix"](x, values) for x in q])
    B = np.array([names["coriolis_matrix"](x, values) for x in q]).reshape(len(q), n, -1)
    products = np.array(pairs).reshape(len(pairs), len(q)).T
    close(np.einsum("sij,sj->si", C, dq**2) + np.einsum("sij,sj->si", B, products), turning)


class TestPrinting:
    @pytest.mark.parametrize("name", ["cylindrical", "cmu-dd-arm-3", "minnesota", pytest.param("sr400", marks=full)])
    def test_python_runs_and_agrees(self, name):
        robot = dataclasses.replace(di.load_robot(name), fixed={})
        model = di.symbolic.symbolic_model(robot)
        assert_python(model, robot, np.random.default_rng(1).normal(size=len(model.columns)))

    @pytest.mark.parametrize("name", di.bundled_names())
    def test_python_of_every_robot_with_its_own_values(self, name):
        robot = di.load_robot(name)
        names: dict = {}
        exec(di.symbolic.symbolic_model(robot).python("tau,M"), names)
        q, dq, ddq = states(len(robot.joint_names))
        tau = np.array([np.broadcast_to(x, len(q)) for x in names["inverse_dynamics"](q.T, dq.T, ddq.T)]).T
        close(tau, di.inverse_dynamics(robot, q, dq, ddq))
        close([names["mass_matrix"](x) for x in q], di.mass_matrix(robot, q))

    def test_python_of_a_robot_without_a_readable_closed_form(self):
        robot = di.robot.robot_from_urdf(random_urdf(7))
        names: dict = {}
        exec(di.symbolic.symbolic_model(robot, "rigid").python("tau"), names)
        q, dq, ddq = states(len(robot.joint_names))
        tau = [names["inverse_dynamics"](*x) for x in zip(q, dq, ddq, strict=True)]
        close(tau, di.inverse_dynamics(robot, q, dq, ddq, "rigid"))

    def test_text(self):
        text = di.symbolic.symbolic_model(di.load_robot("pendulum-2"), "rigid").text("M,g")
        assert "M[1, 2] = ZZ2 + C2*L*MX2 - L*MY2*S2" in text
        assert "C12 = cos(q1 + q2), S12 = sin(q1 + q2)" in text
        assert "Constants: L = 1, g = 9.81" in text
        assert "all zero" in di.symbolic.symbolic_model(di.load_robot("minnesota"), "rigid").text("g")

    def test_text_can_be_read_back(self):
        """Every printed entry, taken as an expression, is the entry."""
        model = di.symbolic.symbolic_model(di.load_robot("cmu-dd-arm-3"), "rigid,Fc")
        short = {f"{f}{n}": getattr(sp, {"C": "cos", "S": "sin"}[f])(sp.Symbol(f"q{n}")) for f in "CS" for n in "123"}
        for line in model.text("tau").splitlines():
            if line.startswith("tau["):
                left, right = line.split(" = ")
                found = sp.sympify(right, locals={"sign": sp.sign}).subs({sp.Symbol(k): v for k, v in short.items()})
                assert_equal(found, model.tau[int(left[4]) - 1])

    def test_latex(self):
        text = di.symbolic.symbolic_model(di.load_robot("pendulum-2"), "rigid").latex("M,B,tau")
        assert r"M_{2,2} &= \mathit{ZZ}_{2}" in text
        assert r"B_{1,\dot q_{1} \dot q_{2}} &=" in text
        assert r"\ddot q_{1}" in text
        assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 3

    def test_lengths_named_like_angles(self, tmp_path):
        """A length C2 and the short form of cos(q2) are two things, in text and in LaTeX."""
        text = "name: odd\nconvention: dh\ngravity: [0, -9.81, 0]\nlengths: {C2: 0.5, S12: 0.4}\n"
        (tmp_path / "odd.yaml").write_text(text + "joints:\n  - {a: C2}\n  - {a: S12}\n")
        plain = text.replace("C2: 0.5, S12: 0.4", "a: 0.5, b: 0.4") + "joints:\n  - {a: a}\n  - {a: b}\n"
        (tmp_path / "even.yaml").write_text(plain)
        odd, even = (
            di.symbolic.symbolic_model(di.load_robot(tmp_path / f"{name}.yaml"), "rigid") for name in ("odd", "even")
        )
        swap = {"C2": "C2_", "S2": "S2_", "C12": "C12_", "S12": "S12_", "a": "C2", "b": "S12"}
        short = re.compile(r"\b(C2|S2|C12|S12|a|b)\b")
        theirs = [short.sub(lambda found: swap[found[1]], line) for line in even.text("M,g").splitlines()]
        assert "C2_ = cos(q2), S2_ = sin(q2)" in odd.text("M,g")
        ours = [line for line in odd.text("M,g").splitlines() if "[" in line]
        for mine, other in zip(ours, [line for line in theirs if "[" in line], strict=True):
            assert sp.expand(sp.sympify(mine.split(" = ")[1]) - sp.sympify(other.split(" = ")[1])) == 0
        assert "C_{2}'" in odd.latex("M")
        assert "C_{2} " in odd.latex("M")
        assert "'" not in even.latex("M")

    def test_unknown_parts_and_parameters_are_named(self):
        model = di.symbolic.symbolic_model(di.load_robot("pendulum-1"), "rigid")
        with pytest.raises(di.UnknownNameError, match="unknown part of a symbolic model 'N'"):
            model.text("M,N")
        with pytest.raises(di.UnknownNameError, match="unknown parameter 'ZZ9'"):
            di.symbolic.symbolic_model(model.robot, "rigid", parameters={"ZZ9": "x"})


@pytest.mark.parametrize("make", [di.symbolic.symbolic_model, di.symbolic.symbolic_base, di.symbolic.lagrange_model])
def test_what_has_no_closed_form(make, tmp_path):
    with pytest.raises(di.InputError, match=r"a str is no robot; load it first: di\.load_robot\('pendulum-1'\)"):
        make("pendulum-1")
    with pytest.raises(di.InputError, match="a dict is no robot; expected a Robot"):
        make({})
    with pytest.raises(di.InputError, match="have no closed form"):
        make(load(FOUR_BAR, tmp_path))


def test_without_sympy_the_message_says_what_to_install():
    code = (
        "import sys; sys.modules['sympy'] = None\n"
        "import dynident as di\n"
        "model = di.symbolic.symbolic_model(di.load_robot('pendulum-1'), 'rigid')\n"
        "assert 'def mass_matrix' in model.python('M')\n"
        "try:\n    model.M\nexcept di.DynidentError as error:\n    print(error)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install sympy" in answer.stdout


def test_sympy_is_not_loaded_by_the_library_itself():
    code = "import sys, dynident as di; di.symbolic.symbolic_model, di.regressor; print('sympy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_the_example_is_short_and_proves_what_it_says(capsys):
    path = Path(__file__).parents[2] / "examples" / "symbolic_model.py"
    assert len(path.read_text().splitlines()) < 80
    runpy.run_path(str(path))["main"]("cylindrical")
    page = capsys.readouterr().out
    assert "differ in 0 of 90 entries" in page
    assert "ZZR1 = " in page
    assert "turn: no gravity" in page
