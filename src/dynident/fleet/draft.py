"""`draft_fleet_file`: a fleet file, with comments, from a folder of logs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from dynident.errors import InputError
from dynident.fleet.fleet_file import PathPattern
from dynident.fleet.options import FleetOptions
from dynident.logs.read import LOG_ENDINGS
from dynident.options import option_fields, option_help, shown_default

_DATE = re.compile(r"\d{4}-?\d\d-?\d\d(?:T\d{2}:?\d{2}(?::?\d{2})?)?")
_SERIAL_AND_DATE = re.compile(rf"([^_]+_|[^-]+-)(?:{_DATE.pattern})")  # a field ends at the first sign after it
_LINE_WIDTH = 110
_HEAD = """\
# Robots of a fleet and their logs. `dynident fleet run {name} -o STORE` identifies all of them.
# Paths are relative to this file; s3://, gs:// and hf:// work as well. An unknown key is an error.

fleet: {fleet}

types:  # robots that share a description
  {kind}:
    robot: {robot}  # robot file or bundled name
    # Where logs lie. Fields: {{serial}} of the robot, {{date}}, {{payload}} [kg], {{temperature}} [deg C]; * and **
    # match anything. A date that is not there is the time of change of the file.
    logs: {logs}
    # serials: [..]        # only these; null: all that paths name
    # columns: FILE        # YAML file for logs with other column names
    # services: {{SERIAL: [2026-03-01]}}   # days after which a robot is another one: a gearbox, a controller
    # from_log: {{date: t, payload: COLUMN, temperature: COLUMN}}   # what columns say in place of the path

# storage: {{endpoint_url: http://..}}   # options of the file system, see fsspec

"""


def draft_fleet_file(folder: str | Path, robot: str, target: Path) -> tuple[str, int, tuple[str, ...]]:
    """The text of a fleet file for the logs below a folder, how many these are, and serials that their paths name.

    Args:
        folder: With logs, those of a robot in a folder of their own, or named by robot and date.
        robot: Robot file or bundled name, as the file is to name it.
        target: Where the file will stand.

    Raises:
        InputError: When there is no log.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{folder}: is no folder; give the one that holds the logs of all robots")
    found = sorted(path for path in root.rglob("*") if path.is_file() and path.name.lower().endswith(LOG_ENDINGS))
    found = [path for path in found if path.suffix.lower() != ".yaml"]
    if not found:
        raise InputError(f"{folder}: has no log; expected files such as {', '.join(LOG_ENDINGS[:5])}")
    try:
        own = root.resolve().relative_to(target.resolve().parent).as_posix()
    except ValueError:
        own = root.resolve().as_posix()
    pattern = _pattern([path.relative_to(root) for path in found])
    kind = re.sub(r"[^A-Za-z0-9._-]", "-", Path(robot).stem)
    text = _HEAD.format(
        name=target.name,
        fleet=root.resolve().name,
        kind=kind,
        robot=robot,
        logs=f"'{own}/{pattern}'".replace("'./", "'"),
    )
    said = (PathPattern(pattern).match(path.relative_to(root).as_posix()) for path in found)
    serials = sorted({one["serial"] for one in said if one is not None})
    return text + _option_lines(), len(found), tuple(serials)


def _pattern(paths: Sequence[Path]) -> str:
    """What the paths have in common: the first folder, or a name before a date, is the robot, the rest is anything."""
    depths = {len(path.parts) for path in paths}
    endings = {"".join(path.suffixes) for path in paths}
    ending = endings.pop() if len(endings) == 1 else ".*"
    dated = all(_DATE.fullmatch(path.name.removesuffix("".join(path.suffixes))) for path in paths)
    last = ("{date}" if dated else "*") + ending
    if depths == {1}:
        stems = [path.name.removesuffix("".join(path.suffixes)) for path in paths]
        between = {found[1][-1] if (found := _SERIAL_AND_DATE.fullmatch(stem)) else "" for stem in stems}
        if len(between) == 1 and (sign := between.pop()):
            return f"{{serial}}{sign}{{date}}{ending}"
        return f"{{serial}}{ending}"
    if len(depths) == 1:
        (depth,) = depths
        middle = [_folder([path.parts[k] for path in paths]) for k in range(1, depth - 1)]
        if "{date}" in middle and dated:
            last = "*" + ending
        return "/".join(["{serial}", *middle, last])
    return f"{{serial}}/**/{last}"


def _folder(names: Sequence[str]) -> str:
    if len(set(names)) == 1:
        return names[0]
    return "{date}" if all(_DATE.fullmatch(name) for name in names) else "*"


def _option_lines() -> str:
    lines = []
    for name, field in option_fields(FleetOptions).items():
        lines += textwrap.wrap(option_help(field), _LINE_WIDTH, initial_indent="# ", subsequent_indent="# ")
        default = "null" if field.default is None else f"{field.default:g}"
        beside = f"  # null: {shown_default(field)}" if field.default is None else ""
        lines.append(f"{name}: {default}{beside}")
    lines += ["", "# identify: {friction: basic}   # options of `dynident identify` for every robot", ""]
    return "\n".join(lines)
