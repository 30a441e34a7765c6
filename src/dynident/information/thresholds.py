"""Calibrated numbers of what equations determine: rank, condition, equations per parameter."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class InformationThresholds:
    """Where equations determine a parameter, and how many of them are enough.

    The structure of a robot is decided at 1e-8 (`identifiability.base`), relations between exact experiments at 1e-9;
    logs are noisy, and decided at `noisy_rank`.
    """

    rounding_rank: float = threshold(
        1e-13, "share of the largest singular value below which one is rounding, times the number of parameters"
    )
    noisy_rank: float = threshold(
        1e-7, "the same for logs: weaker directions are noise, whatever they say", calibrated="logs of real arms"
    )
    undetermined_part: float = threshold(
        1e-8, "part in an undetermined direction from which a parameter is not determined"
    )
    max_condition: float = threshold(
        300.0, "condition of the scaled equations", calibrated="a polynomial motion has it, a good one a tenth of it"
    )
    min_equations: int = threshold(5, "equations per parameter; with fewer, a fit follows the noise")
    min_equations_away: float = threshold(
        10.0, "the same away from reversals; with fewer, rows nearer to one are used too"
    )
    min_equations_to_stop: float = threshold(20.0, "the same, from which the model's diagnostics may refuse a log")
    recommended_equations: int = threshold(50, "the same, as a rule", calibrated="Gautier et al. 1995")


THRESHOLDS = InformationThresholds()
