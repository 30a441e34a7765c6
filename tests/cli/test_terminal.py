"""What people see: pages within 80 columns, colors on terminals only, JSON and silence on demand, hints."""

from __future__ import annotations

import argparse
import json
import os
import pty
import subprocess
import sys

import pytest
from rich.cells import cell_len

from dynident.cli.command_line import VERBS, main, verb_parser
from dynident.report.text import print_prose
from tests.cli.fits import ARM, DEMO, FIRST, LOADED, OTHER, PLAIN_WORDS, SECOND, complaint, fit_of

LEG = DEMO.parent / "drives"
MOTION = "motion.csv"  # of a moment, since only its page matters


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two fits, a run file, and room for what verbs write; short paths, which stay whole on a page."""
    root = tmp_path_factory.mktemp("t")
    fit_of(FIRST).save(root / "a")
    fit_of(SECOND).save(root / "b")
    rows = (",".join([f"{0.02 * i:.2f}", *["0"] * 6]) for i in range(20))
    (root / MOTION).write_text("\n".join(["t,q1,q2,q3,q4,q5,q6", *rows]) + "\n")
    (root / "run.yaml").write_text(
        f"robot: {ARM}\ntraining: [{FIRST}]\noutput: out\nidentify: {{band: 6, delay: 0.004, "
        "velocity_source: position, friction: basic, check: off}\nexport: {yaml: out/arm.yaml}\n"
    )
    return root


PAGES = {
    "inspect": ["inspect", "ur10e"],
    "inspect --list": ["inspect", "--list"],
    "inspect --nearest-physical": ["inspect", "ur10e", "--nearest-physical"],
    "check": ["check", ARM, FIRST, "--all"],
    "check a log": ["check", FIRST],
    "identify": ["identify", ARM, FIRST, "-o", "c", "--band", "6", *PLAIN_WORDS],
    "validate": ["validate", "a", OTHER],
    "predict": ["predict", "a", OTHER, "-o", "t.csv"],
    "payload": ["payload", "a", LOADED],
    "payload --known": ["payload", "a", "b", "--known", "2,0.01,0.02,0.06,0.004,0,0,0.004,0,0.002"],
    "gains": ["gains", ARM, LOADED, "--unloaded", OTHER, "--known", "2", "--band", "6"],
    "inspect --pose": ["inspect", "ur10e", "--pose", "q1=0.3"],
    "export": ["export", "a", "--urdf", "a.urdf", "--mjcf", "a.xml", "--yaml", "a.yaml"],
    "export --c": ["export", "a", "--c", "code"],
    "report": ["report", "a"],
    "compare": ["compare", "a", "b", "--all"],
    "compare five": ["compare", "a", "b", "a", "b", "a"],
    "init": ["init", ARM, str(DEMO), "-o", "new.yaml"],
    "run": ["run", "run.yaml"],
    "simulate": ["simulate", "ur10e", MOTION, "-o", "l.csv"],
    "excite": [
        "excite",
        "ur10e",
        "-o",
        "m.yaml",
        "--starts",
        "1",
        "--kicks",
        "0",
        "--duration",
        "2",
        "--harmonics",
        "2",
    ],
    "step": ["step", "minnesota", "--locked", "q1=0,q2=0", "--pose", "q3=0", "--volts", "0.4,0.2"],
    "gravity --plan": ["gravity", "kr5-planar", "--plan"],
    "gravity": ["gravity", "kr5-planar", "--joints", "q3", "--rate", "100"],
    "friction": ["friction", "pendulum-1", "--velocities", "0.3,0.6,0.9", "--rate", "200"],
    "oscillate": ["oscillate", "pendulum-1", "--encoder", "65536"],
    "oscillate --sensitivity": ["oscillate", "ur10e", "--sensitivity"],
    "live": ["live", LOADED, "--fit", "a"],
    "drives": ["drives", str(LEG / "leg.xml"), str(LEG / "train.csv.gz"), "--kp", "20", "--kd", "1"],
    "replay": ["replay", str(LEG / "leg.xml"), str(LEG / "validation.csv.gz"), "--kp", "20", "--kd", "1"],
    "papers --list": ["papers", "gautier", "--list"],
    "doctor": ["doctor"],
    "sample": ["sample", "a", "-n", "5", "-o", "models"],
    "fleet init": ["fleet", "init", str(DEMO), "--robot", ARM, "-o", "f.yaml"],
}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_fits_80_columns(page, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(PAGES[page]) == 0
    shown = capsys.readouterr().out
    assert shown.strip()
    assert "\x1b" not in shown  # no colors, since this is no terminal
    wide = [line for line in shown.splitlines() if cell_len(line) > 80 and str(DEMO) not in line]
    assert wide == []


def test_every_verb_has_a_page_here():
    assert set(VERBS) - {"demo"} <= {words[0] for words in PAGES.values()}


def verbs() -> dict[str, argparse.ArgumentParser]:
    return {verb: verb_parser(verb) for verb in VERBS}


def test_json_everywhere_and_quiet_where_files_are_written():
    for name, verb in verbs().items():
        options = {option for action in verb._actions for option in action.option_strings}
        assert "--json" in options, name
        if "--output" in options or name in ("export", "run"):
            assert "--quiet" in options, name


@pytest.mark.parametrize("page", ["predict", "export", "report", "simulate"])
def test_quiet_verbs_say_nothing(page, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert main([*PAGES[page], "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_helps_fit_too(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    assert max(cell_len(line) for line in capsys.readouterr().out.splitlines()) <= 80
    for verb in VERBS:
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        shown = capsys.readouterr().out
        assert max(cell_len(line) for line in shown.splitlines()) <= 80
        assert shown.rstrip().endswith(f"Example:\n  dynident {VERBS[verb].example}")


def on_a_terminal(words: list[str], **environment: str) -> str:
    """What a verb shows on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    given = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    command = [sys.executable, "-m", "dynident.cli.command_line", *words]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=given) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # Linux ends a closed terminal so
            pass
        assert process.wait() == 0
    os.close(ours)
    return shown.decode()


def test_colours_on_a_terminal_unless_they_are_not_wanted():
    assert "\x1b[1m" in on_a_terminal(["inspect", "ur10e"], NO_COLOR="")
    plain = on_a_terminal(["inspect", "ur10e"], NO_COLOR="1")
    assert not any(f"\x1b[{code}m" in plain for code in range(30, 38))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["identfy"], "unknown verb 'identfy'; did you mean 'identify'?"),
        (["comapre"], "did you mean 'compare'?"),
        (["compare", "a", "b", "--jsn"], "unknown argument '--jsn'; did you mean '--json'?"),
        (
            ["identify", ARM, FIRST, "-o", "x", "--check", "stpo"],
            "--check: unknown choice 'stpo'; did you mean 'stop'?",
        ),
        (["inspect", "ur10e", "--symbolic", "latx"], "did you mean 'latex'?"),
        (["inspect", "ur10"], "did you mean 'ur10e'?"),
        (["identify", ARM, FIRST, "-o", "x", "--estimator", "weigted"], "did you mean 'weighted'?"),
        (["identify", ARM, FIRST, "-o", "x", "--differentiator", "lowpass"], "did you mean 'low-pass'?"),
        (["identify", ARM, FIRST, "-o", "x", "--friction", "autoo"], "did you mean 'auto'?"),
        (["excite", "ur10e", "-o", "x.yaml", "--criterion", "determinat"], "did you mean 'determinant'?"),
        (["excite", "ur10e", "-o", "x.yaml", "--start", "elbwo=0"], "did you mean 'elbow'?"),
        (["simulate", "ur10e", MOTION, "-o", "x.csv", "--controller", "fedforward"], "did you mean 'feedforward'?"),
        (["export", "a", "--urdf", "x.urdf", "--prior", "plausble"], "did you mean 'plausible'?"),
        (["payload", "a", LOADED, "--session", "atuo"], "did you mean 'auto'?"),
    ],
)
def test_a_slip_of_the_pen_gets_the_nearest_word(words, hint, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert hint in complaint(capsys, *words)


def test_a_parameter_with_a_slip_gets_the_nearest_name():
    with pytest.raises(Exception, match="did you mean 'MYR5'"):
        _ = fit_of(FIRST)["MY_R5"]


def test_json_is_one_object(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    for page in ("inspect", "check", "validate", "predict", "report", "compare", "init"):
        assert main([*PAGES[page], "--json", *(["--overwrite"] if page == "init" else [])]) == 0
        assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_prose_hangs_under_its_indentation_and_keeps_paths_whole(capsys):
    print_prose("one two three\n  four five six seven\n/a/very/long/path/that/stays.csv", width=14)
    assert capsys.readouterr().out.splitlines() == [
        *("one two three", "  four five", "    six seven"),
        "/a/very/long/path/that/stays.csv",
    ]
