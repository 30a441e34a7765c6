"""`MotionTally`: which joints move, how fast, and whether the measured speeds are those of the positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, frozen
from dynident.check.raw import kind_of, number_of
from dynident.check.tally import Flags

WINDOW = 0.05  # [s] over which positions are averaged, so that steps of an encoder are no motion
REST = 0.01  # [rad/s or m/s] a slower joint is at rest, as in the fit


@dataclass(frozen=True)
class Motion:
    """How the joints of a log move; joints by number.

    Attributes:
        joints: Joints with a position.
        kind: "q", or "qm" for positions of motor shafts.
        moving: Share of the samples in which each of them moves.
        rest: Share of the samples in which none moves.
        fastest: Largest speed of each, over a window [rad/s or m/s].
        speeds: Joints whose measured speed was compared.
        measured: Largest measured speed of each of these, over a window.
        match: (n_speeds, n_joints) correlation of measured speeds with those of the positions.
        slope: (n_speeds,) measured speed per speed of the own position; NaN if that never moves.
    """

    joints: tuple[int, ...]
    kind: str
    moving: Mapping[int, float]
    rest: float
    fastest: Mapping[int, float]
    speeds: tuple[int, ...]
    measured: Mapping[int, float]
    match: Array
    slope: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "match", frozen(self.match))
        object.__setattr__(self, "slope", frozen(self.slope))


class MotionTally:
    """Motion so far.

    Positions and the integrals of measured speeds are averaged over the same short windows, and the differences from
    window to window are compared: both have then passed the same filter, whatever the stamps are like.

    Args:
        names: Name of each row of a block.
        step: Typical step of time [s].
        gap: A longer step is a gap [s].
        gears: Turns of the motor per turn of each joint, by its number; for positions of motor shafts.
    """

    def __init__(self, names: Sequence[str], step: float, gap: float, gears: Mapping[int, float]) -> None:
        kinds = {kind_of(name) for name in names}
        self.kind = "qm" if "qm" in kinds and "q" not in kinds else "q"
        place = {name: row for row, name in enumerate(names)}
        self.joints = tuple(sorted(number_of(name) for name in names if kind_of(name) == self.kind))
        self.speeds = tuple(j for j in self.joints if f"d{self.kind}{j}" in place)
        self.positions = [place[f"{self.kind}{j}"] for j in self.joints]
        self._rates = [place[f"d{self.kind}{j}"] for j in self.speeds]
        gear = [abs(gears.get(j, 1.0)) if self.kind == "qm" else 1.0 for j in self.joints]
        self._rest = REST * np.array(gear)[:, None]
        self._size = max(1, round(WINDOW / step)) if step > 0.0 else 1
        self._gap = gap
        n, m = len(self.joints), len(self.speeds)
        self._travel, self._rate = np.zeros((m, 1)), np.zeros((m, 1))  # integral and value of the last speeds
        self._window = np.full((1 + n + m, 1), math.nan)  # means of time, positions and integrals in the last window
        self._sound = False  # whether that can be compared with the next
        self._moving, self._any, self._n = np.zeros(n, dtype=np.int64), 0, 0
        self._fastest, self._measured = np.zeros(n), np.zeros(m)
        self._qq, self._vq, self._vv = np.zeros(n), np.zeros((m, n)), np.zeros(m)

    def feed(self, time: Array, steps: Array, block: Array) -> Flags:
        """The next samples: stamps, steps to them and all rows; returns whether each joint moves, (n_joints, n)."""
        q, broken = block[self.positions], ~((steps > 0.0) & (steps <= self._gap))
        travel, faulty = self._integral(np.where(broken, 0.0, steps), block[self._rates])
        edges = np.arange(0, len(time), self._size)
        if len(edges) > 1 and len(time) - edges[-1] < self._size / 2:
            edges = edges[:-1]  # what is left over joins the last window
        counts = np.diff(edges, append=len(time))
        with np.errstate(invalid="ignore"):
            means = np.add.reduceat(np.vstack([time, q, travel]), edges, axis=1) / counts
        sound = np.add.reduceat((broken | faulty).astype(np.int64), edges) == 0
        moving = np.repeat(self._compare(means, sound), counts, axis=1)
        self._moving += np.count_nonzero(moving, axis=1)
        self._any += int(np.count_nonzero(moving.any(0)))
        self._n += len(time)
        return moving

    def _integral(self, steps: Array, rates: Array) -> tuple[Array, Flags]:
        """Where the measured speeds lead, (n_speeds, n), and where one of them is no number, (n,)."""
        faulty = ~np.isfinite(rates)
        rates = np.where(faulty, 0.0, rates)
        mean = 0.5 * (np.hstack([self._rate, rates[:, :-1]]) + rates)
        travel = self._travel + np.cumsum(mean * steps, axis=1)
        self._travel, self._rate = travel[:, -1:], rates[:, -1:]
        unusable: Flags = np.logical_or.reduce(faulty, axis=0)
        return travel, unusable

    def _compare(self, means: Array, sound: Flags) -> Flags:
        """Take in the windows of a block, (1 + n_joints + n_speeds, n); returns which joints move in which window."""
        n = len(self.joints)
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.diff(means, axis=1, prepend=self._window)
            speed = change[1:] / change[0]
        together = sound & np.concatenate([[self._sound], sound[:-1]]) & np.isfinite(change).all(0)
        self._window, self._sound = means[:, -1:], bool(sound[-1])
        speed = np.where((change[0] > 0.0) & np.isfinite(speed), np.abs(speed), 0.0)
        moves = speed[:n] > self._rest
        moves[:, :-1] |= moves[:, 1:]  # a window moves with the way into it and out of it
        dq, dp = change[1 : 1 + n, together], change[1 + n :, together]
        self._fastest = np.maximum(self._fastest, speed[:n, together].max(1, initial=0.0))
        self._measured = np.maximum(self._measured, speed[n:, together].max(1, initial=0.0))
        self._qq += np.einsum("jn,jn->j", dq, dq)
        self._vv += np.einsum("jn,jn->j", dp, dp)
        self._vq += np.einsum("in,jn->ij", dp, dq)  # too little for the threads of a matrix product
        return moves

    def finish(self) -> Motion:
        """The record."""
        own = [self.joints.index(j) for j in self.speeds]
        sizes = np.sqrt(np.outer(self._vv, self._qq))
        with np.errstate(invalid="ignore", divide="ignore"):
            match = np.where(sizes > 0.0, self._vq / sizes, 0.0)
            slope = self._vq[np.arange(len(own)), own] / self._qq[own]
        return Motion(
            joints=self.joints,
            kind=self.kind,
            moving={j: float(k) / max(1, self._n) for j, k in zip(self.joints, self._moving, strict=True)},
            rest=1.0 - self._any / max(1, self._n),
            fastest=dict(zip(self.joints, self._fastest.tolist(), strict=True)),
            speeds=self.speeds,
            measured=dict(zip(self.speeds, self._measured.tolist(), strict=True)),
            match=match,
            slope=slope,
        )
