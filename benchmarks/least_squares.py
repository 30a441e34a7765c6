"""dynident's defaults against plain least squares, on motion that neither has seen.

    python benchmarks/least_squares.py [--only ur10e,panda,cart] [--cuts whole,short,slow] [--seeds 5] [--friction auto]

Plain least squares: Pinocchio's regressor reduced to base columns, positions and torque low-passed by a zero-phase
Butterworth filter of order 4 at F, central differences, viscous friction, tanh(dq / 0.03), offset and (motor side)
rotor inertia. Errors of both are taken after the same zero-phase low-pass at F, six times the frequency below which
90 % of the joint velocities' power lies (median over the joints), at least 3 Hz. Every scenario is also cut to the
first 8 s of its training logs (short) and resampled to 30 Hz (slow). Data is looked for at DYNIDENT_DATA, or in
../shared/data; robots that are not there are skipped. The small machines of `small_machines.py` are simulated; "random"
stands for those with everything drawn at random.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pinocchio as pin
from scipy.linalg import qr
from scipy.signal import butter, sosfiltfilt
from tests.robots import tree_model

import dynident as di
from dynident.dynamics.terms.friction import elements_with_friction, motion_of
from dynident.logs.log import Log, joint_positions, row_torques
from dynident.robot.model import Robot
from friction import DATA, ur10e
from small_machines import MACHINES, RANDOM_MACHINES

SHORT = 8.0  # [s] of each training log in a short scenario
SLOW_RATE = 30.0  # [Hz]
WIDTH = 0.03  # [rad/s] of the smoothed sign of plain least squares


@dataclass(frozen=True)
class Scenario:
    """What is identified from, and what evaluates.

    Attributes:
        label: In words.
        robot: The robot.
        train: Training logs.
        test: Held-out logs.
        rotor: Whether torque is measured at the motors, so that rotor inertia is in it.
    """

    label: str
    robot: Robot
    train: Sequence[Log]
    test: Sequence[Log]
    rotor: bool = True


# --- scenarios --------------------------------------------------------------------------------------------------------


def part(log: Log, start: float, stop: float, label: str = "") -> Log:
    """The samples of a log from one time to before another, counted from its first stamp [s]."""
    own = (log.time - log.time[0] >= start) & (log.time - log.time[0] < stop)
    rest = log.samples(np.flatnonzero(own))
    name = f"{log.source}{label}[{start:g}:{stop:g}]"
    return di.Log(name, f"{log.digest}{label}{start}{stop}", rest.time, rest.channels)


def resampled(log: Log, rate: float = SLOW_RATE) -> Log:
    """Every so many-th sample of a log: what a slow logger would have kept."""
    stamps = np.arange(log.time[0], log.time[-1], 1.0 / rate)
    places = np.unique(np.clip(np.searchsorted(log.time, stamps), 0, len(log.time) - 1))
    rest = log.samples(places)
    return di.Log(f"{log.source} {rate:g} Hz", f"{log.digest}{rate}", rest.time, rest.channels)


def by_blocks(label: str, robot: Robot, logs: Sequence[Log], blocks: int = 5, rotor: bool = True) -> list[Scenario]:
    """One log cut into blocks; the second and the fourth are held out, with their neighbors' near halves."""
    found = []
    for own in range(1, blocks, 2):
        train: list[Log] = []
        test: list[Log] = []
        for log in logs:
            length = (log.time[-1] - log.time[0]) / blocks
            begin, end = own * length, (own + 1) * length
            gap = 0.25 * length
            test.append(part(log, begin, end, "t"))
            train += [part(log, 0.0, begin - gap, "a"), part(log, end + gap, np.inf, "b")]
        train = [log for log in train if log.time[-1] - log.time[0] > 2.0]
        found.append(Scenario(f"{label} block {own + 1}", robot, train, test, rotor))
    return found


def real_robots() -> dict[str, Callable[[], list[Scenario]]]:
    """Scenarios of each robot whose data is at hand."""

    def ur() -> list[Scenario]:
        robot, folds = ur10e()
        return [Scenario(f"ur10e {fold.label}", robot, fold.train, [fold.test]) for fold in folds]

    def panda() -> list[Scenario]:
        robot = di.load_robot(DATA / "franka_panda" / "robot.urdf")
        log = di.read_log(DATA / "franka_panda" / "log_a.csv.gz", robot)
        return by_blocks("panda", robot, [log], rotor=False)

    def lwr4() -> list[Scenario]:
        folder = DATA / "kuka_lwr4"
        robot = di.load_robot(folder / "robot.urdf")
        a, b = (di.read_log(folder / f"{name}.csv.gz", robot) for name in ("log2", "log3_part_a"))
        return [
            Scenario("lwr4 log 2 to 3", robot, [a], [b], rotor=False),
            Scenario("lwr4 log 3 to 2", robot, [b], [a], rotor=False),
            *by_blocks("lwr4 log 3", robot, [b], rotor=False),
        ]

    def tx40() -> list[Scenario]:
        robot = di.load_robot("tx40")
        return by_blocks("tx40", robot, [di.read_log(DATA / "staubli_tx40" / "log_motor_a.csv.gz", robot)])

    def mtm() -> list[Scenario]:
        robot = di.load_robot(DATA / "dvrk_mtm" / "robot.yaml")
        return by_blocks("mtm", robot, [di.read_log(DATA / "dvrk_mtm" / "log_one.csv.gz", robot)])

    def schunk() -> list[Scenario]:
        robot = di.load_robot(DATA / "schunk_lwa3" / "robot.yaml")
        return by_blocks("schunk", robot, [di.read_log(DATA / "schunk_lwa3" / "log_train.csv.gz", robot)])

    folders = {
        "ur10e": ("ur10e", ur),
        "panda": ("franka_panda", panda),
        "lwr4": ("kuka_lwr4", lwr4),
        "tx40": ("staubli_tx40", tx40),
        "mtm": ("dvrk_mtm", mtm),
        "schunk": ("schunk_lwa3", schunk),
    }
    return {name: make for name, (folder, make) in folders.items() if (DATA / folder).exists()}


def simulated(name: str, seeds: int) -> list[Scenario]:
    """A small machine with several seeds: the first run is identified, the second is held out."""
    runs = [(seed, *{**MACHINES, **RANDOM_MACHINES}[name](seed)) for seed in range(seeds)]
    return [Scenario(f"{name} {seed}", robot, [first], [second]) for seed, robot, (first, second) in runs]


def cut(scenario: Scenario, how: str) -> Scenario | None:
    """A scenario with its training cut short, or everything resampled; None where that changes nothing."""
    if how == "whole":
        return scenario
    if how == "short":
        if all(log.time[-1] - log.time[0] <= SHORT for log in scenario.train):
            return None
        shorter = [part(log, 0.0, SHORT, "s") for log in scenario.train]
        return replace(scenario, label=f"{scenario.label}, {SHORT:g} s", train=shorter)
    slow = [[resampled(log) for log in logs] for logs in (scenario.train, scenario.test)]
    return replace(scenario, label=f"{scenario.label}, {SLOW_RATE:g} Hz", train=slow[0], test=slow[1])


# --- plain least squares ----------------------------------------------------------------------------------------------


def uniform(log: Log, robot: Robot) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Rate [Hz], stamps (n,), positions and torques (n, n_joints) on an even grid; rows that repeat are dropped."""
    q, tau, t = joint_positions(log, robot), row_torques(log, robot), log.time
    both = np.hstack([q, tau])
    fresh = np.append(True, (np.diff(both, axis=0) != 0.0).any(1))
    t, both = t[fresh], both[fresh]
    rate = 1.0 / float(np.median(np.diff(log.time)))
    grid = np.arange(t[0], t[-1], 1.0 / rate)
    even = np.array([np.interp(grid, t, own) for own in both.T]).T
    return rate, grid, even[:, : q.shape[1]], even[:, q.shape[1] :]


def low_pass(x: np.ndarray, cutoff: float, rate: float) -> np.ndarray:
    """Zero-phase Butterworth filter of order 4 along the first axis."""
    return sosfiltfilt(butter(4, min(cutoff, 0.45 * rate), fs=rate, output="sos"), x, axis=0)


def evaluation_frequency(logs: Sequence[Log], robot: Robot) -> float:
    """F: six times the frequency below which 90 % of velocity power lies, median over joints and logs; 3 Hz or more."""
    found = []
    for log in logs:
        rate, _, q, _ = uniform(log, robot)
        velocity = np.gradient(q, 1.0 / rate, axis=0)
        density = np.abs(np.fft.rfft((velocity - velocity.mean(0)) * np.hanning(len(velocity))[:, None], axis=0)) ** 2
        f = np.fft.rfftfreq(len(velocity), 1.0 / rate)
        # White noise of positions, as the upper half of the spectrum has it, is not motion.
        shape, upper = np.sin(np.pi * f / rate) ** 2, slice(len(f) // 2, None)
        noise = np.median(density[upper] / shape[upper, None], axis=0) * shape[:, None]
        power = np.cumsum(np.where(density > 30.0 * noise, density, 0.0), axis=0)
        moving = np.ptp(q, axis=0) > 1e-3
        places = [np.argmax(own >= 0.9 * own[-1]) for own in power.T[moving]]
        found.append(float(np.median(f[places])))
    return max(6.0 * float(np.median(found)), 3.0)


class PlainLeastSquares:
    """Ordinary least squares on Pinocchio's regressor with basic friction."""

    def __init__(self, robot: Robot, rotor: bool, cutoff: float) -> None:
        self.robot, self.rotor, self.cutoff = robot, rotor, cutoff
        self.model = tree_model(robot)
        self.data = self.model.createData()
        self.elements = elements_with_friction(robot)
        self.moving = list(robot.moving)
        rng = np.random.default_rng(0)
        n = len(robot.joint_names)
        W = self._rigid(*rng.uniform(-2.0, 2.0, (3, 60, n)))
        flat = W.reshape(-1, W.shape[2])
        size = np.linalg.norm(flat, axis=0)
        used = np.flatnonzero(size > 1e-9)
        _, R, order = qr(flat[:, used] / size[used], mode="economic", pivoting=True)
        rank = int(np.sum(np.abs(np.diag(R)) > 1e-8 * abs(R[0, 0])))
        self.base = np.sort(used[order[:rank]])

    def _rigid(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """(n_samples, n_joints, 10 n_links): the tree's regressor, brought to the actuated coordinates."""
        follow = self.robot.follow
        tree = [q @ follow.T + self.robot.follow_offset, dq @ follow.T, ddq @ follow.T]
        rows = np.array(
            [
                np.atleast_2d(pin.computeJointTorqueRegressor(self.model, self.data, *state))
                for state in zip(*tree, strict=True)
            ]
        )
        joints = np.einsum("tj,ntc->njc", follow, rows)
        return np.stack([di.dynamics.actuated_torque(self.robot, joints[:, :, c]) for c in range(rows.shape[2])], 2)

    def _columns(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        rigid = self._rigid(q, dq, ddq)[:, :, self.base]
        parts = [rigid]
        for element in self.elements:
            direction, torque = motion_of(self.robot, element), element.torque[self.moving]
            v, a = dq @ direction, ddq @ direction
            width = WIDTH * element.radian
            own = [v, np.tanh(v / width), *([a] if self.rotor else [])]
            parts.append(np.stack([x[:, None] * torque for x in own], axis=2))
        parts.append(np.broadcast_to(np.eye(q.shape[1]), (len(q), q.shape[1], q.shape[1])))
        return np.concatenate(parts, axis=2)

    def _states(self, log: Log) -> tuple[float, np.ndarray, list[np.ndarray], np.ndarray]:
        rate, t, q, tau = uniform(log, self.robot)
        smooth = low_pass(q, self.cutoff, rate)
        dq = np.gradient(smooth, 1.0 / rate, axis=0)
        return rate, t, [smooth, dq, np.gradient(dq, 1.0 / rate, axis=0)], low_pass(tau, self.cutoff, rate)

    def fit(self, logs: Sequence[Log]) -> PlainLeastSquares:
        rows, right = [], []
        for log in logs:
            rate, _, states, tau = self._states(log)
            every = max(1, int(rate / (8.0 * self.cutoff)))
            W = self._columns(*(x[::every] for x in states))
            rows.append(W.reshape(-1, W.shape[2]))
            right.append(tau[::every].ravel())
        A, b = np.vstack(rows), np.concatenate(right)
        size = np.maximum(np.linalg.norm(A, axis=0), 1e-12)
        self.values = np.linalg.lstsq(A / size, b, rcond=1e-8)[0] / size
        return self

    def predict(self, log: Log) -> np.ndarray:
        """(n, n_joints) on the even grid of the log."""
        _, _, states, _ = self._states(log)
        return self._columns(*states) @ self.values


# --- comparison -------------------------------------------------------------------------------------------------------


def squares(measured: np.ndarray, predicted: np.ndarray, cutoff: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Squares of error and torque of each joint after the low-pass, ends of half a period left out."""
    edge = int(0.5 * rate / cutoff)
    own = slice(edge, len(measured) - edge)
    tau, hat = (low_pass(x, cutoff, rate)[own] for x in (measured, predicted))
    return ((tau - hat) ** 2).sum(0), (tau**2).sum(0)


@dataclass(frozen=True)
class Outcome:
    """Relative errors: total of plain least squares and of dynident, and of each joint."""

    label: str
    F: float
    plain: float
    ours: float
    plain_joints: np.ndarray
    our_joints: np.ndarray
    share: np.ndarray
    seconds: float
    note: str

    @property
    def ratio(self) -> float:
        return self.ours / self.plain

    @property
    def worst_joint(self) -> float:
        """Largest ratio of a joint that carries a hundredth of the torque or more."""
        own = self.share >= 0.01
        return float((self.our_joints / self.plain_joints)[own].max())


def compare(scenario: Scenario, identify: Callable[..., di.Fit] = di.identify, **options: object) -> Outcome:
    """Both methods on one scenario."""
    robot, F = scenario.robot, evaluation_frequency([*scenario.train, *scenario.test], scenario.robot)
    plain = PlainLeastSquares(robot, scenario.rotor, F).fit(scenario.train)
    began, note = time.perf_counter(), ""
    fit = identify(robot, list(scenario.train), **options)
    seconds = time.perf_counter() - began
    note = "/".join(dict.fromkeys(f"{one.band:.3g}" for one in fit.data)) + " Hz"
    sums = np.zeros((3, len(robot.joint_names)))
    for log in scenario.test:
        rate, grid, _, tau = uniform(log, robot)
        theirs = plain.predict(log)
        hat = di.dynamics.actuated_torque(robot, fit.predict(log))
        ours = np.array([np.interp(grid, log.time, own) for own in hat.T]).T
        sums[0] += squares(tau, theirs, F, rate)[0]
        error, torque = squares(tau, ours, F, rate)
        sums[1] += error
        sums[2] += torque
    joints = np.sqrt(sums[:2] / np.maximum(sums[2], 1e-30))
    total = np.sqrt(sums[:2].sum(1) / sums[2].sum())
    share = np.sqrt(sums[2] / sums[2].sum())
    return Outcome(scenario.label, F, *map(float, total), *joints, share, seconds, note)


def outcomes(names: Sequence[str], cuts: Sequence[str], seeds: int, **options: object) -> Iterator[Outcome]:
    """All scenarios of some robots."""
    robots = real_robots()
    small_machines = {**MACHINES, **RANDOM_MACHINES}
    for name in [own for given in names for own in (RANDOM_MACHINES if given == "random" else [given])]:
        if name not in robots and name not in small_machines:
            print(f"{name}: skipped, no data at {DATA}")
            continue
        small = name in small_machines
        for scenario in simulated(name, seeds) if small else robots[name]():
            for how in ("whole",) if small else cuts:
                own = cut(scenario, how)
                if own is not None:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        yield compare(own, **options)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=",".join(["ur10e,panda,lwr4,tx40,mtm,schunk", *MACHINES]))
    parser.add_argument("--cuts", default="whole,short,slow")
    parser.add_argument("--friction", default=None)
    parser.add_argument("--seeds", type=int, default=5, help="of each small machine")
    arguments = parser.parse_args()
    options = {} if arguments.friction is None else {"friction": arguments.friction}
    print("| held out | F [Hz] | least squares [%] | dynident [%] | ratio | worst joint | time [s] | band |")
    print("|---|---|---|---|---|---|---|---|")
    found = []
    chosen = arguments.only.split(","), arguments.cuts.split(","), arguments.seeds
    for one in outcomes(*chosen, check="off", **options):
        found.append(one)
        cells = [one.label, f"{one.F:.3g}", f"{100 * one.plain:.2f}", f"{100 * one.ours:.2f}", f"{one.ratio:.3f}"]
        print(f"| {' | '.join([*cells, f'{one.worst_joint:.2f}', f'{one.seconds:.1f}', one.note])} |", flush=True)
    ratios = np.array([one.ratio for one in found])
    mean = float(np.exp(np.log(ratios).mean()))
    print(
        f"\n{len(ratios)} scenarios: geometric mean of the ratio {mean:.3f}, largest {ratios.max():.3f}, "
        f"above 1: {int((ratios > 1.0).sum())}"
    )


if __name__ == "__main__":
    main()
