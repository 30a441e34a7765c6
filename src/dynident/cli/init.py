"""`dynident init`: a run file from a robot and its logs, every key with what it does and its default."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynident.cli.arguments import output_argument, print_answer, robot_argument
from dynident.errors import InputError
from dynident.options import REQUIRED, Answer, Quiet, RobotReading, option, option_fields, option_help, shown_default

if TYPE_CHECKING:
    import dataclasses

    from dynident.diagnostics.log_preview import Preview
    from dynident.diagnostics.log_split import FoundLog, LogSplit
    from dynident.robot.model import Robot

_HEAD = """\
# What to identify, from which logs, and what to write. `dynident run {name}` does it, and does it again exactly.
# Paths are relative to this file. A key that is null, or removed, has its default; an unknown key is an error.
"""
_EXAMPLES = {  # how values are written that are no plain ones
    "interval": "such as [2, 8.5] or [2, null]",
    "positions": "such as {q4: 0.5}",
    "intervals": "such as {forearm: [1, 4]}",
}
_LINE_WIDTH = 118  # characters of a comment


@dataclass(frozen=True, kw_only=True)
class InitArguments(RobotReading, Quiet, Answer):
    """`dynident init` on the command line."""

    robot: str = robot_argument()
    logs: tuple[str, ...] = option(
        REQUIRED, "folder with logs, or the logs themselves", positional=True, many=True, metavar="FOLDER|LOG"
    )
    output: str = output_argument("run.yaml", "run file to write", "F.yaml")
    validation: tuple[str, ...] = option(
        (), "validation logs", many=True, metavar="LOG", shown="chosen by name, else the last one"
    )
    columns: str | None = option(None, "YAML file for logs with other column names", metavar="FILE")
    overwrite: bool = option(False, "replace a run file that is there already")


def run_file_text(robot: Robot, given: str, target: Path, split: LogSplit, options: InitArguments) -> str:
    """A run file.

    Args:
        robot: The robot.
        given: How the user called it.
        target: Where the file will stand; paths start there.
        split: The logs.
        options: How the robot and the logs are read.
    """
    from dynident.cli.export import ExportArguments
    from dynident.cli.identify import IdentifyArguments
    from dynident.cli.run_file import EXPORT_KEYS, IDENTIFY_KEYS, READING_KEYS
    from dynident.report.text import plural, printable
    from dynident.robot.load import is_path

    folder = target.resolve().parent
    reading: dict[str, Any] = {} if options.columns is None else {"columns": _path(Path(options.columns), folder)}
    if options.fixed_base:
        reading["fixed_base"] = True
    if options.xacro_arg:
        reading["xacro_arg"] = list(options.xacro_arg)
    output = "fit" if target.stem == "run" else f"fit-{target.stem}"
    called = _path(Path(given), folder) if is_path(given) else given
    parts = [
        _HEAD.format(name=target.name),
        f"\nrobot: {_scalar(called)}  # {printable(robot.name)}, {plural(len(robot.joint_names), 'moving joint')}\n",
        "\ntraining:  # logs that the parameters are identified from\n",
        _log_lines(split.training, folder),
        _validation(split, folder),
        _left_out_lines(split.left_out),
        f"\noutput: {_scalar(output)}  # folder for fit.yaml and report.html\n",
        "\n",
        _option_lines(IdentifyArguments, READING_KEYS, reading),
        "\nidentify:\n",
        _option_lines(IdentifyArguments, IDENTIFY_KEYS, {}, {"band": _band_remark(split)}, indent="  "),
        "\nexport:  # models to write, each proved by reading it back; null: none\n",
        _option_lines(ExportArguments, EXPORT_KEYS, {}, _targets(output, robot.name), indent="  "),
        "\nhashes:  # SHA-256 of the logs as they were when this file was written: a changed log is reported\n",
        "".join(f"  {_scalar(_path(log.path, folder))}: {log.digest}\n" for log in _used_logs(split)),
    ]
    return "".join(parts)


def _targets(output: str, robot: str) -> dict[str, str]:
    """Files that an export may write, as examples."""
    stem = _plain_name(robot)
    files = {"urdf": f"{stem}.urdf", "mjcf": f"{stem}.xml", "yaml": f"{stem}.yaml", "c": "c"}
    return {key: f"such as {output}/{file}" for key, file in files.items()}


def _option_lines(
    cls: Any,
    keys: Iterable[str],
    given: Mapping[str, Any],
    remarks: Mapping[str, str] | None = None,
    indent: str = "",
) -> str:
    """Keys of a section with what they do.

    Args:
        cls: Options record that declares them.
        keys: Which.
        given: Values other than the defaults.
        remarks: What to add beside the value of a key.
        indent: Before each line.
    """
    fields, lines = option_fields(cls), []
    for key in keys:
        comment = f"{indent}# "
        lines += textwrap.wrap(option_help(fields[key]), _LINE_WIDTH, initial_indent=comment, subsequent_indent=comment)
        beside = "; ".join(filter(None, [_null_means(fields[key]), (remarks or {}).get(key, "")]))
        value = _yaml_value(given.get(key, fields[key].default))
        lines.append(f"{indent}{key}: {value}{f'  # {beside}' if beside else ''}")
    return "".join(f"{line}\n" for line in lines)


def _null_means(field: dataclasses.Field[Any]) -> str:
    """What a key without a value stands for, or how a value of it is written."""
    example = _EXAMPLES.get(field.metadata.get("written", ""), "")
    default = shown_default(field) if field.default is None else ""
    return "; ".join(filter(None, [f"null: {default}" if default else "", example]))


def _yaml_value(value: Any) -> str:
    """A default as YAML: null where there is none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return _scalar(value) if value else "null"


def _used_logs(split: LogSplit) -> Sequence[FoundLog]:
    return [*split.training, *split.validation]


def _path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def _scalar(text: str) -> str:
    """A text as YAML needs it, quoted where it must be."""
    import yaml

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
    from dynident.report.text import number, whole

    duration = "" if seen.duration is None else f", {number(seen.duration, 4)} s"
    rate = "" if seen.rate is None else f" at {number(seen.rate, 4)} Hz"
    band = "" if log.band is None else f", motion up to {number(log.band, 3)} Hz"
    return f"{whole(seen.samples)} samples{duration}{rate}; {', '.join(seen.kinds)}; torque from {log.torque}{band}"


def _remarks(seen: Preview) -> list[str]:
    """What deserves a look before this log is used."""
    from dynident.report.text import number, plural

    faults = seen.time_faults + sum(channel.faults for channel in seen.channels)
    found = [
        (seen.gaps, f"{plural(seen.gaps, 'gap')}, the longest {number(seen.longest_gap, 3)} s"),
        (seen.out_of_order, f"{plural(seen.out_of_order, 'row')} out of order"),
        (faults, f"{plural(faults, 'value')} not finite"),
        (seen.time_unit, f"time seems to be in {seen.time_unit}"),
    ]
    return [f"{words}: dynident check says more" for there, words in found if there]


def _validation(split: LogSplit, folder: Path) -> str:
    if not split.validation:
        return "validation: []  # held-out logs, not used for fitting: record one, of another motion\n"
    return f"validation:  # held-out logs, not used for fitting; {split.why}\n" + _log_lines(split.validation, folder)


def _left_out_lines(logs: Sequence[FoundLog]) -> str:
    from dynident.report.text import printable

    if not logs:
        return ""
    return "# Left out:\n" + "".join(f"#   {printable(log.path.name)}: {printable(log.reason)}\n" for log in logs)


def _band_remark(split: LogSplit) -> str:
    """Bandwidth that the logs will have by default, in words."""
    from dynident.report.text import number

    known = [log.band for log in _used_logs(split) if log.band is not None]
    if not known:
        return ""
    ends = dict.fromkeys(number(band, 3) for band in (min(known), max(known)))
    return f"here {' to '.join(ends)}"


def run_init(options: InitArguments) -> int:
    """`dynident init`."""
    from dynident.cli.inputs import progress_bar, read_robot
    from dynident.cli.run_file import read_run_file
    from dynident.diagnostics import split_logs
    from dynident.files import check_target, write_text

    target = Path(options.output)
    check_target(target)
    if target.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{target}: a run file must end in .yaml")
    if target.exists() and not options.overwrite:
        raise InputError(f"{target}: is there already; give another name with -o, or --overwrite to replace it")
    robot = read_robot(options.robot, options)
    with progress_bar(options.quiet or options.json) as progress:
        split = split_logs(
            options.logs, robot, validation=options.validation, columns=options.columns, progress=progress
        )
    write_text(target, run_file_text(robot, options.robot, target, split, options))
    read_run_file(target)  # what init writes, run understands
    return print_answer(options, lambda: _answer(target, robot.name, split), lambda: _print(target, split))


def _answer(target: Path, robot: str, split: LogSplit) -> dict[str, object]:
    return {
        "file": str(target),
        "robot": robot,
        "training": [str(log.path) for log in split.training],
        "validation": [str(log.path) for log in split.validation],
        "why": split.why,
        "left_out": [{"path": str(log.path), "reason": log.reason} for log in split.left_out],
    }


def _print(target: Path, split: LogSplit) -> None:
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
