"""Estimation on observations and their factors."""

from dynident.estimate.accuracy import TorqueErrors, Trace
from dynident.estimate.choices import DelayChoice, SpeedChoice, choose_delay, choose_speed
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
from dynident.estimate.prediction import TorqueModel, predicted_blocks
from dynident.estimate.sequential import StageExperiment, sequential, sequential_online
from dynident.estimate.sequential_result import SequentialResult, Stage
from dynident.estimate.storage import FitFileError, load_estimate
from dynident.estimate.torque_error import TorqueErrorEstimate, torque_error_model

__all__ = [
    "ESTIMATORS",
    "DelayChoice",
    "Estimate",
    "Estimator",
    "FitFileError",
    "LogRecord",
    "NotFittedError",
    "OrdinaryLeastSquares",
    "PriorLeastSquares",
    "RidgeLeastSquares",
    "RobustLeastSquares",
    "SequentialResult",
    "SpeedChoice",
    "Stage",
    "StageExperiment",
    "TorqueErrorEstimate",
    "TorqueErrors",
    "TorqueModel",
    "TotalLeastSquares",
    "Trace",
    "WeightedLeastSquares",
    "choose_delay",
    "choose_speed",
    "load_estimate",
    "predicted_blocks",
    "sequential",
    "sequential_online",
    "torque_error_model",
]
