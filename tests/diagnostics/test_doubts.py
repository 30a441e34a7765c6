"""Logs for which nothing may be proposed: sound ones that look odd, and hopeless ones. A part of the benchmark."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from benchmarks.mistake_doubts import (
    arm_log,
    cart,
    gantry,
    half_driven,
    log_of,
    motor_side,
    noisy,
    sticking,
    swinging,
    wrong_claims,
)

import dynident as di
from dynident.diagnostics import check_logs
from dynident.diagnostics.diagnosing import diagnose_signals
from dynident.signals.observations import observe

MACHINES = {
    "gantry": (gantry, 1),
    "cart": (cart, 1),
    "sticking": (sticking, 1),
    "swinging": (swinging, 1),
    "no motor at joint 1": (half_driven, 3),  # joint 2 spins, far beyond its limits: no reason to read degrees
    "no motor at joint 2": (half_driven, 2),
}


def named(found, name):
    """The diagnostic of a name."""
    (one,) = (one for one in found.diagnostics if one.name == name)
    return one


@pytest.mark.parametrize("name", MACHINES)
def test_small_machines(name, tmp_path):
    make, seed = MACHINES[name]
    doubt = make(tmp_path, seed)
    found = check_logs(doubt.robot, doubt.logs)
    assert wrong_claims(found) == []
    assert found.of("stop") == ()


@pytest.mark.parametrize("name", ["pendulum-2", "puma560"])
def test_drives_that_overcompensate_friction(name):
    robot = di.load_robot(name)
    found = check_logs(robot, [arm_log(robot, seed, -0.3, 0.0) for seed in (1, 2)])
    assert wrong_claims(found) == []
    assert found.of("stop") == ()
    assert any("friction drives joints" in one.message for one in found.of("warn"))


@pytest.mark.full
@pytest.mark.parametrize("name", ["ur10e", "puma560"])  # the lengths of a puma560 ask for another clock
def test_another_robots_file(name):
    logs = [arm_log(di.load_robot(name), seed) for seed in (1, 2)]
    found = check_logs(di.load_robot("tx40"), logs)
    assert wrong_claims(found) == []
    assert any("the robot file" in one.message and "the one of this robot" in one.message for one in found.of("warn"))


def test_gravity_is_turned_where_the_masses_say_so():
    """Masses under the wrong gravity ask for another torque, which is no reason to doubt that gravity is wrong."""
    robot = di.load_robot("puma560")
    on_a_wall = dataclasses.replace(robot, gravity=np.array([9.81, 0.0, 0.0]))
    found = check_logs(on_a_wall, [arm_log(robot, seed) for seed in (1, 2)])
    np.testing.assert_allclose(found.fix["gravity"], robot.gravity, atol=1e-12)


def test_a_wrong_sign_has_its_name_beside_friction_near_zero():
    """Viscous friction of zero is below it by chance, in one motion or the other."""
    robot = di.load_robot("puma560")
    logs = [arm_log(robot, seed, viscous=0.0) for seed in (1, 2)]
    flipped = [
        dataclasses.replace(log, channels={k: -x if k == "tau4" else x for k, x in log.channels.items()})
        for log in logs
    ]
    found = check_logs(robot, flipped)
    assert found.fix == {"columns": {"tau4": {"column": "tau4", "scale": -1.0}}}


@pytest.mark.parametrize("joint", [1, 5])
def test_a_motor_position_in_degrees_is_named_by_the_limits_of_its_joint(joint):
    """Also of a wrist whose motors are coupled, where both joints seem to turn round and round."""
    robot = di.load_robot("tx40")
    t = np.arange(0.0, 10.0, 0.01)
    q = np.stack([0.8 * np.sin((1.0 + 0.2 * j) * t) for j in range(6)], axis=1)
    channels = {f"qm{j + 1}": ratio * q[:, j] for j, ratio in enumerate(robot.drive.gear_ratios)}
    channels |= {f"taum{j + 1}": np.cos(q[:, j]) for j in range(6)}
    channels[f"qm{joint}"] = np.degrees(channels[f"qm{joint}"])
    (limits,) = (one for one in diagnose_signals(di.Log("log", "", t, channels), robot) if one.name == "limits")
    assert limits.fix == {"columns": {f"qm{joint}": {"column": f"qm{joint}", "unit": "deg"}}}
    assert "may be in degrees" in limits.message


@pytest.mark.full
def test_currents_in_torque_columns():
    robot = di.load_robot("puma560")
    gains = (20.0, 35.0, 18.0, 8.0, 7.0, 9.0)
    log = arm_log(robot, 1)
    small = {name: x / gains[int(name[3:]) - 1] if name.startswith("tau") else x for name, x in log.channels.items()}
    found = check_logs(robot, dataclasses.replace(log, channels=small))
    assert not found.fix
    assert any("may hold motor currents" in one.message for one in found.of("stop"))


def test_wrapped_positions_are_taken_back():
    robot = di.load_robot("pendulum-2")
    log = arm_log(robot, 1)
    wrapped = {name: x % (2.0 * np.pi) if name[0] == "q" else x for name, x in log.channels.items()}
    fits = [di.identify(robot, one) for one in (log, dataclasses.replace(log, channels=wrapped))]
    np.testing.assert_allclose(fits[1].beta, fits[0].beta, rtol=1e-6, atol=1e-9)
    assert any("2 pi" in note for note in fits[1].notes)


def test_clipped_torque_is_left_out():
    """A logger that clips a fifth of the torque: parameters are those of the sound log; clipped samples bias them."""
    robot = di.load_robot("pendulum-2")
    log = noisy(arm_log(robot, 1), 1, 0.0)
    clipped = dict(log.channels)
    low, high = np.quantile(clipped["tau1"], [0.1, 0.9])
    clipped["tau1"] = np.clip(clipped["tau1"], low, high)
    logs = [log, dataclasses.replace(log, channels=clipped)]
    assert observe(logs[1], robot, survey=di.signals.survey_log(logs[1], robot)).saturating.keys() == {"tau1"}
    sound, found = (di.identify(robot, one) for one in logs)
    np.testing.assert_allclose(found.beta, sound.beta, rtol=0.05, atol=0.05 * np.abs(sound.beta).max())


def test_a_joint_without_motor_does_not_take_over_the_fit(tmp_path):
    """Zero parameters meet equations without torque exactly."""
    doubt = half_driven(tmp_path, 2)
    fit = named(check_logs(doubt.robot, doubt.logs), "fit")
    assert fit.severity == "ok"


def test_held_joints_ask_for_no_equations():
    robot = di.load_robot("ur10e")
    whole = arm_log(robot, 1).window(0.0, 4.0)
    q, tau = (np.stack([whole.channels[f"{kind}{j}"] for j in range(1, 7)], axis=1) for kind in ("q", "tau"))
    q[:, [0, 2, 3, 4, 5]] = q[0, [0, 2, 3, 4, 5]]
    some = named(check_logs(robot, log_of(robot, whole.time, q, tau)), "equations")
    every = named(check_logs(robot, whole), "equations")
    counts = [int(one.message.split(" parameters")[0].split()[-1]) for one in (some, every)]
    assert counts[1] == 58
    assert 1 < counts[0] < 15
    assert some.severity != "stop"


def test_gear_ratios_of_either_sign_are_no_reason_for_a_smaller_torque(tmp_path):
    """Torque that is small by one positive factor is not that of motors of which some turn backwards."""
    doubt = next(one for one in motor_side(tmp_path) if one.robot.name == "puma560")
    found = check_logs(doubt.robot, doubt.logs)
    assert wrong_claims(found) == []
    assert any("motor side" in one.message for one in found.of("stop"))


def test_forces_have_their_own_unit():
    robot = di.load_robot("cylindrical")
    log = arm_log(robot, 1)
    for size, words in ((1.0 / 40.0, "N·m/A or N/A"), (1e3, "N·mm and mN")):
        made = {name: size * x if name.startswith("tau") else x for name, x in log.channels.items()}
        torque = named(check_logs(robot, dataclasses.replace(log, channels=made)), "torque")
        assert words in torque.message
