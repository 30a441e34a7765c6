"""Mass moments of a planar KUKA KR5 from slow motion of one joint at a time (Abhishek et al., section 2.4).

    python examples/kr5_gravity.py

One joint after the other, from the tip inwards, goes slowly there and back on the MuJoCo plant, with friction and 1 N·m
of torque noise as the paper's robot has it. Half the sum of both ways is free of friction, and its Fourier series over
the angle gives the moments. They are put beside those of a least-squares fit, as in Table 5 of the paper; then beside
the numbers that the paper prints, whose disagreement has a shape that tells its cause.

To adapt it, use `di.experiments.gravity_moments` with your own plant, or `di.experiments.gravity_from_logs`. The whole
paper: `dynident papers abhishek`.
"""

from __future__ import annotations

import dynident as di
from dynident.experiments.gravity import compare_moments
from dynident.papers.abhishek.experiments import TERMS, TIMES, fourier, record_motion, slow_sweeps
from dynident.papers.abhishek.printed import TABLE_5


def main() -> None:
    """Sweeps, moments, and both comparisons."""
    robot = di.load_robot("kr5-planar")
    found = slow_sweeps(robot)
    print("Torque = a0 + a1 sin q + b1 cos q of each joint, averaged over both ways [N·m]:")
    print(found.joint_table())
    print(f"\n{found.table()}")
    off = max(abs(one.value - one.true) for one in found.estimates)
    print(f"Largest error {off:.3f} kg·m.\n")

    fit = di.identify(robot, record_motion(robot, TIMES, fourier(robot, TIMES, 1)), terms=TERMS)
    print(f"Beside a least-squares fit of a fast motion:\n{found.compared_to(fit).comparison.table()}\n")

    printed = [{name: (pair[k], 0.0) for name, pair in TABLE_5.items()} for k in (1, 0)]  # gravity, least squares
    for link in compare_moments(found.base, *printed).links:
        print(link.reason or f"Table 5, {' and '.join(link.names)}: both methods agree.")


if __name__ == "__main__":
    main()
