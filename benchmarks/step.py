"""What step voltage tests get: the tables of docs/reference/step.md, on MuJoCo with 16-bit encoders and 2.4 ms samples.

python benchmarks/step.py
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.experiments.bench import Bench, Bounds
from dynident.experiments.step.analysis import step_payload
from dynident.experiments.step.controller import default_motors
from dynident.experiments.step.poses import choose_poses, inertia_base, inertial_terms, obstacle
from dynident.experiments.step.tracking import tracking_check
from dynident.papers.kim import printed
from dynident.plant import Breakaway, Motors, MujocoPlant, Payload, Sensors

GAINS = np.array(printed.GAINS)  # [N·m/V]
VOLTS = {f"q{name[-1]}": pair for name, pair in printed.VOLTAGES.items()}
COUNT = 2.0 * np.pi / printed.COUNTS
SAMPLE = printed.SAMPLE_TIME  # [s]


def free(robot):
    """Velocity limits only: the paper's third joint leaves its range within 1.2 s."""
    limits = Bounds.of(robot)
    return Bounds(np.full_like(limits.lower, -np.inf), np.full_like(limits.upper, np.inf), limits.velocity)


def bench(robot, motors, *, bounds=None, sample=SAMPLE, **how):
    plant = MujocoPlant(robot, "plant", sample_time=sample, motors=motors, sensors=Sensors(resolution=COUNT), **how)
    return Bench(plant, bounds=bounds)


def percent(value, true):
    return f"{100.0 * (value / true - 1.0):+.3g} %"


def one_joint_at_a_time(robot):
    """Others braked at zero (a robot with one joint), and held by control."""
    print("| others | fit | record | joint | Me | B | Tc |\n|---|---|---|---|---|---|---|")
    cases = (("braked", None, 1.2), ("held", None, 1.2), ("braked", 2, 1.2), ("braked", 5, 1.2), ("braked", None, 0.3))
    for others, terms, duration in cases:
        for j in range(3):
            name, gain = f"q{j + 1}", GAINS if others == "held" else GAINS[j]
            rest = {f"q{k + 1}": 0.0 for k in range(3) if k != j}
            own = robot if others == "held" else robot.lock(**rest)
            motors = Motors(gain, 1.0, voltage_limit=10.0)
            poses = np.zeros((1, len(own.moving)))
            volts = {name: VOLTS[name]}
            how = di.experiments.StepOptions(joints=[name], voltages=volts, duration=duration, terms=terms, poses=poses)
            found = di.experiments.step_test(bench(own, motors, bounds=free(own)), motors, how)
            fit = "exact" if terms is None else f"{terms} terms"
            print(
                f"| {others} | {fit} | {duration} s | {j + 1} | {' | '.join(errors(found, found.configurations[0]))} |"
            )


def errors(found, config):
    """Inertia of a configuration, damping and Coulomb friction of its joint, against the truth."""
    numbers = {one.name: one for one in found.beside("plant").estimates}
    j = found.robot.position_names[config.motor].removeprefix("q")
    inertia = percent(config.inertia, found.computed(config, "plant"))
    return [inertia, *(percent(numbers[key].value, numbers[key].true) for key in (f"B{j}", f"Fc{j}"))]


def disturbed(robot, motors):
    print("\n| machine | worst combination | worst B | worst Tc |\n|---|---|---|---|")
    cases = {
        "as above": {},
        "static friction 1.4 times Coulomb": {"breakaway": Breakaway(1.4)},
        "L/R = 2 ms": {"motors": Motors(GAINS, 1.0, 0.0, 2e-3)},
    }
    for name, how in cases.items():
        own = how.pop("motors", motors)
        found = di.experiments.step_test(bench(robot, own, **how), own, di.experiments.StepOptions(voltages=VOLTS))
        print(f"| {name} | {' | '.join(worst(found, kinds) for kinds in (('ZZ', 'XX', 'MX'), ('B',), ('Fc',)))} |")


def worst(found, kinds):
    numbers = [one for one in found.beside("plant").estimates if one.name.startswith(kinds)]
    return max((abs(one.value / one.true - 1.0), percent(one.value, one.true)) for one in numbers if one.true)[1]


def six_combinations(robot, motors):
    found = di.experiments.step_test(
        bench(robot, motors, bounds=free(robot)), motors, di.experiments.StepOptions(voltages=VOLTS)
    )
    print("\n| combination | value | standard deviation | true | error |\n|---|---|---|---|---|")
    for one in found.beside("plant").estimates:
        print(f"| {one.name} | {one.value:.6g} | {one.std:.2g} | {one.true:.6g} | {percent(one.value, one.true)} |")
    print("\n| motion | parameters | largest error [deg] |\n|---|---|---|")
    strong = Motors(GAINS, 1.0)
    for one in tracking_check(bench(robot, strong, sample=4e-3), strong, found, "computed"):
        moved = "together" if len(one.joints) > 1 else robot.joint_names[one.joints[0]]
        print(f"| {moved} | {one.model} | {' / '.join(f'{x:.2f}' for x in np.degrees(one.worst))} |")


def payload(robot, motors):
    body = Payload(2.0, (0.1, 0.02, 0.03), (0.01, 0.0, 0.0, 0.02, 0.0, 0.015))
    how = di.experiments.StepOptions(voltages=VOLTS, for_payload=True)
    empty = di.experiments.step_test(bench(robot, motors), motors, how).inertias
    again = di.experiments.StepOptions(voltages=VOLTS, repeat=[(one.motor, one.pose) for one in empty])
    full = di.experiments.step_test(bench(robot, motors, payload=body), motors, again).inertias
    print("\n| number | value | standard deviation | true |\n|---|---|---|---|")
    true = (body.mass, *body.com, *(body.inertia[k] for k in (0, 3, 5, 1, 2, 4)))
    for one, real in zip(step_payload(robot, full, empty)[0], true, strict=True):
        print(f"| {one.name} | {one.value:.4g} | {one.std:.2g} | {real:g} |")


def ur10e():
    """A robot that no paper used, with weight to carry: by its own masses, and by masses that are 5 % too small."""
    robot = di.load_robot("ur10e")
    motors = default_motors(robot)
    rough = {
        name: value * (0.95 if name[0] == "M" else 1.0)  # masses and first moments
        for name, value in robot.value_set("plant").items()
    }
    print("\n| known masses | joint | Me | B | Tc |\n|---|---|---|---|---|")
    for name, known in (("exact", robot), ("5 % too small", robot.with_values("rough", rough))):
        how = di.experiments.StepOptions(poses=np.array([[0.0, -1.2, 1.4, 0.3, 0.9, 0.0]]))
        found = di.experiments.step_test(bench(known, motors), motors, how)
        for config in reversed(found.configurations):
            print(f"| {name} | {robot.joint_names[config.motor]} | {' | '.join(errors(found, config))} |")
        for warning in found.warnings:
            print(f"  {warning}")


def counts():
    """What steps tell beside what motion tells."""
    print("\n| robot | joints tested | combinations by steps | by motion | condition of poses |\n|---|---|---|---|---|")
    for name in ("minnesota", "ur10e", "puma560", "panda", "sr400"):
        robot = di.load_robot(name)
        motors = [j for j in range(len(robot.moving)) if not obstacle(robot, j)]
        terms = inertial_terms(robot)
        base = inertia_base(robot, motors, terms)
        condition = choose_poses(base, base.n + 2)[1]
        motion = di.base_parameters(robot, ",".join(terms)).n
        print(f"| {name} | {len(motors)} of {len(robot.moving)} | {base.n} | {motion} | {condition:.0f} |")


def main():
    robot = di.load_robot("minnesota")
    motors = Motors(GAINS, 1.0, voltage_limit=10.0)
    one_joint_at_a_time(robot)
    six_combinations(robot, motors)
    disturbed(robot, motors)
    payload(robot, motors)
    ur10e()
    counts()


if __name__ == "__main__":
    main()
