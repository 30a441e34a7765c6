"""Step voltage (Kim 1990): inertia and friction from the answer of one joint at a time to a step of voltage."""

from dynident.experiment.step.analysis import analyse
from dynident.experiment.step.procedure import StepOptions, step_test
from dynident.experiment.step.record import StepRecord, record_from_log
from dynident.experiment.step.response import StepResponse, fit_response
from dynident.experiment.step.result import StepResult

__all__ = [
    "StepOptions",
    "StepRecord",
    "StepResponse",
    "StepResult",
    "analyse",
    "fit_response",
    "record_from_log",
    "step_test",
]
