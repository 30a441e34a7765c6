"""Terms by their keys: a name, its numbers in brackets, and the elements that have it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dynident.dynamics.terms.basic import Coulomb, Offset, Rigid, RotorInertia, Viscous
from dynident.dynamics.terms.friction import FrictionTerm
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.dynamics.terms.linearized import LINEARIZED_TERMS
from dynident.dynamics.terms.springs import Springs
from dynident.dynamics.terms.temperature import TemperatureFriction
from dynident.dynamics.terms.term import AlongTerm, Term
from dynident.errors import InputError, UnknownNameError
from dynident.robot.model import Robot

STATE_TERMS: tuple[type[Term], ...] = (Rigid, RotorInertia, Viscous, Coulomb, Offset, Springs)
_BESIDE_LAWS: tuple[type[AlongTerm], ...] = (*LINEARIZED_TERMS, TemperatureFriction)
_OWN_CLASS: dict[str, type[Term]] = {term.name: term for term in (*STATE_TERMS, *_BESIDE_LAWS)}
ALONG_TERM_NAMES = (*FRICTION_LAWS, *(term.name for term in _BESIDE_LAWS))
TERM_NAMES = (*(term.name for term in STATE_TERMS), *ALONG_TERM_NAMES)
DEFAULT_TERMS = ("rigid", "Ia", "Fv", "Fc", "Fo")
TermsLike = str | Iterable["str | Term"] | None
_KEY = re.compile(r"(?P<name>\w+)(\((?P<options>[^()]*)\))?(@(?P<places>[\w|]+))?")


def resolve_terms(terms: TermsLike = None, robot: Robot | None = None) -> tuple[Term, ...]:
    """Terms from names (`"rigid,Ia,stop(0.0003,0.003)"` or a sequence), term objects, or None for the default ones.

    Args:
        terms: The terms.
        robot: Whose springs, where it declares some, are among the default terms.
    """
    if terms is None:
        terms = with_springs(DEFAULT_TERMS, robot)
    if isinstance(terms, str):
        terms = split_terms(terms)
    if isinstance(terms, Term):
        terms = [terms]
    if not isinstance(terms, Iterable):
        raise InputError(f"terms is {terms!r}; expected names such as 'rigid,Ia' or a sequence of terms")
    resolved = tuple(term if isinstance(term, Term) else _term(str(term)) for term in terms)
    names = [term.name for term in resolved]
    if not names:
        raise InputError(f"no terms given; choose among {', '.join(TERM_NAMES)}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"term {name} is given twice")
    return resolved


def with_springs(names: Sequence[str], robot: Robot | None) -> tuple[str, ...]:
    """Names of terms, and the springs of a robot that has some."""
    return (*names, Springs.name) if robot is not None and robot.springs else tuple(names)


def stored_terms(robot: Robot, keys: Iterable[str]) -> tuple[Term, ...]:
    """Terms from what `Term.key_on` gave: a single smoothing of Fc is that of every joint, in the joint's own unit."""
    if any(element.prismatic for element in Coulomb().elements(robot)):
        keys = [re.sub(r"Fc\(([^,=]+)\)", r"Fc(\1,\1)", key) for key in keys]
    return resolve_terms(keys)


def split_terms(text: str) -> list[str]:
    """The names in a list; commas within brackets part numbers."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text)]


def _term(text: str) -> Term:
    """A term from its key: a name, its numbers in brackets, and the elements it is for: Fc(0.02), stop(0.001)@1|m6."""
    found = _KEY.fullmatch(text.strip())
    name = text.partition("(")[0].partition("@")[0].strip()
    if name not in TERM_NAMES:
        raise UnknownNameError("term", name, TERM_NAMES)
    options, places = (None, None) if found is None else (found["options"], found["places"])
    if name == Coulomb.name and options is not None and "=" in options:
        return Coulomb(widths=_widths(text, options))
    try:
        numbers = () if options is None else tuple(float(part) for part in options.split(","))
    except ValueError:
        found = None
    if found is None:
        raise InputError(f"term '{text}' cannot be understood; expected a name, numbers in brackets: Fc(0.02)")
    only = None if places is None else tuple(places.split("|"))
    if name in FRICTION_LAWS:
        return FrictionTerm(name, *numbers, only=only)
    kind = _OWN_CLASS[name]
    if issubclass(kind, AlongTerm):
        return kind(*numbers, only=only)
    if places is not None or len(numbers) > (2 if kind is Coulomb else 0):
        smoothing = "its smoothing [rad/s, m/s on slides]: Fc(0.02) or Fc(0.02,0.002)"
        taken = smoothing if kind is Coulomb else "no options"
        raise InputError(f"term '{text}' cannot be understood; {name} takes {taken}")
    return kind(*numbers) if numbers else kind()


def _widths(text: str, options: str) -> dict[str, float]:
    """Widths of dry friction by element: 1=0.003,m6=0.02."""
    try:
        pairs = [part.split("=") for part in options.split(",")]
        return {label.strip(): float(number) for label, number in pairs}
    except ValueError:
        raise InputError(
            f"term '{text}' cannot be understood; expected widths by element [rad/s or m/s]: Fc(1=0.003,m6=0.02)"
        ) from None


def state_terms(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms that are functions of the state."""
    return tuple(term for term in terms if not isinstance(term, AlongTerm))


def along_terms(terms: Sequence[Term]) -> tuple[AlongTerm, ...]:
    """The terms that see the motion along time, or need a linearization point."""
    return tuple(term for term in terms if isinstance(term, AlongTerm))
