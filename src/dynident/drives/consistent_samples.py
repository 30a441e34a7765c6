r"""Samples of a Gaussian restricted to physically consistent parameters.

.. math:: p(\theta) \propto N(\theta; \mu, S S') \; 1[\theta_k \ge 0] \; 1[J_l(\theta) \succ 0]

with J_l the pseudo-inertia of link l (Traversaro 2016; Wensing, Kim & Slotine 2018). Draws of the Gaussian that are
consistent are taken as they are: rejection is exact. Where few are, a Gibbs sampler in coordinates in which the
Gaussian is white goes on, whose conditional distributions are exact as well. Nothing is projected: projected samples
pile up on the boundary, and their mean and spread are those of no posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.drives.sampling_thresholds import THRESHOLDS
from dynident.errors import InputError
from dynident.robot.physicality import pseudo_inertia


@dataclass(frozen=True, eq=False)
class Conditions:
    """What makes parameters (.., p) physically consistent.

    Attributes:
        nonnegative: Indices of parameters that must not be negative.
        links: (n_links, 10) indices of the standard parameters of links that have bodies.
    """

    nonnegative: NDArray[np.intp]
    links: NDArray[np.intp]

    def hold(self, theta: Array) -> NDArray[np.bool_]:
        """(n,) whether each of n samples (n, p) meets all conditions."""
        good = np.all(theta[:, self.nonnegative] >= 0.0, axis=1)
        if len(self.links):
            good &= np.all(_is_positive(pseudo_inertia(theta[:, self.links])), axis=1)
        return np.asarray(good)

    def interval(self, theta: Array, direction: Array) -> tuple[Array, Array]:
        """(n,) lowest and highest t for which theta + t direction meets all conditions, theta (n, p) meeting them."""
        low, high = np.full(len(theta), -np.inf), np.full(len(theta), np.inf)
        for k in self.nonnegative[direction[self.nonnegative] != 0.0]:
            edge = -theta[:, k] / direction[k]
            low, high = (np.maximum(low, edge), high) if direction[k] > 0.0 else (low, np.minimum(high, edge))
        moved = [link for link in self.links if np.any(direction[link])]
        if moved:
            at, along = pseudo_inertia(theta[:, moved]), pseudo_inertia(direction[moved])
            inverse = np.linalg.inv(np.linalg.cholesky(at))
            rates = np.linalg.eigvalsh(inverse @ along @ np.swapaxes(inverse, -1, -2))
            with np.errstate(divide="ignore"):
                low = np.maximum(low, np.max(np.where(rates[..., -1] > 0.0, -1.0 / rates[..., -1], -np.inf), axis=1))
                high = np.minimum(high, np.min(np.where(rates[..., 0] < 0.0, -1.0 / rates[..., 0], np.inf), axis=1))
        return low, high


def _is_positive(matrices: Array) -> NDArray[np.bool_]:
    """Whether symmetric 4x4 matrices (.., 4, 4) are positive definite, by the pivots of their elimination."""
    rest, good = np.array(matrices), np.ones(matrices.shape[:-2], dtype=bool)
    for _ in range(matrices.shape[-1]):
        pivot = rest[..., 0, 0]
        good &= pivot > 0.0
        column = rest[..., 1:, 0]
        safe = np.where(pivot > 0.0, pivot, 1.0)[..., None, None]
        rest = rest[..., 1:, 1:] - column[..., :, None] * column[..., None, :] / safe
    return np.asarray(good)


@dataclass(frozen=True, eq=False)
class Draws:
    """Samples, and how they were drawn.

    Attributes:
        theta: (n, p).
        accepted: Share of draws of the Gaussian that are consistent.
        chained: How many samples are ends of a Gibbs chain.
    """

    theta: Array
    accepted: float
    chained: int


def draw_consistent(
    start: Array, root: Array, mean: Array, conditions: Conditions, n: int, rng: np.random.Generator
) -> Draws:
    """Draw samples theta = start + root z, with z normal around `mean` (r,) with variances of one, restricted.

    Args:
        start: (p,) consistent parameters.
        root: (p, r).
        mean: (r,) of z.
        conditions: What they must meet.
        n: How many.
        rng: Random numbers.

    Raises:
        InputError: When the start is not consistent itself.
    """
    if not conditions.hold(start[None])[0]:
        raise InputError("the values around which samples would be drawn are not physically consistent themselves")
    taken = [np.zeros((0, len(start)))]
    tried = kept = 0
    for _ in range(THRESHOLDS.most_tries):
        drawn = start + (mean + rng.standard_normal((n, len(mean)))) @ root.T
        good = conditions.hold(drawn)
        tried, kept = tried + n, kept + int(good.sum())
        taken.append(drawn[good])
        if kept >= n:
            break
    theta = np.concatenate(taken)[:n]
    if len(theta) == n:
        return Draws(theta, kept / tried, 0)
    chains = _gibbs(start, root, mean, conditions, n - len(theta), rng)
    every = np.concatenate([theta, chains])
    return Draws(every[rng.permutation(n)], kept / max(tried, 1), len(chains))


def _gibbs(start: Array, root: Array, mean: Array, conditions: Conditions, n: int, rng: np.random.Generator) -> Array:
    """Ends of n chains that begin at the start: coordinate after coordinate of z from its conditional distribution.

    A draw of the conditional without the conditions is taken where it meets them; chains whose draw does not get one
    of the conditional within them, which together is the conditional that is wanted.
    """
    theta, z = np.tile(start, (n, 1)), np.zeros((n, len(mean)))
    for _ in range(THRESHOLDS.sweeps):
        for k in rng.permutation(len(mean)):
            new = mean[k] + rng.standard_normal(n)
            out = ~conditions.hold(theta + (new - z[:, k])[:, None] * root[:, k])
            if out.any():
                low, high = conditions.interval(theta[out], root[:, k])
                width = np.where(np.isfinite(high - low), high - low, 0.0)
                low, high = low + _INSIDE * width, high - _INSIDE * width  # lest rounding leaves the set
                new[out] = mean[k] + _truncated_normal(z[out, k] + low - mean[k], z[out, k] + high - mean[k], rng)
            moved = theta + (new - z[:, k])[:, None] * root[:, k]
            good = conditions.hold(moved)  # rounding at the boundary: such a chain waits
            theta[good], z[good, k] = moved[good], new[good]
    return theta


def _truncated_normal(low: Array, high: Array, rng: np.random.Generator) -> Array:
    """(n,) standard normal between low and high, by the inverse of the distribution's logarithm: exact in tails."""
    from scipy.special import log_ndtr, ndtri_exp

    flip = low > 0.0  # the tail in which the logarithm has its digits
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    first, last = log_ndtr(low), log_ndtr(high)
    share = -np.expm1(first - last) * rng.random(len(low))
    found = np.clip(ndtri_exp(last + np.log1p(-share)), low, high)
    return np.asarray(np.where(flip, -found, found))


_INSIDE = 1e-9  # share of an interval
