"""Calibrated numbers of the log diagnostics.

Sound logs are those of real robots (UR10e, Panda, LWR4+, TX40, TIAGo) and simulated ones that `benchmarks/mistakes.py`
makes mistakes in. Scores are sums over the joints of the logarithm of the residual share.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class DiagnosticThresholds:
    """Where a diagnostic warns or stops."""

    # Time and rows
    max_time_jump_s: float = threshold(1e6, "step of time that no pause explains", unit="s", calibrated="eleven days")
    max_irregular_share: float = threshold(
        0.1, "share of steps that are off by half a step", calibrated="a polled 1 kHz stream has 0.04"
    )
    max_step_spread: float = threshold(
        0.5, "standard deviation of the steps over their mean", calibrated="a polled 1 kHz stream has 0.21"
    )
    regular_step_spread: float = threshold(1e-3, "the same, below which stamps are called regular")
    max_repeated_share: float = threshold(
        0.1, "share of rows that repeat the one before", calibrated="a polled 1 kHz stream has 0.06"
    )
    hung_logger_jump: float = threshold(3.0, "step out of equal rows over the largest other step: the logger hung")
    # Channels
    min_moving_share: float = threshold(0.02, "share of the samples in which a moving joint moves")
    min_velocity: float = threshold(0.05, "velocity below which a measured one may be noise", unit="rad/s")
    dead_share: float = threshold(
        0.999, "share of repeated values of a dead channel", calibrated="1 mA steps around zero have 0.83"
    )
    min_switched_share: float = threshold(
        0.1, "standard deviation over range of a channel that is switched, not dead: a hundredth of it on one side"
    )
    coarse_position_step: float = threshold(
        3e-3, "step of a position over its standard deviation", calibrated="sound logs have 4e-4"
    )
    coarse_torque_step: float = threshold(
        0.1, "step of a torque over its standard deviation", calibrated="sound logs have 0.02"
    )
    rounded_share: float = threshold(0.1, "share of repeated values from which a step is one of rounding")
    position_limit_margin_rad: float = threshold(0.02, "room that encoders need beyond position limits", unit="rad")
    velocity_limit_factor: float = threshold(1.2, "velocity over its limit: differentiation needs some room")
    other_unit_factor: float = threshold(10.0, "position over its limit, from which it is in another unit")
    many_turns: float = threshold(4.0, "turns of a joint without limits, from which degrees are asked for")
    min_velocity_correlation: float = threshold(
        0.9, "correlation of a velocity with its own position", calibrated="sound logs have 0.97"
    )
    copied_velocity_correlation: float = threshold(
        0.995,
        "the same, from which a velocity is the right one times a factor",
        calibrated="noisy velocities have less",
    )
    swapped_velocity_correlation: float = threshold(0.95, "correlation with the position of another joint")
    max_velocity_slope_error: float = threshold(
        0.15, "share by which measured velocities may differ", calibrated="sound logs have 0.05"
    )
    slope_tolerance: float = threshold(0.05, "share by which slopes with one common cause may differ")
    max_clock_factor: float = threshold(5.0, "common factor of velocities up to which the clock is suspected")
    max_rest_share: float = threshold(
        0.8, "share of the samples at rest", calibrated="a log that starts and ends at rest has 0.25"
    )
    # Size of the torque
    min_model_correlation: float = threshold(0.5, "correlation with the torque of the robot file that makes it count")
    sure_model_correlation: float = threshold(0.9, "the same, from which it says what scale a torque has")
    max_torque_factor: float = threshold(3.0, "factor by which the masses of a robot file may be wrong")
    explained_torque_factor: float = threshold(2.0, "factor within which another reading must bring the torque")
    impossible_torque_factor: float = threshold(50.0, "factor from which the log is refused")
    sure_torque_factor: float = threshold(
        5.0, "one factor at all joints, from which the log is refused: rough masses are off by many"
    )
    free_torque_share: float = threshold(
        0.1, "torque over the weight of the links, below which joints swing freely", calibrated="friction of bearings"
    )
    # Hypotheses about columns
    min_score_gain: float = threshold(0.7, "gain in score of a mistake: the residual of one joint halves")
    sure_score_gain: float = threshold(1.5, "the same, from which it is no longer a guess")
    few_score_gain: float = threshold(
        3.0, "the same, with few equations for each parameter", calibrated="sound logs of some seconds have 2"
    )
    max_joint_loss: float = threshold(0.15, "loss in score of one joint, or its share of the gain in all")
    rival_score: float = threshold(0.15, "difference in score up to which a hypothesis is reported as equally good")
    min_scale_logarithm: float = threshold(0.12, "logarithm of a scale below which it is not reported")
    number_spread: float = threshold(
        0.5, "share of its logarithm by which parts of the logs may ask for another scale", calibrated="sound logs cut"
    )
    min_degrees_range_rad: float = threshold(
        6.283, "range of a joint, as read, from which its positions may be in degrees: a turn", unit="rad"
    )
    turned_residual_share: float = threshold(0.08, "residual share of a strong joint from which gravity is turned")
    strong_torque_share: float = threshold(0.2, "share of the strongest joint's torque that makes a joint strong")
    min_likeness_gain: float = threshold(
        0.2, "gain in mean correlation with the file's links that sides with another direction of gravity"
    )
    gravity_score_lead: float = threshold(2.0, "lead in score that columns need over gravity along another axis")
    min_explained_share: float = threshold(0.01, "share of a joint's torque that a mistake must explain")
    max_disagreement: float = threshold(1.5, "loss in score of a log under one model for all logs")
    settled_share: float = threshold(0.4, "share of that loss that may stay once a mistake in one log is corrected")
    # Fit and agreement of logs
    poor_residual_share: float = threshold(
        0.25, "residual share of all torque", calibrated="sound logs of real arms have 0.1 at most"
    )
    named_residual_share: float = threshold(
        0.5,
        "held-out residual share of a joint that a mistake is about, from which it is no answer",
        calibrated="a quarter of the variance: sound joints have 0.3 but for weak wrists",
    )
    hopeless_residual_share: float = threshold(
        0.9, "the same, from which torque and motion do not belong together", calibrated="outliers alone make 0.8"
    )
    disagreement_warn: float = threshold(
        3.0, "loss in score of a log under one model", calibrated="weak data have 2, a few kilograms of payload 7"
    )
    disagreement_stop: float = threshold(5.0, "the same, from which logs are refused")
    disagreement_stop_share: float = threshold(0.12, "residual share of a joint that goes with it")
    min_residual_share: float = threshold(0.02, "residual share of a joint: exact data would report less")
    min_motor_range_rad: float = threshold(7.0, "range of a motor shaft: joints of arms hardly turn once", unit="rad")
    # Delay
    delay_velocity_share: float = threshold(0.2, "share of the rms velocity: in slow motion friction passes for delay")
    usual_delay_s: float = threshold(0.02, "delay that is not reported: identification undoes it", unit="s")
    delay_ridge: float = threshold(
        1.1, "residual between two delays over that of the smaller one, from which both are minima of their own"
    )
    delay_gain_warn: float = threshold(0.06, "share by which a delay must lower the residual")
    delay_gain_stop: float = threshold(
        0.2, "the same, from which delays that identification cannot undo refuse a log; for one joint it warns"
    )
    joint_delay_s: float = threshold(
        0.025, "delay of one joint from the others", unit="s", calibrated="joints of sound logs are less apart"
    )
    joint_delay_gain: float = threshold(0.3, "its gain in a joint's share of the residual of all joints")
    # Bias
    bias_share: float = threshold(0.02, "share of the torque by which instruments move the prediction")
    bias_chance_factor: float = threshold(3.0, "the same over what chance alone does")
    bias_cosine: float = threshold(0.5, "cosine between the changes by instruments and by half the bandwidth")
    bias_half_band_share: float = threshold(0.2, "change by half the bandwidth over that by instruments")
    noise_band_share: float = threshold(
        0.5, "share of the bandwidth that the motion could use, which noise leaves", calibrated="most sound logs have 1"
    )
    certain_bias_share: float = threshold(0.1, "share of the torque that nothing but noise moves in both")
    # Excitation
    one_way_share: float = threshold(0.03, "share of its motion that a joint must make in either direction")
    alike_correlation: float = threshold(0.98, "correlation of the velocities of two joints")
    same_motion_correlation: float = threshold(
        0.9999, "the same, from which only noise distinguishes them", calibrated="optimal excitation has 0.9996 at most"
    )


THRESHOLDS = DiagnosticThresholds()
