"""The regressor over base parameters, output by output, and the blocks of rows that pass from logs to factors.

An output (the torque of an actuated coordinate) depends on some of the base columns only. The kernels that fill the
columns and those that triangularize them want the samples of one column next to each other, so arrays between them are
*columns first*: a line per column, samples along it. Names say so; everywhere else samples come first.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from dynident.arrays import Array, Mask, frozen
from dynident.display import brief
from dynident.dynamics.evaluate import regressor
from dynident.dynamics.jit.numpy_kernel import NumpyKernel, chosen_backend
from dynident.dynamics.kernels import BatchKernel, record
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.loop_assembly import Named, solved_positions
from dynident.dynamics.terms import Term, all_columns, along_terms, state_terms
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.errors import InputError
from dynident.identifiability.base import base_parameters, column_scales
from dynident.identifiability.regrouping import Regrouping
from dynident.identifiability.states import random_states
from dynident.robot.model import Robot

Coordinates = Literal["base", "standard"]
_ROUNDING = 1e-12  # entries of the regressor below this share of a typical one are rounding
_MOST_REGRESSORS = 16  # kept in memory


class BaseRegressor:
    """The columns of a robot's regressor that each output depends on; `BaseRegressor.of` makes it.

    Args:
        robot: The robot.
        terms: Terms of the model.
        coordinates: The columns: base parameters, or all standard parameters with an effect.
        definitions: What each standard column means beyond its name.

    Attributes:
        fixed_values: Parameters of fixed value, by name; what they contribute belongs to the right-hand side.
        along: Terms that follow a motion.
        of_state: Terms that a state gives the value of.
        program: Recorded program of the columns of the latter.
        along_places: Output and column of `coordinates` of each line that the terms of `along` give.
        columns: For each output, the columns of `coordinates` that it depends on.
        slots: Line of each entry of the program, and then of each of `along`, where the lines of an output are its
            columns and one right-hand side.
    """

    def __init__(
        self, robot: Robot, terms: tuple[Term, ...], coordinates: Regrouping, definitions: tuple[str, ...]
    ) -> None:
        self.robot, self.terms, self.coordinates, self.definitions = robot, terms, coordinates, definitions
        self.fixed_values = {column.name: column.fixed for column in coordinates.columns if column.fixed}
        self.along, self.of_state = along_terms(terms), state_terms(terms)
        first = len(all_columns(robot, self.of_state))
        independent = [column for column in coordinates.independent if column < first]
        entries = nonzero_entries(robot, self.of_state, independent)
        self.program, places = record(robot, "regressor", self.of_state, entries)
        position = {column: i for i, column in enumerate(coordinates.independent)}
        own = [(output, position[column]) for output, column in places]
        self.along_places = [(output, position[first + column]) for output, column in all_places(robot, self.along)]
        own += self.along_places
        self.columns = tuple(
            tuple(sorted(column for place, column in own if place == output))
            for output in range(len(robot.joint_names))
        )
        starts = np.concatenate([[0], np.cumsum([len(columns) + 1 for columns in self.columns])])
        self.slots = tuple(int(starts[output]) + self.columns[output].index(column) for output, column in own)
        self._output_of_slot = np.array([output for output, _ in own], dtype=int)
        self._n_of_state = len(places)
        self._placed: dict[int, tuple[int, list[int], list[int]]] = {}
        # What a column usually has; nothing is known of those that follow a motion.
        self._scales = np.zeros(coordinates.n)
        self._scales[: len(independent)] = column_scales(robot, coordinates.columns[:first])[independent]

    @staticmethod
    def of(robot: Robot, terms: tuple[Term, ...], coordinates: Coordinates = "base") -> BaseRegressor:
        """The regressor of a robot for these terms, made once."""
        fixed = f"{sorted(robot.fixed.items())} {robot.joint_names} {chosen_backend()}"
        key = (robot.fingerprint, fixed, coordinates, *(term.key for term in terms))
        with _lock:
            made = _regressors.pop(key, None) or _make(robot, terms, coordinates)
            _regressors[key] = made
            if len(_regressors) > _MOST_REGRESSORS:
                _regressors.popitem(last=False)
            return made

    def lines(self, n_right: int = 0) -> list[slice]:
        """Lines of each output in arrays with their columns first, its `n_right` right-hand sides last."""
        ends = np.cumsum([len(own) + n_right for own in self.columns])
        return [slice(int(end) - len(own) - n_right, int(end)) for end, own in zip(ends, self.columns, strict=True)]

    def line_scales(self, n_right: int = 0) -> Array:
        """(n_lines,) what the columns usually have; zero where that is not known, and for right-hand sides."""
        return np.concatenate([np.append(self._scales[list(own)], np.zeros(n_right)) for own in self.columns])

    def course(self, reference: Array | None) -> TermCourse:
        """Begin to follow a motion with the terms that do, around the links of a linearization point."""
        given = None if reference is None else LinearizationPoint(self.robot, reference)
        return TermCourse(self.robot, self.along, given)

    def columns_first_along(
        self, samples: MotionSamples, course: TermCourse, named: Named | None = None, n_right: int = 0
    ) -> Array:
        """The columns that each output depends on, on the next samples of a motion; see `columns_first`."""
        columns = self.columns_first([*samples.q.T, *samples.dq.T, *samples.ddq.T], named, n_right)
        columns[self._places(n_right)[2]] = course.columns_first(samples)
        return columns

    def columns_first(self, inputs: list[Array], named: Named | None = None, n_right: int = 0) -> Array:
        """The columns that each output depends on, output after output as `lines` says, (n_lines, n_samples).

        Columns of terms that follow a motion, and right-hand sides, are left at zero.

        Args:
            inputs: Positions, velocities and accelerations, one (n_samples,) array per joint each.
            named: What to call a sample in a message; default its number.
            n_right: Right-hand sides of each output to leave room for.
        """
        if self.robot.closure is not None:
            positions = np.stack(inputs[: len(self.robot.joint_names)], axis=1)
            inputs = [*inputs, *solved_positions(self.robot, positions, named)]
        n_lines, of_state, _ = self._places(n_right)
        columns = np.zeros((n_lines, len(inputs[0])))
        self._kernel(inputs, columns, of_state)
        return columns

    def bound(self, inputs: Array, out: Array) -> Callable[[], None]:
        """One sample at a time: each call writes its regressor into `out` from what `inputs` holds by then.

        Args:
            inputs: (3 n_joints,) positions, velocities and accelerations, C-contiguous.
            out: (at least n columns, at least n_outputs), C-contiguous; entries that are always zero are left alone.
        """
        entries = [(column, output) for output, own in enumerate(self.columns) for column in own]
        if self.robot.closure is None and chosen_backend() != "numpy":
            from dynident.dynamics.jit.llvm_kernel import LlvmKernel

            own = [entries[line] for line in self._places(0)[1]]
            places = [column * out.shape[1] + output for column, output in own]
            return LlvmKernel(self.program).bound(inputs.reshape(-1, 1), out, places)
        columns, outputs = (list(part) for part in zip(*entries, strict=True))

        def run() -> None:
            out[columns, outputs] = self.columns_first([inputs[i : i + 1] for i in range(len(inputs))])[:, 0]

        return run

    def _places(self, n_right: int) -> tuple[int, list[int], list[int]]:
        """With so many right-hand sides: all lines, those of the program's entries, those of terms along a motion."""
        if n_right not in self._placed:
            placed = np.array(self.slots, dtype=int) + (n_right - 1) * self._output_of_slot
            of_state, along = np.split(placed, [self._n_of_state])
            self._placed[n_right] = self.lines(n_right)[-1].stop, of_state.tolist(), along.tolist()
        return self._placed[n_right]

    @functools.cached_property
    def _kernel(self) -> BatchKernel:
        """The program as a kernel of its own."""
        if chosen_backend() == "numpy":
            return NumpyKernel(self.program)
        from dynident.dynamics.jit.llvm_kernel import LlvmKernel

        return LlvmKernel(self.program)


_regressors: OrderedDict[tuple[str, ...], BaseRegressor] = OrderedDict()
_lock = threading.Lock()


def _make(robot: Robot, terms: tuple[Term, ...], coordinates: Coordinates) -> BaseRegressor:
    if coordinates not in ("base", "standard"):
        raise InputError(f"columns is '{coordinates}'; expected base or standard")
    described = all_columns(robot, terms)
    free = dataclasses.replace(robot, locked={}).fingerprint
    keys = [term.key_on(robot) for term in terms for _ in term.columns(robot)]
    definitions = tuple(
        f"robot {free}, {key}" + ("" if column.fixed is None else f", fixed at {column.fixed!r}")
        for key, column in zip(keys, described, strict=True)
    )
    regrouping: Regrouping = base_parameters(robot, terms)
    if coordinates == "standard":
        effect = [int(j) for j in np.flatnonzero(regrouping.K.any(0))]
        regrouping = Regrouping(described, tuple(effect), frozen(np.eye(len(described))[effect]))
    return BaseRegressor(robot, terms, regrouping, definitions)


def nonzero_entries(robot: Robot, terms: tuple[Term, ...], columns: Sequence[int]) -> set[tuple[int, ...]]:
    """Entries (output, column) of the regressor that are more than rounding: some products cancel only in numbers."""
    scales = column_scales(robot, all_columns(robot, terms))
    W = np.abs(regressor(robot, *random_states(robot, 20), terms)).max(0) / scales
    wanted = set(columns)
    return {(int(output), int(column)) for output, column in np.argwhere(W > _ROUNDING) if column in wanted}


@brief
@dataclass(frozen=True, eq=False)
class RegressorBlock:
    """Rows [W | tau] of one stretch of time, output by output.

    Made for every block of a log from what the filters give: arrays are views and not copied.

    Attributes:
        log: Label of the log they came from.
        segment: Blocks with the same log and number belong to one segment.
        time: (n_rows,) [s]; numbers of the rows where they have no stamps.
        columns: For each output, the k base columns that it depends on.
        columns_first: For each output (k + n_right, n_rows), right-hand sides last: the order of the QR kernel.
        usable: (n_rows, n_outputs), whether estimation uses a row: joint in motion, filters away from gaps.
    """

    log: str
    segment: int
    time: Array
    columns: tuple[tuple[int, ...], ...]
    columns_first: tuple[Array, ...]
    usable: Mask

    def part(self, own: slice, segment: int) -> RegressorBlock:
        """Some rows that follow each other, as part of a segment."""
        lines = tuple(lines[:, own] for lines in self.columns_first)
        return RegressorBlock(self.log, segment, self.time[own], self.columns, lines, self.usable[own])

    def segments(self, numbers: Array) -> Iterator[RegressorBlock]:
        """The block cut where the number of the segment, (n_rows,), changes."""
        edges = [0, *(1 + np.flatnonzero(np.diff(numbers))).tolist(), len(numbers)]
        for first, end in itertools.pairwise(edges):
            yield self.part(slice(first, end), int(numbers[first]))

    def usable_columns_first(self, output: int) -> Array:
        """The usable rows of an output, (k + n_right, n_usable), as a copy."""
        return np.asarray(self.columns_first[output][:, self.usable[:, output]])

    def residual(self, output: int, values: Array) -> Array:
        """First right-hand side minus what base parameter values explain, (n_usable,)."""
        own = list(self.columns[output])
        rows = self.usable_columns_first(output)
        return np.asarray(rows[len(own)] - values[own] @ rows[: len(own)])


class RowSource(Protocol):
    """Data that can be gone through again, row by row: what methods need that weigh every row by its own residual."""

    @property
    def coordinates(self) -> Regrouping:
        """What the columns are."""
        ...

    @property
    def definitions(self) -> tuple[str, ...]:
        """What each standard column means beyond its name."""
        ...

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the outputs."""
        ...

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows, in order, in bounded memory."""
        ...
