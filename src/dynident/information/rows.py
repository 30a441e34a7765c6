"""Rows that somebody else made, as an `Information`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import frozen
from dynident.dynamics.terms import Column
from dynident.errors import InputError
from dynident.identifiability.regrouping import Regrouping
from dynident.information.absorb import absorb
from dynident.information.factor import Factor
from dynident.information.information import Information, Segment
from dynident.information.observation_model import GIVEN_BLOCK

_LARGEST = 1e140  # squares of larger numbers overflow


def accumulate_rows(
    W: ArrayLike,
    tau: ArrayLike,
    coordinates: Regrouping | Sequence[str],
    *,
    channels: Sequence[str] | None = None,
    definitions: Sequence[str] | None = None,
    label: str = "data",
) -> Information:
    """The information of rows that somebody else made: filtered, decimated, energy, or any linear model.

    Args:
        W: (n_samples, n_channels, n): the rows over the base columns of `coordinates`.
        tau: (n_samples, n_channels): the right-hand side.
        coordinates: What the columns are: a robot's regrouping, or plain names.
        channels: Names of the output channels; default 1, 2, ...
        definitions: What each standard column means beyond its name; default "given".
        label: Where the data came from.

    Rows that are zero throughout (masked out) do not count as data.

    Raises:
        InputError: Naming sample and channel when a number is not finite.
    """
    if not isinstance(coordinates, Regrouping):
        coordinates = _unique(coordinates, "column")
        plain = tuple(Column(name, "", name, "", "given", "given column") for name in coordinates)
        coordinates = Regrouping(plain, tuple(range(len(plain))), frozen(np.eye(len(plain))))
    rows, right = np.asarray(W, dtype=np.float64), np.asarray(tau, dtype=np.float64)
    if rows.ndim != 3 or rows.shape[2] != coordinates.n or right.shape != rows.shape[:2]:
        raise InputError(
            f"W must have shape (n_samples, n_channels, {coordinates.n}) and tau (n_samples, n_channels); "
            f"got {rows.shape} and {right.shape}"
        )
    names = _unique(channels if channels is not None else [str(i + 1) for i in range(rows.shape[1])], "channel")
    if len(names) != rows.shape[1] or len(rows) == 0:
        raise InputError(f"{len(names)} channel names do not fit {rows.shape[1]} channels with {len(rows)} samples")
    for array, what in ((rows, "W"), (right, "tau")):
        if not np.isfinite(array).all():
            sample, channel = np.argwhere(~np.isfinite(array))[0][:2]
            raise InputError(f"{what} is not finite at sample {sample}, channel {names[channel]}")
        size = np.abs(array)
        if size.max() > _LARGEST or size[size > 0.0].min(initial=1.0) < 1.0 / _LARGEST:
            raise InputError(
                f"{what} has numbers beyond {_LARGEST:g} or below its inverse, whose squares are lost; rescale"
            )
    factors = []
    for channel in range(rows.shape[1]):
        felt = tuple(int(j) for j in np.flatnonzero(rows[:, channel].any(0)))
        R = np.zeros((len(felt) + 1, len(felt) + 1))
        for start in range(0, len(rows), GIVEN_BLOCK):
            part = slice(start, start + GIVEN_BLOCK)
            absorb(R, np.vstack([rows[part, channel][:, felt].T, right[part, channel]]))
        silent = ~rows[:, channel].any(1) & (right[:, channel] == 0.0)
        factors.append(Factor(felt, np.triu(R), len(rows) - int(silent.sum())))
    meaning = tuple(definitions) if definitions is not None else ("given",) * len(coordinates.columns)
    if len(meaning) != len(coordinates.columns):
        raise InputError(f"{len(meaning)} definitions do not fit {len(coordinates.columns)} standard columns")
    return Information(coordinates, meaning, names, (Segment(label, tuple(factors)),))


def _unique(names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names, each once."""
    listed = tuple(names)
    for name in listed:
        if listed.count(name) > 1:
            raise InputError(f"{what} '{name}' is named twice")
    return listed
