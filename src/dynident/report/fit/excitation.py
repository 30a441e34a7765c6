"""Excitation: combinations that the data hardly determines, and the motion that would show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynident.arrays import Array
from dynident.estimate.fit import Fit
from dynident.identifiability.excitation_quality import Help, helpful_motions
from dynident.report.charts import std_plot
from dynident.report.html import Head, Html, Part, Section, Table, Text, figure
from dynident.report.text import number, plural
from dynident.report.thresholds import THRESHOLDS

_MAX_ROWS = 12  # combinations that are shown
_MAX_BARS = 24  # parameters in the plot
_MAX_NAMES = 5  # parameters of a combination that are named


def excitation_section(estimate: Fit) -> Section:
    """Which combinations are weak, and what to move."""
    text = (
        f"Rank {estimate.rank} of {len(estimate.names)}; condition number {number(estimate.condition, 3)} of the "
        "weighted data with scaled columns."
    )
    parts: list[Part] = [Text(text)]
    rows = _rows(estimate)
    if rows:
        more = (
            "The data hardly separates the parameters below from others: torque changes little when they change "
            "together as shown. The second column is the standard deviation of the first parameter over what it would "
            "be if the others were known (root of its variance inflation factor); the last, which motion excites the "
            "combination most, from the robot's equations with one joint moving at a time."
        )
        heads = [Head("Combination", class_="text"), Head("Std inflation", True)]
        heads.append(Head("Motion that would help", class_="text"))
        parts += [Text(more), Table("Weakest combinations", heads, rows)]
    else:
        parts.append(Text("All parameters are well separated from each other: the motion was rich enough."))
    if estimate.undetermined:
        what = plural(len(estimate.undetermined), "parameter")
        parts.append(Text(f"Not determined by the data: {what}, {', '.join(estimate.undetermined)}."))
    if estimate.diagnosis is not None:
        names = ("condition", "rank", "independence", "directions")
        found = [one for one in estimate.diagnosis.diagnostics if one.name in names and one.severity != "ok"]
        parts += [Text(f"{one.message}.", "item") for one in found]
    return Section("excitation", "Excitation", [*parts, _plot(estimate)], "Excitation")


def _weak_directions(estimate: Fit) -> Iterator[tuple[Array, Array, float]]:
    """Weak combinations, worst first; a parameter that one of them explains starts no other.

    Yields:
        The direction (n,) in units of the parameters; the same in standard deviations of each parameter, the largest
        one; how many times smaller the standard deviation of its first parameter would be if the others were known,
        infinite in the null space.
    """
    found = 0
    if estimate.null_space is not None:
        for direction in estimate.null_space.T[:_MAX_ROWS]:
            found += 1
            yield direction, direction / max(float(np.abs(direction).max()), 1e-300), float("inf")
    known = np.flatnonzero(estimate.determined & (estimate.std > 0.0))
    if len(known) < 2:
        return
    std = estimate.std[known]
    correlation = estimate.covariance[np.ix_(known, known)] / np.outer(std, std)
    # The root of the variance inflation: std over what it would be with all other parameters known.
    inflation = np.sqrt(np.maximum(np.diag(np.linalg.pinv(correlation, rcond=1e-12, hermitian=True)), 1.0))
    explained: set[int] = set()
    for i in np.argsort(-inflation):
        if inflation[i] < THRESHOLDS.std_inflation or found >= _MAX_ROWS:
            break
        if i in explained:
            continue
        explained |= {int(k) for k in np.flatnonzero(np.abs(correlation[i]) > THRESHOLDS.correlation)}
        shares, direction = np.zeros(len(estimate.names)), np.zeros(len(estimate.names))
        shares[known], direction[known] = correlation[i], correlation[i] * std
        found += 1
        yield direction, shares, float(inflation[i])


def _rows(estimate: Fit) -> list[list[object]]:
    """A row for each weak combination; the same one in the friction of several joints is shown once."""
    sigma = np.where(np.isfinite(estimate.sigma) & (estimate.sigma > 0.0), estimate.sigma, 1.0)
    rows: list[list[object]] = []
    friction: dict[tuple[str, ...], tuple[list[str], float]] = {}
    for direction, shares, inflation in _weak_directions(estimate):
        named = [int(i) for i in np.argsort(-np.abs(shares)) if abs(shares[i]) >= THRESHOLDS.correlation][:_MAX_NAMES]
        columns = [estimate.base.columns[estimate.base.independent[i]] for i in named]
        sign = np.sign(shares[named[0]]) if named else 1.0
        ways = ["up" if sign * shares[i] > 0 else "down" for i in named]
        places = dict.fromkeys(column.place for column in columns)
        if len(places) == 1 and all(column.term not in ("rigid", "Ia") for column in columns):
            key = tuple(f"{column.symbol.rstrip('_')} {way}" for column, way in zip(columns, ways, strict=True))
            joints, most = friction.get(key, ([], 0.0))
            friction[key] = ([*joints, *places], max(most, inflation))
            continue
        words = ", ".join(f"{estimate.names[i]} {way}" for i, way in zip(named, ways, strict=True))
        rows.append([words, _inflation_words(inflation), _advice(helpful_motions(estimate.base, direction, sigma))])
    # Laws of friction differ in how they depend on velocity and on the way since a reversal; both must vary.
    advice = "many velocities from very slow to fast, with reversals"
    for parts, (joints, inflation) in friction.items():
        words = f"{', '.join(parts)}: friction of {', '.join(joints)}"
        rows.append([words, _inflation_words(inflation), advice])
    return rows


def _inflation_words(inflation: float) -> str:
    return "not determined" if inflation == float("inf") else f"{number(inflation, 2)} ×"


def _advice(ways: Sequence[Help]) -> str:
    if not ways:
        return "none of a single joint: hysteresis friction shows at reversals, at several velocities"
    return "; ".join(f"{one.joint} {one.way}" for one in ways[:3])


def _plot(estimate: Fit) -> Html:
    """The largest relative standard deviations, as bars; no panel beside others."""
    shares = np.where(estimate.determined, estimate.relative_std, np.inf)
    worst = np.argsort(-shares)[:_MAX_BARS]
    drawn = std_plot([estimate.names[i] for i in worst], shares[worst], (1e-4, 10.0), "excited")
    return Html(figure(f"The {len(worst)} largest relative standard deviations", drawn, class_="bars"))
