"""The search for a motion: feasible starts, the interior-point method from each and about the best, a fine check."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dynident.arrays import Array
from dynident.errors import InfeasibleError
from dynident.motion.demands import Demands, Shortfall, Stacked
from dynident.motion.interior_point import minimise
from dynident.motion.rows import Criterion, Rows
from dynident.motion.space import Raster, Space

PER_PERIOD = 24  # samples of the search in a period of the highest harmonic
FINE_PER_PERIOD = 48  # of the last search, so that little is left to happen between the samples
_FINE = 1000.0  # [Hz] of the last check
_MARGIN = 0.001  # slack kept from the beginning, for what happens between the samples
_ROOM = 2.0 * _MARGIN  # slack that a pose must have for a motion about it to begin
_STEPS = 36  # by which motions are compared
_GLANCE = 12  # steps after which the worse starts are given up
_PROMISING = 3  # of so many starts, one goes on
_GLANCED = 0.1  # barrier at which those go on
_FINALISTS = 3
_LATE = 0.02  # barrier of a search that begins near a good motion
_KICK = 0.2  # size of a push beside the coefficients
_SMALLER = (0.85, 0.6, 0.95)  # size to which the motion is drawn before, until the push fits
_TIGHTENINGS = 5  # times that limits broken between the samples are tightened before the motion is made smaller


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is.

    Attributes:
        step: Steps done.
        steps: Most steps there can be.
        evaluations: Criteria evaluated so far.
        best: Best criterion so far, as it is minimised; infinite before the first.
    """

    step: int
    steps: int
    evaluations: int
    best: float


@dataclass
class Found:
    """What a search found.

    Attributes:
        x: Coordinates of the motion.
        shortfalls: The least slack of every kind of limit at a fine rate, in the order of the problem's limits.
        evaluations: Criteria evaluated.
        starts: Starts tried.
        interrupted: Whether somebody stopped it.
        seconds: Time it took [s].
        screened: Criterion of each start after a few steps.
    """

    x: Array
    shortfalls: list[Shortfall]
    evaluations: int
    starts: int
    interrupted: bool
    seconds: float
    screened: list[float] = field(default_factory=list)


class SearchProblem:
    """The criterion and the limits as functions of a motion's coordinates (see `interior.Problem`).

    Args:
        space, raster: Where the motion lives.
        rows: Rows of the identification problem on the raster.
        criterion: To be minimised.
        sizes: (n,) sizes of the scaled parameters, for the criterion.
        known: (n, n) information that is there already.
        demands: The limits.
    """

    def __init__(
        self,
        space: Space,
        raster: Raster,
        rows: Rows,
        criterion: Criterion,
        sizes: Array,
        known: Array,
        demands: Demands,
    ) -> None:
        self.space, self.raster, self.rows = space, raster, rows
        self._criterion, self._sizes, self._known = criterion, sizes, known
        self.limits = demands.on(raster)
        self.margins = [np.full((len(limit.labels()), 1), _MARGIN) for limit in self.limits]
        self.evaluations = 0

    def value(self, x: Array) -> float:
        """The criterion."""
        self.evaluations += 1
        information = self._known + self.rows.information(self.space.states(x, self.raster))
        value, self._slope = self._criterion(information, self._sizes)
        return value

    def gradient(self) -> Array:
        """Its derivative where `value` was last called."""
        return self.space.pull(self.rows.pull(self._slope), self.raster)

    def slack(self, x: Array) -> Array:
        """All slacks."""
        states = self.space.states(x, self.raster)
        pairs = zip(self.limits, self.margins, strict=True)
        parts = [(limit.evaluate(states) - margin).ravel() for limit, margin in pairs]
        self._lengths = [len(part) for part in parts]
        return np.concatenate(parts)

    def slopes(self) -> Stacked:
        """Their derivative where `slack` was last called."""
        return Stacked([limit.linearise() for limit in self.limits], self._lengths)

    def inside(self, x: Array) -> bool:
        """Whether all limits are respected."""
        return bool((self.slack(x) > 0.0).all())


@dataclass(frozen=True)
class _Motion:
    """A motion on the way: its criterion, its coordinates and the pose it grew from."""

    value: float
    x: Array
    pose: Array


def _value(motion: _Motion) -> float:
    return motion.value


class Search:
    """One search.

    Args:
        problem: Criterion and limits on the raster of the search.
        fine: The same on the finer raster of the last search.
        demands: The limits, for poses and for the fine check.
        starts: Random starts.
        kicks: Pushes of each of the best motions, each followed by a search.
        iterations: Most steps of the last search.
        seed: Of starts and pushes.
        progress: Called after every step.
    """

    def __init__(
        self,
        problem: SearchProblem,
        fine: SearchProblem,
        demands: Demands,
        *,
        starts: int,
        kicks: int,
        iterations: int,
        seed: int,
        progress: Callable[[SearchProgress], None] | None,
    ) -> None:
        self.problem, self.fine, self.demands, self.space = problem, fine, demands, problem.space
        self.starts, self.kicks, self.iterations = starts, kicks, iterations
        self.rng = np.random.default_rng(seed)
        self._tell = progress or (lambda state: None)
        self._steps = 0
        self._best: _Motion | None = None

    def run(self) -> Found:
        """Everything; an interrupt ends it with the best motion so far, if there is one."""
        began = time.perf_counter()
        interrupted = False
        screened: list[float] = []
        try:
            poses = feasible_poses(self.demands, self.starts, self.rng)
            pool = sorted((self._descend(self._start(pose), pose, _GLANCE) for pose in poses), key=_value)
            screened = [one.value for one in pool]
            pool = pool[: self._promising]
            pool = sorted((self._descend(one.x, one.pose, _STEPS - _GLANCE, _GLANCED) for one in pool), key=_value)
            pool = pool[:_FINALISTS]
            for i in list(range(len(pool))) * self.kicks:
                tried = self._descend(self._kicked(pool[i].x), pool[i].pose, barrier=_LATE)
                pool[i] = min(pool[i], tried, key=_value)
            x, shortfalls = self._settled(min(pool, key=_value))
        except KeyboardInterrupt:
            if self._best is None:
                raise
            interrupted = True
            x, shortfalls = self._shrunk(self._best.x, self._best.pose)
        seconds = time.perf_counter() - began
        return Found(x, shortfalls, self.evaluations, self.starts, interrupted, seconds, screened)

    @property
    def evaluations(self) -> int:
        """Criteria evaluated so far."""
        return self.problem.evaluations + self.fine.evaluations

    def _descend(
        self, x: Array, pose: Array, steps: int = _STEPS, barrier: float = 1.0, problem: SearchProblem | None = None
    ) -> _Motion:
        """Some steps from a motion that is inside the limits."""
        problem = problem or self.problem
        found = _Motion(problem.value(x), x, pose)
        if self._best is None or found.value < self._best.value:
            self._best = found

        def report(x: Array, value: float) -> None:
            nonlocal found
            self._steps += 1
            if value < found.value:
                found = _Motion(value, x.copy(), pose)
            if self._best is None or value < self._best.value:
                self._best = found
            self._tell(SearchProgress(self._steps, self._most, self.evaluations, self._best.value))

        minimise(problem, x, barrier=barrier, iterations=steps, report=report)
        return found

    @property
    def _most(self) -> int:
        """Steps there can be, the tightening of limits at the end left aside."""
        most = self.starts * _GLANCE + self._promising * (_STEPS - _GLANCE)
        most += min(_FINALISTS, self._promising) * self.kicks * _STEPS + self.iterations
        return max(most, self._steps)

    @property
    def _promising(self) -> int:
        """Starts that go on after a glance."""
        return min(self.starts, max(_FINALISTS, -(-self.starts // _PROMISING)))

    def _kicked(self, x: Array) -> Array:
        """A motion pushed away from where it is best, a little smaller and in a random direction.

        Good motions lie near each other: from the best one so far, a push leads to better ones more often than
        another random start does.
        """
        X = x.reshape(len(self.space.joints), -1)
        push = _KICK * float(np.abs(X[:, :-1]).mean()) * self.rng.normal(size=X.shape).ravel()
        centre = self.space.centre(x)
        for smaller in _SMALLER:
            share = 1.0
            while share > 0.03:
                tried = np.asarray(centre + smaller * (x - centre) + share * push)
                if self.problem.inside(tried):
                    return tried
                share *= 0.7
        return x

    def _start(self, pose: Array) -> Array:
        """A random motion about a pose, as large as the limits allow."""
        rest = self.space.resting(pose)
        way = self.rng.normal(size=(len(self.space.joints), self.space.per_joint))
        if self.space.start is None:
            way[:, -1] = 0.0
        share = 1.0
        while not self.problem.inside(rest + share * way.ravel()):
            share *= 0.7
        return np.asarray(rest + 0.95 * share * way.ravel())

    def _inside(self, x: Array, pose: Array) -> Array:
        """The motion, made just so much smaller that it is inside the limits of the fine raster."""
        for rest in (self.space.centre(x), self.space.resting(pose)):
            less = 0.0
            while less < 1.0:
                tried = np.asarray(rest + (1.0 - 1.02 * less) * (x - rest))
                if self.fine.inside(tried):
                    return tried
                less = min(1.0, 1.4 * less + 0.002)
        return rest

    def _settled(self, best: _Motion) -> tuple[Array, list[Shortfall]]:
        """The last search, and limits tightened until the motion respects them between the samples too."""
        x, pose, steps, barrier = best.x, best.pose, self.iterations, _LATE
        for _ in range(_TIGHTENINGS):
            inner = self._inside(x, pose)
            self._best = _Motion(self.fine.value(inner), inner, pose)  # on this raster, within these limits
            x = self._descend(inner, pose, steps, barrier, self.fine).x
            shortfalls = self._checked(x)
            if min(item.share for item in shortfalls) >= 0.0:
                return x, shortfalls
            for margin, item in zip(self.fine.margins, shortfalls, strict=True):
                margin[:, 0] += np.where(item.shares < 0.0, 3e-4 - 1.5 * item.shares, 0.0)
            steps, barrier = 40, 2e-3
        return self._shrunk(x, pose)

    def _shrunk(self, x: Array, pose: Array) -> tuple[Array, list[Shortfall]]:
        """The motion made smaller until the fine check passes; standing still at its first pose always does."""
        shortfalls = self._checked(x)
        for rest in (self.space.centre(x), self.space.resting(pose)):
            less, tried = 0.0, x
            while min(item.share for item in shortfalls) < 0.0 and less < 1.0:
                less = min(1.0, 1.4 * less + 0.002)
                tried = rest + (1.0 - less) * (x - rest)
                shortfalls = self._checked(tried)
            if min(item.share for item in shortfalls) >= 0.0:
                break
        return tried, shortfalls

    def _checked(self, x: Array) -> list[Shortfall]:
        motion = self.space.trajectory(x)
        rate = max(_FINE, 200.0 * self.space.harmonics * self.space.frequency)
        times = np.linspace(0.0, motion.duration, int(np.ceil(motion.duration * rate)) + 1)
        return self.demands.at(motion.sample(times))


def feasible_poses(demands: Demands, count: int, rng: np.random.Generator) -> list[Array]:
    """Poses at which the robot can stand within its limits, one for each start.

    Raises:
        InfeasibleError: Naming the limit that the best pose breaks, and by how much.
    """
    low, high = demands.limits.lower, demands.limits.upper
    start = demands.space.start
    if start is not None:
        if demands.slack_at(start[None])[0] <= _ROOM:
            raise InfeasibleError(_complaint(demands, start, "the start pose leaves no room to move"))
        return [start] * count
    poses = low + (high - low) * (0.1 + 0.8 * rng.random((max(2000, 20 * count), len(low))))
    slack = demands.slack_at(poses)
    for spread in (0.2, 0.1, 0.05, 0.02, 0.01, 0.003):  # towards poses that are better, if none is good
        if (slack > _ROOM).any():
            break
        near = poses[np.argsort(-slack)[:50]]
        moved = near[rng.integers(len(near), size=1000)] + spread * (high - low) * rng.normal(size=(1000, len(low)))
        poses = np.vstack([near, np.clip(moved, low, high)])
        slack = demands.slack_at(poses)
    good = np.flatnonzero(slack > _ROOM)
    if not len(good):
        best = poses[int(np.argmax(slack))]
        raise InfeasibleError(_complaint(demands, best, "no pose respects all limits; of the best one found"))
    # Room to move matters: the poses with more slack than half of the good ones.
    roomy = good[slack[good] >= np.median(slack[good])]
    chosen = rng.choice(roomy, size=count, replace=len(roomy) < count)
    return [poses[i] for i in chosen]


def _complaint(demands: Demands, pose: Array, opening: str) -> str:
    still = np.zeros((1, len(pose)))
    broken = [item for item in demands.at((pose[None], still, still)) if item.share <= _ROOM]
    where = ", ".join(f"{name} {x:.3g}" for name, x in zip(demands.robot.joint_names, pose, strict=True))
    return f"{opening}: {'; '.join(map(str, broken))} (at {where}); widen that limit or move what is in the way"
