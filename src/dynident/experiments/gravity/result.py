"""`GravityMoments`: what slow sweeps found, run by run and link by link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.arrays import record
from dynident.estimate.fit import Fit
from dynident.experiments.gravity.comparison import MomentComparison, compare_moments, moments_of_fit
from dynident.experiments.gravity.fourier import FourierFit
from dynident.experiments.gravity.structure import GravityBase, SweepStage, gravity_columns
from dynident.experiments.protocol import ExperimentError, ExperimentResult, Quantity, Values
from dynident.experiments.thresholds import GRAVITY
from dynident.information.parameter_estimate import ParameterEstimate, text_table


@record
class GravityMoments(ExperimentResult):
    """Gravity moments of a robot [kg·m], of joints that slide [kg].

    Attributes:
        base: What they are, over the robot's standard parameters.
        runs: Sweep by sweep, from the tip inwards.
        skipped: Joints that were left out, with the reason.
        comparison: With a fit, or None.
    """

    base: GravityBase
    runs: tuple[FourierFit, ...]
    skipped: Mapping[str, str]
    comparison: MomentComparison | None = None

    @property
    def estimates(self) -> tuple[Quantity, ...]:
        """The moments that the runs determine."""
        return tuple(one for one, known in zip(super().estimates, self.estimate.determined, strict=True) if known)

    def true_values(self, values: Values) -> Mapping[str, float]:
        """Moments of a set of standard values."""
        return dict(zip(self.names, self.base.values(values).tolist(), strict=True))

    def compared_to(self, fit: Fit) -> GravityMoments:
        """The same beside the moments of a fit (Table 5)."""
        other, notes = moments_of_fit(self.base, fit)
        own = {one.name: (one.value, one.std) for one in self.estimates}
        left: dict[str, float] = {}
        for one in self.runs:
            name = self.robot.position_names[one.run.joint]
            left[name] = max(left.get(name, 0.0), one.friction.left)
        return replace(self, comparison=compare_moments(self.base, own, other, friction=left, notes=notes))

    def joint_table(self) -> str:
        """The Fourier coefficients of each sweep as text."""
        head = ("joint", "range", "a0", "a1", "b1", "std", "peak", "rms", "friction", "cond")
        lines = []
        for fit in self.runs:
            run = fit.run
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
            lines.append((name, *cells, f"{fit.rms:.2g}", f"{fit.friction.level:.3g}", f"{fit.condition:.3g}"))
        return text_table(head, lines, head[2:])

    def details(self) -> dict[str, Any]:
        """Combinations, sweeps, and the comparison with a fit."""
        expressions = dict(zip(self.names, self.base.expressions, strict=True))
        return {
            "combinations": {one.name: expressions[one.name] for one in self.estimates},
            "joints": [one.as_dict(self.robot) for one in self.runs],
            "skipped": dict(self.skipped),
            "comparison": None if self.comparison is None else self.comparison.as_dict(),
            "notes": list(self.notes),
        }


# ----------------------------------------------------------------------------------------------------------------------
# What a reader of gravity moments should know about the runs behind them.


def refuse_narrow(base: GravityBase, own: Sequence[FourierFit]) -> None:
    """Refuse a range over which sine, cosine and offset look alike, where no other pose helps."""
    for one in own:
        alone = sum(other.run.joint == one.run.joint for other in own) == 1
        condition = one.orders[0].condition
        if one.order and alone and condition > GRAVITY.refused_condition:
            name = base.robot.joint_names[one.run.joint]
            raise ExperimentError(
                f"{one.run.label}: joint {name} covers {np.degrees(np.ptp(one.run.angle)):.0f} degrees, over "
                f"which offset, sine and cosine can hardly be distinguished (condition {condition:.0f}, at most "
                f"{GRAVITY.refused_condition:.0f}); sweep a wider range, or sweep it at two poses in which gravity "
                "lies differently"
            )


def remarks(
    base: GravityBase, parts: Sequence[SweepStage], runs: Sequence[FourierFit], moments: ParameterEstimate
) -> tuple[list[str], list[str]]:
    """Notes and warnings."""
    notes, warnings = [], []
    for one in runs:
        name = base.robot.joint_names[one.run.joint]
        notes += _notes(name, one)
        warnings += [f"joint {name}: {text}" for text in _doubts(base, one)]
    looked_at = {i for stage in parts for i in stage.fresh}
    lost = [name for i, name in enumerate(base.names) if i in looked_at and not moments.determined[i]]
    if lost:
        warnings.append(
            f"these runs do not determine {', '.join(lost)}; sweep the joints of these links at another pose"
        )
    left = [name for i, name in enumerate(base.names) if i not in looked_at]
    if left:
        notes.append(f"not looked at: {', '.join(left)}")
    return notes, warnings


def _notes(name: str, fit: FourierFit) -> list[str]:
    found = []
    if fit.run.oscillates:
        inertia = [x for label, x in zip(fit.names, fit.coefficients, strict=True) if label.startswith("inertia")]
        size = f" ({inertia[0]:.3g} {'kg·m²' if fit.order else 'kg'})" if len(inertia) == 1 else ""
        found.append(f"joint {name}: not at constant velocity; its inertia was fitted along{size}")
    if fit.order == 0:
        found.append(f"joint {name}: a torque offset of its drive cannot be distinguished from the weight it carries")
    if fit.order > 1:
        found.append(f"joint {name}: order {fit.order} by the residual ({fit.orders[0].rms:.2g} to {fit.rms:.2g} N·m)")
    return found


def _doubts(base: GravityBase, fit: FourierFit) -> list[str]:
    run, found = fit.run, []
    if run.sticking > GRAVITY.sticking_share:
        found.append(
            f"it stood still {100.0 * run.sticking:.0f} % of the way (it sticks and slips); only its moving parts were "
            "used, a faster sweep is safer"
        )
    ahead, back = run.velocities
    if abs(ahead - back) > GRAVITY.uneven_share * max(ahead, back):
        found.append(f"velocities are {ahead:.3g} ahead and {back:.3g} back; viscous friction does not drop out")
    if fit.order and fit.orders[0].condition > GRAVITY.narrow_condition:
        found.append(
            f"its range of {np.degrees(np.ptp(run.angle)):.0f} degrees is narrow (condition "
            f"{fit.orders[0].condition:.0f}); offset and moment lean on each other, see the standard deviations"
        )
    if fit.friction.loaded:
        found.append(
            f"friction depends on the load ({fit.friction.level:.3g} N·m in the mean, {fit.friction.slope:+.2g} per "
            f"N·m of weight); if it follows the motor's torque, averages keep up to {fit.friction.left:.2g} N·m of it"
        )
    return [*found, *_harmonics(base, fit)]


def _harmonics(base: GravityBase, one: FourierFit) -> list[str]:
    """Higher harmonics that rigid links do not have."""
    if one.order == 0 or not _plain(base, one):
        return []
    first = one.orders[0].harmonic(1)[0]
    found = []
    for fit in one.orders[1:]:
        size, std, _ = fit.harmonic(fit.order)
        gone = math.sqrt(max(one.orders[0].rms ** 2 - fit.rms**2, 0.0))
        if gone > GRAVITY.harmonic_share * first and size > GRAVITY.harmonic_std * std and fit.order > one.order:
            found.append(
                f"harmonic {fit.order} of {size:.3g} N·m (standard deviation {std:.2g}) takes the residual from "
                f"{one.orders[0].rms:.2g} to {fit.rms:.2g} N·m, and rigid links have none: springs, cables, gears or "
                "an axis that is not where the robot file says; see --order"
            )
    return found[:1]


def _plain(base: GravityBase, fit: FourierFit) -> bool:
    """Whether the weight of rigid links is a single harmonic of this joint; not so with loops and some couplings."""
    run = fit.run
    columns = run.half_sum(gravity_columns(base.robot, run.q)[:, run.joint])
    angle = run.half_sum(np.column_stack([np.ones(len(run.q)), np.sin(run.angle), np.cos(run.angle)]))
    rest = columns - angle @ (np.linalg.pinv(angle) @ columns)
    return math.sqrt(float((rest**2).sum())) < 1e-3 * math.sqrt(float((columns**2).sum()))
