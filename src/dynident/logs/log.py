"""`Log`: a recording with named channels, and the signals of a robot in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, ReadOnlyDict, frozen
from dynident.display import brief_names, brief_value, data_frame, html_table
from dynident.errors import DynidentError, InputError
from dynident.robot.model import Robot

if TYPE_CHECKING:
    from dynident.logs.columns import LogColumn

HELD = 0.02  # a locked joint may be logged this far from its position [rad or m]
BLOCK = 16384  # samples: long enough for fast arithmetic, short enough for the processor's cache
Role = Literal["train", "validation"]
TorqueKind = Literal["tau", "taum", "i", "target"]


class LogError(DynidentError):
    """A log that cannot be used.

    Args:
        source: File the log came from.
        problem: The column or line, what was expected and what to do.
    """

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{source}: {problem}")

    @classmethod
    def of_file(cls, source: str, problem: str) -> DynidentError:
        """The error of this class for a file as a whole."""
        return cls(source, problem)


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """A recording: time and channels in SI units.

    Attributes:
        source: File it came from.
        digest: Hash of the file's content.
        time: (n_samples,) [s].
        channels: Values by name (q1, taum3, ...), (n_samples,) each.
        unused: Columns of the file that mean nothing to dynident.
        role: What it is for.
        label: Name in reports; default the source.
        warnings: What a reader of results should know about it, such as how much of the file could be read.
        columns: The columns of the file that its time and channels were read from; empty where there is no file.
        reasons: Why columns among the unused ones are not read, by name.
    """

    source: str
    digest: str
    time: Array
    channels: Mapping[str, Array]
    unused: tuple[str, ...] = ()
    role: Role = "train"
    label: str = field(default="")
    warnings: tuple[str, ...] = ()
    columns: tuple[LogColumn, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", _read_only(self.time))
        object.__setattr__(self, "channels", ReadOnlyDict({k: _read_only(v) for k, v in self.channels.items()}))
        object.__setattr__(self, "label", self.label or self.source)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.time)

    def __repr__(self) -> str:
        """A line, not the samples."""
        span = f"{self.duration:.4g} s at {self.rate:.4g} Hz" if len(self) > 1 else "no duration"
        return f"Log({brief_value(self.label)}: {len(self)} samples, {span}; channels {brief_names(self.channels)})"

    def _repr_html_(self) -> str:
        rows = [
            (name, *(f"{x:.6g}" for x in (x.min(), x.max(), x.std()))) for name, x in self.channels.items() if len(x)
        ]
        return html_table(("channel", "lowest", "highest", "std"), rows, repr(self))

    def to_frame(self, library: str | None = None) -> Any:
        """Time and channels as a data frame of pandas or polars, whichever is installed, one row for each sample."""
        return data_frame({"t": self.time, **self.channels}, library)

    @property
    def duration(self) -> float:
        """From first to last sample [s]."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate(self) -> float:
        """Median sampling rate [Hz]."""
        return 1.0 / float(np.median(np.diff(self.time)))

    def has(self, kind: str, robot: Robot) -> bool:
        """Whether every moving joint has a channel of this kind."""
        return all(name in self.channels for name in channel_names(kind, robot))

    def array(self, kind: str, robot: Robot) -> Array:
        """The channels of one kind in the order of the robot's moving joints, (n_samples, n_joints).

        Raises:
            LogError: Naming the columns that are missing.
        """
        names = channel_names(kind, robot)
        missing = [name for name in names if name not in self.channels]
        if missing:
            raise LogError(self.source, f"has no column {', '.join(missing)}; {self._columns_hint()}")
        return np.column_stack([self.channels[name] for name in names])

    def window(self, start: float | None = None, stop: float | None = None) -> Log:
        """The samples with start <= t <= stop."""
        keep = np.ones(len(self), dtype=bool)
        if start is not None:
            keep &= self.time >= start
        if stop is not None:
            keep &= self.time <= stop
        if not keep.any():
            raise empty_window(self.source, start, stop, self.time[0], self.time[-1])
        return self.samples(keep)

    def samples(self, keep: NDArray[Any] | slice | Sequence[int]) -> Log:
        """Only some samples, given as a mask, a slice or indices."""
        return replace(
            self, time=self.time[keep], channels={name: values[keep] for name, values in self.channels.items()}
        )

    def blocks(self) -> Iterator[Log]:
        """Successive parts of at most `BLOCK` samples, which share this log's memory."""
        for first in range(0, len(self), BLOCK):
            yield self.samples(slice(first, first + BLOCK))

    def _columns_hint(self) -> str:
        known = ", ".join(self.channels) or "none that dynident knows"
        spare = f"; not understood: {', '.join(self.unused[:20])} (map them in a column file)" if self.unused else ""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            by_reason.setdefault(reason, []).append(name)
        doubts = "".join(f"; '{names[0]}'{_more(names)} {reason}" for reason, names in by_reason.items())
        return f"columns: {known}{spare}{doubts}"


def _more(names: Sequence[str]) -> str:
    return "" if len(names) == 1 else f" .. '{names[-1]}': each"


def empty_window(source: str, start: float | None, stop: float | None, first: float, last: float) -> InputError:
    """The error for a window [s] without a sample of a log that goes from `first` to `last` [s]."""
    return InputError(
        f"{source}: no sample lies between {start} and {stop} s; the log has {first:.12g} to {last:.12g} s"
    )


def _read_only(values: Array) -> Array:
    """The array itself if nobody can write to its memory, else a read-only copy."""
    part = values
    while isinstance(part, np.ndarray) and part.dtype == np.float64 and not part.flags.writeable:
        if part.base is None:
            return values
        part = part.base
    return frozen(values)


def channel_names(kind: str, robot: Robot) -> list[str]:
    """Names of the channels of one kind for a robot's moving joints: q1, q2, ..."""
    return [f"{kind}{name.removeprefix('q')}" for name in robot.position_names]


def check_locked(log: Log, robot: Robot) -> None:
    """Refuse a log that shows a locked joint elsewhere; it need not show locked joints at all.

    Raises:
        LogError: Naming the column, the time and where the joint should be.
    """
    for index, position in robot.locked.items():
        name = robot.joints[robot.active[index]].variable
        off = np.abs(log.channels.get(name, np.zeros(0)) - position)
        if off.max(initial=0.0) > HELD:
            worst = int(np.argmax(off))
            seen = f"is {log.channels[name][worst]:.4g} at {log.time[worst]:.6g} s"
            remedy = "lock it where it was held, or leave it free if it moves"
            raise LogError(log.source, f"column {name} {seen}, but the joint is locked at {position:.4g}; {remedy}")


def joint_positions(log: Log, robot: Robot) -> Array:
    """Joint positions, from q or through the gears from qm, (n_samples, n_joints) [rad or m]."""
    if log.has("q", robot) or not log.has("qm", robot):
        return log.array("q", robot)
    return _from_motors(log.array("qm", robot), robot) + _zero(robot)


def joint_velocities(log: Log, robot: Robot) -> Array | None:
    """Measured joint velocities, from dq or (of a robot without locked joints) dqm; None if the log has neither."""
    if log.has("dq", robot):
        return log.array("dq", robot)
    if robot.locked or not log.has("dqm", robot):
        return None
    return _from_motors(log.array("dqm", robot), robot)


def torque_kind(log: Log, robot: Robot) -> TorqueKind:
    """Which channel has the torque in a log: tau at the joints, taum at the motor shafts, the current i, or target.

    Position commands (target) stand for torque where the gains of the position controller are known.

    Raises:
        LogError: Naming the columns that are missing, when there is none for every joint.
    """
    for kind in get_args(TorqueKind):
        if log.has(kind, robot):
            if kind == "target":
                _check_gains(log, robot)
            if kind == "i" and robot.drive.gains is None:
                raise LogError(
                    log.source,
                    f"has motor currents, but robot {robot.name} has no drive_gains: write `drive_gains: [..]`, joint "
                    "torque per ampere of each joint, into a YAML file beside `base: ROBOT_FILE` and give that file as "
                    "the robot, or find them with a known weight (dynident gains)",
                )
            return kind  # type: ignore[no-any-return]
    if not any(name.rstrip("0123456789") in get_args(TorqueKind) for name in log.channels):
        need = "identification needs measured torque (tau, taum), motor current (i) or position commands (target)"
        missing = ", ".join(channel_names("tau", robot))
        raise LogError(log.source, f"has no column {missing} nor any other torque: {need}; {log._columns_hint()}")
    present = {kind: sum(name in log.channels for name in channel_names(kind, robot)) for kind in get_args(TorqueKind)}
    log.array(max(present, key=lambda kind: present[kind]), robot)  # says which columns are missing
    raise AssertionError


def row_torques(log: Log, robot: Robot) -> Array:
    """Torque at the actuated coordinates, (n_samples, n_joints).

    From tau, taum, current and drive gains, or position commands and the gains of their controller.
    """
    moving, kind = list(robot.moving), torque_kind(log, robot)
    if kind == "target":
        return _commanded_torque(log, robot)
    values = log.array(kind, robot)
    if kind == "tau":
        return actuated_torque(values, robot)
    if kind == "taum":
        return values * robot.drive.gear_ratios[moving]
    assert robot.drive.gains is not None
    return values * robot.drive.gains[moving]


def actuated_torque(values: Array, robot: Robot) -> Array:
    """Torque at the actuated coordinates from torque at the joints, (n_samples, n_joints)."""
    own = robot.moving_coupling
    if np.array_equal(own, np.eye(len(own))):
        return values
    return np.asarray(np.linalg.solve(own.T, values.T).T, dtype=np.float64)


def _check_gains(log: Log, robot: Robot) -> None:
    """Refuse position commands without the gains that turn them into torque."""
    if robot.drive.kp is None and not (log.has("kp", robot) and log.has("kd", robot)):
        need = (
            "the gains of its position controller turn commands into torque: give pd_gains in the robot file or an "
            "overlay, --kp and --kd on the command line, or columns kp1, .. and kd1, .."
        )
        raise LogError(log.source, f"has position commands (target1, ..) and no torque; {need}")


def position_gains(log: Log, robot: Robot) -> tuple[Array, Array]:
    """Gains kp and kd of the controller that position commands went to, from the log or the robot, (n_joints,) each.

    Raises:
        LogError: Where gains change within the log.
    """
    _check_gains(log, robot)
    moving, found = list(robot.moving), []
    for name, known in (("kp", robot.drive.kp), ("kd", robot.drive.kd)):
        if known is not None and not log.has(name, robot):
            found.append(known[moving])
            continue
        values = log.array(name, robot)
        if not (values == values[0]).all():
            row = int(np.argmax((values != values[0]).any(1)))
            changed = channel_names(name, robot)[int(np.argmax(values[row] != values[0]))]
            raise LogError(
                log.source, f"column {changed} changes at {log.time[row]:.6g} s; give logs with one set of gains each"
            )
        found.append(values[0])
    return found[0], found[1]


def command_parts(log: Log, robot: Robot) -> tuple[Array, Array]:
    """What torque of position commands is made of, at the actuated coordinates, (n_samples, n_joints) each.

    With tau = kp (target - q) - kd dq + tau_ff, the command kp target + tau_ff, which reaches the joint with a delay,
    and the feedback -kp q, which has none.
    """
    kp, _ = position_gains(log, robot)
    command = kp * log.array("target", robot)
    if log.has("tau_ff", robot):
        command = command + log.array("tau_ff", robot)
    return actuated_torque(command, robot), actuated_torque(-kp * joint_positions(log, robot), robot)


def _commanded_torque(log: Log, robot: Robot) -> Array:
    """Torque of position commands sample by sample; velocities as measured, else by central differences."""
    command, feedback = command_parts(log, robot)
    velocities = joint_velocities(log, robot)
    if velocities is None:
        q = joint_positions(log, robot)
        velocities = np.gradient(q, log.time, axis=0) if len(log) > 1 else np.zeros_like(q)
    return command + feedback + actuated_torque(-position_gains(log, robot)[1] * velocities, robot)


def _from_motors(values: Array, robot: Robot) -> Array:
    """Joint quantities from motor-shaft ones: T^-1 (qm / gear ratio)."""
    if robot.locked:
        raise InputError("motor-side logs need a robot without locked joints; log the joint side or unlock them")
    return np.asarray(np.linalg.solve(robot.coupling, (values / robot.drive.gear_ratios).T).T, dtype=np.float64)


def _zero(robot: Robot) -> Array:
    return robot.zero[list(robot.moving)]


# ----------------------------------------------------------------------------------------------------------------------
# `LogSource`: what every reader of a log relies on, whether it is in memory or streamed.


class LogSource(Protocol):
    """A recording that hands out its samples block by block: a `Log` in memory, or a `LogFile` on disk."""

    @property
    def source(self) -> str:
        """File it came from."""

    @property
    def digest(self) -> str:
        """SHA-256 of the file's content."""

    @property
    def role(self) -> Role:
        """What it is for."""

    @property
    def label(self) -> str:
        """Name in reports."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of results should know about it, such as how much of the file could be read."""

    def blocks(self) -> Iterator[Log]:
        """Successive parts of at most `BLOCK` samples in the order of time; together they are the whole log.

        Every call starts again. A streamed log checks its numbers as it goes, so an error may come after the first
        blocks: use no result before the iteration has ended.

        Raises:
            LogError: Naming file, column and row of what cannot be used.
        """


def as_logs(logs: object) -> list[LogSource]:
    """One log or several as a list.

    Raises:
        InputError: For anything else, such as a path that has not been read yet.
    """
    given: list[Any] = list(logs) if isinstance(logs, Iterable) and not isinstance(logs, str | bytes | Log) else [logs]
    for log in given:
        if not hasattr(log, "blocks"):
            shown = f"{log!r} is" if isinstance(log, str | PathLike) else f"a {type(log).__name__} is"
            raise InputError(f"{shown} not a log; read it first: di.open_log(path, robot)")
    return given


def columns_of(log: LogSource) -> tuple[LogColumn, ...]:
    """The columns of a file that a log is read from; empty for a log of no file."""
    return tuple(getattr(log, "columns", ()))


def log_warnings(logs: Iterable[LogSource]) -> tuple[str, ...]:
    """What a reader of results should know about the logs they came from, each sentence once."""
    # A source of the user's own making may have nothing to say.
    return tuple(dict.fromkeys(words for log in logs for words in getattr(log, "warnings", ())))


@dataclass(frozen=True)
class PositionsOnly:
    """A log as prediction may see it: time, positions and temperatures of the joints.

    Attributes:
        log: The log.
    """

    log: LogSource

    @property
    def source(self) -> str:
        """File it came from."""
        return self.log.source

    @property
    def digest(self) -> str:
        """SHA-256 of the file's content."""
        return self.log.digest

    @property
    def role(self) -> Role:
        """What it is for."""
        return self.log.role

    @property
    def label(self) -> str:
        """Name in reports."""
        return self.log.label

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of results should know about it."""
        return log_warnings([self.log])

    def blocks(self) -> Iterator[Log]:
        """The log's blocks without any other channel."""
        for block in self.log.blocks():
            kept = {name: values for name, values in block.channels.items() if name.startswith(("q", "temp"))}
            yield replace(block, channels=kept)
