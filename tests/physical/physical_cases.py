"""Small fits with known truth, for tests of what is physical."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.identifiability.states import random_states
from dynident.information.factor import Factor, triangular
from dynident.information.information import Information, Segment


def information(robot, truth, *, terms=None, noise=0.02, seed=0, samples=300):
    """Factors of noisy torque on random states; `truth` is a value set, a mapping or a vector."""
    base = di.base_parameters(robot, terms)
    W = di.regressor(robot, *random_states(robot, samples, seed=seed + 1), terms)
    tau = W @ di.parameters(robot, terms, truth)
    rng = np.random.default_rng(seed)
    tau = tau + noise * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    names = robot.joint_names
    factors = []
    for joint in range(len(names)):
        rows = np.column_stack([W[:, joint, list(base.independent)], tau[:, joint]])
        factors.append(Factor(tuple(range(base.n)), triangular(rows), samples))
    definitions = tuple(column.name for column in base.columns)
    return Information(base, definitions, names, (Segment("random", tuple(factors)),))
