"""Laws of friction on every number type; stop operators against a plain loop and however a motion is cut."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import dynident as di
import dynident.signals.rows as rows_module
from dynident.dynamics.jit.numpy_kernel import NumpyKernel
from dynident.dynamics.jit.program import Recorder
from dynident.dynamics.recursion import NUMPY_FUNCTIONS
from dynident.dynamics.terms import resolve_terms
from dynident.dynamics.terms.friction import FrictionTerm, Stops, play, play_step
from dynident.dynamics.terms.friction_laws import (
    FRICTION_LAWS,
    ElementMotion,
    FrictionLaw,
)
from dynident.estimate import TorqueModel, predicted_blocks
from dynident.plant.effects import Effect, FrictionEffect, PlantFunctions
from dynident.signals import ObservedRows, SignalOptions, observe, row_blocks
from tests.signals.made import Fourier, Pieces, make_log, stamps

RADII = np.array([1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.1, 1.0, 10.0])


SHAPES = [(law, part) for law in FRICTION_LAWS.values() for part in law.shapes]


@pytest.mark.parametrize(("law", "part"), SHAPES, ids=[f"{law.name}{part}" for law, part in SHAPES])
def test_a_law_is_the_same_on_floats_arrays_and_recorded_numbers(law, part):
    names = ("position", "velocity", "load", "jerk", "wound")
    given = dict(zip(names, np.random.default_rng(0).normal(size=(5, 40)), strict=True))
    scale = 0.3
    arrays = law.torque(part, 2.0, ElementMotion(**given, unit=0.1, functions=NUMPY_FUNCTIONS), scale)
    floats = [
        law.torque(part, 2.0, ElementMotion(*values, unit=0.1, functions=PlantFunctions()), scale)
        for values in zip(*(x.tolist() for x in given.values()), strict=True)
    ]
    recorder = Recorder(names)
    motion = ElementMotion(*(recorder.input(name) for name in names), unit=0.1, functions=recorder)
    recorded = np.zeros((1, 40))
    NumpyKernel(recorder.finish([law.torque(part, 2.0, motion, scale)]))(list(given.values()), recorded)
    assert floats == pytest.approx(arrays, rel=1e-13, abs=1e-15)
    assert recorded[0] == pytest.approx(arrays, rel=1e-13, abs=1e-15)


FAST = 1.0  # [rad/s] where the smoothed sign has reached one


def torque_at(law, part, velocity, *, sticks, unit=1.0):
    motion = ElementMotion(0.7, velocity, -1.3, 0.4, 0.6, unit, functions=PlantFunctions(), sticks=sticks)
    return law.torque(part, 2.0, motion, 0.3)


@pytest.mark.parametrize("velocity", [FAST, -FAST])
@pytest.mark.parametrize(("law", "part"), SHAPES, ids=[f"{law.name}{part}" for law, part in SHAPES])
def test_a_caller_that_makes_friction_stick_gets_levels_of_dry_laws_and_torques_of_the_others(law, part, velocity):
    smoothed, asked = (torque_at(law, part, velocity, sticks=sticks) for sticks in (False, True))
    assert asked * (np.sign(velocity) if law.dry else 1.0) == pytest.approx(smoothed, rel=1e-13)


@pytest.mark.parametrize("dry", [False, True])
def test_only_a_dry_law_is_asked_for_its_level(dry):
    words = {"words": "", "formula": "sign(v)", "helps": ""}
    law = FrictionLaw("made", {"": lambda c, x, scale: c * x.sign}, "made up", **words, dissipation="dry", dry=dry)
    motion = ElementMotion(velocity=-1e-3, functions=PlantFunctions(), sticks=True)
    assert law.torque("", 2.0, motion, 0.0) == (2.0 if dry else -2.0)
    other = FRICTION_LAWS["stribeck"]
    assert other.torque("", 2.0, motion, 1.0) == pytest.approx(2.0, rel=1e-5)  # whatever was asked before
    assert law.torque("", 2.0, motion, 0.0) == (2.0 if dry else -2.0)


@pytest.mark.parametrize("law", FRICTION_LAWS.values(), ids=FRICTION_LAWS)
def test_what_a_law_says_of_itself_is_so(law):
    assert (law.dissipation == "load") == law.needs_load
    assert not law.dry or law.is_friction
    assert re.fullmatch("[a-z]+", law.name), "a number follows in the names of parameters"
    if not law.is_friction or law.remembers:
        return
    slow, medium, fast = (torque_at(law, "", v, sticks=False) for v in (1e-3, 0.5, 1.0))
    back = torque_at(law, "", -1.0, sticks=False)
    assert back == (fast if law.even else -fast)
    assert medium * fast > 0.0  # a positive coefficient brakes
    if law.dissipation == "viscous":
        assert 0.0 < slow < medium < fast
        assert slow < 0.01 * fast


@pytest.mark.parametrize("law", FRICTION_LAWS.values(), ids=FRICTION_LAWS)
def test_numbers_in_names_of_effects_are_those_of_columns(law):
    for scale in law.examples:
        (column, *_) = FrictionTerm(law.name, scale).element_columns("1", "joint 1", sliding=False)
        number = float(column.name.removeprefix(law.name).removesuffix("_1").rstrip("cs"))
        effect = FrictionEffect(Effect(column.name, law.name, number, next(iter(law.shapes)), "1", 2.0), 1.0)
        effect.start(0.0)
        motion = ElementMotion(1e-4, 0.3, wound=min(1.0, 1e-4 / scale), functions=NUMPY_FUNCTIONS)
        assert effect.torque(1e-4, 0.3, 0.0) == pytest.approx(law.torque(effect.effect.wave, 2.0, motion, scale))


def test_steps_of_the_play_are_the_play():
    position = np.cumsum(np.random.default_rng(1).normal(size=200)) * 1e-3
    end, ends = position[0], []
    for now in position:
        end = play_step(end, now, 3e-3)
        ends.append(end)
    assert play(position[None], np.array([3e-3]), position[:1])[0] == pytest.approx(ends, abs=1e-16)


def stop_by_steps(position, radius):
    """The stop operator as it is usually written, one sample after the other: s / r."""
    wound, result = 0.0, [0.0]
    for before, now in itertools.pairwise(position):
        wound = max(-radius, min(radius, wound + now - before))
        result.append(wound / radius)
    return np.array(result)


def random_motion(seed, n=3000):
    """Wandering, jumping, standing still and creeping."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=n) * 10.0 ** rng.uniform(-6.0, -1.0, n)
    steps[rng.random(n) < 0.2] = 0.0
    return rng.normal() + np.cumsum(steps)


def stops(position, radii=RADII):
    """All radii on one motion, (n_radii, n_samples)."""
    return Stops(np.asarray(radii)).push(np.tile(position, (len(radii), 1)), restart=True)


def in_blocks(position, edges, radii=RADII):
    follower, parts = Stops(np.asarray(radii)), []
    for first, last in zip([0, *edges], [*edges, len(position)], strict=True):
        parts.append(follower.push(np.tile(position[first:last], (len(radii), 1)), restart=first == 0))
    return np.concatenate(parts, axis=1)


class TestOperator:
    @pytest.mark.parametrize("seed", range(20))
    def test_sample_by_sample(self, seed):
        position = random_motion(seed)
        expected = np.array([stop_by_steps(position, radius) for radius in RADII])
        # A sum of steps rounds at every sample, relative to the position and not to the radius.
        bound = 1e-15 * len(position) * np.abs(position).max() / RADII
        assert (np.abs(stops(position) - expected) <= bound[:, None] + 1e-12).all()

    def test_wound_share_is_between_one_and_minus_one(self):
        found = stops(random_motion(1))
        assert np.abs(found).max() <= 1.0 + 1e-9
        assert (found[:2].max(1) > 0.999).all()
        assert (found[:2].min(1) < -0.999).all()

    def test_first_loading_is_a_spring_that_slips(self):
        position = np.linspace(0.0, 5e-3, 101)
        np.testing.assert_allclose(stops(position, [1e-3])[0], np.minimum(position / 1e-3, 1.0), atol=1e-12)

    def test_one_sample_and_none(self):
        follower = Stops(np.array([1e-3]))
        assert follower.push(np.zeros((1, 0)), restart=True).shape == (1, 0)
        assert follower.push(np.array([[0.7]]), restart=True) == 0.0
        assert follower.push(np.zeros((1, 0)), restart=False).shape == (1, 0)
        assert follower.push(np.array([[0.7005]]), restart=False) == pytest.approx(0.5)

    def test_play_is_the_rest_of_the_position(self):
        position = random_motion(2)[None]
        end = play(position, np.array([1e-3]), position[:, 0])
        assert (np.abs(position - end) <= 1e-3 * (1.0 + 1e-9)).all()
        moved = np.flatnonzero(np.diff(end[0]))
        assert (np.abs(np.abs(position - end)[0, moved + 1] - 1e-3) < 1e-12).all()  # the end moves only when dragged


class TestProperties:
    def test_the_same_at_every_velocity(self):
        """Rate independence: samples on the way, waiting, and going faster change nothing."""
        corners = np.array([0.0, 4e-3, 1e-3, 2e-3, -3e-3, 5e-3])
        slow = np.concatenate([np.linspace(a, b, 500) for a, b in itertools.pairwise(corners)])
        rng = np.random.default_rng(0)
        ways = itertools.pairwise(corners)
        warped = np.concatenate([np.interp(np.sort(rng.random(200)), [0.0, 1.0], pair) for pair in ways])
        warped[0], warped[199::200] = corners[0], corners[1:]
        waiting = np.repeat(slow, 3)
        np.testing.assert_allclose(stops(slow)[:, 499::500], stops(warped)[:, 199::200], atol=1e-9)
        np.testing.assert_array_equal(stops(waiting)[:, ::3], stops(slow))

    def test_turned_round_and_shifted(self):
        position = random_motion(3)
        np.testing.assert_array_equal(stops(-position), -stops(position))
        np.testing.assert_allclose(stops(position + 5.0)[2:], stops(position)[2:], atol=1e-10)

    def test_minor_loops_are_congruent(self):
        """Small cycles have the same shape wherever on a large one they are made."""
        weights = np.linspace(1.0, 2.0, 5)
        radii = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]
        there, back = np.linspace(0.0, -1.5e-3, 200), np.linspace(-1.5e-3, 0.0, 200)
        cycle = np.concatenate([there, back[1:]])
        loops = []
        for top in (2e-3, 9e-3, 0.05):
            start = np.linspace(-0.01, top, 400)
            position = np.concatenate([start, top + cycle[1:], top + cycle[1:]])
            torque = weights @ stops(position, radii)
            loops.append(torque[-len(cycle) :])
            np.testing.assert_allclose(torque[-1], torque[-len(cycle)], atol=1e-9)  # closed
        for loop in loops[1:]:
            np.testing.assert_allclose(loop - loop[0], loops[0] - loops[0][0], atol=1e-9)

    @pytest.mark.parametrize("seed", range(10))
    def test_closed_cycles_take_energy(self, seed):
        """Round and round a random closed path: from the second round on the state closes, and no energy comes out."""
        path = random_motion(seed, 400) * 0.1
        path = np.concatenate([path, np.linspace(path[-1], path[0], 50)[1:]])
        position = np.concatenate([path, path[1:], path[1:]])
        found = stops(position)
        last = len(path) - 1
        assert (np.abs(found[:, -1] - found[:, -1 - last]) < 1e-9).all()
        again, wound = position[-last - 1 :], found[:, -1]
        work = np.array([exact_work(again, radius, s) for radius, s in zip(RADII, wound, strict=True)])
        assert (work >= -1e-12).all()
        assert (work[np.ptp(path) / 4.0 > RADII] > 0.0).all()

    def test_a_cycle_within_the_radius_takes_none(self):
        position = 0.5e-3 * np.sin(np.linspace(0.0, 4.0 * np.pi, 801))
        assert exact_work(position, 1e-3, 0.0) == pytest.approx(0.0, abs=1e-12)


def exact_work(position, radius, wound):
    """Energy that a stop takes on straight lines between samples, over its radius: spring and slip exactly."""
    total = 0.0
    state = wound * radius
    for step in np.diff(position):
        free = state + step
        after = max(-radius, min(radius, free))
        total += (after**2 - state**2) / (2.0 * radius) + abs(free - after)
        state = after
    return total / radius


class TestBlocks:
    @pytest.mark.parametrize("seed", range(30))
    def test_any_split_gives_the_same_bits(self, seed):
        rng = np.random.default_rng(seed)
        position = random_motion(100 + seed, int(rng.integers(1, 700)))
        edges = sorted(rng.integers(0, len(position) + 1, int(rng.integers(0, 40))).tolist())
        np.testing.assert_array_equal(in_blocks(position, edges), stops(position))

    def test_one_at_a_time(self):
        position = random_motion(7, 200)
        np.testing.assert_array_equal(in_blocks(position, range(1, 200)), stops(position))

    def test_nothing_before_a_restart_counts(self):
        before, after = random_motion(8, 300), random_motion(9, 300)
        follower = Stops(RADII)
        follower.push(np.tile(before, (len(RADII), 1)), restart=True)
        found = follower.push(np.tile(after, (len(RADII), 1)), restart=True)
        np.testing.assert_array_equal(found, stops(after))
        assert not found[:, 0].any()


TERMS = "rigid,Fv,stop(0.0003,0.003,0.05),stribeck(0.2),load"
RATE = 200.0


@pytest.fixture(scope="module")
def robot():
    return di.load_robot("puma560").lock(q4=0, q5=0, q6=0)


@pytest.fixture(scope="module")
def log(robot):
    """Fourteen seconds with a gap of half a second."""
    t = stamps(14.0, RATE)
    t = t[(t < 5.0) | (t >= 5.5)]
    q = Fourier.random(3, 1)(t)[0]
    return make_log(robot, t, q, np.ones_like(q))


@pytest.fixture(scope="module")
def reference(robot):
    return np.array([robot.value_set().get(c.name, 0.0) for c in resolve_terms("rigid")[0].columns(robot)])


def filtered_rows(robot, log, reference):
    one = observe(log, robot, SignalOptions(band=5.0))
    model = ObservedRows((one,), di.base_parameters(robot, TERMS), reference).regressor
    blocks = list(row_blocks(one, model, reference=reference))
    columns = [np.concatenate(parts, axis=1) for parts in zip(*(b.columns_first for b in blocks), strict=True)]
    return np.concatenate([b.time for b in blocks]), np.concatenate(columns)


class TestAlongALog:
    def unfiltered(self, robot, log, size, monkeypatch):
        """The columns before they are low-passed, in parts of some size."""
        monkeypatch.setattr(rows_module, "_BLOCK", size)
        one = observe(log, robot, SignalOptions(band=5.0))
        model = ObservedRows((one,), di.base_parameters(robot, "rigid,stop(0.0003,0.003,0.05)")).regressor
        course, found = model.course(None), []
        for motion in one.motion():
            found += [course.columns_first(part) for part in rows_module._parts(motion)]
        return np.concatenate(found, axis=1)

    @pytest.mark.parametrize("size", [1, 7, 500])
    def test_parts_of_the_motion_give_the_same_bits(self, robot, log, size, monkeypatch):
        whole = self.unfiltered(robot, log, 2048, monkeypatch)
        np.testing.assert_array_equal(self.unfiltered(robot, log, size, monkeypatch), whole)
        assert np.abs(whole).max() > 0.99

    @pytest.mark.parametrize("size", [33, 500])
    def test_rows_do_not_depend_on_the_parts(self, robot, log, reference, size, monkeypatch):
        time, columns = filtered_rows(robot, log, reference)
        monkeypatch.setattr(rows_module, "_BLOCK", size)
        again, same = filtered_rows(robot, log, reference)
        np.testing.assert_array_equal(again, time)
        np.testing.assert_allclose(same, columns, atol=1e-12 * np.abs(columns).max())

    @pytest.mark.parametrize("sizes", [(1000,), (31,), (1, 2, 300)])
    def test_rows_do_not_depend_on_the_blocks_of_a_log(self, robot, log, reference, sizes):
        time, columns = filtered_rows(robot, log, reference)
        again, same = filtered_rows(robot, Pieces(log, sizes), reference)
        np.testing.assert_allclose(again, time, atol=1e-12)
        np.testing.assert_allclose(same, columns, atol=1e-9 * np.abs(columns).max())

    def test_a_gap_unwinds_the_springs(self, robot, log):
        one = observe(log, robot, SignalOptions(band=5.0))
        model = ObservedRows((one,), di.base_parameters(robot, "rigid,stop(10)")).regressor
        course = model.course(None)
        motions = list(one.motion())
        found = [course.columns_first(motion) for motion in motions]
        starts = [columns[:, 0] for columns, motion in zip(found, motions, strict=True) if motion.first == 0]
        assert len(starts) == 2
        assert not np.any(starts)
        q = np.concatenate([m.q for m in motions]).T
        share = np.concatenate(found, axis=1)
        second = np.cumsum([len(m) for m in motions])[[m.first == 0 for m in motions].index(True, 1) - 1]
        # A radius that is never reached shows the way from where the stretch began.
        np.testing.assert_allclose(10.0 * share[:, :second], q[:, :second] - q[:, :1], atol=1e-9)
        np.testing.assert_allclose(10.0 * share[:, second:], q[:, second:] - q[:, second : second + 1], atol=1e-9)


class TestPrediction:
    def predicted(self, robot, log, reference, terms=TERMS):
        resolved = resolve_terms(terms)
        chi = np.random.default_rng(0).normal(size=len(di.columns(robot, resolved)))
        model = TorqueModel(robot, resolved, chi, reference)
        blocks = list(predicted_blocks(model, observe(log, robot, SignalOptions(band=5.0))))
        return np.concatenate([tau for _, tau in blocks])

    @pytest.mark.parametrize("sizes", [(1000,), (31,), (1, 2, 300), (500, 500, 1900)])
    def test_state_is_carried_from_block_to_block(self, robot, log, reference, sizes):
        """Blocks of every kind, some of which end just at the gap."""
        whole = self.predicted(robot, log, reference)
        assert whole.shape == (len(log), 3)
        np.testing.assert_allclose(
            self.predicted(robot, Pieces(log, sizes), reference), whole, atol=1e-9 * np.abs(whole).max()
        )

    def test_a_log_in_two_forgets(self, robot, log, reference):
        """The state matters: the second half alone starts unwound, and is another torque for a while only."""
        terms, half = "rigid,stop(0.05)", slice(1500, None)
        whole = self.predicted(robot, log, reference, terms)[half]
        alone = self.predicted(robot, log.samples(half), reference, terms)
        size = np.abs(whole).max()
        assert np.abs(whole - alone)[:20].max() > 1e-3 * size
        np.testing.assert_allclose(alone[400:-50], whole[400:-50], atol=1e-3 * size)
