"""Weights and inertias of a double pendulum from nothing but its swings (Jamisola, Dadios, Ang).

The description is wrong by up to a fifth. In the gravity stage only the model's weight is sent to the machine: it
swings where the weight is over-estimated, and would fall where it is not. How its frequencies change with the weights
tells where the swing would vanish. In the inertia stage a spring that scales with the model's inertia is added; every
squared frequency equals its gain once the inertia is right. The machine is MuJoCo with an encoder of 16 bits.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.experiments.bench import Bench
from dynident.plant import MujocoPlant, Sensors


def main() -> None:
    """Swing, tell, and compare with the truth."""
    robot = di.load_robot("pendulum-2")
    chance = np.random.default_rng(4)
    nominal = {name: value * chance.uniform(0.8, 1.2) for name, value in robot.value_set("plant").items()}
    sensors = Sensors(resolution=2.0 * np.pi / 2**16)
    bench = Bench(MujocoPlant(robot, "plant", sample_time=0.005, step=0.005, sensors=sensors))
    found = di.experiments.oscillate(bench, nominal=nominal)
    print(
        f"{robot.name}: {len(bench.runs)} swings, none further than {degrees(bench):.1f} degrees from its set-point\n"
    )
    print("parameter  description  found      standard deviation  truth")
    for stage in found.stages:
        true = found.model.true_values(stage.groups, "plant")
        for group, value, std, truth in zip(stage.groups, stage.values, stage.std, true, strict=True):
            print(f"{group.name:9}  {group.nominal:11.5f}  {value:9.5f}  {std:9.5f}  {truth:8.5f} {group.unit}")
    print()
    for stage in found.stages:
        print(f"{stage.name} stage: {'; '.join(stage.notes)}")


def degrees(bench: Bench) -> float:
    """The widest swing from the middle of its run."""
    return max(float(np.degrees(np.ptp(run.q, axis=0).max())) / 2.0 for run in bench.runs)


if __name__ == "__main__":
    main()
