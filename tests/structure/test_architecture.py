"""docs/architecture.md is true of the code: its rooms, their order, and the records that a sample passes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.structure.test_structure import ROOMS, SOURCE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def table(heading: str) -> list[list[str]]:
    """Cells of the table under a heading, backquotes removed."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def test_rooms_are_those_of_the_package_in_their_order():
    assert [room for room, _ in table("Rooms")] == ROOMS


def test_a_sample_passes_the_records_of_the_page():
    for name, room, _ in table("The way of a sample"):
        homes = [
            module
            for path in (SOURCE / room).rglob("*.py")
            if re.search(rf"^class {name}\b", path.read_text(), re.MULTILINE)
            and hasattr(module := importlib.import_module(module_name(path)), name)
        ]
        assert len(homes) == 1, f"{name} is defined in {homes}, not once in {room}"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_files_that_the_page_names_are_there():
    for name in re.findall(r"`((?:tests/|tools/)?[a-z_/]+\.py)`", PAGE):
        assert (ROOT / name).exists() or (SOURCE / name).exists(), name


def test_the_picture_shows_every_room_and_record():
    picture = (ROOT / "docs" / "architecture.svg").read_text()
    shown = set(re.findall(r">([A-Za-z]+)</text>", picture))
    assert {room for room, _ in table("Rooms")} <= shown
    assert {name for name, _, _ in table("The way of a sample")} <= shown
