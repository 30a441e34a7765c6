"""Which band, where the positions show no noise: several are tried, and blocks of the data left out decide.

Every band is judged by the torque it predicts in one common band, the lowest of them: in its own band the lowest always
wins. Of bands that predict alike the lowest is taken, since too much band costs far more than too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import InputError
from dynident.estimate.estimators import ESTIMATORS
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import RegressorBlock
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.information.solution import dense_channels, residual_square
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.options import Progress
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.log_survey import shared_evidence
from dynident.signals.observations import Observations, choose_band
from dynident.signals.rows import ObservedRows, row_blocks
from dynident.signals.thresholds import THRESHOLDS as SIGNALS


@on_one_thread
def choose_bands(
    observations: Sequence[Observations], base: BaseParameters, progress: Progress | None = None
) -> list[Observations]:
    """The logs with the band that all of them ask for together, and that their torque prefers.

    Args:
        observations: Training logs.
        base: Base parameters to fit: the links with basic friction.
        progress: Called on the way.
    """
    if len(observations) > 1:
        first = observations[0]
        shared = shared_evidence([one.survey for one in observations], first.robot.radians, first.options.rest_speed)
        observations = [choose_band(one, own) for one, own in zip(observations, shared, strict=True)]
    waiting = {one.log.label for one in observations if one.options.band is None and len(one.choice.candidates) > 1}
    if not waiting:
        return list(observations)
    report = progress or (lambda what, done, total: None)
    most = max(len(one.choice.candidates) for one in observations if one.log.label in waiting)
    common = {one.log.label: one.choice.candidates[0] if one.log.label in waiting else one.band for one in observations}
    errors = []
    for number in range(most):
        report("choosing the band", number, most)
        trial = tuple(_with_candidate(one, number) if one.log.label in waiting else one for one in observations)
        errors.append(_left_out(_Parts(trial, base, seconds=THRESHOLDS.selection_s), common))
    report("choosing the band", most, most)
    found = np.array(errors)  # (n_candidates, n_blocks)
    if not np.isfinite(found).all(1).any():
        return list(observations)  # too short to leave anything out
    place = lowest_within_a_standard_error(found)
    return [_decide_band(one, place, found.mean(1)) if one.log.label in waiting else one for one in observations]


def band_notes(observations: Sequence[Observations]) -> list[str]:
    """The bands of some logs and why they are that, in words."""
    reasons: dict[str, list[float]] = {}
    for one in observations:
        reasons.setdefault(one.choice.reason, []).append(one.band)
    return [
        f"band {' to '.join(dict.fromkeys(f'{band:.3g}' for band in (min(bands), max(bands))))} Hz: {reason}"
        for reason, bands in reasons.items()
    ]


def lowest_within_a_standard_error(errors: Array) -> int:
    """The first candidate whose mean error exceeds the least by no more than the standard error of that difference.

    Args:
        errors: (n_candidates, n_blocks); infinite where a candidate could not be tried.
    """
    best = int(np.argmin(errors.mean(1)))
    for number, own in enumerate(errors):
        worse = own - errors[best]
        if np.isfinite(own).all() and worse.mean() <= worse.std(ddof=1) / np.sqrt(len(worse)):
            return number
    return best


def _with_candidate(one: Observations, number: int) -> Observations:
    candidates = one.choice.candidates
    return one.with_options(band=candidates[min(number, len(candidates) - 1)])


def _decide_band(one: Observations, place: int, errors: Array) -> Observations:
    """The log with its chosen band; the options still say that nobody asked for it."""
    candidates = one.choice.candidates
    band = candidates[min(place, len(candidates) - 1)]
    tried = ", ".join(
        f"{candidate:.3g} Hz {100.0 * error:.3g} %" for candidate, error in zip(candidates, errors, strict=False)
    )
    reason = f"{one.choice.reason.split(';')[0]}; the lowest that predicts blocks left out as well as any: {tried}"
    return one.decided(replace(one.choice, band=band, reason=reason, errors=tuple(float(x) for x in errors)))


@dataclass(frozen=True, eq=False)
class _Parts(ObservedRows):
    """Rows in parts of their logs, the same for every band.

    The label of a segment is three times the number of its part, plus one for rows within the filters' reach of the
    part before, or two of the part behind.
    """

    def blocks(self) -> Iterator[RegressorBlock]:
        """All rows."""
        for one in self.observations:
            band = one.band if self.bands is None else self.bands[one.log.label]
            length = max(min(one.survey.duration, self.seconds), 1e-12)
            reach = 0.5 * SIGNALS.filter_end_periods / band / length * THRESHOLDS.band_blocks
            for block in row_blocks(one, self.regressor, band=band):
                place = (block.time - one.survey.start) / length * THRESHOLDS.band_blocks
                if place[0] >= THRESHOLDS.band_blocks:
                    break
                part = np.clip(place.astype(int), 0, THRESHOLDS.band_blocks - 1)
                number = 3 * part + np.where(place - part < reach, 1, np.where(part + 1 - place < reach, 2, 0))
                for own in block.segments(number):
                    yield replace(own, log=str(own.segment), segment=0)


def _left_out(rows: _Parts, common: Mapping[str, float]) -> Array:
    """Relative error of each part when it is left out, in the common bands; infinite where it cannot be judged."""
    try:
        own = accumulate_source(rows)
        same = all(one.band == common[one.log.label] for one in rows.observations)
        judge = own if same else accumulate_source(replace(rows, bands=common))
    except InputError:  # no stretch is long enough for this band
        return np.full(THRESHOLDS.band_blocks, np.inf)
    return np.array([_error(own, judge, part) for part in range(THRESHOLDS.band_blocks)])


def _error(own: Information, judge: Information, part: int) -> float:
    touching = (*range(3 * part, 3 * part + 3), 3 * (part + 1) + 1, 3 * (part - 1) + 2)
    kept = [i for i, segment in enumerate(own.segments) if int(segment.label) not in touching]
    judged = [i for i, segment in enumerate(judge.segments) if int(segment.label) // 3 == part]
    if not kept or not judged:
        return np.inf
    fitted = ESTIMATORS["weighted"]().set_params(rank_tolerance=INFORMATION.noisy_rank).fit(own.select(kept))
    channels, _ = dense_channels(judge.select(judged))
    torque = sum(float(np.sum(rows[:, -1] ** 2)) for rows in channels)
    left = sum(residual_square(rows, fitted.values_) for rows in channels)
    return float(np.sqrt(left / max(torque, 1e-300)))
