"""A sound log of a UR10e, and files of it with mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynident.logs import LogFile, stream_log

N, RATE = 4000, 200.0
NAMES = ("t", *(f"{kind}{j}" for kind in ("q", "dq", "tau") for j in range(1, 7)))


def sound() -> dict[str, np.ndarray]:
    """Columns by name: six joints on sums of sines, 20 s at 200 Hz."""
    rng = np.random.default_rng(7)
    t = np.arange(N) / RATE
    columns = {"t": t}
    q, dq = np.zeros((6, N)), np.zeros((6, N))
    for j in range(6):
        for k in (1, 2, 3):
            w, a, p = 2 * np.pi * (0.11 + 0.03 * j) * k, rng.uniform(0.2, 0.5) / k, rng.uniform(0, 6)
            q[j] += a * np.sin(w * t + p)
            dq[j] += a * w * np.cos(w * t + p)
    tau = 20 * np.cos(q) + 5 * np.sign(dq) + rng.normal(size=(6, N))
    for kind, values in (("q", q), ("dq", dq), ("tau", tau)):
        columns |= {f"{kind}{j + 1}": values[j] for j in range(6)}
    return columns


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    """The columns as CSV with nine digits."""
    values = np.column_stack(list(columns.values()))
    np.savetxt(
        path, values, fmt=["%.9f", *["%.9g"] * (len(columns) - 1)], delimiter=",", header=",".join(columns), comments=""
    )
    return path


def opened(path: Path, columns: dict[str, np.ndarray], **how) -> LogFile:
    """The columns as a streamed log."""
    return stream_log(write(path / "log.csv", columns), **how)
