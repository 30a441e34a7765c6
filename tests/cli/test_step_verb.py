"""`dynident step`: the answer, its page, the logs it leaves, and what it refuses."""

from __future__ import annotations

import json

import pytest

from dynident.cli.command_line import main

ALONE = ("step", "minnesota", "--locked", "q1=0,q2=0", "--pose", "q3=0", "--duration", "0.5", "--volts", "0.4,0.2")


def answered(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out)


def refused(capsys, *arguments):
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_test_its_page_and_the_same_from_its_logs(capsys, tmp_path):
    out = tmp_path / "out"
    found = answered(capsys, *ALONE, "-o", str(out))
    numbers = {row["name"]: row for row in found["estimates"]}
    assert numbers["ZZR3"]["value"] == pytest.approx(0.27759, rel=1e-3)
    assert numbers["ZZR3"]["true"] == pytest.approx(0.27759, rel=1e-6)
    assert set(numbers["B3"]) == {"name", "value", "std", "unit", "true"}
    assert found["gain"] == [pytest.approx(5.8)]
    assert found["motors"] == "assumed"
    page = (out / "report.html").read_text()
    assert "computed from the identified numbers" in page
    assert "dynident step minnesota" in page
    logs = sorted(str(path) for path in (out / "runs").glob("*.csv"))
    assert len(logs) == 2
    again = answered(capsys, "step", "minnesota", "--locked", "q1=0,q2=0", "--gain", "5.8", "--from", *logs)
    for one, other in zip(again["estimates"], found["estimates"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-3)
        assert "true" not in one


def test_the_papers_comparison_of_identified_and_computed_parameters(capsys):
    volts = "q1=0.8:0.5,q2=0.8:0.4,q3=0.4:0.2"
    found = answered(capsys, "step", "minnesota", "--volts", volts, "--track", "--computed", "computed")
    worst = {(one["model"], tuple(one["joints"])): one["position_error"] for one in found["tracking"]}
    joints = ("joint1", "joint2", "joint3")
    degrees = 57.29578
    assert all(max(error) * degrees < 0.05 for (model, _), error in worst.items() if model == "identified")
    alone = [worst["computed", (joint,)][0] * degrees for joint in joints]
    assert alone == pytest.approx([6.0, 6.1, 1.7], abs=0.1)
    together = [x * degrees for x in worst["computed", joints]]
    assert together == pytest.approx([8.9, 4.9, 19.2], abs=0.1)


def test_the_page_for_people(capsys):
    assert main([*ALONE, "--taylor", "5"]) == 0
    captured = capsys.readouterr()
    assert "Step voltage test of minnesota" in captured.out
    assert "ZZR3 = ZZ3 + ZZ5" in captured.out


def test_motors_from_a_file(capsys, tmp_path):
    file = tmp_path / "motors.yaml"
    file.write_text("torque_constant: {joint3: 2.9}\nresistance: 0.5\nback_emf: 0.1\ninductance: 0.0001\n")
    found = answered(capsys, *ALONE, "--motors", str(file))
    names = [row["name"] for row in found["estimates"]]
    assert names == ["ZZR3", "Fv3", "B3", "Fc3"]
    assert found["electrical"][0]["lag"] == pytest.approx(2e-4)
    assert "also in" in refused(capsys, *ALONE, "--motors", str(file), "--ke", "0.2")
    file.write_text("torque_konstant: 3\n")
    assert "torque_konstant" in refused(capsys, *ALONE, "--motors", str(file))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--gain", "1,2"), "expected one, or one for each"),
        (("--kt", "2"), "belong together"),
        (("--gain", "2", "--inductance", "0.1"), "needs the resistance"),
        (("--taylor", "1"), "expected 2 to 24"),
        (("--computed", "computed"), "belongs to --track"),
        (("--nominal", "nothing"), "unknown parameter set 'nothing'"),
        (("--pose", "q9=1"), "unknown joint in --pose 'q9'"),
        (("--volts", "much"), "expected voltages such as"),
        (("--volts", "0.001,0.002"), "did not move it"),
        (("--gain", "5.8", "--from", "nowhere.csv"), "leave it out with --from"),
        (("--unloaded", "nowhere"), "expected the folder"),
        (("--configurations", "3"), "leave one of them out"),
        (("--weight-std", "-1"), "--weight-std is -1.0"),
        (("--track", "--computed", "nosuch"), "unknown parameter set 'nosuch'"),
        (("--window", "0:1"), "--window belongs to logs"),
        (("--motors", "gone.yaml"), "gone.yaml: no such file"),
    ],
)
def test_what_is_refused(capsys, more, message):
    assert message in refused(capsys, *ALONE, *more)


def test_what_shapes_a_machine_is_refused_with_logs(capsys):
    words = ("step", "minnesota", "--gain", "5.8", "--from", "a.csv")
    assert "--noise shapes a test on a machine" in refused(capsys, *words, "--noise", "1")
    assert "--unbounded need a machine" in refused(capsys, *words, "--unbounded")


def test_runs_of_a_test_that_fails_are_kept(capsys, tmp_path):
    out = tmp_path / "out"
    error = refused(capsys, *ALONE, "--volts", "0.4,0.001", "-o", str(out))
    assert "did not move it" in error
    assert "what was recorded so far is in" in error
    assert len(list((out / "runs").glob("*.csv"))) == 2


def test_a_machine_of_ones_own_needs_its_motors(capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from dynident.plant import Motors, MujocoPlant\n"
        "def machine(robot):\n    return MujocoPlant(robot, 'plant', sample_time=0.0024, motors=Motors(5.8, 1.0))\n"
    )
    assert "--gain" in refused(capsys, *ALONE, "--plant", f"{file}:machine")
    found = answered(capsys, *ALONE, "--plant", f"{file}:machine", "--gain", "5.8")
    assert found["estimates"][0]["value"] == pytest.approx(0.27759, rel=1e-3)
    assert "true" not in found["estimates"][0]
