"""How often words that are not those of the field stand in sources, docs and tests: `count_words.py REVISION ..`.

    python tools/count_words.py 1f1ec38 HEAD

The words are those that `tests/structure/test_vocabulary.py` keeps out; files that it excepts are counted too, and
listed with `--where`.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

WORDS = (
    *("told", "anew", "mend", "felt", "finding", "checkup", "teach", "judge", "quickening"),
    *("log doctor", "open directions", "bodies that can exist"),
)
FOLDERS = ("src", "docs", "tests")
LEFT_OUT = ":!tests/data"  # fits of earlier versions


def count(word: str, revision: str) -> list[str]:
    """The files with a word, one entry for each time it stands there; names are words joined by underscores."""
    pattern = rf"(?<![a-zA-Z]){word}(?![a-zA-Z])"
    command = ["git", "grep", "--ignore-case", "-I", "--only-matching", "--perl-regexp", pattern, revision, "--"]
    root = Path(__file__).parents[1]
    found = subprocess.run([*command, *FOLDERS, LEFT_OUT], cwd=root, capture_output=True, text=True, check=False)
    if found.returncode > 1:
        raise SystemExit(found.stderr.strip())
    return [line.removeprefix(f"{revision}:").split(":")[0] for line in found.stdout.splitlines()]


def main() -> None:
    """A line for each word, a column for each revision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revisions", nargs="+", metavar="REVISION")
    parser.add_argument("--where", action="store_true", help="list the files of the last revision")
    options = parser.parse_args()
    print(f"{'word':24}" + "".join(f"{revision[:12]:>14}" for revision in options.revisions))
    for word in WORDS:
        found = [count(word, revision) for revision in options.revisions]
        print(f"{word:24}" + "".join(f"{len(files):>14}" for files in found))
        if options.where and found[-1]:
            print("    " + ", ".join(sorted(set(found[-1]))))


if __name__ == "__main__":
    main()
