"""Calibrated numbers of the room."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class DriveThresholds:
    """Numbers of drives that follow commands."""

    largest_delay: float = threshold(
        0.06, "delay of commands that is tried, at most: buses that are polled and filters of drives", unit="s"
    )
    delay_step: float = threshold(
        0.004, "between the delays tried first: replay errors change little over less", unit="s"
    )
    worth_of_reversals: float = threshold(
        1.05,
        "times the replay error of an estimate that leaves out rows near reversals may be that of one that uses them",
    )
    loop_delay: float = threshold(
        2.5e-4, "standard deviation of the delay within the controller's own loop, of a kilohertz or more", unit="s"
    )
    gain_share: float = threshold(
        0.1, "by which the factor of all link torques must differ from one before gains are called wrong"
    )
    gain_std: float = threshold(4.0, "standard deviations by which it must differ as well")


THRESHOLDS = DriveThresholds()
