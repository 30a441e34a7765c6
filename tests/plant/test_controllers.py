from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.plant import (
    PD,
    ComputedTorque,
    Feedforward,
    MujocoPlant,
    OpenLoop,
    Reading,
    SampledMotion,
    VoltageSteps,
    record,
)

TIME = np.linspace(0.0, 1.0, 51)


@pytest.fixture(scope="module")
def sr400():
    """A robot with a loop and coupled motors, and a motion from rest to rest."""
    robot = di.load_robot("sr400")
    s = TIME**3 * (10.0 - 15.0 * TIME + 6.0 * TIME**2)
    start = np.array([0.0, -1.5, 0.1, 0.2, 0.3, 0.0])
    return robot, SampledMotion(TIME, start + np.outer(s, [0.8, 0.4, -0.9, 0.7, -0.8, 0.5]))


@pytest.mark.parametrize(("kind", "within"), [(Feedforward, 3e-3), (ComputedTorque, 3e-3), (PD, 0.1)])
def test_tracking(sr400, kind, within):
    robot, motion = sr400
    plant = MujocoPlant(robot)
    record(plant, kind(robot, motion))
    truth = plant.truth()
    error = np.abs(truth.q - motion.sample(truth.time)[0])
    assert error.max() < within
    assert np.ptp(truth.q, axis=0).min() > 0.35


def test_a_perfect_feedforward_needs_no_feedback():
    """Without dry friction, and with the machine's own values, the motion follows open loop."""
    robot = di.load_robot("minnesota")
    values = {key: x for key, x in robot.value_set().items() if key[:2] != "Fc"}
    s = TIME**3 * (10.0 - 15.0 * TIME + 6.0 * TIME**2)
    motion = SampledMotion(TIME, np.outer(s, [0.5, 0.4, -0.5]))
    plant = MujocoPlant(robot, values)
    record(plant, Feedforward(robot, motion, 0.0, 0.0, values=values))
    truth = plant.truth()
    assert np.abs(truth.q - motion.sample(truth.time)[0]).max() < 3e-5


def test_feedback_is_a_spring_and_a_damper_at_the_joints(sr400):
    robot, motion = sr400
    controller = PD(robot, motion, 100.0, 7.0)
    controller.start(1e-3)
    q, dq, _ = (x[0] for x in motion.sample([0.0]))
    at = controller.command(0.0, Reading(0.0, q, dq, 0 * q))
    off = controller.command(0.0, Reading(0.0, q - 0.01, dq + 0.1, 0 * q))
    assert di.joint_torque(robot, off - at)[0] == pytest.approx(0.01 * 100.0 - 0.1 * 7.0)
    # A reading from a little earlier is compared with the motion at its own time.
    later = controller.command(0.5, Reading(0.5 - 2e-4, *(x[0] for x in motion.sample([0.5 - 2e-4])[:2]), 0 * q))
    on_time = controller.command(0.5, Reading(0.5, *(x[0] for x in motion.sample([0.5])[:2]), 0 * q))
    assert later == pytest.approx(on_time, abs=1e-3)


def test_computed_torque_answers_alike_at_every_joint(sr400):
    robot, motion = sr400
    controller = ComputedTorque(robot, motion, 900.0, 60.0)
    controller.start(1e-3)
    q, dq, _ = (x[0] for x in motion.sample([0.4]))
    error = np.full(6, 0.01)
    tau = controller.command(0.4, Reading(0.4, q - error, dq, 0 * q))
    answer = di.forward_dynamics(robot, q - error, dq, tau, "rigid,Ia,Fv,Fc(0.05),Fo")[0]
    assert answer == pytest.approx(motion.sample([0.401])[2][0] + 9.0, abs=0.2)


def test_voltage_steps():
    steps = VoltageSteps([0.1, 0.3], [[1.0, 2.0], [-1.0, 0.0]])
    nothing = Reading(0.0, *np.zeros((3, 2)))
    assert [steps.command(t, nothing).tolist() for t in (0.0, 0.1, 0.29, 0.3, 9.0)] == [
        [0.0, 0.0],
        [1.0, 2.0],
        [1.0, 2.0],
        [-1.0, 0.0],
        [-1.0, 0.0],
    ]
    with pytest.raises(di.InputError, match="times must rise"):
        VoltageSteps([0.3, 0.1], [[1.0], [2.0]])


def test_bad_runs(sr400):
    robot, motion = sr400
    plant = MujocoPlant(robot)
    with pytest.raises(di.InputError, match="say where to start"):
        record(plant, OpenLoop(lambda t: np.zeros(6)), 1.0)
    with pytest.raises(di.InputError, match="say how long"):
        record(plant, OpenLoop(lambda t: np.zeros(6)), start=(np.zeros(6), None))
    with pytest.raises(di.InputError, match="duration is -1"):
        record(plant, PD(robot, motion), -1.0)
    with pytest.raises(di.InputError, match="gives no sample"):
        record(plant, PD(robot, motion), 0.01, every=100)
    with pytest.raises(di.InputError, match="bandwidth is 0"):
        PD(robot, motion, bandwidth=0.0)


class TestSampledMotion:
    def test_goes_through_the_samples(self):
        q = np.column_stack([np.sin(3 * TIME), TIME**2])
        motion = SampledMotion(TIME + 5.0, q)
        assert motion.duration == pytest.approx(1.0)
        found = motion.sample(TIME)
        assert found[0] == pytest.approx(q, abs=1e-12)
        assert found[1] == pytest.approx(np.column_stack([3 * np.cos(3 * TIME), 2 * TIME]), abs=1e-5)
        assert motion.sample([-1.0, 2.0])[0] == pytest.approx(q[[0, -1]])
        assert not np.any(motion.sample([-1.0, 2.0])[1])

    def test_meets_given_derivatives(self):
        few = TIME[::10]
        motion = SampledMotion(few, few[:, None] ** 3, 3 * few[:, None] ** 2, 6 * few[:, None])
        q, dq, ddq = motion.sample(TIME)
        assert q[:, 0] == pytest.approx(TIME**3)
        assert dq[:, 0] == pytest.approx(3 * TIME**2)
        assert ddq[:, 0] == pytest.approx(6 * TIME)

    @pytest.mark.parametrize(
        ("time", "q", "message"),
        [
            (TIME, np.zeros((3, 2)), "expected times"),
            (TIME[:4], np.zeros((4, 2)), "has 4 samples"),
            (TIME[::-1], np.zeros((51, 2)), "times must rise"),
        ],
    )
    def test_bad_tables(self, time, q, message):
        with pytest.raises(di.InputError, match=message):
            SampledMotion(time, q)


class Cart:
    """A plant of our own: one mass on a rail."""

    saturated = frozenset()

    def __init__(self, robot, sample_time=1e-3):
        self.robot, self.sample_time = robot, sample_time

    def reset(self, q, dq=None):
        self.time, self.state, self.force = 0.0, np.array([np.asarray(q)[0], 0.0]), 0.0

    def apply_torque(self, tau):
        self.force = float(tau[0])

    def apply_voltage(self, voltage):
        raise AssertionError

    def step(self):
        acceleration = self.force / 3.0
        self.state = self.state + self.sample_time * np.array([self.state[1], acceleration])
        self.time += self.sample_time

    def stop(self):
        self.force = 0.0

    def read(self):
        return Reading(self.time, self.state[:1], self.state[1:], np.array([self.force]))


def test_any_machine_with_the_methods_of_a_plant_can_be_recorded():
    robot = di.load_robot("pendulum-1")
    motion = SampledMotion(TIME, np.sin(3.0 * TIME[:, None]))
    log = record(Cart(robot), PD(robot, motion, 3000.0, 300.0), every=10, kinds=("q", "dq", "tau"))
    assert len(log) == 100
    late = log.time > 0.5
    assert np.abs(log.channels["q1"] - np.sin(3.0 * log.time))[late].max() < 0.05
