"""The UR10e without and with its load of 2.805 kg, one log after the other; skipped where the data is absent."""

from __future__ import annotations

import pytest

import dynident as di
from dynident.logs.log import joint_positions, row_torques
from tests.real.test_main_job import DATA, overlay

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"real data not found at {DATA}; set DYNIDENT_DATA")
MASS = 2.805  # [kg], as stated by those who made the logs


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    gains = "drive_gains: [11.97, 11.97, 9.84, 10.76, 10.76, 10.76]\n"
    return overlay(tmp_path_factory.mktemp("ur10e"), "ur10e", gains)


@pytest.fixture(scope="module")
def logs(robot):
    pairs = ("exc_50s_14h_{}", "exc_20s_{}_0131")
    names = [pair.format(kind) for pair in pairs for kind in ("unloaded", "loaded")]
    return {name: di.read_log(DATA / "ur10e" / f"{name}.csv.gz", robot) for name in names}


@pytest.fixture(scope="module")
def fit(robot, logs):
    return di.identify(robot, logs["exc_50s_14h_unloaded"], friction="basic")


@pytest.fixture(scope="module")
def default_fit(robot, logs):
    found = di.identify(robot, logs["exc_50s_14h_unloaded"])
    assert any(term.name == "stop" for term in found.predictive_base.terms)
    return found


def replay(found, robot, logs, names):
    """One log after the other, two seconds apart; where each begins, and the state after each."""
    begins, states, offset = [], [], 0.0
    for name in names:
        log = logs[name]
        t = log.time - log.time[0] + offset
        found.update_many(t, joint_positions(log, robot), row_torques(log, robot))
        begins.append(offset)
        states.append(found.state())
        offset = float(t[-1]) + 2.0
    return begins, states


@pytest.mark.parametrize(("pair", "off"), [("exc_50s_14h_{}", 0.015), ("exc_20s_{}_0131", 0.025)])
@pytest.mark.parametrize("session", ["none", "friction"])
def test_the_load_comes_and_goes(robot, logs, fit, pair, off, session):
    """With basic friction; the 20 s logs are of another month.

    Friction that grows with the load passes for mass there, so the bound is wider than beside a fit with defaults.
    """
    names = [pair.format(kind) for kind in ("unloaded", "loaded", "unloaded")]
    found = di.OnlineIdentifier(robot, prior=fit, payload=True, session=session)
    begins, (bare, loaded, released) = replay(found, robot, logs, names)
    assert bare.changes == ()
    assert bare.payload.present is False
    assert loaded.payload.present
    assert loaded.payload.mass == pytest.approx(MASS, rel=off)
    assert abs(loaded.payload.mass - MASS) < 2.0 * loaded.payload.mass_std
    assert released.payload.present is False
    pick, release = released.changes
    assert (pick.kind, release.kind) == ("pick", "release")
    for change, begin in ((pick, begins[1]), (release, begins[2])):
        # Where basic friction fits slow motion badly, the instant is uncertain by more than the rows say.
        assert change.before < begin < change.found
        assert change.found < begin + 9.0  # the logs begin with seconds of rest and slow motion


@pytest.mark.parametrize("pair", ["exc_50s_14h_{}", "exc_20s_{}_0131"])
def test_beside_a_fit_with_defaults(robot, logs, default_fit, fit, pair):
    """Friction with a memory is followed along the stream: smaller errors, and none but the true changes."""
    names = [pair.format(kind) for kind in ("unloaded", "loaded", "unloaded")]
    found, basic = (di.OnlineIdentifier(robot, prior=one, payload=True) for one in (default_fit, fit))
    begins, (bare, loaded, released) = replay(found, robot, logs, names)
    _, (_, plain, _) = replay(basic, robot, logs, names)
    assert [change.kind for change in released.changes] == ["pick", "release"]
    for change, begin in zip(released.changes, begins[1:], strict=True):
        assert change.before < begin < change.time + 0.5
    assert (bare.payload.present, loaded.payload.present, released.payload.present) == (False, True, False)
    assert loaded.payload.mass == pytest.approx(MASS, rel=0.013)
    assert abs(loaded.payload.mass - MASS) < 2.0 * loaded.payload.mass_std
    assert loaded.payload.mass_std < 0.6 * plain.payload.mass_std
    assert loaded.relative_error.mean() < 0.85 * plain.relative_error.mean()


def test_mass_within_five_percent_of_its_final_value_soon(robot, logs, fit):
    """The log begins with seconds of slow motion of a few joints; after some twelve the mass has settled."""
    log = logs["exc_50s_14h_loaded"]
    found = di.OnlineIdentifier(robot, prior=fit, payload=True)
    q, tau, seen = joint_positions(log, robot), row_torques(log, robot), []
    for first in range(0, len(log.time), 50):
        part = slice(first, first + 50)
        found.update_many(log.time[part], q[part], tau[part])
        state = found.state()
        if state.payload is not None and state.verdict.enough:
            seen.append((state.time - log.time[0], state.payload.mass))
    final = seen[-1][1]
    assert max(time for time, mass in seen if abs(mass / final - 1.0) > 0.05) < 12.5
    assert all(abs(mass / final - 1.0) < 0.2 for _, mass in seen)  # nothing was reported too early


def test_the_robot_itself_is_followed_through_both_logs(robot, logs, fit):
    """Base parameters with forgetting: after the loaded log they explain it as a fit of its own does."""
    found = di.OnlineIdentifier(robot, prior=fit, memory=15.0, lean=0.0)
    _, (bare, loaded) = replay(found, robot, logs, ["exc_50s_14h_unloaded", "exc_50s_14h_loaded"])
    assert (bare.relative_error[1:4] < 0.15).all()
    assert (loaded.relative_error[1:4] < 0.2).all()
    moved = dict(zip(loaded.names, loaded.values - bare.values, strict=True))
    moments = [abs(x) for name, x in moved.items() if name.startswith("M")]
    assert max(moments) > 1.0  # [kg·m]: 2.8 kg at the end of a forearm of 0.57 m
