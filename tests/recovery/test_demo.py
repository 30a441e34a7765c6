"""The demo: `identify` finds the truth that lies beside its logs, and the logs are what `simulate` makes of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import dynident as di

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = EXAMPLES / "demo"
LARGEST = 600_000  # bytes, all files together


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = found
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def robot():
    return di.load_robot(DEMO / "truth.yaml")


@pytest.fixture(scope="module")
def fit():
    arm = di.load_robot(DEMO / "arm.yaml")
    logs = [di.read_log(DEMO / f"fourier_{k}.csv.gz", arm) for k in (1, 2)]
    return di.identify(arm, logs, friction="basic")  # the machine's own friction, so that values can be compared


@pytest.fixture(scope="module")
def truth(robot, fit):
    base = di.base_parameters(robot, "rigid,Ia,Fv,Fc,Fo")
    assert base.names == fit.names
    return base.base_values("truth")


def test_the_truth_differs_from_the_description_by_up_to_a_third(robot):
    own, true = robot.value_set(), robot.value_set("truth")
    named = [f"{symbol}{k}" for symbol in ("M", "Ia", "Fv", "Fc") for k in range(1, 7)]
    shares = {name: abs(true[name] / own[name] - 1.0) for name in named}
    assert 0.3 < max(shares.values()) < 0.34
    assert min(shares.values()) > 0.03


def test_errors_are_as_large_as_the_deviations_say(fit, truth):
    assert fit.undetermined == ()
    error = np.abs(fit.beta - truth) / fit.std
    assert np.mean(error < 2.0) > 0.8  # 95 % of a perfect model; dry friction at reversals is not quite the model's
    assert error.max() < 5.0


def test_what_is_said_to_be_well_known_is(fit, truth):
    well = np.abs(fit.std / fit.beta) < 0.02
    assert well.sum() > 25
    assert np.abs(fit.beta[well] / truth[well] - 1.0).max() < 0.04


def test_it_is_far_closer_to_the_truth_than_the_description(robot, fit, truth):
    described = di.base_parameters(robot, "rigid,Ia,Fv,Fc,Fo").base_values()
    size = np.abs(truth)
    large = size > 0.2
    before, after = (np.median(np.abs(values - truth)[large] / size[large]) for values in (described, fit.beta))
    assert after < 0.1 * before


def test_simulate_makes_the_same_log_again(robot):
    maker = module(DEMO / "make_logs.py")
    motion = di.load_trajectory(DEMO / "wandering.yaml")
    assert motion == maker.wandering(robot)
    run = di.simulate(robot, motion, values="truth", seed=2, **maker.LOGGED)
    stored = di.read_log(DEMO / "wandering.csv.gz", robot)
    np.testing.assert_allclose(run.log.time, stored.time, atol=1e-8)
    np.testing.assert_allclose(run.log.array("q", robot), stored.array("q", robot), atol=1e-4)  # two counts
    np.testing.assert_allclose(run.log.array("i", robot), stored.array("i", robot), atol=0.02)  # [A]


def test_the_load_of_the_example_is_the_one_that_was_fastened():
    maker, example = module(DEMO / "make_logs.py"), module(EXAMPLES / "demo_payload.py")
    np.testing.assert_allclose(example.LOAD.standard, maker.LOAD.standard)
    found = example.side_by_side()
    assert found.agreeing > 0.85
    weight = [found[name].agreement == "agrees" for name in ("MXR2", "MXR3", "MYR4", "MYR5")]
    assert sum(weight) >= 3  # within two standard deviations, of which one in twenty is not
    gains = example.drive_gains()
    off = (gains.factors - 1.0) * np.abs(gains.nominal) / gains.std
    assert np.sqrt(np.mean(off**2)) < 1.3  # the torque is stamped 4 ms late, which is undone
    assert np.abs(gains.factors - 1.0)[:5].max() < 0.01  # a light wrist tells little about its own


def test_the_files_stay_small():
    assert sum(path.stat().st_size for path in DEMO.iterdir() if path.is_file()) < LARGEST
