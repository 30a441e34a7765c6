"""Voltage steps where gravity acts and the description is wrong: inertia, damping and friction hold all the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

import dynident as di
from dynident.experiments.bench import Bench
from dynident.experiments.protocol import ExperimentError
from dynident.experiments.step import analyze_steps, record_from_log
from dynident.experiments.step.controller import default_motors
from tests.robots import tree_model
from tests.strangers import STRANGERS, calibration, scara

POSE = 0.3  # [rad or m] of all joints


def run_steps(stranger, joints, robot=None, **how):
    """A step test of some joints with the others held at one pose, and the bench with its runs."""
    motors = default_motors(stranger.described)
    machine = stranger if robot is None else dataclasses.replace(stranger, described=robot)
    bench = Bench(machine.plant(motors=motors))
    poses = np.full((1, len(stranger.described.joints)), POSE)
    return (
        di.experiments.step_test(bench, motors, di.experiments.StepOptions(joints=joints, poses=poses, **how)),
        bench,
        motors,
    )


def errors(stranger, found):
    """Inertia, damping and Coulomb friction of each configuration; the true inertia is Pinocchio's."""
    model = tree_model(stranger.described.with_values("truth", stranger.truth))
    rows = []
    for one in found.configurations:
        number, printed = one.motor + 1, one.numbers
        mass = pin.crba(model, model.createData(), np.array(one.pose))[one.motor, one.motor]
        true = [mass + stranger.truth[f"Ia{number}"], stranger.truth[f"Fv{number}"], stranger.truth[f"Fc{number}"]]
        names = [f"{name}{number}" for name in ("Me", "B", "Fc")]
        rows += zip(names, printed.values[:3], printed.std[:3], true, strict=True)
    return calibration(*zip(*rows, strict=True))


def test_the_weight_of_a_slide_does_not_get_into_its_friction():
    stranger = scara()
    found, bench, motors = run_steps(stranger, ["lift"])
    (lift,) = found.friction
    assert lift.coulomb[0] == pytest.approx(8.0, rel=1e-4)  # 6.5 when the described weight is believed
    assert lift.coulomb[1] < 1e-3
    assert abs(errors(stranger, found).worst[1]) < 4.0
    # What is constant is weight or offset: only the description knows which.
    assert 1.0 < lift.offset[1] < 10.0
    records = [record_from_log(run.log(stranger.described), stranger.described, motors) for run in bench.runs]
    again = analyze_steps(stranger.described, motors, records)
    assert again.friction[0].coulomb[0] == pytest.approx(8.0, rel=1e-3)


def test_steps_of_one_sign_are_as_uncertain_as_the_described_weight():
    stranger = scara()
    found, *_ = run_steps(stranger, ["lift"], voltages=(0.689, 0.535))
    value, std = found.friction[0].coulomb
    weight = 9.81 * (2.0 + 1.35)
    assert 0.1 * weight < std < 0.2 * weight  # two masses, each 20 %
    assert abs(value - 8.0) < 2.0 * std
    assert any("both signs" in warning for warning in found.warnings)
    exact, *_ = run_steps(stranger, ["lift"], voltages=(0.689, 0.535), weight_std=0.0)
    assert exact.friction[0].coulomb[1] < 1e-3


@pytest.mark.parametrize(
    ("name", "joints"),
    [
        ("skewed_arm", ["a2", "a4", "a7"]),
        pytest.param("pinocchio_arm", ["shoulder", "elbow", "wrist"], marks=pytest.mark.full),
    ],
)
def test_masses_that_are_off_change_nothing(name, joints):
    stranger = STRANGERS[name]()
    found, *_ = run_steps(stranger, joints)
    off = errors(stranger, found)
    assert off.rms < 1.3, off
    assert abs(off.worst[1]) < 4.0, off
    relative = [one.inertia_std / one.inertia for one in found.configurations]
    assert max(relative) < 1e-3
    assert found.combinations is not None


@pytest.fixture(scope="module")
def too_light():
    """The SCARA as described by somebody who forgot most of what its slide carries."""
    own = scara().described
    return own.with_values("light", {**own.value_set(), "M3": 0.5, "M4": 0.3})


def test_voltages_that_weight_overcomes_are_raised(too_light):
    found, bench, _ = run_steps(scara(), ["lift"], too_light)
    assert len(bench.runs) > 3
    assert found.friction[0].coulomb[0] == pytest.approx(8.0, rel=1e-3)
    assert abs(errors(scara(), found).worst[1]) < 4.0, found.friction[0]


def test_a_given_voltage_that_weight_overcomes_is_refused_with_what_to_change(too_light):
    with pytest.raises(ExperimentError, match=r"joint lift \(lift-pose1.*its own way from q1=0\.3.*--volts.*--pose"):
        run_steps(scara(), ["lift"], too_light, voltages=(0.4, 0.6, -0.4), duration=0.4)
