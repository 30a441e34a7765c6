"""Plain friction for simulators from a fit with richer friction, chosen by replay, and what it loses."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynident as di
from dynident.drives.identification import identify_drives
from dynident.errors import InputError

pytest.importorskip("mujoco")
NUMBERS = r"(\S+) mrad or mm rms in the replay of the training logs, (\S+) nearest by torque, (\S+) with the friction"


class Swing:
    """Sums of sines that begin at rest."""

    duration = 8.0

    def sample(self, t):
        t = np.asarray(t, dtype=float)[..., None]
        w, size = 2.0 * np.pi * np.array([[0.5, 0.8], [1.1, 1.4]]), np.array([[0.8, 0.6], [0.3, 0.2]])
        q = sum(a * (1.0 - np.cos(v * t)) for a, v in zip(size, w, strict=True))
        dq = sum(a * v * np.sin(v * t) for a, v in zip(size, w, strict=True))
        ddq = sum(a * v**2 * np.cos(v * t) for a, v in zip(size, w, strict=True))
        return q, dq, ddq


def test_of_stribeck_friction():
    robot = di.load_robot("pendulum-2")
    effects = {"stribeck0.5_1": 2.0, "stribeck0.5_2": 2.0}
    log = di.simulate(robot, Swing(), effects=effects, rate=250.0, relative_noise=0.002).log
    fit = di.identify(robot, [log], friction="stribeck(0.5)", check="off")
    found = identify_drives(fit, [log], delay=0.0)
    (note,) = (note for note in found.notes if "viscous and Coulomb friction for" in note)
    assert "stribeck(0.5)" in note
    chosen, by_torque, rich = (float(x) for x in re.search(NUMBERS, note).groups())
    assert chosen <= by_torque
    assert rich < chosen  # its own friction is nearer than plain friction can be
    assert found.before.total == pytest.approx(1e-3 * by_torque, rel=0.3)
    with pytest.raises(InputError, match="those of a fit are known"):
        identify_drives(fit, [log], links="estimate")
