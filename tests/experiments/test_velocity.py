"""Constant velocity: plans within limits, points without gravity, fits that say what they do not know."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.friction.fitting import fit_friction, friction_columns, shapes
from dynident.experiments.friction.groups import joint_groups, quiet_pose
from dynident.experiments.friction.plan import ThereAndBack, plan_levels
from dynident.experiments.friction.points import Point, Stretch, both_ways, unsteady
from dynident.experiments.friction.result import VelocityFriction, residual_shape
from dynident.experiments.options import FrictionOptions
from dynident.experiments.protocol import ExperimentError
from dynident.plant import Breakaway, MujocoPlant, Sensors
from dynident.report.experiments.friction import section, sections

FRICTION = {"Fv1": 0.5, "Fc1": 1.0, "Fo1": 0.2}
RANGE = {"q1": (-1.5, 1.5)}
VELOCITIES = (0.2, 0.5, 1.0)


@pytest.fixture(scope="module")
def pendulum():
    return di.load_robot("pendulum-1")


@pytest.fixture(scope="module")
def coupled():
    return joint_groups(di.load_robot("sr400"), ["q5", "q6"])[0]


def plant(robot, *, more=None, **how):
    sensors = Sensors(torque_noise=0.02, resolution=1e-4)
    return MujocoPlant(
        robot, {**robot.value_set(), **FRICTION, **(more or {})}, sample_time=2e-3, sensors=sensors, **how
    )


def made_points(group, velocities, values, *, odd=True, noise=0.01, extra=None, seed=0):
    """Points of a machine with given parameters; `extra` adds torque at the velocity of a single joint."""
    rng = np.random.default_rng(seed)
    velocity = np.atleast_2d(np.array(velocities, dtype=float).T).T
    names, _, columns = friction_columns(group, velocity, np.full(len(velocity), float(odd)))
    torque = columns @ np.array([values[name] for name in names])
    torque = torque if extra is None else torque + extra(velocity)
    noises = rng.normal(scale=noise, size=(len(velocity), 8, velocity.shape[1]))
    return [
        Point(f"run {k}", v, t + e, odd, 0.5) for k, (v, t, e) in enumerate(zip(velocity, torque, noises, strict=True))
    ]


# --- which joints -----------------------------------------------------------------------------------------------------


def test_joints_that_share_friction_are_tested_together():
    robot = di.load_robot("sr400")
    assert [group.variables for group in joint_groups(robot)] == [("q1",), ("q2",), ("q4",), ("q5", "q6"), ("q7",)]
    (group,) = joint_groups(robot, ["joint5", "q6"])
    assert group.outputs == ("joint5", "m6")
    assert {element.label for element in group.elements} == {"5", "m6", "6"}
    with pytest.raises(di.InputError, match=r"q5 shares friction with q6.*--joints q5,q6"):
        joint_groups(robot, ["q5"])
    with pytest.raises(di.UnknownNameError, match="q9"):
        joint_groups(robot, ["q9"])


def test_equation_8_is_what_the_columns_say(coupled):
    """Written by hand from the paper."""
    velocity = np.array([[1.0, 2.0], [-3.0, 0.5], [0.7, -0.2]])
    F = {"Fv5": 0.11, "Fc5": 1.3, "Fv6": 0.034, "Fc6": -0.4, "Fvm6": 0.14, "Fcm6": 0.92}
    names, _, columns = friction_columns(coupled, velocity, np.ones(3))
    assert set(names) == set(F)
    q5, q6 = velocity.T
    m6 = q5 + q6
    between = F["Fc6"] * np.sign(q6) + F["Fv6"] * q6
    wanted = [F["Fc5"] * np.sign(q5) + F["Fv5"] * q5 + between, F["Fcm6"] * np.sign(m6) + F["Fvm6"] * m6 - between]
    found = columns @ np.array([F[name] for name in names])
    np.testing.assert_allclose(found, np.array(wanted).T, atol=1e-12)


# --- plans ------------------------------------------------------------------------------------------------------------


def test_a_run_goes_there_and_back_over_the_same_positions():
    motion = ThereAndBack([0.0, 1.0], [0.8, 0.0], 0.9, ramp=0.3, rest=0.1, settle=0.2)
    t = np.linspace(0.0, motion.duration, 4001)
    q, dq, ddq = motion.sample(t)
    np.testing.assert_allclose(np.gradient(q[:, 0], t)[1:-1], dq[1:-1, 0], atol=2e-3)
    np.testing.assert_allclose(np.gradient(dq[:, 0], t)[1:-1], ddq[1:-1, 0], atol=2e-2)
    np.testing.assert_allclose(q[-1], q[0], atol=1e-12)
    np.testing.assert_array_equal(q[:, 1], 1.0)
    reached = []
    for (start, stop), velocity in zip(motion.windows, (0.8, -0.8), strict=True):
        inside = (t >= start) & (t <= stop)
        np.testing.assert_allclose(dq[inside, 0], velocity, atol=1e-9)
        reached.append((q[inside, 0].min(), q[inside, 0].max()))
    shared = min(top for _, top in reached) - max(low for low, _ in reached)
    assert shared == pytest.approx(0.8 * (0.9 - 2.0 * 0.2), abs=2e-3)


def test_plans_stay_within_limits_and_say_why_not():
    robot = di.load_robot("ur10e")
    (group,) = joint_groups(robot, ["q3"])
    bounds, pose = Bounds.of(robot), np.zeros(6)
    levels, left_out = plan_levels(group, bounds, pose, timing=FrictionOptions())
    assert len(levels) == 6
    assert not left_out
    for level in levels:
        q, dq, _ = level.sample(np.linspace(0.0, level.duration, 200))
        assert np.all((q[:, 2] > bounds.lower[2]) & (q[:, 2] < bounds.upper[2]))
        assert np.abs(dq[:, 2]).max() < bounds.velocity[2]
    with pytest.raises(di.InputError, match=r"faster than 95% of its limit"):
        plan_levels(group, bounds, pose, velocities=[[0.5, 4.0]], timing=FrictionOptions())
    with pytest.raises(
        di.InputError, match=r"range of elbow is too short to reach this velocity.*at most 0.2222 rad/s"
    ):
        plan_levels(group, bounds, pose, velocities=[[1.0]], ranges={"q3": (0.0, 0.2)}, timing=FrictionOptions())
    with pytest.raises(di.InputError, match="range of q3 is 0 to 4"):
        plan_levels(group, bounds, pose, ranges={"q3": (0.0, 4.0)}, timing=FrictionOptions())
    with pytest.raises(di.InputError, match="positive"):
        plan_levels(group, bounds, pose, velocities=[[-1.0]], timing=FrictionOptions())


def test_two_coupled_joints_get_every_pair_but_those_at_which_an_element_rests(coupled):
    bounds, pose = Bounds.of(coupled.robot), np.zeros(6)
    levels, left_out = plan_levels(coupled, bounds, pose, velocities=[[1.0, 2.0], [1.0]], timing=FrictionOptions())
    assert {tuple(np.round(level.velocity[list(coupled.places)], 6)) for level in levels} == {
        (1.0, -2.0),
        (2.0, -1.0),
        (2.0, -3.0),
    }
    assert len(left_out) == 1
    assert "element 6 would rest" in left_out[0]


def test_slow_joints_get_longer_to_settle(pendulum):
    (group,) = joint_groups(pendulum)
    bounds, pose, how = Bounds.of(pendulum), np.zeros(1), {"timing": FrictionOptions()}
    slow, fast = plan_levels(group, bounds, pose, velocities=[[0.01, 1.0]], **how)[0]
    for level, settle in ((slow, 4.0), (fast, 0.2)):
        (start, stop), _ = level.windows
        assert start == pytest.approx(0.1 + 0.3 + settle)
        assert stop - start == pytest.approx(0.6 + settle)
    with pytest.raises(di.InputError, match="too short to settle"):
        plan_levels(group, bounds, pose, velocities=[[0.01]], ranges={"q1": (0.0, 0.05)}, **how)


def test_other_joints_are_held_where_gravity_does_least():
    robot = di.load_robot("ur10e")
    (group,) = joint_groups(robot, ["q4"])
    bounds, span = Bounds.of(robot), np.array([[-1.0, 1.0]])
    pose = quiet_pose(group, bounds, span, {"q2": -1.2})
    assert pose[1] == -1.2

    def load(pose):
        q = np.tile(pose, (5, 1))
        q[:, 3] = np.linspace(-1.0, 1.0, 5)
        return np.sqrt(np.mean(di.gravity_torque(robot, q)[:, 3] ** 2))

    assert load(quiet_pose(group, bounds, span)) <= load(np.zeros(6)) + 1e-9
    with pytest.raises(di.InputError, match="its limits are"):
        quiet_pose(group, bounds, span, {"q2": 9.0})


# --- points -----------------------------------------------------------------------------------------------------------


def test_half_the_difference_of_both_ways_is_friction_without_gravity():
    t = np.linspace(0.0, 1.0, 801)
    q = 0.5 * t[:, None]
    gravity = lambda x: 30.0 * np.sin(3.0 * x) + 2.0  # noqa: E731
    there = Stretch("a", t, q, gravity(q) + 1.5)
    back = Stretch("a", t, q[::-1], gravity(q[::-1]) - 1.5)
    point = both_ways(there, back)
    assert point.odd
    np.testing.assert_allclose(point.velocity, [0.5], atol=1e-9)
    np.testing.assert_allclose(point.torque, [1.5], atol=0.02)
    assert both_ways(there, Stretch("a", t, q[::-1] + 2.0, back.tau)) is None


def test_velocity_that_is_not_constant_is_reported():
    t = np.linspace(0.0, 1.0, 501)
    steady = Stretch("a", t, 0.2 * t[:, None], np.zeros((501, 1)))
    assert unsteady(steady, np.array([0.2]), ["q1"]) == ""
    assert unsteady(Stretch("a", t, np.round(steady.q, 3), steady.tau), np.array([0.2]), ["q1"]) == ""
    part = 10.0 * t - np.floor(10.0 * t)  # rests most of a tenth of a second, then slips
    slipping = Stretch("a", t, 0.02 * (np.floor(10.0 * t) + np.maximum(0.0, 4.0 * part - 3.0))[:, None], steady.tau)
    assert "sticks and slips" in unsteady(slipping, np.array([0.2]), ["q1"])
    assert "does not move" in unsteady(Stretch("a", t, 0.0 * steady.q, steady.tau), np.array([0.2]), ["q1"])
    assert "samples at constant velocity" in unsteady(
        Stretch("a", t[:9], steady.q[:9], steady.tau[:9]), np.ones(1), ["q"]
    )


# --- fits -------------------------------------------------------------------------------------------------------------

TABLE4 = {"Fv5": 0.11, "Fc5": 1.3, "Fv6": 0.034, "Fc6": -0.4, "Fvm6": 0.14, "Fcm6": 0.92}
GRID = [(a, b - a) for a in (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0) for b in (0.8, 2.4, 3.6)]  # q5', q6'


def test_six_parameters_and_the_jumps_of_figure_2(coupled):
    fit = fit_friction(coupled, made_points(coupled, GRID, TABLE4))
    assert fit.rank == 6
    for name, value in TABLE4.items():
        assert abs(fit[name] - value) < 4.0 * fit.std[fit.names.index(name)], name
    assert not fit.misfit.matters
    for row, level, at in ((0, 2.4, 2.4), (1, -3.0, -3.0)):
        one = section(fit, row, level)
        assert len(one.velocity) >= 3
        height = {round(x, 6): h for x, h in one.jumps}[at]
        assert abs(height) == pytest.approx(2.0 * abs(fit["Fc6"]), abs=1e-4)
        inside = np.isfinite(one.line)
        np.testing.assert_allclose(
            np.interp(one.velocity, one.line_velocity[inside], one.line[inside]), one.torque, atol=0.05
        )


def test_one_sign_of_the_product_leaves_parameters_open(coupled):
    # The line of Fig. 2, qm6' = 2.4, where q5' q6' > 0: rank 4.
    line = [(a, 2.4 - a) for a in (0.5, 1.0, 1.5, 2.0)]
    fit = fit_friction(coupled, made_points(coupled, line, TABLE4))
    assert fit.rank == 4
    assert set(fit.undetermined) == {"Fc5", "Fc6", "Fvm6", "Fcm6"}
    # Several velocities of motor 6 part its viscous from its Coulomb friction, no more.
    fit = fit_friction(coupled, made_points(coupled, [*line, (1.0, 2.0), (2.0, 0.3)], TABLE4))
    assert fit.rank == 5
    assert set(fit.undetermined) == {"Fc5", "Fc6", "Fcm6"}
    assert np.isinf(fit.std[fit.names.index("Fc5")])
    np.testing.assert_allclose(np.abs(fit.open[fit.open != 0.0]), 1.0, atol=0.05)
    (warning,) = VelocityFriction.of("", (fit,)).warnings
    assert "not determined (rank 5 of 6)" in warning
    assert "both signs are needed" in warning


@pytest.mark.parametrize(
    ("velocities", "open_", "reason"),
    [
        ([0.2, 0.5, 1.0], {"Fc1", "Fo1"}, "go in one direction"),
        ([0.5, -0.5], {"Fv1", "Fc1"}, "have one velocity"),
    ],
)
def test_what_one_direction_or_one_velocity_does_not_tell(pendulum, velocities, open_, reason):
    (group,) = joint_groups(pendulum)
    fit = fit_friction(group, made_points(group, velocities, FRICTION, odd=False))
    assert set(fit.undetermined) == open_
    assert fit.rank == 2
    found = VelocityFriction.of("", (fit,))
    assert any(reason in warning for warning in found.warnings)
    printed = {one["name"]: one for one in found.as_dict()["estimates"]}
    assert all(printed[name]["std"] is None for name in open_)
    known = fit["Fc1"] + fit["Fo1"] if "Fo1" in open_ else fit["Fc1"] + 0.5 * fit["Fv1"] - 0.05
    assert known == pytest.approx(1.2, abs=0.02)  # the combination that the data does determine


@pytest.mark.parametrize(
    ("extra", "law"),
    [
        (lambda v: 0.6 * np.sign(v) * np.exp(-((v / 0.1) ** 2)), "stribeck(0.1)"),
        (lambda v: -0.6 * np.sign(v) * np.exp(-((v / 0.1) ** 2)), "sign(0.1)"),
        (lambda v: 0.5 * v * np.abs(v), "quadratic"),
        (lambda v: 0.4 * v**3, "cubic"),
    ],
)
def test_a_misfit_is_reported_against_the_scatter_and_its_law_is_found(pendulum, extra, law):
    (group,) = joint_groups(pendulum)
    velocities = [0.03, 0.06, 0.12, 0.3, 0.6, 1.0, 1.5]
    fit = fit_friction(group, made_points(group, velocities, FRICTION, extra=extra))
    assert fit.misfit.matters
    assert fit.misfit.chance < 1e-6
    shape = residual_shape(fit)
    assert shape.law.partition("(")[0] == law.partition("(")[0]
    better = fit_friction(group, fit.points, shapes(law))
    assert better.misfit.ratio < 0.1 * fit.misfit.ratio
    (warning,) = VelocityFriction.of("", (fit,)).warnings
    assert "times the scatter" in warning
    assert f"--friction '{shape.law}'" in warning


def test_without_a_misfit_nothing_is_suggested(pendulum):
    (group,) = joint_groups(pendulum)
    for seed in range(30):
        fit = fit_friction(group, made_points(group, [0.03, 0.1, 0.3, 0.6, 1.0], FRICTION, seed=seed))
        assert residual_shape(fit) is None
    with pytest.raises(di.InputError, match="does not show at constant velocity"):
        shapes("stop(0.001)")


def test_friction_that_drives_is_reported(pendulum):
    (group,) = joint_groups(pendulum)
    wrong = made_points(group, [0.2, 1.0], {"Fv1": -0.5, "Fc1": -1.0, "Fo1": 0.0})
    assert any(
        "would drive the machine" in one for one in VelocityFriction.of("", (fit_friction(group, wrong),)).warnings
    )


# --- on a machine -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(pendulum):
    bench = Bench(plant(pendulum))
    return di.experiments.velocity_friction(bench, ["q1"], velocities=VELOCITIES, ranges=RANGE), bench


def test_gravity_cancels_between_both_directions(measured):
    found, bench = measured
    assert [run.end for run in bench.runs] == ["done"] * 3
    assert found["Fv1"].value == pytest.approx(0.5, abs=0.01)
    assert found["Fc1"].value == pytest.approx(1.0, abs=0.01)
    assert found.warnings == ()
    (one,) = sections(found.fits[0])
    assert len(one.velocity) == 6  # both directions of three velocities
    with pytest.raises(di.UnknownNameError):
        found["Fo1"]  # which cancels with gravity


def test_noise_is_not_the_same_in_every_run(measured):
    noise = [np.diff(run.tau[5:45, 0]) for run in measured[1].runs[:2]]  # at rest before they start
    assert abs(np.corrcoef(*noise)[0, 1]) < 0.6


def test_logs_of_the_runs_give_the_same(pendulum, measured):
    found, bench = measured
    logs = [run.log(pendulum) for run in bench.runs]
    again = di.experiments.velocity_friction_from_logs(pendulum, logs)
    known = di.experiments.velocity_friction_from_logs(pendulum, logs, gravity="model")
    for name in ("Fv1", "Fc1"):
        assert again[name].value == pytest.approx(found[name].value, abs=0.01)
        assert known[name].value == pytest.approx(found[name].value, abs=0.01)
    assert known["Fo1"].value == pytest.approx(0.2, abs=0.01)


def test_a_log_in_one_direction_and_logs_that_cannot_be_used(pendulum, measured):
    there = measured[1].runs[0].log(pendulum)
    half = di.experiments.velocity_friction_from_logs(
        pendulum, [_part(run.log(pendulum), run.time[-1] / 2.0) for run in measured[1].runs], gravity="model"
    )
    assert set(half.fits[0].undetermined) == {"Fc1", "Fo1"}
    still = di.Log("still", "still", there.time, {"q1": 0.0 * there.time, "tau1": 0.0 * there.time})
    with pytest.raises(ExperimentError, match="no joint moves alone"):
        di.experiments.velocity_friction_from_logs(pendulum, [still])
    swing = np.sin(there.time)
    sweep = di.Log("sweep", "sweep", there.time, {"q1": swing, "tau1": swing})
    with pytest.raises(ExperimentError, match=r"does not hold its velocities.*--fit"):
        di.experiments.velocity_friction_from_logs(pendulum, [sweep])


def _part(log, stop):
    inside = log.time < stop
    return di.Log(log.source, log.digest + "part", log.time[inside], {k: v[inside] for k, v in log.channels.items()})


def test_slow_sweeps_with_known_links(pendulum):
    t = np.arange(0.0, 40.0, 0.01)
    q, dq, ddq = (a * f(0.7 * t)[:, None] for a, f in ((1.2, np.sin), (0.84, np.cos), (-0.588, np.sin)))
    values = {**pendulum.value_set(), **FRICTION}
    tau = di.inverse_dynamics(pendulum.with_values("true", values), q, dq, ddq)
    rng = np.random.default_rng(0)
    log = di.Log("sweep", "sweep", t, {"q1": q[:, 0], "tau1": tau[:, 0] + rng.normal(scale=0.02, size=len(t))})
    found = di.experiments.velocity_friction_from_logs(pendulum, [log], gravity="model")
    assert found["Fc1"].value == pytest.approx(1.0, abs=0.02)
    assert found["Fv1"].value == pytest.approx(0.5, abs=0.03)
    assert "sweeps through its velocities" in found.notes[0]


def test_stick_slip_is_left_out_and_reported(pendulum):
    machine = plant(pendulum, breakaway=Breakaway(3.0, 0.05))
    found = di.experiments.velocity_friction(machine, velocities=[0.04, 0.5, 1.0], ranges=RANGE)
    assert len(found.fits[0].points) == 2
    (warning,) = found.warnings
    assert warning.startswith("left out: q1_+0.04: joint1 does not")
    assert found["Fc1"].value == pytest.approx(1.0, abs=0.05)


def test_saturation_ends_safely_and_faster_velocities_are_not_tried(pendulum, tmp_path):
    bench = Bench(plant(pendulum, torque_limits=[1.4]), folder=tmp_path / "runs")
    with pytest.raises(ExperimentError, match=r"no run could be used.*joint joint1 reached its limit.*not run"):
        di.experiments.velocity_friction(bench, velocities=VELOCITIES, ranges=RANGE)
    assert len(bench.runs) == 1
    assert len(list((tmp_path / "runs").iterdir())) == 1
    with pytest.raises(di.InputError, match="stopped"):
        bench.plant.step()


def test_a_joint_that_does_not_move(pendulum):
    with pytest.raises(ExperimentError, match="joint1 does not move"):
        di.experiments.velocity_friction(
            plant(pendulum, more={"Fc1": 500.0}, torque_limits=[1e6]), velocities=[0.2, 0.5], ranges=RANGE
        )


def test_bad_arguments(pendulum):
    machine = plant(pendulum)
    for how, message in (
        ({"gravity": "moon"}, "gravity: unknown choice 'moon'"),
        ({"velocities": {"q7": [1.0]}}, "unknown joint 'q7'"),
        ({"friction": "load"}, "does not show at constant velocity"),
        ({"bandwidth": -1.0}, "bandwidth is -1"),
    ):
        with pytest.raises(di.DynidentError, match=message):
            di.experiments.velocity_friction(machine, **how)
    with pytest.raises(di.InputError, match=r"at least 0\.6 s"):
        FrictionOptions(cruise=0.1)
    other = joint_groups(di.load_robot("cylindrical"))
    assert other[1].units == ("m/s",)
