"""Viscous friction that differs between logs: recovered levels, and what training with them does for another log.

    python benchmarks/friction_levels.py [--seeds 5] [--none 20] [--skip-simulated] [--skip-real]

Simulated: the puma560 by Pinocchio, three logs of 20 s with noise; viscous friction of each log is scaled by a factor that
all joints share (10 %) and one of each joint (3 %), or by nothing. Real: the UR10e (DYNIDENT_DATA or ../shared/data), from
logs of two months, judged at 5 Hz on a log that was left out, with levels and without.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import numpy as np
from tests.signals.made import Fourier, make_log, pinocchio_torque, stamps

import dynident as di
import friction
from dynident.arrays import Array
from dynident.logs.log import Log
from dynident.robot.model import Robot

TIME = stamps(20.0, 500.0)
NOISE = np.array([1.0, 2.0, 1.0, 0.2, 0.2, 0.1])  # [N·m]
SHARED, OWN, LOGS = 0.10, 0.03, 3
BAND = 5.0  # [Hz]


def simulated(robot: Robot, viscous: Array, seed: int, *, differ: bool) -> tuple[list[Log], Array]:
    """Logs, and the factors of their viscous friction, (n_logs, n_joints)."""
    rng, logs, factors = np.random.default_rng(seed), [], []
    for number in range(LOGS):
        q, dq, ddq = Fourier.random(6, 10 * seed + number)(TIME)
        factor = 1.0 + differ * (SHARED * rng.normal() + OWN * rng.normal(size=6))
        tau = pinocchio_torque(robot, q, dq, ddq) + (factor - 1.0) * viscous * dq
        logs.append(make_log(robot, TIME, q, tau + NOISE * rng.normal(size=tau.shape), source=f"log {number + 1}"))
        factors.append(factor)
    return logs, np.array(factors)


def recovery(seeds: int, without: int) -> None:
    """Errors over stated deviations of levels and parameters."""
    robot = di.load_robot("puma560")
    truth = robot.value_set()
    viscous = np.array([truth[f"Fv{j}"] for j in range(1, 7)])
    print("| seed | levels over std, rms | spread found (shared, own) | parameters over std, rms |\n|" + "---|" * 4)
    levels, parameters = [], []
    for seed in range(seeds):
        logs, factors = simulated(robot, viscous, seed, differ=True)
        fit = di.identify(robot, logs, check="off")
        found = fit.friction_levels
        if found is None:
            print(f"| {seed} | not found | | |", flush=True)
            continue
        own = (found.values - (factors - factors.mean(0)) * viscous) / found.std
        values = {**truth, **{f"Fv{j + 1}": factors[:, j].mean() * viscous[j] for j in range(6)}}
        off = (fit.beta - fit.base.base_values(values)) / fit.std
        levels.append(own)
        parameters.append(off)
        spread = ", ".join(f"{100.0 * x:.1f} %" for x in found.spread)
        print(f"| {seed} | {_rms(own):.2f} | {spread} | {_rms(off):.2f} |", flush=True)
    if levels:
        largest = max(float(np.abs(own).max()) for own in levels)
        print(f"| all | {_rms(np.array(levels)):.2f} (largest {largest:.1f}) | | {_rms(np.array(parameters)):.2f} |")
    none = 0
    for seed in range(without):
        logs, _ = simulated(robot, viscous, 1000 + seed, differ=False)
        none += di.identify(robot, logs, check="off").friction_levels is None
    print(f"\nLogs of one friction: nothing found in {none} of {without}.\n", flush=True)


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def real() -> None:
    """The UR10e, with levels and without."""
    if not (friction.DATA / "ur10e").exists():
        print(f"ur10e: skipped, no data at {friction.DATA / 'ur10e'} (set DYNIDENT_DATA)")
        return
    robot, folds = friction.ur10e()
    *month, other = folds
    later = other.test
    cases = [(f"{fold.label}, from the others and the other month", [*fold.train, later], fold.test) for fold in month]
    cases += [(f"{fold.label}, from the others alone", fold.train, fold.test) for fold in month]
    cases += [("the other month, from three logs of one month", other.train, later)]
    print(
        "| predicted log | off [%] | auto [%] | within two std: off, auto | levels of the training logs |\n|"
        + "---|" * 5
    )
    for label, train, test in cases:
        errors, inside, words = [], [], "none"
        for option in ("off", "auto"):
            fit = di.identify(robot, train, friction_levels=option)
            judged = di.validate(fit, test, band=BAND)
            errors.append(f"{100.0 * judged.relative_error:.2f}")
            inside.append(f"{100.0 * float(np.nanmean(judged.coverage)):.0f} %")
            if fit.friction_levels is not None:
                found = fit.friction_levels
                factors = found.values.sum(1) / found.means.sum()
                words = ", ".join(f"{x:+.1%}" for x in factors) + f"; spread {_rms(found.spread) * np.sqrt(2):.1%}"
        print(f"| {label} | {' | '.join(errors)} | {', '.join(inside)} | {words} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--none", type=int, default=20)
    parser.add_argument("--skip-simulated", action="store_true")
    parser.add_argument("--skip-real", action="store_true")
    given = parser.parse_args()
    if not given.skip_simulated:
        recovery(given.seeds, given.none)
    if not given.skip_real:
        real()


if __name__ == "__main__":
    main()
