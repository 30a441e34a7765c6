"""Machines to experiment on: the Plant protocol, the MuJoCo plant, drives, sensors and simple controllers."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.motion.trajectory import SampledMotion as SampledMotion
    from dynident.payload.body import Payload as Payload
    from dynident.plant.compiled_model import (
        MissingMujocoError as MissingMujocoError,
        MujocoModel as MujocoModel,
        mujoco_model as mujoco_model,
    )
    from dynident.plant.controllers import (
        PD as PD,
        ComputedTorque as ComputedTorque,
        Controller as Controller,
        Feedforward as Feedforward,
        Motion as Motion,
        OpenLoop as OpenLoop,
        TrackingController as TrackingController,
        VoltageSteps as VoltageSteps,
    )
    from dynident.plant.drives import Motors as Motors
    from dynident.plant.effects import Breakaway as Breakaway
    from dynident.plant.mjcf_writer import ModelOptions as ModelOptions, mujoco_xml as mujoco_xml
    from dynident.plant.mujoco_plant import MujocoPlant as MujocoPlant
    from dynident.plant.protocol import Plant as Plant, Reading as Reading, UnstableError as UnstableError
    from dynident.plant.recording import measure as measure, record as record
    from dynident.plant.sensors import Sensors as Sensors, Truth as Truth
    from dynident.plant.warming import Warming as Warming
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"Tracking": "TrackingController"})
