"""Makes the logs of the first tutorial: an arm in MuJoCo that differs from its URDF by up to a third.

    .venv/bin/python examples/urdf/make_logs.py

Two motions, logged as a controller with its own names and units would: milliseconds, degrees and ampere.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

import dynident as di

HERE = Path(__file__).parent
MOTIONS = {"train": {"seed": 0}, "validation": {"seed": 7, "harmonics": 3, "duration": 8.0}}


def write(log: di.Log, path: Path) -> None:
    """The log as the controller's table."""
    joints = {1: "turn", 2: "shoulder", 3: "elbow"}
    columns = [1e3 * log.time]
    columns += [np.degrees(log.channels[f"q{j}"]) for j in joints] + [log.channels[f"i{j}"] for j in joints]
    names = ["stamp", *(f"{name}_{kind}" for kind in ("pos", "cur") for name in joints.values())]
    with gzip.GzipFile(path, "wb", mtime=0) as packed:  # the same bytes at every run
        rows = [",".join(names), *(",".join(f"{x:.6g}" for x in row) for row in np.column_stack(columns))]
        packed.write(("\n".join(rows) + "\n").encode())


def main() -> None:
    """Both motions, then both logs."""
    robot, machine = di.load_robot(HERE / "arm.yaml"), di.load_robot(HERE / "machine.yaml")
    for name, options in MOTIONS.items():
        motion = di.optimize_excitation(robot, floor=0.0, starts=4, kicks=1, **options)
        run = di.simulate(machine, motion.trajectory, values="machine", rate=250.0, seed=options["seed"])
        write(run.log, HERE / f"{name}.csv.gz")


if __name__ == "__main__":
    main()
