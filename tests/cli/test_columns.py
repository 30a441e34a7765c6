"""Columns on the command line: the table of what was understood, proposals, and what a fit remembers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from tests.cli.fits import ARM, FIRST, PLAIN_WORDS, SECOND, answer, complaint

RENAMED = {"t": "stamp"}
RENAMED |= {f"q{k}": f"angle-{k}" for k in range(1, 7)} | {f"i{k}": f"current-{k}" for k in range(1, 7)}
COLUMNS: dict[str, object] = {name: channel for channel, name in RENAMED.items() if channel[0] != "q"}
COLUMNS |= {name: {"column": channel, "unit": "deg"} for channel, name in RENAMED.items() if channel[0] == "q"}


def renamed(source: str, target: Path, names: dict[str, str], scale: float = 1.0) -> str:
    """A log of the demo with other names; positions times `scale`."""
    head, *rows = gzip.decompress(Path(source).read_bytes()).decode().splitlines()
    channels = head.split(",")
    numbers = np.array([row.split(",") for row in rows], dtype=float)
    numbers[:, [channel[0] == "q" for channel in channels]] *= scale
    header = ",".join(names.get(channel, channel) for channel in channels)
    np.savetxt(target, numbers, delimiter=",", header=header, comments="", fmt="%.17g")
    return str(target)


class TestTable:
    def test_what_was_understood_is_printed(self, tmp_path, capsys):
        zero = {f"{kind}{k}": f"{kind}{k - 1}" for kind in ("q", "i") for k in range(1, 7)}
        log = renamed(FIRST, tmp_path / "log.csv", zero)
        assert main(["check", ARM, log]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        names = [joint.name for joint in di.load_robot(ARM).joints]
        assert ["q0", "q1", names[0], "rad"] in lines
        assert ["i5", "i6", names[5], "A"] in lines
        (rows,) = answer(capsys, "check", ARM, log)["columns"].values()
        assert {"name": "q2", "channel": "q3", "joint": names[2], "unit": "rad"} in rows

    def test_plain_names_need_no_table(self, capsys):
        assert main(["check", ARM, FIRST]) == 0
        assert "name in the file" not in capsys.readouterr().out


class TestProposal:
    def test_beside_a_refusal(self, tmp_path, capsys):
        names = {f"q{k}": f"actual_q_{k if k == 6 else k - 1}" for k in range(1, 7)}  # one is left out
        log = renamed(FIRST, tmp_path / "log.csv", names | {"t": "timestamp"})
        out = tmp_path / "columns.yaml"
        assert main(["check", ARM, log, "-o", str(out), "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert found["verdict"] == "stop"
        text = out.read_text()
        assert "counts from 0, but of 0 to 6 only 6 are there" in text
        assert yaml.safe_load(text)["i1"] == "i1"

    def test_beside_an_error(self, tmp_path, capsys):
        log = renamed(FIRST, tmp_path / "log.csv", RENAMED)
        out = tmp_path / "columns.yaml"
        assert "has no time column" in complaint(capsys, "check", ARM, log, "-o", str(out))
        assert "# ? angle-1: channel" in out.read_text()

    def test_without_a_robot(self, tmp_path, capsys):
        log = renamed(FIRST, tmp_path / "log.csv", {"i6": "wrist"})
        assert main(["check", log, "-o", str(tmp_path / "columns.yaml")]) == 0
        assert "# ? wrist: channel" in (tmp_path / "columns.yaml").read_text()
        assert "--output needs a robot" in complaint(capsys, "check", FIRST, "-o", str(tmp_path / "other.yaml"))


@pytest.fixture(scope="module")
def remembered(tmp_path_factory):
    """A fit from a log in degrees with names of its own, made with a column file; the fit of the plain log."""
    folder = tmp_path_factory.mktemp("remembered")
    (folder / "columns.yaml").write_text(yaml.safe_dump(COLUMNS))
    log = renamed(FIRST, folder / "log.csv", RENAMED, 180.0 / np.pi)
    more = [*PLAIN_WORDS, "--band=6", "--quiet"]
    assert (
        main(["identify", ARM, log, "-o", str(folder / "own"), "--columns", str(folder / "columns.yaml"), *more]) == 0
    )
    assert main(["identify", ARM, FIRST, "-o", str(folder / "plain"), *more]) == 0
    return folder


class TestMemory:
    def test_validate_and_predict_need_no_columns(self, remembered, capsys):
        other = renamed(SECOND, remembered / "other.csv", RENAMED, 180.0 / np.pi)
        own = answer(capsys, "validate", str(remembered / "own"), other)
        plain = answer(capsys, "validate", str(remembered / "plain"), SECOND)
        assert own["relative_error"] == pytest.approx(plain["relative_error"], rel=1e-6)
        answer(capsys, "predict", str(remembered / "own"), other, "-o", str(remembered / "torque.csv"))
        answer(capsys, "predict", str(remembered / "own"), other, "-o", str(remembered / "torque.csv.gz"))
        packed = (remembered / "torque.csv.gz").read_bytes()
        assert gzip.decompress(packed) == (remembered / "torque.csv").read_bytes()
        # Plain names still are what they are.
        again = answer(capsys, "validate", str(remembered / "own"), SECOND)
        assert again["relative_error"] == pytest.approx(plain["relative_error"], rel=1e-6)

    def test_the_robot_of_the_fit_carries_them(self, remembered):
        fit = di.load_fit(remembered / "own")
        assert dict(fit.robot.columns["angle-3"]) == {"column": "q3", "unit": "deg"}

    def test_an_absent_column_is_an_error(self, remembered, capsys):
        words = ["identify", ARM, FIRST, "-o", str(remembered / "no"), "--columns", str(remembered / "columns.yaml")]
        assert "has no column 'angle-1', which" in complaint(capsys, *words)
        assert not (remembered / "no").exists()
