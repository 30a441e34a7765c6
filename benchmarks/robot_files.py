"""Robot files of others through the whole chain: inspect, excite, simulate, identify, export, each file unedited.

    python benchmarks/robot_files.py [--only yam.xml,go1.xml] [--keep FOLDER]

Files are looked for at DYNIDENT_ROBOTS, or in ../shared/robots. Every verb is run as a command. The simulated machine
is the robot of the file itself, so errors of the base parameters over their stated standard deviations have an rms of
about one; wanted is below 1.3, each robot in under a minute of CPU time.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import dynident as di

ROBOTS = Path(os.environ.get("DYNIDENT_ROBOTS", Path(__file__).parents[2] / "shared" / "robots"))
SOURCES = Path(__file__).parents[1] / "src"
MOST_RMS, MOST_SECONDS = 1.3, 60.0
CASES = {  # what it is, and what excite needs beyond the file
    "so_arm100.xml": ("low-cost arm", "--max-velocity 2"),
    "yam.xml": ("arm with gripper", "--max-velocity 2"),
    "talos_left_arm.urdf": ("humanoid arm", ""),
    "wxai_bimanual.xml": ("two arms", "--max-velocity 2"),
    "2f85.xml": ("gripper with loops", "--max-velocity 2"),
    "leap_right_hand.xml": ("hand", "--max-velocity 5"),
    "go1.xml": ("quadruped legs", "--max-velocity 6"),
    "solo12.urdf": ("quadruped legs", "--max-velocity 6 --position-range 1"),  # its limits are placeholders
    "tidybot_base.xml": ("mobile base", "--max-velocity 1 --position-range 1.5"),  # has no limits
}


def run(folder: Path, *words: object) -> float:
    """CPU time of a verb, start of Python included [s]; nothing else is run beside it."""
    began = _cpu_time()
    done = subprocess.run(
        [sys.executable, "-m", "dynident.cli.command_line", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(SOURCES)},
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-300:]}")
    return _cpu_time() - began


def _cpu_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def chain(file: str, folder: Path) -> tuple[dict[str, float], np.ndarray]:
    """Seconds of each verb, and errors of the base parameters over their standard deviations."""
    robot, form = ROBOTS / file, "--urdf" if file.endswith(".urdf") else "--mjcf"
    target = f"identified{Path(file).suffix}"
    extra = CASES[file][1].split()
    fixed = ["--fixed-base"]
    seconds = {"inspect": run(folder, "inspect", robot, *fixed)}
    seconds["excite"] = run(folder, "excite", robot, "-o", "motion.yaml", *extra, *fixed)
    seconds["simulate"] = run(folder, "simulate", robot, "motion.yaml", "-o", "log.npz", *fixed)
    seconds["identify"] = run(folder, "identify", robot, "log.npz", "-o", "fit", *fixed)
    seconds["export"] = run(folder, "export", "fit", form, target, "--yaml", "identified.yaml")
    fit = di.load_fit(folder / "fit")
    errors = (fit.beta - fit.base.base_values()) / np.sqrt(np.diag(fit.covariance))
    return seconds, errors


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--keep", help="folder for what the verbs write")
    options = parser.parse_args()
    print(f"{'file':22} {'kind':20} {'base':>4}  {'rms':>5} {'worst':>6}   CPU seconds")
    for file in options.only.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(options.keep or scratch) / Path(file).stem
            folder.mkdir(parents=True, exist_ok=True)
            try:
                seconds, errors = chain(file, folder)
            except RuntimeError as error:
                print(f"{file:22} {CASES[file][0]:20} {error}", flush=True)
                continue
        rms, total = float(np.sqrt(np.mean(errors**2))), sum(seconds.values())
        verbs = " + ".join(f"{verb} {s:.1f}" for verb, s in seconds.items())
        late = " (more than a minute)" if total > MOST_SECONDS else ""
        wide = " (more than wanted)" if rms > MOST_RMS else ""
        print(
            f"{file:22} {CASES[file][0]:20} {len(errors):4}  {rms:5.2f} {np.abs(errors).max():6.1f}{wide}   "
            f"{total:.0f}{late} = {verbs}",
            flush=True,
        )


if __name__ == "__main__":
    main()
