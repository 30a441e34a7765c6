"""Calibrated numbers of the pipeline: how much data decides what."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class PipelineThresholds:
    """How much data selects a model, and how models are weighed."""

    selection_s: float = threshold(
        300.0, "of each log that bandwidths and terms are selected on: minutes are enough", unit="s"
    )
    fold_s: float = threshold(
        900.0, "of data that is gone through again for each fold; of more, the factors alone say enough", unit="s"
    )
    band_blocks: int = threshold(5, "parts held out in turn to select a bandwidth, the same part of every log")
    min_side_gain: float = threshold(
        0.05, "share of the error by which the motor's recipe must win where nobody said what was measured"
    )
    max_folds: int = threshold(8, "parts of the training data that are held out in turn to weigh models")
    fold_gap: float = threshold(
        0.15, "periods of the typical frequency beside a fold that are used neither for training nor for evaluation"
    )
    min_fold_rows: int = threshold(10, "rows of a joint that a fold needs for evaluation")
    min_kept_share: float = threshold(0.25, "share of the rows that must remain for training without a fold")
    equal_weights_pull: float = threshold(
        0.6,
        "pull towards equal weights of two models, in mean logarithm of squared error per squared difference of weight",
        calibrated="37 scenarios of six robots; flat from 0.6 to 2",
    )
    fed_energy_std: float = threshold(
        3.0, "standard deviations by which viscous friction is negative where a drive feeds energy beyond doubt"
    )
    clear_spring_share: float = threshold(
        0.5,
        "share of a joint's squared error on held-out data below which a spring that nobody declared must bring it: it "
        "is then most of what the model misses there",
    )
    false_change_chance: float = threshold(
        1e-3, "chance, at most, that friction which changes with neither log nor temperature passes for one that does"
    )
    max_thinning: float = threshold(
        0.06, "share of viscous friction that a kelvin can take: more than lubricants lose", unit="1/K"
    )
    min_temperature_range: float = threshold(
        1.0, "range of a joint's temperature from which it may change friction: by some per cent", unit="K"
    )
    velocity_margin: float = threshold(2.0, "times the trained velocity up to which friction must take energy")

    @property
    def other_bands(self) -> tuple[float, ...]:
        """Bands that are tried where one gave a useless model, in units of that."""
        return (0.125, 0.25, 0.5, 1.0, 2.0)


THRESHOLDS = PipelineThresholds()
