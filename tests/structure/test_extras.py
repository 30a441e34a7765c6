"""Every extra is optional: a verb does its work without it, or says in one sentence what to install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dynident.cli.command_line import VERBS

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo"
# Modules that the packages of an extra bring; a package that is not named here has a module of its name.
MODULES = {"mcap": ("mcap",), "xacro": ("xacro",)}
EXTRAS = {
    extra: [re.match(r"[\w-]+", one)[0].lower() for one in packages]
    for extra, packages in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ].items()
    if extra not in ("test", "docs")
}
LOG, FIT = "a.csv", "fit"
COMMANDS = {
    "inspect": "pendulum-2",
    "excite": "pendulum-2 --duration 4 --seed 1 -o motion.yaml --quiet",
    "simulate": "pendulum-2 point.yaml -o simulated.csv",
    "check": f"pendulum-2 {LOG}",
    "identify": f"pendulum-2 {LOG} -o other --terms rigid,Fv,Fc --check off --quiet",
    "drives": "pendulum-2 commanded.csv --kp 60 --kd 2",
    "validate": f"{FIT} {LOG}",
    "export": f"{FIT} --urdf arm.urdf --yaml arm.yaml --c code",
    "predict": f"{FIT} {LOG} -o torque.csv",
    "payload": f"{FIT} {LOG}",
    "gains": f"{DEMO}/arm.yaml {DEMO}/payload.csv.gz --unloaded {DEMO}/fourier_1.csv.gz --known 2.0",
    "replay": "pendulum-2 commanded.csv --kp 60 --kd 2",
    "report": f"{FIT} -o report.html",
    "compare": f"{FIT} {FIT}",
    "init": f"pendulum-2 {LOG} -o run.yaml",
    "run": "ready.yaml --quiet",
    "demo": "-o demo --quiet",
    "papers": "kim --only table-1",
    "gravity": "pendulum-1 -o gravity --quiet",
    "friction": "pendulum-1 -o friction --quiet",
    "step": "pendulum-1 --volts 0.4 --quiet",
    "oscillate": "pendulum-1 -o oscillation --quiet",
    "live": f"{LOG} --robot pendulum-2 --json",
    "doctor": "--json",
}
CHILD = """
import contextlib, io, json, os, sys, traceback, warnings
blocked = set(sys.argv[1].split(","))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
warnings.simplefilter("ignore")
from dynident.cli.command_line import main
answers = {}
for verb, words in json.loads(sys.stdin.read()).items():
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([verb, *words])
        except BaseException:
            code, words = -1, err.write(traceback.format_exc())
    out.flush()
    answers[verb] = [code, err.getvalue()[-600:] + (out.buffer.getvalue().decode()[-300:] if code == 2 else "")]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Inputs that everything installed has made."""
    from dynident.cli.command_line import main
    from dynident.logs.write import write_log
    from dynident.motion.point_to_point import PointToPoint
    from dynident.motion.storage import save_trajectory
    from tests.estimate.test_storage import estimate_of, noisy_log

    place = tmp_path_factory.mktemp("extras")
    fit = estimate_of("pendulum-2")
    fit.save(place / FIT)
    log = noisy_log(fit.robot, 1, "a", seconds=8.0)
    write_log(log, place / LOG)
    targets = {f"target{i + 1}": log.channels[f"q{i + 1}"] for i in range(2)}
    write_log(replace(log, channels={**log.channels, **targets}), place / "commanded.csv")
    save_trajectory(PointToPoint(points=[[0.0, 0.0], [0.3, 0.2]], durations=[2.0]), place / "point.yaml")
    run = f"robot: pendulum-2\noutput: again\ntraining: [{LOG}]\nidentify: {{check: off, terms: [rigid, Fv, Fc]}}\n"
    (place / "ready.yaml").write_text(run)
    assert main(["inspect", "pendulum-2", "--json"]) == 0
    return place


def answers(folder, blocked, verbs=COMMANDS):
    commands = {verb: COMMANDS[verb].split() for verb in verbs}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, ",".join(blocked)],
        input=json.dumps(commands),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def modules_of(extra):
    return [module for package in EXTRAS[extra] for module in MODULES.get(package, (package,))]


def wrong(found, packages):
    """Verbs that neither work nor say which package they lack."""
    hint = re.compile("|".join(f"pip install {package}" for package in packages))
    works = {verb for verb, (code, words) in found.items() if code in (0, 1) or (code == 2 and hint.search(words))}
    return {verb: words for verb, (_, words) in found.items() if verb not in works}


def test_every_verb_is_tried():
    assert list(COMMANDS) == list(VERBS)


def test_all_verbs_without_any_extra(folder):
    found = answers(folder, [module for extra in EXTRAS for module in modules_of(extra)])
    assert wrong(found, [package for packages in EXTRAS.values() for package in packages]) == {}
    needs = {verb for verb, (code, _) in found.items() if code == 2}
    assert needs == {
        "simulate",
        "drives",
        "replay",
        "gravity",
        "friction",
        "step",
        "oscillate",
        "papers",
    }  # MuJoCo, SymPy


@pytest.mark.full
@pytest.mark.parametrize("extra", EXTRAS)
def test_every_verb_without_one_extra(folder, extra):
    assert wrong(answers(folder, modules_of(extra)), EXTRAS[extra]) == {}
