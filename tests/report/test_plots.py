"""Figures for notebooks: what they show is what fit and log hold."""

from __future__ import annotations

import io

import numpy as np
import pytest

import dynident as di
from tests.cli.fits import FIRST, OTHER, fit_of

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def fit():
    return fit_of(FIRST)


@pytest.fixture(scope="module")
def log(fit):
    return di.read_log(OTHER, fit.robot)


def drawn(figure) -> int:
    """Bytes of the picture, without a display."""
    file = io.BytesIO()
    figure.savefig(file, dpi=40)
    return len(file.getvalue())


def test_torque_shows_measured_predicted_and_their_difference(fit, log):
    figure = di.plots.torque(fit, log)
    assert len(figure.axes) == 6
    for axes, name, error in zip(figure.axes, fit.robot.joint_names, di.validate(fit, log).per_joint, strict=True):
        measured, predicted, residual = (line.get_ydata() for line in axes.lines)
        np.testing.assert_allclose(measured - predicted, residual, atol=1e-12)
        assert axes.lines[0].get_xdata()[0] == 0.0
        assert axes.get_ylabel() == f"{name} [N·m]"
        share = float(axes.get_title(loc="right").removeprefix("error ").removesuffix(" %"))
        assert share == pytest.approx(100.0 * error, rel=5e-3)
    assert drawn(figure) > 5000


def test_residuals_of_some_joints(fit, log):
    figure = di.plots.residuals(fit, log, ["elbow", "wrist_1"])
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == ["elbow [N·m]", "wrist_1 [N·m]"]
    assert drawn(figure) > 3000
    with pytest.raises(di.UnknownNameError, match="did you mean 'elbow'"):
        di.plots.residuals(fit, log, ["elbwo"])


def test_friction_shows_data_and_model(fit):
    axes = di.plots.friction(fit, "elbow").axes[0]
    dots, line = axes.lines
    place = fit.robot.joint_names.index("elbow")
    np.testing.assert_array_equal(line.get_ydata(), fit.friction_view.curve[place])
    np.testing.assert_array_equal(dots.get_xdata(), fit.friction_view.points[0, place])
    with pytest.raises(di.InputError, match="no view of its friction"):
        di.plots.friction(fit.replace(friction_view=None))


def test_motion_of_a_trajectory_and_of_a_log(fit, log):
    joints = fit.robot.joint_names
    motion = di.trajectories.Sinusoid(
        joints=joints, start=np.zeros(6), amplitude=np.ones(6), frequency=np.ones(6), length=2
    )
    figure = di.plots.motion(motion)
    assert len(figure.axes) == 3
    assert len(figure.axes[0].lines) == 6
    (axes,) = di.plots.motion(log, fit.robot).axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), log.channels["q1"])
    with pytest.raises(di.InputError, match="needs the robot"):
        di.plots.motion(log)


def test_the_report_of_a_fit_in_memory_and_of_a_stored_one(fit, log, tmp_path):
    page = di.report(fit, tmp_path / "a.html", logs=log)
    text = page.read_text()
    assert "Torque over time" in text
    assert "report.npz that identify writes" not in text
    assert text.count('<path d="M') > 10
    fit.save(tmp_path / "fit")
    assert "report.npz that identify writes" in di.report(tmp_path / "fit", tmp_path / "b.html").read_text()
    with pytest.raises(di.InputError, match=r"ends in \.html"):
        di.report(fit, tmp_path / "a.pdf")
    with pytest.raises(di.InputError, match="does not exist"):
        di.report(fit, tmp_path / "no" / "a.html")
    assert "Pages and terminal tables" in di.report.__doc__
