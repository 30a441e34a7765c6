"""Calibrated numbers of signals: time, standstill, and the bandwidth of a log."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class SignalThresholds:
    """What counts as a gap, as standstill and as noise.

    Frequencies without a unit are in units of a motion's typical frequency.
    """

    # Time
    min_rate_hz: float = threshold(5.0, "lowest rate that a log of a robot may have", unit="Hz")
    max_rate_hz: float = threshold(1e5, "highest rate that a log of a robot may have", unit="Hz")
    usual_rate_hz: float = threshold(500.0, "of two units of time, that whose rate is nearer to this", unit="Hz")
    irregular_step_share: float = threshold(0.5, "share of the typical step by which an irregular one differs from it")
    gap_steps: float = threshold(5.0, "typical steps: a longer step is a gap if it is also longer than gap_s")
    gap_s: float = threshold(0.05, "see gap_steps", unit="s")
    uniform_step_share: float = threshold(1e-3, "share of a step by which stamps may differ from a uniform grid")
    max_drift_steps: float = threshold(0.25, "steps by which stamps may drift from a uniform grid")
    max_stutter_rows: int = threshold(3, "rows: a longer run of equal rows is standstill, not a stuttering logger")
    min_stretch_samples: int = threshold(16, "samples of a log or a stretch that a filter can work with")
    # Positions that repeat while a joint moves
    stall_neighbors: int = threshold(4, "fresh readings before and behind a run of repeats that tell what it is")
    stall_jump: float = threshold(
        1.5,
        "jump behind a run over the steps around it",
        calibrated="an encoder's own repeats give 1, a stall 2 or more",
    )
    stall_ratio: float = threshold(
        4.0, "by which a line must miss a repeat, over resolution and scatter of the fresh readings around"
    )
    # Torque at the ends of its range, and positions that jump by a turn
    min_saturated_share: float = threshold(
        0.01, "share of the samples in motion at the ends of a torque's range", calibrated="sound logs have 0.0003"
    )
    max_saturated_share: float = threshold(0.5, "the same, from which too little would remain: a switch, or no log")
    min_levels: int = threshold(20, "levels of a channel, below which it stays at its ends by rounding")
    saturated_row_share: float = threshold(0.02, "share of saturated samples in a row, in weights of its filters")
    wrap_jump_turns: float = threshold(0.75, "jump of a position from sample to sample that is a turn taken back")
    # Motion
    standstill_rad: float = threshold(
        1e-3, "range of a joint that does not move over a log (a tenth in m on slides)", unit="rad"
    )
    position_window_s: float = threshold(0.05, "window over which an encoder's steps are no motion", unit="s")
    peak_velocity_factor: float = threshold(2.0, "peak over rms velocity of all joints together")
    # Rows
    reversal_periods: float = threshold(
        1.32,
        "periods of the bandwidth about a reversal that its filters smear over: their step response is within 1e-3",
        calibrated="low_pass_kernel at the bandwidth and at twice it; tested",
    )
    rest_share: float = threshold(0.02, "share of an element's effective velocity up to which it may stick")
    prediction_end_periods: float = threshold(
        0.35, "periods of the bandwidth at both ends of a log that give no row for predictions"
    )
    # Repeats of a motion
    repeat_distance: float = threshold(
        0.1, "distance of states, in standard deviations (RMS over joints), within which a motion is the same"
    )
    repeat_spacing: float = threshold(
        0.1, "periods of the typical frequency between states: a chord between them is off by a twentieth"
    )
    max_states: int = threshold(2000, "states that are compared with each other")
    # Bandwidth
    typical_energy_share: float = threshold(0.9, "share of the kinetic energy below a motion's typical frequency")
    max_band_factor: float = threshold(18.0, "bandwidth that a motion can use")
    undecided_band_factor: float = threshold(
        6.0, "bandwidth until torque decides: too much costs far more than too little"
    )
    min_band_factor: float = threshold(4.0, "bandwidth that noise must not take: the motion itself has to pass")
    min_wider_band: float = threshold(1.5, "ratio of a wider band to the one that noise allows, to be tried at all")
    same_rate: float = threshold(0.2, "logarithm of the ratio of two rates at which positions have the same noise")
    max_noise_share: float = threshold(0.01, "share of noise in the acceleration's power, by which it shrinks inertias")
    min_band_hz: float = threshold(1.0, "slow motion is not filtered further unless noise asks for it", unit="Hz")
    min_band_seconds: float = threshold(
        25.0, "bandwidth times duration: a hundred rows per joint, at four rows per second and Hz", unit="Hz s"
    )
    filter_end_periods: float = threshold(5.4, "periods of the bandwidth that filters lose at the ends of a stretch")
    min_power_share: float = threshold(1e-4, "share of the fastest joint's power, of its kind, that counts")
    above_noise: float = threshold(30.0, "power over white noise at the level of the top of the spectrum")
    noise_rise_db: float = threshold(
        12.0, "rise over two octaves that is like noise", unit="dB", calibrated="half way from motion (0) to f^4 (24)"
    )
    max_noise_rise_db: float = threshold(
        30.0, "rise over two octaves that is another part of the motion", unit="dB", calibrated="f^4 gives 24"
    )
    line_rise_db: float = threshold(
        12.0, "rise over a third of an octave that is a line of the motion", unit="dB", calibrated="f^4 gives 4"
    )
    motion_fall_db: float = threshold(12.0, "fall that noise of positions does not show", unit="dB")
    max_column_mismatch: float = threshold(
        5e-4,
        "share of a column by which filters may treat it and torque otherwise",
        calibrated="up to half the bandwidth they do no worse",
    )

    @property
    def band_factors(self) -> tuple[float, ...]:
        """Bandwidths among which torque decides where noise does not, in typical frequencies."""
        return (3.0, self.undecided_band_factor, 9.0, self.max_band_factor)


THRESHOLDS = SignalThresholds()
