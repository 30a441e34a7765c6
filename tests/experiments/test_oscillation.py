"""The procedure on plants that swing and on plants that do not, and its verb."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.gravity_stage import run_gravity_stage
from dynident.experiments.oscillation.model import swing_model
from dynident.experiments.oscillation.procedure import creep, random_walk
from dynident.experiments.oscillation.torque_sensitivity import sensitivity
from dynident.experiments.protocol import ExperimentError
from dynident.plant import MujocoPlant, Sensors


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-1")


def bench(robot, values="plant", **how):
    more = {name: how.pop(name) for name in ("folder", "bounds") if name in how}
    return Bench(MujocoPlant(robot, values, sample_time=0.005, step=0.005, **how), **more)


def test_creeping_ends_at_the_papers_step(robot):
    model = swing_model(robot, {**robot.value_set("plant"), "MX1": 0.55})
    found = creep(bench(robot), model, OscillationOptions(factor=1.2), finest=0.01)
    assert found.values[0] == pytest.approx(0.5, rel=6e-3)
    assert abs(found.values[0] - 0.5) < 2.0 * found.std[0]
    assert np.isinf(found.std[1])
    states = [step.state for step in found.steps]
    assert "falls" in states
    assert "MY1" in found.warnings[0]


def test_a_random_walk_comes_down_to_the_weight(robot):
    model, how = swing_model(robot), OscillationOptions(factor=1.3, periods=2.0)
    found = random_walk(bench(robot), model, how, finest=0.06, runs=9)
    assert 0.5 < found.values[0] < 0.6
    assert len(found.steps) <= 10
    assert "walk" in found.warnings[-1]
    again = random_walk(bench(robot), model, how, finest=0.06, runs=9)
    np.testing.assert_array_equal(found.values, again.values)


def test_friction_that_holds_the_arm_is_recognised(robot, tmp_path):
    stuck = bench(robot, {**robot.value_set("plant"), "Fc1": 0.5}, folder=tmp_path / "runs")
    with pytest.raises(ExperimentError, match=r"gravity-begin-1: .*friction or a brake holds it.*dynident gravity"):
        di.experiments.oscillate(stuck)
    assert len(di.read_log(tmp_path / "runs" / "001-gravity-begin-1.csv", robot)) > 100


def test_an_arm_that_falls_at_once_is_stopped_within_its_reach(robot):
    light = {name: 0.02 * value for name, value in robot.value_set("plant").items()}
    falling = bench(robot)
    with pytest.raises(ExperimentError, match=r"falls: joint joint1 left its bounds.*raise --factor"):
        di.experiments.oscillate(falling, nominal=light)
    assert all(run.end == "bound" for run in falling.runs)
    assert max(np.abs(run.q).max() for run in falling.runs) < np.radians(13.0)


def test_an_arm_that_is_described_too_light_is_raised_until_it_swings(robot):
    light = {**robot.value_set("plant"), "MX1": 0.25}
    found = di.experiments.oscillate(bench(robot), stage="gravity", nominal=light, rounds=1)
    assert found.estimates[0].value == pytest.approx(0.5, rel=1e-3)
    assert found.stages[0].steps[0].state == "falls"


def errors_over_std(found, model):
    true = np.array(model.true_values(found.groups, "plant"))
    return np.abs(found.values - true) / found.std


@pytest.mark.parametrize("links", [2, 3])
def test_what_the_size_of_a_swing_bends_is_in_the_standard_deviation(links):
    arm = di.load_robot(f"pendulum-{links}")
    model = swing_model(arm)
    how = OscillationOptions(amplitude=np.radians(5.0), reach=np.radians(80.0), rounds=1)
    assert errors_over_std(run_gravity_stage(bench(arm), model, how), model).max() < 3.0


def test_rounded_positions_and_a_weight_that_is_nearly_balanced(robot):
    """Lowered by half of the over-estimate, this weight is in balance: nothing holds the machine, it does not move."""
    plant = MujocoPlant(robot, "plant", sample_time=0.004, step=0.002, sensors=Sensors(resolution=2.0 * np.pi / 2**16))
    rng = np.random.default_rng(7)
    model = swing_model(robot, {name: x * rng.uniform(0.8, 1.2) for name, x in robot.value_set("plant").items()})
    found = run_gravity_stage(Bench(plant), model)
    assert "held" in [step.state for step in found.steps]
    assert errors_over_std(found, model).max() < 4.0


def test_limits_of_torque_and_of_position_end_it(robot):
    with pytest.raises(ExperimentError, match=r"needs more torque than there is: the command of joint joint1"):
        di.experiments.oscillate(bench(robot, torque_limits=[0.01]))
    narrow = Bounds(np.array([-0.01]), np.array([0.004]), np.array([np.inf]))
    with pytest.raises(ExperimentError, match=r"meets a limit of its own: joint joint1.*--pose"):
        di.experiments.oscillate(bench(robot, bounds=narrow))
    aside = Bounds(np.array([0.3]), np.array([0.5]), np.array([9.0]))
    with pytest.raises(ExperimentError, match="no pose within its limits"):
        di.experiments.oscillate(bench(robot, bounds=aside), stage="gravity")
    found = di.experiments.oscillate(bench(robot, bounds=aside))
    assert "gravity stage left out" in found.warnings[0]
    assert {one.name: one.value for one in found.estimates}["MX1"] == pytest.approx(0.5, abs=1e-6)


def test_bad_options_are_refused(robot):
    for given, message in (
        ({"stage": "all"}, "stage: unknown choice 'all'"),
        ({"search": "guess"}, "search: unknown choice 'guess'"),
        ({"kp": -1.0, "stage": "inertia"}, "positive gain"),
        ({"pose": [0.0, 1.0]}, "pose must have shape"),
    ):
        with pytest.raises(di.DynidentError, match=message):
            di.experiments.oscillate(bench(robot), **given)
    for given, message in (
        ({"factor": 0.9}, "above 1"),
        ({"amplitude": 9.0}, "between 0 and the reach"),
        ({"rounds": 0}, "at least 1"),
        ({"periods": np.nan}, "finite number"),
    ):
        with pytest.raises(di.InputError, match=message):
            OscillationOptions(**given)


def test_an_error_of_the_inertia_vanishes_with_the_position_error():
    """Eq. (28) and (30) of one link in closed form: tau = m g L/2 sin q - I kp e."""
    robot = di.load_robot("pendulum-1")
    found = sensitivity(robot, kp=50.0, error=0.1, change=0.02, pose=np.array([np.pi / 2]))
    for e, weight, inertia in zip(found.errors, *found.shares, strict=True):
        torque = 0.5 * 9.81 * -1.0 - 50.0 / 3.0 * e  # holding it at the side takes a negative torque
        assert weight == pytest.approx(0.02 * abs(0.5 * 9.81 / torque))
        assert inertia == pytest.approx(0.02 * abs(50.0 / 3.0 * e / torque))
    with pytest.raises(di.InputError, match="kp is 0"):
        sensitivity(robot, kp=0.0)


def verb(capsys, *words, code=0):
    assert main(["oscillate", *words]) == code
    printed = capsys.readouterr()
    return SimpleNamespace(out=printed.out, err=printed.err)


def test_the_verb_finds_both_and_writes_everything(capsys, tmp_path):
    words = ("pendulum-1", "--rate", "200", "--rounds", "1", "-o", str(tmp_path / "out"))
    found = json.loads(verb(capsys, *words, "--json").out)
    names = {one["name"]: one for one in found["estimates"]}
    assert names["MX1"]["value"] == pytest.approx(0.5, rel=1e-4)
    assert names["ZZ1"]["value"] == pytest.approx(1 / 3, rel=1e-3)
    assert names["MX1"]["true"] == pytest.approx(0.5)
    assert {"name", "value", "std", "unit", "true"} == set(names["ZZ1"])
    assert found["warnings"] == []
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == found
    page = (tmp_path / "out" / "report.html").read_text()
    assert "natural oscillations" in page
    assert "dynident oscillate pendulum-1" in page
    runs = sorted(path.name for path in (tmp_path / "out" / "runs").iterdir())
    assert runs[0] == "001-gravity-begin-1.csv"
    assert "earlier experiment" in verb(capsys, *words, code=2).err


def test_the_verb_in_paper_mode(capsys, tmp_path):
    words = ("pendulum-1", "--paper", "--updates", "600", "--factors", "1.02,0.9", "--combinations", "1.01,1.02")
    page = verb(capsys, *words, "-o", str(tmp_path))
    assert "Table I: gravity stage, 600 updates" in page.out
    assert "Counting resolves 0.5 periods." in page.out
    assert "tolerance band" in " ".join(page.out.split())  # lines are wrapped
    assert "tracking error" in page.out
    assert "falls" in page.out
    printed = json.loads((tmp_path / "result.json").read_text())
    gravity, inertia = printed["tables"]
    assert [row["falls"] for row in gravity["rows"]] == [False, True]
    assert len(inertia["candidates"]) == 2
    assert inertia["candidates"][0]["tracking_error"] < inertia["candidates"][1]["tracking_error"]


def test_a_pose_is_given_by_variable_or_by_name(capsys):
    by_variable, by_name = (
        json.loads(verb(capsys, "ur10e", "--sensitivity", "--json", "--pose", f"{name}=0.7").out)
        for name in ("q3", "elbow")
    )
    assert by_variable["pose"][2] == 0.7
    assert by_name == by_variable


def test_the_verb_for_sensitivity(capsys):
    found = json.loads(verb(capsys, "ur10e", "--sensitivity", "--json").out)
    kinds = {one["kind"]: one["torque_error"] for one in found["parameters"] if one["name"] in ("MXR2", "ZZR2")}
    assert kinds["inertia"][2] < 0.02 * kinds["inertia"][0]
    assert kinds["weight"][2] > 0.5 * kinds["weight"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ur10e",), "gravity has no effect on shoulder_pan"),
        (("pendulum-1", "--updates", "5"), "belongs to --paper"),
        (("pendulum-1", "--error", "5"), "belongs to --sensitivity"),
        (("pendulum-1", "--sensitivity", "--paper"), "leave one of them out"),
        (("pendulum-1", "--sensitivity", "--noise", "1"), "no meaning with --sensitivity"),
        (("pendulum-1", "--paper", "--factors", "a"), "expected numbers"),
        (("pendulum-1", "--paper", "--rounds", "1"), "no meaning with --paper"),
        (("pendulum-1", "--stage", "inertia", "--pose", "q1=0"), "belongs to the gravity stage"),
        (("pendulum-1", "--stage", "gravity", "--kp", "3"), "belongs to the inertia stage"),
        (("pendulum-1", "--pose", "q7=0"), "unknown joint in --pose 'q7'"),
        (("pendulum-1", "--paper", "--updates", "0"), "at least 2 updates"),
        (("pendulum-1", "--paper", "--resolution", "-1"), "resolution is -1; expected a positive number"),
        (("pendulum-1", "--paper", "--amplitude", "0"), "start is 0; expected a positive number"),
        (("pendulum-1", "--amplitude", "50"), "0.8727 rad (50 degrees); expected between 0 and the reach"),
        (("pendulum-1", "--nominal", "none"), "unknown parameter set"),
        (("pendulum-1", "--factor", "0.5"), "above 1"),
    ],
)
def test_the_verb_refuses_what_makes_no_sense(capsys, words, message):
    printed = verb(capsys, *words, code=2)
    assert message in printed.err
    assert printed.out == ""
