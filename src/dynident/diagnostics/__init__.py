"""Log diagnostics: what is wrong with a log, found before anything is solved, and suggested fixes."""

import warnings
from typing import Any

from dynident.diagnostics.diagnosing import check_logs
from dynident.diagnostics.log_preview import Preview, preview
from dynident.estimate.records import Diagnosis, DiagnosisError, Diagnostic

__all__ = ["Diagnosis", "DiagnosisError", "Diagnostic", "Preview", "check_logs", "preview"]
_RENAMED: dict[str, type] = {"CheckError": DiagnosisError, "Checkup": Diagnosis, "Finding": Diagnostic}  # until 0.6


def __getattr__(name: str) -> Any:
    if name not in _RENAMED:
        raise AttributeError(f"module 'dynident.diagnostics' has no attribute '{name}'")
    new = _RENAMED[name]
    words = f"dynident.diagnostics.{name} is now {new.__name__} and will be gone in 0.6"
    warnings.warn(words, DeprecationWarning, stacklevel=2)
    return new
