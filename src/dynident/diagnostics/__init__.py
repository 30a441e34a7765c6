"""The log doctor: what is wrong with a log, found before anything is solved, and how to put it right."""

from dynident.diagnostics.diagnosing import check_logs
from dynident.diagnostics.log_preview import Preview, preview
from dynident.estimate.records import CheckError, Checkup, Finding

__all__ = ["CheckError", "Checkup", "Finding", "Preview", "check_logs", "preview"]
