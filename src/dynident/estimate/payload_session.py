"""Which friction loaded runs have of their own, decided by parts of them that are left out.

Friction drifts between sessions, and a robot that was identified without load says little about how friction grows with
it. What is freed costs certainty about the payload, so it is freed only where it predicts better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.errors import UnknownNameError
from dynident.estimate.linearization import RANK_TOLERANCE
from dynident.estimate.payload_fit import SESSIONS, PayloadProblem
from dynident.information.information import Information
from dynident.information.solution import dense_channels, solve_weighted

FOLDS = 5
LEAST_GAIN = 0.01  # share of the squared error; less is not worth the certainty that it costs
_WORDS = {
    "none": "friction is that of the robot without payload",
    "load": "how friction grows with load is estimated anew in the loaded runs",
    "friction": "offsets, Coulomb, viscous and load friction are estimated anew in the loaded runs",
}


@dataclass(frozen=True)
class SessionChoice:
    """What was decided.

    Attributes:
        session: A key of `SESSIONS`.
        errors: Squared error on the parts left out of each candidate, in variances of the noise, mean per equation.
        reason: In words.
    """

    session: str
    errors: dict[str, float]
    reason: str


def chosen_session(problem: PayloadProblem, wanted: str = "auto") -> SessionChoice:
    """The friction that the loaded runs have of their own.

    Args:
        problem: The problem.
        wanted: auto, or a key of `SESSIONS`.

    Raises:
        UnknownNameError: For another word.
    """
    if wanted != "auto":
        if wanted not in SESSIONS:
            raise UnknownNameError("session friction", wanted, ("auto", *SESSIONS))
        return SessionChoice(wanted, {}, f"{_WORDS[wanted]}, as asked for")
    if len(problem.loaded.segments) < 2:
        return SessionChoice("none", {}, f"{_WORDS['none']}; the loaded runs are too short to ask them")
    candidates = _different(problem)
    sigma = np.maximum(candidates[-1].solve().sigma_, 1e-150)
    errors = {one.session: _left_out(one, sigma) for one in candidates}
    chosen = candidates[0].session
    for one in candidates[1:]:
        gain = errors[chosen] - errors[one.session]
        doubt = float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
        if gain.mean() > max(doubt, LEAST_GAIN * errors[chosen].mean()):
            chosen = one.session
    means = {name: float(error.mean()) for name, error in errors.items()}
    shown = ", ".join(f"{name} {100.0 * mean / means['none']:.0f} %" for name, mean in means.items())
    return SessionChoice(chosen, means, f"{_WORDS[chosen]} (squared error on parts left out: {shown})")


def _different(problem: PayloadProblem) -> list[PayloadProblem]:
    """The candidates that free something more than the one before."""
    result: list[PayloadProblem] = []
    for session in SESSIONS:
        one = replace(problem, session=session)
        if not result or one.freed != result[-1].freed:
            result.append(one)
    return result


@on_one_thread
def _left_out(problem: PayloadProblem, sigma: Array) -> Array:
    """(n_folds,) squared error on each part of the loaded runs when the rest is learnt from, mean per equation."""
    data, n_loaded = problem.information, len(problem.loaded.segments)
    errors = []
    for fold in np.array_split(np.arange(n_loaded), min(FOLDS, n_loaded)):
        found = solve_weighted(dense_channels(data.without(fold.tolist()))[0], sigma, RANK_TOLERANCE)
        errors.append(_error(data.select(fold.tolist()), found.x, sigma))
    return np.array(errors)


def _error(data: Information, values: Array, sigma: Sequence[float] | Array) -> float:
    channels, counts = dense_channels(data)
    squares = [np.sum((rows[:, :-1] @ values - rows[:, -1]) ** 2) for rows in channels]
    return float(np.sum(np.array(squares) / np.asarray(sigma) ** 2) / max(counts.sum(), 1.0))
