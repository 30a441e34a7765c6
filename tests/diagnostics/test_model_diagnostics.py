"""What the model says beside columns: agreement, excitation, bias, size of torque. Truth by Pinocchio."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.diagnostics.excitation import proposed_motion
from dynident.diagnostics.trial import Trial, trial_samples
from dynident.estimate.candidates import BASIC_TERMS
from dynident.identifiability.base import base_parameters
from tests.robots import tree_model
from tests.signals.made import Fourier, make_log, stamps

T = stamps(30.0, 200.0)


@pytest.fixture(scope="module")
def robot() -> di.Robot:
    return di.load_robot("puma560")


def friction(dq: np.ndarray) -> np.ndarray:
    return 3.0 * dq + 2.0 * np.tanh(dq / 0.02)


def torques(robot: di.Robot, motion, load: float = 0.0) -> np.ndarray:
    """Inverse dynamics by Pinocchio, with a load of so many kilograms at the last joint, and friction."""
    model = tree_model(robot)
    model.inertias[len(model.inertias) - 1] += pin.Inertia.FromSphere(max(load, 1e-9), 0.05)
    model.gravity.linear[:] = robot.gravity
    data = model.createData()
    rigid = np.array([pin.rnea(model, data, *state) for state in zip(*motion, strict=True)])
    return rigid + friction(motion[1])


def made(robot: di.Robot, seed: int, *, load: float = 0.0, noise: float = 0.0, motion=None, label: str = "") -> di.Log:
    rng = np.random.default_rng(seed)
    q, dq, ddq = motion or Fourier.random(len(robot.joint_names), seed)(T)
    tau = torques(robot, (q, dq, ddq), load)
    tau = tau + 0.01 * np.abs(tau).max(0) * rng.standard_normal(tau.shape)
    log = make_log(robot, T, q + noise * rng.standard_normal(q.shape), tau)
    return dataclasses.replace(log, label=label or f"log{seed}", digest=f"made {seed} {load} {noise}")


def diagnostic(diagnosis: di.Diagnosis, name: str) -> di.diagnostics.Diagnostic:
    (one,) = (item for item in diagnosis.diagnostics if item.name == name)
    return one


def test_sound_logs(robot):
    found = di.check_logs(robot, [made(robot, 1), made(robot, 2)])
    assert {one.name for one in found.diagnostics if one.severity != "ok"} == {"limits"}  # the motion knows none


def test_a_load_in_one_log(robot):
    logs = [made(robot, 1), made(robot, 2, load=3.0, label="loaded"), made(robot, 3)]
    one = diagnostic(di.check_logs(robot, logs), "agreement")
    assert one.severity == "stop"
    assert one.message.startswith("loaded disagrees with the other logs")


def test_noise_of_positions_that_biases(robot):
    slow = Fourier.random(6, 4, velocity=0.3)(T)
    quiet, noisy = (made(robot, 4, motion=slow, noise=x) for x in (0.0, 3e-3))
    wide = di.SignalOptions(band=18.0 * 0.5)  # the motion ends at 0.5 Hz
    assert diagnostic(di.check_logs(robot, quiet, signals=wide), "bias").severity == "ok"
    narrow = diagnostic(di.check_logs(robot, noisy), "bias")  # the band ends before noise can do harm
    assert narrow.severity == "warn"
    assert "Hz that the motion could use" in narrow.message
    noisy = diagnostic(di.check_logs(robot, noisy, signals=wide), "bias")
    assert noisy.severity == "warn"
    assert "biases the estimate" in noisy.message


def test_joints_that_move_alike_and_one_way(robot):
    q, dq, ddq = (np.repeat(x[:, :1], 6, axis=1) for x in Fourier.random(6, 5)(T))
    found = di.check_logs(robot, made(robot, 5, motion=(q, dq, ddq)))
    assert diagnostic(found, "independence").severity == "warn"
    ramp = [x.copy() for x in Fourier.random(6, 6)(T)]
    ramp[0][:, 2], ramp[1][:, 2], ramp[2][:, 2] = 0.1 * T, 0.1, 0.0
    one = diagnostic(di.check_logs(robot, made(robot, 6, motion=ramp)), "directions")
    assert one.severity == "warn"
    assert "joint3" in one.message


def test_a_richer_motion_is_proposed(robot):
    """One slow move from here to there tells little, and less than a Fourier motion within the limits."""
    t = T / T[-1]
    law = 10 * t**3 - 15 * t**4 + 6 * t**5
    slope, bend = np.gradient(law, T), np.gradient(np.gradient(law, T), T)
    reach = np.linspace(0.4, 1.0, 6)
    poor = tuple(x[:, None] * reach for x in (law, slope, bend))
    log = made(robot, 7, motion=poor)
    trial = Trial(base_parameters(robot, BASIC_TERMS))
    moments = trial_samples([di.observe(log, robot)])
    left = trial.fit(trial.rows_as_logged(moments))
    condition = diagnostic(di.check_logs(robot, log), "condition")
    assert condition.severity == "warn"
    assert "5 harmonics within the limits reach about" in condition.message
    printed = float(condition.message.split("condition of the equations is ")[1].split(" ")[0])
    assert proposed_motion(trial, moments, left)[0] < 0.7 * printed


def test_too_little_motion(robot):
    log = made(robot, 8)
    assert diagnostic(di.check_logs(robot, log.window(0.0, 20.0)), "equations").severity == "ok"
    short = di.check_logs(robot, log.window(0.0, 1.0))
    assert diagnostic(short, "equations").severity == "warn"
    assert not short.of("stop")  # so little cannot make sure of anything
    one = diagnostic(di.check_logs(robot, log.window(0.0, 0.35)), "equations")
    assert one.severity == "stop"
    assert "longer logs" in one.message


def test_torque_in_the_wrong_unit(robot):
    log = made(robot, 9)
    small = dataclasses.replace(
        log, channels={name: 1e3 * x if name.startswith("tau") else x for name, x in log.channels.items()}
    )
    one = diagnostic(di.check_logs(robot, small), "torque")
    assert one.severity == "stop"
    assert "N·mm" in one.message
    assert one.fix["columns"]["tau3"] == {"column": "tau3", "unit": "mNm"}


def test_trajectory_12_of_abhishek():
    """All joints alike and one way: raw condition 310, which the check tells, with a better motion beside it."""
    robot = di.load_robot("kr5-planar")
    t = stamps(5.0, 100.0)
    w, angle = 2.0 * np.pi / 5.0, np.pi / 3.0
    law = (angle / 5.0 * (t - np.sin(w * t) / w), angle / 5.0 * (1.0 - np.cos(w * t)), angle / 5.0 * w * np.sin(w * t))
    q, dq, ddq = (np.tile(x[:, None], (1, 3)) for x in law)
    log = make_log(robot, t, q, di.inverse_dynamics(robot, q, dq, ddq, "rigid") + friction(dq))
    found = di.check_logs(robot, log)
    assert diagnostic(found, "directions").severity == "warn"
    assert diagnostic(found, "independence").severity == "warn"
    printed = diagnostic(found, "condition").message
    # The ends, which filters need, are missing.
    assert 250.0 < float(printed.split("unscaled ")[1].split(")")[0]) < 500.0
    assert float(printed.split("reach about ")[1].split("(")[1].split(")")[0]) < 60.0


def slow_motion(moving: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sines of 0.03 to 0.08 Hz over a minute, of the first so many joints; the others stand."""
    t = stamps(60.0, 100.0)
    rng = np.random.default_rng(1)
    size, w, phase = rng.uniform(0.3, 0.8, 6), 2 * np.pi * rng.uniform(0.03, 0.08, 6), rng.uniform(0, 6, 6)
    size[moving:] = 0.0
    x = w * t[:, None] + phase
    return size * np.sin(x), size * w * np.cos(x), -size * w**2 * np.sin(x)


def slow_log(robot: di.Robot, moving: int = 6) -> di.Log:
    """A sound log whose dry friction changes its sign at once, as that of real gears does."""
    q, dq, ddq = slow_motion(moving)
    tau = torques(robot, (q, dq, ddq)) - friction(dq) + 3.0 * dq + 5.0 * np.sign(dq)
    noise = 0.02 * np.abs(tau).mean(0) * np.random.default_rng(2).standard_normal(tau.shape)
    return make_log(robot, stamps(60.0, 100.0), q, tau + noise)


def test_dry_friction_of_slow_motion_is_no_scale(robot):
    found = di.check_logs(robot, slow_log(robot))
    assert [one.message for one in found.of("stop")] == []
    assert diagnostic(found, "scale").severity == diagnostic(found, "clock").severity == "ok"


def test_joints_at_rest_have_no_delay(robot):
    for moving in (1, 2):
        found = di.check_logs(robot, slow_log(robot, moving))
        assert [one.message for one in found.diagnostics if one.name == "delay" and "others" in one.message] == []


def changed(log: di.Log, change) -> di.Log:
    """A log with its torques changed by joint number."""
    new = {name: change(int(name[3:]), x) if name.startswith("tau") else x for name, x in log.channels.items()}
    return dataclasses.replace(log, channels=new)


def test_torque_that_has_nothing_to_do_with_the_motion(robot):
    rng = np.random.default_rng(0)
    found = di.check_logs(robot, changed(made(robot, 10), lambda joint, x: rng.standard_normal(len(x))))
    assert diagnostic(found, "fit").severity == "stop"
    assert not found.fix


def test_signs_of_a_robot_without_friction():
    """Nothing but its own masses tells a frictionless arm from one with all torques reversed."""
    robot = di.load_robot("pendulum-2")
    t = stamps(20.0, 200.0)
    q, dq, ddq = Fourier.random(2, 3)(t)
    log = make_log(robot, t, q, di.inverse_dynamics(robot, q, dq, ddq, "rigid"))
    assert not di.check_logs(robot, log).of("stop")
    for wrong in ((1, 2), (1,), (2,)):
        found = di.check_logs(robot, changed(log, lambda joint, x, wrong=wrong: -x if joint in wrong else x))
        assert found.severity == "stop"
        rules = found.fix["columns"]
        sizes = [rules[f"tau{j}"].get("scale") if isinstance(rules.get(f"tau{j}"), dict) else 1.0 for j in (1, 2)]
        assert sizes == [-1.0 if j in wrong else 1.0 for j in (1, 2)], (wrong, rules)


def test_motor_shafts_without_gears(robot):
    log = made(robot, 11)
    shafts = {f"qm{name[1:]}": 50.0 * x for name, x in log.channels.items() if name.startswith("q")}
    torque = {name.replace("tau", "taum"): x for name, x in log.channels.items() if name.startswith("tau")}
    plain = dataclasses.replace(robot, drive=dataclasses.replace(robot.drive, gear_ratios=np.ones(6)))
    one = diagnostic(di.check_logs(plain, dataclasses.replace(log, channels=shafts | torque)), "gears")
    assert one.severity == "stop"
    assert "gear_ratios" in one.message
