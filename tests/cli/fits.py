"""Small fits of the demo's arm, for the verbs that read stored ones."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import dynident as di
from dynident.cli.command_line import main

DEMO = Path(__file__).parents[2] / "examples" / "demo"
ARM = str(DEMO / "arm.yaml")
FIRST, SECOND, OTHER, LOADED = (
    str(DEMO / f"{name}.csv.gz") for name in ("fourier_1", "fourier_2", "wandering", "payload")
)
PLAIN = {"delay": 0.004, "velocity_source": "position", "friction": "basic", "check": "off"}
PLAIN_WORDS = [f"--{name.replace(chr(95), chr(45))}={value}" for name, value in PLAIN.items()]


@functools.cache
def fit_of(*logs: str, band: float = 6.0, robot: str = ARM, held_out: str = OTHER, **options) -> di.Fit:
    arm = di.load_robot(robot)
    given = [di.read_log(path, arm) for path in logs] + [di.read_log(held_out, arm, role="validation")]
    return di.identify(arm, given, band=band, **(PLAIN | options))


def answer(capsys, *arguments: str) -> dict:
    """What a verb answers with --json, and that it says nothing else."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def complaint(capsys, *arguments: str) -> str:
    """The one line of a run that must fail."""
    capsys.readouterr()
    try:
        code = main(list(arguments))
    except SystemExit as stop:  # argparse
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2, captured.out
    assert captured.err.count("\n") == 1
    return captured.err
