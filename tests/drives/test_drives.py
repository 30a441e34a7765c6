"""Drives from position commands: recovery of simulated ones, replay, and what is refused or doubted."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import dynident as di
from dynident.drives.identification import (
    _away_from_reversals,
    _with_uncertain_delay,
    identify_drives,
    values_of,
)
from dynident.drives.linear import DriveRows, LinearDrives, with_gains
from dynident.drives.links import link_values
from dynident.drives.replay import ClosedLoopReplay, commands_of, replay_xml
from dynident.drives.storage import DrivesFileError, load_drives, save_drives
from dynident.drives.thresholds import THRESHOLDS
from dynident.errors import InputError
from dynident.logs.log import LogError
from dynident.signals.observations import observe
from dynident.signals.rows import DELAY
from tests.drives.made import Truth, logged, quadruped

pytest.importorskip("mujoco")
KP, KD = 200.0, 30.0


def with_limits(effort):
    """The pendulum with torque limits [N·m]."""
    plain = di.load_robot("pendulum-2")
    joints = tuple(
        dataclasses.replace(joint, limits=dataclasses.replace(joint.limits, effort=effort)) for joint in plain.joints
    )
    return dataclasses.replace(plain, joints=joints)


@pytest.fixture(scope="module")
def robot():
    return with_gains(with_limits(200.0), np.full(2, KP), np.full(2, KD))


@pytest.fixture(scope="module")
def truth():
    return Truth.drawn(2, seed=1, size=5.0)


@pytest.fixture(scope="module")
def log(robot, truth):
    return logged(robot, truth, KP, KD)


@pytest.fixture(scope="module")
def other(robot, truth):
    return dataclasses.replace(logged(robot, truth, KP, KD, seed=7, seconds=5.0), role="validation", label="other")


@pytest.fixture(scope="module")
def found(robot, log, other):
    return identify_drives(robot, [log, other])


def torque_of(robot, truth, log):
    """(n_samples, n_joints) mean torque of the controller about each sample, by its own formula."""
    rate, n = 200.0, 2
    q = np.stack([log.channels[f"q{j + 1}"] for j in range(n)], axis=1) + truth.bias
    targets = np.stack([log.channels[f"target{j + 1}"] for j in range(n)], axis=1)
    fine = np.arange(len(q) * 25) / (rate * 25)
    held = targets[np.clip(np.floor((fine - truth.delay) * rate + 1e-9).astype(int), 0, None)]
    held = np.array([np.convolve(x, np.ones(25) / 25, "same")[::25] for x in held.T]).T
    return KP * (held - q) - KD * np.gradient(q, 1.0 / rate, axis=0)


def deviations(found, truth, robot):
    true = truth.by_name(robot)
    each = zip(found.names, found.values, found.std, found.determined, strict=True)
    return {name: (value - true[name]) / std for name, value, std, is_known in each if is_known}


class TestRecovery:
    def test_within_their_standard_deviations(self, found, truth, robot):
        off = np.array(list(deviations(found, truth, robot).values()))
        assert len(off) >= 8
        assert np.abs(off).max() < 4.0
        assert np.sqrt(np.mean(off**2)) < 1.5

    def test_within_a_few_percent(self, found, truth, robot):
        true = truth.by_name(robot)
        for name in ("Ia1", "Ia2", "Fv1", "Fv2", "Fc1", "Fc2"):
            assert found[name] == pytest.approx(true[name], rel=0.2), name
        assert found.delay == pytest.approx(truth.delay, abs=6e-4)
        assert found["bias1"] == pytest.approx(true["bias1"], abs=5e-4)

    def test_the_replay_is_near(self, found):
        assert found.held_out
        assert found.after.total < 1e-3
        assert found.after.total < 0.1 * found.before.total
        assert not found.warnings

    @pytest.mark.full
    def test_over_seeds(self, robot):
        every = []
        for seed in range(10, 20):
            truth = Truth.drawn(2, seed=seed, size=5.0)
            every += deviations(
                identify_drives(robot, [logged(robot, truth, KP, KD, seed=seed)]), truth, robot
            ).values()
        assert np.sqrt(np.mean(np.square(every))) < 1.3
        assert np.abs(every).max() < 5.0

    def test_feedforward_torque_counts(self, robot, truth, log, found):
        """The same motion, half of the torque of the targets given beside them."""
        n, channels = 2, dict(log.channels)
        for j in range(1, n + 1):
            channels[f"tau_ff{j}"] = 0.5 * KP * log.channels[f"target{j}"]
            channels[f"target{j}"] = 0.5 * log.channels[f"target{j}"]
        again = identify_drives(robot, [dataclasses.replace(log, channels=channels)], delay=found.delay)
        same = identify_drives(robot, [log], delay=found.delay)
        np.testing.assert_allclose(again.values, same.values, rtol=1e-6, atol=1e-9)

    def test_gains_may_stand_in_the_log(self, robot, log):
        plain = with_limits(200.0)
        gains = {f"{k}{j}": np.full(len(log), x) for j in (1, 2) for k, x in (("kp", KP), ("kd", KD))}
        with_columns = dataclasses.replace(log, channels={**log.channels, **gains})
        a, b = identify_drives(plain, [with_columns], delay=0.005), identify_drives(robot, [log], delay=0.005)
        np.testing.assert_allclose(a.values, b.values, rtol=1e-12)

    def test_gains_may_differ_between_logs(self, robot, truth, log):
        """One bias of positions, whatever torque it makes."""
        soft = logged(robot, truth, 0.5 * KP, 0.7 * KD, seed=5)
        logs = []
        for own, kp, kd in ((log, KP, KD), (soft, 0.5 * KP, 0.7 * KD)):
            gains = {f"{k}{j}": np.full(len(own), x) for j in (1, 2) for k, x in (("kp", kp), ("kd", kd))}
            logs.append(dataclasses.replace(own, channels={**own.channels, **gains}, label=f"kp {kp:g}"))
        found = identify_drives(with_limits(200.0), logs)
        off = np.array(list(deviations(found, truth, robot).values()))
        assert np.abs(off).max() < 4.0
        assert any("gains of the controllers differ between logs" in note for note in found.notes)
        assert found.after.total < 2e-3

    def test_from_measured_torque(self, robot, truth, log):
        """Torque instead of commands: the same drives, an offset instead of a bias, pieces of one horizon."""
        n, q = 2, np.stack([log.channels["q1"], log.channels["q2"]], axis=1)
        measured = torque_of(robot, truth, log)
        channels = {f"q{j + 1}": q[:, j] for j in range(n)} | {f"tau{j + 1}": measured[:, j] + 0.3 for j in range(n)}
        own = dataclasses.replace(log, channels=channels)
        found = identify_drives(with_limits(200.0), [own], delay=0.0)
        for name in ("Ia1", "Ia2", "Fv1", "Fv2", "Fc1", "Fc2"):
            assert found[name] == pytest.approx(truth.by_name(robot)[name], rel=0.2), name
        assert found["Fo1"] == pytest.approx(0.3, abs=0.15)
        assert found.after.total < 0.2 * found.before.total
        assert any("torque as measured" in note for note in found.notes)
        answer = found.to_dict()["joints"][0]
        assert answer["bias"] == 0.0
        assert answer["std"]["bias"] is None
        with pytest.raises(LogError, match="has position commands and no torque, while"):
            identify_drives(robot, [own, log])

    @pytest.mark.full
    def test_refined_by_simulation(self, robot, log, truth):
        better = identify_drives(robot, [log], refine=True)
        assert any("refine" in note for note in better.notes)
        off = np.array(list(deviations(better, truth, robot).values()))
        assert np.abs(off).max() < 5.0


class TestDelay:
    """The delay and what depends on it vary together."""

    def test_of_all_rows_by_many_draws(self):
        """Values that are linear in the delay: the joint covariance is that of draws."""
        rng = np.random.default_rng(0)
        slope, root = np.array([3.0, -2.0, 0.5]), rng.normal(size=(3, 3))

        def estimate(delay):
            return LinearDrives(("a", "b", "c"), 1.0 + slope * delay, root @ root.T, (), (), np.ones(1))

        found = _with_uncertain_delay(estimate, 1.0, 0.7)
        delays = 1.0 + 0.7 * rng.normal(size=200_000)
        drawn = 1.0 + delays[:, None] * slope + rng.normal(size=(len(delays), 3)) @ root.T
        expected = np.cov(np.column_stack([drawn, delays]).T)
        assert found.names == ("a", "b", "c", DELAY)
        np.testing.assert_allclose(found.covariance, expected, atol=0.02 * np.abs(expected).max())
        given = _with_uncertain_delay(estimate, 1.0, 0.0)
        assert not given.covariance[-1].any()

    def test_away_from_reversals_by_noise_of_many_seeds(self, robot, truth):
        """Errors of inertia and delay go together over noise as the covariance says, sign and size."""
        names = ["Ia1", "Fv1", "Ia2", "Fv2", DELAY]
        clean = logged(robot, truth, KP, KD, noise=0.0)
        values, stated = [], []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            noisy = {
                name: x + 5e-5 * rng.normal(size=x.shape) if name[0] == "q" else x for name, x in clean.channels.items()
            }
            observed = observe(dataclasses.replace(clean, channels=noisy), robot)
            rows = DriveRows(robot, (observed,), link_values(robot), np.full((1, 2), KP))
            found, delay = _away_from_reversals(rows, truth.delay, True, [])
            place = [found.names.index(name) for name in names]
            values.append([*found.values[place[:-1]], delay])
            stated.append(found.covariance[np.ix_(place, place)])
        std = np.sqrt(np.diag(np.mean(stated, axis=0)))
        correlations = np.mean(stated, axis=0) / np.outer(std, std)
        drawn = np.corrcoef(np.array(values).T)
        assert (drawn[-1, [0, 2]] < -0.5).all()
        np.testing.assert_allclose(correlations[-1], drawn[-1], atol=0.35)

    def test_the_covariance_is_one(self, found):
        std = np.where(found.std > 0.0, np.sqrt(np.diag(found.covariance)), 1.0)
        eigenvalues = np.linalg.eigvalsh(found.covariance / np.outer(std, std))
        assert eigenvalues[0] > -1e-9
        assert np.abs(found.covariance[-1, :-1]).max() > 0.0

    def test_a_delay_that_is_given_varies_with_its_loop_alone(self, robot, log):
        given = identify_drives(robot, [log], delay=0.008)
        assert given.std[-1] == pytest.approx(THRESHOLDS.loop_delay)


class TestReplay:
    def test_the_model_file_gives_the_same_motion(self, robot, log, found):
        """Policy-free: the commands by hand, step by step, in a model of its own."""
        import mujoco

        (commands,) = commands_of(log, robot)
        values = dataclasses.replace(found.drives, delay=0.0, bias=np.zeros(2))
        (course,) = ClosedLoopReplay(robot, [commands]).positions([values])
        model = mujoco.MjModel.from_xml_string(replay_xml(robot, values.parameters, found.kp, found.kd))
        data = mujoco.MjData(model)
        first = np.linalg.lstsq(np.vander(commands.time[:6], 3), commands.positions[:6])[0]
        data.qpos[:], data.qvel[:] = first[2], first[1]
        per = round(float(commands.time[1]) / model.opt.timestep)
        places = [int(model.joint(name).qposadr[0]) for name in robot.joint_names]
        for k in range(400):
            np.testing.assert_allclose(data.qpos[places], course[0, k], atol=1e-6)
            data.ctrl[:] = commands.targets[k]
            mujoco.mj_step(model, data, per)

    def test_of_the_truth_is_nearly_nothing(self, robot, truth, log):
        stretches = commands_of(log, robot)
        values = values_of(robot, truth.by_name(robot), truth.delay)
        late = dataclasses.replace(values, delay=truth.delay + 2e-3)
        near, far = ClosedLoopReplay(robot, stretches).errors([values, late])
        assert near.total < 5e-4
        assert far.total > 2.0 * near.total

    def test_begins_again_after_a_gap(self, robot, log):
        kept = np.r_[0:300, 900 : len(log)]
        assert [len(one.time) for one in commands_of(log.samples(kept), robot)] == [300, len(log) - 900]


class TestDoubts:
    def test_no_gains(self, log):
        with pytest.raises(LogError, match=r"pd_gains in the robot file or an overlay, --kp and --kd"):
            identify_drives(di.load_robot("pendulum-2"), [log])

    def test_wrong_gains_are_noticed(self, robot, log):
        doubled = with_gains(robot, np.full(2, 2.0 * KP), np.full(2, 2.0 * KD))
        found = identify_drives(doubled, [log])
        assert any("as gains would show that are 0.5" in warning for warning in found.warnings)
        np.testing.assert_allclose(found.gain_scale, 0.5, rtol=0.1)

    def test_wrong_gains_of_one_joint(self, robot, truth, log):
        """Estimated with the links as they are, its factor makes all other numbers right."""
        other = with_gains(robot, np.array([KP, 0.7 * KP]), np.array([KD, 0.7 * KD]))
        found = identify_drives(other, [log], gains="estimate", delay=0.008)
        scale, std = found["gain2"], found.std[found.names.index("gain2")]
        assert scale == pytest.approx(1.0 / 0.7, abs=4 * std)
        assert found["gain1"] == pytest.approx(1.0, abs=0.05)
        assert found["Ia2"] == pytest.approx(truth.armature[1], rel=0.25)
        assert found.after.total < 3e-3
        assert found.to_dict()["joints"][1]["gain_scale"] == pytest.approx(scale, rel=0.05)

    def test_targets_in_another_order(self, robot, log):
        swapped = {**log.channels, "target1": log.channels["target2"], "target2": log.channels["target1"]}
        with pytest.raises(LogError, match=r"those that follow q1, q2 are target2, target1; put the columns into"):
            identify_drives(robot, [dataclasses.replace(log, channels=swapped)])

    @pytest.mark.parametrize(("kind", "words"), [("target", r"targets look like.*target1\[deg\]"), ("q", r"q1\[deg\]")])
    def test_another_unit(self, robot, log, kind, words):
        degrees = {name: np.rad2deg(x) if name.startswith(kind) else x for name, x in log.channels.items()}
        with pytest.raises(LogError, match=words):
            identify_drives(robot, [dataclasses.replace(log, channels=degrees)])

    def test_targets_beyond_the_torque_limit(self, robot, log):
        far = {name: x + 3.0 if name.startswith("target") else x for name, x in log.channels.items()}
        with pytest.raises(
            LogError, match=r"% of the commands of joint joint\d ask for more than its limit of 200 N·m"
        ):
            identify_drives(robot, [dataclasses.replace(log, channels=far)])

    def test_targets_relative_to_another_pose(self, robot, log):
        other = {name: x - 0.4 if name == "target2" else x for name, x in log.channels.items()}
        found = identify_drives(robot, [dataclasses.replace(log, channels=other)], delay=0.008)
        assert any(re.search(r"bias is larger than any encoder's \(.*2 -0\.\d", x) for x in found.warnings)

    @pytest.mark.parametrize(("trunk", "is_said"), [(0.0, False), (0.6, True)])
    def test_a_trunk_that_moves(self, tmp_path, trunk, is_said):
        machine = quadruped(tmp_path)
        truth = Truth.drawn(12, seed=4)
        log = logged(machine.robot, truth, machine.kp, machine.kd, seconds=5.0, trunk=trunk)
        found = identify_drives(machine.robot, [log], delay=truth.delay)
        assert any("trunk that accelerates" in x for x in found.warnings) == is_said

    def test_gains_that_change(self, robot, log):
        gains = {f"{k}{j}": np.full(len(log), 1.0) for j in (1, 2) for k in ("kp", "kd")}
        gains["kp2"][100:] = 2.0
        with pytest.raises(LogError, match=r"column kp2 changes at 0\.5 s; give logs with one set of gains each"):
            identify_drives(robot, [dataclasses.replace(log, channels={**log.channels, **gains})])

    def test_saturated_torque_is_left_out(self, truth):
        bound = with_gains(with_limits(40.0), np.full(2, KP), np.full(2, KD))
        log = logged(bound, truth, KP, KD)
        found = identify_drives(bound, [log])
        assert max(abs(x) for x in deviations(found, truth, bound).values()) < 5.0
        assert any("commands beyond the torque limit are left out, of joints joint1 (" in x for x in found.warnings)


class TestStorage:
    def test_round_trip(self, found, tmp_path):
        save_drives(found, tmp_path)
        again = load_drives(tmp_path)
        assert again.names == found.names
        np.testing.assert_array_equal(again.values, found.values)
        np.testing.assert_array_equal(again.covariance, found.covariance)
        assert again.to_dict() == found.to_dict()

    def test_damage_is_named(self, found, tmp_path):
        save_drives(found, tmp_path)
        path = tmp_path / "drives.yaml"
        path.write_text(path.read_text().replace("values:", "valves:"))
        with pytest.raises(DrivesFileError, match=r"drives\.yaml: is damaged"):
            load_drives(path)

    def test_pd_gains_of_an_overlay(self, tmp_path):
        for text in ("{kp: 20, kd: [1, 2]}", "{q1: {kp: 20, kd: 1}, q2: {kp: 20, kd: 2}}"):
            (tmp_path / "arm.yaml").write_text(f"base: pendulum-2\npd_gains: {text}\n")
            drive = di.load_robot(tmp_path / "arm.yaml").drive
            assert drive.kp.tolist() == [20.0, 20.0]
            assert drive.kd.tolist() == [1.0, 2.0]
        (tmp_path / "arm.yaml").write_text("base: pendulum-2\npd_gains: {kp: 20}\n")
        with pytest.raises(di.DynidentError, match=r"pd_gains.*needs the key .kd."):
            di.load_robot(tmp_path / "arm.yaml")


def test_training_logs_are_not_held_out(robot, log):
    with pytest.raises(InputError, match="is a training log too"):
        identify_drives(robot, [log, dataclasses.replace(log, role="validation")])
    with pytest.raises(InputError, match="is given twice"):
        identify_drives(robot, [log, log])
