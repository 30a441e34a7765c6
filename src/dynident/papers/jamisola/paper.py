"""Jamisola, Dadios, Ang, part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dynident.experiments import sensitivity
from dynident.papers.jamisola import printed
from dynident.papers.jamisola.equations import chain_differences
from dynident.papers.jamisola.experiments import (
    SMALL,
    corollary_error,
    count_candidates,
    count_periods,
    search_automatically,
    slow_start,
    theory_periods,
    upright_slope,
)
from dynident.papers.jamisola.tables import RESOLUTION, PaperTable
from dynident.papers.jamisola.tracking import CHANGE
from dynident.papers.records import Graph, Item, Paper, Part, Reproduction, equation_item
from dynident.report.charts import Curve, Look
from dynident.report.space_view import robot_view
from dynident.robot import load_robot

_THEORY = 0.01  # relative difference of counted periods from theory
_FAINT = 0.005  # share of a combination
_LINKS = {1: "one link", 2: "two links", 3: "three links"}
_EQUATIONS = {1: "23", 2: "24", 3: "25"}
_SIGN = "the arm is inverted and its angles are from upright, so gravity pushes over: -g"


def _pendulums() -> Reproduction:
    slope = float(upright_slope(load_robot("pendulum-1"))[0, 0])  # m g l / 2 of a slender rod of 1 kg and 1 m
    inertia = 1.0 / 3.0
    square, over = slope / inertia, 1.02
    table = count_periods(1, "gravity", factors=(over,), start=SMALL)
    time = table.updates * table.sample_time
    counted = (2.0 * np.pi * table.rows[0].periods[0] / time) ** 2
    why = "over-estimated weight swings, under-estimated falls; the printed square is negative where it swings"
    right, wrong = (over - 1.0) * square, (1.0 - over) * square
    items = (
        Item("(2) w² of the hanging rod", square, 1.5 * 9.81, within=1e-6, unit="1/s²"),
        Item("(6), (13) w² at a factor of 1.02", counted, wrong, right, _THEORY * right, "1/s²", why),
    )
    return Reproduction(
        "One slender rod of 1 kg and 1 m on MuJoCo: frequency with its weight over-estimated by 2 %.",
        "dynident papers jamisola --only equations-2-13",
        items,
        notes=("(8) is d/dt dL/dq' - dL/dq with L = K - P; printed is + dT/dq with T = K + P.",),
    )


def _chain(links: int) -> Reproduction:
    number, items = _EQUATIONS[links], []
    for name, (right, wrong) in chain_differences(links).items():
        why = _SIGN if name == "g" else "A22 has m3 L² C3, not 3 m3 L² C3"
        items.append(equation_item(f"({number}) {name}", right, wrong, why))
    robot = load_robot(f"pendulum-{links}")
    return Reproduction(
        "Rods of random mass in 200 random states: largest difference of the equations from the recursion, as "
        "printed and corrected.",
        f'di.mass_matrix(di.load_robot("{robot.name}"), q, values), di.dynamics.coriolis_torque, '
        f"di.dynamics.gravity_torque",
        tuple(items),
        pictures=(robot_view(robot, [], f"figure-4-{links}"),),
    )


def _periods_graph(table: PaperTable, here: Sequence[float], label: str) -> Graph:
    factors = [row.factors[0] for row in table.rows]
    counted = [(f, n) for f, n in zip(factors, here, strict=True) if np.isfinite(n)]
    printed = [(row.factors[0], float(row.printed)) for row in table.rows if row.printed not in ("", "falls")]
    curves = (_joined_curve(label, counted), _joined_curve("printed", printed, "predicted"))
    return Graph(f"Table {table.number}: periods against the factor", curves, "factor", "periods")


def _joined_curve(name: str, points: Sequence[tuple[float, float]], look: Look = "measured") -> Curve:
    """Points joined by lines, however far apart they are."""
    x, y = np.array(sorted(points)).T
    dense = np.linspace(x[0], x[-1], 200)
    return Curve(name, dense, np.interp(dense, x, y), look)


def _gravity_table(links: int) -> Reproduction:
    robot = load_robot(f"pendulum-{links}")
    alternating = count_periods(links, "gravity")
    amplitude = np.radians(printed.START) if links == 1 else 0.0
    found = alternating if links == 1 else count_periods(links, "gravity", start=slow_start(robot))
    items = []
    for row, other in zip(found.rows, alternating.rows, strict=True):
        factor = row.factors[0]
        here = "falls" if row.falls else float(np.mean(row.periods))
        theory = theory_periods(robot, factor, amplitude)
        expected = "falls" if factor < 1.0 else theory
        why = "eq. (13) corrected" if factor > 1.0 else "at the true weight and below nothing pulls the arm back"
        was = row.printed if row.printed == "falls" else float(row.printed)
        more = other.cells(links) if links > 1 else []
        reason = "" if was == expected else why
        items.append(
            Item(
                *(f"factor {factor:.3f}", here, was, None if was == expected else expected),
                *(_THEORY * theory, "", reason, tuple(more)),
            )
        )
    start = "15 degrees" if links == 1 else "1 degree in the slow mode, in which the links share one frequency"
    mixed = () if links == 1 else ("Columns by link: the paper's start of 15 degrees, alternating, mixes the modes.",)
    return Reproduction(
        f"Gravity compensated with weights times a factor, {found.updates} updates of 17.33 ms, start of {start}.",
        f"dynident oscillate {robot.name} --stage gravity; dynident papers jamisola --only table-{found.number}",
        tuple(items),
        columns=tuple(f"link {k + 1}" for k in range(links)) if links > 1 else (),
        notes=(*found.facts, *mixed),
        graphs=(
            _periods_graph(
                found, [np.nan if row.falls else float(np.mean(row.periods)) for row in found.rows], "counted here"
            ),
        ),
    )


def _inertia_table(links: int) -> Reproduction:
    table = count_periods(links, "inertia")
    right = np.sqrt(printed.KP) * table.updates * table.sample_time / (2.0 * np.pi)
    items = [
        Item(
            *(f"factor {row.factors[0]:.2f}", float(np.mean(row.periods)), float(row.printed)),
            within=RESOLUTION,
            more=(*row.cells(links), f"{right * np.sqrt(row.factors[0]):.2f}"),
        )
        for row in table.rows
    ]
    off = corollary_error(links)
    why = "Corollary 1: at the right inertia w² is kp"
    items.append(Item("w²/kp - 1, small start", off, None, 0.0, 1e-4, "", why, ("",) * (links + 1)))
    return Reproduction(
        f"Proportional control with inertias times a factor, {table.updates} updates of 17.33 ms, kp = 0.41415, "
        "alternating starts of 15 degrees; mean of the links.",
        f"dynident papers jamisola --only table-{table.number}",
        tuple(items),
        columns=(*(f"link {k + 1}" for k in range(links)), "35.5 sqrt(f)"),
        notes=(*table.facts, "Printed counts are steps of a half, as counting is; within that they agree."),
        graphs=(
            _periods_graph(
                table, [float(np.mean(row.periods)) for row in table.rows], "counted here (mean of the links)"
            ),
        ),
    )


def _search() -> Reproduction:
    items = []
    for links in _LINKS:
        found = search_automatically(links)
        for stage in found.stages:
            true = np.array(found.model.true_values(stage.groups, "plant"))
            known = true != 0.0
            worst = 100.0 * float(np.max(np.abs(stage.values[known] / true[known] - 1.0)))
            gravity = stage.name == "gravity"
            within = printed.WEIGHT_ERROR[links] if gravity else printed.INERTIA_ERROR[links]
            why = "the paper adjusts by hand and has no number"
            what = "weights" if gravity else "inertias"
            items.append(
                Item(f"{_LINKS[links]}: {what}", worst, None, 0.0, within, "%", why, (float(len(stage.steps)),))
            )
    return Reproduction(
        "Worst error of the automatic search: weights half as large again are sent first; the product of the squared "
        "frequencies is linear in each factor, so it is extrapolated to zero instead of creeping towards the fall.",
        "dynident oscillate pendulum-2; di.experiments.oscillate(plant, nominal=..)",
        tuple(items),
        columns=("swings",),
    )


def _combinations() -> Reproduction:
    table = count_candidates()
    tried = [row for row in table.candidates if row.error is not None]
    best = min(tried, key=lambda row: row.error or 0.0)
    near = ", ".join(f"{factor:g}" for factor in best.factors)
    why = "left to the robot's response in the paper; the candidate next to the truth has to be the best"
    items = [Item("best of the candidates", near, None, "1.001, 1.001", reason=why)]
    why = "an error of a tenth has to move the arm more than the best candidate's own error"
    for shares, _, resolution in table.discrimination:
        names = [name for name, share in zip(table.names, shares, strict=True) if abs(share) > _FAINT]
        seen = "seen" if resolution < CHANGE else "hidden"
        items.append(Item(f"10 % of {' and '.join(names)}", seen, None, "seen", reason=why))
    return Reproduction(
        "All combinations of the factors 1.001 and 1.1 on the weights of two links. Those that counting leaves open "
        "are tried in a motion in which an error of every weight shows.",
        "dynident papers jamisola --only combinations",
        tuple(items),
        notes=(
            *table.candidate_facts,
            "The paper's alternating starts keep every other link upright, and its weight unseen.",
        ),
    )


def _sensitivity() -> Reproduction:
    kp, error, change, angle = 100.0, np.radians(1.0), 0.01, np.radians(60.0)
    found = sensitivity(load_robot("pendulum-1"), "plant", kp=kp, error=error, change=change, pose=np.array([angle]))
    weight = -0.5 * 9.81 * np.sin(angle)  # g of (23), corrected
    items = []
    for place, e in enumerate(found.errors):
        torque = weight - kp * e / 3.0
        shares = {"weight": abs(change * weight / torque), "inertia": abs(change * kp * e / 3.0 / torque)}
        for kind, share in shares.items():
            k = next(i for i, own in enumerate(found.kinds) if own == kind)
            number = "28" if kind == "weight" else "30"
            here = 100.0 * float(found.shares[k, place])
            items.append(Item(f"({number}) at e = {np.degrees(e):g} deg", here, 100.0 * share, within=1e-6, unit="%"))
    return Reproduction(
        "Torque error over torque for an error of 1 % of the weight (28) and of the inertia (30), at 60 degrees, kp "
        "= 100.",
        "dynident oscillate pendulum-1 --sensitivity",
        tuple(items),
        notes=(
            "An error of the inertia vanishes with e, one of the weight does not.",
            "In (26) to (30) e is q - q_d, as u = -kp (q - q_d) asks for; printed is q_d - q.",
        ),
    )


def _of(make: Callable[[int], Reproduction], links: int) -> Callable[[], Reproduction]:
    return partial(make, links)


def _tables() -> list[Part]:
    parts = []
    for links, (gravity, inertia) in {1: ("I", "II"), 2: ("III", "IV"), 3: ("V", "VI")}.items():
        name = _LINKS[links]
        parts.append(
            Part(
                f"equation-{_EQUATIONS[links]}", f"Equation ({_EQUATIONS[links]}), Figure 4: {name}", _of(_chain, links)
            )
        )
        parts.append(
            Part(f"table-{gravity}", f"Table {gravity}: mass and center of mass, {name}", _of(_gravity_table, links))
        )
        parts.append(Part(f"table-{inertia}", f"Table {inertia}: inertia, {name}", _of(_inertia_table, links)))
    return parts


PAPER = Paper(
    "jamisola",
    "R. S. Jamisola, E. P. Dadios, M. H. Ang",
    "Dynamics Parameters Identification of Rigid-Body Manipulators through Natural Oscillations",
    "",
    (
        Part(
            "figures-1-3", "Figures 1 to 3: pendulum, spring, inverted pendulum", why="sketches; their equations follow"
        ),
        Part("equations-2-13", "Equations (2) to (13): one link", _pendulums),
        *_tables(),
        Part("sensitivity", "Equations (26) to (30): sensitivity", _sensitivity),
        Part("search", "Section III.C: the search", _search),
        Part("combinations", "Section III.C: candidates beside the robot's response", _combinations),
    ),
)
