"""Pages of the API reference: one for each room, with every public name of dynident.

Sphinx calls `write_pages` before it reads; the pages themselves are not kept.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import dynident as di

HEADINGS = {
    "robot": "Robots",
    "dynamics": "Equations",
    "identifiability": "What can be identified",
    "symbolic": "Closed forms",
    "logs": "Logs",
    "signals": "Signals",
    "information": "Information",
    "estimate": "Estimation",
    "physical": "Physically consistent parameters",
    "payload": "Payloads and drive gains",
    "diagnostics": "Log diagnostics",
    "validation": "Validation",
    "pipeline": "Identification",
    "motion": "Motions",
    "plant": "Plants",
    "experiments": "Special experiments",
    "online": "On-line",
    "drives": "Drives",
    "export": "Export",
    "report": "Report",
    "errors": "Errors",
}  # room: heading, in the order data flows


def names_by_room() -> dict[str, list[str]]:
    """Public names of each room in alphabetical order: those at the top level, and what the room exports."""
    found: dict[str, set[str]] = {room: set() for room in HEADINGS}
    for name, module in di._ROOM_OF.items():
        found[module.split(".")[1]].add(name)
    for room in HEADINGS:
        exported = getattr(importlib.import_module(f"dynident.{room}"), "__all__", ())
        found[room] |= {name for name in exported if name not in di._ROOM_OF and documented(room, name)}
    return {room: sorted(names, key=str.lower) for room, names in found.items() if names}


def documented(room: str, name: str) -> bool:
    """Whether a name of a room is a class or a function, and not a constant or a type alias."""
    value = getattr(importlib.import_module(f"dynident.{room}"), name)
    return inspect.isclass(value) or inspect.isfunction(value)


def value_of(room: str, name: str) -> object:
    """What a public name means."""
    return getattr(di, name) if name in di._ROOM_OF else getattr(importlib.import_module(f"dynident.{room}"), name)


def kind(room: str, name: str) -> str:
    """The directive of Sphinx that documents a public name."""
    value = value_of(room, name)
    if not inspect.isclass(value):
        return "function"
    return "exception" if issubclass(value, BaseException) else "class"


def page(room: str, names: list[str]) -> str:
    """A room's page: functions first, then records, then errors and warnings."""
    title = f"{HEADINGS[room]}: ``dynident.{room}``"
    lines = [title, "=" * len(title), ""]
    order = ("function", "class", "exception")
    for name in sorted(names, key=lambda one: order.index(kind(room, one))):
        place = "dynident" if name in di._ROOM_OF else f"dynident.{room}"
        lines += [f".. currentmodule:: {place}", "", f".. auto{kind(room, name)}:: {name}"]
        lines += ["   :members:"] if kind(room, name) == "class" else []
        bases = getattr(value_of(room, name), "__bases__", (object,))
        lines += ["   :show-inheritance:"] if bases != (object,) else []
        lines += [""]
    return "\n".join(lines)


def write_pages(folder: Path) -> None:
    """Write index.rst and a page for each room; pages that would not change keep their time."""
    folder.mkdir(exist_ok=True)
    rooms = names_by_room()
    pages = {room: page(room, names) for room, names in rooms.items()}
    listed = "\n".join(f"   {room}" for room in rooms)
    pages["index"] = (
        "API\n===\n\nEvery public name by the room it lives in: ``import dynident as di``, then ``di.NAME`` for those "
        "listed as\n``dynident.NAME`` and ``di.ROOM.NAME`` for the others.\n\n"
        f".. toctree::\n   :maxdepth: 2\n\n{listed}\n"
    )
    for stale in set(folder.glob("*.rst")) - {folder / f"{name}.rst" for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
