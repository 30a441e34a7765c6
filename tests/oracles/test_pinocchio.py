"""Our equations against Pinocchio's, on random robots and on the bundled ones."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from tests.robots import PinocchioOracle, random_urdf, tree_model

IN_TEST, IN_FULL = 40, 200
SEEDS = [pytest.param(s, marks=[pytest.mark.full] if s >= IN_TEST else []) for s in range(IN_FULL)]
N = 12


def states(robot, seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, n, len(robot.joint_names))) * np.array([2.0, 3.0, 10.0])[:, None, None]


def assert_close(ours, theirs, tolerance=1e-9):
    # The floor is for torques that are zero: both sides leave rounding of their own.
    assert np.linalg.norm(ours - theirs) <= tolerance * np.linalg.norm(theirs) + 1e-11


@pytest.mark.parametrize("seed", SEEDS)
def test_random_robot_agrees_with_pinocchio(seed):
    text = random_urdf(seed)
    robot = di.robot.robot_from_urdf(text)
    oracle = PinocchioOracle(text, robot.joint_names)
    q, dq, ddq = states(robot, seed)
    tau = oracle.torque(q, dq, ddq)
    assert_close(di.inverse_dynamics(robot, q, dq, ddq, "rigid"), tau)
    W = di.regressor(robot, q, dq, ddq, "rigid")
    assert_close(W @ di.parameters(robot, "rigid"), tau)
    M = oracle.mass(q)
    assert_close(di.mass_matrix(robot, q), M)
    assert_close(di.gravity_torque(robot, q), oracle.torque(q, 0 * q, 0 * q))
    bias = oracle.torque(q, dq, 0 * q) - oracle.torque(q, 0 * q, 0 * q)
    scale = np.linalg.norm(oracle.torque(q, dq, 0 * q))
    assert np.linalg.norm(di.coriolis_torque(robot, q, dq) - bias) <= 1e-9 * scale
    kinetic, potential = oracle.energy(q, dq)
    chi = di.parameters(robot, "rigid")
    assert_close(di.dynamics.energy_regressor(robot, q, dq, "rigid", "kinetic") @ chi, kinetic)
    ours = di.dynamics.energy_regressor(robot, q, dq, "rigid", "potential") @ chi
    # The base link's own weight is a constant in Pinocchio's sum.
    assert_close(ours - ours[0], potential - potential[0])
    acceleration = oracle.acceleration(q, dq, tau)
    well = np.linalg.cond(M) < 1e5  # elsewhere the answer is decided by rounding on both sides
    assert_close(di.forward_dynamics(robot, q, dq, tau, "rigid")[well], acceleration[well])


@pytest.mark.parametrize("seed", range(10))
def test_energy_balance(seed):
    """dH/dt = tau' dq without friction."""
    robot = di.robot.robot_from_urdf(random_urdf(1000 + seed))
    q, dq, ddq = states(robot, seed)
    h = 1e-5
    ahead, behind = (
        di.dynamics.energy(robot, q + s * h * dq + h * h * ddq / 2, dq + s * h * ddq, "rigid") for s in (1, -1)
    )
    power = np.sum(di.inverse_dynamics(robot, q, dq, ddq, "rigid") * dq, axis=1)
    assert_close((ahead - behind) / (2 * h), power, 1e-6)


@pytest.mark.parametrize("name", di.bundled_names())
def test_bundled_robot_agrees_with_pinocchio_projected_by_the_actuation(name):
    """Tree torques from Pinocchio, brought to the motors by virtual work on the robot's own relations."""
    robot = di.load_robot(name)
    model = tree_model(robot)
    data = model.createData()
    q, dq, ddq = states(robot)
    tree = [x @ robot.follow.T for x in (q, dq, ddq)]
    tree[0] = tree[0] + robot.follow_offset
    torques = np.array([pin.rnea(model, data, *state) for state in zip(*tree, strict=True)])
    joints = torques @ robot.follow
    ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid")
    assert_close(di.joint_torque(robot, ours), joints)
    assert_close(di.dynamics.actuated_torque(robot, joints), ours)
    if robot.geometry is not None:
        assert_close(di.regressor(robot, q, dq, ddq, "rigid") @ di.parameters(robot, "rigid"), ours)


def test_sr400_rows_are_equation_6_of_gautier():
    robot = di.load_robot("sr400")
    model = tree_model(robot)
    data = model.createData()
    rng = np.random.default_rng(3)
    th1, th2, th4, th5, th6, th7 = rng.normal(size=6)
    d1, d2, d4, d5, d6, d7 = rng.normal(size=6)
    a1, a2, a4, a5, a6, a7 = rng.normal(size=6)
    q = np.array([th1, th2, np.pi / 2 - th2 + th7, th4, th5, th6, th7, th2 - th7])
    dq = np.array([d1, d2, d7 - d2, d4, d5, d6, d7, d2 - d7])
    ddq = np.array([a1, a2, a7 - a2, a4, a5, a6, a7, a2 - a7])
    g = dict(zip(range(1, 9), pin.rnea(model, data, q, dq, ddq), strict=True))
    v = robot.value_set()
    am6, dm6 = a6 + a5, d6 + d5
    f5 = v["Fc5"] * np.sign(d5) + v["Fv5"] * d5 + v["Fc6"] * np.sign(d6) + v["Fv6"] * d6
    fm6 = v["Fcm6"] * np.sign(dm6) + v["Fvm6"] * dm6 - v["Fc6"] * np.sign(d6) - v["Fv6"] * d6

    def friction(j, velocity):
        return v[f"Fc{j}"] * np.sign(velocity) + v[f"Fv{j}"] * velocity

    expected = [
        g[1] + v["Ia1"] * a1 + friction(1, d1),
        g[2] - g[3] + g[8] + v["Ia2"] * a2 + friction(2, d2),
        g[4] + v["Ia4"] * a4 + friction(4, d4),
        g[5] - g[6] + v["Ia5"] * a5 + f5,
        g[6] + v["Ia6"] * am6 + fm6,
        g[7] + g[3] - g[8] + v["Ia7"] * a7 + friction(7, d7),
    ]
    state = [[th1, th2, th4, th5, th6, th7], [d1, d2, d4, d5, d6, d7], [a1, a2, a4, a5, a6, a7]]
    assert_close(di.inverse_dynamics(robot, *state, terms="rigid,Ia,Fv,Fc")[0], np.array(expected))
    W = di.regressor(robot, *state)
    assert_close((W @ di.parameters(robot))[0], np.array(expected))


@pytest.mark.parametrize("name", ["puma560", "sr400", "tx40", "cylindrical", "minnesota"])
def test_forward_undoes_inverse_with_friction_and_couplings(name):
    robot = di.load_robot(name)
    q, dq, ddq = states(robot, 5)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    assert_close(di.forward_dynamics(robot, q, dq, tau), ddq)


def test_tool_wrench_is_the_jacobian_transpose():
    text = random_urdf(11, tree=False)
    robot = di.robot.robot_from_urdf(text)
    oracle = PinocchioOracle(text, robot.joint_names)
    q, dq, ddq = states(robot, 2, n=5)
    rng = np.random.default_rng(1)
    force, moment = rng.normal(size=(2, 5, 3))
    loaded = di.inverse_dynamics(robot, q, dq, ddq, "rigid", tool_force=force, tool_moment=moment)
    last = oracle.model.getFrameId(robot.joints[-1].link)
    extra = []
    for x, f, n in zip(q, force, moment, strict=True):
        J = pin.computeFrameJacobian(oracle.model, oracle.data, oracle._own(x), last, pin.LOCAL)
        extra.append((J.T @ np.concatenate([f, n]))[oracle.order])
    assert_close(loaded - di.inverse_dynamics(robot, q, dq, ddq, "rigid"), np.array(extra))


def test_mimic_joint_and_continuous_joint_follow_virtual_work():
    text = random_urdf(4, tree=False).replace('type="revolute"', 'type="continuous"')
    plain = di.robot.robot_from_urdf(text)
    names = plain.joint_names
    assert len(names) >= 3
    copied = text.replace(f'<joint name="{names[2]}"', f'<joint name="{names[2]}"', 1)
    marker = copied.index(f'<joint name="{names[2]}"')
    end = copied.index("</joint>", marker)
    copied = copied[:end] + f'<mimic joint="{names[0]}" multiplier="-2" offset="0.3"/>' + copied[end:]
    coupled = di.robot.robot_from_urdf(copied)
    assert coupled.joint_names == tuple(name for name in names if name != names[2])
    q, dq, ddq = states(coupled, 8)
    full = [np.insert(x, 2, -2 * x[:, 0], axis=1) for x in (q, dq, ddq)]
    full[0][:, 2] += 0.3
    tree = di.inverse_dynamics(plain, *full, terms="rigid")
    expected = np.delete(tree, 2, axis=1)
    expected[:, 0] += -2 * tree[:, 2]
    assert_close(di.inverse_dynamics(coupled, q, dq, ddq, "rigid"), expected)
