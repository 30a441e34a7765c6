from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm

import dynident as di
from dynident.errors import InputError
from dynident.plant import (
    PD,
    Breakaway,
    Motors,
    MujocoPlant,
    OpenLoop,
    Payload,
    SampledMotion,
    UnstableError,
    VoltageSteps,
    Warming,
    measure,
    mujoco_xml,
    record,
)


@pytest.fixture(scope="module")
def pendulum():
    """One rod that turns about an axis along gravity, so that nothing but friction holds it."""
    robot = di.load_robot("pendulum-1")
    return di.robot.model.dataclasses.replace(robot, gravity=np.array([0.0, 0.0, -9.81]))


def hold(plant, torque, seconds=0.5):
    for _ in range(round(seconds / plant.sample_time)):
        plant.apply_torque(np.atleast_1d(torque))
        plant.step()
    return plant.truth()


class TestFriction:
    def test_what_friction_can_hold_does_not_move(self, pendulum):
        plant = MujocoPlant(pendulum, {**pendulum.value_set(), "Fc1": 2.0})
        plant.reset([0.4])
        truth = hold(plant, 1.9)
        assert np.abs(truth.q - 0.4).max() < 1e-6  # [rad]
        plant.reset([0.4])
        truth = hold(plant, 2.1)
        inertia = di.mass_matrix(pendulum, [[0.0]])[0, 0, 0]
        assert truth.dq[-1, 0] == pytest.approx(0.1 * 0.5 / inertia, rel=1e-3)

    def test_breakaway_holds_more_than_it_brakes(self, pendulum):
        values = {**pendulum.value_set(), "Fc1": 2.0}
        plant = MujocoPlant(pendulum, values, breakaway=Breakaway(1.5, 0.02))
        plant.reset([0.4])
        assert np.abs(hold(plant, 2.9).q - 0.4).max() < 1e-6  # plain friction of 2 N·m would have let go
        plant.reset([0.4])
        assert hold(plant, 3.1).q[-1, 0] > 0.5
        plant.reset([0.4], [1.0])
        truth = hold(plant, 2.0)  # in motion, only kinetic friction is left to balance
        assert truth.dq[-1, 0] == pytest.approx(1.0, abs=1e-3)

    def test_stribeck_is_the_law_at_every_velocity(self):
        law = Breakaway(1.6, 0.05)
        limit = law.limit(np.array([2.0]), np.array([0.0, 0.05, 1.0]))
        assert limit == pytest.approx([3.2, 2.0 * (1.0 + 0.6 / np.e), 2.0])
        with pytest.raises(di.InputError, match=r"breakaway ratio is 0\.9; expected 1 or more"):
            Breakaway(0.9)
        with pytest.raises(di.InputError, match="breakaway velocity is 0"):
            Breakaway(1.2, 0.0)

    def test_friction_that_pushes_elsewhere_than_it_moves(self, tmp_path):
        """MuJoCo has no such thing: the plant itself pushes."""
        path = tmp_path / "odd.yaml"
        path.write_text(
            "base: pendulum-2\nelements:\n  - {label: x, velocity: q1, torque: q2}\n"
            "default_parameters: odd\nparameters:\n  odd:\n"
            "    links: {1: {mass: 1, com: [0.5, 0, 0], inertia: [0.01, 0, 0, 0.08, 0, 0.08]},\n"
            "            2: {mass: 1, com: [0.5, 0, 0], inertia: [0.01, 0, 0, 0.08, 0, 0.08]}}\n"
            "    Fv: {1: 0.1, x: 0.4}\n    Fc: {x: 0.3}\n    Fo: {1: 0.2}\n"
        )
        robot = di.load_robot(path)
        plant = MujocoPlant(robot)
        plant.reset([0.2, -0.3], [1.0, 0.5])
        plant.apply_torque([1.0, 0.5])
        plant.step()
        (before, after) = plant.truth().dq
        expected = di.forward_dynamics(robot, [0.2, -0.3], [1.0, 0.5], [1.0, 0.5])[0]
        assert (after - before) / plant.sample_time == pytest.approx(expected, rel=5e-3)


class TestElectricalModel:
    """Kim 1990: theta(t) = U/A^2 (exp(-At) + At - 1), A = B/Me, U = (K V - Tc)/Me, K = Kt/Ra."""

    @staticmethod
    def step_response(motors, voltage, seconds=0.6):
        robot = di.load_robot("minnesota").lock(q2=0.0, q3=0.0)
        plant = MujocoPlant(robot, motors=motors, sample_time=2.4e-3)
        log = record(plant, VoltageSteps([0.0], [[voltage]]), seconds, start=([0.0], None), kinds=("q", "i", "u"))
        values = robot.value_set()
        return log, di.mass_matrix(robot, [[0.0]])[0, 0, 0], values["Fv1"], values["Fc1"]

    @pytest.mark.parametrize("back_emf", [0.0, 2.0])
    def test_step_of_voltage(self, back_emf):
        motors = Motors(torque_constant=23.6, resistance=2.0, back_emf=back_emf)
        log, inertia, viscous, dry = self.step_response(motors, 0.8)
        gain = 23.6 / 2.0
        A, U = (viscous + gain * back_emf) / inertia, (gain * 0.8 - dry) / inertia
        expected = U / A**2 * (np.exp(-A * log.time) + A * log.time - 1.0)
        assert np.abs(log.channels["q1"] - expected).max() < 2e-5 * expected[-1]
        velocity = U / A * (1.0 - np.exp(-A * log.time))
        assert log.channels["i1"] == pytest.approx((0.8 - back_emf * velocity) / 2.0, rel=1e-4)
        assert np.all(log.channels["u1"] == 0.8)

    def test_inductance_delays_the_current(self):
        motors = Motors(torque_constant=23.6, resistance=2.0, back_emf=2.0, inductance=0.02)
        log, inertia, viscous, dry = self.step_response(motors, 0.8)
        # States: position, velocity, current; it moves from the moment that the current overcomes dry friction.
        system = np.zeros((4, 4))
        system[0, 1] = 1.0
        system[1] = [0.0, -viscous / inertia, 23.6 / inertia, -dry / inertia]
        system[2] = [0.0, -2.0 / 0.02, -2.0 / 0.02, 0.8 / 0.02]
        rise = -0.01 * np.log1p(-dry / 23.6 * 2.0 / 0.8)  # [s]
        state = np.array([0.0, 0.0, dry / 23.6, 1.0])
        expected = np.array([expm(system * (t - rise)) @ state for t in log.time[2::20]])
        assert log.channels["i1"][2::20] == pytest.approx(expected[:, 2], rel=2e-3)
        assert np.abs(log.channels["q1"][2::20] - expected[:, 0]).max() < 1e-3 * expected[-1, 0]

    def test_limits_and_data_sheets(self):
        robot = di.load_robot("puma560")
        motors = Motors.at_shaft(robot, 0.2, 1.5, voltage_limit=30.0)
        assert motors.torque_constant == pytest.approx(0.2 * robot.drive.gear_ratios)
        plant = MujocoPlant(robot, motors=motors)
        plant.reset(np.zeros(6))
        plant.apply_voltage([100.0, 0, 0, 0, 0, 0])
        plant.step()
        reading = plant.read()
        assert reading.voltage[0] == 30.0
        ratio = robot.drive.gear_ratios[0]
        assert reading.current[0] == pytest.approx((30.0 - 0.2 * ratio * reading.dq[0]) / 1.5)
        assert reading.tau == pytest.approx(reading.current * 0.2 * robot.drive.gear_ratios)

    def test_bad_motors(self, pendulum):
        with pytest.raises(di.InputError, match="resistance and voltage limit must be positive"):
            Motors(1.0, 0.0)
        with pytest.raises(di.InputError, match="torque constant must not be zero"):
            Motors(0.0, 1.0)
        with pytest.raises(di.InputError, match="inductance must be zero or positive"):
            Motors(1.0, 1.0, inductance=-1.0)
        with pytest.raises(di.InputError, match="must be finite"):
            Motors(1.0, 1.0, back_emf=np.nan)
        with pytest.raises(di.InputError, match=r"one number per joint \(joint1\)"):
            MujocoPlant(pendulum, motors=Motors([1.0, 2.0], 1.0))
        with pytest.raises(di.InputError, match="no electrical model; give it `motors`"):
            MujocoPlant(pendulum).apply_voltage([1.0])


class TestPlant:
    def test_payload_acts_from_its_time_on(self):
        robot = di.load_robot("ur10e")
        pose = np.array([0.3, -1.2, 1.0, -0.4, 0.6, 0.2])
        free = {key: x for key, x in robot.value_set().items() if key[:2] not in ("Fv", "Fc", "Fo")}
        load = Payload(2.0, (0.0, 0.02, 0.1))
        weight = di.gravity_torque(robot, pose, free)[0]
        plant = MujocoPlant(robot, free, payload=load, payload_at=0.1)
        plant.reset(pose)
        truth = hold(plant, weight, 0.15)
        assert np.abs(truth.dq[:101]).max() < 1e-9
        link, added = load.on(robot)
        values = dict(free)
        for symbol, number in zip(di.robot.parameters.LINK_SYMBOLS, added, strict=True):
            values[f"{symbol}{robot.joints[link].number}"] += number
        falling = di.forward_dynamics(robot, pose, 0 * pose, weight, values=values)[0]
        assert truth.dq[103] / 0.003 == pytest.approx(falling, rel=1e-3, abs=1e-6)
        plant.reset(pose)  # and is gone after a reset
        assert np.abs(hold(plant, weight, 0.05).dq).max() < 1e-9

    def test_torque_is_limited(self):
        robot = di.load_robot("pendulum-1")
        plant = MujocoPlant(robot)
        plant.apply_torque([100.0])
        plant.step()
        assert plant.read().tau == robot.joints[0].limits.effort == 60.0
        assert plant.saturated == {"joint1"}
        plant = MujocoPlant(robot, torque_limits=5.0)
        plant.apply_torque([-100.0])
        plant.step()
        assert plant.read().tau == -5.0
        plant.reset([0.0])
        assert plant.saturated == frozenset()

    def test_torque_goes_in_straight_lines_from_sample_to_sample(self, pendulum):
        plant = MujocoPlant(pendulum, sample_time=2e-3)
        plant.reset([0.0], torque=[0.0])
        plant.apply_torque([1.0])
        plant.step()
        inertia = di.mass_matrix(pendulum, [[0.0]])[0, 0, 0]
        assert plant.truth().dq[-1, 0] == pytest.approx(0.5 * 2e-3 / inertia)
        plant.reset([0.0])  # a first command without history acts at once
        plant.apply_torque([1.0])
        plant.step()
        assert plant.truth().dq[-1, 0] == pytest.approx(2e-3 / inertia)

    def test_end_stops(self, pendulum):
        plant = MujocoPlant(pendulum, stops=True)
        plant.reset([3.0])
        assert hold(plant, 1.0, 1.0).q.max() < 3.15
        plant = MujocoPlant(pendulum)
        plant.reset([3.0])
        assert hold(plant, 1.0, 1.0).q.max() > 4.0

    def test_a_run_away_is_reported_with_time_and_joint(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        robot = di.load_robot("puma560")
        time = np.linspace(0.0, 1.0, 20)
        motion = SampledMotion(time, np.outer(np.sin(time), np.ones(6)))
        plant = MujocoPlant(robot, torque_limits=np.inf)
        with pytest.raises(
            UnstableError, match=r"unstable at t = [0-9.e-]+ s: joint joint\d moves at .* lower"
        ) as raised:
            record(plant, PD(robot, motion, bandwidth=5000.0))
        assert 0.0 < raised.value.time < 1.0
        assert raised.value.joint in robot.joint_names
        assert not list(tmp_path.iterdir())  # MuJoCo keeps no diary here

    def test_bad_arguments(self, pendulum):
        for arguments, message in (
            ({"sample_time": 0.0}, "sample time is 0.0 s"),
            ({"step": -1.0}, "step is -1.0 s"),
            ({"torque_limits": 0.0}, "torque limits must be positive"),
            ({"values": "nonsense"}, "unknown parameter set 'nonsense'"),
            ({"values": {"Fc9": 1.0}}, "unknown parameter 'Fc9'"),
            ({"values": {"Fc1": np.nan}}, "Fc1 is nan"),
            ({"values": {**pendulum.value_set(), "M1": -1.0}}, r"link 1.*mass must be positive.*choose other values"),
        ):
            with pytest.raises(di.DynidentError, match=message):
                MujocoPlant(pendulum, **arguments)
        plant = MujocoPlant(pendulum)
        with pytest.raises(di.InputError, match=r"tau must have shape"):
            plant.apply_torque([1.0, 2.0])
        with pytest.raises(di.InputError, match=r"tau is nan"):
            plant.apply_torque([np.nan])
        with pytest.raises(di.InputError, match="mass of the payload is 0"):
            Payload(0.0)
        with pytest.raises(di.InputError, match="triangle inequality"):
            Payload(1.0, inertia=(1.0, 0, 0, 1.0, 0, 5.0))
        with pytest.raises(di.InputError, match="the motor also drives a moving joint"):
            MujocoPlant(di.load_robot("sr400").lock(q6=0.0))

    def test_massless_and_thin_links_can_be_simulated(self):
        robot = di.load_robot("pendulum-2")
        values = {"M2": 1.0, "MX2": 0.5, "XX2": 0.0, "YY2": 0.25, "ZZ2": 0.25}
        plant = MujocoPlant(robot, values)
        plant.reset([0.1, 0.2])
        plant.step()
        assert np.all(np.isfinite(plant.truth().q))

    def test_a_robot_without_mujoco(self, monkeypatch, pendulum):
        monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
        assert "<mujoco" in mujoco_xml(pendulum)  # text needs none
        with pytest.raises(di.DynidentError, match=r"needs MuJoCo.*pip install mujoco"):
            MujocoPlant(pendulum)


def test_open_loop_torque_is_the_signal(pendulum):
    plant = MujocoPlant(pendulum)
    log = record(plant, OpenLoop(lambda t: [np.sin(5.0 * t)]), 0.2, start=([0.0], None), kinds=("q", "tau"))
    assert log.channels["tau1"] == pytest.approx(np.sin(5.0 * log.time), abs=1e-12)


def test_joints_that_warm_up_lose_viscous_friction():
    """A rod in free space at a constant torque: its velocity settles where friction takes all of it."""
    robot = di.load_robot("pendulum-1")
    weightless = dataclasses.replace(robot, gravity=np.zeros(3))
    machine = {**robot.value_set(), "Fv1": 2.0}
    warming = Warming(rise=30.0, time_constant=4.0, thinning=0.02, start=15.0)
    plant = MujocoPlant(weightless, machine, warming=warming)
    log = record(plant, OpenLoop(lambda t: [1.0]), 12.0, start=([0.0], [0.0]))
    assert set(log.channels) == {"q1", "tau1", "temp1"}
    expected = 15.0 + 30.0 * (1.0 - np.exp(-log.time / 4.0))
    np.testing.assert_allclose(log.channels["temp1"], expected, rtol=1e-12)
    np.testing.assert_array_equal(measure(plant).channels["temp1"], log.channels["temp1"])
    truth = plant.truth()
    viscous = 2.0 * np.exp(-0.02 * (15.0 + 30.0 * (1.0 - np.exp(-truth.time / 4.0)) - 15.0))
    # tau = I dq' + Fv(t) dq; the rod answers within a sixth of a second.
    acceleration = np.gradient(truth.dq[:, 0], truth.time)
    left = 1.0 - viscous * truth.dq[:, 0] - acceleration / 3.0
    assert np.abs(left[10:-10]).max() < 2e-3
    plant.reset([0.0])
    plant.apply_torque([1.0])
    plant.step()
    assert plant.truth().dq[1, 0] == truth.dq[1, 0]  # a new run begins cold
    with pytest.raises(InputError, match="the plant knows no temperature"):
        record(MujocoPlant(weightless, machine), OpenLoop(lambda t: [1.0]), 0.1, start=([0.0], [0.0]), kinds=["temp"])
    with pytest.raises(InputError, match="time constant of warming is 0"):
        Warming(rise=3.0, time_constant=0.0)
