"""Bags as robots record them: which topics are taken, what is merged, and what is refused. Layouts: `test_layouts`."""

from __future__ import annotations

import json
import sqlite3
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("rosbags")

from benchmarks import bag_writers as bags

import dynident as di
from dynident.cli.command_line import main
from dynident.logs import bag
from dynident.logs.bag import list_topics
from dynident.logs.read import stream_log
from dynident.logs.tables import LogWarning

N = 60
AT = bags.stamps(N).tolist()


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("ur10e")


@pytest.fixture
def data(robot):
    rng = np.random.default_rng(2)
    return {kind: rng.normal(size=(N, 6)) for kind in ("q", "dq", "tau", "target")}


def read(path, robot, **how):
    """The log and what was said of it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        log = di.read_log(path, robot, **how)
    assert log.warnings == tuple(str(one.message) for one in said)
    return log, " ".join(log.warnings)


def equal(log, robot, **kinds):
    for kind, values in kinds.items():
        np.testing.assert_array_equal(log.array(kind, robot), values)


def state(stamp, names, *values):
    return bags.joint_state(1, stamp, names, *values)


def controller_state(stamp, names, target, actual):
    def point(values):
        return bags.make(1, "trajectory_msgs/JointTrajectoryPoint", positions=np.ascontiguousarray(values))

    kind = "control_msgs/JointTrajectoryControllerState"
    own = {"desired": point(target), "actual": point(actual), "joint_names": list(names)}
    return bags.make(1, kind, header=bags.header(1, stamp), **own)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [(slice(None, None, 5), "is left out: it has 100 Hz"), (slice(0, 20), "is left out: it lacks 67% of the stamps")],
)
def test_targets_never_cost_samples(tmp_path, robot, data, chosen, words):
    names = robot.joint_names
    messages = [("/states", s, state(s, names, data["q"][k], [], data["tau"][k])) for k, s in enumerate(AT)]
    shown = [
        ("/state", s + 1, controller_state(s, names, data["target"][k], data["q"][k]))
        for k, s in list(enumerate(AT))[chosen]
    ]
    path = tmp_path / "log.bag"
    bags.write_bag(path, 1, sorted(messages + shown, key=lambda one: one[1]))
    log, said = read(path, robot)
    assert words in said
    assert "target" in said
    equal(log, robot, q=data["q"], tau=data["tau"])
    assert len(log) == N
    assert not log.has("target", robot)
    log, _ = read(path, robot, topics=["/states", "/state"])  # what the user asks for is merged all the same
    assert log.has("target", robot)
    assert len(log) < N


def test_commands_are_never_measurements(tmp_path, robot, data):
    path, names = tmp_path / "log.bag", robot.joint_names
    topics = ("/a/joint_states_desired", "/joint_command", "/setpoint_js", "/a/command")
    messages = [
        (topic, s, state(s, names, data["target"][k], data["tau"][k], data["dq"][k]))
        for k, s in enumerate(AT)
        for topic in topics
    ]
    bags.write_bag(path, 1, messages)
    with pytest.raises(di.LogError, match="has no column q1, q2"):
        read(path, robot)[0].array("q", robot)
    messages += [("/states", s, state(s, names, data["q"][k])) for k, s in list(enumerate(AT))[::2]]
    path.unlink()
    bags.write_bag(path, 1, sorted(messages, key=lambda one: one[1]))
    log, _ = read(path, robot)
    equal(log, robot, q=data["q"][::2], target=data["target"][::2])
    assert not log.has("tau", robot)
    equal(read(path, robot, topics=["/joint_command"])[0], robot, q=data["target"], tau=data["dq"])


def test_of_several_topics_one_with_position_and_effort_is_taken(tmp_path, robot, data):
    path, names = tmp_path / "log.bag", robot.joint_names
    messages = []
    for k, s in enumerate(AT):
        messages.append(("/fast", s, state(s, names, data["target"][k], data["dq"][k])))
        messages.append(("/fast", s + 1, state(s + 1, names, data["target"][k], data["dq"][k])))
        messages.append(("/slow", s + 2, state(s, names, data["q"][k], [], data["tau"][k])))
    bags.write_bag(path, 1, messages)
    log, said = read(path, robot)
    equal(log, robot, q=data["q"], tau=data["tau"])
    assert said == ""
    assert log.unused == ("shoulder_pan .. wrist_3 (topic /fast)",)
    equal(read(path, robot, topics=["/fast"])[0], robot, q=np.repeat(data["target"], 2, axis=0))


def test_names_with_a_prefix_are_found_in_every_topic(tmp_path, robot, data):
    path, names = tmp_path / "log.bag", [f"left_{name}_joint" for name in robot.joint_names]
    messages = []
    for k, s in enumerate(AT):
        messages.append(("/a", s, state(s, names[3:][::-1], data["q"][k, 3:][::-1], [], data["tau"][k, 3:][::-1])))
        messages.append(("/b", s, state(s, names[:3], data["q"][k, :3], [], data["tau"][k, :3])))
        messages.append(("/tool", s, state(s, [str(i) for i in range(9)], np.ones(9), [], np.ones(9))))
    bags.write_bag(path, 1, messages)
    log, said = read(path, robot)
    assert "its joints left_shoulder_pan_joint .. left_wrist_3_joint are read as shoulder_pan .. wrist_3" in said
    equal(log, robot, q=data["q"], tau=data["tau"])
    right = [name.replace("left", "right") for name in names]
    messages += [("/right", s, state(s, right, data["tau"][k])) for k, s in enumerate(AT)]
    path.unlink()
    bags.write_bag(path, 1, sorted(messages, key=lambda one: one[1]))
    words = r"more than once, as 'left_\.\._joint' and 'right_\.\._joint'; choose a topic \(--topic\)"
    with pytest.raises(di.LogError, match=words):
        read(path, robot)
    equal(read(path, robot, topics=["/right"])[0], robot, q=data["tau"])


@pytest.mark.parametrize("stamped", [0, bags.START])
def test_headers_without_a_clock_give_way_to_the_recorder(tmp_path, robot, data, stamped):
    path = tmp_path / "log.bag"
    messages = [("/s", s, state(stamped, robot.joint_names, data["q"][k])) for k, s in enumerate(AT)]
    bags.write_bag(path, 1, messages)
    np.testing.assert_array_equal(read(path, robot)[0].time, (np.array(AT) - AT[0]) / 1e9)


def test_clocks_of_headers_that_are_apart(tmp_path, robot, data):
    path, names = tmp_path / "log.bag", robot.joint_names
    messages = []
    for k, s in enumerate(AT):
        messages.append(("/a", s, state(s, names[:3], data["q"][k, :3])))
        messages.append(("/b", s, state(s - 37_000_000_000, names[3:], data["q"][k, 3:])))
    bags.write_bag(path, 1, messages)
    log, said = read(path, robot)
    assert "clocks that are 37 s apart; the recorder's stamps are taken" in said
    equal(log, robot, q=data["q"])


def test_a_topic_that_cannot_be_read_costs_only_itself(tmp_path, robot, data):
    path, names = tmp_path / "log.bag", robot.joint_names
    messages = []
    for k, s in enumerate(AT):
        messages.append(("/states", s, state(s, names, data["q"][k])))
        messages.append(("/gripper", s, state(s, ["a", "b"], [1.0, 2.0], [1.0])))
    bags.write_bag(path, 1, messages)
    log, said = read(path, robot)
    assert "message 1 of topic /gripper has 2 names but 1 values of velocity; the topic is left out" in said
    equal(log, robot, q=data["q"])
    with pytest.raises(di.LogError, match=r"1 values of velocity; choose another topic \(--topic\), or record again"):
        read(path, robot, topics=["/gripper"])
    with pytest.raises(
        di.LogError, match=r"has no topic /state; did you mean '/states'\? \(valid: /states, /gripper\)"
    ):
        read(path, robot, topics=["/state"])


def test_a_joint_without_effort_has_no_column_of_it(tmp_path, robot, data):
    bags.dynamic_joint_state(tmp_path / "bag", robot, data)
    log = stream_log(tmp_path / "bag", robot)
    assert "gripper.position" in log.unused
    assert not any(name.startswith(("gripper.effort", "ft_sensor")) for name in log.table.headers)


def test_a_wrench_is_columns_of_its_sensor(tmp_path, robot, data):
    bags.joint_states(1)(tmp_path / "log.bag", robot, data)
    table = bag.bag_table(tmp_path / "log.bag", None, topics=["/wrench"])
    assert table.headers == ["t", *(f"tool0.{end}" for end in ("fx", "fy", "fz", "mx", "my", "mz"))]
    (values,) = table.parts([1, 2])
    np.testing.assert_array_equal(values, [np.arange(N), np.zeros(N)])


def test_definitions_that_are_missing(tmp_path, robot, data, monkeypatch):
    path = tmp_path / "bag"
    panda = di.load_robot("panda")
    wide = {kind: np.ones((N, 7)) for kind in data}
    bags.franka_robot_state(tmp_path / "mcap", panda, wide)
    monkeypatch.setitem(sys.modules, "rosbags.typesys", None)
    with pytest.raises(di.LogError, match=r"FrankaRobotState, which needs rosbags, .* pip install 'dynident\[ros\]'"):
        di.read_log(tmp_path / "mcap", panda)
    monkeypatch.undo()
    bags.write_bag(path, 2, [("/x", AT[0], bags.make(2, "my_msgs/JointTorques", header=bags.header(2, AT[0])))])
    base = sqlite3.connect(path / "bag.db3")
    base.execute("DROP TABLE message_definitions")
    base.commit()
    base.close()
    with pytest.raises(di.LogError, match=r"of which the bag holds no definition; record as MCAP"):
        di.read_log(path, robot, topics=["/x"])


def test_known_types_need_no_definition_and_no_rosbags(tmp_path, robot, data, monkeypatch):
    bags.controller_state(2, also=True)(tmp_path / "bag", robot, data)
    bags.joint_states(1)(tmp_path / "log.bag", robot, data)
    monkeypatch.setitem(sys.modules, "rosbags.typesys", None)
    for name, kinds in (("bag", ("q", "tau", "target")), ("log.bag", ("q", "tau"))):
        equal(read(tmp_path / name, robot)[0], robot, **{kind: data[kind] for kind in kinds})


def test_damaged_bags_of_ros1(tmp_path, robot, data):
    path = tmp_path / "log.bag"
    from rosbags.rosbag1 import Writer

    whole_size = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "__init__", _small_chunks(Writer.__init__))
        bags.joint_states(1)(path, robot, data)
    whole = path.read_bytes()
    whole_size = len(whole)
    lengths = []
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(share * whole_size)])
        with pytest.warns(LogWarning, match=r"is cut off or damaged after \d+% of its bytes; the \d+ messages"):
            log = di.read_log(path, robot)
        equal(log, robot, q=data["q"][: len(log)], tau=data["tau"][: len(log)])
        lengths.append(len(log))
    assert 0 < lengths[0] < lengths[1] < N
    for content, words in (
        (whole[:300], r"cannot be read as a bag \(a record is cut off\); copy it again"),
        (b"", "does not begin as bags of ROS 1 do"),
        (bytes(500), "does not begin as bags of ROS 1 do"),
        (b"#ROSBAG V1.2\n" + bytes(50), "is a bag of version V1.2; expected V2.0: rosbag fix"),
    ):
        path.write_bytes(content)
        with pytest.raises(di.LogError, match=words):
            di.read_log(path, robot)
    active = tmp_path / "log.bag.active"  # what a recorder leaves that was not ended: no index
    start = whole.index(b"index_pos=") + len("index_pos=")
    active.write_bytes(whole[:start] + bytes(8) + whole[start + 8 :])
    with pytest.warns(LogWarning, match="is cut off or damaged after 100%"):
        equal(di.read_log(active, robot), robot, q=data["q"])


def _small_chunks(init):
    def made(self, *args, **how):
        init(self, *args, **how)
        self.chunk_threshold = 4000

    return made


def test_bags_that_unpack_beyond_reason(tmp_path, robot, data):
    import zstandard

    bags.joint_states(2, "sqlite file")(tmp_path / "bag", robot, data)
    (packed,) = (tmp_path / "bag").glob("*.zstd")
    packed.write_bytes(b"nonsense" * 50)
    with pytest.raises(di.LogError, match="cannot be unpacked by zstd"):
        di.read_log(tmp_path / "bag", robot)
    packed.write_bytes(zstandard.ZstdCompressor().compress(bytes(1 << 27)))
    with pytest.raises(di.LogError, match=r"unpacks to more than .* that is no log"):
        di.read_log(tmp_path / "bag", robot)


def test_a_bag_is_streamed_whatever_its_kind(tmp_path, robot, data, monkeypatch):
    monkeypatch.setattr(bag, "SMALL_BAG", 1000)
    monkeypatch.setattr(bag, "KEPT_BAG", 1000)
    for name, write in (("log.bag", bags.joint_states(1, "bz2")), ("bag", bags.joint_states(2, "sqlite file"))):
        write(tmp_path / name, robot, data)
        log = di.open_log(tmp_path / name, robot)
        assert isinstance(log, di.LogFile)
        for _ in range(2):
            np.testing.assert_array_equal(
                np.concatenate([one.array("tau", robot) for one in log.blocks()]), data["tau"]
            )


def test_check_lists_topics(tmp_path, robot, data, capsys):
    path = tmp_path / "log.bag"
    bags.joint_states(1)(path, robot, data)
    assert main(["check", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["topics"].values()
    by_name = {one["topic"]: one for one in found}
    assert list(by_name) == ["/imu", "/joint_states", "/wrench"]
    assert by_name["/joint_states"]["messages"] == N + N // 3
    assert by_name["/wrench"]["rate"] == pytest.approx(500.0)
    assert by_name["/joint_states"]["channels"]["tau"] == sorted(robot.joint_names)
    assert by_name["/wrench"]["channels"]["mz"] == ["tool0"]
    assert by_name["/imu"]["channels"] == {}
    assert "angular velocity" in by_name["/imu"]["note"]
    assert main(["check", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "sensor_msgs/Imu" in printed
    assert "dynident check ROBOT BAG" in printed
    assert main(["check", str(path), "--topic", "/imu"]) == 2
    shown = capsys.readouterr()
    assert "no channel was understood" in shown.err
    assert "/joint_states" in shown.out
    (tmp_path / "log.csv").write_text("t,q1\n0,1\n1,2\n")
    assert main(["check", str(tmp_path / "log.csv"), "--topic", "/imu"]) == 2
    assert "is no bag and has no topics; leave out --topic /imu" in capsys.readouterr().err
    assert [one.topic for one in list_topics(path)] == list(by_name)
