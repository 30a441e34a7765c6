"""What a reader of gravity moments should know about the runs behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dynident.experiments.answer import ExperimentError
from dynident.experiments.gravity.recursion import Moments
from dynident.experiments.gravity.result import JointRun
from dynident.experiments.gravity.structure import GravityBase, Stage, gravity_columns

NARROW, TOO_NARROW = 50.0, 400.0  # condition of 1, sin, cos: sweeps of +-26 and of +-9 degrees
_STICKS = 0.05
_UNEVEN = 0.1  # share by which the two speeds may differ
_SURE = 4.0  # deviations of a harmonic that is there ..
_SHOWS = 0.003  # .. and share of the first one that it must take off the residual to be worth a word


def too_narrow(base: GravityBase, own: Sequence[JointRun]) -> None:
    """Refuse a range over which sine, cosine and offset look alike, where no other pose helps."""
    for one in own:
        alone = sum(other.fit.run.joint == one.fit.run.joint for other in own) == 1
        condition = one.orders[0].condition
        if one.fit.order and alone and condition > TOO_NARROW:
            name = base.robot.joint_names[one.fit.run.joint]
            raise ExperimentError(
                f"{one.fit.run.label}: joint {name} covers {np.degrees(np.ptp(one.fit.run.angle)):.0f} degrees, over "
                f"which offset, sine and cosine can hardly be told apart (condition {condition:.0f}, at most "
                f"{TOO_NARROW:.0f}); sweep a wider range, or sweep it at two poses in which gravity lies differently"
            )


def remarks(
    base: GravityBase, parts: Sequence[Stage], runs: Sequence[JointRun], moments: Moments
) -> tuple[list[str], list[str]]:
    """Notes and warnings."""
    notes, warnings = [], []
    for one in runs:
        name = base.robot.joint_names[one.fit.run.joint]
        notes += _notes(name, one)
        warnings += [f"joint {name}: {text}" for text in _doubts(base, one)]
    looked_at = {i for stage in parts for i in stage.fresh}
    lost = [name for i, name in enumerate(base.names) if i in looked_at and not moments.determined[i]]
    if lost:
        warnings.append(f"these runs do not tell {', '.join(lost)}; sweep the joints of these links at another pose")
    left = [name for i, name in enumerate(base.names) if i not in looked_at]
    if left:
        notes.append(f"not looked at: {', '.join(left)}")
    return notes, warnings


def _notes(name: str, one: JointRun) -> list[str]:
    fit, found = one.fit, []
    if fit.run.oscillates:
        inertia = [x for label, x in zip(fit.names, fit.coefficients, strict=True) if label.startswith("inertia")]
        size = f" ({inertia[0]:.3g} {'kg·m²' if fit.order else 'kg'})" if len(inertia) == 1 else ""
        found.append(f"joint {name}: not at constant velocity; its inertia was fitted along{size}")
    if fit.order == 0:
        found.append(f"joint {name}: a torque offset of its drive cannot be told from the weight it carries")
    if fit.order > 1:
        found.append(f"joint {name}: order {fit.order} by the residual ({one.orders[0].rms:.2g} to {fit.rms:.2g} N·m)")
    return found


def _doubts(base: GravityBase, one: JointRun) -> list[str]:
    fit, run, found = one.fit, one.fit.run, []
    if run.sticking > _STICKS:
        found.append(
            f"it stood still {100.0 * run.sticking:.0f} % of the way (it sticks and slips); only its moving parts were "
            "used, a faster sweep is safer"
        )
    ahead, back = run.speeds
    if abs(ahead - back) > _UNEVEN * max(ahead, back):
        found.append(f"speeds are {ahead:.3g} ahead and {back:.3g} back; viscous friction does not drop out")
    if fit.order and one.orders[0].condition > NARROW:
        found.append(
            f"its range of {np.degrees(np.ptp(run.angle)):.0f} degrees is narrow (condition "
            f"{one.orders[0].condition:.0f}); offset and moment lean on each other, see the deviations"
        )
    if one.friction.loaded:
        found.append(
            f"friction depends on the load ({one.friction.level:.3g} N·m in the mean, {one.friction.slope:+.2g} per "
            f"N·m of weight); if it follows the motor's torque, averages keep up to {one.friction.left:.2g} N·m of it"
        )
    return [*found, *_harmonics(base, one)]


def _harmonics(base: GravityBase, one: JointRun) -> list[str]:
    """Higher harmonics that rigid links do not have."""
    if one.fit.order == 0 or not _plain(base, one):
        return []
    first = one.orders[0].harmonic(1)[0]
    found = []
    for fit in one.orders[1:]:
        size, std, _ = fit.harmonic(fit.order)
        gone = math.sqrt(max(one.orders[0].rms ** 2 - fit.rms**2, 0.0))
        if gone > _SHOWS * first and size > _SURE * std and fit.order > one.fit.order:
            found.append(
                f"harmonic {fit.order} of {size:.3g} N·m (deviation {std:.2g}) takes the residual from "
                f"{one.orders[0].rms:.2g} to {fit.rms:.2g} N·m, and rigid links have none: springs, cables, gears or "
                "an axis that is not where the robot file says; see --order"
            )
    return found[:1]


def _plain(base: GravityBase, one: JointRun) -> bool:
    """Whether the weight of rigid links is a single harmonic of this joint; not so with loops and some couplings."""
    run = one.fit.run
    columns = run.half_sum(gravity_columns(base.robot, run.q)[:, run.joint])
    angle = run.half_sum(np.column_stack([np.ones(len(run.q)), np.sin(run.angle), np.cos(run.angle)]))
    rest = columns - angle @ (np.linalg.pinv(angle) @ columns)
    return math.sqrt(float((rest**2).sum())) < 1e-3 * math.sqrt(float((columns**2).sum()))
