"""Sequential estimation around nominal values: the cylindrical robot of Khosla & Kanade 1987, section 4.1.

    python examples/cylindrical_sequential.py

All joints move at once for half a second. The torques are used one after the other, the last joint's first: what reach
tells about link 3 is known when lift is looked at, and so on to turn. Corrections are estimated around the nominal
values of the paper's Table 2. To adapt it, replace `cylindrical_samples` by your own q, dq, ddq and tau.
The whole paper: `dynident papers khosla-kanade`.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.papers.khosla_kanade.experiments import cylindrical_samples


def main() -> di.estimate.StagedEstimate:
    """Identify, and compare with the truth."""
    robot = di.load_robot("cylindrical")
    q, dq, ddq, tau = cylindrical_samples(robot)
    print("torque at sample 10 [N·m, N, N]:", np.round(tau[10], 4))

    found = di.estimate.sequential_online(robot, (q, dq, ddq, tau), "rigid", nominal="nominal")
    print(found.table())
    for note in found.notes:
        print("-", note)

    truth = found.base.base_values("plant")
    print(f"largest error {np.abs(found.beta - truth).max():.1e}")
    return found


if __name__ == "__main__":
    main()
