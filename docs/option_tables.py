"""The page of all options of the command line, from the records that declare them.

`python docs/option_tables.py` writes reference/command-line.md; a test tells when it is no longer true.
"""

from __future__ import annotations

from pathlib import Path

from dynident.cli.command_line import VERBS, options_of
from dynident.options import option_table

PAGE = Path(__file__).parent / "reference" / "command-line.md"
_HEAD = """\
# Command line

Every verb with its options; `dynident VERB --help` shows the same. An option is also a keyword of the Python function
(with `_` for `-`) and, of `identify` and `export`, a key of the [run file](run-files.md). Names in capitals are
arguments of the command, other names without `--` keywords of Python alone.
"""


def page_text() -> str:
    """The page."""
    parts = [_HEAD]
    for verb, (text, *_) in VERBS.items():
        parts.append(f"\n## {verb}\n\n{text[0].upper()}{text[1:]}.\n\n{option_table(options_of(verb))}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page_text())
