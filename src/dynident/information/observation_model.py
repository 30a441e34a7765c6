"""What is common to all samples of a robot: which columns each channel feels, and the kernels that make them."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from dynident.arrays import Array, frozen
from dynident.dynamics.along import Course, Reference, Samples, all_places
from dynident.dynamics.assembly import Named, by_number, solved_positions
from dynident.dynamics.backend import chosen_backend
from dynident.dynamics.evaluate import inverse_dynamics, regressor
from dynident.dynamics.kernels import Kernel, record
from dynident.dynamics.numpy_backend import NumpyKernel
from dynident.dynamics.program import Program
from dynident.dynamics.terms import Term, all_columns, along_terms, state_terms
from dynident.errors import InputError
from dynident.identifiability.base import base_parameters, column_scales
from dynident.identifiability.regrouping import Regrouping
from dynident.identifiability.states import random_states
from dynident.information.absorb import absorb
from dynident.information.factor import Factor
from dynident.information.information import Information, Segment
from dynident.information.layout import Layout
from dynident.information.numpy_stream import NumpyStream
from dynident.robot.model import Robot

GIVEN_BLOCK = 4096  # samples per block when given columns stand beside the kernel's
_ROUNDING = 1e-12  # entries of the regressor below this share of a typical one are rounding


class Accumulator(Protocol):
    """Turns samples into the factors of a layout."""

    def absorb(self, inputs: list[Array], taus: list[Array], weights: list[Array] | None, factors: Array) -> bool:
        """Absorb samples into the factors; False if a number was not finite."""
        ...


class ObservationModel:
    """What is common to all samples of one robot, term set and choice of columns."""

    def __init__(self, robot: Robot, terms: tuple[Term, ...], coordinates: Regrouping, definitions: tuple[str, ...]):
        self.robot, self.terms, self.coordinates, self.definitions = robot, terms, coordinates, definitions
        self.known = {column.name: column.fixed for column in coordinates.columns if column.fixed}
        self.along, self.of_state = along_terms(terms), state_terms(terms)
        first = len(all_columns(robot, self.of_state))
        independent = [column for column in coordinates.independent if column < first]
        self.program, places = record(robot, "regressor", self.of_state, felt_places(robot, self.of_state, independent))
        position = {column: i for i, column in enumerate(coordinates.independent)}
        own = [(channel, position[column]) for channel, column in places]
        own += [(row, position[first + column]) for row, column in all_places(robot, self.along)]
        self.layout = Layout.of(tuple(own), len(robot.joint_names))
        # What the felt columns usually have, in their order; nothing is known of those that follow a motion.
        scales = np.zeros(coordinates.n)
        scales[: len(independent)] = column_scales(robot, coordinates.columns[:first])[independent]
        self.felt_scales = np.concatenate([scales[list(felt)] for felt in self.layout.columns])
        # In a slab a line for the torque follows each channel's columns; without torque the lines move together.
        felt = [slot - channel for slot, (channel, _) in zip(self.layout.slots, own, strict=True)]
        self._felt, self._felt_along = felt[: len(places)], felt[len(places) :]

    def segment(self, arrays: list[Array], roots: Array | None, label: str, offset: int = 0) -> Segment:
        """The factors of a stretch of samples.

        Args:
            arrays: q, dq, ddq, tau.
            roots: Square roots of the rows' weights, or None.
            label: Where the samples came from.
            offset: Number of the first sample, for messages.
        """
        arrays = self._without_known(arrays, offset)
        if self.along:
            raise self.along[0].no_state()
        factors = self.layout.empty()
        inputs = [column for array in arrays[:3] for column in array.T]
        inputs += solved_positions(self.robot, arrays[0], by_number(offset))
        weights = None if roots is None else list(roots.T)
        fine = self._stream.absorb(inputs, list(arrays[3].T), weights, factors)
        if not fine or not np.isfinite(factors).all():
            raise not_finite(self.robot, arrays, offset)
        return self._segment(label, self.layout.columns, self.layout.split(factors), roots, len(arrays[0]))

    def course(self, reference: Array | None) -> Course:
        """Begin to follow a motion with the terms that do, around the links of a reference."""
        given = None if reference is None else Reference(self.robot, reference)
        return Course(self.robot, self.along, given)

    def columns_along(self, samples: Samples, course: Course, named: Named | None = None) -> Array:
        """The columns that each channel feels on the next samples of a motion, (n_felt, n_samples)."""
        columns = self.felt_columns([*samples.q, *samples.dq, *samples.ddq], named)
        columns[self._felt_along] = course.columns(samples)
        return columns

    def felt_columns(self, inputs: list[Array], named: Named | None = None) -> Array:
        """The columns that each channel feels, channel after channel, (n_felt, n_samples).

        Those that follow a motion are left at zero.

        Args:
            inputs: Positions, speeds and accelerations, one (n_samples,) array per joint each.
            named: What to call a sample in a message; default its number.
        """
        if self.robot.closure is not None:
            positions = np.stack(inputs[: len(self.robot.joint_names)], axis=1)
            inputs = [*inputs, *solved_positions(self.robot, positions, named)]
        columns = np.zeros((len(self.felt_scales), len(inputs[0])))
        self._kernel(inputs, columns, self._felt)
        return columns

    def bound(self, inputs: Array, slab: Array) -> Callable[[], None]:
        """One sample at a time: each call writes its regressor into `slab` from what `inputs` holds by then.

        Args:
            inputs: (3 n_joints,) positions, speeds and accelerations, C-contiguous.
            slab: (at least n columns, at least n_channels), C-contiguous; entries that no channel feels are left alone.
        """
        felt = [(column, channel) for channel, own in enumerate(self.layout.columns) for column in own]
        if self.robot.closure is None and chosen_backend() != "numpy":
            from dynident.dynamics.llvm_backend import LlvmKernel

            places = [felt[line][0] * slab.shape[1] + felt[line][1] for line in self._felt]
            return LlvmKernel(self.program).bound(inputs.reshape(-1, 1), slab, places)
        columns, channels = (list(part) for part in zip(*felt, strict=True))

        def run() -> None:
            slab[columns, channels] = self.felt_columns([inputs[i : i + 1] for i in range(len(inputs))])[:, 0]

        return run

    def segment_beside(
        self, arrays: list[Array], roots: Array | None, extra: Mapping[str, Array], label: str, offset: int
    ) -> Segment:
        """The factors of a stretch of samples with given columns beside the kernel's."""
        n, given = self.coordinates.n, list(extra.values())
        columns = [
            (*own, *(n + i for i, values in enumerate(given) if values[:, channel].any()))
            for channel, own in enumerate(self.layout.columns)
        ]
        factors = [np.zeros((len(own) + 1, len(own) + 1)) for own in columns]
        arrays = self._without_known(arrays, offset)
        for start in range(0, len(arrays[0]), GIVEN_BLOCK):
            part = slice(start, start + GIVEN_BLOCK)
            motion = [column for array in arrays[:3] for column in array[part].T]
            felt = self.felt_columns(motion, by_number(offset + start))
            first = 0
            for channel, (own, modelled) in enumerate(zip(columns, self.layout.columns, strict=True)):
                width = len(modelled)
                beside = [given[column - n][part, channel] for column in own[width:]]
                slab = np.vstack([felt[first : first + width], *beside, arrays[3][part, channel]])
                if roots is not None:
                    slab *= roots[part, channel]
                if not np.isfinite(slab).all():
                    raise not_finite(self.robot, arrays, offset)
                absorb(factors[channel], slab)
                first += width
        return self._segment(label, columns, factors, roots, len(arrays[0]))

    def information(self, segments: Iterable[Segment]) -> Information:
        """The result of a run."""
        return Information(self.coordinates, self.definitions, self.robot.joint_names, tuple(segments))

    @functools.cached_property
    def _stream(self) -> Accumulator:
        """What turns samples into factors in one go."""
        return _accumulator(self.program, self.layout)

    @functools.cached_property
    def _kernel(self) -> Kernel:
        """The program as a kernel of its own."""
        if chosen_backend() == "numpy":
            return NumpyKernel(self.program)
        from dynident.dynamics.llvm_backend import LlvmKernel

        return LlvmKernel(self.program)

    def _without_known(self, arrays: list[Array], offset: int) -> list[Array]:
        """The arrays with what parameters of known value contribute taken out of the torque."""
        if not self.known:
            return arrays
        if not all(np.isfinite(array).all() for array in arrays):
            raise not_finite(self.robot, arrays, offset)
        q, dq, ddq, tau = arrays
        return [q, dq, ddq, tau - inverse_dynamics(self.robot, q, dq, ddq, self.of_state, self.known)]

    def _segment(
        self, label: str, columns: Sequence[tuple[int, ...]], triangles: list[Array], roots: Array | None, n: int
    ) -> Segment:
        """The record of the factors; rows without weight do not count."""
        counts = [n] * len(triangles) if roots is None else [int(c) for c in np.count_nonzero(roots, axis=0)]
        parts = zip(columns, triangles, counts, strict=True)
        return Segment(label, tuple(Factor(own, np.triu(R), count) for own, R, count in parts))


def _accumulator(program: Program, layout: Layout) -> Accumulator:
    if chosen_backend() == "numpy":
        return NumpyStream(program, layout)
    from dynident.information.streaming import Stream  # LLVM is loaded only when something is compiled

    return Stream(program, layout)


def felt_places(robot: Robot, terms: tuple[Term, ...], columns: Sequence[int]) -> set[tuple[int, ...]]:
    """Places (row, column) of the regressor that are more than rounding: some products cancel only in numbers."""
    scales = column_scales(robot, all_columns(robot, terms))
    W = np.abs(regressor(robot, *random_states(robot, 20), terms)).max(0) / scales
    wanted = set(columns)
    return {(int(row), int(column)) for row, column in np.argwhere(W > _ROUNDING) if column in wanted}


_KEPT = 16  # models kept in memory
_models: OrderedDict[tuple[str, ...], ObservationModel] = OrderedDict()
_lock = threading.Lock()


def observation_model(robot: Robot, terms: tuple[Term, ...], columns: str) -> ObservationModel:
    """The model of a robot for these terms and columns ("base" or "standard"), made once."""
    known = f"{sorted(robot.fixed.items())} {robot.joint_names} {chosen_backend()}"
    key = (robot.fingerprint, known, columns, *(term.key for term in terms))
    with _lock:
        model = _models.pop(key, None) or _make_model(robot, terms, columns)
        _models[key] = model
        if len(_models) > _KEPT:
            _models.popitem(last=False)
        return model


def _make_model(robot: Robot, terms: tuple[Term, ...], columns: str) -> ObservationModel:
    if columns not in ("base", "standard"):
        raise InputError(f"columns is '{columns}'; expected base or standard")
    described = all_columns(robot, terms)
    free = dataclasses.replace(robot, locked={}).fingerprint
    keys = [term.key_on(robot) for term in terms for _ in term.columns(robot)]
    definitions = tuple(
        f"robot {free}, {key}" + ("" if column.fixed is None else f", fixed at {column.fixed!r}")
        for key, column in zip(keys, described, strict=True)
    )
    coordinates: Regrouping = base_parameters(robot, terms)
    if columns == "standard":
        effect = [int(j) for j in np.flatnonzero(coordinates.K.any(0))]
        coordinates = Regrouping(described, tuple(effect), frozen(np.eye(len(described))[effect]))
    return ObservationModel(robot, terms, coordinates, definitions)


def not_finite(robot: Robot, arrays: list[Array], offset: int) -> InputError:
    """The error that names the first bad sample and its channel."""
    for name, array in zip(("q", "dq", "ddq", "tau"), arrays, strict=True):
        bad = ~np.isfinite(array)
        if bad.any():
            sample, column = np.argwhere(bad)[0]
            return InputError(
                f"{name} is {array[sample, column]} at sample {offset + sample}, channel {robot.joint_names[column]}; "
                "remove or repair such samples first"
            )
    return InputError("the equations overflow for these numbers; check the units of q, dq, ddq and tau")
