"""Layouts of columns: all of `benchmarks/log_layouts.py` to the bit, and what must not be guessed."""

from __future__ import annotations

import json
import pickle
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks.log_layouts import CASES, _lerobot, _plotjuggler_arrays, _rostopic, _rtde, differences, signals

import dynident as di
from dynident.logs.columns import read_rules
from dynident.logs.layouts import recognize
from dynident.logs.read import propose_columns
from dynident.logs.tables import LogWarning


@pytest.fixture(scope="module")
def ur10e():
    return di.load_robot("ur10e")


@pytest.fixture(scope="module")
def panda():
    return di.load_robot("panda")


def text(tmp_path, *names):
    """A log with these columns; each holds its place."""
    path = tmp_path / "log.csv"
    rows = "".join(",".join(str(k + 10 * place) for place in range(len(names))) + "\n" for k in range(5))
    path.write_text(",".join(names) + "\n" + rows)
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layout_is_read_to_the_bit(tmp_path, case):
    if case.needs and find_spec(case.needs) is None:
        pytest.skip(f"{case.needs} is not installed")
    assert differences(case, tmp_path)[1] == []


def test_a_model_of_the_torque_is_not_torque(tmp_path, ur10e):
    _rtde(",")(tmp_path / "log.csv", ur10e, signals(ur10e))
    log = di.read_log(tmp_path / "log.csv", ur10e)
    assert not any(name.startswith("tau") for name in log.channels)
    with pytest.raises(di.LogError, match=r"'target_moment_0' \.\. 'target_moment_5': each is the controller's model"):
        log.array("tau", ur10e)
    torque = {f"target_moment_{k}": f"tau{k + 1}" for k in range(6)}
    assert di.read_log(tmp_path / "log.csv", ur10e, columns=torque).has("tau", ur10e)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([f"actual_q_{k}" for k in range(6)], "is one of 6 joints, but robot panda has 7"),
        ([f"actual_q_{k + 1}" for k in range(6)], "is one of 6 joints, but robot panda has 7"),
        ([f"actual_q_{k}" for k in (0, 1, 2, 3, 4, 6, 7)], "of 0 to 7 only 7 are there"),
        ([f"q{k}" for k in range(8)], "is one of 8 joints, but robot panda has 7"),
        ([*(f"q{k}" for k in range(7)), *(f"tau{k + 1}" for k in range(7))], "q does, tau does not start at 0"),
        ([f"q{k}" for k in (0, 1, 2, 3, 4, 5, 7)], "of 0 to 7 only 7 are there"),
        ([f"motorState[{k}].q" for k in range(20)], "is one of 20 joints"),
        (["/a/joint1/position", "/b/joint1/position"], "stands for q1, as '/b/joint1/position' does"),
        (["/a/desired/velocities[0]"], "is a command, not a measurement"),
        (["elbow_pos", "wrist_pos"], r"its joints are \[elbow, wrist\], those of robot panda \[joint1, joint2,"),
        (["temperature"], r"not understood: temperature \(map them in a column file\)"),
    ],
)
def test_nothing_is_guessed(tmp_path, panda, names, words):
    with pytest.raises(di.LogError, match=f"no channel was understood.*{words}"):
        di.read_log(text(tmp_path, "t", *names), panda)


def test_an_array_without_names_has_the_order_of_its_sender(tmp_path, ur10e):
    _plotjuggler_arrays(tmp_path / "log.csv", ur10e, signals(ur10e))
    with pytest.raises(di.LogError, match=r"often sort them by name \(elbow, shoulder_lift, .*has shoulder_pan"):
        di.read_log(tmp_path / "log.csv", ur10e)
    with pytest.raises(di.LogError, match="give the robot whose joints they are"):
        di.read_log(tmp_path / "log.csv")


@pytest.mark.parametrize("affix", ["{}_joint", "ur10e/{}", "left.{}_joint"])
def test_names_that_share_a_prefix_or_suffix_are_those_joints(tmp_path, ur10e, affix):
    called = [affix.format(name) for name in sorted(ur10e.joint_names)]
    path = text(tmp_path, "t", *(f"{name}_pos" for name in called), "finger_pos")
    with pytest.warns(LogWarning, match=f"its joints {called[5].replace('wrist_3', 'shoulder_pan')} .. .* are read as"):
        log = di.read_log(path, ur10e)
    order = sorted(range(6), key=lambda k: ur10e.joint_names[k])
    assert [log.channels[f"q{k + 1}"][0] for k in order] == [10.0 * place for place in range(1, 7)]
    assert log.unused == ("finger_pos",)


def test_a_robot_may_have_the_prefix_too(tmp_path):
    urdf = "".join(f'<link name="l{k}"/>' for k in range(3)) + "".join(
        f'<joint name="left_j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for k in (1, 2)
    )
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "two.urdf").write_text(f'<robot name="two">{urdf.replace("/><link", f">{body}</link><link")}</robot>')
    robot = di.load_robot(tmp_path / "two.urdf")
    with pytest.warns(LogWarning, match="its joints j1 .. j2 are read as left_j1 .. left_j2"):
        assert di.read_log(text(tmp_path, "t", "j2_pos", "j1_pos"), robot).channels["q2"][0] == 10.0


@pytest.mark.parametrize(
    "names",
    [
        [f"{arm}_{{}}" for arm in ("left", "right")],  # which of two arms
        ["my{}"],  # no separator
        ["{}_joint", "{}_motor"],
    ],
)
def test_affixes_are_not_guessed(tmp_path, ur10e, names):
    called = [name.format(joint) for name in names for joint in ur10e.joint_names]
    with pytest.raises(di.LogError, match=r"its joints are \["):
        di.read_log(text(tmp_path, "t", *(f"{name}_pos" for name in called)), ur10e)
    with pytest.raises(di.LogError, match=r"its joints are \["):  # one joint is missing
        di.read_log(text(tmp_path, "t", *(f"{name}_joint_pos" for name in ur10e.joint_names[1:])), ur10e)


def test_senders_that_share_a_topic_are_refused(tmp_path, ur10e):
    path = tmp_path / "log.csv"
    _rostopic(True)(path, ur10e, signals(ur10e))
    lines = path.read_text().splitlines()
    lines[5] = lines[5].replace("elbow", "finger")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(di.LogError, match=r"row 5 of the numbers, column 'field\.name0': 'finger' after 'elbow'"):
        di.read_log(path, ur10e)


def test_units_in_the_file_hold(tmp_path):
    robot = di.load_robot("pendulum-2")
    log = di.read_log(text(tmp_path, "t [ms]", "q[0] [deg]", "q[1] (deg)", "tau_0 [mNm]", "tau_1"), robot)
    np.testing.assert_array_equal(log.channels["q1"], np.arange(10, 15) * (np.pi / 180.0))
    np.testing.assert_array_equal(log.channels["tau1"], np.arange(30, 35) * 1e-3)
    np.testing.assert_array_equal(log.time, np.arange(5) * 1e-3)


def test_an_overlay_speaks_of_channels_also_where_a_file_counts_from_zero(tmp_path):
    (tmp_path / "mine.yaml").write_text("base: pendulum-2\ncolumns: {q1: {column: q1, scale: -1}}\n")
    log = di.read_log(text(tmp_path, "t", "q0", "q1"), di.load_robot(tmp_path / "mine.yaml"))
    np.testing.assert_array_equal(log.channels["q1"], -np.arange(10.0, 15.0))
    np.testing.assert_array_equal(log.channels["q2"], np.arange(20.0, 25.0))


def test_a_column_file_is_about_columns_that_are_there(tmp_path):
    path = text(tmp_path, "t", "a", "b")
    (tmp_path / "columns.yaml").write_text("a: q1\nb: q2\nc: tau1\n")
    with pytest.raises(di.LogError, match=r"log\.csv: has no column 'c', which .*columns\.yaml names"):
        di.read_log(path, di.load_robot("pendulum-2"), columns=tmp_path / "columns.yaml")


def test_a_proposed_column_file_is_read_as_it_stands(tmp_path, panda):
    path = text(tmp_path, "%time", *(f"q[{k}]" for k in range(7)), "actual_q_0", "y", "/x: y #1")
    (tmp_path / "columns.yaml").write_text(propose_columns(path, panda))
    assert {name: rule.column for name, rule in read_rules(tmp_path / "columns.yaml").items()} == {
        "%time": "t",
        **{f"q[{k}]": f"q{k + 1}" for k in range(7)},
    }
    proposed = (tmp_path / "columns.yaml").read_text()
    assert "is one of 1 joints, but robot panda has 7" in proposed
    (tmp_path / "columns.yaml").write_text(proposed.replace("# ? ", "").replace(": channel", ": unused"))
    with pytest.raises(di.LogError, match="column 'q1' appears twice"):  # the doubtful line is a proposal
        di.read_log(path, panda, columns=tmp_path / "columns.yaml")


def test_proposals_without_a_robot_number_the_joints_of_the_file(tmp_path):
    path = text(tmp_path, "time", "b_pos", "a_pos", "b_torque")
    with pytest.raises(di.LogError, match="names a joint; give the robot whose joint it is"):
        di.read_log(path)
    proposed = propose_columns(path)
    assert "# ? b_pos: q1\n# ? a_pos: q2\n# ? b_torque: tau1\n" in proposed


def test_motors_without_a_robot_have_no_joints():
    found = recognize(["t", *(f"motorState[{k}].q" for k in range(20))], None)
    assert not found.rules
    assert "give the robot" in found.doubts["motorState[0].q"].reason


def test_a_complete_count_from_one_is_understood(tmp_path, ur10e):
    log = di.read_log(text(tmp_path, "timestamp", *(f"actual_q_{k}" for k in range(1, 7))), ur10e)
    assert [log.channels[f"q{k}"][0] for k in range(1, 7)] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


@pytest.mark.parametrize(
    ("q", "tau", "first"),
    [("pos{}", "torque{}", 1), ("position_{}", "effort_{}", 0), ("joint_pos_{}", "joint_torque_{}", 1)],
)
def test_words_with_numbers(tmp_path, ur10e, q, tau, first):
    path = text(tmp_path, "t", *(kind.format(k + first) for kind in (q, tau) for k in range(6)))
    log = di.read_log(path, ur10e)
    assert [log.channels[f"{kind}{k}"][0] for kind in ("q", "tau") for k in (1, 6)] == [10.0, 60.0, 70.0, 120.0]


@pytest.mark.parametrize("between", [",", " "])
def test_a_header_in_a_comment(tmp_path, between):
    path, robot = tmp_path / "log.csv", di.load_robot("pendulum-1")
    numbers = np.arange(12.0).reshape(4, 3)
    np.savetxt(path, numbers, header=f"made by us\nt{between}q1{between}tau1", delimiter=between)
    log = di.read_log(path, robot)
    np.testing.assert_array_equal(np.stack([log.time, log.channels["q1"], log.channels["tau1"]]).T, numbers)
    np.savetxt(path, numbers, header="made in the lab by us", delimiter=between)
    with pytest.raises(di.LogError, match="has no header"):
        di.read_log(path, robot)


def test_prediction_looks_at_positions_only(tmp_path, ur10e):
    path = text(
        tmp_path, "t", *(f"q{k}" for k in range(6)), *(f"tau{k}" for k in range(6)), *(f"target{k}" for k in range(6))
    )
    log = di.open_log(path, ur10e, positions_only=True)
    assert sorted(log.channels) == [f"q{k}" for k in range(1, 7)]


class TestLeRobot:
    def dataset(self, tmp_path, robot, change):
        _lerobot(tmp_path / "dataset", robot, signals(robot))
        file = tmp_path / "dataset" / "meta" / "info.json"
        info = json.loads(file.read_text())
        change(info)
        file.write_text(json.dumps(info))
        return tmp_path / "dataset"

    def test_it_is_said_that_torque_is_missing(self, tmp_path, ur10e):
        path = self.dataset(tmp_path, ur10e, lambda info: None)
        with pytest.warns(LogWarning) as said:
            log = di.read_log(path, ur10e)
        assert "torque is missing" in " ".join(log.warnings)
        assert "reach 130 and are read as degrees" in " ".join(str(one.message) for one in said)
        with pytest.raises(
            di.LogError,
            match=r"has position commands \(target1, \.\.\) and no torque; the gains of its position controller",
        ):
            di.identify(ur10e, log)

    @pytest.mark.filterwarnings("ignore::dynident.logs.tables.LogWarning")
    def test_degrees_or_normalized_is_not_guessed(self, tmp_path, ur10e):
        import pyarrow.parquet as parquet

        path = self.dataset(tmp_path, ur10e, lambda info: None)
        file = path / "data" / "chunk-000" / "file-000.parquet"
        parquet.write_table(parquet.read_table(file).slice(1), file)  # without the row beyond 100
        with pytest.raises(di.LogError, match="in degrees or in LeRobot's -100 to 100"):
            di.read_log(path, ur10e)
        assert "# ? elbow.position: {column: q3, unit: deg}" in propose_columns(path, ur10e)
        columns = {
            f"{name}.position": {"column": f"q{k + 1}", "unit": "deg"} for k, name in enumerate(ur10e.joint_names)
        }
        log = di.read_log(path, ur10e, columns=columns)
        assert log.has("q", ur10e)
        assert "elbow.target" in log.unused

    @pytest.mark.filterwarnings("ignore::dynident.logs.tables.LogWarning")
    def test_a_gripper_in_percent_is_no_angle(self, tmp_path, ur10e):
        def rename(info):
            for name in ("observation.state", "action"):
                info["features"][name]["names"][5] = "gripper.pos"

        path = self.dataset(tmp_path, ur10e, rename)
        log = di.read_log(path, ur10e)
        assert "q6" not in log.channels
        assert "q5" in log.channels
        assert "gripper.position" in log.unused


class TestPickles:
    @pytest.mark.parametrize("name", ["log.pt", "log.pth", "log.bin"])
    def test_pytorch(self, tmp_path, name):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02.")
        with pytest.raises(di.LogError, match=r"PyTorch.*`import numpy, torch; d = torch\.load\('log.*numpy\.savez"):
            di.read_log(tmp_path / name)

    @pytest.mark.parametrize("name", ["log.pkl", "log.pickle", "log.dat", "log.joblib"])
    def test_the_two_lines_save_what_is_read(self, tmp_path, name, monkeypatch):
        robot = di.load_robot("pendulum-1")
        arrays = {"t": [0.0, 0.1, 0.2], "q": np.array([[1.0], [2.0], [4.0]])}
        (tmp_path / name).write_bytes(pickle.dumps(arrays))
        with pytest.raises(di.LogError, match="is a pickle, and those can run code") as refused:
            di.read_log(tmp_path / name, robot)
        if name.endswith("joblib"):
            return
        lines = str(refused.value).split("`")[1::2]
        assert len(lines) == 2
        monkeypatch.chdir(tmp_path)
        exec("\n".join(lines), {})
        np.testing.assert_array_equal(di.read_log("log.npz", robot).channels["q1"], [1.0, 2.0, 4.0])
