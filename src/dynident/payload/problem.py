r"""The payload's ten standard parameters as unknowns of a linear model, with the identified robot known or beside them.

A body on the tool adds L pi to the base parameters, L = K X, with X from the tool frame to the link that carries it and
K the regrouping (Khosla & Kanade 1987, section on payloads; Gautier et al. 1995, section 4.4). So

.. math:: \tau - W \hat\beta = W L \pi + W F \varphi

holds in loaded runs when the robot is known, where F picks friction that a session has of its own. With unloaded runs
the robot is unknown in both, and what its model gets wrong in the same way in both goes into the robot, not into pi.
Rows are those for parameters: away from reversals of dry friction, whose widths are those of the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, frozen, on_one_thread
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.errors import InputError
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.estimate.least_squares import WeightedLeastSquares
from dynident.estimate.parameter_rows import choose_rows
from dynident.identifiability.base import BaseParameters
from dynident.information.information import Information
from dynident.information.row_source import accumulate_source
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.robot.parameters import LINK_SYMBOLS, LINK_UNITS, in_frame
from dynident.signals.observations import Observations
from dynident.signals.rows import ObservedRows

PAYLOAD_NAMES = tuple(f"payload {symbol}" for symbol in LINK_SYMBOLS)
# Starts of names: a robot without load says little about how friction grows with it.
_LOAD = tuple(f"{law.name}_" if law.scale == "none" else law.name for law in FRICTION_LAWS.values() if law.needs_load)
SESSIONS: dict[str, tuple[str, ...]] = {"none": (), "load": _LOAD, "friction": ("Fo", "Fc", "Fv", *_LOAD)}


def tool_matrix(base: BaseParameters) -> Array:
    """X: what a body adds to the rigid columns from its standard parameters in the tool frame, (10 n_links, 10).

    Raises:
        InputError: When the robot has no tool, or the model no free link to carry it.
    """
    robot = base.robot
    if robot.tool is None:
        raise InputError(
            f"robot {robot.name} has no tool: it has several branches; say in its file which link carries the payload "
            "(tool: {joint: ..}) and identify again"
        )
    index, frame = robot.tool
    own = [f"{symbol}{robot.joints[index].number}" for symbol in LINK_SYMBOLS]
    rigid = [column for column in base.columns if column.term == "rigid"]
    if not rigid:
        raise InputError("the fit has no term rigid, so it knows no links that a payload could hang on; identify again")
    fixed = [column.name for column in rigid if column.name in own and column.fixed is not None]
    if fixed:
        raise InputError(
            f"robot {robot.name} fixes {', '.join(fixed)} of the link that carries the tool, so a payload there is no "
            "part of its model; identify with these free"
        )
    X = np.zeros((len(rigid), 10))
    X[[[column.name for column in rigid].index(name) for name in own]] = in_frame(
        np.eye(10), frame.rotation, frame.translation
    ).T
    return X


def payload_matrix(base: BaseParameters) -> Array:
    """L = K X: what a body on the tool adds to the base parameters, (n, 10)."""
    rigid = [column.term == "rigid" for column in base.columns]
    return np.asarray(base.K[:, rigid] @ tool_matrix(base))


@dataclass(frozen=True, eq=False)
class PayloadProblem:
    """The logs of one payload and the robot's model: what is to be solved, apart from solving it.

    Attributes:
        fit: The identified robot.
        rows: Rows of the loaded logs, around the payload as it was known.
        bare_rows: Rows of the unloaded logs that the robot is estimated from beside the payload; None to take the robot
            as identified.
        loaded: Information of the loaded rows.
        bare: Information of the unloaded rows, over the base parameters.
        session: Which friction the loaded runs have of their own, a key of `SESSIONS`.
    """

    fit: Fit
    rows: ObservedRows
    bare_rows: ObservedRows | None
    loaded: Information
    bare: Information | None
    session: str = "none"

    @staticmethod
    def of(fit: Fit, loaded: Sequence[Observations], unloaded: Sequence[Observations] = ()) -> PayloadProblem:
        """The problem before anything is known about the payload.

        Raises:
            InputError: When a log shows too little motion.
        """
        rows, own = _rows_of_logs(fit, loaded, len(PAYLOAD_NAMES))
        bare_rows, bare = _rows_of_logs(fit, unloaded, fit.rank) if unloaded else (None, None)
        problem = PayloadProblem(fit, rows, bare_rows, own, bare)
        for part, unknowns in ((problem.loaded, len(PAYLOAD_NAMES)), (bare, fit.rank)):
            if part is not None and part.n_rows < INFORMATION.min_equations * unknowns:
                labels = ", ".join(dict.fromkeys(segment.label for segment in part.segments))
                raise _too_little(labels, f"{part.n_rows:g} equations in motion for {unknowns} unknowns")
        return problem

    @property
    def joint(self) -> bool:
        """Whether robot and payload are estimated together."""
        return self.bare is not None

    @property
    def observations(self) -> tuple[Observations, ...]:
        """All logs, loaded ones first."""
        return self.rows.observations + (() if self.bare_rows is None else self.bare_rows.observations)

    def around(self, payload: Array) -> PayloadProblem:
        """The same with load-dependent terms evaluated with the payload included.

        Args:
            payload: (10,) standard parameters in the tool frame.
        """
        reference = self.fit.reference
        if reference is not None:
            reference = frozen(reference + tool_matrix(self.fit.base) @ payload)
        rows = replace(self.rows, reference=reference)
        return replace(self, rows=rows, loaded=accumulate_source(rows))

    @property
    def freed(self) -> list[int]:
        """Base parameters that the loaded runs estimate again: those of the session, and what the fit does not know."""
        fit, symbols = self.fit, SESSIONS[self.session]
        own = [fit.base.columns[j].symbol in symbols for j in fit.base.independent]
        unknown = [not (self.joint or known) for known in fit.determined]
        return [i for i in range(fit.base.n) if own[i] or unknown[i]]

    @property
    def chart(self) -> Array:
        """(n, n_unknowns) from the unknowns to the base parameters in loaded runs, the payload's ten first."""
        base = self.fit.base
        parts = [payload_matrix(base), np.eye(base.n)[:, self.freed]]
        return np.hstack([*parts, np.eye(base.n)] if self.joint else parts)

    @property
    def information(self) -> Information:
        """All data over the unknowns, loaded segments first."""
        base, chart = self.fit.base, self.chart
        names = [*PAYLOAD_NAMES, *(f"session {base.names[i]}" for i in self.freed)]
        units = [*LINK_UNITS, *(base.units[i] for i in self.freed)]
        if self.bare is None:
            return self.loaded.around(self.fit.beta).transformed(chart, names, units)
        alone = chart.copy()
        alone[:, : len(names)] = 0.0
        names, units = [*names, *base.names], [*units, *base.units]
        return self.loaded.transformed(chart, names, units) + self.bare.transformed(alone, names, units)

    def solve(self) -> Estimator:
        """The unknowns, channels weighted by their residuals."""
        return WeightedLeastSquares(rank_tolerance=INFORMATION.noisy_rank).fit(self.information)

    def base_values(self, fitted: Estimator) -> tuple[Array, Array]:
        """Base values of the robot with the payload, and without, (n,) each."""
        loaded = self.chart @ fitted.values_
        if self.joint:
            return loaded, np.asarray(fitted.values_[-self.fit.base.n :])
        return self.fit.beta + loaded, self.fit.beta


def _rows_of_logs(fit: Fit, logs: Sequence[Observations], n_unknowns: int) -> tuple[ObservedRows, Information]:
    """The rows of some logs and what they say; too little motion is said of the log."""
    labels = [one.log.label for one in logs]
    try:
        return choose_rows(ObservedRows(tuple(logs), fit.base, fit.reference), n_unknowns)
    except InputError as error:
        if any(label in str(error) for label in labels):
            raise
        raise _too_little(", ".join(labels), str(error)) from None


def _too_little(labels: str, why: str) -> InputError:
    return InputError(
        f"{labels}: too little motion to determine a payload ({why}); record all joints in motion, best the same "
        "motion with and without the payload"
    )


@on_one_thread
def robot_covariance(problem: PayloadProblem, fitted: Estimator) -> Array:
    r"""What the uncertainty of the identified robot adds to that of the unknowns, (n_unknowns, n_unknowns).

    The unknowns move by S = -C \sum_j w_j A_j' W_j with an error of the base parameters, A_j = W_j chart.
    """
    fit, chart = problem.fit, problem.chart
    n = chart.shape[1]
    S = np.zeros((n, fit.base.n))
    for factor, weight in zip(problem.loaded.channel_factors(), fitted.channel_weights_, strict=True):
        W = factor.dense(fit.base.n)[:, :-1]
        S -= weight * fitted.inverse_ @ ((W @ chart).T @ W)
    covariance = np.where(np.outer(fit.determined, fit.determined), fit.covariance, 0.0)
    return np.asarray(S @ covariance @ S.T)


def gain_spread(problem: PayloadProblem, fitted: Estimator, tolerances: Array) -> Array:
    """What uncertain drive gains add when the robot was identified with the same gains, (n_unknowns, n_unknowns).

    A gain that is off scales the torque of robot and payload alike, and the robot's share is in the fit already.

    Args:
        problem: The problem, with the robot known.
        fitted: Its solution.
        tolerances: (n_channels,) relative standard deviation of each gain.
    """
    n = len(fitted.values_)
    total = np.zeros((n, n))
    parts = zip(problem.loaded.channel_factors(), fitted.channel_weights_, tolerances, strict=True)
    for factor, weight, tolerance in parts:
        A = factor.dense(problem.fit.base.n)[:, :-1] @ problem.chart
        moved = tolerance * weight * (fitted.inverse_ @ (A.T @ (A[:, :10] @ fitted.values_[:10])))
        total += np.outer(moved, moved)
    return total
