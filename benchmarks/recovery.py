"""Recovery: every bundled robot simulated with its own values, identified with defaults, compared with the truth.

    python benchmarks/recovery.py [--seeds 20] [--robots puma560,sr400] [--write docs/reference/recovery.md]

For each robot a motion is optimized, run once on the MuJoCo plant, and logged again with as many seeds of torque
noise and encoder rounding as asked for; each log is identified with defaults. A second motion, never used, evaluates
the torque. All of it twice: with viscous friction only, so that the model can describe the physics exactly, and with
the dry friction of the robot, which sticks.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.plant.controllers import Feedforward, Motion
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.recording import measure, record
from dynident.plant.sensors import Sensors
from dynident.robot.model import Robot

SEEDS = 20
NOISE = 0.01  # of each joint's effective torque
COUNTS = 2**17  # encoder counts per turn, or meter
EVERY = 2  # samples of the controller (1 kHz) for one of the log
DURATION = 10.0  # [s]
MATTERS = 0.01  # a parameter matters when its share of the effective torque of some joint is above this
NORMAL = 1.96  # standard deviations: 95 % of normal errors lie within
QUICK = {"starts": 4, "kicks": 0, "iterations": 20}  # a fair motion will do; the best takes longer
BEGIN, END = "<!-- table: benchmarks/recovery.py -->", "<!-- end of table -->"


@dataclass(frozen=True)
class Recovery:
    """How well a robot was recovered.

    Attributes:
        robot: Its name.
        dry: Whether the machine had dry friction.
        n, rank: Base parameters, and those that every log determined.
        worst: Name of the parameter that matters with the largest relative error, rms over seeds.
        worst_error: That error.
        median_error: Median of those errors over the parameters that matter.
        farthest: Name of the parameter that is farthest off in stated standard deviations, on average over seeds.
        farthest_off: How far that is, rms over seeds.
        torque: Error of the predicted torque on a second motion against the noise-free one, of its norm; mean of seeds.
        coverage: Share of errors within 1.96 stated standard deviations, over parameters and seeds.
        ratio: Root of the mean squared error in stated standard deviations.
        bias: The part of `ratio` that is the same in all seeds.
        delay: Largest delay that identification believed in [s]; the truth is none.
        loop_gap: [rad or m].
        seconds: Time for one identification [s].
    """

    robot: str
    dry: bool
    n: int
    rank: int
    worst: str
    worst_error: float
    median_error: float
    farthest: str
    farthest_off: float
    torque: float
    coverage: float
    ratio: float
    bias: float
    delay: float
    loop_gap: float
    seconds: float


def machine(robot: Robot, dry: bool) -> Mapping[str, float]:
    """What the machine really is: the robot's `plant` values, with or without dry friction."""
    values = robot.value_set("plant" if "plant" in robot.values else None)
    return values if dry else {name: x for name, x in values.items() if not name.startswith("Fc")}


def exciting_motion(robot: Robot, values: Mapping[str, float], seed: int) -> Motion:
    """A motion that excites all parameters."""
    return di.optimize_excitation(robot, duration=DURATION, values=values, seed=seed, **QUICK).trajectory


def run_of(robot: Robot, values: Mapping[str, float], motion: Motion) -> MujocoPlant:
    """A plant that has followed the motion, its controller knowing the machine."""
    prismatic = np.array([robot.joints[robot.active[i]].kind == "prismatic" for i in robot.moving])
    step = np.where(prismatic, 1.0, 2.0 * np.pi) / COUNTS
    plant = MujocoPlant(robot, values, sensors=Sensors(resolution=step))
    record(plant, Feedforward(robot, motion, values=values), every=EVERY)
    effective = np.sqrt(np.mean(plant.truth().tau ** 2, axis=0))
    # A third of a count of noise, so that each seed rounds otherwise.
    plant.sensors = replace(plant.sensors, torque_noise=NOISE * effective, position_noise=0.3 * step)
    return plant


def torque_error(robot: Robot, plant: MujocoPlant, estimates: Sequence[di.Fit]) -> float:
    """Mean relative error of the torque that estimates predict for a run, away from reversals.

    The reference is the plant's own torque without noise. Where something turns round or rests, dry friction is
    whatever is needed and nobody can predict it; those samples are left out of the comparison.
    """
    truth = plant.truth()
    ddq = np.gradient(truth.dq, truth.time, axis=0)
    velocities = truth.dq @ np.array([e.velocity @ robot.coupling for e in robot.elements]).T
    slides = (np.sign(velocities) == np.sign(np.roll(velocities, 1, axis=0))) & (np.abs(velocities) > 0.05)
    steady = np.minimum.reduce([np.roll(slides.all(axis=1), k) for k in range(-3, 4)])
    steady[[*range(4), *range(-4, 0)]] = False
    state = (truth.q[steady], truth.dq[steady], ddq[steady])
    errors = []
    for one in estimates:
        found = one.base.regressor(*state) @ one.beta
        errors.append(np.linalg.norm(found - truth.tau[steady]) / np.linalg.norm(truth.tau[steady]))
    return float(np.mean(errors))


def shares(base: di.BaseParameters, truth: Array, plant: MujocoPlant) -> Array:
    """(n,) largest share that each parameter has in the effective torque of a joint."""
    run = plant.truth()
    rows = slice(None, None, 20)
    W = base.regressor(run.q[rows], run.dq[rows], np.gradient(run.dq, run.time, axis=0)[rows])
    effective = np.sqrt(np.mean(run.tau**2, axis=0))
    return np.asarray((np.sqrt(np.mean(W**2, axis=0)) * np.abs(truth) / effective[:, None]).max(axis=0))


def recover(name: str, dry: bool, seeds: Sequence[int]) -> Recovery:
    """Simulate, identify with every seed, compare."""
    robot = di.load_robot(name)
    values = machine(robot, dry)
    first, second = (run_of(robot, values, exciting_motion(robot, values, seed)) for seed in (1, 2))
    began = time.perf_counter()
    found = [di.identify(robot, measure(first, seed=seed, every=EVERY), friction="basic") for seed in seeds]
    seconds = (time.perf_counter() - began) / len(seeds)
    base = found[0].base
    truth = base.base_values(values)
    errors = np.array([one.beta for one in found]) - truth
    off = errors / np.array([one.std for one in found])
    typical = np.sqrt(np.mean(off**2, axis=0))
    relative = np.sqrt(np.mean(errors**2, axis=0)) / np.maximum(np.abs(truth), 1e-300)
    matters = shares(base, truth, first) > MATTERS
    worst = int(np.argmax(np.where(matters, relative, 0.0)))
    return Recovery(
        robot=name,
        dry=dry,
        n=base.n,
        rank=min(one.rank for one in found),
        worst=base.names[worst],
        worst_error=float(relative[worst]),
        median_error=float(np.median(relative[matters])),
        farthest=base.names[int(np.argmax(typical))],
        farthest_off=float(typical.max()),
        torque=torque_error(robot, second, found),
        coverage=float(np.mean(np.abs(off) < NORMAL)),
        ratio=float(np.sqrt(np.mean(off**2))),
        bias=float(np.sqrt(np.mean(np.mean(off, axis=0) ** 2))),
        delay=float(max((one.signals.delay for one in found), key=abs)),
        loop_gap=first.loop_gap,
        seconds=seconds,
    )


def as_table(results: Sequence[Recovery]) -> str:
    """The results as Markdown."""
    head = "robot | base, rank | worst that matters | median | torque | within 1.96 | rms | bias | farthest | delay"
    lines = [f"| {head} |", "|---|" + "---|" * head.count("|")]
    for one in results:
        cells = [
            one.robot,
            f"{one.n}, {one.rank}",
            f"{one.worst} {100 * one.worst_error:.2g} %",
            f"{100 * one.median_error:.2g} %",
            f"{100 * one.torque:.2g} %",
            f"{100 * one.coverage:.0f} %",
            f"{one.ratio:.2f}",
            f"{one.bias:.2f}",
            f"{one.farthest} {one.farthest_off:.1f}",
            f"{1e3 * one.delay:.1f} ms" if one.delay else "none",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def as_page(results: Sequence[Recovery]) -> str:
    """Both tables, one under the other."""
    parts = []
    for dry, title in ((False, "Physics exactly in the model: viscous friction only"), (True, "With dry friction")):
        own = [one for one in results if one.dry is dry]
        if own:
            parts.append(f"### {title}\n\n{as_table(own)}")
    return "\n\n".join(parts)


def has_dry_friction(name: str) -> bool:
    """Whether a robot's own values have any."""
    return any(x for key, x in machine(di.load_robot(name), True).items() if key.startswith("Fc"))


def write(page: str, path: Path) -> None:
    """Put the tables into a document, between its marks."""
    text = path.read_text()
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(f"{text[:before]}\n\n{page}\n\n{text[after:]}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--robots", default=",".join(di.bundled_names()))
    parser.add_argument("--write", type=Path, metavar="PAGE")
    given = parser.parse_args(arguments)
    results = []
    for name in given.robots.split(","):
        for dry in (False, True) if has_dry_friction(name) else (False,):
            results.append(recover(name, dry, range(given.seeds)))
            print(as_table(results[-1:]).splitlines()[-1], f"{results[-1].seconds:.2f} s", flush=True)
    page = as_page(results)
    print(f"\n{page}")
    if given.write:
        write(page, given.write)


if __name__ == "__main__":
    main()
