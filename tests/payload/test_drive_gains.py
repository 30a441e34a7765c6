"""Drive gains from a known mass: exact without noise, unbiased with it, whatever the scale of the signals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dynident as di
from dynident.errors import InputError, SingularError, UnknownNameError
from dynident.robot.parameters import LINK_SYMBOLS

TERMS = "rigid,Fv,Fc"
LOAD = di.payload.Payload(3.0, (0.05, -0.02, 0.1), (0.02, 0.001, 0.0, 0.03, 0.002, 0.012))
GAINS = np.array([12.0, -30.0, 8.0])
NOISE = 3.0  # [N·m], beside 2 to 4 N·m at joint 3


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("cmu-dd-arm-3")


@pytest.fixture(scope="module")
def runs(robot):
    """Motion and torque without and with the load."""
    rng = np.random.default_rng(0)
    value = dict(robot.value_set())
    value |= {"Fv1": 3.0, "Fv2": 2.0, "Fv3": 1.0, "Fc1": 2.0, "Fc2": 1.0, "Fc3": 0.5}
    loaded = {**value, **{name: value.get(name, 0.0) + x for name, x in LOAD.at(robot).items()}}
    motions = [rng.normal(size=(3, 1500, 3)) * np.array([1.5, 1.5, 3.0])[:, None, None] for _ in range(2)]
    return [(*m, di.inverse_dynamics(robot, *m, TERMS, v)) for m, v in zip(motions, (value, loaded), strict=True)]


def signals(robot, runs, *, noise=0.0, scale=1.0, seed=0):
    rng = np.random.default_rng(100 + seed)  # not that of the motion
    return [
        di.accumulate(robot, *motion, scale * (tau + noise * rng.normal(size=tau.shape)) / GAINS, TERMS)
        for *motion, tau in runs
    ]


@pytest.mark.parametrize("known", [{"M": 3.0}, LOAD, {"M": 3.0, "MX": 0.15}], ids=["mass", "all", "two"])
def test_exact_signals_give_exact_gains(robot, runs, known):
    found = di.identify_drive_gains(robot, *signals(robot, runs), known)
    np.testing.assert_allclose(found.gains, GAINS, rtol=1e-9)
    base = di.base_parameters(robot, TERMS)
    assert found.parameters.names == base.names
    truth = dict(zip((f"{symbol}3" for symbol in LINK_SYMBOLS), LOAD.standard, strict=True))
    change = np.array([found.payload.get(column.name, 0.0) for column in base.columns])
    np.testing.assert_allclose(base.K @ change, di.payload.payload_change(base, LOAD), atol=1e-8)
    assert set(found.payload) <= set(truth)


def test_deviations_are_honest_and_nothing_is_drawn_to_zero(robot, runs):
    found = [
        di.identify_drive_gains(robot, *signals(robot, runs, noise=NOISE, seed=seed), {"M": 3.0}) for seed in range(40)
    ]
    off = np.array([(one.gains - GAINS) / one.std for one in found])
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.3
    assert np.abs(off.mean(0)).max() < 0.6  # of 40 runs: four standard deviations of the mean
    # Least squares with the known load on the right-hand side draws the gains to zero with noise this large.
    plain = [plain_least_squares(robot, signals(robot, runs, noise=NOISE, seed=seed)) for seed in range(10)]
    total = [one.gains for one in found]
    assert np.mean(plain / GAINS, axis=0).min() < 0.9
    np.testing.assert_allclose(np.mean(total / GAINS, axis=0), 1.0, atol=0.025)
    for one in found[:3]:
        np.testing.assert_allclose(one.sigma, NOISE, rtol=0.1)


def plain_least_squares(robot, data):
    """Gains with the same columns by ordinary least squares."""
    base = di.base_parameters(robot, TERMS)
    names = [column.name for column in base.columns]
    K = base.K[:, [names.index(f"{symbol}3") for symbol in LINK_SYMBOLS]]
    rows = []
    for information, loaded in zip(data, (0.0, 1.0), strict=True):
        for j, factor in enumerate(information.channel_factors()):
            dense = factor.dense(base.n)
            v = np.zeros((len(dense), 3))
            v[:, j] = dense[:, -1]
            W = dense[:, :-1]
            rows.append(np.column_stack([-W, -loaded * W @ K[:, :9], v, loaded * 3.0 * W @ K[:, 9]]))
    A = np.vstack(rows)
    return np.linalg.lstsq(A[:, :-1], A[:, -1], rcond=None)[0][-3:]


def test_scale_of_signals_does_not_matter(robot, runs):
    plain = di.identify_drive_gains(robot, *signals(robot, runs, noise=0.5), {"M": 3.0})
    for scale in (1e-6, 1e5):
        scaled = di.identify_drive_gains(robot, *signals(robot, runs, noise=0.5, scale=scale), {"M": 3.0})
        np.testing.assert_allclose(scaled.gains * scale, plain.gains, rtol=1e-7)
        np.testing.assert_allclose(scaled.std * scale, plain.std, rtol=1e-5)


def test_nominal_gains_are_corrected(robot, runs):
    nominal = GAINS * [1.1, 0.95, 1.0]
    data = [
        di.accumulate(robot, *motion, tau / GAINS * nominal, TERMS)  # torque by gains that are off
        for *motion, tau in runs
    ]
    found = di.identify_drive_gains(robot, *data, {"M": 3.0}, nominal=nominal)
    np.testing.assert_allclose(found.factors, GAINS / nominal, rtol=1e-9)
    np.testing.assert_allclose(found.gains, GAINS, rtol=1e-9)
    assert [line.split()[0] for line in found.table().splitlines()] == ["joint", *robot.joint_names]


def test_an_uncertain_mass_makes_gains_uncertain(robot, runs):
    data = signals(robot, runs)
    found = di.identify_drive_gains(robot, *data, {"M": 3.0}, known_std=0.01)
    np.testing.assert_allclose(found.std, 0.01 * np.abs(GAINS), rtol=1e-6)
    wrong = di.identify_drive_gains(robot, *data, {"M": 3.03})
    np.testing.assert_allclose(wrong.gains, 1.01 * GAINS, rtol=1e-9)


def test_correlated_noise_makes_gains_less_certain(robot, runs):
    data = signals(robot, runs, noise=0.5)
    plain = di.identify_drive_gains(robot, *data, {"M": 3.0})
    wide = di.identify_drive_gains(robot, *data, {"M": 3.0}, inflation=[4.0] * 3)
    np.testing.assert_allclose(wide.std, 2.0 * plain.std, rtol=1e-6)


def test_swapped_runs_are_noticed(robot, runs):
    data = signals(robot, runs, noise=0.1)
    assert di.identify_drive_gains(robot, *data, {"M": 3.0}).warnings == ()
    swapped = di.identify_drive_gains(robot, *data[::-1], {"M": 3.0})
    np.testing.assert_array_equal(np.sign(swapped.gains), -np.sign(GAINS))
    assert "inertia and friction came out negative" in swapped.warnings[0]
    torque = [di.accumulate(robot, *run, TERMS) for run in runs]
    assert di.identify_drive_gains(robot, *torque, {"M": 3.0}, nominal=GAINS).warnings == ()
    (word,) = di.identify_drive_gains(robot, *torque[::-1], {"M": 3.0}, nominal=GAINS).warnings
    assert "nominal gains" in word
    assert "swapped?" in word


def test_data_of_another_robot_is_refused(robot, runs):
    data = signals(robot, runs)
    with pytest.raises(InputError, match=r"has a channel joint1, robot puma560|is not that of robot puma560"):
        di.identify_drive_gains(di.load_robot("puma560"), *data, {"M": 3.0})
    heavier = dataclasses.replace(robot, gravity=1.1 * robot.gravity)
    with pytest.raises(InputError, match="the loaded data is not that of robot"):
        di.identify_drive_gains(robot, data[0], signals(heavier, runs)[1], {"M": 3.0})
    other = dataclasses.replace(data[0], channels=("a", "b", "c"))
    with pytest.raises(InputError, match="the unloaded data has a channel a"):
        di.identify_drive_gains(robot, other, other, {"M": 3.0})


@pytest.mark.parametrize("known_std", [-0.01, float("nan"), float("inf"), "1 %"])
def test_a_deviation_of_the_mass_that_is_none(robot, runs, known_std):
    with pytest.raises(InputError, match="known_std is"):
        di.identify_drive_gains(robot, *signals(robot, runs), {"M": 3.0}, known_std=known_std)


@pytest.mark.parametrize("mass", [0.0, -3.0, float("nan"), "3"])
def test_a_mass_that_is_none(robot, runs, mass):
    with pytest.raises(InputError, match="of the payload is"):
        di.identify_drive_gains(robot, *signals(robot, runs), {"M": mass})


def test_what_cannot_be_done_is_refused(robot, runs):
    data = signals(robot, runs)
    with pytest.raises(SingularError, match="mass must be known"):
        di.identify_drive_gains(robot, *data, {})
    still = di.accumulate(robot, *(0 * x[:50] for x in runs[1][:3]), runs[1][3][:50], TERMS)
    with pytest.raises(SingularError, match="zero throughout"):
        di.identify_drive_gains(robot, still, still, {"M": 3.0})
    with pytest.raises(UnknownNameError, match="parameter of a payload"):
        di.identify_drive_gains(robot, *data, {"mass": 3.0})
    with pytest.raises(InputError, match="the unloaded"):
        di.identify_drive_gains(robot, data[0], data[1].outputs(robot.joint_names[:2]), {"M": 3.0})
    with pytest.raises(InputError, match="nominal must be 3 finite numbers"):
        di.identify_drive_gains(robot, *data, {"M": 3.0}, nominal=[1.0, 0.0, 1.0])
    few = [di.accumulate(robot, *(x[:3] for x in run), TERMS) for run in runs]
    with pytest.raises(SingularError, match="do not distinguish the payload"):
        di.identify_drive_gains(robot, *few, {"M": 3.0})
    with pytest.raises(SingularError, match="do not show the known payload"):
        di.identify_drive_gains(robot, data[0], data[0], {"M": 3.0})
    with pytest.raises(SingularError, match="more noise than torque"):
        di.identify_drive_gains(robot, *signals(robot, runs, noise=300.0), {"M": 3.0})
    dead = [di.accumulate(robot, *motion, tau * [1.0, 0.0, 1.0], TERMS) for *motion, tau in runs]
    with pytest.raises(InputError, match="has no torque at all"):
        di.identify_drive_gains(robot, *dead, {"M": 3.0})
    friction = [di.accumulate(robot, *motion, tau, "Fv,Fc") for *motion, tau in runs]
    with pytest.raises(InputError, match="use the term rigid"):
        di.identify_drive_gains(robot, *friction, {"M": 3.0})
