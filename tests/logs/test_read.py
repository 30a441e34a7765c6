from __future__ import annotations

import gzip

import numpy as np
import pytest

import dynident as di
from dynident.logs import joint_positions, joint_velocities, row_torques

PLANAR = """t,q1,q2,q3,tau1,tau2,tau3
0,0.1,0.2,0.3,1,2,3
0.01,0.11,0.21,0.31,1.1,2.1,3.1
0.02,0.12,0.22,0.32,1.2,2.2,3.2
"""


@pytest.fixture
def robot():
    return di.load_robot("kr5-planar")


def write(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_csv_in_its_many_dresses(tmp_path, robot):
    reference = di.read_log(write(tmp_path, PLANAR), robot)
    assert len(reference) == 3
    assert reference.rate == pytest.approx(100)
    variants = {
        "semicolon": PLANAR.replace(",", ";"),
        "tab": PLANAR.replace(",", "\t"),
        "blank": PLANAR.replace(",", " "),
        "comments": "# made by a robot\n\n" + PLANAR,
        "bom": "\ufeff" + PLANAR,
        "windows": PLANAR.replace("\n", "\r\n"),
        "unit row": PLANAR.replace("\n0,", "\ns,rad,rad,rad,Nm,Nm,Nm\n0,", 1),
        "brackets": PLANAR.replace("q1", "q1 [rad]").replace("tau2", "tau2 [N·m]"),
        "time name": PLANAR.replace("t,q1", "Time,q1"),
    }
    for name, text in variants.items():
        log = di.read_log(write(tmp_path, text), robot)
        np.testing.assert_array_equal(joint_positions(log, robot), joint_positions(reference, robot), err_msg=name)
        np.testing.assert_array_equal(row_torques(log, robot), row_torques(reference, robot), err_msg=name)
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(PLANAR.encode()))
    assert di.read_log(packed, robot).digest == di.read_log(write(tmp_path, PLANAR), robot).digest


def test_units_are_brought_to_si(tmp_path, robot):
    text = PLANAR.replace("t,q1,q2", "t [ms],q1 [deg],q2 [°]").replace("tau1", "tau1 [mNm]")
    log = di.read_log(write(tmp_path, text), robot)
    assert log.time[1] == pytest.approx(1e-5)
    assert log.channels["q1"][0] == pytest.approx(np.radians(0.1))
    assert log.channels["tau1"][0] == pytest.approx(1e-3)


def test_foreign_names_through_a_column_file(tmp_path, robot):
    text = PLANAR.replace("q1", "actual_position_0").replace("tau3", "effort_2")
    rules = write(tmp_path, "actual_position_0: {column: q1, unit: deg, scale: 2}\neffort_2: tau3\n", "columns.yaml")
    log = di.read_log(write(tmp_path, text), robot, columns=rules)
    assert log.channels["q1"][0] == pytest.approx(2 * np.radians(0.1))
    assert log.channels["tau3"][2] == 3.2
    unmapped = di.read_log(write(tmp_path, text), robot)
    assert unmapped.unused == ("actual_position_0", "effort_2")
    with pytest.raises(di.LogError, match=r"has no column q1.*not understood: actual_position_0"):
        joint_positions(unmapped, robot)


def test_npz_and_parquet_give_the_same_log(tmp_path, robot):
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = di.read_log(write(tmp_path, PLANAR), robot)
    q, tau = joint_positions(log, robot), log.array("tau", robot)
    np.savez(tmp_path / "a.npz", t=log.time, q=q, tau=tau, note=np.array("text"))
    pq.write_table(pa.table({"t": log.time, **log.channels, "name": ["a", "b", "c"]}), tmp_path / "a.parquet")
    for name in ("a.npz", "a.parquet"):
        other = di.read_log(tmp_path / name, robot)
        np.testing.assert_array_equal(joint_positions(other, robot), q)
        np.testing.assert_array_equal(other.array("tau", robot), tau)


def test_motor_side_and_joint_side_meet_at_the_rows(tmp_path):
    """The coupled wrist: shaft angles and torques of one motion, computed from the joint side by the gear matrix."""
    robot = di.load_robot("tx40")
    rng = np.random.default_rng(0)
    q, dq, tau = rng.normal(size=(3, 20, 6))
    N = np.diag([32.0, 32, 45, -48, 45, 32])
    N[5, 4] = 32
    offset = np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    qm, dqm = (q - offset) @ N.T, dq @ N.T
    taum = np.linalg.solve(N.T, tau.T).T
    t = np.arange(20) * 0.01
    np.savez(tmp_path / "motor.npz", t=t, qm=qm, dqm=dqm, taum=taum)
    np.savez(tmp_path / "joint.npz", t=t, q=q, dq=dq, tau=tau)
    motor, joint = (di.read_log(tmp_path / f"{name}.npz", robot) for name in ("motor", "joint"))
    for signal in (joint_positions, joint_velocities, row_torques):
        np.testing.assert_allclose(signal(motor, robot), signal(joint, robot), atol=1e-12)
    np.testing.assert_allclose(di.joint_torque(robot, row_torques(motor, robot)), tau, atol=1e-12)


def test_currents_need_gains(tmp_path, robot):
    path = write(tmp_path, PLANAR.replace("tau", "i"))
    with pytest.raises(di.LogError, match="robot kr5-planar has no drive_gains"):
        row_torques(di.read_log(path, robot), robot)
    (tmp_path / "robot.yaml").write_text("base: kr5-planar\ndrive_gains: [10, 20, 30]\n")
    geared = di.load_robot(tmp_path / "robot.yaml")
    np.testing.assert_allclose(row_torques(di.read_log(path, geared), geared)[0], [10, 40, 90])


def test_window_and_role(tmp_path, robot):
    log = di.read_log(write(tmp_path, PLANAR), robot, start=0.005, stop=0.015, role="validation")
    assert len(log) == 1
    assert log.role == "validation"
    with pytest.raises(di.InputError, match=r"no sample lies between 5 and None s; the log has 0 to 0\.02 s"):
        di.read_log(write(tmp_path, PLANAR), robot, start=5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: "", "is empty"),
        (lambda s: s.splitlines()[0], "has 0 rows of numbers"),
        (lambda s: "\n".join(s.splitlines()[:2]), "has 1 rows of numbers"),
        (lambda s: "\n".join(s.splitlines()[1:]), "has no header"),
        (lambda s: s.replace("t,q1", "clock,q1"), "has no time column"),
        (lambda s: s.replace("0.21", "abc"), "row 2 of the numbers, column 'q2': 'abc' is not a number"),
        (lambda s: s.replace("0.21,", ""), "row 2 of the numbers has 6 cells, but the header has 7"),
        (lambda s: s.replace("0.21", "nan"), r"column 'q2' is nan at row 2 \(1 in all\)"),
        (lambda s: s.replace("2.1", "inf"), "column 'tau2' is inf at row 2"),
        (lambda s: s.replace("0.02,", "0.005,"), r"time runs backwards from 0\.01 to 0\.005 s at row 3"),
        (lambda s: s.replace("0.01,", "0,").replace("0.02,", "0,"), "time never advances"),
        (lambda s: s.replace("q3", "q7"), "column 'q7' is for joint 7, but robot kr5-planar has joints 1, 2, 3"),
        (lambda s: s.replace("q3", "q2"), "column 'q2' appears twice"),
        (lambda s: s.replace("q3", "q3 [furlong]"), "unknown unit for q 'furlong'"),
    ],
)
def test_bad_logs_are_named(tmp_path, robot, change, words):
    with pytest.raises(di.LogError, match=rf"log\.csv: .*{words}"):
        di.read_log(write(tmp_path, change(PLANAR)), robot)


def test_files_that_are_no_logs(tmp_path, robot):
    with pytest.raises(di.LogError, match="no such file"):
        di.read_log(tmp_path / "none.csv", robot)
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    with pytest.raises(di.LogError, match="is not text"):
        di.read_log(tmp_path / "binary.csv", robot)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(PLANAR.encode())[:-12])
    with pytest.raises(di.LogError, match="not a complete gzip file"):
        di.read_log(tmp_path / "cut.csv.gz", robot)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"0," * 60_000_000))
    with pytest.raises(di.LogError, match="that is no log"):
        di.read_log(tmp_path / "bomb.csv.gz", robot)
    for name in ("bad.npz", "bad.parquet"):
        (tmp_path / name).write_text("nonsense")
        with pytest.raises(di.LogError, match="cannot be read as"):
            di.read_log(tmp_path / name, robot)
    np.savez(tmp_path / "uneven.npz", t=np.arange(3.0), q1=np.arange(4.0))
    with pytest.raises(di.LogError, match="must have one length"):
        di.read_log(tmp_path / "uneven.npz", robot)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "must map column names"),
        ("x: q1: 2", "is not valid YAML"),
        ("x: velocity1", "'velocity1' is not a channel"),
        ("x: {column: q1, gain: 2}", "must be a channel such as q1"),
        ("x: {column: q1, scale: 0}", "scale is 0"),
    ],
)
def test_bad_column_files_are_named(tmp_path, robot, text, words):
    rules = write(tmp_path, text, "columns.yaml")
    with pytest.raises(di.LogError, match=rf"columns\.yaml: .*{words}"):
        di.read_log(write(tmp_path, PLANAR), robot, columns=rules)


def test_formats_are_reported_by_ending_and_else_by_content(tmp_path):
    import numpy as np

    from dynident.logs.read import FORMATS, format_of

    assert {format_of(tmp_path / f"run{ending}").name for ending in (".csv", ".CSV.gz", ".dat", "")} == {"text"}
    named = {ending: format_of(tmp_path / f"run{ending}").name for one in FORMATS for ending in one.endings}
    assert named[".parquet"] == "Parquet"  # no dataset around it
    assert named[".mcap"] == named[".db3"] == "ROS bag"
    assert named[".xml.gz"] == "KUKA RSI"
    np.savez(tmp_path / "run.npz", t=np.arange(5.0), q=np.zeros((5, 2)))
    (tmp_path / "run.npz").rename(tmp_path / "run.recorded")
    assert format_of(tmp_path / "run.recorded").name == "NumPy archive"
    assert list(di.read_log(tmp_path / "run.recorded").channels) == ["q1", "q2"]
