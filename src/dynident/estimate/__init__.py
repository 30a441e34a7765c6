"""Estimation on observations and their factors."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.estimate.delay import (
        DelayChoice as DelayChoice,
        VelocitySourceChoice as VelocitySourceChoice,
        choose_delay as choose_delay,
        choose_velocity_source as choose_velocity_source,
    )
    from dynident.estimate.energy import (
        EnergyBalance as EnergyBalance,
        EnergyRows as EnergyRows,
        energy_rows as energy_rows,
        observed_energy as observed_energy,
        observed_power as observed_power,
        power_rows as power_rows,
    )
    from dynident.estimate.equivalent_friction import (
        EquivalentFriction as EquivalentFriction,
        FrictionSummary as FrictionSummary,
        FrictionTorque as FrictionTorque,
        friction_summary as friction_summary,
        friction_torques as friction_torques,
    )
    from dynident.estimate.essential import (
        EssentialParameters as EssentialParameters,
        essential_parameters as essential_parameters,
    )
    from dynident.estimate.estimators import (
        ESTIMATORS as ESTIMATORS,
        Estimator as Estimator,
        NotFittedError as NotFittedError,
        OrdinaryLeastSquares as OrdinaryLeastSquares,
        PriorLeastSquares as PriorLeastSquares,
        RidgeLeastSquares as RidgeLeastSquares,
        RobustLeastSquares as RobustLeastSquares,
        TotalLeastSquares as TotalLeastSquares,
        WeightedLeastSquares as WeightedLeastSquares,
    )
    from dynident.estimate.fit import Fit as Fit
    from dynident.estimate.friction_view import FrictionView as FrictionView
    from dynident.estimate.prediction import TorqueModel as TorqueModel, predicted_blocks as predicted_blocks
    from dynident.estimate.records import (
        CrossValidation as CrossValidation,
        Elimination as Elimination,
        EstimatorRecord as EstimatorRecord,
        FitErrors as FitErrors,
        GroupEvidence as GroupEvidence,
        LogRecord as LogRecord,
        Provenance as Provenance,
        TermSelection as TermSelection,
    )
    from dynident.estimate.sequential_estimation import (
        StageExperiment as StageExperiment,
        sequential as sequential,
        sequential_online as sequential_online,
    )
    from dynident.estimate.stage_data import StageData as StageData, experiment as experiment
    from dynident.estimate.stages import StagedEstimate as StagedEstimate, StageEstimate as StageEstimate
    from dynident.estimate.storage import FitFileError as FitFileError, load_fit as load_fit
    from dynident.estimate.torque_error import (
        TorqueErrorEstimate as TorqueErrorEstimate,
        torque_error_model as torque_error_model,
    )
    from dynident.estimate.torque_errors import TorqueErrors as TorqueErrors, Trace as Trace
    from dynident.estimate.two_step_estimation import solve_in_steps as solve_in_steps, solve_together as solve_together
else:
    __getattr__, __dir__, __all__ = lazy_names(
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
    )
