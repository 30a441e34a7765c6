"""Mistakes that people make with columns, each as a map from what was logged to what was meant.

Maps act on the channels of a log (q or qm, tau, taum or i): every meant channel is one logged channel times a number.
`Wiring` carries them over to the joints and to the rows of the equations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.diagnostics.trial import TrialSamples
from dynident.logs.log import Log, channel_names, torque_kind
from dynident.robot.model import Robot

_SCALES = (0.5, 0.75, 1.35, 2.0)  # of one joint's positions or torques, or of the clock; the best is then refined
_DEGREE = math.pi / 180.0


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """What the columns of a log may mean.

    Attributes:
        positions: (n, n) meant positions from logged ones, by channel.
        torques: The same for torques.
        clock: Length of a logged second [s].
        upside_down: Whether gravity points the other way.
        gravity: Gravity in the base frame [m/s²] where it points elsewhere; None where it does not.
        item: Name of the diagnostic: units, order, sign, scale, clock; empty for several mistakes together.
        words: The mistake, in words.
        free: The number that can be refined: "positions", "torques", "both" (a gear ratio), "clock" or "".
        place: Channel whose number can be refined.
    """

    positions: Array
    torques: Array
    clock: float = 1.0
    upside_down: bool = False
    gravity: tuple[float, ...] | None = None
    item: str = ""
    words: str = ""
    free: str = ""
    place: int = -1

    @classmethod
    def as_logged(cls, n: int) -> Hypothesis:
        """All columns of n joints mean what they say."""
        return cls(np.eye(n), np.eye(n))

    def then(self, more: Hypothesis) -> Hypothesis:
        """With one more mistake corrected."""
        positions, torques = more.positions @ self.positions, more.torques @ self.torques
        return Hypothesis(positions, torques, more.clock * self.clock, self.upside_down != more.upside_down)

    def read(self, samples: TrialSamples, wiring: Wiring) -> TrialSamples:
        """Samples of a log with positions, clock and torques as they are meant."""
        to_joints, about = wiring.at_joints(self.positions).T, wiring.zero
        q, dq = (samples.q - about) @ to_joints + about, samples.dq @ to_joints / self.clock
        ddq, tau = samples.ddq @ to_joints / self.clock**2, samples.tau @ wiring.at_rows(self.torques).T
        return replace(samples, q=q, dq=dq, ddq=ddq, tau=tau)

    def refine(self, size: float) -> Hypothesis:
        """The same mistake with another number."""
        n = len(self.positions)
        more, less = (np.eye(n) if self.free == "clock" else _scaling(n, {self.place: x}) for x in (size, 1.0 / size))
        return replace(
            self,
            positions=more if self.free in ("positions", "both") else np.eye(n),
            torques=less if self.free == "both" else more if self.free == "torques" else np.eye(n),
            clock=size if self.free == "clock" else 1.0,
        )

    @property
    def changed(self) -> Mask:
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
            own = self.robot.moving_coupling.T
            return np.asarray(np.linalg.solve(own, torques @ own))
        gains = self.robot.drive.gear_ratios if self.torque == "taum" else self.robot.drive.gains
        assert gains is not None
        return np.asarray(gains[moving][:, None] * torques / gains[moving])

    def names(self, kind: str) -> list[str]:
        """Names of the channels of a kind: q1, q2, ..."""
        return channel_names(kind, self.robot)

    def in_small_units(self, joints: Sequence[int]) -> Hypothesis:
        """Positions of some joints in degrees or millimeters."""
        n = len(self.robot.joint_names)
        kinds = [joint.kind for joint in self.robot.moving_joints]
        sizes = {j: _DEGREE if kinds[j] == "revolute" else 1e-3 for j in joints}
        return Hypothesis(_scaling(n, sizes), np.eye(n), item="units")

    def hypotheses(self) -> Iterator[Hypothesis]:
        """The mistakes worth trying."""
        joints = [name.removeprefix("q") for name in self.robot.position_names]
        n, one = len(joints), np.eye(len(joints))

        def guess(item: str, words: str, positions: Array = one, torques: Array = one, **more: Any) -> Hypothesis:
            return Hypothesis(positions, torques, item=item, words=words, **more)

        for a, joint in enumerate(joints):
            flip = _scaling(n, {a: -1.0})
            yield guess("sign", f"torque of joint {joint} has the wrong sign", torques=flip)
            yield guess("sign", f"position of joint {joint} has the wrong sign", flip)
            yield guess("sign", f"joint {joint} turns the other way, position and torque", flip, flip)
        yield guess("sign", "all torques have the wrong sign", torques=-one)
        yield guess("sign", "all positions have the wrong sign", -one)
        if np.any(self.robot.gravity):
            yield guess("gravity", "gravity points the other way", upside_down=True)
        for a, b in itertools.combinations(range(n), 2):
            pair = f"{joints[a]} and {joints[b]}"
            swap = one[[{a: b, b: a}.get(c, c) for c in range(n)]]
            yield guess("order", f"positions of joints {pair} are swapped", swap)
            yield guess("order", f"torques of joints {pair} are swapped", torques=swap)
            yield guess("order", f"joints {pair} are swapped, position and torque", swap, swap)
        if n > 2:
            back = np.ascontiguousarray(one[::-1])
            yield guess("order", "positions run from the tip to the base", back)
            yield guess("order", "torques run from the tip to the base", torques=back)
            yield guess("order", "joints run from the tip to the base", back, back)
        revolute = [joint.kind == "revolute" for joint in self.robot.moving_joints]
        if any(revolute):
            turning = [a for a in range(n) if revolute[a]]
            yield guess("units", "positions are in degrees", _scaling(n, dict.fromkeys(turning, _DEGREE)))
            radians = _scaling(n, dict.fromkeys(turning, 1.0 / _DEGREE))
            yield guess("units", "positions are in radians, not degrees", radians)
        for a, joint in enumerate(joints):
            unit, words = (_DEGREE, "degrees") if revolute[a] else (1e-3, "millimeters")
            yield guess("units", f"position of joint {joint} is in {words}", _scaling(n, {a: unit}))
        for size in _SCALES:
            yield guess("clock", "time has the wrong scale", clock=size, free="clock")
            for a, joint in enumerate(joints):
                more, where = _scaling(n, {a: size}), f"joint {joint}"
                words, free, torques = f"position of {where} has the wrong scale", "positions", one
                if self.position == "qm":
                    words = f"gear ratio of {where} is wrong"
                    if self.torque == "taum":  # a gear ratio stands in both
                        free, torques = "both", _scaling(n, {a: 1.0 / size})
                yield guess("scale", words, more, torques, free=free, place=a)
                wrong = f"torque of {where} has the wrong scale"
                yield guess("scale", wrong, torques=more, free="torques", place=a)


def column_rules(names: list[str], total: Array, wanted: Array) -> dict[str, Any]:
    """Column rules for a map of channels.

    Args:
        names: Channels of one kind.
        total: (n, n) meant channels from logged ones.
        wanted: (n, n) the part of it that is asked for: only channels that it changes are in the rules.
    """
    changed = {i for i in range(len(names)) if not np.array_equal(wanted[i], np.eye(len(names))[i])}
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


def _scaling(n: int, sizes: Mapping[int, float]) -> Array:
    """(n, n) channels times their sizes."""
    return np.diag([sizes.get(a, 1.0) for a in range(n)])
