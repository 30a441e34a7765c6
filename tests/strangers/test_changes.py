"""The record of a picked payload: provisional when it is noticed, refined when two seconds of motion have followed."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest

import dynident as di
from dynident.logs.log import joint_positions, row_torques
from dynident.report.terminal.live import _change
from tests.strangers import scara
from tests.strangers.methods import BODY, PICKED


@pytest.fixture(scope="module")
def samples():
    """Stamps, positions and torques of the SCARA, which picks the body in motion."""
    log, robot = scara().log(203, payload=BODY, payload_at=PICKED), scara().described
    return log.time, joint_positions(log, robot), row_torques(log, robot)


@pytest.fixture(scope="module")
def fit():
    return di.identify(scara().described, [scara().log(3), scara().log(103)], friction="basic")


def live(fit) -> di.OnlineIdentifier:
    return di.OnlineIdentifier(scara().described, prior=fit, payload=True)


def feed(found: di.OnlineIdentifier, samples, start: float, stop: float) -> di.online.OnlineState:
    own = (samples[0] > start) & (samples[0] <= stop)
    found.update_many(*(x[own] for x in samples))
    return found.state()


@pytest.fixture(scope="module")
def states(fit, samples) -> list[di.online.OnlineState]:
    found, times = live(fit), np.arange(0.0, 12.2, 0.2)
    return [feed(found, samples, start, stop) for start, stop in itertools.pairwise(times)]


def test_the_bracket_holds_the_instant_and_the_mass_has_settled(states):
    (change,) = states[-1].changes
    assert change.kind == "pick"
    assert change.before <= PICKED <= change.time
    assert change.time - change.before < 0.05
    assert not change.provisional
    assert abs(change.instant - PICKED) < 0.004  # two samples
    assert abs(change.mass_after - BODY.mass) < 4.0 * change.mass_after_std < 0.02
    assert abs(change.mass_before) < 4.0 * change.mass_before_std < 0.2


def test_it_is_provisional_until_a_window_of_motion_has_followed(states):
    noticed = [state for state in states if state.changes]
    first, last = noticed[0].changes[0], noticed[-1].changes[0]
    assert first.provisional
    assert first.before < PICKED < first.time
    assert first.time - first.before > last.time - last.before
    assert first.mass_after_std > last.mass_after_std
    for state in noticed:
        (change,) = state.changes
        since = state.time - state.delay - PICKED
        assert change.provisional if since < 2.0 else since < 3.0 or not change.provisional
        assert abs(change.mass_after - BODY.mass) < 6.0 * change.mass_after_std
        if change.provisional:
            assert change.mass_after == state.payload.mass
        else:
            assert change == last
    assert _change(first).endswith("kg, provisional")
    assert _change(last).startswith("  pick at 4.00 s ± ")
    assert f"noticed at {last.found:.2f} s" in _change(last)


def test_plain_data(states):
    printed = json.loads(json.dumps(states[-1].as_dict()["changes"], allow_nan=False))
    (change,) = states[-1].changes
    assert printed == [dataclasses.asdict(change)]


@pytest.mark.parametrize("stop", [3.9, 4.8, 5.5])
def test_a_checkpoint_goes_on_with_the_same_record(fit, samples, states, tmp_path, stop):
    """Before the pick, before it is noticed or just after, and before it settles."""
    found = live(fit)
    feed(found, samples, 0.0, stop)
    found.save(tmp_path / "c.npz")
    again = di.OnlineIdentifier.load(tmp_path / "c.npz", scara().described)
    (change,) = feed(again, samples, stop, 12.0).changes
    (whole,) = feed(live(fit), samples, 0.0, 12.0).changes
    assert (change.kind, change.provisional) == (whole.kind, whole.provisional)
    for name in (
        "time",
        "before",
        "instant",
        "found",
        "mass_before",
        "mass_after",
        "mass_before_std",
        "mass_after_std",
    ):
        assert getattr(change, name) == pytest.approx(getattr(whole, name), rel=1e-7), name
