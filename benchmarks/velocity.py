"""Friction at constant velocities: what it gets on simulated machines and real logs, and what it misses.

    python benchmarks/velocity.py [--part sr400|ur10e|logs] [--seeds 1]

sr400: the six coupled parameters of motors 5 and 6 (Gautier, Khalil, Restrepo 1995, eq. 8) with 16-bit positions and
0.6 N·m of noise, the jumps of Fig. 2, and what subsets of the runs leave open. ur10e: joint 2 or 5 of a machine with
one more effect each. logs: the UR10e's joints moving alone, gravity from a fit of other logs, where the data is there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dynident as di
from dynident.experiments.friction.fitting import VelocityFit, fit_friction
from dynident.experiments.friction.points import Point
from dynident.plant import Breakaway, MujocoPlant, Sensors
from dynident.report.experiments.friction import section

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[2] / "shared" / "data"))
NOISE = np.array([20.0, 20.0, 0.6, 0.6, 0.6, 20.0])  # [N·m]
CASES = {  # joint, effects, breakaway
    "nothing else": ("q2", {}, None),
    "stop0.3_5 = 1 N·m": ("q5", {"stop0.3_5": 1.0}, None),
    "stribeck0.2_5 = 1.5 N·m": ("q5", {"stribeck0.2_5": 1.5}, None),
    "quadratic_5 = 0.5 N·m·s²/rad²": ("q5", {"quadratic_5": 0.5}, None),
    "load_2 = 0.1": ("q2", {"load_2": 0.1}, None),
    "ripple30c_5 = 0.5 N·m": ("q5", {"ripple30c_5": 0.5}, None),
    "breakaway 1.5 below 0.02 rad/s": ("q5", {}, Breakaway(1.5)),
}


def sr400(seeds: int) -> None:
    robot = di.load_robot("sr400")
    true = robot.value_set("plant")
    print(
        "| seed | Fv5 | Fc5 | Fv6 | Fc6 | Fvm6 | Fcm6 | jump at qm6' = 2.4 | jump at q5' = -3 | ratio |\n"
        + "|---" * 10
        + "|"
    )
    names = ("Fv5", "Fc5", "Fv6", "Fc6", "Fvm6", "Fcm6")
    print(f"| true | {' | '.join(f'{true[name]:g}' for name in names)} | 0.8 | 0.8 | 1 |")
    for seed in range(seeds):
        sensors = Sensors(resolution=2.0 * np.pi / 2**16, torque_noise=NOISE)
        plant = MujocoPlant(robot, "plant", sensors=sensors, seed=1000 * seed)
        found = di.experiments.velocity_friction(
            plant, ["q5", "q6"], velocities={"q5": [1, 2, 3], "q6": [0.8, 1.6, 2.4, 3.6]}
        )
        fit = found.fits[0]
        cells = [f"{found[name].value:.4f} ± {found[name].std:.4f}" for name in names]
        cells += [f"{abs(_jump(fit, row, level)):.3f}" for row, level in ((0, 2.4), (1, -3.0))]
        print(f"| {seed} | {' | '.join(cells)} | {fit.misfit.ratio:.2f} |")
    print(f"\n{len(fit.points)} runs; left out before: {'; '.join(found.notes) or 'none'}\n")
    _ranks(fit)


def _jump(fit: VelocityFit, row: int, level: float) -> float:
    return {round(at, 3): height for at, height in section(fit, row, level).jumps}[level]


def _ranks(fit: VelocityFit) -> None:
    def motors(one: Point) -> np.ndarray:
        return np.abs(fit.group.coupling @ one.velocity)

    def product(one: Point) -> float:
        return float(one.velocity[0] * one.velocity[1])

    parts: dict[str, Callable[[Point], bool]] = {
        "all": lambda one: True,
        "qm6' = 2.4, q5' q6' > 0": lambda one: abs(motors(one)[1] - 2.4) < 0.05 and product(one) > 0.0,
        "qm6' = 2.4, q5' q6' < 0": lambda one: abs(motors(one)[1] - 2.4) < 0.05 and product(one) < 0.0,
        "qm6' = 2.4, both signs": lambda one: abs(motors(one)[1] - 2.4) < 0.05,
        "every q5' q6' > 0": lambda one: product(one) > 0.0,
        "every q5' q6' < 0": lambda one: product(one) < 0.0,
    }
    print("| runs | rank of 6 | not determined |\n|---|---|---|")
    for name, keep in parts.items():
        own = fit_friction(fit.group, [one for one in fit.points if keep(one)])
        print(f"| {name} | {own.rank} | {', '.join(own.undetermined) or 'none'} |")


def ur10e() -> None:
    print(
        "| effect beside Fv, Fc | joint | Fv (true) | Fc (true) | residual / scatter of a point | what is reported |\n"
        + "|---" * 6
        + "|"
    )
    for name, (joint, effects, breakaway) in CASES.items():
        robot = di.load_robot("ur10e")
        held = {"q1": 0.0, "q2": -1.57, "q3": 0.0, "q4": 0.0, "q5": 0.0, "q6": 0.0}
        robot = robot.lock(**{key: value for key, value in held.items() if key != joint})
        sensors = Sensors(resolution=2.0 * np.pi / 2**17, torque_noise=0.5)
        plant = MujocoPlant(robot, "plant", sample_time=2e-3, sensors=sensors, effects=effects, breakaway=breakaway)
        found = di.experiments.velocity_friction(plant, [joint], velocities=[0.03, 0.1, 0.25, 0.5, 1.0, 1.8])
        number, fit = joint[1:], found.fits[0]
        values = [
            f"{found[s + number].value:.3f} ± {found[s + number].std:.3f} ({robot.value_set()[s + number]:g})"
            for s in ("Fv", "Fc")
        ]
        reported = [one.split(": ", 1)[1] for one in found.warnings] or ["nothing"]
        missed = f"{fit.misfit.rms[0]:.3f} / {fit.misfit.scatter[0]:.3f} N·m"
        print(f"| {name} | {joint} | {' | '.join(values)} | {missed} | {'; '.join(reported)} |")


def logs() -> None:
    folder = DATA / "ur10e"
    if not folder.exists():
        print(f"real logs not found at {DATA}; set DYNIDENT_DATA")
        return
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ur10e.yaml"
        path.write_text(f"base: {folder / 'robot.urdf'}\ndrive_gains: [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]\n")
        robot = di.load_robot(path)
    train = [di.read_log(folder / f"{name}.csv.gz", robot) for name in ("exc_30s_12h", "exc_40s_12h")]
    fit = di.identify(robot, train, friction="basic")
    runs = [di.read_log(folder / f"single_joint_{j}.csv.gz", robot) for j in range(1, 7)]
    found = di.experiments.velocity_friction_from_logs(robot, runs, fit=fit)
    print(
        "| joint | Fv | Fv of the fit | Fc | Fc of the fit | Fo | residual / scatter of a point |\n" + "|---" * 7 + "|"
    )
    for j, own in enumerate(found.fits, start=1):
        cells = [f"{found[s + str(j)].value:.2f} ± {found[s + str(j)].std:.2f}" for s in ("Fv", "Fc", "Fo")]
        missed = f"{own.misfit.rms[0]:.3f} / {own.misfit.scatter[0]:.3f} N·m"
        print(f"| {j} | {cells[0]} | {fit[f'Fv{j}']:.2f} | {cells[1]} | {fit[f'Fc{j}']:.2f} | {cells[2]} | {missed} |")
    print("", *found.warnings, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("sr400", "ur10e", "logs"), default=None)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    for name, part in (("sr400", lambda: sr400(options.seeds)), ("ur10e", ur10e), ("logs", logs)):
        if options.part in (None, name):
            print(f"\n{name}\n")
            part()


if __name__ == "__main__":
    main()
