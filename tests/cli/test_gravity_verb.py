"""`dynident gravity` as a user runs it."""

from __future__ import annotations

import json

import pytest

import dynident as di
from dynident.cli.command_line import main
from tests.experiments.slow_logs import sweep_logs

QUICK = ["--sweep-velocity", "0.8"]


@pytest.fixture
def logs(tmp_path):
    robot = di.load_robot("kr5-planar")
    paths = []
    for j, log in enumerate(sweep_logs(robot, [0.5, -0.6, 0.2], friction=5.0)):
        paths.append(str(tmp_path / f"joint{j}.csv"))
        di.write_log(log, paths[-1])
    return paths


def test_a_simulated_pendulum(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["gravity", "pendulum-1", "-o", str(out), *QUICK, "--noise", "0.01", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["estimates"]] == ["MX1", "MY1"]
    for one in found["estimates"]:
        assert set(one) == {"name", "value", "std", "unit", "true"}
        assert one["value"] == pytest.approx(one["true"], abs=0.01)
    assert found["warnings"] == []
    assert found["joints"][0]["order"] == 1
    assert json.loads((out / "result.json").read_text()) == found
    assert len(list((out / "runs").glob("*.csv"))) == 1
    page = (out / "report.html").read_text()
    assert "Torque against angle" in page
    assert "Fourier series of order 1" in page
    assert main(["gravity", "pendulum-1", "-o", str(out), *QUICK]) == 2
    assert "earlier experiment" in capsys.readouterr().err


def test_from_logs_with_a_page_for_people(logs, tmp_path, capsys):
    assert main(["gravity", "kr5-planar", "-o", str(tmp_path / "out"), "--from", *logs]) == 0
    text = capsys.readouterr().out
    assert "Gravity moments of kr5-planar from 3 slow runs" in text
    assert "MXR1 = MX1 + a1 M1 + a1 M2 + a1 M3" in text
    assert "38.394" in text
    assert str(tmp_path / "out" / "report.html") in text
    assert "--from" in (tmp_path / "out" / "report.html").read_text()


def test_the_plan_moves_nothing(capsys):
    assert main(["gravity", "sr400", "--plan", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line.split()[0] for line in found["sweeps"]] == ["joint6", "joint2", "joint5", "joint4", "joint7"]
    assert main(["gravity", "kr5-planar", "--plan", "--pose", "q1=0.5,q2=-1", "--pose", "q1=1", "--joints", "q3"]) == 0
    assert capsys.readouterr().out.startswith("2 sweeps, from the tip inwards:\njoint5 from")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ur10e", "--joints", "q1", "--plan"], "parallel to gravity"),
        (["minnesota"], "gravity acts on no moving joint"),
        (["kr5-planar", "--span", "-5"], "--span is -5.0; expected a positive number"),
        (["kr5-planar", "--sweep-velocity", "nan"], "--sweep-velocity is nan"),
        (["kr5-planar", "--order", "first"], "--order first: expected auto or 1 to 3"),
        (["kr5-planar", "--pose", "q1"], "--pose q1: expected joint=position"),
        (["kr5-planar", "--window", "1:2"], "--window belongs to logs"),
        (["kr5-planar", "--from", "LOG", "--noise", "1"], "--noise shapes a machine or its sweeps"),
        (["kr5-planar", "--from", "LOG", "--plan"], "leave it out with --from"),
        (["kr5-planar", "--from", "LOG", "--order", "3", "--window", "0:3"], "no log holds a slow run"),
        (["kr5-planar", "--fit", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(words, expected, logs, capsys):
    assert main(["gravity", *(logs[2] if word == "LOG" else word for word in words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert captured.err.count("\n") == 1


def test_a_machine_of_one_s_own_that_fails_says_where_its_runs_are(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "import dynident as di\n\n\n"
        "def weak(robot):\n"
        "    return di.MujocoPlant(robot, 'plant', sample_time=4e-3, step=2e-3, torque_limits=[2.0])\n"
    )
    words = ["gravity", "pendulum-1", "-o", str(tmp_path / "out"), "--plant", f"{tmp_path / 'mine.py'}:weak", *QUICK]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "the command of joint joint1 reached its limit" in error
    assert f"what was recorded so far is in {tmp_path / 'out' / 'runs'}" in error
    assert len(list((tmp_path / "out" / "runs").glob("*.csv"))) == 1
