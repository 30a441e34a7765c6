"""Every method on the standing strangers and on a closed-loop robot: errors in stated standard deviations.

    python benchmarks/strangers.py [--seeds 5] [--robots scara,sr400] [--methods "identify;step"] [--write PAGE]

Errors of calibrated standard deviations have an rms of one; wanted are an rms below 1.3, at most one error in a
thousand beyond four and none beyond six. A method that cannot serve a robot says so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.strangers import ROBOTS
from tests.strangers.methods import METHODS

from dynident.errors import DynidentError

BEGIN, END = "<!-- table: benchmarks/strangers.py -->", "<!-- end of strangers -->"
HEAD = (
    "| robot | method | numbers | rms | beyond four | beyond six | worst | refused | time per seed |\n"
    + "|---" * 9
    + "|"
)


def tried(name: str, method: str, seeds: Sequence[int]) -> str:
    """A row of the table."""
    total, refusals, began = None, [], time.perf_counter()
    for seed in seeds:
        try:
            found = METHODS[method](ROBOTS[name](), seed)
        except DynidentError as error:
            refusals.append(str(error))
            continue
        total = found if total is None else total + found
    seconds = (time.perf_counter() - began) / len(seeds)
    words = "" if not refusals else f"refused {len(refusals)} of {len(seeds)}: {refusals[0]}"
    cells = ("", "", "", "", "") if total is None else total.cells()
    return f"| {name} | {method} | {' | '.join(cells)} | {words} | {seconds:.0f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--robots", default=",".join(ROBOTS))
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by ;")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a document with the marks of this table")
    given = parser.parse_args()
    rows = [HEAD]
    print(HEAD)
    for name in given.robots.split(","):
        for method in given.methods.split(";"):
            rows.append(tried(name, method, range(given.seeds)))
            print(rows[-1], flush=True)
    if given.write:
        text = given.write.read_text()
        before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
        given.write.write_text(f"{text[:before]}\n\n" + "\n".join(rows) + f"\n\n{text[after:]}")


if __name__ == "__main__":
    main()
