"""Kill -9 and a full disk at any moment of a command: nothing is lost, nothing is half-written, and it can start again.

    python benchmarks/faults.py                    # 50 moments of each job, half by the clock, half at file operations
    python benchmarks/faults.py identify --disk    # a full disk at every operation on files of one job

A job replaces results of an earlier one, beside files of strangers. After the fault every group of files that belong
together must be wholly the earlier or wholly the new one. Then the command runs again: its files must be those of a run
that nothing disturbed, to the byte, and nothing else may be in the folders.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]
STRANGERS = ("out/notes.txt", "out/factors/mine.npz", "out/.hidden.part")  # files that are not ours


@dataclass(frozen=True)
class Job:
    """A command and what it writes, relative to its folder.

    Attributes:
        words: The command.
        earlier: One that ran before it and wrote the same files.
        groups: Files that belong together, of which none may be newer than the others.
        unordered: Files whose content depends on when checkpoints fell; they are compared by their numbers.
        also: What else stays: files that say what has been done so far.
    """

    words: tuple[str, ...]
    earlier: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    unordered: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


_FIT = ("out/fit.yaml", "out/fit.npz", "out/report.npz", "out/report.html")
_HOW = ("--quiet", "--check", "off", "--terms", "rigid,Fv,Fc")
_EARLIER = ("identify", "arm.yaml", "a.csv", "-o", "out", *_HOW)
_CODE = ("out/code/pendulum_2.c", "out/code/pendulum_2.h")
_FILES = (("out/arm.urdf",), ("out/arm.yaml",), _CODE)
_CHECKPOINTS = ("--checkpoint", "out/kept.npz", "--checkpoint-every", "0.05")
JOBS = {
    "identify": Job(
        ("identify", "arm.yaml", "a.csv", "b.csv", "-o", "out", *_HOW), _EARLIER, (_FIT,), also=("out/factors",)
    ),
    "run": Job(("run", "run.yaml", "--quiet"), _EARLIER, (_FIT, ("out/arm.urdf",)), also=("out/factors",)),
    "export": Job(
        ("export", "fit", "--urdf", "out/arm.urdf", "--yaml", "out/arm.yaml", "--c", "out/code", "--quiet"),
        ("export", "older", "--urdf", "out/arm.urdf", "--yaml", "out/arm.yaml", "--c", "out/code", "--quiet"),
        _FILES,
    ),
    "live": Job(
        ("live", "b.csv", "--robot", "arm.yaml", "--json", "--pace", "40", *_CHECKPOINTS),
        (),
        (),
        unordered=("out/kept.npz",),
    ),
}
_RUN = """robot: arm.yaml
output: out
training: [a.csv, b.csv]
identify: {check: off, terms: [rigid, Fv, Fc]}
export: {urdf: out/arm.urdf}
"""


# ----------------------------------------------------------------------------------------------------------------------
# The folder in which a job runs, before and after a fault.


class Stage:
    """A folder with everything that jobs need, and what their results are when nothing disturbs them.

    Args:
        folder: An empty one.
        name: The job.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.job, self.before, self.after = JOBS[name], folder / "before", folder / "after"
        self._folder, self._number = folder, 0
        self.before.mkdir()
        _write_inputs(self.before)
        if name == "export":
            for fit, log in (("older", "a.csv"), ("fit", "b.csv")):
                assert run(("identify", "arm.yaml", log, "-o", fit, *_HOW), self.before).returncode == 0
        (self.before / "out" / "factors").mkdir(parents=True)
        for stranger in STRANGERS:
            (self.before / stranger).write_bytes(b"of somebody else")
        if self.job.earlier:
            assert run(self.job.earlier, self.before).returncode == 0
        shutil.copytree(self.before, self.after)
        begin = time.monotonic()
        done = run(self.job.words, self.after)
        self.seconds = time.monotonic() - begin
        assert done.returncode == 0, done.stderr

    def fresh(self) -> Path:
        """A new folder in the state before the job."""
        self._number += 1
        place = self._folder / f"try{self._number}"
        shutil.copytree(self.before, place)
        return place

    def n_steps(self) -> int:
        """Operations on files of the whole job."""
        place = self.fresh()
        done = run(self.job.words, place, "count:0")
        shutil.rmtree(place)
        return int(done.stdout.splitlines()[-1])

    def check_interrupted(self, place: Path) -> str:
        """What is wrong after a fault; empty when nothing is."""
        from dynident.files import settle

        for group in self.job.groups:
            for folder in {(place / name).parent for name in group}:
                if folder.is_dir():
                    settle(folder)  # as everything that reads there does first
            states = [_content(place, group), _content(self.before, group), _content(self.after, group)]
            if states[0] not in states[1:]:
                return f"{group[0]} and what belongs to it are neither the earlier nor the new files"
        for name in self.job.unordered:
            if (place / name).exists() and (wrong := _check_checkpoint(place, name)):
                return wrong
        return self._check_strangers(place)

    def check_restarted(self, place: Path) -> str:
        """What is wrong after the job ran again; empty when nothing is."""
        done = run(self.job.words, place)
        if done.returncode != 0:
            return f"the second run ended with {done.returncode}: {done.stderr[-300:]}"
        names, wanted = _names(place), _names(self.after)
        if names != wanted:
            return f"files differ: {sorted(names ^ wanted)}"
        for name in sorted(wanted - set(self.job.unordered)):
            if (place / name).read_bytes() != (self.after / name).read_bytes():
                return f"{name} differs from that of a run that nothing disturbed"
        for name in self.job.unordered:
            if wrong := _compare_checkpoints(place / name, self.after / name):
                return wrong
        return self._check_strangers(place)

    def _check_strangers(self, place: Path) -> str:
        for name in STRANGERS:
            if not (place / name).exists() or (place / name).read_bytes() != b"of somebody else":
                return f"{name}, which is not ours, was changed"
        return ""


def _write_inputs(folder: Path) -> None:
    """A robot, two logs of it, and a run file."""
    from tests.signals.made import Fourier, exact_torque, make_log, stamps

    import dynident as di
    from dynident.logs.write import write_log

    robot = di.load_robot("pendulum-2")
    shutil.copy(ROOT / "src" / "dynident" / "robot" / "bundled" / "pendulum-2.yaml", folder / "arm.yaml")
    for number, name in enumerate("ab"):
        motion, t = Fourier.random(2, number), stamps(20.0, 100.0)
        tau = exact_torque(robot, motion, t)
        tau = tau + 0.02 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(number).normal(size=tau.shape)
        write_log(make_log(robot, t, motion(t)[0], tau, source=name), folder / f"{name}.csv")
    (folder / "run.yaml").write_text(_RUN)


def _content(place: Path, group: tuple[str, ...]) -> list[bytes | None]:
    return [(place / name).read_bytes() if (place / name).exists() else None for name in group]


def _names(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def _checkpoint_arrays(path: Path) -> dict[str, np.ndarray]:
    from dynident.sealed import read_sealed

    return read_sealed(path, "dynident on-line checkpoint")


def _check_checkpoint(place: Path, name: str) -> str:
    try:
        _checkpoint_arrays(place / name)
    except Exception as error:  # whatever it is, it is reported
        return f"{name} cannot be read: {error}"
    return ""


def _compare_checkpoints(path: Path, other: Path) -> str:
    mine, theirs = _checkpoint_arrays(path), _checkpoint_arrays(other)
    for name in sorted(set(mine) & set(theirs)):
        a, b = mine[name], theirs[name]
        size = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) if b.dtype.kind in "fc" else 0.0
        same = a.shape == b.shape and a.dtype == b.dtype
        if not same or not np.allclose(a, b, rtol=1e-6, atol=1e-9 * size, equal_nan=True):
            return f"{path.name}: {name} differs from that of a run that nothing disturbed"
    return "" if set(mine) == set(theirs) else f"{path.name} has other arrays"


# ----------------------------------------------------------------------------------------------------------------------
# Faults.


def _environment() -> dict[str, str]:
    import dynident

    sources = str(Path(dynident.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}


def run(words: tuple[str, ...], folder: Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with a fault where one is given (see `tests/faults.py`)."""
    program = ["-m", "tests.faults", fault] if fault else ["-m", "dynident"]
    return subprocess.run(
        [sys.executable, *program, *words], cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )


def kill_after(words: tuple[str, ...], folder: Path, seconds: float) -> None:
    """Run a command and kill it after a time."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, "-m", "dynident", *words], cwd=folder, env=_environment(), stdout=quiet, stderr=quiet
    ) as child:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)


def _moment(stage: Stage, fault: Callable[[Path], str]) -> str:
    """What is wrong after a fault and after a restart."""
    place = stage.fresh()
    wrong = fault(place) or stage.check_interrupted(place) or stage.check_restarted(place)
    shutil.rmtree(place)
    return wrong


def kills(stage: Stage, n: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Kill a job at random moments, half by the clock, half at operations on files: moment, and what is wrong."""
    chance, steps = random.Random(seed), stage.n_steps()
    for i in range(n):
        if i % 2:
            number = chance.randint(1, steps)

            def at_step(place: Path, number: int = number) -> str:
                code = run(stage.job.words, place, f"kill:{number}").returncode
                # The steps of `live` depend on the clock: it may end before that one.
                return "" if code == -signal.SIGKILL or stage.job.unordered else f"ended with {code}"

            yield f"kill at operation {number} of {steps}", _moment(stage, at_step)
        else:
            seconds = chance.uniform(0.0, stage.seconds)

            def at_time(place: Path, seconds: float = seconds) -> str:
                kill_after(stage.job.words, place, seconds)
                return ""

            yield f"kill after {seconds:.2f} s of {stage.seconds:.2f} s", _moment(stage, at_time)


def full_disks(stage: Stage, every: int = 1, first: int = 1) -> Iterator[tuple[str, str]]:
    """A full disk at every operation on files of a job: the operation, and what is wrong."""
    steps = stage.n_steps()
    for number in range(first, steps + 1, every):

        def full(place: Path, number: int = number) -> str:
            done = run(stage.job.words, place, f"enospc:{number}")
            return check_message(done)

        yield f"full disk at operation {number} of {steps}", _moment(stage, full)


def check_message(done: subprocess.CompletedProcess[str]) -> str:
    """Whether a full disk was reported as it should be; nothing where all had been written."""
    if done.returncode == 0:
        return ""  # only what may be left undone did not fit
    said = done.stderr
    if "--json" in done.args:
        said = json.loads(done.stdout.splitlines()[-1]).get("error", "")
    if done.returncode != 2 or "Traceback" in said or "No space left on device" not in said or "out" not in said:
        return f"ended with {done.returncode}: {said[-400:]}"
    return ""


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help=f"of {', '.join(JOBS)}; all of them by default")
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--disk", action="store_true", help="a full disk at every operation instead of kills")
    given = parser.parse_args()
    failed = 0
    for name in given.jobs or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(Path(folder), name)
            found = full_disks(stage) if given.disk else kills(stage, given.moments, given.seed)
            rows = []
            for moment, wrong in found:
                rows.append(wrong)
                if wrong:
                    print(f"{name}: {moment}: {wrong}", flush=True)
            bad = sum(map(bool, rows))
            failed += bad
            what = "operations with a full disk" if given.disk else "kills"
            print(f"{name}: {len(rows)} {what}, {bad} of them not survived", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
