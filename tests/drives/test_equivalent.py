"""Plain friction for simulators from a fit with richer friction, chosen by replay, and what it loses."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.drives.equivalent import plain_model, replay_rich
from dynident.drives.identification import identify_drives, values_of
from dynident.drives.replay import ClosedLoopReplay, commands_of
from dynident.errors import InputError

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


def made_log(robot, seed):
    """A log of the plant with Stribeck friction, as `simulate` writes it."""
    values = dict(robot.value_set()) | {"Fv1": 0.5, "Fv2": 0.4, "Fc1": 0.6, "Fc2": 0.5}
    effects = {"stribeck0.2_1": 1.5, "stribeck0.2_2": 1.2}
    motion = di.trajectories.random_fourier(robot, seed=seed) if hasattr(di.trajectories, "random_fourier") else None
    assert motion is not None
    return di.plant.simulate(robot, motion, values=values, effects=effects).log
