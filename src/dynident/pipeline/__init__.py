"""Identification as a pipeline: preprocess, diagnose, select the model, fit, validate; one file per step."""
