"""Recognize regrouping coefficients as expressions of the robot's own named lengths.

A coefficient such as 0.0625 could be many things. Here the robot is rebuilt with other values of its named lengths:
one at a time, which shows on which lengths a coefficient depends, and all at once, dozens of times. A sum of few
products of those lengths is accepted only if it gives all the coefficients, including some it was not fitted to.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.equations import regressor_entries
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.state import make_state
from dynident.dynamics.terms import Term, all_columns
from dynident.identifiability.states import random_states
from dynident.robot.model import Robot

_AGREEMENT = 1e-7
_MOST_TERMS = 4
_CHECKED = 5  # sets of lengths that only serve as a check
_RANDOM_SETS = 34  # enough for all products of two out of seven lengths
Powers = tuple[int, ...]  # exponent of each length


@on_one_thread
def recognize(robot: Robot, terms: Sequence[Term], independent: Sequence[int], K: Array) -> dict[tuple[int, int], str]:
    """Text of every coefficient that is an expression of lengths, {(base, column): text}.

    Whole numbers are left to the caller; robots without named lengths have none.
    """
    dependent = [int(j) for j in np.flatnonzero(K.any(0)) if j not in set(independent)]
    if robot.geometry is None or not dependent:
        return {}
    wanted = [(row, column) for row in range(len(independent)) for column in dependent if abs(K[row, column]) > 1e-9]
    if not wanted:
        return {}
    names = list(robot.lengths)
    lengths, relations = _relations(robot, terms, independent, dependent)
    own = np.array([robot.lengths[name] for name in names])
    where = {column: i for i, column in enumerate(dependent)}
    described = all_columns(robot, terms)
    result: dict[tuple[int, int], str] = {}
    for row, column in wanted:
        values = relations[:, row, where[column]]
        degree = _degree(described[independent[row]].symbol) - _degree(described[column].symbol)
        found = _fit(values, lengths, degree)
        if found is not None and not _is_whole(found):
            value = sum(c * float(np.prod(own ** np.array(p))) for p, c in found.items())
            if abs(value - K[row, column]) < _AGREEMENT * max(1.0, abs(value)):
                result[row, column] = _text(found, names)
    return result


def _degree(symbol: str) -> int:
    """Powers of length in a parameter's unit."""
    return {"M": 0, "MX": 1, "MY": 1, "MZ": 1}.get(symbol, 2)


def _monomials(among: Sequence[int], n: int, degree: int) -> list[Powers]:
    """Products of `degree` lengths, taken from those among n with the given indices."""
    found: dict[Powers, None] = {}
    for chosen in itertools.combinations_with_replacement(among, max(degree, 0)):
        powers = tuple(chosen.count(i) for i in range(n))
        if sum(powers) == degree:
            found.setdefault(powers, None)
    return list(found)


def _relations(
    robot: Robot, terms: Sequence[Term], independent: Sequence[int], dependent: Sequence[int]
) -> tuple[Array, Array]:
    """Lengths (n_sets, n_lengths) and the coefficients they lead to (n_sets, n_independent, n_dependent).

    The first set is a reference, set i + 1 differs from it in length i only, the others are random.
    """
    rng = np.random.default_rng(7)
    n = len(robot.lengths)
    drawn = rng.uniform(0.4, 1.6, (1 + n + _RANDOM_SETS, n))
    drawn[1 : 1 + n] = drawn[0]
    drawn[np.arange(1, 1 + n), np.arange(n)] *= 1.3
    n_sets = len(drawn)
    n_samples = int(np.ceil(1.6 * len(independent) / len(robot.moving))) + 4
    q, dq, ddq = (np.tile(x, (n_sets, 1)).T for x in random_states(robot, n_samples))
    lengths: Mapping[str, Array] = {name: np.repeat(drawn[:, i], n_samples) for i, name in enumerate(robot.lengths)}
    entries = regressor_entries(
        make_state(robot, NUMPY_FUNCTIONS, list(q), list(dq), list(ddq), lengths=lengths), terms
    )
    chosen = [*independent, *dependent]
    place = {column: i for i, column in enumerate(chosen)}
    W = np.zeros((n_sets, n_samples, len(robot.moving), len(chosen)))
    for (row, column), value in entries.items():
        if column in place:
            W[:, :, row, place[column]] = np.broadcast_to(value, (n_sets * n_samples,)).reshape(n_sets, n_samples)
    stacked = W.reshape(n_sets, -1, len(chosen))
    size = np.linalg.norm(stacked, axis=1, keepdims=True)
    size[size == 0.0] = 1.0
    R = np.asarray(np.linalg.qr(stacked / size, mode="r"))
    k = len(independent)
    solution = np.linalg.solve(R[:, :k, :k], R[:, :k, k:])
    return drawn, solution / np.swapaxes(size[:, :, :k], 1, 2) * size[:, :, k:]


def _fit(values: Array, lengths: Array, degree: int) -> dict[Powers, float] | None:
    """Few products of lengths with simple factors that give all values, or None."""
    n = lengths.shape[1]
    size = max(1.0, float(np.abs(values).max()))
    used = [i for i in range(n) if abs(values[1 + i] - values[0]) > _AGREEMENT * size]
    return _product(values, lengths, used) or _sum(values, lengths, used, degree, size)


def _product(values: Array, lengths: Array, used: Sequence[int]) -> dict[Powers, float] | None:
    """One product of whole powers of lengths with a simple factor: a straight line in logarithms."""
    if not (values > 0.0).all() and not (values < 0.0).all():
        return None
    table = np.column_stack([np.ones(len(values)), np.log(lengths[:, used])])
    fitted = np.linalg.lstsq(table, np.log(np.abs(values)), rcond=None)[0]
    powers = tuple(round(float(fitted[1 + used.index(i)])) if i in used else 0 for i in range(lengths.shape[1]))
    factors = values / np.prod(lengths ** np.array(powers, dtype=np.float64), axis=1)
    simple = float(np.round(2.0 * factors[0]) / 2.0)
    return {powers: simple} if simple and np.abs(factors - simple).max() < _AGREEMENT else None


def _sum(values: Array, lengths: Array, used: Sequence[int], degree: int, size: float) -> dict[Powers, float] | None:
    """A sum of few products with simple factors."""
    monomials = _monomials(used, lengths.shape[1], degree)
    if not monomials or len(monomials) > len(values) - _CHECKED:
        return None
    table = np.stack([np.prod(lengths ** np.array(powers), axis=1) for powers in monomials], 1)
    fitted = len(values) - _CHECKED
    factors = np.linalg.lstsq(table[:fitted], values[:fitted], rcond=None)[0]
    rounded = np.round(2.0 * factors) / 2.0
    if not 1 <= np.count_nonzero(rounded) <= _MOST_TERMS:
        return None
    if np.abs(table @ rounded - values).max() > _AGREEMENT * size:
        return None
    return {monomials[i]: float(rounded[i]) for i in np.flatnonzero(rounded)}


def _is_whole(found: Mapping[Powers, float]) -> bool:
    return all(not any(powers) for powers in found)


def _text(found: Mapping[Powers, float], names: Sequence[str]) -> str:
    """Such as `d8^2`, `-d8/d3`, `(d4^2 + RL4^2)`."""
    parts = []
    for powers, factor in found.items():
        above = [name if p == 1 else f"{name}^{p}" for name, p in zip(names, powers, strict=True) if p > 0]
        below = [name if p == -1 else f"{name}^{-p}" for name, p in zip(names, powers, strict=True) if p < 0]
        size = abs(factor)
        numbers = [f"{size:g}"] if size != 1.0 or not above else []
        text = " ".join([*numbers, *above])
        if below:
            text += "/" + (below[0] if len(below) == 1 else f"({' '.join(below)})")
        parts.append(("-" if factor < 0 else "+", text))
    if len(parts) == 1:
        return ("-" if parts[0][0] == "-" else "") + parts[0][1]
    first, *rest = parts
    flip = first[0] == "-"  # the sign of the first part goes outside
    inner = first[1] + "".join(f" {'+' if (sign == '+') != flip else '-'} {text}" for sign, text in rest)
    return ("-" if flip else "") + f"({inner})"
