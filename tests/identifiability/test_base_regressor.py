"""The columns that each output depends on, with room for right-hand sides."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.dynamics.terms import resolve_terms
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.identifiability.states import random_states

TERMS = "rigid,Ia,Fv,Fc,Fo"


@pytest.fixture(scope="module", params=["puma560", "sr400"])
def robot(request):
    return di.load_robot(request.param)


@pytest.fixture(scope="module")
def made(robot):
    return BaseRegressor.of(robot, resolve_terms(TERMS))


@pytest.mark.parametrize("n_right", [0, 1, 3])
def test_lines_hold_the_base_columns(robot, made, n_right):
    q, dq, ddq = random_states(robot, 7)
    W = di.base_parameters(robot, TERMS).regressor(q, dq, ddq)
    found = made.columns_first([*q.T, *dq.T, *ddq.T], n_right=n_right)
    lines = made.lines(n_right)
    assert found.shape == (lines[-1].stop, 7)
    for output, (columns, own) in enumerate(zip(made.columns, lines, strict=True)):
        wide = np.zeros_like(W[:, output])
        wide[:, list(columns)] = found[own][: len(columns)].T
        np.testing.assert_allclose(wide, W[:, output], atol=1e-10 * np.abs(W).max())
        assert not found[own][len(columns) :].any()
        assert own.stop - own.start == len(columns) + n_right


def test_scales_stand_at_the_columns(made):
    scales = made.line_scales(2)
    for own in made.lines(2):
        assert (scales[own][:-2] > 0.0).all()
        assert not scales[own][-2:].any()


def test_it_is_made_once(robot, made):
    assert BaseRegressor.of(robot, resolve_terms(TERMS)) is made
    assert BaseRegressor.of(robot, resolve_terms(TERMS), "standard") is not made


def test_columns_are_base_or_standard(robot):
    with pytest.raises(di.InputError, match="expected base or standard"):
        BaseRegressor.of(robot, resolve_terms(TERMS), "other")
