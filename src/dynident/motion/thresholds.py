"""Calibrated numbers of the room: what the search for an excitation trajectory takes, weighs and checks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MotionThresholds:
    """Numbers of the search, calibrated with `benchmarks/excitation.py` (UR10e and Panda) but for the limits of input.

    Attributes:
        most_oscillations: Of the highest harmonic in a motion; memory and time of the search grow with them.
        smoothing_share: Of the joints' velocity limits: below, Coulomb friction is smoothed in the search.
        rest_share: Of a joint's velocity limit: the velocity at which a row counts half.
        usual_top_hz: Frequency that the highest harmonic reaches where nobody chose the series; a joint of an arm that
            swings as slowly has used its range.
        least_harmonics, most_harmonics: Where nobody chose the series; the time of a search grows with their square.
        forecast_s: Length of the log that is made up of a motion that repeats itself.
        no_torque_share: Of the largest rms torque, below which a joint's torque is rounding.
        no_value_share: Of the largest parameter's effect, below which a value is rounding.
        small_value_share: A parameter near zero counts as large as this share of a typical one.
        tie_break: How much a parameter's mean information counts beside the worst, both as logarithms.
        samples_per_period: Of the highest harmonic, in the search.
        fine_samples_per_period: Of the last search, so that little is left to happen between the samples.
        check_rate_hz: Of the last check.
        margin: Slack kept from the beginning, for what happens between the samples, as a share of a limit.
        room: Slack that a pose must have for a motion about it to begin.
        least_start: Share of a random motion below which a pose leaves no room.
        first_steps: Steps after which the worse starts are given up.
        steps: Steps by which motions are compared.
        starts_per_survivor: Of so many starts, one goes on.
        survivor_barrier: Barrier parameter at which those go on.
        finalists: Motions that are pushed.
        late_barrier: Barrier parameter of a search that begins near a good motion.
        push: Size of a push beside the coefficients.
        push_sizes: Sizes to which the motion is drawn before, until the push fits.
        tightenings: Times that limits broken between the samples are tightened before the motion is made smaller.
        pose_tolerance: [rad or m] by which a pose may be beyond a position limit: encoders and rounding.
        least_pivot: Of loops that are closed numerically, how clearly they determine the passive joints (0 at a
            singular pose, about 1 far from any).
        always_touching_share: Share of poses in which a pair of links that counts as always touching does.
    """

    most_oscillations: int = 300
    smoothing_share: float = 0.04
    rest_share: float = 0.02
    usual_top_hz: float = 0.5
    least_harmonics: int = 5
    most_harmonics: int = 10
    forecast_s: float = 120.0
    no_torque_share: float = 1e-9
    no_value_share: float = 1e-9
    small_value_share: float = 0.1
    tie_break: float = 0.1
    samples_per_period: int = 24
    fine_samples_per_period: int = 48
    check_rate_hz: float = 1000.0
    margin: float = 0.001
    room: float = 0.002
    least_start: float = 1e-9
    first_steps: int = 12
    steps: int = 36
    starts_per_survivor: int = 3
    survivor_barrier: float = 0.1
    finalists: int = 3
    late_barrier: float = 0.02
    push: float = 0.2
    push_sizes: tuple[float, ...] = (0.85, 0.6, 0.95)
    tightenings: int = 5
    pose_tolerance: float = 1e-3
    least_pivot: float = 0.05
    always_touching_share: float = 0.8


THRESHOLDS = MotionThresholds()
