"""Log diagnostics: what is wrong with a log, found before anything is solved, and suggested fixes."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.diagnostics.diagnosing import check_logs as check_logs
    from dynident.diagnostics.log_preview import Preview as Preview, preview as preview
    from dynident.diagnostics.log_split import LogSplit as LogSplit, split_logs as split_logs
    from dynident.estimate.records import (
        Diagnosis as Diagnosis,
        DiagnosisError as DiagnosisError,
        Diagnostic as Diagnostic,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__, {"CheckError": "DiagnosisError", "Checkup": "Diagnosis", "Finding": "Diagnostic"}
    )
