"""Recovery of known drives from commands and positions: errors over stated standard deviations, by quantity.

    python benchmarks/drive_recovery.py [SEEDS]

A quadruped with twelve joints and an arm with seven skewed ones are simulated by plain steps of MuJoCo, with a
controller of their own, encoder noise, and drives that are drawn anew for each seed. The robot files know the links
alone. rms is that of (found - true) / std over all seeds and joints; near one, standard deviations are honest.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dynident.drives.identification import identify_drives
from dynident.drives.thresholds import THRESHOLDS
from tests.drives.made import Machine, Truth, arm, logged, quadruped

QUANTITIES = {"armature": "Ia", "damping": "Fv", "frictionloss": "Fc", "bias": "bias", "delay": "delay"}


def ratios(machine: Machine, seed: int) -> tuple[dict[str, list[float]], dict[str, list[float]], float, int]:
    """Errors over standard deviations and relative errors of one machine, by quantity; seconds; parameters at a bound."""
    robot = machine.robot
    truth = Truth.drawn(len(robot.joint_names), seed, machine.size, THRESHOLDS.loop_delay)
    log = logged(robot, truth, machine.kp, machine.kd, seed=seed)
    start = time.perf_counter()
    found = identify_drives(robot, [log])
    seconds = time.perf_counter() - start
    true = truth.by_name(robot)
    over: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    relative: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    for name, value, std, is_known in zip(found.names, found.values, found.std, found.determined, strict=True):
        kind = next(word for word, symbol in QUANTITIES.items() if name.startswith(symbol))
        if is_known:
            over[kind].append((value - true[name]) / std)
        relative[kind].append((value - true[name]) / true[name] if kind != "bias" else value - true[name])
    return over, relative, seconds, int(np.sum(~found.determined))


def main() -> None:
    """Both machines, all seeds."""
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    with tempfile.TemporaryDirectory() as folder:
        machines = {"quadruped, 12 joints": quadruped(Path(folder)), "arm, 7 joints": arm()}
        for label, machine in machines.items():
            found = [ratios(machine, 100 + seed) for seed in seeds]
            at_bound = sum(one[3] for one in found)
            print(
                f"{label}, {len(found)} seeds, median {np.median([one[2] for one in found]):.1f} s, {at_bound} at bound"
            )
            print(f"  {'':14}{'rms of error/std':>18}{'largest':>10}{'within 2 std':>14}{'median |error|':>18}")
            for kind in QUANTITIES:
                every = np.array([x for one in found for x in one[0][kind]])
                size = np.median(np.abs([x for one in found for x in one[1][kind]]))
                unit = f"{1e3 * size:15.3g} mrad" if kind == "bias" else f"{100 * size:16.2g} %"
                rms, most = np.sqrt(np.mean(every**2)), np.abs(every).max()
                print(
                    f"  {kind:14}{rms:18.2f}{most:10.1f}{100 * np.mean(np.abs(every) < 2):12.0f} %{unit:>20}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
