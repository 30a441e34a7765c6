"""Definitions of ROS messages: which fields a type has, from the bag itself or, where it has none, as known here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dynident.errors import InputError

PRIMITIVES = {  # NumPy's name of a primitive type
    "bool": "u1",
    "byte": "u1",
    "octet": "u1",
    "char": "u1",
    **{f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)},
    "float32": "f4",
    "float64": "f8",
}
ANY = -1  # elements of an array whose length stands in the message


class Field(NamedTuple):
    """A field of a message: its name, its type, and how many elements it has; None for one that is no array."""

    name: str
    kind: str
    length: int | None


Types = Mapping[str, tuple[Field, ...]]  # fields by type, such as std_msgs/Header


def short_type(name: str) -> str:
    """A type as ROS 1 calls it: sensor_msgs/JointState for sensor_msgs/msg/JointState."""
    return name.replace("/msg/", "/")


def _fields(text: str) -> Iterator[Field]:
    for part in filter(None, map(str.strip, text.split(";"))):
        kind, name = part.split()
        match = re.fullmatch(r"(\S+?)(?:\[(\d*)\])?", kind)
        assert match is not None
        yield Field(name, match[1], None if match[2] is None else int(match[2] or ANY))


def _types(definitions: Mapping[str, str]) -> dict[str, tuple[Field, ...]]:
    return {name: tuple(_fields(text)) for name, text in definitions.items()}


_POINT, _POSES = "trajectory_msgs/JointTrajectoryPoint", "trajectory_msgs/MultiDOFJointTrajectoryPoint"
_STATE = "std_msgs/Header header; string[] joint_names; "


def _points(kind: str, *names: str, before: str = "") -> str:
    return "".join(f"{kind} {before}{name}; " for name in names)


_FEEDBACK, _ACTUAL = ("reference", "feedback", "error", "output"), ("desired", "actual")
_MULTI = "string[] multi_dof_joint_names; "
COMMON = _types(
    {
        "builtin_interfaces/Time": "int32 sec; uint32 nanosec",
        "builtin_interfaces/Duration": "int32 sec; uint32 nanosec",
        "std_msgs/Header": "builtin_interfaces/Time stamp; string frame_id",
        "geometry_msgs/Vector3": "float64 x; float64 y; float64 z",
        "geometry_msgs/Quaternion": "float64 x; float64 y; float64 z; float64 w",
        "geometry_msgs/Transform": "geometry_msgs/Vector3 translation; geometry_msgs/Quaternion rotation",
        "geometry_msgs/Twist": "geometry_msgs/Vector3 linear; geometry_msgs/Vector3 angular",
        "geometry_msgs/Wrench": "geometry_msgs/Vector3 force; geometry_msgs/Vector3 torque",
        _POINT: "float64[] positions; float64[] velocities; float64[] accelerations; float64[] effort; "
        "builtin_interfaces/Duration time_from_start",
        _POSES: "geometry_msgs/Transform[] transforms; geometry_msgs/Twist[] velocities; "
        "geometry_msgs/Twist[] accelerations; builtin_interfaces/Duration time_from_start",
        "control_msgs/InterfaceValue": "string[] interface_names; float64[] values",
        "unitree_go/IMUState": "float32[4] quaternion; float32[3] gyroscope; float32[3] accelerometer; float32[3] rpy; "
        "int8 temperature",
        "unitree_go/MotorState": "uint8 mode; float32 q; float32 dq; float32 ddq; float32 tau_est; float32 q_raw; "
        "float32 dq_raw; float32 ddq_raw; int8 temperature; uint32 lost; uint32[2] reserve",
        "unitree_go/BmsState": "uint8 version_high; uint8 version_low; uint8 status; uint8 soc; int32 current; "
        "uint16 cycle; int8[2] bq_ntc; int8[2] mcu_ntc; uint16[15] cell_vol",
        "unitree_hg/IMUState": "float32[4] quaternion; float32[3] gyroscope; float32[3] accelerometer; float32[3] rpy; "
        "int16 temperature",
        "unitree_hg/MotorState": "uint8 mode; float32 q; float32 dq; float32 ddq; float32 tau_est; "
        "int16[2] temperature; float32 vol; uint32[2] sensor; uint32 motorstate; uint32[4] reserve",
    }
)
ROS1_HEADER = _types({"std_msgs/Header": "uint32 seq; builtin_interfaces/Time stamp; string frame_id"})
KNOWN: Mapping[str, tuple[tuple[Field, ...], ...]] = {  # versions of types that may stand in a bag without definition
    name: tuple(tuple(_fields(text)) for text in versions)
    for name, versions in {
        "sensor_msgs/JointState": (
            "std_msgs/Header header; string[] name; float64[] position; float64[] velocity; float64[] effort",
        ),
        "sensor_msgs/Imu": (
            "std_msgs/Header header; geometry_msgs/Quaternion orientation; float64[9] orientation_covariance; "
            "geometry_msgs/Vector3 angular_velocity; float64[9] angular_velocity_covariance; "
            "geometry_msgs/Vector3 linear_acceleration; float64[9] linear_acceleration_covariance",
        ),
        "geometry_msgs/WrenchStamped": ("std_msgs/Header header; geometry_msgs/Wrench wrench",),
        "control_msgs/DynamicJointState": (_STATE + "control_msgs/InterfaceValue[] interface_values",),
        "control_msgs/JointTrajectoryControllerState": (
            _STATE + _points(_POINT, *_ACTUAL, "error"),  # ROS 1
            _STATE + _points(_POINT, *_ACTUAL, "error") + _MULTI + _points(_POSES, *_ACTUAL, before="multi_dof_"),
            _STATE
            + _points(_POINT, *_FEEDBACK, *_ACTUAL)
            + _MULTI
            + _points(_POSES, *_FEEDBACK, *_ACTUAL, before="multi_dof_"),
            _STATE + _points(_POINT, *_FEEDBACK) + _MULTI + _points(_POSES, *_FEEDBACK, before="multi_dof_"),
        ),
        "unitree_go/LowState": (
            "uint8[2] head; uint8 level_flag; uint8 frame_reserve; uint32[2] sn; uint32[2] version; uint16 bandwidth; "
            "unitree_go/IMUState imu_state; unitree_go/MotorState[20] motor_state; unitree_go/BmsState bms_state; "
            "int16[4] foot_force; int16[4] foot_force_est; uint32 tick; uint8[40] wireless_remote; uint8 bit_flag; "
            "float32 adc_reel; int8 temperature_ntc1; int8 temperature_ntc2; float32 power_v; float32 power_a; "
            "uint16[4] fan_frequency; uint32 reserve; uint32 crc",
        ),
        "unitree_hg/LowState": (
            "uint32[2] version; uint8 mode_pr; uint8 mode_machine; uint32 tick; unitree_hg/IMUState imu_state; "
            "unitree_hg/MotorState[35] motor_state; uint8[40] wireless_remote; uint32[4] reserve; uint32 crc",
        ),
    }.items()
}
_NEEDS = "needs rosbags, which reads its definition: pip install 'dynident[ros]'"


def read_definition(kind: str, text: str, form: str) -> Types:
    """The types of a definition as a bag holds it.

    Args:
        kind: Type of the message.
        text: Its definition, followed by those of the types in it.
        form: "ros2idl" for IDL, else lines `type name`.

    Raises:
        InputError: If rosbags is not installed, or the definition cannot be read.
    """
    try:
        from rosbags.typesys import get_types_from_idl, get_types_from_msg
    except ImportError:
        raise InputError(_NEEDS) from None
    try:
        name = kind if "/msg/" in kind else kind.replace("/", "/msg/")
        plain = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        plain = re.sub(r"^={10,}$", "=" * 80, plain, flags=re.MULTILINE)  # some writers draw shorter lines
        parsed = get_types_from_idl(plain) if form == "ros2idl" else get_types_from_msg(plain, name)
        return {short_type(own): tuple(_parsed_fields(fields)) for own, (_, fields) in parsed.items()}
    except Exception as error:  # the library lets through what its parts raise
        raise InputError(f"has a definition that cannot be read ({str(error).splitlines()[0][:80]})") from None


def _parsed_fields(fields: Any) -> Iterator[Field]:
    """Fields as rosbags describes them: (name, (1, (primitive, _)) | (2, type) | (3 or 4, (element, length)))."""
    for name, (node, about) in fields:
        length: int | None = None
        if int(node) in (3, 4):
            (inner, about), count = about
            length, node = (int(count) if int(node) == 3 else ANY), inner
        kind = about[0] if int(node) == 1 else short_type(about)
        yield Field(name, kind, length)


def find_type(types: Types, name: str, ros1: bool) -> tuple[Field, ...]:
    """The fields of a type that another one has.

    Raises:
        InputError: If it is not known.
    """
    found = types.get(name) or (ROS1_HEADER.get(name) if ros1 else None) or COMMON.get(name)
    if found is None and name in KNOWN:
        found = KNOWN[name][0]
    if found is None:
        raise InputError(f"has a field of type {name}, which its definition does not describe")
    return found
