"""Mistakes that people make with logs and robot files, and what the diagnostics must say about each.

Every kind is a function of a dataset and its robot that gives cases: one, or one for each joint, each pair of
neighbors or each log.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from benchmarks.mistake_data import Dataset

from dynident.arrays import Array
from dynident.logs.log import Log, channel_names, torque_kind
from dynident.robot.model import Robot

DEGREE = math.pi / 180.0
COLUMNS = ("units", "order", "sign", "scale", "clock", "gravity", "torque", "velocity", "limits")


@dataclass(frozen=True)
class Case:
    """A mistake in a dataset.

    Attributes:
        kind: Of mistake.
        where: Joint, pair or log.
        logs: The logs as the user gives them.
        says: What an diagnostic must say: pairs of its name and a pattern; one of them is enough.
        keys: What is wrong in the robot file, as keys of an overlay.
        about: Items that are about it, whatever they say; default those of `says`.
        number: What the number in the pattern's group must be, and how far off it may be; where no overlay can correct.
        overlay: Whether an overlay can correct it.
        meant: The logs as they should be; default those of the dataset.
    """

    kind: str
    where: str
    logs: tuple[Log, ...]
    says: tuple[tuple[str, str], ...]
    keys: Mapping[str, Any] = field(default_factory=dict)
    about: tuple[str, ...] = ()
    number: tuple[float, float] | None = None
    overlay: bool = True
    meant: tuple[Log, ...] | None = None

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items that are about it."""
        return self.about or tuple(name for name, _ in self.says)


class Wires:
    """Names of the channels of a dataset, joint by joint.

    Args:
        data: The dataset.
        robot: Its robot.
    """

    def __init__(self, data: Dataset, robot: Robot) -> None:
        first = data.logs[0]
        position = "q" if first.has("q", robot) else "qm"
        self.data, self.robot = data, robot
        self.velocities = first.has(f"d{position}", robot)
        self.motor = position == "qm"
        self.torque_kind = torque_kind(first, robot)
        self.q = channel_names(position, robot)
        self.dq = channel_names(f"d{position}", robot) if self.velocities else []
        self.tau = channel_names(self.torque_kind, robot)
        self.numbers = [name.removeprefix("q") for name in robot.position_names]
        self.turning = [robot.joints[robot.active[i]].kind == "revolute" for i in robot.moving]

    @property
    def joints(self) -> Iterator[tuple[int, str]]:
        """Place and number of each joint."""
        return enumerate(self.numbers)

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """Neighbors."""
        return itertools.pairwise(range(len(self.numbers)))

    def motion(self, place: int) -> list[str]:
        """Position and, if measured, velocity of a joint."""
        return [self.q[place], *self.dq[place : place + 1]]

    def everywhere(self, change: Callable[[Log], Log]) -> tuple[Log, ...]:
        """All logs changed."""
        return tuple(change(log) for log in self.data.logs)

    def made(self, change: Callable[[Array], Array], name: str) -> tuple[Log, ...]:
        """All logs with one channel made into something else."""
        return tuple(changed(log, change, name) for log in self.data.logs)

    def scaled(self, sizes: Mapping[str, float]) -> tuple[Log, ...]:
        """All logs with some channels times a number."""
        return self.everywhere(lambda log: scaled(log, sizes))

    def renamed(self, names: Mapping[str, str]) -> tuple[Log, ...]:
        """All logs with channels under the names of others."""
        return self.everywhere(lambda log: renamed(log, names))


def scaled(log: Log, sizes: Mapping[str, float]) -> Log:
    """A log with some channels times a number."""
    return replace(log, channels={name: sizes.get(name, 1.0) * x for name, x in log.channels.items()})


def renamed(log: Log, names: Mapping[str, str]) -> Log:
    """A log with channels under the names of others."""
    return replace(log, channels={names.get(name, name): x for name, x in log.channels.items()})


def changed(log: Log, change: Callable[[Array], Array], *names: str) -> Log:
    """A log with some channels made into something else."""
    return replace(log, channels={name: change(x) if name in names else x for name, x in log.channels.items()})


def swap(*pairs: tuple[str, str]) -> dict[str, str]:
    """Names for each other's channels."""
    return {**dict(pairs), **{b: a for a, b in pairs}}


def all_in_degrees(w: Wires) -> Iterator[Case]:
    names = [name for j, _ in w.joints if w.turning[j] for name in w.motion(j)]
    logs = w.scaled(dict.fromkeys(names, 1.0 / DEGREE))
    yield Case("all positions in degrees", "", logs, (("units", "positions are in degrees"),), about=COLUMNS)


def one_in_degrees(w: Wires) -> Iterator[Case]:
    for j, number in w.joints:
        if w.turning[j]:
            logs = w.scaled(dict.fromkeys(w.motion(j), 1.0 / DEGREE))
            says = (("units", f"position of joint {number} is in degrees"), ("limits", f"qm?{number} .* in degrees"))
            yield Case("one position in degrees", f"joint {number}", logs, says, about=COLUMNS)


def swapped(w: Wires) -> Iterator[Case]:
    for a, b in w.pairs:
        both = f"{w.numbers[a]} and {w.numbers[b]}"
        motion = swap(*zip(w.motion(a), w.motion(b), strict=True))
        torque = swap((w.tau[a], w.tau[b]))
        for kind, names, words in (
            ("positions swapped", motion, f"positions of joints {both} are swapped"),
            ("torques swapped", torque, f"torques of joints {both} are swapped"),
            ("joints swapped", {**motion, **torque}, f"joints {both} are swapped, position and torque"),
        ):
            yield Case(kind, f"joints {both}", w.renamed(names), (("order", words),), about=COLUMNS)


def reversed_order(w: Wires) -> Iterator[Case]:
    names = {a: b for own in (w.q, w.dq, w.tau) for a, b in zip(own, own[::-1], strict=True)}
    yield Case("order reversed", "", w.renamed(names), (("order", "joints run from the tip"),), about=COLUMNS)


def flipped(w: Wires) -> Iterator[Case]:
    for j, number in w.joints:
        motion, torque = w.motion(j), [w.tau[j]]
        for kind, names, words in (
            ("torque flipped", torque, f"torque of joint {number} has the wrong sign"),
            ("position flipped", motion, f"position of joint {number} has the wrong sign"),
            ("axis flipped", [*motion, *torque], f"joint {number} turns the other way"),
        ):
            yield Case(kind, f"joint {number}", w.scaled(dict.fromkeys(names, -1.0)), (("sign", words),), about=COLUMNS)
    says = (("sign", "all torques have the wrong sign"),)
    yield Case("all torques flipped", "", w.scaled(dict.fromkeys(w.tau, -1.0)), says, about=COLUMNS)


def wrong_scale(w: Wires) -> Iterator[Case]:
    for j, number in w.joints:
        if w.motor:
            ratios = [float(x) for x in w.robot.drive.gear_ratios]
            ratios[j] *= 1.5
            says = (("scale", f"gear ratio of joint {number} is wrong"),)
            yield Case(
                "gear ratio 1.5 times", f"joint {number}", w.data.logs, says, {"gear_ratios": ratios}, about=COLUMNS
            )
        else:
            says = (("scale", f"position of joint {number} has the wrong scale"),)
            logs = w.scaled(dict.fromkeys(w.motion(j), 1.5))
            yield Case("gear ratio 1.5 times", f"joint {number}", logs, says, about=COLUMNS)
        says = (("scale", f"torque of joint {number} has the wrong scale"),)
        yield Case("one torque doubled", f"joint {number}", w.scaled({w.tau[j]: 2.0}), says, about=COLUMNS)


def torque_meant(w: Wires) -> Iterator[Case]:
    """Currents, motor torque and another unit."""
    small = {"tau": "N·mm", "taum": "N·mm", "i": "in mA"}[w.torque_kind]
    thousand = w.scaled(dict.fromkeys(w.tau, 1e3))
    yield Case("torque in N·mm, current in mA", "", thousand, (("torque", small),))
    kind, n = "torque columns hold currents", len(w.numbers)
    says = (("torque", "hold motor currents"),)
    if w.torque_kind == "i":
        names = dict(zip(w.tau, channel_names("tau", w.robot), strict=True))
        yield Case(kind, "", w.renamed(names), says)
    elif w.torque_kind == "tau":
        gains = [12.0 - j for j in range(n)]
        logs = w.scaled({name: 1.0 / gains[j] for j, name in enumerate(w.tau)})
        yield Case(kind, "", logs, says, {"drive_gains": gains})
    if not np.allclose(np.abs(w.robot.drive.gear_ratios), 1.0) and w.torque_kind != "i":
        other = "tau" if w.torque_kind == "taum" else "taum"
        names = dict(zip(w.tau, channel_names(other, w.robot), strict=True))
        words = "it is that of the (motor shafts|joints)"
        yield Case("motor torque for joint torque", "", w.renamed(names), (("torque", words),))


def wrong_gravity(w: Wires) -> Iterator[Case]:
    g = [float(x) for x in w.robot.gravity]
    back, aside = [-x for x in g], [g[2], g[0], g[1]]
    about = ("gravity", *COLUMNS)
    yield Case("gravity upside down", "", w.data.logs, (("gravity", "other way"),), {"gravity": back}, about)
    yield Case("gravity sideways", "", w.data.logs, (("gravity", "."),), {"gravity": aside}, about)


def late(log: Log, names: Sequence[str], delay: float) -> Log:
    """A log with some channels stamped late."""

    def shift(x: Array) -> Array:
        return np.interp(log.time - delay, log.time, x)

    return changed(log, shift, *names)


def delayed(w: Wires) -> Iterator[Case]:
    logs = w.everywhere(lambda log: late(log, w.tau, 0.05))
    says = (("delay", r"torque is stamped about (\d+) ms after"),)
    yield Case("all torque 50 ms late", "", logs, says, number=(50.0, 12.0), overlay=False)
    for j, number in w.joints:
        one = tuple(late(log, [w.tau[j]], 0.04) for log in w.data.logs)
        words = rf"torque of joint {w.robot.joint_names[j]} comes about (\d+) ms later"
        yield Case(
            "one torque 40 ms late", f"joint {number}", one, (("delay", words),), number=(40.0, 12.0), overlay=False
        )


def wrong_time(w: Wires) -> Iterator[Case]:
    slow = w.everywhere(lambda log: replace(log, time=1e3 * log.time))
    yield Case("time in ms", "", slow, (("time", "in ms"),))
    twice = w.everywhere(lambda log: replace(log, time=2.0 * log.time))
    says = (("clock", "time has the wrong scale"), ("velocity", "as if the clock ran wrong"))
    yield Case("clock off by 2", "", twice, says, about=COLUMNS)


def wrong_rows(w: Wires) -> Iterator[Case]:
    def kept(log: Log, order: Array) -> Log:
        return log.samples(order)

    def holes(x: Array) -> Array:
        return np.where(np.arange(len(x)) % 500 == 250, np.nan, x)

    broken = w.everywhere(lambda log: changed(log, holes, w.tau[-1]))
    yield Case("numbers missing", "", broken, (("numbers", rf"'{w.tau[-1]}'"),), overlay=False)
    mixed = w.everywhere(lambda log: kept(log, np.r_[0:200, 240:280, 200:240, 280 : len(log)]))
    yield Case("rows out of order", "", mixed, (("time", "backwards once"),), overlay=False)

    def cut(log: Log) -> Log:
        middle = float(log.time[len(log) // 2])
        return log.samples((log.time < middle) | (log.time > middle + 1.0))

    gap = (("gaps", r"1 gap \(longest ([\d.]+) s"),)
    yield Case("a second missing", "", w.everywhere(cut), gap, number=(1.0, 0.05), overlay=False)

    def fourth(log: Log) -> Log:
        places = np.arange(len(log))
        places[3::4] -= 1
        return replace(log.samples(places), time=log.time)

    says = (("repeats", r"(\d+) % of the rows repeat"),)
    yield Case("every fourth row repeated", "", w.everywhere(fourth), says, number=(25.0, 6.0), overlay=False)
    short = w.everywhere(lambda log: log.window(log.time[0], log.time[0] + 1.0))[:1]
    says = (("equations", "use longer logs"), ("model", "."))
    yield Case("log of one second", "", short, says, overlay=False)


def wrong_channels(w: Wires) -> Iterator[Case]:
    for j in sorted({0, len(w.numbers) // 2, len(w.numbers) - 1}):  # one joint is like the other here
        number, tau, q = w.numbers[j], w.tau[j], w.q[j]
        where = f"joint {number}"
        dead = w.made(lambda x: 0.0 * x + 0.1, tau)
        yield Case("torque channel dead", where, dead, (("channels", rf"'{tau}' stays at 0\.1"),), overlay=False)
        stuck = w.made(lambda x: 0.0 * x + x[0], q)
        says = (
            ("channels", rf"'{q}' never changes|joint {number} never moves|joints [\d, ]*\b{number}\b[\d, ]* never"),
        )
        yield Case("position stuck", where, stuck, says, overlay=False)
        clip = w.made(clipped, tau)
        yield Case("torque clipped", where, clip, (("saturation", f"'{tau}'"),), overlay=False)
        rough = w.made(lambda x: rounded(x, 0.3), tau)
        yield Case("torque in coarse steps", where, rough, (("quantisation", f"'{tau}'"),), overlay=False)
        rough = w.made(lambda x: rounded(x, 0.02), q)
        yield Case("position in coarse steps", where, rough, (("quantisation", f"'{q}'"),), overlay=False)
    if w.velocities:
        names = [name for j, name in enumerate(w.dq) if w.turning[j]]
        logs = w.scaled(dict.fromkeys(names, 1.0 / DEGREE))
        yield Case("velocities in deg/s", "", logs, (("velocity", "in deg/s"),))


def clipped(x: Array) -> Array:
    """Without its outer tenths."""
    low, high = np.quantile(x, [0.1, 0.9])
    return np.clip(x, low, high)


def rounded(x: Array, share: float) -> Array:
    """In steps of a share of its standard deviation."""
    step = share * float(np.std(x))
    return x if step == 0.0 else step * np.round(x / step)


def other_logs(w: Wires) -> Iterator[Case]:
    """What is wrong between logs, and motions that tell too little."""
    others, logs = w.data.others, w.data.logs
    if "load" in others:
        mixed = (*logs[:-1], others["load"])
        says = (("agreement", "disagree"),)
        yield Case("one log with a load", "", mixed, says, overlay=False)
    if len(logs) > 1:
        for j, number in w.joints:
            odd = (*logs[:-1], scaled(logs[-1], {w.tau[j]: -1.0}))
            words = f"torque of joint {number} has the wrong sign.*the other logs are not like that"
            yield Case("torque flipped in one log", f"joint {number}", odd, (("sign", words),), about=COLUMNS)
    names = w.robot.joint_names
    if "alike" in others:
        says = (("independence", f"{names[0]} and {names[1]}"),)
        yield Case("two joints move alike", "", (others["alike"],), says, overlay=False)
    if "one way" in others:
        says = (("directions", f"only: {names[0]} "),)
        yield Case("a joint turns one way", "", (others["one way"],), says, overlay=False)
    rng = np.random.default_rng(0)

    def noisy(log: Log) -> Log:
        size = np.median([np.std(log.channels[name]) for name in w.q])
        return changed(log, lambda x: x + 0.02 * size * rng.standard_normal(len(x)), *w.q)

    yield Case("noisy positions", "", w.everywhere(noisy), (("bias", "biases"),), overlay=False)


KINDS = (
    *(all_in_degrees, one_in_degrees, swapped, reversed_order, flipped, wrong_scale, torque_meant, wrong_gravity),
    *(delayed, wrong_time, wrong_rows, wrong_channels, other_logs),
)


def cases(data: Dataset, robot: Robot) -> Iterator[Case]:
    """All mistakes in a dataset."""
    w = Wires(data, robot)
    for kind in KINDS:
        yield from kind(w)
