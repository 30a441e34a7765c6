"""What is called the truth of a stranger is what its machine does, by Pinocchio's inverse dynamics."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynident.plant import Feedforward
from tests.robots import tree_model
from tests.strangers import STRANGERS


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("friction", [False, True])
def test_recorded_torque_is_that_of_the_truth(name, friction):
    stranger = STRANGERS[name]()
    plant = stranger.plant(noise=False, friction=friction)
    control = Feedforward(stranger.described, stranger.motion(0))
    plant.reset(*control.start_state())
    control.start(plant.sample_time)
    q, dq, tau = [], [], []
    for _ in range(1500):
        reading = plant.read()
        plant.apply_torque(control.command(plant.time, reading))
        plant.step()
        reading = plant.read()
        q, dq, tau = [*q, reading.q], [*dq, reading.dq], [*tau, reading.tau]
    q, dq, tau = np.array(q), np.array(dq), np.array(tau)
    h = plant.sample_time
    ddq = np.zeros_like(q)
    ddq[2:-2] = (dq[:-4] - 8.0 * dq[1:-3] + 8.0 * dq[3:-1] - dq[4:]) / (12.0 * h)
    truth = stranger.values(friction=friction)
    model = tree_model(stranger.described.with_values("truth", truth))
    data = model.createData()
    names = range(1, q.shape[1] + 1)
    rotor, viscous, coulomb = (
        np.array([truth.get(f"{symbol}{j}", 0.0) for j in names]) for symbol in ("Ia", "Fv", "Fc")
    )
    expected = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    expected += rotor * ddq + viscous * dq + coulomb * np.sign(dq)
    one_way = np.array([np.roll(np.sign(dq), k, axis=0) for k in range(-4, 5)])
    slides = np.abs(one_way.sum(axis=0)).min(axis=1) == len(one_way)  # no joint turned round within four samples
    limit = np.array([joint.limits.velocity for joint in stranger.described.joints])
    slides &= (np.abs(dq) > 0.02 * limit * friction).all(axis=1)  # MuJoCo lets joints that stick creep
    slides[:10] = slides[-10:] = False
    assert slides.sum() > 300
    error = np.abs(tau - expected)[slides]
    assert np.all(np.sqrt(np.mean(error**2, axis=0)) < 0.1 * stranger.torque_noise)


@pytest.mark.parametrize("name", STRANGERS)
def test_the_description_is_off(name):
    """By 10 to 20 % in mass, so that nothing can be found by believing it."""
    stranger = STRANGERS[name]()
    described = stranger.described.value_set()
    for j in range(1, len(stranger.described.joints) + 1):
        for symbol in ("M", "Fv", "Fc"):
            assert 0.09 < abs(described[f"{symbol}{j}"] / stranger.truth[f"{symbol}{j}"] - 1.0) < 0.26
