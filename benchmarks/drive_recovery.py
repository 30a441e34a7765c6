"""Recovery of known drives from commands and positions: errors over stated standard deviations, by quantity.

    python benchmarks/drive_recovery.py [SEEDS] [--write]    # --write: into docs/reference/drives.md

A quadruped with twelve joints and an arm with seven skewed ones are simulated by plain steps of MuJoCo, with a
controller of their own, encoder noise, and drives that are drawn for each seed. The robot files know the links
alone. rms is that of (found - true) / std over all seeds and joints; near one, standard deviations are honest.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.drives.made import Machine, Truth, arm, logged, quadruped

from dynident.drives.identification import identify_drives
from dynident.drives.thresholds import THRESHOLDS

START, END = "<!-- benchmarks/drive_recovery.py writes from here -->", "<!-- to here -->"
QUANTITIES = {"armature": "Ia", "damping": "Fv", "frictionloss": "Fc", "bias": "bias", "delay": "delay"}


def ratios(machine: Machine, seed: int) -> tuple[dict[str, list[float]], dict[str, list[float]], float, int]:
    """Errors over standard deviations and relative errors by quantity; seconds; how many parameters are at a bound."""
    robot = machine.robot
    truth = Truth.drawn(len(robot.joint_names), seed, machine.size, THRESHOLDS.loop_delay)
    log = logged(robot, truth, machine.kp, machine.kd, seed=seed)
    start = time.process_time()
    found = identify_drives(robot, [log])
    seconds = time.process_time() - start
    true = truth.by_name(robot)
    over: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    relative: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    for name, value, std, is_known in zip(found.names, found.values, found.std, found.determined, strict=True):
        kind = next(word for word, symbol in QUANTITIES.items() if name.startswith(symbol))
        if is_known:
            over[kind].append((value - true[name]) / std)
        relative[kind].append((value - true[name]) / true[name] if kind != "bias" else value - true[name])
    return over, relative, seconds, int(np.sum(~found.determined))


def table(found: dict[str, list[tuple[dict[str, list[float]], dict[str, list[float]], float, int]]]) -> list[str]:
    """As a table of Markdown."""
    lines = [
        "| robot | | rms of error / std | largest | within two std | median error |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for label, runs in found.items():
        for kind in QUANTITIES:
            every = np.array([x for one in runs for x in one[0][kind]])
            size = np.median(np.abs([x for one in runs for x in one[1][kind]]))
            error = f"{1e3 * size:.2g} mrad" if kind == "bias" else f"{100 * size:.2g} %"
            rms, most = np.sqrt(np.mean(every**2)), np.abs(every).max()
            near = f"{100 * np.mean(np.abs(every) < 2):.0f} %"
            lines.append(f"| {label} | {kind} | {rms:.2f} | {most:.1f} | {near} | {error} |")
    return lines


def main() -> None:
    """Both machines, all seeds."""
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    seeds = range(int(numbers[0]) if numbers else 20)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        machines = {"quadruped, 12 joints": quadruped(Path(folder)), "arm, 7 joints": arm()}
        for label, machine in machines.items():
            found[label] = [ratios(machine, 100 + seed) for seed in seeds]
            seconds, at_bound = np.median([one[2] for one in found[label]]), sum(one[3] for one in found[label])
            print(f"{label}: {len(seeds)} seeds, median {seconds:.1f} s of the processor, {at_bound} at a bound")
            print("\n".join(table({label: found[label]})), flush=True)
    if "--write" in sys.argv:
        page = Path(__file__).parents[1] / "docs" / "reference" / "drives.md"
        text = page.read_text()
        before, after = text.split(START)[0], text.split(END)[1]
        page.write_text(before + "\n".join([START, "", *table(found), "", END]) + after)


if __name__ == "__main__":
    main()
