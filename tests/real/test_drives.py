"""Drives of a quadruped from commands and positions, evaluated by replay on the part of its log that was not used."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

import dynident as di
from dynident.drives.identification import identify_drives
from dynident.drives.linear import with_gains

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "unitree_go2"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
GAINS = [20.0] * 12, [1.5] * 12


@pytest.fixture(scope="module")
def robot():
    return with_gains(di.load_robot(DATA / "robot.xml"), *GAINS)


@pytest.mark.parametrize("train", ["first", "last"])
def test_replay_error_on_the_other_part(robot, train):
    log = di.read_log(DATA / "log_a.csv.gz", robot)
    parts = [log.window(0.0, 9.3), log.window(9.3)] if train == "first" else [log.window(4.7), log.window(0.0, 4.7)]
    own, other = parts[0], dataclasses.replace(parts[1], role="validation", label="other part")
    found = identify_drives(robot, [own, other])
    assert found.held_out
    assert found.before.total > 0.012  # the file's own values
    assert found.after.total < 0.5 * found.before.total
    assert (found.after.rms < found.before.rms).all()
