from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from dynident.cli import doctor
from dynident.cli.command_line import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def truths():
    return json.loads((files("dynident.cli") / "self_test.json").read_text())


def test_what_a_report_of_a_defect_needs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("DYNIDENT_CACHE", str(tmp_path))
    begin = time.process_time()
    assert main(["doctor", "--json"]) == 0
    assert time.process_time() - begin < 5.0
    answer = json.loads(capsys.readouterr().out)
    assert {"dynident", "python", "system", "packages", "processor", "cache", "self_test"} <= set(answer)
    packages = {one["name"]: one for one in answer["packages"]}
    assert packages["numpy"] == {"name": "numpy", "extra": None, "version": np.__version__}
    assert packages["pyarrow"]["extra"] == "parquet"
    assert "pytest" not in packages  # of those who test it
    assert answer["cache"]["folder"] == str(tmp_path)
    assert answer["cache"]["unused_because"] is None
    assert answer["environment"]["DYNIDENT_CACHE"] == str(tmp_path)
    assert [one["passed"] for one in answer["self_test"]] == [True] * 4


def test_the_page_says_why_the_cache_is_not_used(capsys, monkeypatch, tmp_path):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("DYNIDENT_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor, "self_test", list)
    assert main(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "others can write to it" in out
    assert "DYNIDENT_CACHE=" in out


def test_an_installation_that_computes_wrongly_is_found(truths, monkeypatch, capsys):
    """Each test of the self-test fails on a truth that is a little off."""
    dynamics = truths["dynamics"]["panda"]
    dynamics["torque"][1][2] += 1e-6
    dynamics["base_parameters"] += 1
    truths["regression"]["std"][3] *= 1.0 + 1e-6
    truths["demo"] = {name: 1.1 * value for name, value in truths["demo"].items()}
    monkeypatch.setattr(json, "loads", lambda _: truths)
    found = {one["name"]: one for one in doctor.self_test()}
    assert [one["passed"] for one in found.values()] == [False] * 4
    assert "panda 43, not 44" in found["base parameters"]["found"]


def test_what_breaks_is_said(monkeypatch, capsys):
    def broken(_):
        raise OSError("no\nlibrary")

    for name in ("_torque", "_base_parameters", "_regression", "_demo"):
        monkeypatch.setattr(doctor, name, broken)
    assert main(["doctor"]) == 1
    captured = capsys.readouterr()
    assert "FAIL demo" in captured.out
    assert "OSError: no library" in captured.out
    assert "please report it" in captured.err


def test_truths_are_those_of_the_others():
    words = [sys.executable, str(ROOT / "tools" / "self_test_truths.py"), "--check"]
    assert "is true" in subprocess.run(words, capture_output=True, text=True, check=False).stdout
