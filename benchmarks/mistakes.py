"""Seeded mistakes: made on purpose in sound logs and robot files, and what the log diagnostics says about each.

    python benchmarks/mistakes.py [--robots panda,sim-puma560] [--mistakes flipped,swapped] [--jobs 2]
                                  [--doubts "wraps,short runs"] [--store FILE.jsonl] [--write docs/reference/check.md]

Data is looked for at DYNIDENT_DATA, or in ../shared/data; what is not there is skipped. A mistake is found if an item
that is about it warns or stops where it did not before, and named if such an item says the right thing of the right
joint (or says so among explanations that are as good). The proposed overlay is put on the robot file, the log is read
again, and joint positions, velocities, torques, time and gravity must be those of the sound log. Where no overlay can
correct it, the number in the message must be right. Of mistakes that were missed or corrected otherwise, those which
leave the torque explained as well as before are counted apart: no data of that kind can determine them.

With --store every result is a line of a file as soon as it is there, and what is in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from benchmarks.mistake_data import Dataset, clean_simulated, dataset, names
from benchmarks.mistake_doubts import KINDS as DOUBTS, Doubt, wrong_claims
from benchmarks.mistake_kinds import Case, cases

import dynident as di
from dynident.arrays import Array
from dynident.diagnostics import Diagnosis, check_logs
from dynident.diagnostics.hypotheses import Wiring
from dynident.diagnostics.trial import Trial, trial_samples
from dynident.errors import DynidentError
from dynident.estimate.candidates import BASIC_TERMS
from dynident.identifiability import base_parameters
from dynident.logs import stream_log
from dynident.logs.log import Log, joint_positions, joint_velocities, row_torques
from dynident.logs.write import write_log
from dynident.robot.model import Robot
from dynident.robot.storage import yaml_text
from dynident.signals import SignalOptions, observe

NEAR = 0.03  # share by which what an overlay corrects may be off
DETERMINABLE = 0.3  # in the sum of logarithms: with less, the mistaken log is explained as well as the sound one
BEGIN, END = "<!-- table: benchmarks/mistakes.py -->", "<!-- end of table -->"


@dataclass(frozen=True)
class Result:
    """What became of a mistake.

    Attributes:
        data: Name of the dataset.
        kind, where: Of the mistake.
        found, named, corrected: Whether it was.
        severity: The worst of the items about it.
        determinable: Whether the sound log is explained better than what the user has in the end.
        said: The items that are not ok, in short.
    """

    data: str
    kind: str
    where: str
    found: bool
    named: bool
    corrected: bool
    severity: str
    determinable: bool
    said: str

    @property
    def right(self) -> bool:
        """Whether nothing is missing."""
        return self.found and self.named and self.corrected


def written(logs: Sequence[Log], folder: Path) -> list[Path]:
    """Logs as files, every bit of them."""
    paths = [folder / f"log{i}.npz" for i in range(len(logs))]
    for log, path in zip(logs, paths, strict=True):
        write_log(log, path)
    return paths


def checked(robot: Robot, paths: Sequence[Path]) -> Diagnosis:
    """The diagnosis of files, as on the command line."""
    return check_logs(robot, [stream_log(path, robot) for path in paths])


def diagnose(data: Dataset, case: Case, clean: Diagnosis) -> Result:
    """Make the mistake, look for it, correct it.

    Args:
        data: The sound dataset.
        case: The mistake.
        clean: What the diagnosis says of the sound dataset.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        robot, paths = data.robot(folder, case.keys), written(case.logs, folder)
        found = checked(robot, paths)
        before = {(one.name, one.severity) for one in clean.diagnostics if one.severity != "ok"}
        fresh = [one for one in found.diagnostics if one.severity != "ok" and (one.name, one.severity) not in before]
        fresh += [
            one for one in found.diagnostics if one.severity != "ok" and one not in fresh and one.name in case.items
        ]
        about = [one for one in fresh if one.name in case.items]
        hits = [re.search(pattern, one.message) for one in about for name, pattern in case.says if one.name == name]
        named = [hit for hit in hits if hit]
        determinable = True
        if case.overlay:
            corrected, user = _corrected(data, case, found, folder, paths)
            if not (named and corrected):
                determinable = _determinable(data, user, folder)
        else:
            corrected = bool(named) and (case.number is None or _near(named[0], *case.number))
            if not named:
                determinable = _determinable(data, [(robot, path) for path in paths], folder)
        severities = [one.severity for one in about]
    severity = "stop" if "stop" in severities else "warn" if severities else ""
    said = "; ".join(f"{one.name} {one.severity}: {one.message}" for one in fresh if one.name != "model") or "nothing"
    return Result(data.name, case.kind, case.where, bool(about), bool(named), corrected, severity, determinable, said)


def _near(hit: re.Match[str], wanted: float, off: float) -> bool:
    return abs(float(hit.group(1)) - wanted) <= off


def _corrected(
    data: Dataset, case: Case, found: Diagnosis, folder: Path, paths: Sequence[Path]
) -> tuple[bool, list[tuple[Robot, Path]]]:
    """Whether the proposed overlay gives the sound logs back, and each log with the robot that the user then has."""
    meant, right, user = case.meant or data.logs, True, []
    for i, path in enumerate(paths):
        fix: dict[str, Any] = dict(found.fix)
        for one in found.diagnostics:
            if one.log == str(path):  # what is wrong in one log alone is corrected there alone
                fix |= {key: {**fix.get(key, {}), **x} if isinstance(x, Mapping) else x for key, x in one.fix.items()}
        overlay = folder / f"corrected{i}.yaml"
        overlay.write_text(yaml_text({"base": "robot.yaml", **fix}))
        robot = di.load_robot(overlay)
        user.append((robot, path))
        try:
            right = right and _same(di.read_log(path, robot), robot, meant[i], data.robot(_inner(folder)))
        except DynidentError:
            right = False
    return right, user


def _inner(folder: Path) -> Path:
    inner = folder / "sound"
    inner.mkdir(exist_ok=True)
    return inner


def _same(log: Log, robot: Robot, sound: Log, meant: Robot) -> bool:
    """Whether a log says the same with one robot as the sound log with its own."""
    pairs = [
        (log.time - log.time[0], sound.time - sound.time[0]),
        (joint_positions(log, robot), joint_positions(sound, meant)),
        (row_torques(log, robot), row_torques(sound, meant)),
    ]
    velocities = joint_velocities(log, robot), joint_velocities(sound, meant)
    if velocities[0] is not None and velocities[1] is not None:
        pairs.append((velocities[0], velocities[1]))
    return bool(np.allclose(robot.gravity, meant.gravity)) and all(_close(a, b) for a, b in pairs)


def _close(a: Array, b: Array) -> bool:
    if a.shape != b.shape:
        return False
    off, size = (np.sqrt(np.mean(x**2, axis=0)) for x in (a - b, b))
    return bool(np.all(off <= NEAR * size + 1e-9))


def _determinable(data: Dataset, user: Sequence[tuple[Robot, Path]], folder: Path) -> bool:
    """Whether the sound logs are explained better than those that the user has."""
    meant = data.robot(_inner(folder))
    try:
        own = score([(robot, di.read_log(path, robot)) for robot, path in user])
    except DynidentError:
        return True
    return own - score([(meant, log) for log in data.logs]) > DETERMINABLE


def score(logs: Sequence[tuple[Robot, Log]]) -> float:
    """Sum over joints of the logarithm of what one model leaves of the torque of logs."""
    robot = logs[0][0]
    moments = trial_samples([observe(log, own, SignalOptions()) for own, log in logs])
    trial = Trial(base_parameters(robot, BASIC_TERMS))
    wirings = [Wiring.of(log, own) for own, log in logs]
    one = np.eye(len(robot.joint_names))
    return trial.fit([(trial.compress(x, one, w.zero), one) for x, w in zip(moments, wirings, strict=True)]).score


@dataclass(frozen=True)
class DoubtResult:
    """What became of logs for which nothing may be proposed.

    Attributes:
        kind, where: Of the doubt.
        wrong: What was proposed or named with confidence.
        stopped: Whether sound logs are stopped, but for too little motion.
        passed: Whether hopeless logs pass.
        stops: Names of the items that stop.
    """

    kind: str
    where: str
    wrong: tuple[str, ...]
    stopped: bool
    passed: bool
    stops: tuple[str, ...]


class Store:
    """Results as lines of a file, as they come, so that a run goes on where it ended.

    Args:
        path: Of the file; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        known = [json.loads(line) for line in lines]
        doubts = [
            DoubtResult(**{k: tuple(x) if isinstance(x, list) else x for k, x in one.items()})
            for one in known
            if "wrong" in one
        ]
        self.known = {self._key(one): one for one in [Result(**one) for one in known if "wrong" not in one]}
        self.doubts = {(one.kind, one.where): one for one in doubts}

    def result(self, data: str, kind: str, where: str, make: Callable[[], Result]) -> Result:
        """The result of a mistake: known, or made and kept."""
        return self.known.get((data, kind, where)) or self._kept(make())

    def doubt(self, kind: str, where: str, make: Callable[[], DoubtResult]) -> DoubtResult:
        """The result of a doubt: known, or made and kept."""
        return self.doubts.get((kind, where)) or self._kept(make())

    def _kept(self, result: Any) -> Any:
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
        return result

    @staticmethod
    def _key(result: Result) -> tuple[str, str, str]:
        return result.data, result.kind, result.where


def sound_result(name: str, robot: Robot, found: Diagnosis) -> Result:
    """What is said of sound logs."""
    said = "; ".join(f"{one.name} {one.severity}" for one in found.diagnostics if one.severity != "ok")
    return Result(name, "none", "", bool(said), False, False, found.severity, False, said or "nothing")


def results_of(name: str, wanted: Sequence[str], path: Path | None) -> list[Result]:
    """All mistakes in one dataset, those whose kind has one of the wanted words in it."""
    data, store = dataset(name), Store(path)
    if data is None:
        return []
    with tempfile.TemporaryDirectory() as place:
        robot = data.robot(Path(place))
        clean = checked(robot, written(data.logs, Path(place)))
    found = [store.result(data.name, "none", "", lambda: sound_result(data.name, robot, clean))]
    for case in cases(data, robot):
        if not wanted or any(word in case.kind for word in wanted):
            make = partial(diagnose, data, case, clean)
            found.append(store.result(data.name, case.kind, case.where, make))
    return found


def clean_results(path: Path | None) -> list[Result]:
    """Sound simulated logs."""
    store = Store(path)
    return [
        store.result(words, "none", "", partial(_clean_result, words, robot, logs))
        for words, robot, logs in clean_simulated()
    ]


def _clean_result(words: str, robot: Robot, logs: Sequence[Log]) -> Result:
    return sound_result(words, robot, check_logs(robot, logs))


def doubt_results(kind: str, path: Path | None) -> list[DoubtResult]:
    """What is said of one kind of logs for which nothing may be proposed."""
    store = Store(path)
    with tempfile.TemporaryDirectory() as place:
        return [store.doubt(one.kind, one.where, partial(_doubt_result, one)) for one in DOUBTS[kind](Path(place))]


def _doubt_result(doubt: Doubt) -> DoubtResult:
    seen = check_logs(doubt.robot, doubt.logs)
    wrong = wrong_claims(seen, "gravity" if doubt.kind == "wrong gravity" else "")
    stops = tuple(sorted({one.name for one in seen.of("stop")}))
    stopped = doubt.verdict == "sound" and bool(
        set(stops) - {"equations", "rest"}
    )  # too little motion is no false reason
    passed = doubt.verdict == "hopeless" and seen.severity == "ok"
    return DoubtResult(doubt.kind, doubt.where, tuple(wrong), stopped, passed, stops)


def doubts_in_words(found: Sequence[DoubtResult]) -> str:
    """The count of confident wrong proposals, and what they are."""
    counts = [sum(bool(getattr(one, what)) for one in found) for what in ("wrong", "stopped", "passed")]
    words = f"Logs for which nothing may be proposed: {len(found)}; confident wrong proposals: {counts[0]}; sound logs"
    lines = [f"- {one.kind}, {one.where}: {'; '.join(one.wrong)}" for one in found if one.wrong]
    lines += [f"- {one.kind}, {one.where}: stopped ({', '.join(one.stops)})" for one in found if one.stopped]
    lines += [f"- {one.kind}, {one.where}: passes" for one in found if one.passed]
    return "\n".join([f"{words} stopped: {counts[1]}; hopeless logs passed: {counts[2]}.", *lines])


def as_table(results: Sequence[Result], column: str) -> str:
    """Rates by kind of mistake or by dataset, as Markdown."""
    lines = [
        f"| {'mistake' if column == 'kind' else 'dataset'} | cases | found | named | corrected | stop | cannot be "
        "determined |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[Result]] = {}
    for one in results:
        groups.setdefault(getattr(one, column), []).append(one)
    for name, own in [*groups.items(), ("**all**", list(results))]:
        hidden = [one for one in own if not one.right and not one.determinable]
        evaluated = [one for one in own if one.right or one.determinable]
        counts = [
            len(evaluated),
            *(sum(getattr(one, what) for one in evaluated) for what in ("found", "named", "corrected")),
        ]
        stops = sum(one.severity == "stop" for one in evaluated)
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {stops} | {len(hidden)} |")
    return "\n".join(lines)


def as_page(results: Sequence[Result]) -> str:
    """The tables, one under the other."""
    mistakes = [one for one in results if one.kind != "none"]
    clean = [one for one in results if one.kind == "none"]
    parts = [as_table(mistakes, "kind"), as_table(mistakes, "data")]
    stops = sum(one.severity == "stop" for one in clean)
    warns = Counter(word for one in clean for word in one.said.split("; ") if word.endswith("warn"))
    listed = ", ".join(f"{name.removesuffix(' warn')} {n}" for name, n in sorted(warns.items())) or "none"
    parts.append(f"Sound logs: {len(clean)} diagnoses, {stops} with a stop. Warnings: {listed}.")
    missed = [one for one in mistakes if not one.right and one.determinable]
    unexplained = sum(not one.found and bool(re.search(r"\bfit (warn|stop): ", one.said)) for one in missed)
    parts.append(f"Not found, but reported by `fit` as unexplained torque: {unexplained}.")
    parts += ["### What was missed", "\n".join(f"- {line}" for line in _missed(missed)) or "Nothing."]
    return "\n\n".join(parts)


def _missed(results: Sequence[Result]) -> Iterator[str]:
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in results:
        how = "not found" if not one.found else "found, not named" if not one.named else "named, not corrected"
        groups.setdefault((one.kind, how), {}).setdefault(one.data, []).append(one.where)
    for (kind, how), own in groups.items():
        places = "; ".join(f"{data} {', '.join(where)}".strip() for data, where in own.items())
        yield f"{kind}, {how}: {places}"


def write(page: str, path: Path) -> None:
    """Put the tables into a document, between its marks."""
    text = path.read_text()
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(f"{text[:before]}\n\n{page}\n\n{text[after:]}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", default=",".join(names()))
    parser.add_argument("--mistakes", default="", help="parts of the names of kinds")
    parser.add_argument("--doubts", default=",".join(DOUBTS), help="kinds of logs for which nothing may be proposed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep results here and go on from them")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    given = parser.parse_args(arguments)
    wanted = [word for word in given.mistakes.split(",") if word]
    chosen = [] if wanted else [kind for kind in given.doubts.split(",") if kind]
    began, results, doubts = time.perf_counter(), [], []
    with ProcessPoolExecutor(given.jobs) as pool:
        robots = [name for name in given.robots.split(",") if name]
        waiting = [pool.submit(results_of, name, wanted, given.store) for name in robots]
        if not wanted:
            waiting.append(pool.submit(clean_results, given.store))
        doubted = [pool.submit(doubt_results, kind, given.store) for kind in chosen]
        for one in waiting:
            own = one.result()
            results += own
            for result in own:
                if not result.right:
                    state = "" if result.determinable else " (cannot be determined)"
                    marks = "".join(
                        "FNM"[i] if x else "-" for i, x in enumerate((result.found, result.named, result.corrected))
                    )
                    print(f"{marks}{state} {result.data}: {result.kind} {result.where}: {result.said}", flush=True)
        for kind in doubted:
            doubts += kind.result()
    page = as_page(results)
    if doubts:
        page += "\n\n" + doubts_in_words(doubts)
    print(f"\n{page}\n\n{time.perf_counter() - began:.0f} s")
    if given.write:
        write(page, given.write)


if __name__ == "__main__":
    main()
