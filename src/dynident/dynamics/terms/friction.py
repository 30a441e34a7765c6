"""Friction beyond viscous and Coulomb, as columns on the elements that have friction: one term for every law."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS, ElementMotion, FrictionLaw
from dynident.dynamics.terms.term import AlongTerm, Column, LinkTorque, MotionSamples, Place, element_place
from dynident.errors import InputError, UnknownNameError
from dynident.robot.algebra import Number
from dynident.robot.model import Element, Robot

_WAVES = {"": "", "c": "cosine", "s": "sine"}


class FrictionTerm(AlongTerm):
    """A law of friction on elements: column s phi(e · q, e · dq, ...), s the element's torque direction.

    Args:
        law: Name of the law; see `FRICTION_LAWS`.
        *scales: Its numbers: radii [rad], velocities [rad/s], waves per turn.
        only: Labels of the elements it is for; None for all that have friction.
    """

    def __init__(self, law: str, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        self.law: FrictionLaw = FRICTION_LAWS[law]
        self.name = law
        self.needs_linearization_point, self.needs_jerk = self.law.needs_load, self.law.needs_jerk
        self._check_scales()

    def _check_scales(self) -> None:
        what = self.law.scale_meaning
        if self.law.scale == "none":
            if self.scales:
                raise InputError(f"term {self.name} takes no number; got {self.key}")
            return
        if not self.scales:
            raise InputError(f"term {self.name} needs {what}, as in {self.name}({self.law.example})")
        for scale in self.scales:
            if not (scale > 0.0 and np.isfinite(scale)):
                raise InputError(f"{what} of term {self.name} is {scale:g}; expected a positive number")
        if len(set(self.scales)) < len(self.scales):
            raise InputError(f"term {self.key} has a number twice")

    def restricted_to(self, labels: Sequence[str]) -> FrictionTerm:
        """The same law on these elements alone."""
        return FrictionTerm(self.name, *self.scales, only=tuple(labels))

    def elements(self, robot: Robot) -> tuple[Element, ...]:
        """The elements it is for: those with friction whose motion is a fixed combination of the actuated joints'."""
        able = elements_with_friction(robot)
        if self.only is None:
            return able
        labels = [element.label for element in able]
        for label in self.only:
            if label not in labels:
                raise UnknownNameError(f"element of term {self.name}", label, labels)
        return tuple(element for element in able if element.label in self.only)

    @property
    def columns_per_element(self) -> int:
        """One column per scale, two per number of waves."""
        return max(1, len(self.scales)) * len(self.law.shapes)

    def element_columns(self, label: str, place: str, *, sliding: bool) -> list[Column]:
        """The columns of one element, given where it is in words and whether it slides."""
        found = []
        for scale in self.scales or (0.0,):
            number = self.law.named_per_scale * scale
            for wave in self.law.shapes:
                symbol = f"{self.name}{number:g}{wave}" if self.scales else self.name
                meaning = f"{self.law.meaning.format(number, _WAVES[wave])} of {place}"
                found.append(
                    Column(f"{symbol}_{label}", self.law.units[sliding], f"{symbol}_", label, self.name, meaning)
                )
        return found

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """Element after element."""
        return tuple(
            column
            for element in self.elements(robot)
            for column in self.element_columns(
                element.label, element_place(robot, element), sliding=bool(element.prismatic)
            )
        )

    def values(self, motion: ElementMotion, wound: Sequence[Number] = ()) -> list[Number]:
        """What each column of an element is in a motion, on any number type.

        Args:
            motion: The motion, or an array of those of several elements.
            wound: Of a law that remembers, the wound-up share of each radius.
        """
        found = []
        for number, scale in enumerate(self.scales or (0.0,)):
            if self.law.remembers:
                motion.wound = wound[number]
            found += [self.law.torque(part, 1.0, motion, scale) for part in self.law.shapes]
        return found

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Rows that an element acts on."""
        width = self.columns_per_element
        return tuple(
            (int(row), width * number + k)
            for number, element in enumerate(self.elements(robot))
            for k in range(width)
            for row in np.flatnonzero(element.torque[list(robot.moving)])
        )

    def directions(self, robot: Robot) -> Array:
        """(n_elements, n_joints): how far each element moves with each joint."""
        found = [motion_of(robot, element) for element in self.elements(robot)]
        return np.array(found).reshape(len(found), len(robot.moving))

    def load_shares(self, robot: Robot) -> Array:
        """(n_elements, n_rows): how much of the torque at each row each element carries."""
        found = [_load_shares(robot, element) for element in self.elements(robot)]
        return np.array(found).reshape(len(found), len(robot.moving))

    def units(self, robot: Robot) -> Array:
        """(n_elements,) motion of each element that counts as a radian [rad or m]."""
        return np.array([element.radian for element in self.elements(robot)])

    def follow(self, robot: Robot, links: LinkTorque | None) -> FrictionFollower:
        """A follower for all elements at once."""
        return FrictionFollower(self, robot, links)


class FrictionFollower:
    """The columns of a friction term along a motion, with what its stop operators remember of it."""

    def __init__(self, term: FrictionTerm, robot: Robot, links: LinkTorque | None) -> None:
        self._term, self._links = term, links if term.law.needs_load else None
        self._velocity, self._loads, units = term.directions(robot), term.load_shares(robot), term.units(robot)
        self._units = units[:, None]
        moving, width = list(robot.moving), term.columns_per_element
        lines = [
            (number * width + k, float(element.torque[row]))
            for number, element in enumerate(term.elements(robot))
            for k in range(width)
            for row in moving
            if element.torque[row]
        ]
        self._picked, self._shares = [line for line, _ in lines], np.array([share for _, share in lines])[:, None]
        self._stops = Stops(np.outer(units, term.scales).ravel()) if term.law.remembers else None

    def __call__(self, samples: MotionSamples) -> Array:
        """Columns first, (n_places, n_samples), of the next samples."""
        nothing = np.zeros((0, len(samples)))
        motion = ElementMotion(
            position=self._velocity @ samples.q.T,
            velocity=self._velocity @ samples.dq.T,
            load=nothing if self._links is None else self._loads @ self._links.torque(samples).T,
            jerk=self._velocity @ samples.dddq.T if self._term.needs_jerk else nothing,
            unit=self._units,
            functions=NUMPY_FUNCTIONS,
        )
        wound: list[Array] = []
        if self._stops is not None:
            n = len(self._term.scales)
            pushed = self._stops.push(np.repeat(motion.position, n, axis=0), samples.restart)
            wound = [pushed[k::n] for k in range(n)]
        found = np.stack(self._term.values(motion, wound), axis=1)  # (n_elements, columns_per_element, n_samples)
        return np.asarray(found.reshape(-1, len(samples))[self._picked] * self._shares)

    def remembered(self) -> Array:
        """What its stop operators remember; empty for the other laws."""
        return np.zeros(0) if self._stops is None else self._stops.remembered()

    def recall(self, kept: Array) -> None:
        """Continue from what `remembered` gave."""
        if self._stops is not None:
            self._stops.recall(kept)


@functools.lru_cache(maxsize=16)
def elements_with_friction(robot: Robot) -> tuple[Element, ...]:
    """Elements with friction that move, and whose motion is a fixed combination of the joints'."""
    return tuple(
        element
        for element in robot.elements
        if ("Fc" in element.names or "Fv" in element.names)
        and not element.solved.any()
        and motion_of(robot, element).any()
    )


def motion_of(robot: Robot, element: Element) -> Array:
    """(n_joints,) an element's motion as a combination of that of the moving joints."""
    return np.asarray(element.velocity @ robot.coupling[:, list(robot.moving)])


def _load_shares(robot: Robot, element: Element) -> Array:
    """How much of the torque at each row an element carries, (n_rows,).

    The gear of one motor carries that motor's torque, a joint that several motors turn the joint's. What is neither
    carries the part along its own direction.
    """
    coupling, torque = robot.moving_coupling, element.torque[list(robot.moving)]
    at_joints = torque @ coupling
    joints = np.flatnonzero(np.abs(at_joints) > 1e-12 * np.abs(at_joints).max(initial=0.0))
    if np.count_nonzero(torque) > 1 and len(joints) == 1:
        return np.asarray(coupling[:, joints[0]] / at_joints[joints[0]])
    return np.asarray(torque / max(float(torque @ torque), 1e-300))


# ----------------------------------------------------------------------------------------------------------------------
# The stop operator: a spring that slips once it is wound up by a radius (Prandtl; elements of Prandtl-Ishlinskii).
#
# Its partner, the play, is where the slipping end of the spring stands: p_k = clip(p_{k-1}, q_k - r, q_k + r), and the
# stop is s_k = q_k - p_k. One clip after the other is again a clip, so a whole block is found by doubling, in
# comparisons alone: the result is the same to the last bit however a motion is cut into blocks.


def play_step(end: float, position: float, radius: float) -> float:
    """Where the slipping end stands once its spring has moved to a position: one step of `play`."""
    if position - end > radius:
        return position - radius
    return position + radius if position - end < -radius else end


def play(position: Array, radius: Array, start: Array) -> Array:
    """The play operator along the last axis, (n, n_samples).

    Args:
        position: (n, n_samples).
        radius: (n,), positive.
        start: (n,) where the slipping ends stand before the first sample.
    """
    low, high = position - radius[:, None], position + radius[:, None]
    n, reach = position.shape[1], 1
    while reach < n:  # each sample's clip now stands for the last `reach` clips
        before_low, before_high = low[:, :-reach], high[:, :-reach]
        own_low, own_high = low[:, reach:], high[:, reach:]
        joined_low = np.clip(before_low, own_low, own_high)
        joined_high = np.clip(before_high, own_low, own_high)
        low = np.concatenate([low[:, :reach], joined_low], axis=1)
        high = np.concatenate([high[:, :reach], joined_high], axis=1)
        reach *= 2
    return np.clip(start[:, None], low, high)


class Stops:
    """Stop operators that go through a motion block after block.

    Args:
        radius: (n,), in the unit of the positions.
    """

    def __init__(self, radius: Array) -> None:
        self.radius = radius
        self._end: Array | None = None

    def remembered(self) -> Array:
        """(n,) where the slipping ends stand, or (0,) before the first sample."""
        return np.zeros(0) if self._end is None else self._end.copy()

    def recall(self, kept: Array) -> None:
        """Continue from what `remembered` gave."""
        self._end = np.array(kept) if len(kept) else None

    def push(self, position: Array, restart: bool) -> Array:
        """Wound-up share of the next samples, s / r between -1 and 1, (n, n_samples); zero where a stretch begins."""
        if not position.shape[1]:
            return np.zeros_like(position)
        start = position[:, 0] if restart or self._end is None else self._end
        slipping = play(position, self.radius, start)
        self._end = slipping[:, -1]
        return (position - slipping) / self.radius[:, None]
