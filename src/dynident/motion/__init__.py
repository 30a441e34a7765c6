"""Trajectories with exact derivatives, and their optimization for identification."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.errors import InfeasibleError as InfeasibleError
    from dynident.motion.excitation import ExcitingMotion as ExcitingMotion, optimize_excitation as optimize_excitation
    from dynident.motion.fourier import Fourier as Fourier
    from dynident.motion.options import ExcitationOptions as ExcitationOptions, SearchProgress as SearchProgress
    from dynident.motion.point_to_point import PointToPoint as PointToPoint
    from dynident.motion.simple import Locked as Locked, Sequence as Sequence, Sinusoid as Sinusoid, Step as Step
    from dynident.motion.storage import (
        MotionFileError as MotionFileError,
        load_trajectory as load_trajectory,
        ros_joint_trajectory as ros_joint_trajectory,
        save_trajectory as save_trajectory,
        write_csv as write_csv,
        write_ros as write_ros,
    )
    from dynident.motion.trajectory import Trajectory as Trajectory
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__, {"ExciteOptions": "ExcitationOptions", "excite": "optimize_excitation"}
    )
