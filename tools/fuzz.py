"""Damage files of every kind and read them: nothing but a `DynidentError` that names the file may come out.

    python tools/fuzz.py [TARGET ..] [--seconds 60] [--engine atheris|mutations] [--mutations N] [--folder build/fuzz]

A defect is another exception, a message without the file or on several lines, a result that is not finite, a crash,
more than 5 s of processor time or more than 500 MB. Its input stands in FOLDER/defects, with what happened beside it.

Two engines. `atheris` is guided by coverage and keeps its corpus in FOLDER/corpus, so that it goes on where it stopped.
`mutations` needs nothing: mutation number i of a target is always the same, FOLDER/state.json says how many were made,
and `--mutations N` goes on until there are N of each target (`--total N`: of all together). Kinds whose readers start processes always have the second; there
the process is a fork, with the same limits.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
SLOW = 5.0  # [s] of processor time
LARGE = 500_000_000  # bytes
SLICE = 250  # mutations between two entries of the state
_NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


# ----------------------------------------------------------------------------------------------------------------------
# Mutations.


def mutate(rng: random.Random, content: bytes, others: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """A content with one to eight changes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        at = rng.randrange(len(data) + 1)
        length = min(rng.choice((1, 2, 4, 8, 16, 64, 256)), len(data) - at)
        kind = rng.randrange(11 if words else 10)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 2, 4, 16))))
        elif kind == 4:  # a part once more, somewhere
            place = rng.randrange(len(data) + 1)
            data[place:place] = data[at : at + length] * rng.choice((1, 1, 2, 100))
        elif kind == 5:
            size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
            number = rng.choice(_NUMBERS) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, order)
        elif kind == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data[at : at + length] = other[start : start + rng.choice((4, 32, 256, len(other)))]
        elif kind == 7:
            del data[at:]
        elif kind == 8 and data:  # two parts change places
            place = rng.randrange(len(data))
            data[at : at + length], data[place : place + length] = data[place : place + length], data[at : at + length]
        elif kind == 9 and data:
            at %= len(data)
            data[at] = (data[at] + rng.choice((-1, 1, 16, -16))) % 256
        elif kind == 10:
            data[at : at + rng.choice((0, 0, length))] = rng.choice(words) * rng.choice((1, 1, 1, 2, 50, 3000))
    return bytes(data[: 1 << 20])


def mutation(target: Any, seeds: list[bytes], number: int) -> bytes:
    """Mutation number `number` of a target."""
    rng = random.Random(f"{target.name} {number}")
    content = rng.choice(seeds)
    if target.layers is not None and rng.random() < 0.7:
        take_off, put_on = target.layers
        parts = take_off(content)
        if parts:
            place = rng.randrange(len(parts))
            parts[place] = mutate(rng, parts[place], [*seeds, *parts], target.words)
            return put_on(content, parts)
    return mutate(rng, content, seeds, target.words)


# ----------------------------------------------------------------------------------------------------------------------
# One reading.


class Case:
    """Reads contents as files of a target, and notes what must not happen.

    Attributes:
        counts: How often they were read, refused, and refused by what a parser raised.
        defects: Number of them.
    """

    def __init__(self, target: Any, folder: Path, defects: Path) -> None:
        from dynident.errors import DynidentError

        self.target, self.folder, self.place = target, folder, defects
        self.path = folder / target.file
        self.expected = DynidentError
        self.counts: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()

    def read(self, content: bytes, name: str) -> bool:
        """Whether all went well."""
        self.path.write_bytes(content)
        begin = _seconds()
        problem = ""
        try:
            self.target.read(self.path)
            self.counts["read"] += 1
        except self.expected as error:
            self.counts["refused"] += 1
            self.counts["converted"] += error.__cause__ is not None
            words = str(error)
            if self.path.name not in words and str(self.folder) not in words:
                problem = f"names no file: {words}"
            elif "\n" in words or len(words) > 4000:
                problem = f"is no sentence: {words[:2000]}"
        except (Exception, SystemExit):
            problem = traceback.format_exc(limit=-12)
        taken = _seconds() - begin
        if not problem and taken > SLOW:
            problem = f"took {taken:.1f} s"
        if not problem and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > LARGE:
            problem = "took more than 500 MB"
        if problem:
            self.note(content, name, problem)
        return not problem

    def note(self, content: bytes, name: str, problem: str) -> None:
        """Keep an input that must become a test; of each kind of problem the first three."""
        kind = problem.strip().splitlines()[-1][:60]
        self.counts["defects"] += 1
        self.kinds[kind] += 1
        if self.kinds[kind] <= 3:
            self.place.mkdir(parents=True, exist_ok=True)
            (self.place / f"{self.target.name}-{name}").write_bytes(content)
            (self.place / f"{self.target.name}-{name}.why").write_text(problem)


def _seconds() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _fork_children() -> None:
    """Let readers fork this process, in which the parsers are loaded, where they would start one."""
    from dynident import isolation, limits

    def forked(function: Any, source: Any, *arguments: Any, packed: int | None = None) -> Any:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            request = isolation.request_of(function, source, arguments, packed)
            used = int(_seconds()) + 1  # a fork begins with the time and memory of its parent
            isolation.answer(
                request | {"seconds": request["seconds"] + used, "memory": request["memory"] + LARGE}, writing
            )
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            said = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return isolation.result_of(code, said, limits.LIMITS.child_seconds, limits.LIMITS.child_bytes)

    for name in ("dynident.logs.mat", "dynident.robot.sources", "dynident.robot.mjcf"):
        module = __import__(name, fromlist=["x"])
        if hasattr(module, "call_in_child"):
            module.call_in_child = forked  # type: ignore[attr-defined]
    for name in ("scipy.io", "h5py", "xacro", "mujoco"):
        __import__(name)


# ----------------------------------------------------------------------------------------------------------------------
# Workers: a process for each target, as a crash ends it.


def work(options: argparse.Namespace) -> None:
    """Mutate one target until time is up or the number reached."""
    if options.engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["dynident"]):
            from fuzz_targets import TARGETS, write_seeds
    else:
        from fuzz_targets import TARGETS, write_seeds
    warnings.simplefilter("ignore")
    target = TARGETS[options.worker]
    folder = Path(
        tempfile.mkdtemp(prefix=f"fuzz-{target.name}-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    )
    seeds = list(write_seeds(target, folder))
    case = Case(target, folder, options.folder / "defects")
    if target.forks:
        _fork_children()
    if options.engine == "atheris":
        _guided(options, target, seeds, case, atheris)
    state = options.folder / "state" / f"{target.name}.json"
    done = json.loads(state.read_text()) if state.is_file() else {"mutations": 0}
    case.counts.update({key: value for key, value in done.items() if key != "mutations"})
    number, end = done["mutations"], time.monotonic() + options.seconds
    while (options.mutations is None or number < options.mutations) and time.monotonic() < end:
        content = mutation(target, seeds, number)
        (folder / "now").write_bytes(content)  # for the parent, should this process crash
        (folder / "number").write_text(str(number))
        case.read(content, str(number))
        number += 1
        if number % SLICE == 0:
            _save(state, number, case)
    _save(state, number, case)


def _guided(options: argparse.Namespace, target: Any, seeds: list[bytes], case: Case, atheris: Any) -> None:
    corpus = options.folder / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"seed{i}").write_bytes(seed)
    words = case.folder / "words"
    words.write_text("".join('"' + "".join(f"\\x{x:02x}" for x in word[:60]) + '"\n' for word in target.words))
    state = options.folder / "state" / f"{target.name}.guided.json"
    done = json.loads(state.read_text()) if state.is_file() else {"mutations": 0}
    case.counts.update({key: value for key, value in done.items() if key != "mutations"})
    count, saved = done["mutations"], time.monotonic()

    def once(data: bytes) -> None:
        nonlocal count, saved
        count += 1
        case.read(data, f"guided-{count}")
        if time.monotonic() - saved > 1.0:
            saved = time.monotonic()
            _save(state, count, case)

    crash = options.folder / "defects" / f"{target.name}-"
    crash.parent.mkdir(parents=True, exist_ok=True)
    arguments = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={options.seconds}",
        f"-dict={words}",
        f"-artifact_prefix={crash}",
    ]
    arguments += ["-timeout=60", "-rss_limit_mb=1500", "-max_len=100000", "-verbosity=0", "-print_final_stats=0"]
    atheris.Setup(arguments, once)
    atheris.Fuzz()


def _save(state: Path, number: int, case: Case) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    part = state.with_suffix(".part")
    part.write_text(json.dumps({"mutations": number, **case.counts}))
    os.replace(part, state)


# ----------------------------------------------------------------------------------------------------------------------
# The command.


def run_target(name: str, engine: str, options: argparse.Namespace) -> str:
    """Let a worker do one target; how it ended, empty where that was well."""
    command = [sys.executable, __file__, "--worker", name, "--engine", engine, "--seconds", str(options.seconds)]
    command += ["--folder", str(options.folder)]
    command += [] if options.mutations is None else ["--mutations", str(options.mutations)]
    places = set(Path("/dev/shm").glob(f"fuzz-{name}-*")) if Path("/dev/shm").is_dir() else set()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    made = (set(Path("/dev/shm").glob(f"fuzz-{name}-*")) - places) if Path("/dev/shm").is_dir() else set()
    ended = ""
    if done.returncode:
        how = signal.Signals(-done.returncode).name if done.returncode < 0 else f"code {done.returncode}"
        ended = f"{how}: {done.stderr.strip()[-300:]}"
        for folder in made:
            if (folder / "now").is_file():
                number = int((folder / "number").read_text())
                (options.folder / "defects").mkdir(parents=True, exist_ok=True)
                (options.folder / "defects" / f"{name}-{number}").write_bytes((folder / "now").read_bytes())
                (options.folder / "defects" / f"{name}-{number}.why").write_text(ended)
                state = options.folder / "state" / f"{name}.json"  # go on behind it
                known = json.loads(state.read_text()) if state.is_file() else {}
                state.parent.mkdir(parents=True, exist_ok=True)
                found = {"mutations": number + 1, "defects": known.get("defects", 0) + 1}
                state.write_text(json.dumps(known | found))
    for folder in made:
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    return ended


def table(folder: Path) -> Iterator[str]:
    """What has been done, target by target."""
    yield f"{'target':22} {'mutations':>10} {'read':>9} {'refused':>9} {'by parser':>9} {'defects':>8}"
    total: collections.Counter[str] = collections.Counter()
    for path in sorted((folder / "state").glob("*.json")):
        own = collections.Counter(json.loads(path.read_text()))
        total.update(own)
        yield _row(path.stem, own)
    yield _row("all", total)


def _row(name: str, own: collections.Counter[str]) -> str:
    return f"{name:22} {own['mutations']:10} {own['read']:9} {own['refused']:9} {own['converted']:9} {own['defects']:8}"


def main() -> int:
    """Run the command and return its exit code: 1 where there are defects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="kinds of files; default all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--mutations", type=int, help="of a target in all, with the engine `mutations`")
    parser.add_argument("--total", type=int, help="mutations of all targets together, instead of --mutations")
    parser.add_argument("--engine", choices=("atheris", "mutations"), help="default atheris, where it is installed")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.worker:
        work(options)
        return 0
    from importlib.util import find_spec

    from fuzz_targets import TARGETS

    if options.total is not None:
        options.mutations = -(-options.total // len(options.targets or TARGETS))
    engine = options.engine or ("atheris" if find_spec("atheris") else "mutations")
    for name in options.targets or TARGETS:
        own = "mutations" if TARGETS[name].forks else engine
        if ended := run_target(name, own, options):
            print(f"{name}: {ended}", flush=True)
        else:
            print(f"{name}: done", flush=True)
    lines = list(table(options.folder))
    print("\n".join(lines))
    return int(lines[-1].split()[-1] != "0")


if __name__ == "__main__":
    sys.exit(main())
