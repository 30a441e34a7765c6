"""`Publisher`: the joint states of one topic about one set of joints, as columns keyed by joint name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.logs.columns import QUANTITIES
from dynident.logs.joint_state import Layout, Message, Rows, layout_of
from dynident.logs.log import LogError

Key = tuple[str, frozenset[str]]  # topic and joints
_MOST_LAYOUTS = 16  # of one topic and length; beyond, messages are decoded one by one


@dataclass(frozen=True)
class Block:
    """Successive messages of a publisher.

    Attributes:
        stamps: Of the header and of the recorder, (2, n_messages) [ns].
        values: Position, velocity and effort, (n_messages, n_joints) each; None for those that are absent.
    """

    stamps: NDArray[np.int64]
    values: tuple[Array | None, ...]

    @property
    def n_bytes(self) -> int:
        """Of its numbers."""
        return self.stamps.nbytes + sum(own.nbytes for own in self.values if own is not None)


@dataclass
class Publisher:
    """What is known of the messages of one topic about one set of joints; the messages themselves are in blocks.

    Attributes:
        topic: The topic.
        names: The joints, in the order of the first message.
        count: Number of messages.
        first: Stamps of the first message, by its header and by the recorder [ns].
        stamped: Whether every header has a time; a publisher that does not stamp its messages leaves zeros.
        told: Whether there is any position, velocity and effort.
    """

    topic: str
    names: tuple[str, ...]
    count: int = 0
    first: tuple[int, int] = (0, 0)
    stamped: bool = True
    told: list[bool] = field(default_factory=lambda: [False] * len(QUANTITIES))

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.topic, frozenset(self.names)

    @property
    def headers(self) -> list[str]:
        """Names of its columns: t, then `NAME.position` and so on for what it tells."""
        told = [quantity for quantity, known in zip(QUANTITIES, self.told, strict=True) if known]
        return ["t", *(f"{name}.{quantity}" for quantity in told for name in self.names)]

    def note(self, block: Block) -> None:
        """Count the next messages."""
        if self.count == 0:
            self.first = int(block.stamps[0, 0]), int(block.stamps[1, 0])
        self.count += block.stamps.shape[1]
        self.stamped = self.stamped and bool(block.stamps[0].all())
        for i, own in enumerate(block.values):
            self.told[i] = self.told[i] or (own is not None and not np.isnan(own).all())

    def columns(self, block: Block, places: Sequence[int]) -> Array:
        """The columns at these places of `headers`, (n_places, n_messages); t [s] counts from the first message."""
        told = [i for i, known in enumerate(self.told) if known]
        clock = 0 if self.stamped else 1
        result = np.full((len(places), block.stamps.shape[1]), np.nan)
        for row, place in zip(result, places, strict=True):
            if place == 0:
                row[:] = (block.stamps[clock] - self.first[clock]) / 1e9
                continue
            quantity, joint = divmod(place - 1, len(self.names))
            own = block.values[told[quantity]]
            if own is not None:
                row[:] = own[:, joint]
        return result


class Sorter:
    """Joint states by topic and set of joints, decoded many at a time.

    Attributes:
        found: The publishers so far, in the order of their first messages.
    """

    def __init__(self) -> None:
        self.found: dict[Key, Publisher] = {}
        self._layouts: defaultdict[tuple[str, int], list[Layout]] = defaultdict(list)
        self._count = 0

    def feed(self, messages: Sequence[Message]) -> dict[Key, Block]:
        """Decode the next messages: what each publisher said in them. Messages that name no joint are left out.

        Raises:
            InputError: For a message that cannot be decoded.
        """
        alike: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for place, (topic, _, data) in enumerate(messages):
            alike[topic, len(data)].append(place)
        pieces: list[_Piece] = []
        faults: list[_Fault] = []
        for (topic, size), places in alike.items():
            try:
                pieces.extend(self._pieces(messages, topic, size, places))
            except _FaultError as error:
                faults.append(error.args[0])
        if faults:
            place, topic, words = min(faults)
            raise InputError(f"joint state {self._count + place + 1} (topic {topic}) {words}")
        self._count += len(messages)
        return self._joined(sorted(pieces, key=lambda piece: int(piece.places[0])))

    def _pieces(self, messages: Sequence[Message], topic: str, size: int, places: list[int]) -> Iterator[_Piece]:
        """Messages of one topic and length, those of one layout together."""
        rows: Rows = np.frombuffer(b"".join([messages[i][2] for i in places]), np.uint8).reshape(len(places), size)
        recorded = np.array([messages[i][1] for i in places], dtype=np.int64)
        numbers, known = np.array(places), self._layouts[topic, size]
        left = np.arange(len(places))
        tried = 0
        while len(left):
            if tried < len(known):
                layout = known[tried]
            else:
                try:
                    layout = layout_of(rows[left[0]].tobytes())
                except InputError as error:
                    raise _FaultError((int(numbers[left[0]]), topic, str(error))) from None
                if tried < _MOST_LAYOUTS:
                    known.append(layout)
            # Where each message differs from the others, comparing it with all of them would take for ever.
            own = layout.alike(rows[left]) if tried < _MOST_LAYOUTS else np.arange(len(left)) == 0
            tried += 1
            taken, left = left[own], left[~own]
            if len(taken) and layout.names:  # numbers without names belong to no joint
                chosen = rows[taken]
                stamps = np.stack([layout.stamps(chosen), recorded[taken]])
                yield _Piece(numbers[taken], topic, layout.names, Block(stamps, layout.values(chosen)))

    def _joined(self, pieces: Iterable[_Piece]) -> dict[Key, Block]:
        """The pieces of each publisher in the order of the messages, joints in the order of its first message."""
        own: defaultdict[Key, list[_Piece]] = defaultdict(list)
        for piece in pieces:
            key = piece.topic, frozenset(piece.names)
            publisher = self.found.setdefault(key, Publisher(piece.topic, piece.names))
            own[key].append(piece.ordered(publisher.names))
        result = {key: _together(parts) for key, parts in own.items()}
        for key, block in result.items():
            self.found[key].note(block)
        return result


_Fault = tuple[int, str, str]  # place of the message, topic, what is wrong


class _FaultError(Exception):
    """A message that cannot be decoded."""


@dataclass(frozen=True)
class _Piece:
    """Messages of one layout, and their places among all."""

    places: NDArray[np.int64]
    topic: str
    names: tuple[str, ...]
    block: Block

    def ordered(self, names: tuple[str, ...]) -> _Piece:
        """With the joints in this order."""
        if names == self.names:
            return self
        order = [self.names.index(name) for name in names]
        values = tuple(None if own is None else own[:, order] for own in self.block.values)
        return _Piece(self.places, self.topic, names, Block(self.block.stamps, values))


def _together(pieces: list[_Piece]) -> Block:
    if len(pieces) == 1:
        return pieces[0].block
    order = np.argsort(np.concatenate([piece.places for piece in pieces]))
    joined = concatenated([piece.block for piece in pieces])
    return Block(joined.stamps[:, order], tuple(None if own is None else own[order] for own in joined.values))


def concatenated(blocks: Sequence[Block]) -> Block:
    """Blocks of one publisher after each other; what is absent in some of them is NaN there."""
    width = next((own.shape[1] for block in blocks for own in block.values if own is not None), 0)
    values: list[Array | None] = []
    for own in zip(*(block.values for block in blocks), strict=True):
        if all(part is None for part in own):
            values.append(None)
            continue
        filled = [
            np.full((block.stamps.shape[1], width), np.nan) if part is None else part
            for block, part in zip(blocks, own, strict=True)
        ]
        values.append(np.concatenate(filled))
    return Block(np.concatenate([block.stamps for block in blocks], axis=1), tuple(values))


def fullest(candidates: Iterable[Publisher], joints: Collection[str]) -> Publisher:
    """The publisher that tells about most of these joints, and most often."""
    return max(candidates, key=lambda one: (len(set(one.names) & set(joints)), one.count))


# ----------------------------------------------------------------------------------------------------------------------
# Joints that are spread over several publishers, merged by name onto the stamps of one of them.

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
