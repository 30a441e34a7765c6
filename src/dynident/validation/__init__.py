"""Is the model true? Prediction against measurement, on motion that was not used."""

from dynident.estimate.records import CrossValidation
from dynident.validation.comparison import FitComparison, compare_fits
from dynident.validation.cross_validation import cross_validate
from dynident.validation.held_out import Validation, validate
from dynident.validation.residuals import Comparison, compare

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
