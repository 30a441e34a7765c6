"""`optimize_excitation`: the motion from which a robot's parameters are identified best."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array, finite_or_none, frozen, on_one_thread
from dynident.display import brief
from dynident.dynamics.evaluate import parameters
from dynident.dynamics.jit.numpy_kernel import one_backend
from dynident.dynamics.terms import Coulomb, Term, resolve_terms, split_terms, with_springs
from dynident.errors import InfeasibleError, InputError
from dynident.estimate.candidates import BASIC_TERMS
from dynident.estimate.fit import Fit
from dynident.identifiability.base import BaseParameters, base_parameters, column_scales
from dynident.information.information import Information
from dynident.motion.closing import loop_solver
from dynident.motion.demands import Demands
from dynident.motion.forecast import Forecast, forecast_identification, noise_of_fit
from dynident.motion.fourier import Fourier
from dynident.motion.limits import JointLimits, by_joint, check_locked, gather_limits, per_joint
from dynident.motion.options import FILE_RATE, LOG_RATE, NOISE_SHARE, ExcitationOptions
from dynident.motion.rows import CRITERIA, EnergyModelRows, ModelRows, TorqueRows, with_tie_break
from dynident.motion.search import ExcitationSearch, SearchProblem, SearchResult
from dynident.motion.space import Space
from dynident.motion.storage import save_trajectory
from dynident.motion.thresholds import THRESHOLDS
from dynident.motion.trajectory import positive
from dynident.options import keywords
from dynident.robot.model import Robot
from dynident.robot.placeholders import placeholder_limits
from dynident.signals.columns import bandwidth_along


def known_rows(base: BaseParameters, information: Information, sigma: Mapping[str, float]) -> Array:
    """Weighted rows of the information over the base columns, matched by name."""
    names = [column.name for column in information.coordinates.columns]
    wanted = [base.columns[i].name for i in base.independent]
    missing = [name for name in names if name not in {column.name for column in base.columns}]
    if missing:
        raise InputError(f"the information is about {missing[0]}, which the motion's model has not; use its terms")
    blocks = []
    for channel, rows in zip(information.channels, information.standard_rows(), strict=True):
        block = np.zeros((len(rows), base.n))
        for place, name in enumerate(wanted):
            if name in names:
                block[:, place] = rows[:, names.index(name)]
        blocks.append(block / sigma[channel])
    return np.asarray(np.linalg.qr(np.vstack(blocks), mode="r"))


def known_values(base: BaseParameters, information: Information, otherwise: Array) -> Array:
    """(n,) base parameters as the information determines them, `otherwise` where it does not."""
    solved = information.solve()
    known = {
        name: value for name, value, sure in zip(solved.names, solved.values, solved.determined, strict=True) if sure
    }
    return np.array([known.get(name, other) for name, other in zip(base.names, otherwise, strict=True)])


def series_of(options: ExcitationOptions) -> tuple[float, int]:
    """Base frequency [Hz] and number of harmonics, as given or such that a motion of any length is fast enough.

    A longer motion has more harmonics, and from some length on repeats itself: its highest harmonic swings as fast as
    that of a short one.
    """
    least, most, top = THRESHOLDS.least_harmonics, THRESHOLDS.most_harmonics, THRESHOLDS.usual_top_hz
    frequency, duration = options.frequency, options.duration
    if frequency is None:
        repeats = 1 if options.harmonics is not None else np.ceil(duration * top / most - 1e-9)
        frequency = max(float(repeats), 1.0) / duration
    swings = top / frequency if options.frequency is not None else top * duration
    harmonics = int(np.clip(np.ceil(swings - 1e-9), least, most))
    return frequency, harmonics if options.harmonics is None else options.harmonics


# ----------------------------------------------------------------------------------------------------------------------
# Optimal excitation within everything that a motion must respect.


@brief
@dataclass(frozen=True)
class ExcitingMotion:
    """A motion for identification, and what it promises.

    Attributes:
        trajectory: The motion, at rest at both ends.
        criterion: Name of the criterion.
        value: The criterion of the motion, with what was known before: log det of the information, condition number,
            smallest singular value (scaled columns), or largest standard deviation beside its parameter's size.
        condition: Condition number of the weighted rows with columns of unit norm.
        log_determinant: log det of the information, in the units of the base parameters.
        names: Base parameters.
        units: Their units.
        std: (n,) standard deviation of each to expect of `identify`, from a log with the noise that was assumed;
            infinite where the motion does not determine it.
        values: (n,) value of each, of the data to extend or the robot's own; NaN where neither says one.
        sizes: (n,) size of each in the criterion: its value, or a share of what is typical where that is more.
        before: (n,) standard deviations from the information that was there already; None without.
        slack: Least share of each kind of limit that is left, checked at 1 kHz or more.
        closest: Of each kind, the limit that the motion comes closest to and by how much, in words.
        evaluations: Criteria evaluated.
        seconds: Time the search took [s].
        interrupted: Whether it was stopped early.
        bandwidth: Band that columns of the regressor need along the motion [Hz]; `identify` chooses no lower one.
        asked: What was asked for.
        limits: Limits of the joints that it keeps, the share for safety taken off.
        noise: (n_joints,) standard deviation that was assumed of a torque sample [N·m or N]; of the energy, (1,) [J].
        noise_words: Where that noise comes from.
        rate: Samples per second of the log that was assumed [Hz].
        options: What shaped it, for the file.
        warnings: What to know about it: limits of the robot that are placeholders and were not believed, and why
            `identify` would refuse a log of it.
    """

    trajectory: Fourier
    criterion: str
    value: float
    condition: float
    log_determinant: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    std: Array
    values: Array
    sizes: Array
    before: Array | None
    slack: Mapping[str, float]
    closest: Mapping[str, str]
    evaluations: int
    seconds: float
    interrupted: bool
    bandwidth: float
    asked: ExcitationOptions
    limits: JointLimits
    noise: Array
    noise_words: str
    rate: float
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """Length of the motion [s]."""
        return self.trajectory.duration

    @property
    def relative_std(self) -> Array:
        """(n,) standard deviations as a share of the values; NaN where a parameter's value is not known."""
        return np.asarray(self.std / np.abs(self.values))

    def __getattr__(self, name: str) -> Any:
        if name in ("deviations", "relative_deviations"):
            new = name.replace("deviations", "std")
            warnings.warn(f"{name} is now {new} and will be gone in 0.6", DeprecationWarning, stacklevel=2)
            return getattr(self, new)
        raise AttributeError(f"ExcitingMotion has no attribute '{name}'")

    @property
    def geometric_mean(self) -> float:
        """(det A)^(1/n), the information per parameter."""
        return float(np.exp(self.log_determinant / len(self.names)))

    def as_dict(self) -> dict[str, Any]:
        """Plain data; the motion itself is left out."""
        return {
            "criterion": finite_or_none(self.value),
            "condition": finite_or_none(self.condition),
            "duration": self.duration,
            "evaluations": self.evaluations,
            "kind": self.criterion,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "bandwidth": self.bandwidth,
            "slack": dict(self.slack),
            "closest": dict(self.closest),
            "noise": self.noise.tolist(),
            "rate": self.rate,
            "deviations": dict(zip(self.names, map(finite_or_none, self.std), strict=True)),
            "relative_std": dict(zip(self.names, map(finite_or_none, self.relative_std), strict=True)),
            "before": None
            if self.before is None
            else dict(zip(self.names, map(finite_or_none, self.before), strict=True)),
            "warnings": list(self.warnings),
        }

    def save(self, path: str | Path) -> None:
        """Write the trajectory as YAML, with how it was made as a note; see `load_trajectory`."""
        by_parameter = ("deviations", "relative_std", "before", "noise", "warnings")
        facts = {key: value for key, value in self.as_dict().items() if key not in by_parameter}
        save_trajectory(self.trajectory, path, {**facts, **self.options})


@keywords(ExcitationOptions)
@on_one_thread
def optimize_excitation(robot: Robot, options: ExcitationOptions) -> ExcitingMotion:
    """Optimal excitation: the motion from which a robot's parameters are identified best (Swevers et al. 1997).

    Args:
        robot: The robot; locked joints stay where they are.
        options: By name, see `ExcitationOptions`.

    Raises:
        InputError: Naming the option, or the joints whose limits are missing.
        InfeasibleError: Naming the limit that cannot be respected, and by how much.
    """
    with one_backend():  # a search magnifies rounding: it finds another motion of the same worth
        design = ExcitationDesign(robot, options)
        demands = design.demands()
        coarse, fine = (
            design.problem(demands, samples)
            for samples in (THRESHOLDS.samples_per_period, THRESHOLDS.fine_samples_per_period)
        )
        return design.predict(ExcitationSearch(coarse, fine, demands, options).run())


class ExcitationDesign:
    """What is optimized and within which limits, from the options.

    Args:
        robot: The robot.
        options: What shapes the motion.
    """

    def __init__(self, robot: Robot, options: ExcitationOptions) -> None:
        self.robot, self.options = robot, options
        self.criterion = options.criterion or ("determinant" if options.information is None else "interval")
        check_locked(robot)
        if robot.closure is not None:
            loop_solver(robot).forget()
        self.whole = gather_limits(
            robot,
            options.limits,
            options.acceleration,
            position_range=options.position_range,
            max_velocity=options.max_velocity,
            max_effort=options.max_effort,
        )
        self.limits = self.whole.shrunk(options.safety)
        self._refuse_immovable_joints()
        frequency, harmonics = series_of(options)
        self.space = Space(robot.joint_names, options.duration, frequency, harmonics, self._start())
        swings = self.space.span * frequency * harmonics
        if swings > THRESHOLDS.most_oscillations:
            raise InputError(
                f"{harmonics} harmonics of {frequency:g} Hz in {self.space.span:g} s are {swings:.3g} "
                f"oscillations; the search takes up to {THRESHOLDS.most_oscillations}: fewer harmonics, a lower "
                "frequency or less time"
            )
        usual = LOG_RATE if options.information is None else FILE_RATE
        self.rate = usual if options.rate is None else options.rate
        self.base = base_parameters(
            robot, with_springs(split_terms(BASIC_TERMS), robot) if options.terms is None else options.terms
        )
        described = [self.base.columns[i] for i in self.base.independent]
        self.scale = column_scales(robot, described)
        self.known, self.noise, values = self._known_information()
        effect = np.abs(values) * self.scale
        typical = float(np.median(effect[effect > 0.0])) if effect.any() else 1.0
        self.sizes = np.maximum(effect, THRESHOLDS.small_value_share * typical)
        self.values = np.where(effect > THRESHOLDS.no_value_share * effect.max(initial=0.0), values, np.nan)

    def _refuse_immovable_joints(self) -> None:
        """Name joints whose effort limit their dry friction takes, before a search finds that nothing moves.

        Raises:
            InfeasibleError: Naming joint, friction and limit.
        """
        if not self.options.torque:
            return
        values = self.options.values
        known = values if isinstance(values, Mapping) else self.robot.value_set(values)
        for joint, effort in zip(self.robot.moving_joints, self.limits.effort, strict=True):
            dry = known.get(f"Fc{joint.number}", 0.0)
            if dry >= effort:
                raise InfeasibleError(
                    f"{joint.name} cannot move: dry friction of {dry:g} {joint.torque_unit} takes all of its effort "
                    f"limit of {effort:g} {joint.torque_unit} (with safety {self.options.safety:g}); raise the limit "
                    "(--max-effort), lower the friction, or lock the joint"
                )

    def _start(self) -> Array | None:
        given = self.options.start
        if given is None:
            return None
        names, limits = self.robot.joint_names, self.limits
        try:
            start = (
                by_joint(given, self.robot, "start") if isinstance(given, Mapping) else np.asarray(given, dtype=float)
            )
        except (TypeError, ValueError):
            start = np.zeros(0)
        if start.shape != (len(names),) or not np.isfinite(start).all():
            raise InputError(f"start must give a position for each of {', '.join(names)}")
        for name, q, low, high in zip(names, start, limits.lower, limits.upper, strict=True):
            if not low < q < high:
                side, far = ("below its lower", low - q) if q <= low else ("above its upper", q - high)
                raise InputError(
                    f"the start pose is outside the limits: {name} at {q:g} is {side} limit by {far:.3g} "
                    f"({low:g} to {high:g} with safety {self.options.safety:g})"
                )
        return frozen(start)

    def _known_information(self) -> tuple[Array, Array, Array]:
        """Rows known already (scaled), noise of each channel, and values of the parameters, zero where unknown."""
        base, options, info = self.base, self.options, self.options.information
        n, noise = len(self.robot.moving), options.noise
        values = base.base_values(options.values) if any(self.robot.value_set().values()) else np.zeros(base.n)
        rows = np.zeros((0, base.n))
        sigma: dict[str, float] = {}
        if info is not None:
            solved = info.solve()
            widths = np.sqrt(per_joint(options.inflation, self.robot, "inflation"))
            wider = dict(zip(self.robot.joint_names, widths, strict=True))
            sigma = {name: float(s * wider.get(name, 1.0)) for name, s in zip(info.channels, solved.sigma, strict=True)}
            rows, values = known_rows(base, info, sigma), known_values(base, info, values)
        if options.model == "energy":
            level = sigma.get("energy", 1.0) if noise is None else noise
            if isinstance(level, str | Mapping | Fit) or np.ndim(level) != 0:
                raise InputError("noise of the energy model must be one number [J]")
            noises = np.array([positive(float(level), "noise", "J")])  # type: ignore[arg-type]
        elif isinstance(noise, Fit):
            noises = noise_of_fit(noise, self.robot, self.rate)
        elif noise is not None:
            noises = per_joint(noise, self.robot, "noise")
        elif all(name in sigma for name in self.robot.joint_names):
            noises = np.array([sigma[name] for name in self.robot.joint_names])
        else:
            effort = self.whole.effort
            noises = NOISE_SHARE * effort if np.isfinite(effort).all() else np.ones(n)
        return rows / self.scale, noises, values

    def _rows(self, times: Array, terms: Sequence[Term]) -> ModelRows:
        """Rows at given times that weigh as much as those at the identification's rate."""
        weight = np.sqrt(len(times) / (self.rate * self.options.duration))
        base = dataclasses.replace(self.base, terms=tuple(terms))
        if self.options.model == "energy":  # a row has the more energy, the longer it lasts
            return EnergyModelRows(base, self.scale, times, float(self.noise[0] / weight))
        return TorqueRows(base, self.scale, times, self.noise * weight, self._rest_velocity())

    def _rest_velocity(self) -> Array:
        given = self.options.rest_velocity
        if given is None:
            return np.asarray(THRESHOLDS.rest_share * self.whole.velocity)
        if isinstance(given, int | float) and given == 0.0:
            return np.zeros(len(self.robot.moving))
        return per_joint(given, self.robot, "rest_velocity")

    def demands(self) -> Demands:
        """The limits of the search."""
        options = self.options
        try:
            boxes = np.array(options.boxes, dtype=np.float64) if len(options.boxes) else np.zeros((0, 2, 3))
        except (TypeError, ValueError):
            boxes = np.zeros(0)
        if boxes.shape[1:] != (2, 3) or not np.isfinite(boxes).all() or (boxes[:, 0] >= boxes[:, 1]).any():
            raise InputError("boxes must be pairs of corners [[x, y, z], [x, y, z]], the lower one first [m]")
        for name, value in options.radius.items() if isinstance(options.radius, Mapping) else ():
            if not (np.isfinite(value) and value >= 0.0):
                raise InputError(f"radius {name} is {value}; expected zero or a positive number [m]")
        exact = resolve_terms(None, self.robot)
        chi = parameters(self.robot, exact, options.values)
        torque = (self._smooth(exact), exact, chi) if options.torque and chi.any() else None
        return Demands(self.robot, self.limits, torque, self.space, options)

    def _smooth(self, terms: Sequence[Term]) -> tuple[Term, ...]:
        """The terms with Coulomb friction smooth enough for derivatives to mean something between samples."""
        turns = self.robot.radians == 1.0
        slow, sliding = (
            THRESHOLDS.smoothing_share * float(np.median(self.limits.velocity[own])) if own.any() else 0.0
            for own in (turns, ~turns)
        )
        return tuple(
            Coulomb(max(slow, term.smoothing), max(sliding, term.sliding)) if isinstance(term, Coulomb) else term
            for term in terms
        )

    def problem(self, demands: Demands, per_period: float) -> SearchProblem:
        """Criterion and limits with so many samples in a period of the highest harmonic."""
        space = self.space
        periods = space.harmonics * space.frequency * space.span
        times = np.linspace(0.0, space.span, int(np.ceil(per_period * periods)) + 1)
        rows = self._rows(times, self._smooth(self.base.terms))
        criterion = with_tie_break(CRITERIA[self.criterion])
        return SearchProblem(space, rows, criterion, self.sizes, self.known.T @ self.known, demands)

    def predict(self, found: SearchResult) -> ExcitingMotion:
        """The motion with the standard deviations to expect of it."""
        motion = self.space.trajectory(found.x)
        if not motion.sine.any() and not motion.cosine.any():
            closest = "; ".join(map(str, found.shortfalls))
            raise InfeasibleError(f"no joint can move from the poses that were tried; at rest: {closest}")
        times = np.arange(round(self.space.span * self.rate) + 1) / self.rate
        own = self._rows(times, self.base.terms).factor(motion.sample(times))
        R = np.asarray(np.linalg.qr(np.vstack([self.known, own]), mode="r"))
        white, singular = _standard_deviations(R)
        words = "of 1 J" if self.options.noise is None else "as given"
        std, noise, rate, refusal = white / self.scale, self.noise, self.rate, ""
        if self.options.model == "dynamic":
            forecast, rate = self._forecast(motion)
            noise, words, refusal = forecast.noise, forecast.noise_words, forecast.refusal
            std = forecast.std
            if len(self.known):
                values, vectors = np.linalg.eigh(forecast.precision / self.scale / self.scale[:, None])
                root = vectors.T * np.sqrt(np.maximum(values, 0.0))[:, None]
                std = _standard_deviations(np.vstack([self.known, root]))[0] / self.scale
        before = _standard_deviations(self.known)[0] / self.scale if len(self.known) else None
        norms = np.linalg.norm(R, axis=0)
        unit = np.linalg.svd(R / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
        condition = float(unit[0] / unit[-1]) if unit[-1] > 1e-12 * unit[0] else float("inf")
        with np.errstate(divide="ignore"):
            log_determinant = 2.0 * float(np.sum(np.log(singular)) + np.sum(np.log(self.scale)))
        value = {
            "determinant": log_determinant,
            "condition": condition,
            "smallest": float(singular[-1]),
            "interval": float(np.max(white / self.sizes)),
        }[self.criterion]
        return ExcitingMotion(
            trajectory=motion,
            criterion=self.criterion,
            value=value,
            condition=condition,
            log_determinant=log_determinant,
            names=self.base.names,
            units=self.base.units,
            std=frozen(std),
            values=frozen(self.values),
            sizes=frozen(self.sizes / self.scale),
            before=before if before is None else frozen(before),
            slack={item.kind: item.share for item in found.shortfalls},
            closest={item.kind: str(item) for item in found.shortfalls},
            evaluations=found.evaluations,
            seconds=found.seconds,
            interrupted=found.interrupted,
            bandwidth=bandwidth_along(self.robot, motion.sample, motion.duration, motion.harmonics * motion.frequency),
            asked=self.options,
            limits=self.limits,
            noise=frozen(noise),
            noise_words=words,
            rate=rate,
            options={"robot": self.robot.name, "model": self.options.model, "safety": self.options.safety},
            warnings=(
                *(str(item) for item in placeholder_limits(self.robot)),
                *self.base.warnings,
                *([f"identify would not take a log of this motion: {refusal}"] if refusal else []),
            ),
        )

    def _forecast(self, motion: Fourier) -> tuple[Forecast, float]:
        """What a log of the motion will tell, and the rate of that log [Hz]."""
        options, rate = self.options, self.rate
        noise = None if options.noise is None and options.information is None else self.noise
        if options.information is not None and rate < LOG_RATE:
            # The rate is that of rows that have passed a filter: a log has more samples, with more noise in each.
            noise, rate = self.noise * np.sqrt(LOG_RATE / rate), LOG_RATE
        found = forecast_identification(self.base, motion, options, rate=rate, noise=noise, effort=self.whole.effort)
        if isinstance(options.noise, Fit):
            found = dataclasses.replace(found, noise_words="that leaves the residuals of the fit")
        elif options.noise is None and options.information is not None:
            found = dataclasses.replace(found, noise_words="of the data to extend")
        return found, rate


def _standard_deviations(R: Array) -> tuple[Array, Array]:
    """Standard deviation of each parameter, infinite where it is not determined, and the singular values, (n,) each."""
    n = R.shape[1]
    _, singular, directions = np.linalg.svd(np.vstack([R, np.zeros((n, n))]), full_matrices=False)
    kept = singular > 1e-12 * max(float(singular[0]), 1e-300)
    std = np.sqrt(np.sum((directions[kept] / singular[kept, None]) ** 2, axis=0))
    undetermined = np.sum(directions[~kept] ** 2, axis=0) > 1e-9
    return np.where(undetermined, np.inf, std), singular
