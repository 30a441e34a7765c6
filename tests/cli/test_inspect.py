from __future__ import annotations

import json
import subprocess
import sys

import pytest

import dynident as di
from dynident.cli.command_line import main


def test_json_has_the_promised_keys(inspect):
    answer = inspect("puma560")
    assert {"robot", "counts", "no_effect", "unique", "base"} <= set(answer)
    assert {"standard", "no_effect", "base"} <= set(answer["counts"])
    assert answer["robot"] == "puma560"
    assert all({"name", "terms"} <= set(item) for item in answer["base"])


@pytest.mark.parametrize("name", di.bundled_names())
def test_the_page_fits_80_columns_and_shows_the_counts(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["inspect", name, "--terms", "rigid,Ia,Fv,Fc,Fo"]) == 0
    page = capsys.readouterr().out
    assert max(len(line) for line in page.splitlines()) <= 80
    base = di.base_parameters(di.load_robot(name))
    assert f"{base.n}  base parameters" in page
    assert "Values 'plant' are physically consistent." in page
    assert "\x1b[" not in page  # no colors in a pipe


def test_values_of_a_paper_are_assessed(capsys):
    assert main(["inspect", "kr5-planar", "--values", "table4"]) == 0
    assert "are not physically consistent" in capsys.readouterr().out
    assert main(["inspect", "cmu-dd-arm-3", "--values", "table3"]) == 0
    assert "link 3" in capsys.readouterr().out


def test_partial_and_foreign_values_are_not_assessed_beyond_what_they_say(tmp_path, capsys):
    path = tmp_path / "part.yaml"
    path.write_text("base: pendulum-2\nparameters: {cad: {MX1: 1}}\ndefault_parameters: cad\n")
    assert main(["inspect", str(path)]) == 0
    page = capsys.readouterr().out
    assert "give links 1 only in part" in page
    assert "Warning" not in page
    for terms in ("rigid", "Fv", "rigid,Ia,Fv,Fc"):
        assert main(["inspect", "sr400", "--values", "table4-loaded", "--terms", terms]) == 0
        assert "do not contradict physical consistency" in capsys.readouterr().out
    assert main(["inspect", "kr5-planar", "--values", "table4", "--locked", "q1=0"]) == 2
    assert "belong to the robot without locked joints" in capsys.readouterr().err
    path.write_text("base: pendulum-2\nbase_parameters: {x: {NOPE9: 1}}\n")
    assert main(["inspect", str(path), "--values", "x"]) == 2
    assert "unknown base parameter 'NOPE9'" in capsys.readouterr().err


def test_closed_pipes_and_full_disks():
    command = f"{sys.executable} -m dynident.cli.command_line inspect sr400"
    for tail in ("", " --json"):
        answer = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}{tail} | head -c 1"], capture_output=True, text=True
        )
        assert (answer.returncode, answer.stderr) == (0, "")
        full = subprocess.run(["bash", "-c", f"{command}{tail} > /dev/full"], capture_output=True, text=True)
        assert full.returncode == 2
        assert full.stderr.startswith("dynident: cannot write the answer")


def test_list_names_the_bundled_robots(capsys):
    assert main(["inspect", "--list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["robots"] == list(di.bundled_names()) == list(found["about"])
    assert found["about"]["ur10e"]["maker"] == "Universal Robots"
    assert all(own["maker"] and own["source"] for own in found["about"].values())
    assert main(["inspect", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("minnesota", "Kim 1990", "Stäubli"))
    wanted = "cylindrical cmu-dd-arm-3 cmu-dd-arm-6 sr400 minnesota kr5 kr5-planar pendulum-1 pendulum-2 pendulum-3"
    assert set(di.bundled_names()) == {*wanted.split(), "puma560", "ur10e", "panda", "tx40"}


def test_locked_positions_may_be_expressions(inspect):
    assert inspect("kr5", "--locked", "q1=0, q4=pi/6, q6=0")["locked"]["q4"] == pytest.approx(0.5235987755982988)


def test_help_and_version_work_as_installed():
    for arguments, words in ((["--help"], "inspect"), (["--version"], di.__version__), ([], "usage")):
        answer = subprocess.run(
            [sys.executable, "-m", "dynident.cli.command_line", *arguments], capture_output=True, text=True, check=True
        )
        assert words in answer.stdout


def test_urdf_labels_travel_along(tmp_path, inspect):
    from tests.robots import random_urdf

    path = tmp_path / "r.urdf"
    path.write_text(random_urdf(1))
    assert "link0" in inspect(str(path))["links"]


def test_the_pose_of_the_tool(capsys):
    # Elbow manipulator in one plane: both links point along x at zero.
    assert main(["inspect", "pendulum-2", "--pose", "q1=pi/2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    robot = di.load_robot("pendulum-2")
    kinematics = di.forward_kinematics(robot, [[1.5707963267948966, 0.0]])
    assert found["position"] == kinematics.position[0].tolist()
    assert found["jacobian"] == kinematics.jacobian[0].tolist()
    assert [one["name"] for one in found["links"]] == list(kinematics.links)
    assert main(["inspect", "sr400", "--pose", "q1=0.3,q5=0.4", "--tool", "0,0,0.1"]) == 0
    page = capsys.readouterr().out
    assert "Tool: the tool at 0,0,0.1, fixed to link 6" in page
    assert "link 8" in page


def test_a_pose_outside_the_limits_is_a_warning(capsys):
    assert main(["inspect", "ur10e", "--pose", "q1=9", "--json"]) == 0
    assert capsys.readouterr().err.startswith("Warning: joint shoulder_pan is outside its limits: at 9 rad")
    assert main(["inspect", "ur10e", "--pose", "q1=0.5", "--json"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--tool", "flange"], "--tool belongs to --pose"),
        (["--pose", "q9=1"], "unknown joint in --pose 'q9'"),
        (["--pose", "q1"], "expected joint=position"),
        (["--pose", "q1=1", "--tool", "nope"], "unknown tool frame 'nope'"),
        (["--pose", "q1=1", "--symbolic"], "--symbolic has no meaning with --pose"),
        (["--pose", "q1=x"], "--pose q1=x"),
        (["--pose", "q1=1,joint1=1"], "q1 are the same joint"),
        (["--pose", "q1=1", "--locked", "q1=0"], "unknown joint in --pose 'q1'"),
    ],
)
def test_a_pose_that_cannot_be(given, words, capsys):
    assert main(["inspect", "puma560", *given]) == 2
    assert words in capsys.readouterr().err
