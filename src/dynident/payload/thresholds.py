"""Calibrated numbers of payload identification: which quantities the motion supports, and whether values agree."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class PayloadThresholds:
    """What a payload's quantities need to be reported."""

    mass_share: float = threshold(0.2, "standard deviation of the mass that still supports it, over the mass")
    center_share: float = threshold(0.2, "the same for the center of mass, over the size of the body")
    inertia_share: float = threshold(0.3, "the same for the inertia, over its largest moment")
    min_mass_std: float = threshold(2.0, "standard deviations below which a mass cannot be distinguished from none")
    max_inconsistency_std: float = threshold(
        2.0, "standard deviations by which inertia must be inconsistent before it is withheld"
    )
    body_density: float = threshold(
        1000.0,
        "density for the size of a body whose center lies near the tool's origin",
        unit="kg/m³",
        calibrated="water",
    )
    min_session_gain: float = threshold(
        0.01, "share of the squared held-out error that friction of the session's own must take away"
    )
    settled_std: float = threshold(0.01, "standard deviations that a relinearization may still move the payload by")
    max_gain_std: float = threshold(0.5, "relative standard deviation of a drive gain from which it is not determined")
    agrees_std: float = threshold(2.0, "standard deviations up to which values agree")
    differs_std: float = threshold(3.0, "standard deviations above which values differ")
    instrument_lag: float = threshold(1.0, "periods of the band over which filtered noise is correlated")


THRESHOLDS = PayloadThresholds()
