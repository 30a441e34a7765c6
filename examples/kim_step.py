"""Step voltage (Kim 1990): inertia and friction of the Minnesota arm from the answer of one joint at a time.

    python examples/kim_step.py

One motor gets a step of voltage, the others are held. Only time and position are recorded: two voltages tell the
inertia that the motor feels, damping and Coulomb friction; several locked poses tell the combinations of inertial
parameters.
The machine is simulated, with 16-bit encoders. To adapt it, give your own `Plant` to the bench, and your motors' torque
constant and resistance, or `dynident step ROBOT --from LOG..` your recorded steps.
"""

from __future__ import annotations

import math

import dynident as di
from dynident.experiments.bench import Bench
from dynident.plant import Motors, MujocoPlant, Sensors

VOLTS = {"joint1": (0.8, 0.5), "joint2": (0.8, 0.4), "joint3": (0.4, 0.2)}  # [V]


def main() -> di.experiments.StepResult:
    """Print what the steps tell, beside what the simulated machine has."""
    robot = di.load_robot("minnesota")
    motors = Motors(torque_constant=[11.8, 7.8, 5.8], resistance=1.0)  # [N·m/A], [Ohm]: K = Kt/Ra in N·m/V
    sensors = Sensors(resolution=2.0 * math.pi / 65536)
    bench = Bench(MujocoPlant(robot, "plant", sample_time=2.4e-3, motors=motors, sensors=sensors))
    found = di.experiments.step_test(bench, motors, di.experiments.StepOptions(voltages=VOLTS))
    print(found.beside("plant").table())
    for note in (*found.notes, *found.warnings):
        print(note)
    return found


if __name__ == "__main__":
    main()
