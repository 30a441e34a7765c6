"""The excitation map: combinations that the data hardly tells, and the motion that would show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.estimate.fit import Fit
from dynident.identifiability.excitation_quality import Help, helpful_motions
from dynident.report.charts import Deviation, deviations_plot
from dynident.report.html import Head, Html, bullets, element, paragraphs, section, table
from dynident.report.text import counted, number

_WEAKEST = 12  # directions that are shown
_SHOWN = 24  # parameters in the plot
_STANDS_OUT = 3.0  # certainty lost to other parameters from which a combination is worth a row
_PART = 0.4  # correlation from which a parameter is named
_NAMED = 5  # parameters of a combination that are named
_ENDS = (1e-4, 10.0)  # of the plot's scale


def excitation_section(estimate: Fit) -> Html:
    """Which combinations are weak, and what to move."""
    rows = _rows(estimate)
    told = (
        f"Rank {estimate.rank} of {len(estimate.names)}; condition number {number(estimate.condition, 3)} of the "
        "weighted data with scaled columns."
    )
    parts: list[object] = [paragraphs(told)]
    if rows:
        more = (
            "The data can hardly tell the parameters below from others: torque changes little when they change "
            "together as shown. The second column says how many times as certain the first would be if the others "
            "were known; the last, which motion shows the combination most, from the robot's equations with one joint "
            "moving at a time."
        )
        heads = [Head("Combination", class_="text"), Head("Certainty lost", True)]
        heads.append(Head("Motion that would help", class_="text"))
        parts += [paragraphs(more), table("Weakest combinations", heads, rows)]
    else:
        parts.append(paragraphs("No parameter is hard to tell from the others: the motion was rich enough."))
    if estimate.undetermined:
        what = counted(len(estimate.undetermined), "parameter")
        parts.append(paragraphs(f"Not determined at all: {what}, {', '.join(estimate.undetermined)}."))
    proposals = _proposals(estimate)
    if proposals:
        parts.append(bullets(proposals))
    parts.append(_plot(estimate))
    return section("excitation", "Excitation", *parts)


@dataclass(frozen=True)
class _Weak:
    """A combination of parameters that the data hardly tells.

    Attributes:
        direction: (n,) in units of the parameters.
        shares: (n,) the same in deviations of each parameter, the largest one.
        times: How many times as certain its first parameter would be if the others were known; infinite if open.
    """

    direction: Array
    shares: Array
    times: float


def _weak(estimate: Fit) -> list[_Weak]:
    """Combinations, worst first; a parameter that one of them has explained starts no other."""
    found: list[_Weak] = []
    if estimate.open_directions is not None:
        for direction in estimate.open_directions.T[:_WEAKEST]:
            found.append(_Weak(direction, direction / max(float(np.abs(direction).max()), 1e-300), float("inf")))
    known = np.flatnonzero(estimate.determined & (estimate.std > 0.0))
    if len(known) < 2:
        return found
    std = estimate.std[known]
    correlation = estimate.covariance[np.ix_(known, known)] / np.outer(std, std)
    # The root of the variance inflation: deviation over what it would be with all other parameters known.
    times = np.sqrt(np.maximum(np.diag(np.linalg.pinv(correlation, rcond=1e-12, hermitian=True)), 1.0))
    explained: set[int] = set()
    for i in np.argsort(-times):
        if times[i] < _STANDS_OUT or len(found) >= _WEAKEST:
            break
        if i in explained:
            continue
        explained |= {int(k) for k in np.flatnonzero(np.abs(correlation[i]) > _PART)}
        shares, direction = np.zeros(len(estimate.names)), np.zeros(len(estimate.names))
        shares[known], direction[known] = correlation[i], correlation[i] * std
        found.append(_Weak(direction, shares, float(times[i])))
    return found


def _rows(estimate: Fit) -> list[list[object]]:
    """A row for each weak combination; the same one in the friction of several joints is told once."""
    sigma = np.where(np.isfinite(estimate.sigma) & (estimate.sigma > 0.0), estimate.sigma, 1.0)
    rows: list[list[object]] = []
    friction: dict[tuple[str, ...], tuple[list[str], float]] = {}
    for weak in _weak(estimate):
        named = [int(i) for i in np.argsort(-np.abs(weak.shares)) if abs(weak.shares[i]) >= _PART][:_NAMED]
        columns = [estimate.base.columns[estimate.base.independent[i]] for i in named]
        sign = np.sign(weak.shares[named[0]]) if named else 1.0
        ways = ["up" if sign * weak.shares[i] > 0 else "down" for i in named]
        places = dict.fromkeys(column.place for column in columns)
        if len(places) == 1 and all(column.term not in ("rigid", "Ia") for column in columns):
            key = tuple(f"{column.symbol.rstrip('_')} {way}" for column, way in zip(columns, ways, strict=True))
            joints, times = friction.get(key, ([], 0.0))
            friction[key] = ([*joints, *places], max(times, weak.times))
            continue
        told = ", ".join(f"{estimate.names[i]} {way}" for i, way in zip(named, ways, strict=True))
        rows.append([told, _lost(weak.times), _words(helpful_motions(estimate.base, weak.direction, sigma))])
    # Laws of friction differ in how they depend on speed and on the way since a reversal; both must vary.
    advice = "many speeds from very slow to fast, with reversals"
    for parts, (joints, times) in friction.items():
        rows.append([f"{', '.join(parts)}: friction of {', '.join(joints)}", _lost(times), advice])
    return rows


def _lost(times: float) -> str:
    return "open" if times == float("inf") else f"{number(times, 2)} ×"


def _words(ways: Sequence[Help]) -> str:
    if not ways:
        return "none of a single joint: friction with memory shows at reversals, at several speeds"
    return "; ".join(f"{one.joint} {one.way}" for one in ways[:3])


def _proposals(estimate: Fit) -> list[str]:
    """What the check of the logs proposed about excitation."""
    if estimate.diagnosis is None:
        return []
    names = ("condition", "rank", "independence", "directions")
    return [f"{one.message}." for one in estimate.diagnosis.diagnostics if one.name in names and one.severity != "ok"]


def _plot(estimate: Fit) -> Html:
    """The widest relative deviations, as bars."""
    shares = np.where(estimate.determined, estimate.relative_std, np.inf)
    worst = np.argsort(-shares)[:_SHOWN]
    rows = [Deviation(estimate.names[i], float(shares[i]), None) for i in worst]
    caption = element("figcaption", f"The {len(rows)} widest deviations beside their values")
    return element("figure", caption, deviations_plot(rows, _ENDS, "excited"), class_="bars")
