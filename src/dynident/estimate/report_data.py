"""`ReportData`: what plots of a report show and a fit does not need; kept in an .npz beside the fit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import numpy as np

from dynident.arrays import Array, record
from dynident.estimate.accuracy import Trace
from dynident.estimate.motion_view import MotionView
from dynident.estimate.storage import FitFileError, fit_path
from dynident.files import write_whole


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
        arrays = {} if self.motion is None else self.motion.stored()
        for number, trace in enumerate(self.traces.values()):
            arrays[f"trace{number}"] = np.vstack([trace.time, trace.measured.T, trace.predicted.T])
        named = {"labels": np.array(tuple(self.traces), dtype=str), "text": _digest(fit_path(path))}
        write_whole(_beside(path), lambda file: np.savez(file, **arrays, **named))  # type: ignore[arg-type]


def load_report_data(path: str | Path) -> ReportData | None:
    """The plots that belong to a stored fit; None where there are none, or those of another fit.

    Fits of format 1 have them among their own arrays.

    Args:
        path: The fit.yaml, or its folder.

    Raises:
        FitFileError: When the file of the plots is damaged.
    """
    file, beside = fit_path(path), _beside(path)
    text = _digest(file)
    source = beside if beside.is_file() else file.with_suffix(".npz")
    try:
        with np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        if not np.array_equal(arrays["text"], text):
            return None
        labels = [str(one) for one in arrays["labels"]] if "labels" in arrays else _labels(file, arrays)
        traces = {label: _trace(arrays[f"trace{number}"]) for number, label in enumerate(labels)}
        n_joints = (len(arrays["motion_raw"]) - 1) // 2 if "motion_raw" in arrays else 0
        motion = MotionView.from_stored(arrays, n_joints)
    except Exception as error:  # a damaged header can make NumPy's reader raise anything
        raise FitFileError(f"{source}: is damaged ({error}); remove it, or identify again") from None
    return None if not traces and motion is None else ReportData(traces, motion)


def _beside(path: str | Path) -> Path:
    file = fit_path(path)
    return file.with_name("report.npz" if file.stem == "fit" else f"{file.stem}_report.npz")


def _digest(file: Path) -> Array:
    """Hash of the text of a fit, by which files of one run are known."""
    return np.frombuffer(hashlib.sha256(file.read_text(encoding="utf-8").encode()).digest(), dtype=np.uint8)


def _labels(file: Path, arrays: Mapping[str, Array]) -> list[str]:
    """Labels of the traces in a fit of format 1."""
    if "trace0" not in arrays:
        return []
    import yaml

    data = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return [str(label) for label in data["traces"]]


def _trace(stored: Array) -> Trace:
    if stored.ndim != 2 or len(stored) % 2 == 0:
        raise ValueError(f"a trace has shape {stored.shape}")
    n_joints = (len(stored) - 1) // 2
    time, measured, predicted = np.split(stored, [1, 1 + n_joints])
    return Trace(time[0], measured.T, predicted.T)
