"""On-line identification: time of an update, in the same run as a recursive least squares in NumPy, and of an answer.

    python benchmarks/online.py [--updates 100000] [--write docs/reference/online.md]

"Factor" is the square-root update of 60 parameters with 6 rows alone; the peer does the same work in covariance form,
P - P W' (W P W' + I)^-1 W P with NumPy. "Update" is all of `OnlineIdentifier.update` for the bundled ur10e, from the
sample to the updated factor: checks, filters, regressor, factor, and at the end of stretches forgetting, the look for
changes and new values; "values" and "state" are what an answer costs on top.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynident as di
from dynident.arrays import Array, on_one_thread
from dynident.online.rows import absorber, aligned_zeros as aligned

UPDATES = 100_000
PARAMETERS, ROWS = 60, 6
RATE = 1000.0  # [Hz]
BEGIN, END = "<!-- table: benchmarks/online.py -->", "<!-- end of table -->"
QUANTILES = (0.5, 0.99, 0.999)


class NumpyRls:
    """Recursive least squares in covariance form, as textbooks have it."""

    def __init__(self, n: int) -> None:
        self.P, self.x = 1e8 * np.eye(n), np.zeros(n)

    def update(self, W: Array, y: Array) -> None:
        """Rows (m, n) and right-hand sides (m,)."""
        PW = self.P @ W.T
        gain = np.linalg.solve(W @ PW + np.eye(len(y)), PW.T).T
        self.x = self.x + gain @ (y - W @ self.x)
        self.P = self.P - gain @ PW.T


def times(job: Callable[[int], object], count: int) -> Array:
    """(count, 2) time of each call by the clock and by the processor [s]; they differ where other programs run."""
    found = np.empty((count, 2))
    for i in range(count):
        busy, start = time.thread_time(), time.perf_counter()
        job(i)
        found[i] = time.perf_counter() - start, time.thread_time() - busy
    return found


def cells(found: Array) -> str:
    shown = [f"{1e6 * np.quantile(found[:, 0], share):.1f}" for share in QUANTILES]
    below = [f"{100.0 * np.mean(found[:, k] < 1e-3):.3f} %" for k in (0, 1)]
    return " | ".join([*shown, *below])


@on_one_thread
def factor_lines(updates: int) -> Iterator[str]:
    """The bare update of 60 parameters with 6 rows, ours and the peer's, in turns of a thousand."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(256, ROWS, PARAMETERS + 1))
    R = np.zeros((PARAMETERS + 1, PARAMETERS + 1))
    slab = aligned(PARAMETERS + 1, -(-ROWS // 8) * 8)
    absorb, peer = absorber(R, slab), NumpyRls(PARAMETERS)

    def ours(i: int) -> None:
        slab[:, :ROWS] = rows[i % 256].T
        slab[:, ROWS:] = 0.0
        absorb()

    def theirs(i: int) -> None:
        peer.update(rows[i % 256, :, :-1], rows[i % 256, :, -1])

    for job in (ours, theirs):
        times(job, 500)
    own, other = [], []
    for _ in range(max(1, updates // 1000)):
        own.append(times(ours, 1000))
        other.append(times(theirs, 1000))
    left, right = np.concatenate(own), np.concatenate(other)
    yield f"| factor, {PARAMETERS} parameters, {ROWS} rows | {cells(left)} |"
    yield f"| recursive least squares in NumPy, covariance form | {cells(right)} |"
    yield f"| ratio of the medians | {np.median(right[:, 0]) / np.median(left[:, 0]):.1f} | | | | |"


def stream(robot: di.Robot, count: int) -> tuple[Array, Array, Array]:
    """Stamps, positions and torques of a motion that never ends."""
    rng = np.random.default_rng(2)
    n = len(robot.joint_names)
    t = np.arange(count) / RATE
    q, dq, ddq = (np.zeros((count, n)) for _ in range(3))
    for harmonic in range(1, 6):
        w, a, phase = 0.2 * np.pi * harmonic, rng.normal(size=n) / harmonic, rng.uniform(0.0, 6.0, n)
        angle = w * t[:, None] + phase
        q += a * np.sin(angle)
        dq += w * a * np.cos(angle)
        ddq -= w**2 * a * np.sin(angle)
    tau = di.inverse_dynamics(robot, q, dq, ddq)
    return t, q, tau + 0.01 * tau.std(0) * rng.normal(size=tau.shape)


def update_lines(updates: int) -> Iterator[str]:
    """`OnlineIdentifier.update` as users call it."""
    robot = di.load_robot("ur10e")
    t, q, tau = stream(robot, updates)
    samples = [di.online.Sample(float(t[i]), q[i], tau[i]) for i in range(updates)]
    prior = robot.default_values
    kinds: dict[str, dict[str, object]] = {
        "update, rows at every sample": {"box": 1},
        "update, default (rows four times per period of the band)": {},
        "update of a payload, default": {"prior": prior, "payload": True},
    }
    for words, options in kinds.items():
        found = di.OnlineIdentifier(robot, sample_time=1.0 / RATE, **options)
        took = times(lambda i, found=found: found.update(samples[i]), updates)
        yield f"| {words}, {len(found.values)} unknowns | {cells(took[1000:])} |"
        answer = times(lambda _, found=found: found.values, 300)
        yield f"| and its values solved for | {cells(answer)} |"
        state = times(lambda _, found=found: found.state(), 100)
        yield f"| and the whole state with standard deviations and verdict | {cells(state)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page whose table is replaced")
    arguments = parser.parse_args()
    head = [*(f"{100.0 * share:g} % [us]" for share in QUANTILES), "below 1 ms", "by processor time"]
    lines = [f"| | {' | '.join(head)} |", "|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    gc.collect()
    for part in (factor_lines, update_lines):
        for line in part(arguments.updates):
            lines.append(line)
            print(line, flush=True)
    if arguments.write:
        page = arguments.write.read_text()
        front, _, rest = page.partition(BEGIN)
        arguments.write.write_text(f"{front}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
