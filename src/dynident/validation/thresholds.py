"""Calibrated numbers of validation: folds, residual tests, comparison of fits."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class ValidationThresholds:
    """What is left out, and what counts as a difference."""

    stretch_end_s: float = threshold(0.2, "left out at the ends of a stretch, where filters lack samples", unit="s")
    max_correlated_share: float = threshold(0.1, "share of lags outside their 95 % bounds that passes for white")
    max_blocks: int = threshold(5, "folds made of one log")
    min_folds: int = threshold(3, "folds that terms are selected by")
    selection_blocks: int = threshold(4, "folds made of each log where there are too few logs to select terms by")
    min_interval_coverage: float = threshold(
        0.85,
        "share of held-out residuals within intervals that state 95 %, below which these are called too narrow",
        calibrated="three times as many outside as stated; folds of seconds scatter by less",
    )
    good_error: float = threshold(
        0.1,
        "relative torque error up to which a model is called good",
        calibrated="99 % of the mean square torque explained; careful identifications of geared arms reach 5 to 10 %",
    )
    usable_error: float = threshold(
        0.3,
        "the same for usable, and for each joint of a good one; beyond, a model is called poor",
        calibrated="91 % of the mean square torque explained; feedback is left with less than a third of the torque",
    )
    clearly_better: float = threshold(
        0.9,
        "share of the identified values' training error below which that of the robot file's values counts as less",
        calibrated="errors of one model in two logs of the same noise differ by some per cent",
    )
    lost_coverage: float = threshold(
        0.5, "share of held-out residuals within intervals that state 95 %, below which a model is not of these logs"
    )
    max_chance: float = threshold(0.05, "probability that any parameter is called changed though none is")
    same_band_ratio: float = threshold(1.02, "ratio of bandwidths up to which errors are in the same one")
    same_column_share: float = threshold(
        1e-4,
        "share of a column's torque by which lengths of one geometry may differ",
        calibrated="lengths rounded to 0.1 mm, 1.5708 for pi/2",
    )


THRESHOLDS = ValidationThresholds()
