"""Fleets: many robots, months of logs, as a map-reduce on Dask.

`run_fleet` makes factors of every log of every robot and adds them up; `analyze_fleet`, `watch_fleet` and
`export_fleet` say what follows from the store that it keeps.
"""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.fleet.analysis import FleetAnalysis as FleetAnalysis, analyze_fleet as analyze_fleet
    from dynident.fleet.changes import (
        ChangePoint as ChangePoint,
        daily_series as daily_series,
        find_change as find_change,
    )
    from dynident.fleet.comparison import ArmData as ArmData, TypeModel as TypeModel, compare_arms as compare_arms
    from dynident.fleet.draft import draft_fleet_file as draft_fleet_file
    from dynident.fleet.exporting import export_fleet as export_fleet
    from dynident.fleet.fleet_file import (
        FleetFile as FleetFile,
        FleetFileError as FleetFileError,
        read_fleet_file as read_fleet_file,
    )
    from dynident.fleet.pages import write_fleet_pages as write_fleet_pages
    from dynident.fleet.running import FleetRun as FleetRun, run_fleet as run_fleet
    from dynident.fleet.store import FleetStore as FleetStore, StoreError as StoreError
    from dynident.fleet.watching import watch_fleet as watch_fleet

__getattr__, __dir__, __all__ = lazy_names(__name__)
