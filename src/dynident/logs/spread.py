"""Joints that are spread over several publishers, merged by name onto the stamps of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.logs.joints import QUANTITIES
from dynident.logs.log import LogError
from dynident.logs.publishers import Block, Key, Publisher

_ACROSS = 2.5  # steps between two messages that a line may join: one of them was lost, and stamps jitter
_SLOWER = 1.5  # times the step of the fullest publisher, from which another is a slower one


@dataclass(frozen=True)
class Share:
    """What a publisher contributes.

    Attributes:
        publisher: The publisher.
        names: The joints that are taken from it.
        block: All its messages.
    """

    publisher: Publisher
    names: tuple[str, ...]
    block: Block

    def __str__(self) -> str:
        return f"{', '.join(self.names)} (topic {self.publisher.topic})"


def spread_joints(found: Sequence[Publisher], chosen: Publisher, wanted: Sequence[str]) -> dict[Key, tuple[str, ...]]:
    """Which joints to take from which publisher: all that the chosen one knows, and wanted ones that it does not.

    A joint that several others know is taken from the one that tells about it most often.
    """
    taken = {chosen.key: chosen.names}
    for joint in wanted:
        able = [one for one in found if joint in one.names]
        if joint not in chosen.names and able:
            best = max(able, key=lambda one: one.count)
            if joint not in taken.get(best.key, ()):
                taken[best.key] = (*taken.get(best.key, ()), joint)
    return taken


def merged(source: str, shares: Sequence[Share]) -> tuple[list[str], list[Array], str]:
    """Headers and columns of several publishers on one time base, and a sentence about what was done.

    The time base is that of the first, or of a slower one if there is any, as nothing is known between its messages.
    Values of the others are interpolated; stamps for which one of them has no messages around are left out.

    Args:
        source: The bag, for messages.
        shares: What to merge, the fullest first.

    Raises:
        LogError: If a publisher's time runs backwards, or the publishers were not recorded at the same time.
    """
    clock = 0 if all(share.publisher.stamped for share in shares) else 1  # one for all: two clocks may differ
    stamps = [share.block.stamps[clock] for share in shares]
    steps = [_step(source, share, own) for share, own in zip(shares, stamps, strict=True)]
    first = next((i for i, step in enumerate(steps) if step >= max(steps) / _SLOWER))
    base, usable = stamps[first], np.ones(len(stamps[first]), dtype=bool)
    own: dict[str, Array] = {}
    for i, share in enumerate(shares):
        where = None if i == first else _Between(base, stamps[i], steps[i])
        usable &= True if where is None else where.usable
        own.update(_columns(share, where))
    if np.count_nonzero(usable) < 2:
        listed = " and ".join(map(str, shares))
        raise LogError(source, f"{listed} were not recorded at the same time; record a bag in which they are")
    columns = {header: values[usable] for header, values in own.items()}
    kept = base[usable]
    missing = len(base) - len(kept)
    lost = f"; {missing} of its {len(base)} stamps, without a message of the others, are left out" if missing else ""
    words = f"{source}: merged {' with '.join(map(str, shares))} at the stamps of {shares[first].names[0]}"
    told = f" ({1e9 / steps[first]:.4g} Hz)"
    return ["t", *columns], [(kept - kept[0]) / 1e9, *columns.values()], words + told + lost


def _step(source: str, share: Share, stamps: NDArray[np.int64]) -> float:
    """Median step of a publisher [ns]; infinite for a single message."""
    steps = np.diff(stamps)
    if (steps < 0).any():
        place = int(np.argmax(steps < 0)) + 2
        raise LogError(source, f"time of {share} runs backwards at its message {place}; sort or split the bag")
    return float(np.median(steps[steps > 0])) if (steps > 0).any() else np.inf


class _Between:
    """Where stamps lie between the messages of a publisher.

    Args:
        base: Stamps, (n,) [ns].
        stamps: Of the messages, (m,) [ns], in order.
        step: Usual step between messages [ns].
    """

    def __init__(self, base: NDArray[np.int64], stamps: NDArray[np.int64], step: float) -> None:
        after = np.searchsorted(stamps, base)
        self.left, self.right = np.maximum(after - 1, 0), np.minimum(after, len(stamps) - 1)
        before, behind = base - stamps[self.left], stamps[self.right] - base
        span = (stamps[self.right] - stamps[self.left]).astype(np.float64)
        inside = (span > 0.0) & (span <= _ACROSS * step)
        # A message at the stamp itself is taken as it is, whatever stands before it.
        line = np.divide(before, span, out=np.zeros(len(base)), where=inside)
        self.share = np.where(behind == 0, 1.0, line)  # (n,) of the message behind
        self.usable = inside | (behind == 0)

    def __call__(self, values: Array) -> Array:
        """Values of the messages, (m, n_joints), at the stamps, (n, n_joints)."""
        share = self.share[:, None]
        between = (1.0 - share) * values[self.left] + share * values[self.right]
        return np.where(share == 1.0, values[self.right], between)


def _columns(share: Share, where: _Between | None) -> dict[str, Array]:
    """The columns of the joints that are taken from a publisher, by header."""
    places = [share.publisher.names.index(name) for name in share.names]
    result: dict[str, Array] = {}
    for quantity, told, own in zip(QUANTITIES, share.publisher.told, share.block.values, strict=True):
        if told and own is not None:
            values = own[:, places] if where is None else where(own[:, places])
            result.update({f"{name}.{quantity}": values[:, i] for i, name in enumerate(share.names)})
    return result
