"""Calibrated numbers of the pipeline: how much data decides what."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class PipelineThresholds:
    """How much data selects a model, and what a term must be worth."""

    selection_s: float = threshold(
        300.0, "of each log that bandwidths and terms are selected on: minutes tell what hours would", unit="s"
    )
    fold_s: float = threshold(
        900.0, "of data that is gone through again for each fold; of more, the factors alone say enough", unit="s"
    )
    band_blocks: int = threshold(5, "parts left out in turn to select a bandwidth, the same part of every log")
    min_selection_s: float = threshold(
        30.0, "of data; with less, blocks left out say more about the motion than about friction", unit="s"
    )
    min_term_gain: float = threshold(0.02, "share of the error that a candidate must be worth")
    min_torque_gain: float = threshold(
        3e-4, "the same of the torque: an error of half a per cent is not made better by hundredths of one"
    )
    min_side_gain: float = threshold(
        0.05, "share of the error by which the motor's recipe must win where nobody said what was measured"
    )
    min_recipe_gain: float = threshold(
        0.25, "share of the residual's square that a recipe must explain on data too short to leave any out"
    )
    chance_factor: float = threshold(3.0, "the same, over what noise would give")
    correlated_rows: float = threshold(4.0, "neighboring rows that say about as much as one")
    min_new_share: float = threshold(1e-3, "share of a column that basic columns must not explain")

    @property
    def other_bands(self) -> tuple[float, ...]:
        """Bands that are tried where one gave a useless model, in units of that."""
        return (0.125, 0.25, 0.5, 1.0, 2.0)


THRESHOLDS = PipelineThresholds()
