"""Kim 1990, part by part."""

from __future__ import annotations

import numpy as np

from dynident.experiments.step import FeedforwardRun
from dynident.identifiability import base_parameters
from dynident.motion import PointToPoint
from dynident.papers.kim import printed
from dynident.papers.kim.experiments import appendix_differences, combinations, feedforward_runs, one_joint, whole_test
from dynident.papers.records import Graph, Item, Paper, Part, Reproduction, equation_item
from dynident.report.charts import Curve, Look
from dynident.report.space_view import robot_view
from dynident.robot import load_robot

_INERTIA, _DAMPING, _COULOMB, _COMBINATION = 1e-4, 1e-2, 2e-3, 2e-4  # relative errors that 16 bits leave
_TRACKED = 0.05  # [deg]
_STEP = "dynident step minnesota --volts joint1=0.8:0.5,joint2=0.8:0.4,joint3=0.4:0.2"
_COUPLER = "a parallelogram's coupler turns with link 2; the paper counts its inertia to link 3"
_MACHINE = "unmodeled effects of its machine; no simulation of its equations has them"


def _appendix() -> Reproduction:
    items = []
    for name, (right, wrong) in appendix_differences().items():
        items.append(equation_item(name, right, wrong, _COUPLER, unit="kg·m²"))
    return Reproduction(
        "Entries of the mass matrix at 200 random poses, with random masses, centers and inertias: largest "
        "difference from the recursion through the closed loop, as printed and as corrected.",
        'di.mass_matrix(di.load_robot("minnesota"), q, values)',
        tuple(items),
        notes=("I22 in (A-5) is Iz2.", "Equations (15) and (17) in section 4 means (15) and (16)."),
        pictures=(robot_view(load_robot("minnesota"), [], "figure-2"),),
    )


def _identifiable() -> Reproduction:
    robot = load_robot("minnesota")
    base = base_parameters(robot, "rigid")
    why = "neither the diagonal of M nor the complete dynamics determines more than six combinations"
    items = (Item("inertial values of Table 1", float(base.n), len(printed.TABLE_1), 6.0, reason=why),)
    return Reproduction(
        "Rank of the regressor with the design's symmetries as known parameters.",
        "dynident inspect minnesota",
        items,
        notes=tuple(f"{name} = {text}" for name, text in zip(base.names, base.expressions, strict=True)),
    )


def _joint_items(j: int, numbers: dict[str, float]) -> list[Item]:
    inertia = printed.total(printed.INERTIA_AT_ZERO[j])
    values = (
        ("Me", inertia, _INERTIA, "kg·m²"),
        ("B", printed.DAMPING[j], _DAMPING, "N·m·s/rad"),
        ("Tc", printed.COULOMB[j], _COULOMB, "N·m"),
    )
    keys = {"Me": "inertia", "B": "damping", "Tc": "coulomb"}
    return [
        Item(f"{name} of joint {j + 1}", numbers[keys[name]], value, within=share * value, unit=unit)
        for name, value, share, unit in values
    ]


def _figure_4() -> Reproduction:
    items, graphs = [], []
    for j in range(3):
        (config,) = one_joint(j).configurations
        assert config.numbers is not None
        items += _joint_items(j, {name: config.numbers[name] for name in ("inertia", "damping", "coulomb")})
        curves = []
        for record, fit in zip(config.records, config.responses, strict=True):
            curves.append(
                Curve(
                    f"measured, {record.voltage:g} V",
                    record.time - record.step,
                    np.degrees(record.position - fit.start),
                    "dots",
                )
            )
            curves.append(
                Curve(
                    f"eq. (18), {record.voltage:g} V",
                    record.time - record.step,
                    np.degrees(fit.at(record.time) - fit.start),
                    "predicted",
                )
            )
        graphs.append(Graph(f"Figure 4: position of joint {j + 1} after a step of voltage", tuple(curves), "s", "deg"))
    return Reproduction(
        "Two voltages a joint, the others braked at zero, 1.2 s at 2.4 ms, 16-bit positions: A and U of eq. (18), "
        "then Me, B and Tc by (15) and (16). Printed is what (A-2), (A-5) and (A-6) make of Table 1 at this pose.",
        _STEP,
        tuple(items),
        notes=("Torque constants, voltages and lengths are ours; the paper has none.",),
        graphs=tuple(graphs),
    )


def _series() -> Reproduction:
    items = []
    for terms, (inertia, damping), within in ((2, (4.5, -28.0), (0.3, 0.3)), (5, (-0.13, 0.55), (0.05, 0.05))):
        (config,) = one_joint(2, terms=terms).configurations
        assert config.numbers is not None
        errors = (
            100.0 * (config.numbers["inertia"] / printed.total(printed.INERTIA_AT_ZERO[2]) - 1.0),
            100.0 * (config.numbers["damping"] / printed.DAMPING[2] - 1.0),
        )
        why = "a cut series is biased; the exact solution is fitted by default"
        for name, here, expected, close in zip(("Me", "B"), errors, (inertia, damping), within, strict=True):
            items.append(Item(f"{name} with {terms} terms", here, None, expected, close, "%", why))
    short = one_joint(1, duration=0.3)
    numbers = short.configurations[0].numbers
    assert numbers is not None
    off = 100.0 * (numbers["damping"] / printed.DAMPING[1] - 1.0)
    spread = 100.0 * float(numbers.relative_std[1])
    why = "within three of its stated standard deviations, and the command warns"
    items.append(Item("B of joint 2 from 0.3 s", off, None, 0.0, 3.0 * spread, "%", why))
    said = "warned" if any("too short" in one for one in short.warnings) else "silent"
    items.append(Item("a record of 0.3 s", said, None, "warned", reason="damping shows only when the joint is fast"))
    return Reproduction(
        "Errors of joint 3 with the paper's Taylor series, eq. (19), in place of the exact solution; and of a short "
        "record.",
        f"{_STEP} --taylor 2",
        tuple(items),
    )


def _table_1() -> Reproduction:
    found = whole_test()
    here, items = combinations(found), []
    for name, parts in printed.COMBINATIONS.items():
        value = printed.total(parts)
        items.append(
            Item(name, here[name], value, within=_COMBINATION * value, unit="kg·m²", more=(printed.total(parts, 1),))
        )
    for one in found.friction:
        j = one.motor
        items += [
            Item(
                f"B of joint {j + 1}",
                one.damping[0],
                printed.DAMPING[j],
                None,
                _DAMPING * printed.DAMPING[j],
                "N·m·s/rad",
                "",
                ("",),
            ),
            Item(
                f"Tc of joint {j + 1}",
                one.coulomb[0],
                printed.COULOMB[j],
                None,
                _COULOMB * printed.COULOMB[j],
                "N·m",
                "",
                ("",),
            ),
        ]
    return Reproduction(
        f"Steps of all joints in {len(found.configurations)} locked configurations, chosen for the combinations that "
        "can be determined.",
        _STEP,
        tuple(items),
        columns=("computed",),
        notes=(
            "Table 1's eight values as their six combinations; the computed ones are those of the paper's drawings.",
            *found.notes,
        ),
    )


_OTHERS = {  # [deg] largest errors under the other models, joints alone and together; not printed
    "computed": ((6.0, 6.1, 1.7), (8.9, 4.9, 19.2)),
    "identified, without friction": ((2.6, 1.2, 4.2), None),
}


def _tracking(together: bool) -> Reproduction:
    key = "all joints" if together else "one joint"
    runs = [run for run in feedforward_runs(whole_test()) if (len(run.joints) > 1) == together]
    worst = {(run.model, j): float(np.degrees(x)) for run in runs for j, x in zip(run.joints, run.worst, strict=True)}
    items = []
    for j in range(3):
        error = worst["identified", j]
        items.append(
            Item(f"joint {j + 1}, identified", error, printed.TRACKING[key][j], 0.0, _TRACKED, "deg", _MACHINE)
        )
    why = "not printed; so much do worse models miss on the same machine"
    for model, errors in _OTHERS.items():
        for j, expected in enumerate(errors[int(together)] or ()):
            items.append(Item(f"joint {j + 1}, {model}", worst[model, j], None, expected, 0.1, "deg", why))
    if not together:
        items += _motion_items()
    return Reproduction(
        f"30 degrees in 0.3 s along a cubic at 250 Hz, {key if together else 'one joint at a time'}, by feedforward "
        "of inertia, damping and Coulomb friction alone.",
        f"{_STEP} --track --computed computed",
        tuple(items),
        graphs=_tracking_graphs(runs, "6" if together else "5"),
    )


def _motion_items() -> list[Item]:
    way, time = np.radians(printed.MOTION["way"]), printed.MOTION["time"]
    motion = PointToPoint(points=np.array([[0.0], [way]]), durations=np.array([time]), law="cubic")
    _, dq, ddq = motion.sample(np.linspace(0.0, time, 1001))
    return [
        Item("largest velocity", float(np.degrees(dq.max())), printed.MOTION["velocity"], within=1e-3, unit="deg/s"),
        Item(
            "largest acceleration",
            float(np.degrees(ddq.max())),
            printed.MOTION["acceleration"],
            within=1e-3,
            unit="deg/s²",
        ),
    ]


def _tracking_graphs(runs: list[FeedforwardRun], number: str) -> tuple[Graph, ...]:
    looks: dict[str, Look] = {
        "identified": "predicted",
        "computed": "measured",
        "identified, without friction": "residual",
    }
    graphs = []
    for j in range(3):
        own = [run for run in runs if j in run.joints]
        for quantity, unit in (("position", "deg"), ("velocity", "deg/s")):
            curves = tuple(
                Curve(
                    run.model,
                    run.time,
                    np.degrees((run.error if quantity == "position" else run.velocity_error)[:, j]),
                    looks[run.model],
                )
                for run in own
            )
            graphs.append(Graph(f"Figure {number}: {quantity} error of joint {j + 1}", curves, "s", unit))
    return tuple(graphs)


def _figure_5() -> Reproduction:
    return _tracking(together=False)


def _figure_6() -> Reproduction:
    return _tracking(together=True)


PAPER = Paper(
    "kim",
    "S. Kim",
    "A Practical Identification Method for Robot System Dynamic Parameters",
    "1990",
    (
        Part(
            "figures-1-3",
            "Figures 1 to 3: motor and load, robot, control hardware",
            why="drawings without numbers; the arm is drawn with the appendix",
        ),
        Part("figure-4", "Figure 4: answer to a step of voltage", _figure_4),
        Part("equation-19", "Equation (19): the cut series", _series),
        Part("identifiable", "Table 1: eight values or six", _identifiable),
        Part("table-1", "Table 1: inertia and friction", _table_1),
        Part("figure-5", "Figure 5: tracking, one joint at a time", _figure_5),
        Part("figure-6", "Figure 6: tracking, all joints", _figure_6),
        Part("appendix", "Equations (A-1) to (A-6)", _appendix),
    ),
)
