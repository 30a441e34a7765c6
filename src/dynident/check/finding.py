"""`Finding` and `Checkup`: what a look at logs brought to light, item by item; a fit keeps them too."""

from __future__ import annotations

from dynident.estimate.diagnosis import CheckError, Checkup, Finding, Verdict

__all__ = ["CheckError", "Checkup", "Finding", "Verdict", "percent"]


def percent(share: float) -> str:
    """A share in percent, as messages show it: 0.0534 is 5.3 %."""
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.0f} %"
