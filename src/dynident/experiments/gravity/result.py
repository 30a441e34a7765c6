"""`GravityMoments`: what slow sweeps found, run by run and link by link."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.estimate.fit import Fit
from dynident.experiments.answer import Quantity, answer, quantity_table
from dynident.experiments.gravity.comparison import Comparison, compare_moments, moments_of_fit
from dynident.experiments.gravity.fourier import FourierFit
from dynident.experiments.gravity.friction import SlowFriction
from dynident.experiments.gravity.recursion import Moments
from dynident.experiments.gravity.structure import GravityBase
from dynident.information.parameter_estimate import text_table
from dynident.robot.model import Robot


@dataclass(frozen=True, eq=False)
class JointRun:
    """One sweep, fitted.

    Attributes:
        fit: The fit whose coefficients count.
        orders: Fits of every order that was tried.
        friction: What the averages took away.
    """

    fit: FourierFit
    orders: tuple[FourierFit, ...]
    friction: SlowFriction

    def as_dict(self, robot: Robot) -> dict[str, Any]:
        """Plain data; angles in radians."""
        fit, run = self.fit, self.fit.run
        held = {name: float(x) for i, (name, x) in enumerate(zip(robot.position_names, run.pose, strict=True))}
        held.pop(robot.position_names[run.joint])
        harmonics = []
        for one in self.orders if fit.order else ():
            size, std, _ = one.harmonic(one.order)
            harmonics.append({"order": one.order, "amplitude": size, "std": std, "rms": one.rms})
        found: dict[str, Any] = {
            "joint": robot.joint_names[run.joint],
            "run": run.label,
            "held": held,
            "range": list(run.range),
            "speed": 0.5 * sum(run.speeds),
            "order": fit.order,
            "coefficients": dict(zip(fit.names, fit.coefficients.tolist(), strict=True)),
            "std": dict(zip(fit.names, fit.std.tolist(), strict=True)),
            "rms": fit.rms,
            "condition": fit.condition,
            "harmonics": harmonics,
            "friction": self.friction.as_dict(),
            "sticking": run.sticking,
        }
        if fit.order:
            size, std, peak = fit.harmonic(1)
            found |= {"amplitude": size, "amplitude_std": std, "largest_at": peak}
        return found


@dataclass(frozen=True, eq=False)
class GravityMoments:
    """Gravity moments of a robot.

    Attributes:
        base: What they are, over the robot's standard parameters.
        moments: Values, covariance and which are determined.
        runs: Sweep by sweep, from the tip inwards.
        skipped: Joints that were left out, with the reason.
        notes: What was decided on the way.
        warnings: What a reader should know.
        true: (n,) what a simulated machine really has; None elsewhere.
        comparison: With a fit, or None.
    """

    base: GravityBase
    moments: Moments
    runs: tuple[JointRun, ...]
    skipped: Mapping[str, str]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    true: Array | None = None
    comparison: Comparison | None = None

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.robot

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the moments."""
        return self.base.names

    @property
    def values(self) -> Array:
        """(n,) [kg·m], of joints that slide [kg]."""
        return self.moments.values

    @property
    def std(self) -> Array:
        """(n,) deviations; infinite where the runs do not tell."""
        spread = np.sqrt(np.maximum(np.diag(self.moments.covariance), 0.0))
        return np.where(self.moments.determined, spread, np.inf)

    def __getitem__(self, name: str) -> float:
        """A moment by name."""
        return float(self.values[self.names.index(name)])

    @property
    def estimates(self) -> tuple[Quantity, ...]:
        """The moments that were looked at."""
        found = []
        for i, (name, unit) in enumerate(zip(self.names, self.base.units, strict=True)):
            if self.moments.determined[i]:
                true = None if self.true is None else float(self.true[i])
                found.append(Quantity(name, float(self.values[i]), float(self.std[i]), unit, true))
        return tuple(found)

    def compared_to(self, fit: Fit) -> GravityMoments:
        """The same beside the moments of a fit (Table 5)."""
        other, notes = moments_of_fit(self.base, fit)
        own = {one.name: (one.value, one.std) for one in self.estimates}
        left: dict[str, float] = {}
        for one in self.runs:
            name = self.robot.position_names[one.fit.run.joint]
            left[name] = max(left.get(name, 0.0), one.friction.left)
        return replace(self, comparison=compare_moments(self.base, own, other, friction=left, notes=notes))

    def table(self) -> str:
        """The moments as text."""
        return quantity_table(self.estimates)

    def joint_table(self) -> str:
        """The Fourier coefficients of each sweep as text."""
        head = ("joint", "range", "a0", "a1", "b1", "std", "peak", "rms", "friction", "cond")
        lines = []
        for one in self.runs:
            fit, run = one.fit, one.fit.run
            low, high = run.range
            if fit.order == 0:
                cells = (f"{low:.3g}..{high:.3g} m", f"{fit.coefficients[0]:.4g}", "", "", f"{fit.std[0]:.2g}", "")
            else:
                a0, a1, b1 = fit.coefficients[:3]
                at = f"{math.degrees(fit.harmonic(1)[2]):.0f}°"
                spread = f"{max(fit.std[1:3]):.2g}"
                degrees = f"{math.degrees(low):.0f}..{math.degrees(high):.0f}°"
                cells = (degrees, f"{a0:.2g}", f"{a1:.5g}", f"{b1:.5g}", spread, at)
            name = self.robot.joint_names[run.joint]
            lines.append((name, *cells, f"{fit.rms:.2g}", f"{one.friction.level:.3g}", f"{fit.condition:.3g}"))
        return text_table(head, lines, head[2:])

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of the verb."""
        expressions = dict(zip(self.names, self.base.expressions, strict=True))
        return answer(
            self.estimates,
            self.warnings,
            robot=self.robot.name,
            combinations={one.name: expressions[one.name] for one in self.estimates},
            joints=[one.as_dict(self.robot) for one in self.runs],
            skipped=dict(self.skipped),
            comparison=None if self.comparison is None else self.comparison.as_dict(),
            notes=list(self.notes),
        )
