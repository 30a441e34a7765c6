"""Trajectories with exact derivatives, and their optimization for identification."""

from dynident.namespaces import lazy_names

__all__, __getattr__ = lazy_names(
    __name__,
    {
        "excitation": "ExcitingMotion optimize_excitation",
        "fourier": "Fourier",
        "options": "ExcitationOptions",
        "point_to_point": "PointToPoint",
        "search": "InfeasibleError SearchProgress",
        "simple": "Locked Sequence Sinusoid Step",
        "storage": "MotionFileError load_trajectory ros_joint_trajectory save_trajectory write_csv write_ros",
        "trajectory": "Trajectory",
    },
    renamed={"ExciteOptions": "ExcitationOptions", "excite": "optimize_excitation"},
)
