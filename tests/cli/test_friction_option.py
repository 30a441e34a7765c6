from __future__ import annotations

import json

import pytest
import yaml

import dynident as di
from dynident.cli.command_line import main
from tests.estimate.test_friction_view import friction_log


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    di.write_log(friction_log(di.load_robot("pendulum-2"), 1), path)
    return str(path)


def identify(log, out, capsys, *more):
    code = main(["identify", "pendulum-2", log, "-o", str(out), "--delay", "0", *more])
    return code, capsys.readouterr()


def test_json_has_the_friction(log, tmp_path, capsys):
    code, captured = identify(log, tmp_path / "out", capsys, "--friction", "stop(0.001)", "--json")
    assert code == 0
    found = json.loads(captured.out)
    assert found["friction"]["terms"] == ["stop(0.001)"]
    assert found["friction"]["reason"] == "friction terms as given"
    assert found["friction_drift"] == []
    equivalent = found["equivalent_friction"]
    assert [one["joint"] for one in equivalent] == ["joint1", "joint2"]
    assert equivalent[0]["viscous"] == pytest.approx(1.5, rel=0.05)
    stored = yaml.safe_load((tmp_path / "out" / "fit.yaml").read_text())
    assert stored["friction"] == found["friction"]
    report = (tmp_path / "out" / "report.html").read_text()
    assert "--friction &#x27;stop(0.001)&#x27;" in report  # how to make it again


def test_basic(log, tmp_path, capsys):
    code, captured = identify(log, tmp_path / "out", capsys, "--friction", "basic", "--table")
    assert code == 0
    assert "Friction as in the basic model, as asked for." in captured.out
    assert not [name for name in di.load_fit(tmp_path / "out").names if name.startswith(("stop", "load"))]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("atuo", "unknown friction 'atuo'; did you mean 'auto'?"),
        ("lod", "unknown friction 'lod'; did you mean 'load'?"),
        ("", "unknown friction ''"),
        ("stopp(0.003),load", "unknown term 'stopp'; did you mean 'stop'?"),
        ("auto,load", "auto is a recipe and stands alone, or list terms"),
        ("stop", "needs a radius"),
        ("stop(0)", "expected a positive number"),
        ("load,load", "term load is given twice"),
    ],
)
def test_bad_values(given, words, tmp_path, capsys):
    """Refused before logs are looked at, which here are not there."""
    code, captured = identify("missing.csv", tmp_path / "out", capsys, f"--friction={given}")
    assert code == 2
    assert words in captured.err
    assert not (tmp_path / "out").exists()


def test_help_says_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["identify", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("--friction WHICH", "auto", "basic", "generic", "full", "stribeck"):
        assert words in shown
