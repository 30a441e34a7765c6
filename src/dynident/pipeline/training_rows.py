"""`TrainingRows`: equations of the training logs over any base parameters, each made in as few passes as can be.

A pass filters the logs and compresses their equations into factors. Factors over more parameters answer for fewer, so a
pass over all candidate terms serves every model among them; the equations of a pass are kept while there is room.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms import along_terms
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.estimate.leveled_data import FoundLevels, LeveledRows
from dynident.estimate.linearization import fit_linearized, needs_linearization, without_linearized
from dynident.identifiability.base import BaseParameters, base_parameters
from dynident.identifiability.base_regressor import RegressorBlock
from dynident.identifiability.regrouping import Regrouping
from dynident.information.information import Information
from dynident.information.solution import dense_channels
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.options import Progress
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.observations import Observations
from dynident.signals.rows import MOVING, ObservedRows, RowRule

KEPT_BYTES = 24e6  # of equations kept for the next question


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Equations of a pass, over some of its base parameters.

    Attributes:
        kept: The blocks, in order.
        coordinates: The base parameters.
        definitions: What each standard column means.
        channels: Names of the outputs.
        places: For each parameter, its place among those of the pass.
    """

    kept: tuple[RegressorBlock, ...]
    coordinates: Regrouping
    definitions: tuple[str, ...]
    channels: tuple[str, ...]
    places: tuple[int, ...]

    def of_logs(self, labels: Container[str]) -> KeptRows:
        """The rows of some logs alone."""
        return replace(self, kept=tuple(block for block in self.kept if block.log in labels))

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order."""
        if self.places == tuple(range(len(self.places))) and self._whole:
            yield from self.kept
            return
        new = {old: place for place, old in enumerate(self.places)}
        for block in self.kept:
            wanted = [sorted((new[old], line) for line, old in enumerate(own) if old in new) for own in block.columns]
            lines = [
                part[[*(line for _, line in own), *range(len(columns), len(part))]]
                for own, columns, part in zip(wanted, block.columns, block.columns_first, strict=True)
            ]
            columns = tuple(tuple(place for place, _ in own) for own in wanted)
            yield replace(block, columns=columns, columns_first=tuple(lines))

    @property
    def _whole(self) -> bool:
        return all(max(own, default=-1) < len(self.places) for block in self.kept[:1] for own in block.columns)


@dataclass(eq=False)
class _Pass:
    """One pass over the logs.

    Attributes:
        base: Base parameters of all columns.
        point: What some terms are linearized around; None without such terms.
        seconds: Length of the part of each log that was used [s].
        rule: Which rows.
        information: Factors.
        blocks: The equations; None where they were too many, or where the factors came from a file.
    """

    base: BaseParameters
    point: Array | None
    seconds: float
    rule: RowRule
    information: Information
    blocks: list[RegressorBlock] | None = field(default=None)

    def places(
        self, base: BaseParameters, point: Array | None, seconds: float, rule: RowRule
    ) -> tuple[int, ...] | None:
        """Where each parameter of `base` stands among those of the pass; None where the pass does not answer for it."""
        if seconds != self.seconds or rule != self.rule:
            return None
        if rule.columns and not {term.key for term in base.terms} <= {term.key for term in self.base.terms}:
            return None  # columns of rules stand where the model has those of its widths
        wanted = point if needs_linearization(base.terms) else self.point
        if not (
            wanted is self.point or (wanted is not None and self.point is not None and (wanted == self.point).all())
        ):
            return None
        names = {name: i for i, name in enumerate(self.base.names)}
        if not all(name in names for name in base.names):
            return None
        own = {_column_key(self.base, j): j for j in range(len(self.base.columns))}
        keys = [_column_key(base, j) for j in range(len(base.columns))]
        if not all(key in own for key in keys):
            return None
        found = tuple(names[name] for name in base.names)
        K = self.base.K[list(found)]
        shared = [own[key] for key in keys]
        others = np.delete(K, shared, axis=1)
        beside = range(self.base.n, self.base.n + len(rule.columns))
        same = np.allclose(K[:, shared], base.K, rtol=0.0, atol=1e-12) and not others.any()
        return (*found, *beside) if same else None


def _column_key(base: BaseParameters, column: int) -> tuple[str, float | None]:
    own = base.columns[column]
    return own.name, own.fixed


class TrainingRows:
    """Equations of the training logs, filtered in one way.

    Args:
        observations: The training logs.
        cache: Factors of finished logs.
        progress: Called with what is being done, and how much of it is done.
        levels: What viscous friction differs by between the logs, which is taken out; None for nothing.

    Attributes:
        n_passes: Passes that were made over the logs.
    """

    def __init__(
        self,
        observations: tuple[Observations, ...],
        cache: FactorCache,
        progress: Progress,
        levels: FoundLevels | None = None,
    ) -> None:
        self.observations, self._cache, self._progress, self.levels = observations, cache, progress, levels
        self.n_passes = 0
        self._passes: list[_Pass] = []
        self._fits: dict[tuple[object, ...], tuple[Estimator, Array | None]] = {}

    def with_levels(self, levels: FoundLevels | None) -> TrainingRows:
        """The same equations, of passes made so far too, with the levels of friction taken out or left in."""
        rows = copy.copy(self)
        rows.levels, rows._fits = levels, {}
        return rows

    # Data over any base parameters (`LinearizedData`).

    def information(
        self,
        base: BaseParameters,
        point: Array | None = None,
        seconds: float = math.inf,
        rule: RowRule = MOVING,
    ) -> Information:
        """Factors of the equations; those of a pass over more parameters are restricted.

        Args:
            base: Base parameters.
            point: (10 n_links,) what some terms are linearized around; None without such terms.
            seconds: Length of the part of each log that is used [s].
            rule: Which rows; what it wants beside the columns of the model is in the factors too.
        """
        seconds = self._length(seconds)
        source = ObservedRows(self.observations, base, point, seconds, rule=rule)
        own, places = self._answering(base, point, seconds, rule)
        if own is None:
            own, places = self._pass(base, point, seconds, rule), tuple(range(base.n))
        found = own.information
        if own.base is not base:
            found = found.reordered(places, source.coordinates, source.definitions)
        return found if self.levels is None else self.levels.taken_out(found)

    def rows(
        self,
        base: BaseParameters,
        point: Array | None = None,
        seconds: float = math.inf,
        rule: RowRule = MOVING,
    ) -> KeptRows | ObservedRows | LeveledRows:
        """The equations themselves, kept or filtered again; see `information`."""
        found = self._rows(base, point, seconds, rule)
        return found if self.levels is None else LeveledRows(found, self.levels.levels)

    def _rows(
        self, base: BaseParameters, point: Array | None, seconds: float, rule: RowRule
    ) -> KeptRows | ObservedRows:
        seconds = self._length(seconds)
        source = ObservedRows(self.observations, base, point, seconds, rule=rule)
        for own in reversed(self._passes):
            places = own.places(base, point, seconds, rule) if own.blocks is not None else None
            if places is not None and own.blocks is not None:
                places = places if own.base is not base else tuple(range(source.coordinates.n))
                return KeptRows(tuple(own.blocks), source.coordinates, source.definitions, source.channels, places)
        return source

    # What the steps of the pipeline ask for.

    def fit(self, base: BaseParameters, estimator: Estimator) -> tuple[Estimator, Array | None]:
        """Fit a model to all rows; its point is found on the part that models are selected on. Made once.

        Returns:
            The fitted estimator and its linearization point; None without terms that need one.

        Raises:
            InputError: When all rows together give too few equations in motion for the parameters.
        """
        key = (tuple(term.key for term in base.terms), base.names, repr(estimator))
        if key not in self._fits:
            self._check_equations(base)
            self._fits[key] = self._fit(base, estimator)
        return self._fits[key]

    def _fit(self, base: BaseParameters, estimator: Estimator) -> tuple[Estimator, Array | None]:
        if not needs_linearization(base.terms):
            return fit_linearized(self, base, estimator)
        first = FirstMinutes(self)
        fitted, point = fit_linearized(first, base, estimator)
        if math.isinf(self._length(THRESHOLDS.selection_s)):
            return fitted, point
        data = self.rows(base, point) if estimator.needs_rows else self.information(base, point)
        return estimator.clone().fit(data), point

    def _check_equations(self, base: BaseParameters) -> None:
        """Refuse fewer equations than a fit needs; all parameters share them that the motion shows anything of."""
        first = base_parameters(base.robot, without_linearized(base.terms)) if needs_linearization(base.terms) else base
        found = self.information(first, seconds=THRESHOLDS.selection_s)
        if found.n_rows >= ENOUGH.min_equations * base.n:
            return
        found = self.information(first)
        shown = _n_shown(found) + base.n - first.n
        if found.n_rows < ENOUGH.min_equations * shown:
            names = ", ".join(one.log.label for one in self.observations)
            raise InputError(
                f"{names}: gives {found.n_rows:g} equations in motion for {shown} parameters; at least "
                f"{ENOUGH.min_equations} per parameter are needed: use longer logs or fewer terms"
            )

    def _length(self, seconds: float) -> float:
        """The same length, infinite where it is that of the whole logs."""
        longest = max(one.survey.duration for one in self.observations)
        return seconds if seconds < longest else math.inf

    def _answering(
        self, base: BaseParameters, point: Array | None, seconds: float, rule: RowRule
    ) -> tuple[_Pass | None, tuple[int, ...]]:
        for own in reversed(self._passes):
            places = own.places(base, point, seconds, rule)
            if places is not None:
                return own, places
        return None, ()

    def _pass(self, base: BaseParameters, point: Array | None, seconds: float, rule: RowRule) -> _Pass:
        """Go through the logs."""
        self.n_passes += 1
        for before in self._passes:
            before.blocks = None  # the newest pass is the one that is asked for its equations
        kept: list[RegressorBlock] | None = []
        parts, size = [], 0.0
        for number, one in enumerate(self.observations):
            self._progress("gathering equations", number, len(self.observations))
            source = _Remembering(ObservedRows((one,), base, point, seconds, rule=rule), KEPT_BYTES - size)
            parts.append(self._cache.factor_of(source.rows, source, keep=math.isinf(seconds) and _worth_a_file(rule)))
            size += source.size
            kept = None if kept is None or source.kept is None else [*kept, *source.kept]
        self._progress("gathering equations", len(self.observations), len(self.observations))
        point = point if any(term.needs_linearization_point for term in along_terms(base.terms)) else None
        self._passes.append(_Pass(base, point, seconds, rule, sum(parts[1:], start=parts[0]), kept or None))
        return self._passes[-1]


def _n_shown(information: Information) -> int:
    """How many directions of the parameters the motion shows: joints that are held need no equations."""
    rows = np.vstack(dense_channels(information)[0])[:, :-1]
    size = np.linalg.norm(rows, axis=0)
    singular = np.linalg.svd(rows[:, size > 0.0] / size[size > 0.0], compute_uv=False)
    return int(np.sum(singular > ENOUGH.noisy_rank * singular.max(initial=0.0)))


def _worth_a_file(rule: RowRule) -> bool:
    """Whether factors may serve a later run: those of a search do not."""
    return all(column.slope for column in rule.coulomb)


@dataclass(frozen=True, eq=False)
class FirstMinutes:
    """The part of the training rows that models are selected on."""

    training: TrainingRows

    def information(self, base: BaseParameters, point: Array | None = None) -> Information:
        """Factors."""
        return self.training.information(base, point, THRESHOLDS.selection_s)

    def rows(self, base: BaseParameters, point: Array | None = None) -> KeptRows | ObservedRows | LeveledRows:
        """Equations."""
        return self.training.rows(base, point, THRESHOLDS.selection_s)


class _Remembering:
    """Rows of a log that are kept while they pass, as long as there is room."""

    def __init__(self, rows: ObservedRows, room: float) -> None:
        self.rows, self._room = rows, room
        self.coordinates, self.definitions, self.channels = rows.coordinates, rows.definitions, rows.channels
        self.kept: list[RegressorBlock] | None = None  # until they have been gone through
        self.size = 0.0

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order."""
        kept: list[RegressorBlock] | None = []
        for block in self.rows.blocks():
            self.size += sum(part.nbytes for part in block.columns_first)
            kept = None if kept is None or self.size > self._room else [*kept, block]
            yield block
        self.kept = kept
