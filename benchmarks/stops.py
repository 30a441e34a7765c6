"""Whether a stop of the log diagnostics is deserved: what identification makes of such logs with `--check off`.

    python benchmarks/stops.py RESULTS.jsonl [--robots panda,tiago] [--store FILE.jsonl] [--write PAGE]

RESULTS are those of `benchmarks/mistakes.py --store`. For every log that stops there, the first of its kind and robot,
a model with basic friction is identified from the first 70 % of each log with the check overruled. Its relative torque
error on the sound last 30 %, joint by joint as the robot really moved, stands beside that of a model of the sound logs.
Of logs that are too short, the rest of the log is held out. A stop is deserved where identification refuses such logs
as well, or where that error is larger by more than half.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from benchmarks.mistake_data import dataset, names
from benchmarks.mistake_doubts import KINDS as DOUBTS, Doubt, at_joints
from benchmarks.mistake_kinds import cases
from numpy.typing import NDArray

import dynident as di
from dynident.errors import DynidentError
from dynident.logs.log import Log
from dynident.logs.write import write_log
from dynident.robot.model import Robot

TRAINED = 0.7  # of each log
WORSE = 1.5  # times the error of the sound logs, from which a stop is deserved
BEGIN, END = "<!-- table: benchmarks/stops.py -->", "<!-- end of stops -->"


@dataclass(frozen=True)
class Overruled:
    """A stop that was overruled.

    Attributes:
        data, kind, where: Of the mistake or doubt.
        sound: Held-out error of a model of the sound logs.
        error: That of a model of the logs that stop, on the same sound samples; None where identification refuses.
        refused: Why it does.
    """

    data: str
    kind: str
    where: str
    sound: float
    error: float | None
    refused: str = ""

    @property
    def deserved(self) -> bool:
        """Whether identification would have misled."""
        return self.error is None or self.error > WORSE * self.sound


def part(log: Log, places: NDArray[np.int_], name: str) -> Log:
    """Some samples of a log, as a log of its own."""
    own = log.samples(places)
    return Log(f"{log.source} {name}", f"{log.digest} {name}", own.time, own.channels, label=f"{log.label} {name}")


def begin(log: Log) -> Log:
    """What trains."""
    return part(log, np.arange(int(TRAINED * len(log))), "begin")


def end(log: Log) -> Log:
    """What is held out."""
    return part(log, np.arange(int(TRAINED * len(log)), len(log)), "end")


def error_of(robot: Robot, train: Sequence[Log], test: Sequence[Log]) -> float:
    """Relative torque error on logs of a model of others, whatever the diagnostics say of these."""
    fit = di.identify(robot, list(train), friction="basic", check="off")
    return float(di.validate(fit, list(test)).relative_error)


def overruled(
    data: str, kind: str, where: str, robot: Robot, logs: Sequence[Log], sound: float, test: Sequence[Log]
) -> Overruled:
    """What comes of logs that stop, read from files as the user's are."""
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place) / f"log{i}.npz" for i in range(len(logs))]
        try:
            for log, path in zip(logs, paths, strict=True):
                write_log(log, path)
            error = error_of(robot, [di.read_log(path, robot) for path in paths], test)
        except DynidentError as refused:
            return Overruled(data, kind, where, sound, None, str(refused))
    return Overruled(data, kind, where, sound, error)


def of_mistakes(name: str, stopped: set[tuple[str, ...]], known: set[tuple[str, str]]) -> Iterator[Overruled]:
    """The first mistake of each kind in a dataset that stops."""
    data = dataset(name)
    if data is None:
        return
    with tempfile.TemporaryDirectory() as place:
        robot = data.robot(Path(place))
        test = at_joints([end(log) for log in data.logs], robot)
        sound = error_of(robot, [begin(log) for log in data.logs], test)
        done = {kind for own, kind in known if own == data.name}
        for case in cases(data, robot):
            if (data.name, case.kind, case.where) in stopped and case.kind not in done:
                done.add(case.kind)
                wrong = data.robot(Path(place), case.keys)
                yield overruled(data.name, case.kind, case.where, wrong, [begin(log) for log in case.logs], sound, test)


def of_doubts(stopped: set[tuple[str, ...]], known: set[tuple[str, str]]) -> Iterator[Overruled]:
    """The doubts that stop, of which the logs as they should be are known."""
    for make in DOUBTS.values():
        with tempfile.TemporaryDirectory() as place:
            for doubt in make(Path(place)):
                name = f"{doubt.kind}, {doubt.where}"
                if (doubt.kind, doubt.where) in stopped and ("", name) not in known:
                    yield of_doubt(doubt, name)


def of_doubt(doubt: Doubt, name: str) -> Overruled:
    """What comes of a doubt that stops. Of a short run, a part of the whole log at its other end is held out."""
    robot = doubt.robot
    if doubt.kind != "short run":
        test = at_joints([end(log) for log in doubt.meant], robot)
        sound = error_of(robot, [begin(log) for log in doubt.meant], test)
        return overruled("", name, "", robot, [begin(log) for log in doubt.logs], sound, test)
    (whole,), (cut,) = doubt.meant, doubt.logs
    places = np.arange(len(whole))
    late = cut.time[-1] - whole.time[0] > TRAINED * (whole.time[-1] - whole.time[0])
    held = places[: int((1.0 - TRAINED) * len(places))] if late else places[int(TRAINED * len(places)) :]
    test = at_joints([part(whole, held, "held out")], robot)
    sound = error_of(robot, [part(whole, np.setdiff1d(places, held), "rest")], test)
    return overruled("", name, "", robot, [part(cut, np.arange(len(cut)), "cut")], sound, test)


def as_page(found: Sequence[Overruled]) -> str:
    """A table by kind, and every stop that is not deserved."""
    groups: dict[str, list[Overruled]] = {}
    for one in found:
        groups.setdefault(one.kind.split(", ")[0] if not one.data else one.kind, []).append(one)
    lines = [
        "| stopped | logs | refused anyway | error, sound | error, overruled | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for kind, own in groups.items():
        ran = [one for one in own if one.error is not None]
        cells = ["", "", ""]
        if ran:
            errors = np.array([(one.sound, one.error, one.error / one.sound) for one in ran if one.error is not None])
            low, high = errors.min(0), errors.max(0)
            sound, error = (f"{100 * low[k]:.2g} to {100 * high[k]:.2g} %" for k in (0, 1))
            cells = [sound, error, f"{low[2]:.2g} to {high[2]:.2g}"]
        lines.append(f"| {kind} | {len(own)} | {len(own) - len(ran)} | {' | '.join(cells)} |")
    mild = [one for one in found if not one.deserved]
    words = f"{len(found)} stops overruled, {len(found) - len(mild)} deserved"
    lines += ["", f"{words}{':' if mild else '.'}"]
    lines += [
        f"- {one.data} {one.kind} {one.where}: {100 * one.sound:.3g} -> {100 * (one.error or 0.0):.3g} %"
        for one in mild
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--robots", default=",".join(names()))
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep results here and go on from them")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    given = parser.parse_args()
    rows = [json.loads(line) for path in given.results for line in path.read_text().splitlines()]
    stopped = {(row["data"], row["kind"], row["where"]) for row in rows if row.get("severity") == "stop"}
    doubted = {(row["kind"], row["where"]) for row in rows if row.get("stops")}
    kept = given.store.read_text().splitlines() if given.store and given.store.exists() else []
    found = [Overruled(**json.loads(line)) for line in kept]
    known = {(one.data, one.kind) for one in found}
    sources = [of_mistakes(name, stopped, known) for name in given.robots.split(",") if name]
    for one in itertools.chain(*sources, of_doubts(doubted, known) if doubted else ()):
        found.append(one)
        error = "refused" if one.error is None else f"{100 * one.error:.3g} %"
        print(f"{one.data} {one.kind} {one.where}: {100 * one.sound:.3g} -> {error} {one.refused[:100]}", flush=True)
        if given.store:
            with given.store.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    page = as_page(found)
    print(f"\n{page}")
    if given.write:
        text = given.write.read_text()
        before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
        given.write.write_text(f"{text[:before]}\n\n{page}\n\n{text[after:]}")


if __name__ == "__main__":
    main()
