"""Friction beyond basic friction: found where the data has it, without a say where it does not, as wide as it is open."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import dynident as di
from dynident.dynamics.terms import all_columns
from dynident.estimate.further_friction import FurtherFriction, _choose_scales, find_further_friction, further_terms
from dynident.identifiability.base import base_parameters
from dynident.information.row_source import accumulate_rows

NOISE = np.array([0.05, 0.2])  # of the channels
COULOMB = 2.0
N_ROWS = 400
SEEDS = range(12)


@pytest.fixture(scope="module")
def basic():
    return base_parameters(di.load_robot("pendulum-2"), "rigid,Ia,Fv,Fc(0.02),Fo")


TERMS = further_terms({"1": 1.0, "2": 1.5})


def found(basic, seed: int, falling: float = 0.0, load: float = 0.0) -> tuple[FurtherFriction | None, np.ndarray]:
    """What is found in rows of random columns, and the true values; friction falls by a share of Fc."""
    columns = all_columns(basic.robot, TERMS)
    names = (*basic.names, *(column.name for column in columns), "delay")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=len(names))
    x[[names.index("Fc1"), names.index("Fc2")]] = COULOMB
    for i, column in enumerate(columns, start=basic.n):
        size = (
            load
            if column.term == "load"
            else falling * COULOMB * column.name.startswith(f"stribeck{TERMS[0].scales[1]:g}_")
        )
        x[i] *= size
    W = rng.normal(size=(N_ROWS, 2, len(names)))
    tau = W @ x + NOISE * rng.normal(size=(N_ROWS, 2))
    return find_further_friction(accumulate_rows(W, tau, names), basic, TERMS, np.ones(2)), x


def test_friction_may_fall_within_a_tenth_of_the_slowest_to_the_fastest_velocity():
    stribeck, load = TERMS
    assert stribeck.scales[0] == pytest.approx(0.1, rel=0.01)
    assert stribeck.scales[-1] == pytest.approx(1.5, rel=0.01)
    assert max(np.diff(np.log(stribeck.scales))) <= np.log(3.0) + 0.01
    assert stribeck.only == load.only == ("1", "2")
    assert further_terms({}) == ()


def test_scales_have_the_largest_likelihood():
    rng = np.random.default_rng(3)
    owners = np.repeat([0, 1, 2], [4, 3, 5])
    Z = rng.normal(size=(60, 12)) * 3.0
    y = Z @ (rng.normal(size=12) * np.array([0.8, 0.2, 0.0])[owners]) + rng.normal(size=60)
    scales = _choose_scales(Z, y, owners, np.full(3, 0.1))

    def cost(logs):
        covariance = np.eye(60) + (Z * np.exp(logs)[owners] ** 2) @ Z.T
        return -multivariate_normal(np.zeros(60), covariance).logpdf(y)

    starts = np.log([[0.5, 0.5, 0.5], [0.5, 0.1, 1e-3]])
    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 4000}
    best = min((minimize(cost, one, method="Nelder-Mead", options=options) for one in starts), key=lambda own: own.fun)
    assert cost(np.log(scales)) == pytest.approx(best.fun, abs=1e-3)


@pytest.mark.parametrize(("falling", "load"), [(0.3, 0.0), (0.0, 0.1), (0.3, 0.1)])
def test_errors_have_the_size_that_is_stated(basic, falling, load):
    off = []
    for seed in SEEDS:
        own, x = found(basic, seed, falling, load)
        assert own is not None
        known = np.diag(own.covariance) > 0.0
        off.append(((own.values - x) / np.sqrt(np.where(known, np.diag(own.covariance), 1.0)))[known])
        assert (own.scales["load_"] > 0.02) == bool(load)
    assert 0.9 < np.sqrt(np.mean(np.concatenate(off) ** 2)) < 1.1


def test_without_it_there_is_nothing_or_next_to_nothing(basic):
    every = [found(basic, seed)[0] for seed in SEEDS]
    assert any(own is None for own in every)
    assert all(max(own.scales.values()) < 0.01 for own in every if own is not None)
