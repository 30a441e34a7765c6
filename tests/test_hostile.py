"""Hostile files: a sample of the collection at each run, all of it in the full suite; time and memory of the worst."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("pyarrow")

from tools import hostile
from tools.fuzz import mutation
from tools.fuzz_targets import TARGETS, write_seeds

import dynident as di
from dynident.errors import DynidentError

pytestmark = pytest.mark.filterwarnings("ignore::dynident.logs.tables.LogWarning")
SECONDS, BYTES = 5.0, 500_000_000
QUICK = [name for name, target in TARGETS.items() if not target.forks]


@pytest.mark.parametrize("kind", ["columns", "run-file", "effects", "fit", "sqlite", "urdf"])
def test_a_sample_of_the_collection(kind):
    for one, found, _ in hostile.outcomes((kind,)):
        assert found in ("read", "refused"), f"{one.target.name}: {one.name}"


@pytest.mark.full
def test_the_whole_collection():
    count = 0
    for one, found, seconds in hostile.outcomes():
        count += 1
        assert found in ("read", "refused"), f"{one.target.name}: {one.name}"
        assert seconds < SECONDS, f"{one.target.name}: {one.name} took {seconds:.1f} s"
    assert count >= 1000


@pytest.mark.parametrize("kind", QUICK)
def test_seeds_are_read_and_mutations_refused(kind, tmp_path):
    target = TARGETS[kind]
    seeds = list(write_seeds(target, tmp_path))
    path = tmp_path / target.file
    for seed in seeds:
        path.write_bytes(seed)
        target.read(path)
    for number in range(20):
        path.write_bytes(mutation(target, seeds, number))
        said = path.name
        try:
            target.read(path)
        except DynidentError as error:
            said = str(error)
        assert path.name in said or path.parent.name in said


def made(folder: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """The worst of each kind, or those of some names, by name with the command that reads it."""
    robot = "pendulum-2"
    zeros = hostile._huge_zeros(1_500_000_000)
    files: dict[str, tuple[str, Callable[[], bytes]]] = {
        "cells in cells": ("cells.mat", lambda: hostile.nested_cells(20_000)),
        "cells in a zlib stream": ("packed.mat", lambda: hostile.nested_cells(20_000, packed=True)),
        "a chunk that understates": ("chunk.mcap", lambda: dict(hostile._mcaps())["a chunk that understates its size"]),
        "a header of brackets": ("header.csv", lambda: b"[" * 100_000 + b"],t,q1\n0,0,1\n1,1,1\n"),
        "columns of Parquet": ("wide.parquet", lambda: next(hostile._parquets())[1]),
        "zeros of a log": ("zeros.npz", lambda: zeros),
    }
    commands = {}
    for name, (file, content) in files.items():
        if names and name not in names:
            continue
        (folder / file).write_bytes(content())
        commands[name] = ["check", robot, str(folder / file)]
    for name in ("a cell that is a number", "messages are a view without end"):
        file = folder / f"{len(name)}.db3"
        hostile.sqlite_of(hostile.DATABASES[name])(file)
        commands[name] = ["check", robot, str(file)]
    os.mkfifo(folder / "pipe.csv")
    commands["a pipe"] = ["check", robot, str(folder / "pipe.csv")]
    (folder / "device.csv").symlink_to("/dev/zero")
    commands["a device"] = ["check", robot, str(folder / "device.csv")]
    robots = {(kind, name): content for kind, name, content in hostile._robots()}
    for kind, name, ending in (
        ("mjcf", "replicate 1000000000", "xml"),
        ("mjcf", "replicate in replicate", "xml"),
        ("xacro", "a text of 10 GB", "xacro"),
        ("xacro", "macros that double", "xacro"),
    ):
        file = folder / f"{name.replace(' ', '-')}.{ending}"
        file.write_bytes(robots[kind, name])
        commands[name] = ["inspect", str(file)]
    fit = folder / "fit"
    write_seeds(TARGETS["fit"], fit)
    (folder / "deep").mkdir()
    (folder / "deep" / "fit.yaml").write_bytes(b"a: " + b"[" * 50_000)
    commands["brackets of a fit"] = ["report", str(folder / "deep")]
    (fit / "fit.npz").write_bytes(zeros)
    commands["zeros of a fit"] = ["report", str(fit)]
    (folder / "information.npz").write_bytes((fit / "fit.npz").read_bytes())
    commands["zeros of information"] = [
        "excite", robot, "--extend", str(folder / "information.npz"), "-o", str(folder / "m.yaml")
    ]  # fmt: skip
    commands["zeros of a checkpoint"] = [
        "live", robot, "udp:9", "--checkpoint", str(folder / "information.npz")
    ]  # fmt: skip
    return {name: words for name, words in commands.items() if not names or name in names}


FEW = ("cells in cells", "messages are a view without end", "a pipe", "replicate 1000000000", "zeros of a fit")


@pytest.mark.parametrize("names", [FEW, pytest.param((), marks=pytest.mark.full)], ids=["few", "all"])
def test_the_worst_end_in_seconds_and_little_memory(names, tmp_path):
    """Processor time, as the machine may have else to do, of the process and of those that it starts."""
    wrong = []
    for name, words in made(tmp_path, names).items():
        process = subprocess.Popen(
            [sys.executable, "-m", "dynident", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        if process.returncode != 2 or seconds > SECONDS or usage.ru_maxrss * 1024 > BYTES or "Traceback" in said:
            wrong.append((name, process.returncode, round(seconds, 1), usage.ru_maxrss // 1000, said[-300:]))
    assert not wrong


def test_real_sizes_are_not_refused(tmp_path):
    """What stands just below a limit is read: columns, names, levels, and logs of zeros."""
    t = np.arange(50.0)
    np.savez_compressed(tmp_path / "rest.npz", t=np.arange(1_000_000) * 1e-3, q=np.zeros((1_000_000, 2)))
    assert len(di.read_log(tmp_path / "rest.npz").time) == 1_000_000
    wide = {"t": t, **{f"c{k}": t for k in range(5000)}, "q1": t}
    np.savez(tmp_path / "wide.npz", **wide)
    assert list(di.read_log(tmp_path / "wide.npz").channels) == ["q1"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{'a' * 100}.csv"
        path.write_text(f"t,{'b' * 900},q1\n0,1,2\n1,2,3\n")
        assert list(di.read_log(path).channels) == ["q1"]
