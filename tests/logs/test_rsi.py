from __future__ import annotations

import gzip

import numpy as np
import pytest

import dynident as di
from dynident.logs.memory import LogWarning

N = 30


@pytest.fixture
def robot():
    return di.load_robot("kr5-planar")


@pytest.fixture
def signals():
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, N, 3)) * 10.0


def axes(tag, values):
    return f"<{tag} " + " ".join(f'A{i + 1}="{value!r}"' for i, value in enumerate(values.tolist())) + "/>"


def record(k, q, current):
    inner = axes("AIPos", q) + axes("ASPos", q + 1.0) + axes("MACur", current) + '<Delay D="0"/>'
    return f'<Rob Type="KUKA">\n<RIst X="1.0" Y="2.0"/>{inner}<IPOC>{4208163634 + 12 * k}</IPOC></Rob>'


def text(signals):
    answer = '\n<Sen Type="ImFree"><IPOC>4208163634</IPOC></Sen>\n'
    return answer.join(record(k, *row) for k, row in enumerate(zip(*signals, strict=True)))


def check(log, robot, signals, n=N):
    np.testing.assert_array_equal(log.time, np.arange(n) * 12 / 1e3)
    np.testing.assert_allclose(log.array("q", robot), np.radians(signals[0, :n]), rtol=1e-15)
    np.testing.assert_array_equal(log.array("i", robot), signals[1, :n])


def test_records_become_a_log(tmp_path, robot, signals):
    (tmp_path / "log.xml").write_text(text(signals))
    log = di.read_log(tmp_path / "log.xml", robot)
    check(log, robot, signals)
    assert log.unused[:3] == ("RIst.X", "RIst.Y", "ASPos.A1 [deg]")
    (tmp_path / "log.xml.gz").write_bytes(gzip.compress(text(signals).encode()))
    packed = di.read_log(tmp_path / "log.xml.gz", robot)
    check(packed, robot, signals)
    assert packed.digest == log.digest
    rules = {f"MACur.A{i}": {"column": f"tau{i}", "scale": 2} for i in (1, 2, 3)}
    torque = di.read_log(tmp_path / "log.xml", robot, columns=rules)
    np.testing.assert_array_equal(torque.array("tau", robot), 2 * signals[1])


def test_a_cut_record_is_left_out_and_said(tmp_path, robot, signals):
    (tmp_path / "log.xml").write_text(text(signals)[:-50])
    with pytest.warns(LogWarning, match="a record is cut off; the 29 complete ones are used"):
        check(di.read_log(tmp_path / "log.xml", robot), robot, signals, N - 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: "<a/>", "has no record <Rob"),
        (lambda s: s.replace("IPOC", "Time"), "record 1 has no time stamp <IPOC>"),
        (lambda s: s.replace('"0"', '"zero"', 1), "record 1 has no time stamp <IPOC>.*or a value is no number"),
        (lambda s: s.replace("<AIPos", "<AIPos <", 1), "record 1 is not valid XML"),
        (
            lambda s: s[:900] + s[900:].replace('<Delay D="0"/>', "", 1),
            r"record \d differs from the first in 'Delay\.D'",
        ),
        (lambda s: s.replace("<AIPos", '<!DOCTYPE x [<!ENTITY a "b">]><AIPos', 1), "record 1 is not valid XML"),
    ],
)
def test_bad_records_are_named(tmp_path, robot, signals, change, words):
    (tmp_path / "log.xml").write_text(change(text(signals)))
    with pytest.raises(di.LogError, match=rf"log\.xml: {words}"):
        di.read_log(tmp_path / "log.xml", robot)


def test_bombs_and_missing_files(tmp_path, robot):
    with pytest.raises(di.LogError, match="no such file"):
        di.read_log(tmp_path / "none.xml", robot)
    (tmp_path / "bomb.xml.gz").write_bytes(gzip.compress(b"<Rob>" * 20_000_000))
    with pytest.raises(di.LogError, match="that is no log"):
        di.read_log(tmp_path / "bomb.xml.gz", robot)
