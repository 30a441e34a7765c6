"""A fit whose friction has a memory, as `identify` makes it by default: beside a payload, and as a prior."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import dynident as di
from dynident.arrays import frozen
from dynident.dynamics.linearization import LinearizationPoint
from dynident.dynamics.terms import all_columns, resolve_terms
from dynident.dynamics.terms.term import MotionSamples
from dynident.estimate.prediction import TorqueModel
from dynident.online.rows import FollowedColumns
from dynident.report.terminal.live import live_view
from tests.online.made import BODY, arm, feed, motion
from tests.signals.made import make_log

RATE = 200.0
TERMS = "rigid,Ia,Fv,Fc(0.02),Fo,stop(0.05),load"


def machine(load: di.payload.Payload | None = None) -> TorqueModel:
    """The arm with friction that winds up and friction that grows with the load."""
    robot, terms = arm(), resolve_terms(TERMS)
    values = {name: float(x) for name, x in robot.value_set().items()}
    values |= {f"stop50_{i}": x for i, x in enumerate((6.0, 12.0, 5.0, 1.0, 0.8, 0.5), start=1)}
    values |= {f"load_{i}": 0.03 for i in range(1, 7)}
    for name, x in ({} if load is None else load.at(robot)).items():
        values[name] += x
    columns = all_columns(robot, terms)
    chi = np.array([values.get(column.name, 0.0) for column in columns])
    links = np.array([x for x, column in zip(chi, columns, strict=True) if column.term == "rigid"])
    return TorqueModel(robot, terms, frozen(chi), frozen(links))


def run(seconds: float, *, seed: int = 1, load: di.payload.Payload | None = None, start: float = 0.0):
    """Stamps, positions and torque of the machine."""
    t, q, dq, ddq = motion(seconds, RATE, seed=seed, velocity=0.8, start=start)
    tau = machine(load).torque(q, dq, ddq)
    return t, q, tau + 0.005 * tau.std(0) * np.random.default_rng(seed).normal(size=tau.shape)


@pytest.fixture(scope="module")
def logs():
    return [run(20.0, seed=seed) for seed in (1, 2)]


def identified(logs, friction: str) -> di.Fit:
    made = [make_log(arm(), t, q, di.joint_torque(arm(), tau)) for t, q, tau in logs]
    return di.identify(arm(), made, friction=friction, check="off")


@pytest.fixture(scope="module")
def fit(logs):
    return identified(logs[:1], "stop(0.05),load")


@pytest.fixture(scope="module")
def loaded():
    return run(12.0, seed=3, load=BODY)


def payload(fit, **options):
    return di.OnlineIdentifier(arm(), prior=fit, payload=True, **options)


def test_the_mass_is_found_with_the_memory_of_the_friction(logs, fit, loaded):
    found, basic = payload(fit), payload(identified(logs[:1], "basic"))
    for one in (found, basic):
        one.update_many(*loaded)
    state, plain = found.state(), basic.state()
    assert state.verdict.enough
    assert state.payload.mass == pytest.approx(2.5, rel=0.01)
    # Plain friction cannot follow springs that wind up over 50 mrad.
    assert np.mean(state.relative_error) < 0.5 * np.mean(plain.relative_error)
    assert state.payload.mass_std < 0.5 * plain.payload.mass_std


def test_samples_and_blocks_agree_through_rest_and_gaps(fit, loaded):
    t, q, tau = loaded
    t = t + 0.5 * (t > 6.0)  # a gap: springs begin unwound, as off-line
    q, tau = q.copy(), tau.copy()
    q[1800:2000], tau[1800:2000] = q[1800], tau[1800]
    one, many = payload(fit), payload(fit)
    feed(one, t, q, tau)
    for start in range(0, len(t), 333):
        part = slice(start, start + 333)
        many.update_many(t[part], q[part], tau[part])
    left, right = one.state(), many.state()
    assert left.counters == right.counters
    assert (left.counters["restarts"], left.counters["jumps"]) == (2, 1)  # where the rest ends, the motion is elsewhere
    assert left.rows == right.rows
    np.testing.assert_allclose(left.values, right.values, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(left.torque_error, right.torque_error, rtol=1e-6)


@pytest.mark.parametrize("cut", [1201, 1203])
def test_checkpoints_keep_the_memory(fit, loaded, tmp_path, cut):
    """In the middle of a box, and with springs wound up."""
    t, q, tau = loaded
    whole, first = payload(fit), payload(fit)
    for one, stop in ((whole, len(t)), (first, cut)):
        one.update_many(t[:stop], q[:stop], tau[:stop])
    first.save(tmp_path / "c.npz")
    second = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
    second.update_many(t[cut:], q[cut:], tau[cut:])
    np.testing.assert_allclose(second.state().values, whole.state().values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(second.state().std, whole.state().std, rtol=1e-9)


def test_columns_are_those_of_the_off_line_model(fit):
    """In pieces of any length, with the load from the rows or evaluated."""
    t, q, dq, ddq = motion(2.0, RATE, seed=5)
    found = FollowedColumns(payload(fit).known, 1.0 / RATE)
    assert found.links is not None
    load = LinearizationPoint(arm(), fit.reference).torque_at(q, dq, ddq)
    parts = [slice(a, a + 7) for a in range(0, len(t), 7)]
    columns = np.hstack([found.columns_first(*(x[part] for x in (t, q, dq, ddq, load))) for part in parts])
    course = fit.parameter_model.start()._course
    wanted = course.columns_first(MotionSamples.of_stretch(q, dq, ddq))
    np.testing.assert_allclose(columns, wanted, rtol=1e-12, atol=1e-12)
    found.links = None
    again = found.columns_first(t + 100.0, q, dq, ddq, np.zeros_like(q))
    np.testing.assert_allclose(again, wanted, rtol=1e-12, atol=1e-12)


class TestBaseParameters:
    """Without a payload the fit is a prior for links and plain friction, and the state says so."""

    def test_the_prior_is_its_links_and_the_nearest_plain_friction(self, fit, logs):
        found = di.OnlineIdentifier(arm(), prior=fit)
        state = found.state()
        assert not any(name.startswith(("stop", "load")) for name in state.names)
        links = [name for name in state.names if name in fit.names and not name.startswith(("Fv", "Fc"))]
        for name in links:
            assert state.values[state.names.index(name)] == fit[name]
        # The springs' friction is in the plain one: without it, Coulomb friction of joint 2 would lack 12 N·m.
        assert state.values[state.names.index("Fc2")] > fit["Fc2"] + 8.0
        (note,) = state.notes
        assert "stop(0.05), load of the fit are not estimated on-line" in note
        assert state.as_dict()["notes"] == [note]
        found.update_many(*logs[1])
        state = found.state()
        moments = [i for i, name in enumerate(state.names) if name.startswith("M")]
        off = [state.values[i] - fit[state.names[i]] for i in moments]
        size = max(abs(fit[state.names[i]]) for i in moments)
        assert np.abs(off).max() < 0.02 * size  # [kg·m] held by the fit, whatever plain friction leaves

    def test_checkpoints_and_the_live_view_keep_the_note(self, fit, tmp_path):
        found = di.OnlineIdentifier(arm(), prior=fit)
        found.save(tmp_path / "c.npz")
        assert di.OnlineIdentifier.load(tmp_path / "c.npz", arm()).state().notes == found.state().notes
        t, q, tau = run(2.0)
        *_, last = di.stream(arm(), make_log(arm(), t, q, di.joint_torque(arm(), tau)), prior=fit)
        console = Console(file=io.StringIO(), width=80, height=40)
        console.print(live_view(last, 40))
        assert "Note: stop(0.05), load of the fit are not" in console.file.getvalue()
