"""Logs whose friction is known, and training data of them."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.dynamics.linearization import LinearizationPoint, TermCourse
from dynident.dynamics.terms import along_terms, resolve_terms
from dynident.dynamics.terms.term import MotionSamples, all_places
from dynident.logs.log import as_logs
from dynident.pipeline.factor_cache import FactorCache
from dynident.pipeline.options import IdentifyOptions
from dynident.pipeline.preprocessing import preprocess
from tests.signals.made import Fourier, exact_torque, make_log, stamps

BASIC = "rigid,Ia,Fv,Fc(0.02),Fo"
EXTRA = "stop(0.003),stribeck(0.2),load,quadratic,harmonics(1)"
STOP = {"stop3_1": 4.0, "stop3_2": 4.0, "stop3_3": 2.0}


def made(robot, effects, seed=1, seconds=20.0, noise=0.01, start=0.0, held=(), pace=1.0):
    """A log of motion `seed`, at some pace, with the basic model and some effects, by parameter name."""
    t = stamps(seconds, 100.0)
    motion = Fourier.random(len(robot.joint_names), seed, base=0.061 * pace, harmonics=8)
    motion.amplitude[:, list(held)] *= 1e-2
    q, dq, ddq = motion(t + start)
    tau = exact_torque(robot, lambda time: motion(time + start), t, BASIC)
    terms = along_terms(resolve_terms(EXTRA))
    reference = LinearizationPoint(robot, di.parameters(robot, "rigid"))
    lines = TermCourse(robot, terms, reference).columns_first(MotionSamples.of_stretch(q, dq, ddq))
    names = [column.name for term in terms for column in term.columns(robot)]
    for line, (row, column) in zip(lines, all_places(robot, terms), strict=True):
        tau[:, row] += effects.get(names[column], 0.0) * line
    tau += noise * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)
    return make_log(robot, t, q, tau, source=f"log {seed} {start} {held} {pace}")


def training(robot, *logs, band=5.0):
    options = IdentifyOptions(check="off", band=band, delay=0.0, velocity_source="position")
    return preprocess(robot, as_logs(list(logs)), options, FactorCache(None), lambda *done: None)
