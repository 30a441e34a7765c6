"""`dynident payload` on the command line: the answer, the page, and whatever a user can do wrong with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dynident as di
from dynident.cli.command_line import main
from tests.cli.test_export_verb import complaint

DEMO = Path(__file__).parents[2] / "examples" / "demo"
LOADED, UNLOADED = "loaded.csv.gz", "unloaded.csv.gz"
NAMES = ["mass", "cx", "cy", "cz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"]
MASS = 2.0  # [kg] on the tool of the demo's arm, see examples/demo/make_logs.py


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A fit of the demo's arm, a log with a body on its tool and one without."""
    place = tmp_path_factory.mktemp("payload")
    robot = di.load_robot(DEMO / "arm.yaml")
    di.identify(robot, di.read_log(DEMO / "fourier_1.csv.gz", robot), friction="basic").save(place / "fit")
    shutil.copy(DEMO / "payload.csv.gz", place / LOADED)
    shutil.copy(DEMO / "fourier_2.csv.gz", place / UNLOADED)
    shutil.copy(DEMO / "arm.yaml", place)
    (place / "still.csv").write_text(
        "t,q1,q2,q3,q4,q5,q6,tau1,tau2,tau3,tau4,tau5,tau6\n"
        + "".join(f"{0.01 * i},0,-1,1,0,0,0,0,10,5,1,0,0\n" for i in range(600))
    )
    (place / "short.csv").write_text("t,q1,q2,q3,tau1,tau2,tau3\n0,0,0,0,0,0,0\n")
    return place


@pytest.fixture
def folder(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("more", [[], ["--unloaded", UNLOADED]], ids=["loaded", "joint"])
def test_the_answer(more, folder, capsys):
    assert main(["payload", "fit", LOADED, *more, "--json"]) == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert printed.err == ""
    assert set(answer) == {"frame", "estimates", "method", "session", "notes", "warnings"}
    assert [one["name"] for one in answer["estimates"]] == NAMES
    for one in answer["estimates"]:
        assert set(one) == {"name", "value", "std", "unit"}
        assert (one["value"] is None) == (one["std"] is None)
    mass = answer["estimates"][0]
    assert mass["value"] == pytest.approx(MASS, rel=0.02)
    assert mass["value"] == pytest.approx(MASS, abs=4.0 * mass["std"])


def test_the_page(folder, capsys):
    assert main(["payload", "fit", LOADED]) == 0
    page = capsys.readouterr().out
    assert page.startswith("Payload from loaded runs of demo-arm as identified")
    assert [line.split()[0] for line in page.splitlines()[3:13]] == NAMES
    assert f"In {di.load_robot(DEMO / 'arm.yaml').tool_words}; inertia about" in page


def test_the_folder(folder, tmp_path, capsys):
    assert main(["payload", "fit", LOADED, "-o", str(tmp_path / "out"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == answer
    page = (tmp_path / "out" / "report.html").read_text()
    mass = answer["estimates"][0]
    assert f"Payload of {mass['value']:.4g}"[:14] in page
    assert answer["frame"] in page


def test_the_tool_frame_is_named_and_may_be_chosen(folder, capsys):
    """The same body seen from a place 0.1 m further along x: the center moves, mass and inertia about it do not."""
    found = {}
    for tool in ([], ["--tool", "0.1,0,0"], ["--tool", "0,0,0,0,0,1.5707963267948966"]):
        assert main(["payload", "fit", LOADED, *tool, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        found[answer["frame"]] = [one["value"] for one in answer["estimates"]]
    assert len(found) == 3
    own, moved, turned = found.values()
    link = di.load_robot(DEMO / "arm.yaml").tool[1]
    assert moved[0] == pytest.approx(own[0], rel=1e-6)
    at_link = link.rotation @ own[1:4] + link.translation
    assert moved[1:4] == pytest.approx(at_link - [0.1, 0.0, 0.0], abs=1e-6)
    assert turned[1:4] == pytest.approx([at_link[1], -at_link[0], at_link[2]], abs=1e-6)
    for tool, words in (("gone", "unknown tool frame 'gone'"), ("1,2", "expected the name of a frame, or X,Y,Z")):
        assert words in complaint(["payload", "fit", LOADED, "--tool", tool], capsys, folder)


def test_a_known_payload_is_compared(folder, tmp_path, capsys):
    """The body on the demo's tool (examples/demo/make_logs.py), number by number and in the base parameters."""
    known = "2,0.01,0.02,0.06,0.004,0,0,0.004,0,0.002"
    assert main(["payload", "fit", LOADED, "--known", known, "-o", str(tmp_path / "out"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["known"]
    mass = answer["numbers"][0]
    assert (mass["name"], mass["known"], mass["agreement"]) == ("mass", 2.0, "agrees")
    assert answer["agreeing"] > 0.8
    moved = {row["name"]: row for row in answer["parameters"] if row["change"]}
    assert abs(moved["MXR2"]["loaded"] - moved["MXR2"]["predicted"]) < 0.1
    assert abs(moved["MXR2"]["change"]) > 1.0
    assert "Base parameters that the payload changes" in (tmp_path / "out" / "report.html").read_text()


def test_logs_without_a_load_give_no_numbers(folder, capsys):
    assert main(["payload", "fit", UNLOADED]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("withheld") == 10
    assert "are these logs of the loaded robot?" in printed.err
    assert printed.err.count("\n") == 1


BAD = {
    "no log": ("fit", "missing LOG; see dynident payload --help"),
    "log not there": ("fit gone.csv", "gone.csv: no such file"),
    "no fit": (f"gone {LOADED}", "gone/fit.yaml: no such file"),
    "a robot": (f"arm.yaml {LOADED}", "arm.yaml: format is None; expected 'dynident fit 2'"),
    "a log as the fit": (f"{LOADED} {LOADED}", f"{LOADED}: is no fit"),
    "unloaded not there": (f"fit {LOADED} --unloaded gone.csv", "gone.csv: no such file"),
    "same log twice": (f"fit {LOADED} --unloaded {LOADED}", "is given as loaded and as unloaded"),
    "session": (f"fit {LOADED} --session warm", "--session: unknown choice 'warm' (valid: auto, none, load, friction)"),
    "band": (f"fit {LOADED} --band -1", "--band is -1.0; expected a positive number"),
    "window": (f"fit {LOADED} --window 500:600", "no sample lies between 500.0 and 600.0 s"),
    "no window": (f"fit {LOADED} --window now", "--window now: expected START:STOP in seconds"),
    "columns": (f"fit {LOADED} --columns gone.yaml", "gone.yaml: no such file"),
    "a log of one row": ("fit short.csv", "short.csv: has 1 rows of numbers"),
    "standing still": ("fit still.csv", "still.csv: too little motion to determine a payload"),
    "known: two numbers": (f"fit {LOADED} --known 2,0.1", "expected MASS, MASS,CX,CY,CZ or those and six inertias"),
    "known: no mass": (f"fit {LOADED} --known 0", "known mass of the payload is 0 kg"),
    "known: no body": (f"fit {LOADED} --known 2,0,0,0,1,0,0,0,0,0", "inertia of the payload is not physically"),
    "a fit alone": ("fit fit", "a fit in place of LOG needs --known, all ten numbers of the payload"),
    "a fit and a mass": ("fit fit --known 2", "two fits are compared with all ten numbers of the payload"),
    "a fit and a band": ("fit fit --known 2,0,0,0,0,0,0,0,0,0 --band 3", "--band belongs to logs; a fit has its own"),
    "unknown option": (f"fit {LOADED} --body 2", "unknown argument '--body'"),
}


@pytest.mark.parametrize(("words", "fragment"), BAD.values(), ids=BAD)
def test_bad_input(words, fragment, folder, capsys):
    assert fragment in complaint(["payload", *words.split()], capsys, folder)
