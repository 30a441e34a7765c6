"""Fields of configuration files against the sources of Isaac Lab and mjlab, where these are on the path.

Nothing of them is imported: `pip install --no-deps mjlab isaaclab` is enough, in a folder on PYTHONPATH.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from dynident.export.events import ISAACLAB_EVENTS, MJLAB_EVENTS
from dynident.export.simulator_configs import ISAACLAB, MJLAB

FILES = {
    "isaaclab": ("actuators/*.py", "managers/*.py", "envs/mdp/events.py"),
    "mjlab": ("actuator/*.py", "managers/*.py", "envs/mdp/dr/*.py"),
}


class Sources:
    """Fields of classes and arguments of functions, by name."""

    def __init__(self, project):
        (folder,) = find_spec(project).submodule_search_locations
        inner = Path(folder) / "source" / project / project  # where the package of Isaac Lab has its own
        self.bases, self.fields, self.arguments = {}, {}, {}
        for pattern in FILES[project]:
            for path in (inner if inner.is_dir() else Path(folder)).glob(pattern):
                for node in ast.walk(ast.parse(path.read_text())):
                    self.take(node)

    def take(self, node):
        if isinstance(node, ast.FunctionDef):
            self.arguments.setdefault(node.name, [own.arg for own in node.args.args])
        if not isinstance(node, ast.ClassDef):
            return
        self.bases[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]
        self.fields[node.name] = {
            own.target.id: own.value is None or ast.unparse(own.value) == "MISSING"
            for own in node.body
            if isinstance(own, ast.AnnAssign)
        }
        for own in node.body:  # an event that is a class
            if isinstance(own, ast.FunctionDef) and own.name == "__call__":
                self.arguments[node.name] = [argument.arg for argument in own.args.args]

    def of(self, name):
        found = {}
        for base in self.bases.get(name, []):
            found |= self.of(base)
        return found | self.fields.get(name, {})


@pytest.mark.parametrize(
    ("project", "schema"),
    [("isaaclab", ISAACLAB), ("isaaclab", ISAACLAB_EVENTS), ("mjlab", MJLAB), ("mjlab", MJLAB_EVENTS)],
)
def test_fields_are_those_of_the_project(project, schema):
    if find_spec(project) is None:
        pytest.skip(f"{project} is not on the path")
    sources = Sources(project)
    for name, fields in schema.items():
        short = name.rpartition(".")[2]
        if short[0].islower():
            assert set(fields) <= set(sources.arguments[short]), name
            continue
        known = sources.of(name)
        assert set(fields) <= set(known), name
        assert {key for key, required in known.items() if required} - {"class_type"} <= set(fields), name
