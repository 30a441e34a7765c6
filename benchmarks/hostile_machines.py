"""Small machines with the troubles of real ones, which no model of ours holds.

Friction that creeps before it slips, falls with velocity and grows with the load (LuGre), backlash, gear teeth that
cog, motors with back-EMF and inductance fed by saturated amplifiers, cables that give, loads that swing; logged by
coarse encoders at uneven times, with a delay of either sign. `small_machines.py` lists them with the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pinocchio as pin
from tests.robots import tree_model

import dynident as di
from dynident.logs.log import Log
from dynident.robot.model import Robot

STEP = 2.5e-4  # [s] of the simulation
Run = tuple[np.ndarray, np.ndarray, np.ndarray]  # time (n,), positions and torques (n, n_joints)
Wanted = Callable[[float], float]  # time -> position or voltage


class Friction:
    """LuGre friction of one joint (Canudas de Wit et al. 1995), integrated exactly while the velocity is constant.

    Args:
        coulomb: Friction of sliding.
        static: What it takes to break away, over `coulomb`.
        stribeck: Velocity at which the one has become the other.
        viscous: Per velocity.
        creep: Motion before it slips [rad or m].
        load: Friction per torque that the gear passes on.
    """

    def __init__(
        self, coulomb: float, static: float, stribeck: float, viscous: float, creep: float, load: float = 0.0
    ) -> None:
        self.coulomb, self.static, self.stribeck = coulomb, static, stribeck
        self.viscous, self.creep, self.load = viscous, creep, load
        self.bristles = 0.0  # deflection [rad or m]

    def torque(self, velocity: float, load: float = 0.0, step: float = STEP) -> float:
        """What acts against a motion over a step."""
        falling = (self.static - 1.0) * math.exp(-((velocity / self.stribeck) ** 2))
        most = self.coulomb * (1.0 + falling) + self.load * abs(load)
        stiffness = self.coulomb / self.creep
        limit = math.copysign(most / stiffness, velocity)
        before = self.bristles
        self.bristles = limit + (before - limit) * math.exp(-abs(velocity) * step * stiffness / most)
        return stiffness * (self.bristles + 2e-3 * (self.bristles - before) / step) + self.viscous * velocity


def recorded(
    label: str,
    run: Run,
    rng: np.random.Generator,
    *,
    rate: float,
    resolution: float | np.ndarray,
    noise: float | np.ndarray = 0.0,
    torque_step: float = 0.0,
    delay: float = 0.0,
    jitter: float = 0.0,
    stale: float = 0.0,
) -> Log:
    """What a logger keeps of a run.

    Args:
        label: Its name.
        run: Time, positions, torques.
        rng: Of noise and stamps.
        rate: Samples per second.
        resolution: Step of the encoders.
        noise: Standard deviation of the torque.
        torque_step: Step of the torque; 0 for none.
        delay: By which torque is logged late; early where negative [s].
        jitter: Share of a sampling period by which stamps vary.
        stale: Share of the positions that repeat the one before.
    """
    time, _, tau = run
    stamps = np.arange(time[0] + 0.02, time[-1] - 0.03, 1.0 / rate)
    stamps = stamps + rng.uniform(0.0, jitter, len(stamps)) / rate
    counted, _ = polled(run, stamps, rng, resolution, stale)
    late = np.searchsorted(time, stamps - delay)
    measured = tau[late] + rng.normal(size=counted.shape) * noise * (tau[late] != 0.0)
    if torque_step:
        measured = np.round(measured / torque_step) * torque_step
    return as_log(label, np.round(stamps, 5), counted, measured)


def polled(
    run: Run, stamps: np.ndarray, rng: np.random.Generator, resolution: float | np.ndarray, stale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Positions in steps of the encoders at some stamps, a share of them stale, and the torques beside them."""
    time, q, tau = run
    places = np.searchsorted(time, stamps)
    for k in np.flatnonzero(rng.uniform(size=len(places)) < stale):
        places[k] = places[max(k - 1, 0)]
    phase = rng.uniform(-0.5, 0.5, q.shape[1]) * resolution
    return np.round((q[places] + phase) / resolution) * resolution, tau[places]


def as_log(label: str, stamps: np.ndarray, q: np.ndarray, tau: np.ndarray) -> Log:
    """A log of positions and torques, (n, n_joints)."""
    channels = {f"{kind}{j + 1}": own for kind, values in (("q", q), ("tau", tau)) for j, own in enumerate(values.T)}
    return di.Log(label, label, stamps, channels)


# --- one joint --------------------------------------------------------------------------------------------------------


def pendulum(
    rng: np.random.Generator,
    wanted: list[Wanted],
    duration: float,
    *,
    released: float = math.inf,
    backlash: float = 0.0,
    logged: str = "voltage",
) -> list[Run]:
    """Runs of a geared servo that swings a pendulum: its controller sets a voltage, its amplifier saturates.

    Args:
        rng: Of the machine.
        wanted: Position of each run [rad].
        duration: [s].
        released: Time from which the motor's circuit is open [s].
        backlash: Of the gear [rad].
        logged: voltage or current.
    """
    mass, length = rng.uniform(0.3, 1.2), rng.uniform(0.1, 0.18)
    weight, inertia = mass * 9.81 * length, 1.1 * mass * length**2
    rotor, constant, resistance = rng.uniform(0.004, 0.015), rng.uniform(1.0, 1.8), rng.uniform(1.8, 4.0)
    supply, gain = 12.0, rng.uniform(15.0, 60.0)
    coulomb, teeth = rng.uniform(0.08, 0.25), rng.uniform(0.0, 0.03)
    runs = []
    for one in wanted:
        friction = Friction(coulomb, rng.uniform(1.1, 1.6), 0.15, rng.uniform(0.01, 0.08), 3e-3, rng.uniform(0.0, 0.15))
        q, dq, q_motor, dq_motor, voltage, current = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        found = []
        for k in range(int(duration / STEP)):
            t = k * STEP
            if k % 20 == 0:  # the controller runs at 200 Hz on the encoder
                seen = round(q * 4096 / 6.2832) * 6.2832 / 4096
                voltage = max(-supply, min(supply, gain * (one(t) - seen))) if t < released else 0.0
            current = (voltage - constant * dq_motor) / resistance if t < released else 0.0
            motor = constant * current
            gear = weight * math.sin(q)
            cog = teeth * math.sin(24.0 * q_motor)
            if backlash:
                twist = q_motor - q
                gap = twist - max(-0.5 * backlash, min(0.5 * backlash, twist))
                passed = 200.0 * gap + (0.2 * (dq_motor - dq) if gap else 0.0)
                dq_motor += STEP * (motor + cog - friction.torque(dq_motor, passed) - passed) / rotor
                dq += STEP * (passed - gear - 0.005 * dq) / inertia
                q_motor, q = q_motor + STEP * dq_motor, q + STEP * dq
            else:
                dq += STEP * (motor + cog - gear - friction.torque(dq, gear)) / (inertia + rotor)
                q += STEP * dq
                q_motor, dq_motor = q, dq
            found.append((t, q, voltage if logged == "voltage" else current))
        runs.append(_as_run(found))
    return runs


def _as_run(found: list[tuple[float, ...]]) -> Run:
    table = np.array(found)
    n = (table.shape[1] - 1) // 2
    return table[:, 0], table[:, 1 : n + 1], table[:, n + 1 :]


def chirp(rng: np.random.Generator) -> Wanted:
    """The sine of the time's square."""
    size = rng.uniform(0.7, 1.3)
    return lambda t: size * math.sin(t * t)


def two_sines(rng: np.random.Generator) -> Wanted:
    """A slow and a fast sine."""
    a, b = rng.uniform(0.5, 1.0), rng.uniform(0.2, 0.5)
    f, g = rng.uniform(0.3, 0.5), rng.uniform(1.0, 1.8)
    return lambda t: a * math.sin(6.28 * f * t) + b * math.sin(6.28 * g * t)


def staircase(rng: np.random.Generator) -> Wanted:
    """Steps to places at which it rests."""
    places = rng.uniform(-1.4, 1.4, 20)
    return lambda t: float(places[int(t / 0.8)]) if t > 0.3 else 0.0


def lift(rng: np.random.Generator) -> Wanted:
    """Up within two seconds."""
    top = rng.uniform(1.8, 2.6)
    return lambda t: top * min(1.0, t / 1.8)


def pwm(seed: int) -> list[Log]:
    """A servo with voltage for torque, 6 s: from a chirp to sines."""
    rng = np.random.default_rng(1000 + seed)
    runs = pendulum(rng, [chirp(rng), two_sines(rng)], 6.0)
    keep = {"rate": 200.0, "resolution": 2.0 * np.pi / 4096, "jitter": 0.3, "torque_step": 12.0 / 885}
    return [recorded(f"pwm {k}", run, rng, **keep) for k, run in enumerate(runs)]


def dropped(seed: int) -> list[Log]:
    """A servo that lifts its pendulum and lets go: no voltage for most of the log, and open circuit."""
    rng = np.random.default_rng(1100 + seed)
    runs = pendulum(rng, [lift(rng), lift(rng)], 6.0, released=2.0)
    keep = {"rate": 150.0, "resolution": 2.0 * np.pi / 4096, "jitter": 0.5}
    return [recorded(f"dropped {k}", run, rng, **keep) for k, run in enumerate(runs)]


def stairs(seed: int) -> list[Log]:
    """A servo with backlash that steps from place to place, its coarse current logged 8 ms late."""
    rng = np.random.default_rng(1200 + seed)
    runs = pendulum(rng, [staircase(rng), two_sines(rng)], 8.0, backlash=rng.uniform(0.0, 0.01), logged="current")
    keep = {"rate": 100.0, "resolution": 2.0 * np.pi / 4096, "noise": 0.03, "torque_step": 0.02, "delay": 8e-3}
    return [recorded(f"stairs {k}", run, rng, stale=0.1, jitter=0.3, **keep) for k, run in enumerate(runs)]


# --- slides -----------------------------------------------------------------------------------------------------------


def slide(
    mass: float,
    friction: Friction,
    command: Callable[[float, float, float], float],
    duration: float,
    *,
    force_constant: float,
    back_emf: float = 0.0,
    lag: float = 1e-3,
    hanging: tuple[float, float] | None = None,
    offset: float = 0.0,
) -> Run:
    """A motor-driven slide.

    Args:
        mass: [kg].
        friction: Of the rail.
        command: What the amplifier is to give at a time, position and velocity, which is logged.
        duration: [s].
        force_constant: Force per unit of it.
        back_emf: What velocity takes from it.
        lag: Time constant of the motor's current [s].
        hanging: Mass and length of a load that swings below it.
        offset: Force that is always there.
    """
    q, dq, current, angle, turning, found = 0.0, 0.0, 0.0, 0.0, 0.0, []
    asked = 0.0
    for k in range(int(duration / STEP)):
        t = k * STEP
        if k % 4 == 0:
            asked = command(t, q, dq)
        current += STEP / lag * (asked - back_emf * dq - current)
        force = force_constant * current - friction.torque(dq) + offset
        if hanging is None:
            acceleration = force / mass
        else:
            m, length = hanging
            s, c = math.sin(angle), math.cos(angle)
            pull = m * s * (length * turning**2 + 9.81 * c)
            acceleration = (force + pull) / (mass + m * s * s)
            turning -= STEP * ((acceleration * c + 9.81 * s) / length + 0.2 * turning)
            angle += STEP * turning
        dq += STEP * acceleration
        q += STEP * dq
        found.append((t, q, asked))
    return _as_run(found)


def emps(seed: int) -> list[Log]:
    """A heavy carriage under position control: smooth strokes, then with pulses of force; 1 kHz."""
    rng = np.random.default_rng(1300 + seed)
    mass, coulomb, viscous = rng.uniform(60.0, 110.0), rng.uniform(15.0, 30.0), rng.uniform(150.0, 260.0)
    logs = []
    for number in range(2):
        places, stay = rng.uniform(-0.12, 0.12, 12), rng.uniform(1.2, 2.0)
        state = {"goal": 0.0, "velocity": 0.0}

        def command(t: float, q: float, dq: float, places=places, stay=stay, state=state, number=number) -> float:
            left = places[int(t / stay)] - state["goal"]
            wanted = math.copysign(min(0.15, math.sqrt(2.0 * 0.6 * abs(left))), left) if abs(left) > 1e-5 else 0.0
            state["velocity"] += max(-1e-3 * 0.8, min(1e-3 * 0.8, wanted - state["velocity"]))
            state["goal"] += 1e-3 * state["velocity"]
            pulse = 1.5 * ((t % 1.7) < 0.25) if number else 0.0
            return max(-10.0, min(10.0, 243.0 * (160.0 * (state["goal"] - q) - dq) / 35.0 / 6.0 + pulse))

        friction = Friction(coulomb, 1.15, 0.01, viscous, 1e-5)
        run = slide(mass, friction, command, 12.0, force_constant=35.15, offset=-3.2)
        run = run[0], run[1], 35.15 * run[2]
        logs.append(recorded(f"emps {number}", run, rng, rate=1000.0, resolution=2e-6, noise=0.3))
    return logs


def relay(seed: int) -> list[Log]:
    """A cart in the limit cycle of a relay, with stops; 1 kHz, steps of 0.1 mm, current late by its lag."""
    rng = np.random.default_rng(1400 + seed)
    mass, coulomb = rng.uniform(0.4, 1.2), rng.uniform(0.5, 1.5)
    logs = []
    for number in range(2):
        force, stroke = rng.uniform(4.0, 7.0), rng.uniform(0.08, 0.2)
        state = {"way": 1.0}

        def command(t: float, q: float, dq: float, force=force, stroke=stroke, state=state) -> float:
            if abs(q) > stroke:
                state["way"] = -math.copysign(1.0, q)
            return force * state["way"] if (t % 3.0) < 2.6 else 0.0

        friction = Friction(coulomb, 1.3, 0.02, rng.uniform(2.0, 8.0), 5e-5)
        run = slide(mass, friction, command, 8.0, force_constant=1.0, back_emf=1.0, lag=6e-3)
        logs.append(recorded(f"relay {number}", run, rng, rate=1000.0, resolution=1e-4))
    return logs


def crane(seed: int) -> list[Log]:
    """Two slides under bang-bang voltage for 4 s, a load swings below one; strong back-EMF, 200 Hz, uneven stamps."""
    rng = np.random.default_rng(1500 + seed)
    masses, back = rng.uniform(1.5, 5.0, 2), rng.uniform(3.0, 12.0, 2)
    hanging = (rng.uniform(0.1, 0.6), rng.uniform(0.2, 0.5))
    coulomb = rng.uniform(2.0, 6.0, 2)
    rate = 200.0 if seed % 2 == 0 else 3000.0
    logs = []
    for number in range(2):
        runs = []
        for j in range(2):
            level, period, phase = rng.uniform(5.0, 10.0), rng.uniform(0.5, 1.4), rng.uniform(0.0, 1.0)

            def command(t: float, q: float, dq: float, level=level, period=period, phase=phase) -> float:
                return level * math.copysign(1.0, math.sin(6.2832 * (t / period + phase))) if t > 0.3 else 0.0

            friction = Friction(coulomb[j], 1.2, 0.02, 5.0, 5e-5)
            load = hanging if j == 1 else None
            runs.append(
                slide(masses[j], friction, command, 4.0, force_constant=4.0, back_emf=back[j], lag=2e-3, hanging=load)
            )
        run = runs[0][0], np.hstack([one[1] for one in runs]), np.hstack([one[2] for one in runs])
        logs.append(recorded(f"crane {number}", run, rng, rate=rate, resolution=5e-5, jitter=0.3 if rate < 500 else 0))
    return logs


# --- arms -------------------------------------------------------------------------------------------------------------


def arm(
    model: pin.Model,
    frictions: list[Friction],
    control: Callable[[float, np.ndarray, np.ndarray], np.ndarray],
    duration: float,
    start: np.ndarray,
    dq: np.ndarray | None = None,
    step: float = STEP,
    control_every: int = 4,
) -> Run:
    """A serial arm under a control law, by half-implicit steps."""
    data = model.createData()
    q, dq = start.copy(), np.zeros(model.nv) if dq is None else dq.copy()
    torque = np.zeros(model.nv)
    time, positions, torques = [], [], []
    for k in range(int(duration / step)):
        if k % control_every == 0:
            torque = control(k * step, q, dq)
            time.append(k * step)
            positions.append(q.copy())
            torques.append(torque)
        lost = [own.torque(v, m, step) for own, v, m in zip(frictions, dq, torque, strict=True)]
        dq = dq + step * pin.aba(model, data, q, dq, torque - np.array(lost))
        q = q + step * dq
    return np.array(time), np.array(positions), np.array(torques)


def double_pendulum(seed: int, robot: Robot) -> list[Log]:
    """Two links of which one joint is driven weakly; the other swings without torque. 10 s at 500 Hz."""
    rng = np.random.default_rng(1600 + seed)
    model = tree_model(robot)
    for joint in (1, 2):
        mass, center = rng.uniform(0.15, 0.6), rng.uniform(0.1, 0.25)
        model.inertias[joint] = pin.Inertia(mass, np.array([center, 0.0, 0.0]), np.diag([1e-4, 0.01, 0.01]) * mass)
    driven = seed % 2
    model.armature = np.array([2e-4, 1e-5]) if driven == 0 else np.array([1e-5, 2e-4])
    logs = []
    for number in range(2):
        dry = [Friction(0.04, 1.2, 0.1, 0.003, 2e-3, 0.05), Friction(0.004, 1.1, 0.1, 6e-4, 2e-3)]
        frictions = dry if driven == 0 else dry[::-1]
        size, f, phase = rng.uniform(0.25, 0.5), rng.uniform(0.5, 1.2), rng.uniform(0.0, 6.28)
        active = 10.0 if number else 6.0

        def control(t, q, dq, size=size, f=f, phase=phase, active=active):
            torque = np.zeros(2)
            if t < active:
                torque[driven] = size * math.sin(6.28 * f * t + phase) + 0.3 * size * math.copysign(1.0, dq[driven])
            return torque

        start = np.array([-np.pi / 2 + rng.uniform(-2.0, 2.0), rng.uniform(-1.0, 1.0)])
        run = arm(model, frictions, control, 10.0, start, step=5e-4, control_every=2)
        noise = 0.01 if seed % 3 else 0.0
        logs.append(recorded(f"double {number}", run, rng, rate=500.0, resolution=2.0 * np.pi / 8192, noise=noise))
    return logs


def seven_joints(seed: int, robot: Robot, kind: str) -> list[Log]:
    """An arm of 7 joints, 10 s: a cobot with geared drives, or one driven by cables of which two joints move.

    Args:
        seed: Of the machine and its motion.
        robot: The arm.
        kind: cobot, moves (from place to place) or cable.
    """
    rng = np.random.default_rng({"cobot": 1700, "moves": 1800, "cable": 1900}[kind] + seed)
    model = tree_model(robot)
    data, n = model.createData(), model.nv
    for joint in range(1, n + 1):
        model.inertias[joint].mass = model.inertias[joint].mass * rng.uniform(0.7, 1.3)
    model.armature = np.array([0.6, 0.6, 0.5, 0.4, 0.2, 0.2, 0.1]) * (0.2 if kind == "cable" else 1.0)
    size = np.array([5.0, 5.0, 4.0, 4.0, 1.5, 1.5, 1.0]) * (0.3 if kind == "cable" else 1.0)
    start = np.array([0.0, -0.4, 0.0, -1.8, 0.0, 1.4, 0.5])
    stiffness = np.array([900.0, 900.0, 600.0, 600.0, 200.0, 200.0, 100.0]) * (0.5 if kind == "cable" else 1.0)
    moving = np.array([1, 3]) if kind == "cable" else np.arange(n)
    w, rate = 2.0 * np.pi * np.arange(1, 6) / 10.0, {0: 125.0, 1: 1000.0, 2: 100.0}[seed % 3]
    logs = []
    for number in range(2):
        frictions = [Friction(c, 1.3, 0.1, c * rng.uniform(0.5, 2.0), 2e-3, 0.05) for c in size]
        a, b = rng.normal(size=(2, 5, len(moving))) * 0.25 / np.arange(1, 6)[:, None]
        places, ripple = rng.uniform(-0.6, 0.6, (8, len(moving))), rng.uniform(0.02, 0.1, n) * size
        gravity_share = rng.uniform(0.8, 1.1)

        def control(t, q, dq, a=a, b=b, places=places, gravity_share=gravity_share):
            wanted = start.copy()
            if kind == "moves":
                k, part = int(t / 1.6), min(1.0, (t % 1.6) / 0.9)
                last = places[k - 1] if k else 0.0 * places[0]
                wanted[moving] += last + (places[k] - last) * part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
            else:
                begun = min(1.0, t / 2.0)
                wanted[moving] += begun**2 * (3.0 - 2.0 * begun) * (np.sin(w * t) @ a + (np.cos(w * t) - 1.0) @ b)
            gravity = gravity_share * pin.computeGeneralizedGravity(model, data, wanted)
            return gravity + stiffness * (wanted - q) - 0.8 * np.sqrt(stiffness) * dq

        run = arm(model, frictions, control, 10.0, start, step=5e-4, control_every=2)
        time, q, tau = run
        wave = ripple * np.sin((12.0 if kind == "cable" else 50.0) * q)
        run = time, q + (tau / 4000.0 if kind == "cable" else 0.0), tau + wave  # encoders sit before the cables
        noise = np.array([0.3, 0.3, 0.2, 0.2, 0.08, 0.08, 0.05]) * (0.2 if kind == "cable" else 1.0)
        jitter, delay = (0.2, 4e-3) if seed % 2 else (0.0, -3e-3)
        logs.append(
            recorded(
                f"{kind} {number}", run, rng, rate=rate, resolution=2 * np.pi / 2**16, noise=noise, delay=delay,
                jitter=jitter,
            )
        )  # fmt: skip
    return logs
