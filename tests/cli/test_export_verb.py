"""`dynident export`: the answer, the page, and whatever a user can do wrong with it."""

from __future__ import annotations

import hashlib
import json
import os
import re

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.export import verification as exported
from dynident.export.c_export import find_compiler
from dynident.sealed import SEAL
from tests.signals.made import Fourier, make_log, stamps

URDF = """<?xml version="1.0"?>
<!-- a bench of our own -->
<robot name="bench">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0.1 0 0.02"/><mass value="3"/>
      <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="lower">
    <inertial><origin xyz="0.12 0.01 0"/><mass value="1.5"/>
      <inertia ixx="0.004" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="100"/><dynamics damping="0.3" friction="0.2"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="lower"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="50"/>
  </joint>
</robot>
"""
FORMS = ["--urdf", "out.urdf", "--mjcf", "out.xml", "--yaml", "out.yaml"]
compiled = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")


def log_of(robot, seconds=8.0):
    """Torque with one percent of noise on a motion of all joints."""
    t = stamps(seconds, 200.0)
    q, dq, ddq = Fourier.random(len(robot.joint_names), 1, velocity=1.5)(t)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    return make_log(robot, t, q, tau + 0.01 * tau.std(0) * np.random.default_rng(0).normal(size=tau.shape))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A URDF that the project did not bundle, and its fit; one without a URDF, one with a loop."""
    place = tmp_path_factory.mktemp("export")
    (place / "bench.urdf").write_text(URDF)
    robot = di.load_robot(place / "bench.urdf")
    di.identify(robot, log_of(robot), friction="basic").save(place / "fit")
    pendulum = di.load_robot("pendulum-2")
    di.identify(pendulum, log_of(pendulum), friction="basic").save(place / "pendulum")
    return place


@pytest.fixture
def folder(place, monkeypatch):
    """The same, as the current folder; what a test leaves in it goes."""
    monkeypatch.chdir(place)
    before = set(place.iterdir())
    yield place
    for path in set(place.iterdir()) - before:
        path.unlink()


def test_the_answer(folder, capsys):
    assert main(["export", "fit", *FORMS, "--json"]) == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert printed.err == ""
    assert set(answer) == {"files", "physical", "warnings"}
    assert [(one["form"], one["path"]) for one in answer["files"]] == list(
        zip(["URDF", "MJCF", "YAML"], FORMS[1::2], strict=True)
    )
    for one in answer["files"]:
        assert set(one) == {"form", "path", "agreement", "lost", "warnings", "usage", "missing"}
        assert one["agreement"]["relative"] < 1e-9
    assert [one["agreement"]["reader"] for one in answer["files"]] == ["dynident", "MuJoCo", "dynident"]
    assert any("rotor inertia" in words for words in answer["files"][0]["lost"])
    assert len(answer["physical"]["links"]) == 2
    assert answer["physical"]["distance"] < answer["physical"]["usual_distance"]


def test_the_page(folder, capsys):
    assert main(["export", "fit", *FORMS]) == 0
    page = " ".join(capsys.readouterr().out.split())  # wherever its lines end
    for words in ("mass [kg]", "link 2 (lower)", "set by the log-det distance", "URDF written to out.urdf"):
        assert words in page
    assert page.count("torque agrees to") == 3
    assert "not in the file: torque offset" in page


def test_what_is_written_is_the_robot_that_was_identified(folder, capsys):
    """The user's text is kept, and readers other than the export's own find the same torque."""
    assert main(["export", "fit", *FORMS]) == 0
    text = (folder / "out.urdf").read_text()
    assert "<!-- a bench of our own -->" in text
    assert 'upper="2" velocity="3" effort="50"' in text
    fit = di.load_fit("fit")
    q, dq, ddq = Fourier.random(2, 5)(stamps(2.0, 50.0))
    expected = fit.parameter_model.torque(q, dq, ddq)
    again = di.load_robot("out.yaml")
    given = di.inverse_dynamics(again, q, dq, ddq)
    slow = abs(dq).min(1) < 0.1  # there Coulomb friction is smoothed in the fit and not in the file
    assert abs(given - expected)[~slow].max() < 1e-3 * abs(expected).max()


def test_the_prior_is_named_in_the_files(folder, capsys):
    """A fit of two joints leaves most numbers of the first link open: what settled them is on top."""
    assert main(["export", "fit", *FORMS, "--prior", "plausible"]) == 0
    for path in FORMS[1::2]:
        assert "set by the log-det distance of each link to a plausible body" in (folder / path).read_text()
    assert di.load_robot("out.yaml").value_set()["M1"] != pytest.approx(3.0, rel=0.01)


def test_bounds_hold(folder, capsys):
    words = ["--mass", "upper=3.5:4", "--mass", "2=1:", "--total-mass", ":6", "--yaml", "out.yaml", "--json"]
    assert main(["export", "fit", *words]) == 0
    upper, lower = (one["mass"] for one in json.loads(capsys.readouterr().out)["physical"]["links"])
    assert 3.5 - 1e-6 <= upper <= 4.0 + 1e-6
    assert lower >= 1.0 - 1e-6
    assert upper + lower <= 6.0 + 1e-6


@compiled
def test_c(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--c", "made/code", "--number", "float", "--name", "bench2"]
    assert main(["export", str(place / "pendulum"), *words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["physical"] is None
    (one,) = answer["files"]
    assert one["files"][:2] == ["made/code/bench2.h", "made/code/bench2.c"]
    assert all(os.path.isfile(path) for path in one["files"])
    assert one["agreement"]["relative"] < 1e-5
    assert (
        one["operations"]["inverse_dynamics"]["additions"] < one["operations"]["inverse_dynamics_standard"]["additions"]
    )
    assert main(["export", str(place / "pendulum"), *words[:2]]) == 0
    assert "Compiled with" in capsys.readouterr().out


def complaint(words, capsys, folder) -> str:
    """The one line on stderr of a run that must fail and leave everything as it was."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert printed.err.startswith("dynident: ")
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return printed.err


BAD = {
    "no format": ("fit", "at least one of --urdf F, --mjcf F, --yaml F, --c DIR"),
    "no fit": ("gone --yaml a.yaml", "gone/fit.yaml: no such file"),
    "no fit but a robot": ("bench.urdf --yaml a.yaml", "bench.urdf: is no fit; give the fit.yaml"),
    "no folder": ("fit --urdf gone/a.urdf", "gone/a.urdf: the folder gone does not exist"),
    "no folder for the second": ("fit --urdf a.urdf --mjcf gone/a.xml", "gone/a.xml: the folder gone does not exist"),
    "a folder": ("fit --yaml fit", "fit: is a folder"),
    "C into a file": ("fit --c bench.urdf", "bench.urdf: is a file; give the name of a folder"),
    "ending": ("fit --urdf a.txt", "a.txt: must end in .urdf or .xml"),
    "empty name": ("fit --urdf=", "the name of the file to write is empty"),
    "same file": ("fit --urdf a.xml --mjcf a.xml", "--mjcf a.xml: is also the file of --urdf"),
    "same file by another way": ("fit --urdf a.xml --mjcf fit/../a.xml", "is also the file of --urdf"),
    "the fit": ("fit --yaml fit/fit.yaml", "fit/fit.yaml: is the fit that is exported"),
    "the source": ("fit --urdf bench.urdf", "bench.urdf: is the file the robot was read from"),
    "the source by another way": ("fit --urdf fit/../bench.urdf", "is the file the robot was read from"),
    "bounds in conflict": (
        "fit --yaml a.yaml --mass 1=20: --mass 2=:3 --total-mass :15",
        "no physical robot has mass of link 1 at least 20 kg and total mass at most 15 kg; widen one of them",
    ),
    "negative mass": ("fit --yaml a.yaml --mass 1=-3:-1", "no physical robot has mass of link 1 from -3 to -1 kg"),
    "unknown link": ("fit --yaml a.yaml --mass uper=1:2", "unknown link 'uper'; did you mean 'upper'?"),
    "empty bound": ("fit --yaml a.yaml --mass 1=2:1", "the bound on the mass of link 1 is empty: from 2 to 1"),
    "endless bound": ("fit --yaml a.yaml --mass 1=:", "bounds nothing"),
    "nan": ("fit --yaml a.yaml --mass 1=nan:2", "is nan; expected a finite number"),
    "no number": ("fit --yaml a.yaml --mass 1=a:b", "--mass 1=a:b: expected LEAST:MOST in kg"),
    "no link": ("fit --yaml a.yaml --mass 3:4", "--mass 3:4: expected LINK=LEAST:MOST in kg"),
    "no interval": ("fit --yaml a.yaml --total-mass 5", "--total-mass 5: expected LEAST:MOST in kg"),
    "prior": ("fit --yaml a.yaml --prior cad", "unknown prior 'cad' (valid: plausible, "),
    "no source": ("fit --urdf a.urdf --source gone.urdf", "gone.urdf: no such file"),
    "source and fresh": ("fit --urdf a.urdf --source bench.urdf --from-scratch", "give one of the two"),
    "source of two": ("fit --urdf a.urdf --mjcf a.xml --source bench.urdf", "one after the other"),
    "another robot's source": ("pendulum --urdf a.urdf --source bench.urdf", "bench.urdf: has the joints shoulder,"),
    "prior without bodies": ("fit --c code --prior plausible", "--prior has no meaning without --urdf or --mjcf or"),
    "mass without bodies": ("fit --c code --mass 1=1:", "--mass has no meaning without --urdf or --mjcf or --yaml"),
    "limits without URDF": ("fit --mjcf a.xml --limits", "--limits has no meaning without --urdf"),
    "fresh without a file": (
        "fit --yaml a.yaml --from-scratch",
        "--from-scratch has no meaning without --urdf or --mjcf",
    ),
    "number without C": ("fit --yaml a.yaml --number float", "--number has no meaning without --c"),
    "number": ("fit --c code --number half", "--number: unknown choice 'half'"),
    "name": ("fit --c code --name 3x", "name '3x' cannot begin names in C"),
    "unknown option": ("fit --sdf a.sdf", "unknown argument '--sdf'; did you mean"),
}


@pytest.mark.parametrize(("words", "fragment"), BAD.values(), ids=BAD)
def test_bad_input(words, fragment, folder, capsys):
    assert fragment in complaint(["export", *words.split()], capsys, folder)
    assert not (folder / "code").exists()


def test_a_link_to_the_source_is_not_overwritten(folder, capsys):
    (folder / "link.urdf").symlink_to("bench.urdf")
    assert "is the file the robot was read from" in complaint(["export", "fit", "--urdf", "link.urdf"], capsys, folder)
    assert (folder / "bench.urdf").read_text() == URDF


def test_a_file_that_fails_its_proof_leaves_the_old_one(folder, capsys, monkeypatch):
    def far_off(*given):
        return exported.Agreement("dynident", 100, 0.5, 7.0)

    (folder / "out.urdf").write_text("<robot name='mine'/>")
    monkeypatch.setattr(exported, "agreement", far_off)
    line = complaint(["export", "fit", "--urdf", "out.urdf"], capsys, folder)
    assert "out.urdf" in line
    assert (folder / "out.urdf").read_text() == "<robot name='mine'/>"


def test_what_was_written_before_a_refusal_is_reported(folder, capsys, monkeypatch):
    def refuse(*given, **options):
        raise exported.ExportError("no MJCF today")

    monkeypatch.setattr("dynident.export.fit_export.export_mjcf", refuse)
    assert main(["export", "fit", *FORMS, "--json"]) == 2
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [one["path"] for one in found["files"]] == ["out.urdf"]
    assert (found["error"], found["type"], printed.err) == ("no MJCF today", "ExportError", "")
    assert not (folder / "out.xml").exists()


def test_a_fit_without_enough_rank_names_what_it_leaves_open(folder, capsys, tmp_path):
    """The elbow stands still: its inertia and friction cannot be known, and every file says so."""
    robot = di.load_robot("bench.urdf")
    t = stamps(8.0, 200.0)
    q, dq, ddq = Fourier.random(2, 1, velocity=1.5)(t)
    q[:, 1], dq[:, 1], ddq[:, 1] = 0.4, 0.0, 0.0
    fit = di.identify(robot, make_log(robot, t, q, di.inverse_dynamics(robot, q, dq, ddq)), friction="basic")
    assert fit.undetermined
    fit.save(tmp_path / "still")
    c = ["--c", str(tmp_path / "code")] if find_compiler() is not None else []
    assert main(["export", str(tmp_path / "still"), *FORMS, *c]) == 0
    for path in FORMS[1::2]:
        text = " ".join((folder / path).read_text().replace("#", " ").split())
        assert "set by the log-det distance of each link to the values 'file' of bench" in text
        assert f"the data leaves open {', '.join(fit.undetermined)}" in text
    masses = [di.load_robot("out.yaml").value_set()[name] for name in ("M1", "M2")]
    assert masses == pytest.approx([3.0, 1.5], rel=0.5)  # near the file's own; the torque leaves that much room
    if c:
        header = (tmp_path / "code" / "bench.h").read_text()
        assert all(name in header for name in fit.undetermined)


def test_a_loop_cannot_be_a_urdf(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot = di.load_robot("sr400")
    t = stamps(6.0, 100.0)
    q, dq, ddq = Fourier.random(len(robot.joint_names), 2)(t)
    tau = di.joint_torque(robot, di.inverse_dynamics(robot, q, dq, ddq))
    di.identify(robot, make_log(robot, t, q, tau), friction="basic").save("fit")
    line = complaint(["export", "fit", "--urdf", "a.urdf", "--yaml", "a.yaml"], capsys, tmp_path)
    assert "robot sr400 cannot be a URDF" in line
    assert "Export MJCF, YAML or C instead" in line


@pytest.fixture
def relative(tmp_path, monkeypatch):
    """A fit of a robot that was named relative to the folder in which it was identified."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "bench.urdf").write_text(URDF)
    (work / "mine.yaml").write_text("base: bench.urdf\nlimits: {elbow: {velocity: 2}}\n")
    monkeypatch.chdir(work)
    robot = di.load_robot("mine.yaml")
    di.identify(robot, log_of(robot), friction="basic").save("fits/fit")
    assert di.load_fit("fits/fit").robot.source == "mine.yaml"  # as it was named, where that still holds
    return work


def test_any_folder_will_do(relative, tmp_path, monkeypatch, capsys):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert main(["export", "../work/fits/fit", *FORMS, "--quiet"]) == 0
    assert "<!-- a bench of our own -->" in (tmp_path / "other" / "out.urdf").read_text()  # the user's own file, edited
    assert di.load_robot("out.yaml").joints[1].limits.velocity == 2.0
    relative.rename(tmp_path / "moved")  # fit and robot together
    assert main(["export", "../moved/fits/fit", "--urdf", "again.urdf", "--quiet"]) == 0
    assert (tmp_path / "other" / "again.urdf").read_text() == (tmp_path / "other" / "out.urdf").read_text()
    (tmp_path / "moved" / "mine.yaml").unlink()
    capsys.readouterr()
    assert main(["export", "../moved/fits/fit", "--urdf", "third.urdf"]) == 2
    assert "was read from mine.yaml, which is not there; give the file to keep as source" in capsys.readouterr().err


def test_a_fit_without_the_way_to_its_robot_is_read_as_before(relative, monkeypatch):
    """As older versions wrote it."""
    file = relative / "fits" / "fit" / "fit.yaml"
    text = re.sub(r"robot_file: .*\n", "", file.read_text())
    assert text != file.read_text()
    file.write_text(text)
    with np.load(file.with_suffix(".npz")) as stored:
        arrays = {name: stored[name] for name in stored.files if name != SEAL}
        arrays["text"] = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8)
    np.savez(file.with_suffix(".npz"), **arrays)
    assert main(["export", "fits/fit", "--urdf", "out.urdf", "--quiet"]) == 0
