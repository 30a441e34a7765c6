"""Hysteresis of friction: what it does while a joint turns back, in the model and in the data."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array, Mask

REACH = 0.05  # [rad] to either side in time of a reversal that a loop shows
_OF_RANGE = 0.2  # share of a joint's range that it shows at most
_BEYOND = 1.3  # times the reach that a joint must go both ways: near the next reversal, filters mix the two
_EACH = 2  # loops of a joint, for each direction of its reversals
_POINTS = 61  # of a loop
_LOOKED_AT = 40  # reversals of a block that are tried


class Loops:
    """Friction around reversals, gathered log by log.

    Args:
        units: (n_joints,) what counts as a radian at each joint.
        ranges: (n_joints,) range of the positions [rad or m].
    """

    def __init__(self, units: Array, ranges: Array) -> None:
        self.reach = np.minimum(REACH * units, _OF_RANGE * ranges)
        self._found: dict[tuple[int, int], list[Array]] = {}
        self._log: dict[tuple[int, int], int] = {}

    def next_log(self) -> None:
        """Every log may give as many loops as are shown."""
        self._log = {}

    def look(self, q: Array, measured: Array, model: Array, inner: Mask) -> None:
        """Reversals in a block of samples, (n_samples, n_joints) each; those across its borders are passed over."""
        for joint, position in enumerate(q.T):
            if self.reach[joint] <= 0.0:
                continue
            steps = np.diff(position)
            turns = 1 + np.flatnonzero(steps[:-1] * steps[1:] < 0.0)
            for turn in turns[:: max(1, len(turns) // _LOOKED_AT)]:
                key = joint, int(np.sign(steps[turn]))
                if self._log.get(key, 0) >= _EACH:
                    continue
                signals = np.stack([position, measured[:, joint], model[:, joint]])
                loop = self._loop(signals, turn, self.reach[joint], inner)
                if loop is not None:
                    self._log[key] = self._log.get(key, 0) + 1
                    self._found.setdefault(key, []).append(loop)

    def _loop(self, signals: Array, turn: int, reach: float, inner: Mask) -> Array | None:
        away = np.abs(signals[0] - signals[0, turn])
        first, last = _side(away[turn::-1], reach), _side(away[turn:], reach)
        if first is None or last is None or not inner[turn - first : turn + last + 1].all():
            return None
        own = slice(turn - first, turn + last + 1)
        places = np.linspace(own.start, own.stop - 1, _POINTS)
        return np.array(
            [np.interp(places, np.arange(own.start, own.stop), signal[own]) - shift
             for signal, shift in zip(signals, (signals[0, turn], 0.0, 0.0), strict=True)]
        )  # fmt: skip

    def found(self) -> tuple[Array, Array]:
        """Loops (n_loops, 3, n_points) and the number of each one's joint; of many logs, evenly chosen ones."""
        loops, joints = [np.zeros((0, 3, _POINTS))], []
        for (joint, _), own in sorted(self._found.items(), key=lambda item: item[0]):
            chosen = [own[i] for i in np.unique(np.linspace(0, len(own) - 1, _EACH).astype(int))]
            loops.append(np.array(chosen))
            joints += [float(joint)] * len(chosen)
        return np.concatenate(loops), np.array(joints)


def _side(away: Array, reach: float) -> int | None:
    """Samples from a reversal, on one side, until the joint is as far as the reach; None if it turns again soon."""
    far = np.flatnonzero(away > _BEYOND * reach)
    if not len(far) or (np.diff(away[: far[0] + 1]) < 0.0).any():
        return None
    return int(np.argmax(away > reach))
