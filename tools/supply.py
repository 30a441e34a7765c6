"""Licenses and known advisories of the packages that constraints.txt pins.

    python tools/supply.py               # a table of licenses, then what pip-audit finds
    python tools/supply.py --licenses    # without advisories, which need the network

Licenses come from the metadata of the installed packages; one that is neither permissive, nor MPL, nor LGPL ends with
exit code 1, as does a known advisory. Advisories are those of PyPI; where they cannot be had that is said, with exit
code 3.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).parents[1] / "constraints.txt"
_PERMISSIVE = re.compile(
    r"\b(MIT|MIT-CMU|BSD|BSL|Apache|ISC|PSF|Python Software Foundation|Zlib|Unlicense|HPND|0BSD|CC0|public domain|MPL|"
    r"Mozilla|LGPL|Lesser General Public)\b",
    re.IGNORECASE,
)
_READ = {  # whose metadata does not say it; read in their license files
    "apsw": "any license that the OSI approves, such as Zlib",
    "cmeel-qhull": "Qhull (MIT-like: copies keep the notice)",
    "xacro": "BSD-3-Clause",
}
_COPYLEFT = re.compile(r"(?<!L)(?<!Lesser )(\bA?GPL|GNU (Affero )?General Public)", re.IGNORECASE)


def pinned() -> dict[str, str]:
    """Versions by name."""
    lines = [line.split("#")[0].strip() for line in PINNED.read_text().splitlines()]
    return dict(tuple(line.split("==", 1)) for line in lines if "==" in line)  # type: ignore[misc]


def license_of(name: str) -> str:
    """What a package says of its license; empty when it is not installed."""
    try:
        facts = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    if name in _READ:
        return _READ[name]
    classified = [line.split(" :: ")[-1] for line in facts.get_all("Classifier", []) if line.startswith("License ::")]
    stated = (facts.get("License") or "").strip().splitlines()
    text = facts.get("License-Expression") or ", ".join(one for one in classified if one != "OSI Approved")
    return text or (stated[0][:80] if stated else "") or _from_file(name) or "not stated"


def _from_file(name: str) -> str:
    """The first line of a package's license file."""
    for file in importlib.metadata.files(name) or []:
        if re.match(r"(?i)(licen[cs]e|copying)", file.name):
            lines = file.read_text().split("\n")
            return next((line.strip()[:80] for line in lines if line.strip()), "")
    return ""


def acceptable(words: str) -> bool:
    """Whether a license, or one of several to choose from, is permissive, MPL or LGPL."""
    choices = re.split(r"\s+OR\s+", words)
    return any(_PERMISSIVE.search(one) and not _COPYLEFT.search(one) for one in choices)


def print_licenses() -> int:
    """The table; how many packages need a look."""
    doubtful = 0
    for name, version in pinned().items():
        words = license_of(name)
        good = not words or acceptable(words)
        doubtful += not good
        print(f"{name:28} {version:16} {words or 'not installed here'}{'' if good else '   <- look at it'}")
    return doubtful


def print_advisories() -> int:
    """What pip-audit finds: 0 nothing, 1 advisories, 3 where its data cannot be had."""
    words = ["-m", "pip_audit", "-r", str(PINNED), "--no-deps", "--disable-pip", "-f", "json"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        print(f"Advisories: not checked ({last[:200]}); needs pip-audit and the network")
        return 3
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    known = [(one["name"], found) for one in packages for found in one.get("vulns", [])]
    for name, found in known:
        print(f"{name}: {found['id']}, repaired in {', '.join(found['fix_versions']) or 'no version'}")
    n = len(packages) - len(skipped)
    print(f"Advisories: {len(known)} known; {n} packages checked, {len(skipped)} could not be")
    return 1 if known else (3 if skipped else 0)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--licenses", action="store_true", help="no advisories")
    given = parser.parse_args()
    doubtful = print_licenses()
    print(f"Licenses: {len(pinned())} packages, {doubtful} to look at")
    code = 0 if given.licenses else print_advisories()
    return 1 if doubtful else code


if __name__ == "__main__":
    sys.exit(main())
