"""Base combinations of inertial parameters from effective inertias: joint by joint from the tip, or all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.arrays import Array, frozen
from dynident.errors import UnknownNameError
from dynident.experiments.options import Way
from dynident.experiments.protocol import Quantity
from dynident.experiments.step.poses import InertiaBase, motor_friction, motor_inertia
from dynident.experiments.step.records import StepRecord
from dynident.experiments.step.response import JointNumbers, StepResponse
from dynident.robot.model import Robot

WAYS: tuple[Way, ...] = ("sequential", "together")
_RANK = 1e-8  # share of the largest singular value of scaled rows that counts
_CLEAR = 0.1  # the same for what a joint settles on its own
_OPEN = 1e-6  # part of a parameter in directions that no row tells


@dataclass(frozen=True)
class Inertia:
    """An effective inertia that was measured.

    Attributes:
        motor: The motor, as a place in `robot.joint_names`.
        pose: (n_moving,) [rad or m].
        value: Me [kg·m² or kg].
        std: Its deviation.
    """

    motor: int
    pose: Array
    value: float
    std: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", frozen(self.pose))


@dataclass(frozen=True)
class Combinations:
    """Values of the base combinations.

    Attributes:
        base: What they are.
        beta: (n,) values.
        covariance: (n, n).
        told: (n,) whether the poses tell each of them.
        condition: Of the scaled rows over what they tell.
        left: (n_inertias,) measured minus computed inertia, in deviations.
        shares: (n_inertias,) size of the same, as a share of the inertia.
        new: How many of them each motor told first, by place in `robot.joint_names`.
    """

    base: InertiaBase
    beta: Array
    covariance: Array
    told: tuple[bool, ...]
    condition: float
    left: Array
    shares: Array
    new: dict[int, int]

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "left", "shares"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def std(self) -> Array:
        """Deviations, (n,); infinite where the poses do not tell."""
        own = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        return np.where(self.told, own, np.inf)


def solve_inertias(base: InertiaBase, inertias: Sequence[Inertia], way: Way = "sequential") -> Combinations:
    """Base combinations from measured inertias.

    Args:
        base: What can be told.
        inertias: What was measured.
        way: "sequential": what the joints towards the tip told is taken as known by those towards the base (Kim 1990,
            section 4). "together": one weighted least-squares problem.
    """
    if way not in WAYS:
        raise UnknownNameError("way to solve", way, WAYS)
    H = np.vstack([base.rows(one.pose, one.motor) for one in inertias])
    y = np.array([one.value - float(base.known(one.pose, one.motor)[0]) for one in inertias])
    std = np.array([max(one.std, 1e-12 * abs(one.value), 1e-300) for one in inertias])
    scale = np.linalg.norm(H, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    X = H / scale
    owners = np.array([one.motor for one in inertias])
    all_of_them = np.ones(len(y), dtype=bool)
    groups = [owners == motor for motor in sorted(set(owners.tolist()), reverse=True)]
    groups = [all_of_them] if way == "together" else [*groups, all_of_them]
    beta, covariance, open_, new = _stages(X, y, std, groups, owners)
    told = tuple(bool(x) for x in np.linalg.norm(open_, axis=1) < _OPEN)
    sizes = np.linalg.svd(X, compute_uv=False)
    sizes = sizes[sizes > _RANK * sizes[0]]
    left = y - X @ beta
    spare = len(y) - (X.shape[1] - open_.shape[1])
    # Inertias that agree less than their deviations say are less certain than these.
    covariance = covariance * max(1.0, float(np.sum((left / std) ** 2)) / spare if spare > 0 else 1.0)
    shares = np.abs(left) / np.array([abs(one.value) for one in inertias])
    return Combinations(
        base,
        beta / scale,
        covariance / np.outer(scale, scale),
        told,
        float(sizes[0] / sizes[-1]),
        left / std,
        shares,
        new,
    )


def _stages(
    X: Array, y: Array, std: Array, groups: Sequence[Array], owners: Array
) -> tuple[Array, Array, Array, dict[int, int]]:
    """Solve group after group; each moves only along what the groups before left open.

    Returns:
        Values and covariance of scaled parameters, directions that stay open (n, n_open), directions that each told.
    """
    n = X.shape[1]
    beta, covariance, open_ = np.zeros(n), np.zeros((n, n)), np.eye(n)
    new: dict[int, int] = {}
    for turn, group in enumerate(groups):
        # A joint settles only what it tells well; the rest is left to those that follow, and at last to all of them.
        clear = _RANK if turn == len(groups) - 1 else _CLEAR
        rows, weight = X[group], 1.0 / std[group]
        left, sizes, right = np.linalg.svd((rows * weight[:, None]) @ open_, full_matrices=True)
        plain = np.linalg.svd(rows @ open_, compute_uv=False)
        rank = int(np.sum(plain > clear * np.linalg.norm(X))) if open_.shape[1] else 0
        new[int(owners[group][0])] = new.get(int(owners[group][0]), 0) + rank
        G = open_ @ (right[:rank].T / sizes[:rank]) @ (left[:, :rank].T * weight)
        keep = np.eye(n) - G @ rows
        beta = beta + G @ (y[group] - rows @ beta)
        covariance = keep @ covariance @ keep.T + (G * std[group] ** 2) @ G.T
        open_ = open_ @ right[rank:].T
    return beta, covariance, open_, new


# ----------------------------------------------------------------------------------------------------------------------
# What a step test found: configurations, friction, combinations, and the numbers for people.


@dataclass(frozen=True)
class Configuration:
    """All steps of one motor with the others locked at one place.

    Attributes:
        motor: The motor, as a place in `robot.joint_names`.
        pose: (n_moving,) [rad or m].
        records: What was recorded.
        responses: What was fitted, one for each.
        numbers: Inertia, damping and friction; None with one voltage only.
        curves: (n_samples,) for each: positions that the numbers give; empty where A and U say it all.
    """

    motor: int
    pose: Array
    records: tuple[StepRecord, ...]
    responses: tuple[StepResponse, ...]
    numbers: JointNumbers | None
    curves: tuple[Array, ...] = ()

    def as_dict(self, robot: Robot) -> dict[str, Any]:
        """Plain data."""
        told = self.numbers
        std = None if told is None else told.std
        return {
            "joint": robot.joint_names[self.motor],
            "pose": [float(x) for x in self.pose],
            "inertia": None if told is None else told.inertia,
            "inertia_std": None if std is None else float(std[0]),
            "damping": None if told is None else told.damping,
            "coulomb": None if told is None else told.coulomb,
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
class JointFriction:
    """Friction of a motor over all its configurations.

    Attributes:
        motor: The motor, as a place in `robot.joint_names`.
        damping: B [N·m·s/rad or N·s/m], and its deviation.
        emf: Part of it that back-EMF makes, Kt Ke / Ra; None where Ke is not known.
        coulomb: Tc [N·m or N], and its deviation; with steps one way only, a constant torque is part of it.
        offset: Constant torque and its deviation; None where steps went one way only.
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
class StepResult:
    """What a step test found.

    Attributes:
        robot: The robot.
        configurations: In the order in which they were looked at, tip first.
        friction: One for each tested motor with two voltages.
        combinations: Base combinations of inertial parameters; None with one voltage only.
        terms: How A and U were found: None for the exact solution, else terms of Taylor's series.
        warnings: What a user should know.
        notes: What else there is to know.
    """

    robot: Robot
    configurations: tuple[Configuration, ...]
    friction: tuple[JointFriction, ...]
    combinations: Combinations | None
    terms: int | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    def quantities(self, true: str | None = None, *, simulated: bool = False) -> tuple[Quantity, ...]:
        """The numbers: combinations, then damping and friction of each joint; A and U where that is all.

        Args:
            true: Value set of a simulated machine.
            simulated: Show what it has.
        """
        found = [] if self.combinations is None else self._combinations(true, simulated)
        if self.combinations is not None and not all(self.combinations.told):
            found += self._inertias(true, simulated)
        found += [one for friction in self.friction for one in self._friction(friction, true, simulated)]
        alone = [one for one in self.configurations if one.numbers is None]
        for config in alone:
            number = self.robot.joints[self.robot.active[self.robot.moving[config.motor]]].number
            unit = "m" if _slides(self.robot, config.motor) else "rad"
            for record, one in zip(config.records, config.responses, strict=True):
                at = f"{number} at {record.voltage:g} V"
                found.append(Quantity(f"A{at}", one.A, float(np.sqrt(one.covariance[0, 0])), "1/s"))
                found.append(Quantity(f"U{at}", one.U, float(np.sqrt(one.covariance[1, 1])), f"{unit}/s²"))
        return tuple(found)

    def _combinations(self, true: str | None, simulated: bool) -> list[Quantity]:
        assert self.combinations is not None
        base, std = self.combinations.base, self.combinations.std
        truth: list[float | None] = [None] * base.n
        if simulated:
            truth = [float(x) for x in base.values(true)]
        return [
            Quantity(base.names[k], float(self.combinations.beta[k]), float(std[k]), base.units[k], truth[k])
            for k in range(base.n)
            if self.combinations.told[k]
        ]

    def _inertias(self, true: str | None, simulated: bool) -> list[Quantity]:
        """Effective inertias, where they are not all told by combinations."""
        found = []
        for k, config in enumerate(self.configurations, start=1):
            if config.numbers is not None:
                number = self.robot.joints[self.robot.active[self.robot.moving[config.motor]]].number
                unit = "kg" if _slides(self.robot, config.motor) else "kg·m²"
                told = config.numbers
                real = self.computed(config, true) if simulated else None
                found.append(Quantity(f"Me{number} ({k})", told.inertia, float(told.std[0]), unit, real))
        return found

    def _friction(self, one: JointFriction, true: str | None, simulated: bool) -> list[Quantity]:
        number = self.robot.joints[self.robot.active[self.robot.moving[one.motor]]].number
        slides = _slides(self.robot, one.motor)
        force, per = ("N", "N·s/m") if slides else ("N·m", "N·m·s/rad")
        # Steps one way cannot tell a constant torque from Coulomb friction.
        way = one.direction if one.offset is None else 0.0
        viscous, dry = motor_friction(self.robot, one.motor, true, way) if simulated else (None, None)
        found = []
        if one.emf is not None:
            found.append(Quantity(f"Fv{number}", one.damping[0] - one.emf, one.damping[1], per, viscous))
        total = None if viscous is None else viscous + (one.emf or 0.0)
        found.append(Quantity(f"B{number}", *one.damping, per, total))
        found.append(Quantity(f"Fc{number}", *one.coulomb, force, dry))
        if one.offset is not None:
            found.append(Quantity(f"Fo{number}", *one.offset, force))
        return found

    def computed(self, config: Configuration, values: str | None = None) -> float:
        """The inertia of a configuration with a value set."""
        return float(motor_inertia(self.robot, config.pose, config.motor, values)[0])


def _slides(robot: Robot, motor: int) -> bool:
    return robot.joints[robot.active[robot.moving[motor]]].kind == "prismatic"
