"""How many tests a machine skips that has neither a browser nor the logs of real robots, and why.

    python tools/skips.py            # the count, by reason
    python tools/skips.py --write    # and into CONTRIBUTING.md

Only what decides about skipping is done: marks of all quick and full tests are evaluated, and the tests of real logs
run without their logs. No other test runs.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
_SENTENCE = re.compile(r"Of \d+ tests, .*?\(`python tools/skips\.py`\)\.", re.DOTALL)
_REAL = "tests/real/"


class SkipCounter:
    """Plugin of pytest: the reasons for which tests are skipped."""

    def __init__(self) -> None:
        self.reasons: collections.Counter[str] = collections.Counter()
        self.n_tests = 0

    def pytest_collectreport(self, report: Any) -> None:
        """A whole file that is skipped."""
        if report.skipped:
            self.reasons[f"{report.nodeid}: {report.longrepr[2]}"] += 1

    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        """Evaluate the marks of a test, and let only those of real logs run."""
        from _pytest.skipping import evaluate_skip_marks

        self.n_tests += 1
        if item.nodeid.startswith(_REAL):
            return None
        skipped = evaluate_skip_marks(item)
        if skipped is not None:
            self.reasons[skipped.reason] += 1
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test of real logs that was skipped."""
        if report.skipped:
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1


def _count() -> None:
    """In a process of its own, which has no browser and no logs: print the counts as JSON."""
    import pytest

    counter = SkipCounter()
    with open(os.devnull, "w") as quiet:
        shown, sys.stdout = sys.stdout, quiet
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"], plugins=[counter])
        sys.stdout = shown
    print(json.dumps({"n_tests": counter.n_tests, "reasons": counter.reasons}))


def counted() -> dict[str, Any]:
    """Tests, and how many are skipped for which reason."""
    sys.path[:0] = [str(ROOT)]
    from tests.report.browser import NAMES

    with tempfile.TemporaryDirectory() as folder:
        # A search path without browsers: links to everything else.
        for place in os.environ["PATH"].split(os.pathsep):
            for program in Path(place).iterdir() if Path(place).is_dir() else ():
                link = Path(folder) / program.name
                if program.name not in NAMES and not link.is_symlink():
                    link.symlink_to(program)
        environment = {**os.environ, "PATH": folder, "DYNIDENT_DATA": str(Path(folder) / "none")}
        environment.pop("DYNIDENT_BROWSER", None)
        words = [sys.executable, __file__, "--count"]
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def sentence(found: dict[str, Any]) -> str:
    """What CONTRIBUTING.md says."""
    real = sum(n for reason, n in found["reasons"].items() if "real data" in reason or "DYNIDENT_DATA" in reason)
    pages = sum(n for reason, n in found["reasons"].items() if "Chromium" in reason)
    others = sum(found["reasons"].values()) - real - pages
    return (
        f"Of {found['n_tests']} tests, {real} are skipped without the real logs,\n{pages} without a browser, and "
        f"{others} for other reasons (`python tools/skips.py`)."
    )


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into CONTRIBUTING.md")
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count:
        _count()
        return 0
    found = counted()
    for reason, n in sorted(found["reasons"].items(), key=lambda one: -one[1]):
        print(f"{n:5}  {re.sub(r'/tmp/[^ ;]*', 'DYNIDENT_DATA', reason)}")
    print(sentence(found))
    if given.write:
        PAGE.write_text(_SENTENCE.sub(sentence(found), PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
