"""The body on the demo's tool, which MuJoCo carried and the identification does not know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynident as di

DEMO = Path(__file__).parents[2] / "examples" / "demo"
TRUTH = (2.0, 0.01, 0.02, 0.06, 0.004, 0.004, 0.002, 0.0, 0.0, 0.0)  # LOAD of make_logs.py


@pytest.fixture(scope="module")
def demo():
    robot = di.load_robot(DEMO / "arm.yaml")
    bare, loaded = (di.read_log(DEMO / f"{name}.csv.gz", robot) for name in ("fourier_2", "payload"))
    return di.identify(robot, bare, friction="basic"), bare, loaded


@pytest.mark.parametrize("joint", [False, True], ids=["loaded", "joint"])
def test_all_ten_within_three_deviations(demo, joint):
    fit, bare, loaded = demo
    found = di.identify_payload(fit, loaded, unloaded=[bare] if joint else [])
    assert found["mass"].value == pytest.approx(2.0, rel=0.005)
    assert not {"mass", "cx", "cy", "cz"} & set(found.withheld)
    off = [(one.value - x) / one.std for one, x in zip(found.numbers, TRUTH, strict=True) if one.value is not None]
    assert np.abs(off).max() < 3.0
    assert found.session == "none"
