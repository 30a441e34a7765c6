"""Springs that nobody declared: torque of a joint's position that no rigid body and no friction gives.

A counterbalance spoils the links' parameters, because they take up what they can of it. So it is looked for wherever
the rich fit shows that something is missing, and believed only where it is most of what the basic model misses on data
left out, beyond what a tilted base and joint zeros explain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.dynamics.terms.friction import elements_with_friction
from dynident.estimate.evidence import PriorGroup
from dynident.estimate.thresholds import THRESHOLDS as ESTIMATE
from dynident.pipeline.superset import LeftOutErrors, Superset
from dynident.pipeline.thresholds import THRESHOLDS
from dynident.robot.model import Element

STIFFNESS = "stiffness"
_HARMONICS = "harmonics"
_RIVALS = ("tilt", "zero")


@dataclass(frozen=True)
class FoundSprings:
    """Springs that the data shows clearly.

    Attributes:
        linear: Labels of the elements whose torque grows with their position.
        curved: Labels of those whose torque depends on it otherwise.
    """

    linear: tuple[str, ...] = ()
    curved: tuple[str, ...] = ()

    def warnings(self) -> tuple[str, ...]:
        """What a reader should know."""
        declare = "declare it under 'springs' in the robot file"
        found = [
            f"element {label}: its torque grows with its position as if a spring acted on it; the parameters have its "
            f"stiffness. If there is one, {declare}; if not, check what else pulls there (cables, hoses, another load)"
            for label in self.linear
        ]
        return (
            *found,
            *(
                f"element {label}: its torque depends on its position as no rigid body makes it, and the parameters "
                f"of the links are biased by it. Is there a counterbalance or a gas spring? {declare}"
                for label in self.curved
            ),
        )


def find_springs(superset: Superset, left_out: LeftOutErrors) -> FoundSprings:
    """The springs that held-out data shows clearly; nothing is fitted where the rich fit misses no less.

    Args:
        superset: All columns.
        left_out: Errors of the rich and of the basic fit, in this order.
    """
    if STIFFNESS not in superset.groups:
        return FoundSprings()
    rich, basic = (left_out.squares(own).sum(0) for own in np.eye(2))
    rows = {element.label: _row(element, superset) for element in elements_with_friction(superset.basic.base.robot)}
    own = {name: _columns(superset, name) for name in (STIFFNESS, _HARMONICS)}
    lacking = [
        label
        for label, row in rows.items()
        if label in own[STIFFNESS] and rich[row] < THRESHOLDS.clear_spring_share * basic[row]
    ]
    if not lacking:
        return FoundSprings()
    search = _Search(superset, rows)
    linear = search.add(lacking, lambda label: own[STIFFNESS][label])
    rest = [label for label in lacking if label not in linear]
    curved = search.add(rest, lambda label: (*own[STIFFNESS][label], *own[_HARMONICS].get(label, ())))
    return FoundSprings(tuple(linear), tuple(curved))


class _Search:
    """Columns are added element by element, each that lowers the errors on held-out data most."""

    def __init__(self, superset: Superset, rows: dict[str, int]) -> None:
        self._superset, self._rows = superset, rows
        self._groups = [superset.groups[key] for key in _RIVALS if key in superset.groups]
        self._errors = self._of(self._groups)

    def _of(self, groups: Sequence[PriorGroup]) -> Array:
        """(n_folds, n_channels) squared errors of the basic and some other columns."""
        prior, _ = self._superset.fit_groups(groups)
        return self._superset.leave_out((prior,)).squares(np.ones(1))

    def add(self, labels: Sequence[str], columns: Callable[[str], tuple[int, ...]]) -> list[str]:
        """The elements whose columns bring most of what is missed at their joint, in all and in a typical part."""
        found: list[str] = []
        while rest := [label for label in labels if label not in found]:
            tried = {}
            for label in rest:
                group = PriorGroup(f"spring of {label}", columns(label), ESTIMATE.extra_scale)
                tried[label] = group, self._of([*self._groups, group])
            falls = {
                label: _log_ratio(errors.sum(0), self._errors.sum(0)).sum() for label, (_, errors) in tried.items()
            }
            best = min(falls, key=lambda label: float(falls[label]))
            (group, errors), row = tried[best], self._rows[best]
            share = errors[:, row].sum() / max(float(self._errors[:, row].sum()), 1e-300)
            typical = float(np.exp(_log_ratio(errors[:, row], self._errors[:, row]).mean()))
            if max(share, typical) >= THRESHOLDS.clear_spring_share:
                break
            found.append(best)
            self._groups, self._errors = [*self._groups, group], errors
        return found


def _log_ratio(after: Array, before: Array) -> Array:
    return np.asarray(np.log(np.maximum(after, 1e-300) / np.maximum(before, 1e-300)))


def _row(element: Element, superset: Superset) -> int:
    """Channel in which an element's torque shows most."""
    return int(np.argmax(np.abs(element.torque[list(superset.basic.base.robot.moving)])))


def _columns(superset: Superset, name: str) -> dict[str, tuple[int, ...]]:
    """Places of a law's columns by the element that has them."""
    base, found = superset.base, dict[str, tuple[int, ...]]()
    for place, index in enumerate(base.independent):
        column = base.columns[index]
        if column.term == name:
            found[column.place] = (*found.get(column.place, ()), place)
    return found
