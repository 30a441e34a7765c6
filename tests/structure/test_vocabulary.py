"""The words of the field, and none of the project's own: code, help, messages, reports, docs and tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "docs", "tests", "examples", "benchmarks", "tools")
ENDINGS = {".py", ".md", ".yaml", ".css", ".js", ".ipynb", ".toml", ".svg", ".xml", ".urdf"}
WORDS = {  # not our words -> what the field says
    "told": "reported, given, distinguished, determined",
    "anew": "again",
    "mend|mends|mended|mending": "correct",
    "felt": "acts, has an effect",
    "finding|findings": "diagnostic",
    "checkup|checkups|check-up|check-ups": "diagnosis",
    "teach|teaches": "training",
    "judge|judges|judged|judging": "evaluate, assess, validate",
    "quickening": "acceleration",
    "log doctor": "log diagnostics",
    "open directions|open_directions": "null space",
    "bodies that can exist|can exist|could exist": "physically consistent",
    "rest speed|rest_speed|joint speed|joint speeds|measured speed|measured speeds": "velocity",
}
ALLOWED = {  # file -> why a word may stand there
    "src/dynident/__init__.py": "names of before, until 0.6",
    "src/dynident/deprecated.py": "names of before, until 0.6",
    "src/dynident/diagnostics/__init__.py": "names of before, until 0.6",
    "src/dynident/estimate/fit.py": "a property of before, until 0.6",
    "src/dynident/estimate/records.py": "properties of before, until 0.6",
    "src/dynident/diagnostics/log_split.py": "words in names of users' files",
    "docs/reference/run-files.md": "words in names of users' files",
    "docs/papers/abhishek-kr5.md": "the title of a table: 'two ways of finding moments'",
    "tests/cli/test_deprecated.py": "options of before, until 0.6",
    "tests/structure/test_structure.py": "participles that are no names",
    "tests/structure/test_vocabulary.py": "this list",
    "tools/count_words.py": "what it counts",
}


def texts() -> dict[str, str]:
    """Every text of the project by its path; fits of earlier versions are left out."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS]
    names = [path.relative_to(ROOT).as_posix() for path in (*paths, ROOT / "README.md")]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names if not name.startswith("tests/data/")}


def uses(pattern: str, text: str) -> list[str]:
    """Lines with one of the words; names are words joined by underscores."""
    word = re.compile(rf"(?<![a-zA-Z])({pattern})(?![a-zA-Z])", re.IGNORECASE)
    return [line.strip() for line in text.splitlines() if word.search(line)]


@pytest.mark.parametrize("pattern", WORDS)
def test_the_words_of_the_field(pattern):
    found = {name: uses(pattern, text) for name, text in texts().items() if name not in ALLOWED}
    assert not {name: lines for name, lines in found.items() if lines}, f"say instead: {WORDS[pattern]}"


def test_every_exception_is_needed():
    """An exception whose reason is gone goes too."""
    everything = "|".join(WORDS)
    assert all(uses(everything, text) for name, text in texts().items() if name in ALLOWED)


def test_names_are_split_into_words():
    assert uses("told", "def test_it_is_told():") == ["def test_it_is_told():"]
    assert uses("told", "an untold amount") == []
