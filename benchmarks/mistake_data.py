"""Sound logs to make mistakes in: those of real robots, where the data is there, and simulated ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.logs.log import Log
from dynident.payload.body import Payload
from dynident.plant.protocol import UnstableError
from dynident.plant.simulation import simulate
from dynident.robot.model import Robot
from dynident.robot.storage import yaml_text

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIMULATED = ("ur10e", "puma560", "sr400", "tx40")
DURATION = 8.0  # [s] of a simulated log
QUICK = {"starts": 2, "kicks": 0, "iterations": 10}  # a fair motion will do
MOTIONS = ("alike", "one way")  # that tell too little
LOAD = {"ur10e": 5.0, "puma560": 2.0, "sr400": 8.0, "tx40": 1.0}  # [kg]


@dataclass(frozen=True)
class Dataset:
    """Sound logs of one robot.

    Attributes:
        name: In the table.
        base: Robot file or bundled name.
        logs: The logs.
        keys: Keys of an overlay that the robot needs, such as its drive gains.
        others: Logs of the same robot for single kinds of mistakes: "load", "alike", "one way".
    """

    name: str
    base: str
    logs: tuple[Log, ...]
    keys: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Log] = field(default_factory=dict)

    def robot(self, folder: Path, more: Mapping[str, Any] | None = None) -> Robot:
        """The robot with `more` keys of an overlay on top, written into a folder."""
        path = folder / "robot.yaml"
        path.write_text(yaml_text({"base": self.base, **self.keys, **(more or {})}))
        return di.load_robot(path)


def _read(folder: str, names: Sequence[str]) -> tuple[Log, ...]:
    return tuple(di.read_log(DATA / folder / f"{name}.csv.gz", label=name) for name in names)


def _ur10e() -> Dataset:
    gains = [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]  # [N·m/A]
    logs = _read("ur10e", ("exc_30s_12h", "exc_40s_12h", "exc_50s_14h_unloaded"))
    (loaded,) = _read("ur10e", ("exc_50s_14h_loaded",))
    return Dataset("UR10e", str(DATA / "ur10e" / "robot.urdf"), logs, {"drive_gains": gains}, {"load": loaded})


def _panda() -> Dataset:
    return Dataset("Panda", str(DATA / "franka_panda" / "robot.urdf"), _read("franka_panda", ("log_a", "log_b")))


def _lwr4() -> Dataset:
    return Dataset("LWR4+", str(DATA / "kuka_lwr4" / "robot.urdf"), _read("kuka_lwr4", ("log2", "log3_part_a")))


def _tx40(side: str) -> Dataset:
    return Dataset(f"TX40 {side}", "tx40", _read("staubli_tx40", (f"log_{side}_a",)))


def _tiago() -> Dataset:
    gains = [1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]  # [N·m/A]
    return Dataset(
        "TIAGo", str(DATA / "tiago_arm" / "robot.urdf"), _read("tiago_arm", ("log_a",)), {"drive_gains": gains}
    )


REAL: dict[str, tuple[str, Callable[[], Dataset]]] = {
    "ur10e": ("ur10e", _ur10e),
    "panda": ("franka_panda", _panda),
    "lwr4": ("kuka_lwr4", _lwr4),
    "tx40-motor": ("staubli_tx40", lambda: _tx40("motor")),
    "tx40-joint": ("staubli_tx40", lambda: _tx40("joint")),
    "tiago": ("tiago_arm", _tiago),
}


def dataset(name: str) -> Dataset | None:
    """The dataset of a name of `names`; None where its data is absent."""
    if name.startswith("sim-"):
        return simulated(name.removeprefix("sim-"))
    folder, make = REAL[name]
    return make() if (DATA / folder).exists() else None


def names() -> tuple[str, ...]:
    """All datasets: real ones, then simulated ones."""
    return (*REAL, *(f"sim-{name}" for name in SIMULATED))


@dataclass(frozen=True)
class Waves:
    """A motion of two sines per joint about the middle of its range.

    Attributes:
        middle: (n_joints,) [rad or m].
        size: (n_joints,) amplitude of the slower one, half as much for the faster one.
        frequencies: (2, n_joints) [Hz].
        drift: (n_joints,) steady velocity on top [rad/s or m/s].
        duration: [s].
    """

    middle: Array
    size: Array
    frequencies: Array
    drift: Array
    duration: float = DURATION

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at times t, (len(t), n_joints) each."""
        q = self.middle + np.outer(t - 0.5 * self.duration, self.drift)
        dq, ddq = np.zeros_like(q) + self.drift, np.zeros_like(q)
        for share, own in zip((1.0, 0.5), 2.0 * np.pi * self.frequencies, strict=True):
            wave = np.outer(t, own)
            q, dq = q + share * self.size * np.sin(wave), dq + share * self.size * own * np.cos(wave)
            ddq = ddq - share * self.size * own**2 * np.sin(wave)
        return q, dq, ddq


def waves(robot: Robot, kind: str) -> Waves:
    """Sines of different frequencies; for "alike" joints 1 and 2 share theirs, for "one way" joint 1 only advances."""
    low, high = np.array(
        [(joint.limits.lower or -2.0, joint.limits.upper or 2.0) for joint in (robot.joints[i] for i in robot.active)]
    )[list(robot.moving)].T
    n = len(low)
    size = np.minimum(0.15 * (high - low), 0.5)
    frequencies = np.array([0.25 + 0.06 * np.arange(n), 0.6 + 0.09 * np.arange(n)])
    drift = np.zeros(n)
    if kind == "alike":
        frequencies[:, 1] = frequencies[:, 0]
    if kind == "one way":  # more than the sines take back
        size[0] *= 0.1
        drift[0] = 1.3 * size[0] * float(2.0 * np.pi * (frequencies[0, 0] + 0.5 * frequencies[1, 0]))
    return Waves(0.5 * (low + high), size, frequencies, drift)


def simulated(name: str, *, values: Mapping[str, float] | None = None, seed: int = 0, others: bool = True) -> Dataset:
    """Two motions of a bundled robot on the MuJoCo plant, with noise and encoders.

    Args:
        name: Of the robot.
        values: What the machine really is; default the robot's own values.
        seed: Of the noise.
        others: Whether logs for single kinds of mistakes are wanted as well.
    """
    robot = di.load_robot(name)
    kinds = ("q", "dq", "i" if robot.drive.gains is not None else "tau")
    motions = [
        di.optimize_excitation(robot, duration=DURATION, values=values, seed=s, **QUICK).trajectory for s in (1, 2)
    ]

    def run(label: str, motion: Any, **options: Any) -> Log:
        made = simulate(robot, motion, kinds=kinds, rate=250.0, values=values, seed=seed + len(label), **options).log
        return Log(label, "", made.time, made.channels, label=label)

    logs = tuple(run(f"motion {i}", motion) for i, motion in enumerate(motions, start=1))
    more = {}
    body = Payload(LOAD.get(name, 1.0), (0.0, 0.05, 0.1), (0.0,) * 6)
    wanted = {"load": (motions[1], {"payload": body}), **{kind: (waves(robot, kind), {}) for kind in MOTIONS}}
    for kind, (motion, options) in wanted.items() if others else ():
        with suppress(UnstableError):  # a motion that is too fast for the drives: the kind is left out
            more[kind] = run(kind, motion, **options)
    return Dataset(f"{name} simulated", name, logs, {}, more)


def clean_simulated() -> Iterator[tuple[str, Robot, list[Log]]]:
    """More sound logs: other motions, seeds, noise and controllers."""
    ways: dict[str, dict[str, Any]] = {
        "noise 3 %": {"noise": 0.03},
        "no noise, exact positions": {"noise": 0.0, "encoder": 0.0},
        "coarse encoders, pd": {"encoder": 2**14, "controller": "pd", "bandwidth": 40.0},
        "bias 5 %, delay 4 ms": {"bias": 0.05, "delay": 0.004},
    }
    for name in (*SIMULATED, "panda"):
        robot = di.load_robot(name)
        for seed, (words, options) in enumerate(ways.items(), start=11):
            motion = di.optimize_excitation(robot, duration=DURATION, seed=seed, **QUICK).trajectory
            yield f"{name}, {words}", robot, [simulate(robot, motion, seed=seed, **options).log]
