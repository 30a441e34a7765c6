"""Payloads: the load of real UR10e logs against its scales, and simulated bodies against the truth.

    python benchmarks/payload.py [--seeds 10] [--robots puma560,sr400] [--write docs/reference/payload.md]

The UR10e is identified with defaults from unloaded logs at DYNIDENT_DATA, or in ../shared/data (skipped where that is
absent), and its load from the loaded log alone and from the pair. Simulated robots carry a body with all ten numbers on
the MuJoCo plant, whose controller does not know of it: one run without and one with the body, logged with as many seeds
of torque noise and encoder rounding as asked for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from benchmarks.friction import DATA, UR10E, UR10E_GAINS
from benchmarks.recovery import COUNTS, DURATION, EVERY, NOISE, QUICK, machine

import dynident as di
from dynident.arrays import Array
from dynident.payload.quantities import NUMBER_NAMES, classical_numbers
from dynident.plant import Payload
from dynident.plant.controllers import Feedforward, Motion
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.recording import measure, record
from dynident.plant.sensors import Sensors
from dynident.robot.model import Robot

SEEDS = 10
MASS = 2.805  # [kg] of the UR10e's load, as its source states
BODY = Payload(2.5, (0.03, -0.02, 0.08), (0.02, 0.002, -0.003, 0.025, 0.001, 0.015))
# The load of Gautier, Khalil, Restrepo 1995, from its printed values about the tool; ZZ is 0.065 there, and rounded
# values belong to no body.
PAPER2 = {"XX": 0.454, "XY": -0.02, "XZ": -0.09, "YY": 0.445, "YZ": -0.115, "ZZ": 0.07}
PAPER2 |= {"MX": 0.48, "MY": 0.6, "MZ": 2.0, "M": 10.9}
KNOWN = di.payload.Payload.from_standard(PAPER2)
BODIES = {
    "puma560": BODY,
    "ur10e": BODY,
    "panda": BODY,
    "sr400": Payload(KNOWN.mass, tuple(KNOWN.com), tuple(KNOWN.inertia)),
}
SAFETY = 0.6  # share of the limits that the motion uses: the rest carries the body
PAIRS = {"exc_50s_14h_{}": "50 s", "exc_20s_{}_0131": "20 s, another month"}
BEGIN, END = "<!-- tables: benchmarks/payload.py -->", "<!-- end of tables -->"


def real() -> Iterator[str]:
    """Lines about the UR10e."""
    yield "| robot from | loaded log | method | mass [kg] | std | off | cx, cy, cz [mm] | friction of the loaded runs |"
    yield "|---|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ur10e.yaml"
        path.write_text(f"base: {DATA / 'ur10e' / 'robot.urdf'}\n{UR10E_GAINS}")
        robot = di.load_robot(path)

    def log(name: str) -> di.Log:
        return di.read_log(DATA / "ur10e" / f"{name}.csv.gz", robot)

    for words, names in (("three logs", UR10E), ("the 50 s log", UR10E[2:])):
        fit = di.identify(robot, [log(name) for name in names])
        for pair, shown in PAIRS.items():
            for joint in (False, True):
                unloaded = [log(pair.format("unloaded"))] if joint else []
                found = di.identify_payload(fit, log(pair.format("loaded")), unloaded=unloaded)
                yield f"| {words} | {shown} | {found.method} | {_real_cells(found)} | {found.session} |"


def _real_cells(found: di.payload.PayloadEstimate) -> str:
    mass = found["mass"]
    if mass.value is None or mass.std is None:
        return "withheld | | | "
    center = ", ".join(_millimetres(found, name) for name in ("cx", "cy", "cz"))
    return f"{mass.value:.3f} | {mass.std:.3f} | {100.0 * (mass.value / MASS - 1.0):+.2f} % | {center}"


def _millimetres(found: di.payload.PayloadEstimate, name: str) -> str:
    one = found[name]
    return "-" if one.value is None or one.std is None else f"{1e3 * one.value:.1f} ± {1e3 * one.std:.1f}"


def simulated(robots: Sequence[str], seeds: int) -> Iterator[str]:
    """Lines about simulated robots."""
    yield "| robot | dry friction | method | mass, rms error | rms off | farthest | beyond 3 | withheld | freed |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in robots:
        robot, body = di.load_robot(name), BODIES[name]
        for dry in (False, True):
            values = machine(robot, dry)
            motion = di.optimize_excitation(
                robot, duration=DURATION, values=values, seed=1, safety=SAFETY, **QUICK
            ).trajectory
            bare, loaded = (_run(robot, values, motion, one) for one in (None, body))
            for method in ("loaded", "joint"):
                found = [_found(robot, bare, loaded, method, seed) for seed in range(seeds)]
                yield f"| {name} | {'yes' if dry else 'no'} | {method} | {_simulated_cells(found, body)} |"


def known_load(seed: int = 0) -> Iterator[str]:
    """Lines about the SR400 with the load of paper 2: the body that was found against two identifications."""
    robot = di.load_robot("sr400")
    values = machine(robot, True)
    motion = di.optimize_excitation(robot, duration=DURATION, values=values, seed=1, safety=SAFETY, **QUICK).trajectory
    plants = [_run(robot, values, motion, body) for body in (None, BODIES["sr400"])]
    bare, loaded = (measure(plant, seed=seed + i, every=EVERY) for i, plant in enumerate(plants))
    fits = [di.identify(robot, log, friction="basic") for log in (bare, loaded)]
    found = di.identify_payload(fits[0], loaded, unloaded=measure(plants[0], seed=seed + 2, every=EVERY))
    yield "| number | true | found | std |"
    yield "|---|---|---|---|"
    for one, x in zip(found.numbers, classical_numbers(BODIES["sr400"].parameters), strict=True):
        shown = "withheld | " if one.value is None or one.std is None else f"{one.value:.4g} | {one.std:.2g}"
        yield f"| {one.name} [{one.unit}] | {x:.4g} | {shown} |"
    compared = di.payload.compare_payload(*fits, found.payload)
    count, changed = len(compared.rows), len(compared.changed)
    yield f"\nOf {count} base parameters identified without and with the load, the load changes {changed};"
    yield f"{100.0 * compared.agreeing:.0f} % of all agree with the body found within two standard deviations."


def _run(robot: Robot, values: dict[str, float], motion: Motion, body: Payload | None) -> MujocoPlant:
    """A plant that has followed the motion; its controller knows the robot, not the body."""
    prismatic = np.array([robot.joints[robot.active[i]].kind == "prismatic" for i in robot.moving])
    step = np.where(prismatic, 1.0, 2.0 * np.pi) / COUNTS
    plant = MujocoPlant(robot, values, sensors=Sensors(resolution=step), payload=body)
    record(plant, Feedforward(robot, motion, values=values), every=EVERY)
    effective = np.sqrt(np.mean(plant.truth().tau ** 2, axis=0))
    plant.sensors = replace(plant.sensors, torque_noise=NOISE * effective, position_noise=0.3 * step)
    return plant


def _found(robot: Robot, bare: MujocoPlant, loaded: MujocoPlant, method: str, seed: int) -> di.payload.PayloadEstimate:
    """Identify the robot, then the body; the pair is logged with noise that the fit has not seen."""
    fit = di.identify(robot, measure(bare, seed=3 * seed, every=EVERY), friction="basic")
    unloaded = [measure(bare, seed=3 * seed + 1, every=EVERY)] if method == "joint" else []
    return di.identify_payload(fit, measure(loaded, seed=3 * seed + 2, every=EVERY), unloaded=unloaded)


def _simulated_cells(found: Sequence[di.payload.PayloadEstimate], body: Payload) -> str:
    truth = classical_numbers(body.parameters)
    off = np.array([_off(one, truth) for one in found])  # (n_seeds, 10)
    masses = [one["mass"].value for one in found if one["mass"].value is not None]
    mass = np.sqrt(np.mean((np.array(masses) / body.mass - 1.0) ** 2))
    farthest = np.nanmax(np.abs(off), axis=0)
    place = int(np.nanargmax(farthest))
    given = np.isfinite(off)
    beyond = f"{np.count_nonzero(np.abs(off[given]) > 3.0)} of {np.count_nonzero(given)}"
    kept = sorted({name for one in found for name in one.withheld}, key=NUMBER_NAMES.index)
    freed = sum(one.session != "none" for one in found)
    rms = np.sqrt(np.mean(off[given] ** 2))
    cells = (f"{100.0 * mass:.2g} %", f"{rms:.2f}", f"{NUMBER_NAMES[place]} {farthest[place]:.1f}", beyond)
    return " | ".join([*cells, ", ".join(kept) or "none", f"{freed} of {len(found)}"])


def _off(found: di.payload.PayloadEstimate, truth: Array) -> list[float]:
    """Errors in stated standard deviations; NaN where a number is withheld."""
    return [
        np.nan if one.value is None or one.std is None else (one.value - x) / one.std
        for one, x in zip(found.numbers, truth, strict=True)
    ]


def _written(path: Path, text: str) -> None:
    """The tables in the place of those that a page has."""
    page = path.read_text()
    head, _, rest = page.partition(BEGIN)
    path.write_text(f"{head}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--robots", default=",".join(BODIES))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page whose tables are replaced")
    arguments = parser.parse_args()
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    tell("### UR10e, 2.805 kg\n")
    if (DATA / "ur10e").exists():
        for line in real():
            tell(line)
    else:
        tell(f"skipped, no data at {DATA / 'ur10e'} (set DYNIDENT_DATA)")
    tell("\n### Simulated bodies\n")
    for line in simulated([name for name in arguments.robots.split(",") if name], arguments.seeds):
        tell(line)
    if "sr400" in arguments.robots:
        tell("\n### SR400 with the load of paper 2\n")
        for line in known_load():
            tell(line)
    if arguments.write:
        _written(arguments.write, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
