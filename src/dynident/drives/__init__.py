"""Drives of joints that follow position commands: estimation, closed-loop replay, sampled models."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.drives.coverage import (
        Coverage as Coverage,
        coverage_of_replays as coverage_of_replays,
        coverage_of_torque as coverage_of_torque,
    )
    from dynident.drives.identification import DriveEstimate as DriveEstimate, identify_drives as identify_drives
    from dynident.drives.linear import with_gains as with_gains
    from dynident.drives.replay import ClosedLoopReplay as ClosedLoopReplay, commands_of as commands_of
    from dynident.drives.sampling import SampledModels as SampledModels, sample_models as sample_models
    from dynident.drives.storage import load_drives as load_drives, save_drives as save_drives
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
