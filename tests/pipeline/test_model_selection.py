"""Terms that are given are in the model, whatever friction is chosen beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynident as di

DEMO = Path(__file__).parents[2] / "examples" / "demo"


@pytest.mark.parametrize("friction", ["basic", "stop(0.003)", None])
def test_given_terms_stay(friction):
    robot = di.load_robot(DEMO / "arm.yaml")
    log = di.read_log(DEMO / "fourier_1.csv.gz", robot)
    terms = "rigid,Ia,Fv,Fc(0.02),Fo,cubic"
    fit = di.identify(robot, log, terms=terms, friction=friction, check="off", delay=0.0, velocity_source="position")
    assert "cubic_1" in fit.names
    assert ("stop3_1" in fit.names) == (friction == "stop(0.003)")
