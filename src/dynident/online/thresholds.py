"""Calibrated numbers of the room: gates, floors, monitors and the detection of changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OnlineThresholds:
    """Numbers of on-line identification.

    Calibrated with `benchmarks/online_payload.py` and logs of a UR10e, but for what a sender can be expected to do.

    Attributes:
        band_hz: Bandwidth where neither the user nor a prior says anything.
        cutoff_factor: Motion is filtered at this many times the band: a narrower filter smears friction at reversals.
        highest_cutoff_share: Of the rate; above, a low-pass has no meaning.
        settled_step: Share of a step, from which on what filters make of it counts as the step itself, as off-line.
        rows_per_band: Rows of a joint per second, in units of the band, as off-line.
        most_filled: Samples that may be missing in a row; more, and the filters start again.
        first_samples: Samples whose stamps give the sample time.
        jitter_share: Of the sample time: stamps that scatter by more are irregular.
        clock_set_back_s: By which a clock that has been set again lies behind; less, and a sample is late.
        clock_ahead_s: A stamp further ahead of the last sample is believed only when others confirm it; a pause of a
            log that is longer is a jump of its clock.
        confirming_samples: In order on another clock, after which the sender's clock counts as started again.
        pause_s: Between the samples of two clocks or logs; a gap of this length is no loss, but a sender that paused.
        gap_steps: Typical steps, beyond which a sample is missing.
        largest_signal: [rad, rad/s, N·m and the like] that any joint of any robot reaches.
        latest_stamp_s: Three thousand years: stamps beyond are in another unit.
        velocity_margin: Over the limit of a joint's velocity: stamps scatter, and files state other limits than drives.
        velocity_rad_s: Where no limit is stated; no joint of an arm comes near.
        sliding_velocity_m_s: Likewise.
        recent_share: Of the memory: the recent part makes room for itself when it is as long.
        settled_variances: Of all rows, below which errors are those of the data and not of unfinished values.
        unsettled_share: With which errors of unfinished values go on counting; none would leave nothing to show.
        prior_weight_rows: Of a joint, that the known robot's residual counts as where the weight of new rows is
            concerned: those of two seconds.
        rows_per_unknown: Before errors are measured with new values.
        ring_windows: A change can be noticed late, and lie before the window that shows it.
        error_seconds: Time of motion over which torque errors are averaged.
        most_alike: Autocorrelation of neighboring errors that is believed.
        filtered_inflation: Rows of filtered white noise that weigh as one independent row off-line, at least (2.3 to
            3.4 were measured); with boxes of instants, on-line rows of white noise are nearly independent.
        torque_share: Largest standard deviation of predicted torque, of the torque itself, over motion at large.
        verdict_rows_per_unknown: Before a verdict.
        change_statistic: Of F: friction that is not modeled brings it to 12 in UR10e logs, a payload beyond 250 in ten
            seconds.
        change_rows_per_unknown: Rows on each side of a change.
        likely_cut_variances: Of the noise: cuts that are worse by less may be the right one.
        mass_significant: Standard deviations of the difference of the masses before and after.
        mass_well_known: The same for a change whose instant is refined: half of it is four standard deviations, and
            values nearer to each other may exchange their roles.
        possible_variances: By which an instant may explain the rows worse than the best: four standard deviations.
        friction_share: Of a friction parameter: how far that of the session may be off.
        value_share: Of a value or of a typical one: how far a value without a standard deviation may be off.
        noise_share: Of a joint's typical torque: its standard deviation where nothing is known about it.
    """

    band_hz: float = 10.0
    cutoff_factor: float = 4.0
    highest_cutoff_share: float = 0.45
    settled_step: float = 1e-3
    rows_per_band: float = 4.0
    most_filled: int = 4
    first_samples: int = 50
    jitter_share: float = 0.01
    clock_set_back_s: float = 1.0
    clock_ahead_s: float = 60.0
    confirming_samples: int = 20
    pause_s: float = 1.0
    gap_steps: float = 1.5
    largest_signal: float = 1e7
    latest_stamp_s: float = 1e11
    velocity_margin: float = 2.0
    velocity_rad_s: float = 30.0
    sliding_velocity_m_s: float = 10.0
    recent_share: float = 0.25
    settled_variances: float = 1.2
    unsettled_share: float = 1e-3
    prior_weight_rows: float = 40.0
    rows_per_unknown: float = 20.0
    ring_windows: float = 3.0
    error_seconds: float = 5.0
    most_alike: float = 0.98
    filtered_inflation: float = 2.3
    torque_share: float = 0.1
    verdict_rows_per_unknown: float = 3.0
    change_statistic: float = 15.0
    change_rows_per_unknown: float = 5.0
    likely_cut_variances: float = 36.0
    mass_significant: float = 4.0
    mass_well_known: float = 8.0
    possible_variances: float = 16.0
    friction_share: float = 0.3
    value_share: float = 0.3
    noise_share: float = 0.01

    @property
    def most_inflation(self) -> float:
        """Rows that weigh as much as one independent row, at most; taken where nothing is known about it."""
        return (1.0 + self.most_alike) / (1.0 - self.most_alike)

    def longest_gap_s(self, sample_time: float) -> float:
        """Time between two samples of one motion, at most."""
        return (self.most_filled + 1.5) * sample_time


THRESHOLDS = OnlineThresholds()
