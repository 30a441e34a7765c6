"""Identification as a pipeline: preprocess, diagnose, select the model, fit, validate; `identification.py` shows it.

The way of a sample: `LogFile` or `Log` -> `Survey` (one pass over the log as it came) -> `Observations` (a log with the
filters it will pass) -> `MotionBlock` (filtered motion and torque) -> `RegressorBlock` (equations [W | tau], output by
output) -> `Information` (square-root factors) -> `ParameterEstimate` -> the fit.

Words: a *stretch* is the part of a log between two gaps; a *segment* is a slice of some seconds that has factors of its
own, for cross-validation; a *block* is what is in memory at a time; a *row* is an equation; a *fold* is held out
in turn. A *factor* is the triangle of one output, an *information* those of all outputs and segments.
"""
