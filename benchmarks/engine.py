"""The engine against the pipelines people write today: fill, end to end, cold start, Parquet, memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dynident as di
from dynident.dynamics.jit.llvm_kernel import BLOCK, ROW, LlvmKernel, aligned_array
from dynident.dynamics.kernels import record
from dynident.dynamics.terms import resolve_terms
from dynident.identifiability.base_regressor import nonzero_entries
from harness import Row, interleaved, seconds, table
from peers import PinocchioPipeline

SAMPLES = 100_000
SKEW = """convention: modified-dh
name: skew
joints:
  - {gamma: 0.2, alpha: 0.3, d: 0.1, theta: 0.1, r: 0.2}
  - {alpha: -1.1, d: 0.2, r: 0.15}
  - {alpha: 0.4, d: 0.4, r: -0.1}
  - {alpha: 1.3, d: 0.12, r: 0.35}
  - {alpha: -0.8, d: 0.05, r: 0.1}
  - {alpha: 1.0, d: 0.08, r: 0.12}
"""


def motion(robot: di.Robot, n: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.normal(size=(3, n, len(robot.joint_names)))
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    return [q, dq, ddq, tau + rng.normal(size=tau.shape)]


def skew_robot() -> di.Robot:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "skew.yaml"
        path.write_text(SKEW)
        return di.load_robot(path)


def fill_rows(name: str) -> list[Row]:
    """Filling blocks in cache, one core, against the bare Pinocchio loop."""
    robot = di.load_robot(name)
    peer = PinocchioPipeline(robot)
    base = di.base_parameters(robot)
    n_samples = 160 * BLOCK
    q, dq, ddq, _ = motion(robot, n_samples)
    rows = []
    for what, chosen in (("all columns", range(len(base.columns))), ("base columns", base.independent)):
        program, _ = record(robot, "regressor", resolve_terms(None), nonzero_entries(robot, base.terms, list(chosen)))
        kernel = LlvmKernel(program)
        whole, pointer = ctypes.c_int64, ctypes.c_void_p
        fill = kernel._code.function("fill", [pointer, pointer, whole])
        inputs, outputs = aligned_array(len(program.inputs) * ROW), aligned_array(len(program.outputs) * ROW)
        inputs[:] = np.random.default_rng(0).normal(size=len(inputs))

        def ours(fill=fill, source=inputs.ctypes.data, target=outputs.ctypes.data):
            for _ in range(n_samples // BLOCK):
                fill(source, target, BLOCK)

        rows.append(
            interleaved(f"{name}, fill blocks, {what}", ours, lambda: peer.regressor_loop(q, dq, ddq), "Pinocchio loop")
        )
    return rows


def end_to_end(robot: di.Robot, slow_peer: bool) -> list[Row]:
    """Regressor, solution and standard deviations of 1e5 samples."""
    peer = PinocchioPipeline(robot)
    samples = motion(robot, SAMPLES)

    def ours() -> None:
        di.accumulate(robot, *samples).solve()

    rows = [
        interleaved(
            f"{robot.name}, accumulate + solve",
            ours,
            lambda: peer.lstsq(*samples),
            "Pinocchio loop + numpy lstsq",
            repeats=5,
        )
    ]
    if slow_peer:
        rows.append(
            interleaved(
                f"{robot.name}, accumulate + solve",
                ours,
                lambda: peer.base_and_deviations(*samples),
                "the same + pivoted QR + covariance",
                repeats=3,
            )
        )
    return rows


FIRST_USE = """
import time
start = time.perf_counter()
import numpy as np, dynident as di
robot = di.load_robot({source!r})
x = np.random.default_rng(0).normal(size=(4, 2000, len(robot.joint_names)))
di.accumulate(robot, *x).solve()
print(time.perf_counter() - start)
"""


def first_use() -> None:
    """A new robot, from import to solution, with an empty and with a filled cache."""
    print("First use of a robot, import to solution (aim: cold 1.5 s, cached 0.7 s; sr400 cold 5 s)")
    for source in ("puma560", "ur10e", "sr400"):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "DYNIDENT_CACHE": cache}
            times = []
            for _ in range(3):
                answer = subprocess.run(
                    [sys.executable, "-c", FIRST_USE.format(source=source)],
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                times.append(float(answer.stdout))
        print(f"{source:44}{seconds(times[0]):>11} cold{seconds(min(times[1:])):>11} cached")


def write_parquet(path: Path, robot: di.Robot, n: int, group: int = 65_536) -> None:
    """A log of n rows in uncompressed row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"{kind}{i + 1}" for kind in ("q", "dq", "ddq", "tau") for i in range(len(robot.joint_names))]
    schema = pa.schema([(name, pa.float64()) for name in names])
    block = np.concatenate(motion(robot, group), axis=1).T
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n, group):
            count = min(group, n - start)
            writer.write_table(pa.table(dict(zip(names, block[:, :count], strict=True)), schema=schema))


STREAM = """
import sys, threading, time
import numpy as np, dynident as di
robot = di.load_robot("ur10e")
x = np.random.default_rng(0).normal(size=(4, 2000, 6))
di.accumulate(robot, *x).solve()
import pyarrow.parquet
def own():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
before, peak, running = own(), [0.0], [True]
def watch():
    while running[0]:
        peak[0] = max(peak[0], own())
        time.sleep(0.002)
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
if sys.argv[1].endswith(".parquet"):
    di.information.accumulate_parquet(robot, sys.argv[1]).solve()
else:
    n, block = int(sys.argv[1]), 16384
    def blocks():
        for start in range(0, n, block):
            count = min(block, n - start)
            yield tuple(np.random.default_rng(start).normal(size=(4, count, 6)))
    di.information.accumulate_blocks(robot, blocks()).solve()
taken = time.perf_counter() - start
running[0] = False
watcher.join()
print(taken, peak[0] - before)
"""


def streamed(argument: str) -> tuple[float, float]:
    """Seconds and megabytes of streaming one file in a process of its own."""
    answer = subprocess.run([sys.executable, "-c", STREAM, argument], capture_output=True, text=True, check=True)
    taken, memory = answer.stdout.split()
    return float(taken), float(memory)


def parquet(sizes: tuple[int, ...]) -> list[tuple[int, float, float]]:
    """Time and memory of uncompressed Parquet files of several lengths."""
    robot = di.load_robot("ur10e")
    print("ur10e from Parquet, row groups of 65536 (aim: 1 M samples/s; at most 50 MB more, flat)")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / f"{n}.parquet"
            write_parquet(path, robot, n)
            taken, memory = min(streamed(str(path)) for _ in range(3 if n < 5_000_000 else 2))
            path.unlink()
            results.append((n, taken, memory))
            print(f"{n:>12} samples{seconds(taken):>11}{n / taken / 1e6:>8.2f} M samples/s{memory:>8.1f} MB more")
    return results


def main(full: bool = True) -> None:
    start = time.perf_counter()
    print("Engine, per sample")
    rows = fill_rows("ur10e") + fill_rows("panda")
    table(rows, 160 * BLOCK)
    print(f"\nEnd to end, {SAMPLES} samples, per sample")
    ends = [*end_to_end(di.load_robot("ur10e"), True), *end_to_end(di.load_robot("panda"), True)]
    ends += end_to_end(skew_robot(), False)
    table(ends, SAMPLES)
    print()
    first_use()
    print()
    sizes = (1_000, 10_000, 100_000, 1_000_000, 10_000_000) if full else (100_000, 1_000_000)
    results = parquet(sizes)
    if full:
        from plot import scaling_plot

        target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/scaling.svg")
        target.parent.mkdir(exist_ok=True)
        target.write_text(scaling_plot(results))
        print(f"plot: {target}")
    print(f"(this took {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
