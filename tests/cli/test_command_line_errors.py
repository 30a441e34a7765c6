from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dynident.cli.command_line import VERBS, main

URDF = """<robot name="arm"><link name="base"/><link name="upper"/>
<joint name="elbow" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint></robot>
"""
TABLE = "name: arm\nconvention: modified-dh\njoints: [{name: elbow}, {name: wrist, d: 0.3}]\n"

BAD_FILES = {
    "nan mass": (
        "r.urdf",
        URDF.replace(
            '<link name="upper"/>', '<link name="upper"><inertial><mass value="nan"/><inertia/></inertial></link>'
        ),
        "link 'upper'",
    ),
    "zero axis": ("r.urdf", URDF.replace("0 0 1", "0 0 0"), "joint 'elbow'"),
    "unknown type": ("r.urdf", URDF.replace("revolute", "ball"), "joint 'elbow'"),
    "two roots": ("r.urdf", URDF.replace("</robot>", '<link name="x"/></robot>'), "root links"),
    "cycle": ("r.urdf", URDF.replace('parent link="base"', 'parent link="upper"'), "cycle"),
    "broken xml": ("r.urdf", URDF[:-20], "not well-formed XML"),
    "entities": ("r.urdf", '<!DOCTYPE r [<!ENTITY a "b">]>' + URDF, "DTD or entities"),
    "nested": ("r.urdf", "<a>" * 20_000, "nested more than 1200 levels deep"),
    "name with escape codes": ("r.urdf", URDF.replace('"elbow"', '"a&#10;&#9;b"'), "printable"),
    "empty": ("r.yaml", "", "must be a mapping"),
    "broken yaml": ("r.yaml", "joints: [", "not valid YAML"),
    "unknown key": ("r.yaml", TABLE + "gravty: 1\n", "did you mean 'gravity'?"),
    "key of two lines": ("r.yaml", TABLE + '"a\\nb": 1\n', "is not a name"),
    "expression": ("r.yaml", TABLE.replace("0.3", '"1 +\\n2 +\\n"'), "joint 2 d"),
    "imaginary": ("r.yaml", TABLE + "passive: {q2: (-1)^0.5*q1}\n", "passive joint 'wrist'"),
    "aliases": ("r.yaml", "a: &a [1]\nb: [*a, *a]\n", "aliases"),
    "list as convention": ("r.yaml", TABLE.replace("modified-dh", "[dh]"), "convention"),
    "number beyond floats": ("r.yaml", TABLE + f"gravity: [0, 0, {'9' * 400}]\n", "line 4"),
    "tag": ("r.yaml", "name: !!bool x\n", "tags"),
    "singular coupling": ("r.yaml", TABLE + "coupling: [[1, 1], [1, 1]]\n", "no inverse"),
    "overflow in coupling": ("r.yaml", TABLE + "coupling: [[1e-320, 1e6], [0, 1]]\n", "no inverse"),
    "missing base": ("r.yaml", "base: gone.urdf\n", "gone.urdf"),
    "own base": ("r.yaml", "base: r.yaml\n", "circle"),
    "not text": ("r.yaml", "\udcff\udcfe", "UTF-8"),
    "other ending": ("r.txt", TABLE, ".urdf, .xml (MJCF), .xacro or .yaml"),
    "odd file name": ("a\nb\x1b[31m.yaml", "", "must be a mapping"),
}


def complaint(arguments, capsys):
    """The one line on stderr of a run that must fail."""
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("dynident: ")
    assert captured.err.endswith("\n")
    assert captured.err.count("\n") == 1
    assert captured.err[:-1].isprintable()
    return captured.err[:-1]


def json_complaint(arguments, capsys) -> str:
    """The error in the one JSON object on stdout of a run that must fail."""
    assert main([*arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    assert found.keys() == {"error", "type", "code"}
    assert found["code"] == 2
    assert found["type"].endswith("Error")
    return found["error"]


@pytest.mark.parametrize(("name", "text", "fragment"), BAD_FILES.values(), ids=BAD_FILES)
def test_one_line_and_code_2(tmp_path, capsys, name, text, fragment):
    path = tmp_path / name
    path.write_bytes(text.encode(errors="surrogateescape"))
    line = complaint(["inspect", str(path)], capsys)
    assert fragment in line
    assert str(tmp_path) in line
    error = json_complaint(["inspect", str(path)], capsys)
    assert fragment in error.replace("\n", r"\n")
    assert str(tmp_path) in error


@pytest.mark.parametrize("verb", VERBS)
def test_errors_of_every_verb_are_json_on_demand(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    required = {
        "check": ["gone.yaml", "gone.csv"],
        "demo": ["--output", "/dev/null/fit"],
        "doctor": ["--unknown"],
        "friction": ["gone.yaml"],
        "gravity": ["gone.yaml"],
        "init": ["gone.yaml", "gone.csv"],
        "inspect": ["gone.yaml"],
        "live": ["gone.csv", "--robot", "gone.yaml"],
        "oscillate": ["gone.yaml"],
        "report": ["gone"],
        "run": ["gone.yaml"],
        "step": ["gone.yaml"],
    }
    assert json_complaint([verb, *required.get(verb, [])], capsys)
    given = [] if verb == "doctor" else required.get(verb, ["a"])  # it takes no argument, so that any is an error
    assert "unknown argument '--nonsense'" in json_complaint([verb, *given, "--nonsense"], capsys) or (
        "missing" in json_complaint([verb, "--nonsense"], capsys)
    )
    assert not list(tmp_path.iterdir())


def test_the_files_are_fine_without_their_faults(tmp_path, capsys):
    for name, text in (("r.urdf", URDF), ("r.yaml", TABLE)):
        (tmp_path / name).write_text(text)
        assert main(["inspect", str(tmp_path / name), "--json"]) == 0
    assert capsys.readouterr().err == ""


BAD_ARGUMENTS = {
    "unknown verb": (["inspct"], "unknown verb 'inspct'; did you mean 'inspect'?"),
    "verb with a quote": (["it's"], "unknown verb 'it's' (valid: inspect, "),
    "unknown option": (["inspect", "puma560", "--jsn"], "unknown argument '--jsn'; did you mean '--json'?"),
    "options are those of the verb": (
        ["inspect", "kr5", "--y"],
        "(valid: -h, --help, --list, --terms, --values, --n",
    ),
    "option of another verb": (["inspect", "kr5", "--friction", "basic"], "unknown argument '--friction' (valid: "),
    "misspelt and missing": (["identify", "r.yaml", "l.csv", "--outptu", "f"], "'--outptu'; did you mean '--output'?"),
    "option before the verb": (["--list"], "'--list' belongs behind the verb: dynident VERB --list"),
    "two robots": (["inspect", "puma560", "kr5"], "unknown argument 'kr5'"),
    "empty second robot": (["inspect", "puma560", ""], "unknown argument ''"),
    "no robot": (["inspect"], "inspect needs a ROBOT"),
    "empty robot": (["inspect", ""], "is neither a file nor a bundled robot"),
    "unknown robot": (["inspect", "puma650"], "did you mean 'puma560'?"),
    "robot of two lines": (["inspect", "a\nb"], r"a\nb: is neither a file nor"),
    "robot with an endless name": (["inspect", "a" * 5000], "is neither a file nor"),
    "file with an endless name": (["inspect", "a" * 5000 + ".urdf"], "File name too long"),
    "missing file": (["inspect", "/nowhere/r.urdf"], "/nowhere/r.urdf: no such file; check the path"),
    "folder": (["inspect", "/"], "/: is a folder; give a robot file"),
    "unknown term": (["inspect", "pendulum-1", "--terms", "rigid,Fx"], "unknown term 'Fx'"),
    "no term": (["inspect", "pendulum-1", "--terms", ""], "unknown term ''"),
    "unknown values": (["inspect", "pendulum-1", "--values", "a\nb"], r"unknown parameter set 'a\nb' (valid: plant)"),
    "essential before a log": (
        ["identify", "pendulum-1", "--essential", "log.csv", "-o", "out"],
        "argument --essential: SHARE must be a number, got 'log.csv'; put --essential after the logs, or write "
        "--essential=0.15",
    ),
    "tolerance word": (["inspect", "pendulum-1", "--tolerance", "x"], "argument --tolerance: invalid float value: 'x'"),
    "tolerance nan": (["inspect", "pendulum-1", "--tolerance", "nan"], "--tolerance is nan; expected a share"),
    "tolerance zero": (["inspect", "pendulum-1", "--tolerance", "0"], "--tolerance is 0.0; expected a share"),
    "tolerance missing": (["inspect", "pendulum-1", "--tolerance"], "argument --tolerance: expected one argument"),
    "locked nobody": (["inspect", "pendulum-2", "--locked", "q3=0"], "unknown joint to lock 'q3'"),
    "locked self": (["inspect", "pendulum-2", "--locked", "self=0"], "unknown joint to lock 'self'"),
    "locked without value": (["inspect", "pendulum-2", "--locked", "q1"], "--locked q1: expected joint=position"),
    "locked empty": (["inspect", "pendulum-2", "--locked", "q1="], "--locked q1=: '' is not an arithmetic expression"),
    "locked twice": (["inspect", "pendulum-2", "--locked", "q1=0,q1=1"], "--locked q1=1: q1 is locked twice"),
    "locked infinitely": (["inspect", "pendulum-2", "--locked", "q1=1e999"], "must be a finite number"),
    "locked imaginary": (["inspect", "pendulum-2", "--locked", "q1=(-1)^0.5"], "negative number to the power 0.5"),
    "locked code": (["inspect", "pendulum-2", "--locked", "q1=open('x')"], "may only contain"),
    "locked all": (["inspect", "pendulum-2", "--locked", "q1=0,q2=0"], "without a moving joint"),
}


@pytest.mark.parametrize(("arguments", "fragment"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments(capsys, arguments, fragment):
    assert fragment in complaint(arguments, capsys)


def test_names_are_not_markup(tmp_path, capsys):
    path = tmp_path / "r.yaml"
    path.write_text("name: '[bold]'\nconvention: dh\njoints: [{name: '[/red]', a: 1}, {name: ':smile:', a: 1}]\n")
    assert main(["inspect", str(path)]) == 0
    page = capsys.readouterr().out
    assert "[bold]" in page
    assert "[/red]" in page
    assert ":smile:" in page


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "dynident.cli.command_line", *arguments],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        env={**os.environ, **environment},
        timeout=60,
    )


@pytest.mark.parametrize("extra", [(), ("--json",)], ids=["page", "json"])
def test_as_a_process(tmp_path, extra):
    """Nothing else reaches the terminal either: no traceback, no warning of a library."""
    path = tmp_path / "r.yaml"
    path.write_text(TABLE + "coupling: [[1e-320, 1e6], [0, 1]]\n")
    answer = run("inspect", str(path), *extra, PYTHONWARNINGS="always")
    assert answer.returncode == 2
    problem = f"{path}: coupling: the matrix has no inverse"
    if extra:
        assert answer.stderr == ""
        assert json.loads(answer.stdout)["error"].startswith(problem)
        return
    assert answer.stdout == ""
    assert answer.stderr.startswith(f"dynident: {problem}")
    assert answer.stderr.count("\n") == 1


def test_a_name_the_terminal_cannot_show(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(TABLE.replace("elbow", "Ellenbögen"))
    answer = run("inspect", str(path), PYTHONIOENCODING="ascii")
    assert answer.returncode == 0
    assert answer.stderr == ""
    assert r"Ellenb\xf6gen" in answer.stdout


OVERWRITES = {
    "predict": "predict fit log.csv -o log.csv",
    "by another way": "predict fit log.csv -o ./sub/../log.csv",
    "replay": "replay model log.csv -o log.csv",
    "robot": "excite arm.yaml -o arm.yaml",
    "samples": "excite arm.yaml -o m.yaml --csv arm.yaml",
    "overlay": "check arm.yaml log.csv -o arm.yaml",
    "page": "compare fit other --validation log.csv -o log.csv",
}


@pytest.mark.parametrize("words", OVERWRITES.values(), ids=OVERWRITES)
def test_what_is_read_is_not_overwritten(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("log.csv", "arm.yaml"):
        (tmp_path / name).write_text(name)
    assert "would be overwritten" in complaint(words.split(), capsys)
    assert [(tmp_path / name).read_text() for name in ("log.csv", "arm.yaml")] == ["log.csv", "arm.yaml"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("sample fit --seed -4", "--seed is -4; expected a whole number, zero or more"),
        ("drives arm.xml log.csv --delay -0.5", "--delay is -0.5"),
        ("drives arm.xml log.csv --horizon 0", "--horizon is 0.0"),
        ("replay fit log.csv --delay -0.5", "--delay is -0.5"),
        ("replay fit log.csv --horizon -1", "--horizon is -1.0"),
    ],
)
def test_numbers_out_of_bounds(words, says, capsys):
    assert says in complaint(words.split(), capsys)
