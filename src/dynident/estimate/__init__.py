"""Estimation on observations and their factors."""

from dynident.estimate.delay import DelayEstimate, estimate_delay
from dynident.estimate.gather import gather

__all__ = ["DelayEstimate", "estimate_delay", "gather"]
