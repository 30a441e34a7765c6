"""Which friction a model has: recipes by name, the groups that a selection may add or drop, lists from a user.

The generic recipes are what helped on every arm that was looked at, by where torque was measured. Behind a motor the
gear's friction is in the torque, with its memory, its growth with load and its curve. A sensor on the link side sees
little of it, but sees how the base stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.terms import ALONG_TERM_NAMES, Term, TermsLike, along_terms, resolve_terms, split_terms
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.term import AlongTerm
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.prediction import TorqueModel
from dynident.signals.observations import Observations

Side = Literal["motor", "sensor"]
BASIC_TERMS = "rigid,Ia,Fv,Fc(0.02),Fo"  # the sign of the velocity is smoothed below 0.02 rad/s, 0.002 m/s
RECIPES = ("auto", "basic", "generic", "full")


@dataclass(frozen=True)
class CandidateGroup:
    """Columns that are added or dropped together: one term with one of its scales.

    Attributes:
        name: Name of the term.
        scales: Its numbers here.
        sides: Whose generic recipe has it.
        steep: Whether it grows faster than the velocity. Little of it fits a motion, and explodes in a faster one, so
            predictions have it only where it is asked for.
    """

    name: str
    scales: tuple[float, ...]
    sides: tuple[Side, ...] = ()
    steep: bool = False

    @property
    def key(self) -> str:
        """The term with just this group's numbers."""
        return f"{self.name}({','.join(f'{x:g}' for x in self.scales)})" if self.scales else self.name


GROUPS = (
    CandidateGroup("stop", (0.003,), ("motor", "sensor")),
    CandidateGroup("stop", (0.0003,), ("motor",)),
    CandidateGroup("stribeck", (0.2,), ("motor", "sensor")),
    CandidateGroup("stribeck", (0.5,), ("motor",)),
    CandidateGroup("sign", (0.2,), ("motor",)),
    CandidateGroup("load", (), ("motor",)),
    CandidateGroup("tilt", (), ("sensor",)),
    CandidateGroup("sign", (0.005,)),  # dry friction changes faster than the basic sign: not to be reported as a curve
    CandidateGroup("stop", (0.001,)),
    CandidateGroup("loadv", (), steep=True),
    CandidateGroup("loadstribeck", (0.2,)),
    CandidateGroup("quadratic", (), steep=True),
    CandidateGroup("cubic", (), steep=True),
    CandidateGroup("asymmetric", ()),
    CandidateGroup("harmonics", (1.0, 2.0)),
    CandidateGroup("stiffness", ()),
    CandidateGroup("zero", ()),
    CandidateGroup("jerk", ()),
)


def terms_of(groups: Iterable[CandidateGroup], only: Sequence[str] | None = None) -> tuple[Term, ...]:
    """Terms for some groups; scales of one term are put together.

    Args:
        groups: The groups.
        only: Labels of the elements they are for; None for all.
    """
    scales: dict[str, list[float]] = {}
    for group in groups:
        scales.setdefault(group.name, []).extend(group.scales)
    keys = [name + (f"({','.join(f'{x:g}' for x in sorted(own))})" if own else "") for name, own in scales.items()]
    if not keys:
        return ()
    terms = resolve_terms(keys)
    return terms if only is None else tuple(on_elements(term, only) for term in terms)


def on_elements(term: Term, labels: Sequence[str]) -> Term:
    """A term for some elements alone; tilt and zeros are not of elements, and a term that was for some stays so."""
    if not isinstance(term, AlongTerm) or term.name in ("tilt", "zero") or term.only is not None:
        return term
    return term.restricted_to(labels)


def replace_only(term: Term, labels: Sequence[str] | None) -> Term:
    """A term for these elements, whatever it was for; None leaves it alone."""
    return term if labels is None or not isinstance(term, AlongTerm) else term.restricted_to(labels)


def parse_friction(friction: str | TermsLike) -> str | tuple[Term, ...]:
    """A recipe's name, or the terms of a list such as `stop(0.0003),load`; without `ripple`, see `looks_for_ripple`."""
    if isinstance(friction, str) and friction.strip() in RECIPES:
        return friction.strip()
    listed = [part for part in _parts(friction) if part != "ripple"]
    if not listed:
        return ()
    try:
        return resolve_terms(listed)
    except UnknownNameError as error:
        alone = [name for name in RECIPES if isinstance(friction, str) and name in friction.split(",")]
        if alone:
            raise InputError(f"friction '{friction}': {alone[0]} is a recipe and stands alone, or list terms") from None
        if isinstance(friction, str) and "," not in friction and "(" not in friction:
            raise UnknownNameError("friction", friction, [*RECIPES, *ALONG_TERM_NAMES]) from None
        raise error


def looks_for_ripple(friction: str | TermsLike) -> bool:
    """Whether gear ripple is to be looked for: the list has `ripple` without a number."""
    return "ripple" in _parts(friction)


def _parts(friction: str | TermsLike) -> list[str | Term]:
    if friction is None or isinstance(friction, Term):
        return [] if friction is None else [friction]
    if isinstance(friction, str):
        return list(split_terms(friction))
    return (
        list(friction) if isinstance(friction, Iterable) else list(resolve_terms(friction))
    )  # which says what is wrong


# ----------------------------------------------------------------------------------------------------------------------
# Gear ripple: waves per turn of a joint in the torque that a model leaves unexplained.
#
# A gear repeats with its position and not with time. So the residual is transformed over position: a wave of f per
# radian
# adds up in sum r exp(-i f q), whatever the velocity. It is believed where it stands far out of its neighborhood.

SLOWEST, FASTEST = 5.0, 200.0  # waves per turn that are looked for; slower ones are harmonics of the joint itself
STANDS_OUT = 20.0  # times the median power of its neighborhood
LEAST_SHARE = 0.1  # of the residual, in amplitude over effective value
_SEEN = 0.3  # share of the samples in motion at which a wave must pass slowly enough to be seen
_NEIGHBOURS = 40  # frequencies on each side
_PER_RESOLUTION = 3.0  # frequencies tried for each that the range of motion can distinguish
_PER_BAND = 4.0  # samples per second, in units of the band
_LEAST_SAMPLES = 100.0  # at which a wave must be seen
_MOST_SAMPLES = 8_000  # of each log: minutes are enough
_BLOCK = 256  # samples at a time: tables of waves times samples stay in the cache


@dataclass(frozen=True)
class RippleFound:
    """A wave in the residual of an element.

    Attributes:
        label: The element.
        waves: Per turn, as `ripple(..)` takes them.
        amplitude: [N·m or N].
        ratio: Power over the median of its neighborhood.
    """

    label: str
    waves: float
    amplitude: float
    ratio: float


@on_one_thread
def find_ripple(model: TorqueModel, observations: Sequence[Observations]) -> tuple[RippleFound, ...]:
    """The clearest wave of each element, where one stands out.

    Args:
        model: The robot with values, such as those of a fit.
        observations: Logs with torque.
    """
    law, robot = FrictionTerm("ripple", SLOWEST), model.robot
    elements, directions = law.elements(robot), law.directions(robot)
    units = np.array([element.radian for element in elements])
    tables = [_Table.of(observations, direction / unit) for direction, unit in zip(directions, units, strict=True)]
    rows = [int(np.argmax(np.abs(element.torque[list(robot.moving)]))) for element in elements]
    for one in observations:
        course, seen = model.start(), 0
        for motion in one.for_terms(along_terms(model.terms)).motion():
            thin = max(1, int(motion.rate / (_PER_BAND * one.band)))  # what lies closer says the same again
            residual = (motion.tau[0] - course.torque(motion))[::thin]
            inner, q, dq = motion.inner[::thin], motion.q[::thin], motion.dq[::thin]
            for table, row, direction, unit in zip(tables, rows, directions, units, strict=True):
                velocity = np.abs(dq @ direction)
                used = (velocity > one.options.rest_velocity) & inner
                table.add(q[used] @ direction / unit, velocity[used] / unit, residual[used, row], one.band)
            seen += len(motion)
            if seen > _MOST_SAMPLES:
                break
    found = [table.clearest(element.label) for table, element in zip(tables, elements, strict=True)]
    return tuple(one for one in found if one is not None)


class _Table:
    """Sums over the samples for one element, at all frequencies."""

    def __init__(self, waves: Array) -> None:
        self.waves = waves
        self.sums = np.zeros(len(waves), dtype=complex)
        self.counts, self.squares = np.zeros(len(waves)), np.zeros(len(waves))
        self.n = 0

    @staticmethod
    def of(observations: Sequence[Observations], direction: Array) -> _Table:
        """Frequencies as close as the widest motion can distinguish them."""
        widest = max(float(np.abs(direction) @ (one.survey.highest - one.survey.lowest)) for one in observations)
        if widest < 2.0 * np.pi / SLOWEST:
            return _Table(np.zeros(0))
        return _Table(np.arange(SLOWEST, FASTEST, 2.0 * np.pi / widest / _PER_RESOLUTION))

    def add(self, position: Array, velocity: Array, residual: Array, band: float) -> None:
        """More samples; a wave counts where it passes slowly enough for the filters."""
        self.n += len(position)
        for first in range(0, len(position), _BLOCK):
            own = slice(first, first + _BLOCK)
            seen = np.outer(self.waves, velocity[own]) < 2.0 * np.pi * band
            counted = seen * residual[own]
            self.sums += np.einsum("fs,fs->f", self._turned(position[own]), counted)
            self.counts += np.count_nonzero(seen, axis=1)
            self.squares += counted @ residual[own]

    def _turned(self, position: Array) -> NDArray[np.complex128]:
        """exp(-i f q) at all frequencies, which are evenly spaced: the second half of them is the first one turned."""
        n = len(self.waves)
        turned = np.empty((n, len(position)), dtype=complex)
        turned[:1] = np.exp(-1j * np.outer(self.waves[:1], position))
        done = 1
        while done < n:
            more = min(done, n - done)
            step = np.exp(-1j * (self.waves[done] - self.waves[0]) * position)
            np.multiply(turned[:more], step, out=turned[done : done + more])
            done += more
        return turned

    def clearest(self, label: str) -> RippleFound | None:
        """The wave that stands out most, or None."""
        known = self.counts > max(_SEEN * self.n, _LEAST_SAMPLES)
        if np.count_nonzero(known) < 2 * _NEIGHBOURS:
            return None
        waves, counts, squares = self.waves[known], self.counts[known], self.squares[known]
        sums = np.abs(self.sums[known])
        power = sums**2 / np.maximum(squares, 1e-300)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(power, _NEIGHBOURS, "reflect"), 2 * _NEIGHBOURS + 1)
        ratio = power / np.maximum(np.median(windows, axis=1), 1e-300)
        best = int(np.argmax(ratio))
        amplitude = 2.0 * float(sums[best] / counts[best])
        effective = float(np.sqrt(squares[best] / counts[best]))
        if best in (0, len(waves) - 1) or ratio[best] < STANDS_OUT or amplitude < LEAST_SHARE * effective:
            return None
        return RippleFound(label, float(waves[best]), amplitude, float(ratio[best]))
