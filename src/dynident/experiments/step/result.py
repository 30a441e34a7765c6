"""Base combinations of inertial parameters from effective inertias: joint by joint from the tip, or all together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from dynident.arrays import Array, record
from dynident.experiments.options import Way
from dynident.experiments.protocol import ExperimentResult, Quantity, Values, merge_estimates
from dynident.experiments.step.poses import RANK_SHARE, InertiaBase, motor_friction, motor_inertia
from dynident.experiments.step.records import StepRecord
from dynident.experiments.step.response import StepResponse, joint_estimate
from dynident.experiments.thresholds import STEP
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord
from dynident.payload.quantities import PayloadNumber
from dynident.plant.drives import Motors
from dynident.robot.model import Robot

_OPEN = 1e-6  # part of a parameter in directions that no row tells


def solve_inertias(
    base: InertiaBase, measured: Sequence[Configuration], way: Way = "sequential"
) -> tuple[ParameterEstimate, Array, Array]:
    """Base combinations of inertial parameters from measured inertias.

    Args:
        base: What can be determined.
        measured: Configurations with an inertia.
        way: "sequential": what the joints towards the tip determine is taken as known by those towards the base (Kim
            1990, section 4). "together": one weighted least-squares problem.

    Returns:
        The combinations, of which those are determined that the poses show; measured minus computed inertia of each
        configuration, in standard deviations; and its size as a share of the inertia.
    """
    H = np.vstack([base.rows(one.pose, one.motor) for one in measured])
    y = np.array([one.inertia - float(base.known(one.pose, one.motor)[0]) for one in measured])
    std = np.array([max(one.inertia_std, 1e-12 * abs(one.inertia), 1e-300) for one in measured])
    scale = np.linalg.norm(H, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    X = H / scale
    owners = np.array([one.motor for one in measured])
    all_of_them = np.ones(len(y), dtype=bool)
    groups = [owners == motor for motor in sorted(set(owners.tolist()), reverse=True)]
    groups = [all_of_them] if way == "together" else [*groups, all_of_them]
    beta, covariance, open_ = _stages(X, y, std, groups)
    determined = np.linalg.norm(open_, axis=1) < _OPEN
    sizes = np.linalg.svd(X, compute_uv=False)
    rank = int(np.sum(sizes > RANK_SHARE * sizes[0]))
    left = y - X @ beta
    spare = len(y) - (X.shape[1] - open_.shape[1])
    # Inertias that agree less than their standard deviations say are less certain than these.
    covariance = covariance * max(1.0, float(np.sum((left / std) ** 2)) / spare if spare > 0 else 1.0)
    solve = SolveRecord(
        rank=rank,
        singular_values=np.asarray(sizes, dtype=np.float64),
        condition=float(sizes[0] / sizes[rank - 1]),
        gap=(float(sizes[rank - 1] / sizes[0]), float(sizes[rank] / sizes[0]) if rank < len(sizes) else 0.0),
        channels=(),
        residual_std=np.zeros(0),
        channel_weights=np.zeros(0),
        determined=determined,
        n_rows=len(y),
        iterations=1,
    )
    covariance = covariance / np.outer(scale, scale)
    estimate = ParameterEstimate.of(base, beta / scale, covariance, determined, solve=solve)
    return estimate, left / std, np.abs(left) / np.array([abs(one.inertia) for one in measured])


def _stages(X: Array, y: Array, std: Array, groups: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Solve group after group; each moves only along what the groups before left open.

    Returns:
        Values and covariance of scaled parameters, directions that stay open (n, n_open).
    """
    n = X.shape[1]
    beta, covariance, open_ = np.zeros(n), np.zeros((n, n)), np.eye(n)
    for turn, group in enumerate(groups):
        # A joint settles only what it tells well; the rest is left to those that follow, and at last to all of them.
        clear = RANK_SHARE if turn == len(groups) - 1 else STEP.clear_share
        rows, weight = X[group], 1.0 / std[group]
        left, sizes, right = np.linalg.svd((rows * weight[:, None]) @ open_, full_matrices=True)
        plain = np.linalg.svd(rows @ open_, compute_uv=False)
        rank = int(np.sum(plain > clear * np.linalg.norm(X))) if open_.shape[1] else 0
        G = open_ @ (right[:rank].T / sizes[:rank]) @ (left[:, :rank].T * weight)
        keep = np.eye(n) - G @ rows
        beta = beta + G @ (y[group] - rows @ beta)
        covariance = keep @ covariance @ keep.T + (G * std[group] ** 2) @ G.T
        open_ = open_ @ right[rank:].T
    return beta, covariance, open_


# ----------------------------------------------------------------------------------------------------------------------
# What a step test found: configurations, friction, combinations, and the numbers for people.


@dataclass(frozen=True)
class Configuration:
    """All steps of one motor with the others locked at one place.

    Attributes:
        motor: The motor, as a place in `robot.joint_names`.
        pose: (n_moving,) [rad or m].
        numbers: inertia, damping, coulomb, offset; None with one voltage only.
        records: What was recorded; empty of an earlier test.
        responses: What was fitted, one for each.
        curves: (n_samples,) for each: positions that the numbers give; empty where A and U say it all.
        misfit: By how many standard deviations the answers differ from one inertia, damping and friction.
        described: (4,) part of the standard deviations that comes from the described weight, the same at every pose.
    """

    motor: int
    pose: Array
    numbers: ParameterEstimate | None
    records: tuple[StepRecord, ...] = ()
    responses: tuple[StepResponse, ...] = ()
    curves: tuple[Array, ...] = ()
    misfit: float = 0.0
    described: Array = field(default_factory=lambda: np.zeros(4))

    @classmethod
    def of_inertia(cls, motor: int, pose: Array, inertia: float, std: float) -> Self:
        """One of which only the effective inertia and its standard deviation [kg·m² or kg] are known."""
        return cls(motor, pose, joint_estimate(np.array([inertia]), np.array([[std**2]])))

    @property
    def inertia(self) -> float:
        """Me of a configuration with two voltages [kg·m² or kg]."""
        assert self.numbers is not None
        return self.numbers["inertia"]

    @property
    def inertia_std(self) -> float:
        """Its standard deviation."""
        assert self.numbers is not None
        return float(self.numbers.std[0])

    def as_dict(self, robot: Robot) -> dict[str, Any]:
        """Plain data."""
        numbers = self.numbers
        return {
            "joint": robot.joint_names[self.motor],
            "pose": [float(x) for x in self.pose],
            "inertia": None if numbers is None else self.inertia,
            "inertia_std": None if numbers is None else self.inertia_std,
            "damping": None if numbers is None else numbers["damping"],
            "coulomb": None if numbers is None else numbers["coulomb"],
            "steps": [
                {
                    "run": record.label,
                    "voltage": record.voltage,
                    "A": one.A,
                    "A_std": float(np.sqrt(one.covariance[0, 0])),
                    "U": one.U,
                    "U_std": float(np.sqrt(one.covariance[1, 1])),
                    "onset": one.onset - record.step,
                    "duration": one.duration,
                    "travel": one.travel,
                    "rms": one.rms,
                }
                for record, one in zip(self.records, self.responses, strict=True)
            ],
        }


@dataclass(frozen=True)
class MotorFriction:
    """Friction of a motor over all its configurations.

    Attributes:
        motor: The motor, as a place in `robot.joint_names`.
        damping: B [N·m·s/rad or N·s/m], and its standard deviation.
        emf: Part of it that back-EMF makes, Kt Ke / Ra; None where Ke is not known.
        coulomb: Tc [N·m or N], and its standard deviation; with steps one way only, a constant torque is part of
            it.
        offset: Constant torque and its standard deviation; None where steps went one way only.
        lag: L/R of the motor [s].
        record: Shortest time from onset to end of its records [s].
        direction: Sign of the motion.
        described: Part of the standard deviation of Tc that comes from the described weight [N·m or N].
    """

    motor: int
    damping: tuple[float, float]
    emf: float | None
    coulomb: tuple[float, float]
    offset: tuple[float, float] | None
    lag: float
    record: float
    direction: float = 1.0
    described: float = 0.0


@dataclass(frozen=True)
class FeedforwardRun:
    """One motion under one feedforward.

    Attributes:
        model: Name of the feedforward.
        joints: Places of the joints that were to move.
        time: (n_samples,) [s].
        error: (n_samples, n_moving) position minus wanted [rad or m].
        velocity_error: The same for velocities.
        why: Why the run ended.
    """

    model: str
    joints: tuple[int, ...]
    time: Array
    error: Array
    velocity_error: Array
    why: str

    @property
    def worst(self) -> Array:
        """Largest position error of each joint that was to move."""
        return np.asarray(np.abs(self.error).max(axis=0)[list(self.joints)])


@record
class StepResult(ExperimentResult):
    """What a step test found: combinations, then damping and friction of each joint; A and U where that is all.

    Attributes:
        motors: Torque constant and resistance of the motors.
        configurations: In the order in which they were looked at, tip first.
        friction: One for each tested motor with two voltages.
        combinations: Base combinations of inertial parameters, whose coordinates are an `InertiaBase`; None with one
            voltage only.
        terms: How A and U were found: None for the exact solution, else terms of Taylor's series.
        motors_from: Where the numbers of the motors come from: "given", or "assumed" for a simulated machine.
        payload: What the tool carries, by an unloaded test beside this one: mass; cx, cy, cz; Ixx .. Iyz, withheld
            where the poses do not determine them; empty without such a test.
        payload_pairs: Number of inertias with and without it.
        tracks: The feedforward check; empty where it was not made.
    """

    motors: Motors
    configurations: tuple[Configuration, ...]
    friction: tuple[MotorFriction, ...]
    combinations: ParameterEstimate | None
    terms: int | None
    motors_from: str = "given"
    payload: tuple[PayloadNumber, ...] = ()
    payload_pairs: int = 0
    tracks: tuple[FeedforwardRun, ...] = ()

    @property
    def inertias(self) -> tuple[Configuration, ...]:
        """Configurations that determine their effective inertia: those with two voltages."""
        return tuple(one for one in self.configurations if one.numbers is not None)

    @property
    def base(self) -> InertiaBase:
        """What the combinations are."""
        base = None if self.combinations is None else self.combinations.coordinates
        assert isinstance(base, InertiaBase)
        return base

    def quantities(self, true: str | None = None, *, simulated: bool = False) -> tuple[Quantity, ...]:
        """Before 0.5: `estimates`, or `beside(true).estimates` for a simulated machine."""
        warnings.warn(
            "StepResult.quantities is now estimates and will be gone in 0.6", DeprecationWarning, stacklevel=2
        )
        return self.beside(true).estimates if simulated else self.estimates

    def with_payload(self, numbers: Sequence[PayloadNumber], warnings: Sequence[str], pairs: int) -> Self:
        """The same with what the tool carries, from `step_payload`, whose numbers come first."""
        rows = [Quantity(x.name, x.value, x.std or 0.0, x.unit) for x in numbers if x.value is not None]
        estimate = merge_estimates([_as_estimate(rows), self.estimate])
        more = (*self.warnings, *warnings)
        return replace(self, estimate=estimate, payload=tuple(numbers), payload_pairs=pairs, warnings=more)

    def with_tracks(self, tracks: Sequence[FeedforwardRun]) -> Self:
        """The same with the feedforward check."""
        early = [one for one in tracks if "ran to its end" not in one.why]
        more = [f"feedforward check, {one.model}: {one.why}" for one in early]
        return replace(self, tracks=tuple(tracks), warnings=(*self.warnings, *more))

    def true_values(self, values: Values) -> Mapping[str, float]:
        """Combinations, effective inertias and friction of a set of standard values."""
        found: dict[str, float] = {}
        if self.combinations is not None:
            found |= dict(zip(self.base.names, self.base.values(values).tolist(), strict=True))
        for k, config in enumerate(self.configurations, start=1):
            if config.numbers is not None:
                found[f"Me{_number(self.robot, config.motor)} ({k})"] = self.computed(config, values)
        for one in self.friction:
            number = _number(self.robot, one.motor)
            # Steps one way cannot separate a constant torque from Coulomb friction.
            way = one.direction if one.offset is None else 0.0
            viscous, dry = motor_friction(self.robot, one.motor, values, way)
            found |= {f"Fv{number}": viscous, f"B{number}": viscous + (one.emf or 0.0), f"Fc{number}": dry}
        return found

    def computed(self, config: Configuration, values: Values = None) -> float:
        """The inertia of a configuration with a value set."""
        return float(motor_inertia(self.robot, config.pose, config.motor, values)[0])

    def details(self) -> dict[str, Any]:
        """Motors, configurations, combinations, payload and feedforward check."""
        robot, own, found = self.robot, self.motors.for_joints(self.robot.joint_names), self.combinations
        more: dict[str, Any] = {
            "gain": own.gain.tolist(),
            "motors": self.motors_from,
            "fit": "exact" if self.terms is None else f"taylor {self.terms}",
            "configurations": [one.as_dict(robot) for one in self.configurations],
            "combinations": None
            if found is None
            else {
                "names": list(found.names),
                "expressions": list(self.base.expressions),
                "condition": found.condition,
                "determined": int(found.determined.sum()),
            },
            "electrical": [
                {"joint": robot.joint_names[one.motor], "lag": one.lag, "record": one.record} for one in self.friction
            ],
            "notes": list(self.notes),
        }
        if self.payload:
            more["payload"] = [one.as_dict() for one in self.payload]
        if self.tracks:
            more["tracking"] = [
                {
                    "model": one.model,
                    "joints": [robot.joint_names[j] for j in one.joints],
                    "position_error": one.worst.tolist(),
                }
                for one in self.tracks
            ]
        return more


def gather_estimates(
    robot: Robot,
    configurations: Sequence[Configuration],
    friction: Sequence[MotorFriction],
    combinations: ParameterEstimate | None,
) -> ParameterEstimate:
    """Combinations that are determined, inertias where some are not, friction, and A and U where that is all."""
    parts, rows = [], []
    if combinations is not None:
        parts.append(combinations.restrict([x for x in combinations.names if x not in combinations.undetermined]))
        rows = _inertias(robot, configurations) if combinations.undetermined else []
    rows += [row for one in friction for row in _friction_rows(robot, one)]
    rows += [row for one in configurations if one.numbers is None for row in _constants(robot, one)]
    return merge_estimates([*parts, _as_estimate(rows)])


def _as_estimate(rows: Sequence[Quantity]) -> ParameterEstimate:
    """Numbers that were found one by one as an estimate."""
    std = np.array([one.std for one in rows])
    known = np.isfinite(std)
    names, units = tuple(one.name for one in rows), tuple(one.unit for one in rows)
    values = np.array([one.value for one in rows])
    return ParameterEstimate(names, units, values, np.diag(np.where(known, std, 0.0) ** 2), known)


def _inertias(robot: Robot, configurations: Sequence[Configuration]) -> list[Quantity]:
    """Effective inertias, where combinations do not say it all."""
    return [
        Quantity(
            f"Me{_number(robot, one.motor)} ({k})",
            one.inertia,
            one.inertia_std,
            "kg" if _slides(robot, one.motor) else "kg·m²",
        )
        for k, one in enumerate(configurations, start=1)
        if one.numbers is not None
    ]


def _friction_rows(robot: Robot, one: MotorFriction) -> list[Quantity]:
    number = _number(robot, one.motor)
    force, per = ("N", "N·s/m") if _slides(robot, one.motor) else ("N·m", "N·m·s/rad")
    found = [Quantity(f"B{number}", *one.damping, per), Quantity(f"Fc{number}", *one.coulomb, force)]
    if one.emf is not None:
        found.insert(0, Quantity(f"Fv{number}", one.damping[0] - one.emf, one.damping[1], per))
    return found if one.offset is None else [*found, Quantity(f"Fo{number}", *one.offset, force)]


def _constants(robot: Robot, config: Configuration) -> list[Quantity]:
    """A and U of each step."""
    unit, found = "m" if _slides(robot, config.motor) else "rad", []
    for step, one in zip(config.records, config.responses, strict=True):
        at, std = f"{_number(robot, config.motor)} at {step.voltage:g} V", np.sqrt(np.diagonal(one.covariance)).tolist()
        found += [Quantity(f"A{at}", one.A, std[0], "1/s"), Quantity(f"U{at}", one.U, std[1], f"{unit}/s²")]
    return found


def _number(robot: Robot, motor: int) -> int:
    return robot.moving_joints[motor].number


def _slides(robot: Robot, motor: int) -> bool:
    return robot.moving_joints[motor].kind == "prismatic"
