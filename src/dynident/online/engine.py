"""The engine behind `OnlineIdentifier`: motion in, rows into the history, changes found, values solved again."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, gather_arrays, restore_parts
from dynident.dynamics.terms import along_terms
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.online.changes import KINDS, Change, alike_before, detect_change, kind_of
from dynident.online.filters import CausalFilter, FilteredMotion
from dynident.online.history import (
    OnlineSolution,
    RowHistory,
    StretchOfRows,
    StretchRows,
    merge_stretches,
    quick_values,
    raise_to_floor,
    row_variance,
    solve_stretch,
)
from dynident.online.instants import RecentRows, Response, at_once, possible_instants
from dynident.online.monitor import ErrorMonitor
from dynident.online.options import OnlineOptions
from dynident.online.payload import MASS, PAYLOAD_UNKNOWNS, PayloadState, Unknowns, with_robot
from dynident.online.prior import Prior
from dynident.online.rows import FollowedColumns, RowMaker, SeriesStructure
from dynident.online.thresholds import THRESHOLDS


class Engine:
    """Everything that counts in instants of motion.

    Args:
        known: The model and what is known about it.
        unknowns: What is estimated.
        structure: Where the torque comes from.
        options: All options.
        filters: What made the motion.
        box: Instants that make one row of each joint.
    """

    def __init__(
        self,
        known: Prior,
        unknowns: Unknowns,
        structure: SeriesStructure,
        options: OnlineOptions,
        filters: CausalFilter,
        box: int,
    ) -> None:
        sample_time = filters.sample_time
        seconds = box * sample_time
        n = len(known.base.robot.joint_names)
        self.known, self.options, self.payload = known, options, unknowns.payload
        followed = FollowedColumns(known, sample_time) if along_terms(known.base.terms) else None
        reach = filters.reach + 0.5 * seconds if options.rest_velocity else 0.0
        self.maker = RowMaker(known, unknowns.chart, options.rest_velocity, structure, box, reach, followed)
        self.lean = unknowns.lean
        self.detect = self.payload if options.detect is None else options.detect
        per = max(1, round(options.stretch_seconds(self.payload) / seconds))
        self._window = round(options.window / seconds)
        ring = round(THRESHOLDS.ring_windows * self._window) if self.detect else 0
        n_cross = known.base.n if self.payload else 0
        self.history = RowHistory(
            self.maker.k, n_cross, self.maker.slab, options.forgetting, options.memory, per, ring, seconds
        )
        self.monitor = ErrorMonitor(n, THRESHOLDS.error_seconds / seconds)
        # Errors over the memory, by which rows of a payload are weighted; None where weights are fixed.
        learnt = self.payload and self.detect and not known.weights_given
        self._levels = ErrorMonitor(n, options.memory / seconds) if learnt else None
        self._weights = np.ones(n)
        # Rows of the stretches in the ring and of the one in the making, until their weights are known.
        self._early: deque[StretchOfRows] | None = deque([StretchOfRows()]) if learnt else None
        self._weighed_by = -np.inf  # time up to which errors gave the first weights [s]
        self._monitors = [one for one in (self.monitor, self._levels) if one is not None]
        self.moved = np.zeros(n, dtype=bool)
        self.changes: list[Change] = []
        self.values = unknowns.start.copy()
        # Whether errors of the values say nothing: those of a payload that is gone, or zeros that nobody has estimated;
        # and whether they are still those of unfinished values.
        self._outdated = self._settling = self.payload or not known.anything
        self._monitored: deque[Array] = deque()  # errors as they stood at the end of each stretch of the ring
        # How the filters spread a step of the torque, and how far to either side [s].
        self._response: Response = filters.step_response
        self._reach, self._sample_time = filters.delay_seconds, sample_time
        self._offsets = np.arange(box) * np.float64(-sample_time)  # of the instants of a box against its end [s]
        self._recent: RecentRows | None = None  # from which the instant of a change is found, and
        self._before = np.zeros(0)  # (k,) the unknowns before the last one; empty without any
        if self.detect and self.payload:
            self._recent = RecentRows(self.history.k, n, ring + self._window)
        self.time = -np.inf  # of the last instant, at rest or not

    def without_filters(self) -> None:
        """Motion comes as it is: nothing spreads a change."""
        self._response, self._reach, self.maker.reach = at_once, 0.0, 0.0

    def changes_with(self, payload: PayloadState | None) -> tuple[Change, ...]:
        """The changes so far; the mass after one that is provisional is the mass now."""
        if payload is None or not self.provisional:
            return tuple(self.changes)
        now = replace(self.changes[-1], mass_after=payload.mass, mass_after_std=payload.mass_std)
        return (*self.changes[:-1], now)

    def take(self, time: float, q: Array, dq: Array, ddq: Array, tau: Array) -> bool:
        """One instant of motion, (n_joints,) each; True when it completed a stretch."""
        self.time = time
        if not self.maker.add(time, q, dq, ddq, tau):
            return False
        self.moved |= self.maker.moving
        made = self.maker.rows()
        if made is None:  # at rest nothing is learnt and nothing forgotten
            return self._close_at_rest()
        slab, beside, count = made
        n = len(q)
        if self._early is not None:
            self._early[-1].add(slab[:, None, :n], beside[:, None, :n])
        elif self._levels is not None:
            slab[:, :n] *= self._weights
            beside[:, :n] *= self._weights
        if self._recent is not None:
            self._recent.add(np.array([time]), slab[:, None, :n])
        if not self._outdated:
            error = slab[-1, :n] - self.values @ slab[:-1, :n]
            for monitor in self._monitors:
                monitor.see(error, beside[-1, :n])
        if self.history.take(time, None if beside is slab else beside, slab, count):
            self._complete()
            return True
        return False

    def take_many(self, motion: FilteredMotion) -> None:
        """Many instants: the same as one after the other."""
        box, n = self.maker.box, len(motion.time)
        head = min(-self.maker.count % box, n)
        tail = (n - head) % box
        self._one_by_one(motion, range(head))
        if n - tail > head:
            parts = (motion.time, motion.q, motion.dq, motion.ddq, motion.tau)
            self._boxes(FilteredMotion(*(x[head : n - tail] for x in parts)))
        self._one_by_one(motion, range(n - tail, n) if n - tail >= head else range(0))

    def _one_by_one(self, motion: FilteredMotion, which: range) -> None:
        for i in which:
            self.take(float(motion.time[i]), motion.q[i], motion.dq[i], motion.ddq[i], motion.tau[i])

    def _boxes(self, motion: FilteredMotion) -> None:
        """Instants that fill whole boxes."""
        moving, slab, beside, counts = self.maker.many(motion)
        stamps = motion.time[self.maker.box - 1 :: self.maker.box]
        self.moved |= moving.any(0)
        place = 0
        for run, rest in _runs(np.any(moving, axis=1)):
            start = run.start
            while start < run.stop:
                size = min(self.history.room, run.stop - start)
                own = slice(place, place + size)
                self.time = float(stamps[start + size - 1])
                mine = None if slab is beside else beside[:, own]
                self._stretch(stamps[start : start + size], slab[:, own], mine, counts[own])
                start, place = start + size, place + size
            if rest:
                self._close_at_rest()
        self.time = float(motion.time[-1])

    def _stretch(self, time: Array, slab: Array, beside: Array | None, counts: Array) -> None:
        """Instants that fit the stretch in the making."""
        if beside is not None and self._early is not None:
            self._early[-1].add(slab, beside)
        elif beside is not None and self._levels is not None:
            slab, beside = slab * self._weights, beside * self._weights
        torque = slab[-1] if beside is None else beside[-1]
        if self._recent is not None:
            self._recent.add(time, slab)
        if not self._outdated:
            errors = slab[-1] - np.tensordot(self.values, slab[:-1], 1)
            for monitor in self._monitors:
                monitor.see_many(errors, torque)
        self.history.take_many(time, beside, slab, counts)
        if self.history.room == 0:
            self._complete()

    def _close_at_rest(self) -> bool:
        """A payload is picked at rest: rows before and after belong to different stretches."""
        if not self.history.now.instants:
            return False
        self._complete()
        return True

    def _complete(self) -> None:
        """A stretch is complete: forget, look for a change, and solve for what errors are measured with."""
        history = self.history
        if self._early is not None and history.now.instants:
            self._early.append(StretchOfRows())
        # Errors of values that nobody has estimated, or that are not finished, are alike as the torque itself is.
        unknown = self._outdated or self._settling
        history.close(THRESHOLDS.most_inflation if unknown else self.monitor.inflation)
        if self.detect:
            self._monitored.append(np.array([one.as_array() for one in self._monitors]))
            while len(self._monitored) > len(history.ring):
                self._monitored.popleft()
            self._look_for_change()
            while self._early is not None and len(self._early) > len(history.ring) + 1:
                self._early.popleft()
            if self._early is None or self._early[-1].empty:
                self._weigh()
            if self.provisional and history.instants >= self._window:
                self._settle_change(history.whole())
        if self.options.floor and history.old.instants:
            floor = self.options.floor * np.abs(self.values)
            raise_to_floor(history.old, floor, row_variance(history.old, history.k) * self.monitor.inflation)
        whole = history.whole(cross=False)
        if (
            whole.rows >= THRESHOLDS.rows_per_unknown * history.k
        ):  # errors of values that hardly stand on anything would say nothing
            found = quick_values(whole, self.lean, self.monitor.inflation)
            if found is None and self.payload:  # an arm that never shows all ten numbers of a payload
                found = solve_stretch(whole, self.lean, self.monitor.inflation, INFORMATION.noisy_rank).values
            if found is not None:
                self.values, self._outdated = found, False
                self._settle(row_variance(whole, history.k))

    def _weigh(self) -> None:
        """Weigh rows by the errors of each joint in this very stream.

        The known robot's residuals are those of other rows: without payload, in a narrower band, and away from more
        of each reversal. When the ring is full for the first time, all rows so far are weighted again; from then on
        those to come.
        """
        ring, first = self.history.ring, self._early is not None
        if self._levels is None or not ring:
            return
        if first and sum(part.instants for part in ring) + self.history.per_stretch < self.history.in_ring:
            return
        # Errors count that are older than changes which can still be noticed: those of a payload that is gone would
        # widen the joints that show it best. The first time, older than the window in which most are noticed.
        place = 0
        if first:
            place, held = len(ring) - 1, 0
            while place > 0 and held < self._window:
                held += ring[place].instants
                place -= 1
        elif ring[0].stop < self._weighed_by:
            return
        seen = ErrorMonitor(self._levels.n, 1.0)
        seen.restore(self._monitored[place][-1])
        scale = seen.typical(THRESHOLDS.prior_weight_rows)
        if self._early is not None:
            self._weighed_by = ring[place].stop
            self.history.weigh_ring([rows.all() for rows in self._early], 1.0 / scale)
            if self._recent is not None:
                self._recent.weigh(1.0 / scale)
            self._early = None
        self._rescale(scale)

    def _rescale(self, scale: Array) -> None:
        self._weights = 1.0 / scale
        for monitor in self._monitors:
            monitor.rescale(scale)

    def _settle(self, variance: float) -> None:
        """Let errors of values that began at nothing fade, until they are as small as the residuals of all rows.

        They are a hundred times those that follow and as alike as the torque itself, and would widen standard
        deviations for most of a minute.
        """
        if not self._settling:
            return
        seen = self.monitor.mean_square
        if seen > THRESHOLDS.settled_variances * variance:
            for monitor in self._monitors:
                monitor.fade(THRESHOLDS.unsettled_share)
        elif seen > 0.0:
            self._settling = False

    def latest(self) -> Array | None:
        """(k,) values by all rows so far, or None while they are not determined."""
        return quick_values(self.history.whole(cross=False), self.lean, self.monitor.inflation)

    def _look_for_change(self) -> None:
        history, least = self.history, self.options.least_mass
        old, ring = history.before_ring(), list(history.ring)
        n_tested = PAYLOAD_UNKNOWNS if self.payload else history.k
        found = detect_change(old, ring, self._window, n_tested)
        if found is None:
            return
        statistic, first, last = found
        parts = [history.old, history.recent, *ring[:first]]
        before, after = merge_stretches(parts, history.k, history.n_cross), merge_stretches(ring[last:], history.k)
        alike = alike_before(old, ring)
        had, has = self._mass(before, alike), self._mass(after, alike)
        doubt = float(np.hypot(had[1], has[1]))
        if self.payload and not abs(has[0] - had[0]) > max(THRESHOLDS.mass_significant * doubt, least):
            return
        if len(self._before):  # all rows of the payload that is gone are known now
            self._settle_change(before, alike)
        span = self._span(old, ring, first, last)
        self.changes.append(self._record_change(before, after, alike, span, statistic))
        # The filters smear the change over a few instants that neither payload explains: one more stretch is dropped.
        history.cut(min(last + 1, len(ring)))
        for monitor, before in zip(self._monitors, self._monitored[0], strict=True):
            monitor.restore(before)  # errors since were those of values that did not hold any more
        self._monitored = deque([self._monitored[0]] * len(self._monitored))
        for part in history.ring:
            part.alike = self.monitor.inflation
        self._outdated = True

    def _mass(self, part: StretchRows, alike: float) -> tuple[float, float]:
        """Mass of the payload by some rows, and what their noise makes of its standard deviation.

        Zeros where no payload was asked for. The error of the known robot is the same before and after a change.
        """
        if not self.payload:
            return 0.0, 0.0
        found = solve_stretch(part, self.lean, alike, INFORMATION.noisy_rank)
        return float(found.values[MASS]), float(found.std[MASS]) if found.determined[MASS] else np.inf

    def _span(self, old: StretchRows, ring: list[StretchRows], first: int, last: int) -> tuple[float, float]:
        """Earliest and latest time of a change: a stretch goes with the payload that most of it shows [s]."""
        box, stretch = self.maker.box * self._sample_time, self.history.per_stretch * self.history.seconds
        earliest = ring[0].start - box
        if first:
            earliest = ring[first - 1].start - box
        elif old.instants:
            earliest = old.stop - stretch
        return earliest - self._reach, ring[last].stop + self._reach

    def _record_change(
        self, before: StretchRows, after: StretchRows, alike: float, span: tuple[float, float], F: float
    ) -> Change:
        """The record of a change when it is noticed."""
        had, has = self._mass(before, alike), self._mass(after, alike)
        kind, middle = kind_of(had, has, self.options.least_mass), 0.5 * (span[0] + span[1])
        if not self.payload:
            return Change(span[1], span[0], float(self.time), 0.0, 0.0, kind, F, middle, 0.0, 0.0)
        known = self.solve(before, alike)
        self._before = known.values
        std = float(known.std[MASS]) if known.determined[MASS] else np.inf
        return Change(span[1], span[0], float(self.time), had[0], has[0], kind, F, middle, std, has[1], True)

    @property
    def provisional(self) -> bool:
        """Whether the last change is to be refined."""
        return bool(self.changes) and self.changes[-1].provisional

    def solve(self, part: StretchRows, alike: float | None = None) -> OnlineSolution:
        """The unknowns by some rows; beside a payload with what the known robot's own uncertainty adds.

        Seconds show how alike neighboring errors are, not what comes back time and again: that makes errors of a
        payload alike by as much more as it did when the robot was identified.
        """
        alike = self.monitor.inflation if alike is None else alike
        if not self.payload:
            return solve_stretch(part, self.lean, alike)
        found = solve_stretch(part, self.lean, alike * self.known.long_range, INFORMATION.noisy_rank)
        return replace(found, covariance=with_robot(found, part.cross, self.known))

    def _settle_change(self, part: StretchRows, ended: float | None = None) -> None:
        """Refine the last change: its instant, and the mass after it.

        Args:
            part: The rows since.
            ended: Rows that weigh as much as one independent row, where another change has ended them; None where they
                go on.
        """
        assert self._recent is not None
        alike = self.monitor.inflation if ended is None else ended
        last, found = self.changes[-1], self.solve(part, alike)
        if not found.determined[MASS]:
            return
        stretch = self.history.per_stretch * self.history.seconds
        span, variance = (last.before - stretch, last.time + stretch), found.variance * alike
        values = (self._before, found.values)
        seen = None
        # Both payloads are taken as exact there: values that hardly stand on anything would place the change anywhere.
        if abs(float(found.values[MASS]) - last.mass_before) > THRESHOLDS.mass_well_known * found.std[MASS]:
            seen = possible_instants(self._recent, values, span, variance, self._response, self._offsets)
        if seen is not None:
            last = replace(last, instant=seen[0], before=seen[1], time=seen[2])
            if ended is None and self.history.drop(seen[2] + self._reach + self.maker.box * self._sample_time):
                found = self.solve(self.history.whole())
        mass, std = float(found.values[MASS]), float(found.std[MASS])
        self.changes[-1] = replace(last, mass_after=mass, mass_after_std=std, provisional=False)

    def as_arrays(self) -> dict[str, Any]:
        """All that changes, as plain arrays."""
        changes = [[*(getattr(one, name) for name in _NUMBERS), KINDS.index(one.kind)] for one in self.changes]
        refined = [[getattr(one, name) for name in _REFINED] for one in self.changes]
        own = {
            "values": self.values.copy(),
            "moved": self.moved.copy(),
            "watch": self.monitor.as_array(),
            "time": np.array(self.time),
            "outdated": np.array(self._outdated),
            "settling": np.array(self._settling),
            "changes": np.array(changes, dtype=np.float64).reshape(len(changes), len(_NUMBERS) + 1),
            "refined": np.array(refined, dtype=np.float64).reshape(len(refined), len(_REFINED)),
            "watched": np.array(self._monitored),
            "before": self._before.copy(),
            "scale": self.monitor.scale.copy(),
            "weighed_by": np.array(self._weighed_by),
        }
        if self._levels is not None:
            own["levels"] = self._levels.as_array()
        for i, rows in enumerate(self._early or ()):
            own[f"early{i}.slab"], own[f"early{i}.beside"] = rows.all()
        return own | gather_arrays({"recent": self._recent, "box": self.maker, "track": self.history})

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self.values, self.moved = np.array(arrays["values"]), np.array(arrays["moved"], dtype=bool)
        self.monitor.restore(arrays["watch"])
        self.time, self._outdated = float(arrays["time"]), bool(arrays["outdated"])
        self._settling = bool(arrays["settling"])
        self.changes = _changes(arrays["changes"], arrays.get("refined"))
        self._monitored = deque(np.array(one) for one in arrays.get("watched", ()))
        self._before = np.array(arrays.get("before", np.zeros(0)))
        self._rescale(np.array(arrays.get("scale", np.ones(self.monitor.n))))
        self._weighed_by = float(arrays.get("weighed_by", -np.inf))
        if self._levels is not None:
            self._levels.restore(arrays["levels"])
        count = sum(name.startswith("early") and name.endswith(".slab") for name in arrays)
        early = (_early(arrays[f"early{i}.slab"], arrays[f"early{i}.beside"]) for i in range(count))
        self._early = deque(early) if count else None
        recent = self._recent if "recent.time" in arrays else None  # checkpoints of earlier versions have none
        restore_parts({"recent": recent, "box": self.maker, "track": self.history}, arrays)


_NUMBERS = ("time", "before", "found", "mass_before", "mass_after", "evidence")
_REFINED = ("instant", "mass_before_std", "mass_after_std", "provisional")


def _early(slab: Array, beside: Array) -> StretchOfRows:
    return StretchOfRows((slab, beside)) if slab.shape[1] else StretchOfRows()


def _changes(numbers: Array, refined: Array | None) -> list[Change]:
    """Changes from a checkpoint; those of earlier versions do not know what was refined."""
    found = []
    for place, (time, before, noticed, *masses, evidence, kind) in enumerate(numbers.tolist()):
        change = Change(time, before, noticed, masses[0], masses[1], KINDS[int(kind)], evidence)
        if refined is not None:
            instant, had, has, provisional = refined[place].tolist()
            change = replace(
                change, instant=instant, mass_before_std=had, mass_after_std=has, provisional=provisional > 0
            )
        found.append(change)
    return found


def _runs(kept: Mask) -> list[tuple[slice, bool]]:
    """Runs of instants that are kept, and whether rest follows each; an empty run where rest comes first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(np.int8), [0]])))
    found = [(slice(int(a), int(b)), bool(b < len(kept))) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    if len(kept) and not kept[0]:
        found.insert(0, (slice(0, 0), True))
    return found
