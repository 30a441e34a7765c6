"""The numbers in the docs are those of the thresholds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from dynident.diagnostics.thresholds import THRESHOLDS as T, DiagnosticThresholds
from dynident.estimate.delay import LARGEST_DELAY
from dynident.information.thresholds import THRESHOLDS as ENOUGH
from dynident.options import threshold_table
from dynident.signals.thresholds import THRESHOLDS as SIGNALS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "check.md").read_text()
SENTENCES = [
    f"has a rate outside {SIGNALS.min_rate_hz:g} Hz to {SIGNALS.max_rate_hz / 1e3:g} kHz",
    f"jumps by more than {T.max_time_jump_s:.0e} s".replace("e+06", "e6"),
    f"more than {T.max_irregular_share:.0%} of the steps are off by half a step".replace("%", " %"),
    f"more than {T.max_repeated_share:.0%} of the rows repeat".replace("%", " %"),
    f"(range of {SIGNALS.standstill_rad:g} rad or {1e2 * SIGNALS.standstill_rad:g} mm)",
    f"more than {SIGNALS.min_saturated_share:.0%} of the samples in motion".replace("%", " %"),
    f"more than {SIGNALS.max_saturated_share:.0%} of them".replace("%", " %"),
    f"steps above {T.coarse_position_step:g} of a position's standard deviation",
    f"{T.coarse_torque_step:g} of a torque's",
    f"(correlation below {T.min_velocity_correlation:g})",
    f"(by more than {T.max_velocity_slope_error:.0%})".replace("%", " %"),
    f"rest in more than {T.max_rest_share:.0%} of the samples".replace("%", " %"),
    f"positions {T.position_limit_margin_rad:g} rad",
    f"velocities {T.velocity_limit_factor - 1.0:.0%} beyond".replace("%", " %"),
    f"falls by {T.min_score_gain:g} (one joint's residual halves)",
    f"above {T.sure_score_gain:g} it is no",
    f"Explanations within {T.rival_score:g}",
    f"off by more than {T.max_torque_factor:g}",
    f"| {T.hopeless_residual_share:.0%}: torque and motion".replace("%", " %"),
    f"turn by more than {T.min_motor_range_rad:g} rad",
    f"torque more than {1e3 * T.usual_delay_s:.0f} ms late or early",
    f"of all joints ({T.delay_gain_warn:.0%} less".replace("%", " %"),
    f"| {T.delay_gain_stop:.0%} beyond the {1e3 * LARGEST_DELAY:.0f} ms that identification undoes, ".replace("%", " %")
    + f"{2.0 * T.delay_gain_stop:.0%} |".replace("%", " %"),
    f"more than {1e3 * T.joint_delay_s:.0f} ms from the others",
    f"fewer than {ENOUGH.recommended_equations} in motion for each parameter | fewer than {ENOUGH.min_equations} |",
    f"With fewer than {ENOUGH.min_equations_to_stop:g} equations for each parameter",
    f"above {ENOUGH.max_condition:g}, with what five harmonics",
    f"one way in more than {1.0 - T.one_way_share:.0%} of its motion".replace("%", " %"),
    f"correlate by more than {T.alike_correlation:g}",
    f"worse than its own by {T.disagreement_warn:g} in the sum of logarithms | by {T.disagreement_stop:g} |",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_tables_name_the_thresholds(sentence):
    assert sentence in PAGE


def test_the_table_of_thresholds():
    assert threshold_table(DiagnosticThresholds) in PAGE


def test_every_threshold_says_what_it_decides():
    for record in (T, ENOUGH, SIGNALS):
        assert all(entry.metadata["meaning"] for entry in fields(record))
