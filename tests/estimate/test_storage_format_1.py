"""Fits that version 0.3.0 wrote, in "dynident fit 1", are read as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from dynident.deprecated import current_names
from dynident.report.fit import report_html
from dynident.report.plot_data import load_report_data

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "fit_1"
NAMES = ["basic", "essential", "linearized", "subchain", "validated"]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def stored(name):
    return yaml.safe_load((FOLDER / name / "fit.yaml").read_text())


@pytest.fixture
def fit(name):
    return di.load_fit(FOLDER / name)


def log_of(name, robot):
    if name == "subchain":
        return di.read_log(ROOT / "examples" / "subchain" / "joints_2_3_5.csv.gz", robot)
    arm = ROOT / "examples" / "urdf"
    return di.read_log(arm / "validation.csv.gz", robot, columns=arm / "columns.yaml")


def test_values_and_deviations(fit, stored):
    assert stored["format"] == "dynident fit 1"
    rows = stored["parameters"]
    assert list(fit.names) == [row["name"] for row in rows]
    assert fit.beta.tolist() == [row["value"] for row in rows]
    assert [row["std"] for row in fit.rows()] == [row["std"] for row in rows]
    assert [row["white_std"] for row in fit.rows()] == [row["white_std"] for row in rows]
    assert (fit.rank, fit.condition, fit.band) == (stored["rank"], stored["condition"], stored["band"])
    assert fit.sigma.tolist() == stored["residual"]["sigma"]
    assert fit.inflation.tolist() == stored["residual"]["inflation"]
    assert fit.covariance_kind == stored["deviations"]


def test_records(fit, stored):
    assert fit.estimator.as_dict() == stored["estimator"]
    assert [one.as_dict() for one in fit.data] == stored["data"]
    assert [one.as_dict() for one in fit.held_out] == stored["held_out"]
    assert fit.cross_validation.as_dict() == stored["cross_validation"]
    assert {label: one.relative for label, one in fit.validation.items()} == {
        label: one["relative_error"] for label, one in stored["validation"].items()
    }
    assert fit.diagnosis.as_dict() == stored["check"]
    assert fit.provenance.as_dict() == stored["provenance"]
    assert [one.as_dict() for one in fit.eliminated] == stored.get("eliminated", [])
    assert (None if fit.selection is None else fit.selection.as_dict()) == stored.get("friction")
    assert fit.command == stored["provenance"]["command"]


def test_each_is_of_another_kind():
    fits = {name: di.load_fit(FOLDER / name) for name in NAMES}
    assert fits["essential"].eliminated
    assert fits["linearized"].reference is not None
    assert fits["basic"].reference is None
    assert fits["subchain"].robot.locked
    assert fits["validated"].validation


def test_predictions(name, fit):
    with np.load(FOLDER / "predicted.npz") as expected:
        np.testing.assert_allclose(fit.predict(log_of(name, fit.robot))[::50], expected[name], rtol=1e-9, atol=1e-12)


def test_plots_and_report(name, fit, stored, tmp_path):
    data = load_report_data(FOLDER / name)
    assert list(data.traces) == stored["traces"]
    assert data.motion is not None
    page = report_html(fit, data)
    assert page.count(">Torque of ") == len(stored["traces"]) * len(fit.robot.joint_names)
    assert "Raw and filtered derivatives" in page
    assert main(["report", str(FOLDER / name), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert (tmp_path / "page.html").read_text() == page


def test_saved_again_it_is_of_today(fit, stored, tmp_path):
    fit.save(tmp_path)
    again = yaml.safe_load((tmp_path / "fit.yaml").read_text())
    assert again["format"] == "dynident fit 2"
    assert list(again) == list(stored)
    moved = ("format", "robot_file", "robot")  # and where files lie
    stored = stored | {"signals": current_names(stored["signals"])}
    assert {key: value for key, value in again.items() if key not in moved} == {
        key: value for key, value in stored.items() if key not in moved
    }
    assert np.array_equal(di.load_fit(tmp_path).covariance, fit.covariance)
