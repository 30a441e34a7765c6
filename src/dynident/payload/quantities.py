"""What a robot can show of a payload at all, and which of its own joints show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread, record
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.excitation_quality import Help, helpful_for_each
from dynident.payload.problem import payload_matrix
from dynident.payload.thresholds import THRESHOLDS
from dynident.robot.parameters import to_classical

_ROUNDING = 1e-9  # share of what is largest: singular values that are zero, inertia by which a thin body misses physics
_MAX_NAMED_WAYS = 3  # ways to move that are named


@record
class PayloadAdvice:
    """The null space of a payload, and how to move for the rest.

    Attributes:
        hidden: (10, n_hidden) directions of the standard parameters that no motion shows, as unit vectors.
        units: (10,) what the parameters are measured in there: they change by direction / unit.
        remedies: What to do for each standard parameter, in words; ten.
    """

    hidden: Array
    units: Array
    remedies: tuple[str, ...]


@on_one_thread
def null_space(rows: Array) -> tuple[Array, Array]:
    """Directions that rows over ten standard parameters leave open, (10, n_hidden), and the columns' norms, (10,)."""
    norms = np.linalg.norm(rows, axis=0)
    present = norms > _ROUNDING * max(float(norms.max()), 1e-300)
    units = np.where(present, norms, 1.0)
    _, sizes, right = np.linalg.svd(np.where(present, rows / units, 0.0), full_matrices=True)
    rank = int(np.sum(sizes > _ROUNDING * max(float(sizes[0]), 1e-300)))
    return right[rank:].T, units


def payload_advice(base: BaseParameters, sigma: Array | None = None) -> PayloadAdvice:
    """What a robot's equations tell about a body on its tool.

    A body adds L pi to the base parameters; what lies in the null space of L never reaches the torque.

    Args:
        base: The robot's base parameters.
        sigma: (n_joints,) standard deviation of the torque noise [N·m or N], by which ways to move are compared;
            default the same for all.
    """
    L = payload_matrix(base)
    hidden, units = null_space(L)
    noise = np.ones(len(base.robot.joint_names)) if sigma is None else np.where(sigma > 0.0, sigma, 1.0)
    ways = helpful_for_each(base, L, noise)
    return PayloadAdvice(hidden, units, tuple(_remedy(own) for own in ways))


def _remedy(ways: tuple[Help, ...]) -> str:
    if not ways:
        return "record longer"
    best = ", ".join(f"{one.joint} {one.way}" for one in ways[:_MAX_NAMED_WAYS])
    return f"best shown by {best}; do more of it, or record longer"


# ----------------------------------------------------------------------------------------------------------------------
# The ten numbers of a payload that people use, each with its standard deviation, and which of them the motion supports.

NUMBER_NAMES = ("mass", "cx", "cy", "cz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
_MIN_UNDETERMINED_SHARE = 1e-6  # share of a number that lies in directions which the data leaves open
_ROWS, _COLUMNS = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])  # of the six inertias
_SYMBOLS = (0, 3, 5, 1, 2, 4)  # their places among XX XY XZ YY YZ ZZ


_KINDS = (  # name, unit, and the share of a scale that its standard deviation must stay below
    ("mass", "kg", THRESHOLDS.mass_share, "the mass"),
    *((name, "m", THRESHOLDS.center_share, "the body's size") for name in NUMBER_NAMES[1:4]),
    *(
        (name, "kg·m²", THRESHOLDS.inertia_share, "the largest moment of inertia that is known")
        for name in NUMBER_NAMES[4:]
    ),
)
_REMEDY = "move the payload faster and through more poses, or record longer"
_HIDDEN = "no motion of this robot shows it; take it from a drawing"
_STANDARD = (9, 6, 7, 8, *_SYMBOLS)  # the standard parameter that each of the ten numbers depends on most


@dataclass(frozen=True)
class PayloadNumber:
    """One number of a payload.

    Attributes:
        name: mass; cx, cy, cz; Ixx .. Iyz.
        value: None where the motion does not support it.
        std: Its standard deviation; None where it is withheld.
        unit: Its unit.
        reason: Why it is withheld; empty where it is not.
        doubt: The standard deviation that made it withheld; None where it is not, or where nothing is known.
    """

    name: str
    value: float | None
    std: float | None
    unit: str
    reason: str = ""
    doubt: float | None = None

    def as_dict(self) -> dict[str, float | str | None]:
        """Plain data."""
        return {"name": self.name, "value": self.value, "std": self.std, "unit": self.unit}


def classical_numbers(standard: Array) -> Array:
    """mass, center and inertia about it (Ixx Iyy Izz Ixy Ixz Iyz), (10,), from standard parameters (10,)."""
    mass, center, inertia = to_classical(standard)
    return np.array([float(mass), *center, *inertia[_ROWS, _COLUMNS]])


def classical_jacobian(standard: Array) -> Array:
    """Derivative of `classical_numbers` by the standard parameters, (10, 10); the mass must not be zero."""
    mass, s = standard[9], standard[6:9]
    J = np.zeros((10, 10))
    J[0, 9] = 1.0
    J[1:4, 6:9], J[1:4, 9] = np.eye(3) / mass, -s / mass**2
    for place, (i, j, own) in enumerate(zip(_ROWS, _COLUMNS, _SYMBOLS, strict=True), start=4):
        J[place, own] = 1.0
        same = float(i == j)
        J[place, 9] = (same * (s @ s) - s[i] * s[j]) / mass**2
        J[place, 6:9] = -2.0 * same * s / mass
        J[place, 6 + i] += s[j] / mass
        J[place, 6 + j] += s[i] / mass
    return J


def payload_numbers(
    standard: Array, covariance: Array, null_space: Array, units: Array, advice: PayloadAdvice | None = None
) -> tuple[tuple[PayloadNumber, ...], tuple[str, ...]]:
    """The ten numbers, those without support withheld, and warnings that say why.

    Args:
        standard: (10,) standard parameters in the tool frame.
        covariance: (10, 10) of them.
        null_space: (10, n_open) directions that the data leaves open, as parts of unit vectors.
        units: (10,) norms of the data's columns: the parameters change by direction / unit.
        advice: What the robot can show at all, and how to move for it; words without a robot where it is not known.
    """
    remedies = [_REMEDY if advice is None else advice.remedies[place] for place in _STANDARD]
    mass, spread = float(standard[9]), float(np.sqrt(max(covariance[9, 9], 0.0)))
    if np.abs(null_space[9]).max(initial=0.0) > _MIN_UNDETERMINED_SHARE:
        never = advice is not None and np.abs(advice.hidden[9]).max(initial=0.0) > _MIN_UNDETERMINED_SHARE
        why = "no motion of this robot determines it" if never else f"the motion does not determine it; {remedies[0]}"
        return _nothing(f"they depend on the mass, and {why}")
    if mass <= max(THRESHOLDS.min_mass_std * spread, 0.0):
        found = f"mass is {mass:.3g} kg with a standard deviation of {spread:.2g} kg"
        return _nothing(f"{found}, which cannot be distinguished from no payload; are these logs of the loaded robot?")
    values, J = classical_numbers(standard), classical_jacobian(standard)
    std = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", J, covariance, J), 0.0))
    std[_along(J / units, null_space)] = np.inf
    if advice is not None:
        never = _along(J / advice.units, advice.hidden)
        std[never] = np.inf
        remedies = [_HIDDEN if hidden else words for hidden, words in zip(never, remedies, strict=True)]
    evaluated = zip(_KINDS, values.tolist(), std.tolist(), _scales(values, std), remedies, strict=True)
    numbers = [_assess(*one) for one in evaluated]
    numbers, warnings = _physical(numbers, J @ covariance @ J.T)
    return tuple(numbers), (*_withheld(numbers), *warnings)


def _along(gradients: Array, directions: Array) -> Mask:
    """(10,) which numbers change along one of some directions by more than rounding of what they can change at all."""
    moved = np.abs(gradients @ directions).max(axis=1, initial=0.0)
    return np.asarray(moved > _MIN_UNDETERMINED_SHARE * np.linalg.norm(gradients, axis=1))


def _nothing(reason: str) -> tuple[tuple[PayloadNumber, ...], tuple[str, ...]]:
    numbers = [PayloadNumber(name, None, None, unit, reason) for name, unit, _, _ in _KINDS]
    return tuple(numbers), _withheld(numbers)


def _scales(values: Array, std: Array) -> list[float]:
    """What an std is a share of: the mass, the size of the body, its largest moment that is known; ten."""
    size = max(float(np.linalg.norm(values[1:4])), float(np.cbrt(values[0] / THRESHOLDS.body_density)))
    known = std[4:7] <= THRESHOLDS.inertia_share * values[4:7]  # one that is noise would make the others look certain
    return [float(values[0]), *(size,) * 3, *(float(values[4:7][known].max(initial=0.0)),) * 6]


def _assess(kind: tuple[str, str, float, str], value: float, std: float, scale: float, remedy: str) -> PayloadNumber:
    name, unit, share, scale_name = kind
    if std <= share * scale:
        return PayloadNumber(name, value, std, unit)
    if not np.isfinite(std):
        reason = remedy if remedy == _HIDDEN else f"the motion does not determine it; {remedy}"
        return PayloadNumber(name, None, None, unit, reason)
    whole = f"{scale_name} ({scale:.2g} {unit})" if scale else "every moment of inertia"
    return PayloadNumber(
        name, None, None, unit, f"standard deviations above {100.0 * share:.0f} % of {whole}; {remedy}", std
    )


def _physical(numbers: Sequence[PayloadNumber], covariance: Array) -> tuple[list[PayloadNumber], list[str]]:
    """The numbers after a look at whether the inertia can belong to a body at all.

    Args:
        numbers: The ten.
        covariance: (10, 10) of the ten.
    """
    short, spread, words = _shortfall(numbers, covariance)
    if short <= 0.0:
        return list(numbers), []
    if short <= THRESHOLDS.max_inconsistency_std * spread:
        return list(numbers), [
            f"inertia: {words}, which its standard deviations allow; no body has exactly these numbers"
        ]
    times = f", {short / spread:.1f} standard deviations" if spread > 0.0 else ""
    reason = f"no body has such inertia: {words}{times}; the model misses something"
    return [*numbers[:4], *(replace(one, value=None, std=None, reason=one.reason or reason) for one in numbers[4:])], []


def _shortfall(numbers: Sequence[PayloadNumber], covariance: Array) -> tuple[float, float, str]:
    """By how much the inertia misses that of a body (zero or less: not at all), the std of that, and words."""
    known = np.array([one.value is not None for one in numbers[4:]])
    six = np.array([one.value or 0.0 for one in numbers[4:]])  # products that are not known do not help the moments
    if not known[:3].all():  # triangle inequalities need all moments; each of them alone must be positive
        lowest = int(np.argmin(np.where(known[:3], six[:3], np.inf)))
        name, std = numbers[4 + lowest].name, numbers[4 + lowest].std or 0.0
        return -six[lowest], std, f"{name} is negative, {six[lowest]:.2g} kg·m²"
    inertia = np.zeros((3, 3))
    inertia[_ROWS, _COLUMNS] = inertia[_COLUMNS, _ROWS] = six
    # Second moments of mass, tr(I)/2 E - I, are those of a body if none is negative: that is the triangle inequality.
    least, vectors = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    v = vectors[:, 0]
    gradient = np.where(_ROWS == _COLUMNS, 0.5 - v[_ROWS] ** 2, -2.0 * v[_ROWS] * v[_COLUMNS]) * known
    spread = float(np.sqrt(max(gradient @ covariance[4:, 4:] @ gradient, 0.0)))
    short = float(-least[0] - _ROUNDING * np.abs(six).max())
    return short, spread, f"the two smaller principal moments fall short of the largest by {-2.0 * least[0]:.2g} kg·m²"


def _withheld(numbers: Sequence[PayloadNumber]) -> tuple[str, ...]:
    """One warning for each reason."""
    by_reason: dict[str, list[str]] = {}
    for one in numbers:
        if one.value is None:
            shown = one.name if one.doubt is None else f"{one.name} (std {one.doubt:.2g})"
            by_reason.setdefault(one.reason, []).append(shown)
    return tuple(f"{', '.join(names)} withheld: {reason}" for reason, names in by_reason.items())
