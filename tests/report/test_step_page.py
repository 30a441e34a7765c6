"""The headline of the page of a step test."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from dynident.information.parameter_estimate import ParameterEstimate
from dynident.report.experiments.step import _verdict


def headline(beta, std):
    names = tuple(f"ZZ{k}" for k in range(len(beta)))
    found = ParameterEstimate(names, ("",) * len(beta), beta, np.diag(std) ** 2, [True] * len(beta))
    return _verdict(SimpleNamespace(configurations=[SimpleNamespace(motor=0)], combinations=found, payload=()))


def test_a_number_that_is_zero_does_not_look_uncertain():
    assert headline([2.0, -1e-6], [0.01, 4e-6]).endswith(
        "the least certain to 0.500 %, 1 of them zero within two standard deviations."
    )
    assert headline([2.0, 1.0], [0.01, 0.02]).endswith("steps can determine, the least certain to 2.00 %.")
