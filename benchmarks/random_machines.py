"""Machines of one to three joints with everything drawn at random: size, drive, friction, motion and logger.

Masses over two decades, motion from sines to steps and chirps that differ between the two runs of a machine, LuGre
friction that may fall, grow with the load or with the direction, cogging, back-EMF, saturation; logged at 50 to 1000 Hz
in any unit, with steps, noise, delay, jitter and stale readings. No rule was derived from a single one of them: what
counts is the whole. `small_machines.py` lists them with the others.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
from tests.robots import tree_model

import dynident as di
from dynident.logs.log import Log
from dynident.robot.model import Robot
from hostile_machines import STEP, Friction, Run, Wanted, arm, recorded

Joint = tuple[str, Sequence[float], float]  # kind, axis, distance from the joint before along x [m]


def chain(name: str, joints: Sequence[Joint]) -> Robot:
    """A robot of joints in a row; its links have no values."""
    parts, parent = ['<link name="base"/>'], "base"
    for number, (kind, axis, distance) in enumerate(joints, start=1):
        shown = " ".join(f"{x:g}" for x in axis)
        parts.append(
            f'<joint name="j{number}" type="{kind}"><parent link="{parent}"/><child link="l{number}"/>'
            f'<origin xyz="{distance:.9g} 0 0" rpy="0 0 0"/><axis xyz="{shown}"/>'
            f'<limit lower="-6" upper="6" velocity="20" effort="500"/></joint><link name="l{number}"/>'
        )
        parent = f"l{number}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.urdf"
        path.write_text(f'<robot name="{name}">{"".join(parts)}</robot>')
        return di.load_robot(path)


def motion(rng: np.random.Generator, amplitude: float, pace: float, duration: float) -> Wanted:
    """A wanted motion of any kind: sines, moves or steps from place to place, a chirp, strokes at one velocity."""
    kind = rng.integers(6)
    if kind == 0:
        k = rng.integers(2, 6)
        f, a, p = rng.uniform(0.15, 1.2, k) * pace, rng.normal(size=k), rng.uniform(0.0, 6.28, k)
        a *= amplitude / np.abs(a).sum()
        return lambda t: float((a * (np.sin(6.2832 * f * t + p) - np.sin(p))).sum())
    if kind in (1, 3):
        places = rng.uniform(-amplitude, amplitude, int(duration * pace) + 4)
        stay, share = rng.uniform(0.6, 1.5) / pace, rng.uniform(0.4, 1.0) if kind == 1 else 1e-9

        def moves(t: float) -> float:
            number = int(t / stay)
            s = min(1.0, (t / stay - number) / share)
            last = places[(number - 1) % len(places)] if number else 0.0
            return float(last + (places[number % len(places)] - last) * s**3 * (10.0 - 15.0 * s + 6.0 * s * s))

        return moves
    if kind == 2:
        growth = rng.uniform(0.5, 1.5) * pace * 10.0 / duration
        return lambda t: amplitude * math.sin(growth * t * t)
    if kind == 4:
        period = rng.uniform(0.8, 2.5) / pace
        return lambda t: amplitude * (1.0 - abs((t / period) % 2.0 - 1.0))
    slow, fast = rng.uniform(0.2, 0.5) * pace, rng.uniform(0.8, 2.0) * pace
    return lambda t: amplitude * (0.7 * math.sin(6.2832 * slow * t) + 0.3 * math.sin(6.2832 * fast * t))


def kept(rng: np.random.Generator, runs: Sequence[Run], torque: np.ndarray, reach: float) -> list[Log]:
    """What a logger of any kind keeps.

    Args:
        rng: Of the logger.
        runs: Time, positions, torques.
        torque: (n_joints,) typical torque of each joint.
        reach: Typical range of positions.
    """
    rate = float(rng.choice([50, 60, 100, 125, 200, 250, 500, 1000]))
    unit = 10.0 ** rng.uniform(-1.0, 1.0)  # amperes or volts for a newton meter
    torque = torque * unit
    settings = {
        "rate": rate,
        "resolution": reach * float(rng.choice([1e-6, 1e-5, 2e-4, 1e-3])),
        "noise": torque * float(rng.choice([0.0, 0.003, 0.01, 0.05])),
        "torque_step": float(rng.choice([0.0, 0.0, 0.005])) * float(torque.max()),
        "delay": float(rng.choice([0.0, 0.0, 2e-3, 8e-3, -3e-3])),
        "jitter": float(rng.choice([0.0, 0.1, 0.5])) if rate <= 250.0 else 0.0,
        "stale": float(rng.choice([0.0, 0.0, 0.1])),
    }
    return [recorded(f"run {k}", (run[0], run[1], run[2] * unit), rng, **settings) for k, run in enumerate(runs)]


def drive(rng: np.random.Generator, duration: float, *, slides: bool) -> tuple[list[Run], float, float]:
    """Two runs of a driven joint, its typical torque and its reach: a slide, or a servo with a pendulum."""
    if slides:
        inertia, reach = 10.0 ** rng.uniform(-0.3, 2.0), rng.uniform(0.05, 0.6)
        weight = inertia * 9.81 * rng.uniform(0.05, 1.0) if rng.random() < 0.3 else 0.0
    else:
        mass, length, reach = 10.0 ** rng.uniform(-1.0, 1.0), rng.uniform(0.08, 0.4), rng.uniform(0.4, 2.5)
        inertia = 1.15 * mass * length**2 * (1.0 + 10.0 ** rng.uniform(-2.0, 1.0))
        weight = mass * 9.81 * length if rng.random() < 0.85 else 0.0
    pace = 10.0 ** rng.uniform(-0.5, 0.4)
    velocity = np.pi * reach * pace
    torque = 4.0 * inertia * velocity * pace + weight
    coulomb, viscous = rng.uniform(0.03, 0.8) * torque, rng.uniform(0.0, 1.0) * torque / velocity
    back_emf = rng.uniform(0.0, 2.0) * torque / velocity if rng.random() < 0.6 else 0.0
    limit = rng.uniform(2.5, 6.0) * torque + 2.0 * coulomb + (viscous + back_emf) * velocity
    static, stribeck = rng.uniform(1.0, 1.6), velocity * rng.uniform(0.02, 0.3)
    load, asymmetric = rng.choice([0.0, rng.uniform(0.0, 0.2)]), rng.uniform(0.0, 0.15)
    cog, teeth, offset = rng.uniform(0.0, 0.05) * torque, rng.uniform(10.0, 60.0) / reach, rng.normal() * 0.05 * torque
    lag, switched, creep = rng.uniform(3e-4, 4e-3), rng.random() < 0.2, reach * 10.0 ** rng.uniform(-5.0, -2.5)
    stiffness = limit / reach * rng.uniform(1.0, 6.0)
    damping = 1.2 * math.sqrt(stiffness * inertia) * rng.uniform(0.2, 1.2) * (0.3 if back_emf else 1.0)
    runs = []
    for _ in range(2):
        wanted, period = motion(rng, reach, pace, duration), rng.uniform(0.4, 1.2) / pace
        friction = Friction(coulomb, static, stribeck, viscous, creep, load)
        q, dq, current, asked, found = 0.0, 0.0, 0.0, 0.0, []
        for k in range(int(duration / STEP)):
            t = k * STEP
            if k % 8 == 0:
                asked = stiffness * (wanted(t) - q) - damping * dq
                if switched:
                    asked = 0.5 * limit * math.copysign(1.0, math.sin(6.2832 * t / period)) - 0.3 * stiffness * q
                asked = max(-limit, min(limit, asked))
            current += STEP / lag * (asked - back_emf * dq - current)
            gravity = weight * (1.0 if slides else math.sin(q))
            lost = friction.torque(dq, gravity + 0.5 * current) + asymmetric * coulomb * (dq > 0.0)
            dq += STEP * (current + cog * math.sin(teeth * q) + offset - gravity - lost) / inertia
            q += STEP * dq
            found.append((t, q, asked if back_emf else current))
        table = np.array(found)
        runs.append((table[:, 0], table[:, 1:2], table[:, 2:]))
    return runs, torque, reach


def one_joint(seed: int, *, slides: bool) -> tuple[Robot, list[Log]]:
    """A slide or a pendulum."""
    rng = np.random.default_rng((5000 if slides else 6000) + seed)
    runs, torque, reach = drive(rng, rng.uniform(3.0, 15.0), slides=slides)
    robot = (
        chain("slide", [("prismatic", (1, 0, 0), 0.0)]) if slides else chain("swing", [("revolute", (0, 1, 0), 0.0)])
    )
    return robot, kept(rng, runs, np.array([torque]), reach)


def axes(seed: int) -> tuple[Robot, list[Log]]:
    """A gantry of two or three slides of different mass, each in units of its own."""
    rng = np.random.default_rng(7000 + seed)
    duration, n = rng.uniform(3.0, 12.0), int(rng.integers(2, 4))
    many = [drive(rng, duration, slides=True) for _ in range(n)]
    units = np.array([many[0][1] / torque for _, torque, _ in many]) * rng.uniform(0.2, 1.0, n)
    runs = [(many[0][0][k][0], *(np.hstack([own[0][k][part] for own in many]) for part in (1, 2))) for k in range(2)]
    runs = [(time, q, tau * units) for time, q, tau in runs]
    reach = min(reach for _, _, reach in many)
    robot = chain("axes", [("prismatic", axis, 0.0) for axis in np.eye(3)[:n]])
    return robot, kept(rng, runs, np.full(n, 0.5 * many[0][1]), reach)


def two_links(seed: int) -> tuple[Robot, list[Log]]:
    """Two links, upright or lying, with encoders before belts that give."""
    rng = np.random.default_rng(8000 + seed)
    duration, upright, length = rng.uniform(4.0, 12.0), rng.random() < 0.6, rng.uniform(0.15, 0.5)
    axis = (0, 1, 0) if upright else (0, 0, 1)
    robot = chain("twolinks", [("revolute", axis, 0.0), ("revolute", axis, length)])
    model, masses = tree_model(robot), (rng.uniform(0.5, 4.0), rng.uniform(0.2, 2.0))
    for joint, (mass, own) in enumerate(zip(masses, (length, rng.uniform(0.1, 0.4)), strict=True), start=1):
        spread = np.diag([0.002, 0.08 * own * own, 0.08 * own * own])
        model.inertias[joint] = pin.Inertia(mass, np.array([0.6 * own, 0.0, 0.0]), mass * spread)
    inertia = (0.5 * masses[0] + masses[1]) * length**2
    model.armature = np.array([inertia, 0.3 * inertia]) * 10.0 ** rng.uniform(-1.5, 0.7)
    pace = rng.uniform(0.5, 1.6)
    torque = 16.0 * (inertia + model.armature[0]) * pace**2 + 9.81 * upright * length * (0.6 * masses[0] + masses[1])
    size = np.array([1.0, 0.4]) * torque
    stiffness = size * rng.uniform(10.0, 40.0)
    damping = 0.7 * np.sqrt(stiffness * (np.array([1.0, 0.2]) * inertia + model.armature))
    belts = stiffness * rng.uniform(5.0, 100.0) if rng.random() < 0.6 else np.full(2, np.inf)
    dry, data, runs = size * rng.uniform(0.05, 0.3), model.createData(), []
    for _ in range(2):
        wanted = [motion(rng, rng.uniform(0.3, 1.2), pace, duration) for _ in range(2)]
        frictions = [Friction(c, rng.uniform(1.0, 1.4), 0.15, c * rng.uniform(0.3, 2.0), 1e-3, 0.05) for c in dry]

        def control(t: float, q: np.ndarray, dq: np.ndarray, wanted=wanted) -> np.ndarray:
            goal = np.array([own(t) for own in wanted]) * min(1.0, t)
            gravity = 0.9 * pin.computeGeneralizedGravity(model, data, goal)
            return gravity + stiffness * (goal - q) - damping * dq

        time, q, tau = arm(model, frictions, control, duration, np.zeros(2), step=5e-4, control_every=2)
        runs.append((time, q + tau / belts, tau))
    return robot, kept(rng, runs, 0.3 * size, 1.0)
