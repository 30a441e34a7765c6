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
    telling_share: float = threshold(
        0.05,
        "of the motion, below which the error of a replay distinguishes values: larger ones have grown by themselves",
    )
    most_saturated: float = threshold(
        0.8, "share of a joint's commands beyond its torque limit, above which no drive can be identified"
    )
    little_saturated: float = threshold(
        0.02, "share of a joint's commands beyond its torque limit, which are left out, above which a warning says so"
    )
    better_order: float = threshold(
        0.5, "of the rms distance of targets from positions, below which another order of the joints is the right one"
    )
    degree_margin: float = threshold(
        7.57,
        "by which the slope of positions over targets may differ from pi / 180 to be called degrees: the root of "
        "180 / pi, so that it is nearer to degrees than to one",
    )
    largest_bias: float = threshold(
        0.2, "of a joint; an encoder or a calibration that is further off would be seen", unit="rad or m"
    )
    trunk_placebos: float = threshold(
        200,
        "random signs of the joints' residuals that a trunk's acceleration must explain less of, all but a hundredth",
    )
    trunk_acceleration: float = threshold(
        0.1, "of a trunk, rms, that is worth a warning: a hundredth of gravity, half a degree of tilt", unit="m/s²"
    )
    trunk_share: float = threshold(
        1.5, "times the median of what it explains with random signs that a moving trunk must explain"
    )
    loop_delay: float = threshold(
        2.5e-4, "standard deviation of the delay within the controller's own loop, of a kilohertz or more", unit="s"
    )
    left_out_share: float = threshold(
        0.3, "share of each stretch, its last part, that a refinement leaves out and is evaluated by"
    )
    horizon: float = threshold(
        0.2,
        "after which a torque-driven replay begins again: errors of torque grow with the square of time, and a fifth "
        "of a second is several periods of what controllers do",
        unit="s",
    )
    determined_gain: float = threshold(
        0.1, "largest standard deviation of the factor of a joint's gains that counts as determined by its links"
    )
    most_alike: float = threshold(0.995, "autocorrelation of neighboring replay errors that is believed")
    gain_share: float = threshold(
        0.1, "by which the factor of all link torques must differ from one before gains are called wrong"
    )
    gain_std: float = threshold(4.0, "standard deviations by which it must differ as well")


THRESHOLDS = DriveThresholds()
