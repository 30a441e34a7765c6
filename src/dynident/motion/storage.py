"""Trajectories as plain data: YAML that is read back strictly, samples as CSV, ROS 2 messages as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynident.errors import DynidentError, InputError, RobotFileError, suggestion
from dynident.files import write_text, write_whole
from dynident.motion.fourier import Fourier
from dynident.motion.point_to_point import PointToPoint
from dynident.motion.simple import Locked, Sequence, Sinusoid, Step
from dynident.motion.trajectory import State, Trajectory
from dynident.readers import reader
from dynident.robot.storage import yaml_text
from dynident.schema import parse_yaml, read_text

FORMAT = "dynident motion 1"
KINDS: dict[str, type[Trajectory]] = {
    cls.kind: cls for cls in (PointToPoint, Sinusoid, Step, Fourier, Sequence, Locked)
}
_BLOCK = 4096  # samples written at a time
_NEAR = 1e-6  # share of the time between samples within which the last one is at the end
_TEXT = ("law",)  # fields that are words


class MotionFileError(DynidentError):
    """A file that does not hold a trajectory."""


def to_data(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory as lists, numbers and names."""
    data: dict[str, Any] = {"kind": trajectory.kind}
    for field in dataclasses.fields(trajectory):
        value = getattr(trajectory, field.name)
        if field.name == "joints" and not value:
            continue
        data[field.name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, Trajectory):
        return to_data(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def from_data(data: Any, source: str = "motion", where: str = "motion") -> Trajectory:
    """The trajectory that `to_data` described; every key must be known and every value of its kind."""
    if not isinstance(data, Mapping) or "kind" not in data:
        raise MotionFileError(f"{source}: {where} must be a mapping with the key 'kind'")
    kind = str(data["kind"])
    if kind not in KINDS:
        raise MotionFileError(f"{source}: {where}: unknown kind '{kind}'{suggestion(kind, KINDS)}")
    cls = KINDS[kind]
    fields = {field.name: field for field in dataclasses.fields(cls)}
    given: dict[str, Any] = {}
    for key, value in data.items():
        if key == "kind":
            continue
        if key not in fields:
            raise MotionFileError(f"{source}: {where}: unknown key '{key}'{suggestion(str(key), fields)}")
        if fields[key].type == "float":
            _only_numbers(value, source, f"{where}.{key}", depth=0)
        given[str(key)] = _value(str(key), value, source, f"{where}.{key}")
    for name, field in fields.items():
        if name not in given and field.default is dataclasses.MISSING:
            raise MotionFileError(f"{source}: {where}: needs the key '{name}' for a motion of kind '{kind}'")
    try:
        return cls(**given)
    except MotionFileError:
        raise
    except DynidentError as error:
        raise MotionFileError(f"{source}: {where}: {error}") from None


def _value(key: str, value: Any, source: str, where: str) -> Any:
    if key == "parts":
        if not isinstance(value, list):
            raise MotionFileError(f"{source}: {where} must be a list of motions")
        return tuple(from_data(item, source, f"{where}[{i + 1}]") for i, item in enumerate(value))
    if key == "motion":
        return from_data(value, source, where)
    if key == "joints":
        if not isinstance(value, list) or not all(isinstance(name, str | int) for name in value):
            raise MotionFileError(f"{source}: {where} must be a list of joint names")
        return tuple(str(name) for name in value)
    if key == "positions":
        if not isinstance(value, Mapping):
            raise MotionFileError(f"{source}: {where} must be a mapping of joint names to positions")
        for name, item in value.items():
            _only_numbers(item, source, f"{where}.{name}", depth=0)
        return {str(name): item for name, item in value.items()}
    if key in _TEXT:
        return str(value)
    _only_numbers(value, source, where)
    return value


def _only_numbers(value: Any, source: str, where: str, depth: int = 2) -> None:
    """Refuse what is no number, or lists of them to a depth."""
    if isinstance(value, list) and depth:
        for i, item in enumerate(value):
            _only_numbers(item, source, f"{where}[{i + 1}]", depth - 1)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise MotionFileError(f"{source}: {where} is {value!r}; expected a number")


def save_trajectory(trajectory: Trajectory, path: str | Path, notes: Mapping[str, Any] | None = None) -> None:
    """Write a trajectory as YAML; `notes` (how it was made) are kept for people and read by nobody."""
    data: dict[str, Any] = {"format": FORMAT, "duration": trajectory.duration}
    if notes:
        data["notes"] = dict(notes)
    data["motion"] = to_data(trajectory)
    write_text(path, f"# A motion of dynident; times in s, positions in rad or m.\n{yaml_text(data)}")


@reader("motion", MotionFileError)
def load_trajectory(path: str | Path) -> Trajectory:
    """Read a trajectory from a YAML file.

    Raises:
        MotionFileError: Naming the file, the place in it and what is wrong.
    """
    source = str(path)
    try:
        data = parse_yaml(read_text(Path(path)), source)
    except RobotFileError as error:
        raise MotionFileError(str(error)) from None
    if data.get("format") != FORMAT:
        raise MotionFileError(f"{source}: format is {data.get('format')!r}; expected '{FORMAT}'")
    for key in data:
        if key not in ("format", "duration", "notes", "motion"):
            valid = ("format", "duration", "notes", "motion")
            raise MotionFileError(f"{source}: unknown key '{key}'{suggestion(key, valid)}")
    trajectory = from_data(data.get("motion"), source)
    stated = data.get("duration", trajectory.duration)
    number = isinstance(stated, int | float) and not isinstance(stated, bool)
    if not number or not np.isclose(stated, trajectory.duration, rtol=1e-9, atol=0.0):
        raise MotionFileError(
            f"{source}: duration is {stated}, but the motion lasts {trajectory.duration:g} s; remove the key or "
            "correct it"
        )
    return trajectory


def sampled_blocks(
    trajectory: Trajectory, rate: float, *, to_the_end: bool = False
) -> Iterator[tuple[np.ndarray[Any, Any], State]]:
    """Stamps and states at a rate [Hz], some thousand samples at a time; the end too where the raster misses it."""
    times = trajectory.times(rate)
    if to_the_end and trajectory.duration - times[-1] > _NEAR / rate:
        times = np.append(times, trajectory.duration)
    for first in range(0, len(times), _BLOCK):
        part = times[first : first + _BLOCK]
        yield part, trajectory.sample(part)


def write_csv(trajectory: Trajectory, path: str | Path, rate: float, numbers: tuple[str, ...] | None = None) -> None:
    """Samples as `t,q1..,dq1..,ddq1..` at a rate [Hz]; `numbers` are the joints' numbers when they are not 1, 2, .."""
    labels = numbers or tuple(str(i + 1) for i in range(trajectory.n_joints))
    if len(labels) != trajectory.n_joints:
        raise InputError(f"{len(labels)} joint numbers for a motion of {trajectory.n_joints} joints")
    head = ["t", *(f"{symbol}{label}" for symbol in ("q", "dq", "ddq") for label in labels)]

    def write(file: IO[bytes]) -> None:
        file.write((",".join(head) + "\n").encode())
        for times, states in sampled_blocks(trajectory, rate):
            rows = np.hstack([times[:, None], *states]).tolist()
            file.write("".join(",".join(map(repr, values)) + "\n" for values in rows).encode())

    write_whole(path, write)


def ros_joint_trajectory(trajectory: Trajectory, rate: float) -> dict[str, Any]:
    """A `trajectory_msgs/JointTrajectory` message as plain data, sampled at a rate [Hz].

    Its last point is the end of the motion, on the raster or not: controllers refuse a trajectory that ends in motion.
    """
    if not trajectory.joints:
        raise InputError("a ROS message names its joints; give the trajectory its `joints`")
    points = []
    for times, (q, dq, ddq) in sampled_blocks(trajectory, rate, to_the_end=True):
        for t, position, velocity, acceleration in zip(times.tolist(), q, dq, ddq, strict=True):
            nanoseconds = round(t * 1e9)
            points.append(
                {
                    "positions": position.tolist(),
                    "velocities": velocity.tolist(),
                    "accelerations": acceleration.tolist(),
                    "effort": [],
                    "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
                }
            )
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    return {"header": header, "joint_names": list(trajectory.joints), "points": points}


def write_ros(trajectory: Trajectory, path: str | Path, rate: float) -> None:
    """`ros_joint_trajectory` as a JSON file."""
    write_text(path, json.dumps(ros_joint_trajectory(trajectory, rate)))
