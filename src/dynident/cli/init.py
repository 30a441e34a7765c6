"""Logs in a folder, looked at: which can teach, which should judge, which are better left out."""

from __future__ import annotations

import json
import os
import re
import shlex
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from dynident.diagnostics.log_preview import Preview, preview
from dynident.errors import DynidentError, InputError
from dynident.estimate.candidates import BASIC_TERMS
from dynident.estimate.estimators import ESTIMATORS
from dynident.logs.log import torque_kind
from dynident.logs.read import Columns, stream_log
from dynident.logs.tables import LogWarning
from dynident.report.text import number, plural, printable, whole
from dynident.robot.load import bundled_names
from dynident.robot.model import Robot
from dynident.signals.log_survey import survey_log
from dynident.signals.observations import SignalOptions, observe

_ENDINGS = (
    *(".csv", ".csv.gz", ".txt", ".txt.gz", ".tsv", ".tsv.gz", ".dat"),
    *(".parquet", ".npz", ".mat", ".mcap", ".db3", ".xml.gz"),
)
_JUDGES = re.compile(
    r"(?<![a-z])(val|valid|validation|test|testing|held|holdout|eval|verify|judge)(?![a-z])", re.IGNORECASE
)
_LOADED = re.compile(r"payload|loaded|(?<![a-z])load(?![a-z])|\dkg", re.IGNORECASE)
_UNLOADED = re.compile(r"unload|no.?(pay)?load|without|(?<!\d)0kg", re.IGNORECASE)
_BY_LOAD = "its name speaks of a load on the tool; see dynident payload"
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FoundLog:
    """A file that was looked at.

    Attributes:
        path: Where it is.
        reason: Why it is left out; empty for a log to use.
        seen: What is in it; None where it could not be looked at.
        digest: SHA-256 of its content.
        band: Band of its motion [Hz]; None where it could not be told.
        torque: Kind of its torque, such as "i" for currents.
    """

    path: Path
    reason: str = ""
    seen: Preview | None = None
    digest: str = ""
    band: float | None = None
    torque: str = ""


@dataclass(frozen=True)
class Split:
    """Which log is for what.

    Attributes:
        training: To learn from.
        validation: To judge with.
        left_out: The others, each with its reason.
        why: Why those judge, in words.
    """

    training: tuple[FoundLog, ...]
    validation: tuple[FoundLog, ...]
    left_out: tuple[FoundLog, ...]
    why: str


def split_logs(
    given: Sequence[str],
    robot: Robot,
    *,
    validation: Sequence[str] = (),
    columns: Columns = None,
    progress: Progress | None = None,
) -> Split:
    """Look at logs and propose what each is for.

    Logs whose name speaks of validation judge; without any, the last one does, in the order of numbers in names. In a
    folder, logs whose name speaks of a load are left out, as are those that cannot be read, lack torque or repeat
    another. A log that was given by itself is never left out in silence: it is refused.

    Args:
        given: Folders and files.
        robot: The robot.
        validation: Files to judge with, where the caller knows.
        columns: Column file or mapping.
        progress: Called with what is being done, and how much of it is done.

    Raises:
        InputError: If there is no log to learn from.
        LogError: For a file that was given and cannot be used.
    """
    named = {Path(path).resolve() for path in [*given, *validation] if not _is_folder(Path(path))}
    judges = {Path(path).resolve() for path in validation}
    paths = list(dict.fromkeys(path for word in [*given, *validation] for path in _candidates(Path(word))))
    looked: list[FoundLog] = []
    for place, path in enumerate(paths):
        if progress is not None:
            progress("looking at logs", place, len(paths))
        one = _looked_at(path, robot, columns, refuse=path.resolve() in named)
        same = next((other for other in looked if not other.reason and other.digest == one.digest != ""), None)
        if not one.reason and same is not None:
            one = replace(one, reason=f"is the same as {same.path.name}")
        elif not one.reason and path.resolve() not in named and _LOADED.search(path.name):
            one = one if _UNLOADED.search(path.name) else replace(one, reason=_BY_LOAD)
        looked.append(one)
    return _split(looked, judges, given)


def _split(looked: Sequence[FoundLog], judges: set[Path], given: Sequence[str]) -> Split:
    used = [one for one in looked if not one.reason]
    left_out = tuple(one for one in looked if one.reason)
    chosen = [one for one in used if one.path.resolve() in judges]
    why = "as given"
    if not judges:
        chosen, why = [one for one in used if _JUDGES.search(one.path.name)], "by their names"
        if len(chosen) in (0, len(used)):
            chosen, why = (used[-1:], "the last one; better is a motion of another kind") if used[1:] else ([], "")
    training = tuple(one for one in used if one not in chosen)
    if not training:
        reasons = "; ".join(f"{one.path.name}: {one.reason}" for one in left_out[:5])
        where = ", ".join(given)
        raise InputError(f"{where}: no log of this robot to learn from{f' ({reasons})' if reasons else ''}")
    return Split(training, tuple(chosen), left_out, why)


def _is_folder(path: Path) -> bool:
    """Whether it is a folder of logs; a bag or a dataset is a log that is a folder."""
    return path.is_dir() and not _is_bag(path)


def _is_bag(path: Path) -> bool:
    return (path / "metadata.yaml").is_file() or (path / "meta" / "info.json").is_file()


def _candidates(path: Path) -> list[Path]:
    """Files of a folder that may be logs, in the order of numbers in their names; a file is itself."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if not _is_folder(path):
        return [path]
    return sorted(_logs_in(path), key=lambda one: _natural(one.name))


def _logs_in(folder: Path) -> Iterable[Path]:
    for one in folder.iterdir():
        # Beside a YAML file of the same name, an .npz holds the arrays of a fit.
        arrays = one.suffix == ".npz" and one.with_suffix(".yaml").is_file()
        by_name = one.is_file() and one.name.lower().endswith(_ENDINGS) and not arrays
        if not one.name.startswith(".") and (by_name or (one.is_dir() and _is_bag(one))):
            yield one


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Key by which run_2 comes before run_10."""
    return [(0, int(part)) if part.isdigit() else (1, part.lower()) for part in re.split(r"(\d+)", name) if part]


def _looked_at(path: Path, robot: Robot, columns: Columns, *, refuse: bool) -> FoundLog:
    """One file; what cannot be used is told, or refused where the user named it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)  # which identify tells
            log = stream_log(path, robot, columns=columns)
            kind = torque_kind(next(iter(log.blocks())), robot)
            survey = survey_log(log, robot)
            seen = preview(log, survey=survey)
    except DynidentError as error:
        if refuse:
            raise
        return FoundLog(path, str(error).removeprefix(f"{path}: "))
    try:
        band: float | None = observe(log, robot, SignalOptions(), survey=survey).band
    except DynidentError:
        band = None  # identify says what is wrong
    return FoundLog(path, "", seen, log.digest, band, kind)


# ----------------------------------------------------------------------------------------------------------------------
# The text of a new run file: every key with what it does and its default.

_HEAD = """\
# What to identify, from which logs, and what to write. `dynident run {name}` does it, and does it again exactly.
# Paths are relative to this file. A key that is null, or removed, has its default; an unknown key is an error.
"""
_READING = """
columns: {columns}  # YAML file that says what columns with other names are
window: null  # [start, stop] by the stamps of the logs [s]: only this part of every log; one may be null
locked: null  # joints held at a position [rad or m], such as {{q4: 0.5}}
"""
_IDENTIFY = """
identify:
  terms: {terms}  # basic terms, always there; Fc(0.02) is smoothed below 0.02 rad/s, 0.002 m/s on slides
  friction: auto  # beside them: auto (the training data decides), basic (none), generic, full, or a list of terms
  estimator: weighted  # {estimators}
  prior_std: null  # with estimator prior: relative deviation of the robot's own values; default 0.5
  essential: null  # keep only parameters with a relative deviation below this share, such as 0.15; null keeps all
  band: null  # [Hz] null: from the motion of each log{band}
  delay: null  # [s] by which torque is stamped late; null: from the training data
  speed: null  # position (derived) or measured; null: what suits the training data better
  rest_speed: {rest}  # [rad/s or m/s] joints slower than this are at rest
  differentiator: {differentiator}  # low-pass, five-point, five-point causal, central or savitzky-golay
  check: stop  # if the logs are found wrong: stop, tell (go on with a warning), or off
"""
_EXPORT = """
export:  # models to write, each proved by reading it back; null: none
  urdf: null  # such as {output}/{stem}.urdf: inertials, damping and friction of plain kinds
  mjcf: null  # such as {output}/{stem}.xml: MuJoCo model with armature, damping and frictionloss
  yaml: null  # such as {output}/{stem}.yaml: standard and base parameters, as an overlay of the robot
  c: null  # such as {output}/c: folder for C99 code of the dynamics
  prior: null  # what settles numbers that the data leaves open: a value set, or plausible
  mass: null  # bounds [kg] by link, such as {{forearm: [1, 4]}}
  total_mass: null  # bounds of all links together [kg], such as [10, 33.5]
"""


def run_file_text(robot: Robot, given: str, target: Path, split: Split, columns: str | None = None) -> str:
    """A run file.

    Args:
        robot: The robot.
        given: How the user called it.
        target: Where the file will stand; paths start there.
        split: The logs.
        columns: Column file of the logs.
    """
    folder = target.resolve().parent
    output = "fit" if target.stem == "run" else f"fit-{target.stem}"
    called = given if given in bundled_names() else _path(Path(given), folder)
    parts = [
        _HEAD.format(name=target.name),
        f"\nrobot: {_scalar(called)}  # {printable(robot.name)}, {plural(len(robot.joint_names), 'moving joint')}\n",
        "\ntraining:  # logs that the parameters are identified from\n",
        _log_lines(split.training, folder),
        _validation(split, folder),
        _left_out(split.left_out),
        f"\noutput: {_scalar(output)}  # folder for fit.yaml and report.html\n",
        _READING.format(columns="null" if columns is None else _scalar(_path(Path(columns), folder))),
        _IDENTIFY.format(
            terms=BASIC_TERMS,
            estimators=", ".join(ESTIMATORS),
            band=_band(split),
            rest=f"{SignalOptions.rest_speed:g}",
            differentiator=SignalOptions.differentiator,
        ),
        _EXPORT.format(output=output, stem=_plain_name(robot.name)),
        "\nhashes:  # SHA-256 of the logs as they were when this file was written: a changed log is told\n",
        "".join(f"  {_scalar(_path(log.path, folder))}: {log.digest}\n" for log in _used(split)),
    ]
    return "".join(parts)


def _used(split: Split) -> Sequence[FoundLog]:
    return [*split.training, *split.validation]


def _path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def _scalar(text: str) -> str:
    """A text as YAML needs it, quoted where it must be."""
    return str(yaml.safe_dump([text], default_flow_style=True, width=1_000_000, allow_unicode=True)).strip()[1:-1]


def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def _log_lines(logs: Sequence[FoundLog], folder: Path) -> str:
    lines = []
    for log in logs:
        assert log.seen is not None
        lines.append(f"  - {_scalar(_path(log.path, folder))}  # {_facts(log.seen, log)}\n")
        lines += [f"    # {remark}\n" for remark in _remarks(log.seen)]
    return "".join(lines)


def _facts(seen: Preview, log: FoundLog) -> str:
    duration = "" if seen.duration is None else f", {number(seen.duration, 4)} s"
    rate = "" if seen.rate is None else f" at {number(seen.rate, 4)} Hz"
    band = "" if log.band is None else f", motion up to {number(log.band, 3)} Hz"
    return f"{whole(seen.samples)} samples{duration}{rate}; {', '.join(seen.kinds)}; torque from {log.torque}{band}"


def _remarks(seen: Preview) -> list[str]:
    """What deserves a look before this log is used."""
    faults = seen.time_faults + sum(channel.faults for channel in seen.channels)
    found = [
        (seen.gaps, f"{plural(seen.gaps, 'gap')}, the longest {number(seen.longest_gap, 3)} s"),
        (seen.out_of_order, f"{plural(seen.out_of_order, 'row')} out of order"),
        (faults, f"{plural(faults, 'value')} not finite"),
        (seen.time_unit, f"time seems to be in {seen.time_unit}"),
    ]
    return [f"{words}: dynident check says more" for there, words in found if there]


def _validation(split: Split, folder: Path) -> str:
    if not split.validation:
        return "validation: []  # logs that judge the result and shape nothing: record one, of another motion\n"
    return f"validation:  # they judge the result and shape nothing; {split.why}\n" + _log_lines(
        split.validation, folder
    )


def _left_out(logs: Sequence[FoundLog]) -> str:
    if not logs:
        return ""
    return "# Left out:\n" + "".join(f"#   {printable(log.path.name)}: {printable(log.reason)}\n" for log in logs)


def _band(split: Split) -> str:
    known = [log.band for log in _used(split) if log.band is not None]
    if not known:
        return ""
    ends = dict.fromkeys(number(band, 3) for band in (min(known), max(known)))
    return f", here {' to '.join(ends)}"


# ----------------------------------------------------------------------------------------------------------------------
# `dynident init`: a run file from a robot and its logs.


def run_init(options: Namespace) -> int:
    """`dynident init`."""
    from dynident.cli.inputs import progress_bar
    from dynident.cli.run_file import read_run_file
    from dynident.files import check_target, write_text
    from dynident.robot import load_robot

    target = Path(options.output)
    check_target(target)
    if target.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{target}: a run file must end in .yaml")
    if target.exists() and not options.fresh:
        raise InputError(f"{target}: is there already; give another name with -o, or --fresh to replace it")
    if target.resolve() == Path(options.robot).resolve():
        raise InputError(f"{target}: is the robot itself; give the run file another name with -o")
    robot = load_robot(options.robot)
    with progress_bar(options.quiet or options.json) as progress:
        split = split_logs(
            options.logs, robot, validation=options.validation, columns=options.columns, progress=progress
        )
    write_text(target, run_file_text(robot, options.robot, target, split, options.columns))
    read_run_file(target)  # what init writes, run understands
    if options.json:
        print(json.dumps(_answer(target, robot.name, split)))
    elif not options.quiet:
        _print(target, split)
    return 0


def _answer(target: Path, robot: str, split: Split) -> dict[str, object]:
    return {
        "file": str(target),
        "robot": robot,
        "training": [str(log.path) for log in split.training],
        "validation": [str(log.path) for log in split.validation],
        "why": split.why,
        "left_out": [{"path": str(log.path), "reason": log.reason} for log in split.left_out],
    }


def _print(target: Path, split: Split) -> None:
    from rich.text import Text

    from dynident.report.terminal import page_console
    from dynident.report.text import printable

    console = page_console()
    roles = (("training", split.training, ""), ("validation", split.validation, f" ({split.why})"))
    for role, logs, why in roles:
        names = ", ".join(log.path.name for log in logs)
        console.print(
            Text(printable(f"{role}: {names or 'none; record a log of another motion'}{why if logs else ''}"))
        )
    for log in split.left_out:
        console.print(Text(printable(f"left out: {log.path.name}: {log.reason}"), style="yellow"))
    console.print(
        f"Run file: {target}\nNext: look it through, then {shlex.join(['dynident', 'run', str(target)])}",
        soft_wrap=True,
    )
