"""Gravity moments from sinusoids of one joint at a time (Abhishek et al.): exact at any period, honest about noise."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.plant import MujocoPlant
from tests.loops import FIVE_BAR, five_bar_oracle, load
from tests.robots import tree_model
from tests.strangers import STRANGERS, calibration

PERIODS = (5.0, 10.0, 30.0, 60.0, 120.0)  # [s]
PLANAR = """
name: heavy-planar
convention: dh
lengths: {l1: 0.7, l2: 0.5}
gravity: [0, -9.81, 0]
joints: [{name: shoulder, a: l1}, {name: elbow, a: l2}, {name: wrist}]
parameters:
  machine:
    links:
      1: {mass: 34, com: [-0.3, 0.02, 0], inertia: [0.4, 0, 0, 1.8, 0, 1.9]}
      2: {mass: 21, com: [-0.2, -0.05, 0], inertia: [0.3, 0, 0, 0.9, 0, 1.0]}
      3: {mass: 7, com: [0.15, 0.06, 0], inertia: [0.06, 0, 0, 0.1, 0, 0.12]}
    Ia: {1: 4, 2: 2, 3: 0.5}
    Fv: {1: 55, 2: 30, 3: 9}
    Fc: {1: 38, 2: 22, 3: 7}
"""
FRICTION = ("Fv", "Fc")


@pytest.fixture(scope="module")
def planar(tmp_path_factory):
    return load(PLANAR, tmp_path_factory.mktemp("planar"))


def oscillation(robot, joint, pose, amplitude, period, *, cycles=1.5, samples=900):
    """Times, positions, velocities and accelerations; `samples` in a period."""
    t = np.arange(0.0, cycles * period, period / samples)
    w = 2.0 * np.pi / period
    q, dq, ddq = np.tile(np.asarray(pose, float), (len(t), 1)), *np.zeros((2, len(t), len(pose)))
    q[:, joint] += amplitude * np.sin(w * t)
    dq[:, joint], ddq[:, joint] = amplitude * w * np.cos(w * t), -amplitude * w**2 * np.sin(w * t)
    return t, q, dq, ddq


def torque(robot, values, q, dq, ddq):
    """Of a serial arm by Pinocchio's inverse dynamics, rotors and friction by hand."""
    model = tree_model(robot.with_values("machine", values))
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    rotor, viscous, coulomb = (
        np.array([values.get(f"{symbol}{j + 1}", 0.0) for j in range(model.nv)]) for symbol in ("Ia", *FRICTION)
    )
    return tau + rotor * ddq + viscous * dq + coulomb * np.sign(dq)


def as_log(robot, label, t, q, tau):
    channels = {}
    for kind, values in (("q", q), ("tau", tau)):
        channels |= {f"{kind}{name[1:]}": x for name, x in zip(robot.position_names, values.T, strict=True)}
    return di.Log(label, label, t, channels)


def sinusoids(robot, values, pose, period, amplitude=np.pi / 3, noise=0.0, count=0.0, seed=0):
    rng = np.random.default_rng(seed)
    logs = []
    for j in range(len(pose)):
        t, *motion = oscillation(robot, j, pose, amplitude, period)
        tau = torque(robot, values, *motion) + noise * rng.normal(size=motion[0].shape)
        q = np.round(motion[0] / count) * count if count else motion[0]
        logs.append(as_log(robot, f"joint {j + 1}", t, q, tau))
    return logs


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("friction", [False, True])
def test_exact_without_noise_at_any_period(planar, period, friction):
    values = {k: x for k, x in planar.value_set().items() if friction or not k.startswith(FRICTION)}
    pose = [0.7, -0.5, 0.2]
    found = di.experiments.gravity_from_logs(planar, sinusoids(planar, values, pose, period))
    np.testing.assert_allclose(found.values, found.base.values(values), atol=1e-6)
    model = tree_model(planar)
    for one in found.runs:
        j = one.run.joint
        mass = pin.crba(model, model.createData(), np.array(pose) * (np.arange(3) != j))
        own = mass[j, j] + values[f"Ia{j + 1}"]
        assert one.coefficients[one.names.index("inertia")] == pytest.approx(own, rel=1e-3)
    assert sum("its inertia was fitted along" in note for note in found.notes) == 3


@pytest.mark.parametrize("period", [5.0, 120.0])
@pytest.mark.parametrize("name", ["skewed_arm", "pinocchio_arm"])
def test_exact_on_arms_with_any_axes(name, period):
    stranger = STRANGERS[name]()
    robot = stranger.described
    pose = np.linspace(0.3, 0.9, len(robot.joints)) * (-1.0) ** np.arange(len(robot.joints))
    found = di.experiments.gravity_from_logs(robot, sinusoids(robot, stranger.truth, pose, period))
    assert found.estimate.determined.all()
    np.testing.assert_allclose(found.values, found.base.values(stranger.truth), atol=1e-5)


@cache
def _clean(robot, period):
    return sinusoids(robot, robot.value_set(), [0.7, -0.5, 0.2], period)


@pytest.mark.parametrize(("noise", "count"), [(1.0, 2.0 * np.pi / 2**17), (0.05, 2.0 * np.pi / 2**13)])
@pytest.mark.parametrize("period", [5.0, 30.0, 120.0])
def test_with_noise_within_what_is_stated(planar, period, noise, count):
    """Fine encoders and noisy torque, and the other way round, where noise of acceleration would draw inertia down."""
    rng, total = np.random.default_rng(int(period)), None
    for _ in range(8):
        logs = []
        for log in _clean(planar, period):
            q, tau = log.array("q", planar), log.array("tau", planar)
            shift = rng.uniform(-0.5, 0.5, 3) * count
            q = np.round((q + shift) / count) * count - shift
            logs.append(as_log(planar, log.label, log.time, q, tau + noise * rng.normal(size=tau.shape)))
        found = di.experiments.gravity_from_logs(planar, logs)
        one = calibration(found.names, found.values, found.std, found.base.values())
        total = one if total is None else total + one
    assert total.rms < 1.3, str(total)
    assert abs(total.worst[1]) < 6.0


def test_weight_of_a_slide():
    """By hand: F = (m + Ia) q'' - m g + friction, with z downwards."""
    stranger = STRANGERS["scara"]()
    robot, true = stranger.described, stranger.truth
    carried = true["M3"] + true["M4"]
    for period in (5.0, 120.0):
        t, q, dq, ddq = oscillation(robot, 2, [0.3, -0.4, 0.12, 0.2], 0.1, period)
        tau = np.zeros_like(q)
        tau[:, 2] = (carried + true["Ia3"]) * ddq[:, 2] - 9.81 * carried
        tau[:, 2] += true["Fv3"] * dq[:, 2] + true["Fc3"] * np.sign(dq[:, 2])
        found = di.experiments.gravity_from_logs(robot, [as_log(robot, "lift", t, q, tau)])
        assert found.names == ("MR3",)
        assert found["MR3"] == pytest.approx(carried, abs=1e-8)
        assert any("joint lift: not at constant velocity" in note and " kg)" in note for note in found.notes)


@pytest.mark.full
def test_inertia_that_changes_with_the_pose_of_a_loop(tmp_path):
    """Five-bar: a motor that moves alone bends the loop; torque by Lagrange's equations in SymPy."""
    robot = load(FIVE_BAR, tmp_path)
    oracle, home = five_bar_oracle(robot), np.array(robot.closure.reference[list(robot.moving)])
    logs = []
    for j in (0, 1):
        for other in (-0.4, 0.0, 0.4):
            pose = home + other * (np.arange(2) != j)
            t, *motion = oscillation(robot, j, pose, 0.7, 5.0, cycles=1.2, samples=200)
            logs.append(as_log(robot, f"{j} at {other}", t, motion[0], oracle.torque(*motion)))
    found = di.experiments.gravity_from_logs(robot, logs, order=2)
    assert found.estimate.determined.all()
    np.testing.assert_allclose(found.values, found.base.values(), atol=2e-3)


def test_small_amplitudes_look_alike_and_the_deviations_say_so(planar):
    wide, narrow = (
        di.experiments.gravity_from_logs(
            planar, sinusoids(planar, planar.value_set(), [0.7, -0.5, 0.2], 30.0, a, noise=0.5)
        )
        for a in (1.2, 0.4)
    )
    assert (narrow.std > 10.0 * wide.std).all()
    assert np.abs((narrow.values - narrow.base.values()) / narrow.std).max() < 4.0


def test_friction_that_is_described_too_large_drives_no_sweep():
    """Viscous friction of the measured velocity, taken off by the controller, would make this one run away."""
    robot = di.load_robot("pendulum-1")
    described = robot.with_values("sticky", {**robot.value_set("plant"), "Fv1": 60.0})
    plant = MujocoPlant(described, robot.value_set("plant"), sample_time=4e-3, step=2e-3)
    found = di.experiments.gravity_moments(plant, sweep_velocity=0.8)
    np.testing.assert_allclose(found.values, found.base.values("plant"), atol=2e-3)
