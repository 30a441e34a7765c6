"""`PhysicalParameters`: ten numbers per link that belong to bodies, and what it cost to make them so."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.arrays import Array, record
from dynident.display import brief
from dynident.errors import UnknownNameError
from dynident.estimate.prediction import TorqueModel
from dynident.identifiability.base import BaseParameters
from dynident.information.parameter_estimate import ParameterEstimate
from dynident.physical.thresholds import THRESHOLDS
from dynident.robot.parameters import LINK_SYMBOLS, to_classical

_NUMBERS = ("mass", "center", "principal")
_ROUNDED = 1e-3  # share of an inertia that the solver may lack
_LABEL_COLUMNS = 11  # columns that the numbers of a link leave of 80


@brief
@dataclass(frozen=True)
class LinkBody:
    """The body of one link.

    Attributes:
        label: Such as "link 3 (elbow)".
        mass: [kg].
        center: Center of mass in the link frame [m].
        principal: Principal moments of inertia about it, smallest first [kg·m²].
        margin: Smallest eigenvalue of its pseudo-inertia, as a share of that of its prior body: how far
            it is from no body at all.
        at_limit: Whether it stands on the least margin allowed, so that physics, not data, settled it.
        described: The same link by the values that were the prior (CAD); None where these describe none.
        mass_from: What settled its mass: "data", "the robot file" (known), "CAD" (kept), "physical consistency" (where
            no consistent body near the data has that of CAD and enough of its inertia) or "a plausible body"; empty
            without data.
        determined: Which of its standard parameters the data determines.
    """

    label: str
    mass: float
    center: tuple[float, float, float]
    principal: tuple[float, float, float]
    margin: float
    at_limit: bool
    described: LinkBody | None = None
    mass_from: str = ""
    determined: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        described = None if self.described is None else {key: getattr(self.described, key) for key in _NUMBERS}
        return {**vars(self), "described": described}

    @property
    def sentence(self) -> str:
        """What settled its numbers; empty where nothing was to be settled."""
        if not self.mass_from:
            return ""
        every = len(self.determined) == len(LINK_SYMBOLS)
        words = "all numbers" if every else ", ".join(self.determined) or "no parameter by itself"
        return f"mass from {self.mass_from}; the data determines {words}"


@dataclass(frozen=True)
class Contradiction:
    """A condition of physics that the data speaks against.

    Attributes:
        condition: The link, rotor, friction or bound.
        share: Of the squared distance between data and physics that it causes, among all that cause some.
        distance: Between data and physics, in standard deviations.
        without: What that distance would be if this condition did not have to hold.
    """

    condition: str
    share: float
    distance: float
    without: float

    def __str__(self) -> str:
        """A sentence."""
        share, distance = f"{100.0 * self.share:.0f} %", f"{self.distance:.1f} standard deviations"
        return (
            f"{self.condition} causes {share} of the {distance} between the data and anything physical; without this "
            f"condition they would be {self.without:.1f}"
        )


@record
class PhysicalParameters:
    """Standard parameters that belong to physical bodies, as near to a fit as they can be.

    Uncertainty is stated by the covariance of the base parameters in the unconstrained fit: physics shifts values by
    less than that, or contradicts the data, and bodies beyond the base parameters are a choice, not a measurement.

    Attributes:
        base: What the base parameters are; the robot and its terms.
        estimate: Base parameters of the unconstrained fit, with their covariance and linearization point.
        chi: (n_columns,) standard parameters.
        chi_std: (n_columns,) standard deviations where the data determines a standard parameter; infinite where the
            prior settled it.
        distance: How far the physical base parameters are from the fit, in standard deviations of all together.
        usual: Distance that noise alone exceeds once in a thousand fits.
        strains: Share of the squared distance that each condition causes, by name.
        contradictions: Conditions that the data speaks against, worst first; empty where noise explains the distance.
        prior: What settled the directions that the data leaves open.
        give: How far the prior has moved the base parameters from the nearest physical ones, in std of all together.
        links: The bodies.
        channels: Output channels; empty where only an estimate was given.
        errors: (n_channels,) relative torque error on the training rows.
        errors_unconstrained: (n_channels,) that of the fit.
        seconds: What solving took [s].
        notes: What else a reader should know.
    """

    base: BaseParameters
    estimate: ParameterEstimate
    chi: Array
    chi_std: Array
    distance: float
    usual: float
    strains: Mapping[str, float]
    contradictions: tuple[Contradiction, ...]
    prior: str
    give: float
    links: tuple[LinkBody, ...]
    channels: tuple[str, ...]
    errors: Array
    errors_unconstrained: Array
    seconds: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """A line, not the numbers."""
        robot = self.base.robot
        distance = f"{self.distance:.2g} standard deviations from the fit"
        return f"PhysicalParameters({robot.name}: {robot.n_links} links, {distance})"

    def __getitem__(self, name: str) -> float:
        """Value of a standard parameter by name."""
        if name not in self.values:
            raise UnknownNameError("standard parameter", name, self.values)
        return self.values[name]

    @functools.cached_property
    def values(self) -> Mapping[str, float]:
        """Every standard parameter by name, those of friction laws included."""
        return {column.name: float(x) for column, x in zip(self.base.columns, self.chi, strict=True)}

    @property
    def robot_values(self) -> dict[str, float]:
        """Those that a robot description can hold: links, rotors, viscous and Coulomb friction, offsets."""
        known = set(self.base.robot.parameter_names)
        return {name: value for name, value in self.values.items() if name in known}

    @property
    def link_parameters(self) -> Array:
        """(n_links, 10)."""
        columns = [i for i, column in enumerate(self.base.columns) if column.term == "rigid"]
        return np.asarray(self.chi[columns]).reshape(-1, 10)

    @property
    def beta(self) -> Array:
        """(n,) base parameters, K chi."""
        return np.asarray(self.base.K @ self.chi)

    @property
    def total_mass(self) -> float:
        """Of the moving links [kg]."""
        return float(sum(link.mass for link in self.links))

    @property
    def described_total_mass(self) -> float | None:
        """The same by the values that were the prior [kg]; None where these do not describe every link."""
        known = [link.described for link in self.links if link.mass]
        return None if None in known else float(sum(link.mass for link in known if link is not None))

    @property
    def mass_sentence(self) -> str:
        """The total mass, and what is known of it."""
        total, described = f"total mass of the moving links {self.total_mass:.4g} kg", self.described_total_mass
        total += "" if described is None else f" (CAD {described:.4g} kg)"
        kept = [link for link in self.links if link.mass_from == "CAD"]
        forced = [link for link in self.links if link.mass_from.startswith("physical consistency")]
        if kept:
            total += (
                f"; {sum(link.mass for link in kept):.4g} kg of it are masses that torque does not determine, "
                "kept from CAD"
            )
        if forced:
            names = ", ".join(link.label for link in forced)
            total += (
                f"; no physically consistent body near the data has the CAD mass of {names} and keeps "
                f"{100.0 * THRESHOLDS.kept_inertia_share:.0f} % of the CAD inertia about the center of mass"
            )
        return total

    @property
    def model(self) -> TorqueModel:
        """What predicts torque with these values."""
        return TorqueModel(self.base.robot, self.base.terms, self.chi, self.estimate.linearization)

    @property
    def deviations(self) -> Array:
        """(n,) how far each base parameter moved, in its own standard deviations; zero where it has none."""
        std = np.sqrt(np.maximum(np.diag(self.estimate.covariance), 0.0))
        moved = self.beta - self.estimate.values
        return np.where(std > 0.0, moved / np.where(std > 0.0, std, 1.0), 0.0)

    @property
    def from_prior(self) -> tuple[str, ...]:
        """Standard parameters that the prior settled, alone or in part."""
        known = zip(self.base.columns, np.isfinite(self.chi_std), strict=True)
        return tuple(column.name for column, determined in known if not determined and column.fixed is None)

    @property
    def prior_sentence(self) -> str:
        """What settled the numbers that the data leaves open."""
        return (
            f"{len(self.from_prior)} of {len(self.chi)} standard parameters are not determined by the data and were "
            f"set by the {self.prior}; this moved the base parameters by "
            f"{self.give:.1f} standard deviations of all together"
        )

    @property
    def thin_links(self) -> tuple[str, ...]:
        """Links with far less inertia about the center of mass than CAD has, in words."""
        pairs = [(link, link.described) for link in self.links if link.mass and link.described is not None]
        shares = {
            link.label: min(own / cad for own, cad in zip(link.principal, described.principal, strict=True))
            for link, described in pairs
        }
        least = (1.0 - _ROUNDED) * THRESHOLDS.kept_inertia_share
        return tuple(f"{label} ({100.0 * share:.2g} %)" for label, share in shares.items() if share < least)

    def sentences(self) -> list[str]:
        """What a reader should know."""
        moved = self.deviations
        worst = int(np.argmax(np.abs(moved)))
        found = [
            f"physical parameters are {self.distance:.1f} standard deviations from the fit (noise alone: up to "
            f"{self.usual:.1f}); {self.base.names[worst]} moved most, by {abs(moved[worst]):.2g} of its std"
        ]
        if self.channels:
            pairs = zip(self.channels, self.errors_unconstrained, self.errors, strict=True)
            words = ", ".join(f"{name} {100 * a:.2f} to {100 * b:.2f} %" for name, a, b in pairs)
            found.append(f"relative torque error on the training rows, fit to physical: {words}")
        thin = []
        if self.thin_links:
            thin = [
                "the data leaves these links far less inertia about the center of mass than CAD has (share of a "
                f"principal one): {', '.join(self.thin_links)}; check the description, and what the tool carries"
            ]
        return [
            self.mass_sentence,
            *thin,
            *found,
            self.prior_sentence,
            *(str(one) for one in self.contradictions),
            *self.notes,
        ]

    def table(self) -> str:
        """The bodies as text."""
        return link_table(self.links)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "distance": self.distance,
            "usual_distance": self.usual,
            "prior": self.prior,
            "prior_moved": self.give,
            "values": dict(self.values),
            "std": {n: float(s) if np.isfinite(s) else None for n, s in zip(self.values, self.chi_std, strict=True)},
            "links": [one.as_dict() for one in self.links],
            "total_mass": self.total_mass,
            "described_total_mass": self.described_total_mass,
            "strains": dict(self.strains),
            "contradictions": [vars(one) for one in self.contradictions],
            "channels": list(self.channels),
            "errors": self.errors.tolist(),
            "errors_unconstrained": self.errors_unconstrained.tolist(),
            "seconds": self.seconds,
        }


def link_table(links: Sequence[LinkBody]) -> str:
    """Bodies as text, within 80 columns: a long name stands on a line of its own."""
    if any(one.described or one.mass_from for one in links):
        return _described_table(links)
    wide = max((len(one.label) for one in links), default=0) + 1
    own_line = wide > _LABEL_COLUMNS
    wide = 2 if own_line else wide
    heads = f"{'mass [kg]':>9} {'center [m]':>23} {'principal inertias [kg·m²]':>26} {'margin':>7}"
    lines = [*(["link"] if own_line else []), f"{'' if own_line else 'link':<{wide}}{heads}"]
    for one in links:
        if own_line:
            lines.append(one.label)
        lines.append(f"{'' if own_line else one.label:<{wide}}{_numbers(one)}")
    return "\n".join([*lines, *_limit_remark(links)])


def _numbers(link: LinkBody) -> str:
    center = " ".join(f"{x:7.3f}" for x in link.center)
    principal = " ".join(f"{x:8.3g}" for x in link.principal)
    return f"{link.mass:>9.3f} {center} {principal} {link.margin:>7.2g}{'*' if link.at_limit else ''}"


def _limit_remark(links: Sequence[LinkBody]) -> list[str]:
    return ["* at the limit of physical consistency"] if any(one.at_limit for one in links) else []


def _described_table(links: Sequence[LinkBody]) -> str:
    """Bodies as text, CAD beside identified, each with what settled it."""
    names = ("  CAD", "  identified")
    lines = [f"{'':<12}{'mass [kg]':>9} {'center [m]':>23} {'principal inertias [kg·m²]':>26} {'margin':>7}"]
    for link in links:
        lines.append(link.label)
        if link.described is not None:
            lines.append(f"{names[0]:<12}{_numbers(link.described)}".removesuffix(f"{1.0:>7.2g}").rstrip())
        lines.append(f"{names[1]:<12}{_numbers(link)}")
        lines += textwrap.wrap(link.sentence, 78, initial_indent="  ", subsequent_indent="    ")
    return "\n".join([*lines, *_limit_remark(links)])


def link_body(label: str, chi: Array, margin: float, floor: float) -> LinkBody:
    """The record of one link's standard parameters (10,); of a joint without a body all is zero."""
    if not chi.any():
        return LinkBody(label, 0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, False)
    mass, center, inertia = to_classical(chi)
    principal = [float(x) for x in np.linalg.eigvalsh(inertia)]
    x, y, z = (float(c) for c in center)
    return LinkBody(
        label, float(mass), (x, y, z), (principal[0], principal[1], principal[2]), margin, margin < 3.0 * floor
    )
