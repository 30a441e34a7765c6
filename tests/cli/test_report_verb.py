from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy

import dynident as di
from dynident.cli.command_line import main
from dynident.estimate.records import FileRecord
from tests.cli.fits import ARM, FIRST, OTHER, PLAIN_WORDS, answer, complaint, fit_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "fit"
    words = ["identify", ARM, FIRST, "--validation", OTHER, "-o", str(out), "--band", "6", "--window", "0:19"]
    assert main([*words, *PLAIN_WORDS, "--quiet"]) == 0
    return out


def test_a_regenerated_report_is_the_original(folder, tmp_path, capsys):
    original = (folder / "report.html").read_bytes()
    target = tmp_path / "again.html"
    found = answer(capsys, "report", str(folder), "-o", str(target))
    assert target.read_bytes() == original
    assert found["bytes"] == len(original)
    assert found["verdict"].endswith("torque error on held-out logs")
    assert f"dynident identify {ARM}" in found["command"]
    assert "--window 0:19" in found["command"]


def test_it_replaces_the_report_beside_the_fit(folder, capsys):
    original = (folder / "report.html").read_bytes()
    (folder / "report.html").write_text("lost")
    assert main(["report", str(folder / "fit.yaml")]) == 0
    assert (folder / "report.html").read_bytes() == original
    assert "report.html" in capsys.readouterr().out
    assert main(["report", str(folder), "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_fit_remembers_where_it_comes_from(folder):
    known = di.load_fit(folder).provenance
    assert known.versions == {
        "dynident": di.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }
    assert known.options == {
        "band": 6.0,
        "delay": 0.004,
        "velocity_source": "position",
        "friction": "basic",
        "check": "off",
    }
    assert known.files == (FileRecord("robot", ARM, hashlib.sha256(Path(ARM).read_bytes()).hexdigest()),)


def test_versions_and_files_stand_on_the_page(folder):
    page = (folder / "report.html").read_text()
    assert f"<dt>SciPy</dt><dd>{scipy.__version__}</dd>" in page
    assert hashlib.sha256(Path(ARM).read_bytes()).hexdigest() in page


def test_a_fit_without_a_command_says_so(tmp_path, capsys):
    fit = fit_of(FIRST)
    assert fit.provenance.options["friction"] == "basic"
    replace(fit, provenance=None).save(tmp_path / "old")
    assert main(["report", str(tmp_path / "old")]) == 0
    said = capsys.readouterr().out
    assert "does not say which command made it" in said
    assert "No report.npz of this fit is beside it" in said
    assert "The same result again" not in (tmp_path / "old" / "report.html").read_text()


def test_what_cannot_be_written_is_refused(folder, tmp_path, capsys):
    assert "ends in .html" in complaint(capsys, "report", str(folder), "-o", str(tmp_path / "page.pdf"))
    assert "does not exist" in complaint(capsys, "report", str(folder), "-o", str(tmp_path / "no" / "page.html"))
    assert "no such file" in complaint(capsys, "report", str(tmp_path / "nothing"))
