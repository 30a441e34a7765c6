"""dynident: the true dynamics of your robot.

>>> import dynident as di
>>> robot = di.load_robot("puma560")
>>> di.base_parameters(robot, terms="rigid").n
36

The names that nearly every script uses are here; the others are in namespaces, one for each room of the package
(`di.physical`, `di.experiments`, `di.online`, ..), with `di.estimators`, `di.trajectories` and `di.plots` beside them.
All are looked up on first use, so that importing dynident costs next to nothing.
"""

import functools
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynident._version import __version__
from dynident.lazy import names_for_type_checkers

if TYPE_CHECKING:
    from dynident.diagnostics import Diagnosis as Diagnosis, check_logs as check_logs, preview as preview
    from dynident.dynamics import (
        columns as columns,
        coriolis_torque as coriolis_torque,
        forward_dynamics as forward_dynamics,
        gravity_torque as gravity_torque,
        inverse_dynamics as inverse_dynamics,
        joint_torque as joint_torque,
        mass_matrix as mass_matrix,
        parameters as parameters,
        regressor as regressor,
    )
    from dynident.dynamics.kinematics import forward_kinematics as forward_kinematics
    from dynident.dynamics.terms.term import Term as Term
    from dynident.errors import (
        DynidentError as DynidentError,
        InputError as InputError,
        RobotFileError as RobotFileError,
        SingularError as SingularError,
        UnknownNameError as UnknownNameError,
    )
    from dynident.estimate import Fit as Fit, FitFileError as FitFileError, load_fit as load_fit
    from dynident.export.c_export import export_c as export_c
    from dynident.export.mjcf import export_mjcf as export_mjcf
    from dynident.export.overlay import export_yaml as export_yaml
    from dynident.export.urdf import export_urdf as export_urdf
    from dynident.identifiability import (
        BaseParameters as BaseParameters,
        base_parameters as base_parameters,
        excitation as excitation,
    )
    from dynident.information import (
        Information as Information,
        ParameterEstimate as ParameterEstimate,
        accumulate as accumulate,
        load_information as load_information,
    )
    from dynident.logs import (
        Log as Log,
        LogError as LogError,
        LogFile as LogFile,
        open_log as open_log,
        read_log as read_log,
        write_log as write_log,
    )
    from dynident.motion.excitation import optimize_excitation as optimize_excitation
    from dynident.motion.storage import load_trajectory as load_trajectory
    from dynident.motion.trajectory import Trajectory as Trajectory
    from dynident.online.identifier import OnlineIdentifier as OnlineIdentifier
    from dynident.online.sources import open_source as open_source
    from dynident.online.streaming import stream as stream
    from dynident.payload import (
        Payload as Payload,
        identify_drive_gains as identify_drive_gains,
        identify_payload as identify_payload,
    )
    from dynident.physical import physical_fit as physical_fit
    from dynident.pipeline.identification import identify as identify
    from dynident.pipeline.options import IdentifyOptions as IdentifyOptions
    from dynident.plant import MujocoPlant as MujocoPlant, Plant as Plant
    from dynident.plant.simulation import simulate as simulate
    from dynident.report.writing import report as report
    from dynident.robot import Robot as Robot, bundled_names as bundled_names, load_robot as load_robot
    from dynident.signals import SignalOptions as SignalOptions, observe as observe
    from dynident.validation import Validation as Validation, compare_fits as compare_fits, validate as validate

_ROOM_OF = names_for_type_checkers(__name__)  # module of each name
_NAMESPACES = {
    name: f"dynident.{name}"
    for name in (
        *("robot", "dynamics", "identifiability", "symbolic", "logs", "signals", "information", "estimate", "physical"),
        *("payload", "diagnostics", "validation", "pipeline", "motion", "plant", "experiments", "online", "drives"),
        *("export", "report", "papers", "fleet"),
    )
} | {
    "estimators": "dynident.estimate.estimators",
    "trajectories": "dynident.motion",
    "plots": "dynident.report.plots",
}
_RENAMED = {  # names of before -> where they are now; until 0.6
    "accumulate_blocks": "information.accumulate_blocks",
    "accumulate_parquet": "information.accumulate_parquet",
    "accumulate_rows": "information.accumulate_rows",
    "actuated_torque": "dynamics.actuated_torque",
    "base_violations": "identifiability.base_violations",
    "BaseValues": "ParameterEstimate",
    "CenterBox": "physical.CenterBox",
    "CenterEllipsoid": "physical.CenterEllipsoid",
    "Change": "online.Change",
    "CheckError": "diagnostics.DiagnosisError",
    "Checkup": "Diagnosis",
    "Column": "dynamics.Column",
    "CombinedParameters": "estimate.StagedEstimate",
    "compare_load": "payload.compare_payload",
    "ConflictError": "physical.ConflictError",
    "Coulomb": "dynamics.Coulomb",
    "Counters": "online.Counters",
    "distance_to_physical": "physical.distance_to_physical",
    "DriveGains": "payload.DriveGains",
    "energy": "dynamics.energy",
    "energy_regressor": "dynamics.energy_regressor",
    "energy_rows": "estimate.energy_rows",
    "EnergyRows": "estimate.EnergyRows",
    "essential_parameters": "estimate.essential_parameters",
    "EssentialParameters": "estimate.EssentialParameters",
    "Estimate": "Fit",
    "Estimator": "estimators.Estimator",
    "Excitation": "identifiability.Excitation",
    "excite": "optimize_excitation",
    "ExciteOptions": "trajectories.ExcitationOptions",
    "ExcitingMotion": "trajectories.ExcitingMotion",
    "Experiment": "estimate.StageData",
    "experiment": "estimate.experiment",
    "Exported": "export.Exported",
    "ExportError": "export.ExportError",
    "Finding": "diagnostics.Diagnostic",
    "FitComparison": "validation.FitComparison",
    "Fourier": "trajectories.Fourier",
    "friction_summary": "estimate.friction_summary",
    "FrictionSummary": "estimate.FrictionSummary",
    "gravity_from_logs": "experiments.gravity_from_logs",
    "gravity_moments": "experiments.gravity_moments",
    "GravityMoments": "experiments.GravityMoments",
    "InfeasibleError": "trajectories.InfeasibleError",
    "InformationFileError": "information.InformationFileError",
    "lagrange_model": "symbolic.lagrange_model",
    "LagrangeModel": "symbolic.LagrangeModel",
    "Load": "Payload",
    "load_change": "payload.payload_change",
    "load_estimate": "load_fit",
    "LoadComparison": "payload.PayloadComparison",
    "Locked": "trajectories.Locked",
    "LogSource": "logs.LogSource",
    "LogWarning": "logs.LogWarning",
    "MassBound": "physical.MassBound",
    "MergeError": "information.MergeError",
    "MotionFileError": "trajectories.MotionFileError",
    "nearest_physical": "physical.nearest_physical",
    "NearestPhysical": "physical.NearestPhysical",
    "NotFittedError": "estimators.NotFittedError",
    "Observations": "signals.Observations",
    "observed_energy": "estimate.observed_energy",
    "observed_power": "estimate.observed_power",
    "OnlineOptions": "online.OnlineOptions",
    "OnlineState": "online.OnlineState",
    "OrdinaryLeastSquares": "estimators.OrdinaryLeastSquares",
    "oscillate": "experiments.oscillate",
    "Oscillation": "experiments.Oscillation",
    "ParallelStructure": "online.ParallelStructure",
    "PayloadEstimate": "payload.PayloadEstimate",
    "physical_violations": "robot.physical_violations",
    "PhysicalCheck": "physical.PhysicalCheck",
    "PhysicalParameters": "physical.PhysicalParameters",
    "PlantSource": "online.PlantSource",
    "PointToPoint": "trajectories.PointToPoint",
    "power_rows": "estimate.power_rows",
    "PriorLeastSquares": "estimators.PriorLeastSquares",
    "Replay": "online.Replay",
    "RidgeLeastSquares": "estimators.RidgeLeastSquares",
    "robot_from_urdf": "robot.robot_from_urdf",
    "RobustLeastSquares": "estimators.RobustLeastSquares",
    "ros_joint_trajectory": "trajectories.ros_joint_trajectory",
    "Sample": "online.Sample",
    "Samples": "online.Samples",
    "save_trajectory": "trajectories.save_trajectory",
    "sensitivity": "experiments.sensitivity",
    "Sequence": "trajectories.Sequence",
    "sequential": "estimate.sequential",
    "sequential_online": "estimate.sequential_online",
    "SequentialResult": "estimate.StagedEstimate",
    "SeriesStructure": "online.SeriesStructure",
    "Sinusoid": "trajectories.Sinusoid",
    "Solution": "ParameterEstimate",
    "solve_in_steps": "estimate.solve_in_steps",
    "solve_together": "estimate.solve_together",
    "SolveRecord": "information.SolveRecord",
    "Source": "online.Source",
    "SourceError": "online.SourceError",
    "Stage": "estimate.StageEstimate",
    "StageExperiment": "estimate.StageExperiment",
    "StandardInput": "online.StandardInput",
    "Step": "trajectories.Step",
    "step_test": "experiments.step_test",
    "StepOptions": "experiments.StepOptions",
    "StepResult": "experiments.StepResult",
    "StreamState": "online.StreamState",
    "symbolic_base": "symbolic.symbolic_base",
    "symbolic_model": "symbolic.symbolic_model",
    "SymbolicBase": "symbolic.SymbolicBase",
    "SymbolicModel": "symbolic.SymbolicModel",
    "TcpSource": "online.TcpSource",
    "torque_error_model": "estimate.torque_error_model",
    "TorqueErrorEstimate": "estimate.TorqueErrorEstimate",
    "TorqueErrors": "estimate.TorqueErrors",
    "TotalLeastSquares": "estimators.TotalLeastSquares",
    "TotalMassBound": "physical.TotalMassBound",
    "tree_motion": "dynamics.tree_motion",
    "TreeMotion": "dynamics.TreeMotion",
    "UdpSource": "online.UdpSource",
    "UnstableError": "plant.UnstableError",
    "velocity_friction": "experiments.velocity_friction",
    "velocity_friction_from_logs": "experiments.velocity_friction_from_logs",
    "VelocityFriction": "experiments.VelocityFriction",
    "WeightedLeastSquares": "estimators.WeightedLeastSquares",
    "write_csv": "trajectories.write_csv",
    "write_ros": "trajectories.write_ros",
}
__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"di.{name} is now di.{new} and will be gone in 0.6", DeprecationWarning, stacklevel=2)
        return functools.reduce(getattr, new.split("."), sys.modules[__name__])
    if name in _NAMESPACES:  # `report` is both: a room that can be called
        value = import_module(_NAMESPACES[name])
    elif name in _ROOM_OF:
        value = getattr(import_module(_ROOM_OF[name]), name)
    else:
        raise AttributeError(f"module 'dynident' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_NAMESPACES])
