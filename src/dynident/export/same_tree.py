"""Whether a file that is to be kept describes the robot whose values it gets."""

from __future__ import annotations

import numpy as np

from dynident.export.exported import ExportError
from dynident.robot.model import Robot

_CLOSE = 1e-9  # [m, or entries of rotations] geometry of the file against the robot's


def check_same_tree(file: Robot, robot: Robot, source: str) -> None:
    """Refuse a file that describes another machine than the robot.

    Raises:
        ExportError: Naming the first joint that differs.
    """
    names, own = ([joint.name for joint in r.joints] for r in (file, robot))
    if names != own:
        words = f"has the joints {', '.join(names)}; robot {robot.name} has {', '.join(own)}"
        raise ExportError(f"{source}: {words}; give the file the robot was read from")
    for there, here in zip(file.joints, robot.joints, strict=True):
        pairs = [(getattr(there, part), getattr(here, part)) for part in ("before", "after")]
        alike = all(
            np.abs(a.rotation - b.rotation).max() < _CLOSE and np.abs(a.translation - b.translation).max() < _CLOSE
            for a, b in pairs
        )
        if not alike or (there.kind, there.parent) != (here.kind, here.parent):
            raise ExportError(
                f"{source}: joint '{here.name}' is not the robot's: the file was changed since, or is not it"
            )
    if not np.array_equal(file.follow, robot.follow) or not np.allclose(file.follow_offset, robot.follow_offset):
        raise ExportError(
            f"{source}: passive joints move otherwise than those of robot {robot.name}, whose overlay says how they "
            "follow; write that into the file (a <mimic> in URDF), or have a new one made (fresh)"
        )
