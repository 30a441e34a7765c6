"""`preview`: what is in a log, without a robot and without refusing anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dynident.arrays import ReadOnlyDict
from dynident.display import brief
from dynident.logs.columns import KINDS, kind_of, number_of
from dynident.logs.log import LogSource
from dynident.signals.clock import TIME_UNITS
from dynident.signals.log_survey import Survey, survey_log


@dataclass(frozen=True)
class ChannelPreview:
    """One channel; values in its unit.

    Attributes:
        name: Such as q1.
        header: Name of its column in the file.
        unit: In SI.
        lowest: Smallest value; None if no value is a number.
        highest: Largest value.
        rms: Root of the mean square.
        step: Smallest difference between neighbors that differ: at most what the signal was rounded to.
        repeated: Share of values that equal the one before.
        constant: Whether it never changes.
        faults: Values that are NaN or infinite.
        fault_row: Row of the first of them, counted from 1; None without any.
    """

    name: str
    header: str
    unit: str
    lowest: float | None
    highest: float | None
    rms: float | None
    step: float
    repeated: float
    constant: bool
    faults: int
    fault_row: int | None


@brief
@dataclass(frozen=True)
class Preview:
    """What is in a log; times in seconds, rows counted from 1.

    Attributes:
        source: File it came from.
        samples: Rows.
        start: Smallest stamp; None if no stamp is a number.
        duration: From the smallest stamp to the largest.
        rate: Median sampling rate [Hz].
        step: Median step.
        shortest_step: Smallest step forward.
        longest_step: Largest step.
        step_spread: Standard deviation of the steps that are no gaps, over their mean.
        gaps: Steps that are gaps.
        longest_gap: The longest of them, 0 without any.
        gap_times: Where the first ten begin.
        repeated_rows: Rows whose values all equal those of the row before.
        equal_stamps: Rows with the stamp of the row before.
        out_of_order: Rows whose stamp is before that of the row before.
        first_out_of_order: Row of the first of them; None without any.
        time_unit: Unit in which the stamps make sense, where that is not the one they were read in; else empty.
        channels: Every channel but time.
        kinds: Joints by kind: {"q": (1, 2, 3), ..}.
        unused: Columns that mean nothing to dynident.
        time_faults: Stamps that are NaN or infinite.
    """

    source: str
    samples: int
    start: float | None
    duration: float | None
    rate: float | None
    step: float | None
    shortest_step: float | None
    longest_step: float | None
    step_spread: float | None
    gaps: int
    longest_gap: float
    gap_times: tuple[float, ...]
    repeated_rows: int
    equal_stamps: int
    out_of_order: int
    first_out_of_order: int | None
    time_unit: str
    channels: tuple[ChannelPreview, ...]
    kinds: Mapping[str, tuple[int, ...]]
    unused: tuple[str, ...]
    time_faults: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain = asdict(self)
        plain["gap_times"], plain["unused"] = list(self.gap_times), list(self.unused)
        plain["channels"] = [asdict(channel) for channel in self.channels]
        plain["kinds"] = {kind: list(joints) for kind, joints in self.kinds.items()}
        return plain


def preview(log: LogSource, *, survey: Survey | None = None) -> Preview:
    """What is in a log, from one pass over it.

    NaN, infinite numbers and time that runs backwards are counted, not refused.

    Args:
        log: The log; open it with `stream_log`, since `read_log` refuses what is to be seen here.
        survey: Of this log, where there is one already.

    Raises:
        LogError: If a row cannot be read at all.
    """
    survey = survey or survey_log(log)
    survey.require_readable()
    clock = survey.clock
    return Preview(
        source=log.source,
        samples=clock.n_samples,
        start=_finite_or_none(clock.first),
        duration=_finite_or_none(clock.duration),
        rate=_finite_or_none(clock.rate),
        step=_finite_or_none(clock.step),
        shortest_step=_finite_or_none(clock.shortest),
        longest_step=_finite_or_none(clock.longest),
        step_spread=_finite_or_none(clock.spread),
        gaps=clock.n_gaps,
        longest_gap=clock.longest if clock.n_gaps else 0.0,
        gap_times=clock.gap_times,
        repeated_rows=survey.repeats.n_repeated,
        equal_stamps=clock.n_equal_stamps,
        out_of_order=clock.n_backward_steps,
        first_out_of_order=None if clock.first_backward_step is None else clock.first_backward_step[0],
        time_unit=clock.unit if clock.unit in TIME_UNITS else "",
        channels=tuple(_channel(survey, name) for name in survey.raw.names[1:]),
        kinds=ReadOnlyDict(_kinds(survey.raw.names[1:])),
        unused=survey.raw.unused,
        time_faults=survey.channels["t"].n_faults,
    )


def _channel(survey: Survey, name: str) -> ChannelPreview:
    values = survey.channels[name]
    return ChannelPreview(
        name=name,
        header=survey.raw.origins[name].header,
        unit=survey.raw.unit(name),
        lowest=_finite_or_none(values.lowest),
        highest=_finite_or_none(values.highest),
        rms=_finite_or_none(values.rms),
        step=values.step,
        repeated=values.repeated_share,
        constant=values.constant,
        faults=values.n_faults,
        fault_row=None if values.first_fault is None else values.first_fault[0],
    )


def _kinds(names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Joints by kind, in the order in which kinds are explained."""
    found = {kind: tuple(sorted(number_of(name) for name in names if kind_of(name) == kind)) for kind in KINDS}
    return {kind: joints for kind, joints in found.items() if joints}


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
