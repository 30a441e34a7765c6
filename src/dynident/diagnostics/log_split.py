"""`split_logs`: which logs of a folder are for training, which for validation, which are better left out."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dynident.diagnostics.log_preview import Preview, preview
from dynident.display import brief
from dynident.errors import DynidentError, InputError
from dynident.logs.log import torque_kind
from dynident.logs.read import LOG_ENDINGS, Columns, is_log_folder, stream_log
from dynident.logs.tables import LogWarning
from dynident.options import Progress
from dynident.robot.model import Robot
from dynident.signals.log_survey import survey_log
from dynident.signals.observations import SignalOptions, observe

_VALIDATION_NAME = re.compile(
    r"(?<![a-z])(val|valid|validation|test|testing|held|holdout|eval|verify|judge)(?![a-z])", re.IGNORECASE
)
_NAME_LOADED = re.compile(r"payload|loaded|(?<![a-z])load(?![a-z])|\dkg", re.IGNORECASE)
_NAME_UNLOADED = re.compile(r"unload|no.?(pay)?load|without|(?<!\d)0kg", re.IGNORECASE)
_LOADED_REASON = "its name speaks of a load on the tool; see dynident payload"


@dataclass(frozen=True)
class FoundLog:
    """A file that was looked at.

    Attributes:
        path: Where it is.
        reason: Why it is left out; empty for a log to use.
        seen: What is in it; None where it could not be looked at.
        digest: SHA-256 of its content.
        band: Band of its motion [Hz]; None where it could not be determined.
        torque: Kind of its torque, such as "i" for currents.
    """

    path: Path
    reason: str = ""
    seen: Preview | None = None
    digest: str = ""
    band: float | None = None
    torque: str = ""


@brief
@dataclass(frozen=True)
class LogSplit:
    """Which log is for what.

    Attributes:
        training: Training logs.
        validation: Validation logs.
        left_out: The others, each with its reason.
        why: Why those are for validation, in words.
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
) -> LogSplit:
    """Look at logs and propose what each is for.

    Logs whose name speaks of validation are for it; without any, the last one is, in the order of numbers in names.
    In a folder, logs whose name speaks of a payload are left out, as are those that cannot be read, lack torque or
    repeat another. A log that was given by itself is never left out in silence: it is refused.

    Args:
        given: Folders and files.
        robot: The robot.
        validation: Validation logs, where the caller knows.
        columns: Column file or mapping.
        progress: Called with what is being done, and how much of it is done.

    Raises:
        InputError: If there is no log for training.
        LogError: For a file that was given and cannot be used.
    """
    named = {Path(path).resolve() for path in [*given, *validation] if not _is_folder(Path(path))}
    held_out = {Path(path).resolve() for path in validation}
    paths = list(dict.fromkeys(path for word in [*given, *validation] for path in _candidates(Path(word))))
    looked: list[FoundLog] = []
    for place, path in enumerate(paths):
        if progress is not None:
            progress("looking at logs", place, len(paths))
        one = _look_at(path, robot, columns, refuse=path.resolve() in named)
        same = next((other for other in looked if not other.reason and other.digest == one.digest != ""), None)
        if not one.reason and same is not None:
            one = replace(one, reason=f"is the same as {same.path.name}")
        elif not one.reason and path.resolve() not in named and _NAME_LOADED.search(path.name):
            one = one if _NAME_UNLOADED.search(path.name) else replace(one, reason=_LOADED_REASON)
        looked.append(one)
    return _assign_roles(looked, held_out, given)


def _assign_roles(looked: Sequence[FoundLog], held_out: set[Path], given: Sequence[str]) -> LogSplit:
    used = [one for one in looked if not one.reason]
    left_out = tuple(one for one in looked if one.reason)
    chosen = [one for one in used if one.path.resolve() in held_out]
    why = "as given"
    if not held_out:
        chosen, why = [one for one in used if _VALIDATION_NAME.search(one.path.name)], "by their names"
        if len(chosen) in (0, len(used)):
            chosen, why = (used[-1:], "the last one; better is a motion of another kind") if used[1:] else ([], "")
    training = tuple(one for one in used if one not in chosen)
    if not training:
        reasons = "; ".join(f"{one.path.name}: {one.reason}" for one in left_out[:5])
        where = ", ".join(given)
        raise InputError(f"{where}: no training log of this robot{f' ({reasons})' if reasons else ''}")
    return LogSplit(training, tuple(chosen), left_out, why)


def _is_folder(path: Path) -> bool:
    """Whether it is a folder of logs; a bag or a dataset is a log that is a folder."""
    return path.is_dir() and not is_log_folder(path)


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
        by_name = one.is_file() and one.name.lower().endswith(LOG_ENDINGS) and not arrays
        if not one.name.startswith(".") and (by_name or (one.is_dir() and is_log_folder(one))):
            yield one


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Key by which run_2 comes before run_10."""
    return [(0, int(part)) if part.isdigit() else (1, part.lower()) for part in re.split(r"(\d+)", name) if part]


def _look_at(path: Path, robot: Robot, columns: Columns, *, refuse: bool) -> FoundLog:
    """One file; what cannot be used is reported, or refused where the user named it."""
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
