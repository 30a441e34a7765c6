"""Measured against predicted torque: both low-passed alike, in a stated band, at the joints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask
from dynident.display import brief
from dynident.dynamics.evaluate import joint_torque
from dynident.dynamics.terms import along_terms
from dynident.errors import InputError
from dynident.estimate.covariance import LagSums, ResidualCorrelation
from dynident.estimate.prediction import TorqueModel
from dynident.estimate.torque_errors import TorqueErrors, Trace
from dynident.signals.fir import FilterStream
from dynident.signals.kernels import low_pass_kernel
from dynident.signals.observations import Observations
from dynident.signals.rows import row_step
from dynident.validation.thresholds import THRESHOLDS

MAX_TRACE_POINTS = 3000  # of a trace, for plots


@brief
@dataclass(frozen=True)
class LogErrors:
    """How predictions match one log.

    Attributes:
        label: Name of the log.
        source: Its file.
        errors: Of each joint while it moves, one for each model.
        whole: At all times, rest included, one for each model.
        trace: Of the first model.
        correlation: How residuals of the first model follow each other, at the outputs of the model, joints in motion.
        white: For each output, whether its residual is like white noise that passed the filter: beyond the filter's
            memory, hardly more than one lag in twenty stands out.
        lag: Time between rows [s].
    """

    label: str
    source: str
    errors: tuple[TorqueErrors, ...]
    whole: tuple[TorqueErrors, ...]
    trace: Trace
    correlation: ResidualCorrelation
    white: tuple[bool, ...]
    lag: float


def compare(models: Sequence[TorqueModel], observations: Observations) -> LogErrors:
    """Compare the predictions of some models with a log, in the band of the observations.

    A joint counts while it moves; at rest, friction holds it with a torque that the model cannot know.

    Raises:
        InputError: When the log is too short to compare anything.
    """
    robot, band = observations.robot, observations.band
    moving = [TorqueErrors.of(robot.joint_names, band) for _ in models]
    whole = list(moving)
    lags = LagSums(len(robot.joint_names))
    times, traces, seen = [], [], 0
    rate = row_rate(observations)
    thin = max(1, -(-int(observations.survey.duration * rate) // MAX_TRACE_POINTS))
    for time, outputs, moves, restart in _rows(models, observations):
        residual = outputs[0] - outputs[1]
        for output, own in enumerate(moves.T):
            lags.add(output, residual[own, output], restart=restart)
        torque = np.stack([joint_torque(robot, part) for part in outputs])
        for i, predicted in enumerate(torque[1:]):
            whole[i] = whole[i].including(torque[0], predicted)
            moving[i] = moving[i].including(torque[0], predicted, moves)
        picked = slice(-seen % thin, None, thin)
        times.append(time[picked].copy())  # a view would keep all rows in memory
        traces.append(torque[:2, picked].copy())
        seen += len(time)
    if not seen:
        raise InputError(
            f"{observations.log.label}: is too short to compare torque in a band of {band:.3g} Hz; use a longer log "
            "or a higher band"
        )
    shown = np.concatenate(traces, axis=1)
    correlation = lags.correlation(robot.joint_names)
    return LogErrors(
        observations.log.label,
        observations.log.source,
        tuple(moving),
        tuple(whole),
        Trace(np.concatenate(times), shown[0], shown[1]),
        correlation,
        _white(correlation, observations),
        1.0 / rate,
    )


def compare_all(
    models: Sequence[TorqueModel],
    observations: Sequence[Observations],
    progress: Callable[[str, int, int], None],
    what: str,
) -> list[LogErrors]:
    """`compare` for several logs; `progress` is called with what is being done, and how much of it is done."""
    result = []
    for number, one in enumerate(observations):
        progress(what, number, len(observations))
        result.append(compare(models, one))
    if observations:
        progress(what, len(observations), len(observations))
    return result


def _white(correlation: ResidualCorrelation, observations: Observations) -> tuple[bool, ...]:
    """Whether residuals are like white noise that passed the filter of the rows (Bartlett's formula for its lags)."""
    kernel = low_pass_kernel(observations.band, observations.survey.grid.rate / observations.step)
    step = row_step(observations)
    own = np.correlate(kernel.taps, kernel.taps, "full")[len(kernel.taps) - 1 :: step]
    memory = len(own)
    spread = np.sqrt(1.0 + 2.0 * np.sum((own[1:] / own[0]) ** 2))
    far = np.abs(correlation.autocorrelation[:, memory:])
    products = correlation.n_rows[:, None] - np.arange(memory, memory + far.shape[1])  # behind each lag
    bounds = 1.96 * spread / np.sqrt(np.maximum(products, 1.0))
    return tuple(bool(x) for x in (far > bounds).mean(1) <= THRESHOLDS.max_correlated_share)


def row_rate(observations: Observations) -> float:
    """Rows per second that torque is compared at."""
    rate = observations.survey.grid.rate / observations.step
    return rate / row_step(observations)


def _rows(models: Sequence[TorqueModel], observations: Observations) -> Iterator[tuple[Array, Array, Mask, bool]]:
    """Filtered rows away from the ends of stretches.

    Yields:
        Time, (n,) [s]; torque at the outputs of the model, measured first, (1 + n_models, n, n_joints); whether each
        joint moves, (n, n_joints); and whether a stretch begins.
    """
    n, step, rate = len(observations.robot.joint_names), row_step(observations), row_rate(observations)
    margin = int(np.ceil(np.round(THRESHOLDS.stretch_end_s * rate, 6)))
    stream: FilterStream | None = None
    held: Array | None = None  # time, and below it what was filtered
    restart = True
    courses = [model.start() for model in models]
    observations = observations.for_terms([term for model in models for term in along_terms(model.terms)])
    for motion in observations.motion():
        if stream is None:
            kernel = low_pass_kernel(observations.band, motion.rate)
            stream = FilterStream([(n * (2 + len(models)), [kernel])], motion.rate, step)
            held, restart = None, True
        predicted = [course.torque(motion) for course in courses]
        moves = np.abs(motion.dq) > observations.options.rest_velocity
        signals = np.hstack([motion.tau[0], *predicted, moves])
        (results,), _, first = stream.push(signals.T, motion.last)
        time = motion.start + (first + np.arange(results.shape[2])) / rate
        begin = slice(max(0, margin - first), None)  # without the stretch's first rows
        lines = np.vstack([time, results[0]])[:, begin]
        held = lines if held is None else np.hstack([held, lines])
        ready = max(0, held.shape[1] - margin)  # the last rows wait: the stretch may end with them
        if ready:
            parts = held[1:, :ready].reshape(2 + len(models), n, ready).transpose(0, 2, 1)
            yield held[0, :ready], parts[:-1], parts[-1] > 0.5, restart
            held, restart = held[:, ready:], False
        if motion.last:
            stream = held = None
