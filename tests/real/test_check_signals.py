"""The signals of logs of real robots, which are sound: nothing to stop for; skipped where the data is absent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.diagnostics.diagnosing import diagnose_signals
from dynident.diagnostics.log_preview import preview
from dynident.logs import Log, stream_log

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
LOGS = sorted(DATA.glob("*/*.csv.gz")) if DATA.exists() else []
CLAMPED = "schunk_lwa3/log_train"  # currents that a controller clamps are true, and taken for clipped ones
EXPECTED = {  # what is honest to warn of
    "dvrk_mtm/log_one": {"repeats", "quantisation", "velocity"},  # polled rows: repeats and skips
    "tiago_arm/log_a": {"quantisation"},  # currents of three joints are 1 mA steps around zero
    **{f"ur10e/single_joint_{j}": {"channels"} for j in range(1, 6)},  # the other joints stand
}


def robot_of(path: Path) -> di.Robot:
    if path.parent.name == "staubli_tx40":
        return di.load_robot("tx40")
    files = (path.parent / f"robot.{kind}" for kind in ("urdf", "yaml", "xml"))
    return di.load_robot(next(file for file in files if file.exists()))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name.removesuffix('.csv.gz')}"


def marked(path: Path) -> object:
    known = pytest.mark.xfail(strict=True, reason="clamped currents are taken for clipped ones")
    return pytest.param(path, id=name_of(path), marks=known if name_of(path) == CLAMPED else ())


@pytest.mark.parametrize("path", tuple(map(marked, LOGS)))
def test_sound_logs(path):
    robot = robot_of(path)
    found = diagnose_signals(stream_log(path, robot), robot)
    assert [item for item in found if item.severity == "stop"] == []
    assert {item.name for item in found if item.severity == "warn"} == EXPECTED.get(name_of(path), set())


def changed(path: Path, robot: di.Robot, **changes) -> Log:
    log = di.read_log(path, robot)
    time = changes.pop("t", log.time)
    channels = {name: changes.get(name, values) for name, values in log.channels.items()}
    return Log(log.source, "", time, channels)


MISTAKES = {
    "time": lambda log: {"t": log.time * 1e3},
    "numbers": lambda log: {"q2": np.where(np.arange(len(log)) == 500, np.nan, log.channels["q2"])},
    "velocity": lambda log: {"dq2": log.channels["dq3"], "dq3": log.channels["dq2"]},
    "saturation": lambda log: {
        name: np.clip(log.channels[name], *np.quantile(log.channels[name], [0.1, 0.9]))
        for name in ("tau2", "i2")
        if name in log.channels
    },
    "limits": lambda log: {"q1": np.degrees(log.channels["q1"])},
    "channels": lambda log: {f"{kind}3": np.zeros(len(log)) for kind in ("tau", "i")},
}


@pytest.mark.parametrize("name", ["franka_panda/log_a", "kuka_lwr4/log2", "tiago_arm/log_a", "ur10e/exc_30s_12h"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_sound_logs(name, mistake):
    path = DATA / f"{name}.csv.gz"
    robot = robot_of(path)
    wrong = changed(path, robot, **MISTAKES[mistake](di.read_log(path, robot)))
    found = {item.name for item in diagnose_signals(wrong, robot) if item.severity != "ok"}
    assert mistake in found
    assert found <= {mistake, *EXPECTED.get(name, set()), *({"velocity"} if mistake == "limits" else set())}


def test_preview_of_a_polled_stream():
    seen = preview(stream_log(DATA / "franka_panda" / "log_a.csv.gz"))
    assert 0.05 < seen.repeated_rows / seen.samples < 0.07
    assert seen.kinds == dict.fromkeys(("q", "dq", "tau"), tuple(range(1, 8)))
    by_name = {channel.name: channel for channel in seen.channels}
    assert by_name["tau1"].step == pytest.approx(0.0357, rel=0.01)
