"""Friction on real arms: error on motion that was left out, with the basic friction, the generic recipe and `auto`.

    python benchmarks/friction.py [--robots ur10e,tx40] [--recipes basic,generic,auto]

Data is looked for at DYNIDENT_DATA, or in ../shared/data; what is not there is skipped. Every fold is identified with
defaults, and evaluated in a fixed band on a held-out log or a part of one. Of short logs the middle, the
beginning or the end is held out in turn. The last column is what the 90 % torque bands of each training covered of its
own held-out parts: mean over the joints, least and most.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynident as di
from dynident.logs.log import Log
from dynident.robot.model import Robot

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[2] / "shared" / "data"))
RECIPES = ("basic", "generic", "auto")
UR10E = ("exc_30s_12h", "exc_40s_12h", "exc_50s_14h_unloaded")
UR10E_GAINS = "drive_gains: [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]\n"  # [N·m/A]


@dataclass(frozen=True)
class Fold:
    """What is learnt from, and what evaluates.

    Attributes:
        label: In words.
        train: Logs for training.
        test: The log that was held out.
    """

    label: str
    train: Sequence[Log]
    test: Log


def ur10e() -> tuple[Robot, list[Fold]]:
    """Three logs of one month in turn, and one of another month."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ur10e.yaml"
        path.write_text(f"base: {DATA / 'ur10e' / 'robot.urdf'}\n{UR10E_GAINS}")
        robot = di.load_robot(path)
    later = "exc_20s_unloaded_0131"
    logs = {name: di.read_log(DATA / "ur10e" / f"{name}.csv.gz", robot) for name in (*UR10E, later)}
    folds = [Fold(one, [logs[name] for name in UR10E if name != one], logs[one]) for one in UR10E]
    return robot, [*folds, Fold("another month", [logs[name] for name in UR10E], logs[later])]


def panda() -> tuple[Robot, list[Fold]]:
    """Two runs of one motion, each from the other."""
    robot = di.load_robot(DATA / "franka_panda" / "robot.urdf")
    a, b = (di.read_log(DATA / "franka_panda" / f"log_{x}.csv.gz", robot) for x in "ab")
    return robot, [Fold("a to b", [a], b), Fold("b to a", [b], a)]


def lwr4() -> tuple[Robot, list[Fold]]:
    """Two logs; of the one that is evaluated, a part may be learnt from."""
    robot, folder = di.load_robot(DATA / "kuka_lwr4" / "robot.urdf"), DATA / "kuka_lwr4"

    def part(number: int, **window: float) -> Log:
        return di.read_log(folder / ("log2.csv.gz" if number == 2 else "log3_part_a.csv.gz"), robot, **window)

    folds = [
        Fold("log 3 from 9 s", [part(2), part(3, stop=9.0)], part(3, start=9.0)),
        Fold("log 3 to 6 s", [part(2), part(3, start=6.0)], part(3, stop=6.0)),
        Fold("log 2 from 15 s", [part(3), part(2, stop=15.0)], part(2, start=15.0)),
    ]
    return robot, folds


def tx40() -> tuple[Robot, list[Fold]]:
    """Quarters of one log of 4.5 s."""
    robot, path = di.load_robot("tx40"), DATA / "staubli_tx40" / "log_motor_a.csv.gz"
    edges = (1.1, 2.3, 3.4)

    def part(**window: float) -> Log:
        return di.read_log(path, robot, **window)

    folds = [
        Fold("from 3.4 s", [part(stop=edges[2])], part(start=edges[2])),
        Fold("to 1.1 s", [part(start=edges[0])], part(stop=edges[0])),
        Fold("1.1 to 2.3 s", [part(stop=edges[0]), part(start=edges[1])], part(start=edges[0], stop=edges[1])),
        Fold("2.3 to 3.4 s", [part(stop=edges[1]), part(start=edges[2])], part(start=edges[1], stop=edges[2])),
    ]
    return robot, folds


ARMS: dict[str, tuple[str, float, Callable[[], tuple[Robot, list[Fold]]]]] = {  # folder, band of the comparison [Hz]
    "ur10e": ("ur10e", 5.0, ur10e),
    "panda": ("franka_panda", 5.0, panda),
    "lwr4": ("kuka_lwr4", 6.0, lwr4),
    "tx40": ("staubli_tx40", 50.0, tx40),
}


def evaluated(arm: str, recipes: Sequence[str]) -> Iterator[str]:
    """Lines of the table for one arm: a line per fold, and their mean."""
    _, band, make = ARMS[arm]
    robot, folds = make()
    every: dict[str, list[float]] = {recipe: [] for recipe in recipes}
    spent: dict[str, list[float]] = {recipe: [] for recipe in recipes}
    for fold in folds:
        for recipe in recipes:
            began = time.perf_counter()
            fit = di.identify(robot, fold.train, friction=recipe)
            spent[recipe].append(time.perf_counter() - began)
            every[recipe].append(100.0 * di.validate(fit, fold.test, band=band).relative_error)
        terms = ", ".join(f"`{term.key}`" for term in fit.base.terms[5:]) or "none"
        errors = " | ".join(f"{every[recipe][-1]:.2f}" for recipe in recipes)
        yield f"| {arm}: {fold.label} | {errors} | {terms} | {spent[recipes[-1]][-1]:.1f} s | {covered(fit)} |"
    means = " | ".join(f"**{np.mean(every[recipe]):.2f}**" for recipe in recipes)
    took = ", ".join(f"{recipe} {np.mean(spent[recipe]):.1f} s" for recipe in recipes)
    yield f"| **{arm}** | {means} | {took} | | |"


def covered(fit: di.Fit) -> str:
    """Coverage of the 90 % bands on the folds of a fit [%]."""
    shares = None if fit.cross_validation is None else fit.cross_validation.band_coverage
    if shares is None:
        return "not known"
    known = 100.0 * np.array([share for share in shares if np.isfinite(share)])
    return f"{known.mean():.0f} ({known.min():.0f} to {known.max():.0f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--robots", default=",".join(ARMS))
    parser.add_argument("--recipes", default=",".join(RECIPES))
    arguments = parser.parse_args()
    recipes = arguments.recipes.split(",")
    heads = ["left out", *(f"{recipe} [%]" for recipe in recipes), f"terms of {recipes[-1]}", "time", "bands cover [%]"]
    print(f"| {' | '.join(heads)} |")
    print("|" + "---|" * len(heads))
    for arm in arguments.robots.split(","):
        if not (DATA / ARMS[arm][0]).exists():
            print(f"{arm}: skipped, no data at {DATA / ARMS[arm][0]} (set DYNIDENT_DATA)")
            continue
        for line in evaluated(arm, recipes):
            print(line, flush=True)


if __name__ == "__main__":
    main()
