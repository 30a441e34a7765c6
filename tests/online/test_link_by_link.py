"""The recursion from the tip: against the off-line stages, its arithmetic, checkpoints, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.online.link_by_link import links_of, update_operations
from tests.online.made import TERMS, arm, feed, motion, torque, truth

RATE = 250.0
LINKED = {"estimator": "link-by-link", "terms": TERMS}
KINDS = ("directional", "exponential", "none")


@pytest.fixture(scope="module")
def data():
    t, q, dq, ddq = motion(10.0, RATE)
    return t, q, dq, ddq, torque(arm(), q, dq, ddq, noise=0.01)


def test_on_known_motion_it_is_the_off_line_procedure(data):
    """Khosla and Kanade's on-line variant, solved at once from all samples."""
    live = di.OnlineIdentifier(arm(), **LINKED, sigma=np.ones(6), rest_velocity=0.0, forgetting="none")
    live.update_motion(*data)
    state = live.state()
    wanted = di.estimate.sequential_online(arm(), data[1:], TERMS)
    assert state.names == wanted.names
    assert np.allclose(state.values, wanted.beta, rtol=1e-6, atol=1e-6 * np.abs(wanted.beta).max())
    # Noise is that of the last seconds here and of all rows there; residuals that follow each other are allowed for.
    assert np.all(state.std < 2.0 * wanted.std)
    assert np.all(state.std > 0.5 * wanted.std)
    assert state.verdict.enough


@pytest.mark.parametrize("name", ["sr400", "cylindrical"])
def test_without_noise_it_finds_the_truth(name):
    robot = arm(name)
    n = len(robot.joint_names)
    t, q, dq, ddq = motion(10.0, RATE, n=n)
    live = di.OnlineIdentifier(robot, **LINKED, rest_velocity=0.0, forgetting="none")
    live.update_motion(t, q, dq, ddq, torque(robot, q, dq, ddq))
    assert np.allclose(live.values, truth(robot), atol=1e-6 * np.abs(truth(robot)).max())


def test_samples_one_by_one_are_samples_together(data):
    t, q, _, _, tau = data
    one, many = (di.OnlineIdentifier(arm(), **LINKED) for _ in range(2))
    feed(one, t, q, tau)
    for first in range(0, len(t), 300):
        many.update_many(*(x[first : first + 300] for x in (t, q, tau)))
    assert np.allclose(one.state().values, many.state().values, rtol=1e-6, atol=1e-8)
    assert np.allclose(one.state().std, many.state().std, rtol=1e-6)


@pytest.mark.parametrize("forgetting", KINDS)
def test_what_changes_is_followed(forgetting):
    """Friction grows by half after 20 s; with a memory of 5 s it is known again after 40 more."""
    t, q, dq, ddq = motion(10.0, 100.0)
    live = di.OnlineIdentifier(arm(), **LINKED, rest_velocity=0.0, forgetting=forgetting, memory=5.0)
    before, after = (torque(arm(), q, dq, ddq, Fv6=x) for x in (0.04, 0.06))
    for k in range(6):
        live.update_motion(t + 10.0 * k, q, dq, ddq, before if k < 2 else after)
    state = live.state()
    found = state.values[state.names.index("Fv6")]
    low, high = {"exponential": (0.0599, 0.0601), "directional": (0.058, 0.06), "none": (0.05, 0.057)}[forgetting]
    assert low < found < high


def test_a_checkpoint_goes_on_where_it_was(data, tmp_path):
    t, q, _, _, tau = data
    whole, part = (di.OnlineIdentifier(arm(), **LINKED, memory=4.0) for _ in range(2))
    whole.update_many(t[:1500], q[:1500], tau[:1500])
    part.update_many(t[:1500], q[:1500], tau[:1500])
    part.save(tmp_path / "c.npz")
    again = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
    for one in (whole, again):
        one.update_many(t[1500:], q[1500:], tau[1500:])
    assert np.array_equal(whole.state().values, again.state().values)
    assert np.array_equal(whole.state().std, again.state().std)


def test_joints_that_rest_leave_their_parameters_open(data):
    t, q, dq, ddq, _ = data
    keep = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    tau = torque(arm(), q * keep, dq * keep, ddq * keep, noise=0.01)
    live = di.OnlineIdentifier(arm(), **LINKED)
    live.update_many(t, q * keep, tau)
    state = live.state()
    assert not state.verdict.enough
    assert {"Fv1", "Fc1"} <= {name for name, known in zip(state.names, state.determined, strict=True) if not known}
    assert np.isinf(state.std[state.names.index("Fv1")])
    assert state.determined[state.names.index("Fv6")]


def test_every_parameter_is_identified_by_one_joint_and_its_arithmetic_is_counted():
    base = di.base_parameters(arm(), TERMS)
    links = links_of(base)
    assert sum(link.own.shape[1] for link in links) == base.n
    found = di.online.arithmetic(base)
    assert found["link by link"] < 0.4 * found["jointly"]
    assert found["jointly"] == update_operations(base.n + 1, base.n + 1, 6)
    # Two columns and a torque, one row: two reflectors, applied to two columns and to one.
    assert update_operations(2, 3, 1) == 2 * 7 + 8 * (2 + 1)
    state = di.OnlineIdentifier(arm(), **LINKED).state()
    assert state.notes == (
        f"operations for an instant in motion: {found['link by link']} link by link, {found['jointly']} jointly",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": "plant"}, "takes no prior"),
        ({"prior": "plant", "payload": True}, "is for a robot's parameters"),
        ({"floor": 0.1}, "takes no floor"),
        ({"project": 1.0}, "takes no project"),
        ({"detect": True}, "looks for no changes"),
        ({"estimator": "tip-first"}, "unknown choice 'tip-first'"),
    ],
)
def test_what_it_cannot_do_is_refused(options, words):
    with pytest.raises(di.InputError, match=words):
        di.OnlineIdentifier(arm(), **{**LINKED, **options})
