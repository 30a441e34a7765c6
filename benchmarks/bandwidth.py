"""Bandwidth on real robots: the band that is chosen, and the torque error on parts that were not trained on.

    python benchmarks/bandwidth.py [--robots dvrk_mtm,schunk_lwa3]

Data is looked for at DYNIDENT_DATA, or in ../shared/data; what is not there is skipped. Every fold is identified with
basic friction and everything else by default, and evaluated in one band per robot on a log, or a part of one, that it
has not seen. Logs of the da Vinci master arm, the LWA3, TIAGo and the Go2 are cut in halves, each evaluated by the
other; the other robots' folds are those of `friction.py`. The rule of before is eighteen times the frequency below
which 90 % of the fastest joint's velocity power lies.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import dynident as di
import dynident.pipeline.preprocessing as pipeline
import friction
from dynident.logs.log import Log, joint_positions
from dynident.robot.model import Robot
from dynident.signals import BandChoice, Observations, fresh_blocks, survey_log
from friction import DATA, Fold

TIAGO_GAINS = "drive_gains: [1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]\n"  # [N·m/A]
GO2_KP, GO2_KD = 20.0, 1.5  # [N·m/rad], [N·m·s/rad] of the drives' position loops


def halves(log: Log) -> list[Fold]:
    """Two folds of one log: each half is evaluated by a fit of the other."""
    middle = 0.5 * (log.time[0] + log.time[-1])
    parts = [log.samples(np.flatnonzero(own)) for own in (log.time < middle, log.time >= middle)]
    first, second = (di.Log(f"{log.source} {i}", f"{log.digest}{i}", x.time, x.channels) for i, x in enumerate(parts))
    return [Fold("first half to second", [first], second), Fold("second half to first", [second], first)]


def mtm() -> tuple[Robot, list[Fold]]:
    """Rows polled at 200 Hz without stamps: repeats and skips."""
    robot = di.load_robot(DATA / "dvrk_mtm" / "robot.yaml")
    return robot, halves(di.read_log(DATA / "dvrk_mtm" / "log_one.csv.gz", robot))


def schunk() -> tuple[Robot, list[Fold]]:
    """Polled readings with stamps to a millisecond."""
    robot = di.load_robot(DATA / "schunk_lwa3" / "robot.yaml")
    return robot, halves(di.read_log(DATA / "schunk_lwa3" / "log_train.csv.gz", robot))


def tiago() -> tuple[Robot, list[Fold]]:
    """A slide and seven slow joints, three of which have no torque."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiago.yaml"
        path.write_text(f"base: {DATA / 'tiago_arm' / 'robot.urdf'}\n{TIAGO_GAINS}")
        robot = di.load_robot(path)
    return robot, halves(di.read_log(DATA / "tiago_arm" / "log_a.csv.gz", robot))


def go2() -> tuple[Robot, list[Fold]]:
    """Four legs in a chirp; torque is what the position loops of the drives give, from targets and positions."""
    robot = di.load_robot(DATA / "unitree_go2" / "robot.xml")
    with gzip.open(DATA / "unitree_go2" / "log_a.csv.gz", "rt") as file:
        table = np.genfromtxt(file, delimiter=",", names=True)
    channels = {f"q{i}": table[f"q{i}"] for i in range(1, 13)}
    for i in range(1, 13):
        q = table[f"q{i}"]
        channels[f"tau{i}"] = GO2_KP * (table[f"target{i}"] - q) - GO2_KD * np.gradient(q, table["t"])
    return robot, halves(di.Log("go2", "go2", table["t"], channels))


ROBOTS: dict[str, tuple[str, float, Callable[[], tuple[Robot, list[Fold]]]]] = {  # folder, band of the comparison [Hz]
    "dvrk_mtm": ("dvrk_mtm", 3.6, mtm),
    "schunk_lwa3": ("schunk_lwa3", 3.0, schunk),
    **friction.ARMS,
    "tiago": ("tiago_arm", 5.0, tiago),
    "go2": ("unitree_go2", 5.0, go2),
}


def band_before(log: Log, robot: Robot) -> float:
    """Eighteen times the frequency below which 90 % of the fastest joint's velocity power above white noise lies."""
    found = survey_log(log, robot, channels=False)
    found.require_usable()
    blocks = list(fresh_blocks(log.blocks()))  # stalls repaired, which the rule of before did not have
    time_, q = (
        np.concatenate(part) for part in zip(*((b.time, joint_positions(b, robot)) for b in blocks), strict=True)
    )
    rate = found.grid.rate
    even = np.arange(time_[0], time_[-1], 1.0 / rate)
    mean = max(1, int(rate / 100.0))
    level = np.array([np.interp(even, time_, own) for own in q.T])[:, : len(even) // mean * mean]
    velocity = np.diff(level.reshape(len(level), -1, mean).mean(2), axis=1)
    length = 32768 // mean
    power = np.abs(np.fft.rfft(velocity * np.hanning(velocity.shape[1]), length, axis=1)) ** 2
    shape = np.sin(np.pi * np.arange(power.shape[1]) / length) ** 2
    upper = slice(len(shape) // 2, None)
    floor = np.median(power[:, upper] / shape[upper], axis=1)[:, None] * shape
    power = np.where(power > 30.0 * floor, power, 0.0)
    total = power.sum(1)
    moved = total > 1e-4 * total.max()
    places = np.argmax(np.cumsum(power[moved], axis=1) >= 0.9 * total[moved][:, None], axis=1)
    return float(np.clip(18.0 * places.max() * rate / mean / length, 1.0, 0.9 * rate / 4.0))


@contextmanager
def bands_of_before() -> Iterator[None]:
    """Every log is observed in the band of before."""
    chosen = pipeline.choose_bands, pipeline.try_other_bands

    def choose_as_before(observations: Sequence[Observations], *_: object) -> list[Observations]:
        reason = "18 times the typical frequency of before"
        return [one.decided(BandChoice(band_before(one.log, one.robot), reason)) for one in observations]

    pipeline.choose_bands, pipeline.try_other_bands = choose_as_before, lambda observations, *_: list(observations)
    try:
        yield
    finally:
        pipeline.choose_bands, pipeline.try_other_bands = chosen


def held_out(robot: Robot, fold: Fold, band: float) -> tuple[float, str, float, str]:
    """Error on what was held out [%], bands of the training logs, time taken [s], and why these bands."""
    began = time.perf_counter()
    fit = di.identify(robot, fold.train, friction="basic", check="off")
    spent = time.perf_counter() - began
    bands = sorted({f"{record.band:.3g}" for record in fit.data}, key=float)
    error = 100.0 * di.validate(fit, fold.test, band=band).relative_error
    return error, " to ".join(dict.fromkeys((bands[0], bands[-1]))), spent, next(iter(fit.notes))


def evaluated(name: str) -> Iterator[str]:
    """Lines of the table for one robot: a line per fold, and their mean."""
    _, band, make = ROBOTS[name]
    robot, folds = make()
    errors = []
    for fold in folds:
        with bands_of_before():
            before = held_out(robot, fold, band)
        now = held_out(robot, fold, band)
        errors.append((before[0], now[0]))
        cells = [f"{name}: {fold.label}", f"{band:g}", before[1], now[1], f"{before[0]:.2f}", f"{now[0]:.2f}"]
        cells += [f"{now[0] / before[0]:.3f}", f"{before[2]:.1f}, {now[2]:.1f}", now[3]]
        yield f"| {' | '.join(cells)} |"
    old, new = np.mean(errors, axis=0)
    yield f"| **{name}** | {band:g} | | | **{old:.2f}** | **{new:.2f}** | **{new / old:.3f}** | | |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--robots", default=",".join(ROBOTS))
    arguments = parser.parse_args()
    heads = ["left out", "evaluated to [Hz]", "band before [Hz]", "band [Hz]", "error before [%]", "error [%]", "ratio"]
    heads += ["time [s]", "why"]
    print(f"| {' | '.join(heads)} |")
    print("|" + "---|" * len(heads))
    for name in arguments.robots.split(","):
        if not (DATA / ROBOTS[name][0]).exists():
            print(f"{name}: skipped, no data at {DATA / ROBOTS[name][0]} (set DYNIDENT_DATA)")
            continue
        for line in evaluated(name):
            print(line, flush=True)


if __name__ == "__main__":
    main()
