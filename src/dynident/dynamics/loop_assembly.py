"""Solutions of closed loops carried from pose to pose, for many samples at once.

Arrays have their samples last: q (n_active, n_samples), s (n_solved, n_samples).
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.dynamics.closure import closure_of
from dynident.dynamics.kernels import CLOSING, kernel
from dynident.errors import InputError, SingularError
from dynident.robot.loops import SINGULAR, loop_paths, loop_size, n_rows
from dynident.robot.model import Robot

STRIDE = 0.25  # [rad, or sizes of the loop] that solved joints move in a step
_CORRECTION = 0.08  # of these that Newton's method may add: more, and it may have gone elsewhere
_LONGEST = 1.0  # of these that Newton's method may go at once
_CONTRACTION = 0.5  # of its steps, at least
_LAST_STEP = 1e-8  # of Newton's method: it converges quadratically, so what follows is rounding
_CLOSED = 1e-7  # residual before that last step
_SHORTEST = 1e-5  # share of the way at which a step is given up
Places = NDArray[np.intp]


@dataclass
class LoopSolutions:
    """Solutions of a batch.

    Attributes:
        s: (n_solved, n_samples) positions.
        G: (n_solved, n_active, n_samples) their derivatives.
        pivot: (n_samples,) how clearly the loops determine them: 0 at a singular pose, about 1 far from any.
        reached: (n_active, n_samples) the pose that was reached.
        fine: (n_samples,) whether that is the one asked for.
    """

    s: Array
    G: Array
    pivot: Array
    reached: Array
    fine: Mask

    def take(self, own: Places | slice) -> LoopSolutions:
        """The solutions of some samples."""
        return LoopSolutions(self.s[:, own], self.G[:, :, own], self.pivot[own], self.reached[:, own], self.fine[own])

    def put(self, own: Places, other: LoopSolutions) -> None:
        """Replace the solutions of some samples."""
        self.s[:, own], self.G[:, :, own], self.pivot[own] = other.s, other.G, other.pivot
        self.reached[:, own], self.fine[own] = other.reached, other.fine


class Tracker:
    """Newton's method on the loops of a robot, and ways from pose to pose.

    Attributes:
        robot: The robot, no joint of it locked.
        units: (n_solved,) what counts as one: a radian, or the size of the loops [m].
        active_units: (n_active,) likewise.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, closure = robot, closure_of(robot)
        self.n, self.k = len(robot.active), len(closure.solved)
        size = max(loop_size(loop, robot.joints) for loop in closure.loops)
        slides = np.array([joint.kind == "prismatic" for joint in robot.joints])
        self.units = np.where(slides[list(closure.solved)], size, 1.0)
        self.active_units = np.where(slides[list(robot.active)], size, 1.0)
        self._places = [place[0] for place in kernel(robot, CLOSING, ())[1]]
        self._n_residuals = sum(n_rows(loop) for loop in closure.loops)

    def close(self, q: Array, guess: Array) -> LoopSolutions:
        """Solutions near a guess, by Newton's method."""
        n = q.shape[1]
        found = LoopSolutions(guess.copy(), np.zeros((self.k, self.n, n)), np.zeros(n), q, np.zeros(n, bool))
        live, longest = np.arange(n), np.full(n, _LONGEST)
        while len(live):
            residual, step, pivot, G = self._evaluate(q[:, live], found.s[:, live])
            length = np.abs(step / self.units[:, None]).max(0)
            last = length < _LAST_STEP
            found.s[:, live] += step
            own = live[last]
            found.fine[own] = residual[last] < _CLOSED
            found.pivot[own], found.G[:, :, own] = pivot[last], G[:, :, last]
            on = (length < longest) & ~last  # steps that do not become much shorter lead nowhere
            live, longest = live[on], _CONTRACTION * length[on]
        return found

    def track(self, known: LoopSolutions, goal: Array) -> LoopSolutions:
        """Known solutions carried straight to other poses."""
        found = LoopSolutions(
            known.s.copy(), known.G.copy(), known.pivot.copy(), known.reached.copy(), known.fine.copy()
        )
        start, n = known.reached, goal.shape[1]
        way, share, longest = goal - start, np.zeros(n), np.ones(n)
        live = np.flatnonzero(found.fine)
        while len(live):
            tangent = np.einsum("kin,in->kn", found.G[:, :, live], way[:, live])
            with np.errstate(divide="ignore"):
                stride = STRIDE / np.abs(tangent / self.units[:, None]).max(0)
            step = np.minimum(np.minimum(1.0 - share[live], longest[live]), stride)
            guess = found.s[:, live] + tangent * step
            ahead = np.where(share[live] + step < 1.0, share[live] + step, 1.0)
            near = self.close(start[:, live] + ahead * way[:, live], guess)
            added = np.abs((near.s - guess) / self.units[:, None]).max(0)
            good = near.fine & (added < _CORRECTION)
            found.put(live[good], near.take(np.flatnonzero(good)))
            share[live[good]] = ahead[good]
            longest[live] = np.where(good, 2.0 * step, 0.25 * step)
            live = live[(share[live] < 1.0) & (longest[live] > _SHORTEST)]
        found.fine &= share == 1.0
        exact = np.flatnonzero(found.fine)
        found.reached[:, exact] = goal[:, exact]
        return found

    def _evaluate(self, q: Array, s: Array) -> tuple[Array, Array, Array, Array]:
        """Largest residual (n,), step (k, n), smallest pivot (n,), G (k, n_active, n)."""
        n = q.shape[1]
        run, _ = kernel(self.robot, CLOSING, (), n)
        out = np.zeros((self._n_residuals + self.k * (2 + self.n), n))
        run([*q, *s], out, self._places)
        ends = np.cumsum([self._n_residuals, self.k, self.k])
        residual, step, squares, G = np.split(out, ends)
        pivot = np.sqrt((squares * self.units[:, None] ** 2).min(0))
        return np.abs(residual).max(0, initial=0.0), step, pivot, G.reshape(self.k, self.n, n)


# ----------------------------------------------------------------------------------------------------------------------
# Loops closed numerically, for whole batches of poses at once.
#
# Newton's method finds the passive joints s from the active ones q, but which of several solutions it finds depends on
# where it starts. So a solution is always carried along: from a pose with a known one, in steps short enough that
# nothing
# else can be mistaken for it (see `tracking`). A fixed set of poses, the atlas, is reached once from the branch in the
# robot file; every sample then starts at the nearest of them, and one that cannot be reached from there at its
# neighbors
# in time. The answer for a pose is thus the same in every batch and at every place of a log. Samples side by side, as
# in
# a log, must lie on one sheet; a jump is refused.

_ATLAS = 512  # poses
_USEFUL = 1e-2  # pivot of a pose in the atlas
_NEAREST = 6  # poses of the atlas to start from
_ROUNDS = 40  # attempts to go on from samples side by side
_CHUNK, _BLOCK = 4096, 256  # samples to solve for, and to find the nearest poses of
_KEPT = 16  # assemblies
Named = Callable[[int], str]  # what to call a sample in a message


def by_number(first: int = 0) -> Named:
    """Samples by their number, counted from `first`."""
    return lambda i: f"sample {first + i}"


class Assembly:
    """The solutions of a robot's loops on the branch of its file.

    Attributes:
        robot: The robot, no joint of it locked.
        turns: (n_active,) whether a full turn of the joint leads back to the same pose.
        solved_turns: (n_solved,) likewise.
        atlas: Poses and their solutions.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.tracker = robot, Tracker(robot)
        closure = closure_of(robot)
        on_loops = sorted({i for loop in closure.loops for path in loop_paths(loop, robot.joints) for i in path})
        follow, own = robot.follow[on_loops], closure.follow[on_loops]
        # A full turn changes nothing, unless something on the loops follows by a fraction of it.
        revolute = np.array([joint.kind == "revolute" for joint in robot.joints])
        self.turns = revolute[list(robot.active)] & (follow == np.round(follow)).all(0)
        self.solved_turns = revolute[list(closure.solved)] & (own == np.round(own)).all(0)
        self._relevant = follow.any(0)
        self.atlas = self._atlas()

    def solve(self, q: Array, named: Named) -> Array:
        """Positions of the solved joints.

        Args:
            q: Positions of all active joints, (n_active, n_samples).
            named: What to call a sample.

        Returns:
            (n_solved, n_samples); NaN where q is not finite.

        Raises:
            InputError: For a pose at which the loops cannot be closed, or a jump between samples side by side.
            SingularError: For a pose at which they do not determine the passive joints.
        """
        good = np.flatnonzero(np.isfinite(q).all(0))
        own = q[:, good]
        found = self._found(own)
        self._continue(own, found)
        for bad, error in (
            (~found.fine, self._unreachable),
            (found.pivot < SINGULAR, self._singular),
            (self._jumps(own, found), self._jumped),
        ):
            if bad.any():
                i = int(np.argmax(bad))
                raise error(f"{named(int(good[i]))} ({self._pose(own[:, i])})", found.take(slice(i, i + 1)))
        solved = np.full((len(found.s), q.shape[1]), np.nan)
        solved[:, good] = found.s
        return solved

    def attempt(self, q: Array) -> LoopSolutions:
        """Solutions of poses side by side, (n_active, n_samples), as far as there are any."""
        found = self._found(q)
        self._continue(q, found)
        return found

    def pivots(self, q: Array) -> Array:
        """How clearly the loops determine the passive joints, (n_samples,): 0 where they cannot be closed."""
        found = self._found(q)
        return np.where(found.fine, found.pivot, 0.0)

    # --- ways -----------------------------------------------------------------------------------------------------

    def _atlas(self) -> LoopSolutions:
        """Poses all over, reached from the branch of the file, or from one another where the straight way is barred."""
        closure, units = closure_of(self.robot), self.tracker.active_units
        rng = np.random.default_rng(5)
        drawn = rng.uniform(-np.pi, np.pi, (len(units), _ATLAS)) * (units * self._relevant)[:, None]
        q = closure.reference[:, None] + drawn
        first = self.tracker.close(closure.reference[:, None], closure.branch[:, None])
        found = self.tracker.track(first.take(np.zeros(_ATLAS, dtype=np.intp)), q)
        useful = found.fine & (found.pivot > _USEFUL)
        while useful.any() and not useful.all():
            lost, known = np.flatnonzero(~useful), np.flatnonzero(useful)
            near = known[self._nearest(q[:, lost], q[:, known])[:, 0]]
            again = self._way(found.take(near), q[:, lost])
            now = np.flatnonzero(again.fine & (again.pivot > _USEFUL))
            if not len(now):
                break
            found.put(lost[now], again.take(now))
            useful[lost[now]] = True
        kept = found.take(np.flatnonzero(useful))
        return LoopSolutions(
            *(np.concatenate([getattr(x, f.name) for x in (first, kept)], -1) for f in fields(LoopSolutions))
        )

    def _nearest(self, q: Array, among: Array, count: int = 1) -> Places:
        """Which of some poses come nearest to each of q, nearest first, (n, count); full turns do not count."""

        def features(x: Array) -> Array:
            x = x / self.tracker.active_units[:, None]
            turning, sliding = x[self._relevant & self.turns], x[self._relevant & ~self.turns]
            return np.concatenate([np.cos(turning), np.sin(turning), sliding]).T

        own, others = features(q), features(among)
        found = np.empty((len(own), min(count, len(others))), dtype=np.intp)
        for first in range(0, len(own), _BLOCK):
            block = slice(first, first + _BLOCK)
            distance = 0.5 * (others**2).sum(1) - own[block] @ others.T  # squared, but for what all have in common
            found[block] = distance.argmin(1)[:, None] if count == 1 else np.argsort(distance)[:, : found.shape[1]]
        return found

    def _way(self, known: LoopSolutions, goal: Array) -> LoopSolutions:
        """Solutions by the short way round."""
        return self.tracker.track(known, known.reached + _wrap_turns(goal - known.reached, self.turns))

    def _found(self, q: Array) -> LoopSolutions:
        """Solutions from the nearest poses of the atlas."""
        parts = []
        for first in range(0, max(q.shape[1], 1), _CHUNK):
            own = q[:, first : first + _CHUNK]
            found = self._way(self.atlas.take(self._nearest(own, self.atlas.reached)[:, 0]), own)
            lost = np.flatnonzero(~found.fine)
            if len(lost):
                starts = self._nearest(own[:, lost], self.atlas.reached, _NEAREST)[:, 1:]
                lost = np.repeat(lost, starts.shape[1])
                again = self._way(self.atlas.take(starts.ravel()), own[:, lost])
                found.put(lost[again.fine], again.take(np.flatnonzero(again.fine)))
            parts.append(found)
        return LoopSolutions(*(np.concatenate([getattr(x, f.name) for x in parts], -1) for f in fields(LoopSolutions)))

    def _continue(self, q: Array, found: LoopSolutions) -> None:
        """Solutions that were not found so far, from samples beside them."""
        for _ in range(_ROUNDS):
            lost, known = np.flatnonzero(~found.fine), np.flatnonzero(found.fine)
            if not len(lost) or not len(known):
                return
            right = np.clip(np.searchsorted(known, lost), 0, len(known) - 1)
            left = np.maximum(right - 1, 0)
            beside = known[np.where(np.abs(known[left] - lost) <= np.abs(known[right] - lost), left, right)]
            again = self._way(found.take(beside), q[:, lost])
            if not again.fine.any():
                return
            found.put(lost[again.fine], again.take(np.flatnonzero(again.fine)))

    def _jumps(self, q: Array, found: LoopSolutions) -> Mask:
        """Samples that lie near the one before, but not where its solution leads, (n_samples,)."""
        jumps = np.zeros(q.shape[1], dtype=bool)
        moved = _wrap_turns(np.diff(q), self.turns)
        before, after = (np.einsum("kin,in->kn", G, moved) for G in (found.G[:, :, :-1], found.G[:, :, 1:]))
        units = self.tracker.units[:, None]
        off = _wrap_turns(np.diff(found.s) - 0.5 * (before + after), self.solved_turns)
        near = (np.abs(before) / units < STRIDE).all(0) & (np.abs(after) / units < STRIDE).all(0)
        jumps[1:] = near & (np.abs(off) / units > STRIDE).any(0)
        return jumps

    # --- words ----------------------------------------------------------------------------------------------------

    def _pose(self, q: Array) -> str:
        """The positions that matter, in words."""
        variables = [self.robot.joints[j].variable for j in self.robot.active]
        return ", ".join(f"{variables[i]} = {q[i]:.4g}" for i in np.flatnonzero(self._relevant))

    @property
    def _loops(self) -> str:
        names = [loop.name for loop in closure_of(self.robot).loops]
        return f"robot {self.robot.name}, {'loop' if len(names) == 1 else 'loops'} {', '.join(names)}"

    def _unreachable(self, where: str, found: LoopSolutions) -> InputError:
        return InputError(
            f"{self._loops}: cannot be closed at {where} on the branch of the robot file; the way there ends at "
            f"{self._pose(found.reached[:, 0])}. Check the units of q, the lengths and the branch"
        )

    def _singular(self, where: str, found: LoopSolutions) -> SingularError:
        return SingularError(
            f"{self._loops}: singular at {where}, where the passive joints are not determined; leave such poses out"
        )

    def _jumped(self, where: str, found: LoopSolutions) -> InputError:
        return InputError(
            f"{self._loops}: would have to jump to another way of assembly at {where}, since the sample before; "
            "leave such samples out, or split the data there and give each part a robot file with its own branch"
        )


def _wrap_turns(difference: Array, turns: Mask) -> Array:
    """Differences of positions (n, n_samples), by less than half a turn where a full turn changes nothing."""
    rounds = np.round(difference / (2.0 * np.pi)) * turns[:, None]
    return np.asarray(difference - 2.0 * np.pi * rounds)


_assemblies: OrderedDict[str, Assembly] = OrderedDict()
_lock = threading.RLock()


def assembly(robot: Robot) -> Assembly:
    """The assembly of a robot with numerically closed loops, made once."""
    free = dataclasses.replace(robot, locked={}) if robot.locked else robot
    with _lock:
        found = _assemblies.pop(free.fingerprint, None) or Assembly(free)
        _assemblies[free.fingerprint] = found
        if len(_assemblies) > _KEPT:
            _assemblies.popitem(last=False)
        return found


def all_active(robot: Robot, q: Array) -> Array:
    """Positions of all active joints (n_active, n_samples) from those of the moving ones (n_samples, n_joints)."""
    whole = np.empty((len(robot.active), len(q)))
    whole[list(robot.moving)] = q.T
    for index, position in robot.locked.items():
        whole[index] = position
    return whole


def solved_positions(robot: Robot, q: Array, named: Named | None = None) -> list[Array]:
    """Positions of the joints that loops are solved for, one (n_samples,) array each; none without such loops.

    Args:
        robot: The robot.
        q: Positions of the moving joints, (n_samples, n_joints).
        named: What to call a sample in a message; default its number.
    """
    if robot.closure is None:
        return []
    return list(assembly(robot).solve(all_active(robot, q), named or by_number()))
