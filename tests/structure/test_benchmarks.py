"""Every benchmark can be imported: names of the package that it uses are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_benchmarks_import_names_that_are_there():
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    code = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1]); bad = []\n"
        "for name in sys.argv[2:]:\n"
        "    try: importlib.import_module(name)\n"
        "    except (ImportError, AttributeError) as error: bad.append(f'{name}: {error}')\n"
        "print('\\n'.join(bad))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(BENCHMARKS), *names], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == ""
