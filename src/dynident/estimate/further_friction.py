r"""Friction beyond viscous and Coulomb's, as far as it concerns parameters: nuisance columns under priors.

Friction that falls with velocity or grows with the load is no part of basic friction. In its residual it moves with the
motion, does not average out, and what of it lies along other columns is taken for inertia, weight, Fv and Fc. So these
columns stand beside the base parameters with coefficients :math:`x_i \sim N(0, (s_g u_i)^2)`: the unit of friction that
falls is the element's own Fc, that of friction per load one, and the scale s_g of a group maximizes the marginal
likelihood of what base parameters, widths and delay leave of the torque. Scales that the data does not ask for go to
zero, and with them everything that is said here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynident.arrays import Array, on_one_thread, record
from dynident.dynamics.terms import Column, Term, all_columns
from dynident.dynamics.terms.friction import FrictionTerm, elements_with_friction
from dynident.estimate.friction_width import beyond
from dynident.identifiability.base import BaseParameters
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.solution import dense_channels, rounding_floors, trust_as_driven
from dynident.information.thresholds import THRESHOLDS as INFORMATION

# Friction may fall within a tenth of the smallest effective velocity to the largest one, tried three times apart:
# curves exp(-(v / vs)^2) between these are nearly sums of their neighbors.
_LEAST_SHARE, _RATIO = 0.1, 3.0
_FIRST_SCALE, _LARGEST_SCALE, _NONE = 0.1, 10.0, 1e-3  # of coefficients in their units; the last counts as zero
_ROUNDS, _SETTLED = 300, 1e-3  # of the scales, and change of their logarithms, times what determines them, that ends
_WEIGHINGS = 3  # of the channels, each with scales of its own


def further_terms(velocities: Mapping[str, float]) -> tuple[Term, ...]:
    """Terms of friction beyond basic friction.

    Args:
        velocities: Effective velocity of each element that moves, by its label, in radians at the joint [rad/s].
    """
    if not velocities:
        return ()
    least, most = _LEAST_SHARE * min(velocities.values()), max(velocities.values())
    count = 1 + int(np.ceil(np.log(most / least) / np.log(_RATIO) - 1e-9))
    scales = [float(f"{x:.3g}") for x in np.geomspace(least, most, count)]
    labels = tuple(velocities)
    return FrictionTerm("stribeck", *scales, only=labels), FrictionTerm("load", only=labels)


@record
class FurtherFriction:
    """What stands beside base parameters where the data asks for friction beyond basic friction.

    Attributes:
        names: Of all parameters: base parameters, further friction, widths and delay.
        values: (n,) most probable values.
        covariance: (n, n) of them.
        scales: Of the groups of further friction, by name.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    scales: Mapping[str, float]


@on_one_thread
def find_further_friction(
    extended: Information, basic: BaseParameters, terms: Sequence[Term], inflation: Array
) -> FurtherFriction | None:
    """Friction beyond basic friction, as far as the data asks for it; None where it does not.

    Args:
        extended: Data over base parameters, coefficients of further friction, widths and delay, in this order.
        basic: The base parameters.
        terms: Those of further friction.
        inflation: (n_channels,) rows that weigh as much as one independent row.
    """
    n, n_all, columns = basic.n, extended.coordinates.n, all_columns(basic.robot, terms)
    friction = list(range(n, n + len(columns)))
    flat = [*range(n), *range(n + len(columns), n_all)]  # those without a prior
    owners, keys = _groups(columns)
    channels, n_rows = dense_channels(extended)
    floors, scales = rounding_floors(channels), np.full(len(keys), _FIRST_SCALE)
    spread, deviations = np.zeros(len(columns)), np.ones(len(channels))
    values, half = _solve(_weigh_rows(channels, deviations), flat, friction, spread)
    for _ in range(_WEIGHINGS):
        deviations = _deviations(channels, n_rows, values, len(flat), floors) * np.sqrt(inflation)
        rows = _weigh_rows(channels, deviations)
        if not spread.any():  # channels have weights now
            values, _ = _solve(rows, flat, friction, spread)
        rest, right = beyond(triangular(rows[:, [*flat, *friction, n_all]]), len(flat))
        units = _units(columns, basic, values)
        scales = _choose_scales(rest * units, right, owners, scales)
        spread = units * np.where(scales > _NONE, scales, 0.0)[owners]
        values, half = _solve(rows, flat, friction, spread)
    if not spread.any():
        return None
    found = dict(zip(keys, scales.tolist(), strict=True))
    return FurtherFriction(tuple(extended.names), values, half @ half.T, found)


def _groups(columns: Sequence[Column]) -> tuple[Array, list[str]]:
    """The group of each column, and the names of the groups: a law with a scale, on all elements."""
    keys = [
        column.symbol if column.term == "load" else column.name.removesuffix(f"_{column.place}") for column in columns
    ]
    names = list(dict.fromkeys(keys))
    return np.array([names.index(key) for key in keys]), names


def _units(columns: Sequence[Column], basic: BaseParameters, values: Array) -> Array:
    """(k,) what coefficients are of the order of: friction that falls is a share of Fc, friction per load a share."""
    known = dict(zip(basic.names, values[: basic.n].tolist(), strict=True))
    coulomb = {e.label: abs(known.get(e.names["Fc"], 0.0)) for e in elements_with_friction(basic.robot)}
    return np.array([1.0 if column.term == "load" else coulomb[column.place] for column in columns])


def _weigh_rows(channels: Sequence[Array], deviations: Array) -> Array:
    return np.vstack([rows / own for rows, own in zip(channels, deviations, strict=True)])


def _deviations(channels: Sequence[Array], n_rows: Array, values: Array, n_flat: int, floors: Array) -> Array:
    """(n_channels,) of the residuals; the freedom that the fit uses up is shared by rows."""
    squares = np.array([((rows[:, -1] - rows[:, :-1] @ values) ** 2).sum() for rows in channels])
    left = np.maximum(n_rows * (1.0 - n_flat / max(n_rows.sum(), 1.0)), 1.0)
    found = np.where(n_rows > 0.0, np.maximum(np.sqrt(squares / left), floors), 1.0)
    return np.asarray(trust_as_driven(found, np.array([bool(rows[:, -1].any()) for rows in channels])))


def _solve(rows: Array, flat: Sequence[int], friction: Sequence[int], spread: Array) -> tuple[Array, Array]:
    """Values (n,) and a root of their covariance, on rows [X | y] of unit variance; friction is N(0, spread^2)."""
    n = rows.shape[1] - 1
    live = [i for i, s in zip(friction, spread, strict=True) if s > 0.0]
    own = spread[spread > 0.0]
    A = triangular(np.column_stack([rows[:, flat], rows[:, live] * own, rows[:, n]]))
    size = np.linalg.norm(A[:, : len(flat)], axis=0)
    scale = np.concatenate([1.0 / np.where(size > 0.0, size, 1.0), np.ones(len(live))])
    prior = np.hstack([np.zeros((len(live), len(flat))), np.eye(len(live))])
    u, singular, vt = np.linalg.svd(np.vstack([A[:, :-1] * scale, prior]), full_matrices=False)
    kept = singular > INFORMATION.noisy_rank * min(singular[0], 1.0)
    half = scale[:, None] * (vt[kept].T / singular[kept])
    x = half @ (u[: len(A), kept].T @ A[:, -1])
    half[len(flat) :] *= own[:, None]
    x[len(flat) :] *= own
    values, root = np.zeros(n), np.zeros((n, half.shape[1]))
    values[[*flat, *live]], root[[*flat, *live]] = x, half
    return values, root


def _choose_scales(Z: Array, y: Array, owners: Array, scales: Array) -> Array:
    """Scales of groups that maximize the likelihood of y ~ N(0, I + sum_g s_g^2 Z_g Z_g') (MacKay's fixed point)."""
    R = triangular(np.column_stack([Z, y]))
    G, z = R[:, :-1], R[:, -1]
    scales = np.clip(scales, 10.0 * _NONE, _LARGEST_SCALE)  # what was zero may come back
    for _ in range(_ROUNDS):
        own = G * scales[owners]
        u, singular, vt = np.linalg.svd(own, full_matrices=False)
        c = vt.T @ (singular / (1.0 + singular**2) * (u.T @ z))
        reduction = (vt.T**2) @ (singular**2 / (1.0 + singular**2))
        determined = np.maximum(np.bincount(owners, reduction, len(scales)), 1e-9)
        wanted = scales * np.sqrt(np.bincount(owners, c**2, len(scales)) / determined)
        wanted = np.clip(wanted, 0.1 * _NONE, _LARGEST_SCALE)
        change = (determined * np.abs(np.log(wanted / scales))).max()
        scales = wanted
        if change < _SETTLED:
            break
    return scales
