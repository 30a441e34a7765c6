"""Loops that no affine relation closes, in MuJoCo: four-bar, five-bar and a rod between ball joints."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dynident as di
from dynident.plant import ModelOptions, MujocoPlant, SampledMotion, mujoco_model, mujoco_xml
from tests.loops import FIVE_BAR, FOUR_BAR, SPATIAL, load

ROBOTS = {"four-bar": FOUR_BAR, "five-bar": FIVE_BAR, "rssr": SPATIAL}
RUBBED = FOUR_BAR.replace("Fv: {1: 0.1}", "Fv: {1: 0.1, p: 0.4}").replace("Fc: {1: 0.3}", "Fc: {1: 0.3, p: 0.2}")
RUBBED += "elements: [{label: p, velocity: q3 - q1, carries: [Fv, Fc]}]\n"


def without_dry_friction(robot):
    return {name: x for name, x in robot.value_set().items() if name[:2] not in ("Fc", "Fo")}


def let_go(robot, values, start, seconds=0.4):
    """Under torque alone: our integrated equations, and the plant, at the same times."""
    start, n = np.asarray(start, dtype=float), len(start)
    weight, size = di.gravity_torque(robot, [start])[0], np.diag(di.mass_matrix(robot, [start])[0])

    def torque(t):
        return weight + 3.0 * size * np.sin(3.0 * t + np.arange(n))

    def rate(t, state):
        own = di.forward_dynamics(robot, state[:n], state[n:], torque(t), "rigid,Ia,Fv", values)[0]
        return np.append(state[n:], own)

    plant = MujocoPlant(robot, values, torque_limits=np.inf)
    plant.reset(start, torque=torque(0.0))
    for k in range(round(seconds / plant.sample_time)):
        plant.apply_torque(torque((k + 1) * plant.sample_time))
        plant.step()
    truth = plant.truth()
    begin, times = np.append(start, 0.0 * start), truth.time[::50]
    ours = solve_ivp(rate, (0.0, times[-1]), begin, "DOP853", times, rtol=1e-9, atol=1e-10).y.T[:, :n]
    return ours, truth.q[::50], plant


@pytest.mark.parametrize(("name", "start"), [("four-bar", [1.0]), ("five-bar", [1.9, 1.1]), ("rssr", [0.3])])
def test_a_plant_let_go_follows_our_equations(name, start, tmp_path):
    robot = load(ROBOTS[name], tmp_path)
    ours, theirs, plant = let_go(robot, without_dry_friction(robot), start)
    assert np.ptp(ours, axis=0).max() > 0.05  # [rad], it moves
    assert np.abs(ours - theirs).max() < 1e-6  # [rad]
    assert 0.0 < plant.loop_gap < 1e-8  # [m]


def test_friction_at_a_passive_joint_and_a_locked_motor(tmp_path):
    robot = load(RUBBED, tmp_path)
    with_it, without = ({**without_dry_friction(robot), "Fvp": number} for number in (0.4, 0.0))
    ours, theirs, _ = let_go(robot, with_it, [1.0])
    assert np.abs(ours - theirs).max() < 1e-6
    assert np.abs(ours - let_go(robot, without, [1.0])[0]).max() > 1e-3  # it matters
    locked = load(FIVE_BAR, tmp_path).lock(q3=1.2)
    ours, theirs, _ = let_go(locked, without_dry_friction(locked), [1.9])
    assert np.abs(ours - theirs).max() < 1e-6


@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics_projected_by_the_jacobian(name, tmp_path):
    robot = load(ROBOTS[name], tmp_path)
    made = mujoco_model(robot, options=ModelOptions(loops=False, friction=False))
    rng = np.random.default_rng(0)
    q = made.home + rng.uniform(-0.2, 0.2, (12, len(made.home)))
    dq, ddq = rng.normal(size=(2, *q.shape)) * np.array([3.0, 10.0])[:, None, None]
    tree, data, theirs = di.dynamics.tree_motion(robot, q, dq, ddq), made.new_data(), []
    for k, state in enumerate(zip(q, dq, strict=True)):
        made.set_state(data, *state)
        data.qacc[made.dofs] = tree.ddq[k, made.joints]
        mujoco.mj_inverse(made.model, data)
        theirs.append(data.qfrc_inverse[made.dofs] @ tree.G[k][list(made.joints)])
    ours = di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia,Fv")
    assert np.abs(ours - theirs).max() < 1e-8  # [N·m]


def crank_motion(seconds):
    """Round and round, and to and fro, from rest."""
    t = np.linspace(0.0, seconds, round(50 * seconds) + 1)
    begun = np.minimum(1.0, 0.5 * t)
    swing = np.sin(np.outer(t, [1.9, 4.4])) @ [0.9, 0.5]
    return SampledMotion(t, (1.0 + 1.2 * t * begun + begun**3 * swing)[:, None])


def test_simulated_and_identified(tmp_path):
    robot = load(RUBBED, tmp_path)
    run = di.simulate(robot, crank_motion(10.0), relative_noise=0.01)
    assert run.tracking.max() < 0.01  # [rad]
    assert run.loop_gap < 1e-5  # [m]
    estimate = di.identify(robot, run.log)
    off = (estimate.beta - estimate.base.base_values()) / estimate.std
    assert estimate.rank == estimate.base.n
    assert np.abs(off).max() < 5.0
    assert estimate.train.relative < 0.02


def test_computed_torque_knows_the_loop(tmp_path):
    robot = load(FOUR_BAR, tmp_path)
    free = without_dry_friction(robot)
    robot = robot.with_values("free", free)
    run = di.simulate(robot, crank_motion(0.6), controller="computed-torque", encoder=0.0, bandwidth=10.0)
    assert np.ptp(run.truth.q) > 0.1
    assert run.tracking.max() < 1e-3  # [rad]


def test_a_loop_cut_at_a_slide_is_refused(tmp_path):
    robot = load(FOUR_BAR, tmp_path)
    (loop,) = robot.closure.loops
    for joint in ("prismatic", "cylindrical"):
        cut = di.robot.model.dataclasses.replace(loop, joint=joint)
        closure = di.robot.model.dataclasses.replace(robot.closure, loops=(cut,))
        other = di.robot.model.dataclasses.replace(robot, closure=closure)
        with pytest.raises(di.InputError, match=f"loop .*: MuJoCo cannot hold .* cut at a {joint} joint; cut it"):
            mujoco_xml(other)
