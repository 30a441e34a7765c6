"""Gravity moments from slow motion of one joint at a time (Abhishek et al., section 2.4)."""

from dynident.experiments.gravity.comparison import MomentComparison, compare_moments
from dynident.experiments.gravity.fourier import FourierFit
from dynident.experiments.gravity.procedure import gravity_from_logs, gravity_moments
from dynident.experiments.gravity.result import GravityMoments

__all__ = [
    "FourierFit",
    "GravityMoments",
    "MomentComparison",
    "compare_moments",
    "gravity_from_logs",
    "gravity_moments",
]
