"""Versions that the tests run with: `make constraints` writes constraints.txt.

    python tools/constraints.py [--upgrade]

Everything that pyproject.toml names, with all extras, is installed into an empty environment and listed. Versions that
constraints.txt has stay as they are, unless with --upgrade.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "constraints.txt"
HEAD = "# Versions this release was tested with, written by `make constraints`.\n"


def wanted() -> list[str]:
    """Requirements of dynident with all its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return sorted(
        {*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)}
    )


def resolved(requirements: list[str], *, upgrade: bool) -> str:
    """What pip chooses for them, as lines of NAME==VERSION."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        kept = [] if upgrade else ["-c", str(PAGE)]
        subprocess.run([*pip, "install", "--no-compile", *kept, *requirements], check=True)
        listed = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)
    return listed.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="the newest of everything")
    PAGE.write_text(HEAD + resolved(wanted(), upgrade=parser.parse_args().upgrade))
