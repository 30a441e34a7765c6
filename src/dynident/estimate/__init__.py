"""Estimation on observations and their factors."""

from dynident.estimate.accuracy import TorqueErrors, Trace
from dynident.estimate.choices import DelayChoice, SpeedChoice, choose_delay, choose_speed
from dynident.estimate.drive_gains import DriveGains, identify_drive_gains
from dynident.estimate.energy import EnergyBalance, EnergyRows, energy_rows, observed_energy, observed_power, power_rows
from dynident.estimate.essential import Elimination, EssentialParameters, RestrictedRows, essential_parameters
from dynident.estimate.estimate import Estimate, LogRecord
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
from dynident.estimate.friction_summary import FrictionSummary, JointFriction, friction_summary
from dynident.estimate.friction_view import FrictionView
from dynident.estimate.known_load import Load, LoadComparison, LoadRow, compare_load, load_change
from dynident.estimate.payload import PayloadEstimate, identify_payload
from dynident.estimate.payload_numbers import PayloadNumber
from dynident.estimate.prediction import TorqueModel, predicted_blocks
from dynident.estimate.sequential import StageExperiment, sequential, sequential_online
from dynident.estimate.sequential_result import SequentialResult, Stage
from dynident.estimate.storage import FitFileError, load_estimate
from dynident.estimate.torque_error import TorqueErrorEstimate, torque_error_model
from dynident.estimate.values import BaseValues

__all__ = [
    "ESTIMATORS",
    "BaseValues",
    "CombinedParameters",
    "DelayChoice",
    "DriveGains",
    "Elimination",
    "EnergyBalance",
    "EnergyRows",
    "EssentialParameters",
    "Estimate",
    "Estimator",
    "Experiment",
    "FitFileError",
    "FrictionSummary",
    "FrictionView",
    "JointFriction",
    "Load",
    "LoadComparison",
    "LoadRow",
    "LogRecord",
    "NotFittedError",
    "OrdinaryLeastSquares",
    "PayloadEstimate",
    "PayloadNumber",
    "PriorLeastSquares",
    "RestrictedRows",
    "RidgeLeastSquares",
    "RobustLeastSquares",
    "SequentialResult",
    "SpeedChoice",
    "Stage",
    "StageExperiment",
    "Step",
    "TorqueErrorEstimate",
    "TorqueErrors",
    "TorqueModel",
    "TotalLeastSquares",
    "Trace",
    "WeightedLeastSquares",
    "choose_delay",
    "choose_speed",
    "compare_load",
    "energy_rows",
    "essential_parameters",
    "experiment",
    "friction_summary",
    "identify_drive_gains",
    "identify_payload",
    "load_change",
    "load_estimate",
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
