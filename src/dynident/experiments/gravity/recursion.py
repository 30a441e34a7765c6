"""From Fourier coefficients to moments, link by link from the tip (Abhishek et al., eq. 21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread
from dynident.experiments.gravity.fourier import FourierFit
from dynident.experiments.gravity.structure import GravityBase, Stage, gravity_columns

_WEAK = 1e-3  # of gravity: a direction of moments that shows less than this is not determined
_ABSENT = 1e-3  # share of the largest, below which a harmonic is not one of the weight
_FLOOR = 1e-12  # share of the largest coefficient that is rounding


@dataclass(frozen=True, eq=False)
class Moments:
    """Values of the gravity base.

    Attributes:
        values: (n,).
        covariance: (n, n).
        determined: (n,) whether the runs tell each one.
    """

    values: Array
    covariance: Array
    determined: Mask


@on_one_thread
def solve(base: GravityBase, parts: Sequence[Stage], found: Sequence[Sequence[FourierFit]]) -> Moments:
    """The recursion: what a stage adds, with the links beyond it as the stages before have found them.

    Args:
        base: What gravity shows.
        parts: The stages.
        found: The fits of each.
    """
    n = base.n
    values, covariance, determined = np.zeros(n), np.zeros((n, n)), np.zeros(n, dtype=bool)
    known: list[int] = []
    for stage, fits in zip(parts, found, strict=True):
        fresh = list(stage.fresh)
        if not fresh:
            continue
        rows, weight, noise = _measured(base, fits)
        root = _whitening(noise)
        u, s, vt = np.linalg.svd(root @ rows[:, fresh], full_matrices=False)
        plain = np.linalg.svd(rows[:, fresh], compute_uv=False)
        sure = plain > _WEAK * float(np.linalg.norm(base.robot.gravity))
        keep = np.arange(len(s)) < np.count_nonzero(sure)
        solved = (vt[keep].T / s[keep]) @ u[:, keep].T @ root  # fresh = solved @ (weight - rows[:, known] @ values)
        values[fresh] = solved @ (weight - rows[:, known] @ values[known])
        spread = solved @ rows[:, known]
        covariance[np.ix_(fresh, known)] = -spread @ covariance[np.ix_(known, known)]
        covariance[np.ix_(known, fresh)] = covariance[np.ix_(fresh, known)].T
        covariance[np.ix_(fresh, fresh)] = (
            solved @ noise @ solved.T + spread @ covariance[np.ix_(known, known)] @ spread.T
        )
        lost = np.sqrt(np.maximum(1.0 - np.sum(vt[keep] ** 2, axis=0), 0.0))
        # What leans on a moment beyond that nobody determined is not determined either.
        open_beyond = [i for i, k in enumerate(known) if not determined[k]]
        leaning = np.abs(spread[:, open_beyond]).max(axis=1, initial=0.0) > _WEAK
        determined[fresh] = (lost < 1e-6) & ~leaning
        known += fresh
    return Moments(values, covariance, determined)


def _whitening(noise: Array) -> Array:
    """R with R noise Rᵀ = 1; coefficients that lean on each other almost fully are no obstacle."""
    std = np.sqrt(np.diag(noise))
    alike = noise / np.outer(std, std)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(alike + _FLOOR * np.eye(len(std)))) / std)


def _measured(base: GravityBase, fits: Sequence[FourierFit]) -> tuple[Array, Array, Array]:
    """What the coefficients are of the gravity base (n_rows, n), their values without what is known, their noise."""
    rows, weight, noise = [], [], []
    for fit in fits:
        torque = gravity_columns(base.robot, fit.run.q)[:, fit.run.joint]
        made = fit.project @ fit.run.half_sum(torque)  # (n_coefficients, n_columns)
        sizes = np.linalg.norm(made, axis=1)
        # A harmonic that rigid links do not have was fitted to keep it out; it says nothing about them.
        own = [i for i in fit.weighing if sizes[i] > _ABSENT * sizes[list(fit.weighing)].max()]
        made = made[own]
        rows.append(made[:, list(base.independent)])
        weight.append(fit.coefficients[own] - made @ base.fixed)
        noise.append(fit.covariance[np.ix_(own, own)])
    total = np.zeros((len(np.concatenate(weight)),) * 2)
    start = 0
    for block in noise:
        total[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    scale = max(float(np.abs(np.concatenate(weight)).max()), 1e-9)
    return np.concatenate(rows), np.concatenate(weight), total + (_FLOOR * scale) ** 2 * np.eye(len(total))
