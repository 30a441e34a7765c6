"""Is the model true? Prediction against measurement, on motion that was not used."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.validation.comparison import FitComparison as FitComparison, compare_fits as compare_fits
    from dynident.validation.cross_validation import cross_validate as cross_validate
    from dynident.validation.held_out import Validation as Validation, validate as validate
    from dynident.validation.residuals import LogErrors as LogErrors, compare as compare
    from dynident.validation.verdict import Verdict as Verdict, fit_verdict as fit_verdict
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"CrossValidation": "dynident.estimate.CrossValidation"})
