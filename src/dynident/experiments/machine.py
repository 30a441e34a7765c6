"""`Machine`: a plant as a bench asks it. Whatever its code raises is told as a failure of the machine."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.experiments.answer import ExperimentError
from dynident.plant.protocol import Plant, Reading


class Machine:
    """A plant whose calls fail with an `ExperimentError` and whose readings are looked at.

    Args:
        plant: The plant, possibly a user's own.
        label: Name of the run, for messages.
    """

    def __init__(self, plant: Plant, label: str) -> None:
        self.plant, self.label = plant, label
        self._names = plant.robot.joint_names
        self._failures: list[str] = []  # one that does not stop must not hide why it had to

    def reset(self, q: ArrayLike, dq: ArrayLike | None = None) -> None:
        """`Plant.reset`."""
        self._ask("reset", self.plant.reset, q, dq)

    def apply(self, quantity: str, command: Array) -> None:
        """`Plant.apply_torque` or `Plant.apply_voltage`, by the quantity that a controller commands."""
        name = f"apply_{quantity}"
        self._ask(name, getattr(self.plant, name), command)

    def step(self) -> None:
        """`Plant.step`."""
        self._ask("step", self.plant.step)

    def stop(self) -> None:
        """`Plant.stop`."""
        self._ask("stop", self.plant.stop)

    def read(self) -> Reading:
        """`Plant.read`; a reading that is no number would pass every bound, so it is an error.

        Raises:
            ExperimentError: For numbers that are missing or not finite.
        """
        reading: Reading = self._ask("read", self.plant.read)
        for name in ("q", "dq", "tau"):
            values = np.asarray(getattr(reading, name), dtype=np.float64)
            if values.shape != (len(self._names),):
                raise ExperimentError(
                    f"{self.label}: the machine reads {name} of shape {values.shape}; expected ({len(self._names)},), "
                    f"one number for each of {', '.join(self._names)}"
                )
            if not np.isfinite(values).all():
                joint = self._names[int(np.argmin(np.isfinite(values)))]
                raise ExperimentError(
                    f"{self.label}: the machine reads {name} of joint {joint} as {values[~np.isfinite(values)][0]} at "
                    f"t = {reading.time:.4g} s; a run without its state cannot go on"
                )
        return reading

    def limited(self) -> str:
        """The first joint whose command was limited; empty for none."""
        limited = self.plant.saturated
        known = [name for name in self._names if name in limited]
        return (known or sorted(map(str, limited)) or [""])[0]

    def _ask(self, name: str, call: Callable[..., Any], *values: object) -> Any:
        try:
            return call(*values)
        except DynidentError:
            raise
        except Exception as error:  # a user's own code: anything
            self._failures.append(f"the machine failed in {name}: {problem(error)}")
            raise ExperimentError(f"{self.label}: {'; '.join(self._failures)}") from error


def problem(error: BaseException) -> str:
    """What went wrong in a user's own code: its kind, its words and the line that raised it."""
    words = " ".join(str(error).split())
    told = f"{type(error).__name__}: {words}" if words else type(error).__name__
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith("<")]
    if not frames or isinstance(error, SyntaxError):  # which names its place itself
        return told
    return f"{told} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
