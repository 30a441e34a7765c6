"""Which law the residual of viscous and Coulomb friction looks like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.experiments.velocity.fit import VelocityFit, fit_friction
from dynident.experiments.velocity.model import shapes

_SPEEDS = (0.02, 0.05, 0.1, 0.2, 0.5)  # [rad/s] that Stribeck and smoothed friction are tried with
_CANDIDATES = (
    *(f"{name}({speed:g})" for name in ("stribeck", "sign") for speed in _SPEEDS),
    "quadratic",
    "cubic",
)
_EXPLAINS = 0.5  # share of the squared residual that a law must explain to be worth a word
_WORDS = {
    "stribeck": "friction falls as motion sets in (Stribeck)",
    "sign": "friction comes up more slowly than Coulomb's",
    "quadratic": "friction bends with the square of the speed",
    "cubic": "friction bends with the cube of the speed",
}


@dataclass(frozen=True)
class Shape:
    """A law that explains what viscous and Coulomb friction miss.

    Attributes:
        law: As `identify --friction` takes it.
        explains: Share of the squared residual.
        low: Residual at the slowest point, in the sense of its friction: positive where friction is above the line.
        speed: Speed of that point.
    """

    law: str
    explains: float
    low: float
    speed: float

    @property
    def words(self) -> str:
        """For people."""
        name = self.law.partition("(")[0]
        side = "above" if self.low > 0.0 else "below"
        return (
            f"{_WORDS[name]}: at {self.speed:.3g} it is {abs(self.low):.3g} {side} the line; {self.law} explains "
            f"{100.0 * self.explains:.0f} % of it, so identify with --friction '{self.law}'"
        )

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        return {"law": self.law, "explains": self.explains, "low": self.low, "speed": self.speed}


def residual_shape(fit: VelocityFit) -> Shape | None:
    """The law that explains most of a misfit; None where there is none worth a word, or too few points."""
    if not fit.misfit.matters or fit.laws:
        return None
    before = _square(fit)
    slowest, row = _slowest(fit)
    sense = np.sign(fit.points[slowest].torque[row])
    best: Shape | None = None
    for candidate in _CANDIDATES:
        laws = shapes(candidate)
        if fit.residual.size <= len(fit.names) + len(fit.group.elements) * len(laws):
            return None
        tried = fit_friction(fit.group, fit.points, laws)
        if tried.rank < len(tried.names) or not _sensible(tried):  # as when no point is slow enough to see it
            continue
        explains = 1.0 - _square(tried) / before
        if explains > max(_EXPLAINS, 0.0 if best is None else best.explains):
            speed = float(np.abs(fit.points[slowest].speed[row]))
            best = Shape(candidate, explains, float(sense * fit.residual[slowest, row]), speed)
    return best


def _square(fit: VelocityFit) -> float:
    return float(np.sum((fit.residual / fit.misfit.scatter) ** 2))


def _slowest(fit: VelocityFit) -> tuple[int, int]:
    """The slowest point, and the output whose residual there is largest."""
    speeds = [float(np.abs(point.speed).min()) for point in fit.points]
    slowest = int(np.argmin(speeds))
    return slowest, int(np.argmax(np.abs(fit.residual[slowest] / fit.misfit.scatter)))


def _sensible(fit: VelocityFit) -> bool:
    """Whether Stribeck friction falls and smoothed friction rises with speed; the other laws bend either way."""
    if fit.laws[0].name not in ("stribeck", "sign"):
        return True
    return sum(fit[name] for name in fit.names if name.startswith(fit.laws[0].name)) > 0.0
