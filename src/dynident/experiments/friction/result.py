"""Which law the residual of viscous and Coulomb friction looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from dynident.arrays import Array, record
from dynident.dynamics.terms.friction_laws import FRICTION_LAWS
from dynident.experiments.friction.fitting import VelocityFit, fit_friction, shapes
from dynident.experiments.protocol import ExperimentResult, Quantity, Values, merge_estimates
from dynident.experiments.thresholds import FRICTION

_VELOCITIES = (0.02, 0.05, 0.1, 0.2, 0.5)  # [rad/s] that Stribeck and smoothed friction are tried with
_CANDIDATES = tuple(
    key
    for law in FRICTION_LAWS.values()
    if law.residual_words
    for key in ([f"{law.name}({velocity:g})" for velocity in _VELOCITIES] if law.scale == "velocity" else [law.name])
)


@dataclass(frozen=True)
class ResidualShape:
    """A law that explains what viscous and Coulomb friction miss.

    Attributes:
        law: As `identify --friction` takes it.
        explains: Share of the squared residual.
        low: Residual at the slowest point, in the sense of its friction: positive where friction is above the line.
        velocity: Velocity of that point.
    """

    law: str
    explains: float
    low: float
    velocity: float

    @property
    def words(self) -> str:
        """For people."""
        name = self.law.partition("(")[0]
        side = "above" if self.low > 0.0 else "below"
        return (
            f"{FRICTION_LAWS[name].residual_words}: "
            f"at {self.velocity:.3g} it is {abs(self.low):.3g} {side} the line; {self.law} explains "
            f"{100.0 * self.explains:.0f} % of it, so identify with --friction '{self.law}'"
        )


def residual_shape(fit: VelocityFit) -> ResidualShape | None:
    """The law that explains most of a misfit; None where there is none worth a word, or too few points."""
    if not fit.misfit.matters or fit.laws:
        return None
    before = _square(fit)
    slowest, row = _slowest(fit)
    sense = np.sign(fit.points[slowest].torque[row])
    best: ResidualShape | None = None
    for candidate in _CANDIDATES:
        laws = shapes(candidate)
        if fit.residual.size <= len(fit.names) + len(fit.group.elements) * len(laws):
            return None
        tried = fit_friction(fit.group, fit.points, laws)
        if tried.rank < len(tried.names) or not _sensible(tried):  # as when no point is slow enough to see it
            continue
        explains = 1.0 - _square(tried) / before
        if explains > max(FRICTION.explained_share, 0.0 if best is None else best.explains):
            velocity = float(np.abs(fit.points[slowest].velocity[row]))
            best = ResidualShape(candidate, explains, float(sense * fit.residual[slowest, row]), velocity)
    return best


def _square(fit: VelocityFit) -> float:
    return float(np.sum((fit.residual / fit.misfit.scatter) ** 2))


def _slowest(fit: VelocityFit) -> tuple[int, int]:
    """The slowest point, and the output whose residual there is largest."""
    velocities = [float(np.abs(point.velocity).min()) for point in fit.points]
    slowest = int(np.argmin(velocities))
    return slowest, int(np.argmax(np.abs(fit.residual[slowest] / fit.misfit.scatter)))


def _sensible(fit: VelocityFit) -> bool:
    """Whether Stribeck friction falls and smoothed friction rises with velocity; others bend either way."""
    if fit.laws[0].law.scale != "velocity":
        return True
    return sum(fit[name] for name in fit.names if name.startswith(fit.laws[0].name)) > 0.0


# ----------------------------------------------------------------------------------------------------------------------
# `VelocityFriction`: what constant velocities tell of friction, and what a reader should know about it.


@record
class VelocityFriction(ExperimentResult):
    """Friction of joints from constant velocities.

    Attributes:
        gravity: How gravity was dealt with, in words.
        fits: One for each joint, or for two coupled ones.
        shapes: The law that each misfit looks like, where there is one.
        poses: Where the other joints were held, (n_moving,) for each fit; empty for logs.
        left_out: Runs that were not used, with the reason.
    """

    gravity: str
    fits: tuple[VelocityFit, ...]
    shapes: tuple[ResidualShape | None, ...]
    poses: tuple[Array, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        gravity: str,
        fits: Sequence[VelocityFit],
        poses: Sequence[Array] = (),
        left_out: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> Self:
        """The result of some fits, with what is to be said about them."""
        shapes = tuple(residual_shape(fit) for fit in fits)
        doubts = [doubt for fit, shape in zip(fits, shapes, strict=True) for doubt in _doubts(fit, shape)]
        return cls(
            robot=fits[0].group.robot,
            estimate=merge_estimates(fits),
            true={},
            notes=tuple(notes),
            warnings=(*(f"left out: {one}" for one in left_out), *doubts),
            gravity=gravity,
            fits=tuple(fits),
            shapes=shapes,
            poses=tuple(poses),
            left_out=tuple(left_out),
        )

    def __getitem__(self, name: str) -> Quantity:
        """A parameter by name."""
        return self.quantity(name)

    def true_values(self, values: Values) -> Mapping[str, float]:
        """Friction of a set of standard values; what it does not name is zero."""
        known = values if isinstance(values, Mapping) else self.robot.value_set(values)
        return {**dict.fromkeys(self.robot.parameter_names, 0.0), **known}

    def details(self) -> dict[str, Any]:
        """For each fit its points, rank and misfit."""
        fits = [
            {
                "joints": list(fit.group.joints),
                "outputs": list(fit.group.outputs),
                "parameters": list(fit.names),
                "rank": fit.rank,
                "undetermined": list(fit.undetermined),
                "misfit": fit.misfit.as_dict(),
                "inertia": fit.inertia[0].tolist(),
                "inertia_std": fit.inertia[1].tolist(),
                "shape": None if shape is None else asdict(shape),
                "points": [point.as_dict() for point in fit.points],
            }
            for fit, shape in zip(self.fits, self.shapes, strict=True)
        ]
        poses = [pose.tolist() for pose in self.poses]
        left_out, notes = list(self.left_out), list(self.notes)
        return {"gravity": self.gravity, "fits": fits, "left_out": left_out, "notes": notes, "poses": poses}


def _doubts(fit: VelocityFit, shape: ResidualShape | None) -> list[str]:
    found = []
    where = " and ".join(fit.group.joints)
    if fit.undetermined:
        found.append(_open_words(fit, where))
    misfit = fit.misfit
    if misfit.matters:
        worst = int(np.argmax(misfit.rms / misfit.scatter))
        text = (
            f"{where}: the model misses {misfit.rms[worst]:.2g} of {misfit.friction[worst]:.3g} (RMS, "
            f"{fit.group.outputs[worst]}), {misfit.rms[worst] / misfit.scatter[worst]:.2g} times the scatter of a point"
        )
        found.append(f"{text}; {shape.words}" if shape is not None else text)
    drives = _driving(fit)
    if drives:
        found.append(drives)
    return found


def _open_words(fit: VelocityFit, where: str) -> str:
    """Which parameters are open, why, and what changes without any effect."""
    changes = []
    for direction in fit.open.T:
        parts = [f"{name} {x:+.3g}" for name, x in zip(fit.names, direction, strict=True) if x]
        changes.append(", ".join(parts))
    names = ", ".join(fit.undetermined)
    return (
        f"{where}: {names} not determined (rank {fit.rank} of {len(fit.names)}), {_reason(fit)}; nothing changes with "
        + ", nor with ".join(changes)
    )


def _reason(fit: VelocityFit) -> str:
    velocity = np.array([point.velocity for point in fit.points])
    v, ways = np.abs(velocity), np.sign(velocity)
    if len(fit.group.places) == 2 and np.all(ways[:, 0] * ways[:, 1] == ways[0, 0] * ways[0, 1]):
        a, b = fit.group.variables
        return f"for the velocities of {a} and {b} have the same product sign in all runs; both signs are needed"
    if not any(point.odd for point in fit.points) and np.all(ways == ways[0]):
        return "for all runs go in one direction, in which Coulomb friction and offset look alike; run both"
    if np.all(np.ptp(v, axis=0) < FRICTION.same_velocity_share * v.max(axis=0)):
        return "for all runs have one velocity; at least two are needed"
    return "for the velocities do not distinguish them; run more of them"


def _driving(fit: VelocityFit) -> str:
    """A warning where friction drives instead of braking: a sign is wrong, or gravity is."""
    for point in fit.points:
        power = point.torque * (fit.group.coupling @ point.velocity)
        noise = float(np.sum(np.abs(point.std * (fit.group.coupling @ point.velocity))))
        if point.odd and float(power.sum()) < -3.0 * noise:
            at = ", ".join(f"{x:.3g}" for x in point.velocity)
            return (
                f"{' and '.join(fit.group.joints)}: friction would drive the machine at velocities {at}; check the "
                "sign of the torque (drive_gains) and its channels"
            )
    return ""
