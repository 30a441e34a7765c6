"""Stated standard deviations hold on robots that nobody tuned a method to: `benchmarks/strangers.py` with one seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from dynident.errors import DynidentError
from tests.strangers import ROBOTS
from tests.strangers.methods import METHODS

RMS = 1.3  # of errors in standard deviations, over many numbers
BEYOND = 6.0  # no error is this large
SEED = 3

# Joints of the quick run, by robot: experiments that go through joint after joint take a minute for all of them.
FEW = {
    "scara": ("lift",),
    "skewed_arm": ("a6", "a7"),
    "pinocchio_arm": ("wrist",),
    "sr400": ("joint5", "joint6"),
}
SLOW = ("skewed_arm", "pinocchio_arm")  # whose experiments take more than some seconds
MANY_LOGS = ("sequential, off-line", "payload, known", "drive gains")
ONCE = ("stages", "energy", "power")  # quick on one robot
JOINT_BY_JOINT = ("gravity, sweeps", "gravity, sinusoids", "constant velocity", "step")

# What a method says to a robot that it cannot serve.
REFUSALS: dict[tuple[str, str], str] = {
    ("sr400", "step"): "changes along its own motion",
}


def cases():
    for robot in ROBOTS:
        for method in METHODS:
            marks = []
            slow = robot in SLOW and method in (*JOINT_BY_JOINT, *ONCE, "oscillation")
            if robot == "sr400" or slow or method in MANY_LOGS:
                marks.append(pytest.mark.full)
            yield pytest.param(robot, method, marks=marks)


@pytest.mark.parametrize(("robot", "method"), tuple(cases()))
def test_errors_are_of_the_size_that_is_stated(robot, method):
    joints = {"joints": FEW[robot]} if method in JOINT_BY_JOINT else {}
    if (robot, method) in REFUSALS:
        with pytest.raises(DynidentError, match=REFUSALS[robot, method]):
            METHODS[method](ROBOTS[robot](), SEED, **joints)
        return
    found = METHODS[method](ROBOTS[robot](), SEED, **joints)
    n = len(found.off)
    assert np.abs(found.off).max() < BEYOND, str(found)
    assert found.rms < RMS * np.sqrt(chi2.ppf(0.999, n) / n), str(found)  # what chance leaves of so few numbers
