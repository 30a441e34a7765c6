"""Is the model true? Prediction against measurement, on motion that was not used."""

from dynident.estimate.records import CrossValidation
from dynident.validation.compare import Comparison, compare
from dynident.validation.cross import cross_validate
from dynident.validation.fits import FitComparison, compare_fits
from dynident.validation.validate import Validation, validate

__all__ = [
    "Comparison",
    "CrossValidation",
    "FitComparison",
    "Validation",
    "compare",
    "compare_fits",
    "cross_validate",
    "validate",
]
