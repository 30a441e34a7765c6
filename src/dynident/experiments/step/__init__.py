"""Step voltage (Kim 1990): inertia and friction from the answer of one joint at a time to a step of voltage."""

from dynident.experiments.options import StepOptions
from dynident.experiments.step.analysis import analyze_steps
from dynident.experiments.step.procedure import step_test
from dynident.experiments.step.records import StepRecord, record_from_log
from dynident.experiments.step.response import StepResponse, fit_response
from dynident.experiments.step.result import FeedforwardRun, StepResult
from dynident.experiments.step.tracking import tracking_check

__all__ = [
    "FeedforwardRun",
    "StepOptions",
    "StepRecord",
    "StepResponse",
    "StepResult",
    "analyze_steps",
    "fit_response",
    "record_from_log",
    "step_test",
    "tracking_check",
]
