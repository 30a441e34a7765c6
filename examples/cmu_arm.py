"""The CMU Direct-Drive Arm II of Khosla & Kanade 1987: stages from tip to base, off-line and on-line.

    python examples/cmu_arm.py

First three joints and exact data: what a locked experiment can determine, and what needs all joints to move. Then six
joints
as measured: positions, noisy velocities and torques at 500 Hz, accelerations by the five-point differentiator, two
motions times two sets of initial values as in the paper, and how far the four results lie from the truth.
The whole paper: `dynident papers khosla-kanade`.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.papers.khosla_kanade.experiments import arm_samples, four_experiments, offline_estimate


def three_joints() -> tuple[di.estimate.StagedEstimate, di.estimate.StagedEstimate]:
    """Off-line with joints 1 and 2 locked, and on-line, around the initial values of Table 3."""
    robot = di.load_robot("cmu-dd-arm-3")
    offline = offline_estimate(robot)
    print(offline.notes[0])
    online = di.estimate.sequential_online(robot, arm_samples(robot), "rigid", nominal="table3-initial")
    print(online.table())
    return offline, online


def six_joints() -> dict[tuple[int, str], di.estimate.StagedEstimate]:
    """Two motions times two sets of initial values."""
    found = four_experiments()
    truth = di.base_parameters(di.load_robot("cmu-dd-arm-6"), "rigid").base_values("table4-6")
    apart = np.max([np.abs(one.beta / truth - 1.0) for one in found.values()], axis=0)
    big = np.abs(truth) > 0.02
    print(f"four estimates within {100 * apart[big].max():.2g} % of the {big.sum()} parameters above 0.02 (paper: 5 %)")
    print(f"{np.sum(apart < 0.05)} of {len(truth)} parameters, however small, within 5 %")
    return found


if __name__ == "__main__":
    three_joints()
    six_joints()
