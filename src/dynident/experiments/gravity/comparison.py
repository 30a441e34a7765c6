"""Mass moments of two methods side by side (Abhishek et al., Table 5), and why they differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, Mask
from dynident.estimate.fit import Fit
from dynident.experiments.gravity.structure import GravityBase
from dynident.experiments.thresholds import GRAVITY
from dynident.information.parameter_estimate import std_text, text_table
from dynident.robot.model import Robot

_TURNED = math.radians(2.0)
_NEAR_ANGLE = math.radians(2.0)  # of an angle of the kinematics that is worth naming


@dataclass(frozen=True)
class LinkComparison:
    """The moments of one link, as a vector in its frame.

    Attributes:
        names: Of its moments.
        own: (k,) by gravity [kg·m or kg].
        own_std: (k,) standard deviations.
        other: (k,) by the fit.
        other_std: (k,) standard deviations; zero where none are known.
        agrees: Whether they are the same within what is known of them.
        angle: From the fit's vector to that of gravity [rad]; None but for two moments that are clearly there.
        ratio: Length by gravity over length by the fit; None where one of them is not clearly there.
        reason: Why they differ, in words; empty if they agree.
    """

    names: tuple[str, ...]
    own: Array
    own_std: Array
    other: Array
    other_std: Array
    agrees: bool
    angle: float | None
    ratio: float | None
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "names": list(self.names),
            "gravity": self.own.tolist(),
            "fit": self.other.tolist(),
            "agrees": self.agrees,
            "angle": None if self.angle is None else math.degrees(self.angle),
            "ratio": self.ratio,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class MomentComparison:
    """Moments by gravity beside those of a fit.

    Attributes:
        links: One comparison each.
        notes: What concerns all of them.
    """

    links: tuple[LinkComparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether all do."""
        return all(one.agrees for one in self.links)

    def rows(self) -> list[tuple[str, float, float, float, float]]:
        """Name, value and standard deviation by gravity, value and standard deviation by the fit."""
        return [
            (name, float(one.own[i]), float(one.own_std[i]), float(one.other[i]), float(one.other_std[i]))
            for one in self.links
            for i, name in enumerate(one.names)
        ]

    def table(self) -> str:
        """Table 5."""
        head = ("parameter", "gravity", "std", "fit", "fit std", "difference")
        lines = [
            (name, f"{own:.5g}", std_text(std), f"{other:.5g}", std_text(more), f"{own - other:.2g}")
            for name, own, std, other, more in self.rows()
        ]
        return text_table(head, lines, head[1:])

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"agrees": self.agrees, "links": [one.as_dict() for one in self.links], "notes": list(self.notes)}


def compare_moments(
    base: GravityBase,
    own: Mapping[str, tuple[float, float]],
    other: Mapping[str, tuple[float, float]],
    *,
    friction: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
) -> MomentComparison:
    """Compare moments link by link.

    Args:
        base: What gravity shows of the robot.
        own: Value and standard deviation by gravity, by name.
        other: Value and standard deviation of another method; an unknown standard deviation is zero.
        friction: Torque that friction may have left in the averages, by variable of the joint (q2) [N·m].
        notes: What concerns all of them.
    """
    links: dict[str, list[str]] = {}
    for name in base.names:
        if name in own and name in other:
            links.setdefault(base.joint_of(name), []).append(name)
    weight = float(np.linalg.norm(base.robot.gravity))
    left = {place: torque / weight for place, torque in (friction or {}).items()}
    found = [_link(base.robot, tuple(names), own, other, left.get(place, 0.0)) for place, names in links.items()]
    return MomentComparison(tuple(found), tuple(notes))


def moments_of_fit(base: GravityBase, fit: Fit) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """The gravity base as a fit has it, with standard deviations, and what stands in the way of comparing."""
    columns = [column.name for column in base.columns]
    over = np.zeros((base.n, len(fit.beta)))
    for i, index in enumerate(fit.base.independent):
        column = fit.base.columns[index]
        if column.name in columns:
            over[:, i] = base.K[:, columns.index(column.name)]
    # Parameters that the robot file fixes are no part of K; those regrouped by the fit stand on its own columns.
    values = over @ fit.beta
    std = np.sqrt(np.maximum(np.diag(over @ fit.covariance @ over.T), 0.0))
    open_ones = ~fit.determined
    known: Mask = np.abs(over[:, open_ones]).max(axis=1, initial=0.0) < 1e-9
    notes = []
    if not known.all():
        lost = ", ".join(name for name, fine in zip(base.names, known, strict=True) if not fine)
        notes.append(f"the fit leaves {lost} undetermined; nothing to compare there")
    notes += _different(base.robot, fit.robot)
    table = {
        name: (float(value), float(own))
        for name, value, own, fine in zip(base.names, values, std, known, strict=True)
        if fine
    }
    return table, notes


def _different(robot: Robot, other: Robot) -> list[str]:
    """What the two descriptions do not share."""
    if robot.fingerprint == other.fingerprint:
        return []
    lengths = [name for name in robot.lengths if robot.lengths[name] != other.lengths.get(name, robot.lengths[name])]
    differing = f" ({', '.join(lengths)} differ)" if lengths else ""
    return [f"the fit has other kinematics{differing}: moments in other frames differ without either being wrong"]


def _link(
    robot: Robot,
    names: tuple[str, ...],
    own: Mapping[str, tuple[float, float]],
    other: Mapping[str, tuple[float, float]],
    left: float,
) -> LinkComparison:
    a, a_std = np.array([own[name] for name in names]).T
    b, b_std = np.array([other[name] for name in names]).T
    length, reference = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    # A vector that drowns in its standard deviations has neither direction nor length.
    clear = length > GRAVITY.agreement_std * float(np.linalg.norm(a_std)) and reference > GRAVITY.agreement_std * float(
        np.linalg.norm(b_std)
    )
    angle = math.atan2(b[0] * a[1] - b[1] * a[0], float(a @ b)) if clear and len(names) == 2 else None
    ratio = length / reference if clear else None
    room = GRAVITY.agreement_std * np.hypot(a_std, b_std)
    if not b_std.any():
        room = np.maximum(room, GRAVITY.agreement_share * max(length, reference))
    agrees = bool((np.abs(a - b) <= room + 1e-12).all())
    reason = "" if agrees else _reason(robot, names, a, b, angle, ratio, left)
    return LinkComparison(names, a, a_std, b, b_std, agrees, angle, ratio, reason)


def _reason(
    robot: Robot, names: tuple[str, ...], a: Array, b: Array, angle: float | None, ratio: float | None, left: float
) -> str:
    """Why two moment vectors differ, as far as their shape tells."""
    off = float(np.linalg.norm(a - b))
    what = f"{' and '.join(names)} differ by {off:.3g} kg·m"
    if off <= left:
        return f"{what}, no more than friction that depends on the load may leave in the averages ({left:.2g} kg·m)"
    turned = angle is not None and abs(angle) > _TURNED
    if turned and angle is not None and ratio is not None and abs(ratio - 1.0) < GRAVITY.same_length_share:
        return (
            f"{what}: as long to {100.0 * abs(ratio - 1.0):.1f} %, but turned by {math.degrees(angle):.1f} degrees; "
            f"one of the two has its link frame or its joint zero turned by that{_known_angle(robot, abs(angle))}"
        )
    if not turned and ratio is not None and abs(ratio - 1.0) > GRAVITY.agreement_share:
        return (
            f"{what}: in the same direction, {ratio:.3f} times as long; a torque scale (drive gain) that is off, or "
            "friction that one of the two did not remove"
        )
    more = "" if angle is None or ratio is None else f": turned by {math.degrees(angle):.1f} degrees, ratio {ratio:.3f}"
    return (
        f"{what}{more}; neither a turned frame nor a torque scale alone explains it: compare kinematics and payload of "
        "both, and look at the harmonics and the friction of the run"
    )


def _known_angle(robot: Robot, angle: float) -> str:
    """An angle of the kinematics that is near, as lengths make one."""
    near = []
    for (one, x), (two, y) in itertools.permutations(robot.lengths.items(), 2):
        if x and y and abs(math.atan(abs(x / y)) - angle) < _NEAR_ANGLE:
            near.append((abs(math.atan(abs(x / y)) - angle), f"atan({one}/{two}) = {_degrees(x, y)} degrees"))
    return f" (near {min(near)[1]})" if near else ""


def _degrees(x: float, y: float) -> str:
    return f"{math.degrees(math.atan(abs(x / y))):.1f}"
