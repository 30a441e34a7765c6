"""Every example runs as a user would run it, is short, and says what it finds."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MAKERS = sorted((ROOT / "examples").glob("*/*.py"))  # rewrite the data of the examples: imported, not run
LONGEST = 80  # lines


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_examples():
    assert {path.name for path in EXAMPLES} >= {"kr5_planar.py", "kr5_subchain.py"}
    assert name(ROOT / "examples" / "demo" / "make_logs.py") in [name(path) for path in MAKERS]


def test_the_notebook_shows_what_its_cells_give(monkeypatch):
    """Run again, as `make notebook` does: the same kinds of outputs, and the same words and numbers to two digits."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    spec = importlib.util.spec_from_file_location("run_notebook", ROOT / "tools" / "run_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = ROOT / "examples" / "first_steps.ipynb"
    monkeypatch.chdir(path.parent)
    stored = json.loads(path.read_text())
    assert path.stat().st_size < 250_000
    again = module.run_notebook(stored)
    texts = [[said for cell in one["cells"] for said in outputs(cell)] for one in (stored, again)]
    assert len(texts[0]) > 10
    assert texts[0] == texts[1]
    assert sum("image/png" in str(cell.get("outputs", "")) for cell in stored["cells"]) == 3


def outputs(cell: dict) -> list[str]:
    """What a cell shows as text, its numbers to two digits: the last ones depend on the processor."""
    shown = [one.get("text") or one["data"]["text/plain"] for one in cell.get("outputs", ())]
    return [
        re.sub(r"\d+\.\d+(e-?\d+)?", lambda found: f"{float(found[0]):.2g}", " ".join("".join(text).split()))
        for text in shown
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_it_runs(path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    answer = subprocess.run(
        [sys.executable, str(path)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) >= 3, "it should say what it finds"
    assert "Warning" not in answer.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_it_is_short_and_explained(path):
    text = path.read_text()
    assert len(text.splitlines()) < LONGEST
    introduction = ast.get_docstring(ast.parse(text)) or ""
    assert len(introduction.splitlines()) >= 3, "the introduction says what it is about"


@pytest.mark.parametrize("path", [*EXAMPLES, *MAKERS], ids=name)
def test_importing_it_does_nothing(path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))  # as when it is run
    spec = importlib.util.spec_from_file_location(f"example_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("path", MAKERS, ids=name)
def test_its_data_is_there(path):
    assert any(path.parent.glob("*.csv.gz"))
    assert f"python {name(path)}" in ast.get_docstring(ast.parse(path.read_text()))
