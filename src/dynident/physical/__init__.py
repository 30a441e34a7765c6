"""Physically consistent parameters: the convex fit, bounds, and the distance of a fit to them."""

from dynident.physical.bounds import Bound, CenterBox, CenterEllipsoid, MassBound, TotalMassBound
from dynident.physical.distance import NearestPhysical, PhysicalCheck, distance_to_physical, nearest_physical
from dynident.physical.fitting import physical_fit
from dynident.physical.problem import ConflictError
from dynident.physical.result import Contradiction, LinkBody, PhysicalParameters

__all__ = [
    "Bound",
    "CenterBox",
    "CenterEllipsoid",
    "ConflictError",
    "Contradiction",
    "LinkBody",
    "MassBound",
    "NearestPhysical",
    "PhysicalCheck",
    "PhysicalParameters",
    "TotalMassBound",
    "distance_to_physical",
    "nearest_physical",
    "physical_fit",
]
