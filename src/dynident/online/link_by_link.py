r"""Links one after the other, from the tip to the base, while the robot works (Khosla & Kanade 1987, section 3.2).

The torque of a joint depends on what the joints beyond it have identified already, c, and on combinations theta that it
identifies itself. Its rows are rotated into a triangle over its own columns alone,

.. math:: R_\theta\,\theta + R_c\,c = z, \quad \hat\theta = R_\theta^{-1} (z - R_c \hat c), \quad
    \operatorname{cov}\hat\theta = \sigma_j^2 (R_\theta^T R_\theta)^{-1} + S \operatorname{cov}(\hat c)\, S^T, \quad
    S = -R_\theta^{-1} R_c

and what is left of them, which says something about links beyond, is dropped: that is what makes the recursion cheap,
and less exact than the joint estimator. Which combinations a joint identifies follows from the robot alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask, gather_arrays, on_one_thread, restore_parts
from dynident.dynamics.terms import along_terms
from dynident.errors import InputError
from dynident.estimate.sequential_estimation import from_tip_to_base
from dynident.estimate.stages import KnownCombinations, NewCombinations
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import nonzero_entries
from dynident.identifiability.states import random_states
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.online.changes import Change
from dynident.online.filters import CausalFilter, FilteredMotion
from dynident.online.history import OnlineSolution
from dynident.online.monitor import ErrorMonitor
from dynident.online.options import OnlineOptions
from dynident.online.payload import PayloadState, Unknowns
from dynident.online.prior import Prior
from dynident.online.rows import RowMaker, SeriesStructure
from dynident.online.thresholds import THRESHOLDS

_RANK = 1e-9  # of what a joint identifies by structure: exact numbers, so that only rounding is below it


@dataclass(frozen=True)
class Link:
    """What one joint's torque identifies.

    Attributes:
        output: Place of the joint.
        own: (n, n_own) from its combinations to base parameters.
        beyond: (n, n_beyond) the same from all that joints beyond identify.
        new: Its combinations.
    """

    output: int
    own: Array
    beyond: Array
    new: NewCombinations

    @property
    def chart(self) -> Array:
        """(n, n_own + n_beyond) both."""
        return np.hstack([self.own, self.beyond])


def links_of(base: BaseParameters) -> tuple[Link, ...]:
    """The joints of a robot from the tip to the base, and what the torque of each adds."""
    W = base.regressor(*random_states(base.robot, 6 * base.n + 20))
    present = nonzero_entries(base.robot, base.terms, base.independent)
    names = base.robot.joint_names
    counts = {name: sum(row == output for row, _ in present) for output, name in enumerate(names)}
    known, found = KnownCombinations.nothing(base.n), []
    for output in map(names.index, from_tip_to_base(base.robot, counts)):
        new = known.new_combinations(W[:, output], _RANK)
        beyond, own = known.chart(new)
        found.append(Link(output, own, beyond, new))
        m, r = len(new.pivots), len(known.pivots)
        known = known.joined(new, np.zeros(m), np.zeros((m, m)), np.zeros((m, r)), np.ones(m, dtype=bool))
    return tuple(found)


def update_operations(eliminated: int, width: int, rows: int) -> int:
    """Additions and multiplications that rotate rows into a triangle by Householder reflections.

    Args:
        eliminated: Columns of the triangle.
        width: Columns of the rows, those of the triangle first.
        rows: Rows that are absorbed at once.
    """
    reflector, applied = 2 * (rows + 1) + 3, 4 * (rows + 1)
    return sum(reflector + applied * (width - 1 - i) for i in range(eliminated))


def arithmetic(base: BaseParameters) -> dict[str, int]:
    """Operations of an update by one instant in which all joints move, link by link and jointly."""
    joints = len(base.robot.joint_names)
    each = (
        update_operations(link.own.shape[1], link.chart.shape[1] + 1, 1) + _forming(link.chart)
        for link in links_of(base)
    )
    return {"link by link": sum(each), "jointly": update_operations(base.n + 1, base.n + 1, joints)}


def _forming(chart: Array) -> int:
    """Operations that make a row over combinations from one over base parameters."""
    places = np.count_nonzero(chart)
    return int(2 * (places - np.count_nonzero(np.count_nonzero(chart, axis=0))))


class LinkRows:
    """Rows of some motion, joint by joint.

    Attributes:
        factors: Of each link (n_own, n_own + n_beyond + 1), the torque last.
        counts: (n_links,) rows behind each; not whole after forgetting.
        instants: Instants of motion in it.
    """

    def __init__(self, links: tuple[Link, ...]) -> None:
        self.factors = [np.zeros((link.own.shape[1], link.chart.shape[1] + 1)) for link in links]
        self.counts = np.zeros(len(links))
        self.instants = 0

    @property
    def rows(self) -> float:
        """Equations of all joints."""
        return float(self.counts.sum())

    def add(self, other: LinkRows) -> None:
        """The rows of other motion as well."""
        for place, rows in enumerate(other.factors):
            self.rotate(place, rows)
        self.counts += other.counts
        self.instants += other.instants

    @on_one_thread
    def rotate(self, place: int, rows: Array) -> None:
        """Rotate rows (m, width) into the triangle of a link, over its own columns; what is left is dropped."""
        factor = self.factors[place]
        own = len(factor)
        if own and rows.any():
            stacked = np.vstack([factor, rows])
            factor[:] = np.linalg.qr(stacked[:, :own])[0].T @ stacked

    @on_one_thread
    def make_room(self, new: LinkRows, forgetting: str, share: float) -> None:
        """Let old information go before new comes, see `history.make_room`."""
        if forgetting == "none" or not self.instants:
            return
        for factor, fresh in zip(self.factors, new.factors, strict=True):
            own = len(factor)
            upper = factor[:, :own]
            known = own and np.abs(np.diag(upper)).min() > 1e-12 * np.abs(upper).max()
            if forgetting == "exponential":
                factor *= np.sqrt(share)
            elif known:
                relative = np.linalg.solve(upper.T, fresh[:, :own].T)
                gain, V = np.linalg.eigh(relative @ relative.T)
                keep = np.sqrt(1.0 - np.minimum(1.0 - share, np.maximum(gain, 0.0)))
                turned = keep[:, None] * (V.T @ factor)
                factor[:] = np.linalg.qr(turned[:, :own])[0].T @ turned
        self.counts *= share

    def clear(self) -> None:
        """Forget everything."""
        for factor in self.factors:
            factor[:] = 0.0
        self.counts[:], self.instants = 0.0, 0

    def as_arrays(self) -> dict[str, Array]:
        """Plain arrays, for checkpoints."""
        own = {f"factor{i}": factor.copy() for i, factor in enumerate(self.factors)}
        return own | {"counts": self.counts.copy(), "instants": np.array(self.instants)}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from what `as_arrays` gave."""
        for i, factor in enumerate(self.factors):
            factor[:] = arrays[f"factor{i}"]
        self.counts[:], self.instants = arrays["counts"], int(arrays["instants"])


class LinkHistory:
    """The rows so far: a part that forgets, and a recent one that makes room for itself."""

    def __init__(self, links: tuple[Link, ...], forgetting: str, memory: float, seconds: float) -> None:
        self.links, self.forgetting, self.memory, self.seconds = links, forgetting, memory, seconds
        self.old, self.recent = LinkRows(links), LinkRows(links)

    def close(self) -> None:
        """A stretch is complete: what is recent for long enough becomes old."""
        lasted = self.recent.instants * self.seconds
        if lasted >= self.memory * THRESHOLDS.recent_share:
            self.old.make_room(self.recent, self.forgetting, float(np.exp(-lasted / self.memory)))
            self.old.add(self.recent)
            self.recent.clear()

    def whole(self, cross: bool = True) -> LinkRows:
        """All rows."""
        found = LinkRows(self.links)
        found.add(self.old)
        found.add(self.recent)
        return found


class LinkEngine:
    """Everything that counts in instants of motion, link by link; takes the place of `Engine`.

    Args:
        known: The model; nothing may be known beforehand.
        unknowns: The base parameters.
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
        seconds = box * filters.sample_time
        n = len(known.base.robot.joint_names)
        reach = filters.reach + 0.5 * seconds if options.rest_velocity else 0.0
        self.known, self.options, self.lean = known, options, unknowns.lean
        self.maker = RowMaker(known, None, options.rest_velocity, structure, box, reach)
        self.links = links_of(known.base)
        self._charts = [link.chart for link in self.links]
        self.history = LinkHistory(self.links, options.forgetting, options.memory, seconds)
        self.monitor = ErrorMonitor(n, THRESHOLDS.error_seconds / seconds)
        self.moved = np.zeros(n, dtype=bool)
        self.values, self.time = np.zeros(known.base.n), -np.inf
        self._per_stretch = max(1, round(options.stretch_seconds(False) / seconds))
        self._in_stretch, self._useful = 0, False
        # The last rows (n + 1, n_instants, n_joints), zero for joints at rest, by whose residuals noise is measured.
        self._kept: deque[Array] = deque()
        self._most_kept = max(1, round(THRESHOLDS.error_seconds / seconds))

    def without_filters(self) -> None:
        """Motion comes as it is."""
        self.maker.reach = 0.0

    def changes_with(self, payload: PayloadState | None) -> tuple[Change, ...]:
        """No changes are looked for."""
        return ()

    def take(self, time: float, q: Array, dq: Array, ddq: Array, tau: Array) -> bool:
        """One instant of motion, (n_joints,) each; True when it completed a stretch."""
        self.time = time
        if not self.maker.add(time, q, dq, ddq, tau):
            return False
        moving: Mask = self.maker.moving.copy()
        self.moved |= moving
        made = self.maker.rows()
        if made is None:
            return False
        self._absorb(made[0][:, None, : len(q)], moving[None])
        return self._stretch(1)

    def take_many(self, motion: FilteredMotion) -> None:
        """Many instants: the same as one after the other."""
        box, n = self.maker.box, len(motion.time)
        head = min(-self.maker.count % box, n)
        whole = (n - head) // box * box
        self._one_by_one(motion, range(head))
        if whole:
            parts = (motion.time, motion.q, motion.dq, motion.ddq, motion.tau)
            moving, slab, _, _ = self.maker.many(FilteredMotion(*(x[head : head + whole] for x in parts)))
            self.moved |= moving.any(0)
            kept, place = moving[moving.any(1)], 0
            while place < slab.shape[1]:
                own = slice(place, place + self._per_stretch - self._in_stretch)
                self._absorb(slab[:, own], kept[own])
                self._stretch(len(kept[own]))
                place = own.stop
        self._one_by_one(motion, range(head + whole, n))
        self.time = float(motion.time[-1]) if n else self.time

    def _one_by_one(self, motion: FilteredMotion, which: range) -> None:
        for i in which:
            self.take(float(motion.time[i]), motion.q[i], motion.dq[i], motion.ddq[i], motion.tau[i])

    def _absorb(self, slab: Array, moving: Mask) -> None:
        """Rows (n + 1, n_instants, n_joints) of joints that moved, (n_instants, n_joints)."""
        if self._useful:
            errors = (slab[-1] - np.tensordot(self.values, slab[:-1], 1)) * moving
            self.monitor.see_many(errors, slab[-1] * moving)
        self._keep(slab * moving)
        recent = self.history.recent
        for place, (link, chart) in enumerate(zip(self.links, self._charts, strict=True)):
            used = moving[:, link.output]
            rows = slab[:, used, link.output].T
            recent.rotate(place, np.hstack([rows[:, :-1] @ chart, rows[:, -1:]]))
            recent.counts[place] += len(rows)
        recent.instants += len(moving)

    def _keep(self, slab: Array) -> None:
        """Keep rows, and drop those that are too old."""
        self._kept.append(slab)
        over = sum(own.shape[1] for own in self._kept) - self._most_kept
        while over > 0:
            first = self._kept.popleft()
            if first.shape[1] > over:
                self._kept.appendleft(first[:, over:])
            over -= first.shape[1]

    def _stretch(self, instants: int) -> bool:
        """Instants were added; True when they completed a stretch: forget, solve for what errors are measured with."""
        self._in_stretch += instants
        if self._in_stretch < self._per_stretch:
            return False
        self._in_stretch = 0
        self.history.close()
        whole = self.history.whole()
        if whole.rows >= THRESHOLDS.rows_per_unknown * self.known.base.n:
            self.values, self._useful = self._solve(whole)[0], True
        return True

    def latest(self) -> Array | None:
        """(n,) values by all rows so far, or None before any."""
        whole = self.history.whole()
        return self._solve(whole)[0] if whole.instants else None

    def solve(self, part: LinkRows) -> OnlineSolution:
        """The base parameters by some rows, with their covariance."""
        variances, inflation = self._noise(self._solve(part)[0], part)
        beta, covariance, determined = self._solve(part, variances * inflation)
        n, rank = self.known.base.n, int(determined.sum())
        opened = np.eye(n)[:, ~determined]
        covariance = np.where(np.outer(determined, determined), covariance, 0.0)
        nothing = np.zeros((n, n))
        return OnlineSolution(beta, nothing, covariance, covariance, determined, rank, 1.0, opened, np.ones(n))

    def _noise(self, values: Array, part: LinkRows) -> tuple[Array, float]:
        """Variance of a row of each joint, (n_joints,), by residuals of the last rows; and how alike neighbors are.

        Errors that were made when values were still settling say nothing about the noise.
        """
        n = self.monitor.n
        if not self._kept:
            return np.full(n, np.inf), 1.0
        rows = np.concatenate(self._kept, axis=1)
        residual = rows[-1] - np.tensordot(values, rows[:-1], 1)
        counts = np.any(rows != 0.0, axis=0).sum(0)
        own = np.zeros(n)
        own[[link.output for link in self.links]] = [len(f) / max(c, 1.0) for f, c in self._each(part)]
        freedom = counts * np.maximum(1.0 - own, 1.0 / np.maximum(counts, 1))
        variance = np.sum(residual**2, axis=0) / np.maximum(freedom, 1e-300)
        seen = ErrorMonitor(n, np.inf)
        seen.see_many(residual / np.sqrt(np.maximum(variance, 1e-300)), rows[-1])
        return np.where(counts > 0, variance, np.inf), seen.inflation

    def _each(self, part: LinkRows) -> list[tuple[Array, float]]:
        return list(zip(part.factors, part.counts.tolist(), strict=True))

    @on_one_thread
    def _solve(self, part: LinkRows, noise: Array | None = None) -> tuple[Array, Array, Mask]:
        """Base values, their covariance for a variance (n_joints,) of each joint's rows, and which are determined."""
        n = self.known.base.n
        variances = np.ones(self.monitor.n) if noise is None else noise
        known, sure = KnownCombinations.nothing(n), np.zeros(n, dtype=bool)  # by pivot
        for link, factor in zip(self.links, part.factors, strict=True):
            own, pivots = len(factor), list(link.new.pivots)
            if not own:
                continue
            size = np.linalg.norm(factor[:, :own], axis=0)
            size = np.where(size > 0.0, size, 1.0)
            u, singular, vt = np.linalg.svd(factor[:, :own] / size)
            kept = singular > INFORMATION.noisy_rank * max(float(singular[0]), 1e-300)
            inverse = (vt[kept].T / singular[kept]) @ u[:, kept].T / size[:, None]
            S = -inverse @ factor[:, own:-1]
            theta = inverse @ factor[:, -1] + S @ known.values
            # Determined by its own rows, and not by way of a combination beyond that is not.
            determined = np.sqrt(np.sum(vt[~kept] ** 2, axis=0)) < INFORMATION.undetermined_part
            determined &= np.isfinite(variances[link.output])
            unsure = [k for k, pivot in enumerate(known.pivots) if not sure[pivot]]
            sure[pivots] = determined & ~(S[:, unsure] != 0.0).any(axis=1)
            # Combinations beyond of which a part is identified here are taken apart.
            taken = known.G[:, pivots] != 0.0
            for pivot, parts in zip(known.pivots, taken, strict=True):
                sure[pivot] &= bool(sure[np.array(pivots)[parts]].all())
            spread = variances[link.output] if determined.any() else 0.0
            known = known.joined(link.new, theta, spread * inverse @ inverse.T, S, np.ones(own, dtype=bool))
        beta, covariance = known.base_values()
        return beta, covariance, known.determined & sure

    def as_arrays(self) -> dict[str, Any]:
        """All that changes, as plain arrays."""
        n = self.monitor.n
        own: dict[str, Any] = {
            "values": self.values.copy(),
            "moved": self.moved.copy(),
            "monitor": self.monitor.as_array(),
            "counts": np.array([self.time, self._in_stretch, self._useful]),
            "kept": np.concatenate([np.zeros((len(self.values) + 1, 0, n)), *self._kept], axis=1),
            "kept_lengths": np.array([own.shape[1] for own in self._kept], dtype=int),
        }
        return own | gather_arrays(self._parts)

    @property
    def _parts(self) -> dict[str, Any]:
        return {"old": self.history.old, "recent": self.history.recent, "box": self.maker}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        self.values, self.moved = np.array(arrays["values"]), np.array(arrays["moved"], dtype=bool)
        self.monitor.restore(arrays["monitor"])
        time, inside, useful = arrays["counts"].tolist()
        self.time, self._in_stretch, self._useful = float(time), int(inside), bool(useful)
        ends = np.cumsum(arrays["kept_lengths"], dtype=int)[:-1]
        parts = np.split(np.array(arrays["kept"]), ends, axis=1) if len(arrays["kept_lengths"]) else []
        self._kept = deque(parts)
        restore_parts(self._parts, arrays)


def check_link_by_link(known: Prior, options: OnlineOptions) -> None:
    """Refuse what the recursion cannot do.

    Raises:
        InputError: Saying what to do instead.
    """
    if options.payload:
        raise InputError(
            "estimator link-by-link is for a robot's parameters; a payload beside known links is found by the joint "
            "estimator"
        )
    for name, given in (("a prior", known.anything), ("floor", options.floor), ("project", options.project)):
        if given:
            raise InputError(f"estimator link-by-link takes no {name.removeprefix('a ')}; leave it out, or use joint")
    if options.detect:
        raise InputError("estimator link-by-link looks for no changes; leave detect out, or use joint")
    if along_terms(known.base.terms):
        raise InputError("estimator link-by-link takes terms that are functions of the state: rigid, Ia, Fv, Fc, Fo")
