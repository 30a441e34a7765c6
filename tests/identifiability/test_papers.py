"""Counts, sets and relations of the papers, as `inspect --json` prints them."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.papers.gautier.printed import LOST, NO_EFFECT, TABLE_1, TABLE_3, load_relations, regroupings


def relation(answer: dict, name: str) -> dict:
    return next(item["terms"] for item in answer["base"] if item["name"] == name)


def in_span(base, combination: dict[str, float]) -> bool:
    """Whether a combination of standard parameters can be identified."""
    target = np.array([combination.get(column.name, 0.0) for column in base.columns])
    coefficients = np.linalg.lstsq(base.K.T, target, rcond=None)[0]
    return np.linalg.norm(base.K.T @ coefficients - target) < 1e-9


def test_cylindrical_has_five(inspect):
    answer = inspect("cylindrical")
    assert answer["counts"]["base"] == 5
    assert relation(answer, "ZZR1") == {"ZZ1": 1.0, "YY2": 1.0, "YY3": 1.0}
    assert set(answer["unique"]) == {"M2", "MX3", "MZ3", "M3"}


class TestCmuArm3:
    def test_counts_and_sets(self, inspect):
        answer = inspect("cmu-dd-arm-3")
        assert answer["counts"] | {"unique": 0, "combination": 0, "fixed": 0} == {
            "standard": 30,
            "no_effect": 13,
            "base": 11,
            "unique": 0,
            "combination": 0,
            "fixed": 0,
        }
        assert set(answer["unique"]) == {"XY3", "XZ3", "YY3", "YZ3", "MX3", "MZ3"}

    def test_combinations(self, inspect):
        a1, a2, d3 = 0.5, 0.4, 0.3
        answer = inspect("cmu-dd-arm-3")
        expected = {
            "ZZR1": {"ZZ1": 1, "MX1": 2 * a1, "M1": a1**2, "M2": a1**2, "M3": a1**2},
            "YYR2": {"YY2": 1, "ZZ3": 1, "MY3": -2 * d3, "M2": -(a2**2), "M3": d3**2 - a2**2},
            "MXR2": {"MX2": 1, "M2": a2, "M3": a2},
            "MZR2": {"MZ2": 1, "MY3": -1, "M3": d3},
            "XXR3": {"XX3": 1, "ZZ3": -1},
        }
        for name, terms in expected.items():
            assert relation(answer, name) == pytest.approx(terms, abs=1e-12), name

    def test_reference_values_of_table_3(self):
        base = di.base_parameters(di.load_robot("cmu-dd-arm-3"), "rigid")
        values = dict(zip(base.names, base.base_values("table3"), strict=True))
        expected = {"ZZR1": 9.625, "YYR2": -0.64, "MXR2": 4.7, "MZR2": 1.075, "XXR3": -0.1, "XY3": 0.15}
        expected |= {"XZ3": 0.1, "YY3": 0.2, "YZ3": 0.15, "MX3": 0.49, "MZ3": 0.7}
        assert values == pytest.approx(expected, abs=1e-12)

    def test_third_torque_has_rank_3_with_the_others_locked(self, inspect):
        assert inspect("cmu-dd-arm-3", "--locked", "q1=0,q2=0")["counts"]["base"] == 3
        assert inspect("cmu-dd-arm-3", "--locked", "q1=0.4,q2=-1.1")["counts"]["base"] == 3

    def test_expressions_name_the_lengths(self):
        base = di.base_parameters(di.load_robot("cmu-dd-arm-3"), "rigid")
        assert base.expressions[0] == "ZZ1 + 2 a1 MX1 + a1^2 M1 + a1^2 M2 + a1^2 M3"


def test_cmu_arm_6_has_rank_32_for_the_46_listed():
    robot = di.load_robot("cmu-dd-arm-6")
    listed = robot.values["table4-6"]
    assert len(listed) == 46
    rng = np.random.default_rng(0)
    W = di.regressor(robot, *rng.normal(size=(3, 60, 6)) * 2, terms="rigid")
    names = [column.name for column in di.columns(robot, "rigid")]
    columns = W[:, :, [names.index(name) for name in listed]].reshape(-1, 46)
    assert np.linalg.matrix_rank(columns, tol=1e-8 * np.linalg.norm(columns)) == 32
    assert di.base_parameters(robot, "rigid").n == 32


class TestSr400:
    no_effect = set(NO_EFFECT)
    table1 = {*TABLE_1, *LOST}

    @pytest.mark.parametrize(("terms", "count"), [("rigid", 39), ("rigid,Ia", 42), ("rigid,Ia,Fv,Fc", 56)])
    def test_counts(self, inspect, terms, count):
        answer = inspect("sr400", "--terms", terms)
        assert answer["counts"]["base"] == count
        assert set(answer["no_effect"]) == self.no_effect

    def test_table_1(self, inspect):
        answer = inspect("sr400", "--terms", "rigid,Ia")
        assert {item["name"] for item in answer["base"]} == self.table1
        assert len(answer["unique"]) == 20
        assert sum(len(item["terms"]) > 1 for item in answer["base"]) == 22

    def test_regroupings(self, inspect):
        answer = inspect("sr400", "--terms", "rigid,Ia")
        by_standard: dict[str, dict[str, float]] = {}
        for item in answer["base"]:
            for name, coefficient in item["terms"].items():
                by_standard.setdefault(name, {})[item["name"]] = coefficient
        expected = regroupings(0.14, 0.635, 0.25)
        for name, relations in expected.items():
            assert by_standard[name] == pytest.approx(relations, abs=1e-12), name

    def test_relations_are_written_over_the_lengths(self):
        base = di.base_parameters(di.load_robot("sr400"), "rigid,Ia")
        text = dict(zip(base.names, base.expressions, strict=True))
        assert text["MYR3"] == "MY3 + MZ4 + RL4 M4 + RL4 M5 + RL4 M6 - d8/d3 MX8"
        assert text["ZZR3"].endswith("+ ZZ7 + d8^2 M8 + Ia7")
        assert "(d4^2 + RL4^2) M5" in text["ZZR3"]

    def test_the_19_load_relations(self):
        robot = di.load_robot("sr400")
        base = di.base_parameters(robot, "rigid,Ia")
        printed = load_relations(*(robot.lengths[name] for name in ("d2", "d3", "d4", "RL4")))
        assert len(printed) == 19
        change = base.base_values({f"{symbol}6": value for symbol, value in TABLE_3.items()})
        for name, value in zip(base.names, change, strict=True):
            assert value == pytest.approx(printed.get(name, 0.0), abs=1e-9), name


class TestKr5:
    def test_planar_counts_and_table_4(self, inspect):
        answer = inspect("kr5-planar")
        counts = answer["counts"]
        assert (counts["standard"], counts["no_effect"], counts["base"]) == (30, 18, 9)
        expected = {
            "ZZR1": {"ZZ1": 1, "M1": -0.36, "M2": -0.36, "M3": -0.36},
            "MXR1": {"MX1": 1, "M1": 0.6, "M2": 0.6, "M3": 0.6},
            "MY1": {"MY1": 1},
            "ZZR2": {"ZZ2": 1, "M2": -0.39879225, "M3": -0.39879225},
            "MXR2": {"MX2": 1, "M2": 0.6315, "M3": 0.6315},
            "MY2": {"MY2": 1},
            "ZZ3": {"ZZ3": 1},
            "MX3": {"MX3": 1},
            "MY3": {"MY3": 1},
        }
        assert {item["name"] for item in answer["base"]} == set(expected)
        for name, terms in expected.items():
            assert relation(answer, name) == pytest.approx(terms, abs=1e-6)

    def test_plant_has_the_reference_base_values(self):
        base = di.base_parameters(di.load_robot("kr5-planar"), "rigid")
        expected = [-17.8939, 38.3942, 0.0064, -4.8945, 10.6798, 7.2487, 0.3910, 1.1736, -0.4988]
        np.testing.assert_allclose(base.base_values(), expected, atol=5e-5)

    def test_locked_arm_has_the_planar_regressor(self, inspect):
        """Joints 2, 3, 5 of the full arm span the planar arm's regressor: same rank, same column space."""
        assert inspect("kr5", "--locked", "q1=0,q4=0,q6=0")["counts"]["base"] == 9
        full = di.load_robot("kr5").lock(q1=0, q4=0, q6=0)
        text_lengths = {"a1": full.lengths["a2"], "a2": float(np.hypot(full.lengths["a3"], full.lengths["b4"]))}
        planar = _planar(**text_lengths)
        rng = np.random.default_rng(0)
        q, dq, ddq = rng.normal(size=(3, 80, 3))
        # Frame 3 of the full arm is turned against the line from joint 3 to joint 5; joint 5 turns the other way.
        bend = np.arctan2(full.lengths["b4"], full.lengths["a3"])
        turned = q.copy()
        turned[:, 1] = q[:, 1] + bend
        turned[:, 2] = -q[:, 2]
        flip = np.array([1, 1, -1])
        W_planar = di.base_parameters(planar, "rigid").regressor(q, dq, ddq) * flip[:, None]
        W_full = di.base_parameters(full, "rigid").regressor(turned, dq * flip, ddq * flip)
        A, B = W_planar.reshape(-1, 9), W_full.reshape(-1, 9)
        mapped = A @ np.linalg.lstsq(A, B, rcond=None)[0]
        assert np.linalg.norm(mapped - B) < 1e-9 * np.linalg.norm(B)

    def test_a_turned_wrist_shows_more(self, inspect):
        assert inspect("kr5", "--locked", "q1=0,q4=0.5,q6=0")["counts"]["base"] == 13


def _planar(a1: float, a2: float):
    import dataclasses

    from dynident.robot.model import Transform

    robot = di.load_robot("kr5-planar")
    joints = list(robot.joints)
    for i, length in enumerate((a1, a2)):
        joints[i] = dataclasses.replace(joints[i], after=Transform(np.eye(3), np.array([length, 0, 0])))
    return dataclasses.replace(robot, joints=tuple(joints), geometry=None, lengths={})


class TestMinnesota:
    table1 = dict(Iz1=0.19719, Ix2=0.02592, Y=1.68135, Z=1.78135, Ie15=0.28922, Ie16=0.27759, Ie3=0.2, Ie4=0.14543)

    def test_rank_6(self, inspect):
        assert inspect("minnesota")["counts"]["base"] == 6

    def test_mass_matrix_is_the_papers(self):
        t = self.table1
        robot = di.load_robot("minnesota")
        q = np.random.default_rng(1).normal(size=(40, 3))
        c2, s2, c3, s3 = np.cos(q[:, 1]), np.sin(q[:, 1]), np.cos(q[:, 2]), np.sin(q[:, 2])
        M = np.zeros((40, 3, 3))
        M[:, 0, 0] = t["Iz1"] + c2**2 * (t["Ie16"] + 2 * c3 * t["Ie3"] + t["Y"])
        M[:, 0, 0] += s2**2 * (s3**2 * t["Ie15"] + c3**2 * t["Ie4"] + t["Ix2"])
        M[:, 0, 1] = M[:, 1, 0] = s2 * s3 * (t["Ie3"] + c3 * (t["Ie15"] - t["Ie4"]))
        M[:, 0, 2] = M[:, 2, 0] = c2 * (t["Ie16"] + c3 * t["Ie3"])
        M[:, 1, 1] = t["Z"] + c3**2 * t["Ie15"] + s3**2 * t["Ie4"] + 2 * c3 * t["Ie3"]
        M[:, 2, 2] = t["Ie16"]
        np.testing.assert_allclose(di.mass_matrix(robot, q), M, atol=1e-12)

    def test_the_six_combinations_of_table_1(self):
        """Built from bodies with symbols of the paper: coupler inertia left out, as the paper lumps it elsewhere."""
        robot = di.load_robot("minnesota")
        base = di.base_parameters(robot, "rigid")
        g, L5, L2 = robot.lengths["g"], robot.lengths["L5"], robot.lengths["h"] + robot.lengths["g"]
        rng = np.random.default_rng(2)
        m = rng.uniform(1, 3, 6)
        X = rng.uniform(0.05, 0.2, 6)
        principal = rng.uniform(0.1, 0.3, (6, 3))
        principal[4] = 0.0
        offset = {1: 0.0, 2: X[2], 3: X[3], 4: X[4], 5: -X[5]}
        values = {}
        for k in range(1, 6):
            Ix, Iy, Iz = principal[k]
            values |= {f"XX{k}": Ix, f"YY{k}": Iy + m[k] * offset[k] ** 2, f"ZZ{k}": Iz + m[k] * offset[k] ** 2}
            values |= {f"MX{k}": m[k] * offset[k], f"M{k}": m[k]}
        Ie1 = m[3] * X[3] ** 2 + m[4] * L5**2 + m[5] * X[5] ** 2
        Ie2 = m[3] * (L2 - g) ** 2 + m[4] * (X[4] - g) ** 2 + m[5] * g**2
        Ie3 = m[3] * X[3] * (L2 - g) - m[4] * (X[4] - g) * L5 + m[5] * X[5] * g
        Ie4, Ie5, Ie6 = (principal[3] + principal[5]).tolist()
        Iz1, Ix2 = principal[1, 2], principal[2, 0]
        Y, Z = (m[2] * X[2] ** 2 + Ie2 + principal[2, i] for i in (1, 2))
        six = [Ie1 + Ie6, Z + Ie4, Ie1 + Ie5 - Ie4, Ie3, Iz1 + Ie1 + Ie6 + Y, Iz1 + Ix2 + Ie4]
        beta = dict(zip(base.names, base.base_values(values), strict=True))
        ours = [
            beta["ZZR3"],
            beta["ZZR2"] + beta["XXR3"],
            -beta["XXR3"],
            beta["MXR3"] * (L2 - g),
            beta["ZZR1"] + beta["ZZR3"],
            beta["ZZR1"] + beta["XXR2"] + beta["XXR3"],
        ]
        np.testing.assert_allclose(ours, six, atol=1e-12)

    def test_plant_is_balanced(self):
        import dataclasses

        robot = dataclasses.replace(di.load_robot("minnesota"), gravity=np.array([0.0, 0.0, -9.81]))
        assert np.abs(di.gravity_torque(robot, np.random.default_rng(0).normal(size=(20, 3)))).max() < 1e-12


@pytest.mark.parametrize(
    ("name", "rigid", "rotor", "friction"),
    [
        ("puma560", 36, 40, 58),
        ("ur10e", 36, 40, 58),
        ("tx40", 36, 40, 60),
        ("panda", 43, 48, 69),
    ],
)
def test_counts_of_known_arms(inspect, name, rigid, rotor, friction):
    assert inspect(name)["counts"]["base"] == rigid
    assert inspect(name, "--terms", "rigid,Ia")["counts"]["base"] == rotor
    assert inspect(name, "--terms", "rigid,Ia,Fv,Fc,Fo")["counts"]["base"] == friction


def test_tx40_matches_the_published_structure(inspect):
    """The published identification of this arm has 60 parameters: 36 rigid, Ia3, Ia4, Ia5 and a coupled motor 6."""
    answer = inspect("tx40", "--terms", "rigid,Ia,Fv,Fc,Fo")
    names = {item["name"] for item in answer["base"]}
    assert {"Ia3", "Ia4", "Ia5", "Ia6", "Fvm6", "Fcm6"} <= names
    assert not {"Ia1", "Ia2"} & names
    zz1 = relation(answer, "ZZR1")
    assert zz1["M5"] == pytest.approx(0.05185)
    assert zz1["MZ3"] == pytest.approx(0.07)
    assert relation(answer, "XZR2")["M4"] == pytest.approx(-0.007875)


def test_cylindrical_experiment_of_khosla():
    """The corrected model (eq. 18-20) and the torque printed for sample 10."""
    robot = di.load_robot("cylindrical")
    t = np.arange(25)[:, None] * 0.02
    A, w = np.array([np.pi / 2, 0.5, 0.5]), 2 * np.pi
    q, dq, ddq = A / 2 * (1 - np.cos(w * t)), A / 2 * w * np.sin(w * t), A / 2 * w**2 * np.cos(w * t)
    tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid")
    np.testing.assert_allclose(tau[10], [52.3907, 96.4491, -29.4215], atol=5e-5)
    m3, s3z, m2, S, g = 2.5, 0.5, 5.0, 2.5, 9.81
    d3, dd3, ddd3 = q[:, 2], dq[:, 2], ddq[:, 2]
    expected = [
        (S + m3 * (2 * s3z * d3 + d3**2)) * ddq[:, 0] + 2 * m3 * (s3z + d3) * dd3 * dq[:, 0],
        (m2 + m3) * (ddq[:, 1] + g),
        m3 * ddd3 - m3 * (s3z + d3) * dq[:, 0] ** 2,
    ]
    np.testing.assert_allclose(tau.T, expected, atol=1e-10)
