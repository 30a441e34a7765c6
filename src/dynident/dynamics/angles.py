"""Which angles a robot's closed form is best written in.

Joints with parallel axes add up: after joints 2 and 3 of a usual arm, only q2 + q3 matters to what comes behind. So the
equations are worked out in angles summed along runs of parallel joints, in which they are shortest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.equations import Actuation
from dynident.dynamics.polynomials import ClosedFormError
from dynident.robot.model import Robot

Direction = tuple[Fraction, ...]  # an angle as a combination of the moving joints' positions
_PARALLEL = 1e-12
_LARGEST_MULTIPLE = 6


@dataclass(frozen=True)
class Angles:
    """Independent angles of a robot.

    Attributes:
        directions: Each angle as a combination of the moving joints' positions.
        families: Run of parallel joints that each angle belongs to; those of one family may be added up.
        of_joint: Whole multiples of the angles that make up each tree joint's position, None for prismatic joints.
    """

    directions: tuple[Direction, ...]
    families: tuple[int, ...]
    of_joint: tuple[tuple[int, ...] | None, ...]


def angles_of(robot: Robot) -> Angles:
    """Angles summed along parallel joints; those of single joints where some joint is no whole multiple of the sums."""
    follow = Actuation(robot).follow
    rows = [tuple(_ratio(robot, j, x) for x in row) for j, row in enumerate(follow)]
    families, summed = _summed(robot, rows)
    choices = [
        [(summed[j], families[j]) for j in range(len(rows)) if families[j] is not None],
        _single(robot, rows, families),
    ]
    for candidates in choices:
        directions, own = _independent(candidates)
        whole = [None if families[j] is None else _multiples(rows[j], directions) for j in range(len(rows))]
        if all(families[j] is None or whole[j] is not None for j in range(len(rows))):
            return Angles(tuple(directions), tuple(own), tuple(whole))
    raise ClosedFormError(
        f"robot {robot.name}: passive joints follow by ratios too odd for a closed form; expected small whole numbers"
    )


def _ratio(robot: Robot, joint: int, value: float) -> Fraction:
    ratio = Fraction(float(value)).limit_denominator(60)
    if robot.joints[joint].kind == "revolute" and abs(float(ratio) - value) > 1e-12:
        raise ClosedFormError(
            f"robot {robot.name}: joint {robot.joints[joint].name} follows by {value:g}, which is no simple ratio; "
            "its closed form cannot be written"
        )
    return ratio


def _summed(robot: Robot, rows: list[Direction]) -> tuple[list[int | None], list[Direction]]:
    """For each tree joint its family and the sum of positions along its run of parallel joints."""
    families: list[int | None] = []
    sums: list[Direction] = []
    known: dict[int, tuple[int, Array]] = {}  # family -> joint it starts from, axis in that joint's link frame
    for index, joint in enumerate(robot.joints):
        if joint.kind == "prismatic":
            families.append(None)
            sums.append(())
            continue
        axis, carrier = joint.before.rotation[:, 2], joint.parent
        while carrier >= 0 and robot.joints[carrier].kind == "prismatic":
            above = robot.joints[carrier]
            axis, carrier = above.before.rotation @ above.after.rotation @ axis, above.parent
        along = 0.0 if carrier < 0 else float((robot.joints[carrier].after.rotation @ axis)[2])
        if abs(abs(along) - 1.0) < _PARALLEL:
            families.append(families[carrier])
            sums.append(tuple(x + round(along) * y for x, y in zip(rows[index], sums[carrier], strict=True)))
            continue
        same = (f for f, (start, own) in known.items() if start == carrier and abs(abs(own @ axis) - 1.0) < _PARALLEL)
        family = next(same, len(known))
        known.setdefault(family, (carrier, axis))
        families.append(family)
        sums.append(rows[index])
    return families, sums


def _single(robot: Robot, rows: list[Direction], families: list[int | None]) -> list[tuple[Direction, int | None]]:
    """Each moving joint's own angle, or the part of it of which all joints are multiples."""
    found: list[tuple[Direction, int | None]] = []
    for i in range(len(robot.moving)):
        users = [j for j in range(len(rows)) if families[j] is not None and rows[j][i]]
        if users:
            below = math.lcm(*(rows[j][i].denominator for j in users))
            part = Fraction(math.gcd(*(int(rows[j][i] * below) for j in users)), below)
            found.append((tuple(part if k == i else Fraction(0) for k in range(len(robot.moving))), families[users[0]]))
    return found


def _independent(candidates: list[tuple[Direction, int | None]]) -> tuple[list[Direction], list[int]]:
    """Candidates from the front that the ones before do not span."""
    directions: list[Direction] = []
    families: list[int] = []
    for direction, family in candidates:
        if family is not None and any(direction) and _combination(direction, directions) is None:
            directions.append(direction)
            families.append(family)
    return directions, families


def _multiples(direction: Direction, directions: list[Direction]) -> tuple[int, ...] | None:
    found = _combination(direction, directions)
    if found is None or any(x.denominator != 1 or abs(x) > _LARGEST_MULTIPLE for x in found):
        return None
    return tuple(int(x) for x in found)


def _combination(target: Direction, directions: list[Direction]) -> list[Fraction] | None:
    """Factors with which the (independent) directions make the target, None when they cannot."""
    if not any(target):
        return [Fraction(0)] * len(directions)
    if not directions:
        return None
    matrix = np.array([[float(x) for x in d] for d in directions]).T
    solution = np.linalg.lstsq(matrix, np.array([float(x) for x in target]), rcond=None)[0]
    found = [Fraction(float(x)).limit_denominator(60) for x in solution]
    pairs = list(zip(found, directions, strict=True))
    made = tuple(sum((f * d[i] for f, d in pairs), Fraction(0)) for i in range(len(target)))
    return found if made == target else None
