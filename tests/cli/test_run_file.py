from __future__ import annotations

import hashlib
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.cli.run import LOGS, demo_folder
from dynident.cli.run_file import RunFileError, read_run_file
from tests.cli.fits import ARM, DEMO, FIRST, OTHER, PLAIN_WORDS, answer, complaint

PLAN = f"""\
robot: {ARM}
training: [first.csv.gz]
validation: [{OTHER}]
output: out
window: [0, 19]
identify:
  friction: basic
  band: 6
  delay: 4e-3
  velocity_source: position
  check: off
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(FIRST, tmp_path / "first.csv.gz")
    (tmp_path / "run.yaml").write_text(PLAN)
    return tmp_path


def test_a_run_is_the_command(here, capsys):
    found = answer(capsys, "run", "run.yaml")
    words = ["identify", ARM, "first.csv.gz", "--validation", OTHER, "-o", "by-hand", "--band", "6", "--window", "0:19"]
    assert main([*words, *PLAIN_WORDS, "--quiet"]) == 0
    ours, theirs = (di.load_fit(here / name) for name in ("out", "by-hand"))
    scale = np.sqrt(np.diag(theirs.covariance))  # sums of a matrix product depend on where it lies in memory
    assert np.abs((ours.beta - theirs.beta) / scale).max() < 1e-9
    assert np.abs((ours.covariance - theirs.covariance) / np.outer(scale, scale)).max() < 1e-9
    assert found["identify"]["parameters"][0]["value"] == ours.beta[0]
    assert found["export"] is None
    assert ours.provenance.command == "dynident run run.yaml"
    assert ours.provenance.files[0].sha256 == hashlib.sha256(PLAN.encode()).hexdigest()
    assert "dynident run run.yaml" in (here / "out" / "report.html").read_text()


def test_exports_into_the_output_and_tells_a_changed_log(here, monkeypatch, capsys):
    text = PLAN + "export:\n  yaml: out/arm.yaml\n  total_mass: [10, null]\nhashes:\n  first.csv.gz: " + "0" * 64 + "\n"
    (here / "run.yaml").write_text(text)
    monkeypatch.chdir(here.parent)
    found = answer(capsys, "run", str(here / "run.yaml"))
    assert found["export"]["files"][0]["form"] == "YAML"
    assert di.load_robot(here / "out" / "arm.yaml").name == "demo-arm"
    (changed,) = found["changed"]
    assert "first.csv.gz has changed" in changed
    assert changed in di.load_fit(here / "out").warnings
    assert main(["run", str(here / "run.yaml"), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "has changed since the run file was written" in captured.err


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("band: 6", "bnad: 6", 8, "unknown key 'bnad'; did you mean 'band'?"),
        ("training:", "trainign:", 2, "unknown key 'trainign'; did you mean 'training'?"),
        ("band: 6", "band: wide", 8, "band must be a number, got 'wide'"),
        ("band: 6", "band: .nan", 8, "band must be a number"),
        ("check: off", "check: of", 11, "check: unknown choice 'of'; did you mean 'off'?"),
        ("velocity_source: position", "velocity_source: positon", 10, "did you mean 'position'?"),
        ("check: off", "estimator: wheighted", 11, "did you mean 'weighted'?"),
        ("window: [0, 19]", "window: 2:30", 5, "window must be a list of two numbers"),
        ("first.csv.gz", "frist.csv.gz", 2, "there is no file frist.csv.gz"),
        ("training: [first.csv.gz]", "training: []", 2, "training has no log"),
        ("output: out", "robot: ur10e", 4, "key 'robot' is there twice"),
        ("  friction: basic", "  friction: [", 9, "not valid YAML"),
        ("check: off", "check: off\nhashes: {first.csv.gz: abc}", 12, "must be a SHA-256"),
        ("check: off", "check: off\nhashes: {frist.csv.gz: abc}", 12, "did you mean 'first.csv.gz'?"),
        ("check: off", "check: off\nexport: {urfd: x.urdf}", 12, "did you mean 'urdf'?"),
        ("check: off", "check: off\nexport: {urdf: x.urdf, from_scratch: perhaps}", 12, "must be true or false"),
    ],
)
def test_a_mistake_is_reported_with_its_line(here, old, new, line, words):
    (here / "run.yaml").write_text(PLAN.replace(old, new))
    with pytest.raises(RunFileError) as caught:
        read_run_file("run.yaml")
    assert f"run.yaml: line {line}: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("- a\n", "must be a mapping"),
        ("robot: ur10e\n", "has no 'training'"),
        (PLAN + "export: {prior: plausible}\n", "names no file to write"),
        (PLAN + "export: {c: out/c, limits: true}\n", "--limits has no meaning without --urdf"),
        (PLAN + "export: {urdf: nowhere/a.urdf}\n", "the folder nowhere does not exist"),
        (PLAN.replace("delay: 4e-3", "prior_std: 0.1"), "--prior-std belongs to --estimator prior"),
        (PLAN + "locked: {q9: 0}\n", "unknown joint to lock 'q9'"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_any_work(here, capsys, text, words):
    (here / "run.yaml").write_text(text)
    assert words in complaint(capsys, "run", "run.yaml")
    assert not (here / "out").exists()


def test_values_are_taken_as_they_are_written(here):
    (here / "run.yaml").write_text(
        PLAN.replace("friction: basic", "friction: [stop(0.001), load]\n  terms: rigid,Fv")
        + "locked: {q4: pi/2}\nexport: {urdf: out/a.urdf, mass: {3: [1, null]}, limits: yes, from_scratch: false}\n"
    )
    plan = read_run_file("run.yaml")
    assert (plan.identify.friction, plan.identify.terms) == ("stop(0.001),load", "rigid,Fv")
    assert (plan.identify.delay, plan.identify.check, plan.identify.locked) == (0.004, "off", "q4=pi/2")
    assert (plan.identify.window, plan.identify.validation) == ("0:19", (OTHER,))
    export = plan.export
    assert (export.fit, export.urdf, export.mass) == ("out", "out/a.urdf", ("3=1:",))
    assert export.limits
    assert not export.from_scratch


@pytest.mark.full
def test_the_demo_finds_what_its_arm_carries(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = answer(capsys, "demo", "-o", "shown")
    mass = next(one for one in found["payload"]["estimates"] if one["name"] == "mass")
    assert mass["value"] == pytest.approx(2.0, abs=0.02)
    assert found["identify"]["train"]["relative_error"] < 0.01
    assert Path("shown/report.html").stat().st_size > 100_000
    assert di.load_fit("shown").provenance.command == "dynident demo -o shown"


def test_the_demos_logs_are_there_and_go_into_the_wheel():
    shipped = tomllib.loads((DEMO.parents[1] / "pyproject.toml").read_text())
    included = shipped["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for name in LOGS:
        assert (demo_folder() / name).is_file()
        assert included[f"examples/demo/{name}"] == f"dynident/cli/demo_logs/{name}"
