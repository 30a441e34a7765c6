"""Types of ROS messages that hold the state of joints: which of their fields are columns of a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from dynident.errors import InputError
from dynident.logs.definitions import KNOWN, Field, Types, find_type, read_definition, short_type
from dynident.logs.message_layout import Layout, Leaf, Piece, Walk, join_fixed, walk_message

COLUMN_KINDS = {  # by the end of a column's name, the kind of channel; empty for what is no channel of a joint
    "position": "q",
    "velocity": "dq",
    "effort": "tau",
    "current": "i",
    "temperature": "temp",
    "target": "target",
    **dict.fromkeys(("fx", "fy", "fz", "mx", "my", "mz"), ""),
    "": "",
}
_QUANTITIES = tuple(COLUMN_KINDS)
COMMAND = re.compile(
    r"(.*[/_])?(desired|cmd|command(ed|s)?|target|reference|goal|setpoint|servo)s?([/_].*)?"
)  # of topics


@dataclass(frozen=True)
class Recipe:
    """Which fields of a type are columns.

    Attributes:
        names: Path of the names of the joints; empty where a type has none, and its columns are called by their paths.
        values: By the end of the column's name, paths of its numbers; the first that is not empty counts.
        paths: Of the columns of a type without names.
        frame: Whether the frame of the header names the sensor.
        interfaces: Whether each joint has a list of what it tells.
        words: What else the type holds, for those that fill no channel.
    """

    names: str = ""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: str = ""
    frame: bool = False
    interfaces: bool = False
    words: str = ""


_STATE = {"position": ("position",), "velocity": ("velocity",), "effort": ("effort",)}
_RECIPES = {
    "sensor_msgs/JointState": Recipe("name", _STATE),
    "control_msgs/JointTrajectoryControllerState": Recipe(
        "joint_names",
        {
            "position": ("feedback.positions", "actual.positions"),
            "velocity": ("feedback.velocities", "actual.velocities"),
            "effort": ("feedback.effort", "actual.effort"),
            "target": ("reference.positions", "desired.positions"),
        },
    ),
    "control_msgs/DynamicJointState": Recipe("joint_names", interfaces=True),
    "franka_msgs/FrankaRobotState": Recipe(
        "measured_joint_state.name",
        {
            **{word: (f"measured_joint_state.{word}",) for word in _STATE},
            "target": ("desired_joint_state.position",),
        },
    ),
    "franka_msgs/FrankaState": Recipe(paths=r"(q|dq|tau_J|q_d)"),
    "geometry_msgs/WrenchStamped": Recipe(
        frame=True,
        values={
            **{f"f{axis}": (f"wrench.force.{axis}",) for axis in "xyz"},
            **{f"m{axis}": (f"wrench.torque.{axis}",) for axis in "xyz"},
        },
    ),
    "LowState": Recipe(paths=r"motor_?[sS]tate\[\d+\]\.(q|dq|tau_?[eE]st)"),  # of Unitree's packages
    "LowCmd": Recipe(paths=r"motor_?[cC]md\[\d+\]\.q"),
}
_PLAIN = Recipe(paths=r".*")
_WORDS = {
    "sensor_msgs/Imu": "orientation, angular velocity and acceleration of a body; no channel of a joint",
}


def recipe_of(kind: str) -> Recipe | None:
    """Which fields of a type are columns by themselves; None for a type that must be chosen."""
    short = short_type(kind)
    return _RECIPES.get(short) or _RECIPES.get(short.rpartition("/")[2])


def words_of(kind: str) -> str:
    """What a type that fills no channel holds, where it is often looked for; else empty."""
    return _WORDS.get(short_type(kind), "")


# ----------------------------------------------------------------------------------------------------------------------
# Topics, and the layouts of their messages.


@dataclass
class Topic:
    """A topic of a bag.

    Attributes:
        name: Its name.
        kind: Type of its messages.
        encoding: How they are encoded: cdr (ROS 2), ros1 or another.
        definition: Of the type, as the bag holds it; empty if it does not.
        form: How the definition is written: ros2msg, ros1msg, ros2idl or empty.
        count: Number of messages.
        first: When the first was recorded [ns].
        last: When the last was recorded [ns].
    """

    name: str
    kind: str
    encoding: str
    definition: str = ""
    form: str = ""
    count: int = 0
    first: int = 0
    last: int = 0

    @property
    def rate(self) -> float:
        """Messages per second by the recorder's stamps; zero where they do not advance."""
        return (self.count - 1) * 1e9 / (self.last - self.first) if self.last > self.first else 0.0

    def note(self, stamp: int) -> None:
        """Count a message."""
        if not self.count:
            self.first = self.last = stamp
        self.count += 1
        self.last = stamp if stamp > self.last else self.last

    @property
    def is_command(self) -> bool:
        """Whether its name says that it commands joints rather than measures them."""
        return COMMAND.fullmatch(self.name.lower()) is not None


def decoder_of(topic: Topic, chosen: bool, command: bool) -> Callable[[bytes], Layout]:
    """What finds the layout of a message of a topic.

    Args:
        topic: The topic.
        chosen: Whether the user chose it: then all numbers of a type without names of joints are columns.
        command: Whether its positions are commands.

    The decoder raises InputError for a message that cannot be read; so does this function for a type that cannot.
    """
    if topic.encoding not in ("cdr", "ros1"):
        raise InputError(f"is encoded as '{topic.encoding}', not as ROS does (cdr or ros1); convert the bag")
    ros1, short = topic.encoding == "ros1", short_type(topic.kind)
    recipe = recipe_of(topic.kind)
    if recipe is None or (chosen and recipe.paths):
        recipe = _PLAIN
    types: Types = {}
    versions: tuple[tuple[Field, ...], ...] = ()
    trouble = f"is of type {topic.kind}, of which the bag holds no definition; record as MCAP, which holds them"
    if topic.definition and short != "sensor_msgs/JointState":  # which never changed
        try:
            types = read_definition(topic.kind, topic.definition, topic.form)
            versions = (find_type(types, short, ros1),)
        except InputError as error:
            trouble = f"is of type {topic.kind}, which {error}"
    versions = versions or KNOWN.get(short, ())
    if not versions:
        raise InputError(trouble)

    def decode(data: bytes) -> Layout:
        walk = _walk_versions(data, versions, types, ros1)
        return _layout(walk, recipe, topic.name, command)

    return decode


def _walk_versions(data: bytes, versions: tuple[tuple[Field, ...], ...], types: Types, ros1: bool) -> Walk:
    """The walk along the first version of a type that ends where the message does."""
    trouble = InputError("is cut off or not of its type")
    for fields in versions:
        try:
            return walk_message(data, fields, types, ros1)
        except InputError as error:
            trouble = error
    raise trouble


def _layout(walk: Walk, recipe: Recipe, topic: str, command: bool) -> Layout:
    if recipe.paths:
        names, pieces = _plain_columns(walk, recipe)
        values = {"": pieces}
    elif recipe.frame:
        (frame,) = walk.texts["header.frame_id"]
        names = (frame or topic,)
        values = {word: tuple(Piece(walk.leaves[path], 0) for path in paths) for word, paths in recipe.values.items()}
    elif recipe.interfaces:
        names = _joints(walk, recipe)
        values = _interfaces(walk, names)
    else:
        names = _joints(walk, recipe)
        values = dict(_joint_columns(walk, recipe, names, command))
    return Layout(
        names,
        walk.order,
        join_fixed(walk.fixed),
        _stamp(walk),
        tuple(values.get(quantity, ()) for quantity in _QUANTITIES),
    )


def _joints(walk: Walk, recipe: Recipe) -> tuple[str, ...]:
    if recipe.names not in walk.texts:
        raise InputError(f"has no field {recipe.names}")
    names = walk.texts[recipe.names]
    if len(set(names)) != len(names):
        raise InputError(f"names a joint twice: {', '.join(names)}")
    return names


def _joint_columns(
    walk: Walk, recipe: Recipe, names: tuple[str, ...], command: bool
) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """Columns by quantity; a command has its positions only, as targets."""
    for quantity, paths in recipe.values.items():
        leaf = next((walk.leaves[path] for path in paths if path in walk.leaves and walk.leaves[path].size), None)
        if leaf is None or not names:
            continue
        if leaf.size != len(names):
            raise InputError(f"has {len(names)} names but {leaf.size} values of {quantity}")
        if not command:
            yield quantity, (Piece(leaf, 0),)
        elif quantity == "position":
            yield "target", (Piece(leaf, 0),)


def _interfaces(walk: Walk, names: tuple[str, ...]) -> dict[str, tuple[Piece, ...]]:
    """Columns by quantity of joints that each have a list of interfaces."""
    found: dict[str, list[Piece]] = {}
    for column, _ in enumerate(names):
        words = walk.texts.get(f"interface_values[{column}].interface_names", ())
        leaf = walk.leaves.get(f"interface_values[{column}].values", Leaf(0, "f8", 0))
        if leaf.size != len(words):
            raise InputError(f"has {len(words)} interfaces but {leaf.size} values of {names[column]}")
        for k, word in enumerate(words):
            if COLUMN_KINDS.get(word):
                found.setdefault(word, []).append(Piece(Leaf(leaf.start + 8 * k, leaf.kind, 1), column))
    return {word: tuple(pieces) for word, pieces in found.items()}


def _plain_columns(walk: Walk, recipe: Recipe) -> tuple[tuple[str, ...], tuple[Piece, ...]]:
    """Names by path, and where the numbers are: `q[0]` for those of an array, `motor_state[3].q` within one."""
    names: list[str] = []
    pieces: list[Piece] = []
    for path, leaf in walk.leaves.items():
        if leaf.size and not path.startswith(("header.", "stamp.")) and re.fullmatch(recipe.paths, path):
            pieces.append(Piece(leaf, len(names)))
            array = path in walk.arrays
            path = f"message.{path}" if path.lower() in ("t", "time", "timestamp") else path  # t is the stamp
            names += [f"{path}[{i}]" for i in range(leaf.size)] if array else [path]
    return tuple(names), tuple(pieces)


def _stamp(walk: Walk) -> tuple[Leaf, Leaf] | None:
    for path in ("header.stamp", "stamp"):
        for seconds, rest in (("sec", "nanosec"), ("secs", "nsecs")):
            if f"{path}.{seconds}" in walk.leaves and f"{path}.{rest}" in walk.leaves:
                return walk.leaves[f"{path}.{seconds}"], walk.leaves[f"{path}.{rest}"]
    return None
