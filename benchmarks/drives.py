"""Drives of a Unitree Go2 from position commands: replay error on held-out motion, beside two searches by simulation.

    python benchmarks/drives.py [--data FOLDER] [--seconds LIMIT] [--write]

Two splits of one recording: train on the first 9.3 s, or on all but the first 4.7 s; the rest is held out. All start
from the robot file's own values and estimate the same numbers (armature, damping, dry friction and bias of twelve
joints, one delay), with the same simulator:

- linear: `identify_drives`, and with `refine=True`;
- simulation-error least squares: `scipy.optimize.least_squares` on the replayed positions, derivatives by differences;
- CMA-ES: the package `cma` in its default settings, on the mean squared replay error, until its limit of time.

Times are wall-clock and processor time of the whole process. `--write` puts the table into docs/comparison.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import dynident as di
from dynident.drives.identification import identify_drives, values_of
from dynident.drives.linear import drive_elements, with_gains
from dynident.drives.replay import ClosedLoopReplay, DriveValues, commands_of

DATA = Path(os.environ.get("DYNIDENT_DATA", ROOT.parent / "shared" / "data")) / "unitree_go2"
KP, KD = 20.0, 1.5
SPLITS = {"first 9.3 s": ((None, 9.3), (9.3, None)), "last 9.4 s": ((4.7, None), (None, 4.7))}
# Sizes of one unit of each number for the searches, as somebody would guess them, and values that must not be passed.
UNITS = {"Ia": 0.01, "Fv": 0.3, "Fc": 0.2, "bias": 0.01, "delay": 0.004}
START, END = "<!-- benchmarks/drives.py writes from here -->", "<!-- to here -->"


@dataclass(frozen=True)
class Outcome:
    """What one way came to: replay errors in training and held out [rad], seconds of the clock and the processor."""

    way: str
    training: float
    held_out: float
    wall: float
    processor: float


class Problem:
    """One split of the recording.

    Attributes:
        robot: The robot of the file.
        train: The training log.
        inside, outside: Replays of the training and the held-out log.
    """

    def __init__(self, data: Path, parts: tuple[tuple[float | None, float | None], ...]) -> None:
        n = 12
        self.robot = with_gains(di.load_robot(data / "robot.xml"), np.full(n, KP), np.full(n, KD))
        log = di.read_log(data / "log_a.csv.gz", self.robot)
        self.train, held_out = (log.window(*part) for part in parts)
        self.held_out = dataclasses.replace(held_out, role="validation", label="held out")
        self.inside, self.outside = (
            ClosedLoopReplay(self.robot, commands_of(one, self.robot)) for one in (self.train, self.held_out)
        )
        own = self.robot.value_set()
        self.names = [
            *(drive.name(symbol) for symbol in ("Ia", "Fv", "Fc") for drive in drive_elements(self.robot)),
            *(f"bias{drive.number}" for drive in drive_elements(self.robot)),
            "delay",
        ]
        kinds = [next(kind for kind in UNITS if name.startswith(kind)) for name in self.names]
        self.units = np.array([UNITS[kind] for kind in kinds])
        self.start = np.array([own.get(name, 0.0) for name in self.names]) / self.units
        self.least = np.array([-np.inf if kind == "bias" else 0.0 for kind in kinds])

    def candidate(self, x: np.ndarray) -> DriveValues:
        """A robot from numbers in the units of the search."""
        values = dict(zip(self.names, (np.maximum(x, self.least) * self.units).tolist(), strict=True))
        return values_of(self.robot, values, values["delay"])

    def outcome(self, way: str, job: Callable[[], DriveValues]) -> Outcome:
        """Do a job and evaluate what it found."""
        wall, processor = time.perf_counter(), time.process_time()
        found = job()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        errors = [replay.errors([found])[0].total for replay in (self.inside, self.outside)]
        return Outcome(way, *errors, wall, processor)


def least_squares(problem: Problem, limit: float) -> DriveValues:
    """Simulation-error least squares from the file's values."""
    from scipy.optimize import least_squares as solve

    measured = np.concatenate([one.positions for one in problem.inside.commands])
    began, best = time.perf_counter(), [np.inf, problem.start]

    def off(candidates: list[np.ndarray]) -> np.ndarray:
        courses = problem.inside.positions([problem.candidate(x) for x in candidates])
        return np.nan_to_num(np.concatenate(courses, axis=1) - measured, nan=1e3).reshape(len(candidates), -1)

    def residual(x: np.ndarray) -> np.ndarray:
        if time.perf_counter() - began > limit:
            raise TimeoutError
        found = off([x])[0]
        if (cost := float(found @ found)) < best[0]:
            best[:] = cost, x.copy()
        return found

    def jacobian(x: np.ndarray) -> np.ndarray:
        step = 1e-3
        base, *moved = off([x, *(x + step * row for row in np.eye(len(x)))])
        return np.array([(one - base) / step for one in moved]).T

    bounds = np.where(np.isfinite(problem.least), -1e-9, -np.inf)
    try:
        solve(residual, problem.start, jac=jacobian, bounds=(bounds, np.inf), max_nfev=20, ftol=1e-4, xtol=1e-4)
    except TimeoutError:
        print(f"  (least squares stopped after {limit:g} s)")
    return problem.candidate(best[1])


def evolution(problem: Problem, limit: float) -> DriveValues:
    """CMA-ES from the file's values."""
    import cma

    options = {"timeout": limit, "verbose": -9, "seed": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = cma.CMAEvolutionStrategy(problem.start, 0.3, options)
        while not search.stop():
            asked = search.ask()
            errors = problem.inside.errors([problem.candidate(x) for x in asked])
            search.tell(asked, [min(1e6 * error.total**2, 1e12) for error in errors])
    print(f"  (CMA-ES: {search.result.evaluations} replays, stopped by {', '.join(search.stop())})")
    return problem.candidate(search.result.xbest)


def compare(problem: Problem, limit: float) -> list[Outcome]:
    """All ways on one split."""
    file_values = values_of(problem.robot, {}, 0.0)
    logs = [problem.train]
    ways: dict[str, Callable[[], DriveValues]] = {
        "values of the robot file": lambda: file_values,
        "dynident": lambda: identify_drives(problem.robot, logs).drives,
        "dynident, refined": lambda: identify_drives(problem.robot, logs, refine=True).drives,
        "simulation-error least squares": lambda: least_squares(problem, limit),
        "CMA-ES": lambda: evolution(problem, limit),
    }
    return [problem.outcome(way, job) for way, job in ways.items()]


def table(found: dict[str, list[Outcome]]) -> list[str]:
    """As a table of Markdown."""
    lines = ["| split: training data | way | training [mrad] | held out [mrad] | time [s] | processor [s] |"]
    lines.append("|---|---|---:|---:|---:|---:|")
    for split, outcomes in found.items():
        for one in outcomes:
            numbers = f"{1e3 * one.training:.2f} | {1e3 * one.held_out:.2f} | {one.wall:.1f} | {one.processor:.1f}"
            lines.append(f"| {split} | {one.way} | {numbers} |")
    return lines


def speed(problem: Problem) -> str:
    """Replays against real time, one candidate and a batch."""
    seconds = sum(float(one.time[-1]) for one in problem.inside.commands)
    file_values = values_of(problem.robot, {}, 0.0)
    found = []
    for count in (1, 16):
        times = []
        for _ in range(3):
            start, processor = time.perf_counter(), time.process_time()
            problem.inside.errors([file_values] * count)
            times.append((time.perf_counter() - start, time.process_time() - processor))
        wall, own = min(times)
        found.append(
            f"{count} at a time: {count * seconds / wall:.0f} times real time ({own / count:.2f} s processor each)"
        )
    return f"Replay of {seconds:.1f} s with 12 joints, steps of 0.5 ms: {'; '.join(found)}"


def main() -> None:
    """Both splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seconds", type=float, default=240.0, help="limit of each search by simulation [s]")
    parser.add_argument("--write", action="store_true", help="put the table into docs/comparison.md")
    options = parser.parse_args()
    found = {}
    for split, parts in SPLITS.items():
        problem = Problem(options.data, parts)
        if not found:
            print(speed(problem), flush=True)
        found[split] = compare(problem, options.seconds)
        print("\n".join(table({split: found[split]})), flush=True)
    if options.write:
        page = ROOT / "docs" / "comparison.md"
        text = page.read_text()
        before, after = text.split(START)[0], text.split(END)[1]
        page.write_text(before + "\n".join([START, "", *table(found), "", END]) + after)


if __name__ == "__main__":
    main()
