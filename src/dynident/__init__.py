"""dynident: the true dynamics of your robot.

>>> import dynident as di
>>> robot = di.load_robot("puma560")
>>> di.base_parameters(robot, terms="rigid").n
36

Names are looked up in their rooms on first use, so that importing dynident costs next to nothing.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynident._version import __version__

if TYPE_CHECKING:
    from dynident.diagnostics import (
        CheckError as CheckError,
        Checkup as Checkup,
        Finding as Finding,
        check_logs as check_logs,
        preview as preview,
    )
    from dynident.dynamics import (
        Column as Column,
        Coulomb as Coulomb,
        TreeMotion as TreeMotion,
        actuated_torque as actuated_torque,
        columns as columns,
        coriolis_torque as coriolis_torque,
        energy as energy,
        energy_regressor as energy_regressor,
        forward_dynamics as forward_dynamics,
        gravity_torque as gravity_torque,
        inverse_dynamics as inverse_dynamics,
        joint_torque as joint_torque,
        mass_matrix as mass_matrix,
        parameters as parameters,
        regressor as regressor,
        tree_motion as tree_motion,
    )
    from dynident.errors import (
        DynidentError as DynidentError,
        InputError as InputError,
        RobotFileError as RobotFileError,
        SingularError as SingularError,
        UnknownNameError as UnknownNameError,
    )
    from dynident.estimate import (
        CombinedParameters as CombinedParameters,
        EnergyRows as EnergyRows,
        EssentialParameters as EssentialParameters,
        Estimator as Estimator,
        Experiment as Experiment,
        Fit as Fit,
        FitFileError as FitFileError,
        FrictionSummary as FrictionSummary,
        NotFittedError as NotFittedError,
        OrdinaryLeastSquares as OrdinaryLeastSquares,
        PriorLeastSquares as PriorLeastSquares,
        RidgeLeastSquares as RidgeLeastSquares,
        RobustLeastSquares as RobustLeastSquares,
        SequentialResult as SequentialResult,
        Stage as Stage,
        StageExperiment as StageExperiment,
        TorqueErrorEstimate as TorqueErrorEstimate,
        TorqueErrors as TorqueErrors,
        TotalLeastSquares as TotalLeastSquares,
        WeightedLeastSquares as WeightedLeastSquares,
        energy_rows as energy_rows,
        essential_parameters as essential_parameters,
        experiment as experiment,
        friction_summary as friction_summary,
        load_fit as load_fit,
        observed_energy as observed_energy,
        observed_power as observed_power,
        power_rows as power_rows,
        sequential as sequential,
        sequential_online as sequential_online,
        solve_in_steps as solve_in_steps,
        solve_together as solve_together,
        torque_error_model as torque_error_model,
    )
    from dynident.experiments.friction import (
        VelocityFriction as VelocityFriction,
        velocity_friction as velocity_friction,
        velocity_friction_from_logs as velocity_friction_from_logs,
    )
    from dynident.experiments.gravity import (
        GravityMoments as GravityMoments,
        gravity_from_logs as gravity_from_logs,
        gravity_moments as gravity_moments,
    )
    from dynident.experiments.oscillation.procedure import Oscillation as Oscillation, oscillate as oscillate
    from dynident.experiments.oscillation.torque_sensitivity import sensitivity as sensitivity
    from dynident.experiments.step import StepOptions as StepOptions, StepResult as StepResult, step_test as step_test
    from dynident.export.mjcf import export_mjcf as export_mjcf
    from dynident.export.overlay import export_yaml as export_yaml
    from dynident.export.urdf import export_urdf as export_urdf
    from dynident.export.verification import Exported as Exported, ExportError as ExportError
    from dynident.identifiability import (
        BaseParameters as BaseParameters,
        Excitation as Excitation,
        base_parameters as base_parameters,
        base_violations as base_violations,
        excitation as excitation,
    )
    from dynident.information import (
        Information as Information,
        InformationFileError as InformationFileError,
        MergeError as MergeError,
        ParameterEstimate as ParameterEstimate,
        SolveRecord as SolveRecord,
        accumulate as accumulate,
        accumulate_blocks as accumulate_blocks,
        accumulate_parquet as accumulate_parquet,
        accumulate_rows as accumulate_rows,
        load_information as load_information,
    )
    from dynident.logs import (
        Log as Log,
        LogError as LogError,
        LogFile as LogFile,
        LogSource as LogSource,
        LogWarning as LogWarning,
        open_log as open_log,
        read_log as read_log,
        write_log as write_log,
    )
    from dynident.motion import (
        ExciteOptions as ExciteOptions,
        ExcitingMotion as ExcitingMotion,
        Fourier as Fourier,
        InfeasibleError as InfeasibleError,
        Locked as Locked,
        MotionFileError as MotionFileError,
        PointToPoint as PointToPoint,
        Sequence as Sequence,
        Sinusoid as Sinusoid,
        Step as Step,
        Trajectory as Trajectory,
        excite as excite,
        load_trajectory as load_trajectory,
        ros_joint_trajectory as ros_joint_trajectory,
        save_trajectory as save_trajectory,
        write_csv as write_csv,
        write_ros as write_ros,
    )
    from dynident.online import (
        Change as Change,
        OnlineIdentifier as OnlineIdentifier,
        OnlineOptions as OnlineOptions,
        OnlineState as OnlineState,
        ParallelStructure as ParallelStructure,
        Sample as Sample,
        SeriesStructure as SeriesStructure,
    )
    from dynident.online.sources import (
        PlantSource as PlantSource,
        Replay as Replay,
        Samples as Samples,
        Source as Source,
        SourceError as SourceError,
        StandardInput as StandardInput,
        TcpSource as TcpSource,
        UdpSource as UdpSource,
        open_source as open_source,
    )
    from dynident.online.state import Counters as Counters, StreamState as StreamState
    from dynident.online.streaming import stream as stream
    from dynident.payload import (
        DriveGains as DriveGains,
        Load as Load,
        LoadComparison as LoadComparison,
        PayloadEstimate as PayloadEstimate,
        compare_load as compare_load,
        identify_drive_gains as identify_drive_gains,
        identify_payload as identify_payload,
        load_change as load_change,
    )
    from dynident.physical import (
        CenterBox as CenterBox,
        CenterEllipsoid as CenterEllipsoid,
        ConflictError as ConflictError,
        MassBound as MassBound,
        NearestPhysical as NearestPhysical,
        PhysicalCheck as PhysicalCheck,
        PhysicalParameters as PhysicalParameters,
        TotalMassBound as TotalMassBound,
        distance_to_physical as distance_to_physical,
        nearest_physical as nearest_physical,
        physical_fit as physical_fit,
    )
    from dynident.pipeline.identification import identify as identify
    from dynident.plant import MujocoPlant as MujocoPlant, UnstableError as UnstableError
    from dynident.plant.simulation import simulate as simulate
    from dynident.robot import (
        Robot as Robot,
        bundled_names as bundled_names,
        load_robot as load_robot,
        robot_from_urdf as robot_from_urdf,
    )
    from dynident.robot.physicality import physical_violations as physical_violations
    from dynident.signals import Observations as Observations, SignalOptions as SignalOptions, observe as observe
    from dynident.symbolic import (
        LagrangeModel as LagrangeModel,
        SymbolicBase as SymbolicBase,
        SymbolicModel as SymbolicModel,
        lagrange_model as lagrange_model,
        symbolic_base as symbolic_base,
        symbolic_model as symbolic_model,
    )
    from dynident.validation import (
        FitComparison as FitComparison,
        Validation as Validation,
        compare_fits as compare_fits,
        validate as validate,
    )


_ROOMS = {
    "dynident.diagnostics": (
        "CheckError",
        "Checkup",
        "Finding",
        "check_logs",
        "preview",
    ),
    "dynident.dynamics": (
        "Column",
        "Coulomb",
        "TreeMotion",
        "actuated_torque",
        "columns",
        "coriolis_torque",
        "energy",
        "energy_regressor",
        "forward_dynamics",
        "gravity_torque",
        "inverse_dynamics",
        "joint_torque",
        "mass_matrix",
        "parameters",
        "regressor",
        "tree_motion",
    ),
    "dynident.errors": (
        "DynidentError",
        "InputError",
        "RobotFileError",
        "SingularError",
        "UnknownNameError",
    ),
    "dynident.estimate": (
        "CombinedParameters",
        "EnergyRows",
        "EssentialParameters",
        "Estimator",
        "Experiment",
        "Fit",
        "FitFileError",
        "FrictionSummary",
        "NotFittedError",
        "OrdinaryLeastSquares",
        "PriorLeastSquares",
        "RidgeLeastSquares",
        "RobustLeastSquares",
        "SequentialResult",
        "Stage",
        "StageExperiment",
        "TorqueErrorEstimate",
        "TorqueErrors",
        "TotalLeastSquares",
        "WeightedLeastSquares",
        "energy_rows",
        "essential_parameters",
        "experiment",
        "friction_summary",
        "load_fit",
        "observed_energy",
        "observed_power",
        "power_rows",
        "sequential",
        "sequential_online",
        "solve_in_steps",
        "solve_together",
        "torque_error_model",
    ),
    "dynident.experiments.friction": (
        "VelocityFriction",
        "velocity_friction",
        "velocity_friction_from_logs",
    ),
    "dynident.experiments.gravity": (
        "GravityMoments",
        "gravity_from_logs",
        "gravity_moments",
    ),
    "dynident.experiments.oscillation.procedure": (
        "Oscillation",
        "oscillate",
    ),
    "dynident.experiments.oscillation.torque_sensitivity": ("sensitivity",),
    "dynident.experiments.step": (
        "StepOptions",
        "StepResult",
        "step_test",
    ),
    "dynident.export.mjcf": ("export_mjcf",),
    "dynident.export.overlay": ("export_yaml",),
    "dynident.export.urdf": ("export_urdf",),
    "dynident.export.verification": (
        "ExportError",
        "Exported",
    ),
    "dynident.identifiability": (
        "BaseParameters",
        "Excitation",
        "base_parameters",
        "base_violations",
        "excitation",
    ),
    "dynident.information": (
        "Information",
        "InformationFileError",
        "MergeError",
        "ParameterEstimate",
        "SolveRecord",
        "accumulate",
        "accumulate_blocks",
        "accumulate_parquet",
        "accumulate_rows",
        "load_information",
    ),
    "dynident.logs": (
        "Log",
        "LogError",
        "LogFile",
        "LogSource",
        "LogWarning",
        "open_log",
        "read_log",
        "write_log",
    ),
    "dynident.motion": (
        "ExciteOptions",
        "ExcitingMotion",
        "Fourier",
        "InfeasibleError",
        "Locked",
        "MotionFileError",
        "PointToPoint",
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
    ),
    "dynident.online": (
        "Change",
        "OnlineIdentifier",
        "OnlineOptions",
        "OnlineState",
        "ParallelStructure",
        "Sample",
        "SeriesStructure",
    ),
    "dynident.online.sources": (
        "PlantSource",
        "Replay",
        "Samples",
        "Source",
        "SourceError",
        "StandardInput",
        "TcpSource",
        "UdpSource",
        "open_source",
    ),
    "dynident.online.state": (
        "Counters",
        "StreamState",
    ),
    "dynident.online.streaming": ("stream",),
    "dynident.payload": (
        "DriveGains",
        "Load",
        "LoadComparison",
        "PayloadEstimate",
        "compare_load",
        "identify_drive_gains",
        "identify_payload",
        "load_change",
    ),
    "dynident.physical": (
        "CenterBox",
        "CenterEllipsoid",
        "ConflictError",
        "MassBound",
        "NearestPhysical",
        "PhysicalCheck",
        "PhysicalParameters",
        "TotalMassBound",
        "distance_to_physical",
        "nearest_physical",
        "physical_fit",
    ),
    "dynident.pipeline.identification": ("identify",),
    "dynident.plant": (
        "MujocoPlant",
        "UnstableError",
    ),
    "dynident.plant.simulation": ("simulate",),
    "dynident.robot": (
        "Robot",
        "bundled_names",
        "load_robot",
        "robot_from_urdf",
    ),
    "dynident.robot.physicality": ("physical_violations",),
    "dynident.signals": (
        "Observations",
        "SignalOptions",
        "observe",
    ),
    "dynident.symbolic": (
        "LagrangeModel",
        "SymbolicBase",
        "SymbolicModel",
        "lagrange_model",
        "symbolic_base",
        "symbolic_model",
    ),
    "dynident.validation": (
        "FitComparison",
        "Validation",
        "compare_fits",
        "validate",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
_RENAMED = {"BaseValues": "ParameterEstimate", "Solution": "ParameterEstimate"}  # until 0.6
_RENAMED |= {"Estimate": "Fit", "load_estimate": "load_fit"}
__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(f"di.{name} is now di.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return __getattr__(_RENAMED[name])
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'dynident' has no attribute '{name}'")
    value = getattr(import_module(_ROOM_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
