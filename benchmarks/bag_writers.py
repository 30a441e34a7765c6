"""Bags of ROS 1 and ROS 2 as robots record them, written by rosbags: for `log_layouts.py` and the tests.

Every writer takes the path, the robot and the values of its channels, (n, n_joints) each by kind, and returns by what
the file was written. Topics that are no log of the robot stand beside those that are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di

START = 1_700_000_000_000_000_000  # [ns]
STEP = 2_000_000  # [ns]
LATE = 150_000  # from the stamp of a message to its recording [ns]
Columns = dict[str, np.ndarray]
Message = tuple[str, int, Any]  # topic, stamp of the recorder [ns], message
Writer = Callable[[Path, di.Robot, Columns], str]

_POINTS = "trajectory_msgs/JointTrajectoryPoint"
_STATE = "std_msgs/Header header\nstring[] joint_names\n"
_MULTI = "string[] multi_dof_joint_names\n"
_DEFINITIONS = {  # of types that rosbags does not know, in the versions of the time
    1: {
        "control_msgs/msg/JointTrajectoryControllerState": _STATE
        + "".join(f"{_POINTS} {name}\n" for name in ("desired", "actual", "error")),
        "franka_msgs/msg/FrankaState": "std_msgs/Header header\nfloat64[6] cartesian_collision\n"
        + "".join(f"float64[7] {name}\n" for name in ("q", "q_d", "dq", "dq_d", "theta", "tau_J", "tau_J_d"))
        + "float64[16] O_T_EE\nfloat64 time\nuint8 ROBOT_MODE_IDLE=1\nuint8 robot_mode\n",
        "unitree_legged_msgs/msg/MotorState": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tauEst\n"
        "int8 temperature\nuint32[2] reserve\n",
        "unitree_legged_msgs/msg/LowState": "uint8 levelFlag\nMotorState[20] motorState\nuint32 tick\n",
    },
    2: {
        "control_msgs/msg/JointTrajectoryControllerState": _STATE
        + "".join(f"{_POINTS} {name}\n" for name in ("reference", "feedback", "error", "output"))
        + _MULTI
        + "".join(
            f"trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_{name}\n"
            for name in ("reference", "feedback", "error", "output")
        ),
        "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
        "control_msgs/msg/DynamicJointState": _STATE + "control_msgs/InterfaceValue[] interface_values\n",
        "franka_msgs/msg/FrankaRobotState": "std_msgs/Header header\n"
        + "".join(f"sensor_msgs/JointState {name}_joint_state\n" for name in ("measured", "desired", "measured_motor"))
        + "float64[7] ddq_d\ngeometry_msgs/WrenchStamped k_f_ext_hat_k\nfloat64 time\nuint8 robot_mode\n",
        "unitree_go/msg/MotorState": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\nfloat32 q_raw\n"
        "float32 dq_raw\nfloat32 ddq_raw\nint8 temperature\nuint32 lost\nuint32[2] reserve\n",
        "unitree_go/msg/IMUState": "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer\n"
        "float32[3] rpy\nint8 temperature\n",
        "unitree_go/msg/BmsState": "uint8 version_high\nuint8 version_low\nuint8 status\nuint8 soc\nint32 current\n"
        "uint16 cycle\nint8[2] bq_ntc\nint8[2] mcu_ntc\nuint16[15] cell_vol\n",
        "unitree_go/msg/LowState": "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\n"
        "uint32[2] version\nuint16 bandwidth\nIMUState imu_state\nMotorState[20] motor_state\nBmsState bms_state\n"
        "int16[4] foot_force\nint16[4] foot_force_est\nuint32 tick\nuint8[40] wireless_remote\nuint8 bit_flag\n"
        "float32 adc_reel\nint8 temperature_ntc1\nint8 temperature_ntc2\nfloat32 power_v\nfloat32 power_a\n"
        "uint16[4] fan_frequency\nuint32 reserve\nuint32 crc\n",
        "my_msgs/msg/JointTorques": "std_msgs/Header header\nfloat64[6] torque\nstring source\n",
    },
}


@cache
def store(ros: int) -> Any:
    """The types of ROS 1 or 2, with those above."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    known = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_HUMBLE)
    for name, text in _DEFINITIONS[ros].items():
        known.register(get_types_from_msg(text, name))
    return known


def make(ros: int, kind: str, **values: Any) -> Any:
    """A message of a type; fields that are not given are zero or empty."""
    full = kind.replace("/", "/msg/") if "/msg/" not in kind else kind
    known = store(ros)
    filled = {name: values.get(name, _zero(ros, about)) for name, about in known.fielddefs[full][1]}
    return known.types[full](**filled)


def _zero(ros: int, about: Any) -> Any:
    node, inner = int(about[0]), about[1]
    if node == 1:
        return "" if inner[0] == "string" else 0.0 if inner[0].startswith("float") else 0
    if node == 2:
        return make(ros, inner)
    (kind, element), count = inner
    count = count if node == 3 else 0
    if int(kind) == 2 or element[0] == "string":
        return [_zero(ros, (kind, element)) for _ in range(count)]
    return np.zeros(count, {"bool": bool, "byte": np.uint8, "char": np.uint8}.get(element[0], element[0]))


def header(ros: int, stamp: int, frame: str = "base") -> Any:
    """A header with a time stamp [ns]."""
    at = make(ros, "builtin_interfaces/Time", sec=int(stamp // 10**9), nanosec=int(stamp % 10**9))
    return make(ros, "std_msgs/Header", stamp=at, frame_id=frame)


def joint_state(ros: int, stamp: int, names: Sequence[str], *values: np.ndarray) -> Any:
    """A joint state from position, velocity and effort, which may be left out from the end."""
    fields = dict(zip(("position", "velocity", "effort"), map(np.ascontiguousarray, values), strict=False))
    return make(ros, "sensor_msgs/JointState", header=header(ros, stamp), name=list(names), **fields)


def write_bag(path: Path, ros: int, messages: Iterable[Message], how: str = "") -> str:
    """Write a bag; `how` is what packs it, or the kind of file: bz2, lz4, mcap, message, file, storage."""
    known = store(ros)
    if ros == 1:
        from rosbags.rosbag1 import Writer as Writer1

        writer: Any = Writer1(path)
        if how:
            writer.set_compression(Writer1.CompressionFormat[how.upper()])
    else:
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer as Writer2

        kind, _, packed = how.partition(" ")
        plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
        if packed:
            writer.set_compression(CompressionMode[packed.upper()], CompressionFormat.ZSTD)
    with writer:
        topics: dict[str, Any] = {}
        for topic, stamp, message in messages:
            kind = message.__msgtype__
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, kind, typestore=known)
            data = known.serialize_ros1(message, kind) if ros == 1 else known.serialize_cdr(message, kind)
            writer.write(topics[topic], stamp, data)
    return "rosbags"


def stamps(n: int) -> np.ndarray:
    """Of the headers, (n,) [ns]."""
    return START + STEP * np.arange(n)


def irregular(n: int) -> np.ndarray:
    """Stamps whose steps are never the same, (n,) [ns]."""
    return stamps(n) + np.random.default_rng(5).integers(-STEP // 3, STEP // 3, n)


# ----------------------------------------------------------------------------------------------------------------------
# What robots record.


def states(ros: int, robot: di.Robot, data: Columns, times: np.ndarray) -> Iterator[Message]:
    """Joint states with the joints sorted by name, fingers in messages of their own, and topics of other things."""
    order = sorted(range(len(robot.joint_names)), key=lambda joint: robot.joint_names[joint])
    names = [robot.joint_names[joint] for joint in order]
    for k, stamp in enumerate(times.tolist()):
        late = stamp + LATE
        yield (
            "/joint_states",
            late,
            joint_state(ros, stamp, names, *(data[kind][k, order] for kind in ("q", "dq", "tau"))),
        )
        if k % 3 == 0:
            yield "/joint_states", late + 1, joint_state(ros, stamp, ["finger_left", "finger_right"], np.ones(2))
        if k % 2:
            yield "/imu", late + 2, make(ros, "sensor_msgs/Imu", header=header(ros, stamp, "imu_link"))
        force = make(ros, "geometry_msgs/Vector3", x=float(k))
        wrench = make(ros, "geometry_msgs/Wrench", force=force)
        yield (
            "/wrench",
            late + 3,
            make(ros, "geometry_msgs/WrenchStamped", header=header(ros, stamp, "tool0"), wrench=wrench),
        )


def joint_states(ros: int, how: str = "", times: Callable[[int], np.ndarray] = stamps) -> Writer:
    """`states` in a bag."""

    def write_it(path: Path, robot: di.Robot, data: Columns) -> str:
        return write_bag(path, ros, states(ros, robot, data, times(len(data["q"]))), how)

    return write_it


def mcap_of_ros1(path: Path, robot: di.Robot, data: Columns) -> str:
    """A bag of ROS 1 that was converted to MCAP, which leaves the messages as they are."""
    from mcap.writer import Writer as McapWriter

    known = store(1)
    with path.open("wb") as file:
        writer = McapWriter(file)
        writer.start(profile="ros1")
        channels: dict[str, int] = {}
        for topic, stamp, message in states(1, robot, data, stamps(len(data["q"]))):
            kind = message.__msgtype__
            if topic not in channels:
                text = known.generate_msgdef(kind, ros_version=1)[0]
                schema = writer.register_schema(kind.replace("/msg/", "/"), "ros1msg", text.encode())
                channels[topic] = writer.register_channel(topic, "ros1", schema)
            writer.add_message(channels[topic], stamp, bytes(known.serialize_ros1(message, kind)), stamp)
        writer.finish()
    return "mcap, rosbags"


def controller_state(ros: int, also: bool) -> Writer:
    """States of a trajectory controller, which carry the commanded positions; joint states beside them or not."""

    def point(values: np.ndarray) -> Any:
        return make(ros, _POINTS, positions=np.ascontiguousarray(values))

    def messages(robot: di.Robot, data: Columns) -> Iterator[Message]:
        names, at = list(robot.joint_names), stamps(len(data["q"])).tolist()
        target, actual = ("desired", "actual") if ros == 1 else ("reference", "feedback")
        kind = "control_msgs/JointTrajectoryControllerState"
        for k, stamp in enumerate(at):
            own = {target: point(data["target"][k]), actual: point(data["q"][k])}
            message = make(ros, kind, header=header(ros, stamp), joint_names=names, **own)
            yield "/arm_controller/state", stamp + LATE, message
            if also:
                values = (data[kind][k] for kind in ("q", "dq", "tau"))
                yield "/joint_states", stamp + LATE, joint_state(ros, stamp, names, *values)

    return lambda path, robot, data: write_bag(path, ros, messages(robot, data), "" if ros == 1 else "mcap")


def dynamic_joint_state(path: Path, robot: di.Robot, data: Columns) -> str:
    """Joints with lists of interfaces, a gripper without effort and a force sensor among them."""
    words = {"effort": "tau", "position": "q", "velocity": "dq"}

    def interfaces(values: Mapping[str, float]) -> Any:
        return make(
            2, "control_msgs/InterfaceValue", interface_names=list(values), values=np.array(list(values.values()))
        )

    def messages() -> Iterator[Message]:
        for k, stamp in enumerate(stamps(len(data["q"])).tolist()):
            message = {
                name: interfaces({word: data[kind][k, joint] for word, kind in words.items()})
                for joint, name in reversed(list(enumerate(robot.joint_names)))
            }
            message = {"gripper": interfaces({"position": 0.1}), **message, "ft_sensor": interfaces({"force.x": 1.0})}
            state = {"joint_names": list(message), "interface_values": list(message.values())}
            yield "/dynamic", stamp, make(2, "control_msgs/DynamicJointState", header=header(2, stamp), **state)

    return write_bag(path, 2, messages(), "mcap")


def franka_state(path: Path, robot: di.Robot, data: Columns) -> str:
    """The state as franka_ros publishes it, joint states that are commands, and a gripper."""

    def messages() -> Iterator[Message]:
        names = list(robot.joint_names)
        for k, stamp in enumerate(stamps(len(data["q"])).tolist()):
            fields = {"q": "q", "q_d": "target", "dq": "dq", "tau_J": "tau"}
            own = {name: data[kind][k] for name, kind in fields.items()}
            yield (
                "/states_desired",
                stamp,
                joint_state(1, stamp, names, data["target"][k], data["dq"][k] + 1.0, own["dq"]),
            )
            yield "/franka_states", stamp, make(1, "franka_msgs/FrankaState", header=header(1, stamp), **own)
            yield "/gripper/joint_states", stamp, joint_state(1, stamp, ["finger1", "finger2"], np.ones(2))

    return write_bag(path, 1, messages(), "lz4")


def franka_robot_state(path: Path, robot: di.Robot, data: Columns) -> str:
    """The state as franka_ros2 publishes it."""

    def messages() -> Iterator[Message]:
        for k, stamp in enumerate(stamps(len(data["q"])).tolist()):
            values = [data[kind][k] for kind in ("q", "dq", "tau")]
            own = {
                "measured_joint_state": joint_state(2, stamp, robot.joint_names, *values),
                "desired_joint_state": joint_state(2, stamp, robot.joint_names, data["target"][k], *values[1:]),
            }
            yield "/robot_state", stamp, make(2, "franka_msgs/FrankaRobotState", header=header(2, stamp), **own)

    return write_bag(path, 2, messages(), "mcap storage")


def low_state(ros: int, places: Sequence[int], defined: bool = True) -> Writer:
    """States of a quadruped's motors in single precision and without a stamp.

    Args:
        ros: Version of ROS.
        places: The joint of each motor.
        defined: Whether the bag holds the definitions of its types; those of SQLite did not before ROS 2 Iron.
    """
    package, name, torque = (
        ("unitree_legged_msgs", "motorState", "tauEst") if ros == 1 else ("unitree_go", "motor_state", "tau_est")
    )

    def write_it(path: Path, robot: di.Robot, data: Columns) -> str:
        for kind in ("q", "dq", "tau"):
            data[kind][:] = data[kind].astype(np.float32)
        idle = [make(ros, f"{package}/MotorState")] * (20 - len(places))

        def messages() -> Iterator[Message]:
            for k, stamp in enumerate(stamps(len(data["q"])).tolist()):
                motors = [
                    make(
                        ros,
                        f"{package}/MotorState",
                        **{word: float(data[kind][k, i]) for word, kind in (("q", "q"), ("dq", "dq"), (torque, "tau"))},
                    )
                    for i in places
                ]
                yield "/lowstate", stamp, make(ros, f"{package}/LowState", **{name: motors + idle})

        written = write_bag(path, ros, messages(), "bz2" if ros == 1 else "mcap" if defined else "sqlite")
        if not defined:
            base = sqlite3.connect(next(path.glob("*.db3")))
            base.execute("DROP TABLE message_definitions")
            base.commit()
            base.close()
        return written

    return write_it


def own_type(path: Path, robot: di.Robot, data: Columns) -> str:
    """Positions as joint states, torque in a type of one's own, whose definition the bag holds."""

    def messages() -> Iterator[Message]:
        for k, stamp in enumerate(stamps(len(data["q"])).tolist()):
            yield "/joint_states", stamp, joint_state(2, stamp, robot.joint_names, data["q"][k])
            own = make(2, "my_msgs/JointTorques", header=header(2, stamp), torque=data["tau"][k], source="x" * (k % 4))
            yield "/torques", stamp, own

    return write_bag(path, 2, messages(), "mcap")


def several_publishers(path: Path, robot: di.Robot, data: Columns) -> str:
    """Two arms and a gripper, each with a publisher; one of them without effort, which a third topic tells."""
    half = len(robot.joint_names) // 2

    def messages() -> Iterator[Message]:
        names = robot.joint_names
        for k, stamp in enumerate(stamps(len(data["q"])).tolist()):
            q, dq, tau = (data[kind][k] for kind in ("q", "dq", "tau"))
            yield "/upper", stamp + LATE, joint_state(1, stamp, names[:half], q[:half], dq[:half], tau[:half])
            yield "/lower", stamp + LATE, joint_state(1, stamp, names[half:], q[half:], dq[half:])
            yield "/efforts", stamp + LATE, joint_state(1, stamp, names[half:], [], [], tau[half:])
            yield "/joint_commands", stamp, joint_state(1, stamp, names, data["target"][k], tau, q)
            yield "/gripper", stamp, joint_state(1, stamp, ["gripper"], np.ones(1))

    return write_bag(path, 1, messages())
