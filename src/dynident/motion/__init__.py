"""Trajectories with exact derivatives, and their optimisation for identification."""

from dynident.motion.excitation import ExciteOptions, ExcitingMotion, excite
from dynident.motion.fourier import Fourier
from dynident.motion.point_to_point import PointToPoint
from dynident.motion.search import InfeasibleError, SearchProgress
from dynident.motion.simple import Locked, Sequence, Sinusoid, Step
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
    "ExciteOptions",
    "ExcitingMotion",
    "Fourier",
    "InfeasibleError",
    "Locked",
    "MotionFileError",
    "PointToPoint",
    "SearchProgress",
    "Sequence",
    "Sinusoid",
    "Step",
    "Trajectory",
    "excite",
    "load_trajectory",
    "ros_joint_trajectory",
    "save_trajectory",
    "write_csv",
    "write_ros",
]
