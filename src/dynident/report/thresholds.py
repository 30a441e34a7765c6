"""Numbers that decide what a report says; the same question has one number on page and terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportThresholds:
    """Limits between words; read off reports of the demo and of the real robots in `tests/real`, unless said otherwise.

    Attributes:
        good_relative_std: Relative standard deviation below which a parameter counts as good.
        fair_relative_std: The same for fair; beyond, it is weak.
        error_ratio: Error on other data over training error from which it deserves a caveat.
        equal_error_ratio: Ratio of the errors of two runs below which neither is called better.
        doubtful_difference: Standard deviations of a difference from which it deserves a look (two-sided 5 %).
        residual_gain: Slope of the residual over the predicted torque from which the torque scale is in doubt.
        residual_offset: Mean of the residual over its standard deviation from which there is an offset.
        residual_kurtosis: Excess kurtosis from which there are more large errors than Gaussian noise has.
        min_residuals: Samples of a joint for which residual tests mean something.
        std_inflation: Standard deviation over what it would be with all other parameters known, from which a
            combination is worth a row.
        correlation: Of two parameters, from which they are named together.
        visible_friction_share: Of a joint's torque, from which load-dependent friction can be seen in a plot.
        steady_velocity_share: Of a joint's highest velocity, beyond which friction no longer changes its sign.
    """

    good_relative_std: float = 0.05
    fair_relative_std: float = 0.15
    error_ratio: float = 1.5
    equal_error_ratio: float = 1.05
    doubtful_difference: float = 2.0
    residual_gain: float = 0.02
    residual_offset: float = 0.3
    residual_kurtosis: float = 1.0
    min_residuals: int = 50
    std_inflation: float = 3.0
    correlation: float = 0.4
    visible_friction_share: float = 0.005
    steady_velocity_share: float = 0.1


THRESHOLDS = ReportThresholds()
