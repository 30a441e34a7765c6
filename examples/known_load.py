"""A known load twice: as a test of an identification, and as the yardstick of the drive gains.

The robot is identified without and with a load whose parameters were weighed and measured; what the load must change
stands beside what the second identification found. Then drive gains are found from the same runs with only its mass.
Run: python examples/known_load.py
"""

import numpy as np
from sr400_two_step import NOISE, TERMS, quintic, true_values, two_steps

import dynident as di

# Table 3 of Gautier, Khalil, Restrepo 1995, about the origin of frame 6; Payload(mass, com, inertia) is about the
# center of mass.
LOAD = di.payload.Payload.from_standard(
    {"XX": 0.454, "XY": -0.02, "XZ": -0.09, "YY": 0.445, "YZ": -0.115, "ZZ": 0.065}
    | {"MX": 0.48, "MY": 0.6, "MZ": 2.0, "M": 10.9}
)
GAINS = np.array([94.0, -160.0, -14.9, -16.0, 16.1, 160.0])  # [N·m/V] true gains of motors 1, 2, 4, 5, 6, 7


def loaded_values(robot: di.Robot, unloaded: dict[str, float]) -> dict[str, float]:
    """True base parameters with the load."""
    base = di.base_parameters(robot, TERMS)
    change = dict(zip(base.names, di.payload.payload_change(base, LOAD), strict=True))
    values = {name: unloaded.get(name, 0.0) + change[name] for name in base.names}
    return {name: value for name, value in values.items() if abs(value) > 1e-12}


def side_by_side(seed: int = 0, **options) -> di.payload.PayloadComparison:
    """Identify without and with the load, from different motions, and compare."""
    robot = di.load_robot("sr400")
    truth = true_values(robot)
    unloaded = two_steps(truth, seed, **options)
    loaded = two_steps(loaded_values(robot, truth), seed + 1, **options)
    return di.payload.compare_payload(unloaded, loaded, LOAD)


def drive_gains(segments: int = 60) -> di.payload.DriveGains:
    """Gains from signals of the drives, [V], with the mass of the load as the only known value."""
    robot = di.load_robot("sr400")
    base, truth, runs = di.base_parameters(robot, TERMS), true_values(robot), []
    for seed, values in enumerate((truth, loaded_values(robot, truth))):
        q, dq, ddq = quintic(seed, segments)
        tau = di.inverse_dynamics(robot, q, dq, ddq, TERMS, base.standard_values(values, "regrouped zero"))
        noise = np.random.default_rng(seed).normal(size=tau.shape) * list(NOISE.values())
        runs.append(di.accumulate(robot, q, dq, ddq, (tau + noise) / GAINS, TERMS))
    return di.identify_drive_gains(robot, *runs, {"M": 10.9})


if __name__ == "__main__":
    found = side_by_side()
    print(found.table(), "\n")
    print(f"{100 * found.agreeing:.0f} % of the parameters agree within two deviations of the difference\n")
    print(drive_gains().table())
