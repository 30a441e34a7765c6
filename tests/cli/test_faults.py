"""Kills and full disks; `benchmarks/faults.py` tries every operation, and fifty moments of each job."""

from __future__ import annotations

import os
import random

import pytest
from benchmarks.faults import JOBS, Stage, full_disks, kills

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="faults are injected by names of open files")


@pytest.fixture(scope="module", params=list(JOBS))
def stage(request, tmp_path_factory):
    return Stage(tmp_path_factory.mktemp(request.param), request.param)


def wrong(found):
    return [f"{moment}: {words}" for moment, words in found if words]


@pytest.mark.full
def test_killed_at_random_moments(stage):
    assert wrong(kills(stage, 50, seed=1)) == []


@pytest.mark.full
def test_full_disk_at_every_operation(stage):
    assert wrong(full_disks(stage)) == []


def test_some_moments_of_an_identification(tmp_path):
    """A kill while the files of a fit change places, and a disk that is full when they are written."""
    made = Stage(tmp_path, "identify")
    steps = made.n_steps()
    assert wrong(kills(made, 2, seed=random.Random(0).randrange(1000))) == []
    assert wrong(full_disks(made, first=steps // 2, every=steps)) == []
