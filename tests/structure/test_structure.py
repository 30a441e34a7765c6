"""The plan of the house, enforced: layer rule, exports, docstrings, import times. Each test lists all offenders."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import dynident

SOURCE = Path(dynident.__file__).parent
# A room imports only from itself and from rooms before it.
ROOMS = [
    "robot",
    "dynamics",
    "identifiability",
    "symbolic",
    "logs",
    "signals",
    "information",
    "estimate",
    "physical",
    "payload",
    "diagnostics",
    "validation",
    "pipeline",
    "motion",
    "plant",
    "experiments",
    "online",
    "drives",
    "export",
    "report",
    "papers",
    "fleet",
    "cli",
]
SHARED = {
    "errors",
    "arrays",
    "deprecated",
    "display",
    "files",
    "isolation",
    "lazy",
    "limits",
    "markup",
    "npz",
    "options",
}
SHARED |= {"readers", "schema", "_version"}
MODULES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in MODULES}
NAMES = {  # dotted names of the modules
    path: ".".join(("dynident", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in MODULES
}
GUESTS = {  # package -> rooms and files that may import it
    "mujoco": ("plant", "drives", "robot/mjcf.py", "export/verification.py"),
    "rich": ("report", "cli"),
    "matplotlib": ("report",),
    "sympy": ("symbolic",),
}
LONGEST_FILE = 600  # lines


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imports(tree: ast.Module) -> list[str]:
    """Modules that a file imports anywhere, lazily too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return found


def test_a_room_imports_only_from_rooms_above():
    offenders = []
    for path, tree in TREES.items():
        parts = path.relative_to(SOURCE).parts
        if parts in (("__init__.py",), ("__main__.py",)):
            continue
        own = ROOMS.index(parts[0]) if len(parts) > 1 else -1
        for name in imports(tree):
            room = name.split(".")[1] if name.startswith("dynident.") else None
            if name.startswith(".") or (room and room not in SHARED and ROOMS.index(room) > own):
                offenders.append(f"{name_of(path)} imports {name}")
    assert not offenders


def module_imports(path: Path, *, in_functions: bool) -> set[str]:
    """Modules of its own room that a file imports, dotted; those within functions where asked for."""
    tree, room = TREES[path], f"dynident.{path.relative_to(SOURCE).parts[0]}."
    nodes = ast.walk(tree) if in_functions else _outside_functions(tree)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith(room):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(NAMES.values())
            found |= inner or {node.module}
    return found


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not isinstance(child, ast.FunctionDef) and not for_types:
            yield child
            yield from _outside_functions(child)


def cycles(room: str, *, in_functions: bool) -> list[str]:
    """Modules of a room that import each other, directly or through others."""
    paths = [path for path in MODULES if path.relative_to(SOURCE).parts[0] == room]
    edges = {NAMES[path]: module_imports(path, in_functions=in_functions) - {NAMES[path]} for path in paths}
    reach = {name: set(own) for name, own in edges.items()}
    for _ in paths:  # as many steps as a path through all of them has
        for own in reach.values():
            own.update(*(edges.get(name, ()) for name in tuple(own)))
    return sorted(name for name, own in reach.items() if name in own)


def test_modules_of_a_room_do_not_import_each_other_in_circles():
    # An import within a function is for a method that saves or loads; in dynamics there is none.
    offenders = {room: found for room in ROOMS if (found := cycles(room, in_functions=room == "dynamics"))}
    assert not offenders


def test_dynamics_is_built_in_layers():
    layers = [
        "jit",
        "recursion",
        "closure",
        "state",
        "terms",
        "equations",
        "kernels",
        "loop_assembly",
        "evaluate",
        "kinematics",
        "linearization",
    ]
    offenders = []
    for path in (SOURCE / "dynamics").rglob("*.py"):
        own = NAMES[path].split(".")[2:3]
        for name in module_imports(path, in_functions=True) if own else ():
            layer = name.split(".")[2]
            if layers.index(layer) > layers.index(own[0]):
                offenders.append(f"{name_of(path)} imports {name}")
    assert not offenders


def test_every_room_is_in_the_order():
    assert sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")) == sorted(ROOMS)


def test_guests_stay_in_their_rooms():
    offenders = [
        f"{name_of(path)} imports {name}"
        for path, tree in TREES.items()
        for name in imports(tree)
        if not name_of(path).startswith(GUESTS.get(name.split(".")[0], ""))
    ]
    assert not offenders


def test_every_public_name_is_there_and_documented():
    undocumented = [name for name in dynident.__all__ if name != "__version__" and not getattr(dynident, name).__doc__]
    assert not undocumented
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = dynident.nonsense


def test_names_of_before_still_work_and_say_what_they_are_called_now():
    for old, new in dynident._RENAMED.items():
        assert old not in dynident.__all__
        with pytest.warns(DeprecationWarning, match=f"di.{old} is now di.{new} "):
            value = getattr(dynident, old)
        assert value is functools.reduce(getattr, new.split("."), dynident)


def test_top_level_is_small():
    assert len(dynident.__all__) <= 70


def test_no_room_hides_a_public_name():
    # A package of that name would take the place of the function as soon as somebody imports it.
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {path.stem for path in SOURCE.glob("*.py")}
    assert packages & set(dynident.__all__) == {"report"}  # a room that can be called
    assert callable(dynident.report)


def test_importing_does_not_load_the_heavy_parts():
    heavy = ("numpy", "rich", "scipy", "yaml")
    code = f"import sys, dynident.cli.command_line; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_no_file_needs_a_table_of_contents():
    long = {name_of(path): n for path in MODULES if (n := len(path.read_text().splitlines())) > LONGEST_FILE}
    assert not long


def classes() -> dict[str, list[str]]:
    """Files in which a class of a name is defined."""
    found = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name_of(path))
    return found


def test_names_that_rooms_look_up_lazily_are_those_that_type_checkers_see():
    for path, tree in TREES.items():
        choice = next((node for node in tree.body if isinstance(node, ast.If)), None)
        if path.name != "__init__.py" or "lazy_names" not in path.read_text() or choice is None:
            continue  # without a choice, names of before alone are looked up
        room = import_module(NAMES[path])
        seen = {alias.asname: one.module for one in choice.body for alias in one.names}
        assert sorted(seen) == room.__all__, name_of(path)
        for name, module in seen.items():
            assert getattr(room, name) is getattr(import_module(module), name), f"{name_of(path)}: {name}"


def test_one_class_name_one_meaning():
    assert not {name: homes for name, homes in classes().items() if len(homes) > 1}


def test_no_module_is_hidden_by_a_function_of_its_name():
    hidden = [
        name_of(path)
        for path, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == path.stem
    ]
    for path in MODULES:
        if path.name == "__init__.py" and path.parent != SOURCE:
            beside = {other.stem for other in path.parent.glob("*.py")} | {
                other.name for other in path.parent.iterdir()
            }
            room = import_module(NAMES[path])
            names = getattr(room, "__all__", ())
            hidden += [f"{name_of(path)}: {name}" for name in names if name in beside and callable(getattr(room, name))]
    assert not hidden


PARTICIPLE = re.compile(
    r"_?(told|seen|left|felt|kept|meant|held|given|known|taken|shown|found|written|drawn|put|made|[a-z]+ed)"
)
VERBS = ("feed", "need", "proceed", "read", "shed", "embed", "seed", "speed")


def test_functions_are_verbs_that_say_what_comes_out():
    offenders = [
        f"{name_of(path)}: {node.name}"
        for path, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and PARTICIPLE.fullmatch(node.name) and node.name.lstrip("_") not in VERBS
    ]
    assert not offenders


BRITISH = re.compile(
    r"\b(centre|colour|neighbour|behaviour|favour|grey\b|metres?\b|cancelled|labelled\b|modelled|(?:optim|linear|normal"
    r"|regular|organ|recogn|real|summar|initial|util|minim|maxim|general|final|penal|discret|quant|random|stabil)is"
    r"(?:e|ed|es|ing|ation|ations|er)\b)",
    re.IGNORECASE,
)
STORED = re.compile(r"[`'\"]quantisation[`'\"]")  # a name in JSON that users have


def test_american_spelling():
    root = SOURCE.parents[1]
    pages = [root / "README.md", root / "CHANGELOG.md", *(root / "docs").rglob("*.md")]
    offenders = []
    for path in [*MODULES, *pages]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = BRITISH.finditer(STORED.sub("", line))
            offenders += [f"{path.name}:{number}: {found[0]}" for found in words]
    assert not offenders
