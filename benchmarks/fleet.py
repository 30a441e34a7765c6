"""Throughput of a fleet: time per stage, speed-up by a second worker, overhead per log, memory of the scheduler.

    python benchmarks/fleet.py run --robots 200 --logs 50      a simulated fleet end to end, and the sizing from it
    python benchmarks/fleet.py speedup --robots 8 --logs 50    one worker against two, on the same logs
    python benchmarks/fleet.py scheduler                       its memory after 1,000 and 10,000 tasks

Logs are written by the equations of motion, with noise, as Parquet; nothing else should run beside.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import psutil
import pyarrow as arrow
import pyarrow.parquet as parquet

import dynident as di
from dynident.fleet import FleetStore, analyze_fleet, run_fleet, write_fleet_pages
from dynident.fleet.engine import open_engine
from dynident.fleet.options import FleetRunOptions

TERMS = "rigid,Ia,Fv,Fc(0.02),Fo"
START = datetime(2026, 3, 1, 8, tzinfo=UTC)
FRICTION = {"Ia": 0.3, "Fv": 4.0, "Fc": 6.0, "Fo": 0.2}


def arm_values(robot: di.Robot, seed: int) -> np.ndarray:
    """Standard parameters of one arm: those of the robot, a little different, with friction."""
    rng, chi = np.random.default_rng(seed), np.array(di.parameters(robot, terms=TERMS), dtype=float)
    for place, column in enumerate(di.columns(robot, terms=TERMS)):
        chi[place] = FRICTION.get(column.symbol, chi[place]) * (1.0 + 0.02 * rng.standard_normal())
    return chi


def motion(robot: di.Robot, seconds: float, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Stamps, positions, velocities and accelerations of a sum of sines."""
    t, n = np.arange(int(seconds * rate)) / rate, len(robot.joint_names)
    q, dq, ddq = (np.zeros((len(t), n)) for _ in range(3))
    for k in range(1, 6):
        w, a, phase = 2.0 * np.pi * 0.1 * k, rng.uniform(0.15, 0.5, n) / k, rng.uniform(0.0, 2.0 * np.pi, n)
        angle = w * t[:, None] + phase
        q, dq, ddq = q + a * np.sin(angle), dq + a * w * np.cos(angle), ddq - a * w**2 * np.sin(angle)
    return t, q, dq, ddq


def write_robot(folder: Path, name: str, serial: int, logs: int, seconds: float, rate: float) -> int:
    """All logs of one arm; bytes written."""
    robot, size = di.load_robot(name), 0
    chi = arm_values(robot, serial)
    for k in range(logs):
        rng = np.random.default_rng([serial, k])
        t, q, dq, ddq = motion(robot, seconds, rate, rng)
        tau = np.einsum("noc,c->no", di.regressor(robot, q, dq, ddq, terms=TERMS), chi)
        tau += 0.02 * tau.std(0) * rng.standard_normal(tau.shape)
        columns = {"t": t} | {f"q{j + 1}": q[:, j] for j in range(q.shape[1])}
        columns |= {f"tau{j + 1}": tau[:, j] for j in range(q.shape[1])}
        path = folder / "logs" / f"A{serial:04d}" / f"{START + timedelta(hours=12 * k):%Y-%m-%dT%H%M%S}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(arrow.table(columns), path)
        size += path.stat().st_size
    return size


def write_fleet(folder: Path, options: argparse.Namespace) -> Path:
    """The logs of all arms, and the fleet file."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        how = (options.logs, options.seconds, options.rate)
        jobs = [pool.submit(write_robot, folder, options.robot, k + 1, *how) for k in range(options.robots)]
        size = sum(job.result() for job in jobs)
    samples = options.robots * options.logs * int(options.seconds * options.rate)
    print(f"{options.robots} robots x {options.logs} logs of {options.seconds:g} s: {samples:.3g} samples", end=", ")
    print(f"{size / 1e6:.0f} MB")
    file = folder / "fleet.yaml"
    file.write_text(
        f"types:\n  arm:\n    robot: {options.robot}\n    logs: logs/{{serial}}/{{date}}.parquet\n"
        f"pilot_s: {options.pilot_s:g}\nidentify: {{check: {options.check}}}\n"
    )
    return file


class Stages:
    """When each stage of a run began to show progress."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.ends: dict[str, float] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        self.ends[what] = time.perf_counter() - self.begin

    def times(self) -> dict[str, float]:
        """Seconds that each took, in order."""
        ends = [0.0, *self.ends.values()]
        return {name: ends[k + 1] - ends[k] for k, name in enumerate(self.ends)}


def timed_run(file: Path, store: Path, workers: int) -> tuple[dict[str, float], float]:
    """Time of each stage [s], and the overhead per log [s]: wall time of the map that no worker spent in it."""
    stages = Stages()
    done = run_fleet(file, store, workers=workers, progress=stages)
    assert not done.failed, done.failed
    assert not done.unfinished, done.unfinished
    rows = FleetStore.open(store).rows()
    times = stages.times()
    spent = sum(row["seconds"] for row in rows)
    return times, (times["logs"] * workers - spent) / len(rows)


def show(times: dict[str, float]) -> None:
    for name, seconds in times.items():
        print(f"  {name:14}{seconds:9.1f} s")


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run(options: argparse.Namespace) -> None:
    """A fleet end to end, and what a large one takes."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        file = write_fleet(folder, options)
        times, overhead = timed_run(file, folder / "store", options.workers)
        begin = time.perf_counter()
        found = analyze_fleet(folder / "store")
        found.save()
        times["analysis"] = time.perf_counter() - begin
        begin = time.perf_counter()
        write_fleet_pages(found)
        times["report pages"] = time.perf_counter() - begin
        begin = time.perf_counter()
        run_fleet(file, folder / "store", workers=options.workers)
        times["second run"] = time.perf_counter() - begin
        show(times)
        print(f"  overhead per log {1e3 * overhead:.1f} ms with {options.workers} workers")
        sizing(options, times, folder)


def sizing(options: argparse.Namespace, times: dict[str, float], folder: Path) -> None:
    """1,000 robots x 1e8 samples, by what this fleet took."""
    logs, samples = options.robots * options.logs, int(options.seconds * options.rate)
    factors, size = folder_bytes(folder / "store" / "factors"), folder_bytes(folder / "logs")
    per_sample = times["logs"] * options.workers / (logs * samples)
    large = 1000 * 1e8
    n_logs = large / samples
    print("1,000 robots x 1e8 samples, from these times, in logs as long as these:")
    print(f"  map        {per_sample * large / 3600.0:10.0f} core-hours ({1e6 * per_sample:.2f} us per sample)")
    print(f"  pilots     {times['pilots'] * options.workers / options.robots * 1000 / 3600:10.1f} core-hours")
    reduce, hourly = times["robots"] * options.workers / logs / 3600.0, large / (3600.0 * options.rate)
    print(f"  reduce     {reduce * n_logs:10.0f} core-hours for {n_logs:.3g} logs; {reduce * hourly:.1f} by hours")
    print(f"  logs read  {size / (logs * samples) * large / 1e12:10.1f} TB")
    each = factors / logs
    print(f"  store      {each * n_logs / 1e12:10.2f} TB of factors; {each * hourly / 1e9:.1f} GB by hour-long logs")


def speedup(options: argparse.Namespace) -> None:
    """One worker against two."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        file = write_fleet(folder, options)
        found = {}
        for workers in (1, 2, 1, 2):  # in turn, so that both see the same machine; the first also fills caches
            shutil.rmtree(folder / "store", ignore_errors=True)
            times, overhead = timed_run(file, folder / "store", workers)
            found[workers] = times, overhead
        for workers, (times, overhead) in found.items():
            print(f"{workers} workers: overhead per log {1e3 * overhead:.1f} ms")
            show(times)
        for stage in ("pilots", "logs", "robots"):
            print(f"speed-up of {stage}: {found[1][0][stage] / found[2][0][stage]:.2f}")


def nothing(number: int) -> int:
    """A task."""
    return number


def scheduler(options: argparse.Namespace) -> None:
    """Memory of a scheduler in a process of its own."""
    port = 28786
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "2"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        subprocess.Popen([*words, "--no-dashboard"], **quiet) as own,
        subprocess.Popen([*worker, "--no-dashboard"], **quiet) as other,
    ):
        try:
            time.sleep(5.0)
            watched = psutil.Process(own.pid)
            with open_engine(FleetRunOptions(scheduler=f"tcp://127.0.0.1:{port}")) as engine:
                for n_tasks in (100, *options.tasks):
                    begin = time.perf_counter()
                    tasks = ((f"t-{n_tasks}-{k}", (k,)) for k in range(n_tasks))
                    assert sum(1 for _ in engine.outcomes(nothing, tasks)) == n_tasks
                    seconds = time.perf_counter() - begin
                    memory = watched.memory_info().rss / 1e6
                    print(f"{n_tasks:6} tasks: {1e3 * seconds / n_tasks:.1f} ms each; scheduler {memory:.0f} MB")
        finally:
            other.terminate()
            own.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "speedup", "scheduler"))
    parser.add_argument("--robots", type=int, default=8)
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=250.0)
    parser.add_argument("--robot", default="ur10e")
    parser.add_argument("--pilot-s", type=float, default=60.0)
    parser.add_argument("--check", default="stop")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", help="where logs and store stand for a while")
    parser.add_argument("--tasks", type=int, nargs="+", default=[1000, 10000])
    given = parser.parse_args()
    {"run": run, "speedup": speedup, "scheduler": scheduler}[given.what](given)
