"""`accumulate`: from arrays or blocks to an `Information`, in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_matrix, as_samples, frozen, whole_strides
from dynident.dynamics.terms import Column, TermsLike, resolve_terms
from dynident.errors import InputError
from dynident.identifiability.regrouping import Regrouping
from dynident.information.factor import merged
from dynident.information.information import Information, Segment
from dynident.information.observation_model import ObservationModel, observation_model
from dynident.robot.model import Robot

SHORTEST_SEGMENT = 16384  # samples: merging a segment costs as much as a few hundred of them
MOST_SEGMENTS = 32
Block = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # q, dq, ddq, tau
Progress = Callable[[int, int | None], None]  # samples done, samples in all if known


def accumulate(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    tau: ArrayLike,
    terms: TermsLike = None,
    *,
    columns: Literal["base", "standard"] = "base",
    weights: ArrayLike | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    segment: int | None = None,
    threads: int | None = None,
    label: str = "data",
    progress: Progress | None = None,
) -> Information:
    """Everything the samples say about the parameters.

    Args:
        robot: The robot.
        q: Joint positions, (n_samples, n_joints); likewise dq, ddq.
        dq: Joint speeds.
        ddq: Joint accelerations.
        tau: Torque at the actuated coordinates, as `inverse_dynamics` gives it.
        terms: Terms of the model; default rigid, Ia, Fv, Fc, Fo.
        columns: "base": only the structural base columns; "standard": every column that has an effect.
        weights: Weight of each row (not its root), (n_samples,) or (n_samples, n_joints).
        extra: Further columns by name, (n_samples, n_joints) each: what they add to each channel's row.
        segment: Samples per segment; default such that there are at most 32.
        threads: Threads to use; default one per core.
        label: Where the data came from.
        progress: Called with the samples done and the samples in all.

    Raises:
        InputError: Naming sample and channel when a number is not finite.
    """
    names = robot.joint_names
    arrays = _block(robot, (q, dq, ddq, tau))
    n_samples = len(arrays[0])
    if n_samples == 0:
        raise InputError("there are no samples")
    if segment is not None and segment < 1:
        raise InputError(f"segment is {segment}; expected a positive number of samples")
    length = segment or -(-n_samples // _segment_count(n_samples))
    model = observation_model(robot, resolve_terms(terms), columns)
    roots = _roots(weights, n_samples, names)
    given = _extra_columns(model, extra or {}, n_samples)
    starts = range(0, n_samples, length)

    def work(start: int) -> Segment:
        part = slice(start, start + length)
        own, own_roots = [x[part] for x in arrays], None if roots is None else roots[part]
        if given:
            return model.segment_beside(own, own_roots, {k: v[part] for k, v in given.items()}, label, start)
        return model.segment(own, own_roots, label, start)

    segments = []
    for start, done in zip(starts, _in_threads(work, starts, threads), strict=True):
        segments.append(done)
        if progress is not None:
            progress(min(start + length, n_samples), n_samples)
    return _wider(model.information(segments), list(given))


def accumulate_blocks(
    robot: Robot,
    blocks: Iterable[Block],
    terms: TermsLike = None,
    *,
    columns: Literal["base", "standard"] = "base",
    threads: int | None = None,
    label: str = "data",
    progress: Progress | None = None,
    total: int | None = None,
) -> Information:
    """`accumulate` for data that does not fit into memory: an iterator of blocks (q, dq, ddq, tau).

    Each block becomes a segment; when there are too many, neighbours are joined. Blocks are copied, so an iterator may
    reuse its arrays; there are as many in memory as threads, and two more.
    """
    copied = (tuple(np.array(x, copy=True) for x in block) for block in blocks)
    return accumulate_own_blocks(robot, copied, terms, columns, threads, label, progress, total)


def accumulate_own_blocks(
    robot: Robot,
    blocks: Iterable[tuple[ArrayLike, ...]],
    terms: TermsLike,
    columns: Literal["base", "standard"],
    threads: int | None,
    label: str,
    progress: Progress | None,
    total: int | None,
) -> Information:
    """`accumulate_blocks` for blocks that nobody writes to again."""
    model = observation_model(robot, resolve_terms(terms), columns)
    segments: list[Segment] = []
    done = 0
    for segment, count in _streamed(robot, model, blocks, threads, label):
        segments.append(segment)
        if len(segments) > 2 * MOST_SEGMENTS:
            segments = _halved(segments)
        done += count
        if progress is not None:
            progress(done, total)
    if not segments:
        raise InputError("there are no samples")
    while len(segments) > MOST_SEGMENTS:
        segments = _halved(segments)
    return model.information(segments)


def _segment_count(n_samples: int) -> int:
    """One for short data, else a multiple of four (so that threads share them evenly) up to the most."""
    if n_samples < 2 * SHORTEST_SEGMENT:
        return 1
    return min(MOST_SEGMENTS, 4 * -(-n_samples // (4 * SHORTEST_SEGMENT)))


def _block(robot: Robot, block: tuple[ArrayLike, ...]) -> list[Array]:
    """The four arrays of a block as float64 without a copy where possible; shapes checked, numbers not yet."""
    names = ("q", "dq", "ddq", "tau")
    if not isinstance(block, tuple | list) or len(block) != len(names):
        raise InputError("a block must be four arrays: q, dq, ddq, tau")
    arrays: list[Array] = []
    for name, given in zip(names, block, strict=True):
        array = as_matrix(given, name, robot.joint_names, len(arrays[0]) if arrays else None)
        arrays.append(whole_strides(array))
    return arrays


def _roots(weights: ArrayLike | None, n_samples: int, names: tuple[str, ...]) -> Array | None:
    """Square roots of the rows' weights, (n_samples, n_joints)."""
    if weights is None:
        return None
    if np.ndim(weights) == 1:
        weights = np.repeat(np.asarray(weights)[:, None], len(names), axis=1)
    array = as_samples(weights, "weights", names, n_samples)
    if (array < 0.0).any():
        sample, column = np.argwhere(array < 0.0)[0]
        raise InputError(f"weight of sample {sample}, channel {names[column]} is negative")
    return np.sqrt(array)


def _workers(threads: int | None) -> int:
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; expected one or more")
    return threads or os.cpu_count() or 1


def _in_threads(work: Callable[[int], Segment], starts: Iterable[int], threads: int | None) -> Iterator[Segment]:
    """Results in order; the compiled part of the work runs in parallel."""
    todo = list(starts)
    workers = min(len(todo), _workers(threads))
    if workers < 2:
        yield from map(work, todo)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, todo)


def _streamed(
    robot: Robot, model: ObservationModel, blocks: Iterable[tuple[ArrayLike, ...]], threads: int | None, label: str
) -> Iterator[tuple[Segment, int]]:
    """Segment and length of every block, in order."""
    workers = _workers(threads)
    pending: deque[tuple[Future[Segment], int]] = deque()
    offset = 0
    with ThreadPoolExecutor(workers) as pool:
        for block in blocks:
            arrays = _block(robot, block)
            count = len(arrays[0])
            if count:
                pending.append((pool.submit(model.segment, arrays, None, label, offset), count))
            offset += count
            if len(pending) > workers:
                future, count = pending.popleft()
                yield future.result(), count
        for future, count in pending:
            yield future.result(), count


def _halved(segments: list[Segment]) -> list[Segment]:
    """Neighbouring segments joined in pairs."""
    result = []
    for i in range(0, len(segments), 2):
        pair = segments[i : i + 2]
        factors = tuple(merged(factors) for factors in zip(*(s.factors for s in pair), strict=True))
        result.append(Segment(pair[0].label, factors))
    return result


def _extra_columns(model: ObservationModel, extra: Mapping[str, ArrayLike], n_samples: int) -> dict[str, Array]:
    """Given columns, checked: (n_samples, n_joints) each."""
    names = model.robot.joint_names
    own = {column.name for column in model.coordinates.columns}
    for name in extra:
        if name in own:
            raise InputError(f"extra column '{name}' has the name of a column of the model; choose another")
    return {name: as_samples(values, f"extra column {name}", names, n_samples) for name, values in extra.items()}


def _wider(information: Information, extra: list[str]) -> Information:
    """The information with its coordinates extended by given columns."""
    if not extra:
        return information
    old = information.coordinates
    n, k, m = old.n, len(old.columns), len(extra)
    K = np.zeros((n + m, k + m))
    K[:n, :k] = old.K
    K[n:, k:] = np.eye(m)
    columns = tuple(Column(name, "", name, "", "given", "given column") for name in extra)
    coordinates = Regrouping((*old.columns, *columns), (*old.independent, *range(k, k + m)), frozen(K))
    return replace(information, coordinates=coordinates, definitions=(*information.definitions, *("given",) * m))
