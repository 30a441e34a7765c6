"""Khosla & Kanade 1987: sequential estimation around nominal values, against torques by Pinocchio."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.papers.khosla_kanade.experiments import half_swing
from dynident.papers.khosla_kanade.printed import COMBINATIONS
from dynident.robot.parameters import in_frame, to_pinocchio
from dynident.signals import FIVE_POINT, FIVE_POINT_CAUSAL, filter_signals
from tests.robots import tree_model
from tests.signals.made import Fourier, make_log, stamps

EXAMPLES = Path(__file__).parents[2] / "examples"


def oracle(robot, values, q, dq, ddq):
    """Torque by Pinocchio, which is linear in parameters as well: values that no body can have are no obstacle."""
    model = tree_model(robot)
    data = model.createData()
    links = zip(robot.joints, robot.link_parameters(values), strict=True)
    chi = np.concatenate([to_pinocchio(in_frame(own, j.after.rotation, j.after.translation)) for j, own in links])
    return np.array([pin.computeJointTorqueRegressor(model, data, *s) @ chi for s in zip(q, dq, ddq, strict=True)])


def by_name(result):
    return dict(zip(result.names, result.beta, strict=True))


class TestCylindrical:
    truth = {"MZ3": 1.25, "M3": 2.5, "M2": 5.0, "ZZR1": 2.5}
    nominal = {"MZ3": 0.27, "M3": 0.9, "M2": 2.1, "ZZR1": 2.0}

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls):
        robot = di.load_robot("cylindrical")
        motion = half_swing([np.pi / 2, 0.5, 0.5])
        return robot, (*motion, oracle(robot, "plant", *motion))

    def test_torque_at_sample_10(self, data):
        np.testing.assert_allclose(data[1][3][10], [52.3907, 96.4491, -29.4215], atol=5e-5)

    def test_sequential_recovery_from_the_initial_values(self, data):
        robot, samples = data
        found = di.estimate.sequential_online(robot, samples, "rigid", nominal="nominal")
        assert [stage.names for stage in found.stages] == [("MX3", "MZ3", "M3"), ("M2",), ("ZZR1",)]
        assert by_name(found) == pytest.approx({**self.truth, "MX3": 0.0}, abs=1e-9)
        start = dict(zip(found.names, found.nominal, strict=True))
        assert start == pytest.approx({**self.nominal, "MX3": 0.0})

    def test_the_papers_four_with_the_centre_on_the_axis(self, data):
        """With s3x = 0 known, each torque determines what the paper says: 2, 1 and 1 parameters."""
        robot, samples = data
        known = di.accumulate(robot, *samples, "rigid").known({"MX3": 0.0})
        found = di.estimate.sequential_online(robot, known, "rigid", nominal="nominal")
        assert [stage.rank for stage in found.stages] == [2, 1, 1]
        assert {name: found[name] for name in self.truth} == pytest.approx(self.truth, abs=1e-9)
        assert found.undetermined == ("MX3",)

    def test_offline_one_joint_at_a_time(self, data):
        """Joints below locked: reach alone tells its mass, and its first moment only turn can determine."""
        robot, _ = data
        experiments = []
        for k, locked in enumerate([{"q1": 0.1, "q2": 0.2}, {"q1": 0.1}, {}]):
            held = robot.lock(**locked) if locked else robot
            motion = half_swing([0.5, 0.5, np.pi / 2][: k + 1][::-1])
            full = [np.zeros((25, 3)) for _ in motion]
            for x, own in zip(full, motion, strict=True):
                x[:, 2 - k :] = own
            for name, value in locked.items():
                full[0][:, int(name[1]) - 1] = value
            tau = oracle(robot, "plant", *full)[:, 2 - k :]
            assert held.joint_names == robot.joint_names[2 - k :]
            experiments.append(di.estimate.StageExperiment((*motion, tau), locked))
        found = di.estimate.sequential(robot, experiments, "rigid", nominal="nominal")
        assert [stage.names for stage in found.stages] == [("M3",), ("M2",), ("ZZR1", "MX3", "MZ3")]
        assert found.stages[0].left_open == ("MX3", "MZ3")
        assert by_name(found) == pytest.approx({**self.truth, "MX3": 0.0}, abs=1e-9)


class TestThreeJoints:
    truth = COMBINATIONS

    @pytest.fixture(scope="class")
    @classmethod
    def robot(cls):
        return di.load_robot("cmu-dd-arm-3")

    def test_online(self, robot):
        motion = half_swing([np.pi / 2] * 3)
        samples = (*motion, oracle(robot, "table3", *motion))
        found = di.estimate.sequential_online(robot, samples, "rigid", nominal="table3-initial")
        assert [stage.rank for stage in found.stages] == [7, 3, 1]
        assert by_name(found) == pytest.approx(self.truth, abs=1e-8)
        assert not found.undetermined

    def test_offline_cannot_determine_the_rest(self, robot):
        locked = {"q1": 0.0, "q2": 0.0}
        motion = half_swing([0.0, 0.0, np.pi / 2])
        tau = oracle(robot, "table3", *motion)
        tip = di.estimate.StageExperiment((*(x[:, 2:] for x in motion), tau[:, 2:]), locked)
        found = di.estimate.sequential(robot, tip, "rigid", nominal="table3-initial")
        (stage,) = found.stages
        assert (stage.rank, set(stage.newly_determined)) == (3, {"YY3", "MX3", "MZ3"})
        assert set(stage.left_open) == {"XXR3", "XY3", "XZ3", "YZ3"}
        assert "not determined: XXR3, XY3, XZ3, YZ3 with q1, q2 locked" in stage.note
        nominal = dict(zip(found.names, found.nominal, strict=True))
        kept = {name: self.truth[name] if name in stage.newly_determined else nominal[name] for name in found.names}
        assert by_name(found) == pytest.approx(kept, abs=1e-8)


class TestSixJoints:
    """Tables 4-6 as truth, measured at 500 Hz; accelerations by differentiating velocities."""

    rate = 500.0
    t = stamps(10.0, 500.0)

    @pytest.fixture(scope="class")
    @classmethod
    def robot(cls):
        return di.load_robot("cmu-dd-arm-6")

    @pytest.fixture(scope="class")
    @classmethod
    def exact(cls, robot):
        """Two motions and one for validation: q, dq, ddq, tau."""
        motions = [Fourier.random(6, seed, base=0.2, velocity=1.6)(cls.t) for seed in (1, 2, 3)]
        return [(*motion, oracle(robot, "table4-6", *motion)) for motion in motions]

    def recorded(self, data, noise=None, kernel=FIVE_POINT):
        q, dq, _, tau = data
        if noise is not None:
            rng = np.random.default_rng(noise)
            dq = dq + 1e-3 * rng.normal(size=dq.shape)
            tau = tau + 2e-3 * np.abs(tau).max(0) * rng.normal(size=tau.shape)
        (ddq,) = filter_signals(dq, [kernel], self.rate)
        late = kernel.center - 2  # the causal form gives the derivative of two samples ago
        inner = slice(2 + late, len(q) - 2)
        return q[2 : len(q) - 2 - late], dq[2 : len(q) - 2 - late], ddq[inner], tau[2 : len(q) - 2 - late]

    def errors(self, result):
        """Share by which each parameter is off."""
        return np.abs(result.beta / result.base.base_values("table4-6") - 1.0)

    def weighty(self, result):
        return np.abs(result.base.base_values("table4-6")) > 0.02

    @pytest.mark.parametrize("kernel", [FIVE_POINT, FIVE_POINT_CAUSAL], ids=lambda k: k.name)
    def test_noise_free(self, robot, exact, kernel):
        for data in exact[:2]:
            found = di.estimate.sequential_online(
                robot, self.recorded(data, kernel=kernel), "rigid", nominal="table4-6-initial"
            )
            assert [stage.rank for stage in found.stages] == [7, 7, 7, 7, 3, 1]
            assert self.errors(found)[self.weighty(found)].max() < 5e-4

    def test_the_four_experiments(self, robot, exact):
        """The paper: two motions times two sets of initial values, all estimates within 5 %."""
        found = [
            di.estimate.sequential_online(
                robot, self.recorded(exact[motion], noise=2 * motion + k), "rigid", nominal=nominal
            )
            for motion in (0, 1)
            for k, nominal in enumerate(("table4-6-initial", "plant"))
        ]
        q, dq, ddq, tau = exact[2]
        for one in found:
            error = one.model.torque(q, dq, ddq) - tau
            assert (np.linalg.norm(error, axis=0) < 0.05 * np.linalg.norm(tau, axis=0)).all()
        big = self.weighty(found[0])
        apart = np.array([self.errors(one) for one in found]).max(0)
        assert big.sum() == 8
        assert apart[big].max() < 0.03  # 5 % in the paper
        assert np.mean(apart < 0.05) > 0.7  # of all 32; the others are too small to feel
        spread = np.ptp([one.beta for one in found], axis=0) / np.abs(found[0].base.base_values("table4-6"))
        assert 1e-4 < spread[big].max() < 0.03

    def test_initial_values_do_not_matter_for_the_same_data(self, robot, exact):
        data = self.recorded(exact[0], noise=0)
        one, other = (
            di.estimate.sequential_online(robot, data, "rigid", nominal=n) for n in ("table4-6-initial", "plant")
        )
        np.testing.assert_allclose(one.beta, other.beta, atol=1e-10)
        assert np.abs(one.nominal - other.nominal).max() > 0.1

    def test_from_logs(self, robot, exact):
        """The same through the filters of `observe`, with measured velocities and the differentiator."""
        q, dq, _, tau = exact[0]
        rng = np.random.default_rng(0)
        noisy = tau + 2e-3 * np.abs(tau).max(0) * rng.normal(size=tau.shape)
        log = make_log(robot, self.t, q, noisy, dq=dq + 1e-3 * rng.normal(size=dq.shape))
        signals = di.SignalOptions(band=8.0, velocity_source="measured", differentiator="five-point")
        found = di.estimate.sequential_online(robot, log, "rigid", nominal="table4-6-initial", signals=signals)
        assert self.errors(found)[self.weighty(found)].max() < 0.02


@pytest.mark.parametrize("name", ["cylindrical_sequential", "cmu_arm"])
def test_examples_are_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 80


def test_the_cylindrical_example(capsys):
    found = runpy.run_path(str(EXAMPLES / "cylindrical_sequential.py"))["main"]()
    assert found["M3"] == pytest.approx(2.5, abs=1e-9)
    assert "52.3907  96.4491 -29.4215" in capsys.readouterr().out


def test_the_cmu_example(capsys):
    example = runpy.run_path(str(EXAMPLES / "cmu_arm.py"))
    offline, online = example["three_joints"]()
    assert (offline.rank, online.rank) == (3, 11)
    assert len(example["six_joints"]()) == 4
    printed = capsys.readouterr().out
    assert "parameters above 0.02 (paper: 5 %)" in printed
