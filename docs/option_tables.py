"""What the pages repeat of declarations in the package: options of the command line, laws of friction, formats of logs.

`python docs/option_tables.py` writes reference/command-line.md, from the records of the options, the table of laws in
reference/friction.md, from `FRICTION_LAWS`, that of formats in reference/logs.md, from `FORMATS`, and that of limits in
reference/limits.md, from `limits.LIMITS`; a test says when they are no longer true.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from dynident.cli.command_line import VERBS, options_of
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, FrictionLaw
from dynident.limits import LIMITS, in_bytes
from dynident.logs.read import FORMATS
from dynident.options import option_table

REFERENCE = Path(__file__).parent / "reference"
_HEAD = """\
# Command line

Every verb with its options; `dynident VERB --help` shows the same. An option is also a keyword of the Python function
(with `_` for `-`) and, of `identify` and `export`, a key of the [run file](run-files.md). Names in capitals are
arguments of the command, other names without `--` keywords of Python alone. The names that `--friction` lists are
those of [friction terms](friction.md#terms).
"""
_SCALES = {"radius": "(r, ..)", "velocity": "(vs, ..)", "waves": "(k, ..)", "none": ""}


def option_page() -> str:
    """The page of all options."""
    parts = [_HEAD]
    for verb, (text, *_) in VERBS.items():
        parts.append(f"\n## {verb}\n\n{text[0].upper()}{text[1:]}.\n\n{option_table(options_of(verb))}\n")
    return "".join(parts)


def law_table() -> str:
    """The laws of friction as a Markdown table."""
    lines = ["| key | column | parameter, unit | when it helps | kind |", "|---|---|---|---|---|"]
    for law in FRICTION_LAWS.values():
        columns = FrictionTerm(law.name, *law.examples[:1]).element_columns("1", "joint 1", sliding=False)
        names = ", ".join(f"`{column.name}`" for column in columns)
        radius = " (r in mrad)" if law.scale == "radius" else ""
        cells = (f"`{law.name}{_SCALES[law.scale]}`", law.formula, f"{names}{radius}, {columns[0].unit}", law.helps)
        lines.append(f"| {' | '.join((*cells, _kind(law)))} |")
    return "\n".join(lines)


def _kind(law: FrictionLaw) -> str:
    kinds = {
        "hysteresis": law.remembers,
        "dry": law.dry,
        "load-dependent": law.needs_load,
        "constant-velocity": law.shows_at_constant_velocity,
        "not friction": not law.is_friction,
    }
    return ", ".join(kind for kind, holds in kinds.items() if holds)


def format_table() -> str:
    """The formats of logs as a Markdown table, in the order in which they are tried."""
    lines = ["| file | |", "|---|---|"]
    for one in FORMATS:
        files = ", ".join(f"`{ending}`" for ending in one.endings)
        joined = " " if one.words.startswith("of ") else ", "
        lines.append(f"| {joined.join(filter(None, (files, one.words)))} | {one.contents} |")
    return "\n".join(lines)


def limit_table() -> str:
    """The limits of everything that is read as a Markdown table."""
    lines = ["| limit | value | of what | why no file of a robot reaches it |", "|---|---|---|---|"]
    for one in dataclasses.fields(LIMITS):
        facts, unit = one.metadata, one.metadata["unit"]
        value = in_bytes(one.default) if unit == "B" else f"{one.default:,} {unit}".strip()
        lines.append(f"| `{one.name}` | {value} | {facts['meaning']} | {facts['calibrated']} |")
    return "\n".join(lines)


def with_table(page: Path, what: str, table: str) -> str:
    """A page with the table between its two comments about `what` as it is now."""
    begin, end = f"<!-- {what}, written by docs/option_tables.py -->", f"<!-- end of {what} -->"
    before, rest = page.read_text().split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def pages() -> dict[Path, str]:
    """Every page that repeats declarations, as it should be."""
    friction, logs, limits = (REFERENCE / f"{name}.md" for name in ("friction", "logs", "limits"))
    return {
        REFERENCE / "command-line.md": option_page(),
        friction: with_table(friction, "laws of friction", law_table()),
        logs: with_table(logs, "formats of logs", format_table()),
        limits: with_table(limits, "limits of files", limit_table()),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
