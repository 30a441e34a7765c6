"""Free oscillation of machines without friction: a description that is 10 to 20 % off, weights that nobody gave."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import dynident as di
from dynident.cli.command_line import main
from dynident.experiments.bench import Bench
from dynident.experiments.protocol import ExperimentError
from dynident.papers.jamisola.model import paper_model
from dynident.papers.jamisola.printed import SAMPLE_TIME
from dynident.papers.jamisola.tables import paper_table
from dynident.plant import MujocoPlant, Sensors
from tests.strangers import STRANGERS, calibration, scara
from tests.strangers.stranger import HERE, SLIDE, TURN

CHAIN = """
name: chain
convention: modified-dh
lengths: {L: 0.7}
gravity: [-9.81, 0, 0]
joints:
  - {name: shoulder}
  - {name: elbow, d: L}
limits:
  shoulder: {lower: -3.1, upper: 3.1, velocity: 12, effort: 120}
  elbow: {lower: -3.1, upper: 3.1, velocity: 12, effort: 60}
parameters:
  machine:
    links:
      1: {mass: 2.5, com: [0.3, 0, 0], inertia: [0.001, 0, 0, 0.1, 0, 0.1]}
      2: {mass: 1.2, com: [0.25, 0, 0], inertia: [0.001, 0, 0, 0.05, 0, 0.05]}
default_parameters: machine
"""


def evaluated(found, truth):
    """Errors of everything that was found in its standard deviations."""
    stages = found.stages
    groups = [group for stage in stages for group in stage.groups]
    values, std = (np.concatenate([getattr(stage, name) for stage in stages]) for name in ("values", "std"))
    return calibration([one.name for one in groups], values, std, found.model.true_values(groups, truth))


def locked_scara(friction=False, **locked):
    """Some joints of the SCARA, with its encoders."""
    stranger, robot = scara(), scara().described.lock(**locked)
    kinds = [robot.joints[robot.active[i]].kind for i in robot.moving]
    sensors = Sensors(resolution=np.array([SLIDE if kind == "prismatic" else TURN for kind in kinds]))
    return MujocoPlant(robot, stranger.values(friction=friction), sample_time=4e-3, step=2e-3, sensors=sensors)


def test_weight_and_rotor_inertia_of_a_slide_whose_weight_is_described_wrong():
    """The weight shifts the position that it swings about; taken for right it was 100 standard deviations in Ia3."""
    found = di.experiments.oscillate(locked_scara(q1=0, q2=0, q4=0), stage="inertia")
    errors = evaluated(found, scara().truth)
    assert set(errors.names) == {"MR3", "Ia3"}
    assert np.abs(errors.off).max() < 4.0
    assert all(std < 2e-3 * value for stage in found.stages for std, value in zip(stage.std, stage.values, strict=True))


@pytest.mark.parametrize("locked", [{"q1": 0, "q4": 0}, {}], ids=["elbow and lift", "whole arm"])
def test_inertias_where_weights_are_described_wrong(locked):
    """Weights that are taken for exact put Ia3 at 3.15 kg instead of 3, 24 and 62 standard deviations off."""
    found = di.experiments.oscillate(locked_scara(**locked), stage="inertia")
    errors = evaluated(found, scara().truth)
    assert errors.rms < 1.3, str(errors)
    assert abs(errors.worst[1]) < 4.0
    assert {"MR3", "Ia3"} < set(errors.names)  # the weight, which only the slide feels, is estimated along


def test_weights_count_as_inertia_of_other_joints():
    """What the slide carries is part of the elbow's inertia."""
    found = di.experiments.oscillate(locked_scara(q1=0, q4=0), stage="both")
    errors = evaluated(found, scara().truth)
    assert {"MR3", "Ia3"} < set(errors.names)
    assert errors.rms < 2.0
    assert np.abs(errors.off).max() < 5.0
    assert "gravity stage left out" in found.warnings[0]


def test_a_slide_alone_has_no_slope():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ExperimentError, match=r"weight of lift.*no slope.*--stage inertia.*dynident gravity"):
            di.experiments.oscillate(locked_scara(q1=0, q2=0, q4=0), stage="gravity")


def test_the_verb_says_so_and_nothing_else(capsys):
    words = [str(HERE / "scara.yaml"), "--locked", "q1=0,q2=0,q4=0", "--stage", "gravity", "--values", "machine"]
    assert main(["oscillate", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no slope" in printed.err
    assert "nan" not in printed.err
    assert "Warning" not in printed.err


def test_friction_is_refused():
    with pytest.raises(ExperimentError, match="friction or a brake holds it"):
        di.experiments.oscillate(locked_scara(friction=True, q1=0, q2=0, q4=0), stage="inertia")


@pytest.mark.parametrize("stage", ["gravity", "inertia"])
def test_the_check_of_combinations_shows_every_one(stage, tmp_path):
    """An elbow that goes against the shoulder keeps link 2 upright: a tenth of its weight changed next to nothing."""
    path = tmp_path / "chain.yaml"
    path.write_text(CHAIN)
    robot = di.load_robot(path)
    bench = Bench(MujocoPlant(robot, sample_time=SAMPLE_TIME, step=SAMPLE_TIME / 4))
    table = paper_table(bench, paper_model(robot), stage, updates=40, factors=(1.01,), combinations=(1.0, 1.1))
    tried = {row.factors: row.error for row in table.candidates}
    right = tried.pop((1.0, 1.0))
    assert right == min([right, *tried.values()])
    assert min(tried.values()) > 3.0 * right
    printed = json.loads(json.dumps(table.as_dict()))["discrimination"]
    assert [len(one["combination"]) for one in printed] == [2, 2, 2]  # and the one that shows least
    assert all(one["resolution"] < 0.05 for one in printed)
    assert printed[2]["response"] <= min(one["response"] for one in printed[:2])
    assert "10 % moves it by" in table.discrimination_table()


@pytest.mark.full
@pytest.mark.parametrize("name", STRANGERS)
def test_strangers_from_descriptions_of_their_own(name):
    """Three descriptions each, every parameter up to a fifth off, weights unknown."""
    stranger, off = STRANGERS[name](), None
    for seed in range(3):
        rng = np.random.default_rng(seed)
        nominal = {key: x * rng.uniform(0.85, 1.2) for key, x in stranger.values(friction=False).items()}
        plant = stranger.plant(seed, friction=False, sample_time=4e-3)
        errors = evaluated(di.experiments.oscillate(plant, stage="inertia", nominal=nominal), stranger.truth)
        off = errors if off is None else off + errors
    assert off.rms < 1.3
    assert abs(off.worst[1]) < 6.0
