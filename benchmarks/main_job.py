"""The main job, from a Parquet log to parameters with standard deviations, against the pipeline people write today.

The peer reads the log, low-passes and differentiates positions, makes the regressor of every sample with Pinocchio,
passes torque and every column through the same zero-phase decimating filter (parallel filtering), picks base columns by
pivoted QR and solves with lstsq. It runs on a tenth of the log, for which it already needs gigabytes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import scipy.linalg
import scipy.signal

import dynident as di
from harness import seconds
from peers import PinocchioPipeline

RATE, BAND = 1000.0, 7.5  # [Hz]
LONG, SHORT = 1_000_000, 100_000
KINEMATICS = 2.0 * BAND
DECIMATION = int(RATE / (4.0 * BAND))

_OURS = """
import sys, time
import dynident as di
robot = di.load_robot("ur10e")
start = time.perf_counter()
fit = di.identify(robot, [di.open_log(sys.argv[1], robot)])
took = time.perf_counter() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(took, int(peak.split()[1]) / 1024, fit.rank)
"""


def write_log(path: Path, n: int, seed: int = 0) -> None:
    """A log of a 6-joint arm in Fourier motion, with noise on torque and position."""
    robot = di.load_robot("ur10e")
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 6, 5)) * 0.5 / np.arange(1, 6)
    w = 2.0 * np.pi * (0.07 + 0.011 * np.arange(6))[:, None] * np.arange(1, 6)
    writer = None
    for first in range(0, n, SHORT):
        t = np.arange(first, min(first + SHORT, n)) / RATE
        phase = t[:, None, None] * w
        sin, cos = np.sin(phase), np.cos(phase)
        q, dq, ddq = (
            (part).sum(2) for part in (a * sin + b * cos, w * (a * cos - b * sin), -w * w * (a * sin + b * cos))
        )
        tau = di.inverse_dynamics(robot, q, dq, ddq) + rng.normal(size=q.shape)
        q = q + 1e-5 * rng.normal(size=q.shape)
        columns = {"t": t, **{f"q{i + 1}": q[:, i] for i in range(6)}, **{f"tau{i + 1}": tau[:, i] for i in range(6)}}
        table = arrow.table(columns)
        writer = writer or parquet.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def peer(path: Path, pipeline: PinocchioPipeline, decimate_first: bool) -> np.ndarray:
    """The same job with Pinocchio, scipy and numpy; optionally the motion is decimated before the loop, as ours is."""
    table = parquet.read_table(path)
    q = np.column_stack([table.column(f"q{i}").to_numpy() for i in range(1, 7)])
    tau = np.column_stack([table.column(f"tau{i}").to_numpy() for i in range(1, 7)])
    low = scipy.signal.butter(4, KINEMATICS / (RATE / 2.0), output="sos")
    q = scipy.signal.sosfiltfilt(low, q, axis=0)
    dq = np.gradient(q, 1.0 / RATE, axis=0)
    ddq = np.gradient(dq, 1.0 / RATE, axis=0)
    step = int(RATE / (16.0 * BAND)) if decimate_first else 1
    if decimate_first:
        tau = scipy.signal.sosfiltfilt(low, tau, axis=0)
    q, dq, ddq, tau = (x[::step] for x in (q, dq, ddq, tau))
    n = len(q)
    W = pipeline.regressor(q, dq, ddq).reshape(n, -1)
    rate, thin = RATE / step, DECIMATION // step
    band = scipy.signal.butter(4, BAND / (rate / 2.0), output="sos")
    W = scipy.signal.sosfiltfilt(band, W, axis=0)[::thin].reshape(-1, 84)
    y = scipy.signal.sosfiltfilt(band, tau, axis=0)[::thin].ravel()
    R, pivots = scipy.linalg.qr(W, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(R)) > 1e-6 * abs(R[0, 0])))
    base = W[:, pivots[:rank]]
    x = np.linalg.lstsq(base, y, rcond=None)[0]
    residual = y - base @ x
    covariance = np.linalg.inv(base.T @ base) * (residual @ residual) / (len(y) - rank)
    return np.column_stack([x, np.sqrt(np.diag(covariance))])


def main() -> None:
    print(f"main job, ur10e, Parquet at {RATE:g} Hz: from the file to parameters with deviations")
    pipeline = PinocchioPipeline(di.load_robot("ur10e"))
    with tempfile.TemporaryDirectory() as folder:
        long, short = Path(folder) / "long.parquet", Path(folder) / "short.parquet"
        write_log(long, LONG)
        write_log(short, SHORT)
        ours, peaks, theirs, decimated = [], [], [], []
        for _ in range(3):
            answer = subprocess.run(
                [sys.executable, "-c", _OURS, str(long)], capture_output=True, text=True, check=True
            ).stdout.split()
            ours.append(float(answer[0]) / LONG)
            peaks.append(float(answer[1]))
            for into, first in ((theirs, False), (decimated, True)):
                start = time.perf_counter()
                peer(short, pipeline, first)
                into.append((time.perf_counter() - start) / SHORT)
        mine, full, thin = (statistics.median(x) for x in (ours, theirs, decimated))
        print(f"  dynident, {LONG:.0e} samples        {seconds(mine)}/sample, peak {max(peaks):.0f} MB in all")
        print(f"  peer, {SHORT:.0e} samples            {seconds(full)}/sample: {full / mine:.0f} times ours")
        print(f"  peer, motion decimated first   {seconds(thin)}/sample: {thin / mine:.1f} times ours")


if __name__ == "__main__":
    main()
