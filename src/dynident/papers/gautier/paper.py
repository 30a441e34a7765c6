"""Gautier, Khalil, Restrepo 1995, part by part: structure and friction here, identification in `steps`."""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array
from dynident.dynamics import columns, energy, inverse_dynamics, joint_torque, regressor, tree_motion
from dynident.identifiability import base_parameters
from dynident.papers.gautier import printed, steps
from dynident.papers.gautier.experiments import (
    HELD,
    LOAD,
    find_gains,
    quintic,
    sr400,
    stepped_velocities,
    three_models,
    true_base,
    true_values,
)
from dynident.papers.records import Graph, Item, Paper, Part, Reproduction
from dynident.payload import payload_change
from dynident.report.charts import Curve
from dynident.report.experiments.friction import section
from dynident.report.space_view import robot_view
from dynident.robot import Robot, load_robot
from dynident.signals import low_pass_kernel

_EXACT = 1e-9
_SCAN = "rows 7 and 8 are lost in the scan; with these three the counts of the text hold"


def _geometry() -> Reproduction:
    robot = load_robot("sr400")
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 6))
    tree = tree_motion(robot, q, np.zeros_like(q), np.zeros_like(q))
    _, q2, _, _, _, q7 = q.T
    eq_6 = np.zeros((8, 6))  # place of each tree joint in the torque of each motor, (5) and (6) before the wrist
    for joint, own in enumerate(({0: 1}, {1: 1}, {1: -1, 5: 1}, {2: 1}, {3: 1}, {4: 1}, {5: 1}, {1: 1, 5: -1})):
        for motor, sign in own.items():
            eq_6[joint, motor] = sign
    wrist = np.zeros((1, 6))
    wrist[0, 3:5] = (1.0, 1.0)
    coupled = robot.moving_coupling[4] - wrist[0]
    items = (
        Item(
            "theta3 of eq. (1)",
            float(np.abs(tree.q[:, 2] - (np.pi / 2 - q2 + q7)).max()),
            0.0,
            within=_EXACT,
            unit="rad",
        ),
        Item("theta8 of eq. (1)", float(np.abs(tree.q[:, 7] - (q2 - q7)).max()), 0.0, within=_EXACT, unit="rad"),
        Item("velocity of motor 6, eq. (2)", float(np.abs(coupled).max()), 0.0, within=_EXACT),
        Item("Jacobian G, eq. (4) to (6)", float(np.abs(tree.G - eq_6).max()), 0.0, within=_EXACT),
    )
    return Reproduction(
        "Passive joints, the coupling of the wrist and the Jacobian of the parallelogram: largest difference from "
        "the equations at 200 random poses.",
        'di.dynamics.tree_motion(di.load_robot("sr400"), q, dq, ddq); dynident inspect sr400',
        items,
        pictures=(robot_view(robot, [], "figure-1"),),
    )


def _table_1() -> Reproduction:
    robot = load_robot("sr400")
    base = base_parameters(robot, "rigid,Ia")
    names = [column.name for column in base.columns]
    without = [name for name, column in zip(names, base.K.T, strict=True) if np.abs(column).max() <= _EXACT]
    alone = int(np.sum(np.sum(np.abs(base.K) > _EXACT, axis=1) == 1))
    items = [
        Item("parameters without effect", float(len(without)), float(len(printed.NO_EFFECT))),
        Item(
            "of these, the printed ones",
            float(len(set(without) & set(printed.NO_EFFECT))),
            float(len(printed.NO_EFFECT)),
        ),
        *(
            Item(f"base parameters of {terms}", float(base_parameters(robot, terms).n), float(count))
            for terms, count in printed.COUNTS.items()
        ),
        Item("standard ones", float(alone), float(printed.STANDARD)),
        Item("regrouped ones", float(base.n - alone), float(printed.REGROUPED)),
        Item("names of rows 1 to 6", float(len(set(base.names) & set(printed.TABLE_1))), float(len(printed.TABLE_1))),
        Item(
            "names of rows 7, 8",
            ", ".join(sorted(set(base.names) - set(printed.TABLE_1))),
            None,
            ", ".join(printed.LOST),
            reason=_SCAN,
        ),
    ]
    d2, d3, d8 = (robot.lengths[name] for name in ("d2", "d3", "d8"))
    for standard, own in printed.regroupings(d2, d3, d8).items():
        found = {name: float(base.K[k, names.index(standard)]) for k, name in enumerate(base.names)}
        for name, coefficient in own.items():
            why = "not printed here but in its reference [2]; by the rules of Khalil and Bennis"
            items.append(Item(f"{standard} in {name}", found[name], None, coefficient, _EXACT, "", why))
    return Reproduction(
        "Base parameters by structure, regrouped over the lengths.",
        "dynident inspect sr400 --terms rigid,Ia,Fv,Fc",
        tuple(items),
        notes=tuple(
            f"{name} = {text}" for name, text in zip(base.names, base.expressions, strict=True) if name != text
        ),
    )


def _friction_matrix() -> Array:
    """Viscous friction of motors 5 and 6 per velocity of motor 5 and of motor 6, eq. (8)."""
    robot, base = sr400()
    values = dict(
        zip([c.name for c in base.columns], base.standard_values(true_values(), "regrouped zero"), strict=True)
    )
    viscous = {name: x for name, x in values.items() if name.startswith("Fv")}
    dq = np.zeros((2, 6))
    dq[0, [3, 4]] = 1.0, -1.0  # motor 5 alone: joint 6 turns back
    dq[1, 4] = 1.0  # motor 6 alone
    tau = inverse_dynamics(robot, 0.0 * dq, dq, 0.0 * dq, "Fv", viscous)
    return np.asarray(tau[:, [3, 4]].T)


def _rank(wrist: Robot, velocities: list[tuple[float, float]]) -> int:
    """Rank of the six friction parameters from runs at constant velocities of joints 5 and 6."""
    dq = np.array(velocities)
    names = [column.name for column in columns(wrist, "Fv,Fc")]
    own = [names.index(name) for name in ("Fv5", "Fv6", "Fvm6", "Fc5", "Fc6", "Fcm6")]
    W = regressor(wrist, 0.0 * dq, dq, 0.0 * dq, "Fv,Fc")[:, :, own].reshape(-1, len(own))
    return int(np.linalg.matrix_rank(W, tol=_EXACT))


def _figure_2() -> Reproduction:
    found, wrist = stepped_velocities(), load_robot("sr400").lock(**HELD)
    items = []
    for one in found.estimates:
        expected = printed.TABLE_4[one.name][0]
        items.append(Item(one.name, one.value, expected, within=3.0 * one.std, unit=one.unit, more=(one.std,)))
    fit, graphs = found.fits[0], []
    jump = 2.0 * abs(found["Fc6"].value)
    why = "2 |Fs6|, where joint 6 turns round"
    items.append(Item("jump of friction 5", jump, None, 0.8, 6.0 * found["Fc6"].std, "N·m", why, ("",)))
    for k, level in enumerate(printed.LEVELS):
        one = section(fit, k, level)
        curves = (
            Curve("parts of each run", one.parts[:, 0], one.parts[:, 1], "dots"),
            Curve("model", one.line_velocity, one.line, "predicted"),
        )
        held = f"{'qm6' if k == 0 else 'q5'}' = {level:g} rad/s"
        graphs.append(Graph(f"Figure 2: friction of motor {5 + k}, {held}", curves, "rad/s", "N·m"))
    low, high = sorted(np.linalg.eigvalsh(_friction_matrix()))
    why = "not printed; Fv6 alone would feed energy, but the whole of eq. (8) takes it"
    items.append(Item("smaller viscous eigenvalue", float(low), None, 0.054, 5e-4, "N·m·s/rad", why, ("",)))
    items.append(Item("larger viscous eigenvalue", float(high), None, 0.128, 5e-4, "N·m·s/rad", why, ("",)))
    line = [(q5, 2.4 - q5) for q5 in (-3.0, -2.0, -1.0, 0.5, 1.0, 2.0, 3.0, 4.0)]
    grid = [(q5, qm6 - q5) for q5 in (-3.0, -1.0, 1.0, 2.0, 3.0) for qm6 in (-3.6, -2.4, -0.8, 0.8, 2.4, 3.6)]
    ranks = (
        ("rank, line of qm6', one sign", [pair for pair in line if pair[0] * pair[1] > 0.0], 4.0),
        ("rank, many velocities, both positive", [pair for pair in grid if pair[0] * pair[1] > 0.0], 5.0),
        ("rank, many velocities, negative", [pair for pair in grid if pair[0] * pair[1] < 0.0], 6.0),
        (
            "rank, line of qm6' and line of q5'",
            line + [(-3.0, qm6 + 3.0) for qm6 in (-6.0, -5.0, -4.0, -2.0, 1.0, 2.0)],
            6.0,
        ),
    )
    why = "both signs of q5' q6' are needed, says the paper; off its line negative ones alone are enough"
    items += [
        Item(name, float(_rank(wrist, velocities)), None, expected, reason=why, more=("",))
        for name, velocities, expected in ranks
    ]
    return Reproduction(
        "Eight runs at constant velocities of joints 5 and 6 there and back, so that gravity cancels; noise of 0.6 "
        "N·m, 16-bit positions. Printed are the values of Table 4.",
        "dynident friction sr400 --joints q5,q6 --velocities q5=1:3,q6=0.8:2.4",
        tuple(items),
        columns=("std",),
        notes=("Within three standard deviations of each.",),
        graphs=tuple(graphs),
    )


def _table_2() -> Reproduction:
    found = find_gains()
    items = [
        Item(name, float(gain), *_gain(name), unit="N·m/V", more=(float(std),))
        for name, gain, std in zip(found.joints, found.gains, found.std, strict=True)
    ]
    return Reproduction(
        "Total least squares on the drives' signals of a run without and a run with the load, of which only the mass "
        "is known; noise of 20 and 0.6 N·m.",
        'di.identify_drive_gains(robot, unloaded, loaded, {"M": 10.9}); '
        "dynident gains sr400 LOADED --unloaded LOG --known 10.9",
        tuple(items),
        columns=("std",),
        notes=("The paper gives the gains without saying how they were found; within its tolerances.",),
    )


def _gain(name: str) -> tuple[float, None, float]:
    value, tolerance = printed.TABLE_2[name]
    return value, None, tolerance


def _table_3() -> Reproduction:
    robot, base = sr400()
    lengths = (robot.lengths[name] for name in ("d2", "d3", "d4", "RL4"))
    change = dict(zip(base.names, payload_change(base, LOAD).tolist(), strict=True))
    relations = printed.load_relations(*lengths)
    items = [Item(name, change[name], value, within=_EXACT) for name, value in relations.items()]
    others = max(abs(value) for name, value in change.items() if name not in relations)
    items.append(Item("largest change of the others", others, 0.0, within=_EXACT))
    return Reproduction(
        "What the load of Table 3 changes in each base parameter, by structure, beside the nineteen printed relations.",
        "di.payload.payload_change(base, di.payload.Payload.from_standard({..})); "
        "dynident payload FIT LOG --known MASS,CX,CY,CZ,IXX,..",
        tuple(items),
        notes=("The lengths are ours: d2 0.14, d3 0.635, d4 0.188, RL4 0.833 m.",),
    )


def _energy() -> Reproduction:
    base, rows, fits = three_models()
    inertial = [k for k, name in enumerate(base.names) if not name.startswith("F")]
    truth = true_base(base)
    items = []
    for k in inertial:
        values = {name: float(fit.values_[k]) for name, fit in fits.items()}
        items.append(
            Item(
                *(base.names[k], values["energy"] - values["dynamic"], 0.0),
                within=0.01,
                more=(float(truth[k]), values["energy"], values["power"], values["dynamic"]),
            )
        )
    none = ("", "", "", "")
    why = "not printed; the other five of the wrist's sixteen need the arm to move"
    items.append(Item("identifiable of 16", float(len(inertial)), None, 11.0, reason=why, more=none))
    why = "eq. (10) in the small: dH/dt is the power of the joints"
    items.append(Item("power balance", _power_balance(), None, 0.0, 1e-6, "", why, none))
    return Reproduction(
        "Links 5 and 6 with the load, the other joints locked: energy over intervals of 0.4 s, power at every "
        "instant, and torque, from one noisy log. Here is energy minus dynamic model; the paper finds them "
        "comparable.",
        "di.estimate.observed_energy(di.observe(log, robot), terms, length=0.4, overlap=0.5); "
        "dynident identify sr400 LOG --model energy -o FIT",
        tuple(items),
        columns=("truth", "energy", "power", "dynamic"),
        notes=(str(rows),),
    )


def _power_balance() -> float:
    """Largest difference of dH/dt and the power of the joints, beside the largest power."""
    wrist, (_, base) = load_robot("sr400").lock(**HELD), sr400()
    chi = base.standard_values(true_values(loaded=True), "regrouped zero")[: len(columns(wrist, "rigid,Ia"))]
    q, dq, ddq = (x[300:60000:997, 3:5] for x in quintic(3))
    h = 1e-5
    ahead, behind = (
        energy(wrist, q + s * h * dq + h * h * ddq / 2.0, dq + s * h * ddq, "rigid,Ia", chi) for s in (1.0, -1.0)
    )
    tau = inverse_dynamics(wrist, q, dq, ddq, "rigid,Ia", chi)
    power = np.sum(joint_torque(wrist, tau) * dq, axis=1)
    return float(np.abs((ahead - behind) / (2.0 * h) - power).max() / np.abs(power).max())


def _filters() -> Reproduction:
    kernel = low_pass_kernel(80.0, 1000.0)
    why = "a gain other than one at rest shifts positions, and makes spurious parameters out of clean data"
    items = (Item("gain at rest", float(kernel.taps.sum()), printed.DECIMATE_GAIN, 1.0, _EXACT, "", why),)
    return Reproduction(
        "Gain at rest of the low-pass for positions at 1 kHz; printed is that of MATLAB's decimate (Chebyshev), "
        "which the paper names. Rows and torque that both pass it are not harmed.",
        "di.signals.low_pass_kernel(80.0, 1000.0); "
        "dynident identify ROBOT LOG --filter butterworth --decimation 50 -o FIT",
        items,
    )


PAPER = Paper(
    "gautier",
    "M. Gautier, W. Khalil, P. P. Restrepo",
    "Identification of the Dynamic Parameters of a Closed Loop Robot, ICRA",
    "1995",
    (
        Part("figure-1", "Figure 1, equations (1) to (6): parallelogram and coupled wrist", _geometry),
        Part("figure-2", "Figure 2, equation (8): coupled friction", _figure_2),
        Part("table-1", "Table 1: base parameters", _table_1),
        Part("energy", "Section 4.1: energy model of links 5 and 6", _energy),
        Part("table-2", "Table 2: drive gains", _table_2),
        Part("filters", "Section 4.3: filters", _filters),
        Part("table-3", "Table 3: the load and its nineteen relations", _table_3),
        Part("table-4-unloaded", "Table 4: essential parameters, unloaded", steps.unloaded_table),
        Part("table-4-loaded", "Table 4: essential parameters, loaded", steps.loaded_table),
        Part("runs", "Table 4 over and over: twelve noisy runs", steps.twelve_runs),
        Part("figure-3", "Figure 3: cross-validation with load", steps.figure_3),
    ),
)
