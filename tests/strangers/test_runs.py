"""What coverage rests on: simulated runs obey the friction that is called their truth, through every reversal."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynident.plant import Payload
from tests.robots import tree_model
from tests.strangers.runs import (
    ARMS,
    FALLING,
    FALLING_VELOCITY,
    LEAD,
    LOAD,
    RATE,
    SLIDE,
    Run,
    _slides,
    _values,
    body,
    measured,
    simulate,
)
from tests.strangers.stranger import Stranger

PERIOD = 6.0  # [s]
QUICK = ("gantry_arm", "light_arm")  # which no other test knows
SATURATED = 10.0  # widths of velocity beyond which a tanh is a sign
SMALL = 0.02  # of the standard deviation of measured torque


def momentum_balance(arm: Stranger, found: Run, payload: Payload | None = None) -> np.ndarray:
    """(n - 1, n_joints) mean dry friction over each sampling period: what is missing in the balance of momentum.

    d(M dq)/dt = tau - Fv dq - Fo - f + C^T dq - g by the trapezoidal rule, with the links that are called the truth.
    No friction law enters, and torque that is stamped half a sample off would show.
    """
    model, n = tree_model(arm.described.with_values("truth", arm.truth)), found.q.shape[1]
    model.armature = _values(arm.truth, "Ia", n)
    if payload is not None:
        xx, xy, xz, yy, yz, zz = payload.inertia
        own = pin.Inertia(payload.mass, np.array(payload.com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        frame = arm.described.joints[-1].after
        model.appendBodyToJoint(n, own, pin.SE3(frame.rotation, frame.translation))
    data, viscous, offset = model.createData(), _values(arm.truth, "Fv", n), _values(arm.truth, "Fo", n)
    momentum, force = np.zeros((2, *found.q.shape))
    for k, (q, dq, tau) in enumerate(zip(found.q, found.dq, found.tau, strict=True)):
        upper = np.triu(pin.crba(model, data, q))
        momentum[k] = (upper + np.triu(upper, 1).T) @ dq
        turning = pin.computeCoriolisMatrix(model, data, q, dq).T @ dq
        force[k] = tau - viscous * dq - offset + turning - pin.computeGeneralizedGravity(model, data, q)
    return 0.5 * (force[1:] + force[:-1]) - RATE * np.diff(momentum, axis=0)


def cases():
    for name in ARMS:
        for width in (0.0, 0.003, 0.062):
            yield pytest.param(name, width, marks=[] if name in QUICK else [pytest.mark.full])


@pytest.mark.parametrize(("name", "width"), list(cases()))
def test_momentum_balances_with_the_dry_friction_of_the_truth(name, width):
    arm = ARMS[name]()
    payload = body(arm) if width else None
    found = simulate(arm, 0, PERIOD, width, payload)
    begin = round(LEAD * RATE)
    friction = momentum_balance(arm, found, payload)[begin:] / arm.torque_noise
    before, after = found.dq[begin:-1], found.dq[begin + 1 :]
    coulomb = _values(arm.truth, "Fc", friction.shape[1]) / arm.torque_noise
    unit = width * np.where(_slides(arm.described), SLIDE, 1.0)
    one_way = (before * after > 0.0) & (np.minimum(np.abs(before), np.abs(after)) > SATURATED * unit)
    assert one_way.mean() > 0.4
    assert np.abs(friction - coulomb * np.sign(before))[one_way].max() < SMALL
    assert np.all(np.abs(friction) < coulomb + SMALL)
    if width == 0.0:  # joints stick, all the way to rest, and nothing else is left between sliding and sticking
        stuck = (before == 0.0) & (after == 0.0)
        assert np.all(stuck.mean(axis=0) > 0.01)
        assert np.all((~one_way & ~stuck).mean(axis=0) < 0.005)
    if width > 0.02:  # velocity over width is nearly a line within a sample: the mean of its tanh is known
        x, y = before / unit, after / unit
        mean = (np.logaddexp(y, -y) - np.logaddexp(x, -x)) / np.where(y == x, 1.0, y - x)
        assert np.sqrt(np.mean((friction - coulomb * mean) ** 2)) < SMALL


@pytest.mark.parametrize("name", QUICK)
def test_friction_falls_with_velocity_and_grows_with_the_load(name):
    """In sliding motion what the balance lacks is Tustin's curve and a share of what the links ask for, by hand."""
    arm, width = ARMS[name](), 0.02
    found = simulate(arm, 0, PERIOD, width, law="both")
    begin, n = round(LEAD * RATE), found.q.shape[1]
    friction = momentum_balance(arm, found)[begin:] / arm.torque_noise
    unit = np.where(_slides(arm.described), SLIDE, 1.0)
    before, after = found.dq[begin:-1], found.dq[begin + 1 :]
    one_way = (before * after > 0.0) & (np.minimum(np.abs(before), np.abs(after)) > SATURATED * width * unit)
    model = tree_model(arm.described.with_values("truth", arm.truth))
    data, states = model.createData(), zip(found.q, found.dq, np.gradient(found.dq, 1.0 / RATE, axis=0), strict=True)
    links = np.array([pin.rnea(model, data, *state) for state in states])[begin:]
    middle, load = 0.5 * (before + after), 0.5 * (links[1:] + links[:-1])
    curve = 1.0 + FALLING * np.exp(-np.abs(middle) / (FALLING_VELOCITY * unit))
    wanted = (_values(arm.truth, "Fc", n) * curve + LOAD * np.abs(load)) * np.sign(before) / arm.torque_noise
    assert one_way.mean() > 0.4
    assert np.quantile(np.abs(friction - wanted)[one_way], 0.99) < 5.0 * SMALL


def test_a_period_ends_as_it_begins():
    found = simulate(ARMS["scara"](), 1, PERIOD)
    begin = round(LEAD * RATE)
    np.testing.assert_allclose(found.q[-1], found.q[begin], atol=1e-8)
    np.testing.assert_allclose(found.tau[-1], found.tau[begin], atol=1e-5)


def test_repeats_differ_by_noise_alone_and_torque_is_late_by_the_delay():
    arm = ARMS["gantry_arm"]()
    found = simulate(arm, 1, PERIOD)
    begin = round(LEAD * RATE)
    first, second = measured(arm, found, 250, 2, 0, delay=4e-3)
    (joined,) = measured(arm, found, 250, 2, 0, delay=4e-3, joined=True)
    assert len(first.time) == PERIOD * 250
    for j in range(4):
        q, tau = (np.concatenate([log.channels[f"{kind}{j + 1}"] for log in (first, second)]) for kind in ("q", "tau"))
        np.testing.assert_array_equal(joined.channels[f"tau{j + 1}"], tau)
        assert np.abs(q - np.tile(found.q[begin:-1:4, j], 2)).max() < 2.5 * arm.resolution[j]
        noise = tau - np.tile(found.tau[begin - 4 : -5 : 4, j], 2)
        assert noise.std() == pytest.approx(arm.torque_noise[j], rel=0.1)
        assert np.corrcoef(noise.reshape(2, -1))[0, 1] == pytest.approx(0.0, abs=0.1)
