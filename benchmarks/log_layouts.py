"""Every layout of log files: written as its tool writes it, read by dynident, compared to the bit.

    python benchmarks/log_layouts.py

Files are written by the tool's own library where there is one and it is installed (rosbags, mcap-ros2-support, pandas),
else with the header that the tool writes ("imitated"). Bags are written by `bag_writers.py`. Values are random, in the
file's own units and order of joints.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import bag_writers as bags

import dynident as di
from dynident.errors import DynidentError
from dynident.logs.tables import LogWarning

N = 40
START = 1_700_000_000_000_000_000  # [ns]
STEP = 2_000_000  # [ns]
DEGREE = np.pi / 180.0
Columns = dict[str, np.ndarray]
QUADRUPED = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
MOTORS = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]


def quadruped(folder: Path) -> di.Robot:
    """Twelve joints with the names of a quadruped, in another order than that of its motors."""
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    body = f'<inertial><mass value="1"/>{inertia}</inertial>'
    links, joints = ['<link name="trunk"/>'], []
    for place, name in enumerate(QUADRUPED):
        links.append(f'<link name="l{place}">{body}</link>')
        parent = f"l{place - 1}" if place % 3 else "trunk"
        joints.append(
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="l{place}"/><axis xyz="0 1 0"/>'
            '<limit lower="-3" upper="3" effort="30" velocity="20"/></joint>'
        )
    path = folder / "quadruped.urdf"
    path.write_text(f'<robot name="quadruped">{"".join(links)}{"".join(joints)}</robot>')
    return di.load_robot(path)


def signals(robot: di.Robot) -> Columns:
    """Random values of every kind, (N, n) each, by kind; t in seconds."""
    rng = np.random.default_rng(0)
    kinds = ("q", "dq", "tau", "i", "target")
    return {kind: rng.normal(size=(N, len(robot.active))) for kind in kinds}


def seconds() -> np.ndarray:
    """Stamps that start somewhere [s]."""
    return 12.5 + 0.002 * np.arange(N)


def write(path: Path, columns: Mapping[str, Sequence[object]], between: str = ",") -> str:
    """A delimited text, by pandas where it is installed."""
    if find_spec("pandas") is not None:
        import pandas

        pandas.DataFrame(dict(columns)).to_csv(path, index=False, sep=between)
        return "pandas, header imitated"
    rows = zip(*(getattr(values, "tolist", lambda own=values: own)() for values in columns.values()), strict=True)
    head = between.join(columns)
    path.write_text("\n".join([head, *(between.join(str(x) for x in row) for row in rows)]) + "\n")
    return "imitated"


def arrays(data: Columns, patterns: Mapping[str, str], places: Sequence[int] | None = None) -> Columns:
    """Columns by pattern `actual_q_{}`, which gets the index; `places` says which joint is at which index."""
    result: Columns = {}
    for kind, pattern in patterns.items():
        order = range(data[kind].shape[1]) if places is None else places
        result |= {pattern.format(index): data[kind][:, joint] for index, joint in enumerate(order)}
    return result


def by_name(data: Columns, robot: di.Robot, patterns: Mapping[str, str]) -> Columns:
    """Columns by pattern `{}_pos`, which gets the joint's name, the joints sorted by name."""
    order = sorted(range(len(robot.joint_names)), key=lambda joint: robot.joint_names[joint])
    names = [robot.joint_names[joint] for joint in order]
    return {
        pattern.format(name): data[kind][:, joint]
        for kind, pattern in patterns.items()
        for name, joint in zip(names, order, strict=True)
    }


# ----------------------------------------------------------------------------------------------------------------------
# The layouts. Each writes a file and says by what, which channels it holds, and the stamps as they are to be read.


@dataclass(frozen=True)
class Case:
    """A layout.

    Attributes:
        name: In words.
        robot: Bundled name, or "quadruped".
        file: Name of the log.
        write: Writes it from its path, the robot and the values; returns by what.
        kinds: Channels that are to be read.
        time: Stamps that are to be read [s].
        size: What values of a kind are multiplied by in reading.
        columns: Column file, if it needs one.
        topics: Topics of a bag to read; empty where they are found.
        needs: Library that writes it, without which it cannot be tried.
    """

    name: str
    robot: str
    file: str
    write: Callable[[Path, di.Robot, Columns], str]
    kinds: tuple[str, ...] = ("q", "dq", "tau")
    time: Callable[[], np.ndarray] = seconds
    size: float = 1.0
    columns: Mapping[str, object] | None = None
    needs: str = ""
    topics: tuple[str, ...] = ()


def _rtde(between: str) -> Callable[[Path, di.Robot, Columns], str]:
    def write_it(path: Path, robot: di.Robot, data: Columns) -> str:
        patterns = {"target": "target_q_{}", "q": "actual_q_{}", "dq": "actual_qd_{}", "i": "actual_current_{}"}
        model = arrays(data, {"tau": "target_moment_{}"})
        pose = {f"actual_TCP_pose_{k}": np.zeros(N) for k in range(6)}
        return write(path, {"timestamp": seconds(), **arrays(data, patterns), **model, **pose}, between)

    return write_it


def _plotjuggler_names(path: Path, robot: di.Robot, data: Columns) -> str:
    words = {"q": "position", "dq": "velocity", "tau": "effort"}
    patterns = {kind: f"/joint_states/{{}}/{word}" for kind, word in words.items()}
    stamp = {"/joint_states/header/stamp": seconds()}
    return write(path, {"__time": seconds(), **stamp, **by_name(data, robot, patterns)})


def _plotjuggler_arrays(path: Path, robot: di.Robot, data: Columns) -> str:
    words = {"q": "position", "dq": "velocity", "tau": "effort"}
    patterns = {kind: f"/joint_states/{word}[{{}}]" for kind, word in words.items()}
    return write(path, {"__time": seconds(), **arrays(data, patterns)})


def _stamps() -> np.ndarray:
    return START + STEP * np.arange(N)


def _rostopic(named: bool) -> Callable[[Path, di.Robot, Columns], str]:
    def write_it(path: Path, robot: di.Robot, data: Columns) -> str:
        order = sorted(range(len(robot.joint_names)), key=lambda joint: robot.joint_names[joint])
        head: dict[str, Sequence[object]] = {"%time": _stamps(), "field.header.seq": np.arange(N)}
        head |= {"field.header.stamp": _stamps(), "field.header.frame_id": ["base"] * N}
        if named:
            head |= {f"field.name{place}": [robot.joint_names[joint]] * N for place, joint in enumerate(order)}
        patterns = {"q": "field.position{}", "dq": "field.velocity{}", "tau": "field.effort{}"}
        return write(path, {**head, **arrays(data, patterns, order)})

    return write_it


def _rostopic_time() -> np.ndarray:
    return _stamps().astype(np.float64) * 1e-9


def _numbers(patterns: Mapping[str, str], first: int) -> Callable[[Path, di.Robot, Columns], str]:
    def write_it(path: Path, robot: di.Robot, data: Columns) -> str:
        shifted = {
            pattern.format(index + first): data[kind][:, index]
            for kind, pattern in patterns.items()
            for index in range(data[kind].shape[1])
        }
        return write(path, {"time": seconds(), **shifted})

    return write_it


def _names(patterns: Mapping[str, str], time: str = "t") -> Callable[[Path, di.Robot, Columns], str]:
    def write_it(path: Path, robot: di.Robot, data: Columns) -> str:
        return write(path, {time: seconds(), **by_name(data, robot, patterns)})

    return write_it


def _libfranka(path: Path, robot: di.Robot, data: Columns) -> str:
    state = arrays(data, {"q": "state.q[{}]", "target": "state.q_d[{}]", "dq": "state.dq[{}]"})
    state |= {f"state.dq_d[{k}]": np.zeros(N) for k in range(7)} | arrays(data, {"tau": "state.tau_J[{}]"})
    state |= {f"state.tau_ext_hat_filtered[{k}]": np.zeros(N) for k in range(7)}
    command = {f"cmd.q_d[{k}]": np.zeros(N) for k in range(7)} | {f"cmd.tau_J_d[{k}]": np.zeros(N) for k in range(7)}
    columns = {"time": np.arange(N), "success_rate": np.ones(N), **state, **command}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    path.write_text("\n".join([", ".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return "imitated"


def _milliseconds() -> np.ndarray:
    return np.arange(N) * 1e-3


def _unitree(path: Path, robot: di.Robot, data: Columns) -> str:
    places = [QUADRUPED.index(name) for name in MOTORS]
    patterns = {"q": "motorState[{}].q", "dq": "motorState[{}].dq", "tau": "motorState[{}].tauEst"}
    idle = {f"motorState[{k}].{word}": np.zeros(N) for k in range(12, 20) for word in ("q", "dq", "tauEst")}
    return write(path, {"time": seconds(), **arrays(data, patterns, places), **idle})


def _controller(path: Path, robot: di.Robot, data: Columns) -> str:
    at = "/arm_controller/controller_state"
    patterns = {"target": f"{at}/reference/positions[{{}}]", "q": f"{at}/feedback/positions[{{}}]"}
    error = {f"{at}/error/positions[{k}]": np.zeros(N) for k in range(len(robot.joint_names))}
    more = arrays(data, {"dq": f"{at}/feedback/velocities[{{}}]"})
    return write(path, {"__time": seconds(), **arrays(data, patterns), **more, **error})


def _rsi(path: Path, robot: di.Robot, data: Columns) -> str:
    six = {kind: np.full((N, 6), rest) for kind, rest in (("q", 10.0), ("i", 0.0))}
    rows = []
    for kind, values in six.items():
        values[:, [1, 2, 4]] = data[kind]
    for k in range(N):
        q, i = (" ".join(f'A{n}="{x!r}"' for n, x in enumerate(six[kind][k].tolist(), 1)) for kind in ("q", "i"))
        rows.append(f'<Rob Type="KUKA"><AIPos {q}/><MACur {i}/><IPOC>{4208163634 + 12 * k}</IPOC></Rob>')
    path.write_text("\n".join(rows))
    return "imitated"


def _cycles() -> np.ndarray:
    return np.arange(N) * 12 / 1e3


RSI_COLUMNS: dict[str, object] = {
    **{f"{tag}.A{axis}": "unused" for tag in ("AIPos", "MACur") for axis in (1, 4, 6)},
    **{f"AIPos.A{axis}": f"q{joint}" for joint, axis in enumerate((2, 3, 5), 1)},
    **{f"MACur.A{axis}": f"i{joint}" for joint, axis in enumerate((2, 3, 5), 1)},
}


def _lerobot(path: Path, robot: di.Robot, data: Columns) -> str:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    data["q"][0, 0] = 130.0  # beyond what normalized positions reach
    (path / "meta").mkdir(parents=True)
    (path / "data" / "chunk-000").mkdir(parents=True)
    about = {"dtype": "float32", "shape": [6], "names": [f"{name}.pos" for name in robot.joint_names]}
    info = {"robot_type": "so101_follower", "fps": 30, "features": {"observation.state": about, "action": about}}
    (path / "meta" / "info.json").write_text(json.dumps(info))
    columns = {"observation.state": data["q"].tolist(), "action": data["target"].tolist()}
    frames = np.arange(N)
    columns |= {"timestamp": (frames / 30).astype(np.float32), "frame_index": frames, "episode_index": np.zeros(N, int)}
    parquet.write_table(arrow.table(columns), path / "data" / "chunk-000" / "file-000.parquet")
    return "pyarrow, imitated"


def _frames() -> np.ndarray:
    return np.arange(N) / 30


def _pandas_parquet(path: Path, robot: di.Robot, data: Columns) -> str:
    import pandas

    words = {"q": "{}.position", "dq": "{}.velocity", "tau": "{}.effort"}
    pandas.DataFrame({"timestamp": seconds(), **by_name(data, robot, words)}).to_parquet(path)
    return "pandas"


_JOINT_STATE = """std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec"""


def _messages(robot: di.Robot, data: Columns) -> list[tuple[int, list[str], dict[str, np.ndarray]]]:
    order = sorted(range(len(robot.joint_names)), key=lambda joint: robot.joint_names[joint])
    names = [robot.joint_names[joint] for joint in order]
    words = {"position": "q", "velocity": "dq", "effort": "tau"}
    return [(START + k * STEP, names, {word: data[kind][k, order] for word, kind in words.items()}) for k in range(N)]


def _mcap_ros2(path: Path, robot: di.Robot, data: Columns) -> str:
    from mcap_ros2.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", _JOINT_STATE)
        for stamp, names, values in _messages(robot, data):
            at = {"sec": stamp // 10**9, "nanosec": stamp % 10**9}
            numbers = {word: own.tolist() for word, own in values.items()}
            message = {"header": {"stamp": at, "frame_id": ""}, "name": names, **numbers}
            writer.write_message("/joint_states", schema, message, log_time=stamp, publish_time=stamp)
        writer.finish()
    return "mcap-ros2-support"


def _from_first() -> np.ndarray:
    return (_stamps() - START) / 1e9


def _irregular() -> np.ndarray:
    own = bags.irregular(N)
    return (own - own[0]) / 1e9


def _bag(
    name: str, write: bags.Writer, kinds: tuple[str, ...] = ("q", "dq", "tau"), robot: str = "ur10e", **how: object
) -> Case:
    """A bag that rosbags writes; one of ROS 1 is a file, one of ROS 2 a folder."""
    file = "log.bag" if "ROS 1" in name else "bag"
    return Case(name, robot, file, write, kinds, **{"time": _from_first, "needs": "rosbags", **how})  # type: ignore[arg-type]


_POS = {"q": "{}_pos", "dq": "{}_vel", "tau": "{}_torque"}
_POSITION = {"q": "{}_position", "dq": "{}_velocity", "tau": "{}_effort"}
_SLASH = {"q": "{}/position", "dq": "{}/velocity", "tau": "{}/effort"}
_INTERFACES = {
    "q": "state_interface.{}/position",
    "dq": "state_interface.{}/velocity",
    "tau": "state_interface.{}/effort",
    "target": "command_interface.{}/position",
}
_PLACES = [QUADRUPED.index(name) for name in MOTORS]
_COMMANDS = ("q", "dq", "i", "target")
CASES = (
    Case("UR RTDE, rtde_record (spaces)", "ur10e", "log.txt", _rtde(" "), _COMMANDS),
    Case("UR RTDE, ur_rtde (commas)", "ur10e", "log.csv", _rtde(","), _COMMANDS),
    Case("PlotJuggler, /joint_states/<joint>/position", "ur10e", "log.csv", _plotjuggler_names),
    Case("PlotJuggler, /joint_states/position[0]", "panda", "log.csv", _plotjuggler_arrays),
    Case("rostopic echo -p with names", "ur10e", "log.csv", _rostopic(True), time=_rostopic_time),
    Case("rostopic echo -p without names", "panda", "log.csv", _rostopic(False), time=_rostopic_time),
    Case("q0 .. from zero", "ur10e", "log.csv", _numbers({"q": "q{}", "dq": "dq{}", "tau": "tau{}"}, 0)),
    Case("q0 .. from zero, seven joints", "panda", "log.csv", _numbers({"q": "q{}", "tau": "tau{}"}, 0), ("q", "tau")),
    Case(
        "q0 .. from zero, a parallelogram", "sr400", "log.csv", _numbers({"q": "q{}", "tau": "tau{}"}, 0), ("q", "tau")
    ),
    Case("q_1", "ur10e", "log.csv", _numbers({"q": "q_{}", "dq": "dq_{}", "tau": "tau_{}"}, 1)),
    Case("q_0", "ur10e", "log.csv", _numbers({"q": "q_{}", "dq": "dq_{}", "tau": "tau_{}"}, 0)),
    Case("q[0]", "ur10e", "log.csv", _numbers({"q": "q[{}]", "dq": "dq[{}]", "tau": "tau[{}]"}, 0)),
    Case("<joint>_pos", "ur10e", "log.csv", _names(_POS)),
    Case("<joint>_position", "ur10e", "log.csv", _names(_POSITION)),
    Case("libfranka, logToCSV", "panda", "log.csv", _libfranka, ("q", "dq", "tau", "target"), _milliseconds),
    Case(
        "libfranka, q[0] tau_J[0]", "panda", "log.csv", _numbers({"q": "q[{}]", "dq": "dq[{}]", "tau": "tau_J[{}]"}, 0)
    ),
    Case("Unitree LowState", "quadruped", "log.csv", _unitree),
    Case("ros2_control, <joint>/position", "ur10e", "log.csv", _names(_SLASH, "time")),
    Case("ros2_control, state_interface.", "ur10e", "log.csv", _names(_INTERFACES, "__time"), (*_POSITION, "target")),
    Case("ros2_control, controller_state", "panda", "log.csv", _controller, ("q", "dq", "target")),
    Case("KUKA RSI, axes left out and mapped", "kr5-planar", "log.xml", _rsi, ("q", "i"), _cycles, DEGREE, RSI_COLUMNS),
    Case("LeRobot folder in degrees", "ur10e", "dataset", _lerobot, ("q", "target"), _frames, DEGREE, None, "pyarrow"),
    Case("pandas, Parquet", "ur10e", "log.parquet", _pandas_parquet, needs="pandas"),
    Case("ROS 2 bag, MCAP", "ur10e", "log.mcap", _mcap_ros2, time=_from_first, needs="mcap_ros2"),
    *(_bag(f"ROS 1 bag, {how or 'not packed'}", bags.joint_states(1, how)) for how in ("", "bz2", "lz4")),
    _bag("ROS 1 bag, irregular stamps", bags.joint_states(1, "", bags.irregular), time=_irregular),
    _bag("ROS 1 bag, several publishers", bags.several_publishers, (*_POSITION, "target")),
    _bag("ROS 2 bag, SQLite", bags.joint_states(2, "sqlite")),
    _bag("ROS 2 bag, SQLite, messages by zstd", bags.joint_states(2, "sqlite message")),
    _bag("ROS 2 bag, SQLite, file by zstd", bags.joint_states(2, "sqlite file")),
    _bag("ROS 2 bag, MCAP folder", bags.joint_states(2, "mcap")),
    _bag("ROS 2 bag, MCAP, chunks by zstd", bags.joint_states(2, "mcap storage")),
    _bag("ROS 2 bag, MCAP, messages by zstd", bags.joint_states(2, "mcap message")),
    _bag("ROS 2 bag, MCAP, file by zstd", bags.joint_states(2, "mcap file")),
    Case("MCAP of ROS 1", "ur10e", "log.mcap", bags.mcap_of_ros1, time=_from_first, needs="rosbags"),
    _bag("JointTrajectoryControllerState, ROS 1", bags.controller_state(1, also=False), ("q", "target")),
    _bag("JointTrajectoryControllerState, ROS 2", bags.controller_state(2, also=False), ("q", "target")),
    _bag("JointState and its controller's state, ROS 1", bags.controller_state(1, also=True), (*_POSITION, "target")),
    _bag("JointState and its controller's state, ROS 2", bags.controller_state(2, also=True), (*_POSITION, "target")),
    _bag("DynamicJointState", bags.dynamic_joint_state),
    _bag("FrankaState, ROS 1", bags.franka_state, (*_POSITION, "target"), "panda"),
    _bag("FrankaRobotState", bags.franka_robot_state, (*_POSITION, "target"), "panda"),
    _bag("Unitree LowState, ROS 1", bags.low_state(1, _PLACES), robot="quadruped"),
    _bag("Unitree LowState", bags.low_state(2, _PLACES), robot="quadruped"),
    _bag("Unitree LowState, SQLite without definitions", bags.low_state(2, _PLACES, False), robot="quadruped"),
    _bag(
        "a type of one's own, --topic",
        bags.own_type,
        ("q", "tau"),
        columns={f"torque[{k}]": f"tau{k + 1}" for k in range(6)},
        topics=("/joint_states", "/torques"),
    ),
)


def robot_of(case: Case, folder: Path) -> di.Robot:
    """The robot whose log it is."""
    return quadruped(folder) if case.robot == "quadruped" else di.load_robot(case.robot)


def differences(case: Case, folder: Path) -> tuple[str, list[str]]:
    """Write the log and read it again: by what it was written, and every channel that is not equal to the bit."""
    robot = robot_of(case, folder)
    data = signals(robot)
    how = case.write(folder / case.file, robot, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        log = di.read_log(folder / case.file, robot, columns=case.columns, topics=case.topics)
    numbers = [robot.joints[i].number for i in robot.active]
    expected = {"t": case.time()}
    for kind in case.kinds:
        size = case.size if kind in ("q", "target") else 1.0
        expected |= {f"{kind}{number}": data[kind][:, k] * size for k, number in enumerate(numbers)}
    found = {"t": log.time, **log.channels}
    wrong = [name for name in expected if name not in found or not np.array_equal(found[name], expected[name])]
    return how, [*wrong, *(name for name in found if name not in expected)]


def main() -> None:
    """Print the table."""
    print("| layout | robot | written by | channels | equal to the bit |\n|---|---|---|---|---|")
    failed = False
    for case in CASES:
        if case.needs and find_spec(case.needs) is None:
            print(f"| {case.name} | {case.robot} | {case.needs} is not installed | | |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                how, wrong = differences(case, Path(folder))
                answer = f"no: {', '.join(wrong)}" if wrong else "yes"
            except DynidentError as error:
                how, answer = "", f"refused: {error}"
        failed = failed or answer != "yes"
        print(f"| {case.name} | {case.robot} | {how} | t, {', '.join(case.kinds)} | {answer} |")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
