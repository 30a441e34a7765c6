"""Numbers that decide on histories and arms of a fleet."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.options import threshold


@dataclass(frozen=True)
class FleetThresholds:
    """How much history a statement takes, and how chance is worked out."""

    min_days: int = threshold(
        10, "days with logs before a history is looked through for a change", unit="d", calibrated="see docs"
    )
    edge_days: int = threshold(3, "days on each side of a change", unit="d", calibrated="fewer are single days")
    likely_noise: float = threshold(
        0.5,
        "logarithm of the likelihood by which a noise may be less likely than the likeliest one and still count",
        calibrated="rates of false alarms of autoregressive days, benchmarks/fleet_drift.py --rates",
    )
    n_simulations: int = threshold(1000, "simulated histories behind a level; its tail beyond them is exponential")
    tail_share: float = threshold(0.1, "share of the simulations that the tail is fitted to: 100 of 1000")
    min_arms: int = threshold(4, "arms of a type, fewer of which say nothing of what is usual among them")
    min_temperature_range: float = threshold(
        2.0, "range of a temperature below which its effect is no more than chance", unit="K"
    )


THRESHOLDS = FleetThresholds()
