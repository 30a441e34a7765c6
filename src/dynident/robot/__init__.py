"""What the machine is: robots, their readers and their standard parameters."""

from dynident.robot.load import bundled_names, load_robot, robot_from_urdf
from dynident.robot.model import Element, Joint, Limits, Robot, Transform
from dynident.robot.physicality import physical_violations

__all__ = [
    "Element",
    "Joint",
    "Limits",
    "Robot",
    "Transform",
    "bundled_names",
    "load_robot",
    "physical_violations",
    "robot_from_urdf",
]
