"""Physical parameters: what they cost on real arms, whether truth is recovered, and how long solving takes.

    python benchmarks/physical.py [--parts real,recovery,papers,speed] [--robots ur10e,tx40] [--seeds 20] [--dry]

real: every real data set found at DYNIDENT_DATA (or ../shared/data) is identified, made physical, and both are
evaluated
in a fixed band on the training logs and on motion that was left out. recovery: robots simulated on the MuJoCo plant
with torque noise and encoder rounding (with --dry, also dry friction that sticks) are identified and made physical
with bodies from geometry alone as the prior; errors of the base parameters are counted in stated standard deviations.
papers: value sets of papers that belong to no robot. speed: `physical_fit` of a fitted estimator with basic friction,
best of five.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import numpy as np

import dynident as di
import friction
import recovery
from dynident.arrays import Array
from dynident.physical.result import PhysicalParameters
from dynident.plant.recording import measure
from dynident.robot.model import Robot
from dynident.robot.physicality import violations
from dynident.validation.residuals import compare

SERIAL = ("ur10e", "tx40", "kr5", "puma560", "panda", "cmu-dd-arm-3")
TIAGO_GAINS = "drive_gains: [1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]\n"  # [N·m/A]


def tiago() -> tuple[Robot, list[friction.Fold]]:
    """One log, of which the end is left out: slow motion, and four motors whose current says nothing."""
    folder = friction.DATA / "tiago_arm"
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "tiago.yaml"
        path.write_text(f"base: {folder / 'robot.urdf'}\n{TIAGO_GAINS}")
        robot = di.load_robot(path)
    log = folder / "log_a.csv.gz"
    return robot, [
        friction.Fold("from 36 s", [di.read_log(log, robot, stop=36.0)], di.read_log(log, robot, start=36.0))
    ]


ARMS = {**friction.ARMS, "tiago": ("tiago_arm", 5.0, tiago)}


def errors(fit: di.Fit, found: PhysicalParameters, logs: Sequence[di.Log], band: float) -> Array:
    """Relative torque error of both over some logs, (2,) [%]."""
    squares = np.zeros((2, 2))
    for log in logs:
        both = compare([fit.model, found.model], fit.observe(log, band=band)).errors
        squares += [[one.error_square.sum(), one.torque_square.sum()] for one in both]
    return np.asarray(100.0 * np.sqrt(squares[:, 0] / squares[:, 1]))


def all_bodies(found: PhysicalParameters) -> bool:
    """Whether every link is a body, by the check that knows nothing of the solver."""
    return not any(violations(chi, "link") for chi in found.link_parameters)


def real(arms: Sequence[str], recipes: Sequence[str]) -> Iterator[str]:
    """A line per fold and recipe."""
    yield "| left out | friction | training, fit to physical [%] | left out [%] | distance, usual | bodies | solve |"
    yield "|---|---|---|---|---|---|---|"
    for arm in arms:
        folder, band, make = ARMS[arm]
        if not (friction.DATA / folder).exists():
            yield f"{arm}: skipped, no data at {friction.DATA / folder} (set DYNIDENT_DATA)"
            continue
        robot, folds = make()
        for fold in folds:
            for recipe in recipes:
                fit = di.identify(robot, fold.train, friction=recipe)
                found = di.physical_fit(fit)
                before, after = errors(fit, found, fold.train, band)
                unseen, physical = errors(fit, found, [fold.test], band)
                cells = [
                    f"{arm}: {fold.label}",
                    recipe,
                    f"{before:.2f} to {after:.2f}",
                    f"{unseen:.2f} to {physical:.2f} ({100.0 * (physical / unseen - 1.0):+.1f} %)",
                    f"{found.distance:.1f}, {found.usual:.1f}",
                    "yes" if all_bodies(found) else "NO",
                    f"{1e3 * found.seconds:.0f} ms",
                ]
                yield f"| {' | '.join(cells)} |"
                for one in found.contradictions:
                    yield f"    {one}"


def recovered(robots: Sequence[str], seeds: int, dry: bool = False) -> Iterator[str]:
    """A line per robot, and one for all."""
    yield "| robot | parameters | beyond 3 | beyond 5 | farthest | rms, fit | rms, physical | distance | all bodies |"
    yield "|---|---|---|---|---|---|---|---|---|"
    every: list[Array] = []
    for name in robots:
        one = recover(name, seeds, dry)
        every.append(one.errors.ravel())
        yield _recovery_line(name, one)
    together = np.concatenate(every)
    three, five = 100.0 * np.mean(together > 3.0), int(np.sum(together > 5.0))
    yield f"\n{len(together)} parameters over {seeds} seeds: {three:.2f} % beyond three std, {five} beyond five"


@dataclass(frozen=True, eq=False)
class Recovered:
    """Errors of base parameters in stated standard deviations.

    Attributes:
        base: The base parameters.
        errors: (n_seeds, n) of the physical ones.
        plain: (n_seeds, n) of the fits.
        distance: Mean distance between the two.
        bodies: Whether every link was a body every time.
    """

    base: di.BaseParameters
    errors: Array
    plain: Array
    distance: float
    bodies: bool


def recover(name: str, seeds: int, dry: bool = False) -> Recovered:
    """Simulate, identify with every seed, make physical, compare with the truth."""
    robot = di.load_robot(name)
    values = recovery.machine(robot, dry=dry)
    plant = recovery.run_of(robot, values, recovery.exciting_motion(robot, values, seed=1))
    off, plain, far, bodies = [], [], [], True
    for seed in range(seeds):
        fit = di.identify(robot, measure(plant, seed=seed, every=recovery.EVERY), friction="basic")
        found = di.physical_fit(fit, prior="plausible")
        truth = fit.base.base_values(values)
        off.append(np.abs(found.beta - truth) / fit.std)
        plain.append(np.abs(fit.beta - truth) / fit.std)
        far.append(found.distance)
        bodies &= all_bodies(found)
    return Recovered(fit.base, np.array(off), np.array(plain), float(np.mean(far)), bodies)


def _recovery_line(name: str, one: Recovered) -> str:
    errors = one.errors
    worst = int(np.argmax(errors.max(0)))
    cells = [
        name,
        str(errors.size),
        f"{100.0 * np.mean(errors > 3.0):.2f} %",
        str(int(np.sum(errors > 5.0))),
        f"{one.base.names[worst]} {errors.max():.1f}",
        f"{np.sqrt(np.mean(one.plain**2)):.2f}",
        f"{np.sqrt(np.mean(errors**2)):.2f}",
        f"{one.distance:.1f}",
        "yes" if one.bodies else "NO",
    ]
    return f"| {' | '.join(cells)} |"


def papers() -> Iterator[str]:
    """Printed value sets and the nearest physically consistent robot."""
    for name, values in (("cmu-dd-arm-3", "table3"), ("cmu-dd-arm-6", "table4-6"), ("kr5-planar", "table4")):
        robot = di.load_robot(name)
        near = di.physical.nearest_physical(robot, values)
        yield f"{name} {values}: feasible {near.feasible}, distance {near.distance:.3f} ({near.metric})"
        causes = sorted(near.strains, key=lambda key: -near.strains[key])[:3]
        yield "    caused by " + ", ".join(f"{key} {near.strains[key] / near.distance**2:.0%}" for key in causes)
        if values in robot.values:
            yield from (f"    {line}" for line in di.physical.distance_to_physical(robot, values).sentences())
        moved = sorted(near.moved.items(), key=lambda pair: -abs(pair[1]))[:5]
        yield "    moved most: " + ", ".join(f"{key} {value:+.4g}" for key, value in moved)


def speed(names: Sequence[str]) -> Iterator[str]:
    """Best of five, on data whose noise makes some conditions matter."""
    from tests.physical.physical_cases import information

    for name in names:
        robot = di.load_robot(name)
        fitted = di.estimators.WeightedLeastSquares().fit(information(robot, None, noise=0.05))
        di.physical_fit(fitted)
        spent, worked = [], []
        for _ in range(5):
            began, counted = time.perf_counter(), time.process_time()
            di.physical_fit(fitted)
            spent.append(time.perf_counter() - began)
            worked.append(time.process_time() - counted)
        yield f"{name}: {robot.n_links} links, {1e3 * min(spent):.0f} ms, {1e3 * min(worked):.0f} ms of one core"


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="real,recovery,papers,speed")
    parser.add_argument("--robots", default="")
    parser.add_argument("--recipes", default="basic")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    named = given.robots.split(",") if given.robots else None
    parts = {
        "real": lambda: real(named or list(ARMS), given.recipes.split(",")),
        "recovery": lambda: recovered(named or SERIAL, given.seeds, given.dry),
        "papers": papers,
        "speed": lambda: speed(named or ("panda", "ur10e", "tx40", "sr400")),
    }
    for part in given.parts.split(","):
        print(f"\n{part}\n", flush=True)
        for line in parts[part]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
