"""Coupled friction from velocity steps, as in Gautier, Khalil, Restrepo 1995, section 3 (Fig. 2).

Joints 5 and 6 of the SR400 share friction: motor 6 turns with both. They go at constant velocities, there and back, so
that gravity cancels; the friction of motor 5 jumps by twice Fs6 where joint 6 stands (qm6' = q5'). Replace
`stepped_velocities` with `di.experiments.velocity_friction(plant, joints, velocities=..)` on your own plant.
The whole paper: `dynident papers gautier`.
Run: python examples/sr400_velocity.py
"""

import numpy as np

import dynident as di
from dynident.experiments.friction.fitting import fit_friction
from dynident.papers.gautier.experiments import stepped_velocities
from dynident.report.experiments.friction import section


def figure_2(found: di.experiments.VelocityFriction) -> None:
    """Friction of motor 5 against its velocity while motor 6 turns at 2.4 rad/s, measured and by the model."""
    one = section(found.fits[0], 0, 2.4)
    inside = np.isfinite(one.line)
    line = np.interp(one.velocity, one.line_velocity[inside], one.line[inside])
    print("\nq5' [rad/s]  measured  model [N·m]")
    for v, measured, model in sorted(zip(one.velocity, one.torque, line, strict=True)):
        print(f"{v:11.2f}  {measured:8.3f}  {model:5.3f}")
    for at, height in one.jumps:
        print(f"jump of {height:.3f} N·m at q5' = {at:.2f}")


def one_sign_only(found: di.experiments.VelocityFriction) -> None:
    """What the runs tell in which joints 5 and 6 turn the same way."""
    fit = found.fits[0]
    same = [point for point in fit.points if point.velocity[0] * point.velocity[1] > 0.0]
    alone = fit_friction(fit.group, same)
    print(f"\nq5' q6' > 0 only: rank {alone.rank} of 6, not determined: {', '.join(alone.undetermined)}")


if __name__ == "__main__":
    result = stepped_velocities()
    truth = di.load_robot("sr400").value_set("plant")
    for own in result.estimates:
        print(f"{own.name:5} {own.value:8.4f} +- {own.std:.4f} {own.unit:10} true {truth[own.name]:g}")
    figure_2(result)
    one_sign_only(result)
    print(*result.warnings, sep="\n")
