"""What is common to all samples of a robot: which columns each channel feels, and the kernels that make them."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dynident.checks import Array, frozen
from dynident.dynamics.evaluate import inverse_dynamics, regressor
from dynident.dynamics.kernels import record
from dynident.dynamics.llvm_backend import LlvmKernel
from dynident.dynamics.terms import Term, all_columns
from dynident.errors import InputError
from dynident.identifiability.base import base_parameters
from dynident.identifiability.regrouping import Regrouping
from dynident.identifiability.states import random_states
from dynident.information.factor import Factor
from dynident.information.householder import absorb
from dynident.information.information import Information, Segment
from dynident.information.streaming import Layout, Stream
from dynident.robot.model import Robot

GIVEN_BLOCK = 4096  # samples per block when given columns stand beside the kernel's


class ObservationModel:
    """What is common to all samples of one robot, term set and choice of columns."""

    def __init__(self, robot: Robot, terms: tuple[Term, ...], coordinates: Regrouping, definitions: tuple[str, ...]):
        self.robot, self.terms, self.coordinates, self.definitions = robot, terms, coordinates, definitions
        self.known = {column.name: column.fixed for column in coordinates.columns if column.fixed is not None}
        program, places = record(robot, "regressor", terms, felt_places(robot, terms, coordinates.independent))
        position = {column: i for i, column in enumerate(coordinates.independent)}
        self.layout = Layout.of(
            tuple((channel, position[column]) for channel, column in places), len(robot.joint_names)
        )
        self.program = program
        self.stream = Stream(program, self.layout)

    def _unknown_part(self, arrays: list[Array]) -> Array:
        """Torque without what the parameters of known value contribute."""
        q, dq, ddq, tau = arrays
        if not any(self.known.values()):
            return tau
        return np.asarray(tau - inverse_dynamics(self.robot, q, dq, ddq, self.terms, self.known))

    def segment(self, arrays: list[Array], roots: Array | None, label: str, offset: int = 0) -> Segment:
        """The factors of a stretch of samples."""
        q, dq, ddq, _ = arrays
        tau = self._unknown_part(arrays)
        factors = self.stream.empty()
        inputs = [*q.T, *dq.T, *ddq.T]
        taus = [np.asarray(x) for x in tau.T]
        weights = None if roots is None else list(roots.T)
        if not self.stream.absorb(inputs, taus, weights, factors):
            raise not_finite(self.robot, arrays, offset)
        return Segment(
            label,
            tuple(
                Factor(columns, np.triu(R), len(q))
                for columns, R in zip(self.layout.columns, self.stream.split(factors), strict=True)
            ),
        )

    def segment_beside(
        self, arrays: list[Array], roots: Array | None, extra: Mapping[str, Array], part: slice, label: str
    ) -> Segment:
        """The factors of a stretch of samples with given columns beside the kernel's."""
        n = self.coordinates.n
        columns = [
            (*own, *(n + i for i, values in enumerate(extra.values()) if values[part, channel].any()))
            for channel, own in enumerate(self.layout.columns)
        ]
        factors = [np.zeros((len(own) + 1, len(own) + 1)) for own in columns]
        given = list(extra.values())
        arrays = [*arrays[:3], self._unknown_part(arrays)]
        for start in range(0, len(arrays[0]), GIVEN_BLOCK):
            q, dq, ddq, tau = (x[start : start + GIVEN_BLOCK] for x in arrays)
            slabs = np.zeros((sum(self.layout.widths), len(q)))
            self.kernel([*q.T, *dq.T, *ddq.T], slabs, self.layout.slots)
            first = 0
            for channel, own in enumerate(columns):
                width = self.layout.widths[channel]
                slab = np.zeros((len(own) + 1, len(q)))
                slab[: width - 1] = slabs[first : first + width - 1]
                for i, column in enumerate(own[width - 1 :], width - 1):
                    slab[i] = given[column - n][part][start : start + GIVEN_BLOCK, channel]
                slab[-1] = tau[:, channel]
                if roots is not None:
                    slab *= roots[start : start + GIVEN_BLOCK, channel]
                if not np.isfinite(slab).all():
                    raise not_finite(self.robot, arrays, part.start)
                absorb(factors[channel], slab)
                first += width
        return Segment(
            label, tuple(Factor(own, np.triu(R), len(arrays[0])) for own, R in zip(columns, factors, strict=True))
        )

    @functools.cached_property
    def kernel(self) -> LlvmKernel:
        """The program as a kernel of its own."""
        return LlvmKernel(self.program)

    def information(self, segments: Iterable[Segment]) -> Information:
        """The result of a run."""
        return Information(self.coordinates, self.definitions, self.robot.joint_names, tuple(segments))


def felt_places(robot: Robot, terms: tuple[Term, ...], columns: Sequence[int]) -> set[tuple[int, ...]]:
    """Places (row, column) of the regressor that are more than rounding: some products cancel only in numbers."""
    states = random_states(robot, 20)
    W = np.abs(regressor(robot, *states, terms)).max(0)
    size = np.maximum(W.max(0, keepdims=True), 1e-300)
    return {(int(row), int(column)) for row, column in np.argwhere(1e-11 * size < W) if column in set(columns)}


_KEPT = 16  # models kept in memory
_models: OrderedDict[tuple[str, ...], ObservationModel] = OrderedDict()


def observation_model(robot: Robot, terms: tuple[Term, ...], columns: str) -> ObservationModel:
    """The model of a robot for these terms and columns ("base" or "standard"), made once."""
    known = f"{sorted(robot.fixed.items())} {robot.joint_names}"
    key = (robot.fingerprint, known, columns, *(term.key for term in terms))
    if key not in _models:
        _models[key] = _make_model(robot, terms, columns)
        if len(_models) > _KEPT:
            _models.popitem(last=False)
    _models.move_to_end(key)
    return _models[key]


def _make_model(robot: Robot, terms: tuple[Term, ...], columns: str) -> ObservationModel:
    described = all_columns(robot, terms)
    free = dataclasses.replace(robot, locked={}).fingerprint
    definitions = tuple(f"robot {free}, {term.key}" for term in terms for _ in term.columns(robot))
    if columns == "base":
        base = base_parameters(robot, terms)
        coordinates: Regrouping = base
    elif columns == "standard":
        effect = [j for j, column in enumerate(described) if column.fixed is None]
        coordinates = Regrouping(described, tuple(effect), frozen(np.eye(len(described))[effect]))
    else:
        raise InputError(f"columns is '{columns}'; expected base or standard")
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
    return InputError("the equations overflow for these numbers; check the units of q, dq and ddq")
