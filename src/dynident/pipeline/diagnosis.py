"""Diagnosis: logs that are not fit for identification are refused; what is merely doubtful is a warning."""

from __future__ import annotations

from dynident.estimate.records import Diagnosis
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.preprocessing import TrainingData

_SAID_BY_THE_FIT = ("equations", "rank", "condition", "model")  # diagnostics that the fit itself says more about


def diagnose(data: TrainingData, options: IdentifyOptions) -> Diagnosis | None:
    """The diagnostics of the training logs; None where they are switched off.

    Raises:
        DiagnosisError: Where a diagnostic stops and the options say to stop.
    """
    if options.check == "off":
        return None
    from dynident.diagnostics.diagnosing import diagnose_observations  # takes a while to load, and is not always wanted

    found = diagnose_observations(data.train, data.progress)
    if found.severity == "stop" and options.check == "stop":
        raise found.error()
    return found


def diagnosis_warnings(found: Diagnosis | None, n_logs: int, *, braked: bool = False) -> list[str]:
    """What a reader of the fit should know of the diagnostics.

    Args:
        found: The diagnosis; None without one.
        n_logs: Training logs; of several, each warning names its own.
        braked: Whether joints stand still in some logs on purpose, as stages want it.
    """
    if found is None:
        return []
    return [
        f"{f'{one.log}: ' if one.log and n_logs > 1 else ''}{one.message}"
        for one in found.diagnostics
        if one.severity != "ok" and one.name not in _SAID_BY_THE_FIT and not (braked and "locked" in one.fix)
    ]
