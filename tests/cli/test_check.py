"""`dynident check` and what `identify` makes of it: preview, verdicts, overlay, refusal."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from dynident.pipeline.identification import identify

DEMO = Path(__file__).parents[2] / "examples" / "demo"
ROBOT, LOG = DEMO / "arm.yaml", DEMO / "fourier_1.csv.gz"


def rewritten(path: Path, change) -> Path:
    """The demo's log with its columns changed by name."""
    head, *rows = gzip.decompress(LOG.read_bytes()).decode().splitlines()
    names = head.split(",")
    numbers = np.array([row.split(",") for row in rows], dtype=float)
    columns = dict(zip(names, numbers.T, strict=True))
    change(columns)
    rows = np.column_stack([columns[name] for name in names])
    np.savetxt(path, rows, delimiter=",", header=head, comments="", fmt="%.12g")
    return path


def answer(capsys, *words) -> dict:
    code = main([*map(str, words), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == (found.get("verdict") == "stop")
    return found


def items(found: dict, verdict: str) -> dict[str, str]:
    return {one["name"]: one["message"] for one in found["items"] if one["verdict"] == verdict}


class TestPreview:
    def test_without_a_robot(self, capsys):
        (found,) = answer(capsys, "check", LOG)["logs"]
        assert found["samples"] > 1000
        assert found["kinds"]["q"] == [1, 2, 3, 4, 5, 6]

    def test_two_logs(self, capsys):
        assert len(answer(capsys, "check", LOG, DEMO / "fourier_2.csv.gz")["logs"]) == 2

    def test_the_page(self, capsys):
        assert main(["check", str(LOG)]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["ur10e"], "check needs a LOG behind the robot"),
            (["none.csv"], "no such file"),
            (["ur10e", "none.csv"], "no such file"),
            ([str(ROBOT), str(LOG), "-o", "overlay.txt"], "ends in .yaml"),
            ([str(ROBOT), str(LOG), "-o", str(ROBOT)], "is read by this command and would be overwritten"),
            ([str(ROBOT), str(LOG), "--band", "-1"], "--band"),
            ([str(LOG), "-o", "x.yaml"], "--output needs a robot"),
            ([str(LOG), "--band", "3"], "--band needs a robot"),
        ],
    )
    def test_bad_words(self, words, message, capsys):
        assert main(["check", *words]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert not captured.out


class TestSoundLogs:
    def test_nothing_stops(self, capsys):
        found = answer(capsys, "check", ROBOT, LOG, DEMO / "fourier_2.csv.gz")
        assert found["verdict"] in ("ok", "warn")
        assert not items(found, "stop")
        assert {"time", "sign", "order", "units", "delay", "rank", "agreement", "bias"} <= items(found, "ok").keys()
        assert "fix" not in found

    def test_the_page_says_what_is_fine(self, capsys):
        assert main(["check", str(ROBOT), str(LOG)]) == 0
        page = capsys.readouterr().out
        assert "fine: time" in page
        assert max(map(len, page.splitlines())) <= 80

    def test_no_overlay_where_nothing_is_wrong(self, tmp_path, capsys):
        assert main(["check", str(ROBOT), str(LOG), "-o", str(tmp_path / "o.yaml")]) == 0
        assert "was not written" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())

    def test_a_fit_keeps_what_was_found(self, tmp_path, capsys):
        fit = answer(capsys, "identify", ROBOT, LOG, "-o", tmp_path / "fit", "--friction", "basic")
        stored = di.load_fit(tmp_path / "fit")
        assert stored.diagnosis.severity in ("ok", "warn")
        assert '<section id="check"' in (tmp_path / "fit" / "report.html").read_text()
        assert fit["rank"] == stored.rank


def wrong(columns: dict) -> None:
    """Torque of joint 2 with the wrong sign, position of joint 3 in degrees."""
    columns["i2"] = -columns["i2"]
    columns["q3"] = np.degrees(columns["q3"])


class TestMistakes:
    def test_found_named_and_corrected(self, tmp_path, capsys):
        log = rewritten(tmp_path / "wrong.csv", wrong)
        overlay = tmp_path / "corrected.yaml"
        found = answer(capsys, "check", ROBOT, log, "-o", overlay)
        stops = items(found, "stop")
        assert found["verdict"] == "stop"
        assert stops["sign"].startswith("torque of joint 2 has the wrong sign")
        assert stops["units"].startswith("position of joint 3 is in degrees")
        assert yaml.safe_load(overlay.read_text())["columns"] == {
            "q3": {"column": "q3", "unit": "deg"},
            "i2": {"column": "i2", "scale": -1.0},
        }
        corrected, sound = di.load_robot(overlay), di.load_robot(ROBOT)
        then = identify(corrected, di.read_log(log, corrected), friction="basic")
        clean = identify(sound, di.read_log(LOG, sound), friction="basic")
        np.testing.assert_allclose(then.beta, clean.beta, rtol=1e-6, atol=1e-9)
        assert then.diagnosis.severity != "stop"

    def test_identify_refuses_and_writes_nothing(self, tmp_path, capsys):
        log = rewritten(tmp_path / "wrong.csv", wrong)
        assert main(["identify", str(ROBOT), str(log), "-o", str(tmp_path / "fit")]) == 2
        printed = capsys.readouterr().err
        assert "not fit for identification" in printed
        assert "--check=warn" in printed
        assert printed.count("\n") == 1
        assert not (tmp_path / "fit").exists()

    def test_identify_goes_on_if_asked_to(self, tmp_path, capsys):
        log = rewritten(tmp_path / "wrong.csv", wrong)
        words = ("identify", ROBOT, log, "--friction", "basic")
        printed = answer(capsys, *words, "-o", tmp_path / "warned", "--check", "warn")
        assert any("wrong sign" in one for one in printed["warnings"])
        quiet = answer(capsys, *words, "-o", tmp_path / "quiet", "--check", "off")
        assert not any("wrong sign" in one for one in quiet["warnings"])
        assert di.load_fit(tmp_path / "quiet").diagnosis is None
        assert "--check warn" in (tmp_path / "warned" / "report.html").read_text()

    def test_the_error_carries_the_check_up(self, tmp_path):
        robot = di.load_robot(ROBOT)
        log = di.read_log(rewritten(tmp_path / "wrong.csv", wrong), robot)
        with pytest.raises(di.diagnostics.DiagnosisError) as error:
            identify(robot, log)
        assert error.value.diagnosis.severity == "stop"
        with pytest.raises(di.InputError, match="check: unknown choice"):
            identify(robot, log, check="maybe")

    def test_a_log_that_cannot_be_read_is_an_item(self, tmp_path, capsys):
        def backwards(columns):
            columns["t"][500] = columns["t"][400]

        found = answer(capsys, "check", ROBOT, rewritten(tmp_path / "wrong.csv", backwards))
        assert "runs backwards" in items(found, "stop")["time"]
        assert "put right" in items(found, "warn")["model"]

    def test_an_overlay_stands_beside_its_robot(self, tmp_path, capsys):
        (tmp_path / "arm.yaml").write_bytes(ROBOT.read_bytes())
        log = rewritten(tmp_path / "wrong.csv", wrong)
        answer(capsys, "check", tmp_path / "arm.yaml", log, "-o", tmp_path / "corrected.yaml")
        assert yaml.safe_load((tmp_path / "corrected.yaml").read_text())["base"] == "arm.yaml"


@pytest.mark.parametrize("words", [[ROBOT, LOG], [LOG]], ids=["robot", "preview"])
def test_quiet_prints_nothing(words, tmp_path, capsys):
    page = tmp_path / "check.html"
    assert main(["check", *map(str, words), "--report", str(page), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert "fourier_1" in page.read_text()


def test_a_column_without_a_number_is_json_too(tmp_path, capsys):
    t = np.arange(0.0, 4.0, 0.01)
    channels = {f"q{j}": np.sin((1 + j) * t) for j in (1, 2)} | {f"tau{j}": np.cos((1 + j) * t) for j in (1, 2)}
    channels["q1"] = np.full(len(t), np.nan)
    path = tmp_path / "nan.csv"
    np.savetxt(
        path, np.column_stack([t, *channels.values()]), delimiter=",", header=",".join(["t", *channels]), comments=""
    )
    assert main(["check", "pendulum-2", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "stop"
    assert "NaN" not in json.dumps(found)
