"""Mistakes that people make with columns, each as a map from what was logged to what was meant.

Maps act on the channels of a log (q or qm, tau, taum or i): every meant channel is one logged channel times a number.
`Wiring` carries them over to the joints and to the rows of the equations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.logs.log import Log, channel_names, torque_kind
from dynident.robot.model import Robot

_SCALES = (0.5, 0.75, 1.35, 2.0)  # of one joint's positions or torques, or of the clock; the best is then refined
_DEGREE = math.pi / 180.0


@dataclass(frozen=True, eq=False)
class Explanation:
    """What may have happened to the columns of a log.

    Attributes:
        item: Name of the item in a check-up: units, order, sign, scale, clock.
        words: The mistake, in words.
        positions: (n, n) meant positions from logged ones, by channel.
        torques: The same for torques.
        clock: Length of a logged second [s].
        free: The number that can be refined: "positions", "torques", "both" (a gear ratio), "clock" or "".
        place: Channel whose number can be refined.
        upside_down: Whether gravity points the other way.
        gravity: Gravity in the base frame [m/s²] where it points elsewhere; None where it does not.
    """

    item: str
    words: str
    positions: Array
    torques: Array
    clock: float = 1.0
    free: str = ""
    place: int = -1
    upside_down: bool = False
    gravity: tuple[float, ...] | None = None

    @property
    def touched(self) -> Mask:
        """(n,) channels that it changes."""
        one = np.eye(len(self.positions))
        return np.asarray((self.positions != one).any(1) | (self.torques != one).any(1))

    @property
    def size(self) -> float:
        """The number that can be refined."""
        if self.free == "clock":
            return self.clock
        return float((self.torques if self.free == "torques" else self.positions)[self.place, self.place])


@dataclass(frozen=True, eq=False)
class Wiring:
    """How the channels of logs reach the joints and the rows of the equations.

    Attributes:
        robot: The robot.
        position: Kind of the position channels, q or qm.
        torque: Kind of the torque channels, tau, taum or i.
    """

    robot: Robot
    position: str
    torque: str

    @classmethod
    def of(cls, log: Log, robot: Robot) -> Wiring:
        """That of a log."""
        return cls(robot, "q" if log.has("q", robot) else "qm", torque_kind(log, robot))

    @property
    def zero(self) -> Array:
        """(n,) joint positions at which the position channels are zero."""
        zero = self.robot.zero[list(self.robot.moving)]
        return np.zeros_like(zero) if self.position == "q" else zero

    def at_joints(self, positions: Array) -> Array:
        """A map of position channels as one of joint positions about their zeros, (n, n)."""
        if self.position == "q":
            return positions
        to_motors = self.robot.drive.gear_ratios[:, None] * self.robot.coupling
        return np.asarray(np.linalg.solve(to_motors, positions @ to_motors))

    def at_rows(self, torques: Array) -> Array:
        """A map of torque channels as one of the torques of the rows, (n, n)."""
        moving = list(self.robot.moving)
        if self.torque == "tau":
            own = self.robot.coupling[np.ix_(moving, moving)].T
            return np.asarray(np.linalg.solve(own, torques @ own))
        gains = self.robot.drive.gear_ratios if self.torque == "taum" else self.robot.drive.gains
        assert gains is not None
        return np.asarray(gains[moving][:, None] * torques / gains[moving])

    def names(self, kind: str) -> list[str]:
        """Names of the channels of a kind: q1, q2, ..."""
        return channel_names(kind, self.robot)

    def explanations(self) -> Iterator[Explanation]:
        """The mistakes worth trying."""
        n = len(self.robot.joint_names)
        one = np.eye(n)
        joints = [name.removeprefix("q") for name in self.robot.position_names]
        yield from self._signs(n, joints)
        if np.any(self.robot.gravity):
            yield Explanation("gravity", "gravity points the other way", one, one, upside_down=True)
        for a, b in itertools.combinations(range(n), 2):
            pair = f"{joints[a]} and {joints[b]}"
            swap = _permuted(n, {a: b, b: a})
            yield Explanation("order", f"positions of joints {pair} are swapped", swap, one)
            yield Explanation("order", f"torques of joints {pair} are swapped", one, swap)
            yield Explanation("order", f"joints {pair} are swapped, position and torque", swap, swap)
        if n > 2:
            back = np.ascontiguousarray(one[::-1])
            yield Explanation("order", "positions run from the tip to the base", back, one)
            yield Explanation("order", "torques run from the tip to the base", one, back)
            yield Explanation("order", "joints run from the tip to the base", back, back)
        yield from self._units(n, joints)
        yield from self._scales(n, joints)

    def _signs(self, n: int, joints: list[str]) -> Iterator[Explanation]:
        one = np.eye(n)
        for a in range(n):
            flip = _scaled(n, {a: -1.0})
            yield Explanation("sign", f"torque of joint {joints[a]} has the wrong sign", one, flip)
            yield Explanation("sign", f"position of joint {joints[a]} has the wrong sign", flip, one)
            both = f"joint {joints[a]} turns the other way, position and torque"
            yield Explanation("sign", both, flip, flip)
        yield Explanation("sign", "all torques have the wrong sign", one, -one)
        yield Explanation("sign", "all positions have the wrong sign", -one, one)

    def _units(self, n: int, joints: list[str]) -> Iterator[Explanation]:
        one = np.eye(n)
        turning = [self.robot.joints[self.robot.active[i]].kind == "revolute" for i in self.robot.moving]
        if any(turning):
            every = _scaled(n, {a: _DEGREE for a in range(n) if turning[a]})
            yield Explanation("units", "positions are in degrees", every, one)
            back = _scaled(n, {a: 1.0 / _DEGREE for a in range(n) if turning[a]})
            yield Explanation("units", "positions are in radians, not degrees", back, one)
        for a in range(n):
            unit = _DEGREE if turning[a] else 1e-3
            words = "degrees" if turning[a] else "millimetres"
            yield Explanation("units", f"position of joint {joints[a]} is in {words}", _scaled(n, {a: unit}), one)

    def _scales(self, n: int, joints: list[str]) -> Iterator[Explanation]:
        one = np.eye(n)
        for size in _SCALES:
            yield Explanation("clock", "time has the wrong scale", one, one, size, "clock")
            for a in range(n):
                more, where = _scaled(n, {a: size}), f"joint {joints[a]}"
                words, free, torques = f"position of {where} has the wrong scale", "positions", one
                if self.position == "qm":
                    words = f"gear ratio of {where} is wrong"
                    if self.torque == "taum":  # a gear ratio stands in both
                        free, torques = "both", _scaled(n, {a: 1.0 / size})
                yield Explanation("scale", words, more, torques, 1.0, free, a)
                yield Explanation("scale", f"torque of {where} has the wrong scale", one, more, 1.0, "torques", a)


def refined(given: Explanation, size: float) -> Explanation:
    """The same mistake with another number."""
    n = len(given.positions)
    one = np.eye(n)
    more, less = (one if given.free == "clock" else _scaled(n, {given.place: x}) for x in (size, 1.0 / size))
    positions = more if given.free in ("positions", "both") else one
    torques = less if given.free == "both" else more if given.free == "torques" else one
    clock = size if given.free == "clock" else 1.0
    return Explanation(given.item, given.words, positions, torques, clock, given.free, given.place)


def column_rules(names: list[str], total: Array, touched: Array) -> dict[str, Any]:
    """Column rules for a map of channels.

    Args:
        names: Channels of one kind.
        total: (n, n) meant channels from logged ones.
        touched: (n, n) the part of it that is wanted: only channels that it changes are in the rules.
    """
    changed = {i for i in range(len(names)) if not np.array_equal(touched[i], np.eye(len(names))[i])}
    rules: dict[str, Any] = {}
    for meant in changed:
        logged = int(np.argmax(np.abs(total[meant])))
        size = float(total[meant, logged])
        rules[names[logged]] = _rule(names[meant], size)
    return rules


def _rule(channel: str, size: float) -> Mapping[str, Any] | str:
    if math.isclose(size, _DEGREE):
        return {"column": channel, "unit": "deg" if channel.startswith("q") else "deg/s"}
    return channel if size == 1.0 else {"column": channel, "scale": float(f"{size:.6g}")}


def _permuted(n: int, where: Mapping[int, int]) -> Array:
    """Channel a is meant to be what channel where[a] holds."""
    return np.eye(n)[[where.get(a, a) for a in range(n)]]


def _scaled(n: int, sizes: Mapping[int, float]) -> Array:
    return np.diag([sizes.get(a, 1.0) for a in range(n)])
