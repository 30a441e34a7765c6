"""What the stamps and rows of a log say: time, sampling, gaps, repeated rows."""

from __future__ import annotations

import math

import numpy as np

from dynident.diagnostics.thresholds import THRESHOLDS
from dynident.estimate.records import Diagnostic, Severity, percent
from dynident.logs.columns import size_in_si
from dynident.signals.clock import TIME_UNITS
from dynident.signals.log_survey import Survey
from dynident.signals.thresholds import THRESHOLDS as SIGNALS


def diagnose_time(survey: Survey) -> Diagnostic:
    """Whether time runs forward, in a unit that makes sense."""
    clock = survey.clock
    if clock.first_backward_step is not None:
        row, before, after = clock.first_backward_step
        times = "once" if clock.n_backward_steps == 1 else f"{clock.n_backward_steps} times"
        words = f"time runs backwards {times}, first from {before:.9g} to {after:.9g} s at row {row}"
        return Diagnostic("time", "stop", f"{words}; sort the rows by time, or split the log there")
    if not clock.step > 0.0:
        return Diagnostic("time", "stop", "time never advances; check the time column and its unit")
    if clock.longest > THRESHOLDS.max_time_jump_s:
        words = f"time jumps by {clock.longest:.4g} s"
        where = f" after {clock.longest_after:.9g} s"
        return Diagnostic("time", "stop", f"{words}{where}, as when a clock is set; cut the log there (--window)")
    unit = true_unit(survey)
    if unit != (survey.raw.origins["t"].unit or "s"):
        return _wrong_unit(survey, unit)
    if not SIGNALS.min_rate_hz <= clock.rate <= SIGNALS.max_rate_hz:
        words = f"the median rate is {clock.rate:.4g} Hz, where {SIGNALS.min_rate_hz:g} Hz to 100 kHz is expected"
        return Diagnostic("time", "stop", f"{words}; check the time column and its unit")
    return Diagnostic("time", "ok", f"{clock.n_samples} samples over {clock.duration:.4g} s, always forward")


def _wrong_unit(survey: Survey, unit: str) -> Diagnostic:
    origin = survey.raw.origins["t"]
    said = size_in_si("t", origin.unit)
    rate = survey.clock.rate * TIME_UNITS.get(survey.clock.unit, 1.0)
    better = rate * said / size_in_si("t", unit)
    words = f"time read in {origin.unit or 's'} gives {rate:.4g} Hz, in {unit} {better:.4g} Hz"
    reason = " and measured velocities that are those of the positions" if clock_factor(survey) != 1.0 else ""
    fix = {"columns": origin.rule("t", unit=unit)}
    return Diagnostic("time", "stop", f"{words}{reason}; give column '{origin.header}' the unit {unit}", fix)


def true_unit(survey: Survey) -> str:
    """The unit of the stamps by what the rate and the measured velocities say; the one that was given if that fits."""
    given = survey.raw.origins["t"].unit or "s"
    size = size_in_si("t", given) * TIME_UNITS.get(survey.clock.unit, 1.0) / clock_factor(survey)
    if math.isclose(size, size_in_si("t", given), rel_tol=1e-6):
        return given
    return next(
        (unit for unit, own in {"s": 1.0, **TIME_UNITS}.items() if math.isclose(own, size, rel_tol=1e-6)), given
    )


def clock_factor(survey: Survey) -> float:
    """How many times too long all steps of time are by the measured velocities: a power of 1000, else 1."""
    joints = survey.joints
    slopes = [
        abs(slope)
        for j, slope in zip(joints.with_velocity, joints.slope, strict=True)
        if joints.max_measured_velocity[j] > 0.0
        and joints.max_velocity[j] > 0.0
        and math.isfinite(slope)
        and slope != 0.0
    ]
    if not slopes:
        return 1.0
    middle = float(np.median(slopes))
    power = round(math.log(middle, 1000.0))
    agree = np.mean(np.abs(np.array(slopes) / middle - 1.0) < THRESHOLDS.slope_tolerance) > 0.5
    return 1000.0**power if agree and abs(middle / 1000.0**power - 1.0) < 2.0 * THRESHOLDS.slope_tolerance else 1.0


def diagnose_sampling(survey: Survey) -> Diagnostic:
    """Whether the stamps are regular enough for signals to be resampled."""
    clock = survey.clock
    if not clock.step > 0.0:
        return Diagnostic("sampling", "ok", "not assessed, as time does not advance")
    steps = f"steps of {1e3 * clock.shortest:.4g} to {1e3 * clock.longest:.4g} ms, median {1e3 * clock.step:.4g} ms"
    if clock.irregular_share > THRESHOLDS.max_irregular_share or clock.spread > THRESHOLDS.max_step_spread:
        words = (
            f"stamps are very irregular ({steps}; {percent(clock.irregular_share)} are off by more than half a step)"
        )
        return Diagnostic("sampling", "warn", f"{words}; log with the controller's own stamps, at a fixed rate")
    if clock.spread <= THRESHOLDS.regular_step_spread:
        return Diagnostic("sampling", "ok", f"regular at {clock.rate:.5g} Hz")
    return Diagnostic("sampling", "ok", f"about {clock.rate:.4g} Hz, {steps}; signals will be resampled")


def diagnose_wraps(survey: Survey) -> Diagnostic:
    """Whether positions jump by whole turns, as loggers that keep angles within a turn write them."""
    if not survey.wraps:
        return Diagnostic("wraps", "ok", "no position jumps by a turn")
    counts = ", ".join(f"{name} {count} times" for name, count in survey.wraps.items())
    words = f"positions jump by whole turns (2 pi): {counts}"
    return Diagnostic("wraps", "warn", f"{words}; the jumps are taken back")


def diagnose_gaps(survey: Survey) -> Diagnostic:
    """Whether the log has gaps, across which nothing can be filtered."""
    clock = survey.clock
    if not clock.n_gaps:
        return Diagnostic("gaps", "ok", "none")
    count = "1 gap" if clock.n_gaps == 1 else f"{clock.n_gaps} gaps"
    where = ", ".join(f"{time:.6g}" for time in clock.gap_times[:5]) + (", .." if clock.n_gaps > 5 else "")
    words = f"{count} (longest {clock.longest:.4g} s, {clock.gap_seconds:.4g} s in all) after {where} s"
    longest = max(survey.stretches, default=0)
    if longest < 2 * SIGNALS.min_stretch_samples:
        remedy = f"stretches of at most {longest:.0f} samples are too short to be filtered; log without pauses"
        return Diagnostic("gaps", "stop", f"{words}; {remedy}")
    return Diagnostic("gaps", "warn", f"{words}; the stretches between are used one by one, and lose their ends")


def diagnose_repeats(survey: Survey) -> Diagnostic:
    """Whether rows repeat: a logger faster than the controller, or one that hangs."""
    n, repeats = survey.clock.n_samples, survey.repeats
    share = repeats.n_short / n
    if repeats.n_long and repeats.jump > THRESHOLDS.hung_logger_jump:
        words = f"rows stay the same for up to {repeats.longest + 1} samples and then jump ({repeats.n_long} rows)"
        return Diagnostic("repeats", "warn", f"{words}; the logger hung: cut these stretches out, or log again")
    if share > THRESHOLDS.max_repeated_share:
        words = f"{percent(share)} of the rows repeat the one before"
        return Diagnostic("repeats", "warn", f"{words}; they are dropped: log at the rate of the controller")
    equal = survey.clock.n_equal_stamps / n
    if equal > THRESHOLDS.max_repeated_share:
        words = f"{percent(equal)} of the rows have the stamp of the one before"
        return Diagnostic("repeats", "warn", f"{words}; only the first of each is used: log finer stamps")
    if survey.stalled:
        words = "positions repeat while the joint moves, then jump"
        counts = ", ".join(f"{name} {count} readings" for name, count in survey.stalled.items())
        severity: Severity = "warn" if max(survey.stalled.values()) > THRESHOLDS.max_repeated_share * n else "ok"
        return Diagnostic("repeats", severity, f"{words} ({counts}); lines replace them: read every sample fresh")
    parts = [f"{percent(share)} of the rows repeat the one before and are dropped"] if share else []
    if repeats.n_long:
        parts.append(f"{repeats.n_long} rows repeat in runs of more than {SIGNALS.max_stutter_rows}, and are kept")
    return Diagnostic("repeats", "ok", "; ".join(parts) or "no row repeats")
