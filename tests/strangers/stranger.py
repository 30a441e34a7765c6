"""The standing strangers: three arms that are not bundled, on which every experiment and estimator is tried.

None is described right: masses, centers, inertias and friction that their owners have are 10 to 20 % off. What the
machine really is, `truth`, is simulated by MuJoCo (scara, skewed arm) or by Pinocchio alone (Pinocchio arm), never by
the equations that identify it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin

import dynident as di
from dynident.plant import Feedforward, MujocoPlant, Plant, Sensors
from dynident.plant.recording import record
from dynident.robot.model import Robot
from tests.strangers.pinocchio_plant import PinocchioPlant

HERE = Path(__file__).parent
TURN = 2.0 * np.pi / 2**17  # [rad] step of an encoder with 17 bits per turn
SLIDE = 1.0 / 2**17  # [m] of a slide's
SHARE = 0.002  # standard deviation of measured torque over the effort limit
SAMPLE_TIME = 2e-3  # [s]

# What the machine is over what its owner says, link by link: mass, inertia about the center of mass.
SKEWED_MASS = (1.18, 0.84, 1.15, 0.86, 1.2, 0.82, 1.17)
SKEWED_INERTIA = (0.9, 1.15, 0.85, 1.12, 0.88, 1.2, 0.84)
SKEWED_ROTOR = (0.9, 0.8, 0.45, 0.3, 0.12, 0.06, 0.03)  # [kg·m²] at the joint
SIX_MASS = (0.85, 1.16, 0.88, 1.18, 0.84, 1.15)
SIX_INERTIA = (1.12, 0.9, 1.15, 0.86, 1.18, 0.9)
SIX_ROTOR = (1.6, 1.5, 0.6, 0.12, 0.08, 0.04)
FRICTION = 1.15  # friction of the machine over that of the description


@dataclass(frozen=True)
class Stranger:
    """An arm as its owner describes it, and the machine that it really is.

    Attributes:
        name: Its name.
        described: What its owner hands in.
        truth: Standard parameters of the machine by name: rigid links, Ia, Fv, Fc.
        torque_noise: (n,) standard deviation of the measured torque [N·m or N].
        resolution: (n,) of the encoders [rad or m].
    """

    name: str
    described: Robot
    truth: Mapping[str, float]
    torque_noise: np.ndarray
    resolution: np.ndarray
    _make: Callable[..., Plant]

    def values(self, *, friction: bool = True) -> dict[str, float]:
        """`truth`, or the same machine without friction."""
        return {name: x for name, x in self.truth.items() if friction or not name.startswith(("Fv", "Fc"))}

    def plant(self, seed: int = 0, *, friction: bool = True, noise: bool = True, **options: object) -> Plant:
        """The machine; `options` go to its plant (sample_time, motors, payload, payload_at)."""
        options.setdefault("sample_time", SAMPLE_TIME)
        sensors = (self.torque_noise, self.resolution) if noise else (0.0, 0.0)
        return self._make(self.described, self.values(friction=friction), *sensors, seed=seed, **options)

    def motion(self, seed: int = 0, duration: float = 12.0) -> di.trajectories.Fourier:
        """A motion through most of the joint ranges within velocity limits, from rest to rest."""
        return _motion(self.described, seed, duration)

    def log(self, seed: int = 0, **options: object) -> di.Log:
        """A log, q and tau, of a motion of its own under PD control with the description's feedforward."""
        return _log(self.name, seed, tuple(sorted(options.items())))

    def held_log(self, seed: int, held: Sequence[int], **options: object) -> di.Log:
        """A log in which brakes hold some joints, by their places, at poses of their own; MuJoCo.

        A brake leaves the motor no torque; the encoder shows one reading.
        """
        return _held_log(self.name, seed, tuple(held), tuple(sorted(options.items())))

    def base_truth(self, base: di.BaseParameters, *, friction: bool = True) -> np.ndarray:
        """True values of base parameters."""
        return np.asarray(base.base_values(self.values(friction=friction)))


@dataclass(frozen=True)
class Calibration:
    """Errors in stated standard deviations.

    Attributes:
        names: Of the parameters, one per error.
        off: (n,) (estimate - truth) / standard deviation.
    """

    names: tuple[str, ...]
    off: np.ndarray

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.off**2)))

    @property
    def worst(self) -> tuple[str, float]:
        k = int(np.argmax(np.abs(self.off)))
        return self.names[k], float(self.off[k])

    def __add__(self, other: Calibration) -> Calibration:
        return Calibration(self.names + other.names, np.concatenate([self.off, other.off]))

    def cells(self) -> tuple[str, ...]:
        """Numbers, rms, how many are beyond four and beyond six, the worst."""
        name, off = self.worst
        beyond = [str(int(np.sum(np.abs(self.off) > limit))) for limit in (4.0, 6.0)]
        return str(len(self.off)), f"{self.rms:.2f}", *beyond, f"{name} {off:+.1f}"

    def __str__(self) -> str:
        numbers, rms, four, six, worst = self.cells()
        return f"{numbers} numbers, rms {rms}, {four} beyond four, {six} beyond six, worst {worst}"


def calibration(names, values, std, truth) -> Calibration:
    """Errors in standard deviations; a number without a finite positive standard deviation is an error of the test."""
    values, std, truth = (np.asarray(x, float) for x in (values, std, truth))
    assert np.isfinite(values).all(), f"not finite: {np.array(names)[~np.isfinite(values)]}"
    assert np.all((std > 0.0) & np.isfinite(std)), f"no standard deviation: {np.array(names)[~(std > 0.0)]}"
    return Calibration(tuple(names), (values - truth) / std)


def moving_joints(robot: Robot) -> list:
    """The joints that move on their own, in the order of `robot.joint_names`."""
    return [robot.joints[robot.active[i]] for i in robot.moving]


def robot_limits(robot: Robot, key: str) -> np.ndarray:
    """(n_moving,) limits: lower, upper, velocity or effort."""
    return np.array([getattr(joint.limits, key) for joint in moving_joints(robot)], float)


@cache
def scara() -> Stranger:
    """R R P R with a vertical slide that has dry friction; MuJoCo."""
    robot = di.load_robot(HERE / "scara.yaml")
    return _stranger("scara", robot, robot.value_set("machine"), _mujoco)


@cache
def skewed_arm() -> Stranger:
    """7R with skewed axes, masses off by up to 20 %; MuJoCo."""
    robot = di.load_robot(HERE / "skewed.urdf")
    machine = _machine(HERE / "skewed.urdf", SKEWED_MASS, SKEWED_INERTIA, SKEWED_ROTOR)
    described = robot.with_values("owner", {**robot.value_set(), **_rotors(SKEWED_ROTOR, 1.15)})
    return _stranger("skewed_arm", described, _truth(robot, machine, SKEWED_ROTOR), _mujoco)


@cache
def pinocchio_arm() -> Stranger:
    """6R simulated by Pinocchio alone: sharp Coulomb friction, 17-bit encoders, 500 Hz."""
    robot = di.load_robot(HERE / "six.urdf")
    machine = _machine(HERE / "six.urdf", SIX_MASS, SIX_INERTIA, SIX_ROTOR)
    described = robot.with_values("owner", {**robot.value_set(), **_rotors(SIX_ROTOR, 0.87)})

    def make(described, values, noise, resolution, **options):
        viscous, coulomb = ([values.get(f"{symbol}{j + 1}", 0.0) for j in range(machine.nv)] for symbol in ("Fv", "Fc"))
        return PinocchioPlant(
            described, machine, viscous, coulomb, torque_noise=noise, resolution=resolution, **options
        )

    return _stranger("pinocchio_arm", described, _truth(robot, machine, SIX_ROTOR), make)


@cache
def closed_loop() -> Stranger:
    """The bundled SR400, whose parallelogram and coupled wrist every method must bear; MuJoCo."""
    bundled = di.load_robot("sr400")
    truth = bundled.value_set("plant")
    rng = np.random.default_rng(7)
    # One factor for all numbers of a link: a body stays physically consistent.
    factors = {j: 1.0 + rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.2) for j in ("m6", *"123456789")}
    described = {name: x * factors["m6" if name.endswith("m6") else name[-1]] for name, x in truth.items()}
    return _stranger("sr400", bundled.with_values("owner", described), truth, _mujoco)


STRANGERS: dict[str, Callable[[], Stranger]] = {
    "scara": scara,
    "skewed_arm": skewed_arm,
    "pinocchio_arm": pinocchio_arm,
}
ROBOTS = {**STRANGERS, "sr400": closed_loop}


@cache
def _log(name: str, seed: int, options: tuple[tuple[str, object], ...]) -> di.Log:
    """Simulated once, for every method that uses it."""
    stranger = ROBOTS[name]()
    control = Feedforward(stranger.described, stranger.motion(seed))
    return record(stranger.plant(seed, **dict(options)), control, kinds=("q", "tau"), label=f"{name} {seed}")


@cache
def _held_log(name: str, seed: int, held: tuple[int, ...], options: tuple[tuple[str, object], ...]) -> di.Log:
    stranger = ROBOTS[name]()
    robot, rng = stranger.described, np.random.default_rng([seed, *held])
    lower, upper = (robot_limits(robot, key) for key in ("lower", "upper"))
    at = np.round(rng.uniform(0.7 * lower + 0.3 * upper, 0.3 * lower + 0.7 * upper), 3)
    locked = robot.lock(**{robot.joint_names[j]: float(at[j]) for j in held}) if held else robot
    keep = [j for j in range(len(at)) if j not in held]
    sensors = (stranger.torque_noise[keep], stranger.resolution[keep])
    plant = _mujoco(locked, stranger.values(), *sensors, seed=seed, sample_time=SAMPLE_TIME, **dict(options))
    log = record(
        plant, Feedforward(locked, _motion(locked, seed, 12.0)), kinds=("q", "tau"), label=f"{name} {seed} {held}"
    )
    channels = dict(log.channels)
    for j in held:
        number = robot.position_names[j].removeprefix("q")
        channels[f"q{number}"] = np.full(len(log.time), at[j])
        channels[f"tau{number}"] = rng.normal(size=len(log.time)) * stranger.torque_noise[j]
    return replace(log, channels=channels)


def _stranger(name: str, robot: Robot, truth: Mapping[str, float], make: Callable[..., Plant]) -> Stranger:
    slides = np.array([joint.kind == "prismatic" for joint in moving_joints(robot)])
    return Stranger(
        name, robot, dict(truth), SHARE * robot_limits(robot, "effort"), np.where(slides, SLIDE, TURN), make
    )


def _mujoco(described, values, noise, resolution, *, seed=0, **options):
    sensors = Sensors(resolution=resolution, torque_noise=noise)
    return MujocoPlant(described, values, sensors=sensors, seed=seed, **options)


def _machine(path: Path, mass, inertia, rotor) -> pin.Model:
    """The model of a URDF with other masses, inertias and rotors."""
    model = pin.buildModelFromUrdf(str(path))
    for j in range(1, model.njoints):
        own = model.inertias[j]
        model.inertias[j] = pin.Inertia(own.mass * mass[j - 1], own.lever, own.inertia * inertia[j - 1] * mass[j - 1])
    model.armature = np.array(rotor, float)
    return model


def _rotors(rotor, factor: float) -> dict[str, float]:
    return {f"Ia{j + 1}": factor * x for j, x in enumerate(rotor)}


def _truth(robot: Robot, machine: pin.Model, rotor) -> dict[str, float]:
    """Standard parameters by name from Pinocchio's own ten numbers of a link, and friction."""
    truth = dict(_rotors(rotor, 1.0))
    for j in range(1, machine.njoints):
        m, mx, my, mz, xx, xy, yy, xz, yz, zz = machine.inertias[j].toDynamicParameters()
        numbers = {"XX": xx, "XY": xy, "XZ": xz, "YY": yy, "YZ": yz, "ZZ": zz, "MX": mx, "MY": my, "MZ": mz, "M": m}
        truth |= {f"{symbol}{j}": float(x) for symbol, x in numbers.items()}
    friction = {name: FRICTION * x for name, x in robot.value_set().items() if name.startswith(("Fv", "Fc"))}
    return truth | friction


@cache
def _motion(robot: Robot, seed: int, duration: float, candidates: int = 6) -> di.trajectories.Fourier:
    """Of some random series that use the limits, the one whose regressor is best conditioned."""
    lower, upper, velocity = (robot_limits(robot, key) for key in ("lower", "upper", "velocity"))
    middle, reach = 0.5 * (lower + upper), 0.45 * (upper - lower)
    base = di.base_parameters(robot, "rigid,Ia,Fv,Fo")
    best, least = None, np.inf
    for k in range(candidates):
        rng = np.random.default_rng([seed, k])
        sine, cosine = rng.normal(size=(2, 5, len(lower)))
        raw = di.trajectories.Fourier.at_rest(
            np.zeros(len(lower)), sine, cosine, frequency=1.0 / duration, length=duration
        )
        q, dq, ddq = raw.sample(np.linspace(0.0, duration, 400))
        scale = np.minimum(reach / np.ptp(q, axis=0) * 2.0, 0.7 * velocity / np.abs(dq).max(axis=0))
        offset = middle - scale * 0.5 * (q.max(axis=0) + q.min(axis=0))
        W = base.regressor(offset + scale * q, scale * dq, scale * ddq).reshape(-1, base.n)
        condition = np.linalg.cond(W / np.linalg.norm(W, axis=0))
        if condition < least:
            least, best = condition, (offset, scale * raw.sine, scale * raw.cosine)
    offset, sine, cosine = best
    return di.trajectories.Fourier(
        frequency=1.0 / duration, length=duration, offset=offset, sine=sine, cosine=cosine, joints=robot.joint_names
    )
