"""Accumulation: from arrays, blocks or Parquet files to an `Information`, in bounded memory."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, as_matrix, as_samples, frozen, whole_strides
from dynident.dynamics.evaluate import inverse_dynamics
from dynident.dynamics.jit.numpy_kernel import chosen_backend
from dynident.dynamics.loop_assembly import by_number, solved_positions
from dynident.dynamics.terms import Column, TermsLike, resolve_terms
from dynident.errors import DynidentError, InputError
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.identifiability.regrouping import Regrouping
from dynident.information.factor import Factor, absorb, merge_factors
from dynident.information.information import Information, Segment
from dynident.information.numpy_stream import NumpyStream, split_triangles
from dynident.logs.log import LogError
from dynident.logs.parquet import ParquetTable
from dynident.logs.tables import regroup
from dynident.robot.model import Robot

if TYPE_CHECKING:
    from dynident.information.streaming import Stream

SHORTEST_SEGMENT = 16384  # samples: merging a segment costs as much as a few hundred of them
MOST_SEGMENTS = 32
GIVEN_BLOCK = 4096  # samples per block when given columns stand beside the kernel's
_PARQUET_ROWS = 8192  # in memory at a time, per thread
Block = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # q, dq, ddq, tau
SampleProgress = Callable[[int, int | None], None]  # samples done, samples in all if known


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
    progress: SampleProgress | None = None,
) -> Information:
    """Everything the samples say about the parameters.

    Args:
        robot: The robot.
        q: Joint positions, (n_samples, n_joints); likewise dq, ddq.
        dq: Joint velocities.
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
    base = BaseRegressor.of(robot, resolve_terms(terms), columns)
    roots = _roots(weights, n_samples, names)
    given = _extra_columns(base, extra or {}, n_samples)
    starts = range(0, n_samples, length)

    def work(start: int) -> Segment:
        part = slice(start, start + length)
        own, own_roots = [x[part] for x in arrays], None if roots is None else roots[part]
        if given:
            beside = [values[part] for values in given.values()]
            return _segment_beside(base, own, own_roots, beside, label, start)
        return _segment(base, own, own_roots, label, start)

    segments = []
    for start, done in zip(starts, _in_threads(work, starts, threads), strict=True):
        segments.append(done)
        if progress is not None:
            progress(min(start + length, n_samples), n_samples)
    return _wider(_information(base, segments), list(given))


def accumulate_blocks(
    robot: Robot,
    blocks: Iterable[Block],
    terms: TermsLike = None,
    *,
    columns: Literal["base", "standard"] = "base",
    threads: int | None = None,
    label: str = "data",
    progress: SampleProgress | None = None,
    total: int | None = None,
) -> Information:
    """`accumulate` for data that does not fit into memory: an iterator of blocks (q, dq, ddq, tau).

    Each block becomes a segment; when there are too many, neighbors are joined. Blocks are copied, so an iterator may
    reuse its arrays; there are as many in memory as threads, and two more.
    """
    copied = (tuple(np.array(x, copy=True) for x in block) for block in blocks)
    return _accumulate_own_blocks(robot, copied, terms, columns, threads, label, progress, total)


def _accumulate_own_blocks(
    robot: Robot,
    blocks: Iterable[tuple[ArrayLike, ...]],
    terms: TermsLike,
    columns: Literal["base", "standard"],
    threads: int | None,
    label: str,
    progress: SampleProgress | None,
    total: int | None,
) -> Information:
    """`accumulate_blocks` for blocks that nobody writes to again."""
    base = BaseRegressor.of(robot, resolve_terms(terms), columns)
    segments: list[Segment] = []
    done = 0
    for segment, count in _stream_segments(base, blocks, threads, label):
        segments.append(segment)
        if len(segments) > 2 * MOST_SEGMENTS:
            segments = _halve_segments(segments)
        done += count
        if progress is not None:
            progress(done, total)
    if not segments:
        raise InputError("there are no samples")
    while len(segments) > MOST_SEGMENTS:
        segments = _halve_segments(segments)
    return _information(base, segments)


def accumulate_parquet(
    robot: Robot,
    path: str | Path,
    terms: TermsLike = None,
    *,
    columns: Literal["base", "standard"] = "base",
    threads: int | None = None,
    progress: SampleProgress | None = None,
) -> Information:
    """`accumulate` for a Parquet file with columns q1.., dq1.., ddq1.., tau1.., read batch by batch.

    Raises:
        LogError: When the file cannot be read.
        InputError: Naming the file, and the column when one is missing or not numeric.
    """
    table = ParquetTable(Path(path))
    n = len(robot.position_names)
    numbers = [name.removeprefix("q") for name in robot.position_names]
    wanted = [f"{kind}{number}" for kind in ("q", "dq", "ddq", "tau") for number in numbers]
    for name in wanted:
        if name not in table.headers:
            raise InputError(
                f"{path}: has no numeric column '{name}' (numeric columns: {', '.join(table.headers[:40])})"
            )
    places = [table.headers.index(name) for name in wanted]

    def blocks() -> Iterator[Block]:
        for data in regroup(table.parts(places), len(wanted), _PARQUET_ROWS):
            q, dq, ddq, tau = (data[k * n : (k + 1) * n].T for k in range(4))
            yield q, dq, ddq, tau

    try:
        return _accumulate_own_blocks(robot, blocks(), terms, columns, threads, str(path), progress, table.n_rows)
    except LogError:
        raise
    except DynidentError as error:
        raise InputError(f"{path}: {error}") from None


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


def _stream_segments(
    base: BaseRegressor, blocks: Iterable[tuple[ArrayLike, ...]], threads: int | None, label: str
) -> Iterator[tuple[Segment, int]]:
    """Segment and length of every block, in order."""
    workers = _workers(threads)
    pending: deque[tuple[Future[Segment], int]] = deque()
    offset = 0
    with ThreadPoolExecutor(workers) as pool:
        for block in blocks:
            arrays = _block(base.robot, block)
            count = len(arrays[0])
            if count:
                pending.append((pool.submit(_segment, base, arrays, None, label, offset), count))
            offset += count
            if len(pending) > workers:
                future, count = pending.popleft()
                yield future.result(), count
        for future, count in pending:
            yield future.result(), count


def _halve_segments(segments: list[Segment]) -> list[Segment]:
    """Neighboring segments joined in pairs."""
    result = []
    for i in range(0, len(segments), 2):
        pair = segments[i : i + 2]
        factors = tuple(merge_factors(factors) for factors in zip(*(s.factors for s in pair), strict=True))
        result.append(Segment(pair[0].label, factors))
    return result


def _extra_columns(base: BaseRegressor, extra: Mapping[str, ArrayLike], n_samples: int) -> dict[str, Array]:
    """Given columns, checked: (n_samples, n_joints) each."""
    names = base.robot.joint_names
    own = {column.name for column in base.coordinates.columns}
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


_streams: weakref.WeakKeyDictionary[BaseRegressor, Stream | NumpyStream] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _stream(base: BaseRegressor) -> Stream | NumpyStream:
    """What turns samples into the factors of a regressor in one go, made once."""
    with _lock:
        if base not in _streams:
            if chosen_backend() == "numpy":
                _streams[base] = NumpyStream(base.program, base.columns, base.slots)
            else:
                from dynident.information.streaming import Stream  # LLVM is loaded only when something is compiled

                _streams[base] = Stream(base.program, base.columns, base.slots)
        return _streams[base]


def _segment(base: BaseRegressor, arrays: list[Array], roots: Array | None, label: str, offset: int = 0) -> Segment:
    """The factors of a stretch of samples.

    Args:
        base: The columns.
        arrays: q, dq, ddq, tau.
        roots: Square roots of the rows' weights, or None.
        label: Where the samples came from.
        offset: Number of the first sample, for messages.
    """
    arrays = _without_fixed(base, arrays, offset)
    if base.along:
        raise base.along[0].no_state()
    widths = [len(own) + 1 for own in base.columns]
    factors = np.zeros(int(np.sum(np.square(widths))))
    inputs = [column for array in arrays[:3] for column in array.T]
    inputs += solved_positions(base.robot, arrays[0], by_number(offset))
    weights = None if roots is None else list(roots.T)
    fine = _stream(base).absorb(inputs, list(arrays[3].T), weights, factors)
    if not fine or not np.isfinite(factors).all():
        raise _not_finite(base.robot, arrays, offset)
    return _information_of(label, base.columns, split_triangles(factors, widths), roots, len(arrays[0]))


def _segment_beside(
    base: BaseRegressor, arrays: list[Array], roots: Array | None, given: Sequence[Array], label: str, offset: int
) -> Segment:
    """The factors of a stretch of samples with given columns, (n_samples, n_joints) each, beside the kernel's."""
    n, lines = base.coordinates.n, base.lines()
    columns = [
        (*own, *(n + i for i, values in enumerate(given) if values[:, output].any()))
        for output, own in enumerate(base.columns)
    ]
    factors = [np.zeros((len(own) + 1, len(own) + 1)) for own in columns]
    arrays = _without_fixed(base, arrays, offset)
    for start in range(0, len(arrays[0]), GIVEN_BLOCK):
        part = slice(start, start + GIVEN_BLOCK)
        motion = [column for array in arrays[:3] for column in array[part].T]
        made = base.columns_first(motion, by_number(offset + start))
        for output, own in enumerate(columns):
            beside = [given[column - n][part, output] for column in own[len(base.columns[output]) :]]
            rows = np.vstack([made[lines[output]], *beside, arrays[3][part, output]])
            if roots is not None:
                rows *= roots[part, output]
            if not np.isfinite(rows).all():
                raise _not_finite(base.robot, arrays, offset)
            absorb(factors[output], rows)
    return _information_of(label, columns, factors, roots, len(arrays[0]))


def _information_of(
    label: str, columns: Sequence[tuple[int, ...]], triangles: list[Array], roots: Array | None, n: int
) -> Segment:
    """The record of the factors; rows without weight do not count."""
    counts = [n] * len(triangles) if roots is None else [int(c) for c in np.count_nonzero(roots, axis=0)]
    parts = zip(columns, triangles, counts, strict=True)
    return Segment(label, tuple(Factor(own, np.triu(R), count) for own, R, count in parts))


def _information(base: BaseRegressor, segments: Iterable[Segment]) -> Information:
    """The result of a run."""
    return Information(base.coordinates, base.definitions, base.robot.joint_names, tuple(segments))


def _without_fixed(base: BaseRegressor, arrays: list[Array], offset: int) -> list[Array]:
    """The arrays with what parameters of fixed value contribute taken out of the torque."""
    if not base.fixed_values:
        return arrays
    if not all(np.isfinite(array).all() for array in arrays):
        raise _not_finite(base.robot, arrays, offset)
    q, dq, ddq, tau = arrays
    return [q, dq, ddq, tau - inverse_dynamics(base.robot, q, dq, ddq, base.of_state, base.fixed_values)]


def _not_finite(robot: Robot, arrays: list[Array], offset: int) -> InputError:
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
