"""The stretch that the report shows: differences of the log beside the filtered motion."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.report.plot_data import STRETCH_SECONDS, MotionView, motion_view
from dynident.signals.observations import observe


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


def log_of(time, noise=0.0):
    q = np.column_stack([np.sin(2.0 * time), 0.5 * np.cos(3.0 * time)])
    q += noise * np.random.default_rng(0).normal(size=q.shape)
    return di.Log("made", "0" * 64, time, {"q1": q[:, 0], "q2": q[:, 1], "tau1": 0 * time, "tau2": 0 * time})


def test_both_follow_the_motion_and_filtering_is_the_quieter_one(robot):
    view = motion_view(observe(log_of(np.arange(0.0, 20.0, 0.005), 1e-5), robot))
    assert view.time[0] >= 2.0
    assert np.ptp(view.time) == pytest.approx(STRETCH_SECONDS, abs=0.05)
    np.testing.assert_allclose(view.velocity[:, 0], 2.0 * np.cos(2.0 * view.time), atol=0.02)
    np.testing.assert_allclose(view.acceleration[:, 1], -4.5 * np.cos(3.0 * view.time), atol=0.1)
    raw = np.abs(view.raw_acceleration[:, 1] + 4.5 * np.cos(3.0 * view.raw_time)).max()
    filtered = np.abs(view.acceleration[:, 1] + 4.5 * np.cos(3.0 * view.time)).max()
    assert raw > 5.0 * filtered


def test_it_is_stored_and_read_again(robot):
    view = motion_view(observe(log_of(np.arange(0.0, 20.0, 0.005)), robot))
    again = MotionView.from_stored(view.stored(), 2)
    for name in MotionView.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(view, name), getattr(again, name))
    assert MotionView.from_stored({}, 2) is None


def test_repeated_stamps_make_no_infinite_velocity(robot):
    time = np.repeat(np.arange(0.0, 20.0, 0.01), 2)
    view = motion_view(observe(log_of(time), robot))
    assert np.isfinite(view.raw_velocity).all()
    assert np.abs(view.raw_velocity).max() < 2.1


def test_it_is_kept_beside_the_fit_and_the_report_shows_it(robot, tmp_path):
    from dynident.report.fit import report_html
    from dynident.report.plot_data import identify_with_plots, load_report_data
    from tests.report.test_page import make_log

    fit, plots = identify_with_plots(robot, [make_log(robot, 1)], friction="basic", check="off")
    fit.save(tmp_path)
    assert load_report_data(tmp_path) is None
    plots.save(tmp_path)
    stored = load_report_data(tmp_path)
    np.testing.assert_array_equal(stored.motion.raw_velocity, plots.motion.raw_velocity)
    assert list(stored.traces) == list(plots.traces)
    (trace,), (again,) = plots.traces.values(), stored.traces.values()
    assert again.measured.shape == again.predicted.shape == (len(trace.time), 2)
    np.testing.assert_array_equal(again.predicted, trace.predicted)
    with np.load(tmp_path / "report.npz") as file:  # the format has time, then a line for each joint
        np.testing.assert_array_equal(file["trace0"], [trace.time, *trace.measured.T, *trace.predicted.T])
        np.testing.assert_array_equal(file["motion_filtered"][1:3], plots.motion.velocity.T)
    assert report_html(di.load_fit(tmp_path), stored).count("differences of positions") >= 4


def test_plots_of_another_fit_are_not_shown(robot, tmp_path):
    from dynident.report.plot_data import identify_with_plots, load_report_data
    from tests.report.test_page import make_log

    fit, plots = identify_with_plots(robot, [make_log(robot, 1)], friction="basic", check="off")
    fit.save(tmp_path / "mine.yaml")
    plots.save(tmp_path / "mine.yaml")
    assert load_report_data(tmp_path / "mine.yaml") is not None
    fit.replace(notes=("another",)).save(tmp_path / "mine.yaml")
    assert load_report_data(tmp_path / "mine.yaml") is None
    plots.save(tmp_path / "mine.yaml")
    whole = (tmp_path / "mine_report.npz").read_bytes()
    for length in (0, 10, len(whole) // 2):
        (tmp_path / "mine_report.npz").write_bytes(whole[:length])
        with pytest.raises(di.FitFileError, match=r"mine_report\.npz: is damaged .*; remove it, or identify again"):
            load_report_data(tmp_path / "mine.yaml")
