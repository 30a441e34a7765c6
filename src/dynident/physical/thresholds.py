"""Calibrated numbers of physical consistency: the prior body of a link, and what may be given away for it."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class PhysicalThresholds:
    """How large links are, and when data contradicts physics."""

    link_density: float = threshold(
        1500.0,
        "density of a link's whole volume",
        unit="kg/m³",
        calibrated="arms of 17 to 240 kg come out within a factor of three",
    )
    link_slenderness: float = threshold(0.05, "radius of a link over the length of the stretched arm")
    rotor_share: float = threshold(
        0.3, "rotor inertia at the joint over the inertia it drives", calibrated="gears are chosen to come near to one"
    )
    min_body_share: float = threshold(
        1e-6, "smallest share of a plausible body that a nominal one must have in every direction"
    )
    floor: float = threshold(1e-4, "share of its prior body that each link keeps")
    prior_shift_std: float = threshold(
        1.0,
        "standard deviations of all parameters together that the prior may move",
        calibrated="noise moves a fit by the root of its rank",
    )
    kept_mass_weight: float = threshold(
        300.0,
        "what a described mass that the data leaves open pays, in log-det distance, for changing by all of itself",
    )
    kept_inertia_share: float = threshold(
        0.5,
        "share of its described inertia about the center of mass that a link keeps before a mass that the data leaves "
        "open moves: relative lack of inertia and relative change of mass then weigh the same",
    )
    undetermined_mass_share: float = threshold(
        0.3, "standard deviation of a mass over its described value from which the data leaves it open"
    )
    moved_mass_share: float = threshold(1e-3, "share of a described mass by which it may differ and still be kept")
    false_alarm_rate: float = threshold(1e-3, "share of fits in which noise alone is farther from physical")
    min_contradiction_share: float = threshold(
        0.05, "share of the squared distance below which a condition is not named"
    )
    prior_shift_relative: float = threshold(1e-3, "relative distance that the choice among nearest robots may cost")
    prior_shift_of_covariance_std: float = threshold(0.1, "the same in standard deviations, where these are known")


THRESHOLDS = PhysicalThresholds()
