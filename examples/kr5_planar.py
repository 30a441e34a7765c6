"""Joints 2, 3 and 5 of a KUKA KR5 as a planar arm (Abhishek et al.): from a poor motion to parameters to trust.

    python examples/kr5_planar.py

Prints what the paper's trajectory (12) can determine and what it cannot, a better motion, the parameters identified
with friction and noise from logged positions and torques, and why the values in the paper cannot be right.

To adapt it, put your robot file for "kr5-planar" and your log, `di.read_log("run.csv", robot)`, for `record_motion`.
The whole paper: `dynident papers abhishek`.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.papers.abhishek.experiments import (
    NOISE,
    TERMS,
    TIMES,
    fourier,
    fourier_conditions,
    record_motion,
    trajectory_12,
)


def main() -> None:
    """The four steps."""
    robot = di.load_robot("kr5-planar")
    base = di.base_parameters(robot, "rigid")
    poor = trajectory_12()
    print(
        f"Trajectory (12): raw condition {di.excitation(base, *poor).raw_condition:.1f} for {base.n} link parameters."
    )
    moving = [x[1:-1] for x in poor]  # at both ends the arm rests, and friction is whatever holds it
    friction = di.base_parameters(robot, f"{TERMS},Fo")
    quality = di.excitation(friction, *poor)
    said = di.accumulate(robot, *moving, di.inverse_dynamics(robot, *moving, friction.terms), friction.terms).solve()
    print(f"With friction it tells {quality.rank} of {friction.n}; undetermined: {', '.join(said.undetermined)}.")
    print(f"Such as {quality.weak[0]}: moving one way, dry friction looks like an offset.\n")

    conditions = fourier_conditions(robot)
    motion = fourier(robot, TIMES, int(np.argmin(conditions)))
    print(f"Best of 20 Fourier motions: raw condition {min(conditions):.1f}.")
    exact = di.accumulate(robot, *motion, di.inverse_dynamics(robot, *motion, "rigid"), "rigid").solve()
    print(f"Without noise least squares is off by {np.abs(exact.values - base.base_values()).max():.0e}.")
    fit = di.identify(robot, record_motion(robot, TIMES, motion), terms=TERMS)
    print(f"With friction, {NOISE} N·m of noise and positions differentiated:\n{fit.table()}")
    print(f"Worst error of a link's parameter: {np.abs(fit.beta - fit.base.base_values())[: base.n].max():.3f}.\n")

    print("Table 4 of the paper cannot belong to a real arm:")
    for violation in di.identifiability.base_violations(base, robot.base_values["table4"]):
        print(f"  {violation}")


if __name__ == "__main__":
    main()
