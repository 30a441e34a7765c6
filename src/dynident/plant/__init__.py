"""Machines to experiment on: the Plant protocol, the MuJoCo plant, drives, sensors and simple controllers."""

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
from dynident.plant.friction import Breakaway
from dynident.plant.mujoco_model import MissingMujocoError, MujocoModel, mujoco_model
from dynident.plant.mujoco_plant import MujocoPlant
from dynident.plant.mujoco_xml import ModelOptions, mujoco_xml
from dynident.plant.payload import Payload
from dynident.plant.protocol import Plant, Reading, UnstableError
from dynident.plant.record import measure, record
from dynident.plant.sampled import SampledMotion
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
