"""`accumulate`: from arrays, blocks or given rows to an `Information`, in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import Array, as_samples, frozen
from dynident.dynamics.terms import Column, TermsLike, resolve_terms
from dynident.errors import InputError
from dynident.identifiability.regrouping import Regrouping
from dynident.information.factor import Factor, merged
from dynident.information.householder import absorb
from dynident.information.information import Information, Segment
from dynident.information.observation_model import GIVEN_BLOCK, ObservationModel, observation_model
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
    parts = [slice(start, min(start + length, n_samples)) for start in range(0, n_samples, length)]
    if extra:
        return _with_extra(model, arrays, roots, extra, parts, label)
    segments: list[Segment | None] = [None] * len(parts)
    done = 0

    def work(i: int) -> int:
        segments[i] = model.segment([x[parts[i]] for x in arrays], None if roots is None else roots[parts[i]], label)
        return parts[i].stop - parts[i].start

    for count in _in_threads(work, len(parts), threads):
        done += count
        if progress is not None:
            progress(done, n_samples)
    return model.information([s for s in segments if s is not None])


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

    Each block becomes a segment; when there are too many, neighbours are joined. Memory: one block per thread.
    """
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

    Raises:
        InputError: Naming sample and channel when a number is not finite.
    """
    if not isinstance(coordinates, Regrouping):
        plain = tuple(Column(name, "", name, "", "given", "given column") for name in coordinates)
        coordinates = Regrouping(plain, tuple(range(len(plain))), frozen(np.eye(len(plain))))
    rows, right = np.asarray(W, dtype=np.float64), np.asarray(tau, dtype=np.float64)
    if rows.ndim != 3 or rows.shape[2] != coordinates.n or right.shape != rows.shape[:2]:
        raise InputError(
            f"W must have shape (n_samples, n_channels, {coordinates.n}) and tau (n_samples, n_channels); "
            f"got {rows.shape} and {right.shape}"
        )
    names = tuple(channels) if channels is not None else tuple(str(i + 1) for i in range(rows.shape[1]))
    if len(names) != rows.shape[1] or len(rows) == 0:
        raise InputError(f"{len(names)} channel names do not fit {rows.shape[1]} channels with {len(rows)} samples")
    for array, what in ((rows, "W"), (right, "tau")):
        if not np.isfinite(array).all():
            sample, channel = np.argwhere(~np.isfinite(array))[0][:2]
            raise InputError(f"{what} is not finite at sample {sample}, channel {names[channel]}")
    factors = []
    for channel in range(rows.shape[1]):
        felt = tuple(int(j) for j in np.flatnonzero(rows[:, channel].any(0)))
        R = np.zeros((len(felt) + 1, len(felt) + 1))
        for start in range(0, len(rows), GIVEN_BLOCK):
            part = slice(start, start + GIVEN_BLOCK)
            absorb(R, np.vstack([rows[part, channel][:, felt].T, right[part, channel]]))
        factors.append(Factor(felt, np.triu(R), len(rows)))
    meaning = tuple(definitions) if definitions is not None else ("given",) * len(coordinates.columns)
    return Information(coordinates, meaning, names, (Segment(label, tuple(factors)),))


def _segment_count(n_samples: int) -> int:
    """One for short data, else a multiple of four (so that threads share them evenly) up to the most."""
    if n_samples < 2 * SHORTEST_SEGMENT:
        return 1
    return min(MOST_SEGMENTS, 4 * -(-n_samples // (4 * SHORTEST_SEGMENT)))


def _block(robot: Robot, block: Block) -> list[Array]:
    """The four arrays of a block as float64 without a copy where possible; shapes checked, numbers not yet."""
    n = len(robot.joint_names)
    arrays: list[Array] = []
    for name, given in zip(("q", "dq", "ddq", "tau"), block, strict=True):
        try:
            array = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} must be an array of numbers") from None
        if array.ndim != 2 or array.shape[1] != n:
            raise InputError(
                f"{name} must have shape (n_samples, {n}), columns {', '.join(robot.joint_names)}; got {array.shape}"
            )
        if arrays and len(array) != len(arrays[0]):
            raise InputError(f"{name} must have {len(arrays[0])} samples as q has; got {len(array)}")
        aligned = all(stride % 8 == 0 for stride in array.strides)
        arrays.append(array if aligned else np.ascontiguousarray(array))
    return arrays


def _roots(weights: ArrayLike | None, n_samples: int, names: tuple[str, ...]) -> Array | None:
    """Square roots of the rows' weights, (n_samples, n_joints)."""
    if weights is None:
        return None
    array = np.asarray(weights, dtype=np.float64)
    if array.ndim == 1:
        array = np.repeat(array[:, None], len(names), axis=1)
    array = as_samples(array, "weights", names, n_samples)
    if (array < 0.0).any():
        sample, column = np.argwhere(array < 0.0)[0]
        raise InputError(f"weight of sample {sample}, channel {names[column]} is negative")
    return np.sqrt(array)


def _in_threads(work: Callable[[int], int], n: int, threads: int | None) -> Iterator[int]:
    """Results of work(0) .. work(n - 1), the compiled part of which runs in parallel."""
    workers = min(n, threads or os.cpu_count() or 1)
    if workers < 2:
        yield from map(work, range(n))
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, range(n))


def _streamed(
    robot: Robot, model: ObservationModel, blocks: Iterable[Block], threads: int | None, label: str
) -> Iterator[tuple[Segment, int]]:
    """Segment and length of every block, in order; no more blocks are in memory than there are threads, plus one."""
    workers = threads or os.cpu_count() or 1
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


def _with_extra(
    model: ObservationModel,
    arrays: list[Array],
    roots: Array | None,
    extra: Mapping[str, ArrayLike],
    parts: list[slice],
    label: str,
) -> Information:
    """Kernel columns and given columns side by side, in blocks."""
    names = model.robot.joint_names
    given = {name: as_samples(values, f"extra column {name}", names, len(arrays[0])) for name, values in extra.items()}
    own = {column.name for column in model.coordinates.columns}
    for name in given:
        if name in own:
            raise InputError(f"extra column '{name}' has the name of a column of the model; choose another")
    segments = [
        model.segment_beside([x[part] for x in arrays], None if roots is None else roots[part], given, part, label)
        for part in parts
    ]
    coordinates = model.coordinates
    n, k = coordinates.n, len(coordinates.columns)
    K = np.zeros((n + len(given), k + len(given)))
    K[:n, :k] = coordinates.K
    K[n:, k:] = np.eye(len(given))
    columns = tuple(Column(name, "", name, "", "given", "given column") for name in given)
    wider = Regrouping(
        (*coordinates.columns, *columns),
        (*coordinates.independent, *range(k, k + len(given))),
        frozen(K),
    )
    definitions = (*model.definitions, *("given" for _ in given))
    return Information(wider, definitions, names, tuple(segments))
