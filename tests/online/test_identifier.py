"""On-line against off-line, samples against blocks, rest, structures, checkpoints, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.online import CausalFilter
from tests.online.made import TERMS, arm, feed, motion, torque, truth

RATE = 250.0
KINDS = ("directional", "exponential", "none")


@pytest.fixture(scope="module")
def data():
    t, q, dq, ddq = motion(10.0, RATE)  # a whole period, so that it can be repeated
    return t, q, dq, ddq, torque(arm(), q, dq, ddq, noise=0.01)


def relative(found, wanted):
    return np.abs(found - wanted).max() / np.abs(wanted).max()


class TestEqualsOffline:
    def test_on_motion_that_is_known(self, data):
        found = di.OnlineIdentifier(arm(), terms=TERMS, sigma=np.ones(6), rest_velocity=0.0, forgetting="none")
        found.update_motion(*data)
        wanted = di.accumulate(arm(), *data[1:], TERMS).solve(weighting="equal")
        state = found.state()
        assert state.names == wanted.names
        assert relative(state.values, wanted.values) < 1e-9
        np.testing.assert_allclose(state.values, wanted.values, rtol=1e-6, atol=1e-9)

    def test_on_rows_of_the_same_filters(self, data):
        """Sample by sample, with weights, against one least-squares solution of all filtered rows."""
        t, q, _, _, tau = data
        sigma = np.array([2.0, 3.0, 1.5, 0.2, 0.2, 0.1])
        options = {"band": 8.0, "box": 1, "rest_velocity": 0.0, "forgetting": "none", "sample_time": 1.0 / RATE}
        found = di.OnlineIdentifier(arm(), terms=TERMS, sigma=sigma, **options)
        feed(found, t, q, tau)
        rows = CausalFilter(6, 1.0 / RATE, 32.0).push_many(t, q, tau)
        info = di.accumulate(arm(), rows.q, rows.dq, rows.ddq, rows.tau, TERMS)
        wanted = info.weighted(list(1.0 / sigma**2)).solve(weighting="equal")
        assert relative(found.state().values, wanted.values) < 1e-9

    @pytest.mark.parametrize("blocks", [True, False])
    def test_through_its_information_solved_off_line(self, data, blocks):
        """Nothing but public names: the rows it kept, solved off-line, and rows of the same filters, accumulated."""
        t, q, _, _, tau = data
        sigma = np.array([2.0, 3.0, 1.5, 0.2, 0.2, 0.1])
        options = {"terms": TERMS, "sigma": sigma, "band": 8.0, "forgetting": "none", "sample_time": 1.0 / RATE}
        every = di.OnlineIdentifier(arm(), box=1, rest_velocity=0.0, **options)
        usual = di.OnlineIdentifier(arm(), **options)  # rows averaged over boxes, joints at rest left out
        for one in (every, usual):
            one.update_many(t, q, tau) if blocks else feed(one, t, q, tau)
            solved = one.information().solve(weighting="equal")
            assert solved.names == one.state().names
            assert relative(solved.values, one.state().values) < 1e-9
            assert relative(one.values, one.state().values) < 1e-9
        rows = CausalFilter(6, 1.0 / RATE, 32.0).push_many(t, q, tau)
        info = di.accumulate(arm(), rows.q, rows.dq, rows.ddq, rows.tau, TERMS).weighted(list(1.0 / sigma**2))
        assert (
            relative(every.information().solve(weighting="equal").values, info.solve(weighting="equal").values) < 1e-9
        )
        assert every.information().n_rows == info.n_rows

    def test_identify_finds_the_same_within_deviations(self, data):
        """The off-line pipeline filters without delay and weighs by residuals; the data is the same.

        Widths of dry friction that it found are part of its uncertainty, but not of that on-line: both get the truth.
        """
        from tests.signals.made import make_log

        t, q, _, _, tau = data
        log = make_log(arm(), t, q, di.joint_torque(arm(), tau))
        fit = di.identify(arm(), log, terms=TERMS, check="off")
        online = di.OnlineIdentifier(arm(), terms=TERMS, sigma=fit.sigma, band=fit.band, forgetting="none")
        online.update_many(t, q, tau)
        state = online.state()
        assert state.names == fit.names
        spread = np.hypot(state.std, fit.std)
        assert np.sqrt(np.mean(((state.values - fit.beta) / spread) ** 2)) < 1.0


def test_blocks_are_the_same_as_samples(data):
    t, q, _, _, tau = data
    options = {"terms": TERMS, "band": 8.0, "memory": 3.0}
    one, many = (di.OnlineIdentifier(arm(), **options) for _ in range(2))
    feed(one, t, q, tau)
    for start in range(0, len(t), 333):
        part = slice(start, start + 333)
        many.update_many(t[part], q[part], tau[part])
    left, right = one.state(), many.state()
    assert (left.samples, left.rows) == (right.samples, right.rows)
    assert relative(left.values, right.values) < 1e-9
    np.testing.assert_allclose(left.std, right.std, rtol=1e-6)
    np.testing.assert_allclose(left.torque_error, right.torque_error, rtol=1e-6)


def test_deviations_and_errors_from_nothing_are_those_of_least_squares(data):
    """White noise of one standard deviation: errors of values that hardly stood on anything must not count for long."""
    t, q, dq, ddq, _ = data
    tau = torque(arm(), q, dq, ddq) + np.random.default_rng(4).normal(size=q.shape)
    found = di.OnlineIdentifier(arm(), terms=TERMS, sigma=np.ones(6), rest_velocity=0.0, forgetting="none", box=1)
    found.update_motion(t[:100], q[:100], dq[:100], ddq[:100], tau[:100])
    assert np.isnan(found.state().relative_error).all()  # of values that nobody has estimated
    found.update_motion(t[100:], q[100:], dq[100:], ddq[100:], tau[100:])
    rows = found.known.base.regressor(q, dq, ddq).reshape(q.size, -1)
    wanted = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    np.testing.assert_allclose(found.state().std, wanted, rtol=0.15)
    np.testing.assert_allclose(found.state().torque_error, 1.0, rtol=0.15)


def test_noise_free_motion_gives_the_truth():
    t, q, dq, ddq = motion(12.0, RATE)
    found = di.OnlineIdentifier(arm(), terms=TERMS)
    found.update_motion(t, q, dq, ddq, torque(arm(), q, dq, ddq))
    state = found.state()
    assert relative(state.values, truth(arm())) < 1e-8
    assert state.verdict.enough


class TestStructures:
    """Khosla & Kanade 1987, section 3.4: the error signal is the same, so the estimates are."""

    def test_both_give_identical_estimates(self, data):
        t, q, dq, ddq, _ = data
        system = truth_values()
        series = di.OnlineIdentifier(arm(), terms=TERMS, sigma=np.ones(6))
        series.update_motion(t, q, dq, ddq, torque(arm(), q, dq, ddq, **system))
        structure = di.online.ParallelStructure(arm(), series.known.base.terms, {**own_values(), **system})
        parallel = di.OnlineIdentifier(arm(), terms=TERMS, sigma=np.ones(6), structure=structure)
        parallel.update_motion(t, q, dq, ddq, np.zeros_like(q))
        assert relative(parallel.state().values, series.state().values) < 1e-9

    def test_parallel_needs_no_torque_behind_filters(self, data):
        """A system that is a model sees filtered motion as the model does: nothing is lost to the filters."""
        t, q, *_ = data
        found = di.OnlineIdentifier(arm(), terms=TERMS, structure=di.online.ParallelStructure(arm(), terms(), None))
        found.update_many(t, q, np.zeros_like(q))
        assert relative(found.state().values, truth(arm())) < 1e-8


def terms():
    return di.base_parameters(arm(), terms=TERMS).terms


def own_values():
    columns = {column.name for column in di.columns(arm(), TERMS)}
    return {name: float(x) for name, x in arm().value_set().items() if name in columns}


def truth_values():
    return {"M6": 1.5, "Fv2": 9.0}


class TestRest:
    def test_nothing_drifts_in_hours_of_rest_with_noise(self, data):
        t, q, _, _, tau = (x[::5] for x in data)  # 50 Hz: hours take a second
        found = di.OnlineIdentifier(arm(), terms=TERMS, band=5.0, memory=5.0)
        found.update_many(t, q, tau)
        rng, still = np.random.default_rng(5), np.repeat(q[-1:], 5000, axis=0)
        now = t[-1]
        for block in range(109):  # three hours in blocks of 100 s
            stamps = now + (1.0 if block == 0 else 0.0) + np.arange(1, 5001) / 50.0
            now = stamps[-1]
            held = tau[-1] + 0.3 * tau.std(0) * rng.normal(size=still.shape) + 0.05 * np.sin(1e-3 * now)
            found.update_many(stamps, still + 2e-5 * rng.normal(size=still.shape), held)
            if block == 0:
                before = found.state()
        after = found.state()
        assert now - t[-1] > 3.0 * 3600.0
        np.testing.assert_array_equal(after.values, before.values)
        np.testing.assert_array_equal(after.std, before.std)

    def test_moving_one_joint_forgets_nothing_else(self, data):
        """One joint moves for fifty memories: torque on other motion stays known; plain forgetting loses it."""
        t, q, _, _, tau = data
        W = di.base_parameters(arm(), terms=TERMS).regressor(*motion(5.0, 20.0, seed=8)[1:])
        stamps = t[-1] + 1.0 + np.arange(50000) / RATE  # after a gap: nothing stops at once
        phase, zero = 2.0 * (stamps - stamps[0]), np.zeros((len(stamps), 6))
        own, dq, ddq = np.repeat(q[-1:], len(stamps), axis=0), zero.copy(), zero.copy()
        own[:, 5] += 0.3 * np.sin(phase)
        dq[:, 5], ddq[:, 5] = 0.6 * np.cos(phase), -1.2 * np.sin(phase)
        more = torque(arm(), own, dq, ddq) + 0.1 * np.random.default_rng(2).normal(size=own.shape)
        error = {}
        for kind in ("directional", "exponential"):
            found = di.OnlineIdentifier(arm(), terms=TERMS, band=8.0, memory=4.0, forgetting=kind)
            found.update_many(t, q, tau)
            found.update_many(stamps, own, more)
            error[kind] = np.linalg.norm(W @ (found.state().values - truth(arm()))) / np.linalg.norm(W @ truth(arm()))
        assert error["directional"] < 0.02
        assert error["exponential"] > 5.0 * error["directional"]


def test_friction_that_changes_is_followed(data):
    t, q, dq, ddq, tau = data
    old = own_values()["Fv2"]
    found = {kind: di.OnlineIdentifier(arm(), terms=TERMS, band=8.0, memory=12.0, forgetting=kind) for kind in KINDS}
    for one in found.values():
        one.update_many(t, q, tau)
        for repeat in (1, 2, 3, 4):
            one.update_many(t + 10.0 * repeat, *_again(q, dq, ddq, Fv2=2.0 * old))
    values = {kind: one.state().values[one.state().names.index("Fv2")] for kind, one in found.items()}
    assert values["directional"] == pytest.approx(2.0 * old, rel=0.05)
    assert values["exponential"] == pytest.approx(2.0 * old, rel=0.05)
    assert values["none"] < 1.9 * old


def _again(q, dq, ddq, **more):
    return q, torque(arm(), q, dq, ddq, noise=0.01, seed=9, **more)


class TestPrior:
    def test_it_holds_what_the_motion_does_not_show(self, data):
        t, q, dq, ddq, _ = data
        found = di.OnlineIdentifier(arm(), terms=TERMS, prior=arm().default_values)
        own = np.repeat(q[:1], len(t), axis=0)
        own[:, 5] = q[:, 5]
        velocities, accelerations = np.zeros_like(own), np.zeros_like(own)
        velocities[:, 5], accelerations[:, 5] = dq[:, 5], ddq[:, 5]
        found.update_motion(t, own, velocities, accelerations, torque(arm(), own, velocities, accelerations, Fv6=0.5))
        state = found.state()
        assert state.values[state.names.index("Fv6")] == pytest.approx(0.5, rel=0.05)
        assert relative(state.values, np.where(np.array(state.names) == "Fv6", 0.5, truth(arm()))) < 0.02
        assert not state.verdict.enough
        assert "open" in state.verdict.reason

    def test_terms_along_time_are_refused(self):
        with pytest.raises(di.InputError, match="cannot be estimated on-line"):
            di.OnlineIdentifier(arm(), terms="rigid,stop(0.01)")


class TestVerdict:
    def test_before_any_sample_and_before_any_motion(self):
        found = di.OnlineIdentifier(arm(), terms=TERMS, sample_time=0.004)
        assert found.state().verdict.reason == "no sample so far"
        found.update_many(np.arange(100) * 0.004, np.zeros((100, 6)), np.ones((100, 6)))
        assert "no joint has moved" in found.state().verdict.reason

    def test_one_joint_cannot_support_all(self, data):
        t, q, dq, ddq, _ = data
        found = di.OnlineIdentifier(arm(), terms=TERMS)
        own = [np.where(np.arange(6) == 2, x, x[:1] * (i == 0)) for i, x in enumerate((q, dq, ddq))]
        found.update_motion(t, *own, torque(arm(), *own))
        state = found.state()
        assert not state.verdict.enough
        assert "open" in state.verdict.reason
        assert not state.determined[state.names.index("ZZR1")]

    def test_a_short_motion_is_uncertain_and_says_where(self, data):
        found = di.OnlineIdentifier(arm(), terms=TERMS)
        noisy = torque(arm(), *(x[:1500] for x in data[1:4]), noise=1.0)
        found.update_motion(*(x[:1500] for x in data[:4]), noisy)
        assert not found.state().verdict.enough
        assert "uncertain by" in found.state().verdict.reason


class TestCheckpoint:
    @pytest.mark.parametrize("cut", [20, 1501])
    def test_it_goes_on_as_if_nothing_had_happened(self, data, tmp_path, cut):
        t, q, _, _, tau = data
        options = {"terms": TERMS, "band": 8.0, "memory": 4.0}
        whole, first = di.OnlineIdentifier(arm(), **options), di.OnlineIdentifier(arm(), **options)
        whole.update_many(t, q, tau)
        first.update_many(t[:cut], q[:cut], tau[:cut])
        first.save(tmp_path / "c.npz")
        second = di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
        second.update_many(t[cut:], q[cut:], tau[cut:])
        left, right = whole.state(), second.state()
        assert relative(right.values, left.values) < 1e-9
        assert (right.samples, right.rows, right.counters) == (left.samples, left.rows, left.counters)

    def test_other_files_and_robots_are_refused(self, tmp_path):
        found = di.OnlineIdentifier(arm(), terms=TERMS)
        found.save(tmp_path / "c.npz")
        with pytest.raises(di.InputError, match="another robot"):
            di.OnlineIdentifier.load(tmp_path / "c.npz", arm("panda"))
        (tmp_path / "bad.npz").write_bytes((tmp_path / "c.npz").read_bytes()[:500])
        with pytest.raises(di.InputError, match="is no checkpoint"):
            di.OnlineIdentifier.load(tmp_path / "bad.npz", arm())
        with pytest.raises(di.InputError, match="no such checkpoint"):
            di.OnlineIdentifier.load(tmp_path / "none.npz", arm())

    def test_another_structure_is_refused(self, tmp_path):
        """A file of numbers does not hold the code of a structure; another one must not quietly take its place."""
        series = di.OnlineIdentifier(arm(), terms=TERMS)
        structure = di.online.ParallelStructure(arm(), series.known.base.terms, None)
        di.OnlineIdentifier(arm(), terms=TERMS, structure=structure).save(tmp_path / "c.npz")
        with pytest.raises(di.InputError, match="output-error structure, not the input-error one"):
            di.OnlineIdentifier.load(tmp_path / "c.npz", arm())
        assert di.OnlineIdentifier.load(tmp_path / "c.npz", arm(), structure).structure is structure

    def test_one_that_lacks_something_is_refused(self, tmp_path):
        di.OnlineIdentifier(arm(), terms=TERMS).save(tmp_path / "c.npz")
        with np.load(tmp_path / "c.npz") as stored:
            np.savez(
                tmp_path / "d.npz",
                **{name: stored[name] for name in stored.files if name not in ("counts", "dynident")},
            )
        with pytest.raises(di.InputError, match="lacks 'counts'"):
            di.OnlineIdentifier.load(tmp_path / "d.npz", arm())


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("band", -1.0),
            ("band", np.nan),
            ("band", "8"),
            ("sample_time", 0.0),
            ("sample_time", "x"),
            ("memory", "x"),
            ("torque_delay", "x"),
            ("window", None),
            ("rest_velocity", True),
            ("box", True),
        ],
    )
    def test_options_that_are_no_such_number(self, name, value):
        with pytest.raises(di.InputError, match=f"{name} is {value!r}; expected "):
            di.OnlineIdentifier(arm(), terms=TERMS, **{name: value})

    def test_motion_at_one_instant(self):
        with pytest.raises(di.InputError, match=r"sample_time is 0.0 s; expected a positive time"):
            di.OnlineIdentifier(arm(), terms=TERMS).update_motion(np.ones(3), *[np.zeros((3, 6))] * 4)

    def test_numbers_that_are_not_finite(self):
        found = di.OnlineIdentifier(arm(), terms=TERMS)
        bad = np.zeros(6)
        bad[3] = np.nan
        with pytest.raises(di.InputError, match=f"tau of {arm().joint_names[3]} is not finite at 1 s"):
            found.update(di.online.Sample(1.0, np.zeros(6), bad))
        with pytest.raises(di.InputError, match="time of the sample is inf"):
            found.update(di.online.Sample(np.inf, np.zeros(6), np.zeros(6)))
        with pytest.raises(di.InputError, match=r"q of the sample has shape \(5,\)"):
            found.update(di.online.Sample(1.0, np.zeros(5), np.zeros(6)))
        assert found.samples == 0

    def test_large_finite_numbers_are_no_error(self):
        found = di.OnlineIdentifier(arm(), terms=TERMS)
        found.update(di.online.Sample(1.0, np.zeros(6), np.full(6, 1e200)))
        assert found.samples == 1

    def test_unknown_options(self):
        with pytest.raises(di.UnknownNameError, match="did you mean 'memory'"):
            di.OnlineIdentifier(arm(), memry=3.0)
        with pytest.raises(di.InputError, match="least_mass is -1"):
            di.OnlineIdentifier(arm(), least_mass=-1.0)


def test_the_state_is_plain_data(data):
    import json

    found = di.OnlineIdentifier(arm(), terms=TERMS)
    assert json.loads(json.dumps(found.state().as_dict()))["verdict"]["enough"] is False
    found.update_motion(*data)
    plain = json.loads(json.dumps(found.state().as_dict()))
    assert plain["verdict"]["enough"] is True
    assert plain["parameters"][0].keys() == {"name", "value", "std", "unit", "determined"}
    assert len(plain["torque_error"]) == 6


def test_physical_parameters_off_the_sample_path(data):
    pytest.importorskip("clarabel")
    found = di.OnlineIdentifier(arm(), terms=TERMS, project=2.0)
    found.update_motion(*data)
    found.close()
    state = found.state()
    assert state.physical is not None
    assert state.physical_time == pytest.approx(data[0][-1])
    np.testing.assert_allclose(found.physical().chi, state.physical.chi, atol=5e-3)
