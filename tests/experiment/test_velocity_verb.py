"""`dynident friction` on the command line: the answer, the page, and whatever a user can do wrong with it."""

from __future__ import annotations

import json

import pytest

from dynident.run.command_line import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_answer_runs_and_page(folder, capsys):
    words = ["friction", "cylindrical", "--joints", "q1", "--speeds", "0.5,1", "-o", "out"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in found["estimates"]} == {"Fv1", "Fc1"}
    assert set(found["estimates"][0]) == {"name", "value", "std", "unit", "true"}
    assert found["fits"][0]["rank"] == 2
    assert len(found["fits"][0]["points"]) == 2
    assert json.loads((folder / "out" / "answer.json").read_text()) == found
    page = (folder / "out" / "report.html").read_text()
    assert "Friction against speed" in page
    assert "--speeds=0.5,1" in page
    runs = sorted(str(path) for path in (folder / "out" / "runs").iterdir())
    assert len(runs) == 2
    assert main(["friction", "cylindrical", "--joints", "q1", "--from", *runs]) == 0
    told = capsys.readouterr()
    assert "Fc1" in told.out
    assert "from 2 points at constant velocity" in told.out


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        ("sr400 --joints q5", "test them together: --joints q5,q6"),
        ("ur10e --joints q9", "unknown joint 'q9'"),
        ("ur10e --joints q1 --speeds fast", "--speeds fast: expected numbers"),
        ("ur10e --joints q1 --speeds 99", "faster than 95% of its limit"),
        ("ur10e --joints q1 --range q1=1", "--range q1=1: expected joint=lower:upper"),
        ("ur10e --joints q1 --range q1=0:0.1 --speeds 1", "too short to reach this speed"),
        ("ur10e --joints q1 --at q2=99", "its limits are"),
        ("ur10e --joints q1 --cruise 0.1", "at least 0.6 s"),
        ("ur10e --window 0:1", "--window is for logs"),
        ("ur10e --from a.csv --speeds 1", "--speeds is for runs on a machine"),
        ("ur10e --from a.csv", "a.csv"),
        ("ur10e --fit nowhere", "nowhere"),
        ("ur10e --plant arm.py:plant", "say where the other joints are held with --at"),
        ("ur10e --joints q1 --friction stop(0.001)", "does not show at constant velocity"),
    ],
)
def test_bad_input_is_one_clear_line(folder, capsys, words, fragment):
    assert main(["friction", *words.split()]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert fragment in told.err


def test_an_experiment_without_an_answer_tells_where_its_runs_are(folder, capsys):
    words = [
        "friction",
        "ur10e",
        "--joints",
        "q6",
        "--speeds",
        "0.02,0.05",
        "--breakaway",
        "30",
        "-o",
        "out",
        "--cruise",
        "0.7",
    ]
    assert main(words) == 2
    told = capsys.readouterr()
    assert "no run could be used; q6_+0.02: wrist_3 does not" in told.err
    assert "the 2 runs so far are in out/runs" in told.err
    assert len(list((folder / "out" / "runs").iterdir())) == 2
