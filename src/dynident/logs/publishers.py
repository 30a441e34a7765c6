"""`Publisher`: the joint states of one topic about one set of joints, as columns keyed by joint name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import InputError
from dynident.logs.joints import QUANTITIES
from dynident.logs.jointstate import Layout, Message, Rows, layout_of

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
