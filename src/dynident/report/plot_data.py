"""`ReportData`: what plots of a report show and a fit does not need; kept in report.npz beside the fit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import numpy as np

from dynident import limits
from dynident.arrays import Array, frozen, record
from dynident.estimate.fit import Fit
from dynident.estimate.storage import FitFileError, fit_path
from dynident.estimate.torque_errors import Trace
from dynident.files import settled, write_bytes
from dynident.logs.log import LogSource, joint_positions
from dynident.npz import read_npz
from dynident.options import keywords
from dynident.pipeline.identification import run_pipeline
from dynident.pipeline.options import IdentifyOptions
from dynident.readers import reader, reason_of
from dynident.robot.model import Robot
from dynident.schema import parse_record, read_text
from dynident.sealed import read_sealed, sealed_archive
from dynident.signals.observations import Observations

STRETCH_SECONDS = 4.0
_LEAD, _LATEST = 0.1, 60.0  # share of the log, and time [s], after which it begins
_RAW, _FILTERED = "motion_raw", "motion_filtered"
_PLOTS = "dynident report plots"  # what the seal of the .npz calls them


@dataclass(frozen=True)
class MotionView:
    """A stretch of the first training log; arrays are (n, n_joints) but the times (n,).

    Attributes:
        raw_time: Stamps of the log [s].
        raw_velocity: Differences of neighboring positions.
        raw_acceleration: Differences of those.
        time: Stamps of the filtered motion [s].
        velocity: As the equations have it.
        acceleration: As the equations have it.
    """

    raw_time: Array
    raw_velocity: Array
    raw_acceleration: Array
    time: Array
    velocity: Array
    acceleration: Array

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def stored(self) -> dict[str, Array]:
        """Arrays from which `from_stored` makes the record again."""
        return {
            _RAW: np.vstack([self.raw_time, self.raw_velocity.T, self.raw_acceleration.T]),
            _FILTERED: np.vstack([self.time, self.velocity.T, self.acceleration.T]),
        }

    @staticmethod
    def from_stored(arrays: Mapping[str, Array], n_joints: int) -> MotionView | None:
        """The record of `stored`; None where there is none."""
        if _RAW not in arrays or _FILTERED not in arrays:
            return None
        cuts = [1, 1 + n_joints]
        raw, filtered = (np.split(arrays[name], cuts) for name in (_RAW, _FILTERED))
        return MotionView(raw[0][0], raw[1].T, raw[2].T, filtered[0][0], filtered[1].T, filtered[2].T)


def motion_view(one: Observations) -> MotionView | None:
    """Look at a stretch of a log; None where it has too few rows to differentiate."""
    start = one.survey.start + min(_LEAD * one.survey.duration, _LATEST)
    stop = start + STRETCH_SECONDS
    blocks = list(takewhile(lambda block: block.time[0] <= stop, one.log.blocks()))
    time = np.concatenate([block.time for block in blocks])
    q = np.concatenate([joint_positions(block, one.robot) for block in blocks])
    fresh = np.concatenate([[True], np.diff(time) > 0.0])  # a stamp twice has no difference
    own = fresh & (time >= start) & (time <= stop)
    time, q = time[own], q[own]
    if len(time) < 3:
        return None
    velocity = np.diff(q, axis=0) / np.diff(time)[:, None]
    acceleration = np.diff(velocity, axis=0) / (0.5 * (time[2:] - time[:-2]))[:, None]
    parts = [
        (inside, motion.time, motion.dq, motion.ddq)
        for motion in takewhile(lambda motion: motion.time[0] <= stop, one.motion(()))
        if (inside := (motion.time >= start) & (motion.time <= stop)).any()
    ]
    if not parts:
        return None
    filtered = [np.concatenate([part[k][part[0]] for part in parts]) for k in (1, 2, 3)]
    return MotionView(time[1:-1], velocity[1:], acceleration, *filtered)


@record
class ReportData:
    """Plots of logs that were used.

    Attributes:
        traces: Measured and predicted torque of training and validation logs, by label, thinned.
        motion: Derivatives of a stretch of the first training log, raw and filtered; None where it is too short.
    """

    traces: Mapping[str, Trace] = field(default_factory=dict)
    motion: MotionView | None = None

    def save(self, path: str | Path) -> None:
        """Write `report.npz` beside a fit that was saved there, which it belongs to; see `load_report_data`."""
        write_bytes(_beside(path), self.packed(settled(fit_path(path)).read_bytes()))

    def packed(self, text: bytes) -> bytes:
        """What `report.npz` holds beside a fit with this text."""
        arrays = {} if self.motion is None else self.motion.stored()
        for number, trace in enumerate(self.traces.values()):
            arrays[f"trace{number}"] = np.vstack([trace.time, trace.measured.T, trace.predicted.T])
        named = {"labels": np.array(tuple(self.traces), dtype=str), "text": _digest(text)}
        return sealed_archive(_PLOTS, {**arrays, **named})


@keywords(IdentifyOptions)
def identify_with_plots(
    robot: Robot, logs: LogSource | Sequence[LogSource], options: IdentifyOptions
) -> tuple[Fit, ReportData]:
    """`identify`, and what the plots of a report show of the logs."""
    fit, data, validation = run_pipeline(robot, logs, options)
    return fit, ReportData(validation.traces, motion_view(data.train[0]))


@reader("data of a report", FitFileError)
def load_report_data(path: str | Path) -> ReportData | None:
    """The plots that belong to a stored fit; None where there are none, or those of another fit.

    Fits of format 1 have them among their own arrays.

    Args:
        path: The fit.yaml, or its folder.

    Raises:
        FitFileError: When the file of the plots is damaged.
    """
    file, beside = settled(fit_path(path)), settled(_beside(path))
    text = _digest(_text(file).encode())
    source = beside if beside.is_file() else settled(file.with_suffix(".npz"))
    try:
        arrays = read_sealed(source, _PLOTS) if source is beside else read_npz(source)
        if not np.array_equal(arrays["text"], text):
            return None
        labels = [str(one) for one in arrays["labels"]] if "labels" in arrays else _labels(file, arrays)
        traces = {label: _trace(arrays[f"trace{number}"]) for number, label in enumerate(labels)}
        n_joints = (len(arrays["motion_raw"]) - 1) // 2 if "motion_raw" in arrays else 0
        motion = MotionView.from_stored(arrays, n_joints)
    except Exception as error:  # a damaged file can make any part of it fail
        raise FitFileError(f"{source}: is damaged ({reason_of(error)}); remove it, or identify again") from error
    return None if not traces and motion is None else ReportData(traces, motion)


def _beside(path: str | Path) -> Path:
    file = fit_path(path)
    return file.with_name("report.npz" if file.stem == "fit" else f"{file.stem}_report.npz")


def _digest(text: bytes) -> Array:
    """Hash of the text of a fit, by which files of one run are known."""
    return np.frombuffer(hashlib.sha256(text).digest(), dtype=np.uint8)


def _text(file: Path) -> str:
    return read_text(file, limits.LIMITS.record_bytes, "a fit")


def _labels(file: Path, arrays: Mapping[str, Array]) -> list[str]:
    """Labels of the traces in a fit of format 1."""
    if "trace0" not in arrays:
        return []
    data = parse_record(_text(file))
    return [str(label) for label in data["traces"]]


def _trace(stored: Array) -> Trace:
    if stored.ndim != 2 or len(stored) % 2 == 0:
        raise ValueError(f"a trace has shape {stored.shape}")
    n_joints = (len(stored) - 1) // 2
    time, measured, predicted = np.split(stored, [1, 1 + n_joints])
    return Trace(time[0], measured.T, predicted.T)
