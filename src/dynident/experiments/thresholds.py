"""Calibrated numbers of the experiments: what counts as held, settled, determined, worth a warning.

They were calibrated on the bundled robots, on MuJoCo plants with noise, encoder counts and friction, and on the papers'
own examples (`benchmarks/gravity.py`, `velocity.py`, `step.py`, `oscillation.py`); `tests/recovery` pins the estimates.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GravityThresholds:
    """Of the quasi-static gravity test."""

    even_velocity_share: float = 0.08  # share by which a cruising joint may be off its velocity
    wide_velocity_share: float = 0.3  # the same for the samples that decide whether a joint cruises
    cruising_share: float = 0.8  # share of the wide samples in the even ones from which on the velocity is constant
    settling_s: float = 0.6  # [s] after the cruising velocity is reached, in which the arm still swings
    sticking_velocity_share: float = 0.2  # share of the cruising velocity below which a joint sticks
    turning_velocity_share: float = 0.5  # share of it below which an oscillation is about to turn: gears wind up
    held_velocity_share: float = 0.05  # share of the swept joint's velocity below which another joint is held ..
    held_velocity: float = 0.01  # .. and velocity that is always allowed [rad/s; a tenth in m/s]
    moving_velocity_share: float = 0.1  # share of its highest velocity from which on a joint moves ..
    least_velocity: float = 1e-3  # .. and velocity that it must have [rad/s; a tenth in m/s]
    held_distance: float = 0.05  # [rad; a tenth in m] that a held joint may be off its usual place
    gap_sample_times: float = 2.5  # sample times between two stamps from which on samples are missing
    end_share: float = 0.1  # share of the range at either end in which a joint may well stand still
    calm_acceleration: float = 0.05  # [rad/s² or m/s²] up to which a cruising joint's samples are preferred
    moved_distance: float = 0.1  # [rad; a tenth in m] that a joint moves by itself in a log to be looked at ..
    moved_seconds: float = 2.0  # .. [s] and how long
    faint_share: float = 1e-4  # share of a column without effect: an axis within 0.006 degrees of gravity
    highest_condition: float = 2e3  # condition beyond which a higher order is not tried
    order_gain: float = 0.1  # share of the residual that a higher order must take off ..
    order_std: float = 3.0  # .. and its size in standard deviations
    undetermined_share: float = 1e-3  # share of gravity: a direction of moments that shows less is not determined
    absent_share: float = 1e-3  # share of the largest, below which a harmonic is not one of the weight
    friction_slope_std: float = 4.0  # standard deviations from which on friction depends on the load ..
    friction_change_share: float = 0.1  # .. and share of the friction by which it changes over the loads seen
    narrow_condition: float = 50.0  # condition of 1, sin, cos worth a warning: a sweep of +-26 degrees
    refused_condition: float = 400.0  # the same that is refused: +-9 degrees
    sticking_share: float = 0.05  # share of the way that a joint may stand still without a warning
    uneven_share: float = 0.1  # share by which the velocities of both directions may differ
    harmonic_std: float = 4.0  # standard deviations of a harmonic that is there ..
    harmonic_share: float = 0.003  # .. and share of the first one by which it must lower the residual
    agreement_std: float = 3.0  # standard deviations within which two values agree
    agreement_share: float = 0.01  # share of the moment within which they agree without standard deviations
    same_length_share: float = 0.06  # share by which the lengths of two moments that are only turned may differ


GRAVITY = GravityThresholds()


@dataclass(frozen=True)
class FrictionThresholds:
    """Of the constant-velocity friction test."""

    rest_velocity: float = 0.01  # [rad/s] below which a joint rests and its friction has no sign
    held_change_per_s: float = 0.2  # [1/s] share of the velocity by which it may change in a second to count as held
    shortest_stretch_s: float = 0.25  # [s] of a stretch that is used
    held_time_share: float = 0.25  # share of the moving time from which a log is one of held velocities
    opposite_share: float = 0.05  # share by which two velocities may differ to be each other's opposite
    winding_distance: float = 0.01  # [rad] from a reversal within which gears wind up and filters mix both directions
    same_column_share: float = 0.01  # singular value over the largest of columns alike: velocities that differ by 1 %
    scatter_floor: float = 1e-4  # share of the friction below which scatter is not believed
    description_std: float = 0.3  # standard deviation of a description's parameters, as a share of them
    clear_ratio: float = 10.0  # times the noise that the torque of the links must have to be estimated
    noise_floor: float = 3e-4  # share of the torque below which noise is not believed: signals are smoothed and sampled
    explained_share: float = 0.5  # share of the squared residual that a law must explain to be worth a warning
    same_velocity_share: float = 0.02  # share by which velocities differ that count as one
    resting_share: float = 0.05  # share of the largest velocity below which two elements rest against each other
    held_distance: float = 0.1  # [rad or m] by which a joint that is held may give way
    measured_share: float = 0.5  # share of the time that was to be measured that must remain of it
    rounding_share: float = 1e-4  # share of all torque: what sampling and smoothing leave of it where it should cancel
    unsteady_share: float = 0.5  # share of the mean velocity by which that of the moment may differ ..
    unsteady_time_share: float = 0.05  # .. and share of the time in which it may differ more
    stuck_share: float = 0.1  # share of the wanted velocity below which a joint does not move
    settled_share: float = 0.02  # share of its last velocity within which a joint has settled ..
    ripple_ratio: float = 3.0  # .. or so many times what its velocity still changes at the end, as by gears
    swing_share: float = 0.05  # share of the velocity at which a change is one that dies away ..
    calming_share: float = 0.9  # .. and share of what it was before


FRICTION = FrictionThresholds()


@dataclass(frozen=True)
class StepThresholds:
    """Of the voltage-step test."""

    steady_voltage_share: float = 0.02  # share of the voltage by which a step may vary
    same_pose: float = 0.02  # [rad or m] by which poses of one configuration, or with and without payload, may differ
    damping_share: float = 0.1  # relative standard deviation of the damping above which a record is too short
    lag_share: float = 0.02  # share of the record that L/R may be
    residual_ratio: float = 3.0  # times the noise that the residual of a fit may be
    late_share: float = 0.02  # share of the record by which a motion may begin late
    disagreement_std: float = 4.0  # standard deviations by which answers may disagree ..
    disagreement_share: float = 2e-3  # .. and share of an inertia that is worth a warning
    condition: float = 300.0  # of the scaled rows, as that of log diagnostics
    described_share: float = 0.5  # part of a standard deviation by the described weight that is worth a warning
    onset_share: float = 1e-3  # share of the travel that counts as motion: what static friction bends lies below
    same_onset_std: float = 3.0  # standard deviations by which an onset may differ from the step and be the same
    moving_std: float = 6.0  # standard deviations above which a position counts as motion ..
    moving_counts: float = 1.5  # .. and encoder counts
    same_voltage_share: float = 1e-3  # share by which two voltages must differ
    faint_share: float = 1e-3  # share of the noise below which a direction of the weight changes no position
    lost_momentum_std: float = 2.0  # standard deviations of chi-square by which lost momentum must exceed none
    clear_share: float = 0.1  # singular value over the largest of what a joint settles on its own
    shortest_share: float = 0.08  # share of the duration that a record must have


STEP = StepThresholds()


@dataclass(frozen=True)
class OscillationThresholds:
    """Of the free-oscillation test."""

    rest_share: float = 0.03  # share of the start: what moves less about its end is at rest
    turns: int = 3  # changes of side that make a swing
    rounding_share: float = 0.1  # of a count over the amplitude: what rounded positions do to a logarithm, by trial
    sampling_share: float = 0.2  # of the squared sample time in radians of the fastest mode, by trial
    log_std: float = 4e-5  # standard deviation of a logarithm that no swing betters
    flat_share: float = 1e-6  # curvature of the weight over its largest below which a joint has none
    turn_share: float = 0.3  # share of a period in the record: slower modes are no swing
    mode_ratio: float = 3.0  # times the residual of the modes: a weaker mode may be part of that
    clear_share: float = 0.02  # share of the strongest mode, at its strongest joint, below which one is not trusted
    merged_share: float = 1e-3  # |w²/kp - 1| at which the modes count as one
    straight_share: float = 0.05  # share by which the law of a round may be wrong: beyond, a swing bends too much
    fall_ratio: float = 4.0  # times its start: an arm that gets there falls
    far_distance: float = 1.0  # [rad or m] from the upright pose: a balance found there is another one


OSCILLATION = OscillationThresholds()
