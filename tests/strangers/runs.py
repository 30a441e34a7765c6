"""Runs of arms that Pinocchio alone simulates, kept on disk, and logs of them with fresh noise.

A run is one period of a motion under PD control with the feedforward of the description, which is 10 to 20 % off.
Torque is a straight line between control samples at 1 kHz, and what is logged is its value at the very instant at which
the positions are read: torque and positions of a log without delay agree in time exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pinocchio as pin

import dynident as di
from dynident.plant import Payload
from dynident.robot.model import Robot
from tests.robots import tree_model
from tests.strangers import stranger as strangers
from tests.strangers.pinocchio_plant import PinocchioPlant
from tests.strangers.stranger import HERE, Stranger, moving_joints

CACHE = HERE.parents[1] / "build" / "coverage"
RATE = 1000  # [Hz] of the controller; logs take every so manieth sample
LEAD = 2.0  # [s] before a run in which the loop settles; slowest mode below: exp(-20 * 2)
BANDWIDTH = 20.0  # [rad/s] of the feedback
SOFT = 0.05  # [rad/s] within which the friction that is fed forward turns over
SLIDE = 0.1  # [m] that count as one radian
DITHER = 0.3  # of an encoder's step: noise of positions, so that each repeat rounds otherwise
FALLING, FALLING_VELOCITY = 0.4, 0.15  # Tustin's law: share of Fc, and velocity [rad/s; slides a tenth of it in m/s]
LOAD = 0.08  # dry friction per torque of the links
LAWS: dict[str, dict[str, float]] = {  # of dry friction beside Coulomb's
    "coulomb": {},
    "falling": {"falling": FALLING},
    "load": {"load": LOAD},
    "both": {"falling": FALLING, "load": LOAD},
}
OFFSET = 0.2  # of Fc, with either sign: Fo

# File, rotors that are described over those of the machine, and what the machine has: mass and inertia over those that
# are described, link by link, and rotors [kg·m², slides kg].
FROM_URDF: dict[str, tuple[str, float, tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    "skewed_arm": ("skewed.urdf", 1.15, strangers.SKEWED_MASS, strangers.SKEWED_INERTIA, strangers.SKEWED_ROTOR),
    "pinocchio_arm": ("six.urdf", 0.87, strangers.SIX_MASS, strangers.SIX_INERTIA, strangers.SIX_ROTOR),
    # P P R R: a long slide, a slide that lifts, two skewed turns.
    "gantry_arm": ("gantry.urdf", 1.15, (1.15, 0.86, 1.18, 0.84), (0.88, 1.14, 0.9, 1.16), (6.0, 8.0, 0.25, 0.04)),
    # 5R with skewed axes and rotors heavier than its links.
    "light_arm": (
        "light.urdf",
        1.15,
        (0.86, 1.17, 0.85, 1.15, 0.84),
        (1.12, 0.88, 1.15, 0.9, 1.14),
        (0.12, 0.14, 0.06, 0.012, 0.01),
    ),
}


@dataclass(frozen=True)
class Run:
    """One period of a motion at `RATE`, and what came before it, without noise.

    Attributes:
        time: (n,) from -`LEAD` to the period [s]; the run itself begins at zero.
        q, dq, tau: (n, n_joints) positions, velocities and torques at those instants.
        period: [s]. The state returns to itself after it.
    """

    time: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    period: float


@cache
def scara() -> Stranger:
    """The standing SCARA, whose frames have z along their axes as Pinocchio's have."""
    own = strangers.scara()
    model = tree_model(own.described.with_values("truth", own.truth))
    model.armature = _values(own.truth, "Ia", model.nv)
    return _on_pinocchio("scara", own.described, own.truth, model)


@cache
def _from_urdf(name: str) -> Stranger:
    """An arm of which Pinocchio reads the description itself."""
    file, rotor_factor, mass, inertia, rotor = FROM_URDF[name]
    robot, model = di.load_robot(HERE / file), strangers._machine(HERE / file, mass, inertia, rotor)
    described = robot.with_values("owner", {**robot.value_set(), **strangers._rotors(rotor, rotor_factor)})
    return _on_pinocchio(name, described, strangers._truth(robot, model, rotor), model)


ARMS: dict[str, Callable[[], Stranger]] = {"scara": scara, **{name: partial(_from_urdf, name) for name in FROM_URDF}}


def body(arm: Stranger) -> Payload:
    """A payload for the tool, a fifth heavier than the arm's last link."""
    mass = 1.2 * arm.truth[f"M{len(arm.described.joints)}"]
    a, b, c = 0.045, 0.05, 0.04  # [m] radii of gyration; some products beside them
    inertia = mass * np.array([a**2, 0.1 * a * b, -0.05 * a * c, b**2, 0.05 * b * c, c**2])
    center = np.array([0.03, -0.02, 0.05])
    return Payload(float(mass), tuple(center), tuple(float(x) for x in inertia))


def run(name: str, seed: int, period: float, width: float = 0.0, *, loaded: bool = False, law: str = "coulomb") -> Run:
    """An arm along a motion of its own, from disk where it has been simulated before.

    Args:
        name: One of `ARMS`.
        seed: Of the motion.
        period: [s].
        width: Velocity within which dry friction turns over [rad/s; slides a tenth of it in m/s]; 0 for a sign.
        loaded: Whether the tool carries `body`.
        law: Of dry friction, one of `LAWS`.
    """
    own = ("runs.py", "pinocchio_plant.py", "stranger.py")
    sources = sorted([*(HERE / source for source in own), *HERE.glob("*.urdf"), *HERE.glob("*.yaml")])
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    key.update(repr((name, seed, period, width, loaded, law)).encode())
    path = CACHE / f"{name}-{seed}-{key.hexdigest()[:16]}.npz"
    if path.exists():
        with np.load(path) as kept:
            return Run(*(kept[x] for x in ("time", "q", "dq", "tau")), period)
    arm = ARMS[name]()
    found = simulate(arm, seed, period, width, body(arm) if loaded else None, law=law)
    CACHE.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{np.random.default_rng().integers(2**31)}.part.npz")  # others may write the same run
    np.savez(part, time=found.time, q=found.q, dq=found.dq, tau=found.tau)
    part.rename(path)
    return found


def simulate(
    arm: Stranger,
    seed: int,
    period: float,
    width: float = 0.0,
    payload: Payload | None = None,
    step: float = 1e-3,
    law: str = "coulomb",
) -> Run:
    """The run itself; `step` is the longest of its integration [s]."""
    robot, n = arm.described, len(arm.torque_noise)
    time = np.arange(-round(LEAD * RATE), round(period * RATE) + 1) / RATE
    wanted, dwanted, ddwanted = arm.motion(seed, period).sample(np.mod(time, period))
    values, nominal = robot.value_set(), tree_model(robot)
    nominal.armature = _values(values, "Ia", n)
    data, unit = nominal.createData(), np.where(_slides(robot), SLIDE, 1.0)
    given = np.array([pin.rnea(nominal, data, *state) for state in zip(wanted, dwanted, ddwanted, strict=True)])
    given += _values(values, "Fv", n) * dwanted + _values(values, "Fc", n) * np.tanh(dwanted / (SOFT * unit))
    inertia = np.diag(pin.crba(nominal, data, wanted[0]))
    stiffness, damping = BANDWIDTH**2 * inertia, 2.0 * BANDWIDTH * inertia
    friction = {**LAWS[law], "falling_velocity": FALLING_VELOCITY * unit}
    plant = arm.plant(noise=False, width=width * unit, payload=payload, sample_time=1.0 / RATE, step=step, **friction)
    plant.reset(wanted[0], dwanted[0])
    plant.apply_torque(given[0])
    q, dq, tau = np.zeros((3, len(time), n))
    for k in range(len(time)):
        reading = plant.read()
        q[k], dq[k], tau[k] = reading.q, reading.dq, reading.tau
        ahead = min(k + 1, len(time) - 1)  # a command is reached when the next one comes
        plant.apply_torque(given[ahead] + stiffness * (wanted[k] - q[k]) + damping * (dwanted[k] - dq[k]))
        plant.step()
    return Run(time, q, dq, tau, period)


def measured(
    arm: Stranger, run: Run, rate: int, repeats: int, seed: int, *, delay: float = 0.0, joined: bool = False
) -> list[di.Log]:
    """Logs of a run that was made several times: fresh noise and encoder phases each time.

    Args:
        arm: Whose sensors.
        run: Its run.
        rate: [Hz], a divisor of `RATE`.
        repeats: How often the motion was made.
        seed: Of the noise.
        delay: By which torque is logged too late [s]: at t, torque of t - delay. Exact, since torque is a line there.
        joined: One log of all periods instead of one log each.
    """
    rng, n = np.random.default_rng([seed, rate, repeats]), run.q.shape[1]
    begin = round(LEAD * RATE)
    rows = slice(begin, -1, RATE // rate)  # the state at the end of the period is that of its beginning
    time = run.time[rows]
    torque = np.column_stack([np.interp(time - delay, run.time, run.tau[:, j]) for j in range(n)])
    step, parts = arm.resolution, []
    for _ in range(repeats):
        phase = rng.uniform(-0.5, 0.5, n) * step
        dithered = run.q[rows] + DITHER * step * rng.standard_normal((len(time), n))
        counted = np.round((dithered + phase) / step) * step - phase
        parts.append((counted, torque + arm.torque_noise * rng.standard_normal(torque.shape)))
    if joined:
        parts = [tuple(np.vstack(own) for own in zip(*parts, strict=True))]
    logs = []
    for k, (q, tau) in enumerate(parts):
        channels = {f"{kind}{j + 1}": x[:, j] for kind, x in (("q", q), ("tau", tau)) for j in range(n)}
        label = f"{arm.name} {seed}.{k}"
        logs.append(di.Log(label, label, np.arange(len(q)) / rate, channels))
    return logs


def _on_pinocchio(name: str, described: Robot, truth, model: pin.Model) -> Stranger:
    coulomb = _values(truth, "Fc", model.nv)
    offset = OFFSET * coulomb * np.where(np.arange(model.nv) % 2, -1.0, 1.0)
    truth = {**truth, **{f"Fo{j + 1}": float(x) for j, x in enumerate(offset)}}

    def make(described, values, noise, resolution, **options):
        viscous, coulomb, offset = (_values(values, symbol, model.nv) for symbol in ("Fv", "Fc", "Fo"))
        return PinocchioPlant(
            described, model, viscous, coulomb, offset=offset, torque_noise=noise, resolution=resolution, **options
        )

    return strangers._stranger(name, described, truth, make)


def _values(values, symbol: str, n: int) -> np.ndarray:
    return np.array([values.get(f"{symbol}{j + 1}", 0.0) for j in range(n)])


def _slides(robot: Robot) -> np.ndarray:
    return np.array([joint.kind == "prismatic" for joint in moving_joints(robot)])
