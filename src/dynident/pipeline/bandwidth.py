"""Which band: what positions say about it is confirmed, or decided, by torque on blocks of the held-out data.

Every band is evaluated by the torque it predicts in one common band, the lowest of them: in its own band the lowest
always wins. Of bands that predict alike the lowest is taken, since too much band costs far more than too little.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread
from dynident.errors import InputError
from dynident.estimate.evidence import EmpiricalPrior, basic_groups, fit_evidence
from dynident.estimate.records import percent
from dynident.estimate.thresholds import THRESHOLDS as ESTIMATE
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import RegressorBlock
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.information.solution import dense_channels, residual_square
from dynident.options import Progress
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.signals.log_survey import shared_evidence
from dynident.signals.observations import Observations, choose_band, widest_band
from dynident.signals.rows import MOST_VELOCITIES, MOVING, PREDICTION, ObservedRows, row_blocks
from dynident.signals.thresholds import THRESHOLDS as SIGNALS

_LEAST_COMMON = 3  # blocks that candidates are compared on, where one more of a candidate may be without rows


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
    if len(observations) > 1 and observations[0].options.band is None:
        first = observations[0]
        shared = shared_evidence([one.survey for one in observations], first.robot.radians, first.options.rest_velocity)
        observations = [choose_band(one, own) for one, own in zip(observations, shared, strict=True)]
    observations = [_narrower_if_terms_cancel(one) for one in observations]
    return _by_torque(observations, base, progress or _quiet)


def _narrower_if_terms_cancel(one: Observations) -> Observations:
    """The log with narrower candidates where a joint moves that is hardly driven.

    The torque of such a joint is a small difference of large terms: noise that is a small share of the acceleration is
    none of the torque, and how much it matters only torque can say.
    """
    if one.options.band is not None or one.choice.candidates:
        return one
    squares, moves, count = np.zeros(len(one.robot.joint_names)), one.survey.highest - one.survey.lowest, 0
    for block in one.motion():
        squares, count = squares + (block.tau[0] ** 2).sum(0), count + len(block)
        if count >= MOST_VELOCITIES:
            break
    moving = moves > SIGNALS.standstill_rad * one.robot.radians
    if not (moving & (squares <= ESTIMATE.least_drive**2 * squares.max(initial=0.0))).any():
        return one
    found = one.survey.evidence
    tried = {max(factor * found.typical, found.floor) for factor in SIGNALS.band_factors}
    candidates = (*sorted(band for band in tried if 0.0 < band < one.band), one.band)
    return one.decided(replace(one.choice, candidates=candidates)) if len(candidates) > 1 else one


@on_one_thread
def try_other_bands(
    observations: Sequence[Observations], base: BaseParameters, progress: Progress | None = None
) -> list[Observations]:
    """The logs of a model that turned out useless, with a narrower or wider band where torque clearly prefers that.

    Args:
        observations: Training logs, with the bands that did not do.
        base: Base parameters to fit: the links with basic friction.
        progress: Called on the way.
    """
    factors, waiting = THRESHOLDS.other_bands, {one.log.label for one in observations}
    others = []
    for one in observations:
        bands = tuple(min(one.band * factor, widest_band(one.survey, one.options.decimation)) for factor in factors)
        others.append(one.decided(replace(one.choice, candidates=bands)))
    errors = _try_candidates(others, waiting, base, progress or _quiet, every=True)
    few = np.isfinite(errors).sum(1).max() <= THRESHOLDS.band_blocks // 2
    if few or not exceed_the_least(errors)[factors.index(1.0)]:
        return list(observations)
    return [_decide_band(one, errors) for one in others]


def _by_torque(observations: Sequence[Observations], base: BaseParameters, report: Progress) -> list[Observations]:
    """The logs with the lowest of their candidates that predicts held-out blocks as well as any."""
    waiting = {one.log.label for one in observations if one.options.band is None and len(one.choice.candidates) > 1}
    errors = _try_candidates(observations, waiting, base, report) if waiting else np.full((1, 1), np.inf)
    if not np.isfinite(errors).any():
        return list(observations)  # too short to leave anything out
    return [_decide_band(one, errors) if one.log.label in waiting else one for one in observations]


def _try_candidates(
    observations: Sequence[Observations],
    waiting: Container[str],
    base: BaseParameters,
    report: Progress,
    every: bool = False,
) -> Array:
    """Errors of the candidates of some logs on held-out blocks, (n_candidates, n_blocks); the others keep their band.

    Unless every one is asked for, wider ones are not tried once one of them is worse than the best so far: noise and
    the work both grow with the band. Joints that move are evaluated, where any is faster than the rest velocity.
    """
    own = [one for one in observations if one.log.label in waiting]
    most = max(len(one.choice.candidates) for one in own)
    common = {one.log.label: one.band for one in observations}
    common |= {one.log.label: one.choice.candidates[0] for one in own}
    for rule in (MOVING, PREDICTION):
        errors = np.zeros((0, THRESHOLDS.band_blocks))
        for number in range(most):
            report("choosing the band", number, most)
            trial = tuple(_with_candidate(one, number) if one.log.label in waiting else one for one in observations)
            rows = _Parts(trial, base, seconds=THRESHOLDS.selection_s, rule=rule)
            errors = np.vstack([errors, _left_out(rows, common)])
            if not every and np.isfinite(errors).any() and exceed_the_least(errors)[-1]:
                break
        if np.isfinite(errors).any():
            break
    report("choosing the band", most, most)
    return errors


def _quiet(what: str, done: int, total: int) -> None:
    """No progress is shown."""


def band_notes(observations: Sequence[Observations]) -> list[str]:
    """The bands of some logs and why they are that, in words."""
    reasons: dict[str, list[float]] = {}
    for one in observations:
        reasons.setdefault(one.choice.reason, []).append(one.band)
    return [
        f"band {' to '.join(dict.fromkeys(f'{band:.3g}' for band in (min(bands), max(bands))))} Hz: {reason}"
        for reason, bands in reasons.items()
    ]


def stall_notes(observations: Sequence[Observations]) -> list[str]:
    """Which positions stalled while their joints moved, in words."""
    notes = []
    for one in observations:
        counts = ", ".join(f"{name} {count}" for name, count in one.survey.stalled.items())
        if counts:
            notes.append(f"{one.log.label}: readings that stalled while the joint moved are now on lines: {counts}")
    return notes


def wrap_notes(observations: Sequence[Observations]) -> list[str]:
    """Which positions jumped by whole turns, in words."""
    notes = []
    for one in observations:
        counts = ", ".join(f"{name} {count}" for name, count in one.survey.wraps.items())
        if counts:
            notes.append(f"{one.log.label}: jumps of positions by whole turns (2 pi) are taken back: {counts}")
    return notes


def saturation_notes(observations: Sequence[Observations]) -> list[str]:
    """Which torques are left out at the ends of their range, in words."""
    notes = []
    for one in observations:
        parts = [f"{name} ({percent(one.survey.channels[name].saturated_share)})" for name in one.saturating]
        if parts:
            notes.append(
                f"{one.log.label}: samples of torque at the ends of its range are left out: {', '.join(parts)}"
            )
    return notes


def exceed_the_least(errors: Array) -> Mask:
    """Which candidates exceed the one with the least error by more than the standard error of the difference.

    Errors are compared by their logarithms: with seconds of data a single block may be off by any factor.

    Args:
        errors: (n_candidates, n_blocks); infinite where a candidate or a block could not be assessed.
    """
    evaluated = np.isfinite(errors).sum(1)
    # A candidate that leaves blocks without rows is none, but one block: a joint may rest there, seen through a wider
    # band, and errors of other blocks are compared alike.
    tried = evaluated >= max(int(evaluated.max()) - 1, 1)
    if np.isfinite(errors[tried]).all(0).sum() < _LEAST_COMMON:
        tried = evaluated == evaluated.max()
    common = np.isfinite(errors[tried]).all(0)
    exceeds: Mask = ~tried
    if not common.any():
        return exceeds
    logs = np.log(np.maximum(errors[tried][:, common], 1e-300))
    best = int(np.argmin(logs.mean(1)))
    worse = logs - logs[best]
    uncertain = worse.std(1) / np.sqrt(max(worse.shape[1] - 1, 1))
    exceeds[tried] = worse.mean(1) > uncertain
    return exceeds


def _with_candidate(one: Observations, number: int) -> Observations:
    candidates = one.choice.candidates
    return one.with_options(band=candidates[min(number, len(candidates) - 1)])


def _decide_band(one: Observations, errors: Array) -> Observations:
    """The log with the lowest candidate that does as well as any; its options still say that nobody asked for it."""
    candidates = one.choice.candidates
    band = candidates[min(int(np.argmin(exceed_the_least(errors))), len(candidates) - 1)]
    means = tuple(float(np.mean(own[np.isfinite(own)])) if np.isfinite(own).any() else np.inf for own in errors)
    tried = ", ".join(f"{own:.3g} Hz {100.0 * error:.3g} %" for own, error in zip(candidates, means, strict=False))
    reason = f"{one.choice.reason.split(';')[0]}; the lowest that predicts held-out blocks as well as any: {tried}"
    return one.decided(replace(one.choice, band=band, reason=reason, errors=means))


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
            for block in row_blocks(one, self.regressor, band=band, rule=self.rule):
                place = (block.time - one.survey.start) / length * THRESHOLDS.band_blocks
                if place[0] >= THRESHOLDS.band_blocks:
                    break
                part = np.clip(place.astype(int), 0, THRESHOLDS.band_blocks - 1)
                number = 3 * part + np.where(place - part < reach, 1, np.where(part + 1 - place < reach, 2, 0))
                for own in block.segments(number):
                    yield replace(own, log=str(own.segment), segment=0)


def _left_out(rows: _Parts, common: Mapping[str, float]) -> Array:
    """Relative error of each part when it is left out, in the common bands; infinite where it cannot be assessed."""
    try:
        own = accumulate_source(rows)
        same = all(one.band == common[one.log.label] for one in rows.observations)
        common_information = own if same else accumulate_source(replace(rows, bands=common))
    except InputError:  # no stretch is long enough for this band
        return np.full(THRESHOLDS.band_blocks, np.inf)
    square = sum(float(np.sum(rows[:, -1] ** 2)) for rows in dense_channels(common_information)[0])
    typical = square / max(common_information.n_rows, 1.0)
    prior, _ = fit_evidence(*dense_channels(own), basic_groups(rows.base))
    return np.array([_error(own, common_information, part, typical, prior) for part in range(THRESHOLDS.band_blocks)])


def _error(
    own: Information, common_information: Information, part: int, typical: float, prior: EmpiricalPrior
) -> float:
    """Error of a part that was held out over the typical torque of all rows: a part may have none at all."""
    touching = (*range(3 * part, 3 * part + 3), 3 * (part + 1) + 1, 3 * (part - 1) + 2)
    kept = [i for i, segment in enumerate(own.segments) if int(segment.label) not in touching]
    evaluated = [i for i, segment in enumerate(common_information.segments) if int(segment.label) // 3 == part]
    if not kept or not evaluated:
        return np.inf
    triangle = prior.compress(dense_channels(own.select(kept))[0])
    values = prior.solve([triangle], own.coordinates.n).values
    channels, n_rows = dense_channels(common_information.select(evaluated))
    left = sum(residual_square(rows, values) for rows in channels)
    return float(np.sqrt(left / max(typical * float(n_rows.sum()), 1e-300)))
