"""The file of `identify --stages`: which logs each stage uses, what is locked in them, and whose torque counts.

.. code-block:: yaml

    wrist: {logs: all_joints*.csv, outputs: [joint4, joint5, joint6]}
    arm: {logs: arm.csv, locked: [q4, q5, q6]}

Stages are solved in the order of the file. A stage without `logs` uses all that were given.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from dynident.arrays import record
from dynident.errors import DynidentError, InputError
from dynident.readers import reader
from dynident.schema import NodeReader

_KEYS = ("logs", "locked", "outputs")


@record
class StageRule:
    """What one stage uses.

    Attributes:
        name: Name in notes.
        logs: File names or labels of its logs, `*` standing for anything; all logs unless given.
        locked: Joints that stand still in them, by variable or name; each is held where it stands.
        outputs: Joints whose torque is used; all that move unless given.
    """

    name: str
    logs: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in _KEYS:
            if isinstance(getattr(self, key), str):
                raise InputError(f"stage {self.name}: {key} must be a sequence of names, got a text")
            object.__setattr__(self, key, tuple(getattr(self, key)))


class StageFileError(DynidentError):
    """A file of stages that cannot be followed, with its line."""


@reader("file of stages", StageFileError)
def read_stages(path: str | Path) -> tuple[StageRule, ...]:
    """Read a file of stages.

    Raises:
        StageFileError: With the line, for anything that is not understood; an unknown key with the nearest valid one.
    """
    return _StageReader(str(path)).stages()


class _StageReader(NodeReader):
    failure = StageFileError

    def stages(self) -> tuple[StageRule, ...]:
        example = "wrist: {logs: wrist.csv, outputs: [joint4, joint5]}"
        top = self.top(missing="give the YAML file of the stages", empty=f"write stages such as {example}")
        found = tuple(self._stage(name, node) for name, node in self.mapping(top, "a file of stages").items())
        if not found:
            raise self.error(top, f"has no stage; write stages such as {example}")
        return found

    def _stage(self, name: str, node: yaml.Node) -> StageRule:
        given = self.mapping(node, f"stage {name}", _KEYS)
        lists = {key: tuple(self.texts(own, key)) for key, own in given.items()}
        for key, own in lists.items():
            if not own:
                raise self.error(given[key], f"{key} of stage {name} names nothing; leave it out or name something")
            if len(set(own)) < len(own):
                raise self.error(given[key], f"{key} of stage {name} names something twice; name it once")
        return StageRule(name, **lists)
