"""Which friction a model has: recipes by name, the groups that a selection may add or drop, lists from a user.

The generic recipes are what helped on every arm that was looked at, by where torque was measured. Behind a motor the
gear's friction is in the torque, with its memory, its growth with load and its curve. A sensor on the link side sees
little of it, but sees how the base stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dynident.dynamics.along import AlongTerm
from dynident.dynamics.terms import TERMS, Term, TermsLike, resolve_terms, split_terms
from dynident.errors import InputError, UnknownNameError

Side = Literal["motor", "sensor"]
BASIC_TERMS = "rigid,Ia,Fv,Fc(0.02),Fo"  # the sign of the velocity is smoothed below 0.02 rad/s, 0.002 m/s
RECIPES = ("auto", "basic", "generic", "full")


@dataclass(frozen=True)
class Group:
    """Columns that are added or dropped together: one term with one of its scales.

    Attributes:
        name: Name of the term.
        scales: Its numbers here.
        sides: Whose generic recipe has it.
    """

    name: str
    scales: tuple[float, ...]
    sides: tuple[Side, ...] = ()

    @property
    def key(self) -> str:
        """The term with just this group's numbers."""
        return f"{self.name}({','.join(f'{x:g}' for x in self.scales)})" if self.scales else self.name


GROUPS = (
    Group("stop", (0.003,), ("motor", "sensor")),
    Group("stop", (0.0003,), ("motor",)),
    Group("stribeck", (0.2,), ("motor", "sensor")),
    Group("stribeck", (0.5,), ("motor",)),
    Group("sign", (0.2,), ("motor",)),
    Group("load", (), ("motor",)),
    Group("tilt", (), ("sensor",)),
    Group("sign", (0.005,)),  # dry friction changes faster than the basic sign: not to be told as a curve
    Group("stop", (0.001,)),
    Group("loadv", ()),
    Group("quadratic", ()),
    Group("cubic", ()),
    Group("asymmetric", ()),
    Group("harmonics", (1.0, 2.0)),
    Group("zero", ()),
    Group("jerk", ()),
)


def terms_of(groups: Iterable[Group], only: Sequence[str] | None = None) -> tuple[Term, ...]:
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
    return type(term)(*term.scales, only=tuple(labels))


def replace_only(term: Term, labels: Sequence[str] | None) -> Term:
    """A term for these elements, whatever it was for; None leaves it alone."""
    return term if labels is None or not isinstance(term, AlongTerm) else type(term)(*term.scales, only=tuple(labels))


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
            beside = [name for name, term in TERMS.items() if issubclass(term, AlongTerm)]
            raise UnknownNameError("friction", friction, [*RECIPES, *beside]) from None
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
