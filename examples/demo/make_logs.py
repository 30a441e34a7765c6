"""Makes the motions and the logs of the demo with dynident itself, on the MuJoCo plant.

    .venv/bin/python examples/demo/make_logs.py [--new-motions]

The plant is not what the arm's description promises: it has the values of truth.yaml. Its controller knows arm.yaml.
Two exciting motions are there for training, and every joint swinging at its own pace for validation; the second
exciting motion is run once more with a load on the tool. Logs have what a controller gives: irregular stamps, positions
in counts of the encoders, noisy currents that are stamped late.

The exciting motions are kept in their files, so that the logs come out the same with every version of the search; with
--new-motions they are searched again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dynident as di
from dynident.plant import Payload

HERE = Path(__file__).parent
LIMITS = {"floor": 0.0, "clearance": 0.05, "acceleration": 4.0, "safety": 0.85}  # [m], [m], [rad/s²]; room for the load
LOGGED = {"rate": 100.0, "noise": 0.02, "delay": 0.004, "jitter": 0.002}  # [Hz], share of the torque, [s], [s]
LOAD = Payload(2.0, (0.01, 0.02, 0.06), (0.004, 0.0, 0.0, 0.004, 0.0, 0.002))  # in the tool frame


def wandering(robot: di.Robot) -> di.trajectories.Sinusoid:
    """Another kind of motion, about another pose: tones that never meet again."""
    middle = np.array([0.3, -1.3, 1.2, -0.6, 0.8, 0.5])  # [rad]
    swing = np.array([2.4, 0.9, 1.4, 2.0, 2.4, 2.8])  # [rad]
    pace = np.array([0.17, 0.23, 0.29, 0.37, 0.31, 0.33])  # [Hz]
    start = middle - 0.5 * swing
    return di.trajectories.Sinusoid(start=start, amplitude=swing, frequency=pace, length=15.0, joints=robot.joint_names)


def motions(robot: di.Robot) -> dict[str, di.Trajectory]:
    """The motions by name, searched again."""
    series = {"duration": 20.0, "frequency": 0.1, "harmonics": 10, **LIMITS}
    exciting = {f"fourier_{seed}": di.optimize_excitation(robot, seed=seed, **series).trajectory for seed in (1, 2)}
    return {**exciting, "wandering": wandering(robot)}


def main() -> None:
    """Write the logs, and the motions if asked to."""
    robot = di.load_robot(HERE / "truth.yaml")
    if "--new-motions" in sys.argv[1:]:
        for name, motion in motions(robot).items():
            di.trajectories.save_trajectory(motion, HERE / f"{name}.yaml")
    found = {name: di.load_trajectory(HERE / f"{name}.yaml") for name in ("fourier_1", "fourier_2", "wandering")}
    runs = [*((name, name, None) for name in found), ("payload", "fourier_2", LOAD)]
    for seed, (name, motion_name, load) in enumerate(runs):
        run = di.simulate(robot, found[motion_name], values="truth", payload=load, seed=seed, **LOGGED)
        di.write_log(run.log, HERE / f"{name}.csv.gz")
        print(f"{name}.csv.gz: {len(run.log)} samples, tracked to {run.tracking.max():.2g} rad", *run.warnings)


if __name__ == "__main__":
    main()
