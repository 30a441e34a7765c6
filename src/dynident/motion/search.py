"""The search for a motion: feasible starts, the interior-point method from each and about the best, a fine check."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.errors import InfeasibleError
from dynident.motion.demands import Demands, Shortfall
from dynident.motion.interior_point import minimize
from dynident.motion.options import ExcitationOptions, SearchProgress
from dynident.motion.rows import Criterion, ModelRows
from dynident.motion.space import Space
from dynident.motion.thresholds import THRESHOLDS

Candidate = tuple[float, Array, Array]  # criterion, coordinates of a motion, and the pose that it grew from


@dataclass
class SearchResult:
    """What a search found.

    Attributes:
        x: Coordinates of the motion.
        shortfalls: The least slack of every kind of limit at a fine rate, in the order of the problem's limits.
        evaluations: Criteria evaluated.
        interrupted: Whether somebody stopped it.
        seconds: Time it took [s].
    """

    x: Array
    shortfalls: list[Shortfall]
    evaluations: int
    interrupted: bool
    seconds: float


class SearchProblem:
    """The criterion and the limits as functions of a motion's coordinates (a `ConstrainedProblem`).

    Args:
        space: Where the motion lives.
        rows: Rows of the identification problem along it; limits are taken at the same times.
        criterion: To be minimized.
        sizes: (n,) sizes of the scaled parameters, for the criterion.
        known: (n, n) information that is there already.
        demands: The limits.
    """

    def __init__(
        self,
        space: Space,
        rows: ModelRows,
        criterion: Criterion,
        sizes: Array,
        known: Array,
        demands: Demands,
    ) -> None:
        self.space, self.waves, self.rows = space, space.waves(rows.times), rows
        self._criterion, self._sizes, self._known = criterion, sizes, known
        self.limits = demands.on(self.waves)
        self.margins = [np.full((len(limit.labels), 1), THRESHOLDS.margin) for limit in self.limits]
        self._cuts = np.cumsum([len(limit.labels) * len(rows.times) for limit in self.limits])[:-1]
        self.evaluations = 0

    def value(self, x: Array) -> float:
        """The criterion."""
        self.evaluations += 1
        information = self._known + self.rows.information(self.space.states(x, self.waves))
        value, self._slope = self._criterion(information, self._sizes)
        return value

    def gradient(self) -> Array:
        """Its derivative where `value` was last called."""
        return self.space.pull(self.rows.pull(self._slope), self.waves)

    def slack(self, x: Array) -> Array:
        """All slacks."""
        states = self.space.states(x, self.waves)
        pairs = zip(self.limits, self.margins, strict=True)
        parts = [(limit.evaluate(states) - margin).ravel() for limit, margin in pairs]
        return np.concatenate(parts)

    def linearize(self) -> None:
        """Take the derivative J of all slacks where `slack` was last called."""
        for limit in self.limits:
            limit.linearize()

    def times(self, dx: Array) -> Array:
        """J dx."""
        return np.concatenate([limit.times(dx) for limit in self.limits])

    def pull(self, v: Array) -> Array:
        """J' v."""
        parts = zip(self.limits, np.split(v, self._cuts), strict=True)
        return np.asarray(sum(limit.pull(own) for limit, own in parts))

    def gram(self, d: Array) -> Array:
        """J' diag(d) J."""
        parts = zip(self.limits, np.split(d, self._cuts), strict=True)
        return np.asarray(sum(limit.gram(own) for limit, own in parts))

    def inside(self, x: Array) -> bool:
        """Whether all limits are respected."""
        return bool((self.slack(x) > 0.0).all())


def _criterion(candidate: Candidate) -> float:
    return candidate[0]


class ExcitationSearch:
    """One search.

    Args:
        problem: Criterion and limits at the samples of the search.
        fine: The same at the finer samples of the last search.
        demands: The limits, for poses and for the fine check.
        options: `starts`, `kicks`, `iterations`, `seed` and `progress`.
    """

    def __init__(
        self, problem: SearchProblem, fine: SearchProblem, demands: Demands, options: ExcitationOptions
    ) -> None:
        self.problem, self.fine, self.demands, self.space = problem, fine, demands, problem.space
        self.options, self.rng = options, np.random.default_rng(options.seed)
        self._report = options.progress or (lambda state: None)
        self._steps = 0
        self._best: Candidate | None = None

    def run(self) -> SearchResult:
        """Everything; an interrupt ends it with the best motion so far, if there is one."""
        began = time.perf_counter()
        interrupted = False
        first, steps = THRESHOLDS.first_steps, THRESHOLDS.steps
        try:
            poses = feasible_poses(self.demands, self.options.starts, self.rng)
            pool = sorted((self._descend(self._start(pose), pose, first) for pose in poses), key=_criterion)
            again = THRESHOLDS.survivor_barrier
            pool = [self._descend(x, pose, steps - first, again) for _, x, pose in pool[: self._survivors]]
            pool = sorted(pool, key=_criterion)[: THRESHOLDS.finalists]
            for i in list(range(len(pool))) * self.options.kicks:
                _, x, pose = pool[i]
                tried = self._descend(self._push(x), pose, barrier=THRESHOLDS.late_barrier)
                pool[i] = min(pool[i], tried, key=_criterion)
            x, shortfalls = self._finish(min(pool, key=_criterion))
        except KeyboardInterrupt:
            if self._best is None:
                raise
            interrupted = True
            x, shortfalls = self.shrink(*self._best[1:])
        return SearchResult(x, shortfalls, self.evaluations, interrupted, time.perf_counter() - began)

    @property
    def evaluations(self) -> int:
        """Criteria evaluated so far."""
        return self.problem.evaluations + self.fine.evaluations

    def _descend(
        self,
        x: Array,
        pose: Array,
        steps: int = THRESHOLDS.steps,
        barrier: float = 1.0,
        problem: SearchProblem | None = None,
    ) -> Candidate:
        """Some steps from a motion that is inside the limits."""
        problem = problem or self.problem
        found = (problem.value(x), x, pose)
        if self._best is None or found[0] < self._best[0]:
            self._best = found

        def report(x: Array, value: float) -> None:
            nonlocal found
            self._steps += 1
            if value < found[0]:
                found = (value, x.copy(), pose)
            if self._best is None or value < self._best[0]:
                self._best = found
            self._report(SearchProgress(self._steps, self._most_steps, self.evaluations, self._best[0]))

        minimize(problem, x, barrier=barrier, iterations=steps, report=report)
        return found

    @property
    def _most_steps(self) -> int:
        """Steps there can be, the tightening of limits at the end left aside."""
        first, steps = THRESHOLDS.first_steps, THRESHOLDS.steps
        most = self.options.starts * first + self._survivors * (steps - first)
        most += min(THRESHOLDS.finalists, self._survivors) * self.options.kicks * steps + self.options.iterations
        return max(most, self._steps)

    @property
    def _survivors(self) -> int:
        """Starts that go on after their first steps."""
        starts = self.options.starts
        return min(starts, max(THRESHOLDS.finalists, -(-starts // THRESHOLDS.starts_per_survivor)))

    def _push(self, x: Array) -> Array:
        """A motion pushed away from where it is best, a little smaller and in a random direction.

        Good motions lie near each other: from the best one so far, a push leads to better ones more often than
        another random start does.
        """
        X = x.reshape(len(self.space.joints), -1)
        push = THRESHOLDS.push * float(np.abs(X[:, :-1]).mean()) * self.rng.normal(size=X.shape).ravel()
        center = self.space.center(x)
        for smaller in THRESHOLDS.push_sizes:
            share = 1.0
            while share > 0.03:
                tried = np.asarray(center + smaller * (x - center) + share * push)
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
            if share < THRESHOLDS.least_start:
                series = f"{self.space.harmonics} harmonics of {self.space.frequency:g} Hz"
                raise InfeasibleError(
                    f"{series} break a limit however small the motion is, about a pose that keeps all of them; use a "
                    "lower frequency or wider limits"
                )
        return np.asarray(rest + 0.95 * share * way.ravel())

    def _inside(self, x: Array, pose: Array) -> Array:
        """The motion, made just so much smaller that it is inside the limits at the fine samples."""
        for rest in (self.space.center(x), self.space.resting(pose)):
            less = 0.0
            while less < 1.0:
                tried = np.asarray(rest + (1.0 - 1.02 * less) * (x - rest))
                if self.fine.inside(tried):
                    return tried
                less = min(1.0, 1.4 * less + 0.002)
        return rest

    def _finish(self, best: Candidate) -> tuple[Array, list[Shortfall]]:
        """The last search, and limits tightened until the motion respects them between the samples too."""
        _, x, pose = best
        steps, barrier = self.options.iterations, THRESHOLDS.late_barrier
        for _ in range(THRESHOLDS.tightenings):
            inner = self._inside(x, pose)
            self._best = (self.fine.value(inner), inner, pose)  # at these samples, within these limits
            x = self._descend(inner, pose, steps, barrier, self.fine)[1]
            shortfalls = self._check(x)
            if min(item.share for item in shortfalls) >= 0.0:
                return x, shortfalls
            for margin, item in zip(self.fine.margins, shortfalls, strict=True):
                margin[:, 0] += np.where(item.shares < 0.0, 3e-4 - 1.5 * item.shares, 0.0)
            steps, barrier = 40, 2e-3
        return self.shrink(x, pose)

    def shrink(self, x: Array, pose: Array) -> tuple[Array, list[Shortfall]]:
        """The motion made smaller until the fine check passes; standing still at its first pose always does."""
        shortfalls = self._check(x)
        for rest in (self.space.center(x), self.space.resting(pose)):
            less, tried = 0.0, x
            while min(item.share for item in shortfalls) < 0.0 and less < 1.0:
                less = min(1.0, 1.4 * less + 0.002)
                tried = rest + (1.0 - less) * (x - rest)
                shortfalls = self._check(tried)
            if min(item.share for item in shortfalls) >= 0.0:
                break
        return tried, shortfalls

    def _check(self, x: Array) -> list[Shortfall]:
        motion = self.space.trajectory(x)
        rate = max(THRESHOLDS.check_rate_hz, 200.0 * self.space.harmonics * self.space.frequency)
        times = np.linspace(0.0, self.space.span, int(np.ceil(self.space.span * rate)) + 1)
        return self.demands.at(motion.sample(times))


def feasible_poses(demands: Demands, count: int, rng: np.random.Generator) -> list[Array]:
    """Poses at which the robot can stand within its limits, one for each start.

    Raises:
        InfeasibleError: Naming the limit that the best pose breaks, and by how much.
    """
    low, high = demands.limits.lower, demands.limits.upper
    start = demands.space.start
    if start is not None:
        if demands.slack_at(start[None])[0] <= THRESHOLDS.room:
            raise InfeasibleError(_complaint(demands, start, "the start pose leaves no room to move"))
        return [start] * count
    poses = low + (high - low) * (0.1 + 0.8 * rng.random((max(2000, 20 * count), len(low))))
    slack = demands.slack_at(poses)
    for spread in (0.2, 0.1, 0.05, 0.02, 0.01, 0.003):  # towards poses that are better, if none is good
        if (slack > THRESHOLDS.room).any():
            break
        near = poses[np.argsort(-slack)[:50]]
        moved = near[rng.integers(len(near), size=1000)] + spread * (high - low) * rng.normal(size=(1000, len(low)))
        poses = np.vstack([near, np.clip(moved, low, high)])
        slack = demands.slack_at(poses)
    good = np.flatnonzero(slack > THRESHOLDS.room)
    if not len(good):
        best = poses[int(np.argmax(slack))]
        raise InfeasibleError(_complaint(demands, best, "no pose respects all limits; of the best one found"))
    # Room to move matters: the poses with more slack than half of the good ones.
    roomy = good[slack[good] >= np.median(slack[good])]
    chosen = rng.choice(roomy, size=count, replace=len(roomy) < count)
    return [poses[i] for i in chosen]


def _complaint(demands: Demands, pose: Array, opening: str) -> str:
    still = np.zeros((1, len(pose)))
    broken = [item for item in demands.at((pose[None], still, still)) if item.share <= THRESHOLDS.room]
    where = ", ".join(f"{name} {x:.3g}" for name, x in zip(demands.robot.joint_names, pose, strict=True))
    return f"{opening}: {'; '.join(map(str, broken))} (at {where}); widen that limit or move what is in the way"
