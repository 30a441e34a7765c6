"""Closed forms equal the papers' equations, corrected where they are misprinted, to zero by SymPy."""

from __future__ import annotations

import pytest
import sympy as sp

import dynident as di
from tests.symbolic.symbolic_zero import assert_equal

S = sp.Symbol
q1, q2, q3 = sp.symbols("q1:4")
d1, d2, d3_ = sp.symbols("dq1:4")
e1, e2, e3 = sp.symbols("ddq1:4")
g = S("g")
C2, S2, C3, S3 = sp.cos(q2), sp.sin(q2), sp.cos(q3), sp.sin(q3)


def column(model, row: int, name: str) -> sp.Expr:
    return model.W[row, [c.name for c in model.columns].index(name)]


class TestKhoslaCylindrical:
    """Paper 1, section 2.4: q2 and q3 are the displacements d2 and d3."""

    centered = [f"r{axis}{i}" for axis, i in ("x1", "y1", "x2", "z2", "x3", "y3")]
    diagonal = [f"I{pair}{i}" for pair in ("xy", "xz", "yz") for i in (1, 2, 3)]

    def test_classical_model_12_to_14(self):
        zero = {S(name): 0 for name in (*self.centered, *self.diagonal)}
        tau = di.symbolic.lagrange_model(di.load_robot("cylindrical")).tau.subs(zero)
        m2, m3, s3z = sp.symbols("m2 m3 rz3")
        inertia = S("Izz1") + S("Iyy2") + S("Iyy3") + m3 * (s3z + q3) ** 2
        assert_equal(tau[2], m3 * e3 - m3 * (s3z + q3) * d1**2)
        assert_equal(tau[1], (m2 + m3) * (e2 + g))
        # Link 2's own center of mass is on its y axis, the axis of rotation, and does not show.
        assert_equal(tau[0], inertia * e1 + 2 * m3 * (s3z + q3) * d3_ * d1)

    def test_modified_model_18_to_20(self):
        model = di.symbolic.symbolic_model(di.load_robot("cylindrical"), "rigid")
        zero = {S(f"{name}{i}"): 0 for name in ("XY", "XZ", "YZ", "MX", "MY") for i in (1, 2, 3)}
        tau = model.tau.subs(zero)
        m2, m3, first = sp.symbols("M2 M3 MZ3")
        total = S("ZZ1") + S("YY2") + S("YY3")
        assert_equal(tau[2], m3 * e3 - (first + m3 * q3) * d1**2)
        assert_equal(tau[1], (m2 + m3) * (e2 + g))
        assert_equal(tau[0], (total + 2 * first * q3 + m3 * q3**2) * e1 + 2 * (first + m3 * q3) * d3_ * d1)

    def test_torque_errors_21_to_23(self):
        model = di.symbolic.symbolic_model(di.load_robot("cylindrical"), "rigid")
        assert_equal(column(model, 2, "MZ3"), -(d1**2))
        assert_equal(column(model, 2, "M3"), e3 - q3 * d1**2)
        for name in ("M2", "M3"):
            assert_equal(column(model, 1, name), e2 + g)
        for name in ("ZZ1", "YY2", "YY3"):
            assert_equal(column(model, 0, name), e1)
        assert_equal(column(model, 0, "MZ3"), 2 * q3 * e1 + 2 * d3_ * d1)
        assert_equal(column(model, 0, "M3"), q3**2 * e1 + 2 * q3 * d3_ * d1)


class TestKhoslaArm:
    """Paper 1, section 4.2: torque-error model of the CMU arm's first three joints."""

    a1, a2, d3 = sp.symbols("a1 a2 d3")

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls):
        return di.symbolic.symbolic_model(di.load_robot("cmu-dd-arm-3"), "rigid")

    def test_equation_24(self, model):
        a1, a2, d3 = self.a1, self.a2, self.d3
        w = d1 + d2
        pull = a1 * C2 * d1**2 - a1 * S2 * e1 + a2 * w**2 - d3 * (e1 + e2)
        expected = {
            "XZ3": (1 - 2 * C3**2) * w**2,
            "YZ3": -C3 * (e1 + e2),
            "YY3": e3,
            "ZZ3": C3 * S3 * w**2,
            "XX3": -C3 * S3 * w**2,
            "XY3": -S3 * (e1 + e2),
            "MZ3": C3 * pull - g * S3,
            "MX3": S3 * pull + g * C3,
        }
        for name, coefficient in expected.items():
            assert_equal(column(model, 2, name), coefficient)

    def test_equation_25(self, model):
        a1, a2, d3 = self.a1, self.a2, self.d3
        turning = 2 * S3 * C3 * d3_ * (d1 + d2)
        expected = {
            "YY2": e1 + e2,
            "ZZ3": C3**2 * (e1 + e2) - turning,
            "XX3": S3**2 * (e1 + e2) + turning,
            "MX2": 2 * a2 * e1 + a1 * C2 * e1 + a1 * S2 * d1**2 + 2 * a2 * e2,
            "MZ2": -a1 * C2 * d1**2 + a1 * S2 * e1,
            "MY3": a1 * C2 * d1**2 - a1 * S2 * e1 - 2 * d3 * (e1 + e2),
            "M2": (a1 * a2 * C2 + a2**2) * e1 + a2**2 * e2 + a1 * a2 * S2 * d1**2,
            "M3": (a1 * d3 * S2 + d3**2 + a1 * a2 * C2 + a2**2) * e1
            + (d3**2 + a2**2) * e2
            + (a1 * a2 * S2 - a1 * d3 * C2) * d1**2,
        }
        for name, coefficient in expected.items():
            assert_equal(column(model, 1, name), coefficient)

    def test_equation_26(self, model):
        a1 = self.a1
        for name, coefficient in {"ZZ1": e1, "MX1": 2 * a1 * e1, "M1": a1**2 * e1}.items():
            assert_equal(column(model, 0, name), coefficient)

    def test_the_misprints_are_caught(self, model):
        """As printed, (24) lacks a square and (26) has a2: the comparison must see that."""
        with pytest.raises(AssertionError):
            assert_equal(column(model, 0, "M1"), self.a2**2 * e1)
        with pytest.raises(AssertionError):
            assert_equal(column(model, 2, "XZ3"), (1 - 2 * C3) * d1**2 + 2 * d1 * d2 * (1 - 2 * C3**2))


class TestJamisola:
    """Paper 3: chains of rods of length L, angles from upright, so gravity pushes over (-g in 23-25)."""

    L = S("L")
    m = sp.symbols("m1:4")

    def rods(self, n: int):
        model = di.symbolic.symbolic_model(di.load_robot(f"pendulum-{n}"), "rigid")
        rod = {str(column): 0 for column in model.chi}
        for i in range(n):
            m = self.m[i]
            rod |= {f"ZZ{i + 1}": m * self.L**2 / 3, f"MX{i + 1}": m * self.L / 2, f"M{i + 1}": m}
        values = {S(name): value for name, value in rod.items()}
        turning = model.christoffel * sp.Matrix(model.dq)
        squares = model.C * sp.Matrix([v**2 for v in model.dq])
        if n > 1:
            products = [a * b for i, a in enumerate(model.dq) for b in model.dq[i + 1 :]]
            squares += model.B * sp.Matrix(products)
        assert_equal(turning, squares)
        return model.M.subs(values), turning.subs(values), model.g.subs(values)

    def test_equation_23(self):
        A, c, gravity = self.rods(1)
        m1, L = self.m[0], self.L
        assert_equal(A, sp.Matrix([m1 * L**2 / 3]))
        assert_equal(c, sp.zeros(1, 1))
        assert_equal(gravity, sp.Matrix([-m1 * g * L * sp.sin(q1) / 2]))

    def test_equation_24(self):
        A, c, gravity = self.rods(2)
        m1, m2, L = *self.m[:2], self.L
        third, half = sp.Rational(1, 3), sp.Rational(1, 2)
        across = m2 * L**2 * (third + half * C2)
        assert_equal(A, sp.Matrix([[m1 * L**2 / 3 + m2 * L**2 * (4 * third + C2), across], [across, m2 * L**2 / 3]]))
        assert_equal(c, half * m2 * L**2 * S2 * sp.Matrix([-d2 * (2 * d1 + d2), d1**2]))
        tip = half * m2 * L * g * sp.sin(q1 + q2)
        assert_equal(gravity, -sp.Matrix([(m1 / 2 + m2) * L * g * sp.sin(q1) + tip, tip]))

    def test_equation_25(self):
        A, c, gravity = self.rods(3)
        m1, m2, m3, L = *self.m, self.L
        C23, S23 = sp.cos(q2 + q3), sp.sin(q2 + q3)
        half, third, sixth = sp.Rational(1, 2), sp.Rational(1, 3), sp.Rational(1, 6)
        near, far = (m2 + 2 * m3) * L**2, m3 * L**2
        A11 = third * (m1 + 4 * m2 + 7 * m3) * L**2 + near * C2 + far * (C3 + C23)
        A12 = third * (m2 + 4 * m3) * L**2 + half * near * C2 + half * far * (2 * C3 + C23)
        A13 = sixth * far * (2 + 3 * C3 + 3 * C23)
        A23 = sixth * far * (2 + 3 * C3)
        A22 = third * (m2 + 4 * m3) * L**2 + far * C3  # printed with a factor 3
        assert_equal(A, sp.Matrix([[A11, A12, A13], [A12, A22, A23], [A13, A23, third * far]]))
        w = d1 + d2
        wave = d3_ * (2 * w + d3_) * S3
        c1 = -half * near * d2 * (2 * d1 + d2) * S2 - half * far * (wave + (d2 + d3_) * (2 * d1 + d2 + d3_) * S23)
        c2 = half * near * d1**2 * S2 + half * far * (-wave + d1**2 * S23)
        c3 = half * far * (w**2 * S3 + d1**2 * S23)
        assert_equal(c, sp.Matrix([c1, c2, c3]))
        tip = half * m3 * L * g * sp.sin(q1 + q2 + q3)
        middle = half * (m2 + 2 * m3) * L * g * sp.sin(q1 + q2)
        root = half * (m1 + 2 * (m2 + m3)) * L * g * sp.sin(q1)
        assert_equal(gravity, -sp.Matrix([root + middle + tip, middle + tip, tip]))


class TestKim:
    """Paper 4, appendix: the Minnesota arm. The coupler turns with link 2, so its own inertia goes there."""

    def test_equations_a1_to_a6(self):
        model = di.symbolic.symbolic_model(di.load_robot("minnesota"), "rigid")
        L5, gap, h = sp.symbols("L5 g h")  # h is L2 - g
        m2, m3, m4, m5, X2, X3, X4, X5 = sp.symbols("m2 m3 m4 m5 X2 X3 X4 X5")
        center = {2: (m2, X2), 3: (m3, X3), 4: (m4, X4), 5: (m5, -X5)}
        values = {S("ZZ1"): S("Iz1")}
        for i, (m, x) in center.items():
            values |= {S(f"XX{i}"): S(f"Ix{i}"), S(f"MX{i}"): m * x, S(f"M{i}"): m}
            values |= {S(f"YY{i}"): S(f"Iy{i}") + m * x**2, S(f"ZZ{i}"): S(f"Iz{i}") + m * x**2}
        M = model.M.subs(values)
        Ie1 = m3 * X3**2 + m4 * L5**2 + m5 * X5**2
        Ie2 = m3 * h**2 + m4 * (X4 - gap) ** 2 + m5 * gap**2
        Ie3 = m3 * X3 * h - m4 * (X4 - gap) * L5 + m5 * X5 * gap
        Ie4, Ie5, Ie6 = (S(f"I{axis}3") + S(f"I{axis}5") for axis in "xyz")
        Ix2, Iy2, Iz2 = S("Ix2") + S("Ix4"), S("Iy2") + S("Iz4"), S("Iz2") + S("Iy4")
        M11 = (
            S("Iz1")
            + C2**2 * (Ie1 + Ie6 + Ie2 + 2 * C3 * Ie3 + Iy2 + m2 * X2**2)
            + S2**2 * (S3**2 * (Ie1 + Ie5) + C3**2 * Ie4 + Ix2)
        )
        M12 = S2 * S3 * (Ie3 + C3 * (Ie1 + Ie5 - Ie4))
        M13 = C2 * (Ie1 + Ie6 + C3 * Ie3)
        M22 = Iz2 + m2 * X2**2 + C3**2 * (Ie1 + Ie5) + S3**2 * Ie4 + Ie2 + 2 * C3 * Ie3
        assert_equal(M, sp.Matrix([[M11, M12, M13], [M12, M22, 0], [M13, 0, Ie1 + Ie6]]))

    def test_equation_20_has_its_shapes(self):
        model = di.symbolic.symbolic_model(di.load_robot("minnesota"), "rigid")
        assert (model.M.shape, model.C.shape, model.B.shape, model.g.shape) == ((3, 3), (3, 3), (3, 3), (3, 1))
        assert model.g == sp.zeros(3, 1)


class TestAbhishek:
    """Paper 5: planar three-joint arm by Euler and Lagrange, coefficients taken out as in section 2.3."""

    @pytest.fixture(scope="class")
    @classmethod
    def lagrange(cls):
        return di.symbolic.lagrange_model(di.load_robot("kr5-planar"))

    def test_twelve_of_thirty_have_an_effect(self, lagrange):
        names = [column.name for column in di.columns(lagrange.robot, "rigid")]
        effective = {name for j, name in enumerate(names) if any(lagrange.W[:, j])}
        assert effective == {f"{symbol}{i}" for i in (1, 2, 3) for symbol in ("ZZ", "MX", "MY", "M")}  # eq. (23)

    def test_table_4(self, lagrange):
        base = di.symbolic.symbolic_base(lagrange.robot, "rigid")
        a1, a2, M1, M2, M3 = sp.symbols("a1 a2 M1 M2 M3")
        expected = {
            "ZZR1": S("ZZ1") - a1**2 * (M1 + M2 + M3),
            "MXR1": S("MX1") + a1 * (M1 + M2 + M3),
            "MY1": S("MY1"),
            "ZZR2": S("ZZ2") - a2**2 * (M2 + M3),
            "MXR2": S("MX2") + a2 * (M2 + M3),
            "MY2": S("MY2"),
            **{name: S(name) for name in ("ZZ3", "MX3", "MY3")},
        }
        assert list(base.names) == list(expected)
        for found, relation in zip(base.expressions, expected.values(), strict=True):
            assert sp.expand(found - relation) == 0
        printed = sp.Matrix(base.expressions).subs({a1: sp.Rational(6, 10), a2: sp.Rational("0.6315")})
        assert float(-printed[0].coeff(M1)) == pytest.approx(0.36)
        assert float(-sp.expand(printed[3]).coeff(M3)) == pytest.approx(0.39879, abs=5e-6)

    def test_the_base_regressor_makes_the_lagrange_torque(self, lagrange):
        """Y chi of Lagrange is W_base beta: both models, and the regrouping between them, to zero."""
        base = di.symbolic.symbolic_base(lagrange.robot, "rigid")
        own = lagrange.W[:, list(base.independent)]
        assert_equal(own * base.K, lagrange.W)
