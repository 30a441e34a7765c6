"""Friction beyond viscous and Coulomb, as columns on the elements that have friction.

Scales are in radians at the joint. A joint that slides moves METRES_PER_RADIAN where one that turns moves a radian.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.friction_laws import Stops
from dynident.dynamics.terms.term import (
    AlongTerm,
    Column,
    Follower,
    Following,
    MotionSamples,
    Place,
    Reference,
    element_place,
)
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import METRES_PER_RADIAN as METRES_PER_RADIAN, Element, Robot

SMOOTHING = 0.02  # [rad/s] at which the sign of a speed reaches tanh(1)


@dataclass(frozen=True)
class Kind:
    """One kind of column that a law has on every element.

    Attributes:
        symbol: Start of the parameter's name.
        meaning: In words.
        unit: Unit of the parameter on a joint that turns.
        sliding_unit: Unit on one that slides.
    """

    symbol: str
    meaning: str
    unit: str
    sliding_unit: str


class ElementLaw(AlongTerm):
    """A law of friction on elements: column s phi(e · q, e · dq, ...), s the element's torque direction."""

    def elements(self, robot: Robot) -> list[Element]:
        """The elements it is for: those with friction whose motion is a fixed combination of the actuated joints'."""
        able = elements_with_friction(robot)
        if self.only is None:
            return able
        labels = [element.label for element in able]
        for label in self.only:
            if label not in labels:
                raise UnknownNameError(f"element of term {self.name}", label, labels)
        return [element for element in able if element.label in self.only]

    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]:
        """The columns of each element."""

    def columns(self, robot: Robot) -> tuple[Column, ...]:
        """Element after element."""
        return tuple(
            Column(
                name=f"{kind.symbol}_{element.label}",
                unit=kind.sliding_unit if element.prismatic else kind.unit,
                symbol=f"{kind.symbol}_",
                place=element.label,
                term=self.name,
                meaning=f"{kind.meaning} of {element_place(robot, element)}",
            )
            for element in self.elements(robot)
            for kind in self.kinds()
        )

    def places(self, robot: Robot) -> tuple[Place, ...]:
        """Rows that an element acts on."""
        width = len(self.kinds())
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

    def follow(self, robot: Robot, reference: Reference | None) -> Follower:
        """A follower for all elements at once."""
        elements, moving, width = self.elements(robot), list(robot.moving), len(self.kinds())
        velocity = self.directions(robot)
        torque = np.array([element.torque[moving] for element in elements]).reshape(len(elements), len(moving))
        loads = np.array([load_shares(robot, element) for element in elements]).reshape(len(elements), len(moving))
        units = np.array([METRES_PER_RADIAN if element.prismatic else 1.0 for element in elements])
        lines = [
            (number * width + k, float(torque[number, row]))
            for number in range(len(elements))
            for k in range(width)
            for row in np.flatnonzero(torque[number])
        ]
        picked, shares = [line for line, _ in lines], np.array([share for _, share in lines])[:, None]
        law = self.start(units)

        def follower(samples: MotionSamples) -> Array:
            load = np.zeros((0, len(samples)))
            if reference is not None and self.needs_reference:
                load = loads @ reference.torque(samples).T
            jerk = velocity @ samples.dddq.T if self.needs_jerk else load[:0]
            speed = velocity @ samples.dq.T
            found = law.values(Moving(velocity @ samples.q.T, speed, jerk, load, samples.restart))
            return np.asarray(found.reshape(len(elements) * width, len(samples))[picked] * shares)

        return Following(follower, law)

    @abstractmethod
    def start(self, units: Array) -> Law:
        """The law with its memory empty; `units` (n_elements,) is what counts as a radian on each element."""

    def _check_scales(self, what: str, least: int = 1) -> None:
        if len(self.scales) < least:
            raise InputError(f"term {self.name} needs {what}, as in {self.name}({self.example})")
        for scale in self.scales:
            if not (scale > 0.0 and np.isfinite(scale)):
                raise InputError(f"{what} of term {self.name} is {scale:g}; expected a positive number")
        if len(set(self.scales)) < len(self.scales):
            raise InputError(f"term {self.key} has a number twice")

    example = "0.1"


def elements_with_friction(robot: Robot) -> list[Element]:
    """Elements with friction that move, and whose motion is a fixed combination of the joints'."""
    return [
        element
        for element in robot.elements
        if ("Fc" in element.names or "Fv" in element.names)
        and not element.solved.any()
        and motion_of(robot, element).any()
    ]


def motion_of(robot: Robot, element: Element) -> Array:
    """(n_joints,) an element's motion as a combination of that of the moving joints."""
    return np.asarray(element.velocity @ robot.coupling[:, list(robot.moving)])


def load_shares(robot: Robot, element: Element) -> Array:
    """How much of the torque at each row an element carries, (n_rows,).

    The gear of one motor carries that motor's torque, a joint that several motors turn the joint's. What is neither
    carries the part along its own direction.
    """
    moving = list(robot.moving)
    coupling, torque = robot.coupling[np.ix_(moving, moving)], element.torque[moving]
    at_joints = torque @ coupling
    joints = np.flatnonzero(np.abs(at_joints) > 1e-12 * np.abs(at_joints).max(initial=0.0))
    if np.count_nonzero(torque) > 1 and len(joints) == 1:
        return np.asarray(coupling[:, joints[0]] / at_joints[joints[0]])
    return np.asarray(torque / max(float(torque @ torque), 1e-300))


@dataclass(frozen=True)
class Moving:
    """How elements move, elements first, as columns are made of it: (n_elements, n_samples) each.

    Attributes:
        position, speed, jerk: Of the elements.
        load: Torque of the links that they carry, from the reference; (0, n_samples) where nothing asks for it.
        restart: Whether a stretch begins.
    """

    position: Array
    speed: Array
    jerk: Array
    load: Array
    restart: bool


class Law(ABC):
    """A law at work on some elements, with what it remembers of their motion.

    Args:
        units: (n_elements,) what counts as a radian on each element.
    """

    def __init__(self, units: Array) -> None:
        self.units = units[:, None]

    @abstractmethod
    def values(self, moving: Moving) -> Array:
        """(n_elements, n_kinds, n_samples)."""

    def remembered(self) -> Array:
        """What it remembers; most laws nothing."""
        return np.zeros(0)

    def recall(self, kept: Array) -> None:
        """Continue from what `remembered` gave."""
        assert not len(kept)


def _torque_kind(symbol: str, meaning: str) -> Kind:
    return Kind(symbol, meaning, "N·m", "N")


class Stop(ElementLaw):
    """Friction with memory: stop operators of some radii [rad]; a gear winds up before it slips."""

    name = "stop"
    example = "0.0003,0.003"

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        self._check_scales("a radius [rad]")

    def kinds(self) -> tuple[Kind, ...]:
        """One column per radius."""
        text = "friction that winds up over {:g} mrad"
        return tuple(_torque_kind(f"stop{1e3 * r:g}", text.format(1e3 * r)) for r in self.scales)

    def start(self, units: Array) -> Law:
        """With all springs unwound."""
        return _StopLaw(units, self.scales)


class _StopLaw(Law):
    def __init__(self, units: Array, radii: tuple[float, ...]) -> None:
        super().__init__(units)
        self.width = len(radii)
        self.stops = Stops(np.outer(units, radii).ravel())

    def remembered(self) -> Array:
        return self.stops.remembered()

    def recall(self, kept: Array) -> None:
        self.stops.recall(kept)

    def values(self, moving: Moving) -> Array:
        wound = self.stops.push(np.repeat(moving.position, self.width, axis=0), moving.restart)
        return wound.reshape(len(moving.position), self.width, -1)


class PointwiseLaw(ElementLaw):
    """A law of speed, position, load and jerk at one time."""

    def start(self, units: Array) -> Law:
        """Nothing to remember."""
        return _PointwiseLaw(units, self)

    @abstractmethod
    def at(self, moving: Moving, units: Array) -> list[Array]:
        """Each kind of column, (n_elements, n_samples)."""


class _PointwiseLaw(Law):
    def __init__(self, units: Array, law: PointwiseLaw) -> None:
        super().__init__(units)
        self.law = law

    def values(self, moving: Moving) -> Array:
        return np.stack(self.law.at(moving, self.units), axis=1)


class Stribeck(PointwiseLaw):
    """Friction that falls as motion sets in: sign(v) exp(-(v / vs)^2), vs [rad/s]."""

    name = "stribeck"
    example = "0.2,0.5"

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        self._check_scales("a Stribeck speed [rad/s]")

    def kinds(self) -> tuple[Kind, ...]:
        """One column per speed."""
        return tuple(_torque_kind(f"stribeck{v:g}", f"friction that falls below {v:g} rad/s") for v in self.scales)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The curve of each speed."""
        v = moving.speed / units
        return [np.tanh(v / SMOOTHING) * np.exp(-((v / vs) ** 2)) for vs in self.scales]


class SmoothSign(PointwiseLaw):
    """Friction that comes up more slowly than Coulomb's: tanh(v / vs), vs [rad/s]."""

    name = "sign"
    example = "0.2"

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        self._check_scales("a speed [rad/s]")

    def kinds(self) -> tuple[Kind, ...]:
        """One column per speed."""
        return tuple(_torque_kind(f"sign{v:g}", f"friction smoothed below {v:g} rad/s") for v in self.scales)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The curve of each speed."""
        return [np.tanh(moving.speed / units / vs) for vs in self.scales]


class _WithoutScales(PointwiseLaw):
    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        if scales:
            raise InputError(f"term {self.name} takes no number; got {self.key}")


class LoadCoulomb(_WithoutScales):
    """Coulomb friction that grows with the load that a gear carries: |tau of the links| sign(v)."""

    name = "load"
    needs_reference = True

    def kinds(self) -> tuple[Kind, ...]:
        """One column."""
        return (Kind("load", "Coulomb friction per load", "1", "1"),)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The load against the motion."""
        return [np.abs(moving.load) * np.tanh(moving.speed / units / SMOOTHING)]


class LoadViscous(_WithoutScales):
    """Viscous friction that grows with the load: |tau of the links| v."""

    name = "loadv"
    needs_reference = True

    def kinds(self) -> tuple[Kind, ...]:
        """One column."""
        return (Kind("loadv", "viscous friction per load", "s/rad", "s/m"),)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The load times the speed."""
        return [np.abs(moving.load) * moving.speed]


class Asymmetric(_WithoutScales):
    """Coulomb friction that differs between the directions: |sign(v)|. An offset looks the same, except at rest."""

    name = "asymmetric"

    def kinds(self) -> tuple[Kind, ...]:
        """One column."""
        return (_torque_kind("asymmetric", "half the difference of Coulomb friction between directions"),)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """One in motion, zero at rest."""
        return [np.abs(np.tanh(moving.speed / units / SMOOTHING))]


class Quadratic(_WithoutScales):
    """Viscous friction with the square of the speed: v |v|."""

    name = "quadratic"

    def kinds(self) -> tuple[Kind, ...]:
        """One column."""
        return (Kind("quadratic", "friction with the square of the speed", "N·m·s²/rad²", "N·s²/m²"),)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The signed square."""
        return [moving.speed * np.abs(moving.speed)]


class Cubic(_WithoutScales):
    """Viscous friction with the cube of the speed: v^3."""

    name = "cubic"

    def kinds(self) -> tuple[Kind, ...]:
        """One column."""
        return (Kind("cubic", "friction with the cube of the speed", "N·m·s³/rad³", "N·s³/m³"),)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The cube."""
        return [moving.speed**3]


class Harmonics(PointwiseLaw):
    """Torque that repeats with the joint's turn: cos kq and sin kq (sensor offsets, eccentric gears).

    Scales are the harmonics k.
    """

    name = "harmonics"
    example = "1,2"

    def __init__(self, *scales: float, only: tuple[str, ...] | None = None) -> None:
        super().__init__(*scales, only=only)
        self._check_scales("a number of waves per turn")

    def kinds(self) -> tuple[Kind, ...]:
        """Two columns for each number of waves."""
        return tuple(
            _torque_kind(f"{self.name}{k:g}{part[0]}", f"torque with {k:g} waves per turn ({part})")
            for k in self.scales
            for part in ("cosine", "sine")
        )

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """Cosine and sine of each."""
        angle = moving.position / units
        return [wave(k * angle) for k in self.scales for wave in (np.cos, np.sin)]


class Ripple(Harmonics):
    """Gear ripple: waves per turn that a gear's teeth or flexspline make, as given or as found in residuals."""

    name = "ripple"
    example = "30.65"


class Jerk(_WithoutScales):
    """What a springy drive adds: torque with the third derivative of position."""

    name = "jerk"
    needs_jerk = True

    def kinds(self) -> tuple[Kind, ...]:
        """One column."""
        return (Kind("jerk", "torque per jerk (springy drive)", "kg·m²·s", "kg·s"),)

    def at(self, moving: Moving, units: Array) -> list[Array]:
        """The jerk itself."""
        return [moving.jerk]


FRICTION_TERMS: tuple[type[ElementLaw], ...] = (
    Stop,
    Stribeck,
    SmoothSign,
    LoadCoulomb,
    LoadViscous,
    Asymmetric,
    Quadratic,
    Cubic,
    Harmonics,
    Ripple,
    Jerk,
)
