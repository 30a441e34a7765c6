"""The text of a new run file: every key with what it does and its default."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from dynident.check.preview import Preview
from dynident.estimate.estimators import ESTIMATORS
from dynident.estimate.recipes import BASIC_TERMS
from dynident.report.words import counted, number, printable, whole
from dynident.robot.load import bundled_names
from dynident.robot.model import Robot
from dynident.run.found_logs import FoundLog, Split
from dynident.signals.observe import SignalOptions

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
        f"\nrobot: {_scalar(called)}  # {printable(robot.name)}, {counted(len(robot.joint_names), 'moving joint')}\n",
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
        (seen.gaps, f"{counted(seen.gaps, 'gap')}, the longest {number(seen.longest_gap, 3)} s"),
        (seen.out_of_order, f"{counted(seen.out_of_order, 'row')} out of order"),
        (faults, f"{counted(faults, 'value')} not finite"),
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
