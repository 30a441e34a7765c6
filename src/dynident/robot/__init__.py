"""What the machine is: robots, their readers and their standard parameters."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.robot.load import (
        bundled_names as bundled_names,
        load_robot as load_robot,
        robot_from_urdf as robot_from_urdf,
    )
    from dynident.robot.model import (
        Element as Element,
        Joint as Joint,
        Limits as Limits,
        Robot as Robot,
        Transform as Transform,
    )
    from dynident.robot.physicality import physical_violations as physical_violations
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
