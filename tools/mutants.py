"""Mutation check: small mistakes put into the sources, one at a time, which the tests have to find.

Mutants are made from the syntax tree of the functions of some rooms: comparisons, operators, signs, numbers, conditions
and statements. A fixed seed ranks them by hash, so that a change elsewhere leaves the sample as it is. Which tests run
a line is seen in one collection run (coverage.py, one context for each test); of a mutant only those run, the quickest
first, then the other tests of its room, until one fails. Results are appended to a file, and a second call goes on
behind them.

    python tools/mutants.py                 # 150 mutants of five rooms; an hour or two on one core
    python tools/mutants.py --list          # what was found, survivors last
    python tools/mutants.py --again --also tests/estimate/test_new.py    # survivors again, with tests that were added

mutmut and cosmic-ray were looked at: neither draws a sample, mutmut 3 copies the tests into a tree of its own (those
here read files beside them), and cosmic-ray runs one command, the whole suite, for every mutant.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("dynamics", "identifiability", "information", "signals", "estimate")
WORK = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
OTHERS = {"dynamics": ("tests/oracles/test_kinematics.py",)}  # tests of a room that stand elsewhere
COUNT, SEED = 150, 29
BUDGET = 60.0  # seconds that the tests of one mutant may take in the collection run; the rest of them do not run
PATIENCE = 4.0  # a mutant that takes so many times longer runs for ever
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutant:
    """A place of the sources, and what stands there instead.

    Attributes:
        path: File, from the root.
        function: Where in it.
        line: Of the file.
        span: Bytes of the file that are replaced.
        before: What stands there.
        after: What stands there instead.
        number: Which one of those in this function that look alike.
    """

    path: str
    function: str
    line: int
    span: tuple[int, int]
    before: str
    after: str
    number: int = 0

    @property
    def key(self) -> str:
        """Name of the mutant, which stays when other lines of the file change."""
        return f"{self.path}::{self.function}#{self.number}: {self.before} -> {self.after}"

    @property
    def room(self) -> str:
        """Room of the file."""
        return Path(self.path).parts[2]

    def applied(self) -> bytes:
        """The file with the mistake in it."""
        content = (ROOT / self.path).read_bytes()
        return content[: self.span[0]] + self.after.encode() + content[self.span[1] :]


# ----------------------------------------------------------------------------------------------------------------------
# Mutants of a file.


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of the functions of a file."""
    content = path.read_bytes()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    name = str(path.relative_to(ROOT))
    seen: dict[tuple[str, str, str], int] = {}
    for function, node in _places(ast.parse(content), ""):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = content[begin:end].decode()
        for changed in _changes(node):
            after = "pass" if isinstance(changed, ast.Pass) else f"({ast.unparse(changed)})"
            if isinstance(changed, ast.stmt) and not isinstance(changed, ast.Pass):
                after = ast.unparse(changed)
            short = " ".join(before.split())
            place = (function, short, after)
            number = seen[place] = seen.get(place, -1) + 1
            yield Mutant(name, function, node.lineno, (begin, end), short, after, number)


def _places(node: ast.AST, function: str) -> Iterator[tuple[str, Any]]:
    """Nodes within functions that a mutant may replace, with the function they are in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _places(child, f"{function}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            for statement in child.body:
                yield from _inside(statement, f"{function}{child.name}")


def _inside(node: ast.AST, function: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return  # words of messages, and what only the type checker reads
    if isinstance(node, ast.FunctionDef):
        for statement in node.body:
            yield from _inside(statement, f"{function}.{node.name}")
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield function, node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child, function)


def _changes(node: Any) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[i] = _SWAPS[type(operator)]()
            yield changed
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in _SWAPS:
        if isinstance(node, ast.BinOp) and any(isinstance(x, ast.JoinedStr) for x in (node.left, node.right)):
            return
        changed = copy.deepcopy(node)
        changed.op = _SWAPS[type(node.op)]()
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1 if isinstance(node.value, int) else 2.0 * node.value + 0.5)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Continue):
        yield ast.Break()


def sampled(rooms: tuple[str, ...], count: int, seed: int) -> list[Mutant]:
    """The mutants with the lowest hashes."""
    found = [
        one
        for room in rooms
        for path in sorted((ROOT / "src" / "dynident" / room).rglob("*.py"))
        for one in mutants_of(path)
    ]
    print(f"{len(found)} mutants of {', '.join(rooms)}; {count} of them by seed {seed}")
    return sorted(found, key=lambda one: hashlib.sha256(f"{seed} {one.key}".encode()).digest())[:count]


# ----------------------------------------------------------------------------------------------------------------------
# Which tests run a line.


class _Recorder:
    """Plugin of pytest: one context of coverage for each test, and how long each takes."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed or report.skipped:
            self.failed.add(report.nodeid)


def _collect(rooms: tuple[str, ...], target: Path) -> None:
    """Run the tests of the rooms, and write which tests run which lines (in a process of its own)."""
    import pytest

    import coverage

    _as_tests_want(ROOT / "src", WORK / "cache")
    data = WORK / "coverage"
    data.unlink(missing_ok=True)
    watched = coverage.Coverage(data_file=str(data), source=[str(ROOT / "src" / "dynident" / room) for room in rooms])
    recorder = _Recorder(watched)
    watched.start()
    pytest.main([*_PYTEST, "-m", "not full", *(f"tests/{room}" for room in rooms)], plugins=[recorder])
    watched.stop()
    watched.save()
    lines: dict[str, dict[int, list[str]]] = {}
    measured = watched.get_data()
    for file in measured.measured_files():
        by_line = measured.contexts_by_lineno(file)
        lines[str(Path(file).relative_to(ROOT))] = {k: sorted(filter(None, own)) for k, own in by_line.items()}
    seconds = {name: value for name, value in recorder.seconds.items() if name not in recorder.failed}
    target.write_text(json.dumps({"seconds": seconds, "lines": lines, "left out": sorted(recorder.failed)}))


_PYTEST = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "--no-header", "--tb=no")


def _as_tests_want(sources: Path, cache: Path) -> None:
    """Environment in which tests import these sources, also in processes that they start."""
    os.chdir(ROOT)
    os.environ.update(PYTHONPATH=str(sources), DYNIDENT_CACHE=str(cache), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path[:] = [str(sources), str(ROOT), *(p for p in sys.path if p not in (str(ROOT / "src"), str(ROOT)))]


def tests_of(mutant: Mutant, seen: dict[str, Any]) -> list[str]:
    """Tests that run the line, then the others of the room: of each file in turn the quickest one that is left."""
    seconds: dict[str, float] = seen["seconds"]
    own = [name for name in seen["lines"].get(mutant.path, {}).get(str(mutant.line), ()) if name in seconds]
    rest = sorted({name for name in seconds if name.startswith(f"tests/{mutant.room}/")} - set(own))
    chosen, total = [], 0.0
    for name in [*_in_turn(own, seconds), *_in_turn(rest, seconds)]:
        total += seconds[name]
        if total > BUDGET and chosen:
            break
        chosen.append(name)
    return chosen


def _in_turn(names: list[str], seconds: dict[str, float]) -> list[str]:
    """Of each file the quickest test, then of each the second: tests of a file often look at the same thing."""
    places: dict[str, int] = {}
    ranked = []
    for name in sorted(names, key=seconds.__getitem__):
        file = name.partition("::")[0]
        places[file] = places.get(file, -1) + 1
        ranked.append((places[file], seconds[name], name))
    return [name for _, _, name in sorted(ranked)]


# ----------------------------------------------------------------------------------------------------------------------
# A mutant among its tests.


def _try(tree: Path, cache: Path, tests: list[str], output: Path) -> None:
    """Run tests on the sources of a tree; the exit code is that of pytest (in a process of its own)."""
    os.setsid()
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    _as_tests_want(tree / "src", cache)
    import pytest

    os._exit(int(pytest.main([*_PYTEST, "-x", "-rf", *tests])))


def run_mutant(
    mutant: Mutant, seen: dict[str, Any], tree: Path, context: Any, also: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Whether a test fails on a mutant; `also` are further tests, which run first."""
    tests = tests_of(mutant, seen)
    tests = [*also, *OTHERS.get(mutant.room, ()), *tests]
    target, output = tree / mutant.path, tree / "output"
    pristine = target.read_bytes()
    target.write_bytes(mutant.applied())
    # A mutant of what makes machine code would leave wrong code in the cache of all others.
    makes_code = "/jit/" in mutant.path or b"compile_module" in pristine
    cache = Path(tempfile.mkdtemp(dir=tree)) if makes_code else WORK / "cache"
    begin = time.monotonic()
    child = context.Process(target=_try, args=(tree, cache, tests, output))
    try:
        child.start()
        child.join(120.0 + PATIENCE * sum(seen["seconds"].get(name, 0.0) for name in tests))
        status = {None: "timeout", 0: "survived", 1: "killed", 2: "killed", 3: "killed"}.get(child.exitcode, "killed")
        if child.exitcode == 4 and "ERROR collecting" not in output.read_text(errors="replace"):
            status = "error"  # names of tests that are not there; a file that cannot be imported has found the mistake
    finally:
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.killpg(child.pid, signal.SIGKILL)
        child.join()
        target.write_bytes(pristine)
        if cache != WORK / "cache":
            shutil.rmtree(cache, ignore_errors=True)
    failed = [line.split()[1] for line in output.read_text(errors="replace").splitlines() if line.startswith("FAILED ")]
    return {
        "key": mutant.key,
        "line": mutant.line,
        "status": status,
        "by": failed[0] if failed else "",
        "covering": len(seen["lines"].get(mutant.path, {}).get(str(mutant.line), ())),
        "tests": len(tests),
        "seconds": round(time.monotonic() - begin, 1),
    }


def _results(file: Path) -> dict[str, dict[str, Any]]:
    """Results by mutant; of several the last one counts."""
    if not file.exists():
        return {}
    return {one["key"]: one for one in map(json.loads, file.read_text().splitlines())}


def _summary(mutants: list[Mutant], found: dict[str, dict[str, Any]]) -> int:
    reasons: dict[str, str] = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    rows = [found[one.key] for one in mutants if one.key in found]
    equivalent = [row for row in rows if row["status"] not in ("killed", "timeout") and row["key"] in reasons]
    counted = [row for row in rows if row not in equivalent]
    killed = [row for row in counted if row["status"] in ("killed", "timeout")]
    for row in equivalent:
        print(f"equivalent  {row['key']}\n            {reasons[row['key']]}")
    for row in counted:
        if row not in killed:
            print(f"{row['status']:10}  {row['key']} (line {row['line']}, {row['covering']} tests run it)")
    share, left = len(killed) / max(1, len(counted)), len(counted) - len(killed)
    late = sum(row["status"] == "timeout" for row in killed)
    print(
        f"{len(rows)} of {len(mutants)} mutants tried: {len(killed)} killed ({late} by time), "
        f"{len(equivalent)} equivalent, {left} survived: {share:.1%} of those that are not equivalent"
    )
    return 0 if len(rows) == len(mutants) and share >= 0.9 else 1


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS))
    parser.add_argument("--results", type=Path, default=WORK / "results.jsonl")
    parser.add_argument("--collect", action="store_true", help="collect again which tests run which lines")
    parser.add_argument("--again", action="store_true", help="try mutants again that were not killed")
    parser.add_argument("--also", nargs="+", default=(), help="further tests, which the collection run has not seen")
    parser.add_argument("--list", action="store_true", help="print what was found, and run nothing")
    given = parser.parse_args()
    rooms = tuple(given.rooms)
    mutants = sampled(rooms, given.count, given.seed)
    found = _results(given.results)
    if given.list:
        return _summary(mutants, found)
    WORK.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "scipy.linalg", "scipy.signal", "llvmlite.binding", "yaml", "pytest"])
    seen_file = WORK / "tests.json"
    if given.collect or not seen_file.exists():
        child = context.Process(target=_collect, args=(rooms, seen_file))
        child.start()
        child.join()
    seen = json.loads(seen_file.read_text())
    reasons = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        tree = Path(folder)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in mutants:
            before = found.get(mutant.key)
            if before is not None and not (given.again and before["status"] in ("survived", "error")):
                continue
            if before is not None and mutant.key in reasons:
                continue
            row = found[mutant.key] = run_mutant(mutant, seen, tree, context, tuple(given.also))
            with given.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{row['status']:9} {row['seconds']:6.1f} s  {row['key']}  {row['by']}", flush=True)
    return _summary(mutants, found)


if __name__ == "__main__":
    sys.exit(main())
