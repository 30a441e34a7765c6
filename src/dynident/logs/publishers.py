"""`Publisher`: the messages of one topic about one set of joints, as columns by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.errors import InputError
from dynident.logs.log import LogError
from dynident.logs.message_layout import Layout, Message, Rows
from dynident.logs.message_types import COLUMN_KINDS

Key = tuple[str, frozenset[str]]  # topic and joints
Decode = Callable[[bytes], Layout]
QUANTITIES = tuple(COLUMN_KINDS)  # ends of the names of columns
_MOST_LAYOUTS = 16  # of one topic and length; beyond, messages are decoded one by one


@dataclass(frozen=True)
class JointStates:
    """Successive messages of a publisher.

    Attributes:
        stamps: Of the header and of the recorder, (2, n_messages) [ns].
        values: By quantity, (n_messages, n_joints) each; None for those that are absent.
    """

    stamps: NDArray[np.int64]
    values: tuple[Array | None, ...]

    @property
    def n_bytes(self) -> int:
        """Of its numbers."""
        return self.stamps.nbytes + sum(own.nbytes for own in self.values if own is not None)

    def select(self, joints: Sequence[int]) -> JointStates:
        """Some joints, or all in another order."""
        return JointStates(self.stamps, tuple(None if own is None else own[:, joints] for own in self.values))

    def sort(self, places: NDArray[np.int64]) -> JointStates:
        """The messages in the order of their places, (n_messages,)."""
        order = np.argsort(places)
        return JointStates(self.stamps[:, order], tuple(None if own is None else own[order] for own in self.values))


@dataclass
class Publisher:
    """What is known of the messages of one topic about one set of joints; the messages themselves are in blocks.

    Attributes:
        topic: The topic.
        names: The joints, in the order of the first message; names of columns for types without joints.
        count: Number of messages.
        first: Stamps of the first message, by its header and by the recorder [ns].
        last: Stamps of the last message.
        stamped: Whether every header has a time; a publisher that does not stamp its messages leaves zeros.
        has_any: Whether there is any number, by quantity and joint.
    """

    topic: str
    names: tuple[str, ...]
    count: int = 0
    first: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)
    stamped: bool = True
    has_any: Mask = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.topic, frozenset(self.names)

    @property
    def clock(self) -> int:
        """Which stamps count: those of the header, 0, unless they are absent or stand still; else the recorder's, 1."""
        return 0 if self.stamped and (self.count < 2 or self.last[0] != self.first[0]) else 1

    @property
    def n_bytes(self) -> int:
        """Of its numbers, all messages together."""
        return 8 * self.count * (2 + int(self.has_any.any(axis=1).sum()) * len(self.names))

    @property
    def places(self) -> list[tuple[int, int]]:
        """Quantity and joint of each column but time, by number."""
        return [(int(i), int(k)) for i, k in np.argwhere(self.has_any)]

    @property
    def headers(self) -> list[str]:
        """Names of its columns: t, then `NAME.position` and so on for what there is."""
        return ["t", *(column_name(self.names[k], QUANTITIES[i]) for i, k in self.places)]

    def note(self, block: JointStates) -> None:
        """Count the next messages."""
        if self.count == 0:
            self.first = int(block.stamps[0, 0]), int(block.stamps[1, 0])
            self.has_any = np.zeros((len(QUANTITIES), len(self.names)), dtype=bool)
        self.last = int(block.stamps[0, -1]), int(block.stamps[1, -1])
        self.count += block.stamps.shape[1]
        self.stamped = self.stamped and bool(block.stamps[0].all())
        for i, own in enumerate(block.values):
            if own is not None and not self.has_any[i].all():
                self.has_any[i] |= ~np.isnan(own).all(axis=0)

    def columns(self, block: JointStates, places: Sequence[int]) -> Array:
        """The columns at these places of `headers`, (n_places, n_messages); t [s] counts from the first message."""
        known, clock = self.places, self.clock
        result = np.full((len(places), block.stamps.shape[1]), np.nan)
        for row, place in zip(result, places, strict=True):
            if place == 0:
                row[:] = (block.stamps[clock] - self.first[clock]) / 1e9
                continue
            quantity, joint = known[place - 1]
            own = block.values[quantity]
            if own is not None:
                row[:] = own[:, joint]
        return result


def column_name(name: str, quantity: str) -> str:
    """Name of a column: that of the joint and what is reported of it."""
    return f"{name}.{quantity}" if quantity else name


class MessageSorter:
    """Messages by topic and set of joints, decoded many at a time.

    Args:
        decoders: By topic, what finds the layout of a message.

    Attributes:
        found: The publishers so far, in the order of their first messages.
        faults: By topic, why it cannot be read further.
    """

    def __init__(self, decoders: Callable[[str], Decode]) -> None:
        self.found: dict[Key, Publisher] = {}
        self.faults: dict[str, str] = {}
        self._decoders = decoders
        self._layouts: defaultdict[tuple[str, int], list[Layout]] = defaultdict(list)
        self._counts: defaultdict[str, int] = defaultdict(int)

    def feed(self, messages: Sequence[Message]) -> dict[Key, JointStates]:
        """Decode the next messages: what each publisher said in them. Messages that name no joint are left out.

        A topic with a message that cannot be decoded is given up, see `faults`.
        """
        alike: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        numbers: list[int] = []  # of each message within its topic
        for place, (topic, _, data) in enumerate(messages):
            self._counts[topic] += 1
            numbers.append(self._counts[topic])
            if topic not in self.faults:
                alike[topic, len(data)].append(place)
        pieces: list[_Piece] = []
        faults: list[tuple[int, str, str]] = []  # place of the message, topic, what is wrong
        for (topic, size), places in alike.items():
            pieces.extend(self._pieces(messages, topic, size, places, faults))
        for place, topic, words in sorted(faults):
            self.faults.setdefault(topic, f"message {numbers[place]} of topic {topic} {words}")
        sound = [piece for piece in pieces if piece[1] not in self.faults]
        return self._join(sorted(sound, key=lambda piece: int(piece[0][0])))

    def _pieces(
        self,
        messages: Sequence[Message],
        topic: str,
        size: int,
        places: list[int],
        faults: list[tuple[int, str, str]],
    ) -> Iterator[_Piece]:
        """Messages of one topic and length, those of one layout together, up to one that cannot be decoded."""
        rows: Rows = np.frombuffer(b"".join([messages[i][2] for i in places]), np.uint8).reshape(len(places), size)
        recorded = np.array([messages[i][1] for i in places], dtype=np.int64)
        numbers, known = np.array(places), self._layouts[topic, size]
        rest = np.arange(len(places))
        tried = 0
        while len(rest):
            if tried < len(known):
                layout = known[tried]
            else:
                try:
                    layout = self._decoders(topic)(rows[rest[0]].tobytes())
                except InputError as error:
                    faults.append((int(numbers[rest[0]]), topic, str(error)))
                    return
                if tried < _MOST_LAYOUTS:
                    known.append(layout)
            # Where each message differs from the others, comparing it with all of them would take for ever.
            own = layout.alike(rows[rest]) if tried < _MOST_LAYOUTS else np.arange(len(rest)) == 0
            tried += 1
            taken, rest = rest[own], rest[~own]
            if len(taken) and layout.names:  # numbers without names belong to no joint
                chosen = rows[taken]
                stamps = np.stack([layout.stamps(chosen), recorded[taken]])
                yield numbers[taken], topic, layout.names, JointStates(stamps, layout.columns(chosen))

    def _join(self, pieces: Iterable[_Piece]) -> dict[Key, JointStates]:
        """The pieces of each publisher in the order of the messages, joints in the order of its first message."""
        own: defaultdict[Key, list[tuple[NDArray[np.int64], JointStates]]] = defaultdict(list)
        for places, topic, names, states in pieces:
            publisher = self.found.setdefault((topic, frozenset(names)), Publisher(topic, names))
            order = [names.index(name) for name in publisher.names]
            own[publisher.key].append((places, states if names == publisher.names else states.select(order)))
        result: dict[Key, JointStates] = {}
        for key, parts in own.items():
            states = concatenate_states([part for _, part in parts])
            result[key] = states if len(parts) == 1 else states.sort(np.concatenate([places for places, _ in parts]))
            self.found[key].note(result[key])
        return result


_Piece = tuple[NDArray[np.int64], str, tuple[str, ...], JointStates]  # places of messages, topic, joints, states


def concatenate_states(blocks: Sequence[JointStates]) -> JointStates:
    """Blocks of one publisher after each other; what is absent in some of them is NaN there."""
    if len(blocks) == 1:
        return blocks[0]
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
    return JointStates(np.concatenate([block.stamps for block in blocks], axis=1), tuple(values))


# ----------------------------------------------------------------------------------------------------------------------
# Columns that are spread over several publishers, merged by name onto the stamps of one of them.

_ACROSS = 2.5  # steps between two messages that a line may join: one of them was lost, and stamps jitter
_SLOWER = 1.5  # times the step of the fullest publisher, from which another is a slower one
_LOST = 0.01  # share of stamps that a log may lose for columns that it can do without
_APART = 1_000_000_000  # [ns] between the clocks of two headers, from which the recorder's is taken for all


@dataclass(frozen=True)
class Share:
    """What is taken of a publisher.

    Attributes:
        publisher: The publisher.
        headers: Names of its columns.
        states: All its messages.
        optional: Whether the log can do without.
    """

    publisher: Publisher
    headers: tuple[str, ...]
    states: JointStates
    optional: bool = False

    @property
    def words(self) -> str:
        """`effort of joint1, joint2 (topic /a)`; the joints alone where all that is published is taken."""
        stems = dict.fromkeys(joint_of(header) for header in self.headers)
        ends = dict.fromkeys(header.removeprefix(f"{joint_of(header)}.") for header in self.headers)
        every = [header for header in self.publisher.headers[1:] if joint_of(header) in stems]
        kinds = "" if len(every) == len(self.headers) else f"{' and '.join(ends)} of "
        return f"{kinds}{', '.join(stems)} (topic {self.publisher.topic})"


def joint_of(header: str) -> str:
    """The joint of a column, or the column where it has none."""
    stem, dot, end = header.rpartition(".")
    return stem if dot and end in COLUMN_KINDS else header


def merge_publishers(source: str, shares: Sequence[Share]) -> tuple[list[str], list[Array], list[str]]:
    """Headers and columns of several publishers on one time base, and sentences about what was done.

    The time base is that of the first, or of a slower one if there is any, as nothing is known between its messages.
    Values of the others are interpolated; stamps for which one of them has no messages around are left out. What the
    log can do without is left out instead, where it would make the time base slower or cost more stamps.

    Args:
        source: The bag, for messages.
        shares: What to merge, the fullest first.

    Raises:
        LogError: If a publisher's time runs backwards, or the publishers were not recorded at the same time.
    """
    needed = [share for share in shares if not share.optional]
    said: list[str] = []
    clock = 0 if all(share.publisher.clock == 0 for share in shares) else 1  # one for all: two clocks may differ
    delays = [int(np.median(share.states.stamps[1] - share.states.stamps[0])) for share in shares]
    if clock == 0 and max(delays) - min(delays) > _APART:
        clock = 1
        said.append(
            f"{source}: the headers of topics {', '.join(dict.fromkeys(share.publisher.topic for share in shares))} "
            f"have clocks that are {(max(delays) - min(delays)) / 1e9:.3g} s apart; the recorder's stamps are taken"
        )
    stamps = [share.states.stamps[clock] for share in needed]
    steps = [_step(source, share.words, own) for share, own in zip(needed, stamps, strict=True)]
    first = next((i for i, step in enumerate(steps) if step >= max(steps) / _SLOWER))
    base, usable = stamps[first], np.ones(len(stamps[first]), dtype=bool)
    own: dict[str, Array] = {}
    for i, share in enumerate(needed):
        values, between = _on_base(share, base, stamps[i], steps[i], is_base=i == first)
        usable &= between
        own |= values
    if np.count_nonzero(usable) < 2:
        listed = " and ".join(share.words for share in needed)
        raise LogError(source, f"{listed} were not recorded at the same time; record a bag in which they are")
    merged = [share.words for share in needed]
    for share in shares:
        if not share.optional:
            continue
        extra = share.states.stamps[clock]
        backwards = bool((np.diff(extra) < 0).any())
        step = np.inf if backwards else _step(source, share.words, extra)
        values, between = _on_base(share, base, extra, step, is_base=False) if np.isfinite(step) else ({}, ~usable)
        lost = np.count_nonzero(usable & ~between) / np.count_nonzero(usable)
        if step > _SLOWER * steps[first] or lost > _LOST:
            why = f"has {1e9 / step:.4g} Hz" if step > _SLOWER * steps[first] else f"lacks {lost:.0%} of the stamps"
            said.append(f"{source}: {share.words} is left out: it {why}; choose it with --topic if you need it")
            continue
        usable &= between
        own |= values
        merged.append(share.words)
    columns = {header: values[usable] for header, values in own.items()}
    kept = base[usable]
    missing = len(base) - len(kept)
    lost_words = f"; {missing} of its {len(base)} stamps, without a message of the others, are left out"
    if len(merged) > 1:
        summary = f"{source}: merged {' with '.join(merged)} at the stamps of {joint_of(needed[first].headers[0])}"
        said.insert(0, f"{summary} ({1e9 / steps[first]:.4g} Hz){lost_words if missing else ''}")
    return ["t", *columns], [(kept - kept[0]) / 1e9, *columns.values()], said


def _on_base(
    share: Share, base: NDArray[np.int64], stamps: NDArray[np.int64], step: float, *, is_base: bool
) -> tuple[dict[str, Array], Mask]:
    """The columns of a share at the stamps of the base, and at which of them it knows something."""
    headers = share.publisher.headers
    values = share.publisher.columns(share.states, [headers.index(header) for header in share.headers])
    if is_base:
        return dict(zip(share.headers, values, strict=True)), np.ones(len(base), dtype=bool)
    left, right, weight, between = _interpolation(base, stamps, step)
    line = (1.0 - weight) * values[:, left] + weight * values[:, right]
    at_base = np.where(weight == 1.0, values[:, right], line)
    return dict(zip(share.headers, at_base, strict=True)), between


def _step(source: str, name: str, stamps: NDArray[np.int64]) -> float:
    """Median step of a publisher [ns]; infinite for a single message."""
    steps = np.diff(stamps)
    if (steps < 0).any():
        place = int(np.argmax(steps < 0)) + 2
        raise LogError(source, f"time of {name} runs backwards at its message {place}; sort or split the bag")
    return float(np.median(steps[steps > 0])) if (steps > 0).any() else np.inf


def _interpolation(
    base: NDArray[np.int64], stamps: NDArray[np.int64], step: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array, Mask]:
    """Where stamps lie between the messages of a publisher.

    Args:
        base: Stamps, (n,) [ns].
        stamps: Of the messages, (m,) [ns], in order.
        step: Usual step between messages [ns].

    Returns:
        For each stamp the message before it and the one behind it, (n,) each; the weight of the latter, (n,); and
        whether a line may join them, (n,).
    """
    after = np.searchsorted(stamps, base)
    left, right = np.maximum(after - 1, 0), np.minimum(after, len(stamps) - 1)
    before, behind = base - stamps[left], stamps[right] - base
    span = (stamps[right] - stamps[left]).astype(np.float64)
    inside = (span > 0.0) & (span <= _ACROSS * step)
    # A message at the stamp itself is taken as it is, whatever stands before it.
    line = np.divide(before, span, out=np.zeros(len(base)), where=inside)
    return left, right, np.where(behind == 0, 1.0, line), inside | (behind == 0)
