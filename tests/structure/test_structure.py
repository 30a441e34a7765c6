"""The plan of the house, enforced: layer rule, exports, docstrings, import times."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dynident

SOURCE = Path(dynident.__file__).parent
ROOMS = [
    # identifiability before information: factors are written in structural base parameters
    *("robot", "dynamics", "logs", "identifiability", "information", "signals", "motion", "plant"),
    *("estimate", "experiments", "online", "check", "validation", "export", "report", "run"),
]
SHARED = {"errors", "arrays", "files", "options", "schema", "_version"}
MODULES = sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_from_rooms_above(path):
    parts = path.relative_to(SOURCE).parts
    if len(parts) == 1 and parts[0] == "__init__.py":
        return
    own = ROOMS.index(parts[0]) if len(parts) > 1 else -1
    for name in imports(path):
        if not name.startswith("dynident"):
            continue
        room = name.split(".")[1] if "." in name else ""
        if room in SHARED or not room:
            continue
        assert room in ROOMS, f"{path}: unknown room {room}"
        assert ROOMS.index(room) <= own, f"{path.name} in {parts[0]} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_guests_stay_in_their_rooms(path):
    parts = path.relative_to(SOURCE).parts
    for name in imports(path):
        package = name.split(".")[0]
        if package == "mujoco":
            assert parts[0] == "plant" or path.name in ("mjcf.py", "reload_check.py"), path
        if package in ("matplotlib", "plotly", "rich"):
            assert parts[0] in ("report", "run"), path
        if package == "sympy":
            assert "symbolic" in path.name, path


def test_every_public_name_is_there_and_documented():
    for name in dynident.__all__:
        value = getattr(dynident, name)
        assert name == "__version__" or value.__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = dynident.nonsense


def test_names_of_before_still_work_and_say_what_they_are_called_now():
    for old, new in dynident._RENAMED.items():
        assert old not in dynident.__all__
        with pytest.warns(DeprecationWarning, match=f"di.{old} is now di.{new}"):
            assert getattr(dynident, old) is getattr(dynident, new)


def test_no_room_hides_a_public_name():
    # A package of that name would take the place of the function as soon as somebody imports it.
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {path.stem for path in SOURCE.glob("*.py")}
    assert packages.isdisjoint(dynident.__all__)


def test_importing_does_not_load_the_heavy_parts():
    heavy = ("numpy", "rich", "scipy", "yaml")
    code = f"import sys, dynident.run.command_line; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_no_file_needs_a_table_of_contents():
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 450, path
