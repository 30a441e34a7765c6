"""Which mistakes explain logs better than their columns as named: the best one, then the best beside it, and so on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array
from dynident.diagnostics.hypotheses import Explanation, Wiring, refined
from dynident.diagnostics.trial import FEW, Left, Sample, Seen, Trial
from dynident.identifiability.base import base_parameters

_MOST = 4  # mistakes that are looked for one beside the other
GAIN = 0.7  # in the sum of logarithms: one joint's residual halves
SURE = 1.5  # the same, from which a mistake is no longer a guess
_WORSE = 0.15  # the same for one joint, which may be explained worse by less than that, or by less than
_TRADE = 0.15  # times what is gained in all
_REFINED = 3  # mistakes with a number that are looked at closely
_REACH, _STEPS = 0.5, 3  # of a logarithm: how far around a number a better one is looked for, and how often
_RIVAL = 0.15  # in the sum of logarithms: explanations this close are told as well
_NEAR_ONE = 0.12  # of a logarithm: a scale nearer to one is not told
_BAD = 0.08  # share of a strong joint's torque that is left if gravity points elsewhere
_STRONG = 0.2  # of the strongest joint's torque
_LIKELIER = 2.0  # gain that a mistake in columns needs beyond that of gravity, which can be mistaken for it
_MATTERS = 0.01  # share of a joint's torque: exact data would tell of less
_SETTLED = 0.4  # of the disagreement that may be left once a mistake in one log is put right
_APART = 1.5  # in the sum of logarithms: a log that one model of all logs fits so much worse than its own


@dataclass(frozen=True, eq=False)
class Belief:
    """What the channels of a log are taken to mean.

    Attributes:
        positions: (n, n) meant position channels from logged ones.
        torques: The same for torques.
        clock: Length of a logged second [s].
        upside_down: Whether gravity points the other way.
    """

    positions: Array
    torques: Array
    clock: float = 1.0
    upside_down: bool = False

    def then(self, more: Explanation) -> Belief:
        """With one more mistake put right."""
        positions, torques = more.positions @ self.positions, more.torques @ self.torques
        return Belief(positions, torques, more.clock * self.clock, self.upside_down != more.upside_down)

    def read(self, sample: Sample, wiring: Wiring) -> Sample:
        """Moments of a log with positions, clock and torques as they are meant."""
        to_joints, about = wiring.at_joints(self.positions).T, wiring.zero
        q, dq = (sample.q - about) @ to_joints + about, sample.dq @ to_joints / self.clock
        ddq, tau = sample.ddq @ to_joints / self.clock**2, sample.tau @ wiring.at_rows(self.torques).T
        return replace(sample, q=q, dq=dq, ddq=ddq, tau=tau)


@dataclass(frozen=True, eq=False)
class Mistake:
    """A mistake that the model prefers.

    Attributes:
        explanation: What happened.
        logs: Numbers of the logs it happened to.
        before: What was left of the torque without it.
        after: What is left with it.
        rivals: Explanations that are about as good, in words.
    """

    explanation: Explanation
    logs: tuple[int, ...]
    before: Left
    after: Left
    rivals: tuple[str, ...]

    @property
    def gain(self) -> float:
        """By how much the sum of logarithms falls."""
        return self.before.score - self.after.score


@dataclass(frozen=True, eq=False)
class Explained:
    """Logs and the mistakes found in them.

    Attributes:
        mistakes: In the order in which they were found.
        beliefs: What the channels of each log mean.
        left: What is left of the torque in the end.
        apart: For each log by how much one model of all logs fits it worse than a model of its own.
    """

    mistakes: tuple[Mistake, ...]
    beliefs: tuple[Belief, ...]
    left: Left
    apart: tuple[float, ...]


class Search:
    """The search for mistakes in some logs of a robot."""

    def __init__(self, trial: Trial, samples: Sequence[Sample], wirings: Sequence[Wiring]) -> None:
        self._trial, self._samples, self._wirings = trial, samples, wirings
        self._seen: dict[tuple[int, bytes, float, bool], Seen] = {}

    def explained(self) -> Explained:
        """Put right one mistake after the other, as long as that explains the torque much better."""
        n = len(self._trial.robot.joint_names)
        beliefs = [Belief(np.eye(n), np.eye(n)) for _ in self._samples]
        mistakes: list[Mistake] = []
        left = self._left(beliefs)
        if turned := self._turned(beliefs, left):
            mistakes.append(turned)
            left = turned.after
        while len(mistakes) < _MOST and (found := self._best(beliefs, left)):
            mistakes.append(found)
            for log in found.logs:
                beliefs[log] = beliefs[log].then(found.explanation)
            left = found.after
        return Explained(tuple(mistakes), tuple(beliefs), left, self._apart(beliefs))

    def _turned(self, beliefs: Sequence[Belief], before: Left) -> Mistake | None:
        """A robot on a wall: gravity along another axis of the base, where that explains more than any column does.

        Other gravity is another set of equations, so it is tried only where a strong joint is badly explained.
        """
        trial, size = self._trial, float(np.linalg.norm(self._trial.robot.gravity))
        torque = before.deviations / before.shares
        strong = torque > _STRONG * torque.max()
        if size == 0.0 or before.shares[strong].max() < _BAD:
            return None
        rival = self._best(beliefs, before)
        found: list[tuple[Explanation, Left, Trial]] = []
        for axis, sign in itertools.product(range(3), (1.0, -1.0)):
            gravity = size * sign * np.eye(3)[axis]
            if abs(gravity @ trial.robot.gravity) > 0.9 * size**2:
                continue
            self._trial = Trial(base_parameters(replace(trial.robot, gravity=gravity), trial.base.terms))
            self._seen.clear()
            one = np.eye(len(before.shares))
            words = f"gravity points along {'+' if sign > 0.0 else '-'}{'xyz'[axis]} of the base"
            what = Explanation("gravity", words, one, one, gravity=tuple(float(x) + 0.0 for x in gravity))
            found.append((what, self._left(beliefs), self._trial))
        self._seen.clear()
        what, after, turned = min(found, key=lambda one: one[1].score)
        better = _worth(before, after, what, SURE) and (rival is None or after.score < rival.after.score + _LIKELIER)
        self._trial = turned if better else trial
        return Mistake(what, tuple(range(len(beliefs))), before, after, ()) if better else None

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the robot's joints."""
        return self._trial.robot.joint_names

    def odd_one(self, beliefs: Sequence[Belief]) -> int:
        """The log without which the others agree best."""
        logs = range(len(beliefs))
        if len(beliefs) == 2:
            return int(np.argmax(self._apart(beliefs)))
        without = []
        for odd in logs:
            rest = [log for log in logs if log != odd]
            together = self._trial.left([self._seen_as(log, beliefs[log]) for log in rest])
            without.append(together.score)
        return int(np.argmin(without))

    def with_and_without(self, beliefs: Sequence[Belief], log: int) -> tuple[Left, Left]:
        """What one model of all logs leaves of a log, and what a model of its own leaves."""
        own = [self._seen_as(log, beliefs[log])]
        return self._trial.left_by(self._left(beliefs).values, own), self._trial.left(own)

    def _best(self, beliefs: Sequence[Belief], before: Left) -> Mistake | None:
        """The mistake that explains most, if it explains enough."""
        tried = []
        for what, logs in self._candidates(beliefs):
            gain = 0.5 * GAIN if what.free else GAIN
            then = [one.then(what) if log in logs else one for log, one in enumerate(beliefs)]
            seen = [self._seen_as(log, one) for log, one in enumerate(then)]
            # Most candidates go by what their joints leave alone, which no fit of all joints goes below.
            if _worth(before, self._trial.bound(seen), what, gain):
                after = self._trial.left(seen)
                if _worth(before, after, what, gain):
                    tried.append((what, logs, after))
        self._seen.clear()  # of positions that were tried only once
        open_ones = sorted((one for one in tried if one[0].free), key=lambda one: one[2].score)[:_REFINED]
        better = [(*self._refined(beliefs, what, logs), logs) for what, logs, _ in open_ones]
        closed = [one for one in tried if not one[0].free]
        closed += [(what, logs, after) for what, after, logs in better if _worth(before, after, what, GAIN)]
        closed.sort(key=lambda one: one[2].score)
        best = next((one for one in closed if self._settles(beliefs, one[0], one[1])), None)
        if best is None:
            return None
        what, logs, after = best = _likelier(best, closed)
        rivals = [
            other.words
            for other, same, then in closed
            if other.words != what.words and same == logs and then.score < after.score + _RIVAL
        ]
        return Mistake(what, logs, before, after, tuple(dict.fromkeys(rivals))[:3])

    def _settles(self, beliefs: Sequence[Belief], what: Explanation, logs: tuple[int, ...]) -> bool:
        """Whether a mistake in one log alone is why it disagrees with the others; a load would be explained in part."""
        if len(logs) == len(beliefs):
            return True
        then = [one.then(what) if log in logs else one for log, one in enumerate(beliefs)]
        return max(self._apart(then)) < max(_APART, _SETTLED * max(self._apart(beliefs)))

    def _candidates(self, beliefs: Sequence[Belief]) -> Iterator[tuple[Explanation, tuple[int, ...]]]:
        """Mistakes in all logs and, where logs disagree, in single ones."""
        every = tuple(range(len(self._samples)))
        scopes = [every]
        if len(every) > 1 and max(self._apart(beliefs)) > _APART:
            scopes += [(log,) for log in every]
        rows = self._left(beliefs).rows
        for scope in scopes:
            for what in self._wirings[scope[0]].explanations():
                if scope != every and what.free not in ("", "clock"):  # a load looks like a scale
                    continue
                if (rows[what.touched] >= FEW).all():  # torque of a joint at rest would explain what it is put in for
                    yield what, scope

    def _refined(self, beliefs: Sequence[Belief], what: Explanation, logs: tuple[int, ...]) -> tuple[Explanation, Left]:
        """The number of a mistake that explains most."""
        from scipy.optimize import minimize_scalar  # takes a while to load, and is needed for a suspected mistake only

        middle, place = np.log(what.size), np.inf
        for _ in range(1 if what.free == "clock" else _STEPS):  # noise of positions asks for ever slower clocks
            found = minimize_scalar(
                lambda x: self._tried(beliefs, refined(what, float(np.exp(x))), logs).score,
                bounds=(middle - _REACH, middle + _REACH),
                method="bounded",
                options={"xatol": 2e-3, "maxiter": 20},
            )
            self._seen.clear()
            middle, place = found.x, found.x - middle
            if abs(place) < 0.97 * _REACH:
                break
        best = refined(what, float(np.exp(middle)))
        # A number that wants to be ever larger or smaller is none: that only hides what the model does not explain.
        if abs(middle) < _NEAR_ONE or abs(place) >= 0.97 * _REACH:
            return best, self._left(beliefs)
        return best, self._tried(beliefs, best, logs)

    def _tried(self, beliefs: Sequence[Belief], what: Explanation, logs: tuple[int, ...]) -> Left:
        return self._left([one.then(what) if log in logs else one for log, one in enumerate(beliefs)])

    def _left(self, beliefs: Sequence[Belief]) -> Left:
        """What one model leaves of all logs."""
        return self._trial.left([self._seen_as(log, one) for log, one in enumerate(beliefs)])

    def _seen_as(self, log: int, belief: Belief) -> tuple[Seen, Array]:
        key = (log, belief.positions.tobytes(), belief.clock, belief.upside_down)
        if key not in self._seen:
            wiring = self._wirings[log]
            at_joints = wiring.at_joints(belief.positions)
            self._seen[key] = self._trial.seen(
                self._samples[log], at_joints, wiring.zero, belief.clock, belief.upside_down
            )
        return self._seen[key], self._wirings[log].at_rows(belief.torques)

    def _apart(self, beliefs: Sequence[Belief]) -> tuple[float, ...]:
        """For each log by how much one model of all fits it worse than its own."""
        pairs = (self.with_and_without(beliefs, log) for log in range(len(beliefs)))
        return tuple(together.score - own.score for together, own in pairs)


Tried = tuple[Explanation, tuple[int, ...], Left]


def _likelier(best: Tried, tried: Sequence[Tried]) -> Tried:
    """Of all positions or all torques with the wrong sign, where both explain about as much, the torques.

    A controller moved the robot by its positions; what sign torque has is a convention of whoever logs it.
    """
    what, logs, after = best
    n = len(what.positions)
    if not np.array_equal(what.positions, -np.eye(n)):
        return best
    alike = [one for one in tried if one[1] == logs and one[2].score < after.score + _RIVAL]
    return next((one for one in alike if np.array_equal(one[0].torques, -np.eye(n))), best)


def _worth(before: Left, after: Left, what: Explanation, gain: float) -> bool:
    """Whether so much more is explained, of some joint a part that matters, and of no torque channel much less."""
    came_from = np.argmax(np.abs(what.torques), axis=1)  # torque that changes its joint is compared with itself
    earlier = before.shares[came_from]
    if (earlier - after.shares).max() < _MATTERS:
        return False
    ratio = np.log(earlier / after.shares)
    return bool(ratio.sum() > gain and ratio.min() > -max(_WORSE, _TRADE * ratio.sum()))
