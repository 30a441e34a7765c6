"""`--plant FILE.py:NAME`: whatever a user's file does, one clear line."""

from __future__ import annotations

import json
import sys

import pytest

from dynident.cli.command_line import main

FILE = """import helper_beside_it
from dynident.plant import MujocoPlant

def good(robot):
    return MujocoPlant(robot, helper_beside_it.VALUES, sample_time=0.004, step=0.004)

def other(robot):
    from dynident import load_robot
    return MujocoPlant(load_robot("pendulum-2"), "plant")

def raising(robot):
    raise RuntimeError("no licence")

def endless(robot):
    plant = good(robot)
    plant.sample_time = 0.0
    return plant

class Cut(MujocoPlant):
    def step(self):
        if self.time > 0.3:
            raise KeyboardInterrupt
        super().step()

def cut(robot):
    return Cut(robot, "plant", sample_time=0.004)

nothing = 3
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "helper_beside_it.py").write_text("VALUES = 'plant'\n")
    (tmp_path / "json.py").write_text(FILE)  # the name of a module that others need
    (tmp_path / "broken.py").write_text("def x(:\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit('goodbye')\n")
    return "json.py"


def refused(capsys, plant):
    assert main(["gravity", "pendulum-1", "--plant", plant]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ("json.py:raising", "raising failed: RuntimeError: no licence (json.py, line "),
        ("json.py:other", "its robot moves joint1, joint2; pendulum-1 as given moves joint1;"),
        ("json.py:endless", "its sample_time is 0.0"),
        ("json.py:nothing", "it lacks apply_torque"),
        ("json.py:gone", "has no gone"),
        ("broken.py:x", "broken.py cannot be run: SyntaxError: invalid syntax"),
        ("leaves.py:x", "leaves.py cannot be run: SystemExit: goodbye"),
        ("gone.py:x", "expected FILE.py:NAME"),
    ],
)
def test_what_is_refused(capsys, file, plant, message):
    assert message in refused(capsys, plant)


def test_a_file_finds_what_is_beside_it_and_takes_no_name_away(capsys, file):
    words = ["gravity", "pendulum-1", "--plant", f"{file}:good", "--span", "30", "--sweep-velocity", "0.8", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["estimates"][0]["value"] == pytest.approx(0.5, abs=0.01)
    assert sys.modules["json"] is json


def test_an_interrupted_experiment_says_where_its_runs_are(capsys, file, tmp_path):
    assert main(["gravity", "pendulum-1", "--plant", f"{file}:cut", "-o", "out"]) == 130
    assert "interrupted; what was recorded so far is in out/runs" in capsys.readouterr().err
    assert len(list((tmp_path / "out" / "runs").glob("*.csv"))) == 1


def test_a_fresh_experiment_that_fails_leaves_no_earlier_answer(capsys, file, tmp_path):
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    (out / "runs" / "001-old.csv").write_text("t,q1\n")
    (out / "result.json").write_text('{"warnings": []}')
    (out / "report.html").write_text("<!-- dynident -->")
    (out / "notes.txt").write_text("of the day before")
    assert main(["gravity", "pendulum-1", "--plant", f"{file}:cut", "-o", "out", "--fresh"]) == 130
    assert sorted(path.name for path in out.iterdir()) == ["notes.txt", "runs"]
    assert [path.name for path in (out / "runs").iterdir()] == ["001-sweep-q1.csv"]


def test_a_folder_that_cannot_be_made_is_named(capsys, file):
    assert main(["oscillate", "pendulum-1", "--sensitivity", "-o", file]) == 2
    assert "json.py: is a file; -o needs a folder for result.json, report.html" in capsys.readouterr().err
