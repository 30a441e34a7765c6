"""Times a person waits: import, help, inspect; and processor time of the default demo beside that of another worktree.

.venv/bin/python benchmarks/start_up.py [OTHER_WORKTREE]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import once, seconds

DEMO = Path(__file__).parents[1] / "examples" / "demo"
REPEATS = 7
_RUN = """
import sys
try:
    from dynident.cli.command_line import main
except ImportError:  # versions of before
    from dynident.run.command_line import main
sys.exit(main())
"""


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def default_demo(worktree: Path) -> float:
    """Processor time of the default demo, user and system, into a new folder [s]."""
    logs = [str(DEMO / f"fourier_{i}.csv.gz") for i in (1, 2)]
    validation = ["--validation", str(DEMO / "wandering.csv.gz")]
    # Bytecode is written and threads are as a user has them, whatever the shell of this benchmark is set to.
    set_here = {"PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}
    environment = {name: value for name, value in os.environ.items() if name not in set_here}
    environment["PYTHONPATH"] = str(worktree / "src")
    with tempfile.TemporaryDirectory() as folder:
        words = ["identify", str(DEMO / "arm.yaml"), *logs, *validation, "-o", f"{folder}/demo"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", _RUN, *words], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_demo(other: Path) -> None:
    """The default demo with both worktrees in turn, after one run each that fills the caches."""
    trees = (Path(__file__).parents[1], other)
    taken: list[list[float]] = [[], []]
    for _ in range(REPEATS + 1):
        for tree, own in zip(trees, taken, strict=True):
            own.append(default_demo(tree))
    ours, theirs = (statistics.median(own[1:]) for own in taken)
    least = min(taken[0][1:]) / min(taken[1][1:])
    print(f"{'default demo, processor time':44}{seconds(ours):>11}   ({other}: {seconds(theirs)})")
    print(f"{'':44}{ours / theirs:>11.2f}   of it by medians, {least:.2f} by the least of {REPEATS}")


def main() -> None:
    print("Start-up (whole process)")
    command = ("-m", "dynident.cli.command_line")
    everything = ("--terms", "rigid,Ia,Fv,Fc,Fo")
    for what, arguments, limit in (
        ("import dynident", ("-c", "import dynident"), 0.3),
        ("dynident --help", (*command, "--help"), 0.5),
        ("dynident inspect panda, all terms", (*command, "inspect", "panda", *everything), 2.0),
        ("dynident inspect sr400, all terms", (*command, "inspect", "sr400", *everything), 5.0),
    ):
        taken = once(lambda arguments=arguments: run(*arguments))
        print(f"{what:44}{seconds(taken):>11}   (aim: {limit:g} s)")


if __name__ == "__main__":
    if sys.argv[1:]:
        compare_demo(Path(sys.argv[1]).resolve())
    else:
        main()
