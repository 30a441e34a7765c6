"""What an export says of itself: where the file is, how well its torque agrees, and what it could not hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dynident.errors import DynidentError


class ExportError(DynidentError):
    """A robot that a format cannot hold, or a file that does not give its torque back."""


@dataclass(frozen=True)
class Agreement:
    """Torque of the file, read back, against that of the robot.

    Attributes:
        reader: Who read the file: "dynident" or "MuJoCo".
        n_states: Random states within the robot's limits.
        relative: Largest share, over the joints, of the torque by which the two differ.
        largest: Largest difference [N·m or N].
        lost: Share of the robot's whole torque, over the same states, that stands in what the file could not hold.
    """

    reader: str
    n_states: int
    relative: float
    largest: float
    lost: float = 0.0

    def __str__(self) -> str:
        """A sentence with the numbers."""
        text = (
            f"read back by {self.reader}: torque agrees to {self.relative:.1e} ({self.largest:.1e} N·m or N) "
            f"at {self.n_states} random states"
        )
        return text + (f"; what is not in the file is {100.0 * self.lost:.3g} % of the torque" if self.lost else "")


@dataclass(frozen=True)
class Exported:
    """A file that was written and proved.

    Attributes:
        path: Where it is.
        form: "URDF", "MJCF" or "YAML".
        agreement: How well its torque agrees with the robot's.
        lost: What the format cannot hold, in words.
        warnings: What a reader should know.
    """

    path: Path
    form: str
    agreement: Agreement
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def summary(self) -> str:
        """The result in lines of text."""
        lines = [f"{self.form} written to {self.path}", f"  {self.agreement}"]
        lines += [f"  not in the file: {words}" for words in self.lost]
        lines += [f"  warning: {words}" for words in self.warnings]
        return "\n".join(lines)
