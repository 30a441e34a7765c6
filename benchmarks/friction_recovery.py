"""Friction of real gears on simulated machines: what is recovered, what `auto` finds, and what it finds in vain.

    python benchmarks/friction_recovery.py [--effects stop0.3,load] [--seeds 3] [--false-seeds 50] [--dry]

A machine (the first three joints of the PUMA 560) is run once on the MuJoCo plant for each effect, which all of its
joints then have, and logged again with as many seeds of noise as asked for. Each log is identified with the term that
describes the effect, and with `friction="auto"`. Last, a machine without any effect is logged with many more seeds;
what `auto` takes into its model there is a false positive. With `--dry` machines have Coulomb friction as well.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.estimate.candidates import GROUPS
from dynident.logs.log import Log
from dynident.plant.controllers import Feedforward
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.recording import measure, record
from dynident.plant.sensors import Sensors
from dynident.robot.model import Robot

DURATION = 48.0  # [s]
VELOCITY = 1.0  # [rad/s] effective, of each joint
NOISE = 0.01  # of each joint's effective torque
COUNTS = 2**17  # encoder counts per turn
EVERY = 2  # samples of the controller (1 kHz) for one of the log


@dataclass(frozen=True)
class Case:
    """An effect that all joints of a machine have.

    Attributes:
        effect: Names of its parameters without the joint.
        value: What each is.
        key: Term that describes it.
        places: Joints or axes that have it.
        coulomb: Whether the machine needs Coulomb friction for it.
        basic: Basic terms, where the usual ones say the same as the effect.
        six: Whether the machine has six joints: with three, links take up nearly all that joint zeros do.
        without: Parameters that the machine lacks.
        delay: Of the torque, where it is given [s].
    """

    effect: tuple[str, ...]
    value: float
    key: str
    places: tuple[str, ...] = ("1", "2", "3")
    coulomb: bool = False
    basic: str | None = None
    six: bool = False
    without: tuple[str, ...] = ()
    delay: float | None = None

    @property
    def name(self) -> str:
        return self.effect[0] if len(self.effect) == 1 else self.key

    @property
    def group(self) -> str:
        """Key of the group that has it."""
        return self.key.partition("@")[0]

    def values(self) -> dict[str, float]:
        """By parameter name."""
        return {f"{effect}_{place}": self.value for effect in self.effect for place in self.places}


CASES = (
    Case(("stop0.3",), 3.0, "stop(0.0003)"),
    Case(("stop1",), 3.0, "stop(0.001)"),
    Case(("stop3",), 3.0, "stop(0.003)"),
    Case(("stribeck0.2",), 3.0, "stribeck(0.2)"),
    Case(("stribeck0.5",), 3.0, "stribeck(0.5)"),
    Case(("sign0.2",), 3.0, "sign(0.2)"),
    # Rotors of the first two joints cannot be distinguished from the links, and would count as load.
    Case(("load",), 0.1, "load", without=("Ia1", "Ia2")),
    Case(("loadv",), 0.1, "loadv", without=("Ia1", "Ia2")),
    Case(("quadratic",), 2.0, "quadratic"),
    Case(("cubic",), 1.0, "cubic"),
    # Half the difference of Coulomb friction between directions is an offset, but for standstill.
    Case(
        ("asymmetric",),
        2.0,
        "asymmetric",
        coulomb=True,
        basic="rigid,Ia,Fv,Fc(0.02)",
        without=("Fo1", "Fo2", "Fo3"),
    ),
    # The weight that joint 2 carries is a wave of its angle.
    Case(("harmonics1c", "harmonics1s", "harmonics2c", "harmonics2s"), 1.0, "harmonics(1,2)@1|3", places=("1", "3")),
    Case(("ripple20c", "ripple20s"), 1.0, "ripple(20)"),
    Case(("tilt",), 0.02, "tilt", places=("x", "y")),
    Case(("zero",), 0.02, "zero@2|3|4", places=("2", "3", "4"), six=True),
    # Left to choose, identification takes most of what a springy drive does for a delay of the torque.
    Case(("jerk",), 0.02, "jerk", delay=0.0),
)


class Wandering:
    """Sines of random frequency, so that the motion does not repeat."""

    def __init__(self, n: int, duration: float = DURATION, velocity: float = VELOCITY, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.duration, self.w = duration, 2.0 * np.pi * rng.uniform(0.08, 0.8, (6, n))  # [rad/s]
        weights = rng.normal(size=(6, n))
        self.a = weights / self.w * (velocity * np.sqrt(2.0) / np.linalg.norm(weights, axis=0))
        self.phase, self.middle = rng.uniform(0.0, 2.0 * np.pi, (6, n)), rng.uniform(-0.5, 0.5, n)

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration, (n_samples, n) each."""
        angle = self.w * np.asarray(t)[:, None, None] + self.phase
        q = self.middle + (self.a * np.sin(angle)).sum(1)
        return q, (self.w * self.a * np.cos(angle)).sum(1), -(self.w**2 * self.a * np.sin(angle)).sum(1)


def machine(six: bool = False) -> Robot:
    """The PUMA 560 or its first three joints, torque from its motors."""
    robot = di.load_robot("puma560")
    robot = robot if six else robot.lock(q4=0, q5=0, q6=0)
    return dataclasses.replace(robot, drive=dataclasses.replace(robot.drive, source="motor"))


def run_of(robot: Robot, effects: Mapping[str, float], dry: bool, without: Sequence[str] = ()) -> MujocoPlant:
    """A plant that has made the motion, with the noise of its sensors set."""
    gone = (*without, *(name for name in robot.value_set() if name.startswith("Fc") and not dry))
    values = {name: x for name, x in robot.value_set().items() if name not in gone}
    step = np.full(len(robot.joint_names), 2.0 * np.pi / COUNTS)
    plant = MujocoPlant(robot, values, effects=effects, torque_limits=np.inf, sensors=Sensors(resolution=step))
    motion = Wandering(len(robot.joint_names))
    record(plant, Feedforward(robot, motion, values=values, bandwidth=40.0), every=EVERY)
    effective = np.sqrt(np.mean(plant.truth().tau ** 2, axis=0))
    # A third of a count of noise, so that each seed rounds otherwise.
    plant.sensors = dataclasses.replace(plant.sensors, torque_noise=NOISE * effective, position_noise=0.3 * step)
    return plant


def logs_of(plant: MujocoPlant, seeds: Iterable[int]) -> list[Log]:
    """The run as logged with these seeds."""
    return [measure(plant, seed=seed, every=EVERY, kinds=("q", "tau"), label=f"seed {seed}") for seed in seeds]


def chosen(fit: di.Fit) -> set[str]:
    """Keys of the groups of which data determines a coefficient or more."""
    groups = fit.selection.groups if fit.selection else ()
    return {one.group for one in groups if one.determined >= 1.0} & {group.key for group in GROUPS}


def recovered(case: Case, robot: Robot, logs: Sequence[Log]) -> list[tuple[str, float, float, float]]:
    """Name, mean, stated standard deviation and true value of each parameter, with the one term given."""
    fits = [
        di.identify(robot, log, terms=case.basic, friction=[case.key], delay=case.delay, velocity_source="position")
        for log in logs
    ]
    rows = []
    for name, value in case.values().items():
        found = [(fit.beta[fit.base.names.index(name)], fit.std[fit.base.names.index(name)]) for fit in fits]
        mean, std = np.mean(found, axis=0)
        rows.append((name, float(mean), float(std), value))
    return rows


def described(case: Case, robot: Robot, logs: Sequence[Log]) -> str:
    """A line of the first table: how far values are off, and in how many logs `auto` finds the group."""
    rows = recovered(case, robot, logs)
    off = [(found / true - 1.0, std / abs(true)) for _, found, std, true in rows]
    worst = max(range(len(off)), key=lambda i: abs(off[i][0]))
    fits = [di.identify(robot, log, delay=case.delay) for log in logs]
    found = [chosen(fit) for fit in fits]
    own = {group.key for group in GROUPS} & {case.group}
    hits = f"{sum(bool(own & one) for one in found)} of {len(logs)}" if own else "not among the groups"
    others = Counter(key for one in found for key in one - own)
    beside = ", ".join(f"{key} {n}" for key, n in others.most_common()) or "none"
    errors = [fit.selection.errors for fit in fits]
    basic, auto = (100.0 * np.mean([e[name] for e in errors]) for name in ("basic", "averaged"))
    typical = 100.0 * np.sqrt(np.mean([share**2 for share, _ in off]))
    return (
        f"| `{case.name}` | {case.value:g} | {typical:.1f} % | {rows[worst][0]} {100 * off[worst][0]:+.1f} % "
        f"(± {100 * off[worst][1]:.1f}) | {hits} | {beside} | {basic:.2f} -> {auto:.2f} % |"
    )


def false_positives(robot: Robot, dry: bool, seeds: int) -> list[str]:
    """Lines of the second table: how often a group is reported on a machine that has no effect."""
    found = [di.identify(robot, log) for log in logs_of(run_of(robot, {}, dry), range(seeds))]
    counts = Counter(key for fit in found for key in chosen(fit))
    scales = Counter({group.key: 0.0 for group in GROUPS})
    for fit in found:
        for one in fit.selection.groups:
            scales[one.group] += one.scale / seeds
    lines = [
        f"| `{group.key}` | {counts[group.key]} of {seeds} | {100 * scales[group.key]:.2f} % |" for group in GROUPS
    ]
    return [*lines, f"| any | {sum(bool(chosen(fit)) for fit in found)} of {seeds} | |"]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--effects", default=None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--false-seeds", type=int, default=50)
    parser.add_argument("--dry", action="store_true")
    arguments = parser.parse_args()
    robot, began = machine(), time.perf_counter()
    wanted = None if arguments.effects is None else arguments.effects.split(",")
    print(f"\n{'Coulomb' if arguments.dry else 'Viscous'} friction beside the effect\n")
    print("| effect | value | typical error | worst | found by auto | beside it | basic -> auto |\n|" + "---|" * 7)
    for case in CASES:
        if wanted is None or case.effect[0] in wanted:
            own = machine(case.six)
            plant = run_of(own, case.values(), arguments.dry or case.coulomb, case.without)
            print(described(case, own, logs_of(plant, range(arguments.seeds))), flush=True)
    if arguments.false_seeds:
        print("\nNo effect at all\n\n| group | determined | mean scale |\n|---|---|---|")
        print("\n".join(false_positives(robot, arguments.dry, arguments.false_seeds)), flush=True)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
