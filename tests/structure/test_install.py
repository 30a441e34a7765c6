"""Wheel and source distribution: built, installed where there is nothing else, and used as the README says."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import dynident as di

ROOT = Path(__file__).parents[2]
MAX_WHEEL_BYTES = 2_000_000
LOGS = ("arm.yaml", "fourier_1.csv.gz", "fourier_2.csv.gz", "wandering.csv.gz", "payload.csv.gz")


def run(*words: str | Path, cwd: Path, code: int = 0) -> str:
    """What a program prints, in an environment that knows nothing of this one."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DYNIDENT", "VIRTUAL"))
    }
    answer = subprocess.run(list(map(str, words)), cwd=cwd, env=clean, capture_output=True, text=True, timeout=600)
    assert answer.returncode == code, answer.stderr
    return answer.stdout


def environment(folder: Path) -> Path:
    """The programs of a new, empty environment."""
    venv.create(folder, with_pip=True)
    return folder / "bin"


def install(bin_: Path, *what: str | Path) -> None:
    run(bin_ / "python", "-m", "pip", "install", "-q", "--no-compile", "-c", ROOT / "constraints.txt", *what, cwd=bin_)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """Wheel and source distribution, made by the build backend alone."""
    folder = tmp_path_factory.mktemp("dist")
    bin_ = environment(folder / "builder")
    install(bin_, "hatchling")
    run(bin_ / "python", "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    return wheel, source


@pytest.mark.full
def test_the_wheel_holds_what_runs_and_nothing_else(built):
    wheel, source = built
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"dynident", f"dynident-{di.__version__}.dist-info"}
    for name in ("__main__.py", "py.typed", "report/style.css", "report/page.js", "robot/bundled/ur10e.yaml"):
        assert f"dynident/{name}" in names
    for log in LOGS:
        assert f"dynident/cli/demo_logs/{log}" in names
    with tarfile.open(source) as archive:
        members = {"/".join(member.name.split("/")[1:]) for member in archive.getmembers()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/dynident/__init__.py", "examples/demo/arm.yaml"} <= members


@pytest.mark.full
@pytest.mark.parametrize("kind", ["wheel", "source"])
def test_it_runs_where_there_is_nothing_else(built, tmp_path, kind):
    bin_ = environment(tmp_path / "empty")
    install(bin_, built[("wheel", "source").index(kind)])
    assert run(bin_ / "dynident", "--version", cwd=tmp_path) == f"dynident {di.__version__}\n"
    assert run(bin_ / "python", "-m", "dynident", "--help", cwd=tmp_path).startswith("usage: dynident VERB")
    assert "good: " in run(bin_ / "dynident", "demo", "-o", "demo", cwd=tmp_path)
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    # Whatever an extra would bring is absent, and the message says how it comes.
    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    said = run(bin_ / "dynident", "check", "log.parquet", "--json", cwd=tmp_path, code=2)
    assert '"error": "log.parquet: reading Parquet needs pyarrow: pip install pyarrow"' in said
    run(bin_ / "dynident", "export", "demo", "--urdf", "arm.urdf", "--yaml", "arm.yaml", cwd=tmp_path)
    assert "<robot" in (tmp_path / "arm.urdf").read_text()
    if kind == "wheel":  # an extra of what is installed already needs no index that has dynident
        install(bin_, "dynident[parquet]")
        run(bin_ / "python", "-c", "import pyarrow", cwd=tmp_path)


def test_this_python_is_one_that_the_project_names():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    named = [one.split(" :: ")[-1] for one in project["classifiers"] if "Python :: 3." in one]
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in named
    for version in named:
        assert f'"{version}"' in workflow
