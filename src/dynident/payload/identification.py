"""Which friction loaded runs have of their own, decided by parts of them that are left out.

Friction drifts between sessions, and a robot that was identified without load says little about how friction grows with
it. What is freed makes the payload less certain, so it is freed only where it predicts better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.arrays import Array, on_one_thread, place_of, record
from dynident.errors import InputError, UnknownNameError
from dynident.estimate.covariance import (
    common_inflation,
    correlated_covariance,
    gain_covariance,
    null_space,
    residual_correlation,
)
from dynident.estimate.estimator import Estimator
from dynident.estimate.fit import Fit
from dynident.estimate.linearization import needs_linearization
from dynident.estimate.records import LogRecord
from dynident.information.information import Information
from dynident.information.parameter_estimate import ParameterEstimate, text_table
from dynident.information.solution import dense_channels, solve_weighted
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.logs.log import LogSource, as_logs, log_warnings, torque_kind
from dynident.options import keywords
from dynident.payload.body import Payload
from dynident.payload.options import PayloadOptions
from dynident.payload.problem import (
    PAYLOAD_NAMES,
    SESSIONS,
    PayloadProblem,
    gain_spread,
    robot_covariance,
    tool_matrix,
)
from dynident.payload.quantities import NUMBER_NAMES, PayloadNumber, payload_advice, payload_numbers
from dynident.payload.thresholds import THRESHOLDS
from dynident.robot.parameters import LINK_SYMBOLS
from dynident.signals.observations import Observations

SESSION_FOLDS = 5
_WORDS = {
    "none": "friction is that of the robot without payload",
    "load": "how friction grows with load is estimated again in the loaded runs",
    "friction": "offsets, Coulomb, viscous and load friction are estimated again in the loaded runs",
}


def choose_session(problem: PayloadProblem, wanted: str = "auto") -> tuple[str, str]:
    """The friction that the loaded runs have of their own, a key of `SESSIONS`, and why in words.

    Args:
        problem: The problem.
        wanted: auto, or a key of `SESSIONS`.

    Raises:
        UnknownNameError: For another word.
    """
    if wanted != "auto":
        if wanted not in SESSIONS:
            raise UnknownNameError("session friction", wanted, ("auto", *SESSIONS))
        return wanted, (f"{_WORDS[wanted]}, as asked for")
    if len(problem.loaded.segments) < 2:
        return "none", (f"{_WORDS['none']}; the loaded runs are too short to ask them")
    candidates = _different(problem)
    sigma = np.maximum(candidates[-1].solve().sigma_, 1e-150)
    errors = {one.session: _left_out(one, sigma) for one in candidates}
    chosen = candidates[0].session
    for one in candidates[1:]:
        gain = errors[chosen] - errors[one.session]
        doubt = float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
        if gain.mean() > max(doubt, THRESHOLDS.min_session_gain * errors[chosen].mean()):
            chosen = one.session
    means = {name: float(error.mean()) for name, error in errors.items()}
    shown = ", ".join(f"{name} {100.0 * mean / means['none']:.0f} %" for name, mean in means.items())
    return chosen, (f"{_WORDS[chosen]} (squared error on held-out parts: {shown})")


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
    """(n_folds,) squared error on each part of the loaded runs when the rest is learned from, mean per equation."""
    data, n_loaded = problem.information, len(problem.loaded.segments)
    errors = []
    for fold in np.array_split(np.arange(n_loaded), min(SESSION_FOLDS, n_loaded)):
        found = solve_weighted(dense_channels(data.without(fold.tolist()))[0], sigma, INFORMATION.noisy_rank)
        errors.append(_error(data.select(fold.tolist()), found.x, sigma))
    return np.array(errors)


def _error(data: Information, values: Array, sigma: Sequence[float] | Array) -> float:
    channels, counts = dense_channels(data)
    squares = [np.sum((rows[:, :-1] @ values - rows[:, -1]) ** 2) for rows in channels]
    return float(np.sum(np.array(squares) / np.asarray(sigma) ** 2) / max(counts.sum(), 1.0))


# ----------------------------------------------------------------------------------------------------------------------
# `identify_payload`: mass, center of mass and inertia of what the tool carries.
#
# From loaded runs and the identified robot, or from loaded and unloaded runs together; see `payload_fit` for the model.

MAX_PASSES = 12  # with load-dependent friction re-evaluated; two or three usually do


@record
class PayloadEstimate:
    """What a tool carries, as evidence.

    Attributes:
        numbers: mass, cx, cy, cz, Ixx, Iyy, Izz, Ixy, Ixz, Iyz; in the tool frame, inertia about the center of mass as
            entries of the matrix with their sign. What the motion does not support has no value.
        estimate: XX XY XZ YY YZ ZZ MX MY MZ M about the origin of the tool frame, and how they were solved; the
            covariance allows for noise whose neighboring values are alike, the identified robot and drive gains.
        robot_std: (10,) the part of their standard deviations that is the identified robot's; zero where it was
            estimated along.
        method: "loaded" (robot as identified) or "joint" (robot estimated along, from unloaded runs too).
        session: Which friction the loaded runs have of their own.
        passes: Times that load-dependent friction was evaluated with the payload.
        notes: What was decided on the way, in words.
        warnings: What a reader should know.
        frame: The tool frame that the numbers are in, in words.
    """

    numbers: tuple[PayloadNumber, ...]
    estimate: ParameterEstimate
    robot_std: Array
    method: str
    session: str
    passes: int
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    frame: str = "the tool frame"

    @property
    def standard(self) -> Array:
        """(10,) standard parameters about the origin of the tool frame."""
        return self.estimate.values

    @property
    def covariance(self) -> Array:
        """(10, 10) of the standard parameters."""
        return self.estimate.covariance

    @property
    def sigma(self) -> Array:
        """(n_channels,) standard deviation of the residuals [N·m or N]."""
        return self.estimate.sigma

    def __getitem__(self, name: str) -> PayloadNumber:
        """One of the ten numbers by name."""
        return self.numbers[place_of(name, NUMBER_NAMES, "number of a payload")]

    @property
    def withheld(self) -> tuple[str, ...]:
        """Names of the numbers that the motion does not support."""
        return tuple(one.name for one in self.numbers if one.value is None)

    @property
    def payload(self) -> Payload:
        """The body, for `compare_payload` and `Payload.at`.

        Raises:
            InputError: When a number is withheld; zero in its place would be an answer.
        """
        if self.withheld:
            raise InputError(f"{', '.join(self.withheld)} of the payload are withheld, so it is no whole body")
        mass, cx, cy, cz, xx, yy, zz, xy, xz, yz = (one.value for one in self.numbers)
        assert mass is not None
        center, inertia = np.array([cx, cy, cz], dtype=float), np.array([xx, xy, xz, yy, yz, zz], dtype=float)
        return Payload(mass, center, inertia, strict=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is withheld is None."""
        return {
            "frame": self.frame,
            "estimates": [one.as_dict() for one in self.numbers],
            "method": self.method,
            "session": self.session,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def table(self) -> str:
        """The numbers as text: name, value, standard deviation, unit."""
        lines = [
            (one.name, "withheld", "", one.unit)
            if one.value is None or one.std is None
            else (one.name, f"{one.value:.5g}", f"{one.std:.2g}", one.unit)
            for one in self.numbers
        ]
        return text_table(("number", "value", "std", "unit"), lines, ("value", "std"))


@keywords(PayloadOptions)
def identify_payload(fit: Fit, loaded: LogSource | Sequence[LogSource], options: PayloadOptions) -> PayloadEstimate:
    """Identify a body that is fixed to the tool.

    Args:
        fit: The robot, identified without the payload.
        loaded: Runs with the payload.
        options: Runs without it, friction of the session, band.

    Raises:
        InputError: When the robot has no tool, a loaded log was trained on or shows too little motion.
        LogError: When a log has no torque.
    """
    fit = (fit if options.tool is None else fit.with_tool(options.tool)).for_payload()
    tool_matrix(fit.base)  # a robot without a tool is refused before any log is looked at
    problem = _observe(fit, as_logs(loaded), as_logs(options.unloaded), options.band)
    session, reason = choose_session(_with_load(problem), options.session)
    problem = replace(problem, session=session)
    problem, fitted, passes, moved = _solve_relinearized(problem)
    inflation = _inflation(problem, fitted)
    robot = _robot_part(problem, fitted)
    covariance = correlated_covariance(fitted, inflation) + robot + _gain_part(problem, fitted)
    undetermined, units = null_space(fitted)
    numbers, warnings = payload_numbers(
        fitted.values_[:10],
        covariance[:10, :10],
        undetermined[:10],
        units[:10],
        payload_advice(fit.base, fitted.sigma_),
    )
    kept = fitted.estimate_.restrict(PAYLOAD_NAMES).replace(names=LINK_SYMBOLS, covariance=covariance[:10, :10])
    solved = None if fitted.estimate_.solve is None else fitted.estimate_.solve.replace(variance_inflation=inflation)
    return PayloadEstimate(
        numbers=numbers,
        estimate=kept.replace(solve=solved),
        robot_std=np.sqrt(np.maximum(np.diag(robot)[:10], 0.0)),
        method="joint" if problem.joint else "loaded",
        session=session,
        passes=passes,
        notes=(reason, *_gain_note(problem)),
        warnings=(*log_warnings([one.log for one in problem.observations]), *_remarks(problem, moved), *warnings),
        frame=fit.robot.tool_words,
    )


def _observe(
    fit: Fit, loaded: Sequence[LogSource], unloaded: Sequence[LogSource], band: float | None
) -> PayloadProblem:
    """A first look at every log; what cannot serve is refused."""
    if not loaded:
        raise InputError("there is no loaded log; give at least one run with the payload")
    for log in (*loaded, *unloaded):
        torque_kind(next(iter(log.blocks())), fit.robot)  # a log without torque is refused before anything is done
    found = [_observe_as_fit(fit, log, band) for log in (*loaded, *unloaded)]
    own, bare = found[: len(loaded)], found[len(loaded) :]
    for one in own:
        if any(record.overlaps(one) for record in fit.data):
            raise InputError(
                f"{one.log.label}: the robot was identified from this log, so its payload, if any, is part of the "
                "robot; identify the robot from unloaded logs alone"
            )
        if any(LogRecord.of(other).overlaps(one) for other in bare):
            raise InputError(f"{one.log.label}: is given as loaded and as unloaded; it can only be one of them")
    for group in (own, bare):
        for number, one in enumerate(group):
            if any(LogRecord.of(other).overlaps(one) for other in group[:number]):
                raise InputError(f"{one.log.source}: is given twice; data that counts twice looks too certain")
    return PayloadProblem.of(fit, own, bare)


def _observe_as_fit(fit: Fit, log: LogSource, band: float | None) -> Observations:
    return fit.observe(log).with_options(band=fit.band) if band is None else fit.observe(log, band)


def _with_load(problem: PayloadProblem) -> PayloadProblem:
    """The problem with load-dependent terms evaluated around a first guess of the payload, most friction being free."""
    if not needs_linearization(problem.fit.base.terms):
        return problem
    first = replace(problem, session="friction").solve()
    return problem.around(first.values_[:10])


def _solve_relinearized(problem: PayloadProblem) -> tuple[PayloadProblem, Estimator, int, float]:
    """The solution with load-dependent terms evaluated around itself; passes, and what the last one moved.

    How far a pass moves the payload is measured in its standard deviations, over all ten at once.
    """
    fitted, moved = problem.solve(), 0.0
    if not needs_linearization(problem.fit.base.terms):
        return problem, fitted, 0, moved
    passes = 0
    while passes < MAX_PASSES and (passes == 0 or moved >= THRESHOLDS.settled_std):
        passes += 1
        before = fitted.values_[:10]
        problem = problem.around(before)
        fitted = problem.solve()
        std = np.sqrt(np.maximum(np.diag(fitted.covariance_)[:10], 1e-300))
        moved = float(np.max(np.abs(fitted.values_[:10] - before) / std))
    return problem, fitted, passes, moved


def _inflation(problem: PayloadProblem, fitted: Estimator) -> Array:
    """(n_channels,) how much neighboring residuals are alike, over all logs."""
    loaded, bare = problem.base_values(fitted)
    found = [residual_correlation(problem.rows, loaded)]
    if problem.bare_rows is not None:
        found.append(residual_correlation(problem.bare_rows, bare))
    return common_inflation(found)


def _robot_part(problem: PayloadProblem, fitted: Estimator) -> Array:
    n = len(fitted.values_)
    return np.zeros((n, n)) if problem.joint else robot_covariance(problem, fitted)


def _gain_part(problem: PayloadProblem, fitted: Estimator) -> Array:
    """What the tolerance of drive gains adds, where torque comes from currents."""
    robot, n, logs = problem.fit.robot, len(fitted.values_), [one.log for one in problem.observations]
    by_current = {log.label for log in logs if torque_kind(next(iter(log.blocks())), robot) == "i"}
    gains, given = robot.drive.gains, robot.drive.gain_tolerances
    if not by_current or gains is None or given is None or not given.any():
        return np.zeros((n, n))
    tolerances = np.abs(given / gains)[list(robot.moving)]
    if problem.joint:
        return gain_covariance(fitted, tolerances, by_current)
    return gain_spread(problem, fitted, tolerances)


def _gain_note(problem: PayloadProblem) -> list[str]:
    """A robot's covariance does not say which part of it is due to the gains that loaded runs were measured with."""
    if problem.joint or "drive gains" not in problem.fit.covariance_kind:
        return []
    return [
        "standard deviations take the gains' tolerance of the identified robot and of the loaded runs as independent, "
        "which is too cautious; with unloaded runs it counts once"
    ]


def _remarks(problem: PayloadProblem, moved: float) -> list[str]:
    """What a reader should know beside the numbers."""
    found = []
    if moved > 1.0:
        found.append(
            f"friction that depends on the load did not settle in {MAX_PASSES} passes (the last moved the payload by "
            f"{moved:.1f} standard deviations); identify the robot with less friction, such as --friction basic"
        )
    unknown = problem.fit.undetermined
    if unknown and not problem.joint:
        shown = ", ".join(unknown[:6]) + (", .." if len(unknown) > 6 else "")
        found.append(
            f"the fit leaves {len(unknown)} parameters of the robot open ({shown}); they are estimated along from the "
            "loaded runs, which makes the payload less certain"
        )
    return found
