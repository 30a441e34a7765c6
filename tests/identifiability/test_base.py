from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.identifiability.base import readable_base
from tests.robots import random_urdf

ARMS = ["puma560", "sr400", "tx40", "cylindrical", "minnesota", "cmu-dd-arm-6"]


def motion(robot, n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(3, n, len(robot.joint_names))) * 2


@pytest.mark.parametrize("name", ARMS)
def test_base_columns_and_relations_reproduce_the_regressor(name):
    """W = W_base K on states that were not used to find K."""
    robot = di.load_robot(name)
    base = di.base_parameters(robot)
    state = motion(robot)
    W = di.regressor(robot, *state)
    free = [j for j, column in enumerate(base.columns) if column.fixed is None]
    rebuilt = base.regressor(*state) @ base.K
    np.testing.assert_allclose(rebuilt[..., free], W[..., free], atol=1e-9 * np.abs(W).max())


@pytest.mark.parametrize("seed", range(8))
def test_rank_equals_the_singular_values(seed):
    robot = di.robot.robot_from_urdf(random_urdf(seed))
    base = di.base_parameters(robot)
    W = di.regressor(robot, *motion(robot, 200, seed))
    stacked = np.ascontiguousarray(W).reshape(-1, len(base.columns))
    size = np.linalg.norm(stacked, axis=0)
    values = np.linalg.svd(stacked[:, size > 1e-9] / size[size > 1e-9], compute_uv=False)
    assert base.n == np.sum(values > 1e-9 * values[0])
    assert base.strongest < 1e-11 < 1e-6 < base.weakest


@pytest.mark.parametrize("how", ["minimum norm", "regrouped zero"])
@pytest.mark.parametrize("name", ARMS)
def test_standard_vector_realises_base_values(name, how):
    robot = di.load_robot(name)
    base = di.base_parameters(robot)
    beta = base.base_values()
    chi = base.standard_values(beta, how)
    np.testing.assert_allclose(base.K @ chi, beta, atol=1e-9 * np.abs(beta).max())
    state = motion(robot)
    torque = di.inverse_dynamics(robot, *state)
    np.testing.assert_allclose(di.inverse_dynamics(robot, *state, values=chi), torque, atol=1e-8 * np.abs(torque).max())
    if how == "regrouped zero":
        assert np.count_nonzero(chi) <= base.n


def test_minimum_norm_is_minimal_and_a_prior_is_kept_where_data_is_silent():
    robot = di.load_robot("puma560")
    base = di.base_parameters(robot, "rigid")
    beta = base.base_values()
    chi = base.standard_values(beta)
    assert np.linalg.norm(chi) <= np.linalg.norm(di.parameters(robot, "rigid"))
    np.testing.assert_allclose(base.standard_values(beta, prior="plant"), di.parameters(robot, "rigid"), atol=1e-12)


def test_categories_are_a_partition():
    robot = di.load_robot("sr400")
    base = di.base_parameters(robot)
    kinds = [set(base.of_category(kind)) for kind in ("unique", "combination", "no effect", "fixed")]
    assert set.union(*kinds) == {column.name for column in di.columns(robot)}
    assert sum(len(kind) for kind in kinds) == len(base.columns)


def test_rounded_angles_are_reported_not_hidden():
    """1.5708 instead of pi/2 tilts the first axis by 4e-6: the extra parameters are faint and the user hears of it."""
    text = random_urdf(3, tree=False)
    robot = di.robot.robot_from_urdf(text)
    assert di.base_parameters(robot, "rigid").warnings == ()
    tilted = (
        '<robot name="t"><link name="base"/><link name="a"/><link name="b"/>'
        '<joint name="fix" type="fixed"><parent link="base"/><child link="a"/><origin rpy="1.5708 0 0"/></joint>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>'
    )
    exact = di.base_parameters(di.robot.robot_from_urdf(tilted.replace("1.5708", "1.5707963267948966")), "rigid")
    assert exact.n == 1
    rounded = di.base_parameters(di.robot.robot_from_urdf(tilted), "rigid")
    assert rounded.n == 3
    assert "2 of the 3 base parameters" in rounded.warnings[0]
    assert "rounded in the robot file (origin or axis of j); write all digits, pi/2 as" in rounded.warnings[0]
    assert rounded.is_faint
    assert not exact.is_faint
    assert "counts 1 base parameter" in rounded.warnings[0]
    assert di.base_parameters(di.robot.robot_from_urdf(tilted), "rigid", tolerance=1e-4).n == 1


def tilted_chain(axes):
    """Links without inertia on axes through offset origins: only the structure matters."""
    parts, parent = ['<robot name="tilted"><link name="base"/>'], "base"
    for i, axis in enumerate(axes):
        direction = " ".join(f"{x:.17g}" for x in axis)
        parts.append(
            f'<link name="l{i}"/><joint name="j{i}" type="continuous"><parent link="{parent}"/><child link="l{i}"/>'
            f'<origin xyz="0.3 0.1 0.05"/><axis xyz="{direction}"/></joint>'
        )
        parent = f"l{i}"
    return di.robot.robot_from_urdf("".join(parts) + "</robot>")


@pytest.mark.parametrize("tilt", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(4))
def test_axes_a_little_off_the_frame(seed, tilt):
    """The rank is that of the singular values and coefficients stay of size one, however the link frames lie."""
    rng = np.random.default_rng(seed)
    axes = [np.eye(3)[(seed + i) % 3] + tilt * rng.normal(size=3) for i in range(4)]  # no two in line
    robot = tilted_chain([axis / np.linalg.norm(axis) for axis in axes])
    base = di.base_parameters(robot, "rigid")
    q, dq, ddq = rng.normal(size=(3, 200, 4)) * np.array([2.0, 3.0, 10.0])[:, None, None]
    W = np.ascontiguousarray(di.regressor(robot, q, dq, ddq, "rigid")).reshape(-1, 40)
    values = np.linalg.svd(W / np.maximum(np.linalg.norm(W, axis=0), 1e-9), compute_uv=False)
    assert base.n == np.sum(values > 1e-11 * values[0])
    assert np.abs(base.K).max() < 10
    np.testing.assert_allclose(W[:, list(base.independent)] @ base.K, W, atol=1e-8 * np.abs(W).max())


def hand(noise):
    """A wrist with three fingers and a thumb of three links each on one motor; axes with an error of `noise` in z."""
    parts = ['<robot name="hand"><link name="base"/>']

    def add(name, parent, origin, turn, axis, mimic=""):
        direction = " ".join(f"{x:.9g}" for x in axis)
        parts.append(
            f'<link name="{name}"/><joint name="{name}" type="continuous"><parent link="{parent}"/><child '
            f'link="{name}"/><origin xyz="{origin}" rpy="{turn}"/><axis xyz="{direction}"/>{mimic}</joint>'
        )

    add("yaw", "base", "0 0 0.2", "0 0 0", (0, 0, 1))
    add("pitch", "yaw", "0.05 0 0.1", "0 0 0", (0, 1, 0))
    add("roll", "pitch", "0.3 0 0", "0 0 0", (1, 0, 0))
    fingers = {
        "index": ("0.11 0.02 0.003", 0.12, 1),
        "middle": ("0.115 0 0.003", 0.0, 1),
        "ring": ("0.1 -0.02 0.003", -0.12, 1),
        "thumb": ("0.07 -0.025 -0.012", -2.5, -1),
    }
    for finger, (origin, turn, sign) in fingers.items():
        follow = f'<mimic joint="index0" multiplier="{sign}"/>'
        axis = (np.sin(turn), -np.cos(turn), noise if sign > 0 else -2.4 * noise)
        add(f"{finger}0", "roll", origin, f"{noise} 1.06465 {turn}", axis, follow if finger != "index" else "")
        for k in (1, 2):
            add(f"{finger}{k}", f"{finger}{k - 1}", "0.018 0 0", f"{noise} 1.06 0", (0, -1, noise), follow)
    return di.robot.robot_from_urdf("".join(parts) + "</robot>")


def test_axes_in_single_precision_add_no_base_parameter():
    """Coplanar fingers lean out of their plane by 4e-8: less than the thumb's part in the same combinations."""
    exact, rounded = di.base_parameters(hand(0.0), "rigid"), di.base_parameters(hand(-4.37114e-08), "rigid")
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 150, 4)) * np.array([2.0, 3.0, 10.0])[:, None, None]
    W = np.ascontiguousarray(di.regressor(rounded.robot, q, dq, ddq, "rigid")).reshape(600, -1)
    size = np.linalg.norm(W, axis=0)
    values = np.linalg.svd(W[:, size > 1e-6] / size[size > 1e-6], compute_uv=False)
    rank = int(np.sum(values > 1e-7 * values[0]))
    assert values[rank] < 1e-5 * values[rank - 1]  # the oracle has no doubt
    assert rounded.n == exact.n == rank
    assert rounded.independent == exact.independent
    assert rounded.warnings == ()
    own = W[:, list(rounded.independent)]
    np.testing.assert_allclose(own @ rounded.K, W, atol=1e-7 * np.abs(W).max())
    assert np.linalg.cond(own / np.linalg.norm(own, axis=0)) < 10.0 * values[0] / values[rank - 1]


@pytest.mark.parametrize("spread", [0.0, 4.0])
def test_as_many_columns_as_combinations(spread):
    """Whatever the rows: on any number of columns of any sizes."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 3000)) * 10.0 ** rng.uniform(-spread, 0.0, 3000)
    independent, K = readable_base(np.linalg.qr(rows.T)[0].T, np.ones(3000))
    assert len(independent) == 7
    np.testing.assert_allclose(rows[:, independent] @ K, rows, atol=1e-6)


def test_a_single_tilted_axis_reads_naturally():
    base = di.base_parameters(tilted_chain([(1e-3, 1.0, 0.0)]), "rigid")
    assert base.expressions[0].startswith("YY1 + 1e-06 XX1 + 0.002 XY1")


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 2.0, float("nan")])
def test_tolerance_is_a_share(tolerance):
    with pytest.raises(di.InputError, match="tolerance is"):
        di.base_parameters(di.load_robot("pendulum-1"), tolerance=tolerance)


def test_fixed_values_survive_any_prior():
    robot = dataclasses.replace(di.load_robot("puma560"), fixed={"M6": 2.0})
    base = di.base_parameters(robot, "rigid")
    place = [column.name for column in base.columns].index("M6")
    for prior in (None, {}, np.zeros(60), "plant"):
        assert base.standard_values(base.base_values(), prior=prior)[place] == 2.0
    assert di.parameters(robot, "rigid", {})[place] == 2.0


def test_many_named_lengths_are_no_burden(tmp_path):
    """Thirty lengths: each coefficient depends on few of them, and only those are looked at."""
    rows = "".join(f"  - {{alpha: pi/{2 if i % 2 else -2}, d: a{i}, r: r{i}}}\n" for i in range(7))
    lengths = ", ".join(f"{kind}{i}: {0.1 + 0.01 * i}" for kind in "arxy" for i in range(7))
    path = tmp_path / "long.yaml"
    path.write_text(f"convention: modified-dh\nlengths: {{{lengths}}}\njoints:\n{rows}")
    base = di.base_parameters(di.load_robot(path), "rigid")
    text = dict(zip(base.names, base.expressions, strict=True))
    assert text["MXR2"].startswith("MX2 + a2 M3")


def test_fixed_parameters_are_neither_estimated_nor_counted():
    robot = di.load_robot("minnesota")
    base = di.base_parameters(robot, "rigid")
    assert not base.K[:, [j for j, column in enumerate(base.columns) if column.fixed is not None]].any()
    assert len(base.of_category("fixed")) == len(robot.fixed)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.standard_values({"ZZR9": 1.0}), "unknown base parameter 'ZZR9'"),
        (lambda b: b.standard_values(np.zeros(3)), "beta must have shape (9,)"),
        (lambda b: b.standard_values(np.zeros(9), "best"), "unknown way to fill standard parameters 'best'"),
        (lambda b: b.standard_values(np.zeros(9), "regrouped zero", prior="plant"), "prior has no meaning"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    base = di.base_parameters(di.load_robot("kr5-planar"), "rigid")
    with pytest.raises(di.DynidentError, match=words.replace("(", r"\(").replace(")", r"\)")):
        call(base)
