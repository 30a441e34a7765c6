"""`Bench`: a plant under watch. Every run is recorded and bounded, ends at a safe stop, and is saved as it ends.

The plant may be a user's own: whatever its code raises is reported as a failure of the machine.
"""

from __future__ import annotations

import hashlib
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array, record
from dynident.errors import DynidentError, InputError, UnknownNameError
from dynident.files import make_folder, remove_leftovers
from dynident.logs.log import Log, channel_names
from dynident.logs.write import write_log
from dynident.options import Progress
from dynident.plant.controllers import Controller
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.protocol import Plant, Reading, UnstableError
from dynident.robot.model import Robot
from dynident.robot.placeholders import believed_limits


class ExperimentError(DynidentError):
    """An experiment that had to end without an answer; its runs so far are with the `Bench`."""


def problem(error: BaseException) -> str:
    """What went wrong in a user's own code: its kind, its words and the line that raised it."""
    words = " ".join(str(error).split())
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith("<")]
    if not frames or isinstance(error, SyntaxError):  # which names its place itself
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


Samples = NDArray[np.intp]  # numbers of samples
End = Literal["done", "stopped", "bound", "velocity", "saturated", "unstable", "interrupted"]


@record
class Bounds:
    """Where a run may go; a run that leaves ends at a safe stop.

    Attributes:
        lower: (n_moving,) least positions [rad or m].
        upper: (n_moving,) greatest positions.
        velocity: (n_moving,) greatest velocities.
    """

    lower: Array
    upper: Array
    velocity: Array

    @staticmethod
    def of(robot: Robot) -> Bounds:
        """The robot's own limits; none where it states none, or a placeholder."""
        limits = believed_limits(robot)
        return Bounds(
            np.array([-math.inf if one.lower is None else one.lower for one in limits]),
            np.array([math.inf if one.upper is None else one.upper for one in limits]),
            np.array([math.inf if one.velocity is None else one.velocity for one in limits]),
        )

    def within(self, center: ArrayLike, reach: ArrayLike) -> Bounds:
        """The same, and not further than `reach` from a position; both (n_moving,) or one for all."""
        middle, far = np.asarray(center, dtype=np.float64), np.asarray(reach, dtype=np.float64)
        return Bounds(np.maximum(self.lower, middle - far), np.minimum(self.upper, middle + far), self.velocity)

    def broken(self, q: Array, dq: Array) -> tuple[End, int] | None:
        """How a state is out of bounds and which joint is, or None."""
        out = (q < self.lower) | (q > self.upper)
        if out.any():
            return "bound", int(np.argmax(out))
        fast = np.abs(dq) > self.velocity
        return ("velocity", int(np.argmax(fast))) if fast.any() else None


@dataclass(frozen=True)
class Run:
    """What one run recorded, up to where it ended.

    Attributes:
        label: Name of the run.
        time: (n_samples,) [s].
        q: (n_samples, n_moving) joint positions [rad or m].
        dq: Joint velocities as the sensors tell them.
        tau: Torque at the actuated coordinates, joint side [N·m or N].
        current: Motor currents [A], or None.
        voltage: Motor voltages [V], or None.
        end: Why it ended: at its duration ("done"), because the experiment had seen enough ("stopped"), or out of
            bounds, too fast, limited in torque or voltage, out of control, interrupted.
        joint: The joint that ended it early; empty for none.
    """

    label: str
    time: Array
    q: Array
    dq: Array
    tau: Array
    current: Array | None
    voltage: Array | None
    end: End
    joint: str = ""

    @property
    def whole(self) -> bool:
        """Whether it went as far as the experiment wanted."""
        return self.end in ("done", "stopped")

    @property
    def why(self) -> str:
        """Why it ended, in words."""
        at = f"at t = {self.time[-1]:.4g} s" if len(self.time) else "at once"
        return {
            "done": f"ran to its end {at}",
            "stopped": f"was complete {at}",
            "bound": f"joint {self.joint} left its bounds {at}",
            "velocity": f"joint {self.joint} became too fast {at}",
            "saturated": f"the command of joint {self.joint} reached its limit {at}",
            "unstable": f"joint {self.joint} ran away {at}",
            "interrupted": f"was interrupted {at}",
        }[self.end]

    def log(self, robot: Robot) -> Log:
        """As a log of this robot: q, dq, tau (joint side), and currents and voltages where the plant tells them."""
        from dynident.dynamics.evaluate import joint_torque

        signals = {"q": self.q, "dq": self.dq, "tau": joint_torque(robot, self.tau)}
        signals |= {key: one for key, one in (("i", self.current), ("u", self.voltage)) if one is not None}
        channels: dict[str, Array] = {}
        for kind, values in signals.items():
            channels.update(zip(channel_names(kind, robot), values.T, strict=True))
        digest = hashlib.sha256()
        for values in (self.time, *channels.values()):
            digest.update(np.ascontiguousarray(values).tobytes())
        return Log(self.label, digest.hexdigest(), self.time, channels, label=self.label)


class Bench:
    """A plant on which an experiment runs.

    Args:
        plant: The machine.
        bounds: Where runs may go; default the robot's own limits.
        folder: Where each run is written as a log when it ends, however it ends; None to keep them in memory only.
        progress: Called at each run.

    Attributes:
        runs: Every run so far.
    """

    def __init__(
        self,
        plant: Plant,
        *,
        bounds: Bounds | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.plant, self.robot = plant, plant.robot
        self.bounds = Bounds.of(plant.robot) if bounds is None else bounds
        self.folder = None if folder is None else Path(folder)
        self.progress: Progress = progress or (lambda what, done, total: None)
        self.runs: list[Run] = []
        self._failures: list[str] = []  # of a run: a machine that does not stop must not hide why it had to
        if self.folder is not None:
            _new_folder(self.folder)

    def run(
        self,
        controller: Controller,
        duration: float,
        start: ArrayLike | tuple[ArrayLike, ArrayLike],
        *,
        label: str = "run",
        bounds: Bounds | None = None,
        until: Callable[[Reading], bool] | None = None,
        saturation: bool = True,
    ) -> Run:
        """Run the plant under a controller; a run that ends early is no error, `Run.end` tells.

        Args:
            controller: What commands it.
            duration: Longest time [s].
            start: Position (n_moving,), or position and velocity, to start from.
            label: Name of the run.
            bounds: Tighter ones than the bench's own.
            until: Looked at with every reading; true when the run has shown enough.
            saturation: End when a command is limited; an experiment whose torque must be known cannot go on.

        Raises:
            ExperimentError: When the plant's own code fails or reads what is no number. What was recorded is kept.
        """
        plant, limits = self.plant, self.bounds if bounds is None else bounds
        n = round(duration / plant.sample_time)
        if not (math.isfinite(duration) and n >= 1):
            raise InputError(f"{label}: {duration} s at {plant.sample_time} s per sample gives no sample")
        state = start if isinstance(start, tuple) else (start, None)
        if isinstance(plant, MujocoPlant):
            plant.seed += 1  # it repeats its noise after each reset; what all runs share would look like the machine
        kept: list[Reading] = []
        end: End = "interrupted"
        joint = ""
        try:
            self._failures.clear()
            self._ask(label, "reset", *state)
            controller.start(plant.sample_time)
            for k in range(n + 1):
                reading = self._read(label)
                kept.append(reading)
                broken = limits.broken(reading.q, reading.dq)
                if broken is not None:
                    end, joint = broken[0], self.robot.joint_names[broken[1]]
                elif until is not None and until(reading):
                    end = "stopped"
                elif saturation and (limited := self._limited_joint()):
                    end, joint = "saturated", limited
                elif k == n:
                    end = "done"
                if end != "interrupted":
                    break
                self._ask(label, f"apply_{controller.quantity}", controller.command(plant.time, reading))
                self._ask(label, "step")
        except UnstableError as error:
            end, joint = "unstable", error.joint
        finally:
            try:
                self._ask(label, "stop")
            finally:  # a machine that does not even stop leaves what it recorded
                run = _run(label, kept, end, joint)
                self.runs.append(run)
                if self.folder is not None and len(run.time):
                    write_log(run.log(self.robot), self.folder / f"{len(self.runs):03d}-{run.label}.csv")
        return run

    def _ask(self, label: str, name: str, *values: object) -> Any:
        """Call a method of the plant; whatever a user's own code raises is an `ExperimentError` of the run."""
        try:
            return getattr(self.plant, name)(*values)
        except DynidentError:
            raise
        except Exception as error:  # a user's own code: anything
            self._failures.append(f"the machine failed in {name}: {problem(error)}")
            raise ExperimentError(f"{label}: {'; '.join(self._failures)}") from error

    def _read(self, label: str) -> Reading:
        """`Plant.read`; a reading that is missing or no number would pass every bound, so it is an error."""
        reading: Reading = self._ask(label, "read")
        names = self.robot.joint_names
        for name in ("q", "dq", "tau"):
            values = np.asarray(getattr(reading, name), dtype=np.float64)
            if values.shape != (len(names),):
                raise ExperimentError(
                    f"{label}: the machine reads {name} of shape {values.shape}; expected ({len(names)},), "
                    f"one number for each of {', '.join(names)}"
                )
            if not np.isfinite(values).all():
                joint = names[int(np.argmin(np.isfinite(values)))]
                raise ExperimentError(
                    f"{label}: the machine reads {name} of joint {joint} as {values[~np.isfinite(values)][0]} at "
                    f"t = {reading.time:.4g} s; a run without its state cannot go on"
                )
        return reading

    def _limited_joint(self) -> str:
        """The first joint whose command was limited; empty for none."""
        limited = self.plant.saturated
        known = [name for name in self.robot.joint_names if name in limited]
        return (known or sorted(map(str, limited)) or [""])[0]


def _new_folder(folder: Path) -> None:
    """A folder for runs; one that has some already is refused, for they could not be distinguished afterwards."""
    make_folder(folder)
    remove_leftovers(folder)
    found = sorted(file.name for file in folder.iterdir())
    if found:
        raise InputError(
            f"{folder}: holds {found[0]}, of an earlier experiment or something else; choose another folder, or remove "
            "runs (--fresh)"
        )


def _run(label: str, kept: list[Reading], end: End, joint: str) -> Run:
    def all_of(name: str) -> Array | None:
        # The reading before the first command has no voltage: it is that of the command after it.
        values = [getattr(reading, name) for reading in kept]
        if not values or values[-1] is None:
            return None
        return np.array([values[-1] * 0.0 if value is None else value for value in values])

    arrays = {name: np.array([getattr(reading, name) for reading in kept]) for name in ("time", "q", "dq", "tau")}
    return Run(label, **arrays, current=all_of("current"), voltage=all_of("voltage"), end=end, joint=joint)


# ----------------------------------------------------------------------------------------------------------------------
# What plans and analyses of several experiments need: joints by name, where they are held, stretches of a recording.


def joint_place(robot: Robot, name: str, kind: str = "joint") -> int:
    """Place among the moving joints of one that is given by name or variable (q5).

    Args:
        robot: The robot.
        name: Name or variable.
        kind: What the joint is wanted for, for the message.

    Raises:
        UnknownNameError: For a name that is none.
    """
    for names in (robot.joint_names, robot.position_names):
        if name in names:
            return names.index(name)
    raise UnknownNameError(kind, name, (*robot.joint_names, *robot.position_names))


def home_pose(robot: Robot) -> Array:
    """(n_moving,) the middle of each joint's range; zero for one that can make a whole turn."""
    if robot.closure is not None:
        return np.array(robot.closure.reference[list(robot.moving)])
    bounds = Bounds.of(robot)
    room = bounds.upper - bounds.lower
    with np.errstate(invalid="ignore"):
        return np.where(room < 2.0 * math.pi, 0.5 * (bounds.lower + bounds.upper), 0.0)


def unbroken_stretches(kind: NDArray[np.generic]) -> list[Samples]:
    """Sample numbers of the stretches over which a kind (m,) stays the same and is not zero, or a mask true."""
    runs = np.split(np.arange(len(kind)), np.flatnonzero(np.diff(kind)) + 1)
    return [run for run in runs if len(run) and kind[run[0]]]
