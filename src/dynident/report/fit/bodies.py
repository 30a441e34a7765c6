"""The links as bodies: the robot in space with them, and whether the identified inertias are physically consistent."""

from __future__ import annotations

import numpy as np

from dynident.errors import DynidentError
from dynident.estimate.fit import Fit
from dynident.physical.fitting import physical_fit
from dynident.physical.result import PhysicalParameters
from dynident.report.html import Head, Part, Section, Table, Text
from dynident.report.space_view import bodies, half_axes, pose, robot_view
from dynident.report.text import number, sentence
from dynident.robot.parameters import LINK_SYMBOLS


def find_bodies(estimate: Fit) -> PhysicalParameters | str:
    """Physically consistent parameters nearest to a fit, or why there are none."""
    if not any(column.term == "rigid" for column in estimate.base.columns):
        return "the terms of this fit have no links"
    try:
        return physical_fit(estimate)
    except DynidentError as error:
        return str(error)


def robot_section(estimate: Fit, found: PhysicalParameters | str) -> Section:
    """The robot in space."""
    robot, shown, text = estimate.robot, [], "The robot as described, in a bent pose."
    if not isinstance(found, str):
        text += (
            " An ellipsoid of even density stands for each link: it has the mass, center and inertia of the physically "
            "consistent parameters nearest to the estimate. Dashed ones depend on a prior in part: joint torque does "
            "not identify them."
        )
        shown = bodies(robot, found.link_parameters, _determined_by_data(found), pose(robot))
    return Section("robot", "The robot", [Text(text), robot_view(robot, shown, "robot")], "Robot")


def _determined_by_data(found: PhysicalParameters) -> list[bool]:
    """Whether the data alone determines the ten parameters of each link, without the prior."""
    open_names = set(found.from_prior)
    return [not any(f"{s}{joint.number}" in open_names for s in LINK_SYMBOLS) for joint in found.base.robot.joints]


def physicality_section(found: PhysicalParameters | str) -> Section:
    """Whether the inertias are physically consistent, link by link."""
    title, link = "Physically consistent inertias", "Consistency"
    if isinstance(found, str):
        return Section("physicality", title, [Text(f"No physically consistent parameters: {found}.")], link)
    head = (
        "The identified parameters are physically consistent within their uncertainty: "
        if found.distance <= found.usual
        else "The identified parameters are farther from physical consistency than noise explains: "
    )
    head += (
        f"the nearest physically consistent parameters are {number(found.distance, 2)} standard deviations away, all "
        f"parameters together; noise alone would rarely exceed {number(found.usual, 2)}."
    )
    heads = [
        *(Head("Link"), Head("Mass [kg]", True), Head("Center of mass in the link frame [m]")),
        *(Head("Principal moments [kg·m²]"), Head("Ellipsoid, half axes [m]"), Head("Determined by")),
    ]
    rows = []
    for link_body, by_data, chi in zip(found.links, _determined_by_data(found), found.link_parameters, strict=True):
        shape = half_axes(chi)
        axes = "" if shape is None else " · ".join(number(x, 2) for x in np.sort(np.linalg.norm(shape[1], axis=0)))
        by = "physics" if link_body.at_limit else ("data" if by_data else "data and prior")
        center, moments = ", ".join(f"{x:.4f}" for x in link_body.center), (number(x, 3) for x in link_body.principal)
        by = by if chi.any() else "the robot file"
        by += f"; mass: {link_body.mass_from}" if link_body.mass_from else ""
        rows.append([link_body.label, number(link_body.mass, 4), center, ", ".join(moments), axes, by])
        cad = link_body.described
        if cad is not None:
            center, moments = ", ".join(f"{x:.4f}" for x in cad.center), (number(x, 3) for x in cad.principal)
            rows.append(["  CAD", number(cad.mass, 4), center, ", ".join(moments), "", ""])
    parts: list[Part] = [
        Text(head),
        Table("Mass, center of mass and inertia of the links, CAD beside identified", heads, rows),
        Text(sentence(found.mass_sentence)),
    ]
    if found.contradictions:
        parts.append(Text("Violated conditions", "heading"))
        parts += [Text(sentence(str(one)), "item") for one in found.contradictions]
    return Section("physicality", title, [*parts, Text(sentence(found.prior_sentence), "soft")], link)
