from __future__ import annotations

import sqlite3
import struct
import sys
import warnings

import numpy as np
import pytest
from mcap.writer import CompressionType, Writer

import dynident as di
from dynident.logs.tables import LogWarning

N = 400
START = 1_700_000_000_000_000_000  # [ns]
KIND = "sensor_msgs/msg/JointState"
NAMES = ("joint2", "joint3", "joint5")  # of kr5-planar


@pytest.fixture
def robot():
    return di.load_robot("kr5-planar")


@pytest.fixture
def signals():
    rng = np.random.default_rng(0)
    return {kind: rng.normal(size=(N, 3)) for kind in ("q", "dq", "tau")}


def cdr(stamp, names, *arrays, order="<"):
    """A joint state, written field by field as the standard says."""
    out = bytearray(struct.pack(order + "iI", *divmod(stamp, 10**9)))

    def number(value):
        out.extend(b"\0" * (-len(out) % 4) + struct.pack(order + "I", value))

    def text(word):
        number(len(word) + 1)
        out.extend(word.encode() + b"\0")

    text("base")
    number(len(names))
    for name in names:
        text(name)
    for values in arrays:
        number(len(values))
        if len(values):
            out.extend(b"\0" * (-len(out) % 8))
            out.extend(np.asarray(values, order + "f8").tobytes())
    return bytes([0, order == "<", 0, 0]) + bytes(out)


def states(signals, order="<", stamped=True):
    """(topic, time [ns], bytes): joints in an order that changes from message to message, and a gripper in between."""
    for k in range(N):
        stamp = START + k * 10_000_000
        turn = [(k + i) % 3 for i in range(3)]
        arrays = [signals[kind][k, turn] for kind in ("q", "dq", "tau")]
        yield "/joint_states", stamp, cdr(stamp if stamped else 0, [NAMES[i] for i in turn], *arrays, order=order)
        yield "/joint_states", stamp + 1, cdr(stamp + 1, ["finger"], [0.1], [], [], order=order)


def write_mcap(path, messages, kind=KIND, encoding="cdr", compression=CompressionType.ZSTD, **options):
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=8000, compression=compression, **options)
        writer.start()
        schema = writer.register_schema(kind, "ros2msg", b"")
        channels = {}
        for topic, stamp, data in messages:
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, encoding, schema)
            writer.add_message(channels[topic], stamp, data, stamp)
        writer.finish()


def write_db3(path, messages):
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name, type, serialization_format, offered_qos_profiles)")
    base.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data)")
    base.execute("INSERT INTO topics VALUES(1, '/joint_states', ?, 'cdr', '')", [KIND])
    base.executemany("INSERT INTO messages VALUES(NULL, 1, ?, ?)", [(stamp, data) for _, stamp, data in messages])
    base.commit()
    base.close()


def check(log, robot, signals, n=N):
    np.testing.assert_array_equal(log.time, (np.arange(n) * 10_000_000) / 1e9)
    for kind, values in signals.items():
        np.testing.assert_array_equal(log.array(kind, robot), values[:n])


def test_joints_go_by_name_never_by_place(tmp_path, robot, signals):
    for name, order, stamped, compression in (
        ("a.mcap", "<", True, CompressionType.ZSTD),
        ("b.mcap", ">", True, CompressionType.LZ4),
        ("c.mcap", "<", False, CompressionType.NONE),
    ):
        write_mcap(tmp_path / name, states(signals, order, stamped), compression=compression)
        log = di.read_log(tmp_path / name, robot)
        check(log, robot, signals)
    assert log.unused == ("finger (topic /joint_states)",)
    write_db3(tmp_path / "d.db3", states(signals))
    check(di.read_log(tmp_path / "d.db3", robot), robot, signals)


def test_a_column_file_makes_efforts_currents(tmp_path, robot, signals):
    write_mcap(tmp_path / "log.mcap", states(signals))
    rules = {f"{name}.effort": {"column": f"i{i + 1}", "unit": "mA"} for i, name in enumerate(NAMES)}
    log = di.read_log(tmp_path / "log.mcap", robot, columns=rules)
    assert not log.has("tau", robot)
    np.testing.assert_allclose(log.array("i", robot), signals["tau"] * 1e-3, rtol=1e-15)


def test_a_directory_of_several_files(tmp_path, robot, signals):
    messages = list(states(signals))
    for kind, write in (("mcap", write_mcap), ("db3", write_db3)):
        folder = tmp_path / kind
        folder.mkdir()
        # The order is that of metadata.yaml, not of the alphabet.
        for name, part in ((f"z_0.{kind}", messages[:500]), (f"a_1.{kind}", messages[500:])):
            write(folder / name, part)
        listed = "".join(f"    - {name}.{kind}\n" for name in ("z_0", "a_1"))
        text = f"rosbag2_bagfile_information:\n  version: 5\n  relative_file_paths:\n{listed}"
        (folder / "metadata.yaml").write_text(text)
        check(di.read_log(folder, robot), robot, signals)
        (folder / f"a_1.{kind}").unlink()
        with pytest.raises(di.LogError, match=rf"a_1\.{kind}, which its metadata\.yaml names, is missing"):
            di.read_log(folder, robot)
    (tmp_path / "empty").mkdir()
    with pytest.raises(di.LogError, match=r"is a directory without metadata\.yaml"):
        di.read_log(tmp_path / "empty", robot)


def test_what_is_left_of_a_cut_bag_is_used_and_said(tmp_path, robot, signals):
    path = tmp_path / "log.mcap"
    write_mcap(path, states(signals))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.warns(LogWarning, match=r"damaged after \d+% of its bytes; the \d+ messages"):
        log = di.read_log(path, robot)
    assert N // 4 < len(log) < 3 * N // 4
    check(log, robot, signals, len(log))
    path.write_bytes(whole[:200])
    with pytest.raises(di.LogError, match=r"log\.mcap: cannot be read as a bag"):
        di.read_log(path, robot)
    path.write_bytes(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        di.read_log(path, robot)


def test_bags_that_are_no_logs(tmp_path, robot, signals, monkeypatch):
    path = tmp_path / "log.mcap"
    write_mcap(path, states(signals), kind="sensor_msgs/msg/Image")
    with pytest.raises(
        di.LogError, match=r"no message that names joints, .* its topics: /joint_states \(sensor_msgs/msg/I"
    ):
        di.read_log(path, robot)
    write_mcap(path, [("/joint_states", START, cdr(START, [], [], [], []))])
    with pytest.raises(di.LogError, match=r"has no message that names joints"):
        di.read_log(path, robot)
    write_mcap(path, states(signals), encoding="json")
    with pytest.raises(di.LogError, match="is encoded as 'json'"):
        di.read_log(path, robot)
    write_mcap(path, [("/joint_states", START, cdr(START, NAMES, [1.0, 2.0], [], []))])
    with pytest.raises(di.LogError, match=r"message 1 of topic /joint_states has 3 names but 2 values of position"):
        di.read_log(path, robot)
    write_mcap(path, [("/joint_states", START, cdr(START, NAMES, [1.0, 2.0, 3.0], [], [])[:-20])])
    with pytest.raises(di.LogError, match="is cut off or not of its type"):
        di.read_log(path, robot)
    for name in ("bad.mcap", "bad.db3"):
        (tmp_path / name).write_text("nonsense" * 100)
        with pytest.raises(di.LogError, match="cannot be read as a bag"):
            di.read_log(tmp_path / name, robot)
        with pytest.raises(di.LogError, match="no such file"):
            di.read_log(tmp_path / f"none{name}", robot)
    monkeypatch.setitem(sys.modules, "mcap.records", None)
    with pytest.raises(di.LogError, match=r"pip install 'dynident\[ros\]'"):
        di.read_log(path, robot)


def test_foreign_joint_names_are_listed(tmp_path, robot, signals):
    write_mcap(tmp_path / "log.mcap", [("/s", s, cdr(s, ["a", "b"], [k, k], [], [])) for k, s in enumerate((1, 2, 3))])
    words = r"joints are \[a, b\], .*not understood: a\.position, b\.position \(map them in a column file\)"
    with pytest.raises(di.LogError, match=words):
        di.read_log(tmp_path / "log.mcap", robot)


def test_a_bag_without_chunks_is_used_to_its_last_message(tmp_path, robot, signals):
    path = tmp_path / "log.mcap"
    write_mcap(path, states(signals), use_chunking=False)
    check(di.read_log(path, robot), robot, signals)
    whole = path.read_bytes()
    cut = whole.index(signals["q"][200, 0].tobytes())
    start = whole.rindex(struct.pack("<iI", *divmod(START + 200 * 10_000_000, 10**9)), 0, cut) - 4 - 31
    # In the middle of a message, and between two with the zeros that file systems leave.
    for rest in (whole[:cut], whole[:start] + bytes(500)):
        path.write_bytes(rest)
        with pytest.warns(LogWarning, match=r"damaged after \d+% of its bytes; the 400 messages") as said:
            log = di.read_log(path, robot)
        assert len(log) == 200
        check(log, robot, signals, 200)
        assert log.warnings == (str(said[0].message),)


def test_a_damaged_chunk_is_not_used(tmp_path, robot, signals):
    path = tmp_path / "log.mcap"
    write_mcap(path, states(signals), compression=CompressionType.NONE)
    content = bytearray(path.read_bytes())
    content[content.index(signals["q"][200, 0].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.warns(LogWarning, match="is cut off or damaged"):
        log = di.read_log(path, robot)
    assert 150 < len(log) <= 200
    check(log, robot, signals, len(log))


def test_a_large_bag_is_streamed(tmp_path, robot, signals, monkeypatch):
    path = tmp_path / "log.mcap"
    write_mcap(path, states(signals))
    monkeypatch.setattr("dynident.logs.bag._TOGETHER", 50)
    for kept in (1 << 20, 1000):  # in memory, and read again at each pass
        monkeypatch.setattr("dynident.logs.bag.SMALL_BAG", 1000)
        monkeypatch.setattr("dynident.logs.bag.KEPT_BAG", kept)
        log = di.open_log(path, robot)
        assert isinstance(log, di.LogFile)
        for _ in range(2):
            blocks = list(log.blocks())
            np.testing.assert_array_equal(np.concatenate([b.time for b in blocks]), np.arange(N) * 10_000_000 / 1e9)
            np.testing.assert_array_equal(np.concatenate([b.array("tau", robot) for b in blocks]), signals["tau"])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(di.LogError, match="has changed since it was opened"):
        next(iter(log.blocks()))
    with pytest.warns(LogWarning) as said:
        log = di.open_log(path, robot)
    for _ in range(2):  # a pass does not say it again
        n = sum(len(block) for block in log.blocks())
    assert N // 4 < n < 3 * N // 4
    assert log.warnings == next(iter(log.blocks())).warnings == (str(said[0].message),)
    assert len(said) == 1
