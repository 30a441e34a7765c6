"""`dynident payload` from files to an answer."""

from __future__ import annotations

import json

import pytest

import dynident as di
from dynident.cli.fits import PayloadArguments, run_payload
from dynident.logs.write import write_log
from tests.payload.payloads import BODY, arm, made_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fit, a loaded and an unloaded log."""
    folder, robot = tmp_path_factory.mktemp("payload"), arm()
    di.identify(robot, made_log(robot, 1), friction="basic").save(folder / "fit")
    write_log(made_log(robot, 2, load=BODY, motion=2), folder / "loaded.npz")
    write_log(made_log(robot, 3, motion=2), folder / "unloaded.npz")
    return folder


def options(folder, **changes):
    given = {"fit": str(folder / "fit"), "logs": (str(folder / "loaded.npz"),), "json": True}
    return PayloadArguments(**(given | changes))


@pytest.mark.parametrize("unloaded", [False, True], ids=["loaded", "joint"])
def test_the_answer(folder, capsys, unloaded):
    assert run_payload(options(folder, unloaded=[str(folder / "unloaded.npz")] if unloaded else [])) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"frame", "estimates", "method", "session", "notes", "warnings"}
    names = [one["name"] for one in answer["estimates"]]
    assert names == ["mass", "cx", "cy", "cz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"]
    mass = answer["estimates"][0]
    assert set(mass) == {"name", "value", "std", "unit"}
    assert mass["value"] == pytest.approx(BODY.mass, abs=3.5 * mass["std"])
    assert mass["unit"] == "kg"
    assert answer["warnings"] == []


def test_the_page(folder, capsys):
    assert run_payload(options(folder, json=False, logs=[str(folder / "unloaded.npz")])) == 0
    printed = capsys.readouterr()
    assert "Payload from loaded runs of puma560 as identified" in printed.out
    assert "withheld" in printed.out
    assert "are these logs of the loaded robot?" in printed.err


def test_a_window_and_a_band(folder, capsys):
    assert run_payload(options(folder, window="2:9", band=4.0)) == 0
    mass = json.loads(capsys.readouterr().out)["estimates"][0]
    assert mass["value"] == pytest.approx(BODY.mass, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fit": "nowhere"}, "no such file"),
        ({"band": -1.0}, "band is -1.0; expected a positive number"),
        ({"session": "warm"}, "session: unknown choice 'warm'"),
        ({"window": "50:60"}, "no sample lies between"),
    ],
)
def test_bad_input(folder, changes, message):
    with pytest.raises(di.DynidentError, match=message):
        run_payload(options(folder, **changes))
