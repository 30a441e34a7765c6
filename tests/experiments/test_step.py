"""Step voltage: the answer and its fits, voltages combined, poses, combinations, the procedure's ways to end."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.step import StepOptions, StepRecord, analyze_steps, fit_response, record_from_log, step_test
from dynident.experiments.step.controller import default_motors, suggest_voltages
from dynident.experiments.step.poses import choose_poses, feels_gravity, inertia_base, inertia_rows, obstacle
from dynident.experiments.step.response import displacement, joint_numbers
from dynident.experiments.step.result import Configuration, solve_inertias
from dynident.plant import Breakaway, Motors, MujocoPlant, Sensors

COUNT = 2.0 * np.pi / 65536
TIME = np.arange(0.0, 1.2, 2.4e-3)
ALONE = np.zeros((1, 1))  # pose of a robot with one joint


@pytest.fixture(scope="module")
def arm():
    return di.load_robot("minnesota")


@pytest.fixture(scope="module")
def joint(arm):
    return arm.lock(q1=0.0, q2=0.0)  # joint 3 alone: quick to simulate


def plant(robot, gain=5.8, **how):
    how.setdefault("sensors", Sensors(resolution=COUNT))
    own = Motors(gain, 1.0, voltage_limit=10.0) if "motors" not in how else how.pop("motors")
    return Bench(MujocoPlant(robot, "plant", sample_time=2.4e-3, motors=own, **how)), own


def step(A, U, onset=0.05, start=0.3):
    return start + displacement(np.maximum(TIME - onset, 0.0), A, U)


class TestResponse:
    @pytest.mark.parametrize(("A", "U"), [(0.9, 3.0), (1e-3, -2.0), (12.0, 40.0)])
    def test_it_solves_the_differential_equation(self, A, U):
        s = np.linspace(0.0, 1.5, 2001)
        theta = displacement(s, A, U)
        h = s[1]
        velocity, acceleration = np.gradient(theta, h), np.gradient(np.gradient(theta, h), h)
        np.testing.assert_allclose((acceleration + A * velocity)[3:-3], U, rtol=2e-4)

    def test_the_series_becomes_the_solution(self):
        s = np.linspace(0.0, 1.2, 50)
        exact = displacement(s, 1.0, 2.0)
        errors = [np.abs(displacement(s, 1.0, 2.0, n) - exact).max() for n in (2, 3, 5, 8)]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 1e-5
        np.testing.assert_allclose(displacement(s, 1.0, 2.0, 2), 2.0 * (s**2 / 2 - s**3 / 6))

    @pytest.mark.parametrize(("A", "U"), [(0.9, 8.0), (0.017, 3.2), (6.0, -30.0)])
    def test_exact_data_give_exact_constants(self, A, U):
        fit = fit_response(TIME, step(A, U), 0.05)
        assert pytest.approx(A, rel=1e-6) == fit.A
        assert pytest.approx(U, rel=1e-7) == fit.U
        np.testing.assert_allclose(fit.at(TIME), step(A, U), atol=1e-9)

    def test_a_late_onset_is_found_and_does_no_harm(self):
        theta = np.round(step(0.97, 8.3, onset=0.081) / COUNT) * COUNT
        fit = fit_response(TIME, theta, 0.05)
        assert fit.onset == pytest.approx(0.081, abs=3e-4)
        assert pytest.approx(8.3, rel=2e-3) == fit.U

    def test_deviations_hold_for_rounded_positions(self):
        rng = np.random.default_rng(1)
        off = []
        for _ in range(25):
            theta = np.round((step(0.03, 2.1) + COUNT * rng.uniform()) / COUNT) * COUNT
            fit = fit_response(TIME, theta, 0.05)
            off.append((fit.A - 0.03) / np.sqrt(fit.covariance[0, 0]))
        assert 0.4 < np.sqrt(np.mean(np.square(off))) < 1.6

    def test_what_does_not_move_or_is_too_short_is_refused(self):
        with pytest.raises(ExperimentError, match="did not move"):
            fit_response(TIME, np.round(step(0.9, 1e-5) / COUNT) * COUNT, 0.05)
        with pytest.raises(ExperimentError, match=r"only .* samples after it began"):
            fit_response(TIME[:40], step(0.9, 8.0)[:40], 0.05)
        with pytest.raises(di.InputError, match="2 to 24"):
            fit_response(TIME, step(0.9, 8.0), 0.05, terms=1)
        with pytest.raises(di.InputError, match="finite"):
            fit_response(TIME, np.full_like(TIME, np.nan), 0.05)


class TestVoltages:
    def fits(self, volts, Me=0.3, B=0.25, Tc=0.4, offset=0.0, K=6.0):
        return [
            fit_response(TIME, step(B / Me, (K * v - Tc * np.sign(v) - offset) / Me), 0.05, what=f"{v}") for v in volts
        ]

    def test_two_voltages_tell_three_numbers(self):
        found, _ = joint_numbers(6.0, [0.4, 0.2], self.fits([0.4, 0.2]))
        assert found.values[:3] == pytest.approx((0.3, 0.25, 0.4), rel=1e-5)

    def test_both_directions_tell_an_offset_too(self):
        volts = [0.4, 0.2, -0.4]
        found, _ = joint_numbers(6.0, volts, self.fits(volts, offset=0.1))
        assert [found[name] for name in ("inertia", "coulomb", "offset")] == pytest.approx((0.3, 0.4, 0.1), rel=1e-4)

    def test_one_voltage_is_refused(self):
        with pytest.raises(di.InputError, match="two different voltages"):
            joint_numbers(6.0, [0.4, 0.4], self.fits([0.4, 0.4]))

    def test_suggested_ones_move_the_arm_within_its_limits(self, arm):
        strong, weak = suggest_voltages(arm, default_motors(arm), 1, 1.2)
        assert 0.0 < weak < strong < 10.0


class TestPoses:
    def test_rows_are_the_diagonal_of_the_mass_matrix(self, arm):
        q = np.array([[0.1, 0.4, -0.7], [1.0, -0.3, 0.5]])
        chi = di.parameters(arm, "rigid,Ia")
        M = di.mass_matrix(arm, q)
        for motor in range(3):
            np.testing.assert_allclose(inertia_rows(arm, q, motor) @ chi, M[:, motor, motor], rtol=1e-12)

    def test_the_minnesota_arm_has_six_combinations(self, arm):
        base = inertia_base(arm, (0, 1, 2), ("rigid",))
        assert base.n == 6
        assert base.names == di.base_parameters(arm, "rigid").names
        given = [arm.base_values["identified"][name] for name in base.names]
        np.testing.assert_allclose(base.values("plant"), given, rtol=1e-5)

    def test_chosen_poses_are_better_conditioned_than_random_ones(self, arm):
        base = inertia_base(arm, (0, 1, 2), ("rigid",))
        chosen, condition = choose_poses(base, 8)
        assert len(chosen) == 8
        assert condition < 15.0
        assert [motor for motor, _ in chosen] == sorted((motor for motor, _ in chosen), reverse=True)
        with pytest.raises(di.InputError, match="at least 6"):
            choose_poses(base, 5)

    def test_a_motor_whose_inertia_changes_as_it_moves_is_reported(self):
        sr400 = di.load_robot("sr400")
        reasons = {name: obstacle(sr400, j) for j, name in enumerate(sr400.joint_names)}
        assert "changes along its own motion" in reasons["joint5"]
        assert reasons["joint1"] == ""

    def test_gravity_acts_where_it_can(self):
        ur10e = di.load_robot("ur10e")
        assert [feels_gravity(ur10e, j) for j in range(3)] == [False, True, True]

    @pytest.mark.parametrize("way", ["sequential", "together"])
    def test_exact_inertias_give_exact_combinations(self, arm, way):
        base = inertia_base(arm, (0, 1, 2), ("rigid",))
        chosen, _ = choose_poses(base, 8)
        measured = [Configuration.of_inertia(j, q, di.mass_matrix(arm, q[None])[0, j, j], 1e-4) for j, q in chosen]
        found, *_ = solve_inertias(base, measured, way)
        assert found.determined.all()
        np.testing.assert_allclose(found.values, base.values("plant"), rtol=1e-9)

    def test_what_poses_do_not_tell_is_open(self, arm):
        base = inertia_base(arm, (0, 1, 2), ("rigid",))
        q = np.zeros(3)
        measured = [Configuration.of_inertia(2, q, 0.27759, 1e-4), Configuration.of_inertia(1, q, 2.4, 1e-4)]
        found, *_ = solve_inertias(base, measured)
        assert set(base.names) - set(found.undetermined) == {"ZZR3"}
        assert np.isinf(found.std[0])


class TestProcedure:
    def test_a_joint_alone(self, joint):
        bench, motors = plant(joint)
        found = step_test(bench, motors, StepOptions(voltages=(0.4, 0.2), poses=ALONE, duration=0.6))
        numbers = {one.name: one for one in found.beside("plant").estimates}
        assert set(numbers) == {"ZZR3", "B3", "Fc3"}
        assert numbers["ZZR3"].value == pytest.approx(0.27759, rel=1e-3)
        assert found.warnings == ()

    def test_damping_is_split_when_back_emf_is_known(self, joint):
        own = Motors(5.8, 1.0, 0.1)
        bench, motors = plant(joint, motors=own)
        found = step_test(bench, motors, StepOptions(voltages=(0.6, 0.3), poses=ALONE, duration=0.8, emf_known=True))
        numbers = {one.name: one.value for one in found.estimates}
        assert numbers["Fv3"] == pytest.approx(0.27, rel=0.02)
        assert numbers["B3"] - numbers["Fv3"] == pytest.approx(5.8 * 0.1)

    def test_static_friction_does_not_get_into_the_numbers(self, arm):
        joint1 = arm.lock(q2=0.0, q3=0.0)
        bench, motors = plant(joint1, gain=11.8, breakaway=Breakaway(1.5))
        found = step_test(bench, motors, StepOptions(voltages=(0.8, 0.5), poses=ALONE))
        numbers = {one.name: one for one in found.beside("plant").estimates}
        assert numbers["Fc1"].value == pytest.approx(2.52, rel=2e-3)

    def test_one_voltage_says_what_it_tells(self, joint):
        bench, motors = plant(joint)
        found = step_test(bench, motors, StepOptions(voltages=(0.4,), poses=ALONE, duration=0.5))
        assert [one.name for one in found.estimates] == ["A3 at 0.4 V", "U3 at 0.4 V"]
        assert found.combinations is None
        assert any("one voltage determines A = B/Me" in warning for warning in found.warnings)

    def test_a_short_record_is_reported(self, arm):
        bench, motors = plant(arm.lock(q1=0.0, q3=0.0), gain=7.8)
        found = step_test(bench, motors, StepOptions(voltages=(0.8, 0.4), poses=ALONE, duration=0.3))
        assert any("too short to determine damping" in warning for warning in found.warnings)

    def test_a_slow_current_is_reported(self, joint):
        bench, motors = plant(joint, motors=Motors(5.8, 1.0, 0.0, 0.03))
        found = step_test(bench, motors, StepOptions(voltages=(0.4, 0.2), poses=ALONE, duration=0.6))
        assert any("L/R is 30 ms" in warning for warning in found.warnings)

    @pytest.mark.parametrize(
        ("volts", "message"),
        [
            ((0.002, 0.001), "did not move it.*more voltage"),
            ((20.0, 10.0), "reached its limit"),
            ((9.9, 5.0), "reached a limit of the robot|too fast"),
        ],
    )
    def test_it_ends_with_a_clear_message_and_the_runs(self, joint, tmp_path, volts, message):
        own = Motors(5.8, 1.0, voltage_limit=10.0)
        machine = MujocoPlant(joint, "plant", sample_time=2.4e-3, motors=own, sensors=Sensors(resolution=COUNT))
        bench = Bench(machine, folder=tmp_path / "runs")
        with pytest.raises(ExperimentError, match=message):
            step_test(bench, own, StepOptions(voltages=volts, poses=ALONE))
        assert len(list((tmp_path / "runs").glob("*.csv"))) == 1

    def test_another_joint_that_moves_ends_it(self, arm):
        bench, motors = plant(arm, gain=[11.8, 7.8, 5.8])
        how = StepOptions(voltages=(1.5, 0.5), joints=["joint3"], poses=np.zeros((1, 3)), bandwidth=3.0)
        with pytest.raises(ExperimentError, match=r"joint joint1, which should be locked, moved by more than 0\.005"):
            step_test(bench, motors, how)

    def test_suggested_voltages_grow_until_it_moves(self, arm):
        # The robot as known has no friction; the machine has.
        known = arm.with_values("smooth", {k: v for k, v in arm.value_set("plant").items() if not k.startswith("F")})
        bench, motors = plant(known.lock(q2=0.0, q3=0.0), gain=11.8)
        found = step_test(bench, motors, StepOptions(duration=0.8, poses=ALONE))
        assert found.friction[0].coulomb[0] == pytest.approx(2.52, rel=0.01)

    def test_the_weight_is_carried_without_delay(self):
        """A voltage that is held for a sample would carry the weight half a sample late: 0.5 % of damping."""
        robot = di.load_robot("pendulum-1")
        heavy = robot.with_values("plant", {**robot.value_set("plant"), "Fv1": 0.2, "Fc1": 0.3})
        bench, own = plant(heavy, gain=2.0)
        found = step_test(bench, own, StepOptions(voltages=(1.0, 0.6), poses=ALONE, duration=0.8, weight_std=0.0))
        numbers = {one.name: one.value for one in found.estimates}
        assert numbers["B1"] == pytest.approx(0.2, rel=5e-3)
        assert numbers["Fc1"] == pytest.approx(0.3, rel=2e-3)
        assert not found.warnings
        records = [record_from_log(run.log(heavy), heavy, own) for run in bench.runs]
        again = analyze_steps(heavy, own, records, StepOptions(weight_std=0.0))
        for one in again.estimates:
            assert one.value == pytest.approx(numbers[one.name], rel=5e-4), one.name

    def test_a_joint_without_damping_is_not_blamed_on_the_record_alone(self, joint):
        slippery = joint.with_values("plant", {**joint.value_set("plant"), "Fv3": 0.0})
        bench, own = plant(slippery)
        found = step_test(bench, own, StepOptions(voltages=(0.4, 0.2), poses=ALONE, duration=0.5))
        assert len(found.warnings) == 1
        assert "too short to determine damping, if there is any:" in found.warnings[0]

    def test_gravity_without_masses_is_refused(self):
        bare = di.load_robot("pendulum-1").with_values("none", {})
        bench = Bench(MujocoPlant(bare, "plant", motors=Motors(1.0, 1.0)))
        with pytest.raises(ExperimentError, match=r"gravity acts on joint.*no masses are known"):
            step_test(bench, Motors(1.0, 1.0), StepOptions(voltages=(1.0, 0.5), poses=ALONE))

    def test_the_papers_series_is_refused_where_gravity_acts(self):
        bench, own = plant(di.load_robot("pendulum-1"), gain=2.0)
        how = StepOptions(voltages=(1.0, 0.6), poses=ALONE, duration=0.3, terms=5)
        with pytest.raises(ExperimentError, match=r"gravity acts on joint joint1.*--taylor"):
            step_test(bench, own, how)
        assert bench.runs == []

    def test_held_joints_that_give_way_are_allowed_for(self, arm):
        """Held softly, joint 1 gives way by counts of its encoder while joint 3 accelerates: 0.5 % of the inertia."""
        bench, own = plant(arm, gain=[11.8, 7.8, 5.8])
        poses = np.array([[0.0, 0.3, 0.6]])
        how = StepOptions(joints=["joint3"], voltages=(1.2, 0.6), poses=poses, duration=0.5, bandwidth=60.0)
        found = step_test(bench, own, how)
        assert np.ptp(bench.runs[0].q[:, 0]) > 5.0 * COUNT
        (config,) = found.configurations
        numbers, true = config.numbers, np.array([0.27759, 0.27, 0.02])
        off = numbers.values[:3] - true
        assert abs(off[0]) < 5e-4 * true[0]
        assert np.abs(off / numbers.std[:3]).max() < 4.0

    def test_bad_options_are_refused(self, arm):
        with pytest.raises(di.InputError, match="weight_std"):
            StepOptions(weight_std=-0.1)
        with pytest.raises(di.InputError, match="duration"):
            StepOptions(duration=0.0)
        bench, motors = plant(arm, gain=[11.8, 7.8, 5.8])
        with pytest.raises(di.UnknownNameError, match="joint9"):
            step_test(bench, motors, StepOptions(joints=["joint9"]))
        with pytest.raises(di.InputError, match="other than zero"):
            step_test(bench, motors, StepOptions(voltages=(0.0, 1.0)))


class TestLogs:
    def test_nothing_need_be_known_of_a_balanced_robot(self, joint):
        """Its inertia is what the steps tell."""
        records = [StepRecord(f"{v} V", 0, [0.0], v, TIME[20], TIME, step(0.9, 20.0 * v, TIME[20])) for v in (0.4, 0.2)]
        found = analyze_steps(joint.with_values("none", {}), Motors(6.0, 1.0), records)
        numbers = found.configurations[0].numbers
        assert numbers.values[:2] == pytest.approx((0.3, 0.27), rel=1e-5)
        assert numbers["coulomb"] == pytest.approx(0.0, abs=1e-5)
        np.testing.assert_allclose(found.configurations[0].curves[0], records[0].position, atol=1e-6)

    def test_a_run_read_back_tells_the_same(self, joint, tmp_path):
        own = Motors(5.8, 1.0)
        machine = MujocoPlant(joint, "plant", sample_time=2.4e-3, motors=own, sensors=Sensors(resolution=COUNT))
        bench = Bench(machine, folder=tmp_path)
        direct = step_test(bench, own, StepOptions(voltages=(0.4, 0.2), poses=ALONE, duration=0.6))
        logs = [di.read_log(path, joint) for path in sorted(tmp_path.glob("*.csv"))]
        again = analyze_steps(joint, own, [record_from_log(log, joint, own) for log in logs])
        for one, other in zip(direct.estimates, again.estimates, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-4)

    def test_what_is_no_step_is_refused(self, arm):
        t = TIME
        q = np.zeros((len(t), 3))
        q[:, 2] = step(0.9, 5.0, start=0.0)

        def log(q, u):
            channels = {f"q{j + 1}": q[:, j] for j in range(3)} | u
            return di.Log("log", "", t, channels)

        own = Motors([11.8, 7.8, 5.8], 1.0)
        with pytest.raises(di.LogError, match="has no column u3"):
            record_from_log(log(q, {}), arm, own)
        with pytest.raises(ExperimentError, match="not a step"):
            record_from_log(log(q, {"u3": t}), arm, own)
        volts = {"u3": np.where(t > 0.05, 0.4, 0.0)}
        assert record_from_log(log(q, volts), arm, own).voltage == pytest.approx(0.4)
        q[:, 0] = 0.1 * t
        with pytest.raises(ExperimentError, match="joint joint1 moved by"):
            record_from_log(log(q, volts), arm, own)

    def test_motion_against_the_voltage_is_refused(self, joint):
        record = StepRecord("run", 0, [0.0], -0.4, 0.05, TIME, step(0.9, 5.0))
        with pytest.raises(ExperimentError, match="moved against its voltage"):
            analyze_steps(joint, Motors(5.8, 1.0), [record])
