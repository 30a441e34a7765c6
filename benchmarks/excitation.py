"""An exciting motion for a 6- and a 7-joint arm against what people do today, on the same criterion and limits.

The peer is SLSQP from ten random feasible starts with finite differences, on our own compiled criterion and limits (a
generous peer: with Pinocchio and an SVD each evaluation costs several times as much). It gets what makes it converge: a
criterion of the order of one and starts well inside the limits. It looks at the same samples as our search. Its
criterion is reported as it ends, within its limits at those samples, and again after the motion has been made smaller
until it respects all limits at 1 kHz, as ours does; ours is compared with the first. The second peer is the best of 200
random motions, each as large as the limits allow. Times are of the processor, one thread each, so that other work on
the machine does not count.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import scipy.optimize

import dynident as di
from dynident.arrays import on_one_thread
from dynident.motion.excitation import ExcitationDesign
from dynident.motion.options import ExcitationOptions
from dynident.motion.search import ExcitationSearch, SearchResult, feasible_poses
from dynident.motion.thresholds import THRESHOLDS

LIMITS = {"acceleration": 8.0, "floor": -0.1, "clearance": 0.02, "safety": 1.0}
STARTS, RANDOM, STEPS = 10, 200, 100
SCALE = 0.01  # of the criterion for SLSQP, whose steps go astray when it is in the hundreds
INSIDE = 0.5  # share of the largest feasible size with which it begins
KEPT = 1e-3  # by which a limit may be broken at its samples


class Peer:
    """Criterion and limits of an excitation, for other optimizers."""

    def __init__(self, name: str) -> None:
        self.job = ExcitationDesign(di.load_robot(name), ExcitationOptions(**LIMITS))
        self.demands = self.job.demands()
        self.problem = self.job.problem(self.demands, THRESHOLDS.samples_per_period)
        options = ExcitationOptions(starts=1, kicks=0, iterations=1, seed=1)
        self.search = ExcitationSearch(self.problem, self.problem, self.demands, options)

    def promise(self, x: np.ndarray, pose: np.ndarray, seconds: float) -> di.trajectories.ExcitingMotion:
        x, shortfalls = self.search.shrink(x, pose)
        return self.job.predict(SearchResult(x, shortfalls, 0, False, seconds))

    @on_one_thread
    def slsqp(self) -> tuple[float, di.trajectories.ExcitingMotion, float]:
        """The best log det at its own samples, the best motion at 1 kHz, and the time of all runs [s]."""
        within, motions, total = [-np.inf], [], 0.0
        for pose in feasible_poses(self.demands, STARTS, np.random.default_rng(2)):
            rest = self.search.space.resting(pose)
            x = rest + INSIDE * (self.search._start(pose) - rest)
            start = time.process_time()
            best = scipy.optimize.minimize(
                lambda x: SCALE * self.problem.value(x),
                x,
                method="SLSQP",
                constraints={"type": "ineq", "fun": self.problem.slack},
                options={"maxiter": STEPS, "ftol": 1e-3 * SCALE},
            )
            seconds = time.process_time() - start
            total += seconds
            own = -best.fun / SCALE + 2.0 * float(np.sum(np.log(self.job.scale)))
            broken = max(0.0, -float(self.problem.slack(best.x).min()))
            if broken < KEPT:
                within.append(own)
            motions.append(self.promise(best.x, pose, seconds))
            text = f"log det {own:8.2f} at its samples, limits broken by {broken:.0e}"
            text += f"; {motions[-1].log_determinant:8.2f} at 1 kHz; {seconds:6.1f} s, {best.nit} steps"
            print(f"    SLSQP run {len(motions)}: {text}", flush=True)
        return max(within), max(motions, key=lambda motion: motion.log_determinant), total

    @on_one_thread
    def random(self) -> di.trajectories.ExcitingMotion:
        """The best of many random motions."""
        poses = feasible_poses(self.demands, RANDOM, np.random.default_rng(3))
        tried = [(self.search._start(pose), pose) for pose in poses]
        return self.promise(*min(tried, key=lambda one: self.problem.value(one[0])), 0.0)


def compare(name: str, with_slsqp: bool = True) -> None:
    print(f"{name}: 5 harmonics, 10 s; position, velocity, acceleration, torque, floor and clearance limits")
    robot = di.load_robot(name)
    start, wall = time.process_time(), time.perf_counter()
    ours = di.optimize_excitation(robot, **LIMITS)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    p = len(ours.names)
    least = min(ours.slack.values())
    row("dynident", ours.log_determinant, ours.condition, seconds)
    print(
        f"    least share of a limit left at 1 kHz: {least:.1e}; {ours.evaluations} evaluations, {wall:.1f} s of clock"
    )
    peer = Peer(name)
    scattered = peer.random()
    row("best of 200 random motions", scattered.log_determinant, scattered.condition)
    print(f"    (det)^(1/{p}) is {np.exp((ours.log_determinant - scattered.log_determinant) / p):.2f} times as large")
    if with_slsqp:
        within, best, total = peer.slsqp()
        row(f"best of {STARTS} SLSQP runs, 1 kHz", best.log_determinant, best.condition, total)
        ratio = np.exp((ours.log_determinant - within) / p)
        print(f"    best of them at its own samples {within:.2f}: (det)^(1/{p}) of ours is {ratio:.3f} times as large")
        print(f"    ours takes {seconds:.1f} s, SLSQP {total:.1f} s: {total / seconds:.1f} times as long")


def row(what: str, log_determinant: float, condition: float, seconds: float | None = None) -> None:
    took = "" if seconds is None else f"{seconds:10.1f} s"
    print(f"  {what:28} log det {log_determinant:8.2f}   condition {condition:8.1f}{took}", flush=True)


def main(with_slsqp: bool = True) -> None:
    for name in ("ur10e", "panda"):
        compare(name, with_slsqp)


if __name__ == "__main__":
    main("--quick" not in sys.argv)
