"""Positions that jump: dropped, or a new beginning; never taken for motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.online import identifier as identifier_module
from dynident.online.outliers import OutlierGate, velocity_limits
from dynident.online.thresholds import THRESHOLDS
from tests.online.made import BODY, TERMS, arm, feed, motion, torque

STEP = 0.01  # [s]
RATE = 250.0


def gate() -> OutlierGate:
    return OutlierGate(np.array([2.0, 2.0]), STEP)  # 20 mrad per sample


def smooth(n: int) -> tuple[np.ndarray, np.ndarray]:
    t = STEP * np.arange(n)
    return t, np.column_stack([np.sin(t), np.cos(t), 5.0 * t, -5.0 * t])  # positions, then what comes beside them


def through(t, values, *, size: int | None = None) -> tuple[OutlierGate, list[int], np.ndarray]:
    """What passes: places where the filters are to start again, and stamps; sample by sample without a size."""
    found, restarts, stamps = gate(), [], []
    for first in range(0, len(t), size or 1):
        part = slice(first, first + (size or 1))
        if size is not None:
            passed = list(found.push_many(t[part], values[part]))
        elif found.passes(float(t[first]), values[first]):
            passed = [(False, t[part], values[part])]
        else:
            passed = found.push(float(t[first]), values[first])
        for restart, own, signals in passed:
            assert len(own) == len(signals)
            restarts += [len(stamps)] * restart
            stamps += own.tolist()
    return found, restarts, np.array(stamps)


@pytest.mark.parametrize("size", [None, 1, 7, 200])
class TestSamplesAndBlocks:
    def test_smooth_motion_passes_as_it_is(self, size):
        t, values = smooth(200)
        found, restarts, stamps = through(t, values, size=size)
        assert (found.jumps, found.glitches, restarts) == (0, 0, [])
        np.testing.assert_array_equal(stamps, t)

    def test_a_sample_that_jumps_and_returns_is_dropped(self, size):
        t, values = smooth(200)
        values[[50, 51, 120], 1] += [0.3, -0.3, 2.0]  # two different ones in a row, and one alone
        found, restarts, stamps = through(t, values, size=size)
        assert (found.jumps, found.glitches, restarts) == (0, 3, [])
        np.testing.assert_array_equal(stamps, np.delete(t, [50, 51, 120]))

    def test_motion_that_goes_on_elsewhere_is_a_new_beginning(self, size):
        t, values = smooth(200)
        values[100:, 0] += 0.5
        found, restarts, stamps = through(t, values, size=size)
        assert (found.jumps, found.glitches, restarts) == (1, 0, [100])
        np.testing.assert_array_equal(stamps, t)

    def test_a_joint_faster_than_its_limit_is_believed(self, size):
        t, values = smooth(200)
        values[:, 0] = 3.0 * t
        found, restarts, stamps = through(t, values, size=size)
        assert (found.jumps, found.glitches, restarts) == (0, 0, [])
        np.testing.assert_array_equal(stamps, t)
        assert found.limits[0] == pytest.approx(THRESHOLDS.velocity_margin * 3.0)

    def test_gaps_and_late_samples_are_left_to_the_filters(self, size):
        t, values = smooth(200)
        t[100:] += 1.0  # after a gap a joint may be anywhere
        values[100:, 0] += 3.0
        t[150] = t[148]
        found, restarts, stamps = through(t, values, size=size)
        assert (found.jumps, found.glitches, restarts) == (0, 0, [])
        np.testing.assert_array_equal(stamps, t)

    def test_a_late_sample_while_one_waits_tells_nothing(self, size):
        t, values = smooth(100)
        values[50, 0] += 1.0
        t, values = np.insert(t, 51, t[48]), np.insert(values, 51, values[48], axis=0)
        found, restarts, stamps = through(t, values, size=size)
        assert (found.jumps, found.glitches, found.late, restarts) == (0, 1, 1, [])
        assert t[50] not in stamps


def test_what_waits_is_kept(tmp_path):
    t, values = smooth(100)
    values[50:, 0] += 1.0
    first, second = gate(), gate()
    list(first.push_many(t[:51], values[:51]))
    second.restore(first.as_arrays())
    (restart, own, _), *_ = second.push_many(t[51:], values[51:])
    assert restart
    assert own[0] == t[50]
    assert second.jumps == 1


def test_limits_are_those_of_the_robot_or_generous():
    robot = di.load_robot("ur10e")
    stated = [robot.joints[i].limits.velocity for i in robot.active]
    np.testing.assert_allclose(velocity_limits(robot), THRESHOLDS.velocity_margin * np.array(stated))
    unstated = zip(arm().joints, (None, 0.0) * 3, strict=True)
    joints = [replace(joint, limits=replace(joint.limits, velocity=x)) for joint, x in unstated]
    sliding = [replace(joints[0], kind="prismatic"), *joints[1:]]
    np.testing.assert_array_equal(
        velocity_limits(replace(arm(), joints=tuple(joints))), np.full(6, THRESHOLDS.velocity_rad_s)
    )
    assert velocity_limits(replace(arm(), joints=tuple(sliding)))[0] == THRESHOLDS.sliding_velocity_m_s


class TestEstimates:
    """A glitch is 0.3 rad of one joint in one sample: some 20 000 rad/s² once it is differentiated."""

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls):
        t, q, dq, ddq = motion(10.0, RATE)
        return t, q, torque(arm(), q, dq, ddq, load=BODY, noise=0.005)

    @pytest.fixture(scope="class")
    @classmethod
    def spoilt(cls, data):
        """Glitches of random joints, and a log that is cut and glued: half a second is missing, the stamps go on."""
        t, q, tau = (x.copy() for x in data)
        rng = np.random.default_rng(4)
        places = rng.choice(np.arange(60, len(t) - 400, 9), 20, replace=False)
        q[places, rng.integers(0, 6, 20)] += 0.3 * rng.choice([-1.0, 1.0], 20)
        cut = 1500
        kept = np.r_[0:cut, cut + 125 : len(t)]
        return t[: len(kept)], q[kept], tau[kept]

    def state(self, data, *, blocks: bool):
        found = di.OnlineIdentifier(arm(), terms=TERMS, prior=arm().default_values, payload=True)
        found.update_many(*data) if blocks else feed(found, *data)
        return found.state()

    @pytest.mark.parametrize("blocks", [True, False])
    def test_a_stream_with_glitches_ends_with_nearly_the_same(self, data, spoilt, blocks):
        clean, found = self.state(data, blocks=blocks), self.state(spoilt, blocks=blocks)
        assert found.counters["glitches"] == 20
        assert found.counters["jumps"] == found.counters["restarts"] == 1
        assert clean.counters["jumps"] == clean.counters["glitches"] == 0
        assert found.verdict.enough
        assert found.payload.mass == pytest.approx(clean.payload.mass, rel=2e-3)
        assert found.changes == ()
        assert (np.abs(found.values - clean.values) < 3.0 * clean.std).all()

    def test_without_the_gate_they_spoil_it(self, data, spoilt, monkeypatch):
        monkeypatch.setattr(identifier_module, "velocity_limits", lambda robot: np.full(6, np.inf))
        state = self.state(spoilt, blocks=True)
        (change,) = state.changes  # the clean rows after the last glitch pass for a body that is picked
        assert abs(change.mass_before / 2.5 - 1.0) > 0.1
        assert (state.relative_error > 0.1).all()

    def test_checkpoints_keep_the_counters(self, spoilt, tmp_path):
        first = di.OnlineIdentifier(arm(), terms=TERMS, prior=arm().default_values, payload=True)
        first.update_many(*(x[:1501] for x in spoilt))  # the first sample behind the cut waits
        first.save(tmp_path / "c.npz")
        second = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
        second.update_many(*(x[1501:] for x in spoilt))
        whole = self.state(spoilt, blocks=True)
        assert second.state().counters == whole.counters
        np.testing.assert_allclose(second.state().values, whole.values, rtol=1e-7, atol=1e-9)
