"""`di.plots`: figures for notebooks and papers, drawn with matplotlib (`pip install matplotlib`).

Each function returns a `matplotlib.figure.Figure`, which a notebook shows and `savefig` writes. The report of a fit
(`di.report`) shows the same and more, without matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array, place_of
from dynident.errors import InputError
from dynident.estimate.fit import Fit
from dynident.estimate.torque_errors import Trace
from dynident.logs.log import LogSource, joint_positions
from dynident.motion.trajectory import Trajectory
from dynident.report.charts import shown_time
from dynident.report.text import percent, position_units, torque_units
from dynident.validation.residuals import LogErrors, compare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURED, _PREDICTED, _RESIDUAL = "#93a1ae", "#00508c", "#b34700"
_ROW_INCHES, _WIDTH_INCHES = 1.9, 9.0
_BINS, _STDS = 60, 4.5  # of a histogram; what lies beyond is in its outermost bins
_POINTS = 1000  # of a motion


def torque(fit: Fit, log: LogSource, joints: Sequence[str] | None = None) -> Figure:
    """Measured and predicted torque of a log over time, a row for each joint, with the residual.

    Both are low-passed in the band of the fit; the prediction takes position and time only.

    Args:
        fit: The fit.
        log: A log with torque; best one that was not used for fitting.
        joints: Joints to show; default all.
    """
    found = _compare(fit, log)
    errors = dict(zip(fit.robot.joint_names, found.errors[0].per_joint.tolist(), strict=True))

    def draw(axes: Axes, j: int, unit: str) -> None:
        name, time, trace = fit.robot.joint_names[j], shown_time(found.trace.time), found.trace
        axes.plot(time, trace.measured[:, j], color=_MEASURED, linewidth=3.0, label="measured")
        axes.plot(time, trace.predicted[:, j], color=_PREDICTED, linewidth=1.0, label="predicted")
        axes.plot(time, _residual(trace)[:, j], color=_RESIDUAL, linewidth=0.8, label="residual")
        axes.set_ylabel(f"{name} [{unit}]")
        axes.set_title(f"error {percent(errors[name])}", loc="right", fontsize="small")

    figure = _rows(fit, joints, draw, "time [s]")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, fontsize="small")
    return figure


def residuals(fit: Fit, log: LogSource, joints: Sequence[str] | None = None) -> Figure:
    """Residual of a log over time and its histogram beside the Gaussian of the same standard deviation.

    Args:
        fit: The fit.
        log: A log with torque.
        joints: Joints to show; default all.
    """
    trace = _compare(fit, log).trace
    places = _places(fit, joints)
    figure = _figure(len(places))
    grid = figure.subplots(len(places), 2, squeeze=False, width_ratios=(3, 1), sharex="col")
    for (left, right), j in zip(grid, places, strict=True):
        own, unit = _residual(trace)[:, j], torque_units(fit.robot)[j]
        left.plot(shown_time(trace.time), own, color=_RESIDUAL, linewidth=0.8)
        left.set_ylabel(f"{fit.robot.joint_names[j]} [{unit}]")
        std = max(float(own.std()), 1e-300)
        x = np.linspace(-_STDS, _STDS, 200)
        right.hist(np.clip(own / std, -_STDS, _STDS), bins=_BINS, density=True, color=_MEASURED)
        right.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi), color=_PREDICTED)
        right.set_title(f"std {std:.3g} {unit}", fontsize="small", loc="right")
    grid[-1][0].set_xlabel("time [s]")
    grid[-1][1].set_xlabel("residual [std]")
    return figure


def friction(fit: Fit, joints: Sequence[str] | None = None) -> Figure:
    """Friction torque against velocity: the training data as dots, the model in steady motion as a line.

    Args:
        fit: A fit with friction among its terms.
        joints: Joints to show; default all.
    """
    view = fit.friction_view
    if view is None:
        raise InputError("this fit keeps no view of its friction; identify again, with friction among the terms")
    places = _places(fit, joints)
    columns = min(3, len(places))
    rows = -(-len(places) // columns)
    figure = _figure(rows, height=2.8)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, j in zip(grid, places, strict=False):
        unit = torque_units(fit.robot)[j]
        axes.plot(view.points[0, j], view.points[1, j], ".", color=_MEASURED, markersize=2.0, label="measured")
        axes.plot(view.velocity[j], view.curve[j], color=_PREDICTED, label="model")
        axes.set_title(fit.robot.joint_names[j], fontsize="small")
        axes.set_xlabel(f"velocity [{position_units(fit.robot)[j]}/s]")
        axes.set_ylabel(f"friction [{unit}]")
    for axes in grid[len(places) :]:
        axes.set_visible(False)
    grid[0].legend(fontsize="small")
    return figure


def motion(what: Trajectory | LogSource, robot: Any = None) -> Figure:
    """Positions over time of a log, or position, velocity and acceleration of a trajectory.

    Args:
        what: A trajectory (`di.load_trajectory`, `di.optimize_excitation(..).trajectory`), or a log.
        robot: The robot, whose joints a log names by number.
    """
    if isinstance(what, Trajectory):
        time = np.linspace(0.0, what.duration, _POINTS)
        return _motion_figure(time, what.sample(time), what.labels)
    if robot is None:
        raise InputError("motion of a log needs the robot: di.plots.motion(log, robot)")
    blocks = list(what.blocks())
    time = np.concatenate([block.time for block in blocks])
    q = np.concatenate([joint_positions(block, robot) for block in blocks])
    return _motion_figure(shown_time(time), (q,), robot.joint_names)


# ----------------------------------------------------------------------------------------------------------------------
# What they share.


def _compare(fit: Fit, log: LogSource) -> LogErrors:
    return compare([fit.model], fit.observe(log))


def _residual(trace: Trace) -> Array:
    return np.asarray(trace.measured - trace.predicted)


def _places(fit: Fit, joints: Sequence[str] | None) -> list[int]:
    names = fit.robot.joint_names
    given = [joints] if isinstance(joints, str) else joints
    return list(range(len(names))) if given is None else [place_of(name, names, "joint") for name in given]


def _rows(fit: Fit, joints: Sequence[str] | None, draw: Callable[[Axes, int, str], None], label: str) -> Figure:
    """A row for each joint over a common axis."""
    places = _places(fit, joints)
    figure = _figure(len(places))
    grid = figure.subplots(len(places), 1, squeeze=False, sharex=True).ravel()
    for axes, j in zip(grid, places, strict=True):
        draw(axes, j, torque_units(fit.robot)[j])
    grid[-1].set_xlabel(label)
    return figure


def _motion_figure(time: Array, signals: Sequence[Array], names: Sequence[str]) -> Figure:
    """Position and its derivatives, all joints together."""
    figure = _figure(len(signals), height=2.4)
    grid = figure.subplots(len(signals), 1, squeeze=False, sharex=True).ravel()
    labels = ("position [rad or m]", "velocity [rad/s or m/s]", "acceleration [rad/s² or m/s²]")
    for axes, signal, label in zip(grid, signals, labels, strict=False):
        axes.plot(time, signal, linewidth=1.0)
        axes.set_ylabel(label)
    grid[-1].set_xlabel("time [s]")
    grid[0].legend(names, loc="upper right", ncols=min(4, len(names)), fontsize="small")
    return figure


def _figure(rows: int, *, height: float = _ROW_INCHES) -> Figure:
    """An empty figure. It belongs to no window, so that nothing needs a display, or to be closed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need matplotlib: pip install matplotlib") from None
    return Figure(figsize=(_WIDTH_INCHES, max(2.6, height * rows)), layout="constrained")
