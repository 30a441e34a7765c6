"""`identify --essential` on the demo's logs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main

DEMO = Path(__file__).parents[2] / "examples" / "demo"
ARM, LOG = str(DEMO / "arm.yaml"), str(DEMO / "fourier_1.csv.gz")
FIXED = ["--band", "6", "--delay", "0.004", "--velocity-source", "position"]


def answer(capsys, out, *more: str) -> dict:
    assert main(["identify", ARM, LOG, "-o", str(out), *FIXED, *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def fits():
    """The demo with all parameters, and with the essential ones."""
    robot = di.load_robot(ARM)
    log = di.read_log(LOG, robot)
    options = {"band": 6.0, "delay": 0.004, "velocity_source": "position", "friction": "basic"}
    return di.identify(robot, log, **options), di.identify(robot, log, essential=0.15, **options)


def test_the_command_keeps_essential_parameters_and_lists_the_others(tmp_path, capsys):
    plain = answer(capsys, tmp_path / "a", "--terms", "rigid,Ia,Fv,Fc(0.02),Fo")
    found = answer(capsys, tmp_path / "b", "--terms", "rigid,Ia,Fv,Fc(0.02),Fo", "--essential")
    assert plain["eliminated"] == []
    assert 10 < len(found["eliminated"]) < 40
    gone = {one["name"] for one in found["eliminated"]}
    for row in found["parameters"]:
        assert (row["value"] == 0.0) == (row["name"] in gone)
        if row["name"] not in gone:
            assert row["relative_std"] < 0.15
    assert found["rank"] == len(found["parameters"]) - len(gone)
    assert {"name", "value", "std", "relative_std", "residual", "reason"} <= set(found["eliminated"][0])
    note = next(note for note in found["notes"] if note.startswith("eliminated"))
    assert all(name in note for name in gone)
    assert found["train"]["relative_error"] < 1.15 * plain["train"]["relative_error"]
    assert "--essential 0.15" in (tmp_path / "b" / "report.html").read_text()
    again = di.load_fit(tmp_path / "b")
    assert [one.name for one in again.eliminated] == [one["name"] for one in found["eliminated"]]


def test_a_share_of_ones_own(tmp_path, capsys):
    some = answer(capsys, tmp_path, "--essential", "0.5")["eliminated"]
    more = answer(capsys, tmp_path, "--essential", "0.05")["eliminated"]
    assert len(some) < len(more)


@pytest.mark.parametrize("share", ["0", "-1", "nan"])
def test_a_share_that_is_none(tmp_path, capsys, share):
    assert main(["identify", ARM, LOG, "-o", str(tmp_path), f"--essential={share}"]) == 2
    assert "--essential is" in capsys.readouterr().err


def test_values_and_covariance_stand_for_the_data(fits):
    """A Fit alone tells nearly the same, and predicts."""
    plain, kept = fits
    found = di.estimate.essential_parameters(plain)
    theirs = {one.name for one in kept.eliminated}
    assert len(theirs ^ {one.name for one in found.eliminated}) <= 2
    assert found.fitted is None
    assert np.isnan(found.eliminated[0].residual)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 50, 6))
    ours, full = found.model.torque(q, dq, ddq), plain.model.torque(q, dq, ddq)
    assert 0.0 < np.linalg.norm(ours - full) < 0.02 * np.linalg.norm(full)


def test_an_essential_estimate_is_an_estimate_like_any_other(fits):
    plain, kept = fits
    assert kept.names == plain.names
    gone = [kept.names.index(one.name) for one in kept.eliminated]
    assert np.all(kept.std[gone] > 0.0)  # how far from zero they may be
    assert np.all(kept.beta[gone] == 0.0)
    assert kept.undetermined == ()
    held_out = di.read_log(DEMO / "wandering.csv.gz", kept.robot)
    assert di.validate(kept, held_out).relative_error < 1.15 * di.validate(plain, held_out).relative_error


def test_nothing_leaves_where_all_is_known(fits, monkeypatch):
    plain, _ = fits

    def all_kept(*given, **options):  # no log of the demo tells all 58 to 100 %
        return di.estimate.essential_parameters(*given, **options, keep=plain.names)

    monkeypatch.setattr(import_module("dynident.pipeline.fitting"), "essential_parameters", all_kept)
    robot = plain.robot
    log = di.read_log(LOG, robot)
    found = di.identify(robot, log, essential=1.0, band=6.0, delay=0.004, velocity_source="position")
    assert found.eliminated == ()
    np.testing.assert_allclose(found.beta, plain.beta, rtol=1e-8)
    assert any("all are essential" in note for note in found.notes)
