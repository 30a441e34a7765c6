from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import UnknownNameError
from dynident.signals import SignalOptions, observe
from tests.signals.made import Fourier, Pieces, exact_log, make_log, relative, stamps

RATE = 200.0
MOTION = Fourier.random(2, 1)


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("pendulum-2")


@pytest.fixture(scope="module")
def log(robot):
    return exact_log(robot, MOTION, stamps(20.0, RATE), velocities=True)


def collected(observations, delays=None):
    """time, q, dq, ddq, inner and the torques (n_delays, n_samples, n_joints) of all blocks."""
    blocks = list(observations.motion(delays))
    names = ("time", "q", "dq", "ddq", "inner")
    joined = {name: np.concatenate([getattr(b, name) for b in blocks]) for name in names}
    return joined | {"tau": np.concatenate([b.tau for b in blocks], axis=1)}


class TestBlocks:
    """Samples first, as the filters give them: a view whose joints are contiguous."""

    @pytest.mark.parametrize("source", ["position", "measured"])
    @pytest.mark.parametrize("sizes", [(400,), (2001,)])
    def test_shapes_and_order(self, robot, log, sizes, source):
        one = observe(Pieces(log, sizes), robot, SignalOptions(band=3.0, velocity_source=source, jerk=True))
        blocks = list(one.motion([0.0, 0.003]))
        assert len(blocks) > 1
        for block in blocks:
            n = len(block)
            for name in ("q", "dq", "ddq", "dddq"):
                array = getattr(block, name)
                assert array.shape == (n, 2), name
                assert array.flags.f_contiguous, name
            assert block.tau.shape == (2, n, 2)
            assert all(tau.flags.f_contiguous for tau in block.tau)
            assert block.time.shape == block.inner.shape == (n,)
            assert block.restart == (block.first == 0)
        assert [block.last for block in blocks] == [False] * (len(blocks) - 1) + [True]

    def test_without_jerk_and_torque(self, robot, log):
        for block in observe(log, robot).motion(()):
            assert block.dddq.shape == (len(block), 0)
            assert block.tau.shape == (0, len(block), 2)

    def test_parts_are_views_that_follow_each_other(self, robot, log):
        block = next(observe(log, robot).motion())
        parts = [block.part(first, first + 100) for first in range(0, len(block), 100)]
        for name in ("time", "q", "dq", "ddq", "inner"):
            np.testing.assert_allclose(np.concatenate([getattr(p, name) for p in parts]), getattr(block, name))
        np.testing.assert_array_equal(np.concatenate([p.tau for p in parts], axis=1), block.tau)
        assert all(np.shares_memory(part.q, block.q) for part in parts)
        assert [part.restart for part in parts] == [block.restart] + [False] * (len(parts) - 1)
        assert [part.last for part in parts] == [False] * (len(parts) - 1) + [block.last]


class TestMotion:
    def test_derivatives_are_those_of_the_motion(self, robot, log):
        found = collected(observe(log, robot))
        q, dq, ddq = MOTION(found["time"])
        inner = found["inner"]
        assert 0.85 < inner.mean() < 1.0
        for name, exact, tolerance in (("q", q, 1e-4), ("dq", dq, 1e-4), ("ddq", ddq, 1e-3)):
            assert np.abs(found[name] - exact)[inner].max() < tolerance * np.abs(exact).max()
        # Near the ends signals are continued by guess, and the guess is good.
        assert np.abs(found["ddq"] - ddq).max() < 0.3 * np.abs(ddq).max()
        assert np.abs(found["dq"] - dq).max() < 0.02 * np.abs(dq).max()

    def test_samples_are_as_many_as_the_band_needs(self, robot, log):
        observations = observe(log, robot, SignalOptions(band=2.0))
        assert observations.step == 6
        blocks = list(observations.motion())
        assert blocks[0].rate == pytest.approx(RATE / 6)
        found = collected(observations)
        np.testing.assert_allclose(found["time"], log.time[::6], atol=1e-9)
        assert [block.last for block in blocks] == [False] * (len(blocks) - 1) + [True]

    @pytest.mark.parametrize("source", ["position", "measured"])
    @pytest.mark.parametrize("sizes", [(1, 400), (37, 1, 250), (2001,)])
    def test_blocks_do_not_show(self, robot, log, sizes, source):
        options = SignalOptions(delay=0.003, velocity_source=source)
        whole = collected(observe(log, robot, options))
        pieces = collected(observe(Pieces(log, sizes), robot, options))
        np.testing.assert_array_equal(whole["inner"], pieces["inner"])
        for name in ("time", "q", "dq", "ddq", "tau"):
            np.testing.assert_allclose(whole[name], pieces[name], atol=1e-11 * np.abs(whole[name]).max())

    def test_each_stretch_has_its_own_ends(self, robot, log):
        t = log.time
        cut = log.samples((t < 6.0) | (t >= 7.0))
        found = collected(observe(cut, robot, SignalOptions(band=5.0)))
        border = np.searchsorted(found["time"], 6.5)
        reach = observe(cut, robot, SignalOptions(band=5.0)).reach
        outside = found["time"][~found["inner"]]
        ends = np.min(np.abs(outside[:, None] - np.array([0.0, 5.995, 7.0, 19.995])), axis=1)
        assert ends.max() <= reach + 1e-9
        assert not found["inner"][border]
        assert not found["inner"][border - 1]
        _, _, ddq = MOTION(found["time"])
        assert np.abs(found["ddq"] - ddq)[found["inner"]].max() < 1e-2 * np.abs(ddq).max()

    def test_measured_velocities_are_used_when_asked_for(self, robot, log):
        wrong = di.Log("wrong", "0", log.time, {**log.channels, "dq1": np.full(len(log), 0.25)})
        found = collected(observe(wrong, robot, SignalOptions(velocity_source="measured")))
        np.testing.assert_allclose(found["dq"][:, 0], 0.25)
        np.testing.assert_allclose(found["ddq"][:, 0], 0.0, atol=1e-8)
        _, dq, ddq = MOTION(found["time"])
        inner = found["inner"]
        assert relative(found["dq"][inner, 1], dq[inner, 1]) < 1e-3
        assert relative(found["ddq"][inner, 1], ddq[inner, 1]) < 1e-3
        derived = collected(observe(wrong, robot))
        assert relative(derived["dq"], dq) < 1e-2

    def test_measured_velocities_that_are_not_there_are_named(self, robot):
        bare = exact_log(robot, MOTION, stamps(5.0, RATE))
        with pytest.raises(di.LogError, match="made: has no column dq1, dq2"):
            list(observe(bare, robot, SignalOptions(velocity_source="measured")).motion())

    @pytest.mark.parametrize("name", ["five-point", "central", "savitzky-golay"])
    def test_each_differentiator_differentiates(self, robot, log, name):
        found = collected(observe(log, robot, SignalOptions(differentiator=name)))
        _, dq, ddq = MOTION(found["time"])
        assert relative(found["dq"][found["inner"]], dq[found["inner"]]) < 2e-3
        assert relative(found["ddq"][found["inner"]], ddq[found["inner"]]) < 2e-3

    def test_the_causal_differentiator_is_late(self, robot, log):
        """By two samples for the velocity and four for the acceleration."""
        found = collected(observe(log, robot, SignalOptions(differentiator="five-point causal")))
        _, dq, _ = MOTION(found["time"] - 2 / RATE)
        _, _, ddq = MOTION(found["time"] - 4 / RATE)
        assert relative(found["dq"][found["inner"]], dq[found["inner"]]) < 2e-3
        assert relative(found["ddq"][found["inner"]], ddq[found["inner"]]) < 2e-3

    def test_several_delays_at_once(self, robot):
        t = stamps(20.0, RATE)
        late = exact_log(robot, MOTION, t, terms="rigid", delay=0.0123)
        found = collected(observe(late, robot), delays=[0.0, 0.0123, -0.004])
        assert found["tau"].shape == (3, len(found["time"]), 2)
        inner, at = found["inner"], found["time"]
        for i, delay in enumerate([0.0, 0.0123, -0.004]):
            exact = di.inverse_dynamics(robot, *MOTION(at - 0.0123 + delay), "rigid")
            assert relative(found["tau"][i, inner], exact[inner]) < 1e-3

    def test_torque_is_left_alone_when_not_wanted(self, robot, log):
        bare = make_log(robot, log.time, MOTION(log.time)[0])
        found = collected(observe(bare, robot), delays=())
        assert found["tau"].shape == (0, len(found["time"]), 2)
        with pytest.raises(di.LogError, match="made: has no column tau1, tau2"):
            list(observe(bare, robot).motion())

    def test_going_through_again_gives_the_same(self, robot, log):
        observations = observe(log, robot)
        for a, b in zip(collected(observations).values(), collected(observations).values(), strict=True):
            np.testing.assert_array_equal(a, b)


class TestBand:
    def test_band_follows_the_motion(self, robot, log):
        slow = observe(log, robot).band
        assert 18 * 0.3 < slow < 18 * 0.6
        fast = observe(di.Log("fast", "0", log.time / 3, log.channels), robot).band
        assert fast == pytest.approx(3 * slow, rel=0.1)
        assert observe(log, robot, SignalOptions(band=9.0)).band == 9.0

    def test_with_options_chooses_again(self, robot, log):
        observations = observe(log, robot)
        other = observations.with_options(band=3.0, delay=0.001)
        assert (other.band, other.options.delay, other.survey) == (3.0, 0.001, observations.survey)
        assert other.with_options(band=None).band == observations.band
        with pytest.raises(UnknownNameError, match="velocity source"):
            observations.with_options(velocity_source="guessed")

    def test_the_rate_bounds_the_chosen_band(self, robot):
        t = stamps(60.0, 5.0)
        found = observe(make_log(robot, t, MOTION(t)[0], MOTION(t)[0]), robot)
        assert found.band == pytest.approx(0.9 * 5.0 / 4.0)
        assert np.isfinite(collected(found)["ddq"]).all()

    def test_no_motion_still_has_a_band(self, robot):
        t = stamps(10.0, RATE)
        still = make_log(robot, t, np.zeros((len(t), 2)))
        found = observe(still, robot)
        assert found.band == 1.0
        assert found.choice.reason == "no joint moves"

    def test_a_band_that_the_rate_does_not_allow_is_refused(self, robot, log):
        with pytest.raises(
            di.LogError, match="made: a band of 90 Hz is too wide for its rate of 200 Hz; at most 45 Hz"
        ):
            observe(log, robot, SignalOptions(band=90.0))
        assert observe(log, robot, SignalOptions(band=44.9)).band == 44.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"band": 0.0}, "band is 0 Hz; expected a positive frequency"),
        ({"band": -3.0}, "expected a positive frequency"),
        ({"band": float("nan")}, "band is nan; expected a finite number"),
        ({"delay": float("inf")}, "delay is inf"),
        ({"delay": "4 ms"}, "delay is '4 ms'; expected a finite number"),
        ({"rest_velocity": -0.1}, "rest_velocity is -0.1; expected zero or a positive velocity"),
        ({"velocity_source": "mesured"}, "did you mean 'measured'"),
        ({"differentiator": "spline"}, "unknown differentiator 'spline'.*five-point causal"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(di.DynidentError, match=words):
        SignalOptions(**options)


def test_a_band_of_none_and_numbers_of_numpy_are_fine():
    assert SignalOptions(band=None, delay=np.float64(0.001)).delay == 0.001
