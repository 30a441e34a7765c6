"""Coverage: do errors of parameters, payloads and drive gains have the size that is stated?

    python benchmarks/coverage.py [--methods "parameters;payload"] [--friction basic] [--only light_arm] [--combos 0,7]
                                  [--seeds 0,1,2] [--control] [--jobs 2] [--write PAGE]

Arms simulated by Pinocchio alone, with dry friction from an ideal sign that sticks to one that turns over within 62
mrad/s, 100 Hz to 1 kHz, one to ten repeats, torque up to 4.3 ms late: `tests/strangers/coverage.py` has the
combinations, which pair every two levels of any two factors. Errors of calibrated standard deviations, pooled over
seeds, have an rms of one; wanted is 0.85 to 1.2. Errors of one fit are correlated, so that chance alone moves the rms
of a combination by 0.1, and more for payloads and drive gains, which are few numbers: theirs are evaluated all
together. "other friction" has parameters of arms whose dry friction falls with velocity (Tustin), grows with the load,
or both, which no parameter of basic friction holds. `--control` takes dry friction away: what is left has other causes. Simulated motions are kept in
build/coverage.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # one job, one thread
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from tests.strangers.coverage import DESIGN, METHODS, OTHER_FRICTION, SEEDS, Combination
from tests.strangers.stranger import Calibration

from dynident.errors import DynidentError

FRICTIONS = ("default", "basic")  # of identify
WANTED = (0.85, 1.2)  # rms of a combination
OTHER = "other friction"  # the method with designs of its own
FEW = 8  # combinations for payloads and drive gains
BEGIN, END = "<!-- table: benchmarks/coverage.py -->", "<!-- end of coverage -->"
HEAD = ("no.", "arm", "dry friction", "rate", "repeats", "delay", "period")
EACH = ("rms", "beyond 2", "beyond 4", "worst")

Task = tuple[str, int, int, str, bool]  # method, combination, seed, friction, whether without dry friction
Answer = tuple[Calibration | str, float]  # errors or what was said instead of them, time [s]


def combinations(method: str) -> Sequence[Combination]:
    """What a method is tried on."""
    return OTHER_FRICTION if method == OTHER else DESIGN


def combination(method: str, number: int, control: bool) -> Combination:
    """One of the design, or the same without dry friction."""
    own = combinations(method)[number]
    return replace(own, width=np.inf, law="coulomb") if control else own


def answer(task: Task) -> Answer:
    """One identification."""
    method, number, seed, friction, control = task
    began = time.perf_counter()
    found: Calibration | str
    try:
        found = METHODS[method](combination(method, number, control), seed, None if friction == "default" else friction)
    except (DynidentError, AssertionError) as error:
        found = f"{type(error).__name__}: {error}"
    return found, time.perf_counter() - began


def cells(found: Sequence[Calibration]) -> tuple[str, ...]:
    """rms, shares beyond two and four standard deviations, the worst."""
    if not found:
        return ("",) * len(EACH)
    total = sum(found[1:], found[0])
    beyond = [f"{100 * np.mean(np.abs(total.off) > limit):.0f} %" for limit in (2.0, 4.0)]
    name, off = total.worst
    mark = "" if WANTED[0] <= total.rms <= WANTED[1] else " !"
    return f"{total.rms:.2f}{mark}", *beyond, f"{name} {off:+.1f}"


def summary(what: str, rows: Sequence[Sequence[Calibration]], refused: Sequence[str]) -> str:
    """How many combinations are as wanted, and all errors together."""
    pooled = [sum(own[1:], own[0]) for own in rows if own]
    said = "".join(f"\n  - refused: {one}" for one in sorted(set(refused)))
    if not pooled:
        return f"- {what}: nothing{said}"
    good = sum(WANTED[0] <= own.rms <= WANTED[1] for own in pooled)
    off = np.concatenate([own.off for own in pooled])
    shares = ", ".join(f"{100 * np.mean(np.abs(off) > limit):.1f} % beyond {limit:.0f}" for limit in (2.0, 4.0))
    sizes = [own.rms for own in pooled]
    words = f"- {what}: {good} of {len(rows)} combinations within {WANTED[0]} to {WANTED[1]}; rms {min(sizes):.2f} to "
    words += f"{max(sizes):.2f}, all {len(off)} errors together {np.sqrt(np.mean(off**2)):.2f}, {shares}"
    return words + said


def table(method: str, numbers: Sequence[int], frictions: Sequence[str], answers: dict[Task, Answer]) -> str:
    """All combinations of a method as Markdown, with what they sum up to."""
    titles = [f"{friction}: {title}" if len(frictions) > 1 else title for friction in frictions for title in EACH]
    lines = [f"### {method.capitalize()}", ""]
    lines += [f"| {' | '.join((*HEAD, *titles, 'time'))} |", "|---" * (len(HEAD) + len(titles) + 1) + "|"]
    rows: dict[str, list[list[Calibration]]] = {friction: [] for friction in frictions}
    refused: dict[str, list[str]] = {friction: [] for friction in frictions}
    control = any(task[-1] for task in answers)
    for number in numbers:
        one, spent = [str(number), *combination(method, number, control).cells()], []
        for friction in frictions:
            own = [x for task, x in answers.items() if (task[0], task[1], task[3]) == (method, number, friction)]
            rows[friction].append([found for found, _ in own if isinstance(found, Calibration)])
            refused[friction] += [f"{number}: {found}" for found, _ in own if isinstance(found, str)]
            one += cells(rows[friction][-1])
            spent += [seconds for _, seconds in own]
        lines.append(f"| {' | '.join(one)} | {np.mean(spent):.1f} s |")
    return "\n".join([*lines, "", *(summary(own, rows[own], refused[own]) for own in frictions)])


def numbers_of(method: str, only: str, combos: str) -> list[int]:
    """The combinations that are asked for."""
    if combos:
        return [int(x) for x in combos.split(",")]
    own = combinations(method)
    every = range(len(own) if method in ("parameters", OTHER) else FEW)
    return [k for k in every if not only or any(word in " ".join(own[k].cells()) for word in only.split(","))]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by ;")
    parser.add_argument("--friction", default=",".join(FRICTIONS), help="default, or any that identify knows")
    parser.add_argument("--only", default="", metavar="WORDS", help='such as light_arm or "10 in one"; any of them')
    parser.add_argument("--combos", default="", help="numbers of the design; default all, of payloads and gains some")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--control", action="store_true", help="the same machines without dry friction")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a document with the marks of these tables")
    given = parser.parse_args(arguments)
    seeds, pages, began = [int(x) for x in given.seeds.split(",")], [], time.perf_counter()
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for method in given.methods.split(";"):
            frictions = given.friction.split(",") if method != "drive gains" else ["basic"]
            numbers = numbers_of(method, given.only, given.combos)
            tasks = [
                (method, k, seed, friction, given.control) for k in numbers for friction in frictions for seed in seeds
            ]
            answers: dict[Task, Answer] = {}
            for task, own in zip(tasks, pool.map(answer, tasks), strict=True):
                answers[task] = own
                print(*task, own[0], f"{own[1]:.1f} s", file=sys.stderr, flush=True)
            pages.append(table(method, numbers, frictions, answers))
            print(f"{pages[-1]}\n", flush=True)
    print(f"{time.perf_counter() - began:.0f} s")
    if given.write:
        text = given.write.read_text()
        before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
        given.write.write_text(f"{text[:before]}\n\n" + "\n\n".join(pages) + f"\n\n{text[after:]}")


if __name__ == "__main__":
    main()
