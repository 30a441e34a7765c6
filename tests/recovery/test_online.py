"""On-line identification of machines that MuJoCo simulates: Khosla & Kanade's scheme end to end, and changes."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.logs.log import joint_positions, row_torques
from dynident.plant import Payload

TERMS = "rigid,Fv"
BODY = Payload(1.0, (0.01, -0.01, 0.04), (0.002, 0.0002, -0.0002, 0.0025, 0.0001, 0.0015))
PICKED = 2.0  # [s]
FRICTION = {f"Fv{i}": x for i, x in enumerate((4.0, 3.0, 1.0, 0.3, 0.2, 0.05), start=1)}


class WristAlone:
    """The last joint swings, the others are held."""

    duration = 4.0

    def sample(self, t):
        t = np.atleast_1d(np.asarray(t, dtype=float))
        q, dq, ddq = (np.zeros((len(t), 6)) for _ in range(3))
        w = 2.0 * np.pi
        q[:, 5], dq[:, 5], ddq[:, 5] = 0.5 * (1 - np.cos(w * t)), 0.5 * w * np.sin(w * t), 0.5 * w**2 * np.cos(w * t)
        return q, dq, ddq


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("cmu-dd-arm-6")


@pytest.fixture(scope="module")
def values(robot):
    return {name: float(x) for name, x in robot.value_set("plant").items()} | FRICTION


@pytest.fixture(scope="module")
def motion(robot, values):
    options = {"duration": 6.0, "seed": 1, "starts": 2, "kicks": 0, "iterations": 6, "safety": 0.6}
    return di.optimize_excitation(robot, values=values, terms=TERMS, **options).trajectory


@pytest.fixture(scope="module")
def runs(robot, values, motion):
    """Logs of the bare arm, of the arm that picks a body in motion, and of the arm after its friction has doubled."""
    options = {"rate": 500.0, "noise": 0.002, "bandwidth": 60.0}
    return {
        "bare": di.simulate(robot, motion, values=values, seed=1, **options).log,
        "picked": di.simulate(robot, motion, values=values, seed=2, payload=BODY, payload_at=PICKED, **options).log,
        "worn": di.simulate(robot, motion, values=values | {"Fv2": 6.0}, seed=3, **options).log,
        "wrist": di.simulate(robot, WristAlone(), values=values, seed=4, payload=BODY, **options).log,
    }


@pytest.fixture(scope="module")
def fit(robot, runs):
    """Links off-line."""
    return di.identify(robot, runs["bare"], terms=TERMS, check="off")


def signals(log, robot):
    return log.time, joint_positions(log, robot), row_torques(log, robot)


class TestPaperOne:
    """Khosla & Kanade 1987: links off-line, the payload on-line while the arm does its work."""

    @pytest.fixture(scope="class")
    @classmethod
    def states(cls, robot, runs, fit):
        t, q, tau = signals(runs["picked"], robot)
        found, states = di.OnlineIdentifier(robot, prior=fit, payload=True), []
        for i in range(len(t)):
            found.update(di.online.Sample(float(t[i]), q[i], tau[i]))
            if i % 100 == 99:
                states.append(found.state())
        return states

    def test_the_pick_is_found_in_motion(self, states):
        (change,) = states[-1].changes
        assert change.kind == "pick"
        assert change.before - 0.1 < PICKED < change.time + 0.1
        assert change.found < PICKED + 1.75
        assert change.mass_before == pytest.approx(0.0, abs=0.05)

    def test_the_mass_settles_within_five_seconds(self, states):
        final = states[-1].payload.mass
        assert final == pytest.approx(BODY.mass, rel=0.01)
        late = [s.time for s in states if s.time > PICKED and abs(s.payload.mass / final - 1.0) > 0.05]
        assert max(late) - PICKED < 1.5

    def test_all_ten_numbers(self, states):
        from dynident.payload.quantities import classical_numbers

        truth = classical_numbers(BODY.standard)
        numbers = states[-1].payload.numbers
        off = [(one.value - x) / one.std for one, x in zip(numbers, truth, strict=True) if one.value is not None]
        assert len(off) == 10
        assert np.abs(off).max() < 4.0

    def test_the_verdict_comes_with_the_motion(self, states):
        assert states[-1].verdict.enough
        before = [s for s in states if 1.0 < s.time < PICKED]
        assert all(s.payload.present is False for s in before)


def test_a_wrist_that_turns_alone_does_not_tell_the_mass(robot, runs, fit):
    found = di.OnlineIdentifier(robot, prior=fit, payload=True)
    found.update_many(*signals(runs["wrist"], robot))
    state = found.state()
    assert not state.verdict.enough
    assert "mass" in state.verdict.reason
    assert state.payload.numbers[0].value is None


def test_friction_that_doubles_is_followed(robot, runs, fit):
    found = di.OnlineIdentifier(robot, prior=fit, memory=6.0, lean=0.0)
    for number, name in enumerate(("bare", "worn", "worn", "worn")):
        t, q, tau = signals(runs[name], robot)
        found.update_many(t + 8.0 * number, q, tau)  # a rest of two seconds between runs
    state = found.state()
    assert state.values[state.names.index("Fv2")] == pytest.approx(6.0, rel=0.05)
    assert state.values[state.names.index("Fv3")] == pytest.approx(1.0, rel=0.05)
    assert state.verdict.enough
    assert state.counters["restarts"] == 3
