"""Estimation on observations and their factors."""

from dynident.estimate.accuracy import TorqueErrors, Trace
from dynident.estimate.delay import DelayChoice, SpeedChoice, choose_delay, choose_speed
from dynident.estimate.drive_gains import DriveGains, identify_drive_gains
from dynident.estimate.energy import EnergyBalance, EnergyRows, energy_rows, observed_energy, observed_power, power_rows
from dynident.estimate.essential import EssentialParameters, essential_parameters
from dynident.estimate.estimators import (
    ESTIMATORS,
    Estimator,
    NotFittedError,
    OrdinaryLeastSquares,
    PriorLeastSquares,
    RidgeLeastSquares,
    RobustLeastSquares,
    TotalLeastSquares,
    WeightedLeastSquares,
)
from dynident.estimate.experiments import (
    CombinedParameters,
    Experiment,
    Step,
    experiment,
    solve_in_steps,
    solve_together,
)
from dynident.estimate.fit import Fit
from dynident.estimate.friction_summary import FrictionSummary, JointFriction, friction_summary
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.known_load import Load, LoadComparison, LoadRow, compare_load, load_change
from dynident.estimate.payload import PayloadEstimate, identify_payload
from dynident.estimate.payload_numbers import PayloadNumber
from dynident.estimate.physical_bounds import Bound, CenterBox, CenterEllipsoid, MassBound, TotalMassBound
from dynident.estimate.physical_distance import NearestPhysical, PhysicalCheck, distance_to_physical, nearest_physical
from dynident.estimate.physical_fit import physical_fit
from dynident.estimate.physical_problem import ConflictError
from dynident.estimate.physical_result import Contradiction, LinkBody, PhysicalParameters
from dynident.estimate.prediction import TorqueModel, predicted_blocks
from dynident.estimate.records import (
    CrossValidation,
    Elimination,
    EstimatorRecord,
    FitErrors,
    LogRecord,
    Provenance,
    TermSelection,
    TermVerdict,
)
from dynident.estimate.report_data import ReportData, load_report_data
from dynident.estimate.sequential import StageExperiment, sequential, sequential_online
from dynident.estimate.sequential_result import SequentialResult, Stage
from dynident.estimate.storage import FitFileError, load_fit
from dynident.estimate.torque_error import TorqueErrorEstimate, torque_error_model

__all__ = [
    "ESTIMATORS",
    "Bound",
    "CenterBox",
    "CenterEllipsoid",
    "CombinedParameters",
    "ConflictError",
    "Contradiction",
    "CrossValidation",
    "DelayChoice",
    "DriveGains",
    "Elimination",
    "EnergyBalance",
    "EnergyRows",
    "EssentialParameters",
    "Estimator",
    "EstimatorRecord",
    "Experiment",
    "Fit",
    "FitErrors",
    "FitFileError",
    "FrictionSummary",
    "FrictionView",
    "JointFriction",
    "LinkBody",
    "Load",
    "LoadComparison",
    "LoadRow",
    "LogRecord",
    "MassBound",
    "NearestPhysical",
    "NotFittedError",
    "OrdinaryLeastSquares",
    "PayloadEstimate",
    "PayloadNumber",
    "PhysicalCheck",
    "PhysicalParameters",
    "PriorLeastSquares",
    "Provenance",
    "ReportData",
    "RidgeLeastSquares",
    "RobustLeastSquares",
    "SequentialResult",
    "SpeedChoice",
    "Stage",
    "StageExperiment",
    "Step",
    "TermSelection",
    "TermVerdict",
    "TorqueErrorEstimate",
    "TorqueErrors",
    "TorqueModel",
    "TotalLeastSquares",
    "TotalMassBound",
    "Trace",
    "WeightedLeastSquares",
    "choose_delay",
    "choose_speed",
    "compare_load",
    "distance_to_physical",
    "energy_rows",
    "essential_parameters",
    "experiment",
    "friction_summary",
    "identify_drive_gains",
    "identify_payload",
    "load_change",
    "load_fit",
    "load_report_data",
    "nearest_physical",
    "observed_energy",
    "observed_power",
    "physical_fit",
    "power_rows",
    "predicted_blocks",
    "sequential",
    "sequential_online",
    "solve_in_steps",
    "solve_together",
    "torque_error_model",
]
