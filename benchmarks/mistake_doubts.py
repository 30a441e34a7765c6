"""Logs for which no fix may be proposed: sound ones that look odd, and hopeless ones whose cause is not in the data.

Arms are moved by inverse dynamics along Fourier motions, small machines are integrated; real logs come from the
datasets of the mistakes. No fix, delay or sign that a diagnosis names for any of these is right.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from benchmarks.mistake_data import DATA, QUICK, REAL, dataset

import dynident as di
from dynident.arrays import Array
from dynident.diagnostics import Diagnosis
from dynident.dynamics.evaluate import joint_torque
from dynident.logs.log import Log, joint_positions, row_torques
from dynident.plant.simulation import simulate
from dynident.robot.model import Robot

Verdict = Literal["sound", "hopeless", "either"]
RATE, FINE = 250.0, 20  # [Hz] of logs; steps of integration per sample
GRAVITY = 9.81  # [m/s²]


@dataclass(frozen=True)
class Doubt:
    """Logs for which nothing may be proposed.

    Attributes:
        kind, where: What is odd about them, and on which machine.
        robot: The robot as the user has it.
        logs: The logs as the user has them.
        verdict: "sound" logs must not be stopped, "hopeless" ones must not pass; "either" may do both.
        says: Text of one of the diagnostics or notes, where a cause must be named.
        meant: The logs as they should be, where these are known and others; of a short run, the whole one.
    """

    kind: str
    where: str
    robot: Robot
    logs: tuple[Log, ...]
    verdict: Verdict
    says: str = ""
    meant: tuple[Log, ...] = ()


# ----------------------------------------------------------------------------------------------------------------------
# Arms


def fourier(robot: Robot, seed: int, duration: float = 20.0) -> tuple[Array, Array, Array, Array]:
    """Time and a motion of five harmonics within joint ranges of two radians or 0.2 m."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, duration, 1.0 / RATE)
    n, base = len(robot.joint_names), 2.0 * np.pi / 10.0
    q, dq, ddq = (np.zeros((len(t), n)) for _ in range(3))
    for k in range(1, 6):
        size, phase = rng.normal(size=n) * 0.5 * robot.radians / k**0.5, rng.uniform(0, 2 * np.pi, n)
        w = base * k
        wave = w * t[:, None] + phase
        q, dq, ddq = q + size * np.sin(wave), dq + size * w * np.cos(wave), ddq - size * w**2 * np.sin(wave)
    return t, q, dq, ddq


def noisy(log: Log, seed: int = 0, share: float = 0.01) -> Log:
    """A log with noise on its torques and positions in steps of an encoder."""
    rng = np.random.default_rng(seed)

    def change(name: str, x: Array) -> Array:
        if name.startswith(("tau", "i")):
            return x + share * float(np.sqrt(np.mean(x**2))) * rng.standard_normal(len(x))
        step = 2.0 * np.pi / 2**17
        return step * np.round(x / step) if name[0] == "q" else x

    return replace(log, channels={name: change(name, x) for name, x in log.channels.items()})


def log_of(robot: Robot, t: Array, q: Array, tau: Array, label: str = "log") -> Log:
    """Positions and torques as a log."""
    channels = {f"q{name.removeprefix('q')}": q[:, j] for j, name in enumerate(robot.position_names)}
    channels |= {f"tau{name.removeprefix('q')}": tau[:, j] for j, name in enumerate(robot.position_names)}
    return Log(label, f"{label} {robot.name} {float(tau.sum())!r}", t, channels, label=label)


def arm_log(robot: Robot, seed: int, viscous: float = 0.1, coulomb: float = 0.05) -> Log:
    """A log of an arm; friction as shares of each joint's torque at 1 rad/s, negative where drives overcompensate."""
    t, q, dq, ddq = fourier(robot, seed)
    tau = di.inverse_dynamics(robot, q, dq, ddq, "rigid,Ia")
    _, *motion = fourier(robot, 0)
    size = np.sqrt(np.mean(di.inverse_dynamics(robot, *motion, "rigid,Ia") ** 2, axis=0)) / robot.radians
    tau = tau + size * (viscous * dq + coulomb * robot.radians * np.tanh(dq / robot.radians / 0.01))
    return noisy(log_of(robot, t, q, tau, f"motion {seed}"), seed)


def at_joints(logs: Sequence[Log], robot: Robot) -> tuple[Log, ...]:
    """Logs as positions and torques of the joints, which any description of the robot reads alike."""
    return tuple(
        log_of(robot, log.time, joint_positions(log, robot), joint_torque(robot, row_torques(log, robot)), log.label)
        for log in logs
    )


def wrong_robots(folder: Path) -> Iterator[Doubt]:
    real = {"ur10e": ("puma560", "tx40"), "tx40-joint": ("ur10e", "puma560"), "panda": ("lwr4",), "lwr4": ("panda",)}
    for name, others in real.items():
        data = dataset(name)
        if data is None:
            continue
        logs = at_joints(data.logs, data.robot(folder))
        for other in others:
            stranger = dataset(other) if other in ("lwr4", "panda") else None
            robot = di.load_robot(other) if stranger is None else stranger.robot(folder)
            yield Doubt(
                "wrong robot", f"{data.name} log, {other} file", robot, logs, "hopeless", "the one of this robot"
            )
    for own, other in itertools.permutations(("ur10e", "puma560", "tx40"), 2):
        logs = tuple(arm_log(di.load_robot(own), seed) for seed in (1, 2))
        yield Doubt(
            "wrong robot",
            f"{own} made, {other} file",
            di.load_robot(other),
            logs,
            "hopeless",
            "the one of this robot",
        )


def currents(folder: Path) -> Iterator[Doubt]:
    data = dataset("ur10e")
    if data is not None:
        names = {f"i{j}": f"tau{j}" for j in range(1, 7)}
        logs = tuple(replace(log, channels={names.get(k, k): x for k, x in log.channels.items()}) for log in data.logs)
        meant = at_joints(data.logs, data.robot(folder))
        yield Doubt("currents", data.name, di.load_robot(data.base), logs, "hopeless", "currents", meant)
    for name, gains in (
        ("ur10e", (13, 13, 10, 9, 9, 9)),
        ("puma560", (20, 35, 18, 8, 7, 9)),
        ("tx40", (30, 40, 25, 12, 15, 9)),
    ):
        robot = di.load_robot(name)
        meant = (arm_log(robot, 1), arm_log(robot, 2))
        logs = tuple(
            replace(
                log,
                channels={k: x / gains[int(k[3:]) - 1] if k.startswith("tau") else x for k, x in log.channels.items()},
            )
            for log in meant
        )
        yield Doubt("currents", f"{name} made", robot, logs, "hopeless", "currents", meant)


def motor_side(folder: Path) -> Iterator[Doubt]:
    for name in ("ur10e", "puma560"):
        robot = di.load_robot(name)
        meant = (arm_log(robot, 1), arm_log(robot, 2))
        logs = tuple(
            replace(log, channels={k: x / 101.0 if k.startswith("tau") else x for k, x in log.channels.items()})
            for log in meant
        )
        yield Doubt("motor side", f"{name} made", robot, logs, "hopeless", "motor", meant)


def wraps(folder: Path) -> Iterator[Doubt]:
    def wrapped(log: Log) -> Log:
        return replace(log, channels={k: x % (2 * np.pi) if k[0] == "q" else x for k, x in log.channels.items()})

    for name in ("ur10e", "panda", "lwr4"):
        data = dataset(name)
        if data is not None:
            yield Doubt("wraps", data.name, data.robot(folder), tuple(wrapped(x) for x in data.logs), "sound", "2 pi")
    for name in ("puma560", "pendulum-2"):
        robot = di.load_robot(name)
        yield Doubt("wraps", f"{name} made", robot, tuple(wrapped(arm_log(robot, s)) for s in (1, 2)), "sound", "2 pi")


def negative_damping(folder: Path) -> Iterator[Doubt]:
    for name in ("ur10e", "puma560", "panda", "tx40", "pendulum-2"):
        robot = di.load_robot(name)
        for words, viscous, coulomb in (("all", -0.3, 0.0), ("with dry friction", -0.2, 0.05), ("strong", -0.5, -0.1)):
            logs = tuple(arm_log(robot, seed, viscous, coulomb) for seed in (1, 2))
            yield Doubt("negative damping", f"{name} {words}", robot, logs, "sound")


def clamps(folder: Path) -> Iterator[Doubt]:
    path = DATA / "schunk_lwa3"
    if path.exists():
        yield Doubt(
            "clamps", "LWA3", di.load_robot(path / "robot.yaml"), (di.read_log(path / "log_train.csv.gz"),), "sound"
        )


def wrong_gravity(folder: Path) -> Iterator[Doubt]:
    path = DATA / "schunk_lwa3"
    if path.exists():
        robot = di.load_robot(path / "robot.urdf")
        yield Doubt("wrong gravity", "LWA3", robot, (di.read_log(path / "log_train.csv.gz"),), "hopeless", "gravity")


def no_delay(folder: Path) -> Iterator[Doubt]:
    path = DATA / "dvrk_mtm"
    if path.exists():
        robot, log = di.load_robot(path / "robot.yaml"), di.read_log(path / "log_one.csv.gz")
        for start, stop in ((0.0, 15.0), (15.0, 30.0), (0.0, 30.0)):
            yield Doubt(
                "no delay",
                f"MTM {start:g} to {stop:g} s",
                robot,
                (log.window(log.time[0] + start, log.time[0] + stop),),
                "sound",
            )


def excited(folder: Path) -> Iterator[Doubt]:
    for name in ("ur10e", "panda", "puma560", "tx40", "sr400", "cmu-dd-arm-3", "cylindrical", "pendulum-2"):
        robot = di.load_robot(name)
        for seed in (1, 2):
            motion = di.optimize_excitation(robot, duration=8.0, seed=seed, **QUICK).trajectory
            log = simulate(robot, motion, rate=RATE, seed=seed).log
            yield Doubt("excite's own", f"{name} seed {seed}", robot, (log,), "sound")


# ----------------------------------------------------------------------------------------------------------------------
# Small machines, integrated in steps of a fifth of a millisecond


def slides(n: int, folder: Path) -> Robot:
    """A gantry of slides along x, y and z, the last one vertical where there are three."""
    path = folder / f"slides{n}.yaml"
    lines = [
        "{name: x, antecedent: 0, sigma: 1, alpha: pi/2, theta: pi/2}",
        "{name: y, antecedent: 1, sigma: 1, alpha: pi/2, theta: pi/2}",
        "{name: z, antecedent: 2, sigma: 1, alpha: pi/2, theta: pi/2}",
    ][:n]
    joints = "\n".join(f"  - {line}" for line in lines)
    path.write_text(f"name: gantry-{n}\nconvention: modified-dh\ngravity: [0, 0, -9.81]\njoints:\n{joints}\n")
    return di.load_robot(path)


def pendulum(folder: Path) -> Robot:
    """A servo with an unbalanced link on a horizontal axis."""
    path = folder / "servo.yaml"
    path.write_text(
        "name: servo\nconvention: modified-dh\ngravity: [0, -9.81, 0]\njoints:\n  - {name: servo, antecedent: 0}\n"
    )
    return di.load_robot(path)


def relay_times(rng: np.random.Generator, duration: float, shortest: float, longest: float) -> Array:
    """When a switch is thrown."""
    return np.cumsum(rng.uniform(shortest, longest, int(duration / shortest)))


def ramped(side: float, wanted: float, dt: float, time: float = 0.004) -> float:
    """A switch that takes some milliseconds from one side to the other."""
    return side + float(np.clip(wanted - side, -2.0 * dt / time, 2.0 * dt / time))


def dry(v: float, push: float, level: float, stick: float, dt: float, mass: float) -> float:
    """Dry friction force of Karnopp: what holds a body at rest, up to the breakaway force."""
    if abs(v) < 1e-4 * 5:
        return float(np.clip(push, -stick, stick))
    return level * float(np.sign(v))


def gantry(folder: Path, seed: int) -> Doubt:
    """Three slides whose motors get full voltage of either sign: force is gain times voltage, braking is viscous."""
    rng, robot, dt, n = np.random.default_rng(seed), slides(3, folder), 1.0 / RATE / FINE, int(16.0 * RATE)
    mass, level, viscous = np.array([30.0, 20.0, 8.0]), np.array([40.0, 30.0, 15.0]), np.array([150.0, 100.0, 60.0])
    full, weight = np.array([400.0, 300.0, 200.0]), np.array([0.0, 0.0, 8.0 * GRAVITY])
    q, v, side = np.zeros(3), np.zeros(3), np.ones(3)
    wanted, until = np.ones(3), rng.uniform(0.1, 0.4, 3)
    qs, fs = np.zeros((n, 3)), np.zeros((n, 3))
    for k in range(n * FINE):
        if k % FINE == 0:
            qs[k // FINE], fs[k // FINE] = q, side * full
        now = k * dt
        for j in range(3):
            if now > until[j]:
                wanted[j], until[j] = -wanted[j], now + rng.uniform(0.1, 0.4)
                if abs(q[j]) > 0.4:  # back to the middle
                    wanted[j] = -np.sign(q[j])
            side[j] = ramped(side[j], wanted[j], dt)
        push = side * full - weight - viscous * v
        rub = np.array([dry(v[j], push[j], level[j], level[j], dt, mass[j]) for j in range(3)])
        v = v + dt * (push - rub) / mass
        q = q + dt * v
    log = noisy_positions(log_of(robot, np.arange(n) / RATE, qs, fs, "bang-bang"), seed)
    return Doubt("bang-bang voltage", f"gantry seed {seed}", robot, (log,), "sound")


def noisy_positions(log: Log, seed: int, step: float = 1e-5) -> Log:
    """Positions in steps of an encoder; what is commanded has no noise."""
    return replace(log, channels={k: step * np.round(x / step) if k[0] == "q" else x for k, x in log.channels.items()})


def cart(folder: Path, seed: int) -> Doubt:
    """A cart on a rail whose current a relay with hysteresis throws as it passes its places."""
    rng, robot, dt, n = np.random.default_rng(seed), slides(1, folder), 1.0 / RATE / FINE, int(20.0 * RATE)
    mass, level, viscous, full = 2.0, 3.0, 4.0, 12.0
    q, v, side, wanted, place, band = 0.0, 0.0, 1.0, 1.0, 0.0, 0.05
    qs, fs = np.zeros((n, 1)), np.zeros((n, 1))
    for k in range(n * FINE):
        if k % FINE == 0:
            qs[k // FINE], fs[k // FINE] = q, side * full
        if k % int(2.0 / dt) == 0:
            place, band = rng.uniform(-0.3, 0.3), rng.uniform(0.02, 0.1)
        if q > place + band:
            wanted = -1.0
        if q < place - band:
            wanted = 1.0
        side = ramped(side, wanted, dt)
        push = side * full - viscous * v
        v = v + dt * (push - dry(v, push, level, level, dt, mass)) / mass
        q = q + dt * v
    log = noisy_positions(log_of(robot, np.arange(n) / RATE, qs, fs, "relay"), seed)
    return Doubt("relay current", f"cart seed {seed}", robot, (log,), "sound")


def sticking(folder: Path, seed: int) -> Doubt:
    """A servo with integral action that sticks and slips along a slow motion."""
    rng, robot, dt, n = np.random.default_rng(seed), pendulum(folder), 1.0 / RATE / FINE, int(30.0 * RATE)
    inertia, moment, level, stick, viscous = 0.02, 0.5, 0.5, 1.2, 0.05
    gain, damping, integral = 20.0, 0.5, 30.0
    w = 2.0 * np.pi * rng.uniform(0.05, 0.3, 3)
    phase, size = rng.uniform(0, 6, 3), np.array([0.8, 0.3, 0.2])
    q, v, total = float((size * np.sin(phase)).sum()), 0.0, 0.0
    qs, fs = np.zeros((n, 1)), np.zeros((n, 1))
    tau = 0.0
    for k in range(n * FINE):
        if k % FINE == 0:
            now = k * dt
            wanted = float((size * np.sin(w * now + phase)).sum())
            total += integral * (wanted - q) / RATE
            tau = gain * (wanted - q) - damping * v + total
            qs[k // FINE], fs[k // FINE] = q, tau
        push = tau - moment * GRAVITY * np.cos(q) * 0.1 - viscous * v
        held = abs(v) < 5e-4
        rub = (
            float(np.clip(push, -stick, stick))
            if held
            else (level + (stick - level) * np.exp(-abs(v) / 0.05)) * np.sign(v)
        )
        after = v + dt * (push - rub) / inertia
        v = 0.0 if not held and after * v < 0.0 else after
        q = q + dt * v
    log = noisy_positions(log_of(robot, np.arange(n) / RATE, qs, fs, "sticking"), seed, 2.0 * np.pi / 2**14)
    return Doubt("sticking", f"servo seed {seed}", robot, (log,), "either")


def swinging(folder: Path, seed: int) -> Doubt:
    """A double pendulum that swings freely: its torque is a hundredth of what gravity takes and gives."""
    rng = np.random.default_rng(seed)

    def drive(t: float, w: Array, phase: Array) -> Array:
        return 0.01 * TORQUE * np.sin(w * t + phase)

    logs = [double_pendulum(rng, label, drive, seed, noise=0.002 * TORQUE) for label in ("swing 1", "swing 2")]
    return Doubt("free swinging", f"pendulum-2 seed {seed}", di.load_robot("pendulum-2"), tuple(logs), "sound")


def half_driven(folder: Path, seed: int) -> Doubt:
    """A double pendulum of which one joint has no motor, and no torque in its log."""
    rng, driven = np.random.default_rng(seed), seed % 2

    def drive(t: float, w: Array, phase: Array) -> Array:
        return 0.3 * TORQUE * np.sin(w * t + phase) * (np.arange(2) == driven)

    logs = [double_pendulum(rng, label, drive, seed, noise=0.0) for label in ("run 1", "run 2")]
    return Doubt("joint without motor", f"pendulum-2 seed {seed}", di.load_robot("pendulum-2"), tuple(logs), "sound")


TORQUE = 10.0  # [N·m] of a double pendulum's weight


def double_pendulum(
    rng: np.random.Generator, label: str, drive: Callable[[float, Array, Array], Array], seed: int, *, noise: float
) -> Log:
    """20 s of a double pendulum under a torque, with little friction."""
    robot, dt, n = di.load_robot("pendulum-2"), 1.0 / RATE, int(20.0 * RATE)
    (m1, m2), length = (1.0, 0.7), float(np.linalg.norm(robot.joints[1].before.translation))
    inertia, own = (m1 + m2) * length**2, 0.8  # [m] of the second mass from its joint

    def mass_and_bias(q: Array, v: Array) -> tuple[Array, Array]:
        c, s = np.cos(q[1]), np.sin(q[1])
        cross, tip = m2 * length * own, m2 * own**2
        M = np.array([[inertia + tip + 2.0 * cross * c, tip + cross * c], [tip + cross * c, tip]])
        spin = cross * s * np.array([-v[1] * (2.0 * v[0] + v[1]), v[0] ** 2])
        sides = np.array([np.sin(q[0]), np.sin(q[0] + q[1])])
        weight = GRAVITY * np.array([(m1 + m2) * length * sides[0] + m2 * own * sides[1], m2 * own * sides[1]])
        return M, spin + weight

    w, phase = rng.uniform(2.0, 6.0, 2), rng.uniform(0, 6, 2)

    def slope(x: Array, t: float) -> Array:
        M, bias = mass_and_bias(x[:2], x[2:])
        return np.concatenate([x[2:], np.linalg.solve(M, drive(t, w, phase) - 0.001 * TORQUE * x[2:] - bias)])

    x, rows = np.concatenate([rng.uniform(-1.5, 1.5, 2), np.zeros(2)]), np.zeros((n, 4))
    for k in range(n):
        t = k * dt
        rows[k] = *x[:2], *drive(t, w, phase)
        a = slope(x, t)
        b = slope(x + 0.5 * dt * a, t + 0.5 * dt)
        c = slope(x + 0.5 * dt * b, t + 0.5 * dt)
        x = x + dt / 6.0 * (a + 2 * b + 2 * c + slope(x + dt * c, t + dt))
    tau = rows[:, 2:] + noise * rng.standard_normal((n, 2))
    made = log_of(robot, dt * np.arange(n), rows[:, :2] + [np.pi, 0.0], tau, label)
    return noisy_positions(made, seed, 2 * np.pi / 2**16)


def short_runs(folder: Path) -> Iterator[Doubt]:
    """Cuts of sound logs of real arms: too short for much, and sound."""
    sets = [(data.name, data.robot(folder), data.logs) for name in REAL if (data := dataset(name)) is not None]
    for name in ("dvrk_mtm", "schunk_lwa3"):
        if (DATA / name).exists():
            (path,) = (DATA / name).glob("log*.csv.gz")
            sets.append((name, di.load_robot(DATA / name / "robot.yaml"), (di.read_log(path),)))
    for name, robot, logs in sets:
        for log in logs:
            first, last = float(log.time[0]), float(log.time[-1])
            for seconds in (4.0, 8.0, 16.0):
                for start in np.linspace(first, last - seconds, 4) if last - first > seconds else ():
                    cut = log.window(start, start + seconds)
                    where = f"{name} {log.label} {start - first:.0f} + {seconds:g} s"
                    yield Doubt("short run", where, robot, (cut,), "sound", meant=(log,))


def poor_logs(folder: Path) -> Iterator[Doubt]:
    """The small machines of `small_machines.py` and `hostile_machines.py`, whose logs are poor and right."""
    sys.path.insert(0, str(Path(__file__).parent))
    from benchmarks.small_machines import MACHINES

    for name, make in MACHINES.items():
        for seed in range(3):
            robot, logs = make(seed)
            yield Doubt("poor log", f"{name} seed {seed}, both logs", robot, tuple(logs), "sound")
            yield Doubt("poor log", f"{name} seed {seed}, one log", robot, (logs[0],), "sound")


def small_machines(folder: Path) -> Iterator[Doubt]:
    for seed in (1, 2, 3):
        yield gantry(folder, seed)
        yield cart(folder, seed)
        yield sticking(folder, seed)
        yield swinging(folder, seed)
        yield half_driven(folder, seed)


KINDS: Mapping[str, Callable[[Path], Iterator[Doubt]]] = {
    "wrong robot": wrong_robots,
    "currents": currents,
    "motor side": motor_side,
    "wraps": wraps,
    "negative damping": negative_damping,
    "clamps": clamps,
    "wrong gravity": wrong_gravity,
    "no delay": no_delay,
    "excite": excited,
    "small machines": small_machines,
    "short runs": short_runs,
    "poor logs": poor_logs,
}


def doubts(folder: Path) -> Iterator[Doubt]:
    """All of them; those on real logs only where the data is there."""
    for make in KINDS.values():
        yield from make(folder)


# ----------------------------------------------------------------------------------------------------------------------
# What was claimed of them

_NAMING = ("units", "order", "sign", "scale", "clock", "gravity")
_HEDGES = ("these logs cannot tell", "say that no sign is wrong")


def wrong_claims(found: Diagnosis, right: str = "") -> list[str]:
    """What a diagnosis proposes or names with confidence, though nothing of it is right.

    Args:
        found: The diagnosis of a doubt.
        right: Key of the overlay that would be right, such as "gravity".
    """
    claims = [f"fix {dict(one.fix)}" for one in found.diagnostics if one.fix.keys() - {right, "locked"}]
    for one in found.diagnostics:
        if one.severity == "ok" or one.fix.keys() & {right, "locked"}:
            continue
        named = one.name in _NAMING and not any(words in one.message for words in _HEDGES)
        delayed = one.name == "delay" and "correct the stamps" in one.message
        loaded = one.name == "agreement" and one.severity == "stop"
        if named or delayed or loaded:
            claims.append(f"{one.severity} {one.name}: {one.message}")
    return claims
