"""Fleets: many robots, months of logs, as a map-reduce on Dask.

`run_fleet` makes factors of every log of every robot and adds them up; what follows from the store that it keeps is in
`report_fleet`, `watch_fleet` and `export_fleet`.
"""
