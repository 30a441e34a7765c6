"""Which of a robot's values a format can hold, and in words which it cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, ReadOnlyDict, frozen
from dynident.dynamics.terms import Coulomb, TermsLike, all_columns, resolve_terms
from dynident.errors import InputError, UnknownNameError
from dynident.export.verification import ExportError
from dynident.plant.mjcf_writer import Place, element_places
from dynident.robot.model import Element, Robot
from dynident.robot.parameters import ELEMENT_SYMBOLS, to_classical
from dynident.robot.physicality import violations
from dynident.robot.springs import Spring

_WORDS = {"Ia": "rotor inertia", "Fv": "viscous friction", "Fc": "Coulomb friction", "Fo": "torque offset"}


@dataclass(frozen=True)
class Holding:
    """A robot's values as joint attributes, and what is left over.

    Attributes:
        values: Standard values that the file holds; all others are zero in it.
        inertia, viscous, coulomb: (n_active,) of each actuated joint, at the joint.
        lost: What the format cannot hold, in words.
    """

    values: Mapping[str, float]
    inertia: Array
    viscous: Array
    coulomb: Array
    lost: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", ReadOnlyDict(self.values))
        for name in ("inertia", "viscous", "coulomb"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


def standard_values(
    robot: Robot, values: Mapping[str, float], terms: TermsLike = None
) -> tuple[dict[str, float], list[str]]:
    """The standard values among given ones, known values included, and in words what stands beside them.

    Args:
        robot: The robot.
        values: By parameter name: those of the robot, and those of `terms`.
        terms: Terms of the fit; default rigid, Ia, Fv, Fc, Fo.
    """
    resolved = resolve_terms(terms, robot)
    own = robot.parameter_names
    known = dict.fromkeys((*own, *(column.name for column in all_columns(robot, resolved))))
    for name, value in values.items():
        if name not in known:
            raise UnknownNameError("parameter", str(name), known)
        if isinstance(value, str) or not np.isfinite(value):
            raise InputError(f"parameter {name} is {value}; expected a finite number")
    standard = {name: float(values[name]) for name in own if name in values}
    beyond = [name for name in values if name not in own and values[name]]
    words = [f"further friction {', '.join(beyond)}"] if beyond else []
    words += [
        f"smoothing of Coulomb friction {_widths(robot, term)}: it changes sign at once in the file"
        for term in resolved
        if isinstance(term, Coulomb) and any(term.width(element) for element in term.elements(robot))
    ]
    return {**standard, **robot.fixed}, words


def _widths(robot: Robot, term: Coulomb) -> str:
    """Velocities below which Coulomb friction is smoothed, in words."""
    widths = sorted({(element.prismatic, term.width(element)) for element in term.elements(robot)})
    parts = []
    for unit, kind in (("rad/s", False), ("m/s", True)):
        own = [f"{width:.3g}" for slides, width in widths if slides is kind]
        if own:
            parts.append(f"{own[0]} {unit}" if len(own) == 1 else f"{own[0]} to {own[-1]} {unit}")
    return f"below {' and '.join(parts)}"


def with_all_joints_free(robot: Robot) -> Robot:
    """The robot with every joint free: a joint held during an experiment still moves in the machine."""
    return dataclasses.replace(robot, locked={}) if robot.locked else robot


def no_spring(spring: Spring) -> bool:
    """A format without springs."""
    return False


def on_joints(
    robot: Robot,
    values: Mapping[str, float],
    form: str,
    *,
    rotors: bool,
    spring_holder: Callable[[Spring], bool] = no_spring,
) -> Holding:
    """Rotor inertia and friction as attributes of single joints.

    Args:
        robot: The robot, no joint locked.
        values: Standard values.
        form: Name of the format, for the words.
        rotors: Whether it has a place for rotor inertia.
        spring_holder: Whether it has a place for a spring.
    """
    places = {place.label: place for place in element_places(robot, values)}
    numbers = {symbol: np.zeros(len(robot.active)) for symbol in ("Ia", "Fv", "Fc")}
    carried: dict[tuple[str, int], list[str]] = {}
    lost: dict[str, list[str]] = {}
    for element, symbol, name in named_parts(robot, values):
        reason = _reason(symbol, places.get(element.label), form, rotors) or _passive_reason(
            places[element.label], values[name], form, len(robot.active)
        )
        if reason:
            lost.setdefault(f"{_WORDS[symbol]}{{}}: {reason}", []).append(name)
            continue
        place = places[element.label]
        joint = place.joint
        assert joint is not None
        assert place.share is not None
        scale = abs(float(place.direction[joint]))
        numbers[symbol][joint] += place.share * values[name] * (scale if symbol == "Fc" else scale * scale)
        carried.setdefault((symbol, joint), []).append(name)
    for (symbol, joint), names in carried.items():
        if numbers[symbol][joint] < 0.0:
            numbers[symbol][joint] = 0.0
            lost.setdefault(f"{_WORDS[symbol]}{{}}: is negative, which {form} does not allow", []).extend(names)
    for spring in robot.springs:
        names = [name for name in spring.names if values.get(name, 0.0)]
        if names and not spring_holder(spring):
            lost.setdefault(f"spring{{}}: {form} has no place for it", []).extend(names)
    gone = {name for names in lost.values() for name in names}
    kept = {name: 0.0 if name in gone else value for name, value in values.items()}
    words = tuple(key.format(" " + ", ".join(names)) for key, names in lost.items())
    return Holding(kept, numbers["Ia"], numbers["Fv"], numbers["Fc"], words)


def named_parts(robot: Robot, values: Mapping[str, float]) -> Iterable[tuple[Element, str, str]]:
    """Element, symbol and name of every value of an element that is not zero."""
    for symbol in ELEMENT_SYMBOLS:
        for element in robot.elements:
            name = element.names.get(symbol)
            if name is not None and values.get(name, 0.0):
                yield element, symbol, name


def _reason(symbol: str, place: Place | None, form: str, rotors: bool) -> str:
    """Why a format whose friction is that of single joints cannot hold a value; empty where it can."""
    if symbol == "Fo" or (symbol == "Ia" and not rotors):
        return f"{form} has no place for it"
    if place is None or place.joint is None:
        return f"it acts along several joints, {form} has friction and inertia of single joints only"
    if place.share is None:
        return f"it pushes in another direction than it moves, for which {form} has no place"
    return ""


def _passive_reason(place: Place, value: float, form: str, n_active: int) -> str:
    """Why a format cannot hold a value of a joint that a loop moves; empty for joints with a motor."""
    if place.joint is None or place.joint < n_active:
        return ""
    return (
        f"is negative, which {form} does not allow"
        if value < 0.0
        else f"is of a joint without a motor, for which {form} has no place"
    )


def beside_the_tree(robot: Robot, form: str, kept: Robot | None, locked: Mapping[int, float]) -> list[str]:
    """What stands beside the tree in a robot and not in a file.

    Args:
        robot: The robot.
        form: Name of the format.
        kept: The robot of the user's file that is kept, None for a new file.
        locked: Joints that were held.
    """
    n = len(robot.active)
    words = []
    if not np.array_equal(robot.coupling, np.eye(n) if kept is None else kept.coupling):
        words.append("coupling of the motors: torque in the file is at the joints, not at the motors")
    ratios = np.ones(n) if kept is None else kept.drive.gear_ratios
    if not np.array_equal(robot.drive.gear_ratios, ratios):
        words.append("gear ratios")
    if robot.drive.gains is not None:
        words.append("drive gains")
    if robot.zero.any():
        words.append("offsets between motor and joint zeros")
    usual = kept.gravity if kept is not None else [0.0, 0.0, -9.81] if form == "URDF" else robot.gravity
    if not np.array_equal(robot.gravity, usual):
        gravity = " ".join(f"{x:g}" for x in robot.gravity)
        words.append(f"gravity ({gravity}) m/s²: set it where the file is used")
    if kept is None and form != "MJCF" and robot.tool is not None:
        rotation, origin = robot.tool[1].rotation, robot.tool[1].translation
        words += ["tool frame"] if origin.any() or not np.array_equal(rotation, np.eye(3)) else []
    if locked:
        names = ", ".join(f"{robot.joints[robot.active[i]].name} at {x:g}" for i, x in sorted(locked.items()))
        words.append(f"joints that were held ({names}): they move in the file")
    return words


# ----------------------------------------------------------------------------------------------------------------------
# A link's identified parameters on the bodies of a file: what is fixed to it may have bodies of its own.

_SAME = 1e-12  # share of its own size by which a number may differ and still be the one in the file


def split_link(link: Array, fixed: Mapping[str, Array], label: str) -> tuple[Array, tuple[str, ...]]:
    """Bodies fixed to a link keep what they have and the link's own body gets the rest, or all of it.

    Args:
        link: (10,) parameters of the whole link, in its frame.
        fixed: Parameters of the bodies fixed to it, in the same frame, by name.
        label: The link, for messages.

    Returns:
        (10,) parameters of the body that moves with the joint itself; names of the bodies fixed to it that give theirs
        to it.
    """
    heavy = {name: chi for name, chi in fixed.items() if np.any(chi)}
    rest = link - sum(heavy.values(), np.zeros(10))
    if not heavy or not (violations(rest, label) or not rest[9] > 0.0):
        return rest, ()
    return link, tuple(heavy)


def same(new: Array, old: Array) -> bool:
    """Whether two links' parameters (10,) differ by rounding alone: inertia, first moment and mass each."""
    blocks = (slice(0, 6), slice(6, 9), slice(9, 10))
    return all(np.abs(new[b] - old[b]).max() <= _SAME * np.abs(old[b]).max() for b in blocks)


def classical(chi: Array, label: str, form: str) -> tuple[float, Array, Array]:
    """Mass [kg], center of mass (3,) [m] and inertia about it (3, 3) [kg·m²], as files have them.

    Raises:
        ExportError: For parameters that have no such form: without mass there is no center of it.
    """
    mass, center, inertia = to_classical(chi)
    if mass < 0.0 or (mass == 0.0 and np.any(chi)):
        raise ExportError(
            f"{label}: mass is {float(mass):.4g} kg, and {form} describes bodies that have some; base parameters alone "
            "are no bodies, export the values of a physically consistent fit"
        )
    return float(mass), center, inertia


def text(*numbers: float) -> str:
    """Numbers that are read back to the last bit."""
    return " ".join(repr(float(x) + 0.0) for x in numbers)
