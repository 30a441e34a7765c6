"""Estimation on observations and their factors."""

from dynident.estimate.delay import DelayChoice, SpeedChoice, choose_delay, choose_speed
from dynident.estimate.energy import EnergyBalance, EnergyRows, energy_rows, observed_energy, observed_power, power_rows
from dynident.estimate.equivalent_friction import (
    EquivalentFriction,
    FrictionSummary,
    FrictionTorque,
    friction_summary,
    friction_torques,
)
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
from dynident.estimate.fit import Fit
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.prediction import TorqueModel, predicted_blocks
from dynident.estimate.records import (
    CrossValidation,
    Elimination,
    EstimatorRecord,
    FitErrors,
    GroupEvidence,
    LogRecord,
    Provenance,
    TermSelection,
)
from dynident.estimate.sequential_estimation import StageExperiment, sequential, sequential_online
from dynident.estimate.stage_data import StageData, experiment
from dynident.estimate.stages import StagedEstimate, StageEstimate
from dynident.estimate.storage import FitFileError, load_fit
from dynident.estimate.torque_error import TorqueErrorEstimate, torque_error_model
from dynident.estimate.torque_errors import TorqueErrors, Trace
from dynident.estimate.two_step_estimation import solve_in_steps, solve_together
from dynident.lazy import lazy_names

__all__ = [
    "ESTIMATORS",
    "CrossValidation",
    "DelayChoice",
    "Elimination",
    "EnergyBalance",
    "EnergyRows",
    "EquivalentFriction",
    "EssentialParameters",
    "Estimator",
    "EstimatorRecord",
    "Fit",
    "FitErrors",
    "FitFileError",
    "FrictionSummary",
    "FrictionTorque",
    "FrictionView",
    "GroupEvidence",
    "LogRecord",
    "NotFittedError",
    "OrdinaryLeastSquares",
    "PriorLeastSquares",
    "Provenance",
    "RidgeLeastSquares",
    "RobustLeastSquares",
    "SpeedChoice",
    "StageData",
    "StageEstimate",
    "StageExperiment",
    "StagedEstimate",
    "TermSelection",
    "TorqueErrorEstimate",
    "TorqueErrors",
    "TorqueModel",
    "TotalLeastSquares",
    "Trace",
    "WeightedLeastSquares",
    "choose_delay",
    "choose_speed",
    "energy_rows",
    "essential_parameters",
    "experiment",
    "friction_summary",
    "friction_torques",
    "load_fit",
    "observed_energy",
    "observed_power",
    "power_rows",
    "predicted_blocks",
    "sequential",
    "sequential_online",
    "solve_in_steps",
    "solve_together",
    "torque_error_model",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CombinedParameters": "StagedEstimate",
        "Experiment": "StageData",
        "JointFriction": "EquivalentFriction",
        "ReportData": "dynident.report.plot_data.ReportData",
        "SequentialResult": "StagedEstimate",
        "Stage": "StageEstimate",
        "Step": "StageEstimate",
        "load_report_data": "dynident.report.plot_data.load_report_data",
    },
)[0]
