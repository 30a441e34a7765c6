"""Effects of real gears in the plant: each against its law, written out once more from the true motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, FrictionLaw
from dynident.plant import MujocoPlant, OpenLoop, UnstableError, measure, record
from dynident.plant.effects import Effect, FrictionEffect, effect_names

LAW_TERMS = [f"{law.name}({law.example})" if law.examples else law.name for law in FRICTION_LAWS.values()]
EVERY_TERM = ",".join([*LAW_TERMS, "tilt", "zero"])
INERTIA, WEIGHT = 1.0 / 3.0, 9.81 * 0.5  # of the rod [kg·m², N·m]
FC, FV, IA = 1.0, 0.3, 0.2
START = 3.4  # [rad]


@pytest.fixture(scope="module")
def rod():
    """A rod of 1 m and 1 kg that hangs upside down: tau = I ddq - m g l sin(q)."""
    return di.load_robot("pendulum-1")


@pytest.fixture(scope="module")
def machine(rod):
    """The rod with a rotor and plain friction."""
    return {**rod.value_set(), "Fc1": FC, "Fv1": FV, "Ia1": IA}


def driven(plant, seconds=0.9):
    """A run under a torque that swings the rod about where it hangs, with accelerations by differences."""
    record(plant, OpenLoop(lambda t: [9.0 * np.cos(7.0 * t)]), seconds, start=([START], [0.0]))
    truth = plant.truth()
    q, dq, tau = truth.q[2:-2, 0], truth.dq[:, 0], truth.tau[2:-2, 0]
    ddq = (dq[:-4] - 8.0 * dq[1:-3] + 8.0 * dq[3:-1] - dq[4:]) / (12.0 * plant.sample_time)
    return q, dq[2:-2], ddq, tau


def wound(q, radius):
    """The stop operator in one plain loop."""
    end, found = START, []
    for position in q:
        end = min(max(end, position - radius), position + radius)
        found.append((position - end) / radius)
    return np.array(found)


def load(q, ddq):
    return np.abs(INERTIA * ddq - WEIGHT * np.sin(q))  # of the rod alone, without its rotor


LAWS = {
    "stop3_1": (3.0, lambda q, dq, ddq: wound(q, 3e-3)),
    "stop40_1": (2.0, lambda q, dq, ddq: wound(q, 40e-3)),
    "stribeck0.5_1": (1.5, lambda q, dq, ddq: np.sign(dq) * np.exp(-((dq / 0.5) ** 2))),
    "sign0.2_1": (2.0, lambda q, dq, ddq: np.tanh(dq / 0.2)),
    "load_1": (0.2, lambda q, dq, ddq: load(q, ddq) * np.sign(dq)),
    "loadv_1": (0.2, lambda q, dq, ddq: load(q, ddq) * dq),
    "asymmetric_1": (-0.8, lambda q, dq, ddq: np.ones(len(q))),
    "quadratic_1": (0.5, lambda q, dq, ddq: dq * np.abs(dq)),
    "cubic_1": (0.3, lambda q, dq, ddq: dq**3),
    "harmonics2c_1": (1.0, lambda q, dq, ddq: np.cos(2.0 * q)),
    "harmonics1s_1": (1.0, lambda q, dq, ddq: np.sin(q)),
    "ripple30.5s_1": (0.5, lambda q, dq, ddq: np.sin(30.5 * q)),
    "jerk_1": (0.02, lambda q, dq, ddq: np.gradient(ddq, 1e-3)),
}


class TestLaws:
    @pytest.mark.parametrize("name", LAWS)
    def test_the_motor_gives_what_the_law_takes(self, rod, machine, name):
        value, law = LAWS[name]
        q, dq, ddq, tau = driven(MujocoPlant(rod, machine, effects={name: value}))
        plain = (INERTIA + IA) * ddq - WEIGHT * np.sin(q) + FC * np.sign(dq) + FV * dq
        # Differences and the followed jerk cannot keep up where friction turns round.
        settled = np.convolve(np.abs(dq) < 0.02, np.ones(31), "same") == 0.0
        settled[:40] = False
        taken, expected = (tau - plain)[settled], value * law(q, dq, ddq)[settled]
        assert settled.sum() > 200
        assert np.std(expected) > 0.1 or name == "asymmetric_1"
        # Jerk comes a millisecond late and the load a step; stops have corners.
        share = {"jerk_1": 0.06, "loadv_1": 0.02, "stop3_1": 0.02}.get(name, 0.01)
        assert np.abs(taken - expected).max() < share * np.abs(expected).max()

    def test_nothing_else_changes(self, rod, machine):
        plain, none = MujocoPlant(rod, machine), MujocoPlant(rod, machine, effects={"load_1": 0.0})
        assert np.array_equal(driven(plain), driven(none))

    def test_runs_repeat(self, rod, machine):
        effects = {"stop3_1": 1.0, "load_1": 0.1, "jerk_1": 0.01, "stribeck0.2_1": 0.5}
        plant = MujocoPlant(rod, machine, effects=effects)
        first = driven(plant, 0.3)
        assert np.array_equal(first, driven(plant, 0.3))
        assert np.array_equal(first, driven(MujocoPlant(rod, machine, effects=effects), 0.3))

    def test_a_sliding_joint_counts_in_decimetres(self):
        robot = di.load_robot("cylindrical")
        short = {"sample_time": 2e-5, "step": 1e-5}
        plant = MujocoPlant(robot, effects={"sign0.5_2": 30.0, "cubic_3": 7.0}, **short)
        still = MujocoPlant(robot, **short)
        start = ([0.1, 0.2, 0.3], [0.0, 0.04, 0.5])
        assert [robot.elements[i].prismatic for i in (1, 2)] == [True, True]
        mass = di.mass_matrix(robot, [start[0]])[0]
        lost = []
        for machine in (plant, still):
            machine.reset(*start)
            machine.step()
            lost.append((machine.truth().dq[1] - machine.truth().dq[0]) / machine.sample_time)
        expected = [0.0, 30.0 * np.tanh(0.04 / 0.05), 7.0 * 0.5**3]
        assert mass @ (lost[1] - lost[0]) == pytest.approx(expected, rel=0.02, abs=1e-3)


SLOW = 2.0**-30  # [rad/s] over which the slope is taken: nothing but the square of the velocity sees it


@pytest.mark.parametrize("scale", [1e-3, 0.2])
@pytest.mark.parametrize(
    ("shape", "slope"),
    [
        (lambda c, x, s: c * x.functions.tanh(x.velocity / x.unit / s), lambda c, s: c / s),
        (lambda c, x, s: c * x.velocity / (1.0 + abs(x.velocity) / x.unit / s), lambda c, s: c),
        (lambda c, x, s: c * x.velocity * abs(x.velocity) / s, lambda c, s: c * SLOW / s),
        (lambda c, x, s: c * x.slides, lambda c, s: 0.0),
    ],
    ids=["torque", "torque per velocity", "square", "level"],
)
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_damping_is_the_slope_at_standstill_whatever_the_coefficient_is(monkeypatch, shape, slope, scale, unit):
    """Time steps follow it; a law need not have the form c phi(v / s)."""
    words = {"words": "made up", "formula": "made up", "helps": "never"}
    law = FrictionLaw("made", {"": shape}, "made up", **words, dissipation="viscous", scale="velocity")
    monkeypatch.setitem(FRICTION_LAWS, "made", law)
    effect = FrictionEffect(Effect(f"made{scale}_1", "made", scale, "", "1", -2.0), unit)
    expected = slope(2.0, scale * unit)  # plants count in the element's own unit
    assert effect.damping == pytest.approx(expected, rel=SLOW / (scale * unit), abs=0.0)


class TestStops:
    @staticmethod
    def law(value=2.0, milliradians=5.0):
        return FrictionEffect(Effect("stop5_1", "stop", milliradians, "", "1", value), 1.0)

    def followed(self, positions):
        law, found = self.law(), []
        law.start(positions[0])
        for position in positions:
            found.append(law.torque(position, 0.0, 0.0))
            law.move(position)
        return np.array(found)

    def test_a_cycle_takes_the_area_of_its_loop(self):
        q = 0.02 * np.sin(np.linspace(0.0, 6.0 * np.pi, 30001))
        torque = self.followed(q)
        work = float(np.sum(0.5 * (torque[20000:-1] + torque[20001:]) * np.diff(q[20000:])))
        assert work == pytest.approx(4.0 * 2.0 * (0.02 - 0.005), rel=1e-4)
        small = 0.004 * np.sin(np.linspace(0.0, 6.0 * np.pi, 3001))  # within the radius it is a spring
        assert self.followed(small) == pytest.approx(2.0 * small / 0.005)

    def test_it_does_not_know_time(self):
        way = np.linspace(0.0, 4.0 * np.pi, 4001)
        q = 0.02 * np.sin(way) + 0.01 * np.sin(2.7 * way)
        slow = np.repeat(q, 3)  # the same path, with rests
        assert np.array_equal(self.followed(slow)[::3], self.followed(q))

    def test_a_rod_comes_to_rest_where_its_energy_is_spent(self, rod):
        level = dataclasses.replace(rod, gravity=np.array([0.0, 0.0, -9.81]))
        plant = MujocoPlant(level, effects={"stop4_1": 3.0})
        plant.reset([0.2], [1.5])
        while plant.truth().dq[-1, 0] > 0.0:
            plant.step()
        way = plant.truth().q.max() - 0.2
        spent = 3.0 * (way - 0.5 * 4e-3)
        assert spent == pytest.approx(0.5 * INERTIA * 1.5**2, rel=1e-3)
        energies = []
        for _ in range(300):  # and swings on the spring that is left, which takes nothing
            plant.step()
            energies.append(0.5 * INERTIA * plant.truth().dq[-1, 0] ** 2)
        peak = 0.5 * 3.0 * 4e-3
        assert max(energies) == pytest.approx(peak, rel=0.01)
        assert max(energies[-60:]) == pytest.approx(peak, rel=0.02)

    def test_light_joints_get_short_steps(self, rod):
        plant = MujocoPlant(rod, effects={"stop0.01_1": 20.0})
        assert plant._parts > 2
        with pytest.raises(UnstableError, match=r"effect stop0\.01_1 on joint joint1 .* of 0\.005 s.*allow steps"):
            MujocoPlant(rod, sample_time=5e-3, step=5e-3, effects={"stop0.01_1": 20.0})
        with pytest.raises(UnstableError, match="lower its value or give the machine its rotor inertia"):
            MujocoPlant(rod, effects={"stop0.001_1": 2e5})


class TestDryFriction:
    def test_friction_by_load_holds(self, rod):
        plant = MujocoPlant(rod, effects={"load_1": 0.3})
        carried = -WEIGHT * np.sin(0.5)
        for share, moves in ((0.25, False), (-0.25, False), (0.35, True)):
            plant.reset([0.5])
            for _ in range(200):
                plant.apply_torque([carried * (1.0 + share)])
                plant.step()
            assert (np.abs(plant.truth().q - 0.5).max() > 1e-3) == moves

    def test_asymmetric_friction_holds_unevenly(self, rod, machine):
        level = dataclasses.replace(rod, gravity=np.array([0.0, 0.0, -9.81]))
        plant = MujocoPlant(level, machine, effects={"asymmetric_1": 0.6})
        for torque, moves in ((1.5, False), (1.7, True), (-0.35, False), (-0.45, True)):
            plant.reset([0.5])
            for _ in range(200):
                plant.apply_torque([torque])
                plant.step()
            assert (np.abs(plant.truth().q - 0.5).max() > 1e-3) == moves


class TestElements:
    """Motor 6 of the TX40 turns with joints 5 and 6 together."""

    VELOCITIES = {"5": -0.9, "6": 0.4, "m6": -0.5}

    @staticmethod
    def taken(robot, effects):
        """Torque at the motors that effects take at one moment, its velocities, and the torque of the links."""
        plant = MujocoPlant(robot, sample_time=2e-5, step=1e-5, effects=effects)
        plant.reset([0.3, -0.4, 0.9, 0.2, 0.7, -0.3], [0.5, -0.6, 0.4, 0.7, -0.9, 0.4])
        given = np.array([3.0, -5.0, 4.0, 2.0, -2.5, 1.5])
        for _ in range(10):
            plant.apply_torque(given)
            plant.step()
        truth = plant.truth()
        motion = truth.q[-2], truth.dq[-2], (truth.dq[-1] - truth.dq[-3]) / (2.0 * plant.sample_time)
        return (
            given - di.inverse_dynamics(robot, *motion)[0],
            motion[1],
            di.inverse_dynamics(robot, *motion, "rigid")[0],
        )

    @pytest.mark.parametrize("label", ["5", "6", "m6"])
    def test_a_law_acts_along_its_element(self, label):
        robot = di.load_robot("tx40")
        element = next(e for e in robot.elements if e.label == label)
        taken, dq, _ = self.taken(robot, {f"quadratic_{label}": 5.0})
        velocity = {"5": dq[4], "6": dq[5], "m6": dq[4] + dq[5]}[label]
        assert velocity == pytest.approx(self.VELOCITIES[label], abs=0.1)
        assert taken == pytest.approx(element.torque * 5.0 * velocity * abs(velocity), rel=2e-3, abs=2e-3)

    @pytest.mark.parametrize("label", ["5", "6", "m6"])
    def test_the_load_is_that_of_the_motor_or_of_the_joint(self, label):
        robot = di.load_robot("tx40")
        element = next(e for e in robot.elements if e.label == label)
        taken, dq, motors = self.taken(robot, {f"loadv_{label}": 2.0})
        velocity = {"5": dq[4], "6": dq[5], "m6": dq[4] + dq[5]}[label]
        carried = {"5": motors[4], "6": motors[5], "m6": motors[5]}[label]  # joint 6 is turned by motor 6 alone
        assert abs(carried) > 0.01
        assert taken == pytest.approx(element.torque * 2.0 * abs(carried) * velocity, rel=5e-3, abs=2e-3)


class TestDescription:
    def test_a_tilted_base_needs_other_torque(self):
        robot = di.load_robot("puma560")
        values = {k: x for k, x in robot.value_set().items() if k[:2] not in ("Fc", "Fo")}
        pose = np.array([0.4, -0.7, 0.5, 0.3, 0.6, 0.1])
        plant = MujocoPlant(robot, values, effects={"tilt_x": 0.02, "tilt_y": -0.05})
        turned = robot.gravity + np.cross([0.02, -0.05, 0.0], robot.gravity)
        turned *= 9.81 / np.linalg.norm(turned)
        torque = di.gravity_torque(dataclasses.replace(robot, gravity=turned), pose, values)[0]
        plant.reset(pose)
        for _ in range(50):
            plant.apply_torque(torque)
            plant.step()
        assert np.abs(plant.truth().dq).max() < 1e-3  # upright, it would move a hundred times as fast
        assert np.abs(torque - di.gravity_torque(robot, pose, values)[0]).max() > 1.0

    def test_encoders_with_another_zero(self):
        robot = di.load_robot("puma560")
        plant = MujocoPlant(robot, effects={"zero_2": 0.01, "zero_3": -0.02})
        plant.reset(np.full(6, 0.3))
        assert plant.read().q == pytest.approx(np.full(6, 0.3))
        assert plant.truth().q[0] == pytest.approx([0.3, 0.31, 0.28, 0.3, 0.3, 0.3])
        log = record(plant, OpenLoop(lambda t: np.zeros(6)), 0.05, start=(np.full(6, 0.3), None))
        assert measure(plant).digest == log.digest
        assert log.array("q", robot)[:, 1] == pytest.approx(plant.truth().q[1:, 1] - 0.01)


class TestNames:
    @pytest.mark.parametrize("name", ["puma560", "tx40", "sr400", "cylindrical", "pendulum-2"])
    def test_they_are_those_of_the_columns(self, name):
        robot = di.load_robot(name)
        columns = [c.name for term in resolve_terms(EVERY_TERM) for c in term.columns(robot)]
        columns = [c for c in columns if not c.startswith(("tiltcos", "tiltsin"))]  # every machine has this weight
        assert len(columns) > 14
        MujocoPlant(robot, effects=dict.fromkeys(columns, 0.0))  # every one is known
        examples = {c.split("_")[0].rstrip("0123456789.cs") for c in columns}
        assert {n.split("_")[0].rstrip("0123456789.cs") for n in effect_names(robot)} == examples

    @pytest.mark.parametrize(
        ("effects", "message"),
        [
            ({"stopp0.3_1": 1.0}, "unknown effect 'stopp0.3_1'; did you mean 'stop0.3_1'"),
            ({"stop0.3_7": 1.0}, r"unknown effect 'stop0\.3_7'.*stop0\.3_1"),
            ({"stop_1": 1.0}, "unknown effect 'stop_1'; did you mean 'stop0.3_1'"),
            ({"harmonics2_1": 1.0}, "did you mean 'harmonics2"),
            ({"load1": 1.0}, "did you mean 'load_1'"),
            ({"tilt_x": 0.1}, "did you mean 'tilt_"),  # gravity is along x
            ({"Fc1": 1.0}, "unknown effect 'Fc1'"),
            ({"load_1": np.nan}, "effect load_1 is nan; expected a finite number"),
            ({"load_1": "much"}, "effect load_1 is 'much'"),
            ({"stop0_1": 1.0}, "its number must be positive, as in stop0.3_1"),
            ({"load_1": -0.1}, "effect load_1 is -0.1 .* dry friction can only brake"),
            ({"stribeck0.2_1": -0.5}, "effect stribeck0.2_1 is -0.5 where Coulomb friction is 0: friction would push"),
            ({"asymmetric_1": 0.5}, "give at most the Coulomb friction"),
            ({"jerk_1": -0.1}, "a drive that runs ahead of its motor cannot be"),
        ],
    )
    def test_what_cannot_be_is_reported(self, rod, effects, message):
        with pytest.raises(di.DynidentError, match=message):
            MujocoPlant(rod, effects=effects)

    def test_a_run_away_is_reported(self, rod):
        plant = MujocoPlant(rod, effects={"cubic_1": -2.0})
        plant.reset([0.0], [3.0])

        def run():
            while plant.time < 1.0:
                plant.step()

        with pytest.raises(UnstableError, match=r"became unstable at t = .* joint joint1"):
            run()
