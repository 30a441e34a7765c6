r"""Histories: friction of each joint and payload, log by log, from the factors.

The rigid body of a robot does not change from day to day. With its parameters known from all logs, a single log says
of friction and payload what

.. math:: y - W \hat\beta = W F \varphi + W L \pi

leaves: F picks viscous, Coulomb and constant friction, L pi is a body on the tool (`payload_matrix`). No log is read
again. What is followed is the friction torque of an element at the velocity it usually has, F_c + F_v v: the two trade
against each other within a log, their sum at that velocity does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array, Mask, on_one_thread
from dynident.dynamics.terms.friction import elements_with_friction
from dynident.dynamics.terms.temperature import joint_of
from dynident.errors import InputError
from dynident.fleet.solving import RobotSolution, load_factors
from dynident.fleet.store import FleetStore, Row
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information
from dynident.information.solution import dense_channels, solve_weighted
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.payload.problem import payload_matrix
from dynident.robot.model import Element

_FREE = ("Fc", "Fv", "Fo")
FRICTION_COLUMNS = {
    "robot": "string",
    "type": "string",
    "pilot": "string",
    "log": "string",
    "date": "string",
    "element": "string",
    "unit": "string",
    "friction": "double",  # torque or force at `velocity`
    "std": "double",
    "Fc": "double",
    "Fv": "double",
    "velocity": "double",  # [rad/s or m/s]
    "temperature": "double",  # [°C]
    "payload": "double",  # [kg], as it was given
}
PAYLOAD_COLUMNS = {
    "robot": "string",
    "type": "string",
    "pilot": "string",
    "log": "string",
    "date": "string",
    "mass": "double",  # [kg], estimated
    "std": "double",
    "payload": "double",  # [kg], as it was given
    "error": "double",  # relative torque error of the log at the robot's estimate
    "held_out": "bool",
}


@dataclass(frozen=True, eq=False)
class HistoryProblem:
    """What is the same for all logs of a robot.

    Attributes:
        base: Base parameters.
        velocities: Velocity by element label at which friction is followed [rad/s or m/s].
        solution: Parameters of the robot.
    """

    base: BaseParameters
    velocities: Mapping[str, float]
    solution: RobotSolution

    def log_friction(self, information: Information, inflation: Array, *, loaded: bool) -> tuple[Array, Array, Mask]:
        """Friction of a log, (n_free,), its covariance, and which of it the log determines.

        Args:
            information: Factors of the log.
            inflation: (n_channels,) rows of it that weigh as much as one independent row.
            loaded: Whether a body on the tool is estimated beside it: its ten standard parameters then stand at the
                end, the mass last.
        """
        channels, counts = dense_channels(information.settled(self.solution.nuisance))
        values, free = self.solution.estimate.values, self.free
        L = payload_matrix(self.base) if loaded else np.zeros((self.base.n, 0))
        sigma = np.where(counts > 0.0, self.solution.estimate.sigma * np.sqrt(inflation), 1.0)
        parts = []
        for rows in channels:
            W = rows[:, :-1]
            parts.append(np.column_stack([W[:, free], W @ L, rows[:, -1] - W @ values]))
        found = solve_weighted(parts, sigma, INFORMATION.noisy_rank)
        offset = np.concatenate([values[free], np.zeros(L.shape[1])])
        return offset + found.x, found.inverse, found.determined

    @property
    def free(self) -> list[int]:
        """Places of the friction parameters that every log has of its own."""
        names = self.base.names
        labels = [element.names.get(symbol, "") for element in self.elements for symbol in _FREE]
        return [names.index(name) for name in labels if name in names]

    @property
    def elements(self) -> list[Element]:
        """Elements with friction of which Coulomb or viscous friction is a parameter."""
        return [
            element
            for element in elements_with_friction(self.base.robot)
            if {element.names.get("Fc"), element.names.get("Fv")} & set(self.base.names)
        ]


@on_one_thread
def friction_history(
    store: FleetStore, rows: Sequence[Row], base: BaseParameters, solution: RobotSolution
) -> tuple[list[Row], list[Row]]:
    """Friction of each element and the payload, a row for each log and element, and for each log.

    Args:
        store: Where the factors are.
        rows: Of all finished logs of a period, sorted by date.
        base: Base parameters of its pilot.
        solution: Parameters of the robot.
    """
    problem = HistoryProblem(base, usual_velocities(base, solution), solution)
    names = [base.names[place] for place in problem.free]
    able = _has_tool(base)
    friction: list[Row] = []
    payloads: list[Row] = []
    for row, information in zip(rows, load_factors(store, rows), strict=True):
        inflation = np.array(row["inflation"])
        first = {key: row[key] for key in ("robot", "type", "pilot", "date", "payload")} | {"log": row["key"]}
        loaded = able and bool(row["payload"])
        found, covariance, determined = problem.log_friction(information, inflation, loaded=loaded)
        for element in problem.elements:
            own = _of_element(element, problem, names, found, covariance, determined)
            if own is None:
                continue
            temperatures = row["temperatures"]
            joint = joint_of(base.robot, element)
            friction.append(first | own | {"temperature": None if temperatures is None else temperatures[joint]})
        mass, std = None, None
        if able:
            if not loaded:
                found, covariance, determined = problem.log_friction(information, inflation, loaded=True)
            if determined[-1]:
                mass, std = float(found[-1]), float(np.sqrt(covariance[-1, -1]))
        error = solution.errors.get(row["key"])
        payloads.append(first | {"mass": mass, "std": std, "error": error, "held_out": row["key"] in solution.held_out})
    return friction, payloads


def _of_element(
    element: Element, problem: HistoryProblem, names: Sequence[str], found: Array, covariance: Array, determined: Mask
) -> Row | None:
    """Friction of an element in a log; None where the log does not determine it."""
    label, own = element.label, element.names
    velocity = problem.velocities[label]
    weights = np.zeros(len(found))
    for symbol, weight in (("Fc", 1.0), ("Fv", velocity)):
        if own.get(symbol) in names:
            weights[names.index(own[symbol])] = weight
    used = weights != 0.0
    if not used.any() or not determined[used].all():
        return None
    each = {symbol: float(found[names.index(own[symbol])]) for symbol in ("Fc", "Fv") if own.get(symbol) in names}
    return {
        "element": label,
        "unit": "N" if element.prismatic else "N·m",
        "friction": float(weights @ found),
        "std": float(np.sqrt(max(float(weights @ covariance @ weights), 0.0))),
        "velocity": velocity,
        **each,
    }


def usual_velocities(base: BaseParameters, solution: RobotSolution) -> dict[str, float]:
    """Root of the mean squared velocity of each element over the training, from the factors alone.

    The column of viscous friction in the channel that it acts on is the velocity itself, so its norm over the rows is
    that of the velocity.
    """
    found = {}
    factors = solution.information.channel_factors()
    n = base.n
    for element in elements_with_friction(base.robot):
        name = element.names.get("Fv")
        squares, count = 0.0, 0.0
        if name in base.names:
            place = base.names.index(name)
            for factor in factors:
                column = factor.dense(n)[:, place]
                if factor.n_rows and column.any():
                    squares, count = squares + float(column @ column), count + factor.n_rows
        found[element.label] = float(f"{np.sqrt(squares / count):.3g}") if count else 0.0
    return found


def _has_tool(base: BaseParameters) -> bool:
    """Whether a payload on the tool can be estimated at all."""
    try:
        payload_matrix(base)
    except InputError:
        return False
    return True
