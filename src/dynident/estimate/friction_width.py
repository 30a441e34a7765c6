r"""Widths of dry friction: over which velocity the friction of each element turns over, found by the data.

True dry friction follows tanh(v / w) with a width that nobody knows; a width that is off by a third costs several
standard deviations of Fc and Fv. So the Coulomb columns of several widths go through one pass, and on its factors the
widths with the smallest residual are found: first among those tried, then between them, where the column of any width
is interpolated from its neighbors. Widths are tried in shares of an element's effective velocity, not in rad/s. Then
each column stands beside its own derivative, whose coefficient says what its width lacks, until that settles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.arrays import Array, on_one_thread
from dynident.dynamics.terms import Coulomb, Term
from dynident.estimate.estimator import Estimator
from dynident.estimate.least_squares import WeightedLeastSquares
from dynident.identifiability.base import BaseParameters
from dynident.identifiability.base_regressor import BaseRegressor
from dynident.information.factor import triangular
from dynident.information.information import Information
from dynident.information.solution import dense_channels
from dynident.information.thresholds import THRESHOLDS as INFORMATION
from dynident.signals.dry_friction import CoulombColumn, DryFriction
from dynident.signals.observations import Observations
from dynident.signals.rows import PARAMETERS, ROWS_PER_BAND, RowRule, effective_velocity

Gather = Callable[[BaseParameters, RowRule], Information]  # a pass over the logs

# Shares of the effective velocity that are tried; below the least of them the sign itself is as good.
_DETERMINED_STD = 3.0  # standard deviations for white noise that a determined width exceeds
WIDTH_SHARES = tuple(0.006 * 1.8**k for k in range(10))
_SWEEPS = 4  # over the elements, each with the others as they are
_ROUNDS = 12  # of Gauss-Newton between the widths that were tried
_STEP = 0.4  # largest change of log(w) in a round
# Squared standard deviations by which Fc must differ from none to have a width; about ROWS_PER_BAND / 2 rows are one.
_SIGNIFICANT = 3.0**2 * ROWS_PER_BAND / 2.0
_CORRECTIONS = 2  # passes more, at most, in which widths are corrected by their own columns
# Changes of a width, in its standard deviation and its size, that do not count.
_SETTLED_STD, _SETTLED_SHARE = 0.3, 0.05


@dataclass(frozen=True, eq=False)
class SettledWidths:
    """Widths of dry friction that data was gathered with.

    Attributes:
        base: The base parameters, whose Coulomb term has these widths.
        widths: By element [rad/s or m/s]; empty where none was searched for.
        rule: Which rows these are, with the slopes of the columns and the delay beside those of the model.
        information: What they say.
    """

    base: BaseParameters
    widths: Mapping[str, float]
    rule: RowRule
    information: Information


def make_estimator() -> WeightedLeastSquares:
    """What nuisance parameters are estimated by."""
    return WeightedLeastSquares(rank_tolerance=INFORMATION.noisy_rank)


def search_widths(observations: Sequence[Observations], base: BaseParameters, gather: Gather) -> dict[str, float]:
    """Widths of the elements that move [rad/s or m/s]; empty where there is no dry friction.

    Args:
        observations: The logs.
        base: Base parameters of the model.
        gather: Goes through the logs, or through the first minutes of them.
    """
    friction = DryFriction(BaseRegressor.of(base.robot, base.terms), base.terms)
    velocities = np.max([effective_velocity(one, friction.directions) for one in observations], axis=0)
    tried = trial_columns({e.label: float(v) for e, v in zip(friction.elements, velocities, strict=True) if v > 0.0})
    if not tried:
        return {}
    found = gather(base, replace(PARAMETERS, coulomb=tried, delay=True))
    if found.n_rows < INFORMATION.min_equations_away * base.n:
        return {}  # too few rows to determine a width by
    labels, names = {one.element for one in tried}, {one.name for one in tried}
    start = make_estimator().fit(found.restrict(name for name in found.names if name not in names))
    replaced = [element.names["Fc"] for element in friction.elements if element.label in labels]
    return find_widths(found, tried, start.sigma_, replaced)


def settle_widths(base: BaseParameters, widths: Mapping[str, float], gather: Gather) -> SettledWidths:
    """Gather equations with widths that were searched for, and correct these by the data as a whole.

    Args:
        base: Base parameters of the model.
        widths: By element [rad/s or m/s]; without any they are as the terms have them.
        gather: Goes through the logs.
    """
    for corrections_left in reversed(range(_CORRECTIONS + 1)):
        own = with_widths(base, widths)
        slopes = tuple(CoulombColumn(e, w, slope=True) for e, w in widths.items() if w > 0.0)
        rule = replace(PARAMETERS, coulomb=slopes, delay=True)
        found = gather(own, rule)
        corrected = _correct_widths(widths, found, own) if corrections_left else widths
        if corrected == widths:
            break
        widths = corrected
    return SettledWidths(own, widths, rule, found)


def with_widths(base: BaseParameters, widths: Mapping[str, float]) -> BaseParameters:
    """The same base parameters with other widths of dry friction, on which their relations do not depend."""
    if not widths:
        return base

    def changed(term: Term) -> Term:
        if not isinstance(term, Coulomb):
            return term
        # All elements are named: what a key does not say is lost when the term is stored.
        every = {element.label: widths.get(element.label, term.width(element)) for element in term.elements(base.robot)}
        return Coulomb(term.smoothing, term.sliding, widths=every)

    return replace(base, terms=tuple(changed(term) for term in base.terms))


def _correct_widths(widths: Mapping[str, float], extended: Information, base: BaseParameters) -> dict[str, float]:
    """Widths with what the coefficients of their columns' slopes, Fc dw, say that they lack."""
    if not extended.n_rows:
        return dict(widths)
    joint = make_estimator().fit(extended)
    values, std = (dict(zip(joint.names_, x.tolist(), strict=True)) for x in (joint.values_, joint.std_))
    names = {element.label: element.names["Fc"] for element in Coulomb().elements(base.robot)}
    corrected = dict(widths)
    for label, width in widths.items():
        slope, coulomb = CoulombColumn(label, width, slope=True).name, values.get(names[label], 0.0)
        if width == 0.0 or coulomb <= 0.0 or slope not in values:
            continue
        change = values[slope] / coulomb
        if abs(change) > max(_SETTLED_STD * std[slope] / coulomb, _SETTLED_SHARE * width):
            corrected[label] = float(np.clip(width + change, 0.5 * width, 2.0 * width))
    return corrected


def determined_widths(widths: Mapping[str, float], joint: Estimator, base: BaseParameters) -> dict[str, float]:
    """The widths that the data distinguishes from a sharper and a wider turn, by element.

    Args:
        widths: All that were found.
        joint: A fit with the slopes of their columns, whose coefficients are Fc dw.
        base: The base parameters.
    """
    values, std = (dict(zip(joint.names_, x.tolist(), strict=True)) for x in (joint.values_, joint.std_))
    names = {element.label: element.names["Fc"] for element in Coulomb().elements(base.robot)}
    return {
        label: width
        for label, width in widths.items()
        if width * values.get(names[label], 0.0)
        > _DETERMINED_STD * std.get(CoulombColumn(label, width, slope=True).name, np.inf)
    }


def trial_columns(velocities: Mapping[str, float]) -> tuple[CoulombColumn, ...]:
    """Coulomb columns of all widths that are tried, element after element, the exact sign first.

    Args:
        velocities: Effective velocity of each element by its label [rad/s or m/s].
    """
    return tuple(
        CoulombColumn(label, width)
        for label, velocity in velocities.items()
        for width in (0.0, *(share * velocity for share in WIDTH_SHARES))
    )


@on_one_thread
def find_widths(
    information: Information, tried: Sequence[CoulombColumn], sigma: Array, replaced: Sequence[str]
) -> dict[str, float]:
    """The widths with the smallest residual, by element [rad/s or m/s].

    Args:
        information: Data over base parameters and, beside them, the columns tried.
        tried: Those columns.
        sigma: (n_channels,) standard deviation that each channel is divided by.
        replaced: Base parameters whose columns the tried ones replace: Fc of these elements.
    """
    channels, _ = dense_channels(information)
    names = list(information.names)
    trial = [names.index(one.name) for one in tried]
    others = [i for i, name in enumerate(names) if i not in set(trial) and name not in set(replaced)]
    rows = np.vstack([part / s for part, s in zip(channels, sigma, strict=True)])
    order = [*others, *trial, len(names)]
    G, y = beyond(triangular(rows[:, order]), len(others))
    elements = list(dict.fromkeys(one.element for one in tried))
    columns = {e: G[:, [i for i, one in enumerate(tried) if one.element == e]] for e in elements}
    widths = {e: np.array([one.width for one in tried if one.element == e]) for e in elements}
    floor = 1e-9 * float(np.linalg.norm(G))
    live = [e for e in elements if float(np.linalg.norm(columns[e])) > floor]
    places = _choose(live, columns, y)
    return {e: float(w) for e, w in _refine(places, columns, widths, y).items()}


def beyond(R: Array, n: int) -> tuple[Array, Array]:
    """Columns and right-hand side of a triangle without what the first n columns explain."""
    size = np.linalg.norm(R[:, :n], axis=0)
    u, singular, _ = np.linalg.svd(R[:, :n] / np.where(size > 0.0, size, 1.0), full_matrices=False)
    kept = u[:, singular > INFORMATION.noisy_rank * singular[0]] if len(singular) else u
    rest = R[:, n:] - kept @ (kept.T @ R[:, n:])
    return rest[:, :-1], rest[:, -1]


def _without(columns: Array, given: Array) -> Array:
    """The part of some columns that others do not explain."""
    q, _ = np.linalg.qr(given)
    return np.asarray(columns - q @ (q.T @ columns))


def _choose(elements: Sequence[str], columns: Mapping[str, Array], y: Array) -> dict[str, int]:
    """The width among those tried, by its place: each element in turn, with the others as they are."""
    middle = len(WIDTH_SHARES) // 2
    places = dict.fromkeys(elements, middle)
    for _ in range(_SWEEPS):
        before = dict(places)
        for e in elements:
            beside = [columns[other][:, place] for other, place in places.items() if other != e]
            own = np.column_stack([columns[e], y])
            own = _without(own, np.column_stack(beside)) if beside else own
            g, rest = own[:, :-1], own[:, -1]
            product, square = g.T @ rest, np.maximum((g**2).sum(0), 1e-300)
            gain = np.where(product > 0.0, product**2 / square, 0.0)  # friction that drives is none
            # Where there is no friction to speak of, noise would choose: a width so large that Fc passes for Fv.
            places[e] = int(np.argmax(gain)) if gain.max() > _SIGNIFICANT else 0
        if places == before:
            break
    return places


def _refine(
    places: Mapping[str, int], columns: Mapping[str, Array], widths: Mapping[str, Array], y: Array
) -> dict[str, float]:
    """Widths between those tried, by Gauss-Newton on interpolated columns; the exact sign stays what it is."""
    found = {e: float(widths[e][place]) for e, place in places.items()}
    free = [e for e, w in found.items() if w > 0.0]
    fixed = [columns[e][:, places[e]] for e in found if e not in free]
    at = {e: float(np.log(found[e])) for e in free}
    limits = {e: np.log(widths[e][[1, -1]]) for e in free}
    for _ in range(_ROUNDS):
        if not free:
            break
        pairs = [_interpolate(columns[e][:, 1:], np.log(widths[e][1:]), at[e]) for e in free]
        A = np.column_stack([*(column for column, _ in pairs), *(slope for _, slope in pairs), *fixed])
        size = np.linalg.norm(A, axis=0)
        scale = np.where(size > 0.0, size, 1.0)
        x = np.linalg.lstsq(A / scale, y, rcond=INFORMATION.noisy_rank)[0] / scale
        steps = []
        for i, e in enumerate(free):
            step = x[len(free) + i] / x[i] if x[i] > 0.0 else 0.0
            new = float(np.clip(at[e] + np.clip(step, -_STEP, _STEP), *limits[e]))
            steps.append(abs(new - at[e]))
            at[e] = new
        if max(steps) < 1e-3:
            break
    return found | {e: float(np.exp(at[e])) for e in free}


def _interpolate(columns: Array, places: Array, at: float) -> tuple[Array, Array]:
    """The column at a place between some, by the cubic through the four nearest, and its derivative there."""
    first = int(np.clip(np.searchsorted(places, at) - 2, 0, len(places) - 4))
    own = slice(first, first + 4)
    powers = np.vander(places[own] - at, 4, increasing=True)
    weights = np.linalg.inv(powers)  # rows: value, slope, .. of the cubic at `at`
    return columns[:, own] @ weights[0], columns[:, own] @ weights[1]
