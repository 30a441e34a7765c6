"""What the tool carries, while the robot works: the columns of the off-line method around a robot that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.errors import InputError, UnknownNameError
from dynident.online.history import OnlineSolution
from dynident.online.monitor import MotionVerdict, too_early
from dynident.online.prior import Prior
from dynident.online.thresholds import THRESHOLDS
from dynident.payload.problem import PAYLOAD_NAMES, SESSIONS, payload_matrix
from dynident.payload.quantities import (
    PayloadAdvice,
    PayloadNumber,
    payload_advice,
    payload_numbers,
)
from dynident.payload.thresholds import THRESHOLDS as PAYLOAD
from dynident.robot.parameters import LINK_UNITS

PAYLOAD_UNKNOWNS = 10  # they come first, friction of the session follows
MASS = 9  # place of the mass among the unknowns


@dataclass(frozen=True, eq=False)
class Unknowns:
    """What is estimated: the base parameters, or a payload beside a known robot.

    A payload has ten standard parameters, and friction that the session has of its own.

    Attributes:
        names: Of the unknowns.
        units: Of the unknowns.
        start: (k,) values before the first row: the robot as it is known, or no payload.
        lean: (m, k + 1) rows that hold the unknowns near what is known.
        chart: (n, k) from the unknowns of a payload to base parameters; None where they are those.
        advice: What the robot can show of a payload, and how to move for it.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    start: Array
    lean: Array
    chart: Array | None = None
    advice: PayloadAdvice | None = None

    @property
    def payload(self) -> bool:
        """Whether they are those of a payload."""
        return self.chart is not None


def base_unknowns(known: Prior, lean: float) -> Unknowns:
    """The base parameters, with the weight of what is known about them."""
    base = known.base
    rows = np.asarray(np.sqrt(lean) * known.regularization()) if lean else np.zeros((0, base.n + 1))
    return Unknowns(base.names, base.units, known.beta, rows)


def payload_unknowns(known: Prior, session: str) -> Unknowns:
    """The payload, and friction of the session.

    Raises:
        InputError: When the robot has no tool, or nothing is known about it.
        UnknownNameError: For another session.
    """
    if not known.anything:
        raise InputError("a payload is found beside a known robot; give prior: a Fit, or the name of a value set")
    if session not in SESSIONS:
        raise UnknownNameError("session friction", session, SESSIONS)
    base = known.base
    symbols = [base.columns[j].symbol for j in base.independent]
    own = [symbol in SESSIONS[session] for symbol in symbols]
    free = [i for i in range(base.n) if own[i] or not known.determined[i]]
    chart = np.hstack([payload_matrix(base), np.eye(base.n)[:, free]])
    leaning = [i for i in free if known.determined[i]]
    lean = np.zeros((len(leaning), chart.shape[1] + 1))
    for row, i in enumerate(leaning):
        others = [abs(known.beta[j]) for j in range(base.n) if symbols[j] == symbols[i]]
        size = max(abs(known.beta[i]), float(np.median(others)), 1e-12)
        lean[row, 10 + free.index(i)] = 1.0 / (THRESHOLDS.friction_share * size)
    names = (*PAYLOAD_NAMES, *(f"session {base.names[i]}" for i in free))
    units = (*LINK_UNITS, *(base.units[i] for i in free))
    return Unknowns(names, units, np.zeros(len(names)), lean, chart, payload_advice(base))


@dataclass(frozen=True)
class PayloadState:
    """The payload as it is known now.

    Attributes:
        numbers: mass, cx .. cz, Ixx .. Iyz in the tool frame; what the motion does not support has no value.
        mass: As estimated, whether supported or not [kg].
        mass_std: Its standard deviation [kg].
        present: Whether there is a payload; None while the motion does not determine it.
        warnings: Why numbers are withheld.
    """

    numbers: tuple[PayloadNumber, ...]
    mass: float
    mass_std: float
    present: bool | None
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is withheld is None."""
        return {
            "estimates": [one.as_dict() for one in self.numbers],
            "present": self.present,
            "warnings": list(self.warnings),
        }


def with_robot(found: OnlineSolution, cross: Array, known: Prior) -> Array:
    """(k, k) covariance of the unknowns, with what the known robot's own uncertainty adds.

    An error of the base parameters moves the unknowns by S = -C A'W, with C the inverse and A'W the cross products.
    """
    S = -found.inverse @ cross
    return np.asarray(found.covariance + S @ known.covariance @ S.T)


def payload_state(found: OnlineSolution, least_mass: float, advice: PayloadAdvice | None = None) -> PayloadState:
    """The numbers and whether there is a payload at all."""
    covariance = found.covariance
    numbers, warnings = payload_numbers(
        found.values[:10], covariance[:10, :10], found.null_space[:10], found.sizes[:10], advice
    )
    mass, std = float(found.values[MASS]), float(np.sqrt(max(covariance[MASS, MASS], 0.0)))
    present: bool | None = None
    if found.determined[MASS]:
        if numbers[0].value is not None:
            present = True
        elif mass <= PAYLOAD.min_mass_std * std and std <= least_mass:
            present = False
    return PayloadState(numbers, mass, std, present, warnings)


def payload_verdict(
    state: PayloadState, found: OnlineSolution, rows: float, moved: Mask, names: tuple[str, ...]
) -> MotionVerdict:
    """Whether the motion supports the mass, or the absence of one."""
    early = too_early(rows, len(found.values), moved, names)
    if early is not None:
        return early
    if state.present is None:
        return MotionVerdict(False, state.warnings[0] if state.warnings else "the motion does not determine the mass")
    if not state.present:
        return MotionVerdict(
            True, f"no payload: mass {state.mass:.3g} kg with a standard deviation of {state.mass_std:.2g} kg"
        )
    share = 100.0 * state.mass_std / state.mass
    return MotionVerdict(True, f"mass known within {share:.2g} % (at most {100.0 * PAYLOAD.mass_share:.0f} %)")
