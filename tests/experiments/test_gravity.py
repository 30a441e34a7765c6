"""Gravity moments: what gravity determines, averages over both ways, Fourier fits, the recursion, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.gravity.fourier import fits, fourier_fit
from dynident.experiments.gravity.plan import Sweep, plan_sweeps
from dynident.experiments.gravity.slow_runs import slow_run
from dynident.experiments.gravity.structure import gravity_base, gravity_columns, joints_without_weight, stages
from dynident.experiments.options import GravityOptions
from dynident.experiments.protocol import ExperimentError
from dynident.plant import Breakaway, MujocoPlant
from tests.experiments.slow_logs import sweep_log, sweep_logs, there_and_back


@pytest.fixture(scope="module")
def kr5():
    return di.load_robot("kr5-planar")


@pytest.fixture(scope="module")
def base(kr5):
    return gravity_base(kr5)


def pendulum(**how):
    return MujocoPlant(di.load_robot("pendulum-1"), "plant", sample_time=4e-3, step=2e-3, **how)


class TestStructure:
    def test_the_paper_s_six_moments_in_three_stages(self, base):
        assert base.names == ("MXR1", "MY1", "MXR2", "MY2", "MX3", "MY3")
        assert base.expressions[0] == "MX1 + a1 M1 + a1 M2 + a1 M3"  # Table 5
        added = [(stage.joints, [base.names[i] for i in stage.fresh]) for stage in stages(base)]
        assert added == [((2,), ["MX3", "MY3"]), ((1,), ["MXR2", "MY2"]), ((0,), ["MXR1", "MY1"])]

    @pytest.mark.parametrize("name", ["kr5-planar", "sr400", "ur10e", "cylindrical", "panda"])
    def test_they_make_the_whole_weight(self, name):
        robot = di.load_robot(name)
        found = gravity_base(robot)
        q = np.random.default_rng(0).uniform(-0.9, 0.9, (20, len(robot.moving))) + [1 if name == "cylindrical" else 0]
        columns = gravity_columns(robot, q)
        weight = columns[:, :, list(found.independent)] @ found.values()
        np.testing.assert_allclose(weight, di.joint_torque(robot, di.gravity_torque(robot, q)), atol=1e-9)

    def test_a_joint_along_gravity_has_a_reason(self):
        reasons = joints_without_weight(gravity_base(di.load_robot("sr400")))
        assert list(reasons) == ["joint1"]
        assert "parallel to gravity" in reasons["joint1"]

    def test_a_robot_that_no_weight_reaches_is_refused(self):
        with pytest.raises(ExperimentError, match=r"gravity acts on no moving joint.*gravity is \[0.0, 0.0, 0.0\]"):
            gravity_base(di.load_robot("minnesota"))

    def test_two_parameters_that_gravity_cannot_tell_apart_are_their_sum(self):
        found = gravity_base(di.load_robot("cylindrical"))
        assert (found.names, found.expressions) == (("MR2",), ("M2 + M3",))


class TestSweep:
    def test_velocities_and_accelerations_are_derivatives_and_it_comes_back(self):
        sweep = Sweep(1, np.array([0.3, 0.1]), -0.4, 0.6, 0.25)
        t = np.linspace(0.0, sweep.duration, 8001)
        q, dq, ddq = sweep.sample(t)
        np.testing.assert_allclose(np.gradient(q[:, 1], t)[2:-2], dq[2:-2, 1], atol=1e-5)
        np.testing.assert_allclose(np.gradient(dq[:, 1], t)[2:-2], ddq[2:-2, 1], atol=3e-3)
        np.testing.assert_allclose(q[[0, -1], 1], -0.4, atol=1e-12)
        assert q[:, 1].max() == pytest.approx(0.6)
        assert np.abs(dq).max() == pytest.approx(0.25)
        assert set(q[:, 0]) == {0.3}

    def test_a_range_too_short_for_its_velocity_is_still_gone(self):
        q, dq, _ = Sweep(0, np.array([0.0]), -0.05, 0.05, 1.0).sample(np.linspace(0.0, 9.0, 500))
        assert q.max() == pytest.approx(0.05)
        assert np.abs(dq).max() < 0.11

    def test_one_without_range_or_velocity_is_refused(self):
        with pytest.raises(di.InputError, match="expected a range"):
            Sweep(0, np.array([0.0]), 0.1, 0.1, 1.0)
        with pytest.raises(di.InputError, match="positive number"):
            Sweep(0, np.array([0.0]), 0.1, 0.2, 0.0)


def made_run(torque, lower=-1.0, upper=1.1, velocity=0.3):
    q = there_and_back(lower, upper, velocity)
    return slow_run(
        "made", ("a",), 0, 0.012 * np.arange(len(q)), q[:, None], torque(q, np.sign(np.gradient(q)))[:, None]
    )


class TestAverages:
    def test_half_the_sum_is_weight_and_half_the_difference_friction(self):
        run = made_run(lambda q, way: 3.0 * np.sin(q) + 7.0 * np.cos(q) + 0.5 + (4.0 + q) * way)
        fit = fourier_fit(run, 1)
        np.testing.assert_allclose(fit.coefficients, [0.5, 3.0, 7.0], atol=2e-3)  # friction changes within a place
        exact = fourier_fit(made_run(lambda q, way: 3.0 * np.sin(q) + 7.0 * np.cos(q) + 0.5 + 4.0 * way), 1)
        np.testing.assert_allclose(exact.coefficients, [0.5, 3.0, 7.0], atol=1e-12)
        np.testing.assert_allclose(run.half_difference(run.tau), 4.0 + run.angles, atol=0.02)

    def test_ramps_are_left_out(self):
        sweep = Sweep(0, np.array([0.0]), -1.0, 1.0, 0.3)
        t = np.arange(0.0, sweep.duration, 0.01)
        q, _, ddq = sweep.sample(t)
        run = slow_run("ramps", ("a",), 0, t, q, 50.0 * ddq)
        assert np.abs(run.tau).max() < 50.0 * 0.05
        assert run.range[1] < 0.95

    def test_an_oscillation_has_its_inertia_fitted_along(self):
        t = np.arange(0.0, 20.0, 0.01)
        q, ddq = 1.5 * np.sin(0.6 * t), -1.5 * 0.36 * np.sin(0.6 * t)
        tau = 8.0 * np.cos(q) + 2.0 * ddq + 3.0 * np.sign(np.cos(0.6 * t))
        fit = fourier_fit(slow_run("swing", ("a",), 0, t, q[:, None], tau[:, None]), 1)
        assert fit.names == ("a0", "a1", "b1", "inertia")
        np.testing.assert_allclose(fit.coefficients[:3], [0.0, 0.0, 8.0], atol=0.03)  # 0.7 N·m were inertia
        assert fit.coefficients[3] == pytest.approx(2.0, abs=0.1)

    def test_one_way_only_is_refused(self):
        q = np.linspace(-1.0, 1.0, 1000)
        with pytest.raises(ExperimentError, match=r"joint a moves one way only.*record both"):
            slow_run("up", ("a",), 0, 0.01 * np.arange(1000), q[:, None], q[:, None])

    def test_too_few_samples_are_refused(self):
        q = there_and_back(-1.0, 1.0, 9.0, 0.02)
        with pytest.raises(
            ExperimentError, match="samples at angles that it cruises over both ways, expected at least 32"
        ):
            slow_run("few", ("a",), 0, 0.02 * np.arange(len(q)), q[:, None], q[:, None])

    def test_a_joint_at_rest_and_one_that_sticks_are_refused(self):
        t = 0.01 * np.arange(2000)
        with pytest.raises(ExperimentError, match="joint a does not move by itself"):
            slow_run("rest", ("a",), 0, t, np.zeros((2000, 1)), np.zeros((2000, 1)))
        jumps = np.abs(np.round(10.0 - t) / 10.0 * 2.0 - 1.0)  # a fifth of a radian each second, at rest in between
        with pytest.raises(ExperimentError, match=r"sticks and slips.*sweep faster"):
            slow_run("jumps", ("a",), 0, t, jumps[:, None], jumps[:, None])


class TestFourier:
    def test_a_second_harmonic_is_found_and_reported(self, kr5):
        logs = sweep_logs(
            kr5, [0.5, -0.6, 0.2], lower=-1.6, upper=1.7, friction=2.0, torque=lambda q, way: 3.0 * np.cos(2.0 * q)
        )
        first = di.experiments.gravity_from_logs(kr5, logs)
        assert any("joint5: harmonic 2 of 3 N·m" in text and "--order" in text for text in first.warnings)
        second = di.experiments.gravity_from_logs(kr5, logs, order="auto")
        assert [one.order for one in second.runs] == [2, 2, 2]
        np.testing.assert_allclose(second.values, second.base.values(), atol=1e-6)
        assert np.abs(first.values - first.base.values()).max() > 0.2

    def test_deviations_are_those_that_noise_makes(self):
        rng = np.random.default_rng(3)
        found = [made_run(lambda q, way: 5.0 * np.cos(q) + rng.normal(size=len(q)) + way) for _ in range(60)]
        each = [fourier_fit(run, 1) for run in found]
        spread = np.std([one.coefficients for one in each], axis=0)
        np.testing.assert_allclose(spread, np.mean([one.std for one in each], axis=0), rtol=0.35)

    def test_a_narrow_range_does_not_tell_higher_orders(self):
        assert [one.order for one in fits(made_run(lambda q, way: np.cos(q), -2.0, 2.0))] == [1, 2, 3]
        assert [one.order for one in fits(made_run(lambda q, way: np.cos(q), -0.3, 0.3, 0.1))] == [1]


class TestLogs:
    def test_the_recursion_is_exact(self, kr5, base):
        found = di.experiments.gravity_from_logs(kr5, sweep_logs(kr5, [0.5, -0.6, 0.2], friction=9.0))
        np.testing.assert_allclose(found.values, base.values(), atol=1e-9)
        assert found.warnings == ()
        assert all(one.friction.level == pytest.approx(9.0) for one in found.runs)

    @pytest.mark.parametrize("name", ["ur10e", "puma560", "sr400"])
    def test_six_joints_loops_and_coupled_drives(self, name):
        robot = di.load_robot(name)
        pose = [0.2, -1.4, 0.5, 0.6, 0.7, 0.1] if name == "sr400" else [0.2, 0.5, 0.4, 0.6, 0.7, 0.3]
        found = di.experiments.gravity_from_logs(robot, sweep_logs(robot, pose, friction=1.0))
        np.testing.assert_allclose(found.values, found.base.values(), atol=1e-8)
        assert len(found.skipped) == 1

    def test_held_joints_may_sag(self, kr5, base):
        logs = sweep_logs(kr5, [0.5, -0.6, 0.2])
        sagging = []
        for j, log in enumerate(logs):
            q = log.array("q", kr5)
            for i in {0, 1, 2} - {j}:
                q[:, i] += 0.02 * np.cos(q[:, j])
            channels = {f"q{i + 1}": q[:, i] for i in range(3)}
            channels |= {f"tau{i + 1}": x for i, x in enumerate(di.gravity_torque(kr5, q).T)}
            sagging.append(di.Log("sag", "sag", log.time, channels))
        np.testing.assert_allclose(di.experiments.gravity_from_logs(kr5, sagging).values, base.values(), atol=1e-9)

    def test_an_inner_joint_alone_leans_on_what_is_not_known(self, kr5):
        found = di.experiments.gravity_from_logs(kr5, [sweep_log(kr5, 1, [0.5, -0.6, 0.2])])
        assert found.estimates == ()
        assert any("do not determine MXR2, MY2, MX3, MY3" in text for text in found.warnings)

    def test_friction_that_depends_on_the_load_is_reported(self, kr5):
        def heavy(q, way):
            pose = np.column_stack([np.full_like(q, 0.5), np.full_like(q, -0.6), q])
            return 0.2 * way * np.abs(di.gravity_torque(kr5, pose)[:, 2])

        found = di.experiments.gravity_from_logs(kr5, [sweep_log(kr5, 2, [0.5, -0.6, 0.2], friction=4.0, torque=heavy)])
        assert any("joint5: friction depends on the load" in text and "+0.2 per" in text for text in found.warnings)
        assert found.runs[0].friction.slope == pytest.approx(0.2, abs=1e-3)

    def test_a_narrow_range_is_refused_with_its_condition_unless_two_poses_help(self, kr5):
        narrow = [sweep_log(kr5, 2, [0.5, -0.6, 0.0], -0.12, 0.12, 0.05)]
        with pytest.raises(ExperimentError, match=r"covers 10 degrees.*condition \d+, at most 400.*two poses"):
            di.experiments.gravity_from_logs(kr5, narrow)
        both = [*narrow, sweep_log(kr5, 2, [0.5, 0.9, 0.0], -0.12, 0.12, 0.05)]
        found = di.experiments.gravity_from_logs(kr5, both)
        np.testing.assert_allclose(found.values[4:], found.base.values()[4:], atol=1e-6)
        assert any("narrow (condition" in text for text in found.warnings)

    def test_logs_without_a_slow_run_are_refused_with_reasons(self, kr5):
        log = sweep_log(kr5, 2, [0.5, -0.6, 0.2])
        with pytest.raises(
            ExperimentError, match="no log holds a slow run of one joint: made: joint joint5 moves one way"
        ):
            di.experiments.gravity_from_logs(kr5, [log.window(0.0, 6.5)])
        with pytest.raises(ExperimentError, match="no joint that carries weight moves by itself"):
            di.experiments.gravity_from_logs(kr5, [log.window(0.0, 0.5)])

    def test_a_joint_along_gravity_is_refused_when_asked_for(self):
        robot = di.load_robot("ur10e")
        with pytest.raises(ExperimentError, match=r"shoulder_pan has its axis parallel to gravity.*leave it out"):
            di.experiments.gravity_from_logs(robot, [], joints=["q1"])

    def test_an_order_that_is_none_is_refused(self, kr5):
        with pytest.raises(di.InputError, match="order is 7; expected auto or 1 to 3"):
            di.experiments.gravity_from_logs(kr5, [], order=7)


class TestPlan:
    def test_poses_make_every_moment_show(self):
        base = gravity_base(di.load_robot("puma560"))
        sweeps, _ = plan_sweeps(base, GravityOptions())
        assert [sweep.joint for sweep in sweeps] == [5, 4, 3, 2, 1]
        for sweep in sweeps:
            q = np.tile(sweep.pose, (30, 1))
            q[:, sweep.joint] = np.linspace(sweep.lower, sweep.upper, 30)
            assert np.ptp(gravity_columns(base.robot, q)[:, sweep.joint], axis=0).max() > 3.0  # of 9.81

    def test_limits_shorten_the_range_with_a_note(self):
        (sweep,), notes = plan_sweeps(gravity_base(di.load_robot("sr400")), GravityOptions(joints=["joint2"]))
        assert (sweep.lower, sweep.upper) == pytest.approx((-2.25, -0.85))
        assert any("joint2: its limits shorten the range from 120 to" in note for note in notes)

    def test_a_narrow_span_gets_a_second_pose(self, base):
        assert len(plan_sweeps(base, GravityOptions(joints=["q3"], span=0.3))[0]) == 2
        (one,), _ = plan_sweeps(base, GravityOptions(joints=["q3"]))
        assert one.joint == 2

    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ({"span": -1.0}, "span is -1.0; expected a positive number"),
            ({"least_poses": 9}, "9; expected 1 to 4"),
            ({"poses": [{"q1": 9.0}]}, "q1 is 9, beyond its limits"),
            ({"poses": [{"q1": np.nan}]}, "expected a finite number"),
            ({"poses": [{"q7": 0.0}]}, "unknown joint of a pose 'q7'"),
            ({"joints": ["elbow"]}, "unknown joint to sweep 'elbow'"),
        ],
    )
    def test_nonsense_is_refused(self, base, how, words):
        with pytest.raises(di.DynidentError, match=words):
            plan_sweeps(base, GravityOptions(**how))


class TestMachine:
    def test_a_pendulum_that_nobody_weighed(self):
        robot = di.load_robot("pendulum-1")
        more = {"M1": 2.0, "MX1": 0.8, "MY1": 0.1, "XX1": 0.05, "YY1": 0.6, "ZZ1": 0.6}  # the controller does not know
        heavy = {**robot.value_set("plant"), **more}
        found = di.experiments.gravity_moments(
            MujocoPlant(robot, heavy, sample_time=4e-3, step=2e-3), sweep_velocity=0.5, true=heavy
        )
        np.testing.assert_allclose(found.values, [0.8, 0.1], atol=1e-3)
        np.testing.assert_allclose(list(found.true.values()), [0.8, 0.1])

    def test_a_bound_shortens_the_range_and_says_so(self):
        plant = pendulum()
        tight = Bounds(np.array([-9.0]), np.array([0.5]), np.array([9.0]))
        bench = Bench(plant, bounds=tight)
        found = di.experiments.gravity_moments(bench, sweep_velocity=0.5)
        assert [run.end for run in bench.runs] == ["bound", "done"]
        assert any("left its bounds" in note and "was shortened from" in note for note in found.notes)
        np.testing.assert_allclose(found.values, found.base.values("plant"), atol=2e-3)

    def test_too_little_range_or_torque_ends_safely_with_the_runs_kept(self, tmp_path):
        tight = Bounds(np.array([-9.0]), np.array([-1.2]), np.array([9.0]))
        bench = Bench(pendulum(), bounds=tight, folder=tmp_path / "runs")
        with pytest.raises(ExperimentError, match=r"left its bounds at t = .* too short; choose another pose"):
            di.experiments.gravity_moments(bench, sweep_velocity=0.5)
        assert len(list((tmp_path / "runs").glob("*.csv"))) == 1
        weak = Bench(pendulum(torque_limits=[2.0]))
        with pytest.raises(ExperimentError, match=r"reached its limit at t = "):
            di.experiments.gravity_moments(weak, sweep_velocity=0.5)
        with pytest.raises(di.InputError, match="stopped; reset"):
            weak.plant.step()

    def test_a_held_joint_without_the_torque_is_named(self, kr5):
        plant = MujocoPlant(kr5, "plant", sample_time=0.012, step=2e-3, torque_limits=[900.0, 50.0, 50.0])
        with pytest.raises(ExperimentError, match=r"joint3 reached its limit .* joint3 should have been held"):
            di.experiments.gravity_moments(plant, joints=["q3"])

    def test_static_friction_that_holds_it_is_reported(self):
        robot = di.load_robot("pendulum-1")
        stiff = robot.with_values("stuck", {**robot.value_set("plant"), "Fc1": 5.0})
        plant = MujocoPlant(stiff, "stuck", sample_time=4e-3, step=2e-3, breakaway=Breakaway(4.0))
        with pytest.raises(ExperimentError, match=r"sticks and slips|friction or a brake holds it"):
            di.experiments.gravity_moments(plant, sweep_velocity=0.1, span=0.15)

    def test_a_robot_without_masses_needs_a_controller(self):
        robot = di.load_robot("pendulum-1").with_values("none", {})
        with pytest.raises(di.InputError, match=r"joint1 moves no inertia.*control="):
            di.experiments.gravity_moments(MujocoPlant(robot, "plant", sample_time=4e-3, step=2e-3))

    def test_any_controller_will_do(self):
        from dynident.plant import PD

        found = di.experiments.gravity_moments(
            pendulum(), sweep_velocity=0.5, control=lambda robot, sweep: PD(robot, sweep, bandwidth=40.0)
        )
        np.testing.assert_allclose(found.values, found.base.values("plant"), atol=2e-3)
