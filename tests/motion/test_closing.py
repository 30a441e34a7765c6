"""Motions of robots whose loops are closed numerically: derivatives through the loops, limits, and a whole chain."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict

import numpy as np
import pytest

import dynident as di
from dynident.dynamics import kernels
from dynident.dynamics.evaluate import tree_motion
from dynident.dynamics.loop_assembly import all_active, assembly
from dynident.identifiability.base import base_parameters, column_scales
from dynident.motion.closing import loop_solver
from dynident.motion.excitation import ExcitationDesign
from dynident.motion.options import ExcitationOptions
from dynident.motion.rows import TorqueRows
from dynident.motion.thresholds import THRESHOLDS
from dynident.robot.model import Limits
from tests.loops import FIVE_BAR, SPATIAL, load

NEAR = {"five-bar": {"left": (1.5, 2.3), "right": (0.7, 1.5)}, "rssr": {"crank": (0.0, 0.6)}}
TEXTS = {"five-bar": FIVE_BAR, "rssr": SPATIAL}
QUICK = {"starts": 2, "kicks": 0, "iterations": 15, "duration": 5.0}


def made(name, folder):
    """The robot with limits, of passive joints too."""
    robot = load(TEXTS[name], folder)
    joints = [
        dataclasses.replace(j, limits=Limits(*NEAR[name][j.name], 3.0, 40.0))
        if j.name in NEAR[name]
        else dataclasses.replace(j, limits=Limits(-3.0, 3.0, 20.0))
        for j in robot.joints
    ]
    return dataclasses.replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("name", TEXTS)
def test_derivatives_go_through_the_loops(name, tmp_path):
    robot = made(name, tmp_path)
    design = ExcitationDesign(robot, ExcitationOptions(duration=4.0, harmonics=3, clearance=0.0, radius=0.01))
    space, demands = design.space, design.demands()
    waves = space.waves(np.linspace(0.0, 4.0, 15))
    rng = np.random.default_rng(0)
    middle = np.array([np.mean(NEAR[name][joint]) for joint in robot.joint_names])
    x = space.resting(middle) + 0.03 * rng.normal(size=space.size)
    way, h = rng.normal(size=space.size), 1e-5
    seen = set()
    for limit in demands.on(waves):
        limit.evaluate(space.states(x, waves))
        limit.linearize()
        # Pivots are known to the last step of Newton's method, and their derivative is a difference.
        step, near = (1e-3, 1e-3) if limit.kind == "loops" else (h, 2e-6)
        change = limit.times(way)
        ahead, behind = (limit.evaluate(space.states(x + sign * step * way, waves)) for sign in (1.0, -1.0))
        slope = (ahead - behind).ravel() / (2 * step)
        np.testing.assert_allclose(change, slope, atol=near * max(1.0, abs(change).max()))
        seen.add(limit.kind)
    assert {"position", "velocity", "torque", "loops"} <= seen
    base = base_parameters(robot, "rigid,Ia,Fv")
    scale = column_scales(robot, [base.columns[i] for i in base.independent])
    rows = TorqueRows(base, scale, np.linspace(0.0, 4.0, 15), np.ones(len(middle)), np.full(len(middle), 0.1))
    weights = rng.normal(size=(base.n, base.n))
    slope = weights + weights.T

    def value(x):
        return float(np.sum(slope * rows.information(space.states(x, waves))))

    here = value(x)
    change = space.pull(rows.pull(slope), waves) @ way
    assert change == pytest.approx((value(x + h * way) - value(x - h * way)) / (2 * h), rel=1e-5, abs=1e-6 * abs(here))


@pytest.mark.parametrize("name", TEXTS)
def test_a_motion_closes_its_loops_and_keeps_the_limits_of_passive_joints(name, tmp_path):
    robot = made(name, tmp_path)
    found = di.optimize_excitation(robot, **QUICK)
    q, dq, ddq = found.trajectory.sample(found.trajectory.times(1000.0))
    assert assembly(robot).pivots(all_active(robot, q)).min() >= THRESHOLDS.least_pivot
    tree = tree_motion(robot, q).q
    for i, joint in enumerate(robot.joints):
        assert tree[:, i].min() >= joint.limits.lower
        assert tree[:, i].max() <= joint.limits.upper
    assert np.abs(di.inverse_dynamics(robot, q, dq, ddq)).max() <= 40.0
    assert np.ptp(q, axis=0).min() > 0.1


@pytest.mark.parametrize("name", TEXTS)
def test_a_search_repeats(name, tmp_path, monkeypatch):
    """Whatever the process did before: short batches run on NumPy until enough samples came, which rounds otherwise."""
    robot = made(name, tmp_path)
    first = di.optimize_excitation(robot, **QUICK)
    monkeypatch.setattr(kernels, "_cache", OrderedDict())  # as in a new process
    assert di.optimize_excitation(robot, **QUICK).trajectory == first.trajectory


def test_poses_at_which_loops_cannot_be_closed_are_no_error(tmp_path):
    solver = loop_solver(made("five-bar", tmp_path))
    # Stretched apart, the ends of the cranks are 0.3 + 0.25 + 0.28 m apart and the other links reach 0.85 m; turned
    # towards each other they overlap and pass, and the far ends cannot meet where one crank points away.
    poses = np.array([[1.9, 1.1], [2.0, 1.0], [np.pi, 0.0]])
    assert solver.closable(poses)[:2].all()
    shut = np.array([[0.0, np.pi]])  # ends 0.33 m apart on the wrong side: the branch of the file does not reach it
    assert solver.at(shut).s.shape == (2, 1)


def test_forecast_and_fit_of_a_loop(tmp_path):
    """The chain: a motion, a log of the simulated machine, and parameters within their standard deviations."""
    robot = made("five-bar", tmp_path)
    found = di.optimize_excitation(robot, **QUICK | {"duration": 10.0})
    fit = di.identify(robot, di.simulate(robot, found.trajectory).log)
    errors = (fit.beta - fit.base.base_values()) / fit.std
    assert np.sqrt(np.mean(errors**2)) < 1.5
    assert np.median(fit.std / found.std) == pytest.approx(1.0, abs=0.3)
