"""The bodies of the links: the robot in space with them, and whether the identified numbers belong to bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.errors import DynidentError
from dynident.estimate.fit import Fit
from dynident.physical.fitting import physical_fit
from dynident.physical.result import PhysicalParameters
from dynident.report.html import Head, Html, bullets, element, paragraphs, section, table
from dynident.report.space_view import bodies, half_axes, pose, robot_view
from dynident.report.text import number, sentence
from dynident.robot.parameters import LINK_SYMBOLS


@dataclass(frozen=True)
class Bodies:
    """What physics says about an estimate.

    Attributes:
        found: Physical parameters nearest to the estimate; None where there are none.
        problem: Why there are none; empty where there are.
    """

    found: PhysicalParameters | None
    problem: str = ""

    @staticmethod
    def of(estimate: Fit) -> Bodies:
        """Solve for bodies; an estimate without links, or one that no solver can use, has none."""
        if not any(column.term == "rigid" for column in estimate.base.columns):
            return Bodies(None, "the terms of this estimate have no links")
        try:
            return Bodies(physical_fit(estimate))
        except DynidentError as error:
            return Bodies(None, str(error))


def robot_section(estimate: Fit, own: Bodies) -> Html:
    """The robot in space."""
    text = "The robot as described, in a bent pose."
    if own.found is not None:
        text += (
            " An ellipsoid of even density stands for each link: it has the mass, centre and inertia of the physical "
            "parameters nearest to the estimate. Dashed ones are settled by a prior in part: no torque tells them."
        )
    robot, found = estimate.robot, own.found
    shown = [] if found is None else bodies(robot, found.link_parameters, _settled(found), pose(robot))
    return section("robot", "The robot", paragraphs(text), robot_view(robot, shown, "robot"))


def _settled(found: PhysicalParameters) -> list[bool]:
    """Whether the data alone settles the ten numbers of each link that matter to its ellipsoid."""
    open_names = set(found.from_prior)
    return [not any(f"{s}{joint.number}" in open_names for s in LINK_SYMBOLS) for joint in found.base.robot.joints]


def physicality_section(estimate: Fit, own: Bodies) -> Html:
    """Whether the numbers belong to bodies, link by link."""
    if own.found is None:
        return section("physicality", "Physicality", paragraphs(f"No bodies could be found: {own.problem}."))
    found = own.found
    fine = found.distance <= found.usual
    head = (
        "The identified numbers belong to bodies that can exist, within their uncertainty: "
        if fine
        else "The identified numbers lie farther from anything that can exist than noise explains: "
    )
    head += (
        f"the nearest physical parameters are {number(found.distance, 2)} standard deviations away, of all numbers "
        f"together; noise alone would rarely exceed {number(found.usual, 2)}."
    )
    heads = [
        *(
            Head("Link"),
            Head("Mass [kg]", True),
            Head("Centre in the link frame [m]"),
            Head("Principal moments [kg·m²]"),
        ),
        *(Head("Ellipsoid, half axes [m]"), Head("Settled by")),
    ]
    settled = _settled(found)
    rows = []
    for link, known, chi in zip(found.links, settled, found.link_parameters, strict=True):
        shape = half_axes(chi)
        axes = "" if shape is None else " · ".join(number(x, 2) for x in np.sort(np.linalg.norm(shape[1], axis=0)))
        by = "physics" if link.at_limit else ("data" if known else "data and prior")
        by = by if chi.any() else "the robot file"
        rows.append(
            [
                *(link.label, number(link.mass, 4), ", ".join(f"{x:.4f}" for x in link.center)),
                *(", ".join(number(x, 3) for x in link.principal), axes, by),
            ]
        )
    parts: list[object] = [paragraphs(head), table("Bodies of the links", heads, rows)]
    if found.contradictions:
        parts.append(element("h3", "What speaks against it"))
        parts.append(bullets(f"{sentence(str(one))}" for one in found.contradictions))
    parts.append(paragraphs(sentence(found.prior_sentence), class_="soft"))
    return section("physicality", "Physicality", *parts)
