"""A payload on a known arm: found, its pick and release noticed, withheld where the motion does not determine."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.payload.quantities import classical_numbers
from tests.online.made import BODY, TERMS, arm, feed, motion, torque

RATE = 250.0
TRUTH = classical_numbers(BODY.standard)


def payload(**options):
    return di.OnlineIdentifier(arm(), terms=TERMS, prior=arm().default_values, payload=True, **options)


def run(identifier, loads, *, seconds=10.0, noise=0.01, every=None):
    """One motion after the other, with or without the body; the states on the way."""
    states = []
    for number, load in enumerate(loads):
        t, q, dq, ddq = motion(seconds, RATE, start=seconds * number)
        tau = torque(arm(), q, dq, ddq, load=load, noise=noise, seed=number)
        step = len(t) if every is None else round(every * RATE)
        for first in range(0, len(t), step):
            part = slice(first, first + step)
            identifier.update_many(t[part], q[part], tau[part])
            states.append(identifier.state())
    return states


def test_all_ten_numbers_within_their_deviations():
    (state,) = run(payload(sigma=np.full(6, 0.2)), [BODY])
    assert state.verdict.enough
    assert state.payload.present
    off = [(one.value - x) / one.std for one, x in zip(state.payload.numbers, TRUTH, strict=True) if one.value]
    assert len(off) >= 4
    assert np.abs(off).max() < 4.0
    assert state.payload.mass == pytest.approx(2.5, rel=0.01)


def test_rows_weigh_by_the_errors_of_the_stream():
    """A wrist ten times as noisy as the known robot says, and loaded from the first sample on."""
    t, q, dq, ddq = motion(12.0, RATE)
    tau = torque(arm(), q, dq, ddq, load=BODY)
    size = 0.01 * tau.std(0) * np.array([1.0, 1.0, 1.0, 1.0, 10.0, 1.0])
    tau += size * np.random.default_rng(3).normal(size=tau.shape)
    sigma = payload().known.sigma
    learnt, known = payload(), payload(sigma=sigma)
    for one in (learnt, known):
        one.update_many(t, q, tau)
    # In N·m either way; values that the noisy wrist moves less fit the other joints no worse.
    assert (learnt.state().torque_error < 1.02 * known.state().torque_error).all()
    assert learnt.state().payload.mass_std < 0.8 * known.state().payload.mass_std
    off = [(one.value - x) / one.std for one, x in zip(learnt.state().payload.numbers, TRUTH, strict=True) if one.value]
    assert np.abs(off).max() < 4.0
    again = payload()
    feed(again, t, q, tau)
    np.testing.assert_allclose(again.state().values, learnt.state().values, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(again.state().std, learnt.state().std, rtol=1e-6)


@pytest.mark.parametrize("stop", [3.0, 9.0])
def test_a_checkpoint_keeps_the_weights(tmp_path, stop):
    """Before the weights are known, and after."""
    t, q, dq, ddq = motion(12.0, RATE)
    tau = torque(arm(), q, dq, ddq, load=BODY, noise=0.01)
    whole, first, own = payload(), payload(), t <= stop
    whole.update_many(t, q, tau)
    first.update_many(t[own], q[own], tau[own])
    first.save(tmp_path / "c.npz")
    again = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
    again.update_many(t[~own], q[~own], tau[~own])
    np.testing.assert_allclose(again.state().values, whole.state().values, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(again.state().std, whole.state().std, rtol=1e-6)


def test_samples_and_blocks_agree():
    t, q, dq, ddq = motion(4.0, RATE)
    tau = torque(arm(), q, dq, ddq, load=BODY, noise=0.01)
    one, many = payload(), payload()
    feed(one, t, q, tau)
    many.update_many(t, q, tau)
    np.testing.assert_allclose(one.state().values, many.state().values, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.state().std, many.state().std, rtol=1e-6)


def test_pick_and_release_are_found_with_their_times():
    states = run(payload(), [None, BODY, None], every=2.5)
    pick, release = states[-1].changes
    assert (pick.kind, release.kind) == ("pick", "release")
    for change, at in ((pick, 10.0), (release, 20.0)):
        assert change.before <= at <= change.time
        assert change.time - change.before < 0.1
        assert not change.provisional
        assert at < change.found < at + 2.5
    for mass, std, true in (
        (pick.mass_before, pick.mass_before_std, 0.0),
        (pick.mass_after, pick.mass_after_std, 2.5),
        (release.mass_before, release.mass_before_std, 2.5),
        (release.mass_after, release.mass_after_std, 0.0),
    ):
        assert abs(mass - true) < 4.0 * std < 0.2
    # Half a second before the end of each part the old payload has left no trace.
    assert [round(states[i].payload.mass, 1) for i in (3, 7, 11)] == [0.0, 2.5, 0.0]
    assert [states[i].payload.present for i in (3, 7, 11)] == [False, True, False]
    assert "no payload" in states[3].verdict.reason
    # Errors of values that stopped to hold are not counted against those that came after them.
    assert all((states[i].relative_error < 2.0 * states[3].relative_error).all() for i in (5, 9))


def test_steady_payloads_are_left_alone():
    assert run(payload(), [BODY] * 4)[-1].changes == ()
    assert run(payload(), [None] * 4)[-1].changes == ()


def test_friction_of_the_session_is_reported_apart():
    plain, own = payload(), payload(session="friction")
    t, q, dq, ddq = motion(10.0, RATE)
    drifted = {f"Fv{i}": 1.3 * float(arm().value_set()[f"Fv{i}"]) for i in (1, 2, 3, 4, 5, 6)}
    tau = torque(arm(), q, dq, ddq, load=BODY, noise=0.005, **drifted)
    for one in (plain, own):
        one.update_many(t, q, tau)
    off = [abs(one.state().payload.mass / 2.5 - 1.0) for one in (plain, own)]
    assert off[1] < 0.01
    assert own.state().names[10].startswith("session ")


def test_motion_of_the_wrist_alone_does_not_tell_and_says_so():
    t, q, dq, ddq = motion(8.0, RATE)
    held = [np.where(np.arange(6) == 5, x, x[:1] * (i == 0)) for i, x in enumerate((q, dq, ddq))]
    found = payload()
    found.update_many(t, held[0], torque(arm(), *held, load=BODY, noise=0.01))
    state = found.state()
    assert not state.verdict.enough
    assert state.payload.present is None
    assert "mass" in state.verdict.reason
    assert state.payload.numbers[0].value is None


def test_checkpoints_keep_payload_and_changes(tmp_path):
    whole, first = payload(), payload()
    run(whole, [None, BODY])
    run(first, [None])
    first.save(tmp_path / "c.npz")
    second = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
    t, q, dq, ddq = motion(10.0, RATE, start=10.0)
    tau = torque(arm(), q, dq, ddq, load=BODY, noise=0.01, seed=1)
    second.update_many(t[:2000], q[:2000], tau[:2000])
    second.save(tmp_path / "c.npz")
    third = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
    third.update_many(t[2000:], q[2000:], tau[2000:])
    assert third.state().changes == whole.state().changes != ()
    np.testing.assert_allclose(third.state().values, whole.state().values, rtol=1e-7, atol=1e-9)


def test_a_payload_needs_a_known_robot():
    with pytest.raises(di.InputError, match="give prior"):
        di.OnlineIdentifier(arm(), terms=TERMS, payload=True)


def test_a_pick_at_rest_can_have_happened_at_any_time_of_it():
    t, q, dq, ddq = motion(8.0, RATE)
    still = round(3.0 * RATE)  # the motion stops for three seconds in the middle, when the arm is slowed down
    half = len(t) // 2
    ramp = np.clip(np.minimum(np.arange(half), np.arange(half)[::-1]) / RATE / 0.3, 0.0, 1.0)
    pace = np.concatenate([ramp, np.zeros(still), ramp])
    clock = np.concatenate([[0.0], np.cumsum(0.5 * (pace[1:] + pace[:-1]))]) / RATE
    fine = motion(12.0, 10.0 * RATE)
    q = np.stack([np.interp(clock, fine[0], x) for x in fine[1].T], axis=1)
    dq = np.gradient(q, 1.0 / RATE, axis=0)
    ddq = np.gradient(dq, 1.0 / RATE, axis=0)
    t = np.arange(len(q)) / RATE
    picked = (half + still / 2) / RATE
    tau = np.where((t < picked)[:, None], torque(arm(), q, dq, ddq), torque(arm(), q, dq, ddq, load=BODY))
    tau += 0.005 * tau.std(0) * np.random.default_rng(0).normal(size=tau.shape)
    found = payload()
    found.update_many(t, q, tau)
    (change,) = found.state().changes
    assert change.before < picked < change.time
    assert 2.0 < change.time - change.before < 3.6
    assert abs(change.mass_after - 2.5) < 4.0 * change.mass_after_std


def test_a_release_soon_after_the_pick_completes_the_record_of_the_pick():
    t, q, dq, ddq = motion(20.0, RATE)
    with_body = (t >= 10.0) & (t < 11.6)
    tau = np.where(with_body[:, None], torque(arm(), q, dq, ddq, load=BODY), torque(arm(), q, dq, ddq)) + 0.01 * torque(
        arm(), q, dq, ddq
    ).std(0) * np.random.default_rng(1).normal(size=q.shape)
    found = payload()
    found.update_many(t, q, tau)
    pick, release = found.state().changes
    for change, at in ((pick, 10.0), (release, 11.6)):
        assert not change.provisional
        assert change.before <= at <= change.time
        assert change.time - change.before < 0.3
    assert abs(pick.mass_after - 2.5) < 4.0 * pick.mass_after_std
    assert abs(release.mass_after) < 4.0 * release.mass_after_std


def test_checkpoints_of_earlier_versions_are_read(tmp_path):
    """They do not know what was refined, nor the rows that tell."""
    found = payload()
    run(found, [None, BODY])
    found.save(tmp_path / "new.npz")
    more = ("dynident", "engine.refined", "engine.watched", "engine.before", "engine.recent.", "known.inflation")
    with np.load(tmp_path / "new.npz") as stored:
        np.savez(tmp_path / "old.npz", **{name: stored[name] for name in stored.files if not name.startswith(more)})
    again = di.OnlineIdentifier.load(tmp_path / "old.npz", arm())
    (change,) = again.state().changes
    assert (change.mass_after, change.provisional) == (found.state().changes[0].mass_after, False)
    assert change.as_dict()["mass_after_std"] is None
    t, q, dq, ddq = motion(10.0, RATE, start=20.0)
    again.update_many(t, q, torque(arm(), q, dq, ddq, noise=0.01))
    assert [one.kind for one in again.state().changes] == ["pick", "release"]
