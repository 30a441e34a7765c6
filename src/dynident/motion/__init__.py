"""Trajectories with exact derivatives, and their optimisation for identification."""

from dynident.motion.fourier import Fourier
from dynident.motion.point_to_point import PointToPoint
from dynident.motion.sequence import Locked, Sequence
from dynident.motion.simple import Sinusoid, Step
from dynident.motion.storage import (
    MotionFileError,
    load_trajectory,
    ros_joint_trajectory,
    save_trajectory,
    write_csv,
    write_ros,
)
from dynident.motion.trajectory import Trajectory

__all__ = [
    "Fourier",
    "Locked",
    "MotionFileError",
    "PointToPoint",
    "Sequence",
    "Sinusoid",
    "Step",
    "Trajectory",
    "load_trajectory",
    "ros_joint_trajectory",
    "save_trajectory",
    "write_csv",
    "write_ros",
]
