"""Identification while the robot works: streams in, parameters with their deviations out."""
