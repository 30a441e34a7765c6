"""Two-step estimation: single parameters are carried from stage to stage, and those that are not essential eliminated.

Gautier, Khalil, Restrepo 1995 (section 4.3, point 7): the wrist from the rows of its own motors with all joints moving,
then the arm with the wrist locked. All experiments can also be solved together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dynident.arrays import Mask
from dynident.errors import InputError
from dynident.estimate.essential import check_share
from dynident.estimate.estimator import Estimator
from dynident.estimate.stage_data import StageData, shared_inflation
from dynident.estimate.stages import (
    KnownCombinations,
    NewCombinations,
    StagedEstimate,
    StageEstimate,
    names_where,
    solve_stage,
)
from dynident.estimate.torque_error import chosen_estimator
from dynident.information.information import Information, MergeError


def solve_in_steps(
    experiments: StageData | Sequence[StageData],
    estimator: str | Estimator = "weighted",
    *,
    essential: float | None = None,
) -> StagedEstimate:
    """Solve experiments one after the other; what one determines is known in the next, with its covariance.

    Single parameters are carried from step to step. Combinations of which a step determines no part are not, so an
    experiment with locked joints comes after the one that determines the parts; a warning says when the order loses
    something. `sequential` carries combinations as well.

    Args:
        experiments: In the order of solving.
        estimator: Method of every step, by name or as an object.
        essential: Relative standard deviation from which parameters are eliminated in each step; None keeps all.
    """
    listed, method = _list_experiments(experiments), chosen_estimator(estimator)
    parts = _in_common(listed, essential)
    coordinates = parts[0].coordinates
    known, stages = KnownCombinations.nothing(coordinates.n), []
    for one, part in zip(listed, parts, strict=True):
        depends = {column for factor in part.channel_factors() for column in factor.columns}
        unknown = [i for i in sorted(depends) if not known.determined[i]]
        if not unknown:
            raise InputError(f"experiment {one.name} has no unknown parameter left; leave it out or put it first")
        new = NewCombinations.single(unknown, coordinates.n)
        known, stage = solve_stage(replace(one, information=part), known, new, method, essential=essential)
        stages.append(stage)
    return StagedEstimate.after(known, coordinates, stages, warnings=_order_warning(parts, known.determined))


def _order_warning(parts: Sequence[Information], determined: Mask) -> tuple[str, ...]:
    """A warning when the steps leave open what all experiments together determine."""
    if determined.all():
        return ()
    together = sum(parts[1:], start=parts[0]).solve()
    lost = names_where(together.names, together.determined & ~determined)
    if not lost:
        return ()
    return (
        f"in this order the steps leave open {', '.join(lost)}, which the experiments determine together; put "
        "experiments with locked joints last, or use solve_together or sequential",
    )


def solve_together(
    experiments: StageData | Sequence[StageData],
    estimator: str | Estimator = "weighted",
    *,
    essential: float | None = None,
) -> StagedEstimate:
    """Solve all experiments as one data set; channels of one name share their noise.

    Args:
        experiments: In any order.
        estimator: Method, by name or as an object.
        essential: Relative standard deviation from which parameters are eliminated; None keeps all.
    """
    listed = _list_experiments(experiments)
    parts = _in_common(listed, essential)
    stages = []
    for one, part in zip(listed, parts, strict=True):
        depends = {column for factor in part.channel_factors() for column in factor.columns}
        own = part.restrict(part.names[i] for i in depends).solve()
        alone = StageEstimate(own.names, own.units, own.values, own.covariance, own.determined, own.coordinates)
        stages.append(alone.replace(solve=own.solve, label=one.name, outputs=part.channels, own_std=own.std))
    total = sum(parts[1:], start=parts[0])
    every = StageData("all together", total, shared_inflation(listed, total.channels))
    new = NewCombinations.single(range(total.coordinates.n), total.coordinates.n)
    nothing = KnownCombinations.nothing(total.coordinates.n)
    known, stage = solve_stage(every, nothing, new, chosen_estimator(estimator), essential=essential)
    return StagedEstimate.after(known, total.coordinates, [*stages, stage])


def _list_experiments(experiments: StageData | Sequence[StageData]) -> list[StageData]:
    """One experiment or several as a list."""
    given = [experiments] if isinstance(experiments, StageData) else list(experiments)
    for one in given:
        if not isinstance(one, StageData):
            raise InputError(f"a {type(one).__name__} is not an experiment; make one: StageData(name, information)")
    if not given:
        raise InputError("there is no experiment")
    return given


def _in_common(experiments: Sequence[StageData], essential: float | None) -> list[Information]:
    """Every experiment over one set of base parameters: those of the experiment that sees all, or of all together."""
    if essential is not None:
        check_share(essential)
    data = [one.information for one in experiments]
    richest = max(data, key=lambda part: part.coordinates.n)
    try:
        return [part.over(richest) for part in data]
    except MergeError:
        total = sum(data[1:], start=data[0])
        return [part.over(total) for part in data]
