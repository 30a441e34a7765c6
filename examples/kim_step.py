"""Step voltage (Kim 1990): inertia and friction of the Minnesota arm from the answer of one joint at a time.

    python examples/kim_step.py

One motor gets a step of voltage, the others are held. Only time and position are recorded: two voltages tell the
inertia that the motor feels, damping and Coulomb friction; several locked poses tell the combinations of inertial
parameters.
The machine is simulated, with 16-bit encoders. To adapt it, give your own `Plant` to the bench, and your motors' torque
constant and resistance, or `dynident step ROBOT --from LOG..` your recorded steps.
The whole paper: `dynident papers kim`.
"""

from __future__ import annotations

import dynident as di
from dynident.papers.kim.experiments import step_bench
from dynident.papers.kim.printed import GAINS, VOLTAGES
from dynident.plant import Motors


def main() -> di.experiments.StepResult:
    """Print what the steps tell, beside what the simulated machine has."""
    motors = Motors(torque_constant=list(GAINS), resistance=1.0)  # [N·m/A], [Ohm]: K = Kt/Ra in N·m/V
    bench = step_bench(di.load_robot("minnesota"), motors)
    found = di.experiments.step_test(bench, motors, di.experiments.StepOptions(voltages=VOLTAGES))
    print(found.beside("plant").table())
    for note in (*found.notes, *found.warnings):
        print(note)
    return found


if __name__ == "__main__":
    main()
