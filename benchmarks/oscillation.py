"""What natural oscillations achieve: `python benchmarks/oscillation.py [search|alone|paper|sampling|ur10e]`.

Prints the tables of docs/reference/oscillate.md. Descriptions are off by up to a fifth, parameter by parameter.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import dynident as di
from dynident.errors import DynidentError
from dynident.experiments.bench import Bench
from dynident.experiments.options import OscillationOptions
from dynident.experiments.oscillation.gravity_stage import run_gravity_stage
from dynident.experiments.oscillation.inertia_stage import run_inertia_stage
from dynident.experiments.oscillation.model import swing_model
from dynident.experiments.oscillation.modes import counted_periods, fit_modes
from dynident.experiments.oscillation.procedure import creep, random_walk
from dynident.experiments.oscillation.swings import NaturalControl
from dynident.papers.jamisola.experiments import count_periods
from dynident.papers.jamisola.model import paper_model
from dynident.papers.jamisola.printed import KP, SAMPLE_TIME
from dynident.plant import MujocoPlant, Sensors

BITS_16 = 2.0 * np.pi / 2**16


def doubtful(robot: di.Robot, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {name: value * rng.uniform(0.8, 1.2) for name, value in robot.value_set("plant").items()}


def errors(found, model) -> str:
    true = np.array(model.true_values(found.groups, "plant"))
    known = np.abs(true) > 0.0
    worst = np.abs(found.values - true)[known] / np.abs(true[known])
    share = np.abs(found.values - true)[known] / found.std[known]
    swings = len(found.steps)
    return f"worst error {100 * worst.max():.4f} %, at most {share.max():.1f} standard deviations, {swings} swings"


def search() -> None:
    for links in (1, 2, 3):
        robot = di.load_robot(f"pendulum-{links}")
        for name, resolution in (("exact", 0.0), ("16 bits", BITS_16)):
            model = swing_model(robot, doubtful(robot, links))
            bench = Bench(
                MujocoPlant(robot, "plant", sample_time=0.004, step=0.002, sensors=Sensors(resolution=resolution))
            )
            begin = time.process_time()
            found = run_gravity_stage(bench, model)
            print(f"{links} links, {name}, gravity: {errors(found, model)}, {time.process_time() - begin:.1f} s")
            begin = time.process_time()
            other = run_inertia_stage(bench, model, weights=found)
            print(f"{links} links, {name}, inertia: {errors(other, model)}, {time.process_time() - begin:.1f} s")
    for links in (1, 2):
        robot = di.load_robot(f"pendulum-{links}")
        model = swing_model(robot, doubtful(robot, links))
        for how in (creep, random_walk):
            bench = Bench(MujocoPlant(robot, "plant", sample_time=0.005, step=0.005))
            begin = time.process_time()
            found = how(bench, model)
            print(f"{links} links, {how.__name__}: {errors(found, model)}, {time.process_time() - begin:.1f} s")
    robot = di.load_robot("pendulum-2")
    model = swing_model(robot)
    for degrees in (0.3, 5.0, 15.0):
        bench = Bench(MujocoPlant(robot, "plant", sample_time=0.005, step=0.005))
        options = OscillationOptions(amplitude=np.radians(degrees), reach=np.radians(80.0), rounds=1)
        try:
            print(f"2 links, starts of {degrees:g} deg: {errors(run_gravity_stage(bench, model, options), model)}")
        except DynidentError as error:
            print(f"2 links, starts of {degrees:g} deg: {error}")
    three_set_points()


def three_set_points() -> None:
    """The four lumped inertias of three links, as in eq. (25)."""
    robot = di.load_robot("pendulum-3")
    model = paper_model(robot)
    points = [np.zeros(3), np.array([0.0, 1.2, 0.0]), np.array([0.0, 0.0, 1.2])]
    for chosen in (points, points[:1]):
        bench = Bench(MujocoPlant(robot, "plant", sample_time=1e-3, step=1e-3))
        found = run_inertia_stage(bench, model, OscillationOptions(amplitude=np.radians(0.1)), set_points=chosen)
        worst, spread = np.abs(found.values - 1.0).max(), found.std.max()
        print(
            f"fm4..fm7, {len(chosen)} set-points: worst error {100 * worst:.4f} %, worst standard deviation "
            f"{100 * spread:.4f} %"
        )


def paper() -> None:
    for links in (1, 2, 3):
        for stage in ("gravity", "inertia"):
            table = count_periods(links, stage)
            print("\n".join(["", table.title, table.table(), *table.facts, *table.warnings]), flush=True)


def sampling() -> None:
    """A torque that acts late feeds the swing: the plain law against the one that looks a sample ahead."""
    robot = di.load_robot("pendulum-1")
    model = swing_model(robot)
    for rate in (1.0 / SAMPLE_TIME, 250.0, 1000.0):
        for ahead in (False, True):
            bench = Bench(MujocoPlant(robot, "plant", sample_time=1.0 / rate))
            control = NaturalControl(model, 1.02 * model.chi, model.chi, ahead=ahead)
            run = bench.run(control, 20.0, np.radians([5.0]), bounds=bench.bounds.within([0.0], 1.4))
            modes = fit_modes(run.time, run.q, 1, 10.0) if run.whole else None
            line = run.why if modes is None else f"periods {counted_periods(run.time, run.q[:, 0]):.3f}"
            growth = "" if modes is None else f", growth {modes.decay[0]:+.2e} 1/s"
            print(f"{rate:7.1f} Hz, {'one sample ahead' if ahead else 'plain law'}: {line}{growth}")
    robot = di.load_robot("pendulum-3")
    bench, model = Bench(MujocoPlant(robot, "plant", sample_time=SAMPLE_TIME, step=SAMPLE_TIME / 8)), paper_model(robot)
    run = bench.run(NaturalControl(model, model.chi, model.chi, KP), 35.0, np.radians([1.0, -1.0, 1.0]))
    print(f"3 links, right inertia: w²/kp - 1 = {fit_modes(run.time, run.q, 1, 3.0).square[0] / KP - 1.0:.1e}")


def alone() -> None:
    """The inertia stage alone finds weights too: the paper's chains from a description that is wrong in both."""
    for links in (1, 2, 3):
        robot = di.load_robot(f"pendulum-{links}")
        for name, resolution in (("exact", 0.0), ("16 bits", BITS_16)):
            model = swing_model(robot, doubtful(robot, links))
            sensors = Sensors(resolution=resolution)
            bench = Bench(MujocoPlant(robot, "plant", sample_time=0.004, step=0.002, sensors=sensors))
            begin = time.process_time()
            found = run_inertia_stage(bench, model)
            line = f"{links} links, {name}, inertia stage alone: {errors(found, model)}"
            print(f"{line}, {time.process_time() - begin:.1f} s", flush=True)


def ur10e() -> None:
    robot = di.load_robot("ur10e").lock(q1=0, q6=0)
    plant = robot.value_set("plant")
    rng = np.random.default_rng(0)
    bare = {name: value for name, value in plant.items() if not name.startswith("F")}
    nominal = {name: value * rng.uniform(0.9, 1.2) for name, value in bare.items()}
    machines = {
        "no friction": bare,
        "2 % of its viscous friction": bare | {n: 0.02 * v for n, v in plant.items() if n.startswith("Fv")},
        "2 % of its dry friction": bare | {n: 0.02 * v for n, v in plant.items() if n.startswith("Fc")},
        "its friction": dict(plant),
    }
    for name, values in machines.items():
        _swing_ur10e(name, robot, values, nominal, OscillationOptions())
    dry = machines["2 % of its dry friction"]
    for degrees in (3.0, 8.0):
        options = OscillationOptions(amplitude=np.radians(degrees), reach=np.radians(40.0), rounds=1)
        _swing_ur10e(f"2 % of its dry friction, starts of {degrees:g} deg", robot, dry, nominal, options)


def _swing_ur10e(name: str, robot: di.Robot, values: dict, nominal: dict, options: OscillationOptions) -> None:
    begin = time.process_time()
    plant = MujocoPlant(robot, values, sample_time=0.004, step=0.002)
    try:
        found = di.experiments.oscillate(plant, nominal=nominal, options=options)
    except DynidentError as error:
        print(f"\nur10e, {name}: {error}", flush=True)
        return
    found = type(found)(found.model, found.stages, "plant", True)
    print(f"\nur10e, {name} ({time.process_time() - begin:.0f} s)\n{found.table()}", flush=True)
    print("\n".join([note for stage in found.stages for note in stage.notes] + found.warnings), flush=True)


if __name__ == "__main__":
    parts = {"search": search, "alone": alone, "paper": paper, "sampling": sampling, "ur10e": ur10e}
    for part in sys.argv[1:] or parts:
        parts[part]()
