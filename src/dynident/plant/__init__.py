"""Machines to experiment on: the Plant protocol, the MuJoCo plant, drives, sensors and simple controllers."""

from dynident.motion.trajectory import SampledMotion
from dynident.payload.body import Payload
from dynident.plant.compiled_model import MissingMujocoError, MujocoModel, mujoco_model
from dynident.plant.controllers import (
    PD,
    ComputedTorque,
    Controller,
    Feedforward,
    Motion,
    OpenLoop,
    Tracking,
    VoltageSteps,
)
from dynident.plant.drives import Motors
from dynident.plant.effects import Breakaway
from dynident.plant.mjcf_writer import ModelOptions, mujoco_xml
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.protocol import Plant, Reading, UnstableError
from dynident.plant.recording import measure, record
from dynident.plant.sensors import Sensors, Truth

__all__ = [
    "PD",
    "Breakaway",
    "ComputedTorque",
    "Controller",
    "Feedforward",
    "MissingMujocoError",
    "ModelOptions",
    "Motion",
    "Motors",
    "MujocoModel",
    "MujocoPlant",
    "OpenLoop",
    "Payload",
    "Plant",
    "Reading",
    "SampledMotion",
    "Sensors",
    "Tracking",
    "Truth",
    "UnstableError",
    "VoltageSteps",
    "measure",
    "mujoco_model",
    "mujoco_xml",
    "record",
]
