"""Kim 1990: step voltages on the Minnesota arm in MuJoCo, with 2.4 ms samples and 16-bit encoders."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.step.analysis import step_payload
from dynident.experiments.step.controller import default_motors
from dynident.experiments.step.poses import choose_poses, inertia_base
from dynident.experiments.step.result import Configuration
from dynident.experiments.step.tracking import ForwardModel, forward_models, track, tracking_check
from dynident.papers.kim import printed
from dynident.papers.kim.experiments import combinations
from dynident.plant import Motors, MujocoPlant, Payload, Sensors

full = pytest.mark.full
GAINS, VOLTS = np.array(printed.GAINS), printed.VOLTAGES
COUNT = 2.0 * np.pi / printed.COUNTS
DAMPING, COULOMB = printed.DAMPING, printed.COULOMB
# Table 1 as the six combinations that can be determined.
TABLE = {name: printed.total(parts) for name, parts in printed.COMBINATIONS.items()}


@pytest.fixture(scope="module")
def arm():
    return di.load_robot("minnesota")


def bench(robot, motors, *, sample=2.4e-3, free=True, **how):
    """The machine; with `free`, as in the paper, joint 3 may leave its range of 160 degrees within the 1.2 s."""
    limits = Bounds.of(robot)
    if free:
        limits = Bounds(np.full_like(limits.lower, -np.inf), np.full_like(limits.upper, np.inf), limits.velocity)
    sensors = Sensors(resolution=COUNT)
    return Bench(MujocoPlant(robot, "plant", sample_time=sample, motors=motors, sensors=sensors, **how), bounds=limits)


def one_joint(arm, j, **how):
    """Errors of Me, B and Tc of one joint, the others braked at zero."""
    robot = arm.lock(**{f"q{k + 1}": 0.0 for k in range(3) if k != j})
    motors = Motors(GAINS[j], 1.0)
    options = di.experiments.StepOptions(voltages=VOLTS[f"joint{j + 1}"], poses=np.zeros((1, 1)), **how)
    found = di.experiments.step_test(bench(robot, motors), motors, options)
    (config,) = found.configurations
    true = np.array([found.computed(config, "plant"), DAMPING[j], COULOMB[j]])
    numbers = config.numbers
    return numbers.values[:3] / true - 1.0, found


@pytest.mark.parametrize("j", [0, 1, 2])
def test_the_exact_solution(arm, j):
    errors, found = one_joint(arm, j)
    assert np.all(np.abs(errors) < [1e-4, 0.01, 2e-3])
    assert found.warnings == ()


def test_the_papers_series_is_biased(arm):
    two, found = one_joint(arm, 2, terms=2)
    assert two[:2] == pytest.approx([0.045, -0.28], abs=0.003)
    assert any("cut after 2 terms" in warning for warning in found.warnings)
    five, _ = one_joint(arm, 2, terms=5)
    assert five[:2] == pytest.approx([-0.0013, 0.0055], abs=5e-4)


def test_a_record_that_is_too_short(arm):
    errors, found = one_joint(arm, 1, duration=0.3)
    assert abs(errors[1]) > 0.01
    numbers = found.configurations[0].numbers
    assert 0.1 < numbers.relative_std[1] < 0.5
    assert abs(errors[1]) < 3.5 * numbers.relative_std[1]
    assert any("too short to determine damping" in warning for warning in found.warnings)


@pytest.fixture(scope="module")
def test_of_the_arm(arm):
    motors = Motors(GAINS, 1.0)
    return di.experiments.step_test(bench(arm, motors), motors, di.experiments.StepOptions(voltages=VOLTS))


test_of_the_arm.__test__ = False


def test_six_combinations_from_eight_locked_configurations(test_of_the_arm):
    found = test_of_the_arm
    assert len(found.configurations) == 8
    assert found.base.n == 6
    for name, value in combinations(found).items():
        assert value == pytest.approx(TABLE[name], rel=2e-4), name
    for one in found.friction:
        assert one.damping[0] == pytest.approx(DAMPING[one.motor], rel=0.01)
        assert one.coulomb[0] == pytest.approx(COULOMB[one.motor], rel=2e-3)
    assert found.warnings == ()


def test_feedforward_check(arm, test_of_the_arm):
    motors = Motors(GAINS, 1.0)
    machine = bench(arm, motors, sample=4e-3)
    tracks = tracking_check(machine, motors, test_of_the_arm, "computed")
    worst = {(one.model, one.joints): np.degrees(one.worst) for one in tracks}
    alone, together = [(0,), (1,), (2,)], (0, 1, 2)
    assert all((error < 0.05).all() for (model, _), error in worst.items() if model == "identified")
    computed = [worst["computed", joints][0] for joints in alone]
    assert computed == pytest.approx([6.0, 6.1, 1.7], abs=0.1)
    assert worst["computed", together] == pytest.approx([8.9, 4.9, 19.2], abs=0.1)
    without = [worst["identified, without friction", joints][0] for joints in alone]
    assert without == pytest.approx([2.6, 1.2, 4.2], abs=0.05)
    velocities = next(one for one in tracks if one.model == "computed" and one.joints == (0,)).velocity_error
    assert np.degrees(np.abs(velocities[:, 0]).max()) > 20.0


def test_the_motion_of_the_check_has_the_papers_peaks(arm, test_of_the_arm):
    motors = Motors(GAINS, 1.0)
    model = forward_models(test_of_the_arm)[0]
    nothing = ForwardModel("nothing", dict.fromkeys(model.values, 0.0), np.zeros(3), np.zeros(3))
    left = track(bench(arm, motors, sample=4e-3), motors, nothing, test_of_the_arm.base, (1,))
    # A machine that does not move misses the motion itself: 30 degrees, at up to 150 degrees per second.
    assert np.degrees(left.worst[0]) == pytest.approx(30.0, abs=1e-3)
    assert np.degrees(np.abs(left.velocity_error[:, 1]).max()) == pytest.approx(150.0, abs=0.2)


def inertias(found):
    return found.configurations


@full
def test_a_loaded_repeat_tells_the_payload(arm):
    motors = Motors(GAINS, 1.0, voltage_limit=10.0)
    body = Payload(2.0, (0.1, 0.02, 0.03), (0.01, 0.0, 0.0, 0.02, 0.0, 0.015))
    how = di.experiments.StepOptions(voltages=VOLTS, for_payload=True)
    empty = inertias(di.experiments.step_test(bench(arm, motors, free=False), motors, how))
    again = di.experiments.StepOptions(voltages=VOLTS, repeat=[(one.motor, one.pose) for one in empty])
    loaded = inertias(di.experiments.step_test(bench(arm, motors, free=False, payload=body), motors, again))
    numbers = {one.name: one for one in step_payload(arm, loaded, empty)[0]}
    assert numbers["mass"].value == pytest.approx(2.0, rel=3e-3)
    assert [numbers[name].value for name in ("cx", "cy", "cz")] == pytest.approx(body.com, abs=1e-3)
    assert numbers["Iyy"].value == pytest.approx(0.02, rel=0.02)


def test_a_payload_from_exact_inertias(arm):
    body = Payload(2.0, (0.1, 0.02, 0.03), (0.01, 0.001, 0.0, 0.02, 0.0, 0.015))
    link, more = body.on(arm)
    names = [
        f"{symbol}{arm.joints[link].number}" for symbol in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    ]
    values = dict(arm.value_set("plant"))
    heavy = {**values, **{name: values.get(name, 0.0) + x for name, x in zip(names, more, strict=True)}}
    rng = np.random.default_rng(0)
    poses = [(j, q) for j in range(3) for q in rng.uniform(-1.2, 1.2, (6, 3))]
    empty = [Configuration.of_inertia(j, q, di.mass_matrix(arm, q[None], "plant")[0, j, j], 1e-5) for j, q in poses]
    loaded = [Configuration.of_inertia(j, q, di.mass_matrix(arm, q[None], heavy)[0, j, j], 1e-5) for j, q in poses]
    numbers = {one.name: one.value for one in step_payload(arm, loaded, empty)[0]}
    assert numbers["mass"] == pytest.approx(2.0, rel=1e-6)
    assert numbers["cz"] == pytest.approx(0.03, rel=1e-5)
    assert numbers["Ixy"] == pytest.approx(0.001, rel=1e-3)


UR10E_POSE = np.array([[0.0, -1.2, 1.4, 0.3, 0.9, 0.0]])


def on_ur10e(joints, known):
    motors = default_motors(known)
    how = di.experiments.StepOptions(joints=joints, poses=UR10E_POSE)
    found = di.experiments.step_test(bench(known, motors, free=False), motors, how)
    return {one.motor: one.inertia / found.computed(one, "plant") - 1.0 for one in found.configurations}, found


def test_a_robot_with_weight_to_carry():
    robot = di.load_robot("ur10e")
    errors, found = on_ur10e(["wrist_1", "wrist_3"], robot)
    assert max(map(abs, errors.values())) < 5e-3
    assert any("its weight was carried" in note for note in found.notes)


def test_weight_that_is_not_known_well_is_corrected():
    """Taken as exact, masses that are 5 % off made 2 % of the elbow's inertia and a third of its friction."""
    robot = di.load_robot("ur10e")
    rough = {name: 0.95 * value if name[0] == "M" else value for name, value in robot.value_set("plant").items()}
    errors, found = on_ur10e(["elbow"], robot.with_values("rough", rough))
    assert abs(errors[2]) < 2e-4
    true = robot.value_set("plant")["Fc3"]
    value, std = found.friction[0].coulomb
    assert abs(value - true) < 4.0 * std
    assert std < 2e-3 * true


@full
def test_all_combinations_of_a_six_joint_arm():
    robot = di.load_robot("ur10e")
    motors = default_motors(robot)
    found = di.experiments.step_test(bench(robot, motors, free=False), motors)
    shown = found.combinations
    assert found.base.n == 28
    assert shown.determined.all()
    error = np.abs(shown.values - found.base.values("plant"))
    assert error.max() < 5e-3  # [kg·m², kg·m]


@full
def test_chosen_poses_of_other_arms():
    for name, most in (("puma560", 30.0), ("panda", 30.0)):
        robot = di.load_robot(name)
        base = inertia_base(robot, range(len(robot.moving)))
        assert choose_poses(base, base.n + 2)[1] < most
