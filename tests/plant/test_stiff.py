"""Light links with stiff damping, as hands have: physics, controllers, identification and what is refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import dynident as di
from dynident.plant import PD, MujocoPlant, OpenLoop, SampledMotion, UnstableError, record
from dynident.plant.time_step import LONGEST_STEP, damping_rate

LINK = '<inertial mass="{mass}" pos="0.002 {x} -0.003" diaginertia="{big} {small} {big}"/>'


def finger(name, place):
    """Knuckle, middle and tip: a few grams each."""
    links = [
        LINK.format(mass=0.05, x=0.02, big=3e-5, small=2e-5),
        LINK.format(mass=0.03, x=0.015, big=1.2e-5, small=8e-6),
        LINK.format(mass=0.015, x=0.012, big=5e-6, small=3e-6),
    ]
    text = ""
    for k, (link, axis) in enumerate(zip(links, ("0 0 1", "1 0 0.1", "1 0 0"), strict=True)):
        where = place if k == 0 else "0 0.04 0.001"
        text += f'<body name="{name}{k}" pos="{where}"><joint name="{name}{k}" axis="{axis}"/>{link}'
    return text + "</body>" * 3


HAND = f"""
<mujoco model="hand">
  <compiler angle="radian"/><option integrator="implicitfast"/>
  <default><joint damping="DAMPING" frictionloss="DRY" range="-1.2 1.2"/></default>
  <worldbody><body name="palm">{finger("index", "0.03 0.08 0")}{finger("thumb", "-0.04 0.03 0.01")}</body></worldbody>
</mujoco>
"""


def hand_file(folder, damping=0.03, dry=0.0):
    path = folder / "hand.xml"
    path.write_text(HAND.replace("DAMPING", repr(damping)).replace("DRY", repr(dry)))
    return path


def motion_for(robot, duration=0.5, size=0.15):
    t = np.arange(0.0, duration + 0.005, 0.01)
    rng = np.random.default_rng(1)
    waves = [np.sin(2.0 * np.pi * f * t[:, None] + rng.uniform(0.0, 6.0, 6)) for f in (0.7, 1.3, 2.1, 2.9)]
    return SampledMotion(t, size * sum(waves))


@pytest.mark.parametrize("damping", [0.03, 0.1])
def test_its_physics_are_those_of_mujoco_at_tiny_steps(damping, tmp_path):
    """The same torque, in MuJoCo's implicit integrator at steps of 4 and 2 microseconds, carried on to none at all."""
    path = hand_file(tmp_path, damping)
    robot = di.load_robot(path)

    def torque(time):
        return damping * 5.0 * np.sin(40.0 * time + np.arange(6)) * np.array([1.0, 1.0, 0.6, 1.0, 1.0, 0.6])

    plant = MujocoPlant(robot)
    record(plant, OpenLoop(torque), 0.05, start=(np.zeros(6), None))
    truth = plant.truth()
    assert np.ptp(truth.q, axis=0).min() > 0.03

    def oracle(parts):
        model = mujoco.MjModel.from_xml_path(str(path))
        model.opt.timestep = 1e-3 / parts
        data = mujoco.MjData(model)
        found = [np.zeros(6)]
        for before, after in zip(truth.tau[:-1], truth.tau[1:], strict=True):
            for part in range(parts):
                data.qfrc_applied[:] = before + (part + 0.5) / parts * (after - before)
                mujoco.mj_step(model, data)
            found.append(np.array(data.qpos))
        return np.array(found)

    exact = 2.0 * oracle(500) - oracle(250)  # the implicit integrator is of order one
    assert np.abs(truth.q - exact).max() < 1e-5


def test_every_controller_follows(tmp_path):
    robot = di.load_robot(hand_file(tmp_path, dry=0.001))
    motion = motion_for(robot)
    for controller, within in {"feedforward": 2e-3, "computed-torque": 2e-3, "pd": 0.5}.items():
        run = di.simulate(robot, motion, controller=controller)
        assert run.tracking.max() < within, controller
    # The controller may have other values than the machine has.
    values = {name: x * (1.3 if name[:2] == "Fv" else 1.0) for name, x in robot.value_set().items()}
    for controller in ("feedforward", "computed-torque"):
        assert di.simulate(robot, motion, controller=controller, values=values).tracking.max() < 0.15


def test_a_joint_that_friction_overdamps_comes_back_with_the_bandwidth(tmp_path):
    """Pushed aside, and held by springs: the last part of the way shrinks by exp(-w t)."""
    robot = di.load_robot(hand_file(tmp_path))
    rest = SampledMotion(np.arange(0.0, 0.31, 0.01), np.zeros((31, 6)))
    plant = MujocoPlant(robot, {**robot.value_set()})
    record(plant, PD(robot, rest, bandwidth=30.0), 0.15, start=(np.full(6, 0.05), None))
    away = np.abs(plant.truth().q - plant.truth().q[-1])[[50, 80]]
    weight = np.abs(plant.truth().q[-1]).max()
    assert weight < 0.05
    rates = np.log(away[0] / away[1]) / 0.03
    assert (rates > 0.6 * 30.0).all()
    assert (rates < 1.7 * 30.0).all()


def test_it_is_identified_within_its_deviations(tmp_path):
    robot = di.load_robot(hand_file(tmp_path, dry=0.001))
    run = di.simulate(robot, motion_for(robot, 6.0), seed=1)
    fit = di.identify(robot, run.log)
    # Noise of positions looks like a millisecond of delay here, and that like inertia of -25 standard deviations.
    assert fit.signals.delay == 0.0
    truth = fit.base.base_values()
    apart = (fit.beta - truth) / np.sqrt(np.diag(fit.covariance))
    assert np.sqrt(np.mean(apart**2)) < 1.3
    assert np.abs(apart).max() < 6.0


class TestSteps:
    def test_they_follow_damping_and_inertia(self, tmp_path):
        """The quickest rate is that of M^-1 D, here by dynident's own mass matrix."""
        robot = di.load_robot(hand_file(tmp_path))
        plant = MujocoPlant(robot)
        rate, joint = damping_rate(plant._bare, np.full(6, 0.03))
        q = np.random.default_rng(2).uniform(-np.pi, np.pi, (200, 6))
        own = np.linalg.eigvals(0.03 * np.linalg.inv(di.mass_matrix(robot, q))).real.max()
        assert rate == pytest.approx(own, rel=0.1)
        assert joint in ("index2", "thumb2")
        assert 0.75 < plant._step * rate < 1.51
        assert MujocoPlant(di.load_robot("puma560"))._step == LONGEST_STEP

    def test_one_that_is_too_long_is_refused(self, tmp_path):
        robot = di.load_robot(hand_file(tmp_path))
        with pytest.raises(
            UnstableError, match=r"friction of joint (index2|thumb2) .* allow steps of .* rotor inertia"
        ):
            MujocoPlant(robot, step=5e-4)

    def test_so_is_damping_that_needs_none_at_all(self, tmp_path):
        robot = di.load_robot(hand_file(tmp_path, damping=30.0))
        with pytest.raises(UnstableError, match=r"friction of joint (index2|thumb2) .* lower it, or give the machine"):
            MujocoPlant(robot)


class TestLostMotions:
    def test_a_feedback_too_weak_to_follow(self, tmp_path):
        robot = di.load_robot(hand_file(tmp_path, dry=0.001))
        with pytest.raises(
            UnstableError, match=r"lost its motion at t = .* s: joint \w+ is .* rad away; raise the"
        ) as raised:
            di.simulate(robot, motion_for(robot), controller="pd", bandwidth=0.5)
        assert raised.value.joint in robot.joint_names
        assert 0.0 < raised.value.time < 0.5

    def test_a_loop_too_fast_for_its_samples(self, tmp_path):
        robot = di.load_robot(hand_file(tmp_path, dry=0.001))
        with pytest.raises(UnstableError, match=r"t = .* s: joint \w+ moves at .* rad/s .*lower the"):
            di.simulate(robot, motion_for(robot), controller="pd", bandwidth=3000.0)

    def test_a_machine_that_differs_and_follows_is_no_error(self, tmp_path):
        robot = di.load_robot(hand_file(tmp_path, dry=0.001))
        lighter = {name: x * (1.0 if name[0] in "IF" else 0.5) for name, x in robot.value_set().items()}
        assert di.simulate(robot, motion_for(robot), values=lighter).tracking.max() < 0.2
