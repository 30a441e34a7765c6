"""Springs are found within their stated standard deviations; their torque comes from code that is not the library's."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest

import dynident as di
from tests.signals.made import Fourier, make_log, pinocchio_torque, stamps

T = stamps(30.0, 500.0)
NOISE = np.array([1.0, 2.0, 1.0, 0.2, 0.2, 0.1])  # [N·m]
BEHIND, AHEAD = np.array([-0.05, 0.10, -0.30]), np.array([0.16, 0.02, 0.08])  # ends, in the frames of links 1 and 2 [m]
FORCE, LENGTH, COLUMN, EXPONENT = 600.0, 0.55, 0.8, 1.2  # of the gas spring [N, m, m]
GAS = f"""
springs:
  - joint: 2
    kind: gas
    from: {BEHIND.tolist()}
    to: {AHEAD.tolist()}
    length: {LENGTH}
    gas_column: {COLUMN}
    exponent: {EXPONENT}
"""


def gas_torque(robot, q):
    """Torque against a gas spring on joint 2, by the principle of virtual work on two points in space."""

    def length(angles):
        joint = robot.joints[1]
        c, s, zero = np.cos(angles), np.sin(angles), np.zeros_like(angles)
        turn = np.moveaxis(np.array([[c, -s, zero], [s, c, zero], [zero, zero, zero + 1.0]]), -1, 0)
        own = joint.after.rotation @ AHEAD + joint.after.translation
        ahead = (joint.before.rotation @ turn) @ own + joint.before.translation
        return np.linalg.norm(ahead - BEHIND, axis=1)

    step = 1e-5
    rate = (length(q[:, 1] + step) - length(q[:, 1] - step)) / (2.0 * step)
    pressed = COLUMN / (COLUMN - (LENGTH - length(q[:, 1])))
    return -FORCE * pressed**EXPONENT * rate


@pytest.fixture(scope="module")
def motion():
    """A motion of the puma560 and its torque by Pinocchio, drives by hand."""
    q, dq, ddq = Fourier.random(6, 1)(T)
    return q, pinocchio_torque(di.load_robot("puma560"), q, dq, ddq)


def with_springs(tmp_path, text, base="puma560"):
    """A robot that declares springs."""
    file = tmp_path / "sprung.yaml"
    file.write_text(f"base: {base}\n{text}")
    return di.load_robot(file)


def fitted(robot, q, tau, seed, check="stop"):
    """A fit to noisy torque."""
    noise = (NOISE if tau.shape[1] == 6 else np.array([0.3, 0.6, 0.2])) * np.random.default_rng(seed).normal(
        size=tau.shape
    )
    return di.identify(robot, make_log(robot, T, q, tau + noise, source=f"seed {seed}"), check=check)


def assert_calibrated(fits, names):
    """Errors over stated standard deviations of all parameters of all fits, and of some of them."""
    off = np.array([(fit.beta - fit.base.base_values()) / fit.std for fit in fits])
    assert 0.85 < np.sqrt(np.mean(off**2)) < 1.2
    own = [fits[0].base.names.index(name) for name in names]
    assert np.abs(off[:, own]).max() < 3.5
    for fit in fits:
        assert (np.abs(fit.std[own]) < 0.1 * np.abs(fit.beta[own])).all()


def test_the_force_of_a_gas_spring_is_found(motion, tmp_path):
    robot = with_springs(tmp_path, GAS)
    q, tau = motion
    pull = gas_torque(robot, q)
    sprung = tau + np.eye(6)[1] * pull[:, None]
    truth = robot.with_values("truth", {**di.load_robot("puma560").value_set(), "Fg2": FORCE})
    fits = [fitted(truth, q, sprung, seed) for seed in range(5)]
    assert_calibrated(fits, ["Fg2"])


ARM = """<mujoco model="sprung"><compiler angle="radian"/><worldbody>
<body name="turret"><joint name="yaw" axis="0 0 1" armature="0.4" damping="1.5" stiffness="{yaw}" springref="0.3"/>
<inertial mass="4" pos="0 0 0.1" fullinertia="0.03 0.03 0.02 0.001 0 0"/>
<body name="arm" pos="0 0 0.3"><joint name="shoulder" axis="0 1 0" armature="0.5" damping="2" stiffness="{shoulder}"
springref="-0.5"/><inertial mass="5" pos="0.2 0.01 0.02" fullinertia="0.02 0.12 0.12 0.001 0.002 0.001"/>
<body name="fore" pos="0.45 0 0"><joint name="elbow" axis="0 1 0" armature="0.2" damping="1" stiffness="{elbow}"/>
<inertial mass="2.5" pos="0.15 -0.01 0.03" fullinertia="0.01 0.04 0.04 0.001 0.001 0.001"/></body></body></body>
</worldbody></mujoco>"""
DRY = np.array([2.0, 3.0, 1.0])  # [N·m]
STIFFNESS = {"yaw": 12.0, "shoulder": 60.0, "elbow": 8.0}


def mujoco_torque(text, q, dq, ddq):
    """MuJoCo's inverse dynamics, passive force of the springs included, and dry friction by hand."""
    model = mujoco.MjModel.from_xml_string(text)
    data, tau = mujoco.MjData(model), np.zeros_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        tau[k] = data.qfrc_inverse
    return tau + DRY * np.tanh(dq / 0.02)


def test_springs_of_an_mjcf_are_known_and_can_be_left_open(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM.format(**STIFFNESS))
    (tmp_path / "bare.xml").write_text(ARM.format(yaw=0, shoulder=0, elbow=0))
    motion = Fourier.random(3, 4)(T)
    tau = mujoco_torque(ARM.format(**STIFFNESS), *motion)
    truth = {"Fc1": 2.0, "Fc2": 3.0, "Fc3": 1.0}

    known = di.load_robot(tmp_path / "arm.xml")
    dry = DRY * np.tanh(motion[1] / 0.02)
    np.testing.assert_allclose(di.inverse_dynamics(known, *motion, "rigid,Ia,Fv,spring"), tau - dry, atol=1e-10)
    fit = fitted(known, motion[0], tau, 0)
    assert not any(name.startswith("K") for name in fit.base.names)

    left_open = "springs:\n  - {joint: yaw, rest: 0.3}\n  - {joint: shoulder}\n"
    robot = with_springs(tmp_path, left_open, base="arm.xml")
    # The preload is one number with the offset, which is zero: both are minus stiffness times springref.
    values = {**known.value_set(), **truth, "Kp2": 0.5 * STIFFNESS["shoulder"]}
    fits = [fitted(robot.with_values("truth", values), motion[0], tau, seed) for seed in range(5)]
    assert_calibrated(fits, ["Ks1", "Ks2"])

    # Nobody declares any: those of yaw and shoulder are most of what is missing.
    bare = di.load_robot(tmp_path / "bare.xml")
    found = fitted(bare, motion[0], tau, 0, check="off")
    assert any("element 2: its torque grows with its position" in words for words in found.warnings)
    own = found.base.names.index("stiffness_2")
    assert abs(found.beta[own] - STIFFNESS["shoulder"]) < 4.0 * found.std[own]


@pytest.mark.full
def test_no_spring_is_found_where_there_is_none(motion):
    robot = di.load_robot("puma560")
    fit = fitted(robot, *motion, 0)
    assert not any("spring" in words for words in fit.warnings)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_no_spring_is_found_in_other_motions_frictions_and_tilts(seed):
    """Every second arm has friction per load and Stribeck friction, every fourth stands aslant."""
    robot, rng = di.load_robot("puma560"), np.random.default_rng(seed)
    q, dq, ddq = Fourier.random(6, 100 + seed)(T)
    aslant = dataclasses.replace(robot, gravity=np.array([*rng.normal(0.0, 0.3, 2), -9.8]))
    tau = pinocchio_torque(aslant if seed % 4 == 3 else robot, q, dq, ddq)
    if seed % 2:
        load = di.inverse_dynamics(robot, q, dq, ddq, "rigid", robot.value_set())
        tau = tau + 0.08 * np.abs(load) * np.tanh(dq / 0.02)
        tau += np.array([5.0, 5.0, 5.0, 0.5, 0.5, 0.5]) * np.exp(-((dq / 0.2) ** 2)) * np.tanh(dq / 0.02)
    assert not any("spring" in words for words in fitted(robot, q, tau, seed).warnings)
