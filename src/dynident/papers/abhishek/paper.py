"""Abhishek, Hayat, Udai, Saha, part by part."""

from __future__ import annotations

import numpy as np

from dynident.dynamics import columns, forward_kinematics, inverse_dynamics
from dynident.experiments.gravity import FourierFit, compare_moments
from dynident.identifiability import base_parameters, base_violations, excitation
from dynident.information import accumulate
from dynident.papers.abhishek import printed
from dynident.papers.abhishek.experiments import (
    NOISE,
    TERMS,
    TIMES,
    fourier,
    fourier_conditions,
    record_motion,
    slow_sweeps,
    trajectory_12,
    transforms_1,
)
from dynident.papers.records import EXACT, Graph, Item, Paper, Part, Reproduction
from dynident.pipeline.identification import identify
from dynident.report.charts import Curve, Look
from dynident.report.space_view import robot_view
from dynident.robot import Robot, load_robot
from dynident.symbolic import lagrange_model, symbolic_base

_DIGITS = 5e-5  # four of them are printed
_NOT_PHYSICAL = "Table 4's inertias belong to no machine; these are of a simulated one with its mass moments"
_APART = "both ways have to give the same; printed they are 24 and 20 % apart"
_POSES = 200
_SWEPT = 0.1  # [kg·m] that 1 N·m of noise leaves of the sweeps
_INERTIA, _MOMENT = 0.2, 0.05  # [kg·m²], [kg·m] that 1 N·m of noise leaves of 20 s


def _planar() -> Robot:
    return load_robot("kr5-planar")


def _table_2() -> Reproduction:
    robot = load_robot("kr5")
    items = tuple(
        Item(name, 1e3 * robot.lengths[name], value, within=1e-6, unit="mm") for name, value in printed.TABLE_2.items()
    )
    return Reproduction(
        "The arm that comes with dynident has the paper's identified lengths.",
        "dynident inspect kr5",
        items,
        pictures=(robot_view(robot, [], "figure-2"),),
    )


def _equation_1() -> Reproduction:
    robot = load_robot("kr5")
    low, high = np.array([(joint.limits.lower, joint.limits.upper) for joint in robot.moving_joints], dtype=float).T
    angles = np.random.default_rng(0).uniform(low, high, (_POSES, len(low)))
    found, step = forward_kinematics(robot, angles), 1e-6
    places = [transforms_1((angles[:, None] + way * np.eye(6)).reshape(-1, 6))[:, :3, 3] for way in (step, -step)]
    slopes = ((places[0] - places[1]) / (2.0 * step)).reshape(_POSES, 6, 3).transpose(0, 2, 1)
    pose = float(np.abs(found.pose - transforms_1(angles)).max())
    velocity = float(np.abs(found.jacobian[:, :3] - slopes).max())
    items = (
        Item("pose of link 6, largest difference", pose, 0.0, within=EXACT, unit="m"),
        Item("Jacobian, largest difference", velocity, 0.0, within=1e-8, unit="m/rad"),
        Item("factors of the product", 6.0, 7.0, 6.0, reason="Table 2 has rows 1 to 6; the product begins with 0"),
    )
    return Reproduction(
        f"Pose of link 6 in the base frame at {_POSES} random poses within the limits: eq. (1) with the lengths and "
        "twists of Table 2, and its central differences.",
        "dynident inspect kr5 --pose q1=0.3,q2=0.5; di.forward_kinematics(robot, q)",
        items,
    )


def _table_3() -> Reproduction:
    robot = _planar()
    a1, a2 = robot.lengths["a1"], robot.lengths["a2"]
    why = "sqrt(0.39879) of Table 4, before rounding; the head of the column says mm"
    far = float(np.hypot(printed.TABLE_2["b4"], printed.TABLE_2["a3"])) / 1e3
    items = (
        Item("a1", a1, printed.TABLE_3["a1"], within=EXACT, unit="m"),
        Item("a2", a2, printed.TABLE_3["a2"], 0.6315, EXACT, "m", why),
        Item("a2 from Table 2", far, None, a2, 5e-4, "m", "the distance from joint 3 to joint 5, hypot(b4, a3)"),
    )
    picture = (robot_view(robot, [], "figure-6"),)
    return Reproduction("The planar arm of joints 2, 3 and 5.", "dynident inspect kr5-planar", items, pictures=picture)


def _identifiable() -> Reproduction:
    robot = _planar()
    model = lagrange_model(robot)
    names = [column.name for column in columns(robot, "rigid")]
    effective = {name for place, name in enumerate(names) if any(model.W[:, place])}
    wanted = {f"{symbol}{link}" for link in (1, 2, 3) for symbol in ("ZZ", "MX", "MY", "M")}
    base = symbolic_base(robot, "rigid")
    counts = {
        "standard": len(names),
        "without effect": len(names) - len(effective),
        "with effect": len(effective),
        "base": len(base.names),
    }
    items = [Item(name, float(counts[name]), float(count)) for name, count in printed.EFFECT.items()]
    items.append(Item("of the twelve, those of eq. (23)", float(len(effective & wanted)), 12.0))
    return Reproduction(
        "Torque by Euler and Lagrange in symbols, coefficients of the standard parameters taken out, columns that "
        "are zero dropped, dependent ones regrouped.",
        'di.symbolic.lagrange_model(di.load_robot("kr5-planar")); di.symbolic.symbolic_base(..)',
        tuple(items),
        notes=tuple(
            f"{name} = {own}" for name, own in zip(base.names, base.expressions, strict=True) if str(own) != name
        ),
    )


def _expressions() -> Reproduction:
    robot = _planar()
    base = base_parameters(robot, "rigid")
    names = [column.name for column in base.columns]
    items = tuple(
        Item(f"{own}: {mass}", float(base.K[base.names.index(own), names.index(mass)]), value, within=5e-6)
        for (own, mass), value in printed.COEFFICIENTS.items()
    )
    return Reproduction(
        "Coefficients of the masses in the base parameters of Table 4.",
        'di.base_parameters(di.load_robot("kr5-planar"), "rigid").expressions',
        items,
        notes=("All expressions are right, with the frame of each link at its far end.",),
    )


def _trajectory() -> Reproduction:
    robot = _planar()
    motion = trajectory_12()
    base, friction = base_parameters(robot, "rigid"), base_parameters(robot, f"{TERMS},Fo")
    quality = excitation(base, *motion)
    moving = [x[1:-1] for x in motion]  # at both ends the arm rests, and friction is whatever holds it
    poor = excitation(friction, *moving)
    conditions = fourier_conditions(robot)
    t = np.linspace(0.0, printed.DURATION, printed.SAMPLES)
    q, dq, ddq = (x[:, 0] for x in motion)
    peak = 2.0 * np.radians(printed.ANGLE) / printed.DURATION
    why = "not printed; by eq. (12)"
    reason = "not printed; moving one way, dry friction looks like an offset, three times"
    items = (
        Item("angle at the end", float(np.degrees(q[-1])), printed.ANGLE, within=1e-9, unit="deg"),
        Item("largest velocity", float(dq.max()), None, peak, 1e-4, "rad/s", why),
        Item("condition of trajectory (12)", float(quality.raw_condition), None, 310.0, 2.0, "", "not printed"),
        Item("its rank", float(quality.rank), float(printed.EFFECT["base"])),
        Item("its rank with friction, of 18", float(poor.rank), None, 15.0, reason=reason),
        Item("median of 20 Fourier motions", float(np.median(conditions)), None, 25.0, 7.0, "", "not printed"),
    )
    curves = (
        Curve("position [rad]", t, q),
        Curve("velocity [rad/s]", t, dq, "predicted"),
        Curve("acceleration [rad/s²]", t, ddq, "residual"),
    )
    tau = inverse_dynamics(robot, *motion, TERMS)
    looks: tuple[Look, ...] = ("measured", "predicted", "residual")
    torque = tuple(
        Curve(f"joint {number}", t, own, look) for number, own, look in zip((2, 3, 5), tau.T, looks, strict=True)
    )
    return Reproduction(
        "Trajectory (12): 60 degrees in 5 s, 500 samples, all joints alike.",
        'di.excitation(di.base_parameters(robot, "rigid"), q, dq, ddq); dynident excite kr5-planar -o OUT',
        items,
        graphs=(
            Graph("Figures 4 and 5: trajectory (12)", curves, "s", "rad, rad/s, rad/s²"),
            Graph("Figure 4: torque along it", torque, "s", "N·m"),
        ),
    )


def _table_4() -> Reproduction:
    robot = _planar()
    base, motion = base_parameters(robot, "rigid"), trajectory_12()
    found = accumulate(robot, *motion, inverse_dynamics(robot, *motion, "rigid"), "rigid").solve()
    table, items = robot.base_values["table4"], []
    for name, value in zip(base.names, found.values, strict=True):
        wrong = name.startswith("ZZ")
        right, why = (printed.SIMULATED[name], _NOT_PHYSICAL) if wrong else (None, "")
        unit = "kg·m²" if wrong else "kg·m"
        items.append(Item(name, float(value), table[name], right, _DIGITS, unit, why))
    link = table["ZZR1"] + 2.0 * robot.lengths["a1"] * table["MXR1"]
    worst = base_violations(base, table)[0].value
    why = "by the printed values; it must be positive, so no machine has them"
    items.append(Item("link 1 about joint 2, by the table", link, None, -132.2, 0.05, "kg·m²", why))
    items.append(Item("arm about joint 2, by the table", worst, None, -116.3, 0.05, "kg·m²", why))
    return Reproduction(
        "Least squares along trajectory (12), without noise, of a machine with the mass moments of Table 4.",
        'di.accumulate(robot, q, dq, ddq, tau, "rigid").solve(); di.identifiability.base_violations(base, values)',
        tuple(items),
    )


def _figure_7() -> Reproduction:
    robot = _planar()
    seed = int(np.argmin(fourier_conditions(robot)))
    fit = identify(robot, record_motion(robot, TIMES, fourier(robot, TIMES, seed)), terms=TERMS)
    found, items = dict(zip(fit.names, fit.beta, strict=True)), []
    for name, true in printed.SIMULATED.items():
        within, unit = (_INERTIA, "kg·m²") if name.startswith("ZZ") else (_MOMENT, "kg·m")
        items.append(Item(name, float(found[name]), None, true, within, unit, "what the simulated machine has"))
    other = fourier(robot, TIMES, seed + 1)
    measured = inverse_dynamics(robot, *other, TERMS) + NOISE * np.random.default_rng(1).normal(size=other[0].shape)
    predicted = fit.model.torque(*other)
    spread = 3.0 * NOISE / np.sqrt(2.0 * len(TIMES))  # three standard deviations of the rms of noise
    why = "all that may be left is the noise; the paper prints no number"
    graphs = []
    for place, number in enumerate((2, 3, 5)):
        left = measured[:, place] - predicted[:, place]
        rms = float(np.sqrt(np.mean(left**2)))
        items.append(Item(f"torque error of joint {number}, rms", rms, None, NOISE, spread, "N·m", why))
        curves = (Curve("measured", TIMES, measured[:, place]), Curve("model", TIMES, predicted[:, place], "predicted"))
        graphs.append(Graph(f"Figure 7: torque of joint {number}", curves, "s", "N·m"))
        graphs.append(
            Graph(f"Figure 7: torque error of joint {number}", (Curve("error", TIMES, left, "residual"),), "s", "N·m")
        )
    return Reproduction(
        "A better motion of 20 s at 12 ms with friction and 1 N·m of noise is identified from positions and torque; "
        "then the torque of another motion is predicted.",
        f'di.identify(robot, log, terms="{TERMS}"); dynident identify kr5-planar LOG --terms {TERMS} -o FIT',
        tuple(items),
        notes=(
            "Along trajectory (12) friction cannot be distinguished from offsets, so the prediction is evaluated on "
            "Fourier motions.",
        ),
        graphs=tuple(graphs),
    )


def _table_5() -> Reproduction:
    robot = _planar()
    found = slow_sweeps(robot)
    seed = int(np.argmin(fourier_conditions(robot)))
    fit = identify(robot, record_motion(robot, TIMES, fourier(robot, TIMES, seed)), terms=TERMS)
    squares = dict(zip(fit.names, fit.beta, strict=True))
    printed_pair = [{name: (pair[k], 0.0) for name, pair in printed.TABLE_5.items()} for k in (1, 0)]
    reasons = [link.reason for link in compare_moments(found.base, *printed_pair).links if link.reason]
    items = []
    for one in found.estimates:
        by_squares, by_gravity = printed.TABLE_5[one.name]
        turned = one.name in ("MXR2", "MY2")
        why = _APART if turned else "the moment that the simulated machine has, by least squares in the paper"
        more = (float(squares[one.name]), by_squares)
        items.append(Item(one.name, one.value, by_gravity, by_squares, _SWEPT, "kg·m", why, more))
    return Reproduction(
        "One joint after the other goes slowly there and back over 120 degrees, with friction and 1 N·m of noise; "
        "half the sum of both ways is free of friction, and its Fourier series gives the moments. Beside it least "
        "squares of a fast motion.",
        "dynident gravity kr5-planar; di.experiments.gravity_moments(plant)",
        tuple(items),
        columns=("least squares here", "least squares printed"),
        notes=tuple(f"Table 5 as printed: {reason}." for reason in reasons),
        graphs=tuple(_sweep_graph(robot, run) for run in found.runs),
    )


def _sweep_graph(robot: Robot, one: FourierFit) -> Graph:
    run = one.run
    line = np.linspace(*run.range, 200)
    mean = Curve("mean of both ways", np.degrees(run.angles), run.half_sum(run.tau), "dots")
    series = Curve("Fourier series, eq. (22)", np.degrees(line), one.torque(line), "predicted")
    return Graph(f"Torque of {robot.joint_names[run.joint]} against its angle", (mean, series), "deg", "N·m")


PAPER = Paper(
    "abhishek",
    "V. Abhishek, A. A. Hayat, A. D. Udai, S. K. Saha",
    "Identification of Dynamic Parameters of an Industrial Manipulator",
    "",
    (
        Part("table-1", "Table 1, Figures 1 and 3: notation", why="definitions of Denavit and Hartenberg, no numbers"),
        Part("table-2", "Table 2, Figure 2: lengths of the KR5", _table_2),
        Part("equation-1", "Equation (1): forward kinematics", _equation_1),
        Part("table-3", "Table 3, Figure 6: planar arm", _table_3),
        Part("section-3-2", "Section 3.2: parameters with effect", _identifiable),
        Part("table-4-expressions", "Table 4: expressions", _expressions),
        Part("figures-4-5", "Figures 4 and 5: trajectory (12)", _trajectory),
        Part("table-4", "Table 4: values", _table_4),
        Part("figure-7", "Figure 7: predicted torque", _figure_7),
        Part("table-5", "Table 5: mass moments by two ways", _table_5),
    ),
)
