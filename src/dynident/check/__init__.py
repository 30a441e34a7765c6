"""The log doctor: what is wrong with a log, found before anything is solved, and how to put it right."""

from dynident.check.doctor import check_logs
from dynident.check.finding import CheckError, Checkup, Finding
from dynident.check.preview import Preview, preview

__all__ = ["CheckError", "Checkup", "Finding", "Preview", "check_logs", "preview"]
