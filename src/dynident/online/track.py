"""The rows so far, from old to new: a part that forgets, a recent part, stretches, and the stretch in the making."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.information.absorb import absorb
from dynident.online.memory import Forgetting, Stretch, make_room, together
from dynident.online.rows import absorber

RECENT_SHARE = 0.25  # of the memory


class Track:
    """Everything the rows say about the unknowns.

    Args:
        k: Unknowns.
        n_cross: Base parameters beside them, 0 where they are the unknowns.
        slab: (k + 1, padded n_joints) that single instants come in.
        forgetting: How the old part forgets.
        per_stretch: Instants of motion in a stretch.
        in_ring: Instants that are kept in stretches of their own, for the detection of changes.
        seconds: Time of motion that an instant stands for [s].

    Attributes:
        old: What forgets.
        recent: What comes next. It makes room for itself when it is a good part of the memory long: a second of motion
            shows but a few directions, and what one stretch does not show is not forgotten for it.
        ring: The last stretches, oldest first.
        now: The stretch in the making.
    """

    def __init__(
        self,
        k: int,
        n_cross: int,
        slab: Array,
        forgetting: Forgetting,
        per_stretch: int,
        in_ring: int,
        seconds: float,
    ) -> None:
        self.k, self.n_cross = k, n_cross
        self.forgetting, self.per_stretch, self.in_ring, self.seconds = forgetting, per_stretch, in_ring, seconds
        self.old, self.recent, self.now = (Stretch(k, n_cross) for _ in range(3))
        self.ring: deque[Stretch] = deque()
        self._absorb = absorber(self.now.R, slab)

    def take(self, time: float, beside: Array | None, slab: Array, n_rows: int) -> bool:
        """The instant in the slab; True when that completes a stretch.

        Args:
            time: Its time [s].
            beside: (n_base + 1, padded n_joints) the same rows over base parameters, or None.
            slab: The rows over the unknowns; destroyed.
            n_rows: Rows in it.
        """
        now = self.now
        if beside is not None:
            now.cross += slab[:-1] @ beside[:-1].T
        self._absorb()
        now.rows += n_rows
        now.instants += 1
        now.start, now.stop = min(now.start, time), time
        return now.instants >= self.per_stretch

    def take_many(self, time: Array, beside: Array | None, slab: Array, n_rows: Array) -> None:
        """Instants of one stretch at once: slab (k + 1, n, n_joints); they must fit the stretch in the making."""
        now = self.now
        flat = slab.reshape(len(slab), -1)
        if beside is not None:
            now.cross += flat[:-1] @ beside.reshape(len(beside), -1)[:-1].T
        absorb(now.R, np.array(flat, order="C"))
        now.rows += float(n_rows.sum())
        now.instants += len(time)
        now.start, now.stop = min(now.start, float(time[0])), float(time[-1])

    @property
    def room(self) -> int:
        """Instants that the stretch in the making still takes."""
        return self.per_stretch - self.now.instants

    def close(self, alike: float = 1.0) -> None:
        """The stretch in the making is complete: into the ring, and what is old enough into the old part.

        Args:
            alike: Rows that weigh as much as one independent row, as it is known now.
        """
        if not self.now.instants:
            return
        self.now.alike = alike
        self.ring.append(self.now.copy())
        self.now.clear()
        held = sum(part.instants for part in self.ring)
        while self.ring and held - self.ring[0].instants >= self.in_ring:
            part = self.ring.popleft()
            held -= part.instants
            self.recent.add(part)
        if self.recent.instants * self.seconds >= self.forgetting.memory * RECENT_SHARE:
            make_room(self.old, self.recent, self.forgetting, self.recent.instants * self.seconds)
            self.old.add(self.recent)
            self.recent.clear()

    @property
    def instants(self) -> int:
        """Instants of all rows."""
        return sum(part.instants for part in (self.old, self.recent, *self.ring, self.now))

    def cut(self, place: int) -> None:
        """Drop all but the ring, and of the ring the first stretches."""
        self.old.clear()
        self.recent.clear()
        for _ in range(place):
            self.ring.popleft()

    def drop(self, time: float) -> int:
        """Drop the stretches that begin before some time, where nothing older is kept; how many [s]."""
        place = 0 if self.old.instants or self.recent.instants else sum(part.start < time for part in self.ring)
        for _ in range(place):
            self.ring.popleft()
        return place

    def before_ring(self) -> Stretch:
        """All rows that are older than the ring, without cross products."""
        return together([self.old, self.recent], self.k)

    def whole(self, cross: bool = True) -> Stretch:
        """All rows, with their cross products if these are wanted."""
        parts = [self.old, self.recent, *self.ring, self.now]
        return together(parts, self.k, self.n_cross if cross else 0)

    @property
    def _parts(self) -> dict[str, Stretch]:
        own = {"old": self.old, "recent": self.recent, "now": self.now}
        return own | {f"ring{i}": part for i, part in enumerate(self.ring)}

    def as_arrays(self) -> dict[str, Any]:
        """Plain arrays, for checkpoints."""
        found: dict[str, Any] = {}
        for name, part in self._parts.items():
            found |= {f"{name}.{key}": value for key, value in part.as_arrays().items()}
        return found

    def restore(self, arrays: dict[str, Any]) -> None:
        """Continue from what `as_arrays` gave."""
        count = sum(name.startswith("ring") and name.endswith(".R") for name in arrays)
        self.ring = deque(Stretch(self.k, self.n_cross) for _ in range(count))
        for name, part in self._parts.items():
            part.restore({key: arrays[f"{name}.{key}"] for key in ("R", "cross", "counts")})
