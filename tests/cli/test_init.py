from __future__ import annotations

import os
import shutil

import pytest

from dynident.cli.command_line import main
from dynident.cli.run_file import read_run_file
from dynident.logs import read
from dynident.logs.read import LogFormat
from dynident.logs.text import TextTable
from tests.cli.fits import ARM, DEMO, FIRST, LOADED, OTHER, SECOND, answer, complaint


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with logs in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    for number, path in ((2, FIRST), (10, SECOND)):
        shutil.copy(path, logs / f"run {number}.csv.gz")
    shutil.copy(ARM, tmp_path / "arm.yaml")
    return tmp_path


def test_the_demos_folder_is_split_sensibly(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = answer(capsys, "init", ARM, str(DEMO))
    assert found["training"] == [FIRST, SECOND]
    assert found["validation"] == [OTHER]
    assert [one["path"] for one in found["left_out"]] == [LOADED]
    assert "load" in found["left_out"][0]["reason"]
    plan = read_run_file("run.yaml")
    assert [os.path.abspath(path) for path in plan.identify.logs] == [FIRST, SECOND]
    assert len(plan.hashes) == 3


def test_the_last_log_by_number_validates(here, capsys):
    found = answer(capsys, "init", "arm.yaml", "logs", "-o", "mine.yaml")
    assert found["training"] == ["logs/run 2.csv.gz"]
    assert found["validation"] == ["logs/run 10.csv.gz"]
    text = (here / "mine.yaml").read_text()
    assert "output: fit-mine" in text
    assert "2 000 samples, 19.99 s at 99.96 Hz; q, i; torque from i, motion up to 9.6" in text
    assert max(map(len, text.splitlines())) < 125


def test_names_that_speak_of_validation(here, capsys):
    (here / "logs" / "run 2.csv.gz").rename(here / "logs" / "a_test.csv.gz")
    assert answer(capsys, "init", "arm.yaml", "logs")["validation"] == ["logs/a_test.csv.gz"]
    found = answer(capsys, "init", "arm.yaml", "logs", "--validation", "logs/run 10.csv.gz", "--overwrite")
    assert found["validation"] == ["logs/run 10.csv.gz"]
    assert found["training"] == ["logs/a_test.csv.gz"]


def test_the_logs_of_the_tutorial_have_the_roles_of_the_tutorial(tmp_path, capsys):
    folder = DEMO.parent / "urdf"
    arguments = ["init", str(folder / "arm.yaml"), str(folder), "--columns", str(folder / "columns.yaml")]
    found = answer(capsys, *arguments, "-o", str(tmp_path / "run.yaml"))
    assert [os.path.basename(path) for path in found["training"]] == ["train.csv.gz"]
    assert [os.path.basename(path) for path in found["validation"]] == ["validation.csv.gz"]


def test_what_is_no_log_is_left_out_with_its_reason(here, capsys):
    (here / "logs" / "notes.txt").write_text("hello\n")
    (here / "logs" / "positions.csv").write_text("t,q1\n0,0\n0.1,0.2\n")
    (here / "logs" / "photo.jpg").write_bytes(b"x")
    shutil.copy(FIRST, here / "logs" / "run 3.csv.gz")
    reasons = {os.path.basename(one["path"]): one["reason"] for one in answer(capsys, "init", ARM, "logs")["left_out"]}
    assert set(reasons) == {"notes.txt", "positions.csv", "run 3.csv.gz"}
    assert reasons["run 3.csv.gz"] == "is the same as run 2.csv.gz"
    assert all(f"#   {name}: " in (here / "run.yaml").read_text() for name in reasons)


def test_a_folder_that_a_format_knows_is_a_log(here, capsys, monkeypatch):
    def table(path, robot, mapped, keep):
        return TextTable(path / "numbers.csv.gz", keep=keep)

    made = LogFormat("made", table, contents="made up", folder="about.txt")
    monkeypatch.setattr(read, "FORMATS", (made, *read.FORMATS))
    folder = here / "logs" / "run 20"
    folder.mkdir()
    shutil.copy(OTHER, folder / "numbers.csv.gz")
    assert answer(capsys, "init", "arm.yaml", "logs")["validation"] == ["logs/run 10.csv.gz"]
    (folder / "about.txt").write_text("made\n")
    assert answer(capsys, "init", "arm.yaml", "logs", "--overwrite")["validation"] == ["logs/run 20"]


def test_one_log_leaves_none_for_validation(here, capsys):
    assert answer(capsys, "init", "arm.yaml", "logs/run 2.csv.gz")["validation"] == []
    assert read_run_file("run.yaml").identify.validation == ()
    text = (here / "run.yaml").read_text().replace("robot: arm.yaml", "robot: ur10e")
    (here / "run.yaml").write_text(text)
    assert read_run_file("run.yaml").identify.robot == "ur10e"  # a bundled name is no path


def test_paths_start_at_the_run_file(here, capsys):
    (here / "plans").mkdir()
    assert main(["init", "arm.yaml", "logs", "-o", "plans/run.yaml"]) == 0
    assert "Next: look it through, then dynident run plans/run.yaml" in capsys.readouterr().out
    text = (here / "plans" / "run.yaml").read_text()
    assert "robot: ../arm.yaml" in text
    plan = read_run_file("plans/run.yaml")
    assert plan.identify.robot == "arm.yaml"
    assert plan.identify.output == "plans/fit"


def test_what_it_refuses(here, capsys):
    assert main(["init", "arm.yaml", "logs", "--quiet"]) == 0
    before = (here / "run.yaml").read_text()
    assert "--overwrite to replace it" in complaint(capsys, "init", "arm.yaml", "logs")
    assert (here / "run.yaml").read_text() == before
    assert "would be overwritten" in complaint(capsys, "init", "arm.yaml", "logs", "-o", "arm.yaml", "--overwrite")
    (here / "empty").mkdir()
    assert "no training log of this robot" in complaint(capsys, "init", "arm.yaml", "empty", "-o", "x.yaml")
    assert "there is no such file or folder" in complaint(capsys, "init", "arm.yaml", "gone", "-o", "x.yaml")
    (here / "positions.csv").write_text("t,q1\n0,0\n0.1,0.2\n")
    assert "positions.csv" in complaint(capsys, "init", "arm.yaml", "positions.csv", "-o", "x.yaml")
    assert not (here / "x.yaml").exists()
