"""Simulate a machine with effects of real gears, identify it with the terms that describe them, and find them again."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.dynamics.terms import along_terms, resolve_terms
from dynident.estimate.estimators import ESTIMATORS
from dynident.identifiability.base import base_parameters
from dynident.information.row_source import accumulate_source
from dynident.plant import Feedforward, MujocoPlant, record
from dynident.signals.observations import SignalOptions, observe
from dynident.signals.rows import ObservedRows


class Sines:
    """Four random sines per joint; the root mean square of each joint's velocity is `velocity` [rad/s]."""

    def __init__(self, n, duration, velocity, seed=1):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=(4, n))
        self.duration, self.w = duration, 0.5 * np.pi * np.arange(1, 5)[:, None]
        self.amplitude = weights / self.w * (velocity * np.sqrt(2.0) / np.linalg.norm(weights, axis=0))
        self.phase, self.offset = rng.uniform(0.0, 2.0 * np.pi, (4, n)), rng.uniform(-0.5, 0.5, n)

    def sample(self, t):
        angle = self.w * np.asarray(t)[:, None, None] + self.phase
        a, w = self.amplitude, self.w
        q = self.offset + (a * np.sin(angle)).sum(1)
        return q, (w * a * np.cos(angle)).sum(1), -(w**2 * a * np.sin(angle)).sum(1)


def fitted(robot, log, keys, band, passes):
    """Values by name; terms that need a reference get the links of a fit without them."""
    terms = resolve_terms(keys)
    found = observe(log, robot, SignalOptions(band=band, jerk=any(t.needs_jerk for t in along_terms(terms))))

    def solve(terms, reference):
        base = base_parameters(robot, terms)
        estimator = ESTIMATORS["weighted"]()
        estimator.fit(accumulate_source(ObservedRows((found,), base, reference)))
        chi = base.standard_values(estimator.values_, "regrouped zero")
        links = np.array([x for x, c in zip(chi, base.columns, strict=True) if c.term == "rigid"])
        return dict(zip((c.name for c in base.columns), chi, strict=True)), links

    values, links = solve([t for t in terms if not getattr(t, "needs_linearization_point", False)], None)
    for _ in range(passes if any(t.needs_linearization_point for t in along_terms(terms)) else 0):
        values, links = solve(terms, links)
    return values


def recovered(name, effects, keys, *, without=(), velocity=1.5, duration=5.0, band=10.0, passes=2):
    """How far off each effect comes out, as a share of its value."""
    robot = di.load_robot(name)
    values = {k: x for k, x in robot.value_set().items() if not k.startswith(tuple(without))}
    plant = MujocoPlant(robot, values, effects=effects, torque_limits=np.inf)
    controller = Feedforward(robot, Sines(len(robot.joint_names), duration, velocity), bandwidth=40.0)
    log = record(plant, controller, every=2, kinds=("q", "tau"))
    found = fitted(robot, log, keys, band, passes)
    return {effect: abs(found[effect] / value - 1.0) for effect, value in effects.items()}


def test_gears_that_wind_up_carry_load_and_spring():
    off = recovered(
        "puma560",
        {
            "stop3_1": 6.0,
            "stop30_1": 6.0,
            "load_2": 0.1,
            "quadratic_3": 3.0,
            "harmonics3c_4": 1.0,
            "harmonics3s_4": 0.5,
            "cubic_5": 0.3,
            "jerk_6": 0.005,
        },
        "rigid,Ia,Fv,Fc(0.02),Fo,stop(0.003,0.03)@1,load@2,quadratic@3,harmonics(3)@4,cubic@5,jerk@6",
        # Stops take the place of Coulomb friction. A rotor at joint 2 cannot be distinguished from the links, nor its
        # load.
        without=("Fc1", "Ia2"),
    )
    assert max(off.values()) < 0.05, off
    assert max(off[name] for name in ("stop3_1", "stop30_1", "cubic_5", "jerk_6")) < 0.01, off


def test_gears_that_stick_and_ripple():
    off = recovered(
        "puma560",
        {
            "stribeck0.5_1": 5.0,
            "loadv_2": 0.1,
            "sign0.5_3": 4.0,
            "ripple20c_4": 0.5,
            "ripple20s_4": 0.5,
            "asymmetric_5": 0.5,
        },
        # Asymmetric friction and an offset are the same but for standstill.
        "rigid,Ia,Fv,Fc,stribeck(0.5)@1,loadv@2,sign(0.5)@3,ripple(20)@4,asymmetric@5",
        without=("Fc3", "Ia2", "Fo"),
        band=20.0,
    )
    assert max(off.values()) < 0.06, off
    assert max(off["ripple20c_4"], off["ripple20s_4"]) < 0.01, off


def test_tilt_and_joint_zeros():
    effects = {"tilt_x": 0.01, "tilt_y": -0.015, "zero_2": 0.01, "zero_3": -0.02, "zero_4": 0.01}
    off = recovered(
        "ur10e", effects, "rigid,Ia,Fv,Fo,tilt,zero@2|3|4", without=("Fc",), band=None, passes=3, duration=8.0
    )
    assert max(off.values()) < 0.02, off


def test_a_motor_that_turns_two_joints():
    effects = {"quadratic_6": 0.5, "stop20_m6": 3.0}
    off = recovered("tx40", effects, "rigid,Ia,Fv,Fo,quadratic@6,stop(0.02)@m6", without=("Fc",), duration=4.0)
    assert max(off.values()) < 0.05, off
