"""A payload on-line on real UR10e logs: beside a fit with defaults, whose friction has a memory, and a basic one.

    python benchmarks/online_payload.py [--write docs/reference/online.md]

Logs at DYNIDENT_DATA, or in ../shared/data (skipped where that is absent). The robot is identified from the 50 s log
without load, once with defaults and once with `--friction basic`. Then logs without, with and again without the load of
2.805 kg are replayed one after the other, two seconds apart, sample by sample. "Error" is the mean over the joints of
the torque error at the end of the loaded log, "noticed" the time from the begin of a log to the change that it shows.
The last two columns are F of the test for a change where there is none (each log alone), and the largest within ten
seconds of the begin of the loaded log, had nothing been dropped before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from benchmarks.friction import DATA, UR10E_GAINS

import dynident as di
from dynident.logs.log import joint_positions, row_torques
from dynident.online import changes

MASS = 2.805  # [kg] as stated by those who made the logs
TRAINING = "exc_50s_14h_unloaded"
PAIRS = {"exc_50s_14h_{}": "50 s", "exc_20s_{}_0131": "20 s, another month"}
SOON = 10.0  # [s]
BEGIN, END = "<!-- table: benchmarks/online_payload.py -->", "<!-- end of payload table -->"


def replay(fit: di.Fit, names: Sequence[str]) -> tuple[list[float], list[di.online.OnlineState], float]:
    """Logs one after the other: where each begins, the state after each, and processor time per sample [s]."""
    found = di.OnlineIdentifier(fit.robot, prior=fit, payload=True)
    begins, states, offset, took, count = [], [], 0.0, 0.0, 0
    for name in names:
        log = di.read_log(DATA / "ur10e" / f"{name}.csv.gz", fit.robot)
        t, q, tau = log.time - log.time[0] + offset, joint_positions(log, fit.robot), row_torques(log, fit.robot)
        samples = [di.online.Sample(float(t[i]), q[i], tau[i]) for i in range(len(t))]
        start = time.thread_time()
        for sample in samples:
            found.update(sample)
        took, count = took + time.thread_time() - start, count + len(samples)
        begins.append(offset)
        states.append(found.state())
        offset = float(t[-1]) + 2.0
    return begins, states, took / count


def largest(fit: di.Fit, names: Sequence[str], seconds: float = np.inf) -> float:
    """Largest F over the last of some logs, or over its first seconds; no change is ever found."""
    seen: list[float] = []
    original, thresholds = changes.test, changes.THRESHOLDS
    found = di.OnlineIdentifier(fit.robot, prior=fit, payload=True)

    def noted(*given: object) -> float:
        seen.append(original(*given))
        return seen[-1]

    changes.test, changes.THRESHOLDS = noted, replace(thresholds, change_statistic=np.inf)
    offset = 0.0
    try:
        for name in names:
            log = di.read_log(DATA / "ur10e" / f"{name}.csv.gz", fit.robot)
            seen.clear()
            t = log.time - log.time[0]
            own = t <= (seconds if name == names[-1] else np.inf)
            motion = joint_positions(log, fit.robot)[own], row_torques(log, fit.robot)[own]
            found.update_many(t[own] + offset, *motion)
            offset += float(t[-1]) + 2.0
    finally:
        changes.test, changes.THRESHOLDS = original, thresholds
    return max(seen)


def lines() -> Iterator[str]:
    """The table."""
    yield "| fit | logs | mass [kg] | std | off | without load | error | noticed | us per sample | F, none | F, pick |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ur10e.yaml"
        path.write_text(f"base: {DATA / 'ur10e' / 'robot.urdf'}\n{UR10E_GAINS}")
        robot = di.load_robot(path)
    training = di.read_log(DATA / "ur10e" / f"{TRAINING}.csv.gz", robot)
    for friction, words in (("auto", "default"), ("basic", "basic")):
        fit = di.identify(robot, training, friction=friction)
        for pair, shown in PAIRS.items():
            bare, loaded = (pair.format(kind) for kind in ("unloaded", "loaded"))
            begins, states, took = replay(fit, (bare, loaded, bare))
            body, noticed = (
                states[1].payload,
                [f"{one.found - begin:.1f} s" for one, begin in zip(states[-1].changes, begins[1:], strict=True)],
            )
            none = max(largest(fit, (name,)) for name in (bare, loaded))
            yield (
                f"| {words} | {shown} | {body.mass:.3f} | {body.mass_std:.3f} | {100 * (body.mass / MASS - 1):+.1f} % "
                f"| {states[0].payload.mass:.3f}, {states[2].payload.mass:.3f} "
                f"| {100 * np.mean(states[1].relative_error):.1f} % | {', '.join(noticed)} | {1e6 * took:.0f} "
                f"| {none:.0f} | {largest(fit, (bare, loaded), SOON):.0f} |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page whose table is replaced")
    arguments = parser.parse_args()
    if not (DATA / "ur10e").exists():
        print(f"skipped, no data at {DATA / 'ur10e'} (set DYNIDENT_DATA)")
        return
    table = []
    for line in lines():
        table.append(line)
        print(line, flush=True)
    if arguments.write:
        front, _, rest = arguments.write.read_text().partition(BEGIN)
        arguments.write.write_text(f"{front}{BEGIN}\n\n" + "\n".join(table) + f"\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
