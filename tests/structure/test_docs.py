"""Every Python block of the documentation runs, every command in it exits 0, and no number in it is stale."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dynident.run.command_line import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial-inspect.md"


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), names)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_commands_run(path, capsys, tmp_path, monkeypatch):
    from tests.robots import random_urdf

    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "arm.urdf").write_text(random_urdf(1))
    for block in blocks(TUTORIAL, "yaml"):
        (tmp_path / "arm.yaml").write_text(block)
    for block in blocks(path, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "dynident":
                assert main(words[1:]) == 0, line


def test_links_lead_somewhere():
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_program_on_the_page_is_the_one_that_is_compiled():
    (shown,) = blocks(ROOT / "docs" / "tutorial-export.md", "c")
    assert shown == (ROOT / "examples" / "export" / "main.c").read_text()


def test_the_tutorials_numbers(inspect):
    assert inspect("kr5", "--locked", "q1=0,q4=0,q6=0")["counts"]["base"] == 9
    assert inspect("kr5", "--locked", "q1=0,q4=0.5,q6=0")["counts"]["base"] == 13


def test_the_readmes_picture_shows_the_current_page():
    picture = (ROOT / "docs" / "inspect.svg").read_text()
    assert "56" in picture
    assert "http" not in picture.replace("http://www.w3.org", "")
