"""The log doctor: what is wrong with a log, found before anything is solved, and how to put it right."""

from dynident.check.doctor import check
from dynident.check.finding import Checkup, Finding
from dynident.check.preview import Preview, preview

__all__ = ["Checkup", "Finding", "Preview", "check", "preview"]
