"""Small machines, logged badly: what people try a tool on first.

A cart whose motor current is switched by a relay, a gantry of two slides under bang-bang voltage, a servo that sticks
and a 7-joint arm of which five joints are held: simulated by Pinocchio with dry friction that is a true sign; beside
them the machines of `hostile_machines.py`, with troubles that no model holds. They are logged as poor loggers do:
polled stamps, encoder steps, readings that were not refreshed, current or voltage in place of torque.
`least_squares.py` compares dynident with plain least squares on them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pinocchio as pin
from tests.robots import tree_model
from tests.strangers.pinocchio_plant import PinocchioPlant

import dynident as di
from dynident.logs.log import Log
from dynident.robot.model import Robot
from hostile_machines import as_log, crane, double_pendulum, dropped, emps, polled, pwm, relay, seven_joints, stairs
from random_machines import axes, one_joint, two_links

SAMPLE_TIME = 1e-3  # [s] of the simulation
HEAD = "convention: modified-dh\ngravity: [0, 0, -9.81]\njoints:\n"
CART = f"name: cart\n{HEAD}  - {{name: rail, sigma: 1, alpha: pi/2}}\n"
GANTRY = f"name: gantry\n{HEAD}  - {{name: x, sigma: 1, alpha: pi/2}}\n  - {{name: y, sigma: 1, alpha: pi/2}}\n"
SERVO = f"name: servo\n{HEAD}  - {{name: servo, alpha: pi/2}}\n"
DOUBLE = f"name: double\n{HEAD}  - {{name: shoulder, alpha: pi/2}}\n  - {{name: elbow, d: 0.3}}\n"
PENDULUM = f"name: pendulum\n{HEAD}  - {{name: servo, alpha: pi/2, theta: -pi/2}}\n"
Control = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # time, positions, velocities -> torque or force
Body = tuple[float, Sequence[float], Sequence[float]]  # mass [kg], center [m], principal inertias [kg·m²]


def load(text: str) -> Robot:
    """A robot from its description."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.yaml"
        path.write_text(text)
        return di.load_robot(path)


def simulate(
    robot: Robot,
    bodies: Sequence[Body],
    viscous: Sequence[float],
    coulomb: Sequence[float],
    control: Control,
    duration: float,
    start: Sequence[float] | None = None,
    rotor: Sequence[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time (n,), positions and torques (n, n_joints) of a machine under a control law."""
    model = tree_model(robot)
    for joint, (mass, center, inertia) in enumerate(bodies, start=1):
        model.inertias[joint] = pin.Inertia(mass, np.array(center), np.diag(inertia))
    if rotor is not None:
        model.armature = np.array(rotor, float)
    plant = PinocchioPlant(robot, model, viscous, coulomb, sample_time=SAMPLE_TIME, step=SAMPLE_TIME, resolution=0.0)
    plant.reset(np.zeros(model.nv) if start is None else np.array(start, float))
    time, positions, torques = [], [], []
    for k in range(int(duration / SAMPLE_TIME)):
        torque = np.atleast_1d(control(k * SAMPLE_TIME, plant.q.copy(), plant.dq.copy())).astype(float)
        time.append(k * SAMPLE_TIME)
        positions.append(plant.q.copy())
        torques.append(torque)
        plant.apply_torque(torque)
        plant.step()
    return np.array(time), np.array(positions), np.array(torques)


def poor_log(
    label: str,
    run: tuple[np.ndarray, np.ndarray, np.ndarray],
    rng: np.random.Generator,
    rate: float,
    resolution: float,
    noise: np.ndarray | float,
    jitter: float = 0.0,
    scale: float = 1.0,
    stale: float = 0.0,
) -> Log:
    """What a poor logger keeps of a run.

    Args:
        label: Its name.
        run: Time, positions, torques.
        rng: Of noise and stamps.
        rate: Polling rate [Hz].
        resolution: Step of the encoders [rad or m].
        noise: Standard deviation of the measured torque [N·m or N].
        jitter: Share of a sampling period by which polling varies.
        scale: What is logged for a newton meter: amperes or volts.
        stale: Share of the readings that repeat the one before.
    """
    stamps = np.arange(run[0][0], run[0][-1] - 0.02, 1.0 / rate)
    stamps = stamps + rng.uniform(0.0, jitter, len(stamps)) / rate
    counted, torque = polled(run, stamps, rng, resolution, stale)
    measured = (torque + rng.normal(size=counted.shape) * noise) * scale
    return as_log(label, np.round(stamps, 4), counted, measured)


def cart(seed: int) -> tuple[Robot, list[Log]]:
    """A cart on rails; a relay switches its current at the ends of its stroke."""
    rng, robot = np.random.default_rng(seed), load(CART)
    body = (rng.uniform(0.5, 2.0), (0.0, 0.0, 0.0), (1e-3,) * 3)
    coulomb, viscous = [rng.uniform(0.8, 2.0)], [rng.uniform(1.0, 5.0)]
    logs = []
    for number in range(2):
        force, stroke, way = rng.uniform(6.0, 10.0), rng.uniform(0.12, 0.25), [1.0]

        def control(t: float, q: np.ndarray, dq: np.ndarray, force=force, stroke=stroke, way=way) -> np.ndarray:
            if abs(q[0]) > stroke:
                way[0] = -float(np.sign(q[0]))
            return np.array([force * way[0]])

        run = simulate(robot, [body], viscous, coulomb, control, 6.0)
        logs.append(poor_log(f"cart {number}", run, rng, 150.0, 2e-5, 0.05 * force, jitter=0.5, scale=1.0 / 2.3))
    return robot, logs


def gantry(seed: int) -> tuple[Robot, list[Log]]:
    """Two slides, 4 s of bang-bang voltage."""
    rng, robot = np.random.default_rng(100 + seed), load(GANTRY)
    bodies = [(m, (0.0, 0.0, 0.0), (1e-3,) * 3) for m in (rng.uniform(3.0, 6.0), rng.uniform(1.0, 2.0))]
    coulomb, viscous = rng.uniform(2.0, 5.0, 2), rng.uniform(10.0, 30.0, 2)
    logs = []
    for number in range(2):
        force, period, phase = rng.uniform(25.0, 45.0, 2), rng.uniform(0.5, 0.9, 2), rng.uniform(0.0, 1.0, 2)

        def control(t: float, q: np.ndarray, dq: np.ndarray, force=force, period=period, phase=phase) -> np.ndarray:
            return force * np.sign(np.sin(2.0 * np.pi * (t / period + phase)))

        run = simulate(robot, bodies, viscous, coulomb, control, 4.0)
        logs.append(poor_log(f"gantry {number}", run, rng, 1000.0, 1e-5, 0.01 * force, scale=0.4))
    return robot, logs


def servo(seed: int) -> tuple[Robot, list[Log]]:
    """A servo on a pendulum that sticks at every reversal; a tenth of the readings are stale."""
    rng, robot = np.random.default_rng(200 + seed), load(SERVO)
    mass, length = rng.uniform(0.3, 1.0), rng.uniform(0.1, 0.2)
    weight = mass * 9.81 * length
    coulomb, viscous = [rng.uniform(0.3, 0.6) * weight], [0.05 * weight]
    body, gain = (mass, (0.0, -length, 0.0), (0.1 * mass * length**2,) * 3), 3.0 * weight
    logs = []
    for number in range(2):
        f, amplitude, total = rng.uniform(0.15, 0.3), rng.uniform(0.8, 1.4), [0.0]

        def control(t: float, q: np.ndarray, dq: np.ndarray, f=f, a=amplitude, total=total) -> np.ndarray:
            w = 2.0 * np.pi * f * t
            error = a * (np.sin(w) + 0.4 * np.sin(2.3 * w)) - q[0]
            total[0] += error * SAMPLE_TIME
            return np.array([gain * (error + 1.5 * total[0] - 0.05 * dq[0])])

        run = simulate(robot, [body], viscous, coulomb, control, 10.0, rotor=[0.3 * mass * length**2])
        resolution = 2.0 * np.pi / 4096
        logs.append(
            poor_log(f"servo {number}", run, rng, 100.0, resolution, 0.02 * gain, jitter=0.3, scale=1.4, stale=0.1)
        )
    return robot, logs


def held(seed: int) -> tuple[Robot, list[Log]]:
    """A 7-joint arm; the second and the fourth joint move, the others are held."""
    rng, robot = np.random.default_rng(300 + seed), di.load_robot("panda")
    nominal = tree_model(robot)
    data, n, moving = nominal.createData(), nominal.nv, [1, 3]
    coulomb = np.array([2.0, 2.0, 1.5, 1.5, 0.6, 0.6, 0.4]) * rng.uniform(0.7, 1.3, n)
    viscous = np.array([3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 0.5]) * rng.uniform(0.7, 1.3, n)
    bodies = [
        (own.mass * rng.uniform(0.8, 1.2), own.lever, np.maximum(np.diag(own.inertia), 1e-4))
        for own in nominal.inertias[1:]
    ]
    start = np.array([0.0, -0.4, 0.0, -1.8, 0.0, 1.4, 0.5])
    stiffness = np.array([600.0, 600.0, 400.0, 400.0, 150.0, 150.0, 80.0])
    w = 2.0 * np.pi * np.arange(1, 6) / 10.0
    logs = []
    for number in range(2):
        a, b = rng.normal(size=(2, 5, 2)) * 0.25 / np.arange(1, 6)[:, None]

        def control(t: float, q: np.ndarray, dq: np.ndarray, a=a, b=b) -> np.ndarray:
            begun = min(1.0, t / 2.0)
            wanted = start.copy()
            wanted[moving] += begun**2 * (3.0 - 2.0 * begun) * (np.sin(w * t) @ a + (np.cos(w * t) - 1.0) @ b)
            gravity = pin.computeGeneralizedGravity(nominal, data, wanted)
            return gravity + stiffness * (wanted - q) - 0.6 * np.sqrt(stiffness) * dq

        rotor = [0.6, 0.6, 0.5, 0.4, 0.2, 0.2, 0.1]
        run = simulate(robot, bodies, viscous, coulomb, control, 10.0, start, rotor)
        noise = np.array([0.3, 0.3, 0.2, 0.2, 0.08, 0.08, 0.05])
        logs.append(poor_log(f"held {number}", run, rng, 100.0, 2.0 * np.pi / 2**17, noise))
    return robot, logs


MACHINES: dict[str, Callable[[int], tuple[Robot, list[Log]]]] = {
    "cart": cart,
    "gantry": gantry,
    "servo": servo,
    "held": held,
    "pwm": lambda seed: (load(PENDULUM), pwm(seed)),
    "dropped": lambda seed: (load(PENDULUM), dropped(seed)),
    "stairs": lambda seed: (load(PENDULUM), stairs(seed)),
    "emps": lambda seed: (load(CART), emps(seed)),
    "relay": lambda seed: (load(CART), relay(seed)),
    "crane": lambda seed: (load(GANTRY), crane(seed)),
    "double": lambda seed: (robot := load(DOUBLE), double_pendulum(seed, robot)),
    **{
        kind: lambda seed, kind=kind: (robot := di.load_robot("panda"), seven_joints(seed, robot, kind))
        for kind in ("cobot", "moves", "cable")
    },
}
RANDOM_MACHINES: dict[str, Callable[[int], tuple[Robot, list[Log]]]] = {
    "slide": lambda seed: one_joint(seed, slides=True),
    "swing": lambda seed: one_joint(seed, slides=False),
    "axes": axes,
    "twolinks": two_links,
}
