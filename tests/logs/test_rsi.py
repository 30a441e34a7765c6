from __future__ import annotations

import gzip

import numpy as np
import pytest
import yaml

import dynident as di
from dynident.logs.log import joint_positions
from dynident.logs.tables import LogWarning

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


AXES = {"A2": 1, "A3": 2, "A5": 3}  # of the machine: joints of the planar model
PLANAR = {
    **{f"AIPos.A{k}": "unused" for k in (1, 4, 6)},
    **{f"MACur.A{k}": "unused" for k in (1, 4, 6)},
    **{f"AIPos.{axis}": {"column": f"q{joint}", "scale": -1} for axis, joint in AXES.items()},
    **{f"MACur.{axis}": {"column": f"tau{joint}", "scale": -1} for axis, joint in AXES.items()},
}


def machine_log(path, q, tau, held=(0.3, 1.0, -2.0)):
    """Six axes of a machine that counts the other way round; three of them braked [rad, N·m]."""
    six, currents = np.zeros((len(q), 6)), np.zeros((len(q), 6))
    six[:, [0, 3, 5]] = held
    six[:, [1, 2, 4]], currents[:, [1, 2, 4]] = -q, -tau
    path.write_text("\n".join(record(k, *row) for k, row in enumerate(zip(np.degrees(six), currents, strict=True))))
    return path


@pytest.fixture
def planar_run(robot):
    t = 0.012 * np.arange(900)[:, None]
    w = np.array([[1.1, 1.7, 2.9]])
    motion = 0.7 * np.sin(w * t), 0.7 * w * np.cos(w * t), -0.7 * w**2 * np.sin(w * t)
    return motion[0], di.inverse_dynamics(robot, *motion, "rigid,Fv,Fc(0.02)")


def test_axes_are_mapped_to_the_joints_of_a_planar_model(tmp_path, robot, planar_run):
    path = machine_log(tmp_path / "log.xml", *planar_run)
    log = di.read_log(path, robot, columns=PLANAR)
    np.testing.assert_allclose(log.array("q", robot), planar_run[0], atol=1e-12)
    np.testing.assert_array_equal(log.array("tau", robot), planar_run[1])
    assert log.warnings == ()
    fit = di.identify(robot, log, terms="rigid,Fv,Fc(0.02)")
    np.testing.assert_allclose(fit.beta[:9], fit.base.base_values()[:9], rtol=0.0, atol=0.05)  # moments as the paper's


def test_an_overlay_maps_them_for_all_logs(tmp_path, planar_run):
    """Where zero differs too, the axes are motors: q = qm + joint offset."""
    rules = {name: {**rule, "column": rule["column"].replace("q", "qm")} if isinstance(rule, dict) else rule
             for name, rule in PLANAR.items()}  # fmt: skip
    overlay = {"base": "kr5-planar", "joint_offsets": {"joint3": 0.25}, "columns": rules}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(overlay))
    robot = di.load_robot(tmp_path / "mine.yaml")
    q, tau = planar_run
    log = di.read_log(machine_log(tmp_path / "log.xml", q - [0.0, 0.25, 0.0], tau), robot)
    np.testing.assert_allclose(joint_positions(log, robot), q, atol=1e-12)
    np.testing.assert_array_equal(log.array("tau", robot), tau)


def test_an_axis_that_is_left_out_and_moves_is_named(tmp_path, robot, planar_run):
    turning = np.zeros((900, 3))
    turning[400:, 0] = 0.5 * (np.arange(500) / 499)
    path = machine_log(tmp_path / "log.xml", *planar_run, held=turning)
    words = r"'AIPos\.A1 \[deg\]' is left out, but moves by 0\.5 rad or m.*only while it is at rest"
    with pytest.warns(LogWarning, match=words):
        log = di.read_log(path, robot, columns=PLANAR)
    assert len(log.warnings) == 1
    assert di.read_log(path, robot, columns=PLANAR, stop=4.0).warnings == ()  # braked until then


def test_axes_without_a_joint_are_refused_with_the_remedy(tmp_path, robot, planar_run):
    path = machine_log(tmp_path / "log.xml", *planar_run)
    with pytest.raises(di.LogError, match=r"'q4' is for joint 4.*has joints 1, 2, 3.*'AIPos\.A4: unused'"):
        di.read_log(path, robot)
    twice = {name: rule for name, rule in PLANAR.items() if name != "AIPos.A1"}
    with pytest.raises(
        di.LogError, match=r"'q1' appears twice \('AIPos\.A1 \[deg\]' and 'AIPos\.A2 \[deg\]'\).*unused"
    ):
        di.read_log(path, robot, columns=twice)
    with pytest.raises(di.LogError, match=r"'AIPos\.A1' is left out and has no unit or scale"):
        di.read_log(path, robot, columns=PLANAR | {"AIPos.A1": {"column": "unused", "scale": 2}})


def test_columns_of_a_text_are_left_out_alike(tmp_path, robot):
    rows = "\n".join(f"{0.1 * k},{k},{k},{k},{0.2 * k},broken,0,0,0" for k in range(5))
    (tmp_path / "log.csv").write_text(f"t,q1,q2,q3,q4,q5,tau1,tau2,tau3\n{rows}\n")
    with pytest.raises(di.LogError, match="is for joint 4"):
        di.read_log(tmp_path / "log.csv", robot)
    with pytest.warns(LogWarning, match="column 'q5': 'broken' is not a number; whether the axes .* is not known"):
        log = di.read_log(tmp_path / "log.csv", robot, columns={"q4": "unused", "q5": "unused"})
    assert log.unused == ("q4", "q5")
    (tmp_path / "four.csv").write_text((tmp_path / "log.csv").read_text().replace(",q5", ",note"))
    with pytest.warns(LogWarning, match="'q4' is left out, but moves by 0.8"):
        di.read_log(tmp_path / "four.csv", robot, columns={"q4": "unused"})
