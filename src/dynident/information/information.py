"""`Information`: everything a data set says about a robot's parameters, in kilobytes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, frozen
from dynident.display import brief
from dynident.dynamics.terms import Column
from dynident.errors import DynidentError, InputError, UnknownNameError
from dynident.identifiability.regrouping import Regrouping, select_columns, without_rounding
from dynident.information.factor import Factor, factor_of, merge_factors, triangular

if TYPE_CHECKING:
    from dynident.information.parameter_estimate import ParameterEstimate


class MergeError(DynidentError):
    """Factors that speak of different things."""


@brief
@dataclass(frozen=True)
class Segment:
    """A stretch of data: one factor per channel.

    Attributes:
        label: Where it came from.
        factors: In the order of the channels.
        span: Time of its first and of its last row [s]; not known where rows have no stamps.
    """

    label: str
    factors: tuple[Factor, ...]
    span: tuple[float, float] | None = None


@dataclass(frozen=True)
class Information:
    """Square-root information of a data set, exact and mergeable.

    Attributes:
        coordinates: The base columns the factors are written in, and their relation K to standard parameters.
        definitions: What each standard column means, beyond its name: robot and term options. Columns that share a name
            but not a definition never mix.
        channels: Names of the output channels (joints, or energy).
        segments: Stretches of data, kept apart for cross-validation and for covariances that allow for correlation.
    """

    coordinates: Regrouping
    definitions: tuple[str, ...]
    channels: tuple[str, ...]
    segments: tuple[Segment, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.coordinates.names

    @property
    def n_rows(self) -> float:
        """Rows (equations) behind the factors."""
        return sum(factor.n_rows for segment in self.segments for factor in segment.factors)

    @functools.cached_property
    def _channel_factors(self) -> tuple[Factor, ...]:
        stacked = zip(*(segment.factors for segment in self.segments), strict=True)
        return tuple(merge_factors(factors) for factors in stacked)

    def channel_factors(self) -> tuple[Factor, ...]:
        """One factor per channel over all segments."""
        return self._channel_factors

    def __getstate__(self) -> dict[str, object]:
        """What is copied and pickled: the fields, and nothing worked out from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def solve(self, **options: Any) -> ParameterEstimate:
        """Least-squares solution with standard deviations; see `solution.solve` for the options."""
        from dynident.information.solution import solve

        return solve(self, **options)

    # Sets of data.

    def __add__(self, other: Information) -> Information:
        """The two data sets together. Columns are matched by name; a column that one lacks is zero there."""
        if not isinstance(other, Information):
            return NotImplemented
        first, second = common(self, other)
        channels = (*first.channels, *(name for name in second.channels if name not in first.channels))
        segments = [
            replace(segment, factors=tuple(_for_channels(segment, part.channels, channels)))
            for part in (first, second)
            for segment in part.segments
        ]
        return replace(first, channels=channels, segments=tuple(segments))

    def __radd__(self, other: object) -> Information:
        """So that `sum` works: zero plus information is the information."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        """A line, not the numbers."""
        rows, parts = f"{self.n_rows:g} rows", f"{len(self.segments)} segments"
        return f"Information({self.coordinates.n} base parameters, {', '.join(self.channels)}, {rows}, {parts})"

    def joined(self) -> Information:
        """The same data as one segment."""
        label = self.segments[0].label if len(self.segments) == 1 else f"{len(self.segments)} segments"
        return replace(self, segments=(Segment(label, self.channel_factors()),))

    def select(self, wanted: Iterable[int]) -> Information:
        """Only the segments with these indices."""
        indices = list(wanted)
        n = len(self.segments)
        if not indices:
            raise InputError("no segment is left")
        if not all(0 <= i < n for i in indices):
            raise InputError(f"segments {indices} are not all among 0 .. {n - 1}")
        kept = tuple(self.segments[i] for i in indices)
        return replace(self, segments=kept)

    def without(self, left_out: Iterable[int]) -> Information:
        """All but the segments with these indices, for cross-validation."""
        gone = set(left_out)
        return self.select(i for i in range(len(self.segments)) if i not in gone)

    def outputs(self, channels: str | Iterable[str]) -> Information:
        """Only some output channels (rows) of the data; a single name is that one channel."""
        wanted = (channels,) if isinstance(channels, str) else tuple(channels)
        if not wanted:
            raise InputError(f"no output channel is left; expected some of {', '.join(self.channels)}")
        for name in wanted:
            if name not in self.channels:
                raise UnknownNameError("channel", name, self.channels)
        places = [self.channels.index(name) for name in wanted]
        segments = tuple(replace(s, factors=tuple(s.factors[i] for i in places)) for s in self.segments)
        return replace(self, channels=wanted, segments=segments)

    def forget(self, share: float) -> Information:
        """Older data counts `share` as much from now on (0 < share <= 1)."""
        if not 0.0 < share <= 1.0:
            raise InputError(f"a forgetting factor lies in (0, 1]; got {share}")
        return self._each(lambda f: Factor(f.columns, f.R * np.sqrt(share), f.n_rows * share))

    def weighted(self, weights: Mapping[str, float] | Sequence[float]) -> Information:
        """Every row of a channel multiplied by the square root of the channel's weight."""
        if isinstance(weights, Mapping):
            for name in weights:
                if name not in self.channels:
                    raise UnknownNameError("channel", name, self.channels)
            weights = [weights.get(name, 1.0) for name in self.channels]
        if len(weights) != len(self.channels) or not all(0.0 <= w < np.inf for w in weights):
            raise InputError(f"give one weight, finite and not negative, for each of {', '.join(self.channels)}")

        def scaled(factor: Factor, weight: float) -> Factor:
            return Factor(factor.columns, factor.R * np.sqrt(weight), factor.n_rows if weight else 0.0)

        segments = tuple(
            replace(s, factors=tuple(scaled(f, w) for f, w in zip(s.factors, weights, strict=True)))
            for s in self.segments
        )
        return replace(self, segments=segments)

    # Coordinates.

    def restrict(self, names: Iterable[str]) -> Information:
        """Only the base parameters given; the others are taken as zero."""
        wanted = list(names)
        for name in wanted:
            if name not in self.names:
                raise UnknownNameError("base parameter", name, self.names)
        kept = [i for i, name in enumerate(self.names) if name in set(wanted)]
        old = self.coordinates
        coordinates = Regrouping(old.columns, tuple(old.independent[i] for i in kept), frozen(old.K[kept]))
        place = {i: new for new, i in enumerate(kept)}

        def drop(factor: Factor) -> Factor:
            columns = [c for c in factor.columns if c in place]
            picked = [j for j, c in enumerate(factor.columns) if c in place] + [len(factor.columns)]
            narrow = factor_of(factor.R[:, picked], range(len(columns)), factor.n_rows)
            return Factor(tuple(place[c] for c in columns), narrow.R, factor.n_rows)

        return replace(self, coordinates=coordinates)._each(drop)

    def reordered(self, places: Sequence[int], coordinates: Regrouping, definitions: tuple[str, ...]) -> Information:
        """Only some base parameters, in another order; the others are taken as zero.

        Args:
            places: For each parameter that is wanted, its place among those of this data.
            coordinates: What they are.
            definitions: What each of their standard columns means.
        """
        matrix = np.zeros((self.coordinates.n, len(places)))
        matrix[list(places), range(len(places))] = 1.0
        return self._mapped(matrix, coordinates, definitions)

    def marginal(self, names: Iterable[str]) -> Information:
        """What the data says about some base parameters whatever the others are; channel by channel."""
        wanted = set(names)
        own = {i for i, name in enumerate(self.names) if name in wanted}

        def clear(factor: Factor) -> Factor:
            gone = [j for j, c in enumerate(factor.columns) if c not in own]
            kept = [j for j, c in enumerate(factor.columns) if c in own]
            turned = triangular(factor.R[:, [*gone, *kept, len(factor.columns)]])
            # Below the lines of the columns that go stands what they leave; the columns themselves are then silent.
            rest = np.zeros((len(factor.columns) + 1,) * 2)
            rest[: len(kept) + 1, [*kept, len(factor.columns)]] = turned[len(gone) :, len(gone) :]
            return Factor(factor.columns, rest, factor.n_rows)

        return self._each(clear).restrict([name for name in self.names if name in wanted])

    def known(self, values: Mapping[str, float]) -> Information:
        """Standard parameters with known values, moved to the right-hand side and no longer unknown."""
        standard = [column.name for column in self.coordinates.columns]
        for name in values:
            if name not in standard:
                raise UnknownNameError("standard parameter", name, standard)
            if self.coordinates.columns[standard.index(name)].fixed is not None:
                raise InputError(f"{name} is fixed in the robot file already; its value was used when accumulating")
            if isinstance(values[name], str) or not np.isfinite(values[name]):
                raise InputError(f"the known value of {name} is {values[name]!r}; expected a finite number")
        given = np.array([values.get(name, 0.0) for name in standard])
        shift = self.coordinates.K @ given
        rest = [j for j, name in enumerate(standard) if name not in values]
        moved = self._each(lambda factor: _shift_factor(factor, shift))
        columns = tuple(self.coordinates.columns[j] for j in rest)
        definitions = tuple(self.definitions[j] for j in rest)
        return moved._rebased(self.coordinates.K[:, rest], columns, definitions)

    def around(self, beta: ArrayLike) -> Information:
        """The rows around given base values (n,): y - W beta instead of y, so that corrections remain to be found."""
        shift = np.asarray(beta, dtype=np.float64)
        if shift.shape != (self.coordinates.n,) or not np.isfinite(shift).all():
            raise InputError(f"beta must be {self.coordinates.n} finite values, one per base parameter")
        return self._each(lambda factor: _shift_factor(factor, shift))

    def settled(self, values: Mapping[str, float]) -> Information:
        """Base parameters with known values, moved to the right-hand side and no longer unknown."""
        for name, value in values.items():
            if name not in self.names:
                raise UnknownNameError("base parameter", name, self.names)
            if isinstance(value, str) or not np.isfinite(value):
                raise InputError(f"the known value of {name} is {value!r}; expected a finite number")
        shift = np.array([values.get(name, 0.0) for name in self.names])
        rest = [name for name in self.names if name not in values]
        return self._each(lambda factor: _shift_factor(factor, shift)).restrict(rest)

    def over(self, target: Information) -> Information:
        """The same data over the base parameters of `target`, which must tell all that this data can see.

        Raises:
            MergeError: When it does not, or when columns of one name mean different things.
        """
        columns, _ = _union(target, self)
        own, wanted = (part.coordinates for part in (self, target))
        if _same_coordinates(target, self):
            return self
        place = {column.name: j for j, column in enumerate(columns)}
        K = np.zeros((own.n, len(columns)))
        K[:, [place[column.name] for column in own.columns]] = own.K
        matrix = without_rounding(K[:, list(wanted.independent)])  # the columns of the target come first
        missed = K.copy()
        missed[:, : len(wanted.columns)] -= matrix @ wanted.K
        size = np.maximum(np.abs(K).max(1, initial=1e-300), 1e-300)
        if (np.abs(missed).max(1, initial=0.0) > 1e-8 * size).any():
            row = int(np.argmax(np.abs(missed).max(1, initial=0.0) / size))
            raise MergeError(
                f"{own.names[row]} is no combination of the base parameters asked for; add the two instead"
            )
        return self._mapped(matrix, wanted, target.definitions)

    def standard_rows(self) -> list[Array]:
        """For each channel, R K and z over the standard parameters, (k + 1, n_standard + 1)."""
        K, n = self.coordinates.K, self.coordinates.n
        dense = [factor.dense(n) for factor in self.channel_factors()]
        return [np.column_stack([rows[:, :n] @ K, rows[:, n]]) for rows in dense]

    def transformed(self, matrix: Array, names: Sequence[str], units: Sequence[str] | None = None) -> Information:
        """The factors in other coordinates: beta = matrix @ new.

        Args:
            matrix: (n, n_new).
            names: Names of the new coordinates.
            units: Their units; default none.
        """
        matrix = np.asarray(matrix, dtype=np.float64)
        if len(set(names)) != len(names):
            raise InputError("the new coordinates must have different names")
        if matrix.shape != (self.coordinates.n, len(names)):
            raise InputError(f"matrix must have shape ({self.coordinates.n}, {len(names)}); got {matrix.shape}")
        units = [""] * len(names) if units is None else list(units)
        columns = tuple(
            Column(name, unit, name, "", "given", "given coordinate") for name, unit in zip(names, units, strict=True)
        )
        identity = Regrouping(columns, tuple(range(len(names))), np.eye(len(names)))
        return self._mapped(matrix, identity, ("given",) * len(names))

    def _each(self, change: Callable[[Factor], Factor]) -> Information:
        segments = tuple(replace(s, factors=tuple(change(f) for f in s.factors)) for s in self.segments)
        return replace(self, segments=segments)

    def _rebased(self, K: Array, columns: tuple[Column, ...], definitions: tuple[str, ...]) -> Information:
        """The factors over the base of K's row space: R K = (R K[:, pivots]) K_new."""
        coordinates = _row_space(K, columns)
        return self._mapped(K[:, list(coordinates.independent)], coordinates, definitions)

    def _mapped(self, matrix: Array, coordinates: Regrouping, definitions: tuple[str, ...]) -> Information:
        def change(factor: Factor) -> Factor:
            part = matrix[list(factor.columns)]
            used = [int(j) for j in np.flatnonzero(np.abs(part).max(0, initial=0.0) > 0.0)]
            rows = np.column_stack([factor.R[:, :-1] @ part[:, used], factor.R[:, -1]])
            return Factor(tuple(used), factor_of(rows, range(len(used)), factor.n_rows).R, factor.n_rows)

        return replace(self, coordinates=coordinates, definitions=definitions)._each(change)

    # Files.

    def save(self, path: str | Path) -> None:
        """Write the information as plain data (.npz); see `load_information`."""
        from dynident.information.storage import save

        save(self, path)


def common(first: Information, second: Information) -> tuple[Information, Information]:
    """Both in one set of coordinates: those of the union of what each can see."""
    columns, definitions = _union(first, second)
    if _same_coordinates(first, second):
        return first, second
    place = {column.name: j for j, column in enumerate(columns)}
    rows = []
    for part in (first, second):
        K = np.zeros((part.coordinates.n, len(columns)))
        K[:, [place[column.name] for column in part.coordinates.columns]] = part.coordinates.K
        rows.append(K)
    coordinates = _row_space(np.vstack(rows), columns)
    pivots = list(coordinates.independent)
    first_new, second_new = (
        part._mapped(own[:, pivots], coordinates, definitions) for part, own in zip((first, second), rows, strict=True)
    )
    return first_new, second_new


def _row_space(K: Array, columns: tuple[Column, ...]) -> Regrouping:
    """The base of what the rows of K can see: columns chosen from the left, the others written over them."""
    size = np.linalg.norm(K, axis=0)
    pivots, _, _ = select_columns(K, [int(j) for j in np.flatnonzero(size > 1e-12)], 1e-9)
    over = np.asarray(np.linalg.lstsq(K[:, pivots], K, rcond=None)[0], dtype=np.float64)
    return Regrouping(columns, tuple(pivots), frozen(without_rounding(over)))


def _same_coordinates(first: Information, second: Information) -> bool:
    a, b = first.coordinates, second.coordinates
    names = [column.name for column in a.columns]
    return (
        names == [column.name for column in b.columns]
        and a.independent == b.independent
        and bool(np.array_equal(a.K, b.K))
    )


def _union(first: Information, second: Information) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Standard columns of both; a name with two definitions is refused."""
    known: dict[str, tuple[Column, str]] = {}
    for part in (first, second):
        for column, definition in zip(part.coordinates.columns, part.definitions, strict=True):
            if column.name in known and known[column.name][1] != definition:
                raise MergeError(
                    f"column {column.name} means different things in the two factors ({known[column.name][1]} and "
                    f"{definition}); accumulate both with the same robot and the same term options"
                )
            known.setdefault(column.name, (column, definition))
    return tuple(column for column, _ in known.values()), tuple(text for _, text in known.values())


def _for_channels(segment: Segment, own: tuple[str, ...], wanted: tuple[str, ...]) -> Iterable[Factor]:
    for name in wanted:
        yield segment.factors[own.index(name)] if name in own else Factor((), np.zeros((1, 1)), 0.0)


def _shift_factor(factor: Factor, beta: Array) -> Factor:
    """y - W beta instead of y."""
    R = factor.R.copy()
    R[:, -1] = R[:, -1] - R[:, :-1] @ beta[list(factor.columns)]
    return Factor(factor.columns, R, factor.n_rows)
