"""Drives of joints that follow position commands: estimation, closed-loop replay, export to simulators."""
