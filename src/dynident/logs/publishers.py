"""`Publisher`: the joint states of one topic about one set of joints, as columns keyed by joint name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask
from dynident.errors import InputError
from dynident.logs.columns import QUANTITIES
from dynident.logs.joint_state import Layout, Message, Rows, layout_of
from dynident.logs.log import LogError

Key = tuple[str, frozenset[str]]  # topic and joints
_MOST_LAYOUTS = 16  # of one topic and length; beyond, messages are decoded one by one


@dataclass(frozen=True)
class JointStates:
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
        names: The joints, in the order of the first message.
        count: Number of messages.
        first: Stamps of the first message, by its header and by the recorder [ns].
        stamped: Whether every header has a time; a publisher that does not stamp its messages leaves zeros.
        has_any: Whether there is any position, velocity and effort.
    """

    topic: str
    names: tuple[str, ...]
    count: int = 0
    first: tuple[int, int] = (0, 0)
    stamped: bool = True
    has_any: list[bool] = field(default_factory=lambda: [False] * len(QUANTITIES))

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.topic, frozenset(self.names)

    @property
    def headers(self) -> list[str]:
        """Names of its columns: t, then `NAME.position` and so on for what there is."""
        present = [quantity for quantity, known in zip(QUANTITIES, self.has_any, strict=True) if known]
        return ["t", *(f"{name}.{quantity}" for quantity in present for name in self.names)]

    def note(self, block: JointStates) -> None:
        """Count the next messages."""
        if self.count == 0:
            self.first = int(block.stamps[0, 0]), int(block.stamps[1, 0])
        self.count += block.stamps.shape[1]
        self.stamped = self.stamped and bool(block.stamps[0].all())
        for i, own in enumerate(block.values):
            self.has_any[i] = self.has_any[i] or (own is not None and not np.isnan(own).all())

    def columns(self, block: JointStates, places: Sequence[int]) -> Array:
        """The columns at these places of `headers`, (n_places, n_messages); t [s] counts from the first message."""
        present = [i for i, known in enumerate(self.has_any) if known]
        clock = 0 if self.stamped else 1
        result = np.full((len(places), block.stamps.shape[1]), np.nan)
        for row, place in zip(result, places, strict=True):
            if place == 0:
                row[:] = (block.stamps[clock] - self.first[clock]) / 1e9
                continue
            quantity, joint = divmod(place - 1, len(self.names))
            own = block.values[present[quantity]]
            if own is not None:
                row[:] = own[:, joint]
        return result


class MessageSorter:
    """Joint states by topic and set of joints, decoded many at a time.

    Attributes:
        found: The publishers so far, in the order of their first messages.
    """

    def __init__(self) -> None:
        self.found: dict[Key, Publisher] = {}
        self._layouts: defaultdict[tuple[str, int], list[Layout]] = defaultdict(list)
        self._count = 0

    def feed(self, messages: Sequence[Message]) -> dict[Key, JointStates]:
        """Decode the next messages: what each publisher said in them. Messages that name no joint are left out.

        Raises:
            InputError: For a message that cannot be decoded.
        """
        alike: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for place, (topic, _, data) in enumerate(messages):
            alike[topic, len(data)].append(place)
        pieces: list[_Piece] = []
        faults: list[tuple[int, str, str]] = []  # place of the message, topic, what is wrong
        for (topic, size), places in alike.items():
            pieces.extend(self._pieces(messages, topic, size, places, faults))
        if faults:
            place, topic, words = min(faults)
            raise InputError(f"joint state {self._count + place + 1} (topic {topic}) {words}")
        self._count += len(messages)
        return self._join(sorted(pieces, key=lambda piece: int(piece[0][0])))

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
                    layout = layout_of(rows[rest[0]].tobytes())
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
                yield numbers[taken], topic, layout.names, JointStates(stamps, layout.values(chosen))

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


def fullest(candidates: Iterable[Publisher], joints: Collection[str]) -> Publisher:
    """The publisher that tells about most of these joints, and most often."""
    return max(candidates, key=lambda one: (len(set(one.names) & set(joints)), one.count))


# ----------------------------------------------------------------------------------------------------------------------
# Joints that are spread over several publishers, merged by name onto the stamps of one of them.

_ACROSS = 2.5  # steps between two messages that a line may join: one of them was lost, and stamps jitter
_SLOWER = 1.5  # times the step of the fullest publisher, from which another is a slower one


Share = tuple[Publisher, tuple[str, ...], JointStates]  # a publisher, the joints taken from it, all its messages


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


def merge_publishers(source: str, shares: Sequence[Share]) -> tuple[list[str], list[Array], str]:
    """Headers and columns of several publishers on one time base, and a sentence about what was done.

    The time base is that of the first, or of a slower one if there is any, as nothing is known between its messages.
    Values of the others are interpolated; stamps for which one of them has no messages around are left out.

    Args:
        source: The bag, for messages.
        shares: What to merge, the fullest first.

    Raises:
        LogError: If a publisher's time runs backwards, or the publishers were not recorded at the same time.
    """
    words = [f"{', '.join(names)} (topic {publisher.topic})" for publisher, names, _ in shares]
    clock = 0 if all(publisher.stamped for publisher, _, _ in shares) else 1  # one for all: two clocks may differ
    stamps = [states.stamps[clock] for _, _, states in shares]
    steps = [_step(source, name, own) for name, own in zip(words, stamps, strict=True)]
    first = next((i for i, step in enumerate(steps) if step >= max(steps) / _SLOWER))
    base, usable = stamps[first], np.ones(len(stamps[first]), dtype=bool)
    own: dict[str, Array] = {}
    for i, (publisher, names, states) in enumerate(shares):
        places = [publisher.names.index(name) for name in names]
        left, right, weight, between = _interpolation(base, stamps[i], steps[i])
        usable &= True if i == first else between
        for quantity, has_any, values in zip(QUANTITIES, publisher.has_any, states.values, strict=True):
            if has_any and values is not None:
                chosen = values[:, places]
                line = (1.0 - weight) * chosen[left] + weight * chosen[right]
                at_base = chosen if i == first else np.where(weight == 1.0, chosen[right], line)
                own.update({f"{name}.{quantity}": at_base[:, k] for k, name in enumerate(names)})
    if np.count_nonzero(usable) < 2:
        listed = " and ".join(words)
        raise LogError(source, f"{listed} were not recorded at the same time; record a bag in which they are")
    columns = {header: values[usable] for header, values in own.items()}
    kept = base[usable]
    missing = len(base) - len(kept)
    lost = f"; {missing} of its {len(base)} stamps, without a message of the others, are left out" if missing else ""
    summary = f"{source}: merged {' with '.join(words)} at the stamps of {shares[first][1][0]}"
    rate = f" ({1e9 / steps[first]:.4g} Hz)"
    return ["t", *columns], [(kept - kept[0]) / 1e9, *columns.values()], summary + rate + lost


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
        For each stamp the message before it and the one behind it, (n,) each; the weight of the latter, (n, 1); and
        whether a line may join them, (n,).
    """
    after = np.searchsorted(stamps, base)
    left, right = np.maximum(after - 1, 0), np.minimum(after, len(stamps) - 1)
    before, behind = base - stamps[left], stamps[right] - base
    span = (stamps[right] - stamps[left]).astype(np.float64)
    inside = (span > 0.0) & (span <= _ACROSS * step)
    # A message at the stamp itself is taken as it is, whatever stands before it.
    line = np.divide(before, span, out=np.zeros(len(base)), where=inside)
    return left, right, np.where(behind == 0, 1.0, line)[:, None], inside | (behind == 0)
